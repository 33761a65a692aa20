/* SPDX-License-Identifier: Apache-2.0
 *
 * A case of the spatial transformer's sampler against its formulas, written out here in double with tents: a
 * pixel counts as max(0, 1 - distance) in each direction, summed over the whole image, and the backward pass
 * is that sum the other way round. Used by spatial_sampler_test.c and spatial_mapped_test.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_case.h"

cudnnStatus_t sampler_forward(void *context)
{
    const struct spatial_call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    return cudnnSpatialTfSamplerForward(
        harness_handle, c->st, api_scalar(type, c->alpha, s), c->x->desc, part_data(c->x),
        spatial_behind(c, c->grid), api_scalar(type, c->beta, s + 1), c->y->desc, part_data(c->y));
}

cudnnStatus_t sampler_backward(void *context)
{
    const struct spatial_call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[4];
    return cudnnSpatialTfSamplerBackward(
        harness_handle, c->st, api_scalar(type, c->alpha, s), c->x->desc, part_data(c->x),
        api_scalar(type, c->beta, s + 1), c->dx->desc, part_data(c->dx),
        api_scalar(type, c->alpha_grid, s + 2), c->dy->desc, part_data(c->dy),
        spatial_behind(c, c->grid), api_scalar(type, c->beta_grid, s + 3),
        spatial_behind(c, c->dgrid));
}

static double place(double g, int extent)
{
    return (g + 1.0) * (extent - 1) / 2.0;
}

static double tent(double s, int i)
{
    double t = 1.0 - fabs(s - i);
    return t > 0.0 ? t : 0.0;
}

/* Of the tent over i at s, to the right of s. */
static double slope(double s, int i)
{
    return i == (int)floor(s) ? -1.0 : i == (int)floor(s) + 1 ? 1.0 : 0.0;
}

/* An element of the image that a pixel of the grid sees, with its weight and slopes. */
struct sight {
    int h, w;
    double weight, by_x, by_y;
};

/* What a pixel of the grid sees; blur: how far its place may be off, in roundings of the compute type; lost: 0,
 * or NaN where that coordinate of its place (0: column, 1: row) is not finite. */
struct view {
    struct sight sight[9];
    int count;
    double blur;
    double lost[2];
};

static void look(const struct spatial_call *c, const struct spatial_shape *s, int64_t pixel,
                 struct view *view)
{
    const double gx = c->grid->value[c->skip + 2 * pixel];
    const double gy = c->grid->value[c->skip + 2 * pixel + 1];
    const double sx = place(gx, s->w), sy = place(gy, s->h);
    view->count = 0;
    view->blur = isfinite(gx + gy) ? (fabs(gx) + 1) * s->w + (fabs(gy) + 1) * s->h : 0.0;
    view->lost[0] = isfinite(sx) ? 0.0 : NAN;
    view->lost[1] = isfinite(sy) ? 0.0 : NAN;
    if (!(sx > -1 && sx < s->w && sy > -1 && sy < s->h)) return;
    for (int h = (int)fmax(0.0, floor(sy) - 1); h < s->h && h <= sy + 1; ++h) {
        if (fabs(sy - h) > 1.0) continue;
        for (int w = (int)fmax(0.0, floor(sx) - 1); w < s->w && w <= sx + 1; ++w) {
            struct sight see = {h, w, tent(sy, h) * tent(sx, w), slope(sx, w) * tent(sy, h),
                                slope(sy, h) * tent(sx, w)};
            if (fabs(sx - w) > 1.0 || (see.weight == 0 && see.by_x == 0 && see.by_y == 0)) continue;
            view->sight[view->count++] = see;
        }
    }
}

/* A row of the grid: the same for all channels. */
static void look_along(const struct spatial_call *c, const struct spatial_shape *s, int n, int row,
                       struct view *views)
{
    for (int q = 0; q < s->q; ++q) look(c, s, ((int64_t)n * s->p + row) * s->q + q, &views[q]);
}

/* A row of elements in whole->value: the first, and how far apart they are. */
struct row {
    int64_t first, step;
};

static struct row row_of(const struct part *t, int n, int channel, int row)
{
    const int at[8] = {n, channel, row, 0}, next[8] = {n, channel, row, 1};
    const int64_t first = part_at(t, at);
    return (struct row){first, part_at(t, next) - first};
}

/* An image of one channel, likewise. */
struct plane {
    int64_t first, down, right;
};

static struct plane plane_of(const struct part *t, int n, int channel)
{
    const struct row top = row_of(t, n, channel, 0);
    return (struct plane){top.first, row_of(t, n, channel, 1).first - top.first, top.step};
}

static int64_t in_plane(const struct plane *p, const struct sight *sight)
{
    return p->first + sight->h * p->down + sight->w * p->right;
}

/* A factor of 0 means that what it stands before does not count. */
static double blended(double alpha, double value, double beta, double before)
{
    return (alpha != 0 ? alpha * value : 0.0) + (beta != 0 ? beta * before : 0.0);
}

static void check_forward(const struct spatial_call *c, const struct spatial_shape *s,
                          double *before)
{
    double *magnitude = calloc((size_t)c->y->whole->count, sizeof *magnitude);
    struct view *views = malloc((size_t)s->q * sizeof *views);
    for (int i = 0; i < s->n * s->p * s->c; ++i) {
        const int n = i / s->c / s->p, p = i / s->c % s->p;
        const struct plane from = plane_of(c->x, n, i % s->c);
        const struct row row = row_of(c->y, n, i % s->c, p);
        if (i % s->c == 0) look_along(c, s, n, p, views);
        for (int q = 0; q < s->q; ++q) {
            const struct view *view = &views[q];
            const int64_t index = row.first + q * row.step;
            double sum = 0, size = 0;
            for (int k = 0; k < view->count; ++k) {
                double x = c->x->whole->value[in_plane(&from, &view->sight[k])];
                sum += x * view->sight[k].weight;
                size += fabs(x) * (1 + view->blur);
            }
            sum += view->lost[0] + view->lost[1];
            before[index] = blended(c->alpha, sum, c->beta, before[index]);
            magnitude[index] = fabs(c->alpha) * size + fabs(before[index]);
            if (isnan(magnitude[index])) magnitude[index] = 0;
        }
    }
    check_values("y", c->y->whole, before, NULL, magnitude,
                 spatial_compute_type(c->y->whole->dtype));
    free(views);
    free(magnitude);
}

/* What a call's gradients are before they are blended, and how large what they were summed of. */
struct gradients {
    double *dx, *dx_size;
    double *grid, *grid_size;
};

/* One channel of a row of the grid; image: 2 * s->q of dgrid's elements. */
static void add_row(const struct spatial_call *c, const struct spatial_shape *s,
                    const struct view *views, int n, int channel, int p, const struct gradients *to)
{
    const struct plane from = plane_of(c->x, n, channel), into = plane_of(c->dx, n, channel);
    const struct row row = row_of(c->dy, n, channel, p);
    const int64_t first = c->skip + ((int64_t)n * s->p + p) * s->q * 2;
    for (int q = 0; q < s->q; ++q) {
        const struct view *view = &views[q];
        const double dy = c->dy->whole->value[row.first + q * row.step];
        const double factor_x = dy * (s->w - 1) / 2.0, factor_y = dy * (s->h - 1) / 2.0;
        double *grid = to->grid + first + 2 * q, *grid_size = to->grid_size + first + 2 * q;
        grid[0] += view->lost[1];
        grid[1] += view->lost[0];
        for (int k = 0; k < view->count; ++k) {
            const struct sight *sight = &view->sight[k];
            const double x = c->x->whole->value[in_plane(&from, sight)];
            const int64_t index = in_plane(&into, sight);
            to->dx[index] += dy * sight->weight;
            to->dx_size[index] += fabs(dy) * (1 + view->blur);
            grid[0] += factor_x * x * sight->by_x;
            grid[1] += factor_y * x * sight->by_y;
            grid_size[0] += fabs(factor_x * x) * (1 + view->blur);
            grid_size[1] += fabs(factor_y * x) * (1 + view->blur);
        }
    }
}

static void check_backward(const struct spatial_call *c, const struct spatial_shape *s, double *dx,
                           double *dgrid)
{
    const size_t images = (size_t)c->dx->whole->count, places = (size_t)c->dgrid->count;
    const struct gradients to = {calloc(images, sizeof *to.dx), calloc(images, sizeof *to.dx_size),
                                 calloc(places, sizeof *to.grid),
                                 calloc(places, sizeof *to.grid_size)};
    struct view *views = malloc((size_t)s->q * sizeof *views);
    for (int i = 0; i < s->n * s->p * s->c; ++i) {
        const int n = i / s->c / s->p, p = i / s->c % s->p;
        if (i % s->c == 0) look_along(c, s, n, p, views);
        add_row(c, s, views, n, i % s->c, p, &to);
    }
    for (int i = 0; i < s->n * s->c * s->h; ++i) {
        const struct row row = row_of(c->dx, i / s->h / s->c, i / s->h % s->c, i % s->h);
        for (int w = 0; w < s->w; ++w) {
            const int64_t index = row.first + w * row.step;
            dx[index] = blended(c->alpha, to.dx[index], c->beta, dx[index]);
            to.dx_size[index] = fabs(c->alpha) * to.dx_size[index] + fabs(dx[index]);
            if (isnan(to.dx_size[index])) to.dx_size[index] = 0;
        }
    }
    for (size_t i = (size_t)c->skip; i < places; ++i) {
        dgrid[i] = blended(c->alpha_grid, to.grid[i], c->beta_grid, dgrid[i]);
        to.grid_size[i] = fabs(c->alpha_grid) * to.grid_size[i] + fabs(dgrid[i]);
        if (isnan(to.grid_size[i])) to.grid_size[i] = 0;
    }
    check_values("dx", c->dx->whole, dx, NULL, to.dx_size,
                 spatial_compute_type(c->dx->whole->dtype));
    check_values("dgrid", c->dgrid, dgrid, NULL, to.grid_size,
                 spatial_compute_type(c->dx->whole->dtype));
    free(views);
    free(to.dx);
    free(to.dx_size);
    free(to.grid);
    free(to.grid_size);
}

/* Well within a cell, so that rounding does not take it to the next; or at a corner exactly. */
static double random_place(int extent, bool odd)
{
    double s = (double)random_int(-2, extent) + random_real(0.1, 0.9);
    if (odd && random_chance(0.05)) return random_of(-1, 1, 3);
    if (odd && random_chance(0.02)) return random_chance(0.5) ? NAN : random_of(-1, 1) * INFINITY;
    return extent > 1 ? 2.0 * s / (extent - 1) - 1.0 : random_real(-1.5, 1.5);
}

/* Neighbours look at neighbours, a little turned, now and then outside of the image. */
static double turned_pixel(int extent, double along, double across)
{
    double s = (0.9 * along - 0.1 * across + 0.07) * extent;
    return floor(s) + 0.1 + 0.8 * (s - floor(s));
}

static double turned_place(int extent, double along, double across)
{
    double s = turned_pixel(extent, along, across);
    return extent > 1 ? 2.0 * s / (extent - 1) - 1.0 : s - 0.5;
}

/* Whether a map's fit asks where place i is, of so many. */
static bool is_looked_at(int64_t i, int64_t count)
{
    const int64_t looks = 1024;
    return (i * looks + count - 1) / count * count / looks == i;
}

/* Whether the kernels of affine maps take an image (sampler_map.cuh): of the map that is right at three corners, places
 * are no further off than some of them say, and less than a place; and two neighbours of a row are a pixel apart. */
static bool is_mapped(const struct spatial_call *c, const struct spatial_shape *s, int image)
{
    const int64_t count = (int64_t)s->p * s->q;
    const double *grid = c->grid->value + c->skip + image * count * 2;
    const double x0 = place(grid[0], s->w), y0 = place(grid[1], s->h), slack = 1.0 / 256;
    const double *across = grid + 2 * (s->q - 1), *down = grid + 2 * (count - s->q);
    const double xq = (place(across[0], s->w) - x0) / (s->q - 1),
                 yq = (place(across[1], s->h) - y0) / (s->q - 1),
                 xp = (place(down[0], s->w) - x0) / (s->p - 1),
                 yp = (place(down[1], s->h) - y0) / (s->p - 1), area = xq * yp - xp * yq;
    double off[2] = {0, 0}, most[2] = {0, 0};
    for (int64_t i = 0; i < count; ++i) {
        const double x = place(grid[2 * i], s->w) - x0, y = place(grid[2 * i + 1], s->h) - y0;
        const double by[2] = {fabs((xq * y - yq * x) / area - (double)(i / s->q)),
                              fabs((yp * x - xp * y) / area - (double)(i % s->q))};
        const bool looked_at = is_looked_at(i, count);
        for (int d = 0; d < 2; ++d) {
            if (!(by[d] < 1)) return false;
            off[d] = fmax(off[d], by[d]);
            if (looked_at) most[d] = fmax(most[d], 1.25 * by[d] + 1.0 / 32);
        }
    }
    for (int d = 0; d < 2; ++d) {
        if (off[d] > most[d] - 1.0 / 64 - slack || most[d] > 1 - slack) return false;
    }
    return fmax(fabs(xq), fabs(yq)) - fmax(fabs(xq) * most[1] + fabs(xp) * most[0],
                                           fabs(yq) * most[1] + fabs(yp) * most[0]) >=
           0.5 + slack;
}

/* Of a case that is called so, some images are mapped, and all but where its places say so. */
static void check_mapped(const struct spatial_call *c, const struct spatial_shape *s,
                         enum places places)
{
    const bool all = places != TURNED_REST && places != TURNED_BUT_ONE && places != TURNED_LOST &&
                     places != TURNED_ASTRAY && places != BEYOND_ASTRAY;
    int mapped = 0;
    for (int n = 0; n < s->n; ++n) mapped += is_mapped(c, s, n);
    if (mapped == 0 || all != (mapped == s->n))
        case_fail("of %d images %d are mapped", s->n, mapped);
    if ((places == TURNED_ASTRAY || places == BEYOND_ASTRAY) && mapped != 1)
        case_fail("%d images are mapped", mapped);
}

/* Moves one place of an image, in pixels, of those that look into a box, and that the fit does not ask for. */
static void lead_astray(double *grid, const struct spatial_shape *s, const double *from,
                        const double *to, double right, double down)
{
    const int64_t count = (int64_t)s->p * s->q;
    for (int64_t i = 1; i < count - 1; ++i) {
        const double x = place(grid[2 * i], s->w), y = place(grid[2 * i + 1], s->h);
        if (x < from[0] || y < from[1] || x > to[0] || y > to[1] || is_looked_at(i, count))
            continue;
        if (i % s->q == 0 || i % s->q == s->q - 1 || i / s->q == 0 || i / s->q == s->p - 1)
            continue;
        grid[2 * i] = (float)(2.0 * (x + right) / (s->w - 1) - 1.0);
        grid[2 * i + 1] = (float)(2.0 * (y + down) / (s->h - 1) - 1.0);
        return;
    }
    case_fail("no place looks there");
}

/* Within a tile, over its right and its lower border (of tiles of 56 x 28), out of the image and into it, to where nothing is
 * finite, and far away. */
static void lead_all_astray(double *grid, const struct spatial_shape *s)
{
    static const double from[][2] = {{20, 10}, {54, 8},  {20, 26}, {86, 40},
                                     {40, 92}, {30, 12}, {60, 40}},
                        to[][2] = {{30, 20}, {55.9, 20}, {40, 27.9}, {99, 70},
                                   {90, 99}, {40, 20},   {70, 50}},
                        by[][2] = {{1.5, 0},  {2.2, 0}, {0, 2.2},     {20, 3},
                                   {-2, -40}, {NAN, 0}, {-1e30, 1e30}};
    for (int n = 1; n < s->n; ++n) {
        const int i = (n - 1) % 7;
        lead_astray(grid + (int64_t)n * s->p * s->q * 2, s, from[i], to[i], by[i][0], by[i][1]);
    }
}

static void fill_turned(const struct spatial_call *c, const struct spatial_shape *s,
                        enum places places)
{
    const int64_t count = (int64_t)s->p * s->q;
    const double turn = places == STRAIGHT ? 0.0 : 1.0;
    double *const grid = c->grid->value + c->skip;
    for (int64_t i = places == TURNED_REST ? count : 0; i < s->n * count; ++i) {
        double u = (double)(i % s->q) / s->q;
        double v = (double)(i / s->q % s->p) / s->p;
        if (places == ACROSS) {
            double along = u;
            u = v;
            v = 1.0 - along;
        }
        if (places == MIRRORED) u = 1.0 - u;
        /* the corners that the map is made of are where it has them */
        if (places >= SLANTED && places <= STRAIGHT && i % s->q && i / s->q % s->p) {
            u += random_real(-0.2, 0.2) / s->w;
            v += random_real(-0.2, 0.2) / s->h;
        }
        if (places == SLANTED) u += 0.25 - 0.5 * v;
        if (places == ZOOMED) u = 0.88 * u + 0.06, v = 0.88 * v + 0.06;
        if (places == BEYOND || places == BEYOND_ASTRAY) u = 2.5 * u - 0.75, v = 2.5 * v - 0.75;
        grid[2 * i] = tensor_round(c->grid->dtype, turned_place(s->w, u, turn * v));
        grid[2 * i + 1] = tensor_round(c->grid->dtype, turned_place(s->h, v, -turn * u));
    }
    if (places == TURNED_BUT_ONE) grid[(2 * s->n - 1) * count - 6] = grid[0];
    if (places ==
        TURNED_LOST) { /* the map of image 1 is right at all places that are looked at before */
        double *const between = grid + 2 * (count + count / 2 + 2);
        between[0] = NAN, between[3] = -INFINITY;
        grid[4 * count + 2 * (s->q - 1)] = INFINITY;
    }
    if (places == TURNED_ASTRAY) lead_all_astray(grid, s);
    if (places == BEYOND_ASTRAY) {
        static const double from[] = {-50, -50}, to[] = {-30, -30};
        for (int n = 1; n < s->n; ++n) {
            lead_astray(grid + 2 * n * count, s, from, to, n % 2 ? 80 : 0, n % 2 ? 70 : NAN);
        }
    }
    tensor_write(c->grid);
}

static void fill_grid(const struct spatial_call *c, const struct spatial_shape *s, bool odd)
{
    for (int64_t i = c->skip; i < c->grid->count; i += 2) {
        c->grid->value[i] = tensor_round(c->grid->dtype, random_place(s->w, odd));
        c->grid->value[i + 1] = tensor_round(c->grid->dtype, random_place(s->h, odd));
    }
    tensor_write(c->grid);
}

static double random_scalar(void)
{
    return (double)random_of(0, 2, 2, 1, -3) * 0.5;
}

static struct tensor *old_or_poison(cudnnDataType_t dtype, int rank, const int *dim, bool fresh)
{
    return fresh ? tensor_output(dtype, rank, dim, LAYOUT_NCHW)
                 : tensor_inout(dtype, rank, dim, LAYOUT_NCHW, -4.0, 4.0);
}

static struct part *image_part(const struct walk *walk, int skip, cudnnDataType_t dtype,
                               const int *dim, enum layout layout, const int *extra, bool output,
                               bool fresh)
{
    if (walk) return part_skipped(dtype, 4, dim, walk->layout, skip, output, -4.0, 4.0);
    return output ? part_output(dtype, 4, dim, layout, extra, fresh)
                  : part_input(dtype, 4, dim, layout, extra, -4.0, 4.0);
}

static void put_nan(struct tensor *t, int64_t first, int64_t step)
{
    for (int64_t i = first; i < t->count; i += step) t->value[i] = NAN;
    tensor_write(t);
}

void sampler_case(const struct walk *walk, cudnnDataType_t dtype, const struct spatial_shape *s,
                  bool plain, enum places places, bool mapped)
{
    struct spatial_call c = {.alpha = 1.0, .alpha_grid = 1.0, .skip = walk ? walk->grid_skip : 0};
    int x_dim[4] = {s->n, s->c, s->h, s->w}, y_dim[4] = {s->n, s->c, s->p, s->q};
    int grid_dim[2] = {1, s->n * s->p * s->q * 2 + c.skip};
    int x_skip = walk ? walk->x_skip : 0, y_skip = walk ? walk->y_skip : 0;
    int x_margin[4], y_margin[4];
    const int *x_extra = plain ? NULL : random_margin(4, x_margin);
    const int *y_extra = plain ? NULL : random_margin(4, y_margin);
    enum layout layout = plain || random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
    double *before, *before_grid;
    spatial_describe(&c, dtype, s);
    if (!plain) {
        c.alpha = random_scalar(), c.beta = walk && walk->blends ? -1.5 : random_scalar();
        c.alpha_grid = random_scalar(), c.beta_grid = random_scalar();
    }
    c.x = image_part(walk, x_skip, dtype, x_dim, layout, x_extra, false, false);
    if (places == TURNED_NAN) put_nan(c.x->whole, 7, 2063);
    c.grid = tensor_input(dtype, 2, grid_dim, LAYOUT_NCHW, -1.0, 1.0);
    fill_grid(&c, s, !plain);
    if (places >= TURNED) fill_turned(&c, s, places);
    if (mapped) check_mapped(&c, s, places);
    if (places == ONE_PLACE) {
        for (int64_t i = 0; i < c.grid->count; ++i) c.grid->value[i] = 0.25 + (double)(i % 2) / 8;
        tensor_write(c.grid);
    }
    c.y = image_part(walk, y_skip, dtype, y_dim, layout, y_extra, true, c.beta == 0.0);
    before = part_expected(c.y);
    if (run_call(sampler_forward, &c)) check_forward(&c, s, before);
    free(before);
    c.dy = image_part(walk, y_skip, dtype, y_dim, layout, y_extra, false, false);
    if (places == TURNED_NAN) put_nan(c.dy->whole, 5, 1031);
    c.dx = image_part(walk, x_skip, dtype, x_dim, layout, x_extra, true, c.beta == 0.0);
    c.dgrid = old_or_poison(dtype, 2, grid_dim, c.beta_grid == 0.0 && c.skip == 0);
    c.y->whole->output = false;
    before = part_expected(c.dx);
    before_grid = malloc((size_t)c.dgrid->count * sizeof *before_grid);
    memcpy(before_grid, c.dgrid->value, (size_t)c.dgrid->count * sizeof *before_grid);
    if (run_call(sampler_backward, &c)) check_backward(&c, s, before, before_grid);
    free(before);
    free(before_grid);
    cudnnDestroySpatialTransformerDescriptor(c.st);
    parts_free();
}
