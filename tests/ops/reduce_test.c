/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions against their definition in long double: every operator, any set of dims, types and
 * layouts, alpha and beta, NaN under both policies, indices of all four widths with ties, long rows
 * that take a second stage, workspace and indices of exactly the answered sizes. */
#include "support/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

typedef long double wide;

static const char *const op_names[] = {"add", "mul",   "min",   "max",         "amax",
                                       "avg", "norm1", "norm2", "mul_no_zeros"};

struct reduction {
    int op;
    int compute;
    int nan;
    int indices;
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

static const void *scalar(const struct reduction *r, double value, double *room)
{
    float single = (float)value;
    if (r->c->dtype == CUDNN_DATA_DOUBLE) *room = value;
    else memcpy(room, &single, sizeof single);
    return room;
}

static cudnnStatus_t call(void *context)
{
    const struct reduction *r = context;
    double alpha;
    double beta;
    return cudnnReduceTensor(
        harness_handle, r->desc, r->index ? r->index->data : NULL, r->index ? r->index_bytes : 0,
        r->workspace ? r->workspace->data : NULL, r->workspace ? (size_t)r->workspace->bytes : 0,
        scalar(r, r->alpha, &alpha), r->a->desc, r->a->data, scalar(r, r->beta, &beta), r->c->desc,
        r->c->data);
}

/* What the definition says of one element of C. */
struct answer {
    wide sum, magnitude, product, extreme;
    int64_t index; /* -1: nothing seen */
    int64_t terms;
};

static void see(const struct reduction *r, struct answer *answer, double x)
{
    wide v = x;
    int64_t i = answer->terms++;
    bool wins;
    switch (r->op) {
    case CUDNN_REDUCE_TENSOR_NORM1: v = fabsl(v); break;
    case CUDNN_REDUCE_TENSOR_NORM2: v *= v; break;
    case CUDNN_REDUCE_TENSOR_AMAX: v = fabsl(v); break;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: v = v == 0 ? 1 : v; break;
    default: break;
    }
    answer->sum += v;
    answer->magnitude += fabsl(v);
    answer->product *= v;
    wins = r->op == CUDNN_REDUCE_TENSOR_MIN ? v < answer->extreme : v > answer->extreme;
    if (answer->index < 0) wins = true;
    else if (isnan(answer->extreme)) wins = !r->nan && !isnan(v);
    else if (isnan(v)) wins = r->nan;
    if (!wins) return;
    answer->extreme = v;
    answer->index = i;
}

static double value_of(const struct reduction *r, const struct answer *answer, double *size)
{
    wide n = (wide)answer->terms;
    switch (r->op) {
    case CUDNN_REDUCE_TENSOR_ADD:
    case CUDNN_REDUCE_TENSOR_NORM1: *size = (double)answer->magnitude; return (double)answer->sum;
    case CUDNN_REDUCE_TENSOR_AVG:
        *size = (double)(answer->magnitude / n);
        return (double)(answer->sum / n);
    case CUDNN_REDUCE_TENSOR_NORM2: *size = (double)sqrtl(answer->sum); return *size;
    case CUDNN_REDUCE_TENSOR_MUL:
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
        /* each factor rounds once */
        *size = (double)(fabsl(answer->product) * (1 + n / 8));
        return (double)answer->product;
    default: *size = 0.0; return (double)answer->extreme;
    }
}

/* The indices as raw bytes of device memory, of which the harness has no typed view. */
static void check_indices(const struct reduction *r, const int64_t *want)
{
    unsigned char *bytes = malloc(r->index_bytes);
    int width = r->width == CUDNN_64BIT_INDICES   ? 8
                : r->width == CUDNN_16BIT_INDICES ? 2
                : r->width == CUDNN_8BIT_INDICES  ? 1
                                                  : 4;
    if (r->index_bytes != (size_t)r->c->count * (size_t)width) {
        case_fail("%zu bytes of indices are wanted for %lld of %d", r->index_bytes,
                  (long long)r->c->count, width);
    }
    warpdnnMemcpy(harness_handle, bytes, r->index->data, r->index_bytes);
    for (int64_t i = 0; harness_values && i < r->c->count && !case_failed(); ++i) {
        uint64_t got = 0;
        memcpy(&got, bytes + i * width, (size_t)width);
        if (got != (uint64_t)want[i]) {
            case_fail("index[%lld] is %llu, not %lld", (long long)i, (unsigned long long)got,
                      (long long)want[i]);
        }
    }
    free(bytes);
}

static void judge(struct reduction *r, const double *a, const double *old)
{
    struct answer *answers = calloc((size_t)r->c->count, sizeof *answers);
    double *exact = calloc((size_t)r->c->count, sizeof *exact);
    double *size = calloc((size_t)r->c->count, sizeof *size);
    int64_t *index = calloc((size_t)r->c->count, sizeof *index);
    cudnnDataType_t compute =
        r->c->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    for (int64_t i = 0; i < r->c->count; ++i) answers[i] = (struct answer){0, 0, 1, 0, -1, 0};
    for (int64_t i = 0; i < r->a->count; ++i) {
        int at[8];
        coordinates(r->a, i, at);
        for (int d = 0; d < r->a->rank; ++d)
            if (r->c->dim[d] == 1) at[d] = 0;
        see(r, &answers[logical_index(r->c, at)], a[i]);
    }
    for (int64_t i = 0; i < r->c->count; ++i) {
        double rest = r->beta == 0.0 ? 0.0 : r->beta * old[i];
        exact[i] = r->alpha * value_of(r, &answers[i], &size[i]) + rest;
        size[i] = fabs(r->alpha) * size[i] + fabs(exact[i] - rest) + fabs(rest);
        index[i] = answers[i].index;
    }
    check_values("C", r->c, exact, NULL, size, compute);
    if (r->index) check_indices(r, index);
    free(answers), free(exact), free(size), free(index);
}

static bool prepare(struct reduction *r)
{
    size_t bytes = 0;
    cudnnStatus_t status;
    cudnnCreateReduceTensorDescriptor(&r->desc);
    status = cudnnSetReduceTensorDescriptor(
        r->desc, (cudnnReduceTensorOp_t)r->op, (cudnnDataType_t)r->compute,
        (cudnnNanPropagation_t)r->nan, (cudnnReduceTensorIndices_t)r->indices,
        (cudnnIndicesType_t)r->width);
    if (status == CUDNN_STATUS_SUCCESS) {
        status =
            cudnnGetReductionWorkspaceSize(harness_handle, r->desc, r->a->desc, r->c->desc, &bytes);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnnGetReductionIndicesSize(harness_handle, r->desc, r->a->desc, r->c->desc,
                                              &r->index_bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        case_fail("a size is refused: %s", cudnnGetErrorString(status));
        return false;
    }
    if (bytes > 0) r->workspace = tensor_bytes((int64_t)bytes);
    if (r->index_bytes > 0) r->index = tensor_bytes((int64_t)r->index_bytes);
    if ((r->index_bytes > 0) != (r->indices != 0 && picks(r->op)))
        case_fail("%zu bytes of indices", r->index_bytes);
    return true;
}

static void run_case(struct reduction *r)
{
    double *a = malloc((size_t)r->a->count * sizeof *a);
    double *old = malloc((size_t)r->c->count * sizeof *old);
    memcpy(a, r->a->value, (size_t)r->a->count * sizeof *a);
    memcpy(old, r->c->value, (size_t)r->c->count * sizeof *old);
    if (prepare(r) && run_call(call, r)) judge(r, a, old);
    cudnnDestroyReduceTensorDescriptor(r->desc);
    free(a), free(old);
    case_end();
}

static enum layout any_layout(void)
{
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

/* C as it must not be read, where beta is 0. */
static struct tensor *output(cudnnDataType_t dtype, int rank, const int *dim, double beta)
{
    struct tensor *t =
        tensor_inout(dtype, rank, dim, any_layout(), dtype == CUDNN_DATA_UINT8 ? 0.0 : -3.0, 3.0);
    bool floating = tensor_epsilon(dtype) < 0.5;
    if (beta != 0.0 || !floating) return t;
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    tensor_write(t);
    return t;
}

struct types {
    const char *name;
    cudnnDataType_t a, c;
    int compute;
};

static const struct types types[] = {
    {"f32", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
    {"f64", CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE},
    {"f16", CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
    {"f16_compute16", CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_HALF},
    {"f16_f32", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
    {"f32_f16", CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
    {"bf16", CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT},
    {"i8", CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_FLOAT},
    {"i8_f32", CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
    {"u8", CUDNN_DATA_UINT8, CUDNN_DATA_UINT8, CUDNN_DATA_FLOAT},
    {"i32", CUDNN_DATA_INT32, CUDNN_DATA_INT32, CUDNN_DATA_FLOAT},
    {"f32_compute64", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE},
};

static void random_cases(int turns)
{
    for (int op = 0; op < COUNT(op_names); ++op) {
        for (int t = 0; t < COUNT(types); ++t) {
            for (int turn = 0; turn < turns; ++turn) {
                const double scalars[] = {1.0, 0.0, 0.5, -1.25};
                struct reduction r = {.op = op, .compute = types[t].compute};
                bool product =
                    op == CUDNN_REDUCE_TENSOR_MUL || op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
                bool integer = tensor_epsilon(types[t].a) == 0.5;
                double low = types[t].a == CUDNN_DATA_UINT8 ? 0.0
                             : product                      ? (integer ? -1.0 : 0.7)
                                                            : -3.0;
                double high = product ? (integer ? 1.0 : 1.4) : 3.0;
                int rank;
                int dim[8];
                int reduced[8];
                if (!case_begin("random/%s/%s/%d", op_names[op], types[t].name, turn)) continue;
                rank = random_of(2, 3, 4, 4, 5, 8);
                for (int d = 0; d < rank; ++d) {
                    dim[d] = rank > 5 ? random_of(1, 2, 3) : random_of(1, 2, 3, 5, 8, 11);
                    reduced[d] = random_chance(0.5) ? 1 : dim[d];
                }
                r.nan = random_of(CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN);
                r.indices = random_chance(picks(op) ? 0.6 : 0.2); /* of the others there are none */
                r.width = random_of(CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES, CUDNN_16BIT_INDICES);
                r.alpha = random_chance(0.5) ? 1.0 : scalars[random_int(0, 3)];
                r.beta = random_chance(0.5) ? 0.0 : scalars[random_int(0, 3)];
                r.a = tensor_input(types[t].a, rank, dim, any_layout(), low, high);
                r.c = output(types[t].c, rank, reduced, r.beta);
                run_case(&r);
            }
        }
    }
}

/* Few distinct values, so that many are equal; sometimes a NaN or several. */
static void tie_cases(void)
{
    static const int ops[] = {CUDNN_REDUCE_TENSOR_MIN, CUDNN_REDUCE_TENSOR_MAX,
                              CUDNN_REDUCE_TENSOR_AMAX};
    static const int dims[][4] = {{3, 5, 7, 2}, {1, 1, 1, 200}, {2, 3, 130, 131}, {256, 1, 1, 3}};
    for (int o = 0; o < COUNT(ops); ++o) {
        for (int d = 0; d < COUNT(dims); ++d) {
            for (int nan = 0; nan < 2; ++nan) {
                for (int poison = 0; poison < 3; ++poison) { /* no NaN, some, all */
                    struct reduction r = {.op = ops[o],
                                          .compute = CUDNN_DATA_FLOAT,
                                          .nan = nan,
                                          .indices = 1,
                                          .alpha = 1.0};
                    int reduced[4];
                    if (!case_begin("ties/%s/%d/nan%d/poison%d", op_names[ops[o]], d, nan,
                                    poison)) {
                        continue;
                    }
                    for (int i = 0; i < 4; ++i)
                        reduced[i] = i == 1 || (d == 3 && i == 3) ? dims[d][i] : 1;
                    r.a = tensor_input(CUDNN_DATA_FLOAT, 4, dims[d], any_layout(), -1.0, 1.0);
                    for (int64_t i = 0; i < r.a->count; ++i) {
                        r.a->value[i] = (double)random_int(-2, 2);
                        if (poison == 2 || (poison == 1 && random_chance(0.02)))
                            r.a->value[i] = NAN;
                    }
                    tensor_write(r.a);
                    r.c = output(CUDNN_DATA_FLOAT, 4, reduced, 0.0);
                    r.width = r.a->count / r.c->count <= 256
                                  ? random_of(CUDNN_8BIT_INDICES, CUDNN_16BIT_INDICES)
                                  : random_of(CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES);
                    run_case(&r);
                }
            }
        }
    }
}

/* A NaN passes through sums and products whatever the policy, and stays in its own element. */
static void nan_cases(void)
{
    for (int op = 0; op < COUNT(op_names); ++op) {
        for (int nan = 0; nan < 2; ++nan) {
            struct reduction r = {.op = op, .compute = CUDNN_DATA_FLOAT, .nan = nan, .alpha = 1.0};
            if (!case_begin("nan/%s/%d", op_names[op], nan)) continue;
            r.a =
                tensor_input(CUDNN_DATA_FLOAT, 4, (const int[]){2, 3, 5, 7}, LAYOUT_NCHW, 0.8, 1.3);
            r.a->value[40] = NAN;
            tensor_write(r.a);
            r.c = output(CUDNN_DATA_FLOAT, 4, (const int[]){1, 3, 1, 1}, 0.0);
            run_case(&r);
        }
    }
}

/* Shapes that take every branch of the reduction tree; zeros among factors; big values. */
static void hard_cases(void)
{
    static const cudnnDataType_t vectors[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4,
                                              CUDNN_DATA_INT8x32};
    static const struct {
        const char *name;
        int op;
        int type;
        int dim[4];
        int reduced[4];
        double low, high;
        bool indices;
    } rows[] = {
        {"two_stages_add",
         CUDNN_REDUCE_TENSOR_ADD,
         0,
         {4, 5, 130, 131},
         {1, 1, 1, 1},
         -1,
         1,
         false},
        {"two_stages_avg",
         CUDNN_REDUCE_TENSOR_AVG,
         2,
         {4, 5, 130, 131},
         {1, 5, 1, 1},
         -1,
         1,
         false},
        {"two_stages_norm2",
         CUDNN_REDUCE_TENSOR_NORM2,
         1,
         {4, 5, 130, 131},
         {1, 1, 1, 1},
         -1,
         1,
         false},
        {"two_stages_max", CUDNN_REDUCE_TENSOR_MAX, 0, {4, 5, 130, 131}, {1, 1, 1, 1}, -1, 1, true},
        {"two_stages_min_i32",
         CUDNN_REDUCE_TENSOR_MIN,
         9,
         {4, 5, 130, 131},
         {1, 5, 1, 1},
         -50,
         50,
         true},
        {"offset_avg",
         CUDNN_REDUCE_TENSOR_AVG,
         0,
         {16, 3, 64, 65},
         {1, 3, 1, 1},
         9999,
         10001,
         false},
        {"one_dim_1025", CUDNN_REDUCE_TENSOR_ADD, 0, {1025, 1, 1, 1}, {1, 1, 1, 1}, -1, 1, false},
        {"many_short", CUDNN_REDUCE_TENSOR_MAX, 0, {40000, 3, 1, 1}, {40000, 1, 1, 1}, -1, 1, true},
        {"all_kept", CUDNN_REDUCE_TENSOR_NORM2, 0, {3, 4, 5, 6}, {3, 4, 5, 6}, -1, 1, false},
        {"all_kept_index", CUDNN_REDUCE_TENSOR_AMAX, 0, {3, 4, 5, 6}, {3, 4, 5, 6}, -1, 1, true},
        {"zero_factors",
         CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
         7,
         {2, 3, 4, 5},
         {1, 3, 1, 1},
         -1,
         1,
         false},
        {"saturated_i8", CUDNN_REDUCE_TENSOR_ADD, 7, {4, 3, 8, 8}, {1, 3, 1, 1}, -128, 127, false},
        {"exact_i32",
         CUDNN_REDUCE_TENSOR_ADD,
         9,
         {4, 3, 8, 8},
         {1, 3, 1, 1},
         -4000000,
         4000000,
         false},
        {"large_f16", CUDNN_REDUCE_TENSOR_AVG, 2, {64, 3, 8, 8}, {1, 3, 1, 1}, 60000, 65000, false},
    };
    for (int i = 0; i < COUNT(rows); ++i) {
        struct reduction r = {.op = rows[i].op,
                              .compute = types[rows[i].type].compute,
                              .alpha = 1.0,
                              .indices = rows[i].indices};
        if (!case_begin("hard/%s", rows[i].name)) continue;
        r.a = tensor_input(types[rows[i].type].a, 4, rows[i].dim, any_layout(), rows[i].low,
                           rows[i].high);
        r.c = output(types[rows[i].type].c, 4, rows[i].reduced, 0.0);
        run_case(&r);
    }
    for (int v = 0; v < COUNT(vectors); ++v) {
        struct reduction r = {
            .op = CUDNN_REDUCE_TENSOR_ADD, .compute = CUDNN_DATA_FLOAT, .alpha = 1.0};
        if (!case_begin("hard/vectorised/%d", (int)vectors[v])) continue;
        r.a = tensor_input(vectors[v], 4, (const int[]){2, 32, 3, 5}, LAYOUT_VECT,
                           vectors[v] == CUDNN_DATA_UINT8x4 ? 0 : -9, 9);
        r.c = output(CUDNN_DATA_FLOAT, 4, (const int[]){1, 32, 1, 1}, 0.0);
        run_case(&r);
    }
    if (case_begin("hard/in_place")) {
        struct reduction r = {
            .op = CUDNN_REDUCE_TENSOR_NORM1, .compute = CUDNN_DATA_FLOAT, .alpha = 2.0};
        r.a = r.c =
            tensor_inout(CUDNN_DATA_FLOAT, 4, (const int[]){2, 3, 4, 5}, LAYOUT_NHWC, -2, 2);
        run_case(&r);
    }
}

/* One byte less than is needed, of either buffer, is refused and nothing is written. */
static void short_buffers(void)
{
    struct reduction r = {
        .op = CUDNN_REDUCE_TENSOR_MAX, .compute = CUDNN_DATA_FLOAT, .alpha = 1.0, .indices = 1};
    if (!case_begin("short/workspace_and_indices")) return;
    r.a = tensor_input(CUDNN_DATA_FLOAT, 4, (const int[]){8, 5, 130, 131}, LAYOUT_NCHW, -1, 1);
    r.c = output(CUDNN_DATA_FLOAT, 4, (const int[]){1, 5, 1, 1}, 0.0);
    if (prepare(&r)) {
        if (!r.workspace) case_fail("a long reduction asks for no workspace");
        else {
            r.workspace->bytes -= 1;
            run_refused(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, call, &r);
            r.workspace->bytes += 1;
        }
        r.index_bytes -= 1;
        run_refused(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, call, &r);
    }
    cudnnDestroyReduceTensorDescriptor(r.desc);
    case_end();
    if (!case_begin("short/index_type")) return;
    r = (struct reduction){
        .op = CUDNN_REDUCE_TENSOR_MAX, .compute = CUDNN_DATA_FLOAT, .alpha = 1.0};
    r.a = tensor_input(CUDNN_DATA_FLOAT, 2, (const int[]){2, 257}, LAYOUT_NCHW, -1, 1);
    r.c = output(CUDNN_DATA_FLOAT, 2, (const int[]){2, 1}, 0.0);
    r.index = tensor_bytes(64);
    r.index_bytes = 64;
    cudnnCreateReduceTensorDescriptor(&r.desc);
    cudnnSetReduceTensorDescriptor(r.desc, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT,
                                   CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
                                   CUDNN_8BIT_INDICES);
    run_refused(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, call, &r);
    cudnnDestroyReduceTensorDescriptor(r.desc);
    case_end();
}

/* A packed tensor in a larger one, `skip` elements behind its start: aligned to its elements only.
 * `view` is not the harness's: the larger one is. */
static void skipped(struct tensor *view, cudnnDataType_t dtype, const int *dim, bool nhwc, int skip,
                    double low, double high)
{
    static const int order[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
    int64_t stride = 1;
    struct tensor *whole;
    memset(view, 0, sizeof *view);
    view->dtype = dtype;
    view->rank = 4;
    view->lanes = 1;
    for (int i = 0; i < 4; ++i) {
        int d = order[nhwc][i];
        view->dim[d] = dim[d];
        view->stride[d] = (int)stride;
        stride *= dim[d];
    }
    view->count = stride;
    whole = tensor_input(dtype, 2, (const int[]){1, (int)stride + skip}, LAYOUT_NCHW, low, high);
    view->value = malloc((size_t)stride * sizeof *view->value);
    for (int64_t i = 0; i < stride; ++i) {
        int at[8];
        int64_t offset = skip;
        coordinates(view, i, at);
        for (int d = 0; d < 4; ++d) offset += (int64_t)at[d] * view->stride[d];
        view->value[i] = whole->value[offset];
    }
    view->data = (unsigned char *)whole->data + whole->bytes / whole->count * skip;
    cudnnCreateTensorDescriptor(&view->desc);
    cudnnSetTensorNdDescriptor(view->desc, dtype, 4, view->dim, view->stride);
}

enum { MANY = 1 << 19 };

static int64_t walk_count(const int *dim)
{
    return (int64_t)dim[0] * dim[1] * dim[2] * dim[3];
}

/* Every way in which rows and columns are walked: short and long, whole runs and not, few and many,
 * joined, cut in pieces; of each type, from pointers of any alignment. */
static void walk_cases(void)
{
    static const struct {
        int dim[4];
        int mask; /* decimal digits N C H W, 1 where the dim goes */
        bool nhwc;
    } walks[] = {
        {{2000, 1, 1, 3}, 1, false},      /* short rows */
        {{700, 1, 7, 7}, 11, false},      /* of 49 */
        {{300, 1, 1, 101}, 1, false},     /* longer */
        {{3000, 1, 1, 16}, 1, false},     /* whole runs, a lane */
        {{40, 1, 1, 1000}, 1, false},     /* a warp */
        {{1100, 1, 1, 1099}, 1, false},   /* many of a warp */
        {{5, 1, 1, 9001}, 1, false},      /* blocks of a cluster */
        {{4, 37, 9, 23}, 1011, false},    /* pieces of rows */
        {{7, 3, 64, 67}, 1011, false},    /* long ones */
        {{2, 2, 600, 601}, 1011, false},  /* in segments */
        {{1, 1, 1, 1200007}, 1, false},   /* one row */
        {{9, 16, 5, 24}, 100, false},     /* columns in runs */
        {{9, 17, 3, 29}, 100, false},     /* one by one */
        {{3, 700, 8, 8}, 100, false},     /* shared by threads */
        {{9000, 16, 1, 1}, 1000, false},  /* and by the blocks of a cluster */
        {{40000, 32, 1, 1}, 1000, false}, /* and in segments */
        {{16, 64, 6, 48}, 1010, false},   /* of two levels */
        {{12, 12, 9, 7}, 1010, false},    {{2, 3, 180, 301}, 1011, true}, /* joined rows */
        {{1, 61, 40, 61}, 1011, true},                                    /* of odd channels */
        {{2, 8, 50, 100}, 1011, true},                                    /* aligned or not */
        {{3, 40, 17, 31}, 10, true},    /* outputs in another order */
        {{4, 301, 7, 9}, 100, true},    /* rows between pixels */
        {{1, 3, 1, 29999}, 1011, true}, /* x ends before the last joined row but one does */
    };
    static const int ops[] = {CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_MUL,
                              CUDNN_REDUCE_TENSOR_MIN, CUDNN_REDUCE_TENSOR_AMAX,
                              CUDNN_REDUCE_TENSOR_NORM2};
    static const int floats[] = {0, 1, 2, 6}; /* of types */
    for (int i = 0; i < COUNT(walks) * COUNT(floats) * 2; ++i) {
        int w = i / (2 * COUNT(floats));
        int t = floats[i / 2 % COUNT(floats)];
        int skip = i % 2;
        for (int o = 0; o < COUNT(ops); ++o) {
            bool product = ops[o] == CUDNN_REDUCE_TENSOR_MUL;
            struct reduction r = {.op = ops[o], .compute = types[t].compute, .alpha = 1.0};
            struct tensor view;
            int64_t terms = 1;
            int reduced[4];
            int mask = walks[w].mask;
            if (o > 2 && (i + o) % 4 != 0) continue; /* these run as others do */
            if (walk_count(walks[w].dim) > MANY && skip != (i / 2 + o) % 2) continue;
            if (!case_begin("walk/%d/%s/skip%d/%s", w, types[t].name, skip, op_names[ops[o]])) {
                continue;
            }
            for (int d = 3; d >= 0; --d, mask /= 10) {
                reduced[d] = mask % 10 ? 1 : walks[w].dim[d];
                if (mask % 10) terms *= walks[w].dim[d];
            }
            r.indices = picks(ops[o]) && random_chance(0.6);
            r.nan = random_of(CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN);
            r.width = random_of(CUDNN_32BIT_INDICES, CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES);
            if (random_chance(0.3)) r.beta = 0.5;
            skipped(&view, types[t].a, walks[w].dim, walks[w].nhwc, skip,
                    product ? 1.0 - 1.0 / (double)terms : -3.0,
                    product ? 1.0 + 1.0 / (double)terms : 3.0);
            r.a = &view;
            r.c = random_chance(0.5) ? output(types[t].c, 4, reduced, r.beta)
                  : r.beta != 0.0    ? tensor_inout(types[t].c, 4, reduced, LAYOUT_NCHW, -3.0, 3.0)
                                     : tensor_output(types[t].c, 4, reduced, LAYOUT_NCHW);
            run_case(&r);
            cudnnDestroyTensorDescriptor(view.desc);
            free(view.value);
        }
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    random_cases(5);
    tie_cases();
    nan_cases();
    hard_cases();
    walk_cases();
    short_buffers();
    return harness_finish();
}
