// SPDX-License-Identifier: Apache-2.0
//
// Reductions over dims that are not the innermost: a thread has a run of neighbouring outputs, or
// one, and adds up rows of them. Also the second stage of all reductions that are cut in segments.
#include "ops/reduce/reduce_device.cuh"

namespace {

// ---- What a thread makes of rows that follow one another ----

template <int OP, class A, int V> struct columns;

// Eight sums of two bytes each and their rows fill the registers: they go by two levels of fp32.
template <int V> struct total_type {
    typedef double type;
};
template <> struct total_type<8> {
    typedef float type;
};

template <class A, int V> struct columns<SUM, A, V> {
    typedef typename total_type<V>::type total_of;
    A part[V];
    total_of total[V];

    __device__ __forceinline__ void begin(const reduce_vector_args &, uint32_t)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) part[j] = 0, total[j] = 0;
    }
    __device__ __forceinline__ void add(const reduce_vector_args &a, const A *w, uint32_t)
    {
        if (V < 8 && !a.squares) {
#pragma unroll
            for (int j = 0; j < V; ++j) part[j] += w[j];
            return;
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
            part[j] = add_product(w[j], V < 8 || a.squares ? w[j] : (A)1, part[j]);
        }
    }
    __device__ __forceinline__ void flush()
    {
#pragma unroll
        for (int j = 0; j < V; ++j) total[j] += (total_of)part[j], part[j] = 0;
    }
    __device__ __forceinline__ void get(const reduce_vector_args &, state<SUM, A> *to)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) to[j] = {(double)total[j]};
    }
};

template <class A, int V> struct columns<PRODUCT, A, V> {
    double part[V];

    __device__ __forceinline__ void begin(const reduce_vector_args &, uint32_t)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) part[j] = 1.0;
    }
    __device__ __forceinline__ void add(const reduce_vector_args &, const A *w, uint32_t)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) part[j] *= (double)w[j];
    }
    __device__ __forceinline__ void flush()
    {
    }
    __device__ __forceinline__ void get(const reduce_vector_args &, state<PRODUCT, A> *to)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) to[j] = {part[j]};
    }
};

// What indices call row `row`.
__device__ __forceinline__ int32_t counted_as(const reduce_vector_args &a, uint32_t row)
{
    uint32_t index = 0;
    if (a.counted == 0) return (int32_t)row;
    for (int d = a.counted - 1; d >= 0; --d) {
        const uint32_t rest = wd_fastdiv_quotient(row, a.counted_dim[d]);
        index += (row - rest * a.counted_dim[d].divisor) * a.counted_step[d];
        row = rest;
    }
    return (int32_t)index;
}

// Where NaN is passed over `best` is NaN until there is a number; an index begins as the first row's,
// which is right where all are NaN, or minus infinity. Rows that are joined have no indices; what is counted
// otherwise than it lies goes by one output a thread.
template <class A, int V> struct columns<PICK, A, V> {
    A best[V];
    int32_t index[V];

    __device__ __forceinline__ void begin(const reduce_vector_args &a, uint32_t row)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) {
            best[j] = neutral<PICK, A>(a);
            index[j] = row == INT32_MAX ? INT32_MAX : counted_as(a, row);
        }
    }
    __device__ __forceinline__ void add(const reduce_vector_args &a, const A *w, uint32_t row)
    {
        if constexpr (V == 1) {
            if (a.counted > 0) { // the first of equals may come later
                const int32_t at = counted_as(a, row);
                const A known = a.propagate ? best[0] : w[0];
                const bool wins = known == known && !(w[0] <= best[0]);
                const bool equals = w[0] == best[0] || (w[0] != w[0] && best[0] != best[0]);
                if (wins || (equals && at < index[0])) best[0] = w[0], index[0] = at;
                return;
            }
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
            const A known = a.propagate ? best[j] : w[j];
            const bool wins = known == known && !(w[j] <= best[j]);
            best[j] = wins ? w[j] : best[j];
            index[j] = wins ? (int32_t)row : index[j];
        }
    }
    __device__ __forceinline__ void flush()
    {
    }
    __device__ __forceinline__ void get(const reduce_vector_args &a, state<PICK, A> *to)
    {
#pragma unroll
        for (int j = 0; j < V; ++j) {
            to[j] = state<PICK, A>::none();
            if (index[j] != INT32_MAX) to[j] = {key_of(best[j], a.propagate), index[j]};
        }
    }
};

// Elements of two bytes and where the greatest is, an output a thread, of less than 2^16 rows: value and
// place are one number each, so that an element costs few instructions.
template <class T>
__device__ __forceinline__ state<PICK, float> pick_column(const reduce_vector_args &a,
                                                          const T *from, uint32_t row, uint32_t end,
                                                          uint32_t down)
{
    constexpr int ROWS = 16;
    int32_t best = INT32_MIN;
    // two rows make a word, of which the order is found at once; the last row stands in for those
    // behind it
    for (; row < end; row += ROWS * down) {
        uint16_t bits[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const uint32_t r = min(row + i * down, end - 1);
            bits[i] = *reinterpret_cast<const uint16_t *>(from + (uint64_t)r * a.pitch);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i += 2) {
            const uint32_t two = ordered(a, bits[i] | (uint32_t)bits[i + 1] << 16);
            const uint32_t low = 0xffffu - min(row + i * down, end - 1);
            const uint32_t high = 0xffffu - min(row + (i + 1) * down, end - 1);
            best = max(best, (int32_t)(two << 16 | low));
            best = max(best, (int32_t)((two & 0xffff0000u) | high));
        }
    }
    return picked(a, best);
}

// Likewise where memory has many columns of rows that begin anywhere: a thread has a word of each row, which holds
// two elements, of two of three neighbouring columns: of the word's own, or of those one before. All rows of one
// parity are the same in this, and so these are picked from apart.
template <bool EDGE>
__device__ __forceinline__ void pick_words(const reduce_vector_args &a, const uint16_t *from,
                                           int64_t at, int32_t (*best)[2])
{
    constexpr int ROWS = 16;
#pragma unroll 1
    for (uint32_t row = 0; row < a.units; row += ROWS) {
        uint32_t word[ROWS];
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i, from += a.pitch, at += a.pitch) {
            const uintptr_t place = reinterpret_cast<uintptr_t>(from) & ~(uintptr_t)3;
            if (row + i >= a.units) continue;
            if (EDGE) { // a half of it may lie outside of x
                const uint16_t *half = reinterpret_cast<const uint16_t *>(place);
                const int64_t low = at - (int64_t)(reinterpret_cast<uintptr_t>(from) / 2 % 2);
                word[i] = low >= 0 && low < a.total ? half[0] : 0;
                if (low + 1 >= 0 && low + 1 < a.total) word[i] |= (uint32_t)half[1] << 16;
            } else {
                word[i] = *reinterpret_cast<const uint32_t *>(place);
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < ROWS; ++i) {
            const uint32_t two = ordered(a, word[i]);
            const uint32_t counted = 0xffffu - (row + i);
            if (row + i >= a.units) continue;
            best[i % 2][0] = max(best[i % 2][0], (int32_t)(two << 16 | counted));
            best[i % 2][1] = max(best[i % 2][1], (int32_t)((two & 0xffff0000u) | counted));
        }
    }
}

__device__ __forceinline__ void put_picked(const reduce_vector_args &a, uint32_t output,
                                           int32_t key)
{
    put<PICK, float>(a, output, picked(a, key));
}

// A block has a word less than threads, for each needs what the next one has of the column between them.
__device__ __forceinline__ void pick_pairs(const reduce_vector_args &a)
{
    __shared__ int32_t before[REDUCE_THREADS];
    const uint32_t position = blockIdx.x * (blockDim.x - 1) + threadIdx.x;
    const uint32_t k01 = wd_fastdiv_quotient(position, a.by_run);
    const uint32_t k0 = wd_fastdiv_quotient(k01, a.by_k1);
    const uint32_t t = position - k01 * a.by_run.divisor;
    const int64_t at = k0 * a.slice + (k01 - k0 * a.by_k1.divisor) * a.line + 2 * t;
    const uint16_t *from = static_cast<const uint16_t *>(a.x) + at;
    int32_t best[2][2] = {{INT32_MIN, INT32_MIN}, {INT32_MIN, INT32_MIN}};
    wd_wait_for_previous();
    if (position < a.positions) {
        if (position == 0 || position + 2 >= a.positions) pick_words<true>(a, from, at, best);
        else pick_words<false>(a, from, at, best);
    }
    // what words of each parity of rows hold begins a column before
    const bool even = reinterpret_cast<uintptr_t>(from) / 2 % 2 != 0;
    const bool odd = even != (a.pitch % 2 != 0);
    before[threadIdx.x] = max(even ? best[0][0] : INT32_MIN, odd ? best[1][0] : INT32_MIN);
    __syncthreads();
    if (threadIdx.x + 1 == blockDim.x || position >= a.positions) return;
    const uint32_t column = 2 * t, line = 2 * (a.by_run.divisor - 1) + a.lines_odd;
    const uint32_t output = k01 * line + column;
    if (column < line) {
        put_picked(a, output, max(even ? best[0][1] : best[0][0], odd ? best[1][1] : best[1][0]));
    }
    if (column + 1 < line) {
        const int32_t own = max(even ? INT32_MIN : best[0][1], odd ? INT32_MIN : best[1][1]);
        put_picked(a, output + 1, max(own, before[threadIdx.x + 1]));
    }
}

// V outputs a thread: a run, or one.
template <int OP, class T, int V> __device__ void reduce_columns(const reduce_vector_args &a)
{
    using A = acc<T>;
    // what is picked of two bytes goes by pick_column where there is much
    constexpr int ROWS = V == 1 && OP == PICK && sizeof(T) == 2 ? 4
                         : V == 1                               ? 32 / (int)sizeof(T)
                                                                : 4;
    constexpr int ROUNDS = V == 1 ? 2 : 4;
    constexpr int MANY = V < 8 ? 8 : 4, MANY_ROUNDS = 16 / MANY; // of sums, all of which are there
    const T *x = static_cast<const T *>(a.x);
    const uint32_t tile = blockIdx.x / a.segments;
    const uint32_t segment = blockIdx.x - tile * a.segments;
    const uint32_t down = blockDim.x >> a.lane_bits;
    const uint32_t position = tile * a.lanes + (threadIdx.x & (a.lanes - 1));
    const uint32_t k01 = wd_fastdiv_quotient(position, a.by_run);
    const uint32_t k0 = wd_fastdiv_quotient(k01, a.by_k1);
    const int64_t base = k0 * a.slice + (k01 - k0 * a.by_k1.divisor) * a.line +
                         (int64_t)(position - k01 * a.by_run.divisor) * V -
                         (a.joined ? a.shift : 0);
    uint32_t row = segment * a.per_segment + (threadIdx.x >> a.lane_bits);
    const uint32_t end = position < a.positions ? min((segment + 1) * a.per_segment, a.units) : 0;
    // rows of one r0 need no place of their own where none sticks out of x, as the last two of joined
    // ones may
    const bool follow = (OP != PICK || V < 8) && a.by_r1.divisor >= a.units; // registers
    const uint32_t first_whole = a.joined ? 1 : 0;
    const uint32_t end_whole = !follow ? 0 : a.joined ? min(end, max(a.units, 2u) - 2) : end;
    const int64_t step = (int64_t)((uint64_t)down * a.pitch);
    if constexpr (OP == PICK && sizeof(T) == 2 && V == 1) {
        if (follow && a.units <= 0x10000 && !a.joined && !a.counted) {
            wd_wait_for_previous();
            state<PICK, A> one[1] = {pick_column(a, x + base, row, end, down)};
            conclude<OP, A, 1>(a, one, a.lanes, tile * a.lanes, segment);
            return;
        }
    }
    columns<OP, A, V> sum;
    sum.begin(a, row < end ? row : INT32_MAX);
    wd_wait_for_previous();
    while (row < end) {
        if constexpr (OP == SUM && V > 1) {
            if (row >= first_whole) {
                const T *from = x + base + (int64_t)((uint64_t)row * a.pitch);
                bool some = false;
#pragma unroll 1
                for (int n = 0; n < MANY_ROUNDS && row + (MANY - 1) * down < end_whole; ++n) {
                    wd_run<T, V> run[MANY];
#pragma unroll
                    for (int i = 0; i < MANY; ++i, from += step) run[i].load(from);
#pragma unroll
                    for (int i = 0; i < MANY; ++i) {
                        A w[V];
                        take<OP>(a, run[i], w);
                        sum.add(a, w, 0);
                    }
                    row += MANY * down;
                    some = true;
                }
                sum.flush();
                if (some) continue;
            }
        }
#pragma unroll 1
        for (int n = 0; n < ROUNDS && row < end; ++n, row += ROWS * down) {
            wd_run<T, V> run[ROWS];
            const bool whole = row >= first_whole && row + (ROWS - 1) * down + 1 <= end_whole;
            const T *from = x + base + (int64_t)((uint64_t)row * a.pitch);
#pragma unroll
            for (int i = 0; i < ROWS; ++i, from += whole ? step : 0) {
                const uint32_t r = row + i * down;
                if (whole) {
                    run[i].load(from);
                    continue;
                }
                const uint32_t r0 = wd_fastdiv_quotient(r, a.by_r1);
                int64_t at = base + (int64_t)((uint64_t)(r - r0 * a.by_r1.divisor) * a.pitch);
                if (r0 > 0) at += r0 * a.piece;
                if (r >= end) continue;
                if (!a.joined || (at >= 0 && at + V <= a.total)) {
                    run[i].load(x + at);
                } else {
#pragma unroll
                    for (int j = 0; j < V; ++j) {
                        T element;
                        wd_narrow(element, (A)0);
                        if (at + j >= 0 && at + j < a.total) element = x[at + j];
                        run[i].put(j, element);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const uint32_t r = row + i * down;
                A w[V];
                if (r >= end) continue;
                take<OP>(a, run[i], w);
                if (a.joined) {
                    const int64_t at = base + (int64_t)((uint64_t)r * a.pitch);
                    if (at < 0 || at + V > a.total) {
#pragma unroll
                        for (int j = 0; j < V; ++j) {
                            if (at + j < 0 || at + j >= a.total) w[j] = neutral<OP, A>(a);
                        }
                    }
                }
                sum.add(a, w, r);
            }
        }
        sum.flush();
    }
    state<OP, A> mine[V];
    sum.get(a, mine);
    if constexpr (V > 1) {
        if (down == 1 && a.segments == 1 && !a.joined && are_runs<V>(a)) {
            if (position < a.positions) put_many<OP, A, V>(a, position * V, mine);
            return;
        }
    }
    conclude<OP, A, V>(a, mine, a.lanes, tile * a.lanes * V, segment);
}

// The segments' states of each output, in their order.
template <int OP, class A> __device__ void reduce_finish(const reduce_vector_args &a)
{
    const state<OP, A> *from = static_cast<const state<OP, A> *>(a.partial);
    const uint32_t down = blockDim.x >> a.lane_bits;
    const uint32_t output = blockIdx.x * a.lanes + (threadIdx.x & (a.lanes - 1));
    const uint32_t end = output < a.outputs ? a.units : 0;
    state<OP, A> mine[1] = {state<OP, A>::none()};
    wd_wait_for_previous();
#pragma unroll 8
    for (uint32_t s = threadIdx.x >> a.lane_bits; s < end; s += down) {
        mine[0].join(from[(int64_t)s * a.outputs + output]);
    }
    if (down > 1) conclude<OP, A, 1>(a, mine, a.lanes, blockIdx.x * a.lanes, 0);
    else if (output < a.outputs) put<OP, A>(a, output, mine[0]);
}

} // namespace

// What is picked, and products of fp64, spill otherwise.
// Sums would not have all rows under way.
#define WD_KERNELS_BOUNDS(threads, registers)                                                      \
    threads, (registers) == 80 ? 3 : (registers) == 112 ? 2 : 0
#define WD_KERNELS_ROWS "ops/reduce/reduce_columns_kernels.def"
#include "ops/kernels_device.inc"
