/* SPDX-License-Identifier: Apache-2.0
 *
 * One lock guards the callback and the destination; a callback runs outside the lock, so that it may
 * call the library. The destination is opened on the first message and never closed: messages may
 * come until the process ends. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned callback_mask;
static void *callback_udata;
static cudnnCallback_t callback_function;
static FILE *destination;
static bool destination_opened;
static struct timespec started;

/* Severities wanted by either listener, as a mask; bit 31 says that it has been computed. */
static _Atomic unsigned wanted;
static _Thread_local struct wd_log_context current;

static unsigned destination_mask(void)
{
    const struct wd_env *env = wd_env();
    unsigned mask = 0;
    if (!env->log_destination) return 0;
    if (env->log_level >= 1) mask |= CUDNN_SEV_ERROR_EN | 1u;
    if (env->log_level >= 2) mask |= CUDNN_SEV_WARNING_EN;
    if (env->log_level >= 3) mask |= CUDNN_SEV_INFO_EN;
    return mask;
}

static unsigned refresh(void)
{
    unsigned mask = destination_mask() | (callback_function ? callback_mask : 0) | 1u << 31;
    atomic_store(&wanted, mask);
    return mask;
}

bool wd_log_wanted(cudnnSeverity_t severity)
{
    unsigned mask = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (!mask) {
        pthread_mutex_lock(&lock);
        mask = refresh();
        pthread_mutex_unlock(&lock);
    }
    return mask >> severity & 1u;
}

void wd_log_set_context(const struct wd_log_context *context)
{
    if (context) current = *context;
    else memset(&current, 0, sizeof current);
}

void wd_log_enter(const char *function)
{
    if (current.function && !strcmp(current.function, function)) return;
    current = (struct wd_log_context){.function = function};
}

const char *wd_log_function(void)
{
    return current.function ? current.function : "";
}

/* A level brings those above it, and errors always come: as recorded. */
static unsigned whole_levels(unsigned mask)
{
    unsigned levels = CUDNN_SEV_ERROR_EN;
    if (mask & (CUDNN_SEV_WARNING_EN | CUDNN_SEV_INFO_EN)) levels |= CUDNN_SEV_WARNING_EN;
    if (mask & CUDNN_SEV_INFO_EN) levels |= CUDNN_SEV_INFO_EN;
    return levels;
}

cudnnStatus_t wd_log_set_callback(unsigned mask, void *udata, cudnnCallback_t callback)
{
    pthread_mutex_lock(&lock);
    callback_mask = whole_levels(mask);
    callback_udata = udata;
    callback_function = callback;
    refresh();
    pthread_mutex_unlock(&lock);
    return CUDNN_STATUS_SUCCESS;
}

void wd_log_get_callback(unsigned *mask, void **udata, cudnnCallback_t *callback)
{
    pthread_mutex_lock(&lock);
    if (mask) *mask = callback_mask;
    if (udata) *udata = callback_udata;
    if (callback) *callback = callback_function;
    pthread_mutex_unlock(&lock);
}

/* Called under the lock. */
static FILE *open_destination(void)
{
    const char *name = wd_env()->log_destination;
    if (destination_opened || !name) return destination;
    destination_opened = true;
    if (!strcmp(name, "stdout")) destination = stdout;
    else if (!strcmp(name, "stderr")) destination = stderr;
    else if (*name) destination = fopen(name, "ae");
    return destination;
}

static void fill_debug(cudnnDebug_t *debug, cudnnStatus_t status)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&lock);
    if (started.tv_sec == 0) started = now;
    pthread_mutex_unlock(&lock);
    memset(debug, 0, sizeof *debug);
    debug->cudnn_version = (unsigned)wd_env()->version;
    debug->cudnnStatus = status;
    debug->time_sec = (unsigned)now.tv_sec;
    debug->time_usec = (unsigned)(now.tv_nsec / 1000);
    debug->time_delta = (unsigned)(now.tv_sec - started.tv_sec);
    debug->handle = current.handle;
    debug->stream = current.stream;
    debug->pid = (unsigned long long)getpid();
    debug->tid = (unsigned long long)syscall(SYS_gettid);
    debug->cudaDeviceId = current.device;
}

void wd_log(cudnnSeverity_t severity, cudnnStatus_t status, const char *format, ...)
{
    static const char letter[] = "FEWI";
    char text[2 * WD_ERROR_TEXT_SIZE];
    cudnnDebug_t debug;
    cudnnCallback_t callback;
    void *udata;
    unsigned mask;
    va_list arguments;
    if (!wd_log_wanted(severity)) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fill_debug(&debug, status);

    pthread_mutex_lock(&lock);
    callback = callback_function;
    udata = callback_udata;
    mask = callback_mask;
    if (destination_mask() >> severity & 1u) {
        FILE *file = open_destination();
        if (file) {
            fprintf(file, "%c! warpdnn %u.%06u pid=%llu tid=%llu %s%s%s\n", letter[severity & 3],
                    debug.time_sec, debug.time_usec, debug.pid, debug.tid,
                    status ? wd_status_name(status) : "", status ? ": " : "", text);
            fflush(file);
        }
    }
    pthread_mutex_unlock(&lock);
    if (callback && (mask >> severity & 1u)) {
        struct wd_log_context own = current; /* the callback's calls have theirs */
        callback(severity, udata, &debug, text);
        current = own;
    }
}
