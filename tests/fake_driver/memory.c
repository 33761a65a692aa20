/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's memory: host memory between red zones, full of NaN when new. Freed blocks rest a
 * while, so that late writes are found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fake_driver/internal.h"

enum {
    RED_ZONE = 4096,
    RED = 0xa7,
    FRESH = 0xff, /* NaN in every floating-point type */
    FREED = 0xdb,
    POISON_MAX = 64 << 20, /* beyond, memory stays untouched until used */
    RESTING_MAX = 64 << 20,
};

enum block_kind { DEVICE, MANAGED, HOST };

struct block {
    struct block *next;
    unsigned char *base; /* the mapping, red zones included; null: addresses alone */
    unsigned char *data;
    size_t bytes;
    size_t mapped;
    enum block_kind kind;
    CUcontext context;
    bool alive;
};

static struct block *blocks; /* newest first */
static size_t in_use;
static size_t resting;

static struct block *block_at(const void *data)
{
    for (struct block *it = blocks; it; it = it->next)
        if ((const unsigned char *)data >= it->data &&
            (const unsigned char *)data < it->data + it->bytes)
            return it;
    return NULL;
}

static bool is_filled(const unsigned char *data, size_t bytes, unsigned char with)
{
    return bytes == 0 || (data[0] == with && memcmp(data, data + 1, bytes - 1) == 0);
}

/* Whether nobody wrote where nobody may. */
static bool is_intact(const struct block *it)
{
    size_t before = (size_t)(it->data - it->base);
    if (!it->base) return true;
    if (fake_guards_memory()) return it->alive || is_filled(it->data, it->bytes, FREED);
    if (!is_filled(it->base, before, RED)) return false;
    if (!is_filled(it->data + it->bytes, it->mapped - before - it->bytes, RED)) return false;
    if (it->alive || it->bytes > POISON_MAX) return true;
    return is_filled(it->data, it->bytes, FREED);
}

static void check_block(const struct block *it)
{
    if (is_intact(it)) return;
    fake_problem(CUDA_SUCCESS, "%s block of %zu bytes at %p: somebody wrote %s",
                 it->alive ? "a" : "a freed", it->bytes, (void *)it->data,
                 it->alive ? "outside of it" : "to it");
}

static void unlink_block(struct block **link)
{
    struct block *it = *link;
    *link = it->next;
    if (it->base) munmap(it->base, it->mapped);
    free(it);
}

/* Where nothing of this process lies, from the same place on in every run. */
static unsigned char *next_address(size_t room)
{
    static uintptr_t next = (uintptr_t)1 << 45;
    unsigned char *address = (unsigned char *)next;
    next += room + RED_ZONE;
    return address;
}

static void map(struct block *it, size_t room)
{
    const size_t alignment = fake_guards_memory() ? 16 : 256;
    it->mapped = room + 2 * RED_ZONE;
    it->base = mmap(NULL, it->mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (it->base == MAP_FAILED) return;
    /* 256-byte aligned as the driver's, with the end as near to the red zone as that allows; where
     * nobody may read there either, as near as the widest load allows */
    it->data = it->base + RED_ZONE + (room - it->bytes) / alignment * alignment;
    if (fake_guards_memory()) {
        mprotect(it->base, RED_ZONE, PROT_NONE);
        mprotect(it->base + RED_ZONE + room, RED_ZONE, PROT_NONE);
    } else {
        memset(it->base, RED, (size_t)(it->data - it->base));
        memset(it->data + it->bytes, RED, (size_t)(it->base + it->mapped - it->data) - it->bytes);
    }
    if (it->bytes <= POISON_MAX) memset(it->data, FRESH, it->bytes);
}

static CUresult allocate(size_t bytes, enum block_kind kind, CUcontext context, void **data)
{
    size_t page = 4096;
    size_t room = (bytes + page - 1) / page * page;
    struct block *it;
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > fake_device_memory() || in_use > fake_device_memory() - bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    it = calloc(1, sizeof *it);
    it->bytes = bytes;
    it->kind = kind;
    it->context = context;
    it->alive = true;
    if (fake_is_idle() && kind == DEVICE) it->data = next_address(room);
    else map(it, room);
    if (it->base == MAP_FAILED) {
        free(it);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    it->next = blocks;
    blocks = it;
    in_use += bytes;
    *data = it->data;
    return CUDA_SUCCESS;
}

static void release(struct block *it)
{
    check_block(it);
    it->alive = false;
    in_use -= it->bytes;
    resting += it->bytes;
    if (it->base && it->bytes <= POISON_MAX) memset(it->data, FREED, it->bytes);
    while (resting > RESTING_MAX) {
        struct block **oldest = NULL;
        for (struct block **link = &blocks; *link; link = &(*link)->next)
            if (!(*link)->alive) oldest = link;
        resting -= (*oldest)->bytes;
        check_block(*oldest);
        unlink_block(oldest);
    }
}

static CUresult free_block(void *data, bool host)
{
    struct block *it = block_at(data);
    if (!data) return CUDA_SUCCESS;
    if (!it || it->data != data || (it->kind == HOST) != host) {
        return fake_problem(CUDA_ERROR_INVALID_VALUE, "freeing %p, which was not allocated", data);
    }
    if (!it->alive) {
        return fake_problem(CUDA_ERROR_INVALID_VALUE, "freeing %p a second time", data);
    }
    fake_flush(); /* freeing waits for the device */
    release(it);
    return CUDA_SUCCESS;
}

void fake_memory_drop_context(CUcontext context)
{
    struct block *it = blocks;
    while (it) {
        const bool ours = it->context == context;
        if (ours) it->context = NULL;
        if (ours && it->alive) {
            release(it); /* and whatever rests too long, which may be the next */
            it = blocks;
        } else {
            it = it->next;
        }
    }
}

bool fake_readable(const void *data, size_t bytes)
{
    unsigned char sink[256];
    const unsigned char *from = data;
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < sizeof sink ? bytes - done : sizeof sink;
        struct iovec to = {sink, piece};
        struct iovec of = {(void *)(from + done), piece};
        ssize_t got = process_vm_readv(getpid(), &to, 1, &of, 1, 0);
        if (got == -1 && from != NULL) return true; /* cannot be asked here */
        if (got != (ssize_t)piece) return false;
        done += piece;
    }
    return true;
}

/* Whether a kernel or copy may touch these bytes. */
bool fake_memory_is_valid(const void *data, size_t bytes, bool allow_host)
{
    const struct block *it = block_at(data);
    if (!it) return allow_host && data != NULL;
    return it->alive && (size_t)(it->data + it->bytes - (const unsigned char *)data) >= bytes;
}

CUresult cuMemAlloc_v2(CUdeviceptr *data, size_t bytes)
{
    CUcontext context;
    void *memory = NULL;
    CUresult result = fake_begin("cuMemAlloc", CALL_UNSAFE);
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS) result = allocate(bytes, DEVICE, context, &memory);
    if (result == CUDA_SUCCESS) *data = (CUdeviceptr)(uintptr_t)memory;
    return fake_end(result);
}

CUresult cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    CUcontext context;
    CUresult result = fake_begin("cuMemGetInfo", CALL_PLAIN);
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS) {
        *total = fake_device_memory();
        *unused = *total - in_use;
    }
    return fake_end(result);
}

CUresult cuMemAllocManaged(CUdeviceptr *data, size_t bytes, unsigned int flags)
{
    CUcontext context;
    void *memory = NULL;
    CUresult result = fake_begin("cuMemAllocManaged", CALL_UNSAFE);
    (void)flags;
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS) result = allocate(bytes, MANAGED, context, &memory);
    if (result == CUDA_SUCCESS) *data = (CUdeviceptr)(uintptr_t)memory;
    return fake_end(result);
}

CUresult cuMemAllocHost_v2(void **data, size_t bytes)
{
    CUcontext context;
    CUresult result = fake_begin("cuMemAllocHost", CALL_UNSAFE);
    if (result == CUDA_SUCCESS) result = fake_need_context(&context);
    if (result == CUDA_SUCCESS) result = allocate(bytes, HOST, context, data);
    return fake_end(result);
}

CUresult cuMemFree_v2(CUdeviceptr data)
{
    CUresult result = fake_begin("cuMemFree", CALL_UNSAFE | CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS) result = free_block((void *)(uintptr_t)data, false);
    return fake_end(result);
}

CUresult cuMemFreeHost(void *data)
{
    CUresult result = fake_begin("cuMemFreeHost", CALL_UNSAFE | CALL_GIVES_BACK);
    if (result == CUDA_SUCCESS) result = free_block(data, true);
    return fake_end(result);
}

static void answer(const struct block *it, CUpointer_attribute attribute, void *value)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)value = !it                ? 0
                                 : it->kind == HOST ? CU_MEMORYTYPE_HOST
                                                    : CU_MEMORYTYPE_DEVICE;
        return;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(int *)value = it && it->kind == MANAGED; return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = it ? it->context->device : -2; return;
    default: fake_problem(CUDA_SUCCESS, "unknown pointer attribute %d", attribute);
    }
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr data)
{
    CUresult result = fake_begin("cuPointerGetAttributes", CALL_PLAIN);
    if (result == CUDA_SUCCESS) {
        const struct block *it = block_at((const void *)(uintptr_t)data);
        if (it && !it->alive) it = NULL;
        for (unsigned int i = 0; i < count; ++i) answer(it, attributes[i], values[i]);
    }
    return fake_end(result);
}

size_t fakecuda_bytes(void)
{
    return in_use;
}

int fake_report_memory(void)
{
    int problems = 0;
    struct block **link = &blocks;
    while (*link) {
        struct block *it = *link;
        if (!is_intact(it)) {
            fprintf(stderr, "fake driver: %zu bytes at %p: somebody wrote %s\n", it->bytes,
                    (void *)it->data, it->alive ? "outside of them" : "after they were freed");
            problems += 1;
        }
        if (it->alive) {
            fprintf(stderr, "fake driver: %zu bytes at %p were not freed\n", it->bytes,
                    (void *)it->data);
            problems += 1;
            link = &it->next;
        } else { /* seen once is enough */
            resting -= it->bytes;
            unlink_block(link);
        }
    }
    return problems;
}
