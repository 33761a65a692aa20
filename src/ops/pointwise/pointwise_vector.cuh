// SPDX-License-Identifier: Apache-2.0
//
// Pointwise at the speed of memory: a thread has one run of elements of y at a time and what belongs
// to it of the inputs. All loads are issued before the first is used.
#ifndef WD_OPS_POINTWISE_VECTOR_CUH
#define WD_OPS_POINTWISE_VECTOR_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/pointwise/pointwise_device.cuh"
#include "ops/pointwise/pointwise_vector_args.h"

namespace {

template <class T, class A, int V> struct storage : wd_run<T, V> {
    static constexpr bool typed = true;
    int left; // elements in the first of the two rows of POINTWISE_SPLIT
    __device__ void pick(int i, const pointwise_operand &o, int64_t at)
    {
        this->put(i, static_cast<const T *>(o.data)[at]);
    }
    __device__ void fetch(const pointwise_operand &o, int64_t at)
    {
        this->load(static_cast<const T *>(o.data) + at);
    }
    __device__ A value(int i) const
    {
        return wd_widen(this->get(i));
    }
};

// An element of any type: little code, called from many places.
template <class A> __device__ __noinline__ A load_any(const void *data, int32_t dtype, int64_t at)
{
    if constexpr (sizeof(A) == 8) return wd_load_f64(data, dtype, at);
    else return wd_load_f32(data, dtype, at);
}
template <class A>
__device__ __noinline__ void store_any(void *data, int32_t dtype, int64_t at, A value)
{
    if constexpr (sizeof(A) == 8) wd_store_f64(data, dtype, at, value);
    else wd_store_f32(data, dtype, at, value);
}

template <class A, int V> struct storage<any_type, A, V> {
    static constexpr bool typed = false;
    A element[V];
    int left; // not used: such operands are read element by element
    __device__ void pick(int i, const pointwise_operand &o, int64_t at)
    {
        element[i] = load_any<A>(o.data, o.dtype, at);
    }
    template <class T>
    __device__ __forceinline__ void fetch_as(const pointwise_operand &o, int64_t at)
    {
        wd_run<T, V> run;
        run.load(static_cast<const T *>(o.data) + at);
#pragma unroll
        for (int i = 0; i < V; ++i) element[i] = wd_widen(run.get(i));
    }
    __device__ void fetch(const pointwise_operand &o, int64_t at)
    {
        if (o.dtype == CUDNN_DATA_FLOAT) fetch_as<float>(o, at);
        else if (o.dtype == CUDNN_DATA_HALF) fetch_as<half16>(o, at);
        else if (o.dtype == CUDNN_DATA_BFLOAT16) fetch_as<bfloat16>(o, at);
        else if (o.dtype == CUDNN_DATA_DOUBLE && sizeof(A) == 8) fetch_as<double>(o, at);
        else {
#pragma unroll
            for (int i = 0; i < V; ++i) pick(i, o, at + i);
        }
    }
    __device__ A value(int i) const
    {
        return element[i];
    }
};

// FLAT: all tensors lie as the index counts, which takes less code.
template <bool FLAT, class T, class A, int V>
__device__ __forceinline__ void fetch(storage<T, A, V> &run, const pointwise_vector_args &a,
                                      const pointwise_operand &o, uint32_t first, int lo, int n)
{
    if (o.way == POINTWISE_VALUE) return;
    if (FLAT || o.way == POINTWISE_FLAT) {
        if (n - lo == V) {
            run.fetch(o, first);
            return;
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (i >= lo && i < n) run.pick(i, o, (int64_t)first + i);
        }
    } else if (o.way == POINTWISE_ALONG) {
        run.fetch(o, offset_of(a, o, first));
    } else if (o.way == POINTWISE_REPEAT) {
        run.pick(0, o, offset_of(a, o, first));
    } else if (storage<T, A, V>::typed && o.way == POINTWISE_SPLIT) {
        const uint32_t begin = first + lo - a.skip;
        const uint32_t row = a.dim[a.rank - 1].divisor;
        const uint32_t rest = wd_fastdiv_quotient(begin, a.dim[a.rank - 1]);
        run.left = lo + (int)(row - (begin - rest * row));
        run.pick(0, o, offset_of(a, o, begin));
        if (run.left < n) run.pick(1, o, offset_of(a, o, first + run.left - a.skip));
    } else {
        // along the innermost dimension, and to the next row where one ends
        const uint32_t begin = first + lo - a.skip;
        const uint32_t row = a.dim[a.rank - 1].divisor;
        const int32_t stride = o.stride[a.rank - 1];
        uint32_t left = row - (begin - wd_fastdiv_quotient(begin, a.dim[a.rank - 1]) * row);
        int64_t at = offset_of(a, o, begin);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (i < lo || i >= n) continue;
            run.pick(i, o, at);
            at += stride;
            if (--left == 0 && i + 1 < n) {
                at = offset_of(a, o, first + i + 1 - a.skip);
                left = row;
            }
        }
    }
}

template <class T, class A, int V>
__device__ __forceinline__ void widen(A *to, const storage<T, A, V> &run,
                                      const pointwise_operand &o)
{
    const A factor = (A)o.factor;
    if (o.way == POINTWISE_VALUE || o.way == POINTWISE_REPEAT) {
        const A one = factor * (o.way == POINTWISE_VALUE ? (A)o.value : run.value(0));
#pragma unroll
        for (int i = 0; i < V; ++i) to[i] = one;
        return;
    }
    if (storage<T, A, V>::typed && o.way == POINTWISE_SPLIT) {
        const A one = factor * run.value(0), next = factor * run.value(1);
#pragma unroll
        for (int i = 0; i < V; ++i) to[i] = i < run.left ? one : next;
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) to[i] = factor * run.value(i);
}

// x[i] = MODE(x[i], b[i], t[i]), the mode known to the compiler.
template <int MODE, int V, class A>
__device__ __forceinline__ void each(const pointwise_vector_args &a, A *x, const A *b, const A *t,
                                     bool has_t)
{
    wd_pointwise_attr attr = a.attr;
    attr.mode = MODE;
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = value_of(&attr, x[i], b[i], t[i], has_t);
}

template <class T, class A>
__device__ __forceinline__ void store_one(const pointwise_operand &y, int64_t at, A value)
{
    if constexpr (storage<T, A, 1>::typed) {
        wd_narrow(static_cast<T *>(y.data)[at], value);
    } else {
        store_any<A>(y.data, y.dtype, at, value);
    }
}

template <class T, class A, int V>
__device__ __forceinline__ void put_run(const pointwise_vector_args &a, int64_t at, const A *value)
{
    T *to = static_cast<T *>(a.operand[POINTWISE_Y].data) + at;
    wd_run<T, V> run;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        T element;
        if constexpr (sizeof(T) == 8) wd_narrow(element, (double)value[i]);
        else wd_narrow(element, (float)value[i]);
        run.put(i, element);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

template <bool FLAT, class T, class A, int V>
__device__ __forceinline__ void put(const pointwise_vector_args &a, uint32_t first, int lo, int n,
                                    const A *value)
{
    const pointwise_operand &y = a.operand[POINTWISE_Y];
    if (((FLAT || y.way == POINTWISE_FLAT) && n - lo == V) || (!FLAT && y.way == POINTWISE_ALONG)) {
        const int64_t at =
            FLAT || y.way == POINTWISE_FLAT ? (int64_t)first : offset_of(a, y, first);
        if constexpr (storage<T, A, V>::typed) {
            put_run<T, A, V>(a, at, value);
            return;
        } else {
            if (y.dtype == CUDNN_DATA_FLOAT) {
                put_run<float, A, V>(a, at, value);
                return;
            }
            if (y.dtype == CUDNN_DATA_DOUBLE && sizeof(A) == 8) {
                put_run<double, A, V>(a, at, value);
                return;
            }
            if (y.dtype == CUDNN_DATA_HALF && sizeof(A) == 4) {
                put_run<half16, A, V>(a, at, value);
                return;
            }
            if (y.dtype == CUDNN_DATA_BFLOAT16 && sizeof(A) == 4) {
                put_run<bfloat16, A, V>(a, at, value);
                return;
            }
        }
    }
    if (FLAT || y.way == POINTWISE_FLAT) { // ends, and what is shifted
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (i >= lo && i < n) store_one<T, A>(y, (int64_t)first + i, value[i]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
        if (i < n) store_one<T, A>(y, offset_of(a, y, first + i), value[i]);
    }
}

// The runs of a block's threads, one and then those a grid further: `apply` makes results of x, b, t.
template <bool FLAT, class T, class A, int V, int INPUTS, class F>
__device__ __forceinline__ void pointwise_walk(const pointwise_vector_args &a, F apply)
{
    const bool blends = a.operand[POINTWISE_Y].factor != 0.0;
    const pointwise_operand *in = a.operand;
    const A alpha = (A)a.alpha;
    const uint32_t step = gridDim.x * blockDim.x * V;
    wd_wait_for_previous();
    for (uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) * V; first < a.count;
         first += step) {
        const int n = a.count - first < V ? (int)(a.count - first) : V;
        const int lo = first < a.skip ? (int)(a.skip - first) : 0;
        storage<T, A, V> x, b, t, old;
        A value[V], second[V], third[V];
        fetch<FLAT>(x, a, in[POINTWISE_X], first, lo, n);
        if (INPUTS > 1) fetch<FLAT>(b, a, in[POINTWISE_B], first, lo, n);
        if (INPUTS > 2) fetch<FLAT>(t, a, in[POINTWISE_T], first, lo, n);
        if (blends) fetch<FLAT>(old, a, in[POINTWISE_Y], first, lo, n);
        widen(value, x, in[POINTWISE_X]);
        if (INPUTS > 1) widen(second, b, in[POINTWISE_B]);
        if (INPUTS > 2) widen(third, t, in[POINTWISE_T]);
        apply(value, second, third);
        if (alpha != (A)1) {
#pragma unroll
            for (int i = 0; i < V; ++i) value[i] = alpha != 0 ? alpha * value[i] : (A)0;
        }
        if (blends) {
            A beta_y[V];
            widen(beta_y, old, in[POINTWISE_Y]);
#pragma unroll
            for (int i = 0; i < V; ++i) value[i] += beta_y[i];
        }
        put<FLAT, T, A, V>(a, first, lo, n, value);
    }
}

// Modes that read INPUTS operands, chosen once a run.
template <class T, class A, int V, int INPUTS, bool FLAT = false>
__device__ __forceinline__ void pointwise_vector(const pointwise_vector_args &a)
{
    pointwise_walk<FLAT, T, A, V, INPUTS>(a, [&](A *x, const A *b, const A *t) {
        if (INPUTS == 3) {
            each<CUDNN_POINTWISE_BINARY_SELECT, V>(a, x, b, t, true);
        } else if (INPUTS == 2 && a.by_output) {
            switch (a.attr.mode) {
#define WD_BY_OUTPUT(mode)                                                                         \
    case mode:                                                                                     \
        each<mode, V>(a, x, b, x, true);                                                           \
        break;
#include "ops/pointwise/pointwise_modes.def"
            default: break;
            }
        } else if (INPUTS == 2) {
            switch (a.attr.mode) {
#define WD_BINARY(mode)                                                                            \
    case mode:                                                                                     \
        each<mode, V>(a, x, b, x, false);                                                          \
        break;
#include "ops/pointwise/pointwise_modes.def"
            default: break;
            }
        } else {
            switch (a.attr.mode) {
#define WD_UNARY(mode)                                                                             \
    case mode:                                                                                     \
        each<mode, V>(a, x, x, x, false);                                                          \
        break;
#include "ops/pointwise/pointwise_modes.def"
            default: break;
            }
        }
    });
}

// One number everywhere: nothing is read, and whole sectors are written at once.
template <class T, int V>
__device__ __forceinline__ void pointwise_fill(const pointwise_vector_args &a)
{
    pointwise_walk<false, T, float, V, 1>(a, [&](float *x, const float *, const float *) {
        each<CUDNN_POINTWISE_IDENTITY, V>(a, x, x, x, false);
    });
}

} // namespace

#endif
