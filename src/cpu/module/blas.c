/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens OpenBLAS at run time, for two reasons. Older versions take a processor that is newer than
 * they are for a Pentium 4 and run at a fifth of its speed; the cure is to name a core, which has to
 * happen before the library starts. And a machine without it keeps its definitions.
 *
 * State: a once-table of functions; and, under one lock, how many threads are inside and the number
 * of OpenBLAS threads to put back when the last of them leaves. */
#include "cpu/module/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARALLEL_OPENMP = 2 }; /* what openblas_get_parallel answers */

static struct {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_dgemm) dgemm;
    __typeof__(&openblas_set_num_threads) set_threads;
    __typeof__(&openblas_get_num_threads) get_threads;
    __typeof__(&openblas_get_parallel) get_parallel;
    __typeof__(&openblas_get_corename) get_core;
    /* of the OpenMP runtime that an OpenBLAS on OpenMP uses: settings of the calling thread */
    void (*omp_set_threads)(int);
    int (*omp_max_threads)(void);
} blas;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;
static char reason[256] = "";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside;
static int outer_threads;

/* OpenBLAS gives its buffers back when the process exits, also from under threads that compute. So an
 * exit handler waits for the calls that are in OpenBLAS, and those that come later do without it. */
static _Atomic int running;
static atomic_bool leaving;
enum { LEAVING_POLL_US = 100, LEAVING_POLLS = 50000 };

/* Whether OpenBLAS may be called, until end_call. */
static bool begin_call(void)
{
    atomic_fetch_add(&running, 1);
    if (!atomic_load(&leaving)) return true;
    atomic_fetch_sub(&running, 1);
    return false;
}

static void end_call(void)
{
    atomic_fetch_sub(&running, 1);
}

/* Other threads, and what they were in, are not in the child. */
static void after_fork(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    inside = 0;
    atomic_store(&running, 0);
}

static void at_exit(void)
{
    atomic_store(&leaving, true);
    for (int i = 0; i < LEAVING_POLLS && atomic_load(&running) > 0; ++i) usleep(LEAVING_POLL_US);
}

static bool find(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);
    return symbol != NULL;
}
#define FIND(library, member, name) find((library), (name), &blas.member, sizeof blas.member)

static void *open_library(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
        if (i == 0) {
            const char *said = dlerror();
            snprintf(reason, sizeof reason, "%s", said ? said : names[i]);
        }
    }
    return NULL;
}

/* The core to name instead of the one that OpenBLAS found; null where that was right. */
static const char *better_core(const char *found)
{
#if defined(__x86_64__)
    static const char *const before_avx[] = {"Prescott", "Core2",     "Penryn",  "Nehalem",
                                             "Opteron",  "Barcelona", "generic", "Generic"};
    for (size_t i = 0; i < sizeof before_avx / sizeof before_avx[0]; ++i) {
        if (strcmp(found, before_avx[i]) != 0) continue;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
            return "SkylakeX";
        }
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
    }
#else
    (void)found;
#endif
    return NULL;
}

/* Opens the library with the core named in the environment. The environment is swapped for a longer
 * copy rather than changed, and the copy is never freed: a getenv of another thread may be walking
 * either. */
static void *open_with_core(const char *core)
{
    static char setting[64];
    static char **longer;
    char **old = environ;
    size_t count = 0;
    void *library;
    while (old && old[count]) count += 1;
    longer = malloc((count + 2) * sizeof *longer);
    if (!longer) return open_library();
    snprintf(setting, sizeof setting, "OPENBLAS_CORETYPE=%s", core);
    if (count > 0) memcpy(longer, old, count * sizeof *longer);
    longer[count] = setting;
    longer[count + 1] = NULL;
    environ = longer;
    library = open_library();
    if (environ == longer) environ = old;
    return library;
}

static bool find_all(void *library)
{
    bool found = FIND(library, sgemm, "cblas_sgemm") && FIND(library, dgemm, "cblas_dgemm") &&
                 FIND(library, set_threads, "openblas_set_num_threads") &&
                 FIND(library, get_threads, "openblas_get_num_threads") &&
                 FIND(library, get_parallel, "openblas_get_parallel") &&
                 FIND(library, get_core, "openblas_get_corename");
    if (found && blas.get_parallel() == PARALLEL_OPENMP) {
        found = FIND(library, omp_set_threads, "omp_set_num_threads") &&
                FIND(library, omp_max_threads, "omp_get_max_threads");
    }
    if (!found) snprintf(reason, sizeof reason, "libopenblas lacks a function that we call");
    return found;
}

static void load(void)
{
    void *library = open_library();
    const char *core = NULL;
    if (!library || !find_all(library)) return;
    if (!getenv("OPENBLAS_CORETYPE")) core = better_core(blas.get_core());
    if (core) {
        /* stays open where the program uses it too, and then keeps the core it has */
        dlclose(library);
        library = open_with_core(core);
        if (!library || !find_all(library)) return;
    }
    /* where it cannot be registered, OpenBLAS would not be safe at exit */
    ready = atexit(at_exit) == 0 && pthread_atfork(NULL, NULL, after_fork) == 0;
    if (!ready) snprintf(reason, sizeof reason, "no exit handler can be registered");
}

bool wd_blas_ready(const char **why)
{
    pthread_once(&once, load);
    if (why) *why = reason;
    return ready;
}

const char *wd_blas_core(void)
{
    return wd_blas_ready(NULL) ? blas.get_core() : "";
}

int wd_blas_enter(void)
{
    int entered = 0;
    if (!begin_call()) return entered;
    if (blas.omp_set_threads) {
        entered = blas.omp_max_threads();
        blas.omp_set_threads(1);
        end_call();
        return entered;
    }
    pthread_mutex_lock(&lock);
    if (inside++ == 0) {
        outer_threads = blas.get_threads();
        if (outer_threads != 1) blas.set_threads(1);
    }
    pthread_mutex_unlock(&lock);
    end_call();
    return entered;
}

void wd_blas_leave(int entered)
{
    if (!begin_call()) return; /* nobody puts anything back any more */
    if (blas.omp_set_threads) {
        blas.omp_set_threads(entered);
        end_call();
        return;
    }
    pthread_mutex_lock(&lock);
    if (--inside == 0 && outer_threads != 1 && blas.get_threads() == 1) {
        blas.set_threads(outer_threads);
    }
    pthread_mutex_unlock(&lock);
    end_call();
}

/* How BLAS is told of a matrix in row-major order. */
struct operand {
    CBLAS_TRANSPOSE transpose;
    int64_t leading;
    bool fits;
};

static struct operand operand_of(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    struct operand o = {CblasNoTrans, 0, false};
    if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
        o.leading = rows == 1 && row < columns ? columns : row;
        o.fits = o.leading >= 1;
    } else if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
        o.transpose = CblasTrans;
        o.leading = columns == 1 && column < rows ? rows : column;
        o.fits = o.leading >= 1;
    }
    if (o.leading > INT32_MAX) o.fits = false;
    return o;
}

bool wd_blas_takes(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    return operand_of(rows, columns, row, column).fits;
}

static struct wd_matrix transposed(struct wd_matrix m)
{
    return (struct wd_matrix){m.data, m.column, m.row};
}

/* Brings C to row-major order: C' = B' A' where its columns are the contiguous ones. */
static bool order(int64_t *m, int64_t *n, int64_t k, struct wd_matrix *a, struct wd_matrix *b,
                  struct wd_matrix *c, struct operand *left, struct operand *right,
                  struct operand *out)
{
    *out = operand_of(*m, *n, c->row, c->column);
    if (out->transpose == CblasTrans) {
        struct wd_matrix swap = transposed(*a);
        int64_t rows = *m;
        *a = transposed(*b);
        *b = swap;
        *c = transposed(*c);
        *m = *n;
        *n = rows;
    }
    *left = operand_of(*m, k, a->row, a->column);
    *right = operand_of(k, *n, b->row, b->column);
    return *m > 0 && *n > 0;
}

/* The same without OpenBLAS, while the process exits. */
static void plain_f32(int64_t m, int64_t n, int64_t k, float alpha, struct wd_matrix a,
                      struct wd_matrix b, float beta, struct wd_matrix c)
{
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            float *to = (float *)(uintptr_t)c.data + i * c.row + j * c.column;
            float sum = 0.0f;
            for (int64_t t = 0; t < k; ++t) {
                sum += ((const float *)a.data)[i * a.row + t * a.column] *
                       ((const float *)b.data)[t * b.row + j * b.column];
            }
            *to = alpha * sum + (beta == 0.0f ? 0.0f : beta * *to);
        }
    }
}

static void plain_f64(int64_t m, int64_t n, int64_t k, double alpha, struct wd_matrix a,
                      struct wd_matrix b, double beta, struct wd_matrix c)
{
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            double *to = (double *)(uintptr_t)c.data + i * c.row + j * c.column;
            double sum = 0.0;
            for (int64_t t = 0; t < k; ++t) {
                sum += ((const double *)a.data)[i * a.row + t * a.column] *
                       ((const double *)b.data)[t * b.row + j * b.column];
            }
            *to = alpha * sum + (beta == 0.0 ? 0.0 : beta * *to);
        }
    }
}

void wd_gemm_f32(int64_t m, int64_t n, int64_t k, double alpha, struct wd_matrix a,
                 struct wd_matrix b, double beta, struct wd_matrix c)
{
    struct operand left;
    struct operand right;
    struct operand out;
    if (!order(&m, &n, k, &a, &b, &c, &left, &right, &out)) return;
    if (!begin_call()) {
        plain_f32(m, n, k, (float)alpha, a, b, (float)beta, c);
        return;
    }
    blas.sgemm(CblasRowMajor, left.transpose, right.transpose, (blasint)m, (blasint)n, (blasint)k,
               (float)alpha, a.data, (blasint)left.leading, b.data, (blasint)right.leading,
               (float)beta, (float *)(uintptr_t)c.data, (blasint)out.leading);
    end_call();
}

void wd_gemm_f64(int64_t m, int64_t n, int64_t k, double alpha, struct wd_matrix a,
                 struct wd_matrix b, double beta, struct wd_matrix c)
{
    struct operand left;
    struct operand right;
    struct operand out;
    if (!order(&m, &n, k, &a, &b, &c, &left, &right, &out)) return;
    if (!begin_call()) {
        plain_f64(m, n, k, alpha, a, b, beta, c);
        return;
    }
    blas.dgemm(CblasRowMajor, left.transpose, right.transpose, (blasint)m, (blasint)n, (blasint)k,
               alpha, a.data, (blasint)left.leading, b.data, (blasint)right.leading, beta,
               (double *)(uintptr_t)c.data, (blasint)out.leading);
    end_call();
}
