/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast CPU engine of reduce: shapes that take every way through it (short rows, long rows in
 * segments, columns narrow, wide and in blocks, batches before and behind), at random, in every type,
 * operator and layout. What is picked must be the same bits and the same index as a plain loop picks;
 * sums and products are judged against long double. What it declines; and digests of large calls with
 * 1, 2 and 64 threads and, for what is picked, of the definition: the module is left out of that run.
 *
 * Without arguments the program runs itself once for each number of threads and adds up. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_runs.h"
#include "support/harness.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { OPS = 9 };
static const char *const op_names[OPS] = {"add", "mul",   "min",   "max",         "amax",
                                          "avg", "norm1", "norm2", "mul_no_zeros"};

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16};
static const char *const type_names[] = {"f32", "f64", "f16", "bf16"};

/* Dims, and as a mask those that are reduced. */
static const struct {
    int dim[4];
    unsigned reduced;
} shapes[] = {
    {{300, 7, 3, 1}, 4 | 8},    {{41, 5, 7, 7}, 4 | 8},      {{129, 1, 10, 10}, 4 | 8},
    {{3, 7, 33, 35}, 4 | 8},    {{2, 3, 130, 131}, 15},      {{5, 3, 61, 67}, 1 | 4 | 8},
    {{33, 5, 7, 7}, 1 | 4 | 8}, {{16, 70, 9, 5}, 2},         {{3, 600, 11, 53}, 2},
    {{900, 33, 1, 1}, 1},       {{70, 2, 3, 1}, 1},          {{700, 1100, 1, 1}, 1},
    {{9, 3, 40, 64}, 1},        {{2, 40, 31, 3}, 4},         {{1, 1, 1, 1}, 15},
    {{5, 6, 7, 8}, 0},          {{1, 1, 1, 70001}, 15},      {{2, 70001, 1, 3}, 2},
    {{64, 64, 30, 30}, 4 | 8},  {{3, 5, 17, 16}, 2 | 4 | 8},
};

struct reduction {
    int op;
    int nan;
    int dtype;
    bool indexed;
    int width;
    double alpha, beta;
    struct tensor *a, *c, *workspace, *index;
    cudnnReduceTensorDescriptor_t desc;
    size_t index_bytes;
};

static bool picks(int op)
{
    return op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX ||
           op == CUDNN_REDUCE_TENSOR_AMAX;
}

static bool multiplies(int op)
{
    return op == CUDNN_REDUCE_TENSOR_MUL || op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
}

static cudnnStatus_t call(void *context)
{
    const struct reduction *r = context;
    bool wide = r->c->dtype == CUDNN_DATA_DOUBLE;
    float single[2] = {(float)r->alpha, (float)r->beta};
    return cudnnReduceTensor(harness_handle, r->desc, r->index ? r->index->data : NULL,
                             r->index_bytes, r->workspace ? r->workspace->data : NULL,
                             r->workspace ? (size_t)r->workspace->bytes : 0,
                             wide ? (const void *)&r->alpha : &single[0], r->a->desc, r->a->data,
                             wide ? (const void *)&r->beta : &single[1], r->c->desc, r->c->data);
}

/* What has been seen of one element of C. */
struct answer {
    long double sum, magnitude, product;
    double best;
    int64_t index; /* -1: nothing seen */
    int64_t terms;
};

static void see(const struct reduction *r, struct answer *answer, double x)
{
    long double v = x;
    int64_t i = answer->terms++;
    double own = r->op == CUDNN_REDUCE_TENSOR_AMAX ? fabs(x) : x;
    bool wins = r->op == CUDNN_REDUCE_TENSOR_MIN ? own < answer->best : own > answer->best;
    if (r->op == CUDNN_REDUCE_TENSOR_NORM1) v = fabsl(v);
    if (r->op == CUDNN_REDUCE_TENSOR_NORM2) v *= v;
    if (r->op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS && x == 0.0) v = 1;
    answer->sum += v;
    answer->magnitude += fabsl(v);
    answer->product *= v;
    if (answer->index < 0) wins = true;
    else if (isnan(answer->best)) wins = !r->nan && !isnan(own);
    else if (isnan(own)) wins = r->nan;
    if (!wins) return;
    answer->best = own;
    answer->index = i;
}

static double value_of(const struct reduction *r, const struct answer *answer, double *size)
{
    double n = (double)answer->terms;
    *size = 0.0;
    if (picks(r->op)) return answer->best;
    if (multiplies(r->op)) {
        *size = (double)fabsl(answer->product) * (1 + n / 8);
        return (double)answer->product;
    }
    if (r->op == CUDNN_REDUCE_TENSOR_NORM2) {
        *size = (double)sqrtl(answer->sum);
        return *size;
    }
    if (r->op != CUDNN_REDUCE_TENSOR_AVG) n = 1.0;
    *size = (double)(answer->magnitude / n);
    return (double)(answer->sum / n);
}

static void check_indices(const struct reduction *r, const struct answer *answers)
{
    int width = r->width == CUDNN_64BIT_INDICES ? 8 : r->width == CUDNN_16BIT_INDICES ? 2 : 4;
    unsigned char *bytes = malloc(r->index_bytes);
    warpdnnMemcpy(harness_handle, bytes, r->index->data, r->index_bytes);
    for (int64_t i = 0; i < r->c->count && !case_failed(); ++i) {
        uint64_t got = 0;
        memcpy(&got, bytes + i * width, (size_t)width);
        if (got != (uint64_t)answers[i].index) {
            case_fail("index[%lld] is %llu, not %lld", (long long)i, (unsigned long long)got,
                      (long long)answers[i].index);
        }
    }
    free(bytes);
}

static void judge(const struct reduction *r, const double *old)
{
    size_t count = (size_t)r->c->count;
    struct answer *answers = calloc(count, sizeof *answers);
    double *exact = calloc(count, sizeof *exact);
    double *size = calloc(count, sizeof *size);
    for (size_t i = 0; i < count; ++i) answers[i] = (struct answer){0, 0, 1, 0, -1, 0};
    for (int64_t i = 0; i < r->a->count; ++i) {
        int at[8];
        coordinates(r->a, i, at);
        for (int d = 0; d < r->a->rank; ++d)
            if (r->c->dim[d] == 1) at[d] = 0;
        see(r, &answers[logical_index(r->c, at)], r->a->value[i]);
    }
    for (size_t i = 0; i < count; ++i) {
        double rest = r->beta == 0.0 ? 0.0 : r->beta * old[i];
        exact[i] = r->alpha * value_of(r, &answers[i], &size[i]) + rest;
        size[i] = fabs(r->alpha) * size[i] + fabs(exact[i] - rest) + fabs(rest);
    }
    check_values("C", r->c, exact, NULL, size,
                 r->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    if (r->index) check_indices(r, answers);
    free(answers), free(exact), free(size);
}

static void run_case(struct reduction *r, const char *engine)
{
    double *old = malloc((size_t)r->c->count * sizeof *old);
    size_t bytes = 0;
    const char *name = "";
    memcpy(old, r->c->value, (size_t)r->c->count * sizeof *old);
    cudnnCreateReduceTensorDescriptor(&r->desc);
    cudnnSetReduceTensorDescriptor(
        r->desc, (cudnnReduceTensorOp_t)r->op,
        r->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
        (cudnnNanPropagation_t)r->nan,
        r->indexed ? CUDNN_REDUCE_TENSOR_FLATTENED_INDICES : CUDNN_REDUCE_TENSOR_NO_INDICES,
        (cudnnIndicesType_t)r->width);
    cudnnGetReductionWorkspaceSize(harness_handle, r->desc, r->a->desc, r->c->desc, &bytes);
    cudnnGetReductionIndicesSize(harness_handle, r->desc, r->a->desc, r->c->desc, &r->index_bytes);
    if (bytes > (size_t)8 << 20) case_fail("%zu bytes of workspace", bytes);
    if (bytes > 0) r->workspace = tensor_bytes((int64_t)bytes);
    if (r->index_bytes > 0) r->index = tensor_bytes((int64_t)r->index_bytes);
    if (run_call(call, r)) {
        warpdnnGetLastEngine(harness_handle, &name);
        if (engine && strcmp(name, engine) != 0) case_fail("%s ran, not %s", name, engine);
        judge(r, old);
    }
    cudnnDestroyReduceTensorDescriptor(r->desc);
    free(old);
    case_end();
}

static void fill(struct reduction *r, bool hard)
{
    for (int64_t i = 0; hard && i < r->a->count; ++i) {
        double v = (double)random_int(-3, 3);
        if (random_chance(0.01)) v = random_of(0, 1) ? NAN : -INFINITY;
        if (multiplies(r->op)) v = random_of(0, 1, 1, 1) ? 1.25 : -0.75;
        if (!picks(r->op) && !isfinite(v)) v = 2.0;
        r->a->value[i] = tensor_round(r->a->dtype, v);
    }
    if (hard) tensor_write(r->a);
}

static void random_cases(void)
{
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int run = 0; run < OPS * COUNT(types); ++run) {
            int op = run % OPS;
            int type = run / OPS;
            bool hard;
            bool blended;
            int64_t terms = 1;
            int dim[4];
            enum layout layout;
            struct reduction r = {.op = op, .dtype = (int)types[type], .alpha = 1.0};
            if (!case_begin("shape%d/%s/%s", s, op_names[op], type_names[type])) continue;
            for (int d = 0; d < 4; ++d) {
                dim[d] = shapes[s].reduced >> d & 1 ? 1 : shapes[s].dim[d];
                terms *= shapes[s].dim[d] / dim[d];
            }
            hard = random_chance(0.5);
            blended = random_chance(0.3);
            r.nan = random_of(0, 1);
            r.indexed = picks(op) && random_chance(0.7);
            r.width = terms < 60000
                          ? random_of(CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES, CUDNN_16BIT_INDICES)
                          : random_of(CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES);
            if (blended) r.alpha = -1.5, r.beta = 0.5;
            layout = r.indexed || random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
            r.a = multiplies(op) ? tensor_input(types[type], 4, shapes[s].dim, layout, 0.9, 1.1)
                                 : tensor_input(types[type], 4, shapes[s].dim, layout, -1.0, 1.0);
            fill(&r, hard && !(multiplies(op) && terms > 400));
            r.c = tensor_inout(types[type], 4, dim,
                               (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS), -2.0,
                               2.0);
            run_case(&r, layout == LAYOUT_NCHW ? "reduce_cpu" : NULL);
        }
    }
}

/* All NaN, the largest at either end, an infinity that ties with nothing seen. */
static void edge_cases(void)
{
    for (int op = 0; op < OPS; ++op) {
        for (int run = 0; run < 2 * 2 * 4; ++run) {
            static const int dims[2][4] = {{3, 2, 1, 90}, {700, 3, 1, 1}};
            static const int outs[2][4] = {{3, 2, 1, 1}, {1, 3, 1, 1}};
            int columns = run & 1;
            int what = run / 4;
            struct reduction r = {.op = op,
                                  .dtype = CUDNN_DATA_FLOAT,
                                  .nan = run / 2 % 2,
                                  .indexed = true,
                                  .alpha = 1.0};
            if (!picks(op)) break;
            if (!case_begin("edge/%s/%d", op_names[op], run)) continue;
            r.a = tensor_input(CUDNN_DATA_FLOAT, 4, dims[columns], LAYOUT_NCHW, 0.1, 0.9);
            for (int64_t i = 0; i < r.a->count; ++i) {
                double least = op == CUDNN_REDUCE_TENSOR_MIN ? INFINITY : -INFINITY;
                if (what == 0) r.a->value[i] = NAN;
                if (what == 1) r.a->value[i] = least;
                if (what == 2) r.a->value[i] = i % 7 ? NAN : least;
                if (what == 3 && (i == 0 || i == r.a->count - 1)) r.a->value[i] = -least;
            }
            tensor_write(r.a);
            r.c = tensor_inout(CUDNN_DATA_FLOAT, 4, outs[columns], LAYOUT_NCHW, -1.0, 1.0);
            run_case(&r, "reduce_cpu");
        }
    }
}

static void declines(void)
{
    static const struct {
        const char *name;
        cudnnDataType_t dtype;
        int reduced[4];
        enum layout layout;
        bool indexed;
    } rows[] = {
        {"gaps", CUDNN_DATA_FLOAT, {1, 3, 1, 1}, LAYOUT_GAPS, false},
        {"bytes", CUDNN_DATA_INT8, {1, 3, 1, 1}, LAYOUT_NCHW, false},
        {"alternating", CUDNN_DATA_FLOAT, {1, 3, 1, 5}, LAYOUT_NCHW, false},
        {"indices in another order", CUDNN_DATA_FLOAT, {2, 1, 1, 1}, LAYOUT_NHWC, true},
    };
    for (int i = 0; i < COUNT(rows); ++i) {
        struct reduction r = {.op = CUDNN_REDUCE_TENSOR_MAX,
                              .dtype = CUDNN_DATA_FLOAT,
                              .indexed = rows[i].indexed,
                              .alpha = 1.0};
        if (!case_begin("declines/%s", rows[i].name)) continue;
        r.a = tensor_input(rows[i].dtype, 4, (const int[]){2, 3, 4, 5}, rows[i].layout, -9, 9);
        r.c = tensor_inout(CUDNN_DATA_FLOAT, 4, rows[i].reduced, LAYOUT_NCHW, -2, 2);
        run_case(&r, "reduce_def");
    }
}

/* ---- Digests of large calls, for the comparison between numbers of threads ---- */

static uint64_t digest(uint64_t so_far, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; ++i) so_far = (so_far ^ byte[i]) * UINT64_C(1099511628211);
    return so_far;
}

static uint64_t digest_call(int op, const int *dim, const int *out, bool nhwc, uint64_t so_far)
{
    static const float scalar[2] = {1.0F, 0.0F};
    cudnnTensorFormat_t format = nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    bool indexed = picks(op) && !nhwc;
    size_t count = (size_t)dim[0] * (size_t)dim[1] * (size_t)dim[2] * (size_t)dim[3];
    size_t outs = (size_t)out[0] * (size_t)out[1] * (size_t)out[2] * (size_t)out[3];
    float *x = calloc(count, sizeof *x);
    float *y = calloc(outs, sizeof *y);
    uint32_t *index = calloc(outs, sizeof *index);
    size_t bytes = 0;
    void *workspace;
    cudnnTensorDescriptor_t full;
    cudnnTensorDescriptor_t less;
    cudnnReduceTensorDescriptor_t desc;
    cudnnCreateTensorDescriptor(&full);
    cudnnCreateTensorDescriptor(&less);
    cudnnCreateReduceTensorDescriptor(&desc);
    cudnnSetTensor4dDescriptor(full, format, CUDNN_DATA_FLOAT, dim[0], dim[1], dim[2], dim[3]);
    cudnnSetTensor4dDescriptor(less, format, CUDNN_DATA_FLOAT, out[0], out[1], out[2], out[3]);
    cudnnSetReduceTensorDescriptor(
        desc, (cudnnReduceTensorOp_t)op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
        indexed ? CUDNN_REDUCE_TENSOR_FLATTENED_INDICES : CUDNN_REDUCE_TENSOR_NO_INDICES,
        CUDNN_32BIT_INDICES);
    for (size_t i = 0; i < count; ++i) x[i] = (float)random_int(-4000, 4000) * 0.001F;
    cudnnGetReductionWorkspaceSize(harness_handle, desc, full, less, &bytes);
    workspace = malloc(bytes + 1);
    if (cudnnReduceTensor(harness_handle, desc, indexed ? index : NULL,
                          indexed ? outs * sizeof *index : 0, workspace, bytes, &scalar[0], full, x,
                          &scalar[1], less, y) != CUDNN_STATUS_SUCCESS) {
        case_fail("operator %d is refused", op);
    }
    so_far = digest(so_far, y, outs * sizeof *y);
    so_far = digest(so_far, index, outs * sizeof *index);
    free(x), free(y), free(index), free(workspace);
    cudnnDestroyTensorDescriptor(full);
    cudnnDestroyTensorDescriptor(less);
    cudnnDestroyReduceTensorDescriptor(desc);
    return so_far;
}

/* Of what is picked, and of the rest. */
static void digests(void)
{
    static const int dims[][4] = {{8, 32, 60, 61}, {64, 700, 3, 3}, {2, 2, 300, 301}};
    uint64_t all[2] = {UINT64_C(14695981039346656037), UINT64_C(14695981039346656037)};
    if (!case_begin("digest")) return;
    for (int op = 0; op < OPS; ++op) {
        for (int d = 0; d < COUNT(dims); ++d) {
            for (int nhwc = 0; nhwc < 2; ++nhwc) {
                const int *dim = dims[d];
                const int point[4] = {1, 1, 1, 1};
                const int channel[4] = {1, dim[1], 1, 1};
                const int image[4] = {dim[0], dim[1], 1, 1};
                uint64_t *to = &all[!picks(op)];
                *to = digest_call(op, dim, point, nhwc, *to);
                *to = digest_call(op, dim, channel, nhwc, *to);
                *to = digest_call(op, dim, image, nhwc, *to);
            }
        }
    }
    printf("digest %016llx %016llx\n", (unsigned long long)all[0], (unsigned long long)all[1]);
    case_end();
}

/* ---- The runs ---- */

static int run_cases(int argc, char **argv)
{
    harness_start(argc, argv);
    if (!getenv("WARPDNN_TEST_QUICK")) {
        random_cases();
        edge_cases();
        declines();
    }
    digests();
    return harness_finish();
}

/* Runs this program with a number of threads, 0 being without the module, passes its output on and
 * adds its counts. */
static void run_self(const char *program, int threads, long *passed, long *failed, char (*said)[32])
{
    char command[1024];
    char line[4096] = "";
    long more[2] = {0, 0};
    FILE *output;
    snprintf(command, sizeof command, "%s %s WARPDNN_THREADS=%d '%s'",
             threads == 2 ? "" : "WARPDNN_TEST_QUICK=1",
             threads ? "" : "WARPDNN_CPU_MODULE=", threads ? threads : 1, program);
    printf("with %d threads:\n", threads);
    fflush(stdout);
    output = popen(command, "r");
    while (output && fgets(line, sizeof line, output)) {
        fputs(line, stdout);
        sscanf(line, "digest %31s %31s", said[0], said[1]);
    }
    if (sscanf(line, "%ld passed, %ld failed", &more[0], &more[1]) != 2) more[1] = 1;
    if (!output || (pclose(output) != 0 && more[1] == 0)) more[1] = 1;
    *passed += more[0];
    *failed += more[1];
}

int main(int argc, char **argv)
{
    static const int threads[] = {1, 2, 64, 0};
    char said[COUNT(threads)][2][32] = {{"none"}, {"none"}, {"none"}, {"none"}};
    const char *why = cpu_runs_nothing_to_test();
    long passed = 0;
    long failed = 0;
    if (argc > 1 || getenv("WARPDNN_THREADS")) return run_cases(argc, argv);
    if (why) return cpu_runs_skipped(why);
    unsetenv("WARPDNN_TEST_SAMPLE");
    for (int i = 0; i < COUNT(threads); ++i) {
        run_self(argv[0], threads[i], &passed, &failed, said[i]);
        for (int k = 0; k < (threads[i] ? 2 : 1); ++k) {
            if (i == 0 || strcmp(said[i][k], said[0][k]) == 0) continue;
            printf("FAIL: with %d threads digest %s, with one %s\n", threads[i], said[i][k],
                   said[0][k]);
            failed += 1;
        }
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed != 0;
}
