/* SPDX-License-Identifier: Apache-2.0
 *
 * A module's images: what its kernels were compiled to, machine code and PTX of each architecture, each
 * packed on its own (gpu/packed.h), so that a process unpacks what its device runs and nothing else. */
#ifndef WD_GPU_IMAGE_H
#define WD_GPU_IMAGE_H

#include "base/queue.h"

/* A row of the table that a module's image begins with (cmake/images.S.in); the last has no name. */
struct wd_image_row {
    char arch[16];   /* as nvcc spells it: sm_90a, compute_90 */
    uint64_t offset; /* from the table's beginning, bytes */
    uint64_t packed; /* bytes */
};

/* Whether the table ends and its rows lie within the module, which has a table: a damaged one may not. */
bool wd_image_is_whole(const struct wd_module *module);

/* The image of a module that a device of this capability (10 * major + minor) runs best; NULL where none
 * does, where the table is damaged, or where the library was built without kernels. */
const struct wd_image_row *wd_image_find(const struct wd_module *module, int capability);

/* Unpacks it for the driver: a cubin, or PTX that ends in a zero. To be freed by wd_free. The driver's
 * word for what is wrong: CUDA_ERROR_INVALID_IMAGE where it is damaged, -1 where there is no host memory. */
int wd_image_unpack(const struct wd_module *module, const struct wd_image_row *row, void **image);

#endif
