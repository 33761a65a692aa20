/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm of images: channels first and last, one, two and three spatial
 * dimensions, shares of one element to some that exceed what blocks keep, every type and phase, at
 * addresses that are aligned to 16 bytes and to an element alone, against plain sums. On a GPU the
 * engines of groups have to take all of these, by each of their kernels. */
#include <math.h>
#include <stdio.h>

#include "kernels_reached.h"
#include "norm_groups_case.h"
#include "norms_graph.h"

/* What fits shared memory, in warps, blocks and clusters, by whole runs and by single elements. */
static void shapes(void)
{
    static const struct norm_groups_image list[] = {
        {1, 1, 0, {1}},        {2, 1, 1, {3, 5}},    {3, 5, 0, {1, 1}},     {700, 24, 0, {0}},
        {3, 40, 8, {0}},       {5, 33, 11, {0}},     {9, 7, 7, {2, 2}},     {4, 6, 3, {7, 7}},
        {33, 64, 0, {7, 7}},   {2, 96, 3, {11, 13}}, {3, 32, 4, {8, 8}},    {2, 320, 32, {16, 16}},
        {1, 40, 4, {64}},      {2, 17, 1, {31}},     {2, 64, 32, {28, 28}}, {3, 12, 0, {14, 14}},
        {2, 16, 0, {4, 8, 8}}, {2, 6, 2, {3, 5, 7}}, {1, 128, 1, {12, 12}}, {2, 256, 2, {5, 8}},
        {1, 300, 1, {5, 5}},   {1, 2056, 1, {3, 3}}, {1, 8, 0, {64, 64}},   {1, 16, 2, {56, 56}},
        {1, 3, 0, {111, 113}}, {2, 3, 1, {41, 43}},  {1, 8, 1, {64, 80}},
    };
    for (int s = 0; s < COUNT(list); ++s) {
        const struct norm_groups_image *m = &list[s];
        int64_t count = (int64_t)m->samples * m->channels;
        for (int d = 0; d < 3 && m->spatial[d] > 0; ++d) count *= m->spatial[d];
        for (int k = 0; k < 2 * LAYOUTS * PHASES * TYPES; ++k) {
            bool off = k % 2;
            if ((k + 5 * s) % (count > 20000 ? 5 : 1) != 0) continue;
            norm_groups_image(m, "shape", k / 2 % LAYOUTS, k / 2 / LAYOUTS % PHASES,
                              k / 2 / LAYOUTS / PHASES, off);
        }
    }
}

/* More than clusters keep, so that sums and outputs are apart: few shares, many channels of a group,
 * one long plane. And clusters of several blocks. */
static void large(void)
{
    static const struct norm_groups_image list[] = {
        {1, 2, 1, {720, 720}},  {1, 600, 2, {40, 40}},  {1, 1, 0, {999, 1001}},
        {2, 24, 3, {160, 161}}, {1, 96, 1, {101, 103}}, {1, 80, 2, {96, 96}},
        {1, 4, 0, {320, 320}},
    };
    for (int s = 0; s < COUNT(list); ++s) {
        for (int k = 0; k < LAYOUTS * PHASES * TYPES; ++k) {
            /* definitions take their time */
            if (!harness_usual_order() && (k + s) % 9 != 0) continue;
            if ((k / LAYOUTS + s) % 3 == 0) continue;
            norm_groups_image(&list[s], "large", k % LAYOUTS, k / LAYOUTS % PHASES,
                              k / LAYOUTS / PHASES, random_chance(0.2));
        }
    }
}

/* Samples that blocks which meet share, by several teams; groups of many channels; odd rows. */
static void shared_samples(void)
{
    static const struct norm_groups_image list[] = {
        {9, 64, 0, {64, 30}},    {5, 40, 4, {113, 61}},  {3, 320, 32, {33, 40}},
        {40, 136, 17, {14, 14}}, {2, 24, 3, {160, 161}}, {2, 1032, 1, {20, 21}},
        {2, 3, 0, {512, 400}},   {7, 24, 2, {96, 96}},
    };
    for (int s = 0; s < 2 * COUNT(list); ++s) {
        for (int k = 0; k < PHASES * TYPES; ++k) {
            if (!harness_usual_order() && (k + s) % 9 != 0) continue;
            norm_groups_image(&list[s / 2], "shared", s % 2, k % PHASES, k / PHASES,
                              random_chance(0.2));
        }
    }
}

/* Instance norm with channels last of samples that blocks have in registers: of one to four rows a
 * thread, of one row too many, and of more blocks than processors. */
static void spots(void)
{
    static const struct norm_groups_image list[] = {
        {1, 64, 0, {32, 32}}, {2, 32, 0, {2}},     {3, 24, 0, {5, 7}},  {1, 16, 0, {1024}},
        {1, 8, 0, {1025}},    {5, 8, 0, {31, 33}}, {40, 64, 0, {4, 4}},
    };
    for (int k = 0; k < COUNT(list) * PHASES * TYPES; ++k) {
        norm_groups_image(&list[k / PHASES / TYPES], "spot", 1, k % PHASES, k / PHASES % TYPES,
                          k % 5 == 4);
    }
}

/* With channels first, shares that a few threads have in registers: planes beside each other, all of a warp's or none,
 * and whole units of two bytes, whose planes end anywhere in them; one share too many for a block, and for a thread. */
static void shares(void)
{
    static const struct norm_groups_image list[] = {
        {3, 16, 0, {6, 6}},  {5, 8, 0, {3, 11}},  {9, 24, 0, {7, 7}},   {2, 12, 0, {8, 8}},
        {3, 64, 2, {7, 7}},  {5, 128, 2, {7, 7}}, {3, 40, 1, {14, 14}}, {1, 3, 0, {24, 24}},
        {3, 5, 0, {36, 56}}, {2, 48, 2, {5, 5}},  {1, 80, 1, {103}},    {2, 16, 0, {2, 8, 32}},
        {1, 8, 1, {32, 33}},
    };
    norm_groups_fp32_params = true;
    for (int k = 0; k < 4 * COUNT(list) * TYPES; ++k) {
        bool off = k / 2 / TYPES % 2 != 0;
        int phase = k % 2 ? NORMS_BACKWARD : NORMS_TRAINING;
        if (off && k % 5 > 1) continue;
        norm_groups_image(&list[k / 4 / TYPES], "shares", 0, phase, k / 2 % TYPES, off);
    }
    norm_groups_fp32_params = false;
}

/* Gradients of shares that several blocks have: of warps whose parts are of one channel each, and of groups of channels. */
static void walking_shares(void)
{
    static const struct norm_groups_image list[] = {{10, 8, 0, {264, 256}},
                                                    {30, 24, 12, {128, 256}}};
    if (!harness_all_engines) return;
    norm_groups_fp32_params = true;
    for (int k = 0; k < COUNT(list) * TYPES; ++k)
        norm_groups_image(&list[k / TYPES], "walking", 0, NORMS_BACKWARD, k % TYPES, false);
    norm_groups_fp32_params = false;
}

/* Shares that a block alone, a pair or a larger cluster holds: of one channel and of several, the last block of which has less; larger ones of which dy,
 * or x as well, is read again; a share that is no number from its element `at` on, or all of a number far from 0; outputs over
 * inputs; off the boundaries; gradients whose clusters have all shares of a channel. */
static void held_by_clusters(void)
{
    enum { PLAIN, NUMBER, SAME, OVER_X, OVER_DY, OFF, GATHERED };
    static const char *const ways[] = {"plain",   "number", "same",    "over_x",
                                       "over_dy", "off",    "gathered"};
    static const struct {
        const char *name;
        struct norm_groups_image m;
        int phase, type, way;
        double value;
    } list[] = {
        {"alone", {100, 2, 0, {130, 512}}, NORMS_TRAINING, 1, NUMBER, NAN},
        {"alone", {100, 2, 0, {130, 512}}, NORMS_TRAINING, 2, SAME, 0x1p120},
        {"alone", {100, 2, 0, {130, 512}}, NORMS_TRAINING, 1, OVER_X, 0},
        {"alone", {100, 2, 0, {130, 512}}, NORMS_TRAINING, 2, OFF, 0},
        {"alone", {100, 2, 0, {130, 512}}, NORMS_INFERENCE, 2, PLAIN, 0},
        {"alone", {100, 2, 0, {130, 512}}, NORMS_BACKWARD, 1, OVER_DY, 0},
        {"alone", {100, 2, 0, {130, 512}}, NORMS_BACKWARD, 2, NUMBER, NAN},
        {"alone_channels", {100, 6, 2, {43, 520}}, NORMS_TRAINING, 1, PLAIN, 0},
        {"alone_channels", {100, 6, 2, {43, 520}}, NORMS_TRAINING, 0, OVER_X, 0},
        {"many_channels", {50, 160, 2, {44, 28}}, NORMS_TRAINING, 1, PLAIN, 0},
        {"many_channels", {50, 256, 2, {12, 32}}, NORMS_TRAINING, 0, PLAIN, 0},
        {"pair", {50, 1, 0, {300, 520}}, NORMS_TRAINING, 1, NUMBER, INFINITY},
        {"pair", {50, 1, 0, {300, 520}}, NORMS_TRAINING, 2, OVER_X, 0},
        {"pair", {25, 2, 0, {300, 520}}, NORMS_BACKWARD, 1, OVER_X, 0},
        {"pair_channels", {25, 6, 2, {100, 520}}, NORMS_TRAINING, 1, PLAIN, 0},
        {"plane", {20, 1, 0, {512, 514}}, NORMS_TRAINING, 1, PLAIN, 0},
        {"plane", {20, 1, 0, {512, 514}}, NORMS_INFERENCE, 2, PLAIN, 0},
        {"plane", {10, 2, 0, {512, 514}}, NORMS_BACKWARD, 1, PLAIN, 0},
        {"plane", {10, 1, 0, {768, 512}}, NORMS_INFERENCE, 0, PLAIN, 0},
        {"plane", {5, 2, 0, {1024, 500}}, NORMS_BACKWARD, 0, PLAIN, 0},
        {"plane", {10, 2, 0, {8, 64, 514}}, NORMS_TRAINING, 2, NUMBER, NAN},
        {"plane", {10, 2, 0, {512, 514}}, NORMS_BACKWARD, 2, NUMBER, NAN},
        {"plane", {20, 1, 0, {512, 514}}, NORMS_TRAINING, 1, NUMBER, INFINITY},
        {"plane", {20, 1, 0, {512, 514}}, NORMS_TRAINING, 1, SAME, 1000.0},
        {"plane", {20, 1, 0, {512, 514}}, NORMS_TRAINING, 2, SAME, 0x1p120},
        {"plane", {20, 1, 0, {512, 514}}, NORMS_TRAINING, 1, OVER_X, 0},
        {"plane", {10, 2, 0, {512, 514}}, NORMS_BACKWARD, 1, OVER_DY, 0},
        {"plane", {10, 2, 0, {512, 514}}, NORMS_BACKWARD, 2, OVER_X, 0},
        {"plane", {20, 1, 0, {512, 514}}, NORMS_TRAINING, 2, OFF, 0},
        {"plane", {10, 2, 0, {512, 514}}, NORMS_BACKWARD, 1, OFF, 0},
        {"channels", {5, 8, 4, {512, 264}}, NORMS_TRAINING, 1, PLAIN, 0},
        {"channels", {5, 8, 4, {512, 264}}, NORMS_TRAINING, 2, PLAIN, 0},
        {"channels", {10, 6, 2, {176, 256}}, NORMS_TRAINING, 0, PLAIN, 0},
        {"again", {5, 2, 0, {1040, 1212}}, NORMS_TRAINING, 0, OVER_X, 0},
        {"again", {5, 1, 0, {1040, 1212}}, NORMS_BACKWARD, 0, PLAIN, 0},
        {"again", {5, 1, 0, {1040, 1212}}, NORMS_BACKWARD, 0, OVER_X, 0},
        {"again", {5, 1, 0, {1040, 2424}}, NORMS_TRAINING, 1, PLAIN, 0},
        {"again", {5, 1, 0, {1040, 2424}}, NORMS_BACKWARD, 2, PLAIN, 0},
        {"dy_again", {5, 1, 0, {1024, 1020}}, NORMS_BACKWARD, 0, OVER_DY, 0},
        {"dy_again", {5, 1, 0, {1024, 2040}}, NORMS_BACKWARD, 1, PLAIN, 0},
        {"alone", {2, 126, 0, {128, 512}}, NORMS_BACKWARD, 1, GATHERED, 0},
        {"pair", {2, 63, 0, {300, 520}}, NORMS_BACKWARD, 2, GATHERED, 0},
        {"plane", {2, 14, 0, {1024, 500}}, NORMS_BACKWARD, 0, GATHERED, 0},
    };
    if (!harness_all_engines) return;
    for (int k = 0; k < COUNT(list); ++k) {
        int way = list[k].way;
        struct norm_groups_options o = {LAYOUT_NCHW, way == OFF, -3.0, 3.0};
        struct norms_case c;
        int64_t at = -1;
        if (!case_begin("clusters/%s/%s/%s/%s/%g", list[k].name, norms_phase_names[list[k].phase],
                        norm_groups_types[list[k].type], ways[way], list[k].value))
            continue;
        c = norm_groups_case(&list[k].m, list[k].phase, list[k].type, way != GATHERED && k % 2);
        c.statistics = list[k].phase != NORMS_INFERENCE;
        c.bias = c.bias || way == GATHERED;
        norm_groups_tensors(&c, &o);
        if (way == OVER_X || way == OVER_DY) {
            struct tensor *both = tensor_inout(c.x_type, c.rank, c.dim, o.layout, -2.0, 2.0);
            if (way == OVER_X) c.x = both;
            else c.dy = both;
            if (list[k].phase == NORMS_BACKWARD) c.dx = both;
            else c.y = both;
        } else if (way == NUMBER) {
            at = c.x->count / c.dim[0] * 3 + 77777;
            c.x->value[at] = list[k].value;
            tensor_write(c.x);
        } else if (way == SAME) {
            int64_t share = c.x->count / c.dim[0];
            for (int64_t i = share * 3; i < share * 4; ++i) c.x->value[i] = list[k].value;
            tensor_write(c.x);
        }
        norm_groups_clusters = true;
        norm_groups_run_with(&c, at);
        norm_groups_clusters = false;
        case_end();
    }
}

/* The same of random shares: of few turns, several or one channel, whole in a block, or in a cluster of 2, 4, 8 or 16, or larger than it. */
static void random_clusters(int turns)
{
    static const struct {
        int units, shares;
    } classes[] = {{33000, 19}, {74000, 10}, {148000, 5}, {300000, 5},
                   {8000, 199}, {16500, 96}, {19000, 49}, {33000, 66}};
    for (int turn = 0; harness_all_engines && turn < turns; ++turn) {
        struct norm_groups_options o = {LAYOUT_NCHW, false, -3.0, 3.0};
        struct norm_groups_image m = {0};
        struct norms_case c;
        int of = turn % COUNT(classes);
        int phase, type, run, units;
        if (!case_begin("clusters/random/%d", turn)) continue;
        phase = (int)random_int(0, PHASES - 1);
        type = (int)random_int(0, TYPES - 1);
        run = type == 0 ? 4 : 8;
        units = classes[of].units + (int)random_int(0, classes[of].units / 9);
        m.groups = phase == NORMS_TRAINING && random_chance(0.5) ? random_of(1, 2) : 0;
        m.channels = m.groups ? m.groups * random_of(2, 3, 5, 16) : random_of(1, 2);
        m.samples = classes[of].shares + (int)random_int(0, 1);
        if (m.groups == 2 || (!m.groups && m.channels == 2)) m.samples = (m.samples + 1) / 2;
        m.spatial[0] = (int)random_int(40, 400);
        m.spatial[1] = units / (m.groups ? m.channels / m.groups : 1) / m.spatial[0] * run + run;
        c = norm_groups_case(&m, phase, type, random_chance(0.5));
        c.statistics = phase != NORMS_INFERENCE;
        norm_groups_tensors(&c, &o);
        norm_groups_clusters = true;
        norm_groups_run(&c);
        norm_groups_clusters = false;
        case_end();
    }
}

/* A sample that is longer than what blocks that meet keep. */
static void long_samples(void)
{
    static const struct norm_groups_image m = {1, 32, 1, {488, 488}};
    if (!harness_usual_order()) return;
    norm_groups_image(&m, "long", 1, 1, 0, false);
    norm_groups_image(&m, "long", 0, 1, 0, false);
    norm_groups_image(&m, "long", 1, 2, 1, false);
}

static void read_twice(void)
{
    const struct norm_groups_image m = {1, 1, 0, {999, 1001}};
    norm_groups_twice = true;
    for (int k = 0; harness_usual_order() && k < LAYOUTS * PHASES * TYPES; ++k) {
        int phase = k / LAYOUTS % PHASES;
        if (phase == NORMS_INFERENCE) continue;
        norm_groups_image(&m, "twice", k % LAYOUTS, phase, k / LAYOUTS / PHASES, false);
    }
    norm_groups_twice = false;
}

static void random_cases(int turns)
{
    for (int turn = 0; turn < turns; ++turn) {
        struct norm_groups_image m = {.samples = (int)random_int(1, 5)};
        int rank = (int)random_int(0, 3);
        int each = random_of(1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 24);
        int groups = (int)random_int(1, 12);
        m.channels = each * groups;
        m.groups = random_chance(0.3) ? 0 : groups;
        for (int d = 0; d < rank; ++d) m.spatial[d] = random_of(1, 2, 3, 4, 5, 7, 8, 11, 16, 20);
        norm_groups_image(&m, "random", (int)random_int(0, LAYOUTS - 1),
                          (int)random_int(0, PHASES - 1), (int)random_int(0, TYPES - 1),
                          random_chance(0.3));
    }
}

/* Every kernel has run. */
static void all_reached(void)
{
    static const char *const ways[] = {"planes", "columns"};
    static const char *const directions[] = {"forward", "backward"};
    static const char *const steps[] = {"whole", "sums", "apply"};
    enum { STEPS = 3, KERNELS = 2 * 2 * STEPS * TYPES, ROOM = 64 };
    static const char *const others[] = {"wd_norm_groups_statistics",
                                         "wd_norm_groups_gradients",
                                         "wd_norm_groups_params",
                                         "wd_norm_kept_params",
                                         "wd_norm_spot_f32",
                                         "wd_norm_spot_f16",
                                         "wd_norm_spot_bf16",
                                         "wd_norm_shares_whole_f16",
                                         "wd_norm_shares_whole_bf16",
                                         "wd_norm_shares_beside_f32",
                                         "wd_norm_shares_beside_f16",
                                         "wd_norm_shares_beside_bf16",
                                         "wd_norm_shares_backward_f16",
                                         "wd_norm_shares_backward_bf16",
                                         "wd_norm_clusters_forward_f32",
                                         "wd_norm_clusters_forward_f16",
                                         "wd_norm_clusters_forward_bf16",
                                         "wd_norm_halves_clusters_f32",
                                         "wd_norm_halves_clusters_f16",
                                         "wd_norm_halves_clusters_bf16",
                                         "wd_norm_clusters_backward_f32",
                                         "wd_norm_clusters_backward_f16",
                                         "wd_norm_clusters_backward_bf16",
                                         "wd_norm_shares_walk_back_f32",
                                         "wd_norm_shares_walk_back_f16",
                                         "wd_norm_shares_walk_back_bf16"};
    static const char *const kept[] = {"planes_%s_even", "planes_%s_odd", "planes_%s_beside",
                                       "columns_%s"};
    enum { KEPT = COUNT(kept) * 2 * TYPES, MOST = KEPT > KERNELS ? KEPT : KERNELS };
    static char names[MOST][ROOM];
    const char *symbols[MOST];
    int count = 0;
    for (int k = 0; k < KERNELS; ++k) {
        int way = k / TYPES / STEPS;
        if (way < 2 && k / TYPES % STEPS == 0) continue; /* planes that are kept are norm_kept's */
        snprintf(names[count], ROOM, "wd_norm_groups_%s_%s_%s_%s", ways[way / 2],
                 directions[way % 2], steps[k / TYPES % STEPS], norm_groups_types[k % TYPES]);
        symbols[count] = names[count];
        count += 1;
    }
    kernels_reached(symbols, count);
    for (int k = 0; k < KEPT; ++k) {
        char way[ROOM];
        snprintf(way, ROOM, kept[k / TYPES / 2], directions[k / TYPES % 2]);
        snprintf(names[k], ROOM, "wd_norm_kept_%s_%s", way, norm_groups_types[k % TYPES]);
        symbols[k] = names[k];
    }
    kernels_reached(symbols, KEPT);
    kernels_reached(others, COUNT(others));
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    shapes();
    large();
    random_cases(120);
    shared_samples();
    spots();
    shares();
    walking_shares();
    held_by_clusters();
    random_clusters(16);
    long_samples();
    read_twice();
    norm_groups_hard_cases();
    if (argc == 1 && harness_usual_order()) all_reached();
    return harness_finish();
}
