/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of invalid arguments, each a case of the harness. */
#include "support/refusal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "support/harness_internal.h"

enum { NAMES_MAX = 2048 };

static char functions[NAMES_MAX][64];
static char arguments[NAMES_MAX][96];
static int function_count;
static int argument_count;
static int rows;
static bool guarded;

/* What the log's listener heard since the row began. */
static int reports;
static char reported[1024];

static void listen(cudnnSeverity_t severity, void *udata, const cudnnDebug_t *debug,
                   const char *text)
{
    (void)udata;
    (void)debug;
    if (severity != CUDNN_SEV_ERROR) return;
    reports += 1;
    snprintf(reported, sizeof reported, "%s", text);
}

void refusal_guard(void)
{
    tensors_upload();
    guarded = true;
}

bool refusal_begin(const char *function, const char *argument, int line)
{
    char text[512];
    char name[96];
    int i;
    if (!case_begin("%s: %s at line %d", function, argument, line)) return false;
    rows += 1;
    for (i = 0; i < function_count && strcmp(functions[i], function) != 0; ++i) continue;
    if (i == function_count && i < NAMES_MAX) {
        snprintf(functions[function_count++], sizeof functions[0], "%s", function);
    }
    snprintf(name, sizeof name, "%s(%s)", function, argument);
    for (i = 0; i < argument_count && strcmp(arguments[i], name) != 0; ++i) continue;
    if (i == argument_count && i < NAMES_MAX) {
        snprintf(arguments[argument_count++], sizeof arguments[0], "%s", name);
    }
    cudnnGetLastErrorString(text, sizeof text); /* clears it */
    cudnnSetCallback(CUDNN_SEV_ERROR_EN, NULL, listen);
    reports = 0;
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether the text has the name as a word of its own: "x" is not named by "xDesc". */
static bool names(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        bool begins = at == text || !is_word(at[-1]);
        if (begins && !is_word(at[length])) return true;
    }
    return false;
}

void refusal_end(const char *function, const char *argument, cudnnStatus_t expected,
                 cudnnStatus_t answered)
{
    char text[1024] = "";
    cudnnSetCallback(0, NULL, NULL);
    cudnnGetLastErrorString(text, sizeof text);
    if (answered != expected) {
        case_fail("answered %s (%s) where %s is due", cudnnGetErrorString(answered), text,
                  cudnnGetErrorString(expected));
    } else if (!strstr(text, function)) {
        case_fail("the text \"%s\" does not name %s", text, function);
    } else if (!names(text, argument)) {
        case_fail("the text \"%s\" does not name %s", text, argument);
    } else if (reports != 1 || strcmp(reported, text) != 0) {
        case_fail("the log was told %d times, last \"%s\", of \"%s\"", reports, reported, text);
    }
    if (guarded) {
        warpdnnSynchronize(harness_handle);
        tensors_untouched();
    }
    case_count();
}

void refusal_report(void)
{
    printf("refused: %d functions, %d arguments, %d rows\n", function_count, argument_count, rows);
}
