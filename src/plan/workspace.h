/* SPDX-License-Identifier: Apache-2.0
 *
 * The workspace of a plan. A booking is bytes that are needed from one step to another; two bookings
 * share memory where no step needs both. Virtual tensors are booked from the step that writes them
 * to the last that reads them, an engine's scratch for its own step. Pure functions. */
#ifndef WD_PLAN_WORKSPACE_H
#define WD_PLAN_WORKSPACE_H

#include "base/status.h"

struct wd_plan;

struct wd_booking {
    int64_t bytes;  /* negative: more than there is */
    int32_t first;  /* the steps that need it, both included */
    int32_t last;   /* before `first`: none does, and it gets no memory */
    int64_t offset; /* the answer, a multiple of WD_BOOKING_ALIGNMENT */
};

enum { WD_BOOKING_ALIGNMENT = 256 };

/* Gives every booking its offset, and `total` the bytes of all. Fails without host memory, and with
 * NOT_SUPPORTED_SHAPE where offsets overflow: then `refused` (otherwise -1) is a booking that found
 * no place, and the caller says so. */
cudnnStatus_t wd_workspace_book(struct wd_booking *bookings, int count, int steps, int64_t *total,
                                int *refused);

/* Books the virtual tensors of a plan and the scratch of its steps, whose workspace_bytes say how
 * much. Fails with a text. */
cudnnStatus_t wd_plan_book_workspace(struct wd_plan *plan);

#endif
