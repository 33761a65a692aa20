/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: spatial transformers: descriptors, the grid of an affine transform and the bilinear sampler,
 * forward and backward: shapes, types, layouts, scaling, corners, places outside and NaN.
 */
#include "golden.h"

#include <math.h>

static const char *const directions[] = {"fwd", "bwd"};

static void descriptors(void)
{
    for (int type = -1; type <= 16; type++) {
        if (!gd_host_case("spatialdesc/type%d", type)) continue;
        cudnnSpatialTransformerDescriptor_t s = NULL;
        gd_status("create", lib.CreateSpatialTransformerDescriptor(&s));
        gd_status("set", lib.SetSpatialTransformerNdDescriptor(s, CUDNN_SAMPLER_BILINEAR,
                                                               (cudnnDataType_t)type, 4,
                                                               DIMS(2, 3, 4, 5)));
        gd_status("destroy", lib.DestroySpatialTransformerDescriptor(s));
        gd_end();
    }
    for (int rank = 1; rank <= 8; rank++) {
        if (!gd_host_case("spatialdesc/rank%d", rank)) continue;
        cudnnSpatialTransformerDescriptor_t s = NULL;
        gd_setup("create", lib.CreateSpatialTransformerDescriptor(&s));
        gd_status("set", lib.SetSpatialTransformerNdDescriptor(s, CUDNN_SAMPLER_BILINEAR, 0, rank,
                                                               DIMS(2, 3, 4, 5, 2, 2, 2, 2)));
        lib.DestroySpatialTransformerDescriptor(s);
        gd_end();
    }
    for (int row = 0; row < 6; row++) {
        if (!gd_host_case("spatialdesc/row%d", row)) continue;
        cudnnSpatialTransformerDescriptor_t s = NULL;
        const int *dims = row == 0 ? DIMS(2, 3, 4, 0) : row == 1 ? DIMS(-1, 3, 4, 5) : NULL;
        gd_setup("create", lib.CreateSpatialTransformerDescriptor(&s));
        gd_status("set", lib.SetSpatialTransformerNdDescriptor(
                             row == 3 ? NULL : s, (cudnnSamplerType_t)(row < 4 ? 0 : 9 - 2 * row),
                             CUDNN_DATA_FLOAT, 4, row < 3 ? dims : DIMS(2, 3, 4, 5)));
        lib.DestroySpatialTransformerDescriptor(s);
        gd_end();
    }
}

struct shape {
    const char *name;
    int n, c, h, w, p, q; /* the image, and the output's rows and columns */
};

static const struct shape shapes[] = {
    {"even", 2, 3, 4, 6, 5, 7},   {"odd", 1, 2, 7, 5, 5, 3},   {"same", 2, 1, 8, 8, 8, 8},
    {"down", 1, 3, 16, 12, 4, 3}, {"up", 2, 2, 3, 4, 11, 13},  {"row", 2, 3, 1, 9, 1, 6},
    {"column", 1, 4, 9, 1, 7, 1}, {"pixel", 3, 2, 1, 1, 1, 1}, {"one_out", 2, 5, 6, 7, 1, 1},
    {"two", 1, 2, 2, 2, 2, 2},    {"deep", 2, 40, 3, 4, 3, 4}, {"wide", 1, 3, 3, 40, 3, 33},
};

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
} kinds[] = {
    {"f32", CUDNN_DATA_FLOAT, GD_NCHW},      {"f64", CUDNN_DATA_DOUBLE, GD_NCHW},
    {"f16", CUDNN_DATA_HALF, GD_NCHW},       {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC},
    {"f32_gaps", CUDNN_DATA_FLOAT, GD_GAPS}, {"f16_nhwc", CUDNN_DATA_HALF, GD_NHWC},
    {"f32_chwn", CUDNN_DATA_FLOAT, GD_CHWN}, {"bf16", CUDNN_DATA_BFLOAT16, GD_NCHW},
};

static struct gd_tens *packed(const char *name, cudnnDataType_t type, int nd, const int *dim)
{
    int stride[4];
    for (int d = nd - 1, step = 1; d >= 0; d--) {
        stride[d] = step;
        step *= dim[d];
    }
    return gd_tens_raw(name, type, nd, dim, stride);
}

/* So many roundings of the compute type, on either side, at this magnitude. */
static struct gd_tol within(cudnnDataType_t type, double roundings, double magnitude)
{
    double u = gd_roundoff(type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT);
    return (struct gd_tol){2 * roundings * u * magnitude, 2 * gd_roundoff(type) + 4 * u};
}

static cudnnSpatialTransformerDescriptor_t describe(cudnnDataType_t type, const struct shape *s)
{
    cudnnSpatialTransformerDescriptor_t st = NULL;
    gd_setup("create", lib.CreateSpatialTransformerDescriptor(&st));
    gd_setup("set", lib.SetSpatialTransformerNdDescriptor(st, CUDNN_SAMPLER_BILINEAR, type, 4,
                                                          DIMS(s->n, s->c, s->p, s->q)));
    return st;
}

static void grids(void)
{
    static const enum gd_fill fills[] = {GD_REAL, GD_UNIT, GD_SPECIAL};
    for (int back = 0; back < 2; back++) {
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < GD_COUNT(shapes); i++) {
                for (int f = 0; f < 3; f++) {
                    const struct shape *s = &shapes[i];
                    cudnnDataType_t type = kinds[k].type;
                    if (f > 0 && i > 0) continue;
                    if (!gd_case("grid/%s/%s/%s/fill%d", directions[back], kinds[k].name, s->name,
                                 f))
                        continue;
                    cudnnSpatialTransformerDescriptor_t st = describe(type, s);
                    struct gd_tens *theta = packed("theta", type, 3, DIMS(s->n, 2, 3));
                    struct gd_tens *grid = packed("grid", type, 4, DIMS(s->n, s->p, s->q, 2));
                    gd_fill(back ? grid : theta, fills[f]);
                    if (back) {
                        if (gd_ran("run", lib.SpatialTfGridGeneratorBackward(gd_handle(), st,
                                                                             grid->p, theta->p)))
                            gd_out(theta, within(type, 8 + s->p * s->q, 4 * s->p * s->q));
                    } else if (gd_ran("run", lib.SpatialTfGridGeneratorForward(
                                                 gd_handle(), st, theta->p, grid->p))) {
                        gd_out(grid, within(type, 8, 12));
                    }
                    lib.DestroySpatialTransformerDescriptor(st);
                    gd_end();
                }
            }
        }
    }
}

struct how {
    int kind;
    bool backward;
    enum gd_fill x, grid, out;
    double alpha, beta, alpha_grid, beta_grid;
};

static void sample(const struct shape *s, const struct how *how)
{
    cudnnDataType_t type = kinds[how->kind].type;
    enum gd_layout layout = kinds[how->kind].layout;
    cudnnDataType_t st = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    cudnnSpatialTransformerDescriptor_t d = describe(type, s);
    struct gd_tens *x = gd_tens("x", type, layout, 4, DIMS(s->n, s->c, s->h, s->w));
    struct gd_tens *grid = packed("grid", type, 4, DIMS(s->n, s->p, s->q, 2));
    double blur = 8 + 3 * (s->h + s->w); /* of a place, in roundings */
    double scale = 1 + fabs(how->alpha) + fabs(how->beta);
    double scale_grid = 1 + fabs(how->alpha_grid) + fabs(how->beta_grid);
    gd_fill(x, how->x);
    gd_fill(grid, how->grid);
    if (!how->backward) {
        struct gd_tens *y = gd_tens("y", type, layout, 4, DIMS(s->n, s->c, s->p, s->q));
        if (how->beta != 0 || how->out) gd_fill(y, how->out ? how->out : GD_UNIT);
        if (gd_ran("run", lib.SpatialTfSamplerForward(gd_handle(), d, gd_scalar(st, how->alpha),
                                                      x->desc, x->p, grid->p,
                                                      gd_scalar(st, how->beta), y->desc, y->p)))
            gd_out(y, within(type, blur, 8 * scale));
    } else {
        struct gd_tens *dy = gd_tens("dy", type, layout, 4, DIMS(s->n, s->c, s->p, s->q));
        struct gd_tens *dx = gd_tens("dx", type, layout, 4, DIMS(s->n, s->c, s->h, s->w));
        struct gd_tens *dgrid = packed("dgrid", type, 4, DIMS(s->n, s->p, s->q, 2));
        double hits = s->p * s->q;
        gd_fill(dy, GD_UNIT);
        if (how->beta != 0 || how->out) gd_fill(dx, how->out ? how->out : GD_UNIT);
        if (how->beta_grid != 0 || how->out) gd_fill(dgrid, how->out ? how->out : GD_UNIT);
        if (gd_ran("run",
                   lib.SpatialTfSamplerBackward(
                       gd_handle(), d, gd_scalar(st, how->alpha), x->desc, x->p,
                       gd_scalar(st, how->beta), dx->desc, dx->p, gd_scalar(st, how->alpha_grid),
                       dy->desc, dy->p, grid->p, gd_scalar(st, how->beta_grid), dgrid->p))) {
            struct gd_tol tol = within(type, blur + hits, hits * scale);
            /* fp16: the recorded library adds up in dx itself what about so many pixels send there */
            if (gd_roundoff(type) > 1e-4)
                tol.abs += 2 * (4 + 4 * hits / (s->h * s->w)) * gd_roundoff(type) * scale;
            gd_out(dx, tol);
            gd_out(dgrid, within(type, blur + s->c, 4.0 * s->c * (s->h + s->w) * scale_grid));
        }
    }
    lib.DestroySpatialTransformerDescriptor(d);
    gd_end();
}

static void samplers(void)
{
    static const struct {
        const char *name;
        enum gd_fill x, grid, out;
        double scalars[4];
    } rows[] = {
        {"outside", GD_REAL, GD_REAL, 0, {1, 0, 1, 0}},
        {"corners", GD_REAL, GD_TIES, 0, {1, 0, 1, 0}},
        {"centre", GD_REAL, GD_ZERO, 0, {1, 0, 1, 0}},
        {"places_special", GD_REAL, GD_SPECIAL, 0, {1, 0, 1, 0}},
        {"places_nan", GD_REAL, GD_SOMENAN, 0, {1, 0, 1, 0}},
        {"image_nan", GD_SOMENAN, GD_UNIT, 0, {1, 0, 1, 0}},
        {"nan_output_beta0", GD_REAL, GD_UNIT, GD_NAN, {1, 0, 1, 0}},
        {"scale2", GD_REAL, GD_UNIT, 0, {2, 0, -1, 0}},
        {"add", GD_REAL, GD_UNIT, 0, {1, 1, 1, 1}},
        {"blend", GD_REAL, GD_UNIT, 0, {-0.5, 0.25, 0.5, -2}},
        {"nothing", GD_REAL, GD_UNIT, 0, {0, 1, 0, 1}},
        {"zero", GD_REAL, GD_UNIT, 0, {0, 0, 0, 0}},
    };
    for (int back = 0; back < 2; back++) {
        for (int k = 0; k < GD_COUNT(kinds); k++) {
            for (int i = 0; i < GD_COUNT(shapes); i++) {
                if (k > 2 && i > 5) continue;
                if (gd_case("sampler/%s/%s/%s", directions[back], kinds[k].name, shapes[i].name))
                    sample(&shapes[i], &(struct how){k, back, GD_REAL, GD_UNIT, 0, 1, 0, 1, 0});
            }
        }
        for (int k = 0; k < 3; k++) {
            for (int r = 0; r < GD_COUNT(rows); r++) {
                const double *v = rows[r].scalars;
                if (gd_case("sampler/%s/%s/%s", directions[back], kinds[k].name, rows[r].name))
                    sample(&shapes[r % 2], &(struct how){k, back, rows[r].x, rows[r].grid,
                                                         rows[r].out, v[0], v[1], v[2], v[3]});
            }
        }
    }
}

/* An output that is not the descriptor's. */
static void invalid(void)
{
    static const struct {
        const char *name;
        int y[4], type;
    } rows[] = {{"n", {1, 3, 4, 5}, 0},
                {"c", {2, 2, 4, 5}, 0},
                {"h", {2, 3, 3, 5}, 0},
                {"type", {2, 3, 4, 5}, CUDNN_DATA_DOUBLE}};
    for (int i = 0; i < GD_COUNT(rows); i++) {
        if (!gd_case("sampler/invalid/%s", rows[i].name)) continue;
        struct shape s = {"", 2, 3, 4, 5, 4, 5};
        cudnnSpatialTransformerDescriptor_t d = describe(CUDNN_DATA_FLOAT, &s);
        struct gd_tens *x = gd_tens("x", CUDNN_DATA_FLOAT, GD_NCHW, 4, DIMS(2, 3, 4, 5));
        struct gd_tens *grid = packed("grid", CUDNN_DATA_FLOAT, 4, DIMS(2, 4, 5, 2));
        struct gd_tens *y = gd_tens("y", (cudnnDataType_t)rows[i].type, GD_NCHW, 4, rows[i].y);
        gd_fill(x, GD_REAL);
        gd_fill(grid, GD_UNIT);
        gd_status("run", lib.SpatialTfSamplerForward(gd_handle(), d, gd_scalar(0, 1), x->desc, x->p,
                                                     grid->p, gd_scalar(0, 0), y->desc, y->p));
        lib.DestroySpatialTransformerDescriptor(d);
        gd_end();
    }
}

void cases_spatial(void)
{
    descriptors();
    grids();
    samplers();
    invalid();
}
