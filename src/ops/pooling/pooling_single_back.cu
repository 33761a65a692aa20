// SPDX-License-Identifier: Apache-2.0
//
// Gradients of windows of pixels of two-dimensional images that overlap. A thread has a run of dx and
// collects from the windows over it in row-major order; of maxima, a kernel before it notes where each is, as a
// code in the workspace. No atomics.
#include "ops/pooling/pooling_state.cuh"

namespace {

// The windows that cover something of first .. last of the image along one dimension.
struct covering {
    int first;
    int end;
    __device__ __forceinline__ covering(int from, int to, int pad, int size, int windows,
                                        const wd_fastdiv &by)
    {
        const int before = from + pad - size; // a window from here or earlier ends too soon
        first = before < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)before, by) + 1;
        end = to + pad < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)(to + pad), by) + 1;
        end = min(end, windows);
    }
};

__device__ __forceinline__ float inverse_of(const pool_vector_args &a, int rows, int q)
{
    return a.exclude ? inverse<float>(rows * columns_of(a, q).extent()) : a.inverse;
}

// Pixels: V channels of a pixel of dx.
template <class T, int V, bool CODES>
__device__ __forceinline__ void backward_pixel(const pool_vector_args &a)
{
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t run = wd_take_rest(n, a.by_w);
    const int w = (int)wd_take_rest(n, a.by_h);
    const int h = (int)wd_take_rest(n, a.by_outer);
    const covering over_h(h, h, a.pad_h, a.size_h, a.windows_h, a.by_stride_h);
    const covering over_w(w, w, a.pad_w, a.size_w, a.windows_w, a.by_stride_w);
    float sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = 0.0f;
    for (int p = over_h.first; p < over_h.end; ++p) {
        const span rows = rows_of(a, p);
        const uint32_t line = (n * (uint32_t)a.windows_h + p) * (uint32_t)a.windows_w;
#pragma unroll 2
        for (int q = over_w.first; q < over_w.end; ++q) {
            const uint32_t at = (line + q) * a.inner + run * V;
            wd_run<T, V> share;
            share.load(static_cast<const T *>(a.dy) + at);
            if constexpr (CODES) {
                const int own = (h - rows.start) * a.size_w + w - (q * a.stride_w - a.pad_w);
                uint8_t code[V];
                if constexpr (V == 8) {
                    const uint2 bytes = *reinterpret_cast<const uint2 *>(a.codes + at);
                    memcpy(code, &bytes, 8);
                } else if constexpr (V == 4) {
                    const uint32_t bytes = *reinterpret_cast<const uint32_t *>(a.codes + at);
                    memcpy(code, &bytes, 4);
                } else {
#pragma unroll
                    for (int i = 0; i < V; ++i) code[i] = a.codes[at + i];
                }
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    sum[i] += code[i] == own ? wd_widen(share.get(i)) : 0.0f;
                }
            } else {
                const float factor = inverse_of(a, rows.extent(), q);
#pragma unroll
                for (int i = 0; i < V; ++i) sum[i] += wd_widen(share.get(i)) * factor;
            }
        }
    }
    wd_put_run<T, V>(a, item * V, sum);
}

// ---- Modes ----

// Of maxima alone: with codes.
template <class F> __device__ __forceinline__ void by_maximum(const pool_vector_args &a, F run)
{
    wd_wait_for_previous();
    if (a.mode == POOL_MAX) run(std::integral_constant<int, POOL_MAX>());
    else run(std::integral_constant<int, POOL_MAX_NAN>());
}

template <class T, int V, int SIZE>
__device__ __forceinline__ void code_pixel(const pool_vector_args &a)
{
    by_maximum(a, [&](auto mode) { forward_pixel<T, V, SIZE, mode.value, true>(a); });
}

template <class T, int V, bool CODES>
__device__ __forceinline__ void from_pixel(const pool_vector_args &a)
{
    wd_wait_for_previous();
    backward_pixel<T, V, CODES>(a);
}

} // namespace

#define WD_KERNELS_ROWS "ops/pooling/pooling_single_back_kernels.def"
#include "ops/kernels_device.inc"
