/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engines of local response normalization on the GPU share on the host: which layouts there are,
 * and the arguments that follow from a call, whatever kernel it goes to. */
#ifndef WD_OPS_LRN_HOST_H
#define WD_OPS_LRN_HOST_H

#include "ops/engine.h"
#include "ops/lrn/lrn_vector_args.h"

enum { LRN_ITEMS_MAX = 1 << 30 }; /* threads of a launch */

/* fp32, fp16, bf16 and fp64 are 0 to 3; the rule takes no others. */
int wd_lrn_type(int dtype);
int64_t wd_lrn_accumulator_bytes(int dtype);
bool wd_lrn_is_backward(const struct wd_problem *problem);
/* x, the output and, backward, dy; the number of them. */
int wd_lrn_tensors(const struct wd_problem *problem, const struct wd_tensor **tensor);
/* Pixels of a plane. */
int64_t wd_lrn_plane(const struct wd_tensor *t);
/* Whether the elements of a channel lie one behind the other. */
bool wd_lrn_has_planes(const struct wd_tensor *t);
/* Whether in all tensors all elements do, the channels of a pixel first, of which there are some. */
bool wd_lrn_are_pixels(const struct wd_problem *problem);
/* How s^-beta is computed, and a call's numbers in single precision. */
int wd_lrn_power(double beta);
struct lrn_floats wd_lrn_rounded(const struct lrn_doubles *full);
/* Operands, scaling, coefficients and the window. */
struct lrn_vector_args wd_lrn_args(const struct wd_call *call, const struct wd_device *device);
/* The pointers of x, the output and, backward, dy; the number of them. */
int wd_lrn_pointers(struct lrn_vector_args *a, struct lrn_operand **operand);
/* Whether every plane begins at, and is made of, runs of this many elements. */
bool wd_lrn_runs_fit(struct lrn_vector_args *a, int64_t plane, int64_t run, int64_t bytes);
/* Channels of a chunk, of which each of `threads` walks along one at a time and reads as many as `around` beside its
 * own: longer chunks, the more is read twice, where there are threads enough. They aren't longer than that: the further
 * threads walk, the less their neighbours are where they are, with what both have a part of. */
int64_t wd_lrn_chunk(int64_t channels, int64_t threads, int64_t around, bool backward,
                     int64_t processors);
/* Whether planes are so large that a thread's two pixels are a warp apart, and a warp's are neighbours. */
bool wd_lrn_has_pairs(int64_t plane);
/* Cuts planes into runs (or pixels that are spread) and chunks of channels, one a thread; the number of these. */
int64_t wd_lrn_cut_planes(const struct wd_tensor *x, const struct wd_device *device, int64_t run,
                          bool spreads, struct lrn_vector_args *a);

#endif
