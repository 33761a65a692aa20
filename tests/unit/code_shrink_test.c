/* SPDX-License-Identifier: Apache-2.0
 *
 * Machine code made smaller: an ELF image of six sections in memory of its exact size, what becomes of each, and what is
 * refused: at every length that it may be cut to, off any boundary, and with every byte of its head and its table changed, so
 * that the address sanitizer sees what is read or written beside it. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/pack/code.h"

enum { NAMES = 1, FRAME, FIXES, OTHERS, TEXT, TEXT_FIXES, SECTIONS };

static const char names[] =
    "\0.shstrtab\0.debug_frame\0.rel.debug_frame\0.rela.debug_frame\0.text.wd_kernel\0.rel.text";
static const char *const name_of[SECTIONS] = {"",
                                              ".shstrtab",
                                              ".debug_frame",
                                              ".rel.debug_frame",
                                              ".rela.debug_frame",
                                              ".text.wd_kernel",
                                              ".rel.text"};
static const uint32_t type_of[SECTIONS] = {SHT_NULL, SHT_STRTAB,   SHT_PROGBITS, SHT_REL,
                                           SHT_RELA, SHT_PROGBITS, SHT_REL};

struct image {
    Elf64_Ehdr head;
    char names[sizeof names];
    char data[SECTIONS][48];
    Elf64_Shdr section[SECTIONS];
};

static bool is_emptied(int i)
{
    return i == FRAME || i == FIXES || i == OTHERS;
}

static uint32_t name_at(const char *name)
{
    for (uint32_t i = 0; i < sizeof names; ++i)
        if (!strcmp(names + i, name)) return i;
    fail();
    return 0;
}

static void fill(struct image *m)
{
    memset(m, 0, sizeof *m);
    memcpy(m->head.e_ident, ELFMAG, SELFMAG);
    m->head.e_ident[EI_CLASS] = ELFCLASS64;
    m->head.e_shoff = offsetof(struct image, section);
    m->head.e_shentsize = sizeof(Elf64_Shdr);
    m->head.e_shnum = SECTIONS;
    m->head.e_shstrndx = NAMES;
    memcpy(m->names, names, sizeof names);
    for (int i = 0; i < SECTIONS; ++i) {
        memset(m->data[i], 'a' + i, sizeof m->data[i]);
        m->section[i].sh_name = name_at(name_of[i]);
        m->section[i].sh_type = type_of[i];
        m->section[i].sh_offset = offsetof(struct image, data[i]);
        m->section[i].sh_size = sizeof m->data[i];
    }
    m->section[NAMES].sh_offset = offsetof(struct image, names);
    m->section[NAMES].sh_size = sizeof names;
    m->section[FIXES].sh_info = m->section[OTHERS].sh_info = FRAME;
    m->section[TEXT_FIXES].sh_info = TEXT;
}

/* The first `bytes` of an image, in as much memory, `off` bytes behind a boundary; the caller frees what *all is. */
static char *copy_of(const struct image *m, size_t bytes, size_t off, char **all)
{
    *all = malloc(bytes + off + (bytes + off == 0));
    assert_non_null(*all);
    memcpy(*all + off, m, bytes);
    return *all + off;
}

static void test_frames_are_emptied(void **state)
{
    (void)state;
    for (size_t off = 0; off < 2; ++off) {
        struct image before, after;
        const char *why = "?";
        char *all, *image;
        fill(&before);
        image = copy_of(&before, sizeof before, off, &all);
        assert_true(wd_code_shrink(image, sizeof before, &why));
        assert_null(why);
        memcpy(&after, image, sizeof after);
        for (int i = 0; i < SECTIONS; ++i) {
            static const char nothing[sizeof after.data[0]];
            if (!is_emptied(i)) continue;
            assert_memory_equal(after.data[i], nothing, sizeof nothing);
            assert_int_equal(after.section[i].sh_size, 0);
            memcpy(after.data[i], before.data[i], sizeof nothing);
            after.section[i].sh_size = before.section[i].sh_size;
        }
        assert_memory_equal(&after, &before, sizeof before); /* nothing else has changed */
        free(all);
    }
}

static void refused(const struct image *m, size_t bytes, const char *wanted)
{
    const char *why = NULL;
    char *all, *image = copy_of(m, bytes, 0, &all);
    assert_false(wd_code_shrink(image, bytes, &why));
    assert_non_null(why);
    if (wanted && !strstr(why, wanted)) fail_msg("refused for '%s', not '%s'", why, wanted);
    assert_memory_equal(image, m, bytes);
    free(all);
}

static void test_refused(void **state)
{
    struct image m;
    (void)state;
    fill(&m);
    for (size_t bytes = 0; bytes < sizeof m; ++bytes)
        refused(&m, bytes, bytes < sizeof m.head ? "no head" : "no table");
    m.head.e_ident[0] = 'P';
    refused(&m, sizeof m, "no ELF");
    fill(&m);
    m.head.e_ident[EI_CLASS] = ELFCLASS32;
    refused(&m, sizeof m, "no ELF");
    fill(&m);
    m.head.e_shoff = UINT64_MAX - 8;
    refused(&m, sizeof m, "no table");
    fill(&m);
    m.head.e_shstrndx = SECTIONS;
    refused(&m, sizeof m, "no names");
    fill(&m);
    m.names[sizeof names - 1] = 'x';
    refused(&m, sizeof m, "no names");
    fill(&m);
    m.section[TEXT].sh_name = sizeof names;
    refused(&m, sizeof m, "beyond all names");
    fill(&m);
    m.section[FIXES].sh_size = UINT64_MAX;
    refused(&m, sizeof m, "beyond the end");
    fill(&m);
    m.section[FRAME].sh_type = SHT_NOBITS;
    refused(&m, sizeof m, "beyond the end");
    /* over the head, the names and the table, none of which may change */
    for (int i = 0; i < 3; ++i) {
        static const size_t at[] = {sizeof(Elf64_Ehdr) - 1, offsetof(struct image, names) + 3,
                                    offsetof(struct image, section) + 5};
        fill(&m);
        m.section[FRAME].sh_offset = at[i];
        refused(&m, sizeof m, "over others");
    }
}

static void test_any_byte(void **state)
{
    int done = 0, left = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(struct image); ++i) {
        if (i >= sizeof(Elf64_Ehdr) && i < offsetof(struct image, section)) continue;
        for (int value = 0; value < 256; value += 51) {
            struct image m;
            const char *why = "?";
            char *all, *image;
            bool shrunk;
            fill(&m);
            ((unsigned char *)&m)[i] = (unsigned char)value;
            image = copy_of(&m, sizeof m, 0, &all);
            shrunk = wd_code_shrink(image, sizeof m, &why);
            assert_int_equal(shrunk, why == NULL);
            if (!shrunk) assert_memory_equal(image, &m, sizeof m);
            done += shrunk, left += !shrunk;
            free(all);
        }
    }
    assert_true(done > 0 && left > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_are_emptied),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_any_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
