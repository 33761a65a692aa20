/* SPDX-License-Identifier: Apache-2.0
 *
 * Resample descriptors as nodes. The lengths of a spatial dimension are fractions; in the node they
 * count in units of their common denominator. */
#include "graph/from_descriptors.h"

enum { ALPHA, BETA };

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct fraction {
    int64_t above;
    int64_t below;
};

/* An element of a list of fractions in its lowest terms; an empty list repeats `fallback`. */
static struct fraction element(const struct wd_desc *desc, int attribute, int s, int64_t fallback)
{
    const struct wd_value *list = wd_desc_value(desc, attribute);
    struct fraction f = {fallback, 1};
    int64_t divisor;
    if (list->count == 0) return f;
    f.above = list->cells[2 * s].i;
    f.below = list->cells[2 * s + 1].i;
    divisor = common_divisor(f.above, f.below);
    if (divisor > 1) f = (struct fraction){f.above / divisor, f.below / divisor};
    return f;
}

/* What is not set is a window of 1, a stride of 1, no padding. */
static cudnnStatus_t set_lengths(const struct wd_desc *desc, struct wd_resample_attr *attr)
{
    const struct {
        int attribute;
        int64_t fallback;
        int64_t *to;
    } lists[] = {
        {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, 1, attr->window},
        {CUDNN_ATTR_RESAMPLE_STRIDES, 1, attr->stride},
        {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, 0, attr->pad_before},
        {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, 0, attr->pad_after},
    };
    enum { LISTS = sizeof lists / sizeof lists[0] };
    for (int s = 0; s < attr->spatial; ++s) {
        int64_t unit = 1;
        for (int l = 0; l < LISTS; ++l) {
            struct fraction f = element(desc, lists[l].attribute, s, lists[l].fallback);
            WD_REQUIRE(
                !__builtin_mul_overflow(unit, f.below / common_divisor(unit, f.below), &unit),
                CUDNN_STATUS_NOT_SUPPORTED,
                "resample: the denominators of spatial dimension %d have no common multiple in 64 "
                "bits",
                s);
        }
        for (int l = 0; l < LISTS; ++l) {
            struct fraction f = element(desc, lists[l].attribute, s, lists[l].fallback);
            WD_REQUIRE(!__builtin_mul_overflow(f.above, unit / f.below, &lists[l].to[s]),
                       CUDNN_STATUS_NOT_SUPPORTED,
                       "resample: %s[%d]=%lld/%lld in units of 1/%lld does not fit 64 bits",
                       wd_attribute(lists[l].attribute)->name, s, (long long)f.above,
                       (long long)f.below, (long long)unit);
        }
        attr->unit[s] = unit;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_attr(const struct wd_desc *desc, struct wd_resample_attr *attr)
{
    static const int lists[] = {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_ATTR_RESAMPLE_STRIDES,
                                CUDNN_ATTR_RESAMPLE_PRE_PADDINGS,
                                CUDNN_ATTR_RESAMPLE_POST_PADDINGS};
    attr->spatial = (int32_t)wd_desc_int(desc, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS);
    for (int l = 0; l < 4 && attr->spatial == 0; ++l) {
        attr->spatial = (int32_t)wd_desc_value(desc, lists[l])->count;
    }
    attr->mode = (int32_t)wd_desc_int(desc, CUDNN_ATTR_RESAMPLE_MODE);
    attr->padding = (int32_t)wd_desc_int(desc, CUDNN_ATTR_RESAMPLE_PADDING_MODE);
    attr->compute = (int32_t)wd_desc_int(desc, CUDNN_ATTR_RESAMPLE_COMP_TYPE);
    attr->propagate_nan = (int32_t)wd_desc_int(desc, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION);
    return set_lengths(desc, attr);
}

cudnnStatus_t wd_node_resample_forward(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const int slots[] = {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC,
                                CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
                                CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC};
    builder->node->op = WD_OP_RESAMPLE_FORWARD;
    WD_TRY(set_attr(wd_desc_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC),
                    &builder->node->attr.resample));
    wd_node_scalar(builder, ALPHA, wd_desc_real(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA));
    wd_node_scalar(builder, BETA, wd_desc_real(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA));
    for (int slot = 0; slot < (int)(sizeof slots / sizeof slots[0]); ++slot) {
        WD_TRY(wd_node_bind(builder, slot, op, slots[slot]));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_node_resample_backward(const struct wd_desc *op, struct wd_node_builder *builder)
{
    static const int slots[] = {
        CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC,
        CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC,  CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC,
        CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC,
    };
    builder->node->op = WD_OP_RESAMPLE_BACKWARD;
    WD_TRY(set_attr(wd_desc_ref(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC),
                    &builder->node->attr.resample));
    wd_node_scalar(builder, ALPHA, wd_desc_real(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA));
    wd_node_scalar(builder, BETA, wd_desc_real(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA));
    for (int slot = 0; slot < (int)(sizeof slots / sizeof slots[0]); ++slot) {
        WD_TRY(wd_node_bind(builder, slot, op, slots[slot]));
    }
    return CUDNN_STATUS_SUCCESS;
}
