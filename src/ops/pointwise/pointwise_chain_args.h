/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the pointwise_chain kernels, shared by host and device: a small program that every
 * thread runs on runs of elements. An instruction computes one node. Its result is at hand for the
 * next one, and is kept in one of a few places where a later one wants it; what has memory is written
 * at once. Operands are those of pointwise_vector: inputs first, then outputs. */
#ifndef WD_OPS_POINTWISE_CHAIN_ARGS_H
#define WD_OPS_POINTWISE_CHAIN_ARGS_H

#include "ops/pointwise/pointwise_vector_args.h"

enum { CHAIN_INSTRUCTIONS = 16, CHAIN_INPUTS = 8, CHAIN_OUTPUTS = 4, CHAIN_KEEPS = 4 };

/* Where an instruction finds an operand: CHAIN_KEPT + place, CHAIN_INPUT + input. */
enum { CHAIN_NOTHING, CHAIN_RESULT, CHAIN_KEPT, CHAIN_INPUT = CHAIN_KEPT + CHAIN_KEEPS };

/* What a kernel can do: the modes without the rare ones, each forward or of one sort of gradient. */
enum chain_op {
    CHAIN_CLAMP, /* relu without slope that passes no NaN on */
    CHAIN_SELECT,
#define WD_UNARY(mode) CHAIN_OP_##mode,
#define WD_BINARY(mode) CHAIN_OP_##mode,
#define WD_BY_OUTPUT(mode) CHAIN_BY_##mode,
#include "ops/pointwise/pointwise_modes.def"
    CHAIN_OPS
};

/* What a result becomes, so that it is the element that its tensor would hold. */
enum chain_round { CHAIN_AS_IS, CHAIN_TO_F32, CHAIN_TO_F16, CHAIN_TO_BF16, CHAIN_TO_BOOL };

enum chain_factor {
    CHAIN_ALPHA1,
    CHAIN_ALPHA2,
    CHAIN_LOWER_CLIP,
    CHAIN_UPPER_CLIP,
    CHAIN_LOWER_SLOPE,
    CHAIN_ELU_ALPHA,
    CHAIN_SOFTPLUS_BETA,
    CHAIN_SWISH_BETA,
    CHAIN_FACTORS
};

struct pointwise_instruction {
    uint8_t op; /* enum chain_op */
    uint8_t x;  /* where the operands are, as above */
    uint8_t b;
    uint8_t t;
    uint8_t keep;   /* place + 1; 0: none */
    uint8_t write;  /* output + 1; 0: none */
    uint8_t round;  /* enum chain_round */
    uint8_t scales; /* alpha1 or alpha2 is not 1 */
    int32_t propagate_nan;
    int32_t unused;
    union {
        float f32[CHAIN_FACTORS];
        double f64[CHAIN_FACTORS];
    } factor; /* in the type that the kernel computes in */
};

struct pointwise_chain_args {
    struct pointwise_instruction program[CHAIN_INSTRUCTIONS];
    struct pointwise_operand operand[CHAIN_INPUTS + CHAIN_OUTPUTS];
    struct wd_fastdiv dim[WD_MAX_RANK];
    int32_t length;             /* of the program */
    int32_t inputs;             /* the first output's operand */
    int32_t loads;              /* inputs that are loaded ahead, to shared memory */
    uint8_t load[CHAIN_INPUTS]; /* which they are */
    int8_t slot[CHAIN_INPUTS];  /* by input: its place among them, or -1 */
    int32_t kept_at;            /* where results are kept in shared memory, in units of 16 bytes */
    uint32_t count;             /* of the walk, with what is skipped */
    uint32_t skip; /* elements before the first: flat tensors begin so far behind whole loads */
    int32_t rank;
    int32_t streaming; /* outputs are larger than what stays in the cache */
};

#endif
