/* SPDX-License-Identifier: Apache-2.0
 *
 * A case of the spatial transformer's sampler, in both directions, and the ways in which its tensors lie. */
#ifndef TESTS_OPS_SAMPLER_CASE_H
#define TESTS_OPS_SAMPLER_CASE_H

#include "spatial_case.h"

/* Of the fake driver's device: with 132 some cases would be too large for it. */
#define SAMPLER_PROCESSORS "2"

/* How the tensors of a case lie, where it is not left to chance. */
struct walk {
    enum layout layout;
    int x_skip, y_skip, grid_skip; /* elements behind aligned memory */
    bool blends;                   /* large ones: with factors, and places that are not finite */
};

/* Where the places of a case look: anywhere, all at one place, or as a turned grid, and that
 *   REST      in all images but the first
 *   NAN       while some elements of x and of dy are NaN
 *   BUT_ONE   but for a place of the last image
 *   LOST      but for some places of images 1 and 2, which are not finite
 *   ASTRAY    but for a place of each image but the first, which looks elsewhere
 *   ACROSS    whose rows are columns of the image, upside down
 *   MIRRORED  whose rows run from right to left
 *   SLANTED   whose rows begin further left, one after the other; places are a little off
 *   STRAIGHT  not turned at all; likewise
 *   BEYOND    that reaches far beyond the image
 *   BEYOND_ASTRAY  likewise, but for a place out there of each image but the first
 *   ZOOMED    of the middle of the image. */
enum places {
    ANYWHERE,
    ONE_PLACE,
    TURNED,
    TURNED_REST,
    TURNED_NAN,
    TURNED_BUT_ONE,
    TURNED_LOST,
    TURNED_ASTRAY,
    ACROSS,
    MIRRORED,
    SLANTED,
    STRAIGHT,
    BEYOND,
    BEYOND_ASTRAY,
    ZOOMED
};

/* For run_call. */
cudnnStatus_t sampler_forward(void *context);
cudnnStatus_t sampler_backward(void *context);

/* One case between case_begin and case_end; walk NULL: random layouts; plain: nothing is blended, and all
 * places are finite numbers; mapped: the grids are held to what the engine of affine maps takes. */
void sampler_case(const struct walk *walk, cudnnDataType_t dtype, const struct spatial_shape *s,
                  bool plain, enum places places, bool mapped);

/* A large case by name; images: how many there are for 132 processors (0: as the shape says). Of one whose name begins
 * with "mapped" the grids are held to what the engine of affine maps takes; with "chunks" the engine by chunks is to
 * be the one that runs, if it ran before, with "unchunked" another; with "mapped", "crowds" and "flat" that by regions, with
 * "few_places" that of few places. */
struct sampler_large {
    const char *name;
    cudnnDataType_t type;
    struct spatial_shape shape;
    int images;
    enum places places;
    const struct walk *walk;
};
void sampler_large_cases(const struct sampler_large *rows, size_t count);

#endif
