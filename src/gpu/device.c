/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the GPUs' facts. Written once, under the probe's once; read freely afterwards. */
#include "gpu/device.h"

#include "gpu/gpu.h"

enum { DEVICES_MAX = 64 };

static struct {
    CUdevice handle;
    struct wd_device facts;
} table[DEVICES_MAX];
static int table_count;

static CUresult read_facts(CUdevice handle, struct wd_device *facts, const char **function)
{
    enum { MAJOR, MINOR, PROCESSORS, SHARED_BLOCK, SHARED_PROCESSOR, L2, CLUSTER, MEET, COUNT };
    static const CUdevice_attribute wanted[COUNT] = {
        [MAJOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        [MINOR] = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        [PROCESSORS] = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        [SHARED_BLOCK] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        [SHARED_PROCESSOR] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        [L2] = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
        [CLUSTER] = CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,
        [MEET] = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
    };
    int value[COUNT];
    size_t memory = 0;
    CUresult result;
    *function = "cuDeviceGetAttribute";
    for (int i = 0; i < COUNT; ++i) {
        result = wd_cu.cuDeviceGetAttribute(&value[i], wanted[i], handle);
        if (result != CUDA_SUCCESS) return result;
    }
    *function = "cuDeviceTotalMem";
    result = wd_cu.cuDeviceTotalMem(&memory, handle);
    if (result != CUDA_SUCCESS) return result;
    facts->kind = WD_GPU;
    facts->capability = 10 * value[MAJOR] + value[MINOR];
    facts->multiprocessors = value[PROCESSORS];
    facts->shared_per_block = value[SHARED_BLOCK];
    facts->shared_per_processor = value[SHARED_PROCESSOR];
    facts->l2_bytes = value[L2];
    facts->memory_bytes = (int64_t)memory;
    facts->cooperative = value[CLUSTER] != 0;
    facts->grids_meet = value[MEET] != 0;
    return CUDA_SUCCESS;
}

CUresult wd_devices_read(int count, const char **function)
{
    if (count > DEVICES_MAX) count = DEVICES_MAX;
    for (int i = 0; i < count; ++i) {
        CUresult result;
        *function = "cuDeviceGet";
        result = wd_cu.cuDeviceGet(&table[i].handle, i);
        if (result != CUDA_SUCCESS) return result;
        table[i].facts.ordinal = i;
        result = read_facts(table[i].handle, &table[i].facts, function);
        if (result != CUDA_SUCCESS) return result;
    }
    table_count = count;
    return CUDA_SUCCESS;
}

const struct wd_device *wd_device_find(CUdevice device)
{
    for (int i = 0; i < table_count; ++i)
        if (table[i].handle == device) return &table[i].facts;
    return NULL;
}

const struct wd_device *wd_device_at(int ordinal)
{
    return ordinal >= 0 && ordinal < table_count ? &table[ordinal].facts : NULL;
}
