/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of invalid arguments: a call, the function and argument that the row is about, and the status
 * that is due. A row passes when the call answers that status with a text that names the function and
 * the argument (as the public header spells it; of the backend's functions the attribute or descriptor
 * type), the log is told that text once, and every registered tensor is as it was. Counts the
 * functions and arguments covered. */
#ifndef TESTS_SUPPORT_REFUSAL_H
#define TESTS_SUPPORT_REFUSAL_H

#include "support/harness.h"

/* REFUSED(BAD_PARAM, cudnnSetStream, handle, cudnnSetStream(NULL, NULL)); */
#define REFUSED(status, function, argument, call)                                                  \
    do {                                                                                           \
        if (refusal_begin(#function, #argument, __LINE__))                                         \
            refusal_end(#function, #argument, CUDNN_STATUS_##status, (call));                      \
    } while (0)

bool refusal_begin(const char *function, const char *argument, int line);
void refusal_end(const char *function, const char *argument, cudnnStatus_t expected,
                 cudnnStatus_t answered);

/* Uploads the tensors made so far: rows after it must leave them as they are. */
void refusal_guard(void);

/* Prints "N functions, N arguments, N rows". */
void refusal_report(void);

#endif
