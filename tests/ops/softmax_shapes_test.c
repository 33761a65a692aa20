/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over rows and columns of every length, few and many, on both sides of each limit at which an
 * engine takes another way; and of tensors that begin at any element. */
#include <stdlib.h>

#include "kernels_reached.h"
#include "softmax_case.h"

/* Rows on both sides of every limit between one item a row, one reduction, and one in pieces. */
static void shape_case(int algorithm, int mode, int n, int channels, int width, int type)
{
    struct softmax_call c = {(cudnnSoftmaxAlgorithm_t)algorithm, (cudnnSoftmaxMode_t)mode,
                             .alpha = 1.0};
    int dim[4] = {n, channels, 1, width};
    if (!case_begin("softmax/shape/algo%d/mode%d/%d,%d,%d/%s", algorithm, mode, n, channels, width,
                    softmax_type_name[type])) {
        return;
    }
    c.x = part_input(softmax_types[type], 4, dim, LAYOUT_NCHW, NULL, -8.0, 8.0);
    c.y = part_output(softmax_types[type], 4, dim, LAYOUT_NCHW, NULL, true);
    softmax_run_forward(&c);
    c.y->whole->output = false;
    c.y = part_input(softmax_types[type], 4, dim, LAYOUT_NCHW, NULL,
                     algorithm == CUDNN_SOFTMAX_LOG ? -16.0 : 0.0,
                     algorithm == CUDNN_SOFTMAX_LOG ? -8.0 : 0.01);
    c.dy = part_input(softmax_types[type], 4, dim, LAYOUT_NCHW, NULL, -2.0, 2.0);
    c.dx = part_output(softmax_types[type], 4, dim, LAYOUT_NCHW, NULL, true);
    softmax_run_backward(&c);
    parts_free();
    case_end();
}

static struct part packed_after(const struct tensor *whole, const int *dim)
{
    struct part p = {.whole = (struct tensor *)whole, .rank = 4, .count = 1};
    for (int d = 0; d < 4; ++d) {
        p.dim[d] = dim[d];
        p.count *= dim[d];
    }
    cudnnCreateTensorDescriptor(&p.desc);
    cudnnSetTensor4dDescriptor(p.desc, CUDNN_TENSOR_NCHW, whole->dtype, dim[0], dim[1], dim[2],
                               dim[3]);
    return p;
}

/* Tensors that begin off the boundaries of 16 bytes, alike or each in its own way. */
static void skip_case(int mode, int n, int channels, int width, int type, bool alike, double beta)
{
    static const int algorithms[] = {CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG};
    for (int i = 0; i < 2; ++i) {
        struct softmax_call c = {.algorithm = (cudnnSoftmaxAlgorithm_t)algorithms[i],
                                 .mode = (cudnnSoftmaxMode_t)mode,
                                 .alpha = beta == 0.0 ? 1.0 : 1.5,
                                 .beta = beta,
                                 .skips = true,
                                 .x_skip = 1,
                                 .y_skip = alike ? 1 : 2,
                                 .dy_skip = alike ? 1 : 0,
                                 .dx_skip = alike ? 1 : 3};
        bool log_form = c.algorithm == CUDNN_SOFTMAX_LOG;
        int dim[4] = {n, channels, 1, width};
        int whole[4] = {1, 1, 1, n * channels * width + 9};
        struct part x, y, dy, dx;
        if (!case_begin("softmax/skip/algo%d/mode%d/%d,%d,%d/%s/%s", algorithms[i], mode, n,
                        channels, width, softmax_type_name[type], alike ? "alike" : "apart")) {
            continue;
        }
        x = packed_after(tensor_input(softmax_types[type], 4, whole, LAYOUT_NCHW, -8.0, 8.0), dim);
        y = packed_after(tensor_inout(softmax_types[type], 4, whole, LAYOUT_NCHW, -4.0, 4.0), dim);
        c.x = &x;
        c.y = &y;
        softmax_run_forward(&c);
        cudnnDestroyTensorDescriptor(y.desc);
        y.whole->output = false;
        y = packed_after(tensor_input(softmax_types[type], 4, whole, LAYOUT_NCHW,
                                      log_form ? -16.0 : 0.0, log_form ? -8.0 : 0.01),
                         dim);
        dy = packed_after(tensor_input(softmax_types[type], 4, whole, LAYOUT_NCHW, -2.0, 2.0), dim);
        dx = packed_after(tensor_inout(softmax_types[type], 4, whole, LAYOUT_NCHW, -4.0, 4.0), dim);
        c.dy = &dy;
        c.dx = &dx;
        softmax_run_backward(&c);
        cudnnDestroyTensorDescriptor(x.desc);
        cudnnDestroyTensorDescriptor(y.desc);
        cudnnDestroyTensorDescriptor(dy.desc);
        cudnnDestroyTensorDescriptor(dx.desc);
        case_end();
    }
}

/* Rows of clusters: of one turn and of several, so that all of what a turn leaves is used again; some whose last block has less than the
 * others; long ones, of which backward has no room; and short ones, which are others' forward. */
static void cluster_shapes(void)
{
    static const struct {
        int rows, units, type;
    } list[] = {{10, 33000, 0}, {10, 33000, 2}, {10, 33000, 3}, {43, 33000, 0}, {31, 33000, 2},
                {29, 33000, 3}, {10, 52161, 2}, {10, 66001, 0}, {10, 65537, 3}, {5, 131072, 2},
                {47, 16032, 2}, {47, 20011, 0}, {30, 32064, 3}};
    for (int i = 0; i < (int)(sizeof list / sizeof *list); ++i) {
        int length = list[i].units * (list[i].type == 0 ? 4 : 8);
        shape_case(i % 2 ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE, 0, list[i].rows, length, 1,
                   list[i].type);
        if (i < 3)
            shape_case(i % 2 ? CUDNN_SOFTMAX_ACCURATE : CUDNN_SOFTMAX_LOG, 0, list[i].rows, length,
                       1, list[i].type);
    }
}

/* Rows and columns on both sides of what lanes, a warp, a block and a cluster hold, and of what is worth
 * a tile. */
static void gpu_shapes(void)
{
    static const int lengths[] = {1,   2,   3,   4,   5,    8,    31,   33,   64,  127,
                                  250, 256, 257, 513, 1000, 1024, 1025, 2049, 4097};
    static const int many[] = {9, 500, 1000, 2048, 2049}; /* channels */
    for (int type = 0; type < 4; ++type) {
        int run = type == 0 ? 4 : type == 1 ? 2 : 8; /* elements of 16 bytes */
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
            int algorithm = (int)(i % 3);
            shape_case(algorithm, 0, 37, lengths[i], 1, type);
            skip_case(0, 3, lengths[i], 1, type, true, i % 2 ? 0.0 : 0.5);
            if (i % 3 == 0) skip_case(0, 3, lengths[i], 1, type, false, 0.5);
        }
        for (size_t i = 0; i < sizeof many / sizeof *many; ++i) {
            int algorithm = (int)((i + type) % 3);
            shape_case(algorithm, 1, 2, many[i], 49, type);
            shape_case(algorithm, 1, 2, many[i], 16, type);
        }
        shape_case(type % 3, 1, 3, 3, 3136, type);
        shape_case(type % 3, 1, 70, 21, 48, type);
        shape_case(type % 3, 1, 2, 19, 3135, type);
        shape_case(type % 3, 1, 1, 9000, 6, type);
        shape_case(type % 3, 1, 1, 17000, 8, type);
        skip_case(1, 2, 21, 64, type, true, 0.0);
        skip_case(1, 2, 700, 7, type, false, 0.5);
        /* many rows of a warp each */
        shape_case(type % 3, 0, 530, 100 * run, 1, type);
        shape_case(type % 3, 0, 529, 180 * run, 1, type);
        skip_case(0, 531, 200 * run - 3, 1, type, true, 0.0);
        shape_case(type % 3, 0, 2, 50257, 1, type);
        /* many rows of a block's registers each, and such as lie elsewhere */
        shape_case(type % 3, 0, 530, 270 * run, 1, type);
        if (type == 0 || type == 3) skip_case(0, 529, 264 * run, 1, type, true, 0.0);
        /* tiles of odd rows, and tensors that lie apart */
        shape_case(type % 3, 0, 180001, 3, 1, type);
        shape_case((type + 1) % 3, 1, 26003, 21, 1, type);
        shape_case((type + 2) % 3, 0, 2800, 197, 1, type);
        shape_case(type % 3, 0, 1100, 513, 1, type);
        skip_case(0, 53003, 10, 1, type, true, 0.5);
        skip_case(0, 1101, 515, 1, type, true, 0.0);
        shape_case((type + 2) % 3, 0, 530, 1023, 1, type);
        shape_case(type % 3, 1, 18001, 30, 1, type);
        skip_case(0, 2700, 202, 1, type, true, 0.0);
        skip_case(0, 140001, 4, 1, type, true, 0.0);
        skip_case(0, 2700, 201, 1, type, false, 0.5);
        skip_case(0, 28001, 19, 1, type, false, 0.0);
        skip_case(0, 530, 300, 1, type, false, 0.5);
        skip_case(0, 5, 200, 1, type, false, 0.0);
        /* all channels in a thread: runs, words, odd positions */
        shape_case(type % 3, 1, 9, 3, 8000, type);
        shape_case((type + 1) % 3, 1, 10, 7, 7200, type);
        shape_case((type + 2) % 3, 1, 7, 19, 2602, type);
        shape_case(type % 3, 1, 4, 32, 2601, type);
        skip_case(1, 9, 5, 2000, type, true, 0.5);
        skip_case(1, 9, 4, 2001, type, false, 0.0);
        shape_case((type + 1) % 3, 0, 67, 5001, 1, type);
    }
    /* tiles of rows that are whole runs, as many as threads hold, and begin elsewhere */
    for (int length = 32; length <= 512; length *= 2) {
        const int rows = (1 << 20) / 2 / length + 531; /* of two bytes, more than a MiB */
        for (int type = 0; type < 4; ++type) {
            if (type != 1) skip_case(0, rows, length, 1, type, true, length == 128 ? 0.5 : 0.0);
        }
        skip_case(0, rows, length - 8, 1, 0, true, 0.0);
    }
    /* columns of 16 bits that begin anywhere, by words: several blocks, one, and channels of even lengths */
    for (int type = 2; type < 4; ++type) {
        shape_case(type % 3, 1, 14, 1023, 301, type);
        shape_case((type + 1) % 3, 1, 27, 600, 251, type);
        shape_case((type + 2) % 3, 1, 250, 96, 189, type);
        skip_case(1, 60, 350, 190, type, true, 0.0);
        skip_case(1, 61, 349, 191, type, true, 0.0);
    }
    if (harness_on_gpu) {
        /* as clusters have them, but apart and blended */
        skip_case(0, 10, 132000, 1, 0, false, 0.5);
        /* rows of clusters whose blocks are alone on a processor, more than are there at once */
        skip_case(0, 18, 400003, 1, 2, true, 0.0);
    }
    /* rows of a thread */
    for (int length = 1; length < 8; ++length) {
        shape_case(length % 3, 0, 200003 / length, length, 1, length % 4);
        skip_case(0, 200001 / length, length, 1, (length + 2) % 4, length != 5,
                  length % 2 ? 0.0 : 0.5);
    }
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 2, 128000, 1, 0);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 528, 4500, 1, 0);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 1, 128001, 1, 3);
    skip_case(0, 1, 600001, 1, 2, true, 0.0);
    skip_case(0, 1, 1000001, 1, 2, true, 0.5);
    shape_case(CUDNN_SOFTMAX_LOG, 0, 1, 1000003, 1, 3);
    shape_case(CUDNN_SOFTMAX_LOG, 0, 2, 1000003, 1, 0);
    skip_case(0, 2, 300001, 1, 1, true, 0.5);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 1, 1, 70001, 3, 0);
    shape_case(CUDNN_SOFTMAX_LOG, 1, 1, 140000, 4, 2);
}

static const char *const kernels[] = {
    "wd_softmax_staged_f32",
    "wd_softmax_staged_f16",
    "wd_softmax_staged_bf16",
    "wd_softmax_gradient_staged_f32",
    "wd_softmax_gradient_staged_f16",
    "wd_softmax_gradient_staged_bf16",
    "wd_softmax_short_f32",
    "wd_softmax_short_f16",
    "wd_softmax_short_bf16",
    "wd_softmax_gradient_short_f32",
    "wd_softmax_gradient_short_f16",
    "wd_softmax_gradient_short_bf16",
    "wd_softmax_few8",
    "wd_softmax_few16",
    "wd_softmax_few32",
    "wd_softmax_few8_f64",
    "wd_softmax_few16_f64",
    "wd_softmax_direct8",
    "wd_softmax_direct32",
    "wd_softmax_direct8_f64",
    "wd_softmax_gradient_few8",
    "wd_softmax_gradient_few16",
    "wd_softmax_gradient_few32",
    "wd_softmax_gradient_few8_f64",
    "wd_softmax_gradient_few16_f64",
    "wd_softmax_gradient_direct8",
    "wd_softmax_gradient_direct32",
    "wd_softmax_gradient_direct8_f64",
    "wd_softmax_columns_runs",
    "wd_softmax_columns_one",
    "wd_softmax_columns_one_f64",
    "wd_softmax_columns_long",
    "wd_softmax_columns_long_f64",
    "wd_softmax_columns_pairs_f16",
    "wd_softmax_columns_pairs_bf16",
    "wd_softmax_columns_wide8",
    "wd_softmax_columns_word32",
    "wd_softmax_columns_odd32",
    "wd_softmax_gradient_columns_runs",
    "wd_softmax_gradient_columns_f16",
    "wd_softmax_gradient_columns_bf16",
    "wd_softmax_gradient_columns_one",
    "wd_softmax_gradient_columns_one_f64",
    "wd_softmax_gradient_columns_long",
    "wd_softmax_gradient_columns_long_f64",
    "wd_softmax_gradient_columns_wide8",
    "wd_softmax_gradient_columns_odd32",
    "wd_softmax_block_f32",
    "wd_softmax_block_f64",
    "wd_softmax_block_f16",
    "wd_softmax_block_bf16",
    "wd_softmax_sums_f32",
    "wd_softmax_sums_f64",
    "wd_softmax_sums_f16",
    "wd_softmax_sums_bf16",
    "wd_softmax_spread_f32",
    "wd_softmax_spread_f64",
    "wd_softmax_spread_f16",
    "wd_softmax_spread_bf16",
    "wd_softmax_stray_f32",
    "wd_softmax_stray_f64",
    "wd_softmax_stray_f16",
    "wd_softmax_stray_bf16",
    "wd_softmax_gradient_block_f32",
    "wd_softmax_gradient_block_f64",
    "wd_softmax_gradient_block_f16",
    "wd_softmax_gradient_block_bf16",
    "wd_softmax_gradient_sums_f32",
    "wd_softmax_gradient_sums_f64",
    "wd_softmax_gradient_sums_f16",
    "wd_softmax_gradient_sums_bf16",
    "wd_softmax_gradient_spread_f32",
    "wd_softmax_gradient_spread_f64",
    "wd_softmax_gradient_spread_f16",
    "wd_softmax_gradient_spread_bf16",
    "wd_softmax_gradient_stray_f32",
    "wd_softmax_gradient_stray_f64",
    "wd_softmax_gradient_stray_f16",
    "wd_softmax_gradient_stray_bf16",
    "wd_softmax_clusters_forward_f32",
    "wd_softmax_clusters_forward_f16",
    "wd_softmax_clusters_forward_bf16",
    "wd_softmax_clusters_backward_f32",
    "wd_softmax_clusters_backward_f16",
    "wd_softmax_clusters_backward_bf16",
};

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int algorithm = 0; algorithm < 3; ++algorithm) {
        shape_case(algorithm, 1, 1, 1, 1, 0);
        shape_case(algorithm, 1, 2, 1000, 7, 0);
        shape_case(algorithm, 0, 2, 1000, 7, 0);
        shape_case(algorithm, 1, 3, 50000, 1, 1);
        shape_case(algorithm, 0, 3, 7, 9001, 3);
    }
    shape_case(CUDNN_SOFTMAX_LOG, 1, 1, 33, 65537, 0);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 65537, 3, 11, 2);
    shape_case(CUDNN_SOFTMAX_ACCURATE, 0, 1, 1, 1000000, 0);
    gpu_shapes();
    if (harness_usual_order()) cluster_shapes();
    if (argc == 1) {
        kernels_reached(kernels, (int)(sizeof kernels / sizeof *kernels));
    }
    return harness_finish();
}
