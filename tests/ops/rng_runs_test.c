/* SPDX-License-Identifier: Apache-2.0
 *
 * Random tensors so large that a thread makes eight runs of them, and 24: whole blocks of threads and a part of
 * one, on the boundaries of 16 bytes and off them; and tiles more than there are warps that turn them, one or two a tile. */
#include "rng_case.h"

int main(int argc, char **argv)
{
    enum {
        WARPS = 1024,      /* a processor, from which it is eight, ... */
        WARPS_MORE = 2750, /* ... and 24 */
        RUN = 32,          /* lanes that have a run of 16 bytes */
        MOST = 132,        /* processors */
    };
    static const struct {
        struct rng_distribution d;
        int type;
        int each; /* elements of a run */
        int warps;
    } list[] = {
        {{CUDNN_RNG_DISTRIBUTION_NORMAL, 2.0, 3.0}, CUDNN_DATA_FLOAT, 4, WARPS},
        {{CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.3, 0}, CUDNN_DATA_INT8, 16, WARPS},
        {{CUDNN_RNG_DISTRIBUTION_NORMAL, 2.0, 3.0}, CUDNN_DATA_FLOAT, 4, WARPS_MORE},
    };
    setenv("FAKECUDA_PROCESSORS", "1", 0); /* with 132 the emulator would take long */
    harness_start(argc, argv);
    const int processors = harness_on_gpu && !getenv("WARPDNN_CUDA_DRIVER") ? MOST : 1;
    for (size_t k = 0; k < sizeof list / sizeof list[0]; ++k) {
        const bool many = list[k].warps > WARPS;
        for (int odd = 0; odd < 4; odd += many ? 3 : 1) {
            const int more = odd % 2 ? 12345 : 0;
            const int dim[2] = {2, (list[k].warps * RUN * list[k].each * processors + more) / 2};
            if (!case_begin("rng %s runs of %s odd %d", many ? "more" : "eight",
                            rng_kind_name[list[k].d.kind], odd))
                continue;
            rng_draw(&list[k].d, list[k].type, 2, dim, LAYOUT_NCHW, odd);
            case_end();
        }
    }
    /* 32 warps of a processor's block have 64 tiles, 15 pairs of warps 17; the last tile of a row is narrow */
    for (int pairs = 0; pairs < 2; ++pairs) {
        static const struct {
            struct rng_distribution d;
            int type;
        } tiles[] = {{{CUDNN_RNG_DISTRIBUTION_NORMAL, 0.0, 1.0}, CUDNN_DATA_HALF},
                     {{CUDNN_RNG_DISTRIBUTION_NORMAL, 0.0, 1.0}, CUDNN_DATA_FLOAT},
                     {{CUDNN_RNG_DISTRIBUTION_UNIFORM, -1.0, 2.0}, CUDNN_DATA_BFLOAT16},
                     {{CUDNN_RNG_DISTRIBUTION_UNIFORM, -1.0, 2.0}, CUDNN_DATA_FLOAT},
                     {{CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.3, 0}, CUDNN_DATA_HALF},
                     {{CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.3, 0}, CUDNN_DATA_FLOAT}};
        const int dim[4] = {(pairs ? 1 : 2) * processors, pairs ? 1032 : 2000, pairs ? 5 : 3,
                            pairs ? 13 : 3};
        for (size_t k = 0; k < sizeof tiles / sizeof tiles[0]; ++k) {
            if (!case_begin("rng tiles of %s, %s %s", pairs ? "two warps" : "a warp",
                            rng_kind_name[tiles[k].d.kind], node_type_name[tiles[k].type]))
                continue;
            rng_draw(&tiles[k].d, tiles[k].type, 4, dim, LAYOUT_NHWC, 0);
            case_end();
        }
    }
    /* tiles as large as there are, where a processor has several; whose ends are no whole runs */
    for (int k = 0; k < 3; ++k) {
        static const struct rng_distribution uniform = {CUDNN_RNG_DISTRIBUTION_UNIFORM, -1.0, 2.0};
        const int dim[4] = {(k < 2 ? 2 : 8) * processors, 61, k < 2 ? 30 : 7, k < 2 ? 31 : 13};
        if (!case_begin("rng large tiles %d,%d odd %d", dim[2], dim[3], k == 1)) continue;
        rng_draw(&uniform, CUDNN_DATA_FLOAT, 4, dim, LAYOUT_NHWC, k == 1);
        case_end();
    }
    return harness_finish();
}
