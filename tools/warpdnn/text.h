/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that grows, for the warpdnn command: a short-lived program, so out of memory ends it with a
 * line that says so and status 125. One thread. */
#ifndef WARPDNN_TOOL_TEXT_H
#define WARPDNN_TOOL_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define TOOL_PRINTF(at, first) __attribute__((format(printf, at, first)))

struct text {
    char *data; /* ends with a zero byte; null while nothing was added */
    size_t length;
    size_t size;
};

void *tool_resize(void *data, size_t bytes);

void text_add(struct text *text, const char *format, ...) TOOL_PRINTF(2, 3);
void text_add_list(struct text *text, const char *format, va_list list) TOOL_PRINTF(2, 0);
void text_add_bytes(struct text *text, const char *bytes, size_t count);
/* As a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD. */
void text_add_json(struct text *text, const char *string);
const char *text_of(const struct text *text);
void text_free(struct text *text);

char *text_copy(const char *string);
char *text_make(const char *format, ...) TOOL_PRINTF(1, 2);

bool text_starts(const char *string, const char *prefix);
/* The part after the last slash. */
const char *text_base(const char *path);

#endif
