/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointers that lie off their alignment: ours must run on them, the peer need not, and where its kernel
 * faults the context is gone, and the run with it. So such a row first runs in a process of its own, in
 * the peer alone. */
#ifndef BENCH_ODD_H
#define BENCH_ODD_H

#include <stdbool.h>

/* Whether this is that process. */
bool odd_is_probe(void);
/* Whether the peer comes through the row of this text. */
bool odd_peer_survives(const char *family, const char *text);

#endif
