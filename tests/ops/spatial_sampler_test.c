/* SPDX-License-Identifier: Apache-2.0
 *
 * The spatial transformer's sampler against its formulas, written out here in double with tents: a pixel
 * counts as max(0, 1 - distance) in each direction, summed over the whole image, and the backward pass is
 * that sum the other way round. Random shapes, layouts, types and places, exact corners, NaN and
 * infinities in the grid; grids of more pixels than are sorted at a time, and one in which all look
 * at the same place; gradients, of a generated grid too, also against finite differences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spatial_case.h"

/* Of the fake driver's device: with 132 some cases would be too large for it. */
#define PROCESSORS "2"

static cudnnStatus_t forward(void *context)
{
    const struct spatial_call *c = context;
    cudnnDataType_t type = c->x->whole->dtype;
    double s[2];
    return cudnnSpatialTfSamplerForward(
        harness_handle, c->st, api_scalar(type, c->alpha, s), c->x->desc, part_data(c->x),
        spatial_behind(c, c->grid), api_scalar(type, c->beta, s + 1), c->y->desc, part_data(c->y));
}

static cudnnStatus_t backward(void *context)
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

/* Visits the elements of the image that the grid's pixel sees, with their weights and slopes. */
struct sight {
    int h, w;
    double weight, by_x, by_y;
};

static int look(const struct spatial_call *c, const struct spatial_shape *s, int64_t pixel,
                struct sight *sights)
{
    double sx = place(c->grid->value[c->skip + 2 * pixel], s->w);
    double sy = place(c->grid->value[c->skip + 2 * pixel + 1], s->h);
    int count = 0;
    if (!(sx > -1 && sx < s->w && sy > -1 && sy < s->h)) return 0;
    for (int h = 0; h < s->h; ++h) {
        if (fabs(sy - h) > 1.0) continue;
        for (int w = 0; w < s->w; ++w) {
            struct sight see = {h, w, tent(sy, h) * tent(sx, w), slope(sx, w) * tent(sy, h),
                                slope(sy, h) * tent(sx, w)};
            if (fabs(sx - w) > 1.0 || (see.weight == 0 && see.by_x == 0 && see.by_y == 0)) continue;
            sights[count++] = see;
        }
    }
    return count;
}

/* 0, or NaN where a coordinate of the pixel's place (0: column, 1: row) is not finite. */
static double lost(const struct spatial_call *c, const struct spatial_shape *s, int64_t pixel,
                   int coordinate)
{
    double t = place(c->grid->value[c->skip + 2 * pixel + coordinate], coordinate ? s->h : s->w);
    return isfinite(t) ? 0.0 : NAN;
}

/* How far a place may be off, in roundings of the compute type. */
static double blur(const struct spatial_call *c, const struct spatial_shape *s, int64_t pixel)
{
    double gx = fabs(c->grid->value[c->skip + 2 * pixel]);
    double gy = fabs(c->grid->value[c->skip + 2 * pixel + 1]);
    return isfinite(gx + gy) ? (gx + 1) * s->w + (gy + 1) * s->h : 0.0;
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
    for (int64_t i = 0; i < c->y->count; ++i) {
        struct sight sights[9];
        int at[8];
        int64_t index, pixel;
        int count;
        double sum = 0, size = 0;
        part_coordinates(c->y, i, at);
        index = part_at(c->y, at);
        pixel = ((int64_t)at[0] * s->p + at[2]) * s->q + at[3];
        count = look(c, s, pixel, sights);
        for (int k = 0; k < count; ++k) {
            int from[8] = {at[0], at[1], sights[k].h, sights[k].w};
            double x = c->x->whole->value[part_at(c->x, from)];
            sum += x * sights[k].weight;
            size += fabs(x) * (1 + blur(c, s, pixel));
        }
        sum += lost(c, s, pixel, 0) + lost(c, s, pixel, 1);
        before[index] = blended(c->alpha, sum, c->beta, before[index]);
        magnitude[index] = fabs(c->alpha) * size + fabs(before[index]);
        if (isnan(magnitude[index])) magnitude[index] = 0;
    }
    check_values("y", c->y->whole, before, NULL, magnitude,
                 spatial_compute_type(c->y->whole->dtype));
    free(magnitude);
}

static void check_backward(const struct spatial_call *c, const struct spatial_shape *s, double *dx,
                           double *dgrid)
{
    size_t images = (size_t)c->dx->whole->count;
    size_t places = (size_t)c->dgrid->count;
    double *sum = calloc(images, sizeof *sum), *size = calloc(images, sizeof *size);
    double *grid_sums = calloc(places, sizeof *sum), *grid_sizes = calloc(places, sizeof *size);
    double *grid_sum = grid_sums + c->skip, *grid_size = grid_sizes + c->skip;
    for (int64_t i = 0; i < c->dy->count; ++i) {
        struct sight sights[9];
        int at[8];
        int64_t pixel;
        int count;
        double dy;
        part_coordinates(c->dy, i, at);
        dy = c->dy->whole->value[part_at(c->dy, at)];
        pixel = ((int64_t)at[0] * s->p + at[2]) * s->q + at[3];
        count = look(c, s, pixel, sights);
        grid_sum[2 * pixel] += lost(c, s, pixel, 1);
        grid_sum[2 * pixel + 1] += lost(c, s, pixel, 0);
        for (int k = 0; k < count; ++k) {
            int to[8] = {at[0], at[1], sights[k].h, sights[k].w};
            int64_t index = part_at(c->x, to);
            double x = c->x->whole->value[index];
            double factor_x = dy * (s->w - 1) / 2.0, factor_y = dy * (s->h - 1) / 2.0;
            index = part_at(c->dx, to);
            sum[index] += dy * sights[k].weight;
            size[index] += fabs(dy) * (1 + blur(c, s, pixel));
            grid_sum[2 * pixel] += factor_x * x * sights[k].by_x;
            grid_sum[2 * pixel + 1] += factor_y * x * sights[k].by_y;
            grid_size[2 * pixel] += fabs(factor_x * x) * (1 + blur(c, s, pixel));
            grid_size[2 * pixel + 1] += fabs(factor_y * x) * (1 + blur(c, s, pixel));
        }
    }
    for (int64_t i = 0; i < c->dx->count; ++i) {
        int64_t index = part_index(c->dx, i);
        dx[index] = c->alpha * sum[index] + (c->beta != 0 ? c->beta * dx[index] : 0.0);
        size[index] = fabs(c->alpha) * size[index] + fabs(dx[index]);
    }
    for (size_t i = (size_t)c->skip; i < places; ++i) {
        dgrid[i] = blended(c->alpha_grid, grid_sums[i], c->beta_grid, dgrid[i]);
        grid_sizes[i] = fabs(c->alpha_grid) * grid_sizes[i] + fabs(dgrid[i]);
        if (isnan(grid_sizes[i])) grid_sizes[i] = 0;
    }
    check_values("dx", c->dx->whole, dx, NULL, size, spatial_compute_type(c->dx->whole->dtype));
    check_values("dgrid", c->dgrid, dgrid, NULL, grid_sizes,
                 spatial_compute_type(c->dx->whole->dtype));
    free(sum);
    free(size);
    free(grid_sums);
    free(grid_sizes);
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
static double turned_place(int extent, double along, double across)
{
    double s = (0.9 * along - 0.1 * across + 0.07) * extent;
    s = floor(s) + 0.1 + 0.8 * (s - floor(s));
    return extent > 1 ? 2.0 * s / (extent - 1) - 1.0 : s - 0.5;
}

static void fill_turned(const struct spatial_call *c, const struct spatial_shape *s, int first)
{
    for (int64_t i = (int64_t)first * s->p * s->q; 2 * i + c->skip < c->grid->count; ++i) {
        double u = (double)(i % s->q) / s->q;
        double v = (double)(i / s->q % s->p) / s->p;
        c->grid->value[c->skip + 2 * i] = tensor_round(c->grid->dtype, turned_place(s->w, u, v));
        c->grid->value[c->skip + 2 * i + 1] =
            tensor_round(c->grid->dtype, turned_place(s->h, v, -u));
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

/* How the tensors of a case lie, where it is not left to chance. */
struct walk {
    enum layout layout;
    int x_skip, y_skip, grid_skip; /* elements behind aligned memory */
    bool blends;                   /* large ones: with factors, and places that are not finite */
};

static struct part *image_part(const struct walk *walk, int skip, cudnnDataType_t dtype,
                               const int *dim, enum layout layout, const int *extra, bool output,
                               bool fresh)
{
    if (walk) return part_skipped(dtype, 4, dim, walk->layout, skip, output, -4.0, 4.0);
    return output ? part_output(dtype, 4, dim, layout, extra, fresh)
                  : part_input(dtype, 4, dim, layout, extra, -4.0, 4.0);
}

/* Where the places of a case look: anywhere, all at one place, as a turned grid, as one in all images but
 * the first, or as one while some elements of dy are NaN. */
enum places { ANYWHERE, ONE_PLACE, TURNED, TURNED_REST, TURNED_NAN };

static void sampler_case(const struct walk *walk, cudnnDataType_t dtype,
                         const struct spatial_shape *s, bool plain, enum places places)
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
    c.grid = tensor_input(dtype, 2, grid_dim, LAYOUT_NCHW, -1.0, 1.0);
    fill_grid(&c, s, !plain);
    if (places >= TURNED) fill_turned(&c, s, places == TURNED_REST);
    if (places == ONE_PLACE) {
        for (int64_t i = 0; i < c.grid->count; ++i) c.grid->value[i] = 0.25 + (double)(i % 2) / 8;
        tensor_write(c.grid);
    }
    c.y = image_part(walk, y_skip, dtype, y_dim, layout, y_extra, true, c.beta == 0.0);
    before = part_expected(c.y);
    if (run_call(forward, &c)) check_forward(&c, s, before);
    free(before);
    c.dy = image_part(walk, y_skip, dtype, y_dim, layout, y_extra, false, false);
    for (int64_t i = 5; places == TURNED_NAN && i < c.dy->whole->count; i += 1031) {
        c.dy->whole->value[i] = NAN;
    }
    tensor_write(c.dy->whole);
    c.dx = image_part(walk, x_skip, dtype, x_dim, layout, x_extra, true, c.beta == 0.0);
    c.dgrid = old_or_poison(dtype, 2, grid_dim, c.beta_grid == 0.0 && c.skip == 0);
    c.y->whole->output = false;
    before = part_expected(c.dx);
    before_grid = malloc((size_t)c.dgrid->count * sizeof *before_grid);
    memcpy(before_grid, c.dgrid->value, (size_t)c.dgrid->count * sizeof *before_grid);
    if (run_call(backward, &c)) check_backward(&c, s, before, before_grid);
    free(before);
    free(before_grid);
    cudnnDestroySpatialTransformerDescriptor(c.st);
    parts_free();
}

static void random_sampler(int type, int turn)
{
    struct spatial_shape s;
    if (!case_begin("sampler/%s/%d", spatial_types[type].name, turn)) return;
    /* bf16 places are too coarse for many cells */
    int most = spatial_types[type].type == CUDNN_DATA_BFLOAT16 ? 5 : 11;
    s = (struct spatial_shape){(int)random_int(1, 3),    random_of(1, 2, 3, 5, 7, 40),
                               (int)random_int(1, most), (int)random_int(1, most),
                               (int)random_int(1, 11),   (int)random_int(1, 11)};
    sampler_case(NULL, spatial_types[type].type, &s, turn == 0, turn % 3 == 2 ? TURNED : ANYWHERE);
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
    static const struct {
        const char *name;
        cudnnDataType_t type;
        struct spatial_shape shape;
        int images; /* for 132 processors; 0: as many */
        enum places places;
        const struct walk *walk;
    } rows[] = {
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
        /* grids that are affine maps, or some of them: also where all processors have blocks */
        {"mapped", CUDNN_DATA_FLOAT, {2, 2, 90, 100, 80, 88}, 88, TURNED, &nchw},
        {"mapped_three", CUDNN_DATA_FLOAT, {2, 3, 96, 128, 96, 128}, 88, TURNED, &nchw},
        {"mapped_odd", CUDNN_DATA_FLOAT, {2, 3, 75, 99, 66, 87}, 106, TURNED, &odd},
        {"mapped_reduced", CUDNN_DATA_FLOAT, {2, 1, 150, 160, 66, 88}, 43, TURNED, &nchw},
        {"mapped_blended", CUDNN_DATA_FLOAT, {2, 3, 90, 100, 80, 88}, 88, TURNED, &blended},
        {"mapped_some", CUDNN_DATA_FLOAT, {3, 2, 90, 100, 80, 88}, 88, TURNED_REST, &blended},
        {"mapped_nan", CUDNN_DATA_FLOAT, {2, 3, 90, 100, 80, 88}, 88, TURNED_NAN, &nchw},
        /* windows and lists: where all processors have blocks */
        {"many_rows", CUDNN_DATA_FLOAT, {2, 37, 40, 40, 40, 39}, 132, TURNED, &nchw},
        {"many_enlarged", CUDNN_DATA_FLOAT, {2, 19, 32, 36, 64, 65}, 99, TURNED, &nchw},
        {"many_enlarged_apart", CUDNN_DATA_FLOAT, {2, 17, 32, 36, 64, 65}, 99, ANYWHERE, &nchw},
        {"many_enlarged_odd", CUDNN_DATA_FLOAT, {2, 17, 32, 36, 64, 65}, 99, TURNED, &odd},
        {"many_planes16", CUDNN_DATA_HALF, {2, 33, 56, 48, 56, 48}, 101, TURNED, &nchw},
        {"many_planes_bf16", CUDNN_DATA_BFLOAT16, {2, 35, 48, 48, 48, 48}, 118, TURNED, &nchw},
        {"many_planes16_odd", CUDNN_DATA_HALF, {2, 33, 56, 48, 56, 48}, 101, TURNED, &odd},
        {"many_planes_apart16", CUDNN_DATA_HALF, {2, 33, 56, 48, 32, 40}, 101, ANYWHERE, &nchw},
        {"many_one_place16", CUDNN_DATA_HALF, {2, 33, 56, 48, 49, 48}, 101, ONE_PLACE, &nchw},
        {"many_reduced", CUDNN_DATA_FLOAT, {1, 33, 90, 96, 65, 64}, 32, TURNED, &nchw},
        {"many_reduced_odd", CUDNN_DATA_FLOAT, {1, 35, 90, 96, 65, 64}, 32, TURNED, &odd},
        {"many_pixels", CUDNN_DATA_FLOAT, {1, 36, 68, 67, 65, 68}, 60, TURNED, &nhwc},
        {"many_pixels16", CUDNN_DATA_HALF, {2, 32, 50, 51, 40, 44}, 107, TURNED, &nhwc},
        {"many_pixels_bf16", CUDNN_DATA_BFLOAT16, {2, 32, 50, 51, 40, 44}, 107, ANYWHERE, &nhwc},
        {"many_pixels_odd", CUDNN_DATA_FLOAT, {1, 32, 68, 67, 65, 64}, 60, TURNED, &odd_nhwc},
        {"many_lean", CUDNN_DATA_FLOAT, {2, 19, 40, 41, 64, 67}, 175, TURNED, &odd},
        {"many_lean_strips", CUDNN_DATA_FLOAT, {2, 17, 50, 49, 47, 199}, 90, TURNED, &nchw},
        {"blended", CUDNN_DATA_FLOAT, {1, 35, 90, 96, 65, 64}, 32, TURNED, &blended},
        {"blended16", CUDNN_DATA_HALF, {2, 37, 56, 48, 56, 48}, 101, TURNED, &blended},
        {"blended_apart", CUDNN_DATA_FLOAT, {1, 33, 90, 96, 65, 64}, 32, ANYWHERE, &blended},
        {"blended_pixels", CUDNN_DATA_HALF, {2, 32, 50, 51, 40, 44}, 107, ANYWHERE, &blended_nhwc},
    };
    const bool fake = !harness_on_gpu || getenv("WARPDNN_CUDA_DRIVER");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        struct spatial_shape shape = rows[i].shape;
        if (!case_begin("sampler/large/%s", rows[i].name)) continue;
        if (rows[i].images > 0 && !fake) shape.n = rows[i].images;
        sampler_case(rows[i].walk, rows[i].type, &shape, !rows[i].walk->blends, rows[i].places);
        case_end();
    }
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
                             i == 5 && w < 2 ? ONE_PLACE : ANYWHERE);
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
    run_call(forward, c);
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
    run_call(backward, &c);
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
    setenv("FAKECUDA_PROCESSORS", PROCESSORS, 0);
    harness_start(argc, argv);
    for (int type = 0; type < 4; ++type) {
        for (int turn = 0; turn < 40; ++turn) random_sampler(type, turn);
    }
    difference_case();
    large_samplers();
    walk_cases();
    spatial_check_launched(argc, false);
    return harness_finish();
}
