/* SPDX-License-Identifier: Apache-2.0
 *
 * What engines that walk down rows share on the host. Pure functions of their arguments. */
#ifndef WD_OPS_RESAMPLE_WALK_H
#define WD_OPS_RESAMPLE_WALK_H

#include "ops/resample/resample_vector.h"
#include "ops/resample/resample_walk_args.h"

/* As many elements of `from` along an axis as `out` that lie side by side reach over, at most. */
/* Whether windows begin and end in the order of their numbers, as all walks take for granted. */
bool wd_resample_can_walk(const struct wd_resample_shape *s, struct wd_reason *reason);

int64_t wd_resample_reach(const struct wd_resample_shape *s, int d, int64_t outs, int64_t taps);

/* Rows of a walk of `out`, at most `most`: as many as leave the least to do to a processor that has so many
 * `warps` a band of rows, `resident` of them at a time, where each begins with a few rows' worth of work. */
int64_t wd_resample_walk_rows(int64_t warps, int64_t out, int64_t most, int64_t resident);

/* A table of an axis for the arguments; false where there are too many entries, or taps of one. */
bool wd_resample_set_near(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                          int d, struct resample_near *near);

/* What follows from the problem, however rows are shared out. `compact` is 0 where tables are not wanted in
 * the arguments, and after it where they do not fit. */
void wd_resample_walk_sizes(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                            struct resample_walk_args *a);

/* What follows from the call; and makes the tables where the arguments have none. */
cudnnStatus_t wd_resample_walk_call(struct wd_queue *queue, const struct wd_resample_shape *s,
                                    const struct wd_resample_tables *t,
                                    const struct wd_resample_memory *memory,
                                    struct resample_walk_args *a);

/* Enlarging by two or four: which of the kernels of a type, from RESAMPLE_UP_SINGLES on those of single
 * elements, and their arguments; -1 where it is something else. */
enum { RESAMPLE_UP_SINGLES = 10 };
struct resample_up_args;
int wd_resample_up_args_of(const struct wd_resample_shape *s,
                           const struct wd_resample_memory *memory, int multiprocessors,
                           struct resample_up_args *a);

/* Whether images of two dimensions are enlarged by two, bilinear, with samples on corners and edges
 * repeated. */
bool wd_resample_is_by_two(const struct wd_resample_shape *s);

/* Gradients of maxima by windows of two or three, by two, of planes through rings, or of several channels by sums
 * in shared memory: `launch` says how; false where they are none, or lines do not fit, or go by aligned runs or
 * tiles. */
struct resample_ring_pick_args;
bool wd_resample_ring_pick_args_of(const struct wd_resample_shape *s,
                                   const struct wd_resample_memory *memory, int multiprocessors,
                                   struct resample_ring_pick_args *a,
                                   struct wd_resample_launch_size *launch);
/* Gradients of such maxima by pooling's warps: how many blocks, or 0. */
struct pool_warp_args;
struct resample_places_args;
int64_t wd_resample_warps_of(const struct wd_device *device, const struct wd_resample_shape *s,
                             const struct wd_resample_memory *memory,
                             const struct resample_places_args *places, int64_t resident,
                             struct pool_warp_args *a);
struct resample_ring_scatter_args;
bool wd_resample_ring_scatter_args_of(const struct wd_resample_shape *s,
                                      const struct wd_resample_memory *memory, int multiprocessors,
                                      struct resample_ring_scatter_args *a,
                                      struct wd_resample_launch_size *launch);

#endif
