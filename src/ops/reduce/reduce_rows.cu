// SPDX-License-Identifier: Apache-2.0
//
// Reductions whose innermost dim is reduced: outputs are rows of neighbours. Lanes, warps, blocks or
// many blocks share a row by runs of 16 bytes; short rows that are no whole runs go through shared
// memory, where they are read element by element.
#include "gpu/device/async.cuh"
#include "ops/reduce/reduce_device.cuh"
#include "ops/reduce/reduce_terms.cuh"

namespace {

// The run from element `at` of x on, without what lies outside of x.
template <class T>
__device__ __forceinline__ void load_run(const reduce_vector_args &a, wd_run<T, run_of<T>> &run,
                                         int64_t at)
{
    constexpr int V = run_of<T>;
    const T *x = static_cast<const T *>(a.x);
    if (at >= 0 && at + V <= a.total) {
        run.load(x + at);
        return;
    }
#pragma unroll
    for (int j = 0; j < V; ++j) {
        T element;
        wd_narrow(element, (acc<T>)0);
        if (at + j >= 0 && at + j < a.total) element = x[at + j];
        run.put(j, element);
    }
}

// Where a unit of a row lies.
struct run_place {
    uint32_t piece;
    int64_t start; // of the piece in x
    int64_t k;     // of the run, from there
};

template <int V>
__device__ __forceinline__ run_place place_of(const reduce_vector_args &a, int64_t base,
                                              uint32_t unit)
{
    run_place r;
    r.piece = wd_fastdiv_quotient(unit, a.by_run);
    r.start = base + r.piece * a.piece;
    r.k = (int64_t)(unit - r.piece * a.by_run.divisor) * V - (int)((a.shift + r.start) & (V - 1));
    return r;
}

// N whole runs, `step` apart.
template <int OP, class T, int N>
__device__ __forceinline__ void add_whole(const reduce_vector_args &a,
                                          terms<OP, acc<T>, run_of<T>> &sum, const T *from,
                                          uint32_t step, int32_t index)
{
    constexpr int V = run_of<T>;
    wd_run<T, V> run[N];
#pragma unroll
    for (int i = 0; i < N; ++i) run[i].load(from + i * step * V);
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const int32_t at = index + (int32_t)(i * step * V);
        acc<T> w[V];
        take<OP>(a, run[i], w);
        sum.add(a, w, at, at);
    }
    sum.flush();
}

// A row that is one piece of whole runs: as many of them as there are, without a thought of where they lie.
template <int OP, class T>
__device__ __forceinline__ void add_row(const reduce_vector_args &a,
                                        terms<OP, acc<T>, run_of<T>> &sum, const T *from,
                                        uint32_t unit, uint32_t end, uint32_t step)
{
    constexpr int V = run_of<T>, N = OP == PRODUCT || (OP == PICK && sizeof(T) == 2) ? 4 : 8;
#pragma unroll 1
    while (unit < end) {
        wd_run<T, V> run[N];
        const T *at = from + (uint64_t)unit * V;
        uint32_t u = unit;
#pragma unroll
        for (int i = 0; i < N; ++i, u += step, at += step * V) {
            if (u < end) run[i].load(at);
        }
#pragma unroll
        for (int i = 0; i < N; ++i, unit += step) {
            acc<T> w[V];
            if (unit >= end) continue;
            take<OP>(a, run[i], w);
            sum.add(a, w, (int32_t)(unit * V), (int32_t)(unit * V));
        }
        sum.flush();
    }
}

// A row is of `lanes` threads, or of a block or several where that is more than a warp.
template <int OP, class T> __device__ void reduce_rows(const reduce_vector_args &a)
{
    using A = acc<T>;
    constexpr int V = run_of<T>, RUNS = 4, ROUNDS = 2, MANY = OP == SUM ? 8 : 4;
    const bool by_block = a.lanes > 32;
    uint32_t row, segment = 0, unit, end, step;
    if (by_block) {
        row = blockIdx.x / a.segments;
        segment = blockIdx.x - row * a.segments;
        unit = segment * a.per_segment + threadIdx.x;
        end = min((segment + 1) * a.per_segment, a.units);
        step = blockDim.x;
    } else {
        row = blockIdx.x * (blockDim.x >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
        unit = threadIdx.x & (a.lanes - 1);
        end = row < a.outputs ? a.units : 0;
        step = a.lanes;
    }
    const uint32_t lane = unit;
    const uint32_t k0 = wd_fastdiv_quotient(row, a.by_k1);
    const int64_t base = k0 * a.slice + (row - k0 * a.by_k1.divisor) * a.line;
    terms<OP, A, V> sum;
    sum.begin(a);
    wd_wait_for_previous();
    if (sizeof(T) < 8 && a.whole_rows) {
        add_row<OP, T>(a, sum, static_cast<const T *>(a.x) + base, unit, end, step);
        unit = end;
    }
    const uint32_t lead = threadIdx.x & (step - 1); // of the threads that share the row
    while (unit < end) {
        // where all of them have whole runs of one piece, many are in flight
        const uint32_t piece = wd_fastdiv_quotient(unit - lead, a.by_run);
        const int64_t start = base + piece * a.piece;
        const int before = (int)((a.shift + start) & (V - 1));
        const int64_t first = (int64_t)(unit - lead - piece * a.by_run.divisor) * V - before;
        const int32_t index =
            (int32_t)(piece * (uint32_t)a.line) + (int32_t)first + (int32_t)lead * V;
        const T *from = static_cast<const T *>(a.x) + start + first + lead * V;
        const uint32_t left = end - (unit - lead);
        // whole runs, of the piece and of the segment
        const uint32_t room = first >= 0 ? (uint32_t)min((a.line - first) / V, (int64_t)left) : 0;
        if (room >= MANY * step) {
            add_whole<OP, T, MANY>(a, sum, from, step, index);
            unit += MANY * step;
            continue;
        }
        if (room >= MANY / 2 * step) {
            add_whole<OP, T, MANY / 2>(a, sum, from, step, index);
            unit += MANY / 2 * step;
            continue;
        }
#pragma unroll 1
        for (int n = 0; n < ROUNDS && unit < end; ++n, unit += RUNS * step) {
            wd_run<T, V> run[RUNS];
            int inside[RUNS]; // elements of a run from the first to behind the last of its piece
            int32_t index[RUNS];
#pragma unroll
            for (int i = 0; i < RUNS; ++i) {
                const run_place r = place_of<V>(a, base, unit + i * step);
                const int begin = (int)max(-r.k, (int64_t)0);
                const int behind = (int)min(a.line - r.k, (int64_t)V);
                inside[i] = begin < behind && unit + i * step < end ? begin | behind << 8 : 0;
                index[i] = (int32_t)(r.piece * (uint32_t)a.line) + (int32_t)r.k;
                if (inside[i]) load_run<T>(a, run[i], r.start + r.k);
            }
#pragma unroll
            for (int i = 0; i < RUNS; ++i) {
                A w[V];
                if (!inside[i]) continue;
                take<OP>(a, run[i], w);
                if (inside[i] != V << 8) {
#pragma unroll
                    for (int j = 0; j < V; ++j) {
                        if (j < (inside[i] & 255) || j >= inside[i] >> 8) w[j] = neutral<OP, A>(a);
                    }
                }
                sum.add(a, w, index[i], index[i] + (inside[i] & 255));
            }
        }
        sum.flush();
    }
    state<OP, A> mine[1] = {sum.get(a)};
    if (by_block) conclude<OP, A, 1>(a, mine, 1, row, segment);
    else conclude_lanes<OP, A>(a, mine[0], row, lane);
}

// ---- Short rows ----

// The greatest of a row of elements of two bytes, in words of which the first and the last may be half
// a neighbour's.
template <bool BFLOAT, class T>
__device__ __forceinline__ state<PICK, float> pick_row(const reduce_vector_args &a, const T *row,
                                                       uint32_t n, uint32_t lane)
{
    constexpr int WORDS = 4;
    const uint32_t odd = (uint32_t)(reinterpret_cast<uintptr_t>(row) / 2 & 1);
    const uint32_t *in = reinterpret_cast<const uint32_t *>(row - odd);
    const uint32_t whole = (odd + n) / 2; // behind the last word that is all the row's
    int32_t best = INT32_MIN;
    uint32_t k = odd + lane;
    // several words at once, whose elements are counted among themselves, so that places are constants
#pragma unroll 1
    for (; k + (WORDS - 1) * a.lanes < whole; k += WORDS * a.lanes) {
        int32_t most = INT32_MIN;
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            const uint32_t two = ordered<BFLOAT>(a, in[k + i * a.lanes]);
            most = max(most, (int32_t)(two << 16 | (uint32_t)(2 * (WORDS - i) - 1)));
            most = max(most, (int32_t)((two & 0xffff0000u) | (uint32_t)(2 * (WORDS - i) - 2)));
        }
        const uint32_t element = 2 * WORDS - 1 - ((uint32_t)most & (2 * WORDS - 1));
        const uint32_t place = 2 * (k + element / 2 * a.lanes) + element % 2 - odd;
        best = max(best, (int32_t)(((uint32_t)most & 0xffff0000u) | (0xffff - place)));
    }
#pragma unroll 1
    for (; k < whole; k += a.lanes) {
        const uint32_t two = ordered<BFLOAT>(a, in[k]), place = 0xffff + odd - 2 * k;
        best = max(best, (int32_t)(two << 16 | place));
        best = max(best, (int32_t)((two & 0xffff0000u) | (place - 1)));
    }
    if (lane == 0 && n > 0) {
        if (odd) best = max(best, (int32_t)((ordered<BFLOAT>(a, in[0]) & 0xffff0000u) | 0xffff));
        if ((odd + n) % 2 != 0) {
            best = max(best,
                       (int32_t)(ordered<BFLOAT>(a, in[whole]) << 16 | (0xffff + odd - 2 * whole)));
        }
    }
    return picked(a, best);
}

// `block_rows` rows a block, copied as they lie; `lanes` threads a row.
template <int OP, class T> __device__ void reduce_short(const reduce_vector_args &a)
{
    using A = acc<T>;
    constexpr int V = run_of<T>;
    const T *x = static_cast<const T *>(a.x);
    T *staged = wd_dynamic_shared<T>();
    const uint32_t line = (uint32_t)a.line;
    const uint32_t first = blockIdx.x * a.block_rows;
    const uint32_t rows = min(a.block_rows, a.outputs - first);
    const int64_t start = (int64_t)first * line;
    const uint32_t shift = (uint32_t)((a.shift + start) & (V - 1));
    const uint32_t lane = threadIdx.x & (a.lanes - 1);
    wd_wait_for_previous();
    const uint32_t length = shift + rows * line;
    if (start >= shift && start - shift + (length + V - 1) / V * V <= a.total) {
        for (uint32_t at = threadIdx.x * V; at < length; at += blockDim.x * V) {
            wd_copy_async<16, false>(staged + at, x + (start - shift) + at);
        }
    } else { // with an end of x
        for (uint32_t at = threadIdx.x * V; at < length; at += blockDim.x * V) {
            const int64_t from = start + (int64_t)at - shift;
            if (from >= 0 && from + V <= a.total) {
                wd_copy_async<16, false>(staged + at, x + from);
                continue;
            }
            for (int j = 0; j < V; ++j) {
                if (from + j >= 0 && from + j < a.total) staged[at + j] = x[from + j];
            }
        }
    }
    wd_copies_wait_all();
    __syncthreads();
    // all threads stay together for the shuffles
    const uint32_t step = blockDim.x >> a.lane_bits;
    for (uint32_t done = 0; done < rows; done += step) {
        const uint32_t row = done + (threadIdx.x >> a.lane_bits);
        const T *mine = staged + shift + row * line;
        const uint32_t end = row < rows ? line : 0;
        const uint32_t output = row < rows ? first + row : a.outputs;
        if constexpr (OP == PICK && sizeof(T) == 2) {
            conclude_lanes<OP, A>(a,
                                  a.bfloat ? pick_row<true>(a, mine, end, lane)
                                           : pick_row<false>(a, mine, end, lane),
                                  output, lane);
            continue;
        }
        terms<OP, A, 1> sum;
        sum.begin(a);
#pragma unroll 4
        for (uint32_t k = lane; k < end; k += a.lanes) {
            const A w = term<OP>(a, widened(a, mine[k]));
            sum.add(a, &w, (int32_t)k, (int32_t)k);
        }
        conclude_lanes<OP, A>(a, sum.get(a), output, lane);
    }
}

} // namespace

// These spill otherwise.
#define WD_KERNELS_BOUNDS(threads, registers) threads, (registers) == 80 ? 3 : 0
#define WD_KERNELS_ROWS "ops/reduce/reduce_rows_kernels.def"
#include "ops/kernels_device.inc"
