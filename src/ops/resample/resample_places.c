/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima with their places on the GPU, of windows of whole pixels: arguments of the kernels, and how
 * lines are shared out where they are staged. */
#include <string.h>

#include "base/sizes.h"
#include "ops/resample/resample_vector.h"

enum {
    WARP = 32,
    ROWS = 16,             /* of a walk, at most */
    ROWS_FEW = 2,          /* and where multiprocessors would be idle */
    SHARED_MAX = 40 << 10, /* bytes of a block: five of them on a multiprocessor */
    BLOCKS = 8,            /* of a multiprocessor, where there is as much work */
    THREADS = 2048,        /* likewise */
    THREES_FEW = 4,        /* rows of windows, where multiprocessors would be idle */
};

bool wd_resample_whole(const struct wd_resample_shape *s)
{
    if (s->places > INT16_MAX) return false;
    if (s->attr->padding != CUDNN_NEG_INF_PAD && wd_resample_pads(s)) return false;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        const int axis = s->axis[d];
        const int64_t unit = axis < 0 ? 1 : s->attr->unit[axis];
        if (axis < 0) continue;
        if (s->attr->window[axis] % unit != 0 || s->attr->stride[axis] % unit != 0 ||
            s->attr->pad_before[axis] % unit != 0) {
            return false;
        }
    }
    return true;
}

struct resample_places_args wd_resample_places_args_of(const struct wd_resample_shape *s,
                                                       const struct wd_resample_memory *m)
{
    const int64_t channels = s->inner / wd_resample_run(s);
    int64_t count[RESAMPLE_AXES];
    struct resample_places_args a;
    memset(&a, 0, sizeof a);
    a.from = m->from;
    a.out = m->out;
    a.places = m->places;
    a.alpha = m->alpha;
    a.beta = m->beta;
    a.scales = m->alpha != 0.0;
    a.blends = m->beta != 0.0;
    a.plain = m->alpha == 1.0 && m->beta == 0.0;
    a.streaming = m->streaming;
    a.place_size = s->place_size;
    a.propagate = s->attr->propagate_nan;
    a.inner = (uint32_t)s->inner;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        const int axis = s->axis[d];
        const int64_t unit = axis < 0 ? 1 : s->attr->unit[axis];
        a.axis[d].image = (int32_t)s->image[d];
        a.axis[d].windows = (int32_t)s->windows[d];
        a.axis[d].window = (int32_t)(axis < 0 ? 1 : s->attr->window[axis] / unit);
        a.axis[d].stride = (int32_t)(axis < 0 ? 1 : s->attr->stride[axis] / unit);
        a.axis[d].pad = (int32_t)(axis < 0 ? 0 : s->attr->pad_before[axis] / unit);
        count[d] = s->backward ? wd_ceil_div(s->image[d] + a.axis[d].pad, a.axis[d].stride)
                               : s->windows[d];
    }
    a.by_run = wd_fastdiv_of((uint32_t)channels);
    a.by_column = wd_fastdiv_of((uint32_t)count[2]);
    a.by_row = wd_fastdiv_of((uint32_t)count[1]);
    a.by_depth = wd_fastdiv_of((uint32_t)count[0]);
    a.count = (uint32_t)(s->outer * count[0] * count[1] * count[2] * channels);
    return a;
}

bool wd_resample_tiles(const struct wd_resample_shape *s, const struct wd_resample_memory *m,
                       struct resample_places_args *a)
{
    const int64_t run = wd_resample_run(s);
    *a = wd_resample_places_args_of(s, m);
    if (s->inner != 1 || run == 1 || s->windows[2] % run != 0 || (uintptr_t)m->from % 16 != 0 ||
        (uintptr_t)m->out % 16 != 0 ||
        (uintptr_t)m->places % (uintptr_t)wd_least(16, run * s->place_size) != 0) {
        return false;
    }
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        const struct resample_places_axis *x = &a->axis[d];
        if (x->window != x->stride || x->pad != 0 || x->windows * x->stride != x->image)
            return false;
        if (d > 0 && x->window != 2) return false;
    }
    a->by_column = wd_fastdiv_of((uint32_t)(s->windows[2] / run));
    a->by_row = wd_fastdiv_of((uint32_t)s->windows[1]);
    a->by_depth = wd_fastdiv_of((uint32_t)s->windows[0]);
    a->count = (uint32_t)(s->outer * s->windows[0] * s->windows[1] * s->windows[2] / run);
    return true;
}

bool wd_resample_threes(const struct wd_resample_shape *s, const struct wd_resample_memory *m,
                        int multiprocessors, struct resample_threes_args *a)
{
    const struct resample_places_axis *h = &a->p.axis[1];
    const struct resample_places_axis *w = &a->p.axis[2];
    const int64_t each = s->backward ? wd_resample_run(s) / 2 : RESAMPLE_THREES;
    int64_t lines;
    int64_t threads;
    memset(a, 0, sizeof *a);
    if (s->inner != 1 || s->type == 3 || s->axis[0] >= 0 || s->axis[1] < 0 || s->axis[2] < 0) {
        return false;
    }
    a->p = wd_resample_places_args_of(s, m);
    if (h->window != 3 || w->window != 3 || h->stride != 2 || w->stride != 2 || h->pad > 1 ||
        w->pad > 1 || h->pad < 0 || w->pad < 0 || 2 * w->windows != w->image ||
        w->windows % RESAMPLE_THREES != 0 || w->image % wd_resample_run(s) != 0 ||
        ((uintptr_t)m->from | (uintptr_t)m->out) % 16 != 0 ||
        (uintptr_t)m->places % (uintptr_t)wd_least(16, each * s->place_size) != 0) {
        return false;
    }
    lines = s->backward ? wd_ceil_div(h->image + h->pad, 2) : h->windows;
    threads = w->windows / each;
    a->rows = ROWS;
    while (a->rows > THREES_FEW &&
           s->outer * threads * wd_ceil_div(lines, a->rows) < (int64_t)multiprocessors * THREADS) {
        a->rows /= 2;
    }
    lines = wd_ceil_div(lines, a->rows);
    a->p.by_column = wd_fastdiv_of((uint32_t)threads);
    a->p.by_row = wd_fastdiv_of((uint32_t)lines);
    a->p.count = (uint32_t)(s->outer * lines * threads);
    return true;
}

/* ---- Staged lines ---- */

/* As many elements of `from` along an axis as `count` of `out` side by side reach over, at most. */
static int64_t reach(const struct wd_resample_shape *s, const struct resample_places_axis *x,
                     int64_t count)
{
    if (!s->backward) return (count - 1) * x->stride + x->window;
    return wd_least((count - 1) / x->stride + wd_ceil_div(x->window, x->stride) + 1, x->windows);
}

static void set_pitches(const struct wd_resample_shape *s, struct resample_lines_args *a,
                        struct wd_resample_launch_size *size)
{
    const int64_t columns = wd_least((a->segment - 1) / s->inner + 2, a->units / s->inner);
    const int64_t elements = reach(s, &a->p.axis[2], columns) * s->inner;
    const int64_t depth = reach(s, &a->p.axis[0], 1);
    const int64_t lines = reach(s, &a->p.axis[1], (int64_t)a->rows * a->walks);
    const int64_t pitch = wd_ceil_div(elements * s->size, 16) * 16 + 16;
    const int64_t place_pitch = wd_ceil_div(elements * s->place_size, 16) * 16 + 16;
    int64_t bytes = depth * lines * pitch;
    a->places_at = (uint32_t)wd_least(bytes, SHARED_MAX);
    if (s->backward) bytes += depth * lines * place_pitch;
    size->shared = (uint32_t)wd_least(bytes, SHARED_MAX + 1);
    a->lines = (uint32_t)lines;
    a->pitch = (uint32_t)wd_least(pitch, INT32_MAX);
    a->place_pitch = (uint32_t)wd_least(place_pitch, INT32_MAX);
}

/* The most rows that fit, fewer where there are few blocks; false where a row does not. */
static bool share_out(const struct wd_resample_shape *s, int multiprocessors,
                      struct resample_lines_args *a, struct wd_resample_launch_size *size)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    for (int64_t most = RESAMPLE_THREADS; most >= WARP; most /= 2) {
        const int64_t warps = wd_ceil_div(wd_ceil_div(a->units, RESAMPLE_PLACES), WARP);
        a->threads = (uint32_t)wd_least(warps * WARP, most);
        a->segment = a->threads * RESAMPLE_PLACES;
        for (uint32_t walks = RESAMPLE_THREADS / a->threads; walks >= 1; walks /= 2) {
            for (uint32_t rows = ROWS; rows >= 1; rows /= 2) {
                const int64_t bands = wd_ceil_div(out[1], (int64_t)rows * walks);
                const int64_t segments = wd_ceil_div(a->units, a->segment);
                a->rows = rows;
                a->walks = walks;
                set_pitches(s, a, size);
                if (size->shared > SHARED_MAX) continue;
                size->blocks = s->outer * out[0] * bands * segments;
                if (rows > ROWS_FEW && size->blocks < (int64_t)multiprocessors * BLOCKS) continue;
                a->p.by_column = wd_fastdiv_of((uint32_t)segments);
                a->p.by_row = wd_fastdiv_of((uint32_t)bands);
                a->p.by_depth = wd_fastdiv_of((uint32_t)out[0]);
                size->threads = a->threads * walks;
                return true;
            }
        }
    }
    return false;
}

bool wd_resample_lines_args_of(const struct wd_resample_shape *s,
                               const struct wd_resample_memory *m, int multiprocessors,
                               struct resample_lines_args *a, struct wd_resample_launch_size *size)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t *from = s->backward ? s->windows : s->image;
    memset(a, 0, sizeof *a);
    memset(size, 0, sizeof *size);
    a->p = wd_resample_places_args_of(s, m);
    a->units = (uint32_t)(out[2] * s->inner);
    a->by_inner = wd_fastdiv_of((uint32_t)s->inner);
    a->bytes = s->outer * from[0] * from[1] * from[2] * s->inner * s->size;
    a->place_bytes = s->outer * wd_resample_windows(s) * s->place_size;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        a->by_stride[d] = wd_fastdiv_of((uint32_t)a->p.axis[d].stride);
    }
    if (!share_out(s, multiprocessors, a, size)) return false;
    a->by_chunks = wd_fastdiv_of(a->pitch / 16);
    a->by_place_chunks = wd_fastdiv_of(a->place_pitch / 16);
    return true;
}
