/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products through the backend API, on the best engine and on the definition, against sums in
 * long double: every floating type for each of A, B and C and every compute type, integers, any order
 * of dimensions in memory and gaps between elements, batches that repeat, sizes of one, M, N and K
 * overridden per batch entry, NaN and infinities; and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matmul_case.h"
#include "support/backend_build.h"
#include "support/harness.h"

typedef long double wide;

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { A, B, C, M, N, K, OPERANDS };

static be_desc descriptor(const struct operand *t, int64_t uid)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dim[8];
    for (int d = 0; d < t->rank; ++d) dim[d] = t->dim[d];
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, t->dtype);
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, dim);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, t->stride);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 8);
    return be_final(desc);
}

struct product {
    struct operand t[OPERANDS]; /* overrides of rank 0 are absent */
    int compute;
    double padding;
    be_desc plan, pack;
    struct tensor *workspace;
};

static be_desc matmul_desc(int compute, double padding)
{
    be_desc desc = be_make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    be_set_enum(desc, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
    if (padding != 0.0) {
        be_set(desc, CUDNN_ATTR_MATMUL_PADDING_VALUE, CUDNN_TYPE_DOUBLE, 1, &padding);
    }
    return be_final(desc);
}

/* The operation, not finalized. */
static be_desc operation(const struct product *p)
{
    static const cudnnBackendAttributeName_t names[OPERANDS] = {
        CUDNN_ATTR_OPERATION_MATMUL_ADESC,
        CUDNN_ATTR_OPERATION_MATMUL_BDESC,
        CUDNN_ATTR_OPERATION_MATMUL_CDESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC,
    };
    be_desc op = be_make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    be_set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul_desc(p->compute, p->padding));
    for (int o = A; o < OPERANDS; ++o) {
        if (p->t[o].rank) be_set_ref(op, names[o], descriptor(&p->t[o], o + 1));
    }
    return op;
}

static cudnnStatus_t execute(void *context)
{
    struct product *p = context;
    return cudnnBackendExecute(harness_handle, p->plan, p->pack);
}

/* A batch entry of C, row and column as a place in an operand that may have fewer batch entries. */
static void place_of(const struct operand *t, const struct operand *c, const int *at, int row,
                     int column, int *own)
{
    for (int d = 0; d < c->rank - 2; ++d) own[d] = at[d] / (c->dim[d] / t->dim[d]);
    own[c->rank - 2] = row;
    own[c->rank - 1] = column;
}

static int size_at(const struct product *p, int which, const int *at, int size)
{
    int own[8];
    int value;
    if (!p->t[which].rank) return size;
    place_of(&p->t[which], &p->t[C], at, 0, 0, own);
    value = (int)operand_read(&p->t[which], own);
    return value < size ? value : size;
}

/* The exact element of C at a place, and the sum of its terms' magnitudes. */
static double exact_at(const struct product *p, const int *at, double *magnitude)
{
    const struct operand *c = &p->t[C];
    int row = at[c->rank - 2];
    int column = at[c->rank - 1];
    int depth = size_at(p, K, at, p->t[A].dim[c->rank - 1]);
    wide sum = 0.0L;
    *magnitude = 0.0;
    if (row >= size_at(p, M, at, row + 1) || column >= size_at(p, N, at, column + 1)) {
        return p->padding;
    }
    for (int k = 0; k < depth; ++k) {
        int left[8], right[8];
        wide term;
        place_of(&p->t[A], c, at, row, k, left);
        place_of(&p->t[B], c, at, k, column, right);
        term = (wide)operand_read(&p->t[A], left) * (wide)operand_read(&p->t[B], right);
        sum += term;
        *magnitude += fabs((double)term);
    }
    return (double)sum;
}

/* Each element of C within its own rounding and eight of the sum's, whose type is at least fp32.
 * Types that saturate end at their limit. */
static void judge(const struct product *p)
{
    const struct operand *c = &p->t[C];
    bool in_double = p->compute == CUDNN_DATA_DOUBLE;
    if (!harness_values) return;
    for (int o = A; o <= C; ++o) {
        in_double =
            in_double || p->t[o].dtype == CUDNN_DATA_DOUBLE || dtype_is_integer(p->t[o].dtype);
    }
    for (int64_t i = 0; i < c->count; ++i) {
        double want, got, magnitude, allowed;
        int at[8];
        operand_split(c, i, at);
        want = exact_at(p, at, &magnitude);
        if (isinf(want)) want = copysign(dtype_limit(c->dtype), want);
        got = operand_read(c, at);
        if (want != want ? got != got : got == want) continue;
        allowed =
            dtype_rounding(c->dtype, want) + 8.0 * (in_double ? 0x1p-53 : 0x1p-24) * magnitude;
        if (isfinite(want) && fabs(got - want) <= allowed) continue;
        case_fail("c[%lld] of %lld is %.9g, exactly %.9g, allowed error %.3g", (long long)i,
                  (long long)c->count, got, want, allowed);
        return;
    }
}

enum { BEST, DEFINITION };

/* Plans the product on an engine, runs it in every way and judges C. */
static void run(struct product *p, int engine)
{
    be_desc op = be_final(operation(p));
    be_desc graph = be_graph(harness_handle, 1, &op);
    size_t bytes = (size_t)p->t[C].whole->count * sizeof(double);
    double *before = malloc(bytes);
    int64_t uids[OPERANDS];
    void *data[OPERANDS];
    int64_t room;
    int count = 0;
    memcpy(before, p->t[C].whole->value, bytes);
    p->plan = be_plan(harness_handle, be_config(be_engine(graph, engine == BEST   ? 0
                                                                 : harness_on_gpu ? 201
                                                                                  : 200)));
    room = be_workspace(p->plan);
    p->workspace = room > 0 ? tensor_bytes(room) : NULL;
    for (int o = A; o < OPERANDS; ++o) {
        if (!p->t[o].rank) continue;
        uids[count] = o + 1;
        data[count++] = p->t[o].whole->data;
    }
    p->pack = be_pack(count, uids, data, p->workspace ? p->workspace->data : NULL);
    if (run_call(execute, p)) {
        judge(p);
        operand_check_rest(&p->t[C], before);
    }
    free(before);
    be_free_all();
    case_end();
}

/* Batch entries of an operand: as many as C's, or fewer that divide them. */
static void batches(int rank, const int *c, int *dim)
{
    for (int d = 0; d < rank - 2; ++d) {
        dim[d] = random_chance(0.5) ? c[d] : (int)random_int(1, c[d]);
        while (c[d] % dim[d]) dim[d] -= 1;
    }
}

static void make_operands(struct product *p, const int *types, int rank, int m, int n, int k,
                          bool plain)
{
    int a[8], b[8], c[8];
    for (int d = 0; d < rank - 2; ++d) c[d] = random_of(1, 2, 3, 4, 6);
    batches(rank, c, a);
    batches(rank, c, b);
    a[rank - 2] = c[rank - 2] = m;
    a[rank - 1] = b[rank - 2] = k;
    b[rank - 1] = c[rank - 1] = n;
    operand_make(&p->t[A], types[A], rank, a, false, plain);
    operand_make(&p->t[B], types[B], rank, b, false, plain);
    operand_make(&p->t[C], types[C], rank, c, true, plain);
}

static const int computes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                               CUDNN_DATA_BFLOAT16};

static void type_case(int a, int b, int c, int engine, int turn)
{
    struct product p = {.compute = computes[turn % COUNT(computes)]};
    const int types[3] = {a, b, c};
    if (!case_begin("matmul %s x %s = %s by %s on the %s/%d", dtype_name(a), dtype_name(b),
                    dtype_name(c), dtype_name(p.compute), engine ? "definition" : "best", turn)) {
        return;
    }
    make_operands(&p, types, random_of(2, 3, 3, 4, 5), random_of(1, 2, 3, 5, 9, 17),
                  random_of(1, 2, 4, 7, 8, 15), random_of(1, 2, 3, 8, 11, 33), false);
    run(&p, engine);
}

static void type_cases(void)
{
    static const int floats[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_DOUBLE,   CUDNN_DATA_HALF,
                                 CUDNN_DATA_BFLOAT16, CUDNN_DATA_FP8_E4M3, CUDNN_DATA_FP8_E5M2,
                                 CUDNN_DATA_FP4_E2M1};
    static const int integers[][3] = {
        {CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32},
        {CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_FLOAT},
        {CUDNN_DATA_UINT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32},
        {CUDNN_DATA_INT32, CUDNN_DATA_INT32, CUDNN_DATA_INT64},
        {CUDNN_DATA_INT8, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
    };
    int turn = 0;
    for (int a = 0; a < COUNT(floats); ++a)
        for (int b = 0; b < COUNT(floats); ++b)
            for (int c = 0; c < COUNT(floats) - 1; ++c, ++turn) {
                type_case(floats[a], floats[b], floats[c], turn % 2, turn);
            }
    for (int engine = BEST; engine <= DEFINITION; ++engine) {
        for (int again = 0; again < 24; ++again) { /* the common ones, more often */
            type_case(floats[again % 4], floats[again % 4], floats[again % 4], engine,
                      1000 + again);
            type_case(floats[2 + again % 2], floats[2 + again % 2], floats[0], engine,
                      1100 + again);
        }
        for (int i = 0; i < COUNT(integers); ++i) {
            for (int again = 0; again < 12; ++again) { /* enough for every order */
                type_case(integers[i][0], integers[i][1], integers[i][2], engine, 1200 + again);
            }
        }
    }
}

/* Sizes of one, odd ones, and ones beyond the blocks of any engine. */
static void size_case(int m, int n, int k, int type, int engine)
{
    struct product p = {.compute = CUDNN_DATA_FLOAT};
    const int types[3] = {type, type, type};
    bool plain;
    if (!case_begin("matmul sizes %d %d %d %s on the %s", m, n, k, dtype_name(type),
                    engine ? "definition" : "best")) {
        return;
    }
    plain = random_chance(0.5);
    make_operands(&p, types, random_of(2, 3), m, n, k, plain || m * n * k > 10000);
    run(&p, engine);
}

/* Sizes overridden per batch entry: what lies beyond is NaN in A and B, and must not be read. */
static void override_case(int which, int type, int width, int turn)
{
    struct product p = {.compute = CUDNN_DATA_FLOAT};
    const int types[3] = {type, type, turn % 2 ? type : CUDNN_DATA_FLOAT};
    int rank, dim[8], limit[3];
    if (!case_begin("matmul override %d %s by %s/%d", which, dtype_name(type), dtype_name(width),
                    turn)) {
        return;
    }
    p.padding = random_of(0, 1, -3) * 0.5;
    rank = random_of(2, 3, 4);
    limit[0] = random_of(1, 4, 7);
    limit[1] = random_of(1, 3, 8);
    limit[2] = random_of(1, 5, 19);
    make_operands(&p, types, rank, limit[0], limit[1], limit[2], false);
    for (int o = M; o <= K; ++o) {
        if (!(which >> (o - M) & 1)) continue;
        batches(rank, p.t[C].dim, dim);
        dim[rank - 2] = dim[rank - 1] = 1;
        operand_make(&p.t[o], width, rank, dim, false, false);
        for (int64_t i = 0; i < p.t[o].count; ++i) {
            int at[8];
            operand_split(&p.t[o], i, at);
            operand_write(&p.t[o], at, (double)random_int(0, limit[o - M] + 1));
        }
        tensor_write(p.t[o].whole);
    }
    if (which >> 2 & 1) {
        /* a column of A that no batch entry uses */
        int most = 0;
        for (int64_t i = 0; i < p.t[K].whole->count; ++i) {
            if (p.t[K].whole->value[i] > most) most = (int)p.t[K].whole->value[i];
        }
        for (int64_t i = 0; i < p.t[A].count; ++i) {
            int at[8];
            operand_split(&p.t[A], i, at);
            if (at[rank - 1] >= most) operand_write(&p.t[A], at, NAN);
        }
        tensor_write(p.t[A].whole);
    }
    run(&p, BEST);
}

/* One special value in A or B reaches exactly what it takes part in. */
static void special_case(int type, int which, double value, int engine)
{
    struct product p = {.compute = CUDNN_DATA_FLOAT};
    const int types[3] = {type, type, random_of(0, 1) ? CUDNN_DATA_FLOAT : type};
    if (!case_begin("matmul %g in %c of %s on the %s", value, "ab"[which], dtype_name(type),
                    engine ? "definition" : "best")) {
        return;
    }
    make_operands(&p, types, 3, 5, 6, 7, false);
    for (int i = 0; i < 2; ++i) {
        int at[8];
        operand_split(&p.t[which], random_int(0, p.t[which].count - 1), at);
        operand_write(&p.t[which], at, i ? value : -value);
        /* a zero on the other side makes a NaN of an infinity */
        operand_split(&p.t[!which], random_int(0, p.t[!which].count - 1), at);
        operand_write(&p.t[!which], at, 0.0);
    }
    tensor_write(p.t[A].whole);
    tensor_write(p.t[B].whole);
    run(&p, engine);
}

/* Wrong products are refused with a text, at the latest when the graph is finalized. */
static void refused_case(const char *what, const char *rule, int operand, int dimension, int size,
                         int type)
{
    static const int dims[OPERANDS][4] = {{4, 2, 3, 5}, {4, 2, 5, 6}, {4, 2, 3, 6},
                                          {4, 2, 1, 1}, {4, 2, 1, 1}, {4, 2, 1, 1}};
    struct product p = {.compute = CUDNN_DATA_FLOAT};
    char text[512] = "";
    cudnnStatus_t status;
    be_desc op;
    if (!case_begin("matmul refused: %s", what)) return;
    for (int o = A; o < OPERANDS; ++o) {
        int dim[4];
        memcpy(dim, dims[o], sizeof dim);
        if (o == operand && dimension >= 0) dim[dimension] = size;
        operand_make(&p.t[o], o >= M ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT, 4, dim, false, true);
        if (o == operand && type >= 0) p.t[o].dtype = type;
        if (o == operand && dimension == -2) p.t[o].rank = 3;
    }
    op = operation(&p);
    status = cudnnBackendFinalize(op);
    if (status == CUDNN_STATUS_SUCCESS) {
        be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
        be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &harness_handle);
        status = cudnnBackendFinalize(graph);
    }
    cudnnGetLastErrorString(text, sizeof text);
    if (status == CUDNN_STATUS_SUCCESS) case_fail("it was taken");
    if (!strstr(text, rule)) case_fail("%s: %s", cudnnGetErrorString(status), text);
    be_free_all();
    case_end();
}

static void refused_cases(void)
{
    refused_case("K differs", "a has K=5 columns, b has 4 rows", B, 2, 4, -1);
    refused_case("M differs", "but M=7 and N=6", A, 2, 7, -1);
    refused_case("N differs", "but M=3 and N=7", B, 3, 7, -1);
    refused_case("batches do not divide", "batch dim[0]=3 of a does not divide the 4", A, 0, 3, -1);
    refused_case("more batches than C", "batch dim[1]=4 of b does not divide the 2", B, 1, 4, -1);
    refused_case("ranks differ", "b has 3 dimensions, c has 4", B, -2, 0, -1);
    refused_case("complex", "tensor a is complex-fp32", A, -1, 0, CUDNN_DATA_COMPLEX_FP32);
    refused_case("boolean", "tensor b is boolean", B, -1, 0, CUDNN_DATA_BOOLEAN);
    refused_case("C of half bytes", "c is e2m1, of less than a byte", C, -1, 0,
                 CUDNN_DATA_FP4_E2M1);
    refused_case("overrides of M are real", "the override of M is fp32", M, -1, 0,
                 CUDNN_DATA_FLOAT);
    refused_case("two overrides an entry", "the override of N has more than one value", N, 3, 2,
                 -1);
    refused_case("overrides do not divide", "batch dim[0]=3 of K does not divide", K, 0, 3, -1);
}

int main(int argc, char **argv)
{
    static const int sizes[][3] = {{1, 1, 1},    {1, 1, 300},  {1, 40, 1},    {40, 1, 1},
                                   {1, 33, 17},  {33, 1, 17},  {33, 17, 1},   {2, 2, 1000},
                                   {63, 65, 31}, {129, 7, 64}, {100, 130, 90}};
    static const int specials[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                   CUDNN_DATA_BFLOAT16, CUDNN_DATA_FP8_E5M2};
    harness_start(argc, argv);
    type_cases();
    for (int i = 0; i < COUNT(sizes); ++i) {
        for (int engine = BEST; engine <= DEFINITION; ++engine) {
            size_case(sizes[i][0], sizes[i][1], sizes[i][2], CUDNN_DATA_FLOAT, engine);
            size_case(sizes[i][0], sizes[i][1], sizes[i][2], CUDNN_DATA_BFLOAT16, engine);
            size_case(sizes[i][0], sizes[i][1], sizes[i][2], CUDNN_DATA_DOUBLE, engine);
        }
    }
    for (int which = 1; which < 8; ++which) {
        for (int turn = 0; turn < 6; ++turn) {
            override_case(which, turn < 3 ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF,
                          turn % 3 ? CUDNN_DATA_INT32 : CUDNN_DATA_INT64, turn);
        }
    }
    for (int i = 0; i < COUNT(specials); ++i) {
        for (int engine = BEST; engine <= DEFINITION; ++engine) {
            for (int which = A; which <= B; ++which) {
                special_case(specials[i], which, NAN, engine);
                special_case(specials[i], which, INFINITY, engine);
            }
        }
    }
    refused_cases();
    return harness_finish();
}
