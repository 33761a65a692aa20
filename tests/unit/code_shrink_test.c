/* SPDX-License-Identifier: Apache-2.0
 *
 * Machine code made smaller: an ELF image of four sections in memory of its exact size, what becomes of each, and what is
 * refused, at every length that it may be cut to and with every byte of its head and its table changed. */
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

enum { NAMES = 1, FRAME, FIXES, TEXT, SECTIONS };

static const char names[] = "\0.shstrtab\0.debug_frame\0.rela.debug_frame\0.text.wd_kernel";
static const char *const name_of[SECTIONS] = {"", ".shstrtab", ".debug_frame", ".rela.debug_frame",
                                              ".text.wd_kernel"};

struct image {
    Elf64_Ehdr head;
    char names[sizeof names];
    char data[SECTIONS][48];
    Elf64_Shdr section[SECTIONS];
};

static uint32_t name_at(const char *name)
{
    for (uint32_t i = 0; i < sizeof names; ++i)
        if (!strcmp(names + i, name)) return i;
    fail();
    return 0;
}

static struct image *image_of(void)
{
    struct image *m = calloc(1, sizeof *m);
    assert_non_null(m);
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
        m->section[i].sh_offset = offsetof(struct image, data[i]);
        m->section[i].sh_size = sizeof m->data[i];
    }
    m->section[NAMES].sh_offset = offsetof(struct image, names);
    m->section[NAMES].sh_size = sizeof names;
    return m;
}

static void test_frames_are_emptied(void **state)
{
    static const char nothing[sizeof((struct image *)0)->data[0]];
    struct image *m = image_of(), *before = image_of();
    const char *why = "?";
    (void)state;
    assert_true(wd_code_shrink((char *)m, sizeof *m, &why));
    assert_null(why);
    for (int i = FRAME; i <= FIXES; ++i) {
        assert_memory_equal(m->data[i], nothing, sizeof nothing);
        assert_int_equal(m->section[i].sh_size, 0);
        memcpy(m->data[i], before->data[i], sizeof nothing);
        m->section[i].sh_size = before->section[i].sh_size;
    }
    assert_memory_equal(m, before, sizeof *m); /* nothing else has changed */
    free(m);
    free(before);
}

static void refused(struct image *m, size_t bytes, const char *wanted)
{
    struct image *before = malloc(sizeof *m);
    const char *why = NULL;
    assert_non_null(before);
    memcpy(before, m, sizeof *m);
    assert_false(wd_code_shrink((char *)m, bytes, &why));
    assert_non_null(why);
    if (!strstr(why, wanted)) fail_msg("refused for '%s', not '%s'", why, wanted);
    assert_memory_equal(m, before, sizeof *m);
    free(before);
    free(m);
}

static void test_refused(void **state)
{
    struct image *m = image_of();
    (void)state;
    refused(m, sizeof m->head - 1, "no head");
    m = image_of();
    m->head.e_ident[0] = 'P';
    refused(m, sizeof *m, "no ELF");
    m = image_of();
    m->head.e_ident[EI_CLASS] = ELFCLASS32;
    refused(m, sizeof *m, "no ELF");
    refused(image_of(), sizeof *m - 1, "no table");
    m = image_of();
    m->head.e_shoff = UINT64_MAX - 8;
    refused(m, sizeof *m, "no table");
    m = image_of();
    m->head.e_shstrndx = SECTIONS;
    refused(m, sizeof *m, "no names");
    m = image_of();
    m->names[sizeof names - 1] = 'x';
    refused(m, sizeof *m, "no names");
    m = image_of();
    m->section[TEXT].sh_name = sizeof names;
    refused(m, sizeof *m, "beyond all names");
    m = image_of();
    m->section[FIXES].sh_size = UINT64_MAX;
    refused(m, sizeof *m, "beyond the end");
}

/* Whatever a byte is: nothing outside the image is read or written, which the address sanitizer sees. */
static void test_any_byte(void **state)
{
    struct image *m = image_of();
    (void)state;
    for (size_t i = 0; i < sizeof *m; ++i) {
        if (i >= sizeof m->head && i < offsetof(struct image, section)) continue;
        for (int value = 0; value < 256; value += 51) {
            const char *why;
            struct image *changed = image_of();
            ((unsigned char *)changed)[i] = (unsigned char)value;
            (void)wd_code_shrink((char *)changed, sizeof *changed, &why);
            free(changed);
        }
    }
    free(m);
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
