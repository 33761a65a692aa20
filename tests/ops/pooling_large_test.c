/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of long windows and large images against its formula; averages also against finite
 * differences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pooling_case.h"

/* Windows that are reductions, images whose maxima do not fit the scratch at once, and one with too
 * many windows to remember any. */
static void typed_case(const char *name, int mode, cudnnDataType_t dtype, enum layout layout,
                       struct pooling_geometry g)
{
    struct pooling_call c = {.alpha = 1.0};
    double *before;
    g.mode = mode;
    g.propagate = 1;
    if (!case_begin("pooling/large/%s/mode%d", name, mode)) return;
    for (int d = 0; d < g.rank; ++d) {
        g.y[d] =
            d < 2 ? g.x[d] : (g.x[d] + 2 * g.pad[d - 2] - g.window[d - 2]) / g.stride[d - 2] + 1;
    }
    c.pooling = pooling_descriptor(&g);
    c.x = part_input(dtype, g.rank, g.x, layout, NULL, -4.0, 4.0);
    pooling_roughen(c.x, false);
    c.y = part_output(dtype, g.rank, g.y, layout, NULL, true);
    before = part_expected(c.y);
    if (run_call(pooling_forward, &c)) pooling_check_forward(&g, &c, before);
    free(before);
    c.dy = part_input(dtype, g.rank, g.y, layout, NULL, -4.0, 4.0);
    c.dx = part_output(dtype, g.rank, g.x, layout, NULL, true);
    before = part_expected(c.dx);
    if (run_call(pooling_backward, &c)) pooling_check_backward(&g, &c, before);
    free(before);
    cudnnDestroyPoolingDescriptor(c.pooling);
    parts_free();
    case_end();
}

static void large_case(const char *name, int mode, struct pooling_geometry g)
{
    typed_case(name, mode, CUDNN_DATA_FLOAT, LAYOUT_NCHW, g);
}

/* Windows of which a processor's shared memory has room for single channels, but not for runs of 16
 * bytes: those of y, and those over an element of dx. */
static void long_run_cases(void)
{
    for (int mode = 0; mode < 4; ++mode) {
        typed_case("runs", mode, CUDNN_DATA_FLOAT, LAYOUT_NHWC,
                   (struct pooling_geometry){.rank = 4,
                                             .x = {1, 4, 131, 133},
                                             .window = {129, 129},
                                             .pad = {64, 64},
                                             .stride = {64, 64}});
        typed_case("tall_runs", mode, CUDNN_DATA_HALF, LAYOUT_NHWC,
                   (struct pooling_geometry){
                       .rank = 4, .x = {1, 8, 4040, 4}, .window = {4000, 3}, .stride = {20, 1}});
        if (mode != CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING &&
            mode != CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING) {
            continue;
        }
        typed_case("deep_runs", mode, CUDNN_DATA_BFLOAT16, LAYOUT_NHWC,
                   (struct pooling_geometry){.rank = 5,
                                             .x = {1, 8, 3, 1, 2},
                                             .window = {3700, 1, 1},
                                             .pad = {3699, 0, 0},
                                             .stride = {1, 1, 1}});
    }
}

static void large_cases(void)
{
    for (int mode = 0; mode < 3; ++mode) {
        large_case("global", mode,
                   (struct pooling_geometry){
                       .rank = 4, .x = {2, 3, 200, 190}, .window = {200, 190}, .stride = {1, 1}});
        large_case("wide", mode,
                   (struct pooling_geometry){.rank = 4,
                                             .x = {1, 2, 40, 41},
                                             .window = {9, 11},
                                             .pad = {4, 10},
                                             .stride = {2, 3}});
        large_case("window_over", mode,
                   (struct pooling_geometry){
                       .rank = 3, .x = {1, 2, 5}, .window = {300}, .pad = {299}, .stride = {50}});
        large_case("many_images", mode,
                   (struct pooling_geometry){
                       .rank = 4, .x = {5, 3, 300, 300}, .window = {2, 3}, .stride = {1, 1}});
        large_case("long_line", mode,
                   (struct pooling_geometry){
                       .rank = 3, .x = {1, 1, 1200000}, .window = {3}, .stride = {2}});
    }
}

/* An average is linear: dx holds (f(x + h e) - f(x - h e)) / 2h exactly, but for rounding. */
static double weighted(const struct pooling_call *c, const double *weight)
{
    double sum = 0.0;
    run_call(pooling_forward, (void *)(uintptr_t)c);
    for (int64_t i = 0; i < c->y->count; ++i) sum += weight[i] * c->y->whole->value[i];
    return sum;
}

static void difference_case(int mode)
{
    struct pooling_geometry g = {.mode = mode,
                                 .rank = 4,
                                 .x = {1, 2, 5, 4},
                                 .y = {1, 2, 3, 3},
                                 .window = {3, 2},
                                 .pad = {1, 1},
                                 .stride = {2, 2}};
    struct pooling_call c = {.alpha = 1.0};
    double weight[18];
    if (!harness_values || !case_begin("pooling/differences/mode%d", mode)) return;
    c.pooling = pooling_descriptor(&g);
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
        run_call(pooling_backward, &c);
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

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int mode = 0; mode < 4; ++mode) difference_case(mode);
    large_cases();
    long_run_cases();
    return harness_finish();
}
