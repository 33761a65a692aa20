/* SPDX-License-Identifier: Apache-2.0
 *
 * Liveness of the registers of one function over its control flow, then names: a step i reads at
 * point 2i and writes at point 2i + 1, a register occupies the points at which it is live (and the
 * one of a write that nothing reads), and registers of a class share a name where their points are
 * disjoint. Labels begin blocks and jumps end them; too many edges or reads only cost names. */
#include <stdlib.h>
#include <string.h>

#include "ptx_registers.h"

#define NONE UINT32_MAX

enum { SHORT_LIFE = 64 }; /* points; of what compresses best */

struct span { /* points begin .. end - 1 */
    uint32_t begin, end;
    uint32_t next;
};

struct block {
    uint32_t step, step_end;
};

struct name { /* the points it is taken at, in order */
    uint32_t head;
    uint32_t near; /* a span that ends before the step at hand, or NONE */
};

struct work {
    struct ptx_body *body;
    struct block *blocks;
    uint32_t block_count;
    uint32_t *block_at; /* of each step, and of the end */
    uint32_t *global; /* of each register: its bit in the sets, NONE where it stays in one block */
    uint32_t *reg_of; /* of each bit */
    uint32_t global_count;
    uint32_t words; /* of a set */
    uint64_t *reads, *kills, *in, *out;
    uint32_t *open;     /* of each register: the end of the span being drawn, or 0 */
    uint32_t *spans_of; /* of each register: its first span */
    struct span *spans;
    size_t span_count, span_room;
    struct name *names; /* of each class, short lives and long, reg_count of them */
    uint32_t *writes;   /* of each register */
};

static bool find_blocks(struct work *w)
{
    const struct ptx_body *body = w->body;
    uint32_t count = body->step_count;
    uint32_t *at = w->block_at = calloc(count + 1, sizeof *at);
    w->blocks = malloc((count + 1) * sizeof *w->blocks);
    if (!at || !w->blocks) return false;
    at[0] = 1;
    for (uint32_t i = 0; i < body->label_count; ++i) at[body->labels[i]] = 1;
    for (uint32_t i = 0; i < count; ++i) {
        const struct ptx_step *s = &body->steps[i];
        if (!s->falls || s->scatters || s->label != NONE) at[i + 1] = 1;
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (at[i]) w->blocks[w->block_count++].step = i;
        at[i] = w->block_count - 1;
        w->blocks[w->block_count - 1].step_end = i + 1;
    }
    at[count] = NONE;
    return true;
}

/* Registers that some block reads before it writes them. */
static bool find_globals(struct work *w)
{
    const struct ptx_body *body = w->body;
    uint32_t regs = body->reg_count + 1;
    uint32_t *written = malloc(regs * sizeof *written); /* the last block that did */
    w->global = malloc(regs * sizeof *w->global);
    w->reg_of = malloc(regs * sizeof *w->reg_of);
    if (written && w->global && w->reg_of) {
        memset(written, 0xff, regs * sizeof *written);
        memset(w->global, 0xff, regs * sizeof *w->global);
        for (uint32_t i = 0; i < body->step_count; ++i) {
            const struct ptx_step *s = &body->steps[i];
            for (uint32_t u = s->use; u < s->use_end; ++u) {
                uint32_t reg = body->uses[u].reg;
                if (!(body->uses[u].access & PTX_READS) || written[reg] == w->block_at[i]) continue;
                if (w->global[reg] != NONE) continue;
                w->reg_of[w->global_count] = reg;
                w->global[reg] = w->global_count++;
            }
            for (uint32_t u = s->use; u < s->use_end; ++u)
                if (body->uses[u].access == PTX_WRITES) written[body->uses[u].reg] = w->block_at[i];
        }
    }
    free(written);
    return written && w->global && w->reg_of;
}

static bool has(const uint64_t *set, uint32_t bit)
{
    return set[bit / 64] >> bit % 64 & 1;
}

static bool fill_sets(struct work *w)
{
    const struct ptx_body *body = w->body;
    w->words = w->global_count / 64 + 1;
    size_t size = (size_t)w->words * (w->block_count + 1);
    w->reads = calloc(size, sizeof *w->reads);
    w->kills = calloc(size, sizeof *w->kills);
    w->in = calloc(size, sizeof *w->in);
    w->out = calloc(size, sizeof *w->out);
    if (!w->reads || !w->kills || !w->in || !w->out) return false;
    for (uint32_t i = 0; i < body->step_count; ++i) {
        const struct ptx_step *s = &body->steps[i];
        uint64_t *reads = w->reads + (size_t)w->words * w->block_at[i];
        uint64_t *kills = w->kills + (size_t)w->words * w->block_at[i];
        for (uint32_t u = s->use; u < s->use_end; ++u) {
            uint32_t bit = w->global[body->uses[u].reg];
            if (bit != NONE && body->uses[u].access & PTX_READS && !has(kills, bit))
                reads[bit / 64] |= 1ull << bit % 64;
        }
        for (uint32_t u = s->use; u < s->use_end; ++u) {
            uint32_t bit = w->global[body->uses[u].reg];
            if (bit != NONE && body->uses[u].access == PTX_WRITES)
                kills[bit / 64] |= 1ull << bit % 64;
        }
    }
    return true;
}

static void join(struct work *w, uint64_t *out, uint32_t step)
{
    if (w->block_at[step] == NONE) return;
    const uint64_t *in = w->in + (size_t)w->words * w->block_at[step];
    for (uint32_t k = 0; k < w->words; ++k) out[k] |= in[k];
}

static void flow(struct work *w)
{
    const struct ptx_body *body = w->body;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = w->block_count; b-- > 0;) {
            const struct ptx_step *last = &body->steps[w->blocks[b].step_end - 1];
            size_t base = (size_t)w->words * b;
            uint64_t *out = w->out + base;
            if (last->falls) join(w, out, w->blocks[b].step_end);
            if (last->label != NONE) join(w, out, body->labels[last->label]);
            for (uint32_t i = 0; last->scatters && i < body->label_count; ++i)
                join(w, out, body->labels[i]);
            for (uint32_t k = 0; k < w->words; ++k) {
                uint64_t in = w->reads[base + k] | (out[k] & ~w->kills[base + k]);
                changed |= in != w->in[base + k];
                w->in[base + k] = in;
            }
        }
    }
}

/* Spans come from the end of the text to its beginning. */
static bool add_span(struct work *w, uint32_t reg, uint32_t begin, uint32_t end)
{
    uint32_t head = w->spans_of[reg];
    if (head != NONE && w->spans[head].begin == end) {
        w->spans[head].begin = begin;
        return true;
    }
    if (w->span_count == w->span_room) {
        size_t room = w->span_room * 2 + 64;
        struct span *more = realloc(w->spans, room * sizeof *more);
        if (!more) return false;
        w->spans = more;
        w->span_room = room;
    }
    w->spans[w->span_count] = (struct span){begin, end, head};
    w->spans_of[reg] = (uint32_t)w->span_count++;
    return true;
}

static bool draw_step(struct work *w, uint32_t i)
{
    const struct ptx_body *body = w->body;
    const struct ptx_step *s = &body->steps[i];
    for (uint32_t u = s->use; u < s->use_end; ++u) {
        uint32_t reg = body->uses[u].reg;
        if (body->uses[u].access != PTX_WRITES) continue;
        if (!add_span(w, reg, 2 * i + 1, w->open[reg] ? w->open[reg] : 2 * i + 2)) return false;
        w->open[reg] = 0;
    }
    for (uint32_t u = s->use; u < s->use_end; ++u) {
        uint32_t reg = body->uses[u].reg;
        if (body->uses[u].access & PTX_READS && !w->open[reg]) w->open[reg] = 2 * i + 1;
    }
    return true;
}

static bool draw_spans(struct work *w)
{
    const struct ptx_body *body = w->body;
    uint32_t regs = body->reg_count + 1;
    w->open = calloc(regs, sizeof *w->open);
    w->spans_of = malloc(regs * sizeof *w->spans_of);
    w->span_room = 2ull * regs;
    w->spans = calloc(w->span_room, sizeof *w->spans);
    if (!w->open || !w->spans_of || !w->spans) return false;
    memset(w->spans_of, 0xff, regs * sizeof *w->spans_of);
    for (uint32_t b = w->block_count; b-- > 0;) {
        const uint64_t *in = w->in + (size_t)w->words * b, *out = w->out + (size_t)w->words * b;
        for (uint32_t g = 0; g < w->global_count; ++g) {
            if (!out[g / 64]) g |= 63;
            else if (has(out, g)) w->open[w->reg_of[g]] = 2 * w->blocks[b].step_end;
        }
        for (uint32_t i = w->blocks[b].step_end; i-- > w->blocks[b].step;)
            if (!draw_step(w, i)) return false;
        for (uint32_t g = 0; g < w->global_count; ++g) {
            if (!in[g / 64]) g |= 63;
            else if (has(in, g)) {
                uint32_t reg = w->reg_of[g];
                if (!add_span(w, reg, 2 * w->blocks[b].step, w->open[reg])) return false;
                w->open[reg] = 0;
            }
        }
    }
    for (uint32_t reg = 0; reg < body->reg_count; ++reg)
        if (body->pinned[reg]) {
            w->spans_of[reg] = NONE;
            if (!add_span(w, reg, 0, 2 * body->step_count + 2)) return false;
        }
    return true;
}

/* The span after which to look for those that meet spans from `begin` on. */
static uint32_t *from(struct work *w, struct name *name, uint32_t begin)
{
    if (name->near == NONE || w->spans[name->near].end > begin) {
        if (name->head == NONE || w->spans[name->head].end > begin) return &name->head;
        name->near = name->head;
    }
    for (;;) {
        uint32_t next = w->spans[name->near].next;
        if (next == NONE || w->spans[next].end > begin) return &w->spans[name->near].next;
        name->near = next;
    }
}

static bool fits(struct work *w, struct name *name, uint32_t reg)
{
    uint32_t wanted = w->spans_of[reg];
    uint32_t taken = *from(w, name, w->spans[wanted].begin);
    while (taken != NONE && wanted != NONE) {
        if (w->spans[taken].end <= w->spans[wanted].begin) taken = w->spans[taken].next;
        else if (w->spans[wanted].end <= w->spans[taken].begin) wanted = w->spans[wanted].next;
        else return false;
    }
    return true;
}

static void take(struct work *w, struct name *name, uint32_t reg)
{
    uint32_t mine = w->spans_of[reg];
    uint32_t *link = from(w, name, w->spans[mine].begin);
    while (mine != NONE) {
        while (*link != NONE && w->spans[*link].begin < w->spans[mine].begin)
            link = &w->spans[*link].next;
        uint32_t rest = w->spans[mine].next;
        w->spans[mine].next = *link;
        *link = mine;
        link = &w->spans[mine].next;
        mine = rest;
    }
}

/* Registers that live for long are named apart, so that they leave the names of short lives, and
 * with them the text of equal code, as they are elsewhere. A register that is written in several
 * places and lives across blocks begins a name: where two of them shared one, machine code would
 * differ more often. */
static void choose(struct work *w, uint32_t reg)
{
    struct ptx_body *body = w->body;
    uint32_t life = 0, name = 0;
    for (uint32_t i = w->spans_of[reg]; i != NONE; i = w->spans[i].next)
        life += w->spans[i].end - w->spans[i].begin;
    uint32_t class = body->class_of[reg];
    uint32_t pool = 2 * class + (life > SHORT_LIFE && !body->one_pool[class]);
    struct name *names = w->names + (size_t)pool * body->reg_count;
    uint32_t *count = &body->name_counts[pool];
    if (w->global[reg] != NONE && w->writes[reg] > 1) name = *count;
    while (name < *count && !fits(w, &names[name], reg)) ++name;
    if (name == *count) names[(*count)++] = (struct name){NONE, NONE};
    take(w, &names[name], reg);
    body->names[reg] = 2 * name + pool % 2;
}

bool wd_ptx_name_registers(struct ptx_body *body)
{
    struct work w = {.body = body};
    bool done = false;
    memset(body->names, 0xff, body->reg_count * sizeof *body->names);
    memset(body->name_counts, 0, sizeof body->name_counts);
    if (!find_blocks(&w) || !find_globals(&w) || !fill_sets(&w)) goto end;
    flow(&w);
    if (!draw_spans(&w)) goto end;
    w.names = calloc(2ull * body->class_count * body->reg_count + 1, sizeof *w.names);
    w.writes = calloc(body->reg_count + 1, sizeof *w.writes);
    if (!w.names || !w.writes) goto end;
    for (uint32_t u = 0; u < body->use_count; ++u)
        w.writes[body->uses[u].reg] += body->uses[u].access >> 1 & 1;
    for (uint32_t u = 0; u < body->use_count; ++u)
        if (body->names[body->uses[u].reg] == NONE) choose(&w, body->uses[u].reg);
    done = true;
end:
    free(w.blocks);
    free(w.block_at);
    free(w.global);
    free(w.reg_of);
    free(w.reads);
    free(w.kills);
    free(w.in);
    free(w.out);
    free(w.open);
    free(w.spans_of);
    free(w.spans);
    free(w.names);
    free(w.writes);
    return done;
}
