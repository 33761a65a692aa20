/* SPDX-License-Identifier: Apache-2.0
 *
 * Which virtual registers of a PTX function may share a name. ptx.c describes the body as steps, one
 * for each instruction; wd_ptx_name_registers fills in the names. */
#ifndef WD_PACK_PTX_REGISTERS_H
#define WD_PACK_PTX_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Both: written, but an older value may survive. Pinned: not known, the name is the register's own. */
enum { PTX_READS = 1, PTX_WRITES = 2, PTX_BOTH = 3, PTX_PINNED = 7 };

struct ptx_use { /* one occurrence of a register */
    uint32_t token;
    uint32_t reg;
    uint32_t access;
};

struct ptx_step {          /* one instruction */
    uint32_t use, use_end; /* its occurrences, in the order of the text */
    uint32_t label;        /* index of the label it may jump to, or UINT32_MAX */
    bool falls;            /* the next step may follow */
    bool scatters;         /* any label may follow */
};

enum { PTX_CLASSES = 32 };

struct ptx_body {
    struct ptx_step *steps;
    uint32_t step_count;
    struct ptx_use *uses;
    uint32_t use_count;
    uint32_t *labels; /* the step that each label stands before, step_count at the end */
    uint32_t label_count;
    uint8_t *class_of; /* of each register */
    bool *pinned;      /* registers that share with none */
    uint32_t reg_count;
    uint32_t class_count;
    bool one_pool[PTX_CLASSES]; /* long lives are not named apart */
    uint32_t
        *names; /* result: of each register that occurs, twice its number, and 1 for a long life */
    uint32_t name_counts[2 * PTX_CLASSES]; /* result: of each class, short lives and long ones */
};

/* False where memory ran out. */
bool wd_ptx_name_registers(struct ptx_body *body);

#endif
