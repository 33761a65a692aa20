// SPDX-License-Identifier: Apache-2.0
//
// A thread's place in the rows that it walks through, its columns on their way to shared memory and
// back, and their parameters. Rows of whole units: a thread reads what it copied itself, without barriers.
// Others (EDGES): units come and go as they lie in memory, and threads work on singles between them, so
// that a column stays with its thread wherever its row begins.
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

// Where a thread is in its row: on the boundaries it has units, as far apart as lanes are many, else
// (EDGES) singles, a warp's side by side.
struct seat {
    uint32_t rank; // of the block in its cluster
    uint32_t group;
    uint32_t lane;   // in the group
    uint32_t width;  // lanes that shuffle with one another
    uint32_t stride; // columns from one of its units, or singles, to the next
    uint32_t first;  // column of its first
    uint32_t count;  // of its columns
    uint32_t before; // first column of the block, and how many it has
    uint32_t part;
};

// Without edges rows begin and end on boundaries of units, and every thread has C columns.
template <class T, int C, bool EDGES>
__device__ __forceinline__ seat seat_of(const norm_rows_args &a)
{
    constexpr uint32_t E = EACH<T>;
    seat s;
    s.rank = a.cluster > 1 ? blockIdx.x % a.cluster : 0;
    s.group = threadIdx.x / a.lanes;
    s.lane = threadIdx.x - s.group * a.lanes;
    s.width = min(a.lanes, WARP);
    s.before = min(s.rank * a.share * E, a.length);
    s.part = min(a.share * E, a.length - s.before);
    if constexpr (EDGES) {
        s.stride = a.lanes;
        s.first = s.before + s.lane;
        s.count = s.lane < s.part ? (s.part - s.lane - 1) / a.lanes + 1 : 0;
    } else {
        s.stride = a.lanes * E;
        s.first = s.before + s.lane * E;
        s.count = C;
    }
    return s;
}

// Column i of the thread, and whether it is there.
template <class T, bool EDGES> __device__ __forceinline__ uint32_t column_of(const seat &s, int i)
{
    return EDGES ? s.first + i * s.stride : s.first + i / EACH<T> * s.stride + i % EACH<T>;
}
template <bool EDGES> __device__ __forceinline__ bool has(const seat &s, int i)
{
    return !EDGES || (uint32_t)i < s.count;
}

// By all lanes of a row: each sees what the others copied or wrote. Rows that walk by singles have part of a
// warp now; the barrier is for wider ones.
__device__ __forceinline__ void meet_row(const norm_rows_args &a, const seat &s)
{
    if (a.lanes <= WARP) __syncwarp();
    else wd_barrier(s.group + 1, a.lanes);
}

// ---- The ring: of tensor `which` of TENSORS in place `at` ----

template <int TENSORS, int UNITS>
__device__ __forceinline__ uint4 *place_of(uint4 *ring, uint32_t at, int which, int v)
{
    return ring + ((at * TENSORS + which) * UNITS + v) * blockDim.x + threadIdx.x;
}

// With edges a row's part lies there as it lies in memory, from the boundary before it on.
template <int TENSORS>
__device__ __forceinline__ uint4 *slot_of(const norm_rows_args &a, const seat &s, uint4 *ring,
                                          uint32_t at, int which)
{
    return ring + ((at * TENSORS + which) * a.groups + s.group) * (a.share + 1);
}

// Elements from that boundary to the part's first.
template <class T>
__device__ __forceinline__ uint32_t shift_of(const norm_rows_args &a, const seat &s,
                                             const void *from, int64_t row)
{
    const uint32_t at = (uint32_t)(reinterpret_cast<uintptr_t>(from) / sizeof(T));
    return (at + (uint32_t)row * a.length + s.before) % EACH<T>;
}

// The thread's first single there.
template <class T, int TENSORS>
__device__ __forceinline__ T *singles_of(const norm_rows_args &a, const seat &s, uint4 *ring,
                                         uint32_t at, int which, const void *from, int64_t row)
{
    T *slot = reinterpret_cast<T *>(slot_of<TENSORS>(a, s, ring, at, which));
    return slot + shift_of<T>(a, s, from, row) + (s.first - s.before);
}

// A row on its way to the ring. Units at its ends come whole, with some bytes of its neighbours (or
// beside the tensor, but in the same sixteen aligned bytes), which nothing is made of.
template <class T, int C, bool EDGES, int TENSORS>
__device__ __forceinline__ void ask(const norm_rows_args &a, const seat &s, uint4 *ring,
                                    uint32_t at, int which, const void *from, uint32_t row)
{
    constexpr uint32_t E = EACH<T>;
    if constexpr (EDGES) {
        const uint32_t shift = shift_of<T>(a, s, from, row);
        const uint32_t units = s.part > 0 ? (shift + s.part + E - 1) / E : 0;
        const T *first =
            static_cast<const T *>(from) + ((int64_t)row * a.length + s.before) - shift;
        uint4 *to = slot_of<TENSORS>(a, s, ring, at, which);
#pragma unroll 4
        for (uint32_t u = s.lane; u < units; u += a.lanes) {
            wd_copy_async<16, false>(to + u, first + u * E);
        }
    } else {
        const T *first = static_cast<const T *>(from) + ((int64_t)row * a.length + s.first);
#pragma unroll
        for (int v = 0; v < UNITS<T, C>; ++v) {
            wd_copy_async<16, false>(place_of<TENSORS, UNITS<T, C>>(ring, at, which, v),
                                     first + v * s.stride);
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

// A unit of the thread's own.
template <class T> __device__ __forceinline__ unit<T> strip_take(const uint4 *from)
{
    const uint4 word = *from;
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

template <class T>
__device__ __forceinline__ void put(const norm_rows_args &a, T *to, const float *value)
{
    unit<T> out;
#pragma unroll
    for (int i = 0; i < EACH<T>; i += 2) narrow_pair(out, i, value[i], value[i + 1]);
    if (a.streaming) out.store_streaming(to);
    else out.store(to);
}

constexpr int SOME = 8; // singles of a thread that are read before the first of them is written

// Singles from the ring, zeros where there are none, and back over them.
template <class T>
__device__ __forceinline__ void take_singles(unit<T> (&to)[SOME / EACH<T>], const T *from,
                                             uint32_t stride, int i, uint32_t count)
{
#pragma unroll
    for (int k = 0; k < SOME; ++k) {
        T one;
        wd_narrow(one, 0.0f);
        if ((uint32_t)(i + k) < count) one = from[(i + k) * stride];
        to[k / EACH<T>].put(k % EACH<T>, one);
    }
}
template <class T>
__device__ __forceinline__ void put_singles(T *to, uint32_t stride, int i, uint32_t count,
                                            const float *value)
{
#pragma unroll
    for (int k = 0; k < SOME; k += 2) {
        unit<T> pair;
        narrow_pair(pair, 0, value[k], value[k + 1]);
        if ((uint32_t)(i + k) < count) to[(i + k) * stride] = pair.get(0);
        if ((uint32_t)(i + k + 1) < count) to[(i + k + 1) * stride] = pair.get(1);
    }
}

// What the lanes of a row have put into the ring, over x, to memory: a lane has the units that it asks
// for. Where y lies differently within units, by elements.
template <class T, int TENSORS>
__device__ __forceinline__ void put_slot(const norm_rows_args &a, const seat &s, uint4 *ring,
                                         uint32_t at, int64_t row)
{
    constexpr uint32_t E = EACH<T>;
    const uint32_t shift = shift_of<T>(a, s, a.x, row);
    const uint32_t end = row < a.rows ? shift + s.part : 0;
    const uint4 *slot = slot_of<TENSORS>(a, s, ring, at, 0);
    T *to = static_cast<T *>(a.y) + (row * a.length + s.before) - shift;
    meet_row(a, s);
    if (a.apart) {
        const T *singles = reinterpret_cast<const T *>(slot);
        for (uint32_t i = shift + s.lane; i < end; i += a.lanes) to[i] = singles[i];
        meet_row(a, s); // others ask for these
        return;
    }
    if (s.part == 0) return;
#pragma unroll 2
    for (uint32_t u = s.lane; u * E < end; u += a.lanes) {
        const uint4 word = slot[u];
        unit<T> one;
        one.word[0] = word.x, one.word[1] = word.y, one.word[2] = word.z, one.word[3] = word.w;
        if (u * E >= shift && u * E + E <= end) {
            if (a.streaming) one.store_streaming(to + u * E);
            else one.store(to + u * E);
        } else {
#pragma unroll
            for (uint32_t k = 0; k < E; ++k) {
                if (u * E + k >= shift && u * E + k < end) to[u * E + k] = one.get((int)k);
            }
        }
    }
}

// ---- Parameters ----

template <class P, class T, int C, bool EDGES>
__device__ __forceinline__ void read_param_as(const seat &s, const void *data, float *to)
{
    constexpr int E = EACH<T>;
    const P *from = static_cast<const P *>(data);
    if constexpr (EDGES) {
#pragma unroll
        for (int i = 0; i < C; ++i) {
            if (has<EDGES>(s, i)) to[i] = wd_widen(from[column_of<T, EDGES>(s, i)]);
        }
    } else {
#pragma unroll
        for (int i = 0; i < C; i += E) {
            wd_run<P, E> r;
            r.load(from + column_of<T, EDGES>(s, i));
#pragma unroll
            for (int k = 0; k < E; ++k) to[i + k] = wd_widen(r.get(k));
        }
    }
}

// Zeros where there are none.
template <class T, int C, bool EDGES>
__device__ __forceinline__ void read_param(const seat &s, const norm_rows_param &p, float *to)
{
#pragma unroll
    for (int i = 0; i < C; ++i) to[i] = 0.0f;
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) read_param_as<float, T, C, EDGES>(s, p.data, to);
    else if (p.type == NORM_ROWS_F16) read_param_as<half16, T, C, EDGES>(s, p.data, to);
    else read_param_as<bfloat16, T, C, EDGES>(s, p.data, to);
}

__device__ __forceinline__ void write_param(const norm_rows_param &p, uint32_t column, float value)
{
    if (!p.data) return;
    if (p.type == NORM_ROWS_F32) static_cast<float *>(p.data)[column] = value;
    else if (p.type == NORM_ROWS_F16) wd_narrow(static_cast<half16 *>(p.data)[column], value);
    else wd_narrow(static_cast<bfloat16 *>(p.data)[column], value);
}

__device__ __forceinline__ float given(const float *from, const norm_rows_args &a, int64_t row)
{
    return from && row < a.rows ? from[row] : 0.0f;
}

} // namespace

#endif
