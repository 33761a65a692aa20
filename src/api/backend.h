/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend API's own part: what finalize makes of descriptors that need a device. Everything that
 * is the same for all descriptors lies in graph/descriptor.h. */
#ifndef WD_API_BACKEND_H
#define WD_API_BACKEND_H

#include <stdatomic.h>

#include "api/api.h"
#include "graph/descriptor.h"
#include "graph/from_descriptors.h"
#include "graph/json.h"

/* A descriptor type's finalize, after its values were checked: puts the computed attributes and
 * answers what was built (null is fine). Rows of the table in backend.c. */
typedef cudnnStatus_t (*wd_backend_finalize)(struct wd_desc *desc, struct wd_built **built);
cudnnStatus_t wd_finalize_opgraph(struct wd_desc *desc, struct wd_built **built);
cudnnStatus_t wd_finalize_engine(struct wd_desc *desc, struct wd_built **built);
cudnnStatus_t wd_finalize_config(struct wd_desc *desc, struct wd_built **built);
cudnnStatus_t wd_finalize_heuristics(struct wd_desc *desc, struct wd_built **built);
cudnnStatus_t wd_finalize_plan(struct wd_desc *desc, struct wd_built **built);
cudnnStatus_t wd_finalize_device(struct wd_desc *desc, struct wd_built **built);
cudnnStatus_t wd_finalize_kernel_cache(struct wd_desc *desc, struct wd_built **built);

/* What they build. Handles may die before descriptors, so the facts of a device are copied. */
struct wd_built_device { /* DEVICEPROP */
    struct wd_built base;
    struct wd_device device;
};
struct wd_built_graph { /* OPERATIONGRAPH */
    struct wd_built base;
    struct wd_opgraph *opgraph;
    bool has_device; /* a handle was set */
    struct wd_device device;
};
struct wd_built_engine { /* ENGINE, ENGINECFG */
    struct wd_built base;
    struct wd_opgraph *opgraph;
    struct wd_device device;
    const struct wd_plan *plan;
    int id; /* global index as the caller asked for it */
};
struct wd_uid_entry {
    int64_t uid;
    int tensor;
};
struct wd_built_plan { /* EXECUTION_PLAN */
    struct wd_built base;
    struct wd_opgraph *opgraph;
    const struct wd_plan *plan;
    int id;
    bool has_peers; /* of batch norm statistics */
    void **room;    /* of an execution's pointers, where they are many; else null */
    atomic_bool room_taken;
    int uid_count;
    struct wd_uid_entry uids[]; /* of the tensors that the caller brings, sorted */
};

cudnnStatus_t wd_built_graph_create(struct wd_opgraph *opgraph, const struct wd_device *device,
                                    struct wd_built_graph **result);

/* The device for which a descriptor plans: its device properties, which the attribute `what` holds, or
 * the handle of its graph. */
cudnnStatus_t wd_backend_device(const struct wd_desc *properties,
                                const struct wd_built_graph *graph, const char *what,
                                struct wd_device *device);

/* A finalized ENGINECFG for an engine of a finalized graph; the caller releases it. */
cudnnStatus_t wd_config_create(struct wd_desc *graph, struct wd_desc *properties, int64_t id,
                               struct wd_desc **result);

/* Texts that are made when they are asked for; the caller frees text->data. */
cudnnStatus_t wd_backend_text(const struct wd_desc *desc, struct wd_text *text);
void wd_plan_text(const struct wd_built_plan *plan, struct wd_text *text);
/* Restores the configuration of a plan from its text, for `device` where it is not null. */
cudnnStatus_t wd_plan_restore(const struct wd_value *value, const struct wd_device *device,
                              struct wd_desc **config);

#endif
