/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance and group norm of samples that the chip holds, channels last, which are added up while others are written: one turn and
 * several, the last with fewer samples, one round of a block and several, rows that end within a round, sets of all
 * kinds, in place, NaN, and off the boundaries, where another engine has them. A driver that is a stand-in says that its device has
 * few processors, so that little is much. */
#include "norm_samples_case.h"

#define PROCESSORS "18"

const char *const samples_engines[] = {"norm_inference_staged", "norm_training_staged",
                                       "norm_backward_staged"};

int main(int argc, char **argv)
{
    static const struct shape
        /* of 18 processors: one turn, several, the last of fewer samples, and a ring that goes round */
        once = {3, 64, 0, 105, {290, 291}},
        some = {7, 64, 0, 90, {190, 191}}, ring = {3, 32, 0, 160, {410, 411}},
        turns = {5, 32, 0, 130, {318, 319}},
        /* sets: eight channels and more, four, a single one, and of units that begin in one and end in the next */
        eights = {5, 96, 12, 67, {184, 185}}, fours = {4, 32, 8, 130, {355, 356}},
        all = {5, 40, 1, 103, {284, 285}}, tens = {6, 320, 32, 47, {92, 93}},
        wide = {9, 1280, 32, 23, {38, 39}}, odd = {5, 72, 8, 77, {212, 213}},
        /* many samples, and many sets */
        alone = {40, 16, 2, 66, {159, 160}}, many = {4, 160, 0, 58, {159, 160}},
        /* larger than the ring: a turn, several, and one that is little more */
        deep = {1, 32, 8, 363, {750, 750}}, pair = {2, 64, 0, 400, {600, 601}},
        three = {3, 320, 32, 84, {220, 221}}, little = {1, 96, 3, 145, {410, 411}},
        /* with channels first */
        planes = {2, 3, 0, 728, {1640, 1640}}, large = {3, 2, 0, 844, {2000, 2000}},
        volumes = {1, 2, 0, 1480, {3904, 3904}};
    samples_untried = true;
    stands_in = getenv("WARPDNN_CUDA_DRIVER") != NULL;
    listed = getenv("WARPDNN_TEST_CASES") != NULL;
    if (stands_in) setenv("FAKECUDA_PROCESSORS", PROCESSORS, 0);
    harness_start(argc, argv);
    run("once", &once, NORMS_TRAINING, CUDNN_DATA_HALF, ON_DEVICE);
    run("some", &some, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("some", &some, NORMS_INFERENCE, CUDNN_DATA_HALF, ON_DEVICE);
    run("ring", &ring, NORMS_TRAINING, CUDNN_DATA_HALF, IN_PLACE | ON_DEVICE);
    run("eights", &eights, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("fours", &fours, NORMS_TRAINING, CUDNN_DATA_HALF, WITH_NAN | ON_DEVICE);
    run("all", &all, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, IN_PLACE | ON_DEVICE);
    run("tens", &tens, NORMS_TRAINING, CUDNN_DATA_HALF, ON_DEVICE);
    run("wide", &wide, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("odd", &odd, NORMS_TRAINING, CUDNN_DATA_HALF, ON_DEVICE);
    run("ring", &ring, NORMS_INFERENCE, CUDNN_DATA_BFLOAT16, IN_PLACE | ON_DEVICE);
    run("alone", &alone, NORMS_TRAINING, CUDNN_DATA_HALF, ON_DEVICE);
    run("many", &many, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("far", &tens, NORMS_TRAINING, CUDNN_DATA_HALF, FAR | ON_DEVICE);
    run("far", &some, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, FAR | ON_DEVICE);
    run("far", &pair, NORMS_TRAINING, CUDNN_DATA_HALF, FAR | ON_DEVICE);
    run("far", &eights, NORMS_BACKWARD, CUDNN_DATA_HALF, FAR | ON_DEVICE);
    run("deep", &deep, NORMS_TRAINING, CUDNN_DATA_HALF, WITH_NAN | ON_DEVICE);
    run("pair", &pair, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, IN_PLACE | ON_DEVICE);
    run("pair", &pair, NORMS_INFERENCE, CUDNN_DATA_HALF, ON_DEVICE);
    run("three", &three, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("little", &little, NORMS_TRAINING, CUDNN_DATA_HALF, ON_DEVICE);
    run("off", &some, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, OFF | ON_DEVICE);
    run("once", &once, NORMS_BACKWARD, CUDNN_DATA_HALF, ON_DEVICE);
    run("some", &some, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("turns", &turns, NORMS_BACKWARD, CUDNN_DATA_HALF, IN_PLACE | ON_DEVICE);
    run("eights", &eights, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("fours", &fours, NORMS_BACKWARD, CUDNN_DATA_HALF, WITH_NAN | ON_DEVICE);
    run("all", &all, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, IN_PLACE | ON_DEVICE);
    run("tens", &tens, NORMS_BACKWARD, CUDNN_DATA_HALF, ON_DEVICE);
    run("wide", &wide, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("odd", &odd, NORMS_BACKWARD, CUDNN_DATA_HALF, ON_DEVICE);
    run("alone", &alone, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("many", &many, NORMS_BACKWARD, CUDNN_DATA_HALF, ON_DEVICE);
    run("no_dscale", &odd, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, NO_DSCALE | ON_DEVICE);
    run("no_dbias", &once, NORMS_BACKWARD, CUDNN_DATA_HALF, NO_DBIAS | ON_DEVICE);
    run("no_params", &odd, NORMS_BACKWARD, CUDNN_DATA_HALF, NO_PARAMS | ON_DEVICE);
    run("no_params", &some, NORMS_BACKWARD, CUDNN_DATA_HALF, NO_PARAMS | ON_DEVICE);
    run("off", &eights, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, OFF | ON_DEVICE);
    samples_layout = LAYOUT_NCHW;
    run("planes", &planes, NORMS_TRAINING, CUDNN_DATA_HALF, WITH_NAN | ON_DEVICE);
    run("planes", &planes, NORMS_INFERENCE, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    run("large", &large, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, IN_PLACE | ON_DEVICE);
    run("volumes", &volumes, NORMS_TRAINING, CUDNN_DATA_HALF, ON_DEVICE);
    run("planes", &planes, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("large", &large, NORMS_BACKWARD, CUDNN_DATA_HALF, IN_PLACE | ON_DEVICE);
    run("planes_no_params", &planes, NORMS_BACKWARD, CUDNN_DATA_HALF, NO_PARAMS | ON_DEVICE);
    run("planes_off", &planes, NORMS_BACKWARD, CUDNN_DATA_HALF, OFF | ON_DEVICE);
    return harness_finish();
}
