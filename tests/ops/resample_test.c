/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling against its documented meaning (resample_case.h) in double and in scatter form: each
 * window hands its gradient back to the pixels that count in it. All modes, padding modes, types,
 * layouts, ranks, fractions, index tensors, NaN; gradients also against differences of the forward
 * pass. */
#include "resample_run.h"

static const char *const mode_name[] = {"nearest", "bilinear", "average", "max", "exclude"};

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

static void random_cases(int type, int mode, int padding, enum layout layout)
{
    static const int floats[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                 CUDNN_DATA_BFLOAT16};
    int lanes = resample_lanes(type);
    for (int direction = 0; direction < (resample_is_float(type) ? 2 : 1); ++direction) {
        struct geometry g = {.mode = mode, .padding = padding};
        int other = type;
        if (!case_begin("resample %s %s %s padding %d layout %d", mode_name[mode],
                        direction ? "backward" : "forward", node_type_name[type], padding,
                        (int)layout)) {
            continue;
        }
        random_geometry(&g, lanes);
        /* minus infinity in a sum of integers, or scaled by 0, has no value to speak of */
        if (resample_is_float(type) && random_chance(0.3)) other = floats[random_int(0, 3)];
        if (direction) resample_backward(&g, type, other, layout, LIE_MIXED);
        else resample_forward(&g, type, other, layout, LIE_MIXED);
        case_end();
    }
}

/* Windows of a quarter of a pixel, most of which have none: before the image, in it and beyond its end; along the
 * columns the same, or whole ones. */
static void sparse_windows(int type, int padding, enum layout layout)
{
    static const struct {
        int image, stride, pre, post; /* of rows */
        int window, step;             /* of columns */
    } forms[] = {
        {9, 2 * UNIT / 3, UNIT, 2 * UNIT / 3, UNIT / 4, 2 * UNIT / 3},
        {8, UNIT / 2, 0, 0, UNIT / 4, UNIT / 2},
        {8, UNIT / 2, 0, 0, 3 * UNIT, UNIT},
        {9, 2 * UNIT / 3, 2 * UNIT, 2 * UNIT, 3 * UNIT, UNIT},
    };
    for (int k = 0; k < (int)(sizeof forms / sizeof forms[0]); ++k) {
        struct geometry g = {
            .mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, .padding = padding, .rank = 4};
        if (!case_begin("resample sparse %d %s padding %d layout %d", k, node_type_name[type],
                        padding, (int)layout)) {
            continue;
        }
        g.x[0] = 2;
        g.x[1] = 8;
        g.x[2] = g.x[3] = forms[k].image;
        g.window[0] = UNIT / 4;
        g.window[1] = forms[k].window;
        g.stride[0] = forms[k].stride;
        g.stride[1] = forms[k].step;
        g.pre[0] = g.pre[1] = forms[k].pre;
        g.post[0] = g.post[1] = forms[k].post;
        if (!set_output(&g)) case_fail("no output");
        for (int lie = LIE_MIXED; lie <= LIE_ODD; ++lie) {
            resample_forward(&g, type, type, layout, (enum resample_lie)lie);
        }
        case_end();
        if (!case_begin("resample sparse %d backward %s padding %d layout %d", k,
                        node_type_name[type], padding, (int)layout)) {
            continue;
        }
        for (int lie = LIE_MIXED; lie <= LIE_ODD; ++lie) {
            resample_backward(&g, type, type, layout, (enum resample_lie)lie);
        }
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
    resample_forward(&g, type, type, LAYOUT_NHWC, LIE_MIXED);
    resample_backward(&g, type, type, LAYOUT_NCHW, LIE_MIXED);
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
        double *gradient = resample_copy(dx); /* the next call poisons dx again */
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
        bool vector = resample_lanes(types[t]) > 1;
        for (int mode = CUDNN_RESAMPLE_NEAREST; mode <= CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
             ++mode) {
            for (int padding = CUDNN_ZERO_PAD; padding <= CUDNN_EDGE_VAL_PAD; ++padding) {
                for (int l = vector ? LAYOUT_VECT : LAYOUT_NCHW;
                     l <= (vector ? LAYOUT_VECT : LAYOUT_GAPS); ++l) {
                    random_cases(types[t], mode, padding, (enum layout)l);
                    if (mode == CUDNN_RESAMPLE_NEAREST && padding != CUDNN_NEG_INF_PAD &&
                        resample_is_float(types[t])) {
                        sparse_windows(types[t], padding, (enum layout)l);
                    }
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
