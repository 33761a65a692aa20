/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX text as tokens, and tokens as text of few blanks. */
#ifndef WD_PACK_PTX_TOKENS_H
#define WD_PACK_PTX_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { /* of the text: */ PTX_WORD,
       PTX_STRING,
       PTX_MARK,
       /* a word with another spelling: text number, the same with a
     * register's letter in upper case, both as text<number>,TEXT<long_number> */
       PTX_NUMBERED,
       PTX_LONG,
       PTX_DECLARED,
       PTX_DROPPED };

struct ptx_token {
    const char *text;
    uint32_t length, number, long_number;
    uint8_t kind;
    bool spaced; /* blanks before it */
    bool first;  /* of its line */
    bool ends;   /* its line ends after it */
};

static inline bool ptx_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ptx_is(const struct ptx_token *t, const char *text)
{
    return t->length == strlen(text) && !memcmp(t->text, text, t->length);
}

static inline bool ptx_mark(const struct ptx_token *t, char c)
{
    return t->kind == PTX_MARK && *t->text == c;
}

/* A word that may be the name of something. */
static inline bool ptx_name(const struct ptx_token *t)
{
    return t->kind == PTX_WORD && !ptx_digit(*t->text) && *t->text != '.';
}

/* An allocated array of tokens and, after them, one that is nothing; or NULL with the reason. */
struct ptx_token *wd_ptx_read(const char *text, size_t length, uint32_t *count, const char **why);

uint32_t wd_ptx_hash(const struct ptx_token *t);

/* Allocated text, zero at its end, or NULL where memory ran out. */
char *wd_ptx_write(const struct ptx_token *tokens, uint32_t count, size_t *length);

#endif
