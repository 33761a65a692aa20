/* SPDX-License-Identifier: Apache-2.0
 *
 * The shape of a convolution's output, for the rule, the definition and the API. Pure. */
#ifndef WD_GRAPH_CONV_H
#define WD_GRAPH_CONV_H

#include "graph/attr.h"

/* 1 + floor((image + pads - window) / stride), where the window spans (filter - 1) dilation + 1; 0
 * where the filter does not fit into the padded image, or the result cannot be said. */
int64_t wd_conv_output_dim(const struct wd_conv_attr *attr, int d, int64_t image, int64_t filter);

#endif
