/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the spatial transformer's passes, shared by host and device, and the order of the
 * cells between pixels, which needs no accumulator. */
#ifndef WD_OPS_SPATIAL_ARGS_H
#define WD_OPS_SPATIAL_ARGS_H

#include "base/view.h"
#include "graph/attr.h"

struct grid_args {
    struct wd_view theta; /* N, 2, 3: a row of factors of u, v and 1 for each coordinate */
    struct wd_view grid;  /* N, H, W, 2: column, then row */
};

struct sampler_args {
    struct wd_view x;
    struct wd_view y; /* forward: the output; backward: its gradient dy */
    struct wd_view grid;
    struct wd_view dx;
    struct wd_view dgrid;
    double alpha;
    double beta;
    double alpha_grid;
    double beta_grid;
    /* What is sorted at a time: `pixels` of the grid, from first_pixel on, of each image from
     * first_image on. */
    int64_t first_image;
    int64_t first_pixel;
    int64_t pixels;
    int64_t *cell;       /* of each of them, see sampler_cell */
    const int32_t *from; /* their places within those of their image, in runs sorted by cell */
    int32_t *to;
    int64_t run; /* length of these runs */
};

/* A cell is a square between four neighbours of the image; those of the frame around it lie
 * outside; its name is that of its upper left corner, which may be -1. Cells count row by row. */
WD_FN int64_t sampler_cell(const struct wd_view *x, int64_t row, int64_t column)
{
    return (row + 1) * (x->dim[3] + 1) + column + 1;
}

/* Behind all cells: where pixels go that see nothing of the image. */
WD_FN int64_t sampler_nowhere(const struct wd_view *x)
{
    return (x->dim[2] + 1) * (x->dim[3] + 1);
}

/* The cell of the pixel that is number `at` of its image in the sorted order; `image` counts from
 * first_image on. */
WD_FN int64_t sampler_cell_at(const struct sampler_args *a, int64_t image, int64_t at)
{
    return a->cell[image * a->pixels + a->from[image * a->pixels + at]];
}

/* In the sorted run low .. high-1 the first whose cell is not before `cell`; or, with `behind`, the
 * first whose cell comes after it. */
WD_FN int64_t sampler_find(const struct sampler_args *a, int64_t image, int64_t low, int64_t high,
                           int64_t cell, int behind)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int64_t found = sampler_cell_at(a, image, middle);
        if (found < cell || (behind && found == cell)) low = middle + 1;
        else high = middle;
    }
    return low;
}

#endif
