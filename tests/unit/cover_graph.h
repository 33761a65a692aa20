/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs for tests of covers: nodes and tensors put together by hand, a GPU that is only described,
 * and what a plan is expected to make of them. What is made belongs to the including file. */
#ifndef TESTS_UNIT_COVER_GRAPH_H
#define TESTS_UNIT_COVER_GRAPH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"

enum { NODES_MAX = 420, CHAIN = 302 };

static const struct wd_device gpu = {.kind = WD_GPU,
                                     .capability = 90,
                                     .multiprocessors = 132,
                                     .shared_per_block = 232448,
                                     .shared_per_processor = 233472,
                                     .l2_bytes = 50 << 20,
                                     .memory_bytes = (int64_t)80 << 30,
                                     .cooperative = true};

static struct wd_node node[NODES_MAX];
static struct wd_tensor tensor[3 * NODES_MAX];
static struct wd_graph graph;
static struct wd_plan *plan;

static inline void begin(void)
{
    wd_plan_destroy(plan);
    plan = NULL;
    memset(node, 0, sizeof node);
    memset(tensor, 0, sizeof tensor);
    graph = (struct wd_graph){node, tensor, 0, 0, 0};
}

static inline int16_t tensor_of(int dtype, int64_t rows, int flags)
{
    int t = graph.tensor_count++;
    tensor[t] = (struct wd_tensor){.uid = t + 1,
                                   .dtype = dtype,
                                   .rank = 4,
                                   .vect_count = 1,
                                   .flags = flags,
                                   .dim = {rows, 8, 3, 5},
                                   .stride = {120, 15, 5, 1}};
    return (int16_t)t;
}

static inline int16_t real(void)
{
    return tensor_of(CUDNN_DATA_FLOAT, 2, 0);
}

static inline int16_t between(void)
{
    return tensor_of(CUDNN_DATA_FLOAT, 2, WD_VIRTUAL);
}

static inline struct wd_node *add(enum wd_op op, const int16_t *slots, int count)
{
    struct wd_single single;
    struct wd_node *made = &node[graph.node_count++];
    wd_single_init(&single, op);
    *made = single.node;
    memcpy(made->slot, slots, sizeof slots[0] * (size_t)count);
    return made;
}

/* y = mode(x, b, t); operands that a mode does not have are -1. */
static inline struct wd_node *select_of(int mode, int16_t x, int16_t b, int16_t t, int16_t y)
{
    struct wd_node *made = add(WD_OP_POINTWISE, (int16_t[]){x, b, t, y}, 4);
    made->attr.pointwise.mode = mode;
    made->attr.pointwise.compute = CUDNN_DATA_FLOAT;
    made->scalar_class[0] = made->scalar_class[1] = made->scalar_class[2] = WD_SCALAR_ONE;
    return made;
}

static inline struct wd_node *two(int mode, int16_t x, int16_t b, int16_t y)
{
    return select_of(mode, x, b, -1, y);
}

static inline struct wd_node *one(int mode, int16_t x, int16_t y)
{
    return select_of(mode, x, -1, -1, y);
}

/* What is no pointwise operation. */
static inline void softmax(int16_t x, int16_t y)
{
    struct wd_node *made = add(WD_OP_SOFTMAX_FORWARD, (int16_t[]){x, y}, 2);
    made->scalar_class[0] = WD_SCALAR_ONE;
    made->attr.softmax.algorithm = CUDNN_SOFTMAX_ACCURATE;
    made->attr.softmax.mode = CUDNN_SOFTMAX_MODE_INSTANCE;
}

/* Plans, and expects pieces of these nodes: "0 1 3|2". */
static inline void expect_pieces(const char *expected)
{
    char text[4096] = "";
    size_t length = 0;
    assert_int_equal(wd_plan_create(&gpu, &graph, &plan), 0);
    assert_int_equal(plan->cover.piece_count, plan->step_count);
    for (int p = 0; p < plan->step_count; ++p) {
        for (int i = plan->cover.begin[p]; i < plan->cover.begin[p + 1]; ++i) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%d",
                                       i > plan->cover.begin[p] ? " "
                                       : p > 0                  ? "|"
                                                                : "",
                                       (int)plan->cover.order[i]);
        }
    }
    assert_string_equal(text, expected);
}

static inline void expect_candidates(int count, int a, int b, int c)
{
    const int expected[3] = {a, b, c};
    int ids[8] = {-1, -1, -1};
    assert_int_equal(wd_plan_candidates(&gpu, &graph, ids, 8, NULL), count);
    for (int i = 0; i < count; ++i) assert_int_equal(ids[i], expected[i]);
}

/* x0 -> x1 -> ... of `nodes` negations of one type, all but the ends virtual. */
static inline void chain_of(int nodes, int dtype)
{
    int16_t x;
    begin();
    x = tensor_of(dtype, 2, 0);
    for (int n = 0; n < nodes; ++n) {
        int16_t y = tensor_of(dtype, 2, n + 1 < nodes ? WD_VIRTUAL : 0);
        one(CUDNN_POINTWISE_NEG, x, y);
        x = y;
    }
}

#endif
