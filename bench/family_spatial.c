/* SPDX-License-Identifier: Apache-2.0
 *
 * The spatial transformer: grid generator and sampler, forward and backward. The problem's dims are those
 * of the output; the parameters are the input's height and width, 0 for the output's.
 *
 * The grid is that of a slight turn, so that neighbours look at neighbours, as in a network. Bytes: each
 * tensor once; a pixel that several points look at counts once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "problem.h"
#include "values.h"

enum kind { GRID, GRID_BACK, SAMPLE, SAMPLE_BACK, KINDS };
enum { HEIGHT = 0, WIDTH = 1, THETA = 6 };
/* How near a whole pixel a place may be, how far it is moved else, and how often at most. */
static const double KINK = 1.0 / 256.0;
static const double NUDGE = 1.0 / 16.0;
enum { NUDGES_MAX = 8 };
static const char *const names[] = {"grid", "grid_backward", "sampler", "sampler_backward"};
static const double turn[THETA] = {0.9, -0.1, 0.05, 0.1, 0.9, -0.05};

static const struct problem problems[] = {
#include "spatial.def"
};

static int kind_of(const struct task *t)
{
    for (int k = 0; k < KINDS; ++k)
        if (task_is(t, names[k])) return k;
    return -1;
}

static int input_size(const struct problem *p, int d)
{
    int said = p->p[d == DIM_H ? HEIGHT : WIDTH];
    return said ? said : p->dims[d];
}

/* N x 2 x 3, and N x H x W x 2: packed, whatever the layout of images. */
static struct operand *packed(struct task *t, const char *name, enum role role, int a, int b, int c)
{
    const int dims[DIMS_MAX] = {t->problem->dims[DIM_N], a, 1, b, c};
    struct operand *o = task_tensor(t, name, role, t->problem->type, dims);
    task_layout(t, o, NCHW);
    return o;
}

static bool plan(struct task *t)
{
    const struct problem *p = t->problem;
    int kind = kind_of(t);
    int height = p->dims[DIM_H];
    int width = p->dims[DIM_W];
    int in[DIMS_MAX];
    struct operand *grid;
    if (kind < 0) return false;
    memcpy(in, p->dims, sizeof in);
    in[DIM_H] = input_size(p, DIM_H);
    in[DIM_W] = input_size(p, DIM_W);
    if (p->p[HEIGHT]) task_text(t, "from %dx%d", in[DIM_H], in[DIM_W]);
    else task_text(t, "%s", "");
    if (kind == GRID) {
        packed(t, "theta", INPUT, 2, 3, 1);
        packed(t, "grid", OUTPUT, height, width, 2);
        t->terms = 3.0;
        return true;
    }
    if (kind == GRID_BACK) {
        packed(t, "dgrid", INPUT, height, width, 2);
        packed(t, "dtheta", OUTPUT, 2, 3, 1);
        t->terms = (double)height * width;
        return true;
    }
    task_tensor(t, "x", INPUT, p->type, in);
    grid = packed(t, "grid", INPUT, height, width, 2);
    task_range(grid, -0.9, 0.9);
    /* places are computed in the precision of the grid, and weights are as far off as places are */
    t->terms = 16.0;
    t->slack = (double)(in[DIM_H] > in[DIM_W] ? in[DIM_H] : in[DIM_W]);
    if (kind == SAMPLE) {
        task_tensor(t, "y", OUTPUT, p->type, p->dims);
        return true;
    }
    task_tensor(t, "dy", INPUT, p->type, p->dims);
    task_tensor(t, "dx", OUTPUT, p->type, in);
    packed(t, "dgrid", OUTPUT, height, width, 2);
    t->terms = fmax(16.0, p->dims[DIM_C]);
    return true;
}

static cudnnStatus_t prepare(struct session *s, const struct task *t)
{
    const struct problem *p = t->problem;
    const int dims[4] = {p->dims[DIM_N], p->dims[DIM_C], p->dims[DIM_H], p->dims[DIM_W]};
    cudnnSpatialTransformerDescriptor_t transformer;
    cudnnStatus_t status = s->library->CreateSpatialTransformerDescriptor(&transformer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    s->made[0] = transformer;
    return s->library->SetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR,
                                                         p->type, 4, dims);
}

static void finish(struct session *s)
{
    if (s->made[0]) s->library->DestroySpatialTransformerDescriptor(s->made[0]);
}

static cudnnStatus_t run(struct session *s, const struct task *t, void *const *at)
{
    const struct library *l = s->library;
    const void *one = scalar_one(t);
    const void *zero = scalar_zero(t);
    switch (kind_of(t)) {
    case GRID: return l->SpatialTfGridGeneratorForward(s->handle, s->made[0], at[0], at[1]);
    case GRID_BACK: return l->SpatialTfGridGeneratorBackward(s->handle, s->made[0], at[0], at[1]);
    case SAMPLE:
        return l->SpatialTfSamplerForward(s->handle, s->made[0], one, s->tensor[0], at[0], at[1],
                                          zero, s->tensor[2], at[2]);
    default:
        return l->SpatialTfSamplerBackward(s->handle, s->made[0], one, s->tensor[0], at[0], zero,
                                           s->tensor[3], at[3], one, s->tensor[2], at[2], at[1],
                                           zero, at[4]);
    }
}

/* From -1 to 1 over `size` places; -1 where there is only one. */
static double spread(int i, int size)
{
    return size > 1 ? -1.0 + 2.0 * i / (size - 1) : -1.0;
}

/* A coordinate as the type has it, whose place in an image of this extent is no whole pixel, and not
 * within rounding of one: there the image has a kink, and which side counts is for each library's
 * rounding to say. */
static double off_pixels(double g, int extent, cudnnDataType_t type)
{
    unsigned char stored[sizeof(double)];
    for (int i = 0; i < NUDGES_MAX; ++i) {
        double s;
        value_store(stored, type, 0, g);
        g = value_at(stored, type, 0);
        s = (g + 1.0) * (extent - 1) / 2.0;
        if (extent < 2 || fabs(s - rint(s)) > KINK) break;
        g += 2.0 * NUDGE / (extent - 1);
    }
    return g;
}

/* The grid of the turn, the same for all images and both libraries, written here: generators round. */
static cudnnStatus_t setup(struct session *s, const struct task *t, void *const *at)
{
    const struct problem *p = t->problem;
    const int height = p->dims[DIM_H];
    const int width = p->dims[DIM_W];
    const size_t count = (size_t)height * (size_t)width * 2;
    const size_t bytes = count * type_bytes(p->type);
    int kind = kind_of(t);
    void *host;
    (void)s;
    if (kind == GRID || kind == GRID_BACK) return CUDNN_STATUS_SUCCESS;
    host = malloc(bytes);
    if (!host) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    for (int h = 0; h < height; ++h) {
        for (int w = 0; w < width; ++w) {
            const double v[3] = {spread(w, width), spread(h, height), 1.0};
            int64_t i = ((int64_t)h * width + w) * 2;
            for (int k = 0; k < 2; ++k) {
                const double *row = turn + 3 * k;
                double g = row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
                value_store(host, p->type, i + k,
                            off_pixels(g, input_size(p, k ? DIM_H : DIM_W), p->type));
            }
        }
    }
    for (int n = 0; n < p->dims[DIM_N]; ++n) {
        device_upload((char *)at[1] + (size_t)n * bytes, host, bytes);
    }
    device_sync();
    free(host);
    return CUDNN_STATUS_SUCCESS;
}

static void grid_reference(const struct task *t, double *const *values, bool back)
{
    const struct problem *p = t->problem;
    double *grid = back ? values[0] : values[1];
    double *theta = back ? values[1] : values[0];
    if (back) memset(theta, 0, (size_t)t->operand[1].count * sizeof(double));
    for (int n = 0; n < p->dims[DIM_N]; ++n) {
        for (int h = 0; h < p->dims[DIM_H]; ++h) {
            for (int w = 0; w < p->dims[DIM_W]; ++w) {
                const double at[3] = {spread(w, p->dims[DIM_W]), spread(h, p->dims[DIM_H]), 1.0};
                int64_t point = (((int64_t)n * p->dims[DIM_H] + h) * p->dims[DIM_W] + w) * 2;
                for (int k = 0; k < THETA; ++k) {
                    double *to = &grid[point + k / 3];
                    if (back) theta[n * THETA + k] += *to * at[k % 3];
                    else *to = (k % 3 ? *to : 0.0) + theta[n * THETA + k] * at[k % 3];
                }
            }
        }
    }
}

static void sample(const struct problem *p, const double *x, const double *point, double *y,
                   int64_t image)
{
    int height = input_size(p, DIM_H);
    int width = input_size(p, DIM_W);
    double column = (point[0] + 1.0) * (width - 1) / 2.0;
    double row = (point[1] + 1.0) * (height - 1) / 2.0;
    int left = (int)floor(column);
    int top = (int)floor(row);
    for (int c = 0; c < p->dims[DIM_C]; ++c) {
        const double *from = x + (int64_t)c * height * width;
        double sum = 0.0;
        for (int i = top; i <= top + 1; ++i) {
            for (int j = left; j <= left + 1; ++j) {
                if (i < 0 || j < 0 || i >= height || j >= width) continue;
                sum +=
                    (1.0 - fabs(row - i)) * (1.0 - fabs(column - j)) * from[(int64_t)i * width + j];
            }
        }
        y[c * image] = sum;
    }
}

static bool reference(const struct task *t, double *const *values)
{
    const struct problem *p = t->problem;
    int kind = kind_of(t);
    int64_t image = (int64_t)p->dims[DIM_H] * p->dims[DIM_W];
    int64_t in = (int64_t)input_size(p, DIM_H) * input_size(p, DIM_W);
    if (kind == SAMPLE_BACK) return false; /* against the peer alone */
    if (kind != SAMPLE) {
        grid_reference(t, values, kind == GRID_BACK);
        return true;
    }
    for (int64_t i = 0; i < p->dims[DIM_N] * image; ++i) {
        int64_t n = i / image;
        sample(p, values[0] + n * p->dims[DIM_C] * in, values[1] + 2 * i,
               values[2] + n * p->dims[DIM_C] * image + i % image, image);
    }
    return true;
}

static void make_random(struct problem *p, uint64_t *seed)
{
    random_problem(p, seed, 1e7);
    p->call = names[random_next(seed) % KINDS];
    p->layout = NCHW;
    p->type = CUDNN_DATA_FLOAT;
    if (random_next(seed) % 2) {
        p->p[HEIGHT] = random_size(seed, 256);
        p->p[WIDTH] = random_size(seed, 256);
    }
}

const struct family family_spatial = {
    .name = "spatial",
    .problems = problems,
    .count = sizeof problems / sizeof problems[0],
    .parameter = {{"the height", 0, PARAMETER_MOST}, {"the width", 0, PARAMETER_MOST}},
    .plan = plan,
    .random = make_random,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .setup = setup,
    .reference = reference,
};
