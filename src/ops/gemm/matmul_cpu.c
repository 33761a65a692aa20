/* SPDX-License-Identifier: Apache-2.0
 *
 * Matmul on the CPU by BLAS: each batch entry's product is cut into blocks of C, one task each.
 * Operands that BLAS can read where they lie (either stride 1, either order) are used there; others,
 * and types that it does not know, are converted block by block into a worker's tiles. The cut
 * depends on the shape and the number of threads alone, and so do the results. */
#include <string.h>

#include "cpu/module/blas.h"
#include "cpu/module/rows.h"
#include "cpu/module/sizes.h"
#include "cpu/module/tasks.h"
#include "ops/engine.h"

enum { A, B, C, M, N, K, OPERANDS = 3 };
enum { ALPHA, BETA };

enum {
    TILE_BYTES = 1 << 20,     /* of one operand */
    WORKERS_BYTES = 48 << 20, /* of all workers' tiles */
    EDGE_MIN = 32,            /* smaller blocks leave a product's edges too large a share */
    CHUNK = 256,              /* elements finished at once */
};

struct operand {
    const struct wd_tensor *tensor;
    const void *data;
    int64_t row;
    int64_t column;
    bool direct; /* BLAS takes it where it lies */
};

struct product {
    struct operand operand[OPERANDS];
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t batch;
    bool wide; /* sums are of doubles */
    int dtype; /* of a sum */
    int64_t size;
    double alpha;
    double beta;

    int64_t rows; /* of a block of C, at most */
    int64_t columns;
    int64_t depth; /* products summed at once */
    int64_t down;
    int64_t across;
    int64_t workers;
    int64_t tile_bytes[OPERANDS];
};

struct work {
    const struct product *p;
    char *scratch;
    struct wd_tasks *tasks;
};

/* Nanoseconds of a block, on the core that this was measured on; only ratios matter. */
static double block_time(const struct product *p, int64_t rows, int64_t columns)
{
    double m = (double)rows;
    double n = (double)columns;
    double pack_a = p->operand[A].direct ? 0.3 : 1.0;
    double pack_b = p->operand[B].direct ? 0.3 : 1.0;
    return (double)p->k * (m * n / 75.0 + pack_a * m + pack_b * n) + 0.2 * m * n + 500.0;
}

static void cut(struct product *p, int threads)
{
    bool all_direct = p->operand[A].direct && p->operand[B].direct && p->operand[C].direct;
    int64_t bytes = wd_least(TILE_BYTES, WORKERS_BYTES / threads / OPERANDS);
    int64_t most = all_direct ? INT32_MAX : 512;
    double best = -1.0;
    p->rows = wd_most(p->m, 1);
    p->columns = wd_most(p->n, 1);
    while (!all_direct && most > EDGE_MIN && most * most * p->size > bytes) most /= 2;
    for (int64_t down = wd_ceil_div(p->m, most);; down = down < 4 ? down + 1 : down * 3 / 2) {
        int64_t rows = wd_ceil_div(p->m, down);
        for (int64_t across = wd_ceil_div(p->n, most);;
             across = across < 4 ? across + 1 : across * 3 / 2) {
            int64_t columns = wd_ceil_div(p->n, across);
            int64_t tasks = p->batch * wd_ceil_div(p->m, rows) * wd_ceil_div(p->n, columns);
            double time = (double)wd_ceil_div(tasks, threads) * block_time(p, rows, columns);
            if (best < 0.0 || time < best * 0.99) {
                best = time;
                p->rows = rows;
                p->columns = columns;
            }
            if (columns <= EDGE_MIN || across > 4 * (int64_t)threads) break;
        }
        if (rows <= EDGE_MIN || down > 4 * (int64_t)threads) break;
    }
    p->down = wd_ceil_div(p->m, p->rows);
    p->across = wd_ceil_div(p->n, p->columns);
    p->depth = all_direct ? p->k : wd_least(p->k, most);
    p->workers = wd_tasks_workers(p->batch * p->down * p->across, threads);
    for (int o = A; o < OPERANDS; ++o) {
        int64_t extent = o == A   ? p->rows * p->depth
                         : o == B ? p->depth * p->columns
                                  : p->rows * p->columns;
        if (p->operand[o].direct) continue;
        p->tile_bytes[o] = wd_align_line(extent * p->size);
    }
}

static void read_problem(const struct wd_problem *problem, struct product *p)
{
    int rank;
    memset(p, 0, sizeof *p);
    for (int o = A; o < OPERANDS; ++o) {
        struct operand *operand = &p->operand[o];
        operand->tensor = wd_slot(problem->graph, problem->node, o);
        rank = operand->tensor->rank;
        operand->row = operand->tensor->stride[rank - 2];
        operand->column = operand->tensor->stride[rank - 1];
    }
    rank = p->operand[C].tensor->rank;
    p->m = p->operand[C].tensor->dim[rank - 2];
    p->n = p->operand[C].tensor->dim[rank - 1];
    p->k = p->operand[A].tensor->dim[rank - 1];
    p->batch = 1;
    for (int d = 0; d < rank - 2; ++d) p->batch *= p->operand[C].tensor->dim[d];
    p->wide = problem->node->attr.matmul.compute == CUDNN_DATA_DOUBLE ||
              wd_dtype_is_integer(p->operand[A].tensor->dtype) ||
              wd_problem_acc(problem) == WD_ACC_F64;
    p->dtype = p->wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    p->size = p->wide ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    for (int o = A; o < OPERANDS; ++o) {
        struct operand *operand = &p->operand[o];
        int64_t rows = o == B ? p->k : p->m;
        int64_t columns = o == A ? p->k : p->n;
        operand->direct = operand->tensor->dtype == p->dtype &&
                          wd_blas_takes(rows, columns, operand->row, operand->column);
    }
    cut(p, problem->device->multiprocessors);
}

/* Where the matrix of a batch entry begins, in elements; fewer entries than c's serve runs of
 * neighbours. */
static int64_t batch_offset(const struct product *p, const struct operand *operand, int64_t entry)
{
    const struct wd_tensor *c = p->operand[C].tensor;
    int64_t offset = 0;
    for (int d = c->rank - 3; d >= 0; --d) {
        int64_t at = entry % c->dim[d];
        entry /= c->dim[d];
        offset += at / (c->dim[d] / operand->tensor->dim[d]) * operand->tensor->stride[d];
    }
    return offset;
}

/* Rows [row, row + rows) and columns of an operand, where they lie or converted into `tile`. */
static struct wd_matrix block_of(const struct product *p, int o, int64_t entry, int64_t row,
                                 int64_t rows, int64_t column, int64_t columns, char *tile)
{
    const struct operand *operand = &p->operand[o];
    int64_t at = batch_offset(p, operand, entry) + row * operand->row + column * operand->column;
    bool turned = operand->row < operand->column;
    int64_t runs = turned ? columns : rows;
    int64_t length = turned ? rows : columns;
    int64_t stride = turned ? operand->row : operand->column;
    int64_t next = turned ? operand->column : operand->row;
    if (operand->direct) {
        return (struct wd_matrix){(const char *)operand->data + at * p->size, operand->row,
                                  operand->column};
    }
    for (int64_t i = 0; i < runs && o != C; ++i) {
        char *to = tile + i * length * p->size;
        if (p->wide) {
            wd_row_load_f64((double *)(void *)to, operand->data, operand->tensor->dtype,
                            at + i * next, stride, length);
        } else {
            wd_row_load_f32((float *)(void *)to, operand->data, operand->tensor->dtype,
                            at + i * next, stride, length);
        }
    }
    return (struct wd_matrix){tile, turned ? 1 : columns, turned ? rows : 1};
}

/* alpha sums + beta old into a block of C that BLAS could not write. */
static void finish(const struct product *p, int64_t entry, int64_t row, int64_t rows,
                   int64_t column, int64_t columns, struct wd_matrix sums)
{
    const struct operand *c = &p->operand[C];
    void *data = (void *)(uintptr_t)c->data;
    int64_t at = batch_offset(p, c, entry) + row * c->row + column * c->column;
    bool turned = c->row < c->column;
    int64_t runs = turned ? columns : rows;
    int64_t length = turned ? rows : columns;
    int64_t stride = turned ? c->row : c->column;
    double sum[CHUNK];
    double old[CHUNK];
    for (int64_t i = 0; i < runs; ++i) {
        for (int64_t j = 0; j < length; j += CHUNK) {
            int64_t n = wd_least(CHUNK, length - j);
            int64_t place = at + i * (turned ? c->column : c->row) + j * stride;
            wd_row_load_f64(sum, sums.data, p->dtype, i * length + j, 1, n);
            for (int64_t e = 0; e < n; ++e) sum[e] = p->alpha != 0.0 ? p->alpha * sum[e] : 0.0;
            if (p->beta != 0.0) {
                wd_row_load_f64(old, data, c->tensor->dtype, place, stride, n);
                for (int64_t e = 0; e < n; ++e) sum[e] += p->beta * old[e];
            }
            wd_row_store_f64(data, c->tensor->dtype, place, stride, sum, n);
        }
    }
}

static void run_task(const struct product *p, int64_t task, char *tiles)
{
    int64_t column = task % p->across * p->columns;
    int64_t row = task / p->across % p->down * p->rows;
    int64_t entry = task / p->across / p->down;
    int64_t columns = wd_least(p->columns, p->n - column);
    int64_t rows = wd_least(p->rows, p->m - row);
    bool direct = p->operand[C].direct;
    char *tile_b = tiles + p->tile_bytes[A];
    struct wd_matrix c =
        block_of(p, C, entry, row, rows, column, columns, tile_b + p->tile_bytes[B]);
    if (columns <= 0 || rows <= 0) return;
    for (int64_t k = 0; k < p->k; k += p->depth) {
        int64_t depth = wd_least(p->depth, p->k - k);
        struct wd_matrix a = block_of(p, A, entry, row, rows, k, depth, tiles);
        struct wd_matrix b = block_of(p, B, entry, k, depth, column, columns, tile_b);
        double alpha = direct ? p->alpha : 1.0;
        double beta = k > 0 ? 1.0 : direct ? p->beta : 0.0;
        if (p->wide) wd_gemm_f64(rows, columns, depth, alpha, a, b, beta, c);
        else wd_gemm_f32(rows, columns, depth, alpha, a, b, beta, c);
    }
    if (!direct) finish(p, entry, row, rows, column, columns, c);
}

/* Items: workers. */
static void run_workers(const void *args, int64_t begin, int64_t end)
{
    const struct work *w = args;
    const struct product *p = w->p;
    int entered = wd_blas_enter();
    for (int64_t worker = begin; worker < end; ++worker) {
        char *tiles =
            w->scratch + worker * (p->tile_bytes[A] + p->tile_bytes[B] + p->tile_bytes[C]);
        int64_t task;
        while (wd_tasks_take(w->tasks, &task)) run_task(p, task, tiles);
    }
    wd_blas_leave(entered);
}

static bool match(const struct wd_problem *problem, struct wd_reason *reason)
{
    const char *why;
    WD_NEED(wd_blas_ready(&why), reason, NOT_SUPPORTED, "no OpenBLAS: %.120s", why);
    for (int s = M; s <= K; ++s) {
        WD_NEED(!wd_slot(problem->graph, problem->node, s), reason, NOT_SUPPORTED,
                "%c is overridden per batch entry", "MNK"[s - M]);
    }
    for (int o = A; o < OPERANDS; ++o) {
        const struct wd_tensor *t = wd_slot(problem->graph, problem->node, o);
        WD_NEED(wd_row_takes(t->dtype), reason, NOT_SUPPORTED_DATA_TYPE,
                "tensor %c is %s, whose elements are no whole bytes", "abc"[o],
                wd_dtype_name(t->dtype));
        WD_NEED(t->vect_count == 1, reason, NOT_SUPPORTED_LAYOUT, "tensor %c is vectorised",
                "abc"[o]);
        WD_NEED(t->reordering == CUDNN_TENSOR_REORDERING_NONE, reason, NOT_SUPPORTED_LAYOUT,
                "tensor %c is reordered (%d)", "abc"[o], t -> reordering);
        WD_NEED(wd_tensor_count(t) > 0, reason, NOT_SUPPORTED_SHAPE, "tensor %c is empty",
                "abc"[o]);
        for (int d = t->rank - 2; d < t->rank; ++d) {
            WD_NEED(t->dim[d] <= INT32_MAX, reason, NOT_SUPPORTED_SHAPE,
                    "dim[%d]=%lld of tensor %c is beyond BLAS", d, (long long)t->dim[d], "abc"[o]);
        }
    }
    return true;
}

static int64_t workspace(const struct wd_problem *problem)
{
    struct product p;
    read_problem(problem, &p);
    return p.workers * (p.tile_bytes[A] + p.tile_bytes[B] + p.tile_bytes[C]);
}

static cudnnStatus_t emit(const struct wd_call *call, struct wd_queue *queue)
{
    struct product p;
    struct wd_tasks tasks;
    char none[1]; /* where no workspace is needed */
    struct work work = {&p, call->workspace ? call->workspace : none, &tasks};
    read_problem(&call->problem, &p);
    for (int o = A; o < OPERANDS; ++o) p.operand[o].data = wd_call_data(call, o);
    p.alpha = call->scalars[ALPHA];
    p.beta = call->scalars[BETA];
    atomic_init(&tasks.next, 0);
    tasks.count = p.batch * p.down * p.across;
    return queue->ops->range(queue, run_workers, &work, p.workers, 1);
}

const struct wd_engine wd_engine_matmul_blas = {
    .name = "matmul_blas",
    .op = WD_OP_MATMUL,
    .device = WD_CPU,
    .match = match,
    .workspace = workspace,
    .emit = emit,
};
