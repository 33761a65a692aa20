/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fast CPU engines of batch normalization share. x is packed and is seen as
 * [outer][params][inner], a parameter having outer * inner elements; all tensors of its shape lie as
 * it does. There are two ways through it:
 *
 *   planes  inner is large: an element's parameter is constant along runs. A parameter is done from
 *           its sums to its last output while its elements are in a cache; where there are few
 *           parameters their elements are cut into segments instead.
 *   columns inner is small: memory is rows of `width` columns, a multiple of params * inner, with a
 *           parameter a column. Rows are cut into segments, wide rows into blocks of columns.
 *
 * An operation is a list of steps: work on every item (a segment of a parameter, or of a block of
 * columns), then what follows from the sums for every parameter. How the work is cut depends on the
 * shape alone, and sums are added in a fixed order: results do not depend on the threads. */
#ifndef WD_OPS_NORM_BN_CPU_H
#define WD_OPS_NORM_BN_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu/module/stream.h"
#include "graph/norm_shape.h"
#include "ops/engine.h"

enum { WD_BN_COLUMNS = 512 }; /* of an item: with their sums they stay in the first cache */

/* Numbers a column (or plane) keeps in the workspace. */
enum wd_bn_number {
    WD_BN_MEAN,
    WD_BN_REST, /* what the rounding of the mean cut off */
    WD_BN_INV_STD,
    WD_BN_FACTOR, /* of the output along its input: scale / deviation */
    WD_BN_BASE,   /* of the output where its inputs are 0 and at the mean */
    WD_BN_SLOPE,  /* backward: of dx along -x */
    WD_BN_NUMBERS
};

struct wd_bn_shape {
    int64_t outer;
    int64_t params;
    int64_t inner;
    int64_t terms; /* elements a parameter */
    int64_t total;
    bool columns;
    int64_t width;    /* columns, or planes */
    int64_t blocks;   /* of columns */
    int64_t segments; /* that sums are cut into */
    int param_rank;
    int param_axis[WD_MAX_RANK]; /* from the outermost in memory */
};

struct wd_bn_data {
    void *data;
    int dtype;
};

struct wd_bn_args;

struct wd_bn_step {
    void (*work)(const struct wd_bn_args *a, int64_t item);    /* may be null */
    void (*finish)(const struct wd_bn_args *a, int64_t param); /* may be null */
};

struct wd_bn_args {
    struct wd_bn_shape shape;
    struct wd_norm_attr attr;
    struct wd_bn_data x;
    struct wd_bn_data dy;
    struct wd_bn_data z;  /* backward: dz */
    struct wd_bn_data y;  /* backward: dx */
    struct wd_view scale; /* without data: absent; so each of these */
    struct wd_view bias;
    struct wd_view mean; /* saved, or for inference the estimate */
    struct wd_view var;  /* saved inverse deviation, or the variance */
    struct wd_view running_mean;
    struct wd_view running_var;
    struct wd_view dscale;
    struct wd_view dbias;
    double alpha;
    double beta;
    double alpha_param;
    double beta_param;
    double factor; /* of the running averages */
    uint8_t *reserve;
    bool wide; /* computes in fp64 */
    bool activates;
    bool stream; /* y goes past the caches */
    void *number[WD_BN_NUMBERS];
    double *sums; /* [segment][2][width] */
    const struct wd_bn_step *steps;
    int step_count;
    int step; /* that runs */
};

/* The tensors of x's shape are the slots of the mask `data`; the rest are parameters. */
bool wd_bn_match(const struct wd_problem *problem, uint32_t data, struct wd_reason *reason);
int64_t wd_bn_workspace(const struct wd_problem *problem);
/* Shape, attributes and workspace of the call. */
void wd_bn_args_init(struct wd_bn_args *a, const struct wd_call *call);
struct wd_bn_data wd_bn_data(const struct wd_call *call, int slot);
cudnnStatus_t wd_bn_run(struct wd_bn_args *a, struct wd_queue *queue,
                        const struct wd_bn_step *steps, int count);

/* The blocks of an item, one after another: `rows` runs of `n` elements, the first at `offset`, the
 * next `stride` elements on, with the numbers of `column` and, by columns, those behind it. At most
 * WD_BLOCK elements; by columns, at most `max_rows` rows of WD_BN_COLUMNS. */
struct wd_bn_block {
    int64_t offset;
    int64_t n;
    int64_t stride;
    int64_t column;
    int64_t segment;
    int rows;
    bool by_lines; /* asked for: blocks end with lines of y, wherever that lies. Not for sums. */
    int64_t at;    /* private: the next term, or row */
    int64_t end;   /* private */
};
void wd_bn_first(const struct wd_bn_args *a, int64_t item, struct wd_bn_block *block);
bool wd_bn_next(const struct wd_bn_args *a, struct wd_bn_block *block, int max_rows);

/* The block's elements, its rows `*pitch` apart: where they lie, or in the buffer; one behind another
 * if `pack`. */
const float *wd_bn_load_f32(const struct wd_bn_data *from, const struct wd_bn_block *block,
                            bool pack, float *buffer, int64_t *pitch);
const double *wd_bn_load_f64(const struct wd_bn_data *from, const struct wd_bn_block *block,
                             bool pack, double *buffer, int64_t *pitch);
/* Runs that stand one behind another to their places. */
void wd_bn_store_f32(const struct wd_bn_data *to, const struct wd_bn_block *block,
                     const float *from, bool stream);
void wd_bn_store_f64(const struct wd_bn_data *to, const struct wd_bn_block *block,
                     const double *from, bool stream);

/* By columns: how many the item has. */
static inline int64_t wd_bn_columns(const struct wd_bn_args *a, const struct wd_bn_block *block)
{
    int64_t left = a->shape.width - block->column;
    return left < WD_BN_COLUMNS ? left : WD_BN_COLUMNS;
}

/* Where the first (which 0) or second sums of the block's columns stand. */
static inline double *wd_bn_sums_of(const struct wd_bn_args *a, const struct wd_bn_block *block,
                                    int which)
{
    return a->sums + (block->segment * 2 + which) * a->shape.width + block->column;
}
/* The sums of a parameter over its columns and all segments. */
void wd_bn_total(const struct wd_bn_args *a, int64_t param, double *sum);

/* A number of a parameter, for all its columns. */
void wd_bn_set(const struct wd_bn_args *a, enum wd_bn_number which, int64_t param, double value);
double wd_bn_get(const struct wd_bn_args *a, enum wd_bn_number which, int64_t param);
/* The mean, as a number of the computing type and what is left of it. */
void wd_bn_set_mean(const struct wd_bn_args *a, int64_t param, double mean, double rest);
double wd_bn_param(const struct wd_bn_args *a, const struct wd_view *view, int64_t param);
void wd_bn_put_param(const struct wd_bn_args *a, const struct wd_view *view, int64_t param,
                     double value, double alpha, double beta);

/* Bits [first, first + n) of the reserve space from one byte each, and back. Other threads may
 * write the other bits of the bytes at either end. */
void wd_bn_bits_put(const struct wd_bn_args *a, int64_t first, int64_t n, const uint8_t *pass);
void wd_bn_bits_get(const struct wd_bn_args *a, int64_t first, int64_t n, uint8_t *pass);

/* The steps of statistics: mean, rest and inverse deviation, saved and averaged where the call wants
 * it. Returns how many there are, at most WD_BN_STATISTICS. */
enum { WD_BN_STATISTICS = 3 };
int wd_bn_statistics(const struct wd_bn_args *a, struct wd_bn_step *steps);
/* y from the numbers. */
void wd_bn_forward_f32(const struct wd_bn_args *a, int64_t item);
void wd_bn_forward_f64(const struct wd_bn_args *a, int64_t item);

#endif
