/* SPDX-License-Identifier: Apache-2.0
 *
 * Host twins for the kernels of definition passes, registered in the fake driver. */
#ifndef SUPPORT_FAKE_TWINS_H
#define SUPPORT_FAKE_TWINS_H

#include "ops/definition.h"
#include "support/fakecuda.h"

/* Registers every kernel of these passes; the array's passes live as long as the process. */
void fake_twins_register(const struct wd_pass *const *passes, int count);

#endif
