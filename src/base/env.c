/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the environment once. The strings are copies: the caller's environment may change later. */
#include "base/env.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_version.h"

enum { TEXT_MAX = 1024 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wd_env env;
static char device_text[64];
static char log_destination[TEXT_MAX];
static char cpu_module[TEXT_MAX];
static char cpu_isa[16];
static char engines[TEXT_MAX];
static char cuda_driver[TEXT_MAX];
static char ignored[TEXT_MAX];

static void ignore(const char *name, const char *value, const char *rule)
{
    size_t length = strlen(ignored);
    snprintf(ignored + length, sizeof ignored - length, "%s%s=%.40s is ignored: it is not %s",
             length > 0 ? "; " : "", name, value, rule);
    env.ignored = ignored;
}

/* A copy of a variable, or null where it is not set or does not fit. */
static const char *text_of(const char *name, char *copy, size_t size)
{
    const char *value = getenv(name);
    if (!value) return NULL;
    if (strlen(value) >= size) {
        ignore(name, value, "short enough");
        return NULL;
    }
    return strcpy(copy, value);
}

static int number_of(const char *name, int lowest, int highest, int otherwise)
{
    const char *value = getenv(name);
    char *end = NULL;
    char rule[64];
    long number;
    if (!value || !*value) return otherwise;
    number = strtol(value, &end, 10);
    if (*end == '\0' && number >= lowest && number <= highest) return (int)number;
    snprintf(rule, sizeof rule, "a number from %d to %d", lowest, highest);
    ignore(name, value, rule);
    return otherwise;
}

static void read_all(void)
{
    const char *device = text_of("WARPDNN_DEVICE", device_text, sizeof device_text);
    env.device_text = device ? device : "";
    env.device = WD_CHOOSE_INVALID;
    if (!getenv("WARPDNN_DEVICE") || (device && (!*device || !strcmp(device, "auto")))) {
        env.device = WD_CHOOSE_AUTO;
    } else if (device && !strcmp(device, "gpu")) {
        env.device = WD_CHOOSE_GPU;
    } else if (device && !strcmp(device, "cpu")) {
        env.device = WD_CHOOSE_CPU;
    }
    env.check = number_of("WARPDNN_CHECK", 0, 1, 0) != 0;
    env.last_resort = number_of("WARPDNN_LAST_RESORT", 0, 1, 1) != 0;
    env.engines = text_of("WARPDNN_ENGINES", engines, sizeof engines);
    env.version = number_of("WARPDNN_CUDNN_VERSION", 90000, 99999, CUDNN_VERSION);
    env.threads = number_of("WARPDNN_THREADS", 0, 1024, 0);
    env.cpu_module = text_of("WARPDNN_CPU_MODULE", cpu_module, sizeof cpu_module);
    env.cpu_isa = text_of("WARPDNN_CPU_ISA", cpu_isa, sizeof cpu_isa);
    if (env.cpu_isa && *env.cpu_isa && strcmp(env.cpu_isa, "base") != 0 &&
        strcmp(env.cpu_isa, "avx2") != 0 && strcmp(env.cpu_isa, "avx512") != 0) {
        ignore("WARPDNN_CPU_ISA", env.cpu_isa, "base, avx2 or avx512");
    }
    env.cuda_driver = text_of("WARPDNN_CUDA_DRIVER", cuda_driver, sizeof cuda_driver);
    if (env.cuda_driver && !*env.cuda_driver) env.cuda_driver = NULL;
    if (env.engines && !*env.engines) env.engines = NULL;
    env.log_level = number_of("CUDNN_LOGLEVEL_DBG", 0, 3, 0);
    env.log_destination = text_of("CUDNN_LOGDEST_DBG", log_destination, sizeof log_destination);
}

const struct wd_env *wd_env(void)
{
    pthread_once(&once, read_all);
    return &env;
}
