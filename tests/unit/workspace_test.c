/* SPDX-License-Identifier: Apache-2.0
 *
 * The workspace of plans by lifetime: what shares memory and what must not, checked against every
 * pair of bookings; sums that overflow; and graphs whose values show it when something is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BE_FAIL fail_msg
#include "base/alloc.h"
#include "plan/plan.h"
#include "plan/workspace.h"
#include "support/backend_build.h"

enum { UNIT = WD_BOOKING_ALIGNMENT };

static cudnnHandle_t handle;
static uint64_t random_state = 1;

static int random_below(int limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)limit);
}

static int64_t book(struct wd_booking *bookings, int count, int steps)
{
    int64_t total = -1;
    int refused = -2;
    assert_int_equal(wd_workspace_book(bookings, count, steps, &total, &refused), 0);
    assert_int_equal(refused, -1);
    return total;
}

static bool is_used(const struct wd_booking *b)
{
    return b->bytes > 0 && b->last >= b->first;
}

static int64_t rounded(const struct wd_booking *b)
{
    return (b->bytes + UNIT - 1) / UNIT * UNIT;
}

/* By brute force: places within the total, and none shared at a time. */
static void check_apart(const struct wd_booking *bookings, int count, int64_t total)
{
    for (int i = 0; i < count; ++i) {
        const struct wd_booking *a = &bookings[i];
        assert_int_equal(a->offset % UNIT, 0);
        if (!is_used(a)) continue;
        assert_true(a->offset >= 0 && a->offset + a->bytes <= total);
        for (int k = 0; k < i; ++k) {
            const struct wd_booking *b = &bookings[k];
            if (!is_used(b) || a->last < b->first || b->last < a->first) continue;
            if (a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset) continue;
            fail_msg("booking %d (steps %d to %d) and %d (%d to %d) overlap", k, b->first, b->last,
                     i, a->first, a->last);
        }
    }
}

/* Most bytes that any one step needs: no placement takes less. */
static int64_t peak(const struct wd_booking *bookings, int count, int steps)
{
    int64_t most = 0;
    for (int s = 0; s < steps; ++s) {
        int64_t now = 0;
        for (int i = 0; i < count; ++i) {
            const struct wd_booking *b = &bookings[i];
            if (is_used(b) && b->first <= s && s <= b->last) now += rounded(b);
        }
        if (now > most) most = now;
    }
    return most;
}

static void test_chain(void **state)
{
    struct wd_booking chain[9]; /* between ten steps */
    (void)state;
    for (int i = 0; i < 9; ++i) chain[i] = (struct wd_booking){1000, i, i + 1, -1};
    assert_int_equal(book(chain, 9, 10), 2 * 1024);
    for (int i = 0; i < 9; ++i) assert_int_equal(chain[i].offset, i % 2 * 1024);
    /* growing ones: the last two decide */
    for (int i = 0; i < 9; ++i) chain[i] = (struct wd_booking){UNIT * (i + 1), i, i + 1, -1};
    assert_int_equal(book(chain, 9, 10), 17 * UNIT);
    check_apart(chain, 9, 17 * UNIT);
}

static void test_diamond(void **state)
{
    /* a = f(x); b = g(a); c = h(a); d = b + c; y = d * c */
    struct wd_booking diamond[] = {
        {UNIT, 0, 2, -1}, {UNIT, 1, 3, -1}, {UNIT, 2, 4, -1}, {UNIT, 3, 4, -1}};
    (void)state;
    assert_int_equal(book(diamond, 4, 5), 3 * UNIT);
    check_apart(diamond, 4, 3 * UNIT);
    assert_int_equal(diamond[3].offset, diamond[0].offset);
}

/* Scratch of one step lies where tensors of other steps do. */
static void test_scratch(void **state)
{
    struct wd_booking bookings[] = {
        {UNIT, 0, 1, -1},      {UNIT, 1, 2, -1},     {UNIT, 2, 3, -1}, /* a chain of four steps */
        {10 * UNIT, 3, 3, -1}, {3 * UNIT, 0, 0, -1},                   /* scratch of its ends */
    };
    (void)state;
    assert_int_equal(book(bookings, 5, 4), 11 * UNIT);
    check_apart(bookings, 5, 11 * UNIT);
}

static void test_nothing(void **state)
{
    struct wd_booking bookings[] = {{0, 0, 1, -1}, {500, 1, 0, -1}, {0, 1, 0, -1}};
    (void)state;
    assert_int_equal(book(bookings, 3, 2), 0);
    assert_int_equal(bookings[1].offset, 0);
    assert_int_equal(book(NULL, 0, 0), 0);
    /* a byte takes a unit */
    bookings[0].bytes = 1;
    assert_int_equal(book(bookings, 3, 2), UNIT);
}

/* Up to `most` bookings a round; returns how much more than the least possible they took. */
static double random_rounds(int rounds, int fewest, int most, int longest)
{
    struct wd_booking *bookings = calloc((size_t)most, sizeof *bookings);
    struct wd_booking *again = calloc((size_t)most, sizeof *again);
    double excess = 0.0;
    for (int round = 0; round < rounds; ++round) {
        int steps = 1 + random_below(longest);
        int count = fewest + random_below(most - fewest + 1);
        int reach = 1 + random_below(steps);
        int64_t sum = 0, least, total;
        for (int i = 0; i < count; ++i) {
            int first = random_below(steps);
            int last = first + random_below(reach);
            bookings[i].first = first;
            bookings[i].last = last < steps ? last : steps - 1;
            bookings[i].bytes = random_below(4) ? 1 + random_below(1 << random_below(20)) : 4096;
            if (random_below(20) == 0) bookings[i].bytes = 0;
            if (random_below(20) == 0) bookings[i].last = bookings[i].first - 1;
            bookings[i].offset = -7;
            sum += rounded(&bookings[i]);
        }
        memcpy(again, bookings, sizeof bookings[0] * (size_t)count);
        total = book(bookings, count, steps);
        check_apart(bookings, count, total);
        least = peak(bookings, count, steps);
        assert_in_range(total, least, sum);
        excess += least ? (double)total / (double)least : 1.0;
        assert_int_equal(book(again, count, steps), total);
        assert_memory_equal(again, bookings, sizeof bookings[0] * (size_t)count);
    }
    free(bookings);
    free(again);
    print_message("%d random graphs of %d to %d bookings: %.4f of the least possible\n", rounds,
                  fewest, most, excess / rounds);
    return excess / rounds - 1.0;
}

static void test_random(void **state)
{
    (void)state;
    assert_true(random_rounds(3000, 1, 120, 40) < 0.02);
}

/* So many that they are placed step by step. */
static void test_random_many(void **state)
{
    (void)state;
    assert_true(random_rounds(20, 1025, 3000, 1500) < 0.2);
}

/* Few bookings, and so many that they are placed step by step. */
static void test_overflow(void **state)
{
    const int64_t most = INT64_MAX / UNIT * UNIT;
    static const int counts[2] = {3, 2000};
    (void)state;
    for (int i = 0; i < 2; ++i) {
        struct wd_booking bookings[2000] = {{most, 0, 0, -1}, {most, 1, 1, -1}, {UNIT, 2, 3, -1}};
        int64_t total;
        int refused;
        assert_int_equal(book(bookings, counts[i], 4), most);
        bookings[2].first = 1;
        assert_int_equal(wd_workspace_book(bookings, counts[i], 4, &total, &refused),
                         CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
        assert_int_equal(refused, 2); /* the largest come first */
        bookings[2].first = 2;
        bookings[1].bytes = most + 1;
        assert_int_equal(wd_workspace_book(bookings, counts[i], 4, &total, &refused),
                         CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
        assert_int_equal(refused, 1);
        bookings[1].bytes = -1;
        assert_int_equal(wd_workspace_book(bookings, counts[i], 4, &total, &refused),
                         CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
        assert_int_equal(refused, 1);
    }
}

static void test_no_memory(void **state)
{
    struct wd_booking bookings[] = {{1, 0, 1, -1}, {1, 1, 1, -1}};
    uint64_t before = wd_alloc_bytes();
    int64_t total;
    int refused;
    (void)state;
    wd_alloc_fail_at(1);
    assert_int_equal(wd_workspace_book(bookings, 2, 2, &total, &refused),
                     CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    assert_non_null(strstr(wd_last_error(), "no host memory to book workspace for 2 steps"));
    wd_alloc_fail_at(0);
    assert_int_equal(wd_alloc_bytes(), before);
}

/* ---- whole plans: random graphs of sums, of softmaxes and of matrix products, which need scratch
 * on some engine each ---- */

enum { NODES = 40 };

struct random_graph {
    struct wd_graph graph;
    struct wd_node node[NODES];
    struct wd_tensor tensor[NODES + 2];
};

static void bind(struct wd_node *node, int slot, int tensor)
{
    node->slot[slot] = (int16_t)tensor;
}

/* Node n writes tensor n + 2; tensors 0 and 1 are the caller's, and the last one. */
static void make_random(struct random_graph *g, cudnnDataType_t type)
{
    struct wd_single single;
    memset(g, 0, sizeof *g);
    g->graph = (struct wd_graph){g->node, g->tensor, NODES, NODES + 2, 0};
    for (int t = 0; t < NODES + 2; ++t) {
        g->tensor[t] = (struct wd_tensor){.uid = t + 1,
                                          .dtype = (int32_t)type,
                                          .rank = 4,
                                          .vect_count = 1,
                                          .flags = t >= 2 && t <= NODES ? WD_VIRTUAL : 0,
                                          .dim = {2, 3, 40, 40},
                                          .stride = {4800, 1600, 40, 1}};
    }
    for (int n = 0; n < NODES; ++n) {
        int left = n + 1 - random_below(n + 2 < 9 ? n + 2 : 9);
        int right = n + 1 - random_below(n + 2 < 9 ? n + 2 : 9);
        static const enum wd_op ops[3] = {WD_OP_POINTWISE, WD_OP_SOFTMAX_FORWARD, WD_OP_MATMUL};
        enum wd_op op = ops[random_below(3)];
        wd_single_init(&single, op);
        wd_single_scalar(&single, 0, 1.0);
        if (op == WD_OP_POINTWISE) {
            single.node.attr.pointwise.mode = CUDNN_POINTWISE_ADD;
            single.node.attr.pointwise.compute = CUDNN_DATA_FLOAT;
            bind(&single.node, 3, n + 2);
        } else if (op == WD_OP_SOFTMAX_FORWARD) {
            single.node.attr.softmax.mode = CUDNN_SOFTMAX_MODE_INSTANCE;
            single.node.attr.softmax.algorithm = CUDNN_SOFTMAX_ACCURATE;
            bind(&single.node, 1, n + 2);
        } else {
            single.node.attr.matmul.compute = CUDNN_DATA_FLOAT;
            bind(&single.node, 2, n + 2);
        }
        bind(&single.node, 0, left);
        if (op != WD_OP_SOFTMAX_FORWARD) bind(&single.node, 1, right);
        g->node[n] = single.node;
    }
}

static void test_plans(void **state)
{
    struct wd_device device = {.kind = WD_CPU, .ordinal = -1, .multiprocessors = 1};
    static const cudnnDataType_t types[2] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF};
    static struct random_graph g;
    int scratches = 0;
    (void)state;
    for (int round = 0; round < 60; ++round) {
        struct wd_plan *plan = NULL;
        struct wd_booking found[2 * NODES + 2];
        make_random(&g, types[round % 2]);
        if (wd_plan_create(&device, &g.graph, &plan) != 0) fail_msg("%s", wd_last_error());
        /* what the plan says, put together apart from how it was booked */
        for (int t = 0; t < NODES + 2; ++t) {
            bool is_virtual = (g.tensor[t].flags & WD_VIRTUAL) != 0;
            found[t] = (struct wd_booking){0, t - 2, t - 2, 0};
            assert_int_equal(plan->virtual_offset[t] >= 0, is_virtual);
            if (!is_virtual) continue;
            found[t].offset = plan->virtual_offset[t];
            found[t].bytes = wd_tensor_extent(&g.tensor[t]);
            for (int n = 0; n < NODES; ++n) {
                if (g.node[n].slot[0] == t || g.node[n].slot[1] == t) found[t].last = n;
            }
        }
        for (int n = 0; n < NODES; ++n) {
            const struct wd_step *step = &plan->steps[n];
            found[NODES + 2 + n] =
                (struct wd_booking){step->workspace_bytes, n, n, step->workspace_offset};
            assert_true(step->workspace_bytes >= 0);
            scratches += step->workspace_bytes > 0;
        }
        check_apart(found, 2 * NODES + 2, plan->workspace);
        assert_in_range(plan->workspace, peak(found, 2 * NODES + 2, NODES),
                        (NODES / 2) * rounded(&found[2]) + 64 * 1048576);
        wd_plan_destroy(plan);
    }
    print_message("%d steps with scratch\n", scratches);
    assert_true(scratches > 100);
}

static void test_plan_no_memory(void **state)
{
    struct wd_device device = {.kind = WD_CPU, .ordinal = -1, .multiprocessors = 1};
    static struct random_graph g;
    uint64_t before = wd_alloc_bytes();
    struct wd_plan *plan = NULL;
    uint64_t n = 1;
    (void)state;
    make_random(&g, CUDNN_DATA_FLOAT);
    for (;; ++n) {
        cudnnStatus_t status;
        wd_alloc_fail_at(n);
        status = wd_plan_create(&device, &g.graph, &plan);
        wd_alloc_fail_at(0);
        if (status == 0) break;
        assert_int_equal(status, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        assert_non_null(strstr(wd_last_error(), "no host memory"));
        assert_int_equal(wd_alloc_bytes(), before);
        assert_true(n < 100);
    }
    assert_true(n > 6); /* the plan's four, and the booking's two */
    wd_plan_destroy(plan);
    assert_int_equal(wd_alloc_bytes(), before);
}

/* ---- values: sums of whole numbers along random graphs, on the public API ---- */

static void test_values(void **state)
{
    enum { LENGTH = 100, ADDS = 60, REAL_EVERY = 13 };
    static const int64_t dims[3] = {1, 4, 25};
    static float value[ADDS + 2][LENGTH], got[ADDS + 2][LENGTH];
    (void)state;
    for (int round = 0; round < 20; ++round) {
        be_desc tensor[ADDS + 2], ops[ADDS], plan;
        int64_t uids[ADDS + 2];
        void *data[ADDS + 2], *room;
        int bound = 0;
        int64_t bytes;
        for (int t = 0; t < ADDS + 2; ++t) {
            bool real = t < 2 || t == ADDS + 1 || t % REAL_EVERY == 0;
            tensor[t] = be_tensor(t + 1, CUDNN_DATA_FLOAT, 3, dims, real ? BE_PLAIN : BE_VIRTUAL);
            if (!real) continue;
            uids[bound] = t + 1;
            data[bound++] = got[t];
        }
        for (int i = 0; i < LENGTH; ++i) {
            value[0][i] = got[0][i] = (float)random_below(100);
            value[1][i] = got[1][i] = (float)random_below(100);
        }
        for (int n = 0; n < ADDS; ++n) {
            int a = n + 1 - random_below(n + 2 < 12 ? n + 2 : 12);
            int b = n + 1 - random_below(n + 2 < 12 ? n + 2 : 12);
            int mode = random_below(2) ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_SUB;
            ops[n] = be_pointwise(mode, tensor[a], tensor[b], NULL, tensor[n + 2]);
            for (int i = 0; i < LENGTH; ++i) {
                value[n + 2][i] = mode == CUDNN_POINTWISE_ADD ? value[a][i] + value[b][i]
                                                              : value[a][i] - value[b][i];
            }
        }
        plan = be_plan_of(handle, ADDS, ops);
        bytes = be_workspace(plan);
        assert_in_range(bytes, 512, 20 * 512);
        room = aligned_alloc(256, (size_t)bytes);
        memset(room, 0xff, (size_t)bytes);
        be_expect(cudnnBackendExecute(handle, plan, be_pack(bound, uids, data, room)), "execute");
        for (int i = 0; i < bound; ++i) {
            assert_memory_equal(data[i], value[uids[i] - 1], sizeof value[0]);
        }
        free(room);
        be_free_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),          cmocka_unit_test(test_diamond),
        cmocka_unit_test(test_scratch),        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_random),         cmocka_unit_test(test_random_many),
        cmocka_unit_test(test_overflow),       cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_plans),          cmocka_unit_test(test_values),
        cmocka_unit_test(test_plan_no_memory),
    };
    int failed;
    setenv("WARPDNN_DEVICE", "cpu", 1);
    if (cudnnCreate(&handle) != 0) return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    cudnnDestroy(handle);
    return failed;
}
