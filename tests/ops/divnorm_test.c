/* SPDX-License-Identifier: Apache-2.0
 *
 * Divisive normalization against its formula: random windows, coefficients, shapes, layouts, types and
 * scaling, with means and without, with their gradient and without; NaN and infinities; gradients also
 * against finite differences; and planes of every size beside that of a tile. */
#include <stdlib.h>

#include "kernels_reached.h"
#include "lrn_case.h"

/* Divisive normalization in tiles: planes smaller than one, with edges in and around them, of one line;
 * more planes than there is scratch for; windows short and long. */
static void tile_case(int type, int n, const int *dim, bool means, bool dmeans, int skip, bool far)
{
    const double most = far ? 0.5 : 4.0, most_mean = far ? 8.0 : 2.0;
    struct lrn_call c = {.divisive = true, .n = n, .a = 2.0, .b = 0.75, .k = 1.0, .alpha = 1.0};
    cudnnDataType_t dtype = lrn_types[type].type;
    double *before, *before_means = NULL;
    if (!case_begin("divisive/tile/%s/n%d/%d,%d,%d,%d/means%d%d/skip%d/far%d", lrn_types[type].name,
                    n, dim[0], dim[1], dim[2], dim[3], means, dmeans, skip, far)) {
        return;
    }
    if (skip) c.alpha = 0.5, c.beta = -1.5;
    lrn_describe(&c);
    c.x = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, false, -most, most);
    if (means)
        c.means = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, false, -most_mean, most_mean);
    c.temp = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, true, -4.0, 4.0);
    c.temp2 = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, true, -4.0, 4.0);
    c.y = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, true, -4.0, 4.0);
    before = part_expected(c.y);
    if (run_call(lrn_forward, &c)) lrn_check_forward(&c, before);
    free(before);
    c.y->whole->output = false;
    tensor_write(c.y->whole);
    c.dy = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, false, -4.0, 4.0);
    c.dx = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, true, -4.0, 4.0);
    before = part_expected(c.dx);
    if (dmeans) {
        c.dmeans = part_skipped(dtype, 4, dim, LAYOUT_NCHW, skip, true, -4.0, 4.0);
        before_means = part_expected(c.dmeans);
    }
    if (run_call(lrn_backward, &c)) lrn_check_backward(&c, before, before_means);
    free(before);
    free(before_means);
    cudnnDestroyLRNDescriptor(c.lrn);
    parts_free();
    case_end();
}

static void tile_cases(void)
{
    static const int dims[][4] = {
        {2, 3, 7, 9}, {1, 2, 70, 45}, {1, 1, 33, 100}, {2, 1, 1, 64}, {1, 2, 40, 3}};
    static const int many[4] = {3, 5, 250, 270};
    static const int windows[] = {5, 9, 16, 2};
    for (int i = 0; i < 5; ++i) {
        for (int type = 0; type < 4; ++type) {
            for (int w = 0; w < 4; ++w) {
                if (w > 1 && (i + w + type) % 3 != 0) continue; /* these run as others do */
                tile_case(type, windows[w], dims[i], (i + type) % 3 != 0, (i + w) % 3 != 0,
                          type % 2, false);
            }
        }
    }
    tile_case(0, 5, many, true, true, 0, false);
    tile_case(1, 3, many, true, true, 0, false);
}

/* Planes of whole runs, as many as keep a device busy where threads go down their rows: of one run, with edges alone
 * and with more between, of fewer rows than a window and of several segments, with means that are far from what
 * they are means of. */
static void walk_cases(void)
{
    static const struct {
        int type, n, dim[4];
        bool means, dmeans, far;
    } cases[] = {
        {0, 5, {131, 130, 3, 8}, true, true, false},
        {0, 5, {20, 213, 33, 16}, true, true, false},
        {0, 5, {107, 107, 7, 12}, false, true, false},
        {0, 5, {131, 260, 5, 4}, true, false, true},
        {0, 9, {131, 130, 13, 8}, true, true, false},
        {0, 9, {107, 107, 6, 12}, true, false, true},
        {2, 5, {185, 184, 5, 8}, true, true, false},
        {2, 5, {57, 100, 33, 24}, true, true, true},
        {3, 5, {107, 107, 4, 24}, true, false, false},
        {3, 5, {93, 184, 32, 8}, false, false, false},
        {0, 5, {16, 33, 5, 264}, true, true, false},
        /* gradients of blocks that have whole rows: a whole plane, several blocks of one, fewer rows than threads */
        {0, 9, {20, 20, 33, 28}, true, true, false},
        {0, 9, {10, 10, 61, 132}, true, true, false},
        {0, 9, {20, 20, 18, 24}, true, true, true},
        {0, 9, {25, 16, 17, 16}, false, false, false},
        {0, 5, {10, 10, 100, 132}, true, true, true},
        {0, 5, {25, 16, 16, 40}, true, false, false},
        {0, 5, {199, 2, 7, 44}, false, false, false},
        {0, 5, {10, 9, 20, 604}, true, true, false},
        {0, 9, {10, 9, 23, 452}, true, true, true},
        {0, 9, {10, 10, 17, 476}, false, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        tile_case(cases[i].type, cases[i].n, cases[i].dim, cases[i].means, cases[i].dmeans, 0,
                  cases[i].far);
    }
}

static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/lrn/divnorm_vector_kernels.def"
#undef WD_KERNEL
};

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    tile_cases();
    walk_cases();
    for (int type = 0; type < LRN_TYPES; ++type) {
        for (int turn = 0; turn < 40; ++turn) lrn_random_case(true, type, turn);
        lrn_odd_case(true, type);
    }
    for (int n = 1; n <= 6; ++n) lrn_difference_case(true, n);
    if (argc == 1) kernels_reached(symbols, (int)(sizeof symbols / sizeof symbols[0]));
    return harness_finish();
}
