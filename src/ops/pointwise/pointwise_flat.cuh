// SPDX-License-Identifier: Apache-2.0
//
// Pointwise where all tensors are of one type and lie as the index counts: the modes that networks
// are full of, with little code around them. A thread has U runs of 16 bytes, a block's width apart,
// so that a warp's loads and stores are whole lines; all loads are issued before the mode is looked
// at, and inputs stay as they are stored until then. Formulas are those of pointwise_vector.cuh.
#include "ops/pointwise/pointwise_vector.cuh"

namespace {

template <class T, int U> struct flat_runs {
    static constexpr int V = 16 / (int)sizeof(T);
    wd_run<T, V> of[U];

    // Runs from `first` on; those of the tensor's ends element by element.
    __device__ __forceinline__ void load(const pointwise_vector_args &a, const T *from,
                                         uint32_t first, bool whole)
    {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const uint32_t at = first + u * blockDim.x * V;
            if (whole) {
                of[u].load(from + at);
                continue;
            }
#pragma unroll
            for (int i = 0; i < V; ++i) {
                T element = T();
                if (at + i >= a.skip && at + i < a.count) element = from[at + i];
                of[u].put(i, element);
            }
        }
    }

    __device__ __forceinline__ void store(const pointwise_vector_args &a, T *to, uint32_t first,
                                          bool whole)
    {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const uint32_t at = first + u * blockDim.x * V;
            if (whole) {
                if (a.streaming) of[u].store_streaming(to + at);
                else of[u].store(to + at);
                continue;
            }
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (at + i >= a.skip && at + i < a.count) to[at + i] = of[u].get(i);
            }
        }
    }
};

// x = alpha * MODE(alpha1 * x, alpha2 * b) + beta * y
template <int MODE, class A, class T, int U, bool BY_OUTPUT>
__device__ __forceinline__ void flat_mode(const pointwise_vector_args &a, flat_runs<T, U> &x,
                                          const flat_runs<T, U> &b, const flat_runs<T, U> &old,
                                          const T *y, uint32_t first)
{
    constexpr int V = flat_runs<T, U>::V;
    const A alpha = (A)a.alpha, alpha1 = (A)a.operand[POINTWISE_X].factor,
            alpha2 = (A)a.operand[POINTWISE_B].factor, beta = (A)a.operand[POINTWISE_Y].factor;
#pragma unroll
    for (int u = 0; u < U; ++u) {
        A value[V], second[V];
#pragma unroll
        for (int i = 0; i < V; ++i) {
            value[i] = alpha1 * wd_widen(x.of[u].get(i));
            second[i] = alpha2 * wd_widen(b.of[u].get(i));
        }
        each<MODE, V>(a, value, second, value, BY_OUTPUT);
        if (!a.plain) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                value[i] = alpha != 0 ? alpha * value[i] : (A)0;
                if (beta == 0) continue;
                if constexpr (sizeof(T) < 8) {
                    value[i] += beta * wd_widen(old.of[u].get(i));
                } else { // its registers are all taken
                    const uint32_t at = first + u * blockDim.x * V + i;
                    if (at >= a.skip && at < a.count) value[i] += beta * y[at];
                }
            }
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            T element;
            wd_narrow(element, value[i]);
            x.of[u].put(i, element);
        }
    }
}

template <class T, class A, int U, int INPUTS>
__device__ __forceinline__ void pointwise_flat(const pointwise_vector_args &a)
{
    constexpr uint32_t V = flat_runs<T, U>::V;
    const uint32_t begin = blockIdx.x * blockDim.x * V * U, end = begin + blockDim.x * V * U;
    const uint32_t first = begin + threadIdx.x * V;
    const bool whole = begin >= a.skip && end <= a.count;
    T *y = static_cast<T *>(a.operand[POINTWISE_Y].data);
    flat_runs<T, U> x, b, old;
    wd_wait_for_previous();
    x.load(a, static_cast<const T *>(a.operand[POINTWISE_X].data), first, whole);
    if (INPUTS > 1) {
        b.load(a, static_cast<const T *>(a.operand[POINTWISE_B].data), first, whole);
    } else {
        b = x;
    }
    if (sizeof(T) < 8 && a.operand[POINTWISE_Y].factor != 0.0) old.load(a, y, first, whole);
    if (INPUTS == 2 && a.by_output) {
        switch (a.attr.mode) {
#define WD_FLAT_BY_OUTPUT(mode)                                                                    \
    case mode:                                                                                     \
        flat_mode<mode, A, T, U, true>(a, x, b, old, y, first);                                    \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    } else if (INPUTS == 2) {
        switch (a.attr.mode) {
#define WD_FLAT_BINARY(mode)                                                                       \
    case mode:                                                                                     \
        flat_mode<mode, A, T, U, false>(a, x, b, old, y, first);                                   \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    } else {
        switch (a.attr.mode) {
#define WD_FLAT_UNARY(mode)                                                                        \
    case mode:                                                                                     \
        flat_mode<mode, A, T, U, false>(a, x, x, old, y, first);                                   \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    }
    x.store(a, y, first, whole);
}

} // namespace
