/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes for the pooling kernels that work in shared memory: grown from one result by doubling along
 * whichever direction saves most reading, as long as they are small enough for several blocks of a
 * processor and leave work for all processors. */
#include "ops/pooling/pooling_tile_plan.h"

#include <string.h>

#include "base/sizes.h"

enum {
    BOX_BYTES = 55 << 10, /* of shared memory that growth stops at: four blocks a processor */
    BLOCKS_EACH = 4,      /* blocks of a processor that growth leaves */
    RESULTS_LEAST = 512,  /* unless a block had fewer results than this */
    SLICE = 32,           /* channels of a slice where they are copied one by one */
};

/* Directions in which a box grows: planes or images, runs of a pixel, the three axes. */
enum { OUTER, INNER, AXES, DIRECTIONS = AXES + 3 };

/* A box: how much of each direction, in results; and what comes of it. */
struct cut {
    int64_t extent[DIRECTIONS];
    int64_t bytes;
    int64_t staged; /* bytes that are read from memory */
};

struct job {
    const struct wd_pool_shape *shape;
    enum wd_pool_work work;
    int64_t run;
    int64_t inner; /* runs of a pixel */
    int64_t limit[DIRECTIONS];
};

static int64_t round_up(int64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Elements that `windows` windows in a row reach over. */
static int64_t reach(const struct wd_pool_shape *s, int axis, int64_t windows)
{
    return wd_least((windows - 1) * s->stride[axis] + s->window[axis], s->image[axis]);
}

/* Windows over `elements` in a row. */
static int64_t windows_over(const struct wd_pool_shape *s, int axis, int64_t elements)
{
    return wd_least((elements + s->window[axis] - 2) / s->stride[axis] + 1, s->windows[axis]);
}

/* Whether the box has all results of an axis, and what they are made of is all that there is, but
 * for a part of a stride. */
static bool is_whole(const struct job *j, int axis, int64_t extent)
{
    const struct wd_pool_shape *s = j->shape;
    if (extent < j->limit[AXES + axis]) return false;
    if (j->work != WD_POOL_FORWARD) return j->work == WD_POOL_SPREAD;
    return s->pad[axis] >= 0 && (s->windows[axis] - 1) * s->stride[axis] + s->window[axis] -
                                        s->pad[axis] + s->stride[axis] >
                                    s->image[axis];
}

static void set_axis(const struct job *j, struct pool_axis *x, int axis, int64_t extent)
{
    const struct wd_pool_shape *s = j->shape;
    x->image = (int32_t)s->image[axis];
    x->windows = (int32_t)s->windows[axis];
    x->size = (int32_t)s->window[axis];
    x->stride = (int32_t)s->stride[axis];
    x->pad = (int32_t)s->pad[axis];
    x->outs = (int32_t)extent;
    x->whole = is_whole(j, axis, extent);
    x->overs = j->work == WD_POOL_FORWARD ? 1 : (int32_t)windows_over(s, axis, extent);
    if (j->work == WD_POOL_SPREAD) x->ins = x->whole ? x->windows : x->overs;
    else if (x->whole) x->ins = x->image;
    else x->ins = (int32_t)reach(s, axis, j->work == WD_POOL_FORWARD ? extent : x->overs);
}

/* Fills in the arguments that a box decides, and its bytes. */
static void lay_out(const struct job *j, struct cut *cut, struct pool_tile_args *a)
{
    const struct wd_pool_shape *s = j->shape;
    const int64_t *extent = cut->extent;
    const int64_t run_bytes = j->run * s->size;
    const int64_t sum_bytes = s->max || s->size == 8 ? s->size : 4;
    const int64_t middle_run = j->run * sum_bytes;
    int64_t rows;
    int64_t row_runs;
    int64_t box;
    int64_t table = 0;
    int64_t middle;
    int64_t second;
    for (int d = 0; d < 3; ++d) set_axis(j, &a->axis[d], d, extent[AXES + d]);
    a->tile_outer = (uint32_t)extent[OUTER];
    a->tile_inner = (uint32_t)extent[INNER];
    a->lines = j->run == 1 && extent[INNER] == j->inner;
    rows = extent[OUTER] * a->axis[0].ins * a->axis[1].ins;
    row_runs = a->axis[2].ins * extent[INNER];
    a->line_rows = 1;
    if (a->axis[2].whole) {
        a->line_rows = (uint32_t)a->axis[1].ins;
        if (a->axis[1].whole) {
            a->line_rows *= (uint32_t)a->axis[0].ins;
            if (a->axis[0].whole) a->line_rows *= (uint32_t)extent[OUTER];
        }
    }
    a->row_bytes = (uint32_t)(row_runs * run_bytes);
    cut->staged = rows * row_runs * run_bytes;
    if (a->lines) {
        a->line_pitch = (uint32_t)round_up(a->line_rows * row_runs * run_bytes + 15);
        box = rows / a->line_rows * a->line_pitch;
        table = round_up(rows * 4);
        cut->staged += rows / a->line_rows * 32; /* both ends */
    } else {
        a->line_pitch = 16;
        box = round_up(cut->staged);
        if (run_bytes * extent[INNER] < 32)
            cut->staged = cut->staged * 32 / (run_bytes * extent[INNER]);
        else if (run_bytes * extent[INNER] < 64) cut->staged += cut->staged / 4;
    }
    a->at.rows = (uint32_t)box;
    if (j->work == WD_POOL_COLLECT) {
        int64_t shares = extent[OUTER] * extent[INNER] * j->run * a->axis[0].overs *
                         a->axis[1].overs * a->axis[2].overs;
        cut->staged += shares * s->size;
        a->at.shares = (uint32_t)(box + table);
        a->at.codes = (uint32_t)(a->at.shares + round_up(shares * s->size));
        cut->bytes = a->at.codes + round_up(shares);
        return;
    }
    middle = rows * extent[AXES + 2] * extent[INNER];
    second = extent[OUTER] * a->axis[0].ins * extent[AXES + 1] * extent[AXES + 2] * extent[INNER];
    if (!a->volume) second = 0;
    a->at.half = (uint32_t)(middle * 16);
    a->at.second_half = (uint32_t)(second * 16);
    a->at.middle = (uint32_t)wd_most(box + table, round_up(second * middle_run));
    a->at.weights = (uint32_t)(a->at.middle + round_up(middle * middle_run));
    cut->bytes = a->at.weights;
    if (j->work == WD_POOL_SPREAD && s->exclude) {
        cut->bytes += round_up((a->axis[0].ins + a->axis[1].ins + a->axis[2].ins) * 8);
    }
}

static int64_t blocks_of(const struct job *j, const struct cut *cut)
{
    int64_t blocks = 1;
    for (int d = 0; d < DIRECTIONS; ++d) blocks *= wd_ceil_div(j->limit[d], cut->extent[d]);
    return blocks;
}

static int64_t results_of(const struct cut *cut)
{
    int64_t results = 1;
    for (int d = 0; d < DIRECTIONS; ++d) results *= cut->extent[d];
    return results;
}

/* The box twice as long in one direction: parts of equal length. */
static bool grow(const struct job *j, const struct cut *from, int direction, struct cut *to)
{
    int64_t limit = j->limit[direction];
    *to = *from;
    if (from->extent[direction] >= limit) return false;
    if (direction == OUTER) { /* planes together only where they are contiguous */
        for (int d = 0; d < 3; ++d) {
            if (from->extent[AXES + d] < j->limit[AXES + d]) return false;
        }
    }
    to->extent[direction] = wd_least(2 * from->extent[direction], limit);
    to->extent[direction] = wd_ceil_div(limit, wd_ceil_div(limit, to->extent[direction]));
    return true;
}

static void choose(const struct wd_device *device, const struct job *j, struct cut *cut,
                   struct pool_tile_args *a)
{
    /* of equals the first: rows before columns before slices, so that what is read is contiguous */
    static const int order[] = {AXES + 2, INNER, AXES + 1, AXES, OUTER};
    for (;;) {
        struct cut best = *cut;
        bool grows = false;
        for (int i = 0; i < DIRECTIONS; ++i) {
            struct cut next;
            if (!grow(j, cut, order[i], &next)) continue;
            lay_out(j, &next, a);
            if (next.bytes > BOX_BYTES) continue;
            if (results_of(cut) * j->run >= RESULTS_LEAST &&
                blocks_of(j, &next) < BLOCKS_EACH * device->multiprocessors) {
                continue;
            }
            /* bytes a result: compared crosswise, growth must gain a hundredth to come before */
            if (grows &&
                next.staged * results_of(&best) * 100 >= best.staged * results_of(&next) * 99) {
                continue;
            }
            best = next;
            grows = true;
        }
        if (!grows) return;
        *cut = best;
    }
}

static int way_of(const struct job *j)
{
    const struct wd_pool_shape *s = j->shape;
    bool runs = true;
    for (int d = 1; d < 3; ++d) {
        runs &= s->stride[d] == 1 && s->window[d] >= 3;
    }
    if (j->work == WD_POOL_COLLECT) return POOL_ANY;
    return runs ? POOL_RUN : POOL_ANY;
}

bool wd_pool_plan_of(const struct wd_device *device, const struct wd_pool_shape *s,
                     enum wd_pool_work work, int64_t run, struct wd_pool_plan *plan)
{
    struct pool_tile_args *a = &plan->args;
    struct job j = {.shape = s, .work = work, .run = run, .inner = s->inner / run};
    struct cut cut = {.extent = {[INNER] = j.inner}};
    const int64_t *made = work == WD_POOL_FORWARD ? s->windows : s->image;
    const bool single = run == 1;
    memset(plan, 0, sizeof *plan);
    j.limit[OUTER] = s->outer;
    j.limit[INNER] = j.inner;
    for (int d = 0; d < 3; ++d) j.limit[AXES + d] = made[d];
    for (int d = 0; d < DIRECTIONS; ++d) {
        if (d != INNER || !single) cut.extent[d] = 1;
    }
    a->volume = s->image[0] > 1 || s->windows[0] > 1 || s->window[0] > 1;
    lay_out(&j, &cut, a);
    if (single && cut.bytes > BOX_BYTES) {
        cut.extent[INNER] = wd_least(SLICE, j.inner);
        lay_out(&j, &cut, a);
        if (cut.bytes > device->shared_per_block) cut.extent[INNER] = 1;
        lay_out(&j, &cut, a);
    }
    if (cut.bytes > device->shared_per_block) return false;
    choose(device, &j, &cut, a);
    lay_out(&j, &cut, a);
    plan->blocks = blocks_of(&j, &cut);
    plan->bytes = cut.bytes;
    plan->way = way_of(&j);
    plan->runs = !single;
    a->inner = (uint32_t)j.inner;
    a->outer = (uint32_t)s->outer;
    a->mode = wd_pool_mode(s);
    a->exclude = s->exclude;
    a->inverse = s->inverse;
    a->lowest = s->lowest;
    for (int d = 0; d < 3; ++d) {
        struct pool_axis *x = &a->axis[d];
        int64_t group = !single || d == 0 ? POOL_OF_RUNS : d == 1 ? POOL_ROWS : POOL_COLUMNS;
        if (work == WD_POOL_COLLECT) group = d == 1 ? single ? POOL_COLLECTED : POOL_OF_RUNS : 1;
        x->by_tiles = wd_fastdiv_of((uint32_t)wd_ceil_div(made[d], x->outs));
        x->by_ins = wd_fastdiv_of((uint32_t)x->ins);
        x->by_groups = wd_fastdiv_of((uint32_t)wd_ceil_div(x->outs, group));
        x->by_stride = wd_fastdiv_of((uint32_t)x->stride);
        x->by_overs = wd_fastdiv_of((uint32_t)x->overs);
    }
    a->by_inner_tiles = wd_fastdiv_of((uint32_t)wd_ceil_div(j.inner, a->tile_inner));
    a->by_tile_inner = wd_fastdiv_of(a->tile_inner);
    a->by_line_rows = wd_fastdiv_of(a->line_rows);
    a->by_line_chunks = wd_fastdiv_of(a->line_pitch / 16);
    a->by_row = wd_fastdiv_of((uint32_t)a->axis[2].outs * a->tile_inner);
    a->by_plane = wd_fastdiv_of((uint32_t)(a->axis[1].outs * a->axis[2].outs) * a->tile_inner);
    a->total =
        (uint32_t)(s->outer * (work == WD_POOL_SPREAD ? wd_pool_windows(s) : wd_pool_image(s)));
    return true;
}

/* Whether everything that is read and written by runs may be, by 16 bytes. */
static bool has_runs(const struct wd_pool_shape *s)
{
    return s->size != 8 && s->inner % (16 / s->size) == 0;
}

static bool is_aligned(const struct wd_pool_memory *m)
{
    uintptr_t pointers = (uintptr_t)m->x | (uintptr_t)m->dy | (uintptr_t)m->out;
    return pointers % 16 == 0;
}

void wd_pool_plans_of(const struct wd_device *device, const struct wd_pool_shape *s,
                      enum wd_pool_work work, struct wd_pool_plans *plans)
{
    plans->fits[0] = has_runs(s) && wd_pool_plan_of(device, s, work, 16 / s->size, &plans->plan[0]);
    plans->fits[1] = wd_pool_plan_of(device, s, work, 1, &plans->plan[1]);
}

void wd_pool_plan_fill(struct wd_pool_plan *plan, const struct wd_pool_shape *shape,
                       const struct wd_pool_memory *m)
{
    struct pool_tile_args *a = &plan->args;
    a->from = shape->backward ? m->dy : m->x;
    a->x = m->x;
    a->out = m->out;
    a->alpha = m->alpha;
    a->beta = m->beta;
    a->scales = m->alpha != 0.0;
    a->blends = m->beta != 0.0;
    a->streaming = m->streaming;
}

bool wd_pool_plan_call(const struct wd_device *device, const struct wd_pool_shape *shape,
                       enum wd_pool_work work, const struct wd_pool_memory *memory,
                       const struct wd_pool_way *way, struct wd_pool_plan *plan)
{
    if (memory->prepared && memory->prepared_by == way) {
        const struct wd_pool_plans *plans = memory->prepared;
        const bool runs = is_aligned(memory) && plans->fits[0];
        if (!runs && !plans->fits[1]) return false;
        *plan = plans->plan[!runs];
    } else if (!has_runs(shape) || !is_aligned(memory) ||
               !wd_pool_plan_of(device, shape, work, 16 / shape->size, plan)) {
        if (!wd_pool_plan_of(device, shape, work, 1, plan)) return false;
    }
    wd_pool_plan_fill(plan, shape, memory);
    return true;
}
