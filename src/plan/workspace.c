/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace by lifetime. Up to BY_SIZE_MOST bookings are placed from the largest to the smallest, each
 * in the smallest gap between those that live with it: within 1% of the least possible on random
 * graphs, and quadratic. More than that take and return memory in the order of the steps: within 15%,
 * and linear. Both are decided by the bookings alone, so that a graph is laid out the same each time. */
#include "plan/workspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/plan.h"

enum { BY_SIZE_MOST = 1024 };

static const int64_t most = INT64_MAX / WD_BOOKING_ALIGNMENT * WD_BOOKING_ALIGNMENT;

static bool is_used(const struct wd_booking *booking)
{
    return booking->bytes != 0 && booking->last >= booking->first;
}

/* Bytes with what rounds them up to the alignment, of a booking of at most `most`. */
static int64_t room(const struct wd_booking *booking)
{
    return (booking->bytes + WD_BOOKING_ALIGNMENT - 1) / WD_BOOKING_ALIGNMENT *
           WD_BOOKING_ALIGNMENT;
}

/* ---- by size ---- */

/* The largest first; equal ones by their begin, then as they came. */
static int compare_sizes(const void *left, const void *right)
{
    const struct wd_booking *a = *(struct wd_booking *const *)left;
    const struct wd_booking *b = *(struct wd_booking *const *)right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The offset of the smallest gap that holds the booking, among `count` placed ones in the order of
 * their offsets; -1 where there is none. */
static int64_t find_gap(struct wd_booking *const *placed, int count,
                        const struct wd_booking *booking)
{
    int64_t wanted = room(booking);
    int64_t end = 0; /* of what lies below */
    int64_t best = -1;
    int64_t best_bytes = INT64_MAX;
    for (int p = 0; p < count; ++p) {
        int64_t behind = placed[p]->offset + room(placed[p]);
        int64_t gap = placed[p]->offset - end;
        if (placed[p]->last < booking->first || placed[p]->first > booking->last) continue;
        if (gap >= wanted && gap < best_bytes) {
            best = end;
            best_bytes = gap;
        }
        if (behind > end) end = behind;
    }
    return best >= 0 ? best : end <= most - wanted ? end : -1;
}

/* The index of the booking that found no place, or -1. */
static int place_by_size(struct wd_booking *bookings, int count, struct wd_booking **sorted,
                         struct wd_booking **placed)
{
    int used = 0;
    for (int b = 0; b < count; ++b) {
        if (is_used(&bookings[b])) sorted[used++] = &bookings[b];
    }
    qsort(sorted, (size_t)used, sizeof *sorted, compare_sizes);
    for (int b = 0; b < used; ++b) {
        int at = b;
        sorted[b]->offset = find_gap(placed, b, sorted[b]);
        if (sorted[b]->offset < 0) return (int)(sorted[b] - bookings);
        while (at > 0 && placed[at - 1]->offset > sorted[b]->offset) --at;
        memmove(placed + at + 1, placed + at, sizeof *placed * (size_t)(b - at));
        placed[at] = sorted[b];
    }
    return -1;
}

/* ---- by steps: the largest of a step first, each in the smallest gap that holds it. What lies
 * behind everything is a gap too, so the workspace grows only where nothing else fits. ---- */

struct gap {
    int64_t at;
    int64_t bytes;
};

/* Gaps in the order of their places, never touching each other. */
struct gaps {
    struct gap *list;
    int count;
};

/* A place of so many bytes, or -1. */
static int64_t take(struct gaps *gaps, int64_t bytes)
{
    int best = -1;
    int64_t at;
    for (int g = 0; g < gaps->count; ++g) {
        if (gaps->list[g].bytes < bytes) continue;
        if (best < 0 || gaps->list[g].bytes < gaps->list[best].bytes) best = g;
    }
    if (best < 0) return -1;
    at = gaps->list[best].at;
    gaps->list[best].at += bytes;
    gaps->list[best].bytes -= bytes;
    if (gaps->list[best].bytes == 0) {
        gaps->count -= 1;
        memmove(gaps->list + best, gaps->list + best + 1,
                sizeof *gaps->list * (size_t)(gaps->count - best));
    }
    return at;
}

/* Returns a place, and joins it with the gaps before and behind. */
static void give(struct gaps *gaps, int64_t at, int64_t bytes)
{
    int g = 0;
    bool joins_before;
    bool joins_behind;
    while (g < gaps->count && gaps->list[g].at < at) ++g;
    joins_before = g > 0 && gaps->list[g - 1].at + gaps->list[g - 1].bytes == at;
    joins_behind = g < gaps->count && gaps->list[g].at == at + bytes;
    if (joins_before && joins_behind) {
        gaps->list[g - 1].bytes += bytes + gaps->list[g].bytes;
        gaps->count -= 1;
        memmove(gaps->list + g, gaps->list + g + 1, sizeof *gaps->list * (size_t)(gaps->count - g));
    } else if (joins_before) {
        gaps->list[g - 1].bytes += bytes;
    } else if (joins_behind) {
        gaps->list[g].at = at;
        gaps->list[g].bytes += bytes;
    } else {
        memmove(gaps->list + g + 1, gaps->list + g, sizeof *gaps->list * (size_t)(gaps->count - g));
        gaps->list[g] = (struct gap){at, bytes};
        gaps->count += 1;
    }
}

/* Lists of bookings by the step in which they begin and by that in which they end: index + 1 of the
 * first, and of the next. */
struct calendar {
    int *begins, *next_begin;
    int *ends, *next_end;
};

static void enter(struct calendar *calendar, const struct wd_booking *bookings, int b)
{
    int *link = &calendar->begins[bookings[b].first];
    while (*link && bookings[*link - 1].bytes >= bookings[b].bytes) {
        link = &calendar->next_begin[*link - 1];
    }
    calendar->next_begin[b] = *link;
    *link = b + 1;
    calendar->next_end[b] = calendar->ends[bookings[b].last];
    calendar->ends[bookings[b].last] = b + 1;
}

/* The index of the booking that found no place, or -1. `links` has 2 * (steps + count) zeroes. */
static int place_by_steps(struct wd_booking *bookings, int count, int steps, struct gap *list,
                          int *links)
{
    struct gaps gaps = {list, 1};
    struct calendar calendar = {.begins = links,
                                .next_begin = links + steps,
                                .ends = links + steps + count,
                                .next_end = links + 2 * steps + count};
    list[0] = (struct gap){0, most};
    for (int b = 0; b < count; ++b) {
        if (is_used(&bookings[b])) enter(&calendar, bookings, b);
    }
    for (int s = 0; s < steps; ++s) {
        for (int b = calendar.begins[s] - 1; b >= 0; b = calendar.next_begin[b] - 1) {
            bookings[b].offset = take(&gaps, room(&bookings[b]));
            if (bookings[b].offset < 0) return b;
        }
        for (int b = calendar.ends[s] - 1; b >= 0; b = calendar.next_end[b] - 1) {
            give(&gaps, bookings[b].offset, room(&bookings[b]));
        }
    }
    return -1;
}

cudnnStatus_t wd_workspace_book(struct wd_booking *bookings, int count, int steps, int64_t *total,
                                int *refused)
{
    bool by_size = count <= BY_SIZE_MOST;
    size_t links = by_size ? 0 : 2 * ((size_t)steps + (size_t)count);
    size_t lists = by_size ? 2 * sizeof(struct wd_booking *) * (size_t)count
                           : sizeof(struct gap) * ((size_t)count + 1);
    void *scratch;
    *total = 0;
    *refused = -1;
    for (int b = 0; b < count; ++b) {
        bookings[b].offset = 0;
        if (is_used(&bookings[b]) && (bookings[b].bytes < 0 || bookings[b].bytes > most)) {
            *refused = b;
            return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
        }
    }
    scratch = wd_alloc(lists + sizeof(int) * links);
    if (!scratch) {
        return wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                       "no host memory to book workspace for %d steps", steps);
    }
    if (by_size) {
        struct wd_booking **sorted = scratch;
        *refused = place_by_size(bookings, count, sorted, sorted + count);
    } else {
        *refused = place_by_steps(bookings, count, steps, scratch,
                                  (int *)(void *)((char *)scratch + lists));
    }
    wd_free(scratch);
    if (*refused >= 0) return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
    for (int b = 0; b < count; ++b) {
        int64_t end = is_used(&bookings[b]) ? bookings[b].offset + room(&bookings[b]) : 0;
        if (end > *total) *total = end;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t refuse(const struct wd_plan *plan, const struct wd_booking *booking, int index)
{
    const struct wd_graph *graph = plan->graph;
    if (index < graph->tensor_count) {
        return wd_fail(CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                       "virtual tensor uid %lld of %lld bytes: with what is needed beside it the "
                       "workspace takes more than 2^63 - 1 bytes",
                       (long long)graph->tensors[index].uid, (long long)booking->bytes);
    }
    return wd_fail(
        CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
        "engine %s in operation %d: with what is needed beside its scratch the workspace "
        "takes more than 2^63 - 1 bytes",
        plan->steps[index - graph->tensor_count].engine->name, index - graph->tensor_count);
}

enum { HIDDEN = -1 }; /* as a booking's first step: a piece keeps it to itself */

/* Step p needs the tensors of its node, but for what a piece hides. */
static void use_tensors(const struct wd_problem *problem, const struct wd_node *node, int p,
                        struct wd_booking *bookings)
{
    const struct wd_op_info *info = wd_op_info(node->op);
    for (int s = 0; s < info->slot_count; ++s) {
        int t = node->slot[s];
        if (t < 0 || bookings[t].first == HIDDEN) continue;
        if ((info->outputs >> s & 1u) && wd_problem_hides(problem, t)) {
            bookings[t].first = HIDDEN;
            bookings[t].last = HIDDEN - 1;
            continue;
        }
        if (p < bookings[t].first) bookings[t].first = p;
        bookings[t].last = p;
    }
}

cudnnStatus_t wd_plan_book_workspace(struct wd_plan *plan)
{
    const struct wd_graph *graph = plan->graph;
    int count = graph->tensor_count + plan->step_count;
    struct wd_booking *bookings = wd_alloc(sizeof *bookings * (size_t)count);
    struct wd_booking *scratch;
    cudnnStatus_t status;
    int refused;
    if (!bookings) {
        return wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                       "no host memory to book workspace for %d operations", plan->step_count);
    }
    for (int t = 0; t < graph->tensor_count; ++t) {
        bool is_virtual = (graph->tensors[t].flags & WD_VIRTUAL) != 0;
        bookings[t].bytes = is_virtual ? wd_tensor_extent(&graph->tensors[t]) : 0;
        bookings[t].first = plan->step_count;
        bookings[t].last = -1;
    }
    scratch = bookings + graph->tensor_count;
    for (int p = 0; p < plan->step_count; ++p) {
        const struct wd_problem *problem = &plan->steps[p].problem;
        for (int i = 0; i < wd_problem_count(problem); ++i) {
            use_tensors(problem, wd_problem_node(problem, i), p, bookings);
        }
        scratch[p] = (struct wd_booking){plan->steps[p].workspace_bytes, p, p, 0};
    }
    status = wd_workspace_book(bookings, count, plan->step_count, &plan->workspace, &refused);
    if (status == CUDNN_STATUS_NOT_SUPPORTED_SHAPE) {
        status = refuse(plan, &bookings[refused], refused);
    }
    if (status != CUDNN_STATUS_SUCCESS) goto done;
    for (int t = 0; t < graph->tensor_count; ++t) {
        bool is_virtual = (graph->tensors[t].flags & WD_VIRTUAL) != 0;
        bool is_used_somewhere = bookings[t].last >= bookings[t].first;
        plan->virtual_offset[t] = is_virtual && is_used_somewhere ? bookings[t].offset : -1;
    }
    for (int n = 0; n < plan->step_count; ++n) plan->steps[n].workspace_offset = scratch[n].offset;
done:
    wd_free(bookings);
    return status;
}
