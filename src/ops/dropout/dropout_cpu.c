/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout on the CPU, for tensors that lie in the order of their dims, of all types: chunks of
 * WD_BLOCK elements, whose random numbers come a strip of Philox blocks at a time. Masks and values
 * are the definition's, bit for bit. */
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "cpu/module/bits.h"
#include "cpu/module/rows.h"
#include "cpu/module/simd.h"
#include "cpu/module/stream.h"
#include "ops/dropout/dropout_draw.h"
#include "ops/engine.h"

enum { FORWARD_X, FORWARD_STATE, FORWARD_Y, FORWARD_RESERVE };
enum { BACKWARD_DY, BACKWARD_RESERVE, BACKWARD_DX };
enum { PROBABILITY };
enum {
    BITS = 8,
    NUMBERS = WD_PHILOX_HALVES,
    STRIP = WD_DRAW_BLOCKS * NUMBERS,
    FORWARD_GRAIN = 8, /* chunks that pay for a thread */
    BACKWARD_GRAIN = 32,
};

struct args {
    const void *x;
    void *y;
    struct wd_random_state *state;
    uint8_t *mask;
    int64_t mask_bytes;
    int64_t count;
    uint64_t threshold;
    double scale;
    int dtype;
    bool stream;
};

static void pack(uint8_t *mask, const uint8_t *kept, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; ++i) mask[i] = wd_bits_gather(kept + BITS * i);
}

static void unpack(uint8_t *kept, const uint8_t *mask, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; ++i) wd_bits_spread(kept + BITS * i, mask[i]);
}

WD_SIMD static void keep_f32(float *restrict y, const float *restrict x,
                             const uint8_t *restrict kept, float scale, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        float value = scale * x[i];
        y[i] = kept[i] ? value : 0.0f;
    }
}

WD_SIMD static void keep_f64(double *restrict y, const double *restrict x,
                             const uint8_t *restrict kept, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        double value = scale * x[i];
        y[i] = kept[i] ? value : 0.0;
    }
}

/* y of elements [first, first + n) by kept[]; NaN where there is none. */
static void put(const struct args *a, int64_t first, int64_t n, const uint8_t *kept)
{
    _Alignas(WD_LINE) double in[WD_BLOCK];
    _Alignas(WD_LINE) double out[WD_BLOCK];
    if (a->dtype == CUDNN_DATA_DOUBLE) {
        if (kept) keep_f64(out, (const double *)a->x + first, kept, a->scale, n);
        for (int64_t i = 0; i < n && !kept; ++i) out[i] = NAN;
        wd_block_store_f64(a->y, a->dtype, first, n, out, a->stream);
    } else {
        float *to = (float *)out;
        const float *x = wd_block_load_f32(a->x, a->dtype, first, n, (float *)in);
        if (kept) keep_f32(to, x, kept, (float)a->scale, n);
        for (int64_t i = 0; i < n && !kept; ++i) to[i] = NAN;
        wd_block_store_f32(a->y, a->dtype, first, n, to, a->stream);
    }
}

static int64_t elements_of(const struct args *a, int64_t chunk)
{
    int64_t left = a->count - chunk * WD_BLOCK;
    return left < 0 ? 0 : left < WD_BLOCK ? left : WD_BLOCK;
}

static void forward_chunks(const void *v, int64_t begin, int64_t end)
{
    const struct args *a = v;
    const bool holds = wd_random_state_holds(a->state);
    const bool none = !holds || a->threshold > UINT32_MAX;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        uint8_t kept[WD_BLOCK] = {0};
        int64_t n = elements_of(a, chunk);
        int64_t byte = chunk * WD_BLOCK / BITS;
        int64_t bytes = a->mask_bytes - byte;
        if (bytes > WD_BLOCK / BITS) bytes = WD_BLOCK / BITS;
        for (int64_t i = 0; i < n && !none; i += STRIP) {
            wd_dropout_draw(kept + i, a->state->seed, a->state->offset,
                            (uint64_t)(chunk * WD_BLOCK + i) / NUMBERS, (uint32_t)a->threshold);
        }
        if (none) n = 0;
        memset(kept + n, 0, (size_t)(WD_BLOCK - n));
        pack(a->mask + byte, kept, bytes);
        n = elements_of(a, chunk);
        if (n > 0) put(a, chunk * WD_BLOCK, n, holds ? kept : NULL);
    }
    if (a->stream) wd_stream_fence();
}

static void advance(const void *v, int64_t begin, int64_t end)
{
    const struct args *a = v;
    (void)begin, (void)end;
    if (wd_random_state_holds(a->state)) a->state->offset += 1;
}

static void backward_chunks(const void *v, int64_t begin, int64_t end)
{
    const struct args *a = v;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        uint8_t kept[WD_BLOCK] = {0};
        int64_t n = elements_of(a, chunk);
        unpack(kept, a->mask + chunk * WD_BLOCK / BITS, (n + BITS - 1) / BITS);
        put(a, chunk * WD_BLOCK, n, kept);
    }
    if (a->stream) wd_stream_fence();
}

static bool lies_in_order(const struct wd_tensor *tensor)
{
    int64_t expected = 1;
    for (int d = tensor->rank - 1; d >= 0; --d) {
        if (tensor->dim[d] > 1 && tensor->stride[d] != expected) return false;
        expected *= tensor->dim[d];
    }
    return true;
}

/* Both slots; the rule has seen to equal types and counts. */
static bool match_pair(const struct wd_problem *problem, int from, int to, struct wd_reason *reason)
{
    const int slots[] = {from, to};
    char text[96];
    for (int i = 0; i < 2; ++i) {
        const struct wd_tensor *t = wd_slot(problem->graph, problem->node, slots[i]);
        WD_NEED(wd_row_takes(t->dtype), reason, NOT_SUPPORTED_DATA_TYPE,
                "elements are %s, not whole bytes", wd_dtype_name(t->dtype));
        WD_NEED(t->dtype == CUDNN_DATA_DOUBLE || wd_problem_acc(problem) == WD_ACC_F32, reason,
                NOT_SUPPORTED_DATA_TYPE, "elements are %s, to be scaled in fp64",
                wd_dtype_name(t->dtype));
        WD_NEED(t->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT,
                "%s is vectorised, %d lanes a unit", i ? "the output" : "the input", t->vect_count);
        WD_NEED(lies_in_order(t), reason, NOT_SUPPORTED_LAYOUT,
                "%s does not lie in the order of its dims: %s", i ? "the output" : "the input",
                wd_tensor_text(t, text, sizeof text));
    }
    return true;
}

static bool match_forward(const struct wd_problem *problem, struct wd_reason *reason)
{
    return match_pair(problem, FORWARD_X, FORWARD_Y, reason);
}

static bool match_backward(const struct wd_problem *problem, struct wd_reason *reason)
{
    return match_pair(problem, BACKWARD_DY, BACKWARD_DX, reason);
}

static struct args make_args(const struct wd_call *call, int from, int to, int reserve)
{
    const struct wd_tensor *y = wd_call_tensor(call, to);
    double probability = call->scalars[PROBABILITY];
    struct args a = {
        .x = wd_call_data(call, from),
        .y = wd_call_data(call, to),
        .mask = wd_call_data(call, reserve),
        .mask_bytes = wd_call_tensor(call, reserve)->dim[0],
        .count = wd_tensor_count(y),
        .threshold = wd_chance_threshold(probability),
        .scale = probability < 1.0 ? 1.0 / (1.0 - probability) : 0.0,
        .dtype = y->dtype,
    };
    a.stream = a.x != a.y && wd_tensor_extent(y) >= WD_STREAM_BYTES;
    return a;
}

static cudnnStatus_t forward(const struct wd_call *call, struct wd_queue *queue)
{
    struct args a = make_args(call, FORWARD_X, FORWARD_Y, FORWARD_RESERVE);
    /* every byte of the reserve space is written, also those behind the last element */
    int64_t chunks = (a.mask_bytes * BITS + WD_BLOCK - 1) / WD_BLOCK;
    a.state = wd_call_data(call, FORWARD_STATE);
    WD_TRY(queue->ops->range(queue, forward_chunks, &a, chunks, FORWARD_GRAIN));
    return queue->ops->range(queue, advance, &a, 1, 1);
}

static cudnnStatus_t backward(const struct wd_call *call, struct wd_queue *queue)
{
    struct args a = make_args(call, BACKWARD_DY, BACKWARD_DX, BACKWARD_RESERVE);
    return queue->ops->range(queue, backward_chunks, &a, (a.count + WD_BLOCK - 1) / WD_BLOCK,
                             BACKWARD_GRAIN);
}

const struct wd_engine wd_engine_dropout_forward_cpu = {
    .name = "dropout_forward_cpu",
    .op = WD_OP_DROPOUT_FORWARD,
    .device = WD_CPU,
    .match = match_forward,
    .emit = forward,
};

const struct wd_engine wd_engine_dropout_backward_cpu = {
    .name = "dropout_backward_cpu",
    .op = WD_OP_DROPOUT_BACKWARD,
    .device = WD_CPU,
    .match = match_backward,
    .emit = backward,
};
