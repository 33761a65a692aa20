/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of the CPU engines of pooling (pooling_cpu.h): the form of the problem, and the size of
 * everything. Results do not depend on any size here. */
#include <string.h>

#include "cpu/module/sizes.h"
#include "cpu/module/stream.h"
#include "ops/pooling/pooling_args.h"
#include "ops/pooling/pooling_cpu.h"

enum {
    MANY_CHANNELS = 16,      /* pixels are worth a loop of their own */
    LONG_WINDOW = 16,        /* and so are parts of windows */
    LONGEST_TAPS = 2048,     /* elements that a window by taps covers of a line */
    DIRECT_LINE = 12,        /* windows that are worth a loop over all taps, */
    DIRECT_STEP = 16,        /* elements that these loops do at once, */
    DIRECT_BLOCK = 32 << 10, /* and elements of a block of whole planes */
    LINE = 4096,             /* elements that a line of a block should not exceed, */
    LONG_LINE = 512,         /* and that are worth the cost of a line */
    BLOCK = 64 << 10,        /* elements of the planes that are side by side */
    BOX = 32 << 10,          /* elements */
    OUT = 4096,              /* elements that are put out at once */
    RINGS = 24 << 10,        /* elements */
    SCRATCH = 512 << 10,     /* bytes of a worker, and of all: */
    ARENA = 8 << 20,         /* what a call without a workspace gets at most */
    TASK_ELEMENTS = 1 << 14, /* that pay for a second worker */
};

static int64_t product(const int64_t *extent, int32_t first, int32_t end)
{
    int64_t n = 1;
    for (int32_t d = first; d < end; ++d) n *= extent[d];
    return n;
}

/* Lines of a plane of the result. */
static int64_t lines_of(const struct wd_pool_plan *p)
{
    return product(p->kind == WD_POOL_FORWARD ? p->windows : p->image, 0, p->lead);
}

/* ---- The form ---- */

static void drop(struct wd_pool_plan *p, int32_t d, int32_t count)
{
    int64_t *field[] = {p->image, p->windows, p->size, p->stride, p->pad};
    for (int f = 0; f < 5; ++f) {
        for (int32_t k = d; k + 1 < count; ++k) field[f][k] = field[f][k + 1];
    }
}

static void set_dim(struct wd_pool_plan *p, int32_t d, int64_t image)
{
    p->image[d] = image;
    p->windows[d] = p->size[d] = p->stride[d] = 1;
    p->pad[d] = 0;
}

static bool is_identity(const struct wd_pool_plan *p, int32_t d)
{
    return p->size[d] == 1 && p->stride[d] == 1 && p->pad[d] == 0 && p->windows[d] == p->image[d];
}

/* One window, and it covers the image. */
static bool is_whole(const struct wd_pool_plan *p, int32_t d)
{
    return p->windows[d] == 1 && p->pad[d] >= 0 && p->size[d] - p->pad[d] >= p->image[d];
}

/* Dimensions that are covered whole are one with the one before; those that nothing is done along
 * belong to the planes or to the pixels. */
static void simplify(struct wd_pool_plan *p, int32_t count)
{
    int64_t longest = p->kind == WD_POOL_FORWARD ? INT64_MAX / 4 : LINE;
    for (int32_t d = count - 1; d >= 0; --d) {
        if (!is_whole(p, d)) continue;
        p->size[d] = p->stride[d] = p->image[d];
        p->pad[d] = 0;
    }
    for (int32_t d = count - 2; d >= 0; --d) {
        int64_t width = p->image[d + 1];
        if (!is_whole(p, d + 1) || p->image[d] * width > longest) continue;
        if (width == 1 && p->inner > 1) continue; /* nothing to gain */
        p->image[d] *= width;
        p->size[d] *= width;
        p->stride[d] *= width;
        p->pad[d] *= width;
        drop(p, d + 1, count--);
    }
    while (count > 0 && is_identity(p, count - 1)) p->inner *= p->image[--count];
    while (count > 0 && is_identity(p, 0)) {
        p->outer *= p->image[0];
        drop(p, 0, count--);
    }
    if (count == 0) { /* a copy */
        p->inner *= p->outer;
        p->outer = 1;
        set_dim(p, count++, 1);
    }
    if (count == 1) { /* a line must be led */
        int64_t *field[] = {p->image, p->windows, p->size, p->stride, p->pad};
        for (int f = 0; f < 5; ++f) field[f][1] = field[f][0];
        set_dim(p, 0, 1);
        count = 2;
    }
    p->lead = count - 1;
    p->image_plane = product(p->image, 0, count) * p->inner;
    p->windows_plane = product(p->windows, 0, count) * p->inner;
}

/* Tensors are [outer][spatial][inner] in memory, in both orders of the API. */
static bool is_line_up(const struct wd_tensor *t, int64_t *outer, int64_t *inner)
{
    int64_t points = 1;
    int64_t next;
    for (int d = 2; d < t->rank; ++d) points *= t->dim[d];
    *inner = t->dim[1] > 1 && t->stride[1] == 1 && points > 1 ? t->dim[1] : 1;
    *outer = t->dim[0] * t->dim[1] / *inner;
    next = *inner;
    for (int d = t->rank - 1; d >= 2; --d) {
        if (t->dim[d] > 1 && t->stride[d] != next) return false;
        next *= t->dim[d];
    }
    if (*inner == 1 && t->dim[1] > 1 && t->stride[1] != next) return false;
    if (*inner == 1) next *= t->dim[1];
    return t->dim[0] == 1 || t->stride[0] == next;
}

static bool find_form(const struct wd_problem *problem, struct wd_pool_plan *p)
{
    const struct wd_pool_attr *attr = &problem->node->attr.pool;
    bool forward = problem->node->op == WD_OP_POOL_FORWARD;
    const struct wd_tensor *image = wd_slot(problem->graph, problem->node, forward ? 0 : 3);
    const struct wd_tensor *out = wd_slot(problem->graph, problem->node, 1);
    int64_t outer[2];
    int64_t inner[2];
    memset(p, 0, sizeof *p);
    p->dtype = image->dtype;
    p->wide = wd_problem_acc(problem) == WD_ACC_F64;
    p->max = pool_is_max(attr);
    p->propagate = attr->propagate_nan;
    p->exclude = attr->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    p->kind = forward ? WD_POOL_FORWARD : p->max ? WD_POOL_ROUTE : WD_POOL_SPREAD;
    if (wd_tensor_count(image) == 0 || wd_tensor_count(out) == 0) return false;
    if (!is_line_up(image, &outer[0], &inner[0]) || !is_line_up(out, &outer[1], &inner[1])) {
        return false;
    }
    /* a single pixel has both orders */
    if (inner[0] != inner[1]) {
        int single = inner[0] == 1 ? 0 : 1;
        const struct wd_tensor *t = single == 0 ? image : out;
        for (int d = 2; d < t->rank; ++d) {
            if (t->dim[d] != 1) return false;
        }
        single = 1 - single;
        outer[0] = outer[single];
        inner[0] = inner[single];
    }
    p->outer = outer[0];
    p->inner = inner[0];
    p->divisor = 1;
    for (int d = 0; d < attr->spatial; ++d) {
        p->image[d] = image->dim[2 + d];
        p->windows[d] = out->dim[2 + d];
        p->size[d] = attr->window[d];
        p->stride[d] = attr->stride[d];
        p->pad[d] = attr->pad_before[d];
        p->divisor *= attr->window[d];
    }
    simplify(p, attr->spatial);
    return true;
}

/* ---- The cut ---- */

static int32_t native_of(const struct wd_pool_plan *p)
{
    return p->wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* How many windows touch a stretch of `columns` of the image, at most. */
static int64_t windows_over(const struct wd_pool_plan *p, int64_t columns)
{
    int64_t most = (columns + p->size[p->lead] - 2) / p->stride[p->lead] + 1;
    return wd_least(most, p->windows[p->lead]);
}

static bool is_square(const struct wd_pool_plan *p)
{
    const int64_t size = p->size[0];
    return p->lead == 1 && size == p->size[1] && (size == 2 || size == 3) &&
           p->dtype == native_of(p);
}

/* Lines of windows that are worth a loop over all taps. */
static bool is_direct(const struct wd_pool_plan *p)
{
    const int64_t size = p->size[0];
    if (!p->square || p->inner != 1 || p->stride[1] > 2) return false;
    if (p->pad[0] < 0 || p->pad[0] >= size || p->pad[1] < 0 || p->pad[1] >= size) return false;
    return p->windows[1] >= DIRECT_LINE && wd_most(p->image[1], p->windows[1]) <= LINE;
}

static enum wd_pool_way way_of(const struct wd_pool_plan *p)
{
    const int64_t size = p->size[p->lead];
    bool apart = size >= LONG_WINDOW && size <= 4 * p->stride[p->lead];
    if (p->windows[p->lead] == 1) apart = size >= 4;
    if (is_direct(p)) return WD_POOL_DIRECT;
    if (p->inner >= MANY_CHANNELS) return WD_POOL_PIXELS;
    if (p->inner > 1) {
        return apart || size * p->inner > LONGEST_TAPS ? WD_POOL_PIXELS : WD_POOL_TAPS;
    }
    return apart || size > LONGEST_TAPS ? WD_POOL_RUNS : WD_POOL_TAPS;
}

/* Columns and channels of a block, and the lines of the ring. */
static void cut_line(struct wd_pool_plan *p)
{
    const bool of_image = p->kind != WD_POOL_FORWARD;
    const int64_t width = of_image ? p->image[p->lead] : p->windows[p->lead];
    const int64_t size = p->size[p->lead];
    const int64_t stride = p->stride[p->lead];
    /* lines that are wanted at once, and the arrays of each */
    int64_t lines = wd_clamp(p->size[p->lead - 1], WD_POOL_ABREAST, WD_POOL_SLOTS);
    int64_t arrays = p->kind == WD_POOL_ROUTE ? 3 : 1;
    int64_t most = wd_clamp(RINGS / (lines * arrays), 256, LINE);
    p->channels = p->inner;
    if (p->way == WD_POOL_PIXELS) {
        if (p->square && p->kind == WD_POOL_ROUTE) most = LINE * 2; /* there is no ring */
        p->channels = wd_least(p->inner, most);
        p->columns = wd_clamp(most / p->channels, 1, width);
        return;
    }
    if (p->way == WD_POOL_RUNS) {
        p->columns = wd_least(width, of_image ? LINE : 1024);
        return;
    }
    if (p->way == WD_POOL_DIRECT) {
        p->columns = width;
        return;
    }
    /* by taps, SOURCE holds what the windows of the block cover */
    most = wd_most(LINE / p->inner - size, 64);
    p->columns = wd_clamp(of_image ? most : most / stride, 1, width);
}

static void cut_planes(struct wd_pool_plan *p, int threads)
{
    const bool of_image = p->kind != WD_POOL_FORWARD;
    const int64_t width = of_image ? p->image[p->lead] : p->windows[p->lead];
    const int64_t lines = lines_of(p);
    const int64_t most = wd_most(p->image_plane, p->windows_plane);
    int64_t blocks;
    int64_t wanted = 4 * (int64_t)threads;
    p->planes = 1;
    p->step = 1;
    p->lines = lines;
    if (p->way == WD_POOL_DIRECT) {
        p->planes = wd_clamp(wd_least(DIRECT_BLOCK / most, p->outer / wanted), 1, p->outer);
    } else if (p->way != WD_POOL_PIXELS) {
        if (p->columns == width) {
            /* lines of little planes share their cost */
            int64_t longest = wd_most(p->image[p->lead], p->windows[p->lead]) * p->inner;
            int64_t each = p->way == WD_POOL_RUNS && !of_image ? p->windows_plane : most;
            if (p->way == WD_POOL_RUNS && !of_image) longest = p->windows[p->lead];
            p->planes = wd_clamp(wd_most(LONG_LINE / longest, 1), 1,
                                 wd_most((p->kind == WD_POOL_ROUTE ? BOX : BLOCK) / each, 1));
            p->planes = wd_clamp(p->planes, 1, wd_most(p->outer / wanted, 1));
        }
        if (p->kind == WD_POOL_ROUTE) p->step = product(p->image, 1, p->lead);
    }
    if (p->planes > 1) return;
    blocks = p->outer * wd_ceil_div(width, p->columns) * wd_ceil_div(p->inner, p->channels);
    if (blocks < wanted || (p->kind == WD_POOL_ROUTE && p->way != WD_POOL_DIRECT)) {
        int64_t pieces = wd_clamp(wd_ceil_div(wanted, blocks), 1, lines / p->step);
        /* windows at either end of a piece are done twice */
        int64_t least = 4 * p->size[0] * (of_image ? 1 : 1 + lines / p->windows[0]);
        p->lines = wd_most(wd_ceil_div(lines / p->step, pieces) * p->step,
                           wd_least(least, lines / p->step) * p->step);
    }
    p->lines = wd_clamp(p->lines, p->step, lines);
}

/* The arrays of windows over lines in phases: what a line of either side takes, framed. */
static void size_direct(struct wd_pool_plan *p, int64_t *n)
{
    const int64_t columns = wd_ceil_div(p->image[1] + p->pad[1], p->stride[1]) + 1;
    const int64_t longest = wd_most(p->windows[1], columns);
    p->phase = (wd_ceil_div(longest, DIRECT_STEP) + 2) * DIRECT_STEP;
    p->line = p->stride[1] * p->phase;
    p->slots = p->windows_slots = WD_POOL_ABREAST;
    n[WD_POOL_WIDE] = 2 * p->phase;
    n[WD_POOL_DIVISOR] = wd_strips(p->phase);
    n[WD_POOL_LOWEST_PLACE] = p->phase;
    n[WD_POOL_RING] = (p->slots + 1) * p->line;            /* one is all padding */
    n[WD_POOL_SOURCE] = (p->windows_slots + 1) * p->phase; /* one is all zeros */
    n[WD_POOL_WINDOWS_RING] = p->windows_slots * p->phase;
}

/* Number of elements of each array. */
static void size_parts(struct wd_pool_plan *p)
{
    const bool of_image = p->kind != WD_POOL_FORWARD;
    const bool route = p->kind == WD_POOL_ROUTE;
    const bool forward = p->kind == WD_POOL_FORWARD;
    const bool native = p->dtype == native_of(p);
    const int64_t size = p->size[p->lead];
    const int64_t stride = p->stride[p->lead];
    const int64_t touching = of_image ? windows_over(p, p->columns) : p->columns;
    int64_t n[WD_POOL_PARTS] = {0};
    int64_t at = 0;
    p->slots = WD_POOL_ABREAST;
    if (p->way == WD_POOL_TAPS) {
        int64_t flat;
        if (p->kind == WD_POOL_SPREAD) {
            p->pitch = p->run = p->columns + size - 1;
        } else {
            /* the box holds columns that no window touches as well */
            p->pitch = route ? p->columns + 2 * (size - 1) : (touching - 1) * stride + size;
            p->run = wd_ceil_div(p->pitch, stride);
            p->pitch = p->run * stride;
        }
        p->line = wd_strips(p->planes * p->run * p->inner);
        flat = wd_strips(p->planes * p->pitch * p->inner);
        p->phase = p->line + wd_strips(p->columns + size + 2 * stride);
        n[WD_POOL_SOURCE] =
            wd_most(flat, p->line * (p->inner == 1 && of_image == route ? stride : 1)) +
            2 * (size + 2 * stride + p->columns) * p->inner + 4 * WD_STRIP;
        n[WD_POOL_WIDE] = wd_most(flat, wd_strips(touching * p->inner));
        if (route) n[WD_POOL_WIDE_PLACE] = flat;
        if (route) n[WD_POOL_LOWEST_PLACE] = p->line;
        n[WD_POOL_DIVISOR] = wd_most(p->line, wd_strips(touching * p->inner));
        p->box_line = flat;
    } else if (p->way == WD_POOL_RUNS) {
        p->run = p->kind == WD_POOL_SPREAD ? p->columns : touching;
        p->pitch = p->columns;
        p->line = wd_strips(p->planes * p->run);
        n[WD_POOL_SOURCE] = WD_BLOCK;
        n[WD_POOL_WIDE] = wd_strips(touching);
        n[WD_POOL_DIVISOR] = wd_most(p->line, wd_strips(touching));
        p->box_line = wd_strips(p->planes * p->pitch + 1);
    } else if (p->way == WD_POOL_DIRECT) {
        size_direct(p, n);
    } else {
        p->run = p->kind == WD_POOL_SPREAD ? p->columns : touching;
        p->line = wd_strips(p->run * p->channels);
        n[WD_POOL_SOURCE] = wd_strips(
            of_image ? touching * p->channels
                     : wd_least((touching - 1) * stride + size, p->image[p->lead]) * p->channels);
        if (route) n[WD_POOL_SOURCE] = 2 * p->line; /* two lines of dy at a time */
        if (route) {
            n[WD_POOL_WIDE] = wd_strips(
                wd_least((touching - 1) * stride + size, p->image[p->lead]) * p->channels);
        }
        n[WD_POOL_DIVISOR] =
            wd_most(p->line, wd_strips(wd_most(touching, p->columns) * p->channels));
        p->windows_slots = wd_clamp(wd_ceil_div(p->size[p->lead - 1], p->stride[p->lead - 1]) + 1,
                                    2, WD_POOL_SLOTS);
        /* read where it lies */
        if (native && forward) n[WD_POOL_SOURCE] = 0;
        if (native) n[WD_POOL_WIDE] = 0;
    }
    if (p->way != WD_POOL_DIRECT) {
        p->slots = wd_clamp(RINGS / p->line / (route ? 3 : 1), WD_POOL_ABREAST, WD_POOL_SLOTS);
        while (p->slots & (p->slots - 1)) p->slots &= p->slots - 1;
        n[WD_POOL_RING] = p->slots * p->line;
        n[WD_POOL_LINE] = wd_most(p->line, wd_strips(touching * p->channels));
        if (route) n[WD_POOL_RING_PLACE] = n[WD_POOL_RING];
        if (route) n[WD_POOL_LINE_PLACE] = p->line;
    }
    if (p->way == WD_POOL_DIRECT) p->out = wd_most(OUT, p->line);
    else
        p->out =
            wd_most(OUT, p->planes > 1 ? p->planes * (of_image ? p->image_plane : p->windows_plane)
                                       : wd_most(p->line, p->columns * p->channels));
    if (route && p->way == WD_POOL_PIXELS) {
        n[WD_POOL_WINDOWS_RING] = p->windows_slots * p->line;
    } else if (route && p->way != WD_POOL_DIRECT) {
        /* and one line for what belongs to other blocks */
        p->lines = wd_clamp(BOX / p->box_line / p->step * p->step, p->step, p->lines);
        n[WD_POOL_BOX] = (p->lines + 1) * p->box_line;
    }
    n[WD_POOL_OUT] = wd_strips(p->out) + wd_most(p->line, wd_strips(p->columns * p->channels));
    for (int k = 0; k < WD_POOL_PARTS; ++k) {
        p->part[k] = at;
        at += wd_ceil_div(n[k], WD_STRIP) * WD_STRIP;
    }
    p->part[WD_POOL_PARTS] = at;
}

static int64_t scratch_bytes(const struct wd_pool_plan *p)
{
    return p->part[WD_POOL_PARTS] * (p->wide ? 8 : 4);
}

bool wd_pool_plan(const struct wd_problem *problem, struct wd_pool_plan *p)
{
    const int threads = problem->device->multiprocessors;
    bool of_image;
    int64_t width;
    int64_t scratch;
    if (!find_form(problem, p)) return false;
    of_image = p->kind != WD_POOL_FORWARD;
    width = of_image ? p->image[p->lead] : p->windows[p->lead];
    p->square = is_square(p);
    p->way = way_of(p);
    cut_line(p);
    cut_planes(p, threads);
    size_parts(p);
    scratch = wd_clamp(ARENA / threads, SCRATCH / 4, SCRATCH);
    while (scratch_bytes(p) > scratch && p->planes > 1) {
        p->planes = (p->planes + 1) / 2;
        size_parts(p);
    }
    /* long windows of many channels: fewer of them at a time */
    while (scratch_bytes(p) > SCRATCH && (p->columns > 1 || p->channels > MANY_CHANNELS)) {
        if (p->columns > 1) p->columns = (p->columns + 1) / 2;
        else if (p->way == WD_POOL_PIXELS) p->channels = (p->channels + 1) / 2;
        else break;
        if (p->columns < width) p->planes = 1;
        size_parts(p);
    }
    if (scratch_bytes(p) > SCRATCH) return false;
    p->tasks = wd_ceil_div(p->outer, p->planes) * wd_ceil_div(lines_of(p), p->lines) *
               wd_ceil_div(width, p->columns) * wd_ceil_div(p->inner, p->channels);
    p->workers = wd_least(p->tasks, threads);
    p->workers = wd_clamp(p->outer * wd_most(p->image_plane, p->windows_plane) / TASK_ELEMENTS, 1,
                          p->workers);
    p->workers = wd_clamp(ARENA / scratch_bytes(p) - 1, 1, p->workers);
    return true;
}

struct wd_pool_block wd_pool_block(const struct wd_pool_plan *p, int64_t task)
{
    const bool of_image = p->kind != WD_POOL_FORWARD;
    const int64_t extent[4] = {p->outer, lines_of(p),
                               of_image ? p->image[p->lead] : p->windows[p->lead], p->inner};
    const int64_t cut[4] = {p->planes, p->lines, p->columns, p->channels};
    int64_t first[4];
    int64_t count[4];
    for (int k = 3; k >= 0; --k) {
        int64_t pieces = wd_ceil_div(extent[k], cut[k]);
        first[k] = task % pieces * cut[k];
        count[k] = wd_least(cut[k], extent[k] - first[k]);
        task /= pieces;
    }
    return (struct wd_pool_block){first[0], count[0], first[1], count[1],
                                  first[2], count[2], first[3], count[3]};
}
