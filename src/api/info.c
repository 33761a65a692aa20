/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions, properties, error texts and the log callback. */
#include <string.h>

#include "api/api.h"
#include "base/env.h"

size_t cudnnGetVersion(void)
{
    return (size_t)wd_env()->version;
}

size_t cudnnGetMaxDeviceVersion(void)
{
    return CUDNN_MAX_DEVICE_VERSION;
}

/* The CUDA runtime that the API was built against: we link none, the kernels' toolkit stands in. */
#ifndef WD_CUDART_VERSION
#define WD_CUDART_VERSION 13000
#endif

size_t cudnnGetCudartVersion(void)
{
    return WD_CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return wd_status_name(status);
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
    const char *text = wd_last_error();
    size_t length = strlen(text);
    if (message && max_size > 0) {
        if (length >= max_size) length = max_size - 1;
        memcpy(message, text, length);
        message[length] = '\0';
    }
    wd_last_error_clear();
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value)
{
    int version = wd_env()->version;
    WD_ARG(value != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "value is null");
    switch ((int)type) {
    case MAJOR_VERSION: *value = version / 10000; return CUDNN_STATUS_SUCCESS;
    case MINOR_VERSION: *value = version % 10000 / 100; return CUDNN_STATUS_SUCCESS;
    case PATCH_LEVEL: *value = version % 100; return CUDNN_STATUS_SUCCESS;
    default:
        return wd_fail_in(__func__, CUDNN_STATUS_BAD_PARAM,
                          "type=%d is none of MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL",
                          (int)type);
    }
}

/* One library cannot mix versions with itself. */
cudnnStatus_t cudnnGraphVersionCheck(void)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpsVersionCheck(void)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCnnVersionCheck(void)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnAdvVersionCheck(void)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCallback(unsigned mask, void *udata, cudnnCallback_t fptr)
{
    return wd_log_set_callback(mask, udata, fptr);
}

cudnnStatus_t cudnnGetCallback(unsigned *mask, void **udata, cudnnCallback_t *fptr)
{
    WD_ARG(mask != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "mask is null");
    WD_ARG(udata != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "udata is null");
    WD_ARG(fptr != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "fptr is null");
    wd_log_get_callback(mask, udata, fptr);
    return CUDNN_STATUS_SUCCESS;
}

/* No kernel of ours reports errors after its launch, so there is never one to tell. */
cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t *rstatus,
                                     cudnnErrQueryMode_t mode, cudnnRuntimeTag_t *tag)
{
    (void)tag;
    WD_HANDLE(handle);
    WD_ARG(rstatus != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "rstatus is null");
    WD_ARG((int)mode >= CUDNN_ERRQUERY_RAWCODE && (int)mode <= CUDNN_ERRQUERY_BLOCKING,
           CUDNN_STATUS_BAD_PARAM, "mode=%d is no cudnnErrQueryMode_t", (int)mode);
    *rstatus = CUDNN_STATUS_SUCCESS;
    return CUDNN_STATUS_SUCCESS;
}
