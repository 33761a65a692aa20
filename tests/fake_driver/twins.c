/* SPDX-License-Identifier: Apache-2.0
 *
 * Host twins of the definitions' kernels: a whole grid run through the pass's host function; and
 * the kernels of all engines, by the emulator. All families are registered when the driver is first
 * used, from this library's own copy of them, so that a program which knows nothing of the inside
 * runs on the fake driver too. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"
#include "fake_driver/internal.h"
#include "ops/definition.h"
#include "ops/engine.h"

static void run_definition(void *user, void **params, const struct fakecuda_launch *launch)
{
    const struct wd_definition *definition = user;
    const struct wd_pass_range *range = params[1];
    const struct wd_pass *pass = definition->passes[range->step / 4];
    enum wd_acc acc = (enum wd_acc)(range->step / 2 % 2);
    struct wd_pass_args both = {params[0], range};
    (void)launch;
    if (range->step % 2) {
        pass->host_finish[acc](&both, 0, range->items);
    } else {
        int64_t pieces = pass->state_size[acc] > 0 ? range->segments : 1;
        pass->host[acc](&both, 0, range->items * pieces);
    }
}

int fake_part_of(const struct CUkern_st *kernel, void *const *params)
{
    const struct wd_pass_range *range = kernel->run == run_definition ? params[1] : NULL;
    return !range ? 0 : range->step + 1 < PARTS_MAX ? range->step + 1 : PARTS_MAX - 1;
}

/* The kernel of the pass's family, which is that of its other passes too. */
void fakecuda_register_pass(const struct wd_pass *pass)
{
    struct wd_definition *definition = pass->definition;
    size_t sizes[2] = {definition->args_size, sizeof(struct wd_pass_range)};
    fakecuda_register_kernel(definition->kernel.symbol, run_definition, definition, sizes, 2);
}

#define WD_MAP(p, A) extern const struct wd_pass wd_pass_##p;
#define WD_REDUCE(p, A) extern const struct wd_pass wd_pass_##p;
#include "fake_driver/passes.def"
#undef WD_MAP
#undef WD_REDUCE

/* Kernels of engines run in the emulator (tests/emulator), where it was built; else they are checked
 * as launches and do nothing. */
typedef void (*emulator_run_fn)(const char *symbol, emulator_kernel kernel, const void *args,
                                const struct emulator_launch *launch);
static void *emulator;
static emulator_run_fn emulate;

static void open_emulator(void)
{
    Dl_info self;
    char path[PATH_MAX];
    const char *slash;
    if (!dladdr(&emulator, &self) || !self.dli_fname) return;
    slash = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof path, "%.*slibemulator.so", slash ? (int)(slash + 1 - self.dli_fname) : 0,
             self.dli_fname);
    emulator = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (emulator) memcpy(&emulate, &(void *){dlsym(emulator, "emulator_run")}, sizeof emulate);
}

static void run_engine(void *user, void **params, const struct fakecuda_launch *launch)
{
    const struct wd_kernel_row *row = user;
    void *symbol = emulate ? dlsym(emulator, row->kernel.symbol) : NULL;
    emulator_kernel kernel;
    struct emulator_launch how = {{launch->grid[0], launch->grid[1], launch->grid[2]},
                                  {launch->block[0], launch->block[1], launch->block[2]},
                                  launch->cluster,
                                  launch->shared,
                                  launch->meets};
    if (!symbol) return;
    memcpy(&kernel, &symbol, sizeof kernel);
    emulate(row->kernel.symbol, kernel, params[0], &how);
}

static void register_engines(void)
{
    open_emulator();
    for (int i = 0; i < wd_engine_rows(); ++i) {
        const struct wd_engine *engine = wd_engine_row(i).engine;
        if (!engine || !engine->kernels) continue;
        for (int k = 0; k < engine->kernels->count; ++k) {
            struct wd_kernel_row *row = &engine->kernels->rows[k];
            fakecuda_register_kernel(row->kernel.symbol, run_engine, row, &row->args_size, 1);
        }
    }
}

void fake_register_definitions(void)
{
    register_engines();
#define WD_MAP(p, A) fakecuda_register_pass(&wd_pass_##p);
#define WD_REDUCE(p, A) fakecuda_register_pass(&wd_pass_##p);
#include "fake_driver/passes.def"
#undef WD_MAP
#undef WD_REDUCE
}
