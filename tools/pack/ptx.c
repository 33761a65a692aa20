/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a PTX module: its tokens, what names mean, and the text anew. What is not known for
 * sure is refused, and the registers of an unknown instruction share with none. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ptx.h"
#include "ptx_opcodes.h"
#include "ptx_registers.h"
#include "ptx_tokens.h"

#define NONE UINT32_MAX

struct symbol { /* a name of the text that gets a new one */
    const char *text;
    uint32_t length, hash;
    uint32_t scope;  /* 0: the module */
    uint32_t number; /* of the new name, NONE before it is met */
    uint32_t label;  /* NONE: not a label */
    bool kept;       /* has no new name */
};

struct reg_class {
    const char *text, *spelling; /* %NAME, and what it becomes */
    uint32_t length, spelling_length;
    uint32_t first, count; /* registers */
    uint32_t token;        /* where it is declared */
};

struct shadow {
    const char *text;
    uint32_t length, number, depth;
};

enum { SYMBOLS = 1 << 15, SHADOWS = 64 };

struct module {
    const char *why;
    struct ptx_token *tokens;
    uint32_t count;
    struct symbol *symbols[2]; /* of the module, of the function at hand: open addressing */
    uint32_t symbol_count[2];
    uint32_t scope;
    uint32_t globals, locals, label_names; /* new names given */
    struct reg_class classes[PTX_CLASSES]; /* of the function, as all that follows */
    struct shadow shadows[SHADOWS];
    uint32_t shadow_count;
    struct ptx_body body;
    uint32_t step_room, use_room, label_room, class_room, pin_room, name_room;
};

static bool refuse(struct module *m, const char *why)
{
    if (!m->why) m->why = why;
    return false;
}

/* Room for one more than `count` in the array that `array` points at. */
static bool grow(struct module *m, void *array, uint32_t count, uint32_t *room, size_t size)
{
    void *more;
    if (count < *room) return true;
    memcpy(&more, array, sizeof more);
    more = realloc(more, (count * 2ull + 256) * size);
    if (!more) return refuse(m, "out of memory");
    memcpy(array, &more, sizeof more);
    *room = count * 2 + 256;
    return true;
}

/* ---- names ---- */

static struct symbol *find(struct module *m, bool local, const struct ptx_token *t)
{
    uint32_t hash = wd_ptx_hash(t), scope = local ? m->scope : 0;
    for (uint32_t i = hash;; ++i) {
        struct symbol *s = &m->symbols[local][i % SYMBOLS];
        if (!s->text || s->scope != scope) { /* free, or of a function before */
            *s = (struct symbol){NULL, t->length, hash, scope, NONE, NONE, false};
            return s;
        }
        if (s->hash == hash && s->length == t->length && !memcmp(s->text, t->text, t->length))
            return s;
    }
}

static struct symbol *add_symbol(struct module *m, bool local, const struct ptx_token *t)
{
    struct symbol *s = find(m, local, t);
    if (local && find(m, false, t)->text)
        refuse(m, "a name that is both of the module and of a function");
    if (!s->text && ++m->symbol_count[local] > SYMBOLS / 2) {
        refuse(m, "too many names");
        return NULL;
    }
    s->text = t->text;
    return m->why ? NULL : s;
}

static void rename_word(struct module *m, bool local, struct ptx_token *t)
{
    struct symbol *s = NULL;
    if (!ptx_name(t)) return;
    if (local) s = find(m, true, t);
    if (!s || !s->text) s = find(m, false, t);
    if (!s->text || s->kept) return;
    bool label = s->label != NONE;
    uint32_t *next = label ? &m->label_names : s->scope ? &m->locals : &m->globals;
    if (s->number == NONE) s->number = (*next)++;
    t->kind = PTX_NUMBERED;
    t->text = label ? "$" : s->scope ? "_" : "_f";
    t->length = s->scope ? 1 : 2;
    t->number = s->number;
}

/* ---- statements of the module ---- */

/* The end of the statement at `i`: after its semicolon, or at the brace that opens a body. */
static uint32_t statement_end(struct module *m, uint32_t i, bool *function)
{
    const struct ptx_token *t = m->tokens;
    int depth = 0;
    *function = false;
    if (ptx_is(&t[i], ".version") || ptx_is(&t[i], ".target") || ptx_is(&t[i], ".address_size")) {
        do ++i;
        while (!t[i].first);
        return i;
    }
    for (; i < m->count; ++i) {
        if (ptx_is(&t[i], ".func") || ptx_is(&t[i], ".entry")) *function = true;
        if (ptx_is(&t[i], ".section") || ptx_is(&t[i], ".file") || ptx_is(&t[i], ".loc") ||
            ptx_mark(&t[i], '@'))
            break;
        if (ptx_mark(&t[i], ';') && depth == 0) return i + 1;
        if (ptx_mark(&t[i], '{') && *function) return i;
        depth += ptx_mark(&t[i], '{') - ptx_mark(&t[i], '}');
        if (depth < 0) break;
    }
    refuse(m, "a statement of the module that is not understood");
    return m->count;
}

static uint32_t body_end(struct module *m, uint32_t i)
{
    for (int depth = 0; i < m->count; ++i) {
        depth += ptx_mark(&m->tokens[i], '{') - ptx_mark(&m->tokens[i], '}');
        if (depth == 0) return i + 1;
    }
    refuse(m, "a body without end");
    return m->count;
}

/* The name that a statement declares; the parameters of a function get names of its own scope. */
static uint32_t declared(struct module *m, uint32_t i, uint32_t end, bool function)
{
    int depth = 0;
    bool after = !function;
    uint32_t found = NONE;
    for (; i < end; ++i) {
        const struct ptx_token *t = &m->tokens[i];
        after |= ptx_is(t, ".func") || ptx_is(t, ".entry");
        depth += ptx_mark(t, '(') - ptx_mark(t, ')');
        if (ptx_mark(t, '=')) break;
        if (!ptx_name(t) || !after) continue;
        if (depth == 0 && found == NONE) found = i;
        if (depth == 0 || !function || !m->scope || ptx_is(t, "_")) continue;
        if (*t->text == '%') refuse(m, "a register as a parameter");
        add_symbol(m, true, t);
    }
    return found;
}

static bool collect_globals(struct module *m)
{
    bool function;
    for (uint32_t i = 0, end; i < m->count; i = end) {
        end = statement_end(m, i, &function);
        bool kept = false, external = false, variable = false;
        for (uint32_t k = i; k < end; ++k) {
            const struct ptx_token *t = &m->tokens[k];
            kept |= ptx_is(t, ".visible") || ptx_is(t, ".weak") || ptx_is(t, ".common") ||
                    ptx_is(t, ".entry");
            external |= ptx_is(t, ".extern");
            variable |= ptx_is(t, ".shared") || ptx_is(t, ".global") || ptx_is(t, ".const");
        }
        uint32_t k = function || variable ? declared(m, i, end, function) : NONE;
        if (k != NONE) {
            struct symbol *s = add_symbol(m, false, &m->tokens[k]);
            if (!s) return false;
            /* NAME[] is the shared memory that a launch asks for: of no other module */
            bool own = ptx_mark(&m->tokens[k + 1], '[') && ptx_mark(&m->tokens[k + 2], ']');
            s->kept |= kept || (external && !own);
        }
        if (function && ptx_mark(&m->tokens[end], '{')) end = body_end(m, end);
        if (m->why) return false;
    }
    return true;
}

/* A register of an inner scope whose name could be one of a class gets another name. */
static bool shadowed(struct module *m, struct ptx_token *t)
{
    for (uint32_t i = m->shadow_count; i-- > 0;) {
        const struct shadow *s = &m->shadows[i];
        if (t->length != s->length || memcmp(t->text, s->text, t->length)) continue;
        t->kind = PTX_NUMBERED;
        t->text = "_";
        t->length = 1;
        t->number = s->number;
        return true;
    }
    return false;
}

/* Those that a .reg statement declares. */
static void shadow(struct module *m, uint32_t i, uint32_t end, uint32_t depth)
{
    for (; i < end; ++i) {
        struct ptx_token *t = &m->tokens[i];
        if (*t->text != '%' || !ptx_digit(t->text[t->length - 1])) continue;
        if (m->shadow_count < SHADOWS)
            m->shadows[m->shadow_count++] = (struct shadow){t->text, t->length, m->locals++, depth};
        if (!shadowed(m, t)) refuse(m, "too many registers of inner scopes");
    }
}

/* The register that a word names, or NONE. */
static uint32_t reg_of(struct module *m, struct ptx_token *t)
{
    uint32_t length = t->length, number = 0;
    if (t->kind != PTX_WORD || *t->text != '%' || shadowed(m, t)) return NONE;
    while (length > 0 && ptx_digit(t->text[length - 1])) --length;
    for (uint32_t c = 0; c < m->body.class_count; ++c) {
        const struct reg_class *k = &m->classes[c];
        if (length != k->length || memcmp(k->text, t->text, length)) continue;
        for (uint32_t i = length; i < t->length && i < length + 8; ++i)
            number = number * 10 + (uint32_t)(t->text[i] - '0');
        if (length < t->length && t->length - length < 8 && number < k->count &&
            (t->text[length] != '0' || t->length == length + 1))
            return k->first + number;
        refuse(m, "a register that is not understood");
    }
    return NONE;
}

static void use(struct module *m, uint32_t token, uint32_t access)
{
    uint32_t reg = reg_of(m, &m->tokens[token]);
    if (reg == NONE ||
        !grow(m, &m->body.uses, m->body.use_count, &m->use_room, sizeof *m->body.uses))
        return;
    m->body.uses[m->body.use_count++] = (struct ptx_use){token, reg, access};
    if (access == PTX_PINNED) m->body.pinned[reg] = true;
}

static bool add_step(struct module *m, uint32_t i, uint32_t end)
{
    struct ptx_body *body = &m->body;
    struct ptx_token *t = m->tokens;
    struct ptx_step step = {.use = body->use_count, .label = NONE, .falls = true};
    bool guarded = ptx_mark(&t[i], '@');
    if (!grow(m, &body->steps, body->step_count, &m->step_room, sizeof *body->steps)) return false;
    if (guarded) {
        i += ptx_mark(&t[i + 1], '!') ? 2 : 1;
        if (reg_of(m, &t[i]) == NONE && !ptx_name(&t[i]))
            return refuse(m, "a guard that is not understood");
        use(m, i++, PTX_READS);
    }
    struct ptx_token *op = &t[i++];
    if (!ptx_name(op) || *op->text == '%')
        return refuse(m, "an instruction that is not understood");
    op->kind = PTX_STRING; /* never renamed, even where a function is called like it */
    unsigned kind = wd_ptx_opcode(op);
    uint32_t written = i + (kind & PTX_FIRST_WRITTEN ? wd_ptx_written(&t[i]) : 0);
    for (; i < end; ++i)
        use(m, i,
            !(kind & PTX_KNOWN) ? PTX_PINNED
            : i >= written      ? PTX_READS
            : guarded           ? PTX_BOTH
                                : PTX_WRITES);
    step.falls = guarded || !(kind & PTX_LEAVES);
    step.scatters = (kind & PTX_SCATTERS) != 0;
    if (kind & PTX_JUMPS) {
        struct symbol *s = ptx_name(&t[end - 2]) ? find(m, true, &t[end - 2]) : NULL;
        if (!s || !s->text || s->label == NONE) return refuse(m, "a branch to no label");
        step.label = s->label;
    }
    step.use_end = body->use_count;
    body->steps[body->step_count++] = step;
    return !m->why;
}

/* %NAME<COUNT> at `i`. Names of one letter have a twin for long lives: it in upper case. */
static bool add_class(struct module *m, uint32_t i)
{
    static const char *const shorter[][2] = {{"%rs", "%h"}, {"%rd", "%d"}, {"%fd", "%e"}};
    struct ptx_body *body = &m->body;
    const struct ptx_token *t = &m->tokens[i], *many = t + 2;
    struct reg_class k = {t->text, t->text, t->length, t->length, body->reg_count, 0, i};
    for (int j = 0; j < 3; ++j) {
        if (ptx_is(t, shorter[j][1])) return refuse(m, "registers called as others will be");
        if (!ptx_is(t, shorter[j][0])) continue;
        k.spelling = shorter[j][1];
        k.spelling_length = 2;
    }
    char last = t->text[t->length - 1];
    if (ptx_digit(last) || (last >= 'A' && last <= 'Z') || body->class_count == PTX_CLASSES)
        return refuse(m, "a class of registers that is not understood");
    for (uint32_t j = 0; j < many->length && ptx_digit(many->text[j]) && j < 7; ++j)
        k.count = k.count * 10 + (uint32_t)(many->text[j] - '0');
    body->reg_count += k.count;
    body->one_pool[body->class_count] = k.spelling_length != 2;
    m->classes[body->class_count++] = k;
    return true;
}

/* .reg .TYPE NAME, ... or .reg .TYPE %NAME<COUNT>, ...; the latter gets new names. */
static bool declare_registers(struct module *m, uint32_t i, uint32_t end, int depth)
{
    const struct ptx_token *t = m->tokens;
    uint32_t begin = i;
    for (i += 2; i < end; i += 1) {
        if (!ptx_name(&t[i])) return refuse(m, "a declaration of registers that is not understood");
        bool many = ptx_mark(&t[i + 1], '<');
        if (many && *t[i].text == '%') {
            if (depth != 1 || i != begin + 2 || end != i + 5)
                return refuse(m, "a declaration of many registers that is not understood");
            if (!add_class(m, i)) return false;
        }
        i += many ? 4 : 1;
    }
    return true;
}

enum { OPEN, CLOSE, LABEL, EMPTY, DIRECTIVE, INSTRUCTION };

/* The kind of the statement at `i` of a body, and its end. */
static int statement(struct module *m, uint32_t i, uint32_t *end)
{
    struct ptx_token *t = m->tokens;
    *end = i + 1;
    if (ptx_mark(&t[i], '{')) return OPEN;
    if (ptx_mark(&t[i], '}')) return CLOSE;
    if (ptx_mark(&t[i], ';')) return EMPTY;
    *end = i + 2;
    if (ptx_name(&t[i]) && ptx_mark(&t[i + 1], ':')) return LABEL;
    int kind = t[i].kind == PTX_WORD && *t[i].text == '.' ? DIRECTIVE : INSTRUCTION;
    if (ptx_is(&t[i], ".loc") || ptx_is(&t[i], ".section") || ptx_is(&t[i], ".file"))
        refuse(m, "debug information");
    for (int depth = 0; i < m->count && !ptx_mark(&t[i], ';') && depth >= 0; ++i)
        depth += ptx_mark(&t[i], '{') - ptx_mark(&t[i], '}');
    if (!ptx_mark(&t[i], ';')) refuse(m, "a statement without end");
    *end = i + 1;
    return kind;
}

/* Everything that the body declares. */
static bool declare(struct module *m, uint32_t i, uint32_t body_end)
{
    struct ptx_token *t = m->tokens;
    int depth = 0;
    for (uint32_t end; i < body_end && !m->why; i = end) {
        int kind = statement(m, i, &end);
        depth += (kind == OPEN) - (kind == CLOSE);
        if (kind == LABEL) {
            struct symbol *s = add_symbol(m, true, &t[i]);
            if (!s || s->label != NONE) return refuse(m, "a label twice");
            s->label = m->body.label_count++;
        } else if (kind == DIRECTIVE && ptx_is(&t[i], ".reg")) {
            if (!declare_registers(m, i, end, depth)) return false;
        } else if (kind == DIRECTIVE && (ptx_is(&t[i], ".local") || ptx_is(&t[i], ".shared"))) {
            uint32_t k = declared(m, i, end, false);
            if (k != NONE) add_symbol(m, true, &t[k]);
        }
    }
    return !m->why;
}

static bool read_body(struct module *m, uint32_t i, uint32_t body_end)
{
    uint32_t label = 0, depth = 0;
    m->shadow_count = 0;
    for (uint32_t end; i < body_end; i = end) {
        int kind = statement(m, i, &end);
        depth += (kind == OPEN) - (kind == CLOSE);
        while (m->shadow_count && m->shadows[m->shadow_count - 1].depth > depth) --m->shadow_count;
        if (kind == DIRECTIVE && ptx_is(&m->tokens[i], ".reg")) shadow(m, i, end, depth);
        if (kind == LABEL) m->body.labels[label++] = m->body.step_count;
        if (kind == LABEL || kind == CLOSE) m->tokens[end - 1].ends = true;
        if (kind == INSTRUCTION && !add_step(m, i, end)) return false;
        for (uint32_t k = i; kind == DIRECTIVE && k < end && !ptx_is(&m->tokens[i], ".reg"); ++k)
            if (reg_of(m, &m->tokens[k]) != NONE)
                return refuse(m, "a directive that names a register");
        if (m->why) return false;
    }
    return true;
}

static void rename_registers(struct module *m)
{
    struct ptx_body *body = &m->body;
    for (uint32_t u = 0; u < body->use_count; ++u) {
        struct ptx_token *t = &m->tokens[body->uses[u].token];
        const struct reg_class *k = &m->classes[body->class_of[body->uses[u].reg]];
        uint32_t name = body->names[body->uses[u].reg];
        t->kind = name % 2 ? PTX_LONG : PTX_NUMBERED;
        t->text = k->spelling;
        t->length = k->spelling_length;
        t->number = name / 2;
    }
    for (uint32_t c = 0; c < body->class_count; ++c) { /* .reg .TYPE %NAME < COUNT > ; */
        struct ptx_token *t = &m->tokens[m->classes[c].token];
        t->kind = PTX_DECLARED;
        t->text = m->classes[c].spelling;
        t->length = m->classes[c].spelling_length;
        t->number = body->name_counts[2 * c];
        t->long_number = body->name_counts[2 * c + 1];
        for (int i = 1; i < 4; ++i) t[i].kind = PTX_DROPPED;
        for (int i = -2; i < 5 && !t->number && !t->long_number; ++i) t[i].kind = PTX_DROPPED;
    }
}

/* The registers of a body of which everything is declared. */
static bool name_registers(struct module *m, uint32_t begin, uint32_t end)
{
    struct ptx_body *body = &m->body;
    if (body->reg_count > 1u << 22) return refuse(m, "too many registers");
    if (!grow(m, &body->labels, body->label_count, &m->label_room, sizeof *body->labels) ||
        !grow(m, &body->class_of, body->reg_count, &m->class_room, sizeof *body->class_of) ||
        !grow(m, &body->pinned, body->reg_count, &m->pin_room, sizeof *body->pinned) ||
        !grow(m, &body->names, body->reg_count, &m->name_room, sizeof *body->names))
        return false;
    memset(body->pinned, 0, body->reg_count * sizeof *body->pinned);
    for (uint32_t c = 0; c < body->class_count; ++c)
        memset(body->class_of + m->classes[c].first, (int)c, m->classes[c].count);
    if (!read_body(m, begin, end)) return false;
    if (!wd_ptx_name_registers(body)) return refuse(m, "out of memory");
    rename_registers(m);
    return true;
}

/* A function from its first token; its body, braces and all, is begin .. end - 1, or empty. */
static bool rename_function(struct module *m, uint32_t first, uint32_t begin, uint32_t end)
{
    struct ptx_body *body = &m->body;
    body->step_count = body->use_count = body->label_count = 0;
    body->reg_count = body->class_count = 0;
    m->locals = m->label_names = m->symbol_count[1] = 0;
    ++m->scope;
    declared(m, first, begin, true);
    if (!declare(m, begin, end)) return false;
    if (begin < end && !name_registers(m, begin, end)) return false;
    for (uint32_t i = first; i < end; ++i) rename_word(m, true, &m->tokens[i]);
    return !m->why;
}

static bool rename_module(struct module *m)
{
    bool function;
    if (!collect_globals(m)) return false;
    for (uint32_t i = 0, begin, end; i < m->count; i = end) {
        end = begin = statement_end(m, i, &function);
        if (function) {
            if (ptx_mark(&m->tokens[begin], '{')) end = body_end(m, begin);
            if (!rename_function(m, i, begin, end)) return false;
        } else {
            for (uint32_t k = i; k < end; ++k) rename_word(m, false, &m->tokens[k]);
            m->tokens[end - 1].ends = true;
        }
    }
    return true;
}

char *wd_ptx_shrink(const char *text, size_t length, size_t *shrunk, const char **why)
{
    struct module m = {0};
    char *result = NULL;
    while (length > 0 && !text[length - 1]) --length;
    m.symbols[0] = calloc(SYMBOLS, sizeof *m.symbols[0]);
    m.symbols[1] = calloc(SYMBOLS, sizeof *m.symbols[1]);
    if (!m.symbols[0] || !m.symbols[1]) refuse(&m, "out of memory");
    else if (length > UINT32_MAX / 8) refuse(&m, "too long a text");
    else {
        m.tokens = wd_ptx_read(text, length, &m.count, &m.why);
        if (m.tokens && rename_module(&m)) {
            result = wd_ptx_write(m.tokens, m.count, shrunk);
            if (!result) refuse(&m, "out of memory");
        }
    }
    *why = m.why;
    void *const arrays[] = {m.body.steps,    m.body.uses,   m.body.labels,
                            m.body.class_of, m.body.pinned, m.body.names,
                            m.tokens,        m.symbols[0],  m.symbols[1]};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; ++i) free(arrays[i]);
    return result;
}
