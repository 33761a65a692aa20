// SPDX-License-Identifier: Apache-2.0
//
// Gradients of averages as pooling_warp_block.cuh has them.
#ifndef WD_OPS_POOLING_WARP_SUM_CUH
#define WD_OPS_POOLING_WARP_SUM_CUH

#include "ops/pooling/pooling_warp_block.cuh"

namespace {

// 1 / how many of an axis's elements window `at` covers.
__device__ __forceinline__ float warp_share(int at, int pad, int image)
{
    const int begin = 2 * at - pad, n = min(begin + 3, image) - max(begin, 0);
    return n >= 3 ? 1.0f / 3.0f : n == 2 ? 0.5f : 1.0f;
}

template <class T> __device__ __forceinline__ void warp_sums(const pool_warp_args &a)
{
    constexpr int PAIRS = POOL_WARP_SUMS, OVER = PAIRS + 1;
    const warp_place<PAIRS> m(a);
    if (!m.is_there(a)) return;
    const int inner = a.inner;
    float weight[OVER];
    uint32_t outside = 0;
#pragma unroll
    for (int k = 0; k < OVER; ++k) {
        const int q = m.j - 1 + k;
        weight[k] = a.alpha * a.inverse;
        if (a.exclude) weight[k] = a.alpha * (1.0f / 3.0f) * warp_share(q, a.pad_w, a.image_w);
        if ((uint32_t)q >= (uint32_t)a.windows_w) outside |= 1u << k;
    }
    const bool sides = wd_ballot(outside != 0) != 0;
    // Rows of windows that are all within the image.
    const warp_steps whole = warp_steps_within(a, (a.pad_h + 1) / 2);
    const warp_steps fast = m.whole_rows(0, a.windows_h);
    int p = m.first - 2, h = 2 * p - a.pad_h; // earlier, for the windows above the first rows
    warp_shares<PAIRS> shares(a, m, p);
    warp_rows<PAIRS> rows(a, m, h);
    float both[PAIRS][2], second[PAIRS][2];
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) both[k][0] = both[k][1] = second[k][0] = second[k][1] = 0;
    uint32_t raw[OVER];
#pragma unroll
    for (int k = 0; k < OVER; ++k) raw[k] = 0;
#pragma unroll 1
    for (;; ++p) {
        float share[OVER][2];
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            const uint32_t dy = shares.take(raw, inner, k);
#pragma unroll
            for (int e = 0; e < 2; ++e) share[k][e] = weight[k] * wd_packed_get<T>(dy, e);
        }
        if (fast.have(p + 1)) shares.load(raw, inner, 1);
        else if (p + 1 < m.last) shares.load_any(raw, a, m, 1, p + 1);
        shares.at += shares.row;
        if (sides || !whole.have(p)) {
            const bool none = (uint32_t)p >= (uint32_t)a.windows_h;
            const float more = a.exclude ? 3.0f * warp_share(p, a.pad_h, a.image_h) : 1.0f;
#pragma unroll
            for (int k = 0; k < OVER; ++k) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    share[k][e] = none || (outside >> k & 1) ? 0.0f : more * share[k][e];
                }
            }
        }
        rows.begin();
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            float now_both[2], row[2], row_second[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                now_both[e] = share[k][e] + share[k + 1][e];
                row[e] = both[k][e] + now_both[e];
                row_second[e] = second[k][e] + share[k + 1][e];
                both[k][e] = now_both[e];
                second[k][e] = share[k + 1][e];
            }
            rows.put(0, 2 * k, wd_packed_narrow<T>(row[0], row[1]));
            rows.put(0, 2 * k + 1, wd_packed_narrow<T>(row_second[0], row_second[1]));
            rows.put(1, 2 * k, wd_packed_narrow<T>(both[k][0], both[k][1]));
            rows.put(1, 2 * k + 1, wd_packed_narrow<T>(second[k][0], second[k][1]));
        }
        rows.store(p >= m.first && h >= 0, p >= m.first && h + 1 < a.image_h);
        if (p + 1 >= m.last) break;
        rows.next();
        h += 2;
    }
}

} // namespace

#endif
