/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU engines of norms over rows share on the host: which tensors are rows without gaps, and
 * the kernel that adds up rows of partial sums. Plain functions of shape, type and device. */
#ifndef WD_OPS_NORM_ROWS_H
#define WD_OPS_NORM_ROWS_H

#include "ops/norm/norm_gpu.h"

/* x as rows without gaps. */
struct wd_norm_rows {
    int64_t rows;
    int64_t length;
    int order[WD_MAX_RANK]; /* x's dimensions of more than one element, from the outermost */
    int count;
    int outer; /* of these, those that rows are counted by */
};

/* Bytes of an element. */
static inline int64_t wd_norm_bytes(const struct wd_tensor *x)
{
    return wd_norm_type(x->dtype) == NORM_ROWS_F32 ? 4 : 2;
}

/* False where a dimension of the rows lies inside of one of a row's. */
bool wd_norm_rows_see(struct wd_norm_rows *s, const struct wd_problem *problem);

/* The conditions of all, whatever a row's length and whether statistics are given; `s` is set where
 * they hold. */
bool wd_norm_rows_match(const struct wd_problem *problem, struct wd_norm_rows *s,
                        struct wd_reason *reason);

/* A call's tensors, sizes and mode; epsilon, and how rows are cut, are left to be said. */
struct norm_rows_args wd_norm_rows_args_of(const struct wd_call *call, const struct wd_norm_rows *s,
                                           const struct wd_device *device);

/* How rows are cut, see norm_rows_args.h. */
struct wd_norm_cut {
    int way; /* columns of a thread: 8, 24, 32, 40, and others in RMS norm without dbias and by strips */
    bool edges;   /* rows begin and end off boundaries of units, or threads lack some */
    bool odd;     /* such rows of more than a part of a warp */
    bool ragged;  /* the last warp of a block has fewer units: */
    int64_t left; /* so many columns */
    int64_t lanes;
    int64_t share;
    int64_t groups;
    int64_t cluster;
    int64_t clusters;
    int64_t step;    /* from a group's row to its next; of rows that are drawn, clusters */
    int64_t classes; /* of rows off the boundaries that are drawn, by where they begin */
    int64_t first;   /* of clusters, those that have `early` rows; others have `later` rows each */
    int64_t early;
    int64_t later;
    int64_t ahead;
    int64_t ring;
    int64_t lag;
    int64_t shared; /* bytes */
    bool wide;      /* forward: threads of forty columns */
    bool draws;     /* forward: a cluster draws the rows behind its first `later` ones */
    bool held;      /* backward: what a thread has of a row stays in its registers */
    bool late;      /* of these: the next row is asked for when the sums of one are there */
    bool posts;     /* the blocks of a row are no cluster, but all there at once */
};

/* Whether statistics are not given, but computed; forward. */
bool wd_norm_rows_computes(const struct wd_problem *problem);

/* False where rows are too long. Edges: rows need not begin and end on boundaries of units. */
bool wd_norm_rows_cut(struct wd_norm_cut *c, const struct wd_problem *problem,
                      const struct wd_norm_rows *s, bool edges);

/* What is prepared of a problem: its cuts, whole and with edges, where there are such, and forward what nobody walks down. */
struct wd_norm_rows_work {
    struct wd_norm_rows rows;
    struct wd_norm_cut cut[2];
    bool fits[2];
    bool plain[2];
    bool by_warp; /* whole plain rows: each by a warp, of twice the columns a thread */
};
void wd_norm_rows_prepare(const struct wd_problem *problem, void *work);

/* Whether rows fit, at least where all tensors lie on boundaries of units: those by posts have to, else
 * norm_long's passes do it. */
bool wd_norm_rows_fit(const struct wd_problem *problem, const struct wd_norm_rows *s);

/* Whether tensors begin on boundaries of units and rows do too; says in the arguments whether they at
 * least lie alike. */
bool wd_norm_rows_whole(struct norm_rows_args *a, int64_t bytes);

/* Whether all tensors begin equally far behind a boundary. */
bool wd_norm_rows_alike(const struct norm_rows_args *a);

/* Bytes of workspace for the blocks' posts, 0 where there are none. */
int64_t wd_norm_rows_posts(const struct wd_norm_cut *c);

/* Says the cut in the arguments; `partial` becomes null where no partial sums are left to be added. */
void wd_norm_rows_say(struct norm_rows_args *a, const struct wd_norm_cut *c);

/* Launches a kernel that walks; posts are at the beginning of the workspace. */
cudnnStatus_t wd_norm_rows_walk(const struct wd_call *call, struct wd_queue *queue,
                                struct wd_kernel_row *row, const struct wd_norm_cut *c,
                                struct norm_rows_args *a);

/* Inference and training, of rows that the engines of rows take. */
cudnnStatus_t wd_norm_rows_forward(const struct wd_call *call, struct wd_queue *queue);

/* dscale and dbias of `partials` rows in `partial`, of `length`: nothing else is read of the arguments. */
cudnnStatus_t wd_norm_rows_finish(struct wd_queue *queue, const struct norm_rows_args *a);

#endif
