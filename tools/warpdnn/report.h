/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor's report: findings, each with a verdict, what was seen, what to do, and the facts
 * behind it for programs. Printed as text or as JSON. */
#ifndef WARPDNN_TOOL_REPORT_H
#define WARPDNN_TOOL_REPORT_H

#include <stdbool.h>

#include "text.h"

enum verdict {
    FINE,    /* as it should be */
    NOTE,    /* worth knowing */
    WARNING, /* may harm */
    WRONG    /* does harm */
};

struct fact {
    char *key;
    char *value; /* as JSON */
};

struct finding {
    enum verdict verdict;
    const char *area; /* a heading: "driver" */
    const char *id;   /* for programs, stable: "driver.version" */
    char *says;
    char *advice; /* null where there is nothing to do */
    struct fact *facts;
    int count;
};

struct report {
    struct finding **findings;
    int count;
    bool unusable; /* cudnnCreate fails as things stand */
};

/* The finding stays the report's; area and id are constants. */
struct finding *report_add(struct report *report, enum verdict verdict, const char *area,
                           const char *id, const char *format, ...) TOOL_PRINTF(5, 6);
void finding_advise(struct finding *finding, const char *format, ...) TOOL_PRINTF(2, 3);
void finding_text(struct finding *finding, const char *key, const char *value);
void finding_number(struct finding *finding, const char *key, long long value);
void finding_flag(struct finding *finding, const char *key, bool value);

/* 0: nothing is wrong; 1: something is; 2: the library cannot be used. */
int report_status(const struct report *report);
void report_print_text(const struct report *report, bool only_bad);
void report_print_json(const struct report *report);
void report_free(struct report *report);

#endif
