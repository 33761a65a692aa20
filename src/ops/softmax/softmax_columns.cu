// SPDX-License-Identifier: Apache-2.0
//
// Softmax over columns: the channels of a position are `inner` elements apart. See softmax_columns.c.
#include "ops/softmax/softmax_columns_held.cuh"

namespace {

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
    const uint32_t width = a.lanes * V;
    const bool by_warp = a.lanes < 32;
    const uint32_t slices = by_warp ? blockDim.x / 32 : p.down;
    const uint32_t slice = by_warp ? threadIdx.x / 32 : p.row;
    WD_DYNAMIC_SHARED(unsigned char, shared);
    totals<A> *part = reinterpret_cast<totals<A> *>(shared);
    totals<A> *block = part + slices * width;
    totals<A> *source = block;
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
        for (int j = 0; j < V; ++j) part[slice * width + p.across * V + j] = mine[j];
    }
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < width; t += blockDim.x) {
        totals<A> all = {lowest<A>(), 0};
        for (uint32_t s = 0; s < slices; ++s) all.max = larger(all.max, part[s * width + t].max);
#pragma unroll 2
        for (uint32_t s = 0; s < slices; ++s) {
            const totals<A> one = part[s * width + t];
            all.sum += one.sum * exp_of(one.max - base_of(all.max));
        }
        block[t] = all;
    }
    __syncthreads();
    if (a.cluster > 1) {
        source = block + width;
        wd_cluster_arrive();
        wd_cluster_wait();
        for (uint32_t t = threadIdx.x; t < width; t += blockDim.x) {
            totals<A> all = {lowest<A>(), 0};
            for (uint32_t r = 0; r < a.cluster; ++r) {
                all.max = larger(all.max, wd_of_cluster(&block[t].max, r));
            }
#pragma unroll 2
            for (uint32_t r = 0; r < a.cluster; ++r) {
                all.sum += wd_of_cluster(&block[t].sum, r) *
                           exp_of(wd_of_cluster(&block[t].max, r) - base_of(all.max));
            }
            source[t] = all;
        }
        wd_cluster_arrive();
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

// KNOWN: LOG says which, and nothing is blended; else the code is one for all, as is best where a thread has
// several positions of a channel. Of single ones a quarter of the instructions would make choices.
template <class T, int R, int V, bool BACKWARD, bool KNOWN, bool LOG>
__device__ __forceinline__ void write_columns_as(const softmax_vector_args &a,
                                                 const column_place &p, uint32_t left, T *to,
                                                 wd_run<T, V> *x, wd_run<T, V> *dy,
                                                 const totals<acc<T>> *all)
{
    using A = acc<T>;
    const A alpha = (A)a.alpha, beta = KNOWN ? (A)0 : (A)a.beta;
    A number[V];
#pragma unroll
    for (int j = 0; j < V; ++j)
        number[j] = BACKWARD ? (A)0 : prepared<T>(all[j].sum, KNOWN ? LOG : a.log);
#pragma unroll
    for (int r = 0; r < R; ++r) {
        forget<0>(x[r]);
        if (BACKWARD) forget<0>(dy[r]);
    }
#pragma unroll
    for (int r = 0; r < R; ++r, to += p.step) {
        wd_run<T, V> out;
        A v[V];
        if (r * p.down >= left) continue;
        if (KNOWN ? LOG : a.log) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[j] = result<T, BACKWARD>(wd_widen(x[r].get(j)), wd_widen(dy[r].get(j)), all[j],
                                           number[j], true);
            }
        } else {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[j] = result<T, BACKWARD>(wd_widen(x[r].get(j)), wd_widen(dy[r].get(j)), all[j],
                                           number[j], false);
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
}

template <class T, int R, int V, bool BACKWARD>
__device__ __forceinline__ void write_columns(const softmax_vector_args &a, const column_place &p,
                                              uint32_t left, T *to, wd_run<T, V> *x,
                                              wd_run<T, V> *dy, const totals<acc<T>> *all)
{
    if (V > 1 || R <= SOFTMAX_COLUMNS_LONG_RUNS || sizeof(T) == 8) {
        write_columns_as<T, R, V, BACKWARD, false, false>(a, p, left, to, x, dy, all);
    } else if (a.beta != 0.0) {
        const acc<T> number = BACKWARD ? (acc<T>)0 : prepared<T>(all[0].sum, a.log);
#pragma unroll 1
        for (int r = 0; r < R; ++r, to += p.step) {
            const wd_run<T, V> one = pick<R>(x, r), one_dy = BACKWARD ? pick<R>(dy, r) : one;
            const acc<T> v = result<T, BACKWARD>(wd_widen(one.get(0)), wd_widen(one_dy.get(0)),
                                                 all[0], number, a.log);
            if (r * p.down >= left) break;
            blend_run<T, V, true>(a, to, &v);
        }
    } else if (a.log) {
        write_columns_as<T, R, V, BACKWARD, true, true>(a, p, left, to, x, dy, all);
    } else {
        write_columns_as<T, R, V, BACKWARD, true, false>(a, p, left, to, x, dy, all);
    }
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
    if (a.cluster > 1) wd_cluster_wait();
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
    if (a.cluster > 1) wd_cluster_wait();
}

} // namespace

#define WD_KERNELS_ROWS "ops/softmax/softmax_columns_kernels.def"
#include "ops/kernels_device.inc"
