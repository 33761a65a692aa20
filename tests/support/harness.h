/* SPDX-License-Identifier: Apache-2.0
 *
 * The harness of the operation tests (tests/ops): one executable runs its cases on whatever device
 * WARPDNN_DEVICE names. It makes tensors with red zones around them and poison in them, runs each
 * call twice (bitwise equal) and on a GPU a third time as the replay of a captured graph, checks that
 * inputs and gaps stayed as they were, and judges values against an exact answer in double.
 *
 * Conversions here are written apart from the library's, on purpose: a test shares no header with
 * src/ops and src/base. Every failure prints the command that reruns it. */
#ifndef TESTS_SUPPORT_HARNESS_H
#define TESTS_SUPPORT_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cudnn.h"
#include "warpdnn.h"

/* Start: reads --seed N and --only TEXT, checks that the library is ours, makes the handle. Call
 * first in main; return harness_finish() last: it prints `N passed, N failed`. */
void harness_start(int argc, char **argv);
int harness_finish(void);

extern cudnnHandle_t harness_handle;
extern bool harness_on_gpu;
/* Whether the engines of the GPU come in their usual order, so that a case knows which has to run: WARPDNN_ENGINES is '*'. */
bool harness_usual_order(void);
/* Whether values count: WARPDNN_TEST_VALUES=0 says that the device computes nothing (the fake driver
 * with engines whose kernels have no twins), so that only calls and launches are judged. */
extern bool harness_values;
/* Whether all engines of the GPU but untried ones take part, in all cases or those of a list: on one, WARPDNN_ENGINES
 * leaves none of them out and WARPDNN_TEST_SAMPLE draws none. */
extern bool harness_all_engines;

/* Repeatable random numbers: each case starts from (seed, its name); what is drawn between cases does
 * not depend on which of them run. */
int64_t random_int(int64_t lowest, int64_t highest);
double random_real(double lowest, double highest);
bool random_chance(double probability);
/* One of the listed ints. */
#define random_of(...)                                                                             \
    ((const int[]){__VA_ARGS__}[random_int(                                                        \
        0, (int64_t)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)) - 1)])

/* A case: false where --only leaves it out. Names are unique within an executable. */
bool case_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
void case_end(void); /* frees the tensors of the case, counts it */
/* Fails the case with a text; the first few are printed. */
void case_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool case_failed(void);

enum layout { LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_GAPS, LAYOUT_VECT };

struct tensor {
    cudnnDataType_t dtype; /* as in the descriptor: INT8x4 for vectorised ones */
    int rank;
    int dim[8];    /* logical: VECT layouts count lanes */
    int stride[8]; /* in units of `lanes` elements */
    int lanes;
    int64_t count; /* logical elements */
    double *value; /* logical, last dimension fastest: what was put in, or what came out */
    cudnnTensorDescriptor_t desc;
    void *data; /* device pointer */
    int64_t bytes;
    bool output; /* written by the call */
    /* private */
    bool packed;     /* elements lie one behind the other in their logical order */
    int64_t *places; /* byte offsets, unless packed */
    unsigned char *initial;
    unsigned char *result;
    void *base;
    void *block;
};

/* Elements by which the data of tensors made from now on lies off its alignment; 0 at first. */
extern int tensor_odd;

/* Tensors live until case_end. Values are rounded to the type. `input` fills with random reals in
 * [lowest, highest] (integers for integer types); `output` is poisoned; `inout` starts from random
 * values and counts as an output. */
struct tensor *tensor_input(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                            double lowest, double highest);
struct tensor *tensor_output(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout);
struct tensor *tensor_inout(cudnnDataType_t dtype, int rank, const int *dim, enum layout layout,
                            double lowest, double highest);
/* Plain bytes: workspaces and reserves (output: contents are free, red zones are checked). */
struct tensor *tensor_bytes(int64_t bytes);
/* After changing value[] of an input or inout by hand. */
void tensor_write(struct tensor *t);
/* The value as the tensor's type would hold it. */
double tensor_round(cudnnDataType_t dtype, double value);
/* Unit roundoff of a type (2^-24 for fp32, ...); 0.5 for integers. */
double tensor_epsilon(cudnnDataType_t dtype);

/* Runs the call in every way; false (and the case fails) unless each answers `success`. Afterwards
 * value[] of every output holds what it wrote. */
bool run_call(cudnnStatus_t (*call)(void *context), void *context);
/* On a GPU: captures the call once and replays it some times; `look` (may be null) sees what each
 * replay left, and may itself run or replay calls. False where something fails. */
bool replay_call(cudnnStatus_t (*call)(void *context), void *context, int times,
                 void (*look)(void *context, int replay));
/* One run that must be refused with `status` (0: any failure), a text, and outputs untouched. */
void run_refused(cudnnStatus_t status, cudnnStatus_t (*call)(void *context), void *context);

/* Judges value[] of an output against the exact answer. `naive` (may be null) is the same sum done
 * plainly in the compute type; `magnitude` (may be null) the sum of the absolute values of the terms
 * of each element. Allowed: twice the naive error, plus the rounding of the output type, plus
 * 8 roundings of `compute` at the magnitude. NaN and infinities must agree. */
void check_values(const char *name, const struct tensor *t, const double *exact,
                  const double *naive, const double *magnitude, cudnnDataType_t compute);

/* Row-major coordinates of a logical index. */
void coordinates(const struct tensor *t, int64_t index, int *at);
int64_t logical_index(const struct tensor *t, const int *at);

#endif
