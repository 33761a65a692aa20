/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the dynamic section and its string table of an ELF file, by offsets that are each checked
 * against the file: what lies in the usual places may be truncated, a link into nothing, or a pipe.
 * */
#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

enum { HEADERS_MAX = 256, DYNAMIC_MAX = 4096 };
static const size_t strings_max = (size_t)64 << 20;

struct reader {
    int file;
    Elf64_Phdr headers[HEADERS_MAX];
    int count;
    Elf64_Dyn *dynamic;
    size_t entries;
    char *strings;
    size_t strings_size;
};

static void explain(struct elf_facts *facts, const char *format, ...) TOOL_PRINTF(2, 3);

static void explain(struct elf_facts *facts, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(facts->why, sizeof facts->why, format, list);
    va_end(list);
}

static bool read_at(int file, void *to, size_t bytes, uint64_t offset)
{
    char *next = (char *)to;
    if (offset > INT64_MAX - bytes) return false;
    while (bytes) {
        ssize_t got = pread(file, next, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        next += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Where in the file the address lies. */
static bool offset_of(const struct reader *reader, uint64_t address, uint64_t *offset)
{
    for (int i = 0; i < reader->count; ++i) {
        const Elf64_Phdr *h = &reader->headers[i];
        if (h->p_type != PT_LOAD || address < h->p_vaddr || address - h->p_vaddr >= h->p_filesz) {
            continue;
        }
        *offset = h->p_offset + (address - h->p_vaddr);
        return true;
    }
    return false;
}

static uint64_t dynamic_value(const struct reader *reader, int64_t tag)
{
    for (size_t i = 0; i < reader->entries; ++i) {
        if (reader->dynamic[i].d_tag == tag) return reader->dynamic[i].d_un.d_val;
    }
    return 0;
}

static bool read_headers(struct reader *reader, struct elf_facts *facts)
{
    Elf64_Ehdr header;
    if (!read_at(reader->file, &header, sizeof header, 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        explain(facts, "not an ELF file");
        return false;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
        explain(facts, "made for another machine");
        return false;
    }
    if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr)) {
        explain(facts, "not a shared library");
        return false;
    }
    reader->count = header.e_phnum < HEADERS_MAX ? header.e_phnum : HEADERS_MAX;
    if (!read_at(reader->file, reader->headers, (size_t)reader->count * sizeof(Elf64_Phdr),
                 header.e_phoff)) {
        explain(facts, "truncated: its program headers are missing");
        return false;
    }
    return true;
}

static bool read_dynamic(struct reader *reader, struct elf_facts *facts)
{
    uint64_t offset = 0;
    for (int i = 0; i < reader->count; ++i) {
        const Elf64_Phdr *h = &reader->headers[i];
        if (h->p_type != PT_DYNAMIC) continue;
        reader->entries = h->p_filesz / sizeof(Elf64_Dyn);
        if (reader->entries > DYNAMIC_MAX) reader->entries = DYNAMIC_MAX;
        reader->dynamic = (Elf64_Dyn *)tool_resize(NULL, reader->entries * sizeof(Elf64_Dyn));
        if (!read_at(reader->file, reader->dynamic, reader->entries * sizeof(Elf64_Dyn),
                     h->p_offset)) {
            explain(facts, "truncated: its dynamic section is missing");
            return false;
        }
    }
    reader->strings_size = dynamic_value(reader, DT_STRSZ);
    if (!offset_of(reader, dynamic_value(reader, DT_STRTAB), &offset) ||
        reader->strings_size == 0 || reader->strings_size > strings_max) {
        explain(facts, "it has no table of names");
        return false;
    }
    reader->strings = (char *)tool_resize(NULL, reader->strings_size + 1);
    if (!read_at(reader->file, reader->strings, reader->strings_size, offset)) {
        explain(facts, "truncated: its table of names is missing");
        return false;
    }
    reader->strings[reader->strings_size] = '\0';
    return true;
}

static bool has_name(const struct reader *reader, const char *name)
{
    return memmem(reader->strings, reader->strings_size, name, strlen(name) + 1) != NULL;
}

bool elf_read(const char *path, struct elf_facts *facts)
{
    struct reader reader = {.file = -1};
    struct stat state;
    uint64_t soname;
    memset(facts, 0, sizeof *facts);
    reader.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us */
    if (reader.file < 0 || fstat(reader.file, &state) != 0) {
        explain(facts, "%s", strerror(errno));
        goto done;
    }
    if (!S_ISREG(state.st_mode)) {
        explain(facts, "not a regular file");
        goto done;
    }
    if (!read_headers(&reader, facts) || !read_dynamic(&reader, facts)) goto done;
    facts->loadable = true;
    soname = dynamic_value(&reader, DT_SONAME);
    if (soname && soname < reader.strings_size) {
        snprintf(facts->soname, sizeof facts->soname, "%s", reader.strings + soname);
    }
    facts->cudnn = has_name(&reader, "cudnnGetVersion");
    facts->warpdnn = facts->cudnn && has_name(&reader, "warpdnnGetVersionString") &&
                     strcmp(facts->soname, "libcudnn.so.9") == 0;
done:
    free(reader.dynamic);
    free(reader.strings);
    if (reader.file >= 0) close(reader.file);
    return facts->loadable;
}

bool file_holds(const char *path, const char *string)
{
    struct stat state;
    void *bytes;
    bool holds = false;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    if (fstat(file, &state) == 0 && S_ISREG(state.st_mode) && state.st_size > 0) {
        bytes = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes != MAP_FAILED) {
            holds = memmem(bytes, (size_t)state.st_size, string, strlen(string)) != NULL;
            munmap(bytes, (size_t)state.st_size);
        }
    }
    close(file);
    return holds;
}
