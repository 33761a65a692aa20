/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's inside: a grid's blocks and threads as emulator.c runs them and as
 * emulator_together.c lets them meet. */
#ifndef EMULATOR_GRID_H
#define EMULATOR_GRID_H

#include "emulator.h"
#include "races.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    THREADS_MAX = 1024,
    WARP = 32,
    NAMES = 16,
};

struct copy {
    void *to;
    const void *from;
    uint32_t bytes;
    uint32_t group;
};

struct fibre {
    struct emulator_place place;
    void *stack_pointer;
    const volatile uint32_t *gate; /* waits while this word has this value; null: can go on */
    uint32_t gate_mask, gate_value;
    uint32_t thread;
    uint32_t cluster_phase; /* the one it arrived at */
    bool done;
    void *races; /* what the thread sanitizer calls it */
    struct copy *copies;
    uint32_t copy_count, copy_room, group;
    unsigned char *stack;
};

struct barrier {
    uint32_t arrived, phase;
    char met[2]; /* places that stand for a meeting and the one before */
};

struct warp {
    uint32_t arrived, alive, phase;
    unsigned char value[2][WARP][8]; /* of this round and the one before, which some still read */
};

struct cluster {
    uint32_t size, threads_alive, arrived, phase;
    char met[2];
    pthread_mutex_t lock;
    uint32_t turn, idle; /* whose turn it is; how many turns in a row nothing happened */
    struct block **block;
};

struct block {
    struct cluster *cluster;
    pthread_cond_t its_turn;
    const char *symbol;
    emulator_kernel kernel;
    const void *args;
    uint32_t rank, threads, alive;
    char begun, ended; /* places: what came before its threads, and what they did */
    bool backwards;
    unsigned char *own_memory; /* of the block's thread: an address that all of them have */
    unsigned char *dynamic;
    size_t dynamic_bytes;
    struct barrier barrier[NAMES];
    struct warp warp[THREADS_MAX / WARP];
    struct fibre *fibre;
    struct fibre *running;
    void *scheduler, *scheduler_races;
};

/* The block whose threads this thread of the system runs. Volatile: noise is written over it, which
 * the compiler does not see (make_noise in emulator.c). */
extern _Thread_local struct block *volatile emulator_here;

/* Ends the process: the kernel is wrong. */
_Noreturn void emulator_give_up(const char *what);
/* The running thread waits for a word to be another than this. */
void emulator_wait_while(const volatile uint32_t *word, uint32_t value);
/* The running thread has ended: nobody waits for it any more. */
void emulator_leave(void);

#endif
