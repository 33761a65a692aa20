/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of instructions, by the first part of their names. */
#include <string.h>

#include "ptx_opcodes.h"

/* Those whose first operand is written unless it is in brackets, and those of which all is read.
 * Taking a write for a read is safe, and costs names. Others may be asynchronous: unknown. */
/* clang-format off */
static const char writers[] =
    " abs activemask add addc and atom bfe bfi bfind brev clz cnot copysign cos createpolicy cvt cvta "
    "div dp2a dp4a elect ex2 fma fns getctarank isspacep ld ldmatrix ldu lg2 lop3 mad madc mapa match "
    "max mbarrier min mma mov mul neg not or popc prmt rcp redux rem rsqrt sad selp set setp shf shfl "
    "shl shr sin slct sqrt sub subc tanh testp vote xor ";
static const char readers[] =
    " applypriority bar barrier bra brx cp discard exit fence griddepcontrol membar nanosleep prefetch "
    "prefetchu red ret st stmatrix trap ";
/* clang-format on */

static bool among(const struct ptx_token *t, const char *words)
{
    char word[18] = " ";
    uint32_t length = 0;
    while (length < t->length && t->text[length] != '.') ++length;
    if (length > 14) return false;
    memcpy(word + 1, t->text, length);
    word[length + 1] = ' ';
    return strstr(words, word) != NULL;
}

unsigned wd_ptx_opcode(const struct ptx_token *t)
{
    if (among(t, writers)) return PTX_KNOWN | PTX_FIRST_WRITTEN;
    if (!among(t, readers)) return 0;
    if (among(t, " ret exit ")) return PTX_KNOWN | PTX_LEAVES;
    if (among(t, " bra ")) return PTX_KNOWN | PTX_LEAVES | PTX_JUMPS;
    if (among(t, " brx ")) return PTX_KNOWN | PTX_LEAVES | PTX_SCATTERS;
    return PTX_KNOWN;
}

uint32_t wd_ptx_written(const struct ptx_token *t)
{
    uint32_t i = 0;
    if (ptx_mark(t, '{')) {
        while (!ptx_mark(&t[i], '}') && !ptx_mark(&t[i], ';')) ++i;
        return i;
    }
    if (!ptx_name(t)) return 0;
    return ptx_mark(&t[1], '|') ? 3 : 1;
}
