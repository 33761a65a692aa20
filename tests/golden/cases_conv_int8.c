/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: int8 convolution forward in NHWC, NCHW and the vectorised layouts, with int8, int32 and
 * float outputs; rounding and saturation.
 */
#include "conv.h"

#include <stdio.h>

static const struct conv problems[] = {
    {"1x1", 2, 2, 32, {4, 5}, 32, {1, 1}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"3x3p1", 2, 1, 32, {5, 4}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"3x3s2", 2, 1, 64, {6, 6}, 32, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 1},
    {"c4", 2, 2, 4, {6, 6}, 4, {3, 3}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"c8k12", 2, 1, 8, {5, 5}, 12, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
};

static const struct {
    const char *name;
    cudnnDataType_t x, w, y;
    enum gd_layout layout;
} kinds[] = {
    {"i8_i8_nhwc", CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8, GD_NHWC},
    {"i8_f32_nhwc", CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, GD_NHWC},
    {"i8_i32_nhwc", CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32, GD_NHWC},
    {"i8_i8_nchw", CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8, GD_NCHW},
    {"i8_f32_nchw", CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, GD_NCHW},
    {"x4_x4", CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, GD_VECT},
    {"x4_f32", CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_FLOAT, GD_VECT},
    {"x32_x32", CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, GD_VECT},
    {"u8_i8_nhwc", CUDNN_DATA_UINT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8, GD_NHWC},
    {"ux4_x4", CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, GD_VECT},
};

static bool fits(const struct conv *c, int k)
{
    int unit = kinds[k].x == CUDNN_DATA_INT8x32 ? 32 : 4;
    return c->c % unit == 0 && c->k % unit == 0;
}

void cases_conv_int8(void)
{
    static const double pairs[][2] = {{1, 0}, {0.37, 0}, {0.01, 0}, {1, 1}};
    for (int k = 0; k < GD_COUNT(kinds); k++) {
        for (int i = 0; i < GD_COUNT(problems); i++) {
            if (!fits(&problems[i], k)) continue;
            for (int s = 0; s < (i == 1 ? GD_COUNT(pairs) : 1); s++) {
                for (int algo = 0; algo < 2; algo++) {
                    for (int wide = 0; wide < (s == 0 && i == 1 ? 2 : 1); wide++) {
                        if (!gd_case("conv_int8/%s/%s/scale%g,%g/algo%d%s", kinds[k].name,
                                     problems[i].name, pairs[s][0], pairs[s][1], algo,
                                     wide ? "/wide" : ""))
                            continue;
                        struct conv_how how = {.x = kinds[k].x,
                                               .w = kinds[k].w,
                                               .y = kinds[k].y,
                                               .acc = CUDNN_DATA_INT32,
                                               .layout = kinds[k].layout,
                                               .wlayout = kinds[k].layout,
                                               .mode = CUDNN_CROSS_CORRELATION,
                                               .math = CUDNN_TENSOR_OP_MATH,
                                               .alpha = pairs[s][0],
                                               .beta = pairs[s][1],
                                               .fill = wide ? GD_WIDE : GD_UNIT,
                                               .algo = algo};
                        conv_run(CONV_FWD, &problems[i], &how);
                        gd_end();
                    }
                }
            }
        }
    }
    /* The reordering of int8x32 filters keeps the size; its order is each library's own. */
    for (int bias = 0; bias < 2; bias++) {
        if (!gd_case("conv_int8/reorder/bias%d", bias)) continue;
        struct gd_tens *w = gd_filter("w", CUDNN_DATA_INT8x32, GD_VECT, 4, DIMS(32, 32, 3, 3));
        struct gd_tens *r = gd_filter("r", CUDNN_DATA_INT8x32, GD_VECT, 4, DIMS(32, 32, 3, 3));
        struct gd_tens *b = gd_tens("b", CUDNN_DATA_FLOAT, GD_NCHW, 4, DIMS(1, 32, 1, 1));
        struct gd_tens *q = gd_tens("q", CUDNN_DATA_FLOAT, GD_NCHW, 4, DIMS(1, 32, 1, 1));
        gd_fill(w, GD_WIDE);
        gd_fill(b, GD_UNIT);
        gd_ran("run", lib.ReorderFilterAndBias(gd_handle(), w->filter, CUDNN_DEFAULT_REORDER, w->p,
                                               r->p, bias, b->p, q->p));
        gd_end();
    }
}
