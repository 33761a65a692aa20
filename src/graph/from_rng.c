/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of random numbers as nodes. A seed that is a value becomes two run-time scalars of 32
 * bits each, which a double holds exactly. */
#include "graph/from_descriptors.h"

cudnnStatus_t wd_node_rng(const struct wd_desc *op, struct wd_node_builder *builder)
{
    enum { SEED, OFFSET, Y };
    enum { SEED_LOW, SEED_HIGH };
    const struct wd_desc *rng = wd_desc_ref(op, CUDNN_ATTR_OPERATION_RNG_DESC);
    struct wd_rng_attr *attr = &builder->node->attr.rng;
    bool given = wd_desc_ref(op, CUDNN_ATTR_OPERATION_RNG_SEED) != NULL;
    uint64_t seed = given ? 0 : (uint64_t)wd_desc_int(op, CUDNN_ATTR_OPERATION_RNG_SEED);
    builder->node->op = WD_OP_RNG;
    attr->distribution = (int32_t)wd_desc_int(rng, CUDNN_ATTR_RNG_DISTRIBUTION);
    switch (attr->distribution) { /* what the distribution has no use for may be set */
    case CUDNN_RNG_DISTRIBUTION_BERNOULLI:
        attr->probability = wd_desc_real(rng, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
        break;
    case CUDNN_RNG_DISTRIBUTION_UNIFORM:
        attr->low = wd_desc_real(rng, CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM);
        attr->high = wd_desc_real(rng, CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM);
        break;
    default:
        attr->mean = wd_desc_real(rng, CUDNN_ATTR_RNG_NORMAL_DIST_MEAN);
        attr->deviation = wd_desc_real(rng, CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION);
    }
    wd_node_scalar(builder, SEED_LOW, (double)(uint32_t)seed);
    wd_node_scalar(builder, SEED_HIGH, (double)(uint32_t)(seed >> 32));
    WD_TRY(wd_node_bind(builder, SEED, op, CUDNN_ATTR_OPERATION_RNG_SEED));
    WD_TRY(wd_node_bind(builder, OFFSET, op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC));
    return wd_node_bind(builder, Y, op, CUDNN_ATTR_OPERATION_RNG_YDESC);
}
