/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation in place, for every engine that concatenates: the input that may be where it belongs. */
#ifndef WD_OPS_CONCAT_PLACE_H
#define WD_OPS_CONCAT_PLACE_H

#include "ops/engine.h"

enum { CONCAT_Y, CONCAT_X }; /* slots; inputs follow one another */

/* Whether an input, which begins at `first` along the axis, lies where it belongs in y already; refused
 * where it covers another part of y, for it would be lost while it is copied. */
cudnnStatus_t wd_concat_look(const struct wd_call *call, int input, int64_t first, bool *lies);

#endif
