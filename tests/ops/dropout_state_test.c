/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout's state: saved and restored, never set up, advanced by graphs that are replayed; and that the
 * mask is random: its rate, its independence between neighbours, calls and seeds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dropout_case.h"

/* A state copied away and back, or restored under another descriptor, goes on where it was. */
static void restore_case(void)
{
    struct dropout_call c = {.probability = 0.5f, .seed = 0x123456789abcdefu};
    struct dropout_call other = {0};
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
    dropout_begin(&c);
    bytes = (size_t)dim[0] * (size_t)dim[1] * sizeof(float);
    c.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    c.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, true);
    c.reserve = dropout_reserve(c.x->desc);
    reserve = c.reserve->data;
    x = malloc(bytes);
    for (int i = 0; i < 4; ++i) y[i] = malloc(bytes);
    for (int i = 0; i < dim[0] * dim[1]; ++i) x[i] = 1.0f + (float)i;
    warpdnnMemcpy(harness_handle, c.x->whole->data, x, bytes);
    if (c.state_bytes > sizeof saved) case_fail("a state of %zu bytes", c.state_bytes);
    if (dropout_set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    if (dropout_forward(&c) != CUDNN_STATUS_SUCCESS) case_fail("the first call fails");
    warpdnnMemcpy(harness_handle, saved, c.states, c.state_bytes);
    for (int i = 0; i < 2; ++i) {
        if (dropout_forward(&c) != CUDNN_STATUS_SUCCESS) case_fail("call %d fails", i + 1);
        warpdnnMemcpy(harness_handle, y[i], c.y->whole->data, bytes);
    }
    /* in other memory, under a fresh descriptor and with a seed that has no effect */
    dropout_begin(&other);
    other.x = c.x;
    other.y = c.y;
    other.reserve = c.reserve;
    warpdnnMemcpy(harness_handle, other.states, saved, c.state_bytes);
    if (cudnnRestoreDropoutDescriptor(other.dropout, harness_handle, 0.5f, other.states,
                                      c.state_bytes, 5) != CUDNN_STATUS_SUCCESS) {
        case_fail("restore fails");
    }
    for (int i = 2; i < 4; ++i) {
        if (dropout_forward(&other) != CUDNN_STATUS_SUCCESS) case_fail("call %d fails", i + 1);
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
    dropout_end(&c);
}

/* A state that was never set up shows. */
static void unset_case(void)
{
    struct dropout_call c = {.probability = 0.5f};
    int dim[2] = {3, 11};
    float y[33];
    if (!case_begin("dropout/state_never_set")) return;
    dropout_begin(&c);
    c.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    c.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, false);
    c.reserve = dropout_reserve(c.x->desc);
    warpdnnMemset(harness_handle, c.states, 0, c.state_bytes);
    cudnnRestoreDropoutDescriptor(c.dropout, harness_handle, 0.5f, c.states, c.state_bytes, 1);
    if (dropout_forward(&c) != CUDNN_STATUS_SUCCESS) case_fail("forward fails");
    warpdnnMemcpy(harness_handle, y, c.y->whole->data, sizeof y);
    for (int i = 0; i < 33; ++i) {
        if (!isnan(y[i])) case_fail("y[%d] is %g", i, (double)y[i]);
    }
    dropout_end(&c);
}

/* Two forwards in one captured graph, and another such graph that is replayed in between: the state
 * advances on the device, so that every forward of every replay has a mask of its own. */
enum { REPLAYED = 1000, REPLAYS = 3 };

struct replayed {
    struct dropout_call call;
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

/* The elements that forward number `done` left: what is kept is due to the seed. */
static void look_at(const struct replayed *r, int which)
{
    float y[REPLAYED];
    warpdnnMemcpy(harness_handle, y, r->y[which], sizeof y);
    for (int i = 0; i < REPLAYED && harness_values; ++i) {
        bool kept = dropout_is_kept(r->call.seed, (uint64_t)r->done, i, r->call.probability);
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
    dropout_begin(&r.call);
    r.call.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    r.call.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, true);
    warpdnnMalloc(harness_handle, REPLAYED * sizeof(float), &r.y[1]);
    r.y[0] = r.call.y->whole->data;
    for (int i = 0; i < 2; ++i) r.reserve[i] = dropout_reserve(r.call.x->desc);
    for (int i = 0; i < REPLAYED; ++i) ones[i] = 1.0f;
    warpdnnMemcpy(harness_handle, r.call.x->whole->data, ones, sizeof ones);
    if (dropout_set(&r.call) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    replay_call(forward_twice, &r, REPLAYS, look_and_replay_another);
    /* and calls that are not captured go on where the graphs stopped */
    if (forward_twice(&r) != CUDNN_STATUS_SUCCESS) case_fail("forward fails");
    look_at_both(&r, 0);
    if (r.done != 6 * REPLAYS + 2) case_fail("%d forwards were done", r.done);
    warpdnnFree(harness_handle, r.y[1]);
    dropout_end(&r.call);
}

enum { MANY = 1 << 20 };

/* The kept elements of one forward call on MANY ones, a byte each. */
static void draw(struct dropout_call *c, unsigned char *kept)
{
    float *y = malloc(MANY * sizeof *y);
    if (dropout_forward(c) != CUDNN_STATUS_SUCCESS) case_fail("forward fails");
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
    struct dropout_call c = {.probability = probability, .seed = 42};
    int dim[2] = {1, MANY};
    double keep = 1.0 - (double)probability;
    unsigned char *mask[4];
    if (!case_begin("dropout/statistics/%g", (double)probability)) return;
    dropout_begin(&c);
    for (int i = 0; i < 4; ++i) mask[i] = malloc(MANY);
    c.x = part_input(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, 1.0, 2.0);
    c.y = part_output(CUDNN_DATA_FLOAT, 2, dim, LAYOUT_NCHW, NULL, false);
    c.reserve = dropout_reserve(c.x->desc);
    {
        float *ones = malloc(MANY * sizeof *ones);
        for (int i = 0; i < MANY; ++i) ones[i] = 1.0f;
        warpdnnMemcpy(harness_handle, c.x->whole->data, ones, MANY * sizeof *ones);
        free(ones);
    }
    if (dropout_set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    draw(&c, mask[0]);
    draw(&c, mask[1]);
    if (dropout_set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
    draw(&c, mask[2]);
    c.seed = 43;
    if (dropout_set(&c) != CUDNN_STATUS_SUCCESS) case_fail("set fails");
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
    dropout_end(&c);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    restore_case();
    unset_case();
    replay_case();
    statistics_case(0.5f);
    statistics_case(0.3f);
    statistics_case(0.9f);
    return harness_finish();
}
