/* SPDX-License-Identifier: Apache-2.0
 *
 * See move_case.h. */
#include "move_case.h"

const int move_types[MOVE_TYPES] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                    CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8,   CUDNN_DATA_UINT8,
                                    CUDNN_DATA_INT32,    CUDNN_DATA_INT64};

be_desc concat_open(int count, const be_desc *x, be_desc y, int64_t axis)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR);
    be_set_int(op, CUDNN_ATTR_OPERATION_CONCAT_AXIS, axis);
    be_set(op, CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, y);
    return op;
}

be_desc reshape_open(be_desc x, be_desc y)
{
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    be_set_ref(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    return op;
}

void concat_check(int count, struct tensor *const *x, const struct tensor *y, int axis)
{
    double *exact = node_doubles(y->count);
    int first = 0;
    for (int i = 0; i < count; ++i) {
        for (int64_t e = 0; e < x[i]->count; ++e) {
            int at[8];
            coordinates(x[i], e, at);
            at[axis] += first;
            exact[logical_index(y, at)] = x[i]->value[e];
        }
        first += x[i]->dim[axis];
    }
    check_values("y", y, exact, NULL, NULL, CUDNN_DATA_DOUBLE);
    free(exact);
}
