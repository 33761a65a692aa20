/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof: a handle is created as a program would, and one small operation (a relu of eight
 * numbers) runs on it and is right. Once as the environment says, once on the CPU where that is
 * another device. What the library refuses, it says why. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "warpdnn.h"

#include "cudnn.h"
#include "doctor.h"
#include "probe.h"

static const char area[] = "handle";

enum { NUMBERS = 8 };

/* Looks a function of the API up in our library, which this program does not link. */
#define FIND(name)                                                                                 \
    __typeof__(&name) p_##name;                                                                    \
    void *s_##name = dlsym(library, #name);                                                        \
    memcpy(&p_##name, &s_##name, sizeof p_##name)

struct question {
    const char *library;
    const char *device; /* for WARPDNN_DEVICE; null: as it is */
};

static void CUDNNWINAPI hear(cudnnSeverity_t severity, void *user, const cudnnDebug_t *about,
                             const char *message)
{
    (void)severity, (void)about;
    probe_say((FILE *)user, "log", "%s", message);
}

static int fail(FILE *out, void *library, const char *what, cudnnStatus_t status)
{
    char text[1024] = "";
    FIND(cudnnGetLastErrorString);
    FIND(cudnnGetErrorString);
    if (s_cudnnGetLastErrorString) p_cudnnGetLastErrorString(text, sizeof text);
    probe_say(out, "error", "%s answers %s: %s", what,
              s_cudnnGetErrorString ? p_cudnnGetErrorString(status) : "an error", text);
    return EXIT_FAILURE;
}

/* y = relu(x) on the handle's device, compared with what it must be. */
static int relu(FILE *out, void *library, cudnnHandle_t handle)
{
    const int dims[4] = {1, 1, 1, NUMBERS}, strides[4] = {NUMBERS, NUMBERS, NUMBERS, 1};
    const float one = 1.0f, zero = 0.0f;
    float x[NUMBERS], y[NUMBERS] = {0};
    cudnnTensorDescriptor_t tensor = NULL;
    cudnnActivationDescriptor_t activation = NULL;
    void *device_x = NULL, *device_y = NULL;
    const char *engine = "";
    cudnnStatus_t status;
    FIND(cudnnCreateTensorDescriptor);
    FIND(cudnnSetTensorNdDescriptor);
    FIND(cudnnCreateActivationDescriptor);
    FIND(cudnnSetActivationDescriptor);
    FIND(cudnnActivationForward);
    FIND(warpdnnMalloc);
    FIND(warpdnnMemcpy);
    FIND(warpdnnGetLastEngine);
    if (!s_cudnnActivationForward || !s_warpdnnMalloc || !s_warpdnnMemcpy ||
        !s_warpdnnGetLastEngine) {
        return EXIT_FAILURE;
    }
    for (int i = 0; i < NUMBERS; ++i) x[i] = (float)i - 3.5f;
    if ((status = p_cudnnCreateTensorDescriptor(&tensor)) ||
        (status = p_cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, dims, strides)) ||
        (status = p_cudnnCreateActivationDescriptor(&activation)) ||
        (status = p_cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU,
                                                 CUDNN_NOT_PROPAGATE_NAN, 0.0))) {
        return fail(out, library, "a descriptor", status);
    }
    if ((status = p_warpdnnMalloc(handle, sizeof x, &device_x)) ||
        (status = p_warpdnnMalloc(handle, sizeof y, &device_y)) ||
        (status = p_warpdnnMemcpy(handle, device_x, x, sizeof x))) {
        return fail(out, library, "memory of the device", status);
    }
    status = p_cudnnActivationForward(handle, activation, &one, tensor, device_x, &zero, tensor,
                                      device_y);
    if (status) return fail(out, library, "cudnnActivationForward", status);
    status = p_warpdnnMemcpy(handle, y, device_y, sizeof y);
    if (status) return fail(out, library, "reading the result", status);
    for (int i = 0; i < NUMBERS; ++i) {
        if (y[i] != (x[i] > 0 ? x[i] : 0)) {
            probe_say(out, "error", "relu(%g) is %g", (double)x[i], (double)y[i]);
            return EXIT_FAILURE;
        }
    }
    p_warpdnnGetLastEngine(handle, &engine);
    probe_say(out, "engine", "%s", engine);
    return EXIT_SUCCESS;
}

static int try_handle(FILE *out, void *arg)
{
    const struct question *question = (const struct question *)arg;
    cudnnHandle_t handle = NULL;
    warpdnnDevice_t kind = WARPDNN_DEVICE_CPU;
    cudnnStatus_t status;
    int ordinal = -1, result;
    void *library;
    if (question->device) setenv("WARPDNN_DEVICE", question->device, 1);
    library = dlopen(question->library, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        probe_say(out, "error", "%s", dlerror());
        return EXIT_FAILURE;
    }
    FIND(cudnnCreate);
    FIND(cudnnDestroy);
    FIND(cudnnSetCallback);
    FIND(warpdnnGetDevice);
    if (!s_cudnnCreate || !s_cudnnDestroy || !s_cudnnSetCallback || !s_warpdnnGetDevice) {
        probe_say(out, "error", "%s lacks functions of the API", question->library);
        return EXIT_FAILURE;
    }
    p_cudnnSetCallback(CUDNN_SEV_WARNING_EN, out, hear);
    status = p_cudnnCreate(&handle);
    if (status) return fail(out, library, "cudnnCreate", status);
    p_warpdnnGetDevice(handle, &kind, &ordinal);
    probe_say(out, "device", "%s", kind == WARPDNN_DEVICE_GPU ? "gpu" : "cpu");
    probe_say(out, "ordinal", "%d", ordinal);
    result = relu(out, library, handle);
    if (result == EXIT_SUCCESS) p_cudnnDestroy(handle);
    return result;
}

/* Adds the finding; true where the handle works, with its device in `device`. */
static bool look(struct doctor *doctor, const char *wanted, char *device, size_t size)
{
    struct question question = {doctor->place.library, wanted};
    const char *id = wanted ? "handle.cpu" : "handle.default";
    struct probe probe;
    struct finding *finding;
    char *got, *error, *engine, *log;
    bool works;
    probe_call(&probe, try_handle, &question, doctor->seconds);
    works = probe.end == PROBE_DONE && probe.code == EXIT_SUCCESS;
    got = probe_value(&probe, "device");
    error = probe_value(&probe, "error");
    engine = probe_value(&probe, "engine");
    log = probe_value(&probe, "log");
    snprintf(device, size, "%s", got);
    if (works) {
        int ordinal = (int)probe_number(&probe, "ordinal", -1);
        struct text where = {0};
        if (strcmp(got, "gpu") == 0) text_add(&where, "GPU %d", ordinal);
        else text_add(&where, "the CPU");
        finding =
            report_add(&doctor->report, FINE, area, id,
                       "%s: cudnnCreate and a first operation work on %s (engine %s)",
                       wanted ? "WARPDNN_DEVICE=cpu" : "a plain program", text_of(&where), engine);
        finding_text(finding, "engine", engine);
        finding_number(finding, "ordinal", ordinal);
        text_free(&where);
        if (*log)
            report_add(&doctor->report, NOTE, area, "handle.log", "the library says: %s", log);
    } else {
        char *ending = probe_ending(&probe);
        finding = report_add(&doctor->report, WRONG, area, id, "%s: %s%s",
                             wanted ? "WARPDNN_DEVICE=cpu" : "a plain program",
                             *error ? error : "the first operation ", *error ? "" : ending);
        if (!wanted) doctor->report.unusable = true;
        finding_advise(finding,
                       wanted ? "CUDNN_LOGLEVEL_DBG=3 CUDNN_LOGDEST_DBG=stderr shows more"
                              : "see the findings above it; WARPDNN_DEVICE=cpu computes on the "
                                "CPU");
        free(ending);
    }
    finding_text(finding, "device", got);
    free(got);
    free(error);
    free(engine);
    free(log);
    probe_free(&probe);
    return works;
}

void doctor_handle(struct doctor *doctor)
{
    char device[16] = "";
    if (!doctor->place.library) return;
    if (!look(doctor, NULL, device, sizeof device) || strcmp(device, "cpu") != 0) {
        look(doctor, "cpu", device, sizeof device);
    }
}
