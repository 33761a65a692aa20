/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid: clusters one after the other, the blocks of one in threads of the system that take turns,
 * the threads of a block as fibres. A fibre that waits names a word and the value that it waits to
 * be gone; its block resumes it when the word has changed. x86-64. */
#define _GNU_SOURCE
#include "emulator_grid.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STACK_BYTES = 128 << 10,
    NOISE = 0xfb, /* as float -2.6e36, as a signed number a large negative one */
};

_Thread_local const struct emulator_place *emulator_now;
_Thread_local struct block *volatile emulator_here;
static _Thread_local unsigned char landmark; /* tells threads' copies of a variable apart */
static uint64_t launches;

/* The threads of a block, with their stacks. Kept from one launch to the next, for to map and to unmap
 * those of a whole grid costs more than to run many a kernel. */
struct crew {
    struct crew *next;
    unsigned char *stacks;
    struct fibre fibre[THREADS_MAX];
};

static struct crew *idle_crews;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

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

void emulator_give_up(const char *what)
{
    const struct fibre *f = emulator_here->running;
    fprintf(stderr, "emulator: %s: %s (block %u, thread %u)\n", emulator_here->symbol, what,
            f ? f->place.block_index.x : 0, f ? f->thread : 0);
    abort();
}

static void yield(void)
{
    struct fibre *f = emulator_here->running;
    races_switch(emulator_here->scheduler_races);
    emulator_switch(&f->stack_pointer, emulator_here->scheduler);
}

void emulator_wait_while(const volatile uint32_t *word, uint32_t value)
{
    struct fibre *f = emulator_here->running;
    if (*word != value) return;
    f->gate = word;
    f->gate_mask = UINT32_MAX;
    f->gate_value = value;
    yield();
}

uint32_t emulator_come(uint32_t *counter, uint32_t mine)
{
    const uint32_t before = *counter;
    races_show(counter);
    *counter += mine;
    return before;
}

void emulator_await(uint32_t *counter, uint32_t before)
{
    const uint32_t half = (uint32_t)1 << 31;
    struct fibre *f = emulator_here->running;
    if ((*counter & half) == (before & half)) {
        f->gate = counter;
        f->gate_mask = half;
        f->gate_value = before & half;
        yield();
    }
    races_see(counter);
}

void emulator_post(uint64_t *to, uint32_t value, uint32_t tag)
{
    __atomic_store_n(to, (uint64_t)tag << 32 | value, __ATOMIC_RELAXED);
}

uint64_t emulator_posted(const uint64_t *from)
{
    const volatile uint32_t *upper = (const volatile uint32_t *)from + 1;
    for (;;) {
        const uint64_t word = __atomic_load_n(from, __ATOMIC_RELAXED);
        if (word >> 32 != 0) return word;
        emulator_wait_while(upper, 0);
    }
}

uint64_t emulator_posted_in_turn(const uint64_t *from, uint32_t bit)
{
    const volatile uint32_t *upper = (const volatile uint32_t *)from + 1;
    for (;;) {
        const uint64_t word = __atomic_load_n(from, __ATOMIC_RELAXED);
        if ((word >> 32 & 1) == bit) return word;
        emulator_wait_while(upper, (uint32_t)(word >> 32));
    }
}

uint32_t emulator_post_await(const uint64_t *from, uint32_t tag)
{
    const volatile uint32_t *upper = (const volatile uint32_t *)from + 1;
    for (;;) {
        const uint64_t word = __atomic_load_n(from, __ATOMIC_RELAXED);
        if (word >> 32 == tag) return (uint32_t)word;
        emulator_wait_while(upper, (uint32_t)(word >> 32));
    }
}

__attribute__((used)) void emulator_body(void);
void emulator_body(void)
{
    races_see(&emulator_here->begun);
    emulator_here->kernel(emulator_here->args);
    emulator_leave();
    yield();
}

static struct crew *take_crew(void)
{
    pthread_mutex_lock(&idle_lock);
    struct crew *c = idle_crews;
    if (c) idle_crews = c->next;
    pthread_mutex_unlock(&idle_lock);
    if (c) return c;
    c = calloc(1, sizeof *c);
    if (c) {
        c->stacks = mmap(NULL, (size_t)THREADS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (!c || c->stacks == MAP_FAILED) {
        fprintf(stderr, "emulator: no memory for the stacks of a block\n");
        abort();
    }
    for (int i = 0; i < THREADS_MAX; ++i) c->fibre[i].stack = c->stacks + (size_t)i * STACK_BYTES;
    return c;
}

static void leave_crew(struct crew *c)
{
    for (int i = 0; i < THREADS_MAX; ++i) { /* the sanitizer has room for few threads */
        if (c->fibre[i].races) races_end(c->fibre[i].races);
        c->fibre[i].races = NULL;
    }
    pthread_mutex_lock(&idle_lock);
    c->next = idle_crews;
    idle_crews = c;
    pthread_mutex_unlock(&idle_lock);
}

static void prepare_fibre(struct fibre *f)
{
    if (!f->races) f->races = races_begin();
    void **top = (void **)(f->stack + STACK_BYTES);
    top -= 2; /* aligned to 16 bytes where the body is called */
    *--top = (void *)(uintptr_t)emulator_entry;
    for (int i = 0; i < 6; ++i) *--top = NULL;
    f->stack_pointer = top;
}

static bool resume(struct block *b, struct fibre *f)
{
    if (f->done || (f->gate && (*f->gate & f->gate_mask) == f->gate_value)) return false;
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
    struct block *block = emulator_here;
    memset(own->begin, NOISE, own->bytes);
    emulator_here = block;
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
    while (c->turn != rank) pthread_cond_wait(&c->block[rank]->its_turn, &c->lock);
}

static void end_turn(struct cluster *c, uint32_t rank, bool moved)
{
    c->idle = moved ? 0 : c->idle + 1;
    if (c->idle > 2 * c->size && c->threads_alive > 0)
        emulator_give_up("its threads wait for ever");
    c->turn = (rank + 1) % c->size;
    pthread_cond_signal(&c->block[c->turn]->its_turn);
    pthread_mutex_unlock(&c->lock);
}

/* Memory that ends, but for less than 16 bytes, where a page begins that nobody may touch: what reads or writes behind
 * a block's dynamic shared memory ends there. */
struct guarded {
    unsigned char *memory;
    void *pages;
    size_t bytes;
};

static struct guarded take_guarded(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = (bytes + page - 1) / page * page;
    struct guarded g = {.bytes = room + page};
    g.pages = mmap(NULL, g.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.pages == MAP_FAILED || mprotect((char *)g.pages + room, page, PROT_NONE) != 0) abort();
    g.memory = (unsigned char *)g.pages + room - (bytes + 15) / 16 * 16;
    return g;
}

/* Every block of a cluster begins, then all go on in turns until all have ended. */
static void *run_part(void *data)
{
    struct part *p = data;
    struct block *b = &p->block;
    struct cluster *c = b->cluster;
    const uint64_t clusters = p->blocks / c->size;
    struct own own = {NULL, 0};
    emulator_here = b;
    b->scheduler_races = races_self();
    struct crew *crew = take_crew();
    b->fibre = crew->fibre;
    b->own_memory = &landmark;
    struct guarded dynamic = take_guarded(b->dynamic_bytes);
    b->dynamic = dynamic.memory;
    dl_iterate_phdr(find_own, &own);
    for (uint64_t k = 0; k < clusters; ++k) {
        const uint32_t rank = p->launch->meets && p->backwards ? c->size - 1 - b->rank : b->rank;
        const uint64_t index = (p->backwards ? clusters - 1 - k : k) * c->size + rank;
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
    munmap(dynamic.pages, dynamic.bytes);
    leave_crew(crew);
    emulator_here = NULL;
    emulator_now = NULL;
    return NULL;
}

void emulator_run(const char *symbol, emulator_kernel kernel, const void *args,
                  const struct emulator_launch *launch)
{
    const uint32_t blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
    const uint32_t size = launch->meets ? blocks : launch->cluster > 1 ? launch->cluster : 1;
    const bool backwards = launches++ % 2;
    struct cluster cluster = {.size = size, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct part *parts = calloc(size, sizeof *parts);
    pthread_t *thread = calloc(size, sizeof *thread);
    cluster.block = calloc(size, sizeof(struct block *));
    for (uint32_t r = 0; r < size; ++r) {
        struct part *p = &parts[r];
        p->launch = launch;
        p->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
        p->backwards = backwards;
        p->block = (struct block){.cluster = &cluster,
                                  .its_turn = PTHREAD_COND_INITIALIZER,
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
        if (pthread_create(&thread[r], NULL, run_part, &parts[r]) != 0) abort();
    }
    run_part(&parts[0]);
    for (uint32_t r = 1; r < size; ++r) pthread_join(thread[r], NULL);
    free(cluster.block);
    free(thread);
    free(parts);
}
