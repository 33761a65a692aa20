/* SPDX-License-Identifier: Apache-2.0
 *
 * Failing with a status and a text. Every refusal in the library goes through wd_fail, which keeps
 * the text for cudnnGetLastErrorString (one text a thread). The public function that hands it to its
 * caller puts its name before it and tells the log, once, outside of every lock (wd_fail_public, by
 * way of wd_fail_in and wd_pass_in of api/api.h); what is tried inside and given up stays silent. */
#ifndef WD_BASE_STATUS_H
#define WD_BASE_STATUS_H

#include "cudnn.h"

#if defined(__GNUC__)
#define WD_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define WD_PRINTF(at, first)
#endif

enum { WD_ERROR_TEXT_SIZE = 1024 };

/* Records the formatted text as this thread's last error and returns `status` unchanged. */
cudnnStatus_t wd_fail(cudnnStatus_t status, const char *format, ...) WD_PRINTF(2, 3);

/* Fails with "function: text", and tells the log. For the floor of the public functions. */
cudnnStatus_t wd_fail_public(const char *function, cudnnStatus_t status, const char *text);

#ifdef __clang_analyzer__ /* which cannot see that the status comes back unchanged */
#define wd_fail(status, ...) (wd_fail(status, __VA_ARGS__), (status))
#endif

/* The status of this thread's latest wd_fail, and its text ("" after a clear). */
const char *wd_last_error(void);
void wd_last_error_clear(void);
/* The place of this thread's text, of WD_ERROR_TEXT_SIZE. The CPU module, which has a copy of this
 * file, shares the library's before anything of it can fail. */
char *wd_last_error_text(void);
void wd_last_error_share(char *(*text)(void));

/* The name of a status, "CUDNN_STATUS_..." ; never null. */
const char *wd_status_name(cudnnStatus_t status);

/* A refusal on one line: WD_REQUIRE(n > 0, CUDNN_STATUS_BAD_PARAM, "n=%d is not positive", n). */
#define WD_REQUIRE(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) return wd_fail(__VA_ARGS__);                                             \
    } while (0)

/* Hands a failed status to the caller; the text has been set where it failed. */
#define WD_TRY(expression)                                                                         \
    do {                                                                                           \
        cudnnStatus_t wd_try_status = (expression);                                                \
        if (wd_try_status != CUDNN_STATUS_SUCCESS) return wd_try_status;                           \
    } while (0)

/* The commonest refusal. */
#define WD_NOT_NULL(pointer)                                                                       \
    WD_REQUIRE((pointer) != NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: " #pointer " is null", \
               __func__)

#endif
