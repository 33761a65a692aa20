/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid: clusters one after the other, the blocks of one in threads of the system that take turns,
 * the threads of a block as fibres. A fibre that waits names a word and the value that it waits to
 * be gone; its block resumes it when the word has changed. x86-64. */
#define _GNU_SOURCE
#include "emulator.h"
#include "races.h"

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    THREADS_MAX = 1024,
    WARP = 32,
    NAMES = 16,
    CLUSTER_MAX = 16,
    STACK_BYTES = 128 << 10,
    NOISE = 0xfb, /* as float -2.6e36, as a signed number a large negative one */
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
    uint32_t gate_value;
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
    pthread_cond_t turned;
    uint32_t turn, idle; /* whose turn it is; how many turns in a row nothing happened */
    struct block *block[CLUSTER_MAX];
};

struct block {
    struct cluster *cluster;
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

_Thread_local const struct emulator_place *emulator_now;
/* volatile: noise is written over them, which the compiler does not see (make_noise) */
static _Thread_local struct block *volatile here;
static _Thread_local unsigned char landmark;        /* tells threads' copies of a variable apart */
static _Thread_local struct fibre *volatile fibres; /* kept from one launch to the next */
static uint64_t launches;

/* ---- Fibres ---- */

void emulator_switch(void **save, void *to);
extern const char emulator_entry[];
__asm__(".text\n"
        ".type emulator_switch, @function\n"
        "emulator_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size emulator_switch, .-emulator_switch\n"
        ".type emulator_entry, @function\n"
        "emulator_entry:\n"
        "    call emulator_body\n"
        "    hlt\n"
        ".size emulator_entry, .-emulator_entry\n");

static void give_up(const char *what)
{
    const struct fibre *f = here->running;
    fprintf(stderr, "emulator: %s: %s (block %u, thread %u)\n", here->symbol, what,
            f ? f->place.block_index.x : 0, f ? f->thread : 0);
    abort();
}

static void yield(void)
{
    struct fibre *f = here->running;
    races_switch(here->scheduler_races);
    emulator_switch(&f->stack_pointer, here->scheduler);
}

/* Waits for a word to be another than this. */
static void wait_while(const volatile uint32_t *word, uint32_t value)
{
    struct fibre *f = here->running;
    if (*word != value) return;
    f->gate = word;
    f->gate_value = value;
    yield();
}

static void pass_barrier(struct barrier *b)
{
    b->arrived = 0;
    b->phase += 1;
}

static void pass_warp(struct warp *w)
{
    w->arrived = 0;
    w->phase += 1;
}

static void pass_cluster(struct cluster *c)
{
    c->arrived = 0;
    c->phase += 1;
}

static void end_thread(struct fibre *f)
{
    struct block *b = here;
    struct warp *w = &b->warp[f->thread / WARP];
    emulator_copies_wait_all();
    races_show(&b->ended);
    f->done = true;
    b->alive -= 1;
    w->alive -= 1;
    b->cluster->threads_alive -= 1;
    if (b->barrier[0].arrived > 0 && b->barrier[0].arrived == b->alive) pass_barrier(b->barrier);
    if (w->arrived > 0 && w->arrived == w->alive) pass_warp(w);
    if (b->cluster->arrived > 0 && b->cluster->arrived == b->cluster->threads_alive) {
        pass_cluster(b->cluster);
    }
}

__attribute__((used)) void emulator_body(void);
void emulator_body(void)
{
    races_see(&here->begun);
    here->kernel(here->args);
    end_thread(here->running);
    yield();
}

static void prepare_fibre(struct fibre *f)
{
    if (!f->stack) {
        f->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->stack == MAP_FAILED) {
            fprintf(stderr, "emulator: no memory for a stack\n");
            abort();
        }
    }
    if (!f->races) f->races = races_begin();
    void **top = (void **)(f->stack + STACK_BYTES);
    top -= 2; /* aligned to 16 bytes where the body is called */
    *--top = (void *)(uintptr_t)emulator_entry;
    for (int i = 0; i < 6; ++i) *--top = NULL;
    f->stack_pointer = top;
}

static bool resume(struct block *b, struct fibre *f)
{
    if (f->done || (f->gate && *f->gate == f->gate_value)) return false;
    f->gate = NULL;
    b->running = f;
    emulator_now = &f->place;
    races_switch(f->races);
    emulator_switch(&b->scheduler, f->stack_pointer);
    b->running = NULL;
    return true;
}

/* Once through all threads; whether any did something. */
static bool go_round(struct block *b)
{
    bool moved = false;
    for (uint32_t i = 0; i < b->threads; ++i) {
        moved |= resume(b, &b->fibre[b->backwards ? b->threads - 1 - i : i]);
    }
    return moved;
}

/* ---- What threads do together ---- */

void emulator_barrier(uint32_t name, uint32_t threads)
{
    struct barrier *b = &here->barrier[name];
    const uint32_t phase = b->phase;
    if (name >= NAMES || (name > 0 && threads % WARP != 0)) give_up("no such barrier");
    races_show(&b->met[phase % 2]);
    b->arrived += 1;
    if (b->arrived == (name > 0 ? threads : here->alive)) pass_barrier(b);
    else wait_while(&b->phase, phase);
    races_see(&b->met[phase % 2]);
}

void emulator_cluster_arrive(void)
{
    struct cluster *c = here->cluster;
    here->running->cluster_phase = c->phase;
    races_show(&c->met[c->phase % 2]);
    c->arrived += 1;
    if (c->arrived == c->threads_alive) pass_cluster(c);
}

void emulator_cluster_wait(void)
{
    struct cluster *c = here->cluster;
    const uint32_t phase = here->running->cluster_phase;
    wait_while(&c->phase, phase);
    races_see(&c->met[phase % 2]);
}

void *emulator_of_cluster(const void *mine, uint32_t rank)
{
    const unsigned char *at = mine;
    const struct block *there;
    if (rank >= here->cluster->size) give_up("no such block in the cluster");
    there = here->cluster->block[rank];
    if (at >= here->dynamic && at < here->dynamic + here->dynamic_bytes) {
        return there->dynamic + (at - here->dynamic);
    }
    return there->own_memory + (at - here->own_memory);
}

uint32_t emulator_lane(void)
{
    return here->running->thread % WARP;
}

/* Unseen by the thread sanitizer, for memcpy is not. */
static void copy_bytes(void *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        ((volatile unsigned char *)to)[i] = ((const volatile unsigned char *)from)[i];
    }
}

void emulator_warp_show(const void *value, size_t size)
{
    struct warp *w = &here->warp[here->running->thread / WARP];
    const uint32_t phase = w->phase;
    copy_bytes(w->value[phase % 2][emulator_lane()], value, size);
    w->arrived += 1;
    if (w->arrived == w->alive) pass_warp(w);
    else wait_while(&w->phase, phase);
}

void emulator_warp_see(uint32_t lane, void *value, size_t size)
{
    const struct warp *w = &here->warp[here->running->thread / WARP];
    copy_bytes(value, w->value[(w->phase + 1) % 2][lane % WARP], size);
}

/* What lies in the 8 bytes of a counter: bytes still to come (below 0: come before they were
 * expected), and twice the number of phases that ended, plus 1 once this one's bytes are known. */
struct counter {
    int32_t bytes;
    volatile uint32_t phase;
};

static void count(struct counter *c, int32_t bytes)
{
    c->bytes += bytes;
    if (c->bytes == 0 && c->phase % 2) c->phase += 1;
}

void emulator_counter_begin(uint64_t *counter)
{
    struct counter *c = (void *)counter;
    c->bytes = 0;
    c->phase = 0;
}

void emulator_counter_expect(uint64_t *counter, uint32_t bytes)
{
    struct counter *c = (void *)counter;
    if (c->phase % 2) give_up("a counter's bytes are told twice");
    c->phase += 1;
    count(c, (int32_t)bytes);
}

void emulator_counter_send(void *mine, uint64_t *counter, uint32_t rank, const void *value,
                           uint32_t bytes)
{
    struct counter *c = emulator_of_cluster(counter, rank);
    memcpy(emulator_of_cluster(mine, rank), value, bytes);
    races_show(c);
    count(c, -(int32_t)bytes);
}

void emulator_counter_wait(uint64_t *counter, uint32_t parity)
{
    struct counter *c = (void *)counter;
    while (c->phase / 2 % 2 == parity) wait_while(&c->phase, c->phase);
    races_see(c);
}

/* ---- Copies ---- */

void emulator_copy(void *to, const void *from, uint32_t bytes)
{
    struct fibre *f = here->running;
    if (((uintptr_t)to | (uintptr_t)from) % bytes != 0) give_up("a copy is not aligned");
    if (f->copy_count == f->copy_room) {
        f->copy_room = f->copy_room ? 2 * f->copy_room : 8;
        f->copies = realloc(f->copies, f->copy_room * sizeof *f->copies);
    }
    f->copies[f->copy_count++] = (struct copy){to, from, bytes, f->group};
}

void emulator_copies_end(void)
{
    here->running->group += 1;
}

/* Of the groups before `group`. */
static void copy_until(struct fibre *f, uint32_t group)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->copy_count; ++i) {
        const struct copy c = f->copies[i];
        if (c.group < group) memcpy(c.to, c.from, c.bytes);
        else f->copies[kept++] = c;
    }
    f->copy_count = kept;
}

void emulator_copies_wait(uint32_t left)
{
    struct fibre *f = here->running;
    if (f->group > left) copy_until(f, f->group - left);
}

void emulator_copies_wait_all(void)
{
    copy_until(here->running, UINT32_MAX);
}

/* ---- Blocks and clusters ---- */

struct own {
    unsigned char *begin;
    size_t bytes;
};

static int find_own(struct dl_phdr_info *info, size_t size, void *to)
{
    struct own *own = to;
    (void)size;
    if (!info->dlpi_tls_data) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const unsigned char *begin = info->dlpi_tls_data;
        const size_t bytes = info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
        if (&landmark < begin || &landmark >= begin + bytes) continue;
        *own = (struct own){info->dlpi_tls_data, bytes};
        return 1;
    }
    return 0;
}

/* Shared memory that kernels declare is their threads' own; the variables of this file lie beside. */
static void make_noise(const struct own *own)
{
    struct block *block = here;
    struct fibre *kept = fibres;
    memset(own->begin, NOISE, own->bytes);
    here = block;
    fibres = kept;
}

/* The threads' part of a grid: block `rank` of every cluster. */
struct part {
    struct block block;
    const struct emulator_launch *launch;
    uint64_t blocks;
    bool backwards;
};

static void begin_block(struct block *b, const struct emulator_launch *launch, uint64_t index,
                        const struct own *own)
{
    b->alive = b->threads;
    memset(b->barrier, 0, sizeof b->barrier);
    memset(b->warp, 0, sizeof b->warp);
    if (own->bytes > 0) make_noise(own);
    if (b->dynamic_bytes > 0) memset(b->dynamic, NOISE, b->dynamic_bytes);
    for (uint32_t t = 0; t < b->threads; ++t) {
        struct fibre *f = &b->fibre[t];
        const uint32_t x = launch->block[0], y = launch->block[1];
        prepare_fibre(f);
        f->place = (struct emulator_place){{t % x, t / x % y, t / x / y},
                                           {(uint32_t)(index % launch->grid[0]),
                                            (uint32_t)(index / launch->grid[0] % launch->grid[1]),
                                            (uint32_t)(index / launch->grid[0] / launch->grid[1])},
                                           {launch->block[0], launch->block[1], launch->block[2]},
                                           {launch->grid[0], launch->grid[1], launch->grid[2]},
                                           b->dynamic};
        f->thread = t;
        f->gate = NULL;
        f->done = false;
        f->copy_count = 0;
        f->group = 0;
        b->warp[t / WARP].alive += 1;
    }
    races_show(&b->begun);
}

static void take_turn(struct cluster *c, uint32_t rank)
{
    pthread_mutex_lock(&c->lock);
    while (c->turn != rank) pthread_cond_wait(&c->turned, &c->lock);
}

static void end_turn(struct cluster *c, uint32_t rank, bool moved)
{
    c->idle = moved ? 0 : c->idle + 1;
    if (c->idle > 2 * c->size && c->threads_alive > 0) give_up("its threads wait for ever");
    c->turn = (rank + 1) % c->size;
    pthread_cond_broadcast(&c->turned);
    pthread_mutex_unlock(&c->lock);
}

/* Every block of a cluster begins, then all go on in turns until all have ended. */
static void *run_part(void *data)
{
    struct part *p = data;
    struct block *b = &p->block;
    struct cluster *c = b->cluster;
    const uint64_t clusters = p->blocks / c->size;
    struct own own = {NULL, 0};
    here = b;
    b->scheduler_races = races_self();
    if (!fibres) fibres = calloc(THREADS_MAX, sizeof *fibres);
    b->fibre = fibres;
    b->own_memory = &landmark;
    b->dynamic = aligned_alloc(1024, (b->dynamic_bytes + 1024) / 1024 * 1024);
    dl_iterate_phdr(find_own, &own);
    for (uint64_t k = 0; k < clusters; ++k) {
        const uint64_t index = (p->backwards ? clusters - 1 - k : k) * c->size + b->rank;
        bool more = true;
        take_turn(c, b->rank);
        begin_block(b, p->launch, index, &own);
        c->threads_alive += b->threads;
        end_turn(c, b->rank, true);
        while (more) {
            bool moved = false;
            take_turn(c, b->rank);
            while (go_round(b)) moved = true;
            more = c->threads_alive > 0;
            if (!more) races_see(&b->ended);
            end_turn(c, b->rank, moved);
        }
    }
    free(b->dynamic);
    here = NULL;
    emulator_now = NULL;
    return NULL;
}

static void forget_fibres(void)
{
    for (int i = 0; i < THREADS_MAX; ++i) {
        if (fibres[i].stack) munmap(fibres[i].stack, STACK_BYTES);
        free(fibres[i].copies);
        if (fibres[i].races) races_end(fibres[i].races);
    }
    free(fibres);
    fibres = NULL;
}

static void *run_thread(void *data)
{
    run_part(data);
    forget_fibres();
    return NULL;
}

void emulator_run(const char *symbol, emulator_kernel kernel, const void *args,
                  const struct emulator_launch *launch)
{
    const uint32_t size = launch->cluster > 1 ? launch->cluster : 1;
    const bool backwards = launches++ % 2;
    struct cluster cluster = {
        .size = size, .lock = PTHREAD_MUTEX_INITIALIZER, .turned = PTHREAD_COND_INITIALIZER};
    struct part *parts = calloc(size, sizeof *parts);
    pthread_t thread[CLUSTER_MAX];
    for (uint32_t r = 0; r < size; ++r) {
        struct part *p = &parts[r];
        p->launch = launch;
        p->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
        p->backwards = backwards;
        p->block = (struct block){.cluster = &cluster,
                                  .symbol = symbol,
                                  .kernel = kernel,
                                  .args = args,
                                  .rank = r,
                                  .threads = launch->block[0] * launch->block[1] * launch->block[2],
                                  .backwards = backwards,
                                  .dynamic_bytes = launch->shared};
        cluster.block[r] = &p->block;
    }
    for (uint32_t r = 1; r < size; ++r) {
        if (pthread_create(&thread[r], NULL, run_thread, &parts[r]) != 0) abort();
    }
    run_part(&parts[0]);
    for (uint32_t r = 1; r < size; ++r) pthread_join(thread[r], NULL);
    free(parts);
}
