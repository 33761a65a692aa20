/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm of what is hard: offsets, in place, constants, NaN and infinity, and gradients
 * that nobody asks for. */
#include <math.h>

#include "norm_groups_case.h"
#include "norms_graph.h"

/* An offset that swallows the variance in plain sums. */
static void offsets(void)
{
    static const struct norm_groups_image list[] = {{3, 6, 3, {5, 5}},
                                                    {2, 32, 4, {20, 20}},
                                                    {1, 16, 1, {64, 64}},
                                                    {1, 8, 0, {120, 120}},
                                                    {3, 8, 0, {7, 7}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS; ++k) {
        struct norm_groups_options o = {k % LAYOUTS ? LAYOUT_NHWC : LAYOUT_NCHW, false, 9998.3,
                                        10001.7};
        struct norms_case c;
        if (!case_begin("offset/%d/%s", k / LAYOUTS, norm_groups_layouts[k % LAYOUTS])) continue;
        c = norm_groups_case(&list[k / LAYOUTS], NORMS_TRAINING, 0, false);
        norm_groups_tensors(&c, &o);
        norm_groups_run(&c);
        case_end();
    }
}

/* y over x, dx over dy: a share has been read before any of it is written. */
static void in_place(void)
{
    static const struct norm_groups_image list[] = {
        {3, 6, 3, {5, 5}}, {2, 32, 4, {20, 20}}, {1, 16, 1, {96, 96}}, {3, 8, 0, {7, 7}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS * PHASES; ++k) {
        int phase = k % PHASES;
        int layout = k / PHASES % LAYOUTS;
        int s = k / PHASES / LAYOUTS;
        struct norm_groups_options o = {layout ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        struct tensor *both;
        if (!case_begin("in_place/%s/%s/%d", norms_phase_names[phase], norm_groups_layouts[layout],
                        s))
            continue;
        c = norm_groups_case(&list[s], phase, k % TYPES, false);
        norm_groups_tensors(&c, &o);
        both = tensor_inout(c.x_type, c.rank, c.dim, o.layout, -2.0, 2.0);
        if (phase == NORMS_BACKWARD) c.dy = c.dx = both;
        else c.x = c.y = both;
        norm_groups_run(&c);
        case_end();
    }
}

/* A constant share stays at the bias exactly, however small epsilon is; a NaN stays in its share. */
static void special_values(void)
{
    static const struct norm_groups_image list[] = {
        {1, 6, 2, {5, 5}}, {1, 32, 2, {24, 24}}, {1, 2, 0, {720, 720}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS; ++k) {
        struct norm_groups_options o = {k % LAYOUTS ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        struct graph_run r = {.count = 0};
        be_desc op;
        if (!case_begin("special/%d/%s", k / LAYOUTS, norm_groups_layouts[k % LAYOUTS])) continue;
        c = norm_groups_case(&list[k / LAYOUTS], NORMS_TRAINING, 0, false);
        c.epsilon = 0x1p-40;
        c.bias = true;
        norm_groups_tensors(&c, &o);
        /* two groups: the first is constant, the second has the NaN */
        for (int64_t i = 0; i < c.x->count / 2; ++i) c.x->value[i] = 0.1F;
        c.x->value[c.x->count / 4 * 3] = NAN;
        tensor_write(c.x);
        op = norms_operation(&r, &c);
        if (graph_run(&r, 1, &op) && harness_values) {
            int64_t plane = c.x->count / c.dim[1];
            for (int64_t i = 0; i < c.y->count; ++i) {
                double y = c.y->value[i];
                bool first = i < c.y->count / 2;
                if (first && y != c.bias_tensor->value[i / plane]) {
                    case_fail("y of a constant share is %g", y);
                }
                if (first == (y != y)) case_fail("y[%d] is %g", (int)i, y);
            }
        }
        be_free_all();
        case_end();
    }
}

/* A NaN or an infinity, the first of its share or not, leaves nothing but NaNs of y and the statistics
 * of its share, and all others as they are; by the engine of choice, and by the one that reads twice. */
static void no_numbers(void)
{
    static const struct norm_groups_image list[] = {
        {2, 8, 0, {8, 8}},   {2, 6, 2, {5, 5}},    {3, 16, 0, {20, 20}}, {2, 32, 4, {24, 24}},
        {1, 4, 2, {41, 43}}, {1, 16, 2, {56, 56}}, {2, 8, 0, {64, 80}},
    };
    static const double values[] = {NAN, INFINITY, -INFINITY};
    enum { VALUES = 3, PLACES = 3, ALL = VALUES * PLACES * LAYOUTS * 2 };
    for (int k = 0; k < COUNT(list) * ALL; ++k) {
        const struct norm_groups_image *m = &list[k / ALL];
        int layout = k % LAYOUTS;
        int place = k / LAYOUTS % PLACES;
        int value = k / LAYOUTS / PLACES % VALUES;
        struct norm_groups_options o = {layout ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        int64_t share;
        int64_t at;
        norm_groups_twice = k / LAYOUTS / PLACES / VALUES % 2 != 0;
        if (norm_groups_twice && !harness_usual_order()) continue;
        if (!case_begin("no_number/%d/%s/%g/%d/%d", k / ALL, norm_groups_layouts[layout],
                        values[value], place, norm_groups_twice)) {
            continue;
        }
        c = norm_groups_case(m, NORMS_TRAINING, (place + value + k / ALL) % TYPES, false);
        norm_groups_tensors(&c, &o);
        share = c.x->count / m->samples / c.stat_dim[1];
        at = share + (place == 0 ? 0 : place == 1 ? share / 2 + 3 : share - 1);
        c.x->value[at] = values[value];
        tensor_write(c.x);
        norm_groups_run_with(&c, at);
        case_end();
    }
    norm_groups_twice = false;
}

/* Parameters that nobody asks for. */
static void without_gradients(void)
{
    static const struct norm_groups_image list[] = {
        {3, 6, 3, {5, 5}}, {2, 32, 4, {20, 20}}, {1, 2, 0, {720, 720}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS; ++k) {
        struct norm_groups_options o = {k % LAYOUTS ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        if (!case_begin("dx_alone/%d/%s", k / LAYOUTS, norm_groups_layouts[k % LAYOUTS])) continue;
        c = norm_groups_case(&list[k / LAYOUTS], NORMS_BACKWARD, 0, false);
        norm_groups_tensors(&c, &o);
        c.dscale = c.dbias = NULL;
        norm_groups_run(&c);
        case_end();
    }
}

void norm_groups_hard_cases(void)
{
    offsets();
    in_place();
    special_values();
    no_numbers();
    without_gradients();
}
