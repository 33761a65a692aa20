/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox4x32-7 against the known answers of its authors' reference implementation, and the
 * generator's state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/philox.h"

/* Counter, key and result as in the authors' vectors: the counter is (block, offset). */
static const struct {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t result[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
};

static uint64_t join(const uint32_t *word)
{
    return (uint64_t)word[1] << 32 | word[0];
}

static void test_known_answers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; ++i) {
        uint32_t number[4];
        wd_philox(join(known[i].key), join(known[i].counter + 2), join(known[i].counter), number);
        for (int k = 0; k < 4; ++k) assert_int_equal(number[k], known[i].result[k]);
    }
}

static void test_state(void **state)
{
    struct wd_random_state random;
    (void)state;
    wd_random_state_set(&random, 0);
    assert_true(wd_random_state_holds(&random));
    assert_int_equal(random.offset, 0);
    random.seed = 1;
    assert_false(wd_random_state_holds(&random));
    wd_random_state_set(&random, UINT64_MAX);
    assert_true(wd_random_state_holds(&random));
    random = (struct wd_random_state){0};
    assert_false(wd_random_state_holds(&random));
    assert_int_equal(sizeof random, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
