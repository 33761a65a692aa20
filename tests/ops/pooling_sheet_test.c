/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of 3x3 over images that are large enough for boxes that are put together in shared memory, against its
 * formula: planes and pixels of few and many channels, at any alignment, several images a tile and several
 * tiles a row, ties and NaN. Longer windows that begin at every element of a plane likewise. */
#include <stdlib.h>

#include "kernels_reached.h"
#include "pooling_case.h"

enum {
    RESULTS = 1 << 16, /* that such engines ask for */
    FEW = 4,           /* a case's turn with few windows */
};

/* Shapes of `results` windows and more; few: most of the image has none, so that whole boxes of dx have none. */
static void random_geometry(struct pooling_geometry *g, int stride, int64_t results, bool few)
{
    int64_t image = 1;
    g->rank = 4;
    g->propagate = random_chance(0.5);
    g->x[1] = g->y[1] = few ? random_of(1, 3) : random_of(1, 2, 3, 5, 7, 16, 61, 64, 130);
    for (int d = 0; d < 2; ++d) {
        const int longest = g->x[1] > 16 ? 40 : 150;
        g->x[2 + d] = random_chance(0.1) ? random_of(1, 2, 3, 300) : (int)random_int(4, longest);
        if (few) g->x[2 + d] = (int)random_int(150, 500);
        g->window[d] = 3;
        g->stride[d] = stride;
        g->pad[d] = (int)random_int(0, 2);
        if (g->x[2 + d] + 2 * g->pad[d] < 3) g->pad[d] = 1;
        g->y[2 + d] = (g->x[2 + d] + 2 * g->pad[d] - 3) / stride + 1;
        /* some callers round up: a last window that begins within the padded image, or fewer of them */
        if (g->y[2 + d] * stride < g->x[2 + d] + g->pad[d] && random_chance(0.3)) g->y[2 + d] += 1;
        else if (g->y[2 + d] > 1 && random_chance(0.1)) g->y[2 + d] -= 1;
        if (few) g->y[2 + d] = 1 + g->y[2 + d] / 8;
        image *= g->y[2 + d];
    }
    g->x[0] = g->y[0] = (int)(results / (image * g->x[1]) + 1 + random_int(0, 2));
}

/* Planes, some of which a block has several of, some of which several blocks have. OF: rows of results (1) or of the image
 * (0) are whole runs of four; negative: any. */
static void long_geometry(struct pooling_geometry *g, int of)
{
    g->rank = 4;
    g->propagate = random_chance(0.5);
    g->x[0] = g->y[0] = (int)random_int(1, 3);
    g->x[1] = g->y[1] = random_of(1, 2, 5, 300, 1200);
    for (int d = 0; d < 2; ++d) {
        g->window[d] = (int)random_int(4, random_chance(0.3) ? 21 : 9);
        g->stride[d] = 1;
        g->pad[d] = (int)random_int(0, g->window[d] - 1);
        g->x[2 + d] = random_chance(0.1) ? random_of(1, 2, 3, 400) : (int)random_int(4, 70);
        if (g->x[1] > 100 && g->x[2 + d] > 30) g->x[2 + d] = 9;
        if (g->x[2 + d] + 2 * g->pad[d] < g->window[d]) g->x[2 + d] = g->window[d];
        g->y[2 + d] = g->x[2 + d] + 2 * g->pad[d] - g->window[d] + 1;
        if (g->y[2 + d] > 1 && random_chance(0.2)) g->y[2 + d] -= 1;
        else if (g->y[2 + d] < g->x[2 + d] + g->pad[d] && random_chance(0.2)) g->y[2 + d] += 1;
        while (of >= 0 && d == 1 && (of ? g->y[3] : g->x[3]) % 4 != 0) g->x[3] += 1, g->y[3] += 1;
    }
}

/* Windows of five around every element, of whole runs and not: a run of a line, several, rows for several bands. */
static void five_geometry(struct pooling_geometry *g, int turn)
{
    g->rank = 4;
    g->propagate = random_chance(0.5);
    g->x[0] = g->y[0] = random_of(1, 2, 3);
    g->x[1] = g->y[1] = random_of(1, 3, 40);
    g->x[2] = g->y[2] = random_of(1, 2, 5, 12, 67, 150);
    g->x[3] = g->y[3] = random_of(4, 8, 12, 36, 140) + (turn == FEW ? 1 : 0);
    for (int d = 0; d < 2; ++d) {
        g->window[d] = 5;
        g->stride[d] = 1;
        g->pad[d] = 2;
    }
}

/* Windows of three around every element of pixels of whole runs: few channels, columns and rows and many, an uneven
 * number of each. */
static void runs_geometry(struct pooling_geometry *g)
{
    g->rank = 4;
    g->propagate = random_chance(0.5);
    g->x[0] = g->y[0] = random_of(1, 2, 3);
    g->x[1] = g->y[1] = random_of(8, 16, 24, 40, 64, 72, 136, 288, 520);
    for (int d = 0; d < 2; ++d) {
        const int longest = g->x[1] > 100 ? 24 : g->x[1] > 30 ? 60 : 150;
        g->window[d] = 3;
        g->stride[d] = 1;
        g->pad[d] = (int)random_int(0, 2);
        g->x[2 + d] = random_chance(0.2) ? random_of(1, 2, 3, 4) : (int)random_int(4, longest);
        if (g->x[2 + d] + 2 * g->pad[d] < 3) g->pad[d] = 1;
        g->y[2 + d] = g->x[2 + d] + 2 * g->pad[d] - 2;
        if (g->y[2 + d] > 1 && random_chance(0.2)) g->y[2 + d] -= 1;
        else if (g->y[2 + d] < g->x[2 + d] + g->pad[d] && random_chance(0.2)) g->y[2 + d] += 1;
    }
}

/* Gradients of maxima of odd channels: several pixels a warp, one, and several warps a pixel. */
static void odd_geometry(struct pooling_geometry *g)
{
    int64_t image = 1;
    g->rank = 4;
    g->x[1] = g->y[1] = random_of(3, 5, 7, 15, 21, 31, 49, 61, 63, 12, 30, 62);
    for (int d = 0; d < 2; ++d) {
        const int longest = g->x[1] > 16 ? 40 : 150;
        g->x[2 + d] = random_chance(0.2) ? random_of(3, 4, 5, 6) : (int)random_int(4, longest);
        g->window[d] = 3;
        g->stride[d] = 2;
        g->pad[d] = (int)random_int(0, 2);
        g->y[2 + d] = (g->x[2 + d] + 2 * g->pad[d] - 3) / 2 + 1;
        if (g->y[2 + d] * 2 < g->x[2 + d] + g->pad[d] && random_chance(0.3)) g->y[2 + d] += 1;
        else if (g->y[2 + d] > 1 && random_chance(0.1)) g->y[2 + d] -= 1;
        image *= g->x[2 + d];
    }
    g->x[0] = g->y[0] = (int)(RESULTS / (image * g->x[1]) + 1 + random_int(0, 2));
}

/* A stride of 0: long windows; below it windows of five, of three over runs of channels, and odd channels. */
static void sheet_case(int mode, int type, int stride, int turn)
{
    struct pooling_geometry g = {.mode = mode};
    struct pooling_call c = {.alpha = 1.0};
    const cudnnDataType_t dtype = (cudnnDataType_t)type;
    const int margin[8] = {1};
    const bool moves =
        stride == -3 ? turn % 2 : turn > 1 && stride > -2 && (stride >= 0 || turn == 3);
    const int *extra = moves ? margin : NULL;
    double *before;
    enum layout layout;
    bool nan;
    if (!case_begin("pooling/sheet/mode%d/%s/stride%d/%d", mode, pooling_type_name[type], stride,
                    turn)) {
        return;
    }
    if (stride > 0) random_geometry(&g, stride, RESULTS, turn == FEW);
    else if (stride == 0) long_geometry(&g, turn % 2 ? -1 : turn / 2 % 2);
    else if (stride == -1) five_geometry(&g, turn);
    else if (stride == -2) runs_geometry(&g);
    else odd_geometry(&g);
    layout = (turn % 2 && stride > 0) || stride < -1 ? LAYOUT_NHWC : LAYOUT_NCHW;
    if (stride > -3 && random_chance(0.2)) c.alpha = 0.5;
    if (stride > -3 && random_chance(0.05)) c.beta = -1.5;
    nan = random_chance(0.4);
    c.pooling = pooling_descriptor(&g);
    c.x = part_input(dtype, g.rank, g.x, layout, extra, -4.0, 4.0);
    if (random_chance(0.5) || nan) pooling_roughen(c.x, nan);
    c.y = part_output(dtype, g.rank, g.y, layout, extra, c.beta == 0.0);
    if (extra) part_move(c.x), part_move(c.y);
    before = part_expected(c.y);
    if (run_call(pooling_forward, &c)) pooling_check_forward(&g, &c, before);
    free(before);
    c.y->whole->output = false;
    c.dy = part_input(dtype, g.rank, g.y, layout, extra, -4.0, 4.0);
    c.dx = part_output(dtype, g.rank, g.x, layout, extra, c.beta == 0.0);
    if (extra) part_move(c.dy), part_move(c.dx);
    before = part_expected(c.dx);
    if (run_call(pooling_backward, &c)) pooling_check_backward(&g, &c, before);
    free(before);
    cudnnDestroyPoolingDescriptor(c.pooling);
    parts_free();
    case_end();
}

#define WD_KERNEL(symbol, ...) "wd_" #symbol,
static const char *const kernels[] = {

#include "ops/pooling/pooling_sheet_kernels.def"
#include "ops/pooling/pooling_slide_kernels.def"
};
#undef WD_KERNEL

int main(int argc, char **argv)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    harness_start(argc, argv);
    for (int mode = 0; mode < 3; ++mode) {
        for (int t = 0; t < 3; ++t) {
            for (int turn = 0; turn < 10; ++turn) {
                sheet_case(mode, types[t], 1 + turn / 5, turn % 5);
            }
            for (int turn = 0; turn < 6; ++turn) sheet_case(mode, types[t], 0, turn);
            for (int turn = 0; turn < 8; ++turn) sheet_case(mode, types[t], -1, turn);
            for (int turn = 0; turn < 12 && mode != CUDNN_POOLING_MAX; ++turn) {
                sheet_case(mode, types[t], -2, turn);
            }
            for (int turn = 0; turn < 24 && t > 0; ++turn) {
                sheet_case(mode, types[t], -3, turn);
            }
        }
        for (int stride = 1; stride <= 2; ++stride) {
            sheet_case(mode, CUDNN_DATA_DOUBLE, stride, FEW);
        }
    }
    if (argc == 1) kernels_reached(kernels, (int)(sizeof kernels / sizeof *kernels));
    return harness_finish();
}
