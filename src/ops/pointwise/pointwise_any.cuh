// SPDX-License-Identifier: Apache-2.0
//
// Pointwise on any mixture of types and any strides, computed in A: the last of the kernels, with
// little code. Runs of elements are in local memory, loops over them are not unrolled, and each
// formula is there once.
#ifndef WD_OPS_POINTWISE_ANY_CUH
#define WD_OPS_POINTWISE_ANY_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/pointwise/pointwise_device.cuh"

namespace {

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

template <class T, class A, int V>
__device__ __forceinline__ void fetch_run(A *to, const void *data, int64_t at, A factor)
{
    wd_run<T, V> run;
    run.load(static_cast<const T *>(data) + at);
#pragma unroll
    for (int i = 0; i < V; ++i) to[i] = factor * wd_widen(run.get(i));
}

// Elements lo to n - 1 of the run at `first`, times the operand's factor.
template <class A, int V>
__device__ __noinline__ void fetch_any(A *to, const pointwise_vector_args &a,
                                       const pointwise_operand &o, uint32_t first, int lo, int n)
{
    const A factor = (A)o.factor;
    const bool flat = o.way == POINTWISE_FLAT;
    if ((flat && n - lo == V) || o.way == POINTWISE_ALONG) {
        const int64_t at = flat ? (int64_t)first : offset_of(a, o, first);
        if (o.dtype == CUDNN_DATA_FLOAT) return fetch_run<float, A, V>(to, o.data, at, factor);
        if (o.dtype == CUDNN_DATA_HALF) return fetch_run<half16, A, V>(to, o.data, at, factor);
        if (o.dtype == CUDNN_DATA_BFLOAT16) {
            return fetch_run<bfloat16, A, V>(to, o.data, at, factor);
        }
        if constexpr (sizeof(A) == 8) {
            if (o.dtype == CUDNN_DATA_DOUBLE) {
                return fetch_run<double, A, V>(to, o.data, at, factor);
            }
        }
    }
    if (o.way == POINTWISE_VALUE) {
#pragma unroll 1
        for (int i = lo; i < n; ++i) to[i] = factor * (A)o.value;
        return;
    }
    // along the innermost dimension, and to the next row where one ends
    const uint32_t begin = first + lo - a.skip;
    const uint32_t row = a.dim[a.rank - 1].divisor;
    const int64_t stride = flat ? 1 : o.stride[a.rank - 1];
    uint32_t left = row - (begin - wd_fastdiv_quotient(begin, a.dim[a.rank - 1]) * row);
    int64_t at = flat ? (int64_t)first + lo : offset_of(a, o, begin);
#pragma unroll 1
    for (int i = lo; i < n; ++i) {
        to[i] = factor * load_any<A>(o.data, o.dtype, at);
        at += stride;
        if (--left == 0 && !flat && i + 1 < n) {
            at = offset_of(a, o, first + i + 1 - a.skip);
            left = row;
        }
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

template <class A, int V>
__device__ __noinline__ void put_any(const pointwise_vector_args &a, uint32_t first, int lo, int n,
                                     const A *value)
{
    const pointwise_operand &y = a.operand[POINTWISE_Y];
    const bool flat = y.way == POINTWISE_FLAT;
    if ((flat && n - lo == V) || y.way == POINTWISE_ALONG) {
        const int64_t at = flat ? (int64_t)first : offset_of(a, y, first);
        if (y.dtype == CUDNN_DATA_FLOAT) return put_run<float, A, V>(a, at, value);
        if constexpr (sizeof(A) == 8) { // others of two roundings, by store_any
            if (y.dtype == CUDNN_DATA_DOUBLE) return put_run<double, A, V>(a, at, value);
        } else {
            if (y.dtype == CUDNN_DATA_HALF) return put_run<half16, A, V>(a, at, value);
            if (y.dtype == CUDNN_DATA_BFLOAT16) return put_run<bfloat16, A, V>(a, at, value);
        }
    }
#pragma unroll 1
    for (int i = lo; i < n; ++i) {
        const int64_t at = flat ? (int64_t)first + i : offset_of(a, y, first + i - a.skip);
        store_any<A>(y.data, y.dtype, at, value[i]);
    }
}

// x[i] = MODE(x[i], b[i], t[i]), the mode known to the compiler.
template <int MODE, class A>
__device__ __forceinline__ void each_any(const pointwise_vector_args &a, A *x, const A *b,
                                         const A *t, bool has_t, int lo, int n)
{
    wd_pointwise_attr attr = a.attr;
    attr.mode = MODE;
#pragma unroll 1
    for (int i = lo; i < n; ++i) x[i] = value_of(&attr, x[i], b[i], t[i], has_t);
}

template <class A>
__device__ __noinline__ void apply_any(const pointwise_vector_args &a, A *x, const A *b, const A *t,
                                       int lo, int n)
{
    // clang-format off
    if (a.by_output) {
        switch (a.attr.mode) {
#define WD_BY_OUTPUT(mode) case mode: each_any<mode>(a, x, b, x, true, lo, n); return;
#include "ops/pointwise/pointwise_modes.def"
        default: return;
        }
    }
    switch (a.attr.mode) {
    case CUDNN_POINTWISE_BINARY_SELECT:
        each_any<CUDNN_POINTWISE_BINARY_SELECT>(a, x, b, t, true, lo, n);
        return;
#define WD_UNARY(mode) case mode: each_any<mode>(a, x, x, x, false, lo, n); return;
#define WD_RARE_UNARY(mode) WD_UNARY(mode)
#define WD_BINARY(mode) case mode: each_any<mode>(a, x, b, x, false, lo, n); return;
#define WD_RARE_BINARY(mode) WD_BINARY(mode)
#include "ops/pointwise/pointwise_modes.def"
    default: return;
    }
    // clang-format on
}

// The runs of a block's threads, one and then those a grid further.
template <class A, int V>
__device__ __forceinline__ void pointwise_any(const pointwise_vector_args &a)
{
    const A alpha = (A)a.alpha;
    const uint32_t step = gridDim.x * blockDim.x * V;
    wd_wait_for_previous();
    for (uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) * V; first < a.count;
         first += step) {
        const int n = a.count - first < V ? (int)(a.count - first) : V;
        const int lo = first < a.skip ? (int)(a.skip - first) : 0;
        A x[V], b[V], t[V];
        fetch_any<A, V>(x, a, a.operand[POINTWISE_X], first, lo, n);
        fetch_any<A, V>(b, a, a.operand[POINTWISE_B], first, lo, n);
        if (a.attr.mode == CUDNN_POINTWISE_BINARY_SELECT) {
            fetch_any<A, V>(t, a, a.operand[POINTWISE_T], first, lo, n);
        }
        apply_any<A>(a, x, b, t, lo, n);
        if (!a.plain) {
            const bool blends = a.operand[POINTWISE_Y].factor != 0.0;
            if (blends) fetch_any<A, V>(b, a, a.operand[POINTWISE_Y], first, lo, n);
#pragma unroll 1
            for (int i = lo; i < n; ++i) {
                x[i] = alpha != 0 ? alpha * x[i] : (A)0;
                if (blends) x[i] += b[i];
            }
        }
        put_any<A, V>(a, first, lo, n, x);
    }
}

} // namespace

#endif
