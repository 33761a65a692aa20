/* SPDX-License-Identifier: Apache-2.0
 *
 * What a log callback is told: whose call it was, and no more than once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cudnn.h"
#include "warpdnn.h"

static int errors;
static cudnnDebug_t heard;
static char said[2048];

static void listen(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *debug,
                   const char *text)
{
    cudnnHandle_t handle = NULL;
    (void)udata;
    if (severity != CUDNN_SEV_ERROR) return;
    errors += 1;
    heard = *debug;
    strncpy(said, text, sizeof said - 1);
    /* a listener may call the library, and be refused there */
    if (cudnnCreate(&handle) == 0) cudnnDestroy(handle);
    cudnnSetCallback(0, NULL, NULL);
    cudnnSetStream(NULL, NULL);
    cudnnSetCallback(CUDNN_SEV_ERROR_EN, NULL, listen);
}

static void test_whose_call(void **state)
{
    static const float one = 1.0f, zero = 0.0f;
    float x[4] = {0};
    char text[1024];
    cudnnHandle_t handle = NULL;
    cudnnTensorDescriptor_t desc = NULL;
    (void)state;
    assert_int_equal(cudnnCreate(&handle), 0);
    assert_int_equal(cudnnCreateTensorDescriptor(&desc), 0);
    assert_int_equal(
        cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2), 0);
    assert_int_equal(cudnnSetCallback(CUDNN_SEV_ERROR_EN, NULL, listen), 0);

    assert_int_equal(cudnnTransformTensor(handle, &one, desc, x, &zero, desc, NULL),
                     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(errors, 1);
    assert_ptr_equal(heard.handle, handle);
    assert_int_equal(heard.cudnnStatus, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_ptr_equal(strstr(said, "cudnnTransformTensor: "), said);
    assert_null(strstr(said + 1, "cudnnTransformTensor: "));
    cudnnGetLastErrorString(text, sizeof text);
    assert_string_equal(text, said);

    /* a call without a handle has nothing of the one before */
    assert_int_equal(
        cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, 1, 1, 1),
        CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(errors, 2);
    assert_null(heard.handle);

    /* nor has one after the handle's death, though it be the same function's */
    assert_int_equal(cudnnGetStream(handle, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_ptr_equal(heard.handle, handle);
    assert_int_equal(cudnnDestroy(handle), 0);
    assert_int_equal(cudnnGetStream(NULL, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(errors, 4);
    assert_null(heard.handle);
    assert_int_equal(cudnnBackendFinalize(NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    assert_int_equal(errors, 5);
    assert_null(heard.handle);
    assert_int_equal(cudnnSetCallback(0, NULL, NULL), 0);
    assert_int_equal(cudnnDestroyTensorDescriptor(desc), 0);
}

/* A refused pointer has the name of the function's argument, not that of the operation's slot. */
static void test_pointer_names(void **state)
{
    static const float one = 1.0f, zero = 0.0f;
    static _Alignas(16) float x[8], y[8];
    char text[1024];
    cudnnHandle_t handle = NULL;
    cudnnTensorDescriptor_t desc = NULL;
    cudnnActivationDescriptor_t relu = NULL;
    (void)state;
    assert_int_equal(cudnnCreate(&handle), 0);
    assert_int_equal(cudnnCreateTensorDescriptor(&desc), 0);
    assert_int_equal(cudnnCreateActivationDescriptor(&relu), 0);
    assert_int_equal(
        cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2), 0);
    assert_int_equal(
        cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0), 0);
    assert_int_equal(
        cudnnActivationBackward(handle, relu, &one, desc, y, desc, x, desc, x, &zero, desc, NULL),
        CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    cudnnGetLastErrorString(text, sizeof text);
    assert_string_equal(text, "cudnnActivationBackward: dx is null");
    assert_int_equal(cudnnActivationBackward(handle, relu, &one, desc, y, desc, (char *)x + 1, desc,
                                             x, &zero, desc, x + 4),
                     CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    cudnnGetLastErrorString(text, sizeof text);
    assert_ptr_equal(strstr(text, "cudnnActivationBackward: dy 0x"), text);
    assert_non_null(strstr(text, " is not aligned to its fp32 elements"));
    assert_int_equal(cudnnAddTensor(handle, &one, desc, NULL, &one, desc, y),
                     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    cudnnGetLastErrorString(text, sizeof text);
    assert_string_equal(text, "cudnnAddTensor: A is null");
    assert_int_equal(cudnnDestroyActivationDescriptor(relu), 0);
    assert_int_equal(cudnnDestroyTensorDescriptor(desc), 0);
    assert_int_equal(cudnnDestroy(handle), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whose_call),
                                       cmocka_unit_test(test_pointer_names)};
    setenv("WARPDNN_DEVICE", "cpu", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
