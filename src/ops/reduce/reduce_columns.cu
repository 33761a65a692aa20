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
template <bool BFLOAT, class T>
__device__ __forceinline__ state<PICK, float> pick_column(const reduce_vector_args &a,
                                                          const T *from, uint32_t row, uint32_t end,
                                                          uint32_t down)
{
    constexpr int ROWS = 16;
    const uint32_t first_row = row;
    int32_t best = INT32_MIN;
    // Two rows make a word, of which the order is found at once. Where all of them are there, rows are counted
    // within the turn, and the turn's first greatest is found before it meets the others'. The last turn
    // ends with the last row: what it has looked at before changes nothing.
    const char *at = reinterpret_cast<const char *>(from + (uint64_t)row * a.pitch);
    const int64_t step = (int64_t)((uint64_t)down * a.pitch * sizeof(T));
    while (row < end) {
        uint16_t bits[ROWS];
        int32_t most = INT32_MIN;
        if (row + (ROWS - 1) * down >= end) {
            if (row == first_row) break;
            // what is left is few rows, and `down` the block's threads by the lanes
            const uint32_t back = ROWS - 1 - ((end - 1 - row) << a.lane_bits) / REDUCE_THREADS;
            row -= back * down;
            at -= back * step;
        }
#pragma unroll
        for (int i = 0; i < ROWS; ++i, at += step)
            bits[i] = *reinterpret_cast<const uint16_t *>(at);
#pragma unroll
        for (int i = 0; i < ROWS; i += 2) {
            const uint32_t two = ordered<BFLOAT>(a, bits[i] | (uint32_t)bits[i + 1] << 16);
            most = max(most, (int32_t)(two << 16 | (uint32_t)(ROWS - 1 - i)));
            most = max(most, (int32_t)((two & 0xffff0000u) | (uint32_t)(ROWS - 2 - i)));
        }
        const uint32_t first = row + (ROWS - 1 - ((uint32_t)most & (ROWS - 1))) * down;
        best = max(best, (int32_t)(((uint32_t)most & 0xffff0000u) | (0xffffu - first)));
        row += ROWS * down;
    }
    // the last row stands in for those behind it
    for (; row < end; row += ROWS * down) {
        uint16_t bits[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const uint32_t r = min(row + i * down, end - 1);
            bits[i] = *reinterpret_cast<const uint16_t *>(from + (uint64_t)r * a.pitch);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i += 2) {
            const uint32_t two = ordered<BFLOAT>(a, bits[i] | (uint32_t)bits[i + 1] << 16);
            const uint32_t low = 0xffffu - min(row + i * down, end - 1);
            const uint32_t high = 0xffffu - min(row + (i + 1) * down, end - 1);
            best = max(best, (int32_t)(two << 16 | low));
            best = max(best, (int32_t)((two & 0xffff0000u) | high));
        }
    }
    return picked(a, best);
}

// Outputs of which pick_column finds what is picked, one a thread.
template <class T> __device__ void reduce_places(const reduce_vector_args &a)
{
    const uint32_t tile = a.segments == 1 ? blockIdx.x : blockIdx.x / a.segments;
    const uint32_t segment = blockIdx.x - tile * a.segments;
    const uint32_t down = blockDim.x >> a.lane_bits;
    const uint32_t position = tile * a.lanes + (threadIdx.x & (a.lanes - 1));
    const uint32_t k01 = wd_fastdiv_quotient(position, a.by_run);
    const uint32_t k0 = wd_fastdiv_quotient(k01, a.by_k1);
    const T *from = static_cast<const T *>(a.x) + k0 * a.slice +
                    (k01 - k0 * a.by_k1.divisor) * a.line + (position - k01 * a.by_run.divisor);
    const uint32_t row = segment * a.per_segment + (threadIdx.x >> a.lane_bits);
    const uint32_t end = position < a.positions ? min((segment + 1) * a.per_segment, a.units) : 0;
    wd_wait_for_previous();
    state<PICK, float> one[1] = {a.bfloat ? pick_column<true>(a, from, row, end, down)
                                          : pick_column<false>(a, from, row, end, down)};
    if (down == 1 && a.segments == 1) {
        if (position < a.positions) put<PICK, float>(a, position, one[0]);
        return;
    }
    conclude<PICK, float, 1>(a, one, a.lanes, tile * a.lanes, segment);
}

// V outputs a thread: a run, or one.
template <int OP, class T, int V> __device__ void reduce_columns(const reduce_vector_args &a)
{
    using A = acc<T>;
    // what is picked of two bytes goes by reduce_places where there is much
    constexpr int ROWS = V == 1 && OP == PICK && sizeof(T) == 2 ? 4
                         : V == 1                               ? 32 / (int)sizeof(T)
                                                                : 4;
    constexpr int ROUNDS = V == 1 ? 2 : 4;
    constexpr int MANY = 8; // rows of sums, all of which are there
    // what asks for each element which type it is has registers for a block less
    constexpr bool KNOWN = OP == SUM && V == 8;
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
    columns<OP, A, V> sum;
    sum.begin(a, row < end ? row : INT32_MAX);
    wd_wait_for_previous();
    while (row < end) {
        if constexpr (OP == SUM && V > 1 && V < 8) {
            if (row >= first_whole) {
                const T *from = x + base + (int64_t)((uint64_t)row * a.pitch);
                bool some = false;
#pragma unroll 1
                for (int n = 0; n < 2 && row + (MANY - 1) * down < end_whole; ++n) {
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
                take<OP, KNOWN>(a, run[i], w);
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
    constexpr uint32_t STATES = sizeof(state<OP, A>) > 8 ? 4 : 8;
    const state<OP, A> *from = static_cast<const state<OP, A> *>(a.partial);
    const uint32_t down = blockDim.x >> a.lane_bits;
    const uint32_t output = blockIdx.x * a.lanes + (threadIdx.x & (a.lanes - 1));
    const uint32_t end = output < a.outputs ? a.units : 0;
    state<OP, A> mine[1] = {state<OP, A>::none()};
    wd_wait_for_previous();
    // a thread has fewer than eight: one wait for all of them, the last of all in place of what is behind it
#pragma unroll 1
    for (uint32_t s = threadIdx.x >> a.lane_bits; s < end; s += STATES * down) {
        state<OP, A> part[STATES];
#pragma unroll
        for (uint32_t i = 0; i < STATES; ++i) {
            part[i] = from[(int64_t)min(s + i * down, end - 1) * a.outputs + output];
        }
#pragma unroll
        for (uint32_t i = 0; i < STATES; ++i) {
            if (s + i * down < end) mine[0].join(part[i]);
        }
    }
    if (down > 1) conclude<OP, A, 1>(a, mine, a.lanes, blockIdx.x * a.lanes, 0);
    else if (output < a.outputs) put<OP, A>(a, output, mine[0]);
}

} // namespace

// What is picked, and products of fp64, spill otherwise.
// Sums would not have all rows under way.
#define WD_KERNELS_BOUNDS(threads, registers)                                                      \
    threads, (registers) == 40 ? 6 : (registers) == 80 ? 3 : (registers) == 112 ? 2 : 0
#define WD_KERNELS_ROWS "ops/reduce/reduce_columns_kernels.def"
#include "ops/kernels_device.inc"
