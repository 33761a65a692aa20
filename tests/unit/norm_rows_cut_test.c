/* SPDX-License-Identifier: Apache-2.0
 *
 * How the engines of norms over rows cut their work: of random shapes what holds of all cuts. */
#include "unit/norm_rows_cuts.h"

enum {
    TURNS = 12000,
    SHORT = 256, /* columns: forward, shorter rows with edges are never asked for */
};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
