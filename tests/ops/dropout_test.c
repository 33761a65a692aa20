/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout: the mask that a seed gives, values and gradients, probabilities 0 and 1, every type and
 * layout, in place; and every way in which packed tensors are walked. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dropout_case.h"
#include "kernels_reached.h"

/* The state is set up anew in the call, so that each run of it gives the same. */
static cudnnStatus_t train(void *context)
{
    const struct dropout_call *c = context;
    cudnnStatus_t status = dropout_set(c);
    for (int i = 0; i <= c->forwards && status == CUDNN_STATUS_SUCCESS; ++i)
        status = dropout_forward(c);
    if (status != CUDNN_STATUS_SUCCESS || !c->dx) return status;
    return cudnnDropoutBackward(harness_handle, c->dropout, c->dy->desc, c->dy->whole->data,
                                c->dx->desc, c->dx->whole->data, c->reserve->data,
                                (size_t)c->reserve->bytes);
}

/* `to` must hold `from` / (1 - p) where kept; `want` holds to's values before. */
static void check_dropped(const char *name, const struct dropout_call *c, const struct part *from,
                          const struct part *to, double *want)
{
    double *magnitude = calloc((size_t)to->whole->count, sizeof *magnitude);
    double scale = c->probability < 1.0f ? 1.0 / (1.0 - (double)c->probability) : 0.0;
    bool wide = to->whole->dtype == CUDNN_DATA_DOUBLE || to->whole->dtype == CUDNN_DATA_INT32;
    for (int64_t i = 0; i < to->count; ++i) {
        int64_t index = part_index(to, i);
        want[index] = 0.0;
        if (!dropout_is_kept(c->seed, (uint64_t)c->forwards, i, c->probability)) continue;
        want[index] = scale * from->whole->value[part_index(from, i)];
        if (isfinite(want[index])) magnitude[index] = fabs(want[index]);
    }
    check_values(name, to->whole, want, NULL, magnitude,
                 wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(magnitude);
}

/* The mask itself: bit i % 8 of byte i / 8, nothing behind the last element. */
static void check_mask(const struct dropout_call *c)
{
    unsigned char *mask = malloc((size_t)c->reserve->bytes);
    warpdnnMemcpy(harness_handle, mask, c->reserve->data, (size_t)c->reserve->bytes);
    for (int64_t i = 0; i < 8 * c->reserve->bytes && harness_values; ++i) {
        bool kept =
            i < c->x->count && dropout_is_kept(c->seed, (uint64_t)c->forwards, i, c->probability);
        if ((mask[i / 8] >> (i % 8) & 1) == kept) continue;
        case_fail("bit %lld of the mask is %d", (long long)i, !kept);
        break;
    }
    free(mask);
}

static const char *const type_name[] = {"fp32",   "fp64",  "fp16",    "int8",    "int32",
                                        "int8x4", "uint8", "uint8x4", "int8x32", "bf16"};

static int lanes_of(int type)
{
    return type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ? 4
           : type == CUDNN_DATA_INT8x32                            ? 32
                                                                   : 1;
}

static bool is_float(int type)
{
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
           type == CUDNN_DATA_BFLOAT16;
}

static const float probabilities[] = {0.0f, 1.0f, 0.5f, 0.1f, 0.9f, 0.3f, 1e-6f, 0.999f};

static void random_case(int type, int turn)
{
    struct dropout_call c = {.probability = probabilities[turn % 8]};
    cudnnDataType_t dtype = (cudnnDataType_t)type;
    enum layout x_layout = lanes_of(type) > 1 ? LAYOUT_VECT : LAYOUT_NCHW;
    enum layout y_layout = x_layout;
    int dim[8], turned[8], x_margin[8], y_margin[8];
    const int *x_extra = NULL;
    const int *y_extra = NULL;
    double *want_y;
    double *want_dx;
    int rank;
    if (!case_begin("dropout/%s/%d", type_name[type], turn)) return;
    c.seed = (unsigned long long)random_int(0, UINT32_MAX) << 32 |
             (unsigned long long)random_int(0, UINT32_MAX);
    c.forwards = (int)random_int(0, 2);
    rank = lanes_of(type) > 1 ? 4 : random_of(2, 3, 4, 4, 5, 6);
    for (int d = 0; d < rank; ++d) dim[d] = random_of(1, 2, 3, 5, 7, 8);
    if (lanes_of(type) > 1) dim[1] = lanes_of(type) * random_of(1, 2);
    else {
        if (random_chance(0.5)) x_layout = LAYOUT_NHWC;
        if (random_chance(0.5)) y_layout = LAYOUT_NHWC;
        x_extra = random_margin(rank, x_margin);
        y_extra = random_margin(rank, y_margin);
    }
    memcpy(turned, dim, sizeof turned);
    if (lanes_of(type) == 1 && random_chance(0.3)) {
        /* as many elements in other dims */
        for (int d = 0; d < rank; ++d) turned[d] = dim[rank - 1 - d];
    }
    dropout_begin(&c);
    c.x = part_input(dtype, rank, dim, x_layout, x_extra, is_float(type) ? -4.0 : -60.0,
                     is_float(type) ? 4.0 : 60.0);
    for (int64_t i = 0; is_float(type) && turn % 3 == 2 && i < c.x->count; i += 5) {
        c.x->whole->value[part_index(c.x, i)] = i % 2 ? NAN : INFINITY;
    }
    tensor_write(c.x->whole);
    c.y = part_output(dtype, rank, turned, y_layout, y_extra, true);
    c.dy = part_input(dtype, rank, turned, y_layout, y_extra, is_float(type) ? -4.0 : -60.0,
                      is_float(type) ? 4.0 : 60.0);
    c.dx = part_output(dtype, rank, dim, x_layout, x_extra, true);
    c.reserve = dropout_reserve(c.x->desc);
    want_y = part_expected(c.y);
    want_dx = part_expected(c.dx);
    if (run_call(train, &c)) {
        check_dropped("y", &c, c.x, c.y, want_y);
        check_dropped("dx", &c, c.dy, c.dx, want_dx);
        check_mask(&c);
    }
    free(want_y);
    free(want_dx);
    dropout_end(&c);
}

static void in_place_case(void)
{
    struct dropout_call c = {.probability = 0.4f, .seed = 77};
    int dim[3] = {3, 5, 7};
    double *x;
    double *want;
    if (!case_begin("dropout/in_place")) return;
    dropout_begin(&c);
    c.x = c.y = part_output(CUDNN_DATA_FLOAT, 3, dim, LAYOUT_NHWC, NULL, false);
    c.reserve = dropout_reserve(c.x->desc);
    x = part_expected(c.x);
    want = part_expected(c.x);
    if (run_call(train, &c)) {
        for (int64_t i = 0; i < c.x->count; ++i) {
            want[i] =
                dropout_is_kept(c.seed, 0, i, c.probability) ? x[i] / (1.0 - (double)0.4f) : 0.0;
            x[i] = fabs(want[i]);
        }
        check_values("y", c.y->whole, want, NULL, x, CUDNN_DATA_FLOAT);
    }
    free(x);
    free(want);
    dropout_end(&c);
}

/* Packed tensors, with channels fastest or not, that begin some elements behind aligned memory. */
struct walk {
    struct dropout_call call;
    cudnnTensorDescriptor_t desc;
    struct tensor *x, *y, *dy, *dx, *reserve; /* x .. dx without shape, with what is skipped */
    int dim[4], stride[4];
    int x_skip, y_skip;
};

static void *behind(const struct tensor *t, int skip)
{
    return (char *)t->data + t->bytes / t->count * skip;
}

static cudnnStatus_t train_walk(void *context)
{
    const struct walk *w = context;
    size_t bytes = (size_t)w->reserve->bytes;
    cudnnStatus_t status = dropout_set(&w->call);
    if (status == CUDNN_STATUS_SUCCESS) {
        status =
            cudnnDropoutForward(harness_handle, w->call.dropout, w->desc, behind(w->x, w->x_skip),
                                w->desc, behind(w->y, w->y_skip), w->reserve->data, bytes);
    }
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return cudnnDropoutBackward(harness_handle, w->call.dropout, w->desc, behind(w->dy, w->y_skip),
                                w->desc, behind(w->dx, w->x_skip), w->reserve->data, bytes);
}

static void check_walk(const char *name, const struct walk *w, const struct tensor *from,
                       int from_skip, const struct tensor *to, int to_skip, double *want)
{
    double *magnitude = calloc((size_t)to->count, sizeof *magnitude);
    int64_t count = to->count - to_skip;
    for (int64_t i = 0; i < count; ++i) {
        int64_t rest = i;
        int64_t at = 0;
        for (int d = 3; d >= 0; --d) {
            at += rest % w->dim[d] * w->stride[d];
            rest /= w->dim[d];
        }
        want[at + to_skip] = 0.0;
        if (!dropout_is_kept(w->call.seed, 0, i, w->call.probability)) continue;
        want[at + to_skip] = from->value[at + from_skip] / (1.0 - (double)w->call.probability);
        magnitude[at + to_skip] = fabs(want[at + to_skip]);
    }
    check_values(name, to, want, NULL, magnitude,
                 to->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(magnitude);
}

static double *values_of(const struct tensor *t)
{
    double *values = malloc((size_t)t->count * sizeof *values);
    memcpy(values, t->value, (size_t)t->count * sizeof *values);
    return values;
}

static void walk_case(int type, const int *dim, bool channels, int x_skip, int y_skip, int spare)
{
    static const int order[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
    struct walk w = {.call = {.probability = 0.3f}, .x_skip = x_skip, .y_skip = y_skip};
    cudnnDataType_t dtype = (cudnnDataType_t)type;
    int stride = 1;
    double *want_y;
    double *want_dx;
    size_t bytes = 0;
    if (!case_begin("dropout/walk/%s/%d,%d,%d,%d/%s/skip%d,%d/spare%d", type_name[type], dim[0],
                    dim[1], dim[2], dim[3], channels ? "nhwc" : "nchw", x_skip, y_skip, spare)) {
        return;
    }
    w.call.seed = (unsigned long long)random_int(0, UINT32_MAX) << 20;
    for (int i = 0; i < 4; ++i) {
        int d = order[channels][i];
        w.dim[d] = dim[d];
        w.stride[d] = stride;
        stride *= dim[d];
    }
    dropout_begin(&w.call);
    cudnnCreateTensorDescriptor(&w.desc);
    cudnnSetTensorNdDescriptor(w.desc, dtype, 4, w.dim, w.stride);
    w.x = tensor_input(dtype, 2, (const int[]){1, stride + x_skip}, LAYOUT_NCHW, -4.0, 4.0);
    w.y = tensor_inout(dtype, 2, (const int[]){1, stride + y_skip}, LAYOUT_NCHW, -4.0, 4.0);
    w.dy = tensor_input(dtype, 2, (const int[]){1, stride + y_skip}, LAYOUT_NCHW, -4.0, 4.0);
    w.dx = tensor_inout(dtype, 2, (const int[]){1, stride + x_skip}, LAYOUT_NCHW, -4.0, 4.0);
    cudnnDropoutGetReserveSpaceSize(w.desc, &bytes);
    w.reserve = tensor_bytes((int64_t)bytes + spare);
    want_y = values_of(w.y);
    want_dx = values_of(w.dx);
    if (run_call(train_walk, &w)) {
        unsigned char *mask = malloc((size_t)w.reserve->bytes);
        check_walk("y", &w, w.x, x_skip, w.y, y_skip, want_y);
        check_walk("dx", &w, w.dy, y_skip, w.dx, x_skip, want_dx);
        warpdnnMemcpy(harness_handle, mask, w.reserve->data, (size_t)w.reserve->bytes);
        for (int64_t i = 0; i < 8 * (int64_t)bytes && harness_values; ++i) {
            bool kept = i < stride && dropout_is_kept(w.call.seed, 0, i, w.call.probability);
            if ((mask[i / 8] >> (i % 8) & 1) == kept) continue;
            case_fail("bit %lld of the mask is %d", (long long)i, !kept);
            break;
        }
        free(mask);
    }
    free(want_y);
    free(want_dx);
    cudnnDestroyTensorDescriptor(w.desc);
    dropout_end(&w.call);
}

/* Runs of memory that are those of the mask and others, odd ends, many blocks; channels that are
 * neighbours, in whole runs or not, few and many. */
static void walk_cases(void)
{
    static const int floats[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                 CUDNN_DATA_BFLOAT16};
    static const int flat[][4] = {{1, 1, 1, 1},  {1, 1, 1, 7},    {1, 3, 5, 7},
                                  {2, 8, 8, 16}, {31, 17, 3, 13}, {9, 61, 31, 33}};
    static const int pixels[][4] = {{2, 8, 4, 6},   {1, 64, 16, 16}, {3, 3, 40, 17},
                                    {2, 61, 8, 13}, {5, 1000, 1, 8}, {1, 2, 8, 300},
                                    {3, 200, 7, 7}, {2, 301, 5, 9}};
    for (int i = 0; i < 4; ++i) {
        for (int s = 0; s < 6; ++s) {
            walk_case(floats[i], flat[s], false, 0, 0, s == 2 ? 77 : 0);
            walk_case(floats[i], flat[s], false, 1, 1, 0);
            walk_case(floats[i], flat[s], false, s % 3, 3 - s % 2, s == 3 ? 1 : 0);
            walk_case(floats[i], pixels[s], true, 0, 0, s == 1 ? 9 : 0);
            walk_case(floats[i], pixels[s], true, 1, s % 3, 0);
        }
        for (int s = 6; s < 8; ++s) {
            walk_case(floats[i], pixels[s], true, 0, 0, s == 6 ? 5 : 0);
            walk_case(floats[i], pixels[s], true, s % 3, s, 0);
        }
    }
}

/* clang-format off */
static const char *const symbols[] = {
#define WD_KERNEL(symbol, ...) "wd_" #symbol,
#include "ops/dropout/dropout_vector_kernels.def"
#undef WD_KERNEL
};
/* clang-format on */

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int type = 0; type <= CUDNN_DATA_BFLOAT16; ++type) {
        for (int turn = 0; turn < 24; ++turn) random_case(type, turn);
    }
    walk_cases();
    in_place_case();
    if (argc == 1 && getenv("WARPDNN_ENGINES")) {
        kernels_reached(symbols, sizeof symbols / sizeof symbols[0]);
    }
    return harness_finish();
}
