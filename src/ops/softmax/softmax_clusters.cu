// SPDX-License-Identifier: Apache-2.0
//
// Softmax of long rows, each held by a cluster from its one reading to its one writing: softmax_clusters_args.h and ops/shares.h say
// who has what; here all of a row stays. Forward a thread's sum is relative to the largest element that it has seen so far.
#include "gpu/device/words.cuh"
#include "ops/softmax/softmax_clusters_args.h"
#include "ops/softmax/softmax_device.cuh"

enum { SHARE_THREADS = WD_SHARE_THREADS / 2 };
#include "ops/shares_device.cuh"

namespace {

// Totals as blocks send them.
struct __align__(16) sent_totals
{
    totals<float> of;
    float2 unused;
};
using row_room = share_room<sent_totals>;
static_assert(sizeof(row_room) <= WD_SHARE_FIXED && sizeof(row_room) % 128 == 0,
              "what the cut leaves for it");

// How totals of parts of a row are joined: relative to the largest maximum, or sums alone, which have maximum 0.
struct row_totals {
    static __device__ __forceinline__ sent_totals none()
    {
        return {{lowest<float>(), 0.0f}, {0.0f, 0.0f}};
    }
    static __device__ __forceinline__ sent_totals of(float2 mine)
    {
        return {{mine.x, mine.y}, {0.0f, 0.0f}};
    }
    static __device__ __forceinline__ sent_totals over(const sent_totals &mine, uint32_t lanes)
    {
        return {join_lanes(mine.of, lanes), {0.0f, 0.0f}};
    }
};
struct row_sums {
    static __device__ __forceinline__ sent_totals none()
    {
        return {{0.0f, 0.0f}, {0.0f, 0.0f}};
    }
    static __device__ __forceinline__ sent_totals of(float2 mine)
    {
        return row_totals::of(mine);
    }
    static __device__ __forceinline__ sent_totals over(const sent_totals &mine, uint32_t lanes)
    {
        return {{0.0f, sum_of_lanes(mine.of.sum, lanes)}, {0.0f, 0.0f}};
    }
};

template <class T> __device__ __forceinline__ run<T> run_of_unit(const uint4 &unit)
{
    run<T> r;
    r.word[0] = unit.x, r.word[1] = unit.y, r.word[2] = unit.z, r.word[3] = unit.w;
    return r;
}

// Units of a row lie side by side.
__device__ __forceinline__ quad_places places_of(const softmax_clusters_args &a,
                                                 const share_seat &s, uint32_t share, uint32_t quad)
{
    quad_places p;
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i)
        p.at[i] = share * a.cut.units + s.begin + quad * QUAD_UNITS + i * ACROSS;
    return p;
}

// Units of a quad that the thread has: the last block of a row has less than the others.
__device__ __forceinline__ int left_of(const share_seat &s, uint32_t quad)
{
    return (int)s.count - (int)(quad * QUAD);
}

// What a unit that the thread has not counts as: it adds nothing, forward minus infinities.
template <class T, bool BACKWARD> __device__ __forceinline__ uint4 no_unit()
{
    run<T> r;
#pragma unroll
    for (int j = 0; j < run_of<T>; ++j) r.put(j, narrow<T>(BACKWARD ? 0.0f : lowest<float>()));
    return make_uint4(r.word[0], r.word[1], r.word[2], r.word[3]);
}

template <class T, bool BACKWARD>
__device__ __forceinline__ void load_row(const softmax_clusters_args &a, const share_seat &s,
                                         uint4 (&to)[QUAD], uint32_t share, uint32_t quad)
{
    const quad_places p = places_of(a, s, share, quad);
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i) {
        to[i] = no_unit<T, BACKWARD>();
        if ((int)i < left_of(s, quad))
            to[i] = wd_load_once(static_cast<const uint4 *>(a.x) + p.at[i]);
    }
}

// A quad of the thread on its way to shared memory.
__device__ __forceinline__ void copy_row(const softmax_clusters_args &a, const share_seat &s,
                                         uint4 *places, const void *tensor, uint32_t share,
                                         uint32_t quad)
{
    const quad_places p = places_of(a, s, share, quad);
#pragma unroll
    for (uint32_t i = 0; i < QUAD; ++i) {
        if ((int)i < left_of(s, quad))
            wd_copy_async<16, false>(places + i * ACROSS,
                                     static_cast<const uint4 *>(tensor) + p.at[i]);
    }
}

// Places of a quad that nothing is ever copied to.
template <class T, bool BACKWARD>
__device__ __forceinline__ void clear_row(const share_seat &s, uint4 *places, uint32_t quad)
{
    for (int i = (int)QUAD - 1; i >= max(left_of(s, quad), 0); --i)
        places[i * ACROSS] = no_unit<T, BACKWARD>();
}

// Of what is added up: an error of x * 2^-24, at most 6e-7 of the sum, where equal elements some 11 below the largest outweigh it.
__device__ __forceinline__ float about_exp(float x)
{
    return wd_half_exp(x);
}

// What N units add to the thread's totals, which are rescaled where the maximum grows.
template <class T, int N>
__device__ __forceinline__ void look_at_row(totals<float> &mine, const uint4 *x)
{
    float max = mine.max, sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int v = 0; v < N; ++v) {
        const run<T> r = run_of_unit<T>(x[v]);
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j) max = larger(max, wd_widen(r.get(j)));
    }
    const float base = base_of(max);
#pragma unroll
    for (int v = 0; v < N; ++v) {
        const run<T> r = run_of_unit<T>(x[v]);
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j) sum[j % 2] += about_exp(wd_widen(r.get(j)) - base);
    }
    if (mine.max != max) mine.sum *= about_exp(mine.max - base);
    mine = {max, mine.sum + (sum[0] + sum[1])};
}

template <class T>
__device__ __forceinline__ void look_at_both(float (&sum)[2], const uint4 (&y)[QUAD],
                                             const uint4 (&dy)[QUAD], bool log)
{
#pragma unroll
    for (int v = 0; v < (int)QUAD; ++v) {
        const run<T> r = run_of_unit<T>(y[v]), given = run_of_unit<T>(dy[v]);
#pragma unroll
        for (int j = 0; j < run_of<T>; ++j)
            sum[j % 2] += term<T, true>(wd_widen(r.get(j)), wd_widen(given.get(j)), 0.0f, log);
    }
}

template <class T, bool BACKWARD>
__device__ __forceinline__ void put_unit(const softmax_clusters_args &a, uint32_t at,
                                         const uint4 &x, const uint4 &dy, const totals<float> &all,
                                         float number, bool there)
{
    const run<T> r = run_of_unit<T>(x), given = run_of_unit<T>(dy);
    float out[run_of<T>];
    run<T> to;
#pragma unroll
    for (int j = 0; j < run_of<T>; ++j)
        out[j] = result<T, BACKWARD>(wd_widen(r.get(j)), BACKWARD ? wd_widen(given.get(j)) : 0.0f,
                                     all, number, a.log);
    wd_narrow_run(to, out);
    if (there) to.store_streaming(static_cast<T *>(a.y) + (int64_t)at * run_of<T>);
}

// Results of a quad in registers, whose dy is in shared memory.
template <class T, bool BACKWARD>
__device__ __forceinline__ void put_held(const softmax_clusters_args &a, const quad_places &p,
                                         const uint4 (&x)[QUAD], const uint4 *dy, int left,
                                         const totals<float> &all, float number)
{
#pragma unroll
    for (int v = 0; v < (int)QUAD; ++v) {
        put_unit<T, BACKWARD>(a, p.at[v], x[v], BACKWARD ? dy[v * ACROSS] : x[v], all, number,
                              v < left);
    }
}

// Likewise of one in shared memory, some units at a time, which is less code.
template <class T, bool BACKWARD>
__device__ __forceinline__ void put_kept(const softmax_clusters_args &a, uint32_t at,
                                         const uint4 *x, const uint4 *dy, int left,
                                         const totals<float> &all, float number)
{
#pragma unroll(sizeof(T) == 2 || BACKWARD ? 1 : 2)
    for (int v = 0; v < (int)QUAD; ++v) {
        const uint4 one = x[v * ACROSS];
        put_unit<T, BACKWARD>(a, at + v * ACROSS, one, BACKWARD ? dy[v * ACROSS] : one, all, number,
                              v < left);
    }
}

template <class T> __device__ __forceinline__ void clusters_forward(const softmax_clusters_args &a)
{
    __shared__ row_room room;
    uint4 *const mine = wd_dynamic_shared<uint4>() + threadIdx.x;
    const share_seat s = share_seat_of(a.cut);
    uint32_t share = blockIdx.x / a.cut.cluster;
    uint4 held[HELD][QUAD];
    begin_share(a.cut, room);
    wd_wait_for_previous();
#pragma unroll
    for (uint32_t q = 0; q < HELD; ++q) load_row<T, false>(a, s, held[q], share, q);
    for (uint32_t q = HELD; q < a.cut.quads; ++q) {
        clear_row<T, false>(s, mine + (q - HELD) * QUAD_UNITS, q);
        copy_row(a, s, mine + (q - HELD) * QUAD_UNITS, a.x, share, q);
        wd_copies_end();
    }
#pragma unroll 1
    for (uint32_t turn = 0; share < a.cut.shares; ++turn, share += s.step) {
        totals<float> own = {lowest<float>(), 0.0f};
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) look_at_row<T, QUAD>(own, held[q]);
#pragma unroll 1
        for (uint32_t q = HELD; q < a.cut.quads; ++q) {
            constexpr int N = sizeof(T) == 2 ? QUAD / 2 : QUAD; // which is less code
            const uint4 *from = mine + (q - HELD) * QUAD_UNITS;
            wait_for_quad(a.cut.quads - 1 - q);
#pragma unroll 1
            for (int v = 0; v < (int)QUAD; v += N) {
                uint4 some[N];
#pragma unroll
                for (int i = 0; i < N; ++i) some[i] = from[(v + i) * ACROSS];
                look_at_row<T, N>(own, some);
            }
        }
        own = join_lanes(own, 32);
        const totals<float> all = all_of_share<row_totals>(a.cut.cluster, s.rank, room, turn,
                                                           make_float2(own.max, own.sum))
                                      .of;
        const float number = prepared<T>(all.sum, a.log);
        const bool more = share + s.step < a.cut.shares;
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            put_held<T, false>(a, places_of(a, s, share, q), held[q], mine, left_of(s, q), all,
                               number);
            if (more) load_row<T, false>(a, s, held[q], share + s.step, q);
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < a.cut.quads; ++q) {
            uint4 *place = mine + (q - HELD) * QUAD_UNITS;
            put_kept<T, false>(a, places_of(a, s, share, q).at[0], place, place, left_of(s, q), all,
                               number);
            if (more) copy_row(a, s, place, a.x, share + s.step, q);
            wd_copies_end();
        }
    }
}

template <class T> __device__ __forceinline__ void clusters_backward(const softmax_clusters_args &a)
{
    __shared__ row_room room;
    uint4 *const mine = wd_dynamic_shared<uint4>() + threadIdx.x; // dy, and y behind it
    uint4 *const mine_y = mine + a.cut.quads * QUAD_UNITS;
    const share_seat s = share_seat_of(a.cut);
    uint32_t share = blockIdx.x / a.cut.cluster;
    uint4 held[HELD][QUAD];
    begin_share(a.cut, room);
    wd_wait_for_previous();
#pragma unroll
    for (uint32_t q = 0; q < HELD; ++q) load_row<T, true>(a, s, held[q], share, q);
    for (uint32_t q = 0; q < a.cut.quads; ++q) {
        clear_row<T, true>(s, mine + q * QUAD_UNITS, q);
        copy_row(a, s, mine + q * QUAD_UNITS, a.dy, share, q);
        if (q >= HELD) {
            clear_row<T, true>(s, mine_y + (q - HELD) * QUAD_UNITS, q);
            copy_row(a, s, mine_y + (q - HELD) * QUAD_UNITS, a.x, share, q);
        }
        wd_copies_end();
    }
#pragma unroll 1
    for (uint32_t turn = 0; share < a.cut.shares; ++turn, share += s.step) {
        float sum[2] = {0.0f, 0.0f};
        const auto look = [&](const uint4(&y)[QUAD], uint32_t q) {
            uint4 given[QUAD];
            take_quad(given, mine + q * QUAD_UNITS);
            look_at_both<T>(sum, y, given, a.log);
        };
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            wait_for_quad(a.cut.quads - 1 - q);
            look(held[q], q);
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < a.cut.quads; ++q) {
            uint4 some[QUAD];
            wait_for_quad(a.cut.quads - 1 - q);
            take_quad(some, mine_y + (q - HELD) * QUAD_UNITS);
            look(some, q);
        }
        const totals<float> all =
            all_of_share<row_sums>(a.cut.cluster, s.rank, room, turn,
                                   make_float2(0.0f, sum_of_lanes(sum[0] + sum[1], 32)))
                .of;
        const bool more = share + s.step < a.cut.shares;
#pragma unroll
        for (uint32_t q = 0; q < HELD; ++q) {
            uint4 *given = mine + q * QUAD_UNITS;
            put_held<T, true>(a, places_of(a, s, share, q), held[q], given, left_of(s, q), all,
                              0.0f);
            if (more) {
                copy_row(a, s, given, a.dy, share + s.step, q);
                load_row<T, true>(a, s, held[q], share + s.step, q);
            }
            wd_copies_end();
        }
#pragma unroll 1
        for (uint32_t q = HELD; q < a.cut.quads; ++q) {
            uint4 *from = mine_y + (q - HELD) * QUAD_UNITS, *given = mine + q * QUAD_UNITS;
            put_kept<T, true>(a, places_of(a, s, share, q).at[0], from, given, left_of(s, q), all,
                              0.0f);
            if (more) {
                copy_row(a, s, given, a.dy, share + s.step, q);
                copy_row(a, s, from, a.x, share + s.step, q);
            }
            wd_copies_end();
        }
    }
}

} // namespace

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/softmax/softmax_clusters_kernels.def"
#include "ops/kernels_device.inc"
