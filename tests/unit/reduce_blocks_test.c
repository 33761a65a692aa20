/* SPDX-License-Identifier: Apache-2.0
 *
 * How the GPU engines of reduce cut their work, for devices that are only described: blocks and segments as they are
 * emitted, walked as the kernels walk them. Every term of every output is one segment's, every segment has some,
 * scratch is as much as is written, and there are as many blocks as the comments say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reduce_problems.h"

enum {
    TURNS = 5000,
    WARP = 32,
    CLUSTERS = 342, /* ids of engines */
    PIECES = 343,
    ROWS = 340,
    COLUMNS = 341,
    LITTLE = 2 << 20,        /* bytes of x, up to which clusters join segments */
    AT_ONCE = 4,             /* blocks of 256 threads a processor */
    BLOCK_BYTES = 128 << 10, /* that pay for another */
    BETTER = 25,             /* percent that another wave is to fill more */
    WALKED_LOG2 = 20,        /* elements of which all are looked at */
    LOOKS = 100,             /* of larger problems */
};

/* ---- What blocks read ---- */

/* Blocks have `owners` each, of `count`: outputs, or runs of them. What an owner has to read is `units`, of
 * which a segment has `per`. */
struct walk {
    enum { LANES, SHORT, BLOCKS, TILES, RUNS, ONES, RANKS } kind;
    const struct reduce_vector_args *a;
    int64_t blocks, owners, count, units, segments, per;
    int64_t run;   /* elements that are loaded together; of columns: outputs of a thread */
    int64_t lanes; /* of a tile */
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static struct walk walk_of(const struct wd_reduce_space *s)
{
    const struct reduce_vector_args *a = &launched.of[0].a;
    const char *symbol = launched.of[0].symbol;
    const int64_t threads = launched.of[0].threads;
    const bool by_block = a->lanes > WARP;
    struct walk w = {.a = a,
                     .blocks = launched.of[0].blocks,
                     .owners = by_block ? 1 : threads / wd_most(a->lanes, 1),
                     .count = a->outputs,
                     .units = a->units,
                     .segments = a->segments,
                     .per = a->per_segment,
                     .run = s->elements,
                     .lanes = by_block ? WARP : a->lanes};
    if (begins(symbol, "wd_reduce_short_")) {
        w.kind = SHORT;
        w.owners = a->block_rows;
        w.units = w.per = 1;
    } else if (begins(symbol, "wd_reduce_rows_")) {
        w.kind = by_block ? BLOCKS : LANES;
    } else if (begins(symbol, "wd_reduce_pieces_")) {
        w.kind = TILES;
    } else if (begins(symbol, "wd_reduce_cluster_")) {
        w.kind = RANKS;
        w.owners = w.per = 1;
        w.units = w.segments = REDUCE_CLUSTER_MOST;
    } else {
        w.kind = begins(symbol, "wd_reduce_columns_runs_") ? RUNS : ONES;
        w.owners = a->lanes;
        w.count = a->positions;
        if (w.kind == ONES) w.run = 1;
    }
    return w;
}

struct span {
    int64_t begin, end; /* in x */
};

static struct span within(int64_t start, int64_t begin, int64_t end, int64_t length)
{
    begin = wd_clamp(begin, 0, length);
    return (struct span){start + begin, start + wd_most(begin, wd_least(end, length))};
}

/* The elements that kernels take as unit `unit` of `owner`: reduce_rows.cu, reduce_pieces.cu, reduce_columns.cu,
 * reduce_cluster.cu. */
static struct span span_of(const struct walk *w, int64_t owner, int64_t unit)
{
    const struct reduce_vector_args *a = w->a;
    const bool columns = w->kind == RUNS || w->kind == ONES;
    const int64_t k01 = columns ? owner / a->by_run.divisor : owner, k1 = a->by_k1.divisor;
    const int64_t base = k01 / k1 * a->slice + k01 % k1 * a->line, run = w->run;
    const int64_t of = columns ? a->by_r1.divisor : a->by_run.divisor;
    int64_t start, before, at;
    if (w->kind == SHORT) return within(owner * a->line, 0, a->line, a->line);
    if (w->kind == RANKS) {
        const int64_t head = wd_least(a->line, (run - (a->shift + base) % run) % run);
        const int64_t runs = (a->line - head) / run, each = wd_ceil_div(runs, w->units);
        const int64_t first = wd_least(unit * each, runs), end = wd_least((unit + 1) * each, runs);
        return within(base, unit == 0 ? 0 : head + first * run,
                      unit == w->units - 1 ? a->line : head + end * run, a->line);
    }
    start = base + unit / of * a->piece;
    if (columns) {
        at = start + owner % a->by_run.divisor * run + unit % of * a->pitch;
        if (a->joined) return within(0, at - a->shift, at - a->shift + run, a->total);
        return (struct span){at, at + run};
    }
    before = (a->shift + start) % run;
    if (w->kind == TILES) {
        const int64_t tile = REDUCE_PIECE_RUNS * w->lanes * run;
        at = unit % of * tile - before;
        return within(start, at, at + tile, a->line);
    }
    assert_true(!a->whole_rows || (before == 0 && w->units * run == a->line));
    at = unit % of * run - before;
    return within(start, at, at + run, a->line);
}

/* Which unit of which owner has element e, by where it lies. */
static void find(const struct walk *w, const struct wd_reduce_space *s, int64_t e, int64_t *owner,
                 int64_t *unit)
{
    const struct reduce_vector_args *a = w->a;
    const int64_t r0 = e / (s->k1 * s->r1 * s->k2) % s->r0, r1 = e / s->k2 % s->r1;
    const int64_t k0 = e / (s->r0 * s->k1 * s->r1 * s->k2), k1 = e / (s->r1 * s->k2) % s->k1;
    const int64_t begin = (a->shift + e - r1) % w->run; /* of rows */
    *owner = k0 * s->k1 + k1;
    *unit = 0;
    if (a->joined) {
        *unit = (e + a->shift) / a->pitch;
        *owner = (e + a->shift) % a->pitch / w->run;
    } else if (w->kind == RUNS || w->kind == ONES) {
        *unit = r0 * s->r1 + r1;
        *owner = *owner * (s->k2 / w->run) + e % s->k2 / w->run;
    } else if (w->kind == TILES) {
        *unit = r0 * a->by_run.divisor + (begin + r1) / (w->run * w->lanes * REDUCE_PIECE_RUNS);
    } else if (w->kind == RANKS) {
        while (*unit < w->units - 1 && span_of(w, *owner, *unit).end <= e) *unit += 1;
    } else if (w->kind != SHORT) {
        *unit = r0 * a->by_run.divisor + (begin + r1) / w->run;
    }
}

/* The output of an element, by the shape alone. */
static int64_t output_of(const struct shape *s, int64_t e)
{
    const int64_t *d = s->dim;
    const int64_t k2 = e % d[4], k1 = e / d[4] / d[3] % d[2], k0 = e / d[4] / d[3] / d[2] / d[1];
    return (k0 * d[2] + k1) * d[4] + k2;
}

/* Of neighbours, by the first and the last. */
static void check_span(const struct walk *w, const struct shape *shape, struct span span,
                       int64_t owner)
{
    const bool columns = w->kind == RUNS || w->kind == ONES;
    const int64_t most = span.end - span.begin - 1, first = columns ? owner * w->run : owner;
    if (most < 0 || w->a->joined) return;
    if (w->kind == RUNS) assert_true((w->a->shift + span.begin) % w->run == 0);
    assert_true(output_of(shape, span.begin) == first);
    assert_true(output_of(shape, span.end - 1) == first + (columns ? most : 0));
}

static void check_all(const struct walk *w, const struct shape *shape)
{
    unsigned char *taken = calloc((size_t)w->a->total, 1);
    int64_t once = 0;
    assert_non_null(taken);
    for (int64_t block = 0; block < w->blocks; ++block) {
        const int64_t tile = block / w->segments, segment = block % w->segments;
        const int64_t end = wd_least((segment + 1) * w->per, w->units);
        for (int64_t i = 0; i < w->owners; ++i) {
            const int64_t owner = tile * w->owners + i;
            if (owner >= w->count) continue;
            for (int64_t unit = segment * w->per; unit < end; ++unit) {
                const struct span span = span_of(w, owner, unit);
                assert_true(span.begin >= 0 && span.end <= w->a->total);
                check_span(w, shape, span, owner);
                for (int64_t e = span.begin; e < span.end; ++e) taken[e] += 1;
            }
        }
    }
    for (int64_t e = 0; e < w->a->total; ++e) once += taken[e] == 1;
    free(taken);
    assert_int_equal(once, w->a->total);
}

/* Some elements of many: the first, the last and what chance finds. */
static void check_some(const struct walk *w, const struct wd_reduce_space *s,
                       const struct shape *shape)
{
    for (int i = 0; i < LOOKS; ++i) {
        const int64_t e = i == 0   ? 0
                          : i == 1 ? s->total - 1
                          : i % 2  ? any(0, s->total - 1)
                                   : any(s->total - wd_least(s->total, 10000), s->total - 1);
        int64_t owner, unit;
        struct span span;
        find(w, s, e, &owner, &unit);
        assert_in_range(owner, 0, w->count - 1);
        assert_in_range(unit, 0, w->units - 1);
        assert_true(unit / w->per < w->segments);
        span = span_of(w, owner, unit);
        assert_true(span.begin <= e && e < span.end && span.begin >= 0 && span.end <= s->total);
        check_span(w, shape, span, owner);
        /* its neighbours have others */
        if (unit > 0) assert_false(span_of(w, owner, unit - 1).end > e && !w->a->joined);
    }
}

/* ---- What holds of all cuts ---- */

static void check_blocks(const struct walk *w)
{
    const bool joins = launched.of[0].cluster > 1;
    assert_true(w->owners >= 1 && w->segments >= 1 && w->per >= 1);
    assert_int_equal(w->blocks, wd_ceil_div(w->count, w->owners) * w->segments);
    assert_true(w->blocks <= INT32_MAX);
    assert_true(w->segments * w->per >= w->units);
    /* a cluster's blocks are as many as there are, and a segment of none has nothing to read */
    if (!joins) assert_true((w->segments - 1) * w->per < w->units);
    if (joins && w->kind != RANKS) {
        assert_int_equal(w->segments, launched.of[0].cluster);
        assert_int_equal(w->a->cluster, w->segments);
    }
    /* of joined rows columns fall on outputs in turn */
    if (w->a->joined) assert_int_equal(w->a->pitch % w->a->outputs, 0);
    assert_int_equal(launched.of[0].threads % WARP, 0);
    assert_true(launched.of[0].threads <= (w->kind == RANKS ? 1024 : REDUCE_THREADS));
    assert_true((w->a->lanes & (w->a->lanes - 1)) == 0);
    if (w->kind != RANKS) assert_int_equal(1 << w->a->lane_bits, w->a->lanes);
    /* one tile after the other, by all warps of a block */
    if (w->kind == TILES && w->segments > 1) {
        assert_int_equal(w->per % (REDUCE_THREADS / WARP), 0);
    }
}

/* Bytes that `conclude` and reduce_short lay out. */
static int64_t shared_of(const struct walk *w, const struct wd_reduce_space *s)
{
    const bool columns = w->kind == RUNS || w->kind == ONES || w->a->joined;
    const int64_t threads = launched.of[0].threads, across = columns ? w->a->lanes : 1;
    const int64_t slices = across < WARP ? threads / WARP : threads / across;
    const int64_t each = columns ? w->run : 1, parts = slices * each * (across + 1);
    if (w->kind == RANKS || (!columns && w->kind != SHORT && w->a->lanes <= WARP)) return 0;
    if (w->kind == SHORT) {
        const int64_t most = w->a->block_rows * w->a->line + w->run - 1;
        return wd_ceil_div(most, w->run) * REDUCE_BYTES;
    }
    if (w->a->joined) assert_true(s->outputs <= parts);
    return (parts + across * each) * s->state;
}

static void check_finish(const struct walk *w)
{
    const struct reduce_vector_args *a = &launched.of[1].a;
    const bool due = w->segments > 1 && launched.of[0].cluster == 1;
    const int64_t down = launched.of[1].threads / wd_most(a->lanes, 1);
    assert_int_equal(launched.count, due ? 2 : 1);
    if (!due) return;
    assert_true(begins(launched.of[1].symbol, "wd_reduce_finish_"));
    assert_int_equal(a->units, w->segments);
    assert_int_equal(launched.of[1].blocks, wd_ceil_div(a->outputs, a->lanes));
    assert_in_range(wd_ceil_div(a->units, down), 1, 8);
    assert_int_equal(launched.of[1].threads, REDUCE_THREADS);
}

/* Places of a device's waves that blocks fill, in percent. */
static int64_t filled(int64_t blocks, int64_t wave)
{
    return 100 * blocks / (wd_ceil_div(blocks, wave) * wave);
}

/* No more blocks than comments say, of tiles that are too few. */
static void check_wave(const struct walk *w, const struct wd_reduce_space *s, int processors)
{
    const int64_t tiles = w->blocks / w->segments, bytes = s->total * s->bytes;
    const bool sums = s->class == WD_REDUCE_SUM && w->kind == TILES && s->outputs > 1;
    const bool fills =
        sums || (w->kind >= RUNS && bytes > LITTLE && s->bytes == 2 && s->class == WD_REDUCE_SUM);
    int64_t most = (int64_t)processors * (sums ? 5 : WD_REDUCE_BLOCKS);
    if (w->segments == 1 || w->kind == RANKS) return;
    most = wd_clamp(bytes / BLOCK_BYTES, (int64_t)AT_ONCE * processors, most);
    if (bytes <= LITTLE) most = (int64_t)AT_ONCE * processors;
    else assert_true(tiles < AT_ONCE * processors && launched.of[0].cluster == 1);
    if (w->kind == TILES && !sums) return; /* whole turns: maybe a few more */
    if (fills && w->kind != TILES) most = (int64_t)AT_ONCE * processors;
    /* where that is better, one more wave or two */
    assert_true(w->blocks <= 3 * most);
    if (!fills && w->blocks > most)
        print_message("kind %d blocks %ld most %ld tiles %ld bytes %ld class %d proc %d outputs "
                      "%ld clu %ld\n",
                      w->kind, w->blocks, most, tiles, bytes, s->class, processors, s->outputs,
                      launched.of[0].cluster);
    if (!fills) assert_true(w->blocks <= most);
    else if (w->blocks > most) assert_true(filled(tiles * (most / tiles), most) <= 100 - BETTER);
}

static int64_t workspace_of(const struct wd_engine *engine, const struct wd_problem *problem)
{
    return engine->workspace ? engine->workspace(problem) : 0;
}

/* False where the engine does not take it. */
static bool check(int id, struct shape shape, const struct wd_device *device, struct walk *w)
{
    const struct wd_engine *engine = wd_engine_by_id(id);
    int64_t written = 0, workspace;
    assert_non_null(engine);
    /* on the boundary and off it: which, scratch does not know */
    for (int off = 0; off < 2; ++off) {
        const int shift = shape.shift;
        struct wd_problem problem;
        struct wd_reduce_space s;
        if (!off) shape.shift = 0;
        problem = problem_of(&shape, device);
        if (!emit(engine, &problem)) return false;
        s = wd_reduce_gpu_see(&problem);
        *w = walk_of(&s);
        check_blocks(w);
        check_finish(w);
        check_wave(w, &s, device->multiprocessors);
        assert_true(shared_of(w, &s) <= launched.of[0].shared);
        assert_true(launched.of[0].shared <= REDUCE_SHARED);
        if (s.total <= (int64_t)1 << any(10, WALKED_LOG2)) check_all(w, &shape);
        check_some(w, &s, &shape);
        workspace = workspace_of(engine, &problem);
        if (launched.count > 1) {
            written = wd_most(written, w->segments * s.outputs * s.state);
            assert_true(w->segments * s.outputs * s.state <= workspace);
        }
        shape.shift = shift;
        if (off) assert_true(shift == 0 || written > 0 || workspace == 0);
    }
    return true;
}

/* ---- Random shapes ---- */

static const int engines[] = {CLUSTERS, PIECES, ROWS, COLUMNS};

static void test_random(void **state)
{
    int taken[4] = {0}, kinds[RANKS + 1] = {0}, cut = 0, clusters = 0, joined = 0, large = 0;
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        const struct shape shape = any_shape((int)any(0, turn % 2 ? 36 : WALKED_LOG2));
        const struct wd_device *device = &devices[turn % DEVICES];
        for (int i = 0; i < 4; ++i) {
            struct walk w;
            if (!check(engines[i], shape, device, &w)) continue;
            taken[i] += 1;
            kinds[w.kind] += 1;
            joined += w.a->joined;
            cut += launched.count > 1;
            clusters += w.kind != RANKS && launched.of[0].cluster > 1;
            large += w.a->total > INT32_MAX;
        }
    }
    for (int i = 0; i < 4; ++i) assert_true(taken[i] > TURNS / 100);
    for (int kind = 0; kind <= RANKS; ++kind) assert_true(kinds[kind] > TURNS / 100);
    assert_true(cut > TURNS / 20 && clusters > TURNS / 100 && joined > 20 && large > 20);
}

/* ---- Choices ---- */

/* The first launch's blocks for an engine on 132 processors. */
static int64_t blocks_of(int id, int op, int dtype, int64_t k0, int64_t r0, int64_t k1, int64_t r1,
                         int64_t k2)
{
    const struct shape shape = {.dim = {k0, r0, k1, r1, k2}, .op = op, .dtype = dtype};
    struct walk w;
    if (!check(id, shape, &devices[0], &w)) fail_msg("%d does not take it", id);
    return w.blocks;
}

static void test_choices(void **state)
{
    const int add = CUDNN_REDUCE_TENSOR_ADD, max = CUDNN_REDUCE_TENSOR_MAX;
    const int f16 = CUDNN_DATA_HALF, f32 = CUDNN_DATA_FLOAT;
    const int64_t area = 112 * 112;
    (void)state;
    /* sums of two bytes and of pieces: what 132 processors have at once */
    assert_int_equal(blocks_of(COLUMNS, add, f16, 1, 1, 1, 128 * area, 64), 4 * 132);
    assert_int_equal(blocks_of(PIECES, add, f16, 1, 128, 64, area, 1), 5 * 128);
    assert_int_equal(blocks_of(PIECES, add, f32, 1, 64, 3, 512 * 512 + 4, 1), 5 * 132 - 12);
    /* several waves: of fp32, of one output, and where there is less than what pays for all of them */
    assert_int_equal(blocks_of(COLUMNS, add, f32, 1, 1, 1, 64 * area, 64), 12 * 132 - 16);
    assert_int_equal(blocks_of(PIECES, add, f32, 1, 1, 1, 64 * 64 * area + 4, 1), 12 * 132 - 15);
    assert_int_equal(blocks_of(ROWS, max, f16, 1, 1, 1, 8192 * 8192, 1), 1024);
    /* nothing is cut: many outputs, many rows of a warp each, a cluster each */
    assert_int_equal(blocks_of(COLUMNS, max, f16, 16, 1, 1, 21, 512 * 512), 2048);
    assert_int_equal(blocks_of(ROWS, max, f32, 1, 1, 65536, 1000, 1), 65536 / 8);
    assert_int_equal(blocks_of(CLUSTERS, add, f32, 8, 1, 1, 1 << 18, 1), 8 * 8);
    /* more elements than 32 bits count: one output, or as many as there may be */
    assert_int_equal(blocks_of(ROWS, add, f16, 1, 1, 1, (int64_t)1 << 32, 1), 12 * 132);
    assert_int_equal(blocks_of(PIECES, add, f16, 1, 3, 2, (1 << 30) - 64, 1), 5 * 132);
    assert_int_equal(blocks_of(COLUMNS, add, f32, 1, 1, 1, (1 << 29) - 1, 64), 12 * 132);
    assert_int_equal(blocks_of(COLUMNS, max, f16, 1, 1, 1, 8, (1 << 30) - 8), 524288);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
