/* SPDX-License-Identifier: Apache-2.0
 *
 * BLAS as the engines of the CPU module see it: one matrix product, on one thread, on matrices given
 * by their strides. The module's own threads share the work out; OpenBLAS's threads stay out of it,
 * and what the program itself has set for them is left as it was. Safe for threads. */
#ifndef WD_CPU_MODULE_BLAS_H
#define WD_CPU_MODULE_BLAS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether there is an OpenBLAS; it is opened by the first call. If not, `why` (may be null) says
 * what is missing. */
bool wd_blas_ready(const char **why);

/* The kernels that OpenBLAS chose, as it names them ("SkylakeX"); "" where there is no OpenBLAS. */
const char *wd_blas_core(void);

/* Around the products of one thread: between them OpenBLAS uses one thread. wd_blas_leave takes what
 * wd_blas_enter gave. */
int wd_blas_enter(void);
void wd_blas_leave(int entered);

/* A matrix of which one stride is 1, or whose extent along the other is. */
struct wd_matrix {
    const void *data;
    int64_t row; /* stride between rows, in elements */
    int64_t column;
};

/* Whether BLAS can read a rows x columns matrix where it lies. */
bool wd_blas_takes(int64_t rows, int64_t columns, int64_t row, int64_t column);

/* C = alpha A B + beta C for A of m x k, B of k x n, C of m x n, each of which wd_blas_takes. With
 * beta 0 the old C is not read. Extents are at most INT32_MAX. */
void wd_gemm_f32(int64_t m, int64_t n, int64_t k, double alpha, struct wd_matrix a,
                 struct wd_matrix b, double beta, struct wd_matrix c);
void wd_gemm_f64(int64_t m, int64_t n, int64_t k, double alpha, struct wd_matrix a,
                 struct wd_matrix b, double beta, struct wd_matrix c);

#endif
