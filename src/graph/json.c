/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer and the reader of JSON texts, without any knowledge of what they say. No state. */
#include "graph/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static bool grow(struct wd_text *text, size_t more)
{
    size_t room = text->room ? text->room : 1024;
    char *data;
    if (text->failed) return false;
    while (room < text->length + more + 1) room *= 2;
    if (room == text->room) return true;
    data = wd_alloc(room);
    if (!data) {
        text->failed = true;
        return false;
    }
    if (text->length) memcpy(data, text->data, text->length);
    wd_free(text->data);
    text->data = data;
    text->room = room;
    return true;
}

void wd_text_add(struct wd_text *text, const char *format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !grow(text, (size_t)length)) return;
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

/* The decimal point of the thread's locale: a comma in some, more than one byte in others. Told
 * from a number that is printed, since localeconv is not safe for threads. */
static void locale_point(char *point, size_t size)
{
    char half[16];
    size_t length;
    snprintf(half, sizeof half, "%.1f", 0.5);
    length = strcspn(half + 1, "5");
    snprintf(point, size, "%.*s", (int)length, half + 1);
}

void wd_text_point(char *number, const char *point)
{
    size_t length = strlen(point);
    char *at = length ? strstr(number, point) : NULL;
    if (!at) return;
    *at = '.';
    memmove(at + 1, at + length, strlen(at + length) + 1);
}

void wd_text_real(struct wd_text *text, double value)
{
    char number[40];
    char point[8];
    if (isnan(value)) {
        wd_text_add(text, "\"nan\"");
        return;
    }
    if (isinf(value)) {
        wd_text_add(text, value > 0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    snprintf(number, sizeof number, "%.17g", value);
    locale_point(point, sizeof point);
    wd_text_point(number, point);
    wd_text_add(text, "%s", number);
}

void wd_text_ints(struct wd_text *text, const int64_t *list, int count)
{
    for (int i = 0; i < count; ++i) wd_text_add(text, "%s%lld", i ? "," : "[", (long long)list[i]);
    wd_text_add(text, count ? "]" : "[]");
}

struct wd_reader wd_reader_start(const char *data, size_t length)
{
    return (struct wd_reader){data, data, data + length, false, NULL};
}

static void fail(struct wd_reader *reader, const char *wanted)
{
    if (reader->failed) return;
    reader->failed = true;
    reader->wanted = wanted;
}

static char peek(struct wd_reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at) {
        reader->at += 1;
    }
    return reader->at < reader->end && !reader->failed ? *reader->at : '\0';
}

bool wd_read_if(struct wd_reader *reader, char token)
{
    if (peek(reader) != token || token == '\0') return false;
    reader->at += 1;
    return true;
}

static const char *token_name(char token)
{
    switch (token) {
    case '{': return "{";
    case '}': return "}";
    case '[': return "[";
    case ']': return "]";
    case ':': return ":";
    default: return ",";
    }
}

void wd_read_token(struct wd_reader *reader, char token)
{
    if (!wd_read_if(reader, token)) fail(reader, token_name(token));
}

void wd_read_key(struct wd_reader *reader, const char *name)
{
    size_t length = strlen(name);
    if (peek(reader) != '"' || (size_t)(reader->end - reader->at) < length + 2 ||
        memcmp(reader->at + 1, name, length) != 0 || reader->at[length + 1] != '"') {
        fail(reader, name);
        return;
    }
    reader->at += length + 2;
    wd_read_token(reader, ':');
}

/* The characters of a number as a string of its own; false where there are none or too many. */
static bool number_text(struct wd_reader *reader, char *text, size_t size, const char *allowed)
{
    size_t length = 0;
    peek(reader);
    while (!reader->failed && reader->at + length < reader->end && reader->at[length] &&
           strchr(allowed, reader->at[length])) {
        if (length + 1 >= size) return false;
        text[length] = reader->at[length];
        length += 1;
    }
    text[length] = '\0';
    reader->at += length;
    return length > 0;
}

int64_t wd_read_int(struct wd_reader *reader, int64_t low, int64_t high)
{
    char text[24];
    int64_t value = 0;
    const char *p = text;
    bool negative = false;
    if (!number_text(reader, text, sizeof text, "-0123456789")) {
        fail(reader, "a whole number");
        return low;
    }
    if (*p == '-') {
        negative = true;
        p += 1;
    }
    if (!*p) fail(reader, "digits");
    for (; *p; ++p) {
        if (*p == '-' || __builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_sub_overflow(value, (int64_t)(*p - '0'), &value)) {
            fail(reader, "a whole number of 64 bits");
            return low;
        }
    }
    /* counted downwards, for the lowest number has no positive twin */
    if (!negative && value == INT64_MIN) fail(reader, "a whole number of 64 bits");
    else if (!negative) value = -value;
    if (value < low || value > high) fail(reader, "a whole number in its range");
    return reader->failed ? low : value;
}

/* Decimal to double without a locale: digits as an integer, scaled by a power of ten; texts that
 * the writer made come back equal, for strtod does the work on a string with its own point. */
static bool to_double(const char *text, double *value)
{
    char local[48];
    char *end;
    char point[8];
    const char *dot = strchr(text, '.');
    if (dot) {
        locale_point(point, sizeof point);
        snprintf(local, sizeof local, "%.*s%s%s", (int)(dot - text), text, point, dot + 1);
    } else {
        snprintf(local, sizeof local, "%s", text);
    }
    *value = strtod(local, &end);
    return end != local && *end == '\0';
}

double wd_read_real(struct wd_reader *reader)
{
    char text[32];
    double value = 0.0;
    if (peek(reader) == '"') {
        wd_read_string(reader, text, sizeof text);
        if (!strcmp(text, "inf")) return HUGE_VAL;
        if (!strcmp(text, "-inf")) return -HUGE_VAL;
        if (!strcmp(text, "nan")) return (double)NAN;
        fail(reader, "\"inf\", \"-inf\" or \"nan\"");
        return 0.0;
    }
    if (!number_text(reader, text, sizeof text, "-+.0123456789eE") || !to_double(text, &value)) {
        fail(reader, "a number");
    }
    return value;
}

void wd_read_string(struct wd_reader *reader, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    wd_read_token(reader, '"');
    while (!reader->failed) {
        char c = reader->at < reader->end ? *reader->at : '\0';
        if (c == '"') {
            reader->at += 1;
            break;
        }
        if (c < ' ' || c == '\\' || length + 1 >= size) {
            fail(reader, "a short plain string");
            break;
        }
        text[length++] = c;
        reader->at += 1;
    }
    text[length] = '\0';
}

int wd_read_ints(struct wd_reader *reader, int64_t *list, int limit, int64_t low, int64_t high)
{
    int count = 0;
    wd_read_token(reader, '[');
    if (wd_read_if(reader, ']')) return 0;
    while (!reader->failed) {
        if (count == limit) {
            fail(reader, "a shorter list");
            break;
        }
        list[count++] = wd_read_int(reader, low, high);
        if (wd_read_if(reader, ']')) break;
        wd_read_token(reader, ',');
    }
    return count;
}

void wd_read_end(struct wd_reader *reader)
{
    while (!reader->failed && (peek(reader), reader->at < reader->end)) {
        if (*reader->at != '\0') {
            fail(reader, "the end");
            return;
        }
        reader->at += 1;
    }
}

cudnnStatus_t wd_reader_status(const struct wd_reader *reader, const char *what)
{
    WD_REQUIRE(!reader->failed, CUDNN_STATUS_BAD_PARAM, "%s: at byte %zu of %zu, expected %s", what,
               (size_t)(reader->at - reader->begin), (size_t)(reader->end - reader->begin),
               reader->wanted);
    return CUDNN_STATUS_SUCCESS;
}
