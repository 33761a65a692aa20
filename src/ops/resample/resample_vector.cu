// SPDX-License-Identifier: Apache-2.0
//
// Resampling straight from memory: tables of what counts along each axis, weighted sums by them,
// forward and backward alike, and maxima with their places. A thread has a run of channels of a pixel,
// or a run of columns. No atomics: how an output is added up depends on shape and alignment alone.
#include "ops/resample/resample_vector.cuh"
#include "ops/resample/resample_lines.cuh"
#include "ops/resample/resample_planes.cuh"
#include "ops/resample/resample_threes.cuh"

namespace {

// ---- Tables ----

__device__ __forceinline__ void put_weight(const resample_tables_args &a, const resample_table &t,
                                           int64_t entry, int64_t tap, double weight)
{
    const int64_t at = entry * t.taps + tap;
    if (a.wide) static_cast<double *>(t.weights)[at] = weight;
    else static_cast<float *>(t.weights)[at] = (float)weight;
}

// What pixel k gets of window o, or hands to it.
__device__ __forceinline__ double weight_of(const resample_tables_args &a, const resample_table &t,
                                            int64_t o, int64_t k)
{
    int64_t first, last;
    resample_span(&a.attr, t.axis, t.image, o, k, &first, &last);
    if (last <= first) return 0.0;
    return (double)resample_weights(&a.attr, t.axis, o, first, last) /
           (double)resample_norm(&a.attr, t.axis, t.image, o);
}

__device__ __forceinline__ void fill_entry(const resample_tables_args &a, const resample_table &t,
                                           int64_t i)
{
    int64_t low = 0, high = 1;
    if (t.axis >= 0 && (t.kind == RESAMPLE_PIXELS || t.kind == RESAMPLE_RANGES)) {
        resample_range(&a.attr, t.axis, i, &low, &high);
        if (t.kind == RESAMPLE_PIXELS) resample_clip(&a.attr, t.image, &low, &high);
    } else if (t.axis >= 0) {
        resample_over(&a.attr, t.axis, t.image, t.windows, i, &low, &high);
    }
    if (high < low) high = low;
    t.entries[i].first = (int32_t)low;
    t.entries[i].count = (int32_t)(high - low);
    const bool pixels = t.kind == RESAMPLE_PIXELS;
#pragma unroll 1
    for (int64_t k = 0; k < t.taps; ++k) {
        double weight = 0.0;
        if (low + k < high) {
            // of a window and a pixel
            const int64_t o = pixels ? i : low + k, of = pixels ? low + k : i;
            weight = t.axis < 0 ? 1.0 : weight_of(a, t, o, of);
        }
        put_weight(a, t, i, k, weight);
    }
}

__device__ __forceinline__ void resample_tables(const resample_tables_args &a)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    wd_wait_for_previous();
    for (int t = 0; t < a.tables; ++t) {
        if (i < a.table[t].length) {
            fill_entry(a, a.table[t], i);
            return;
        }
        i -= a.table[t].length;
    }
}

// ---- Weighted sums ----

// At most TAPS taps of a column, their weights in registers; one of 0 is no tap, so that nothing is read there.
template <class T, int TAPS> struct columns {
    acc<T> weight[TAPS];
    uint32_t first;

    __device__ __forceinline__ columns(const resample_axis &x, uint32_t column)
    {
        const resample_entry entry = entry_of(x.entries, column);
        const acc<T> *weights = static_cast<const acc<T> *>(x.weights) + (size_t)column * x.taps;
        first = (uint32_t)entry.first;
#pragma unroll
        for (int t = 0; t < TAPS; ++t) weight[t] = t < entry.count ? __ldg(weights + t) : (acc<T>)0;
    }

    template <int V>
    __device__ __forceinline__ void sums(const T *line, uint32_t inner, acc<T> *sum) const
    {
        wd_run<T, V> run[TAPS];
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            if (weight[t] != 0) run[t].load(line + (size_t)(first + t) * inner);
        }
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] = 0;
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            if (weight[t] == 0) continue;
#pragma unroll
            for (int i = 0; i < V; ++i) sum[i] += weight[t] * wd_widen(run[t].get(i));
        }
    }
};

// Any number of taps, their weights read again for every line.
template <class T> struct columns<T, 0> {
    const acc<T> *weight;
    resample_entry entry;

    __device__ __forceinline__ columns(const resample_axis &x, uint32_t column)
        : weight(static_cast<const acc<T> *>(x.weights) + (size_t)column * x.taps),
          entry(entry_of(x.entries, column))
    {
    }

    template <int V>
    __device__ __forceinline__ void sums(const T *line, uint32_t inner, acc<T> *sum) const
    {
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] = 0;
#pragma unroll 2
        for (int t = 0; t < entry.count; ++t) {
            const acc<T> w = __ldg(weight + t);
            wd_run<T, V> run;
            run.load(line + (size_t)(entry.first + t) * inner);
#pragma unroll
            for (int i = 0; i < V; ++i) sum[i] += w * wd_widen(run.get(i));
        }
    }
};

// The sums of the last line with an even number and of the last with an odd one: neighbouring rows of
// `out` share most of theirs.
template <class A, int V> struct lines {
    A even[V];
    A odd[V];
    int even_line;
    int odd_line;

    __device__ __forceinline__ lines() : even_line(-1), odd_line(-1)
    {
    }
    template <class F> __device__ __forceinline__ void add(A *sum, A weight, int line, F make)
    {
        const bool is_odd = line & 1;
        if ((is_odd ? odd_line : even_line) != line) {
            A made[V];
            make(made);
#pragma unroll
            for (int i = 0; i < V; ++i) {
                odd[i] = is_odd ? made[i] : odd[i];
                even[i] = is_odd ? even[i] : made[i];
            }
            odd_line = is_odd ? line : odd_line;
            even_line = is_odd ? even_line : line;
        }
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] += weight * (is_odd ? odd[i] : even[i]);
    }
};

// V channels of a column, of a few rows.
template <class T, int V, int TAPS>
__device__ __forceinline__ void resample_sum(const resample_sum_args &a)
{
    typedef acc<T> A;
    wd_wait_for_previous();
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t channel = wd_take_rest(n, a.by_run) * V;
    const uint32_t column = wd_take_rest(n, a.by_column);
    const int begin = (int)wd_take_rest(n, a.by_rows) * a.rows;
    const int end = min(begin + a.rows, a.axis[1].out);
    const uint32_t d = wd_take_rest(n, a.by_depth);
    const resample_axis &deep = a.axis[0], &high = a.axis[1], &wide = a.axis[2];
    const resample_entry depth = entry_of(deep.entries, d);
    const A *depth_weight = static_cast<const A *>(deep.weights) + (size_t)d * deep.taps;
    const size_t pitch = (size_t)wide.from * a.inner;
    const T *from = static_cast<const T *>(a.from) + channel +
                    (size_t)n * (uint32_t)(deep.from * high.from) * pitch;
    const columns<T, TAPS> across(wide, column);
    lines<A, V> kept;
    for (int row = begin; row < end; ++row) {
        const resample_entry down = entry_of(high.entries, (uint32_t)row);
        const A *row_weight = static_cast<const A *>(high.weights) + (size_t)row * high.taps;
        A sum[V];
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] = 0;
        for (int i = 0; i < depth.count; ++i) {
            const A of_depth = __ldg(depth_weight + i);
            for (int j = 0; j < down.count; ++j) {
                const int line = (depth.first + i) * high.from + down.first + j;
                kept.add(sum, of_depth * __ldg(row_weight + j), line, [&](A *made) {
                    across.template sums<V>(from + (uint32_t)line * pitch, a.inner, made);
                });
            }
        }
        const size_t line = ((size_t)n * (uint32_t)deep.out + d) * (uint32_t)high.out + row;
        wd_put_run<T, V>(a, (line * (uint32_t)wide.out + column) * a.inner + channel, sum);
    }
}

// ---- Maxima ----

// A window along an axis: its range, and what lies in the image.
struct reach {
    int low;
    int extent;
    int from;
    int to;
    __device__ __forceinline__ reach(const resample_max_args &a, int axis, uint32_t window)
    {
        const resample_entry range = entry_of(a.axis[axis].ranges, window);
        const int image = a.axis[axis].image;
        low = range.first;
        extent = range.count;
        from = max(low, 0);
        to = min(low + extent, image);
        if (a.repeats && extent > 0) {
            from = min(from, image - 1);
            to = max(to, 1);
        }
    }
    // The place along the axis, of the first pixel that pixel k stands for.
    __device__ __forceinline__ int place(const resample_max_args &a, int k) const
    {
        return a.repeats && k == 0 ? 0 : max(k - low, 0);
    }
};

template <class T, int V> __device__ __forceinline__ void resample_max(const resample_max_args &a)
{
    typedef acc<T> A;
    wd_wait_for_previous();
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t channel = wd_take_rest(n, a.by_run) * V;
    const reach w(a, 2, wd_take_rest(n, a.by_column));
    const reach h(a, 1, wd_take_rest(n, a.by_row));
    const reach d(a, 0, wd_take_rest(n, a.by_depth));
    const uint32_t high = (uint32_t)a.axis[1].image, wide = (uint32_t)a.axis[2].image;
    const size_t image = (size_t)n * (uint32_t)a.axis[0].image;
    const T *x = static_cast<const T *>(a.from) + channel;
    int outside = -1;
    if (a.zeros) {
        const int64_t size[] = {a.axis[0].image, a.axis[1].image, a.axis[2].image};
        const int64_t low[] = {d.low, h.low, w.low};
        const int64_t above[] = {d.low + d.extent, h.low + h.extent, w.low + w.extent};
        outside = (int)resample_first_outside(RESAMPLE_AXES, size, low, above);
    }
    largest<A> t[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        t[i].value = 0;
        t[i].place = -1;
    }
    for (int z = d.from; z < d.to; ++z) {
        for (int r = h.from; r < h.to; ++r) {
            const T *line = x + ((image + z) * high + r) * wide * a.inner;
            const int place = (d.place(a, z) * h.extent + h.place(a, r)) * w.extent;
#pragma unroll 1
            for (int c = w.from; c < w.to; ++c) {
                wd_run<T, V> run;
                run.load(line + (size_t)c * a.inner);
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    t[i].offer(a.propagate, wd_widen(run.get(i)), place + w.place(a, c));
                }
            }
        }
    }
    if (outside >= 0) {
#pragma unroll
        for (int i = 0; i < V; ++i) t[i].offer(a.propagate, (A)0, outside);
    }
    A value[V];
    int32_t place[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        value[i] = t[i].place < 0 ? (A)__uint_as_float(0xff800000u) : t[i].value;
        place[i] = max(t[i].place, 0);
    }
    if (a.out) wd_put_run<T, V>(a, (size_t)item * V, value);
    if (a.places) store_places<V>(a.places, a.place_size, (size_t)item * V, place);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_vector_kernels.def"
#include "ops/kernels_device.inc"
