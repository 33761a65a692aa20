/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that grows, copies, and the writing of JSON strings. */
#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 256, OUT_OF_MEMORY = 125 };

void *tool_resize(void *data, size_t bytes)
{
    void *result = realloc(data, bytes ? bytes : 1);
    if (!result) {
        fprintf(stderr, "warpdnn: no memory for %zu bytes\n", bytes);
        exit(OUT_OF_MEMORY);
    }
    return result;
}

static void reserve(struct text *text, size_t more)
{
    size_t size = text->size ? text->size : FIRST_SIZE;
    while (size < text->length + more + 1) size *= 2;
    if (size == text->size) return;
    text->data = (char *)tool_resize(text->data, size);
    text->size = size;
}

void text_add_bytes(struct text *text, const char *bytes, size_t count)
{
    reserve(text, count);
    if (count) memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void text_add_list(struct text *text, const char *format, va_list list)
{
    va_list again;
    int length;
    va_copy(again, list);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return;
    reserve(text, (size_t)length);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, list);
    text->length += (size_t)length;
}

void text_add(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text_add_list(text, format, list);
    va_end(list);
}

/* Bytes of the well-formed UTF-8 character at `s`, 0 where there is none. */
static size_t utf8_length(const unsigned char *s)
{
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; ++i) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0; /* overlong */
    if (s[0] == 0xed && s[1] > 0x9f) return 0; /* surrogates */
    if (s[0] == 0xf0 && s[1] < 0x90) return 0; /* overlong */
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0; /* beyond Unicode */
    return length;
}

void text_add_json(struct text *text, const char *string)
{
    const unsigned char *s = (const unsigned char *)string;
    text_add_bytes(text, "\"", 1);
    while (*s) {
        size_t length = 1;
        if (*s == '"' || *s == '\\') text_add(text, "\\%c", *s);
        else if (*s == '\n') text_add(text, "\\n");
        else if (*s < 0x20 || *s == 0x7f) text_add(text, "\\u%04x", *s);
        else if (*s < 0x80) text_add_bytes(text, (const char *)s, 1);
        else if ((length = utf8_length(s)) > 0) text_add_bytes(text, (const char *)s, length);
        else text_add(text, "\\ufffd");
        s += length ? length : 1;
    }
    text_add_bytes(text, "\"", 1);
}

const char *text_of(const struct text *text)
{
    return text->data ? text->data : "";
}

void text_free(struct text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

char *text_copy(const char *string)
{
    size_t bytes = strlen(string) + 1;
    return (char *)memcpy(tool_resize(NULL, bytes), string, bytes);
}

char *text_make(const char *format, ...)
{
    struct text text = {0};
    va_list list;
    va_start(list, format);
    text_add_list(&text, format, list);
    va_end(list);
    return text.data ? text.data : text_copy("");
}

bool text_starts(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

const char *text_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
