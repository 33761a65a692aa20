/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance and group norm of about what the chip holds and more, channels last: one launch and several, one team of blocks
 * and several, channels that share statistics, in place, NaN, and off the boundaries, where another engine has them. A driver that is a
 * stand-in says that its device has few processors, so that little is much. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "norms_graph.h"

/* Of columns of 72 there are two teams, each of nine processors: more than a cluster. */
#define PROCESSORS "18"

static bool stands_in, listed; /* listed: a list of cases says what runs */

struct shape {
    int samples, channels, groups; /* 0: instance norm */
    int side;                      /* of an image, where a stand-in is small ... */
    int far[2];                    /* ... and of one that exceeds any chip; else it is SMALL */
};
enum { SMALL = 12 }; /* other engines have no need of size */

static const char *const engines[] = {"norm_inference_samples", "norm_training_samples",
                                      "norm_backward_samples"};

/* What a case asks for besides. On a device, whose samples are large, the plain loops that judge take their time:
 * those that say so. */
enum {
    OFF = 1,
    IN_PLACE = 2,
    WITH_NAN = 4,
    NO_DSCALE = 8,
    NO_DBIAS = 16,
    NO_PARAMS = NO_DSCALE | NO_DBIAS,
    ON_DEVICE = 32
};

static void make(struct norms_case *c, const int *dim, const int *stat, const int *scale, int wants)
{
    const cudnnDataType_t type = c->x_type;
    const bool backward = c->phase == NORMS_BACKWARD, in_place = wants & IN_PLACE;
    tensor_odd = wants & OFF ? 3 : 0;
    c->x =
        (in_place && !backward ? tensor_inout : tensor_input)(type, 4, dim, LAYOUT_NHWC, -3.0, 5.0);
    if (wants & WITH_NAN) {
        c->x->value[c->x->count - 1] = NAN;
        tensor_write(c->x);
    }
    if (backward) {
        c->dy = (in_place ? tensor_inout : tensor_input)(type, 4, dim, LAYOUT_NHWC, -2.0, 2.0);
        c->dx = in_place ? c->dy : norms_fresh(type, 4, dim, LAYOUT_NHWC);
    } else {
        c->y = in_place ? c->x : norms_fresh(type, 4, dim, LAYOUT_NHWC);
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

static void run(const char *name, const struct shape *s, enum norms_phase phase,
                cudnnDataType_t type, int wants)
{
    const bool large = harness_all_engines;
    const int height = !large ? SMALL : stands_in ? s->side : s->far[0];
    const int width = !large ? SMALL : stands_in ? s->side : s->far[1];
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
    const char *engine = "";
    if (large && !stands_in && !listed && !(wants & ON_DEVICE)) return;
    /* without height and width, so that a list means the case on every device */
    if (!case_begin("%s/%s/%dx%dg%d", norms_phase_names[phase], name, dim[0], dim[1], s->groups))
        return;
    norms_set_dims(&c, 4, dim, stat, scale);
    make(&c, dim, stat, scale, wants);
    if (norms_run(&c) && large) {
        warpdnnGetLastEngine(harness_handle, &engine);
        if (strcmp(engine, engines[phase]) != 0) case_fail("%s ran", engine);
    }
    case_end();
}

int main(int argc, char **argv)
{
    static const struct shape
        two = {2, 32, 0, 257, {530, 530}},
        one = {1, 32, 0, 363, {750, 750}}, teams = {2, 72, 0, 172, {353, 354}},
        fours = {2, 32, 8, 257, {530, 530}}, eights = {1, 72, 9, 242, {500, 500}},
        twelves = {3, 72, 6, 140, {288, 289}}, many = {20, 32, 16, 82, {168, 168}},
        half = {2, 32, 1, 129, {346, 347}}, turns = {140, 32, 16, 24, {60, 60}},
        rings = {12, 32, 8, 120, {300, 300}},
        /* ranges of columns, the last with fewer, and threads without any; shares of all sizes,
         * members of a group more than the blocks that join them */
        ranges = {9, 408, 34, 24, {90, 90}}, halves = {7, 520, 65, 24, {90, 90}},
        wide = {8, 640, 32, 24, {64, 64}}, thirties = {8, 960, 32, 24, {64, 64}},
        /* of more columns than the board has room for twice */
        columns = {3, 192, 0, 62, {170, 170}},
        /* groups that backward are columns, one team and two; those that forward are just no sets, and just are; sets,
         * backward */
        fives = {1, 40, 8, 230, {670, 671}}, sixes = {1, 48, 8, 210, {612, 613}},
        sevens = {1, 56, 8, 195, {567, 568}}, nines = {1, 72, 8, 125, {355, 356}},
        tens = {1, 80, 8, 118, {340, 340}}, strips = {2, 224, 32, 70, {201, 202}},
        sets = {1, 72, 9, 172, {500, 501}};
    stands_in = getenv("WARPDNN_CUDA_DRIVER") != NULL;
    listed = getenv("WARPDNN_TEST_CASES") != NULL;
    if (stands_in) setenv("FAKECUDA_PROCESSORS", PROCESSORS, 0);
    harness_start(argc, argv);
    run("samples", &two, NORMS_TRAINING, CUDNN_DATA_HALF, WITH_NAN);
    run("teams", &teams, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, 0);
    run("fours", &fours, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("eights", &eights, NORMS_TRAINING, CUDNN_DATA_HALF, IN_PLACE);
    run("twelves", &twelves, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("many", &many, NORMS_TRAINING, CUDNN_DATA_HALF,
        ON_DEVICE); /* of 18 processors the last launch, backward turn, has fewer */
    run("rings", &rings, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, IN_PLACE);
    run("half", &half, NORMS_TRAINING, CUDNN_DATA_HALF, ON_DEVICE); /* of what the chip holds */
    /* groups of so many channels that blocks show each other what these have together */
    run("wide", &wide, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("thirties", &thirties, NORMS_TRAINING, CUDNN_DATA_HALF, IN_PLACE);
    run("nines", &nines, NORMS_TRAINING, CUDNN_DATA_HALF, 0);
    run("tens", &tens, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, 0);
    run("in_place", &one, NORMS_TRAINING, CUDNN_DATA_HALF, IN_PLACE);
    run("off", &one, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, OFF);
    run("grouped_off", &fours, NORMS_TRAINING, CUDNN_DATA_HALF, OFF);
    run("samples", &two, NORMS_INFERENCE, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("off", &one, NORMS_INFERENCE, CUDNN_DATA_HALF, OFF);
    run("samples", &two, NORMS_BACKWARD, CUDNN_DATA_HALF, 0);
    run("eights", &eights, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("twelves", &twelves, NORMS_BACKWARD, CUDNN_DATA_HALF, 0);
    run("no_params", &teams, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, NO_PARAMS);
    run("many", &many, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    /* of several turns, of samples that are kept, and of such as are read again */
    run("turns", &turns, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("turns_f16", &turns, NORMS_BACKWARD, CUDNN_DATA_HALF, 0);
    run("rings", &rings, NORMS_BACKWARD, CUDNN_DATA_HALF, IN_PLACE | ON_DEVICE);
    run("ranges", &ranges, NORMS_BACKWARD, CUDNN_DATA_HALF, WITH_NAN);
    run("halves", &halves, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, 0);
    run("wide", &wide, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("thirties", &thirties, NORMS_BACKWARD, CUDNN_DATA_HALF, ON_DEVICE);
    run("columns", &columns, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("fives", &fives, NORMS_BACKWARD, CUDNN_DATA_HALF, 0);
    run("sixes", &sixes, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, 0);
    run("sevens", &sevens, NORMS_BACKWARD, CUDNN_DATA_HALF, 0);
    run("strips", &strips, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("no_dscale", &sets, NORMS_BACKWARD, CUDNN_DATA_HALF, NO_DSCALE);
    run("no_dbias", &sets, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, NO_DBIAS);
    run("no_params", &sets, NORMS_BACKWARD, CUDNN_DATA_HALF, NO_PARAMS);
    run("in_place", &fours, NORMS_BACKWARD, CUDNN_DATA_HALF, IN_PLACE | ON_DEVICE);
    run("off", &fours, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, OFF);
    return harness_finish();
}
