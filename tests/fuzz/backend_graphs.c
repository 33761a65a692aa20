/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of one to four operations that are right but for some odd values, and their plans. */
#include <string.h>

#include "fuzz/backend_fuzz.h"
#include "graph/descriptor.h"
#include "graph/graph.h"

int mutation;

void set(cudnnBackendDescriptor_t desc, int attribute, int type, int64_t count, const void *values)
{
    _Alignas(16) char data[ELEMENT_BYTES];
    if (chance(mutation)) {
        random_elements(type, data);
        values = data;
    }
    if (chance(mutation)) count = random_count();
    if (count > 8) count = 8;
    memcpy(data, values, 64);
    note(cudnnBackendSetAttribute(desc, (cudnnBackendAttributeName_t)attribute,
                                  (cudnnBackendAttributeType_t)type, count, data),
         "set");
}

void set_word(cudnnBackendDescriptor_t desc, int attribute, int type, int value)
{
    int words[16] = {value};
    set(desc, attribute, type, 1, words);
}

void set_ref(cudnnBackendDescriptor_t desc, int attribute, cudnnBackendDescriptor_t value)
{
    cudnnBackendDescriptor_t refs[8] = {value};
    set(desc, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, refs);
}

cudnnBackendDescriptor_t finish(cudnnBackendDescriptor_t desc)
{
    if (!note(cudnnBackendFinalize(desc), "finalize")) reached.finalized += 1;
    return desc;
}

int random_dtype(void)
{
    static const int types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_FLOAT,   CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE,  CUDNN_DATA_INT8,
                                CUDNN_DATA_INT32,    CUDNN_DATA_BOOLEAN, CUDNN_DATA_FP8_E4M3,
                                CUDNN_DATA_INT4};
    return types[below(10)];
}

cudnnBackendDescriptor_t tensor(int64_t uid, int dtype, int rank, const int64_t *dims,
                                bool is_virtual)
{
    cudnnBackendDescriptor_t desc = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t strides[8] = {0}, own[8] = {0}, uids[8] = {uid}, alignment[8] = {16};
    bool yes[64] = {true};
    int64_t next = 1;
    bool nhwc = chance(30) && rank > 2;
    for (int i = 0; i < rank; ++i) own[i] = dims[i];
    if (nhwc) wd_strides_nhwc(own, rank, strides);
    for (int i = rank - 1; i >= 0 && !nhwc; --i) {
        strides[i] = next;
        next *= dims[i] + (chance(10) ? 1 : 0);
    }
    set_word(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, dtype);
    set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, own);
    set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides);
    set(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, uids);
    set(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, alignment);
    if (is_virtual) set(desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, yes);
    if (chance(mutation)) set(desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, yes);
    return finish(desc);
}

cudnnBackendDescriptor_t scalar(int64_t uid, int dtype)
{
    cudnnBackendDescriptor_t desc = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t ones[8] = {1, 1, 1, 1}, uids[8] = {uid}, alignment[8] = {16};
    bool yes[64] = {true};
    set_word(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, dtype);
    set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, ones);
    set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, ones);
    set(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, uids);
    set(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, alignment);
    set(desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, yes);
    return finish(desc);
}

int random_mode(void)
{
    static const int first[] = {0, 100, 200, 300, 400, 501, 601};
    static const int length[] = {24, 8, 8, 6, 3, 1, 1};
    int run = below(7);
    return first[run] + below(length[run]);
}

static cudnnBackendDescriptor_t pointwise(const int64_t *dims, cudnnBackendDescriptor_t x,
                                          int64_t b, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t pw = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    int mode = random_mode();
    float alpha[16] = {1.5f};
    int64_t axis[8] = {below(4)};
    int64_t repeated[4];
    for (int d = 0; d < 4; ++d) repeated[d] = chance(30) ? 1 : dims[d];
    set_word(pw, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    set(pw, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, axis);
    finish(pw);
    set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pw);
    set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (mode >= 200 && mode < 300) {
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, tensor(b, 0, 4, dims, false));
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y);
    } else {
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                tensor(b, random_dtype(), 4, repeated, false));
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
        if (mode == CUDNN_POINTWISE_BINARY_SELECT) {
            set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
                    tensor(b + 1, CUDNN_DATA_BOOLEAN, 4, dims, false));
        }
    }
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, alpha);
    return finish(op);
}

static cudnnBackendDescriptor_t convolution(cudnnBackendDescriptor_t *y, int64_t *yd)
{
    static const int types[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    static const int base[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA};
    int way = below(3);
    cudnnBackendDescriptor_t conv = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(types[way]);
    int64_t pad[8] = {below(2), below(2)}, stride[8] = {1 + below(2), 1 + below(2)};
    int64_t dilation[8] = {1 + below(2), 1}, spatial[8] = {2};
    int groups = 1 + below(2);
    int64_t x[4] = {1 + below(2), (1 + below(2)) * groups, 3 + below(4), 3 + below(4)};
    int64_t w[4] = {groups * (1 + below(2)), x[1] / groups, 1 + below(3), 1 + below(3)};
    cudnnBackendDescriptor_t t[3];
    float scale[16] = {(float)below(3)};
    yd[0] = x[0];
    yd[1] = w[0];
    for (int d = 0; d < 2; ++d) {
        yd[2 + d] = (x[2 + d] + 2 * pad[d] - dilation[d] * (w[2 + d] - 1) - 1) / stride[d] + 1;
    }
    set_word(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    set_word(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, below(2));
    set(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, spatial);
    set(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    set(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    finish(conv);
    t[0] = tensor(1, 0, 4, x, false);
    t[1] = tensor(2, 0, 4, w, false);
    t[2] = tensor(3, 0, 4, yd, chance(50) && way == 0);
    set(op, base[way], CUDNN_TYPE_FLOAT, 1, scale);
    set_ref(op, base[way] + 2, conv);
    /* the attributes lie in the order w, x|dx, y|dy; for filters dw, x, dy */
    set_ref(op, base[way] + 3, t[1]);
    set_ref(op, base[way] + 4, t[0]);
    set_ref(op, base[way] + 5, t[2]);
    *y = t[2];
    return finish(op);
}

static cudnnBackendDescriptor_t matmul(cudnnBackendDescriptor_t *c, int64_t *cd)
{
    cudnnBackendDescriptor_t desc = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    int64_t a[4] = {1 + below(2), 1 + below(3), 1 + below(5), 1 + below(5)};
    int64_t b[4] = {chance(30) ? 1 : a[0], a[1], a[3], 1 + below(5)};
    cd[0] = a[0];
    cd[1] = a[1];
    cd[2] = a[2];
    cd[3] = b[3];
    set_word(desc, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    finish(desc);
    *c = tensor(3, 0, 4, cd, chance(50));
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, desc);
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(1, 0, 4, a, false));
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(2, 0, 4, b, false));
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c);
    return finish(op);
}

static cudnnBackendDescriptor_t reduction(const int64_t *dims, cudnnBackendDescriptor_t x)
{
    cudnnBackendDescriptor_t desc = create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    int64_t small[4];
    for (int d = 0; d < 4; ++d) small[d] = chance(50) ? 1 : dims[d];
    set_word(desc, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, below(9));
    set_word(desc, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    finish(desc);
    set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, desc);
    set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(30, 0, 4, small, false));
    return finish(op);
}

/* One to four operations, each on the last one's output; one of them may be a normalization. */
static cudnnBackendDescriptor_t almost_a_graph(void)
{
    cudnnBackendDescriptor_t graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnnBackendDescriptor_t ops[8] = {NULL};
    cudnnBackendDescriptor_t last;
    int64_t dims[8];
    int count = 0;
    int more = below(3);
    bool normalizes = chance(40);
    cudnnHandle_t handles[8] = {handle};
    switch (below(3)) {
    case 0: ops[count++] = convolution(&last, dims); break;
    case 1: ops[count++] = matmul(&last, dims); break;
    default:
        for (int d = 0; d < 4; ++d) dims[d] = chance(5) ? 0 : 1 + below(4);
        last = tensor(1, random_dtype(), 4, dims, false);
        more = 1 + below(2);
    }
    if (normalizes) {
        cudnnBackendDescriptor_t y =
            tensor(5, chance(70) ? CUDNN_DATA_FLOAT : random_dtype(), 4, dims, more > 0);
        ops[count++] = chance(50) ? norm_forward(dims, last, y) : norm_backward(dims, last, y);
        last = y;
    }
    for (int i = 0; i < more; ++i) {
        if (chance(25)) {
            ops[count++] = reduction(dims, last);
            break;
        }
        cudnnBackendDescriptor_t y = tensor(10 + i, random_dtype(), 4, dims, i + 1 < more);
        ops[count++] = pointwise(dims, last, 20 + 2 * i, y);
        last = y;
    }
    if (count > 1 && chance(20)) {
        cudnnBackendDescriptor_t swap = ops[0];
        ops[0] = ops[1];
        ops[1] = swap;
    }
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, ops);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, handles);
    return finish(graph);
}

cudnnBackendDescriptor_t almost_a_plan(void)
{
    cudnnBackendDescriptor_t graph = almost_a_graph();
    cudnnBackendDescriptor_t config = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendDescriptor_t plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (chance(50)) {
        cudnnBackendDescriptor_t heuristics = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
        set_word(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, below(4));
        finish(heuristics);
        note(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &config),
             "get");
    } else {
        cudnnBackendDescriptor_t engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        int64_t index[8] = {chance(80) ? 0 : below(200)};
        set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
        set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, index);
        finish(engine);
        set_ref(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
        finish(config);
    }
    set_ref(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finish(plan);
    return ((struct wd_desc *)plan)->finalized ? plan : NULL;
}
