/* SPDX-License-Identifier: Apache-2.0
 *
 * The spatial transformer's sampler (sampler_case.h): random shapes, layouts, types and places, exact corners,
 * NaN and infinities in the grid; grids of more pixels than are sorted at a time, and one in which all look
 * at the same place; gradients, of a generated grid too, also against finite differences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_case.h"

static void random_sampler(int type, int turn)
{
    struct spatial_shape s;
    if (!case_begin("sampler/%s/%d", spatial_types[type].name, turn)) return;
    /* bf16 places are too coarse for many cells */
    int most = spatial_types[type].type == CUDNN_DATA_BFLOAT16 ? 5 : 11;
    s = (struct spatial_shape){(int)random_int(1, 3),    random_of(1, 2, 3, 5, 7, 40),
                               (int)random_int(1, most), (int)random_int(1, most),
                               (int)random_int(1, 11),   (int)random_int(1, 11)};
    sampler_case(NULL, spatial_types[type].type, &s, turn == 0, turn % 3 == 2 ? TURNED : ANYWHERE,
                 false);
    case_end();
}

static void large_samplers(void)
{
    static const struct walk nchw = {LAYOUT_NCHW, 0, 0, 0, false},
                             nhwc = {LAYOUT_NHWC, 0, 0, 0, false},
                             odd = {LAYOUT_NCHW, 1, 3, 1, false},
                             odd_nhwc = {LAYOUT_NHWC, 4, 2, 1, false},
                             blended = {LAYOUT_NCHW, 0, 0, 0, true},
                             blended_nhwc = {LAYOUT_NHWC, 0, 0, 0, true};
    static const struct sampler_large rows[] = {
        {"pieces", CUDNN_DATA_FLOAT, {1, 2, 30, 41, 600, 500}, 0, ANYWHERE, &nchw},
        {"batches", CUDNN_DATA_HALF, {5, 1, 60, 41, 300, 301}, 0, ANYWHERE, &nchw},
        {"one_place", CUDNN_DATA_FLOAT, {2, 3, 7, 6, 50, 61}, 0, ONE_PLACE, &nchw},
        {"one_place_long", CUDNN_DATA_FLOAT, {1, 2, 5, 9, 80, 161}, 0, ONE_PLACE, &nchw},
        {"long64", CUDNN_DATA_DOUBLE, {2, 17, 20, 11, 70, 125}, 0, ANYWHERE, &odd},
        {"long16", CUDNN_DATA_BFLOAT16, {2, 31, 4, 5, 70, 125}, 0, ANYWHERE, &nchw},
        {"enlarged", CUDNN_DATA_FLOAT, {1, 3, 200, 150, 9, 8}, 0, ANYWHERE, &nchw},
        {"channels", CUDNN_DATA_FLOAT, {1, 40000, 3, 2, 2, 2}, 0, ANYWHERE, &nchw},
        {"turned", CUDNN_DATA_FLOAT, {2, 11, 90, 101, 93, 135}, 0, TURNED, &nchw},
        {"turned_odd", CUDNN_DATA_FLOAT, {1, 7, 140, 71, 150, 255}, 0, TURNED, &odd},
        {"turned16", CUDNN_DATA_HALF, {1, 21, 60, 50, 101, 128}, 0, TURNED, &nchw},
        {"turned64", CUDNN_DATA_DOUBLE, {1, 19, 40, 131, 130, 108}, 0, TURNED, &nchw},
        {"turned_few_pixels", CUDNN_DATA_FLOAT, {1, 4, 70, 80, 280, 250}, 0, TURNED, &nhwc},
        {"turned_pixels", CUDNN_DATA_HALF, {1, 24, 70, 40, 95, 97}, 0, TURNED, &nhwc},
        {"turned_pixels32", CUDNN_DATA_FLOAT, {1, 20, 33, 70, 98, 97}, 0, TURNED, &nhwc},
        {"row", CUDNN_DATA_FLOAT, {2, 16, 1, 300, 1, 9000}, 0, TURNED, &nchw},
        {"column", CUDNN_DATA_FLOAT, {1, 32, 300, 1, 9000, 1}, 0, TURNED, &nchw},
        {"one_pixel", CUDNN_DATA_FLOAT, {2, 16, 1, 1, 93, 97}, 0, ANYWHERE, &nchw},
        {"many_places", CUDNN_DATA_FLOAT, {2, 1, 200, 150, 680, 600}, 0, TURNED, &nchw},
        /* many places look at few elements: several warps a region, boxes wide and high */
        {"crowds", CUDNN_DATA_FLOAT, {2, 23, 14, 14, 112, 56}, 8, TURNED, &nchw},
        {"crowds_apart", CUDNN_DATA_FLOAT, {2, 18, 9, 15, 60, 70}, 0, ANYWHERE, &nchw},
        {"crowds_odd", CUDNN_DATA_FLOAT, {1, 20, 16, 56, 120, 61}, 3, TURNED, &odd},
        {"crowds_wide", CUDNN_DATA_FLOAT, {2, 25, 17, 8, 19, 300}, 0, TURNED, &nchw},
        {"crowds_nan", CUDNN_DATA_FLOAT, {1, 19, 16, 18, 70, 64}, 0, TURNED_NAN, &nchw},
        {"crowds_blended", CUDNN_DATA_FLOAT, {1, 17, 30, 13, 70, 64}, 0, ANYWHERE, &blended},
        {"flat", CUDNN_DATA_FLOAT, {4, 17, 24, 198, 45, 101}, 40, TURNED, &nchw},
        /* few look at many: tiles that no place touches, all channels of tiles in one block */
        {"few_places", CUDNN_DATA_FLOAT, {2, 30, 60, 90, 2, 3}, 150, ANYWHERE, &nchw},
        {"few_places_blended", CUDNN_DATA_FLOAT, {2, 29, 60, 91, 1, 3}, 150, ANYWHERE, &blended},
        {"few_places_many_channels", CUDNN_DATA_FLOAT, {1, 67, 96, 120, 1, 16}, 30, TURNED, &odd},
        /* windows and lists: where all processors have blocks */
        {"many_rows", CUDNN_DATA_FLOAT, {2, 37, 40, 40, 40, 39}, 132, TURNED, &nchw},
        {"many_enlarged", CUDNN_DATA_FLOAT, {2, 19, 32, 36, 64, 65}, 99, TURNED, &nchw},
        {"many_enlarged_apart", CUDNN_DATA_FLOAT, {2, 17, 32, 36, 64, 65}, 99, ANYWHERE, &nchw},
        {"many_enlarged_odd", CUDNN_DATA_FLOAT, {2, 17, 32, 36, 64, 65}, 99, TURNED, &odd},
        {"many_planes16", CUDNN_DATA_HALF, {2, 33, 56, 48, 56, 48}, 101, TURNED, &nchw},
        {"many_planes16_halves", CUDNN_DATA_HALF, {2, 33, 50, 56, 56, 48}, 101, TURNED, &nchw},
        {"many_planes_bf16", CUDNN_DATA_BFLOAT16, {2, 35, 48, 48, 48, 48}, 118, TURNED, &nchw},
        {"many_planes16_nan", CUDNN_DATA_HALF, {2, 34, 56, 48, 56, 48}, 101, TURNED_NAN, &nchw},
        {"many_planes_nan", CUDNN_DATA_FLOAT, {2, 37, 40, 40, 40, 39}, 132, TURNED_NAN, &nchw},
        {"many_windows_bf16", CUDNN_DATA_BFLOAT16, {2, 35, 48, 48, 32, 32}, 118, TURNED, &nchw},
        {"many_planes16_odd", CUDNN_DATA_HALF, {2, 33, 56, 48, 56, 48}, 101, TURNED, &odd},
        {"many_planes_apart16", CUDNN_DATA_HALF, {2, 33, 56, 48, 32, 40}, 101, ANYWHERE, &nchw},
        {"many_one_place16", CUDNN_DATA_HALF, {2, 33, 56, 48, 49, 48}, 101, ONE_PLACE, &nchw},
        {"many_reduced", CUDNN_DATA_FLOAT, {1, 33, 90, 96, 65, 64}, 32, TURNED, &nchw},
        {"many_reduced_odd", CUDNN_DATA_FLOAT, {1, 35, 90, 96, 65, 64}, 32, TURNED, &odd},
        {"many_pixels", CUDNN_DATA_FLOAT, {1, 36, 68, 67, 65, 68}, 60, TURNED, &nhwc},
        {"many_pixels16", CUDNN_DATA_HALF, {2, 32, 50, 51, 40, 44}, 107, TURNED, &nhwc},
        {"many_pixels_bf16", CUDNN_DATA_BFLOAT16, {2, 32, 50, 51, 40, 44}, 107, ANYWHERE, &nhwc},
        {"many_pixels_odd", CUDNN_DATA_FLOAT, {1, 32, 68, 67, 65, 64}, 60, TURNED, &odd_nhwc},
        {"many_pixels16_odd", CUDNN_DATA_HALF, {2, 32, 50, 51, 40, 44}, 107, TURNED, &odd_nhwc},
        {"many_pixels_bf16_odd",
         CUDNN_DATA_BFLOAT16,
         {2, 32, 50, 51, 40, 44},
         107,
         TURNED,
         &odd_nhwc},
        {"many_pixels_nan", CUDNN_DATA_FLOAT, {1, 36, 68, 67, 65, 68}, 60, TURNED_NAN, &nhwc},
        {"many_pixels_one_place", CUDNN_DATA_HALF, {2, 32, 50, 51, 48, 50}, 107, ONE_PLACE, &nhwc},
        /* two runs of channels a thread */
        {"many_runs16", CUDNN_DATA_HALF, {2, 64, 20, 24, 32, 40}, 82, TURNED, &nhwc},
        {"many_runs_nan", CUDNN_DATA_FLOAT, {2, 32, 20, 24, 31, 42}, 82, TURNED_NAN, &nhwc},
        {"many_runs_blended",
         CUDNN_DATA_FLOAT,
         {2, 32, 20, 24, 32, 40},
         82,
         ANYWHERE,
         &blended_nhwc},
        {"blended", CUDNN_DATA_FLOAT, {1, 35, 90, 96, 65, 64}, 32, TURNED, &blended},
        {"blended16", CUDNN_DATA_HALF, {2, 37, 56, 48, 56, 48}, 101, TURNED, &blended},
        {"blended_apart", CUDNN_DATA_FLOAT, {1, 33, 90, 96, 65, 64}, 32, ANYWHERE, &blended},
        {"blended_pixels", CUDNN_DATA_HALF, {2, 32, 50, 51, 40, 44}, 107, ANYWHERE, &blended_nhwc},
    };
    sampler_large_cases(rows, sizeof rows / sizeof rows[0]);
}

/* Channels or pixels as neighbours, whole runs or not, aligned or not, rows that go by strips, places
 * that share a cell, few channels and many. */
static void walk_cases(void)
{
    static const struct spatial_shape shapes[] = {
        {2, 16, 5, 7, 8, 4},   {2, 3, 9, 8, 5, 6},    {1, 40, 6, 6, 4, 8}, {3, 61, 4, 5, 3, 5},
        {1, 8, 3, 30, 2, 230}, {2, 24, 12, 13, 4, 4}, {1, 5, 1, 9, 3, 7},  {1, 130, 7, 1, 2, 6},
    };
    static const struct walk walks[] = {
        {LAYOUT_NCHW, 0, 0, 0, false}, {LAYOUT_NHWC, 0, 0, 0, false}, {LAYOUT_NCHW, 1, 0, 1, false},
        {LAYOUT_NHWC, 0, 1, 1, false}, {LAYOUT_NHWC, 8, 8, 2, false},
    };
    for (int type = 0; type < 4; ++type) {
        for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); ++i) {
            for (int w = 0; w < 5; ++w) {
                if (!case_begin("sampler/walk/%s/%d/%d", spatial_types[type].name, i, w)) continue;
                sampler_case(&walks[w], spatial_types[type].type, &shapes[i], i % 2 == 0,
                             i == 5 && w < 2 ? ONE_PLACE : ANYWHERE, false);
                case_end();
            }
        }
    }
}

/* sum of weight * y after theta -> grid -> y; the grid stays within the image's cells */
static double loss(struct spatial_call *c, const double *weight, bool generate)
{
    double sum = 0.0;
    if (generate) {
        c->grid->output = true;
        c->y->whole->output = false;
        run_call(spatial_grid_forward, c);
        c->grid->output = false;
        c->y->whole->output = true;
        tensor_write(c->grid);
    }
    run_call(sampler_forward, c);
    for (int64_t i = 0; i < c->y->count; ++i) sum += weight[i] * c->y->whole->value[i];
    return sum;
}

/* Nudges every element of `input`, and compares the loss with what the backward pass said. */
static void nudge(struct spatial_call *c, const char *name, struct tensor *input,
                  const double *gradient, const double *weight, bool generate)
{
    const double step = 1e-5;
    for (int64_t i = 0; i < input->count; ++i) {
        double value = input->value[i];
        double up, down;
        input->value[i] = value + step;
        tensor_write(input);
        up = loss(c, weight, generate);
        input->value[i] = value - step;
        tensor_write(input);
        down = loss(c, weight, generate);
        input->value[i] = value;
        tensor_write(input);
        if (harness_values &&
            !(fabs((up - down) / (2 * step) - gradient[i]) < 1e-6 * (1 + fabs(gradient[i])))) {
            case_fail("%s[%lld] is %.12g, the difference quotient %.12g", name, (long long)i,
                      gradient[i], (up - down) / (2 * step));
        }
    }
}

static void difference_case(void)
{
    static const struct spatial_shape s = {2, 2, 4, 5, 3, 3};
    static const int x_dim[4] = {2, 2, 4, 5}, y_dim[4] = {2, 2, 3, 3}, grid_dim[4] = {2, 3, 3, 2};
    static const int theta_dim[3] = {2, 2, 3};
    static const double theta[12] = {0.71, 0.13, 0.05,  -0.11, 0.67, 0.09,
                                     0.9,  0.3,  -0.22, 0.25,  1.1,  0.31};
    struct spatial_call c = {.alpha = 1.0, .alpha_grid = 1.0};
    double *weight, *dx, *dgrid, *dtheta;
    if (!case_begin("sampler/differences")) return;
    spatial_describe(&c, CUDNN_DATA_DOUBLE, &s);
    c.x = part_input(CUDNN_DATA_DOUBLE, 4, x_dim, LAYOUT_NCHW, NULL, -4.0, 4.0);
    c.theta = tensor_input(CUDNN_DATA_DOUBLE, 3, theta_dim, LAYOUT_NCHW, -1.0, 1.0);
    memcpy(c.theta->value, theta, sizeof theta);
    tensor_write(c.theta);
    c.grid = tensor_inout(CUDNN_DATA_DOUBLE, 4, grid_dim, LAYOUT_NCHW, -1.0, 1.0);
    c.y = part_output(CUDNN_DATA_DOUBLE, 4, y_dim, LAYOUT_NCHW, NULL, false);
    c.dy = part_input(CUDNN_DATA_DOUBLE, 4, y_dim, LAYOUT_NCHW, NULL, -4.0, 4.0);
    weight = spatial_copy(c.dy->whole->value, c.dy->count);
    loss(&c, weight, true); /* makes the grid */
    c.y->whole->output = false;
    c.dx = part_output(CUDNN_DATA_DOUBLE, 4, x_dim, LAYOUT_NCHW, NULL, false);
    c.dgrid = tensor_inout(CUDNN_DATA_DOUBLE, 4, grid_dim, LAYOUT_NCHW, -1.0, 1.0);
    run_call(sampler_backward, &c);
    dx = spatial_copy(c.dx->whole->value, c.dx->count);
    dgrid = spatial_copy(c.dgrid->value, c.dgrid->count);
    c.dx->whole->output = c.dgrid->output = false;
    tensor_write(c.dgrid);
    c.dtheta = tensor_inout(CUDNN_DATA_DOUBLE, 3, theta_dim, LAYOUT_NCHW, -1.0, 1.0);
    run_call(spatial_grid_backward, &c);
    dtheta = spatial_copy(c.dtheta->value, c.dtheta->count);
    c.dtheta->output = false;
    c.y->whole->output = true;
    nudge(&c, "dx", c.x->whole, dx, weight, false);
    nudge(&c, "dgrid", c.grid, dgrid, weight, false);
    nudge(&c, "dtheta", c.theta, dtheta, weight, true);
    free(weight);
    free(dx);
    free(dgrid);
    free(dtheta);
    cudnnDestroySpatialTransformerDescriptor(c.st);
    parts_free();
    case_end();
}

int main(int argc, char **argv)
{
    setenv("FAKECUDA_PROCESSORS", SAMPLER_PROCESSORS, 0);
    harness_start(argc, argv);
    for (int type = 0; type < 4; ++type) {
        for (int turn = 0; turn < 40; ++turn) random_sampler(type, turn);
    }
    difference_case();
    large_samplers();
    walk_cases();
    spatial_check_launched(argc, SPATIAL_SAMPLERS);
    return harness_finish();
}
