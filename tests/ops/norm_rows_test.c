/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer norm and RMS norm over rows without gaps: lengths of one element to 98,296, one row to
 * thousands, every type and phase, at addresses that are aligned to 16 bytes and to an element alone,
 * against plain sums. On a GPU the engines of rows have to take all of these, by each of their ways;
 * longer rows, and backward without statistics, are other engines'. Hard values: norm_rows_hard_test.c. */
#include <math.h>
#include <stdlib.h>

#include "kernels_reached.h"
#include "norms_graph.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
static const char *const type_names[] = {"f32", "f16", "bf16"};
static const char *const phase_names[] = {"inference", "training", "backward"};
enum { TYPES = 3, PHASES = 3, ROW_COLUMNS = 8, SLACK = 24 };

/* Cases that ran, by direction, type, and whether their rows are whole runs. */
static int reached[2][TYPES][2];

/* A tensor, last dimension fastest, that begins `skip` elements into a larger one. */
struct window {
    struct tensor inner;
    struct tensor *whole;
    int skip;
};

enum { WINDOWS = 4 };
static struct window windows[WINDOWS];
static int window_count;

static struct tensor *window(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                             int skip, bool output, double low, double high)
{
    struct window *w;
    int64_t count = norms_count(rank, dim);
    const int line[2] = {1, (int)(count + SLACK)};
    int64_t stride = 1;
    if (layout != LAYOUT_NCHW) {
        return output ? norms_fresh(dtype, rank, dim, layout)
                      : tensor_input(dtype, rank, dim, layout, low, high);
    }
    w = &windows[window_count++];
    w->skip = skip;
    w->whole = output ? norms_fresh(dtype, 2, line, LAYOUT_NCHW)
                      : tensor_input(dtype, 2, line, LAYOUT_NCHW, low, high);
    w->inner = *w->whole;
    w->inner.rank = rank;
    w->inner.count = count;
    for (int d = rank - 1; d >= 0; --d) {
        w->inner.dim[d] = dim[d];
        w->inner.stride[d] = (int)stride;
        stride *= dim[d];
    }
    w->inner.value += skip;
    w->inner.data = (char *)w->inner.data + skip * (w->whole->bytes / w->whole->count);
    return &w->inner;
}

/* What the outputs' windows leave out is as it was. */
static void check_outside(void)
{
    for (int k = 0; k < window_count; ++k) {
        const struct window *w = &windows[k];
        for (int64_t i = 0; i < w->whole->count && w->whole->output; ++i) {
            bool inside = i >= w->skip && i < w->skip + w->inner.count;
            if (!inside && harness_values && w->whole->value[i] == w->whole->value[i]) {
                case_fail("element %d beside an output became %g", (int)i - w->skip,
                          w->whole->value[i]);
                return;
            }
        }
    }
}

struct options {
    enum layout layout; /* of x */
    int skip_x, skip_y;
    double low, high;
};

static void make_tensors(struct norms_case *c, const struct options *o)
{
    bool backward = c->phase == NORMS_BACKWARD;
    bool centered = c->mode != CUDNN_RMS_NORM;
    window_count = 0;
    c->x = window(c->x_type, c->rank, c->dim, o->layout, o->skip_x, false, o->low, o->high);
    c->scale = tensor_input(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW, 0.25, 2.0);
    if (backward) {
        c->dy = window(c->y_type, c->rank, c->dim, o->layout, o->skip_x, false, -2.0, 2.0);
        c->dx = window(c->y_type, c->rank, c->dim, o->layout, o->skip_y, true, 0.0, 1.0);
        c->dscale = norms_fresh(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW);
        if (c->bias) c->dbias = norms_fresh(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW);
    } else {
        c->y = window(c->y_type, c->rank, c->dim, o->layout, o->skip_y, true, 0.0, 1.0);
        if (c->bias) {
            c->bias_tensor =
                tensor_input(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW, -1.0, 1.0);
        }
    }
    if (!c->statistics) return;
    if (c->phase == NORMS_TRAINING) {
        c->inv_std = norms_fresh(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW);
        if (centered) c->mean = norms_fresh(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW);
    } else {
        c->inv_std = tensor_input(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW, 0.3, 1.5);
        if (centered) {
            c->mean = tensor_input(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW, -1.0, 1.0);
        }
    }
}

/* Which engine has to have run: one of rows, or that of all others. */
static void check_engine(const struct norms_case *c, bool rows, bool runs)
{
    static const char *const names[][PHASES] = {
        {"norm_inference_long", "norm_training_long", "norm_backward_long"},
        {"norm_inference_rows", "norm_training_rows", "norm_backward_rows"}};
    static const char *const few[] = {"norm_inference_few", "norm_training_few", ""};
    const char *name = "";
    int type = 0;
    if (!harness_all_engines) return;
    warpdnnGetLastEngine(harness_handle, &name);
    /* few rows have engines of their own */
    if (strcmp(name, names[rows][c->phase]) != 0 && !(rows && strcmp(name, few[c->phase]) == 0))
        case_fail("%s ran, not %s", name, names[rows][c->phase]);
    while (types[type] != c->x_type) ++type;
    if (rows) reached[c->phase == NORMS_BACKWARD][type][runs] += 1;
}

static void run_with(struct norms_case *c, const struct options *o, bool rows)
{
    struct graph_run r = {.count = 0};
    struct norms_inputs in;
    int64_t length = norms_count(c->rank, c->dim) / norms_count(c->rank, c->stat_dim);
    bool runs = length % ROW_COLUMNS == 0;
    be_desc op;
    make_tensors(c, o);
    in = norms_inputs(c);
    for (int k = 0; k < window_count; ++k)
        runs = runs && (uintptr_t)windows[k].inner.data % 16 == 0;
    op = norms_operation(&r, c);
    if (graph_run(&r, 1, &op)) {
        check_engine(c, rows, runs);
        if (harness_values) norms_judge(c, &in);
        check_outside();
    }
    norms_inputs_free(&in);
    be_free_all();
    case_end();
}

static void run_case(struct norms_case *c, const struct options *o)
{
    run_with(c, o, true);
}

/* Rows of a length, and how many. */
static void set_rows(struct norms_case *c, const int *row)
{
    const int stat[2] = {row[0], 1}, scale[2] = {1, row[1]};
    norms_set_dims(c, 2, row, stat, scale);
}

static struct norms_case start(int mode, int phase, int type, int turn)
{
    struct norms_case c = {.mode = mode, .phase = (enum norms_phase)phase};
    c.x_type = c.y_type = types[type];
    c.param_type = turn % 2 ? types[type] : CUDNN_DATA_FLOAT;
    c.stat_type = CUDNN_DATA_FLOAT;
    c.bias = mode == CUDNN_LAYER_NORM ? !random_chance(0.2) : random_chance(0.3);
    /* without them the dims of the scale say what is normalized, which one of 1 does not */
    c.statistics = phase != NORMS_INFERENCE || random_chance(0.5);
    c.epsilon = 0x1p-17;
    return c;
}

/* Lengths and numbers of rows; many rows make blocks walk, which costs definitions their time. */
static void shapes(void)
{
    static const int small[][2] = {
        {1, 1},     {1000, 1},  {5, 7},     {5003, 7},  {777, 31},  {3, 64},    {2050, 64},
        {9, 200},   {1, 256},   {33, 256},  {21, 264},  {1, 768},   {40, 768},  {40, 1023},
        {64, 1024}, {7, 1032},  {1, 4096},  {9, 4097},  {3, 5120},  {1, 8192},  {2, 8191},
        {5, 8200},  {3, 12288}, {2, 12289}, {2, 32768}, {2, 40000}, {1, 65536}, {2, 65535},
        {1, 98296}, {2, 90001}, {3, 9224},  {2, 18944}, {3, 16380}, {1, 66560},
    };
    static const int large[][2] = {
        {17003, 64},  {1400, 768},  {140, 11008}, {1100, 1024}, {1060, 1023},
        {140, 8192},  {210, 5120},  {85, 12288},  {18, 40000},  {34, 65536},
        {20, 147456}, {1100, 1028}, {140, 16384}, {600, 1536},  {400, 8200},
        {140, 10232}, {280, 13824}, {140, 18944}, {70, 50304},
    };
    for (int s = 0; s < COUNT(small) + COUNT(large); ++s) {
        const int *row = s < COUNT(small) ? small[s] : large[s - COUNT(small)];
        bool is_large = s >= COUNT(small);
        int share = is_large ? 9 : row[0] * row[1] > 20000 ? 4 : 1;
        for (int k = 0; k < 2 * PHASES * TYPES; ++k) {
            int mode = k % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
            int phase = k / 2 % PHASES;
            int type = k / 2 / PHASES;
            for (int turn = 0; turn < 2; ++turn) {
                /* the second time off the boundaries */
                struct options o = {LAYOUT_NCHW, turn, turn, -3.0, 3.0};
                struct norms_case c;
                if (is_large && !harness_all_engines) continue;
                if ((turn + k + 5 * s) % share != 0) continue;
                if (!case_begin("rows/%s/%s/%s/%dx%d/%s", mode == CUDNN_RMS_NORM ? "rms" : "layer",
                                phase_names[phase], type_names[type], row[0], row[1],
                                turn ? "off" : "on")) {
                    continue;
                }
                c = start(mode, phase, type, (int)random_int(0, 1));
                if (row[1] == 1) c.statistics = true;
                if (turn && random_chance(0.5)) o.skip_y = 8;
                set_rows(&c, row);
                run_case(&c, &o);
            }
        }
    }
}

/* Rows off the boundaries that blocks walk down for several turns: by units that stay a thread's own. */
static void odd_walks(void)
{
    static const int list[][2] = {{700, 4097}, {4003, 513}};
    for (int k = 0; k < COUNT(list) * PHASES * TYPES; ++k) {
        const int *row = list[k % COUNT(list)];
        int phase = k / COUNT(list) % PHASES;
        int type = k / COUNT(list) / PHASES;
        int skip = (k / COUNT(list) + k) % 2;
        int mode = (phase + type) % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
        struct options o = {LAYOUT_NCHW, skip, skip, -3.0, 3.0};
        struct norms_case c;
        if (!harness_all_engines) continue;
        if (!case_begin("odd_walk/%s/%s/%s/%dx%d/%s", mode == CUDNN_RMS_NORM ? "rms" : "layer",
                        phase_names[phase], type_names[type], row[0], row[1],
                        skip ? "off" : "on")) {
            continue;
        }
        c = start(mode, phase, type, k);
        set_rows(&c, row);
        run_case(&c, &o);
    }
}

/* Gradients of rows that no cluster holds, by blocks of which the last has fewer warps. */
static void parted(void)
{
    static const int row[] = {20, 106496};
    for (int type = 0; type < TYPES; ++type) {
        struct options o = {LAYOUT_NCHW, 0, 0, -3.0, 3.0};
        struct norms_case c;
        if (!harness_all_engines) continue;
        if (!case_begin("parted/layer/backward/%s/%dx%d", type_names[type], row[0], row[1]))
            continue;
        c = start(CUDNN_LAYER_NORM, NORMS_BACKWARD, type, 0);
        c.bias = true;
        set_rows(&c, row);
        run_case(&c, &o);
    }
}

/* Rows that no cluster holds, and gradients whose statistics are not given. */
static void others(void)
{
    static const int list[][2] = {
        {1, 131080}, {2, 140001}, {3, 131584}, {1, 300007}, {19, 132000}, {1, 560000}, {2, 600001},
        {1, 1},      {5, 7},      {300, 8},    {777, 31},   {2050, 64},   {9, 200},    {21, 264},
        {40, 1023},  {64, 1024},  {9, 4097},   {1, 8192},   {5, 8200},    {2, 40000},  {1100, 72}};
    for (int s = 0; s < COUNT(list); ++s) {
        for (int k = 0; k < 2 * PHASES * TYPES; ++k) {
            int mode = k % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
            int phase = k / 2 % PHASES, type = k / 2 / PHASES;
            bool is_long = list[s][1] > 131072;
            for (int turn = 0; turn < 2; ++turn) {
                struct options o = {LAYOUT_NCHW, turn, turn, -3.0, 3.0};
                struct norms_case c;
                if (!is_long && phase != NORMS_BACKWARD) continue;
                if (is_long && (k + turn + s) % 3 != 0) continue;
                if (!case_begin("others/%s/%s/%s/%dx%d/%s",
                                mode == CUDNN_RMS_NORM ? "rms" : "layer", phase_names[phase],
                                type_names[type], list[s][0], list[s][1], turn ? "off" : "on")) {
                    continue;
                }
                c = start(mode, phase, type, (int)random_int(0, 1));
                c.statistics = phase == NORMS_TRAINING || (is_long && random_chance(0.5));
                set_rows(&c, list[s]);
                run_with(&c, &o, false);
            }
        }
    }
}

/* More rows than are few, on the boundaries, of which all threads have as many columns. */
static void walks(void)
{
    enum { BACKWARD, FORWARD, F16 = 1, BF16 }; /* a direction, and a type where one is enough */
    static const int list[][4] = {
        {600, 64, BACKWARD, BF16},     {600, 768, BACKWARD, BF16},   {520, 1024, BACKWARD, BF16},
        {520, 1024, BACKWARD, BF16},   {140, 9984, BACKWARD, BF16},  {280, 5120, BACKWARD, BF16},
        {600, 1536, BACKWARD, BF16},   {140, 5376, BACKWARD, BF16},  {140, 8192, BACKWARD, BF16},
        {140, 16384, BACKWARD, BF16},  {3205, 1536, BACKWARD, BF16}, {281, 5120, BACKWARD, BF16},
        {3205, 2048, BACKWARD, BF16},  {1701, 2048, BACKWARD, BF16}, {6805, 1024, BACKWARD, BF16},
        {3205, 1536, BACKWARD, BF16},  {20, 147456, BACKWARD, BF16}, {20, 147456, BACKWARD, BF16},
        {16, 8192, BACKWARD, BF16},    {270, 8192, BACKWARD, BF16},  {2300, 8192, BACKWARD, BF16},
        {9000, 2048, BACKWARD, BF16},  {260, 65536, BACKWARD, BF16}, {200, 32768, FORWARD, BF16},
        {50, 147456, FORWARD, BF16},   {20, 32768, BACKWARD, BF16},  {20, 32768, BACKWARD, BF16},
        {1100, 32768, BACKWARD, BF16}, {1100, 32768, FORWARD, BF16}, {1110, 32768, FORWARD, F16},
        {2130, 16384, FORWARD, BF16},  {2120, 12288, FORWARD, BF16}, {2130, 18944, FORWARD, BF16},
        {540, 18952, FORWARD, BF16},   {490, 50304, FORWARD, BF16},  {490, 65536, FORWARD, BF16},
        {2130, 14336, FORWARD, BF16},  {2130, 13832, FORWARD, BF16}, {6400, 10240, FORWARD, F16},
        {6400, 12288, FORWARD, BF16},  {1060, 40960, FORWARD, F16},
    };
    for (int s = 0; s < COUNT(list); ++s) {
        for (int type = 0; type < TYPES; ++type) {
            struct options o = {LAYOUT_NCHW, 0, 0, -3.0, 3.0};
            struct norms_case c;
            if (list[s][1] > 1024 && !harness_all_engines) continue;
            /* whose last rows are for blocks that begin late, or are drawn: one type is enough */
            if (list[s][0] * list[s][1] > (1 << 24) && type != list[s][3]) continue;
            if (!case_begin("walk/%s/%s/%dx%d", s % 2 ? "rms" : "layer", type_names[type],
                            list[s][0], list[s][1])) {
                continue;
            }
            c = start(s % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM,
                      list[s][2] ? NORMS_TRAINING : NORMS_BACKWARD, type, type);
            c.bias = s % 2 == 0;
            set_rows(&c, list[s]);
            run_case(&c, &o);
        }
    }
}

/* Gradients of random rows, on the boundaries; most have columns that all threads share evenly. */
static void random_walks(void)
{
    for (int k = 0; k < 4 * TYPES; ++k) {
        const struct options o = {LAYOUT_NCHW, 0, 0, -3.0, 3.0};
        struct norms_case c;
        int row[2];
        if (!harness_all_engines || !case_begin("random_walk/%d", k)) continue;
        c = start(k % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM, NORMS_BACKWARD, k % TYPES, k);
        c.bias = k % 2 == 0;
        row[0] = (int)random_int(513, 2600);
        row[1] = (int)random_int(1, 6) * (random_chance(0.5) ? 1024 : 768);
        set_rows(&c, row);
        run_case(&c, &o);
    }
}

/* A few rows that no cluster holds, of which each block of the chip has a part: on the boundaries and off, which
 * begin at every place of a unit, of more columns than threads keep parameters of, and y apart from x. */
static void wide(void)
{
    static const int list[][2] = {{2, 140008}, {8, 140001}, {5, 131087}, {1, 1200003}};
    static const int skips[][2] = {{0, 0}, {1, 1}, {3, 3}, {1, 2}};
    for (int k = 0; k < COUNT(list) * COUNT(skips) * 2 * TYPES; ++k) {
        int phase = k % 2 ? NORMS_BACKWARD : NORMS_TRAINING;
        int type = k / 2 % TYPES;
        int turn = k / 2 / TYPES % COUNT(skips);
        const int *row = list[k / 2 / TYPES / COUNT(skips)];
        struct options o = {LAYOUT_NCHW, skips[turn][0], skips[turn][1], -3.0, 3.0};
        struct norms_case c;
        bool rms = row[0] == 5;
        if (row[0] != 2 && !harness_all_engines) continue;
        if (row[0] != 2 && (k / 2 + turn) % 2 && row[0] != 8) continue;
        if (row[0] != 2 && phase == NORMS_BACKWARD && (turn > 1 || row[0] == 1)) continue;
        if (!case_begin("wide/%s/%s/%dx%d/%d", phase_names[phase], type_names[type], row[0], row[1],
                        turn))
            continue;
        c = start(rms ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM, phase, type, k / 2);
        c.statistics = true;
        set_rows(&c, row);
        run_with(&c, &o, false);
    }
}

/* Rows of more than two dimensions, and of channels that lie last. */
static void layouts(void)
{
    static const struct {
        const char *name;
        enum layout layout;
        int rank;
        int dim[4], stat[4], scale[4];
    } list[] = {
        {"channels", LAYOUT_NHWC, 4, {2, 40, 3, 5}, {2, 1, 3, 5}, {1, 40, 1, 1}},
        {"channels_odd", LAYOUT_NHWC, 4, {3, 37, 2, 4}, {3, 1, 2, 4}, {1, 37, 1, 1}},
        {"images", LAYOUT_NCHW, 4, {5, 6, 4, 7}, {5, 1, 1, 1}, {1, 6, 4, 7}},
        {"tokens", LAYOUT_NCHW, 3, {4, 7, 96}, {4, 7, 1}, {1, 1, 96}},
        {"planes", LAYOUT_NCHW, 4, {2, 9, 8, 8}, {2, 9, 1, 1}, {1, 1, 8, 8}},
    };
    for (int s = 0; s < COUNT(list); ++s) {
        for (int k = 0; k < 2 * PHASES * TYPES; ++k) {
            struct options o = {list[s].layout, 0, 0, -3.0, 3.0};
            struct norms_case c;
            if (!case_begin("layout/%s/%s/%s/%s", list[s].name, k % 2 ? "rms" : "layer",
                            phase_names[k / 2 % PHASES], type_names[k / 2 / PHASES])) {
                continue;
            }
            c = start(k % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM, k / 2 % PHASES, k / 2 / PHASES, k);
            norms_set_dims(&c, list[s].rank, list[s].dim, list[s].stat, list[s].scale);
            run_case(&c, &o);
        }
    }
}

/* dx over dy, y over x, on the boundaries and off: a block has read its row, and others theirs alone. */
static void in_place(void)
{
    static const int list[][2] = {{700, 56},   {300, 1024}, {3, 20480},  {41, 333},
                                  {4003, 513}, {2, 140001}, {3, 140008}, {1703, 1536}};
    for (int s = 0; s < COUNT(list); ++s) {
        for (int k = 0; k < PHASES * TYPES * 2; ++k) {
            int phase = k % PHASES, type = k / PHASES % TYPES, skip = k / PHASES / TYPES;
            struct norms_case c;
            struct norms_inputs in;
            struct graph_run r = {.count = 0};
            struct tensor *both;
            be_desc op;
            if (list[s][0] > 4000 && (!harness_all_engines || (phase + type + skip) % 2)) continue;
            if (list[s][1] > 100000 &&
                (!harness_all_engines || phase == NORMS_INFERENCE || type > 0))
                continue;
            /* gradients of several turns */
            if (list[s][1] == 1536 && (!harness_all_engines || phase != NORMS_BACKWARD)) continue;
            if (!case_begin("in_place/%s/%s/%dx%d/%s", phase_names[phase], type_names[type],
                            list[s][0], list[s][1], skip ? "off" : "on")) {
                continue;
            }
            c = start(CUDNN_LAYER_NORM, phase, type, 0);
            c.statistics = true;
            set_rows(&c, list[s]);
            make_tensors(&c, &(struct options){LAYOUT_NCHW, skip, skip, -3.0, 3.0});
            tensor_odd = skip;
            both = tensor_inout(c.x_type, 2, c.dim, LAYOUT_NCHW, -2.0, 2.0);
            tensor_odd = 0;
            if (c.phase == NORMS_BACKWARD) c.dy = c.dx = both;
            else c.x = c.y = both;
            in = norms_inputs(&c);
            op = norms_operation(&r, &c);
            if (graph_run(&r, 1, &op)) {
                if (harness_values) norms_judge(&c, &in);
            }
            norms_inputs_free(&in);
            be_free_all();
            case_end();
        }
    }
}

/* Every kernel has run: by direction, type, runs and singles. */
static void all_reached(void)
{
    if (!harness_all_engines) return;
    if (!case_begin("rows/reached")) return;
    for (int k = 0; k < 2 * TYPES * 2; ++k) {
        if (reached[k / 2 / TYPES][k / 2 % TYPES][k % 2] > 0) continue;
        case_fail("no %s case of %s with %s ran", k / 2 / TYPES ? "backward" : "forward",
                  type_names[k / 2 % TYPES], k % 2 ? "runs" : "singles");
    }
    case_end();
}

/* clang-format off */
static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/norm/norm_rows_kernels.def"
#include "ops/norm/norm_rows_backward_kernels.def"
#include "ops/norm/norm_few_kernels.def"
#include "ops/norm/norm_long_kernels.def"
#include "ops/norm/norm_wide_kernels.def"
#undef WD_KERNEL
};
/* clang-format on */

int main(int argc, char **argv)
{
    bool whole = argc == 1; /* not where a part of the cases is asked for */
    harness_start(argc, argv);
    shapes();
    layouts();
    in_place();
    walks();
    random_walks();
    odd_walks();
    parted();
    others();
    wide();
    if (whole) all_reached();
    if (whole) kernels_reached(symbols, COUNT(symbols));
    return harness_finish();
}
