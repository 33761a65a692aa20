/* SPDX-License-Identifier: Apache-2.0
 *
 * Sections of a cubin that nobody needs who runs it: frames, and their relocations, whatever these are called (.rel for some
 * architectures, .rela for others). All that is read is checked before the first byte changes, and nothing that changes is read
 * again. Headers are copied out and back, since an image may lie anywhere. */
#include "code.h"

#include <elf.h>
#include <string.h>

#define FRAMES ".debug_frame"

struct code {
    char *image;
    size_t bytes;
    Elf64_Ehdr head;
};

static bool lies_within(uint64_t at, uint64_t length, size_t bytes)
{
    return at <= bytes && length <= bytes - at;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static Elf64_Shdr section_of(const struct code *c, size_t i)
{
    Elf64_Shdr s;
    memcpy(&s, c->image + c->head.e_shoff + i * sizeof s, sizeof s);
    return s;
}

static bool is_frames(const struct code *c, size_t i)
{
    const Elf64_Shdr names = section_of(c, c->head.e_shstrndx);
    return !strcmp(c->image + names.sh_offset + section_of(c, i).sh_name, FRAMES);
}

/* Of sections whose names are checked. */
static bool is_unneeded(const struct code *c, size_t i)
{
    const Elf64_Shdr s = section_of(c, i);
    if (s.sh_type == SHT_REL || s.sh_type == SHT_RELA)
        return s.sh_info < c->head.e_shnum && is_frames(c, s.sh_info);
    return is_frames(c, i);
}

static const char *fault_of_head(const struct code *c)
{
    const Elf64_Ehdr *head = &c->head;
    Elf64_Shdr names;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
        return "no ELF of 64 bits";
    if (head->e_shentsize != sizeof(Elf64_Shdr) ||
        !lies_within(head->e_shoff, head->e_shnum * sizeof(Elf64_Shdr), c->bytes))
        return "no table of sections";
    if (head->e_shstrndx >= head->e_shnum) return "sections have no names";
    names = section_of(c, head->e_shstrndx);
    if (names.sh_size == 0 || !lies_within(names.sh_offset, names.sh_size, c->bytes) ||
        c->image[names.sh_offset + names.sh_size - 1] != '\0')
        return "sections have no names";
    for (size_t i = 0; i < head->e_shnum; ++i)
        if (section_of(c, i).sh_name >= names.sh_size)
            return "a section's name is beyond all names";
    return NULL;
}

/* Of a section that is to be emptied. */
static const char *fault_of(const struct code *c, const Elf64_Shdr *s)
{
    const Elf64_Shdr names = section_of(c, c->head.e_shstrndx);
    if (s->sh_type == SHT_NOBITS || !lies_within(s->sh_offset, s->sh_size, c->bytes))
        return "a section is beyond the end";
    if (overlap(s->sh_offset, s->sh_size, 0, sizeof c->head) ||
        overlap(s->sh_offset, s->sh_size, names.sh_offset, names.sh_size) ||
        overlap(s->sh_offset, s->sh_size, c->head.e_shoff, c->head.e_shnum * sizeof names))
        return "a section lies over others";
    return NULL;
}

/* Which sections these are is asked before the first of them changes: their bytes, and no name, type or place. */
static void empty(struct code *c, size_t i)
{
    Elf64_Shdr s = section_of(c, i);
    memset(c->image + s.sh_offset, 0, s.sh_size);
    s.sh_size = 0;
    memcpy(c->image + c->head.e_shoff + i * sizeof s, &s, sizeof s);
}

bool wd_code_shrink(char *image, size_t bytes, const char **why)
{
    struct code c = {.image = image, .bytes = bytes};
    *why = "no head";
    if (bytes < sizeof c.head) return false;
    memcpy(&c.head, image, sizeof c.head);
    *why = fault_of_head(&c);
    for (size_t i = 0; !*why && i < c.head.e_shnum; ++i) {
        const Elf64_Shdr s = section_of(&c, i);
        if (is_unneeded(&c, i)) *why = fault_of(&c, &s);
    }
    for (size_t i = 0; !*why && i < c.head.e_shnum; ++i)
        if (is_unneeded(&c, i)) empty(&c, i);
    return !*why;
}
