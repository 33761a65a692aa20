/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose blocks wait for one another, in two streams at once, one of higher priority: of all processors, and of some, behind
 * kernels that let the next begin early. They have to be there all at once or not at all: if each stream had a part of its blocks on the
 * device, both would wait for ever. All answers are those of a stream alone. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudnn.h"
#include "support/driver.h"
#include "warpdnn.h"

enum {
    STREAMS = 2,
    ROUNDS = 4000, /* of a stream; some hundred milliseconds */
    SECONDS = 30,  /* that they may take */
    NON_BLOCKING = 1,
    SIZES = 3,
    MOST = 16 * 64 * 112 * 112, /* elements */
    MOST_CHANNELS = 64
};

/* Batch norms in training, channels last, fp16: of 131, 100 and 25 blocks on a device of 132 processors, of which the first fill their processors. */
static const int dims[SIZES][4] = {{16, 64, 112, 112}, {8, 64, 40, 40}, {4, 64, 28, 28}};

#define OR_FAIL(call)                                                                              \
    do {                                                                                           \
        int result_ = (int)(call);                                                                 \
        if (result_ == 0) break;                                                                   \
        printf("line %d: error %d\n0 passed, 1 failed\n", __LINE__, result_);                      \
        exit(1);                                                                                   \
    } while (0)

typedef int (*fn_one)(void *object);
typedef int (*fn_range)(int *least, int *greatest);
typedef int (*fn_stream)(void **stream, unsigned flags, int priority);
typedef int (*fn_memory)(void **data, size_t bytes);
typedef int (*fn_to_device)(void *to, const void *from, size_t bytes);
typedef int (*fn_to_host)(void *to, void *from, size_t bytes);

static void *device_memory(size_t bytes)
{
    void *data = NULL;
    OR_FAIL(DRIVER(fn_memory, "cuMemAlloc_v2")(&data, bytes));
    return data;
}

/* What a stream has of its own; x and the parameters are all streams'. */
struct side {
    cudnnHandle_t handle;
    void *stream;
    void *y[SIZES];
    float *mean[SIZES]; /* of x, and 1 over its deviation */
    float *inv_std[SIZES];
};

static cudnnTensorDescriptor_t images[SIZES], params;
static cudnnActivationDescriptor_t relu;
static void *x, *scale, *bias, *scratch[STREAMS];

static void norm(const struct side *s, int size)
{
    const float one = 1.0f, zero = 0.0f;
    OR_FAIL(cudnnBatchNormalizationForwardTraining(
        s->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, images[size], x, images[size], s->y[size],
        params, scale, bias, 1.0, NULL, NULL, 1e-5, s->mean[size], s->inv_std[size]));
}

static void activate(const struct side *s, int side, int size)
{
    const float one = 1.0f, zero = 0.0f;
    OR_FAIL(cudnnActivationForward(s->handle, relu, &one, images[size], x, &zero, images[size],
                                   scratch[side]));
}

static void make_world(void)
{
    static uint16_t values[MOST];
    float numbers[MOST_CHANNELS];
    uint32_t state = 12345;
    for (int i = 0; i < MOST; ++i) {
        state = state * 1664525u + 1013904223u;
        values[i] = (uint16_t)(0x3800u + (state >> 20 & 0x7ffu) + (state & 0x80000000u) / 65536u);
    }
    x = device_memory(sizeof values);
    OR_FAIL(DRIVER(fn_to_device, "cuMemcpyHtoD_v2")(x, values, sizeof values));
    for (int i = 0; i < MOST_CHANNELS; ++i) numbers[i] = 0.5f + (float)i / 64.0f;
    scale = device_memory(sizeof numbers);
    bias = device_memory(sizeof numbers);
    OR_FAIL(DRIVER(fn_to_device, "cuMemcpyHtoD_v2")(scale, numbers, sizeof numbers));
    OR_FAIL(DRIVER(fn_to_device, "cuMemcpyHtoD_v2")(bias, numbers, sizeof numbers));
    for (int k = 0; k < SIZES; ++k) {
        OR_FAIL(cudnnCreateTensorDescriptor(&images[k]));
        OR_FAIL(cudnnSetTensor4dDescriptor(images[k], CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF,
                                           dims[k][0], dims[k][1], dims[k][2], dims[k][3]));
    }
    OR_FAIL(cudnnCreateTensorDescriptor(&params));
    OR_FAIL(cudnnDeriveBNTensorDescriptor(params, images[0], CUDNN_BATCHNORM_SPATIAL));
    OR_FAIL(cudnnCreateActivationDescriptor(&relu));
    OR_FAIL(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
}

static void make_side(struct side *s, int priority)
{
    OR_FAIL(cudnnCreate(&s->handle));
    OR_FAIL(DRIVER(fn_stream, "cuStreamCreateWithPriority")(&s->stream, NON_BLOCKING, priority));
    OR_FAIL(cudnnSetStream(s->handle, (cudaStream_t)s->stream));
    for (int k = 0; k < SIZES; ++k) {
        size_t bytes = sizeof(uint16_t);
        for (int d = 0; d < 4; ++d) bytes *= (size_t)dims[k][d];
        s->y[k] = device_memory(bytes);
        s->mean[k] = device_memory(MOST_CHANNELS * sizeof(float));
        s->inv_std[k] = device_memory(MOST_CHANNELS * sizeof(float));
    }
}

static void look(const struct side *s, int size, uint16_t *y, uint32_t *numbers)
{
    size_t bytes = sizeof(uint16_t), some = MOST_CHANNELS * sizeof(float);
    for (int d = 0; d < 4; ++d) bytes *= (size_t)dims[size][d];
    OR_FAIL(DRIVER(fn_to_host, "cuMemcpyDtoH_v2")(y, s->y[size], bytes));
    OR_FAIL(DRIVER(fn_to_host, "cuMemcpyDtoH_v2")(numbers, s->mean[size], some));
    OR_FAIL(DRIVER(fn_to_host, "cuMemcpyDtoH_v2")(numbers + MOST_CHANNELS, s->inv_std[size], some));
}

/* Launches themselves wait when a queue is full. A device that hangs lets nobody clean up. */
static void wait_for_ever(int number)
{
    static const char text[] = "two streams wait for ever\n0 passed, 1 failed\n";
    ssize_t written = write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(number && written ? 1 : 2);
}

int main(void)
{
    static struct side sides[STREAMS];
    static uint16_t y[SIZES][MOST], own_y[MOST];
    static uint32_t numbers[SIZES][2 * MOST_CHANNELS], own[2 * MOST_CHANNELS]; /* bits of floats */
    const char *engine = "";
    int least = 0, greatest = 0, passed = 0, failed = 0;
    uint32_t state = 1;
    driver_open();
    OR_FAIL(DRIVER(fn_range, "cuCtxGetStreamPriorityRange")(&least, &greatest));
    make_world();
    for (int k = 0; k < STREAMS; ++k) {
        make_side(&sides[k], k == 0 ? least : greatest);
        scratch[k] = device_memory(MOST * sizeof(uint16_t));
    }
    for (int k = 0; k < SIZES; ++k) {
        norm(&sides[0], k);
        OR_FAIL(warpdnnGetLastEngine(sides[0].handle, &engine));
        if (strcmp(engine, "bn_training_grid") != 0) {
            printf("%s ran, whose blocks do not meet\n", engine);
            failed += 1;
        }
        OR_FAIL(DRIVER(fn_one, "cuStreamSynchronize")(sides[0].stream));
        look(&sides[0], k, y[k], numbers[k]);
    }
    signal(SIGALRM, wait_for_ever);
    alarm(SECONDS);
    for (int i = 0; i < ROUNDS; ++i) {
        for (int k = 0; k < STREAMS; ++k) {
            state = state * 1664525u + 1013904223u;
            if (state >> 30 == 3) activate(&sides[k], k, 1 + (state >> 20) % 2);
            else norm(&sides[k], (int)(state >> 30));
        }
    }
    for (int k = 0; k < STREAMS; ++k) {
        OR_FAIL(DRIVER(fn_one, "cuStreamSynchronize")(sides[k].stream));
    }
    alarm(0);
    for (int k = 0; k < STREAMS * SIZES; ++k) {
        const int size = k % SIZES;
        memset(own_y, 0, sizeof own_y);
        look(&sides[k / SIZES], size, own_y, own);
        if (memcmp(own_y, y[size], sizeof own_y) == 0 &&
            memcmp(own, numbers[size], sizeof own) == 0) {
            passed += 1;
            continue;
        }
        printf("stream %d, size %d: another answer than alone\n", k / SIZES, size);
        failed += 1;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
