/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases, random numbers and the ways in which a call is run. One thread. */
#define _GNU_SOURCE
#include "support/harness.h"

#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/harness_internal.h"

cudnnHandle_t harness_handle;
bool harness_on_gpu;
bool harness_all_engines;
bool harness_values = true;

static const char *program = "test";
static const char *only;
static uint64_t sample = 1; /* one case of so many */
static bool listed;         /* and only those of a list */
static uint64_t seed = 1;
static uint64_t state;   /* of the case under way */
static uint64_t between; /* what a program draws outside of cases, whichever of them run */
static bool inside;
static char case_name[256];
static bool failed;
static int messages;
static long passed_count;
static long failed_count;

static uint64_t next_random(void)
{
    /* splitmix64 */
    uint64_t *stream = inside ? &state : &between;
    uint64_t z = *stream += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t random_int(int64_t lowest, int64_t highest)
{
    return lowest + (int64_t)(next_random() % (uint64_t)(highest - lowest + 1));
}

double random_real(double lowest, double highest)
{
    return lowest + (highest - lowest) * (double)(next_random() >> 11) * 0x1p-53;
}

bool random_chance(double probability)
{
    return random_real(0.0, 1.0) < probability;
}

/* NVIDIA's library may stand in the loader's cache: a test of that one proves nothing. */
static void check_library(void)
{
    Dl_info info;
    cudnnStatus_t (*entry)(cudnnHandle_t *) = cudnnCreate;
    void *address;
    memcpy(&address, &entry, sizeof address);
    if (!dladdr(address, &info) || !dlsym(RTLD_DEFAULT, "warpdnnGetBuildId")) {
        printf("%s: libcudnn is not WarpDNN's\n0 passed, 1 failed\n", program);
        exit(1);
    }
    printf("%s: library %s, %s, build %s\n", program, info.dli_fname, warpdnnGetVersionString(),
           warpdnnGetBuildId());
}

/* Cases free what the next ones ask for again: it stays in the process, or its pages would be a third of the time. */
static void keep_memory(void)
{
    enum { MOST = 1 << 30, LARGEST = 32 << 20 }; /* bytes in all, and of a block */
    mallopt(M_TRIM_THRESHOLD, MOST);
    mallopt(M_MMAP_THRESHOLD, LARGEST);
}

bool harness_usual_order(void)
{
    const char *engines = getenv("WARPDNN_ENGINES");
    return harness_on_gpu && engines && strcmp(engines, "*") == 0;
}

void harness_start(int argc, char **argv)
{
    const char *values = getenv("WARPDNN_TEST_VALUES");
    const char *engines = getenv("WARPDNN_ENGINES");
    const char *one_of = getenv("WARPDNN_TEST_SAMPLE");
    warpdnnDevice_t device;
    cudnnStatus_t status;
    program = argv[0];
    keep_memory();
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed")) seed = strtoull(argv[i + 1], NULL, 0);
        if (!strcmp(argv[i], "--only")) only = argv[i + 1];
    }
    between = seed;
    check_library();
    status = cudnnCreate(&harness_handle);
    if (status != CUDNN_STATUS_SUCCESS) {
        char text[512];
        cudnnGetLastErrorString(text, sizeof text);
        printf("%s: cudnnCreate: %s: %s\n0 passed, 1 failed\n", program,
               cudnnGetErrorString(status), text);
        exit(1);
    }
    warpdnnGetDevice(harness_handle, &device, NULL);
    harness_on_gpu = device == WARPDNN_DEVICE_GPU;
    if (one_of && strtoull(one_of, NULL, 10) > 1) sample = strtoull(one_of, NULL, 10);
    listed = list_start(program);
    harness_all_engines = harness_on_gpu && sample == 1 && (!engines || !strcmp(engines, "*"));
    if (harness_on_gpu) capture_start();
    harness_values = !values || strcmp(values, "0") != 0;
    printf("%s: on the %s, seed %llu\n", program, harness_on_gpu ? "GPU" : "CPU",
           (unsigned long long)seed);
}

int harness_finish(void)
{
    if (harness_on_gpu) capture_finish();
    if (cudnnDestroy(harness_handle) != CUDNN_STATUS_SUCCESS) failed_count += 1;
    failed_count += list_finish();
    if (passed_count + failed_count == 0 && (sample > 1 || listed)) {
        printf("0 passed, 0 failed, 1 skipped\n"); /* none was drawn */
        return 0;
    }
    printf("%ld passed, %ld failed\n", passed_count, failed_count);
    return failed_count > 0 || passed_count == 0;
}

bool case_begin(const char *format, ...)
{
    uint64_t hash = 14695981039346656037u;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(case_name, sizeof case_name, format, arguments);
    va_end(arguments);
    if (only && !strstr(case_name, only)) return false;
    if (!list_wants(case_name)) return false;
    for (const char *p = case_name; *p; ++p) hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    state = hash ^ (seed * 0xd6e8feb86659fd93u);
    inside = true;
    if (sample > 1 && next_random() % sample != 0) inside = false;
    if (!inside) return false;
    state = hash ^ (seed * 0xd6e8feb86659fd93u);
    failed = false;
    messages = 0;
    list_case_begins();
    return true;
}

void case_fail(const char *format, ...)
{
    va_list arguments;
    failed = true;
    if (++messages > 3) return;
    printf("FAIL %s: ", case_name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n  rerun: %s%s --seed %llu --only '%s'\n",
           harness_on_gpu ? "WARPDNN_DEVICE=gpu " : "WARPDNN_DEVICE=cpu ", program,
           (unsigned long long)seed, case_name);
}

bool case_failed(void)
{
    return failed;
}

void case_end(void)
{
    tensors_free();
    case_count();
}

void case_count(void)
{
    list_case_ends(case_name);
    if (failed) failed_count += 1;
    else passed_count += 1;
    inside = false;
}

static bool call_once(const char *way, cudnnStatus_t (*call)(void *), void *context)
{
    cudnnStatus_t status = call(context);
    if (status == CUDNN_STATUS_SUCCESS) status = warpdnnSynchronize(harness_handle);
    if (status == CUDNN_STATUS_SUCCESS) return true;
    {
        char text[512];
        cudnnGetLastErrorString(text, sizeof text);
        case_fail("%s: %s: %s", way, cudnnGetErrorString(status), text);
    }
    return false;
}

bool run_call(cudnnStatus_t (*call)(void *context), void *context)
{
    tensors_upload();
    if (!call_once("first run", call, context)) return false;
    if (!tensors_download("first run")) return false;
    tensors_upload();
    if (!call_once("second run", call, context)) return false;
    if (!tensors_compare("second run")) return false;
    if (harness_on_gpu) {
        tensors_upload();
        if (!capture_and_replay(call, context)) return false;
        if (!tensors_compare("captured run")) return false;
    }
    return !failed;
}

void run_refused(cudnnStatus_t expected, cudnnStatus_t (*call)(void *context), void *context)
{
    char text[512] = "";
    cudnnStatus_t status;
    cudnnGetLastErrorString(text, sizeof text);
    tensors_upload();
    status = call(context);
    cudnnGetLastErrorString(text, sizeof text);
    if (status == CUDNN_STATUS_SUCCESS || (expected && status != expected)) {
        case_fail("answered %s (%s) where %s was due", cudnnGetErrorString(status), text,
                  expected ? cudnnGetErrorString(expected) : "a refusal");
    }
    if (status != CUDNN_STATUS_SUCCESS && !text[0]) case_fail("refused without a text");
    warpdnnSynchronize(harness_handle);
    tensors_untouched();
}
