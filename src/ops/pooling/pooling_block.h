/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling as a building block: a problem in the one form that the GPU's engines know (packed planes or
 * pixels, three axes, those that say nothing folded away), and what each of these engines does with it.
 * Other families whose operations are pooling make the form themselves. Pure functions. */
#ifndef WD_OPS_POOLING_BLOCK_H
#define WD_OPS_POOLING_BLOCK_H

#include "ops/engine.h"

struct wd_pool_shape {
    int type;     /* of the kernels' rows: 0 to 3 for fp32, fp16, bf16, fp64 */
    int64_t size; /* of an element */
    bool backward;
    bool pixels; /* NHWC */
    bool max;
    bool propagate;
    bool exclude;
    bool
        edge; /* padding repeats the edge, and counts: of averages forward, for wd_pool_slide alone */
    double inverse; /* 1 / the size of a window */
    double lowest;  /* maxima without candidates */
    int64_t outer;  /* planes, or images */
    int64_t inner;  /* channels of a pixel, 1 of planes */
    int64_t image[3];
    int64_t windows[3];
    int64_t window[3];
    int64_t stride[3];
    int64_t pad[3];
};

/* The shape of pooling as `attr` says over the image `x` (or dx) with the windows `y` (or dy); `source`
 * is where gradients of maxima look for them. Or false, and why no engine of these takes it. */
bool wd_pool_shape_from(const struct wd_pool_attr *attr, bool backward, const struct wd_tensor *x,
                        const struct wd_tensor *y, const struct wd_tensor *source,
                        struct wd_pool_shape *shape, struct wd_reason *reason);

/* A type's number as above, -1 for one that there are no kernels of. */
int wd_pool_type_index(int dtype);

/* Whether elements lie without gaps, n c ... or (pixels) n ... c; a dimension of 1 lies anyhow. */
bool wd_pool_lies(const struct wd_tensor *t, bool pixels);

/* Memory of a call, by the shape's names: image is x or dx, windows are y or dy. */
struct wd_pool_memory {
    const void *x; /* forward, and of maxima */
    const void *dy;
    void *out;
    void *workspace;
    double alpha;
    double beta;
    bool streaming; /* out is larger than the caches */
    /* what a way has prepared, or null */
    const void *prepared;
    const struct wd_pool_way *prepared_by;
};

/* What an engine does, in terms of a shape: other operations that are pooling use it, and engines whose
 * pointers turn out not to be aligned as their kernels need use another one's. */
struct wd_pool_way {
    bool (*takes)(const struct wd_device *device, const struct wd_pool_shape *shape,
                  struct wd_reason *reason);
    int64_t (*workspace)(const struct wd_pool_shape *shape); /* null: none */
    cudnnStatus_t (*emit)(struct wd_queue *queue, const struct wd_pool_shape *shape,
                          const struct wd_pool_memory *memory);
    /* null: nothing. How to cut a shape, at most WD_POOL_PREPARED bytes that are zero before; emit finds
     * them in its memory, but for shapes that another way hands it. */
    void (*prepare)(const struct wd_device *device, const struct wd_pool_shape *shape,
                    void *prepared);
};
extern const struct wd_pool_way wd_pool_forward_walk;
extern const struct wd_pool_way wd_pool_forward_vector;
extern const struct wd_pool_way wd_pool_forward_band;
extern const struct wd_pool_way wd_pool_forward_single;
extern const struct wd_pool_way wd_pool_forward_tile;
extern const struct wd_pool_way wd_pool_slide; /* both ways */
extern const struct wd_pool_way wd_pool_backward_sheet;
extern const struct wd_pool_way wd_pool_backward_walk;
extern const struct wd_pool_way wd_pool_backward_vector;
extern const struct wd_pool_way wd_pool_backward_band;
extern const struct wd_pool_way wd_pool_backward_single;
extern const struct wd_pool_way wd_pool_backward_tile;

/* A shape, the way that it goes, and what that has prepared: made with a plan. */
enum { WD_POOL_PREPARED = 2048 };
struct wd_pool_job {
    struct wd_pool_shape shape;
    const struct wd_pool_way *way;
    _Alignas(16) unsigned char prepared[WD_POOL_PREPARED];
};
/* Of what has its shape and way. */
void wd_pool_job_prepare(struct wd_pool_job *job, const struct wd_device *device);
cudnnStatus_t wd_pool_job_emit(const struct wd_pool_job *job, struct wd_queue *queue,
                               struct wd_pool_memory *memory);

/* The engine's way that is best for a shape; null, and why there is none. */
const struct wd_pool_way *wd_pool_way_of(const struct wd_device *device,
                                         const struct wd_pool_shape *shape,
                                         struct wd_reason *reason);

#endif
