/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: which engines do a graph on a device, in which order, with which workspace. A plan is
 * immutable and counted; the cache keeps the ones used lately, so that asking again costs a hash
 * and a compare. Safe for threads. */
#ifndef WD_PLAN_PLAN_H
#define WD_PLAN_PLAN_H

#include "base/queue.h"
#include "graph/graph.h"
#include "ops/engine.h"
#include "plan/cover.h"

/* One piece of the graph and its engine. */
struct wd_step {
    const struct wd_engine *engine;
    struct wd_problem problem; /* of the plan's own graph and cover */
    int64_t workspace_offset;  /* of its scratch in the plan's workspace */
    int64_t workspace_bytes;
    int scalar_offset; /* of the (last) node's scalars among the execution's */
    void *prepared;    /* by the engine when the plan was made, or null */
};

/* Ids that are no engine's: the best plan there is, and one without pieces of several nodes. */
enum { WD_ENGINE_BEST = 0, WD_ENGINE_NODE_BY_NODE = 1 };

struct wd_plan {
    struct wd_graph *graph;
    struct wd_device device;
    struct wd_cover cover;
    struct wd_step *steps;
    int step_count;
    /* by tensor: its place in the workspace; -1: the caller's, or hidden within a piece */
    int64_t *virtual_offset;
    int64_t workspace; /* bytes; virtual tensors and scratch share them by lifetime */
    uint32_t notes;    /* numerical notes of all its engines */
    bool last_resort;  /* some step runs on an engine of last resort */
    char name[256];    /* its engines, for logs: "conv_fprop_def+pointwise_def" */
    /* the cache's: */
    _Atomic int references;
    uint64_t hash;
    size_t key_bytes;
    void *key;
};

/* Finds or makes the plan of a graph, which must hold. The caller releases it. Fails with the
 * graph's error, or with what each engine said. */
cudnnStatus_t wd_plan_get(const struct wd_device *device, const struct wd_graph *graph,
                          const struct wd_plan **plan);
const struct wd_plan *wd_plan_retain(const struct wd_plan *plan);
void wd_plan_release(const struct wd_plan *plan);
/* Plans that nobody else holds go at once; for tests, of which each begins with none. */
void wd_plan_cache_clear(void);

/* Makes a plan outside the cache. */
cudnnStatus_t wd_plan_create(const struct wd_device *device, const struct wd_graph *graph,
                             struct wd_plan **plan);
void wd_plan_destroy(struct wd_plan *plan);

/* The engines that take a graph, best first: fills at most `limit` ids and returns how many there
 * are. For a graph of several nodes these are the engines that take it as one piece, or, where only
 * parts of it are pieces, WD_ENGINE_BEST; and behind them WD_ENGINE_NODE_BY_NODE where every node has
 * an engine. `reason` (may be null) gets the last refusal. The graph must be valid. */
int wd_plan_candidates(const struct wd_device *device, const struct wd_graph *graph, int *ids,
                       int limit, struct wd_reason *reason);

/* What one execution brings. */
struct wd_bindings {
    void **data;           /* by tensor index; those of virtual tensors are filled in */
    const double *scalars; /* nodes in order, each as many as its operation has */
    void *workspace;
    int64_t workspace_bytes; /* WD_WORKSPACE_ARENA: take scratch from the queue */
    bool checked; /* the pointers of real tensors serve: the caller has looked, by its own names */
};
enum { WD_WORKSPACE_ARENA = -1 };

/* Emits the plan's work into the queue. */
cudnnStatus_t wd_plan_execute(const struct wd_plan *plan, struct wd_queue *queue,
                              const struct wd_bindings *bindings);

/* For warpdnnGetStatistics: executions that succeeded; plans that exist, whoever holds them; and
 * what was put into queues, to which work that has no plan adds itself. */
struct wd_plan_statistics {
    uint64_t hits;
    uint64_t misses;
    uint64_t alive;
    uint64_t executions;
};
struct wd_plan_statistics wd_plan_statistics(void);
uint64_t wd_plan_executions(void);
uint64_t wd_plans_alive(void);
uint64_t wd_plan_emitted(void);
void wd_plan_count_emitted(uint64_t count);

#endif
