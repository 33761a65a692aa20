/* SPDX-License-Identifier: Apache-2.0
 *
 * A twin runs the whole grid of a definition's kernel through the pass's host function. */
#include "support/fake_twins.h"

static void run(wd_range_fn host, void **params, int64_t work)
{
    struct wd_pass_args both = {params[0], params[1]};
    host(&both, 0, work);
}

static int64_t units(const struct wd_pass *pass, void **params)
{
    const struct wd_pass_range *range = params[1];
    return pass->state_size[0] > 0 ? range->items * range->segments : range->items;
}

static void run_f32(void *user, void **params, const unsigned int grid[3])
{
    const struct wd_pass *pass = user;
    (void)grid;
    run(pass->host[WD_ACC_F32], params, units(pass, params));
}

static void run_f64(void *user, void **params, const unsigned int grid[3])
{
    const struct wd_pass *pass = user;
    (void)grid;
    run(pass->host[WD_ACC_F64], params, units(pass, params));
}

static void finish_f32(void *user, void **params, const unsigned int grid[3])
{
    const struct wd_pass *pass = user;
    (void)grid;
    run(pass->host_finish[WD_ACC_F32], params, ((const struct wd_pass_range *)params[1])->items);
}

static void finish_f64(void *user, void **params, const unsigned int grid[3])
{
    const struct wd_pass *pass = user;
    (void)grid;
    run(pass->host_finish[WD_ACC_F64], params, ((const struct wd_pass_range *)params[1])->items);
}

void fake_twins_register(const struct wd_pass *const *passes, int count)
{
    static const fakecuda_run first[2] = {run_f32, run_f64};
    static const fakecuda_run second[2] = {finish_f32, finish_f64};
    for (int i = 0; i < count; ++i) {
        const struct wd_pass *pass = passes[i];
        size_t sizes[2] = {pass->args_size, sizeof(struct wd_pass_range)};
        for (int acc = 0; acc < 2; ++acc) {
            fake->fakecuda_register_kernel(pass->kernel[acc]->symbol, first[acc], (void *)pass,
                                           sizes, 2);
            if (!pass->kernel_finish[acc]) continue;
            fake->fakecuda_register_kernel(pass->kernel_finish[acc]->symbol, second[acc],
                                           (void *)pass, sizes, 2);
        }
    }
}
