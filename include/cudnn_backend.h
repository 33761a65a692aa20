/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_backend.h - the older name of the backend (graph) API's header. Everything is declared in
 * cudnn_graph.h; this file remains for the programs that include it.
 */
#ifndef _CUDNN_BACKEND_H_
#define _CUDNN_BACKEND_H_

#include "cudnn_graph.h"

#endif
