/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of plans of every operation, also of those that no descriptor leads to: right ones, in which
 * dims, strides and attributes become 0, 1, huge or negative. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "api/backend.h"
#include "base/alloc.h"
#include "fuzz/backend_fuzz.h"
#include "graph/pointwise_modes.h"

static struct wd_single single;

static void add(int slot, int dtype, int rank, const int64_t *dim)
{
    struct wd_tensor tensor = {
        .uid = slot + 1, .dtype = dtype, .rank = rank, .vect_count = 1, .alignment = 16};
    memcpy(tensor.dim, dim, sizeof *dim * (size_t)rank);
    if (chance(70)) wd_strides_nchw(dim, rank, tensor.stride);
    else wd_strides_nhwc(dim, rank, tensor.stride);
    wd_single_bind(&single, slot, &tensor, NULL, NULL);
}

static void add_all(int dtype, const int64_t *dim)
{
    const struct wd_op_info *info = wd_op_info(single.node.op);
    for (int s = 0; s < info->slot_count; ++s)
        if (!(info->optional >> s & 1u)) add(s, dtype, 4, dim);
}

/* A forward mode without parameters, or one of them all. */
static void set_pointwise(struct wd_pointwise_attr *attr, int mode)
{
    attr->mode = mode;
    attr->axis = mode == CUDNN_POINTWISE_GEN_INDEX ? below(4) : -1;
    attr->upper_clip = 6.0;
    attr->elu_alpha = attr->softplus_beta = attr->swish_beta = 1.0;
}

static void make_pointwise(int dtype, const int64_t *dim)
{
    int mode = random_mode();
    int operands = wd_pointwise_operands(mode);
    set_pointwise(&single.node.attr.pointwise, mode);
    for (int s = 0; s < 3; ++s)
        if (s == 0 || s < operands) add(s, dtype, 4, dim);
    add(3, dtype, 4, dim);
}

static void make_conv(enum wd_op op, int dtype)
{
    struct wd_conv_attr *attr = &single.node.attr.conv;
    int64_t pad = below(2), stride = 1 + below(2), dilation = 1 + below(2), groups = 1 + below(2);
    int64_t x[4] = {2, 2 * groups, 6, 5}, w[4] = {3 * groups, 2, 3, 2};
    int64_t y[4] = {2, w[0], 0, 0}, bias[4] = {1, w[0], 1, 1}, col[2] = {x[1], x[0]};
    for (int d = 0; d < 2; ++d) {
        y[2 + d] = (x[2 + d] + 2 * pad - (w[2 + d] - 1) * dilation - 1) / stride + 1;
        col[0] *= w[2 + d];
        col[1] *= y[2 + d];
    }
    if (op == WD_OP_BIAS_GRAD) {
        add(0, dtype, 4, y);
        add(1, dtype, 4, bias);
        return;
    }
    attr->spatial = 2;
    attr->mode = below(2);
    attr->groups = groups;
    for (int d = 0; d < 2; ++d) {
        attr->pad_before[d] = attr->pad_after[d] = pad;
        attr->stride[d] = stride;
        attr->dilation[d] = dilation;
        if (op == WD_OP_IM2COL) attr->window[d] = w[2 + d];
    }
    switch (op) {
    case WD_OP_IM2COL:
        add(0, dtype, 4, x);
        add(1, dtype, 2, col);
        wd_strides_nchw(col, 2, single.tensors[1].stride);
        break;
    case WD_OP_CONV_DGRAD:
        add(0, dtype, 4, w);
        add(1, dtype, 4, y);
        add(2, dtype, 4, x);
        break;
    case WD_OP_CONV_WGRAD:
        add(0, dtype, 4, x);
        add(1, dtype, 4, y);
        add(2, dtype, 4, w);
        break;
    default:
        add(0, dtype, 4, x);
        add(1, dtype, 4, w);
        if (op == WD_OP_CONV_FPROP) {
            add(2, dtype, 4, y);
            break;
        }
        if (chance(50)) add(2, dtype, 4, y);
        add(3, dtype, 4, bias);
        add(4, dtype, 4, y);
        set_pointwise(&attr->activation, CUDNN_POINTWISE_RELU_FWD);
    }
}

static void make_pool(enum wd_op op, int dtype, const int64_t *x)
{
    struct wd_pool_attr *attr = &single.node.attr.pool;
    int64_t window = 1 + below(3), stride = 1 + below(2);
    int64_t y[4] = {x[0], x[1], (x[2] - window) / stride + 1, (x[3] - window) / stride + 1};
    attr->spatial = 2;
    attr->mode = below(4);
    for (int d = 0; d < 2; ++d) {
        attr->window[d] = window;
        attr->stride[d] = stride;
    }
    if (op == WD_OP_POOL_FORWARD) {
        add(0, dtype, 4, x);
        add(1, dtype, 4, y);
        return;
    }
    for (int s = 0; s < 4; ++s) add(s, dtype, 4, s < 2 ? y : x);
}

static void make_resample(enum wd_op op, int dtype, const int64_t *x)
{
    struct wd_resample_attr *attr = &single.node.attr.resample;
    int64_t unit = 1 + below(3), window = 1 + below(6), stride = 1 + below(4), pad = below(4);
    int64_t y[4] = {x[0], x[1], (x[2] * unit + 2 * pad - window) / stride + 1,
                    (x[3] * unit + 2 * pad - window) / stride + 1};
    bool indices;
    attr->spatial = 2;
    attr->mode = below(5);
    attr->padding = below(3);
    attr->compute = CUDNN_DATA_FLOAT;
    attr->propagate_nan = below(2);
    for (int d = 0; d < 2; ++d) {
        attr->unit[d] = unit;
        attr->window[d] = window;
        attr->stride[d] = stride;
        attr->pad_before[d] = attr->pad_after[d] = pad;
    }
    indices = attr->mode == CUDNN_RESAMPLE_MAXPOOL && chance(50);
    if (op == WD_OP_RESAMPLE_FORWARD) {
        add(0, dtype, 4, x);
        add(1, dtype, 4, y);
        if (indices) add(2, CUDNN_DATA_INT8, 4, y);
        return;
    }
    add(0, dtype, 4, y);
    if (indices) add(1, CUDNN_DATA_INT8, 4, y);
    else if (chance(80)) {
        add(2, dtype, 4, x);
        add(3, dtype, 4, y);
    }
    add(4, dtype, 4, x);
}

/* Concatenation, reshape, random numbers. */
static void make_move(enum wd_op op, int dtype, const int64_t *x)
{
    static const int64_t one[4] = {1, 1, 1, 1};
    int64_t y[4] = {x[0], x[1], x[2], x[3]};
    if (op == WD_OP_CONCAT) {
        struct wd_concat_attr *attr = &single.node.attr.concat;
        attr->axis = below(4);
        attr->inputs = 1 + below(4);
        attr->in_place = below(attr->inputs + 1) - 1;
        y[attr->axis] *= attr->inputs;
        add(0, dtype, 4, y);
        for (int i = 0; i < attr->inputs; ++i) add(1 + i, dtype, 4, x);
    } else if (op == WD_OP_RESHAPE) {
        y[0] = x[0] * x[1];
        y[1] = 1;
        add(0, dtype, 4, x);
        add(1, dtype, 4, y);
    } else {
        struct wd_rng_attr *attr = &single.node.attr.rng;
        attr->distribution = below(3);
        attr->probability = attr->high = attr->deviation = 0.5;
        if (chance(50)) add(0, CUDNN_DATA_INT64, 4, one);
        if (chance(50)) add(1, CUDNN_DATA_INT64, 4, one);
        add(2, dtype, 4, x);
    }
}

static void make_norm(enum wd_op op, int dtype, const int64_t *x)
{
    /* d: as x, p: a parameter; those in capitals may be absent, in pairs */
    const char *roles = op == WD_OP_BN_INFERENCE  ? "dpppp-d"
                        : op == WD_OP_BN_TRAINING ? "dpp-dRRSS-"
                                                  : "ddpSS-dpp-";
    struct wd_norm_attr *attr = &single.node.attr.norm;
    int64_t param[4];
    bool running = chance(70), saved = chance(70);
    attr->mode = below(3);
    attr->epsilon = 1e-3;
    for (int d = 0; d < 4; ++d) {
        bool own = attr->mode == CUDNN_BATCHNORM_PER_ACTIVATION ? d >= 1 : d == 1;
        param[d] = own ? x[d] : 1;
    }
    for (int s = 0; roles[s]; ++s) {
        if (roles[s] == '-' || (roles[s] == 'R' && !running) || (roles[s] == 'S' && !saved))
            continue;
        if (roles[s] == 'd') add(s, dtype, 4, x);
        else add(s, dtype == CUDNN_DATA_DOUBLE ? dtype : CUDNN_DATA_FLOAT, 4, param);
    }
}

static void make_reduce(int dtype, const int64_t *x)
{
    int64_t y[4];
    for (int d = 0; d < 4; ++d) y[d] = chance(50) ? 1 : x[d];
    single.node.attr.reduce.op = below(9);
    add(0, dtype, 4, x);
    add(1, dtype, 4, y);
}

static void make_matmul(int dtype)
{
    static const int64_t a[3] = {2, 3, 4}, b[3] = {2, 4, 5}, c[3] = {2, 3, 5};
    add(0, dtype, 3, a);
    add(1, dtype, 3, b);
    add(2, dtype, 3, c);
}

static void make_spatial(enum wd_op op, int dtype, const int64_t *x)
{
    int64_t y[4] = {x[0], x[1], 3, 4}, grid[4] = {x[0], 3, 4, 2}, theta[3] = {x[0], 2, 3};
    switch (op) {
    case WD_OP_GRID_FORWARD:
        add(0, dtype, 3, theta);
        add(1, dtype, 4, grid);
        break;
    case WD_OP_GRID_BACKWARD:
        add(0, dtype, 4, grid);
        add(1, dtype, 3, theta);
        break;
    case WD_OP_SAMPLER_FORWARD:
        add(0, dtype, 4, x);
        add(1, dtype, 4, grid);
        add(2, dtype, 4, y);
        break;
    default:
        add(0, dtype, 4, x);
        add(1, dtype, 4, y);
        add(2, dtype, 4, grid);
        add(3, dtype, 4, x);
        add(4, dtype, 4, grid);
    }
}

/* A node that is right. An operation that is not known here gets tensors of one shape, and false. */
static bool make(enum wd_op op)
{
    static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE};
    static const int64_t x[4] = {2, 4, 6, 5};
    int dtype = types[below(5)];
    bool known = true;
    wd_single_init(&single, op);
    switch (op) {
    case WD_OP_POINTWISE: make_pointwise(dtype, x); break;
    case WD_OP_CONV_FPROP:
    case WD_OP_CONV_DGRAD:
    case WD_OP_CONV_WGRAD:
    case WD_OP_CONV_FUSED:
    case WD_OP_BIAS_GRAD:
    case WD_OP_IM2COL: make_conv(op, dtype); break;
    case WD_OP_POOL_FORWARD:
    case WD_OP_POOL_BACKWARD: make_pool(op, dtype, x); break;
    case WD_OP_RESAMPLE_FORWARD:
    case WD_OP_RESAMPLE_BACKWARD: make_resample(op, dtype, x); break;
    case WD_OP_CONCAT:
    case WD_OP_RESHAPE:
    case WD_OP_RNG: make_move(op, dtype, x); break;
    case WD_OP_BN_INFERENCE:
    case WD_OP_BN_TRAINING:
    case WD_OP_BN_BACKWARD: make_norm(op, dtype, x); break;
    case WD_OP_REDUCE: make_reduce(dtype, x); break;
    case WD_OP_MATMUL: make_matmul(dtype); break;
    case WD_OP_GRID_FORWARD:
    case WD_OP_GRID_BACKWARD:
    case WD_OP_SAMPLER_FORWARD:
    case WD_OP_SAMPLER_BACKWARD: make_spatial(op, dtype, x); break;
    case WD_OP_SOFTMAX_FORWARD:
    case WD_OP_SOFTMAX_BACKWARD: add_all(dtype, x); break;
    default: add_all(dtype, x); known = false;
    }
    for (int i = 0; i < wd_op_info(op)->scalar_count; ++i) {
        wd_single_scalar(&single, i, i % 2 ? below(2) / 2.0 : 1.0);
    }
    return known;
}

static int64_t odd_extent(void)
{
    static const int64_t extents[] = {0,        0, 0, 1, 1, 2, 3, 7, INT32_MAX, (int64_t)1 << 40,
                                      INT64_MAX};
    return chance(10) ? odd_number() : extents[below(11)];
}

static void pack(struct wd_tensor *tensor)
{
    uint64_t next = 1; /* wraps where the elements cannot be counted */
    for (int d = tensor->rank - 1; d >= 0; --d) {
        tensor->stride[d] = (int64_t)(next & INT64_MAX);
        next *= tensor->dim[d] > 0 ? (uint64_t)tensor->dim[d] : 1u;
    }
}

/* Puts one number in the place of another wherever that is a dim: tensors still fit each other. */
static void change_extent(void)
{
    const struct wd_tensor *some = &single.tensors[below(single.graph.tensor_count)];
    int64_t from = some->dim[below(some->rank)];
    int64_t to = odd_extent();
    for (int t = 0; t < single.graph.tensor_count; ++t) {
        struct wd_tensor *tensor = &single.tensors[t];
        for (int d = 0; d < tensor->rank; ++d)
            if (tensor->dim[d] == from) tensor->dim[d] = to;
        pack(tensor);
    }
}

/* One word of one of the operation's attributes. */
static void change_attribute(void)
{
    static const struct {
        const char *member;
        size_t offset, bytes, each;
        bool real;
    } fields[] = {
#define INT32 4, false
#define INT64 8, false
#define REAL 8, true
#define UNUSED 0, false
#define WD_FIELD(member, field, kind, count)                                                       \
    {#member, offsetof(union wd_attr, member.field), sizeof(((union wd_attr *)0)->member.field),   \
     kind},
#include "graph/attr_fields.def"
#undef WD_FIELD
#undef INT32
#undef INT64
#undef REAL
#undef UNUSED
    };
    static const char *const members[] = {
#define WD_OPERATION(ENUM, name, slots, scalars, attr, rule) #attr,
#include "graph/operations.def"
#undef WD_OPERATION
    };
    for (int tries = 0; tries < 200; ++tries) {
        int f = below((int)(sizeof fields / sizeof fields[0]));
        int64_t wide = odd_extent();
        int32_t word = (int32_t)wide;
        double real = (double)wide / 4.0;
        char *at;
        if (strcmp(fields[f].member, members[single.node.op]) != 0 || fields[f].each == 0) continue;
        at = (char *)&single.node.attr + fields[f].offset;
        at += fields[f].each * (size_t)below((int)(fields[f].bytes / fields[f].each));
        if (fields[f].real) memcpy(at, &real, sizeof real);
        else if (fields[f].each == 4) memcpy(at, &word, sizeof word);
        else memcpy(at, &wide, sizeof wide);
        return;
    }
}

static void change_tensor(void)
{
    struct wd_tensor *tensor = &single.tensors[below(single.graph.tensor_count)];
    int d = below(tensor->rank);
    switch (below(6)) {
    case 0:
        tensor->dim[d] = odd_extent();
        if (chance(70)) pack(tensor);
        break;
    case 1: tensor->stride[d] = odd_extent(); break;
    case 2: tensor->dtype = below(24); break;
    case 3:
        tensor->vect_count = 1 + below(32);
        tensor->vect_dim = below(8);
        break;
    case 4: tensor->flags = below(8); break;
    default: tensor->rank = 1 + below(8); /* of what lies behind, zeros */
    }
}

void text_of_an_operation(void)
{
    enum wd_op op = (enum wd_op)below(WD_OP_COUNT);
    cudnnBackendDescriptor_t plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    struct wd_text text = {0};
    int changes = chance(30) ? 0 : 1 + below(3);
    reached.known[op] = make(op);
    for (; changes > 0; --changes) {
        switch (below(3)) {
        case 0: change_extent(); break;
        case 1: change_attribute(); break;
        default: change_tensor();
        }
    }
    wd_text_add(&text, "{\"warpdnn_plan\":1,\"device\":");
    wd_device_write(&text, handle->queue->device);
    wd_text_add(&text, ",\"engine\":%d,\"graph\":", chance(90) ? 0 : below(wd_engine_id_limit()));
    wd_graph_write(&text, &single.graph, single.scalars);
    wd_text_add(&text, "}");
    reached.drawn[op] += 1;
    note(cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                  CUDNN_TYPE_CHAR, (int64_t)text.length, text.data),
         "set");
    wd_free(text.data);
    if (note(cudnnBackendFinalize(plan), "finalize")) return;
    reached.made[op] += 1;
    execute(plan);
}

void report_operations(void)
{
    long drawn = 0, made = 0;
    for (int op = 0; op < WD_OP_COUNT; ++op) {
        drawn += reached.drawn[op];
        made += reached.made[op];
    }
    printf("%ld texts of %d operations, %ld plans from them\n", drawn, (int)WD_OP_COUNT, made);
}

const char *operation_not_reached(void)
{
    for (int op = 0; op < WD_OP_COUNT; ++op) {
        bool plan_due = reached.known[op];
        if (reached.drawn[op] == 0 || (plan_due && reached.made[op] == 0)) {
            return wd_op_info((enum wd_op)op)->name;
        }
    }
    return NULL;
}
