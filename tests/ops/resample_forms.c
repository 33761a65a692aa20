/* SPDX-License-Identifier: Apache-2.0
 *
 * Geometries of resampling that networks have. */
#include "resample_forms.h"

const struct resample_form resample_forms[RESAMPLE_FORMS] = {
    {"by two", CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, 24, 6, 6, 12},
    {"by two, half pixels", CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, 6, 6, 0, 0},
    {"by three", CUDNN_RESAMPLE_BILINEAR, CUDNN_ZERO_PAD, 24, 4, 8, 8},
    {"by half", CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, 24, 24, 0, 0},
    {"by a third", CUDNN_RESAMPLE_BILINEAR, CUDNN_ZERO_PAD, 72, 36, 12, 24},
    {"nearest by two", CUDNN_RESAMPLE_NEAREST, CUDNN_ZERO_PAD, 6, 6, 0, 0},
    {"nearest by half", CUDNN_RESAMPLE_NEAREST, CUDNN_EDGE_VAL_PAD, 24, 24, 12, 12},
    {"average", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_ZERO_PAD, 36, 24, 12, 12},
    {"average at edges", CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_EDGE_VAL_PAD, 36, 12, 24,
     24},
    {"average without padding", CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, CUDNN_EDGE_VAL_PAD, 36, 24,
     12, 24},
    {"average of 5/2", CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, CUDNN_ZERO_PAD, 30, 18, 6, 12},
    {"maximum", CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, 36, 24, 12, 12},
    {"maximum by two", CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, 24, 24, 0, 0},
    {"maximum over zeros", CUDNN_RESAMPLE_MAXPOOL, CUDNN_ZERO_PAD, 36, 12, 24, 12},
    {"maximum at edges", CUDNN_RESAMPLE_MAXPOOL, CUDNN_EDGE_VAL_PAD, 36, 24, 36, 24},
    {"maximum of 7/2", CUDNN_RESAMPLE_MAXPOOL, CUDNN_ZERO_PAD, 42, 30, 6, 18},
};

bool resample_form_geometry(const struct resample_form *f, int rank, int channels,
                            struct geometry *g)
{
    static const int extents[SPATIAL] = {3, 5, 8};
    memset(g, 0, sizeof *g);
    g->mode = f->mode;
    g->padding = f->padding;
    g->propagate = random_chance(0.5);
    g->rank = rank;
    g->x[0] = 2;
    g->x[1] = channels;
    for (int s = 0; s < rank - 2; ++s) {
        g->x[2 + s] = extents[s + SPATIAL - (rank - 2)];
        g->window[s] = f->window;
        g->stride[s] = f->stride;
        g->pre[s] = f->pre;
        g->post[s] = f->post;
    }
    return set_output(g);
}
