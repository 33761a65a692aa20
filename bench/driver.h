/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver, opened at run time: libcuda.so.1, or what WARPDNN_CUDA_DRIVER names, so that a
 * stand-in serves both the library and its bench. Handles are opaque, enumerations plain ints. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_CAPTURE_RELAXED = 2,
    CU_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    CU_ATTRIBUTE_CAPABILITY_MINOR = 76,
};

struct driver {
#define CU(name, exported, parameters) CUresult(*name) parameters;
#include "driver.def"
};
extern struct driver cu;

/* Opens it and looks everything up. False with a text on standard error. */
bool driver_open(void);
const char *driver_error(CUresult result);
/* Ends the program with the text of a driver call that failed. */
void driver_check(CUresult result, const char *what);

#endif
