/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of the tensors: random ones going in, decoded ones coming out. */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include "problem.h"

/* Fills an operand's memory with random values of its range, never all alike: a block made once on the
 * host, copied on the device from a place that differs from buffer to buffer. */
void values_fill(const struct operand *operand, void *at, unsigned which);
/* Element i of data of a type, as a double. */
double value_at(const void *data, cudnnDataType_t type, int64_t i);
void value_store(void *data, cudnnDataType_t type, int64_t i, double value);
void values_decode(const void *data, cudnnDataType_t type, int64_t count, double *out);
/* In logical order of the dims, whatever the strides. */
void values_decode_logical(const struct operand *operand, const void *data, double *out);
/* The position in memory of the i-th element in logical order. */
int64_t logical_offset(const struct operand *operand, int64_t i);
double type_epsilon(cudnnDataType_t type);

#endif
