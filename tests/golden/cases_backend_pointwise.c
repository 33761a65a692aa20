/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: single pointwise and reduction operations through the backend API: every mode, types,
 * broadcasts and attributes.
 */
#include "backend.h"

#include <math.h>
#include <stdio.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
    bool nhwc;
} kinds[] = {{"f32", CUDNN_DATA_FLOAT, false},
             {"f16_nhwc", CUDNN_DATA_HALF, true},
             {"bf16", CUDNN_DATA_BFLOAT16, false},
             {"f32_nhwc", CUDNN_DATA_FLOAT, true}};

/* In which form a mode takes its operands. */
enum form { UNARY, BINARY, BACKWARD, COMPARE, LOGIC, LOGIC_NOT, INDEX, SELECT };

static const struct {
    int mode;
    enum form form;
    enum gd_fill fill;
} modes[] = {
    {0, BINARY, GD_REAL},      {1, BINARY, GD_REAL},     {2, BINARY, GD_REAL},
    {3, BINARY, GD_REAL},      {4, UNARY, GD_POS},       {5, BINARY, GD_REAL},
    {6, BINARY, GD_POS},       {7, BINARY, GD_POS},      {8, BINARY, GD_POS},
    {9, BINARY, GD_REAL},      {10, UNARY, GD_REAL},     {11, UNARY, GD_REAL},
    {12, UNARY, GD_REAL},      {13, UNARY, GD_REAL},     {14, UNARY, GD_REAL},
    {15, UNARY, GD_POS},       {16, UNARY, GD_REAL},     {17, UNARY, GD_POS},
    {18, UNARY, GD_REAL},      {19, UNARY, GD_UNIT},     {20, UNARY, GD_REAL},
    {21, UNARY, GD_REAL},      {22, UNARY, GD_POS},      {23, BINARY, GD_REAL},
    {100, UNARY, GD_REAL},     {101, UNARY, GD_REAL},    {102, UNARY, GD_REAL},
    {103, UNARY, GD_REAL},     {104, UNARY, GD_REAL},    {105, UNARY, GD_REAL},
    {106, UNARY, GD_REAL},     {107, UNARY, GD_REAL},    {200, BACKWARD, GD_REAL},
    {201, BACKWARD, GD_REAL},  {202, BACKWARD, GD_REAL}, {203, BACKWARD, GD_REAL},
    {204, BACKWARD, GD_REAL},  {205, BACKWARD, GD_REAL}, {206, BACKWARD, GD_REAL},
    {207, BACKWARD, GD_REAL},  {300, COMPARE, GD_TIES},  {301, COMPARE, GD_TIES},
    {302, COMPARE, GD_TIES},   {303, COMPARE, GD_TIES},  {304, COMPARE, GD_TIES},
    {305, COMPARE, GD_TIES},   {400, LOGIC, GD_BOOL},    {401, LOGIC, GD_BOOL},
    {402, LOGIC_NOT, GD_BOOL}, {501, INDEX, GD_REAL},    {601, SELECT, GD_REAL},
};

static struct gd_tens *operand(const char *name, cudnnDataType_t type, bool nhwc, const int *d)
{
    int nchw[4] = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    int last[4] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};
    return gd_tens_raw(name, type, 4, d, nhwc ? last : nchw);
}

struct extra {
    int attribute;
    double value;
};

static void pointwise(int i, int k, const int *xd, const int *bd, const struct extra *extra,
                      int extras, enum gd_fill fill)
{
    enum form form = modes[i].form;
    cudnnDataType_t type = kinds[k].type, in = type, out = type;
    int yd[4];
    for (int j = 0; j < 4; j++) yd[j] = xd[j] > bd[j] ? xd[j] : bd[j];
    if (form == COMPARE || form == LOGIC || form == LOGIC_NOT) out = CUDNN_DATA_BOOLEAN;
    if (form == LOGIC || form == LOGIC_NOT) in = CUDNN_DATA_BOOLEAN;
    if (form == INDEX) out = CUDNN_DATA_INT32;
    struct gd_tens *t[4] = {operand("x", in, kinds[k].nhwc, xd),
                            operand("y", out, kinds[k].nhwc, yd)};
    int n = 2;
    gd_fill(t[0], fill);
    if (form == BINARY || form == COMPARE || form == LOGIC || form == BACKWARD || form == SELECT) {
        t[n] = operand("b", in, kinds[k].nhwc, bd);
        gd_fill(t[n++], fill);
    }
    if (form == SELECT) {
        t[n] = operand("t", CUDNN_DATA_BOOLEAN, kinds[k].nhwc, xd);
        gd_fill(t[n++], GD_BOOL);
    }
    be_desc p = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    be_set_int(p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, modes[i].mode);
    be_set_int(p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
               in == CUDNN_DATA_BOOLEAN ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT);
    if (form == INDEX) be_set_int(p, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 2);
    for (int j = 0; j < extras; j++) be_set_f64(p, extra[j].attribute, extra[j].value);
    be_finalize("pointwise", p);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
    be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, be_tensor_of(1, t[0]));
    if (form == BACKWARD) {
        be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, be_tensor_of(2, t[1]));
        be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, be_tensor_of(3, t[2]));
    } else {
        be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, be_tensor_of(2, t[1]));
        if (n > 2) be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, be_tensor_of(3, t[2]));
        if (n > 3) be_set_desc(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, be_tensor_of(4, t[3]));
    }
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, n, t)) {
        bool exact = gd_roundoff(out) == 0;
        gd_out(t[1], exact ? gd_exact : gd_map_tol(out, CUDNN_DATA_FLOAT, 8, 32));
    }
    be_reset();
    gd_end();
}

static void pointwise_cases(void)
{
    static const int full[] = {2, 8, 3, 4}, bias[] = {1, 8, 1, 1}, scalar[] = {1, 1, 1, 1},
                     row[] = {2, 1, 3, 1};
    static const struct {
        const char *name;
        int mode, n;
        struct extra e[3];
    } rows[] = {
        {"relu_clip", 100, 2, {{3, -1}, {4, 2}}},
        {"relu_slope", 100, 1, {{5, 0.1}}},
        {"relu_lower_slope", 100, 2, {{3, 0.5}, {5, 0.25}}},
        {"elu_half", 103, 1, {{6, 0.5}}},
        {"softplus2", 105, 1, {{7, 2}}},
        {"swish_half", 106, 1, {{8, 0.5}}},
        {"relu_bwd_clip", 200, 2, {{3, -1}, {4, 2}}},
        {"relu_bwd_slope", 200, 1, {{5, 0.1}}},
        {"elu_bwd_half", 203, 1, {{6, 0.5}}},
        {"softplus_bwd2", 205, 1, {{7, 2}}},
        {"swish_bwd_half", 206, 1, {{8, 0.5}}},
    };
    for (int i = 0; i < GD_COUNT(modes); i++) {
        for (int k = 0; k < 2; k++)
            if (gd_case("backend_pointwise/mode%d/%s", modes[i].mode, kinds[k].name))
                pointwise(i, k, full, full, NULL, 0, modes[i].fill);
        if (modes[i].mode % 3 == 0 && gd_case("backend_pointwise/mode%d/special", modes[i].mode))
            pointwise(i, 0, full, full, NULL, 0, modes[i].fill == GD_BOOL ? GD_BOOL : GD_SPECIAL);
        for (int r = 0; r < GD_COUNT(rows); r++)
            if (rows[r].mode == modes[i].mode && gd_case("backend_pointwise/%s", rows[r].name))
                pointwise(i, 0, full, full, rows[r].e, rows[r].n, GD_REAL);
    }
    for (int k = 0; k < GD_COUNT(kinds); k++) {
        if (gd_case("backend_pointwise/add/bias/%s", kinds[k].name))
            pointwise(0, k, full, bias, NULL, 0, GD_REAL);
        if (gd_case("backend_pointwise/mul/scalar/%s", kinds[k].name))
            pointwise(1, k, full, scalar, NULL, 0, GD_REAL);
        if (gd_case("backend_pointwise/sub/row/%s", kinds[k].name))
            pointwise(9, k, full, row, NULL, 0, GD_REAL);
        if (gd_case("backend_pointwise/add/grow/%s", kinds[k].name))
            pointwise(0, k, bias, full, NULL, 0, GD_REAL);
    }
}

static void reduction(int op, int k, const int *xd, const int *yd, enum gd_fill fill)
{
    struct gd_tens *t[2] = {operand("x", kinds[k].type, kinds[k].nhwc, xd),
                            operand("y", CUDNN_DATA_FLOAT, kinds[k].nhwc, yd)};
    gd_fill(t[0], (op == 1 || op == 8) && fill == GD_REAL ? GD_POS : fill);
    be_desc r = be_make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    be_set_int(r, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
    be_set_int(r, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    be_finalize("reduction", r);
    be_desc o = be_make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    be_set_desc(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC, r);
    be_set_desc(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, be_tensor_of(1, t[0]));
    be_set_desc(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, be_tensor_of(2, t[1]));
    if (gd_status("op", lib.BackendFinalize(o)) == 0 && be_run(1, &o, 2, t)) {
        double n = (double)t[0]->count / (double)t[1]->count;
        struct gd_tol tol = gd_sum_tol(CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, n, 2);
        tol.rel += 2 * n * gd_roundoff(CUDNN_DATA_FLOAT);
        gd_out(t[1], tol);
    }
    be_reset();
    gd_end();
}

void cases_backend_pointwise(void)
{
    static const int full[] = {4, 8, 6, 10};
    static const struct {
        const char *name;
        int y[4];
    } rows[] = {
        {"nhw", {1, 8, 1, 1}}, {"all", {1, 1, 1, 1}}, {"c", {4, 1, 6, 10}}, {"w", {4, 8, 6, 1}}};
    pointwise_cases();
    for (int op = 0; op < 9; op++)
        for (int i = 0; i < GD_COUNT(rows); i++)
            for (int k = 0; k < (i ? 1 : 4); k++)
                if (gd_case("backend_reduction/op%d/%s/%s", op, rows[i].name, kinds[k].name))
                    reduction(op, k, full, rows[i].y, GD_REAL);
}
