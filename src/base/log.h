/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages for the log destination (CUDNN_LOGLEVEL_DBG, CUDNN_LOGDEST_DBG) and for the callback of
 * cudnnSetCallback. Safe for threads; silent unless one of the two asks. */
#ifndef WD_BASE_LOG_H
#define WD_BASE_LOG_H

#include <stdbool.h>

#include "base/status.h"

/* Whether anyone listens to this severity: one load, so that callers skip the formatting. */
bool wd_log_wanted(cudnnSeverity_t severity);

void wd_log(cudnnSeverity_t severity, cudnnStatus_t status, const char *format, ...)
    WD_PRINTF(3, 4);

/* The handle, stream and device that the messages of this thread's current call belong to. Set where
 * a public function has checked its handle. */
struct wd_log_context {
    const char *function; /* public */
    cudnnHandle_t handle;
    cudaStream_t stream;
    int device;
};
void wd_log_set_context(const struct wd_log_context *context);
/* A message of `function` follows: forgets the context if it was set by another one. */
void wd_log_enter(const char *function);
/* The public function of this thread's current call, "" outside of one. */
const char *wd_log_function(void);

cudnnStatus_t wd_log_set_callback(unsigned mask, void *udata, cudnnCallback_t callback);
void wd_log_get_callback(unsigned *mask, void **udata, cudnnCallback_t *callback);

#endif
