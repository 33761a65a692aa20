/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima of resampling: windows that have kernels of their own, channels that are no whole runs, values that
 * are looked at again. */
#include "resample_forms.h"

/* Maxima of whole pixels, NHWC: windows by two of two and three, which have kernels of their own, and
 * others. */
static void whole_windows(int type)
{
    for (int k = 0; k < 4 * 32; ++k) {
        int edge = 2 + k % 4;
        bool backward = k / 4 % 2;
        enum layout layout = k / 8 % 4 == 3 ? LAYOUT_NCHW : LAYOUT_NHWC;
        enum resample_lie lie = k / 8 % 4 == 2 ? LIE_ODD : LIE_ALIKE;
        struct geometry g;
        if (!case_begin("resample maximum of %d %s layout %d %s %s %d", edge, node_type_name[type],
                        (int)layout, lie == LIE_ODD ? "odd" : "alike",
                        backward ? "backward" : "forward", k)) {
            continue;
        }
        resample_form_geometry(&resample_forms[FORM_MAXIMUM], 4, k & 64 ? 8 : 24, &g);
        g.x[2] = random_of(5, 6, 7, 12);
        g.x[3] = random_of(5, 6, 9, 34);
        for (int s = 0; s < 2; ++s) {
            g.window[s] = edge * UNIT;
            g.stride[s] = (edge > 4 ? random_of(1, 2, 3, 5) : edge > 3 ? 1 : 2) * UNIT;
            g.pre[s] = random_of(0, 0, 1, edge - 1) * UNIT;
            g.post[s] = random_of(0, 0, 1, edge - 1) * UNIT;
        }
        if (edge == 5) g.window[1] = 3 * UNIT;
        if (edge == 2 && k & 64) { /* they tile the image */
            if (lie == LIE_ALIKE) layout = LAYOUT_NCHW;
            g.x[2] = 6;
            g.x[3] = 32;
            for (int s = 0; s < 2; ++s) g.pre[s] = g.post[s] = 0;
        }
        if (!set_output(&g)) case_fail("no output");
        else if (backward) resample_backward(&g, type, type, layout, lie);
        else resample_forward(&g, type, type, layout, lie);
        case_end();
    }
}

/* Maxima of planes by windows of three, by two, with half as many windows as columns. */
static void threes(int type)
{
    for (int k = 0; k < 4 * 16; ++k) {
        const bool backward = k / 4 % 2;
        struct geometry g;
        if (!case_begin("resample maximum of planes by three %s %s %d", node_type_name[type],
                        backward ? "backward" : "forward", k)) {
            continue;
        }
        resample_form_geometry(&resample_forms[FORM_MAXIMUM], 4, 3, &g);
        g.x[2] = random_of(1, 5, 8, 37, 50);
        g.x[3] = random_of(8, 16, 24, 80);
        for (int s = 0; s < 2; ++s) {
            g.window[s] = 3 * UNIT;
            g.stride[s] = 2 * UNIT;
            g.pre[s] = (k >> s & 1) * UNIT;
            g.post[s] = s == 0 ? random_of(0, 1, 2) * UNIT : UNIT;
        }
        if (g.x[2] == 1) g.pre[0] = g.post[0] = UNIT;
        if (!set_output(&g)) case_fail("no output");
        else if (backward) resample_backward(&g, type, type, LAYOUT_NCHW, LIE_ALIKE);
        else resample_forward(&g, type, type, LAYOUT_NCHW, LIE_ALIKE);
        case_end();
    }
}

/* Gradients of maxima by two of channels that are no whole runs: windows of which some begin before the image
 * or would begin behind the last, lines of several warps, walks of several bands. */
static void odd_channels(int type)
{
    for (int k = 0; k < 32; ++k) {
        struct geometry g;
        if (!case_begin("resample maximum of odd channels %s %d", node_type_name[type], k))
            continue;
        resample_form_geometry(&resample_forms[FORM_MAXIMUM], 4, random_of(3, 5, 13, 61), &g);
        g.x[2] = random_of(1, 6, 9, 40);
        g.x[3] = random_of(3, 6, 8, 31);
        if (k % 8 == 7) { /* blocks of most threads, and more channels than they have */
            g.x[1] = random_of(251, 513, 1021, 1031);
            g.x[2] = random_of(3, 6), g.x[3] = random_of(3, 5);
        }
        for (int s = 0; s < 2; ++s) {
            g.window[s] = (2 + k % 2) * UNIT;
            g.stride[s] = 2 * UNIT;
            g.pre[s] = (k / 2 >> s & 1) * UNIT;
            g.post[s] = random_of(0, 1) * UNIT;
        }
        if (g.x[2] == 1) g.pre[0] = g.post[0] = UNIT;
        if (!set_output(&g)) case_fail("no output");
        else resample_backward(&g, type, type, LAYOUT_NHWC, k / 8 % 2 ? LIE_ODD : LIE_ALIKE);
        case_end();
    }
}

/* Maxima by two, of odd channels, each thread a window: where padding is, how wide lines are, how many rows. */
static void odd_maxima(int type)
{
    for (int k = 0; k < 48; ++k) {
        const bool backward = k % 2;
        const int window = k / 2 % 4 ? 3 : 2;
        const enum resample_lie lie = k / 8 % 2 ? LIE_ODD : LIE_ALIKE;
        const int pad = window == 3 && k / 16 == 1 ? 2 : k / 2 % 4 / 2;
        struct geometry g;
        if (!case_begin("resample odd maxima %s by %d %s %d", node_type_name[type], window,
                        backward ? "backward" : "forward", k)) {
            continue;
        }
        resample_form_geometry(&resample_forms[FORM_MAXIMUM], 4, random_of(3, 5, 13, 61), &g);
        g.x[0] = g.y[0] = k >= 40 ? 33 : 2; /* threads enough for several batches each */
        g.x[2] = random_of(3, 4, 9, 45);
        g.x[3] = random_of(3, 5, 8, 17);
        if (window == 3 && backward && k % 8 > 3) { /* several units of a warp side by side */
            g.x[1] = g.y[1] = k % 16 > 7 ? 13 : 61;
            g.x[2] = 9;
            g.x[3] = 41;
        }
        for (int s = 0; s < 2; ++s) {
            g.window[s] = window * UNIT;
            g.stride[s] = (s == 1 && !backward && k / 8 % 3 == 2 ? 3 : 2) * UNIT;
            g.pre[s] = g.post[s] = pad * UNIT;
        }
        if (!set_output(&g)) case_fail("no output");
        else if (backward) resample_backward(&g, type, type, LAYOUT_NHWC, lie);
        else resample_forward(&g, type, type, LAYOUT_NHWC, lie);
        case_end();
    }
}

/* Maxima of odd channels that are looked at again one by one, and blended: once. */
static void hard_maxima(int type)
{
    for (int k = 0; k < 8; ++k) {
        struct geometry g;
        if (!case_begin("resample hard maxima %s %d", node_type_name[type], k)) continue;
        resample_form_geometry(&resample_forms[FORM_MAXIMUM], 4,
                               k & 4 ? 8 : random_of(3, 5, 13, 61), &g);
        g.propagate = k & 1;
        g.x[2] = random_of(9, 13);
        if (!set_output(&g)) case_fail("no output");
        else resample_hard_maxima(&g, type, LAYOUT_NHWC, k & 2 ? LIE_ODD : LIE_ALIKE);
        case_end();
    }
}

void resample_maxima_cases(int type)
{
    whole_windows(type);
    if (type == CUDNN_DATA_DOUBLE) return; /* by windows of whole pixels alone */
    threes(type);
    odd_channels(type);
    odd_maxima(type);
    hard_maxima(type);
}
