/* SPDX-License-Identifier: Apache-2.0
 *
 * Group norm and instance norm of shares that no cluster holds, with channels first: teams of blocks that are there at once have
 * one after the other, of one channel and of several. Fixed and random; a driver that is a stand-in says that its device has few
 * processors, so that smaller shares are large. That these go to teams, unit/shares_test.c sees. */
#include <stdlib.h>

#include "norm_groups_case.h"

#define PROCESSORS "40"

/* Shares of 16 bytes times `units` and up to a sixteenth more. */
static const struct {
    int shares, units;
} near[] = {{13, 205000}, {5, 165000}, {3, 215000}},
  far[] = {{22, 345000}, {11, 350000}, {9, 470000}};

static void run(int turn, bool stands_in)
{
    struct norm_groups_options o = {LAYOUT_NCHW, false, -3.0, 3.0};
    struct norm_groups_image m = {.samples = 1};
    struct norms_case c;
    int k = turn % COUNT(near), phase = (turn + turn / 3) % PHASES, type, each, units;
    int shares = stands_in ? near[k].shares : far[k].shares;
    if (!case_begin("random/%d", turn)) return;
    type = (int)random_int(0, TYPES - 1);
    units = stands_in ? near[k].units : far[k].units;
    units += (int)random_int(0, units / 16);
    each = phase == NORMS_TRAINING ? random_of(1, 2, 3, 7, 16) : 1;
    if (shares % 2 == 0 && random_chance(0.5)) m.samples = 2;
    m.channels = shares / m.samples * each;
    m.groups = each > 1 ? shares / m.samples : 0;
    m.spatial[0] = (int)random_int(40, 400);
    m.spatial[1] = units / each / m.spatial[0] * (type == 0 ? 4 : 8);
    if (!harness_all_engines) m.spatial[0] = 3, m.spatial[1] = 16;
    c = norm_groups_case(&m, phase, type, random_chance(0.5));
    c.statistics = phase != NORMS_INFERENCE;
    norm_groups_tensors(&c, &o);
    norm_groups_clusters = harness_all_engines;
    norm_groups_run(&c);
    norm_groups_clusters = false;
    case_end();
}

int main(int argc, char **argv)
{
    const bool stands_in = getenv("WARPDNN_CUDA_DRIVER") != NULL;
    if (stands_in) setenv("FAKECUDA_PROCESSORS", PROCESSORS, 0);
    harness_start(argc, argv);
    for (int turn = 0; turn < 6; ++turn) run(turn, stands_in);
    return harness_finish();
}
