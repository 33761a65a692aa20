/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA driver library, opened at run time: the table of its functions, and failing with what a
 * driver call answered. Safe for threads; the library stays open until the process ends. */
#ifndef WD_GPU_LOADER_H
#define WD_GPU_LOADER_H

#include <stdbool.h>

#include "base/status.h"
#include "gpu/driver.h"

/* The driver's functions. Null before wd_driver_open, and where the driver is too old to have one:
 * wd_gpu_probe answers READY only if none is missing. */
struct wd_driver {
#define WD_CU_FUNCTION(name, exported, version, parameters) CUresult(*name) parameters;
#include "gpu/driver.def"
};
extern struct wd_driver wd_cu;

enum wd_driver_open {
    WD_DRIVER_IF_LOADED, /* only if the process has the library already */
    WD_DRIVER_LOAD
};

/* Whether the driver library is open and wd_cu filled, as far as it goes. */
bool wd_driver_open(enum wd_driver_open how);

/* After wd_driver_open: why it could not be opened, the first function that is missing (or null),
 * the path that was opened, and whether the environment named that path. */
const char *wd_driver_open_error(void);
const char *wd_driver_missing(void);
const char *wd_driver_path(void);
bool wd_driver_is_named(void);

/* "CUDA_ERROR_..." */
const char *wd_driver_error_name(CUresult result);

/* Fails with "cuXxx: CUDA_ERROR_NAME (n): what we were doing" and the status that fits the result:
 * INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, NOT_SUPPORTED_ARCH_MISMATCH for code that the device
 * cannot run, else EXECUTION_FAILED_CUDA_DRIVER. */
cudnnStatus_t wd_driver_fail(CUresult result, const char *function, const char *format, ...)
    WD_PRINTF(3, 4);

/* One driver call: WD_CU_TRY(cuMemFree, (data), "freeing %zu bytes", bytes). */
#define WD_CU_TRY(name, arguments, ...)                                                            \
    do {                                                                                           \
        CUresult wd_cu_result = wd_cu.name arguments;                                              \
        if (wd_cu_result != CUDA_SUCCESS) return wd_driver_fail(wd_cu_result, #name, __VA_ARGS__); \
    } while (0)

#endif
