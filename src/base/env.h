/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment variables that the library obeys, read once, on first use (docs/environment.md
 * lists them for users). Values that mean nothing are taken as the default, and named in a warning. */
#ifndef WD_BASE_ENV_H
#define WD_BASE_ENV_H

#include <stdbool.h>

enum wd_device_choice { WD_CHOOSE_AUTO, WD_CHOOSE_GPU, WD_CHOOSE_CPU, WD_CHOOSE_INVALID };

struct wd_env {
    enum wd_device_choice device; /* WARPDNN_DEVICE=auto|gpu|cpu */
    const char *device_text;      /* as written, for the error text */
    bool check;                   /* WARPDNN_CHECK=1: pointers are checked on every call */
    bool last_resort;             /* WARPDNN_LAST_RESORT=0 refuses engines of last resort */
    const char *engines;          /* WARPDNN_ENGINES: names of the engines to use, null for all */
    int version;                  /* WARPDNN_CUDNN_VERSION: what cudnnGetVersion answers */
    int threads;                  /* WARPDNN_THREADS: CPU threads; 0 for all cores */
    const char *cpu_module;       /* WARPDNN_CPU_MODULE: path of the CPU module, "" for none */
    const char *cpu_isa;          /* WARPDNN_CPU_ISA=base|avx2|avx512: at most these instructions */
    const char *cuda_driver;      /* WARPDNN_CUDA_DRIVER: path of the driver library to open */
    int log_level;                /* CUDNN_LOGLEVEL_DBG: 0 off, 1 errors, 2 warnings, 3 all */
    const char *log_destination;  /* CUDNN_LOGDEST_DBG: stdout, stderr or a file; null for none */
    const char *ignored;          /* what was taken as the default, for the log; null: nothing */
};

const struct wd_env *wd_env(void);

#endif
