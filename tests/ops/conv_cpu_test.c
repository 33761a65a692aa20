/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast CPU engines of convolution: shapes large and odd enough that work is cut into several
 * panels, blocks, rounds and splits, in every layout and type, with one, two and 64 threads, against
 * sums written out here in double. Every engine must be reached; workspaces stay bounded whatever the
 * size and the number of threads; the program's own BLAS threads stay as set. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conv_cpu_shapes.h"
#include "cpu_runs.h"
#include "support/harness.h"

static const char *const direction_name[] = {"fprop", "dgrad", "wgrad", "fused"};

enum { WORKSPACE_MAX = 64 << 20 };

/* --- Which engines ran -------------------------------------------------------------------------- */

static const char *const engine_names[] = {
    "conv_fprop_gemm",      "conv_dgrad_gemm",      "conv_wgrad_gemm",
    "conv_fused_gemm",      "conv_fprop_depthwise", "conv_dgrad_depthwise",
    "conv_wgrad_depthwise", "conv_fused_depthwise", "bias_grad_rows",
};
enum { ENGINES = sizeof engine_names / sizeof engine_names[0] };
static int reached[ENGINES];

static const char *last_engine(void)
{
    const char *name = "";
    warpdnnGetLastEngine(harness_handle, &name);
    return name;
}

static void count_engine(const char *wanted)
{
    const char *name = last_engine();
    for (int i = 0; i < ENGINES; ++i) reached[i] += !strcmp(engine_names[i], name);
    if (wanted && strcmp(name, wanted) != 0) case_fail("%s ran, not %s", name, wanted);
}

static void check_reached(void)
{
    for (int i = 0; i < ENGINES; ++i) {
        if (!case_begin("engine %s is reached", engine_names[i])) continue;
        if (reached[i] == 0) case_fail("no case ran on it");
        case_end();
    }
}

/* --- Convolutions ------------------------------------------------------------------------------- */

struct call {
    enum direction direction;
    struct shape s;
    int output[2];
    cudnnConvolutionMode_t mode;
    cudnnConvolutionDescriptor_t conv;
    cudnnFilterDescriptor_t filter;
    cudnnActivationDescriptor_t activation;
    struct tensor *x, *w, *y, *z, *b, *workspace;
    double alpha, beta;
};

static void set_output(struct call *c)
{
    for (int d = 0; d < 2; ++d) {
        int window = (c->s.filter[d] - 1) * c->s.dilation[d] + 1;
        c->output[d] = (c->s.image[d] + 2 * c->s.pad[d] - window) / c->s.stride[d] + 1;
    }
}

/* The products of one filter tap of one pair of channels, line by line. */
static void add_tap(const struct call *c, const double *x, const double *y, double *to,
                    double *size, enum direction direction, double w, int r, int s)
{
    const struct shape *g = &c->s;
    bool flip = c->mode == CUDNN_CONVOLUTION;
    int row = (flip ? g->filter[0] - 1 - r : r) * g->dilation[0] - g->pad[0];
    int column = (flip ? g->filter[1] - 1 - s : s) * g->dilation[1] - g->pad[1];
    for (int p = 0; p < c->output[0]; ++p) {
        int h = p * g->stride[0] + row;
        if (h < 0 || h >= g->image[0]) continue;
        for (int q = 0; q < c->output[1]; ++q) {
            int at = q * g->stride[1] + column;
            int64_t pixel = (int64_t)h * g->image[1] + at;
            int64_t point = (int64_t)p * c->output[1] + q;
            double product;
            if (at < 0 || at >= g->image[1]) continue;
            product = direction == DGRAD   ? w * y[point]
                      : direction == WGRAD ? x[pixel] * y[point]
                                           : x[pixel] * w;
            if (direction == DGRAD) {
                to[pixel] += product;
                size[pixel] += fabs(product);
            } else if (direction == WGRAD) {
                *to += product;
                *size += fabs(product);
            } else {
                to[point] += product;
                size[point] += fabs(product);
            }
        }
    }
}

static void add_products(const struct call *c, double *sum, double *magnitude)
{
    const struct shape *g = &c->s;
    int64_t pixels = (int64_t)g->image[0] * g->image[1];
    int64_t points = (int64_t)c->output[0] * c->output[1];
    int taps = g->filter[0] * g->filter[1];
    int cg = g->channels / g->groups;
    int kg = g->filters / g->groups;
    for (int n = 0; n < g->batch; ++n) {
        for (int k = 0; k < g->filters; ++k) {
            for (int i = 0; i < cg; ++i) {
                int64_t x = ((int64_t)n * g->channels + k / kg * cg + i) * pixels;
                int64_t y = ((int64_t)n * g->filters + k) * points;
                for (int t = 0; t < taps; ++t) {
                    int64_t w = ((int64_t)k * cg + i) * taps + t;
                    int64_t to = c->direction == DGRAD ? x : c->direction == WGRAD ? w : y;
                    add_tap(c, c->x->value + x, c->y->value + y, sum + to, magnitude + to,
                            c->direction, c->w->value[w], t / g->filter[1], t % g->filter[1]);
                }
            }
        }
    }
}

static struct tensor *output_of(const struct call *c)
{
    return c->direction == DGRAD ? c->x : c->direction == WGRAD ? c->w : c->y;
}

static const void *scalar(cudnnDataType_t dtype, double value, double *storage)
{
    if (dtype == CUDNN_DATA_DOUBLE) *storage = value;
    else *(float *)storage = (float)value;
    return storage;
}

static cudnnStatus_t run(void *context)
{
    struct call *c = context;
    double s[2];
    cudnnDataType_t dtype = output_of(c)->dtype;
    const void *alpha = scalar(dtype, c->alpha, s);
    const void *beta = scalar(dtype, c->beta, s + 1);
    void *workspace = c->workspace ? c->workspace->data : NULL;
    size_t bytes = c->workspace ? (size_t)c->workspace->bytes : 0;
    switch (c->direction) {
    case FPROP:
        return cudnnConvolutionForward(harness_handle, alpha, c->x->desc, c->x->data, c->filter,
                                       c->w->data, c->conv,
                                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace,
                                       bytes, beta, c->y->desc, c->y->data);
    case DGRAD:
        return cudnnConvolutionBackwardData(
            harness_handle, alpha, c->filter, c->w->data, c->y->desc, c->y->data, c->conv,
            CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, workspace, bytes, beta, c->x->desc, c->x->data);
    case WGRAD:
        return cudnnConvolutionBackwardFilter(
            harness_handle, alpha, c->x->desc, c->x->data, c->y->desc, c->y->data, c->conv,
            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace, bytes, beta, c->filter, c->w->data);
    default:
        return cudnnConvolutionBiasActivationForward(
            harness_handle, alpha, c->x->desc, c->x->data, c->filter, c->w->data, c->conv,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace, bytes, beta, c->z->desc,
            c->z->data, c->b->desc, c->b->data, c->activation, c->y->desc, c->y->data);
    }
}

static size_t workspace_of(const struct call *c, cudnnTensorDescriptor_t x,
                           cudnnTensorDescriptor_t y)
{
    size_t bytes = 0;
    cudnnStatus_t status;
    if (c->direction == DGRAD) {
        status = cudnnGetConvolutionBackwardDataWorkspaceSize(
            harness_handle, c->filter, y, c->conv, x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, &bytes);
    } else if (c->direction == WGRAD) {
        status = cudnnGetConvolutionBackwardFilterWorkspaceSize(
            harness_handle, x, y, c->conv, c->filter, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &bytes);
    } else {
        status = cudnnGetConvolutionForwardWorkspaceSize(
            harness_handle, x, c->filter, c->conv, y,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) case_fail("the workspace query is refused");
    if (bytes > WORKSPACE_MAX) case_fail("the workspace takes %zu bytes", bytes);
    return bytes;
}

static void set_descriptors(struct call *c, cudnnDataType_t dtype, enum layout filter_layout)
{
    const int w[4] = {c->s.filters, c->s.channels / c->s.groups, c->s.filter[0], c->s.filter[1]};
    set_output(c);
    cudnnCreateConvolutionDescriptor(&c->conv);
    cudnnCreateFilterDescriptor(&c->filter);
    cudnnSetConvolutionNdDescriptor(c->conv, 2, c->s.pad, c->s.stride, c->s.dilation, c->mode,
                                    dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                                               : CUDNN_DATA_FLOAT);
    cudnnSetConvolutionGroupCount(c->conv, c->s.groups);
    cudnnSetFilterNdDescriptor(c->filter, dtype,
                               filter_layout == LAYOUT_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                               4, w);
}

static void tear_down(struct call *c)
{
    cudnnDestroyConvolutionDescriptor(c->conv);
    cudnnDestroyFilterDescriptor(c->filter);
    if (c->activation) cudnnDestroyActivationDescriptor(c->activation);
    case_end();
}

static struct tensor *make(bool output, cudnnDataType_t dtype, const int *dim, enum layout layout)
{
    return output ? tensor_inout(dtype, 4, dim, layout, -1.0, 1.0)
                  : tensor_input(dtype, 4, dim, layout, -1.0, 1.0);
}

/* Sets the tensors up, runs, judges. */
static void run_and_check(struct call *c, cudnnDataType_t dtype, const enum layout *layout)
{
    const int x[4] = {c->s.batch, c->s.channels, c->s.image[0], c->s.image[1]};
    const int w[4] = {c->s.filters, c->s.channels / c->s.groups, c->s.filter[0], c->s.filter[1]};
    const int b[4] = {1, c->s.filters, 1, 1};
    int y[4];
    struct tensor *out;
    double *exact;
    double *magnitude;
    size_t bytes;
    int64_t points;
    set_descriptors(c, dtype, layout[1]);
    y[0] = c->s.batch;
    y[1] = c->s.filters;
    y[2] = c->output[0];
    y[3] = c->output[1];
    points = (int64_t)y[2] * y[3];
    c->x = make(c->direction == DGRAD, dtype, x, layout[0]);
    c->w = make(c->direction == WGRAD, dtype, w, layout[1]);
    c->y = make(c->direction == FPROP || c->direction == FUSED, dtype, y, layout[2]);
    if (c->direction == FUSED) {
        cudnnCreateActivationDescriptor(&c->activation);
        cudnnSetActivationDescriptor(c->activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN,
                                     0.0);
        c->b = make(false, dtype, b, LAYOUT_NCHW);
        c->z = random_chance(0.5) ? c->y : make(false, dtype, y, (enum layout)random_of(0, 1, 2));
    }
    out = output_of(c);
    exact = calloc((size_t)out->count, sizeof *exact);
    magnitude = calloc((size_t)out->count, sizeof *magnitude);
    bytes = workspace_of(c, c->x->desc, c->y->desc);
    if (bytes > 0) c->workspace = tensor_bytes((int64_t)bytes);
    add_products(c, exact, magnitude);
    for (int64_t i = 0; i < out->count; ++i) {
        double other = c->beta != 0.0 ? c->beta * (c->z ? c->z : out)->value[i] : 0.0;
        double bias = c->b ? c->b->value[i / points % c->s.filters] : 0.0;
        exact[i] = c->alpha * exact[i] + other + bias;
        magnitude[i] = fabs(c->alpha) * magnitude[i] + fabs(other) + fabs(bias);
        if (c->activation && exact[i] < 0.0) exact[i] = 0.0;
    }
    if (run_call(run, c)) {
        check_values(direction_name[c->direction], out, exact, NULL, magnitude,
                     dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
}

static void shape_case(const struct shape *shape, enum direction direction, cudnnDataType_t dtype,
                       enum layout layout)
{
    struct call c = {.direction = direction, .s = *shape, .alpha = 1.0};
    enum layout layouts[3] = {layout, layout, layout};
    bool one = shape->groups > 1 && shape->channels == shape->groups && dtype == CUDNN_DATA_FLOAT;
    bool multiplier = shape->filters > shape->groups;
    char wanted[64];
    if (shape->directions && (!(shape->directions >> direction & 1) || layout == LAYOUT_NHWC))
        return;
    if (!case_begin("%s %s type %d layout %d", direction_name[direction], shape->name, (int)dtype,
                    (int)layout)) {
        return;
    }
    c.mode = random_chance(0.3) ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    if (layout == LAYOUT_GAPS) { /* and all layouts mixed, and scalars */
        for (int i = 0; i < 3; ++i) layouts[i] = (enum layout)random_of(0, 1, 2);
        if (layouts[1] == LAYOUT_GAPS) layouts[1] = LAYOUT_NCHW; /* filters are packed */
        c.alpha = random_of(0, 1, 3, -5) * 0.5;
        c.beta = random_of(0, 1, 2, -3) * 0.5;
    }
    run_and_check(&c, dtype, layouts);
    snprintf(wanted, sizeof wanted, "conv_%s_%s", direction_name[direction],
             one && !(multiplier && layout == LAYOUT_NHWC) ? "depthwise" : "gemm");
    count_engine(layout == LAYOUT_GAPS ? NULL : wanted);
    tear_down(&c);
}

static void random_case(enum direction direction, int turn)
{
    struct call c = {.direction = direction};
    enum layout layouts[3];
    cudnnDataType_t dtype;
    struct shape *s = &c.s;
    if (!case_begin("%s random %d", direction_name[direction], turn)) return;
    dtype = (cudnnDataType_t)random_of(CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                       CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16);
    s->batch = (int)random_int(1, 9);
    s->groups = random_of(1, 1, 1, 2, 5);
    s->channels = s->groups * (int)random_int(1, 40 / s->groups);
    s->filters = s->groups * (int)random_int(1, 40 / s->groups);
    for (int d = 0; d < 2; ++d) {
        s->filter[d] = random_of(1, 2, 3, 3, 5);
        s->dilation[d] = random_of(1, 1, 1, 2, 3);
        s->stride[d] = random_of(1, 1, 2, 3);
        s->pad[d] = random_of(0, 1, 2, 7);
        s->image[d] = (s->filter[d] - 1) * s->dilation[d] + (int)random_int(1, 30);
    }
    c.mode = random_chance(0.3) ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    for (int i = 0; i < 3; ++i) layouts[i] = (enum layout)random_of(0, 1, 2);
    if (layouts[1] == LAYOUT_GAPS) layouts[1] = LAYOUT_NHWC;
    c.alpha = random_of(0, 2, 2, 1, -3) * 0.5;
    c.beta = random_of(0, 0, 2, 1, -3) * 0.5;
    run_and_check(&c, dtype, layouts);
    count_engine(NULL);
    tear_down(&c);
}

/* --- Bias gradients ----------------------------------------------------------------------------- */

struct bias {
    struct tensor *y, *b;
    double alpha, beta;
};

static cudnnStatus_t run_bias(void *context)
{
    struct bias *c = context;
    double s[2];
    return cudnnConvolutionBackwardBias(harness_handle, scalar(c->y->dtype, c->alpha, s),
                                        c->y->desc, c->y->data, scalar(c->y->dtype, c->beta, s + 1),
                                        c->b->desc, c->b->data);
}

static void bias_case(cudnnDataType_t dtype, enum layout layout, int turn)
{
    struct bias c = {.alpha = random_of(1, 2, -3) * 0.5, .beta = random_of(0, 1, 2) * 0.5};
    int dim[5] = {(int)random_int(1, 5), (int)random_int(1, 300), (int)random_int(1, 33),
                  (int)random_int(1, 70), (int)random_int(1, 3)};
    int rank = random_of(4, 5);
    int bias[5] = {1, dim[1], 1, 1, 1};
    double *exact;
    double *magnitude;
    int64_t points;
    if (!case_begin("bias type %d layout %d turn %d", (int)dtype, (int)layout, turn)) return;
    c.y = tensor_input(dtype, rank, dim, layout, -1.0, 1.0);
    c.b = tensor_inout(dtype, rank, bias, LAYOUT_NCHW, -1.0, 1.0);
    exact = calloc((size_t)c.b->count, sizeof *exact);
    magnitude = calloc((size_t)c.b->count, sizeof *magnitude);
    points = c.y->count / dim[0] / dim[1];
    for (int64_t i = 0; i < c.y->count; ++i) {
        exact[i / points % dim[1]] += c.alpha * c.y->value[i];
        magnitude[i / points % dim[1]] += fabs(c.alpha * c.y->value[i]);
    }
    for (int64_t i = 0; i < c.b->count; ++i) {
        exact[i] += c.beta * c.b->value[i];
        magnitude[i] += fabs(c.beta * c.b->value[i]);
    }
    if (run_call(run_bias, &c)) {
        check_values("db", c.b, exact, NULL, magnitude,
                     dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    count_engine("bias_grad_rows");
    free(exact);
    free(magnitude);
    case_end();
}

/* --- Bounds and manners ------------------------------------------------------------------------- */

/* Workspaces of convolutions that no machine here could run. */
static void workspace_case(const struct shape *shape, enum direction direction,
                           cudnnDataType_t dtype, enum layout layout)
{
    struct call c = {.direction = direction, .s = *shape, .mode = CUDNN_CROSS_CORRELATION};
    cudnnTensorDescriptor_t x;
    cudnnTensorDescriptor_t y;
    cudnnTensorFormat_t format = layout == LAYOUT_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    if (!case_begin("workspace %s %s type %d layout %d", direction_name[direction], shape->name,
                    (int)dtype, (int)layout)) {
        return;
    }
    set_descriptors(&c, dtype, layout);
    cudnnCreateTensorDescriptor(&x);
    cudnnCreateTensorDescriptor(&y);
    cudnnSetTensor4dDescriptor(x, format, dtype, c.s.batch, c.s.channels, c.s.image[0],
                               c.s.image[1]);
    cudnnSetTensor4dDescriptor(y, format, dtype, c.s.batch, c.s.filters, c.output[0], c.output[1]);
    workspace_of(&c, x, y);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroyTensorDescriptor(y);
    tear_down(&c);
}

static void threads_case(void)
{
    struct call c = {.direction = FPROP, .s = shapes[0], .alpha = 1.0};
    const enum layout layouts[3] = {LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NCHW};
    void (*set_threads)(int);
    int (*get_threads)(void);
    void *library;
    void *symbol;
    if (!case_begin("the program's BLAS threads stay")) return;
    library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (!library) {
        case_fail("the module has not opened libopenblas.so.0");
        case_end();
        return;
    }
    symbol = dlsym(library, "openblas_set_num_threads");
    memcpy(&set_threads, &symbol, sizeof symbol);
    symbol = dlsym(library, "openblas_get_num_threads");
    memcpy(&get_threads, &symbol, sizeof symbol);
    for (int threads = 1; threads <= 2; ++threads) {
        int before;
        set_threads(threads);
        before = get_threads();
        run_and_check(&c, CUDNN_DATA_FLOAT, layouts);
        if (get_threads() != before) case_fail("%d became %d", before, get_threads());
        cudnnDestroyConvolutionDescriptor(c.conv);
        cudnnDestroyFilterDescriptor(c.filter);
    }
    dlclose(library);
    case_end();
}

/* --- The runs ----------------------------------------------------------------------------------- */

static int run_cases(int argc, char **argv)
{
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                            CUDNN_DATA_BFLOAT16};
    bool quick = getenv("WARPDNN_TEST_QUICK") != NULL;
    harness_start(argc, argv);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; ++s) {
        for (int d = 0; d < DIRECTIONS; ++d) {
            for (int layout = LAYOUT_NCHW; layout <= LAYOUT_GAPS; ++layout) {
                if (quick && (d == FUSED || shapes[s].directions) && layout != LAYOUT_NCHW)
                    continue;
                shape_case(&shapes[s], (enum direction)d, CUDNN_DATA_FLOAT, (enum layout)layout);
            }
            if (quick && !shapes[s].directions) continue;
            shape_case(&shapes[s], (enum direction)d, types[1 + (s + (size_t)d) % 3],
                       shapes[s].directions ? LAYOUT_NCHW : (enum layout)(s % 2));
        }
    }
    for (int turn = 0; turn < (quick ? 5 : 40); ++turn) {
        for (int d = 0; d < DIRECTIONS; ++d) random_case((enum direction)d, turn);
    }
    for (int turn = 0; turn < 4; ++turn) {
        for (int t = 0; t < 4; ++t) bias_case(types[t], (enum layout)(turn % 3), turn);
    }
    for (size_t s = 0; s < sizeof large / sizeof large[0]; ++s) {
        for (int d = 0; d < FUSED; ++d) {
            for (int t = 0; t < 3; ++t) {
                workspace_case(&large[s], (enum direction)d, types[t], LAYOUT_NCHW);
                workspace_case(&large[s], (enum direction)d, types[t], LAYOUT_NHWC);
            }
        }
    }
    threads_case();
    if (argc == 1) check_reached();
    return harness_finish();
}

int main(int argc, char **argv)
{
    if (cpu_runs_in_thread_sanitizer()) return cpu_runs_skipped("threads_test is for it");
    return cpu_runs(argc, argv, false, run_cases);
}
