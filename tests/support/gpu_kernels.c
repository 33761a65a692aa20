/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' own kernels. */
#include "support/gpu_kernels.h"

#include <string.h>

#include "base/status.h"

static struct wd_module module = {"test", NULL, NULL, {NULL}};

struct wd_kernel line_kernel = {&module, "test_line", {NULL}, 0, 0};
struct wd_kernel other_kernel = {&module, "test_other", {NULL}, 0, 0};
struct wd_kernel absent_kernel = {&module, "test_absent", {NULL}, 0, 0};

_Thread_local void *through_scratch_at;

static void line(void *user, void **params, const struct fakecuda_launch *launch)
{
    const struct line_args *a = params[0];
    const struct line_size *size = params[1];
    (void)user;
    (void)launch;
    for (int64_t i = 0; i < size->count; ++i) a->y[i] = a->a * a->x[i] + a->b;
}

void gpu_kernels_reset(void)
{
    static const size_t sizes[2] = {sizeof(struct line_args), sizeof(struct line_size)};
    struct wd_kernel *all[] = {&line_kernel, &other_kernel, &absent_kernel};
    memset(module.library, 0, sizeof module.library);
    for (int i = 0; i < 3; ++i) {
        memset(all[i]->function, 0, sizeof all[i]->function);
        all[i]->shared_allowed = 0;
        all[i]->large_clusters_allowed = 0;
    }
    fake->fakecuda_register_kernel("test_line", line, NULL, sizes, 2);
    fake->fakecuda_register_kernel("test_other", line, NULL, sizes, 2);
}

struct wd_launch line_launch(struct wd_kernel *kernel, const struct line_args *args,
                             const struct line_size *size)
{
    return (struct wd_launch){
        .kernel = kernel,
        .grid = {(uint32_t)((size->count + 127) / 128), 1, 1},
        .block = {128, 1, 1},
        .param_count = 2,
        .param = {args, size},
        .param_size = {sizeof *args, sizeof *size},
    };
}

static cudnnStatus_t emit_line(struct wd_queue *queue, float *y, const float *x, float a, float b,
                               int64_t count)
{
    struct line_args args = {y, x, a, b};
    struct line_size size = {count};
    struct wd_launch launch = line_launch(&line_kernel, &args, &size);
    return queue->ops->kernel(queue, &launch);
}

cudnnStatus_t run_line(struct wd_queue *queue, float *y, const float *x, int64_t count)
{
    cudnnStatus_t status;
    WD_TRY(queue->ops->begin(queue));
    status = emit_line(queue, y, x, 2, 3, count);
    queue->ops->end(queue);
    return status;
}

static cudnnStatus_t emit_through_scratch(struct wd_queue *queue, float *y, const float *x,
                                          int64_t count)
{
    size_t bytes = (size_t)count * sizeof(float);
    void *scratch = NULL;
    WD_TRY(queue->ops->scratch(queue, bytes, &scratch));
    through_scratch_at = scratch;
    WD_TRY(queue->ops->fill(queue, scratch, 0, bytes));
    WD_TRY(emit_line(queue, scratch, x, 2, 0, count));
    return emit_line(queue, y, scratch, 1, 3, count);
}

cudnnStatus_t run_through_scratch(struct wd_queue *queue, float *y, const float *x, int64_t count)
{
    cudnnStatus_t status;
    WD_TRY(queue->ops->begin(queue));
    status = emit_through_scratch(queue, y, x, count);
    queue->ops->end(queue);
    return status;
}
