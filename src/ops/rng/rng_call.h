/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call for random numbers says, for every engine of the family. */
#ifndef WD_OPS_RNG_CALL_H
#define WD_OPS_RNG_CALL_H

#include "ops/engine.h"
#include "ops/rng/rng_args.h"

enum { RNG_SEED, RNG_OFFSET, RNG_Y }; /* slots */

/* The arguments of the definition's pass. */
struct rng_args wd_rng_args_of(const struct wd_call *call);

#endif
