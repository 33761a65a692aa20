/* SPDX-License-Identifier: Apache-2.0
 *
 * How the engines of norms over rows cut shapes that were measured (ROWS.md): by which way, in what blocks, and whether rows are drawn or held. */
#include "unit/norm_rows_cuts.h"

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
        /* what lies at the ends of rows makes no gradients ask late */
        s.op = WD_OP_NORM_BACKWARD, s.dbias = true;
        assert_true(cut(&c, &s, &h200) && c.held && !c.late);
        check(&c, &s, &h200);
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
        cmocka_unit_test(test_held),  cmocka_unit_test(test_draws),
        cmocka_unit_test(test_odd),   cmocka_unit_test(test_middle_and_large),
        cmocka_unit_test(test_plain), cmocka_unit_test(test_posts_back),
        cmocka_unit_test(test_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
