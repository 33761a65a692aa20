/* SPDX-License-Identifier: Apache-2.0
 *
 * The cover of a graph: its nodes as pieces in a legal order, each a single node or several connected
 * ones that one engine takes together. A pure function of graph and device, linear in the nodes. */
#ifndef WD_PLAN_COVER_H
#define WD_PLAN_COVER_H

#include "ops/engine.h"

struct wd_cover {
    int32_t piece_count;
    int32_t *begin;         /* by piece, and behind the last: where its nodes begin in `order` */
    int32_t *order;         /* indices of nodes, rising within a piece */
    int32_t *last_reader;   /* by tensor: the last node that reads it, or -1 */
    int32_t *scalar_offset; /* by node: its first among the scalars of all */
};

/* Covers a valid graph. Where the graph asks for an engine, pieces of several are that engine's; of
 * WD_ENGINE_NODE_BY_NODE there are none. Fails without host memory only. */
cudnnStatus_t wd_cover_make(const struct wd_device *device, const struct wd_graph *graph,
                            struct wd_cover *cover);
void wd_cover_free(struct wd_cover *cover);

/* What an engine is asked about piece p. */
struct wd_problem wd_cover_problem(const struct wd_cover *cover, const struct wd_device *device,
                                   const struct wd_graph *graph, int p);

#endif
