/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout: descriptors, the generator's state and the reserve space, forward and backward. The state
 * lies in device memory that the caller owns (struct wd_random_state); the descriptor keeps its
 * address. */
#include "api/api.h"
#include "base/philox.h"

enum { INIT_STATE };
enum { FORWARD_X, FORWARD_STATE, FORWARD_Y, FORWARD_RESERVE };
enum { BACKWARD_DY, BACKWARD_RESERVE, BACKWARD_DX };
enum { SEED_LOW, SEED_HIGH };
enum { PROBABILITY };

/* One bit an element, in whole words of 32. */
static size_t reserve_bytes(const struct wd_tensor *tensor)
{
    return (size_t)((wd_tensor_count(tensor) + 31) / 32 * 4);
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *dropoutDesc)
{
    return WD_DESC_CREATE(WD_DESC_DROPOUT, dropoutDesc);
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc)
{
    return WD_DESC_DESTROY(WD_DESC_DROPOUT, dropoutDesc);
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *sizeInBytes)
{
    WD_HANDLE(handle);
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    *sizeInBytes = sizeof(struct wd_random_state);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t xdesc, size_t *sizeInBytes)
{
    WD_DESC(xdesc, WD_DESC_TENSOR);
    WD_ARG(sizeInBytes != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "sizeInBytes is null");
    *sizeInBytes = reserve_bytes(&xdesc->tensor);
    return CUDNN_STATUS_SUCCESS;
}

/* What Set and Restore have in common. Null states are legal: the descriptor then has a probability
 * and cannot run. */
static cudnnStatus_t check_state(const char *function, float dropout, const void *states,
                                 bool needs_size, size_t bytes)
{
    if (!(dropout >= 0.0f && dropout <= 1.0f)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "dropout=%g is no probability between 0 and 1", (double)dropout);
    }
    if ((states || needs_size) && bytes < sizeof(struct wd_random_state)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "stateSizeInBytes=%zu is less than the %zu of cudnnDropoutGetStatesSize",
                          bytes, sizeof(struct wd_random_state));
    }
    if ((uintptr_t)states % sizeof(uint64_t) != 0) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                          "states=%p is not aligned to %zu bytes", states, sizeof(uint64_t));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                        float dropout, void *states, size_t stateSizeInBytes,
                                        unsigned long long seed)
{
    WD_DESC(dropoutDesc, WD_DESC_DROPOUT);
    WD_HANDLE(handle);
    WD_TRY(check_state(__func__, dropout, states, false, stateSizeInBytes));
    if (states) {
        struct wd_single single;
        struct wd_tensor state = wd_opaque_bytes(sizeof(struct wd_random_state));
        wd_single_init(&single, WD_OP_DROPOUT_INIT);
        wd_single_bind(&single, INIT_STATE, &state, states, "states");
        /* halves of the seed: a scalar is a double */
        wd_single_scalar(&single, SEED_LOW, (double)(seed & 0xffffffffu));
        wd_single_scalar(&single, SEED_HIGH, (double)(seed >> 32));
        WD_TRY(wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA));
        dropoutDesc->states = states;
        dropoutDesc->seed = seed;
    }
    /* without states the probability alone is set, and a state set before stays */
    dropoutDesc->dropout = dropout;
    dropoutDesc->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                            cudnnHandle_t handle, float dropout, void *states,
                                            size_t stateSizeInBytes, unsigned long long seed)
{
    WD_DESC(dropoutDesc, WD_DESC_DROPOUT);
    WD_HANDLE(handle);
    WD_TRY(check_state(__func__, dropout, states, true, stateSizeInBytes));
    dropoutDesc->dropout = dropout;
    dropoutDesc->states = states;
    dropoutDesc->seed = seed; /* for cudnnGetDropoutDescriptor alone: the state has its own */
    dropoutDesc->head.set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                        float *dropout, void **states, unsigned long long *seed)
{
    WD_DESC(dropoutDesc, WD_DESC_DROPOUT);
    WD_HANDLE(handle);
    if (dropout) *dropout = dropoutDesc->dropout;
    if (states) *states = dropoutDesc->states;
    if (seed) *seed = dropoutDesc->seed;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_pair(const char *function, const struct cudnnTensorStruct *from,
                                const char *from_name, const struct cudnnTensorStruct *to,
                                const char *to_name)
{
    char a[160];
    char b[160];
    if (wd_tensor_count(&from->tensor) != wd_tensor_count(&to->tensor)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "%s (%s) has not as many elements as %s (%s)", from_name,
                          wd_tensor_text(&from->tensor, a, sizeof a), to_name,
                          wd_tensor_text(&to->tensor, b, sizeof b));
    }
    return wd_check_same_dtype(function, from, from_name, to, to_name);
}

static cudnnStatus_t check_reserve(const char *function, const struct wd_tensor *tensor,
                                   const void *reserve, size_t bytes)
{
    if (!reserve) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "reserveSpace is null");
    }
    if (bytes < reserve_bytes(tensor)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
                          "reserveSpaceSizeInBytes=%zu is less than the %zu of "
                          "cudnnDropoutGetReserveSpaceSize",
                          bytes, reserve_bytes(tensor));
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropoutDesc,
                                  const cudnnTensorDescriptor_t xdesc, const void *x,
                                  const cudnnTensorDescriptor_t ydesc, void *y, void *reserveSpace,
                                  size_t reserveSpaceSizeInBytes)
{
    struct wd_single single;
    struct wd_tensor state = wd_opaque_bytes(sizeof(struct wd_random_state));
    struct wd_tensor reserve;
    WD_HANDLE(handle);
    WD_DESC_SET(dropoutDesc, WD_DESC_DROPOUT);
    WD_DESC_SET(xdesc, WD_DESC_TENSOR);
    WD_DESC_SET(ydesc, WD_DESC_TENSOR);
    WD_ARG(dropoutDesc->states != NULL, CUDNN_STATUS_BAD_PARAM,
           "dropoutDesc has no states: cudnnSetDropoutDescriptor was not called with any");
    WD_TRY(check_pair(__func__, xdesc, "xdesc", ydesc, "ydesc"));
    WD_ARG(x != y || wd_tensor_same_layout(&xdesc->tensor, &ydesc->tensor), CUDNN_STATUS_BAD_PARAM,
           "x and y are the same memory, but the strides of xdesc and ydesc differ");
    WD_TRY(check_reserve(__func__, &xdesc->tensor, reserveSpace, reserveSpaceSizeInBytes));
    reserve = wd_opaque_bytes((int64_t)reserve_bytes(&xdesc->tensor));
    wd_single_init(&single, WD_OP_DROPOUT_FORWARD);
    single.attr_desc = "dropoutDesc";
    WD_BIND(&single, FORWARD_X, xdesc, x);
    wd_single_bind(&single, FORWARD_STATE, &state, dropoutDesc->states, "states");
    WD_BIND(&single, FORWARD_Y, ydesc, y);
    wd_single_bind(&single, FORWARD_RESERVE, &reserve, reserveSpace, "reserveSpace");
    wd_single_scalar(&single, PROBABILITY, (double)dropoutDesc->dropout);
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}

cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropoutDesc,
                                   const cudnnTensorDescriptor_t dydesc, const void *dy,
                                   const cudnnTensorDescriptor_t dxdesc, void *dx,
                                   void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
    struct wd_single single;
    struct wd_tensor reserve;
    WD_HANDLE(handle);
    WD_DESC_SET(dropoutDesc, WD_DESC_DROPOUT);
    WD_DESC_SET(dydesc, WD_DESC_TENSOR);
    WD_DESC_SET(dxdesc, WD_DESC_TENSOR);
    WD_ARG(dropoutDesc->states != NULL, CUDNN_STATUS_BAD_PARAM,
           "dropoutDesc has no states: cudnnSetDropoutDescriptor was not called with any");
    WD_TRY(check_pair(__func__, dydesc, "dydesc", dxdesc, "dxdesc"));
    WD_ARG(dy != dx || wd_tensor_same_layout(&dydesc->tensor, &dxdesc->tensor),
           CUDNN_STATUS_BAD_PARAM,
           "dy and dx are the same memory, but the strides of dydesc and dxdesc differ");
    WD_TRY(check_reserve(__func__, &dydesc->tensor, reserveSpace, reserveSpaceSizeInBytes));
    reserve = wd_opaque_bytes((int64_t)reserve_bytes(&dydesc->tensor));
    wd_single_init(&single, WD_OP_DROPOUT_BACKWARD);
    single.attr_desc = "dropoutDesc";
    WD_BIND(&single, BACKWARD_DY, dydesc, dy);
    wd_single_bind(&single, BACKWARD_RESERVE, &reserve, reserveSpace, "reserveSpace");
    WD_BIND(&single, BACKWARD_DX, dxdesc, dx);
    wd_single_scalar(&single, PROBABILITY, (double)dropoutDesc->dropout);
    return wd_run(__func__, handle, &single, NULL, WD_WORKSPACE_ARENA);
}
