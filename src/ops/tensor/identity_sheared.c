/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes whose rows begin anywhere turned on the GPU: what identity_turn takes too, by tiles whose
 * stores are whole. identity_sheared_args.h says how. */
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/tensor/identity_sheared_args.h"
#include "ops/tensor/transform_turn.h"

#define WD_KERNELS_MODULE identity_sheared
#define WD_KERNELS_ROWS "ops/tensor/identity_sheared_kernels.def"
#include "ops/kernels_host.inc"

enum {
    A_MIN = 32, /* below, rows of x are too short for a warp each, */
    B_MIN = 96, /* and most of a tile is beyond the row of y */
    COUNT_MIN = 1 << 20,
    SIDE_LEAST = 32,       /* of a tile along a, where tiles are few */
    TILES_A_PROCESSOR = 4, /* wanted */
};

/* Whether rows of y begin at runs of 16 bytes, if their first one does. */
static bool in_runs(const struct wd_walk *w, int64_t bytes)
{
    int64_t run = 16 / bytes;
    for (int d = 0; d < w->rank; ++d) {
        if (w->y[d] != 1 && w->y[d] % run != 0) return false;
    }
    return true;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    int64_t bytes = wd_dtype_bytes(wd_slot(problem->graph, problem->node, WD_TURN_Y)->dtype);
    struct wd_walk w;
    int64_t ea, eb;
    if (!wd_turn_matches(problem, &w, reason)) return false;
    if (!wd_turn_moves_only(problem, reason)) return false;
    ea = w.dim[wd_walk_neighbours(&w)];
    eb = w.dim[w.rank - 1];
    WD_NEED(bytes <= 4, reason, NOT_SUPPORTED_DATA_TYPE,
            "elements of %lld bytes, needed are 2 or 4", (long long)bytes);
    WD_NEED(w.count >= COUNT_MIN && ea >= A_MIN && eb >= B_MIN, reason, NOT_SUPPORTED_SHAPE,
            "planes of %lld by %lld, %lld elements: needed are %d by %d and %d", (long long)ea,
            (long long)eb, (long long)w.count, A_MIN, B_MIN, COUNT_MIN);
    WD_NEED(!in_runs(&w, bytes), reason, NOT_SUPPORTED_SHAPE,
            "rows of y begin at runs of 16 bytes");
    return true;
}

/* The distance of rows in shared memory. Elements of 2 bytes are copied in pairs, so that rows of x an
 * odd number apart must stay so. Eight lanes that read eight rows of four rows of y each meet in few
 * banks where the distance is odd, or odd words, and, of an odd y_row, the right one of 1 and 3. */
static int64_t pitch_of(int64_t ta, int64_t x_row, int64_t y_row, int64_t bytes)
{
    int64_t pitch = ta + 2;
    if (bytes == 2 && x_row % 2 == 0) return pitch + ((2 - pitch % 4) + 4) % 4;
    while (pitch % 2 == 0 || (y_row % 2 != 0 && (pitch + y_row) % 4 != 0)) pitch += 1;
    return pitch;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *y = wd_call_tensor(call, WD_TURN_Y);
    struct wd_walk w = wd_walk_of(wd_call_tensor(call, WD_TURN_X), y);
    int64_t bytes = wd_dtype_bytes(y->dtype);
    int64_t unit = SHEARED_BACK / bytes;
    int at_a = wd_walk_neighbours(&w);
    int at_b = w.rank - 1;
    int64_t ea = w.dim[at_a];
    int64_t eb = w.dim[at_b];
    int64_t further = w.count / ea / eb;
    int64_t ta = wd_ceil_div(ea, wd_ceil_div(ea, SHEARED_A / bytes)); /* of equal tiles, */
    int64_t tiles_a, tiles_b;
    bool alike = true; /* rows of y begin alike */
    struct sheared_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, WD_TURN_X);
    a.y = wd_call_data(call, WD_TURN_Y);
    a.total = w.count;
    a.x_row = w.x[at_b];
    a.y_row = w.y[at_a];
    a.a = (uint32_t)ea;
    a.b = (uint32_t)eb;
    a.x_shift = (int32_t)((int64_t)((uintptr_t)a.x % 4) / bytes);
    a.y_shift = (int32_t)((int64_t)((uintptr_t)a.y % SHEARED_BACK) / bytes);
    for (int d = 0; d < w.rank; ++d) {
        if (d == at_b) continue;
        alike = alike && w.y[d] % unit == 0;
        if (d == at_a) continue;
        a.dim[a.rank] = wd_fastdiv_of((uint32_t)w.dim[d]);
        a.x_stride[a.rank] = w.x[d];
        a.y_stride[a.rank] = w.y[d];
        a.rank += 1;
    }
    a.back = (uint32_t)(alike ? a.y_shift : unit - 1);
    tiles_b = wd_ceil_div(eb + a.back, SHEARED_B);
    ta = wd_least(wd_ceil_div(ta, unit) * unit, ea); /* in whole sectors */
    while (ta > SIDE_LEAST && wd_ceil_div(ea, ta) * tiles_b * further <
                                  TILES_A_PROCESSOR * (int64_t)queue->device->multiprocessors) {
        ta = wd_most(wd_ceil_div(ta, 32) * 16, SIDE_LEAST);
    }
    tiles_a = wd_ceil_div(ea, ta);
    a.ta = (uint32_t)ta;
    a.pitch = (uint32_t)pitch_of(ta, a.x_row, a.y_row, bytes);
    a.by_tile_a = wd_fastdiv_of((uint32_t)tiles_a);
    a.by_tile_b = wd_fastdiv_of((uint32_t)tiles_b);
    return wd_emit_kernel(
        queue, &kernel_rows[bytes == 2 ? KERNEL_identity_sheared_2 : KERNEL_identity_sheared_4],
        tiles_a * tiles_b * further, SHEARED_THREADS,
        (uint32_t)((SHEARED_B + (int64_t)a.back) * a.pitch * bytes + 4), &a);
}

const struct wd_engine wd_engine_identity_sheared = {
    .name = "identity_sheared",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
