/* SPDX-License-Identifier: Apache-2.0
 *
 * Words are everything of letters, digits and . _ $ %, with the :: of instruction names; all else is
 * a mark of one character. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_tokens.h"

static bool wordly(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || ptx_digit(c) || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

/* Past a comment at `p`, or NULL where it has no end. */
static const char *skip_comment(const char *p, const char *end, bool *first)
{
    if (p[1] == '/') {
        while (p < end && *p != '\n') ++p;
        return p;
    }
    for (p += 2; end - p > 1; ++p) {
        if (*p == '*' && p[1] == '/') return p + 2;
        if (*p == '\n') *first = true;
    }
    return NULL;
}

static const char *skip_blanks(const char *p, const char *end, bool *first)
{
    while (p && p < end) {
        if (*p == '/' && end - p > 1 && (p[1] == '/' || p[1] == '*'))
            p = skip_comment(p, end, first);
        else if (*p == '\n' || *p == ' ' || *p == '\t' || *p == '\r') *first |= *p++ == '\n';
        else break;
    }
    return p;
}

static const char *word_end(const char *p, const char *end)
{
    while (p < end) {
        if (wordly(*p)) ++p;
        else if (end - p > 2 && *p == ':' && p[1] == ':' && wordly(p[2])) p += 2;
        else break;
    }
    return p;
}

/* The end of the string at `p`, or NULL where it has none. */
static const char *string_end(const char *p, const char *end)
{
    for (++p; p < end && *p != '"' && *p != '\n'; ++p)
        if (*p == '\\' && end - p > 1) ++p;
    return p < end && *p == '"' ? p + 1 : NULL;
}

/* Names like those that are given here would be mistaken for them. */
static bool like_new(const struct ptx_token *t)
{
    uint32_t i = t->length > 2 && t->text[1] == 'f' ? 2 : 1;
    if (t->length < 2 || (*t->text != '$' && *t->text != '_')) return false;
    while (i < t->length && ptx_digit(t->text[i])) ++i;
    return i == t->length;
}

struct ptx_token *wd_ptx_read(const char *text, size_t length, uint32_t *count, const char **why)
{
    const char *p = text, *end = text + length;
    struct ptx_token *tokens = NULL;
    size_t room = 0;
    bool first = true;
    for (*count = 0, *why = NULL; !*why; ++*count) {
        if (*count == room) {
            room = room * 2 + 1024;
            struct ptx_token *more = realloc(tokens, room * sizeof *tokens);
            if (!more) *why = "out of memory";
            if (!more) break;
            tokens = more;
        }
        const char *blank = p;
        p = skip_blanks(p, end, &first);
        if (!p) *why = "a comment without end";
        if (!p) break;
        struct ptx_token *t = &tokens[*count];
        *t = (struct ptx_token){.text = p, .kind = PTX_MARK, .spaced = p > blank, .first = first};
        first = false;
        if (p == end) { /* to look one ahead is always safe */
            t->text = "";
            t->first = true;
            return tokens;
        }
        if (wordly(*p)) {
            t->kind = PTX_WORD;
            p = word_end(p, end);
        } else if (*p == '"') {
            t->kind = PTX_STRING;
            p = string_end(p, end);
        } else if (*p > ' ' && *p < 0x7f) ++p;
        else *why = "a character that is not text";
        if (!p) *why = "a string without end";
        if (*why) break;
        t->length = (uint32_t)(p - t->text);
        if (t->kind == PTX_WORD && like_new(t)) *why = "a name of the form that new ones get";
    }
    free(tokens);
    return NULL;
}

uint32_t wd_ptx_hash(const struct ptx_token *t)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < t->length; ++i) hash = (hash ^ (uint8_t)t->text[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* Whether two tokens that blanks stood between still need one. */
static bool parted(const struct ptx_token *a, const struct ptx_token *b)
{
    if (a->kind == PTX_MARK && b->kind == PTX_MARK) return strchr("+-<>=&|!:/*", *a->text) != NULL;
    return a->kind != PTX_MARK && b->kind != PTX_MARK;
}

static char *spell(char *p, const struct ptx_token *t)
{
    int length = (int)t->length;
    switch (t->kind) {
    case PTX_NUMBERED: return p + sprintf(p, "%.*s%u", length, t->text, (unsigned)t->number);
    case PTX_LONG: return p + sprintf(p, "%%%c%u", t->text[1] - 'a' + 'A', (unsigned)t->number);
    case PTX_DECLARED:
        if (t->number) p += sprintf(p, "%.*s<%u>", length, t->text, (unsigned)t->number);
        if (t->number && t->long_number) *p++ = ',';
        if (t->long_number)
            p += sprintf(p, "%%%c<%u>", t->text[1] - 'a' + 'A', (unsigned)t->long_number);
        return p;
    default: memcpy(p, t->text, t->length); return p + t->length;
    }
}

char *wd_ptx_write(const struct ptx_token *tokens, uint32_t count, size_t *length)
{
    size_t size = 1;
    for (uint32_t i = 0; i < count; ++i) size += 2ull * tokens[i].length + 32;
    char *text = malloc(size), *p = text;
    const struct ptx_token *last = NULL;
    if (!text) return NULL;
    for (uint32_t i = 0; i < count; ++i) {
        const struct ptx_token *t = &tokens[i];
        if (t->kind == PTX_DROPPED) continue;
        if (last && t->spaced && p > text && p[-1] != '\n' && parted(last, t)) *p++ = ' ';
        p = spell(p, t);
        if (t->ends || (t->kind == PTX_MARK && *t->text == ';')) *p++ = '\n';
        last = t;
    }
    *p = 0;
    *length = (size_t)(p - text);
    char *fit = realloc(text, *length + 1);
    return fit ? fit : text;
}
