/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems of the backend API: a graph of operations over the task's operands, planned in one library
 * as its heuristics say: the first configuration that makes a plan. */
#ifndef BENCH_COMPOSE_H
#define BENCH_COMPOSE_H

#include "problem.h"

struct composed;

/* Makes session->composed. Each step answers the status of what failed; after the first failure the
 * rest does nothing, so that only compose_plan's answer need be looked at. */
void compose_begin(struct session *session);
/* The tensor of an operand, with the alignment that its odd pointer has. */
cudnnBackendDescriptor_t compose_operand(struct session *session, const struct task *task, int i);
/* A number given by value, in fp32. */
cudnnBackendDescriptor_t compose_value(struct session *session, float value);
/* A virtual fp32 tensor shaped as an operand. */
cudnnBackendDescriptor_t compose_virtual(struct session *session, const struct task *task, int i);
/* y = mode(x, b); b may be null. For a backward mode x is the forward input or, where it is so defined,
 * its output y, and `dy` is not null. */
void compose_pointwise(struct session *session, const struct task *task, cudnnPointwiseMode_t mode,
                       cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                       cudnnBackendDescriptor_t dy, cudnnBackendDescriptor_t y);
/* The parts of any other operation: a descriptor, its attributes, its end, and an operation's place in
 * the graph, which is its end as well. */
cudnnBackendDescriptor_t compose_make(struct session *session, cudnnBackendDescriptorType_t type);
void compose_set(struct session *session, cudnnBackendDescriptor_t descriptor,
                 cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                 const void *values);
void compose_refer(struct session *session, cudnnBackendDescriptor_t descriptor,
                   cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t to);
/* Finalizes a part that is no operation; returns it. */
cudnnBackendDescriptor_t compose_finalize(struct session *session,
                                          cudnnBackendDescriptor_t descriptor);
void compose_operation(struct session *session, cudnnBackendDescriptor_t operation);
/* Plans; sets session->workspace_bytes. */
cudnnStatus_t compose_plan(struct session *session);
cudnnStatus_t composed_run(struct session *session, const struct task *task, void *const *at);
/* The operations of its graph; 0 where there is none. */
int composed_operations(const struct session *session);
void composed_free(struct session *session);

#endif
