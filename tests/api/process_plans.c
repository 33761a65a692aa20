/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles of process_test.c about plans: that one made before any handle is the one made after, and
 * that WARPDNN_LAST_RESORT=0 holds for engines asked for by name and by number. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/process_roles.h"
#include "support/backend_build.h"
#include "warpdnn.h"

enum { CHANNELS = 16, SIDE = 24, COUNT = CHANNELS * SIDE * SIDE };

static float x[COUNT], y[COUNT], w[CHANNELS * CHANNELS * 9];

static be_desc convolution(void)
{
    static const int64_t image[4] = {1, CHANNELS, SIDE, SIDE},
                         filter[4] = {CHANNELS, CHANNELS, 3, 3};
    return be_conv_forward(be_conv_desc(2, 1, 1, 1),
                           be_tensor(1, CUDNN_DATA_FLOAT, 4, image, BE_PLAIN),
                           be_tensor(2, CUDNN_DATA_FLOAT, 4, filter, BE_PLAIN),
                           be_tensor(3, CUDNN_DATA_FLOAT, 4, image, BE_PLAIN));
}

/* The facts of this machine's CPU as a text, from a process of its own. */
static int describe(char *text, size_t size)
{
    int pipes[2], status = 0;
    size_t length = 0;
    ssize_t got = 1;
    pid_t child;
    DUE(!pipe(pipes));
    child = fork();
    if (child == 0) {
        cudnnHandle_t handle = NULL;
        be_desc properties = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
        int64_t count = 0;
        if (cudnnCreate(&handle)) _exit(1);
        be_set(properties, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        be_final(properties);
        be_expect(cudnnBackendGetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                           CUDNN_TYPE_CHAR, (int64_t)size, &count, text),
                  "the text");
        _exit(write(pipes[1], text, (size_t)count) != count);
    }
    close(pipes[1]);
    while (got > 0 && length < size) {
        got = read(pipes[0], text + length, size - length);
        if (got > 0) length += (size_t)got;
    }
    close(pipes[0]);
    DUE(waitpid(child, &status, 0) == child && status == 0 && length > 0 && length < size);
    text[length] = '\0';
    return 0;
}

/* The first engine that heuristics offer for a graph without a handle. */
static int64_t first_engine(be_desc properties)
{
    be_desc op = convolution();
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_desc heuristics = be_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    be_desc config = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t count = 0, id = -1;
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    be_set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, be_final(graph));
    be_set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
    be_set_enum(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
    be_final(heuristics);
    be_expect(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &config),
              "the results");
    be_expect(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine),
              "the engine");
    be_expect(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                       &count, &id),
              "its number");
    return id;
}

/* Runs the plan of a convolution's engine 0 on the handle. */
static int run_best(cudnnHandle_t handle, const char **name)
{
    be_desc op = convolution();
    be_desc plan = be_plan_of(handle, 1, &op);
    int64_t bytes = be_workspace(plan);
    void *workspace = bytes ? aligned_alloc(256, ((size_t)bytes + 255) / 256 * 256) : NULL;
    be_desc pack = be_pack(3, (int64_t[]){1, 2, 3}, (void *[]){x, w, y}, workspace);
    DUE(!cudnnBackendExecute(handle, plan, pack));
    DUE(!warpdnnGetLastEngine(handle, name));
    free(workspace);
    return 0;
}

/* Which engine is best must not hang on whether the fast ones were there when the plan was made. */
int process_plan_first(void)
{
    char text[1024];
    cudnnHandle_t handle = NULL;
    const char *name = NULL;
    be_desc properties;
    be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_desc op = convolution();
    int64_t before;
    if (describe(text, sizeof text)) return 1;
    properties = be_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    be_set(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           (int64_t)strlen(text), text);
    be_final(properties);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    be_set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, be_final(graph));
    be_set_ref(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, properties);
    be_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
    be_final(engine);
    before = first_engine(properties);
    DUE(!cudnnCreate(&handle));
    DUE(first_engine(properties) == before);
    if (run_best(handle, &name)) return 1;
    if ((strstr(name, "_def") != NULL) != !strcmp(getenv("TEST_ENGINE"), "def")) {
        dprintf(PROCESS_TELL, "engine %s runs what was planned before\n", name);
        return 1;
    }
    be_free_all();
    DUE(!cudnnDestroy(handle));
    return 0;
}

static bool says_why(void)
{
    char text[1024];
    cudnnGetLastErrorString(text, sizeof text);
    return strstr(text, "WARPDNN_LAST_RESORT=0") != NULL;
}

/* Every engine that can be had by its number is one of the module. */
static int by_number(cudnnHandle_t handle, bool has_module)
{
    be_desc op = convolution();
    be_desc graph = be_graph(handle, 1, &op);
    int64_t limit = 0, count = 0;
    int taken = 0, refused = 0;
    be_expect(cudnnBackendGetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                       CUDNN_TYPE_INT64, 1, &count, &limit),
              "the count");
    for (int64_t id = 0; id < limit; ++id) {
        be_desc engine = be_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        const char *name = NULL;
        be_set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
        be_set_int(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, id);
        if (cudnnBackendFinalize(engine)) {
            refused += says_why();
            continue;
        }
        be_desc plan = be_plan(handle, be_config(engine));
        int64_t bytes = be_workspace(plan);
        void *workspace = bytes ? aligned_alloc(256, ((size_t)bytes + 255) / 256 * 256) : NULL;
        be_desc pack = be_pack(3, (int64_t[]){1, 2, 3}, (void *[]){x, w, y}, workspace);
        DUE(!cudnnBackendExecute(handle, plan, pack));
        DUE(!warpdnnGetLastEngine(handle, &name));
        DUE(strstr(name, "_def") == NULL);
        free(workspace);
        taken += 1;
    }
    DUE(has_module ? taken > 0 : taken == 0);
    DUE(refused > 0);
    return 0;
}

int process_no_last_resort(void)
{
    static const float one = 1.0f, zero = 0.0f;
    bool has_module = !strcmp(getenv("TEST_ENGINE"), "module");
    cudnnHandle_t handle = NULL;
    cudnnTensorDescriptor_t image = NULL;
    cudnnFilterDescriptor_t filter = NULL;
    cudnnConvolutionDescriptor_t conv = NULL;
    cudnnConvolutionFwdAlgoPerf_t perf[8];
    cudnnStatus_t status;
    int count = 0;
    DUE(!cudnnCreate(&handle));
    DUE(!cudnnCreateTensorDescriptor(&image));
    DUE(!cudnnCreateFilterDescriptor(&filter));
    DUE(!cudnnCreateConvolutionDescriptor(&conv));
    DUE(!cudnnSetTensor4dDescriptor(image, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, CHANNELS, SIDE,
                                    SIDE));
    DUE(!cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, CHANNELS, CHANNELS,
                                    3, 3));
    DUE(!cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                         CUDNN_DATA_FLOAT));
    status =
        cudnnConvolutionForward(handle, &one, image, x, filter, w, conv,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &zero, image, y);
    DUE(has_module ? !status : status == CUDNN_STATUS_NOT_SUPPORTED && says_why());
    DUE(cudnnConvolutionForward(handle, &one, image, x, filter, w, conv,
                                CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, NULL, 0, &zero, image,
                                y) == CUDNN_STATUS_NOT_SUPPORTED);
    DUE(says_why());
    for (int measured = 0; measured < 2; ++measured) {
        status = measured ? cudnnFindConvolutionForwardAlgorithm(handle, image, filter, conv, image,
                                                                 8, &count, perf)
                          : cudnnGetConvolutionForwardAlgorithm_v7(handle, image, filter, conv,
                                                                   image, 8, &count, perf);
        DUE(has_module ? !status && count >= 1
                       : status == CUDNN_STATUS_NOT_SUPPORTED && says_why());
        for (int i = 0; has_module && i < count; ++i) {
            DUE(perf[i].algo != CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
        }
    }
    if (by_number(handle, has_module)) return 1;
    be_free_all();
    DUE(!cudnnDestroyConvolutionDescriptor(conv));
    DUE(!cudnnDestroyFilterDescriptor(filter));
    DUE(!cudnnDestroyTensorDescriptor(image));
    DUE(!cudnnDestroy(handle));
    return 0;
}
