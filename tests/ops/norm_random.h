/* SPDX-License-Identifier: Apache-2.0
 *
 * Random batch normalization cases (norm_case.h) for either interface, and inference, of which a case
 * is nothing but its call. */
#ifndef TESTS_OPS_NORM_RANDOM_H
#define TESTS_OPS_NORM_RANDOM_H

#include "norm_case.h"

enum { NORM_DTYPES = 4 };
extern const cudnnDataType_t norm_dtypes[NORM_DTYPES];
extern const char *const norm_dtype_names[NORM_DTYPES];

/* The plain fields of a case, but for what the caller says: the interface, the passes, algo. */
void norm_random(struct norm_case *c, cudnnDataType_t dtype, int mode, int ops);
/* The whole of it: tensors, the call in every way, the judgement, the end of the case. */
void norm_run_inference(struct norm_case *c);

#endif
