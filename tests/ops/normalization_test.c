/* SPDX-License-Identifier: Apache-2.0
 *
 * The newer interface of normalization (cudnnNormalization*): training and backward with every
 * operation and both algorithms, of random shapes, and inference with residual and activation, which
 * batch normalization's own interface has not. */
#include "norm_random.h"

static const char *const ops_names[] = {"norm", "act", "add_act"};

static void random_cases(int turns)
{
    for (int d = 0; d < NORM_DTYPES; ++d) {
        for (int mode = 0; mode < 2; ++mode) {
            for (int ops = 0; ops < 3; ++ops) {
                for (int turn = 0; turn < 2 * turns; ++turn) {
                    bool trains = turn < turns;
                    struct norm_case c = {.newer = true, .ex = true, .forward = trains};
                    if (!case_begin("%s/%s/mode%d/%s/%d", trains ? "training" : "inference",
                                    norm_dtype_names[d], mode, ops_names[ops], turn % turns)) {
                        continue;
                    }
                    norm_random(&c, norm_dtypes[d], mode, ops);
                    c.algo = random_of(CUDNN_NORM_ALGO_STANDARD, CUDNN_NORM_ALGO_PERSIST);
                    c.backward = trains && turn > 0;
                    if (trains) norm_run(&c, (struct norm_range){-3.0, 3.0});
                    else norm_run_inference(&c);
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    random_cases(4);
    return harness_finish();
}
