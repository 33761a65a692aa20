// SPDX-License-Identifier: Apache-2.0
//
// What the resample kernels share: entries of tables, and how places of maxima lie in memory.
#ifndef WD_OPS_RESAMPLE_VECTOR_CUH
#define WD_OPS_RESAMPLE_VECTOR_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/item.cuh"
#include "gpu/device/vector.cuh"
#include "ops/resample/resample_vector_args.h"

namespace {

template <class T> using acc = decltype(wd_widen(T()));

__device__ __forceinline__ resample_entry entry_of(const resample_entry *entries, uint32_t i)
{
    const uint2 e = reinterpret_cast<const uint2 *>(entries)[i];
    return {(int32_t)e.x, (int32_t)e.y};
}

template <class I, int V> struct __align__(V * sizeof(I) < 16 ? V * sizeof(I) : 16) place_run
{
    I at[V];
};

template <class I, int V>
__device__ __forceinline__ void store_as(void *to, size_t at, const int32_t *place)
{
    place_run<I, V> run;
#pragma unroll
    for (int i = 0; i < V; ++i) run.at[i] = (I)place[i];
    *reinterpret_cast<place_run<I, V> *>(static_cast<I *>(to) + at) = run;
}

template <class I, int V>
__device__ __forceinline__ void load_as(const void *from, size_t at, int32_t *place)
{
    const place_run<I, V> run =
        *reinterpret_cast<const place_run<I, V> *>(static_cast<const I *>(from) + at);
#pragma unroll
    for (int i = 0; i < V; ++i) place[i] = (int32_t)run.at[i];
}

// Integers of `size` bytes that hold every place, whether they have a sign or not.
template <int V>
__device__ __forceinline__ void store_places(void *to, int size, size_t at, const int32_t *place)
{
    if (size == 1) store_as<uint8_t, V>(to, at, place);
    else if (size == 4) store_as<int32_t, V>(to, at, place);
    else store_as<int64_t, V>(to, at, place);
}

template <int V>
__device__ __forceinline__ void load_places(const void *from, int size, size_t at, int32_t *place)
{
    if (size == 1) load_as<uint8_t, V>(from, at, place);
    else if (size == 4) load_as<int32_t, V>(from, at, place);
    else load_as<int64_t, V>(from, at, place);
}

// The largest so far and its place, -1 before the first candidate; as the definition has it.
template <class A> struct largest {
    A value;
    int32_t place;

    __device__ __forceinline__ void offer(bool propagate, A v, int32_t at)
    {
        const bool nan = v != v, had_nan = value != value;
        bool takes = v > value || (v == value && at < place);
        if (nan || had_nan) takes = nan && (!had_nan || at < place);
        if (place < 0) takes = true;
        if (nan && !propagate) takes = false;
        value = takes ? v : value;
        place = takes ? at : place;
    }
};

} // namespace

#endif
