/* SPDX-License-Identifier: Apache-2.0
 *
 * Host costs, each library in a fresh process. */
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "compose.h"
#include "device.h"
#include "host_time.h"
#include "output.h"
#include "result.h"

const char host_flag[] = "--host-child";

enum { FIGURES_MAX = 24 };

struct figure {
    char name[32];
    double value;
};

struct figures {
    const char *label;
    struct figure figure[FIGURES_MAX];
    int count;
};
static struct figures measured[2] = {{.label = "ours"}, {.label = "peer"}};

/* ---- in the process that measures ---- */

static void say(const char *name, double value)
{
    printf("%s %.6f\n", name, value);
    fflush(stdout);
}

struct small {
    struct library *library;
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t tensor, channel;
    cudnnActivationDescriptor_t relu;
    cudnnPoolingDescriptor_t pooling;
    cudnnTensorDescriptor_t pooled;
    char *data[4];
};

static const float one = 1.0F;
static const float zero = 0.0F;

static cudnnStatus_t activation(void *small)
{
    struct small *s = small;
    return s->library->ActivationForward(s->handle, s->relu, &one, s->tensor, s->data[0], &zero,
                                         s->tensor, s->data[1]);
}

static cudnnStatus_t pooling(void *small)
{
    struct small *s = small;
    return s->library->PoolingForward(s->handle, s->pooling, &one, s->tensor, s->data[0], &zero,
                                      s->pooled, s->data[1]);
}

static cudnnStatus_t softmax(void *small)
{
    struct small *s = small;
    return s->library->SoftmaxForward(s->handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                      &one, s->tensor, s->data[0], &zero, s->tensor, s->data[1]);
}

static cudnnStatus_t inference(void *small)
{
    struct small *s = small;
    return s->library->BatchNormalizationForwardInference(
        s->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, s->tensor, s->data[0], s->tensor,
        s->data[1], s->channel, s->data[2], s->data[2], s->data[2], s->data[3], 1e-5);
}

static cudnnStatus_t bias(void *small)
{
    struct small *s = small;
    return s->library->AddTensor(s->handle, &one, s->channel, s->data[2], &one, s->tensor,
                                 s->data[1]);
}

static cudnnStatus_t descriptor(void *small)
{
    struct small *s = small;
    cudnnTensorDescriptor_t made;
    cudnnStatus_t status = s->library->CreateTensorDescriptor(&made);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    status =
        s->library->SetTensor4dDescriptor(made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 64, 16, 16);
    s->library->DestroyTensorDescriptor(made);
    return status;
}

static void describe(struct small *s)
{
    struct library *l = s->library;
    l->CreateTensorDescriptor(&s->tensor);
    l->CreateTensorDescriptor(&s->channel);
    l->CreateTensorDescriptor(&s->pooled);
    l->SetTensor4dDescriptor(s->tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 64, 16, 16);
    l->SetTensor4dDescriptor(s->channel, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 64, 1, 1);
    l->SetTensor4dDescriptor(s->pooled, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 64, 8, 8);
    l->CreateActivationDescriptor(&s->relu);
    l->SetActivationDescriptor(s->relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0);
    l->CreatePoolingDescriptor(&s->pooling);
    l->SetPooling2dDescriptor(s->pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2,
                              2);
}

/* Planning a graph of one node, descriptors and all: the first time, and again, when what can be kept
 * is kept. */
static void say_planning(struct small *s)
{
    enum { AGAIN = 50 };
    static const struct problem relu = {"b_relu", CUDNN_DATA_FLOAT, NCHW, {1, 64, 1, 16, 16}, 0,
                                        {0}};
    const struct family *family = NULL;
    struct task task = {.problem = &relu, .terms = 1.0, .slack = 1.0, .limit = 1.5};
    double best = 0.0;
    for (int f = 0; f < family_count; ++f)
        if (!strcmp(families[f]->name, "pointwise")) family = families[f];
    task.family = family;
    if (!family || !family->plan(&task)) return;
    for (int i = 0; i <= AGAIN; ++i) {
        struct session session = {.library = s->library, .handle = s->handle};
        double start = clock_now();
        cudnnStatus_t status = family->prepare(&session, &task);
        double spent = clock_now() - start;
        composed_free(&session);
        if (status != CUDNN_STATUS_SUCCESS) return;
        if (i == 0) say("plan_first_ms", spent * 1e3);
        else if (best == 0.0 || spent < best) best = spent;
    }
    say("plan_us", best * 1e6);
}

static void say_calls(struct small *s)
{
    static const struct {
        const char *name;
        cudnnStatus_t (*call)(void *small);
    } calls[] = {
        {"activation_us", activation}, {"pooling_us", pooling}, {"softmax_us", softmax},
        {"inference_us", inference},   {"bias_us", bias},       {"descriptor_us", descriptor},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
        say(calls[i].name, host_time(calls[i].call, s, 1) * 1e6);
    }
}

int host_child(int argc, char **argv)
{
    struct small s = {.library = &ours};
    size_t host_before;
    size_t device_before;
    double start;
    double opened;
    double created;
    double first;
    int ordinal;
    if (argc != 5) return EXIT_CANNOT_RUN;
    if (!strcmp(argv[2], "peer")) s.library = &peer;
    ordinal = (int)strtol(argv[4], NULL, 10);
    if (ordinal < 0) device_open_cpu();
    else if (!device_open_gpu(ordinal)) return EXIT_CANNOT_RUN;
    for (int i = 0; i < 4; ++i) {
        s.data[i] = device_alloc(65536);
        device_set(s.data[i], 0, 65536);
    }
    device_sync();
    host_before = host_memory_used();
    device_before = device_memory_used();
    start = clock_now();
    if (!library_open(s.library, argv[3], s.library == &ours)) return EXIT_CANNOT_RUN;
    opened = clock_now();
    if (s.library->Create(&s.handle) != CUDNN_STATUS_SUCCESS) return EXIT_CANNOT_RUN;
    created = clock_now();
    if (device.gpu) s.library->SetStream(s.handle, (cudaStream_t)device.stream);
    describe(&s);
    activation(&s);
    device_sync();
    first = clock_now();
    say("open_ms", s.library->open_seconds * 1e3);
    say("handle_ms", (created - opened) * 1e3);
    say("first_call_ms", (first - created) * 1e3);
    say("start_ms", (first - start) * 1e3);
    say("host_mb", ((double)host_memory_used() - (double)host_before) * 1e-6);
    if (device.gpu) {
        say("device_mb", ((double)device_memory_used() - (double)device_before) * 1e-6);
        say("launch_us", host_time_launch() * 1e6);
    }
    say_calls(&s);
    say_planning(&s);
    for (int i = 0; i < 4; ++i) device_free(s.data[i]);
    s.library->Destroy(s.handle);
    device_close();
    return library_verify_maps() ? EXIT_FINE : EXIT_CANNOT_RUN;
}

/* ---- in the process that asks ---- */

static void read_figures(struct figures *f, FILE *pipe)
{
    struct figure *next = &f->figure[f->count];
    while (f->count < FIGURES_MAX && fscanf(pipe, "%31s %lf", next->name, &next->value) == 2) {
        f->count += 1;
        next = &f->figure[f->count];
    }
}

static void ask(struct figures *f, const struct library *library)
{
    char number[16];
    char *argv[] = {(char *)"warpdnn_bench",
                    (char *)host_flag,
                    (char *)library->label,
                    (char *)library->path,
                    number,
                    NULL};
    int ends[2];
    int status = 0;
    pid_t child;
    FILE *pipe_file;
    snprintf(number, sizeof number, "%d", device.ordinal);
    if (pipe(ends) != 0) return;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(ends[1]);
    pipe_file = fdopen(ends[0], "r");
    if (pipe_file) {
        read_figures(f, pipe_file);
        fclose(pipe_file);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
        fprintf(stderr, "host figures of %s: its process failed\n", library->path);
    }
}

static double figure_of(const struct figures *f, const char *name)
{
    for (int i = 0; i < f->count; ++i)
        if (!strcmp(f->figure[i].name, name)) return f->figure[i].value;
    return -1.0;
}

static const struct {
    const char *name;
    const char *text;
} lines[] = {
    {"open_ms", "to open the library, ms"},
    {"handle_ms", "to create a handle, ms"},
    {"first_call_ms", "first call, to its end, ms"},
    {"start_ms", "all of that, ms (target 30)"},
    {"host_mb", "host memory after it, MB (target 20)"},
    {"device_mb", "device memory after it, MB"},
    {"launch_us", "the driver's launch of an empty kernel, us"},
    {"activation_us", "relu forward, us a call (target: launch + 1)"},
    {"pooling_us", "max pooling forward"},
    {"softmax_us", "softmax forward"},
    {"inference_us", "batch norm inference"},
    {"bias_us", "add bias"},
    {"descriptor_us", "tensor descriptor made, set, destroyed (0.2)"},
    {"plan_first_ms", "planning a graph of one node at first, ms"},
    {"plan_us", "planning it again, us (20)"},
};
enum { LINES = sizeof lines / sizeof lines[0] };

/* Figures of both libraries for a line; false where neither has one. */
static bool line_of(int line, double values[2])
{
    for (int l = 0; l < 2; ++l) values[l] = figure_of(&measured[l], lines[line].name);
    return values[0] >= 0.0 || values[1] >= 0.0;
}

void host_measure(void)
{
    FILE *out = output_text();
    double values[2];
    ask(&measured[0], &ours);
    if (peer.open) ask(&measured[1], &peer);
    fprintf(out, "%-48s %10s %10s\n", "on the host, each in a fresh process", "ours", "peer");
    for (int i = 0; i < LINES; ++i) {
        if (!line_of(i, values)) continue;
        fprintf(out, "%-48s", lines[i].text);
        for (int l = 0; l < 2; ++l) {
            if (values[l] < 0.0) fprintf(out, " %10s", "-");
            else fprintf(out, " %10.3f", values[l]);
        }
        fputc('\n', out);
    }
    fputc('\n', out);
}

void host_html(FILE *file)
{
    double values[2];
    if (!measured[0].count && !measured[1].count) return;
    fputs("<h2>On the host</h2>\n<p>Each library in a fresh process.</p>\n<div "
          "class=\"scroll\"><table>"
          "<tr><th></th><th>ours</th><th>peer</th></tr>\n",
          file);
    for (int i = 0; i < LINES; ++i) {
        if (!line_of(i, values)) continue;
        fprintf(file, "<tr><td>%s</td>", lines[i].text);
        for (int l = 0; l < 2; ++l) {
            if (values[l] < 0.0) fputs("<td>-</td>", file);
            else fprintf(file, "<td>%.3f</td>", values[l]);
        }
        fputs("</tr>\n", file);
    }
    fputs("</table></div>\n", file);
}

void host_json(FILE *file)
{
    int shown = 0;
    for (int l = 0; l < 2; ++l) {
        if (!measured[l].count) continue;
        fprintf(file, "%s\n    {\"library\": \"%s\"", shown++ ? "," : "", measured[l].label);
        for (int i = 0; i < measured[l].count; ++i) {
            fprintf(file, ", \"%s\": %.4f", measured[l].figure[i].name,
                    measured[l].figure[i].value);
        }
        fputc('}', file);
    }
    if (shown) fputs("\n  ", file);
}
