/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of cpu/module/vmath.h against libm in double, on every float that is a
 * multiple of a prime as a bit pattern, and on the special values: errors in units in the last
 * place. */
#include <stdio.h>
#include <stdlib.h>

#include "cpu/module/vmath.h"

enum { STEP = 1009, BATCH = 4096 };

enum function { EXP, NEGATIVE, DECAY, EXPM1, SIGMOID, TANH, LOG1P, SOFTPLUS, LOG, ERF, FUNCTIONS };

static const struct {
    const char *name;
    double worst; /* units in the last place that are allowed */
    float low;
    float high;
} facts[FUNCTIONS] = {
    [EXP] = {"exp", 1.1, -INFINITY, INFINITY},
    [NEGATIVE] = {"exp_negative", 1.1, -INFINITY, 0.0f},
    [DECAY] = {"exp_decay", 1.1, -87.3f, 0.0f},
    [EXPM1] = {"expm1_negative", 1.1, -INFINITY, 0.0f},
    [SIGMOID] = {"sigmoid", 2.5, -INFINITY, INFINITY},
    [TANH] = {"tanh", 2.0, -INFINITY, INFINITY},
    [LOG1P] = {"log1p_unit", 2.5, 0.0f, 1.0f},
    [SOFTPLUS] = {"softplus", 3.0, -INFINITY, INFINITY},
    [LOG] = {"log", 1.1, -INFINITY, INFINITY},
    [ERF] = {"erf", 2.0, -INFINITY, INFINITY},
};

static double exactly(enum function f, double x)
{
    switch (f) {
    case EXP:
    case NEGATIVE:
    case DECAY: return exp(x);
    case EXPM1: return expm1(x);
    case SIGMOID: return x >= 0.0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x));
    case TANH: return tanh(x);
    case LOG1P: return log1p(x);
    case SOFTPLUS: return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
    case LOG: return log(x);
    default: return erf(x);
    }
}

/* As engines use them: in loops that the compiler vectorises. */
static void compute(enum function f, const float *x, float *y, int n)
{
    switch (f) {
    case EXP:
        for (int i = 0; i < n; ++i) y[i] = wd_exp_f32(x[i]);
        return;
    case NEGATIVE:
        for (int i = 0; i < n; ++i) y[i] = wd_exp_negative_f32(x[i]);
        return;
    case DECAY:
        for (int i = 0; i < n; ++i) y[i] = wd_exp_decay_f32(x[i]);
        return;
    case EXPM1:
        for (int i = 0; i < n; ++i) y[i] = wd_expm1_negative_f32(x[i]);
        return;
    case SIGMOID:
        for (int i = 0; i < n; ++i) y[i] = wd_sigmoid_f32(x[i]);
        return;
    case TANH:
        for (int i = 0; i < n; ++i) y[i] = wd_tanh_f32(x[i]);
        return;
    case LOG1P:
        for (int i = 0; i < n; ++i) y[i] = wd_log1p_unit_f32(x[i]);
        return;
    case SOFTPLUS:
        for (int i = 0; i < n; ++i) y[i] = wd_softplus_f32(x[i]);
        return;
    case LOG:
        for (int i = 0; i < n; ++i) y[i] = wd_log_f32(x[i]);
        return;
    default:
        for (int i = 0; i < n; ++i) y[i] = wd_erf_f32(x[i]);
        return;
    }
}

/* The distance between floats at a magnitude. */
static double unit(double value)
{
    int exponent;
    double magnitude = fabs(value);
    if (magnitude < 0x1p-126) return 0x1p-149;
    frexp(magnitude, &exponent);
    return ldexp(1.0, exponent - 24);
}

/* Units in the last place; infinite where one is NaN or infinite and the other is not. */
static double distance(float got, double exact)
{
    float rounded = (float)exact;
    if (exact != exact || got != got) return exact != exact && got != got ? 0.0 : INFINITY;
    if (isinf(rounded) || isinf(got)) return rounded == got ? 0.0 : INFINITY;
    return fabs((double)got - exact) / unit(exact);
}

static int check(enum function f)
{
    static const float special[] = {0.0f,     -0.0f,    INFINITY, -INFINITY, NAN,      0x1p-149f,
                                    0x1p-126, 1.0f,     -1.0f,    88.7228f,  88.7229f, -87.3365f,
                                    -103.97f, -103.98f, 0.5f,     0.625f,    0.92f,    4.0f};
    float x[BATCH];
    float y[BATCH];
    double worst = 0.0;
    float at = 0.0f;
    uint64_t code = 0;
    while (code <= UINT32_MAX) {
        int n = 0;
        for (; code <= UINT32_MAX && n < BATCH; code += STEP) {
            x[n] = WD_BITS_TO_FLOAT((uint32_t)code);
            if (!(x[n] < facts[f].low) && !(x[n] > facts[f].high)) n += 1;
        }
        if (code > UINT32_MAX && n + (int)(sizeof special / sizeof special[0]) <= BATCH) {
            for (size_t i = 0; i < sizeof special / sizeof special[0]; ++i) {
                x[n] = special[i];
                if (!(x[n] < facts[f].low) && !(x[n] > facts[f].high)) n += 1;
            }
        }
        compute(f, x, y, n);
        for (int i = 0; i < n; ++i) {
            double error = distance(y[i], exactly(f, (double)x[i]));
            if (error <= worst) continue;
            worst = error;
            at = x[i];
        }
    }
    printf("%-14s worst error %.3f units in the last place, at %.9g\n", facts[f].name, worst,
           (double)at);
    if (worst <= facts[f].worst) return 1;
    printf("FAIL %s: more than the %.1f that are allowed\n", facts[f].name, facts[f].worst);
    return 0;
}

int main(void)
{
    int passed = 0;
    for (int f = 0; f < FUNCTIONS; ++f) passed += check((enum function)f);
    printf("%d passed, %d failed\n", passed, FUNCTIONS - passed);
    return passed == FUNCTIONS ? EXIT_SUCCESS : EXIT_FAILURE;
}
