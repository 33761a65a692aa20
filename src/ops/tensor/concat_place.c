/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an input of a concatenation lies, see concat_place.h. No state. */
#include "ops/tensor/concat_place.h"

#include "base/status.h"

static bool same_strides(const struct wd_view *x, const struct wd_view *y)
{
    bool same =
        x->vect_count == y->vect_count && (x->vect_count == 1 || x->vect_dim == y->vect_dim);
    for (int d = 0; d < x->rank; ++d) same &= x->dim[d] <= 1 || x->stride[d] == y->stride[d];
    return same;
}

cudnnStatus_t wd_concat_look(const struct wd_call *call, int input, int64_t first, bool *lies)
{
    const struct wd_view x = wd_call_view(call, CONCAT_X + input);
    const struct wd_view y = wd_call_view(call, CONCAT_Y);
    const char *from = x.data;
    const char *to = y.data;
    const char *place;
    int64_t at[WD_MAX_RANK] = {0};
    at[call->problem.node->attr.concat.axis] = first;
    place = to + wd_view_offset(&y, at) * wd_dtype_bits(y.dtype) / 8;
    *lies =
        from == place && x.dtype == y.dtype && wd_dtype_bits(y.dtype) >= 8 && same_strides(&x, &y);
    if (*lies) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(from + wd_tensor_extent(wd_call_tensor(call, CONCAT_X + input)) <= to ||
                   to + wd_tensor_extent(wd_call_tensor(call, CONCAT_Y)) <= from,
               CUDNN_STATUS_BAD_PARAM,
               "concat: input %d, in place, lies at %p within y, but not as the part of y at %p",
               input, (const void *)from, (const void *)place);
    return CUDNN_STATUS_SUCCESS;
}
