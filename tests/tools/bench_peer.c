/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer for tests of the bench where NVIDIA's library cannot run: a library with cuDNN's names alone,
 * each of which jumps into a copy of ours that lies beside it as libreal.so. x86-64 only. bench_test.py
 * compiles it. The call that BENCH_PEER_IDLE names (ActivationForward) does nothing and says it did: a wrong
 * answer. With BENCH_PEER_DIES set, cudnnPoolingForward ends the process, as a fault would. With
 * BENCH_PEER_SHIFTS set, batch norm's fused training keeps another mean of the first channel than it
 * has used, which its backward pass then takes: on the fake driver, whose memory is the host's.
 * With BENCH_PEER_VERSION set, that is its version. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API(name) __attribute__((visibility("hidden"))) void *peer_slot_##name;
#include "../../bench/library.def"
#define API(name)                                                                                  \
    __asm__(".text\n.globl cudnn" #name "\n.type cudnn" #name ", @function\ncudnn" #name           \
            ":\njmp *peer_slot_" #name "(%rip)\n");
#include "../../bench/library.def"

static int idle(void)
{
    return 0;
}

static int die(void)
{
    _exit(1);
}

/* cudnnBatchNormalizationForwardTrainingEx. */
typedef int train_call(void *handle, int mode, int ops, const void *alpha, const void *beta,
                       void *x_desc, const void *x, void *z_desc, const void *z, void *y_desc,
                       void *y, void *param_desc, const void *scale, const void *bias,
                       double factor, void *running_mean, void *running_var, double epsilon,
                       void *mean, void *inverse, void *activation, void *workspace,
                       size_t workspace_bytes, void *reserve, size_t reserve_bytes);
static train_call *real_train;

static int train_and_shift(void *handle, int mode, int ops, const void *alpha, const void *beta,
                           void *x_desc, const void *x, void *z_desc, const void *z, void *y_desc,
                           void *y, void *param_desc, const void *scale, const void *bias,
                           double factor, void *running_mean, void *running_var, double epsilon,
                           void *mean, void *inverse, void *activation, void *workspace,
                           size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    int status =
        real_train(handle, mode, ops, alpha, beta, x_desc, x, z_desc, z, y_desc, y, param_desc,
                   scale, bias, factor, running_mean, running_var, epsilon, mean, inverse,
                   activation, workspace, workspace_bytes, reserve, reserve_bytes);
    if (status == 0) *(float *)mean += 0.5f;
    return status;
}

static size_t version(void)
{
    return strtoul(getenv("BENCH_PEER_VERSION"), NULL, 10);
}

__attribute__((constructor)) static void open_real(void)
{
    char path[4096];
    char *slash;
    int (*nothing)(void) = idle;
    int (*end)(void) = die;
    train_call *shift = train_and_shift;
    const char *name = getenv("BENCH_PEER_IDLE");
    size_t (*number)(void) = version;
    Dl_info info;
    void *real;
    if (!dladdr(&peer_slot_Create, &info)) abort();
    snprintf(path, sizeof path - 16, "%s", info.dli_fname);
    slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, "libreal.so");
    real = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!real) abort();
#define API(call)                                                                                  \
    peer_slot_##call = dlsym(real, "cudnn" #call);                                                 \
    if (name && !strcmp(name, #call)) memcpy(&peer_slot_##call, &nothing, sizeof nothing);
#include "../../bench/library.def"
    if (getenv("BENCH_PEER_SHIFTS")) {
        memcpy(&real_train, &peer_slot_BatchNormalizationForwardTrainingEx, sizeof real_train);
        memcpy(&peer_slot_BatchNormalizationForwardTrainingEx, &shift, sizeof shift);
    }
    if (getenv("BENCH_PEER_VERSION")) memcpy(&peer_slot_GetVersion, &number, sizeof number);
    if (getenv("BENCH_PEER_DIES")) memcpy(&peer_slot_PoolingForward, &end, sizeof end);
}
