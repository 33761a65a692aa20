/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization against its formula: random windows, coefficients, shapes, layouts, types
 * and scaling; NaN and infinities; gradients also against finite differences; and every way in which
 * planes and pixels are walked. */
#include <stdlib.h>

#include "kernels_reached.h"
#include "lrn_case.h"

/* Every way in which planes and pixels are walked: whole runs or not, aligned or not or not alike,
 * chunks of channels, one row, few channels and many, up to three spatial dimensions. */
static void walk_case(int type, int n, double b, int rank, const int *dim, enum layout layout,
                      const int *skip)
{
    struct lrn_call c = {.n = n, .a = 2.0, .b = b, .k = 1.0, .alpha = 1.0};
    cudnnDataType_t dtype = lrn_types[type].type;
    double *before;
    if (!case_begin("lrn/walk/%s/n%d/b%g/%d,%d,%d,%d/%s/skip%d,%d", lrn_types[type].name, n, b,
                    dim[0], dim[1], dim[2], rank > 3 ? dim[3] : 0,
                    layout == LAYOUT_NHWC ? "nhwc" : "nchw", skip[0], skip[1])) {
        return;
    }
    if (random_chance(0.3)) c.alpha = lrn_random_scalar(), c.beta = lrn_random_scalar();
    lrn_describe(&c);
    c.x = part_skipped(dtype, rank, dim, layout, skip[0], false, -4.0, 4.0);
    c.y = part_skipped(dtype, rank, dim, layout, skip[1], true, -4.0, 4.0);
    before = part_expected(c.y);
    if (run_call(lrn_forward, &c)) lrn_check_forward(&c, before);
    free(before);
    c.y->whole->output = false;
    tensor_write(c.y->whole);
    c.dy = part_skipped(dtype, rank, dim, layout, skip[0], false, -4.0, 4.0);
    c.dx = part_skipped(dtype, rank, dim, layout, skip[1], true, -4.0, 4.0);
    before = part_expected(c.dx);
    if (run_call(lrn_backward, &c)) lrn_check_backward(&c, before, NULL);
    free(before);
    cudnnDestroyLRNDescriptor(c.lrn);
    parts_free();
    case_end();
}

static void walk_cases(void)
{
    static const struct {
        int rank, dim[5];
    } rows[] = {
        {4, {2, 61, 4, 6}}, {4, {1, 64, 3, 8}},    {4, {3, 3, 7, 5}},  {4, {1, 130, 1, 9}},
        {3, {2, 16, 40}},   {5, {1, 24, 2, 3, 4}}, {4, {9, 40, 1, 1}}, {4, {300, 2, 5, 8}},
        {4, {2, 1, 9, 8}},  {5, {2, 31, 1, 5, 1}}, {4, {2, 12, 7, 9}}, {4, {1, 88, 5, 7}},
        {4, {2, 40, 7, 9}}, {4, {1, 9, 19, 35}},
    };
    static const int windows[] = {5, 1, 3, 10, 16, 4, 9};
    static const double powers[] = {0.75, 0.5, 1.0, 0.9};
    static const int skips[][2] = {{0, 0}, {1, 1}, {1, 0}};
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); ++i) {
        for (int type = 0; type < 4; ++type) {
            for (int w = 0; w < 7; ++w) {
                for (int s = 0; s < 3; ++s) {
                    if (w > 1 && (i + w + s) % 3 != 0) continue; /* these run as others do */
                    walk_case(type, windows[w], powers[(i + w) % 4], rows[i].rank, rows[i].dim,
                              LAYOUT_NCHW, skips[s]);
                    walk_case(type, windows[w], powers[(i + s) % 4], rows[i].rank, rows[i].dim,
                              LAYOUT_NHWC, skips[s]);
                }
            }
        }
    }
}

/* Planes enough for the kernels that take them by rows: one span of pixels and several, aligned or not,
 * one chunk of channels or two, a last stage that is whole or is not. */
static void row_cases(void)
{
    static const int rows[][4] = {
        {140, 5, 11, 12}, {133, 3, 1, 129}, {70, 40, 5, 26}, {36, 13, 21, 50}, {45, 17, 29, 47}};
    static const int windows[] = {5, 10, 5, 16, 4, 5, 9, 2};
    static const double powers[] = {0.75, 0.5, 1.0, 0.9};
    static const int skips[][2] = {{0, 0}, {1, 1}, {1, 0}};
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); ++i) {
        for (int type = 0; type < LRN_TYPES; ++type) {
            for (int turn = 0; turn < 2; ++turn) {
                walk_case(type, windows[(2 * i + type + turn) % 8], powers[(i + turn) % 4], 4,
                          rows[i], LAYOUT_NCHW, skips[(i + type + turn) % 3]);
            }
        }
    }
}

static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/lrn/lrn_vector_kernels.def"
#undef WD_KERNEL
};

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    walk_cases();
    row_cases();
    for (int type = 0; type < LRN_TYPES; ++type) {
        for (int turn = 0; turn < 40; ++turn) lrn_random_case(false, type, turn);
        lrn_odd_case(false, type);
    }
    for (int n = 1; n <= 6; ++n) lrn_difference_case(false, n);
    if (argc == 1) kernels_reached(symbols, (int)(sizeof symbols / sizeof symbols[0]));
    return harness_finish();
}
