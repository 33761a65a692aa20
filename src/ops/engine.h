/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of an engine: one way to do one operation, or several at once, on one kind of device.
 * An engine is a file in its family's folder and a row in engines.def. It says whether it takes a
 * problem (and if not, why), how much workspace it needs, prepares what takes long, and emits its work into
 * a queue. All of these are pure functions of their arguments, safe for threads; emit allocates nothing and
 * waits for nothing. */
#ifndef WD_OPS_ENGINE_H
#define WD_OPS_ENGINE_H

#include "base/queue.h"
#include "graph/graph.h"
#include "ops/definition.h"
#include "ops/kernels.h"

/* What an engine is asked about: one node on one device; or a piece of the graph, several connected
 * nodes to be done together, which is asked only of engines that say so. Every value that a piece
 * reads is there before it begins, and what is read of it elsewhere is read after its end. */
struct wd_problem {
    const struct wd_graph *graph;
    const struct wd_node *node; /* the node; of a piece the last */
    const struct wd_device *device;
    const int32_t *piece; /* its nodes' indices in the graph, rising; null where there is but one */
    int32_t piece_count;  /* at least 2, or 0 where there is but one */
    const int32_t *last_reader; /* of a piece, by tensor: the last node that reads it, or -1 */
};

enum { WD_PIECE_MAX = 16 };

static inline int wd_problem_count(const struct wd_problem *problem)
{
    return problem->piece ? problem->piece_count : 1;
}

static inline const struct wd_node *wd_problem_node(const struct wd_problem *problem, int i)
{
    return problem->piece ? &problem->graph->nodes[problem->piece[i]] : problem->node;
}

/* Whether a tensor that is written by the problem is read by nobody else, so that it has no memory. */
static inline bool wd_problem_hides(const struct wd_problem *problem, int tensor)
{
    return problem->piece && (problem->graph->tensors[tensor].flags & WD_VIRTUAL) &&
           problem->last_reader[tensor] <= problem->piece[problem->piece_count - 1];
}

enum { WD_REASON_SIZE = 160 };

/* Why an engine does not take a problem: a status and one sentence with the values in it. */
struct wd_reason {
    cudnnStatus_t status;
    char text[WD_REASON_SIZE];
};

/* For match functions: WD_NEED(x->rank == 4, reason, NOT_SUPPORTED_SHAPE, "rank %d is not 4", r). */
bool wd_reject(struct wd_reason *reason, cudnnStatus_t status, const char *format, ...)
    WD_PRINTF(3, 4);
#define WD_NEED(condition, reason, status, ...)                                                    \
    do {                                                                                           \
        if (!(condition)) return wd_reject((reason), CUDNN_STATUS_##status, __VA_ARGS__);          \
    } while (0)

/* What engines may rely on, and callers' workspaces are refused without. */
enum { WD_WORKSPACE_ALIGNMENT = 16 };

/* Works something out of a problem, as many bytes as it says elsewhere; a pure function. */
typedef void (*wd_prepare_fn)(const struct wd_problem *problem, void *prepared);

/* One execution of a problem. */
struct wd_call {
    struct wd_problem problem;
    void *const *data;     /* by the graph's tensor index; by-value tensors: host memory */
    const double *scalars; /* of the node, in the operation table's order */
    void *workspace;       /* as many bytes as the engine said, WD_WORKSPACE_ALIGNMENT aligned */
    /* of a piece: the scalars of all nodes, and by node of the graph where its own begin */
    const double *graph_scalars;
    const int32_t *scalar_offset;
    const void *prepared; /* by the plan, with `prepared_by`; or null */
    wd_prepare_fn prepared_by;
};

/* The scalars of a piece's node i. */
static inline const double *wd_call_scalars(const struct wd_call *call, int i)
{
    return call->problem.piece ? call->graph_scalars + call->scalar_offset[call->problem.piece[i]]
                               : call->scalars;
}

struct wd_engine {
    const char *name;
    enum wd_op op; /* of a piece's last node, where it takes pieces */
    enum wd_device_kind device;
    /* It takes pieces of two nodes and more, and nothing else. It is asked again for every node by
     * which a piece may grow (plan/cover.h). */
    bool takes_pieces;
    /* The definition, or another engine that takes anything and hurries nowhere. */
    bool last_resort;
    /* It has not run on a real device yet, and takes part only where WARPDNN_ENGINES has a pattern
     * for it other than `*`, or the word `untried`. */
    bool untried;
    /* cudnnBackendNumericalNote_t as a mask; always true ones. */
    uint32_t notes;
    const struct wd_kernel_table *kernels; /* of a CUDA engine; null: none but the passes */
    bool (*match)(const struct wd_problem *problem, struct wd_reason *reason);
    /* Bytes of workspace; null: none. Asked only of problems that match. */
    int64_t (*workspace)(const struct wd_problem *problem);
    /* What emit would take long to work out in every execution, as how to cut a problem that matches: made
     * once, with the plan, as many bytes; null: nothing. Emit takes it from wd_call_prepared(), which tells
     * results apart by the function alone: a call whose problem is changed and that is handed on has
     * `prepared` null. */
    wd_prepare_fn prepare;
    size_t prepared_bytes;
    cudnnStatus_t (*emit)(const struct wd_call *call, struct wd_queue *queue);
};

/* Rows of engines.def, in the order in which they are tried for a problem. Ids are permanent. */
struct wd_engine_row {
    int id;
    const struct wd_engine *engine; /* null: of the CPU module, which is not loaded */
};
int wd_engine_rows(void);
struct wd_engine_row wd_engine_row(int index);
/* The engine with this id, or null. */
const struct wd_engine *wd_engine_by_id(int id);
/* The highest id plus one: what callers iterate up to. */
int wd_engine_id_limit(void);
/* The id of an engine. */
int wd_engine_id(const struct wd_engine *engine);

/* Whether the engine is one for the problem's operation and device and takes it. */
bool wd_engine_takes(const struct wd_engine *engine, const struct wd_problem *problem,
                     struct wd_reason *reason);

/* Whether WARPDNN_ENGINES has a pattern that names no engine of a kind of device: the first such one
 * into `pattern`. */
bool wd_engines_unknown(enum wd_device_kind kind, char *pattern, size_t size);

/* How the CPU module hands its engines over: a function from id to engine; null answers leave the
 * row empty. */
void wd_engine_set_cpu_module(const void *(*engine_by_id)(int id));
/* Before planning for a kind of device: loads the CPU module for a CPU, so that a plan is the same
 * whether or not a handle was made before. */
void wd_engines_prepare(enum wd_device_kind kind);

/* The tensor in a slot of the call as a view; an absent slot gives a view of rank 0 without data,
 * which reads as 0. */
struct wd_view wd_call_view(const struct wd_call *call, int slot);
struct wd_view wd_call_tensor_view(const struct wd_call *call, int index);
const struct wd_tensor *wd_call_tensor(const struct wd_call *call, int slot);
static inline void *wd_call_data(const struct wd_call *call, int slot)
{
    int index = call->problem.node->slot[slot];
    return index < 0 ? NULL : call->data[index];
}

/* What `prepare` works out of the call's problem: where the plan has it, that; else it is done now, into
 * `own`, as for calls without a plan and for engines that others hand a call to. */
const void *wd_call_prepared(const struct wd_call *call, wd_prepare_fn prepare, void *own);

/* The accumulator of the last resort for a node: double where a tensor or the compute type is wide,
 * and where integers are summed, so that the sum is exact. */
enum wd_acc wd_problem_acc(const struct wd_problem *problem);

#endif
