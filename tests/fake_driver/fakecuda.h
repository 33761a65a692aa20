/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for the CUDA driver library, for tests on machines without a GPU: devices, contexts,
 * streams, captures, graphs and memory that behave as the driver's do, on host memory, and complain
 * where a real driver would misbehave in silence. Kernels are functions that a test registers by
 * symbol ("host twins").
 *
 * A test opens it with support/fakecuda.h and calls through `fake->`. All of it is safe for threads.
 *
 *   fakecuda_reset            forgets faults, calls and problems; for the start of a test
 *   fakecuda_configure        before the first use: number of devices, 10 * major + minor, bytes of
 *                             memory of each, CUDA version times 1000. The environment does the same:
 *                             FAKECUDA_DEVICES, _CAPABILITY, _MEMORY_MIB, _VERSION, _INIT (what cuInit
 *                             answers). Default: 2 devices, 90, 1 GiB, 13000.
 *                             FAKECUDA_PROCESSORS are those of a device (132), for what is worth it on
 *                             large problems only.
 *                             FAKECUDA_REPORT=1 reports when the process ends (status 97: problems).
 *                             FAKECUDA_GUARD=1: pages around a block that nobody may touch, so that
 *                             a kernel that reads behind a tensor ends the process
 *                             FAKECUDA_IDLE=1: for the host's part of calls alone. No work is done,
 *                             device memory is addresses with nothing behind them (of any size, and
 *                             the same in every run), and launches cost little, for nobody looks
 *                             whether their parameters can be read
 *                             FAKECUDA_LOG: a file to which every piece of work is added as it is
 *                             submitted: a kernel's symbol, launch and parameters, a fill, a copy
 *   fakecuda_deinitialize     from now on every call answers CUDA_ERROR_DEINITIALIZED
 *   fakecuda_set_deferred     work waits for a synchronisation, and then streams take turns
 *   fakecuda_fail_at          the n-th driver call from now answers `result` (0 switches it off). A
 *                             call that gives something back gives it back all the same
 *   fakecuda_fail_function    every call of this function answers `result` (null name: none does)
 *   fakecuda_failed           the function that was made to fail last, or null
 *   fakecuda_calls            calls since the last reset, of one function or (null) of all
 *   fakecuda_register_kernel  a twin, with the size of each of its parameters
 *   fakecuda_register_pass    the twins of a definition's kernels, through its host functions; those
 *                             of src/ops are there from the start
 *   fakecuda_kernel_shared    its static shared memory (none at first)
 *   fakecuda_kernel_launch    its latest launch
 *   fakecuda_take_launched    the symbols of the kernels that ran since it was last asked, with spaces
 *                             between; a definition's kernel by the step of its pass, behind a colon;
 *                             answers the length of that text, of which `size` bytes are written
 *   fakecuda_stack_depth      contexts on this thread's stack
 *   fakecuda_primary_references   how often a device's primary context is retained
 *   fakecuda_capture_mode     this thread's capture mode
 *   fakecuda_bytes            device memory in use
 *   fakecuda_launches         kernels launched or replayed since the last reset
 *   fakecuda_run_together     replays two graphs at once, a node of each in turn
 *   fakecuda_report           finishes all work and counts the problems, printing each: illegal
 *                             calls, writes outside of allocations or after a free, what was not
 *                             given back, an unbalanced context stack of this thread */
#ifndef FAKE_DRIVER_FAKECUDA_H
#define FAKE_DRIVER_FAKECUDA_H

#include "gpu/driver.h"

struct wd_pass;
typedef struct CUevent_st *CUevent;
typedef struct CUgraphExec_st *CUgraphExec;

struct fakecuda_launch {
    unsigned int grid[3], block[3], cluster, shared, meets, overlaps;
};

/* Runs a whole grid. `params` point to the launch's copies of its parameters. */
typedef void (*fakecuda_run)(void *user, void **params, const struct fakecuda_launch *launch);

/* What beginning a capture may be told, and creating a stream. */
enum { FAKECUDA_STREAM_NON_BLOCKING = 1 };

#define FAKE(result, name, parameters) result name parameters;
#include "fake_driver/fakecuda.def"

#endif
