/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry points of the backend API: arguments are checked here, descriptors do the rest. One
 * thread at a time works on a descriptor; a finalized one may be read by many. */
#include "api/backend.h"

#include <string.h>

#include "base/alloc.h"

static const wd_backend_finalize finalizers[WD_DESC_TYPES] = {
    [CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR] = wd_finalize_opgraph,
    [CUDNN_BACKEND_ENGINE_DESCRIPTOR] = wd_finalize_engine,
    [CUDNN_BACKEND_ENGINECFG_DESCRIPTOR] = wd_finalize_config,
    [CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR] = wd_finalize_heuristics,
    [CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR] = wd_finalize_plan,
    [CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR] = wd_finalize_device,
    [CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR] = wd_finalize_kernel_cache,
};

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                           cudnnBackendDescriptor_t *descriptor)
{
    struct wd_desc *desc;
    cudnnStatus_t status;
    WD_ARG(descriptor != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "descriptor is null");
    status = wd_desc_create((int)descriptorType, &desc);
    if (status != CUDNN_STATUS_SUCCESS) return wd_pass_in(__func__, status);
    *descriptor = desc;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    struct wd_desc *desc = descriptor;
    cudnnStatus_t status;
    status = wd_desc_check(desc, "descriptor");
    if (status != CUDNN_STATUS_SUCCESS) return wd_pass_in(__func__, status);
    desc->abandoned = true;
    wd_desc_release(desc);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor)
{
    /* a created descriptor is initialized already */
    return wd_pass_in(__func__, wd_desc_check(descriptor, "descriptor"));
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t elementCount, const void *arrayOfElements)
{
    cudnnStatus_t status = wd_desc_check(descriptor, "descriptor");
    if (status == CUDNN_STATUS_SUCCESS) {
        status = wd_desc_set(descriptor, (int)attributeName, (int)attributeType, elementCount,
                             arrayOfElements);
    }
    return wd_pass_in(__func__, status);
}

/* Texts are made on demand: nobody pays for one that is not read. */
static cudnnStatus_t get_text(const struct wd_desc *desc, int64_t requested, int64_t *count,
                              char *elements)
{
    struct wd_text text = {0};
    cudnnStatus_t status;
    int64_t length;
    WD_REQUIRE(requested >= 0, CUDNN_STATUS_BAD_PARAM, "requestedElementCount=%lld is negative",
               (long long)requested);
    status = wd_backend_text(desc, &text);
    if (status == CUDNN_STATUS_SUCCESS) {
        length = (int64_t)text.length;
        if (requested > 0 && elements) {
            if (requested < length) length = requested;
            memcpy(elements, text.data, (size_t)length);
        }
        if (count) *count = length;
    }
    wd_free(text.data);
    return status;
}

static cudnnStatus_t get(const struct wd_desc *desc, int attribute, int type, int64_t requested,
                         int64_t *count, void *elements)
{
    const struct wd_attribute *row = wd_attribute(attribute);
    WD_TRY(wd_desc_check(desc, "descriptor"));
    if (row && row->descriptor == desc->type && row->rule == WD_ATTR_BOTH &&
        type == CUDNN_TYPE_CHAR && desc->finalized) {
        return get_text(desc, requested, count, elements);
    }
    return wd_desc_get(desc, attribute, type, requested, count, elements);
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t requestedElementCount, int64_t *elementCount,
                                       void *arrayOfElements)
{
    return wd_pass_in(__func__, get(descriptor, (int)attributeName, (int)attributeType,
                                    requestedElementCount, elementCount, arrayOfElements));
}

static cudnnStatus_t finalize(struct wd_desc *desc)
{
    struct wd_built *built = NULL;
    WD_TRY(wd_desc_check(desc, "descriptor"));
    WD_TRY(wd_desc_check_values(desc));
    if (finalizers[desc->type]) {
        cudnnStatus_t status = finalizers[desc->type](desc, &built);
        if (status != CUDNN_STATUS_SUCCESS) {
            wd_built_release(built);
            return status;
        }
    }
    wd_desc_seal(desc, built);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    return wd_pass_in(__func__, finalize(descriptor));
}
