/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_version.h - which release of the cuDNN API these headers describe. WarpDNN's own version is
 * separate: see warpdnnGetVersionString() in warpdnn.h.
 */
#ifndef CUDNN_VERSION_H_
#define CUDNN_VERSION_H_

/* The API level, 9.19.0. CUDNN_VERSION is 91900: compare it with cudnnGetVersion(). */
#define CUDNN_MAJOR 9
#define CUDNN_MINOR 19
#define CUDNN_PATCHLEVEL 0
#define CUDNN_VERSION (CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL)

/*
 * The newest GPU architecture (compute capability 12.1) that this level of the API knows by name;
 * CUDNN_MAX_DEVICE_VERSION is 1210. See cudnnGetMaxDeviceVersion().
 */
#define CUDNN_MAX_SM_MAJOR_NUMBER 12
#define CUDNN_MAX_SM_MINOR_NUMBER 1
#define CUDNN_MAX_DEVICE_VERSION (CUDNN_MAX_SM_MAJOR_NUMBER * 100 + CUDNN_MAX_SM_MINOR_NUMBER * 10)

#endif
