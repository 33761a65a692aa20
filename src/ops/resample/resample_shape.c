/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling problems as the GPU's engines see them, and the size of their tables. */
#include <string.h>

#include "base/sizes.h"
#include "ops/pooling/pooling_block.h"
#include "ops/resample/resample_vector.h"

enum { EXTENT_MAX = 1 << 28 }; /* of images, windows, padding in pixels: their sums fit 31 bits */

static bool check_tensors(const struct wd_problem *problem, struct wd_resample_shape *s,
                          struct wd_reason *reason)
{
    static const int forward[] = {WD_RESAMPLE_X, WD_RESAMPLE_Y, WD_RESAMPLE_IDX};
    static const int backward[] = {WD_RESAMPLE_BACK_DX, WD_RESAMPLE_BACK_DY, WD_RESAMPLE_BACK_IDX,
                                   WD_RESAMPLE_BACK_X};
    /* maxima without places are looked for in x again */
    const int count = s->backward && s->max && !s->has_idx ? 4 : 3;
    const struct wd_tensor *first =
        wd_slot(problem->graph, problem->node, s->backward ? WD_RESAMPLE_BACK_DX : WD_RESAMPLE_X);
    bool planes = true;
    s->pixels = first->dim[1] > 1;
    for (int i = 0; i < count; ++i) {
        const int slot = (s->backward ? backward : forward)[i];
        const bool index = slot == (s->backward ? WD_RESAMPLE_BACK_IDX : WD_RESAMPLE_IDX);
        const struct wd_tensor *t = wd_slot(problem->graph, problem->node, slot);
        if (!t) continue;
        WD_NEED(t->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT, "a tensor is vectorised");
        WD_NEED(index || t->dtype == first->dtype, reason, NOT_SUPPORTED_DATA_TYPE, "%s beside %s",
                wd_dtype_name(t->dtype), wd_dtype_name(first->dtype));
        WD_NEED(wd_tensor_count(t) > 0 && wd_tensor_count(t) <= INT32_MAX, reason,
                NOT_SUPPORTED_SHAPE, "%lld elements, needed are 1 to 2^31-1",
                (long long)wd_tensor_count(t));
        /* either where both are true: then channels are the better neighbours */
        s->pixels = s->pixels && wd_pool_lies(t, true);
        planes = planes && wd_pool_lies(t, false);
    }
    WD_NEED(s->pixels || planes, reason, NOT_SUPPORTED_LAYOUT,
            "neither packed NCHW nor packed NHWC throughout");
    return true;
}

static bool set_axes(struct wd_resample_shape *s, const struct wd_tensor *x,
                     const struct wd_tensor *y, struct wd_reason *reason)
{
    const struct wd_resample_attr *p = s->attr;
    const int skip = RESAMPLE_AXES - p->spatial;
    s->places = 1;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        s->image[d] = s->windows[d] = 1;
        s->axis[d] = d < skip ? -1 : d - skip;
    }
    for (int d = 0; d < p->spatial; ++d) {
        const int64_t window = (p->window[d] - 1) / p->unit[d] + 1;
        s->image[skip + d] = x->dim[2 + d];
        s->windows[skip + d] = y->dim[2 + d];
        WD_NEED(x->dim[2 + d] <= EXTENT_MAX && y->dim[2 + d] <= EXTENT_MAX &&
                    window <= EXTENT_MAX && p->pad_before[d] / p->unit[d] <= EXTENT_MAX &&
                    p->pad_after[d] / p->unit[d] <= EXTENT_MAX,
                reason, NOT_SUPPORTED_SHAPE, "an extent or padding is above %d", EXTENT_MAX);
        WD_NEED(s->places <= EXTENT_MAX / window, reason, NOT_SUPPORTED_SHAPE,
                "a window of more than %d pixels", EXTENT_MAX);
        s->places *= window;
    }
    return true;
}

bool wd_resample_shape_of(const struct wd_problem *problem, struct wd_resample_shape *s,
                          struct wd_reason *reason)
{
    const struct wd_resample_attr *p = &problem->node->attr.resample;
    const bool backward = problem->node->op == WD_OP_RESAMPLE_BACKWARD;
    const struct wd_tensor *x =
        wd_slot(problem->graph, problem->node, backward ? WD_RESAMPLE_BACK_DX : WD_RESAMPLE_X);
    const struct wd_tensor *y =
        wd_slot(problem->graph, problem->node, backward ? WD_RESAMPLE_BACK_DY : WD_RESAMPLE_Y);
    const struct wd_tensor *idx =
        wd_slot(problem->graph, problem->node, backward ? WD_RESAMPLE_BACK_IDX : WD_RESAMPLE_IDX);
    memset(s, 0, sizeof *s);
    s->attr = p;
    s->backward = backward;
    s->max = p->mode == CUDNN_RESAMPLE_MAXPOOL;
    s->type = wd_pool_type_index(x->dtype);
    WD_NEED(p->spatial <= RESAMPLE_AXES, reason, NOT_SUPPORTED_SHAPE,
            "%d spatial dimensions, at most %d", p->spatial, RESAMPLE_AXES);
    WD_NEED(s->type >= 0, reason, NOT_SUPPORTED_DATA_TYPE,
            "the image is %s, needed is fp64, fp32, fp16 or bf16", wd_dtype_name(x->dtype));
    WD_NEED(x->dtype == CUDNN_DATA_DOUBLE ||
                (p->compute != CUDNN_DATA_DOUBLE && p->compute != CUDNN_DATA_INT32),
            reason, NOT_SUPPORTED_DATA_TYPE, "computed in %s", wd_dtype_name(p->compute));
    s->has_idx = idx != NULL;
    if (!check_tensors(problem, s, reason) || !set_axes(s, x, y, reason)) return false;
    s->size = wd_dtype_bytes(x->dtype);
    s->outer = s->pixels ? x->dim[0] : x->dim[0] * x->dim[1];
    s->inner = s->pixels ? x->dim[1] : 1;
    s->place_size = idx ? (int)wd_dtype_bytes(idx->dtype) : s->places <= UINT8_MAX + 1 ? 1 : 4;
    return true;
}

bool wd_resample_pads(const struct wd_resample_shape *s)
{
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        int64_t low;
        int64_t high;
        if (s->axis[d] < 0) continue;
        resample_range(s->attr, s->axis[d], 0, &low, &high);
        if (low < 0) return true;
        resample_range(s->attr, s->axis[d], s->windows[d] - 1, &low, &high);
        if (high > s->image[d]) return true;
    }
    return false;
}

/* As many windows as a pixel can count in. */
static int64_t most_over(const struct wd_resample_attr *p, int s, int64_t image, int64_t windows)
{
    int64_t length = p->window[s];
    int64_t most;
    if (p->mode == CUDNN_RESAMPLE_NEAREST) length = p->unit[s];
    if (p->mode == CUDNN_RESAMPLE_BILINEAR) length = resample_width(p, s);
    /* they begin, or have their centres, within that length, one of its ends left out */
    most = wd_ceil_div(length, p->stride[s]);
    for (int end = 0; end < 2 && resample_repeats(p); ++end) {
        int64_t first;
        int64_t last;
        resample_over(p, s, image, windows, end ? image - 1 : 0, &first, &last);
        most = wd_most(most, last - first);
    }
    return wd_least(most, windows);
}

struct wd_resample_memory wd_resample_memory_of(const struct wd_call *call,
                                                const struct wd_resample_shape *s,
                                                const struct wd_device *device)
{
    const int out = s->backward ? WD_RESAMPLE_BACK_DX : WD_RESAMPLE_Y;
    struct wd_resample_memory m;
    memset(&m, 0, sizeof m);
    m.from = wd_call_data(call, s->backward ? WD_RESAMPLE_BACK_DY : WD_RESAMPLE_X);
    m.out = wd_call_data(call, out);
    if (s->max && s->has_idx) {
        m.places = wd_call_data(call, s->backward ? WD_RESAMPLE_BACK_IDX : WD_RESAMPLE_IDX);
    }
    m.tables = call->workspace;
    m.alpha = call->scalars[WD_RESAMPLE_ALPHA];
    m.beta = call->scalars[WD_RESAMPLE_BETA];
    m.streaming = wd_tensor_extent(wd_call_tensor(call, out)) > device->l2_bytes;
    return m;
}

struct wd_resample_tables wd_resample_tables_of(const struct wd_resample_shape *s, int kind,
                                                int64_t begin)
{
    const bool of_windows = kind == RESAMPLE_PIXELS || kind == RESAMPLE_RANGES;
    const int64_t weight = s->type == 3 ? sizeof(double) : sizeof(float);
    struct wd_resample_tables t;
    memset(&t, 0, sizeof t);
    t.kind = kind;
    t.end = begin;
    for (int d = 0; d < RESAMPLE_AXES; ++d) {
        t.length[d] = of_windows ? s->windows[d] : s->image[d];
        if (kind == RESAMPLE_PIXELS || kind == RESAMPLE_SHARES) t.taps[d] = 1;
        if (s->axis[d] >= 0 && kind == RESAMPLE_PIXELS) {
            t.taps[d] = resample_extent(s->attr, s->axis[d], s->image[d]);
        } else if (s->axis[d] >= 0 && kind == RESAMPLE_SHARES) {
            t.taps[d] = most_over(s->attr, s->axis[d], s->image[d], s->windows[d]);
        }
        t.entries[d] = t.end;
        t.weights[d] = t.end + t.length[d] * (int64_t)sizeof(struct resample_entry);
        t.end = t.weights[d] + t.length[d] * t.taps[d] * weight;
        t.end = wd_ceil_div(t.end, WD_WORKSPACE_ALIGNMENT) * WD_WORKSPACE_ALIGNMENT;
    }
    return t;
}
