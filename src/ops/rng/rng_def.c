/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines of last resort for random tensors, on both devices: take whatever the rule accepts. */
#include "ops/rng/rng_call.h"

#define WD_DEF_MODULE rng_def
#define WD_DEF_BODY "ops/rng/rng_def.h"
#define WD_DEF_PASSES "ops/rng/rng_passes.def"
#include "ops/definition_host.inc"

enum { SEED_LOW, SEED_HIGH };

/* The integer in a slot: by value it is read now, else by the device when it runs, so that replays
 * of a captured graph see what the caller has written there since. */
static void set_integer(const struct wd_call *call, int slot, const void **data, int32_t *dtype,
                        uint64_t *value)
{
    const struct wd_tensor *tensor = wd_call_tensor(call, slot);
    if (!tensor) return;
    *data = wd_call_data(call, slot);
    *dtype = tensor->dtype;
    if (!(tensor->flags & WD_BY_VALUE)) return;
    *value = rng_integer(*data, *dtype, 0);
    *data = NULL;
}

struct rng_args wd_rng_args_of(const struct wd_call *call)
{
    struct rng_args args = {
        .y = wd_call_view(call, RNG_Y),
        .seed_value = (uint64_t)call->scalars[SEED_LOW] | (uint64_t)call->scalars[SEED_HIGH] << 32,
        .attr = call->problem.node->attr.rng,
    };
    int bits = wd_dtype_bits(args.y.dtype);
    args.how = rng_how(&args.attr, args.y.dtype);
    args.scale = rng_scale_of(&args.attr, args.how);
    args.per_item = rng_block_elements(args.how);
    if (bits > 0 && bits < 8) args.per_item = 8 / bits;
    wd_view_order(&args.y, args.order);
    set_integer(call, RNG_SEED, &args.seed, &args.seed_dtype, &args.seed_value);
    set_integer(call, RNG_OFFSET, &args.offset, &args.offset_dtype, &args.offset_value);
    return args;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct rng_args args = wd_rng_args_of(call);
    return wd_emit_map(queue, &wd_pass_rng, WD_ACC_F32, &args,
                       (wd_view_count(&args.y) + args.per_item - 1) / args.per_item);
}

const struct wd_engine wd_engine_rng_def_cpu = {
    .name = "rng_def",
    .op = WD_OP_RNG,
    .device = WD_CPU,
    .last_resort = true,
    .emit = emit,
};

const struct wd_engine wd_engine_rng_def_gpu = {
    .name = "rng_def",
    .op = WD_OP_RNG,
    .device = WD_GPU,
    .last_resort = true,
    .emit = emit,
};
