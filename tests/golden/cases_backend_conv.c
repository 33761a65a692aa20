/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: convolution through the backend API: three directions, types, layouts, unequal paddings,
 * alpha and beta; convolution with bias and relu behind it.
 */
#include "backend.h"

#include <math.h>
#include <stdio.h>

struct conv {
    const char *name;
    int sp, n, c, hw[3], k, rs[3], pre[3], post[3], stride[3], dil[3], groups;
};

static const struct conv problems[] = {
    {"3x3p1", 2, 2, 8, {6, 7}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {"1x1", 2, 2, 16, {5, 5}, 8, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"3x3s2", 2, 1, 8, {9, 8}, 8, {3, 3}, {1, 1}, {1, 1}, {2, 2}, {1, 1}, 1},
    {"unequal", 2, 1, 8, {7, 7}, 8, {3, 3}, {0, 1}, {2, 0}, {1, 1}, {1, 1}, 1},
    {"d2", 2, 1, 8, {9, 9}, 8, {3, 3}, {2, 2}, {2, 2}, {1, 1}, {2, 2}, 1},
    {"g2", 2, 1, 8, {6, 6}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"odd", 2, 1, 3, {7, 6}, 5, {3, 2}, {1, 0}, {1, 1}, {2, 1}, {1, 1}, 1},
    {"3d", 3, 1, 8, {3, 4, 5}, 8, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
    {"1d", 1, 2, 8, {12}, 8, {3}, {1}, {1}, {1}, {1}, 1},
};

static const struct {
    const char *name;
    cudnnDataType_t type, acc;
    bool last;
} kinds[] = {{"f32_nhwc", 0, 0, true}, {"f32", 0, 0, false},      {"f16_nhwc", 2, 0, true},
             {"f16", 2, 0, false},     {"bf16_nhwc", 9, 0, true}, {"f64", 1, 1, false}};

static const char *const directions[] = {"fwd", "dgrad", "wgrad"};

static struct gd_tens *operand(const char *name, cudnnDataType_t type, int nd, const int *d,
                               bool last)
{
    int s[5], step = 1;
    if (last) {
        s[1] = 1;
        step = d[1];
    }
    for (int i = nd - 1; i >= (last ? 2 : 1); i--) {
        s[i] = step;
        step *= d[i];
    }
    s[0] = step;
    return gd_tens_raw(name, type, nd, d, s);
}

static void run(int dir, const struct conv *c, int k, float alpha, float beta, int mode, bool fused)
{
    static const int first[] = {700, 706, 712};
    static const cudnnBackendDescriptorType_t types[] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    int nd = c->sp + 2, xd[5] = {c->n, c->c}, wd[5] = {c->k, c->c / c->groups},
        yd[5] = {c->n, c->k};
    int bd[5] = {1, c->k, 1, 1, 1};
    double area = 1, image = 1;
    for (int i = 0; i < c->sp; i++) {
        xd[2 + i] = c->hw[i];
        wd[2 + i] = c->rs[i];
        yd[2 + i] =
            (c->hw[i] + c->pre[i] + c->post[i] - (c->rs[i] - 1) * c->dil[i] - 1) / c->stride[i] + 1;
        area *= c->rs[i];
        image *= yd[2 + i];
    }
    bool last = kinds[k].last;
    cudnnDataType_t type = kinds[k].type;
    struct gd_tens *t[4] = {operand("x", type, nd, xd, last), operand("w", type, nd, wd, last),
                            operand("y", type, nd, yd, last)};
    int at = dir == 0 ? 2 : dir == 1 ? 0 : 1, n = 3, ops = 1;
    for (int i = 0; i < 3; i++)
        if (i != at || beta != 0) gd_fill(t[i], GD_UNIT);
    be_desc desc[3], op[3];
    for (int i = 0; i < 3; i++) desc[i] = be_tensor_of(i + 1, t[i]);
    be_desc virtual1 = be_tensor(101, kinds[k].acc, nd, t[2]->dim, t[2]->stride, true);
    be_desc virtual2 = be_tensor(102, kinds[k].acc, nd, t[2]->dim, t[2]->stride, true);
    be_desc cd = be_conv(kinds[k].acc, mode, c->sp, c->pre, c->post, c->stride, c->dil);
    op[0] = be_make(types[dir]);
    be_set_desc(op[0], first[dir] + 2, cd);
    be_set_desc(op[0], first[dir] + 3, desc[1]);
    be_set_desc(op[0], first[dir] + 4, desc[0]);
    be_set_desc(op[0], first[dir] + 5, fused ? virtual1 : desc[2]);
    if (kinds[k].acc == CUDNN_DATA_DOUBLE) {
        be_set_f64(op[0], first[dir], alpha);
        be_set_f64(op[0], first[dir] + 1, beta);
    } else {
        be_set_f32(op[0], first[dir], alpha);
        be_set_f32(op[0], first[dir] + 1, beta);
    }
    cudnnStatus_t s = gd_status("op", lib.BackendFinalize(op[0]));
    if (fused) {
        t[3] = operand("b", type, nd, bd, last);
        gd_fill(t[3], GD_UNIT);
        n = 4;
        ops = 3;
        for (int i = 0; i < 2; i++) {
            be_desc p = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
            be_set_int(p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
                       i ? CUDNN_POINTWISE_RELU_FWD : CUDNN_POINTWISE_ADD);
            be_set_int(p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, kinds[k].acc);
            be_finalize("pointwise", p);
            op[1 + i] = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
            be_set_desc(op[1 + i], CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
            be_set_desc(op[1 + i], CUDNN_ATTR_OPERATION_POINTWISE_XDESC, i ? virtual2 : virtual1);
            if (!i) be_set_desc(op[1], CUDNN_ATTR_OPERATION_POINTWISE_BDESC, be_tensor_of(4, t[3]));
            be_set_desc(op[1 + i], CUDNN_ATTR_OPERATION_POINTWISE_YDESC, i ? desc[2] : virtual2);
            gd_status(i ? "act" : "bias", lib.BackendFinalize(op[1 + i]));
        }
    }
    if (s == 0 && be_run(ops, op, n, t)) {
        double terms = dir == 2 ? c->n * image : area * (dir ? c->k : c->c) / c->groups;
        gd_out(t[at], gd_sum_tol(type, kinds[k].acc, terms + 2, fabs(alpha) + fabs(beta)));
    }
    be_reset();
    gd_end();
}

void cases_backend_conv(void)
{
    static const float pairs[][2] = {{2, 0}, {1, 1}, {0.5f, -0.25f}};
    for (int dir = 0; dir < 3; dir++) {
        for (int k = 0; k < GD_COUNT(kinds); k++)
            for (int i = 0; i < (k == 0 || k == 2 ? GD_COUNT(problems) : 2); i++)
                if (gd_case("backend_conv/%s/%s/%s", directions[dir], kinds[k].name,
                            problems[i].name))
                    run(dir, &problems[i], k, 1, 0, CUDNN_CROSS_CORRELATION, false);
        for (int i = 0; i < GD_COUNT(pairs); i++)
            if (gd_case("backend_conv/%s/scale%g,%g", directions[dir], pairs[i][0], pairs[i][1]))
                run(dir, &problems[0], 0, pairs[i][0], pairs[i][1], CUDNN_CROSS_CORRELATION, false);
        if (gd_case("backend_conv/%s/flipped", directions[dir]))
            run(dir, &problems[0], 0, 1, 0, CUDNN_CONVOLUTION, false);
    }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++)
            if (gd_case("backend_conv/bias_relu/%s/%s", kinds[k].name, problems[i].name))
                run(0, &problems[i], k, 1, 0, CUDNN_CROSS_CORRELATION, true);
}
