/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of the tests' own, with images that unpack to a few words. */
#ifndef UNIT_GPU_IMAGES_H
#define UNIT_GPU_IMAGES_H

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "gpu/image.h"
#include "gpu/packed.h"

/* "hello, device" as raw LZMA2: one chunk that is kept as it is, and the end. */
static const unsigned char made_stream[] = "\1\0\014hello, device"; /* the zero is the end */

struct made_images {
    struct wd_image_row rows[8];
    struct wd_packed head;
    unsigned char stream[sizeof made_stream];
};

enum { MADE_PACKED = sizeof(struct wd_packed) + sizeof made_stream };

static inline unsigned char *made_packed(struct made_images *images)
{
    return (unsigned char *)&images->head;
}

/* A module with the same image for each of the architectures. */
static inline struct wd_module made_module(struct made_images *images, const char *const *archs)
{
    memset(images, 0, sizeof *images);
    images->head = (struct wd_packed){13, wd_hash("hello, device", 13)};
    memcpy(images->stream, made_stream, sizeof made_stream);
    for (int i = 0; archs[i]; ++i) {
        memcpy(images->rows[i].arch, archs[i], strlen(archs[i]));
        images->rows[i].offset = offsetof(struct made_images, head);
        images->rows[i].packed = MADE_PACKED;
    }
    return (struct wd_module){
        "made", (const unsigned char *)images, (const unsigned char *)(images + 1), {NULL}};
}

#endif
