/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of batch normalization, and the choice of those for this machine. */
#include "ops/norm/bn_block.h"

#define WD_LOOPS "ops/norm/bn_block.inc"
#include "cpu/module/loops.inc"

#define PICK(loop) WD_PICK(loop) /* expands the name first */

#define WD_REALS_BODY "ops/norm/bn_block_pick.inc"
#include "ops/reals.inc"
