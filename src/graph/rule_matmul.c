/* SPDX-License-Identifier: Apache-2.0
 *
 * What a matmul node must be: matrices that fit, batches that are equal or repeat, override sizes of
 * one integer a batch entry. */
#include "graph/graph.h"

enum { A, B, C, M, N, K };

static bool is_operand_type(int dtype)
{
    return wd_dtype_bits(dtype) > 0 && dtype != CUDNN_DATA_COMPLEX_FP32 &&
           dtype != CUDNN_DATA_COMPLEX_FP64 && dtype != CUDNN_DATA_BOOLEAN;
}

static cudnnStatus_t check_batch(const struct wd_tensor *t, const struct wd_tensor *c,
                                 const char *name)
{
    WD_REQUIRE(t->rank == c->rank, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "matmul: %s has %d dimensions, c has %d", name, t->rank, c->rank);
    for (int d = 0; d < c->rank - 2; ++d) {
        WD_REQUIRE(t->dim[d] > 0 && c->dim[d] % t->dim[d] == 0,
                   CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   "matmul: batch dim[%d]=%lld of %s does not divide the %lld of c", d,
                   (long long)t->dim[d], name, (long long)c->dim[d]);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_override(const struct wd_tensor *t, const struct wd_tensor *c,
                                    const char *name)
{
    if (!t) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(t->dtype == CUDNN_DATA_INT32 || t->dtype == CUDNN_DATA_INT64,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "matmul: the override of %s is %s, not int32",
               name, wd_dtype_name(t->dtype));
    WD_TRY(check_batch(t, c, name));
    WD_REQUIRE(t->dim[t->rank - 1] == 1 && t->dim[t->rank - 2] == 1,
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "matmul: the override of %s has more than one value a batch entry", name);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_rule_matmul(const struct wd_graph *graph, const struct wd_node *node)
{
    const struct wd_tensor *a = wd_slot(graph, node, A);
    const struct wd_tensor *b = wd_slot(graph, node, B);
    const struct wd_tensor *c = wd_slot(graph, node, C);
    int rank = c->rank;
    char text[160];
    WD_REQUIRE(rank >= 2, CUDNN_STATUS_BAD_PARAM, "matmul: c has %d dimensions, needs 2 or more",
               rank);
    WD_TRY(check_batch(a, c, "a"));
    WD_TRY(check_batch(b, c, "b"));
    for (int s = A; s <= C; ++s) {
        const struct wd_tensor *t = wd_slot(graph, node, s);
        WD_REQUIRE(is_operand_type(t->dtype), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                   "matmul: tensor %c is %s", "abc"[s], wd_dtype_name(t->dtype));
        WD_REQUIRE(!(t->flags & WD_BY_VALUE), CUDNN_STATUS_BAD_PARAM,
                   "matmul: tensor %c is passed by value", "abc"[s]);
        WD_REQUIRE(t->reordering == CUDNN_TENSOR_REORDERING_NONE, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                   "matmul: tensor %c is reordered (mode %d)", "abc"[s], t -> reordering);
    }
    WD_REQUIRE(wd_dtype_bits(c->dtype) >= 8, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "matmul: c is %s, of less than a byte", wd_dtype_name(c->dtype));
    WD_REQUIRE(a->dim[rank - 1] == b->dim[rank - 2], CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
               "matmul: a has K=%lld columns, b has %lld rows", (long long)a->dim[rank - 1],
               (long long)b->dim[rank - 2]);
    WD_REQUIRE(c->dim[rank - 2] == a->dim[rank - 2] && c->dim[rank - 1] == b->dim[rank - 1],
               CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "matmul: c is %s, but M=%lld and N=%lld",
               wd_tensor_text(c, text, sizeof text), (long long)a->dim[rank - 2],
               (long long)b->dim[rank - 1]);
    WD_TRY(check_override(wd_slot(graph, node, M), c, "M"));
    WD_TRY(check_override(wd_slot(graph, node, N), c, "N"));
    return check_override(wd_slot(graph, node, K), c, "K");
}
