/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of the GPUs, read once by the probe and constant from then on. */
#ifndef WD_GPU_DEVICE_H
#define WD_GPU_DEVICE_H

#include "base/queue.h"
#include "gpu/loader.h"

/* The oldest devices that our kernels are compiled for, 10 * major + minor; the build may say. */
#ifndef WD_CUDA_MIN_CAPABILITY
#define WD_CUDA_MIN_CAPABILITY 80
#endif

/* Reads the facts of the first `count` devices. Called once, by the probe. */
CUresult wd_devices_read(int count, const char **function);

/* The device's facts, or null for one that the table does not hold. */
const struct wd_device *wd_device_find(CUdevice device);

#endif
