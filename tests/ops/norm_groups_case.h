/* SPDX-License-Identifier: Apache-2.0
 *
 * A case of group norm or instance norm of images, and which engine has to have run. */
#ifndef TESTS_OPS_NORM_GROUPS_CASE_H
#define TESTS_OPS_NORM_GROUPS_CASE_H

#include "norms_case.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

enum { TYPES = 3, PHASES = 3, LAYOUTS = 2 };
extern const char *const norm_groups_types[TYPES], *const norm_groups_layouts[LAYOUTS];

struct norm_groups_options {
    enum layout layout;
    bool off; /* of data off the boundaries */
    double low, high;
};

/* Samples, channels, groups (0: instance norm), and what is spatial. */
struct norm_groups_image {
    int samples, channels, groups;
    int spatial[3]; /* 0: no such dimension */
};

/* Cases that follow are by the engine that reads twice, whatever the size, where engines of groups run. */
extern bool norm_groups_twice;
/* Scale and bias, both, in fp32, as the engine of shares asks, which then runs. */
extern bool norm_groups_fp32_params;
/* Cases that follow have to be run by the engine of clusters. */
extern bool norm_groups_clusters;

/* A case without tensors; types are 0 to TYPES - 1. */
struct norms_case norm_groups_case(const struct norm_groups_image *m, int phase, int type,
                                   bool own_params);
void norm_groups_tensors(struct norms_case *c, const struct norm_groups_options *o);
/* Of tensors that are made; `instead`, if not negative, is an element of x that the definition takes for a NaN. */
void norm_groups_run_with(struct norms_case *c, int64_t instead);
void norm_groups_run(struct norms_case *c);
/* All of it, from case_begin to case_end. */
void norm_groups_image(const struct norm_groups_image *m, const char *name, int layout, int phase,
                       int type, bool off);

/* What is hard (norm_groups_hard.c). */
void norm_groups_hard_cases(void);

#endif
