/* SPDX-License-Identifier: Apache-2.0
 *
 * How the engines of norms over rows cut their work, for devices that are only described: every row is
 * looked at once and every column has a thread, the ring has room, and clusters that draw rows know of no
 * more than they keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sizes.h"
#include "ops/norm/norm_rows.h"
#include "ops/shares.h"
#include "unit/devices.h"

enum {
    TURNS = 12000,
    WARP = 32,
    SHORT = 256,         /* columns: forward, shorter rows with edges are never asked for */
    TWO_BYTES = 8,       /* elements of a unit */
    FIXED = 10 << 10,    /* of shared memory: what kernels have beside the ring, at most */
    JOINED_WARPS = 16,   /* of a block, in kernels by bulk copies */
    CLUSTER_WARPS = 128, /* of a cluster, in others */
    ODD_PLACES =
        2, /* units of singles of a group (norm_rows_odd.cuh), of a warp where rows are drawn */
    ODD_GROUPS = 4, /* of a block, at most (norm_rows_odd_drawn.cuh) */
    DRAWN = 16,     /* rows that a cluster knows of (norm_rows_drawn.cuh) */
};

/* In the order of `way`: columns of a thread, and threads of the backward kernels. */
enum { WAY_8, WAY_24, WAY_32, WAY_SQUARES, WAY_STRIPS, WAY_STRIPS_16, WAY_40, WAYS };
static const int64_t columns_of[WAYS] = {8, 24, 32, 32, 32, 16, 40};
static const int64_t threads_back[WAYS] = {640, 512, 384, 512, 512, 512, 0};
static const int64_t threads_held[WAYS] = {0, 384, 384, 512, 0, 0, 0};

static const struct wd_device devices[] = {DEVICE_NEW(90, 132),  DEVICE_NEW(90, 114),
                                           DEVICE_NEW(100, 148), DEVICE_NEW(90, 2),
                                           DEVICE_SMALL(2),      DEVICE_OLD(108)};
enum { DEVICES = sizeof devices / sizeof devices[0] };

/* ---- Problems ---- */

struct shape {
    enum wd_op op;
    int mode;
    int dtype;
    bool given; /* inference: statistics are */
    bool dbias;
    bool edges;
    int64_t rows;
    int64_t length;
    int64_t each; /* elements of a unit */
};

static void bind(struct wd_single *single, int slot, int dtype)
{
    const struct wd_tensor t = {.dtype = dtype, .rank = 2, .vect_count = 1, .dim = {1, 1}};
    wd_single_bind(single, slot, &t, NULL, NULL);
}

static bool cut(struct wd_norm_cut *c, const struct shape *s, const struct wd_device *device)
{
    struct wd_single single;
    const struct wd_norm_rows rows = {.rows = s->rows, .length = s->length};
    const struct wd_problem problem = {
        .graph = &single.graph, .node = &single.node, .device = device};
    wd_single_init(&single, s->op);
    single.node.attr.norms.mode = s->mode;
    bind(&single, 0, s->dtype);
    if (s->given) bind(&single, NORM_INFER_INV_STD, CUDNN_DATA_FLOAT);
    if (s->dbias) bind(&single, NORM_GRAD_DBIAS, CUDNN_DATA_FLOAT);
    return wd_norm_rows_cut(c, &problem, &rows, s->edges);
}

static struct shape layer_norm(enum wd_op op, int dtype, int64_t rows, int64_t length)
{
    return (struct shape){.op = op,
                          .mode = CUDNN_LAYER_NORM,
                          .dtype = dtype,
                          .dbias = op == WD_OP_NORM_BACKWARD,
                          .rows = rows,
                          .length = length,
                          .each = dtype == CUDNN_DATA_FLOAT ? TWO_BYTES / 2 : TWO_BYTES};
}

/* ---- What holds of all cuts ---- */

static bool is_backward(const struct shape *s)
{
    return s->op == WD_OP_NORM_BACKWARD;
}

static bool by_strips(const struct wd_norm_cut *c)
{
    return c->way == WAY_STRIPS || c->way == WAY_STRIPS_16;
}

/* Counts the rows first, first + step, ..., below `end`. */
static void take(unsigned char *taken, int64_t first, int64_t step, int64_t end)
{
    for (int64_t row = first; row < end; row += step) taken[row] += 1;
}

/* As odd_drawn_walk does it. */
static void take_odd(const struct wd_norm_cut *c, const struct shape *s, unsigned char *taken)
{
    int64_t blocks = c->step / c->classes;
    for (int64_t of_class = 0; of_class < c->classes; ++of_class) {
        int64_t rows = (s->rows - of_class + c->classes - 1) / c->classes;
        int64_t own = c->later * blocks * c->groups;
        assert_true(own <= rows);
        for (int64_t row = 0; row < own; ++row) taken[of_class + row * c->classes] += 1;
        take(taken, of_class + own * c->classes, c->classes, s->rows);
    }
}

/* As the kernels do it: strip_rows_of, drawn_walk, and what begins at a block's group and goes on by steps. */
static void take_rows(const struct wd_norm_cut *c, const struct shape *s, unsigned char *taken)
{
    if (c->draws && c->odd) {
        take_odd(c, s, taken);
        return;
    }
    if (c->draws) {
        assert_true(c->later * c->step <= s->rows);
        for (int64_t id = 0; id < c->clusters; ++id) {
            take(taken, id, c->step, c->later * c->step);
        }
        take(taken, c->later * c->step, 1, s->rows);
        return;
    }
    for (int64_t id = 0; by_strips(c) && id < c->clusters; ++id) {
        int64_t row = c->early + (id - c->first) * c->later;
        if (id < c->first) take(taken, id, c->first, c->early);
        else take(taken, row, 1, wd_least(s->rows, row + c->later));
        assert_true(id < c->first || row < s->rows);
    }
    for (int64_t slot = 0; !by_strips(c) && slot < c->clusters * c->groups; ++slot) {
        if (!c->odd || slot < c->step) take(taken, slot, c->step, s->rows);
    }
}

static void check_rows(const struct wd_norm_cut *c, const struct shape *s)
{
    unsigned char *taken = calloc((size_t)s->rows, 1);
    int64_t once = 0;
    assert_non_null(taken);
    assert_true(c->clusters >= 1 && c->groups >= 1 && c->step >= 1);
    assert_true(c->clusters * c->groups < 1 << 20);
    if (by_strips(c)) assert_true(c->groups == 1 && c->first <= c->clusters && c->early <= s->rows);
    take_rows(c, s, taken);
    for (int64_t row = 0; row < s->rows; ++row) once += taken[row] == 1;
    free(taken);
    assert_int_equal(once, s->rows);
    /* all of a group's rows begin equally far behind a boundary */
    if (c->odd && c->step < s->rows) assert_int_equal(c->step * s->length % s->each, 0);
}

static void check_columns(const struct wd_norm_cut *c, const struct shape *s)
{
    int64_t columns = columns_of[c->way];
    int64_t own = c->share * s->each; /* of a block */
    assert_true(c->lanes % WARP == 0 || (c->lanes < WARP && (c->lanes & (c->lanes - 1)) == 0));
    if (c->odd) { /* whole units between boundaries, of any begin */
        assert_true(c->cluster * c->share >= s->length / s->each);
        assert_true(c->share <= c->lanes * (columns / s->each) && c->lanes >= WARP);
    } else if (c->edges) {
        assert_true(c->cluster == 1 && own >= s->length && c->lanes * columns >= s->length);
    } else if (c->posts && is_backward(s) && c->way == WAY_32) {
        /* the last block may have fewer warps */
        assert_true((c->cluster - 1) * own < s->length && c->cluster * own >= s->length);
        assert_int_equal(s->length % (WARP * columns), 0);
        assert_int_equal(c->lanes * columns, own);
    } else {
        assert_int_equal(c->cluster * own, s->length);
        if (!c->ragged) assert_int_equal(c->lanes * columns, own);
        else assert_int_equal((c->lanes - WARP) * columns + c->left, own);
    }
    if (c->ragged) {
        assert_true(!is_backward(s) && c->left > 0 && c->left <= WARP * columns);
        assert_int_equal(c->left % s->each, 0);
    }
}

static void check_blocks(const struct wd_norm_cut *c, const struct shape *s,
                         const struct wd_device *device)
{
    int64_t threads = c->lanes * c->groups;
    assert_true(threads % WARP == 0);
    assert_true(threads <= (is_backward(s) ? threads_back[c->way] : JOINED_WARPS * WARP));
    if (c->held) assert_true(threads <= threads_held[c->way]);
    assert_true(c->lanes <= WARP || c->groups <= NORM_ROWS_GROUPS);
    assert_true(c->cluster == 1 || c->groups == 1);
    assert_true((c->cluster & (c->cluster - 1)) == 0 || (c->posts && is_backward(s)));
    if (c->posts) { /* all are there at once */
        assert_true(device->grids_meet && !c->edges && c->cluster <= NORM_ROWS_POSTING);
        assert_true(c->lanes > WARP); /* who is alone says nothing */
        assert_true(c->clusters * c->cluster <= device->multiprocessors);
    } else {
        assert_true(c->cluster <= wd_norm_cluster_max(device) ||
                    (!is_backward(s) && !c->edges && c->cluster <= wd_share_most_blocks(device)));
        /* where they do not come by bulk copies, places for what warps find */
        assert_true((!is_backward(s) && !c->edges) ||
                    c->cluster * c->lanes / WARP <= CLUSTER_WARPS);
    }
    assert_true(is_backward(s) || c->way == (c->wide ? WAY_40 : WAY_32));
    assert_true(!by_strips(c) || (c->cluster > 1 && !c->posts && !c->edges));
}

/* Bytes of a place of the ring, as the kernels lay it. */
static int64_t place_bytes(const struct wd_norm_cut *c, const struct shape *s)
{
    int64_t units = c->lanes * (columns_of[c->way] / s->each);
    if (c->odd) units += c->draws || c->held ? ODD_PLACES * c->lanes / WARP : ODD_PLACES;
    else if (c->edges) units = c->share + 1;
    return units * c->groups * NORM_ROWS_UNIT * (is_backward(s) ? 2 : 1);
}

static void check_ring(const struct wd_norm_cut *c, const struct shape *s,
                       const struct wd_device *device)
{
    bool once = c->clusters * c->groups >= s->rows;
    int64_t part = c->cluster > 1 ? c->share * s->each : s->length;
    assert_true(c->ahead >= 1 && c->ahead <= NORM_ROWS_AHEAD_MAX);
    assert_true(c->held ? c->lag == 0 : c->lag >= 1 && c->lag <= 2);
    assert_true(c->ring <= NORM_ROWS_AHEAD_MAX + 1);
    /* a row is asked for when the one that has its place was put */
    assert_true(once ? c->ring >= 1 : c->ring >= c->ahead + c->lag);
    assert_true(c->shared >= c->ring * place_bytes(c, s));
    if (is_backward(s)) /* sums of columns of rows side by side */
        assert_true(c->shared >= c->groups * part * (int64_t)sizeof(float));
    if (is_backward(s) && c->odd) /* from a boundary on */
        assert_true(c->shared >= c->groups * (part + s->each) * (int64_t)sizeof(float));
    assert_true(c->shared + FIXED <= device->shared_per_block);
}

/* Those of forty columns a thread are never many rows in a block, and the kernel never comes to draw where it may not. */
static void check_wide(const struct wd_norm_cut *c, const struct shape *s)
{
    assert_true(s->op != WD_OP_NORM_BACKWARD && !s->given && s->each == TWO_BYTES);
    assert_true(c->groups == 1 && !c->edges && !c->posts && c->ragged);
    if (!c->draws) assert_true(c->later > s->rows);
}

/* Only what norm_rows_drawn.cuh takes, and norm_rows_odd_drawn.cuh. */
static void check_draws(const struct wd_norm_cut *c, const struct shape *s)
{
    assert_true(s->op != WD_OP_NORM_BACKWARD && !s->given && s->each == TWO_BYTES);
    assert_true(c->edges == c->odd && !c->posts);
    if (c->odd) {
        assert_true(c->cluster == 1 && c->groups <= ODD_GROUPS && c->lag == 1);
        assert_true(c->classes <= s->each && c->step % c->classes == 0);
    } else {
        assert_true(c->groups == 1);
    }
    assert_true(c->later > c->ahead); /* the first is asked for, then told */
    assert_true(c->ahead + 2 * c->lag + 1 < DRAWN);
    assert_int_equal(c->step, c->clusters);
}

/* Of two bytes an element there are kernels of 32 columns a thread by posts, and else but held ones. */
static bool has_no_other_kernel(const struct wd_norm_cut *c, const struct shape *s)
{
    return is_backward(s) && s->each == TWO_BYTES && c->edges == c->odd && !c->posts &&
           (c->way == WAY_32 || c->way == WAY_SQUARES);
}

/* Only what norm_rows_held.cuh takes, and norm_rows_odd_held.cuh; 48 KB of a processor's rows, or they are asked for late. */
static void check_held(const struct wd_norm_cut *c, const struct shape *s,
                       const struct wd_device *device)
{
    int64_t threads = c->lanes * c->groups;
    int64_t blocks = wd_most(1, threads_held[c->way] / threads);
    assert_true(is_backward(s) && s->each == TWO_BYTES);
    assert_true(c->edges == c->odd && !c->posts && !by_strips(c) && c->lanes % WARP == 0);
    assert_true(c->late == (blocks * place_bytes(c, s) > 48 << 10));
    if (!c->odd) return;
    assert_true(c->way == WAY_32 || (c->way == WAY_SQUARES && wd_norm_cluster_max(device) > 1));
    assert_true(c->shared >= place_bytes(c, s) + threads / WARP * NORM_ROWS_ODD_ROOM);
}

static void check(const struct wd_norm_cut *c, const struct shape *s,
                  const struct wd_device *device)
{
    assert_true(c->way >= 0 && c->way < WAYS);
    check_blocks(c, s, device);
    check_columns(c, s);
    check_ring(c, s, device);
    if (c->wide) check_wide(c, s);
    if (c->held) check_held(c, s, device);
    else assert_false(c->late || has_no_other_kernel(c, s));
    if (c->draws) check_draws(c, s);
    check_rows(c, s);
}

/* ---- Random shapes ---- */

static int64_t any(int64_t low, int64_t high)
{
    return low + rand() % (high - low + 1);
}

/* One number after the other: in which order a call takes its arguments is the compiler's matter. */
static struct shape any_shape(void)
{
    static const enum wd_op ops[] = {WD_OP_NORM_TRAINING, WD_OP_NORM_INFERENCE, WD_OP_NORM_BACKWARD,
                                     WD_OP_NORM_BACKWARD};
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    enum wd_op op = ops[any(0, 3)];
    int dtype = types[any(0, 2)];
    int64_t rows = any(1, (int64_t)1 << any(0, 15));
    int64_t length = any(1, (int64_t)1 << any(0, 18));
    struct shape s = layer_norm(op, dtype, rows, length);
    int64_t multiple = (int64_t)1 << any(0, 13);
    if (any(0, 1)) s.mode = CUDNN_RMS_NORM;
    s.given = op == WD_OP_NORM_INFERENCE && any(0, 1);
    s.dbias = op == WD_OP_NORM_BACKWARD && any(0, 1);
    if (any(0, 3)) s.length = wd_ceil_div(s.length, multiple) * multiple;
    s.edges = s.length % s.each != 0 || any(0, 3) == 0;
    if (s.edges && op != WD_OP_NORM_BACKWARD) s.length += SHORT;
    return s;
}

static void test_random(void **state)
{
    int drawn = 0, strips = 0, tails = 0, posts = 0, odd = 0, ragged = 0, held = 0, late = 0;
    int odd_drawn = 0, odd_held = 0;
    int ways[WAYS] = {0}, held_of[WAYS] = {0};
    (void)state;
    srand(1);
    for (int turn = 0; turn < TURNS; ++turn) {
        const struct wd_device *device = &devices[turn % DEVICES];
        struct shape s = any_shape();
        struct wd_norm_cut c;
        if (!cut(&c, &s, device)) continue;
        check(&c, &s, device);
        ways[c.way] += 1;
        drawn += c.draws, posts += c.posts, odd += c.odd, ragged += c.ragged;
        odd_drawn += c.odd && c.draws, odd_held += c.odd && c.held;
        held += c.held, late += c.late, held_of[c.way] += c.held;
        strips += by_strips(&c), tails += by_strips(&c) && c.first < c.clusters;
    }
    for (int way = 0; way < WAYS; ++way) assert_true(ways[way] > 0);
    assert_true(drawn > 0 && tails > 0 && strips > tails && posts > 0 && odd > 0 && ragged > 0);
    assert_true(odd_drawn > 0 && odd_held > 0 && odd > odd_drawn + odd_held);
    assert_true(late > 0 && held > late && held_of[WAY_32] > 0 && held_of[WAY_SQUARES] > 0);
    assert_true(held_of[WAY_24] > 0 && held_of[WAY_24] < ways[WAY_24]);
}

/* Long rows of whole units in pairs of blocks, which random ones seldom are: many of them are drawn. */
static void test_pairs(void **state)
{
    int drawn = 0;
    (void)state;
    srand(2);
    for (int turn = 0; turn < TURNS / 4; ++turn) {
        const struct wd_device *device = &devices[turn % 4];
        int dtype = turn % 8 < 4 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
        int64_t rows = any(device->multiprocessors, 1 << 15);
        struct shape s = layer_norm(WD_OP_NORM_TRAINING, dtype, rows, 2 * WARP * WARP * any(1, 16));
        struct wd_norm_cut c;
        assert_true(cut(&c, &s, device));
        check(&c, &s, device);
        drawn += c.draws;
    }
    assert_true(drawn > TURNS / 16);
}

/* ---- Choices ---- */

/* What was fastest of gradients that stay in registers (ROWS.md). */
static void test_held(void **state)
{
    static const struct {
        int mode;
        int64_t rows, length;
        int way;
        bool held, late;
        int64_t cluster, groups;
    } list[] = {
        {CUDNN_LAYER_NORM, 131072, 1024, WAY_32, true, false, 1, 12},
        {CUDNN_LAYER_NORM, 32768, 4096, WAY_32, true, false, 1, 3},
        {CUDNN_LAYER_NORM, 16384, 8192, WAY_32, true, false, 2, 1},
        {CUDNN_LAYER_NORM, 65536, 768, WAY_24, true, false, 1, 12},
        {CUDNN_LAYER_NORM, 12192, 9984, WAY_24, false, false, 1, 1},
        {CUDNN_RMS_NORM, 32768, 4096, WAY_SQUARES, true, false, 1, 3},
        {CUDNN_RMS_NORM, 16384, 8192, WAY_SQUARES, true, true, 1, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        struct shape s =
            layer_norm(WD_OP_NORM_BACKWARD, CUDNN_DATA_BFLOAT16, list[i].rows, list[i].length);
        struct wd_norm_cut c;
        s.mode = list[i].mode;
        s.dbias = s.mode == CUDNN_LAYER_NORM;
        assert_true(cut(&c, &s, &devices[0]));
        check(&c, &s, &devices[0]);
        assert_int_equal(c.way, list[i].way);
        assert_int_equal(c.held, list[i].held);
        assert_int_equal(c.late, list[i].late);
        assert_int_equal(c.cluster, list[i].cluster);
        assert_int_equal(c.groups, list[i].groups);
        s.dtype = CUDNN_DATA_FLOAT, s.each = TWO_BYTES / 2;
        assert_true(cut(&c, &s, &devices[0]) && !c.held);
    }
}

static void test_draws(void **state)
{
    const struct wd_device *h200 = &devices[0];
    static const int narrow[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    struct wd_norm_cut c;
    struct shape s;
    (void)state;
    for (int i = 0; i < 2; ++i) {
        s = layer_norm(WD_OP_NORM_TRAINING, narrow[i], 4096, 32768);
        assert_true(cut(&c, &s, h200));
        check(&c, &s, h200);
        assert_true(c.draws && c.cluster == 2 && c.clusters * c.cluster <= 132);
        s.mode = CUDNN_RMS_NORM;
        assert_true(cut(&c, &s, h200) && c.draws);
        s.op = WD_OP_NORM_INFERENCE;
        assert_true(cut(&c, &s, h200) && c.draws);
        /* nothing to wait for */
        s.given = true;
        assert_true(cut(&c, &s, h200) && !c.draws);
    }
    /* rows that one block could have */
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 8192, 16384);
    assert_true(cut(&c, &s, h200) && c.draws && c.cluster == 2);
    check(&c, &s, h200);
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 9360, 14336);
    assert_true(cut(&c, &s, h200) && c.draws && c.cluster == 1 && !c.wide);
    check(&c, &s, h200);
    s.mode = CUDNN_RMS_NORM;
    assert_true(cut(&c, &s, h200) && c.draws && c.cluster == 2 && !c.wide);
    s.rows = 1900;
    assert_true(cut(&c, &s, h200) && !c.draws && c.cluster == 1);
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_FLOAT, 4096, 32768);
    assert_true(cut(&c, &s, h200) && !c.draws);
    check(&c, &s, h200);
    s = layer_norm(WD_OP_NORM_BACKWARD, CUDNN_DATA_BFLOAT16, 4096, 32768);
    assert_true(cut(&c, &s, h200) && !c.draws);
    check(&c, &s, h200);
    /* clusters of four, but where their last warps have less */
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 2048, 65536);
    assert_true(cut(&c, &s, h200) && c.draws && c.cluster == 4);
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 2688, 50304);
    assert_true(cut(&c, &s, h200) && !c.draws && c.cluster == 4 && c.ragged && c.ragged);
    check(&c, &s, h200);
    /* too few to be worth it, and larger clusters */
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 512, 32768);
    assert_true(cut(&c, &s, h200) && !c.draws);
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 1024, 131072);
    assert_true(cut(&c, &s, h200) && !c.draws && c.cluster == 8);
}

/* Rows that were plain before blocks drew them, and those of clusters of sixteen (ROWS.md). */
static void test_middle_and_large(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132), few = DEVICE_NEW(90, 114);
    static const struct {
        int64_t rows, length, cluster, lanes;
        bool wide, draws;
    } list[] = {
        {52424, 2560, 1, 96, false, true},    {32768, 4096, 2, 64, false, true},
        {26208, 5120, 1, 128, true, true},    {21840, 6144, 1, 160, true, true},
        {16384, 8192, 2, 128, false, true},   {600, 4096, 1, 128, false, false},
        {512, 262144, 16, 512, false, false}, {64, 147456, 16, 288, false, false},
    };
    struct wd_norm_cut c;
    struct shape s;
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, list[i].rows, list[i].length);
        assert_true(cut(&c, &s, &h200));
        check(&c, &s, &h200);
        assert_int_equal(c.cluster, list[i].cluster);
        assert_int_equal(c.lanes, list[i].lanes);
        assert_int_equal(c.wide, list[i].wide);
        assert_int_equal(c.draws, list[i].draws);
        assert_true(c.groups == 1 && !c.posts);
        if (c.cluster == 16) assert_int_equal(c.clusters, 7);
    }
    /* few, and where no part of the chip surely has sixteen processors: posts; of so few that the whole chip has each none */
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 27, 262144);
    assert_true(cut(&c, &s, &h200) && c.posts);
    s.rows = 512;
    assert_true(cut(&c, &s, &few) && c.posts);
    s.rows = 8;
    assert_false(cut(&c, &s, &h200));
}

/* Rows off the boundaries that are drawn (ROWS.md), and what is not. */
static void test_odd(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132);
    static const struct {
        int64_t rows, length, classes, lanes, groups, clusters;
    } list[] = {
        {65537, 1023, 8, 32, 4, 528},  {65536, 1024, 1, 32, 4, 528},  {65536, 1028, 2, 32, 4, 528},
        {32771, 2047, 8, 64, 2, 528},  {32771, 4098, 4, 128, 1, 528}, {32771, 3001, 8, 96, 1, 656},
        {16383, 8191, 8, 256, 1, 264}, {8191, 16381, 8, 512, 1, 128},
    };
    struct wd_norm_cut c;
    struct shape s;
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, list[i].rows, list[i].length);
        s.edges = true;
        assert_true(cut(&c, &s, &h200));
        check(&c, &s, &h200);
        assert_true(c.odd && c.draws && c.cluster == 1);
        assert_int_equal(c.classes, list[i].classes);
        assert_int_equal(c.lanes, list[i].lanes);
        assert_int_equal(c.groups, list[i].groups);
        assert_int_equal(c.clusters, list[i].clusters);
        s.op = WD_OP_NORM_INFERENCE, s.given = true;
        assert_true(cut(&c, &s, &h200) && c.odd && !c.draws);
    }
    /* short, long, few, single precision, and where there are no bulk copies */
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, 131071, 511);
    s.edges = true;
    assert_true(cut(&c, &s, &h200) && c.odd && !c.draws);
    s.rows = 4000, s.length = 16393;
    assert_true(cut(&c, &s, &h200) && c.odd && !c.draws && c.cluster == 2);
    s.rows = 16 * 528 - 1, s.length = 4097;
    assert_true(cut(&c, &s, &h200) && c.odd && !c.draws);
    s.rows = 16 * 528;
    assert_true(cut(&c, &s, &h200) && c.odd && c.draws);
    s.dtype = CUDNN_DATA_FLOAT, s.each = TWO_BYTES / 2;
    assert_true(cut(&c, &s, &h200) && c.odd && !c.draws);
    s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_HALF, 32771, 4097);
    s.edges = true;
    assert_true(cut(&c, &s, &devices[DEVICES - 1]) && c.odd && !c.draws);
}

/* Gradients of layer norm by posts: the most rows at once, the last block with fewer warps, also where shared memory is small. */
static void test_posts_back(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132), old = DEVICE_OLD(108),
                                  newer = DEVICE_NEWER(120, 170);
    static const int64_t single[] = {28672, 32768, 57344, 131072, 262144, 589824};
    static const int64_t half[] = {114688, 131072, 163840, 327680, 655360};
    struct wd_norm_cut c;
    struct shape s = layer_norm(WD_OP_NORM_BACKWARD, CUDNN_DATA_BFLOAT16, 512, 262144);
    (void)state;
    assert_true(cut(&c, &s, &h200));
    check(&c, &s, &h200);
    assert_true(c.posts && c.cluster == 22 && c.lanes == 384 && c.clusters == 6);
    s.length = 16 * 1024 * 9;
    assert_true(cut(&c, &s, &h200) && c.posts);
    check(&c, &s, &h200);
    for (size_t i = 0; i < sizeof single / sizeof *single; ++i) {
        s = layer_norm(WD_OP_NORM_BACKWARD, CUDNN_DATA_FLOAT, 512, single[i]);
        assert_true(cut(&c, &s, &old) && c.posts);
        check(&c, &s, &old);
    }
    for (size_t i = 0; i < sizeof half / sizeof *half; ++i) {
        s = layer_norm(WD_OP_NORM_BACKWARD, CUDNN_DATA_HALF, 512, half[i]);
        assert_true(cut(&c, &s, &newer) && c.posts);
        check(&c, &s, &newer);
    }
}

/* What is prepared of a forward problem of two bytes an element. */
static struct wd_norm_rows_work prepared(int mode, int64_t rows, int64_t length,
                                         const struct wd_device *device)
{
    const struct wd_norm_places p = wd_norm_places(WD_OP_NORM_TRAINING);
    const struct wd_tensor x = {.dtype = CUDNN_DATA_BFLOAT16,
                                .rank = 2,
                                .vect_count = 1,
                                .dim = {rows, length},
                                .stride = {length, 1}};
    const struct wd_tensor scale = {.dtype = CUDNN_DATA_FLOAT,
                                    .rank = 2,
                                    .vect_count = 1,
                                    .dim = {1, length},
                                    .stride = {length, 1}};
    struct wd_norm_rows_work w;
    struct wd_single single;
    const struct wd_problem problem = {
        .graph = &single.graph, .node = &single.node, .device = device};
    wd_single_init(&single, WD_OP_NORM_TRAINING);
    single.node.attr.norms.mode = mode;
    wd_single_bind(&single, p.x, &x, NULL, NULL);
    wd_single_bind(&single, p.scale, &scale, NULL, NULL);
    wd_norm_rows_prepare(&problem, &w);
    assert_true(w.rows.rows == rows && w.rows.length == length);
    return w;
}

/* Which rows nobody walks down, and which of these a warp has; where shared memory is small, so that there is no cut, all of a length. */
static void test_plain(void **state)
{
    static const struct wd_device h200 = DEVICE_NEW(90, 132), newer = DEVICE_NEWER(120, 170),
                                  old = DEVICE_OLD(108);
    static const struct {
        int mode;
        int64_t rows, length;
        bool plain, by_warp;
    } list[] = {
        {CUDNN_LAYER_NORM, 131072, 1024, true, false},
        {CUDNN_LAYER_NORM, 8448, 1032, true, true},
        {CUDNN_LAYER_NORM, 8447, 1032, true, false},
        {CUDNN_LAYER_NORM, 65536, 2048, true, true},
        {CUDNN_LAYER_NORM, 65536, 2056, false, false},
        {CUDNN_LAYER_NORM, 65536, 3072, false, false},
        {CUDNN_RMS_NORM, 65536, 1536, true, true},
        {CUDNN_RMS_NORM, 65536, 2048, true, false},
        {CUDNN_RMS_NORM, 65536, 3072, true, false},
        {CUDNN_RMS_NORM, 65536, 2560, false, false},
        {CUDNN_RMS_NORM, 32768, 4096, false, false},
    };
    int without = 0;
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        struct wd_norm_rows_work w = prepared(list[i].mode, list[i].rows, list[i].length, &h200);
        assert_int_equal(w.plain[0], list[i].plain);
        assert_int_equal(w.by_warp, list[i].by_warp);
        assert_int_equal(w.fits[0], !list[i].plain);
        w = prepared(list[i].mode, list[i].rows, list[i].length, &old);
        assert_true(w.plain[0] && !w.by_warp);
    }
    for (int64_t length = 264; length <= 16384; length += 8) {
        struct wd_norm_rows_work w = prepared(CUDNN_LAYER_NORM, 20000, length, &newer);
        assert_true(w.plain[0] != w.fits[0]);
        without += w.plain[0] && length > 8192;
    }
    assert_true(without > 0);
}

/* Lengths of which forty columns a thread fill processors that thirty-two leave idle, and others. */
static void test_wide(void **state)
{
    static const int64_t list[][3] = {{14592, 9216, 1}, {13104, 10240, 1}, {11264, 12288, 2},
                                      {7168, 18944, 1}, {7081, 18952, 1},  {6528, 20480, 1},
                                      {3640, 36864, 2}, {3264, 40960, 2}};
    static const int64_t others[][2] = {{8192, 16384}, {4096, 32768}, {2048, 65536}};
    const struct wd_device *h200 = &devices[0];
    struct wd_norm_cut c;
    struct shape s;
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; ++i) {
        s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_BFLOAT16, list[i][0], list[i][1]);
        assert_true(cut(&c, &s, h200) && c.wide && c.draws && c.cluster == list[i][2]);
        check(&c, &s, h200);
        /* too few to be drawn; too few to be worth it */
        s.rows = 600 * c.cluster;
        assert_true(cut(&c, &s, h200));
        check(&c, &s, h200);
        s.rows = 60;
        assert_true(cut(&c, &s, h200) && !c.wide);
        /* nothing to wait for, and columns of four bytes */
        s = layer_norm(WD_OP_NORM_INFERENCE, CUDNN_DATA_BFLOAT16, list[i][0], list[i][1]);
        s.given = true;
        assert_true(!cut(&c, &s, h200) || !c.wide);
        s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_FLOAT, list[i][0], list[i][1]);
        assert_true(!cut(&c, &s, h200) || !c.wide);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i) {
        s = layer_norm(WD_OP_NORM_TRAINING, CUDNN_DATA_HALF, others[i][0], others[i][1]);
        assert_true(cut(&c, &s, h200) && !c.wide);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_draws),  cmocka_unit_test(test_held),
        cmocka_unit_test(test_wide),   cmocka_unit_test(test_middle_and_large),
        cmocka_unit_test(test_odd),    cmocka_unit_test(test_posts_back),
        cmocka_unit_test(test_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
