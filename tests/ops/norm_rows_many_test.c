/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer norm and RMS norm forward over many rows of two bytes an element: on the boundaries by warps, by blocks and pairs that draw
 * rows, by clusters of sixteen, and by blocks that are no cluster; off them by blocks that draw rows; and random ones. How many are many depends on the processors: a driver that is a
 * stand-in says that its device has few, which has no clusters of sixteen either. */
#include <stdlib.h>
#include <string.h>

#include "norms_graph.h"

#define FEW_PROCESSORS "18"
enum { TYPES = 3, PROCESSORS = 132 }; /* an H200's */

static const cudnnDataType_t types[TYPES] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                             CUDNN_DATA_BFLOAT16};
static const char *const names[TYPES] = {"f32", "f16", "bf16"};
static bool stands_in, in_place;
static int processors = PROCESSORS;

static void make(struct norms_case *c)
{
    const bool computes = c->phase == NORMS_TRAINING;
    if (in_place) {
        c->x = c->y = tensor_inout(c->x_type, 2, c->dim, LAYOUT_NCHW, -3.0, 5.0);
    } else {
        c->x = tensor_input(c->x_type, 2, c->dim, LAYOUT_NCHW, -3.0, 5.0);
        c->y = norms_fresh(c->y_type, 2, c->dim, LAYOUT_NCHW);
    }
    c->scale = tensor_input(c->param_type, 2, c->scale_dim, LAYOUT_NCHW, 0.25, 2.0);
    if (c->bias)
        c->bias_tensor = tensor_input(c->param_type, 2, c->scale_dim, LAYOUT_NCHW, -1.0, 1.0);
    if (!c->statistics) return;
    c->inv_std = computes ? norms_fresh(CUDNN_DATA_FLOAT, 2, c->stat_dim, LAYOUT_NCHW)
                          : tensor_input(CUDNN_DATA_FLOAT, 2, c->stat_dim, LAYOUT_NCHW, 0.3, 1.5);
    if (c->mode == CUDNN_RMS_NORM) return;
    c->mean = computes ? norms_fresh(CUDNN_DATA_FLOAT, 2, c->stat_dim, LAYOUT_NCHW)
                       : tensor_input(CUDNN_DATA_FLOAT, 2, c->stat_dim, LAYOUT_NCHW, -1.0, 1.0);
}

static void run(struct norms_case *c, int rows, int length)
{
    const int dim[] = {rows, length}, stat[] = {rows, 1}, scale[] = {1, length};
    const char *engine = "";
    c->stat_type = CUDNN_DATA_FLOAT;
    c->epsilon = 0x1p-17;
    norms_set_dims(c, 2, dim, stat, scale);
    make(c);
    tensor_odd = 0;
    in_place = false;
    if (norms_run(c) && harness_all_engines) {
        warpdnnGetLastEngine(harness_handle, &engine);
        /* few rows have engines of their own */
        if (!strstr(engine, "_rows") && !strstr(engine, "_few")) case_fail("%s ran", engine);
    }
    case_end();
}

/* Rows of `rows` for each processor, or so many; on a stand-in of others. */
static void many(void)
{
    static const struct {
        int each, rows, length, few_rows, few_length;
    } list[] = {
        {65, 0, 1288, 0, 1288},     {65, 0, 2048, 0, 1032},   {66, 0, 4096, 0, 4096},
        {34, 0, 8192, 0, 8192},     {52, 0, 5120, 0, 5120},   {0, 30, 262144, 28, 147456},
        {0, 40, 294912, 9, 147456}, {0, 700, 768, 300, 1024},
    };
    for (int k = 0; k < (int)(sizeof list / sizeof *list) * TYPES; ++k) {
        const int type = k % TYPES, i = k / TYPES;
        int rows = list[i].rows, length = list[i].length;
        struct norms_case c = {.mode = (i + type) % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM,
                               .phase = NORMS_TRAINING,
                               .x_type = types[type],
                               .y_type = types[type],
                               .param_type = i % 3 ? CUDNN_DATA_FLOAT : types[type],
                               .bias = (i + type) % 2 == 0,
                               .statistics = i % 4 != 3};
        if (stands_in) length = list[i].few_length, rows = list[i].few_rows;
        if (list[i].each > 0) rows = list[i].each * processors;
        /* of fp32 those alone that are few; on a device one type is enough of the others, for judging takes its time */
        if (harness_all_engines && type == 0 && list[i].each > 0) continue;
        if (harness_all_engines && !stands_in && list[i].each > 0 && type != 1 + i % 2) continue;
        if (!harness_all_engines) rows = 3, length = 200 + 8 * i; /* others have no need of size */
        if (!case_begin("many/%d/%s", i, names[type])) continue;
        run(&c, rows, length);
    }
}

/* Off the boundaries, by an odd length or pointers (`skip`), of each number of classes that there is, of 16 turns and more, and over x; the last
 * are too few to be drawn, whatever there are of processors. */
static void odd_rows(void)
{
    static const struct {
        int each, length, skip;
        bool over;
    } list[] = {
        {257, 1023, 1, true},  {340, 1024, 1, false}, {257, 1026, 0, false}, {300, 1028, 0, true},
        {130, 2055, 0, true},  {100, 3001, 1, false}, {66, 4097, 1, false},  {43, 8191, 0, true},
        {17, 16383, 1, false}, {340, 895, 0, true},   {100, 1023, 0, false},
    };
    for (int k = 0; k < (int)(sizeof list / sizeof *list) * 2; ++k) {
        const int type = 1 + k % 2, i = k / 2;
        const int rows = list[i].each * processors + 5;
        struct norms_case c = {.mode = (i / 2 + k) % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM,
                               .phase = i % 5 == 2 ? NORMS_INFERENCE : NORMS_TRAINING,
                               .x_type = types[type],
                               .y_type = types[type],
                               .param_type = i % 3 ? CUDNN_DATA_FLOAT : types[type],
                               .bias = i % 4 != 1};
        c.statistics = c.phase == NORMS_TRAINING && i % 4 != 3;
        if (!harness_all_engines) continue;
        /* on a device one type is enough, for judging takes its time */
        if (!stands_in && type != 1 + i % 2) continue;
        if (!case_begin("odd/%d/%s", i, names[type])) continue;
        tensor_odd = list[i].skip;
        in_place = list[i].over;
        run(&c, rows, list[i].length);
    }
}

/* The same of random lengths, pointers and turns. */
static void random_odd_rows(void)
{
    for (int k = 0; k < (stands_in ? 12 : 3); ++k) {
        const int type = 1 + k / 2 % 2;
        struct norms_case c = {.mode = k % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM,
                               .phase = NORMS_TRAINING,
                               .x_type = types[type],
                               .y_type = types[type],
                               .param_type = k % 4 ? CUDNN_DATA_FLOAT : types[type],
                               .bias = k % 3 != 0,
                               .statistics = true};
        int warps, each, length;
        if (!harness_all_engines) continue;
        if (!case_begin("odd/random/%d", k)) continue;
        warps = (int)random_int(1, 9);
        length = warps * 1024 - (int)random_int(-14, random_chance(0.5) ? 20 : warps * 150);
        each = warps < 3 ? 16 : 16 / warps; /* rows that a processor has at once */
        tensor_odd = (int)random_int(0, 7);
        in_place = random_chance(0.5);
        run(&c, (int)random_int(16, 24) * (each * processors + 8), length);
    }
}

static void random_rows(void)
{
    for (int k = 0; k < 6 * TYPES; ++k) {
        struct norms_case c = {.mode = k % 2 ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM,
                               .phase = k / TYPES % 3 == 2 ? NORMS_INFERENCE : NORMS_TRAINING,
                               .x_type = types[k % TYPES],
                               .y_type = types[k % TYPES],
                               .param_type = k % 4 ? CUDNN_DATA_FLOAT : types[k % TYPES],
                               .bias = k % 3 != 0};
        int rows, length;
        if (!case_begin("random/%d", k)) continue;
        c.statistics = c.phase == NORMS_TRAINING || random_chance(0.5);
        rows = (int)random_int(2, !harness_all_engines ? 9 : stands_in ? 900 : 2600);
        length = (int)random_int(33, 700) * (random_chance(0.5) ? 8 : 16);
        run(&c, rows, length);
    }
}

int main(int argc, char **argv)
{
    stands_in = getenv("WARPDNN_CUDA_DRIVER") != NULL;
    if (stands_in) {
        setenv("FAKECUDA_PROCESSORS", FEW_PROCESSORS, 0);
        processors = atoi(getenv("FAKECUDA_PROCESSORS"));
    }
    harness_start(argc, argv);
    many();
    odd_rows();
    random_odd_rows();
    random_rows();
    return harness_finish();
}
