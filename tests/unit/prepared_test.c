/* SPDX-License-Identifier: Apache-2.0
 *
 * What engines prepare is made with the plan and not again in an execution: for a device that is only
 * described, plans are executed into a queue that notes launches. With nothing prepared they are the
 * same; with what was prepared of a larger problem they are that one's, which they would not be if the
 * execution worked it out anew. An engine that prepares and has no problem here fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "prepared_problems.h"

enum { LAUNCHES_MAX = 8, ARGS_MAX = 4096 };

static const struct wd_device device = {.kind = WD_GPU,
                                        .capability = 90,
                                        .multiprocessors = 132,
                                        .shared_per_block = 232448,
                                        .shared_per_processor = 233472,
                                        .l2_bytes = 62914560,
                                        .memory_bytes = (int64_t)1 << 37,
                                        .cooperative = true,
                                        .grids_meet = true};

/* Without padding, which is not alike. */
struct noted {
    const struct wd_kernel *kernel;
    uint32_t grid[3], block[3], cluster, shared;
    unsigned char args[ARGS_MAX];
};
struct record {
    int64_t count;
    struct noted noted[LAUNCHES_MAX];
};
static struct record *into;

static cudnnStatus_t note(struct wd_queue *queue, const struct wd_launch *launch)
{
    struct noted *n = &into->noted[into->count++];
    (void)queue;
    assert_true(into->count <= LAUNCHES_MAX);
    assert_true(launch->param_count == 1 && launch->param_size[0] <= ARGS_MAX);
    n->kernel = launch->kernel;
    memcpy(n->grid, launch->grid, sizeof n->grid);
    memcpy(n->block, launch->block, sizeof n->block);
    n->cluster = launch->cluster;
    n->shared = launch->shared;
    memcpy(n->args, launch->param[0], launch->param_size[0]);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t begin(struct wd_queue *queue)
{
    (void)queue;
    return CUDNN_STATUS_SUCCESS;
}

static void end(struct wd_queue *queue)
{
    (void)queue;
}

static cudnnStatus_t counters(struct wd_queue *queue, void **data)
{
    (void)queue;
    *data = aligned - apart;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Plans ---- */

static void execute(const struct wd_plan *plan, struct record *record)
{
    static const struct wd_queue_ops ops = {
        .begin = begin, .end = end, .kernel = note, .counters = counters};
    struct wd_queue queue = {.ops = &ops, .device = &device};
    struct wd_bindings bindings = {.data = single.data,
                                   .scalars = single.scalars,
                                   .workspace = aligned - 2 * apart,
                                   .workspace_bytes = apart};
    memset(record, 0, sizeof *record);
    into = record;
    assert_int_equal(wd_plan_execute(plan, &queue, &bindings), CUDNN_STATUS_SUCCESS);
    assert_true(record->count > 0);
}

static int id_of(const char *engine)
{
    for (int i = 0; i < wd_engine_rows(); ++i) {
        struct wd_engine_row row = wd_engine_row(i);
        if (row.engine && strcmp(row.engine->name, engine) == 0) return row.id;
    }
    fail_msg("%s is no engine", engine);
    return 0;
}

/* By the row's engine. `blends`: alpha is 0 and beta is not. */
static struct wd_plan *plan_of(int row, bool large, bool blends)
{
    struct wd_plan *plan = NULL;
    rows[row].problem(large);
    single.graph.engine = id_of(rows[row].engine);
    for (int i = 0; i < wd_op_info(single.node.op)->scalar_count; ++i) {
        wd_single_scalar(&single, i, i % 2 ? (blends ? 0.5 : 0.0) : !blends);
    }
    if (wd_plan_create(&device, &single.graph, &plan) != CUDNN_STATUS_SUCCESS)
        fail_msg("row %d: %s", row, wd_last_error());
    assert_int_equal(plan->step_count, 1);
    return plan;
}

static void check(int row, bool blends)
{
    static struct record first;
    static struct record again;
    struct wd_plan *large = plan_of(row, true, blends);
    struct wd_plan *plan = plan_of(row, false, blends);
    struct wd_step *step = &plan->steps[0];
    void *own = step->prepared;
    assert_non_null(own);
    /* aligned pointers, and others */
    for (int off = 0; off < 2; ++off) {
        const enum use use = rows[row].use;
        const bool uses = use == UNBLENDED ? !off && !blends : use == ALWAYS || (use == OFF) == off;
        execute(plan, &first);
        step->prepared = NULL;
        execute(plan, &again);
        if (memcmp(&first, &again, sizeof first) != 0)
            fail_msg("row %d, %s: others when nothing was prepared", row, rows[row].engine);
        step->prepared = large->steps[0].prepared;
        execute(plan, &again);
        if (uses && memcmp(&first, &again, sizeof first) == 0)
            fail_msg("row %d, %s: what was prepared is not used", row, rows[row].engine);
        step->prepared = own;
        for (int t = 0; t < single.graph.tensor_count; ++t) {
            if (single.tensors[t].flags & WD_BY_VALUE) continue;
            single.data[t] = (char *)single.data[t] + 8;
        }
    }
    wd_plan_destroy(plan);
    wd_plan_destroy(large);
}

static void test_rows(void **state)
{
    (void)state;
    for (int row = 0; row < ROWS; ++row) {
        check(row, false);
        if (wd_op_info(single.node.op)->scalar_count >= 2) check(row, true);
    }
}

static void test_all_have_one(void **state)
{
    (void)state;
    for (int i = 0; i < wd_engine_rows(); ++i) {
        const struct wd_engine *engine = wd_engine_row(i).engine;
        int row = 0;
        if (!engine || !engine->prepare) continue;
        while (row < ROWS && strcmp(rows[row].engine, engine->name) != 0) ++row;
        if (row == ROWS) fail_msg("%s prepares, and no problem here is for it", engine->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_all_have_one),
    };
    /* engines that have not run on a device yet are asked for, too */
    setenv("WARPDNN_ENGINES", "*,untried", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
