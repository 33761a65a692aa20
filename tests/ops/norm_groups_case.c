/* SPDX-License-Identifier: Apache-2.0
 *
 * See norm_groups_case.h. */
#include "norm_groups_case.h"

#include <stdlib.h>

#include "norms_graph.h"

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
const char *const norm_groups_types[TYPES] = {"f32", "f16", "bf16"};
const char *const norm_groups_layouts[LAYOUTS] = {"nchw", "nhwc"};
bool norm_groups_twice, norm_groups_fp32_params, norm_groups_clusters;
enum { OFF = 3 };

void norm_groups_tensors(struct norms_case *c, const struct norm_groups_options *o)
{
    bool backward = c->phase == NORMS_BACKWARD;
    tensor_odd = o->off ? OFF : 0;
    c->x = tensor_input(c->x_type, c->rank, c->dim, o->layout, o->low, o->high);
    if (backward) {
        c->dy = tensor_input(c->y_type, c->rank, c->dim, o->layout, -2.0, 2.0);
        c->dx = norms_fresh(c->y_type, c->rank, c->dim, o->layout);
    } else {
        c->y = norms_fresh(c->y_type, c->rank, c->dim, o->layout);
    }
    tensor_odd = 0;
    c->scale = tensor_input(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW, 0.25, 2.0);
    if (backward) {
        c->dscale = norms_fresh(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW);
        if (c->bias) c->dbias = norms_fresh(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW);
    } else if (c->bias) {
        c->bias_tensor = tensor_input(c->param_type, c->rank, c->scale_dim, LAYOUT_NCHW, -1.0, 1.0);
    }
    if (!c->statistics) return;
    if (c->phase == NORMS_TRAINING) {
        c->inv_std = norms_fresh(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW);
        c->mean = norms_fresh(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW);
    } else {
        c->inv_std = tensor_input(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW, 0.3, 1.5);
        c->mean = tensor_input(CUDNN_DATA_FLOAT, c->rank, c->stat_dim, LAYOUT_NCHW, -1.0, 1.0);
    }
}

/* By the engine that reads twice whatever the size, for it is the last resort. */
enum { TWICE_TRAINING = 383, TWICE_BACKWARD = 384 };
static bool twice;

static void check_engine(const struct norms_case *c)
{
    static const char *const names[] = {"norm_inference_groups", "norm_training_groups",
                                        "norm_backward_groups"};
    static const char *const kept[] = {"", "norm_training_kept", "norm_backward_kept"};
    static const char *const spot[] = {"", "norm_training_spot", ""};
    static const char *const shares[] = {"", "norm_training_shares", "norm_backward_shares"};
    static const char *const clusters[] = {"norm_inference_clusters", "norm_training_clusters",
                                           "norm_backward_clusters"};
    const char *name = "";
    bool right;
    if (!harness_usual_order()) return;
    warpdnnGetLastEngine(harness_handle, &name);
    if (norm_groups_clusters) {
        if (strcmp(name, clusters[c->phase]) != 0)
            case_fail("%s ran, not %s", name, clusters[c->phase]);
        return;
    }
    right = strcmp(name, names[c->phase]) == 0;
    if (!twice) {
        right = right || strcmp(name, kept[c->phase]) == 0 || strcmp(name, spot[c->phase]) == 0 ||
                strcmp(name, shares[c->phase]) == 0;
    }
    if (!right) case_fail("%s ran, not %s", name, names[c->phase]);
}

void norm_groups_run_with(struct norms_case *c, int64_t instead)
{
    struct graph_run r = {.count = 0};
    struct norms_inputs in = norms_inputs(c);
    be_desc op = norms_operation(&r, c);
    bool ran;
    if (instead >= 0) in.x[instead] = NAN;
    twice = harness_usual_order() && c->phase != NORMS_INFERENCE && !norm_groups_fp32_params &&
            !norm_groups_clusters && (random_chance(0.3) || norm_groups_twice);
    if (twice) {
        int64_t engine = c->phase == NORMS_BACKWARD ? TWICE_BACKWARD : TWICE_TRAINING;
        r.plan =
            be_plan(harness_handle, be_config(be_engine(be_graph(harness_handle, 1, &op), engine)));
        ran = graph_run_plan(&r);
    } else {
        ran = graph_run(&r, 1, &op);
    }
    if (ran) {
        check_engine(c);
        if (harness_values) norms_judge(c, &in);
    }
    norms_inputs_free(&in);
    be_free_all();
}

void norm_groups_run(struct norms_case *c)
{
    norm_groups_run_with(c, -1);
}

struct norms_case norm_groups_case(const struct norm_groups_image *m, int phase, int type,
                                   bool own_params)
{
    struct norms_case c = {.mode = m->groups ? CUDNN_GROUP_NORM : CUDNN_INSTANCE_NORM,
                           .phase = (enum norms_phase)phase};
    c.x_type = c.y_type = types[type];
    c.param_type = own_params ? types[type] : CUDNN_DATA_FLOAT;
    c.stat_type = CUDNN_DATA_FLOAT;
    c.bias = !random_chance(0.2);
    /* the number of groups is that of the statistics */
    c.statistics = m->groups || phase != NORMS_INFERENCE || random_chance(0.5);
    c.epsilon = 0x1p-17;
    c.dim[0] = c.stat_dim[0] = m->samples;
    c.dim[1] = c.scale_dim[1] = m->channels;
    c.stat_dim[1] = m->groups ? m->groups : m->channels;
    c.scale_dim[0] = 1;
    c.rank = 2;
    for (int d = 0; d < 3 && m->spatial[d] > 0; ++d) {
        c.dim[c.rank] = m->spatial[d];
        c.stat_dim[c.rank] = c.scale_dim[c.rank] = 1;
        c.rank += 1;
    }
    return c;
}

void norm_groups_image(const struct norm_groups_image *m, const char *name, int layout, int phase,
                       int type, bool off)
{
    struct norm_groups_options o = {layout ? LAYOUT_NHWC : LAYOUT_NCHW, off, -3.0, 3.0};
    struct norms_case c;
    if (!case_begin("%s/%s/%s/%s/%dx%dg%dx%dx%dx%d/%s", name, norm_groups_layouts[layout],
                    norms_phase_names[phase], norm_groups_types[type], m->samples, m->channels,
                    m->groups, m->spatial[0], m->spatial[1], m->spatial[2], off ? "off" : "on")) {
        return;
    }
    c = norm_groups_case(m, phase, type, random_chance(0.3) && !norm_groups_fp32_params);
    c.bias = c.bias || norm_groups_fp32_params;
    norm_groups_tensors(&c, &o);
    norm_groups_run(&c);
    case_end();
}
