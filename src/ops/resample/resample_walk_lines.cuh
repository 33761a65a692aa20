// SPDX-License-Identifier: Apache-2.0
//
// Lines of walks: a thread's part of one, added up along the line. They are read by runs of channels
// straight from memory, or staged by 16 bytes, at whatever alignment.
#ifndef WD_OPS_RESAMPLE_WALK_LINES_CUH
#define WD_OPS_RESAMPLE_WALK_LINES_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/warp.cuh"
#include "ops/resample/resample_taps.cuh"

namespace {

// What is in weights by now is scaled.
template <class T, int V, class A>
__device__ __forceinline__ void put_sum(const resample_walk_args &a, T *to, const A *sum)
{
    wd_run<T, V> run;
    A value[V];
#pragma unroll
    for (int i = 0; i < V; ++i) value[i] = sum[i];
    if (a.blends) {
        const A beta = (A)a.beta;
        wd_run<T, V> old;
        old.load(to);
#pragma unroll
        for (int i = 0; i < V; ++i) value[i] += beta * wd_widen(old.get(i));
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        T narrow;
        wd_narrow(narrow, value[i]);
        run.put(i, narrow);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

// A run of V channels of a column, straight from memory. TAPS 0: any number, looked up each time.
template <class T, int V, int TAPS> struct direct_line {
    static constexpr int N = V;
    static constexpr bool AHEAD = TAPS > 0 && TAPS <= 4; /* registers */
    typedef T type;
    typedef acc<T> A;
    struct raw {
        wd_run<T, V> run[TAPS > 0 ? TAPS : 1];
    };
    const resample_walk_args &a;
    const T *from; /* of the image, the depth and the channel */
    uint32_t column;
    int count;
    A weight[TAPS > 0 ? TAPS : 1];
    uint32_t pitch;
    uint32_t plane;
    uint32_t depth;
    int depths;
    uint32_t at; /* in a line of `out` */

    __device__ __forceinline__ direct_line(const resample_walk_args &args, const walker &w,
                                           uint32_t of_column, uint32_t channel)
        : a(args), column(of_column), depth(w.depth)
    {
        const taps_of<A> across(a, 2, column), deep(a, 0, depth);
        count = across.count;
        depths = deep.count;
        if constexpr (TAPS > 0) {
#pragma unroll
            for (int t = 0; t < TAPS; ++t) weight[t] = t < count ? across.weight(a, 2, t) : (A)0;
        }
        at = column * a.inner + channel;
        pitch = (uint32_t)a.axis[2].from * a.inner;
        plane = pitch * (uint32_t)a.axis[1].from;
        from = static_cast<const T *>(a.from) + channel + (size_t)(uint32_t)across.first * a.inner +
               ((size_t)w.outer * (uint32_t)a.axis[0].from + (uint32_t)deep.first) * plane;
    }

    __device__ __forceinline__ void fetch(const T *line, raw &r) const
    {
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            if (t < count) r.run[t].load(line + (uint32_t)t * a.inner);
        }
    }
    __device__ __forceinline__ void fetch(int line, raw &r) const
    {
        fetch(from + (uint32_t)line * pitch, r);
    }

    __device__ __forceinline__ void reduce(const raw &r, A *sum) const
    {
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] = 0;
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            if (t >= count) continue;
#pragma unroll
            for (int i = 0; i < V; ++i) sum[i] += weight[t] * wd_widen(r.run[t].get(i));
        }
    }

    __device__ __forceinline__ bool is_deep() const
    {
        return depths != 1;
    }
    __device__ __forceinline__ bool is_idle(int) const
    {
        return false;
    }

    __device__ __forceinline__ void one(const T *line, A *sum) const
    {
        if constexpr (AHEAD) {
            raw r;
            fetch(line, r);
            reduce(r, sum);
        } else if constexpr (TAPS > 0) {
#pragma unroll
            for (int i = 0; i < V; ++i) sum[i] = 0;
                // by four, for want of registers
#pragma unroll
            for (int begin = 0; begin < TAPS; begin += 4) {
                wd_run<T, V> run[4];
#pragma unroll
                for (int t = 0; t < 4; ++t) {
                    if (begin + t < count) run[t].load(line + (uint32_t)(begin + t) * a.inner);
                }
#pragma unroll
                for (int t = 0; t < 4; ++t) {
                    if (begin + t >= count) continue;
#pragma unroll
                    for (int i = 0; i < V; ++i)
                        sum[i] += weight[begin + t] * wd_widen(run[t].get(i));
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < V; ++i) sum[i] = 0;
            const taps_of<A> across(a, 2, column);
#pragma unroll 4
            for (int t = 0; t < count; ++t) {
                const A by = across.weight(a, 2, t);
                wd_run<T, V> run;
                run.load(line + (uint32_t)t * a.inner);
#pragma unroll
                for (int i = 0; i < V; ++i) sum[i] += by * wd_widen(run.get(i));
            }
        }
    }

    __device__ __forceinline__ void sums(int line, A *sum) const
    {
        const T *p = from + (uint32_t)line * pitch;
        if (!AHEAD && !is_deep()) {
            one(p, sum);
            return;
        }
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] = 0;
        const taps_of<A> deep(a, 0, depth);
        for (int z = 0; z < depths; ++z, p += plane) {
            const A scale = deep.weight(a, 0, z);
            A made[V];
            one(p, made);
#pragma unroll
            for (int i = 0; i < V; ++i) sum[i] += scale * made[i];
        }
    }

    __device__ __forceinline__ void put(T *line, const A *sum) const
    {
        put_sum<T, V>(a, line + at, sum);
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

    template <class A>
    __device__ __forceinline__ void set(const resample_walk_args &a, const walker &w, uint32_t size)
    {
        const taps_of<A> d(a, 0, w.depth);
        depth_taps = (uint32_t)d.count;
        first_line = taps_of<A>(a, 1, (uint32_t)w.first_row).first;
        last_line = taps_of<A>(a, 1, (uint32_t)w.last_row).end(a, 1) - 1;
        const uint32_t left = wd_fastdiv_quotient(w.unit, a.by_run);
        const uint32_t right = wd_fastdiv_quotient(w.unit + w.units - 1, a.by_run);
        first_column = taps_of<A>(a, 2, left).first;
        const int end = taps_of<A>(a, 2, right).end(a, 2);
        length = (uint32_t)max(end - first_column, 0) * a.inner * size;
        row = ((size_t)w.outer * (uint32_t)a.axis[0].from + (uint32_t)d.first) *
              (uint32_t)a.axis[1].from;
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

// N places of a line, a walk's threads apart; lines are staged.
template <class T, int PLACES, int TAPS> struct staged_line {
    static constexpr int N = PLACES;
    static constexpr bool AHEAD = false;
    typedef T type;
    typedef acc<T> A;
    struct raw {};
    const resample_walk_args &a;
    const unsigned char *stage;
    taps_of<A> deep;
    A weight[N][TAPS > 0 ? TAPS : 1];
    uint32_t offset[N][TAPS == 2 ? 2 : 1]; /* bytes into a line */
    const A *weights[TAPS > 0 ? 1 : N];
    int count[TAPS > 0 ? 1 : N];
    int first_line;
    uint32_t step;  /* bytes of a pixel */
    uint32_t phase; /* of line 0 of the first depth, as bytes */
    uint32_t line_bytes;
    uint32_t plane_bytes;
    uint32_t at;
    uint32_t apart;
    uint32_t places; /* of the segment, from `at` on */
    uint32_t units;  /* of the segment */
    uint32_t empty;  /* places without a tap, as bits */
    bool any_empty;  /* of a place of the warp */
    int sure;        /* taps of which no place of the warp has a weight of 0 */

    // PLANES: places may go on in other planes, whose lines lie a.pitch behind one another.
    template <class PLANES>
    __device__ __forceinline__ staged_line(const resample_walk_args &args, const walker &w,
                                           const stage_of &s, const PLANES &plane_of)
        : a(args), deep(args, 0, w.depth)
    {
        at = w.unit + w.thread;
        apart = a.threads;
        places = w.thread < w.units ? w.units - w.thread : 0;
        units = w.units;
        step = a.inner * (uint32_t)sizeof(T);
        empty = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            offset[i][0] = 0;
            if (is_idle(i)) continue;
            uint32_t c = min(at + i * apart, w.unit + w.units - 1);
            const uint32_t plane = plane_of(c);
            const uint32_t channel = wd_take_rest(c, a.by_run);
            const taps_of<A> e(a, 2, c);
            const uint32_t first =
                ((uint32_t)(e.first - s.first_column) * a.inner + channel) * (uint32_t)sizeof(T) +
                plane * a.pitch;
            if (e.count <= 0) empty |= 1u << i;
            if constexpr (TAPS == 2) {
                // of one alone both are halves: a weight of 0 would make NaN of what is infinite
                weight[i][0] = e.count > 0 ? e.weight(a, 2, 0) : (A)0;
                if (e.count < 2) weight[i][0] *= (A)0.5;
                weight[i][1] = e.count < 2 ? weight[i][0] : e.weight(a, 2, 1);
                offset[i][0] = e.count > 0 ? first : 0;
                offset[i][1] = offset[i][0] + (e.count > 1 ? step : 0);
            } else if constexpr (TAPS > 0) {
                offset[i][0] = first;
#pragma unroll
                for (int t = 0; t < TAPS; ++t) {
                    weight[i][t] = t < e.count ? e.weight(a, 2, t) : (A)0;
                }
            } else {
                offset[i][0] = first;
                weights[i] = e.weights;
                count[i] = e.count;
            }
        }
        any_empty = wd_ballot(empty != 0) != 0;
        sure = 0;
        if constexpr (TAPS > 2) {
            bool zero = false;
#pragma unroll
            for (int t = 0; t < TAPS; ++t) {
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    if (!is_idle(i)) zero = zero || weight[i][t] == 0;
                }
                if (wd_ballot(zero) == 0) sure = t + 1;
            }
        }
        stage = wd_dynamic_shared<unsigned char>() + a.stage_at;
        first_line = s.first_line;
        line_bytes = (uint32_t)a.axis[2].from * step;
        plane_bytes = line_bytes * (uint32_t)a.axis[1].from;
        phase = (uint32_t)(uintptr_t)a.from + (uint32_t)s.row * line_bytes +
                (uint32_t)s.first_column * step;
    }

    __device__ __forceinline__ void fetch(int, raw &) const
    {
    }
    __device__ __forceinline__ void reduce(const raw &, A *) const
    {
    }
    __device__ __forceinline__ bool is_deep() const
    {
        return deep.count != 1;
    }
    // Of many places a short line has no more than its own, by fours: no thread has place i.
    __device__ __forceinline__ bool is_idle(int i) const
    {
        return N > 4 && i / 4 * 4 * apart >= units;
    }

    // As many taps as any window has, of which the first `sure` count for all places of the warp.
    __device__ __forceinline__ void add_taps(uint32_t line, A *sum) const
    {
#pragma unroll
        for (int i = 0; i < N; ++i) sum[i] = 0;
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            if (t >= a.axis[2].taps) break;
            const uint32_t tap = line + t * step;
            if (t < sure) {
#pragma unroll
                for (int i = 0; i < N; ++i) {
                    if (is_idle(i)) break;
                    const T v = *reinterpret_cast<const T *>(stage + (tap + offset[i][0]));
                    sum[i] += weight[i][t] * wd_widen(v);
                }
                continue;
            }
#pragma unroll
            for (int i = 0; i < N; ++i) {
                if (is_idle(i)) break;
                if (weight[i][t] == 0) continue;
                const T v = *reinterpret_cast<const T *>(stage + (tap + offset[i][0]));
                sum[i] += weight[i][t] * wd_widen(v);
            }
        }
    }

    // `line`: bytes from `stage` on
    __device__ __forceinline__ void add(uint32_t line, A *sum) const
    {
        if constexpr (TAPS > 2) {
            add_taps(line, sum);
            return;
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            A made = 0;
            if (is_idle(i)) {
                sum[i] = 0;
                continue;
            }
            if constexpr (TAPS == 2) {
#pragma unroll
                for (int t = 0; t < TAPS; ++t) {
                    const T v = *reinterpret_cast<const T *>(stage + (line + offset[i][t]));
                    made += weight[i][t] * wd_widen(v);
                }
            } else {
                const unsigned char *tap = stage + (line + offset[i][0]);
#pragma unroll 2
                for (int t = 0; t < count[i]; ++t, tap += step) {
                    made += __ldg(weights[i] + t) * wd_widen(*reinterpret_cast<const T *>(tap));
                }
            }
            sum[i] = made;
        }
    }

    __device__ __forceinline__ void sums(int line, A *sum) const
    {
        uint32_t p = (uint32_t)(line - first_line) * a.pitch;
        uint32_t shift = phase + (uint32_t)line * line_bytes;
        if (!is_deep()) {
            add(p + shift % 16, sum);
            return;
        }
#pragma unroll
        for (int i = 0; i < N; ++i) sum[i] = 0;
        for (int z = 0; z < deep.count; ++z, p += a.stage_lines * a.pitch, shift += plane_bytes) {
            const A scale = deep.weight(a, 0, z);
            A made[N];
            add(p + shift % 16, made);
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] += scale * made[i];
        }
    }

    __device__ __forceinline__ void clear_empty(A *sum) const
    {
        if (TAPS == 2 && any_empty) {
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] = empty >> i & 1 ? (A)0 : sum[i];
        }
    }

    __device__ __forceinline__ void put(T *line, A *sum) const
    {
        clear_empty(sum);
#pragma unroll
        for (int l = 0; l < N; ++l) {
            if (l * apart < places) put_sum<T, 1>(a, line + at + l * apart, sum + l);
        }
    }
};

} // namespace

#endif
