// SPDX-License-Identifier: Apache-2.0
//
// Softmax and its gradient at the speed of memory: what a thread has of a row stays in registers
// between its one load and its one store, and only maxima and sums travel: through the warp, the
// block's shared memory, the shared memory of a cluster. What does not fit there is read twice. Sums
// are joined in an order that depends on the shape alone.
//
// A part of a row that is all minus infinity has sum 0 at maximum -inf, whatever else the row has; a
// row of nothing else becomes NaN in the end, as does one with NaN or plus infinity in it.
#include "gpu/device/depend.cuh"
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
constexpr float LOG2_E = 1.4426950408889634f;
constexpr int HEADROOM = 16;

__device__ __forceinline__ float exp2_of(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <class T> __device__ __forceinline__ acc<T> element_exp(acc<T> x)
{
    if constexpr (sizeof(T) == 2) return exp2_of(x * LOG2_E);
    else return exp_of(x);
}

template <class T> __device__ __forceinline__ acc<T> raised_exp(acc<T> x)
{
    if constexpr (sizeof(T) == 2) return exp2_of(fmaf(x, LOG2_E, HEADROOM));
    else return exp_of(x);
}

// Makes the compiler convert stored elements anew: it would keep all of them widened otherwise, in
// twice the registers, and across branches too unless these differ in `WHERE`.
template <int WHERE, class T, int N> __device__ __forceinline__ void forget(wd_run<T, N> &r)
{
    if constexpr (sizeof(T) == 2 && N > 1) {
#pragma unroll
        for (int w = 0; w < wd_run<T, N>::WORDS; ++w) {
            asm volatile("// %1" : "+r"(r.word[w]) : "n"(WHERE));
        }
    }
}

// Runs where the index is not known to the compiler, without local memory.
template <int R, class T, int N>
__device__ __forceinline__ wd_run<T, N> pick(const wd_run<T, N> *of, int i)
{
    wd_run<T, N> r = of[0];
#pragma unroll
    for (int s = 1; s < R; ++s) {
        if constexpr (wd_run<T, N>::WORDS > 0) {
#pragma unroll
            for (int w = 0; w < wd_run<T, N>::WORDS; ++w) {
                r.word[w] = s == i ? of[s].word[w] : r.word[w];
            }
        } else {
            r.half_word = s == i ? of[s].half_word : r.half_word;
        }
    }
    return r;
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
template <class A> struct totals {
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

__device__ __forceinline__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// The number that block `rank` of the cluster has in its own `mine`.
template <class A> __device__ __forceinline__ A of_peer(const A *mine, uint32_t rank)
{
#if __CUDA_ARCH__ >= 900
    const uint32_t own = (uint32_t)__cvta_generic_to_shared(mine);
    uint32_t there;
    A value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    if constexpr (sizeof(A) == 8) {
        asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(value) : "r"(there) : "memory");
    } else {
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    }
    return value;
#else
    return *mine;
#endif
}

// All threads of the cluster; `mine` is what their block has. Whoever calls this waits for the
// cluster once more before its end: until then others may read what this block has.
template <class A>
__device__ __forceinline__ totals<A> join_cluster(const totals<A> &mine, uint32_t cluster)
{
    __shared__ totals<A> own;
    const uint32_t lane = threadIdx.x % 32;
    totals<A> all = {lowest<A>(), (A)0};
    if (threadIdx.x == 0) own = mine;
    cluster_arrive();
    cluster_wait();
    if (lane < cluster) all = {of_peer(&own.max, lane), of_peer(&own.sum, lane)};
    all = join_lanes(all, 32);
    cluster_arrive();
    return all;
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
    out.load(to);
#pragma unroll
    for (int j = 0; j < N; ++j) {
        out.put(j, narrow<T>(scaled(v[j], alpha) + beta * wd_widen(out.get(j))));
    }
    out.store(to);
}

// ---- Rows ----

// A block's part of a row, or the whole.
struct part_of_row {
    int64_t at; // of its first element in the tensor
    int n;
    int shift;  // elements between it and the boundary before
    int before; // elements of the tensor that stand before it, no more than a run less one
    int after;
};

template <class T>
__device__ __forceinline__ part_of_row part_at(const softmax_vector_args &a, int64_t row,
                                               uint32_t segment)
{
    constexpr int V = run_of<T>;
    part_of_row p = {0, 0, 0, 0, 0};
    if (row >= a.rows) return p;
    const int64_t start = (a.first + row) * a.length;
    const int shift = (int)((a.shift + start) & (V - 1));
    const int64_t begin = segment ? segment * a.runs * V - shift : 0;
    const int64_t end = min(a.length, (segment + 1) * a.runs * V - shift);
    if (begin >= end) return p;
    p.at = start + begin;
    p.n = (int)(end - begin);
    p.shift = segment ? 0 : shift;
    p.before = (int)min(p.at, (int64_t)V - 1);
    p.after = (int)min(a.total - p.at - p.n, (int64_t)V - 1);
    return p;
}

// Where a run stands in its part; only few lie across an end.
struct run_place {
    int k;
    bool inside;
    bool across;
};

template <class T>
__device__ __forceinline__ run_place place_of(const part_of_row &p, uint32_t index)
{
    constexpr int V = run_of<T>;
    run_place r;
    r.k = (int)index * V - p.shift;
    r.inside = r.k >= 0 && r.k + V <= p.n;
    r.across = !r.inside && r.k > -V && r.k < p.n;
    return r;
}

// Runs first, first + lanes, ... of a part.
template <class T, int R> struct held {
    static constexpr int V = run_of<T>;
    run<T> of[R];

    __device__ __forceinline__ void replace(int i, const run<T> &r)
    {
#pragma unroll
        for (int s = 0; s < R; ++s) {
#pragma unroll
            for (int w = 0; w < 4; ++w) of[s].word[w] = s == i ? r.word[w] : of[s].word[w];
        }
    }

    // Elements outside of the part become `pad`.
    __device__ __forceinline__ void load(const void *tensor, const part_of_row &p, uint32_t first,
                                         uint32_t lanes, acc<T> pad)
    {
        const T *from = static_cast<const T *>(tensor) + p.at;
        bool any_across = false;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const run_place r = place_of<T>(p, first + i * lanes);
#pragma unroll
            for (int j = 0; j < V; ++j) of[i].put(j, narrow<T>(pad));
            any_across |= r.across;
            // whole, with elements of neighbouring rows, wherever the tensor has them
            if (r.k >= -p.before && r.k + V <= p.n + p.after) of[i].load(from + r.k);
        }
        if (!any_across) return;
#pragma unroll 1
        for (int i = 0; i < R; ++i) {
            const run_place r = place_of<T>(p, first + i * lanes);
            if (!r.across) continue;
            const bool loaded = r.k >= -p.before && r.k + V <= p.n + p.after;
            run<T> edge = pick<R>(of, i);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const bool own = r.k + j >= 0 && r.k + j < p.n;
                if (!own) edge.put(j, narrow<T>(pad));
                else if (!loaded) edge.put(j, from[r.k + j]);
            }
            replace(i, edge);
        }
    }

    template <int WHERE> __device__ __forceinline__ void forget_all()
    {
#pragma unroll
        for (int i = 0; i < R; ++i) forget<WHERE>(of[i]);
    }

    __device__ __forceinline__ acc<T> max() const
    {
        acc<T> m = lowest<acc<T>>();
#pragma unroll
        for (int i = 0; i < R; ++i) {
#pragma unroll
            for (int j = 0; j < V; ++j) m = larger(m, wd_widen(of[i].get(j)));
        }
        return m;
    }
};

template <class T, int R, bool BACKWARD>
__device__ __forceinline__ acc<T> sum_of(const held<T, R> &x, const held<T, R> &dy, acc<T> base,
                                         bool log)
{
    acc<T> sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < R; ++i) {
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j) {
            sum[j % 2] +=
                term<T, BACKWARD>(wd_widen(x.of[i].get(j)), wd_widen(dy.of[i].get(j)), base, log);
        }
    }
    return sum[0] + sum[1];
}

// Between two uses of what was loaded; forward, dy stands for nothing and costs nothing.
template <bool BACKWARD, int WHERE, class T, int R>
__device__ __forceinline__ void forget_both(held<T, R> &x, held<T, R> &dy)
{
    x.template forget_all<WHERE>();
    if (BACKWARD) dy.template forget_all<WHERE>();
    else dy = x;
}

// Runs across an end come last, one by one, and so do all where y is blended: that is rare and would
// double the code.
template <class T, int R, bool BACKWARD, bool LOG>
__device__ __forceinline__ void write_as(const softmax_vector_args &a, const part_of_row &p,
                                         uint32_t first, uint32_t lanes, held<T, R> &x,
                                         held<T, R> &dy, const totals<acc<T>> &all)
{
    constexpr int V = run_of<T>;
    const acc<T> number = BACKWARD ? (acc<T>)0 : prepared<T>(all.sum, LOG);
    const acc<T> alpha = (acc<T>)a.alpha;
    const bool blends = a.beta != 0.0;
    T *to = static_cast<T *>(a.y) + p.at;
    bool any_other = blends;
    forget_both<BACKWARD, LOG>(x, dy);
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const run_place r = place_of<T>(p, first + i * lanes);
        any_other |= r.across;
        if (!r.inside || blends) continue;
        run<T> out;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            const acc<T> v = result<T, BACKWARD>(wd_widen(x.of[i].get(j)),
                                                 wd_widen(dy.of[i].get(j)), all, number, LOG);
            out.put(j, narrow<T>(scaled(v, alpha)));
        }
        if (a.streaming) out.store_streaming(to + r.k);
        else out.store(to + r.k);
    }
    if (!any_other) return;
#pragma unroll 1
    for (int i = 0; i < R; ++i) {
        const run_place r = place_of<T>(p, first + i * lanes);
        const run<T> edge = pick<R>(x.of, i), edge_dy = pick<R>(dy.of, i);
        acc<T> v[V];
        if (!(r.across || (r.inside && blends))) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            v[j] = result<T, BACKWARD>(wd_widen(edge.get(j)), wd_widen(edge_dy.get(j)), all, number,
                                       LOG);
        }
        if (r.inside) {
            blend_run<T, V>(a, to + r.k, v);
            continue;
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
            if (r.k + j >= 0 && r.k + j < p.n) blend<T>(a, to + r.k + j, v[j]);
        }
    }
}

template <class T, int R, bool BACKWARD>
__device__ __forceinline__ void write(const softmax_vector_args &a, const part_of_row &p,
                                      uint32_t first, uint32_t lanes, held<T, R> &x, held<T, R> &dy,
                                      const totals<acc<T>> &all)
{
    if (a.log) write_as<T, R, BACKWARD, true>(a, p, first, lanes, x, dy, all);
    else write_as<T, R, BACKWARD, false>(a, p, first, lanes, x, dy, all);
}

// Backward, dy as well.
template <class T, int R, bool BACKWARD>
__device__ __forceinline__ void load_both(const softmax_vector_args &a, const part_of_row &p,
                                          uint32_t first, uint32_t lanes, held<T, R> &x,
                                          held<T, R> &dy)
{
    x.load(a.x, p, first, lanes, BACKWARD ? (acc<T>)0 : lowest<acc<T>>());
    if (BACKWARD) dy.load(a.dy, p, first, lanes, (acc<T>)0);
    else dy = x;
}

// Several rows a warp, or one.
template <class T, int R, bool BACKWARD> __device__ void rows_few(const softmax_vector_args &a)
{
    using A = acc<T>;
    const uint32_t lane = threadIdx.x & (a.lanes - 1);
    const int64_t row =
        (int64_t)blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
    const part_of_row p = part_at<T>(a, row, 0);
    held<T, R> x, dy;
    totals<A> all = {0, 0};
    wd_wait_for_previous();
    load_both<T, R, BACKWARD>(a, p, lane, a.lanes, x, dy);
    if (!BACKWARD) {
        all.max = max_of_lanes(x.max(), a.lanes);
        forget_both<BACKWARD, 2>(x, dy);
    }
    all.sum = sum_of_lanes(sum_of<T, R, BACKWARD>(x, dy, all.max, a.log), a.lanes);
    write<T, R, BACKWARD>(a, p, lane, a.lanes, x, dy, all);
}

// A row a block, or a cluster of them.
template <class T, int R, bool BACKWARD> __device__ void rows_block(const softmax_vector_args &a)
{
    using A = acc<T>;
    const uint32_t segment = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    const part_of_row p = part_at<T>(a, blockIdx.x / a.cluster, segment);
    held<T, R> x, dy;
    totals<A> all = {0, 0};
    wd_wait_for_previous();
    load_both<T, R, BACKWARD>(a, p, threadIdx.x, blockDim.x, x, dy);
    if (!BACKWARD) {
        all.max = max_of_lanes(x.max(), 32);
        forget_both<BACKWARD, 2>(x, dy);
    }
    all.sum = sum_of_lanes(sum_of<T, R, BACKWARD>(x, dy, base_of(all.max), a.log), 32);
    all = join_block(all);
    if (a.cluster > 1) all = join_cluster(all, a.cluster);
    write<T, R, BACKWARD>(a, p, threadIdx.x, blockDim.x, x, dy, all);
    if (a.cluster > 1) cluster_wait();
}

// What a segment of a long row comes to. Later segments first where blocks are turned around: what
// the sums read last is still in the cache when it is read again.
__device__ __forceinline__ uint32_t block_of(bool turned)
{
    return turned ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
}

template <class T, bool BACKWARD> __device__ void rows_sums(const softmax_vector_args &a)
{
    using A = acc<T>;
    constexpr int R = SOFTMAX_LONG_RUNS;
    const part_of_row p = part_at<T>(a, blockIdx.x / a.segments, blockIdx.x % a.segments);
    totals<A> mine = {BACKWARD ? (A)0 : lowest<A>(), 0};
    wd_wait_for_previous();
    for (uint32_t first = 0; first < a.runs; first += blockDim.x * R) {
        held<T, R> x, dy;
        load_both<T, R, BACKWARD>(a, p, first + threadIdx.x, blockDim.x, x, dy);
        const A max = BACKWARD ? (A)0 : larger(mine.max, x.max());
        forget_both<BACKWARD, 2>(x, dy);
        const A base = base_of(max);
        const A before = BACKWARD ? mine.sum : mine.sum * exp_of(mine.max - base);
        mine = {max, before + sum_of<T, R, BACKWARD>(x, dy, base, a.log)};
    }
    mine = join_block(join_lanes(mine, 32));
    if (threadIdx.x == 0) static_cast<totals<A> *>(a.partial)[blockIdx.x] = mine;
}

template <class T, bool BACKWARD> __device__ void rows_spread(const softmax_vector_args &a)
{
    using A = acc<T>;
    constexpr int R = SOFTMAX_LONG_RUNS;
    const uint32_t block = block_of(true);
    const uint32_t row = block / a.segments;
    const part_of_row p = part_at<T>(a, row, block % a.segments);
    const totals<A> *partial =
        static_cast<const totals<A> *>(a.partial) + (int64_t)row * a.segments;
    totals<A> all = {lowest<A>(), 0};
    wd_wait_for_previous();
    // as many segments as threads at most
    if (threadIdx.x < a.segments) all = partial[threadIdx.x];
    all = join_block(join_lanes(all, 32));
    for (uint32_t first = 0; first < a.runs; first += blockDim.x * R) {
        held<T, R> x, dy;
        load_both<T, R, BACKWARD>(a, p, first + threadIdx.x, blockDim.x, x, dy);
        write<T, R, BACKWARD>(a, p, first + threadIdx.x, blockDim.x, x, dy, all);
    }
}

// Tensors that lie differently on the boundaries of 16 bytes: element by element, read three times.
template <class T, bool BACKWARD> __device__ void rows_stray(const softmax_vector_args &a)
{
    using A = acc<T>;
    const bool by_block = a.lanes > 32;
    const uint32_t lanes = by_block ? blockDim.x : a.lanes;
    const uint32_t lane = by_block ? threadIdx.x : threadIdx.x & (a.lanes - 1);
    const int64_t row =
        by_block ? (int64_t)blockIdx.x
                 : (int64_t)blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
    const int64_t length = row < a.rows ? a.length : 0;
    const T *x = static_cast<const T *>(a.x) + row * a.length;
    const T *dy = BACKWARD ? static_cast<const T *>(a.dy) + row * a.length : x;
    T *y = static_cast<T *>(a.y) + row * a.length;
    totals<A> all = {BACKWARD ? (A)0 : lowest<A>(), 0};
    double sum = 0.0;
    wd_wait_for_previous();
    if (!BACKWARD) {
#pragma unroll 8
        for (int64_t k = lane; k < length; k += lanes) all.max = larger(all.max, wd_widen(x[k]));
    }
    const A base = base_of(all.max);
#pragma unroll 4
    for (int64_t k = lane; k < length; k += lanes) {
        sum += term<T, BACKWARD>(wd_widen(x[k]), wd_widen(dy[k]), base, a.log);
    }
    all.sum = (A)sum;
    all = join_lanes(all, by_block ? 32 : lanes);
    if (by_block) all = join_block(all);
    const A number = BACKWARD ? (A)0 : prepared<T>(all.sum, a.log);
#pragma unroll 4
    for (int64_t k = lane; k < length; k += lanes) {
        blend<T>(a, y + k,
                 result<T, BACKWARD>(wd_widen(x[k]), wd_widen(dy[k]), all, number, a.log));
    }
}

// ---- Columns ----

// A thread's place: V positions, and every `down`-th channel.
struct column_place {
    uint32_t across; // the run of positions, in the tile
    uint32_t row;    // among those that share the channels
    uint32_t down;
    uint32_t left; // channels of the block from its first on
    int64_t at;    // of the first channel's elements
    int64_t step;  // elements between channels of the thread
};

template <int V> __device__ __forceinline__ column_place column_at(const softmax_vector_args &a)
{
    column_place p;
    const uint32_t rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    p.across = threadIdx.x & (a.lanes - 1);
    p.row = threadIdx.x >> a.lane_bits;
    p.down = blockDim.x >> a.lane_bits;
    const int64_t position = ((int64_t)(blockIdx.x / a.cluster) * a.lanes + p.across) * V;
    int64_t outer;
    if (a.wide) outer = position / a.inner;
    else outer = wd_fastdiv_quotient((uint32_t)position, a.by_inner);
    // channels of a block are neighbours
    const int64_t channel = rank * a.runs + p.row;
    const int64_t end = min(a.length, (rank + 1) * a.runs);
    p.left = position < a.rows && channel < end ? (uint32_t)(end - channel) : 0;
    p.at = (outer * a.length + channel) * a.inner + (position - outer * a.inner);
    p.step = p.down * a.inner;
    return p;
}

// Joins what the threads have of each position, over the block and its cluster. All threads come;
// those of a cluster wait for it once more at their end.
template <int V, class A>
__device__ __forceinline__ void join_columns(const softmax_vector_args &a, const column_place &p,
                                             totals<A> *mine)
{
    extern __shared__ __align__(16) unsigned char shared[];
    const uint32_t width = a.lanes * V;
    const bool by_warp = a.lanes < 32;
    const uint32_t slices = by_warp ? blockDim.x / 32 : p.down;
    const uint32_t slice = by_warp ? threadIdx.x / 32 : p.row;
    totals<A> *part = reinterpret_cast<totals<A> *>(shared);
    totals<A> *block = part + slices * width;
    totals<A> *source = block;
#pragma unroll
    for (int j = 0; j < V; ++j) {
        A max = mine[j].max;
        A sum = mine[j].sum;
        for (uint32_t o = a.lanes; o < 32; o *= 2) {
            max = larger(max, __shfl_xor_sync(WHOLE_WARP, max, o));
        }
        if (by_warp) sum *= exp_of(mine[j].max - base_of(max));
        for (uint32_t o = a.lanes; o < 32; o *= 2) sum += __shfl_xor_sync(WHOLE_WARP, sum, o);
        mine[j] = {max, sum};
    }
    if (slices == 1 && a.cluster == 1) return;
    if (!by_warp || threadIdx.x % 32 < a.lanes) {
#pragma unroll
        for (int j = 0; j < V; ++j) part[slice * width + p.across * V + j] = mine[j];
    }
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < width; t += blockDim.x) {
        totals<A> all = {lowest<A>(), 0};
        for (uint32_t s = 0; s < slices; ++s) all.max = larger(all.max, part[s * width + t].max);
        for (uint32_t s = 0; s < slices; ++s) {
            const totals<A> one = part[s * width + t];
            all.sum += one.sum * exp_of(one.max - base_of(all.max));
        }
        block[t] = all;
    }
    __syncthreads();
    if (a.cluster > 1) {
        source = block + width;
        cluster_arrive();
        cluster_wait();
        for (uint32_t t = threadIdx.x; t < width; t += blockDim.x) {
            totals<A> all = {lowest<A>(), 0};
            for (uint32_t r = 0; r < a.cluster; ++r) {
                all.max = larger(all.max, of_peer(&block[t].max, r));
            }
            for (uint32_t r = 0; r < a.cluster; ++r) {
                all.sum += of_peer(&block[t].sum, r) *
                           exp_of(of_peer(&block[t].max, r) - base_of(all.max));
            }
            source[t] = all;
        }
        cluster_arrive();
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < V; ++j) mine[j] = source[p.across * V + j];
}

// R channels of V positions a thread.
template <class T, int R, int V, bool BACKWARD>
__device__ __forceinline__ void load_columns(const T *from, const column_place &p, uint32_t left,
                                             acc<T> pad, wd_run<T, V> *to)
{
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (r * p.down < left) {
            to[r].load(from + r * p.step);
        } else {
#pragma unroll
            for (int j = 0; j < V; ++j) to[r].put(j, narrow<T>(pad));
        }
    }
}

template <class T, int R, int V, bool BACKWARD>
__device__ __forceinline__ void add_columns(const wd_run<T, V> *x, const wd_run<T, V> *dy, bool log,
                                            totals<acc<T>> *mine)
{
    using A = acc<T>;
#pragma unroll
    for (int j = 0; j < V; ++j) {
        A max = mine[j].max;
        if (!BACKWARD) {
#pragma unroll
            for (int r = 0; r < R; ++r) max = larger(max, wd_widen(x[r].get(j)));
        }
        const A base = base_of(max);
        A sum = BACKWARD ? mine[j].sum : mine[j].sum * exp_of(mine[j].max - base);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            sum += term<T, BACKWARD>(wd_widen(x[r].get(j)), wd_widen(dy[r].get(j)), base, log);
        }
        mine[j] = {max, sum};
    }
}

template <class T, int R, int V, bool BACKWARD, bool LOG>
__device__ __forceinline__ void write_columns_as(const softmax_vector_args &a,
                                                 const column_place &p, uint32_t left, T *to,
                                                 wd_run<T, V> *x, wd_run<T, V> *dy,
                                                 const totals<acc<T>> *all)
{
    using A = acc<T>;
    const A alpha = (A)a.alpha;
    A number[V];
#pragma unroll
    for (int j = 0; j < V; ++j) number[j] = BACKWARD ? (A)0 : prepared<T>(all[j].sum, LOG);
#pragma unroll
    for (int r = 0; r < R; ++r) {
        forget<LOG>(x[r]);
        if (BACKWARD) forget<LOG>(dy[r]);
    }
    if (a.beta != 0.0) {
#pragma unroll 1
        for (int r = 0; r < R; ++r) {
            const wd_run<T, V> one = pick<R>(x, r), one_dy = BACKWARD ? pick<R>(dy, r) : one;
            A v[V];
            if (r * p.down >= left) break;
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[j] = result<T, BACKWARD>(wd_widen(one.get(j)), wd_widen(one_dy.get(j)), all[j],
                                           number[j], LOG);
            }
            blend_run<T, V>(a, to + r * p.step, v);
        }
        return;
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
        wd_run<T, V> out;
        if (r * p.down >= left) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            const A v = result<T, BACKWARD>(wd_widen(x[r].get(j)), wd_widen(dy[r].get(j)), all[j],
                                            number[j], LOG);
            out.put(j, narrow<T>(scaled(v, alpha)));
        }
        if (a.streaming) out.store_streaming(to + r * p.step);
        else out.store(to + r * p.step);
    }
}

template <class T, int R, int V, bool BACKWARD>
__device__ __forceinline__ void write_columns(const softmax_vector_args &a, const column_place &p,
                                              uint32_t left, T *to, wd_run<T, V> *x,
                                              wd_run<T, V> *dy, const totals<acc<T>> *all)
{
    if (a.log) write_columns_as<T, R, V, BACKWARD, true>(a, p, left, to, x, dy, all);
    else write_columns_as<T, R, V, BACKWARD, false>(a, p, left, to, x, dy, all);
}

// All channels of the tile in registers.
template <class T, int R, int V, bool BACKWARD>
__device__ __forceinline__ void columns(const softmax_vector_args &a)
{
    using A = acc<T>;
    const column_place p = column_at<V>(a);
    wd_run<T, V> x[R], dy[BACKWARD ? R : 1];
    totals<A> all[V];
    wd_wait_for_previous();
    load_columns<T, R, V, BACKWARD>(static_cast<const T *>(a.x) + p.at, p, p.left,
                                    BACKWARD ? (A)0 : lowest<A>(), x);
    if constexpr (BACKWARD) {
        load_columns<T, R, V, BACKWARD>(static_cast<const T *>(a.dy) + p.at, p, p.left, (A)0, dy);
    }
    wd_run<T, V> *second = BACKWARD ? dy : x;
#pragma unroll
    for (int j = 0; j < V; ++j) all[j] = {BACKWARD ? (A)0 : lowest<A>(), 0};
    add_columns<T, R, V, BACKWARD>(x, second, a.log, all);
    join_columns<V>(a, p, all);
    write_columns<T, R, V, BACKWARD>(a, p, p.left, static_cast<T *>(a.y) + p.at, x, second, all);
    if (a.cluster > 1) cluster_wait();
}

template <class T, int R, bool BACKWARD> __device__ void columns_runs(const softmax_vector_args &a)
{
    columns<T, R, run_of<T>, BACKWARD>(a);
}

template <class T, int R, bool BACKWARD> __device__ void columns_one(const softmax_vector_args &a)
{
    columns<T, sizeof(T) == 8 ? SOFTMAX_WIDE(R) : R, 1, BACKWARD>(a);
}

// More channels than registers hold: read twice.
template <class T, bool BACKWARD> __device__ void columns_long(const softmax_vector_args &a)
{
    using A = acc<T>;
    constexpr int R = SOFTMAX_COLUMNS_LONG_RUNS;
    const column_place p = column_at<1>(a);
    const T *from = static_cast<const T *>(a.x) + p.at;
    const T *from_dy = BACKWARD ? static_cast<const T *>(a.dy) + p.at : from;
    T *to = static_cast<T *>(a.y) + p.at;
    wd_run<T, 1> x[R], dy[BACKWARD ? R : 1];
    wd_run<T, 1> *second = BACKWARD ? dy : x;
    totals<A> all[1] = {{BACKWARD ? (A)0 : lowest<A>(), 0}};
    wd_wait_for_previous();
    const uint32_t stride = R * p.down;
    int64_t offset = 0;
#pragma unroll 1
    for (uint32_t done = 0; done < p.left; done += stride, offset += R * p.step) {
        load_columns<T, R, 1, BACKWARD>(from + offset, p, p.left - done,
                                        BACKWARD ? (A)0 : lowest<A>(), x);
        if constexpr (BACKWARD) {
            load_columns<T, R, 1, BACKWARD>(from_dy + offset, p, p.left - done, (A)0, dy);
        }
        add_columns<T, R, 1, BACKWARD>(x, second, a.log, all);
    }
    join_columns<1>(a, p, all);
    offset = 0;
#pragma unroll 1
    for (uint32_t done = 0; done < p.left; done += stride, offset += R * p.step) {
        load_columns<T, R, 1, BACKWARD>(from + offset, p, p.left - done, (A)0, x);
        if constexpr (BACKWARD) {
            load_columns<T, R, 1, BACKWARD>(from_dy + offset, p, p.left - done, (A)0, dy);
        }
        write_columns<T, R, 1, BACKWARD>(a, p, p.left - done, to + offset, x, second, all);
    }
    if (a.cluster > 1) cluster_wait();
}

} // namespace

#define WD_KERNELS_ROWS "ops/softmax/softmax_vector_kernels.def"
#include "ops/kernels_device.inc"
