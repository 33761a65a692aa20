/* SPDX-License-Identifier: Apache-2.0
 *
 * How a definition is written and run. A definition is a list of passes in <op>_def.h over plain
 * arguments in <op>_args.h; the file is included twice a compiler, with float and with double as
 * WD_ACC, and every name in it goes through WD_NAME. The family's <family>_passes.def has one row a
 * pass:
 *
 *     WD_MAP(pass, struct args)      WD_NAME(pass)(const struct args *a, int64_t item)
 *     WD_REDUCE(pass, struct args)   struct WD_NAME(pass_state), and
 *                                    WD_NAME(pass_init)(state *)
 *                                    WD_NAME(pass_term)(a, item, term, state *)
 *                                    WD_NAME(pass_combine)(a, state *into, const state *from)
 *                                    WD_NAME(pass_finish)(a, item, const state *)
 *
 * A reduction runs along a tree fixed by the number of items and terms alone: `segments` pieces of
 * the terms, each dealt to `lanes` accumulators in turn, lanes combined pairwise, then segments in
 * order. CPU and GPU follow the same tree, so that they agree but for their math functions.
 *
 * <family>_def.c includes definition_host.inc, <family>_def.cu definition_device.inc: these make
 * the host functions, the CUDA entry point and the table that joins them from the same rows. One
 * entry point does all of a family's passes, so that the code which they call is there once. */
#ifndef WD_OPS_DEFINITION_H
#define WD_OPS_DEFINITION_H

#include "base/queue.h"
#include "base/view.h"

enum wd_acc { WD_ACC_F32 = 0, WD_ACC_F64 = 1 };

/* A pass by its number in the family, with its accumulator; `stage` 1 is the second of a reduction. */
#define WD_PASS_STEP(number, acc, stage) (4 * (number) + 2 * (acc) + (stage))

/* The shape of a pass, second parameter of its kernel. */
struct wd_pass_range {
    int64_t items;
    int64_t terms;
    int32_t lanes;    /* power of two, at most WD_PASS_THREADS */
    int32_t segments; /* 1: no second stage */
    void *partial;    /* items * segments states, where segments > 1 */
    int32_t step;     /* what the kernel does: a WD_PASS_STEP */
};

enum { WD_PASS_THREADS = 256, WD_PASS_STATE_MAX = 64, WD_PASS_ARGS_MAX = 4000 };

struct wd_pass_args { /* what host twins receive */
    const void *args;
    const struct wd_pass_range *range;
};

struct wd_pass {
    const char *name;
    size_t args_size;
    size_t state_size[2];       /* 0 for a map; by accumulator */
    wd_range_fn host[2];        /* args: struct wd_pass_args; items (work units where reducing) */
    wd_range_fn host_finish[2]; /* second stage of a reduction, over items */
    struct wd_definition *definition;
    int32_t number;
};

/* What the passes of a family have in common. */
struct wd_definition {
    struct wd_kernel kernel;
    size_t args_size;                    /* what the kernel takes: the largest of the passes' */
    const struct wd_pass *const *passes; /* in the order of their numbers */
};

/* double where one of the types needs it, else float: the accumulator of the last resort. */
static inline enum wd_acc wd_acc_for(const int *dtypes, int count)
{
    for (int i = 0; i < count; ++i)
        if (wd_dtype_is_wide(dtypes[i])) return WD_ACC_F64;
    return WD_ACC_F32;
}

/* The tree of a reduction: a pure function of its size. */
struct wd_pass_range wd_pass_shape(int64_t items, int64_t terms);

/* Scratch bytes that emitting this reduction needs (0 for most). */
int64_t wd_pass_scratch(const struct wd_pass *pass, enum wd_acc acc, int64_t items, int64_t terms);

/* Emit a map over `items`, or a reduction of `terms` for each of `items`; `scratch` holds
 * wd_pass_scratch bytes, 16-byte aligned. Nothing is emitted for zero items; zero terms finish the
 * initial state. */
cudnnStatus_t wd_emit_map(struct wd_queue *queue, const struct wd_pass *pass, enum wd_acc acc,
                          const void *args, int64_t items);
cudnnStatus_t wd_emit_reduce(struct wd_queue *queue, const struct wd_pass *pass, enum wd_acc acc,
                             const void *args, int64_t items, int64_t terms, void *scratch);

#endif
