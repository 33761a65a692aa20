/* SPDX-License-Identifier: Apache-2.0
 *
 * A resampling problem as the GPU's engines see it, packed planes or pixels of at most three axes, and
 * what these engines share: tables, weighted sums, places of maxima. Pure functions of their
 * arguments. */
#ifndef WD_OPS_RESAMPLE_VECTOR_H
#define WD_OPS_RESAMPLE_VECTOR_H

#include "ops/engine.h"
#include "ops/resample/resample_vector_args.h"

/* Of a node: where its tensors and scalars are. */
enum { WD_RESAMPLE_X, WD_RESAMPLE_Y, WD_RESAMPLE_IDX }; /* forward */
enum {
    WD_RESAMPLE_BACK_DY,
    WD_RESAMPLE_BACK_IDX,
    WD_RESAMPLE_BACK_X,
    WD_RESAMPLE_BACK_Y,
    WD_RESAMPLE_BACK_DX
};
enum { WD_RESAMPLE_ALPHA, WD_RESAMPLE_BETA };

struct wd_resample_shape {
    const struct wd_resample_attr *attr;
    int type;     /* of the kernels' rows: 0 to 3 for fp32, fp16, bf16, fp64 */
    int64_t size; /* of an element */
    bool backward;
    bool max;
    bool pixels; /* NHWC */
    int64_t outer;
    int64_t inner; /* channels of a pixel, 1 of planes */
    int64_t image[RESAMPLE_AXES];
    int64_t windows[RESAMPLE_AXES];
    int axis[RESAMPLE_AXES]; /* the spatial dimension, or -1 */
    int64_t places;          /* of a window, at most */
    int place_size;          /* bytes, of maxima: of the index tensor, or of our own notes */
    bool has_idx;
};

/* The problem's shape; or false, and why no engine of these takes it. */
bool wd_resample_shape_of(const struct wd_problem *problem, struct wd_resample_shape *shape,
                          struct wd_reason *reason);

static inline int64_t wd_resample_image(const struct wd_resample_shape *s)
{
    return s->image[0] * s->image[1] * s->image[2] * s->inner;
}

static inline int64_t wd_resample_windows(const struct wd_resample_shape *s)
{
    return s->windows[0] * s->windows[1] * s->windows[2] * s->inner;
}

static inline int64_t wd_resample_run(const struct wd_resample_shape *s)
{
    return s->type == 3 ? 1 : 16 / s->size;
}

/* Whether a window reaches beyond the image. */
bool wd_resample_pads(const struct wd_resample_shape *s);

/* The kernel of a row, a thread an item. */
cudnnStatus_t wd_resample_launch(struct wd_queue *queue, struct wd_kernel_row *row, int64_t items,
                                 const void *args);

/* Tables of one kind of all axes, one behind the other: each axis's taps and where its entries and
 * weights begin in the workspace. */
struct wd_resample_tables {
    int kind;
    int64_t length[RESAMPLE_AXES];
    int64_t taps[RESAMPLE_AXES];
    int64_t entries[RESAMPLE_AXES]; /* offsets in bytes */
    int64_t weights[RESAMPLE_AXES];
    int64_t end;
};
struct wd_resample_tables wd_resample_tables_of(const struct wd_resample_shape *s, int kind,
                                                int64_t begin);

/* Makes one or two kinds of tables in `memory`. */
cudnnStatus_t wd_resample_make_tables(struct wd_queue *queue, const struct wd_resample_shape *s,
                                      const struct wd_resample_tables *tables, int count,
                                      void *memory);

/* Memory of a call: `from` is x or dy, `out` y or dx, `tables` the workspace; of maxima with an index tensor
 * `places` is that. */
struct wd_resample_memory {
    const void *from;
    void *out;
    void *places;
    void *tables;
    double alpha;
    double beta;
    bool streaming; /* out is larger than the caches */
};
struct wd_resample_memory wd_resample_memory_of(const struct wd_call *call,
                                                const struct wd_resample_shape *shape,
                                                const struct wd_device *device);

/* Bilinear windows of two whole pixels, by two, which average them, and their gradients, as a job of pooling's
 * kernels, which has a way then; false where it is not that, or they have not that shape. */
struct wd_pool_job;
bool wd_resample_halves_of(const struct wd_resample_shape *s, const struct wd_device *device,
                           struct wd_pool_job *job);
/* Emits it, where there is one, memory is aligned and nothing blended in; else false. */
bool wd_resample_emits_halves(const struct wd_pool_job *job, const struct wd_resample_memory *m,
                              struct wd_queue *queue, cudnnStatus_t *status);

/* Weighted sums, and with their tables. */
bool wd_resample_can_sum(const struct wd_resample_shape *s, struct wd_reason *reason);
int64_t wd_resample_sum_bytes(const struct wd_resample_shape *s);
cudnnStatus_t wd_resample_sum(struct wd_queue *queue, const struct wd_resample_shape *s,
                              const struct wd_resample_memory *memory);

/* Maxima: `out` or `places` may be null. The tables are made. */
struct resample_max_args wd_resample_max_args_of(const struct wd_resample_shape *s,
                                                 const struct wd_resample_memory *memory,
                                                 const struct wd_resample_tables *ranges,
                                                 const struct wd_resample_tables *over);
bool wd_resample_can_max(const struct wd_resample_shape *s, struct wd_reason *reason);
cudnnStatus_t wd_resample_max(struct wd_queue *queue, const struct wd_resample_shape *s,
                              const struct wd_resample_memory *memory,
                              const struct wd_resample_tables *ranges);
/* Whether windows are of whole pixels and padding is no candidate, so that maxima need no tables: and
 * their arguments, `out` by windows, or backward by blocks of two pixels. */
bool wd_resample_whole(const struct wd_resample_shape *s);
struct resample_places_args wd_resample_places_args_of(const struct wd_resample_shape *s,
                                                       const struct wd_resample_memory *memory);
/* Planes by windows of two rows and columns that tile them, in whole runs, whatever the depth: then
 * the arguments are for runs of windows, both ways. */
bool wd_resample_tiles(const struct wd_resample_shape *s, const struct wd_resample_memory *memory,
                       struct resample_places_args *a);
/* Planes by windows of three rows and columns, by two, of which there are half as many as columns, in whole
 * runs. */
bool wd_resample_threes(const struct wd_resample_shape *s, const struct wd_resample_memory *memory,
                        int multiprocessors, struct resample_threes_args *a);
/* From staged lines, where a block's fit: `shared` bytes and as many blocks and threads. */
struct wd_resample_launch_size {
    int64_t blocks;
    uint32_t threads;
    uint32_t shared;
};
bool wd_resample_lines_args_of(const struct wd_resample_shape *s,
                               const struct wd_resample_memory *memory, int multiprocessors,
                               struct resample_lines_args *a, struct wd_resample_launch_size *size);
/* Whether maxima, or their gradients, go by runs: all that they touch is aligned. */
bool wd_resample_by_runs(const struct wd_resample_shape *s,
                         const struct wd_resample_memory *memory);

#endif
