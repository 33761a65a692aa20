// SPDX-License-Identifier: Apache-2.0
//
// What a thread of a row makes of its terms, run by run, and lanes of a warp of what they have, for the
// kernels whose outputs are rows.
#ifndef WD_OPS_REDUCE_TERMS_CUH
#define WD_OPS_REDUCE_TERMS_CUH

#include "ops/reduce/reduce_device.cuh"

namespace {

// ---- What a thread makes of terms whose indices rise ----

template <int OP, class A, int V> struct terms;

template <class A, int V> struct terms<SUM, A, V> {
    A part[V];
    double total;

    __device__ __forceinline__ void begin(const reduce_vector_args &)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) part[j] = 0;
        total = 0.0;
    }
    __device__ __forceinline__ void add(const reduce_vector_args &a, const A *w, int32_t, int32_t)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) {
            part[j] = add_product(w[j], a.squares ? w[j] : (A)1, part[j]);
        }
    }
    __device__ __forceinline__ void flush()
    {
        A sum = 0;
#pragma unroll
        for (int j = 0; j < V; ++j) sum += part[j], part[j] = 0;
        total += sum;
    }
    __device__ __forceinline__ state<SUM, A> get(const reduce_vector_args &)
    {
        flush();
        return {total};
    }
};

template <class A, int V> struct terms<PRODUCT, A, V> {
    static constexpr int CHAINS = V < 4 ? V : 4;
    double part[CHAINS];

    __device__ __forceinline__ void begin(const reduce_vector_args &)
    {
#pragma unroll
        for (int j = 0; j < CHAINS; ++j) part[j] = 1.0;
    }
    __device__ __forceinline__ void add(const reduce_vector_args &, const A *w, int32_t, int32_t)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) part[j % CHAINS] *= (double)w[j];
    }
    __device__ __forceinline__ void flush()
    {
    }
    __device__ __forceinline__ state<PRODUCT, A> get(const reduce_vector_args &)
    {
        double all = 1.0;
#pragma unroll
        for (int j = 0; j < CHAINS; ++j) all *= part[j];
        return {all};
    }
};

// The greatest and where it was first: the greatest of a run is compared, its place looked for only
// where it wins. Where NaN is passed over `best` is NaN until there is a number.
template <class A, int V> struct terms<PICK, A, V> {
    A best;
    int32_t index; // INT32_MAX: nothing was seen

    __device__ __forceinline__ void begin(const reduce_vector_args &a)
    {
        best = neutral<PICK, A>(a);
        index = INT32_MAX;
    }
    // `at` is the index of w[0], `low` of the first that counts.
    __device__ __forceinline__ void add(const reduce_vector_args &a, const A *w, int32_t at,
                                        int32_t low)
    {
        A m = w[0];
        bool wins;
        if (index == INT32_MAX) index = a.indices ? low : 0;
        if (a.propagate) {
#pragma unroll
            for (int j = 1; j < V; ++j) m = larger_or_nan(m, w[j]);
            wins = best == best && !(m <= best);
        } else {
#pragma unroll
            for (int j = 1; j < V; ++j) m = larger(m, w[j]);
            wins = m == m && !(m <= best);
        }
        if (!wins) return;
        best = m;
        if (a.indices) {
#pragma unroll
            for (int j = V - 1; j >= 0; --j) {
                if (w[j] == m || (m != m && w[j] != w[j])) index = at + j;
            }
        }
    }
    __device__ __forceinline__ void flush()
    {
    }
    __device__ __forceinline__ state<PICK, A> get(const reduce_vector_args &a)
    {
        if (index == INT32_MAX) return state<PICK, A>::none();
        return {key_of(best, a.propagate), index};
    }
};

// An element by itself: of the ends of a row, fewer than a run each.
template <int OP, class T>
__device__ __forceinline__ void add_one(const reduce_vector_args &a, T element, uint32_t k,
                                        terms<OP, acc<T>, run_of<T>> &sum)
{
    acc<T> w[run_of<T>];
    w[0] = term<OP>(a, widened(a, element));
#pragma unroll
    for (int j = 1; j < run_of<T>; ++j) w[j] = neutral<OP, acc<T>>(a);
    sum.add(a, w, (int32_t)k, (int32_t)k);
    sum.flush();
}

// Joins `lanes` neighbours of a warp and puts what they have.
template <int OP, class A>
__device__ __forceinline__ void conclude_lanes(const reduce_vector_args &a, state<OP, A> mine,
                                               uint32_t row, uint32_t lane)
{
    for (uint32_t o = a.lanes / 2; o > 0; o /= 2) mine.join(of_lane_across(mine, o));
    if (lane == 0 && row < a.outputs) put<OP, A>(a, row, mine);
}

} // namespace

#endif
