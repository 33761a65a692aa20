/* SPDX-License-Identifier: Apache-2.0
 *
 * The health of the GPUs, from NVML where libnvidia-ml.so.1 is present: temperature, what slows the
 * clocks, power, memory errors, compute mode. Asked in a child; what a device does not support is
 * left out. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "probe.h"

static const char area[] = "health";

/* NVML, as far as it is asked here. */
enum {
    NVML_SUCCESS = 0,
    GPU_SENSOR = 0,
    SLOWDOWN = 1,
    UNCORRECTED = 1,
    VOLATILE = 0,
    AGGREGATE = 1
};
enum { EXCLUSIVE_PROCESS = 3, PROHIBITED = 2, DEVICES_MAX = 64 };

typedef void *device_handle;
typedef int (*simple_fn)(void);
typedef int (*text_fn)(char *text, unsigned size);
typedef int (*count_fn)(unsigned *count);
typedef int (*handle_fn)(unsigned index, device_handle *device);
typedef int (*name_fn)(device_handle device, char *name, unsigned size);
typedef int (*number_fn)(device_handle device, unsigned *number);
typedef int (*kind_fn)(device_handle device, int kind, unsigned *number);
typedef int (*bits_fn)(device_handle device, unsigned long long *bits);
typedef int (*ecc_fn)(device_handle device, int type, int counter, unsigned long long *count);
typedef int (*rows_fn)(device_handle device, unsigned *corrected, unsigned *uncorrected,
                       unsigned *pending, unsigned *failed);

/* What holds the clocks back: the bit, whether it tells of trouble, and the words. */
static const struct reason {
    unsigned long long bit;
    enum verdict verdict;
    const char *words, *advice;
} reasons[] = {
    {0x1, FINE, "idle", NULL},
    {0x2, NOTE, "clocks set by an application", "nvidia-smi -rac resets them"},
    {0x4, NOTE, "the power limit",
     "a higher limit (nvidia-smi -pl) gives more speed, where the machine allows it"},
    {0x8, WARNING, "hardware slowdown", "look at cooling and power supply"},
    {0x10, NOTE, "synchronised with other devices", NULL},
    {0x20, WARNING, "heat, by software", "look at the cooling"},
    {0x40, WARNING, "heat, by hardware", "look at the cooling at once"},
    {0x80, WARNING, "the power brake of the machine", "look at the power supply"},
    {0x100, NOTE, "the display", NULL},
};

static bool find(void *library, const char *name, void *function)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void say_number(FILE *out, void *library, device_handle device, int index, const char *key,
                       const char *name)
{
    number_fn ask;
    unsigned number = 0;
    char full[64];
    if (!find(library, name, &ask) || ask(device, &number) != NVML_SUCCESS) return;
    snprintf(full, sizeof full, "%s.%d", key, index);
    probe_say(out, full, "%u", number);
}

static void say_kind(FILE *out, void *library, device_handle device, int index, const char *key,
                     const char *name, int kind)
{
    kind_fn ask;
    unsigned number = 0;
    char full[64];
    if (!find(library, name, &ask) || ask(device, kind, &number) != NVML_SUCCESS) return;
    snprintf(full, sizeof full, "%s.%d", key, index);
    probe_say(out, full, "%u", number);
}

static void say_ecc(FILE *out, void *library, device_handle device, int index, const char *key,
                    int counter)
{
    ecc_fn ask;
    unsigned long long count = 0;
    char full[64];
    if (!find(library, "nvmlDeviceGetTotalEccErrors", &ask)) return;
    if (ask(device, UNCORRECTED, counter, &count) != NVML_SUCCESS) return;
    snprintf(full, sizeof full, "%s.%d", key, index);
    probe_say(out, full, "%llu", count);
}

static void say_clocks(FILE *out, void *library, device_handle device, int index)
{
    bits_fn ask;
    unsigned long long bits = 0;
    char full[64];
    if (!find(library, "nvmlDeviceGetCurrentClocksEventReasons", &ask) &&
        !find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &ask)) {
        return;
    }
    if (ask(device, &bits) != NVML_SUCCESS) return;
    snprintf(full, sizeof full, "clocks.%d", index);
    probe_say(out, full, "%llu", bits);
}

static void say_rows(FILE *out, void *library, device_handle device, int index)
{
    rows_fn ask;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    char full[64];
    if (!find(library, "nvmlDeviceGetRemappedRows", &ask)) return;
    if (ask(device, &corrected, &uncorrected, &pending, &failed) != NVML_SUCCESS) return;
    snprintf(full, sizeof full, "rows_pending.%d", index);
    probe_say(out, full, "%u", pending);
    snprintf(full, sizeof full, "rows_failed.%d", index);
    probe_say(out, full, "%u", failed);
}

static void say_device(FILE *out, void *library, int index)
{
    handle_fn handle;
    name_fn name;
    device_handle device = NULL;
    char text[96] = "?", full[64];
    snprintf(full, sizeof full, "name.%d", index);
    if (!find(library, "nvmlDeviceGetHandleByIndex_v2", &handle) ||
        handle((unsigned)index, &device) != NVML_SUCCESS) {
        probe_say(out, full, "?");
        return;
    }
    if (find(library, "nvmlDeviceGetName", &name)) name(device, text, sizeof text);
    probe_say(out, full, "%s", text);
    say_kind(out, library, device, index, "celsius", "nvmlDeviceGetTemperature", GPU_SENSOR);
    say_kind(out, library, device, index, "slowdown_celsius", "nvmlDeviceGetTemperatureThreshold",
             SLOWDOWN);
    say_number(out, library, device, index, "milliwatts", "nvmlDeviceGetPowerUsage");
    say_number(out, library, device, index, "limit_milliwatts", "nvmlDeviceGetEnforcedPowerLimit");
    say_number(out, library, device, index, "compute_mode", "nvmlDeviceGetComputeMode");
    say_clocks(out, library, device, index);
    say_ecc(out, library, device, index, "ecc", VOLATILE);
    say_ecc(out, library, device, index, "ecc_ever", AGGREGATE);
    say_rows(out, library, device, index);
}

static int ask_nvml(FILE *out, void *arg)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    simple_fn init;
    count_fn get_count;
    text_fn version;
    unsigned count = 0;
    char text[96] = "";
    int result;
    (void)arg;
    if (!library) {
        probe_say(out, "missing", "%s", dlerror());
        return EXIT_SUCCESS;
    }
    if (!find(library, "nvmlInit_v2", &init) ||
        !find(library, "nvmlDeviceGetCount_v2", &get_count)) {
        probe_say(out, "failed", "it lacks functions of NVML");
        return EXIT_SUCCESS;
    }
    result = init();
    if (result != NVML_SUCCESS) {
        const char *(*words)(int);
        probe_say(out, "failed", "nvmlInit answers %d (%s)", result,
                  find(library, "nvmlErrorString", &words) ? words(result) : "?");
        return EXIT_SUCCESS;
    }
    if (find(library, "nvmlSystemGetDriverVersion", &version) &&
        version(text, sizeof text) == NVML_SUCCESS) {
        probe_say(out, "driver", "%s", text);
    }
    get_count(&count);
    probe_say(out, "count", "%u", count);
    for (int i = 0; i < (int)count && i < DEVICES_MAX; ++i) say_device(out, library, i);
    return EXIT_SUCCESS;
}

/* A number of device `index`, -1 where it was not told. */
static long long of_device(const struct probe *probe, const char *key, int index)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%d", key, index);
    return probe_number(probe, full, -1);
}

static void judge_clocks(struct doctor *doctor, const struct probe *probe, int index)
{
    long long bits = of_device(probe, "clocks", index);
    for (size_t i = 0; bits > 0 && i < sizeof reasons / sizeof reasons[0]; ++i) {
        const struct reason *reason = &reasons[i];
        struct finding *finding;
        if (!((unsigned long long)bits & reason->bit) || reason->verdict == FINE) continue;
        finding = report_add(&doctor->report, reason->verdict, area, "health.clocks",
                             "device %d: its clocks are held back by %s", index, reason->words);
        if (reason->advice) finding_advise(finding, "%s", reason->advice);
        finding_number(finding, "ordinal", index);
        finding_number(finding, "reasons", bits);
    }
}

static void judge_memory(struct doctor *doctor, const struct probe *probe, int index)
{
    long long now = of_device(probe, "ecc", index), ever = of_device(probe, "ecc_ever", index);
    struct finding *finding;
    if (of_device(probe, "rows_failed", index) > 0) {
        finding = report_add(&doctor->report, WRONG, area, "health.rows",
                             "device %d: broken memory rows could not be replaced", index);
        finding_advise(finding, "have the device replaced");
    }
    if (now > 0) {
        finding =
            report_add(&doctor->report, WRONG, area, "health.ecc",
                       "device %d: %lld uncorrected memory errors since the driver was loaded: "
                       "results may be wrong",
                       index, now);
        finding_advise(
            finding,
            "stop using it, reset it (nvidia-smi -r); where they come back, have it replaced");
        finding_number(finding, "errors", now);
    } else if (ever > 0) {
        report_add(&doctor->report, NOTE, area, "health.ecc",
                   "device %d: %lld uncorrected memory errors in its life, none since the driver "
                   "was loaded",
                   index, ever);
    }
    if (of_device(probe, "rows_pending", index) > 0) {
        finding = report_add(&doctor->report, WARNING, area, "health.rows",
                             "device %d: memory rows wait to be replaced", index);
        finding_advise(finding, "reset the device (nvidia-smi -r) or restart the machine");
    }
}

static void judge_device(struct doctor *doctor, const struct probe *probe, int index)
{
    long long celsius = of_device(probe, "celsius", index);
    long long limit = of_device(probe, "slowdown_celsius", index);
    long long mode = of_device(probe, "compute_mode", index);
    long long watts = of_device(probe, "milliwatts", index);
    long long most = of_device(probe, "limit_milliwatts", index);
    bool hot = celsius >= 0 && limit > 0 && celsius >= limit;
    char key[32];
    char *name;
    struct text says = {0};
    struct finding *finding;
    snprintf(key, sizeof key, "name.%d", index);
    name = probe_value(probe, key);
    if (celsius >= 0) text_add(&says, ", %lld degrees Celsius", celsius);
    if (celsius >= 0 && limit > 0) text_add(&says, " (slows down at %lld)", limit);
    if (watts >= 0) text_add(&says, ", %.0f W", (double)watts / 1000);
    if (watts >= 0 && most > 0) text_add(&says, " of %.0f", (double)most / 1000);
    if (of_device(probe, "ecc", index) == 0) text_add(&says, ", no uncorrected memory errors");
    finding = report_add(&doctor->report, hot ? WARNING : FINE, area, "health.device",
                         "device %d: %s%s%s", index, name, text_of(&says),
                         says.length ? "" : ": it tells nothing");
    if (hot) finding_advise(finding, "look at the cooling: it computes slower now");
    finding_number(finding, "ordinal", index);
    finding_number(finding, "celsius", celsius);
    finding_number(finding, "milliwatts", watts);
    finding_number(finding, "limit_milliwatts", most);
    if (mode == PROHIBITED) {
        finding = report_add(&doctor->report, WRONG, area, "health.mode",
                             "device %d: its compute mode forbids computing", index);
        finding_advise(finding, "nvidia-smi -i %d -c 0", index);
    } else if (mode == EXCLUSIVE_PROCESS) {
        report_add(&doctor->report, NOTE, area, "health.mode",
                   "device %d: only one process at a time can use it", index);
    }
    judge_clocks(doctor, probe, index);
    judge_memory(doctor, probe, index);
    text_free(&says);
    free(name);
}

void doctor_health(struct doctor *doctor)
{
    struct probe probe;
    char *missing, *failed, *driver;
    int count;
    probe_call(&probe, ask_nvml, NULL, doctor->seconds);
    missing = probe_value(&probe, "missing");
    failed = probe_value(&probe, "failed");
    driver = probe_value(&probe, "driver");
    count = (int)probe_number(&probe, "count", 0);
    if (*missing) {
        report_add(&doctor->report, NOTE, area, "health.nvml",
                   "not known: NVML cannot be opened (%s)", missing);
    } else if (*failed) {
        report_add(&doctor->report, doctor->devices > 0 ? WARNING : NOTE, area, "health.nvml",
                   "not known: %s", failed);
    } else if (probe.end != PROBE_DONE) {
        char *ending = probe_ending(&probe);
        struct finding *finding =
            report_add(&doctor->report, WARNING, area, "health.nvml", "not known: NVML %s", ending);
        finding_advise(finding, "look at the kernel's log, and at nvidia-smi");
        free(ending);
    } else {
        struct finding *finding = report_add(&doctor->report, FINE, area, "health.nvml",
                                             "NVML answers: driver %s, %d devices",
                                             *driver ? driver : "of unknown version", count);
        finding_text(finding, "driver", driver);
    }
    for (int i = 0; i < count && i < DEVICES_MAX; ++i) judge_device(doctor, &probe, i);
    free(missing);
    free(failed);
    free(driver);
    probe_free(&probe);
}
