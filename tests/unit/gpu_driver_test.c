/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu/driver.def and gpu/driver.h against NVIDIA's cuda.h, where a toolkit is installed: values and
 * function types when this file is compiled, layouts when it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/gpu_driver_facts.h"

#if defined(__has_include)
#if __has_include(<cudaTypedefs.h>)
#include <cudaTypedefs.h>
#define HAVE_CUDA_H 1
#endif
#endif

#ifdef HAVE_CUDA_H

#define WD_CU_ERROR(name, value) _Static_assert((int)name == value, #name " has another value");
#define WD_CU_CONSTANT(name, value) _Static_assert((int)name == value, #name " has another value");
#define WD_CU_FUNCTION(name, exported, version, parameters)                                        \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(PFN_##name##_v##version, CUresult(CUDAAPI *) parameters),     \
        #name " has another type");
#include "gpu/driver.def"

static const struct driver_fact expected[] = {
#define WD_CU_FIELD(type, field)                                                                   \
    {#type "." #field, offsetof(type, field), sizeof(((type *)0)->field), sizeof(type)},
#include "gpu/driver.def"
};

static void test_layouts(void **state)
{
    (void)state;
    assert_int_equal(driver_facts_count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < driver_facts_count; ++i) {
        assert_string_equal(driver_facts[i].name, expected[i].name);
        if (driver_facts[i].offset != expected[i].offset ||
            driver_facts[i].field_size != expected[i].field_size ||
            driver_facts[i].type_size != expected[i].type_size) {
            fail_msg("%s: offset %zu, size %zu, in %zu bytes; cuda.h has %zu, %zu, %zu",
                     expected[i].name, driver_facts[i].offset, driver_facts[i].field_size,
                     driver_facts[i].type_size, expected[i].offset, expected[i].field_size,
                     expected[i].type_size);
        }
    }
}

#else

static void test_layouts(void **state)
{
    (void)state;
    skip(); /* no CUDA toolkit here */
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
