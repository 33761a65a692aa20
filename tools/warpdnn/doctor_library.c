/* SPDX-License-Identifier: Apache-2.0
 *
 * Our own library: that it is there, opens, is of this command's build; what its kernels were
 * compiled for; the CPU module beside it and what that needs. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_id.h"
#include "doctor.h"
#include "elf_file.h"
#include "probe.h"

static const char area[] = "library";

typedef const char *(*words_fn)(void);
typedef int (*number_fn)(void);

static int ask_library(FILE *out, void *arg)
{
    void *library = dlopen((const char *)arg, RTLD_NOW | RTLD_LOCAL);
    void *words;
    words_fn ask;
    if (!library) {
        probe_say(out, "error", "%s", dlerror());
        return EXIT_FAILURE;
    }
    words = dlsym(library, "warpdnnGetVersionString");
    memcpy(&ask, &words, sizeof ask);
    if (words) probe_say(out, "version", "%s", ask());
    words = dlsym(library, "warpdnnGetBuildId");
    memcpy(&ask, &words, sizeof ask);
    if (words) probe_say(out, "build", "%s", ask());
    return EXIT_SUCCESS;
}

static void look_at_kernels(struct doctor *doctor)
{
    struct finding *finding;
    if (!WD_WITH_CUDA) {
        finding = report_add(&doctor->report, NOTE, area, "library.kernels",
                             "built without GPU kernels: handles compute on the CPU");
        finding_advise(finding, "for GPUs, build where nvcc (CUDA 12.8 or newer) is on the path");
        return;
    }
    finding = report_add(
        &doctor->report, FINE, area, "library.kernels",
        "GPU kernels compiled by nvcc %d.%d for %s; needs a driver for CUDA %d.%d or newer",
        WD_CUDA_VERSION / 1000, WD_CUDA_VERSION % 1000 / 10, WD_CUDA_ARCHS, CUDA_NEEDED / 1000,
        CUDA_NEEDED % 1000 / 10);
    finding_number(finding, "nvcc", WD_CUDA_VERSION);
    finding_number(finding, "driver_needed", CUDA_NEEDED);
    finding_text(finding, "architectures", WD_CUDA_ARCHS);
}

/* Opens the CPU module, asks OpenMP, which it brings, for its threads, and OpenBLAS, which it opens
 * when it is first needed, who it is. */
static int ask_module(FILE *out, void *arg)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    void *module = dlopen((const char *)arg, RTLD_NOW | RTLD_LOCAL);
    void *blas = NULL, *symbol;
    words_fn words;
    number_fn number;
    if (!module) {
        probe_say(out, "error", "%s", dlerror());
        return EXIT_FAILURE;
    }
    symbol = dlsym(module, "omp_get_max_threads");
    memcpy(&number, &symbol, sizeof number);
    if (symbol) probe_say(out, "threads", "%d", number());
    for (int i = 0; i < 2 && !blas; ++i) blas = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    symbol = blas ? dlsym(blas, "openblas_get_config") : NULL;
    memcpy(&words, &symbol, sizeof words);
    if (symbol) probe_say(out, "blas", "%s", words());
    return EXIT_SUCCESS;
}

static void open_module(struct doctor *doctor, const char *path, const char *build)
{
    struct finding *finding;
    struct probe probe;
    char *error, *blas;
    probe_call(&probe, ask_module, (void *)path, doctor->seconds);
    error = probe_value(&probe, "error");
    blas = probe_value(&probe, "blas");
    if (probe.end != PROBE_DONE || probe.code != 0) {
        char *ending = probe_ending(&probe);
        finding = report_add(&doctor->report, WRONG, area, "library.cpu_module",
                             "the CPU module cannot be opened: %s", *error ? error : ending);
        finding_advise(
            finding, "install what it needs (libopenblas0, libgomp1); until then the CPU is slow");
        free(ending);
    } else if (*build && !file_holds(path, build)) {
        finding = report_add(
            &doctor->report, WRONG, area, "library.cpu_module",
            "the CPU module %s is of another build than the library (%s), which refuses it", path,
            build);
        finding_advise(finding, "install both from one build; until then the CPU is slow");
    } else {
        long long threads = probe_number(&probe, "threads", 0);
        finding =
            report_add(&doctor->report, *blas ? FINE : WARNING, area, "library.cpu_module",
                       "CPU module %s, %lld OpenMP threads, %s", path, threads,
                       *blas ? blas : "and no OpenBLAS: convolutions and matrix products are slow");
        if (!*blas) finding_advise(finding, "install libopenblas0");
        finding_text(finding, "path", path);
        finding_text(finding, "blas", blas);
        finding_number(finding, "threads", threads);
    }
    free(error);
    free(blas);
    probe_free(&probe);
}

static void look_at_module(struct doctor *doctor, const char *build)
{
    const char *named = getenv("WARPDNN_CPU_MODULE");
    char *path = named ? text_copy(named) : text_make("%s/libwarpdnn_cpu.so", doctor->place.folder);
    struct finding *finding;
    if (named && !*named) {
        finding =
            report_add(&doctor->report, NOTE, area, "library.cpu_module",
                       "WARPDNN_CPU_MODULE is empty: the CPU runs on the definitions, slowly");
        finding_advise(finding, "unset it for the fast CPU engines");
    } else if (access(path, R_OK) != 0) {
        finding = report_add(
            &doctor->report, named ? WRONG : WARNING, area, "library.cpu_module",
            "there is no CPU module at %s: the CPU runs on the definitions, slowly", path);
        finding_advise(finding, "build where OpenBLAS and OpenMP are (libopenblas-dev)");
    } else {
        open_module(doctor, path, build);
    }
    free(path);
}

void doctor_library(struct doctor *doctor)
{
    struct finding *finding;
    struct probe probe;
    char *version, *build, *error;
    if (!doctor->place.library) {
        finding = report_add(&doctor->report, WRONG, area, "library.file",
                             "the library is missing; looked for: %s", doctor->place.looked);
        finding_advise(finding, "install it again, library and command by one `cmake --install`");
        doctor->report.unusable = true;
        return;
    }
    probe_call(&probe, ask_library, doctor->place.library, doctor->seconds);
    version = probe_value(&probe, "version");
    build = probe_value(&probe, "build");
    error = probe_value(&probe, "error");
    if (probe.end != PROBE_DONE || probe.code != 0) {
        char *ending = probe_ending(&probe);
        finding =
            report_add(&doctor->report, WRONG, area, "library.file", "%s cannot be opened: %s",
                       doctor->place.library, *error ? error : ending);
        finding_advise(finding, "install it again");
        doctor->report.unusable = true;
        free(ending);
    } else {
        finding = report_add(&doctor->report, FINE, area, "library.file", "%s, build %s, %s",
                             version, build, doctor->place.library);
        finding_text(finding, "path", doctor->place.library);
        finding_text(finding, "version", version);
        finding_text(finding, "build", build);
    }
    if (*build && strcmp(build, WD_BUILD_ID) != 0) {
        finding = report_add(&doctor->report, WARNING, area, "library.build",
                             "this command is of another build (%s) than the library (%s): what it "
                             "says about kernels may not hold",
                             WD_BUILD_ID, build);
        finding_advise(finding, "install both from one build");
    }
    look_at_kernels(doctor);
    look_at_module(doctor, build);
    if (!doctor->place.checker) {
        finding = report_add(&doctor->report, WARNING, area, "library.checker",
                             "libwarpdnn_run.so is missing in %s: `warpdnn run` sees less",
                             doctor->place.folder);
        finding_advise(finding, "install it again");
    }
    free(version);
    free(build);
    free(error);
    probe_free(&probe);
}
