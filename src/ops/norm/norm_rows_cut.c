/* SPDX-License-Identifier: Apache-2.0
 *
 * How the engines of rows cut their work: threads of a row, rows of a block, blocks of a cluster, and
 * how far ahead rows are fetched. A pure function of shape and device. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_rows.h"
#include "ops/shares.h"

enum {
    WARP = 32,
    SHARED_FIXED = 10 << 10, /* of a block, at most, beside what the cut asks for */
    POSTS_ROWS = 8,          /* of fewer all blocks have one each: norm_wide */
    LARGE_ROWS =
        28, /* of clusters of sixteen, at least: of fewer posts, of which there are eight at once for seven, have fewer turns */
    RING_ENOUGH = 3, /* places: one row is put, one looked at, one on its way */
    LAG_RING = 5,    /* places that leave room for two rows that wait */
    ODD_UNITS = 2,   /* at the ends of a row off the boundaries; drawn or held, of a warp's place */
    ODD_FULL = 85,   /* percent of its threads' columns that a row has, if it is drawn; */
    ODD_GROUP_WARPS = 4, /* warps of a block then, if rows have no more; */
    ODD_AHEAD = 3,       /* rows on their way, at least; */
    ODD_OWN = 5,         /* of a block's turns, one in so many is its own */
    FILL_WARPS = 4,      /* of a block, at least, ... */
    PAIR_WARPS = 2,      /* ... and of one of a pair */
    WIDE_CLUSTER = 4, /* blocks of a row of forty columns a thread that has no other cut, at most */
    WIDE_TURNS = 4,   /* of such a cluster, at least */
    DRAW_CLUSTER = 4, /* blocks of a cluster that draws rows, at most */
    DRAW_TURNS = 16,  /* of a cluster that draws rows, at least */
    DRAW_BYTES = 40 << 10, /* on their way to a processor, beside the row that is looked at */
    HELD_BYTES = 49 << 10, /* of held rows, on their way to a processor: of more they are late */
    HELD_THREADS = 384,    /* of 32 columns, that ask for as much, */
    HELD_LEAST = 320,      /* or nearly; squares that cannot have these have more, and ask late */
    TAIL_TURNS = 16,       /* of a block: of fewer the last ones are no small part */
    TAIL_SHARE = 12,       /* of its turns are for whoever is free */
    TAIL_ROWS = 160,       /* of all rows for one more row of partial sums */
};

/* A thread's columns in kernels that walk; threads that a processor has at once, as their registers
 * allow. All threads of WAY_24, of WAY_SQUARES and WAY_STRIPS (RMS norm without dbias) and of WAY_STRIPS_16 (others)
 * have all their units on the boundaries. */
enum way { WAY_8, WAY_24, WAY_32, WAY_SQUARES, WAY_STRIPS, WAY_STRIPS_16, WAY_40, WAYS };
static const struct {
    int64_t columns;
    int64_t threads[2]; /* forward, backward */
    int64_t held;       /* likewise backward, where rows stay in registers; 0: they do not */
} ways[WAYS] = {{8, {0, 640}, 0},  {24, {0, 512}, 384}, {32, {512, 384}, 384}, {32, {0, 512}, 512},
                {32, {0, 512}, 0}, {16, {0, 512}, 0},   {40, {512, 0}, 0}};

struct rows_of {
    int64_t rows;
    int64_t length;
    int64_t each; /* elements of a unit */
    int64_t units;
    bool backward;
    bool squares;  /* RMS norm without dbias */
    bool centred;  /* not RMS norm */
    bool computes; /* statistics, forward */
};

static int64_t threads_at_once(const struct rows_of *r, const struct wd_norm_cut *c)
{
    if (c->held) return ways[c->way].held;
    return ways[c->way].threads[r->backward];
}

static int64_t slot_bytes(const struct rows_of *r, const struct wd_norm_cut *c)
{
    int64_t units = c->lanes * ways[c->way].columns / r->each;
    /* with edges one more, since rows begin anywhere */
    if (c->odd) units += c->draws || c->held ? ODD_UNITS * c->lanes / WARP : ODD_UNITS;
    else if (c->edges) units = c->share + 1;
    return c->groups * units * NORM_ROWS_UNIT * (r->backward ? 2 : 1);
}

static int64_t room_bytes(const struct rows_of *r, const struct wd_norm_cut *c)
{
    if (!r->backward || c->groups == 1) return 0;
    return c->groups * (r->length + (c->odd ? 2 * r->each : 0)) * (int64_t)sizeof(float);
}

/* Forward rows that come by bulk copies. */
static bool is_bulk(const struct wd_norm_cut *c, const struct rows_of *r)
{
    return !r->backward && !c->edges;
}

/* Whether lanes by whole warps have `units` of all blocks, each as many as the way has; ragged: the last warp of each
 * block may have fewer. */
static bool fits(struct wd_norm_cut *c, const struct rows_of *r, enum way way, int64_t most)
{
    int64_t each = ways[way].columns / r->each;
    int64_t unit = c->edges ? 1 : each * WARP * c->cluster;
    int64_t units = c->edges ? r->length / r->each : r->units; /* whole ones */
    if (c->ragged) unit = c->cluster;
    if (ways[way].threads[r->backward] == 0 || r->units % unit > 0) return false;
    if ((c->edges || c->ragged) && way != WAY_32 && way != WAY_40 &&
        !(c->edges && way == WAY_SQUARES && r->each > 4))
        return false;
    if (way == WAY_SQUARES && !r->squares) return false;
    c->way = way;
    c->odd = c->edges;
    c->share = wd_ceil_div(units, c->cluster);
    c->lanes = wd_ceil_div(wd_ceil_div(c->share, each), WARP) * WARP;
    return c->lanes <= most;
}

/* The smallest cluster that holds a row; backward one whose blocks leave a processor room for a second
 * row, if there is one. */
static bool cut_long(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    int64_t most = wd_norm_cluster_max(device);
    bool squares = !c->edges || most > 1;
    if (is_bulk(c, r) && r->rows >= LARGE_ROWS) most = wd_share_most_blocks(device);
    for (int rows = r->backward ? 2 : 1; rows >= 1; --rows) {
        for (c->cluster = 1; c->cluster <= most; c->cluster *= 2) {
            if (squares && fits(c, r, WAY_SQUARES, ways[WAY_SQUARES].threads[r->backward] / rows))
                return true;
            if (fits(c, r, WAY_32, ways[WAY_32].threads[r->backward] / rows)) return true;
            if (fits(c, r, WAY_24, ways[WAY_24].threads[r->backward] / rows)) return true;
        }
    }
    return false;
}

/* Forward, twice as many blocks to a row where processors are the fuller for it: blocks of few warps leave some idle,
 * and more of them are at different phases (H200, us): layer norm 14592x9216 162 is 146, 6528x20480 158 is 151,
 * 3264x40960 185 is 158. */
static void fill(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    struct wd_norm_cut wide = *c;
    int64_t most = ways[c->way].threads[0];
    wide.cluster *= 2;
    if (wide.cluster > wd_norm_cluster_max(device)) return;
    if (!fits(&wide, r, WAY_32, most)) {
        wide.ragged = true;
        if (!fits(&wide, r, WAY_32, most)) return;
    }
    if (wide.lanes < FILL_WARPS * WARP) return;
    if (10 * (most / wide.lanes * wide.lanes) > 11 * (most / c->lanes * c->lanes)) *c = wide;
}

/* Forward, a pair of blocks for one: RMS norm's always (13,824 columns are not measured both ways), those of layer norm of which a processor is full (H200, us, when
 * single blocks did not draw rows yet): layer norm 8192x16384 144 is 136, RMS norm 11264x12288 148 is 143, 8192x16384 141 is 132; since, layer norm
 * 16384x8192 135.5 is 133.3, 32768x4096 135.3 is 134.0, RMS norm 133.5 is 132.4. */
static bool cut_pair(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    struct wd_norm_cut pair = *c;
    int64_t most = ways[c->way].threads[0];
    if (c->cluster != 1 || c->edges || c->ragged || c->posts || wd_norm_cluster_max(device) < 2) {
        return false;
    }
    if (!r->computes || r->each <= 4 || (r->centred && most % c->lanes > 0)) return false;
    pair.cluster = 2;
    if (!fits(&pair, r, WAY_32, most) || pair.lanes < PAIR_WARPS * WARP) return false;
    if (r->rows < DRAW_TURNS * (device->multiprocessors * (most / pair.lanes) / 2)) return false;
    *c = pair;
    return true;
}

/* Columns that a processor has at once, weighed by the processors that there are clusters for. */
static int64_t filled(const struct wd_norm_cut *c)
{
    return ways[c->way].threads[0] / c->lanes * c->share * (c->cluster <= 2 ? 11 : 10);
}

static int64_t clusters_at_once(const struct rows_of *r, const struct wd_norm_cut *c,
                                const struct wd_device *device);

/* Forward, forty columns a thread, in as many blocks as give a processor the most columns; for a cut that there is
 * already, where these are more by a tenth, and in no larger clusters: by eights for fours 2688x50304 is 168 us for 150
 * (H200). */
static bool cut_wide(struct wd_norm_cut *c, bool there, const struct rows_of *r,
                     const struct wd_device *device)
{
    struct wd_norm_cut wide = *c;
    int64_t least = there ? filled(c) * 11 / 10 : 0;
    int64_t most = wd_most(2, there ? c->cluster : WIDE_CLUSTER);
    most = wd_least(most, wd_norm_cluster_max(device));
    if (c->edges || c->posts || most < 2) return false;
    if (there && c->cluster > most) return false; /* of sixteen */
    if (!r->computes || r->each <= 4 || r->length % r->each > 0) return false;
    wide.wide = wide.ragged = true;
    wide.groups = 1;
    for (wide.cluster = 1; wide.cluster <= most; wide.cluster *= 2) {
        if (!fits(&wide, r, WAY_40, ways[WAY_40].threads[0])) continue;
        if (wide.lanes < FILL_WARPS * WARP || filled(&wide) <= least) continue;
        if (r->rows < WIDE_TURNS * clusters_at_once(r, &wide, device)) continue;
        least = filled(&wide);
        *c = wide;
    }
    return c->wide;
}

/* In clusters: a block has a processor to itself, and sixteen warps. */
static bool cut_strips(struct wd_norm_cut *c, const struct rows_of *r,
                       const struct wd_device *device)
{
    enum way way = r->squares ? WAY_STRIPS : WAY_STRIPS_16;
    c->groups = 1;
    for (c->cluster = 2; !c->edges && c->cluster <= wd_norm_cluster_max(device); c->cluster *= 2) {
        if (!fits(c, r, way, ways[way].threads[1])) continue;
        if (RING_ENOUGH * slot_bytes(r, c) <= device->shared_per_block - SHARED_FIXED) return true;
    }
    return false;
}

/* Gradients of layer norm, blocks of a row that are no cluster: as many as leave room for the most rows at once, the last of fewer whole warps. On an
 * H200 512x262144 takes 244 us by 22 blocks, six rows at once, and 266 by 32, four rows. */
static bool cut_posts_back(struct wd_norm_cut *c, const struct rows_of *r,
                           const struct wd_device *device, int64_t most)
{
    int64_t unit = ways[WAY_32].columns / r->each * WARP, warps = r->units / unit, at_once = 0;
    struct wd_norm_cut one = *c;
    if (c->edges || r->length % (unit * r->each) > 0) return false;
    one.way = WAY_32;
    one.odd = false;
    one.groups = 1;
    for (one.cluster = 2; one.cluster <= most; ++one.cluster) {
        int64_t each = wd_ceil_div(warps, one.cluster);
        one.share = each * unit;
        one.lanes = each * WARP;
        if (one.lanes > ways[WAY_32].threads[1] || (one.cluster - 1) * each >= warps) continue;
        /* a row that is put and one that comes */
        if (2 * slot_bytes(r, &one) > device->shared_per_block - SHARED_FIXED) continue;
        if (device->multiprocessors / one.cluster < at_once) break;
        at_once = device->multiprocessors / one.cluster;
        *c = one;
    }
    return at_once > 0;
}

/* Blocks of a row of whole units that are no cluster; but for those gradients the fewest, which share it evenly. */
static bool cut_posts(struct wd_norm_cut *c, const struct rows_of *r,
                      const struct wd_device *device)
{
    int64_t most = wd_least(device->multiprocessors, NORM_ROWS_POSTING);
    if (!device->grids_meet || r->rows <= POSTS_ROWS) return false;
    c->posts = true;
    if (r->backward && !r->squares) return cut_posts_back(c, r, device, most);
    for (c->cluster = 2; !c->edges && c->cluster <= most; c->cluster *= 2) {
        if (fits(c, r, WAY_SQUARES, ways[WAY_SQUARES].threads[r->backward])) return true;
        if (fits(c, r, WAY_32, ways[WAY_32].threads[r->backward])) return true;
    }
    return false;
}

/* Rows of up to 256 columns, several in a warp; else whole warps, of units that all have if possible. */
static bool cut_row(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    if (r->backward && r->units * r->each <= (int64_t)WARP * ways[WAY_8].columns) {
        int64_t each = ways[WAY_8].columns / r->each;
        c->way = WAY_8;
        c->cluster = c->lanes = 1;
        c->share = r->units;
        while (c->lanes * each < r->units) c->lanes *= 2;
        c->edges = c->edges || c->lanes * each > r->units;
        return true;
    }
    if (!c->edges && cut_long(c, r, device)) {
        if (r->backward) return true;
        if (!cut_pair(c, r, device)) fill(c, r, device);
        (void)cut_wide(c, true, r, device);
        return true;
    }
    /* forward a block's last warp may have less of a row */
    c->ragged =
        !c->edges && !r->backward && r->length % r->each == 0 && wd_norm_cluster_max(device) > 1;
    if (c->ragged && cut_long(c, r, device)) {
        fill(c, r, device);
        (void)cut_wide(c, true, r, device);
        return true;
    }
    c->ragged = false;
    if (cut_wide(c, false, r, device)) return true;
    c->edges = true;
    return cut_long(c, r, device);
}

/* Of a processor. */
static int64_t blocks_at_once(const struct rows_of *r, const struct wd_norm_cut *c)
{
    return threads_at_once(r, c) / (c->lanes * c->groups);
}

/* A pair always fits; of larger clusters not all processors can be had, since parts of the chip differ
 * in size (an H200 of 132: 15 clusters of 8, 30 of 4).
 * Rows that are at work at once are some megabytes, which strips count in 32 bits. */
static int64_t clusters_at_once(const struct rows_of *r, const struct wd_norm_cut *c,
                                const struct wd_device *device)
{
    int64_t all = device->multiprocessors * blocks_at_once(r, c);
    if (c->posts) return device->multiprocessors / c->cluster;
    return wd_most(1, c->cluster <= 2 ? all / c->cluster : all * 10 / 11 / c->cluster);
}

static bool by_strips(const struct wd_norm_cut *c)
{
    return c->way == WAY_STRIPS || c->way == WAY_STRIPS_16;
}

/* Whether whole groups come to about as many threads as a processor should have of rows that stay in registers. */
static bool held_well(const struct wd_norm_cut *c)
{
    return HELD_THREADS / c->lanes * c->lanes >= HELD_LEAST;
}

/* Backward, rows of two bytes an element that stay in registers from when they are looked at to when they are put: all of 32 columns a
 * thread, for which there is no other kernel. Of 24 there are a quarter fewer threads then than otherwise, so some lengths
 * (lanes of 224, 288 and of more than 384) would leave too few of them. */
static bool is_held(const struct wd_norm_cut *c, const struct rows_of *r)
{
    return r->backward && r->each > 4 && ways[c->way].held > 0 && c->edges == c->odd && !c->posts &&
           (c->way != WAY_24 || held_well(c));
}

/* Kernels that put a row one turn or two after they looked at it. */
static bool waits(const struct rows_of *r, const struct wd_norm_cut *c)
{
    return !c->edges && (!r->backward || by_strips(c));
}

/* How far ahead, within the share of a processor's shared memory. */
static bool cut_ring(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    int64_t each = wd_most(1, blocks_at_once(r, c));
    int64_t most =
        wd_least(device->shared_per_block, device->shared_per_processor / each) - SHARED_FIXED;
    int64_t slot = slot_bytes(r, c);
    bool once = c->clusters * c->groups >= r->rows;
    c->ring = once ? 1 : wd_least(most / slot, NORM_ROWS_AHEAD_MAX + 1);
    /* a row of whole units waits longer for its blocks' sums, where there is room for it */
    c->lag = waits(r, c) && c->ring >= LAG_RING ? 2 : 1;
    c->ahead = once ? 1 : c->ring - c->lag;
    if (c->held) {
        c->ring = c->ahead = 1;
        c->lag = 0;
        c->late = each * slot > HELD_BYTES;
    }
    if (c->draws) {
        c->ahead =
            wd_least(c->ahead, wd_most(c->odd ? ODD_AHEAD : 2, 1 + DRAW_BYTES / (each * slot)));
        c->ring = c->ahead + c->lag;
    }
    c->shared = wd_most(c->ring * slot, room_bytes(r, c));
    if (c->held && c->odd) /* beside the places, until sums leave */
        c->shared = wd_most(c->shared, slot + c->groups * c->lanes / WARP * NORM_ROWS_ODD_ROOM);
    return c->ahead >= 1 && c->shared <= device->shared_per_block - SHARED_FIXED;
}

/* Rows of two bytes an element that blocks and small clusters have are drawn where there are enough of them, but for those of fours
 * whose last warp has less (H200, us): layer norm 2688x50304 150 is 159 (2048x65536, where it has not, 141 is 135). */
static bool can_draw(const struct wd_norm_cut *c, const struct rows_of *r,
                     const struct wd_device *device)
{
    return wd_norm_cluster_max(device) > 1 && r->computes && r->each > 4 &&
           c->cluster <= DRAW_CLUSTER && (c->cluster <= 2 || !c->ragged) && c->groups == 1 &&
           !c->edges && !c->posts && r->rows >= DRAW_TURNS * c->clusters;
}

/* By strips: the last turns are in clusters of their own, which begin where others have ended. */
static void cut_tail(struct wd_norm_cut *c, const struct rows_of *r)
{
    int64_t turns = wd_ceil_div(wd_ceil_div(r->rows, c->groups), c->clusters);
    int64_t most = r->rows / TAIL_ROWS;
    int64_t each = wd_ceil_div(turns, TAIL_TURNS);
    c->first = c->clusters;
    c->early = r->rows;
    c->later = c->draws ? turns / 2 : c->wide ? INT32_MAX : 1;
    if (!by_strips(c)) return;
    if (turns < TAIL_TURNS || most == 0) return;
    c->early = (turns - wd_ceil_div(turns, TAIL_SHARE)) * c->clusters * c->groups;
    each = wd_most(each, wd_ceil_div(wd_ceil_div(r->rows - c->early, c->groups), most));
    c->later = each * c->groups;
    c->clusters += wd_ceil_div(r->rows - c->early, c->later);
}

/* Rows from one to the next that begins equally far behind a boundary. */
static int64_t classes_of(const struct rows_of *r)
{
    int64_t classes = r->each;
    while (classes > 1 && classes / 2 * r->length % r->each == 0) classes /= 2;
    return classes;
}

/* From a group's row to its next, equally far behind a boundary; 0 where there is no such step. */
static int64_t step_of(const struct wd_norm_cut *c, const struct rows_of *r)
{
    int64_t step = c->clusters * c->groups;
    if (!c->odd || step >= r->rows) return step;
    return step - step % classes_of(r);
}

/* Forward, rows off the boundaries that part of a block or a block has and that are drawn, by classes. Measured on an H200, us, by walks and so: layer norm
 * 32771x4097 170 and 144, 32771x2047 87 and 77, 65537x1023 83.4 and 77.6,
 * 65537x895 74.3 and 70.2, 16383x8191 158 and 143; RMS norm 32771x4097 164 and 140; of threads with fewer columns 40000x1535 78.1 and 80.7, 65537x1101 117 and 122, 131071x511 81 and 96. */
static bool cut_odd(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    int64_t turns;
    if (!c->edges || r->backward || !r->computes || r->each <= 4) return false;
    if (wd_norm_cluster_max(device) < 2) return false;
    c->cluster = 1;
    if (!fits(c, r, WAY_32, ways[WAY_32].threads[0])) return false;
    if (100 * r->length < ODD_FULL * c->lanes * ways[WAY_32].columns) return false;
    c->draws = true;
    c->classes = classes_of(r);
    c->groups = wd_most(1, ODD_GROUP_WARPS * WARP / c->lanes);
    c->clusters = clusters_at_once(r, c, device);
    c->clusters -= c->clusters % c->classes;
    c->step = c->clusters;
    turns = c->clusters > 0 ? r->rows / (c->clusters * c->groups) : 0;
    if (turns < DRAW_TURNS || !cut_ring(c, r, device) || c->ahead < 2) return false;
    /* the first number is told, and asked for a turn before that, when the first rows have been asked for */
    c->later = wd_most(turns / ODD_OWN, c->ahead + 1);
    return true;
}

static bool cut(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    struct wd_norm_cut posts = *c;
    struct wd_norm_cut strips = *c;
    struct wd_norm_cut odd = *c;
    int64_t most;
    int64_t each;
    bool fits_cluster, fits_strips;
    if (cut_odd(&odd, r, device)) {
        *c = odd;
        return true;
    }
    fits_cluster = cut_row(c, r, device);
    fits_strips =
        r->backward && (!fits_cluster || c->cluster > 2) && cut_strips(&strips, r, device);
    /* clusters are faster where they hold a row */
    if (fits_strips) *c = strips;
    else if (!fits_cluster && cut_posts(&posts, r, device)) *c = posts;
    else if (!fits_cluster) return false;
    /* rows go side by side where there are enough for all processors */
    each = c->lanes < WARP ? WARP / c->lanes : 1;
    c->held = is_held(c, r);
    most = c->cluster > 1 || c->wide || is_bulk(c, r) ? 1 : threads_at_once(r, c) / c->lanes;
    if (c->held && most > 1 && held_well(c)) most = wd_least(most, HELD_THREADS / c->lanes);
    if (c->lanes > WARP) most = wd_least(most, NORM_ROWS_GROUPS);
    c->groups = wd_ceil_div(wd_ceil_div(r->rows, device->multiprocessors), each) * each;
    for (c->groups = wd_least(c->groups, most); c->groups > 0; c->groups -= each) {
        int64_t wanted = wd_ceil_div(r->rows, c->groups);
        /* as many rows for each */
        c->clusters = wd_ceil_div(wanted, wd_ceil_div(wanted, clusters_at_once(r, c, device)));
        if (c->odd || c->wide) c->clusters = wd_least(wanted, clusters_at_once(r, c, device));
        c->step = step_of(c, r);
        c->draws = can_draw(c, r, device);
        if (c->step == 0 || !cut_ring(c, r, device)) continue;
        cut_tail(c, r);
        c->left = c->share * r->each - (c->lanes / WARP - 1) * WARP * ways[c->way].columns;
        return true;
    }
    return false;
}

int64_t wd_norm_rows_posts(const struct wd_norm_cut *c)
{
    int64_t blocks = c->posts ? c->clusters * c->cluster : 0;
    return blocks * NORM_ROWS_COPIES * NORM_ROWS_POST * (int64_t)sizeof(uint64_t);
}

bool wd_norm_rows_computes(const struct wd_problem *problem)
{
    int op = problem->node->op;
    return op == WD_OP_NORM_TRAINING ||
           (op == WD_OP_NORM_INFERENCE && !wd_norm_tensor(problem, wd_norm_places(op).inv_std));
}

bool wd_norm_rows_cut(struct wd_norm_cut *c, const struct wd_problem *problem,
                      const struct wd_norm_rows *s, bool edges)
{
    struct rows_of r = {.rows = s->rows, .length = s->length};
    memset(c, 0, sizeof *c);
    r.each = NORM_ROWS_UNIT / wd_norm_bytes(wd_norm_tensor(problem, 0));
    r.backward = problem->node->op == WD_OP_NORM_BACKWARD;
    r.computes = wd_norm_rows_computes(problem);
    r.centred = problem->node->attr.norms.mode != CUDNN_RMS_NORM;
    r.squares = r.backward && !r.centred && !wd_norm_tensor(problem, NORM_GRAD_DBIAS);
    c->edges = edges;
    r.units = wd_ceil_div(s->length, r.each);
    if (cut(c, &r, problem->device)) return true;
    if (!r.squares) return false;
    /* threads that have more of a row leave shared memory for fewer rows of it: of fp32 too few */
    memset(c, 0, sizeof *c);
    c->edges = edges;
    r.squares = false;
    return cut(c, &r, problem->device);
}

bool wd_norm_rows_fit(const struct wd_problem *problem, const struct wd_norm_rows *s)
{
    struct wd_norm_cut c;
    int64_t each = NORM_ROWS_UNIT / wd_norm_bytes(wd_norm_tensor(problem, 0));
    if (wd_norm_rows_cut(&c, problem, s, true)) return true;
    return s->length % each == 0 && wd_norm_rows_cut(&c, problem, s, false);
}
