/* SPDX-License-Identifier: Apache-2.0
 *
 * A dropout call and what is due of it: the mask that a seed gives, element by element from a generator
 * written out apart from the library's, so that every engine on every device is held to the same bits.
 * Used by the lists of dropout_test.c and dropout_state_test.c. */
#ifndef TESTS_OPS_DROPOUT_CASE_H
#define TESTS_OPS_DROPOUT_CASE_H

#include "part.h"

struct dropout_call {
    cudnnDropoutDescriptor_t dropout;
    float probability;
    unsigned long long seed;
    void *states;
    size_t state_bytes;
    struct part *x, *y, *dy, *dx;
    struct tensor *reserve;
    int forwards; /* how many before the one that counts */
};

/* Whether an element stays, in call number `call` of a state. */
bool dropout_is_kept(uint64_t seed, uint64_t call, int64_t index, float probability);

/* Descriptor and states; and their end, with the parts' and the case's. */
void dropout_begin(struct dropout_call *c);
void dropout_end(struct dropout_call *c);
/* A reserve space of the size that is asked for. */
struct tensor *dropout_reserve(cudnnTensorDescriptor_t desc);

/* Sets the state up from the seed; one forward pass. */
cudnnStatus_t dropout_set(const struct dropout_call *c);
cudnnStatus_t dropout_forward(const struct dropout_call *c);

#endif
