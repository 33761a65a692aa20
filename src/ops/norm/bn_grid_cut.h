/* SPDX-License-Identifier: Apache-2.0
 *
 * How the engines bn_grid cut x (bn_grid_args.h): a pure function of its shape, and of the device;
 * and what launches them. */
#ifndef WD_OPS_NORM_BN_GRID_CUT_H
#define WD_OPS_NORM_BN_GRID_CUT_H

#include "ops/kernels.h"
#include "ops/norm/bn_gpu.h"
#include "ops/norm/bn_grid_args.h"

struct wd_bn_grid_cut {
    struct wd_bn_gpu_space space;
    int64_t unit;    /* elements */
    int arrays;      /* that are kept */
    bool whole;      /* a group has all columns */
    int64_t columns; /* of a group, whose blocks meet if they can; or 0: as many as do well */
    int64_t samples; /* batch norms at once, each of c->space */
    int64_t holds; /* rounds that threads may hold in registers, or 0: single columns, whole rows */
    int64_t held;  /* that they do, before c->rows and c->rounds */
    int64_t masks; /* bytes of a thread of a round that bits come with, or 0 */
    bool adds;     /* z, of which a few parts are in shared memory too */
    int64_t pitch; /* elements of an outer index */
    int64_t width; /* elements of a group's row */
    int64_t plane; /* rows of a plane */
    int64_t rows;  /* of a group */
    int64_t items; /* parameters of a group */
    int64_t span;  /* neighbouring columns of a parameter */
    int64_t groups;
    bool meets; /* the blocks of a group; else they are a cluster */
    int64_t blocks;
    int64_t threads;
    int64_t lanes;
    int64_t rounds;
    int64_t slots;  /* of a tensor's round */
    int64_t parts;  /* of the ring */
    int64_t beside; /* likewise of z's */
    int64_t kept;   /* rounds */
    int64_t room;   /* bytes of the two rings, at most */
    int64_t shared; /* bytes */
};

/* What is prepared of a problem: no groups where it does not match. */
struct wd_bn_grid_work {
    struct wd_bn_grid_cut cut;
    struct bn_grid_args args; /* but for pointers and scalars */
};

/* From c->space, c->adds, c->whole, c->columns, c->samples, c->holds, c->masks, the bytes of an element, and how many tensors are kept.
 * False where rows would be too wide, or would not begin at units. */
bool wd_bn_grid_cut(struct wd_bn_grid_cut *c, int64_t size, int arrays,
                    const struct wd_device *device);

/* What both engines do: backward needs saved statistics. */
bool wd_bn_grid_match(const struct wd_problem *problem, struct wd_reason *reason);
int64_t wd_bn_grid_workspace(const struct wd_problem *problem);

/* A struct wd_bn_grid_work, for tensors that are aligned. */
void wd_bn_grid_prepare(const struct wd_problem *problem, void *work);

/* Bytes of scratch that a cut needs, with room for rounding up to where two doubles may lie; and that
 * place. */
int64_t wd_bn_grid_sums_bytes(const struct wd_bn_grid_cut *c);
double *wd_bn_grid_sums(void *workspace);

/* Bytes of a round: of all that is kept. */
int64_t wd_bn_grid_round_bytes(const struct wd_bn_grid_cut *c);

/* From the cut, a->bn and a->copying what else the arguments say, but for sums and counters. */
void wd_bn_grid_say(struct bn_grid_args *a, const struct wd_bn_grid_cut *c);

/* Emits the kernel of a type: rows as in wd_bn_grid_emit. */
cudnnStatus_t wd_bn_grid_launch(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                struct bn_grid_args *a, struct wd_kernel_row *rows, int type);

/* Whether blocks show each other sums on the board. */
bool wd_bn_grid_has_board(const struct wd_bn_grid_cut *c);

/* Emits a kernel that has it. */
cudnnStatus_t wd_bn_grid_launch_board(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                      struct bn_grid_args *a, struct wd_kernel_row *row);

/* Training, and backward, of c->samples batch norms by arguments of another engine's, by single columns and the board, a->members
 * neighbours sharing statistics: tensors of fp16 or bf16 (1, 2), aligned to 16 bytes. */
cudnnStatus_t wd_bn_grid_train_samples(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                       struct bn_grid_args *a, int type);
cudnnStatus_t wd_bn_grid_back_samples(struct wd_queue *queue, const struct wd_bn_grid_cut *c,
                                      struct bn_grid_args *a, int type);

/* `rows` are kernels of aligned tensors, then of others but fp64, each by type, those of both but fp64 that have
 * the board, and of these the plain ones (is_plain in bn_grid_cut.c). */
cudnnStatus_t wd_bn_grid_emit(const struct wd_call *call, struct wd_queue *queue,
                              struct wd_kernel_row *rows);

#endif
