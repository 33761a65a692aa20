/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: matmul through the backend API: batches, broadcast batches, transposed and padded
 * operands, types; with bias and activation behind it.
 */
#include "backend.h"

#include <stdio.h>

static const struct {
    const char *name;
    cudnnDataType_t a, b, c, acc;
} kinds[] = {
    {"f32", 0, 0, 0, 0},     {"f16", 2, 2, 2, 0}, {"bf16", 9, 9, 9, 0},
    {"f16_f32", 2, 2, 0, 0}, {"f64", 1, 1, 1, 1}, {"i8_i32", 3, 3, 4, 4},
};

/* An operand of batches x rows x columns; the last two dims are stored transposed or padded. */
static struct gd_tens *operand(const char *name, cudnnDataType_t type, int nd, const int *d,
                               bool transposed, int pad)
{
    int s[4], step;
    s[nd - 1] = transposed ? d[nd - 2] + pad : 1;
    s[nd - 2] = transposed ? 1 : d[nd - 1] + pad;
    step = transposed ? d[nd - 1] * (d[nd - 2] + pad) : d[nd - 2] * (d[nd - 1] + pad);
    for (int i = nd - 3; i >= 0; i--) {
        s[i] = step;
        step *= d[i];
    }
    return gd_tens_raw(name, type, nd, d, s);
}

static void matmul(int k, int nd, const int *a, const int *b, const int *c, int transposed, int pad,
                   int epilogue)
{
    struct gd_tens *t[4] = {operand("a", kinds[k].a, nd, a, transposed & 1, pad),
                            operand("b", kinds[k].b, nd, b, transposed & 2, pad),
                            operand("c", kinds[k].c, nd, c, transposed & 4, pad)};
    int n = 3, ops = 1, bias_dim[4] = {1, 1, 1, 1};
    be_desc op[3];
    gd_fill(t[0], GD_UNIT);
    gd_fill(t[1], GD_UNIT);
    be_desc m = be_make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    be_set_int(m, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, kinds[k].acc);
    be_finalize("matmul", m);
    be_desc cd = be_tensor_of(3, t[2]);
    be_desc virtual1 = be_tensor(101, kinds[k].acc, nd, t[2]->dim, t[2]->stride, true);
    be_desc virtual2 = be_tensor(102, kinds[k].acc, nd, t[2]->dim, t[2]->stride, true);
    op[0] = be_make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    be_set_desc(op[0], CUDNN_ATTR_OPERATION_MATMUL_DESC, m);
    be_set_desc(op[0], CUDNN_ATTR_OPERATION_MATMUL_ADESC, be_tensor_of(1, t[0]));
    be_set_desc(op[0], CUDNN_ATTR_OPERATION_MATMUL_BDESC, be_tensor_of(2, t[1]));
    be_set_desc(op[0], CUDNN_ATTR_OPERATION_MATMUL_CDESC, epilogue ? virtual1 : cd);
    cudnnStatus_t s = gd_status("op", lib.BackendFinalize(op[0]));
    if (epilogue) {
        bias_dim[nd - 1] = c[nd - 1];
        t[3] = operand("bias", kinds[k].c, nd, bias_dim, false, 0);
        gd_fill(t[3], GD_UNIT);
        n = 4;
        ops = 3;
        for (int i = 0; i < 2; i++) {
            be_desc p = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
            be_set_int(p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
                       i ? epilogue : CUDNN_POINTWISE_ADD);
            be_set_int(p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, kinds[k].acc);
            be_finalize("pointwise", p);
            op[1 + i] = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
            be_set_desc(op[1 + i], CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
            be_set_desc(op[1 + i], CUDNN_ATTR_OPERATION_POINTWISE_XDESC, i ? virtual2 : virtual1);
            if (!i) be_set_desc(op[1], CUDNN_ATTR_OPERATION_POINTWISE_BDESC, be_tensor_of(4, t[3]));
            be_set_desc(op[1 + i], CUDNN_ATTR_OPERATION_POINTWISE_YDESC, i ? cd : virtual2);
            gd_status(i ? "act" : "bias", lib.BackendFinalize(op[1 + i]));
        }
    }
    if (s == 0 && be_run(ops, op, n, t)) {
        struct gd_tol tol =
            gd_sum_tol(t[2]->type, kinds[k].acc, a[nd - 1] + (epilogue ? 4 : 0), 0.5);
        gd_out(t[2], gd_roundoff(t[2]->type) == 0 ? gd_exact : tol);
    }
    be_reset();
    gd_end();
}

void cases_backend_matmul(void)
{
    static const struct {
        const char *name;
        int nd, a[4], b[4], c[4], transposed, pad;
    } rows[] = {
        {"3d", 3, {2, 16, 24}, {2, 24, 32}, {2, 16, 32}, 0, 0},
        {"odd", 3, {3, 7, 5}, {3, 5, 9}, {3, 7, 9}, 0, 0},
        {"ta", 3, {2, 16, 24}, {2, 24, 32}, {2, 16, 32}, 1, 0},
        {"tb", 3, {2, 16, 24}, {2, 24, 32}, {2, 16, 32}, 2, 0},
        {"tab", 3, {2, 16, 24}, {2, 24, 32}, {2, 16, 32}, 3, 0},
        {"tc", 3, {2, 16, 24}, {2, 24, 32}, {2, 16, 32}, 4, 0},
        {"padded", 3, {2, 16, 24}, {2, 24, 32}, {2, 16, 32}, 0, 8},
        {"broadcast_b", 3, {4, 16, 16}, {1, 16, 16}, {4, 16, 16}, 0, 0},
        {"broadcast_a", 3, {1, 16, 16}, {4, 16, 16}, {4, 16, 16}, 0, 0},
        {"4d", 4, {2, 3, 8, 16}, {2, 3, 16, 8}, {2, 3, 8, 8}, 0, 0},
        {"4d_heads", 4, {2, 4, 8, 16}, {2, 1, 16, 8}, {2, 4, 8, 8}, 0, 0},
        {"vector", 3, {1, 1, 64}, {1, 64, 1}, {1, 1, 1}, 0, 0},
        {"outer", 3, {1, 16, 1}, {1, 1, 16}, {1, 16, 16}, 0, 0},
        {"long_k", 3, {1, 4, 512}, {1, 512, 4}, {1, 4, 4}, 0, 0},
    };
    for (int k = 0; k < GD_COUNT(kinds); k++)
        for (int i = 0; i < (k == 1 ? GD_COUNT(rows) : k == 0 ? 8 : 4); i++)
            if (gd_case("backend_matmul/%s/%s", kinds[k].name, rows[i].name))
                matmul(k, rows[i].nd, rows[i].a, rows[i].b, rows[i].c, rows[i].transposed,
                       rows[i].pad, 0);
    static const int epilogues[] = {CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_GELU_FWD,
                                    CUDNN_POINTWISE_TANH_FWD};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < GD_COUNT(epilogues); i++)
            if (gd_case("backend_matmul/%s/bias_mode%d", kinds[k].name, epilogues[i]))
                matmul(k, rows[0].nd, rows[0].a, rows[0].b, rows[0].c, 0, 0, epilogues[i]);
}
