/* SPDX-License-Identifier: Apache-2.0
 *
 * Large cases of the spatial transformer's sampler (sampler_case.h), by name: how many images they have, and which
 * engine is to run. */
#include <stdlib.h>
#include <string.h>

#include "sampler_case.h"

/* Whether the engine that a case is for, or if not `whole` another one, has found its gradients; of all cases once it ran. */
static void check_engine(const char *expected, bool whole, bool *takes_part)
{
    const char *engine = "";
    bool ran;
    warpdnnGetLastEngine(harness_handle, &engine);
    ran = strcmp(engine, expected) == 0;
    *takes_part |= ran;
    if (*takes_part && ran != whole) case_fail("%s ran", engine);
}

/* By the beginnings of cases' names. */
static void check_engines(const char *name)
{
    static struct {
        const char *begins, *engine;
        bool is, takes_part;
    } rules[] = {
        {"chunks", "sampler_backward_chunks", true, false},
        {"unchunked", "sampler_backward_chunks", false, false},
        {"crowds", "sampler_backward_regions", true, false},
        {"flat", "sampler_backward_regions", true, false},
        {"mapped", "sampler_backward_regions", true, false},
        {"few_places", "sampler_backward_little", true, false},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        if (strncmp(name, rules[i].begins, strlen(rules[i].begins))) continue;
        check_engine(rules[i].engine, rules[i].is, &rules[rules[i].is ? i : 0].takes_part);
    }
}

void sampler_large_cases(const struct sampler_large *rows, size_t count)
{
    const bool fake = !harness_on_gpu || getenv("WARPDNN_CUDA_DRIVER");
    for (size_t i = 0; i < count; ++i) {
        const struct walk *walk = rows[i].walk;
        const bool mapped = strncmp(rows[i].name, "mapped", 6) == 0;
        struct spatial_shape shape = rows[i].shape;
        if (!case_begin("sampler/large/%s", rows[i].name)) continue;
        if (rows[i].images > 0 && !fake) shape.n = rows[i].images;
        sampler_case(walk, rows[i].type, &shape, !walk->blends, rows[i].places, mapped);
        check_engines(rows[i].name);
        case_end();
    }
}
