/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors for batch norm's statistics taken apart: any type and layout, its channels, and what holds a
 * value a channel. Used by the lists of bn_stats_test.c and bn_weights_test.c. */
#ifndef TESTS_OPS_BN_CASE_H
#define TESTS_OPS_BN_CASE_H

#include "support/harness.h"

enum { BN_CHANNELS_MAX = 64, BN_TYPES = 10, BN_FLOATS = 4 };
extern const cudnnDataType_t bn_types[BN_TYPES]; /* floating ones first */
extern const char *const bn_type_names[BN_TYPES];

enum layout bn_layout(cudnnDataType_t dtype);
cudnnDataType_t bn_compute(cudnnDataType_t a, cudnnDataType_t b);
/* Fills dims of x and of what has a value a channel; returns the rank. */
int bn_dims(cudnnDataType_t dtype, int *dim, int *channels);
/* The channel of a logical index of x. */
int64_t bn_channel(const struct tensor *x, int64_t i);
/* An output, NaN before the call; an input. */
struct tensor *bn_fresh(cudnnDataType_t dtype, int rank, const int *dim);
struct tensor *bn_input(cudnnDataType_t dtype, int rank, const int *dim, double low, double high);

#endif
