/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes of the test of the CPU engines of convolution: ones that take every way through them, and
 * ones of which only the workspace is asked. */
#ifndef TESTS_OPS_CONV_CPU_SHAPES_H
#define TESTS_OPS_CONV_CPU_SHAPES_H

enum direction { FPROP, DGRAD, WGRAD, FUSED, DIRECTIONS };

struct shape {
    const char *name;
    int batch, groups, channels, filters; /* C and K over all groups */
    int image[2], filter[2], pad[2], stride[2], dilation[2];
    int directions; /* a mask; 0: all */
};

static const struct shape shapes[] = {
    /* several panels an image, several images a panel */
    {"3x3", 2, 1, 20, 24, {37, 41}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"3x3 stride 2", 2, 1, 20, 24, {37, 42}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 0},
    {"3x3 small images", 9, 1, 40, 24, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"1x1", 5, 1, 67, 35, {19, 23}, {1, 1}, {0, 0}, {1, 1}, {1, 1}, 0},
    {"1x1 stride 2", 5, 1, 35, 67, {19, 24}, {1, 1}, {0, 0}, {2, 2}, {1, 1}, 0},
    {"1x1 stride 2 padded", 2, 1, 9, 6, {11, 12}, {1, 1}, {1, 1}, {2, 2}, {1, 1}, 0},
    {"1x1 stride 3 padded", 2, 1, 6, 9, {11, 12}, {1, 1}, {2, 1}, {3, 3}, {1, 1}, 0},
    {"1x1 padded", 2, 1, 5, 7, {9, 11}, {1, 1}, {3, 2}, {1, 1}, {1, 1}, 0},
    {"1x1 on 1x1", 33, 1, 70, 41, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {1, 1}, 0},
    {"stem", 2, 1, 3, 16, {61, 63}, {7, 7}, {3, 3}, {2, 2}, {1, 1}, 0},
    {"dilated", 2, 1, 9, 11, {33, 35}, {3, 5}, {6, 4}, {1, 1}, {3, 2}, 0},
    {"stride 3 dilation 2", 2, 1, 9, 11, {33, 35}, {4, 3}, {2, 9}, {3, 2}, {2, 4}, 0},
    {"stride beyond filter", 2, 1, 6, 5, {23, 29}, {2, 3}, {0, 1}, {5, 7}, {1, 1}, 0},
    {"padding beyond filter", 2, 1, 5, 6, {8, 5}, {3, 3}, {20, 17}, {1, 3}, {1, 1}, 0},
    {"groups", 2, 4, 36, 28, {17, 18}, {3, 3}, {1, 0}, {1, 1}, {1, 1}, 0},
    {"groups stride 2", 2, 4, 36, 28, {17, 18}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 0},
    {"wide line", 1, 1, 3, 4, {3, 3001}, {3, 5}, {1, 2}, {1, 1}, {1, 1}, 0},
    /* the panel holds a part of the sums' terms at a time */
    {"deep", 2, 1, 300, 3, {19, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"large filter", 1, 1, 70, 3, {17, 19}, {15, 17}, {7, 8}, {1, 1}, {1, 1}, 0},
    /* filters, and sums in half precision, beyond what the workspace holds at once */
    {"wide filters",
     1,
     1,
     800,
     790,
     {3, 3},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     1 << DGRAD | 1 << WGRAD},
    {"wide filters stride 2", 1, 1, 800, 790, {4, 4}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 1 << DGRAD},
    /* images that are written past the caches, zeros and all */
    {"1x1 stride 2 to memory", 2, 1, 24, 5, {151, 153}, {1, 1}, {0, 0}, {2, 2}, {1, 1}, 1 << DGRAD},
    {"1x1 stride 3 to memory", 1, 1, 30, 5, {193, 192}, {1, 1}, {0, 0}, {3, 3}, {1, 1}, 1 << DGRAD},
    /* a channel a group */
    {"depthwise", 2, 37, 37, 37, {29, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"depthwise stride 2", 2, 37, 37, 37, {29, 32}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 0},
    {"depthwise dilated", 2, 19, 19, 19, {29, 31}, {5, 3}, {4, 9}, {1, 1}, {2, 6}, 0},
    {"depthwise 7x7", 2, 70, 70, 70, {14, 13}, {7, 7}, {3, 3}, {1, 1}, {1, 1}, 0},
    {"depthwise many", 1, 1100, 1100, 1100, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"depthwise multiplier", 2, 13, 13, 39, {19, 17}, {3, 3}, {1, 1}, {2, 1}, {1, 1}, 0},
    {"depthwise narrow", 2, 5, 5, 5, {40, 2}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"depthwise wide line", 1, 2, 2, 2, {3, 5000}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
};

static const struct shape large[] = {
    {"large image", 8, 1, 64, 64, {1500, 1500}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"many images", 60000, 1, 32, 64, {14, 14}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 0},
    {"many channels", 4, 1, 8192, 8192, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 0},
    {"1x1 channels", 4, 1, 16384, 16384, {9, 9}, {1, 1}, {0, 0}, {2, 2}, {1, 1}, 0},
    {"large filter", 2, 1, 512, 512, {64, 64}, {31, 31}, {15, 15}, {1, 1}, {1, 1}, 0},
    {"groups", 64, 64, 4096, 4096, {32, 32}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, 0},
};

#endif
