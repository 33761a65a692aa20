/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node of random numbers must be: a distribution that exists, an output of real numbers, a
 * seed and an offset of one integer each. */
#include <math.h>

#include "graph/graph.h"

static cudnnStatus_t check_number(const struct wd_graph *graph, const struct wd_node *node,
                                  int slot)
{
    const struct wd_tensor *tensor = wd_slot(graph, node, slot);
    char name[24];
    char text[160];
    if (!tensor) return CUDNN_STATUS_SUCCESS;
    wd_op_slot_name(node->op, slot, name);
    WD_REQUIRE(!(tensor->flags & WD_OPAQUE), CUDNN_STATUS_BAD_PARAM, "rng: %s is opaque", name);
    WD_REQUIRE(tensor->dtype == CUDNN_DATA_INT64 || tensor->dtype == CUDNN_DATA_INT32,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "rng: %s is %s; there are int64, int32", name,
               wd_dtype_name(tensor->dtype));
    WD_REQUIRE(wd_tensor_count(tensor) == 1, CUDNN_STATUS_BAD_PARAM,
               "rng: %s (%s) has %lld elements, not 1", name,
               wd_tensor_text(tensor, text, sizeof text), (long long)wd_tensor_count(tensor));
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_attr(const struct wd_rng_attr *attr)
{
    switch (attr->distribution) {
    case CUDNN_RNG_DISTRIBUTION_BERNOULLI:
        WD_REQUIRE(attr->probability >= 0.0 && attr->probability <= 1.0, CUDNN_STATUS_BAD_PARAM,
                   "rng: the probability %g is not in 0..1", attr->probability);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_RNG_DISTRIBUTION_UNIFORM:
        WD_REQUIRE(attr->low <= attr->high && isfinite(attr->high - attr->low),
                   CUDNN_STATUS_BAD_PARAM, "rng: %g..%g is no range of numbers", attr->low,
                   attr->high);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_RNG_DISTRIBUTION_NORMAL:
        WD_REQUIRE(isfinite(attr->mean) && attr->deviation >= 0.0 && isfinite(attr->deviation),
                   CUDNN_STATUS_BAD_PARAM,
                   "rng: the mean %g or the standard deviation %g is not finite, or the latter "
                   "negative",
                   attr->mean, attr->deviation);
        return CUDNN_STATUS_SUCCESS;
    default:
        return wd_fail(CUDNN_STATUS_BAD_PARAM, "rng: distribution %d is no cudnnRngDistribution_t",
                       attr->distribution);
    }
}

cudnnStatus_t wd_rule_rng(const struct wd_graph *graph, const struct wd_node *node)
{
    enum { SEED, OFFSET, Y };
    const struct wd_tensor *y = wd_slot(graph, node, Y);
    char text[160];
    WD_TRY(check_attr(&node->attr.rng));
    WD_TRY(check_number(graph, node, SEED));
    WD_TRY(check_number(graph, node, OFFSET));
    WD_REQUIRE(y, CUDNN_STATUS_BAD_PARAM, "rng: y is missing");
    WD_REQUIRE(!(y->flags & (WD_BY_VALUE | WD_OPAQUE)), CUDNN_STATUS_BAD_PARAM,
               "rng: y is no tensor in memory");
    WD_REQUIRE(wd_dtype_bits(y->dtype) > 0 && y->dtype != CUDNN_DATA_COMPLEX_FP32 &&
                   y->dtype != CUDNN_DATA_COMPLEX_FP64 && y->dtype != CUDNN_DATA_FP8_E8M0,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "rng: y is %s, which does not hold any real number", wd_dtype_name(y->dtype));
    WD_REQUIRE(y->reordering == CUDNN_TENSOR_REORDERING_NONE, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "rng: y (%s) is reordered", wd_tensor_text(y, text, sizeof text));
    WD_REQUIRE(wd_dtype_bits(y->dtype) >= 8 || (wd_tensor_is_packed(y) && y->vect_count == 1),
               CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
               "rng: elements of y (%s) share bytes, which takes a tensor without gaps",
               wd_tensor_text(y, text, sizeof text));
    return CUDNN_STATUS_SUCCESS;
}
