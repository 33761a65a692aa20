// SPDX-License-Identifier: Apache-2.0
//
// Rows off the boundaries of units, or that threads have no equal numbers of units of, as norm_rows walks. A
// group's rows are so far apart that all begin equally far behind a boundary (norm_rows_args.h): a thread has
// aligned units, whose columns, parameters and sums stay its own in every row. The columns before a row's
// first boundary and behind its last one, less than a unit each, are singles of some lanes. Gradients of fp32; those of two bytes an
// element are held (norm_rows_odd_held.cuh), and forward they go by paths (norm_rows_odd_forward.cuh).
#ifndef WD_OPS_NORM_ROWS_ODD_CUH
#define WD_OPS_NORM_ROWS_ODD_CUH

#include "ops/norm/norm_rows_gradient.cuh"
#include "ops/norm/norm_rows_odd_seat.cuh"

namespace {

constexpr uint32_t ODD_TENSORS = 2;

// Of x or dy (`which`) in place `at`: the thread's unit v, and the unit of its single.
template <int U>
__device__ __forceinline__ uint4 *odd_place(const norm_rows_args &a, uint4 *ring, uint32_t at,
                                            int which, int v)
{
    return ring + (at * ODD_TENSORS + which) * (U * blockDim.x + ODD_PLACES * a.groups) +
           v * blockDim.x + threadIdx.x;
}
template <int U>
__device__ __forceinline__ uint4 *odd_unit(const norm_rows_args &a, const odd_seat &s, uint4 *ring,
                                           uint32_t at, int which)
{
    return ring + (at * ODD_TENSORS + which) * (U * blockDim.x + ODD_PLACES * a.groups) +
           U * blockDim.x + ODD_PLACES * s.group + s.lane / ODD_LANES;
}
template <class T, int U>
__device__ __forceinline__ float odd_take(const norm_rows_args &a, const odd_seat &s, uint4 *ring,
                                          uint32_t at, int which)
{
    const T *unit = reinterpret_cast<const T *>(odd_unit<U>(a, s, ring, at, which));
    return wd_widen(unit[s.lane % ODD_LANES + s.back]);
}

// A row on its way to the ring. The units of singles have some elements of the rows beside, or lie beside the
// tensor, but in the same sixteen aligned bytes.
template <class T, int C>
__device__ __forceinline__ void odd_ask_back(const norm_rows_args &a, const odd_seat &s,
                                             uint4 *ring, uint32_t at, int which, const void *from,
                                             int64_t row)
{
    constexpr int U = UNITS<T, C>;
    if (row >= a.rows) return;
    const T *of_row = static_cast<const T *>(from) + row * a.length;
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if ((uint32_t)v < s.count) {
            wd_copy_async<16, false>(odd_place<U>(a, ring, at, which, v),
                                     of_row + s.first + v * s.stride);
        }
    }
    if (s.single != ODD_NONE && s.lane % ODD_LANES == 0)
        wd_copy_async<16, false>(odd_unit<U>(a, s, ring, at, which), of_row + s.single - s.back);
}

// The next row for the place that was put a turn ago, whose singles all have read.
template <class T, int C>
__device__ __forceinline__ void odd_ask_back_next(const norm_rows_args &a, const odd_seat &s,
                                                  uint4 *ring, uint32_t at, int64_t row)
{
    __syncwarp();
    odd_ask_back<T, C>(a, s, ring, at, 0, a.x, row);
    odd_ask_back<T, C>(a, s, ring, at, 1, a.dy, row);
    wd_copies_end();
}

template <class T, int C>
__device__ __forceinline__ part odd_look_back(const norm_rows_args &a, const odd_seat &s,
                                              uint4 *ring, uint32_t at, const known &k,
                                              const float *scale, float *dscale, float *dbias)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int v = 0; v < U; ++v) {
        if ((uint32_t)v >= s.count) continue;
        const unit<T> x = strip_take<T>(odd_place<U>(a, ring, at, 0, v));
        const unit<T> dy = strip_take<T>(odd_place<U>(a, ring, at, 1, v));
#pragma unroll
        for (int i = 0; i < E; ++i) {
            add_column<ROWS>(p, k, wide_of<T>(x, i), wide_of<T>(dy, i), scale[v * E + i],
                             dscale[v * E + i], dbias[v * E + i]);
        }
    }
    if (s.single != ODD_NONE) {
        add_column<ROWS>(p, k, odd_take<T, U>(a, s, ring, at, 0), odd_take<T, U>(a, s, ring, at, 1),
                         scale[C], dscale[C], dbias[C]);
    }
    return p;
}

template <class T, int C>
__device__ __forceinline__ void odd_put_back(const norm_rows_args &a, const odd_seat &s,
                                             uint4 *ring, uint32_t at, int64_t row, const known &k,
                                             const part &all, const float *scale)
{
    constexpr int E = EACH<T>, U = UNITS<T, C>;
    const float level = a.centered ? all.pivot * a.inverse : 0.0f;
    const float slope = (all.rest * a.inverse) * (k.inv_std * k.inv_std);
    T *to = static_cast<T *>(a.y) + row * a.length;
#pragma unroll
    for (int v = 0; v < U; ++v) {
        float dx[E];
        if ((uint32_t)v >= s.count) continue;
        const unit<T> x = strip_take<T>(odd_place<U>(a, ring, at, 0, v));
        const unit<T> dy = strip_take<T>(odd_place<U>(a, ring, at, 1, v));
#pragma unroll
        for (int i = 0; i < E; ++i) {
            const float d = wide_of<T>(dy, i), of_x = wide_of<T>(x, i);
            dx[i] = dx_of<ROWS>(k, of_x, d, scale[v * E + i], slope, level);
        }
        put<T>(a, to + s.first + v * s.stride, dx);
    }
    if (s.single != ODD_NONE) {
        const float dy = odd_take<T, U>(a, s, ring, at, 1), x = odd_take<T, U>(a, s, ring, at, 0);
        wd_narrow(to[s.single], dx_of<ROWS>(k, x, dy, scale[C], slope, level));
    }
}

// The sums of one parameter leave: over the rows side by side in a block, whose columns are each other
// threads', by way of shared memory; of a block that has part of a row as they are.
template <class T, int C>
__device__ __forceinline__ void odd_deliver(const norm_rows_args &a, const odd_seat &s,
                                            uint32_t which, const float *mine, float *room)
{
    constexpr int E = EACH<T>;
    __syncthreads(); // all have read what lay here
    float *own = room + s.group * s.part;
#pragma unroll
    for (int i = 0; i < C; ++i) {
        if ((uint32_t)(i / E) < s.count)
            own[s.first + i / E * s.stride + i % E - s.before] = mine[i];
    }
    if (s.single != ODD_NONE) {
        wd_run<float, 1> one;
        one.put(0, mine[C]);
        if (a.cluster > 1) put_sum<1>(a, which, s.single, one);
        else own[s.single] = mine[C];
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < s.part; k += blockDim.x) {
        wd_run<float, 1> sum;
        sum.load(room + k);
        for (uint32_t g = 1; g < a.groups; ++g) add_run<1>(sum, room + (g * s.part + k));
        put_sum<1>(a, which, s.before + k, sum);
    }
}

template <class T, int C> __device__ __forceinline__ void odd_backward(const norm_rows_args &a)
{
    __shared__ slots of;
    WD_DYNAMIC_SHARED(uint4, ring);
    const uint32_t slot = blockIdx.x / a.cluster * a.groups + threadIdx.x / a.lanes;
    int64_t row = slot < a.step ? (int64_t)slot : a.rows;
    const odd_seat s = odd_seat_of<T, 0>(a, row);
    const bool alone = a.lanes == WARP && a.cluster == 1;
    float scale[C + 1], dscale[C + 1], dbias[C + 1]; // the last is the single's
    known k = {0.0f, 0.0f};
    part p = {0.0f, 0.0f, 0.0f, 0.0f};
    begin_exchange(a, of);
    wd_wait_for_previous();
    for (uint32_t r = 0; r < a.ahead; ++r) {
        odd_ask_back_next<T, C>(a, s, ring, r, row + r * a.step);
    }
    known of_next = known_of(a, row);
    odd_param<T, C>(s, a.scale, scale);
#pragma unroll
    for (int i = 0; i <= C; ++i) dscale[i] = dbias[i] = 0.0f;
    uint32_t present = 0, next = 0, last = a.ahead % a.ring;
    uint32_t turn = 0;
    for (;; ++turn, row += a.step) {
        // turn 0 only looks; row `row - step` is put while `row` has been looked at
        const bool more = row < a.rows;
        part of_it = {0.0f, 0.0f, 0.0f, 0.0f};
        const known later = known_of(a, row + a.step);
        if (more) {
            if (turn > 0) {
                odd_ask_back_next<T, C>(a, s, ring, last, row + (a.ahead - 1) * a.step);
                if (++last == a.ring) last = 0;
            }
            wait_for_row(a);
            __syncwarp();
            of_it = odd_look_back<T, C>(a, s, ring, next, of_next, scale, dscale, dbias);
            of_it = join_warp<false>(of_it, 0.0f);
            if (!alone) say(a, s.rank, of, turn, of_it);
        }
        if (turn > 0) {
            if (!alone) p = hear<false>(a, s.group, of, turn - 1);
            odd_put_back<T, C>(a, s, ring, present, row - a.step, k, p, scale);
        }
        if (!more) break;
        p = of_it;
        k = of_next;
        of_next = later;
        present = next;
        if (++next == a.ring) next = 0;
    }
    meet_as_often(a, s.group, slot + turn * (uint32_t)a.step);
    if (a.dscale.data) odd_deliver<T, C>(a, s, 0, dscale, reinterpret_cast<float *>(ring));
    if (a.dbias.data) odd_deliver<T, C>(a, s, 1, dbias, reinterpret_cast<float *>(ring));
}

} // namespace

#endif
