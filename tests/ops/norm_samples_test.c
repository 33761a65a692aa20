/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance and group norm of samples of more than twice what the chip holds, channels last: one team of blocks and
 * several, channels that share statistics, in place, NaN, and off the boundaries, where another engine has them. A driver that is a
 * stand-in says that its device has few processors, so that little is much. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "norms_graph.h"

/* Of columns of 72 there are two teams, each of nine processors: more than a cluster. */
#define PROCESSORS "18"

static bool stands_in;

struct shape {
    int samples, channels, groups; /* 0: instance norm */
    int side;                      /* of an image, where a stand-in is small ... */
    int far[2];                    /* ... and of one that exceeds any chip; else it is SMALL */
};
enum { SMALL = 12 }; /* other engines have no need of size */

static void run(const char *name, const struct shape *s, cudnnDataType_t type, bool off,
                bool in_place, bool nan)
{
    const bool large = harness_all_engines;
    const int height = !large ? SMALL : stands_in ? s->side : s->far[0];
    const int width = !large ? SMALL : stands_in ? s->side : s->far[1];
    const int dim[] = {s->samples, s->channels, height, width};
    const int stat[] = {s->samples, s->groups ? s->groups : s->channels, 1, 1},
              scale[] = {1, s->channels, 1, 1};
    struct norms_case c = {.mode = s->groups ? CUDNN_GROUP_NORM : CUDNN_INSTANCE_NORM,
                           .phase = NORMS_TRAINING,
                           .x_type = type,
                           .y_type = type,
                           .param_type = CUDNN_DATA_FLOAT,
                           .stat_type = CUDNN_DATA_FLOAT,
                           .bias = true,
                           .statistics = true,
                           .single = true,
                           .epsilon = 0x1p-17};
    const char *engine = "";
    if (!case_begin("%s/%dx%dx%dx%d", name, dim[0], dim[1], dim[2], dim[3])) return;
    norms_set_dims(&c, 4, dim, stat, scale);
    tensor_odd = off ? 3 : 0;
    c.x = (in_place ? tensor_inout : tensor_input)(type, 4, dim, LAYOUT_NHWC, -3.0, 5.0);
    if (nan) {
        c.x->value[c.x->count - 1] = NAN;
        tensor_write(c.x);
    }
    c.y = in_place ? c.x : norms_fresh(type, 4, dim, LAYOUT_NHWC);
    tensor_odd = 0;
    c.scale = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, 0.25, 2.0);
    c.bias_tensor = tensor_input(CUDNN_DATA_FLOAT, 4, scale, LAYOUT_NCHW, -1.0, 1.0);
    c.inv_std = norms_fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
    c.mean = norms_fresh(CUDNN_DATA_FLOAT, 4, stat, LAYOUT_NCHW);
    if (norms_run(&c) && large) {
        warpdnnGetLastEngine(harness_handle, &engine);
        if (strcmp(engine, "norm_training_samples") != 0) case_fail("%s ran", engine);
    }
    case_end();
}

int main(int argc, char **argv)
{
    static const struct shape two = {2, 32, 0, 363, {1060, 1060}},
                              one = {1, 32, 0, 363, {1060, 1060}},
                              teams = {2, 72, 0, 242, {701, 703}},
                              fours = {2, 32, 8, 363, {1060, 1060}},
                              eights = {1, 72, 9, 242, {701, 703}},
                              twelves = {1, 72, 6, 242, {701, 703}};
    stands_in = getenv("WARPDNN_CUDA_DRIVER") != NULL;
    if (stands_in) setenv("FAKECUDA_PROCESSORS", PROCESSORS, 0);
    harness_start(argc, argv);
    run("samples", &two, CUDNN_DATA_HALF, false, false, true);
    run("teams", &teams, CUDNN_DATA_BFLOAT16, false, false, false);
    run("fours", &fours, CUDNN_DATA_BFLOAT16, false, false, true);
    run("eights", &eights, CUDNN_DATA_HALF, false, true, false);
    run("twelves", &twelves, CUDNN_DATA_BFLOAT16, false, false,
        false); /* one team has all columns */
    run("grouped_off", &fours, CUDNN_DATA_HALF, true, false, false);
    run("in_place", &one, CUDNN_DATA_HALF, false, true, false);
    run("off", &one, CUDNN_DATA_BFLOAT16, true, false, false);
    return harness_finish();
}
