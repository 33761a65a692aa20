/* SPDX-License-Identifier: Apache-2.0
 *
 * Device properties and kernel caches. Properties let a caller plan without a handle, also for a
 * device that another machine has; they come from a handle or from their text. A kernel cache is
 * accepted and kept for the API's sake: kernels are compiled ahead of time, so there is nothing to
 * put into it. */
#include <limits.h>
#include <string.h>

#include "api/backend.h"
#include "base/alloc.h"
#include "gpu/gpu.h"

static void destroy_device(struct wd_built *built)
{
    wd_free(built);
}

static cudnnStatus_t device_from_text(const struct wd_value *value, struct wd_device *device)
{
    struct wd_reader reader = wd_reader_start((const char *)value->cells, (size_t)value->count);
    memset(device, 0, sizeof *device);
    wd_read_token(&reader, '{');
    wd_read_key(&reader, "warpdnn_device");
    wd_read_int(&reader, 1, 1);
    wd_read_token(&reader, ',');
    wd_read_key(&reader, "device");
    wd_device_read(&reader, device);
    wd_read_token(&reader, '}');
    wd_read_end(&reader);
    return wd_reader_status(&reader, "CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION");
}

/* A GPU of this machine, which needs no handle for its facts. */
static cudnnStatus_t device_from_id(int64_t id, struct wd_device *device)
{
    const char *why = "";
    enum wd_gpu_state state = wd_gpu_probe(&why);
    const struct wd_device *found = NULL;
    WD_REQUIRE(state != WD_GPU_UNUSABLE, CUDNN_STATUS_NOT_INITIALIZED,
               "CUDNN_ATTR_DEVICEPROP_DEVICE_ID=%lld: %s", (long long)id, why);
    if (state == WD_GPU_READY && id >= 0 && id <= INT_MAX) found = wd_device_at((int)id);
    WD_REQUIRE(found != NULL, CUDNN_STATUS_BAD_PARAM,
               "CUDNN_ATTR_DEVICEPROP_DEVICE_ID=%lld is that of no device: %s", (long long)id, why);
    *device = *found;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_finalize_device(struct wd_desc *desc, struct wd_built **built)
{
    const struct wd_value *text = wd_desc_value(desc, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
    cudnnHandle_t handle = wd_desc_pointer(desc, CUDNN_ATTR_DEVICEPROP_HANDLE);
    bool by_id = wd_desc_has(desc, CUDNN_ATTR_DEVICEPROP_DEVICE_ID);
    int64_t id = wd_desc_int(desc, CUDNN_ATTR_DEVICEPROP_DEVICE_ID);
    struct wd_built_device *made;
    struct wd_device device;
    if (handle) {
        WD_TRY(wd_handle_validate("CUDNN_ATTR_DEVICEPROP_HANDLE", handle));
        device = *handle->queue->device;
        WD_REQUIRE(
            !by_id || id == device.ordinal, CUDNN_STATUS_BAD_PARAM,
            "CUDNN_ATTR_DEVICEPROP_DEVICE_ID=%lld is not that of CUDNN_ATTR_DEVICEPROP_HANDLE, %d",
            (long long)id, device.ordinal);
    } else if (text->count > 0) {
        WD_TRY(device_from_text(text, &device));
        WD_REQUIRE(!by_id || id == device.ordinal, CUDNN_STATUS_BAD_PARAM,
                   "CUDNN_ATTR_DEVICEPROP_DEVICE_ID=%lld is not that of "
                   "CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, %d",
                   (long long)id, device.ordinal);
    } else {
        WD_REQUIRE(by_id, CUDNN_STATUS_NOT_INITIALIZED,
                   "neither CUDNN_ATTR_DEVICEPROP_HANDLE nor CUDNN_ATTR_DEVICEPROP_DEVICE_ID nor "
                   "CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION was set");
        WD_TRY(device_from_id(id, &device));
    }
    made = wd_alloc(sizeof *made);
    WD_REQUIRE(made != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for device properties");
    atomic_init(&made->base.references, 1);
    made->base.destroy = destroy_device;
    made->device = device;
    *built = &made->base;
    return wd_desc_put_int(desc, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, device.ordinal);
}

cudnnStatus_t wd_finalize_kernel_cache(struct wd_desc *desc, struct wd_built **built)
{
    const struct wd_value *text = wd_desc_value(desc, CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION);
    struct wd_reader reader = wd_reader_start((const char *)text->cells, (size_t)text->count);
    (void)built;
    if (text->count == 0) return CUDNN_STATUS_SUCCESS;
    wd_read_token(&reader, '{');
    wd_read_key(&reader, "warpdnn_kernel_cache");
    wd_read_int(&reader, 1, 1);
    wd_read_token(&reader, '}');
    wd_read_end(&reader);
    return wd_reader_status(&reader, "CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION");
}

cudnnStatus_t wd_backend_text(const struct wd_desc *desc, struct wd_text *text)
{
    switch (desc->type) {
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
        wd_text_add(text, "{\"warpdnn_device\":1,\"device\":");
        wd_device_write(text, &((const struct wd_built_device *)desc->built)->device);
        wd_text_add(text, "}");
        break;
    case CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR:
        wd_text_add(text, "{\"warpdnn_kernel_cache\":1}");
        break;
    default: wd_plan_text((const struct wd_built_plan *)desc->built, text); break;
    }
    WD_REQUIRE(!text->failed, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no host memory for the text of a %s", wd_desc_text(desc->type));
    return CUDNN_STATUS_SUCCESS;
}
