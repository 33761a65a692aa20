/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cudnn.h - the whole cuDNN 9 API in one include.
 *
 *   cudnn_graph.h   handle, status, log, data types, and the backend (graph) API
 *   cudnn_ops.h     tensors and the simple layers: pooling, softmax, norm, dropout ...
 *   cudnn_cnn.h     convolutions, and the fused operations around them
 *   cudnn_adv.h     recurrent layers, multi-head attention, CTC loss
 *
 * warpdnn.h, the extensions of WarpDNN, is included by those who want it.
 */
#ifndef CUDNN_H_
#define CUDNN_H_

#include "cudnn_version.h"

#include "cudnn_graph.h"
#include "cudnn_ops.h"

#include "cudnn_adv.h"
#include "cudnn_cnn.h"

#endif
