/* SPDX-License-Identifier: Apache-2.0
 *
 * What engines that walk find out on the host: how far lines reach, and tables that are small enough for
 * the arguments of a launch. */
#include "base/sizes.h"
#include "ops/resample/resample_walk.h"

int64_t wd_resample_reach(const struct wd_resample_shape *s, int d, int64_t outs, int64_t taps)
{
    const int64_t from = s->backward ? s->windows[d] : s->image[d];
    const int axis = s->axis[d];
    int64_t most = from;
    if (axis >= 0) {
        const int64_t stride = s->attr->stride[axis];
        const int64_t unit = s->attr->unit[axis];
        const int64_t step = s->backward ? wd_ceil_div((outs - 1) * unit, stride)
                                         : wd_ceil_div((outs - 1) * stride, unit);
        /* an edge that is repeated has more taps than others, at either end */
        most = step + 1 + 2 * taps;
    }
    return wd_least(most, from);
}

bool wd_resample_can_walk(const struct wd_resample_shape *s, struct wd_reason *reason)
{
    const struct wd_resample_attr *attr = s->attr;
    bool sparse = false;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        const int axis = s->axis[d];
        if (axis >= 0 && attr->window[axis] < attr->unit[axis]) sparse = true;
    }
    WD_NEED(s->backward || !sparse || attr->mode == CUDNN_RESAMPLE_NEAREST ||
                attr->mode == CUDNN_RESAMPLE_BILINEAR,
            reason, NOT_SUPPORTED_SHAPE,
            "averages over less than a pixel, of which some have none and are nowhere in order");
    return true;
}

int64_t wd_resample_walk_rows(int64_t warps, int64_t out, int64_t most, int64_t resident)
{
    enum { BEGINNING = 4, FEW = 4 }; /* rows */
    int64_t best = 1;
    int64_t least = INT64_MAX;
    /* by rows, of which there are few, and not by bands, which grow with the image */
    for (int64_t at_most = wd_least(most, out); at_most > 0; --at_most) {
        const int64_t rows = wd_ceil_div(out, wd_ceil_div(out, at_most));
        const int64_t waves = wd_ceil_div(warps * wd_ceil_div(out, rows), resident);
        if (rows < FEW && least < INT64_MAX) break;
        if (waves * (rows + BEGINNING) < least) {
            least = waves * (rows + BEGINNING);
            best = rows;
        }
    }
    return best;
}

/* The windows over pixel k, or the pixels of window i, first .. last-1. */
static void taps_of(const struct wd_resample_shape *s, int d, int64_t i, int64_t *first,
                    int64_t *last)
{
    const int axis = s->axis[d];
    if (axis < 0) {
        *first = 0;
        *last = 1;
    } else if (s->backward) {
        resample_over(s->attr, axis, s->image[d], s->windows[d], i, first, last);
    } else {
        resample_range(s->attr, axis, i, first, last);
        resample_clip(s->attr, s->image[d], first, last);
    }
    if (*last < *first) *last = *first;
}

/* Whether window o is in the image as a whole. */
static bool is_inside(const struct wd_resample_shape *s, int d, int64_t o)
{
    int64_t low;
    int64_t high;
    if (o < 0 || o >= s->windows[d]) return false;
    resample_range(s->attr, s->axis[d], o, &low, &high);
    return low >= 0 && high <= s->image[d];
}

/* Whether entry i is as all others are, but for its place. */
static bool is_regular(const struct wd_resample_shape *s, int d, int64_t i)
{
    int64_t first;
    int64_t last;
    if (s->axis[d] < 0) return false;
    if (!s->backward) return is_inside(s, d, i);
    if (i == 0 || i == s->image[d] - 1) return false;
    taps_of(s, d, i, &first, &last);
    return is_inside(s, d, first - 1) && is_inside(s, d, last);
}

static float weight_of(const struct wd_resample_shape *s, int d, int64_t o, int64_t k)
{
    const int axis = s->axis[d];
    int64_t first;
    int64_t last;
    if (axis < 0) return 1.0f;
    resample_span(s->attr, axis, s->image[d], o, k, &first, &last);
    if (last <= first) return 0.0f;
    return (float)((double)resample_weights(s->attr, axis, o, first, last) /
                   (double)resample_norm(s->attr, axis, s->image[d], o));
}

static void set_slot(const struct wd_resample_shape *s, int d, int64_t i,
                     struct resample_near *near, int slot)
{
    int64_t first;
    int64_t last;
    taps_of(s, d, i, &first, &last);
    near->first[slot] = (int32_t)first;
    near->count[slot] = (int32_t)(last - first);
    for (int64_t k = first; k < last; ++k) {
        near->weight[slot][k - first] = s->backward ? weight_of(s, d, k, i) : weight_of(s, d, i, k);
    }
}

bool wd_resample_set_near(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                          int d, struct resample_near *near)
{
    const int64_t length = t->length[d];
    const int axis = s->axis[d];
    const int64_t unit = axis < 0 ? 1 : s->attr->unit[axis];
    const int64_t stride = axis < 0 ? 1 : s->attr->stride[axis];
    const int64_t both = wd_gcd(unit, stride);
    const int64_t period = (s->backward ? stride : unit) / both;
    int64_t head = 0;
    int64_t tail = length;
    int slot = 0;
    if (s->type == 3 || t->taps[d] > WALK_TAPS) return false;
    while (head < length && !is_regular(s, d, head)) {
        if (++head > WALK_SLOTS) return false;
    }
    while (tail > head && !is_regular(s, d, tail - 1)) {
        if (length - --tail > WALK_SLOTS) return false;
    }
    if (head + period + length - tail > WALK_SLOTS) return false;
    near->head = (int32_t)head;
    near->tail = (int32_t)tail;
    near->shift = (int32_t)((s->backward ? unit : stride) / both);
    near->by_period = wd_fastdiv_of((uint32_t)period);
    for (int64_t i = 0; i < head; ++i) set_slot(s, d, i, near, slot++);
    for (int64_t i = head; i < head + period; ++i, ++slot) {
        if (i < tail) set_slot(s, d, i, near, slot);
    }
    for (int64_t i = tail; i < length; ++i) set_slot(s, d, i, near, slot++);
    return true;
}

void wd_resample_walk_sizes(const struct wd_resample_shape *s, const struct wd_resample_tables *t,
                            struct resample_walk_args *a)
{
    const int64_t *out = s->backward ? s->image : s->windows;
    const int64_t *from = s->backward ? s->windows : s->image;
    for (int d = 0; a->compact && d < RESAMPLE_AXES; ++d) {
        a->compact = wd_resample_set_near(s, t, d, &a->near[d]);
    }
    a->inner = (uint32_t)s->inner;
    a->total = s->outer * from[0] * from[1] * from[2] * s->inner;
    a->by_depth = wd_fastdiv_of((uint32_t)out[0]);
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        a->axis[d].taps = (int32_t)t->taps[d];
        a->axis[d].from = (int32_t)from[d];
        a->axis[d].out = (int32_t)out[d];
    }
}

cudnnStatus_t wd_resample_walk_call(struct wd_queue *queue, const struct wd_resample_shape *s,
                                    const struct wd_resample_tables *t,
                                    const struct wd_resample_memory *m,
                                    struct resample_walk_args *a)
{
    const char *memory = m->tables;
    if (!a->compact) WD_TRY(wd_resample_make_tables(queue, s, t, 1, m->tables));
    a->from = m->from;
    a->out = m->out;
    a->alpha = m->alpha;
    a->beta = m->beta;
    a->scales = m->alpha != 0.0;
    a->blends = m->beta != 0.0;
    a->streaming = m->streaming;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        a->axis[d].entries = (const struct resample_entry *)(memory + t->entries[d]);
        a->axis[d].weights = memory + t->weights[d];
    }
    return CUDNN_STATUS_SUCCESS;
}
