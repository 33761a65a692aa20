/* SPDX-License-Identifier: Apache-2.0
 *
 * Resampling as networks have it, of packed tensors that lie alike, aligned and not: what fast engines
 * take. */
#include "kernels_reached.h"
#include "resample_forms.h"

static void aimed_cases(int type)
{
    static const char *const lie_name[] = {"mixed", "alike", "odd"};
    for (size_t f = 0; f < RESAMPLE_FORMS; ++f) {
        for (int k = 0; k < 3 * 2 * 2 * 2; ++k) {
            int rank = 3 + k % 3;
            enum layout layout = k / 3 % 2 ? LAYOUT_NHWC : LAYOUT_NCHW;
            enum resample_lie lie = k / 6 % 2 ? LIE_ODD : LIE_ALIKE;
            int channels = lie == LIE_ODD || rank == 5 ? 8 : random_of(3, 8, 16);
            struct geometry g;
            /* the oracle looks long at images of three dimensions */
            if (rank == 5 && (lie == LIE_ODD || (type != CUDNN_DATA_FLOAT && f > FORM_BY_HALF &&
                                                 f != FORM_AVERAGE_AT_EDGES))) {
                continue;
            }
            if (!case_begin("resample %s %s rank %d layout %d %s %s", resample_forms[f].name,
                            node_type_name[type], rank, (int)layout, lie_name[lie],
                            k < 12 ? "forward" : "backward")) {
                continue;
            }
            if (!resample_form_geometry(&resample_forms[f], rank, channels, &g))
                case_fail("no output");
            else if (k < 12) resample_forward(&g, type, type, layout, lie);
            else resample_backward(&g, type, type, layout, lie);
            case_end();
        }
    }
}

/* So many images that a thread has several rows of them, the last of which are not all there. */
static void many_rows(void)
{
    struct geometry g;
    if (!case_begin("resample many rows")) return;
    resample_form_geometry(&resample_forms[FORM_BY_TWO], 4, 401, &g);
    g.x[0] = 17;
    g.x[2] = 20;
    g.x[3] = 1;
    g.post[0] -= UNIT / 2;
    g.window[1] = g.stride[1] = UNIT;
    g.pre[1] = g.post[1] = 0;
    if (!set_output(&g)) case_fail("no output");
    resample_forward(&g, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, LAYOUT_NHWC, LIE_ALIKE);
    case_end();
}

/* Lengths down the rows and along them that differ, for each way to add up lines: how many windows are
 * over a row, and how many pixels a window has along a line. */
static void lengths(int type)
{
    static const struct {
        const char *name;
        int mode, window, stride, pre; /* of rows */
        int across, step, before;
    } cases[] = {
        {"ten rows", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, 120, 12, 60, 12, 12, 0},
        {"seven rows", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, 84, 12, 36, 24, 12, 12},
        {"four rows", CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, 48, 12, 24, 36, 24, 12},
        {"rows apart", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, 36, 60, 0, 36, 60, 12},
        {"with gaps", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, 27, 33, 0, 27, 33, 6},
        {"by four", CUDNN_RESAMPLE_BILINEAR, 3, 3, 0, 3, 3, 0},
        {"by seven", CUDNN_RESAMPLE_BILINEAR, 36, 18, 0, 84, 24, 24},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        for (int k = 0; k < 8; ++k) {
            enum layout layout = k & 1 ? LAYOUT_NHWC : LAYOUT_NCHW;
            enum resample_lie lie = k & 2 ? LIE_ODD : LIE_ALIKE;
            struct geometry g;
            if (!case_begin("resample %s %s layout %d %s %s", cases[i].name, node_type_name[type],
                            (int)layout, k & 2 ? "odd" : "alike", k & 4 ? "backward" : "forward")) {
                continue;
            }
            resample_form_geometry(&resample_forms[FORM_BY_TWO], 4, 8, &g);
            g.mode = cases[i].mode;
            g.x[2] = cases[i].stride < UNIT ? 7 : 23;
            g.x[3] = cases[i].stride < UNIT ? 4 : 9;
            g.window[0] = cases[i].window;
            g.stride[0] = cases[i].stride;
            g.pre[0] = g.post[0] = cases[i].pre;
            g.window[1] = cases[i].across;
            g.stride[1] = cases[i].step;
            g.pre[1] = g.post[1] = cases[i].before;
            if (!set_output(&g)) case_fail("no output");
            else if (k & 4) resample_backward(&g, type, type, layout, lie);
            else resample_forward(&g, type, type, layout, lie);
            case_end();
        }
    }
}

/* Many narrow planes, of which a walk has several side by side, the last one fewer. */
static void narrow_planes(int type)
{
    static const int which[] = {FORM_AVERAGE_OF_5_2, FORM_AVERAGE_AT_EDGES, FORM_AVERAGE,
                                FORM_BY_A_THIRD};
    for (int k = 0; k < 4 * 2 * 6; ++k) {
        const struct resample_form *f = &resample_forms[which[k % 4]];
        const bool backward = k / 4 % 2;
        struct geometry g;
        if (!case_begin("resample narrow planes %s %s %s %d", f->name, node_type_name[type],
                        backward ? "backward" : "forward", k)) {
            continue;
        }
        resample_form_geometry(f, 4, random_of(17, 20, 33), &g);
        g.x[2] = random_of(16, 24, 33, 36);
        g.x[3] = random_of(3, 8, 16, 24, 36);
        if (!set_output(&g)) case_fail("no output");
        else if (backward)
            resample_backward(&g, type, type, LAYOUT_NCHW, k % 3 ? LIE_ALIKE : LIE_ODD);
        else resample_forward(&g, type, type, LAYOUT_NCHW, k % 3 ? LIE_ALIKE : LIE_ODD);
        case_end();
    }
}

/* Averages of windows of three pixels at most of planes whose lines are whole runs of 16 bytes: lines of several
 * warps, planes side by side, the last ones fewer, results that are blended. */
static void planes_of_whole_lines(int type)
{
    for (int k = 0; k < 24; ++k) {
        struct geometry g;
        if (!case_begin("resample planes of whole lines %s %d", node_type_name[type], k)) continue;
        resample_form_geometry(&resample_forms[k % 2 ? FORM_AVERAGE_OF_5_2 : FORM_AVERAGE], 4,
                               random_of(1, 5, 7, 40), &g);
        g.x[2] = random_of(4, 11, 40, 67);
        g.x[3] = random_of(8, 24, 64, 120, 136, 264, 520, 1000);
        if (k % 4 < 2) { /* an even number of windows of a line */
            g.pre[1] = g.post[1] = 0;
            g.window[1] = k % 2 ? 30 : 24;
            g.stride[1] = k % 2 ? 18 : 24;
        }
        if (k % 3 == 2) g.window[0] = 42, g.stride[0] = 24; /* and four rows */
        for (int s = 0; s < 2; ++s) {
            g.y[2 + s] = 1 + (g.x[2 + s] * UNIT + g.pre[s] + g.post[s] - g.window[s]) / g.stride[s];
        }
        g.y[0] = g.x[0], g.y[1] = g.x[1];
        resample_forward(&g, type, type, LAYOUT_NCHW, k % 8 == 7 ? LIE_ODD : LIE_ALIKE);
        case_end();
    }
}

/* By two and four, of runs and planes that are aligned, of one row, one column and many. */
static void enlarging(int type)
{
    static const struct {
        int form, divide;
    } ways[] = {{FORM_NEAREST_BY_TWO, 1},
                {FORM_BY_TWO, 1},
                {FORM_HALF_PIXELS, 1},
                {FORM_HALF_PIXELS, 2}}; /* a stride of a half, or of a quarter */
    for (int k = 0; k < 3 * 2 * 2 * 4; ++k) {
        const struct resample_form *f = &resample_forms[ways[k % 4].form];
        const int divide = ways[k % 4].divide;
        enum layout layout = k / 4 % 2 ? LAYOUT_NHWC : LAYOUT_NCHW;
        struct geometry g;
        if (!case_begin("resample enlarging %d %s %s layout %d", k, f->name, node_type_name[type],
                        (int)layout)) {
            continue;
        }
        resample_form_geometry(f, 4, k / 4 % 2 ? 8 : 3, &g);
        g.x[2] = k / 16 == 0 ? 1 : k / 16 == 1 ? 3 : 19 / divide;
        g.x[3] = k / 16 == 1 ? 4 : divide > 1 ? 8 : 20;
        if (layout == LAYOUT_NHWC && k / 16 != 1) g.x[3] = k / 16 == 0 ? 1 : g.x[3] - 1;
        for (int s = 0; s < SPATIAL; ++s) {
            g.window[s] /= divide;
            g.stride[s] /= divide;
        }
        if (!set_output(&g)) case_fail("no output");
        else if (k / 8 % 2) resample_backward(&g, type, type, layout, LIE_ALIKE);
        else resample_forward(&g, type, type, layout, LIE_ALIKE);
        case_end();
    }
}

/* Volumes by two, of runs of channels: an odd number of columns, an even one, one. */
static void enlarging_volumes(int type)
{
    for (int k = 0; k < 3 * 2 * 3; ++k) {
        const struct resample_form *f = &resample_forms[k % 3 == 2 ? FORM_NEAREST_BY_TWO : k % 3];
        struct geometry g;
        if (!case_begin("resample enlarging volumes %d %s %s", k, f->name, node_type_name[type]))
            continue;
        resample_form_geometry(f, 5, 4, &g);
        g.x[0] = 1, g.x[2] = g.x[3] = 3;
        g.x[4] = k / 6 == 0 ? 1 : k / 6 + 3;
        if (!set_output(&g)) case_fail("no output");
        else if (k / 3 % 2) resample_backward(&g, type, type, LAYOUT_NHWC, LIE_ALIKE);
        else resample_forward(&g, type, type, LAYOUT_NHWC, LIE_ALIKE);
        case_end();
    }
}

/* By two with samples on corners, of planes and channels that are no whole runs: lines that begin between two
 * words and those that do not, one row, one column, several batches of rows, the last of them not whole. */
static void corners_of_odd_lines(int type)
{
    const bool large = harness_all_engines && !getenv("WARPDNN_CUDA_DRIVER"); /* on a device */
    for (int k = 0; k < 48; ++k) {
        const bool backward = k % 2;
        const enum layout layout = k / 2 % 2 ? LAYOUT_NHWC : LAYOUT_NCHW;
        const enum resample_lie lie = k / 4 % 2 ? LIE_ODD : LIE_ALIKE;
        struct geometry g;
        if (!case_begin("resample corners of odd lines %s layout %d %s %s %d", node_type_name[type],
                        (int)layout, lie == LIE_ODD ? "odd" : "alike",
                        backward ? "backward" : "forward", k)) {
            continue;
        }
        resample_form_geometry(&resample_forms[FORM_BY_TWO], 4,
                               layout == LAYOUT_NHWC ? random_of(3, 5, 13, 61) : 3, &g);
        g.x[2] = random_of(1, 7, 17, 20);
        g.x[3] = random_of(1, 3, 9, 17);
        if (layout == LAYOUT_NHWC && k / 8 % 2) g.x[3] += 3;
        if (k >= 40) g.x[0] = 33; /* threads enough for several batches each */
        if (k == 47 && large) {   /* likewise, of many processors */
            g.x[0] = 200;
            g.x[1] = 61;
            g.x[2] = g.x[3] = 17;
        }
        /* and lines of more than one warp */
        if (k / 8 == 2 && layout == LAYOUT_NCHW) g.x[3] = random_of(121, 127, 131, 263);
        /* and as long as shared memory has room for, and longer */
        if (k / 8 == 4 && layout == LAYOUT_NCHW) g.x[3] = random_of(385, 511, 513);
        for (int s = 0; s < 2; ++s) g.y[2 + s] = 2 * g.x[2 + s];
        g.y[0] = g.x[0];
        g.y[1] = g.x[1];
        if (backward) resample_backward(&g, type, type, layout, lie);
        else resample_forward(&g, type, type, layout, lie);
        case_end();
    }
}

/* Many rows of lines that are longer than what a warp has of them, of planes and odd channels: sums by
 * each number of taps, and maxima. */
static void long_walks(int type)
{
    static const struct {
        int form, window, stride, pre;
        bool backward;
    } cases[] = {
        {0, 24, 6, 6, false},    {0, 24, 6, 6, true},    {8, 60, 12, 24, false},
        {8, 60, 12, 24, true},   {10, 30, 18, 6, false}, {3, 24, 24, 0, true},
        {11, 36, 24, 12, false}, {11, 36, 36, 0, false}, {12, 24, 24, 12, false},
        {11, 36, 24, 12, true},  {12, 24, 24, 12, true},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; ++i) {
        const size_t k = i / 2;
        enum layout layout = i % 2 ? LAYOUT_NHWC : LAYOUT_NCHW;
        struct geometry g;
        if (!case_begin("resample long walks %s %d %s layout %d",
                        resample_forms[cases[k].form].name, (int)i, node_type_name[type],
                        (int)layout)) {
            continue;
        }
        resample_form_geometry(&resample_forms[cases[k].form], 4, i % 2 ? random_of(13, 16, 24) : 3,
                               &g);
        /* every other one is enough work for threads to have all the places that they can */
        g.x[0] = g.y[0] = (int)(k + (type == CUDNN_DATA_HALF)) % 2 ? 1 : 6;
        g.x[2] = random_of(9, 37, 45, 70);
        g.x[3] = i % 2 ? random_of(9, 17, 23, 31) : random_of(67, 131, 150, 201);
        for (int s = 0; s < 2; ++s) {
            g.window[s] = cases[k].window;
            g.stride[s] = cases[k].stride;
            g.pre[s] = g.post[s] = cases[k].pre;
            g.y[2 + s] = 1 + (g.x[2 + s] * UNIT + 2 * g.pre[s] - g.window[s]) / g.stride[s];
        }
        if (cases[k].backward)
            resample_backward(&g, type, type, layout, i % 3 ? LIE_ALIKE : LIE_ODD);
        else resample_forward(&g, type, type, layout, i % 3 ? LIE_ALIKE : LIE_ODD);
        case_end();
    }
}

/* Averages of five rows and columns around every pixel of planes, where padding repeats the edge and where it counts
 * as 0: lines of one run and of several. */
static void averages_of_five(int type)
{
    for (int k = 0; k < 16; ++k) {
        const enum resample_lie lie = k % 4 == 3 ? LIE_ODD : LIE_ALIKE;
        struct geometry g;
        if (!case_begin("resample averages of five %s %d", node_type_name[type], k)) continue;
        resample_form_geometry(&resample_forms[FORM_AVERAGE_AT_EDGES], 4, random_of(1, 3, 40), &g);
        if (k % 2) g.padding = CUDNN_ZERO_PAD;
        g.x[2] = random_of(1, 4, 11, 40);
        g.x[3] = k % 8 == 6 ? 17 : random_of(4, 8, 36);
        for (int s = 0; s < 2; ++s) {
            g.window[s] = 5 * UNIT;
            g.stride[s] = UNIT;
            g.pre[s] = g.post[s] = 2 * UNIT;
        }
        if (!set_output(&g)) case_fail("no output");
        else resample_forward(&g, type, type, LAYOUT_NCHW, lie);
        case_end();
    }
}

/* Averages of four over repeated edges, where the outermost windows have fewer taps: shares of a constant channel add up
 * to it. */
static void constants(int type)
{
    for (int k = 0; k < 8; ++k) {
        struct geometry g;
        if (!case_begin("resample constant %s %d", node_type_name[type], k)) continue;
        resample_form_geometry(&resample_forms[FORM_AVERAGE_AT_EDGES], 4, k & 1 ? 256 : 61, &g);
        for (int s = 0; s < 2; ++s) {
            g.x[2 + s] = random_of(6, 12, 16);
            g.window[s] = 4 * UNIT;
            g.stride[s] = 2 * UNIT;
            g.pre[s] = g.post[s] = 2 * UNIT;
        }
        if (!set_output(&g)) case_fail("no output");
        else
            resample_constant(&g, type, k & 2 ? LAYOUT_NCHW : LAYOUT_NHWC,
                              k & 4 ? LIE_ODD : LIE_ALIKE);
        case_end();
    }
}

#define WD_KERNEL(symbol, ...) "wd_" #symbol,
static const char *const kernels[] = {
#include "ops/resample/resample_batch_kernels.def"
#include "ops/resample/resample_ring_kernels.def"
#include "ops/resample/resample_ring_max_kernels.def"
#include "ops/resample/resample_vector_back_kernels.def"
#include "ops/resample/resample_vector_kernels.def"
#include "ops/resample/resample_walk_kernels.def"
};
#undef WD_KERNEL

int main(int argc, char **argv)
{
    setenv("FAKECUDA_PROCESSORS", "1", 0); /* long walks, as of much work */
    harness_start(argc, argv);
    aimed_cases(CUDNN_DATA_FLOAT);
    aimed_cases(CUDNN_DATA_HALF);
    aimed_cases(CUDNN_DATA_BFLOAT16);
    aimed_cases(CUDNN_DATA_DOUBLE);
    many_rows();
    for (int i = 0; i < 3; ++i) {
        static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
        resample_maxima_cases(types[i]);
        narrow_planes(types[i]);
        planes_of_whole_lines(types[i]);
        enlarging(types[i]);
        enlarging_volumes(types[i]);
        corners_of_odd_lines(types[i]);
        long_walks(types[i]);
        averages_of_five(types[i]);
        constants(types[i]);
    }
    resample_maxima_cases(CUDNN_DATA_DOUBLE);
    enlarging(CUDNN_DATA_DOUBLE);
    lengths(CUDNN_DATA_FLOAT);
    lengths(CUDNN_DATA_HALF);
    lengths(CUDNN_DATA_BFLOAT16);
    lengths(CUDNN_DATA_DOUBLE);
    if (argc == 1) kernels_reached(kernels, (int)(sizeof kernels / sizeof *kernels));
    return harness_finish();
}
