/* SPDX-License-Identifier: Apache-2.0
 *
 * The common subset of C and CUDA C in which definitions and kernel arguments are written: a few
 * words that mean the same to both compilers. Everything here is free of state.
 *
 * WD_OUTLINE is for what a definition needs in many places: its kernels (files *_def.cu, compiled
 * with WD_DEFINITION) call it instead of holding a copy each, which makes them two to three times
 * smaller; those of engines contain it. */
#ifndef WD_BASE_SHARED_H
#define WD_BASE_SHARED_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define WD_FN static __device__ inline
#if defined(WD_DEFINITION)
#define WD_OUTLINE static __device__ __noinline__
#else
#define WD_OUTLINE WD_FN
#endif
#define WD_ON_DEVICE 1
#else
#define WD_FN static inline
#define WD_OUTLINE static inline
#define WD_ON_DEVICE 0
#endif

enum { WD_MAX_RANK = 8 };

#endif
