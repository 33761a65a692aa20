/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of one stream that have the same counters: blocks that meet leave a bit in one behind them, others draw their
 * work from it, and each has to find it as it wants it, whatever ran before. So what meets, random tensors and rows whose
 * blocks draw take turns, an odd number of meetings between them and an even one. */
#include "norm_groups_case.h"
#include "norms_graph.h"
#include "rng_case.h"

enum { ROUNDS = 3 };

/* Tiles more than warps, of channels last and two bytes: they are drawn. */
static void random_tiles(int round)
{
    static const struct rng_distribution normal = {CUDNN_RNG_DISTRIBUTION_NORMAL, 0.0, 1.0};
    static const int dim[4] = {140, 2048, 3, 3};
    if (!case_begin("counters/rng/%d", round)) return;
    rng_draw(&normal, CUDNN_DATA_HALF, 4, dim, LAYOUT_NHWC, 0);
    case_end();
}

/* Rows more than clusters, which draw them. */
static void rows(int round)
{
    static const struct norm_groups_options o = {LAYOUT_NCHW, false, -3.0, 3.0};
    enum { ROWS = 2120, COLUMNS = 12288 };
    struct norms_case c = {.mode = CUDNN_LAYER_NORM, .phase = NORMS_TRAINING};
    struct graph_run r = {.count = 0};
    struct norms_inputs in;
    be_desc op;
    if (!case_begin("counters/rows/%d", round)) return;
    c.x_type = c.y_type = CUDNN_DATA_BFLOAT16;
    c.param_type = c.stat_type = CUDNN_DATA_FLOAT;
    c.bias = c.statistics = true;
    c.epsilon = 0x1p-17;
    c.rank = 4;
    for (int d = 0; d < c.rank; ++d) c.dim[d] = c.scale_dim[d] = c.stat_dim[d] = 1;
    c.dim[0] = c.stat_dim[0] = ROWS;
    c.dim[1] = c.scale_dim[1] = COLUMNS;
    norm_groups_tensors(&c, &o);
    in = norms_inputs(&c);
    op = norms_operation(&r, &c);
    if (graph_run(&r, 1, &op) && harness_values) norms_judge(&c, &in);
    norms_inputs_free(&in);
    be_free_all();
    case_end();
}

int main(int argc, char **argv)
{
    /* a sample that blocks share: one meeting */
    static const struct norm_groups_image shared = {1, 2, 1, {720, 720}};
    static const char *const names[ROUNDS] = {"counters/0", "counters/1", "counters/2"};
    harness_start(argc, argv);
    norm_groups_fp32_params = true; /* never by the engine that reads twice, which does not meet */
    for (int round = 0; round < ROUNDS; ++round) {
        random_tiles(round);
        rows(round);
        norm_groups_image(&shared, names[round], 0, NORMS_TRAINING, 0, false);
    }
    return harness_finish();
}
