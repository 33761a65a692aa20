/* SPDX-License-Identifier: Apache-2.0
 *
 * The normal numbers of 16 bits, gone through by what they are made of: every radius of the table, the
 * tail's by steps, each with places all around the quarter of a circle. Moments and the distribution
 * against those of the normal distribution; no chance is involved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "ops/rng/rng_numbers.h"

enum {
    PLACES = 512,     /* of 2^15, one of each 64 */
    TAIL_STEP = 256,  /* of 2^20 radii in the tail */
    THRESHOLDS = 400, /* a hundredth of a deviation apart, each halfway between two numbers */
};

static double second, fourth, sixth, products, weight_in_all;
static double threshold[THRESHOLDS];
static double weight_below[THRESHOLDS]; /* of numbers below it that are above the one before */

/* Signs are bits of their own and change nothing here. */
static void count_radius(double radius, double weight)
{
    for (uint32_t i = 0; i < PLACES; ++i) {
        const uint32_t place = i * 64 + i * 37 % 64;
        const uint32_t angle = place / 32 | (place % 32) << 10;
        const double sine = fabs((double)rng_coarse_normal(radius, 0, angle, 0));
        const double cosine = fabs((double)rng_coarse_normal(radius, 0, angle, 1));
        const double own = weight / PLACES;
        const double pair[2] = {sine, cosine};
        for (int k = 0; k < 2; ++k) {
            const double square = pair[k] * pair[k];
            int at = (int)(pair[k] * 100.0) - 1;
            if (at < 0) at = 0;
            second += own / 2 * square;
            fourth += own / 2 * square * square;
            sixth += own / 2 * square * square * square;
            while (at < THRESHOLDS && pair[k] > threshold[at]) at += 1;
            if (at < THRESHOLDS) weight_below[at] += own / 2;
        }
        products += own * sine * sine * cosine * cosine;
        weight_in_all += own;
    }
}

static void count_all(void)
{
    for (int i = 0; i < THRESHOLDS; ++i) {
        const uint32_t code = wd_encode_small((float)i / 100, 5, 10, 0, 0);
        threshold[i] = (rng_of_half(code) + rng_of_half(code + 1)) / 2;
    }
    for (uint32_t entry = 0; entry < RNG_RADII; ++entry) {
        const uint32_t number = entry * 2;
        if (!rng_is_tail(number)) count_radius(rng_coarse_radius(number), 1.0 / RNG_RADII);
    }
    for (uint32_t u = TAIL_STEP / 2; u < 1 << 20; u += TAIL_STEP) {
        const uint32_t upper = u >> 16;
        const uint32_t number = (upper & 0x7u) | (upper & 0x8u) << 11;
        assert_true(rng_is_tail(number));
        count_radius(rng_to_half(sqrt((double)rng_tail_square(number, u & 0xffffu))),
                     TAIL_STEP * 0x1p-20 / 2048);
    }
}

/* The bounds are twice what was found, or less. */
static void test_moments(void **state)
{
    (void)state;
    printf("variance 1%+.1e, fourth moment 3%+.1e, sixth 15%+.1e, squares of a pair 1%+.1e\n",
           second - 1, fourth - 3, sixth - 15, products - 1);
    assert_true(fabs(weight_in_all - 1.0) < 1e-12);
    assert_true(fabs(second - 1.0) < 1.3e-5);
    assert_true(fabs(fourth - 3.0) < 2e-4);
    assert_true(fabs(sixth - 15.0) < 6e-4);
    assert_true(fabs(products - 1.0) < 9e-5);
}

static void test_distribution(void **state)
{
    double sum = 0.0;
    double most = 0.0;
    (void)state;
    for (int i = 0; i < THRESHOLDS; ++i) {
        double off;
        sum += weight_below[i];
        off = fabs(sum - erf(threshold[i] / sqrt(2.0)));
        if (off > most) most = off;
    }
    printf("|z| is at most %.1e off its distribution\n", most);
    assert_true(most < 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_distribution),
    };
    count_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
