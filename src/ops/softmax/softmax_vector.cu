// SPDX-License-Identifier: Apache-2.0
//
// Softmax over rows that a block has, or a cluster of blocks, or the device; neighbours of a row are
// neighbours in memory. A block's part of a row lies in its shared memory from its one load to its
// one store (block), so that several blocks of a processor load, sum and store at different times.
// Rows too long for that are read twice (sums, spread). See softmax_vector.c.
#include "gpu/device/async.cuh"
#include "ops/softmax/softmax_device.cuh"

namespace {

// A block's part of a row: whole runs of 16 bytes on boundaries of 16 bytes, fewer elements than a
// run before them and after them. Those ends are taken one a thread.
template <class T> struct part_of_row {
    static constexpr int V = run_of<T>;
    int64_t at;    // of its first whole run in the tensor
    uint32_t runs; // whole ones
    int edge;      // the element that the thread has of the ends, from `at` on
    bool has_edge;

    __device__ __forceinline__ part_of_row(const softmax_vector_args &a, int64_t row,
                                           uint32_t segment)
    {
        const int64_t start = (a.first + row) * a.length;
        const int shift = (int)((a.shift + start) & (V - 1));
        const int64_t begin = segment ? segment * a.runs * V - shift : 0;
        const int64_t end = min(a.length, (segment + 1) * a.runs * V - shift);
        const int n = (int)max(end - begin, (int64_t)0); // less than a segment in 32 bits
        const int head = min(n, segment || shift == 0 ? 0 : V - shift);
        const int tail = (n - head) % V;
        const int t = (int)threadIdx.x;
        at = start + begin + head;
        runs = (uint32_t)((n - head) / V);
        has_edge = t < V ? t < head : t - V < tail;
        edge = t < V ? t - head : (int)runs * V + (t - V);
    }
};

template <class T, bool BACKWARD>
__device__ __forceinline__ void load_edge(const softmax_vector_args &a, const part_of_row<T> &p,
                                          acc<T> &x, acc<T> &dy)
{
    x = BACKWARD ? (acc<T>)0 : lowest<acc<T>>();
    dy = 0;
    if (!p.has_edge) return;
    x = wd_widen(static_cast<const T *>(a.x)[p.at + p.edge]);
    if (BACKWARD) dy = wd_widen(static_cast<const T *>(a.dy)[p.at + p.edge]);
}

// What a run adds to its thread's totals; forward these are rescaled where the maximum grows.
template <class T, int R, bool BACKWARD>
__device__ __forceinline__ void add_runs(totals<acc<T>> &mine, run<T> *x, const run<T> *dy,
                                         bool log)
{
    using A = acc<T>;
    A max = mine.max, sum[2] = {0, 0};
    if (!BACKWARD) {
#pragma unroll
        for (int i = 0; i < R; ++i) {
#pragma unroll
            for (int j = 0; j < run_of<T>; ++j) max = larger(max, wd_widen(x[i].get(j)));
            forget<0>(x[i]);
        }
    }
    const A base = base_of(max);
#pragma unroll
    for (int i = 0; i < R; ++i) {
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j) {
            sum[j % 2] += term<T, BACKWARD>(wd_widen(x[i].get(j)),
                                            BACKWARD ? wd_widen(dy[i].get(j)) : (A)0, base, log);
        }
    }
    if (!BACKWARD && mine.max != max) mine.sum *= exp_of(mine.max - base);
    mine = {max, mine.sum + (sum[0] + sum[1])};
}

template <class T, bool BACKWARD>
__device__ __forceinline__ void add_edge(totals<acc<T>> &mine, acc<T> x, acc<T> dy, bool log)
{
    using A = acc<T>;
    const A max = BACKWARD ? (A)0 : larger(mine.max, x);
    const A base = base_of(max);
    if (!BACKWARD && mine.max != max) mine.sum *= exp_of(mine.max - base);
    mine = {max, mine.sum + term<T, BACKWARD>(x, dy, base, log)};
}

template <class T, bool BACKWARD>
__device__ __forceinline__ void store_edge(const softmax_vector_args &a, const part_of_row<T> &p,
                                           acc<T> x, acc<T> dy, const totals<acc<T>> &all,
                                           acc<T> number)
{
    if (!p.has_edge) return;
    blend<T>(a, static_cast<T *>(a.y) + p.at + p.edge,
             result<T, BACKWARD>(x, dy, all, number, a.log));
}

template <class T, bool BACKWARD, bool LOG>
__device__ __forceinline__ void store_run(const softmax_vector_args &a, T *to, const run<T> &x,
                                          const run<T> &dy, const totals<acc<T>> &all,
                                          acc<T> number)
{
    constexpr int V = run_of<T>;
    acc<T> v[V];
    run<T> out;
#pragma unroll
    for (int j = 0; j < V; ++j) {
        v[j] = result<T, BACKWARD>(wd_widen(x.get(j)), BACKWARD ? wd_widen(dy.get(j)) : (acc<T>)0,
                                   all, number, LOG);
    }
    if (!a.plain) {
        blend_run<T, V>(a, to, v);
        return;
    }
#pragma unroll
    for (int j = 0; j < V; ++j) out.put(j, narrow<T>(v[j]));
    if (a.streaming) out.store_streaming(to);
    else out.store(to);
}

template <class T, bool BACKWARD, bool LOG>
__device__ __forceinline__ void store_shared(const softmax_vector_args &a, T *to, const T *x,
                                             const T *dy, uint32_t runs, const totals<acc<T>> &all,
                                             acc<T> number)
{
    constexpr int V = run_of<T>;
#pragma unroll(sizeof(T) == 8 ? 1 : 2)
    for (uint32_t i = threadIdx.x; i < runs; i += blockDim.x) {
        run<T> r, s;
        r.load(x + i * V);
        if (BACKWARD) s.load(dy + i * V);
        store_run<T, BACKWARD, LOG>(a, to + i * V, r, BACKWARD ? s : r, all, number);
    }
}

// A row a block, or a cluster of them. A thread uses only those runs that it has copied itself.
template <class T, bool BACKWARD> __device__ void rows_block(const softmax_vector_args &a)
{
    using A = acc<T>;
    constexpr int V = run_of<T>;
    __shared__ cluster_totals<A> of_cluster;
    uint4 *shared = wd_dynamic_shared<uint4>();
    const uint32_t segment = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    const part_of_row<T> p(a, blockIdx.x / a.cluster, segment);
    T *x = reinterpret_cast<T *>(shared), *dy = reinterpret_cast<T *>(shared + a.runs);
    const T *from = static_cast<const T *>(a.x) + p.at;
    const T *from_dy = BACKWARD ? static_cast<const T *>(a.dy) + p.at : from;
    T *to = static_cast<T *>(a.y) + p.at;
    totals<A> all = {BACKWARD ? (A)0 : lowest<A>(), 0};
    A edge, edge_dy;
    if (a.cluster > 1) begin_cluster(of_cluster, a.cluster);
    wd_wait_for_previous();
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < p.runs; i += blockDim.x) {
        wd_copy_async<16, false>(x + i * V, from + i * V);
        if (BACKWARD) wd_copy_async<16, false>(dy + i * V, from_dy + i * V);
    }
    load_edge<T, BACKWARD>(a, p, edge, edge_dy);
    wd_copies_wait_all();
    if (!BACKWARD) {
        all.max = larger(all.max, edge);
#pragma unroll(sizeof(T) == 8 ? 1 : 2)
        for (uint32_t i = threadIdx.x; i < p.runs; i += blockDim.x) {
            run<T> r;
            r.load(x + i * V);
#pragma unroll
            for (int j = 0; j < V; ++j) all.max = larger(all.max, wd_widen(r.get(j)));
        }
    }
    const A base = base_of(all.max);
    all.sum = term<T, BACKWARD>(edge, edge_dy, base, a.log);
#pragma unroll(sizeof(T) == 8 ? 1 : 2)
    for (uint32_t i = threadIdx.x; i < p.runs; i += blockDim.x) {
        run<T> r, s;
        r.load(x + i * V);
        if (BACKWARD) s.load(dy + i * V);
#pragma unroll
        for (int j = 0; j < V; ++j) {
            all.sum += term<T, BACKWARD>(wd_widen(r.get(j)), BACKWARD ? wd_widen(s.get(j)) : (A)0,
                                         base, a.log);
        }
    }
    all = join_block(join_lanes(all, 32));
    if (a.cluster > 1) all = join_cluster(of_cluster, all, a.cluster, segment);
    const A number = BACKWARD ? (A)0 : prepared<T>(all.sum, a.log);
    if (a.log) store_shared<T, BACKWARD, true>(a, to, x, dy, p.runs, all, number);
    else store_shared<T, BACKWARD, false>(a, to, x, dy, p.runs, all, number);
    store_edge<T, BACKWARD>(a, p, edge, edge_dy, all, number);
}

// Runs that a thread loads at once of a long row.
template <class T> constexpr int long_runs = sizeof(T) == 8 ? 2 : SOFTMAX_LONG_RUNS;

// R runs of a long row, as many as there are: others give nothing.
template <class T, int R, bool BACKWARD>
__device__ __forceinline__ void load_long(const T *from, uint32_t first, uint32_t n, acc<T> pad,
                                          run<T> *to)
{
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const uint32_t index = first + i * blockDim.x;
        if (index < n) {
            to[i].load(from + (int64_t)index * run_of<T>);
        } else {
#pragma unroll
            for (int j = 0; j < run_of<T>; ++j) to[i].put(j, narrow<T>(pad));
        }
    }
}

// What a segment of a long row comes to.
template <class T, bool BACKWARD> __device__ void rows_sums(const softmax_vector_args &a)
{
    using A = acc<T>;
    constexpr int R = long_runs<T>;
    const part_of_row<T> p(a, blockIdx.x / a.segments, blockIdx.x % a.segments);
    const T *from = static_cast<const T *>(a.x) + p.at;
    const T *from_dy = BACKWARD ? static_cast<const T *>(a.dy) + p.at : from;
    totals<A> mine = {BACKWARD ? (A)0 : lowest<A>(), 0};
    A edge, edge_dy;
    wd_wait_for_previous();
    load_edge<T, BACKWARD>(a, p, edge, edge_dy);
    for (uint32_t first = threadIdx.x; first < p.runs; first += blockDim.x * R) {
        run<T> x[R], dy[BACKWARD ? R : 1];
        load_long<T, R, BACKWARD>(from, first, p.runs, BACKWARD ? (A)0 : lowest<A>(), x);
        if constexpr (BACKWARD) load_long<T, R, BACKWARD>(from_dy, first, p.runs, (A)0, dy);
        add_runs<T, R, BACKWARD>(mine, x, dy, a.log);
    }
    add_edge<T, BACKWARD>(mine, edge, edge_dy, a.log);
    mine = join_block(join_lanes(mine, 32));
    if (threadIdx.x == 0) static_cast<totals<A> *>(a.partial)[blockIdx.x] = mine;
}

template <class T, int R, bool BACKWARD, bool LOG>
__device__ __forceinline__ void store_long(const softmax_vector_args &a, T *to, uint32_t first,
                                           uint32_t n, const run<T> *x, const run<T> *dy,
                                           const totals<acc<T>> &all, acc<T> number)
{
#pragma unroll
    for (int i = 0; i < R; ++i) {
        const uint32_t index = first + i * blockDim.x;
        if (index < n) {
            store_run<T, BACKWARD, LOG>(a, to + (int64_t)index * run_of<T>, x[i],
                                        BACKWARD ? dy[i] : x[i], all, number);
        }
    }
}

// The second reading. Blocks are turned around: what the sums have read last is still in the cache.
// The first runs are under way while the parts of the row are joined.
template <class T, bool BACKWARD> __device__ void rows_spread(const softmax_vector_args &a)
{
    using A = acc<T>;
    constexpr int R = sizeof(T) == 8 && !BACKWARD ? 3 : long_runs<T>;
    const uint32_t block = gridDim.x - 1 - blockIdx.x;
    const uint32_t row = block / a.segments;
    const part_of_row<T> p(a, row, block % a.segments);
    const T *from = static_cast<const T *>(a.x) + p.at;
    const T *from_dy = BACKWARD ? static_cast<const T *>(a.dy) + p.at : from;
    T *to = static_cast<T *>(a.y) + p.at;
    const totals<A> *partial =
        static_cast<const totals<A> *>(a.partial) + (int64_t)row * a.segments;
    totals<A> all = {lowest<A>(), 0};
    A edge, edge_dy;
    run<T> x[R], dy[BACKWARD ? R : 1];
    wd_wait_for_previous();
    load_long<T, R, BACKWARD>(from, threadIdx.x, p.runs, (A)0, x);
    if constexpr (BACKWARD) load_long<T, R, BACKWARD>(from_dy, threadIdx.x, p.runs, (A)0, dy);
    load_edge<T, BACKWARD>(a, p, edge, edge_dy);
    for (uint32_t s = threadIdx.x; s < a.segments; s += blockDim.x) {
        const totals<A> one = partial[s];
        const A max = larger(all.max, one.max);
        const A base = base_of(max);
        all = {max, all.sum * exp_of(all.max - base) + one.sum * exp_of(one.max - base)};
    }
    all = join_block(join_lanes(all, 32));
    const A number = BACKWARD ? (A)0 : prepared<T>(all.sum, a.log);
    for (uint32_t first = threadIdx.x; first < p.runs;) {
        if (a.log) store_long<T, R, BACKWARD, true>(a, to, first, p.runs, x, dy, all, number);
        else store_long<T, R, BACKWARD, false>(a, to, first, p.runs, x, dy, all, number);
        first += blockDim.x * R;
        load_long<T, R, BACKWARD>(from, first, p.runs, (A)0, x);
        if constexpr (BACKWARD) load_long<T, R, BACKWARD>(from_dy, first, p.runs, (A)0, dy);
    }
    store_edge<T, BACKWARD>(a, p, edge, edge_dy, all, number);
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

} // namespace

#define WD_KERNELS_ROWS "ops/softmax/softmax_vector_kernels.def"
#include "ops/kernels_device.inc"
