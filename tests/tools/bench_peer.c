/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer for tests of the bench where NVIDIA's library cannot run: a library with cuDNN's names alone,
 * each of which jumps into a copy of ours that lies beside it as libreal.so. x86-64 only. bench_test.py
 * compiles it. With BENCH_PEER_IDLE set, cudnnActivationForward does nothing and says it did: a wrong
 * answer. With BENCH_PEER_DIES set, cudnnPoolingForward ends the process, as a fault would. With
 * BENCH_PEER_VERSION set, that is its version. */
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
    size_t (*number)(void) = version;
    Dl_info info;
    void *real;
    if (!dladdr(&peer_slot_Create, &info)) abort();
    snprintf(path, sizeof path - 16, "%s", info.dli_fname);
    slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, "libreal.so");
    real = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!real) abort();
#define API(name) peer_slot_##name = dlsym(real, "cudnn" #name);
#include "../../bench/library.def"
    if (getenv("BENCH_PEER_IDLE")) memcpy(&peer_slot_ActivationForward, &nothing, sizeof nothing);
    if (getenv("BENCH_PEER_VERSION")) memcpy(&peer_slot_GetVersion, &number, sizeof number);
    if (getenv("BENCH_PEER_DIES")) memcpy(&peer_slot_PoolingForward, &end, sizeof end);
}
