/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's inside. One recursive lock guards all of it: every exported function runs between
 * fake_begin and fake_end. */
#ifndef FAKE_DRIVER_INTERNAL_H
#define FAKE_DRIVER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "fake_driver/fakecuda.h"

#define WD_CU_FUNCTION(name, exported, version, parameters) CUresult exported parameters;
#include "gpu/driver.def"

enum {
    DEVICES_MAX = 8,
    PARAMS_MAX = 8,
    PARTS_MAX = 128,
    PARAM_BYTES_MAX = 4096,
    DEPENDENCIES_MAX = 16,
};

/* Handles carry a mark, so that a wrong one is found out; dead objects keep their memory. */
enum fake_mark {
    MARK_CONTEXT = 0x46430001,
    MARK_STREAM,
    MARK_EVENT,
    MARK_LIBRARY,
    MARK_KERNEL,
    MARK_GRAPH,
    MARK_NODE,
    MARK_EXEC,
    MARK_OBJECT,
    MARK_DEAD,
    MARK_GHOST, /* the unfinished work of a stream that was destroyed */
};

struct CUctx_st {
    enum fake_mark mark;
    struct CUctx_st *next;
    uint64_t id;
    CUdevice device;
    int references; /* primary only */
    bool primary;
    struct CUstream_st *legacy;
};

struct CUfunc_st {
    int unused;
};

struct CUkern_st {
    enum fake_mark mark;
    struct CUkern_st *next;
    struct CUlib_st *library;
    char symbol[128];
    fakecuda_run run;
    void *user;
    int param_count;
    size_t param_size[PARAMS_MAX];
    int fixed_shared;
    bool large_clusters[DEVICES_MAX]; /* of more than CLUSTER_MAX blocks are allowed */
    int dynamic_shared[DEVICES_MAX];  /* allowed */
    struct fakecuda_launch latest;
    /* ran since it was last asked: a definition's steps from 1, others at 0 */
    bool fresh[PARTS_MAX];
};

struct CUlib_st {
    enum fake_mark mark;
};

/* One piece of work: waiting in a stream, or a node of a graph. */
struct CUgraphNode_st {
    enum fake_mark mark;
    struct CUgraphNode_st *next; /* in its stream or graph, in order of creation */
    struct CUgraph_st *graph;
    struct CUctx_st *context;
    CUgraphNodeType type;
    CUgraphNode after[DEPENDENCIES_MAX];
    int after_count;
    struct CUgraphNode_st *copy; /* while a graph is cloned */

    struct CUkern_st *kernel;
    struct fakecuda_launch launch;
    void *params[PARAMS_MAX];
    _Alignas(64) unsigned char values[PARAM_BYTES_MAX];

    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_MEMCPY3D transfer;
};

struct CUuserObject_st {
    enum fake_mark mark;
    struct CUuserObject_st *next;
    void *data;
    CUhostFn destroy;
    unsigned int references;
};

struct object_reference {
    struct object_reference *next;
    CUuserObject object;
    unsigned int count;
};

struct CUgraph_st {
    enum fake_mark mark;
    struct CUgraph_st *next;
    struct CUgraphNode_st *nodes;
    struct object_reference *objects;
    bool captured_into; /* not yet handed out */
};

struct CUgraphExec_st {
    enum fake_mark mark;
    struct CUgraphExec_st *next;
    struct CUgraph_st *graph; /* a copy of its own */
};

struct capture {
    struct capture *next;
    uint64_t id;
    CUstreamCaptureMode mode;
    pthread_t thread;
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureStatus status;
};

struct CUstream_st {
    enum fake_mark mark;
    struct CUstream_st *next;
    uint64_t id;
    struct CUctx_st *context;
    bool blocking;
    struct CUgraphNode_st *waiting; /* deferred work */
    struct capture *capture;
    CUgraphNode last[DEPENDENCIES_MAX]; /* what the next captured node comes after */
    int last_count;
};

struct CUevent_st {
    enum fake_mark mark;
    struct CUevent_st *next;
    struct capture *capture;
    CUgraphNode last[DEPENDENCIES_MAX];
    int last_count;
    double milliseconds; /* of the clock, when it was recorded; 0: never */
};

/* What a call may be. */
enum {
    CALL_PLAIN = 0,
    CALL_BEFORE_INIT = 1, /* allowed before cuInit */
    CALL_UNSAFE = 2,      /* forbidden while streams capture, unless the thread is relaxed */
    CALL_GIVES_BACK = 4,  /* does its work even where it is made to fail */
};

/* state.c */
void fake_lock(void);
void fake_unlock(void);
CUresult fake_begin(const char *function, int kind);
CUresult fake_end(CUresult result);
CUresult fake_problem(CUresult result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fake_leave_destructors(CUuserObject object);
int fake_device_count(void);
int fake_device_capability(void);
int fake_device_processors(void);
size_t fake_device_memory(void);
bool fake_guards_memory(void); /* reading outside of a block is an access violation */
bool fake_is_idle(void);       /* no work is done, and device memory is addresses alone */
FILE *fake_log(void);          /* of the work that is submitted, or null */
int fake_version(void);
CUresult fake_init_result(void);
void fake_mark_initialised(void);
bool fake_is_deferred(void);
uint64_t fake_next_id(void);

/* twins.c */
void fake_register_definitions(void);
/* Which of a kernel's parts this launch runs: a definition's step and one, else 0. */
int fake_part_of(const struct CUkern_st *kernel, void *const *params);

/* context.c */
CUcontext fake_current(void);
CUresult fake_need_context(CUcontext *context);
int fake_report_contexts(void);

/* memory.c */
bool fake_memory_is_valid(const void *data, size_t bytes, bool allow_host);
void fake_memory_drop_context(CUcontext context);
int fake_report_memory(void);
bool fake_readable(const void *data, size_t bytes);

/* stream.c */
CUresult fake_stream(CUstream handle, CUstream *stream);
CUresult fake_submit(CUstream handle, struct CUgraphNode_st *work);
CUresult fake_unsafe_check(const char *function);
void fake_flush(void);
void fake_stream_drop_context(CUcontext context);
int fake_report_streams(void);

/* kernel.c */
/* Adds the symbols of all kernels that were launched to a file. */
CUresult fake_kernel_work(CUfunction function, const struct fakecuda_launch *launch, void **params,
                          CUcontext context, struct CUgraphNode_st *work);
void fake_run_work(struct CUgraphNode_st *work);
void fake_log_work(const struct CUgraphNode_st *work);
void fake_count_launch(struct CUgraphNode_st *work);

/* graph.c */
CUgraph fake_graph_new(void);
CUresult fake_check_graph(CUgraph graph);
CUresult fake_graph_append(CUgraph graph, const CUgraphNode *after, size_t count,
                           const struct CUgraphNode_st *work, CUgraphNode *node);
void fake_rebase_params(struct CUgraphNode_st *to, const struct CUgraphNode_st *from);
void fake_graph_delete(CUgraph graph);
int fake_report_graphs(void);

#endif
