/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts of norm_kept, see norm_kept_cut.h: of the ways to give a panel threads and blocks the one that
 * should take the least time. A processor moves so many bytes a nanosecond, and nothing while a block
 * that it has alone adds up its panel. No state. */
#include "ops/norm/norm_kept_cut.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/norm/norm_gpu.h"
#include "ops/norm/norm_kept_args.h"

enum {
    WARP = 32,
    BYTES = 16,            /* of a run */
    BLOCK_RESERVED = 1024, /* shared memory that a block costs besides its own */
    FIXED = 640,           /* that kernels have besides what is dynamic */
    LINE = 16,             /* bytes of a channel in the table of planes */
    PAIR = 16,             /* of a value that blocks exchange, or a thread's sums */
    THREADS_LEAST = 64,    /* of a block that has one share */
    PROCESSOR_REGISTERS = 65536,
    PROCESSOR_BLOCKS = 32, /* that a processor has at most */
    COLUMN_THREADS = 320,  /* of columns: their registers say so */
    BESIDE_BYTES = 26624,  /* of a panel of several shares, about */
    BESIDE_THREADS = 256,
    BESIDE_ELEMENTS = 16, /* of a lane, about */
    BESIDE_PANELS = 8,    /* of a processor, before they grow */
    CHANNEL_STEPS = 8,    /* of a lane in a channel, about, backward */
    SLOTS = 8,            /* of a thread where a block may have more of them */
    PART_PROCESSORS = 16, /* of a part of the chip, at least: a cluster stays within one */
    MEET_THREADS = 256,   /* of a block that meets others, at least: fewer pay for nothing */
    NARROW = 64,          /* bytes of a panel's row, at least, unless it is all or x is small */
    LINE_BYTES = 128,
    SMALL_BYTES = 1 << 20,
    TOLD_MOST = 8448,           /* values that blocks which meet tell each other */
    TOLD_LARGE = 4352,          /* ... backward, of samples above ... */
    BACKWARD_SAMPLE = 12 << 20, /* ... so many bytes, x and dy */
    LEAST_KEPT = 2,             /* of 5 parts of what blocks that meet have, at least */
    LEAST_PARTS = 5,
    TEAMS = 16,            /* of blocks that meet, at most */
    RESIDENT = 2,          /* blocks of a processor that meet: one loads while another waits */
    SPEED = 32,            /* bytes a nanosecond of a processor */
    BEGIN = 2000,          /* ns of a launch */
    BEGIN_TOGETHER = 3500, /* ... of blocks that meet */
    JOIN = 1500,           /* ns from the last element's arrival to the first one's leaving */
    JOIN_CLUSTER = 2500,   /* ... where blocks of a cluster wait for each other */
    JOIN_TOGETHER = 3500,  /* ... and blocks that meet ... */
    JOIN_BLOCK = 10,       /* ... each of which has something to be added */
};

/* Times as long with fewer blocks on a processor than could be. */
static const double FEWER = 1.05;

/* Of a thread, as the kernels' rows have it. */
static int64_t registers_of(const struct norm_kept_cut *c, const struct norm_groups_shape *s)
{
    if (c->way == NORM_KEPT_COLUMNS) return 96;
    if (c->way == NORM_KEPT_BESIDE && (s->arrays > 1 || s->size < 4)) return 80;
    return 64;
}

/* Blocks of a processor; 0: one is too large. */
static int64_t resident(const struct norm_kept_cut *c, const struct norm_groups_shape *s,
                        const struct wd_device *device)
{
    int64_t all = c->shared + FIXED;
    int64_t warps;
    if (all > device->shared_per_block) return 0;
    /* registers go to warps, four of them at a time */
    warps = PROCESSOR_REGISTERS / (registers_of(c, s) * WARP) / 4 * 4;
    return wd_least(wd_least(device->shared_per_processor / (all + BLOCK_RESERVED),
                             warps / (c->threads / WARP)),
                    PROCESSOR_BLOCKS);
}

/* A cluster stays within a part of the chip; what an H200 has at once is 7.5 times what 16 processors
 * have, but for clusters of two: 30 of 4 and 15 of 8, of two blocks a processor 62 and 30. */
static int64_t teams_at_once(const struct norm_kept_cut *c, int64_t each,
                             const struct wd_device *device)
{
    int64_t parts = wd_most(2, 2 * device->multiprocessors / PART_PROCESSORS - 1); /* halves */
    if (c->meets || c->blocks <= 2) return device->multiprocessors * each / c->blocks;
    return parts * (PART_PROCESSORS * each / c->blocks) / 2;
}

/* Takes the cut if it fits, and should be faster than the best so far, of all numbers of blocks that a
 * processor may have. `waste` is what a byte costs more than one of whole lines that are read once. */
static void offer(struct norm_kept_cut *best, struct norm_kept_cut *c, double waste,
                  const struct norm_groups_shape *s, const struct wd_device *device)
{
    double bytes = (double)s->samples * (double)s->channels * (double)s->plane * s->size;
    double join = c->meets        ? JOIN_TOGETHER + JOIN_BLOCK * (double)c->blocks
                  : c->blocks > 1 ? JOIN_CLUSTER
                                  : JOIN;
    bytes = waste * bytes * (s->arrays + 1) / (double)(c->panels * c->blocks) / SPEED;
    int64_t all = resident(c, s, device);
    for (int64_t each = all; each > 0; --each) {
        int64_t most = teams_at_once(c, each, device);
        int64_t turns;
        double load; /* blocks of a processor */
        double turn;
        if (c->meets && most == 0) return; /* a part of them could not meet */
        turns = wd_ceil_div(c->panels, wd_most(1, most));
        c->teams = wd_ceil_div(c->panels, turns);
        load = (double)wd_ceil_div(c->teams * c->blocks, device->multiprocessors);
        /* those that have fewer are faster, which helps nobody who meets the others */
        if (!c->meets) {
            load = (load + (double)(c->teams * c->blocks) / (double)device->multiprocessors) / 2.0;
        }
        turn = load * bytes > bytes + join ? load * bytes : bytes + join;
        c->cost = (double)turns * turn + join + (c->meets ? BEGIN_TOGETHER : BEGIN);
        if (each < all) c->cost *= FEWER; /* which hide less of what each waits for */
        if (best->cost <= 0.0 || best->cost > c->cost) *best = *c;
    }
}

/* ---- Planes ---- */

/* What blocks need to know of channels: a table of formulas, and backward what was summed of them, by
 * lanes side by side, and pieces of a channel side by side where channels are few. */
static void give_tables(struct norm_kept_cut *c, const struct norm_groups_shape *s,
                        int64_t channels)
{
    int64_t vector = s->plane % (BYTES / s->size) == 0 ? BYTES / s->size : 1;
    c->lines = channels + 1; /* the last run looks one further */
    c->pieces = 1;
    c->shared = c->space * BYTES * s->arrays + c->lines * LINE;
    if (s->arrays == 1) return;
    c->lanes = wd_power_up(wd_ceil_div(s->plane, vector * CHANNEL_STEPS));
    c->lanes = wd_least(c->lanes, WARP);
    while (c->lanes == WARP && c->pieces * WARP * channels < c->threads &&
           s->plane >= 2 * c->pieces * WARP * vector) {
        c->pieces *= 2;
    }
    c->shared += c->lines * c->pieces * (int64_t)sizeof(struct norm_kept_sums);
}

/* Runs of elements that may begin anywhere. */
static int64_t runs_of(int64_t elements, int64_t run)
{
    return wd_ceil_div(elements + run - 1, run);
}

static void offer_planes(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                         int64_t blocks, bool meets, const struct wd_device *device)
{
    struct norm_kept_cut c = {.way = NORM_KEPT_ODD, .blocks = blocks, .meets = meets};
    int64_t run = BYTES / s->size;
    if (s->plane % run == 0) c.way = NORM_KEPT_EVEN;
    c.tile = c.tiles = c.across = c.rows = c.beside = c.lanes = 1;
    c.panels = s->samples * s->groups;
    c.length = s->each * s->plane;
    c.part = wd_ceil_div(runs_of(c.length, run), blocks);
    c.threads = wd_clamp(wd_power_up(wd_ceil_div(c.part, SLOTS)), THREADS_LEAST, NORM_KEPT_THREADS);
    if (meets && c.threads < MEET_THREADS) return;
    c.slots = wd_ceil_div(c.part, c.threads);
    c.space = c.part;
    give_tables(&c, s, wd_least(s->each, c.part * run / s->plane + 2));
    offer(best, &c, 1.0, s, device);
}

/* Small shares side by side in a block, `bound` of them at most. */
static struct norm_kept_cut cut_beside(const struct norm_groups_shape *s, int64_t bound,
                                       const struct wd_device *device)
{
    struct norm_kept_cut c = {.way = NORM_KEPT_BESIDE, .blocks = 1};
    int64_t run = BYTES / s->size;
    int64_t shares = s->samples * s->groups;
    int64_t size = s->each * s->plane;
    int64_t most = wd_ceil_div(shares, BESIDE_PANELS * device->multiprocessors);
    c.tile = c.tiles = c.across = c.rows = 1;
    c.lanes = wd_least(wd_power_up(wd_ceil_div(size, BESIDE_ELEMENTS)), WARP);
    c.beside = wd_least(wd_most(1, BESIDE_BYTES / (size * s->size)), wd_most(most, WARP / c.lanes));
    c.beside = wd_least(c.beside, bound);
    c.threads = wd_clamp(wd_ceil_div(c.beside * c.lanes, WARP) * WARP, WARP, BESIDE_THREADS);
    /* no thread waits for others in the last round */
    if (c.beside * c.lanes > c.threads) c.beside -= c.beside % (c.threads / c.lanes);
    c.panels = wd_ceil_div(shares, c.beside);
    c.length = c.beside * size;
    c.part = runs_of(c.length, run);
    c.slots = wd_ceil_div(c.part, c.threads);
    c.space = c.part;
    give_tables(&c, s, c.beside * s->each);
    return c;
}

/* As many as fit: of planes of few elements the tables of channels are larger than what is kept. */
static void offer_beside(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                         const struct wd_device *device)
{
    struct norm_kept_cut c = cut_beside(s, INT64_MAX, device);
    while (c.beside > 1 && c.shared + FIXED > device->shared_per_block) {
        c = cut_beside(s, c.beside / 2, device);
    }
    offer(best, &c, 1.0, s, device);
}

static bool meets_pay(const struct norm_groups_shape *s, const struct wd_device *device)
{
    return device->grids_meet && s->arrays == 1;
}

static int64_t teams_most(const struct wd_device *device)
{
    return wd_least(TEAMS, device->multiprocessors * RESIDENT);
}

/* Whether there is a cut, where `any` will do. */
static bool is_enough(const struct norm_kept_cut *best, bool any)
{
    return any && best->cost > 0.0;
}

static void cut_planes(struct norm_kept_cut *best, const struct norm_groups_shape *s, bool any,
                       const struct wd_device *device)
{
    if (s->each * s->plane * s->size < NORM_KEPT_BESIDE_RUNS * BYTES) {
        offer_beside(best, s, device);
        return;
    }
    for (int64_t blocks = 1; blocks <= wd_norm_cluster_max(device); blocks *= 2) {
        offer_planes(best, s, blocks, false, device);
        if (is_enough(best, any)) return;
    }
    /* backward two readings are faster: measured, 360 us for 329 */
    for (int64_t teams = 1; meets_pay(s, device) && teams <= teams_most(device); ++teams) {
        offer_planes(best, s, device->multiprocessors * RESIDENT / teams, true, device);
        if (is_enough(best, any)) return;
    }
}

/* ---- Columns ---- */

/* Bytes of a row that are parts of lines, or of sectors, are fetched with the rest of them. */
static double waste_of(const struct norm_groups_shape *s, int64_t tile)
{
    int64_t bytes = tile * s->size;
    if (tile == s->channels) return 1.0;
    if (bytes < 32) return 2.0;
    if (bytes % 32 != 0) return 1.3;
    return bytes < 64 ? 1.25 : bytes < 128 ? 1.1 : 1.03;
}

/* Bytes of what lies behind the runs. */
static int64_t areas(const struct norm_kept_cut *c, const struct norm_groups_shape *s)
{
    int64_t groups = c->tile / s->each;
    int64_t exchanged = c->meets ? 0 : 2 * groups * c->blocks;
    return PAIR * (c->threads + groups + exchanged + 3 * c->across) +
           PAIR / 2 * c->across * (BYTES / s->size);
}

static bool is_small(const struct norm_groups_shape *s)
{
    return s->samples * s->channels * s->plane * s->size <= SMALL_BYTES;
}

/* Measured on an H200: where little is kept, where blocks have much to tell each other, and where rows
 * are cut besides, two readings in three kernels are faster. */
static bool meeting_pays(const struct norm_kept_cut *c, const struct norm_groups_shape *s,
                         int64_t slots)
{
    int64_t told = c->tile / s->each * c->blocks;
    bool large = s->arrays > 1 && 2 * s->channels * s->plane * s->size > BACKWARD_SAMPLE;
    if (told > TOLD_MOST || (large && told > TOLD_LARGE)) return false;
    if (LEAST_PARTS * c->slots < LEAST_KEPT * slots) return false;
    if (2 * c->slots >= slots) return c->tile == s->channels || !large;
    return c->tile == s->channels && s->arrays == 1;
}

static void offer_columns(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                          int64_t tile, int64_t blocks, bool meets, const struct wd_device *device)
{
    struct norm_kept_cut c = {.blocks = blocks, .tile = tile, .meets = meets};
    int64_t run = BYTES / s->size;
    int64_t slots;
    int64_t room;
    double waste;
    if (tile * s->size < NARROW && tile < s->channels && !is_small(s)) return;
    c.way = NORM_KEPT_COLUMNS;
    c.beside = c.lanes = c.length = c.pieces = c.lines = 1;
    c.tiles = s->channels / tile;
    c.across = wd_ceil_div(tile, run);
    c.panels = s->samples * c.tiles;
    c.part = wd_ceil_div(s->plane, blocks);
    if (c.across > COLUMN_THREADS) return;
    c.rows = wd_least(COLUMN_THREADS / c.across, wd_most(1, wd_ceil_div(c.part, 4)));
    c.threads = wd_ceil_div(c.rows * c.across, WARP) * WARP;
    slots = wd_ceil_div(c.part, c.rows);
    room = device->shared_per_processor / RESIDENT - BLOCK_RESERVED - FIXED - areas(&c, s);
    c.slots = wd_least(slots, room / (c.threads * BYTES * s->arrays));
    if (c.slots < slots && !meets) c.slots = slots; /* all of it, or not at all */
    if (c.slots < 1) return;
    if (meets && !meeting_pays(&c, s, slots)) return;
    waste = waste_of(s, tile);
    if (c.slots < slots) {
        /* what is not kept is read again, but for what is in the cache still */
        double again = (double)s->samples * (double)s->channels * (double)s->plane * s->size *
                       s->arrays / (double)c.panels;
        double cached = (double)device->l2_bytes / 2;
        again *= (double)wd_least(c.panels, device->multiprocessors * RESIDENT / blocks);
        again *= 1.0 - (double)c.slots / (double)slots;
        again = again > cached ? (again - cached) / again : 0.0;
        again *= 1.0 - (double)c.slots / (double)slots;
        waste += s->arrays * again / (s->arrays + 1);
    }
    c.space = c.slots * c.threads;
    c.shared = c.space * BYTES * s->arrays + areas(&c, s);
    offer(best, &c, waste, s, device);
}

/* The divisor of `n` that comes behind its divisor `d`; 0: there is none. */
static int64_t next_divisor(int64_t n, int64_t d)
{
    int64_t k = d + 1;
    for (; k * k <= n; ++k) {
        if (n % k == 0) return k;
    }
    if (d == n) return 0;
    /* those above the root are n by those below it */
    for (k = wd_least(k - 1, n / d - 1); k > 1; --k) {
        if (n % k == 0 && n / k > d) return n / k;
    }
    return n;
}

static void cut_columns(struct norm_kept_cut *best, const struct norm_groups_shape *s, bool any,
                        const struct wd_device *device)
{
    int64_t run = BYTES / s->size;
    int64_t unit = s->channels % run == 0 ? wd_lcm(s->each, run) : s->each;
    int64_t units = s->channels / unit;
    for (int64_t n = 1; n > 0; n = next_divisor(units, n)) {
        for (int64_t blocks = 1; blocks <= wd_norm_cluster_max(device); blocks *= 2) {
            offer_columns(best, s, n * unit, blocks, false, device);
            if (is_enough(best, any)) return;
        }
    }
    /* backward clusters that have whole lines are faster than blocks that meet */
    if (s->arrays > 1 && best->cost > 0.0 && best->tile * s->size >= LINE_BYTES) return;
    for (int64_t n = 1; device->grids_meet && n > 0; n = next_divisor(units, n)) {
        for (int64_t teams = 1; teams <= teams_most(device); ++teams) {
            offer_columns(best, s, n * unit, device->multiprocessors * RESIDENT / teams, true,
                          device);
            if (is_enough(best, any)) return;
        }
    }
}

static bool search(struct norm_kept_cut *best, const struct norm_groups_shape *s, bool any,
                   const struct wd_device *device)
{
    memset(best, 0, sizeof *best);
    if (s->columns) cut_columns(best, s, any, device);
    else cut_planes(best, s, any, device);
    return best->cost > 0.0;
}

bool norm_kept_cut(struct norm_kept_cut *best, const struct norm_groups_shape *s,
                   const struct wd_device *device)
{
    return search(best, s, false, device);
}

bool norm_kept_fits(const struct norm_groups_shape *s, const struct wd_device *device)
{
    struct norm_kept_cut c;
    return search(&c, s, true, device);
}
