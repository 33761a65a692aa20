/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of an operation graph's nodes: what is given in order stays so, what is not is sorted
 * with its scalars, in time that grows with the graph and not with its square; circles are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define BE_FAIL fail_msg
#define BE_MAX 20000
#include "api/backend.h"
#include "support/backend_build.h"

enum { MOST = 4000 };

static cudnnHandle_t handle;
static const int64_t dims[3] = {1, 2, 2};
static uint64_t random_state = 1;

static int random_below(int limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)limit);
}

/* An operation that writes tensor `y` and whose alpha is its name. */
static be_desc operation(be_desc mode, be_desc x, be_desc b, be_desc y, int name)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    double alpha = name + 2;
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    be_set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_DOUBLE, 1, &alpha);
    return be_final(op);
}

/* Operation n adds tensors reads[n][0] and [1] into tensor n + 1; tensor 0 is the caller's, and so
 * are those that none reads. */
static void make_operations(int nodes, int reads[][2], be_desc *ops)
{
    static be_desc tensor[MOST + 1];
    static bool inner[MOST + 1];
    be_desc mode = be_pointwise_desc(CUDNN_POINTWISE_ADD);
    memset(inner, 0, sizeof inner);
    for (int n = 0; n < nodes; ++n) inner[reads[n][0]] = inner[reads[n][1]] = true;
    for (int t = 0; t <= nodes; ++t) {
        bool is_virtual = t > 0 && inner[t];
        tensor[t] = be_tensor(t + 1, CUDNN_DATA_FLOAT, 3, dims, is_virtual ? BE_VIRTUAL : BE_PLAIN);
    }
    for (int n = 0; n < nodes; ++n) {
        ops[n] = operation(mode, tensor[reads[n][0]], tensor[reads[n][1]], tensor[n + 1], n);
    }
}

static be_desc unfinished_graph(int count, const be_desc *ops)
{
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, ops);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    return graph;
}

static const struct wd_opgraph *inside(be_desc graph)
{
    return ((const struct wd_built_graph *)(void *)((struct wd_desc *)graph)->built)->opgraph;
}

/* The operation at a place of the sorted graph, by the uid that it writes. */
static int operation_at(const struct wd_opgraph *built, int place)
{
    const struct wd_node *node = &built->graph.nodes[place];
    return (int)built->graph.tensors[node->slot[3]].uid - 2;
}

/* Every operation once, with its own scalars, behind those that it reads from. */
static void check_sorted(const struct wd_opgraph *built, int nodes, int reads[][2])
{
    static bool placed[MOST];
    int scalars = wd_op_info(WD_OP_POINTWISE)->scalar_count;
    memset(placed, 0, sizeof placed);
    assert_int_equal(built->graph.node_count, nodes);
    assert_int_equal(built->scalar_count, nodes * scalars);
    for (int n = 0; n < nodes; ++n) {
        int op = operation_at(built, n);
        assert_in_range(op, 0, nodes - 1);
        assert_false(placed[op]);
        for (int i = 0; i < 2; ++i) assert_true(!reads[op][i] || placed[reads[op][i] - 1]);
        assert_true(built->scalars[n * scalars] == op + 2.0);
        assert_true(built->scalars[n * scalars + 1] == 1.0);
        placed[op] = true;
    }
}

static void random_reads(int nodes, int reads[][2])
{
    int reach = 1 + random_below(nodes);
    for (int n = 0; n < nodes; ++n) {
        for (int i = 0; i < 2; ++i) reads[n][i] = n - random_below(n + 1 < reach ? n + 1 : reach);
    }
}

static void shuffle(be_desc *ops, int count)
{
    for (int n = count - 1; n > 0; --n) {
        int other = random_below(n + 1);
        be_desc keep = ops[n];
        ops[n] = ops[other];
        ops[other] = keep;
    }
}

static void test_order_is_kept(void **state)
{
    int reads[50][2];
    be_desc ops[50];
    (void)state;
    for (int round = 0; round < 50; ++round) {
        int nodes = 1 + random_below(50);
        const struct wd_opgraph *built;
        random_reads(nodes, reads);
        make_operations(nodes, reads, ops);
        built = inside(be_graph(handle, nodes, ops));
        check_sorted(built, nodes, reads);
        for (int n = 0; n < nodes; ++n) assert_int_equal(operation_at(built, n), n);
        be_free_all();
    }
}

static void test_shuffled(void **state)
{
    int reads[60][2];
    be_desc ops[60];
    (void)state;
    for (int round = 0; round < 300; ++round) {
        int nodes = 1 + random_below(60);
        const struct wd_opgraph *built, *again;
        random_reads(nodes, reads);
        make_operations(nodes, reads, ops);
        shuffle(ops, nodes);
        built = inside(be_graph(handle, nodes, ops));
        check_sorted(built, nodes, reads);
        again = inside(be_graph(handle, nodes, ops));
        assert_memory_equal(built->graph.nodes, again->graph.nodes,
                            sizeof *again->graph.nodes * (size_t)nodes);
        be_free_all();
    }
}

/* Out of order, an operation comes right before the first one that waits for it. */
static void test_producers_come_late(void **state)
{
    int reads[4][2] = {{0, 0}, {1, 1}, {0, 0}, {2, 3}}; /* 1 reads 0; 3 reads 1 and 2 */
    be_desc ops[4], turned[4];
    const struct wd_opgraph *built;
    static const int want[4] = {2, 0, 1, 3};
    (void)state;
    make_operations(4, reads, ops);
    turned[0] = ops[2];
    turned[1] = ops[3];
    turned[2] = ops[1];
    turned[3] = ops[0];
    built = inside(be_graph(handle, 4, turned));
    for (int n = 0; n < 4; ++n) assert_int_equal(operation_at(built, n), want[n]);
    be_free_all();
}

static void refuse_circle(int nodes, int reads[][2])
{
    static be_desc ops[MOST];
    char text[512];
    for (int round = 0; round < 3; ++round) {
        be_desc graph;
        make_operations(nodes, reads, ops);
        if (round) shuffle(ops, nodes);
        graph = unfinished_graph(nodes, ops);
        assert_int_equal(cudnnBackendFinalize(graph), CUDNN_STATUS_BAD_PARAM);
        cudnnGetLastErrorString(text, sizeof text);
        assert_non_null(strstr(text, "the operations wait for each other in a circle"));
        be_free_all();
    }
}

static void test_circles(void **state)
{
    static int reads[1000][2];
    (void)state;
    /* two */
    memcpy(reads, (int[2][2]){{2, 0}, {1, 0}}, sizeof(int[2][2]));
    refuse_circle(2, reads);
    /* three, of which an operation in front and one behind are no part */
    memcpy(reads, (int[5][2]){{0, 0}, {4, 1}, {2, 0}, {0, 3}, {3, 4}}, sizeof(int[5][2]));
    refuse_circle(5, reads);
    /* a thousand: the first reads the last */
    for (int n = 0; n < 1000; ++n) reads[n][0] = reads[n][1] = n;
    reads[0][0] = 1000;
    refuse_circle(1000, reads);
}

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* The least time of a few in which a graph of these operations is made. */
static double time_of(int nodes, const be_desc *ops)
{
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
        be_desc graph = unfinished_graph(nodes, ops);
        double start = milliseconds();
        be_expect(cudnnBackendFinalize(graph), "finalize");
        start = milliseconds() - start;
        if (start < best) best = start;
    }
    return best;
}

/* A chain in reverse takes no longer than in order, where a sort that looks for what is ready again
 * and again would take hundreds of times as long as its turn of the whole. */
static void test_reverse_is_linear(void **state)
{
    static const int lengths[2] = {2000, MOST};
    static int reads[MOST][2];
    static be_desc ops[MOST], turned[MOST];
    (void)state;
    for (int i = 0; i < 2; ++i) {
        int nodes = lengths[i];
        double forward, reverse;
        for (int n = 0; n < nodes; ++n) reads[n][0] = reads[n][1] = n;
        make_operations(nodes, reads, ops);
        for (int n = 0; n < nodes; ++n) turned[n] = ops[nodes - 1 - n];
        check_sorted(inside(be_graph(handle, nodes, turned)), nodes, reads);
        forward = time_of(nodes, ops);
        reverse = time_of(nodes, turned);
        print_message("%d operations: %.2f ms in order, %.2f ms in reverse\n", nodes, forward,
                      reverse);
        assert_true(reverse < 3.0 * forward + 1.0);
        be_free_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_kept),       cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_producers_come_late), cmocka_unit_test(test_circles),
        cmocka_unit_test(test_reverse_is_linear),
    };
    int failed;
    setenv("WARPDNN_DEVICE", "cpu", 1);
    if (cudnnCreate(&handle) != 0) return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    cudnnDestroy(handle);
    return failed;
}
