// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums, forward and backward alike: out = sum of weight * weight * weight * from. A thread
// has a few places of a line and walks down the rows of `out`; each line of `from` under them is added
// up once a thread, and what counts for which row is looked up in shared memory. Lines are read by
// runs of channels straight from memory, or staged by 16 bytes, at whatever alignment.
#ifndef WD_OPS_RESAMPLE_WALK_CUH
#define WD_OPS_RESAMPLE_WALK_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/shared.cuh"
#include "ops/resample/resample_vector.cuh"
#include "ops/resample/resample_walk_args.h"

namespace {

// Where a block and a thread are.
struct walker {
    uint32_t thread; /* of the walk */
    uint32_t walk;   /* of the block */
    uint32_t unit;   /* of the line, where the segment begins */
    uint32_t units;  /* of the segment */
    int begin;       /* rows of the walk */
    int end;
    int first_row; /* and of the block */
    int last_row;
    uint32_t depth;
    uint32_t outer;

    __device__ __forceinline__ explicit walker(const resample_walk_args &a)
    {
        uint32_t n = blockIdx.x;
        unit = wd_take_rest(n, a.by_segments) * a.segment;
        units = min(a.segment, a.units - unit);
        const int band = (int)wd_take_rest(n, a.by_bands) * a.walks;
        depth = wd_take_rest(n, a.by_depth);
        outer = n;
        walk = threadIdx.x / a.threads;
        thread = threadIdx.x - walk * a.threads;
        const int out = a.axis[1].out;
        first_row = band * a.rows;
        last_row = min(first_row + a.walks * a.rows, out) - 1;
        begin = min(first_row + (int)walk * a.rows, out);
        end = min(begin + a.rows, out);
    }
};

// ---- What rows need ----

// A row of `out`: of at most two lines first, first + 1, which of them count, and how much; of more,
// the lines first .. end-1.
template <class A> struct __align__(16) walk_row
{
    int first;
    int uses; /* or end */
    A weight[2];
};

template <class A>
__device__ __forceinline__ walk_row<A> *rows_of(const resample_walk_args &a, uint32_t walk)
{
    return wd_dynamic_shared<walk_row<A>>() + walk * (uint32_t)a.rows;
}

template <class A>
__device__ __forceinline__ A *weights_of(const resample_walk_args &a, uint32_t walk)
{
    return reinterpret_cast<A *>(wd_dynamic_shared<unsigned char>() + a.weights_at +
                                 walk * a.weights_size);
}

__device__ __forceinline__ int end_of(const resample_axis &x, const resample_entry &e)
{
    return min(e.first + e.count, x.from);
}

template <class A>
__device__ __forceinline__ void note_rows(const resample_walk_args &a, const walker &w)
{
    const resample_axis &x = a.axis[1];
    walk_row<A> *rows = rows_of<A>(a, w.walk);
    for (int row = w.begin + (int)w.thread; row < w.end; row += (int)a.threads) {
        const resample_entry e = entry_of(x.entries, (uint32_t)row);
        const A *weights = static_cast<const A *>(x.weights) + (size_t)row * x.taps;
        walk_row<A> r;
        r.weight[0] = e.count > 0 ? __ldg(weights) : (A)0;
        r.weight[1] = e.count > 1 ? __ldg(weights + 1) : (A)0;
        r.first = e.first;
        r.uses = (r.weight[0] != 0 ? 1 : 0) | (r.weight[1] != 0 ? 2 : 0);
        rows[row - w.begin] = r;
    }
}

// Where windows are longer: a line's weights for the row in turn, which is the first one that it is not
// behind, and those after it.
template <class A, int ACTIVE>
__device__ __forceinline__ void note_lines(const resample_walk_args &a, const walker &w)
{
    const resample_axis &x = a.axis[1];
    walk_row<A> *rows = rows_of<A>(a, w.walk);
    A *of_lines = weights_of<A>(a, w.walk);
    const int line0 = entry_of(x.entries, (uint32_t)min(w.begin, x.out - 1)).first;
    for (int row = w.begin + (int)w.thread; row < w.end; row += (int)a.threads) {
        const resample_entry e = entry_of(x.entries, (uint32_t)row);
        int line = e.first;
        if (row > w.begin) line = max(line, end_of(x, entry_of(x.entries, (uint32_t)row - 1)));
        walk_row<A> r;
        r.first = line;
        r.uses = end_of(x, e);
        r.weight[0] = r.weight[1] = 0;
        rows[row - w.begin] = r;
        for (; line < r.uses; ++line) {
#pragma unroll 1
            for (int i = 0; i < ACTIVE; ++i) {
                A weight = 0;
                if (row + i < w.end) {
                    const resample_entry other = entry_of(x.entries, (uint32_t)(row + i));
                    if (line >= other.first && line < other.first + other.count) {
                        weight = __ldg(static_cast<const A *>(x.weights) +
                                       (size_t)(row + i) * x.taps + (line - other.first));
                    }
                }
                of_lines[(line - line0) * ACTIVE + i] = weight;
            }
        }
    }
}

// ---- Lines ----

// A run of V channels of a column, straight from memory. TAPS 0: any number, looked up each time.
template <class T, int V, int TAPS> struct direct_line {
    static constexpr int N = V;
    typedef acc<T> A;
    const T *from; /* of the image, the depth and the channel */
    const A *weights;
    A weight[TAPS > 0 ? TAPS : 1];
    int first;
    int count;
    uint32_t inner;
    uint32_t depth_taps;
    size_t pitch;
    size_t plane;
    const A *depth_weights;
    uint32_t at; /* in a line of `out` */

    __device__ __forceinline__ direct_line(const resample_walk_args &a, const walker &w)
    {
        const resample_axis &wide = a.axis[2], &deep = a.axis[0];
        uint32_t column = w.unit + min(w.thread, w.units - 1);
        at = column * V;
        const uint32_t channel = wd_take_rest(column, a.by_run) * V;
        const resample_entry e = entry_of(wide.entries, column);
        first = e.first;
        count = e.count;
        inner = a.inner;
        weights = static_cast<const A *>(wide.weights) + (size_t)column * wide.taps;
        if constexpr (TAPS > 0) {
#pragma unroll
            for (int t = 0; t < TAPS; ++t) {
                weight[t] = 0;
                if (t < e.count) weight[t] = __ldg(weights + t);
            }
        }
        const resample_entry d = entry_of(deep.entries, w.depth);
        depth_taps = (uint32_t)d.count;
        depth_weights = static_cast<const A *>(deep.weights) + (size_t)w.depth * deep.taps;
        pitch = (size_t)wide.from * inner;
        plane = pitch * (uint32_t)a.axis[1].from;
        from = static_cast<const T *>(a.from) + channel + (size_t)first * inner +
               ((size_t)w.outer * (uint32_t)deep.from + (uint32_t)d.first) * plane;
    }

    __device__ __forceinline__ void add(const T *line, A scale, A *sum) const
    {
        if constexpr (TAPS > 0) {
            wd_run<T, V> run[TAPS];
#pragma unroll
            for (int t = 0; t < TAPS; ++t) {
                if (weight[t] != 0) run[t].load(line + (size_t)(t * inner));
            }
#pragma unroll
            for (int t = 0; t < TAPS; ++t) {
                if (weight[t] == 0) continue;
                const A by = weight[t] * scale;
#pragma unroll
                for (int i = 0; i < V; ++i) sum[i] += by * wd_widen(run[t].get(i));
            }
        } else {
#pragma unroll 4
            for (int t = 0; t < count; ++t) {
                const A by = __ldg(weights + t) * scale;
                wd_run<T, V> run;
                run.load(line + (size_t)(t * inner));
#pragma unroll
                for (int i = 0; i < V; ++i) sum[i] += by * wd_widen(run.get(i));
            }
        }
    }

    __device__ __forceinline__ void sums(int line, A *sum) const
    {
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] = 0;
        const T *p = from + (size_t)(uint32_t)line * pitch;
        for (uint32_t z = 0; z < depth_taps; ++z, p += plane) add(p, __ldg(depth_weights + z), sum);
    }

    __device__ __forceinline__ void put(const resample_walk_args &a, const walker &, size_t line,
                                        const A *sum) const
    {
        wd_put_run<T, V>(a, line + at, sum);
    }
};

// Staged lines: what a block has of each, from the 16-byte boundary before it.
struct stage_of {
    int first_line; /* lines first .. last of each depth */
    int last_line;
    int first_column;
    uint32_t length; /* bytes of each */
    size_t row;      /* the line first_line of the first depth, by number */
    uint32_t depth_taps;

    __device__ __forceinline__ stage_of(const resample_walk_args &a, const walker &w, uint32_t size)
    {
        const resample_axis &deep = a.axis[0], &high = a.axis[1], &wide = a.axis[2];
        const resample_entry d = entry_of(deep.entries, w.depth);
        depth_taps = (uint32_t)d.count;
        first_line = entry_of(high.entries, (uint32_t)w.first_row).first;
        last_line = end_of(high, entry_of(high.entries, (uint32_t)w.last_row)) - 1;
        const uint32_t left = wd_fastdiv_quotient(w.unit, a.by_run);
        const uint32_t right = wd_fastdiv_quotient(w.unit + w.units - 1, a.by_run);
        first_column = entry_of(wide.entries, left).first;
        const int end = end_of(wide, entry_of(wide.entries, right));
        length = (uint32_t)max(end - first_column, 0) * a.inner * size;
        row = ((size_t)w.outer * (uint32_t)deep.from + (uint32_t)d.first) * (uint32_t)high.from;
    }
};

template <class T>
__device__ __forceinline__ void stage_lines(const resample_walk_args &a, const stage_of &s)
{
    unsigned char *stage = wd_dynamic_shared<unsigned char>() + a.stage_at;
    const uint32_t lines = (uint32_t)max(s.last_line - s.first_line + 1, 0);
    const uint32_t chunks = a.by_chunks.divisor;
    const uintptr_t begin = (uintptr_t)a.from;
    const uintptr_t end = begin + (size_t)a.total * sizeof(T);
    const size_t pitch = (size_t)(uint32_t)a.axis[2].from * a.inner * sizeof(T);
    const size_t column = (size_t)(uint32_t)s.first_column * a.inner * sizeof(T);
    for (uint32_t z = 0; z < s.depth_taps; ++z) {
        const size_t row = s.row + (size_t)z * (uint32_t)a.axis[1].from + (uint32_t)s.first_line;
        for (uint32_t item = threadIdx.x; item < lines * chunks; item += blockDim.x) {
            uint32_t line = item;
            const uint32_t chunk = wd_take_rest(line, a.by_chunks);
            const uintptr_t first = begin + (row + line) * pitch + column;
            const uintptr_t source = first - first % 16 + 16 * (uintptr_t)chunk;
            if (source >= first + s.length) continue;
            unsigned char *to = stage + (size_t)(z * a.stage_lines + line) * a.pitch + 16 * chunk;
            if (source >= begin && source + 16 <= end) {
                wd_copy_async<16, false>(to, reinterpret_cast<const void *>(source));
            } else { // what lies around the tensor is not read
                for (uint32_t i = 0; i < 16; i += (uint32_t)sizeof(T)) {
                    if (source + i < first || source + i >= first + s.length) continue;
                    *reinterpret_cast<T *>(to + i) = *reinterpret_cast<const T *>(source + i);
                }
            }
        }
    }
    wd_copies_wait_all();
}

// L times P neighbouring places of a line, blocks of threads apart; lines are staged.
template <class T, int L, int P, int TAPS> struct staged_line {
    static constexpr int N = L * P;
    typedef acc<T> A;
    const unsigned char *stage;
    const A *weights[TAPS > 0 ? 1 : N];
    A weight[N][TAPS > 0 ? TAPS : 1];
    uint32_t offset[N]; /* bytes into a line */
    int count[TAPS > 0 ? 1 : N];
    int first_line;
    uint32_t step; /* bytes of a pixel */
    uint32_t pitch;
    uint32_t phase; /* of line 0 of the first depth, as bytes */
    uint32_t line_bytes;
    uint32_t plane_bytes;
    uint32_t plane_pitch;
    uint32_t depth_taps;
    const A *depth_weights;
    uint32_t at;
    uint32_t apart;
    uint32_t places; /* of the segment, from `at` on */

    __device__ __forceinline__ staged_line(const resample_walk_args &a, const walker &w,
                                           const stage_of &s)
    {
        const resample_axis &wide = a.axis[2], &deep = a.axis[0];
        at = w.unit + w.thread * P;
        apart = a.threads * P;
        places = w.thread * P < w.units ? w.units - w.thread * P : 0;
        step = a.inner * (uint32_t)sizeof(T);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            uint32_t column = min(at + (i / P) * apart + i % P, w.unit + w.units - 1);
            const uint32_t channel = wd_take_rest(column, a.by_run);
            const resample_entry e = entry_of(wide.entries, column);
            offset[i] =
                ((uint32_t)(e.first - s.first_column) * a.inner + channel) * (uint32_t)sizeof(T);
            const A *from = static_cast<const A *>(wide.weights) + (size_t)column * wide.taps;
            if constexpr (TAPS > 0) {
#pragma unroll
                for (int t = 0; t < TAPS; ++t) {
                    weight[i][t] = 0;
                    if (t < e.count) weight[i][t] = __ldg(from + t);
                }
            } else {
                weights[i] = from;
                count[i] = e.count;
            }
        }
        const resample_entry d = entry_of(deep.entries, w.depth);
        depth_taps = (uint32_t)d.count;
        depth_weights = static_cast<const A *>(deep.weights) + (size_t)w.depth * deep.taps;
        stage = wd_dynamic_shared<unsigned char>() + a.stage_at;
        first_line = s.first_line;
        pitch = a.pitch;
        line_bytes = (uint32_t)wide.from * step;
        plane_bytes = line_bytes * (uint32_t)a.axis[1].from;
        plane_pitch = a.stage_lines * pitch;
        phase = (uint32_t)(uintptr_t)a.from + (uint32_t)s.row * line_bytes +
                (uint32_t)s.first_column * step;
    }

    __device__ __forceinline__ void sums(int line, A *sum) const
    {
#pragma unroll
        for (int i = 0; i < N; ++i) sum[i] = 0;
        const unsigned char *p = stage + (uint32_t)(line - first_line) * pitch;
        uint32_t shift = phase + (uint32_t)line * line_bytes;
        for (uint32_t z = 0; z < depth_taps; ++z, p += plane_pitch, shift += plane_bytes) {
            const A scale = __ldg(depth_weights + z);
            const unsigned char *q = p + shift % 16;
#pragma unroll
            for (int i = 0; i < N; ++i) {
                const unsigned char *tap = q + offset[i];
                if constexpr (TAPS > 0) {
                    A made = 0;
#pragma unroll
                    for (int t = 0; t < TAPS; ++t) {
                        if (weight[i][t] == 0) continue;
                        made +=
                            weight[i][t] * wd_widen(*reinterpret_cast<const T *>(tap + t * step));
                    }
                    sum[i] += scale * made;
                } else {
                    A made = 0;
#pragma unroll 2
                    for (int t = 0; t < count[i]; ++t, tap += step) {
                        made += __ldg(weights[i] + t) * wd_widen(*reinterpret_cast<const T *>(tap));
                    }
                    sum[i] += scale * made;
                }
            }
        }
    }

    __device__ __forceinline__ void put(const resample_walk_args &a, const walker &, size_t line,
                                        const A *sum) const
    {
#pragma unroll
        for (int l = 0; l < L; ++l) {
            if (l * apart < places) wd_put_run<T, P>(a, line + at + l * apart, sum + l * P);
        }
    }
};

// ---- Walks ----

// At most two lines a row: their sums are kept, so that a line that the next rows need as well is added
// up once.
template <class LINE>
__device__ __forceinline__ void walk_pairs(const resample_walk_args &a, const walker &w,
                                           const LINE &across, size_t line, size_t pitch)
{
    constexpr int N = LINE::N;
    typedef typename LINE::A A;
    const walk_row<A> *rows = rows_of<A>(a, w.walk);
    A upper[N], lower[N];
    int upper_line = -1, lower_line = -1;
#pragma unroll
    for (int i = 0; i < N; ++i) upper[i] = lower[i] = 0;
    for (int row = w.begin; row < w.end; ++row, line += pitch) {
        const walk_row<A> r = *rows++;
        A sum[N];
        if ((r.uses & 1) && upper_line != r.first) {
            if (lower_line == r.first) {
#pragma unroll
                for (int i = 0; i < N; ++i) upper[i] = lower[i];
            } else {
                across.sums(r.first, upper);
            }
            upper_line = r.first;
        }
        if ((r.uses & 2) && lower_line != r.first + 1) {
            lower_line = r.first + 1;
            across.sums(lower_line, lower);
        }
#pragma unroll
        for (int i = 0; i < N; ++i) sum[i] = (r.uses & 1) ? r.weight[0] * upper[i] : (A)0;
        if (r.uses & 2) {
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] += r.weight[1] * lower[i];
        }
        across.put(a, w, line, sum);
    }
}

// Line by line, each added to the rows that it counts for, of which at most ACTIVE are open.
template <class LINE, int ACTIVE>
__device__ __forceinline__ void walk_lines(const resample_walk_args &a, const walker &w,
                                           const LINE &across, size_t line, size_t pitch)
{
    constexpr int N = LINE::N;
    typedef typename LINE::A A;
    const walk_row<A> *rows = rows_of<A>(a, w.walk);
    const A *weight = weights_of<A>(a, w.walk);
    if (w.begin >= w.end) return;
    const int line0 = entry_of(a.axis[1].entries, (uint32_t)w.begin).first;
    A open[ACTIVE][N];
#pragma unroll
    for (int k = 0; k < ACTIVE; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) open[k][i] = 0;
    }
    for (int row = w.begin; row < w.end; ++row, line += pitch) {
        const walk_row<A> r = *rows++;
#pragma unroll 2
        for (int from = r.first; from < r.uses; ++from) {
            A made[N];
            across.sums(from, made);
#pragma unroll
            for (int k = 0; k < ACTIVE; ++k) {
                const A by = weight[(from - line0) * ACTIVE + k];
                if (by == 0) continue;
#pragma unroll
                for (int i = 0; i < N; ++i) open[k][i] += by * made[i];
            }
        }
        across.put(a, w, line, open[0]);
#pragma unroll
        for (int k = 0; k < ACTIVE; ++k) {
#pragma unroll
            for (int i = 0; i < N; ++i)
                open[k][i] = k + 1 < ACTIVE ? open[k + 1 < ACTIVE ? k + 1 : 0][i] : (A)0;
        }
    }
}

// ACTIVE 0: at most two lines a row.
template <class LINE, int ACTIVE>
__device__ __forceinline__ void walk_rows(const resample_walk_args &a, const walker &w,
                                          const LINE &across)
{
    const size_t pitch = (size_t)(uint32_t)a.axis[2].out * a.inner;
    const size_t line =
        (((size_t)w.outer * (uint32_t)a.axis[0].out + w.depth) * (uint32_t)a.axis[1].out +
         (uint32_t)w.begin) *
        pitch;
    if constexpr (ACTIVE == 0) walk_pairs<LINE>(a, w, across, line, pitch);
    else walk_lines<LINE, ACTIVE>(a, w, across, line, pitch);
}

template <class A, int ACTIVE>
__device__ __forceinline__ void note(const resample_walk_args &a, const walker &w)
{
    if constexpr (ACTIVE == 0) note_rows<A>(a, w);
    else note_lines<A, ACTIVE>(a, w);
}

template <class T, int V, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_walk(const resample_walk_args &a)
{
    wd_wait_for_previous();
    const walker w(a);
    note<acc<T>, ACTIVE>(a, w);
    __syncthreads();
    if (w.thread >= w.units || w.begin >= w.end) return;
    const direct_line<T, V, TAPS> across(a, w);
    walk_rows<direct_line<T, V, TAPS>, ACTIVE>(a, w, across);
}

template <class T, int L, int P, int TAPS, int ACTIVE>
__device__ __forceinline__ void resample_walk_staged(const resample_walk_args &a)
{
    typedef staged_line<T, L, P, TAPS> line;
    wd_wait_for_previous();
    const walker w(a);
    const stage_of s(a, w, (uint32_t)sizeof(T));
    stage_lines<T>(a, s);
    note<acc<T>, ACTIVE>(a, w);
    const line across(a, w, s);
    __syncthreads();
    walk_rows<line, ACTIVE>(a, w, across);
}

} // namespace

#endif
