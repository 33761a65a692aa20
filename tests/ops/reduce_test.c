/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions against their definition in long double: every operator, any set of dims, types and
 * layouts, alpha and beta, NaN under both policies, indices of all four widths with ties, long rows
 * that take a second stage, workspace and indices of exactly the answered sizes. */
#include <math.h>

#include "reduce_case.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static void random_cases(int turns)
{
    for (int op = 0; op < COUNT(reduce_op_names); ++op) {
        for (int t = 0; t < COUNT(reduce_types); ++t) {
            for (int turn = 0; turn < turns; ++turn) {
                const double scalars[] = {1.0, 0.0, 0.5, -1.25};
                struct reduction r = {.op = op, .compute = reduce_types[t].compute};
                bool product =
                    op == CUDNN_REDUCE_TENSOR_MUL || op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
                bool integer = tensor_epsilon(reduce_types[t].a) == 0.5;
                double low = reduce_types[t].a == CUDNN_DATA_UINT8 ? 0.0
                             : product                             ? (integer ? -1.0 : 0.7)
                                                                   : -3.0;
                double high = product ? (integer ? 1.0 : 1.4) : 3.0;
                int rank;
                int dim[8];
                int reduced[8];
                if (!case_begin("random/%s/%s/%d", reduce_op_names[op], reduce_types[t].name, turn))
                    continue;
                rank = random_of(2, 3, 4, 4, 5, 8);
                for (int d = 0; d < rank; ++d) {
                    dim[d] = rank > 5 ? random_of(1, 2, 3) : random_of(1, 2, 3, 5, 8, 11);
                    reduced[d] = random_chance(0.5) ? 1 : dim[d];
                }
                r.nan = random_of(CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN);
                r.indices =
                    random_chance(reduce_picks(op) ? 0.6 : 0.2); /* of the others there are none */
                r.width = random_of(CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES, CUDNN_16BIT_INDICES);
                r.alpha = random_chance(0.5) ? 1.0 : scalars[random_int(0, 3)];
                r.beta = random_chance(0.5) ? 0.0 : scalars[random_int(0, 3)];
                r.a = tensor_input(reduce_types[t].a, rank, dim, reduce_layout(), low, high);
                r.c = reduce_output(reduce_types[t].c, rank, reduced, r.beta);
                reduce_run(&r);
            }
        }
    }
}

/* Few distinct values, so that many are equal; sometimes a NaN or several. */
static void tie_cases(void)
{
    static const int ops[] = {CUDNN_REDUCE_TENSOR_MIN, CUDNN_REDUCE_TENSOR_MAX,
                              CUDNN_REDUCE_TENSOR_AMAX};
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
    static const int dims[][4] = {{3, 5, 7, 2},   {1, 1, 1, 200}, {2, 3, 130, 131}, {256, 1, 1, 3},
                                  {2, 119, 4, 7}, {4, 21, 9, 9},  {2, 61, 7, 33},   {3, 8, 16, 5}};
    static const int kept[] = {2, 2, 2, 2 | 8, 8, 1 | 4 | 8, 1 | 4 | 8, 4}; /* dims, as a mask */
    for (int o = 0; o < COUNT(ops) * COUNT(types); ++o) {
        cudnnDataType_t type = types[o / COUNT(ops)];
        int op = ops[o % COUNT(ops)];
        for (int d = 0; d < COUNT(dims); ++d) {
            for (int nan = 0; nan < 2; ++nan) {
                for (int poison = 0; poison < 3; ++poison) { /* no NaN, some, all */
                    struct reduction r = {.op = op,
                                          .compute = CUDNN_DATA_FLOAT,
                                          .nan = nan,
                                          .indices = 1,
                                          .alpha = 1.0};
                    int reduced[4];
                    if (!case_begin("ties/%s/%d/%d/nan%d/poison%d", reduce_op_names[op], (int)type,
                                    d, nan, poison)) {
                        continue;
                    }
                    for (int i = 0; i < 4; ++i) reduced[i] = kept[d] >> i & 1 ? dims[d][i] : 1;
                    r.a = tensor_input(type, 4, dims[d], reduce_layout(), -1.0, 1.0);
                    for (int64_t i = 0; i < r.a->count; ++i) {
                        r.a->value[i] = (double)random_int(-2, 2);
                        if (poison == 2 || (poison == 1 && random_chance(0.02)))
                            r.a->value[i] = NAN;
                    }
                    tensor_write(r.a);
                    r.c = reduce_output(type, 4, reduced, 0.0);
                    r.width = r.a->count / r.c->count <= 256
                                  ? random_of(CUDNN_8BIT_INDICES, CUDNN_16BIT_INDICES)
                                  : random_of(CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES);
                    reduce_run(&r);
                }
            }
        }
    }
}

/* A NaN passes through sums and products whatever the policy, and stays in its own element. */
static void nan_cases(void)
{
    for (int op = 0; op < COUNT(reduce_op_names); ++op) {
        for (int nan = 0; nan < 2; ++nan) {
            struct reduction r = {.op = op, .compute = CUDNN_DATA_FLOAT, .nan = nan, .alpha = 1.0};
            if (!case_begin("nan/%s/%d", reduce_op_names[op], nan)) continue;
            r.a =
                tensor_input(CUDNN_DATA_FLOAT, 4, (const int[]){2, 3, 5, 7}, LAYOUT_NCHW, 0.8, 1.3);
            r.a->value[40] = NAN;
            tensor_write(r.a);
            r.c = reduce_output(CUDNN_DATA_FLOAT, 4, (const int[]){1, 3, 1, 1}, 0.0);
            reduce_run(&r);
        }
    }
}

/* Shapes that take every branch of the reduction tree; zeros among factors; big values. */
static void hard_cases(void)
{
    static const cudnnDataType_t vectors[] = {CUDNN_DATA_INT8x4, CUDNN_DATA_UINT8x4,
                                              CUDNN_DATA_INT8x32};
    static const struct {
        const char *name;
        int op;
        int type;
        int dim[4];
        int reduced[4];
        double low, high;
        bool indices;
    } rows[] = {
        {"two_stages_add",
         CUDNN_REDUCE_TENSOR_ADD,
         0,
         {4, 5, 130, 131},
         {1, 1, 1, 1},
         -1,
         1,
         false},
        {"two_stages_avg",
         CUDNN_REDUCE_TENSOR_AVG,
         2,
         {4, 5, 130, 131},
         {1, 5, 1, 1},
         -1,
         1,
         false},
        {"two_stages_norm2",
         CUDNN_REDUCE_TENSOR_NORM2,
         1,
         {4, 5, 130, 131},
         {1, 1, 1, 1},
         -1,
         1,
         false},
        {"two_stages_max", CUDNN_REDUCE_TENSOR_MAX, 0, {4, 5, 130, 131}, {1, 1, 1, 1}, -1, 1, true},
        {"two_stages_min_i32",
         CUDNN_REDUCE_TENSOR_MIN,
         9,
         {4, 5, 130, 131},
         {1, 5, 1, 1},
         -50,
         50,
         true},
        {"offset_avg",
         CUDNN_REDUCE_TENSOR_AVG,
         0,
         {16, 3, 64, 65},
         {1, 3, 1, 1},
         9999,
         10001,
         false},
        {"one_dim_1025", CUDNN_REDUCE_TENSOR_ADD, 0, {1025, 1, 1, 1}, {1, 1, 1, 1}, -1, 1, false},
        {"many_short", CUDNN_REDUCE_TENSOR_MAX, 0, {40000, 3, 1, 1}, {40000, 1, 1, 1}, -1, 1, true},
        {"all_kept", CUDNN_REDUCE_TENSOR_NORM2, 0, {3, 4, 5, 6}, {3, 4, 5, 6}, -1, 1, false},
        {"all_kept_index", CUDNN_REDUCE_TENSOR_AMAX, 0, {3, 4, 5, 6}, {3, 4, 5, 6}, -1, 1, true},
        {"zero_factors",
         CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
         7,
         {2, 3, 4, 5},
         {1, 3, 1, 1},
         -1,
         1,
         false},
        {"saturated_i8", CUDNN_REDUCE_TENSOR_ADD, 7, {4, 3, 8, 8}, {1, 3, 1, 1}, -128, 127, false},
        {"exact_i32",
         CUDNN_REDUCE_TENSOR_ADD,
         9,
         {4, 3, 8, 8},
         {1, 3, 1, 1},
         -4000000,
         4000000,
         false},
        {"large_f16", CUDNN_REDUCE_TENSOR_AVG, 2, {64, 3, 8, 8}, {1, 3, 1, 1}, 60000, 65000, false},
    };
    for (int i = 0; i < COUNT(rows); ++i) {
        struct reduction r = {.op = rows[i].op,
                              .compute = reduce_types[rows[i].type].compute,
                              .alpha = 1.0,
                              .indices = rows[i].indices};
        if (!case_begin("hard/%s", rows[i].name)) continue;
        r.a = tensor_input(reduce_types[rows[i].type].a, 4, rows[i].dim, reduce_layout(),
                           rows[i].low, rows[i].high);
        r.c = reduce_output(reduce_types[rows[i].type].c, 4, rows[i].reduced, 0.0);
        reduce_run(&r);
    }
    for (int v = 0; v < COUNT(vectors); ++v) {
        struct reduction r = {
            .op = CUDNN_REDUCE_TENSOR_ADD, .compute = CUDNN_DATA_FLOAT, .alpha = 1.0};
        if (!case_begin("hard/vectorised/%d", (int)vectors[v])) continue;
        r.a = tensor_input(vectors[v], 4, (const int[]){2, 32, 3, 5}, LAYOUT_VECT,
                           vectors[v] == CUDNN_DATA_UINT8x4 ? 0 : -9, 9);
        r.c = reduce_output(CUDNN_DATA_FLOAT, 4, (const int[]){1, 32, 1, 1}, 0.0);
        reduce_run(&r);
    }
    if (case_begin("hard/in_place")) {
        struct reduction r = {
            .op = CUDNN_REDUCE_TENSOR_NORM1, .compute = CUDNN_DATA_FLOAT, .alpha = 2.0};
        r.a = r.c =
            tensor_inout(CUDNN_DATA_FLOAT, 4, (const int[]){2, 3, 4, 5}, LAYOUT_NHWC, -2, 2);
        reduce_run(&r);
    }
}

/* One byte less than is needed, of either buffer, is refused and nothing is written. */
static void short_buffers(void)
{
    struct reduction r = {
        .op = CUDNN_REDUCE_TENSOR_MAX, .compute = CUDNN_DATA_FLOAT, .alpha = 1.0, .indices = 1};
    if (!case_begin("short/workspace_and_indices")) return;
    r.a = tensor_input(CUDNN_DATA_FLOAT, 4, (const int[]){8, 5, 130, 131}, LAYOUT_NCHW, -1, 1);
    r.c = reduce_output(CUDNN_DATA_FLOAT, 4, (const int[]){1, 5, 1, 1}, 0.0);
    if (reduce_prepare(&r)) {
        if (!r.workspace) case_fail("a long reduction asks for no workspace");
        else {
            r.workspace->bytes -= 1;
            run_refused(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, reduce_call, &r);
            r.workspace->bytes += 1;
        }
        r.index_bytes -= 1;
        run_refused(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, reduce_call, &r);
    }
    cudnnDestroyReduceTensorDescriptor(r.desc);
    case_end();
    if (!case_begin("short/index_type")) return;
    r = (struct reduction){
        .op = CUDNN_REDUCE_TENSOR_MAX, .compute = CUDNN_DATA_FLOAT, .alpha = 1.0};
    r.a = tensor_input(CUDNN_DATA_FLOAT, 2, (const int[]){2, 257}, LAYOUT_NCHW, -1, 1);
    r.c = reduce_output(CUDNN_DATA_FLOAT, 2, (const int[]){2, 1}, 0.0);
    r.index = tensor_bytes(64);
    r.index_bytes = 64;
    cudnnCreateReduceTensorDescriptor(&r.desc);
    cudnnSetReduceTensorDescriptor(r.desc, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT,
                                   CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES,
                                   CUDNN_8BIT_INDICES);
    run_refused(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, reduce_call, &r);
    cudnnDestroyReduceTensorDescriptor(r.desc);
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    random_cases(5);
    tie_cases();
    nan_cases();
    hard_cases();
    short_buffers();
    return harness_finish();
}
