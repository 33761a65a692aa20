/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance and group norm of samples that the chip holds, channels last, which are added up while others are written,
 * of larger ones, and of planes: one turn and several, the last with fewer samples, one round of a block and several,
 * rows that end within a round, sets of all kinds, in place, NaN, and off the boundaries, where another engine has
 * them; and launches one after the other, also of another engine's kernel that has the board. A driver that is a
 * stand-in says that its device has few processors, so that little is much. */
#include "norm_samples_case.h"

#define PROCESSORS "18"

const char *const samples_engines[] = {"norm_inference_staged", "norm_training_staged",
                                       "norm_backward_staged"};

/* Of a case of these engines and one of another. */
struct plans {
    struct graph_run run[2];
};

/* The banks of the board are had in turn, whoever has them. */
static cudnnStatus_t execute_in_turn(void *context)
{
    static const int order[] = {0, 1, 0, 0, 1};
    struct plans *p = context;
    for (int i = 0; i < 5; ++i) {
        cudnnStatus_t status = graph_execute(&p->run[order[i]]);
        if (status) return status;
    }
    return CUDNN_STATUS_SUCCESS;
}

static void in_turn(const struct shape *own, enum norms_phase phase, const struct shape *other,
                    const char *engine)
{
    struct plans p = {.run[0].count = 0};
    struct norms_case c[2];
    struct norms_inputs in[2];
    if (!case_begin("%s/in_turn/%dx%dg%d", norms_phase_names[phase], own->samples, own->channels,
                    own->groups))
        return;
    c[0] = case_of(own, phase, CUDNN_DATA_HALF, 0);
    c[1] = case_of(other, NORMS_TRAINING, CUDNN_DATA_HALF, 0);
    for (int i = 0; i < 2; ++i) {
        struct graph_run *r = &p.run[i];
        const be_desc op = norms_operation(r, &c[i]);
        int64_t bytes;
        in[i] = norms_inputs(&c[i]);
        r->plan = be_plan_of(harness_handle, 1, &op);
        bytes = be_workspace(r->plan);
        r->pack = be_pack(r->count, r->uid, r->data, bytes > 0 ? tensor_bytes(bytes)->data : NULL);
    }
    if (run_call(execute_in_turn, &p)) {
        for (int i = 0; i < 2; ++i) norms_judge(&c[i], &in[i]);
        if (is_large()) ran_last(engine);
    }
    for (int i = 0; i < 2; ++i) norms_inputs_free(&in[i]);
    be_free_all();
    case_end();
}

int main(int argc, char **argv)
{
    static const struct shape
        /* of 18 processors: one turn, several, the last of fewer samples, and a ring that goes round */
        once = {3, 64, 0, 105, {290, 291}},
        some = {7, 64, 0, 90, {190, 191}}, ring = {3, 32, 0, 160, {410, 411}},
        turns = {5, 32, 0, 130, {318, 319}}, ten = {10, 32, 0, 128, {404, 405}},
        /* sets: eight channels and more, four, a single one, and of units that begin in one and end in the next */
        eights = {5, 96, 12, 67, {184, 185}}, fours = {4, 32, 8, 130, {355, 356}},
        all = {5, 40, 1, 103, {284, 285}}, tens = {6, 320, 32, 47, {92, 93}},
        wide = {9, 1280, 32, 23, {38, 39}}, odd = {5, 72, 8, 77, {212, 213}},
        /* many samples, and many sets */
        alone = {40, 16, 2, 66, {159, 160}}, many = {4, 160, 0, 58, {159, 160}},
        /* larger than the ring: a turn, several, and one that is little more */
        deep = {1, 32, 8, 363, {750, 750}}, pair = {2, 64, 0, 400, {600, 601}},
        three = {3, 320, 32, 84, {220, 221}}, little = {1, 96, 3, 145, {410, 411}},
        again = {5, 96, 3, 180, {410, 411}},
        /* of another engine: groups of five */
        fives = {1, 40, 8, 230, {670, 671}},
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
    run("again", &again, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, ON_DEVICE);
    in_turn(&once, NORMS_TRAINING, &fives, "norm_training_samples");
    in_turn(&turns, NORMS_BACKWARD, &fives, "norm_training_samples");
    run("off", &some, NORMS_TRAINING, CUDNN_DATA_BFLOAT16, OFF | ON_DEVICE);
    run("once", &once, NORMS_BACKWARD, CUDNN_DATA_HALF, ON_DEVICE);
    run("some", &some, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, WITH_NAN | ON_DEVICE);
    run("turns", &turns, NORMS_BACKWARD, CUDNN_DATA_HALF, IN_PLACE | ON_DEVICE);
    run("ten", &ten, NORMS_BACKWARD, CUDNN_DATA_BFLOAT16, ON_DEVICE);
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
