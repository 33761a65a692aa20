/* SPDX-License-Identifier: Apache-2.0
 *
 * How numbers lie in memory that kernels compute with in single precision, where it is an argument of the
 * kernel (gpu/device/format.cuh). */
#ifndef WD_BASE_FORMAT_H
#define WD_BASE_FORMAT_H

enum wd_format { WD_FORMAT_F32, WD_FORMAT_F16, WD_FORMAT_BF16 };

#endif
