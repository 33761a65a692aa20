/* SPDX-License-Identifier: Apache-2.0
 *
 * See pointwise_walk.h. No state. */
#include "ops/pointwise/pointwise_walk.h"

#include <string.h>

enum {
    WALK_MAX = 1 << 30, /* elements of a launch */
    ALIGNMENT = 16,
};

int64_t wd_pointwise_element_bytes(const struct pointwise_operand *operand)
{
    int bits = wd_dtype_bits(operand->dtype);
    return bits < 8 ? 1 : bits / 8;
}

/* Bytes that a thread loads at once of a run. */
static int64_t load_bytes(const struct pointwise_operand *o, int run)
{
    int64_t bytes = run * wd_pointwise_element_bytes(o);
    return bytes > 0 && bytes < ALIGNMENT ? bytes : ALIGNMENT;
}

static uint32_t skip_of(const struct wd_joined *walk, const struct pointwise_operand *operands,
                        int count, int lead, int run)
{
    int64_t skip = -1;
    if (!wd_joined_is_flat(walk, lead)) return 0;
    for (int s = 0; s < count; ++s) {
        const struct pointwise_operand *o = &operands[s];
        int64_t own;
        if (!o->data || !wd_joined_is_flat(walk, s)) continue;
        own = (int64_t)((uintptr_t)o->data % (uintptr_t)load_bytes(o, run)) /
              wd_pointwise_element_bytes(o);
        if (skip >= 0 && own != skip) return 0;
        skip = own;
    }
    return skip > 0 ? (uint32_t)skip : 0;
}

/* How an operand of a walk follows runs of `run` elements. */
static enum pointwise_way way_of(const struct wd_joined *walk, const struct pointwise_operand *o,
                                 int slot, bool is_written, int run)
{
    int last = walk->rank - 1;
    int64_t bytes = wd_pointwise_element_bytes(o);
    int64_t load = load_bytes(o, run);
    bool aligned = (uintptr_t)o->data % (uintptr_t)load == 0;
    if (!o->data) return POINTWISE_VALUE;
    if (aligned && wd_joined_is_flat(walk, slot)) return POINTWISE_FLAT;
    if (walk->stride[slot][last] == 0 && !is_written) {
        if (walk->dim[last] % run == 0) return POINTWISE_REPEAT;
        return walk->dim[last] > run ? POINTWISE_SPLIT : POINTWISE_STRAY;
    }
    if (walk->dim[last] % run != 0) return POINTWISE_STRAY;
    for (int d = 0; d < last; ++d) {
        aligned = aligned && walk->stride[slot][d] * bytes % load == 0;
    }
    return aligned && walk->stride[slot][last] == 1 ? POINTWISE_ALONG : POINTWISE_STRAY;
}

uint32_t wd_pointwise_follow(const struct wd_joined *walk, struct pointwise_operand *operands,
                             int count, int written, int run)
{
    uint32_t skip = skip_of(walk, operands, count, written, run);
    for (int s = 0; s < count; ++s) {
        struct pointwise_operand *o = &operands[s];
        if (o->data && wd_joined_is_flat(walk, s)) {
            o->data = (char *)o->data - skip * wd_pointwise_element_bytes(o);
        }
        o->way = way_of(walk, o, s, s >= written, run);
        if (skip > 0 && o->data && o->way != POINTWISE_FLAT && o->way != POINTWISE_SPLIT) {
            bool split = o->way == POINTWISE_REPEAT && walk->dim[walk->rank - 1] >= run;
            o->way = split ? POINTWISE_SPLIT : POINTWISE_STRAY;
        }
        for (int d = 0; d < walk->rank; ++d) o->stride[d] = (int32_t)walk->stride[s][d];
    }
    return skip;
}

/* The walk of one index of the outermost dimension. */
static struct wd_joined without_outermost(const struct wd_joined *walk)
{
    struct wd_joined rest = *walk;
    rest.rank -= 1;
    rest.count = walk->count / walk->dim[0];
    for (int d = 0; d < rest.rank; ++d) {
        rest.dim[d] = walk->dim[d + 1];
        for (int s = 0; s < walk->tensors; ++s) rest.stride[s][d] = walk->stride[s][d + 1];
    }
    return rest;
}

cudnnStatus_t wd_pointwise_split(const struct wd_joined *walk,
                                 const struct pointwise_operand *operands, int count,
                                 wd_pointwise_launch_fn launch, void *context)
{
    struct pointwise_operand own[WD_JOINED_MAX];
    struct wd_joined piece = *walk;
    int64_t inner = walk->count / walk->dim[0];
    int64_t step = inner <= WALK_MAX ? WALK_MAX / inner : 1;
    if (walk->count <= WALK_MAX) return launch(context, walk, operands);
    memcpy(own, operands, sizeof own[0] * (size_t)count);
    for (int64_t first = 0; first < walk->dim[0]; first += step) {
        piece.dim[0] = walk->dim[0] - first < step ? walk->dim[0] - first : step;
        piece.count = piece.dim[0] * inner;
        for (int s = 0; s < count; ++s) {
            int64_t bytes = wd_pointwise_element_bytes(&operands[s]);
            if (!operands[s].data) continue;
            own[s].data = (char *)operands[s].data + first * walk->stride[s][0] * bytes;
        }
        if (inner > WALK_MAX) {
            struct wd_joined rest = without_outermost(&piece);
            WD_TRY(wd_pointwise_split(&rest, own, count, launch, context));
        } else {
            WD_TRY(launch(context, &piece, own));
        }
    }
    return CUDNN_STATUS_SUCCESS;
}
