// SPDX-License-Identifier: Apache-2.0
//
// Sums over windows of neighbours, each added up anew: a NaN or an infinity ends where its window ends. In
// registers in pieces of 1, 2, 4, 8 ... elements that neighbours share; of what a thread walks along, in shared
// memory: the sum since the last multiple of n, and that of the last elements before it (van Herk 1992).
#ifndef WD_OPS_LRN_WINDOW_SUMS_CUH
#define WD_OPS_LRN_WINDOW_SUMS_CUH

#include "gpu/device/shared.cuh"

namespace {

__device__ __forceinline__ unsigned char *lrn_shared(void)
{
    WD_DYNAMIC_SHARED(unsigned char, bytes);
    return bytes;
}

// Sums of n neighbours: out[i] of in[i] .. in[i + n - 1]. N: n, or 0; MOST: the largest that n may be.
template <int COUNT, int N, int MOST, class A>
__device__ __forceinline__ void window_sums(A *in, int n, A *out)
{
    constexpr int TOTAL = COUNT + MOST - 1;
    A sum[TOTAL];
#pragma unroll
    for (int i = 0; i < TOTAL; ++i) sum[i] = 0;
#pragma unroll
    for (int by = 1; by <= MOST; by *= 2) {
        // in[i] is the sum of `by` elements now, sum[i] that of as many as the lower bits of n say
        if ((N ? N : n) & by) {
#pragma unroll
            for (int i = 0; i < TOTAL; ++i) {
                if (i + by <= TOTAL) sum[i] = in[i] + (i + by < TOTAL ? sum[i + by] : (A)0);
            }
        }
        if (2 * by > (N ? N : n)) break;
#pragma unroll
        for (int i = 0; i + by < TOTAL; ++i) in[i] += in[i + by];
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) out[i] = sum[i];
}

template <class A, int V> struct alignas(sizeof(A) * V) pack {
    A v[V];
};

// A thread's column of `rows` packs, those of a block's threads side by side.
template <class A, int V, int THREADS> struct thread_column {
    pack<A, V> *base;
    __device__ __forceinline__ thread_column(int first_row)
        : base(reinterpret_cast<pack<A, V> *>(lrn_shared()) + first_row * THREADS + threadIdx.x)
    {
    }
    __device__ __forceinline__ pack<A, V> &operator[](int row) const
    {
        return base[row * THREADS];
    }
};

// The sum of the last n packs; row n of its n + 1 rows stays 0. Between multiples of n a row holds
// what came there, or, until then, the sum of all that came from there to the last multiple of n.
template <class A, int V, int THREADS> struct walked_sum {
    thread_column<A, V, THREADS> row;
    pack<A, V> since;
    __device__ __forceinline__ walked_sum(int first_row, int n) : row(first_row)
    {
        for (int i = 0; i <= n; ++i) {
#pragma unroll
            for (int v = 0; v < V; ++v) row[i].v[v] = 0;
        }
#pragma unroll
        for (int v = 0; v < V; ++v) since.v[v] = 0;
    }
    // k counts from 0 to n - 1, and again.
    __device__ __forceinline__ void add(const pack<A, V> &value, int k, int n, A *sum)
    {
        const pack<A, V> before = row[k + 1];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            since.v[v] += value.v[v];
            sum[v] = since.v[v] + before.v[v];
        }
        row[k] = value;
        if (k + 1 < n) return;
        pack<A, V> total = value;
        for (int i = n - 2; i >= 0; --i) {
            pack<A, V> one = row[i];
#pragma unroll
            for (int v = 0; v < V; ++v) total.v[v] += one.v[v];
            row[i] = total;
        }
#pragma unroll
        for (int v = 0; v < V; ++v) since.v[v] = 0;
    }
};

} // namespace

#endif
