/* SPDX-License-Identifier: Apache-2.0
 *
 * WD_SIMD before a function of a hot loop: the compiler makes it once for each instruction set and
 * the loader picks the machine's. The loops are plain C; arithmetic is never contracted, so that
 * every copy gives the same results. */
#ifndef WD_CPU_MODULE_SIMD_H
#define WD_CPU_MODULE_SIMD_H

#if defined(__x86_64__) && defined(__GLIBC__)
#define WD_SIMD __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WD_SIMD
#endif

#endif
