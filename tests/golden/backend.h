/* SPDX-License-Identifier: Apache-2.0
 *
 * Backend descriptors for the cases: made, set and finalized with their statuses noted, owned by
 * the case and destroyed by be_reset().
 */
#ifndef GOLDEN_BACKEND_H
#define GOLDEN_BACKEND_H

#include "golden.h"

typedef cudnnBackendDescriptor_t be_desc;

be_desc be_make(cudnnBackendDescriptorType_t type);
/* A failure is noted under "set<attribute>". */
cudnnStatus_t be_set(be_desc d, int attribute, int type, int64_t n, const void *values);
cudnnStatus_t be_set_desc(be_desc d, int attribute, be_desc value);
cudnnStatus_t be_set_int(be_desc d, int attribute, int type, int value);
cudnnStatus_t be_set_f32(be_desc d, int attribute, float value);
cudnnStatus_t be_set_f64(be_desc d, int attribute, double value);
cudnnStatus_t be_finalize(const char *key, be_desc d);
be_desc be_tensor(int64_t uid, int type, int n, const int *dim, const int *stride, bool is_virtual);
be_desc be_tensor_of(int64_t uid, const struct gd_tens *t);
/* One element, given by value at execution. */
be_desc be_by_value(int64_t uid, int type, int nd, int alignment);
be_desc be_conv(int type, int mode, int n, const int *pre, const int *post, const int *stride,
                const int *dilation);
/* Graph, heuristics (A, then fallback), the first plan that is built, execution: statuses under
 * "graph", "heur", "plan" and "exec"; true when it ran. Operand i has the unique id i + 1. */
bool be_run(int ops, const be_desc *op, int operands, struct gd_tens *const *operand);
void be_reset(void);

#endif
