/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: normalizations through the backend API, forward in both phases and backward: values of every
 * mode, type and the shapes that frontends give, and without a device what finalizing an operation
 * answers to each attribute that is missing or wrong.
 */
#include "backend.h"

#include <stdio.h>
#include <string.h>

#define FWD(name) CUDNN_ATTR_OPERATION_NORM_FWD_##name
#define BWD(name) CUDNN_ATTR_OPERATION_NORM_BWD_##name

static const char *const mode_names[] = {"layer", "instance", "batch", "group", "rms", "ada"};
enum { INFERENCE, TRAINING, BACKWARD };
static const char *const phase_names[] = {"inference", "training", "backward"};

/* ---- Values ---- */

struct shape {
    const char *name;
    int mode, nd, x[5], scale[5], stats[5];
    bool nhwc;
};
static const struct shape shapes[] = {
    {"hidden", CUDNN_LAYER_NORM, 4, {12, 64, 1, 1}, {1, 64, 1, 1}, {12, 1, 1, 1}, true},
    {"hidden_odd", CUDNN_LAYER_NORM, 4, {5, 37, 1, 1}, {1, 37, 1, 1}, {5, 1, 1, 1}, true},
    {"hidden_long", CUDNN_LAYER_NORM, 4, {3, 1024, 1, 1}, {1, 1024, 1, 1}, {3, 1, 1, 1}, true},
    {"sequence", CUDNN_LAYER_NORM, 3, {2, 6, 32}, {1, 1, 32}, {2, 6, 1}, false},
    {"image", CUDNN_LAYER_NORM, 4, {4, 8, 3, 5}, {1, 8, 3, 5}, {4, 1, 1, 1}, false},
    {"image_nhwc", CUDNN_LAYER_NORM, 4, {4, 8, 3, 5}, {1, 8, 3, 5}, {4, 1, 1, 1}, true},
    {"hidden", CUDNN_RMS_NORM, 4, {12, 64, 1, 1}, {1, 64, 1, 1}, {12, 1, 1, 1}, true},
    {"hidden_odd", CUDNN_RMS_NORM, 4, {5, 37, 1, 1}, {1, 37, 1, 1}, {5, 1, 1, 1}, true},
    {"hidden_long", CUDNN_RMS_NORM, 4, {3, 1024, 1, 1}, {1, 1024, 1, 1}, {3, 1, 1, 1}, true},
    {"sequence", CUDNN_RMS_NORM, 3, {2, 6, 32}, {1, 1, 32}, {2, 6, 1}, false},
    {"image", CUDNN_RMS_NORM, 4, {4, 8, 3, 5}, {1, 8, 3, 5}, {4, 1, 1, 1}, false},
    {"nchw", CUDNN_INSTANCE_NORM, 4, {2, 8, 5, 7}, {1, 8, 1, 1}, {2, 8, 1, 1}, false},
    {"nhwc", CUDNN_INSTANCE_NORM, 4, {2, 8, 5, 7}, {1, 8, 1, 1}, {2, 8, 1, 1}, true},
    {"5d_nhwc", CUDNN_INSTANCE_NORM, 5, {2, 8, 3, 4, 5}, {1, 8, 1, 1, 1}, {2, 8, 1, 1, 1}, true},
    {"nchw", CUDNN_BATCH_NORM, 4, {4, 8, 5, 7}, {1, 8, 1, 1}, {1, 8, 1, 1}, false},
    {"nhwc", CUDNN_BATCH_NORM, 4, {4, 8, 5, 7}, {1, 8, 1, 1}, {1, 8, 1, 1}, true},
    {"nhwc_c32", CUDNN_BATCH_NORM, 4, {4, 32, 4, 4}, {1, 32, 1, 1}, {1, 32, 1, 1}, true},
    {"nchw", CUDNN_GROUP_NORM, 4, {2, 8, 5, 7}, {1, 8, 1, 1}, {2, 2, 1, 1}, false},
    {"nhwc", CUDNN_GROUP_NORM, 4, {2, 8, 5, 7}, {1, 8, 1, 1}, {2, 4, 1, 1}, true},
    {"sequence", CUDNN_ADA_LAYER_NORM, 3, {2, 6, 32}, {2, 1, 32}, {2, 6, 1}, false},
    {"sequence_long", CUDNN_ADA_LAYER_NORM, 3, {2, 3, 768}, {2, 1, 768}, {2, 3, 1}, false},
};

struct operands {
    struct gd_tens *list[16];
    int count;
};

/* A tensor with the next unique id; channels innermost where `nhwc`. */
static struct gd_tens *operand(struct operands *o, const char *name, cudnnDataType_t type, int nd,
                               const int *dim, bool nhwc, int fill)
{
    int stride[5], next = 1;
    if (nhwc) {
        stride[1] = 1;
        next = dim[1];
    }
    for (int i = nd - 1; i >= 0; i--) {
        if (i == 1 && nhwc) continue;
        stride[i] = next;
        next *= dim[i];
    }
    struct gd_tens *t = gd_tens_raw(name, type, nd, dim, stride);
    if (fill >= 0) gd_fill(t, (enum gd_fill)fill);
    o->list[o->count++] = t;
    return t;
}

static be_desc desc(const struct operands *o)
{
    return be_tensor_of(o->count, o->list[o->count - 1]);
}

/* A scalar in host memory. */
static be_desc scalar(struct operands *o, int nd, float value)
{
    static struct gd_tens held[4];
    static float room[4];
    static int next;
    int i = next++ % 4;
    room[i] = value;
    held[i].p = &room[i];
    o->list[o->count++] = &held[i];
    return be_by_value(o->count, CUDNN_DATA_FLOAT, nd, 4);
}

static struct gd_tol tolerance(const struct gd_tens *t, double n, double scale)
{
    struct gd_tol tol = gd_sum_tol(t->type, CUDNN_DATA_FLOAT, n, 1);
    tol.abs = tol.abs / (n + 2) * 16 * scale;
    tol.rel += 16 * gd_roundoff(CUDNN_DATA_FLOAT);
    return tol;
}

static double terms(const struct shape *s, const int *own)
{
    double n = 1;
    for (int i = 0; i < s->nd; i++) n *= (double)s->x[i] / own[i];
    return n;
}

static void forward(const struct shape *s, cudnnDataType_t type, cudnnDataType_t param, bool trains,
                    bool averages)
{
    struct operands o = {.count = 0};
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    struct gd_tens *y, *mean = NULL, *inv = NULL, *out_mean = NULL, *out_var = NULL;
    bool given = !trains && (s->mode == CUDNN_BATCH_NORM || s->mode == CUDNN_GROUP_NORM);
    double n = terms(s, s->stats);
    be_set_int(op, FWD(MODE), CUDNN_TYPE_NORM_MODE, s->mode);
    be_set_int(op, FWD(PHASE), CUDNN_TYPE_NORM_FWD_PHASE, trains);
    operand(&o, "x", type, s->nd, s->x, s->nhwc, GD_REAL);
    be_set_desc(op, FWD(XDESC), desc(&o));
    operand(&o, "scale", param, s->nd, s->scale, s->nhwc, GD_POS);
    be_set_desc(op, FWD(SCALE_DESC), desc(&o));
    operand(&o, "bias", param, s->nd, s->scale, s->nhwc, GD_UNIT);
    be_set_desc(op, FWD(BIAS_DESC), desc(&o));
    be_set_desc(op, FWD(EPSILON_DESC), scalar(&o, s->nd, 1e-3f));
    if (s->mode != CUDNN_RMS_NORM && (trains || given)) {
        mean = operand(&o, "mean", CUDNN_DATA_FLOAT, s->nd, s->stats, false, given ? GD_UNIT : -1);
        be_set_desc(op, FWD(MEAN_DESC), desc(&o));
    }
    if (trains || given) {
        inv = operand(&o, "inv_std", CUDNN_DATA_FLOAT, s->nd, s->stats, false, given ? GD_POS : -1);
        be_set_desc(op, FWD(INV_VARIANCE_DESC), desc(&o));
    }
    if (averages) {
        be_set_desc(op, FWD(EXP_AVG_FACTOR_DESC), scalar(&o, s->nd, 0.25f));
        operand(&o, "in_mean", CUDNN_DATA_FLOAT, s->nd, s->stats, false, GD_UNIT);
        be_set_desc(op, FWD(INPUT_RUNNING_MEAN_DESC), desc(&o));
        operand(&o, "in_var", CUDNN_DATA_FLOAT, s->nd, s->stats, false, GD_POS);
        be_set_desc(op, FWD(INPUT_RUNNING_VAR_DESC), desc(&o));
        out_mean = operand(&o, "out_mean", CUDNN_DATA_FLOAT, s->nd, s->stats, false, -1);
        be_set_desc(op, FWD(OUTPUT_RUNNING_MEAN_DESC), desc(&o));
        out_var = operand(&o, "out_var", CUDNN_DATA_FLOAT, s->nd, s->stats, false, -1);
        be_set_desc(op, FWD(OUTPUT_RUNNING_VAR_DESC), desc(&o));
    }
    y = operand(&o, "y", type, s->nd, s->x, s->nhwc, -1);
    be_set_desc(op, FWD(YDESC), desc(&o));
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, o.count, o.list)) {
        gd_out(y, tolerance(y, n, 4));
        if (trains && mean) gd_out(mean, tolerance(mean, n, 4));
        if (trains) gd_out(inv, tolerance(inv, n, 2));
        if (out_mean) gd_out(out_mean, tolerance(out_mean, n, 4));
        if (out_var) gd_out(out_var, tolerance(out_var, n, 16));
    }
    be_reset();
}

static void backward(const struct shape *s, cudnnDataType_t type, cudnnDataType_t param)
{
    struct operands o = {.count = 0};
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    struct gd_tens *dx, *dscale, *dbias;
    double n = terms(s, s->stats), shared = terms(s, s->scale);
    be_set_int(op, BWD(MODE), CUDNN_TYPE_NORM_MODE, s->mode);
    operand(&o, "x", type, s->nd, s->x, s->nhwc, GD_REAL);
    be_set_desc(op, BWD(XDESC), desc(&o));
    operand(&o, "dy", type, s->nd, s->x, s->nhwc, GD_UNIT);
    be_set_desc(op, BWD(DYDESC), desc(&o));
    operand(&o, "scale", param, s->nd, s->scale, s->nhwc, GD_POS);
    be_set_desc(op, BWD(SCALE_DESC), desc(&o));
    if (s->mode != CUDNN_RMS_NORM) {
        operand(&o, "mean", CUDNN_DATA_FLOAT, s->nd, s->stats, false, GD_UNIT);
        be_set_desc(op, BWD(MEAN_DESC), desc(&o));
    }
    operand(&o, "inv_std", CUDNN_DATA_FLOAT, s->nd, s->stats, false, GD_POS);
    be_set_desc(op, BWD(INV_VARIANCE_DESC), desc(&o));
    dx = operand(&o, "dx", type, s->nd, s->x, s->nhwc, -1);
    be_set_desc(op, BWD(DXDESC), desc(&o));
    dscale = operand(&o, "dscale", param, s->nd, s->scale, s->nhwc, -1);
    be_set_desc(op, BWD(DSCALE_DESC), desc(&o));
    dbias = operand(&o, "dbias", param, s->nd, s->scale, s->nhwc, -1);
    be_set_desc(op, BWD(DBIAS_DESC), desc(&o));
    if (gd_status("op", lib.BackendFinalize(op)) == 0 && be_run(1, &op, o.count, o.list)) {
        gd_out(dx, tolerance(dx, n, 64));
        gd_out(dscale, tolerance(dscale, shared, 16 * shared));
        gd_out(dbias, tolerance(dbias, shared, 2 * shared));
    }
    be_reset();
}

static void values(void)
{
    static const struct {
        const char *name;
        cudnnDataType_t x, param;
    } types[] = {
        {"f32", CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
        {"f16", CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
        {"bf16", CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT},
        {"f16_all", CUDNN_DATA_HALF, CUDNN_DATA_HALF},
        {"bf16_all", CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16},
    };
    for (int t = 0; t < GD_COUNT(types); t++) {
        for (int i = 0; i < GD_COUNT(shapes); i++) {
            const struct shape *s = &shapes[i];
            for (int phase = 0; phase < 3; phase++) {
                if (!gd_case("backend_norm/%s/%s/%s/%s", phase_names[phase], mode_names[s->mode],
                             types[t].name, s->name))
                    continue;
                if (phase == BACKWARD) backward(s, types[t].x, types[t].param);
                else
                    forward(s, types[t].x, types[t].param, phase == TRAINING,
                            phase == TRAINING && s->mode == CUDNN_BATCH_NORM);
                gd_end();
            }
        }
    }
}

/* ---- Statuses ---- */

enum { X, Y, SCALE, BIAS, MEAN, INV, EPSILON, FACTOR, IN_MEAN, IN_VAR, OUT_MEAN, OUT_VAR, FIELDS };
enum { DSCALE = BIAS, DBIAS = FACTOR, DX = IN_MEAN }; /* of backward, where y is dy */

struct op {
    int mode, phase, peers;
    int dim[FIELDS][4]; /* first 0: absent */
    int type[FIELDS];
    bool plain_epsilon;
};

static struct op valid(int mode, int phase)
{
    static const int x[] = {4, 6, 5, 7}, one[] = {1, 1, 1, 1}, channel[] = {1, 6, 1, 1};
    static const int scale[][4] = {{1, 6, 5, 7}, {1, 6, 1, 1}, {1, 6, 1, 1},
                                   {1, 6, 1, 1}, {1, 6, 5, 7}, {4, 6, 5, 7}};
    static const int stats[][4] = {{4, 1, 1, 1}, {4, 6, 1, 1}, {1, 6, 1, 1},
                                   {4, 2, 1, 1}, {4, 1, 1, 1}, {4, 1, 1, 1}};
    struct op op = {.mode = mode, .phase = phase};
    for (int i = 0; i < FIELDS; i++) {
        const int *from = i <= Y ? x : i <= BIAS ? scale[mode] : i <= INV ? stats[mode] : one;
        if (i > FACTOR) from = channel;
        memcpy(op.dim[i], from, sizeof op.dim[i]);
        if (i > EPSILON && phase != BACKWARD) op.dim[i][0] = 0;
    }
    if (mode == CUDNN_RMS_NORM) op.dim[MEAN][0] = 0;
    if (phase == BACKWARD) {
        memcpy(op.dim[DBIAS], scale[mode], sizeof op.dim[0]);
        memcpy(op.dim[DX], x, sizeof op.dim[0]);
        op.dim[EPSILON][0] = 0;
    }
    return op;
}

static void finalize(const struct op *op)
{
    static const int fwd[] = {FWD(XDESC),
                              FWD(YDESC),
                              FWD(SCALE_DESC),
                              FWD(BIAS_DESC),
                              FWD(MEAN_DESC),
                              FWD(INV_VARIANCE_DESC),
                              FWD(EPSILON_DESC),
                              FWD(EXP_AVG_FACTOR_DESC),
                              FWD(INPUT_RUNNING_MEAN_DESC),
                              FWD(INPUT_RUNNING_VAR_DESC),
                              FWD(OUTPUT_RUNNING_MEAN_DESC),
                              FWD(OUTPUT_RUNNING_VAR_DESC)};
    static const int bwd[] = {BWD(XDESC),        BWD(DYDESC),     BWD(SCALE_DESC),
                              BWD(DSCALE_DESC),  BWD(MEAN_DESC),  BWD(INV_VARIANCE_DESC),
                              BWD(EPSILON_DESC), BWD(DBIAS_DESC), BWD(DXDESC)};
    bool back = op->phase == BACKWARD;
    be_desc d = be_make(back ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                             : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    be_set_int(d, back ? BWD(MODE) : FWD(MODE), CUDNN_TYPE_NORM_MODE, op->mode);
    if (!back) be_set_int(d, FWD(PHASE), CUDNN_TYPE_NORM_FWD_PHASE, op->phase);
    for (int i = 0; i < (back ? GD_COUNT(bwd) : GD_COUNT(fwd)); i++) {
        int stride[4], next = 1;
        bool value = (i == EPSILON && !op->plain_epsilon) || (i == FACTOR && !back);
        if (op->dim[i][0] == 0) continue;
        for (int k = 3; k >= 0; k--) {
            stride[k] = next;
            next *= op->dim[i][k];
        }
        be_set_desc(d, back ? bwd[i] : fwd[i],
                    value ? be_by_value(i + 1, CUDNN_DATA_FLOAT, 4, 4)
                          : be_tensor(i + 1, op->type[i], 4, op->dim[i], stride, false));
    }
    if (op->peers) {
        be_desc peers[2];
        for (int i = 0; i < op->peers; i++)
            peers[i] = be_tensor(50 + i, 0, 4, DIMS(2, 24, 1, 1), DIMS(24, 1, 1, 1), false);
        be_set(d, back ? BWD(PEER_STAT_DESCS) : FWD(PEER_STAT_DESCS), CUDNN_TYPE_BACKEND_DESCRIPTOR,
               op->peers, peers);
    }
    gd_status("op", lib.BackendFinalize(d));
    be_reset();
    gd_end();
}

static void statuses(void)
{
    static const char *const fwd[] = {"x",       "y",       "scale",    "bias",
                                      "mean",    "inv_std", "epsilon",  "factor",
                                      "in_mean", "in_var",  "out_mean", "out_var"};
    static const char *const bwd[] = {"x",       "dy",      "scale", "dscale", "mean",
                                      "inv_std", "epsilon", "dbias", "dx"};
#define ROW(name, change)                                                                          \
    do {                                                                                           \
        if (!gd_host_case("backend_norm/op/%s/%s/%s", phase_names[phase], mode_names[mode], name)) \
            break;                                                                                 \
        struct op op = valid(mode, phase);                                                         \
        change;                                                                                    \
        finalize(&op);                                                                             \
    } while (0)
    for (int mode = 0; mode < 6; mode++) {
        for (int phase = 0; phase < 3; phase++) {
            bool back = phase == BACKWARD;
            ROW("valid", (void)0);
            for (int i = 0; i < (back ? GD_COUNT(bwd) : GD_COUNT(fwd)); i++) {
                char name[32];
                snprintf(name, sizeof name, "without_%s", back ? bwd[i] : fwd[i]);
                if (back || i <= EPSILON) ROW(name, op.dim[i][0] = 0);
                snprintf(name, sizeof name, "dims_%s", back ? bwd[i] : fwd[i]);
                if (i != EPSILON && (back || i < EPSILON)) ROW(name, op.dim[i][3] += 1);
                snprintf(name, sizeof name, "with_%s", fwd[i]);
                if (!back && i > EPSILON) ROW(name, op.dim[i][0] = 1);
            }
            ROW("without_statistics", op.dim[MEAN][0] = op.dim[INV][0] = 0);
            if (mode == CUDNN_RMS_NORM)
                ROW("with_mean", memcpy(op.dim[MEAN], DIMS(4, 1, 1, 1), sizeof op.dim[0]));
            ROW("epsilon_in_memory",
                (op.plain_epsilon = true, memcpy(op.dim[EPSILON], DIMS(1, 1, 1, 1), 16)));
            if (!back) ROW("averages", for (int i = FACTOR; i < FIELDS; i++) op.dim[i][0] = 1);
            if (!back)
                ROW("averages_without_factor",
                    for (int i = IN_MEAN; i < FIELDS; i++) op.dim[i][0] = 1);
            if (!back)
                ROW("averages_mean_only",
                    op.dim[FACTOR][0] = op.dim[IN_MEAN][0] = op.dim[OUT_MEAN][0] = 1);
            ROW("peers1", op.peers = 1);
            ROW("peers2", op.peers = 2);
            ROW("x_int8", op.type[X] = CUDNN_DATA_INT8);
            ROW("scale_half", op.type[SCALE] = CUDNN_DATA_HALF);
            ROW("mean_half", op.type[MEAN] = op.type[INV] = CUDNN_DATA_HALF);
        }
    }
#undef ROW
}

void cases_backend_norm(void)
{
    values();
    statuses();
}
