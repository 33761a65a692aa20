// SPDX-License-Identifier: Apache-2.0
//
// Pointwise where all tensors are of one type and lie as the index counts: the modes that networks
// are full of, with little code around them. A thread asks for all of its `runs` runs before the mode
// is looked at, and computes one after the other. Formulas are the definition's.
#include "ops/pointwise/pointwise_runs.cuh"

namespace {

// x = MODE(x, b)
template <int MODE, bool BY_OUTPUT, int V, class A>
__device__ __forceinline__ void flat_mode(const pointwise_vector_args &a, A *x, const A *b)
{
    wd_pointwise_attr attr = a.attr;
    attr.mode = MODE;
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = value_of(&attr, x[i], b[i], x[i], BY_OUTPUT);
}

template <int INPUTS, int V, class A>
__device__ __forceinline__ void flat_apply(const pointwise_vector_args &a, A *x, const A *b)
{
    if (INPUTS == 2 && a.by_output) {
        switch (a.attr.mode) {
#define WD_FLAT_BY_OUTPUT(mode)                                                                    \
    case mode:                                                                                     \
        flat_mode<mode, true, V>(a, x, b);                                                         \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    } else if (INPUTS == 2) {
        switch (a.attr.mode) {
#define WD_FLAT_BINARY(mode)                                                                       \
    case mode:                                                                                     \
        flat_mode<mode, false, V>(a, x, b);                                                        \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    } else {
        switch (a.attr.mode) {
#define WD_FLAT_UNARY(mode)                                                                        \
    case mode:                                                                                     \
        flat_mode<mode, false, V>(a, x, x);                                                        \
        break;
#include "ops/pointwise/pointwise_flat_modes.def"
        default: break;
        }
    }
}

// At most U runs a thread.
template <class T, class A, int U, int INPUTS>
__device__ __forceinline__ void pointwise_flat(const pointwise_vector_args &a)
{
    typedef runs<T> of;
    constexpr int V = of::V;
    const uint32_t width = blockDim.x * V, begin = blockIdx.x * width * a.runs;
    const bool whole = begin >= a.skip && begin + width * a.runs <= a.count;
    const A alpha = (A)a.alpha, alpha1 = (A)a.operand[POINTWISE_X].factor,
            alpha2 = (A)a.operand[POINTWISE_B].factor, beta = (A)a.operand[POINTWISE_Y].factor;
    const T *from_x = static_cast<const T *>(a.operand[POINTWISE_X].data);
    const T *from_b = static_cast<const T *>(a.operand[POINTWISE_B].data);
    typename of::run x[U], b[U];
    uint32_t at = begin + threadIdx.x * V;
    wd_wait_for_previous();
    if (whole) {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u < a.runs) x[u].load(from_x + at + u * width);
        }
#pragma unroll
        for (int u = 0; u < U && INPUTS > 1; ++u) {
            if (u < a.runs) b[u].load(from_b + at + u * width);
        }
    }
#pragma unroll 1
    for (int n = 0; n < a.runs; ++n, at += width) {
        A value[V], second[V];
        if (!whole) {
            of::load_end(x[0], a, from_x, at);
            if (INPUTS > 1) of::load_end(b[0], a, from_b, at);
        }
        of::widen(value, x[0]);
        if (INPUTS > 1) of::widen(second, b[0]);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            value[i] *= alpha1;
            if (INPUTS > 1) second[i] *= alpha2;
        }
        flat_apply<INPUTS, V>(a, value, second);
        if (!a.plain) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                value[i] = alpha != 0 ? alpha * value[i] : (A)0;
                if (beta == 0 || at + i < a.skip || at + i >= a.count) continue;
                value[i] += beta * wd_widen(static_cast<T *>(a.operand[POINTWISE_Y].data)[at + i]);
            }
        }
        of::store(a, a.operand[POINTWISE_Y].data, at, whole, value);
#pragma unroll
        for (int u = 0; u + 1 < U; ++u) {
            x[u] = x[u + 1];
            if (INPUTS > 1) b[u] = b[u + 1];
        }
    }
}

// One number everywhere, as the bytes of 16 that `pattern` has.
__device__ __forceinline__ void pointwise_fill(const pointwise_fill_args &a)
{
    const uint32_t step = gridDim.x * blockDim.x;
    const uint4 four = make_uint4(a.pattern[0], a.pattern[1], a.pattern[2], a.pattern[3]);
    wd_wait_for_previous();
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < a.loads; at += step) {
        if (a.streaming) __stcs(static_cast<uint4 *>(a.y) + at, four);
        else static_cast<uint4 *>(a.y)[at] = four;
    }
    // the ends, a byte a thread: fewer than 16 before the whole loads and behind them
    if (blockIdx.x == 0 && threadIdx.x < 32) {
        const unsigned char *bytes = reinterpret_cast<const unsigned char *>(a.pattern);
        unsigned char *before = static_cast<unsigned char *>(a.y) - a.before;
        unsigned char *behind = static_cast<unsigned char *>(a.y) + (size_t)a.loads * 16;
        const int i = threadIdx.x & 15;
        if (threadIdx.x < 16 && i < a.before) before[i] = bytes[(16 - a.before + i) & 15];
        if (threadIdx.x >= 16 && i < a.behind) behind[i] = bytes[i];
    }
}

} // namespace
