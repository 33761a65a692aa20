/* SPDX-License-Identifier: Apache-2.0
 *
 * How the engines of rows cut their work: threads of a row, rows of a block, blocks of a cluster, and
 * how far ahead rows are fetched. A pure function of shape and device. */
#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_rows.h"

enum {
    WARP = 32,
    SHARED_FIXED = 4096,      /* of a block, at most, beside what the cut asks for */
    PART_PROCESSORS = 16,     /* of a part of the chip, mostly */
    TOGETHER_BYTES = 1 << 19, /* of x, at most, for the blocks of one cluster */
    CLUSTER_WARPS = 128,      /* of a row, at most: places for what they find */
    COLUMNS = 3,
};

/* By a thread's columns; threads that a processor has at once, as the kernels' registers allow. */
static const struct {
    int32_t columns;
    int32_t threads[2]; /* forward, backward */
} ways[COLUMNS] = {{8, {1024, 768}}, {16, {768, 640}}, {32, {512, 384}}};

struct rows_of {
    int64_t rows;
    int64_t length;
    int64_t each; /* elements of a unit */
    int64_t units;
    bool backward;
    bool edges;
};

/* Lanes of each block in a row whose blocks have `share` units. */
static int64_t lanes_of(const struct rows_of *r, int way, int64_t share)
{
    return wd_ceil_div(wd_ceil_div(share * r->each, ways[way].columns), WARP) * WARP;
}

static int64_t slot_bytes(const struct rows_of *r, const struct wd_norm_cut *c)
{
    return c->lanes * c->groups * ways[c->columns].columns / r->each * NORM_ROWS_UNIT *
           (r->backward ? 2 : 1);
}

static int64_t room_bytes(const struct rows_of *r, const struct wd_norm_cut *c)
{
    int64_t rows = c->groups + (c->together > 1 ? 2 : 0);
    if (!r->backward || (c->groups == 1 && c->together == 1)) return 0;
    return rows * r->length * (int64_t)sizeof(float);
}

/* Units of up to a warp: rows side by side in it. Else the way that leaves a processor several rows,
 * or the smallest cluster whose blocks stand two on a processor. */
static bool cut_row(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    int64_t lanes = 1;
    c->cluster = 1;
    c->columns = 0;
    c->share = r->units;
    if (r->units * r->each <= (int64_t)WARP * ways[0].columns) {
        while (lanes * ways[0].columns < r->units * r->each) lanes *= 2;
        c->lanes = lanes;
        return true;
    }
    /* a warp by itself */
    c->columns = 1;
    c->lanes = WARP;
    if (r->units * r->each <= (int64_t)WARP * ways[1].columns) return true;
    for (; c->cluster <= wd_norm_cluster_max(device); c->cluster *= 2) {
        c->share = wd_ceil_div(r->units, c->cluster);
        for (int pass = 0; pass < 2; ++pass) {
            for (int k = COLUMNS - 1; k >= 0; --k) {
                int64_t threads;
                c->columns = r->backward && k > 0 ? COLUMNS - k : k; /* backward 16 before 32 */
                threads = ways[c->columns].threads[r->backward];
                c->lanes = lanes_of(r, c->columns, c->share);
                if (c->lanes <= threads / (pass == 0 ? 2 : 1) &&
                    c->cluster * c->lanes / WARP <= CLUSTER_WARPS) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* A cluster stays within a part of the chip, which has a whole number of them; a pair always fits. */
static int64_t clusters_at_once(const struct rows_of *r, const struct wd_norm_cut *c,
                                const struct wd_device *device)
{
    int64_t each = ways[c->columns].threads[r->backward] / (c->lanes * c->groups);
    int64_t parts = device->multiprocessors / PART_PROCESSORS;
    if (c->cluster <= 2 * each) return wd_most(1, device->multiprocessors * each / c->cluster);
    return wd_most(1, parts * (PART_PROCESSORS * each / c->cluster) - 1);
}

/* Rows of a group begin at the same place of a unit. */
static void keep_place(struct wd_norm_cut *c, const struct rows_of *r)
{
    int64_t period = 1;
    int64_t each = 1;
    if (!r->edges || c->clusters * c->groups >= r->rows) return;
    while (period * r->length % r->each > 0) period *= 2;
    while (each * c->groups % period > 0) each *= 2;
    c->clusters = wd_most(each, c->clusters / each * each);
}

/* How far ahead, within the share of a processor's shared memory. */
static bool cut_ring(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    int64_t each = wd_most(1, ways[c->columns].threads[r->backward] / (c->lanes * c->groups));
    int64_t most =
        wd_least(device->shared_per_block, device->shared_per_processor / each) - SHARED_FIXED;
    int64_t slot = slot_bytes(r, c);
    bool once = c->clusters * c->groups >= r->rows;
    c->ring = once ? 1 : wd_least(most / slot, NORM_ROWS_AHEAD_MAX + 1);
    c->ahead = once ? 1 : c->ring - 1;
    c->shared = wd_most(c->ring * slot, room_bytes(r, c));
    return c->ahead >= 1 && c->shared <= device->shared_per_block - SHARED_FIXED;
}

/* Few rows, whose dscale and dbias the blocks of one cluster add up. */
static bool cut_together(struct wd_norm_cut *c, const struct rows_of *r,
                         const struct wd_device *device)
{
    int64_t most = ways[c->columns].threads[r->backward] / c->lanes;
    int64_t each = c->lanes < WARP ? WARP / c->lanes : 1;
    if (!r->backward || c->cluster > 1 || wd_norm_cluster_max(device) == 1) return false;
    if (r->rows * r->units * NORM_ROWS_UNIT > TOGETHER_BYTES) return false;
    if (c->lanes > WARP) most = wd_least(most, NORM_ROWS_GROUPS);
    c->together = 1;
    while (c->together < wd_norm_cluster_max(device) && c->together * each < r->rows) {
        c->together *= 2;
    }
    c->clusters = c->together;
    c->groups = wd_ceil_div(wd_ceil_div(r->rows, c->together), each) * each;
    c->groups = wd_least(c->groups, most);
    keep_place(c, r);
    return c->clusters == c->together && cut_ring(c, r, device);
}

static bool cut(struct wd_norm_cut *c, const struct rows_of *r, const struct wd_device *device)
{
    int64_t most;
    int64_t each;
    if (!cut_row(c, r, device)) return false;
    if (cut_together(c, r, device)) return true;
    c->together = 1;
    /* rows go side by side where there are enough for all processors */
    each = c->lanes < WARP ? WARP / c->lanes : 1;
    most = c->cluster > 1 ? 1 : ways[c->columns].threads[r->backward] / c->lanes;
    if (c->lanes > WARP) most = wd_least(most, NORM_ROWS_GROUPS);
    c->groups = wd_ceil_div(wd_ceil_div(r->rows, device->multiprocessors), each) * each;
    for (c->groups = wd_least(c->groups, most); c->groups > 0; c->groups -= each) {
        int64_t wanted = wd_ceil_div(r->rows, c->groups);
        /* as many rows for each */
        c->clusters = wd_ceil_div(wanted, wd_ceil_div(wanted, clusters_at_once(r, c, device)));
        keep_place(c, r);
        if (cut_ring(c, r, device)) return true;
    }
    return false;
}

bool wd_norm_rows_cut(struct wd_norm_cut *c, const struct wd_problem *problem,
                      const struct wd_norm_rows *s, bool edges)
{
    struct rows_of r = {.rows = s->rows, .length = s->length};
    memset(c, 0, sizeof *c);
    r.each = NORM_ROWS_UNIT / wd_norm_bytes(wd_norm_tensor(problem, 0));
    r.backward = problem->node->op == WD_OP_NORM_BACKWARD;
    r.edges = edges;
    r.units = wd_ceil_div(s->length + (edges ? r.each - 1 : 0), r.each);
    return cut(c, &r, problem->device);
}
