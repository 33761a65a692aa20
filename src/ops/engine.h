/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of an engine: one way to do one operation on one kind of device. An engine is a file
 * in its family's folder and a row in engines.def. It says whether it takes a problem (and if not,
 * why), how much workspace it needs, and emits its work into a queue. All three are pure functions
 * of their arguments, safe for threads; emit allocates nothing and waits for nothing. */
#ifndef WD_OPS_ENGINE_H
#define WD_OPS_ENGINE_H

#include "base/queue.h"
#include "graph/graph.h"
#include "ops/definition.h"
#include "ops/kernels.h"

/* One node on one device: what an engine is asked about. */
struct wd_problem {
    const struct wd_graph *graph;
    const struct wd_node *node;
    const struct wd_device *device;
};

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

/* One execution of a problem. */
struct wd_call {
    struct wd_problem problem;
    void *const *data;     /* by the graph's tensor index; by-value tensors: host memory */
    const double *scalars; /* of the node, in the operation table's order */
    void *workspace;       /* as many bytes as the engine said, WD_WORKSPACE_ALIGNMENT aligned */
};

struct wd_engine {
    const char *name;
    enum wd_op op;
    enum wd_device_kind device;
    /* The definition, or another engine that takes anything and hurries nowhere. */
    bool last_resort;
    /* cudnnBackendNumericalNote_t as a mask; always true ones. */
    uint32_t notes;
    const struct wd_kernel_table *kernels; /* of a CUDA engine; null: none but the passes */
    bool (*match)(const struct wd_problem *problem, struct wd_reason *reason);
    /* Bytes of workspace; null: none. Asked only of problems that match. */
    int64_t (*workspace)(const struct wd_problem *problem);
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

/* How the CPU module hands its engines over: a function from id to engine; null answers leave the
 * row empty. */
void wd_engine_set_cpu_module(const void *(*engine_by_id)(int id));
/* Before planning for a kind of device: loads the CPU module for a CPU, so that a plan is the same
 * whether or not a handle was made before. */
void wd_engines_prepare(enum wd_device_kind kind);

/* The tensor in a slot of the call as a view; an absent slot gives a view of rank 0 without data,
 * which reads as 0. */
struct wd_view wd_call_view(const struct wd_call *call, int slot);
const struct wd_tensor *wd_call_tensor(const struct wd_call *call, int slot);
void *wd_call_data(const struct wd_call *call, int slot);

/* The accumulator of the last resort for a node: double where a tensor or the compute type is wide,
 * and where integers are summed, so that the sum is exact. */
enum wd_acc wd_problem_acc(const struct wd_problem *problem);

#endif
