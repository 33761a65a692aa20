/* SPDX-License-Identifier: Apache-2.0
 *
 * The Pythons in reach (of the active venv, of the active conda environment, the python3 on PATH):
 * which frameworks each has, which cuDNN each framework asks for, and the libcudnn files that came
 * with them. Frameworks are not imported. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudnn_version.h"

#include "doctor.h"
#include "probe.h"

static const char area[] = "python";
static const char *const script[] = {
#include "python_probe.inc"
};

enum { PYTHONS_MAX = 4, PACKAGES_MAX = 64 };

struct pythons {
    char *paths[PYTHONS_MAX];
    const char *where[PYTHONS_MAX];
    int count;
};

static void add_python(struct pythons *pythons, const char *where, const char *folder)
{
    char *path = text_make("%s/python3", folder);
    bool fresh = pythons->count < PYTHONS_MAX && access(path, X_OK) == 0;
    for (int i = 0; i < pythons->count; ++i) {
        if (strcmp(pythons->paths[i], path) == 0) fresh = false;
    }
    if (!fresh) {
        free(path);
        return;
    }
    pythons->where[pythons->count] = where;
    pythons->paths[pythons->count++] = path;
}

static void add_active(struct pythons *pythons, const char *where, const char *variable)
{
    const char *prefix = getenv(variable);
    char *folder;
    if (!prefix || !*prefix) return;
    folder = text_make("%s/bin", prefix);
    add_python(pythons, where, folder);
    free(folder);
}

static void add_from_path(struct pythons *pythons)
{
    const char *rest = getenv("PATH");
    int before = pythons->count;
    while (rest && *rest && pythons->count == before) {
        size_t length = strcspn(rest, ":");
        char *folder = length ? text_make("%.*s", (int)length, rest) : text_copy(".");
        char *path = text_make("%s/python3", folder);
        bool here = access(path, X_OK) == 0;
        if (here) add_python(pythons, "on PATH", folder);
        free(folder);
        free(path);
        if (here) break; /* it may be the active one, told already */
        rest += length + (rest[length] != '\0');
    }
}

/* "0 torch 2.5 needs nvidia-cudnn-cu12==9.1.0.70": the version that cudnnGetVersion must reach, 0
 * where it is not told, and the words. */
static void judge_asked(struct doctor *doctor, const char *answer)
{
    char *words;
    long lowest = strtol(answer, &words, 10);
    const char *overridden = getenv("WARPDNN_CUDNN_VERSION");
    long answered = overridden ? strtol(overridden, NULL, 10) : CUDNN_VERSION;
    struct finding *finding;
    while (*words == ' ') words += 1;
    if (answered < 90000 || answered > 99999) answered = CUDNN_VERSION;
    if (lowest && lowest < 90000) {
        finding =
            report_add(&doctor->report, WARNING, area, "python.asks",
                       "%s: another major version than cuDNN 9, so WarpDNN cannot serve it", words);
        finding_advise(finding, "install a build of the framework for cuDNN 9");
    } else if (lowest > answered) {
        finding = report_add(&doctor->report, WARNING, area, "python.asks",
                             "%s: newer than what WarpDNN answers (%ld.%ld.%ld)", words,
                             answered / 10000, answered / 100 % 100, answered % 100);
        finding_advise(finding,
                       "if the framework refuses, set WARPDNN_CUDNN_VERSION=%ld; it may ask "
                       "for operations that are newer than 9.19",
                       lowest);
    } else {
        finding = report_add(&doctor->report, FINE, area, "python.asks", "%s%s", words,
                             lowest ? "" : " (any version)");
    }
    finding_number(finding, "lowest", lowest);
    finding_text(finding, "words", words);
}

/* The last line of what it wrote: Python's errors end with what went wrong. */
static char *last_line(const char *said)
{
    const char *end = said + strlen(said), *begin;
    while (end > said && (end[-1] == '\n' || end[-1] == ' ')) end -= 1;
    begin = end;
    while (begin > said && begin[-1] != '\n') begin -= 1;
    return text_make("%.*s", (int)(end - begin < 300 ? end - begin : 300), begin);
}

static void judge_packages(struct doctor *doctor, const struct probe *probe, const char *path,
                           const char *where)
{
    char *version = probe_value(probe, "@version"), *package;
    struct text list = {0};
    struct finding *finding;
    for (int i = 0; i < PACKAGES_MAX && (package = probe_nth(probe, "@package", i)) != NULL; ++i) {
        text_add(&list, "%s%s", i ? ", " : "", package);
        free(package);
    }
    finding =
        report_add(&doctor->report, FINE, area, "python.python", "%s (%s), Python %s: %s", path,
                   where, version, list.length ? text_of(&list) : "no framework that uses cuDNN");
    finding_text(finding, "path", path);
    finding_text(finding, "version", version);
    finding_text(finding, "packages", text_of(&list));
    text_free(&list);
    free(version);
}

static void judge_python(struct doctor *doctor, const char *path, const char *where,
                         const char *input)
{
    char *const argv[] = {(char *)path, (char *)"-", NULL};
    struct probe probe;
    struct finding *finding;
    char *version, *answer;
    probe_command(&probe, argv, input, doctor->seconds);
    version = probe_value(&probe, "@version");
    if (probe.end != PROBE_DONE || probe.code != 0 || !*version) {
        char *ending = probe_ending(&probe);
        char *last = last_line(text_of(&probe.said));
        finding = report_add(&doctor->report, NOTE, area, "python.broken",
                             "%s (%s) does not work: it %s%s%s; its frameworks are not known", path,
                             where, ending, *last ? ": " : "", last);
        finding_text(finding, "path", path);
        free(ending);
        free(last);
    } else {
        judge_packages(doctor, &probe, path, where);
        for (int i = 0; i < PACKAGES_MAX && (answer = probe_nth(&probe, "@asks", i)) != NULL; ++i) {
            judge_asked(doctor, answer);
            free(answer);
        }
        for (int i = 0; i < PACKAGES_MAX && (answer = probe_nth(&probe, "@file", i)) != NULL; ++i) {
            places_add_file(doctor, area, "python.file", "opened by its frameworks", answer);
            free(answer);
        }
    }
    free(version);
    probe_free(&probe);
}

void doctor_python(struct doctor *doctor)
{
    struct pythons pythons = {.count = 0};
    struct text input = {0};
    for (size_t i = 0; i < sizeof script / sizeof script[0]; ++i) text_add(&input, "%s", script[i]);
    add_active(&pythons, "the active venv", "VIRTUAL_ENV");
    add_active(&pythons, "the active conda environment", "CONDA_PREFIX");
    add_from_path(&pythons);
    if (pythons.count == 0) {
        report_add(&doctor->report, NOTE, area, "python.none", "there is no python3 on PATH");
    }
    for (int i = 0; i < pythons.count; ++i) {
        judge_python(doctor, pythons.paths[i], pythons.where[i], text_of(&input));
        free(pythons.paths[i]);
    }
    text_free(&input);
}
