/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's graphs: nodes in order of creation, which is an order of dependence; instances,
 * which are copies; and user objects, whose destructors run when the last reference goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver/internal.h"

static struct CUgraph_st *graphs;
static struct CUgraphExec_st *execs;
static int objects_alive;

CUgraph fake_graph_new(void)
{
    struct CUgraph_st *it = calloc(1, sizeof *it);
    it->mark = MARK_GRAPH;
    it->next = graphs;
    graphs = it;
    return it;
}

CUresult fake_check_graph(CUgraph graph)
{
    if (graph && graph->mark == MARK_GRAPH) return CUDA_SUCCESS;
    return fake_problem(CUDA_ERROR_INVALID_HANDLE, "%p is no graph", (void *)graph);
}

void fake_rebase_params(struct CUgraphNode_st *to, const struct CUgraphNode_st *from)
{
    for (int i = 0; to->kernel && i < to->kernel->param_count; ++i) {
        to->params[i] = to->values + ((const unsigned char *)from->params[i] - from->values);
    }
}

CUresult fake_graph_append(CUgraph graph, const CUgraphNode *after, size_t count,
                           const struct CUgraphNode_st *work, CUgraphNode *node)
{
    struct CUgraphNode_st *it;
    struct CUgraphNode_st **link = &graph->nodes;
    if (count > DEPENDENCIES_MAX) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
        if (!after[i] || after[i]->mark != MARK_NODE || after[i]->graph != graph) {
            return fake_problem(CUDA_ERROR_INVALID_VALUE, "a dependency is no node of the graph");
        }
    }
    it = aligned_alloc(_Alignof(struct CUgraphNode_st), sizeof *it);
    *it = *work;
    it->mark = MARK_NODE;
    it->graph = graph;
    it->next = NULL;
    it->after_count = (int)count;
    for (size_t i = 0; i < count; ++i) it->after[i] = after[i];
    fake_rebase_params(it, work);
    while (*link) link = &(*link)->next;
    *link = it;
    *node = it;
    return CUDA_SUCCESS;
}

static void drop_object(CUuserObject object, unsigned int count)
{
    if (object->mark != MARK_OBJECT || object->references < count) {
        fake_problem(CUDA_SUCCESS, "a user object is released too often");
        return;
    }
    object->references -= count;
    if (object->references > 0) return;
    object->mark = MARK_DEAD;
    objects_alive -= 1;
    fake_leave_destructors(object);
}

void fake_graph_delete(CUgraph graph)
{
    graph->mark = MARK_DEAD;
    while (graph->objects) {
        struct object_reference *it = graph->objects;
        graph->objects = it->next;
        drop_object(it->object, it->count);
        free(it);
    }
    while (graph->nodes) {
        struct CUgraphNode_st *it = graph->nodes;
        graph->nodes = it->next;
        it->mark = MARK_DEAD;
        free(it);
    }
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    CUresult result = fake_begin("cuGraphCreate", CALL_PLAIN);
    (void)flags;
    if (result == CUDA_SUCCESS) *graph = fake_graph_new();
    return fake_end(result);
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult result = fake_begin("cuGraphDestroy", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS) fake_graph_delete(graph);
    return fake_end(result);
}

static bool is_after(const struct CUgraphNode_st *it, CUgraphNode node)
{
    for (int i = 0; i < it->after_count; ++i)
        if (it->after[i] == node) return true;
    return false;
}

/* The nodes that follow `node`, or the roots, or all, into room for *count of them. */
enum which { ALL, ROOTS, FOLLOWERS };

static void list_nodes(CUgraph graph, enum which which, CUgraphNode node, CUgraphNode *nodes,
                       size_t *count)
{
    size_t room = *count;
    size_t found = 0;
    for (struct CUgraphNode_st *it = graph->nodes; it; it = it->next) {
        if (which == ROOTS && it->after_count > 0) continue;
        if (which == FOLLOWERS && !is_after(it, node)) continue;
        if (nodes && found < room) nodes[found] = it;
        found += 1;
    }
    *count = nodes && found > room ? room : found;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    CUresult result = fake_begin("cuGraphGetNodes", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS) list_nodes(graph, ALL, NULL, nodes, count);
    return fake_end(result);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    CUresult result = fake_begin("cuGraphGetRootNodes", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS) list_nodes(graph, ROOTS, NULL, nodes, count);
    return fake_end(result);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    CUresult result = fake_begin("cuGraphNodeGetDependentNodes", CALL_PLAIN);
    if (result == CUDA_SUCCESS && (!node || node->mark != MARK_NODE)) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "%p is no node", (void *)node);
    }
    if (result == CUDA_SUCCESS) list_nodes(node->graph, FOLLOWERS, node, nodes, count);
    return fake_end(result);
}

static CUresult destroy_node(CUgraphNode node)
{
    struct CUgraphNode_st **link;
    if (!node || node->mark != MARK_NODE) {
        return fake_problem(CUDA_ERROR_INVALID_HANDLE, "destroying no node");
    }
    link = &node->graph->nodes;
    while (*link != node) link = &(*link)->next;
    *link = node->next;
    for (struct CUgraphNode_st *it = node->graph->nodes; it; it = it->next)
        for (int i = 0; i < it->after_count; ++i)
            if (it->after[i] == node) it->after[i--] = it->after[--it->after_count];
    node->mark = MARK_DEAD;
    free(node);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
    CUresult result = fake_begin("cuGraphDestroyNode", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS) result = destroy_node(node);
    return fake_end(result);
}

CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy,
                            unsigned int references, unsigned int flags)
{
    CUresult result = fake_begin("cuUserObjectCreate", CALL_PLAIN);
    if (result == CUDA_SUCCESS && flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        struct CUuserObject_st *it = calloc(1, sizeof *it);
        it->mark = MARK_OBJECT;
        it->data = data;
        it->destroy = destroy;
        it->references = references;
        objects_alive += 1;
        *object = it;
    }
    return fake_end(result);
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    CUresult result = fake_begin("cuUserObjectRelease", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS) drop_object(object, count);
    return fake_end(result);
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags)
{
    CUresult result = fake_begin("cuGraphRetainUserObject", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS && object->mark != MARK_OBJECT) {
        result = fake_problem(CUDA_ERROR_INVALID_VALUE, "retaining a dead user object");
    }
    if (result == CUDA_SUCCESS) {
        struct object_reference *it = calloc(1, sizeof *it);
        it->object = object;
        it->count = count;
        it->next = graph->objects;
        graph->objects = it;
        if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) object->references += count;
    }
    return fake_end(result);
}

static struct CUgraph_st *copy_graph(const struct CUgraph_st *from)
{
    struct CUgraph_st *to = calloc(1, sizeof *to);
    to->mark = MARK_GRAPH;
    for (struct CUgraphNode_st *it = from->nodes; it; it = it->next) {
        CUgraphNode after[DEPENDENCIES_MAX];
        for (int i = 0; i < it->after_count; ++i) after[i] = it->after[i]->copy;
        fake_graph_append(to, after, (size_t)it->after_count, it, &it->copy);
    }
    for (struct object_reference *it = from->objects; it; it = it->next) {
        struct object_reference *reference = calloc(1, sizeof *reference);
        reference->object = it->object;
        reference->count = it->count;
        it->object->references += it->count;
        reference->next = to->objects;
        to->objects = reference;
    }
    return to;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUresult result = fake_begin("cuGraphInstantiate", CALL_PLAIN);
    (void)flags;
    if (result == CUDA_SUCCESS) result = fake_check_graph(graph);
    if (result == CUDA_SUCCESS) {
        struct CUgraphExec_st *it = calloc(1, sizeof *it);
        it->mark = MARK_EXEC;
        it->graph = copy_graph(graph);
        it->next = execs;
        execs = it;
        *exec = it;
    }
    return fake_end(result);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUresult result = fake_begin("cuGraphLaunch", CALL_PLAIN);
    if (result == CUDA_SUCCESS && (!exec || exec->mark != MARK_EXEC)) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "launching no graph");
    }
    for (struct CUgraphNode_st *it = result == CUDA_SUCCESS ? exec->graph->nodes : NULL;
         it && result == CUDA_SUCCESS; it = it->next) {
        result = fake_submit(stream, it);
    }
    return fake_end(result);
}

void fakecuda_run_together(CUgraphExec a, CUgraphExec b)
{
    struct CUgraphNode_st *from_a, *from_b;
    fake_lock();
    fake_flush();
    from_a = a->graph->nodes;
    from_b = b->graph->nodes;
    while (from_a || from_b) {
        if (from_a) fake_run_work(from_a), from_a = from_a->next;
        if (from_b) fake_run_work(from_b), from_b = from_b->next;
    }
    fake_unlock();
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUresult result = fake_begin("cuGraphExecDestroy", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS && (!exec || exec->mark != MARK_EXEC)) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "destroying no instance of a graph");
    }
    if (result == CUDA_SUCCESS) {
        fake_flush(); /* what it holds is held until its work is done */
        exec->mark = MARK_DEAD;
        fake_graph_delete(exec->graph);
    }
    return fake_end(result);
}

int fake_report_graphs(void)
{
    int problems = 0;
    for (struct CUgraph_st *it = graphs; it; it = it->next) {
        if (it->mark != MARK_GRAPH || it->captured_into) continue;
        fprintf(stderr, "fake driver: a graph was not destroyed\n");
        problems += 1;
    }
    for (struct CUgraphExec_st *it = execs; it; it = it->next) {
        if (it->mark != MARK_EXEC) continue;
        fprintf(stderr, "fake driver: an instance of a graph was not destroyed\n");
        problems += 1;
    }
    if (objects_alive > 0) {
        fprintf(stderr, "fake driver: %d user objects are alive\n", objects_alive);
        problems += 1;
    }
    return problems;
}
