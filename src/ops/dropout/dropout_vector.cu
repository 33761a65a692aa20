// SPDX-License-Identifier: Apache-2.0
//
// Dropout in one pass: elements are read and written once, 16 bytes at a time, and the mask by whole
// bytes. Numbers, masks and values are the definition's, bit for bit. The last block that has read
// the state advances it.
#include <type_traits>

#include "gpu/device/depend.cuh"
#include "gpu/device/philox.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/dropout/dropout_vector_args.h"

namespace {

template <class T> using acc = decltype(wd_widen(T()));
template <class T> constexpr int run_of = DROPOUT_BYTES / (int)sizeof(T);

constexpr uint32_t WHOLE_WARP = 0xffffffffu;
constexpr uint32_t WHOLE_BYTE = 0xffu;
constexpr uint32_t NOWHERE = UINT32_MAX;

struct drawing {
    wd_drawing numbers;
    bool holds;
    unsigned long long place; // of the block among those that have read the state; thread 0's
};

// All threads of the block come, once. A block that is alone counts nothing.
__device__ __forceinline__ drawing read_state(const dropout_vector_args &a)
{
    wd_random_state *state = a.state;
    drawing d = {wd_drawing_of(state->seed, state->offset), wd_random_state_holds(state) != 0, 0};
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
    a.state->offset = d.numbers.offset + 1;
    a.state->readers = 0;
}

// The bits of elements 8 * byte .. 8 * byte + 7.
__device__ __forceinline__ uint32_t draw(const dropout_vector_args &a, const drawing &d,
                                         uint32_t byte)
{
    uint32_t number[4];
    uint32_t bits;
    wd_draw_chances(d.numbers, a.threshold, byte, number);
    bits = wd_bits_above(number);
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

// Element j, an AS, is kept where bit j * STEP of a word's is set; a word has 32 / STEP of them. Where the
// state does not hold, all is kept and `scale` is NaN.
template <int STEP, class AS, class T, int N>
__device__ __forceinline__ void keep_as(acc<T> scale, wd_run<T, N> &run, const uint32_t *bits)
{
    constexpr int IN_WORD = 32 / STEP;
    acc<T> v[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
        const bool kept = bits[j / IN_WORD] & 1u << (j % IN_WORD * STEP);
        AS element;
        const T bits_of_it = run.get(j);
        memcpy(&element, &bits_of_it, sizeof element);
        v[j] = kept ? scale * wd_widen(element) : (acc<T>)0;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        if constexpr (sizeof(T) > 2) run.put(j, v[j]);
        else if (j % 2 == 0) run.word[j / 2] = pair_of<AS>(v[j], v[j + 1]);
    }
}

// Of two bytes a kernel has fp16 and bf16.
template <int STEP, class T, int N>
__device__ __forceinline__ void keep(const dropout_vector_args &a, acc<T> scale, wd_run<T, N> &run,
                                     const uint32_t *bits)
{
    if constexpr (sizeof(T) == 2) {
        if (a.bfloat) {
            keep_as<STEP, bfloat16>(scale, run, bits);
            return;
        }
    }
    keep_as<STEP, T>(scale, run, bits);
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

template <class T, int N>
__device__ __forceinline__ void put(const dropout_vector_args &a, const wd_run<T, N> &run,
                                    int64_t at)
{
    T *y = static_cast<T *>(a.y) + at;
    if (a.streaming) run.store_streaming(y);
    else run.store(y);
}

// Elements from `at` on, but for what is before `low` or not before `high`.
template <class T, int N>
__device__ __forceinline__ void store(const dropout_vector_args &a, const wd_run<T, N> &run,
                                      int64_t at, int64_t low, int64_t high)
{
    T *y = static_cast<T *>(a.y);
    if (at >= low && at + N <= high) {
        put(a, run, at);
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
    int64_t base = ((int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * own;
    wd_run<T, V> run[RUNS];
    drawing d = {{}, true, 0};
    bool whole = false; // all that the warp has next is x's
    const auto fetch = [&] {
        const int64_t start = (base - before) * DROPOUT_GROUP - a.shift;
        whole = a.alike && start >= 0 && start + 32 * RUNS * V <= a.count;
        if (whole) {
            const T *x = static_cast<const T *>(a.x) + start + lane * V;
#pragma unroll
            for (int u = 0; u < RUNS; ++u) run[u].load(x + u * 32 * V);
            return;
        }
#pragma unroll
        for (int u = 0; u < RUNS; ++u) load(a, run[u], start + (u * 32 + lane) * (int64_t)V);
    };
    wd_wait_for_previous();
    fetch(); // before the state: one trip to memory, not two
    if (!BACKWARD) d = read_state(a);
    const acc<T> scale = d.holds ? (acc<T>)a.scale : (acc<T>)NAN;
    while (base < a.groups) {
        const int64_t start = (base - before) * DROPOUT_GROUP - a.shift;
        uint32_t bits = 0; // byte g is the g-th that a lane has
        if (BACKWARD) {
            uint32_t byte_of[G];
#pragma unroll
            for (int g = 0; g < G; ++g) {
                const int64_t byte = base - before + g * 32 + lane;
                byte_of[g] = byte >= 0 && byte < a.mask_bytes ? a.mask[byte] : 0;
            }
#pragma unroll
            for (int g = 0; g < G; ++g) bits |= byte_of[g] << (8 * g);
        } else {
#pragma unroll 1 // many numbers at once take more registers than the loads leave
            for (int g = 0; g < G; ++g) {
                const uint32_t byte = (uint32_t)base - before + g * 32 + lane;
                const uint32_t drawn = draw(a, d, byte);
                if (g * 32 + lane >= before && byte < (uint32_t)a.mask_bytes) {
                    a.mask[byte] = (uint8_t)drawn;
                }
                bits |= drawn << (8 * g);
            }
            if (!d.holds) bits = UINT32_MAX;
        }
        if (before) { // the lowest bits of each byte are the highest of the byte before
            const uint32_t last = __shfl_sync(WHOLE_WARP, bits, 31) << 8;
            const uint32_t next = __shfl_sync(WHOLE_WARP, bits, (lane + 31) % 32);
            const uint32_t low = ((1u << a.shift) - 1u) * 0x01010101u;
            bits = (bits << a.shift & ~low) |
                   ((lane > 0 ? next : last) >> (DROPOUT_GROUP - a.shift) & low);
        }
#pragma unroll
        for (int u = 0; u < RUNS; ++u) {
            const int64_t at = start + (u * 32 + lane) * V;
            uint32_t mine = bits;
            if (R > 1) {
                mine = __shfl_sync(WHOLE_WARP, mine, u % R * (32 / R) + lane / R);
                mine >>= lane % R * V;
            }
            mine >>= u / R * 8;
            keep<1>(a, scale, run[u], &mine);
            if (u * 32 + lane < before * R) continue;
            if (whole) put(a, run[u], at);
            else store(a, run[u], at, 0, a.count);
        }
        base += step;
        fetch();
    }
    if (!BACKWARD) advance(a, d);
}

// ---- Channels are neighbours ----

// N bytes of shared memory, aligned to as many.
template <int N> __device__ __forceinline__ void load_bytes(const uint8_t *from, uint32_t *to)
{
    if constexpr (N == 2) {
        to[0] = *reinterpret_cast<const uint16_t *>(from);
    } else {
#pragma unroll
        for (int w = 0; w < N / 4; ++w) to[w] = reinterpret_cast<const uint32_t *>(from)[w];
    }
}

// Bytes of the mask behind those of the last element, which the caller gave besides.
__device__ __forceinline__ void clear_rest(const dropout_vector_args &a)
{
    const int64_t first = (a.count + DROPOUT_GROUP - 1) / DROPOUT_GROUP;
    for (int64_t byte = first + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; byte < a.mask_bytes;
         byte += (int64_t)gridDim.x * blockDim.x) {
        a.mask[byte] = 0;
    }
}

// Runs of a tile are whole runs of channels; the first are loaded before numbers are drawn.
template <class T, bool BACKWARD> __device__ void pixels(const dropout_vector_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    constexpr int N = run_of<T>, RUNS = 4, AT_ONCE = BACKWARD ? 4 : 1;
    const T *x = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    const uint32_t pitch = a.channels + DROPOUT_PAD;
    drawing d = {{}, true, 0};
    acc<T> scale = (acc<T>)a.scale;
    wd_wait_for_previous();
    for (uint32_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        const uint32_t first = tile * a.octets;
        const uint32_t octets = min(a.octets, a.all_octets - first);
        const int64_t start = (int64_t)first * DROPOUT_GROUP * a.channels;
        const uint32_t runs = octets * DROPOUT_GROUP * a.by_channels.divisor;
        wd_run<T, N> run[RUNS];
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            const uint32_t r = threadIdx.x + i * blockDim.x;
            if (r < runs) run[i].load(x + start + r * N);
        }
        if (!BACKWARD && tile == blockIdx.x) d = read_state(a);
        if (!d.holds) scale = (acc<T>)NAN;
        // neighbours have neighbouring bytes of a channel's plane
        for (uint32_t i = threadIdx.x; i < a.octets * a.channels; i += AT_ONCE * blockDim.x) {
            uint32_t byte[AT_ONCE], to[AT_ONCE], bits[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                const uint32_t channel = wd_fastdiv_quotient(i + k * blockDim.x, a.by_octets);
                const uint32_t octet = i + k * blockDim.x - channel * a.octets;
                const uint32_t image = wd_fastdiv_quotient(first + octet, a.by_plane);
                const uint32_t place = first + octet - image * a.by_plane.divisor;
                byte[k] = (image * a.channels + channel) * a.by_plane.divisor + place;
                to[k] = octet < octets && channel < a.channels ? octet * pitch + channel : NOWHERE;
                if (BACKWARD && to[k] != NOWHERE) bits[k] = a.mask[byte[k]];
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                if (to[k] == NOWHERE) continue;
                if (!BACKWARD) {
                    bits[k] = draw(a, d, byte[k]);
                    a.mask[byte[k]] = (uint8_t)bits[k];
                    if (!d.holds) bits[k] = WHOLE_BYTE;
                }
                shared[to[k]] = (uint8_t)bits[k];
            }
        }
        __syncthreads();
        for (uint32_t base = 0; base < runs; base += RUNS * blockDim.x) {
            if (base > 0) {
#pragma unroll
                for (int i = 0; i < RUNS; ++i) {
                    const uint32_t r = base + threadIdx.x + i * blockDim.x;
                    if (r < runs) run[i].load(x + start + r * N);
                }
            }
#pragma unroll
            for (int i = 0; i < RUNS; ++i) {
                const uint32_t r = base + threadIdx.x + i * blockDim.x;
                const uint32_t pixel = wd_fastdiv_quotient(r, a.by_channels);
                const uint32_t channel = (r - pixel * a.by_channels.divisor) * N;
                uint32_t kept[N > 4 ? N / 4 : 1];
                if (r >= runs) continue;
                load_bytes<N>(shared + pixel / DROPOUT_GROUP * pitch + channel, kept);
#pragma unroll
                for (int w = 0; w < (N > 4 ? N / 4 : 1); ++w) kept[w] >>= pixel % DROPOUT_GROUP;
                keep<8>(a, scale, run[i], kept);
                if (a.streaming) run[i].store_streaming(y + start + r * N);
                else run[i].store(y + start + r * N);
            }
        }
        __syncthreads();
    }
    if (!BACKWARD) {
        advance(a, d);
        clear_rest(a);
    }
}

// Runs of a tile begin at boundaries of y, the first of them at or before the tile: `e` counts elements
// from there, those of shared memory as well.
template <class T, bool BACKWARD> __device__ void tiles(const dropout_vector_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    constexpr int N = run_of<T>, RUNS = 4, AT_ONCE = BACKWARD ? 4 : 1;
    drawing d = {{}, true, 0};
    acc<T> scale = (acc<T>)a.scale;
    wd_wait_for_previous();
    for (uint32_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        const uint32_t row = wd_fastdiv_quotient(tile, a.by_groups);
        const uint32_t channel = (tile - row * a.by_groups.divisor) * a.tile_channels;
        const uint32_t image = wd_fastdiv_quotient(row, a.by_spans);
        const uint32_t pixel = (row - image * a.by_spans.divisor) * a.tile_pixels;
        const int channels = (int)min(a.tile_channels, a.channels - channel);
        const int pixels = (int)min(a.tile_pixels, a.plane - pixel);
        const int64_t start = ((int64_t)image * a.plane + pixel) * a.channels + channel;
        // of all channels, or of whole runs of some
        const int shift = a.contiguous ? (int)((a.shift + start) & (N - 1)) : 0;
        const int end = shift + pixels * (int)a.tile_channels;
        const int64_t low = a.contiguous ? start : 0;
        const int64_t high = a.contiguous ? start + pixels * channels : a.count;
        for (int base = 0; base < end; base += RUNS * N * (int)blockDim.x) {
            wd_run<T, N> run[RUNS];
            int64_t at[RUNS];
#pragma unroll
            for (int i = 0; i < RUNS; ++i) {
                const int e = base + ((int)threadIdx.x + i * (int)blockDim.x) * N;
                at[i] = start + e - shift;
                if (!a.contiguous) {
                    const uint32_t p = wd_fastdiv_quotient((uint32_t)e, a.by_channels);
                    const int c = e - (int)(p * a.tile_channels);
                    at[i] = c < channels ? start + (int64_t)p * a.channels + c : high;
                }
                if (e >= end) at[i] = high;
                if (at[i] < high) load(a, run[i], at[i]);
            }
            if (!BACKWARD && base == 0 && tile == blockIdx.x) d = read_state(a);
            if (!d.holds) scale = (acc<T>)NAN;
            for (uint32_t i = threadIdx.x; base == 0 && i < a.tile_channels * a.row_groups;
                 i += AT_ONCE * blockDim.x) {
                uint32_t byte[AT_ONCE], bits[AT_ONCE];
                int place[AT_ONCE], pixel_of[AT_ONCE];
#pragma unroll
                for (int u = 0; u < AT_ONCE; ++u) {
                    const uint32_t k = wd_fastdiv_quotient(i + u * blockDim.x, a.by_channels);
                    const int c = (int)(i + u * blockDim.x - k * a.tile_channels);
                    const uint64_t index =
                        ((uint64_t)image * a.channels + channel + (uint32_t)c) * a.plane + pixel;
                    const int p = (int)(k * DROPOUT_GROUP) - (int)(index % DROPOUT_GROUP);
                    byte[u] = (uint32_t)(index / DROPOUT_GROUP) + k;
                    pixel_of[u] = c < channels && k < a.row_groups ? p : pixels;
                    place[u] = shift + p * (int)a.tile_channels + c;
                    if (BACKWARD && pixel_of[u] < pixels) bits[u] = a.mask[byte[u]];
                }
#pragma unroll
                for (int u = 0; u < AT_ONCE; ++u) {
                    const int p = pixel_of[u];
                    uint8_t *to = shared + place[u];
                    if (p >= pixels) continue;
                    if (!BACKWARD) {
                        bits[u] = draw(a, d, byte[u]);
                        // that of the byte's first element
                        if (p >= 0) a.mask[byte[u]] = (uint8_t)bits[u];
                        if (!d.holds) bits[u] = WHOLE_BYTE;
                    }
                    if (p >= 0 && p + DROPOUT_GROUP <= pixels) {
#pragma unroll
                        for (int j = 0; j < DROPOUT_GROUP; ++j, to += a.tile_channels) {
                            *to = (uint8_t)(bits[u] >> j);
                        }
                        continue;
                    }
#pragma unroll
                    for (int j = 0; j < DROPOUT_GROUP; ++j, to += a.tile_channels) {
                        if ((uint32_t)(p + j) < (uint32_t)pixels) *to = (uint8_t)(bits[u] >> j);
                    }
                }
            }
            if (base == 0) __syncthreads();
#pragma unroll
            for (int i = 0; i < RUNS; ++i) {
                const int e = base + ((int)threadIdx.x + i * (int)blockDim.x) * N;
                uint32_t kept[N > 4 ? N / 4 : 1];
                if (at[i] >= high) continue;
                load_bytes<N>(shared + e, kept);
                keep<8>(a, scale, run[i], kept);
                store(a, run[i], at[i], low, high);
            }
        }
        __syncthreads();
    }
    if (!BACKWARD) {
        advance(a, d);
        clear_rest(a);
    }
}

} // namespace

// 64 registers: four blocks of a processor are enough bytes in flight
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/dropout/dropout_vector_kernels.def"
#include "ops/kernels_device.inc"
