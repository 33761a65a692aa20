/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward of batch normalization in one kernel whose blocks are all there at once and keep of what they read
 * as much as their shared memory holds, and what registers hold. bn_grid_cut.c cuts. */
#include "ops/norm/bn_grid_cut.h"

#define WD_KERNELS_MODULE bn_grid_back
#define WD_KERNELS_ROWS "ops/norm/bn_grid_back_kernels.def"
#include "ops/kernels_host.inc"

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    return wd_bn_grid_emit(call, queue, &kernel_rows[KERNEL_bn_grid_backward_f32]);
}

cudnnStatus_t wd_bn_grid_back_samples(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                      struct bn_grid_args *a, int type)
{
    return wd_bn_grid_launch_board(queue, c, a,
                                   &kernel_rows[KERNEL_bn_grid_backward_turns_f16 + type - 1]);
}

const struct wd_engine wd_engine_bn_backward_grid = {
    .name = "bn_backward_grid",
    .op = WD_OP_BN_BACKWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = wd_bn_grid_match,
    .workspace = wd_bn_grid_workspace,
    .prepare = wd_bn_grid_prepare,
    .prepared_bytes = sizeof(struct wd_bn_grid_work),
    .emit = emit,
};
