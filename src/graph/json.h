/* SPDX-License-Identifier: Apache-2.0
 *
 * Text forms as JSON: a writer into growing memory, and a strict reader that walks a text once and
 * expects members in the order in which they are written. The reader never reads past the end, and
 * after the first mistake every further step fails, so that callers may check once. */
#ifndef WD_GRAPH_JSON_H
#define WD_GRAPH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "base/status.h"
#include "graph/from_descriptors.h"

/* Starts as zeroes; the caller frees data with wd_free. `failed`: out of memory. */
struct wd_text {
    char *data;
    size_t length;
    size_t room;
    bool failed;
};
void wd_text_add(struct wd_text *text, const char *format, ...) WD_PRINTF(2, 3);
void wd_text_real(struct wd_text *text, double value); /* infinities and NaN as strings */
void wd_text_ints(struct wd_text *text, const int64_t *list, int count);
/* Puts a `.` where a number has its decimal point, as its locale spells that. */
void wd_text_point(char *number, const char *point);

struct wd_reader {
    const char *begin;
    const char *at;
    const char *end;
    bool failed;
    const char *wanted; /* by the step that failed */
};
struct wd_reader wd_reader_start(const char *data, size_t length);
/* The next token; tokens are single characters of {}[]:, . */
void wd_read_token(struct wd_reader *reader, char token);
/* Whether the next token is this one; it is taken then. */
bool wd_read_if(struct wd_reader *reader, char token);
/* `"name":` */
void wd_read_key(struct wd_reader *reader, const char *name);
int64_t wd_read_int(struct wd_reader *reader, int64_t low, int64_t high);
double wd_read_real(struct wd_reader *reader);
/* A string without escapes into `text`. */
void wd_read_string(struct wd_reader *reader, char *text, size_t size);
/* `[1,2,3]`, each within low..high; returns how many, at most `limit`. */
int wd_read_ints(struct wd_reader *reader, int64_t *list, int limit, int64_t low, int64_t high);
/* Only white space and zero bytes are left. */
void wd_read_end(struct wd_reader *reader);
/* BAD_PARAM with the place and what was expected there, or SUCCESS. */
cudnnStatus_t wd_reader_status(const struct wd_reader *reader, const char *what);

/* A graph with its run-time scalars, `{"nodes":[...],"tensors":[...]}`, and back. What is read is
 * validated like a graph that was built. */
void wd_graph_write(struct wd_text *text, const struct wd_graph *graph, const double *scalars);
cudnnStatus_t wd_graph_read(struct wd_reader *reader, struct wd_opgraph **result);

/* Facts of a device, `{"kind":"gpu",...}`. */
void wd_device_write(struct wd_text *text, const struct wd_device *device);
void wd_device_read(struct wd_reader *reader, struct wd_device *device);

/* Bytes of an operation's attributes that the text form says, unused ones included; for tests. */
size_t wd_attr_bytes_said(enum wd_op op);

#endif
