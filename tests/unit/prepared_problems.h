/* SPDX-License-Identifier: Apache-2.0
 *
 * What engines prepare (prepared_test.c): a problem for each, and which of its calls use it. */
#ifndef TESTS_UNIT_PREPARED_PROBLEMS_H
#define TESTS_UNIT_PREPARED_PROBLEMS_H

#include "graph/norm_slots.h"
#include "graph/norms.h"
#include "ops/resample/resample_vector.h"
#include "ops/spatial/spatial_vector.h"

/* Addresses of which nobody reads. */
static char *const aligned = (char *)((uintptr_t)1 << 44);
static const int64_t apart = (int64_t)1 << 36;

/* ---- Problems: `large` is of more of the same kind ---- */

static struct wd_single single;

static void bind(int slot, int dtype, int64_t n, int64_t c, int64_t h, int64_t w, bool pixels)
{
    struct wd_tensor t = {.dtype = dtype,
                          .rank = 4,
                          .vect_count = 1,
                          .dim = {n, c, h, w},
                          .stride = {c * h * w, h * w, w, 1}};
    if (pixels) t.stride[1] = 1, t.stride[2] = w * c, t.stride[3] = c;
    wd_single_bind(&single, slot, &t, aligned + slot * apart, NULL);
}

static void set_softmax(enum wd_op op, int64_t length, int slots)
{
    wd_single_init(&single, op);
    single.node.attr.softmax.algorithm = CUDNN_SOFTMAX_ACCURATE;
    single.node.attr.softmax.mode = CUDNN_SOFTMAX_MODE_INSTANCE;
    for (int slot = 0; slot < slots; ++slot) bind(slot, CUDNN_DATA_HALF, 64, length, 1, 1, false);
}

static void softmax(bool large)
{
    set_softmax(WD_OP_SOFTMAX_FORWARD, large ? 600000 : 524288, 2);
}

static void softmax_back(bool large)
{
    set_softmax(WD_OP_SOFTMAX_BACKWARD, large ? 390000 : 300000, 3);
}

#include "prepared_pooling.h"

/* Neither statistics nor running averages are kept in training. */
static void set_batch_norm(enum wd_op op, int dtype, int64_t n, int64_t c, int64_t h, int64_t w)
{
    static const int train[] = {WD_BN_TRAIN_Y, WD_BN_TRAIN_SCALE, WD_BN_TRAIN_BIAS, -1};
    static const int infer[] = {WD_BN_INFER_Y,    WD_BN_INFER_SCALE, WD_BN_INFER_BIAS,
                                WD_BN_INFER_MEAN, WD_BN_INFER_VAR,   -1};
    static const int back[] = {WD_BN_GRAD_DX,
                               WD_BN_GRAD_SCALE,
                               WD_BN_GRAD_SAVED_MEAN,
                               WD_BN_GRAD_SAVED_INV_STD,
                               WD_BN_GRAD_DSCALE,
                               WD_BN_GRAD_DBIAS,
                               -1};
    const int *slots = op == WD_OP_BN_TRAINING ? train : op == WD_OP_BN_INFERENCE ? infer : back;
    wd_single_init(&single, op);
    single.node.attr.norm.mode = CUDNN_BATCHNORM_SPATIAL;
    single.node.attr.norm.epsilon = 1e-5;
    bind(0, dtype, n, c, h, w, false); /* x */
    if (op == WD_OP_BN_BACKWARD) bind(WD_BN_GRAD_DY, dtype, n, c, h, w, false);
    bind(*slots++, dtype, n, c, h, w, false);
    for (; *slots >= 0; ++slots) bind(*slots, CUDNN_DATA_FLOAT, 1, c, 1, 1, false);
}

static void batch_norm(bool large)
{
    set_batch_norm(WD_OP_BN_TRAINING, CUDNN_DATA_HALF, 128, large ? 96 : 64, 112, 112);
}

static void batch_norm_back(bool large)
{
    set_batch_norm(WD_OP_BN_BACKWARD, CUDNN_DATA_HALF, 128, large ? 96 : 64, 112, 112);
}

static void batch_norm_inference(bool large)
{
    set_batch_norm(WD_OP_BN_INFERENCE, CUDNN_DATA_HALF, 128, large ? 96 : 64, 112, 112);
}

static void batch_norm_cluster(bool large)
{
    set_batch_norm(WD_OP_BN_TRAINING, CUDNN_DATA_FLOAT, 64, large ? 768 : 512, 14, 14);
}

static void batch_norm_back_cluster(bool large)
{
    set_batch_norm(WD_OP_BN_BACKWARD, CUDNN_DATA_FLOAT, 64, large ? 768 : 512, 14, 14);
}

/* Of many. */
static void batch_norm_channels(bool large)
{
    set_batch_norm(WD_OP_BN_TRAINING, CUDNN_DATA_FLOAT, 64, large ? 512 : 256, 56, 56);
}

static void batch_norm_back_channels(bool large)
{
    set_batch_norm(WD_OP_BN_BACKWARD, CUDNN_DATA_FLOAT, 64, large ? 512 : 256, 56, 56);
}

/* Of a few elements a parameter. */
static void batch_norm_chip(bool large)
{
    set_batch_norm(WD_OP_BN_TRAINING, CUDNN_DATA_FLOAT, 2, large ? 96 : 64, 28, 28);
}

static void batch_norm_back_chip(bool large)
{
    set_batch_norm(WD_OP_BN_BACKWARD, CUDNN_DATA_FLOAT, 2, large ? 96 : 64, 28, 28);
}

/* Of columns with few rows. */
static void batch_norm_column(bool large)
{
    set_batch_norm(WD_OP_BN_TRAINING, CUDNN_DATA_FLOAT, large ? 4 : 3, 2048, 1, 1);
}

static void batch_norm_back_column(bool large)
{
    set_batch_norm(WD_OP_BN_BACKWARD, CUDNN_DATA_FLOAT, large ? 4 : 3, 2048, 1, 1);
}

/* Of many rows, off the boundaries. */
static void batch_norm_inference_tall(bool large)
{
    set_batch_norm(WD_OP_BN_INFERENCE, CUDNN_DATA_HALF, large ? 96 : 80, 140000, 1, 1);
}

/* A norm of n images; of as many groups as channels it is instance norm. `given`: an inference has the
 * statistics. */
static void norm(enum wd_op op, int64_t n, int64_t c, int64_t groups, int64_t h, int64_t w,
                 bool pixels, bool given)
{
    static const float value = 1e-5F;
    const bool training = op == WD_OP_NORM_TRAINING, back = op == WD_OP_NORM_BACKWARD;
    const int epsilon = training ? NORM_TRAIN_EPSILON : NORM_INFER_EPSILON;
    wd_single_init(&single, op);
    single.node.attr.norms.mode = c == groups ? CUDNN_INSTANCE_NORM : CUDNN_GROUP_NORM;
    single.node.attr.norms.compute = CUDNN_DATA_FLOAT;
    bind(0, CUDNN_DATA_HALF, n, c, h, w, pixels); /* x */
    bind(training ? NORM_TRAIN_Y
         : back   ? NORM_GRAD_DX
                  : NORM_INFER_Y,
         CUDNN_DATA_HALF, n, c, h, w, pixels);
    bind(back ? NORM_GRAD_SCALE : 1, CUDNN_DATA_FLOAT, 1, c, 1, 1, false);
    bind(back ? NORM_GRAD_DBIAS : 2, CUDNN_DATA_FLOAT, 1, c, 1, 1, false);
    if (training || back || given) {
        const int mean = training ? NORM_TRAIN_MEAN : back ? NORM_GRAD_MEAN : NORM_INFER_MEAN;
        bind(mean, CUDNN_DATA_FLOAT, n, groups, 1, 1, false);
        bind(mean + 1, CUDNN_DATA_FLOAT, n, groups, 1, 1, false); /* deviations */
    }
    if (back) {
        bind(NORM_GRAD_DY, CUDNN_DATA_HALF, n, c, h, w, pixels);
        bind(NORM_GRAD_DSCALE, CUDNN_DATA_FLOAT, 1, c, 1, 1, false);
        return;
    }
    bind(epsilon, CUDNN_DATA_FLOAT, 1, 1, 1, 1, false);
    single.tensors[single.node.slot[epsilon]].flags = WD_BY_VALUE;
    single.data[single.node.slot[epsilon]] = (void *)&value;
}

static void norm_spot(bool large)
{
    norm(WD_OP_NORM_TRAINING, large ? 8 : 4, 64, 64, 16, 16, true, false);
}

static void norm_shares(bool large)
{
    norm(WD_OP_NORM_TRAINING, large ? 32 : 16, 640, 32, 14, 14, false, false);
}

static void norm_shares_back(bool large)
{
    norm(WD_OP_NORM_BACKWARD, large ? 32 : 16, 64, 64, 36, 56, false, false);
}

static void set_layer_norm(enum wd_op op, int64_t rows, int64_t length)
{
    norm(op, rows, length, 1, 1, 1, false, true);
    single.node.attr.norms.mode = CUDNN_LAYER_NORM;
}

static void layer_norm(bool large)
{
    set_layer_norm(WD_OP_NORM_TRAINING, large ? 4096 : 2048, 65536);
}

static void layer_norm_back(bool large)
{
    set_layer_norm(WD_OP_NORM_BACKWARD, large ? 65536 : 32768, 4096);
}

static void layer_norm_inference(bool large)
{
    set_layer_norm(WD_OP_NORM_INFERENCE, large ? 65536 : 32768, 4096);
}

/* Of samples that no chip keeps. */
static void norm_samples(bool large)
{
    norm(WD_OP_NORM_TRAINING, 2, 32, 32, 1024, large ? 2048 : 1056, true, false);
}

static void norm_samples_back(bool large)
{
    norm(WD_OP_NORM_BACKWARD, 8, 320, 32, 128, large ? 256 : 128, true, false);
}

static void norm_samples_inference(bool large)
{
    norm(WD_OP_NORM_INFERENCE, 8, 64, 64, 256, large ? 512 : 256, true, false);
}

static void norm_kept(bool large)
{
    norm(WD_OP_NORM_TRAINING, large ? 16 : 8, 640, 32, 64, 64, true, false);
}

static void norm_kept_back(bool large)
{
    norm(WD_OP_NORM_BACKWARD, large ? 16 : 8, 640, 32, 64, 64, false, false);
}

static void norm_clusters(bool large)
{
    norm(WD_OP_NORM_TRAINING, large ? 4 : 2, 32, 32, 512, 1024, false, false);
}

static void norm_clusters_back(bool large)
{
    norm(WD_OP_NORM_BACKWARD, large ? 4 : 2, 32, 32, 512, 1024, false, false);
}

static void norm_clusters_inference(bool large)
{
    norm(WD_OP_NORM_INFERENCE, large ? 4 : 2, 32, 32, 512, 1024, false, false);
}

/* Of groups that no chip keeps. */
static void norm_groups(bool large)
{
    norm(WD_OP_NORM_TRAINING, large ? 3 : 2, 4, 1, 4096, 8192, false, false);
}

static void norm_groups_back(bool large)
{
    norm(WD_OP_NORM_BACKWARD, large ? 3 : 2, 4, 1, 4096, 8192, false, false);
}

static void norm_inference(bool large)
{
    norm(WD_OP_NORM_INFERENCE, large ? 3 : 2, 4, 4, 4096, 16384, false, false);
}

static void norm_inference_kept(bool large)
{
    norm(WD_OP_NORM_INFERENCE, large ? 16 : 8, 640, 640, 64, 64, true, false);
}

static void norm_inference_given(bool large)
{
    norm(WD_OP_NORM_INFERENCE, large ? 16 : 8, 640, 32, 64, 64, true, true);
}

/* Windows in halves of a pixel. */
static void set_resample(enum wd_op op, int mode, int padding, int window, int stride, int pad)
{
    struct wd_resample_attr *attr = &single.node.attr.resample;
    wd_single_init(&single, op);
    attr->spatial = 2;
    attr->mode = mode;
    attr->padding = padding;
    attr->compute = CUDNN_DATA_FLOAT;
    attr->propagate_nan = 1;
    for (int d = 0; d < 2; ++d) {
        attr->unit[d] = 2;
        attr->window[d] = window;
        attr->stride[d] = stride;
        attr->pad_before[d] = attr->pad_after[d] = pad;
    }
}

static void resample_band(bool large)
{
    const int64_t n = large ? 126 : 63;
    set_resample(WD_OP_RESAMPLE_FORWARD, CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, 6, 4, 2);
    bind(WD_RESAMPLE_X, CUDNN_DATA_HALF, n, 61, 111, 113, true);
    bind(WD_RESAMPLE_Y, CUDNN_DATA_HALF, n, 61, 56, 57, true);
}

static void resample_sheet(bool large)
{
    const int64_t n = large ? 64 : 32;
    set_resample(WD_OP_RESAMPLE_BACKWARD, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, CUDNN_ZERO_PAD, 6,
                 4, 2);
    bind(WD_RESAMPLE_BACK_DY, CUDNN_DATA_FLOAT, n, 64, 28, 28, false);
    bind(WD_RESAMPLE_BACK_DX, CUDNN_DATA_FLOAT, n, 64, 56, 56, false);
}

static void set_ring(enum wd_op op, bool large, bool pixels)
{
    const bool back = op == WD_OP_RESAMPLE_BACKWARD;
    const int64_t n = large ? 64 : 32;
    set_resample(op, CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, 4, 4, 0);
    bind(back ? WD_RESAMPLE_BACK_DX : WD_RESAMPLE_X, CUDNN_DATA_HALF, n, 64, 112, 112, pixels);
    bind(back ? WD_RESAMPLE_BACK_DY : WD_RESAMPLE_Y, CUDNN_DATA_HALF, n, 64, 56, 56, pixels);
}

static void ring(bool large)
{
    set_ring(WD_OP_RESAMPLE_FORWARD, large, false);
}

static void ring_back(bool large)
{
    set_ring(WD_OP_RESAMPLE_BACKWARD, large, false);
}

/* Runs of channels, which need aligned pointers. */
static void ring_runs(bool large)
{
    set_ring(WD_OP_RESAMPLE_FORWARD, large, true);
}

static void ring_runs_back(bool large)
{
    set_ring(WD_OP_RESAMPLE_BACKWARD, large, true);
}

/* Enlarged by two, which kernels without rings do unless they blend. */
static void ring_up(bool large)
{
    const int64_t n = large ? 64 : 32;
    set_resample(WD_OP_RESAMPLE_FORWARD, CUDNN_RESAMPLE_BILINEAR, CUDNN_EDGE_VAL_PAD, 4, 1, 1);
    single.node.attr.resample.pad_after[0] = single.node.attr.resample.pad_after[1] = 2;
    bind(WD_RESAMPLE_X, CUDNN_DATA_HALF, n, 64, 56, 56, false);
    bind(WD_RESAMPLE_Y, CUDNN_DATA_HALF, n, 64, 112, 112, false);
}

static void bind_grid(int slot, int64_t n, int64_t rows, int64_t columns)
{
    bind(slot, CUDNN_DATA_HALF, n, rows, columns, 2, false);
}

static void sampler(bool large)
{
    const int64_t side = large ? 96 : 64;
    wd_single_init(&single, WD_OP_SAMPLER_FORWARD);
    bind(SAMPLER_X, CUDNN_DATA_HALF, 64, 128, side / 4 * 3, side / 4 * 3, false);
    bind(SAMPLER_Y, CUDNN_DATA_HALF, 64, 128, side, side, false);
    bind_grid(SAMPLER_GRID, 64, side, side);
}

static void sampler_back(bool large)
{
    const int64_t side = large ? 128 : 96;
    wd_single_init(&single, WD_OP_SAMPLER_BACKWARD);
    bind(SAMPLER_BACK_X, CUDNN_DATA_HALF, 64, 64, side, side, false);
    bind(SAMPLER_BACK_DX, CUDNN_DATA_HALF, 64, 64, side, side, false);
    bind(SAMPLER_BACK_DY, CUDNN_DATA_HALF, 64, 64, side / 2, side / 2, false);
    bind_grid(SAMPLER_BACK_GRID, 64, side / 2, side / 2);
    bind_grid(SAMPLER_BACK_DGRID, 64, side / 2, side / 2);
}

static void concat(bool large)
{
    const int64_t n = large ? 128 : 64;
    wd_single_init(&single, WD_OP_CONCAT);
    single.node.attr.concat.axis = 1;
    single.node.attr.concat.inputs = 4;
    single.node.attr.concat.in_place = -1;
    bind(0, CUDNN_DATA_FLOAT, n, 256, 56, 56, false);
    for (int i = 1; i <= 4; ++i) bind(i, CUDNN_DATA_FLOAT, n, 64, 56, 56, false);
}

/* Which calls use what was prepared: all, or only those on the boundaries, or off them, or on them where nothing is
 * blended; the others are handed on, or need none of it. */
enum use { ALWAYS, ALIGNED, OFF, UNBLENDED };

static const struct {
    const char *engine;
    void (*problem)(bool large);
    enum use use;
} rows[] = {
    {"pool_forward_walk", walk, ALWAYS},
    {"pool_forward_band", band, ALWAYS},
    {"pool_backward_band", band_back, ALWAYS},
    {"pool_backward_sheet", sheet, ALWAYS},
    {"pool_forward_tile", tile, ALWAYS},
    {"pool_backward_tile", tile_back, ALWAYS},
    {"bn_training_channels", batch_norm_channels, UNBLENDED},
    {"bn_backward_channels", batch_norm_back_channels, UNBLENDED},
    {"bn_training_grid", batch_norm, ALIGNED},
    {"bn_backward_grid", batch_norm_back, ALIGNED},
    {"bn_training_vector", batch_norm, ALWAYS},
    {"bn_backward_vector", batch_norm_back, ALWAYS},
    {"bn_inference_vector", batch_norm_inference, ALWAYS},
    {"bn_training_cluster", batch_norm_cluster, ALWAYS},
    {"bn_backward_cluster", batch_norm_back_cluster, ALWAYS},
    {"bn_training_column", batch_norm_column, ALWAYS},
    {"bn_backward_column", batch_norm_back_column, ALWAYS},
    {"bn_inference_column", batch_norm_inference_tall, OFF},
    {"bn_training_chip", batch_norm_chip, ALWAYS},
    {"bn_backward_chip", batch_norm_back_chip, ALWAYS},
    {"bn_backward_small", batch_norm_back_chip, ALIGNED},
    {"norm_training_rows", layer_norm, ALWAYS},
    {"norm_backward_rows", layer_norm_back, ALWAYS},
    {"norm_inference_rows", layer_norm_inference, ALWAYS},
    {"norm_training_spot", norm_spot, OFF},
    {"norm_training_clusters", norm_clusters, ALIGNED},
    {"norm_backward_clusters", norm_clusters_back, ALIGNED},
    {"norm_inference_clusters", norm_clusters_inference, ALIGNED},
    {"norm_training_shares", norm_shares, ALIGNED},
    {"norm_backward_shares", norm_shares_back, ALIGNED},
    {"norm_training_samples", norm_samples, ALIGNED},
    {"norm_backward_samples", norm_samples_back, ALIGNED},
    {"norm_inference_samples", norm_samples_inference, ALIGNED},
    {"norm_training_kept", norm_kept, ALWAYS},
    {"norm_backward_kept", norm_kept_back, ALWAYS},
    {"norm_training_groups", norm_groups, ALWAYS},
    {"norm_backward_groups", norm_groups_back, ALWAYS},
    {"norm_inference_groups", norm_inference, ALWAYS},
    {"norm_inference_groups", norm_inference_kept, ALWAYS},
    {"norm_inference_groups", norm_inference_given, ALWAYS},
    {"resample_forward_pool", resample_band, ALWAYS},
    {"resample_backward_pool", resample_sheet, ALWAYS},
    {"resample_forward_ring", ring, ALWAYS},
    {"resample_backward_ring", ring_back, ALWAYS},
    {"resample_forward_ring", ring_runs, ALWAYS},
    {"resample_backward_ring", ring_runs_back, ALWAYS},
    {"resample_forward_ring", ring_up, ALWAYS},
    {"softmax_forward_clusters", softmax, UNBLENDED},
    {"softmax_backward_clusters", softmax_back, UNBLENDED},
    {"concat_copy", concat, ALWAYS},
    {"sampler_forward_windows", sampler, ALWAYS},
    {"sampler_backward_chunks", sampler_back, UNBLENDED},
    {"sampler_backward_gather", sampler_back, ALWAYS},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

#endif
