/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU's engines of spatial transformers share on the host, and the launches of the grid
 * generator. */
#ifndef WD_OPS_SPATIAL_VECTOR_H
#define WD_OPS_SPATIAL_VECTOR_H

#include "base/sizes.h"
#include "ops/engine.h"
#include "ops/kernels.h"
#include "ops/spatial/spatial_vector_args.h"

enum { SAMPLER_X, SAMPLER_GRID, SAMPLER_Y };
enum { SAMPLER_BACK_X, SAMPLER_BACK_DY, SAMPLER_BACK_GRID, SAMPLER_BACK_DX, SAMPLER_BACK_DGRID };
enum { SAMPLER_ALPHA, SAMPLER_BETA, SAMPLER_ALPHA_GRID, SAMPLER_BETA_GRID };

enum {
    SPATIAL_RUN_BYTES = 16,
    SPATIAL_ITEMS_MAX = 1 << 30, /* threads of a launch */
    SPATIAL_PIXELS_FROM = 8,     /* channels that are neighbours: worth a thread each */
    SPATIAL_WINDOWS_FROM = 16,   /* channels: where windows are used */
};
/* wd_sampler_match bounds what channels and pixels make together, and so a plane. A window of all of it has
 * zeros around it, with which there are 16 elements for one where the plane is a single column of two bytes:
 * see window::size. */
_Static_assert((int64_t)SPATIAL_ITEMS_MAX / SPATIAL_WINDOWS_FROM * 16 + 64 <= INT32_MAX,
               "31 bits count a window");

/* Where an element type's kernels stand among those of four. */
static inline int wd_spatial_type(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_FLOAT: return 0;
    case CUDNN_DATA_HALF: return 1;
    case CUDNN_DATA_BFLOAT16: return 2;
    default: return 3; /* fp64: the rules take no others */
    }
}

static inline bool wd_spatial_is_packed(const struct wd_tensor *t)
{
    int64_t expected = 1;
    for (int d = t->rank - 1; d >= 0; --d) {
        if (t->dim[d] != 1 && t->stride[d] != expected) return false;
        expected *= t->dim[d];
    }
    return true;
}

/* Whether 31 bits count the elements that a plane spans. */
static inline bool wd_spatial_spans_little(const struct wd_tensor *t)
{
    return (t->dim[2] - 1) * t->stride[2] + (t->dim[3] - 1) * t->stride[3] <= INT32_MAX;
}

/* Images that a launch takes at most where each has so many threads: one, if need be. */
static inline int64_t wd_spatial_images(int64_t threads)
{
    return wd_most(SPATIAL_ITEMS_MAX / wd_most(threads, 1), 1);
}

/* The least power of two that is not below n, at most `most`, as its logarithm. */
static inline int wd_spatial_log2(int64_t n, int most)
{
    int log2 = 0;
    while (log2 < most && (int64_t)1 << log2 < n) log2 += 1;
    return log2;
}

/* How many boxes there are of a grid, at most `most`: they become taller and wider until so few are enough. */
static inline int64_t wd_spatial_boxes(int64_t rows, int64_t columns, int64_t most, int *row_log2,
                                       int *column_log2)
{
    for (;;) {
        int64_t boxes = wd_ceil_div(rows, (int64_t)1 << *row_log2) *
                        wd_ceil_div(columns, (int64_t)1 << *column_log2);
        if (boxes <= most) return boxes;
        if ((int64_t)1 << *row_log2 < rows) *row_log2 += 1;
        if ((int64_t)1 << *column_log2 < columns) *column_log2 += 1;
    }
}

/* Packed grids. `kernels` is the first of four, by wd_spatial_type (forward: of four pairs; `many32`
 * is for many runs of fp32). */
bool wd_grid_vector_match(const struct wd_problem *problem, struct wd_reason *reason);
cudnnStatus_t wd_grid_vector_forward(const struct wd_call *call, struct wd_queue *queue,
                                     struct wd_kernel_row *kernels, struct wd_kernel_row *many32);
/* `finish` adds up what several blocks have of an image. */
cudnnStatus_t wd_grid_vector_backward(const struct wd_call *call, struct wd_queue *queue,
                                      struct wd_kernel_row *kernels, struct wd_kernel_row *finish);
int64_t wd_grid_vector_backward_workspace(const struct wd_problem *problem);

/* Packed grids, images of any strides whose elements 31 bits can count. */
bool wd_sampler_match(const struct wd_problem *problem, struct wd_reason *reason);
/* Whether channels are neighbours in x and y, or dy, and enough for a thread each. */
bool wd_sampler_has_pixels(const struct wd_problem *problem);
/* A call's image; whether its channels are aligned runs of 16 bytes. */
struct sampler_image wd_sampler_image(const struct wd_call *call, int slot);
bool wd_sampler_has_runs(const struct sampler_image *i, int64_t channels, int64_t bytes);
/* What both directions need of the shapes and of the grid's place in memory. */
struct sampler_vector_args wd_sampler_args(const struct wd_tensor *x, const struct wd_tensor *grid,
                                           const void *places);
/* What a call says of factors; of the backward pass also those of the grid's gradients. */
void wd_sampler_scalars(const struct wd_call *call, struct sampler_vector_args *a);
void wd_sampler_back_scalars(const struct wd_call *call, struct sampler_vector_args *a);
/* Arguments of gradients by tiles, but for boxes; whether that is back_planes. */
bool wd_sampler_back_tiles(const struct wd_call *call, const struct wd_device *device,
                           struct sampler_vector_args *a);
/* Its first kernel, and back_planes for so many images. */
cudnnStatus_t wd_sampler_emit_boxes(struct wd_queue *queue, const struct sampler_vector_args *a,
                                    int type);
cudnnStatus_t wd_sampler_emit_planes(struct wd_queue *queue, const struct sampler_vector_args *a,
                                     int type, int64_t images);
/* The forward pass from `images` images on. */
void wd_sampler_skip(struct sampler_vector_args *a, int64_t images, int64_t bytes);

/* Whether windows of an image may be copied by 16 bytes: rows and planes are aligned runs of them. */
bool wd_sampler_is_wide(const struct sampler_image *i, int64_t width, int64_t bytes);
/* Whether a tensor is laid out as whole runs of 16 bytes of its channels (d 1) or rows (d 3); that its data
 * are aligned, the call must see. */
bool wd_sampler_lies_in_runs(const struct wd_tensor *t, int d);
/* Cuts the places of a grid into tiles of at most `capacity` places, whose windows of x have room in
 * `most` elements if there are such tiles (else any: places look into device memory); returns the elements of a window.
 * Where rows are multiples of `unit` places, tiles are too, if such have windows with room. */
int64_t wd_sampler_cut_places(struct sampler_cut *cut, const struct sampler_vector_args *a,
                              int64_t capacity, int64_t most, int64_t bytes, int64_t unit);

/* Of gradients, from the shapes in the arguments (wd_sampler_args). Grids of few places: a block's tile of the image, in
 * lanes_log2 and across_log2 (a thread an element), its channels, and how many of both there are. */
enum { SAMPLER_LITTLE_THREADS = 512 };
void wd_sampler_cut_little(struct sampler_vector_args *a, int64_t images, int multiprocessors);
/* Among how many threads the channels of a place are dealt out where there are `places` in all: the fewer places, the
 * more. */
void wd_sampler_share(struct sampler_vector_args *a, int64_t places, int multiprocessors);
/* Likewise a warp's region of 1 << area_log2 elements, about as wide as high, within the image, whose sums with a frame
 * around it have room. */
enum { SAMPLER_REGION_SUMS = 3072 /* of a warp: 12 KiB */ };
void wd_sampler_cut_regions(struct sampler_vector_args *a, int area_log2, int64_t sums);
/* Whether images are worth asking whether their grids are affine maps; sets the tiles of such. */
bool wd_sampler_cut_affine(struct sampler_vector_args *a, int64_t images, int multiprocessors);

#endif
