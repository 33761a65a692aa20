/* SPDX-License-Identifier: Apache-2.0
 *
 * Sections of a cubin that nobody needs who runs it. Headers are copied out and back, since an image may lie anywhere. */
#include "code.h"

#include <elf.h>
#include <string.h>

static bool is_unneeded(const char *name)
{
    return !strcmp(name, ".debug_frame") || !strcmp(name, ".rela.debug_frame");
}

static bool lies_within(uint64_t at, uint64_t length, size_t bytes)
{
    return at <= bytes && length <= bytes - at;
}

static Elf64_Shdr section_of(const char *image, const Elf64_Ehdr *head, size_t i)
{
    Elf64_Shdr s;
    memcpy(&s, image + head->e_shoff + i * sizeof s, sizeof s);
    return s;
}

/* What names sections: of a length that a zero ends. */
static const char *names_of(const char *image, size_t bytes, const Elf64_Ehdr *head, size_t *length)
{
    Elf64_Shdr s;
    if (head->e_shstrndx >= head->e_shnum) return NULL;
    s = section_of(image, head, head->e_shstrndx);
    if (!lies_within(s.sh_offset, s.sh_size, bytes) || s.sh_size == 0) return NULL;
    *length = s.sh_size;
    return image[s.sh_offset + s.sh_size - 1] == '\0' ? image + s.sh_offset : NULL;
}

static const char *fault_of(const char *image, size_t bytes, Elf64_Ehdr *head)
{
    size_t length;
    const char *names;
    if (bytes < sizeof *head) return "no head";
    memcpy(head, image, sizeof *head);
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
        return "no ELF of 64 bits";
    if (head->e_shentsize != sizeof(Elf64_Shdr) ||
        !lies_within(head->e_shoff, head->e_shnum * sizeof(Elf64_Shdr), bytes))
        return "no table of sections";
    names = names_of(image, bytes, head, &length);
    if (!names) return "sections have no names";
    for (size_t i = 0; i < head->e_shnum; ++i) {
        Elf64_Shdr s = section_of(image, head, i);
        if (s.sh_name >= length) return "a section's name is beyond all names";
        if (is_unneeded(names + s.sh_name) && !lies_within(s.sh_offset, s.sh_size, bytes))
            return "a section is beyond the end";
    }
    return NULL;
}

bool wd_code_shrink(char *image, size_t bytes, const char **why)
{
    Elf64_Ehdr head;
    size_t length;
    const char *names;
    *why = fault_of(image, bytes, &head);
    if (*why) return false;
    names = names_of(image, bytes, &head, &length);
    for (size_t i = 0; i < head.e_shnum; ++i) {
        Elf64_Shdr s = section_of(image, &head, i);
        if (!is_unneeded(names + s.sh_name)) continue;
        memset(image + s.sh_offset, 0, s.sh_size);
        s.sh_size = 0;
        memcpy(image + head.e_shoff + i * sizeof s, &s, sizeof s);
    }
    return true;
}
