/* SPDX-License-Identifier: Apache-2.0
 *
 * The problems of pooling's engines: a part of prepared_problems.h, which includes it. */
#ifndef TESTS_UNIT_PREPARED_POOLING_H
#define TESTS_UNIT_PREPARED_POOLING_H

static void set_pool(enum wd_op op, int mode, int window, int stride, int pad)
{
    struct wd_pool_attr *attr = &single.node.attr.pool;
    wd_single_init(&single, op);
    attr->spatial = 2;
    attr->mode = mode;
    for (int d = 0; d < 2; ++d) {
        attr->window[d] = window;
        attr->stride[d] = stride;
        attr->pad_before[d] = attr->pad_after[d] = pad;
    }
}

static void band(bool large)
{
    const int64_t n = large ? 126 : 63;
    set_pool(WD_OP_POOL_FORWARD, CUDNN_POOLING_MAX, 3, 2, 1);
    bind(0, CUDNN_DATA_HALF, n, 61, 111, 113, true);
    bind(1, CUDNN_DATA_HALF, n, 61, 56, 57, true);
}

/* Slots of a maximum's gradient: y, dy, x, dx. */
static void band_back(bool large)
{
    const int64_t n = large ? 126 : 63;
    set_pool(WD_OP_POOL_BACKWARD, CUDNN_POOLING_MAX, 3, 1, 1);
    for (int slot = 0; slot < 4; ++slot) bind(slot, CUDNN_DATA_HALF, n, 61, 111, 113, true);
}

static void sheet(bool large)
{
    const int64_t n = large ? 64 : 32;
    set_pool(WD_OP_POOL_BACKWARD, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 3, 2, 1);
    bind(1, CUDNN_DATA_FLOAT, n, 64, 28, 28, false);
    bind(3, CUDNN_DATA_FLOAT, n, 64, 56, 56, false);
}

static void pixels(enum wd_op op, int window, bool large)
{
    set_pool(op, CUDNN_POOLING_MAX, window, 1, window / 2);
    for (int slot = 0; slot < (op == WD_OP_POOL_FORWARD ? 2 : 4); ++slot) {
        bind(slot, CUDNN_DATA_FLOAT, large ? 64 : 32, 512, 20, 20, true);
    }
}

static void walk(bool large)
{
    pixels(WD_OP_POOL_FORWARD, 3, large);
}

static void tile(bool large)
{
    pixels(WD_OP_POOL_FORWARD, 13, large);
}

static void tile_back(bool large)
{
    pixels(WD_OP_POOL_BACKWARD, 13, large);
}

#endif
