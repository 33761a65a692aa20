/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems, and what a family of them must say. A problem is a row of a family's list: a call, a type,
 * a layout, dims and parameters. The family's `plan` turns it into operands (tensors with their roles
 * and ranges of values) and the bytes that must move; `prepare` makes the descriptors in one library;
 * `run` is the call. Everything else, buffers, data, capture, timing, comparison, tables, is common.
 * To add a family: family_X.c with its list X.def, and a row in families.def. */
#ifndef BENCH_PROBLEM_H
#define BENCH_PROBLEM_H

#include <stdint.h>

#include "library.h"

enum { DIMS_MAX = 5, OPERANDS_MAX = 14, PARAMETERS_MAX = 4 };
enum layout { NCHW, NHWC };
enum dimension { DIM_N, DIM_C, DIM_D, DIM_H, DIM_W };

struct problem {
    const char *call; /* a row of the family's table */
    cudnnDataType_t type;
    enum layout layout;
    int dims[DIMS_MAX]; /* N C D H W; D is 1 in two dimensions */
    int odd;            /* elements that every pointer lies off its alignment */
    int p[PARAMETERS_MAX];
};

/* The lists: PROBLEM(call, FP32, NCHW, N, C, D, H, W, odd, parameters...). */
enum bench_type {
    FP64 = CUDNN_DATA_DOUBLE,
    FP32 = CUDNN_DATA_FLOAT,
    FP16 = CUDNN_DATA_HALF,
    BF16 = CUDNN_DATA_BFLOAT16,
    INT8 = CUDNN_DATA_INT8,
    INT32 = CUDNN_DATA_INT32,
};
#define PROBLEM(call, type, layout, N, C, D, H, W, odd, ...)                                       \
    {#call, (cudnnDataType_t)(type), layout, {N, C, D, H, W}, odd, {__VA_ARGS__}},

enum role {
    INPUT,
    OUTPUT,
    BOTH,   /* read and written */
    OPAQUE, /* each library's own, as a reserve space is */
};

struct operand {
    const char *name;
    enum role role;
    cudnnDataType_t type;
    int rank;
    int dims[DIMS_MAX];
    int strides[DIMS_MAX];
    int64_t count; /* elements, packed */
    size_t bytes;
    double low, high; /* the range of its random values */
    double moves;     /* bytes that must move through it */
    bool unchecked;   /* an output that nothing is said about */
    bool own;         /* an output that is right in each library, and not alike */
};

struct family;
struct task {
    const struct family *family;
    const struct problem *problem;
    struct operand operand[OPERANDS_MAX];
    int count;
    double terms; /* summed or multiplied into an output element: for the tolerance */
    double slack; /* times the usual tolerance; 1 */
    double limit; /* the most that time over floor may be where the row is large; 1.5 */
    /* What is written of an image and channel depends on that one alone: where large results differ,
     * reference() decides plane by plane, of those in which they do. */
    bool planes;
    char text[160];
};

/* A problem in one library: descriptors of the operands, and what `prepare` made. */
struct session {
    const struct library *library;
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t tensor[OPERANDS_MAX];
    void *made[4];             /* the family's */
    int64_t number[4];         /* the family's */
    struct composed *composed; /* of the backend API: compose.h */
    size_t workspace_bytes;
    void *workspace;
    size_t opaque_bytes; /* of the OPAQUE operand, at most one, set by `prepare` */
};

/* What a problem of a file may say; no name: nothing but 0. */
struct parameter {
    const char *name;
    int least, most;
};
enum { PARAMETER_MOST = 1 << 20 };

struct family {
    const char *name;
    const struct problem *problems;
    int count;
    struct parameter parameter[PARAMETERS_MAX];
    /* Fills operands and text of task->problem. False: the call is not of this family. */
    bool (*plan)(struct task *task);
    /* A random problem. */
    void (*random)(struct problem *problem, uint64_t *seed);
    cudnnStatus_t (*prepare)(struct session *session, const struct task *task);
    cudnnStatus_t (*run)(struct session *session, const struct task *task, void *const *at);
    void (*finish)(struct session *session); /* may be null: nothing to release */
    /* May be null. Computes operands that depend on others, as a backward pass wants its y. */
    cudnnStatus_t (*setup)(struct session *session, const struct task *task, void *const *at);
    /* May be null. The outputs in double precision, over logical N C D H W order, of a small problem;
     * false where it does not know. */
    bool (*reference)(const struct task *task, double *const *values);
    bool arbiter; /* reference() takes a moment an element: it decides where large results differ */
    /* May be null. Whether ours' outputs are right, where libraries need not agree; says why not. */
    bool (*judge)(const struct task *task, double *const *values, char *why, size_t size);
};

extern const struct family *const families[];
extern const int family_count;

/* Of the plans. The operand's dims are given in N C D H W; where `four` (no depth in the problem) it
 * has rank 4. */
struct operand *task_tensor(struct task *task, const char *name, enum role role,
                            cudnnDataType_t type, const int dims[DIMS_MAX]);
/* 1 C 1 1 1, in fp32 or, for fp64 problems, in fp64. */
struct operand *task_channels(struct task *task, const char *name, enum role role);
/* The row's text: call, type, layout, dims, what else is said of it, and whether pointers lie odd. */
void task_text(struct task *task, const char *format, ...) __attribute__((format(printf, 2, 3)));
void task_range(struct operand *operand, double low, double high);
/* Memory of each library's own; `moves` are the bytes that it must hold at least. */
void task_opaque(struct task *task, const char *name, double moves);
/* Lays an operand out anew. */
void task_layout(const struct task *task, struct operand *operand, enum layout layout);
/* The slack of a norm over `count` elements: of few, a variance may be next to nothing, and what is
 * divided by it as far off as that makes it. */
double task_norm_slack(double count);
cudnnDataType_t task_compute(const struct task *task); /* fp64 for fp64, else fp32 */
bool task_is(const struct task *task, const char *call);

size_t type_bytes(cudnnDataType_t type);
const char *type_name(cudnnDataType_t type);
const char *layout_name(enum layout layout);

/* Constants in the type that blends are given in: those of the handle's calls for this problem. */
const void *scalar_one(const struct task *task);
const void *scalar_zero(const struct task *task);

/* Random numbers from a seed. */
uint64_t random_next(uint64_t *seed);
int random_between(uint64_t *seed, int low, int high); /* both included */
int random_pick(uint64_t *seed, int count, const int *values);
/* A size with awkward ones among it, of at most `most`. */
int random_size(uint64_t *seed, int most);
/* Type, layout, dims of at most `elements`, and now and then pointers that lie odd. */
void random_problem(struct problem *problem, uint64_t *seed, double elements);

#endif
