/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the entry points: checks with the public function's name in the text, life and death of
 * legacy descriptors, and the run of a one-node graph. */
#include "api/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "cpu/cpu.h"
#include "gpu/gpu.h"

cudnnStatus_t wd_fail_in(const char *function, cudnnStatus_t status, const char *format, ...)
{
    char text[WD_ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return wd_fail_public(function, status, text);
}

cudnnStatus_t wd_pass_in(const char *function, cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_SUCCESS) return status;
    return wd_fail_public(function, status, wd_last_error());
}

cudnnStatus_t wd_pass_single(const char *function, const struct wd_single *single,
                             cudnnStatus_t status)
{
    return wd_pass_in(function,
                      wd_name_slots(single->node.op, single->desc, single->attr_desc, status));
}

void wd_bind(struct wd_single *single, int slot, const struct wd_tensor *tensor,
             const char *tensor_name, const void *data, const char *data_name)
{
    wd_single_bind(single, slot, tensor, data, data_name);
    single->desc[slot] = tensor_name;
}

cudnnStatus_t wd_handle_validate(const char *name, cudnnHandle_t handle)
{
    WD_REQUIRE(handle, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null", name);
    WD_REQUIRE(handle->magic == WD_HANDLE_MAGIC, CUDNN_STATUS_BAD_PARAM,
               "%s %p is none of this library's, or was destroyed", name, (void *)handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_handle(const char *function, cudnnHandle_t handle)
{
    struct wd_log_context context = {.function = function, .handle = handle};
    cudnnStatus_t status = wd_handle_validate("handle", handle);
    if (status != CUDNN_STATUS_SUCCESS) {
        wd_log_set_context(NULL);
        return wd_pass_in(function, status);
    }
    context.device = handle->queue->device->ordinal;
    if (handle->queue->device->kind == WD_GPU) context.stream = wd_gpu_queue_stream(handle->queue);
    wd_log_set_context(&context);
    return CUDNN_STATUS_SUCCESS;
}

/* "convolution" */
static const char *kind_name(enum wd_descriptor_type type)
{
    switch (type) {
    case WD_DESC_TENSOR: return "tensor";
    case WD_DESC_FILTER: return "filter";
    case WD_DESC_CONVOLUTION: return "convolution";
    case WD_DESC_POOLING: return "pooling";
    case WD_DESC_ACTIVATION: return "activation";
    case WD_DESC_DROPOUT: return "dropout";
    case WD_DESC_REDUCE: return "reduce tensor";
    case WD_DESC_OP_TENSOR: return "op tensor";
    case WD_DESC_LRN: return "LRN";
    case WD_DESC_TRANSFORM: return "tensor transform";
    case WD_DESC_SPATIAL: return "spatial transformer";
    case WD_DESC_CTC: return "CTC loss";
    case WD_DESC_RNN: return "RNN";
    case WD_DESC_RNN_DATA: return "RNN data";
    case WD_DESC_ATTENTION: return "attention";
    case WD_DESC_SEQUENCE: return "sequence data";
    case WD_DESC_FUSED_CONST: return "fused ops constant parameter pack";
    case WD_DESC_FUSED_VARIANT: return "fused ops variant parameter pack";
    case WD_DESC_FUSED_PLAN: return "fused ops plan";
    case WD_DESC_ALGORITHM: return "algorithm";
    }
    return "known";
}

cudnnStatus_t wd_descriptor_create(const char *function, const char *argument,
                                   enum wd_descriptor_type type, size_t bytes, void *result)
{
    struct wd_descriptor *descriptor;
    if (!result) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                          "%s, the place for the descriptor, is null", argument);
    }
    descriptor = wd_alloc(bytes);
    if (!descriptor) {
        return wd_fail_in(function, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                          "no host memory for a %s descriptor of %zu bytes", kind_name(type),
                          bytes);
    }
    descriptor->type = (uint32_t)type;
    memcpy(result, &descriptor, sizeof descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_descriptor_destroy(const char *function, const char *argument,
                                    enum wd_descriptor_type type, void *descriptor)
{
    struct wd_descriptor *head = descriptor;
    if (!head) return CUDNN_STATUS_SUCCESS;
    WD_TRY(wd_check_descriptor(function, argument, type, descriptor, 0));
    head->type = 0;
    wd_free(head);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_descriptor(const char *function, const char *argument,
                                  enum wd_descriptor_type type, const void *descriptor,
                                  int must_be_set)
{
    const struct wd_descriptor *head = descriptor;
    if (!head) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s is null", argument);
    }
    if (head->type != (uint32_t)type) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "%s %p is no %s descriptor, or was destroyed", argument, descriptor,
                          kind_name(type));
    }
    if (must_be_set && !head->set) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s was created but never set",
                          argument);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_same_dtype(const char *function, const struct cudnnTensorStruct *tensor,
                                  const char *name, const struct cudnnTensorStruct *other,
                                  const char *other_name)
{
    if (tensor->tensor.dtype == other->tensor.dtype) return CUDNN_STATUS_SUCCESS;
    return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM, "%s is %s, but %s is %s", name,
                      wd_dtype_name(tensor->tensor.dtype), other_name,
                      wd_dtype_name(other->tensor.dtype));
}

cudnnStatus_t wd_check_same_tensor(const char *function, const struct cudnnTensorStruct *tensor,
                                   const char *name, const struct cudnnTensorStruct *other,
                                   const char *other_name)
{
    char a[160];
    char b[160];
    if (!wd_tensor_same_dims(&tensor->tensor, &other->tensor)) {
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                          "the dims of %s (%s) differ from those of %s (%s)", name,
                          wd_tensor_text(&tensor->tensor, a, sizeof a), other_name,
                          wd_tensor_text(&other->tensor, b, sizeof b));
    }
    return wd_check_same_dtype(function, tensor, name, other, other_name);
}

struct wd_tensor wd_opaque_bytes(int64_t bytes)
{
    struct wd_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.dtype = CUDNN_DATA_UINT8;
    tensor.flags = WD_OPAQUE;
    tensor.vect_count = 1;
    tensor.rank = 1;
    tensor.dim[0] = bytes;
    tensor.stride[0] = 1;
    return tensor;
}

/* Under WARPDNN_CHECK=1, and on CPU handles while a driver is loaded: do the pointers lie where the
 * handle computes? */
static cudnnStatus_t check_places(const char *function, cudnnHandle_t handle,
                                  const struct wd_single *single)
{
    bool on_cpu = handle->queue->device->kind == WD_CPU;
    const struct wd_op_info *info = wd_op_info(single->node.op);
    if (on_cpu && !wd_gpu_driver_is_loaded()) return CUDNN_STATUS_SUCCESS;
    for (int s = 0; s < info->slot_count; ++s) {
        int index = single->node.slot[s];
        char name[24];
        int owned;
        if (index < 0 || !single->data[index]) continue;
        if (single->tensors[index].flags & WD_BY_VALUE) continue;
        owned = wd_gpu_owns_pointer(on_cpu ? NULL : handle->queue, single->data[index]);
        if (owned < 0 || (owned == 1) == !on_cpu) continue;
        wd_op_slot_name(single->node.op, s, name);
        return wd_fail_in(function, CUDNN_STATUS_BAD_PARAM,
                          "%s %p is %s memory, the handle computes on the %s",
                          single->name[index] ? single->name[index] : name, single->data[index],
                          owned ? "device" : "host", on_cpu ? "CPU" : "GPU");
    }
    return CUDNN_STATUS_SUCCESS;
}

/* The pointers by the names of the function's arguments; the plan knows those of slots only, and has to look
 * (`all` is false) where one without a name does not serve. */
static cudnnStatus_t check_pointers(const struct wd_single *single, bool *all)
{
    for (int t = 0; t < single->graph.tensor_count; ++t) {
        if (wd_pointer_serves(&single->tensors[t], single->data[t])) continue;
        *all = false;
        if (!single->name[t]) continue;
        return wd_pointer_validate(&single->tensors[t], single->data[t], single->name[t]);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* The caller's scratch by the names of the function's arguments. */
static cudnnStatus_t check_workspace(const struct wd_single *single, const struct wd_plan *plan,
                                     const void *workspace, int64_t bytes)
{
    if (!single->workspace || bytes < 0 || plan->workspace == 0) return CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(bytes >= plan->workspace, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
               "%s=%lld is less than the %lld that engine %s needs", single->workspace_size,
               (long long)bytes, (long long)plan->workspace, plan->name);
    WD_REQUIRE(workspace, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
               "%s is null, engine %s needs %lld bytes", single->workspace, plan->name,
               (long long)plan->workspace);
    WD_REQUIRE((uintptr_t)workspace % WD_WORKSPACE_ALIGNMENT == 0,
               CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "%s %p is not aligned to %d bytes",
               single->workspace, workspace, (int)WD_WORKSPACE_ALIGNMENT);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_run(const char *function, cudnnHandle_t handle, struct wd_single *single,
                     void *workspace, int64_t workspace_bytes)
{
    const struct wd_plan *plan;
    struct wd_bindings bindings = {single->data, single->scalars, workspace, workspace_bytes, true};
    cudnnStatus_t status;
    struct wd_queue *queue = handle->queue;
    status = wd_plan_get(queue->device, &single->graph, &plan);
    if (status != CUDNN_STATUS_SUCCESS) return wd_pass_single(function, single, status);
    status = check_pointers(single, &bindings.checked);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = check_workspace(single, plan, workspace, workspace_bytes);
    }
    status = wd_pass_in(function, status);
    if (status == CUDNN_STATUS_SUCCESS && (wd_env()->check || queue->device->kind == WD_CPU)) {
        status = check_places(function, handle, single);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = wd_pass_single(function, single, wd_plan_execute(plan, queue, &bindings));
        if (status == CUDNN_STATUS_SUCCESS) {
            memcpy(handle->last_engine, plan->name, sizeof handle->last_engine);
        }
    }
    wd_plan_release(plan);
    return status;
}

cudnnStatus_t wd_run_workspace(const char *function, cudnnHandle_t handle, struct wd_single *single,
                               size_t *bytes)
{
    const struct wd_plan *plan;
    cudnnStatus_t status = wd_plan_get(handle->queue->device, &single->graph, &plan);
    if (status != CUDNN_STATUS_SUCCESS) return wd_pass_single(function, single, status);
    *bytes = (size_t)plan->workspace;
    wd_plan_release(plan);
    return CUDNN_STATUS_SUCCESS;
}
