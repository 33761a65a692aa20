/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of a graph that is put together by hand (cover_graph.h), for tests of chains. What is made
 * belongs to the including file. */
#ifndef TESTS_UNIT_CHAIN_PROGRAM_H
#define TESTS_UNIT_CHAIN_PROGRAM_H

#include "cover_graph.h"

#include "ops/pointwise/pointwise_program.h"

enum { NEG = CUDNN_POINTWISE_NEG, ADD = CUDNN_POINTWISE_ADD, MUL = CUDNN_POINTWISE_MUL };

static struct pointwise_program program;
static struct wd_reason reason;

/* All nodes as one piece, of which nothing is read outside. */
static inline bool make(void)
{
    static int32_t piece[NODES_MAX], reader[3 * NODES_MAX];
    struct wd_problem problem = {.graph = &graph,
                                 .node = &node[graph.node_count - 1],
                                 .device = &gpu,
                                 .piece = piece,
                                 .piece_count = graph.node_count,
                                 .last_reader = reader};
    memset(reader, -1, sizeof reader);
    for (int n = 0; n < graph.node_count; ++n) {
        piece[n] = n;
        for (int s = POINTWISE_X; s <= POINTWISE_T; ++s) {
            if (node[n].slot[s] >= 0) reader[node[n].slot[s]] = n;
        }
    }
    return wd_pointwise_program_make(&problem, &program, &reason);
}

/* A negation and another, with a result between them. */
static inline void begin_between(int in_memory, int hidden, int compute)
{
    int16_t a;
    begin();
    a = tensor_of(hidden, 2, WD_VIRTUAL);
    one(NEG, tensor_of(in_memory, 2, 0), a);
    one(NEG, a, tensor_of(in_memory, 2, 0));
    node[0].attr.pointwise.compute = node[1].attr.pointwise.compute = compute;
}

#endif
