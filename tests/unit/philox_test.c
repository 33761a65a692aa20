/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox4x32-10 against the known answers of its authors' reference implementation, and the
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
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
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
