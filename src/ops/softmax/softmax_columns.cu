// SPDX-License-Identifier: Apache-2.0
//
// Softmax over columns: the channels of a position are `inner` elements apart. See softmax_columns.c.
#include "ops/softmax/softmax_columns_held.cuh"
#include "ops/softmax/softmax_columns_pairs.cuh"

namespace {

// A thread's place: V positions, and every `down`-th channel.
struct column_place {
    static constexpr int GROUP = 1;
    static constexpr bool CHAIN = true;
    uint32_t across; // the run of positions, in the tile
    uint32_t row;    // among those that share the channels
    uint32_t down;
    int32_t held;   // channels of the thread
    int64_t at;     // of the first channel's elements
    int64_t stride; // elements between channels of the thread

    __device__ __forceinline__ int64_t first(int) const
    {
        return at;
    }
    __device__ __forceinline__ int64_t step(int) const
    {
        return stride;
    }
    __device__ __forceinline__ bool has(int r) const
    {
        return r < held;
    }
    __device__ __forceinline__ bool behind(int) const
    {
        return false;
    }
};

template <int V> __device__ __forceinline__ column_place column_at(const softmax_vector_args &a)
{
    column_place p;
    const uint32_t rank = blockIdx.x & (a.cluster - 1);
    p.across = threadIdx.x & (a.lanes - 1);
    p.row = threadIdx.x >> a.lane_bits;
    p.down = blockDim.x >> a.lane_bits;
    const int64_t position = ((int64_t)(blockIdx.x >> a.cluster_bits) * a.lanes + p.across) * V;
    int64_t outer;
    if (a.wide) outer = position / a.inner;
    else outer = wd_fastdiv_quotient((uint32_t)position, a.by_inner);
    // channels of a block are neighbours
    const int64_t channel = rank * a.runs + p.row;
    const int64_t end = min(a.length, (rank + 1) * a.runs);
    p.held = position < a.rows && channel < end
                 ? (int32_t)(((uint32_t)(end - channel) + p.down - 1) / p.down)
                 : 0;
    p.at = (outer * a.length + channel) * a.inner + (position - outer * a.inner);
    p.stride = p.down * a.inner;
    return p;
}

// Joins what the threads have of each position, over the block and its cluster. All threads come;
// those of a cluster wait for it once more at their end.
template <int V, class A>
__device__ __forceinline__ void join_columns(const softmax_vector_args &a, const column_place &p,
                                             totals<A> (&mine)[V])
{
    const uint32_t width = a.lanes * V;
    const uint32_t pitch = width + 1; // lanes read one position of several parts
    const bool by_warp = a.lanes < 32;
    const uint32_t slices = by_warp ? blockDim.x / 32 : p.down;
    const uint32_t slice = by_warp ? threadIdx.x / 32 : p.row;
    WD_DYNAMIC_SHARED(unsigned char, shared);
    totals<A> *part = reinterpret_cast<totals<A> *>(shared);
    totals<A> *block = part + slices * pitch;
    const totals<A> *source;
    if (by_warp) {
        A max[V];
#pragma unroll
        for (int j = 0; j < V; ++j) max[j] = mine[j].max;
#pragma unroll 1
        for (uint32_t o = a.lanes; o < 32; o *= 2) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                max[j] = larger(max[j], __shfl_xor_sync(WHOLE_WARP, max[j], o));
            }
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
            mine[j] = {max[j], mine[j].sum * exp_of(mine[j].max - base_of(max[j]))};
        }
#pragma unroll 1
        for (uint32_t o = a.lanes; o < 32; o *= 2) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                mine[j].sum += __shfl_xor_sync(WHOLE_WARP, mine[j].sum, o);
            }
        }
    }
    if (slices == 1 && a.cluster == 1) return;
    if (!by_warp || threadIdx.x % 32 < a.lanes) {
#pragma unroll
        for (int j = 0; j < V; ++j) part[slice * pitch + p.across * V + j] = mine[j];
    }
    __syncthreads();
    join_parts(width, slices, block,
               [&](uint32_t place, uint32_t s) { return part[s * pitch + place]; });
    source = join_blocks(width, a.cluster, block);
#pragma unroll
    for (int j = 0; j < V; ++j) mine[j] = source[p.across * V + j];
}

// Exponentials relative to a part's maximum become the row's results. One that is 2^HEADROOM too large
// is lowered last, for what is near the least number of bf16.
template <int R, int V, class A>
__device__ __forceinline__ void finish_part(const softmax_vector_args &a, A (&x)[R * V],
                                            const A (&max)[V], const totals<A> (&all)[V])
{
    const A lower = lower_of<A>(a), last = a.log ? (A)1 : lower;
    A factor[V], offset[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
        const A sum = all[j].sum * lower;
        if (a.log) factor[j] = 1, offset[j] = (base_of(max[j]) - all[j].max) - log_of(sum);
        else factor[j] = exp_of(max[j] - base_of(all[j].max)) / sum, offset[j] = 0;
    }
#pragma unroll
    for (int i = 0; i < R * V; ++i) x[i] = (x[i] * factor[i % V] + offset[i % V]) * last;
}

// All channels of the tile in registers.
template <class A, int R, int V, bool BACKWARD>
__device__ void columns(const softmax_vector_args &a)
{
    const column_place p = column_at<V>(a);
    A x[R * V];
    totals<A> all[V];
    A sum[V] = {};
    wd_wait_for_previous();
    wd_load_format<R * V, V, V>(x, a.x, a.format, BACKWARD ? (A)0 : lowest<A>(), p);
    if constexpr (BACKWARD) {
        A dy[R * V];
        wd_load_format<R * V, V, V>(dy, a.dy, a.format, (A)0, p);
        products<R, V>(a, x, dy, sum, p);
#pragma unroll
        for (int j = 0; j < V; ++j) all[j] = {(A)0, sum[j]};
        join_columns<V>(a, p, all);
#pragma unroll
        for (int j = 0; j < V; ++j) sum[j] = all[j].sum;
        gradients<R, V>(a, x, dy, sum, p);
    } else {
        A max[V], base[V];
#pragma unroll
        for (int j = 0; j < V; ++j) max[j] = lowest<A>();
        largest<R, V>(x, max, p);
#pragma unroll
        for (int j = 0; j < V; ++j) base[j] = base_of(max[j]);
        exponentials<R, V>(a, x, base, sum, p);
#pragma unroll
        for (int j = 0; j < V; ++j) all[j] = {max[j], sum[j]};
        join_columns<V>(a, p, all);
        finish_part<R, V>(a, x, max, all);
    }
    put<R * V, V, V>(a, x, p);
    if (a.cluster > 1) wd_cluster_wait();
}

// Gradients of 16 bits in runs of 16 bytes, which stay packed until they are used, and are widened twice: as numbers
// of single precision twice as many registers would hold half as many bytes that are on their way.
template <class T, int R>
__device__ __forceinline__ void load_packed(run<T> (&to)[R], const void *from,
                                            const column_place &p)
{
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (p.has(r)) {
            to[r].load(static_cast<const T *>(from) + p.at + r * p.stride);
        } else {
#pragma unroll
            for (int j = 0; j < run_of<T>; ++j) to[r].put(j, narrow<T>(0.0f));
        }
    }
}

template <class T, int R> __device__ void columns_packed(const softmax_vector_args &a)
{
    constexpr int V = run_of<T>;
    const column_place p = column_at<V>(a);
    const float alpha = (float)a.alpha, beta = (float)a.beta;
    T *to = static_cast<T *>(a.y) + p.at;
    run<T> y[R], dy[R];
    totals<float> all[V];
    wd_wait_for_previous();
    load_packed<T, R>(y, a.x, p);
    load_packed<T, R>(dy, a.dy, p);
#pragma unroll
    for (int j = 0; j < V; ++j) {
        all[j] = {0.0f, 0.0f};
#pragma unroll
        for (int r = 0; r < R; ++r) {
            all[j].sum += term<T, true>(wd_widen(y[r].get(j)), wd_widen(dy[r].get(j)), 0.0f, a.log);
        }
    }
    join_columns<V>(a, p, all);
#pragma unroll
    for (int r = 0; r < R; ++r) forget<0>(y[r]), forget<0>(dy[r]);
#pragma unroll
    for (int r = 0; r < R; ++r, to += p.stride) {
        run<T> out;
        float v[V];
        if (!p.has(r)) continue;
        if (a.log) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[j] = result<T, true>(wd_widen(y[r].get(j)), wd_widen(dy[r].get(j)), all[j], 0.0f,
                                       true);
            }
        } else {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[j] = result<T, true>(wd_widen(y[r].get(j)), wd_widen(dy[r].get(j)), all[j], 0.0f,
                                       false);
            }
        }
        if (beta != 0) {
            out.load(to);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                out.put(j, narrow<T>(scaled(v[j], alpha) + beta * wd_widen(out.get(j))));
            }
        } else {
#pragma unroll
            for (int j = 0; j < V; ++j) out.put(j, narrow<T>(scaled(v[j], alpha)));
        }
        if (a.streaming) out.store_streaming(to);
        else out.store(to);
    }
    if (a.cluster > 1) wd_cluster_wait();
}

// More channels than registers hold: read twice.
template <class A, bool BACKWARD> __device__ void columns_long(const softmax_vector_args &a)
{
    constexpr int R = SOFTMAX_COLUMNS_LONG_RUNS;
    const column_place p = column_at<1>(a);
    column_place q = p;
    A x[R], dy[BACKWARD ? R : 1];
    totals<A> all[1] = {{BACKWARD ? (A)0 : lowest<A>(), 0}};
    wd_wait_for_previous();
#pragma unroll 1
    for (; q.held > 0; q.held -= R, q.at += R * p.stride) {
        wd_load_format<R, 1, 1>(x, a.x, a.format, BACKWARD ? (A)0 : lowest<A>(), q);
        if constexpr (BACKWARD) {
            A sum[1] = {all[0].sum};
            wd_load_format<R, 1, 1>(dy, a.dy, a.format, (A)0, q);
            products<R, 1>(a, x, dy, sum, q);
            all[0].sum = sum[0];
        } else {
            A max[1] = {all[0].max};
            largest<R, 1>(x, max, q);
            const A base[1] = {base_of(max[0])};
            A sum[1] = {all[0].sum * exp_of(all[0].max - base[0])};
            exponentials<R, 1>(a, x, base, sum, q);
            all[0] = {max[0], sum[0]};
        }
    }
    join_columns<1>(a, p, all);
    q = p;
#pragma unroll 1
    for (; q.held > 0; q.held -= R, q.at += R * p.stride) {
        A sum[1] = {all[0].sum};
        wd_load_format<R, 1, 1>(x, a.x, a.format, (A)0, q);
        if constexpr (BACKWARD) {
            wd_load_format<R, 1, 1>(dy, a.dy, a.format, (A)0, q);
            gradients<R, 1>(a, x, dy, sum, q);
        } else {
            const A base[1] = {all[0].max};
            A unused[1] = {0};
            exponentials<R, 1>(a, x, base, unused, q);
            finish<R, 1>(a, x, sum, q);
        }
        put<R, 1, 1>(a, x, q);
    }
    if (a.cluster > 1) wd_cluster_wait();
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/softmax/softmax_columns_kernels.def"
#include "ops/kernels_device.inc"
