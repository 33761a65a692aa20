/* SPDX-License-Identifier: Apache-2.0
 *
 * A case of group or instance norm of samples (`samples_layout`), and the engine that has to take it, by phase:
 * `samples_engines` of the including program. What is made belongs to that program. */
#ifndef TESTS_OPS_NORM_SAMPLES_CASE_H
#define TESTS_OPS_NORM_SAMPLES_CASE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "norms_graph.h"

extern const char *const samples_engines[3];

static enum layout samples_layout = LAYOUT_NHWC; /* of x and what has its shape */
static bool stands_in, listed;                   /* listed: a list of cases says what runs */
static bool samples_untried; /* the engines are: cases are large where those go first */

struct shape {
    int samples, channels, groups; /* 0: instance norm */
    int side;                      /* of an image, where a stand-in is small ... */
    int far[2];                    /* ... and of one that exceeds any chip; else it is SMALL */
};
enum { SMALL = 12 }; /* other engines have no need of size */

/* What a case asks for besides. On a device, whose samples are large, the plain loops that judge take their time:
 * those that say so. */
enum {
    OFF = 1,
    IN_PLACE = 2,
    WITH_NAN = 4,
    NO_DSCALE = 8,
    NO_DBIAS = 16,
    NO_PARAMS = NO_DSCALE | NO_DBIAS,
    ON_DEVICE = 32,
    FAR = 64 /* from 0, as deviations go */
};

static void make(struct norms_case *c, const int *dim, const int *stat, const int *scale, int wants)
{
    const cudnnDataType_t type = c->x_type;
    const bool backward = c->phase == NORMS_BACKWARD, in_place = wants & IN_PLACE;
    tensor_odd = wants & OFF ? 3 : 0;
    c->x = (in_place && !backward ? tensor_inout : tensor_input)(
        type, 4, dim, samples_layout, wants & FAR ? 100.0 : -3.0, wants & FAR ? 104.0 : 5.0);
    if (wants & WITH_NAN) {
        c->x->value[c->x->count - 1] = NAN;
        tensor_write(c->x);
    }
    if (backward) {
        c->dy = (in_place ? tensor_inout : tensor_input)(type, 4, dim, samples_layout, -2.0, 2.0);
        c->dx = in_place ? c->dy : norms_fresh(type, 4, dim, samples_layout);
    } else {
        c->y = in_place ? c->x : norms_fresh(type, 4, dim, samples_layout);
    }
    tensor_odd = 0;
    c->scale = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, 0.25, 2.0);
    if (!backward) {
        c->bias_tensor = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, -1.0, 1.0);
    } else {
        if (!(wants & NO_DSCALE)) {
            c->dscale = norms_fresh(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW);
        }
        if (!(wants & NO_DBIAS)) c->dbias = norms_fresh(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW);
    }
    if (c->phase == NORMS_INFERENCE) return;
    if (backward) {
        c->inv_std = tensor_input(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW, 0.3, 1.5);
        c->mean = tensor_input(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW, -1.0, 1.0);
    } else {
        c->inv_std = norms_fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
        c->mean = norms_fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
    }
}

static bool is_large(void)
{
    return samples_untried ? harness_untried : harness_all_engines;
}

static struct norms_case case_of(const struct shape *s, enum norms_phase phase,
                                 cudnnDataType_t type, int wants)
{
    const int height = !is_large() ? SMALL : stands_in ? s->side : s->far[0];
    const int width = !is_large() ? SMALL : stands_in ? s->side : s->far[1];
    const int dim[] = {s->samples, s->channels, height, width};
    const int stat[] = {s->samples, s->groups ? s->groups : s->channels, 1, 1};
    const int scale[] = {1, s->channels, 1, 1};
    struct norms_case c = {.mode = s->groups ? CUDNN_GROUP_NORM : CUDNN_INSTANCE_NORM,
                           .phase = phase,
                           .x_type = type,
                           .y_type = type,
                           .param_type = CUDNN_DATA_FLOAT,
                           .stat_type = CUDNN_DATA_FLOAT,
                           .bias = !(wants & NO_DBIAS),
                           .statistics = phase != NORMS_INFERENCE,
                           .single = true,
                           .epsilon = 0x1p-17};
    norms_set_dims(&c, 4, dim, stat, scale);
    make(&c, dim, stat, scale, wants);
    return c;
}

static void ran_last(const char *wanted)
{
    const char *engine = "";
    warpdnnGetLastEngine(harness_handle, &engine);
    if (strcmp(engine, wanted) != 0) case_fail("%s ran", engine);
}

static void run(const char *name, const struct shape *s, enum norms_phase phase,
                cudnnDataType_t type, int wants)
{
    struct norms_case c;
    if (is_large() && !stands_in && !listed && !(wants & ON_DEVICE)) return;
    /* without height and width, so that a list means the case on every device */
    if (!case_begin("%s/%s/%dx%dg%d", norms_phase_names[phase], name, s->samples, s->channels,
                    s->groups))
        return;
    c = case_of(s, phase, type, wants);
    if (norms_run(&c) && is_large()) ran_last(samples_engines[phase]);
    case_end();
}

#endif
