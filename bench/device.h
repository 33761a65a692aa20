/* SPDX-License-Identifier: Apache-2.0
 *
 * Where problems run: a GPU through the driver, or the host. One slab of memory is cut into buffers,
 * anew for every problem, so that nothing is allocated while something is measured. A failure here
 * ends the program with a text: without the device there is nothing to measure. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <stdint.h>

#include "driver.h"

struct device {
    bool gpu;
    int ordinal;
    char name[128];
    int capability;     /* 10 * major + minor, 0 on the CPU */
    int driver_version; /* 13000 for CUDA 13.0 */
    size_t memory;      /* bytes */
    size_t l2;          /* bytes */
    double copy;        /* bytes read and written a second by a large copy; on the CPU 0: there each
                            row is set against a copy of its own size */
    CUstream stream;
};
extern struct device device;

/* Makes the GPU's primary context current. False with a text where there is none. */
bool device_open_gpu(int ordinal);
void device_open_cpu(void);
void device_close(void);

/* Empties the slab and makes sure of `bytes`; false where there is no such memory. */
bool device_reserve(size_t bytes);
/* The next `bytes` of the slab, aligned to 512; null where it is full. */
void *device_take(size_t bytes);
/* Memory beside the slab. */
void *device_alloc(size_t bytes);
void device_free(void *data);

void device_upload(void *to, const void *from, size_t bytes);
void device_download(void *to, const void *from, size_t bytes);
void device_copy(void *to, const void *from, size_t bytes);
void device_set(void *to, int byte, size_t bytes);
void device_sync(void);

/* Measures the copy rate: large device-to-device copies, the best of many. */
void device_measure_copy(void);
/* Puts a fill of several times the L2's size into the stream: what follows finds a cold cache, and is
 * in the queue before it can begin. */
void device_flush_l2(void);
/* The host memory in use by the process and the device memory in use, bytes; 0 where unknown. */
size_t host_memory_used(void);
size_t device_memory_used(void);

#endif
