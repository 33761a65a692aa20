/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the fake driver (tests/fake_driver/fakecuda.h) for a test, and tells the library to use it.
 * Call fake_open first in main, before anything of the library: it sets WARPDNN_CUDA_DRIVER, and
 * WARPDNN_ENGINES to the definitions where it is not set. */
#ifndef SUPPORT_FAKECUDA_H
#define SUPPORT_FAKECUDA_H

#include "fake_driver/fakecuda.h"

struct fake_functions {
#define FAKE(result, name, parameters) result(*name) parameters;
#include "fake_driver/fakecuda.def"
/* the driver's own, for tests that look or act behind the library's back */
#define WD_CU_FUNCTION(name, exported, version, parameters) CUresult(*name) parameters;
#include "gpu/driver.def"
};
extern const struct fake_functions *const fake;

/* The path of the fake driver: the environment's FAKECUDA, or beside the test program. */
void fake_path(char *path, size_t size);

/* Ends the process with a text where the fake driver cannot be opened. */
void fake_open(void);

/* Runs a test in a child process, whose library and driver nobody has used: true where it returned
 * (asserts of cmocka do not work there: use fake_check). */
int fake_in_child(void (*test)(void *data), void *data);

/* In a child: ends it as failed, with the text, unless the condition holds. */
#define fake_check(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) fake_child_failed(__FILE__, __LINE__, #condition);                       \
    } while (0)
void fake_child_failed(const char *file, int line, const char *condition);

#endif
