/* SPDX-License-Identifier: Apache-2.0
 *
 * The spatial transformer's grid generator against its formula, in both directions: random shapes, all
 * types, grids of many pixels and of many images, pointers at any element. */
#include <math.h>
#include <stdlib.h>

#include "spatial_case.h"

/* u or v. */
static double along(int at, int extent)
{
    return extent > 1 ? -1.0 + 2.0 * at / (extent - 1) : -1.0;
}

/* Image, row, column and coordinate of an element of a grid. */
static void grid_at(const struct spatial_shape *s, int64_t i, int *at)
{
    at[3] = (int)(i % 2);
    at[2] = (int)(i / 2 % s->q);
    at[1] = (int)(i / 2 / s->q % s->p);
    at[0] = (int)(i / 2 / s->q / s->p);
}

static void grid_case(cudnnDataType_t dtype, const struct spatial_shape *s, int skip)
{
    struct spatial_call c = {.skip = skip};
    int grid_dim[2] = {1, s->n * s->p * s->q * 2 + skip}, theta_dim[2] = {1, s->n * 6 + skip};
    double *exact, *size;
    spatial_describe(&c, dtype, s);
    c.theta = tensor_input(dtype, 2, theta_dim, LAYOUT_NCHW, -2.0, 2.0);
    c.grid = tensor_inout(dtype, 2, grid_dim, LAYOUT_NCHW, -2.0, 2.0);
    c.dgrid = tensor_input(dtype, 2, grid_dim, LAYOUT_NCHW, -4.0, 4.0);
    c.dtheta = tensor_inout(dtype, 2, theta_dim, LAYOUT_NCHW, -2.0, 2.0);
    exact = spatial_copy(c.grid->value, c.grid->count);
    size = calloc((size_t)c.grid->count, sizeof *size);
    c.dtheta->output = false;
    for (int64_t i = skip; i < c.grid->count; ++i) {
        int at[4];
        const double *row;
        grid_at(s, i - skip, at);
        row = c.theta->value + skip + at[0] * 6 + at[3] * 3;
        exact[i] = row[0] * along(at[2], s->q) + row[1] * along(at[1], s->p) + row[2];
        size[i] = fabs(row[0]) + fabs(row[1]) + fabs(row[2]);
    }
    if (run_call(spatial_grid_forward, &c)) {
        check_values("grid", c.grid, exact, NULL, size, spatial_compute_type(dtype));
    }
    free(exact);
    free(size);
    c.grid->output = false;
    c.dtheta->output = true;
    exact = spatial_copy(c.dtheta->value, c.dtheta->count);
    size = calloc((size_t)c.dtheta->count, sizeof *size);
    for (int64_t i = skip; i < c.dtheta->count; ++i) exact[i] = 0.0;
    for (int64_t i = skip; i < c.dgrid->count; ++i) {
        int at[4];
        double g = c.dgrid->value[i];
        grid_at(s, i - skip, at);
        for (int k = 0; k < 3; ++k) {
            double term = g * (k == 0 ? along(at[2], s->q) : k == 1 ? along(at[1], s->p) : 1.0);
            exact[skip + at[0] * 6 + at[3] * 3 + k] += term;
            size[skip + at[0] * 6 + at[3] * 3 + k] += fabs(g);
        }
    }
    if (run_call(spatial_grid_backward, &c)) {
        check_values("dtheta", c.dtheta, exact, NULL, size, spatial_compute_type(dtype));
    }
    free(exact);
    free(size);
    cudnnDestroySpatialTransformerDescriptor(c.st);
}

static void grid_cases(void)
{
    static const struct spatial_shape large[] = {{2, 1, 1, 1, 300, 401},
                                                 {700, 1, 1, 1, 9, 8},
                                                 {3, 1, 1, 1, 223, 225},
                                                 {6, 1, 1, 1, 430, 421}};
    for (int type = 0; type < 4; ++type) {
        for (int turn = 0; turn < 16; ++turn) {
            struct spatial_shape s;
            if (!case_begin("grid/%s/%d", spatial_types[type].name, turn)) continue;
            s = (struct spatial_shape){(int)random_int(1, 4),  (int)random_int(1, 4), 1, 1,
                                       (int)random_int(1, 13), (int)random_int(1, 13)};
            if (turn == 1) s.p = 1;
            if (turn == 2) s.q = 1;
            grid_case(spatial_types[type].type, &s, turn < 8 ? 0 : turn % 8);
            case_end();
        }
    }
    for (int i = 0; i < 16; ++i) {
        if (!case_begin("grid/large/%d/%s", i / 4, spatial_types[i % 4].name)) continue;
        grid_case(spatial_types[i % 4].type, &large[i / 4], i % 2);
        case_end();
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    grid_cases();
    spatial_check_launched(argc, SPATIAL_GRIDS);
    return harness_finish();
}
