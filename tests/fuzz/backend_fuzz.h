/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzzing of the backend API shares: repeatable random numbers, the pool of descriptors,
 * the count of what was reached, and graphs that are almost right. */
#ifndef TESTS_FUZZ_BACKEND_FUZZ_H
#define TESTS_FUZZ_BACKEND_FUZZ_H

#include <stdbool.h>
#include <stdint.h>

#include "cudnn.h"
#include "graph/graph.h"

enum { ELEMENTS = 40, ELEMENT_BYTES = ELEMENTS * 64 };

extern uint64_t random_state;
extern cudnnHandle_t handle;
extern int mutation; /* percent of values that become odd */

struct fuzz_reached {
    long calls, accepted, refused, finalized, plans, executed, executions_refused, too_large;
    long texts, texts_restored;
    long norms_forward, norms_backward;         /* executed, in graphs that descriptors made */
    long drawn[WD_OP_COUNT], made[WD_OP_COUNT]; /* texts of each operation, and plans from them */
    bool known[WD_OP_COUNT];                    /* of which right ones are drawn */
};
extern struct fuzz_reached reached;

uint64_t random_bits(void);
int below(int limit);
bool chance(int percent);
int random_count(void);
/* A number at an edge of something, or any. */
int64_t odd_number(void);
/* A mode of pointwise operations, mostly. */
int random_mode(void);
/* Fills an array of ELEMENTS elements of a type. */
void random_elements(int type, char *data);

/* Counts an answer; a refusal must come with a text. */
cudnnStatus_t note(cudnnStatus_t status, const char *function);

/* A descriptor in the pool, where another one may have to go for it; null where it is refused. */
cudnnBackendDescriptor_t create(int type);

/* Sets attributes, mostly as they are given: `values` are at least 64 bytes. */
void set(cudnnBackendDescriptor_t desc, int attribute, int type, int64_t count, const void *values);
void set_word(cudnnBackendDescriptor_t desc, int attribute, int type, int value);
void set_ref(cudnnBackendDescriptor_t desc, int attribute, cudnnBackendDescriptor_t value);
/* Finalizes and answers it, whether that went well or not. */
cudnnBackendDescriptor_t finish(cudnnBackendDescriptor_t desc);
int random_dtype(void);
cudnnBackendDescriptor_t tensor(int64_t uid, int dtype, int rank, const int64_t *dims,
                                bool is_virtual);
/* Of one element, by value. */
cudnnBackendDescriptor_t scalar(int64_t uid, int dtype);
/* Operations on four dims from x to y, or from dy to dx. */
cudnnBackendDescriptor_t norm_forward(const int64_t *dims, cudnnBackendDescriptor_t x,
                                      cudnnBackendDescriptor_t y);
cudnnBackendDescriptor_t norm_backward(const int64_t *dims, cudnnBackendDescriptor_t dy,
                                       cudnnBackendDescriptor_t dx);

/* Runs a finalized plan if its tensors are small. */
void execute(cudnnBackendDescriptor_t plan);

/* Restores a plan of one operation, any there is, from a text with odd numbers, and runs it. */
void text_of_an_operation(void);
/* Prints how many texts were drawn, and plans made from them. */
void report_operations(void);
/* The name of an operation of which no text was drawn, or none made a plan; null: all were. */
const char *operation_not_reached(void);

/* Descriptors of a plan with something wrong in `mutation` percent of their values; null where no
 * plan came out. */
cudnnBackendDescriptor_t almost_a_plan(void);

#endif
