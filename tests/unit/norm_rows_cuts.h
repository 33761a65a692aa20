/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts of norms over rows, for devices that are only described, and what holds of all of them: every row is looked at once and every column has a
 * thread, the ring has room, and clusters that draw rows know of no more than they keep. */
#ifndef WD_TESTS_UNIT_NORM_ROWS_CUTS_H
#define WD_TESTS_UNIT_NORM_ROWS_CUTS_H

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
    WARP = 32,
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

static inline void bind(struct wd_single *single, int slot, int dtype)
{
    const struct wd_tensor t = {.dtype = dtype, .rank = 2, .vect_count = 1, .dim = {1, 1}};
    wd_single_bind(single, slot, &t, NULL, NULL);
}

static inline bool cut(struct wd_norm_cut *c, const struct shape *s, const struct wd_device *device)
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

static inline struct shape layer_norm(enum wd_op op, int dtype, int64_t rows, int64_t length)
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

static inline bool is_backward(const struct shape *s)
{
    return s->op == WD_OP_NORM_BACKWARD;
}

static inline bool by_strips(const struct wd_norm_cut *c)
{
    return c->way == WAY_STRIPS || c->way == WAY_STRIPS_16;
}

/* Counts the rows first, first + step, ..., below `end`. */
static inline void take(unsigned char *taken, int64_t first, int64_t step, int64_t end)
{
    for (int64_t row = first; row < end; row += step) taken[row] += 1;
}

/* As odd_drawn_walk does it. */
static inline void take_odd(const struct wd_norm_cut *c, const struct shape *s,
                            unsigned char *taken)
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
static inline void take_rows(const struct wd_norm_cut *c, const struct shape *s,
                             unsigned char *taken)
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

static inline void check_rows(const struct wd_norm_cut *c, const struct shape *s)
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

static inline void check_columns(const struct wd_norm_cut *c, const struct shape *s)
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

static inline void check_blocks(const struct wd_norm_cut *c, const struct shape *s,
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
static inline int64_t place_bytes(const struct wd_norm_cut *c, const struct shape *s)
{
    int64_t units = c->lanes * (columns_of[c->way] / s->each);
    if (c->odd) units += c->draws || c->held ? ODD_PLACES * c->lanes / WARP : ODD_PLACES;
    else if (c->edges) units = c->share + 1;
    return units * c->groups * NORM_ROWS_UNIT * (is_backward(s) ? 2 : 1);
}

static inline void check_ring(const struct wd_norm_cut *c, const struct shape *s,
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
static inline void check_wide(const struct wd_norm_cut *c, const struct shape *s)
{
    assert_true(s->op != WD_OP_NORM_BACKWARD && !s->given && s->each == TWO_BYTES);
    assert_true(c->groups == 1 && !c->edges && !c->posts && c->ragged);
    if (!c->draws) assert_true(c->later > s->rows);
}

/* Only what norm_rows_drawn.cuh takes, and norm_rows_odd_drawn.cuh. */
static inline void check_draws(const struct wd_norm_cut *c, const struct shape *s)
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
static inline bool has_no_other_kernel(const struct wd_norm_cut *c, const struct shape *s)
{
    return is_backward(s) && s->each == TWO_BYTES && c->edges == c->odd && !c->posts &&
           (c->way == WAY_32 || c->way == WAY_SQUARES);
}

/* Only what norm_rows_held.cuh takes, and norm_rows_odd_held.cuh; 49 KB of a processor's rows, with their ends, or they are asked for late. */
static inline void check_held(const struct wd_norm_cut *c, const struct shape *s,
                              const struct wd_device *device)
{
    int64_t threads = c->lanes * c->groups;
    int64_t blocks = wd_most(1, threads_held[c->way] / threads);
    assert_true(is_backward(s) && s->each == TWO_BYTES);
    assert_true(c->edges == c->odd && !c->posts && !by_strips(c) && c->lanes % WARP == 0);
    assert_true(c->late == (blocks * place_bytes(c, s) > 49 << 10));
    if (!c->odd) return;
    assert_true(c->way == WAY_32 || (c->way == WAY_SQUARES && wd_norm_cluster_max(device) > 1));
    assert_true(c->shared >= place_bytes(c, s) + threads / WARP * NORM_ROWS_ODD_ROOM);
}

static inline void check(const struct wd_norm_cut *c, const struct shape *s,
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

#endif
