/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization with channels last of somewhat more than the shared memory of the chip, so that threads hold
 * rounds in registers: all that is left, and so much more that some is read again; with what goes with outputs, and off the
 * boundaries. A driver that is a stand-in says that its device has few processors, so that little is much. That rounds of these are held, on devices of
 * 132 processors too, unit/bn_held_test.c sees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "norm_case.h"

#define PROCESSORS "4"
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum {
    SMALL = 12,           /* rows and columns, where other engines have no need of size */
    FAR_PROCESSORS = 132, /* of a device, as its shapes suit */
};
/* Of x, a processor. */
static const double LEAST_BYTES = 240e3, MOST_BYTES = 480e3;

/* What is done on top of the plain call. */
enum kind { PLAIN, BLENDED, IN_PLACE, RELU, KINDS };
static const char *const kind_names[KINDS] = {"plain", "blended", "in_place", "relu"};

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
static const char *const type_names[] = {"f32", "f16", "bf16"};
static const int bytes[] = {4, 2, 2};

/* Of two bytes an element; of fp32 planes have half as many rows. */
static const struct {
    const char *name;
    int channels;
    int side[2]; /* of an image of a stand-in ... */
    int far[2];  /* ... and of a device */
} shapes[] = {
    {"held", 16, {120, 128}, {711, 712}},   {"again", 24, {130, 141}, {760, 761}},
    {"three", 3, {400, 404}, {2300, 2301}}, {"odd", 61, {90, 91}, {400, 401}},
    {"teams", 72, {60, 61}, {290, 291}},
};

/* On a device, whose tensors are large, the plain loops that judge take their time: these, and what a list names. */
static const char *const on_device[] = {"held/f16/relu", "again/bf16/plain", "three/f32/blended",
                                        "off/held/f32/relu", "off/odd/f16/plain"};

static bool is_for_device(const char *name)
{
    for (int i = 0; i < COUNT(on_device); ++i) {
        if (strcmp(name, on_device[i]) == 0) return true;
    }
    return getenv("WARPDNN_TEST_CASES") != NULL;
}

static bool stands_in;

/* From within a case. */
static void run_case(const int dim[4], int type, enum kind kind, int odd)
{
    struct norm_case c = {.mode = CUDNN_BATCHNORM_SPATIAL,
                          .dtype = types[type],
                          .act = NO_ACTIVATION,
                          .coef = 1.25,
                          .layout = 1 + LAYOUT_NHWC,
                          .factor = 0.3,
                          .epsilon = 1e-5,
                          .forward = true,
                          .backward = true,
                          .running_mean = true,
                          .running_var = true,
                          .saved = true};
    c.alpha = c.alpha_data = c.alpha_param = kind == BLENDED ? -1.5 : 1.0;
    c.beta = c.beta_data = c.beta_param = kind == BLENDED ? 0.5 : 0.0;
    c.in_place = kind == IN_PLACE;
    c.odd = odd;
    if (kind == RELU) {
        c.ex = true;
        c.ops = CUDNN_BATCHNORM_OPS_BN_ACTIVATION;
        c.act = CUDNN_ACTIVATION_RELU;
    }
    if (harness_all_engines) c.engine = "bn_backward_grid";
    norm_shape_make(&c.shape, c.mode, 4, dim);
    norm_run(&c, (struct norm_range){-3.0, 3.0});
}

static void run(int shape, int type, enum kind kind, int odd)
{
    const bool large = harness_all_engines;
    const int *side = stands_in ? shapes[shape].side : shapes[shape].far;
    const int rows = large ? side[0] / (bytes[type] / 2) : SMALL;
    const int dim[] = {2, shapes[shape].channels, rows, large ? side[1] : SMALL};
    char name[40];
    snprintf(name, sizeof name, "%s%s/%s/%s", odd ? "off/" : "", shapes[shape].name,
             type_names[type], kind_names[kind]);
    if (large && !stands_in && !is_for_device(name)) return;
    if (!case_begin("%s", name)) return;
    run_case(dim, type, kind, odd);
}

/* Of any number of channels, images and rows, from just more than shared memory to twice what registers hold besides. */
static void run_random(int turn)
{
    const int processors = stands_in ? atoi(PROCESSORS) : FAR_PROCESSORS;
    int type, odd, dim[4];
    double elements;
    enum kind kind;
    if (!case_begin("random/%d", turn)) return;
    type = (int)random_int(0, COUNT(types) - 1);
    kind = (enum kind)random_int(0, KINDS - 1);
    odd = random_chance(0.5) ? (int)random_int(1, 16 / bytes[type] - 1) : 0;
    elements = processors * random_real(LEAST_BYTES, MOST_BYTES) / bytes[type];
    dim[0] = (int)random_int(1, 9);
    dim[1] = random_chance(0.7) ? (int)random_int(1, 61) : 8 * (int)random_int(8, 24);
    dim[2] = harness_all_engines ? (int)random_int(20, 60) : SMALL;
    dim[3] = harness_all_engines ? (int)(elements / dim[0] / dim[1] / dim[2]) + 1 : SMALL;
    run_case(dim, type, kind, odd);
}

int main(int argc, char **argv)
{
    stands_in = getenv("WARPDNN_CUDA_DRIVER") != NULL;
    if (stands_in) setenv("FAKECUDA_PROCESSORS", PROCESSORS, 0);
    harness_start(argc, argv);
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int t = 0; t < COUNT(types); ++t) {
            for (int kind = 0; kind < KINDS; ++kind) {
                run(s, t, (enum kind)kind, 0);
                run(s, t, (enum kind)kind, bytes[t] == 4 ? 3 : 5);
            }
        }
    }
    for (int turn = 0; turn < (stands_in ? 24 : 4); ++turn) run_random(turn);
    return harness_finish();
}
