/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of spatial transformers (Jaderberg, Simonyan, Zisserman, Kavukcuoglu, 2015): for
 * every output pixel an affine transform says where in the image to look, and a sampler looks there.
 *
 *     grid    (gx, gy) = theta (u, v, 1), u and v from -1 to 1 over the output's columns and rows
 *     sample  sx = (gx + 1) (W - 1) / 2, sy likewise: -1 and 1 are the middles of the border pixels
 *             y = sum over the four pixels (i, j) around (sy, sx) of x_ij (1 - |sy - i|) (1 - |sx - j|)
 *             y = alpha * y + beta * y_before
 *
 * Pixels outside of the image count as 0. Where sx or sy is not finite y is NaN. The first column or
 * row is at -1, the only one too.
 *
 * Backward, dtheta sums dgrid times (u, v, 1) over the pixels; dgrid is dy times the slope of the
 * cell with floor(sx), floor(sy) as its upper left corner, summed over the channels (NaN where the
 * other coordinate is not finite, 0 where its own alone is not); and every dx gathers from the pixels
 * that looked at it: these are found by sorting the grid's pixels by cell, stably, so that the sum
 * has one order, by cell, then by pixel.
 *
 * Passes: grid_forward (item: a pixel), grid_backward (item: a row of dtheta, term: a pixel),
 * sampler_forward (item: an element of y), sampler_grid (item: a pixel, term: a channel),
 * sampler_cells (item: a pixel), sampler_merge (likewise: one step of a merge sort), sampler_gather
 * (item: an element of dx). */

/* u or v of a column or row. */
WD_FN WD_ACC WD_NAME(spatial_place)(int64_t at, int64_t extent)
{
    return extent > 1 ? (WD_ACC)(2 * at - (extent - 1)) / (WD_ACC)(extent - 1) : (WD_ACC)-1;
}

WD_FN void WD_NAME(grid_forward)(const struct grid_args *a, int64_t item)
{
    int64_t at[4];
    WD_ACC u, v;
    wd_unravel(a->grid.dim, 3, item, at);
    u = WD_NAME(spatial_place)(at[2], a->grid.dim[2]);
    v = WD_NAME(spatial_place)(at[1], a->grid.dim[1]);
    for (int k = 0; k < 2; ++k) {
        int64_t row = at[0] * a->theta.stride[0] + k * a->theta.stride[1];
        int64_t step = a->theta.stride[2];
        WD_ACC g = WD_NAME(wd_view_load)(&a->theta, row) * u +
                   WD_NAME(wd_view_load)(&a->theta, row + step) * v +
                   WD_NAME(wd_view_load)(&a->theta, row + 2 * step);
        at[3] = k;
        WD_NAME(wd_view_store)(&a->grid, wd_view_offset(&a->grid, at), g);
    }
}

struct WD_NAME(grid_backward_state) {
    WD_ACC u, v, one;
};

WD_FN void WD_NAME(grid_backward_init)(struct WD_NAME(grid_backward_state) * t)
{
    t->u = t->v = t->one = 0;
}

WD_FN void WD_NAME(grid_backward_term)(const struct grid_args *a, int64_t item, int64_t term,
                                       struct WD_NAME(grid_backward_state) * t)
{
    int64_t at[4];
    WD_ACC g;
    at[0] = item / 2;
    at[1] = term / a->grid.dim[2];
    at[2] = term % a->grid.dim[2];
    at[3] = item % 2;
    g = WD_NAME(wd_view_load)(&a->grid, wd_view_offset(&a->grid, at));
    t->u += g * WD_NAME(spatial_place)(at[2], a->grid.dim[2]);
    t->v += g * WD_NAME(spatial_place)(at[1], a->grid.dim[1]);
    t->one += g;
}

WD_FN void WD_NAME(grid_backward_combine)(const struct grid_args *a,
                                          struct WD_NAME(grid_backward_state) * into,
                                          const struct WD_NAME(grid_backward_state) * from)
{
    (void)a;
    into->u += from->u;
    into->v += from->v;
    into->one += from->one;
}

WD_FN void WD_NAME(grid_backward_finish)(const struct grid_args *a, int64_t item,
                                         const struct WD_NAME(grid_backward_state) * t)
{
    int64_t row = item / 2 * a->theta.stride[0] + item % 2 * a->theta.stride[1];
    int64_t step = a->theta.stride[2];
    WD_NAME(wd_view_store)(&a->theta, row, t->u);
    WD_NAME(wd_view_store)(&a->theta, row + step, t->v);
    WD_NAME(wd_view_store)(&a->theta, row + 2 * step, t->one);
}

/* Where a pixel looks: the upper left corner of its cell, and how far right and below of it. */
struct WD_NAME(sampler_look) {
    int64_t row, column;
    WD_ACC down, right;
};

/* One coordinate of it; 0 where no pixel of the image is near, `beyond` then 0 or, of a coordinate
 * that is not finite, NaN. */
WD_FN int WD_NAME(sampler_coordinate)(WD_ACC g, int64_t extent, int64_t *corner, WD_ACC *beyond)
{
    WD_ACC s = (g + 1) * ((WD_ACC)(extent - 1) / 2);
    WD_ACC whole = WD_M(floor)(s);
    *corner = 0;
    *beyond = s - s;
    if (!(s > -1 && s < (WD_ACC)extent)) return 0;
    *corner = (int64_t)whole;
    *beyond = s - whole;
    return 1;
}

WD_FN int WD_NAME(sampler_look_at)(const struct sampler_args *a, int64_t n, int64_t h, int64_t w,
                                   struct WD_NAME(sampler_look) * look)
{
    int64_t offset = n * a->grid.stride[0] + h * a->grid.stride[1] + w * a->grid.stride[2];
    WD_ACC gx = WD_NAME(wd_view_load)(&a->grid, offset);
    WD_ACC gy = WD_NAME(wd_view_load)(&a->grid, offset + a->grid.stride[3]);
    int within = WD_NAME(sampler_coordinate)(gx, a->x.dim[3], &look->column, &look->right);
    return WD_NAME(sampler_coordinate)(gy, a->x.dim[2], &look->row, &look->down) && within;
}

/* x at a place that may lie outside. */
WD_FN WD_ACC WD_NAME(sampler_x)(const struct sampler_args *a, int64_t n, int64_t c, int64_t h,
                                int64_t w)
{
    if (h < 0 || h >= a->x.dim[2] || w < 0 || w >= a->x.dim[3]) return 0;
    return WD_NAME(wd_view_load)(&a->x, n * a->x.stride[0] + c * a->x.stride[1] +
                                            h * a->x.stride[2] + w * a->x.stride[3]);
}

WD_FN void WD_NAME(sampler_forward)(const struct sampler_args *a, int64_t item)
{
    struct WD_NAME(sampler_look) k;
    int64_t at[4];
    WD_ACC value = 0;
    wd_unravel(a->y.dim, 4, item, at);
    if (WD_NAME(sampler_look_at)(a, at[0], at[2], at[3], &k)) {
        WD_ACC left = 1 - k.right;
        value = (1 - k.down) * (left * WD_NAME(sampler_x)(a, at[0], at[1], k.row, k.column) +
                                k.right * WD_NAME(sampler_x)(a, at[0], at[1], k.row, k.column + 1));
        value += k.down * (left * WD_NAME(sampler_x)(a, at[0], at[1], k.row + 1, k.column) +
                           k.right * WD_NAME(sampler_x)(a, at[0], at[1], k.row + 1, k.column + 1));
    } else {
        value = (k.down + k.right) * 0; /* NaN goes through */
    }
    WD_NAME(wd_view_blend)(&a->y, wd_view_offset(&a->y, at), value, a->alpha, a->beta);
}

/* The gradient of a pixel's column and row. */
struct WD_NAME(sampler_grid_state) {
    WD_ACC x, y;
};

WD_FN void WD_NAME(sampler_grid_init)(struct WD_NAME(sampler_grid_state) * t)
{
    t->x = t->y = 0;
}

WD_FN void WD_NAME(sampler_grid_term)(const struct sampler_args *a, int64_t item, int64_t term,
                                      struct WD_NAME(sampler_grid_state) * t)
{
    struct WD_NAME(sampler_look) k;
    int64_t at[4];
    wd_unravel(a->dgrid.dim, 3, item, at);
    if (WD_NAME(sampler_look_at)(a, at[0], at[1], at[2], &k)) {
        WD_ACC dy =
            WD_NAME(wd_view_load)(&a->y, at[0] * a->y.stride[0] + term * a->y.stride[1] +
                                             at[1] * a->y.stride[2] + at[2] * a->y.stride[3]);
        WD_ACC x00 = WD_NAME(sampler_x)(a, at[0], term, k.row, k.column);
        WD_ACC x01 = WD_NAME(sampler_x)(a, at[0], term, k.row, k.column + 1);
        WD_ACC x10 = WD_NAME(sampler_x)(a, at[0], term, k.row + 1, k.column);
        WD_ACC x11 = WD_NAME(sampler_x)(a, at[0], term, k.row + 1, k.column + 1);
        t->x += dy * ((1 - k.down) * (x01 - x00) + k.down * (x11 - x10));
        t->y += dy * ((1 - k.right) * (x10 - x00) + k.right * (x11 - x01));
    } else {
        t->x += k.down * 0;
        t->y += k.right * 0;
    }
}

WD_FN void WD_NAME(sampler_grid_combine)(const struct sampler_args *a,
                                         struct WD_NAME(sampler_grid_state) * into,
                                         const struct WD_NAME(sampler_grid_state) * from)
{
    (void)a;
    into->x += from->x;
    into->y += from->y;
}

WD_FN void WD_NAME(sampler_grid_finish)(const struct sampler_args *a, int64_t item,
                                        const struct WD_NAME(sampler_grid_state) * t)
{
    int64_t at[4];
    wd_unravel(a->dgrid.dim, 3, item, at);
    at[3] = 0;
    WD_NAME(wd_view_blend)
    (&a->dgrid, wd_view_offset(&a->dgrid, at), t->x * (WD_ACC)(a->x.dim[3] - 1) / 2, a->alpha_grid,
     a->beta_grid);
    at[3] = 1;
    WD_NAME(wd_view_blend)
    (&a->dgrid, wd_view_offset(&a->dgrid, at), t->y * (WD_ACC)(a->x.dim[2] - 1) / 2, a->alpha_grid,
     a->beta_grid);
}

/* Before sorting every pixel is a run of its own. */
WD_FN void WD_NAME(sampler_cells)(const struct sampler_args *a, int64_t item)
{
    struct WD_NAME(sampler_look) k;
    int64_t pixel = a->first_pixel + item % a->pixels;
    int64_t columns = a->grid.dim[2];
    int seen = WD_NAME(sampler_look_at)(a, a->first_image + item / a->pixels, pixel / columns,
                                        pixel % columns, &k);
    a->cell[item] = seen ? sampler_cell(&a->x, k.row, k.column) : sampler_nowhere(&a->x);
    a->to[item] = (int32_t)(item % a->pixels);
}

/* From sorted runs to runs of twice the length: a pixel's place is its place in its own run, and as
 * many further as pixels of the neighbour run come before it, equal ones only from the left. */
WD_FN void WD_NAME(sampler_merge)(const struct sampler_args *a, int64_t item)
{
    int64_t image = item / a->pixels;
    int64_t at = item % a->pixels;
    int64_t own = at / a->run * a->run;
    int is_right = (int)(at / a->run & 1);
    int64_t other = is_right ? own - a->run : own + a->run;
    int64_t end = other + a->run;
    int64_t before;
    if (other > a->pixels) other = a->pixels;
    if (end > a->pixels) end = a->pixels;
    before = sampler_find(a, image, other, end, sampler_cell_at(a, image, at), is_right) - other;
    a->to[image * a->pixels + (is_right ? other : own) + at - own + before] = a->from[item];
}

WD_FN void WD_NAME(sampler_gather)(const struct sampler_args *a, int64_t item)
{
    struct WD_NAME(sampler_look) k;
    int64_t at[4];
    int64_t image;
    WD_ACC sum = 0;
    wd_unravel(a->dx.dim, 4, item, at);
    image = at[0]; /* wd_unravel takes what it gets: counted from first_image on */
    at[0] += a->first_image;
    for (int64_t row = at[2] - 1; row <= at[2]; ++row) {
        /* the two cells of this row that touch the element are neighbours in the order */
        int64_t last = sampler_cell(&a->x, row, at[3]);
        int64_t i = sampler_find(a, image, 0, a->pixels, last - 1, 0);
        for (; i < a->pixels && sampler_cell_at(a, image, i) <= last; ++i) {
            int64_t pixel = a->first_pixel + a->from[image * a->pixels + i];
            int64_t h = pixel / a->grid.dim[2];
            int64_t w = pixel % a->grid.dim[2];
            WD_ACC dy =
                WD_NAME(wd_view_load)(&a->y, at[0] * a->y.stride[0] + at[1] * a->y.stride[1] +
                                                 h * a->y.stride[2] + w * a->y.stride[3]);
            WD_NAME(sampler_look_at)(a, at[0], h, w, &k);
            sum += dy * (k.row == at[2] ? 1 - k.down : k.down) *
                   (k.column == at[3] ? 1 - k.right : k.right);
        }
    }
    WD_NAME(wd_view_blend)(&a->dx, wd_view_offset(&a->dx, at), sum, a->alpha, a->beta);
}
