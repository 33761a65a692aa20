/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor's parts. Each looks at one field and adds its findings; what one part learns and
 * another needs stands in struct doctor. Nothing is loaded into this process: probes are children.
 * */
#ifndef WARPDNN_TOOL_DOCTOR_H
#define WARPDNN_TOOL_DOCTOR_H

#include "place.h"
#include "report.h"

/* The CUDA version that our kernels were compiled with; any driver of its major version runs their
 * machine code. The library assumes the same where it was built without nvcc. */
#ifndef WD_CUDA_VERSION
#define WD_CUDA_VERSION 13000
#endif
enum { CUDA_NEEDED = WD_CUDA_VERSION / 1000 * 1000 };

struct doctor {
    struct report report;
    struct place place;
    int seconds;            /* limit of each probe */
    const char *kernel_log; /* a file to read in place of the kernel's own log; may be null */
    const char *driver;     /* the driver library that is asked for */
    bool driver_named;      /* by WARPDNN_CUDA_DRIVER */
    int driver_version;     /* CUDA version it serves, times 1000; 0 where there is none */
    int devices;            /* CUDA devices; -1 where not known */
    char *ptx_compiler;     /* the driver's JIT compiler; null where missing */
    struct told_file *told; /* the libcudnn files that findings are about, of doctor_places.c */
    int told_count;
};

void doctor_environment(struct doctor *doctor); /* WARPDNN_ variables */
void doctor_library(struct doctor *doctor);     /* our library and the CPU module */
void doctor_driver(struct doctor *doctor);      /* the CUDA driver and its devices */
void doctor_nodes(struct doctor *doctor);       /* kernel module and device files */
void doctor_handle(struct doctor *doctor);      /* a handle and a first operation, on each device */
void doctor_places(struct doctor *doctor);      /* what each usual place holds as libcudnn */
void doctor_python(struct doctor *doctor);      /* frameworks of the Pythons in reach */
void doctor_health(struct doctor *doctor);      /* NVML */
void doctor_kernel_log(struct doctor *doctor);  /* Xid lines */

/* How our kernels serve a device of this compute capability (90 for 9.0). */
enum coverage { COVER_NATIVE, COVER_JIT, COVER_NONE };
/* `by` (may be null) receives the architecture that serves, as "sm_90a". */
enum coverage coverage_of(int capability, const char *archs, char *by, int size);

/* Adds a finding about one libcudnn file: whose it is, and its version, asked in a child. Files
 * that were told already are told in short. Answers cudnnGetVersion's number, 0 where not known. */
int places_add_file(struct doctor *doctor, const char *area, const char *id, const char *where,
                    const char *path);

#endif
