/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake driver's state as a whole: the lock, faults on demand, the problems found, and the lookup
 * of functions. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_driver/internal.h"

enum { FUNCTIONS_MAX = 128, NAME_MAX = 64, FIRST_ID = 10 };

static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static struct {
    bool configured, initialised, gone, deferred;
    int devices, capability, version, processors;
    size_t memory;
    bool guards; /* memory */
    bool idle;
    FILE *log;
    CUresult init_result;
    uint64_t next_id;
    int problems;

    uint64_t countdown;
    CUresult countdown_result;
    char failing[NAME_MAX];
    CUresult failing_result;
    char failed[NAME_MAX];

    struct {
        const char *name;
        uint64_t calls;
    } functions[FUNCTIONS_MAX];

    CUuserObject leaving; /* destructors to run once the lock is open */
    CUuserObject left;    /* those that have run */
} state;

static _Thread_local CUresult pending; /* what a call that gives back answers in the end */
static _Thread_local int nesting;
static _Thread_local bool in_destructor;

static void make_lock(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
}

void fake_unlock(void)
{
    nesting -= 1;
    if (nesting == 0) {
        while (state.leaving) {
            CUuserObject object = state.leaving;
            state.leaving = object->next;
            /* as on the driver's own thread: no lock is held, no CUDA call is allowed */
            pthread_mutex_unlock(&lock);
            in_destructor = true;
            object->destroy(object->data);
            in_destructor = false;
            pthread_mutex_lock(&lock);
            object->next = state.left;
            state.left = object;
        }
    }
    pthread_mutex_unlock(&lock);
}

static long from_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static void configure(void)
{
    const char *log;
    if (state.configured) return;
    state.configured = true;
    log = getenv("FAKECUDA_LOG");
    fake_register_definitions();
    state.devices = (int)from_environment("FAKECUDA_DEVICES", 2);
    state.capability = (int)from_environment("FAKECUDA_CAPABILITY", 90);
    state.memory = (size_t)from_environment("FAKECUDA_MEMORY_MIB", 1024) << 20;
    state.version = (int)from_environment("FAKECUDA_VERSION", 13000);
    state.processors = (int)from_environment("FAKECUDA_PROCESSORS", 132);
    state.guards = from_environment("FAKECUDA_GUARD", 0) != 0;
    state.idle = from_environment("FAKECUDA_IDLE", 0) != 0;
    if (log && *log) state.log = fopen(log, "a");
    state.init_result = (CUresult)from_environment("FAKECUDA_INIT", CUDA_SUCCESS);
}

void fake_lock(void)
{
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&lock);
    nesting += 1;
    configure();
}

int fake_device_count(void)
{
    return state.devices < DEVICES_MAX ? state.devices : DEVICES_MAX;
}

int fake_device_capability(void)
{
    return state.capability;
}

int fake_device_processors(void)
{
    return state.processors;
}

bool fake_guards_memory(void)
{
    return state.guards;
}

bool fake_is_idle(void)
{
    return state.idle;
}

FILE *fake_log(void)
{
    return state.log;
}

size_t fake_device_memory(void)
{
    return state.memory;
}

int fake_version(void)
{
    return state.version;
}

CUresult fake_init_result(void)
{
    return state.init_result;
}

void fake_mark_initialised(void)
{
    state.initialised = true;
}

bool fake_is_deferred(void)
{
    return state.deferred;
}

uint64_t fake_next_id(void)
{
    return FIRST_ID + state.next_id++;
}

void fake_leave_destructors(CUuserObject object)
{
    object->next = state.leaving;
    state.leaving = object;
}

CUresult fake_problem(CUresult result, const char *format, ...)
{
    va_list list;
    state.problems += 1;
    fputs("fake driver: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return result;
}

/* Names are literals: the address tells them apart, or finds another entry of the same name. */
static void count_call(const char *function)
{
    for (int i = 0; i < FUNCTIONS_MAX; ++i) {
        if (!state.functions[i].name) state.functions[i].name = function;
        if (state.functions[i].name != function) continue;
        state.functions[i].calls += 1;
        return;
    }
}

/* The failure that a test asked for, or success. */
static CUresult injected(const char *function)
{
    CUresult result = CUDA_SUCCESS;
    if (state.countdown > 0 && --state.countdown == 0) result = state.countdown_result;
    if (strcmp(state.failing, function) == 0) result = state.failing_result;
    if (result != CUDA_SUCCESS) snprintf(state.failed, NAME_MAX, "%s", function);
    return result;
}

CUresult fake_begin(const char *function, int kind)
{
    CUresult result;
    fake_lock();
    if (in_destructor) {
        return fake_problem(CUDA_ERROR_NOT_PERMITTED,
                            "%s is called in the destructor of a user object", function);
    }
    count_call(function);
    if (nesting == 1) pending = CUDA_SUCCESS;
    if (state.gone) return CUDA_ERROR_DEINITIALIZED;
    result = injected(function);
    if (result != CUDA_SUCCESS) {
        if (!(kind & CALL_GIVES_BACK)) return result;
        pending = result;
    }
    if (!state.initialised && !(kind & CALL_BEFORE_INIT)) return CUDA_ERROR_NOT_INITIALIZED;
    if (kind & CALL_UNSAFE) return fake_unsafe_check(function);
    return CUDA_SUCCESS;
}

CUresult fake_end(CUresult result)
{
    if (nesting == 1 && pending != CUDA_SUCCESS) {
        result = pending;
        pending = CUDA_SUCCESS;
    }
    fake_unlock();
    return result;
}

void fakecuda_reset(void)
{
    fake_lock();
    state.problems = 0;
    state.countdown = 0;
    state.failing[0] = '\0';
    state.failed[0] = '\0';
    for (int i = 0; i < FUNCTIONS_MAX; ++i) state.functions[i].calls = 0;
    fake_unlock();
}

void fakecuda_configure(int devices, int capability, size_t memory, int version)
{
    fake_lock();
    state.devices = devices;
    state.capability = capability;
    state.memory = memory;
    state.version = version;
    fake_unlock();
}

void fakecuda_deinitialize(void)
{
    fake_lock();
    state.gone = true;
    fake_unlock();
}

void fakecuda_set_deferred(int on)
{
    fake_lock();
    fake_flush();
    state.deferred = on != 0;
    fake_unlock();
}

void fakecuda_fail_at(uint64_t n, int result)
{
    fake_lock();
    state.countdown = n;
    state.countdown_result = result;
    state.failed[0] = '\0';
    fake_unlock();
}

void fakecuda_fail_function(const char *name, int result)
{
    fake_lock();
    snprintf(state.failing, NAME_MAX, "%s", name ? name : "");
    state.failing_result = result;
    state.failed[0] = '\0';
    fake_unlock();
}

const char *fakecuda_failed(void)
{
    return state.failed[0] ? state.failed : NULL;
}

uint64_t fakecuda_calls(const char *name)
{
    uint64_t calls = 0;
    fake_lock();
    for (int i = 0; i < FUNCTIONS_MAX; ++i)
        if (state.functions[i].name && (!name || strcmp(name, state.functions[i].name) == 0))
            calls += state.functions[i].calls;
    fake_unlock();
    return calls;
}

int fakecuda_report(void)
{
    int problems;
    fake_lock();
    fake_flush();
    problems = state.problems + fake_report_contexts() + fake_report_memory() +
               fake_report_streams() + fake_report_graphs();
    state.problems = 0;
    fake_unlock();
    return problems;
}

/* For programs that know nothing of this driver: FAKECUDA_REPORT=1 in the environment makes a process
 * that leaves problems behind end with status 97. */
__attribute__((destructor)) static void report_at_exit(void)
{
    int problems;
    if (!from_environment("FAKECUDA_REPORT", 0) || !state.configured) return;
    fake_lock();
    fake_flush();
    problems = state.problems + fake_report_memory() + fake_report_graphs();
    fake_unlock();
    if (problems != 0) _exit(97); /* contexts and streams end with the process */
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    switch (error) {
#define WD_CU_ERROR(code, value)                                                                   \
    case code:                                                                                     \
        *name = #code;                                                                             \
        return CUDA_SUCCESS;
#include "gpu/driver.def"
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Finds the form of a function that the wanted version has, as the driver does. */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             int *found);

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             int *found)
{
    static const struct {
        const char *name;
        int version;
        void (*function)(void);
    } all[] = {
#define WD_CU_FUNCTION(name, exported, since, parameters) {#name, since, (void (*)(void))exported},
#include "gpu/driver.def"
    };
    CUresult result = fake_begin("cuGetProcAddress", CALL_BEFORE_INIT);
    (void)flags;
    *function = NULL;
    if (found) *found = 1;
    if (result == CUDA_SUCCESS) {
        result = CUDA_ERROR_NOT_FOUND;
        for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
            if (strcmp(all[i].name, symbol) != 0 || all[i].version > version) continue;
            memcpy(function, &all[i].function, sizeof *function);
            if (found) *found = 0;
            result = CUDA_SUCCESS;
        }
    }
    return fake_end(result);
}
