/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling against its documented meaning (resample_case.h) in double and in scatter form: each
 * window hands its gradient back to the pixels that count in it. All modes, padding modes, types,
 * layouts, ranks, fractions, index tensors, NaN; gradients also against differences of the forward
 * pass. */
#include "resample_case.h"

static const char *const mode_name[] = {"nearest", "bilinear", "average", "max", "exclude"};

static cudnnDataType_t arithmetic(cudnnDataType_t a, cudnnDataType_t b)
{
    bool wide = a == CUDNN_DATA_DOUBLE || b == CUDNN_DATA_DOUBLE;
    return wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static void check_forward(const struct geometry *g, const struct tensor *x, const struct tensor *y,
                          const struct tensor *idx, double alpha, double beta, const double *before)
{
    static struct pixel list[PIXELS];
    double *exact = node_doubles(y->count);
    double *naive = node_doubles(y->count);
    double *magnitude = node_doubles(y->count);
    double *places = node_doubles(y->count);
    for (int64_t i = 0; i < y->count; ++i) {
        double old = beta != 0.0 ? beta * before[i] : 0.0;
        double total, value = 0, size = 0;
        float single = 0;
        int out[5], count;
        coordinates(y, i, out);
        count = look(g, x, out, list, &total);
        if (is_max(g)) {
            int first = first_largest(g, x, list, count);
            places[i] = first < 0 ? 0 : first;
            value = first < 0               ? -INFINITY
                    : list[first].index < 0 ? list[first].value
                                            : x->value[list[first].index];
            single = (float)value;
            size = fabs(value);
        } else {
            for (int p = 0; p < count; ++p) {
                double v = list[p].index < 0 ? list[p].value : x->value[list[p].index];
                value += list[p].weight * v;
                single += (float)list[p].weight * (float)v;
                size += list[p].weight * fabs(v);
            }
            value = count ? value / total : 0.0;
            single = count ? single / (float)total : 0.0f;
            size = count ? size / total : 0.0;
        }
        exact[i] = (alpha != 0.0 ? alpha * value : 0.0) + old;
        naive[i] = (alpha != 0.0 ? alpha * (double)single : 0.0) + old;
        magnitude[i] = fabs(alpha) * size + fabs(old);
        if (!isfinite(magnitude[i])) magnitude[i] = 0;
        if (y->dtype == CUDNN_DATA_INT64) { /* saturates, where narrower ones are rounded to fit */
            exact[i] = fmax(-0x1p63, fmin(0x1p63, exact[i]));
            naive[i] = fmax(-0x1p63, fmin(0x1p63, naive[i]));
        }
    }
    check_values("y", y, exact, naive, magnitude, arithmetic(x->dtype, y->dtype));
    if (idx) check_values("idx", idx, places, NULL, NULL, CUDNN_DATA_DOUBLE);
    free(exact);
    free(naive);
    free(magnitude);
    free(places);
}

static void check_backward(const struct geometry *g, const struct tensor *x,
                           const struct tensor *dy, const struct tensor *dx, double alpha,
                           double beta, const double *before)
{
    static struct pixel list[PIXELS];
    double *exact = node_doubles(dx->count);
    double *magnitude = node_doubles(dx->count);
    for (int64_t i = 0; i < dy->count; ++i) {
        double total;
        int out[5], count;
        coordinates(dy, i, out);
        count = look(g, dx, out, list, &total);
        if (is_max(g)) {
            int first = first_largest(g, x, list, count);
            int64_t to = count ? list[first < 0 ? 0 : first].index : -1;
            if (to >= 0) {
                exact[to] += dy->value[i];
                magnitude[to] += fabs(dy->value[i]);
            }
            continue;
        }
        for (int p = 0; p < count; ++p) {
            double share = dy->value[i] * list[p].weight / total;
            if (list[p].index < 0) continue;
            exact[list[p].index] += share;
            magnitude[list[p].index] += fabs(share);
        }
    }
    for (int64_t i = 0; i < dx->count; ++i) {
        double old = beta != 0.0 ? beta * before[i] : 0.0;
        exact[i] = (alpha != 0.0 ? alpha * exact[i] : 0.0) + old;
        magnitude[i] = 4 * fabs(alpha) * magnitude[i] + fabs(old); /* a sum of a few dozen */
    }
    check_values("dx", dx, exact, NULL, magnitude, arithmetic(dy->dtype, dx->dtype));
    free(exact);
    free(magnitude);
}

static int length(bool fractions, int least, int most)
{
    return fractions ? random_of(3, 4, 6, 12) * (int)random_int(least, most)
                     : UNIT * (int)random_int(least, most);
}

static void random_geometry(struct geometry *g, int lanes)
{
    do {
        bool fractions = random_chance(0.4);
        g->rank = lanes > 1 ? 4 : random_of(3, 4, 4, 4, 5);
        g->propagate = random_chance(0.5);
        g->x[0] = (int)random_int(1, 3);
        g->x[1] = lanes > 1 ? lanes * (int)random_int(1, 2) : random_of(1, 2, 3, 5, 7);
        if (lanes == 32) g->x[1] = 32;
        for (int s = 0; s < g->rank - 2; ++s) {
            g->x[2 + s] = (int)random_int(1, g->rank < 5 ? 11 : 5);
            g->window[s] = length(fractions, 1, g->rank < 5 ? 4 : 3);
            g->stride[s] = length(fractions, 1, 3);
            g->pre[s] = length(fractions, 0, 3);
            g->post[s] = length(fractions, 0, 3);
        }
    } while (!set_output(g));
}

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

static enum layout random_layout(int lanes)
{
    return lanes > 1 ? LAYOUT_VECT : (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
}

/* Few different values, so that maxima are often shared; and now and then a NaN. */
static void spoil(struct tensor *x)
{
    bool few = random_chance(0.5);
    bool nans = is_float((int)x->dtype) && random_chance(0.3);
    for (int64_t i = 0; i < x->count; ++i) {
        if (few) x->value[i] = floor(x->value[i]);
        if (nans && random_chance(0.1)) x->value[i] = NAN;
    }
    tensor_write(x);
}

static double *copy_of(const struct tensor *t)
{
    double *copy = node_doubles(t->count);
    memcpy(copy, t->value, (size_t)t->count * sizeof *copy);
    return copy;
}

static int index_type(const struct geometry *g)
{
    int places = 1;
    for (int s = 0; s < g->rank - 2; ++s) places *= (g->window[s] + UNIT - 1) / UNIT;
    return places > 127 ? random_of(CUDNN_DATA_INT32, CUDNN_DATA_INT64)
                        : random_of(CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_UINT8,
                                    CUDNN_DATA_INT32, CUDNN_DATA_INT64);
}

static void forward_case(const struct geometry *g, int xtype, int ytype, enum layout layout)
{
    struct node_run r = {0};
    double alpha = random_scalar(), beta = random_scalar();
    int lanes = lanes_of(xtype);
    struct tensor *x = tensor_input((cudnnDataType_t)xtype, g->rank, g->x, layout,
                                    xtype == CUDNN_DATA_UINT8 ? 0 : -5, 5);
    struct tensor *y =
        beta != 0.0
            ? tensor_inout((cudnnDataType_t)ytype, g->rank, g->y, random_layout(lanes), -4, 4)
            : tensor_output((cudnnDataType_t)ytype, g->rank, g->y, random_layout(lanes));
    struct tensor *idx = NULL;
    double *before = copy_of(y);
    be_desc resample = be_final(resample_open(g, arithmetic(x->dtype, y->dtype)));
    be_desc dx, dy, didx = NULL;
    spoil(x);
    if (is_max(g) && lanes == 1 && random_chance(0.6)) {
        idx = tensor_output((cudnnDataType_t)index_type(g), g->rank, g->y, random_layout(1));
    }
    dx = node_add(&r, x);
    dy = node_add(&r, y);
    if (idx) didx = node_add(&r, idx);
    if (node_run(&r, be_final(forward_open(resample, dx, dy, didx, alpha, beta)))) {
        check_forward(g, x, y, idx, alpha, beta, before);
    }
    free(before);
}

static void backward_case(const struct geometry *g, int dytype, int dxtype, enum layout layout)
{
    struct node_run r = {0};
    double alpha = random_scalar(), beta = random_scalar();
    bool indices = is_max(g) && random_chance(0.5);
    struct tensor *x =
        tensor_input((cudnnDataType_t)dxtype, g->rank, g->x, random_layout(1), -5, 5);
    struct tensor *dy = tensor_input((cudnnDataType_t)dytype, g->rank, g->y, layout, -5, 5);
    struct tensor *dx =
        beta != 0.0 ? tensor_inout((cudnnDataType_t)dxtype, g->rank, g->x, random_layout(1), -4, 4)
                    : tensor_output((cudnnDataType_t)dxtype, g->rank, g->x, random_layout(1));
    struct tensor *y = NULL, *idx = NULL;
    double *before = copy_of(dx);
    be_desc resample = be_final(resample_open(g, arithmetic(dy->dtype, dx->dtype)));
    be_desc ddx, ddy, dd_idx = NULL, dd_x = NULL, dd_y = NULL;
    spoil(x);
    ddy = node_add(&r, dy);
    ddx = node_add(&r, dx);
    if (indices) {
        static struct pixel list[PIXELS];
        idx = tensor_input((cudnnDataType_t)index_type(g), g->rank, g->y, random_layout(1), 0, 0);
        for (int64_t i = 0; i < idx->count; ++i) {
            int out[5], count, first;
            double total;
            coordinates(idx, i, out);
            count = look(g, x, out, list, &total);
            first = first_largest(g, x, list, count);
            idx->value[i] = first < 0 ? 0 : first;
        }
        tensor_write(idx);
        dd_idx = node_add(&r, idx);
    } else if (is_max(g)) {
        y = tensor_input((cudnnDataType_t)dytype, g->rank, g->y, random_layout(1), -5, 5);
        dd_x = node_add(&r, x);
        dd_y = node_add(&r, y);
    }
    if (node_run(&r,
                 be_final(backward_open(resample, ddy, dd_idx, dd_x, dd_y, ddx, alpha, beta)))) {
        check_backward(g, x, dy, dx, alpha, beta, before);
    }
    free(before);
}

static void random_cases(int type, int mode, int padding, enum layout layout)
{
    static const int floats[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                 CUDNN_DATA_BFLOAT16};
    int lanes = lanes_of(type);
    for (int direction = 0; direction < (is_float(type) ? 2 : 1); ++direction) {
        struct geometry g = {.mode = mode, .padding = padding};
        int other = type;
        if (!case_begin("resample %s %s %s padding %d layout %d", mode_name[mode],
                        direction ? "backward" : "forward", node_type_name[type], padding,
                        (int)layout)) {
            continue;
        }
        random_geometry(&g, lanes);
        /* minus infinity in a sum of integers, or scaled by 0, has no value to speak of */
        if (is_float(type) && random_chance(0.3)) other = floats[random_int(0, 3)];
        if (direction) backward_case(&g, type, other, layout);
        else forward_case(&g, type, other, layout);
        be_free_all();
        case_end();
    }
}

/* Windows of whole images, and of more than a hundred places: reductions, and wide indices. */
static void long_window(int mode, int type, int extent)
{
    struct geometry g = {.mode = mode, .padding = CUDNN_ZERO_PAD, .rank = 4};
    if (!case_begin("resample long %s %s %d", mode_name[mode], node_type_name[type], extent)) {
        return;
    }
    g.x[0] = 1;
    g.x[1] = 3;
    for (int s = 0; s < 2; ++s) {
        g.x[2 + s] = extent + s;
        g.window[s] = (extent - 1 + s) * UNIT;
        g.stride[s] = UNIT;
        g.pre[s] = g.post[s] = s * UNIT;
    }
    if (!set_output(&g)) case_fail("no output");
    forward_case(&g, type, type, LAYOUT_NHWC);
    be_free_all();
    backward_case(&g, type, type, LAYOUT_NCHW);
    be_free_all();
    case_end();
}

/* sum(dy * y) moves with an element of x as dx says. */
static void differences(int mode, int padding)
{
    struct geometry g = {.mode = mode, .padding = padding, .propagate = 1};
    struct node_run f = {0}, b = {0};
    struct tensor *x, *y, *dy, *dx, *xb, *yb;
    be_desc resample, desc[4];
    const double step = 1e-3; /* distances between values are larger: no maximum changes */
    if (!case_begin("resample differences %s padding %d", mode_name[mode], padding)) return;
    random_geometry(&g, 1);
    resample = be_final(resample_open(&g, CUDNN_DATA_DOUBLE));
    x = tensor_input(CUDNN_DATA_DOUBLE, g.rank, g.x, LAYOUT_NCHW, -1, 1);
    for (int64_t i = 0; i < x->count; ++i) {
        x->value[i] = (double)((i * 7919) % 10007) / 1000.0 + 0.001 * (double)(i % 3) + 2.0;
    }
    y = tensor_output(CUDNN_DATA_DOUBLE, g.rank, g.y, LAYOUT_NHWC);
    dy = tensor_input(CUDNN_DATA_DOUBLE, g.rank, g.y, LAYOUT_GAPS, -1, 1);
    dx = tensor_output(CUDNN_DATA_DOUBLE, g.rank, g.x, LAYOUT_NCHW);
    tensor_write(x);
    desc[0] = node_add(&b, dy);
    desc[1] = node_add(&b, dx);
    xb = x;
    yb = tensor_input(CUDNN_DATA_DOUBLE, g.rank, g.y, LAYOUT_NCHW, 0, 1);
    desc[2] = node_add(&b, xb);
    desc[3] = node_add(&b, yb);
    if (node_run(&b, be_final(backward_open(resample, desc[0], NULL, desc[2], desc[3], desc[1], 1.0,
                                            0.0)))) {
        double *gradient = copy_of(dx); /* the next call poisons dx again */
        desc[0] = node_add(&f, x);
        desc[1] = node_add(&f, y);
        node_plan(&f, be_final(forward_open(resample, desc[0], desc[1], NULL, 1.0, 0.0)));
        for (int probe = 0; probe < 6 && harness_values && !case_failed(); ++probe) {
            int64_t at = random_int(0, x->count - 1);
            double old = x->value[at], slope = 0;
            for (int side = -1; side <= 1; side += 2) {
                x->value[at] = old + side * step;
                tensor_write(x);
                if (!run_call(node_execute, &f)) break;
                for (int64_t i = 0; i < y->count; ++i) {
                    if (isfinite(y->value[i])) slope += side * y->value[i] * dy->value[i];
                }
            }
            slope /= 2 * step;
            x->value[at] = old;
            tensor_write(x);
            if (fabs(slope - gradient[at]) > 1e-8 * (1 + fabs(slope))) {
                case_fail("dx[%lld] is %g, the difference %g", (long long)at, gradient[at], slope);
            }
        }
        free(gradient);
    }
    be_free_all();
    case_end();
}

int main(int argc, char **argv)
{
    static const int types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8,   CUDNN_DATA_UINT8,
                                CUDNN_DATA_INT32,    CUDNN_DATA_INT64,  CUDNN_DATA_INT8x4,
                                CUDNN_DATA_UINT8x4,  CUDNN_DATA_INT8x32};
    harness_start(argc, argv);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; ++t) {
        bool vector = lanes_of(types[t]) > 1;
        for (int mode = CUDNN_RESAMPLE_NEAREST; mode <= CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
             ++mode) {
            for (int padding = CUDNN_ZERO_PAD; padding <= CUDNN_EDGE_VAL_PAD; ++padding) {
                for (int l = vector ? LAYOUT_VECT : LAYOUT_NCHW;
                     l <= (vector ? LAYOUT_VECT : LAYOUT_GAPS); ++l) {
                    random_cases(types[t], mode, padding, (enum layout)l);
                }
            }
        }
    }
    for (int mode = CUDNN_RESAMPLE_NEAREST; mode <= CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
         ++mode) {
        long_window(mode, CUDNN_DATA_FLOAT, 13);
        long_window(mode, CUDNN_DATA_DOUBLE, 23);
        for (int padding = CUDNN_ZERO_PAD; padding <= CUDNN_EDGE_VAL_PAD; ++padding) {
            /* a sum with minus infinity in it has no differences */
            if (padding == CUDNN_NEG_INF_PAD && mode != CUDNN_RESAMPLE_MAXPOOL) continue;
            differences(mode, padding);
        }
    }
    return harness_finish();
}
