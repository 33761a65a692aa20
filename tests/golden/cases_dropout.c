/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: dropout. The mask is each library's own, so what is kept are the properties that any
 * mask must have: the scale, a plausible rate, the same mask forward and backward, the same mask
 * for the same seed, and exact values where nothing is random (p = 0 and p = 1).
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    cudnnDataType_t type;
    enum gd_layout layout;
} kinds[] = {{"f32", CUDNN_DATA_FLOAT, GD_NCHW},      {"f16", CUDNN_DATA_HALF, GD_NCHW},
             {"bf16", CUDNN_DATA_BFLOAT16, GD_NCHW},  {"f64", CUDNN_DATA_DOUBLE, GD_NCHW},
             {"f32_nhwc", CUDNN_DATA_FLOAT, GD_NHWC}, {"f32_gaps", CUDNN_DATA_FLOAT, GD_GAPS}};

static const int dims[] = {4, 8, 10, 13};

struct dropout {
    cudnnDropoutDescriptor_t d;
    void *states;
    size_t size;
};

static struct dropout make(float p, unsigned long long seed)
{
    struct dropout s = {0};
    gd_status("states_size", lib.DropoutGetStatesSize(gd_handle(), &s.size));
    gd_size("states", s.size);
    s.states = gd_workspace(s.size);
    gd_setup("create", lib.CreateDropoutDescriptor(&s.d));
    gd_status("set", lib.SetDropoutDescriptor(s.d, gd_handle(), p, s.states, s.size, seed));
    return s;
}

/* Zeros among the outputs; every other output must be the input times `scale`. */
static long dropped(const struct gd_tens *x, const struct gd_tens *y, double scale, bool *clean)
{
    long zeros = 0;
    double u = gd_roundoff(x->type);
    for (size_t i = 0; i < x->count; i++) {
        double a = gd_at(x, i) * scale, b = gd_at(y, i);
        if (b == 0) zeros++;
        else if (!(fabs(a - b) <= 4 * u * fabs(a))) *clean = false;
    }
    return zeros;
}

static bool same(const struct gd_tens *a, const struct gd_tens *b)
{
    for (size_t i = 0; i < a->count; i++)
        if ((gd_at(a, i) == 0) != (gd_at(b, i) == 0)) return false;
    return true;
}

static void forward(const struct dropout *s, struct gd_tens *x, struct gd_tens *y, void *r,
                    size_t size, const char *key)
{
    if (gd_ran(key, lib.DropoutForward(gd_handle(), s->d, x->desc, x->p, y->desc, y->p, r, size)))
        gd_fetch(y);
}

static void statistics(void)
{
    static const float rates[] = {0.1f, 0.25f, 0.5f, 0.9f};
    for (int k = 0; k < GD_COUNT(kinds); k++) {
        for (int i = 0; i < GD_COUNT(rates); i++) {
            if ((k && i != 2) || !gd_case("dropout/%s/p%g", kinds[k].name, rates[i])) continue;
            struct dropout s = make(rates[i], 1234);
            struct gd_tens *x = gd_tens("x", kinds[k].type, kinds[k].layout, 4, dims);
            struct gd_tens *y = gd_tens("y", kinds[k].type, kinds[k].layout, 4, dims);
            struct gd_tens *y2 = gd_tens("y2", kinds[k].type, kinds[k].layout, 4, dims);
            struct gd_tens *y3 = gd_tens("y3", kinds[k].type, kinds[k].layout, 4, dims);
            struct gd_tens *dx = gd_tens("dx", kinds[k].type, kinds[k].layout, 4, dims);
            size_t size = 0;
            gd_status("reserve_size", lib.DropoutGetReserveSpaceSize(x->desc, &size));
            gd_size("reserve", size);
            void *r = gd_workspace(size), *r2 = gd_workspace(size);
            gd_fill(x, GD_POS);
            forward(&s, x, y, r, size, "fwd");
            bool clean = true;
            double n = (double)x->count, scale = 1 / (1 - (double)rates[i]);
            long zeros = dropped(x, y, scale, &clean);
            gd_note("zeros", zeros);
            gd_int("kept_are_scaled", clean);
            gd_int("rate_is_plausible", fabs((double)zeros - n * rates[i]) <
                                            6 * sqrt(n * rates[i] * (1 - rates[i])) + 1);
            if (gd_ran("bwd", lib.DropoutBackward(gd_handle(), s.d, x->desc, x->p, dx->desc, dx->p,
                                                  r, size))) {
                gd_fetch(dx);
                gd_int("backward_same_mask", same(y, dx));
                clean = true;
                dropped(x, dx, scale, &clean);
                gd_int("backward_scaled", clean);
            }
            forward(&s, x, y2, r2, size, "fwd_again");
            gd_int("next_mask_differs", !same(y, y2));
            gd_status("reset",
                      lib.SetDropoutDescriptor(s.d, gd_handle(), rates[i], s.states, s.size, 1234));
            forward(&s, x, y3, r2, size, "fwd_reset");
            gd_int("same_seed_same_mask", same(y, y3));
            lib.DestroyDropoutDescriptor(s.d);
            gd_end();
        }
        for (int one = 0; one < 2; one++) {
            if (!gd_case("dropout/%s/exact_p%d", kinds[k].name, one)) continue;
            struct dropout s = make((float)one, 7);
            struct gd_tens *x = gd_tens("x", kinds[k].type, kinds[k].layout, 4, dims);
            struct gd_tens *y = gd_tens("y", kinds[k].type, kinds[k].layout, 4, dims);
            struct gd_tens *dx = gd_tens("dx", kinds[k].type, kinds[k].layout, 4, dims);
            size_t size = 0;
            gd_setup("reserve_size", lib.DropoutGetReserveSpaceSize(x->desc, &size));
            void *r = gd_workspace(size);
            gd_fill(x, GD_SPECIAL);
            if (gd_ran("fwd",
                       lib.DropoutForward(gd_handle(), s.d, x->desc, x->p, y->desc, y->p, r, size)))
                gd_out(y, gd_exact);
            if (gd_ran("bwd", lib.DropoutBackward(gd_handle(), s.d, x->desc, x->p, dx->desc, dx->p,
                                                  r, size)))
                gd_out(dx, gd_exact);
            lib.DestroyDropoutDescriptor(s.d);
            gd_end();
        }
    }
}

static void restore(void)
{
    if (gd_case("dropout/restore")) {
        struct dropout s = make(0.5f, 99), t = {0};
        struct gd_tens *x = gd_tens("x", CUDNN_DATA_FLOAT, GD_NCHW, 4, dims);
        struct gd_tens *y = gd_tens("y", CUDNN_DATA_FLOAT, GD_NCHW, 4, dims);
        struct gd_tens *y2 = gd_tens("y2", CUDNN_DATA_FLOAT, GD_NCHW, 4, dims);
        struct gd_tens *y3 = gd_tens("y3", CUDNN_DATA_FLOAT, GD_NCHW, 4, dims);
        size_t size = 0;
        float p = -7;
        void *states = NULL;
        unsigned long long seed = 0;
        gd_setup("reserve_size", lib.DropoutGetReserveSpaceSize(x->desc, &size));
        void *r = gd_workspace(size), *copy = gd_workspace(s.size);
        static unsigned char image[4 << 20];
        gd_fill(x, GD_POS);
        forward(&s, x, y, r, size, "first");
        /* The states after the first mask, kept aside; then the second mask twice. */
        if (s.size <= sizeof image) {
            gd_download(image, s.states, s.size);
            gd_upload(copy, image, s.size);
        }
        forward(&s, x, y2, r, size, "second");
        gd_setup("create2", lib.CreateDropoutDescriptor(&t.d));
        gd_status("restore",
                  lib.RestoreDropoutDescriptor(t.d, gd_handle(), 0.5f, copy, s.size, 99));
        forward(&t, x, y3, r, size, "restored");
        gd_int("second_differs", !same(y, y2));
        gd_int("restored_is_second", same(y2, y3));
        gd_status("get", lib.GetDropoutDescriptor(t.d, gd_handle(), &p, &states, &seed));
        gd_real("p", p, 1e-7);
        gd_int("states_is_copy", states == copy);
        gd_int("seed", (long long)seed);
        lib.DestroyDropoutDescriptor(s.d);
        lib.DestroyDropoutDescriptor(t.d);
        gd_end();
    }
    if (gd_case("dropout/fresh")) {
        cudnnDropoutDescriptor_t d = NULL;
        float p = -7;
        void *states = &p;
        unsigned long long seed = 77;
        gd_setup("create", lib.CreateDropoutDescriptor(&d));
        gd_status("get", lib.GetDropoutDescriptor(d, gd_handle(), &p, &states, &seed));
        gd_real("p", p, 1e-7);
        gd_note("states_null", states == NULL);
        gd_note("seed", (long long)seed);
        lib.DestroyDropoutDescriptor(d);
        gd_end();
    }
}

static void invalid(void)
{
    static const float rates[] = {-0.1f, 1.1f, NAN, 0.5f};
    for (int i = 0; i < GD_COUNT(rates); i++) {
        for (int form = 0; form < 4; form++) {
            if (!gd_case("dropout/invalid/p%g/form%d", rates[i], form)) continue;
            cudnnDropoutDescriptor_t d = NULL;
            size_t size = 0, reserve = 0;
            gd_setup("states_size", lib.DropoutGetStatesSize(gd_handle(), &size));
            gd_setup("create", lib.CreateDropoutDescriptor(&d));
            void *states = form == 2 || form == 3 ? NULL : gd_workspace(size);
            size_t given = form == 1 ? size - 1 : form == 3 ? 0 : size;
            gd_status("set", lib.SetDropoutDescriptor(d, gd_handle(), rates[i], states, given, 1));
            gd_status("restore",
                      lib.RestoreDropoutDescriptor(d, gd_handle(), rates[i], states, given, 1));
            if (i == 3 && form == 0) {
                struct gd_tens *x = gd_tens("x", CUDNN_DATA_FLOAT, GD_NCHW, 4, dims);
                struct gd_tens *y = gd_tens("y", CUDNN_DATA_FLOAT, GD_NCHW, 4, DIMS(4, 8, 10, 12));
                gd_setup("reserve_size", lib.DropoutGetReserveSpaceSize(x->desc, &reserve));
                void *r = gd_workspace(reserve);
                gd_fill(x, GD_POS);
                gd_status("dims", lib.DropoutForward(gd_handle(), d, x->desc, x->p, y->desc, y->p,
                                                     r, reserve));
                gd_status("small_reserve", lib.DropoutForward(gd_handle(), d, x->desc, x->p,
                                                              x->desc, x->p, r, reserve - 1));
                gd_status("no_reserve", lib.DropoutForward(gd_handle(), d, x->desc, x->p, x->desc,
                                                           x->p, NULL, 0));
            }
            lib.DestroyDropoutDescriptor(d);
            gd_end();
        }
    }
    if (gd_case("dropout/handle/streams")) {
        cudaStream_t stream = (cudaStream_t)1;
        gd_status("get", lib.GetStream(gd_handle(), &stream));
        gd_int("is_null", stream == NULL);
        gd_status("set", lib.SetStream(gd_handle(), NULL));
        gd_end();
    }
}

void cases_dropout(void)
{
    statistics();
    restore();
    invalid();
}
