/* SPDX-License-Identifier: Apache-2.0
 *
 * The fused forward through the legacy call, on random shapes, types, layouts, residuals and
 * activations, and on int8x32 filters that cudnnReorderFilterAndBias put in order, against sums
 * over all products in double. */
#include <math.h>
#include <stdlib.h>

#include "ops/conv_case.h"

static double activate(cudnnActivationMode_t mode, double x, double coef)
{
    switch ((int)mode) {
    case CUDNN_ACTIVATION_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case CUDNN_ACTIVATION_RELU: return x > 0.0 ? x : 0.0;
    case CUDNN_ACTIVATION_TANH: return tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return x > coef ? coef : x > 0.0 ? x : 0.0;
    case CUDNN_ACTIVATION_ELU: return x > 0.0 ? x : coef * (exp(x) - 1.0);
    case CUDNN_ACTIVATION_SWISH: return x / (1.0 + exp(-x));
    default: return x;
    }
}

enum residual { Z_OWN, Z_IS_Y, Z_ABSENT };

static void set_up_fused(struct conv_call *c, cudnnDataType_t bias_type, enum residual residual,
                         enum layout z_layout, cudnnActivationMode_t mode, double coef)
{
    int bias[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int rank = c->g.spatial + 2;
    bias[1] = c->g.filters;
    cudnnCreateActivationDescriptor(&c->activation);
    cudnnSetActivationDescriptor(c->activation, mode, CUDNN_NOT_PROPAGATE_NAN, coef);
    c->b = conv_make(c, false, bias_type, bias, LAYOUT_NCHW);
    if (residual == Z_OWN) {
        c->z = conv_make(c, false, c->y->dtype, c->y->dim, z_layout);
    } else {
        c->z = c->y;
    }
    (void)rank;
}

static void check_fused(struct conv_call *c, cudnnActivationMode_t mode, double coef)
{
    double *exact = conv_doubles(c->y->count);
    double *magnitude = conv_doubles(c->y->count);
    int64_t points = conv_volume(&c->g, c->g.output);
    bool wide = c->y->dtype == CUDNN_DATA_DOUBLE || conv_is_integer(c->x->dtype);
    size_t bytes = conv_workspace_of(c);
    if (bytes > 0) c->workspace = tensor_bytes((int64_t)bytes);
    conv_add_products(c, exact, magnitude);
    for (int64_t i = 0; i < c->y->count; ++i) {
        double bias = c->b->value[i / points % c->g.filters];
        double z = c->beta != 0.0 ? c->beta * c->z->value[i] : 0.0;
        exact[i] = activate(mode, c->alpha * exact[i] + z + bias, coef);
        magnitude[i] = fabs(c->alpha) * magnitude[i] + fabs(z) + fabs(bias) + coef;
    }
    if (run_call(conv_run, c)) {
        check_values("y", c->y, exact, NULL, magnitude,
                     wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
}

static void fused_case(cudnnActivationMode_t mode, cudnnDataType_t dtype, enum residual residual)
{
    struct conv_call c = {.direction = CONV_FUSED};
    struct conv_types types = {dtype, dtype, dtype};
    enum layout layout[3];
    double coef;
    if (!case_begin("fused activation %d type %d residual %d", (int)mode, (int)dtype,
                    (int)residual)) {
        return;
    }
    c.g = conv_random_geometry((int)random_int(1, 3));
    c.alpha = random_of(1, 2, -3) * 0.5;
    c.beta = residual == Z_ABSENT ? 0.0 : random_of(1, 2, -1) * 0.5;
    c.algorithm = (int)random_int(0, CUDNN_CONVOLUTION_FWD_ALGO_COUNT - 1);
    coef = random_real(0.5, 2.0);
    for (int i = 0; i < 3; ++i) layout[i] = (enum layout)random_of(0, 1, 2);
    conv_set_up(&c, &types, layout);
    set_up_fused(&c, dtype, residual, (enum layout)random_of(0, 1, 2), mode, coef);
    check_fused(&c, mode, coef);
    conv_tear_down(&c);
}

/* The int8x32 filter once as it is and once reordered by hand: the same result; the reordered bytes
 * are those of the order [C/32][R][S][K/8][2][8][4][4], the bias's [K/32][2][4][4]. */
struct reorder {
    struct conv_call *c;
    struct tensor *from, *to, *bias_from, *bias_to;
};

static cudnnStatus_t reorder(void *context)
{
    struct reorder *r = context;
    return cudnnReorderFilterAndBias(harness_handle, r->c->filter, CUDNN_DEFAULT_REORDER,
                                     r->from->data, r->to->data, 1, r->bias_from->data,
                                     r->bias_to->data);
}

static void reorder_case(int turn)
{
    struct conv_call c = {.direction = CONV_FUSED};
    struct conv_types types = {CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32, CUDNN_DATA_INT8x32};
    enum layout layout[3] = {LAYOUT_VECT, LAYOUT_VECT, LAYOUT_VECT};
    struct reorder r = {.c = &c};
    struct tensor *plain_filter;
    int filters;
    int vectors;
    int64_t taps;
    int64_t next = 0;
    if (!case_begin("fused reordered int8x32 turn %d", turn)) return;
    c.g = conv_random_geometry(2);
    c.g.groups = 1;
    c.g.channels = 32 * random_of(1, 2);
    c.g.filters = 32 * random_of(1, 2, 3);
    c.alpha = 0.0625;
    c.beta = 0.5;
    c.algorithm = 1;
    conv_set_up(&c, &types, layout);
    set_up_fused(&c, CUDNN_DATA_FLOAT, Z_OWN, LAYOUT_VECT, CUDNN_ACTIVATION_RELU, 0.0);
    r.from = c.w;
    r.to = tensor_output(CUDNN_DATA_INT8x32, 4, c.w->dim, LAYOUT_VECT);
    r.bias_from = c.b;
    r.bias_to = tensor_output(CUDNN_DATA_FLOAT, 4, c.b->dim, LAYOUT_NCHW);
    c.y->output = false;
    if (!run_call(reorder, &r)) goto done;
    filters = c.g.filters;
    vectors = c.g.channels / 32;
    taps = conv_volume(&c.g, c.g.filter);
    for (int i = 0; i < vectors; ++i)
        for (int64_t t = 0; t < taps; ++t)
            for (int ob = 0; ob < filters / 8; ++ob)
                for (int o2 = 0; o2 < 2; ++o2)
                    for (int i8 = 0; i8 < 8; ++i8)
                        for (int o4 = 0; o4 < 4; ++o4)
                            for (int i4 = 0; i4 < 4; ++i4, ++next) {
                                int k = ob * 8 + o4 * 2 + o2;
                                int channel = i * 32 + i8 * 4 + i4;
                                double want =
                                    r.from->value[(k * vectors * 32 + channel) * taps + t];
                                /* byte `next` of the packed tensor in its logical numbering */
                                int64_t lane = next % 32;
                                int64_t tap = next / 32 % taps;
                                int64_t v = next / 32 / taps % vectors;
                                int64_t o = next / 32 / taps / vectors;
                                double got =
                                    r.to->value[((o * vectors + v) * 32 + lane) * taps + tap];
                                if (got != want && harness_values) {
                                    case_fail("byte %lld of the reordered filter is %g, not %g",
                                              (long long)next, got, want);
                                    goto done;
                                }
                            }
    next = 0;
    for (int o32 = 0; o32 < filters / 32; ++o32)
        for (int b = 0; b < 2; ++b)
            for (int a = 0; a < 4; ++a)
                for (int q = 0; q < 4; ++q, ++next) {
                    double want = r.bias_from->value[o32 * 32 + a * 8 + b * 4 + q];
                    if (r.bias_to->value[next] != want && harness_values) {
                        case_fail("reordered bias[%lld] is %g, not %g", (long long)next,
                                  r.bias_to->value[next], want);
                        goto done;
                    }
                }
    /* the convolution reads the reordered ones; the oracle the plain ones */
    tensor_write(r.to);
    tensor_write(r.bias_to);
    r.to->output = r.bias_to->output = false;
    c.y->output = true;
    cudnnSetConvolutionReorderType(c.conv, CUDNN_NO_REORDER);
    plain_filter = c.w;
    {
        void *plain_data = c.w->data;
        void *plain_bias = c.b->data;
        c.w->data = r.to->data;
        c.b->data = r.bias_to->data;
        check_fused(&c, CUDNN_ACTIVATION_RELU, 0.0);
        plain_filter->data = plain_data;
        c.b->data = plain_bias;
    }
done:
    conv_tear_down(&c);
}

/* Integer fused: float bias, int8 in and out. */
static void fused_integer_case(cudnnDataType_t x, cudnnDataType_t w, cudnnDataType_t y,
                               enum layout plain)
{
    struct conv_call c = {.direction = CONV_FUSED, .alpha = 0.0625, .beta = 0.5, .algorithm = 1};
    struct conv_types types = {x, w, y};
    enum layout layout[3] = {plain, plain, y == CUDNN_DATA_FLOAT ? LAYOUT_NCHW : plain};
    if (!case_begin("fused integers %d %d %d layout %d", (int)x, (int)w, (int)y, (int)plain))
        return;
    c.g = conv_random_geometry(2);
    c.g.groups = 1;
    c.g.channels = c.g.filters = 8;
    conv_set_up(&c, &types, layout);
    set_up_fused(&c, CUDNN_DATA_FLOAT, Z_OWN, layout[2], CUDNN_ACTIVATION_RELU, 0.0);
    check_fused(&c, CUDNN_ACTIVATION_RELU, 0.0);
    conv_tear_down(&c);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int turn = 0; turn < 4; ++turn) reorder_case(turn);
    for (int layout = LAYOUT_NCHW; layout <= LAYOUT_GAPS; ++layout) {
        enum layout plain = (enum layout)layout;
        fused_integer_case(CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8, plain);
        fused_integer_case(CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, plain);
        fused_integer_case(CUDNN_DATA_UINT8, CUDNN_DATA_INT8, CUDNN_DATA_INT8, plain);
    }
    fused_integer_case(CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4, LAYOUT_VECT);
    fused_integer_case(CUDNN_DATA_UINT8x4, CUDNN_DATA_INT8x4, CUDNN_DATA_FLOAT, LAYOUT_VECT);
    for (int mode = 0; mode <= CUDNN_ACTIVATION_SWISH; ++mode) {
        for (int t = 0; t < CONV_FLOAT_TYPES; ++t) {
            for (int z = Z_OWN; z <= Z_ABSENT; ++z) {
                fused_case((cudnnActivationMode_t)mode, conv_float_types[t], (enum residual)z);
            }
        }
    }
    return harness_finish();
}
