/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX text made smaller: what becomes of names and blanks, what is refused, and that registers which
 * are live together never share a name. The last is checked by walks: random ones along the control
 * flow, over the text before and after, in which each register remembers the instruction that wrote
 * it; every read must find the same writer under both names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/pack/ptx.h"

static char *shrink(const char *text)
{
    const char *why = "?";
    size_t size = strlen(text), length = 0;
    char *copy = malloc(size); /* exact, so that reading on is found */
    for (size_t i = 0; i < size; ++i) copy[i] = text[i];
    char *result = wd_ptx_shrink(copy, size, &length, &why);
    free(copy);
    if (!result) fail_msg("refused: %s", why);
    assert_null(why);
    assert_int_equal(strlen(result), length);
    return result;
}

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static void expect(const char *text, const char *wanted)
{
    char *result = shrink(text);
    assert_string_equal(result, wanted);
    free(result);
}

static void refused(const char *text, const char *wanted)
{
    const char *why = NULL;
    size_t length = 0;
    char *result = wd_ptx_shrink(text, strlen(text), &length, &why);
    if (result) fail_msg("not refused:\n%s", result);
    assert_non_null(why);
    if (!strstr(why, wanted)) fail_msg("refused for '%s', not '%s'", why, wanted);
}

static void test_blanks_and_names(void **state)
{
    (void)state;
    expect("// a comment\n" HEAD "\n\n/* two\nlines */ .extern .shared .align 16 .b8 bytes[];\n"
           ".visible .global .align 4 .u32 seen = 5; // kept\n"
           ".func  (.param .b32 out) inner ( .param .b32 in )\n;\n"
           ".visible .entry wd_kernel(\n\t.param .u64 wd_kernel_param_0,\n\t.param .u32 "
           "wd_kernel_param_1\n)\n.maxntid 128, 1, 1\n{\n\t.reg .b64 \t%rd<9>;\n\n"
           "\tld.param.u64 \t%rd7, [wd_kernel_param_0+8];\r\n\tmov.u64 %rd3, bytes;\n"
           "\tst.u64 [%rd7], %rd3;\n\tmov.u64 %rd8, seen;\n\tst.u64 [%rd7+-16], %rd8;\n\tret;\n}\n",
           HEAD
           ".extern .shared .align 16 .b8 _f0[];\n.visible .global .align 4 .u32 seen=5;\n"
           ".func(.param .b32 _0)_f1(.param .b32 _1);\n"
           ".visible .entry wd_kernel(.param .u64 _0,.param .u32 _1).maxntid 128,1,1{.reg .b64 "
           "%d<2>;\nld.param.u64 %d0,[_0+8];\nmov.u64 %d1,_f0;\nst.u64[%d0],%d1;\n"
           "mov.u64 %d1,seen;\nst.u64[%d0+-16],%d1;\nret;\n}\n");
}

static void test_predicated_writes_keep(void **state)
{
    (void)state;
    /* %r2 is written under a predicate: its first value lives on, past the last use of %r1 */
    expect(HEAD ".entry wd_k(){.reg .b32 %r<9>;.reg .pred %p<3>;"
                "mov.u32 %r1,1;mov.u32 %r2,2;setp.eq.s32 %p1,%r1,5;@%p1 mov.u32 %r2,%r1;"
                "mov.u32 %r5,7;add.s32 %r6,%r2,%r5;ret;}",
           HEAD ".entry wd_k(){.reg .b32 %r<2>;\n.reg .pred %p<1>;\n"
                "mov.u32 %r0,1;\nmov.u32 %r1,2;\nsetp.eq.s32 %p0,%r0,5;\n@%p0 mov.u32 %r1,%r0;\n"
                "mov.u32 %r0,7;\nadd.s32 %r0,%r1,%r0;\nret;\n}\n");
}

static void test_several_written(void **state)
{
    (void)state;
    /* all that one instruction writes is distinct, used or not; it may write what it reads */
    expect(
        HEAD ".entry wd_k(){.reg .b32 %r<9>;.reg .b64 %rd<5>;.reg .pred %p<5>;"
             "mov.u64 %rd1,8;ld.v4.u32 {%r1,%r2,_,%r3},[%rd1];"
             "shfl.sync.bfly.b32 %r4|%p1,%r3,1,31,-1;setp.eq.and.s32 %p2|%p3,%r4,1,%p1;ret;}",
        HEAD
        ".entry wd_k(){.reg .b32 %r<3>;\n.reg .b64 %d<1>;\n.reg .pred %p<2>;\n"
        "mov.u64 %d0,8;\nld.v4.u32{%r0,%r1,_,%r2},[%d0];\n"
        "shfl.sync.bfly.b32 %r0|%p0,%r2,1,31,-1;\nsetp.eq.and.s32 %p0|%p1,%r0,1,%p0;\nret;\n}\n");
}

static void test_loop_keeps(void **state)
{
    (void)state;
    /* %r1 is read at the head of the loop: it lives through all of it; %r3 and %r4 may share */
    expect(HEAD ".entry wd_k(){.reg .b32 %r<9>;.reg .pred %p<5>;mov.u32 %r1,9;mov.u32 %r2,0;\n"
                "$L__BB0_1:add.s32 %r3,%r1,1;add.s32 %r2,%r2,%r3;mov.u32 %r4,3;"
                "setp.lt.s32 %p1,%r2,%r4;@%p1 bra $L__BB0_1;bra.uni $L__BB0_2;$L__BB0_2:ret;}",
           HEAD
           ".entry wd_k(){.reg .b32 %r<3>;\n.reg .pred %p<1>;\nmov.u32 %r0,9;\nmov.u32 %r1,0;\n"
           "$0:\nadd.s32 %r2,%r0,1;\nadd.s32 %r1,%r1,%r2;\nmov.u32 %r2,3;\n"
           "setp.lt.s32 %p0,%r1,%r2;\n@%p0 bra $0;\nbra.uni $1;\n$1:\nret;\n}\n");
}

static void test_scopes(void **state)
{
    (void)state;
    /* registers of inner scopes are theirs, even under the name of one of a class */
    expect(HEAD ".entry wd_k(){.reg .b32 %r<9>;.reg .b16 %rs<4>;mov.u32 %r7,5;"
                "{.reg .b32 %r0,%r1,%tmp;\nmov.u32 %r0,%r7;mov.b32 {%tmp,%rs3},%r7;add.u32 "
                "%r1,%r0,%r7;}mov.u32 %r1,%r7;st.u32 [%r1],%r1;ret;}",
           HEAD ".entry wd_k(){.reg .b32 %r<1>;\n.reg .b16 %h<1>;\nmov.u32 %r0,5;\n"
                "{.reg .b32 _0,_1,%tmp;\nmov.u32 _0,%r0;\nmov.b32{%tmp,%h0},%r0;\nadd.u32 "
                "_1,_0,%r0;\n}\nmov.u32 %r0,%r0;\nst.u32[%r0],%r0;\nret;\n}\n");
}

static void test_unknown_keeps_its_registers(void **state)
{
    (void)state;
    /* what an unknown instruction names may be read or written later: it is nobody else's */
    expect(HEAD ".entry wd_k(){.reg .b32 %r<9>;mov.u32 %r1,5;st.u32 [%r1],1;mov.u32 %r2,7;"
                "strange.async %r2,{%r3};mov.u32 %r4,1;st.u32 [%r4],1;ret;}",
           HEAD ".entry wd_k(){.reg .b32 %r<3>;\nmov.u32 %r0,5;\nst.u32[%r0],1;\nmov.u32 %r1,7;\n"
                "strange.async %r1,{%r2};\nmov.u32 %r0,1;\nst.u32[%r0],1;\nret;\n}\n");
}

static void test_functions_apart(void **state)
{
    (void)state;
    /* labels and parameters begin anew; internal functions keep one name wherever they are called */
    expect(
        HEAD ".func ret1(.param .b32 ret1_param_0){.reg .b32 %r<5>;bra $L__BB0_3;$L__BB0_3:ld.param"
             ".b32 %r4,[ret1_param_0];ret;}.entry wd_k(.param .b32 a){.reg .b32 %r<5>;"
             "bra $L__BB1_7;$L__BB1_7:{.param .b32 param0;ld.param.b32 %r2,[a];st.param.b32 "
             "[param0],%r2;call.uni ret1,(param0);}ret;}",
        HEAD
        ".func _f0(.param .b32 _0){.reg .b32 %r<1>;\nbra $0;\n$0:\nld.param.b32 %r0,[_0];\nret;\n"
        "}\n.entry wd_k(.param .b32 _0){.reg .b32 %r<1>;\nbra $0;\n$0:\n{.param .b32 "
        "param0;\nld.param.b32 %r0,[_0];\nst.param.b32[param0],%r0;\ncall.uni "
        "_f0,(param0);\n}\nret;\n}\n");
}

static void test_refusals(void **state)
{
    (void)state;
    refused(HEAD ".entry wd_k(){.reg .b32 %r<5>;mov.u32 %r1,1;", "body without end");
    refused(HEAD ".entry wd_k(", "not understood");
    refused(HEAD "/* no end", "comment");
    refused(HEAD ".entry wd_k(){.pragma \"no end;\n}", "string");
    refused(HEAD ".entry wd_k(){mov.u32 %r1,1}", "statement without end");
    refused(HEAD ".entry wd_k(){.reg .b32 %r<5>;mov.u32 %r5,1;}", "register");
    refused(HEAD ".entry wd_k(){.reg .b32 %r<5>;mov.u32 %r01,1;}", "register");
    refused(HEAD ".entry wd_k(){.reg .v4 .b32 %r<5>;}", "declaration of registers");
    refused(HEAD ".entry wd_k(){{.reg .b32 %r<5>;}}", "many registers");
    refused(HEAD ".entry wd_k(){.reg .b32 %R<5>;}", "class of registers");
    refused(HEAD ".entry wd_k(){.reg .b16 %h<5>;}", "called as others");
    refused(HEAD ".entry wd_k(){bra $L1x;}", "branch");
    refused(HEAD ".entry wd_k(){a:b:a:ret;}", "label twice");
    refused(HEAD ".entry wd_k(){$0:ret;}", "form that new ones get");
    refused(HEAD ".entry wd_k(){.loc 1 2 3\nret;}", "debug");
    refused(HEAD ".func f(){}.entry wd_k(.param .b32 f){}", "both");
    refused(HEAD "}", "not understood");
    refused("\x01", "character");
}

static void test_any_beginning(void **state)
{
    (void)state;
    static const char text[] =
        HEAD ".func (.param .b32 o) f(.param .b32 i);.entry wd_k(.param .b32 a[4]){.reg .b32 %r<9>;"
             ".reg .pred %p<3>;// x\nL1:{.reg .b16 %r3;mov.b32 {%r3,_},%r1;}@!%p1 bra L1;/*y*/"
             ".pragma \"nounroll\";st.v2.u32 [%r1+-4],{%r2,_};call.uni (o),f,(a);ret;}";
    for (size_t length = 0; length < sizeof text; ++length) {
        const char *why = NULL;
        size_t shrunk;
        char *copy = malloc(length + 1);
        memcpy(copy, text, length);
        for (int k = 0; k < 64; ++k) { /* as it is, then with one character changed */
            char *result = wd_ptx_shrink(copy, length, &shrunk, &why);
            assert_true(!result == !!why);
            free(result);
            memcpy(copy, text, length);
            if (length) copy[(size_t)rand() % length] = "{};:<>%.,\"/ 0r$"[rand() % 15];
        }
        free(copy);
    }
}

/* ---- walks ---- */

enum { MAX_LINES = 160, MAX_REGS = 400 };

struct line { /* of a made program; registers above MAX_REGS are predicates */
    int writes[2], write_count;
    int reads[3], read_count; /* the guard first, where there is one */
    int names[5], name_count; /* what the shrunk text has, in the order of the text */
    int target;               /* or -1 */
    bool guarded, leaves;
};

static unsigned below(unsigned *seed, unsigned bound)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % bound;
}

static int some_reg(unsigned *seed, int *made, bool written)
{
    if (written && *made < MAX_REGS && (*made == 0 || below(seed, 10) < 6)) return (*made)++;
    int back = (int)below(seed, below(seed, 4) ? 6 : 60);
    return back < *made ? *made - 1 - back : 0;
}

/* A line's text; the order in which it names registers is: guard, writes, other reads. */
static int make_line(struct line *line, char *text, unsigned *seed, int count, int *regs,
                     int *preds)
{
    char *p = text;
    unsigned kind = below(seed, 12);
    *line = (struct line){.target = -1, .guarded = kind > 5 && kind != 8 && below(seed, 2)};
    if (line->guarded) {
        line->reads[line->read_count++] = MAX_REGS + some_reg(seed, preds, false);
        p += sprintf(p, "@%s%%p%d ", below(seed, 2) ? "!" : "", line->reads[0] - MAX_REGS);
    }
    if (kind == 10 || kind == 11) {
        line->target = (int)below(seed, (unsigned)count);
        return (int)(p - text) + sprintf(p, "bra $L%d_;\n", line->target);
    }
    int a = line->reads[line->read_count++] = some_reg(seed, regs, false);
    int b = line->reads[line->read_count++] = some_reg(seed, regs, false);
    if (kind == 7) {
        int d = some_reg(seed, preds, true), e = some_reg(seed, preds, true);
        if (d == e) e = d ? d - 1 : 1;
        line->writes[0] = MAX_REGS + d;
        line->writes[1] = MAX_REGS + e;
        line->write_count = 2;
        p += sprintf(p, "setp.lt.s32 %%p%d|%%p%d, %%r%d, %%r%d;\n", d, e, a, b);
    } else if (kind == 8) {
        p += sprintf(p, "st.u32 [%%r%d], %%r%d;\n", a, b);
    } else if (kind == 9) {
        int d = some_reg(seed, regs, true), e = some_reg(seed, regs, true);
        if (d == e) e = d ? d - 1 : 1;
        line->writes[0] = d;
        line->writes[1] = e;
        line->write_count = 2;
        p += sprintf(p, "ld.v2.u32 {%%r%d, %%r%d}, [%%r%d+%%r%d];\n", d, e, a, b);
    } else {
        line->writes[line->write_count++] = some_reg(seed, regs, true);
        p += sprintf(p, "add.s32 %%r%d, %%r%d, %%r%d;\n", line->writes[0], a, b);
    }
    return (int)(p - text);
}

/* The names in the lines of the shrunk text: twice the number, and whether it is of the long lives;
 * those of predicates from 10,000 on. */
static void read_names(struct line *lines, int count, const char *text)
{
    const char *p = strstr(text, "$0:");
    for (int i = 0; i < count; ++i) {
        const char *end = strchr(strchr(p, ':') + 2, '\n');
        for (; p < end; ++p)
            if (*p == '%') {
                int base = p[1] == 'p' || p[1] == 'P' ? 10000 : 0, is_long = p[1] < 'a';
                assert_true(lines[i].name_count < 5);
                lines[i].names[lines[i].name_count++] = base + 2 * atoi(p + 2) + is_long;
            }
        assert_int_equal(lines[i].name_count, lines[i].read_count + lines[i].write_count);
    }
}

static void walk(struct line *lines, int count, unsigned *seed)
{
    static int writer[2 * MAX_REGS + 2], holder[20000];
    memset(writer, 0, sizeof writer);
    memset(holder, 0, sizeof holder);
    int time = 1;
    for (int i = 0, steps = 0; i < count && steps < 3000; ++steps) {
        const struct line *l = &lines[i];
        for (int k = 0; k < l->read_count; ++k) {
            int at = k < l->guarded ? k : k + l->write_count;
            int wrote = writer[l->reads[k]];
            if (wrote) assert_int_equal(wrote, holder[l->names[at]]);
        }
        bool happens = !l->guarded || below(seed, 2);
        for (int k = 0; happens && k < l->write_count; ++k, ++time) {
            writer[l->writes[k]] = time;
            holder[l->names[l->guarded + k]] = time;
        }
        if (l->write_count == 2)
            assert_int_not_equal(l->names[l->guarded], l->names[l->guarded + 1]);
        i = happens && l->target >= 0 ? l->target : i + 1;
    }
}

static void test_walks(void **state)
{
    static struct line lines[MAX_LINES];
    static char text[MAX_LINES * 80 + 1000];
    (void)state;
    for (unsigned program = 0; program < 400; ++program) {
        unsigned seed = program;
        int count = 20 + (int)below(&seed, MAX_LINES - 20), regs = 3, preds = 3;
        char *p = text;
        p += sprintf(p, HEAD ".entry wd_k(){.reg .b32 %%r<%d>;.reg .pred %%p<%d>;\n", MAX_REGS + 2,
                     MAX_REGS + 2);
        for (int i = 0; i < count; ++i) {
            p += sprintf(p, "$L%d_: ", i);
            p += make_line(&lines[i], p, &seed, count, &regs, &preds);
        }
        sprintf(p, "ret;\n}\n");
        char *result = shrink(text);
        read_names(lines, count, result);
        for (int k = 0; k < 20; ++k) walk(lines, count, &seed);
        free(result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blanks_and_names), cmocka_unit_test(test_predicated_writes_keep),
        cmocka_unit_test(test_several_written),  cmocka_unit_test(test_loop_keeps),
        cmocka_unit_test(test_scopes),           cmocka_unit_test(test_unknown_keeps_its_registers),
        cmocka_unit_test(test_functions_apart),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_any_beginning),    cmocka_unit_test(test_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
