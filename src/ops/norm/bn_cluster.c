/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization on the GPU in one kernel, where the elements of a parameter (by columns, those
 * of a stripe of neighbours) fit the shared memory of up to eight blocks: training, and backward with
 * saved statistics, without a reserve space. Of fp32 planes of which a block holds several channels, blocks
 * walk down these (bn_cluster_walk.cuh). bn_cluster_args.h says how x is cut; the cut depends on the problem
 * and the device alone. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/bn_cluster_args.h"
#include "ops/norm/bn_gpu.h"

#define WD_KERNELS_MODULE bn_cluster
#define WD_KERNELS_ROWS "ops/norm/bn_cluster_kernels.def"
#include "ops/kernels_host.inc"

enum {
    TYPES = 3,
    BLOCKS_MOST = 4,       /* of a processor: more hide nothing more */
    BLOCK_RESERVED = 1024, /* bytes of shared memory that a block costs besides its own */
    WIDE_SHARE = 48 << 10, /* bytes of a stripe that stays wider than a line of 128 */
    STRIPE_WIDEST = 512,   /* bytes of a stripe's row: pages of memory are used as they lie ... */
    STRIPE_LINE = 128,
    STRIPE_SECTOR = 32,     /* ... and sectors are not read twice */
    ROW_UNITS = 32,         /* of a stripe: a warp's lanes */
    UNITS_PAY = 512,        /* of a block, for one more in the cluster */
    NARROW_MOST = 1 << 20,  /* bytes of x that narrow stripes pay for */
    SINGLE_MOST = 16 << 20, /* likewise single elements of planes, in training */
    WALK_SLOTS = 3,         /* at least: one is looked at and written, two are on their way */
    WALK_SLOTS_BACK = 2,    /* of two tensors each: one on its way is about as many bytes */
    WALK_UNIT = 16,         /* bytes */
    WALK_PLANE = 256,       /* bytes at least: of shorter ones sectors are written in parts */
    WALK_TURNS = 4,         /* of a block that walks, at least */
    WALK_FIXED = 1 << 10,   /* bytes of its shared memory beside the ring, at most */
};

/* The ways: planes by units of 4 and 1 elements, columns by 4 and 1; in training also planes by 8. */
struct cut {
    struct wd_bn_gpu_space space;
    bool columns;
    int length;    /* elements of a unit */
    int size;      /* bytes of an element, of all that are held */
    int full;      /* threads of a processor that the registers allow */
    int64_t row;   /* units of x's row: a plane, or all columns */
    int64_t width; /* units of a group's row */
    int64_t units; /* of a group */
    int64_t groups;
    int64_t cluster;
    int64_t share; /* units of a block */
    int64_t threads;
    int64_t bytes; /* of a block's shared memory */
    int64_t slots; /* channels of a block that walks; 0: blocks do not */
};

static int64_t columns_of(const struct cut *c)
{
    return c->columns ? c->width * c->length : 1;
}

/* Cuts a group over `cluster` blocks. Answers how many of them a processor has at once, 0: none. */
static int64_t share_out(struct cut *c, int64_t cluster, const struct wd_device *device)
{
    int64_t share = c->columns ? wd_ceil_div(c->units / c->width, cluster) * c->width
                               : wd_ceil_div(c->units, cluster);
    int64_t data = share * c->length * c->size / 16 * 16 + 16;
    if (data > device->shared_per_block) return 0;
    for (int64_t blocks = BLOCKS_MOST; blocks > 0; --blocks) {
        int64_t threads = wd_least(c->full / blocks, wd_ceil_div(share, 32) * 32) / 32 * 32;
        threads = wd_most(threads, wd_ceil_div(columns_of(c), 32) * 32);
        c->bytes = data + BN_CLUSTER_EXTRA(columns_of(c), threads);
        if ((c->bytes + BLOCK_RESERVED) * blocks > device->shared_per_processor) continue;
        if (c->bytes > device->shared_per_block) continue;
        c->cluster = cluster;
        c->share = share;
        c->threads = threads;
        return blocks;
    }
    return 0;
}

/* The smallest cluster of which a processor has two blocks or more, so that one loads while another
 * writes; failing that and if `alone`, the largest cluster. More of them where the chip has room. */
static bool fit(struct cut *c, bool alone, const struct wd_device *device)
{
    int64_t most = device->cooperative ? BN_CLUSTER_MOST : 1;
    int64_t cluster = 1;
    while (cluster < most && share_out(c, cluster, device) < 2) cluster *= 2;
    if (share_out(c, cluster, device) < (alone ? 1 : 2)) return false;
    while (cluster < most && c->groups * cluster * 2 <= device->multiprocessors &&
           c->units > UNITS_PAY * cluster) {
        cluster *= 2;
    }
    return share_out(c, cluster, device) > 0;
}

/* Sets the width of stripes whose rows have `bytes`, or what the columns fill of that. */
static bool stripes(struct cut *c, int64_t bytes, int arrays)
{
    int64_t unit = wd_most((int64_t)c->length * c->size / arrays, 1);
    c->width = bytes / unit;
    while (c->width > 1 && c->width / 2 >= c->row) c->width /= 2;
    c->units = c->space.outer * c->width;
    c->groups = wd_ceil_div(c->row, wd_most(c->width, 1));
    return c->width >= 1 && c->width <= ROW_UNITS && columns_of(c) <= BN_CLUSTER_COLUMNS;
}

/* Stripes of columns: wide ones where they are short and there are enough of them; else of a line or
 * less, as long as that fits. */
static bool fit_stripes(struct cut *c, int arrays, const struct wd_device *device)
{
    int64_t bytes;
    int64_t enough = 4 * (int64_t)device->multiprocessors;
    for (bytes = STRIPE_WIDEST; bytes > STRIPE_LINE; bytes /= 2) {
        if (stripes(c, bytes, arrays) && c->groups >= enough &&
            c->units * c->length * c->size <= WIDE_SHARE && fit(c, false, device)) {
            return true;
        }
    }
    for (; bytes >= STRIPE_SECTOR; bytes /= 2) {
        if (stripes(c, bytes, arrays) && fit(c, false, device) &&
            (bytes == STRIPE_SECTOR || c->groups * c->cluster >= device->multiprocessors)) {
            return true;
        }
    }
    for (bytes = STRIPE_LINE; bytes >= STRIPE_SECTOR; bytes /= 2) {
        if (stripes(c, bytes, arrays) && fit(c, true, device)) return true;
    }
    return false;
}

static bool is_training(const struct wd_problem *problem)
{
    return problem->node->op == WD_OP_BN_TRAINING;
}

static bool has_reserve(const struct wd_problem *problem)
{
    int slot = is_training(problem) ? WD_BN_TRAIN_RESERVE : WD_BN_GRAD_RESERVE;
    return wd_slot(problem->graph, problem->node, slot) != NULL;
}

static struct wd_kernel_row *row_of(const struct wd_problem *problem, const struct cut *c)
{
    int type = wd_bn_gpu_type(problem);
    int first = is_training(problem) ? KERNEL_bn_cluster_forward_planes4_f32
                                     : KERNEL_bn_cluster_backward_planes4_f32;
    int way = 2 * c->columns + (c->length == 1);
    if (c->length == BN_RUN) return &kernel_rows[KERNEL_bn_cluster_forward_planes8_f16 + type - 1];
    return &kernel_rows[first + TYPES * way + type];
}

/* Whether results are more than what follows from x, by what the problem says; of a call's scalars it does not know. */
static bool is_more(const struct wd_problem *problem)
{
    const struct wd_norm_attr *attr = &problem->node->attr.norm;
    int slot = is_training(problem) ? WD_BN_TRAIN_Z : WD_BN_GRAD_DZ;
    if (wd_slot(problem->graph, problem->node, slot) || has_reserve(problem)) return true;
    return attr->ops != CUDNN_BATCHNORM_OPS_BN && attr->activation.mode != CUDNN_POINTWISE_IDENTITY;
}

int64_t wd_bn_cluster_slots(const struct wd_problem *problem, const struct wd_bn_gpu_space *s)
{
    const struct wd_device *device = problem->device;
    int64_t size = wd_dtype_bytes(wd_slot(problem->graph, problem->node, 0)->dtype);
    bool training = is_training(problem);
    int64_t bytes = s->outer * s->inner * size * (training ? 1 : 2);
    int64_t slots;
    if (is_more(problem) || s->inner * size % WALK_UNIT != 0) return 0;
    if (s->inner * size < WALK_PLANE) return 0;
    if (size != 4) return 0; /* of two bytes not measured */
    if (!training && !wd_slot(problem->graph, problem->node, WD_BN_GRAD_SAVED_MEAN)) return 0;
    if (s->params <= (WALK_TURNS - 1) * (int64_t)device->multiprocessors) return 0;
    slots = wd_least((device->shared_per_block - WALK_FIXED) / bytes, BN_CLUSTER_SLOTS);
    return slots >= (training ? WALK_SLOTS : WALK_SLOTS_BACK) ? slots : 0;
}

/* False where x does not fit. */
static bool cut(struct cut *c, const struct wd_problem *problem)
{
    const struct wd_bn_gpu_space *s = &c->space;
    int arrays = is_training(problem) ? 1 : 2;
    int size = (int)wd_dtype_bytes(wd_slot(problem->graph, problem->node, 0)->dtype);
    int64_t run;
    c->columns = s->inner == 1 && s->params > 1;
    run = c->columns ? s->params : s->params == 1 ? s->total : s->inner;
    c->length = size == 4 && run % 4 == 0 ? 4 : run % BN_RUN == 0 ? BN_RUN : run % 4 == 0 ? 4 : 1;
    c->size = size * arrays;
    c->row = run / c->length;
    /* bn_grid's */
    if (c->length == BN_RUN && (c->columns || !is_training(problem))) return false;
    c->full = (int)row_of(problem, c)->threads;
    if (c->columns) return fit_stripes(c, arrays, problem->device);
    c->width = c->row;
    c->units = s->total / s->params / c->length;
    c->groups = s->params;
    c->slots = wd_bn_cluster_slots(problem, s);
    return c->width <= INT32_MAX && fit(c, true, problem->device);
}

/* Whether bn_vector's two readings are not faster. Measured on an H200:
 * - stripes of a sector, parts of rows, lose beyond some MB: training fp16 256x1024x14x14 takes 186 us
 *   where three kernels take 160;
 * - training by single elements of planes computes more addresses than numbers: 145 us where bn_vector
 *   takes 114 (fp32 256x2048x7x7); it pays where launches count and half of the processors have work
 *   (one parameter of 66,181 elements: 19.9 us for 17.3). */
static bool pays(const struct cut *c, const struct wd_problem *problem)
{
    int element = c->size / (is_training(problem) ? 1 : 2);
    int64_t bytes = c->space.total * element;
    int64_t stripe = c->width * c->length * element;
    if (c->columns) {
        return bytes <= NARROW_MOST || c->width >= c->row || stripe > STRIPE_SECTOR;
    }
    if (c->length > 1 || !is_training(problem)) return true;
    return bytes <= SINGLE_MOST && c->groups * c->cluster * 2 >= problem->device->multiprocessors;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct cut c;
    if (!wd_bn_gpu_match(problem, &c.space, false, reason)) return false;
    WD_NEED(is_training(problem) ||
                wd_slot(problem->graph, problem->node, WD_BN_GRAD_SAVED_MEAN) != NULL,
            reason, NOT_SUPPORTED, "the statistics were not saved");
    WD_NEED(c.space.params <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld parameters are too many", (long long)c.space.params);
    WD_NEED(
        cut(&c, problem), reason, NOT_SUPPORTED_SHAPE,
        "%lld elements a parameter do not fit the shared memory of %d blocks, or are whole runs "
        "of %d",
        (long long)(c.space.outer * c.space.inner), BN_CLUSTER_MOST, BN_RUN);
    WD_NEED(!has_reserve(problem), reason, NOT_SUPPORTED, "the reserve space is bn_grid's");
    WD_NEED(
        pays(&c, problem), reason, NOT_SUPPORTED_SHAPE,
        "%lld elements a parameter are faster read twice: by units of %d elements, %lld side by "
        "side",
        (long long)(c.space.outer * c.space.inner), c.length, (long long)c.width);
    WD_NEED(c.groups * c.cluster <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
            "%lld parameters are too many", (long long)c.space.params);
    return true;
}

/* The cut, and the arguments but for pointers and scalars. */
struct work {
    struct cut cut;
    struct bn_cluster_args args;
};

static void prepare(const struct wd_problem *problem, void *prepared)
{
    struct work *w = prepared;
    struct cut *c = &w->cut;
    struct bn_cluster_args *a = &w->args;
    memset(w, 0, sizeof *w);
    wd_bn_gpu_see(&c->space, problem);
    cut(c, problem);
    a->bn = wd_bn_gpu_args(problem, &c->space);
    a->pitch = c->space.params * c->space.inner;
    a->cluster = (uint32_t)c->cluster;
    a->units = (uint32_t)c->units;
    a->share = (uint32_t)c->share;
    a->columns = (uint32_t)columns_of(c);
    a->slots = (uint32_t)c->slots;
    a->inverse = 1.0 / (double)a->bn.terms;
    a->by_row = wd_fastdiv_of((uint32_t)c->width);
}

/* Whether results are what follows from x alone, in whole units. */
static bool is_plain(const struct bn_vector_args *a)
{
    return a->aligned && !a->z && !a->dz && !a->activates && a->alpha == 1.0f && a->beta == 0.0f;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct work own;
    const struct work *w = wd_call_prepared(call, prepare, &own);
    const struct cut *c = &w->cut;
    struct bn_cluster_args a = w->args;
    wd_bn_gpu_bind(&a.bn, call);
    if (c->slots > 0 && is_plain(&a.bn)) {
        int64_t turns = wd_ceil_div(c->groups, queue->device->multiprocessors);
        int which = is_training(&call->problem) ? KERNEL_bn_cluster_walk_f32
                                                : KERNEL_bn_cluster_walk_back_f32;
        int64_t bytes = c->slots * c->units * c->length * c->size;
        return wd_emit_kernel(queue, &kernel_rows[which], wd_ceil_div(c->groups, turns),
                              BN_CLUSTER_WALK_THREADS, (uint32_t)bytes, &a);
    }
    return wd_emit_cluster_kernel(queue, row_of(&call->problem, c), c->groups * c->cluster,
                                  (uint32_t)c->threads, a.cluster, (uint32_t)c->bytes, &a);
}

const struct wd_engine wd_engine_bn_training_cluster = {
    .name = "bn_training_cluster",
    .op = WD_OP_BN_TRAINING,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};

const struct wd_engine wd_engine_bn_backward_cluster = {
    .name = "bn_backward_cluster",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct work),
    .emit = emit,
};
