/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about one tensor: counts, extents, layouts, texts. Pure functions. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

int64_t wd_tensor_count(const struct wd_tensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->rank; ++d) count *= tensor->dim[d];
    return count;
}

int64_t wd_tensor_extent(const struct wd_tensor *tensor)
{
    int64_t units = 1;
    for (int d = 0; d < tensor->rank; ++d) {
        int64_t dim = tensor->dim[d];
        if (dim == 0) return 0;
        if (tensor->vect_count > 1 && d == tensor->vect_dim) {
            dim = (dim + tensor->vect_count - 1) / tensor->vect_count;
        }
        units += (dim - 1) * (tensor->stride[d] < 0 ? -tensor->stride[d] : tensor->stride[d]);
    }
    return (units * tensor->vect_count * wd_dtype_bits(tensor->dtype) + 7) / 8;
}

bool wd_tensor_same_dims(const struct wd_tensor *a, const struct wd_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, sizeof a->dim[0] * (size_t)a->rank);
}

bool wd_tensor_same_layout(const struct wd_tensor *a, const struct wd_tensor *b)
{
    if (!wd_tensor_same_dims(a, b) || a->vect_count != b->vect_count) return false;
    if (a->vect_count > 1 && a->vect_dim != b->vect_dim) return false;
    for (int d = 0; d < a->rank; ++d)
        if (a->dim[d] > 1 && a->stride[d] != b->stride[d]) return false;
    return true;
}

int wd_tensor_order(const struct wd_tensor *tensor, int order[WD_MAX_RANK])
{
    int count = 0;
    for (int d = 0; d < tensor->rank; ++d) {
        int at = count;
        if (tensor->dim[d] == 1) continue;
        for (; at > 0 && tensor->stride[order[at - 1]] < tensor->stride[d]; --at) {
            order[at] = order[at - 1];
        }
        order[at] = d;
        count += 1;
    }
    return count;
}

bool wd_tensor_is_packed(const struct wd_tensor *tensor)
{
    /* take the dimensions by growing stride: each must continue where the last one ended */
    int64_t expected = 1;
    int64_t units[WD_MAX_RANK];
    bool taken[WD_MAX_RANK] = {false};
    for (int d = 0; d < tensor->rank; ++d) {
        bool vectors = tensor->vect_count > 1 && d == tensor->vect_dim;
        units[d] = vectors ? tensor->dim[d] / tensor->vect_count : tensor->dim[d];
    }
    for (int turn = 0; turn < tensor->rank; ++turn) {
        int next = -1;
        for (int d = 0; d < tensor->rank; ++d) {
            if (taken[d] || units[d] == 1) continue;
            if (next < 0 || tensor->stride[d] < tensor->stride[next]) next = d;
        }
        if (next < 0) break;
        if (tensor->stride[next] != expected) return false;
        taken[next] = true;
        expected *= units[next];
    }
    return true;
}

/* The dimensions of more than one unit, by falling stride, and how far those from each on reach. */
struct span {
    int count;
    int64_t dim[WD_MAX_RANK];
    int64_t stride[WD_MAX_RANK];
    int64_t reach[WD_MAX_RANK + 1];
};

static struct span span_of(const struct wd_tensor *tensor)
{
    struct span span = {.count = 0};
    for (int d = 0; d < tensor->rank; ++d) {
        bool vectors = tensor->vect_count > 1 && d == tensor->vect_dim;
        int64_t dim = vectors ? (tensor->dim[d] + tensor->vect_count - 1) / tensor->vect_count
                              : tensor->dim[d];
        int64_t stride = tensor->stride[d] < 0 ? -tensor->stride[d] : tensor->stride[d];
        int at = span.count;
        if (dim <= 1) continue;
        for (; at > 0 && span.stride[at - 1] < stride; --at) {
            span.dim[at] = span.dim[at - 1];
            span.stride[at] = span.stride[at - 1];
        }
        span.dim[at] = dim;
        span.stride[at] = stride;
        span.count += 1;
    }
    for (int i = span.count - 1; i >= 0; --i) {
        span.reach[i] = span.reach[i + 1] + (span.dim[i] - 1) * span.stride[i];
    }
    return span;
}

/* Whether the dimensions from `first` on can make up the difference `rest` between the places of two
 * elements that differ: `moved` says that dimensions before do, else one of these must. Each trial
 * takes one of `steps`. */
static bool meets(const struct span *span, int first, int64_t rest, bool moved, int *steps)
{
    int64_t most, stride, reach, low;
    if (first == span->count) return moved && rest == 0;
    most = span->dim[first] - 1;
    stride = span->stride[first];
    reach = span->reach[first + 1];
    if (stride == 0) return rest == 0; /* and all that follow are 0 too */
    /* from the least number of steps that leaves no more than the others reach */
    low = rest - reach <= 0 ? -((reach - rest) / stride) : (rest - reach + stride - 1) / stride;
    if (low < -most) low = -most;
    if (!moved && low < 0) low = 0; /* of a difference and its opposite one will do */
    for (int64_t step = low; step <= most && step * stride - rest <= reach; ++step) {
        if (--*steps < 0) return false;
        if (meets(span, first + 1, rest - step * stride, moved || step != 0, steps)) return true;
    }
    return false;
}

bool wd_tensor_overlaps_itself(const struct wd_tensor *tensor)
{
    enum { STEPS = 1 << 14 };
    struct span span = span_of(tensor);
    int steps = STEPS;
    bool nested = true;
    for (int d = 0; d < tensor->rank; ++d)
        if (tensor->dim[d] == 0) return false;
    for (int i = 0; i < span.count; ++i) nested = nested && span.stride[i] > span.reach[i + 1];
    return !nested && meets(&span, 0, 0, false, &steps);
}

const char *wd_dtype_name(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return "fp32";
    case CUDNN_DATA_DOUBLE: return "fp64";
    case CUDNN_DATA_HALF: return "fp16";
    case CUDNN_DATA_INT8: return "int8";
    case CUDNN_DATA_INT32: return "int32";
    case CUDNN_DATA_INT8x4: return "int8x4";
    case CUDNN_DATA_UINT8: return "uint8";
    case CUDNN_DATA_UINT8x4: return "uint8x4";
    case CUDNN_DATA_INT8x32: return "int8x32";
    case CUDNN_DATA_BFLOAT16: return "bf16";
    case CUDNN_DATA_INT64: return "int64";
    case CUDNN_DATA_BOOLEAN: return "boolean";
    case CUDNN_DATA_FP8_E4M3: return "e4m3";
    case CUDNN_DATA_FP8_E5M2: return "e5m2";
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8: return "fast-fp32";
    case CUDNN_DATA_FP8_E8M0: return "e8m0";
    case CUDNN_DATA_FP4_E2M1: return "e2m1";
    case CUDNN_DATA_INT4: return "int4";
    case CUDNN_DATA_UINT4: return "uint4";
    case CUDNN_DATA_UINT32: return "uint32";
    case CUDNN_DATA_COMPLEX_FP32: return "complex-fp32";
    case CUDNN_DATA_COMPLEX_FP64: return "complex-fp64";
    default: return "unknown type";
    }
}

static size_t list_text(const int64_t *list, int count, char *text, size_t size)
{
    size_t length = 0;
    for (int i = 0; i < count && length < size; ++i) {
        int wrote =
            snprintf(text + length, size - length, "%s%lld", i ? "," : "[", (long long)list[i]);
        length += wrote > 0 ? (size_t)wrote : 0;
    }
    if (length < size) length += (size_t)snprintf(text + length, size - length, "]");
    return length < size ? length : size - 1;
}

const char *wd_tensor_text(const struct wd_tensor *tensor, char *text, size_t size)
{
    size_t length;
    if (!tensor) {
        snprintf(text, size, "none");
        return text;
    }
    length = (size_t)snprintf(text, size, "%s", wd_dtype_name(tensor->dtype));
    if (tensor->vect_count > 1 && length < size) {
        length += (size_t)snprintf(text + length, size - length, "x%d", tensor->vect_count);
    }
    if (length >= size) return text;
    length += list_text(tensor->dim, tensor->rank, text + length, size - length);
    if (length + 9 >= size) return text;
    length += (size_t)snprintf(text + length, size - length, " strides ");
    list_text(tensor->stride, tensor->rank, text + length, size - length);
    return text;
}

void wd_strides_nchw(const int64_t *dim, int rank, int64_t *stride)
{
    int64_t next = 1;
    for (int d = rank - 1; d >= 0; --d) {
        stride[d] = next;
        next *= dim[d];
    }
}

void wd_strides_nhwc(const int64_t *dim, int rank, int64_t *stride)
{
    int64_t next;
    if (rank < 2) {
        wd_strides_nchw(dim, rank, stride);
        return;
    }
    stride[1] = 1;
    next = dim[1];
    for (int d = rank - 1; d >= 2; --d) {
        stride[d] = next;
        next *= dim[d];
    }
    stride[0] = next;
}

static bool has_strides(const struct wd_tensor *tensor, const int64_t *stride)
{
    for (int d = 0; d < tensor->rank; ++d) {
        if (tensor->dim[d] > 1 && tensor->stride[d] != stride[d]) return false;
    }
    return true;
}

bool wd_tensor_is_nchw(const struct wd_tensor *tensor)
{
    int64_t stride[WD_MAX_RANK];
    wd_strides_nchw(tensor->dim, tensor->rank, stride);
    return has_strides(tensor, stride);
}

bool wd_tensor_is_nhwc(const struct wd_tensor *tensor)
{
    int64_t stride[WD_MAX_RANK];
    wd_strides_nhwc(tensor->dim, tensor->rank, stride);
    return has_strides(tensor, stride);
}
