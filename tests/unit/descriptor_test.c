/* SPDX-License-Identifier: Apache-2.0
 *
 * Backend descriptors as data: every attribute of attributes.def is set, read back and refused in
 * every wrong way; lives are counted; the text forms come back as they went. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "graph/from_descriptors.h"
#include "graph/json.h"

enum { TYPES = 31 };

static int attributes_seen;

static struct wd_desc *make(int type)
{
    struct wd_desc *desc = NULL;
    assert_int_equal(wd_desc_create(type, &desc), CUDNN_STATUS_SUCCESS);
    return desc;
}

/* A descriptor that others may refer to, whatever it holds. */
static struct wd_desc *make_final(int type)
{
    struct wd_desc *desc = make(type);
    wd_desc_seal(desc, NULL);
    return desc;
}

static int referable(const struct wd_attribute *row)
{
    return row->refers == WD_REFERS_OPERATION ? CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR
                                              : row->refers;
}

static size_t width(int type)
{
    switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN: return 1;
    case CUDNN_TYPE_FRACTION: return 16;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4;
    }
}

/* Valid elements of a type: small numbers that every enumeration has, or references. */
static void elements(int type, int count, struct wd_desc *ref, void *data)
{
    for (int i = 0; i < count; ++i) {
        char *at = (char *)data + width(type) * (size_t)i;
        int64_t wide = i % 3;
        int32_t word = type == CUDNN_TYPE_INT32 ? 5 + i : 0;
        double real = 0.5 + i;
        float narrow = 0.25f + (float)i;
        cudnnFraction_t fraction = {i + 1, 2};
        const void *pointer = type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? (const void *)ref : &real;
        switch (type) {
        case CUDNN_TYPE_BOOLEAN: *at = 1; break;
        case CUDNN_TYPE_CHAR: *at = (char)('a' + i % 26); break;
        case CUDNN_TYPE_FRACTION: memcpy(at, &fraction, sizeof fraction); break;
        case CUDNN_TYPE_INT64: memcpy(at, &wide, sizeof wide); break;
        case CUDNN_TYPE_DOUBLE: memcpy(at, &real, sizeof real); break;
        case CUDNN_TYPE_FLOAT: memcpy(at, &narrow, sizeof narrow); break;
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR: memcpy(at, &pointer, sizeof pointer); break;
        default: memcpy(at, &word, sizeof word);
        }
    }
}

/* Sets `count` elements, seals, reads them back. */
static void round_trip(const struct wd_attribute *row, int type, int count)
{
    struct wd_desc *desc = make(row->descriptor);
    struct wd_desc *ref = type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? make_final(referable(row)) : NULL;
    _Alignas(16) char in[16 * 20];
    _Alignas(16) char out[16 * 20];
    int64_t n = -1;
    elements(type, count, ref, in);
    memset(out, 0x55, sizeof out);
    assert_int_equal(wd_desc_set(desc, row->attribute, type, count, in), CUDNN_STATUS_SUCCESS);
    assert_int_equal(wd_desc_get(desc, row->attribute, type, count, &n, out),
                     CUDNN_STATUS_NOT_INITIALIZED);
    wd_desc_seal(desc, NULL);
    assert_int_equal(wd_desc_get(desc, row->attribute, type, 0, &n, NULL), CUDNN_STATUS_SUCCESS);
    assert_int_equal(n, count);
    assert_int_equal(wd_desc_get(desc, row->attribute, type, count, NULL, NULL),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(wd_desc_get(desc, row->attribute, type, -1, &n, out), CUDNN_STATUS_BAD_PARAM);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        struct wd_desc *got[20] = {NULL};
        assert_int_equal(wd_desc_get(desc, row->attribute, type, count, &n, got),
                         CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
        for (int i = 0; i < count; ++i) got[i] = make(referable(row));
        n = -1;
        assert_int_equal(wd_desc_get(desc, row->attribute, type, count, &n, got),
                         CUDNN_STATUS_SUCCESS);
        assert_int_equal(n, count);
        for (int i = 0; i < count; ++i) {
            assert_true(got[i]->finalized);
            wd_desc_release(got[i]);
        }
    } else {
        n = -1;
        assert_int_equal(wd_desc_get(desc, row->attribute, type, 20, &n, out),
                         CUDNN_STATUS_SUCCESS);
        assert_int_equal(n, count);
        assert_memory_equal(in, out, width(type) * (size_t)count);
        assert_int_equal((unsigned char)out[width(type) * (size_t)count], 0x55);
    }
    assert_int_equal(wd_desc_set(desc, row->attribute, type, count, in), CUDNN_STATUS_BAD_PARAM);
    wd_desc_release(desc);
    wd_desc_release(ref);
}

static void refusals(const struct wd_attribute *row, int type)
{
    struct wd_desc *desc = make(row->descriptor);
    struct wd_desc *other = make_final(row->descriptor == 0 ? 1 : 0);
    _Alignas(16) char in[16 * 20] = {0};
    cudnnStatus_t plain = CUDNN_STATUS_BAD_PARAM;
    for (int wrong = -1; wrong <= TYPES; ++wrong) {
        if (wrong >= 0 && wrong < TYPES && (row->types >> wrong & 1u)) continue;
        assert_int_equal(wd_desc_set(desc, row->attribute, wrong, 1, in),
                         CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    }
    if (row->rule == WD_ATTR_COMPUTED) {
        assert_int_equal(wd_desc_set(desc, row->attribute, type, 1, in),
                         CUDNN_STATUS_NOT_SUPPORTED);
        goto done;
    }
    assert_int_equal(wd_desc_set(desc, row->attribute, type, -1, in), plain);
    if (row->least > 0) assert_int_equal(wd_desc_set(desc, row->attribute, type, 0, in), plain);
    if (row->most < INT32_MAX) {
        assert_int_equal(wd_desc_set(desc, row->attribute, type, row->most + 1, in), plain);
    }
    assert_int_equal(wd_desc_set(desc, row->attribute, type, INT64_MAX, in), plain);
    assert_int_equal(wd_desc_set(desc, row->attribute, type, 1, NULL),
                     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    if (type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        assert_int_equal(wd_desc_set(desc, row->attribute, type, 1, in),
                         CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    }
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        struct wd_desc *wrong = make_final(row->refers == CUDNN_BACKEND_TENSOR_DESCRIPTOR
                                               ? CUDNN_BACKEND_RNG_DESCRIPTOR
                                               : CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        struct wd_desc *open = make(referable(row));
        assert_int_equal(wd_desc_set(desc, row->attribute, type, 1, &wrong),
                         CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
        assert_int_equal(wd_desc_set(desc, row->attribute, type, 1, &open),
                         CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
        wd_desc_release(wrong);
        wd_desc_release(open);
    }
    if (width(type) == 4 && type != CUDNN_TYPE_FLOAT && type != CUDNN_TYPE_INT32 &&
        type != CUDNN_TYPE_ATTRIB_NAME) {
        int32_t word = -1;
        assert_int_equal(wd_desc_set(desc, row->attribute, type, 1, &word), plain);
        word = 100000;
        assert_int_equal(wd_desc_set(desc, row->attribute, type, 1, &word), plain);
    }
    assert_false(wd_desc_has(desc, row->attribute));
done:
    assert_int_equal(wd_desc_get(other, row->attribute, type, 1, NULL, in), CUDNN_STATUS_BAD_PARAM);
    wd_desc_release(desc);
    wd_desc_release(other);
}

static void test_every_attribute(void **state)
{
    (void)state;
    for (int type = 0; type < WD_DESC_TYPES; ++type) {
        int count;
        const struct wd_attribute *rows = wd_desc_attributes(type, &count);
        for (int r = 0; r < count; ++r) {
            assert_int_equal(rows[r].descriptor, type);
            assert_ptr_equal(wd_attribute(rows[r].attribute), &rows[r]);
            attributes_seen += 1;
            for (int as = 0; as < TYPES; ++as) {
                static const int lengths[] = {1, 2, 6, 8, 9, 19};
                if (!(rows[r].types >> as & 1u)) continue;
                refusals(&rows[r], as);
                if (rows[r].rule == WD_ATTR_COMPUTED) continue;
                for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; ++i) {
                    if (lengths[i] < rows[r].least || lengths[i] > rows[r].most) continue;
                    round_trip(&rows[r], as, lengths[i]);
                }
            }
        }
    }
    printf("%d attributes of %d descriptors\n", attributes_seen, (int)WD_DESC_TYPES);
    assert_int_equal(attributes_seen, 293);
}

static void test_required(void **state)
{
    int missing = 0;
    (void)state;
    for (int type = 0; type < WD_DESC_TYPES; ++type) {
        struct wd_desc *desc = make(type);
        int count;
        const struct wd_attribute *rows = wd_desc_attributes(type, &count);
        bool required = false;
        for (int r = 0; r < count; ++r) required |= rows[r].rule == WD_ATTR_REQUIRED;
        if (required) {
            assert_int_equal(wd_desc_check_values(desc), CUDNN_STATUS_BAD_PARAM);
            assert_non_null(strstr(wd_last_error(), "CUDNN_ATTR_"));
            missing += 1;
        }
        wd_desc_release(desc);
    }
    assert_true(missing > 20);
}

static void test_unknown(void **state)
{
    struct wd_desc *desc = NULL;
    int64_t value = 0;
    (void)state;
    assert_int_equal(wd_desc_create(-1, &desc), CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(wd_desc_create(44, &desc), CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(wd_desc_check(NULL, "descriptor"), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(wd_desc_check(&value, "descriptor"), CUDNN_STATUS_BAD_PARAM);
    desc = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    for (int attribute = -2; attribute < 5000; ++attribute) {
        const struct wd_attribute *row = wd_attribute(attribute);
        if (row && row->descriptor == CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
        assert_int_equal(wd_desc_set(desc, attribute, CUDNN_TYPE_INT64, 1, &value),
                         CUDNN_STATUS_BAD_PARAM);
    }
    assert_int_equal(wd_desc_set(desc, INT32_MAX, CUDNN_TYPE_INT64, 1, &value),
                     CUDNN_STATUS_BAD_PARAM);
    wd_desc_release(desc);
}

static void test_seed_is_number_or_tensor(void **state)
{
    struct wd_desc *desc = make(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
    struct wd_desc *tensor = make_final(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    struct wd_desc *copy = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t seed = 42, got = 0, n = -1;
    (void)state;
    assert_int_equal(
        wd_desc_set(desc, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor),
        CUDNN_STATUS_SUCCESS);
    assert_int_equal(wd_desc_set(desc, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, 1, &seed),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(atomic_load(&tensor->references), 1);
    wd_desc_seal(desc, NULL);
    assert_int_equal(
        wd_desc_get(desc, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, 1, &n, &got),
        CUDNN_STATUS_SUCCESS);
    assert_int_equal(got, 42);
    assert_int_equal(wd_desc_get(desc, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &n, &copy),
                     CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    wd_desc_release(desc);
    /* a default number is no descriptor */
    desc = make_final(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR);
    assert_int_equal(wd_desc_get(desc, CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &n, &copy),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(n, 0);
    wd_desc_release(desc);
    wd_desc_release(copy);
    wd_desc_release(tensor);
}

static void test_copies_into_used_descriptors_are_refused(void **state)
{
    struct wd_desc *pointwise = make_final(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    struct wd_desc *target = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    struct wd_desc *op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    (void)state;
    assert_int_equal(wd_desc_copy(target, pointwise), CUDNN_STATUS_SUCCESS);
    /* again: nobody else holds it */
    assert_int_equal(wd_desc_copy(target, pointwise), CUDNN_STATUS_SUCCESS);
    assert_int_equal(wd_desc_set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(wd_desc_copy(target, pointwise), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(wd_desc_copy(op, pointwise), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
    wd_desc_release(op);
    wd_desc_release(target);
    wd_desc_release(pointwise);
}

/* Fails each allocation of a list that does not fit inside; the old value stays. */
static void test_out_of_memory(void **state)
{
    struct wd_desc *desc = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    int64_t uids[200];
    (void)state;
    for (int i = 0; i < 200; ++i) uids[i] = i;
    assert_int_equal(
        wd_desc_set(desc, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 100, uids), 0);
    for (uint64_t n = 1; n <= 2; ++n) {
        wd_alloc_fail_at(n);
        assert_int_equal(
            wd_desc_set(desc, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 200, uids),
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
        wd_alloc_fail_at(0);
        assert_int_equal(wd_desc_value(desc, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count, 100);
        assert_int_equal(wd_desc_value(desc, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->cells[99].i, 99);
    }
    wd_desc_release(desc);
    wd_alloc_fail_at(1);
    assert_int_equal(wd_desc_create(0, &desc), CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    wd_alloc_fail_at(0);
}

static void test_text_covers_attributes(void **state)
{
    (void)state;
    for (int op = 0; op < WD_OP_COUNT; ++op) {
        const struct wd_op_info *info = wd_op_info((enum wd_op)op);
        if (wd_attr_bytes_said((enum wd_op)op) != info->attr_size) {
            fail_msg("attr_fields.def says %zu of %zu bytes of %s",
                     wd_attr_bytes_said((enum wd_op)op), info->attr_size, info->name);
        }
    }
}

static void test_numbers_in_texts(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {" -17", true, -17},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999999", false, 0},
        {"--1", false, 0},
        {"-", false, 0},
        {"1-", false, 0},
        {"", false, 0},
        {"x", false, 0},
    };
    static const double reals[] = {0.0, 1.0, -0.1, 1e-300, 1.7976931348623157e308, 5e-324, 3.0e20};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        struct wd_reader reader = wd_reader_start(rows[i].text, strlen(rows[i].text));
        int64_t value = wd_read_int(&reader, INT64_MIN, INT64_MAX);
        assert_int_equal(!reader.failed, rows[i].good);
        if (rows[i].good) assert_int_equal(value, rows[i].value);
    }
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; ++i) {
        struct wd_text text = {0};
        struct wd_reader reader;
        double value;
        wd_text_real(&text, reals[i]);
        reader = wd_reader_start(text.data, text.length);
        value = wd_read_real(&reader);
        assert_false(reader.failed);
        assert_memory_equal(&value, &reals[i], sizeof value);
        wd_free(text.data);
    }
}

/* INT8x4 as callers say it: dims count vectors, the tensor counts lanes. */
static void test_vectors(void **state)
{
    const int64_t dims[4] = {2, 3, 5, 7}, strides[4] = {105, 35, 7, 1};
    const int64_t four = 4, one = 1, alignment = 16;
    const int32_t int8 = CUDNN_DATA_INT8;
    struct wd_desc *desc = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    struct wd_tensor tensor;
    (void)state;
    wd_desc_set(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &int8);
    wd_desc_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    wd_desc_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    wd_desc_set(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    wd_desc_set(desc, CUDNN_ATTR_TENSOR_VECTOR_COUNT, CUDNN_TYPE_INT64, 1, &four);
    wd_desc_set(desc, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, CUDNN_TYPE_INT64, 1, &one);
    assert_int_equal(wd_desc_check_values(desc), CUDNN_STATUS_SUCCESS);
    assert_int_equal(wd_tensor_from(desc, &tensor), CUDNN_STATUS_SUCCESS);
    assert_int_equal(tensor.dim[1], 12);
    assert_int_equal(wd_tensor_extent(&tensor), 2 * 12 * 5 * 7);
    wd_desc_release(desc);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A loose bound on what thousands of descriptors a plan cost; prints the figure. */
static void test_cheap(void **state)
{
    enum { ROUNDS = 200000 };
    int32_t type = CUDNN_KNOB_TYPE_TILE_SIZE;
    int64_t value = 3;
    double start = seconds();
    double each;
    (void)state;
    for (int i = 0; i < ROUNDS; ++i) {
        struct wd_desc *desc;
        wd_desc_create(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &desc);
        wd_desc_set(desc, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        wd_desc_set(desc, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
        wd_desc_release(desc);
    }
    each = (seconds() - start) / ROUNDS * 1e9;
    printf("a knob choice created, set twice and destroyed: %.0f ns\n", each);
    assert_true(each < 5000.0);
}

static void test_nothing_left(void **state)
{
    (void)state;
    assert_int_equal(wd_alloc_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_attribute),
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_seed_is_number_or_tensor),
        cmocka_unit_test(test_copies_into_used_descriptors_are_refused),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_text_covers_attributes),
        cmocka_unit_test(test_numbers_in_texts),
        cmocka_unit_test(test_cheap),
        cmocka_unit_test(test_nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
