/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast CPU engine of matmul, which must be the one that runs: sizes that are cut into blocks, in
 * every layout, with one, two and 64 threads, against sums in double; and its bounded workspace. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_runs.h"
#include "support/backend_build.h"
#include "support/harness.h"

enum { WORKSPACE_MAX = 64 << 20 };

static be_desc described(const struct tensor *t, int64_t uid)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dim[8];
    int64_t stride[8];
    for (int d = 0; d < t->rank; ++d) {
        dim[d] = t->dim[d];
        stride[d] = t->stride[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, (int)t->dtype);
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, dim);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, stride);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 4);
    return be_final(desc);
}

struct product {
    be_desc plan, pack;
};

static cudnnStatus_t run_product(void *context)
{
    struct product *p = context;
    return cudnnBackendExecute(harness_handle, p->plan, p->pack);
}

/* The harness lays tensors out as NCHW, NHWC or with gaps: of rank 4 these are [batch, batch, rows,
 * columns] with the columns, the second batch, or nothing side by side. */
static void matmul_case(int m, int n, int k, cudnnDataType_t dtype, int turn)
{
    struct product p;
    struct tensor *a;
    struct tensor *b;
    struct tensor *c;
    int batch[2] = {(int)random_int(1, 3), (int)random_int(1, 2)};
    int dim_a[4] = {random_chance(0.3) ? 1 : batch[0], batch[1], m, k};
    int dim_b[4] = {batch[0], random_chance(0.3) ? 1 : batch[1], k, n};
    int dim_c[4] = {batch[0], batch[1], m, n};
    const char *name = "";
    double *exact;
    double *magnitude;
    if (!case_begin("matmul %dx%dx%d type %d turn %d", m, n, k, (int)dtype, turn)) return;
    a = tensor_input(dtype, 4, dim_a, (enum layout)random_of(0, 0, 1, 2), -1.0, 1.0);
    b = tensor_input(dtype, 4, dim_b, (enum layout)random_of(0, 0, 1, 2), -1.0, 1.0);
    c = tensor_inout(dtype, 4, dim_c, (enum layout)random_of(0, 0, 1, 2), -1.0, 1.0);
    exact = calloc((size_t)c->count, sizeof *exact);
    magnitude = calloc((size_t)c->count, sizeof *magnitude);
    for (int64_t e = 0; e < (int64_t)batch[0] * batch[1]; ++e) {
        int64_t first = e / batch[1];
        int64_t second = e % batch[1];
        const double *ra = a->value + ((dim_a[0] == 1 ? 0 : first) * dim_a[1] + second) * m * k;
        const double *rb =
            b->value + (first * dim_b[1] + (dim_b[1] == 1 ? 0 : second)) * (int64_t)k * n;
        for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < k; ++j) {
                for (int64_t l = 0; l < n; ++l) {
                    double product = ra[i * k + j] * rb[j * n + l];
                    exact[(e * m + i) * n + l] += product;
                    magnitude[(e * m + i) * n + l] += fabs(product);
                }
            }
        }
    }
    {
        be_desc op = be_matmul(described(a, 1), described(b, 2), described(c, 3));
        const int64_t uids[3] = {1, 2, 3};
        void *const data[3] = {a->data, b->data, c->data};
        int64_t bytes;
        struct tensor *workspace = NULL;
        p.plan = be_plan_of(harness_handle, 1, &op);
        bytes = be_workspace(p.plan);
        if (bytes > WORKSPACE_MAX) case_fail("the workspace takes %lld bytes", (long long)bytes);
        if (bytes > 0) workspace = tensor_bytes(bytes);
        p.pack = be_pack(3, uids, data, workspace ? workspace->data : NULL);
    }
    if (run_call(run_product, &p)) {
        check_values("c", c, exact, NULL, magnitude,
                     dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    }
    warpdnnGetLastEngine(harness_handle, &name);
    if (strcmp(name, "matmul_blas") != 0) case_fail("%s ran", name);
    be_free_all();
    free(exact);
    free(magnitude);
    case_end();
}

static int run_cases(int argc, char **argv)
{
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                            CUDNN_DATA_BFLOAT16};
    harness_start(argc, argv);
    for (int turn = 0; turn < 4; ++turn) {
        for (int t = 0; t < 4; ++t) {
            matmul_case(1, 1, 1, types[t], turn);
            matmul_case(1, 77, 65, types[t], turn);
            matmul_case(130, 1, 33, types[t], turn);
            matmul_case(97, 101, 103, types[t], turn);
            matmul_case(33, 600, 530, types[t], turn);
        }
    }
    return harness_finish();
}

int main(int argc, char **argv)
{
    if (cpu_runs_in_thread_sanitizer()) return cpu_runs_skipped("threads_test is for it");
    return cpu_runs(argc, argv, false, run_cases);
}
