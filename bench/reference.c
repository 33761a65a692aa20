/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine can do: sgemm at 2048^3 by OpenBLAS on all its threads, and a plain vector copy on
 * as many threads as the library uses. OpenBLAS is not linked but looked up after the library has
 * opened it, so that it runs the kernels that the library's engines run. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { SIZE = 2048, PRODUCTS = 8, COPIES = 6, SMALL_COPIES = 200, THREADS_MAX = 256 };
static struct reference reference;

static float *values(size_t count)
{
    float *v = aligned_alloc(64, count * sizeof *v);
    if (!v) exit(1);
    for (size_t i = 0; i < count; ++i) v[i] = (float)(i * 2654435761u % 1000) / 1000.0F - 0.5F;
    return v;
}

static bool look_up(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

const struct reference *bench_reference_sgemm(void)
{
    enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                  float, float *, int);
    void (*set_threads)(int);
    int (*get_threads)(void);
    char *(*core)(void);
    int before;
    float *a;
    float *b;
    float *c;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    reference.threads = bench_threads();
    if (!library || !look_up(library, "cblas_sgemm", &sgemm) ||
        !look_up(library, "openblas_set_num_threads", &set_threads) ||
        !look_up(library, "openblas_get_num_threads", &get_threads) ||
        !look_up(library, "openblas_get_corename", &core)) {
        return &reference;
    }
    snprintf(reference.core, sizeof reference.core, "%s", core());
    a = values((size_t)SIZE * SIZE);
    b = values((size_t)SIZE * SIZE);
    c = values((size_t)SIZE * SIZE);
    before = get_threads();
    /* threads of OpenBLAS that wait spin: in time of the processors one is as good as all */
    set_threads(bench_options.processor ? 1 : reference.threads);
    for (int i = 0; i < PRODUCTS; ++i) {
        double start = cpu_now();
        double rate;
        sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, SIZE, SIZE, SIZE, 1.0F, a, SIZE, b, SIZE, 0.0F,
              c, SIZE);
        rate = 2.0 * SIZE * SIZE * SIZE / (cpu_now() - start);
        if (rate > reference.sgemm) reference.sgemm = rate;
    }
    set_threads(before);
    free(a);
    free(b);
    free(c);
    dlclose(library);
    return &reference;
}

struct piece {
    float *to;
    const float *from;
    size_t count;
};

/* A loop, not memcpy, which may choose stores past the caches. */
__attribute__((noinline)) static void copy(float *restrict to, const float *restrict from,
                                           size_t count)
{
    for (size_t i = 0; i + 16 <= count; i += 16) {
        float line[16];
        memcpy(line, from + i, sizeof line);
        __asm__ volatile("" ::: "memory");
        memcpy(to + i, line, sizeof line);
    }
}

static void *copy_piece(void *context)
{
    const struct piece *piece = context;
    copy(piece->to, piece->from, piece->count);
    return NULL;
}

double bench_reference_copy(double bytes)
{
    size_t count = (size_t)(bytes / 2.0 / sizeof(float)) / 16 * 16;
    float *from = values(count);
    float *to = values(count);
    bool small = bytes < 1e6; /* there a thread would cost more than it copies */
    int n = small ? 1 : bench_threads();
    double best = 0.0;
    for (int i = 0; i < (small ? SMALL_COPIES : COPIES); ++i) {
        pthread_t thread[THREADS_MAX];
        struct piece piece[THREADS_MAX] = {{NULL, NULL, 0}};
        double start = cpu_now();
        double rate;
        int started = 1;
        for (int t = 0; t < n; ++t) {
            size_t first = count / 16 * (size_t)t / (size_t)n * 16;
            size_t last = count / 16 * (size_t)(t + 1) / (size_t)n * 16;
            piece[t] = (struct piece){to + first, from + first, last - first};
        }
        while (started < n &&
               !pthread_create(&thread[started], NULL, copy_piece, &piece[started])) {
            started += 1;
        }
        for (int t = started; t < n; ++t) copy_piece(&piece[t]);
        copy_piece(&piece[0]);
        for (int t = 1; t < started; ++t) pthread_join(thread[t], NULL);
        rate = 2.0 * (double)(count * sizeof(float)) / (cpu_now() - start);
        if (rate > best) best = rate;
    }
    free(from);
    free(to);
    return best;
}
