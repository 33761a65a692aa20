/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the processor once what it can do. */
#include "cpu/module/isa.h"

#include <stdatomic.h>
#include <string.h>

#include "base/env.h"

static enum wd_isa find(void)
{
    const char *wanted = wd_env()->cpu_isa;
    enum wd_isa isa = WD_ISA_BASE;
    if (wanted && !strcmp(wanted, "base")) return isa;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isa = WD_ISA_AVX2;
    if (wanted && !strcmp(wanted, "avx2")) return isa;
    if (isa == WD_ISA_AVX2 && __builtin_cpu_supports("avx512f")) isa = WD_ISA_AVX512;
#endif
    return isa;
}

enum wd_isa wd_isa(void)
{
    static _Atomic int known; /* 1 + the answer, which is the same whoever finds it */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = 1 + (int)find();
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return (enum wd_isa)(answer - 1);
}
