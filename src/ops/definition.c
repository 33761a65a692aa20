/* SPDX-License-Identifier: Apache-2.0
 *
 * Emits the passes of definitions: chooses the reduction tree and turns a pass into a kernel launch
 * or a host range, by the queue's device. No state. */
#include "ops/definition.h"

#include <assert.h>
#include <string.h>

#include "base/status.h"

enum {
    TERMS_A_LANE = 8,           /* a lane is worth its combine from here on */
    TERMS_A_SEGMENT = 1 << 14,  /* a segment is worth a second stage from here on */
    SEGMENTED_ITEMS_MAX = 1024, /* more items fill a GPU without segments */
    UNITS_MAX = 4096,
    GRID_MAX = 1 << 20,
};

struct wd_pass_range wd_pass_shape(int64_t items, int64_t terms)
{
    struct wd_pass_range range = {items, terms, 1, 1, NULL, 0};
    while (range.lanes < WD_PASS_THREADS && terms / (2 * range.lanes) >= TERMS_A_LANE) {
        range.lanes *= 2;
    }
    if (items > 0 && items <= SEGMENTED_ITEMS_MAX && terms >= 2 * (int64_t)TERMS_A_SEGMENT) {
        int64_t segments = terms / TERMS_A_SEGMENT;
        if (segments > UNITS_MAX / items) segments = UNITS_MAX / items;
        range.segments = segments > 1 ? (int32_t)segments : 1;
    }
    return range;
}

int64_t wd_pass_scratch(const struct wd_pass *pass, enum wd_acc acc, int64_t items, int64_t terms)
{
    struct wd_pass_range range = wd_pass_shape(items, terms);
    if (range.segments == 1) return 0;
    return items * range.segments * (int64_t)pass->state_size[acc];
}

static cudnnStatus_t emit(struct wd_queue *queue, const struct wd_pass *pass, wd_range_fn host,
                          const void *args, const struct wd_pass_range *range, int64_t work,
                          int64_t per_block)
{
    if (queue->device->kind == WD_CPU) {
        struct wd_pass_args both = {args, range};
        /* about ten thousand terms before a second thread pays */
        int64_t grain = range->terms > 10000 ? 1 : 10000 / (range->terms + 1) + 1;
        return queue->ops->range(queue, host, &both, work, grain);
    } else {
        struct wd_definition *definition = pass->definition;
        _Alignas(16) unsigned char all[WD_PASS_ARGS_MAX];
        int64_t blocks = (work + per_block - 1) / per_block;
        struct wd_launch launch = {
            .kernel = &definition->kernel,
            .grid = {(uint32_t)(blocks < GRID_MAX ? blocks : GRID_MAX), 1, 1},
            .block = {WD_PASS_THREADS, 1, 1},
            .param_count = 2,
            .param = {all, range},
            .param_size = {definition->args_size, sizeof *range},
        };
        memcpy(all, args, pass->args_size);
        memset(all + pass->args_size, 0, definition->args_size - pass->args_size);
        return queue->ops->kernel(queue, &launch);
    }
}

cudnnStatus_t wd_emit_map(struct wd_queue *queue, const struct wd_pass *pass, enum wd_acc acc,
                          const void *args, int64_t items)
{
    struct wd_pass_range range = {items, 0, 1, 1, NULL, WD_PASS_STEP(pass->number, acc, 0)};
    if (items == 0) return CUDNN_STATUS_SUCCESS;
    return emit(queue, pass, pass->host[acc], args, &range, items, WD_PASS_THREADS);
}

cudnnStatus_t wd_emit_reduce(struct wd_queue *queue, const struct wd_pass *pass, enum wd_acc acc,
                             const void *args, int64_t items, int64_t terms, void *scratch)
{
    struct wd_pass_range range = wd_pass_shape(items, terms);
    if (items == 0) return CUDNN_STATUS_SUCCESS;
    range.partial = scratch;
    range.step = WD_PASS_STEP(pass->number, acc, 0);
    assert(range.segments == 1 || scratch != NULL);
    WD_TRY(emit(queue, pass, pass->host[acc], args, &range, items * range.segments,
                WD_PASS_THREADS / range.lanes));
    if (range.segments == 1) return CUDNN_STATUS_SUCCESS;
    range.step = WD_PASS_STEP(pass->number, acc, 1);
    return emit(queue, pass, pass->host_finish[acc], args, &range, items, WD_PASS_THREADS);
}
