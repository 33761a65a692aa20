/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's devices and contexts: primary ones counted by device, others made and destroyed,
 * and a stack for each thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver/internal.h"

enum { STACK_MAX = 64 };

static struct CUctx_st primary[DEVICES_MAX];
static struct CUctx_st *contexts; /* the others, dead ones too */

static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int depth;

CUcontext fake_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult fake_need_context(CUcontext *context)
{
    *context = fake_current();
    if (!*context)
        return fake_problem(CUDA_ERROR_INVALID_CONTEXT, "a call needs a current context");
    if ((*context)->mark != MARK_CONTEXT) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return CUDA_SUCCESS;
}

static bool is_device(CUdevice device)
{
    return device >= 0 && device < fake_device_count();
}

CUresult cuInit(unsigned int flags)
{
    CUresult result = fake_begin("cuInit", CALL_BEFORE_INIT);
    if (result == CUDA_SUCCESS && flags != 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = fake_init_result();
    if (result == CUDA_SUCCESS && fake_device_count() == 0) result = CUDA_ERROR_NO_DEVICE;
    if (result == CUDA_SUCCESS) fake_mark_initialised();
    return fake_end(result);
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult result = fake_begin("cuDriverGetVersion", CALL_BEFORE_INIT);
    if (result == CUDA_SUCCESS) *version = fake_version();
    return fake_end(result);
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = fake_begin("cuDeviceGetCount", CALL_PLAIN);
    if (result == CUDA_SUCCESS) *count = fake_device_count();
    return fake_end(result);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = fake_begin("cuDeviceGet", CALL_PLAIN);
    if (result == CUDA_SUCCESS && !is_device(ordinal)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) *device = ordinal;
    return fake_end(result);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    CUresult result = fake_begin("cuDeviceGetName", CALL_PLAIN);
    if (result == CUDA_SUCCESS && !is_device(device)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) snprintf(name, (size_t)size, "Fake GPU %d", device);
    return fake_end(result);
}

/* The figures of an H200, so that what is planned for it is planned here. */
static CUresult attribute_of(int *value, CUdevice_attribute attribute)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = fake_device_processors(); break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 62914560; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = fake_device_capability() / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = fake_device_capability() % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 233472; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = fake_device_capability() >= 90; break;
    default:
        return fake_problem(CUDA_ERROR_INVALID_VALUE, "unknown device attribute %d", attribute);
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = fake_begin("cuDeviceGetAttribute", CALL_PLAIN);
    if (result == CUDA_SUCCESS && !is_device(device)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) result = attribute_of(value, attribute);
    return fake_end(result);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = fake_begin("cuDeviceTotalMem", CALL_PLAIN);
    if (result == CUDA_SUCCESS && !is_device(device)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) *bytes = fake_device_memory();
    return fake_end(result);
}

static void start_context(struct CUctx_st *context, CUdevice device)
{
    context->mark = MARK_CONTEXT;
    context->device = device;
    context->id = fake_next_id();
}

static void end_context(struct CUctx_st *context)
{
    fake_flush();
    fake_stream_drop_context(context);
    fake_memory_drop_context(context);
    context->mark = MARK_DEAD;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = fake_begin("cuDevicePrimaryCtxRetain", CALL_PLAIN);
    if (result == CUDA_SUCCESS && !is_device(device)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) {
        struct CUctx_st *it = &primary[device];
        if (it->references == 0) start_context(it, device);
        it->primary = true;
        it->references += 1;
        *context = it;
    }
    return fake_end(result);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = fake_begin("cuDevicePrimaryCtxRelease", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS && !is_device(device)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) {
        if (primary[device].references == 0) {
            result = fake_problem(CUDA_ERROR_INVALID_CONTEXT,
                                  "the primary context of device %d is released too often", device);
        } else if (--primary[device].references == 0) {
            end_context(&primary[device]);
        }
    }
    return fake_end(result);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    CUresult result = fake_begin("cuCtxCreate", CALL_PLAIN);
    (void)flags;
    if (result == CUDA_SUCCESS && !is_device(device)) result = CUDA_ERROR_INVALID_DEVICE;
    if (result == CUDA_SUCCESS) {
        struct CUctx_st *it = calloc(1, sizeof *it);
        start_context(it, device);
        it->next = contexts;
        contexts = it;
        stack[depth++] = it;
        *context = it;
    }
    return fake_end(result);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult result = fake_begin("cuCtxDestroy", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS && (!context || context->mark != MARK_CONTEXT || context->primary)) {
        result = fake_problem(CUDA_ERROR_INVALID_CONTEXT, "destroying no context");
    }
    if (result == CUDA_SUCCESS) {
        if (fake_current() == context) depth -= 1;
        end_context(context);
    }
    return fake_end(result);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = fake_begin("cuCtxGetCurrent", CALL_PLAIN);
    *context = NULL;
    if (result == CUDA_SUCCESS) *context = fake_current();
    return fake_end(result);
}

static CUresult check_context(CUcontext context)
{
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->mark == MARK_DEAD) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->mark != MARK_CONTEXT) {
        return fake_problem(CUDA_ERROR_INVALID_CONTEXT, "%p is not a context", (void *)context);
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = fake_begin("cuCtxSetCurrent", CALL_PLAIN);
    if (result == CUDA_SUCCESS && context) result = check_context(context);
    if (result == CUDA_SUCCESS) {
        if (depth > 0) depth -= 1;
        if (context) stack[depth++] = context;
    }
    return fake_end(result);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = fake_begin("cuCtxPushCurrent", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = check_context(context);
    if (result == CUDA_SUCCESS && depth == STACK_MAX) {
        result = fake_problem(CUDA_ERROR_INVALID_CONTEXT, "the context stack overflows");
    }
    if (result == CUDA_SUCCESS) stack[depth++] = context;
    return fake_end(result);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = fake_begin("cuCtxPopCurrent", CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS && depth == 0) {
        result = fake_problem(CUDA_ERROR_INVALID_CONTEXT, "the context stack is empty");
    }
    if (result == CUDA_SUCCESS) {
        depth -= 1;
        if (context) *context = stack[depth];
    }
    return fake_end(result);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext context;
    CUresult result = fake_begin("cuCtxGetDevice", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS) *device = context->device;
    return fake_end(result);
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    CUresult result = fake_begin("cuCtxGetId", CALL_PLAIN);
    if (result == CUDA_SUCCESS && !context) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS) result = check_context(context);
    if (result == CUDA_SUCCESS) *id = context->id;
    return fake_end(result);
}

CUresult cuCtxSynchronize(void)
{
    CUresult result = fake_begin("cuCtxSynchronize", CALL_UNSAFE);
    if (result == CUDA_SUCCESS) fake_flush();
    return fake_end(result);
}

int fakecuda_stack_depth(void)
{
    return depth;
}

int fakecuda_primary_references(int device)
{
    return primary[device].references;
}

int fake_report_contexts(void)
{
    int problems = 0;
    for (int i = 0; i < DEVICES_MAX; ++i) {
        if (primary[i].references > 0) {
            fprintf(stderr, "fake driver: the primary context of device %d is retained %d times\n",
                    i, primary[i].references);
            problems += 1;
        }
    }
    for (struct CUctx_st *it = contexts; it; it = it->next) {
        if (it->mark == MARK_CONTEXT) {
            fprintf(stderr, "fake driver: context %llu of device %d was not destroyed\n",
                    (unsigned long long)it->id, it->device);
            problems += 1;
        }
    }
    if (depth > 0) {
        fprintf(stderr, "fake driver: %d contexts are left on the stack\n", depth);
        problems += 1;
    }
    return problems;
}
