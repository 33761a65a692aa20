// SPDX-License-Identifier: Apache-2.0
//
// What the reduce kernels share: terms, states that are joined over lanes, blocks and clusters, and
// the way of a state into y. A thread sums in single precision for some rows at most, everything
// further in double; the order is fixed by the shape.
#ifndef WD_OPS_REDUCE_DEVICE_CUH
#define WD_OPS_REDUCE_DEVICE_CUH

#include <type_traits>

#include "gpu/device/cluster.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/signs.cuh"
#include "gpu/device/vector.cuh"
#include "ops/reduce/reduce_vector_args.h"

namespace {

enum { SUM, PRODUCT, PICK };

template <class T> constexpr int run_of = REDUCE_BYTES / (int)sizeof(T);
template <class T> using acc = decltype(wd_widen(T()));

constexpr uint32_t WHOLE_WARP = 0xffffffffu;

// ---- Terms ----

__device__ __forceinline__ float turned(const reduce_vector_args &a, float v)
{
    return __uint_as_float((__float_as_uint(v) & a.keep) ^ a.flip);
}
__device__ __forceinline__ double turned(const reduce_vector_args &a, double v)
{
    const uint32_t high = ((uint32_t)__double2hiint(v) & a.keep) ^ a.flip;
    return __hiloint2double((int)high, __double2loint(v));
}

template <int OP, class A> __device__ __forceinline__ A term(const reduce_vector_args &a, A v)
{
    if (OP == PRODUCT) return a.skips_zeros && v == (A)0 ? (A)1 : v;
    return turned(a, v);
}

// Of two bytes a kernel has fp16 and bf16.
template <class T> __device__ __forceinline__ acc<T> widened(const reduce_vector_args &a, T element)
{
    if constexpr (sizeof(T) == 2) {
        if (a.bfloat) {
            uint16_t bits;
            memcpy(&bits, &element, sizeof bits);
            return __uint_as_float((uint32_t)bits << 16);
        }
    }
    return wd_widen(element);
}

// The terms of a run; KNOWN: T is its type.
template <int OP, bool KNOWN = false, class T, int V>
__device__ __forceinline__ void take(const reduce_vector_args &a, const wd_run<T, V> &run,
                                     acc<T> *w)
{
#pragma unroll
    for (int j = 0; j < V; ++j) {
        w[j] = term<OP>(a, KNOWN ? wd_widen(run.get(j)) : widened(a, run.get(j)));
    }
}

// What a term is that counts for nothing.
template <int OP, class A> __device__ __forceinline__ A neutral(const reduce_vector_args &a)
{
    if (OP == SUM) return (A)0;
    if (OP == PRODUCT) return (A)1;
    return a.propagate ? -(A)INFINITY : (A)NAN;
}

__device__ __forceinline__ float add_product(float a, float b, float c)
{
    return fmaf(a, b, c);
}
__device__ __forceinline__ double add_product(double a, double b, double c)
{
    return fma(a, b, c);
}

__device__ __forceinline__ float larger(float a, float b)
{
    return fmaxf(a, b); // the other one where one is NaN
}
__device__ __forceinline__ double larger(double a, double b)
{
    return fmax(a, b);
}

// NaN where one is.
__device__ __forceinline__ float larger_or_nan(float a, float b)
{
    return wd_larger_or_nan(a, b);
}
__device__ __forceinline__ double larger_or_nan(double a, double b)
{
    return a != a || a >= b ? a : b;
}

// ---- States ----

// Values picked are compared as integers: NaN is the greatest, or the least but for nothing at all.
__device__ __forceinline__ int32_t key_of(float v, bool propagate)
{
    const int32_t bits = __float_as_int(v + 0.0f); // one zero
    if (v != v) return propagate ? INT32_MAX : INT32_MIN + 1;
    return bits ^ (bits >> 31 & INT32_MAX);
}
__device__ __forceinline__ int64_t key_of(double v, bool propagate)
{
    const int64_t bits = __double_as_longlong(v + 0.0);
    if (v != v) return propagate ? INT64_MAX : INT64_MIN + 1;
    return bits ^ (bits >> 63 & INT64_MAX);
}
__device__ __forceinline__ float value_of(int32_t key)
{
    return __int_as_float(key ^ (key >> 31 & INT32_MAX));
}
__device__ __forceinline__ double value_of(int64_t key)
{
    return __longlong_as_double(key ^ (key >> 63 & INT64_MAX));
}

template <class A> struct key_type;
template <> struct key_type<float> {
    typedef int32_t type;
    static constexpr int32_t nothing = INT32_MIN;
};
template <> struct key_type<double> {
    typedef int64_t type;
    static constexpr int64_t nothing = INT64_MIN;
};

template <int OP, class A> struct state {
    double value;

    static __device__ __forceinline__ state none()
    {
        return {OP == SUM ? 0.0 : 1.0};
    }
    __device__ __forceinline__ void join(const state &other)
    {
        if (OP == SUM) value += other.value;
        else value *= other.value;
    }
};

template <class A> struct state<PICK, A> {
    typename key_type<A>::type key;
    typename key_type<A>::type index;

    static __device__ __forceinline__ state none()
    {
        return {key_type<A>::nothing, INT32_MAX};
    }
    __device__ __forceinline__ void join(const state &other)
    {
        if (other.key > key || (other.key == key && other.index < index)) *this = other;
    }
};

template <class S> __device__ __forceinline__ S of_lane_across(const S &mine, uint32_t lanes)
{
    constexpr int WORDS = (int)sizeof(S) / 4;
    uint32_t word[WORDS];
    S other;
    memcpy(word, &mine, sizeof mine);
#pragma unroll
    for (int w = 0; w < WORDS; ++w) word[w] = __shfl_xor_sync(WHOLE_WARP, word[w], lanes);
    memcpy(&other, word, sizeof other);
    return other;
}

template <class S> __device__ __forceinline__ S of_block(const S *mine, uint32_t rank)
{
    constexpr int WORDS = (int)sizeof(S) / 8;
    uint64_t word[WORDS];
    S other;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        word[w] = wd_of_cluster(reinterpret_cast<const uint64_t *>(mine) + w, rank);
    }
    memcpy(&other, word, sizeof other);
    return other;
}

// ---- Two bytes and a place in one number ----

// A value as integers compare, above the place, of which the first is the greatest. Two halves: the
// turned value plus zero, which makes one of two zeros and of all that is no number.
template <bool BFLOAT>
__device__ __forceinline__ uint32_t ordered(const reduce_vector_args &a, uint32_t two)
{
    const uint32_t keep = a.keep >> 16 | (a.keep & 0xffff0000u), flip = a.flip >> 16 | a.flip;
    two = (two & keep) ^ flip;
    two = BFLOAT ? wd_plus_zero_bf16(two) : wd_plus_zero_f16(two);
    two ^= wd_signs<0xbb99>(two, 0) & 0x7fff7fffu;
    // NaN, the greatest, becomes the least
    return a.propagate ? two : two + 0x00010001u;
}
__device__ __forceinline__ uint32_t ordered(const reduce_vector_args &a, uint32_t two)
{
    return a.bfloat ? ordered<true>(a, two) : ordered<false>(a, two);
}

__device__ __forceinline__ state<PICK, float> picked(const reduce_vector_args &a, int32_t key)
{
    uint32_t bits = (uint32_t)key >> 16;
    half16 value;
    if (key == INT32_MIN) return state<PICK, float>::none();
    if (!a.propagate) bits = (bits - 1) & 0xffffu;
    bits ^= (bits >> 15) * 0x7fffu;
    const uint16_t half_word = (uint16_t)bits;
    memcpy(&value, &half_word, sizeof value);
    return {key_of(widened(a, value), a.propagate != 0), 0xffff - (int32_t)(key & 0xffff)};
}

// ---- Into y ----

template <class A> __device__ __forceinline__ A ended(const reduce_vector_args &a, double sum)
{
    A v = (A)sum;
    if (a.end == REDUCE_MEAN) v /= (A)a.terms;
    if (a.end == REDUCE_ROOT) v = sqrt(v);
    return v;
}

template <int OP, class A>
__device__ __forceinline__ A result(const reduce_vector_args &a, const state<OP, A> &s)
{
    A v;
    if constexpr (OP == PICK) {
        // signs that were turned turn back; zero is plus zero
        v = value_of(s.key);
        v = a.flip ? -v + (A)0 : v;
    } else {
        v = ended<A>(a, s.value);
    }
    return a.alpha != 0.0 ? (A)a.alpha * v : (A)0;
}

template <class T, class A>
__device__ __forceinline__ void blend_at(const reduce_vector_args &a, int64_t at, A v)
{
    T *to = static_cast<T *>(a.y) + at;
    if (a.beta != 0.0) v += (A)a.beta * wd_widen(*to);
    wd_narrow(*to, v);
}

__device__ __forceinline__ void put_index(const reduce_vector_args &a, int64_t at, int64_t index)
{
    switch (a.index_bytes) {
    case 8: static_cast<uint64_t *>(a.indices)[at] = (uint64_t)index; return;
    case 2: static_cast<uint16_t *>(a.indices)[at] = (uint16_t)index; return;
    case 1: static_cast<uint8_t *>(a.indices)[at] = (uint8_t)index; return;
    default: static_cast<uint32_t *>(a.indices)[at] = (uint32_t)index; return;
    }
}

// Where an output lies that is not where it is counted.
__device__ __forceinline__ int64_t stray_at(const reduce_vector_args &a, const int64_t *stride,
                                            uint32_t output)
{
    int64_t at = 0;
    for (int d = a.kept - 1; d >= 0; --d) {
        const uint32_t rest = output / a.kept_dim[d];
        at += (int64_t)(output - rest * a.kept_dim[d]) * stride[d];
        output = rest;
    }
    return at;
}

template <int OP, class A>
__device__ __forceinline__ void put(const reduce_vector_args &a, uint32_t output,
                                    const state<OP, A> &s)
{
    const A v = result<OP, A>(a, s);
    const int64_t at = a.y_strays ? stray_at(a, a.y_stride, output) : output;
    if constexpr (sizeof(A) == 8) {
        blend_at<double>(a, at, v);
    } else {
        if (a.y_type == REDUCE_F32) blend_at<float>(a, at, v);
        else if (a.y_type == REDUCE_F16) blend_at<half16>(a, at, v);
        else blend_at<bfloat16>(a, at, v);
    }
    if constexpr (OP == PICK) {
        if (a.indices) {
            put_index(a, a.index_strays ? stray_at(a, a.index_stride, output) : output, s.index);
        }
    }
}

template <class T, int V, class A>
__device__ __forceinline__ void put_run(const reduce_vector_args &a, uint32_t output, const A *v)
{
    wd_run<T, V> run;
#pragma unroll
    for (int j = 0; j < V; ++j) {
        T element;
        wd_narrow(element, v[j]);
        run.put(j, element);
    }
    run.store(static_cast<T *>(a.y) + output);
}

// Whether V neighbouring outputs can be stored at once.
template <int V> __device__ __forceinline__ bool are_runs(const reduce_vector_args &a)
{
    return V > 1 && a.y_runs && (!a.indices || a.index_runs);
}

template <int OP, class A, int V>
__device__ __forceinline__ void put_many(const reduce_vector_args &a, uint32_t output,
                                         const state<OP, A> *s)
{
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = result<OP, A>(a, s[j]);
    if constexpr (sizeof(A) == 8) {
        put_run<double, V>(a, output, v);
    } else {
        if (a.y_type == REDUCE_F32) put_run<float, V>(a, output, v);
        else if (a.y_type == REDUCE_F16) put_run<half16, V>(a, output, v);
        else put_run<bfloat16, V>(a, output, v);
    }
    if constexpr (OP == PICK) {
        if (!a.indices) return;
        uint32_t *to = static_cast<uint32_t *>(a.indices) + output;
#pragma unroll
        for (int j = 0; j < V; j += 2) {
            *reinterpret_cast<uint2 *>(to + j) =
                make_uint2((uint32_t)s[j].index, (uint32_t)s[j + 1].index);
        }
    }
}

// ---- Joining ----

// How many lanes, a power of two up to `most`, share a column so that each thread has one at most.
__device__ __forceinline__ uint32_t lanes_of_column(uint32_t width, uint32_t most)
{
    while (most > 1 && width * most > blockDim.x) most /= 2;
    return most;
}

// Outputs from `first` on, of what the blocks of the cluster have of `width` of them.
template <int OP, class A>
__device__ __forceinline__ void put_cluster(const reduce_vector_args &a, const state<OP, A> *block,
                                            uint32_t width, uint32_t first)
{
    using S = state<OP, A>;
    const uint32_t sharing = lanes_of_column(width, a.cluster);
    const uint32_t r = threadIdx.x & (sharing - 1);
    for (uint32_t done = 0; done < width; done += blockDim.x / sharing) {
        const uint32_t c = done + threadIdx.x / sharing;
        S all = S::none();
        if (c < width) {
            for (uint32_t t = r; t < a.cluster; t += sharing) all.join(of_block(block + c, t));
        }
        for (uint32_t o = sharing / 2; o > 0; o /= 2) all.join(of_lane_across(all, o));
        if (r == 0 && c < width && first + c < a.outputs) put<OP, A>(a, first + c, all);
    }
}

// Joins what the block's threads have of V columns each, `across` (a power of two) side by side, and
// what the cluster's blocks have, and puts the results: outputs from `first` on, or a segment's
// states. All threads come.
template <int OP, class A, int V>
__device__ __forceinline__ void conclude(const reduce_vector_args &a, state<OP, A> *mine,
                                         uint32_t across, uint32_t first, uint32_t segment)
{
    using S = state<OP, A>;
    const bool by_warp = across < 32;
    const uint32_t x = threadIdx.x & (across - 1);
    const uint32_t slices = by_warp ? blockDim.x / 32 : blockDim.x / across;
    const uint32_t slice = by_warp ? threadIdx.x / 32 : threadIdx.x / across;
    const uint32_t pitch = across + 1; // keeps the columns of a thread in different banks
    WD_DYNAMIC_SHARED(unsigned char, shared);
    S *part = reinterpret_cast<S *>(shared);
    S *block = part + slices * V * pitch;
    uint32_t width = across * V;
#pragma unroll
    for (int j = 0; j < V; ++j) {
        for (uint32_t o = across; o < 32; o *= 2) mine[j].join(of_lane_across(mine[j], o));
    }
    if (!by_warp || threadIdx.x % 32 < across) {
#pragma unroll
        for (int j = 0; j < V; ++j) part[(slice * V + j) * pitch + x] = mine[j];
    }
    __syncthreads();
    // several lanes a column: none waits for many
    const uint32_t sharing = lanes_of_column(width, min(slices, 32u));
    const uint32_t s = threadIdx.x & (sharing - 1);
    for (uint32_t done = 0; done < width; done += blockDim.x / sharing) {
        const uint32_t c = done + threadIdx.x / sharing;
        S all = S::none();
        if (c < width) {
            for (uint32_t t = s; t < slices; t += sharing) {
                all.join(part[(t * V + c % V) * pitch + c / V]);
            }
        }
        for (uint32_t o = sharing / 2; o > 0; o /= 2) all.join(of_lane_across(all, o));
        if (s == 0 && c < width) block[c] = all;
    }
    __syncthreads();
    if (a.joined) { // columns of joined rows fall on few outputs
        for (uint32_t k = threadIdx.x; k < a.outputs; k += blockDim.x) {
            S all = S::none();
            uint32_t c = k + (uint32_t)a.shift;
            for (uint32_t done = 0; done < a.pitch; done += a.outputs, c += a.outputs) {
                while (c >= a.pitch) c -= a.pitch;
                all.join(block[c]);
            }
            part[k] = all;
        }
        __syncthreads();
        block = part;
        width = a.outputs;
    }
    if (a.cluster > 1) {
        wd_cluster_arrive();
        wd_cluster_wait();
        if (segment == 0) put_cluster<OP, A>(a, block, width, first);
        wd_cluster_arrive(); // nobody ends before it has been read
        wd_cluster_wait();
        return;
    }
    for (uint32_t c = threadIdx.x; c < width && first + c < a.outputs; c += blockDim.x) {
        if (a.segments > 1) {
            static_cast<S *>(a.partial)[(int64_t)segment * a.outputs + first + c] = block[c];
        } else {
            put<OP, A>(a, first + c, block[c]);
        }
    }
}

} // namespace

#endif
