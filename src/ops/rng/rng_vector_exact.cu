// SPDX-License-Identifier: Apache-2.0
//
// Random tensors in one pass over y, 16 bytes a store. Values are the definition's, bit for bit, and
// so this file is compiled as that is, without contraction. A normal number is first estimated, with
// fewer operations and none of the definition's forty quotients: where everything within the
// estimate's error rounds to one value of y's type, that is it; else, one time in some ten thousand,
// the definition decides.
#include <string.h>
#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/vector.cuh"
#include "ops/rng/rng_vector_args.h"

namespace {

// Elements of a run: 16 bytes, or a whole block of random numbers where that is more.
template <class T> constexpr int stored_of = RNG_BYTES / (int)sizeof(T);
template <class T> constexpr int run_of = stored_of<T> < 4 ? 4 : stored_of<T>;

struct drawing {
    uint64_t seed;
    uint64_t offset;
};

__device__ __forceinline__ drawing begin(const rng_vector_args &a)
{
    wd_wait_for_previous();
    return {rng_integer(a.seed, a.seed_dtype, a.seed_value),
            rng_integer(a.offset, a.offset_dtype, a.offset_value)};
}

// Blocks are counted in 32 bits, so that two products of the first rounds are the same for all.
__device__ __forceinline__ void draw(const drawing &d, uint32_t block, uint32_t *number)
{
    wd_philox(d.seed, d.offset, (uint64_t)block, number);
}

// ---- Values ----

// As a store of the definition rounds.
template <class T> __device__ __forceinline__ T rounded(double v)
{
    T to;
    if constexpr (std::is_same<T, double>::value) to = v;
    else if constexpr (std::is_same<T, float>::value) to = (float)v;
    else if constexpr (std::is_same<T, int8_t>::value) to = (int8_t)wd_saturate(v, -128.0, 127.0);
    else if constexpr (std::is_same<T, uint8_t>::value) to = (uint8_t)wd_saturate(v, 0.0, 255.0);
    else if constexpr (std::is_same<T, int32_t>::value) {
        to = (int32_t)wd_saturate(v, -2147483648.0, 2147483647.0);
    } else {
        wd_narrow(to, wd_round_odd(v));
    }
    return to;
}

template <class T> __device__ __forceinline__ bool same_bits(T x, T y)
{
    uint32_t left = 0, right = 0;
    static_assert(sizeof(T) <= 4, "what is estimated");
    memcpy(&left, &x, sizeof x);
    memcpy(&right, &y, sizeof y);
    return left == right;
}

// The definition's pair of normal numbers from numbers[pair], numbers[pair + 1].
__device__ __noinline__ double exact(const rng_vector_args &a, uint32_t first, uint32_t second,
                                     int odd)
{
    const uint32_t number[4] = {first, second, 0, 0};
    return rng_value(&a.attr, number, odd);
}

// Integers below 2^32 as double, by their place in a mantissa.
__device__ __forceinline__ double whole(uint32_t r)
{
    return __hiloint2double(0x43300000, (int)r) - 0x1p52;
}

// sqrt(-2 ln((r + 1) / 2^32)), to 2^-41 of it.
__device__ __forceinline__ double radius_of(uint32_t r)
{
    const double v = whole(r) + 1.0;
    uint32_t high = (uint32_t)__double2hiint(v);
    int power = (int)(high >> 20) - 1023 - 32;
    high = (high & 0xfffffu) | 0x3ff00000u;
    if (high > 0x3ff6a09eu) high -= 0x100000u, power += 1; // beyond the square root of 2
    const double f = __hiloint2double((int)high, __double2loint(v));
    const double below = f + 1.0;
    double over = (double)wd_about_reciprocal((float)below);
    over = fma(over, fma(-below, over, 1.0), over);
    const double s = (f - 1.0) * over;
    const double square = s * s;
    double sum = 1.0 / 15.0;
    sum = fma(sum, square, 1.0 / 13.0);
    sum = fma(sum, square, 1.0 / 11.0);
    sum = fma(sum, square, 1.0 / 9.0);
    sum = fma(sum, square, 1.0 / 7.0);
    sum = fma(sum, square, 1.0 / 5.0);
    sum = fma(sum, square, 1.0 / 3.0);
    sum = fma(sum, square, 1.0);
    // twice -ln: of numbers of either sign only where the logarithm is far from 0
    const double twice = fma((double)power, -1.38629436111989061883, -4.0 * (s * sum));
    if (r == UINT32_MAX) return 0.0;
    const double inverse = (double)wd_about_rsqrt((float)twice);
    const double root = twice * inverse;
    return fma(fma(-root, root, twice), 0.5 * inverse, root);
}

// cos and sin of 2 pi r / 2^32, to 2^-41.
__device__ __forceinline__ void circle_of(uint32_t r, double &cosine, double &sine)
{
    const uint32_t quadrant = (r + 0x20000000u) >> 30;
    const uint32_t rest = (r - (quadrant << 30)) ^ 0x80000000u;
    const double x = (__hiloint2double(0x43300000, (int)rest) - (0x1p52 + 0x1p31)) *
                     (6.28318530717958647693 / 4294967296.0);
    const double square = x * x;
    double c = -1.0 / 87178291200.0;
    double s = 1.0 / 6227020800.0;
    c = fma(c, square, 1.0 / 479001600.0);
    c = fma(c, square, -1.0 / 3628800.0);
    c = fma(c, square, 1.0 / 40320.0);
    c = fma(c, square, -1.0 / 720.0);
    c = fma(c, square, 1.0 / 24.0);
    c = fma(c, square, -0.5);
    c = fma(c, square, 1.0);
    s = fma(s, square, -1.0 / 39916800.0);
    s = fma(s, square, 1.0 / 362880.0);
    s = fma(s, square, -1.0 / 5040.0);
    s = fma(s, square, 1.0 / 120.0);
    s = fma(s, square, -1.0 / 6.0);
    s = fma(s, square, 1.0) * x;
    const bool swaps = quadrant & 1u;
    cosine = swaps ? s : c;
    sine = swaps ? c : s;
    if (quadrant == 1 || quadrant == 2) cosine = -cosine;
    if (quadrant == 2 || quadrant == 3) sine = -sine;
}

// The elements of a block, or of a pair of it.
template <class T, bool NORMAL, int COUNT = 4>
__device__ __forceinline__ void values(const rng_vector_args &a, const uint32_t *number, T *to)
{
    if constexpr (!NORMAL) {
        const bool bernoulli = a.attr.distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI;
        const T one = rounded<T>(1.0), none = rounded<T>(0.0);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (bernoulli) to[i] = number[i] < a.threshold ? one : none;
            else to[i] = rounded<T>(rng_value(&a.attr, number, i));
        }
    } else if constexpr (sizeof(T) == 8) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) to[i] = exact(a, number[i & 2], number[(i & 2) + 1], i & 1);
    } else {
#pragma unroll
        for (int pair = 0; pair < COUNT; pair += 2) {
            const double radius = radius_of(number[pair]);
            const double slip = fma(radius, a.slip, a.slip_mean);
            double along[2];
            circle_of(number[pair + 1], along[0], along[1]);
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
                const double v = fma(a.attr.deviation, radius * along[odd], a.attr.mean);
                const T low = rounded<T>(v - slip);
                to[pair + odd] = low;
                if (a.estimates && same_bits(low, rounded<T>(v + slip))) continue;
                to[pair + odd] = rounded<T>(exact(a, number[pair], number[pair + 1], odd));
            }
        }
    }
}

// ---- Stores ----

// Bytes and words by their bits, where wd_run has no conversion of its own.
template <class T, int N> struct packed {
    wd_run<T, N> run;

    __device__ __forceinline__ void put(int i, T value)
    {
        if constexpr (std::is_same<T, int32_t>::value) {
            run.word[i] = (uint32_t)value;
        } else if constexpr (sizeof(T) == 1) {
            const uint32_t bits = (uint32_t)(uint8_t)value << (8 * (i & 3));
            run.word[i / 4] = i & 3 ? run.word[i / 4] | bits : bits;
        } else {
            run.put(i, value);
        }
    }
};

// N elements from `at` on, an element in a boundary's way.
template <class T, int N>
__device__ __forceinline__ void store(const rng_vector_args &a, const T *value, int64_t at)
{
    T *y = static_cast<T *>(a.y);
    if (at >= 0 && at + N <= a.count) {
        packed<T, N> p;
#pragma unroll
        for (int j = 0; j < N; ++j) p.put(j, value[j]);
        if (a.streaming) p.run.store_streaming(y + at);
        else p.run.store(y + at);
        return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        if (at + j >= 0 && at + j < a.count) y[at + j] = value[j];
    }
}

// ---- Memory in the order of the index ----

// `behind` is how far a run begins behind a block, the same for all.
template <class T, bool NORMAL> __device__ __forceinline__ void flat(const rng_vector_args &a)
{
    constexpr int N = run_of<T>;
    const drawing d = begin(a);
    const int behind = -a.shift & 3;
    const int64_t first = (int64_t)blockIdx.x * blockDim.x * RNG_RUNS + threadIdx.x;
#pragma unroll 1
    for (int u = 0; u < RNG_RUNS; ++u) {
        const int64_t at = (first + u * (int)blockDim.x) * N - a.shift;
        const uint32_t block = (uint32_t)((at - behind) / 4); // before the first all is cut off
        T value[N + 4];
        uint32_t number[4];
        if (at >= a.count) return;
#pragma unroll
        for (int b = 0; b < N / 4; ++b) {
            draw(d, block + b, number);
            values<T, NORMAL>(a, number, value + 4 * b);
        }
        if (behind == 0) {
            store<T, N>(a, value, at);
            continue;
        }
        draw(d, block + N / 4, number);
        values<T, NORMAL>(a, number, value + N);
        if (behind == 1) store<T, N>(a, value + 1, at);
        else if (behind == 2) store<T, N>(a, value + 2, at);
        else store<T, N>(a, value + 3, at);
    }
}

// A mask: a thread has a word, 32 elements. What is in a byte behind the last element stays.
__device__ __forceinline__ void flat_bits(const rng_vector_args &a)
{
    uint8_t *y = static_cast<uint8_t *>(a.y);
    const drawing d = begin(a);
    const int64_t first = (int64_t)blockIdx.x * blockDim.x * RNG_RUNS + threadIdx.x;
#pragma unroll 1
    for (int u = 0; u < RNG_RUNS; ++u) {
        const int64_t at = (first + u * (int)blockDim.x) * RNG_WORD - a.shift;
        uint32_t bits = 0;
        if (at >= a.count) return;
#pragma unroll
        for (int b = 0; b < RNG_WORD / 4; ++b) {
            uint32_t number[4];
            draw(d, (uint32_t)(at / 4 + b), number);
#pragma unroll
            for (int i = 0; i < 4; ++i) bits |= number[i] < a.threshold ? 1u << (4 * b + i) : 0u;
        }
        if (at >= 0 && at + RNG_WORD <= a.count) {
            *reinterpret_cast<uint32_t *>(y + at / 8) = bits;
            continue;
        }
        for (int byte = 0; byte < RNG_WORD / 8; ++byte) {
            const int64_t from = at + 8 * byte;
            uint32_t mine = bits >> (8 * byte) & 0xffu;
            if (from < 0 || from >= a.count) continue;
            if (a.count - from < 8) {
                const uint32_t there = (1u << (a.count - from)) - 1u;
                mine = (mine & there) | (y[from / 8] & ~there);
            }
            y[from / 8] = (uint8_t)mine;
        }
    }
}

// ---- Channels as neighbours ----

template <class T, bool NORMAL> __device__ __forceinline__ void quads(const rng_vector_args &a)
{
    constexpr int N = stored_of<T>;
    T *y = static_cast<T *>(a.y);
    const drawing d = begin(a);
    const int64_t run = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (run >= a.runs) return;
    const uint32_t rest = wd_fastdiv_quotient((uint32_t)run, a.by_channels);
    const uint32_t channel = ((uint32_t)run - rest * a.by_channels.divisor) * N;
    const uint32_t image = wd_fastdiv_quotient(rest, a.by_plane);
    const uint32_t quad = rest - image * a.by_plane.divisor;
    const uint32_t block = (image * a.channels + channel) * a.by_plane.divisor + quad;
    wd_run<T, N> out[4];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        uint32_t number[4];
        T value[4];
        draw(d, block + j * a.by_plane.divisor, number);
        values<T, NORMAL>(a, number, value);
#pragma unroll
        for (int i = 0; i < 4; ++i) out[i].put(j, value[i]);
    }
    T *to = y + (int64_t)rest * 4 * a.channels + channel;
#pragma unroll
    for (int i = 0; i < 4; ++i, to += a.channels) {
        if (a.streaming) out[i].store_streaming(to);
        else out[i].store(to);
    }
}

template <class T, bool NORMAL> __device__ __forceinline__ void single(const rng_vector_args &a)
{
    constexpr int N = stored_of<T>;
    const drawing d = begin(a);
    const int64_t run = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t at = run * N - a.shift;
    T value[N];
    if (run >= a.runs) return;
#pragma unroll
    for (int j = 0; j < N; ++j) {
        const uint32_t place = at + j < 0 ? 0 : (uint32_t)(at + j);
        const uint32_t pixel = wd_fastdiv_quotient(place, a.by_channels);
        const uint32_t image = wd_fastdiv_quotient(pixel, a.by_plane);
        const uint32_t channel = place - pixel * a.channels;
        const uint32_t index = (image * a.channels + channel) * a.plane + (pixel - image * a.plane);
        uint32_t number[4];
        T pair[2];
        draw(d, index / 4, number);
        if (index & 2) number[0] = number[2], number[1] = number[3];
        values<T, NORMAL, 2>(a, number, pair);
        value[j] = index & 1 ? pair[1] : pair[0];
    }
    store<T, N>(a, value, at);
}

} // namespace

#define WD_KERNELS_ROWS "ops/rng/rng_vector_exact_kernels.def"
#include "ops/kernels_device.inc"
