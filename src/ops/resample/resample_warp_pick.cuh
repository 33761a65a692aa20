// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima by windows of 3x3, by two, of pixels of 16 bits at any alignment whose places are bytes, as
// pooling's warps have them (pooling_warp_block.cuh): a lane has two channels, and collects from the windows over its columns.
#ifndef WD_OPS_RESAMPLE_WARP_PICK_CUH
#define WD_OPS_RESAMPLE_WARP_PICK_CUH

#include "ops/pooling/pooling_warp_block.cuh"

namespace {

// Places of a row of windows: two bytes that are aligned so, of which the second, and the next lane's first, may be a
// lane's.
template <int PAIRS> struct warp_codes {
    static constexpr int OVER = PAIRS + 1;
    const uint16_t *pairs;
    int at;
    int row;

    __device__ __forceinline__ warp_codes(const pool_warp_args &a, const warp_place<PAIRS> &m,
                                          int begin)
        : row(a.windows_w * a.inner)
    {
        const int phase = (int)((uintptr_t)a.x % 2);
        pairs = reinterpret_cast<const uint16_t *>(static_cast<const unsigned char *>(a.x) - phase);
        at =
            phase + m.channel + ((m.image * a.windows_h + begin) * a.windows_w + m.j - 1) * a.inner;
    }
    // Of 16 bits each.
    __device__ __forceinline__ uint32_t take(const uint32_t (&raw)[OVER], int inner, int k) const
    {
        return warp_take(raw[k], (at + k * inner) & 1 ? 0x2421 : 0x2120);
    }
    __device__ __forceinline__ void load(uint32_t (&raw)[OVER], int inner, int ahead) const
    {
#pragma unroll
        for (int k = 0; k < OVER; ++k) raw[k] = pairs[(at + ahead * row + k * inner) >> 1];
    }
    __device__ __forceinline__ void load_any(uint32_t (&raw)[OVER], const pool_warp_args &a,
                                             const warp_place<PAIRS> &m, int ahead, int p) const
    {
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            const int of = at + ahead * row + k * a.inner, shifted = of & 1;
            const unsigned char *bytes = reinterpret_cast<const unsigned char *>(pairs + (of >> 1));
            const unsigned char *low = bytes + (shifted && m.channel == 0 ? 1 : 0);
            const unsigned char *high = bytes + (!shifted && m.channel + 1 == a.inner ? 0 : 1);
            if ((uint32_t)p >= (uint32_t)a.windows_h ||
                (uint32_t)(m.j - 1 + k) >= (uint32_t)a.windows_w) {
                low = high = static_cast<const unsigned char *>(a.x);
            }
            raw[k] = (uint32_t)*low | (uint32_t)*high << 8;
        }
    }
};

// `x` of the arguments are the places.
template <class T> __device__ __forceinline__ void resample_warp_pick(const pool_warp_args &a)
{
    constexpr int PAIRS = POOL_WARP_PLACES, OVER = PAIRS + 1;
    wd_wait_for_previous();
    const warp_place<PAIRS> m(a);
    if (!m.is_there(a)) return;
    const int inner = a.inner;
    uint32_t outside = 0; // windows that there are not
#pragma unroll
    for (int k = 0; k < OVER; ++k) {
        if ((uint32_t)(m.j - 1 + k) >= (uint32_t)a.windows_w) outside |= 1u << k;
    }
    const bool sides = wd_ballot(outside != 0) != 0;
    const warp_steps fast = m.whole_rows(0, a.windows_h);
    int p = m.first - 2, h = 2 * p - a.pad_h; // earlier, for the windows above the first rows
    warp_shares<PAIRS> shares(a, m, p);
    warp_codes<PAIRS> codes(a, m, p);
    warp_rows<PAIRS> rows(a, m, h);
    warp_given<T, PAIRS> given;
    uint32_t share_raw[OVER], code_raw[OVER];
#pragma unroll
    for (int k = 0; k < OVER; ++k) share_raw[k] = code_raw[k] = 0;
#pragma unroll 1
    for (;; ++p) {
        uint32_t give[OVER][9], share[OVER], code[OVER];
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            share[k] = shares.take(share_raw, inner, k);
            code[k] = codes.take(code_raw, inner, k);
        }
        if (fast.have(p + 1)) {
            shares.load(share_raw, inner, 1);
            codes.load(code_raw, inner, 1);
        } else if (p + 1 < m.last) {
            shares.load_any(share_raw, a, m, 1, p + 1);
            codes.load_any(code_raw, a, m, 1, p + 1);
        }
        shares.at += shares.row;
        codes.at += codes.row;
        if (sides || (uint32_t)p >= (uint32_t)a.windows_h) {
#pragma unroll
            for (int k = 0; k < OVER; ++k) {
                if ((uint32_t)p >= (uint32_t)a.windows_h || (outside >> k & 1)) share[k] = 0;
            }
        }
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
#pragma unroll
            for (int i = 0; i < 9; ++i) {
                give[k][i] = share[k] & wd_packed_same_code<T>(code[k], (uint32_t)i * 0x10001u);
            }
        }
        if (p >= m.first) {
            given.put(give, rows);
            rows.store(h >= 0, h + 1 < a.image_h);
        }
        if (p + 1 >= m.last) break;
        given.keep(give);
        rows.next();
        h += 2;
    }
}

} // namespace

#endif
