/* SPDX-License-Identifier: Apache-2.0
 *
 * The spatial transformer's sampler (sampler_case.h) where grids are affine maps, or some of them, and of
 * planes where all processors have blocks, also by chunks. A program of its own, for large cases take the host long. */
#include <stdlib.h>

#include "sampler_case.h"

int main(int argc, char **argv)
{
    static const struct walk nchw = {LAYOUT_NCHW, 0, 0, 0, false},
                             odd = {LAYOUT_NCHW, 1, 3, 1, false},
                             odd_images = {LAYOUT_NCHW, 1, 3, 0, false},
                             odd_pairs = {LAYOUT_NCHW, 1, 3, 2, false},
                             blended = {LAYOUT_NCHW, 0, 0, 0, true};
    static const struct sampler_large rows[] = {
        {"mapped", CUDNN_DATA_FLOAT, {2, 2, 90, 100, 80, 88}, 88, TURNED, &nchw},
        {"mapped_three", CUDNN_DATA_FLOAT, {2, 3, 96, 128, 80, 100}, 88, TURNED, &nchw},
        {"mapped_odd", CUDNN_DATA_FLOAT, {2, 3, 75, 99, 66, 87}, 112, TURNED, &odd_images},
        {"mapped_odd_pairs", CUDNN_DATA_FLOAT, {2, 3, 75, 99, 66, 87}, 112, TURNED, &odd_pairs},
        {"mapped_reduced", CUDNN_DATA_FLOAT, {2, 1, 150, 160, 66, 88}, 43, TURNED, &nchw},
        {"mapped_mirrored", CUDNN_DATA_FLOAT, {2, 3, 90, 100, 80, 88}, 88, MIRRORED, &nchw},
        {"mapped_slanted", CUDNN_DATA_FLOAT, {2, 3, 150, 160, 84, 80}, 43, SLANTED, &nchw},
        {"mapped_across", CUDNN_DATA_FLOAT, {2, 3, 140, 92, 96, 100}, 68, ACROSS, &nchw},
        /* rows of places that are near each other: what adds to the same elements is many rows */
        {"mapped_far", CUDNN_DATA_FLOAT, {2, 3, 40, 120, 160, 100}, 112, TURNED, &nchw},
        {"mapped_across_far", CUDNN_DATA_FLOAT, {3, 3, 112, 40, 160, 80}, 168, ACROSS, &blended},
        {"mapped_straight", CUDNN_DATA_FLOAT, {2, 3, 150, 160, 66, 88}, 43, STRAIGHT, &nchw},
        {"mapped_beyond", CUDNN_DATA_FLOAT, {2, 3, 90, 100, 80, 88}, 88, BEYOND, &nchw},
        {"mapped_beyond_blended", CUDNN_DATA_FLOAT, {2, 2, 90, 99, 80, 88}, 88, BEYOND, &blended},
        {"mapped_blended", CUDNN_DATA_FLOAT, {2, 3, 90, 100, 80, 88}, 88, TURNED, &blended},
        {"mapped_some", CUDNN_DATA_FLOAT, {3, 2, 90, 100, 80, 88}, 88, TURNED_REST, &blended},
        {"mapped_nan", CUDNN_DATA_FLOAT, {2, 3, 90, 100, 80, 88}, 88, TURNED_NAN, &nchw},
        {"mapped_nan_odd", CUDNN_DATA_FLOAT, {2, 3, 75, 99, 66, 87}, 112, TURNED_NAN, &odd_images},
        {"mapped_nan_blended", CUDNN_DATA_FLOAT, {2, 2, 90, 99, 80, 88}, 88, TURNED_NAN, &blended},
        {"mapped_lost", CUDNN_DATA_FLOAT, {4, 3, 90, 100, 80, 88}, 88, TURNED_LOST, &nchw},
        {"mapped_lost_blended",
         CUDNN_DATA_FLOAT,
         {4, 3, 90, 100, 80, 88},
         88,
         TURNED_LOST,
         &blended},
        /* a place that is not where the map has it, of each kind of spot: an image each */
        {"mapped_astray", CUDNN_DATA_FLOAT, {8, 3, 90, 100, 84, 92}, 88, TURNED_ASTRAY, &nchw},
        {"mapped_astray_odd", CUDNN_DATA_FLOAT, {8, 2, 90, 99, 84, 92}, 88, TURNED_ASTRAY, &nchw},
        {"mapped_astray_blended",
         CUDNN_DATA_FLOAT,
         {8, 3, 90, 100, 84, 92},
         88,
         TURNED_ASTRAY,
         &blended},
        {"mapped_beyond_astray",
         CUDNN_DATA_FLOAT,
         {3, 3, 90, 100, 80, 88},
         88,
         BEYOND_ASTRAY,
         &nchw},
        {"mapped_but_one", CUDNN_DATA_FLOAT, {3, 3, 90, 100, 80, 88}, 88, TURNED_BUT_ONE, &nchw},
        {"mapped_but_one_blended",
         CUDNN_DATA_FLOAT,
         {3, 3, 90, 100, 80, 88},
         88,
         TURNED_BUT_ONE,
         &blended},
        /* places that are no pairs */
        {"mapped_odd_grid", CUDNN_DATA_FLOAT, {2, 3, 75, 99, 66, 87}, 112, TURNED, &odd},
        {"mapped_odd_grid_nan", CUDNN_DATA_FLOAT, {2, 2, 75, 99, 66, 87}, 112, TURNED_NAN, &odd},
        {"mapped_odd_grid_lost", CUDNN_DATA_FLOAT, {4, 3, 90, 100, 80, 88}, 88, TURNED_LOST, &odd},
        /* maps, but for other kernels: of places too near each other, of few tiles */
        {"across", CUDNN_DATA_FLOAT, {2, 3, 100, 90, 96, 100}, 88, ACROSS, &nchw},
        {"across_few", CUDNN_DATA_FLOAT, {1, 3, 80, 60, 200, 210}, 22, ACROSS, &nchw},
        /* chunks of planes: whole, of images whose lists have no room, and (handed on) between boundaries and blended */
        {"chunks", CUDNN_DATA_FLOAT, {2, 37, 72, 80, 70, 76}, 33, TURNED, &nchw},
        {"chunks_handed_odd", CUDNN_DATA_FLOAT, {2, 16, 72, 80, 70, 76}, 18, TURNED, &odd_images},
        {"chunks_nan", CUDNN_DATA_FLOAT, {2, 18, 72, 80, 70, 76}, 18, TURNED_NAN, &nchw},
        {"chunks_across", CUDNN_DATA_FLOAT, {2, 17, 72, 80, 70, 76}, 18, ACROSS, &nchw},
        {"chunks_apart", CUDNN_DATA_FLOAT, {2, 17, 72, 80, 70, 76}, 18, ANYWHERE, &nchw},
        {"chunks_one_place", CUDNN_DATA_FLOAT, {2, 17, 72, 80, 70, 76}, 18, ONE_PLACE, &nchw},
        {"chunks_but_one", CUDNN_DATA_FLOAT, {3, 17, 72, 80, 70, 76}, 18, TURNED_BUT_ONE, &nchw},
        {"chunks_crowded", CUDNN_DATA_FLOAT, {2, 17, 72, 80, 80, 92}, 18, TURNED, &nchw},
        {"chunks_handed_blended", CUDNN_DATA_FLOAT, {2, 17, 72, 80, 70, 76}, 18, TURNED, &blended},
        {"chunks_reduced", CUDNN_DATA_FLOAT, {2, 19, 121, 144, 63, 72}, 8, TURNED, &nchw},
        {"chunks16", CUDNN_DATA_HALF, {2, 19, 60, 136, 56, 136}, 18, TURNED, &nchw},
        {"chunks16_handed", CUDNN_DATA_BFLOAT16, {2, 18, 60, 136, 56, 136}, 18, TURNED, &odd},
        {"chunks_bf16_nan", CUDNN_DATA_BFLOAT16, {2, 17, 60, 136, 56, 136}, 18, TURNED_NAN, &nchw},
        {"chunks_square", CUDNN_DATA_FLOAT, {2, 21, 68, 68, 68, 68}, 24, TURNED, &nchw},
        {"chunks_narrow", CUDNN_DATA_FLOAT, {2, 16, 131, 40, 70, 60}, 24, TURNED, &nchw},
        {"chunks_strips", CUDNN_DATA_HALF, {2, 18, 24, 400, 24, 376}, 18, TURNED, &nchw},
        {"chunks16_across", CUDNN_DATA_HALF, {2, 17, 72, 80, 64, 72}, 18, ACROSS, &nchw},
        /* more than 1,024 boxes of 32 places: two warps' each; more places of elements than tiles have room for */
        {"chunks_parts", CUDNN_DATA_FLOAT, {2, 16, 192, 192, 192, 192}, 5, TURNED, &nchw},
        {"chunks_zoomed", CUDNN_DATA_FLOAT, {2, 17, 72, 80, 80, 92}, 26, ZOOMED, &nchw},
        /* rows that are no whole chunks, of x, of dy and of both: for the next engine */
        {"unchunked", CUDNN_DATA_FLOAT, {2, 19, 71, 79, 70, 75}, 18, TURNED, &odd},
        {"unchunked_square", CUDNN_DATA_FLOAT, {2, 21, 66, 66, 64, 64}, 24, TURNED, &nchw},
        {"unchunked16", CUDNN_DATA_HALF, {2, 18, 60, 136, 56, 132}, 18, TURNED, &nchw},
        {"many_lean", CUDNN_DATA_FLOAT, {3, 19, 40, 41, 64, 67}, 175, TURNED, &odd},
        {"many_lean_strips", CUDNN_DATA_FLOAT, {2, 17, 50, 49, 47, 199}, 90, TURNED, &nchw},
    };
    setenv("FAKECUDA_PROCESSORS", SAMPLER_PROCESSORS, 0);
    harness_start(argc, argv);
    sampler_large_cases(rows, sizeof rows / sizeof rows[0]);
    spatial_check_launched(argc, SPATIAL_MAPPED);
    return harness_finish();
}
