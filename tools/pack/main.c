/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_image IN OUT: packs what nvcc made of a .cu file, machine code or PTX (IN ends in .ptx), for the
 * library (gpu/packed.h). Part of the build, not installed. Instructions are 16 bytes, each of them like
 * the same one of others: the places that machine code is packed with say so. Both are shrunk before;
 * what is not understood is packed as it is, with a warning.
 * pack_image --text IN.ptx OUT.ptx: writes the shrunk text alone, for tests and eyes; text that is not
 * understood is an error then. */
#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "code.h"
#include "gpu/packed.h"
#include "ptx.h"

static const char as_it_is[] = "warning: packed as it is";

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    size_t room = 1 << 20;
    char *text = file ? malloc(room) : NULL;
    *bytes = 0;
    while (text) {
        size_t got = fread(text + *bytes, 1, room - *bytes, file);
        char *larger;
        *bytes += got;
        if (*bytes < room) break;
        larger = realloc(text, room *= 2);
        if (!larger) free(text);
        text = larger;
    }
    if (file && ferror(file)) {
        free(text);
        text = NULL;
    }
    if (file) fclose(file);
    return text;
}

/* What the image packs to behind `head` bytes of room, or NULL. */
static uint8_t *pack(const char *image, size_t bytes, bool is_ptx, size_t head, size_t *packed)
{
    lzma_options_lzma options;
    const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    size_t room = lzma_stream_buffer_bound(bytes) + head;
    uint8_t *to = malloc(room);
    if (!to || lzma_lzma_preset(&options, 9 | LZMA_PRESET_EXTREME)) goto fail;
    options.dict_size = WD_PACKED_DICTIONARY;
    options.nice_len = 273;
    options.depth = 1000;
    options.lc = is_ptx ? 3 : 0;
    options.lp = is_ptx ? 0 : 4;
    options.pb = is_ptx ? 0 : 4;
    *packed = head;
    if (lzma_raw_buffer_encode(filters, NULL, (const uint8_t *)image, bytes, to, packed, room) ==
        LZMA_OK)
        return to;
fail:
    free(to);
    return NULL;
}

static bool write_file(const char *path, const uint8_t *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(data, 1, bytes, file) == bytes;
    if (file && fclose(file) != 0) written = false;
    if (!written) {
        fprintf(stderr, "pack_image: writing %s: %s\n", path, strerror(errno));
        remove(path);
    }
    return written;
}

static void warn(const char *path, const char *what, const char *why)
{
    fprintf(stderr, "pack_image: %s: %s: %s\n", path, what, why);
}

/* The text made smaller; NULL, with the warning `what`, where it is not understood. */
static char *shrink(const char *path, const char *image, size_t bytes, size_t *shrunk,
                    const char *what)
{
    const char *why = NULL;
    char *small = wd_ptx_shrink(image, bytes, shrunk, &why);
    if (!small) warn(path, what, why);
    return small;
}

/* Writes what of the image the library gets: a head, and what it packs to. */
static bool write_packed(const char *path, const char *image, size_t bytes, bool is_ptx)
{
    const struct wd_packed head = {bytes, wd_hash(image, bytes)};
    size_t packed = 0;
    uint8_t *data = pack(image, bytes, is_ptx, sizeof head, &packed);
    bool written = false;
    if (data) {
        memcpy(data, &head, sizeof head);
        written = write_file(path, data, packed);
    } else {
        fprintf(stderr, "pack_image: packing %s fails\n", path);
    }
    free(data);
    return written;
}

int main(int argc, char **argv)
{
    bool as_text = argc > 1 && !strcmp(argv[1], "--text"), is_ptx, written = false;
    size_t bytes = 0, shrunk = 0, length;
    const char *in, *out;
    char *image, *small = NULL;
    if (argc != (as_text ? 4 : 3)) {
        fputs("usage: pack_image IN OUT\n       pack_image --text IN.ptx OUT.ptx\n", stderr);
        return 2;
    }
    in = argv[argc - 2], out = argv[argc - 1];
    length = strlen(in);
    is_ptx = length > 4 && !strcmp(in + length - 4, ".ptx");
    image = read_file(in, &bytes);
    if (!image) {
        fprintf(stderr, "pack_image: reading %s: %s\n", in, strerror(errno));
        return 1;
    }
    if (as_text) {
        small = shrink(in, image, bytes, &shrunk, "not understood");
        written = small && write_file(out, (const uint8_t *)small, shrunk);
    } else {
        const char *why;
        if (is_ptx) small = shrink(in, image, bytes, &shrunk, as_it_is);
        else if (!wd_code_shrink(image, bytes, &why)) warn(in, as_it_is, why);
        written = write_packed(out, small ? small : image, small ? shrunk : bytes, is_ptx);
    }
    free(small);
    free(image);
    return !written;
}
