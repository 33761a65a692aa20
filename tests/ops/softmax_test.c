/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax against its formula in double, every algorithm, mode and type, on random shapes and layouts;
 * large magnitudes, infinities, NaN, in place; gradients also against finite differences. */
#include <math.h>
#include <stdlib.h>

#include "softmax_case.h"

static double random_scalar(void)
{
    return (double)random_of(0, 2, 2, 1, -3) * 0.5;
}

static void random_case(int algorithm, int mode, int type, int turn)
{
    struct softmax_call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode,
                             .alpha = 1.0};
    int dim[8], x_margin[8], y_margin[8];
    int rank;
    double reach;
    if (!case_begin("softmax/algo%d/mode%d/%s/%d", algorithm, mode, softmax_type_name[type], turn))
        return;
    rank = random_of(2, 3, 4, 4, 4, 5, 6);
    for (int d = 0; d < rank; ++d) dim[d] = random_of(1, 2, 3, 5, 7, 8);
    if (turn % 3 == 1) dim[1] = random_of(1, 31, 32, 33, 100, 257);
    if (turn) c.alpha = random_scalar(), c.beta = random_scalar();
    reach = random_of(1, 4, 60);
    {
        const int *x_extra = random_margin(rank, x_margin);
        const int *y_extra = random_margin(rank, y_margin);
        enum layout x_layout = random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
        enum layout y_layout = random_chance(0.5) ? LAYOUT_NCHW : LAYOUT_NHWC;
        c.x = part_input(softmax_types[type], rank, dim, x_layout, x_extra, -reach, reach);
        c.y = part_output(softmax_types[type], rank, dim, y_layout, y_extra, c.beta == 0.0);
        softmax_run_forward(&c);
        c.y->whole->output = false;
        /* the backward pass takes any y: here one of the size that it has */
        c.y = part_input(softmax_types[type], rank, dim, y_layout, y_extra,
                         algorithm == CUDNN_SOFTMAX_LOG ? -6.0 : 0.0,
                         algorithm == CUDNN_SOFTMAX_LOG ? 0.0 : 1.0);
        c.dy = part_input(softmax_types[type], rank, dim, y_layout, y_extra, -2.0, 2.0);
        c.dx = part_output(softmax_types[type], rank, dim, x_layout, x_extra, c.beta == 0.0);
        softmax_run_backward(&c);
    }
    parts_free();
    case_end();
}

/* Output over input. The harness compares inputs too, so the shared tensor is the output. */
static void run_in_place(struct softmax_call c, const int *dim, int layout)
{
    c.x = c.y = part_output(CUDNN_DATA_FLOAT, 4, dim, layout, NULL, false);
    softmax_run_forward(&c);
    c.y = part_input(CUDNN_DATA_FLOAT, 4, dim, layout, NULL, -1.0, 0.0);
    c.dy = c.dx = part_output(CUDNN_DATA_FLOAT, 4, dim, layout, NULL, false);
    softmax_run_backward(&c);
    c.dy = part_input(CUDNN_DATA_FLOAT, 4, dim, layout, NULL, -1.0, 1.0);
    c.y = c.dx = part_output(CUDNN_DATA_FLOAT, 4, dim, layout, NULL, false);
    softmax_run_backward(&c);
    parts_free();
    case_end();
}

static void in_place_case(int algorithm, int mode, int channels)
{
    struct softmax_call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode,
                             .alpha = 1.5, .beta = -0.5};
    const int dim[4] = {2, channels, 3, 2};
    if (case_begin("softmax/in_place/algo%d/mode%d/%d", algorithm, mode, channels))
        run_in_place(c, dim, LAYOUT_NHWC);
}

/* The same with nothing blended, of rows that clusters hold. */
static void in_place_rows(int algorithm)
{
    struct softmax_call c = {(cudnnSoftmaxAlgorithm_t)algorithm, CUDNN_SOFTMAX_MODE_INSTANCE,
                             .alpha = 1.0};
    const int dim[4] = {11, 132004, 1, 1};
    if (case_begin("softmax/in_place/algo%d/rows", algorithm)) run_in_place(c, dim, LAYOUT_NCHW);
}

/* Rows with values that break a careless softmax; what is due is written out. */
/* Rows of four elements, each many times over. */
static const double special_rows[][4] = {
    {-INFINITY, 0.0, 0.0, -INFINITY}, /* half, half */
    {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
    {NAN, 0.0, 1.0, 2.0},
    {INFINITY, 0.0, 1.0, 2.0},
    {30000.0, 30000.0, -30000.0, -30000.0},
    {-30000.0, -30000.0, -30000.0, -30000.0},
    {0.0, -200.0, -200.0, -200.0},
};
enum { SPECIAL_ROWS = sizeof special_rows / sizeof special_rows[0] };

/* Judges what became of element `element` of a row of so many copies. */
static void judge_special(const struct softmax_call *c, int type, int64_t i, int row, int element,
                          int copies)
{
    static const double due[][4] = {
        {0.0, 0.5, 0.5, 0.0}, {NAN, NAN, NAN, NAN},     {NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN},
        {0.5, 0.5, 0.0, 0.0}, {0.25, 0.25, 0.25, 0.25}, {1.0, 0.0, 0.0, 0.0},
    };
    double want = due[row][element] / copies;
    double got = c->y->whole->value[i];
    double slack;
    if (c->algorithm == CUDNN_SOFTMAX_LOG) {
        /* the logarithm of a vanishing probability is not minus infinity */
        if (row == 4 && want == 0.0) want = -60000.0 - log(2.0 * copies);
        else if (row == 6 && want == 0.0) want = -200.0 - log(copies);
        else want = log(want);
    }
    slack = 4.0 * tensor_epsilon(softmax_types[type]) * fabs(want) + 1e-5;
    if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= slack) return;
    case_fail("y[%d][%d] is %g, due is %g", row, element, got, want);
}

static void special_case(int algorithm, int type, int copies)
{
    struct softmax_call c = {(cudnnSoftmaxAlgorithm_t)algorithm, CUDNN_SOFTMAX_MODE_INSTANCE,
                             .alpha = 1.0};
    int dim[3] = {SPECIAL_ROWS, 4, copies}; /* copies: long rows become reductions */
    if (!case_begin("softmax/special/algo%d/%s/%d", algorithm, softmax_type_name[type], copies))
        return;
    c.x = part_input(softmax_types[type], 3, dim, LAYOUT_NCHW, NULL, 0.0, 0.0);
    c.y = part_output(softmax_types[type], 3, dim, LAYOUT_NCHW, NULL, true);
    for (int64_t i = 0; i < c.x->count; ++i) {
        c.x->whole->value[i] = special_rows[i / (4 * copies)][i / copies % 4];
    }
    tensor_write(c.x->whole);
    if (run_call(softmax_forward, &c) && harness_values) {
        for (int64_t i = 0; i < c.y->count; ++i) {
            judge_special(&c, type, i, (int)(i / (4 * copies)), (int)(i / copies % 4), copies);
        }
    }
    parts_free();
    case_end();
}

/* The same as columns, of so many neighbours that engines have words of two. */
static void special_columns(int algorithm, int type)
{
    enum { COPIES = 24, CHANNELS = 4 * COPIES, WIDTH = 189 };
    struct softmax_call c = {(cudnnSoftmaxAlgorithm_t)algorithm, CUDNN_SOFTMAX_MODE_CHANNEL,
                             .alpha = 1.0};
    int dim[3] = {harness_on_gpu ? 180 : 3, CHANNELS, WIDTH};
    if (!case_begin("softmax/special/algo%d/%s/columns", algorithm, softmax_type_name[type]))
        return;
    c.x = part_input(softmax_types[type], 3, dim, LAYOUT_NCHW, NULL, 0.0, 0.0);
    c.y = part_output(softmax_types[type], 3, dim, LAYOUT_NCHW, NULL, true);
    for (int64_t i = 0; i < c.x->count; ++i) {
        c.x->whole->value[i] = special_rows[i % WIDTH % SPECIAL_ROWS][i / WIDTH % 4];
    }
    tensor_write(c.x->whole);
    if (run_call(softmax_forward, &c) && harness_values) {
        for (int64_t i = 0; i < c.y->count; ++i) {
            judge_special(&c, type, i, (int)(i % WIDTH % SPECIAL_ROWS), (int)(i / WIDTH % 4),
                          COPIES);
        }
    }
    parts_free();
    case_end();
}

static double weighted(struct softmax_call *c, const double *weight)
{
    double sum = 0.0;
    run_call(softmax_forward, c);
    for (int64_t i = 0; i < c->y->count; ++i) sum += weight[i] * c->y->whole->value[i];
    return sum;
}

static void difference_case(int algorithm, int mode, int channels)
{
    struct softmax_call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode,
                             .alpha = 1.0};
    int dim[4] = {2, channels, 2, 1};
    double *weight;
    double *quotient;
    if (!case_begin("softmax/differences/algo%d/mode%d/%d", algorithm, mode, channels)) return;
    c.x = part_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    c.y = part_output(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, false);
    c.dy = part_input(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    c.dx = part_output(CUDNN_DATA_DOUBLE, 4, dim, LAYOUT_NCHW, NULL, true);
    weight = part_expected(c.dy);
    quotient = calloc((size_t)c.x->count, sizeof *quotient);
    for (int64_t i = 0; i < c.x->count; ++i) {
        double x = c.x->whole->value[i];
        double up;
        c.x->whole->value[i] = x + 1e-5;
        tensor_write(c.x->whole);
        up = weighted(&c, weight);
        c.x->whole->value[i] = x - 1e-5;
        tensor_write(c.x->whole);
        quotient[i] = (up - weighted(&c, weight)) / 2e-5;
        c.x->whole->value[i] = x;
        tensor_write(c.x->whole);
    }
    weighted(&c, weight); /* y at x */
    c.y->whole->output = false;
    tensor_write(c.y->whole);
    run_call(softmax_backward, &c);
    for (int64_t i = 0; harness_values && i < c.x->count; ++i) {
        if (fabs(quotient[i] - c.dx->whole->value[i]) < 1e-8) continue;
        case_fail("dx[%lld] is %.12g, the difference quotient %.12g", (long long)i,
                  c.dx->whole->value[i], quotient[i]);
    }
    free(weight);
    free(quotient);
    parts_free();
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int algorithm = 0; algorithm < 3; ++algorithm) {
        for (int mode = 0; mode < 2; ++mode) {
            for (int type = 0; type < 4; ++type) {
                for (int turn = 0; turn < 12; ++turn) random_case(algorithm, mode, type, turn);
            }
            in_place_case(algorithm, mode, 5);
            in_place_case(algorithm, mode, 70);
            difference_case(algorithm, mode, 3);
            difference_case(algorithm, mode, 40);
        }
        if (harness_usual_order()) in_place_rows(algorithm);
        for (int type = 0; type < 4; ++type) {
            /* rows that clusters hold */
            if (harness_usual_order() && type != 1)
                special_case(algorithm, type, type == 0 ? 66001 : 132002);
            special_case(algorithm, type, 1);
            special_case(algorithm, type, 100);
            if (type > 1) special_columns(algorithm, type);
        }
    }
    return harness_finish();
}
