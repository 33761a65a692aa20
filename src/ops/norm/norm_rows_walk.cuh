// SPDX-License-Identifier: Apache-2.0
//
// A thread's place in the rows that it walks through, its units on their way to shared memory and
// back, and the parameters of its columns. A thread reads what it copied itself: no barriers.
#ifndef WD_OPS_NORM_ROWS_WALK_CUH
#define WD_OPS_NORM_ROWS_WALK_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/vector.cuh"
#include "ops/norm/norm_rows_exchange.cuh"

namespace {

// Elements of a unit, and units of a thread that has C columns.
template <class T> constexpr int EACH = NORM_ROWS_UNIT / (int)sizeof(T);
template <class T, int C> constexpr int UNITS = C / EACH<T>;
template <class T> using unit = wd_run<T, EACH<T>>;

// Where a thread is in its row.
struct seat {
    uint32_t rank; // of the block in its cluster
    uint32_t group;
    uint32_t lane;   // in the group
    uint32_t width;  // lanes that shuffle with one another
    uint32_t units;  // of the thread
    uint32_t stride; // columns from one to the next
    int32_t first;   // column of its first unit, negative where that begins in the row before
    uint32_t count;  // of its columns
};

// Without edges rows begin and end on boundaries of units, and every thread has all its units.
template <class T, bool EDGES>
__device__ __forceinline__ seat seat_of(const norm_rows_args &a, int64_t block)
{
    constexpr uint32_t E = EACH<T>;
    seat s;
    uint32_t head = 0;
    s.rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    s.group = threadIdx.x / a.lanes;
    s.lane = threadIdx.x - s.group * a.lanes;
    s.width = min(a.lanes, WARP);
    s.stride = a.lanes * E;
    if (EDGES && !a.apart) {
        const uint64_t at = reinterpret_cast<uintptr_t>(a.x) / sizeof(T);
        head = (uint32_t)(at + (uint64_t)(block * a.groups + s.group) * a.length) % E;
    }
    const uint32_t all = (a.length + head + E - 1) / E;
    const uint32_t before = s.rank * a.share;
    const uint32_t here = min(a.share, all - min(all, before));
    s.units = s.lane < here ? (here - s.lane - 1) / a.lanes + 1 : 0;
    s.first = (int32_t)((before + s.lane) * E) - (int32_t)head;
    s.count = s.units * E;
    if (EDGES && s.units > 0) {
        const int32_t last = s.first + (int32_t)((s.units - 1) * s.stride + E);
        if (s.first < 0) s.count -= (uint32_t)-s.first;
        if (last > (int32_t)a.length) s.count -= (uint32_t)last - a.length;
    }
    return s;
}

__device__ __forceinline__ int32_t column_of(const seat &s, int v)
{
    return s.first + (int32_t)(v * s.stride);
}

// Whether unit v is not all the row's.
template <class T> __device__ __forceinline__ bool is_edge(const norm_rows_args &a, int32_t column)
{
    return column < 0 || column + EACH<T> > (int32_t)a.length;
}

__device__ __forceinline__ bool inside(const norm_rows_args &a, int32_t column)
{
    return (uint32_t)column < a.length;
}

// Of tensor `which` of TENSORS in place `at` of the ring.
template <int TENSORS, int UNITS>
__device__ __forceinline__ uint4 *place_of(uint4 *ring, uint32_t at, int which, int v)
{
    return ring + ((at * TENSORS + which) * UNITS + v) * blockDim.x + threadIdx.x;
}

// A row on its way to the ring. Units at its ends come whole, with some bytes of its neighbours (or
// beside the tensor, but in the same sixteen aligned bytes), which nothing is made of.
template <class T, int C, bool EDGES, int TENSORS>
__device__ __forceinline__ void ask(const norm_rows_args &a, const seat &s, uint4 *ring,
                                    uint32_t at, int which, const void *from, int64_t row)
{
    const T *first = static_cast<const T *>(from) + (row * a.length + s.first);
    if (row >= a.rows) return;
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        if (EDGES && (uint32_t)v >= s.units) continue;
        uint4 *to = place_of<TENSORS, UNITS<T, C>>(ring, at, which, v);
        if (EDGES && a.apart) {
            unit<T> one;
#pragma unroll
            for (int i = 0; i < EACH<T>; ++i) {
                T element;
                wd_narrow(element, 0.0f);
                if (inside(a, column_of(s, v) + i)) element = first[v * s.stride + i];
                one.put(i, element);
            }
            *to = make_uint4(one.word[0], one.word[1], one.word[2], one.word[3]);
        } else {
            wd_copy_async<16, false>(to, first + v * s.stride);
        }
    }
}

template <class T, int C, int TENSORS>
__device__ __forceinline__ unit<T> take(uint4 *ring, uint32_t at, int which, int v)
{
    const uint4 word = *place_of<TENSORS, UNITS<T, C>>(ring, at, which, v);
    unit<T> u;
    u.word[0] = word.x, u.word[1] = word.y, u.word[2] = word.z, u.word[3] = word.w;
    return u;
}

// All but the rows that are wanted later.
__device__ __forceinline__ void wait_for_row(const norm_rows_args &a)
{
    switch (a.ahead) {
    case 1: wd_copies_wait<0>(); break;
    case 2: wd_copies_wait<1>(); break;
    case 3: wd_copies_wait<2>(); break;
    case 4: wd_copies_wait<3>(); break;
    case 5: wd_copies_wait<4>(); break;
    default: wd_copies_wait<5>(); break;
    }
}

// What is not the row's becomes `with`.
template <class T>
__device__ __forceinline__ void fill(const norm_rows_args &a, int32_t column, unit<T> &u, T with)
{
#pragma unroll
    for (int i = 0; i < EACH<T>; ++i) {
        if (!inside(a, column + i)) u.put(i, with);
    }
}

// Element i in single precision: of bfloat16 one instruction, whichever half of a word it is.
template <class T> __device__ __forceinline__ float wide_of(const unit<T> &u, int i)
{
    return wd_widen(u.get(i));
}
template <> __device__ __forceinline__ float wide_of(const unit<bfloat16> &u, int i)
{
    const uint32_t word = u.word[i / 2];
    return __uint_as_float(i & 1 ? word & 0xffff0000u : word << 16);
}

// Two neighbours by one conversion.
__device__ __forceinline__ void narrow_pair(unit<float> &to, int i, float first, float second)
{
    to.put(i, first);
    to.put(i + 1, second);
}
__device__ __forceinline__ void narrow_pair(unit<half16> &to, int i, float first, float second)
{
    const __half2 pair = __floats2half2_rn(first, second);
    memcpy(&to.word[i / 2], &pair, 4);
}
__device__ __forceinline__ void narrow_pair(unit<bfloat16> &to, int i, float first, float second)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    memcpy(&to.word[i / 2], &pair, 4);
}

template <class T, bool EDGES>
__device__ __forceinline__ void put(const norm_rows_args &a, T *to, int32_t column,
                                    const float *value)
{
    unit<T> out;
#pragma unroll
    for (int i = 0; i < EACH<T>; i += 2) narrow_pair(out, i, value[i], value[i + 1]);
    if (EDGES && (a.apart || is_edge<T>(a, column))) {
#pragma unroll
        for (int i = 0; i < EACH<T>; ++i) {
            if (inside(a, column + i)) to[i] = out.get(i);
        }
    } else if (a.streaming) {
        out.store_streaming(to);
    } else {
        out.store(to);
    }
}

// ---- Parameters ----

template <class P, class T, int C, bool EDGES>
__device__ __forceinline__ void read_param_as(const norm_rows_args &a, const seat &s,
                                              const void *data, float *to)
{
    constexpr int E = EACH<T>;
#pragma unroll
    for (int v = 0; v < UNITS<T, C>; ++v) {
        const int32_t column = column_of(s, v);
        const P *from = static_cast<const P *>(data) + column;
        if (EDGES && (uint32_t)v >= s.units) continue;
        if constexpr (EDGES) {
#pragma unroll
            for (int i = 0; i < E; ++i) {
                if (inside(a, column + i)) to[v * E + i] = wd_widen(from[i]);
            }
        } else {
            wd_run<P, E> r;
            r.load(from);
#pragma unroll
            for (int i = 0; i < E; ++i) to[v * E + i] = wd_widen(r.get(i));
        }
    }
}

// Zeros where there are none.
template <class T, int C, bool EDGES>
__device__ __forceinline__ void read_param(const norm_rows_args &a, const seat &s,
                                           const norm_rows_param &p, float *to)
{
#pragma unroll
    for (int i = 0; i < C; ++i) to[i] = 0.0f;
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) read_param_as<float, T, C, EDGES>(a, s, p.data, to);
    else if (p.type == NORM_ROWS_F16) read_param_as<half16, T, C, EDGES>(a, s, p.data, to);
    else read_param_as<bfloat16, T, C, EDGES>(a, s, p.data, to);
}

__device__ __forceinline__ void write_param(const norm_rows_param &p, uint32_t column, float value)
{
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) static_cast<float *>(p.data)[column] = value;
    else if (p.type == NORM_ROWS_F16) wd_narrow(static_cast<half16 *>(p.data)[column], value);
    else wd_narrow(static_cast<bfloat16 *>(p.data)[column], value);
}

__device__ __forceinline__ float read_one(const norm_rows_param &p, uint32_t column)
{
    if (!p.data) return 0.0f;
    if (p.type == NORM_ROWS_F32) return static_cast<const float *>(p.data)[column];
    if (p.type == NORM_ROWS_F16) return wd_widen(static_cast<const half16 *>(p.data)[column]);
    return wd_widen(static_cast<const bfloat16 *>(p.data)[column]);
}

__device__ __forceinline__ float given(const float *from, const norm_rows_args &a, int64_t row)
{
    return from && row < a.rows ? from[row] : 0.0f;
}

} // namespace

#endif
