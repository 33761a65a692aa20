/* SPDX-License-Identifier: Apache-2.0
 *
 * What graphs refuse before a plan is made: batch normalization of nothing, attributes and windows
 * beyond what descriptors take, outputs whose elements lie in one place, ids that stand twice. And
 * what the text form rests on: decimal points, stores of types that are not stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "graph/descriptor.h"
#include "graph/from_descriptors.h"
#include "graph/json.h"

#define BE_FAIL(...) fail_msg(__VA_ARGS__)
#include "support/backend_build.h"

/* ---- One node, and its text ------------------------------------------------------------------ */

static struct wd_single single;

static void begin(enum wd_op op)
{
    wd_single_init(&single, op);
    memset(single.tensors, 0, sizeof single.tensors);
}

/* A packed fp32 tensor in the next slots' order. */
static struct wd_tensor *add(int slot, int rank, const int64_t *dim)
{
    struct wd_tensor tensor = {.uid = slot + 1, .rank = rank, .vect_count = 1, .alignment = 16};
    memcpy(tensor.dim, dim, sizeof *dim * (size_t)rank);
    wd_strides_nchw(dim, rank, tensor.stride);
    wd_single_bind(&single, slot, &tensor, NULL, NULL);
    return &single.tensors[single.graph.tensor_count - 1];
}

/* Writes the node as a text and reads that. */
static cudnnStatus_t restore(void)
{
    struct wd_text text = {0};
    struct wd_opgraph *made = NULL;
    struct wd_reader reader;
    cudnnStatus_t status;
    wd_graph_write(&text, &single.graph, single.scalars);
    reader = wd_reader_start(text.data, text.length);
    status = wd_graph_read(&reader, &made);
    if (status == CUDNN_STATUS_SUCCESS) wd_built_release(&made->base);
    wd_free(text.data);
    return status;
}

static void refused(cudnnStatus_t expected, const char *said)
{
    cudnnStatus_t status = restore();
    if (status != expected || !strstr(wd_last_error(), said)) {
        fail_msg("answered %s: %s; due is %s with \"%s\"", cudnnGetErrorString(status),
                 status ? wd_last_error() : "", cudnnGetErrorString(expected), said);
    }
}

static void taken(void)
{
    cudnnStatus_t status = restore();
    if (status) fail_msg("%s: %s", cudnnGetErrorString(status), wd_last_error());
}

/* ---- Batch normalization ---------------------------------------------------------------------- */

static void make_norm(enum wd_op op, int mode, const int64_t *dim)
{
    static const char *const roles[] = {"dpppp-d", "dpp-dpppp-", "ddppp-dpp-"};
    const char *role = roles[op - WD_OP_BN_INFERENCE];
    int64_t param[4];
    for (int d = 0; d < 4; ++d) {
        bool own = mode == CUDNN_BATCHNORM_PER_ACTIVATION ? d >= 1 : d == 1;
        param[d] = own ? dim[d] : 1;
    }
    begin(op);
    single.node.attr.norm.mode = mode;
    single.node.attr.norm.epsilon = 1e-3;
    for (int s = 0; role[s]; ++s)
        if (role[s] != '-') add(s, 4, role[s] == 'd' ? dim : param);
}

static void test_norm_of_nothing(void **state)
{
    static const enum wd_op ops[] = {WD_OP_BN_INFERENCE, WD_OP_BN_TRAINING, WD_OP_BN_BACKWARD};
    (void)state;
    for (int o = 0; o < 3; ++o) {
        for (int mode = 0; mode < 3; ++mode) {
            int64_t dim[4] = {2, 3, 4, 5};
            make_norm(ops[o], mode, dim);
            taken();
            for (int d = 0; d < 4; ++d) {
                int64_t empty[4] = {2, 3, 4, 5};
                empty[d] = 0;
                make_norm(ops[o], mode, empty);
                refused(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "of x");
            }
        }
    }
}

/* ---- Attributes beyond what descriptors take --------------------------------------------------- */

static struct wd_pool_attr *make_pool(void)
{
    static const int64_t x[4] = {2, 3, 6, 6}, y[4] = {2, 3, 3, 3};
    struct wd_pool_attr *attr = &single.node.attr.pool;
    begin(WD_OP_POOL_FORWARD);
    attr->spatial = 2;
    for (int d = 0; d < 2; ++d) attr->window[d] = attr->stride[d] = 2;
    add(0, 4, x);
    add(1, 4, y);
    return attr;
}

static void test_pooling_bounds(void **state)
{
    static const int64_t odd[] = {INT64_MAX,           INT64_MIN,       (int64_t)1 << 40,
                                  -((int64_t)1 << 40), INT32_MAX + 1LL, INT32_MIN - 1LL};
    (void)state;
    make_pool();
    taken();
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; ++i) {
        for (int field = 0; field < 4; ++field) {
            struct wd_pool_attr *attr = make_pool();
            int64_t *const lists[] = {attr->window, attr->pad_before, attr->pad_after,
                                      attr->stride};
            lists[field][1] = odd[i];
            refused(CUDNN_STATUS_BAD_PARAM, "a whole number in its range");
            /* the rule by itself says it too */
            assert_int_equal(wd_node_validate(&single.graph, &single.node), CUDNN_STATUS_BAD_PARAM);
        }
    }
    /* the last window's place has no number */
    make_pool()->stride[0] = INT32_MAX;
    single.tensors[1].dim[2] = (int64_t)1 << 45;
    single.tensors[1].stride[0] = single.tensors[1].stride[1] = 0;
    refused(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "too many");
}

static void test_convolution_bounds(void **state)
{
    static const int64_t x[4] = {2, 0, 6, 6}, col[2] = {0, 2}, b[4] = {1, 4, 1, 1};
    static const int64_t dy[4] = {2, 4, 6, 6};
    struct wd_conv_attr *attr = &single.node.attr.conv;
    (void)state;
    begin(WD_OP_BIAS_GRAD);
    add(0, 4, dy);
    add(1, 4, b);
    taken();
    attr->spatial = 100;
    refused(CUDNN_STATUS_BAD_PARAM, "it has neither");
    attr->spatial = 0;
    attr->groups = 3;
    refused(CUDNN_STATUS_BAD_PARAM, "it has neither");
    attr->groups = 0;
    for (int d = 0; d < 3; ++d) attr->window[d] = INT32_MAX;
    refused(CUDNN_STATUS_BAD_PARAM, "window");
    /* no channels: the matrix has no elements, but its windows are more than can be counted */
    begin(WD_OP_IM2COL);
    add(0, 4, x);
    add(1, 2, col);
    single.tensors[0].rank = 5;
    for (int d = 2; d < 5; ++d) single.tensors[0].dim[d] = INT32_MAX;
    attr->spatial = 3;
    attr->groups = 1;
    for (int d = 0; d < 3; ++d) {
        attr->stride[d] = attr->dilation[d] = 1;
        attr->window[d] = INT32_MAX;
    }
    single.tensors[0].dim[3] = single.tensors[0].dim[4] = 1;
    attr->pad_before[1] = attr->pad_before[2] = INT32_MAX;
    refused(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "more than 2^63");
    attr->window[1] = (int64_t)1 << 33;
    refused(CUDNN_STATUS_BAD_PARAM, "a whole number in its range");
    /* likewise without images, of which there are too many points */
    for (int d = 0; d < 3; ++d) {
        attr->window[d] = 1;
        attr->pad_before[d] = attr->pad_after[d] = INT32_MAX;
        single.tensors[0].dim[2 + d] = 1;
    }
    single.tensors[0].dim[0] = 0;
    single.tensors[0].dim[1] = 1;
    single.tensors[1].dim[0] = 1;
    single.tensors[1].dim[1] = 0;
    refused(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "more than 2^63");
}

/* ---- Outputs that overlap themselves ----------------------------------------------------------- */

static bool overlaps_in_truth(const struct wd_tensor *tensor)
{
    unsigned char seen[4096] = {0};
    for (int64_t i = 0; i < wd_tensor_count(tensor); ++i) {
        int64_t rest = i, at = 0;
        for (int d = 0; d < tensor->rank; ++d) {
            at += rest % tensor->dim[d] * tensor->stride[d];
            rest /= tensor->dim[d];
        }
        if (seen[at]++) return true;
    }
    return false;
}

static void test_overlap(void **state)
{
    uint32_t random = 7;
    int found = 0, clear = 0;
    struct wd_tensor vectors = {
        .rank = 4, .vect_count = 4, .vect_dim = 1, .dim = {2, 8, 3, 3}, .stride = {18, 9, 3, 1}};
    struct wd_tensor large = {.rank = 3,
                              .vect_count = 1,
                              .dim = {(int64_t)1 << 20, (int64_t)1 << 20, 2},
                              .stride = {((int64_t)1 << 21) + 1, 2, 1}};
    (void)state;
    for (int turn = 0; turn < 20000; ++turn) {
        struct wd_tensor tensor = {.rank = 1 + turn % 4, .vect_count = 1};
        for (int d = 0; d < tensor.rank; ++d) {
            random = random * 1664525u + 1013904223u;
            tensor.dim[d] = 1 + (random >> 24) % 5;
            tensor.stride[d] = (random >> 12) % 40 * (random >> 30) / 2;
        }
        if (wd_tensor_overlaps_itself(&tensor) != overlaps_in_truth(&tensor)) {
            char text[160];
            fail_msg("%s: overlap is %d", wd_tensor_text(&tensor, text, sizeof text),
                     overlaps_in_truth(&tensor));
        }
        *(overlaps_in_truth(&tensor) ? &found : &clear) += 1;
    }
    assert_true(found > 1000 && clear > 1000);
    assert_false(wd_tensor_overlaps_itself(&vectors));
    vectors.stride[1] = 8;
    assert_true(wd_tensor_overlaps_itself(&vectors));
    assert_false(wd_tensor_overlaps_itself(&large));
    large.stride[0] = ((int64_t)1 << 21) - 1;
    assert_true(wd_tensor_overlaps_itself(&large));
    large.dim[2] = 0;
    assert_false(wd_tensor_overlaps_itself(&large));
}

static void test_outputs_are_apart(void **state)
{
    static const int64_t dim[3] = {2, 3, 4};
    (void)state;
    begin(WD_OP_POINTWISE);
    single.node.attr.pointwise.mode = CUDNN_POINTWISE_IDENTITY;
    add(0, 3, dim)->stride[0] = 0; /* an input may repeat its elements */
    add(3, 3, dim);
    taken();
    single.tensors[1].stride[1] = 0;
    refused(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "elements of the output y");
    single.tensors[1].stride[1] = 3; /* rows of four, three apart */
    refused(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "lie in one place");
    single.tensors[1].stride[1] = 7;
    single.tensors[1].stride[0] = 100;
    taken();
}

/* ---- Ids ---------------------------------------------------------------------------------------- */

static void test_ids_that_stand_twice(void **state)
{
    enum { MANY = 300000 };
    int64_t *uids = wd_alloc(sizeof *uids * MANY);
    void **data = wd_alloc(sizeof *data * MANY);
    be_desc pack;
    clock_t start;
    (void)state;
    static const int64_t dim[2] = {2, 3};
    assert_true(uids && data);
    for (int64_t i = 0; i < MANY; ++i) uids[i] = i * 7919 % MANY;
    start = clock();
    be_pack(MANY, uids, data, NULL);
    /* comparing each with each takes minutes */
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
    uids[MANY - 2] = uids[17];
    pack = be_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    be_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, MANY, uids);
    be_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, MANY, data);
    assert_int_equal(cudnnBackendFinalize(pack), CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
    assert_non_null(strstr(wd_last_error(), "stands at 17 and at 299998"));
    be_free_all();
    wd_free(uids);
    wd_free(data);
    begin(WD_OP_POINTWISE);
    single.node.attr.pointwise.mode = CUDNN_POINTWISE_IDENTITY;
    add(0, 2, dim);
    add(3, 2, dim)->uid = 1;
    refused(CUDNN_STATUS_BAD_PARAM, "two tensors (0 and 1) have unique id 1");
}

/* ---- Reading a descriptor into itself ------------------------------------------------------------ */

static void test_not_into_itself(void **state)
{
    static const int64_t dim[2] = {2, 3};
    static const int64_t stride[2] = {3, 1};
    be_desc inner = NULL, outer = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    be_desc other = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t count = 0, uid = 0, seven = 7;
    (void)state;
    be_expect(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &inner), "create");
    for (int i = 0; i < 2; ++i) {
        be_desc desc = i ? outer : inner;
        be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 2, dim);
        be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 2, stride);
        be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
        be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, i ? 8 : seven);
        if (i) be_set_ref(desc, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, inner);
        be_final(desc);
    }
    be_expect(cudnnBackendDestroyDescriptor(inner), "destroy");
    inner = outer;
    assert_int_equal(cudnnBackendGetAttribute(outer, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &inner),
                     CUDNN_STATUS_BAD_PARAM);
    assert_non_null(strstr(wd_last_error(), "that is read"));
    be_expect(cudnnBackendGetAttribute(outer, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                       &count, &uid),
              "the id");
    assert_int_equal(uid, 8);
    be_expect(cudnnBackendGetAttribute(outer, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &other),
              "the offsets");
    be_expect(cudnnBackendGetAttribute(other, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                       &count, &uid),
              "the id");
    assert_int_equal(uid, seven);
    be_free_all();
}

/* ---- What lies below ------------------------------------------------------------------------------ */

static void test_types_that_are_not_stored(void **state)
{
    static const int none[] = {CUDNN_DATA_COMPLEX_FP32, CUDNN_DATA_COMPLEX_FP64, -1, 999};
    unsigned char bytes[64];
    (void)state;
    alarm(20); /* the two must not ask each other for ever */
    memset(bytes, 0x5a, sizeof bytes);
    for (int i = 0; i < 4; ++i) {
        wd_store_f64(bytes, none[i], 1, 2.0);
        wd_store_f32(bytes, none[i], 1, 2.0F);
    }
    for (size_t i = 0; i < sizeof bytes; ++i) assert_int_equal(bytes[i], 0x5a);
    alarm(0);
    for (int dtype = 0; dtype < 40; ++dtype) {
        if (wd_dtype_bits(dtype) < 4 || dtype == CUDNN_DATA_COMPLEX_FP32 ||
            dtype == CUDNN_DATA_COMPLEX_FP64) {
            continue;
        }
        for (int wide = 0; wide < 2; ++wide) {
            memset(bytes, 0, sizeof bytes);
            if (wide) wd_store_f64(bytes, dtype, 1, 2.0);
            else wd_store_f32(bytes, dtype, 1, 2.0F);
            assert_true(wd_load_f64(bytes, dtype, 1) == 2.0);
        }
    }
}

static void test_decimal_points(void **state)
{
    static const struct {
        const char *number, *point, *text;
    } rows[] = {
        {"1,5e-07", ",", "1.5e-07"},
        {"-0\xd9\xab"
         "25",
         "\xd9\xab", "-0.25"}, /* as in Pashto: two bytes */
        {"1.5", ".", "1.5"},
        {"17", "\xd9\xab", "17"},
        {"17", "", "17"},
        {"3'25", "'", "3.25"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char number[40];
        strcpy(number, rows[i].number);
        wd_text_point(number, rows[i].point);
        assert_string_equal(number, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_of_nothing),    cmocka_unit_test(test_pooling_bounds),
        cmocka_unit_test(test_convolution_bounds), cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_outputs_are_apart),  cmocka_unit_test(test_ids_that_stand_twice),
        cmocka_unit_test(test_not_into_itself),    cmocka_unit_test(test_types_that_are_not_stored),
        cmocka_unit_test(test_decimal_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
