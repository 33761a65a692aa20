/* SPDX-License-Identifier: Apache-2.0
 *
 * Geometries of resampling that networks have, of packed tensors that lie alike: what fast engines take. */
#ifndef TESTS_OPS_RESAMPLE_FORMS_H
#define TESTS_OPS_RESAMPLE_FORMS_H

#include "resample_run.h"

enum {
    FORM_BY_TWO,
    FORM_HALF_PIXELS,
    FORM_BY_THREE,
    FORM_BY_HALF,
    FORM_BY_A_THIRD,
    FORM_NEAREST_BY_TWO,
    FORM_NEAREST_BY_HALF,
    FORM_AVERAGE,
    FORM_AVERAGE_AT_EDGES,
    FORM_AVERAGE_WITHOUT_PADDING,
    FORM_AVERAGE_OF_5_2,
    FORM_MAXIMUM,
    FORM_MAXIMUM_BY_TWO,
    FORM_MAXIMUM_OVER_ZEROS,
    FORM_MAXIMUM_AT_EDGES,
    FORM_MAXIMUM_OF_7_2,
    RESAMPLE_FORMS
};

/* Of every spatial dimension, in twelfths of a pixel. */
struct resample_form {
    const char *name;
    int mode, padding, window, stride, pre, post;
};
extern const struct resample_form resample_forms[RESAMPLE_FORMS];

/* Two small images of `rank` dimensions in all; whether there is an output. */
bool resample_form_geometry(const struct resample_form *f, int rank, int channels,
                            struct geometry *g);

/* Maxima, forward and backward, with and without an index tensor, of one type. */
void resample_maxima_cases(int type);

#endif
