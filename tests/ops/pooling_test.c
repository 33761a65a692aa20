/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling against its formula, written out here in scatter form and in double: every window visits
 * its elements, adds them up or takes the first of the largest, and hands its gradient back. Random
 * windows, paddings, strides, layouts, types, ties and NaN; long windows; averages also against
 * finite differences; and a list that every kernel of the GPU's engines is reached by. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels_reached.h"
#include "part.h"

struct call {
    cudnnPoolingDescriptor_t pooling;
    struct part *x, *y, *dy, *dx;
    double alpha, beta;
};

struct geometry {
    int mode, propagate, rank;
    int x[8], y[8], window[6], pad[6], stride[6];
};

static cudnnStatus_t forward(void *context)
{
    const struct call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    return cudnnPoolingForward(harness_handle, c->pooling, api_scalar(type, c->alpha, s),
                               c->x->desc, part_data(c->x), api_scalar(type, c->beta, s + 1),
                               c->y->desc, part_data(c->y));
}

static cudnnStatus_t backward(void *context)
{
    const struct call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    return cudnnPoolingBackward(harness_handle, c->pooling, api_scalar(type, c->alpha, s),
                                c->y->desc, part_data(c->y), c->dy->desc, part_data(c->dy),
                                c->x->desc, part_data(c->x), api_scalar(type, c->beta, s + 1),
                                c->dx->desc, part_data(c->dx));
}

static cudnnPoolingDescriptor_t descriptor(const struct geometry *g)
{
    cudnnPoolingDescriptor_t pooling = NULL;
    cudnnCreatePoolingDescriptor(&pooling);
    if (cudnnSetPoolingNdDescriptor(pooling, (cudnnPoolingMode_t)g->mode,
                                    (cudnnNanPropagation_t)g->propagate, g->rank - 2, g->window,
                                    g->pad, g->stride) != CUDNN_STATUS_SUCCESS) {
        case_fail("the pooling descriptor is refused");
    }
    return pooling;
}

static bool is_max(const struct geometry *g)
{
    return g->mode == CUDNN_POOLING_MAX || g->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

/* One window. */
struct seen {
    int64_t inside; /* elements of the image */
    double n;       /* of an average */
    double sum;     /* of the elements, and of their magnitudes */
    double magnitude;
    float naive; /* the sum again, in single precision */
    double largest;
    int64_t first; /* index in x of the first of the largest, -1: no candidate */
};

/* The lowest finite value. */
static double lowest(cudnnDataType_t dtype)
{
    switch ((int)dtype) {
    case CUDNN_DATA_FLOAT: return -0x1.fffffep127;
    case CUDNN_DATA_DOUBLE: return -0x1.fffffffffffffp1023;
    case CUDNN_DATA_HALF: return -65504.0;
    case CUDNN_DATA_BFLOAT16: return -0x1.fep127;
    default: return tensor_round(dtype, -1e30);
    }
}

/* Calls `visit` (may be null) on each element of the image in the window at `out` of y. */
static struct seen look(const struct geometry *g, const struct part *x, const int *out,
                        void (*visit)(void *, int64_t), void *context)
{
    struct seen seen = {.first = -1};
    int64_t size = 1;
    for (int s = 0; s < g->rank - 2; ++s) size *= g->window[s];
    for (int64_t k = 0; k < size; ++k) {
        int at[8] = {out[0], out[1]};
        int64_t rest = k;
        bool inside = true;
        int64_t index;
        double value;
        for (int s = g->rank - 3; s >= 0; --s) {
            at[2 + s] = out[2 + s] * g->stride[s] - g->pad[s] + (int)(rest % g->window[s]);
            rest /= g->window[s];
            inside &= at[2 + s] >= 0 && at[2 + s] < g->x[2 + s];
        }
        if (!inside) continue;
        index = part_at(x, at);
        value = x->whole->value[index];
        seen.inside += 1;
        seen.sum += value;
        seen.naive += (float)value;
        seen.magnitude += fabs(value);
        if (visit) visit(context, index);
        if (isnan(value) && !g->propagate) continue;
        if (seen.first >= 0 && (isnan(seen.largest) || value <= seen.largest)) continue;
        seen.largest = value;
        seen.first = index;
    }
    seen.n =
        g->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING ? (double)seen.inside : (double)size;
    if (seen.first < 0) seen.largest = lowest(x->whole->dtype);
    return seen;
}

static void check_forward(const struct geometry *g, const struct call *c, double *before)
{
    double *naive = malloc((size_t)c->y->whole->count * sizeof *naive);
    double *magnitude = calloc((size_t)c->y->whole->count, sizeof *magnitude);
    memcpy(naive, before, (size_t)c->y->whole->count * sizeof *naive);
    for (int64_t i = 0; i < c->y->count; ++i) {
        int64_t index = part_index(c->y, i);
        double old = c->beta != 0.0 ? c->beta * before[index] : 0.0;
        struct seen seen;
        int out[8];
        part_coordinates(c->y, i, out);
        seen = look(g, c->x, out, NULL, NULL);
        if (c->alpha == 0.0) { /* what is not wanted does not count, not even a NaN */
            before[index] = naive[index] = old;
            magnitude[index] = fabs(old);
            continue;
        }
        if (is_max(g)) {
            before[index] = naive[index] = c->alpha * seen.largest + old;
            magnitude[index] =
                isfinite(seen.largest) ? fabs(c->alpha * seen.largest) + fabs(old) : 0;
        } else {
            before[index] = c->alpha * (seen.inside ? seen.sum / seen.n : 0.0) + old;
            naive[index] = c->alpha * (seen.inside ? (double)seen.naive / seen.n : 0.0) + old;
            magnitude[index] = fabs(c->alpha) * seen.magnitude / (seen.n + 1e-9) + fabs(old);
            if (!isfinite(magnitude[index])) magnitude[index] = 0;
        }
    }
    check_values("y", c->y->whole, before, naive, magnitude,
                 c->y->whole->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(naive);
    free(magnitude);
}

struct spread {
    double share;
    double *sum, *magnitude;
};

static void add_share(void *context, int64_t index)
{
    const struct spread *spread = context;
    spread->sum[index] += spread->share;
    spread->magnitude[index] += fabs(spread->share);
}

static void check_backward(const struct geometry *g, const struct call *c, double *before)
{
    int64_t count = c->dx->whole->count;
    double *sum = calloc((size_t)count, sizeof *sum);
    double *magnitude = calloc((size_t)count, sizeof *magnitude);
    for (int64_t i = 0; i < c->dy->count; ++i) {
        struct spread spread = {0, sum, magnitude};
        struct seen seen;
        int out[8];
        part_coordinates(c->dy, i, out);
        seen = look(g, c->x, out, NULL, NULL);
        spread.share = c->dy->whole->value[part_index(c->dy, i)];
        if (is_max(g)) {
            if (seen.first >= 0) add_share(&spread, seen.first);
        } else if (seen.inside) {
            spread.share /= seen.n;
            look(g, c->x, out, add_share, &spread);
        }
    }
    for (int64_t i = 0; i < c->dx->count; ++i) {
        int64_t index = part_index(c->dx, i);
        double old = c->beta != 0.0 ? c->beta * before[index] : 0.0;
        before[index] = c->alpha * sum[index] + old;
        magnitude[index] = fabs(c->alpha) * magnitude[index] + fabs(old);
    }
    for (int64_t i = 0; i < count; ++i) magnitude[i] *= 4; /* a sum of a few dozen at most */
    check_values("dx", c->dx->whole, before, NULL, magnitude,
                 c->dx->whole->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(sum);
    free(magnitude);
}

static void random_geometry(struct geometry *g, int lanes)
{
    g->rank = random_of(3, 4, 4, 4, 5, 5, 6);
    if (lanes > 1) g->rank = 4;
    g->propagate = random_chance(0.5);
    g->x[0] = g->y[0] = (int)random_int(1, 3);
    g->x[1] = g->y[1] =
        lanes > 1 ? lanes * (int)random_int(1, 2) : random_of(1, 2, 3, 4, 5, 7, 8, 16, 24);
    for (int s = 0; s < g->rank - 2; ++s) {
        int longest = g->rank <= 4 ? 13 : g->rank == 5 ? 7 : 4;
        int slack;
        g->x[2 + s] = (int)random_int(1, longest);
        g->window[s] = (int)random_int(1, g->rank <= 4 ? 5 : 3);
        g->pad[s] = (int)random_int(0, g->window[s] - 1);
        g->stride[s] = (int)random_int(1, 4);
        if (g->x[2 + s] + 2 * g->pad[s] < g->window[s]) g->x[2 + s] = g->window[s];
        slack = g->x[2 + s] + 2 * g->pad[s] - g->window[s];
        g->y[2 + s] = slack / g->stride[s] + 1;
        /* some callers round up: a last window that begins within the padded image */
        if (g->y[2 + s] * g->stride[s] < g->x[2 + s] + 2 * g->pad[s] && random_chance(0.3)) {
            g->y[2 + s] += 1;
        }
    }
}

static const char *const type_name[] = {"fp32",   "fp64",  "fp16",    "int8",    "int32",
                                        "int8x4", "uint8", "uint8x4", "int8x32", "bf16"};

static int lanes_of(int type)
{
    return type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ? 4
           : type == CUDNN_DATA_INT8x32                            ? 32
                                                                   : 1;
}

static bool is_float(int type)
{
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
           type == CUDNN_DATA_BFLOAT16;
}

static double random_scalar(void)
{
    return (double)random_of(0, 2, 2, 1, -3) * 0.5;
}

/* Few different values, so that maxima are often shared; and now and then a NaN. */
static void roughen(struct part *x, bool nan)
{
    for (int64_t i = 0; i < x->whole->count; ++i) {
        if (random_chance(0.5)) x->whole->value[i] = (double)random_int(0, 2);
        if (nan && random_chance(0.1)) x->whole->value[i] = NAN;
        if (nan && random_chance(0.05)) x->whole->value[i] = random_chance(0.5) ? -INFINITY : 0.0;
    }
    tensor_write(x->whole);
}

static void random_case(int mode, int type, int turn)
{
    struct geometry g = {.mode = mode};
    struct call c = {.alpha = 1.0};
    cudnnDataType_t dtype = (cudnnDataType_t)type;
    enum layout layout;
    int x_margin[8], y_margin[8];
    const int *x_extra;
    const int *y_extra;
    double *before;
    bool nan;
    if (!case_begin("pooling/mode%d/%s/%d", mode, type_name[type], turn)) return;
    random_geometry(&g, lanes_of(type));
    layout = lanes_of(type) > 1 ? LAYOUT_VECT : random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
    x_extra = lanes_of(type) > 1 ? NULL : random_margin(g.rank, x_margin);
    y_extra = lanes_of(type) > 1 ? NULL : random_margin(g.rank, y_margin);
    if (turn) c.alpha = random_scalar(), c.beta = random_scalar();
    nan = is_float(type) && random_chance(0.3);
    c.pooling = descriptor(&g);
    c.x = part_input(dtype, g.rank, g.x, layout, x_extra, is_float(type) ? -4.0 : -100.0,
                     is_float(type) ? 4.0 : 100.0);
    if (random_chance(0.5) || nan) roughen(c.x, nan);
    c.y = part_output(dtype, g.rank, g.y, layout, y_extra, c.beta == 0.0);
    before = part_expected(c.y);
    if (run_call(forward, &c)) check_forward(&g, &c, before);
    free(before);
    if (is_float(type)) {
        /* y is an input now: whatever the forward pass made of it */
        struct part *y = c.y;
        c.dy = part_input(dtype, g.rank, g.y, layout, y_extra, -4.0, 4.0);
        c.dx = part_output(dtype, g.rank, g.x, layout, x_extra, c.beta == 0.0);
        c.y = part_input(dtype, g.rank, g.y, layout, y_extra, -4.0, 4.0);
        before = part_expected(c.dx);
        y->whole->output = false;
        if (run_call(backward, &c)) check_backward(&g, &c, before);
        free(before);
    }
    cudnnDestroyPoolingDescriptor(c.pooling);
    parts_free();
    case_end();
}

/* Windows that are reductions, images whose maxima do not fit the scratch at once, and one with too
 * many windows to remember any. */
static void large_case(const char *name, int mode, struct geometry g)
{
    struct call c = {.alpha = 1.0};
    double *before;
    g.mode = mode;
    g.propagate = 1;
    if (!case_begin("pooling/large/%s/mode%d", name, mode)) return;
    for (int d = 0; d < g.rank; ++d) {
        g.y[d] =
            d < 2 ? g.x[d] : (g.x[d] + 2 * g.pad[d - 2] - g.window[d - 2]) / g.stride[d - 2] + 1;
    }
    c.pooling = descriptor(&g);
    c.x = part_input(CUDNN_DATA_FLOAT, g.rank, g.x, LAYOUT_NCHW, NULL, -4.0, 4.0);
    roughen(c.x, false);
    c.y = part_output(CUDNN_DATA_FLOAT, g.rank, g.y, LAYOUT_NCHW, NULL, true);
    before = part_expected(c.y);
    if (run_call(forward, &c)) check_forward(&g, &c, before);
    free(before);
    c.dy = part_input(CUDNN_DATA_FLOAT, g.rank, g.y, LAYOUT_NCHW, NULL, -4.0, 4.0);
    c.dx = part_output(CUDNN_DATA_FLOAT, g.rank, g.x, LAYOUT_NCHW, NULL, true);
    before = part_expected(c.dx);
    if (run_call(backward, &c)) check_backward(&g, &c, before);
    free(before);
    cudnnDestroyPoolingDescriptor(c.pooling);
    parts_free();
    case_end();
}

static void large_cases(void)
{
    for (int mode = 0; mode < 3; ++mode) {
        large_case("global", mode,
                   (struct geometry){
                       .rank = 4, .x = {2, 3, 200, 190}, .window = {200, 190}, .stride = {1, 1}});
        large_case("wide", mode,
                   (struct geometry){.rank = 4,
                                     .x = {1, 2, 40, 41},
                                     .window = {9, 11},
                                     .pad = {4, 10},
                                     .stride = {2, 3}});
        large_case("window_over", mode,
                   (struct geometry){
                       .rank = 3, .x = {1, 2, 5}, .window = {300}, .pad = {299}, .stride = {50}});
        large_case("many_images", mode,
                   (struct geometry){
                       .rank = 4, .x = {5, 3, 300, 300}, .window = {2, 3}, .stride = {1, 1}});
        large_case(
            "long_line", mode,
            (struct geometry){.rank = 3, .x = {1, 1, 1200000}, .window = {3}, .stride = {2}});
    }
}

/* An average is linear: dx holds (f(x + h e) - f(x - h e)) / 2h exactly, but for rounding. */
static double weighted(const struct call *c, const double *weight)
{
    double sum = 0.0;
    run_call(forward, (void *)(uintptr_t)c);
    for (int64_t i = 0; i < c->y->count; ++i) sum += weight[i] * c->y->whole->value[i];
    return sum;
}

static void difference_case(int mode)
{
    struct geometry g = {.mode = mode,
                         .rank = 4,
                         .x = {1, 2, 5, 4},
                         .y = {1, 2, 3, 3},
                         .window = {3, 2},
                         .pad = {1, 1},
                         .stride = {2, 2}};
    struct call c = {.alpha = 1.0};
    double weight[18];
    if (!harness_values || !case_begin("pooling/differences/mode%d", mode)) return;
    c.pooling = descriptor(&g);
    c.x = part_input(CUDNN_DATA_DOUBLE, 4, g.x, LAYOUT_NCHW, NULL, -4.0, 4.0);
    c.y = part_output(CUDNN_DATA_DOUBLE, 4, g.y, LAYOUT_NCHW, NULL, false);
    c.dy = part_input(CUDNN_DATA_DOUBLE, 4, g.y, LAYOUT_NCHW, NULL, -4.0, 4.0);
    c.dx = part_output(CUDNN_DATA_DOUBLE, 4, g.x, LAYOUT_NCHW, NULL, true);
    memcpy(weight, c.dy->whole->value, sizeof weight);
    for (int64_t i = 0; i < c.x->count; ++i) {
        double x = c.x->whole->value[i];
        double up, down, dx;
        c.x->whole->value[i] = x + 1e-4;
        tensor_write(c.x->whole);
        up = weighted(&c, weight);
        c.x->whole->value[i] = x - 1e-4;
        tensor_write(c.x->whole);
        down = weighted(&c, weight);
        c.x->whole->value[i] = x;
        tensor_write(c.x->whole);
        run_call(backward, &c);
        dx = c.dx->whole->value[i];
        if (!(fabs((up - down) / 2e-4 - dx) < 1e-9)) {
            case_fail("dx[%lld] is %.12g, the difference quotient %.12g", (long long)i, dx,
                      (up - down) / 2e-4);
        }
    }
    cudnnDestroyPoolingDescriptor(c.pooling);
    parts_free();
    case_end();
}

/* ---- Every kernel of the GPU's engines ---- */

/* Images of four floating types in both layouts; where there are two of them, also from the second on
 * of three, which begins at an odd element where an image has an odd number of them. */
static const struct {
    const char *name;
    struct geometry g;
} exact[] = {
    {"2_2", {.rank = 4, .x = {2, 16, 9, 16}, .window = {2, 2}, .stride = {2, 2}}},
    {"3_2", {.rank = 4, .x = {2, 16, 8, 16}, .window = {3, 3}, .pad = {1, 1}, .stride = {2, 2}}},
    {"3_1", {.rank = 4, .x = {2, 16, 9, 11}, .window = {3, 3}, .pad = {1, 1}, .stride = {1, 1}}},
    {"4_4", {.rank = 4, .x = {2, 16, 9, 12}, .window = {4, 4}, .pad = {1, 1}, .stride = {4, 4}}},
    {"2_1", {.rank = 4, .x = {2, 16, 7, 9}, .window = {2, 2}, .stride = {1, 1}}},
    {"5_1", {.rank = 4, .x = {2, 16, 9, 8}, .window = {5, 5}, .pad = {2, 2}, .stride = {1, 1}}},
    {"5_2", {.rank = 4, .x = {2, 16, 11, 7}, .window = {5, 5}, .pad = {2, 2}, .stride = {2, 2}}},
    {"odd_2_2", {.rank = 4, .x = {2, 3, 9, 13}, .window = {2, 2}, .stride = {2, 2}}},
    {"odd_2_1", {.rank = 4, .x = {2, 3, 7, 9}, .window = {2, 2}, .stride = {1, 1}}},
    {"odd_3_2", {.rank = 4, .x = {2, 3, 9, 11}, .window = {3, 3}, .pad = {1, 1}, .stride = {2, 2}}},
    {"odd_3_1", {.rank = 4, .x = {2, 5, 7, 13}, .window = {3, 3}, .pad = {1, 1}, .stride = {1, 1}}},
    {"odd_5_2", {.rank = 4, .x = {3, 3, 11, 7}, .window = {5, 5}, .pad = {2, 2}, .stride = {2, 2}}},
    {"plane", {.rank = 4, .x = {2, 16, 5, 5}, .window = {5, 5}, .stride = {1, 1}}},
    {"odd_plane", {.rank = 4, .x = {2, 7, 5, 5}, .window = {5, 5}, .stride = {1, 1}}},
    {"large_plane", {.rank = 4, .x = {1, 2, 20, 20}, .window = {20, 20}, .stride = {1, 1}}},
    {"larger_plane", {.rank = 4, .x = {1, 2, 70, 70}, .window = {70, 70}, .stride = {1, 1}}},
    {"largest_plane", {.rank = 4, .x = {1, 3, 400, 320}, .window = {400, 320}, .stride = {1, 1}}},
    {"row", {.rank = 4, .x = {2, 3, 1, 32}, .window = {1, 2}, .stride = {1, 2}}},
    {"wide", {.rank = 4, .x = {1, 5, 14, 15}, .window = {13, 13}, .pad = {6, 6}, .stride = {1, 1}}},
    {"deep_2_2", {.rank = 5, .x = {2, 3, 6, 4, 16}, .window = {2, 2, 2}, .stride = {2, 2, 2}}},
    {"deep_3_2",
     {.rank = 5,
      .x = {1, 16, 5, 6, 8},
      .window = {3, 3, 3},
      .pad = {1, 1, 1},
      .stride = {2, 2, 2}}},
    {"deep_3_1",
     {.rank = 5, .x = {3, 3, 5, 7, 7}, .window = {3, 3, 3}, .pad = {1, 1, 1}, .stride = {1, 1, 1}}},
};

static struct part *moved(struct part *part, bool moves)
{
    if (moves) part_move(part);
    return part;
}

static void exact_case(int index, int mode, int type, enum layout layout)
{
    struct geometry g = exact[index].g;
    struct call c = {.alpha = 1.0};
    cudnnDataType_t dtype = (cudnnDataType_t)type;
    const bool moves = g.x[0] > 1;
    const int margin[8] = {moves};
    double *before;
    if (!case_begin("pooling/exact/%s/%s/%s/mode%d", exact[index].name, type_name[type],
                    layout == LAYOUT_NHWC ? "nhwc" : "nchw", mode)) {
        return;
    }
    g.mode = mode;
    g.propagate = random_chance(0.5);
    if (random_chance(0.3)) c.alpha = 0.5, c.beta = -1.5;
    for (int d = 0; d < g.rank; ++d) {
        g.y[d] =
            d < 2 ? g.x[d] : (g.x[d] + 2 * g.pad[d - 2] - g.window[d - 2]) / g.stride[d - 2] + 1;
    }
    c.pooling = descriptor(&g);
    c.x = moved(part_input(dtype, g.rank, g.x, layout, margin, -4.0, 4.0), moves);
    if (random_chance(0.5)) roughen(c.x, random_chance(0.5));
    c.y = moved(part_output(dtype, g.rank, g.y, layout, margin, false), moves);
    before = part_expected(c.y);
    if (run_call(forward, &c)) check_forward(&g, &c, before);
    free(before);
    c.y->whole->output = false;
    c.dy = moved(part_input(dtype, g.rank, g.y, layout, margin, -4.0, 4.0), moves);
    c.dx = moved(part_output(dtype, g.rank, g.x, layout, margin, false), moves);
    before = part_expected(c.dx);
    if (run_call(backward, &c)) check_backward(&g, &c, before);
    free(before);
    cudnnDestroyPoolingDescriptor(c.pooling);
    parts_free();
    case_end();
}

static void exact_cases(void)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16};
    for (int i = 0; i < (int)(sizeof exact / sizeof *exact); ++i) {
        const bool largest = !strcmp(exact[i].name, "largest_plane"); /* slow to judge */
        for (int mode = largest; mode < (largest ? 2 : 3); ++mode) {
            for (int t = 0; t < 4; ++t) {
                if (!largest) exact_case(i, mode, types[t], LAYOUT_NCHW);
                exact_case(i, mode, types[t], LAYOUT_NHWC);
            }
        }
    }
}

#define WD_KERNEL(symbol, ...) "wd_" #symbol,
static const char *const kernels[] = {
#include "ops/pooling/pooling_single_back_kernels.def"
#include "ops/pooling/pooling_single_kernels.def"
#include "ops/pooling/pooling_tile_back_kernels.def"
#include "ops/pooling/pooling_tile_kernels.def"
#include "ops/pooling/pooling_vector_back_kernels.def"
#include "ops/pooling/pooling_vector_kernels.def"
};
#undef WD_KERNEL

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int mode = 0; mode < 4; ++mode) {
        for (int type = 0; type <= CUDNN_DATA_BFLOAT16; ++type) {
            int turns = is_float(type) ? 24 : 6;
            for (int turn = 0; turn < turns; ++turn) random_case(mode, type, turn);
        }
        difference_case(mode);
    }
    large_cases();
    exact_cases();
    if (argc == 1) kernels_reached(kernels, (int)(sizeof kernels / sizeof *kernels));
    return harness_finish();
}
