/* SPDX-License-Identifier: Apache-2.0
 *
 * Which engines WARPDNN_ENGINES lets take part: one that has run on a device, one that has not, and one of last
 * resort, under lists of all kinds. The environment is read once, so each list has a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ops/engine.h"

enum { TRIED = 1, UNTRIED = 2, LAST = 4, ALL = TRIED | UNTRIED | LAST, BAD_TEXT = 8 };

static const struct wd_engine engines[] = {
    {.name = "relu_fast", .op = WD_OP_POINTWISE, .device = WD_GPU},
    {.name = "relu_faster", .op = WD_OP_POINTWISE, .device = WD_GPU, .untried = true},
    {.name = "relu_def", .op = WD_OP_POINTWISE, .device = WD_GPU, .last_resort = true}};

static int taken(const char *list)
{
    const struct wd_device device = {.kind = WD_GPU};
    const struct wd_node node = {.op = WD_OP_POINTWISE};
    const struct wd_problem problem = {.node = &node, .device = &device};
    int result = 0;
    if (list) setenv("WARPDNN_ENGINES", list, 1);
    else unsetenv("WARPDNN_ENGINES");
    for (int i = 0; i < 3; ++i) {
        struct wd_reason reason = {.text = ""};
        if (wd_engine_takes(&engines[i], &problem, &reason)) result |= 1 << i;
        else if (!strstr(reason.text, "WARPDNN_ENGINES")) result |= BAD_TEXT;
    }
    return result;
}

static int taken_elsewhere(const char *list)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(taken(list));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_lists(void **state)
{
    static const struct {
        const char *list;
        int want;
    } cases[] = {{NULL, TRIED | LAST},
                 {"*", TRIED | LAST},
                 {"none", LAST},
                 {"", TRIED | LAST}, /* as if unset */
                 {"relu_*", ALL},
                 {"relu_fast", TRIED | LAST},
                 {"relu_faster", UNTRIED | LAST},
                 {"*,relu_faster", ALL},
                 {"*,untried", ALL},
                 {"untried,*", ALL},
                 {"untried", UNTRIED | LAST},
                 {"*,pool_*", TRIED | LAST},
                 {"pool_*,none", LAST}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        int got = taken_elsewhere(cases[i].list);
        if (got != cases[i].want) {
            print_error("%s: %d, not %d\n", cases[i].list ? cases[i].list : "(unset)", got,
                        cases[i].want);
        }
        assert_int_equal(got, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
