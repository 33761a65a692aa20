/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions by the ways in which rows and columns are walked: short and long, in whole runs and not,
 * joined, cut in pieces, in stages; from pointers of any alignment. */
#include <stdlib.h>
#include <string.h>

#include "kernels_reached.h"
#include "reduce_case.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* A packed tensor in a larger one, `skip` elements behind its start: aligned to its elements only.
 * `view` is not the harness's: the larger one is. */
static void skipped(struct tensor *view, cudnnDataType_t dtype, const int *dim, bool nhwc, int skip,
                    double low, double high)
{
    static const int order[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
    int64_t stride = 1;
    struct tensor *whole;
    memset(view, 0, sizeof *view);
    view->dtype = dtype;
    view->rank = 4;
    view->lanes = 1;
    for (int i = 0; i < 4; ++i) {
        int d = order[nhwc][i];
        view->dim[d] = dim[d];
        view->stride[d] = (int)stride;
        stride *= dim[d];
    }
    view->count = stride;
    whole = tensor_input(dtype, 2, (const int[]){1, (int)stride + skip}, LAYOUT_NCHW, low, high);
    view->value = malloc((size_t)stride * sizeof *view->value);
    for (int64_t i = 0; i < stride; ++i) {
        int at[8];
        int64_t offset = skip;
        coordinates(view, i, at);
        for (int d = 0; d < 4; ++d) offset += (int64_t)at[d] * view->stride[d];
        view->value[i] = whole->value[offset];
    }
    view->data = (unsigned char *)whole->data + whole->bytes / whole->count * skip;
    cudnnCreateTensorDescriptor(&view->desc);
    cudnnSetTensorNdDescriptor(view->desc, dtype, 4, view->dim, view->stride);
}

enum { MANY = 1 << 19 };

static int64_t walk_count(const int *dim)
{
    return (int64_t)dim[0] * dim[1] * dim[2] * dim[3];
}

/* Every way in which rows and columns are walked: short and long, whole runs and not, few and many,
 * joined, cut in pieces; of each type, from pointers of any alignment. */
static void walk_cases(void)
{
    static const struct {
        int dim[4];
        int mask; /* decimal digits N C H W, 1 where the dim goes */
        bool nhwc;
    } walks[] = {
        {{2000, 1, 1, 3}, 1, false},      /* short rows */
        {{700, 1, 7, 7}, 11, false},      /* of 49 */
        {{300, 1, 1, 101}, 1, false},     /* longer */
        {{3000, 1, 1, 16}, 1, false},     /* whole runs, a lane */
        {{40, 1, 1, 1000}, 1, false},     /* a warp */
        {{1100, 1, 1, 1099}, 1, false},   /* many of a warp */
        {{5, 1, 1, 9001}, 1, false},      /* blocks of a cluster */
        {{4, 37, 9, 23}, 1011, false},    /* pieces of rows */
        {{7, 3, 64, 67}, 1011, false},    /* long ones */
        {{2, 2, 600, 601}, 1011, false},  /* in segments */
        {{1, 1, 1, 1200007}, 1, false},   /* one row */
        {{9, 16, 5, 24}, 100, false},     /* columns in runs */
        {{9, 17, 3, 29}, 100, false},     /* one by one */
        {{3, 700, 8, 8}, 100, false},     /* shared by threads */
        {{9000, 16, 1, 1}, 1000, false},  /* and by the blocks of a cluster */
        {{40000, 32, 1, 1}, 1000, false}, /* and in segments */
        {{16, 64, 6, 48}, 1010, false},   /* of two levels */
        {{12, 12, 9, 7}, 1010, false},    {{2, 3, 180, 301}, 1011, true}, /* joined rows */
        {{1, 61, 40, 61}, 1011, true},                                    /* of odd channels */
        {{2, 8, 50, 100}, 1011, true},                                    /* aligned or not */
        {{3, 40, 17, 31}, 10, true},     /* outputs in another order */
        {{4, 301, 7, 9}, 100, true},     /* rows between pixels */
        {{1, 3, 1, 29999}, 1011, true},  /* x ends before the last joined row but one does */
        {{1, 64, 28, 28}, 1111, false},  /* a row of a cluster */
        {{7, 1, 97, 103}, 111, false},   /* several, whose ends lie anywhere */
        {{1, 1, 1, 262001}, 1, false},   /* in several rounds, fp32 */
        {{70000, 1, 1, 16}, 1, false},   /* much: a lane a row */
        {{2201, 1, 1, 601}, 1, false},   /* a warp, with ends */
        {{9, 230, 13, 43}, 1011, false}, /* pieces shared by warps */
        {{9, 6, 131, 127}, 100, false},  /* many columns, whose rows begin anywhere */
        {{9, 5, 131, 130}, 100, false},  /* or alike */
    };
    static const int ops[] = {CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_MUL,
                              CUDNN_REDUCE_TENSOR_MIN, CUDNN_REDUCE_TENSOR_AMAX,
                              CUDNN_REDUCE_TENSOR_NORM2};
    static const int floats[] = {0, 1, 2, 6}; /* of types */
    for (int i = 0; i < COUNT(walks) * COUNT(floats) * 2; ++i) {
        int w = i / (2 * COUNT(floats));
        int t = floats[i / 2 % COUNT(floats)];
        int skip = i % 2;
        for (int o = 0; o < COUNT(ops); ++o) {
            bool product = ops[o] == CUDNN_REDUCE_TENSOR_MUL;
            struct reduction r = {.op = ops[o], .compute = reduce_types[t].compute, .alpha = 1.0};
            struct tensor view;
            int64_t terms = 1;
            int reduced[4];
            int mask = walks[w].mask;
            if (o > 2 && (i + o) % 4 != 0) continue; /* these run as others do */
            if (walk_count(walks[w].dim) > MANY && skip != (i / 2 + o) % 2) continue;
            if (!case_begin("walk/%d/%s/skip%d/%s", w, reduce_types[t].name, skip,
                            reduce_op_names[ops[o]])) {
                continue;
            }
            for (int d = 3; d >= 0; --d, mask /= 10) {
                reduced[d] = mask % 10 ? 1 : walks[w].dim[d];
                if (mask % 10) terms *= walks[w].dim[d];
            }
            r.indices = reduce_picks(ops[o]) && random_chance(0.6);
            r.nan = random_of(CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN);
            r.width = random_of(CUDNN_32BIT_INDICES, CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES);
            if (random_chance(0.3)) r.beta = 0.5;
            skipped(&view, reduce_types[t].a, walks[w].dim, walks[w].nhwc, skip,
                    product ? 1.0 - 1.0 / (double)terms : -3.0,
                    product ? 1.0 + 1.0 / (double)terms : 3.0);
            r.a = &view;
            r.c = random_chance(0.5) ? reduce_output(reduce_types[t].c, 4, reduced, r.beta)
                  : r.beta != 0.0
                      ? tensor_inout(reduce_types[t].c, 4, reduced, LAYOUT_NCHW, -3.0, 3.0)
                      : tensor_output(reduce_types[t].c, 4, reduced, LAYOUT_NCHW);
            reduce_run(&r);
            cudnnDestroyTensorDescriptor(view.desc);
            free(view.value);
        }
    }
}

static const char *const few_kernels[] = {
    "wd_reduce_cluster_sum_f32",       "wd_reduce_cluster_sum_16",
    "wd_reduce_cluster_pick_f32",      "wd_reduce_cluster_pick_16",
    "wd_reduce_pieces_sum_f32",        "wd_reduce_pieces_sum_16",
    "wd_reduce_pieces_product_f32",    "wd_reduce_pieces_product_16",
    "wd_reduce_columns_runs_sum_bf16",
};

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    walk_cases();
    if (argc == 1) kernels_reached(few_kernels, COUNT(few_kernels));
    return harness_finish();
}
