/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm of images: channels first and last, one, two and three spatial
 * dimensions, shares of one element to some that exceed what blocks keep, every type and phase, at
 * addresses that are aligned to 16 bytes and to an element alone, against plain sums. On a GPU the
 * engines of groups have to take all of these, by each of their kernels. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels_reached.h"
#include "norms_graph.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
static const char *const type_names[] = {"f32", "f16", "bf16"};
static const char *const phase_names[] = {"inference", "training", "backward"};
static const char *const layout_names[] = {"nchw", "nhwc"};
enum { TYPES = 3, PHASES = 3, LAYOUTS = 2, OFF = 3 };

/* Whether the engines of groups run: while they have not run on a device, where all are named. */
static bool by_groups(void)
{
    const char *engines = getenv("WARPDNN_ENGINES");
    return harness_on_gpu && engines && strcmp(engines, "*") == 0;
}

struct options {
    enum layout layout;
    bool off; /* of data off the boundaries */
    double low, high;
};

static void make_tensors(struct norms_case *c, const struct options *o)
{
    bool backward = c->phase == NORMS_BACKWARD;
    tensor_odd = o->off ? OFF : 0;
    c->x = tensor_input(c->x_type, c->rank, c->dim, o->layout, o->low, o->high);
    if (backward) {
        c->dy = tensor_input(c->y_type, c->rank, c->dim, o->layout, -2.0, 2.0);
        c->dx = norms_fresh(c->y_type, c->rank, c->dim, o->layout);
    } else {
        c->y = norms_fresh(c->y_type, c->rank, c->dim, o->layout);
    }
    tensor_odd = 0;
    c->scale = tensor_input(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW, 0.25, 2.0);
    if (backward) {
        c->dscale = norms_fresh(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW);
        if (c->bias) c->dbias = norms_fresh(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW);
    } else if (c->bias) {
        c->bias_tensor = tensor_input(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW, -1.0, 1.0);
    }
    if (!c->statistics) return;
    if (c->phase == NORMS_TRAINING) {
        c->inv_std = norms_fresh(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW);
        c->mean = norms_fresh(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW);
    } else {
        c->inv_std = tensor_input(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW, 0.3, 1.5);
        c->mean = tensor_input(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW, -1.0, 1.0);
    }
}

/* By the engine that reads twice whatever the size, for it is the last resort. */
enum { TWICE_TRAINING = 383, TWICE_BACKWARD = 384 };
static bool twice, always_twice;

static void check_engine(const struct norms_case *c)
{
    static const char *const names[] = {"norm_inference_groups", "norm_training_groups",
                                        "norm_backward_groups"};
    static const char *const kept[] = {"", "norm_training_kept", "norm_backward_kept"};
    static const char *const spot[] = {"", "norm_training_spot", ""};
    static const char *const shares[] = {"", "norm_training_shares", "norm_backward_shares"};
    const char *name = "";
    bool right;
    if (!by_groups()) return;
    warpdnnGetLastEngine(harness_handle, &name);
    right = strcmp(name, names[c->phase]) == 0;
    if (!twice) {
        right = right || strcmp(name, kept[c->phase]) == 0 || strcmp(name, spot[c->phase]) == 0 ||
                strcmp(name, shares[c->phase]) == 0;
    }
    if (!right) case_fail("%s ran, not %s", name, names[c->phase]);
}

/* Scale and bias, both, in fp32, as the engine of shares asks, which then runs. */
static bool fp32_params;

/* Of tensors that are made; `instead`, if not negative, is an element of x that the definition takes
 * for a NaN. */
static void run_with(struct norms_case *c, int64_t instead)
{
    struct graph_run r = {.count = 0};
    struct norms_inputs in = norms_inputs(c);
    be_desc op = norms_operation(&r, c);
    bool ran;
    if (instead >= 0) in.x[instead] = NAN;
    twice = by_groups() && c->phase != NORMS_INFERENCE && !fp32_params &&
            (random_chance(0.3) || always_twice);
    if (twice) {
        int64_t engine = c->phase == NORMS_BACKWARD ? TWICE_BACKWARD : TWICE_TRAINING;
        r.plan =
            be_plan(harness_handle, be_config(be_engine(be_graph(harness_handle, 1, &op), engine)));
        ran = graph_run_plan(&r);
    } else {
        ran = graph_run(&r, 1, &op);
    }
    if (ran) {
        check_engine(c);
        if (harness_values) norms_judge(c, &in);
    }
    norms_inputs_free(&in);
    be_free_all();
}

static void run_made(struct norms_case *c)
{
    run_with(c, -1);
}

/* Samples, channels, groups (0: instance norm), and what is spatial. */
struct image {
    int samples, channels, groups;
    int spatial[3]; /* 0: no such dimension */
};

static struct norms_case start(const struct image *m, int phase, int type, bool own_params)
{
    struct norms_case c = {.mode = m->groups ? CUDNN_GROUP_NORM : CUDNN_INSTANCE_NORM,
                           .phase = (enum norms_phase)phase};
    c.x_type = c.y_type = types[type];
    c.param_type = own_params ? types[type] : CUDNN_DATA_FLOAT;
    c.stat_type = CUDNN_DATA_FLOAT;
    c.bias = !random_chance(0.2);
    /* the number of groups is that of the statistics */
    c.statistics = m->groups || phase != NORMS_INFERENCE || random_chance(0.5);
    c.epsilon = 0x1p-17;
    c.dim[0] = c.stat_dim[0] = m->samples;
    c.dim[1] = c.scale_dim[1] = m->channels;
    c.stat_dim[1] = m->groups ? m->groups : m->channels;
    c.scale_dim[0] = 1;
    c.rank = 2;
    for (int d = 0; d < 3 && m->spatial[d] > 0; ++d) {
        c.dim[c.rank] = m->spatial[d];
        c.stat_dim[c.rank] = c.scale_dim[c.rank] = 1;
        c.rank += 1;
    }
    return c;
}

static void run_image(const struct image *m, const char *name, int layout, int phase, int type,
                      bool off)
{
    struct options o = {layout ? LAYOUT_NHWC : LAYOUT_NCHW, off, -3.0, 3.0};
    struct norms_case c;
    if (!case_begin("%s/%s/%s/%s/%dx%dg%dx%dx%dx%d/%s", name, layout_names[layout],
                    phase_names[phase], type_names[type], m->samples, m->channels, m->groups,
                    m->spatial[0], m->spatial[1], m->spatial[2], off ? "off" : "on")) {
        return;
    }
    c = start(m, phase, type, random_chance(0.3) && !fp32_params);
    c.bias = c.bias || fp32_params;
    make_tensors(&c, &o);
    run_made(&c);
    case_end();
}

/* What fits shared memory, in warps, blocks and clusters, by whole runs and by single elements. */
static void shapes(void)
{
    static const struct image list[] = {
        {1, 1, 0, {1}},        {2, 1, 1, {3, 5}},    {3, 5, 0, {1, 1}},     {700, 24, 0, {0}},
        {3, 40, 8, {0}},       {5, 33, 11, {0}},     {9, 7, 7, {2, 2}},     {4, 6, 3, {7, 7}},
        {33, 64, 0, {7, 7}},   {2, 96, 3, {11, 13}}, {3, 32, 4, {8, 8}},    {2, 320, 32, {16, 16}},
        {1, 40, 4, {64}},      {2, 17, 1, {31}},     {2, 64, 32, {28, 28}}, {3, 12, 0, {14, 14}},
        {2, 16, 0, {4, 8, 8}}, {2, 6, 2, {3, 5, 7}}, {1, 128, 1, {12, 12}}, {2, 256, 2, {5, 8}},
        {1, 300, 1, {5, 5}},   {1, 2056, 1, {3, 3}}, {1, 8, 0, {64, 64}},   {1, 16, 2, {56, 56}},
        {1, 3, 0, {111, 113}}, {2, 3, 1, {41, 43}},  {1, 8, 1, {64, 80}},
    };
    for (int s = 0; s < COUNT(list); ++s) {
        const struct image *m = &list[s];
        int64_t count = (int64_t)m->samples * m->channels;
        for (int d = 0; d < 3 && m->spatial[d] > 0; ++d) count *= m->spatial[d];
        for (int k = 0; k < 2 * LAYOUTS * PHASES * TYPES; ++k) {
            bool off = k % 2;
            if ((k + 5 * s) % (count > 20000 ? 5 : 1) != 0) continue;
            run_image(m, "shape", k / 2 % LAYOUTS, k / 2 / LAYOUTS % PHASES,
                      k / 2 / LAYOUTS / PHASES, off);
        }
    }
}

/* More than clusters keep, so that sums and outputs are apart: few shares, many channels of a group,
 * one long plane. And clusters of several blocks. */
static void large(void)
{
    static const struct image list[] = {
        {1, 2, 1, {720, 720}},  {1, 600, 2, {40, 40}},  {1, 1, 0, {999, 1001}},
        {2, 24, 3, {160, 161}}, {1, 96, 1, {101, 103}}, {1, 80, 2, {96, 96}},
        {1, 4, 0, {320, 320}},
    };
    for (int s = 0; s < COUNT(list); ++s) {
        for (int k = 0; k < LAYOUTS * PHASES * TYPES; ++k) {
            /* definitions take their time */
            if (!by_groups() && (k + s) % 9 != 0) continue;
            if ((k / LAYOUTS + s) % 3 == 0) continue;
            run_image(&list[s], "large", k % LAYOUTS, k / LAYOUTS % PHASES, k / LAYOUTS / PHASES,
                      random_chance(0.2));
        }
    }
}

/* Samples that blocks which meet share, by several teams; groups of many channels; odd rows. */
static void shared_samples(void)
{
    static const struct image list[] = {
        {9, 64, 0, {64, 30}},    {5, 40, 4, {113, 61}},  {3, 320, 32, {33, 40}},
        {40, 136, 17, {14, 14}}, {2, 24, 3, {160, 161}}, {2, 1032, 1, {20, 21}},
        {2, 3, 0, {512, 400}},   {7, 24, 2, {96, 96}},
    };
    for (int s = 0; s < 2 * COUNT(list); ++s) {
        for (int k = 0; k < PHASES * TYPES; ++k) {
            if (!by_groups() && (k + s) % 9 != 0) continue;
            run_image(&list[s / 2], "shared", s % 2, k % PHASES, k / PHASES, random_chance(0.2));
        }
    }
}

/* Instance norm with channels last of samples that blocks have in registers: of one to four rows a
 * thread, of one row too many, and of more blocks than processors. */
static void spots(void)
{
    static const struct image list[] = {
        {1, 64, 0, {32, 32}}, {2, 32, 0, {2}},     {3, 24, 0, {5, 7}},  {1, 16, 0, {1024}},
        {1, 8, 0, {1025}},    {5, 8, 0, {31, 33}}, {40, 64, 0, {4, 4}},
    };
    for (int k = 0; k < COUNT(list) * PHASES * TYPES; ++k) {
        run_image(&list[k / PHASES / TYPES], "spot", 1, k % PHASES, k / PHASES % TYPES, k % 5 == 4);
    }
}

/* With channels first, shares that a few threads have in registers: planes beside each other, all of a warp's or none,
 * and whole units of two bytes, whose planes end anywhere in them; one share too many for a block, and for a thread. */
static void shares(void)
{
    static const struct image list[] = {
        {3, 16, 0, {6, 6}},  {5, 8, 0, {3, 11}},  {9, 24, 0, {7, 7}},   {2, 12, 0, {8, 8}},
        {3, 64, 2, {7, 7}},  {5, 128, 2, {7, 7}}, {3, 40, 1, {14, 14}}, {1, 3, 0, {24, 24}},
        {3, 5, 0, {36, 56}}, {2, 48, 2, {5, 5}},  {1, 80, 1, {103}},    {2, 16, 0, {2, 8, 32}},
        {1, 8, 1, {32, 33}},
    };
    fp32_params = true;
    for (int k = 0; k < 4 * COUNT(list) * TYPES; ++k) {
        bool off = k / 2 / TYPES % 2 != 0;
        int phase = k % 2 ? NORMS_BACKWARD : NORMS_TRAINING;
        if (off && k % 5 > 1) continue;
        run_image(&list[k / 4 / TYPES], "shares", 0, phase, k / 2 % TYPES, off);
    }
    fp32_params = false;
}

/* Shares that several blocks have, in more turns than few: of channels that begin within a warp's part, with a last block
 * and a warp that have less, one share without a number; and gradients, whose warps' parts are of one channel each. */
static void walking_shares(void)
{
    static const struct image forward = {30, 24, 12, {136, 250}},
                              backward = {15, 12, 0, {264, 256}};
    static const double values[] = {INFINITY, NAN, -INFINITY};
    if (!harness_all_engines) return;
    fp32_params = true;
    for (int type = 0; type < TYPES; ++type) {
        struct options o = {LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        run_image(&backward, "walking", 0, NORMS_BACKWARD, type, false);
        if (!case_begin("walking/nchw/training/%s", type_names[type])) continue;
        c = start(&forward, NORMS_TRAINING, type, false);
        c.bias = true;
        make_tensors(&c, &o);
        c.x->value[(2 * forward.channels + 2) * 136 * 250] = values[type]; /* its share's first */
        tensor_write(c.x);
        run_with(&c, (2 * forward.channels + 2) * 136 * 250);
        case_end();
    }
    fp32_params = false;
}

/* A sample that is longer than what blocks that meet keep. */
static void long_samples(void)
{
    static const struct image m = {1, 32, 1, {488, 488}};
    if (!by_groups()) return;
    run_image(&m, "long", 1, 1, 0, false);
    run_image(&m, "long", 0, 1, 0, false);
    run_image(&m, "long", 1, 2, 1, false);
}

static void read_twice(void)
{
    const struct image m = {1, 1, 0, {999, 1001}};
    always_twice = true;
    for (int k = 0; by_groups() && k < LAYOUTS * PHASES * TYPES; ++k) {
        int phase = k / LAYOUTS % PHASES;
        if (phase == NORMS_INFERENCE) continue;
        run_image(&m, "twice", k % LAYOUTS, phase, k / LAYOUTS / PHASES, false);
    }
    always_twice = false;
}

static void random_cases(int turns)
{
    for (int turn = 0; turn < turns; ++turn) {
        struct image m = {.samples = (int)random_int(1, 5)};
        int rank = (int)random_int(0, 3);
        int each = random_of(1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 24);
        int groups = (int)random_int(1, 12);
        m.channels = each * groups;
        m.groups = random_chance(0.3) ? 0 : groups;
        for (int d = 0; d < rank; ++d) m.spatial[d] = random_of(1, 2, 3, 4, 5, 7, 8, 11, 16, 20);
        run_image(&m, "random", (int)random_int(0, LAYOUTS - 1), (int)random_int(0, PHASES - 1),
                  (int)random_int(0, TYPES - 1), random_chance(0.3));
    }
}

/* An offset that swallows the variance in plain sums. */
static void offsets(void)
{
    static const struct image list[] = {{3, 6, 3, {5, 5}},
                                        {2, 32, 4, {20, 20}},
                                        {1, 16, 1, {64, 64}},
                                        {1, 8, 0, {120, 120}},
                                        {3, 8, 0, {7, 7}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS; ++k) {
        struct options o = {k % LAYOUTS ? LAYOUT_NHWC : LAYOUT_NCHW, false, 9998.3, 10001.7};
        struct norms_case c;
        if (!case_begin("offset/%d/%s", k / LAYOUTS, layout_names[k % LAYOUTS])) continue;
        c = start(&list[k / LAYOUTS], NORMS_TRAINING, 0, false);
        make_tensors(&c, &o);
        run_made(&c);
        case_end();
    }
}

/* y over x, dx over dy: a share has been read before any of it is written. */
static void in_place(void)
{
    static const struct image list[] = {
        {3, 6, 3, {5, 5}}, {2, 32, 4, {20, 20}}, {1, 16, 1, {96, 96}}, {3, 8, 0, {7, 7}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS * PHASES; ++k) {
        int phase = k % PHASES;
        int layout = k / PHASES % LAYOUTS;
        int s = k / PHASES / LAYOUTS;
        struct options o = {layout ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        struct tensor *both;
        if (!case_begin("in_place/%s/%s/%d", phase_names[phase], layout_names[layout], s)) continue;
        c = start(&list[s], phase, k % TYPES, false);
        make_tensors(&c, &o);
        both = tensor_inout(c.x_type, c.rank, c.dim, o.layout, -2.0, 2.0);
        if (phase == NORMS_BACKWARD) c.dy = c.dx = both;
        else c.x = c.y = both;
        run_made(&c);
        case_end();
    }
}

/* A constant share stays at the bias exactly, however small epsilon is; a NaN stays in its share. */
static void special_values(void)
{
    static const struct image list[] = {
        {1, 6, 2, {5, 5}}, {1, 32, 2, {24, 24}}, {1, 2, 0, {720, 720}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS; ++k) {
        struct options o = {k % LAYOUTS ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        struct graph_run r = {.count = 0};
        be_desc op;
        if (!case_begin("special/%d/%s", k / LAYOUTS, layout_names[k % LAYOUTS])) continue;
        c = start(&list[k / LAYOUTS], NORMS_TRAINING, 0, false);
        c.epsilon = 0x1p-40;
        c.bias = true;
        make_tensors(&c, &o);
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
    static const struct image list[] = {
        {2, 8, 0, {8, 8}},   {2, 6, 2, {5, 5}},    {3, 16, 0, {20, 20}}, {2, 32, 4, {24, 24}},
        {1, 4, 2, {41, 43}}, {1, 16, 2, {56, 56}}, {2, 8, 0, {64, 80}},
    };
    static const double values[] = {NAN, INFINITY, -INFINITY};
    enum { VALUES = 3, PLACES = 3, ALL = VALUES * PLACES * LAYOUTS * 2 };
    for (int k = 0; k < COUNT(list) * ALL; ++k) {
        const struct image *m = &list[k / ALL];
        int layout = k % LAYOUTS;
        int place = k / LAYOUTS % PLACES;
        int value = k / LAYOUTS / PLACES % VALUES;
        struct options o = {layout ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        int64_t share;
        int64_t at;
        always_twice = k / LAYOUTS / PLACES / VALUES % 2 != 0;
        if (always_twice && !by_groups()) continue;
        if (!case_begin("no_number/%d/%s/%g/%d/%d", k / ALL, layout_names[layout], values[value],
                        place, always_twice)) {
            continue;
        }
        c = start(m, NORMS_TRAINING, (place + value + k / ALL) % TYPES, false);
        make_tensors(&c, &o);
        share = c.x->count / m->samples / c.stat_dim[1];
        at = share + (place == 0 ? 0 : place == 1 ? share / 2 + 3 : share - 1);
        c.x->value[at] = values[value];
        tensor_write(c.x);
        run_with(&c, at);
        case_end();
    }
    always_twice = false;
}

/* Parameters that nobody asks for. */
static void without_gradients(void)
{
    static const struct image list[] = {
        {3, 6, 3, {5, 5}}, {2, 32, 4, {20, 20}}, {1, 2, 0, {720, 720}}};
    for (int k = 0; k < COUNT(list) * LAYOUTS; ++k) {
        struct options o = {k % LAYOUTS ? LAYOUT_NHWC : LAYOUT_NCHW, false, -3.0, 3.0};
        struct norms_case c;
        if (!case_begin("dx_alone/%d/%s", k / LAYOUTS, layout_names[k % LAYOUTS])) continue;
        c = start(&list[k / LAYOUTS], NORMS_BACKWARD, 0, false);
        make_tensors(&c, &o);
        c.dscale = c.dbias = NULL;
        run_made(&c);
        case_end();
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
                                         "wd_norm_shares_walk_f32",
                                         "wd_norm_shares_walk_f16",
                                         "wd_norm_shares_walk_bf16",
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
                 directions[way % 2], steps[k / TYPES % STEPS], type_names[k % TYPES]);
        symbols[count] = names[count];
        count += 1;
    }
    kernels_reached(symbols, count);
    for (int k = 0; k < KEPT; ++k) {
        char way[ROOM];
        snprintf(way, ROOM, kept[k / TYPES / 2], directions[k / TYPES % 2]);
        snprintf(names[k], ROOM, "wd_norm_kept_%s_%s", way, type_names[k % TYPES]);
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
    long_samples();
    read_twice();
    offsets();
    in_place();
    special_values();
    no_numbers();
    without_gradients();
    if (argc == 1 && by_groups()) all_reached();
    return harness_finish();
}
