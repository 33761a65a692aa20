/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler of planes on the GPU by windows of the image in shared memory, in fp32, fp16 and bf16,
 * where many places share what is copied; and how places are cut into tiles. No state. */
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "ops/spatial/spatial_vector.h"

#define WD_KERNELS_MODULE sampler_windows
#define WD_KERNELS_ROWS "ops/spatial/sampler_windows_kernels.def"
#include "ops/kernels_host.inc"

enum {
    ROWS_LEAST = 8,
    CROWD_MOST = 16, /* places a pixel */
    CAPACITY = 8 * WINDOW_THREADS,
    PLACES_LEAST = CAPACITY / 2, /* of a tile, at least */
    SPLITS = 32,                 /* ways to cut rows that are looked at */
    WIDEST = 512,                /* places of a row of a tile */
    PLACES_FEW = 32,             /* of a tile */
    CHUNK = 16,                  /* channels of a block, at least: they pay for looking */
    BLOCKS_LEAST = 3,            /* a processor: as many as it has room for */
    BLOCKS_ENOUGH = 15,
    SECTOR = 32,          /* bytes */
    TILE_COST = 400,      /* a tile costs as much as so many elements besides */
    BYTES_MOST = 17,      /* of a window for four places: more are not worth it ... */
    BYTES_MOST_ROWS = 26, /* ... but where a tile has whole rows, and so no margin at their ends */
    SHARED_MOST = WINDOW_STAGES * WINDOW_BYTES * SAMPLE_ROOM,
};
_Static_assert((int)CHUNK >= (int)SPATIAL_WINDOWS_FROM, "windows that 31 bits count");
/* How much of the other side a slight turn adds to the sides of a window. */
static const double TURN = 0.12;

bool wd_sampler_is_wide(const struct sampler_image *i, int64_t width, int64_t bytes)
{
    int64_t run = SPATIAL_RUN_BYTES / bytes;
    return (i->column == 1 || width == 1) && width % run == 0 && i->row % run == 0 &&
           i->channel % run == 0 && i->image % run == 0 &&
           (uintptr_t)i->data % SPATIAL_RUN_BYTES == 0;
}

/* Elements of a window of a tile of width x height places. */
static int64_t window_of(const struct sampler_vector_args *a, int64_t width, int64_t height,
                         int64_t run)
{
    const double across = (double)a->width / a->columns;
    const double along = (double)a->height / a->rows;
    int64_t columns = (int64_t)(across * ((double)width + TURN * (double)height)) + 2;
    int64_t rows = (int64_t)(along * ((double)height + TURN * (double)width)) + 2;
    columns = wd_ceil_div(wd_least(columns, a->width) + run - 1, run) * run + run;
    rows = wd_least(rows, a->height) + 2;
    return columns * rows + run;
}

/* Tiles of so many places across, `parts` of them below each other. Returns the elements of a window. */
static int64_t cut_by(struct sampler_cut *cut, const struct sampler_vector_args *a, int64_t width,
                      int64_t parts, int64_t run)
{
    const int64_t height = wd_ceil_div(a->rows, parts);
    const int64_t split = wd_ceil_div(a->columns, width);
    cut->width = (int32_t)width;
    cut->height = (int32_t)height;
    cut->by_tile = wd_fastdiv_of((uint32_t)(split * parts));
    cut->by_width = wd_fastdiv_of((uint32_t)width);
    cut->by_column = wd_fastdiv_of((uint32_t)split);
    return window_of(a, width, height, run);
}

/* The fewest tiles below each other that have at most `capacity` places. */
static int64_t fewest_parts(const struct sampler_vector_args *a, int64_t width, int64_t capacity)
{
    return wd_ceil_div(a->rows, wd_least(capacity / width, a->rows));
}

/* The width of tiles whose windows have room in `most` elements and bring least; 0: none has room. */
static int64_t best_width(const struct sampler_vector_args *a, int64_t capacity, int64_t most,
                          int64_t run)
{
    const int64_t first = wd_ceil_div(a->columns, wd_least(capacity, WIDEST));
    double least = 0.0;
    int64_t best = 0;
    for (int64_t split = first; split < first + SPLITS && split <= a->columns; ++split) {
        const int64_t width = wd_ceil_div(a->columns, split);
        const int64_t parts = fewest_parts(a, width, capacity);
        const int64_t height = wd_ceil_div(a->rows, parts);
        const int64_t window = window_of(a, width, height, run);
        const double cost = (double)(split * parts) * (double)(window + width * height);
        if (window > most || (best > 0 && cost >= least)) continue;
        least = cost;
        best = width;
    }
    return best;
}

/* Likewise of widths that are multiples of `unit`, tiles being as low as windows need, but at least of half as many
 * places; how many of them are below each other. */
static int64_t best_aligned(const struct sampler_vector_args *a, int64_t capacity, int64_t most,
                            int64_t run, int64_t unit, int64_t *width)
{
    const int64_t widest = wd_least(a->columns, wd_least(capacity, WIDEST));
    double least = 0.0;
    int64_t best = 0;
    for (int64_t w = unit; w <= widest; w += unit) {
        const int64_t across = wd_ceil_div(a->columns, w);
        const int64_t last = a->columns - (across - 1) * w;
        int64_t height = wd_least(capacity / w, a->rows);
        int64_t parts;
        int64_t brought;
        double cost;
        while (window_of(a, w, height, run) > most && 2 * w * height >= capacity) --height;
        parts = wd_ceil_div(a->rows, wd_most(height, 1));
        height = wd_ceil_div(a->rows, parts);
        if (2 * w * height < capacity || window_of(a, w, height, run) > most) continue;
        brought = (across - 1) * window_of(a, w, height, run) + window_of(a, last, height, run) +
                  a->columns * height + across * TILE_COST;
        cost = (double)parts * (double)brought;
        if (best > 0 && cost >= least) continue;
        least = cost;
        best = parts;
        *width = w;
    }
    return best;
}

int64_t wd_sampler_cut_places(struct sampler_cut *cut, const struct sampler_vector_args *a,
                              int64_t capacity, int64_t most, int64_t bytes, int64_t unit)
{
    const int64_t run = SPATIAL_RUN_BYTES / bytes;
    int64_t width = 0;
    if (unit > 1 && a->columns % unit == 0) {
        const int64_t parts = best_aligned(a, capacity, most, run, unit, &width);
        if (parts > 0) return cut_by(cut, a, width, parts, run);
    }
    width = best_width(a, capacity, most, run);
    while (width == 0 && capacity >= 2 * PLACES_FEW) {
        capacity /= 2;
        width = best_width(a, capacity, most, run);
    }
    if (width == 0) { /* far apart: no window will fit, and places look into device memory */
        capacity = WINDOW_THREADS;
        width = wd_ceil_div(a->columns, wd_ceil_div(a->columns, capacity));
    }
    return cut_by(cut, a, width, fewest_parts(a, width, capacity), run);
}

bool wd_sampler_lies_in_runs(const struct wd_tensor *t, int d)
{
    const int64_t run = SPATIAL_RUN_BYTES / wd_dtype_bytes(t->dtype);
    bool in_runs = t->stride[d] == 1 && t->dim[d] % run == 0;
    for (int i = 0; i < t->rank; ++i) {
        in_runs &= i == d || t->dim[i] == 1 || t->stride[i] % run == 0;
    }
    return in_runs;
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_X);
    const struct wd_tensor *y = wd_slot(problem->graph, problem->node, SAMPLER_Y);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_GRID);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    struct sampler_vector_args a;
    struct sampler_cut cut;
    int64_t window;
    int64_t places;
    if (!wd_sampler_match(problem, reason)) return false;
    WD_NEED(bytes < (int64_t)sizeof(double), reason, NOT_SUPPORTED, "the images are of fp64");
    WD_NEED(wd_spatial_spans_little(x) && wd_spatial_spans_little(y), reason, NOT_SUPPORTED_SHAPE,
            "a plane spans more than 2^31 elements");
    WD_NEED(wd_sampler_lies_in_runs(x, 3) && y->stride[3] == 1, reason, NOT_SUPPORTED_LAYOUT,
            "rows are not runs of %d bytes", SPATIAL_RUN_BYTES);
    WD_NEED(x->dim[1] >= CHUNK && y->dim[2] >= ROWS_LEAST && y->dim[3] >= ROWS_LEAST &&
                y->dim[2] * y->dim[3] <= CROWD_MOST * x->dim[2] * x->dim[3],
            reason, NOT_SUPPORTED_SHAPE,
            "fewer than %d channels, narrow images, or many places a pixel", CHUNK);
    WD_NEED(problem->device->shared_per_block >= SHARED_MOST, reason, NOT_SUPPORTED_ARCH_MISMATCH,
            "%d bytes of shared memory a block are needed", SHARED_MOST);
    a = wd_sampler_args(x, grid, NULL);
    window = wd_sampler_cut_places(&cut, &a, CAPACITY, SAMPLE_ROOM, bytes, SECTOR / bytes);
    places = (int64_t)cut.width * cut.height;
    WD_NEED(places >= PLACES_LEAST &&
                4 * window * bytes <=
                    (cut.width == a.columns ? BYTES_MOST_ROWS : BYTES_MOST) * places,
            reason, NOT_SUPPORTED_SHAPE,
            "%lld places see %lld pixels: too few for them to be worth a copy", (long long)places,
            (long long)window);
    WD_NEED(x->dim[0] * cut.by_tile.divisor * wd_ceil_div(x->dim[1], CHUNK) >=
                (int64_t)BLOCKS_LEAST * problem->device->multiprocessors,
            reason, NOT_SUPPORTED_SHAPE, "fewer than %d blocks a processor", BLOCKS_LEAST);
    return true;
}

static void prepare(const struct wd_problem *problem, void *prepared)
{
    const struct wd_tensor *x = wd_slot(problem->graph, problem->node, SAMPLER_X);
    const struct wd_tensor *grid = wd_slot(problem->graph, problem->node, SAMPLER_GRID);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    struct sampler_vector_args a = wd_sampler_args(x, grid, NULL);
    memset(prepared, 0, sizeof(struct sampler_cut));
    wd_sampler_cut_places(prepared, &a, CAPACITY, SAMPLE_ROOM, bytes, SECTOR / bytes);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    const struct wd_tensor *x = wd_call_tensor(call, SAMPLER_X);
    const int type = wd_spatial_type(x->dtype);
    const int64_t bytes = wd_dtype_bytes(x->dtype);
    const int64_t images = x->dim[0];
    const int64_t enough = (int64_t)BLOCKS_ENOUGH * queue->device->multiprocessors;
    struct sampler_window_args a = {
        .all = wd_sampler_args(x, wd_call_tensor(call, SAMPLER_GRID),
                               wd_call_data(call, SAMPLER_GRID)),
    };
    struct sampler_cut cut;
    int64_t tiles;
    int64_t chunks;
    int64_t blocks;
    int64_t most;
    a.all.x = wd_sampler_image(call, SAMPLER_X);
    a.all.y = wd_sampler_image(call, SAMPLER_Y);
    wd_sampler_scalars(call, &a.all);
    cut = *(const struct sampler_cut *)wd_call_prepared(call, prepare, &cut);
    cut.wide = wd_sampler_is_wide(&a.all.x, a.all.width, bytes);
    a.places = cut;
    tiles = cut.by_tile.divisor;
    chunks = wd_clamp(wd_ceil_div(enough, images * tiles), 1, wd_ceil_div(a.all.channels, CHUNK));
    a.all.chunk = (int32_t)wd_ceil_div(a.all.channels, chunks);
    a.all.chunk = (int32_t)(wd_ceil_div(a.all.chunk * bytes, WINDOW_BYTES) * WINDOW_BYTES / bytes);
    a.by_block = wd_fastdiv_of((uint32_t)(wd_ceil_div(a.all.channels, a.all.chunk) * tiles));
    blocks = a.by_block.divisor;
    most = wd_spatial_images(blocks * WINDOW_THREADS);
    for (int64_t first = 0; first < images; first += most) {
        WD_TRY(wd_emit_kernel(queue, &kernel_rows[KERNEL_sample_windows_f32 + type],
                              wd_least(most, images - first) * blocks, WINDOW_THREADS, SHARED_MOST,
                              &a));
        wd_sampler_skip(&a.all, most, bytes);
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct wd_engine wd_engine_sampler_forward_windows = {
    .name = "sampler_forward_windows",
    .op = WD_OP_SAMPLER_FORWARD,
    .device = WD_GPU,
    .kernels = &kernels,
    .match = match,
    .prepare = prepare,
    .prepared_bytes = sizeof(struct sampler_cut),
    .emit = emit,
};
