/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's kernels: registered by symbol, found in any library, checked when launched as a
 * real launch would be, and run through their twins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver/internal.h"

enum {
    SHARED_DEFAULT = 49152,
    SHARED_MAX = 232448,
    THREADS_MAX = 1024,
    CLUSTER_MAX = 8,
    CLUSTER_LARGE_MAX = 16, /* where the kernel is allowed more */
};

static struct CUlib_st the_library_mark = {MARK_LIBRARY};
static struct CUkern_st *kernels;
static uint64_t launches;

static struct CUkern_st *find(const char *symbol)
{
    struct CUkern_st *it = kernels;
    while (it && strcmp(it->symbol, symbol) != 0) it = it->next;
    return it;
}

void fakecuda_register_kernel(const char *symbol, fakecuda_run run, void *user,
                              const size_t *param_sizes, int count)
{
    struct CUkern_st *it;
    fake_lock();
    it = find(symbol);
    if (!it) {
        it = calloc(1, sizeof *it);
        it->mark = MARK_KERNEL;
        snprintf(it->symbol, sizeof it->symbol, "%s", symbol);
        it->next = kernels;
        kernels = it;
    }
    it->run = run;
    it->user = user;
    it->param_count = count;
    for (int i = 0; i < count; ++i) it->param_size[i] = param_sizes[i];
    for (int i = 0; i < DEVICES_MAX; ++i) {
        it->dynamic_shared[i] = SHARED_DEFAULT;
        it->large_clusters[i] = false;
    }
    fake_unlock();
}

void fakecuda_kernel_shared(const char *symbol, int bytes)
{
    CUkernel it;
    fake_lock();
    it = find(symbol);
    it->fixed_shared = bytes;
    for (int i = 0; i < DEVICES_MAX; ++i) it->dynamic_shared[i] = SHARED_DEFAULT - bytes;
    fake_unlock();
}

void fakecuda_kernel_launch(const char *symbol, struct fakecuda_launch *launch)
{
    fake_lock();
    *launch = find(symbol)->latest;
    fake_unlock();
}

uint64_t fakecuda_launches(void)
{
    uint64_t result = launches;
    launches = 0;
    return result;
}

int fakecuda_take_launched(char *text, int size)
{
    int length = 0;
    fake_lock();
    fake_flush();
    for (struct CUkern_st *it = kernels; it; it = it->next) {
        for (int part = 0; part < PARTS_MAX; ++part) {
            if (!it->fresh[part]) continue;
            it->fresh[part] = false;
            length += snprintf(
                length < size ? text + length : NULL, length < size ? (size_t)(size - length) : 0,
                part > 0 ? "%s%s:%d" : "%s%s", length > 0 ? " " : "", it->symbol, part - 1);
        }
    }
    fake_unlock();
    return length;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit,
                           void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                           void **values, unsigned int count)
{
    CUresult result = fake_begin("cuLibraryLoadData", CALL_UNSAFE);
    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    if (result == CUDA_SUCCESS && !code) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *library = &the_library_mark;
    return fake_end(result);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = fake_begin("cuLibraryGetKernel", CALL_UNSAFE);
    if (result == CUDA_SUCCESS && (!library || library->mark != MARK_LIBRARY)) {
        result = fake_problem(CUDA_ERROR_INVALID_HANDLE, "no library holds kernel %s", name);
    }
    if (result == CUDA_SUCCESS) {
        *kernel = find(name);
        if (!*kernel) result = CUDA_ERROR_NOT_FOUND;
    }
    return fake_end(result);
}

/* A function is its kernel by another name: shifted, so that mixing the two up is found out. */
static CUfunction function_of(CUkernel kernel)
{
    return (CUfunction)((char *)kernel + 1);
}

static CUkernel kernel_of(CUfunction function)
{
    uintptr_t address = (uintptr_t)function & ~(uintptr_t)1;
    CUkernel kernel = (CUkernel)address;
    return kernel && kernel->mark == MARK_KERNEL ? kernel : NULL;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUcontext context;
    CUresult result = fake_begin("cuKernelGetFunction", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS) *function = function_of(kernel);
    return fake_end(result);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device)
{
    CUresult result = fake_begin("cuKernelGetAttribute", CALL_PLAIN);
    if (result == CUDA_SUCCESS) {
        if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) *value = kernel->fixed_shared;
        else *value = kernel->dynamic_shared[device];
    }
    return fake_end(result);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device)
{
    CUresult result = fake_begin("cuKernelSetAttribute", CALL_PLAIN);
    if (result == CUDA_SUCCESS &&
        attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        kernel->large_clusters[device] = value != 0;
        return fake_end(result);
    }
    if (result == CUDA_SUCCESS && (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
                                   value > SHARED_MAX - kernel->fixed_shared)) {
        result = fake_problem(CUDA_ERROR_INVALID_VALUE, "kernel attribute %d cannot be %d",
                              attribute, value);
    }
    if (result == CUDA_SUCCESS) kernel->dynamic_shared[device] = value;
    return fake_end(result);
}

/* Whether all blocks are there at once, as far as threads and shared memory say it. */
static CUresult check_room(const struct CUkern_st *kernel, const struct fakecuda_launch *launch)
{
    enum { PROCESSORS = 132, THREADS = 2048, BLOCKS = 32, SHARED = 233472, RESERVED = 1024 };
    const unsigned int *grid = launch->grid;
    const unsigned int *block = launch->block;
    unsigned int room = THREADS / (block[0] * block[1] * block[2]);
    unsigned int shared = SHARED / (launch->shared + (unsigned int)kernel->fixed_shared + RESERVED);
    if (room > BLOCKS) room = BLOCKS;
    if (room > shared) room = shared;
    if ((uint64_t)grid[0] * grid[1] * grid[2] <= (uint64_t)room * PROCESSORS) return CUDA_SUCCESS;
    return fake_problem(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                        "%s: %u blocks that meet, of %u threads and %u bytes of shared memory",
                        kernel->symbol, grid[0] * grid[1] * grid[2], block[0], launch->shared);
}

static CUresult check_launch(const struct CUkern_st *kernel, const struct fakecuda_launch *launch,
                             CUdevice device)
{
    const unsigned int *grid = launch->grid;
    const unsigned int *block = launch->block;
    const unsigned int cluster_max =
        kernel->large_clusters[device] ? CLUSTER_LARGE_MAX : CLUSTER_MAX;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65535 ||
        grid[2] > 65535) {
        return fake_problem(CUDA_ERROR_INVALID_VALUE, "%s: grid %u %u %u", kernel->symbol, grid[0],
                            grid[1], grid[2]);
    }
    if (threads == 0 || threads > THREADS_MAX || block[2] > 64) {
        return fake_problem(CUDA_ERROR_INVALID_VALUE, "%s: block %u %u %u", kernel->symbol,
                            block[0], block[1], block[2]);
    }
    if ((int64_t)launch->shared > kernel->dynamic_shared[device]) {
        return fake_problem(CUDA_ERROR_INVALID_VALUE,
                            "%s: %u bytes of shared memory, allowed are %d", kernel->symbol,
                            launch->shared, kernel->dynamic_shared[device]);
    }
    if (launch->cluster > 1 && (fake_device_capability() < 90 || launch->cluster > cluster_max ||
                                grid[0] % launch->cluster != 0)) {
        return fake_problem(CUDA_ERROR_INVALID_CLUSTER_SIZE, "%s: clusters of %u in a grid of %u",
                            kernel->symbol, launch->cluster, grid[0]);
    }
    return launch->meets ? check_room(kernel, launch) : CUDA_SUCCESS;
}

/* Checks a launch and makes a piece of work of it, with its own copy of the parameters. */
CUresult fake_kernel_work(CUfunction function, const struct fakecuda_launch *launch, void **params,
                          CUcontext context, struct CUgraphNode_st *work)
{
    CUkernel kernel = kernel_of(function);
    size_t used = 0;
    CUresult result;
    if (!kernel)
        return fake_problem(CUDA_ERROR_INVALID_HANDLE, "%p is no kernel", (void *)function);
    result = check_launch(kernel, launch, context->device);
    if (result != CUDA_SUCCESS) return result;
    work->type = CU_GRAPH_NODE_TYPE_KERNEL;
    work->context = context;
    work->kernel = kernel;
    work->launch = *launch;
    for (int i = 0; i < kernel->param_count; ++i) {
        size_t size = kernel->param_size[i];
        if (!params || !params[i] || !(fake_is_idle() || fake_readable(params[i], size))) {
            return fake_problem(CUDA_ERROR_INVALID_VALUE,
                                "%s: parameter %d (%zu bytes) is not there", kernel->symbol, i,
                                size);
        }
        if (used + size > PARAM_BYTES_MAX) {
            return fake_problem(CUDA_ERROR_INVALID_VALUE, "%s: parameters of more than %d bytes",
                                kernel->symbol, PARAM_BYTES_MAX);
        }
        work->params[i] = work->values + used;
        memcpy(work->params[i], params[i], size);
        used += (size + 63) / 64 * 64;
    }
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, const struct fakecuda_launch *how, CUstream stream,
                       void **params, void **extra)
{
    struct CUgraphNode_st work = {.mark = MARK_NODE};
    CUcontext context;
    CUresult result = fake_need_context(&context);
    if (result == CUDA_SUCCESS && extra) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = fake_kernel_work(function, how, params, context, &work);
    if (result == CUDA_SUCCESS) work.kernel->latest = *how;
    if (result == CUDA_SUCCESS) result = fake_submit(stream, &work);
    return result;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream, void **params,
                        void **extra)
{
    struct fakecuda_launch how = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, 1, shared, 0, 0};
    CUresult result = fake_begin("cuLaunchKernel", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = launch(function, &how, stream, params, extra);
    return fake_end(result);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    struct fakecuda_launch how = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                                  {config->blockDimX, config->blockDimY, config->blockDimZ},
                                  1,
                                  config->sharedMemBytes,
                                  0,
                                  0};
    CUresult result = fake_begin("cuLaunchKernelEx", CALL_PLAIN);
    for (unsigned int i = 0; i < config->numAttrs; ++i) {
        const CUlaunchAttribute *it = &config->attrs[i];
        if (it->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) how.cluster = it->value.clusterDim.x;
        if (it->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) how.meets = it->value.cooperative != 0;
        if (it->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            how.overlaps = it->value.programmaticStreamSerializationAllowed != 0;
    }
    if (result == CUDA_SUCCESS) result = launch(function, &how, config->hStream, params, extra);
    return fake_end(result);
}

static CUresult submit_fill(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream)
{
    struct CUgraphNode_st work = {.mark = MARK_NODE, .type = CU_GRAPH_NODE_TYPE_MEMSET};
    work.fill = (CUDA_MEMSET_NODE_PARAMS){
        .dst = to, .value = byte, .elementSize = 1, .width = bytes, .height = 1};
    if (!fake_memory_is_valid((void *)(uintptr_t)to, bytes, false)) {
        return fake_problem(CUDA_ERROR_INVALID_VALUE, "filling %zu bytes at %p", bytes,
                            (void *)(uintptr_t)to);
    }
    return fake_submit(stream, &work);
}

static CUresult submit_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, bool allow_host,
                            CUstream stream)
{
    struct CUgraphNode_st work = {.mark = MARK_NODE, .type = CU_GRAPH_NODE_TYPE_MEMCPY};
    work.transfer = (CUDA_MEMCPY3D){
        .dstDevice = to, .srcDevice = from, .WidthInBytes = bytes, .Height = 1, .Depth = 1};
    if (!fake_memory_is_valid((void *)(uintptr_t)to, bytes, allow_host) ||
        !fake_memory_is_valid((void *)(uintptr_t)from, bytes, allow_host)) {
        return fake_problem(CUDA_ERROR_INVALID_VALUE, "copying %zu bytes from %p to %p", bytes,
                            (void *)(uintptr_t)from, (void *)(uintptr_t)to);
    }
    return fake_submit(stream, &work);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream)
{
    CUresult result = fake_begin("cuMemsetD8Async", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = submit_fill(to, byte, bytes, stream);
    return fake_end(result);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUresult result = fake_begin("cuMemcpyDtoDAsync", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = submit_copy(to, from, bytes, false, stream);
    return fake_end(result);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUresult result = fake_begin("cuMemcpyAsync", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = submit_copy(to, from, bytes, true, stream);
    return fake_end(result);
}

/* A line of the work and, of a kernel, one for each of its parameters, in words of four bytes. */
void fake_log_work(const struct CUgraphNode_st *work)
{
    FILE *log = fake_log();
    const struct fakecuda_launch *how = &work->launch;
    if (!log) return;
    if (work->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        fprintf(log, "fill %zu bytes at %llx with %02x\n", work->fill.width, work->fill.dst,
                work->fill.value);
        return;
    }
    if (work->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        fprintf(log, "copy %zu bytes from %llx to %llx\n", work->transfer.WidthInBytes,
                work->transfer.srcDevice, work->transfer.dstDevice);
        return;
    }
    fprintf(log, "%s grid %u %u %u block %u %u %u cluster %u shared %u%s\n", work->kernel->symbol,
            how->grid[0], how->grid[1], how->grid[2], how->block[0], how->block[1], how->block[2],
            how->cluster, how->shared, how->meets ? " meets" : "");
    for (int i = 0; i < work->kernel->param_count; ++i) {
        for (size_t at = 0; at < work->kernel->param_size[i]; at += sizeof(uint32_t)) {
            uint32_t word = 0;
            memcpy(&word, (const char *)work->params[i] + at, sizeof word);
            fprintf(log, " %x", word);
        }
        fputc('\n', log);
    }
}

void fake_count_launch(struct CUgraphNode_st *work)
{
    if (work->type == CU_GRAPH_NODE_TYPE_KERNEL) launches += 1;
}

void fake_run_work(struct CUgraphNode_st *work)
{
    if (fake_is_idle()) return;
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        work->kernel->fresh[fake_part_of(work->kernel, work->params)] = true;
        work->kernel->run(work->kernel->user, work->params, &work->launch);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (!fake_memory_is_valid((void *)(uintptr_t)work->fill.dst, work->fill.width, false)) {
            fake_problem(CUDA_SUCCESS, "a fill ran after its memory was freed");
            break;
        }
        memset((void *)(uintptr_t)work->fill.dst, (int)work->fill.value, work->fill.width);
        break;
    default:
        if (!fake_memory_is_valid((void *)(uintptr_t)work->transfer.dstDevice,
                                  work->transfer.WidthInBytes, true) ||
            !fake_memory_is_valid((void *)(uintptr_t)work->transfer.srcDevice,
                                  work->transfer.WidthInBytes, true)) {
            fake_problem(CUDA_SUCCESS, "a copy ran after its memory was freed");
            break;
        }
        memcpy((void *)(uintptr_t)work->transfer.dstDevice,
               (const void *)(uintptr_t)work->transfer.srcDevice, work->transfer.WidthInBytes);
    }
}
