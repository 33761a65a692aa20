/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling at its limits: the one bilinear form that is documented, value by value; no images, images
 * without pixels, padding beyond counting; and everything that is refused, with its text. */
#include "resample_run.h"

/* The documented factor-of-two upsampling, whose values are told here one by one. */
static void upsample_by_two(void)
{
    static const double image[4] = {1, 3, 7, 4};
    static const double expected[8] = {1, 2, 3, 5, 7, 5.5, 4, 4};
    static const int xdim[3] = {1, 1, 4}, ydim[3] = {1, 1, 8};
    struct geometry g = {.mode = CUDNN_RESAMPLE_BILINEAR, .padding = CUDNN_EDGE_VAL_PAD, .rank = 3};
    struct node_run r = {0};
    struct tensor *x, *y;
    be_desc dx, dy;
    if (!case_begin("resample bilinear by two")) return;
    g.window[0] = 2 * UNIT;
    g.stride[0] = g.pre[0] = UNIT / 2;
    g.post[0] = UNIT;
    x = tensor_input(CUDNN_DATA_FLOAT, 3, xdim, LAYOUT_NCHW, 0, 0);
    y = tensor_output(CUDNN_DATA_FLOAT, 3, ydim, LAYOUT_NCHW);
    memcpy(x->value, image, sizeof image);
    tensor_write(x);
    dx = node_add(&r, x);
    dy = node_add(&r, y);
    if (node_run(&r, be_final(forward_open(be_final(resample_open(&g, CUDNN_DATA_FLOAT)), dx, dy,
                                           NULL, 1.0, 0.0)))) {
        check_values("y", y, expected, NULL, NULL, CUDNN_DATA_FLOAT);
    }
    be_free_all();
    case_end();
}

/* No images at all; and images without pixels, of which padding is left. */
static void nothing(void)
{
    static const int none[4] = {0, 3, 7, 9}, no_y[4] = {0, 3, 4, 5}, strides[4] = {189, 63, 9, 1};
    static const int flat[4] = {2, 3, 0, 9}, ydim[4] = {2, 3, 2, 5};
    struct geometry g = {.mode = CUDNN_RESAMPLE_MAXPOOL, .padding = CUDNN_ZERO_PAD, .rank = 4};
    struct node_run r = {0}, p = {0};
    struct tensor *y, *other;
    be_desc dx, dy, resample;
    double *zeros;
    if (!case_begin("resample nothing")) return;
    for (int s = 0; s < 2; ++s) {
        g.window[s] = 3 * UNIT;
        g.stride[s] = 2 * UNIT;
        g.pre[s] = g.post[s] = UNIT;
    }
    resample = be_final(resample_open(&g, CUDNN_DATA_FLOAT));
    other = tensor_input(CUDNN_DATA_FLOAT, 4, ydim, LAYOUT_NCHW, 1, 2);
    dx = node_add_raw(&r, be_final(node_open_tensor(1, CUDNN_DATA_FLOAT, 4, none, strides, 1)),
                      other->data);
    dy = node_add_raw(&r, be_final(node_open_tensor(2, CUDNN_DATA_FLOAT, 4, no_y, strides, 1)),
                      other->data);
    node_run(&r, be_final(forward_open(resample, dx, dy, NULL, 1.0, 0.0)));
    g.pre[0] = 3 * UNIT;
    g.post[0] = 2 * UNIT;
    y = tensor_output(CUDNN_DATA_FLOAT, 4, ydim, LAYOUT_NCHW);
    zeros = node_doubles(y->count);
    dx = node_add_raw(&p, be_final(node_open_tensor(1, CUDNN_DATA_FLOAT, 4, flat, strides, 1)),
                      other->data);
    dy = node_add(&p, y);
    resample = be_final(resample_open(&g, CUDNN_DATA_FLOAT));
    if (node_run(&p, be_final(forward_open(resample, dx, dy, NULL, 1.0, 0.0)))) {
        check_values("y", y, zeros, NULL, NULL, CUDNN_DATA_FLOAT);
    }
    free(zeros);
    be_free_all();
    case_end();
}

/* Padding a thousand times as long as the image costs nothing: it is not visited. */
static void wide_padding(void)
{
    static const int xdim[3] = {1, 2, 5}, ydim[3] = {1, 2, 1};
    struct geometry g = {.mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, .rank = 3};
    if (!case_begin("resample wide padding")) return;
    for (g.padding = CUDNN_ZERO_PAD; g.padding <= CUDNN_EDGE_VAL_PAD; g.padding += 2) {
        struct node_run r = {0};
        struct tensor *x = tensor_input(CUDNN_DATA_DOUBLE, 3, xdim, LAYOUT_NCHW, -1, 1);
        struct tensor *y = tensor_output(CUDNN_DATA_DOUBLE, 3, ydim, LAYOUT_NCHW);
        const int64_t far = (int64_t)1 << 40, window = 2 * far + 5, one = 1;
        double exact[2], magnitude[2];
        be_desc dx = node_add(&r, x), dy = node_add(&r, y);
        be_desc desc = be_make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
        be_set_enum(desc, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, g.mode);
        be_set_enum(desc, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, g.padding);
        be_set_enum(desc, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_DOUBLE);
        be_set(desc, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_INT64, 1, &window);
        be_set(desc, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_INT64, 1, &one);
        be_set(desc, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_INT64, 1, &far);
        be_set(desc, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_INT64, 1, &far);
        for (int c = 0; c < 2; ++c) {
            exact[c] = magnitude[c] = 0;
            for (int i = 0; i < 5; ++i) {
                bool edge = g.padding == CUDNN_EDGE_VAL_PAD && (i == 0 || i == 4);
                double v = x->value[5 * c + i] * (edge ? (double)far + 1 : 1) / (double)window;
                exact[c] += v;
                magnitude[c] += fabs(v);
            }
        }
        if (node_run(&r, be_final(forward_open(be_final(desc), dx, dy, NULL, 1.0, 0.0)))) {
            check_values("y", y, exact, NULL, magnitude, CUDNN_DATA_DOUBLE);
        }
    }
    be_free_all();
    case_end();
}

/* Each of these is refused when it is finalized, with a text that says what is wrong. */
static void refusals(void)
{
    static const struct geometry good = {
        .mode = CUDNN_RESAMPLE_MAXPOOL,
        .padding = CUDNN_NEG_INF_PAD,
        .rank = 4,
        .x = {2, 3, 7, 9},
        .y = {2, 3, 4, 5},
        .window = {3 * UNIT, 3 * UNIT},
        .stride = {2 * UNIT, 2 * UNIT},
        .pre = {UNIT, UNIT},
        .post = {UNIT, UNIT},
    };
    static const int64_t xdim[] = {2, 3, 7, 9}, ydim[] = {2, 3, 4, 5};
    static const int64_t wrong[][4] = {{2, 3, 5, 5}, {2, 3, 4, 4}, {2, 4, 4, 5}, {1, 3, 4, 5}};
    static const int64_t many[] = {2, 3, 1, 1}, rank3[] = {2, 3, 7};
    struct geometry g = good;
    const cudnnFraction_t zero = {1, 0}, negative = {-1, 2}, nothing = {0, 1};
    cudnnFraction_t bad[2] = {{1, 1}, {1, 1}};
    be_desc resample, x, y, dx, desc;
    if (!case_begin("resample refusals")) return;
    /* the descriptor */
    desc = be_make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    bad[1] = zero;
    be_set(desc, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 2, bad);
    node_refused(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_RESAMPLE_STRIDES[1]=1/0", desc);
    bad[1] = nothing;
    be_set(desc, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 2, bad);
    node_refused(CUDNN_STATUS_BAD_PARAM, "not positive", desc);
    bad[1] = bad[0];
    be_set(desc, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 2, bad);
    bad[0] = negative;
    be_set(desc, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, 2, bad);
    node_refused(CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_RESAMPLE_PRE_PADDINGS[0]=-1/2", desc);
    be_set(desc, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, 1, bad + 1);
    node_refused(CUDNN_STATUS_NOT_SUPPORTED, "has 1 elements", desc);
    desc = resample_open(&good, CUDNN_DATA_FLOAT);
    be_set_int(desc, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 3);
    node_refused(CUDNN_STATUS_NOT_SUPPORTED, "3 spatial dimensions", desc);
    be_set_int(desc, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, 7);
    node_refused(CUDNN_STATUS_NOT_SUPPORTED, "CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS=7", desc);
    /* forward */
    resample = be_final(resample_open(&good, CUDNN_DATA_FLOAT));
    x = be_tensor(1, CUDNN_DATA_FLOAT, 4, xdim, BE_PLAIN);
    y = be_tensor(2, CUDNN_DATA_FLOAT, 4, ydim, BE_PLAIN);
    for (int i = 0; i < 4; ++i) {
        node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "dim[",
                     forward_open(resample, x,
                                  be_tensor(2, CUDNN_DATA_FLOAT, 4, wrong[i], BE_PLAIN), NULL, 1,
                                  0));
    }
    node_refused(
        CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "idx",
        forward_open(resample, x, y, be_tensor(3, CUDNN_DATA_INT8, 4, xdim, BE_PLAIN), 1, 0));
    node_refused(
        CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "index tensor is fp32",
        forward_open(resample, x, y, be_tensor(3, CUDNN_DATA_FLOAT, 4, ydim, BE_PLAIN), 1, 0));
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "x is",
                 forward_open(resample, be_tensor(1, CUDNN_DATA_COMPLEX_FP32, 4, xdim, BE_PLAIN), y,
                              NULL, 1, 0));
    node_refused(
        CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "do not fit",
        forward_open(resample, x, be_tensor(2, CUDNN_DATA_FLOAT, 3, rank3, BE_PLAIN), NULL, 1, 0));
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "2 dimensions on tensors of 3",
                 forward_open(resample, be_tensor(1, CUDNN_DATA_FLOAT, 3, rank3, BE_PLAIN),
                              be_tensor(2, CUDNN_DATA_FLOAT, 3, rank3, BE_PLAIN), NULL, 1, 0));
    desc = resample_open(&good, CUDNN_DATA_BOOLEAN);
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "compute type",
                 forward_open(be_final(desc), x, y, NULL, 1, 0));
    g.mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
    node_refused(CUDNN_STATUS_BAD_PARAM, "CUDNN_RESAMPLE_MAXPOOL",
                 forward_open(be_final(resample_open(&g, CUDNN_DATA_FLOAT)), x, y,
                              be_tensor(3, CUDNN_DATA_INT8, 4, ydim, BE_PLAIN), 1, 0));
    g = good;
    g.window[0] = 16 * UNIT;
    g.window[1] = 16 * UNIT;
    g.pre[0] = g.pre[1] = 9 * UNIT;
    g.post[0] = 0;
    g.post[1] = -2 * UNIT + 0;
    g.pre[1] = 7 * UNIT;
    g.post[1] = 0;
    node_refused(CUDNN_STATUS_BAD_PARAM, "256 positions",
                 forward_open(be_final(resample_open(&g, CUDNN_DATA_FLOAT)), x,
                              be_tensor(2, CUDNN_DATA_FLOAT, 4, many, BE_PLAIN),
                              be_tensor(3, CUDNN_DATA_INT8, 4, many, BE_PLAIN), 1, 0));
    /* backward */
    dx = be_tensor(4, CUDNN_DATA_FLOAT, 4, xdim, BE_PLAIN);
    node_refused(CUDNN_STATUS_BAD_PARAM, "index tensor, or x and y",
                 backward_open(resample, y, NULL, NULL, NULL, dx, 1, 0));
    node_refused(CUDNN_STATUS_BAD_PARAM, "index tensor, or x and y",
                 backward_open(resample, y, NULL, x, NULL, dx, 1, 0));
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "x (fp32[2,3,4,5]",
                 backward_open(resample, y, NULL, be_tensor(1, CUDNN_DATA_FLOAT, 4, ydim, BE_PLAIN),
                               y, dx, 1, 0));
    node_refused(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "dx is int8",
                 backward_open(resample, y, be_tensor(3, CUDNN_DATA_INT8, 4, ydim, BE_PLAIN), NULL,
                               NULL, be_tensor(4, CUDNN_DATA_INT8, 4, xdim, BE_PLAIN), 1, 0));
    node_refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "should be 4",
                 backward_open(resample, be_tensor(2, CUDNN_DATA_FLOAT, 4, wrong[0], BE_PLAIN),
                               be_tensor(3, CUDNN_DATA_INT8, 4, wrong[0], BE_PLAIN), NULL, NULL, dx,
                               1, 0));
    be_free_all();
    case_end();
}

/* Averages of three rows and columns around every pixel of channels, where padding repeats the edge: images of one
 * pixel, of few and of many, an uneven number of columns and of rows. Where less or more is padded there are fewer
 * windows or more than pixels. */
static void averages_at_edges(int type)
{
    for (int k = 0; k < 16; ++k) {
        struct geometry g = {.mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING,
                             .padding = CUDNN_EDGE_VAL_PAD,
                             .rank = 4};
        const int pad = k % 8 == 7 ? 2 : k % 8 == 6 ? 0 : 1;
        if (!case_begin("resample averages at edges %s %d", node_type_name[type], k)) continue;
        g.x[0] = random_of(1, 2);
        g.x[1] = random_of(8, 16, 40, 72, 136, 264);
        for (int s = 0; s < 2; ++s) {
            g.x[2 + s] = random_chance(0.3) ? random_of(1, 2, 3) : (int)random_int(3, 40);
            if (pad == 0 && g.x[2 + s] < 3) g.x[2 + s] = 3;
            g.window[s] = 3 * UNIT;
            g.stride[s] = UNIT;
            g.pre[s] = g.post[s] = pad * UNIT;
        }
        if (!set_output(&g)) case_fail("no output");
        else if (k % 2) resample_forward(&g, type, type, LAYOUT_NHWC, LIE_ALIKE);
        else resample_backward(&g, type, type, LAYOUT_NHWC, LIE_ALIKE);
        case_end();
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    averages_at_edges(CUDNN_DATA_FLOAT);
    averages_at_edges(CUDNN_DATA_HALF);
    averages_at_edges(CUDNN_DATA_BFLOAT16);
    upsample_by_two();
    nothing();
    wide_padding();
    refusals();
    return harness_finish();
}
