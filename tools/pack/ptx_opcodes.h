/* SPDX-License-Identifier: Apache-2.0
 *
 * What instructions do with their operands, and what may follow them. */
#ifndef WD_PACK_PTX_OPCODES_H
#define WD_PACK_PTX_OPCODES_H

#include "ptx_tokens.h"

enum {
    PTX_KNOWN = 1,
    PTX_FIRST_WRITTEN = 2, /* the first operand, unless it is in brackets */
    PTX_LEAVES = 4,        /* the next instruction does not follow it, unless it is predicated */
    PTX_JUMPS = 8,         /* to the label that is the last operand */
    PTX_SCATTERS = 16      /* to any label */
};

unsigned wd_ptx_opcode(const struct ptx_token *opcode);

/* How many tokens are of the first operand if it is of registers: one, two with a bar between them,
 * or some in braces. */
uint32_t wd_ptx_written(const struct ptx_token *operand);

#endif
