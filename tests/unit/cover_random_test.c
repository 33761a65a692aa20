/* SPDX-License-Identifier: Apache-2.0
 *
 * Covers of many graphs: random ones, judged by what every cover must keep to; how long planning takes;
 * and memory that runs out. Plans are made for a GPU that is only described; nothing is executed. */
#include <time.h>

#include "base/alloc.h"
#include "cover_graph.h"

static uint32_t seed;

static int below(int limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)limit);
}

static void random_graph(int nodes)
{
    int16_t made[NODES_MAX + 4];
    int count = 0;
    begin();
    for (int i = 0; i < 3; ++i) made[count++] = real();
    for (int n = 0; n < nodes; ++n) {
        /* mostly of what came last, so that there are chains */
        int16_t x = made[count - 1 - below(count < 4 || below(5) == 0 ? count : 3)];
        int16_t b = made[below(count)];
        int16_t y = tensor_of(CUDNN_DATA_FLOAT, 2, below(5) ? WD_VIRTUAL : 0);
        switch (below(8)) {
        case 0: softmax(x, y); break;
        case 1:
        case 2: two(CUDNN_POINTWISE_ADD, x, b, y); break;
        case 3: select_of(CUDNN_POINTWISE_BINARY_SELECT, x, b, made[below(count)], y); break;
        default: one(CUDNN_POINTWISE_NEG, x, y); break;
        }
        made[count++] = y;
    }
}

/* Where steps want two tensors at once, those lie apart. */
static void check_workspace(const int *piece)
{
    int first[3 * NODES_MAX], last[3 * NODES_MAX];
    for (int t = 0; t < graph.tensor_count; ++t) first[t] = -1;
    for (int n = 0; n < graph.node_count; ++n) {
        for (int s = 0; s < wd_op_info(node[n].op)->slot_count; ++s) {
            int t = node[n].slot[s];
            if (t < 0 || plan->virtual_offset[t] < 0) continue;
            if (first[t] < 0 || piece[n] < first[t]) first[t] = piece[n];
            if (first[t] == piece[n] || piece[n] > last[t]) last[t] = piece[n];
        }
    }
    for (int t = 0; t < graph.tensor_count; ++t) {
        for (int u = 0; u < t; ++u) {
            int64_t apart = plan->virtual_offset[t] - plan->virtual_offset[u];
            if (first[t] < 0 || first[u] < 0 || last[t] < first[u] || last[u] < first[t]) continue;
            assert_true(apart >= wd_tensor_extent(&tensor[u]) ||
                        -apart >= wd_tensor_extent(&tensor[t]));
        }
    }
}

/* Every node in one piece; what is read is written by a piece before, or before in the same piece;
 * what has no memory is read in its piece alone. */
static void check_cover(void)
{
    int position[NODES_MAX], piece[NODES_MAX], writer[3 * NODES_MAX];
    int at = 0;
    for (int t = 0; t < graph.tensor_count; ++t) writer[t] = -1;
    for (int n = 0; n < graph.node_count; ++n) position[n] = -1;
    for (int p = 0; p < plan->step_count; ++p) {
        const struct wd_problem *problem = &plan->steps[p].problem;
        assert_true(wd_problem_count(problem) <= WD_PIECE_MAX);
        for (int i = 0; i < wd_problem_count(problem); ++i) {
            int n = (int)(wd_problem_node(problem, i) - plan->graph->nodes);
            assert_int_equal(position[n], -1);
            position[n] = at++;
            piece[n] = p;
        }
    }
    assert_int_equal(at, graph.node_count);
    for (int n = 0; n < graph.node_count; ++n) {
        const struct wd_op_info *info = wd_op_info(node[n].op);
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node[n].slot[s];
            int from = t < 0 ? -1 : writer[t];
            if (from < 0 || !(info->inputs >> s & 1u)) continue;
            assert_true(position[from] < position[n]);
            if (tensor[t].flags & WD_VIRTUAL) {
                assert_true(plan->virtual_offset[t] >= 0 || piece[from] == piece[n]);
            }
        }
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node[n].slot[s];
            if (t >= 0 && (info->outputs >> s & 1u)) writer[t] = n;
        }
    }
    check_workspace(piece);
}

static void test_random(void **state)
{
    int several = 0;
    (void)state;
    for (uint32_t round = 0; round < 3000; ++round) {
        seed = round;
        random_graph(1 + below(40));
        if (wd_plan_create(&gpu, &graph, &plan) != 0) {
            fail_msg("seed %u: %s", (unsigned)round, wd_last_error());
        }
        check_cover();
        several += graph.node_count - plan->step_count;
    }
    assert_true(several > 3000); /* pieces are made at all */
}

static double microseconds_of(int nodes)
{
    double best = 1e9;
    for (int i = 0; i < 20; ++i) {
        struct timespec from, to;
        double took;
        seed = 7;
        random_graph(nodes);
        clock_gettime(CLOCK_MONOTONIC, &from);
        assert_int_equal(wd_plan_create(&gpu, &graph, &plan), 0);
        clock_gettime(CLOCK_MONOTONIC, &to);
        took = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
        if (took < best) best = took;
    }
    return best;
}

static void test_time(void **state)
{
    double few = microseconds_of(50);
    double many = microseconds_of(400);
    (void)state;
    print_message("planning 50 nodes takes %.0f us, 400 nodes %.0f us\n", few, many);
    assert_true(few < 1000.0);
    assert_true(many < 24.0 * few); /* eight times, were it not for the noise */
}

static void test_no_memory(void **state)
{
    uint64_t allocations;
    (void)state;
    chain_of(5, CUDNN_DATA_FLOAT);
    wd_alloc_fail_at(0);
    assert_int_equal(wd_plan_create(&gpu, &graph, &plan), 0);
    allocations = wd_alloc_fail_at(0);
    assert_true(allocations > 4);
    wd_plan_destroy(plan);
    plan = NULL;
    for (uint64_t n = 1; n <= allocations; ++n) {
        uint64_t before = wd_alloc_bytes();
        wd_alloc_fail_at(n);
        assert_int_equal(wd_plan_create(&gpu, &graph, &plan),
                         CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        wd_alloc_fail_at(0);
        assert_int_equal(wd_alloc_bytes(), before);
    }
    plan = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_no_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    wd_plan_destroy(plan);
    return failed;
}
