/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the findings and prints them. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 100, INDENT = 11 };

static const char *const verdict_names[] = {"ok", "note", "warning", "wrong"};
static const char *const status_names[] = {"fine", "wrong", "unusable"};

struct finding *report_add(struct report *report, enum verdict verdict, const char *area,
                           const char *id, const char *format, ...)
{
    struct finding *finding = (struct finding *)tool_resize(NULL, sizeof *finding);
    struct text says = {0};
    va_list list;
    va_start(list, format);
    text_add_list(&says, format, list);
    va_end(list);
    *finding = (struct finding){.verdict = verdict, .area = area, .id = id};
    finding->says = says.data ? says.data : text_copy("");
    report->findings = (struct finding **)tool_resize(
        report->findings, (size_t)(report->count + 1) * sizeof *report->findings);
    report->findings[report->count++] = finding;
    return finding;
}

void finding_advise(struct finding *finding, const char *format, ...)
{
    struct text advice = {0};
    va_list list;
    va_start(list, format);
    text_add_list(&advice, format, list);
    va_end(list);
    free(finding->advice);
    finding->advice = advice.data;
}

static void add_fact(struct finding *finding, const char *key, char *json)
{
    finding->facts = (struct fact *)tool_resize(finding->facts, (size_t)(finding->count + 1) *
                                                                    sizeof *finding->facts);
    finding->facts[finding->count++] = (struct fact){text_copy(key), json};
}

void finding_text(struct finding *finding, const char *key, const char *value)
{
    struct text json = {0};
    text_add_json(&json, value);
    add_fact(finding, key, json.data);
}

void finding_number(struct finding *finding, const char *key, long long value)
{
    add_fact(finding, key, text_make("%lld", value));
}

void finding_flag(struct finding *finding, const char *key, bool value)
{
    add_fact(finding, key, text_copy(value ? "true" : "false"));
}

static int count_of(const struct report *report, enum verdict verdict)
{
    int count = 0;
    for (int i = 0; i < report->count; ++i) count += report->findings[i]->verdict == verdict;
    return count;
}

int report_status(const struct report *report)
{
    if (report->unusable) return 2;
    return count_of(report, WRONG) ? 1 : 0;
}

/* Wrapped between words, each further line indented; control characters as '?'. */
static void print_wrapped(const char *text)
{
    int column = INDENT;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > INDENT && column + 1 + length > LINE_WIDTH) {
            printf("\n%*s", INDENT, "");
            column = INDENT;
        } else if (column > INDENT) {
            putchar(' ');
            column += 1;
        }
        for (int i = 0; i < length; ++i) {
            unsigned char c = (unsigned char)text[i];
            putchar(c < 0x20 || c == 0x7f ? '?' : c);
        }
        column += length;
        text += length;
        while (*text == ' ') text += 1;
    }
    putchar('\n');
}

void report_print_text(const struct report *report, bool only_bad)
{
    const char *area = "";
    int status = report_status(report);
    for (int i = 0; i < report->count; ++i) {
        const struct finding *finding = report->findings[i];
        if (only_bad && finding->verdict < WARNING) continue;
        if (strcmp(finding->area, area) != 0) {
            area = finding->area;
            printf("%s\n", area);
        }
        printf("  %-9s", verdict_names[finding->verdict]);
        print_wrapped(finding->says);
        if (finding->advice) {
            printf("%*s", INDENT, "");
            fputs("-> ", stdout);
            print_wrapped(finding->advice);
        }
    }
    printf("%s: %d ok, %d notes, %d warnings, %d wrong\n", status_names[status],
           count_of(report, FINE), count_of(report, NOTE), count_of(report, WARNING),
           count_of(report, WRONG));
}

static void add_finding(struct text *out, const struct finding *finding)
{
    text_add(out, "    {\"area\": ");
    text_add_json(out, finding->area);
    text_add(out, ", \"id\": ");
    text_add_json(out, finding->id);
    text_add(out, ", \"verdict\": \"%s\",\n     \"says\": ", verdict_names[finding->verdict]);
    text_add_json(out, finding->says);
    text_add(out, ",\n     \"do\": ");
    if (finding->advice) text_add_json(out, finding->advice);
    else text_add(out, "null");
    text_add(out, ",\n     \"facts\": {");
    for (int i = 0; i < finding->count; ++i) {
        text_add(out, "%s", i ? ", " : "");
        text_add_json(out, finding->facts[i].key);
        text_add(out, ": %s", finding->facts[i].value);
    }
    text_add(out, "}}");
}

void report_print_json(const struct report *report)
{
    struct text out = {0};
    int status = report_status(report);
    text_add(&out,
             "{\n  \"warpdnn\": \"" WD_VERSION "\",\n  \"verdict\": \"%s\",\n  \"status\": %d,\n",
             status_names[status], status);
    text_add(&out, "  \"counts\": {\"ok\": %d, \"note\": %d, \"warning\": %d, \"wrong\": %d},\n",
             count_of(report, FINE), count_of(report, NOTE), count_of(report, WARNING),
             count_of(report, WRONG));
    text_add(&out, "  \"findings\": [\n");
    for (int i = 0; i < report->count; ++i) {
        add_finding(&out, report->findings[i]);
        text_add(&out, "%s\n", i + 1 < report->count ? "," : "");
    }
    text_add(&out, "  ]\n}\n");
    fputs(text_of(&out), stdout);
    text_free(&out);
}

void report_free(struct report *report)
{
    for (int i = 0; i < report->count; ++i) {
        struct finding *finding = report->findings[i];
        for (int k = 0; k < finding->count; ++k) {
            free(finding->facts[k].key);
            free(finding->facts[k].value);
        }
        free(finding->facts);
        free(finding->says);
        free(finding->advice);
        free(finding);
    }
    free(report->findings);
    memset(report, 0, sizeof *report);
}
