/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction sets that hot loops are compiled for, and the one that this machine gets:
 * WARPDNN_CPU_ISA=base|avx2|avx512 asks for a lesser one than it has, for tests and comparisons.
 * cpu/module/loops.inc compiles a family's loops for each. Safe for threads. */
#ifndef WD_CPU_MODULE_ISA_H
#define WD_CPU_MODULE_ISA_H

enum wd_isa { WD_ISA_BASE, WD_ISA_AVX2, WD_ISA_AVX512 };

enum wd_isa wd_isa(void);

/* The copy of a loop for this machine. */
#if defined(__x86_64__)
#define WD_PICK(loop)                                                                              \
    (wd_isa() == WD_ISA_AVX512 ? loop##_avx512                                                     \
     : wd_isa() == WD_ISA_AVX2 ? loop##_avx2                                                       \
                               : loop##_base)
#else
#define WD_PICK(loop) (loop##_base)
#endif

#endif
