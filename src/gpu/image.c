/* SPDX-License-Identifier: Apache-2.0
 *
 * Images are unpacked by liblzma. A damaged library is found: an image by its hash, the table by its end and
 * by rows that point out of the module. */
#include "gpu/image.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "gpu/arch.h"
#include "gpu/driver.h"
#include "gpu/packed.h"

bool wd_image_is_whole(const struct wd_module *module)
{
    const struct wd_image_row *row = (const void *)module->image;
    size_t bytes = (size_t)(module->image_end - module->image), room = bytes / sizeof *row;
    for (; room > 0 && row->arch[0]; ++row, --room)
        if (row->arch[sizeof row->arch - 1] || row->offset > bytes ||
            row->packed > bytes - row->offset)
            return false;
    return room > 0 && row->offset == 0 && row->packed == 0;
}

const struct wd_image_row *wd_image_find(const struct wd_module *module, int capability)
{
    const struct wd_image_row *best = NULL;
    int best_rank = 0;
    if (module->image == module->image_end || !wd_image_is_whole(module)) return NULL;
    for (const struct wd_image_row *row = (const void *)module->image; row->arch[0]; ++row) {
        int rank = wd_arch_rank(row->arch, capability);
        if (rank > best_rank) best = row, best_rank = rank;
    }
    return best;
}

#if WD_WITH_CUDA

#include <lzma.h>

static void *allocate(void *unused, size_t count, size_t bytes)
{
    (void)unused;
    return wd_alloc(count * bytes);
}

static void release(void *unused, void *data)
{
    (void)unused;
    wd_free(data);
}

int wd_image_unpack(const struct wd_module *module, const struct wd_image_row *row, void **image)
{
    const lzma_allocator allocator = {allocate, release, NULL};
    lzma_options_lzma options = {.dict_size = WD_PACKED_DICTIONARY};
    const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    const uint64_t bytes = (uint64_t)(module->image_end - module->image);
    const uint8_t *packed = module->image;
    struct wd_packed head;
    size_t in = sizeof head, out = 0;
    lzma_ret result;
    uint8_t *to;
    if (row->packed < sizeof head || row->offset > bytes || row->packed > bytes - row->offset)
        return CUDA_ERROR_INVALID_IMAGE;
    packed += row->offset;
    memcpy(&head, packed, sizeof head);
    /* LZMA2 packs by no more than some 7000; a larger size is damage, not to be allocated */
    if (head.bytes / 8192 > row->packed) return CUDA_ERROR_INVALID_IMAGE;
    to = wd_alloc((size_t)head.bytes + 1);
    if (!to) return -1;
    result = lzma_raw_buffer_decode(filters, &allocator, packed, &in, row->packed, to, &out,
                                    (size_t)head.bytes);
    if (result == LZMA_OK && in == row->packed && out == head.bytes &&
        wd_hash(to, out) == head.hash) {
        to[out] = '\0';
        *image = to;
        return CUDA_SUCCESS;
    }
    wd_free(to);
    return result == LZMA_MEM_ERROR ? -1 : CUDA_ERROR_INVALID_IMAGE;
}

#else

int wd_image_unpack(const struct wd_module *module, const struct wd_image_row *row, void **image)
{
    (void)module, (void)row, (void)image;
    return CUDA_ERROR_INVALID_IMAGE; /* a library without kernels has no images */
}

#endif
