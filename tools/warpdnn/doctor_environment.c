/* SPDX-License-Identifier: Apache-2.0
 *
 * The WARPDNN_ variables of this environment: known names, values that mean something. The library
 * itself takes what it cannot read as the default, in silence, and what is empty as not set. And where the log would go,
 * since of one that cannot be written nobody hears. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

static const char area[] = "environment";

/* One row a variable: words that it takes, or a range of numbers, or (none of both) any text. */
static const struct variable {
    const char *name;
    const char *words;
    long lowest, highest;
} variables[] = {
    {"WARPDNN_DEVICE", "auto gpu cpu", 0, 0},
    {"WARPDNN_CHECK", NULL, 0, 1},
    {"WARPDNN_LAST_RESORT", NULL, 0, 1},
    {"WARPDNN_THREADS", NULL, 0, 1024},
    {"WARPDNN_CPU_ISA", "base avx2 avx512", 0, 0},
    {"WARPDNN_CPU_MODULE", NULL, 0, 0},
    {"WARPDNN_CUDA_DRIVER", NULL, 0, 0},
    {"WARPDNN_ENGINES", NULL, 0, 0},
    {"WARPDNN_CUDNN_VERSION", NULL, 90000, 99999},
    {"WARPDNN_RUN_REPORT", NULL, 0, 0},
    /* of the build and of the tests */
    {"WARPDNN_CUDA", NULL, 0, 0},
    {"WARPDNN_WERROR", NULL, 0, 0},
    {"WARPDNN_BUILD", NULL, 0, 0},
    {"WARPDNN_SOURCE", NULL, 0, 0},
};

static bool is_word(const char *words, const char *value)
{
    size_t length = strlen(value);
    if (strchr(value, ' ')) return false;
    for (const char *at = words; length && (at = strstr(at, value)) != NULL; at += length) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    }
    return false;
}

static bool is_number(const struct variable *v, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);
    return end != value && !*end && number >= v->lowest && number <= v->highest;
}

static void judge(struct doctor *doctor, const struct variable *v, const char *value)
{
    struct finding *finding;
    /* an unknown device is refused by cudnnCreate, all else falls back to the default */
    bool refused = strcmp(v->name, "WARPDNN_DEVICE") == 0;
    if (!*value && (v->words || v->highest)) return;
    if (v->words && !is_word(v->words, value)) {
        finding = report_add(&doctor->report, refused ? WRONG : WARNING, area, "environment.value",
                             "%s=%s: must be one of: %s", v->name, value, v->words);
        finding_advise(finding, "correct or unset it");
    } else if (v->highest && !is_number(v, value)) {
        finding = report_add(&doctor->report, WARNING, area, "environment.value",
                             "%s=%s: must be a number from %ld to %ld; the default is taken",
                             v->name, value, v->lowest, v->highest);
        finding_advise(finding, "correct or unset it");
    } else {
        finding =
            report_add(&doctor->report, NOTE, area, "environment.set", "%s=%s", v->name, value);
    }
    finding_text(finding, "name", v->name);
    finding_text(finding, "value", value);
}

/* 0, or why a file cannot be appended to, or made. Makes none. */
static int why_not_writable(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct text folder = {0};
    struct stat is;
    int error = 0;
    if (stat(path, &is) == 0) {
        if (S_ISDIR(is.st_mode)) return EISDIR;
        return access(path, W_OK) == 0 ? 0 : errno;
    }
    if (errno != ENOENT) return errno;
    if (slash) text_add(&folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (access(slash ? text_of(&folder) : ".", W_OK | X_OK) != 0) error = errno;
    text_free(&folder);
    return error;
}

static void judge_log(struct doctor *doctor)
{
    static const struct variable levels = {"CUDNN_LOGLEVEL_DBG", NULL, 0, 3};
    const char *level = getenv("CUDNN_LOGLEVEL_DBG"), *to = getenv("CUDNN_LOGDEST_DBG");
    bool is_file = to && *to && strcmp(to, "stdout") != 0 && strcmp(to, "stderr") != 0;
    int error = is_file ? why_not_writable(to) : 0;
    struct finding *finding;
    if (error) {
        finding = report_add(&doctor->report, WARNING, area, "environment.log",
                             "CUDNN_LOGDEST_DBG=%s: %s; nothing is logged", to, strerror(error));
        finding_advise(finding, "name a file that can be written, stdout or stderr");
        finding_text(finding, "value", to);
    } else if (level && *level && !is_number(&levels, level)) {
        finding =
            report_add(&doctor->report, WARNING, area, "environment.log",
                       "CUDNN_LOGLEVEL_DBG=%s is no number from 0 to 3: nothing is logged", level);
        finding_advise(finding, "1 logs errors, 2 warnings too, 3 everything");
        finding_text(finding, "value", level);
    } else if (level && strtol(level, NULL, 10) > 0 && !(to && *to)) {
        finding =
            report_add(&doctor->report, NOTE, area, "environment.log",
                       "CUDNN_LOGLEVEL_DBG=%s without CUDNN_LOGDEST_DBG: nothing is logged", level);
        finding_advise(finding, "CUDNN_LOGDEST_DBG=stderr, or a file");
    }
}

void doctor_environment(struct doctor *doctor)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    for (char **entry = environ; *entry; ++entry) {
        const struct variable *known = NULL;
        size_t length = strcspn(*entry, "=");
        if (!text_starts(*entry, "WARPDNN_") || text_starts(*entry, "WARPDNN_TEST_")) continue;
        for (size_t i = 0; i < sizeof variables / sizeof variables[0]; ++i) {
            if (strlen(variables[i].name) == length &&
                strncmp(variables[i].name, *entry, length) == 0) {
                known = &variables[i];
            }
        }
        if (known) {
            judge(doctor, known, *entry + length + ((*entry)[length] == '='));
        } else {
            struct finding *finding =
                report_add(&doctor->report, WARNING, area, "environment.unknown",
                           "%.*s is no variable of WarpDNN: misspelt?", (int)length, *entry);
            finding_advise(finding, "docs/environment.md lists them");
        }
    }
    judge_log(doctor);
    if (visible) {
        struct finding *finding =
            report_add(&doctor->report, NOTE, area, "environment.visible",
                       *visible ? "CUDA_VISIBLE_DEVICES=%s: other devices are hidden"
                                : "CUDA_VISIBLE_DEVICES is set and empty%s: all devices are hidden",
                       visible);
        finding_text(finding, "value", visible);
    }
}
