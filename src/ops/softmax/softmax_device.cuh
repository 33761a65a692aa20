// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of softmax share: what elements give to the maximum and the sum of their row, how
// those of parts are joined through lanes, a block, a cluster of blocks, and how results are stored.
//
// A part of a row that is all minus infinity has sum 0 at maximum -inf, whatever else the row has; a
// row of nothing else becomes NaN in the end, as does one with NaN or plus infinity in it.
#ifndef WD_OPS_SOFTMAX_DEVICE_CUH
#define WD_OPS_SOFTMAX_DEVICE_CUH

#include "gpu/device/barrier.cuh"
#include "gpu/device/cluster.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/format.cuh"
#include "gpu/device/half.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/softmax/softmax_vector_args.h"

namespace {

template <class T> constexpr int run_of = SOFTMAX_BYTES / (int)sizeof(T);
template <class T> using run = wd_run<T, run_of<T>>;
template <class T> using acc = decltype(wd_widen(T()));

constexpr uint32_t WHOLE_WARP = 0xffffffffu;

__device__ __forceinline__ float larger(float a, float b)
{
    return fmaxf(a, b); // the other one where one is NaN
}
__device__ __forceinline__ double larger(double a, double b)
{
    return b > a ? b : a;
}

__device__ __forceinline__ float exp_of(float x)
{
    return expf(x);
}
__device__ __forceinline__ double exp_of(double x)
{
    return exp(x);
}
__device__ __forceinline__ float log_of(float x)
{
    return logf(x);
}
__device__ __forceinline__ double log_of(double x)
{
    return log(x);
}

// For an element: where storage has 11 bits or fewer, an error of x * 2^-24 is lost in its rounding.
// Numbers below the normal ones become 0, which the sum does not feel; what is stored is computed
// 2^16 times too large, and its factor as much too small, so that it is right down to bfloat16's
// smallest.
constexpr int HEADROOM = 16;

template <class T, class A> __device__ __forceinline__ A element_exp(A x)
{
    if constexpr (sizeof(T) == 2) return wd_half_exp(x);
    else return exp_of(x);
}

template <class T, class A> __device__ __forceinline__ A raised_exp(A x)
{
    if constexpr (sizeof(T) == 2) return wd_half_exp2(fmaf(x, WD_LOG2_E, HEADROOM));
    else return exp_of(x);
}

// Makes the compiler convert stored elements anew: it would keep all of them widened otherwise, in
// twice the registers, and across branches too unless these differ in `WHERE`.
template <int WHERE, class T, int N> __device__ __forceinline__ void forget(wd_run<T, N> &r)
{
    if constexpr (sizeof(T) == 2 && N > 1) {
#pragma unroll
        for (int w = 0; w < wd_run<T, N>::WORDS; ++w) wd_forget<WHERE>(r.word[w]);
    }
}

template <class A> __device__ __forceinline__ A lowest()
{
    return -(A)INFINITY;
}

// What exponents are taken relative to: minus infinity less itself is no number.
template <class A> __device__ __forceinline__ A base_of(A max)
{
    return max == lowest<A>() ? (A)0 : max;
}

// What a part of a row comes to: the sum is one of exponentials relative to the maximum. Backward
// the maximum is 0 throughout, and joining adds the sums as they are.
template <class A> struct alignas(2 * sizeof(A)) totals {
    A max;
    A sum;
};

template <class A> __device__ __forceinline__ A max_of_lanes(A v, uint32_t lanes)
{
    for (uint32_t o = lanes / 2; o > 0; o /= 2) v = larger(v, __shfl_xor_sync(WHOLE_WARP, v, o));
    return v;
}

template <class A> __device__ __forceinline__ A sum_of_lanes(A v, uint32_t lanes)
{
    for (uint32_t o = lanes / 2; o > 0; o /= 2) v += __shfl_xor_sync(WHOLE_WARP, v, o);
    return v;
}

template <class A>
__device__ __forceinline__ totals<A> join_lanes(const totals<A> &mine, uint32_t lanes)
{
    const A max = max_of_lanes(mine.max, lanes);
    return {max, sum_of_lanes(mine.sum * exp_of(mine.max - base_of(max)), lanes)};
}

// All threads of the block; `mine` is what their warp has. Once a kernel.
template <class A> __device__ __forceinline__ totals<A> join_block(const totals<A> &mine)
{
    __shared__ totals<A> part[32];
    const uint32_t lane = threadIdx.x % 32;
    if (lane == 0) part[threadIdx.x / 32] = mine;
    __syncthreads();
    totals<A> all = {lowest<A>(), (A)0};
    if (lane < blockDim.x / 32) all = part[lane];
    return join_lanes(all, 32);
}

// ---- Clusters ----

// What the blocks of a cluster have of a row, which they send each other: to read it where it lies takes a barrier of the
// cluster, which waits for all that was written before, and a way there and back.
template <class A> struct cluster_totals {
    static_assert(sizeof(totals<A>) <= sizeof(float4), "what is sent at once");
    float4 of_block[SOFTMAX_CLUSTER_BLOCKS];
    uint64_t here;
};

// All threads of the cluster, once, before join_cluster: nobody may send to a block that has not begun.
template <class A>
__device__ __forceinline__ void begin_cluster(cluster_totals<A> &of, uint32_t cluster)
{
    if (threadIdx.x == 0) {
        wd_counter_begin(&of.here);
        wd_counter_expect(&of.here, cluster * (uint32_t)sizeof(float4));
    }
    wd_cluster_arrive_done();
}

// All threads of the cluster; `mine` is what their block has, the cluster's block `rank`.
template <class A>
__device__ __forceinline__ totals<A> join_cluster(cluster_totals<A> &of, const totals<A> &mine,
                                                  uint32_t cluster, uint32_t rank)
{
    const uint32_t lane = threadIdx.x % 32;
    totals<A> all = {lowest<A>(), (A)0};
    wd_cluster_wait();
    if (threadIdx.x < cluster) {
        float4 word = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        memcpy(&word, &mine, sizeof mine);
        wd_counter_send(&of.of_block[rank], &of.here, lane, word);
    }
    wd_counter_wait(&of.here, 0);
    if (lane < cluster) memcpy(&all, &of.of_block[lane], sizeof all);
    return join_lanes(all, 32);
}

// ---- What elements give ----

// What an element adds to the sum of its row.
template <class T, bool BACKWARD>
__device__ __forceinline__ acc<T> term(acc<T> x, acc<T> dy, acc<T> base, bool log)
{
    if (BACKWARD) return log ? dy : x * dy;
    return element_exp<T>(x - base);
}

template <class T, bool BACKWARD>
__device__ __forceinline__ acc<T> result(acc<T> x, acc<T> dy, const totals<acc<T>> &all,
                                         acc<T> inverse_or_log, bool log)
{
    if (BACKWARD) return log ? dy - element_exp<T>(x) * all.sum : x * (dy - all.sum);
    if (log) return (x - all.max) - inverse_or_log;
    return raised_exp<T>(x - all.max) * inverse_or_log;
}

// The sum as result() wants it.
template <class T> __device__ __forceinline__ acc<T> prepared(acc<T> sum, bool log)
{
    const acc<T> one = sizeof(T) == 2 ? (acc<T>)1 / (1 << HEADROOM) : (acc<T>)1;
    return log ? log_of(sum) : one / sum;
}

template <class A> __device__ __forceinline__ A scaled(A v, A alpha)
{
    return alpha != 0 ? alpha * v : (A)0;
}

template <class T> __device__ __forceinline__ T narrow(acc<T> v)
{
    T to;
    wd_narrow(to, v);
    return to;
}

template <class T>
__device__ __forceinline__ void blend(const softmax_vector_args &a, T *to, acc<T> v)
{
    const acc<T> beta = (acc<T>)a.beta;
    v = scaled(v, (acc<T>)a.alpha);
    if (beta != 0) v += beta * wd_widen(*to);
    wd_narrow(*to, v);
}

template <class T, int N>
__device__ __forceinline__ void blend_run(const softmax_vector_args &a, T *to, const acc<T> *v)
{
    const acc<T> alpha = (acc<T>)a.alpha, beta = (acc<T>)a.beta;
    wd_run<T, N> out;
    if (beta != 0) {
        out.load(to);
    } else {
#pragma unroll
        for (int j = 0; j < N; ++j) out.put(j, narrow<T>((acc<T>)0));
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        out.put(j, narrow<T>(scaled(v[j], alpha) + beta * wd_widen(out.get(j))));
    }
    out.store(to);
}

// ---- Elements that are kept as numbers of the accumulator (gpu/device/format.cuh) ----

// The runs of 16 bytes of a row that a thread has: every `lanes`-th.
struct run_place {
    static constexpr int GROUP = 1;
    static constexpr bool CHAIN = false;
    int64_t at; // of the row
    uint32_t lane;
    uint32_t lanes;
    uint32_t n; // runs of the row, 0 where there is none

    __device__ __forceinline__ int64_t first(int v) const
    {
        return at + lane * v;
    }
    __device__ __forceinline__ int64_t step(int v) const
    {
        return lanes * v;
    }
    __device__ __forceinline__ bool has(int r) const
    {
        return lane + r * lanes < n;
    }
    __device__ __forceinline__ bool behind(int) const
    {
        return false;
    }
};

// Makes of R runs of V elements each its exponential relative to `base`, or less `base` if `log`, and
// adds the exponentials to `sum`. HALF: what is stored has 11 bits or fewer, and exponentials are 2^HEADROOM
// too large.
template <bool HALF, int R, int V, class A, class PLACE>
__device__ __forceinline__ void exponentials_as(A (&x)[R * V], const A (&base)[V], A (&sum)[V],
                                                bool log, const PLACE &place)
{
    A odd = 0; // of single sums every other term
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
        if (place.behind(g)) continue;
#pragma unroll
        for (int r = g; r < g + PLACE::GROUP; ++r) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const A less = x[r * V + j] - base[j];
                A e;
                if constexpr (HALF) e = wd_half_exp2(fmaf(less, WD_LOG2_E, HEADROOM));
                else e = exp_of(less);
                if (V == 1 && r % 2) odd += e;
                else sum[j] += e;
                x[r * V + j] = log ? less : e;
            }
        }
    }
    if (V == 1) sum[0] += odd;
}

template <int R, int V, class A, class PLACE>
__device__ __forceinline__ void exponentials(const softmax_vector_args &a, A (&x)[R * V],
                                             const A (&base)[V], A (&sum)[V], const PLACE &place)
{
    if constexpr (sizeof(A) == 8) {
        exponentials_as<false, R, V>(x, base, sum, a.log, place);
    } else {
        if (a.format == WD_FORMAT_F32) exponentials_as<false, R, V>(x, base, sum, a.log, place);
        else exponentials_as<true, R, V>(x, base, sum, a.log, place);
    }
}

// What such exponentials are too large by, as a factor.
template <class A> __device__ __forceinline__ A lower_of(const softmax_vector_args &a)
{
    return sizeof(A) == 8 || a.format == WD_FORMAT_F32 ? (A)1 : (A)1 / (1 << HEADROOM);
}

template <int R, int V, class A, class PLACE>
__device__ __forceinline__ void largest(const A (&x)[R * V], A (&max)[V], const PLACE &place)
{
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
        if (place.behind(g)) continue;
#pragma unroll
        for (int r = g; r < g + PLACE::GROUP; ++r) {
#pragma unroll
            for (int j = 0; j < V; ++j) max[j] = larger(max[j], x[r * V + j]);
        }
    }
}

// Backward, what a row's elements add to its sum.
template <int R, int V, class A, class PLACE>
__device__ __forceinline__ void products(const softmax_vector_args &a, const A (&y)[R * V],
                                         const A (&dy)[R * V], A (&sum)[V], const PLACE &place)
{
    A odd = 0;
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
        if (place.behind(g)) continue;
#pragma unroll
        for (int r = g; r < g + PLACE::GROUP; ++r) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const A factor = a.log ? (A)1 : y[r * V + j];
                if (V == 1 && r % 2) odd += factor * dy[r * V + j];
                else sum[j] += factor * dy[r * V + j];
            }
        }
    }
    if (V == 1) sum[0] += odd;
}

template <bool HALF, int R, int V, class A, class PLACE>
__device__ __forceinline__ void exponentials_times(A (&y)[R * V], const A (&sum)[V],
                                                   const A (&dy)[R * V], const PLACE &place)
{
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
        if (place.behind(g)) continue;
#pragma unroll
        for (int i = g * V; i < (g + PLACE::GROUP) * V; ++i) {
            if constexpr (HALF) y[i] = dy[i] - wd_half_exp(y[i]) * sum[i % V];
            else y[i] = dy[i] - exp_of(y[i]) * sum[i % V];
        }
    }
}

// y becomes dx.
template <int R, int V, class A, class PLACE>
__device__ __forceinline__ void gradients(const softmax_vector_args &a, A (&y)[R * V],
                                          const A (&dy)[R * V], const A (&sum)[V],
                                          const PLACE &place)
{
    if (a.log) {
        if constexpr (sizeof(A) == 8) {
            exponentials_times<false, R, V>(y, sum, dy, place);
        } else {
            if (a.format == WD_FORMAT_F32) exponentials_times<false, R, V>(y, sum, dy, place);
            else exponentials_times<true, R, V>(y, sum, dy, place);
        }
        return;
    }
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
        if (place.behind(g)) continue;
#pragma unroll
        for (int i = g * V; i < (g + PLACE::GROUP) * V; ++i) y[i] *= dy[i] - sum[i % V];
    }
}

// What exponentials() has made of a whole row becomes its results: a product and an addition.
template <class A> struct last_step {
    A factor;
    A offset;

    __device__ __forceinline__ last_step(const softmax_vector_args &a, A sum)
    {
        factor = a.log ? (A)1 : (A)1 / sum;
        offset = a.log ? -log_of(sum * lower_of<A>(a)) : (A)0;
    }
};

// What exponentials() has made, of a whole row's sum and relative to its maximum, becomes the result.
template <int R, int V, class A, class PLACE>
__device__ __forceinline__ void finish(const softmax_vector_args &a, A (&x)[R * V],
                                       const A (&sum)[V], const PLACE &place)
{
    A factor[V], offset[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
        const last_step<A> last(a, sum[j]);
        factor[j] = last.factor, offset[j] = last.offset;
    }
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
        if (place.behind(g)) continue;
#pragma unroll
        for (int i = g * V; i < (g + PLACE::GROUP) * V; ++i) {
            x[i] = x[i] * factor[i % V] + offset[i % V];
        }
    }
}

// Stores them, blended where the call wants it.
template <int E, int V4, int V2, class A, class PLACE>
__device__ __forceinline__ void put(const softmax_vector_args &a, const A (&x)[E],
                                    const PLACE &place)
{
    if (a.plain) wd_store_format<E, V4, V2>(a.y, x, a.format, a.streaming, place);
    else wd_blend_format<E, V4, V2>(a.y, x, (A)a.alpha, (A)a.beta, a.format, place);
}
} // namespace

#endif
