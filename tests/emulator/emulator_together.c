/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads of a grid do together: barriers, shuffles, clusters, counters, and copies that happen
 * when they are waited for. One thread runs at a time, so nothing emulator_here is locked. */
#include "emulator_grid.h"

#include <stdlib.h>
#include <string.h>

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

void emulator_barrier(uint32_t name, uint32_t threads)
{
    struct barrier *b = &emulator_here->barrier[name];
    const uint32_t phase = b->phase;
    if (name >= NAMES || threads % WARP != 0) emulator_give_up("no such barrier");
    races_show(&b->met[phase % 2]);
    b->arrived += 1;
    if (b->arrived == (threads > 0 ? threads : emulator_here->alive)) pass_barrier(b);
    else emulator_wait_while(&b->phase, phase);
    races_see(&b->met[phase % 2]);
}

void emulator_cluster_arrive(void)
{
    struct cluster *c = emulator_here->cluster;
    emulator_here->running->cluster_phase = c->phase;
    races_show(&c->met[c->phase % 2]);
    c->arrived += 1;
    if (c->arrived == c->threads_alive) pass_cluster(c);
}

void emulator_cluster_wait(void)
{
    struct cluster *c = emulator_here->cluster;
    const uint32_t phase = emulator_here->running->cluster_phase;
    emulator_wait_while(&c->phase, phase);
    races_see(&c->met[phase % 2]);
}

void *emulator_of_cluster(const void *mine, uint32_t rank)
{
    const unsigned char *at = mine;
    const struct block *there;
    if (rank >= emulator_here->cluster->size) emulator_give_up("no such block in the cluster");
    there = emulator_here->cluster->block[rank];
    if (at >= emulator_here->dynamic &&
        at < emulator_here->dynamic + emulator_here->dynamic_bytes) {
        return there->dynamic + (at - emulator_here->dynamic);
    }
    return there->own_memory + (at - emulator_here->own_memory);
}

uint32_t emulator_lane(void)
{
    return emulator_here->running->thread % WARP;
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
    struct warp *w = &emulator_here->warp[emulator_here->running->thread / WARP];
    const uint32_t phase = w->phase;
    copy_bytes(w->value[phase % 2][emulator_lane()], value, size);
    w->arrived += 1;
    if (w->arrived == w->alive) pass_warp(w);
    else emulator_wait_while(&w->phase, phase);
}

void emulator_warp_see(uint32_t lane, void *value, size_t size)
{
    const struct warp *w = &emulator_here->warp[emulator_here->running->thread / WARP];
    copy_bytes(value, w->value[(w->phase + 1) % 2][lane % WARP], size);
}

/* What lies in the 8 bytes of a counter: bytes still to come (below 0: come before they were
 * expected), or of arrivals how many have come; and twice the number of phases that ended, plus 1 once this one's bytes are known. */
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
    if (c->phase % 2) emulator_give_up("a counter's bytes are told twice");
    c->phase += 1;
    count(c, (int32_t)bytes);
}

void emulator_counter_send(void *mine, uint64_t *counter, uint32_t rank, const void *value,
                           uint32_t bytes)
{
    struct counter *c = emulator_of_cluster(counter, rank);
    /* a device says that this is an illegal instruction */
    if (emulator_here->cluster->size == 1) emulator_give_up("sends where there are no clusters");
    memcpy(emulator_of_cluster(mine, rank), value, bytes);
    races_show(c);
    count(c, -(int32_t)bytes);
}

void emulator_arrive(uint64_t *counter, uint32_t all)
{
    struct counter *c = (void *)counter;
    races_show(c);
    c->bytes += 1;
    if (c->bytes < (int32_t)all) return;
    c->bytes = 0;
    c->phase += 2;
}

void emulator_counter_wait(uint64_t *counter, uint32_t parity)
{
    struct counter *c = (void *)counter;
    while (c->phase / 2 % 2 == parity) emulator_wait_while(&c->phase, c->phase);
    races_see(c);
}

/* ---- Copies ---- */

void emulator_bulk(void *to, const void *from, uint32_t bytes, uint64_t *counter)
{
    struct counter *c = (void *)counter;
    if (((uintptr_t)to | (uintptr_t)from | bytes) % 16 != 0) {
        emulator_give_up("a bulk copy is not aligned");
    }
    memcpy(to, from, bytes);
    races_show(c);
    count(c, -(int32_t)bytes);
}

void emulator_copy(void *to, const void *from, uint32_t bytes)
{
    struct fibre *f = emulator_here->running;
    if (((uintptr_t)to | (uintptr_t)from) % bytes != 0) emulator_give_up("a copy is not aligned");
    if (f->copy_count == f->copy_room) {
        f->copy_room = f->copy_room ? 2 * f->copy_room : 8;
        f->copies = realloc(f->copies, f->copy_room * sizeof *f->copies);
    }
    f->copies[f->copy_count++] = (struct copy){to, from, bytes, f->group};
}

void emulator_copies_end(void)
{
    emulator_here->running->group += 1;
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
    struct fibre *f = emulator_here->running;
    if (f->group > left) copy_until(f, f->group - left);
}

void emulator_copies_wait_all(void)
{
    copy_until(emulator_here->running, UINT32_MAX);
}

void emulator_leave(void)
{
    struct block *b = emulator_here;
    struct fibre *f = b->running;
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
