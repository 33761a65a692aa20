/* SPDX-License-Identifier: Apache-2.0
 *
 * What normalizations and batch norm statistics of the backend API refuse, a row each: every attribute
 * of the five operations missing, of a wrong shape, type or kind, and what does not go together. A row
 * builds the operation anew from valid values of which it changes a few. */
#include <string.h>

#include "support/backend_build.h"
#include "support/harness_internal.h"
#include "support/refusal.h"

enum { ATTRIBUTES = 16 };

/* How an attribute differs from what it should be. */
enum change { RIGHT, ABSENT, WRONG_DIM, WRONG_RANK, INTEGERS, COMPLEX, BY_VALUE, IN_MEMORY };

struct attribute {
    cudnnBackendAttributeName_t name;
    const char *text;
    char
        shape; /* d: data, c: a channel, s: statistics, p: parameters, v: by value, n: int64 by value,
                   b: buffers of peers */
};
#define A(attribute, shape)                                                                        \
    {                                                                                              \
        CUDNN_ATTR_OPERATION_##attribute, "CUDNN_ATTR_OPERATION_" #attribute, shape                \
    }

struct operation {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t mode, phase, compute; /* 0: none */
    cudnnBackendAttributeType_t mode_type;
    const char *mode_text, *compute_text;
    struct attribute list[ATTRIBUTES];
};

#define NOTHING ((cudnnBackendAttributeName_t)0)
static const struct operation forward = {
    CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_NORM_FWD_MODE,
    CUDNN_ATTR_OPERATION_NORM_FWD_PHASE,
    NOTHING,
    CUDNN_TYPE_NORM_MODE,
    "CUDNN_ATTR_OPERATION_NORM_FWD_MODE",
    "",
    {A(NORM_FWD_XDESC, 'd'), A(NORM_FWD_YDESC, 'd'), A(NORM_FWD_SCALE_DESC, 'p'),
     A(NORM_FWD_BIAS_DESC, 'p'), A(NORM_FWD_MEAN_DESC, 's'), A(NORM_FWD_INV_VARIANCE_DESC, 's'),
     A(NORM_FWD_EPSILON_DESC, 'v'), A(NORM_FWD_EXP_AVG_FACTOR_DESC, 'v'),
     A(NORM_FWD_INPUT_RUNNING_MEAN_DESC, 'c'), A(NORM_FWD_INPUT_RUNNING_VAR_DESC, 'c'),
     A(NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, 'c'), A(NORM_FWD_OUTPUT_RUNNING_VAR_DESC, 'c'),
     A(NORM_FWD_PEER_STAT_DESCS, 'b')}};
enum {
    F_X,
    F_Y,
    F_SCALE,
    F_BIAS,
    F_MEAN,
    F_INV,
    F_EPSILON,
    F_FACTOR,
    F_IN_MEAN,
    F_IN_VAR,
    F_OUT_MEAN,
    F_OUT_VAR,
    F_PEERS
};

static const struct operation backward = {
    CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_NORM_BWD_MODE,
    NOTHING,
    NOTHING,
    CUDNN_TYPE_NORM_MODE,
    "CUDNN_ATTR_OPERATION_NORM_BWD_MODE",
    "",
    {A(NORM_BWD_XDESC, 'd'), A(NORM_BWD_DYDESC, 'd'), A(NORM_BWD_DXDESC, 'd'),
     A(NORM_BWD_SCALE_DESC, 'p'), A(NORM_BWD_MEAN_DESC, 's'), A(NORM_BWD_INV_VARIANCE_DESC, 's'),
     A(NORM_BWD_EPSILON_DESC, 'v'), A(NORM_BWD_DSCALE_DESC, 'p'), A(NORM_BWD_DBIAS_DESC, 'p'),
     A(NORM_BWD_PEER_STAT_DESCS, 'b')}};
enum { B_X, B_DY, B_DX, B_SCALE, B_MEAN, B_INV, B_EPSILON, B_DSCALE, B_DBIAS, B_PEERS };

static const struct operation stats = {
    CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_GENSTATS_MODE,
    NOTHING,
    CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC,
    CUDNN_TYPE_GENSTATS_MODE,
    "CUDNN_ATTR_OPERATION_GENSTATS_MODE",
    "CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC",
    {A(GENSTATS_XDESC, 'd'), A(GENSTATS_SUMDESC, 'c'), A(GENSTATS_SQSUMDESC, 'c')}};

static const struct operation finalize = {
    CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE,
    NOTHING,
    CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC,
    CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
    "CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE",
    "CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC",
    {A(BN_FINALIZE_SCALE_DESC, 'c'), A(BN_FINALIZE_BIAS_DESC, 'c'), A(BN_FINALIZE_Y_SUM_DESC, 'c'),
     A(BN_FINALIZE_Y_SQ_SUM_DESC, 'c'), A(BN_FINALIZE_PREV_RUNNING_MEAN_DESC, 'c'),
     A(BN_FINALIZE_PREV_RUNNING_VAR_DESC, 'c'), A(BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC, 'c'),
     A(BN_FINALIZE_UPDATED_RUNNING_VAR_DESC, 'c'), A(BN_FINALIZE_SAVED_MEAN_DESC, 'c'),
     A(BN_FINALIZE_SAVED_INV_STD_DESC, 'c'), A(BN_FINALIZE_EQ_SCALE_DESC, 'c'),
     A(BN_FINALIZE_EQ_BIAS_DESC, 'c'), A(BN_FINALIZE_EPSILON_DESC, 'v'),
     A(BN_FINALIZE_EXP_AVERATE_FACTOR_DESC, 'v'), A(BN_FINALIZE_ACCUM_COUNT_DESC, 'n')}};
enum {
    Z_SCALE,
    Z_BIAS,
    Z_SUM,
    Z_SQUARES,
    Z_IN_MEAN,
    Z_IN_VAR,
    Z_OUT_MEAN,
    Z_OUT_VAR,
    Z_MEAN,
    Z_INV,
    Z_EQ_SCALE,
    Z_EQ_BIAS,
    Z_EPSILON,
    Z_FACTOR,
    Z_COUNT
};

static const struct operation weights = {
    CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
    NOTHING,
    NOTHING,
    CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC,
    CUDNN_TYPE_NORM_MODE,
    "",
    "CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC",
    {A(BN_BWD_WEIGHTS_X_DESC, 'd'), A(BN_BWD_WEIGHTS_DY_DESC, 'd'),
     A(BN_BWD_WEIGHTS_MEAN_DESC, 'c'), A(BN_BWD_WEIGHTS_INVSTD_DESC, 'c'),
     A(BN_BWD_WEIGHTS_BN_SCALE_DESC, 'c'), A(BN_BWD_WEIGHTS_DBN_SCALE_DESC, 'c'),
     A(BN_BWD_WEIGHTS_DBN_BIAS_DESC, 'c'), A(BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, 'c'),
     A(BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, 'c'), A(BN_BWD_WEIGHTS_EQ_BIAS, 'c')}};

/* An operation with what a row changes of it. */
struct row {
    const struct operation *op;
    int mode, phase, compute;
    enum change change[ATTRIBUTES];
    int peers;
};

static void dims_of(const struct row *row, char shape, int64_t *dim)
{
    static const int64_t x[4] = {4, 6, 5, 7};
    int mode = row->mode;
    bool layer = mode == CUDNN_LAYER_NORM || mode == CUDNN_RMS_NORM || mode == CUDNN_ADA_LAYER_NORM;
    for (int d = 0; d < 4; ++d) {
        bool batch = mode == CUDNN_BATCH_NORM;
        switch (shape) {
        case 'd': dim[d] = x[d]; break;
        case 'c': dim[d] = d == 1 ? 6 : 1; break;
        case 'p': dim[d] = layer ? (d > 0 ? x[d] : 1) : d == 1 ? 6 : 1; break;
        case 's':
            dim[d] = d == 0 ? (batch ? 1 : 4) : d > 1 || layer ? 1 : 6;
            if (d == 1 && mode == CUDNN_GROUP_NORM) dim[d] = 3;
            break;
        case 'b': dim[d] = d == 0 ? 2 : d == 1 ? 24 : 1; break;
        default: dim[d] = 1; break;
        }
    }
}

static be_desc tensor_of(const struct row *row, int index, int64_t uid)
{
    char shape = row->op->list[index].shape;
    enum change change = row->change[index];
    bool value = shape == 'v' || shape == 'n';
    int dtype = shape == 'n' ? CUDNN_DATA_INT64 : CUDNN_DATA_FLOAT;
    int64_t dim[5] = {1, 1, 1, 1, 1};
    dims_of(row, shape, dim);
    if (change == WRONG_DIM) dim[1] = dim[1] == 1 ? 4 : dim[1] + 1;
    if (change == INTEGERS) dtype = shape == 'n' ? CUDNN_DATA_INT32 : CUDNN_DATA_INT8;
    if (change == COMPLEX) dtype = CUDNN_DATA_COMPLEX_FP32;
    if (change == BY_VALUE) memcpy(dim, (const int64_t[5]){1, 1, 1, 1, 1}, sizeof dim);
    if (change == BY_VALUE) value = true;
    if (change == IN_MEMORY) value = false;
    return be_tensor(uid, dtype, change == WRONG_RANK ? 5 : 4, dim, value ? BE_BY_VALUE : BE_PLAIN);
}

static be_desc build(const struct row *row)
{
    const struct operation *op = row->op;
    be_desc d = be_make(op->type);
    if (op->mode && row->mode >= 0) be_set_enum(d, op->mode, op->mode_type, row->mode);
    if (op->phase && row->phase >= 0) {
        be_set_enum(d, op->phase, CUDNN_TYPE_NORM_FWD_PHASE, row->phase);
    }
    if (op->compute) be_set_enum(d, op->compute, CUDNN_TYPE_DATA_TYPE, row->compute);
    for (int i = 0; i < ATTRIBUTES && op->list[i].text; ++i) {
        if (row->change[i] == ABSENT) continue;
        if (op->list[i].shape == 'b') {
            be_desc peers[16];
            for (int p = 0; p < row->peers; ++p) peers[p] = tensor_of(row, i, 100 + p);
            if (row->peers) {
                be_set(d, op->list[i].name, CUDNN_TYPE_BACKEND_DESCRIPTOR, row->peers, peers);
            }
            continue;
        }
        be_set_ref(d, op->list[i].name, tensor_of(row, i, i + 1));
    }
    return d;
}

static void refuse(const char *argument, int line, cudnnStatus_t status, const struct row *row)
{
    be_desc d;
    if (!refusal_begin("cudnnBackendFinalize", argument, line)) return;
    d = build(row);
    refusal_end("cudnnBackendFinalize", argument, status, cudnnBackendFinalize(d));
    be_free_all();
}

/* One attribute wrong, each in several ways; the status by its shape. */
#define BAD CUDNN_STATUS_BAD_PARAM
#define SHAPE CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH
#define TYPE CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE
#define REFUSE(status, index, changed)                                                             \
    do {                                                                                           \
        struct row refused = valid;                                                                \
        refused.change[index] = changed;                                                           \
        refuse(valid.op->list[index].text, __LINE__, status, &refused);                            \
    } while (0)
/* The row that `other` leads to by one more change of the valid one. */
#define REFUSE_AS(status, argument, setup)                                                         \
    do {                                                                                           \
        struct row refused = valid;                                                                \
        setup;                                                                                     \
        refuse(argument, __LINE__, status, &refused);                                              \
    } while (0)

/* A tensor in memory with a shape that another one gives it. */
static void tensor_rows(struct row valid, int index)
{
    REFUSE(SHAPE, index, WRONG_DIM);
    REFUSE(SHAPE, index, WRONG_RANK);
    REFUSE(TYPE, index, COMPLEX);
}

/* The operations of a mode that rows start from; only batch norm has running averages and peers. */
static struct row forward_row(int mode, int phase, int peers)
{
    struct row row = {.op = &forward, .mode = mode, .phase = phase};
    bool averages = phase == CUDNN_NORM_FWD_TRAINING && mode == CUDNN_BATCH_NORM;
    for (int i = F_FACTOR; i <= F_OUT_VAR && !averages; ++i) row.change[i] = ABSENT;
    if (mode == CUDNN_RMS_NORM) row.change[F_MEAN] = ABSENT;
    row.peers = mode == CUDNN_BATCH_NORM ? peers : 0;
    return row;
}

static struct row backward_row(int mode, int peers)
{
    struct row row = {.op = &backward, .mode = mode};
    if (mode == CUDNN_RMS_NORM) row.change[B_MEAN] = ABSENT;
    row.peers = mode == CUDNN_BATCH_NORM ? peers : 0;
    return row;
}

static void forward_rows(int mode, int phase)
{
    struct row valid = forward_row(mode, phase, 2);
    bool trains = phase == CUDNN_NORM_FWD_TRAINING;
    REFUSE(BAD, F_X, ABSENT);
    REFUSE(BAD, F_Y, ABSENT);
    REFUSE(BAD, F_SCALE, ABSENT);
    for (int i = F_Y; i <= F_INV; ++i) {
        if (i != F_MEAN || mode != CUDNN_RMS_NORM) tensor_rows(valid, i);
    }
    REFUSE(SHAPE, F_X, WRONG_DIM);
    REFUSE(TYPE, F_X, COMPLEX);
    REFUSE(TYPE, F_SCALE, INTEGERS);
    REFUSE(TYPE, F_BIAS, INTEGERS);
    REFUSE(TYPE, F_INV, INTEGERS);
    REFUSE(BAD, F_EPSILON, IN_MEMORY);
    REFUSE(TYPE, F_EPSILON, INTEGERS);
    if (trains) REFUSE(BAD, F_EPSILON, ABSENT);
    if (mode == CUDNN_RMS_NORM) REFUSE(BAD, F_MEAN, RIGHT);
    else REFUSE(BAD, F_INV, ABSENT);
    if (mode != CUDNN_RMS_NORM && !trains) REFUSE(BAD, F_MEAN, ABSENT);
    if (mode == CUDNN_GROUP_NORM) {
        REFUSE_AS(BAD, forward.list[F_MEAN].text,
                  refused.change[F_MEAN] = refused.change[F_INV] = ABSENT);
    }
    if (mode != CUDNN_BATCH_NORM) {
        for (int i = F_FACTOR; i <= F_OUT_VAR; ++i) REFUSE(BAD, i, RIGHT);
        REFUSE_AS(BAD, forward.list[F_PEERS].text, refused.peers = 1);
    } else if (trains) {
        for (int i = F_IN_MEAN; i <= F_OUT_VAR; ++i) {
            tensor_rows(valid, i);
            REFUSE(TYPE, i, INTEGERS);
        }
        REFUSE(BAD, F_IN_MEAN, ABSENT);
        REFUSE(BAD, F_IN_VAR, ABSENT);
        REFUSE(BAD, F_FACTOR, ABSENT);
        REFUSE(BAD, F_FACTOR, IN_MEMORY);
        REFUSE(TYPE, F_FACTOR, INTEGERS);
        REFUSE_AS(CUDNN_STATUS_NOT_SUPPORTED, forward.list[F_PEERS].text, refused.peers = 9);
    } else {
        for (int i = F_FACTOR; i <= F_OUT_VAR; ++i) REFUSE(BAD, i, RIGHT);
        REFUSE_AS(BAD, forward.list[F_MEAN].text,
                  refused.change[F_MEAN] = refused.change[F_INV] = ABSENT);
    }
    REFUSE_AS(BAD, forward.mode_text, refused.mode = -1);
    REFUSE_AS(BAD, "CUDNN_ATTR_OPERATION_NORM_FWD_PHASE", refused.phase = -1);
}

static void backward_rows(int mode)
{
    struct row valid = backward_row(mode, 2);
    REFUSE(BAD, B_X, ABSENT);
    REFUSE(BAD, B_DY, ABSENT);
    REFUSE(BAD, B_DX, ABSENT);
    REFUSE(BAD, B_SCALE, ABSENT);
    for (int i = B_DY; i <= B_DBIAS; ++i) {
        if (i == B_EPSILON || (i == B_MEAN && mode == CUDNN_RMS_NORM)) continue;
        tensor_rows(valid, i);
        REFUSE(TYPE, i, INTEGERS);
    }
    REFUSE(TYPE, B_X, INTEGERS);
    REFUSE(BAD, B_EPSILON, IN_MEMORY);
    if (mode == CUDNN_RMS_NORM) REFUSE(BAD, B_MEAN, RIGHT);
    else REFUSE(BAD, B_MEAN, ABSENT);
    if (mode != CUDNN_RMS_NORM) REFUSE(BAD, B_INV, ABSENT);
    REFUSE_AS(BAD, backward.list[B_EPSILON].text,
              refused.change[B_MEAN] = refused.change[B_INV] = refused.change[B_EPSILON] = ABSENT);
    if (mode != CUDNN_BATCH_NORM) {
        REFUSE_AS(BAD, backward.list[B_PEERS].text, refused.peers = 1);
    } else {
        REFUSE_AS(CUDNN_STATUS_NOT_SUPPORTED, backward.list[B_PEERS].text, refused.peers = 9);
    }
    REFUSE_AS(BAD, backward.mode_text, refused.mode = -1);
}

static void statistics_rows(void)
{
    struct row valid = {.op = &stats};
    for (int i = 0; i < 3; ++i) REFUSE(BAD, i, ABSENT);
    for (int i = 1; i < 3; ++i) {
        tensor_rows(valid, i);
        REFUSE(TYPE, i, INTEGERS);
        REFUSE(BAD, i, BY_VALUE);
    }
    REFUSE(TYPE, 0, COMPLEX);
    REFUSE_AS(TYPE, stats.compute_text, refused.compute = CUDNN_DATA_INT32);
    REFUSE_AS(TYPE, stats.compute_text, refused.compute = CUDNN_DATA_FP8_E4M3);
}

static void finalize_rows(int mode)
{
    struct row valid = {.op = &finalize, .mode = mode};
    bool trains = mode == CUDNN_BN_FINALIZE_STATISTICS_TRAINING;
    REFUSE(BAD, Z_SCALE, ABSENT);
    REFUSE(BAD, Z_BIAS, ABSENT);
    REFUSE(BAD, Z_EPSILON, ABSENT);
    REFUSE(BAD, Z_EPSILON, IN_MEMORY);
    REFUSE(TYPE, Z_EPSILON, INTEGERS);
    REFUSE(BAD, Z_IN_MEAN, ABSENT);
    REFUSE(BAD, Z_IN_VAR, ABSENT);
    for (int i = Z_BIAS; i <= Z_EQ_BIAS; ++i) {
        if (!trains && (i == Z_SUM || i == Z_SQUARES)) continue;
        tensor_rows(valid, i);
        REFUSE(TYPE, i, INTEGERS);
        REFUSE(BAD, i, BY_VALUE);
    }
    if (trains) {
        REFUSE(BAD, Z_SUM, ABSENT);
        REFUSE(BAD, Z_SQUARES, ABSENT);
        REFUSE(BAD, Z_FACTOR, ABSENT);
        REFUSE(BAD, Z_COUNT, ABSENT);
        REFUSE(BAD, Z_COUNT, INTEGERS);
        REFUSE(BAD, Z_FACTOR, IN_MEMORY);
        REFUSE(BAD, Z_COUNT, IN_MEMORY);
    }
    REFUSE_AS(BAD, finalize.list[Z_OUT_MEAN].text,
              for (int i = Z_OUT_MEAN; i <= Z_EQ_BIAS; ++i) refused.change[i] = ABSENT);
    REFUSE_AS(BAD, finalize.mode_text, refused.mode = -1);
    REFUSE_AS(TYPE, finalize.compute_text, refused.compute = CUDNN_DATA_INT32);
}

static void weights_rows(void)
{
    struct row valid = {.op = &weights};
    for (int i = 0; i < 5; ++i) REFUSE(BAD, i, ABSENT);
    for (int i = 1; i < 10; ++i) {
        tensor_rows(valid, i);
        REFUSE(TYPE, i, INTEGERS);
        if (i > 1) REFUSE(BAD, i, BY_VALUE);
    }
    REFUSE(TYPE, 0, INTEGERS);
    REFUSE_AS(BAD, weights.list[5].text, for (int i = 5; i < 10; ++i) refused.change[i] = ABSENT);
    REFUSE_AS(TYPE, weights.compute_text, refused.compute = CUDNN_DATA_INT32);
}

/* What the rows change is valid as it stands, through to a plan. */
static void accept(const char *name, const struct row *row)
{
    be_desc op;
    if (!case_begin("accepted/%s", name)) return;
    op = be_final(build(row));
    be_plan_of(harness_handle, 1, &op);
    be_free_all();
    case_count();
}

static void accepted(void)
{
    for (int mode = 0; mode < 6; ++mode) {
        for (int phase = 0; phase < 2; ++phase) {
            struct row row = forward_row(mode, phase, 8);
            char name[64];
            snprintf(name, sizeof name, "forward/%d/%d", mode, phase);
            accept(name, &row);
            row.change[F_BIAS] = ABSENT;
            row.change[F_SCALE] = BY_VALUE;
            snprintf(name, sizeof name, "forward/%d/%d/plain", mode, phase);
            accept(name, &row);
        }
    }
    for (int mode = 0; mode < 6; ++mode) {
        struct row row = backward_row(mode, 0);
        char name[64];
        snprintf(name, sizeof name, "backward/%d", mode);
        accept(name, &row);
        row.change[B_DSCALE] = row.change[B_DBIAS] = row.change[B_EPSILON] = ABSENT;
        snprintf(name, sizeof name, "backward/%d/plain", mode);
        accept(name, &row);
    }
    accept("statistics", &(const struct row){.op = &stats});
    accept("finalize/training", &(const struct row){.op = &finalize});
    accept("finalize/inference", &(const struct row){.op = &finalize, .mode = 1});
    accept("weights", &(const struct row){.op = &weights});
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int mode = 0; mode < 6; ++mode) {
        for (int phase = 0; phase < 2; ++phase) forward_rows(mode, phase);
        backward_rows(mode);
    }
    statistics_rows();
    finalize_rows(CUDNN_BN_FINALIZE_STATISTICS_TRAINING);
    finalize_rows(CUDNN_BN_FINALIZE_STATISTICS_INFERENCE);
    weights_rows();
    accepted();
    refusal_report();
    return harness_finish();
}
