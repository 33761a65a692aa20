/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid arguments of the dropout calls. */
#include <math.h>
#include <stddef.h>

#include "support/refusal.h"

static unsigned char bytes[64];

#define X x->desc, x->data
#define Y y->desc, y->data
#define RESERVE reserve->data, size

static void rows(void)
{
    static const int dims[4] = {2, 3, 4, 5};
    static const int fewer[4] = {2, 3, 4, 4};
    cudnnHandle_t h = harness_handle;
    cudnnDropoutDescriptor_t d = NULL;
    cudnnDropoutDescriptor_t unset = NULL;
    cudnnDropoutDescriptor_t stateless = NULL;
    cudnnDropoutDescriptor_t fake = (cudnnDropoutDescriptor_t)(void *)bytes;
    cudnnTensorDescriptor_t no_t = NULL;
    cudnnTensorDescriptor_t fake_t = (cudnnTensorDescriptor_t)(void *)bytes;
    struct tensor *x = tensor_input(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW, -1, 1);
    struct tensor *wrong = tensor_input(CUDNN_DATA_FLOAT, 4, fewer, LAYOUT_NCHW, -1, 1);
    struct tensor *half = tensor_input(CUDNN_DATA_HALF, 4, dims, LAYOUT_NCHW, -1, 1);
    struct tensor *nhwc = tensor_input(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NHWC, -1, 1);
    struct tensor *y = tensor_output(CUDNN_DATA_FLOAT, 4, dims, LAYOUT_NCHW);
    struct tensor *reserve;
    char *odd_x = (char *)x->data + 1;
    char *odd_y = (char *)y->data + 1;
    void *states = NULL;
    void *answer;
    float dropout;
    unsigned long long seed;
    size_t state_size = 0;
    size_t size = 0;
    cudnnCreateDropoutDescriptor(&d);
    cudnnCreateDropoutDescriptor(&unset);
    cudnnCreateDropoutDescriptor(&stateless);
    cudnnCreateTensorDescriptor(&no_t);
    cudnnDropoutGetStatesSize(h, &state_size);
    cudnnDropoutGetReserveSpaceSize(x->desc, &size);
    reserve = tensor_bytes((int64_t)size);
    warpdnnMalloc(h, state_size + 8, &states);
    cudnnSetDropoutDescriptor(d, h, 0.5f, states, state_size, 1);
    cudnnSetDropoutDescriptor(stateless, h, 0.0f, NULL, 0, 0);
    refusal_guard();
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnCreateDropoutDescriptor, dropoutDesc,
            cudnnCreateDropoutDescriptor(NULL));
    REFUSED(BAD_PARAM, cudnnDestroyDropoutDescriptor, dropoutDesc,
            cudnnDestroyDropoutDescriptor(fake));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnDropoutGetStatesSize, handle,
            cudnnDropoutGetStatesSize(NULL, &size));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnDropoutGetStatesSize, sizeInBytes,
            cudnnDropoutGetStatesSize(h, NULL));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnDropoutGetReserveSpaceSize, xdesc,
            cudnnDropoutGetReserveSpaceSize(NULL, &size));
    REFUSED(BAD_PARAM, cudnnDropoutGetReserveSpaceSize, xdesc,
            cudnnDropoutGetReserveSpaceSize(fake_t, &size));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnDropoutGetReserveSpaceSize, sizeInBytes,
            cudnnDropoutGetReserveSpaceSize(x->desc, NULL));
#define SET(status, argument, ...)                                                                 \
    REFUSED(status, cudnnSetDropoutDescriptor, argument, cudnnSetDropoutDescriptor(__VA_ARGS__))
    SET(BAD_PARAM_NULL_POINTER, dropoutDesc, NULL, h, 0.5f, states, state_size, 1);
    SET(BAD_PARAM, dropoutDesc, fake, h, 0.5f, states, state_size, 1);
    SET(BAD_PARAM_NULL_POINTER, handle, d, NULL, 0.5f, states, state_size, 1);
    SET(BAD_PARAM, handle, d, (cudnnHandle_t)(void *)bytes, 0.5f, states, state_size, 1);
    SET(BAD_PARAM, dropout, d, h, -0.1f, states, state_size, 1);
    SET(BAD_PARAM, dropout, d, h, 1.1f, states, state_size, 1);
    SET(BAD_PARAM, dropout, d, h, NAN, states, state_size, 1);
    SET(BAD_PARAM_MISALIGNED_POINTER, states, d, h, 0.5f, (char *)states + 4, state_size, 1);
    SET(BAD_PARAM_SIZE_INSUFFICIENT, stateSizeInBytes, d, h, 0.5f, states, state_size - 1, 1);
    SET(BAD_PARAM_SIZE_INSUFFICIENT, stateSizeInBytes, d, h, 0.5f, states, 0, 1);
#define RESTORE(status, argument, ...)                                                             \
    REFUSED(status, cudnnRestoreDropoutDescriptor, argument,                                       \
            cudnnRestoreDropoutDescriptor(__VA_ARGS__))
    RESTORE(BAD_PARAM_NULL_POINTER, dropoutDesc, NULL, h, 0.5f, states, state_size, 1);
    RESTORE(BAD_PARAM_NULL_POINTER, handle, d, NULL, 0.5f, states, state_size, 1);
    RESTORE(BAD_PARAM, dropout, d, h, -0.5f, states, state_size, 1);
    RESTORE(BAD_PARAM_SIZE_INSUFFICIENT, stateSizeInBytes, d, h, 0.5f, NULL, 0, 1);
    RESTORE(BAD_PARAM_MISALIGNED_POINTER, states, d, h, 0.5f, (char *)states + 1, state_size, 1);
    RESTORE(BAD_PARAM_SIZE_INSUFFICIENT, stateSizeInBytes, d, h, 0.5f, states, state_size - 1, 1);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetDropoutDescriptor, dropoutDesc,
            cudnnGetDropoutDescriptor(NULL, h, &dropout, &answer, &seed));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnGetDropoutDescriptor, handle,
            cudnnGetDropoutDescriptor(d, NULL, &dropout, &answer, &seed));
#define FWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnDropoutForward, argument, cudnnDropoutForward(__VA_ARGS__))
    FWD(BAD_PARAM_NULL_POINTER, handle, NULL, d, X, Y, RESERVE);
    FWD(BAD_PARAM_NULL_POINTER, dropoutDesc, h, NULL, X, Y, RESERVE);
    FWD(BAD_PARAM, dropoutDesc, h, fake, X, Y, RESERVE);
    FWD(BAD_PARAM, dropoutDesc, h, unset, X, Y, RESERVE);
    FWD(BAD_PARAM, dropoutDesc, h, stateless, X, Y, RESERVE);
    FWD(BAD_PARAM_NULL_POINTER, xdesc, h, d, NULL, x->data, Y, RESERVE);
    FWD(BAD_PARAM, xdesc, h, d, no_t, x->data, Y, RESERVE);
    FWD(BAD_PARAM_SHAPE_MISMATCH, xdesc, h, d, wrong->desc, wrong->data, Y, RESERVE);
    FWD(BAD_PARAM, xdesc, h, d, half->desc, half->data, Y, RESERVE);
    FWD(BAD_PARAM_NULL_POINTER, x, h, d, x->desc, NULL, Y, RESERVE);
    FWD(BAD_PARAM_MISALIGNED_POINTER, x, h, d, x->desc, odd_x, Y, RESERVE);
    FWD(BAD_PARAM_NULL_POINTER, ydesc, h, d, X, NULL, y->data, RESERVE);
    FWD(BAD_PARAM, ydesc, h, d, X, no_t, y->data, RESERVE);
    FWD(BAD_PARAM_NULL_POINTER, y, h, d, X, y->desc, NULL, RESERVE);
    FWD(BAD_PARAM_MISALIGNED_POINTER, y, h, d, X, y->desc, odd_y, RESERVE);
    FWD(BAD_PARAM, y, h, d, nhwc->desc, y->data, Y, RESERVE);
    FWD(BAD_PARAM_NULL_POINTER, reserveSpace, h, d, X, Y, NULL, size);
    FWD(BAD_PARAM_SIZE_INSUFFICIENT, reserveSpaceSizeInBytes, h, d, X, Y, reserve->data, size - 1);
#define BWD(status, argument, ...)                                                                 \
    REFUSED(status, cudnnDropoutBackward, argument, cudnnDropoutBackward(__VA_ARGS__))
    BWD(BAD_PARAM_NULL_POINTER, handle, NULL, d, X, Y, RESERVE);
    BWD(BAD_PARAM_NULL_POINTER, dropoutDesc, h, NULL, X, Y, RESERVE);
    BWD(BAD_PARAM, dropoutDesc, h, unset, X, Y, RESERVE);
    BWD(BAD_PARAM, dropoutDesc, h, stateless, X, Y, RESERVE);
    BWD(BAD_PARAM_NULL_POINTER, dydesc, h, d, NULL, x->data, Y, RESERVE);
    BWD(BAD_PARAM_SHAPE_MISMATCH, dydesc, h, d, wrong->desc, wrong->data, Y, RESERVE);
    BWD(BAD_PARAM, dydesc, h, d, half->desc, half->data, Y, RESERVE);
    BWD(BAD_PARAM_NULL_POINTER, dy, h, d, x->desc, NULL, Y, RESERVE);
    BWD(BAD_PARAM_NULL_POINTER, dxdesc, h, d, X, NULL, y->data, RESERVE);
    BWD(BAD_PARAM_NULL_POINTER, dx, h, d, X, y->desc, NULL, RESERVE);
    BWD(BAD_PARAM, dx, h, d, nhwc->desc, y->data, Y, RESERVE);
    BWD(BAD_PARAM_NULL_POINTER, reserveSpace, h, d, X, Y, NULL, size);
    BWD(BAD_PARAM_SIZE_INSUFFICIENT, reserveSpaceSizeInBytes, h, d, X, Y, reserve->data, size - 1);
    warpdnnFree(h, states);
    cudnnDestroyDropoutDescriptor(d);
    cudnnDestroyDropoutDescriptor(unset);
    cudnnDestroyDropoutDescriptor(stateless);
    cudnnDestroyTensorDescriptor(no_t);
}

/* Sizes; what was set comes back; a refused set or restore changes nothing. */
static void answers(void)
{
    static const int dims[4] = {2, 3, 4, 5};
    cudnnHandle_t h = harness_handle;
    cudnnDropoutDescriptor_t d = NULL;
    cudnnTensorDescriptor_t t = NULL;
    void *states = NULL;
    void *other = bytes;
    void *answer = NULL;
    float dropout = 0;
    unsigned long long seed = 0;
    size_t size = 0;
    if (!case_begin("dropout answers")) return;
    cudnnCreateDropoutDescriptor(&d);
    cudnnCreateTensorDescriptor(&t);
    cudnnSetTensorNdDescriptorEx(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 4, dims);
    if (cudnnDropoutGetReserveSpaceSize(t, &size) != CUDNN_STATUS_SUCCESS || size != 16) {
        case_fail("a reserve space of %zu bytes for 120 elements", size);
    }
    if (cudnnDropoutGetStatesSize(h, &size) != CUDNN_STATUS_SUCCESS || size == 0) {
        case_fail("a state of %zu bytes", size);
    }
    warpdnnMalloc(h, size, &states);
    if (cudnnDestroyDropoutDescriptor(NULL) != CUDNN_STATUS_SUCCESS) case_fail("destroy of null");
    if (cudnnSetDropoutDescriptor(d, h, 0.5f, states, size, ~0ull) != CUDNN_STATUS_SUCCESS) {
        case_fail("the descriptor is refused");
    }
    if (cudnnSetDropoutDescriptor(d, h, 2.0f, other, size, 1) == CUDNN_STATUS_SUCCESS ||
        cudnnRestoreDropoutDescriptor(d, h, 0.1f, other, size - 1, 1) == CUDNN_STATUS_SUCCESS) {
        case_fail("an invalid set or restore is accepted");
    }
    if (cudnnGetDropoutDescriptor(d, h, &dropout, &answer, &seed) != CUDNN_STATUS_SUCCESS ||
        dropout != 0.5f || answer != states || seed != ~0ull) {
        case_fail("the descriptor answers %g, %p, %llu", (double)dropout, answer, seed);
    }
    warpdnnFree(h, states);
    cudnnDestroyDropoutDescriptor(d);
    cudnnDestroyTensorDescriptor(t);
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    if (case_begin("dropout tensors")) {
        rows();
        case_end();
    }
    answers();
    refusal_report();
    return harness_finish();
}
