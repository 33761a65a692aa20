/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling against its formula: random windows, paddings, strides, layouts, types, ties and NaN; and a
 * list that, with these, reaches every kernel of the GPU's engines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels_reached.h"
#include "pooling_case.h"

static void random_geometry(struct pooling_geometry *g, int lanes)
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

static void random_case(int mode, int type, int turn)
{
    struct pooling_geometry g = {.mode = mode};
    struct pooling_call c = {.alpha = 1.0};
    cudnnDataType_t dtype = (cudnnDataType_t)type;
    enum layout layout;
    int x_margin[8], y_margin[8];
    const int *x_extra;
    const int *y_extra;
    double *before;
    bool nan;
    if (!case_begin("pooling/mode%d/%s/%d", mode, pooling_type_name[type], turn)) return;
    random_geometry(&g, lanes_of(type));
    layout = lanes_of(type) > 1 ? LAYOUT_VECT : random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
    x_extra = lanes_of(type) > 1 ? NULL : random_margin(g.rank, x_margin);
    y_extra = lanes_of(type) > 1 ? NULL : random_margin(g.rank, y_margin);
    if (turn) c.alpha = random_scalar(), c.beta = random_scalar();
    nan = is_float(type) && random_chance(0.3);
    c.pooling = pooling_descriptor(&g);
    c.x = part_input(dtype, g.rank, g.x, layout, x_extra, is_float(type) ? -4.0 : -100.0,
                     is_float(type) ? 4.0 : 100.0);
    if (random_chance(0.5) || nan) pooling_roughen(c.x, nan);
    c.y = part_output(dtype, g.rank, g.y, layout, y_extra, c.beta == 0.0);
    before = part_expected(c.y);
    if (run_call(pooling_forward, &c)) pooling_check_forward(&g, &c, before);
    free(before);
    if (is_float(type)) {
        /* y is an input now: whatever the forward pass made of it */
        struct part *y = c.y;
        c.dy = part_input(dtype, g.rank, g.y, layout, y_extra, -4.0, 4.0);
        c.dx = part_output(dtype, g.rank, g.x, layout, x_extra, c.beta == 0.0);
        c.y = part_input(dtype, g.rank, g.y, layout, y_extra, -4.0, 4.0);
        before = part_expected(c.dx);
        y->whole->output = false;
        if (run_call(pooling_backward, &c)) pooling_check_backward(&g, &c, before);
        free(before);
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
    struct pooling_geometry g;
} exact[] = {
    {"2_2", {.rank = 4, .x = {2, 16, 9, 16}, .window = {2, 2}, .stride = {2, 2}}},
    {"3_2", {.rank = 4, .x = {2, 16, 8, 16}, .window = {3, 3}, .pad = {1, 1}, .stride = {2, 2}}},
    {"3_2_bare", {.rank = 4, .x = {2, 16, 33, 36}, .window = {3, 3}, .stride = {2, 2}}},
    {"3_2_wide",
     {.rank = 4, .x = {2, 8, 37, 7}, .window = {3, 3}, .pad = {2, 2}, .stride = {2, 2}}},
    {"3_2_long",
     {.rank = 4, .x = {2, 1, 6, 260}, .window = {3, 3}, .pad = {0, 1}, .stride = {2, 2}}},
    {"3_2_longer",
     {.rank = 4, .x = {2, 1, 50, 131}, .window = {3, 3}, .pad = {1, 0}, .stride = {2, 2}}},
    {"3_1", {.rank = 4, .x = {2, 16, 9, 11}, .window = {3, 3}, .pad = {1, 1}, .stride = {1, 1}}},
    {"small_3_2",
     {.rank = 4, .x = {2, 3, 9, 11}, .window = {3, 3}, .pad = {1, 1}, .stride = {2, 2}}},
    {"4_4", {.rank = 4, .x = {2, 16, 9, 12}, .window = {4, 4}, .pad = {1, 1}, .stride = {4, 4}}},
    {"2_1", {.rank = 4, .x = {2, 16, 7, 9}, .window = {2, 2}, .stride = {1, 1}}},
    {"5_1", {.rank = 4, .x = {2, 16, 9, 8}, .window = {5, 5}, .pad = {2, 2}, .stride = {1, 1}}},
    {"5_2", {.rank = 4, .x = {2, 16, 11, 7}, .window = {5, 5}, .pad = {2, 2}, .stride = {2, 2}}},
    {"odd_2_2", {.rank = 4, .x = {2, 3, 9, 13}, .window = {2, 2}, .stride = {2, 2}}},
    {"odd_2_1", {.rank = 4, .x = {2, 3, 7, 9}, .window = {2, 2}, .stride = {1, 1}}},
    {"odd_3_2",
     {.rank = 4, .x = {2, 5, 57, 61}, .window = {3, 3}, .pad = {1, 1}, .stride = {2, 2}}},
    {"odd_3_1",
     {.rank = 4, .x = {2, 5, 31, 29}, .window = {3, 3}, .pad = {1, 1}, .stride = {1, 1}}},
    {"odd_5_2", {.rank = 4, .x = {3, 3, 11, 7}, .window = {5, 5}, .pad = {2, 2}, .stride = {2, 2}}},
    {"plane", {.rank = 4, .x = {2, 16, 5, 5}, .window = {5, 5}, .stride = {1, 1}}},
    {"odd_plane", {.rank = 4, .x = {2, 7, 5, 5}, .window = {5, 5}, .stride = {1, 1}}},
    {"planes", {.rank = 4, .x = {2, 2051, 3, 3}, .window = {3, 3}, .stride = {1, 1}}},
    {"even_planes", {.rank = 4, .x = {2, 2051, 2, 7}, .window = {2, 7}, .stride = {1, 1}}},
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
    {"deep_runs_3_1",
     {.rank = 5,
      .x = {1, 16, 4, 5, 7},
      .window = {3, 3, 3},
      .pad = {1, 1, 1},
      .stride = {1, 1, 1}}},
    {"tall_3_1",
     {.rank = 4, .x = {2, 8, 37, 6}, .window = {3, 3}, .pad = {1, 0}, .stride = {1, 1}}},
};

static struct part *moved(struct part *part, bool moves)
{
    if (moves) part_move(part);
    return part;
}

static void exact_case(int index, int mode, int type, enum layout layout)
{
    struct pooling_geometry g = exact[index].g;
    struct pooling_call c = {.alpha = 1.0};
    cudnnDataType_t dtype = (cudnnDataType_t)type;
    const bool moves = g.x[0] > 1;
    const int margin[8] = {moves};
    double *before;
    if (!case_begin("pooling/exact/%s/%s/%s/mode%d", exact[index].name, pooling_type_name[type],
                    layout == LAYOUT_NHWC ? "nhwc" : "nchw", mode)) {
        return;
    }
    g.mode = mode;
    g.propagate = random_chance(0.5);
    /* kernels are for what does not blend: a maximum and an average of each never do */
    if (mode == 3 || (mode == 2 && random_chance(0.5))) c.alpha = 0.5, c.beta = -1.5;
    for (int d = 0; d < g.rank; ++d) {
        g.y[d] =
            d < 2 ? g.x[d] : (g.x[d] + 2 * g.pad[d - 2] - g.window[d - 2]) / g.stride[d - 2] + 1;
    }
    c.pooling = pooling_descriptor(&g);
    c.x = moved(part_input(dtype, g.rank, g.x, layout, margin, -4.0, 4.0), moves);
    if (random_chance(0.5)) pooling_roughen(c.x, random_chance(0.5));
    c.y = moved(part_output(dtype, g.rank, g.y, layout, margin, false), moves);
    before = part_expected(c.y);
    if (run_call(pooling_forward, &c)) pooling_check_forward(&g, &c, before);
    free(before);
    c.y->whole->output = false;
    c.dy = moved(part_input(dtype, g.rank, g.y, layout, margin, -4.0, 4.0), moves);
    c.dx = moved(part_output(dtype, g.rank, g.x, layout, margin, false), moves);
    before = part_expected(c.dx);
    if (run_call(pooling_backward, &c)) pooling_check_backward(&g, &c, before);
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
        for (int mode = largest; mode < (largest ? 2 : 4); ++mode) {
            for (int t = 0; t < 4; ++t) {
                if (!largest) exact_case(i, mode, types[t], LAYOUT_NCHW);
                exact_case(i, mode, types[t], LAYOUT_NHWC);
            }
        }
    }
}

#define WD_KERNEL(symbol, ...) "wd_" #symbol,
static const char *const kernels[] = {
#include "ops/pooling/pooling_band_back_kernels.def"
#include "ops/pooling/pooling_band_forward_kernels.def"
#include "ops/pooling/pooling_single_back_kernels.def"
#include "ops/pooling/pooling_single_kernels.def"
#include "ops/pooling/pooling_tile_back_kernels.def"
#include "ops/pooling/pooling_tile_kernels.def"
#include "ops/pooling/pooling_vector_back_kernels.def"
#include "ops/pooling/pooling_vector_kernels.def"
#include "ops/pooling/pooling_walk_back_kernels.def"
#include "ops/pooling/pooling_walk_kernels.def"
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
    }
    exact_cases();
    if (argc == 1) kernels_reached(kernels, (int)(sizeof kernels / sizeof *kernels));
    return harness_finish();
}
