/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver, asked in a child: that it is there, which CUDA version it serves and whether
 * that is enough for our kernels, its devices, and how our kernels cover each: by machine code, by
 * the driver's compiler from PTX, or not at all. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "probe.h"

static const char area[] = "driver";

/* The CUDA driver API, as far as it is asked here. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    ATTRIBUTE_MULTIPROCESSORS = 16,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
    DEVICES_MAX = 64,
    JIT_SIZE = 32
};

struct driver {
    int (*cuInit)(unsigned int flags);
    int (*cuDriverGetVersion)(int *version);
    int (*cuGetErrorName)(int error, const char **name);
    int (*cuDeviceGetCount)(int *count);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDeviceGetName)(char *name, int size, int device);
    int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
    int (*cuDeviceTotalMem)(size_t *bytes, int device);
};

static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_all(struct driver *d, void *library)
{
    return find(library, "cuInit", &d->cuInit) &&
           find(library, "cuDriverGetVersion", &d->cuDriverGetVersion) &&
           find(library, "cuGetErrorName", &d->cuGetErrorName) &&
           find(library, "cuDeviceGetCount", &d->cuDeviceGetCount) &&
           find(library, "cuDeviceGet", &d->cuDeviceGet) &&
           find(library, "cuDeviceGetName", &d->cuDeviceGetName) &&
           find(library, "cuDeviceGetAttribute", &d->cuDeviceGetAttribute) &&
           find(library, "cuDeviceTotalMem_v2", &d->cuDeviceTotalMem);
}

static void say_device(FILE *out, const struct driver *d, int ordinal)
{
    char name[128] = "";
    int device = 0, major = 0, minor = 0, multiprocessors = 0;
    size_t bytes = 0;
    if (d->cuDeviceGet(&device, ordinal) != CUDA_SUCCESS) return;
    d->cuDeviceGetName(name, (int)sizeof name - 1, device);
    d->cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, device);
    d->cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, device);
    d->cuDeviceGetAttribute(&multiprocessors, ATTRIBUTE_MULTIPROCESSORS, device);
    d->cuDeviceTotalMem(&bytes, device);
    probe_say(out, "name", "%s", name);
    probe_say(out, "capability", "%d", major * 10 + minor);
    probe_say(out, "multiprocessors", "%d", multiprocessors);
    probe_say(out, "mib", "%zu", bytes >> 20);
}

static int ask_driver(FILE *out, void *arg)
{
    void *library = dlopen((const char *)arg, RTLD_NOW | RTLD_LOCAL);
    struct driver d;
    struct link_map *map = NULL;
    const char *name = NULL;
    int version = 0, count = 0, result;
    if (!library) {
        probe_say(out, "missing", "%s", dlerror());
        return EXIT_SUCCESS;
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, (void *)&map) == 0 && map) {
        char real[PATH_MAX];
        probe_say(out, "path", "%s", realpath(map->l_name, real) ? real : map->l_name);
    }
    if (!find_all(&d, library)) {
        probe_say(out, "strange", "it lacks functions of the CUDA driver API");
        return EXIT_SUCCESS;
    }
    if (d.cuDriverGetVersion(&version) == CUDA_SUCCESS) probe_say(out, "version", "%d", version);
    result = d.cuInit(0);
    d.cuGetErrorName(result, &name);
    probe_say(out, "init", "%d", result);
    probe_say(out, "init_name", "%s", name ? name : "?");
    if (result != CUDA_SUCCESS) return EXIT_SUCCESS;
    result = d.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) count = 0;
    probe_say(out, "count", "%d", count);
    for (int i = 0; i < count && i < DEVICES_MAX; ++i) say_device(out, &d, i);
    return EXIT_SUCCESS;
}

static void judge_version(struct doctor *doctor, const struct probe *probe)
{
    int version = (int)probe_number(probe, "version", 0);
    char *path = probe_value(probe, "path");
    struct finding *finding;
    doctor->driver_version = version;
    if (version == 0) {
        finding = report_add(&doctor->report, WARNING, area, "driver.version",
                             "%s does not say which CUDA version it serves", path);
    } else if (version < CUDA_NEEDED && (WD_WITH_CUDA || doctor->driver_named)) {
        finding = report_add(
            &doctor->report, WRONG, area, "driver.version",
            "the driver %s serves CUDA %d.%d; WarpDNN needs a driver for CUDA %d.%d or "
            "newer (it was built with CUDA %d.%d)",
            path, version / 1000, version % 1000 / 10, CUDA_NEEDED / 1000, CUDA_NEEDED % 1000 / 10,
            WD_CUDA_VERSION / 1000, WD_CUDA_VERSION % 1000 / 10);
        finding_advise(finding,
                       "install a newer driver, or build WarpDNN with nvcc %d for this one",
                       version / 1000);
    } else {
        finding = report_add(&doctor->report, FINE, area, "driver.version",
                             "the driver %s serves CUDA %d.%d", path, version / 1000,
                             version % 1000 / 10);
    }
    finding_text(finding, "path", path);
    finding_number(finding, "version", version);
    finding_number(finding, "needed", CUDA_NEEDED);
    free(path);
}

static void judge_init(struct doctor *doctor, const struct probe *probe)
{
    int result = (int)probe_number(probe, "init", -1);
    struct finding *finding = NULL;
    char *name;
    if (result < 0) return; /* it never answered; the ending tells */
    name = probe_value(probe, "init_name");
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && doctor->devices == 0)) {
        doctor->devices = 0;
        finding = report_add(&doctor->report, NOTE, area, "driver.init",
                             "the driver finds no device: handles compute on the CPU");
        finding_advise(finding, "where there should be one: look at CUDA_VISIBLE_DEVICES, the "
                                "device files, and the kernel's log");
    } else if (result == CUDA_ERROR_STUB_LIBRARY) {
        finding = report_add(&doctor->report, WARNING, area, "driver.init",
                             "this is a stub to link with, not a driver");
        finding_advise(finding, "take its folder (lib64/stubs) out of LD_LIBRARY_PATH");
    } else if (result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) {
        finding = report_add(&doctor->report, WRONG, area, "driver.init",
                             "cuInit answers %s: the driver's library and its kernel module are of "
                             "different versions",
                             name);
        finding_advise(finding, "restart the machine, or load the new kernel module");
    } else if (result != CUDA_SUCCESS) {
        finding = report_add(&doctor->report, WRONG, area, "driver.init", "cuInit answers %s (%d)",
                             name, result);
        finding_advise(finding,
                       "look at the device files and the kernel's log; nvidia-smi may say more");
    }
    if (finding) finding_number(finding, "result", result);
    free(name);
}

/* Whether the driver can compile our PTX: it must know the version that nvcc wrote. */
static bool jit_works(const struct doctor *doctor)
{
    return doctor->driver_version >= WD_CUDA_VERSION &&
           (doctor->ptx_compiler || doctor->driver_named);
}

static void judge_device(struct doctor *doctor, const struct probe *probe, int ordinal)
{
    char *name = probe_nth(probe, "name", ordinal);
    char *capability_text = probe_nth(probe, "capability", ordinal);
    char *mib_text = probe_nth(probe, "mib", ordinal);
    char *processors = probe_nth(probe, "multiprocessors", ordinal);
    int capability = capability_text ? (int)strtol(capability_text, NULL, 10) : 0;
    long mib = mib_text ? strtol(mib_text, NULL, 10) : 0;
    char by[JIT_SIZE];
    enum coverage coverage =
        coverage_of(capability, WD_WITH_CUDA ? WD_CUDA_ARCHS : "", by, JIT_SIZE);
    char *head = text_make("device %d: %s, compute capability %d.%d, %.1f GiB, %s multiprocessors",
                           ordinal, name ? name : "?", capability / 10, capability % 10,
                           (double)mib / 1024, processors ? processors : "?");
    struct finding *finding;
    if (!WD_WITH_CUDA) {
        /* a driver that is named is a stand-in of tests, which needs none */
        finding = report_add(&doctor->report, doctor->driver_named ? NOTE : WARNING, area,
                             "driver.device", "%s; this build has no kernels for it", head);
        finding_advise(finding, "build where nvcc (CUDA 12.8 or newer) is on the path");
    } else if (coverage == COVER_NATIVE) {
        finding = report_add(&doctor->report, FINE, area, "driver.device",
                             "%s; our kernels run natively (%s)", head, by);
    } else if (coverage == COVER_NONE) {
        finding = report_add(&doctor->report, WRONG, area, "driver.device",
                             "%s; our kernels (%s) do not cover it", head, WD_CUDA_ARCHS);
        finding_advise(
            finding, "use another device (CUDA_VISIBLE_DEVICES), WARPDNN_DEVICE=cpu, or "
                     "build with its architecture in WARPDNN_CUDA_ARCHS where it is 8.0 or newer");
    } else if (!jit_works(doctor)) {
        finding = report_add(
            &doctor->report, WRONG, area, "driver.device",
            "%s; our kernels would be compiled from PTX (%s), which this driver cannot: %s", head,
            by,
            doctor->driver_version < WD_CUDA_VERSION ? "it is older than the nvcc that wrote it"
                                                     : "libnvidia-ptxjitcompiler.so.1 is missing");
        finding_advise(finding,
                       "install a driver for CUDA %d.%d or newer, whole; or build with "
                       "machine code for this device (WARPDNN_CUDA_ARCHS)",
                       WD_CUDA_VERSION / 1000, WD_CUDA_VERSION % 1000 / 10);
    } else {
        finding = report_add(
            &doctor->report, NOTE, area, "driver.device",
            "%s; the driver compiles our kernels from PTX (%s) when they are first used", head, by);
        finding_advise(finding,
                       "the compiled kernels are kept in ~/.nv/ComputeCache (CUDA_CACHE_PATH); "
                       "a build with its machine code (WARPDNN_CUDA_ARCHS) starts faster");
    }
    finding_number(finding, "ordinal", ordinal);
    finding_text(finding, "name", name ? name : "");
    finding_number(finding, "capability", capability);
    finding_number(finding, "mib", mib);
    finding_text(finding, "coverage",
                 coverage == COVER_NATIVE ? "native"
                 : coverage == COVER_JIT  ? "jit"
                                          : "none");
    finding_text(finding, "architecture", by);
    free(head);
    free(name);
    free(capability_text);
    free(mib_text);
    free(processors);
}

static int find_ptx_compiler(FILE *out, void *arg)
{
    void *library = dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_LAZY | RTLD_LOCAL);
    struct link_map *map = NULL;
    (void)arg;
    if (library && dlinfo(library, RTLD_DI_LINKMAP, (void *)&map) == 0 && map) {
        probe_say(out, "path", "%s", map->l_name);
    }
    return EXIT_SUCCESS;
}

static void judge_missing(struct doctor *doctor, const char *why)
{
    struct finding *finding = report_add(
        &doctor->report, doctor->driver_named ? WRONG : NOTE, area, "driver.missing",
        doctor->driver_named ? "the driver that WARPDNN_CUDA_DRIVER names cannot be opened: %s"
                             : "there is no CUDA driver (%s): handles compute on the CPU",
        why);
    if (doctor->driver_named) finding_advise(finding, "correct or unset WARPDNN_CUDA_DRIVER");
    else
        finding_advise(finding,
                       "for an NVIDIA GPU install its driver; in a container, pass the GPU in");
    if (!doctor->driver_named) doctor->devices = 0;
}

void doctor_driver(struct doctor *doctor)
{
    struct probe probe, compiler;
    char *missing, *strange;
    struct finding *finding;
    probe_call(&probe, ask_driver, (void *)doctor->driver, doctor->seconds);
    missing = probe_value(&probe, "missing");
    strange = probe_value(&probe, "strange");
    if (probe_number(&probe, "count", -1) > 0) {
        probe_call(&compiler, find_ptx_compiler, NULL, doctor->seconds);
        doctor->ptx_compiler = probe_nth(&compiler, "path", 0);
        probe_free(&compiler);
    }
    if (*missing) {
        judge_missing(doctor, missing);
    } else if (*strange) {
        finding = report_add(&doctor->report, WRONG, area, "driver.strange",
                             "%s is no CUDA driver: %s", doctor->driver, strange);
        finding_advise(finding,
                       doctor->driver_named
                           ? "correct or unset WARPDNN_CUDA_DRIVER"
                           : "install NVIDIA's driver again; look for a strange libcuda.so.1 on "
                             "LD_LIBRARY_PATH");
    } else {
        doctor->devices = (int)probe_number(&probe, "count", -1);
        judge_version(doctor, &probe);
        judge_init(doctor, &probe);
        for (int i = 0; i < doctor->devices && i < DEVICES_MAX; ++i)
            judge_device(doctor, &probe, i);
    }
    if (probe.end != PROBE_DONE || probe.code != 0) {
        char *ending = probe_ending(&probe);
        finding = report_add(&doctor->report, WRONG, area, "driver.ends", "asking the driver %s %s",
                             doctor->driver, ending);
        finding_advise(finding, "look at the kernel's log (dmesg), and at nvidia-smi");
        free(ending);
    }
    free(missing);
    free(strange);
    probe_free(&probe);
}
