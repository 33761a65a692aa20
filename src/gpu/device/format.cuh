// SPDX-License-Identifier: Apache-2.0
//
// One instance of a kernel for elements of fp32, fp16 and bf16: which they are is an argument of the
// kernel, the same for all threads. From the load to the store they are numbers of single precision
// in registers, so that the choice is made once for all that a thread loads, or stores, at once: a few
// branches a thread, and one conversion an element each way. A kernel that had to widen what it keeps
// packed several times has fewer instructions so. fp64 has the same functions, without a choice.
//
// What a thread has is runs of V neighbours that are equally far apart. A `place` says where:
//     first(V), step(V)   element of the first run, and elements between one run and the next
//     has(r)              whether the thread has run r
//     CHAIN               whether each run's address is the one before plus step: where the compiler
//                         would make products of many instructions else
//     GROUP, behind(r)    whether no thread has run r, a multiple of GROUP, or any beyond
#ifndef WD_GPU_DEVICE_FORMAT_CUH
#define WD_GPU_DEVICE_FORMAT_CUH

#include "base/format.h"
#include "gpu/device/opaque.cuh"
#include "gpu/device/vector.cuh"

static __device__ __forceinline__ float wd_widen_bits(uint32_t bits, bool bf16)
{
    if (bf16) return __uint_as_float(bits << 16);
    half16 value;
    const uint16_t low = (uint16_t)bits;
    memcpy(&value, &low, 2);
    return wd_widen(value);
}

static __device__ __forceinline__ uint16_t wd_narrow_bits(float v, bool bf16)
{
    uint16_t bits;
    if (bf16) {
        const bfloat16 value = __float2bfloat16_rn(v);
        memcpy(&bits, &value, 2);
    } else {
        const half16 value = __float2half_rn(v);
        memcpy(&bits, &value, 2);
    }
    return bits;
}

// Bits of a number that needs no rounding, 0 or an infinity, twice.
static __device__ __forceinline__ uint32_t wd_pad_of(float pad, bool bf16)
{
    if (bf16) return (__float_as_uint(pad) >> 16) * 0x10001u;
    return pad == 0.0f ? 0u : pad < 0.0f ? 0xfc00fc00u : 0x7c007c00u;
}

template <int BYTES> constexpr int wd_words_of = BYTES < 4 ? 1 : BYTES / 4;

// R runs of BYTES between memory and words. What the thread has not is `even` and `odd` by turns.
template <int R, int BYTES, class PLACE>
static __device__ __forceinline__ void wd_load_words(uint32_t (&word)[R * wd_words_of<BYTES>],
                                                     const void *from, int64_t step, uint32_t even,
                                                     uint32_t odd, const PLACE &place)
{
    constexpr int W = wd_words_of<BYTES>;
    const char *p = static_cast<const char *>(from);
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
#pragma unroll
        for (int w = g * W; w < (g + PLACE::GROUP) * W; ++w) word[w] = w % W % 2 ? odd : even;
        if (place.behind(g)) continue;
#pragma unroll
        for (int r = g; r < g + PLACE::GROUP; ++r) {
            const char *from_run = p + r * step;
            if (PLACE::CHAIN) {
                from_run = p;
                p += wd_opaque(step);
            }
            if (!place.has(r)) continue;
            if constexpr (BYTES == 2) {
                word[r] = *reinterpret_cast<const uint16_t *>(from_run);
            } else {
                wd_run<float, W> run;
                run.load(reinterpret_cast<const float *>(from_run));
#pragma unroll
                for (int w = 0; w < W; ++w) word[r * W + w] = run.word[w];
            }
        }
    }
}

template <int R, int BYTES, class PLACE>
static __device__ __forceinline__ void wd_store_words(
    const uint32_t (&word)[R * wd_words_of<BYTES>], void *to, int64_t step, bool streaming,
    const PLACE &place)
{
    constexpr int W = wd_words_of<BYTES>;
    char *p = static_cast<char *>(to);
#pragma unroll
    for (int g = 0; g < R; g += PLACE::GROUP) {
        if (place.behind(g)) continue;
#pragma unroll
        for (int r = g; r < g + PLACE::GROUP; ++r) {
            char *to_run = p + r * step;
            if (PLACE::CHAIN) {
                to_run = p;
                p += wd_opaque(step);
            }
            if (!place.has(r)) continue;
            if constexpr (BYTES == 2) {
                *reinterpret_cast<uint16_t *>(to_run) = (uint16_t)word[r];
            } else {
                wd_run<float, W> run;
#pragma unroll
                for (int w = 0; w < W; ++w) run.word[w] = word[r * W + w];
                if (streaming) run.store_streaming(reinterpret_cast<float *>(to_run));
                else run.store(reinterpret_cast<float *>(to_run));
            }
        }
    }
}

// Numbers of 16 bits in R runs of V: two a word, or of V = 1 one a word.
template <int R, int V>
static __device__ __forceinline__ void wd_widen_words(
    float (&to)[R * V], const uint32_t (&word)[R * wd_words_of<2 * V>], bool bf16)
{
    constexpr int EACH = V == 1 ? 1 : 2;
    if (bf16) {
#pragma unroll
        for (int i = 0; i < R * V; ++i) {
            const uint32_t both = word[i / EACH];
            to[i] = __uint_as_float(i % EACH ? both & 0xffff0000u : both << 16);
        }
    } else {
#pragma unroll
        for (int i = 0; i < R * V; ++i) {
            const uint16_t bits = (uint16_t)(word[i / EACH] >> (i % EACH * 16));
            half16 value;
            memcpy(&value, &bits, 2);
            to[i] = wd_widen(value);
        }
    }
}

template <int R, int V>
static __device__ __forceinline__ void wd_narrow_words(uint32_t (&word)[R * wd_words_of<2 * V>],
                                                       const float (&from)[R * V], bool bf16)
{
    constexpr int EACH = V == 1 ? 1 : 2;
    if (bf16) {
#pragma unroll
        for (int i = 0; i < R * V; i += EACH) {
            const __nv_bfloat162 two =
                __floats2bfloat162_rn(from[i], EACH == 1 ? 0.0f : from[i + EACH - 1]);
            memcpy(&word[i / EACH], &two, 4);
        }
    } else {
#pragma unroll
        for (int i = 0; i < R * V; i += EACH) {
            const __half2 two = __floats2half2_rn(from[i], EACH == 1 ? 0.0f : from[i + EACH - 1]);
            memcpy(&word[i / EACH], &two, 4);
        }
    }
}

// E elements, in runs of V4 where they have 4 bytes (0: there are no such), of V2 where they have 2.
template <int E, int V4, int V2, class PLACE>
static __device__ __forceinline__ void wd_load_format(float (&to)[E], const void *from, int format,
                                                      float pad, const PLACE &place)
{
    if constexpr (V4 > 0) {
        if (format == WD_FORMAT_F32) {
            uint32_t word[E];
            const uint32_t bits = __float_as_uint(pad);
            wd_load_words<E / V4, 4 * V4>(word, static_cast<const float *>(from) + place.first(V4),
                                          4 * place.step(V4), bits, bits, place);
#pragma unroll
            for (int i = 0; i < E; ++i) to[i] = __uint_as_float(word[i]);
            return;
        }
    }
    const bool bf16 = format == WD_FORMAT_BF16;
    const uint32_t bits = wd_pad_of(pad, bf16);
    uint32_t word[E / V2 * wd_words_of<2 * V2>];
    wd_load_words<E / V2, 2 * V2>(word, static_cast<const uint16_t *>(from) + place.first(V2),
                                  2 * place.step(V2), bits, bits, place);
    wd_widen_words<E / V2, V2>(to, word, bf16);
}

template <int E, int V4, int V2, class PLACE>
static __device__ __forceinline__ void wd_load_format(double (&to)[E], const void *from, int,
                                                      double pad, const PLACE &place)
{
    constexpr int V = V4 > 1 ? V4 / 2 : 1;
    uint32_t word[2 * E];
    wd_load_words<E / V, 8 * V>(word, static_cast<const double *>(from) + place.first(V),
                                8 * place.step(V), (uint32_t)__double2loint(pad),
                                (uint32_t)__double2hiint(pad), place);
#pragma unroll
    for (int i = 0; i < E; ++i) to[i] = __hiloint2double((int)word[2 * i + 1], (int)word[2 * i]);
}

template <int E, int V4, int V2, class PLACE>
static __device__ __forceinline__ void wd_store_format(void *to, const float (&from)[E], int format,
                                                       bool streaming, const PLACE &place)
{
    if constexpr (V4 > 0) {
        if (format == WD_FORMAT_F32) {
            uint32_t word[E];
#pragma unroll
            for (int i = 0; i < E; ++i) word[i] = __float_as_uint(from[i]);
            wd_store_words<E / V4, 4 * V4>(word, static_cast<float *>(to) + place.first(V4),
                                           4 * place.step(V4), streaming, place);
            return;
        }
    }
    uint32_t word[E / V2 * wd_words_of<2 * V2>];
    wd_narrow_words<E / V2, V2>(word, from, format == WD_FORMAT_BF16);
    wd_store_words<E / V2, 2 * V2>(word, static_cast<uint16_t *>(to) + place.first(V2),
                                   2 * place.step(V2), streaming, place);
}

template <int E, int V4, int V2, class PLACE>
static __device__ __forceinline__ void wd_store_format(void *to, const double (&from)[E], int,
                                                       bool streaming, const PLACE &place)
{
    constexpr int V = V4 > 1 ? V4 / 2 : 1;
    uint32_t word[2 * E];
#pragma unroll
    for (int i = 0; i < E; ++i) {
        word[2 * i] = (uint32_t)__double2loint(from[i]);
        word[2 * i + 1] = (uint32_t)__double2hiint(from[i]);
    }
    wd_store_words<E / V, 8 * V>(word, static_cast<double *>(to) + place.first(V),
                                 8 * place.step(V), streaming, place);
}

// alpha * v + beta * what is there, of which a factor of 0 leaves nothing, not even NaN.
static __device__ __forceinline__ void wd_blend_one(void *to, int64_t k, float v, float alpha,
                                                    float beta, int format)
{
    const bool bf16 = format == WD_FORMAT_BF16;
    v = alpha != 0.0f ? alpha * v : 0.0f;
    if (format == WD_FORMAT_F32) {
        float *at = static_cast<float *>(to) + k;
        if (beta != 0.0f) v += beta * *at;
        *at = v;
    } else {
        uint16_t *at = static_cast<uint16_t *>(to) + k;
        if (beta != 0.0f) v += beta * wd_widen_bits(*at, bf16);
        *at = wd_narrow_bits(v, bf16);
    }
}

static __device__ __forceinline__ void wd_blend_one(void *to, int64_t k, double v, double alpha,
                                                    double beta, int)
{
    double *at = static_cast<double *>(to) + k;
    v = alpha != 0.0 ? alpha * v : 0.0;
    if (beta != 0.0) v += beta * *at;
    *at = v;
}

// The same of all that a thread has, one by one: that is rare, and would double the code.
template <int E, int V4, int V2, class A, class PLACE>
static __device__ __forceinline__ void wd_blend_format(void *to, const A (&from)[E], A alpha,
                                                       A beta, int format, const PLACE &place)
{
    const int v = sizeof(A) == 8                      ? V4 > 1 ? V4 / 2 : 1
                  : V4 > 0 && format == WD_FORMAT_F32 ? V4
                                                      : V2;
    const int bits = v == 8 ? 3 : v / 2;
#pragma unroll 1
    for (int i = 0; i < E; ++i) {
        const int r = i >> bits;
        A one = from[0];
#pragma unroll
        for (int s = 1; s < E; ++s) one = s == i ? from[s] : one;
        if (!place.has(r)) continue;
        wd_blend_one(to, place.first(v) + r * place.step(v) + (i & (v - 1)), one, alpha, beta,
                     format);
    }
}

#endif
