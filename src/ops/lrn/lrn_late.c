/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of local response normalization of planes, windows of five in fp32, as lrn_vector has it, but
 * that a walk begins where the channels do: of images of few channels all is loaded at once. */
#include "base/sizes.h"
#include "base/status.h"
#include "ops/lrn/lrn_host.h"

#define WD_KERNELS_MODULE lrn_late
#define WD_KERNELS_ROWS "ops/lrn/lrn_late_kernels.def"
#include "ops/kernels_host.inc"

enum {
    WINDOW = 5,
    RUN = 4,
    CHANNELS_MOST = 32, /* of more the four steps that are left out are few */
};

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_lrn_attr *attr = &problem->node->attr.lrn;
    const struct wd_tensor *tensor[3];
    const struct wd_tensor *x;
    int64_t pixels;
    int count = wd_lrn_tensors(problem, tensor);
    x = tensor[0];
    WD_NEED(attr->window == WINDOW, reason, NOT_SUPPORTED_SHAPE, "a window of %d channels, not %d",
            attr->window, WINDOW);
    WD_NEED(attr->alpha >= 0.0, reason, NOT_SUPPORTED,
            "lrnAlpha=%g is negative, and so may be what a power is taken of", attr->alpha);
    WD_NEED(x->dtype == CUDNN_DATA_FLOAT, reason, NOT_SUPPORTED, "%s, not fp32",
            wd_dtype_name(x->dtype));
    for (int i = 0; i < count; ++i) {
        WD_NEED(wd_lrn_has_planes(tensor[i]), reason, NOT_SUPPORTED_LAYOUT,
                "the pixels of a channel do not lie without gaps");
    }
    WD_NEED(wd_tensor_count(x) > 0 && x->dim[1] <= CHANNELS_MOST, reason, NOT_SUPPORTED_SHAPE,
            "%lld elements of %lld channels", (long long)wd_tensor_count(x), (long long)x->dim[1]);
    pixels = wd_tensor_count(x) / x->dim[1];
    WD_NEED(pixels <= LRN_ITEMS_MAX, reason, NOT_SUPPORTED_SHAPE, "%lld pixels, at most %d",
            (long long)pixels, LRN_ITEMS_MAX);
    return true;
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *tensor[3];
    struct lrn_vector_args a = wd_lrn_args(call, queue->device);
    int kernel = KERNEL_lrn_late_backward_5_f32_run;
    int64_t run = RUN;
    int64_t threads;
    wd_lrn_tensors(&call->problem, tensor);
    if (!wd_lrn_runs_fit(&a, wd_lrn_plane(tensor[0]), run, wd_dtype_bytes(tensor[0]->dtype))) {
        kernel = KERNEL_lrn_late_backward_5_f32_one;
        run = 1;
    }
    threads = wd_lrn_cut_planes(tensor[0], queue->device, run, &a);
    return wd_emit_kernel(queue, &kernel_rows[kernel], wd_ceil_div(threads, LRN_THREADS),
                          LRN_THREADS, 0, &a);
}

const struct wd_engine wd_engine_lrn_backward_late = {
    .name = "lrn_backward_late",
    .op = WD_OP_LRN_BACKWARD,
    .device = WD_GPU,
    .untried = true,
    .kernels = &kernels,
    .match = match,
    .emit = emit,
};
