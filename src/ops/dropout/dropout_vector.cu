// SPDX-License-Identifier: Apache-2.0
//
// Dropout in one pass: elements are read and written once, 16 bytes at a time, and the mask by whole
// bytes. Numbers, masks and values are the definition's, bit for bit. The last block that has read
// the state advances it.
#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/dropout/dropout_vector_args.h"

namespace {

template <class T> using acc = decltype(wd_widen(T()));
template <class T> constexpr int run_of = DROPOUT_BYTES / (int)sizeof(T);

constexpr uint32_t WHOLE_WARP = 0xffffffffu;
constexpr uint32_t WHOLE_BYTE = 0xffu;

struct drawing {
    uint64_t seed;
    uint64_t offset;
    bool holds;
    unsigned long long place; // of the block among those that have read the state; thread 0's
};

// All threads of the block come, once. A block that is alone counts nothing.
__device__ __forceinline__ drawing read_state(const dropout_vector_args &a)
{
    wd_random_state *state = a.state;
    drawing d = {state->seed, state->offset, wd_random_state_holds(state) != 0, 0};
    __syncthreads();
    if (gridDim.x > 1 && d.holds && threadIdx.x == 0) {
        __threadfence();
        d.place = atomicAdd(reinterpret_cast<unsigned long long *>(&state->readers), 1ull);
    }
    return d;
}

// In the end, when the number has come: the last block that read the state advances it.
__device__ __forceinline__ void advance(const dropout_vector_args &a, const drawing &d)
{
    if (!d.holds || threadIdx.x != 0 || d.place != gridDim.x - 1) return;
    if (gridDim.x > 1) __threadfence();
    a.state->offset = d.offset + 1;
    a.state->readers = 0;
}

// The bits of elements 8 * byte .. 8 * byte + 7. Blocks of numbers are counted in 32 bits, so that
// two products of the first rounds are the same for all.
__device__ __forceinline__ uint32_t draw(const dropout_vector_args &a, const drawing &d,
                                         uint32_t byte)
{
    uint32_t bits = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        uint32_t number[4];
        wd_philox(d.seed, d.offset, (uint64_t)(byte * 2 + half), number);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            bits |= number[i] >= a.threshold ? 1u << (half * 4 + i) : 0u;
        }
    }
    if (byte >= a.whole_bytes) bits &= byte == a.whole_bytes ? a.last_bits : 0;
    return d.holds && !a.none ? bits : 0;
}

template <class T> __device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    uint32_t word;
    if constexpr (std::is_same<T, half16>::value) {
        const __half2 pair = __floats2half2_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    }
    return word;
}

// Where the state does not hold, all is kept and `scale` is NaN.
template <class T, int N>
__device__ __forceinline__ void keep(acc<T> scale, wd_run<T, N> &run, uint32_t bits)
{
    acc<T> v[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        v[j] = bits >> j & 1u ? scale * wd_widen(run.get(j)) : (acc<T>)0;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        if constexpr (sizeof(T) > 2) run.put(j, v[j]);
        else if (j % 2 == 0) run.word[j / 2] = pair_of<T>(v[j], v[j + 1]);
    }
}

// Elements from `at` on, of those that there are.
template <class T, int N>
__device__ __forceinline__ void load(const dropout_vector_args &a, wd_run<T, N> &run, int64_t at)
{
    const T *x = static_cast<const T *>(a.x);
    if (a.alike && at >= 0 && at + N <= a.count) {
        run.load(x + at);
        return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        T element;
        wd_narrow(element, (acc<T>)0);
        if (at + j >= 0 && at + j < a.count) element = x[at + j];
        run.put(j, element);
    }
}

// Likewise, but for what is before `low` or not before `high`.
template <class T, int N>
__device__ __forceinline__ void store(const dropout_vector_args &a, const wd_run<T, N> &run,
                                      int64_t at, int64_t low, int64_t high)
{
    T *y = static_cast<T *>(a.y);
    if (at >= low && at + N <= high) {
        if (a.streaming) run.store_streaming(y + at);
        else run.store(y + at);
        return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        if (at + j >= low && at + j < high) y[at + j] = run.get(j);
    }
}

// ---- Memory in the order of the index ----

// A warp has 32 * G bytes of the mask at once: lanes have neighbouring bytes, and in memory
// neighbouring runs, whose bits they ask of each other. Where memory's groups are not the mask's, the
// first byte is the one before, which the warp before has too.
template <class T, bool BACKWARD> __device__ void flat(const dropout_vector_args &a)
{
    constexpr int V = run_of<T>, R = DROPOUT_GROUP / V, RUNS = 4, G = RUNS / R;
    const int lane = threadIdx.x % 32;
    const int before = a.shift > 0;
    const int64_t own = 32 * G - before;
    const int64_t step = (int64_t)gridDim.x * (blockDim.x / 32) * own;
    drawing d = {0, 0, true, 0};
    wd_wait_for_previous();
    if (!BACKWARD) d = read_state(a);
    const acc<T> scale = d.holds ? (acc<T>)a.scale : (acc<T>)NAN;
    for (int64_t base = ((int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * own;
         base < a.groups; base += step) {
        const int64_t start = (base - before) * DROPOUT_GROUP - a.shift;
        wd_run<T, V> run[RUNS];
        uint32_t bits[G];
        uint32_t shifted[G];
#pragma unroll
        for (int u = 0; u < RUNS; ++u) load(a, run[u], start + (u * 32 + lane) * V);
        if (BACKWARD) {
#pragma unroll
            for (int g = 0; g < G; ++g) {
                const int64_t byte = base - before + g * 32 + lane;
                bits[g] = byte >= 0 && byte < a.mask_bytes ? a.mask[byte] : 0;
            }
        } else {
            uint32_t all = 0;
#pragma unroll 1 // many numbers at once take more registers than the loads leave
            for (int g = 0; g < G; ++g) {
                const int64_t byte = base - before + g * 32 + lane;
                const uint32_t drawn = draw(a, d, (uint32_t)byte);
                if (byte >= base && byte < a.mask_bytes) a.mask[byte] = (uint8_t)drawn;
                all |= drawn << (8 * g);
            }
            if (!d.holds) all = UINT32_MAX;
#pragma unroll
            for (int g = 0; g < G; ++g) bits[g] = all >> (8 * g) & WHOLE_BYTE;
        }
#pragma unroll
        for (int g = 0; g < G; ++g) shifted[g] = bits[g];
        if (before) {
#pragma unroll
            for (int g = 0; g < G; ++g) {
                const uint32_t last = __shfl_sync(WHOLE_WARP, bits[g > 0 ? g - 1 : 0], 31);
                const uint32_t next = __shfl_sync(WHOLE_WARP, bits[g], (lane + 31) % 32);
                shifted[g] = (bits[g] << 8 | (lane > 0 ? next : last)) >> (8 - a.shift);
            }
        }
#pragma unroll
        for (int u = 0; u < RUNS; ++u) {
            const int64_t at = start + (u * 32 + lane) * V;
            uint32_t mine = shifted[u / R];
            if (R > 1) {
                mine = __shfl_sync(WHOLE_WARP, mine, u % R * (32 / R) + lane / R);
                mine >>= lane % R * V;
            }
            keep(scale, run[u], mine);
            if (u * 32 + lane >= before * R) store(a, run[u], at, 0, a.count);
        }
    }
    if (!BACKWARD) advance(a, d);
}

// ---- Channels are neighbours ----

// The lowest bits of the four bytes.
__device__ __forceinline__ uint32_t gathered(uint32_t bytes)
{
    return (bytes & 0x01010101u) * 0x01020408u >> 24;
}

// The bits of `N` neighbours from element `e` of a tile on, which is not before the tile.
template <int N>
__device__ __forceinline__ uint32_t bits_at(const dropout_vector_args &a, const uint8_t *drawn,
                                            uint32_t e)
{
    const uint32_t pitch = a.channels + DROPOUT_PAD;
    uint32_t bits = 0;
    if (a.whole) {
        const uint32_t r = e / N;
        const uint32_t pixel = wd_fastdiv_quotient(r, a.by_channels);
        const uint32_t channel = (r - pixel * a.by_channels.divisor) * N;
        const uint8_t *from = drawn + (pixel / DROPOUT_GROUP) * pitch + channel;
        const uint32_t bit = pixel % DROPOUT_GROUP;
        if constexpr (N == 2) {
            bits = gathered(*reinterpret_cast<const uint16_t *>(from) >> bit);
        } else {
#pragma unroll
            for (int j = 0; j < N; j += 4) {
                bits |= gathered(*reinterpret_cast<const uint32_t *>(from + j) >> bit) << j;
            }
        }
        return bits;
    }
    const uint32_t pixel = wd_fastdiv_quotient(e, a.by_channels);
    uint32_t left = (pixel + 1) * a.channels - e; // of the pixel
    uint32_t bit = pixel % DROPOUT_GROUP;
    const uint8_t *from = drawn + (pixel / DROPOUT_GROUP) * pitch + a.channels - left;
#pragma unroll
    for (int j = 0; j < N; ++j) {
        bits |= (*from >> bit & 1u) << j;
        from += 1;
        if (--left > 0) continue;
        left = a.channels;
        bit += 1;
        from -= a.channels;
        if (bit == DROPOUT_GROUP) bit = 0, from += pitch;
    }
    return bits;
}

// Runs of a tile, from the boundary at or before its start; the first are loaded before numbers are
// drawn.
template <class T, bool BACKWARD> __device__ void pixels(const dropout_vector_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    constexpr int N = run_of<T>, RUNS = 4;
    const uint32_t pitch = a.channels + DROPOUT_PAD;
    const int step = RUNS * N * (int)blockDim.x;
    drawing d = {0, 0, true, 0};
    wd_wait_for_previous();
    if (!BACKWARD) d = read_state(a);
    const acc<T> scale = d.holds ? (acc<T>)a.scale : (acc<T>)NAN;
    for (uint32_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        const uint32_t first = tile * a.octets;
        const uint32_t octets = min(a.octets, a.all_octets - first);
        const int64_t start = (int64_t)first * DROPOUT_GROUP * a.channels;
        const int elements = (int)(octets * DROPOUT_GROUP * a.channels);
        int e = (int)threadIdx.x * N - (int)((a.shift + start) & (N - 1));
        wd_run<T, N> run[RUNS];
#pragma unroll
        for (int r = 0; r < RUNS; ++r) {
            const int at = e + r * N * (int)blockDim.x;
            if (at < elements) load(a, run[r], start + at);
        }
        // neighbours have neighbouring bytes of a channel's plane
        for (uint32_t i = threadIdx.x; i < a.octets * a.channels; i += blockDim.x) {
            const uint32_t channel = wd_fastdiv_quotient(i, a.by_octets);
            const uint32_t octet = i - channel * a.octets;
            const uint32_t image = wd_fastdiv_quotient(first + octet, a.by_plane);
            const uint32_t place = first + octet - image * a.by_plane.divisor;
            const uint32_t byte = (image * a.channels + channel) * a.by_plane.divisor + place;
            uint32_t bits;
            if (octet >= octets) continue;
            if (BACKWARD) {
                bits = a.mask[byte];
            } else {
                bits = draw(a, d, byte);
                a.mask[byte] = (uint8_t)bits;
                if (!d.holds) bits = WHOLE_BYTE;
            }
            shared[octet * pitch + channel] = (uint8_t)bits;
        }
        __syncthreads();
        while (e < elements) {
#pragma unroll
            for (int r = 0; r < RUNS; ++r) {
                const int at = e + r * N * (int)blockDim.x;
                if (at >= elements) continue;
                uint32_t bits = bits_at<N>(a, shared, (uint32_t)max(at, 0));
                if (at < 0) bits <<= -at;
                keep(scale, run[r], bits);
                store(a, run[r], start + at, start, start + elements);
            }
            e += step;
#pragma unroll
            for (int r = 0; r < RUNS; ++r) {
                const int at = e + r * N * (int)blockDim.x;
                if (at < elements) load(a, run[r], start + at);
            }
        }
        __syncthreads();
    }
    if (!BACKWARD) {
        advance(a, d);
        // what the caller gave beyond the last element
        for (int64_t byte =
                 a.count / DROPOUT_GROUP + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
             byte < a.mask_bytes; byte += (int64_t)gridDim.x * blockDim.x) {
            a.mask[byte] = 0;
        }
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/dropout/dropout_vector_kernels.def"
#include "ops/kernels_device.inc"
