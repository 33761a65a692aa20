/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of kernels: which one a device gets, what unpacking makes of whole and of damaged ones, and
 * that every module of the library holds its kernels for every architecture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "gpu/arch.h"
#include "gpu/driver.h"
#include "gpu/image.h"
#include "gpu/module.h"
#include "ops/engine.h"
#include "unit/gpu_images.h"

static const char *best(const char *const *archs, int capability)
{
    struct made_images images;
    struct wd_module module = made_module(&images, archs);
    const struct wd_image_row *row = wd_image_find(&module, capability);
    for (int i = 0; row && archs[i]; ++i)
        if (!strcmp(row->arch, archs[i])) return archs[i];
    return "none";
}

static void test_find(void **state)
{
    static const char *const usual[] = {"sm_80", "sm_90a", "compute_90", NULL};
    static const char *const many[] = {"compute_80", "sm_100f", "sm_80",        "sm_86",
                                       "sm_90",      "sm_90a",  "compute_100a", NULL};
    struct wd_module empty = {"empty", NULL, NULL, {NULL}};
    (void)state;
    assert_string_equal(best(usual, 75), "none");
    assert_string_equal(best(usual, 80), "sm_80");
    assert_string_equal(best(usual, 89), "sm_80");
    assert_string_equal(best(usual, 90), "sm_90a");
    assert_string_equal(best(usual, 100), "compute_90");
    assert_string_equal(best(usual, 121), "compute_90");
    assert_string_equal(best(many, 80), "sm_80");
    assert_string_equal(best(many, 87), "sm_86");
    assert_string_equal(best(many, 90), "sm_90a");
    assert_string_equal(best(many, 103), "sm_100f");
    assert_string_equal(best(many, 120), "compute_80");
    assert_null(wd_image_find(&empty, 90));
    assert_true(wd_arch_is_native(wd_arch_rank("sm_90a compute_90", 90)));
    assert_false(wd_arch_is_native(wd_arch_rank("compute_90", 120)));
    assert_int_equal(wd_arch_rank("compute_90a", 100), 0);
}

/* A table without an end is not walked beyond the module, and rows that point out of it are not followed. */
static void test_damaged_table(void **state)
{
    static const char *const archs[] = {"sm_80", "sm_90a", NULL};
    enum { ROWS = sizeof((struct made_images *)NULL)->rows / sizeof(struct wd_image_row) };
    struct made_images images;
    struct wd_module module = made_module(&images, archs);
    (void)state;
    assert_true(wd_image_is_whole(&module));
    images.rows[1].offset += 64;
    assert_false(wd_image_is_whole(&module));
    assert_null(wd_image_find(&module, 80));
    images.rows[1].offset = UINT64_MAX;
    assert_false(wd_image_is_whole(&module));
    module = made_module(&images, archs);
    images.rows[0].packed = UINT64_MAX;
    assert_false(wd_image_is_whole(&module));
    module = made_module(&images, archs);
    memset(images.rows[0].arch, '9', sizeof images.rows[0].arch);
    assert_false(wd_image_is_whole(&module));
    module = made_module(&images, archs);
    images.rows[1].arch[0] = '\0';
    assert_false(wd_image_is_whole(&module));
    /* cut short anywhere in the table, and filled with rows up to its end and part of one behind */
    module = made_module(&images, archs);
    for (size_t bytes = 1; bytes < 3 * sizeof images.rows[0]; ++bytes) {
        module.image_end = module.image + bytes;
        assert_false(wd_image_is_whole(&module));
        assert_null(wd_image_find(&module, 90));
    }
    for (int i = 0; i < ROWS; ++i) images.rows[i] = (struct wd_image_row){"sm_90a", 0, 0};
    for (size_t bytes = sizeof images.rows; bytes <= sizeof images; ++bytes) {
        module.image_end = module.image + bytes;
        assert_false(wd_image_is_whole(&module));
        assert_null(wd_image_find(&module, 90));
    }
}

/* Kinds of devices have a place each, kept for the process, as long as there are some. */
static void test_places(void **state)
{
    int place[WD_MODULE_PLACES];
    (void)state;
    for (int i = 0; i < WD_MODULE_PLACES; ++i) {
        place[i] = wd_module_place(80 + 10 * i);
        assert_in_range(place[i], 0, WD_MODULE_PLACES - 1);
        for (int k = 0; k < i; ++k) assert_int_not_equal(place[k], place[i]);
    }
    assert_int_equal(wd_module_place(75), -1);
    for (int i = 0; i < WD_MODULE_PLACES; ++i)
        assert_int_equal(wd_module_place(80 + 10 * i), place[i]);
}

#if WD_WITH_CUDA

static void test_unpack(void **state)
{
    static const char *const archs[] = {"sm_90a", NULL};
    struct made_images images;
    struct wd_module module = made_module(&images, archs);
    void *image = NULL;
    (void)state;
    assert_int_equal(wd_image_unpack(&module, images.rows, &image), CUDA_SUCCESS);
    assert_string_equal(image, "hello, device");
    wd_free(image);
    assert_int_equal(wd_alloc_bytes(), 0);
}

/* A bit that fell over, a file cut short, no memory: told, and nothing is kept. */
static void test_damaged(void **state)
{
    static const char *const archs[] = {"sm_90a", NULL};
    struct made_images images;
    struct wd_module module = made_module(&images, archs);
    void *image = NULL;
    (void)state;
    for (size_t i = 0; i < MADE_PACKED; ++i) {
        made_packed(&images)[i] ^= 0x10;
        assert_int_equal(wd_image_unpack(&module, images.rows, &image), CUDA_ERROR_INVALID_IMAGE);
        made_packed(&images)[i] ^= 0x10;
    }
    for (size_t bytes = 0; bytes < MADE_PACKED; ++bytes) {
        images.rows[0].packed = bytes;
        assert_int_equal(wd_image_unpack(&module, images.rows, &image), CUDA_ERROR_INVALID_IMAGE);
    }
    images.rows[0].packed = UINT64_MAX - 1;
    assert_int_equal(wd_image_unpack(&module, images.rows, &image), CUDA_ERROR_INVALID_IMAGE);
    images.rows[0].packed = MADE_PACKED;
    for (uint64_t by = 1; by != 0; by *= 2) {
        images.rows[0].offset += by;
        assert_int_equal(wd_image_unpack(&module, images.rows, &image), CUDA_ERROR_INVALID_IMAGE);
        images.rows[0].offset -= by;
    }
    wd_alloc_fail_at(0);
    assert_int_equal(wd_image_unpack(&module, images.rows, &image), CUDA_SUCCESS);
    wd_free(image);
    image = NULL;
    for (uint64_t n = wd_alloc_fail_at(0); n > 0; --n) {
        wd_alloc_fail_at(n);
        assert_int_equal(wd_image_unpack(&module, images.rows, &image), -1);
        wd_alloc_fail_at(0);
    }
    assert_null(image);
    assert_int_equal(wd_alloc_bytes(), 0);
}

static bool contains(const char *image, size_t bytes, const char *name)
{
    return memmem(image, bytes, name, strlen(name)) != NULL;
}

/* Machine code is an ELF file, PTX says the version that it is of, and both name the kernel. */
static void check_image(const struct wd_module *module, const struct wd_image_row *row,
                        const struct wd_kernel_table *kernels)
{
    void *image = NULL;
    size_t bytes;
    assert_int_equal(wd_image_unpack(module, row, &image), CUDA_SUCCESS);
    bytes = wd_alloc_bytes();
    if (row->arch[0] == 's') assert_memory_equal(image, "\177ELF", 4);
    else assert_non_null(strstr(image, ".version"));
    for (int i = 0; i < kernels->count; ++i)
        if (!contains(image, bytes, kernels->rows[i].kernel.symbol))
            fail_msg("%s of %s lacks %s", row->arch, module->name, kernels->rows[i].kernel.symbol);
    wd_free(image);
}

static void test_modules(void **state)
{
    int modules = 0;
    (void)state;
    for (int i = 0; i < wd_engine_rows(); ++i) {
        const struct wd_engine *engine = wd_engine_row(i).engine;
        const struct wd_module *module;
        const struct wd_image_row *row;
        if (!engine || !engine->kernels) continue;
        module = engine->kernels->rows[0].kernel.module;
        assert_true(module->image < module->image_end);
        assert_non_null(wd_image_find(module, 90));
        row = (const void *)module->image;
        for (; row->arch[0]; ++row, ++modules) check_image(module, row, engine->kernels);
    }
    assert_true(modules > 0);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_damaged_table),
        cmocka_unit_test(test_places),
#if WD_WITH_CUDA
        cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_modules),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
