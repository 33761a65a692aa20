// SPDX-License-Identifier: Apache-2.0
//
// Softmax over columns that begin anywhere: where `inner` is no whole number of runs, the rows of a
// tile (a channel's positions side by side) lie differently on the boundaries of 16 bytes. They are
// copied to shared memory as they lie, by whole runs, taken from there element by element, and
// stored as they lie. Included by softmax_columns.cu after its own code.
#include "gpu/device/async.cuh"

namespace {

// Positions of a tile: 128 bytes of a channel.
template <class T> constexpr uint32_t staged_across = SOFTMAX_STAGED_BYTES / sizeof(T);

// A block's tile: `channels` rows of `positions` elements, `inner` apart in memory.
template <class T> struct staged_tile {
    static constexpr uint32_t V = run_of<T>, ACROSS = staged_across<T>;
    static constexpr uint32_t RUNS = ACROSS / V + 1; // that a row touches
    static constexpr uint32_t PITCH = RUNS * V;
    int64_t at; // of its first element
    uint32_t channels;
    uint32_t positions;
    uint32_t start; // of the first row behind a boundary
    uint32_t step;  // from row to row

    __device__ __forceinline__ uint32_t before(uint32_t row) const
    {
        return (start + row * step) & (V - 1);
    }

    // Runs of all rows in turn: `each` gets the run's place in shared memory and in the tensor, and
    // which of its elements are the row's.
    template <class F> __device__ __forceinline__ void for_runs(int64_t inner, F each) const
    {
        for (uint32_t u = threadIdx.x; u < channels * RUNS; u += blockDim.x) {
            const uint32_t row = u / RUNS, k = u - row * RUNS;
            const int shift = (int)before(row), first = (int)(k * V) - shift;
            const int lo = max(-first, 0), hi = min((int)positions - first, (int)V);
            if (lo < hi) each(row * PITCH + k * V, at + row * inner + first, lo, hi);
        }
    }

    __device__ __forceinline__ void load(const softmax_vector_args &a, T *to, const T *from) const
    {
        for_runs(a.inner, [&](uint32_t place, int64_t offset, int lo, int hi) {
            if (offset >= 0 && offset + (int)V <= a.total) {
                wd_copy_async<16, true>(to + place, from + offset); // neighbours want the ends too
                return;
            }
            for (int j = lo; j < hi; ++j) to[place + j] = from[offset + j];
        });
    }

    __device__ __forceinline__ void store(const softmax_vector_args &a, T *to, const T *from) const
    {
        for_runs(a.inner, [&](uint32_t place, int64_t offset, int lo, int hi) {
            if (hi - lo == (int)V) {
                run<T> r;
                r.load(from + place);
                r.store(to + offset);
                return;
            }
            for (int j = lo; j < hi; ++j) to[offset + j] = from[place + j];
        });
    }
};

// R channels of a position a thread.
template <class T, int R, bool BACKWARD>
__device__ __forceinline__ void columns_staged(const softmax_vector_args &a)
{
    using A = acc<T>;
    using tile_of = staged_tile<T>;
    constexpr uint32_t ACROSS = tile_of::ACROSS;
    WD_DYNAMIC_SHARED(unsigned char, shared);
    T *x = reinterpret_cast<T *>(shared + a.tile * SOFTMAX_BYTES);
    const uint32_t rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    const uint32_t index = blockIdx.x / a.cluster;
    const uint32_t outer = wd_fastdiv_quotient(index, a.by_inner); // tiles of an image
    const int64_t across = (int64_t)(index - outer * a.by_inner.divisor) * ACROSS;
    const int64_t channel = rank * a.runs;
    tile_of tile;
    tile.channels = (uint32_t)max(min(a.length - channel, a.runs), (int64_t)0);
    tile.positions = (uint32_t)min((int64_t)ACROSS, a.inner - across);
    tile.at = (outer * a.length + channel) * a.inner + across;
    tile.start = (uint32_t)(a.shift + tile.at);
    tile.step = (uint32_t)a.inner;
    T *dy = x + tile.channels * tile_of::PITCH;
    column_place p;
    p.across = threadIdx.x % ACROSS;
    p.row = threadIdx.x / ACROSS;
    p.down = blockDim.x / ACROSS;
    wd_wait_for_previous();
    tile.load(a, x, static_cast<const T *>(a.x));
    if (BACKWARD) tile.load(a, dy, static_cast<const T *>(a.dy));
    wd_copies_wait_all();
    __syncthreads();
    wd_run<T, 1> in[R], in_dy[BACKWARD ? R : 1];
    const bool here = p.across < tile.positions;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const uint32_t row = p.row + r * p.down;
        const uint32_t place = row * tile_of::PITCH + tile.before(row) + p.across;
        in[r].put(0, narrow<T>(BACKWARD ? (A)0 : lowest<A>()));
        if (BACKWARD) in_dy[r].put(0, narrow<T>((A)0));
        if (!here || row >= tile.channels) continue;
        in[r].put(0, x[place]);
        if (BACKWARD) in_dy[r].put(0, dy[place]);
    }
    wd_run<T, 1> *second = BACKWARD ? in_dy : in;
    totals<A> all[1] = {{BACKWARD ? (A)0 : lowest<A>(), 0}};
    add_columns<T, R, 1, BACKWARD>(in, second, a.log, all);
    join_columns<1>(a, p, all);
    const A number = BACKWARD ? (A)0 : prepared<T>(all[0].sum, a.log);
    const T *old = static_cast<const T *>(a.y) + tile.at + p.across;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const uint32_t row = p.row + r * p.down;
        const uint32_t place = row * tile_of::PITCH + tile.before(row) + p.across;
        if (!here || row >= tile.channels) continue;
        A v = result<T, BACKWARD>(wd_widen(in[r].get(0)), wd_widen(second[r].get(0)), all[0],
                                  number, a.log);
        if (!a.plain) {
            v = scaled(v, (A)a.alpha);
            if (a.beta != 0.0) v += (A)a.beta * wd_widen(old[row * a.inner]);
        }
        x[place] = narrow<T>(v);
    }
    __syncthreads();
    tile.store(a, static_cast<T *>(a.y), x);
    if (a.cluster > 1) wd_cluster_wait();
}

} // namespace
