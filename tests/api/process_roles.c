/* SPDX-License-Identifier: Apache-2.0
 *
 * The roles of process_test.c: what a process does with the library. */
#include "api/process_roles.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudnn.h"
#include "warpdnn.h"

enum { TELL = PROCESS_TELL, CHANNELS = 8, SIDE = 32, PIXELS = SIDE * SIDE };

/* A convolution whose result is known: every weight is 1, so y counts what lies under the filter. */
static int convolve(cudnnHandle_t handle)
{
    static const float one = 1.0f, zero = 0.0f;
    static _Thread_local float x[CHANNELS * PIXELS], y[CHANNELS * PIXELS];
    float w[CHANNELS * CHANNELS * 9];
    cudnnTensorDescriptor_t image = NULL;
    cudnnFilterDescriptor_t filter = NULL;
    cudnnConvolutionDescriptor_t conv = NULL;
    for (int i = 0; i < CHANNELS * PIXELS; ++i) x[i] = 1.0f;
    for (int i = 0; i < CHANNELS * CHANNELS * 9; ++i) w[i] = 1.0f;
    DUE(!cudnnCreateTensorDescriptor(&image));
    DUE(!cudnnCreateFilterDescriptor(&filter));
    DUE(!cudnnCreateConvolutionDescriptor(&conv));
    DUE(!cudnnSetTensor4dDescriptor(image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, CHANNELS, SIDE,
                                    SIDE));
    DUE(!cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, CHANNELS, CHANNELS,
                                    3, 3));
    DUE(!cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                         CUDNN_DATA_FLOAT));
    DUE(!cudnnConvolutionForward(handle, &one, image, x, filter, w, conv,
                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &zero, image,
                                 y));
    for (int i = 0; i < CHANNELS * PIXELS; ++i) {
        int h = i / SIDE % SIDE, c = i % SIDE;
        int rows = h == 0 || h == SIDE - 1 ? 2 : 3, columns = c == 0 || c == SIDE - 1 ? 2 : 3;
        DUE(y[i] == (float)(CHANNELS * rows * columns));
    }
    DUE(!cudnnDestroyConvolutionDescriptor(conv));
    DUE(!cudnnDestroyFilterDescriptor(filter));
    DUE(!cudnnDestroyTensorDescriptor(image));
    return 0;
}

/* The whole visit: results right, a refusal with a text, everything destroyed. TEST_ENGINE=def and
 * =module say whose engine has to have run. */
static int compute(void)
{
    const char *engine = getenv("TEST_ENGINE");
    const char *name = NULL;
    char text[256] = "";
    cudnnHandle_t handle = NULL;
    DUE(!cudnnCreate(&handle));
    if (convolve(handle)) return 1;
    DUE(!warpdnnGetLastEngine(handle, &name));
    if (engine && (strstr(name, "_def") != NULL) != !strcmp(engine, "def")) {
        dprintf(TELL, "engine %s ran, not one of %s\n", name, engine);
        return 1;
    }
    DUE(cudnnSetStream(NULL, NULL) == CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    cudnnGetLastErrorString(text, sizeof text);
    DUE(strstr(text, "cudnnSetStream: handle is null") != NULL);
    DUE(!cudnnDestroy(handle));
    return 0;
}

/* A handle is refused with a text that holds TEST_TEXT. */
static int refused(void)
{
    cudnnHandle_t handle = (cudnnHandle_t)(void *)&handle;
    cudnnTensorDescriptor_t desc = NULL;
    char text[512] = "";
    for (int i = 0; i < 3; ++i) {
        DUE(cudnnCreate(&handle) == CUDNN_STATUS_NOT_INITIALIZED);
        DUE(handle == (cudnnHandle_t)(void *)&handle);
        cudnnGetLastErrorString(text, sizeof text);
        if (strncmp(text, "cudnnCreate: ", 13) != 0 || !strstr(text, getenv("TEST_TEXT"))) {
            dprintf(TELL, "the text is: %s\n", text);
            return 1;
        }
    }
    /* what needs no device works */
    DUE(!cudnnCreateTensorDescriptor(&desc));
    DUE(!cudnnDestroyTensorDescriptor(desc));
    return 0;
}

static int end_of(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 1;
    if (status) dprintf(TELL, "the forked process ends with %#x\n", (unsigned)status);
    return status != 0;
}

static int forked(int (*work)(void))
{
    pid_t child = fork();
    if (child == 0) exit(work());
    return child < 0 || end_of(child);
}

static int fork_first(void)
{
    pid_t child;
    DUE(cudnnGetVersion() > 0);
    child = fork();
    if (child == 0) {
        int failed = compute();
        exit(compute() || failed);
    }
    if (compute()) return 1;
    return child < 0 || end_of(child) || compute();
}

static cudnnHandle_t inherited;

static int use_inherited(void)
{
    if (convolve(inherited) || compute()) return 1;
    DUE(!cudnnDestroy(inherited));
    return 0;
}

static int grandchild(void)
{
    return compute() || forked(use_inherited);
}

static int fork_later(void)
{
    DUE(!cudnnCreate(&inherited));
    if (convolve(inherited) || compute()) return 1;
    if (forked(compute) || forked(use_inherited) || forked(grandchild)) return 1;
    return use_inherited();
}

static void *compute_forever(void *data)
{
    cudnnHandle_t handle = NULL;
    (void)data;
    if (cudnnCreate(&handle)) _exit(1);
    for (;;)
        if (convolve(handle)) _exit(1);
    return NULL;
}

static int exit_busy(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; ++i) {
        DUE(!pthread_create(&thread, NULL, compute_forever, NULL));
        DUE(!pthread_detach(thread));
    }
    if (compute()) return 1;
    usleep(50000);
    return 0;
}

static void *compute_last(void *data)
{
    (void)data;
    for (int i = 0; i < 20; ++i)
        if (compute()) _exit(1);
    exit(0);
}

/* The main thread goes, another one ends the process. */
static int main_leaves(void)
{
    pthread_t thread;
    DUE(!pthread_create(&thread, NULL, compute_last, NULL));
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void use_and_destroy(void)
{
    if (use_inherited()) _exit(1);
}

static void compute_anew(void)
{
    if (compute()) _exit(1);
}

static bool compute_at_the_very_end;

__attribute__((destructor)) static void very_end(void)
{
    if (compute_at_the_very_end && compute()) _exit(1);
}

/* Handlers before and after the library's first call, and a destructor. */
static int exit_order(void)
{
    DUE(!atexit(use_and_destroy));
    DUE(!cudnnCreate(&inherited));
    if (convolve(inherited)) return 1;
    DUE(!atexit(compute_anew));
    compute_at_the_very_end = true;
    return 0;
}

/* Handle and descriptors stay, as in programs that end in the middle. */
static int leave_all(void)
{
    static cudnnTensorDescriptor_t desc;
    DUE(!cudnnCreate(&inherited));
    DUE(!cudnnCreateTensorDescriptor(&desc));
    return convolve(inherited);
}

static void *look_up(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

/* A second library, the copy at TEST_COPY, opened and closed again and again. */
static int reopen(void)
{
    static const float one = 1.0f, zero = 0.0f;
    if (compute()) return 1;
    for (int i = 0; i < 25; ++i) {
        __typeof__(&cudnnCreate) create;
        __typeof__(&cudnnDestroy) destroy;
        __typeof__(&cudnnCreateTensorDescriptor) create_tensor;
        __typeof__(&cudnnDestroyTensorDescriptor) destroy_tensor;
        __typeof__(&cudnnSetTensor4dDescriptor) set_tensor;
        __typeof__(&cudnnTransformTensor) transform;
        cudnnHandle_t handle = NULL;
        cudnnTensorDescriptor_t desc = NULL;
        float x[4] = {1, 2, 3, 4}, y[4];
        void *library = dlopen(getenv("TEST_COPY"), RTLD_NOW | RTLD_LOCAL);
        if (!library) dprintf(TELL, "%s\n", dlerror());
        DUE(library != NULL);
        DUE(look_up(library, "cudnnCreate", &create) && create != cudnnCreate);
        DUE(look_up(library, "cudnnDestroy", &destroy));
        DUE(look_up(library, "cudnnCreateTensorDescriptor", &create_tensor));
        DUE(look_up(library, "cudnnDestroyTensorDescriptor", &destroy_tensor));
        DUE(look_up(library, "cudnnSetTensor4dDescriptor", &set_tensor));
        DUE(look_up(library, "cudnnTransformTensor", &transform));
        DUE(!create(&handle) && !create_tensor(&desc));
        DUE(!set_tensor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2));
        DUE(!transform(handle, &one, desc, x, &zero, desc, y));
        for (int k = 0; k < (int)(sizeof x / sizeof x[0]); ++k) DUE(x[k] == y[k]);
        DUE(!destroy_tensor(desc) && !destroy(handle));
        DUE(!dlclose(library));
        if (i % 8 == 0 && compute()) return 1;
    }
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} roles[] = {
    {"compute", compute},
    {"refused", refused},
    {"fork_first", fork_first},
    {"fork_later", fork_later},
    {"exit_busy", exit_busy},
    {"main_leaves", main_leaves},
    {"exit_order", exit_order},
    {"leave_all", leave_all},
    {"reopen", reopen},
    {"plan_first", process_plan_first},
    {"no_last_resort", process_no_last_resort},
};

int process_role(const char *name)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; ++i) {
        if (!strcmp(roles[i].name, name)) return roles[i].run();
    }
    return 2;
}
