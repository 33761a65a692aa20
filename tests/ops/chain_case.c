/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of pointwise operations, see chain_case.h. One thread. */
#include "chain_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/backend_build.h"

struct chain_graph chain;

static double *doubles(int64_t count)
{
    double *list = calloc((size_t)(count > 0 ? count : 1), sizeof *list);
    if (!list) abort();
    return list;
}

void chain_describe(struct chain_value *v, const int *dim)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dims[CHAIN_RANK_MAX];
    int64_t strides[CHAIN_RANK_MAX];
    int64_t next = 1;
    bool yes = true;
    for (int d = chain.rank - 1; d >= 0; --d) {
        dims[d] = dim[d];
        strides[d] = v->t && v->shift < 0 ? v->t->stride[d] : next;
        next *= dim[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, (int)v->dtype);
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, chain.rank, dims);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, chain.rank, strides);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, v - chain.value + 1);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    if (v->is_virtual) be_set(desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (v->is_number) be_set(desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    v->desc = be_final(desc);
}

struct tensor *chain_tensor(cudnnDataType_t dtype, const int *dim, int64_t shift, bool is_input)
{
    enum layout layout = (enum layout)random_of(LAYOUT_NCHW, LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS);
    int row[CHAIN_RANK_MAX];
    int64_t count = 1;
    if (shift < 0) {
        if (is_input) return tensor_input(dtype, chain.rank, dim, layout, -2.0, 2.0);
        return tensor_output(dtype, chain.rank, dim, layout);
    }
    for (int d = 0; d < chain.rank; ++d) {
        count *= dim[d];
        row[d] = 1;
    }
    row[chain.rank - 1] = (int)(count + shift);
    if (is_input) return tensor_input(dtype, chain.rank, row, LAYOUT_NCHW, -2.0, 2.0);
    return tensor_inout(dtype, chain.rank, row, LAYOUT_NCHW, -2.0, 2.0);
}

void chain_spread(struct chain_value *v, const int *dim)
{
    int64_t first = v->shift < 0 ? 0 : v->shift;
    int at[CHAIN_RANK_MAX] = {0};
    for (int64_t i = 0; i < chain.count; ++i) {
        int64_t index = 0;
        for (int d = 0; d < chain.rank; ++d) index = index * dim[d] + (dim[d] == 1 ? 0 : at[d]);
        v->exact[i] = v->t ? v->t->value[first + index] : (double)v->number;
        for (int d = chain.rank - 1; d >= 0 && ++at[d] == chain.dim[d]; --d) at[d] = 0;
    }
}

struct chain_value *chain_value(cudnnDataType_t dtype)
{
    struct chain_value *v = &chain.value[chain.values++];
    *v = (struct chain_value){.dtype = dtype, .shift = -1};
    v->exact = doubles(chain.count);
    v->bound = doubles(chain.count);
    return v;
}

/* Results, and how far off they may be. */
static void evaluate(struct chain_value *y, int mode, const struct pointwise_attributes *a,
                     const struct chain_value *x, const struct chain_value *b,
                     const struct chain_value *t)
{
    double own = 16.0 * tensor_epsilon(chain.compute);
    double stored = tensor_epsilon(y->dtype);
    double smallest = y->dtype == CUDNN_DATA_HALF ? 0x1p-23 : 0x1p-120;
    for (int64_t i = 0; i < chain.count; ++i) {
        double in[3] = {a->alpha1 * x->exact[i], b ? a->alpha2 * b->exact[i] : 0.0,
                        t ? t->exact[i] : 0.0};
        double off[3] = {fabs(a->alpha1) * x->bound[i], b ? fabs(a->alpha2) * b->bound[i] : 0.0,
                         t ? t->bound[i] : 0.0};
        double value = pointwise_formula(mode, a, in[0], in[1], in[2]);
        double bound = 0.0;
        bool is_exact =
            off[0] == 0.0 && off[1] == 0.0 && off[2] == 0.0 && a->alpha1 == 1.0 && a->alpha2 == 1.0;
        if (!is_exact || mode < CUDNN_POINTWISE_CMP_EQ || mode > CUDNN_POINTWISE_LOGICAL_NOT) {
            for (int corner = 0; corner < 8; ++corner) {
                double there = pointwise_formula(mode, a, in[0] + (corner & 1 ? off[0] : -off[0]),
                                                 in[1] + (corner & 2 ? off[1] : -off[1]),
                                                 in[2] + (corner & 4 ? off[2] : -off[2]));
                bound = fmax(bound, fabs(there - value));
            }
            bound += own * (fabs(value) + fabs(in[0]) + fabs(in[1]));
        }
        y->exact[i] = value;
        if (y->dtype == CUDNN_DATA_BOOLEAN) {
            y->exact[i] = value != 0.0;
            bound = is_exact || fabs(value) > bound ? 0.0 : 1.0;
        } else if (stored > tensor_epsilon(chain.compute)) {
            y->exact[i] = tensor_round(y->dtype, value);
            if (bound > 0.0) bound += 2.0 * stored * fabs(value) + smallest;
        }
        y->bound[i] = bound;
    }
}

static void set_double(be_desc desc, cudnnBackendAttributeName_t name, double value)
{
    be_set(desc, name, CUDNN_TYPE_DOUBLE, 1, &value);
}

static be_desc make_op(int mode, const struct pointwise_attributes *a, const struct chain_value *x,
                       const struct chain_value *b, const struct chain_value *t,
                       const struct chain_value *y)
{
    be_desc how = be_make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    bool gradient = pointwise_is_gradient(mode);
    be_set_enum(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    be_set_enum(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, (int)chain.compute);
    if (mode == CUDNN_POINTWISE_RELU_FWD || mode == CUDNN_POINTWISE_RELU_BWD) {
        set_double(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, a->low);
        set_double(how, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, a->high);
        set_double(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, a->slope);
    }
    set_double(how, CUDNN_ATTR_POINTWISE_ELU_ALPHA, a->elu);
    set_double(how, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, a->softplus);
    set_double(how, CUDNN_ATTR_POINTWISE_SWISH_BETA, a->swish);
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, be_final(how));
    be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x->desc);
    if (gradient) {
        be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, b->desc);
        be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y->desc);
    } else {
        if (b) be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->desc);
        if (t) be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t->desc);
        be_set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y->desc);
    }
    if (a->alpha1 != 1.0) set_double(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, a->alpha1);
    if (a->alpha2 != 1.0) set_double(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, a->alpha2);
    return be_final(op);
}

void chain_add(int mode, const struct pointwise_attributes *a, const struct chain_value *x,
               const struct chain_value *b, const struct chain_value *t, struct chain_value *y)
{
    evaluate(y, mode, a, x, b, t);
    chain.op[chain.nodes++] = make_op(mode, a, x, b, t, y);
}

void chain_begin(int rank, const int *dim, cudnnDataType_t compute)
{
    memset(&chain, 0, sizeof chain);
    chain.rank = rank;
    chain.compute = compute;
    chain.count = 1;
    for (int d = 0; d < rank; ++d) {
        chain.dim[d] = dim[d];
        chain.count *= dim[d];
    }
}

void chain_end(void)
{
    for (int v = 0; v < chain.values; ++v) {
        free(chain.value[v].exact);
        free(chain.value[v].bound);
    }
    be_free_all();
    case_end();
}

static cudnnStatus_t execute(void *context)
{
    (void)context;
    return cudnnBackendExecute(harness_handle, chain.plan, chain.pack);
}

static void judge(struct chain_value *v, int index)
{
    int64_t first = v->shift < 0 ? 0 : v->shift;
    double *exact = doubles(v->t->count);
    double *magnitude = doubles(v->t->count);
    char name[24];
    snprintf(name, sizeof name, "value %d", index);
    for (int64_t i = 0; i < v->t->count; ++i) exact[i] = v->t->value[i]; /* what lies before */
    for (int64_t i = 0; i < chain.count; ++i) {
        exact[first + i] = v->exact[i];
        /* allowed are 8 roundings of it */
        magnitude[first + i] = v->bound[i] / (8.0 * tensor_epsilon(CUDNN_DATA_DOUBLE));
    }
    check_values(name, v->t, exact, NULL, magnitude, CUDNN_DATA_DOUBLE);
    free(exact);
    free(magnitude);
}

bool chain_run(int64_t engine)
{
    int64_t uids[CHAIN_VALUES_MAX];
    void *data[CHAIN_VALUES_MAX];
    struct tensor *workspace = NULL;
    const char *name = "";
    int64_t bytes;
    int count = 0;
    chain.plan =
        be_plan(harness_handle,
                be_config(be_engine(be_graph(harness_handle, chain.nodes, chain.op), engine)));
    bytes = be_workspace(chain.plan);
    if (bytes > 0) workspace = tensor_bytes(bytes);
    for (int v = 0; v < chain.values; ++v) {
        struct chain_value *it = &chain.value[v];
        int64_t size = it->dtype == CUDNN_DATA_DOUBLE ? 8 : it->dtype == CUDNN_DATA_FLOAT ? 4 : 2;
        if (it->is_virtual || (it->readers == 0 && v < chain.values - chain.nodes)) continue;
        uids[count] = v + 1;
        if (it->is_number) data[count++] = &it->number;
        else data[count++] = (char *)it->t->data + (it->shift > 0 ? it->shift * size : 0);
    }
    chain.pack = be_pack(count, uids, data, workspace ? workspace->data : NULL);
    if (!run_call(execute, NULL)) return false;
    /* in place, an input's tensor holds a result, and is judged by that */
    for (int v = chain.values - chain.nodes; v < chain.values; ++v) {
        if (chain.value[v].t) judge(&chain.value[v], v);
    }
    warpdnnGetLastEngine(harness_handle, &name);
    return strstr(name, "pointwise_chain") != NULL;
}
