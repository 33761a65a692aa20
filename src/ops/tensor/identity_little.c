/* SPDX-License-Identifier: Apache-2.0
 *
 * Small planes turned on the GPU: what identity_turn takes element by element, by tiles of a few elements
 * a thread. identity_little_args.h says how. */
#include <string.h>

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/tensor/identity_little_args.h"
#include "ops/tensor/transform_turn.h"

#define WD_KERNELS_MODULE identity_little
#define WD_KERNELS_ROWS "ops/tensor/identity_little_kernels.def"
#include "ops/kernels_host.inc"

enum {
    SIDE_MIN = 16,       /* thinner planes are read from the cache as they lie */
    COUNT_MAX = 1 << 16, /* elements: one wave of tiles */
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    struct wd_walk w;
    int64_t ea, eb;
    if (!wd_turn_matches(problem, &w, reason)) return false;
    if (!wd_turn_moves_only(problem, reason)) return false;
    ea = w.dim[wd_walk_neighbours(&w)];
    eb = w.dim[w.rank - 1];
    WD_NEED(w.count <= COUNT_MAX && ea >= SIDE_MIN && eb >= SIDE_MIN, reason, NOT_SUPPORTED_SHAPE,
            "planes of %lld by %lld, %lld elements: needed are sides of %d and at most %d elements",
            (long long)ea, (long long)eb, (long long)w.count, SIDE_MIN, COUNT_MAX);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *y = wd_call_tensor(call, WD_TURN_Y);
    struct wd_walk w = wd_walk_of(wd_call_tensor(call, WD_TURN_X), y);
    int64_t bytes = wd_dtype_bytes(y->dtype);
    int at_a = wd_walk_neighbours(&w);
    int at_b = w.rank - 1;
    int64_t tiles_a = wd_ceil_div(w.dim[at_a], LITTLE_A);
    int64_t tiles_b = wd_ceil_div(w.dim[at_b], LITTLE_B);
    int kernel = bytes == 2   ? KERNEL_identity_little_2
                 : bytes == 4 ? KERNEL_identity_little_4
                              : KERNEL_identity_little_8;
    struct little_args a;
    memset(&a, 0, sizeof a);
    a.x = wd_call_data(call, WD_TURN_X);
    a.y = wd_call_data(call, WD_TURN_Y);
    a.x_row = (uint32_t)w.x[at_b];
    a.y_row = (uint32_t)w.y[at_a];
    a.a = (uint32_t)w.dim[at_a];
    a.b = (uint32_t)w.dim[at_b];
    a.by_tile_a = wd_fastdiv_of((uint32_t)tiles_a);
    a.by_tile_b = wd_fastdiv_of((uint32_t)tiles_b);
    for (int d = 0; d < w.rank; ++d) {
        if (d == at_a || d == at_b) continue;
        a.dim[a.rank] = wd_fastdiv_of((uint32_t)w.dim[d]);
        a.x_stride[a.rank] = (uint32_t)w.x[d];
        a.y_stride[a.rank] = (uint32_t)w.y[d];
        a.rank += 1;
    }
    return wd_emit_kernel(queue, &kernel_rows[kernel],
                          tiles_a * tiles_b * (w.count / w.dim[at_a] / w.dim[at_b]), LITTLE_THREADS,
                          0, &a);
}

const struct wd_engine wd_engine_identity_little = {
    .name = "identity_little",
    .op = WD_OP_POINTWISE,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
