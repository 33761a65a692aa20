/* SPDX-License-Identifier: Apache-2.0
 *
 * The last error of each thread, and the names of statuses. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

static char *own_text(void)
{
    static _Thread_local char text[WD_ERROR_TEXT_SIZE];
    return text;
}

static char *(*shared_text)(void) = own_text; /* set once, where the CPU module is loaded */

char *wd_last_error_text(void)
{
    return shared_text();
}

void wd_last_error_share(char *(*text)(void))
{
    shared_text = text;
}

#undef wd_fail /* the analyzer's view of it */
cudnnStatus_t wd_fail(cudnnStatus_t status, const char *format, ...)
{
    /* by way of a copy: the arguments may come from the text that is being replaced */
    char text[WD_ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(wd_last_error_text(), WD_ERROR_TEXT_SIZE, "%s", text);
    return status;
}

cudnnStatus_t wd_fail_public(const char *function, cudnnStatus_t status, const char *text)
{
    char whole[WD_ERROR_TEXT_SIZE];
    snprintf(whole, sizeof whole, "%s: %s", function, text);
    wd_log_enter(function);
    if (wd_log_wanted(CUDNN_SEV_ERROR)) wd_log(CUDNN_SEV_ERROR, status, "%s", whole);
    return wd_fail(status, "%s", whole); /* last: the listener may have failed meanwhile */
}

const char *wd_last_error(void)
{
    return wd_last_error_text();
}

void wd_last_error_clear(void)
{
    wd_last_error_text()[0] = '\0';
}

const char *wd_status_name(cudnnStatus_t status)
{
    switch ((int)status) {
#define WD_STATUS(name)                                                                            \
    case CUDNN_STATUS_##name:                                                                      \
        return "CUDNN_STATUS_" #name;
#include "base/status.def"
#undef WD_STATUS
    default: return "CUDNN_UNKNOWN_STATUS";
    }
}
