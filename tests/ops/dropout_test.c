/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout: the mask that a seed gives, element by element from a generator written out here (so that
 * every engine on every device is held to the same bits), values and gradients, probabilities 0 and
 * 1, every type and layout, states that are saved and restored; and that the mask is random: its
 * rate, its independence between neighbours, calls and seeds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "part.h"

/* Philox4x32-10 once more, from the paper: the test shares no header with the library. */
static uint32_t number_of(uint64_t seed, uint64_t call, uint64_t index)
{
    uint32_t c[4] = {(uint32_t)(index / 4), (uint32_t)(index / 4 >> 32), (uint32_t)call,
                     (uint32_t)(call >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; ++round) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53u;
        uint64_t b = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ key[1], (uint32_t)a};
        memcpy(c, next, sizeof c);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return c[index % 4];
}

static bool is_kept(uint64_t seed, uint64_t call, int64_t index, float probability)
{
    return (double)number_of(seed, call, (uint64_t)index) >= (double)probability * 4294967296.0;
}

struct call {
    cudnnDropoutDescriptor_t dropout;
    float probability;
    unsigned long long seed;
    void *states;
    size_t state_bytes;
    struct part *x, *y, *dy, *dx;
    struct tensor *reserve;
    int forwards; /* how many before the one that counts */
};

static cudnnStatus_t set(const struct call *c)
{
    return cudnnSetDropoutDescriptor(c->dropout, harness_handle, c->probability, c->states,
                                     c->state_bytes, c->seed);
}

static cudnnStatus_t forward(const struct call *c)
{
    return cudnnDropoutForward(harness_handle, c->dropout, c->x->desc, c->x->whole->data,
                               c->y->desc, c->y->whole->data, c->reserve->data,
                               (size_t)c->reserve->bytes);
}

/* The state is set up anew in the call, so that each run of it gives the same. */
static cudnnStatus_t train(void *context)
{
    const struct call *c = context;
    cudnnStatus_t status = set(c);
    for (int i = 0; i <= c->forwards && status == CUDNN_STATUS_SUCCESS; ++i) status = forward(c);
    if (status != CUDNN_STATUS_SUCCESS || !c->dx) return status;
    return cudnnDropoutBackward(harness_handle, c->dropout, c->dy->desc, c->dy->whole->data,
                                c->dx->desc, c->dx->whole->data, c->reserve->data,
                                (size_t)c->reserve->bytes);
}

static void call_begin(struct call *c)
{
    cudnnCreateDropoutDescriptor(&c->dropout);
    cudnnDropoutGetStatesSize(harness_handle, &c->state_bytes);
    warpdnnMalloc(harness_handle, c->state_bytes, &c->states);
}

static void call_end(struct call *c)
{
    cudnnDestroyDropoutDescriptor(c->dropout);
    warpdnnFree(harness_handle, c->states);
    parts_free();
    case_end();
}

static struct tensor *reserve_for(cudnnTensorDescriptor_t desc)
{
    size_t bytes = 0;
    if (cudnnDropoutGetReserveSpaceSize(desc, &bytes) != CUDNN_STATUS_SUCCESS) {
        case_fail("no reserve space size");
    }
    return tensor_bytes((int64_t)bytes);
}

/* `to` must hold `from` / (1 - p) where kept; `want` holds to's values before. */
static void check_dropped(const char *name, const struct call *c, const struct part *from,
                          const struct part *to, double *want)
{
    double *magnitude = calloc((size_t)to->whole->count, sizeof *magnitude);
    double scale = c->probability < 1.0f ? 1.0 / (1.0 - (double)c->probability) : 0.0;
    bool wide = to->whole->dtype == CUDNN_DATA_DOUBLE || to->whole->dtype == CUDNN_DATA_INT32;
    for (int64_t i = 0; i < to->count; ++i) {
        int64_t index = part_index(to, i);
        want[index] = 0.0;
        if (!is_kept(c->seed, (uint64_t)c->forwards, i, c->probability)) continue;
        want[index] = scale * from->whole->value[part_index(from, i)];
        if (isfinite(want[index])) magnitude[index] = fabs(want[index]);
    }
    check_values(name, to->whole, want, NULL, magnitude,
                 wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(magnitude);
}

/* The mask itself: bit i % 8 of byte i / 8, nothing behind the last element. */
static void check_mask(const struct call *c)
{
    unsigned char *mask = malloc((size_t)c->reserve->bytes);
    warpdnnMemcpy(harness_handle, mask, c->reserve->data, (size_t)c->reserve->bytes);
    for (int64_t i = 0; i < 8 * c->reserve->bytes && harness_values; ++i) {
        bool kept = i < c->x->count && is_kept(c->seed, (uint64_t)c->forwards, i, c->probability);
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
    struct call c = {.probability = probabilities[turn % 8]};
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
    call_begin(&c);
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
    c.reserve = reserve_for(c.x->desc);
    want_y = part_expected(c.y);
    want_dx = part_expected(c.dx);
    if (run_call(train, &c)) {
        check_dropped("y", &c, c.x, c.y, want_y);
        check_dropped("dx", &c, c.dy, c.dx, want_dx);
        check_mask(&c);
    }
    free(want_y);
    free(want_dx);
    call_end(&c);
}

static void in_place_case(void)
{
    struct call c = {.probability = 0.4f, .seed = 77};
    int dim[3] = {3, 5, 7};
    double *x;
    double *want;
    if (!case_begin("dropout/in_place")) return;
    call_begin(&c);
    c.x = c.y = part_output(CUDNN_DATA_FLOAT, 3, dim, LAYOUT_NHWC, NULL, false);
    c.reserve = reserve_for(c.x->desc);
    x = part_expected(c.x);
    want = part_expected(c.x);
    if (run_call(train, &c)) {
        for (int64_t i = 0; i < c.x->count; ++i) {
            want[i] = is_kept(c.seed, 0, i, c.probability) ? x[i] / (1.0 - (double)0.4f) : 0.0;
            x[i] = fabs(want[i]);
        }
        check_values("y", c.y->whole, want, NULL, x, CUDNN_DATA_FLOAT);
    }
    free(x);
    free(want);
    call_end(&c);
}

/* A state copied away and back, or restored under another descriptor, goes on where it was. */
static void restore_case(void)
{
    struct call c = {.probability = 0.5f, .seed = 0x123456789abcdefu};
    struct call other = {0};
    int dim[2] = {4, 999};
    unsigned char saved[256];
    float drop = 0;
    void *states = NULL;
    unsigned long long seed = 0;
    size_t bytes;
    void *reserve;
    float *x;
    float *y[4];
    if (!case_begin("dropout/restore")) return;
    call_begin(&c);
    bytes = (size_t)dim[0] * (size_t)dim[1] * sizeof(float);
    c.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    c.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, true);
    c.reserve = reserve_for(c.x->desc);
    reserve = c.reserve->data;
    x = malloc(bytes);
    for (int i = 0; i < 4; ++i) y[i] = malloc(bytes);
    for (int i = 0; i < dim[0] * dim[1]; ++i) x[i] = 1.0f + (float)i;
    warpdnnMemcpy(harness_handle, c.x->whole->data, x, bytes);
    if (c.state_bytes > sizeof saved) case_fail("a state of %zu bytes", c.state_bytes);
    if (set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    if (forward(&c) != CUDNN_STATUS_SUCCESS) case_fail("the first call fails");
    warpdnnMemcpy(harness_handle, saved, c.states, c.state_bytes);
    for (int i = 0; i < 2; ++i) {
        if (forward(&c) != CUDNN_STATUS_SUCCESS) case_fail("call %d fails", i + 1);
        warpdnnMemcpy(harness_handle, y[i], c.y->whole->data, bytes);
    }
    /* in other memory, under a fresh descriptor and with a seed that has no effect */
    call_begin(&other);
    other.x = c.x;
    other.y = c.y;
    other.reserve = c.reserve;
    warpdnnMemcpy(harness_handle, other.states, saved, c.state_bytes);
    if (cudnnRestoreDropoutDescriptor(other.dropout, harness_handle, 0.5f, other.states,
                                      c.state_bytes, 5) != CUDNN_STATUS_SUCCESS) {
        case_fail("restore fails");
    }
    for (int i = 2; i < 4; ++i) {
        if (forward(&other) != CUDNN_STATUS_SUCCESS) case_fail("call %d fails", i + 1);
        warpdnnMemcpy(harness_handle, y[i], c.y->whole->data, bytes);
    }
    if (memcmp(y[0], y[2], bytes) || memcmp(y[1], y[3], bytes)) {
        case_fail("a restored state does not repeat what followed it");
    }
    if (harness_values && !memcmp(y[0], y[1], bytes)) case_fail("two calls drop the same elements");
    if (cudnnGetDropoutDescriptor(other.dropout, harness_handle, &drop, &states, &seed) !=
            CUDNN_STATUS_SUCCESS ||
        drop != 0.5f || states != other.states || seed != 5) {
        case_fail("the descriptor answers %g, %p, %llu", (double)drop, states, seed);
    }
    /* without states the probability alone changes */
    if (cudnnSetDropoutDescriptor(other.dropout, harness_handle, 0.25f, NULL, 0, 9) !=
            CUDNN_STATUS_SUCCESS ||
        cudnnGetDropoutDescriptor(other.dropout, harness_handle, &drop, &states, &seed) !=
            CUDNN_STATUS_SUCCESS ||
        drop != 0.25f || states != other.states || seed != 5) {
        case_fail("after a set without states: %g, %p, %llu", (double)drop, states, seed);
    }
    warpdnnMemcpy(harness_handle, reserve, saved, 4); /* the reserve is ours to write */
    cudnnDestroyDropoutDescriptor(other.dropout);
    warpdnnFree(harness_handle, other.states);
    for (int i = 0; i < 4; ++i) free(y[i]);
    free(x);
    call_end(&c);
}

/* A state that was never set up shows. */
static void unset_case(void)
{
    struct call c = {.probability = 0.5f};
    int dim[2] = {3, 11};
    float y[33];
    if (!case_begin("dropout/state_never_set")) return;
    call_begin(&c);
    c.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    c.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, false);
    c.reserve = reserve_for(c.x->desc);
    warpdnnMemset(harness_handle, c.states, 0, c.state_bytes);
    cudnnRestoreDropoutDescriptor(c.dropout, harness_handle, 0.5f, c.states, c.state_bytes, 1);
    if (forward(&c) != CUDNN_STATUS_SUCCESS) case_fail("forward fails");
    warpdnnMemcpy(harness_handle, y, c.y->whole->data, sizeof y);
    for (int i = 0; i < 33; ++i) {
        if (!isnan(y[i])) case_fail("y[%d] is %g", i, (double)y[i]);
    }
    call_end(&c);
}

/* Two forwards in one captured graph, and another such graph that is replayed in between: the state
 * advances on the device, so that every forward of every replay has a mask of its own. */
enum { REPLAYED = 1000, REPLAYS = 3 };

struct replayed {
    struct call call;
    void *y[2];
    struct tensor *reserve[2];
    int done; /* forwards so far, of whichever graph */
};

static cudnnStatus_t forward_twice(void *context)
{
    const struct replayed *r = context;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < 2 && status == CUDNN_STATUS_SUCCESS; ++i) {
        status = cudnnDropoutForward(harness_handle, r->call.dropout, r->call.x->desc,
                                     r->call.x->whole->data, r->call.y->desc, r->y[i],
                                     r->reserve[i]->data, (size_t)r->reserve[i]->bytes);
    }
    return status;
}

/* The elements that forward number `done` left, by the generator above. */
static void look_at(const struct replayed *r, int which)
{
    float y[REPLAYED];
    warpdnnMemcpy(harness_handle, y, r->y[which], sizeof y);
    for (int i = 0; i < REPLAYED && harness_values; ++i) {
        bool kept = is_kept(r->call.seed, (uint64_t)r->done, i, r->call.probability);
        if ((y[i] != 0.0f) == kept) continue;
        case_fail("element %d of forward %d is %g", i, r->done, (double)y[i]);
        return;
    }
}

static void look_at_both(void *context, int replay)
{
    struct replayed *r = context;
    (void)replay;
    for (int i = 0; i < 2; ++i) {
        look_at(r, i);
        r->done += 1;
    }
}

static void look_and_replay_another(void *context, int replay)
{
    look_at_both(context, replay);
    replay_call(forward_twice, context, 2, look_at_both);
}

static void replay_case(void)
{
    struct replayed r = {.call = {.probability = 0.5f, .seed = 0xfeedface12345678u}};
    int dim[2] = {1, REPLAYED};
    float ones[REPLAYED];
    if (!harness_on_gpu || !case_begin("dropout/replays")) return;
    call_begin(&r.call);
    r.call.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    r.call.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, true);
    warpdnnMalloc(harness_handle, REPLAYED * sizeof(float), &r.y[1]);
    r.y[0] = r.call.y->whole->data;
    for (int i = 0; i < 2; ++i) r.reserve[i] = reserve_for(r.call.x->desc);
    for (int i = 0; i < REPLAYED; ++i) ones[i] = 1.0f;
    warpdnnMemcpy(harness_handle, r.call.x->whole->data, ones, sizeof ones);
    if (set(&r.call) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    replay_call(forward_twice, &r, REPLAYS, look_and_replay_another);
    /* and calls that are not captured go on where the graphs stopped */
    if (forward_twice(&r) != CUDNN_STATUS_SUCCESS) case_fail("forward fails");
    look_at_both(&r, 0);
    if (r.done != 6 * REPLAYS + 2) case_fail("%d forwards were done", r.done);
    warpdnnFree(harness_handle, r.y[1]);
    call_end(&r.call);
}

enum { MANY = 1 << 20 };

/* The kept elements of one forward call on MANY ones, a byte each. */
static void draw(struct call *c, unsigned char *kept)
{
    float *y = malloc(MANY * sizeof *y);
    if (forward(c) != CUDNN_STATUS_SUCCESS) case_fail("forward fails");
    warpdnnMemcpy(harness_handle, y, c->y->whole->data, MANY * sizeof *y);
    for (int i = 0; i < MANY; ++i) kept[i] = y[i] != 0.0f;
    free(y);
}

/* Fails unless `hits` of `n` trials of probability p is within 4 standard deviations. */
static void expect_rate(const char *what, double hits, double n, double p)
{
    double sigma = sqrt(n * p * (1.0 - p));
    if (fabs(hits - n * p) <= 4.0 * sigma || !harness_values) return;
    case_fail("%s: %.0f of %.0f, expected %.0f, %.1f standard deviations off", what, hits, n, n * p,
              (hits - n * p) / sigma);
}

/* How often two elements agree, where they are independent: both kept or both dropped. */
static void expect_independent(const char *what, const unsigned char *a, const unsigned char *b,
                               int64_t n, double keep)
{
    int64_t agree = 0;
    for (int64_t i = 0; i < n; ++i) agree += a[i] == b[i];
    expect_rate(what, (double)agree, (double)n, keep * keep + (1.0 - keep) * (1.0 - keep));
}

static void statistics_case(float probability)
{
    static const int distances[] = {1, 2, 3, 4, 7, 8, 32, 1024};
    struct call c = {.probability = probability, .seed = 42};
    int dim[2] = {1, MANY};
    double keep = 1.0 - (double)probability;
    unsigned char *mask[4];
    if (!case_begin("dropout/statistics/%g", (double)probability)) return;
    call_begin(&c);
    for (int i = 0; i < 4; ++i) mask[i] = malloc(MANY);
    c.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    c.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, false);
    c.reserve = reserve_for(c.x->desc);
    {
        float *ones = malloc(MANY * sizeof *ones);
        for (int i = 0; i < MANY; ++i) ones[i] = 1.0f;
        warpdnnMemcpy(harness_handle, c.x->whole->data, ones, MANY * sizeof *ones);
        free(ones);
    }
    if (set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    draw(&c, mask[0]);
    draw(&c, mask[1]);
    if (set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    draw(&c, mask[2]);
    c.seed = 43;
    if (set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    draw(&c, mask[3]);
    if (memcmp(mask[0], mask[2], MANY)) case_fail("one seed, two masks");
    for (int i = 0; i < 4; ++i) {
        double kept = 0.0;
        for (int k = 0; k < MANY; ++k) kept += mask[i][k];
        expect_rate("kept", kept, MANY, keep);
    }
    expect_independent("consecutive calls", mask[0], mask[1], MANY, keep);
    expect_independent("neighbouring seeds", mask[0], mask[3], MANY, keep);
    for (unsigned i = 0; i < sizeof distances / sizeof distances[0]; ++i) {
        expect_independent("neighbours", mask[0], mask[0] + distances[i], MANY - distances[i],
                           keep);
    }
    for (int i = 0; i < 4; ++i) free(mask[i]);
    call_end(&c);
}

/* Packed tensors, with channels fastest or not, that begin some elements behind aligned memory. */
struct walk {
    struct call call;
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
    cudnnStatus_t status = set(&w->call);
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
        if (!is_kept(w->call.seed, 0, i, w->call.probability)) continue;
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
    call_begin(&w.call);
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
            bool kept = i < stride && is_kept(w.call.seed, 0, i, w.call.probability);
            if ((mask[i / 8] >> (i % 8) & 1) == kept) continue;
            case_fail("bit %lld of the mask is %d", (long long)i, !kept);
            break;
        }
        free(mask);
    }
    free(want_y);
    free(want_dx);
    cudnnDestroyTensorDescriptor(w.desc);
    call_end(&w.call);
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
                                    {2, 61, 8, 13}, {5, 1000, 1, 8}, {1, 2, 8, 300}};
    for (int i = 0; i < 4; ++i) {
        for (int s = 0; s < 6; ++s) {
            walk_case(floats[i], flat[s], false, 0, 0, s == 2 ? 77 : 0);
            walk_case(floats[i], flat[s], false, 1, 1, 0);
            walk_case(floats[i], flat[s], false, s % 3, 3 - s % 2, s == 3 ? 1 : 0);
            walk_case(floats[i], pixels[s], true, 0, 0, s == 1 ? 9 : 0);
            walk_case(floats[i], pixels[s], true, 1, s % 3, 0);
        }
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int type = 0; type <= CUDNN_DATA_BFLOAT16; ++type) {
        for (int turn = 0; turn < 24; ++turn) random_case(type, turn);
    }
    walk_cases();
    in_place_case();
    restore_case();
    unset_case();
    replay_case();
    statistics_case(0.5f);
    statistics_case(0.3f);
    statistics_case(0.9f);
    return harness_finish();
}
