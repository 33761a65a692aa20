/* SPDX-License-Identifier: Apache-2.0
 *
 * Covers a graph greedily. Nodes are taken in the graph's order, in which producers come first; each
 * begins a piece of its own and joins those of its producers, as long as an engine takes the whole.
 *
 * A piece runs where its last node stands. A node that stays outside of a piece whose values it reads
 * closes that piece: it does not grow any more, so it runs before its reader does, and pieces can
 * wait for each other in no circle, for a piece that has been read from outside never joins anything.
 * What must run where it stands, since it reads a tensor that is written over later, joins nothing. No
 * state. */
#include "plan/cover.h"

#include <string.h>

#include "base/alloc.h"

enum { ENGINES_MAX = 16 };

struct growth {
    const struct wd_device *device;
    const struct wd_graph *graph;
    const int32_t *last_reader;
    const struct wd_engine *engine[ENGINES_MAX]; /* those that take pieces, best first */
    int engine_count;
    int32_t *writer; /* by tensor: the node that has written it so far, or -1 */
    int32_t *piece;  /* by node: its piece, named by one of its nodes */
    int32_t *next;   /* by node: the next of its piece, or -1 */
    int32_t *first;  /* by piece */
    int32_t *count;  /* by piece */
    uint8_t *closed; /* by piece */
    uint8_t *stays;  /* by node: it joins nothing */
};

static void find_engines(struct growth *g)
{
    for (int i = 0; i < wd_engine_rows() && g->engine_count < ENGINES_MAX; ++i) {
        struct wd_engine_row row = wd_engine_row(i);
        if (!row.engine || !row.engine->takes_pieces) continue;
        if (row.engine->device != g->device->kind) continue;
        if (g->graph->engine > 0 && row.id != g->graph->engine) continue;
        g->engine[g->engine_count++] = row.engine;
    }
}

/* What every tensor's last reader is, and which nodes read what is written later. */
static void read_graph(struct growth *g, struct wd_cover *cover)
{
    const struct wd_graph *graph = g->graph;
    int scalars = 0;
    for (int t = 0; t < graph->tensor_count; ++t) g->writer[t] = cover->last_reader[t] = -1;
    for (int n = 0; n < graph->node_count; ++n) {
        const struct wd_node *node = &graph->nodes[n];
        const struct wd_op_info *info = wd_op_info(node->op);
        cover->scalar_offset[n] = scalars;
        scalars += info->scalar_count;
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node->slot[s];
            if (t < 0) continue;
            if (info->inputs >> s & 1u) cover->last_reader[t] = n;
            if (info->outputs >> s & 1u) g->writer[t] = n;
        }
    }
    for (int n = 0; n < graph->node_count; ++n) {
        const struct wd_node *node = &graph->nodes[n];
        const struct wd_op_info *info = wd_op_info(node->op);
        for (int s = 0; s < info->slot_count; ++s) {
            int t = node->slot[s];
            if (t >= 0 && (info->inputs >> s & 1u)) g->stays[n] |= g->writer[t] > n;
        }
    }
    for (int t = 0; t < graph->tensor_count; ++t) g->writer[t] = -1;
}

static bool is_taken(const struct growth *g, const int32_t *nodes, int count)
{
    struct wd_problem problem = {.graph = g->graph,
                                 .node = &g->graph->nodes[nodes[count - 1]],
                                 .device = g->device,
                                 .piece = nodes,
                                 .piece_count = count,
                                 .last_reader = g->last_reader};
    for (int e = 0; e < g->engine_count; ++e) {
        struct wd_reason reason;
        if (g->engine[e]->op != problem.node->op) continue;
        if (wd_engine_takes(g->engine[e], &problem, &reason)) return true;
    }
    return false;
}

/* Makes one piece of two where an engine takes it. */
static void join(struct growth *g, int32_t a, int32_t b)
{
    int32_t nodes[WD_PIECE_MAX] = {0};
    int32_t left = g->first[a];
    int32_t right = g->first[b];
    int count = g->count[a] + g->count[b];
    if (count > WD_PIECE_MAX) return;
    for (int i = 0; i < count; ++i) {
        bool from_left = right < 0 || (left >= 0 && left < right);
        nodes[i] = from_left ? left : right;
        if (from_left) left = g->next[left];
        else right = g->next[right];
    }
    if (!is_taken(g, nodes, count)) return;
    for (int i = 0; i < count; ++i) {
        g->piece[nodes[i]] = a;
        g->next[nodes[i]] = i + 1 < count ? nodes[i + 1] : -1;
    }
    g->first[a] = nodes[0];
    g->count[a] = count;
}

static void place(struct growth *g, int32_t n)
{
    const struct wd_node *node = &g->graph->nodes[n];
    const struct wd_op_info *info = wd_op_info(node->op);
    g->piece[n] = g->first[n] = n;
    g->next[n] = -1;
    g->count[n] = 1;
    for (int s = 0; s < info->slot_count && g->engine_count > 0 && !g->stays[n]; ++s) {
        int t = node->slot[s];
        int32_t writer = t >= 0 && (info->inputs >> s & 1u) ? g->writer[t] : -1;
        if (writer < 0 || g->stays[writer] || g->closed[g->piece[writer]]) continue;
        if (g->piece[writer] != g->piece[n]) join(g, g->piece[writer], g->piece[n]);
    }
    for (int s = 0; s < info->slot_count; ++s) {
        int t = node->slot[s];
        int32_t writer = t >= 0 && (info->inputs >> s & 1u) ? g->writer[t] : -1;
        if (writer >= 0 && g->piece[writer] != g->piece[n]) g->closed[g->piece[writer]] = 1;
    }
    for (int s = 0; s < info->slot_count; ++s) {
        int t = node->slot[s];
        if (t >= 0 && (info->outputs >> s & 1u)) g->writer[t] = n;
    }
}

/* One piece of all nodes, where an engine that was asked for by number takes them: it may decline what
 * they would grow from, which writes tensors that the whole does not. */
static bool place_all(struct growth *g)
{
    const int32_t count = g->graph->node_count;
    int32_t nodes[WD_PIECE_MAX];
    if (g->graph->engine == 0 || g->engine_count == 0 || count > WD_PIECE_MAX) return false;
    for (int32_t n = 0; n < count; ++n) {
        if (g->stays[n]) return false;
        nodes[n] = n;
    }
    if (!is_taken(g, nodes, count)) return false;
    for (int32_t n = 0; n < count; ++n) {
        g->piece[n] = 0;
        g->next[n] = n + 1 < count ? n + 1 : -1;
    }
    g->first[0] = 0;
    return true;
}

/* The pieces in the order of their last nodes. */
static void write_order(const struct growth *g, struct wd_cover *cover)
{
    int at = 0;
    for (int32_t n = 0; n < g->graph->node_count; ++n) {
        if (g->next[n] >= 0) continue;
        cover->begin[cover->piece_count++] = at;
        for (int32_t i = g->first[g->piece[n]]; i >= 0; i = g->next[i]) cover->order[at++] = i;
    }
    cover->begin[cover->piece_count] = at;
}

cudnnStatus_t wd_cover_make(const struct wd_device *device, const struct wd_graph *graph,
                            struct wd_cover *cover)
{
    size_t nodes = (size_t)graph->node_count;
    size_t tensors = (size_t)graph->tensor_count;
    struct growth g = {.device = device, .graph = graph};
    int32_t *kept = wd_alloc(sizeof *kept * (3 * nodes + 1 + tensors));
    int32_t *scratch = wd_alloc(sizeof *scratch * (4 * nodes + tensors) + 2 * nodes);
    memset(cover, 0, sizeof *cover);
    if (!kept || !scratch) {
        wd_free(kept);
        wd_free(scratch);
        return wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                       "no host memory to cover %d operations", graph->node_count);
    }
    cover->begin = kept;
    cover->order = cover->begin + nodes + 1;
    cover->scalar_offset = cover->order + nodes;
    cover->last_reader = cover->scalar_offset + nodes;
    g.last_reader = cover->last_reader;
    g.piece = scratch;
    g.next = g.piece + nodes;
    g.first = g.next + nodes;
    g.count = g.first + nodes;
    g.writer = g.count + nodes;
    g.closed = (uint8_t *)(g.writer + tensors);
    g.stays = g.closed + nodes;
    if (graph->node_count > 1) find_engines(&g);
    read_graph(&g, cover);
    if (!place_all(&g)) {
        for (int32_t n = 0; n < graph->node_count; ++n) place(&g, n);
    }
    write_order(&g, cover);
    wd_free(scratch);
    return CUDNN_STATUS_SUCCESS;
}

void wd_cover_free(struct wd_cover *cover)
{
    wd_free(cover->begin); /* one block */
    memset(cover, 0, sizeof *cover);
}

struct wd_problem wd_cover_problem(const struct wd_cover *cover, const struct wd_device *device,
                                   const struct wd_graph *graph, int p)
{
    const int32_t *nodes = cover->order + cover->begin[p];
    int32_t count = cover->begin[p + 1] - cover->begin[p];
    struct wd_problem problem = {
        .graph = graph, .node = &graph->nodes[nodes[count - 1]], .device = device};
    if (count > 1) {
        problem.piece = nodes;
        problem.piece_count = count;
        problem.last_reader = cover->last_reader;
    }
    return problem;
}
