/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization of channels that no cluster holds, with channels first: teams of blocks that are there at once have one channel after
 * the other, up to eight turns; some random. A driver that is a stand-in says that its device has few processors, so that smaller channels are large. That these
 * channels go to teams, unit/shares_test.c sees. */
#include <stdlib.h>

#include "norm_case.h"

#define PROCESSORS "40"
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static const struct {
    const char *name;
    int near[4]; /* of a stand-in ... */
    int far[4];  /* ... and of a device */
    cudnnDataType_t type;
    bool adds, in_place,
        runs; /* dscale and dbias are added to what they were; without running averages */
} cases[] = {
    {"images/f32", {2, 13, 660, 644}, {2, 22, 1100, 640}, CUDNN_DATA_FLOAT, false, false, true},
    {"images/f16", {2, 5, 1280, 520}, {2, 11, 2200, 648}, CUDNN_DATA_HALF, true, false, true},
    {"image/bf16", {1, 5, 1410, 1000}, {1, 9, 2210, 1304}, CUDNN_DATA_BFLOAT16, false, true, false},
    {"image/f32", {1, 3, 1101, 804}, {1, 9, 1610, 1204}, CUDNN_DATA_FLOAT, true, true, true},
};

/* What all have in common. */
static struct norm_case case_of(cudnnDataType_t type)
{
    return (struct norm_case){.mode = CUDNN_BATCHNORM_SPATIAL,
                              .dtype = type,
                              .act = NO_ACTIVATION,
                              .layout = 1 + LAYOUT_NCHW,
                              .alpha = 1.0,
                              .alpha_data = 1.0,
                              .alpha_param = 1.0,
                              .factor = 0.3,
                              .epsilon = 1e-5,
                              .forward = true,
                              .backward = true,
                              .running_mean = true,
                              .running_var = true,
                              .saved = true,
                              .engine = harness_all_engines ? "bn_backward_channels" : NULL};
}

/* Random: channels of 16 bytes times `units` and up to a sixteenth more. */
static const struct {
    int channels, units;
} near[] = {{13, 205000}, {5, 165000}, {3, 215000}},
  far[] = {{22, 345000}, {11, 350000}, {9, 470000}};

/* From within a case. */
static void run_random(int turn, bool stands_in)
{
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    const int type = (int)random_int(0, COUNT(types) - 1), k = turn % COUNT(near);
    int units = stands_in ? near[k].units : far[k].units;
    int dim[] = {(int)random_int(1, 5), stands_in ? near[k].channels : far[k].channels,
                 (int)random_int(40, 400), 0};
    struct norm_case c = case_of(types[type]);
    c.factor = random_of(0, 1, 2) / 2.0;
    c.in_place = random_chance(0.5);
    units += (int)random_int(0, units / 16);
    dim[3] = units / dim[0] / dim[2] * (type == 0 ? 4 : 8);
    if (!harness_all_engines) dim[2] = 3, dim[3] = 16;
    norm_shape_make(&c.shape, c.mode, 4, dim);
    norm_run(&c, (struct norm_range){-3.0, 3.0});
}

int main(int argc, char **argv)
{
    const bool stands_in = getenv("WARPDNN_CUDA_DRIVER") != NULL;
    static const int small[] = {2, 3, 12, 16};
    if (stands_in) setenv("FAKECUDA_PROCESSORS", PROCESSORS, 0);
    harness_start(argc, argv);
    for (int k = 0; k < COUNT(cases); ++k) {
        struct norm_case c = case_of(cases[k].type);
        if (cases[k].adds) c.alpha_param = -1.5, c.beta_param = 0.5;
        c.in_place = cases[k].in_place;
        c.running_mean = c.running_var = cases[k].runs;
        if (!case_begin("%s", cases[k].name)) continue;
        norm_shape_make(&c.shape, c.mode, 4,
                        !harness_all_engines ? small
                        : stands_in          ? cases[k].near
                                             : cases[k].far);
        norm_run(&c, (struct norm_range){-3.0, 3.0});
    }
    for (int turn = 0; turn < 3; ++turn) {
        if (case_begin("random/%d", turn)) run_random(turn, stands_in);
    }
    return harness_finish();
}
