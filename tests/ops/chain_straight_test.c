/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of pointwise operations of which each takes the result of the one before: those that networks
 * are full of, and others, with operands of the whole space, of a channel each, or numbers; aligned
 * to whole loads or to their elements alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain_case.h"
#include "kernels_reached.h"

enum { ADD = CUDNN_POINTWISE_ADD, MUL = CUDNN_POINTWISE_MUL, RELU = CUDNN_POINTWISE_RELU_FWD };
enum { LENGTH_MOST = 5, END = -1 };

/* Modes. */
static const int chains[][LENGTH_MOST] = {
    {ADD, RELU, END},
    {ADD, CUDNN_POINTWISE_GELU_FWD, END},
    {ADD, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, END},
    {ADD, CUDNN_POINTWISE_SWISH_FWD, END},
    {CUDNN_POINTWISE_SWISH_FWD, MUL, END},
    {CUDNN_POINTWISE_GELU_FWD, MUL, END},
    {MUL, ADD, END},
    {MUL, ADD, RELU, END},
    {ADD, ADD, RELU, END},
    {CUDNN_POINTWISE_SUB, CUDNN_POINTWISE_TANH_FWD, END},
    {CUDNN_POINTWISE_TANH_FWD, CUDNN_POINTWISE_SIGMOID_FWD, END},
    {MUL, CUDNN_POINTWISE_MAX, CUDNN_POINTWISE_ELU_FWD, END},
    {MUL, ADD, ADD, CUDNN_POINTWISE_SIGMOID_FWD, END},
};

/* Where operands repeat: not at all, by channel, along all but the last dimension, everywhere; and
 * numbers. */
enum repeats { WHOLE, CHANNEL, LAST, ONE, NUMBER, REPEATS };

static void operand_of(cudnnDataType_t type, enum repeats repeats, const int *dim,
                       enum layout layout, int64_t shift)
{
    struct chain_value *v = chain_value(type);
    int own[4] = {1, 1, 1, 1};
    v->readers = 1;
    if (repeats == NUMBER) {
        v->is_number = true;
        v->dtype = CUDNN_DATA_FLOAT;
        v->number = -0.37F;
    } else {
        if (repeats == WHOLE) memcpy(own, dim, sizeof own);
        if (repeats == CHANNEL) own[1] = dim[1];
        if (repeats == LAST) own[3] = dim[3];
        v->shift = shift;
        if (shift >= 0) v->t = chain_tensor(type, own, shift, true);
        else v->t = tensor_input(type, 4, own, layout, -2.0, 2.0);
    }
    chain_describe(v, own);
    chain_spread(v, own);
}

static void straight_case(cudnnDataType_t type, const int *modes, enum repeats repeats,
                          const int *dim, enum layout layout, int64_t shift)
{
    static const struct pointwise_attributes plain = {0.0, HUGE_VAL, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    const struct chain_value *last;
    int length = 0;
    int next = 1;
    if (!case_begin("type %d modes %d %d %d repeats %d of %dx%dx%dx%d layout %d shift %d",
                    (int)type, modes[0], modes[1], modes[2], (int)repeats, dim[0], dim[1], dim[2],
                    dim[3], (int)layout, (int)shift)) {
        return;
    }
    chain_begin(4, dim, CUDNN_DATA_FLOAT);
    operand_of(type, WHOLE, dim, layout, shift);
    for (; modes[length] != END; ++length) {
        if (pointwise_operands(modes[length]) < 2) continue;
        operand_of(type, repeats, dim, layout, repeats == WHOLE ? shift : -1);
    }
    last = &chain.value[0];
    for (int n = 0; n < length; ++n) {
        const struct chain_value *b = NULL;
        bool is_last = n == length - 1;
        struct chain_value *y = chain_value(is_last ? type : CUDNN_DATA_FLOAT);
        y->is_virtual = !is_last;
        if (is_last) {
            y->shift = shift;
            if (shift >= 0) y->t = chain_tensor(type, dim, shift, false);
            else y->t = tensor_output(type, 4, dim, layout);
        }
        chain_describe(y, dim);
        if (pointwise_operands(modes[n]) > 1) b = &chain.value[next++];
        /* every third time the result comes second, which must be as good */
        if (b && (n + dim[3]) % 3 == 2) chain_add(modes[n], &plain, b, last, NULL, y);
        else chain_add(modes[n], &plain, last, b, NULL, y);
        last = y;
    }
    chain_run(0);
    chain_end();
}

int main(int argc, char **argv)
{
    static const int dims[][4] = {
        {2, 64, 8, 8}, {3, 61, 7, 9}, {2, 3, 33, 65}, {1, 1, 1, 4099}, {2, 256, 7, 7}};
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    static const char *const names[] = {"f32", "f16", "bf16"};
    static const char *const kinds[] = {"any", "one", "little", "two"};
    /* enough for every processor of 132, where threads have two runs */
    static const int large[][4] = {{2, 64, 47, 47}, {4, 64, 47, 47}, {4, 64, 47, 47}};
    enum { OF_ONE = 6 };
    enum { CHAINS = sizeof chains / sizeof chains[0], DIMS = sizeof dims / sizeof dims[0] };
    char text[3 * (sizeof kinds / sizeof kinds[0])][64];
    const char *symbols[3 * (sizeof kinds / sizeof kinds[0])];
    int count = 0;
    harness_start(argc, argv);
    for (int t = 0; t < 3; ++t) {
        for (int c = 0; c < CHAINS; ++c) {
            for (int d = 0; d < DIMS; ++d) {
                for (int r = 0; r < REPEATS; ++r) {
                    int turn = t + c + d + r;
                    straight_case(types[t], chains[c], (enum repeats)r, dims[d],
                                  turn % 2 ? LAYOUT_NHWC : LAYOUT_NCHW,
                                  turn % 3 == 0 ? turn % 4 : -1);
                }
            }
        }
        for (int c = 0; c < OF_ONE; ++c) {
            int turn = t + c;
            straight_case(types[t], chains[c], (enum repeats)(c % 2), large[t],
                          turn % 2 ? LAYOUT_NHWC : LAYOUT_NCHW, turn % 3 == 0 ? turn % 4 : -1);
        }
    }
    for (int t = 0; t < 3; ++t) {
        for (int k = 0; k < (int)(sizeof kinds / sizeof kinds[0]); ++k) {
            snprintf(text[count], sizeof text[count], "wd_pointwise_straight_%s_%s", names[t],
                     kinds[k]);
            symbols[count] = text[count];
            count += 1;
        }
    }
    if (argc == 1) kernels_reached(symbols, count);
    return harness_finish();
}
