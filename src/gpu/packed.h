/* SPDX-License-Identifier: Apache-2.0
 *
 * A packed image, as tools/pack writes it when the library is built and gpu/image.c reads it: this head, then
 * one raw LZMA2 stream. (Of liblzma the raw decoder alone is linked: its stream formats bring constructors.) */
#ifndef WD_GPU_PACKED_H
#define WD_GPU_PACKED_H

#include <stdint.h>

struct wd_packed {
    uint64_t bytes; /* of the image */
    uint64_t hash;  /* of the image, by wd_hash of the same build */
};

enum { WD_PACKED_DICTIONARY = 4 << 20 };

#endif
