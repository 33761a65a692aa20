/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of the reduce_rows and reduce_columns kernels, shared by host and device. x lies without
 * gaps as [k0][r0][k1][r1][k2] in memory, r0 and r1 being reduced; outputs are counted as memory has
 * them, (k0 k1 k2), and terms likewise, (r0 r1). Two ways through x:
 *
 *   rows     k2 is 1: an output has r0 pieces of r1 neighbours. A piece is runs of 16 bytes from the
 *            boundary at or before its start; what lies outside of it is masked. A unit is a run.
 *   columns  threads have runs of outputs side by side, and every so many-th row of r1. Where k2 is
 *            no whole runs and there is nothing outside of (r1 k2), rows are joined until they are:
 *            a row of `pitch` elements begins `shift` before x, columns fall on outputs modulo k2.
 *
 * The units (rows) of an output are cut into segments: of a cluster's blocks, which are joined at
 * once, or of blocks that leave their states in `partial`, to be joined by reduce_finish. */
#ifndef WD_OPS_REDUCE_VECTOR_ARGS_H
#define WD_OPS_REDUCE_VECTOR_ARGS_H

#include "base/fastdiv.h"

enum {
    REDUCE_THREADS = 256,
    REDUCE_BYTES = 16, /* of a run */
    REDUCE_SHARED = 48 << 10,
    REDUCE_PIECE_RUNS = 4,   /* that a thread of reduce_pieces loads at once */
    REDUCE_CLUSTER_MOST = 8, /* blocks that have a row in reduce_cluster */
    REDUCE_CLUSTER_RUNS = 4, /* that a thread of them loads at once */
};

enum reduce_type { REDUCE_F32, REDUCE_F64, REDUCE_F16, REDUCE_BF16 };

/* What becomes of a sum in the end. */
enum reduce_end { REDUCE_PLAIN, REDUCE_MEAN, REDUCE_ROOT };

struct reduce_vector_args {
    const void *x;
    void *y;
    void *indices; /* null: none are wanted */
    void *partial; /* [segments][outputs] states */
    double alpha;
    double beta;
    double terms;
    int64_t total;  /* elements of x */
    int64_t slice;  /* between neighbours of k0 */
    int64_t piece;  /* of r0 */
    int64_t line;   /* of k1: the elements of a piece */
    uint32_t pitch; /* columns: of r1 */
    uint32_t outputs;
    uint32_t units; /* rows: runs of an output; columns: rows; finish: segments */
    uint32_t segments;
    uint32_t per_segment; /* units */
    uint32_t cluster;
    uint32_t lanes; /* rows: threads of an output, above a warp: a block; columns: side by side */
    uint32_t lane_bits;
    uint32_t positions;  /* columns: runs of outputs */
    uint32_t block_rows; /* short rows: of a block */
    int32_t shift;       /* elements between x and the boundary before it; columns: where joined */
    int32_t joined;
    int32_t bfloat;     /* of two bytes: bf16, else fp16 */
    int32_t whole_rows; /* rows: a row is one piece of whole runs */
    struct wd_fastdiv by_k1;
    struct wd_fastdiv by_run; /* rows: runs of a piece; columns: runs of k2 */
    struct wd_fastdiv by_r1;  /* columns */
    /* A term is (x & keep) ^ flip on the bits of its sign, so that sums are of absolute values and
     * the least is the greatest; and its square. */
    uint32_t keep;
    uint32_t flip;
    int32_t squares;
    int32_t skips_zeros;
    int32_t propagate;
    int32_t end;    /* enum reduce_end */
    int32_t y_type; /* enum reduce_type */
    int32_t y_runs; /* whole runs of y can be stored at once */
    int32_t index_runs;
    int32_t index_bytes;
    /* where outputs do not lie in y, and indices in their order, as they are counted: dims of the
     * outputs from the outermost, and strides */
    int32_t y_strays;
    int32_t index_strays;
    /* columns: where memory goes through the reduced dims in another order than indices count, those
     * dims from the outermost in memory, and what a step along each counts */
    int32_t counted;
    struct wd_fastdiv counted_dim[WD_MAX_RANK];
    uint32_t counted_step[WD_MAX_RANK];
    int32_t kept;
    uint32_t kept_dim[WD_MAX_RANK];
    int64_t y_stride[WD_MAX_RANK];
    int64_t index_stride[WD_MAX_RANK];
};

#endif
