/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, see reduce_case.h. One thread. */
#include "reduce_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double wide;

const char *const reduce_op_names[REDUCE_OPS] = {"add", "mul",   "min",   "max",         "amax",
                                                 "avg", "norm1", "norm2", "mul_no_zeros"};

const struct reduce_types reduce_types[REDUCE_TYPES] = {
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

bool reduce_picks(int op)
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

cudnnStatus_t reduce_call(void *context)
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

bool reduce_prepare(struct reduction *r)
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
    if ((r->index_bytes > 0) != (r->indices != 0 && reduce_picks(r->op)))
        case_fail("%zu bytes of indices", r->index_bytes);
    return true;
}

void reduce_run(struct reduction *r)
{
    double *a = malloc((size_t)r->a->count * sizeof *a);
    double *old = malloc((size_t)r->c->count * sizeof *old);
    memcpy(a, r->a->value, (size_t)r->a->count * sizeof *a);
    memcpy(old, r->c->value, (size_t)r->c->count * sizeof *old);
    if (reduce_prepare(r) && run_call(reduce_call, r)) judge(r, a, old);
    cudnnDestroyReduceTensorDescriptor(r->desc);
    free(a), free(old);
    case_end();
}

enum layout reduce_layout(void)
{
    return (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

struct tensor *reduce_output(cudnnDataType_t dtype, int rank, const int *dim, double beta)
{
    struct tensor *t = tensor_inout(dtype, rank, dim, reduce_layout(),
                                    dtype == CUDNN_DATA_UINT8 ? 0.0 : -3.0, 3.0);
    bool floating = tensor_epsilon(dtype) < 0.5;
    if (beta != 0.0 || !floating) return t;
    for (int64_t i = 0; i < t->count; ++i) t->value[i] = NAN;
    tensor_write(t);
    return t;
}
