/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast CPU engines of pooling against the definition, bit for bit: the same calls, on data whose
 * sums are exact in any order, are made with the CPU module (1, 2 and 64 threads) and without it, and
 * all of their results have one digest. Random windows, paddings, strides, sizes, types and both
 * orders; ties, NaN, infinities and zeros of both signs; blends; pointers that are aligned to an
 * element only; what is declined. Values are judged by pooling_test.c, which reaches both as well.
 *
 * Without arguments the program runs itself once for each number of threads and adds up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_runs.h"
#include "support/harness.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8};
static const int type_bytes[] = {4, 8, 2, 2, 1};
static const char *const type_names[] = {"f32", "f64", "f16", "bf16", "int8"};

struct geometry {
    int rank;
    int x[8], y[8], window[6], pad[6], stride[6];
};

static const struct {
    const char *name;
    int rank;
    int x[5], window[3], pad[3], stride[3];
} shapes[] = {
    {"stem", 4, {2, 3, 33, 37}, {3, 3}, {1, 1}, {2, 2}},
    {"small", 4, {70, 5, 7, 7}, {3, 3}, {1, 1}, {2, 2}},
    {"tiny", 4, {40, 7, 4, 4}, {2, 2}, {0, 0}, {2, 2}},
    {"same", 4, {3, 20, 13, 13}, {3, 3}, {1, 1}, {1, 1}},
    {"pyramid", 4, {1, 18, 19, 20}, {13, 13}, {6, 6}, {1, 1}},
    {"global", 4, {3, 65, 7, 7}, {7, 7}, {0, 0}, {1, 1}},
    {"global_large", 4, {2, 3, 67, 71}, {67, 71}, {0, 0}, {67, 71}},
    {"pixels", 4, {2, 67, 9, 11}, {3, 2}, {1, 1}, {2, 3}},
    {"apart", 4, {2, 3, 61, 64}, {20, 21}, {0, 0}, {20, 21}},
    {"sparse", 4, {2, 19, 23, 29}, {2, 2}, {0, 0}, {5, 7}},
    {"wide", 4, {1, 2, 5, 5003}, {3, 5}, {1, 2}, {1, 2}},
    {"line", 3, {3, 5, 4099}, {5}, {2}, {3}},
    {"long_line", 3, {1, 1, 9001}, {2500}, {100}, {7}},
    {"volume", 5, {2, 17, 7, 9, 8}, {3, 3, 3}, {1, 1, 1}, {2, 2, 2}},
    {"frames", 5, {2, 3, 5, 12, 12}, {1, 2, 2}, {0, 0, 0}, {1, 2, 2}},
    {"times", 5, {2, 3, 9, 6, 5}, {4, 1, 1}, {2, 0, 0}, {2, 1, 1}},
    {"channels", 4, {1, 2100, 3, 5}, {3, 3}, {1, 1}, {1, 1}},
    {"halves", 4, {3, 5, 31, 50}, {2, 2}, {0, 0}, {2, 2}},
    {"halves_padded", 4, {2, 9, 30, 47}, {2, 2}, {1, 1}, {2, 2}},
    {"pairs", 4, {2, 3, 9, 70}, {2, 2}, {1, 0}, {1, 1}},
    {"far_padded", 4, {2, 3, 29, 65}, {3, 3}, {2, 2}, {2, 2}},
    {"rows_apart", 4, {2, 3, 29, 65}, {3, 3}, {1, 1}, {5, 1}},
    {"rows_close", 4, {2, 3, 14, 33}, {3, 3}, {0, 1}, {1, 2}},
    {"planes", 4, {9, 40, 28, 28}, {3, 3}, {1, 1}, {1, 1}},
    {"cropped", 4, {2, 18, 15, 16}, {3, 3}, {-2, -3}, {2, 1}},
};

/* ---- Buffers: exactly as long as the tensor, some beginning at an odd element ---- */

enum { GUARD = 64 };

struct buffer {
    unsigned char *block;
    unsigned char *data;
    size_t bytes;
};

static struct buffer buffer_new(int64_t count, int type)
{
    struct buffer b;
    size_t odd = (size_t)(random_int(0, 3) * type_bytes[type]);
    b.bytes = (size_t)(count * type_bytes[type]);
    b.block = malloc(GUARD + odd + b.bytes);
    memset(b.block, 0xa5, GUARD + odd);
    b.data = b.block + GUARD + odd;
    return b;
}

static void put(struct buffer *b, int type, int64_t i, double value)
{
    float single = (float)value;
    uint32_t bits;
    uint16_t half;
    int8_t byte;
    memcpy(&bits, &single, sizeof bits);
    switch (types[type]) {
    case CUDNN_DATA_FLOAT: memcpy(b->data + i * 4, &single, 4); return;
    case CUDNN_DATA_DOUBLE: memcpy(b->data + i * 8, &value, 8); return;
    case CUDNN_DATA_BFLOAT16:
        half = (uint16_t)(bits >> 16);
        memcpy(b->data + i * 2, &half, 2);
        return;
    case CUDNN_DATA_HALF: /* for values that are small integers, zeros, infinities and NaN */
        half = (uint16_t)(bits >> 16 & 0x8000u);
        if (isnan(value)) half |= 0x7e00u;
        else if (isinf(value)) half |= 0x7c00u;
        else if (single != 0.0F)
            half |= (uint16_t)(((bits >> 13 & 0x3ffffu) - (112u << 10)) & 0x7fffu);
        memcpy(b->data + i * 2, &half, 2);
        return;
    default:
        byte = (int8_t)value;
        memcpy(b->data + i, &byte, 1);
        return;
    }
}

static void check_guard(const struct buffer *b)
{
    for (const unsigned char *p = b->block; p < b->data; ++p) {
        if (*p != 0xa5) case_fail("a byte %d before the output has changed", (int)(b->data - p));
    }
}

static uint64_t digest(uint64_t so_far, const struct buffer *b)
{
    for (size_t i = 0; i < b->bytes; ++i) {
        so_far = (so_far ^ b->data[i]) * UINT64_C(1099511628211);
    }
    return so_far;
}

/* ---- Calls ---- */

static bool with_module(void)
{
    const char *module = getenv("WARPDNN_CPU_MODULE");
    return !module || *module;
}

static void expect_engine(const char *wanted)
{
    const char *name = "";
    char full[64];
    snprintf(full, sizeof full, "%s_%s", wanted, with_module() ? "cpu" : "def");
    warpdnnGetLastEngine(harness_handle, &name);
    if (strcmp(name, full) != 0) case_fail("%s ran, not %s", name, full);
}

static void fine(const char *what, cudnnStatus_t status)
{
    if (status != CUDNN_STATUS_SUCCESS) case_fail("%s answers %d", what, (int)status);
}

static cudnnTensorDescriptor_t describe(cudnnDataType_t type, int rank, const int *dim, bool nhwc)
{
    cudnnTensorDescriptor_t t;
    int stride[8];
    int next = nhwc ? dim[1] : 1;
    cudnnCreateTensorDescriptor(&t);
    for (int d = rank - 1; d >= (nhwc ? 2 : 1); --d) {
        stride[d] = next;
        next *= dim[d];
    }
    if (nhwc) stride[1] = 1;
    stride[0] = next;
    fine("the descriptor", cudnnSetTensorNdDescriptor(t, type, rank, dim, stride));
    return t;
}

static double value_of(int type, bool max, bool nan)
{
    if (max && nan && types[type] != CUDNN_DATA_INT8 && random_chance(0.3)) {
        return (const double[]){NAN, -INFINITY, INFINITY, -INFINITY}[random_int(0, 3)];
    }
    if (random_chance(0.2)) return random_chance(0.5) ? 0.0 : -0.0;
    return (double)random_int(-7, 7);
}

/* Sums of integers, and of integers over the sizes of windows, are exact. */
static uint64_t run(const struct geometry *g, int type, int mode, bool nhwc, bool nan, bool blend,
                    uint64_t so_far)
{
    const bool max = mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC;
    const bool wide = types[type] == CUDNN_DATA_DOUBLE;
    const double factor[2] = {blend ? -1.5 : 1.0, blend ? 0.5 : 0.0};
    const float single[2] = {(float)factor[0], (float)factor[1]};
    const void *alpha = wide ? (const void *)&factor[0] : &single[0];
    const void *beta = wide ? (const void *)&factor[1] : &single[1];
    int64_t images = 1;
    int64_t pooled = 1;
    struct buffer x, y, dy, dx;
    cudnnPoolingDescriptor_t pooling;
    cudnnTensorDescriptor_t full = describe(types[type], g->rank, g->x, nhwc);
    cudnnTensorDescriptor_t small = describe(types[type], g->rank, g->y, nhwc);
    for (int d = 0; d < g->rank; ++d) {
        images *= g->x[d];
        pooled *= g->y[d];
    }
    cudnnCreatePoolingDescriptor(&pooling);
    fine("the pooling descriptor",
         cudnnSetPoolingNdDescriptor(pooling, (cudnnPoolingMode_t)mode,
                                     nan ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN,
                                     g->rank - 2, g->window, g->pad, g->stride));
    x = buffer_new(images, type);
    y = buffer_new(pooled, type);
    dy = buffer_new(pooled, type);
    dx = buffer_new(images, type);
    for (int64_t i = 0; i < images; ++i) {
        put(&x, type, i, value_of(type, max, random_chance(0.3)));
        put(&dx, type, i, (double)random_int(-7, 7));
    }
    for (int64_t i = 0; i < pooled; ++i) {
        put(&y, type, i, (double)random_int(-7, 7));
        /* of averages, over windows of up to 5 elements in each of three dimensions */
        put(&dy, type, i, (double)random_int(-7, 7) * (max ? 1.0 : 216000.0));
    }
    fine("forward",
         cudnnPoolingForward(harness_handle, pooling, alpha, full, x.data, beta, small, y.data));
    expect_engine("pool_forward");
    check_guard(&y);
    so_far = digest(so_far, &y);
    if (types[type] != CUDNN_DATA_INT8 && (max || type < 2)) {
        fine("backward", cudnnPoolingBackward(harness_handle, pooling, alpha, small, y.data, small,
                                              dy.data, full, x.data, beta, full, dx.data));
        expect_engine("pool_backward");
        check_guard(&dx);
        /* larger windows leave remainders */
        for (int d = 0; d < g->rank - 2 && !max; ++d) {
            if (g->window[d] > 5 || g->window[d] == 4) goto done;
        }
        so_far = digest(so_far, &dx);
    }
done:
    cudnnDestroyPoolingDescriptor(pooling);
    cudnnDestroyTensorDescriptor(full);
    cudnnDestroyTensorDescriptor(small);
    free(x.block), free(y.block), free(dy.block), free(dx.block);
    return so_far;
}

static void count_windows(struct geometry *g)
{
    for (int d = 0; d < 2; ++d) g->y[d] = g->x[d];
    for (int s = 0; s < g->rank - 2; ++s) {
        g->y[2 + s] = (g->x[2 + s] + 2 * g->pad[s] - g->window[s]) / g->stride[s] + 1;
    }
}

static uint64_t listed(uint64_t so_far)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        struct geometry g = {.rank = shapes[s].rank};
        memcpy(g.x, shapes[s].x, sizeof shapes[s].x);
        memcpy(g.window, shapes[s].window, sizeof shapes[s].window);
        memcpy(g.pad, shapes[s].pad, sizeof shapes[s].pad);
        memcpy(g.stride, shapes[s].stride, sizeof shapes[s].stride);
        count_windows(&g);
        for (int turn = 0; turn < COUNT(types) * 4 * 2; ++turn) {
            int type = turn % COUNT(types);
            int mode = turn / COUNT(types) % 4;
            bool nhwc = turn / COUNT(types) / 4;
            if (!case_begin("%s/%s/mode%d/%s", shapes[s].name, type_names[type], mode,
                            nhwc ? "nhwc" : "nchw")) {
                continue;
            }
            so_far = run(&g, type, mode, nhwc, (s + turn) % 2, false, so_far);
            case_end();
        }
    }
    return so_far;
}

static uint64_t random_shapes(int turns, uint64_t so_far)
{
    for (int turn = 0; turn < turns; ++turn) {
        struct geometry g;
        int type = turn % COUNT(types);
        int mode;
        if (!case_begin("random/%d", turn)) continue;
        memset(&g, 0, sizeof g);
        g.rank = random_of(3, 4, 4, 4, 5);
        mode = (int)random_int(0, 3);
        g.x[0] = (int)random_int(1, 5);
        g.x[1] = random_of(1, 2, 3, 7, 15, 16, 17, 31, 64, 65);
        for (int s = 0; s < g.rank - 2; ++s) {
            g.x[2 + s] = (int)random_int(1, g.rank == 3 ? 300 : g.rank == 4 ? 23 : 8);
            g.window[s] = random_of(1, 2, 3, 3, 5);
            g.pad[s] = (int)random_int(0, g.window[s] - 1);
            g.stride[s] = (int)random_int(1, 4);
            if (g.x[2 + s] + 2 * g.pad[s] < g.window[s]) g.x[2 + s] = g.window[s];
        }
        count_windows(&g);
        for (int s = 0; s < g.rank - 2; ++s) {
            /* callers may round up, or leave windows out */
            if (g.y[2 + s] * g.stride[s] < g.x[2 + s] + 2 * g.pad[s] && random_chance(0.2)) {
                g.y[2 + s] += 1;
            } else if (g.y[2 + s] > 1 && random_chance(0.2)) {
                g.y[2 + s] -= 1;
            }
        }
        so_far =
            run(&g, type, mode, random_chance(0.5), random_chance(0.5),
                mode != CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING && random_chance(0.3), so_far);
        case_end();
    }
    return so_far;
}

/* Outputs past the caches. */
static uint64_t large(uint64_t so_far)
{
    struct geometry g = {
        .rank = 4, .x = {8, 48, 100, 102}, .window = {3, 3}, .pad = {1, 1}, .stride = {1, 1}};
    count_windows(&g);
    for (int mode = 0; mode < 2 && with_module(); ++mode) {
        for (int nhwc = 0; nhwc < 2; ++nhwc) {
            if (!case_begin("large/mode%d/%s", mode, nhwc ? "nhwc" : "nchw")) continue;
            so_far = run(&g, 0, mode, nhwc, false, false, so_far);
            case_end();
        }
    }
    return so_far;
}

static void declines(void)
{
    const int dim[4] = {2, 3, 8, 8};
    const int half[4] = {2, 3, 4, 4};
    const int gaps[4] = {400, 100, 10, 1};
    const float one = 1.0F;
    const float zero = 0.0F;
    float *x = calloc(800, sizeof *x);
    float *y = calloc(96, sizeof *y);
    const char *name = "";
    cudnnPoolingDescriptor_t pooling;
    cudnnTensorDescriptor_t full;
    cudnnTensorDescriptor_t small;
    if (case_begin("gaps are the definition's")) {
        cudnnCreateTensorDescriptor(&full);
        cudnnCreatePoolingDescriptor(&pooling);
        small = describe(CUDNN_DATA_FLOAT, 4, half, false);
        fine("the descriptor", cudnnSetTensorNdDescriptor(full, CUDNN_DATA_FLOAT, 4, dim, gaps));
        cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2,
                                    2);
        fine("forward",
             cudnnPoolingForward(harness_handle, pooling, &one, full, x, &zero, small, y));
        warpdnnGetLastEngine(harness_handle, &name);
        if (strcmp(name, "pool_forward_def") != 0) case_fail("%s ran", name);
        cudnnDestroyPoolingDescriptor(pooling);
        cudnnDestroyTensorDescriptor(full);
        cudnnDestroyTensorDescriptor(small);
        case_end();
    }
    free(x), free(y);
}

/* ---- The runs ---- */

static int run_cases(int argc, char **argv)
{
    uint64_t all = UINT64_C(14695981039346656037);
    harness_start(argc, argv);
    all = listed(all);
    all = random_shapes(getenv("WARPDNN_TEST_QUICK") ? 60 : 600, all);
    printf("digest %016llx\n", (unsigned long long)all);
    printf("large %016llx\n", (unsigned long long)large(all));
    declines();
    return harness_finish();
}

/* Runs this program with a number of threads (0: without the module), passes its output on and adds
 * its counts. */
static void run_self(const char *program, int threads, long *passed, long *failed, char *said,
                     char *said_large)
{
    char command[1024];
    char line[4096] = "";
    long more[2] = {0, 0};
    FILE *output;
    snprintf(command, sizeof command, "%s WARPDNN_THREADS=%d '%s'",
             threads ? "" : "WARPDNN_CPU_MODULE=", threads ? threads : 2, program);
    if (threads) printf("with %d threads:\n", threads);
    else printf("by the definition:\n");
    fflush(stdout);
    output = popen(command, "r");
    while (output && fgets(line, sizeof line, output)) {
        fputs(line, stdout);
        sscanf(line, "digest %31s", said);
        sscanf(line, "large %31s", said_large);
    }
    if (sscanf(line, "%ld passed, %ld failed", &more[0], &more[1]) != 2) more[1] = 1;
    if (!output || (pclose(output) != 0 && more[1] == 0)) more[1] = 1;
    *passed += more[0];
    *failed += more[1];
}

int main(int argc, char **argv)
{
    static const int threads[] = {1, 2, 64, 0};
    char said[4][32] = {"none with 1", "none with 2", "none with 64", "none without"};
    char said_large[4][32] = {"none with 1", "none with 2", "none with 64", "none without"};
    const char *why;
    long passed = 0;
    long failed = 0;
    if (argc > 1 || getenv("WARPDNN_THREADS")) return run_cases(argc, argv);
    why = cpu_runs_nothing_to_test();
    if (why) return cpu_runs_skipped(why);
    unsetenv("WARPDNN_TEST_SAMPLE");
    for (int i = 0; i < COUNT(threads); ++i) {
        run_self(argv[0], threads[i], &passed, &failed, said[i], said_large[i]);
        if (strcmp(said[i], said[0]) != 0) {
            printf("FAIL: digest %s, with one thread %s\n", said[i], said[0]);
            failed += 1;
        }
        if (threads[i] && strcmp(said_large[i], said_large[0]) != 0) {
            printf("FAIL: digest of large calls %s, with one thread %s\n", said_large[i],
                   said_large[0]);
            failed += 1;
        }
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed != 0;
}
