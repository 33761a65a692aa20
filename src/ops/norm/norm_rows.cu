// SPDX-License-Identifier: Apache-2.0
//
// Layer norm and RMS norm over rows without gaps at the speed of memory: a row is read once, by a warp,
// a group of warps or a cluster that stays and walks on, with the next rows on their way to shared
// memory and the parameters of its columns in registers. What a row's warps found is joined while they
// look at the next one. Sums are joined in an order that depends on the shape and the device alone.
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/norm_plain.cuh"
#include "ops/norm/norm_rows_parted.cuh"

namespace {

// Of the thread's columns.
template <class T, int C>
__device__ __forceinline__ part look(const norm_rows_args &a, const seat &s, uint4 *ring,
                                     uint32_t at, int64_t row)
{
    part p = {0.0f, 0.0f, 0.0f, (float)s.count};
    float sum = 0.0f;
    const T *mine = singles_of<T, 1>(a, s, ring, at, 0, a.x, row);
    if (a.centered && s.count > 0) p.pivot = wd_widen(mine[0]);
#pragma unroll
    for (int i = 0; i < C; ++i) {
        if (!has<true>(s, i)) continue;
        const float d = wd_widen(mine[i * WARP]) - p.pivot;
        sum += d;
        p.squares = fmaf(d, d, p.squares);
    }
    if (a.centered && s.count > 0) {
        p.rest = sum * (1.0f / p.count);
        p.squares = fmaf(-sum, p.rest, p.squares);
        if (p.squares < 0.0f) p.squares = 0.0f;
    }
    return p;
}

template <class T, int C>
__device__ __forceinline__ void put_row(const norm_rows_args &a, const seat &s, uint4 *ring,
                                        uint32_t at, int64_t row, const numbers &n,
                                        const float *scale, const float *bias)
{
    constexpr int E = EACH<T>;
    T *mine = singles_of<T, 1>(a, s, ring, at, 0, a.x, row);
    const uint32_t count = row < a.rows ? s.count : 0;
    if (s.lane == 0 && s.rank == 0 && row < a.rows) {
        if (a.mean) a.mean[row] = n.mean;
        if (a.inv_std) a.inv_std[row] = n.inv_std;
    }
#pragma unroll
    for (int i = 0; i < C; i += SOME) {
        unit<T> x[SOME / E];
        float y[SOME];
        take_singles<T>(x, mine, WARP, i, count);
#pragma unroll
        for (int k = 0; k < SOME; ++k) {
            const float xhat = fmaf(wide_of<T>(x[k / E], k % E) - n.mean, n.inv_std, n.shift);
            y[k] = fmaf(scale[i + k], xhat, bias[i + k]);
        }
        put_singles<T>(mine, WARP, i, count, y);
    }
    put_slot<T, 1>(a, s, ring, at, row);
}

template <class T, int C> __device__ __forceinline__ void rows_forward(const norm_rows_args &a)
{
    __shared__ slots of;
    WD_DYNAMIC_SHARED(uint4, ring);
    const int64_t block = blockIdx.x / a.cluster;
    const seat s = seat_of<T, C, true, false>(a);
    const bool computes = !a.given_inv_std;
    const bool alone = a.lanes == WARP && a.cluster == 1;
    float scale[C], bias[C];
    numbers n = {0.0f, 0.0f, 0.0f};
    if (computes) begin_exchange(a, of);
    wd_wait_for_previous();
    int64_t row = block * a.groups + s.group;
    for (uint32_t r = 0; r < a.ahead; ++r) {
        ask<T, C, true, 1>(a, s, ring, r, 0, a.x, row + r * a.step);
        wd_copies_end();
    }
    read_param<T, C, true>(s, a.scale, scale);
    read_param<T, C, true>(s, a.bias, bias);
    const float columns = sum_of_warp((float)s.count); // of the warp
    const float inverse = columns > 0.0f ? 1.0f / columns : 0.0f;
    uint32_t present = 0, next = 0, last = a.ahead % a.ring;
    for (uint32_t turn = 0;; ++turn, row += a.step) {
        // turn 0 only looks; row `row - step` is put while `row` has been looked at
        const bool more = row - s.group < a.rows;
        numbers of_next = {0.0f, 0.0f, 0.0f};
        if (more) {
            if (turn > 0) {
                ask<T, C, true, 1>(a, s, ring, last, 0, a.x, row + (a.ahead - 1) * a.step);
                wd_copies_end();
                if (++last == a.ring) last = 0;
            }
            wait_for_row(a);
            meet_row(a, s);
            if (computes) {
                part p = look<T, C>(a, s, ring, next, row);
                p = join_warp<true>(p, inverse);
                p.count = columns;
                if (alone) of_next = numbers_of(a, p);
                else say(a, s.rank, of, turn, p);
            } else {
                of_next = {given(a.given_mean, a, row), given(a.given_inv_std, a, row), 0.0f};
            }
        }
        part all = {0.0f, 0.0f, 0.0f, 0.0f};
        if (turn > 0) {
            if (computes && !alone) all = hear<true>(a, s.group, of, turn - 1);
            if (computes && !alone) n = numbers_of(a, all);
            put_row<T, C>(a, s, ring, present, row - a.step, n, scale, bias);
        }
        if (!more) break;
        n = of_next;
        present = next;
        if (++next == a.ring) next = 0;
    }
}

} // namespace

#define WD_KERNELS_BOUNDS(threads, registers) WD_KERNELS_BUDGET(threads, registers)
#define WD_KERNELS_ROWS "ops/norm/norm_rows_kernels.def"
#include "ops/kernels_device.inc"
