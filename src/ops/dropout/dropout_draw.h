/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers of dropout on the CPU. Stateless. */
#ifndef WD_OPS_DROPOUT_DRAW_H
#define WD_OPS_DROPOUT_DRAW_H

#include <stdint.h>

enum { WD_DRAW_BLOCKS = 32 }; /* of eight numbers */

/* kept[i] is 1 where wd_philox_chance i % 8 of block first + i / 8 of (seed, offset), see
 * base/philox.h, is not below the threshold, else 0; for 8 * WD_DRAW_BLOCKS of them. */
void wd_dropout_draw(uint8_t *kept, uint64_t seed, uint64_t offset, uint64_t first,
                     uint32_t threshold);

#endif
