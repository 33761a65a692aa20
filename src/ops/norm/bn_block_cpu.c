/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of batch normalization, and the choice of those for this machine. */
#include "ops/norm/bn_block.h"

#define WD_LOOPS "ops/norm/bn_block.inc"
#include "cpu/module/loops.inc"

#define PICK(loop) WD_PICK(loop) /* expands the name first */

#define REAL float
#define T(name) name##_f32
#include "ops/norm/bn_block_pick.inc"
#undef REAL
#undef T

#define REAL double
#define T(name) name##_f64
#include "ops/norm/bn_block_pick.inc"
#undef REAL
#undef T
