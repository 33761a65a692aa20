/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs engines' kernels on the host: a thread of the grid is a fibre, a block the fibres of one
 * thread of the system, a cluster several of those, of which one runs at a time. A fibre runs until
 * it waits for others. What a real device leaves undefined comes out wrong rather than right by
 * chance: shared memory begins as noise, asynchronous copies happen as late as they may, and every
 * other launch runs blocks and threads in the opposite order, so that a missing barrier changes the
 * result. Fibres that wait for ever end the process with a text.
 *
 * The .cu files are compiled as C++ with device.h before them; this part is what both sides share. */
#ifndef EMULATOR_EMULATOR_H
#define EMULATOR_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulator_index {
    uint32_t x, y, z;
};

/* Where the running fibre is. */
struct emulator_place {
    struct emulator_index thread_index, block_index, block_size, grid_size;
    void *dynamic_shared;
};
extern _Thread_local const struct emulator_place *emulator_now;

typedef void (*emulator_kernel)(const void *args);

struct emulator_launch {
    uint32_t grid[3], block[3], cluster, shared;
    uint32_t meets; /* all blocks are there at once: they take turns as those of a cluster do */
};

/* A whole grid, to its end. For one caller at a time. */
void emulator_run(const char *symbol, emulator_kernel kernel, const void *args,
                  const struct emulator_launch *launch);

/* Barriers: `name` 0 is the whole block's, that of `threads` threads otherwise. */
void emulator_barrier(uint32_t name, uint32_t threads);
void emulator_cluster_arrive(void);
void emulator_cluster_wait(void);
/* Where block `rank` of the cluster has what this one has at `mine`, in shared memory. */
void *emulator_of_cluster(const void *mine, uint32_t rank);
/* Adds to a word in device memory, and waits until its upper bit has turned since
 * (gpu/device/grid.cuh). */
uint32_t emulator_come(uint32_t *counter, uint32_t mine);
void emulator_await(uint32_t *counter, uint32_t before);
void emulator_post(uint64_t *to, uint32_t value, uint32_t tag);
uint64_t emulator_posted(const uint64_t *from);
uint64_t emulator_posted_in_turn(const uint64_t *from, uint32_t bit);
uint32_t emulator_post_await(const uint64_t *from, uint32_t tag);
/* Shows a value of up to 8 bytes to the warp; then every lane may look at the others'. */
void emulator_warp_show(const void *value, size_t size);
void emulator_warp_see(uint32_t lane, void *value, size_t size);
uint32_t emulator_lane(void);
/* Barriers in shared memory that count bytes (gpu/device/barrier.cuh). */
void emulator_counter_begin(uint64_t *counter);
void emulator_counter_expect(uint64_t *counter, uint32_t bytes);
void emulator_counter_send(void *mine, uint64_t *counter, uint32_t rank, const void *value,
                           uint32_t bytes);
void emulator_arrive(uint64_t *counter, uint32_t all);
void emulator_counter_wait(uint64_t *counter, uint32_t parity);
/* Into this block's own memory, at once: before that no thread may read there. */
void emulator_bulk(void *to, const void *from, uint32_t bytes, uint64_t *counter);
/* Copies that happen when they are waited for: all groups but the `left` latest, or everything. */
void emulator_copy(void *to, const void *from, uint32_t bytes);
void emulator_copies_end(void);
void emulator_copies_wait(uint32_t left);
void emulator_copies_wait_all(void);

#ifdef __cplusplus
}
#endif

#endif
