// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima as pooling_warp_block.cuh has them: a window hands its dy to the first element, in row-major order, that
// is its largest; elements outside of the image are NaN, which no number is.
#ifndef WD_OPS_POOLING_WARP_MAX_CUH
#define WD_OPS_POOLING_WARP_MAX_CUH

#include "ops/pooling/pooling_warp_block.cuh"

namespace {

constexpr uint32_t WARP_NANS = 0x7fff7fffu;

template <class T> __device__ __forceinline__ void warp_maxima(const pool_warp_args &a)
{
    constexpr int PAIRS = POOL_WARP_MAXIMA, OVER = PAIRS + 1;
    constexpr int IN = 2 * PAIRS + 3; // columns of x
    const warp_place<PAIRS> m(a);
    if (!m.is_there(a)) return;
    const int inner = a.inner, row = a.image_w * inner;
    const int w0 = 2 * (m.j - 1) - a.pad_w; // the first column that is read
    // Columns, and windows, that there are not.
    uint32_t outside = 0;
#pragma unroll
    for (int c = 0; c < IN; ++c) {
        if ((uint32_t)(w0 + c) >= (uint32_t)a.image_w) outside |= 1u << c;
        if (c < OVER && (uint32_t)(m.j - 1 + c) >= (uint32_t)a.windows_w) outside |= 0x1000u << c;
    }
    const bool sides = wd_ballot(outside != 0) != 0;
    // Steps of which all rows and windows are there.
    const warp_steps whole = warp_steps_within(a, a.pad_h / 2);
    const warp_steps fast = m.whole_rows(whole.first, whole.first + (int)whole.count);

    // Rows come by two, which are `row` words. Where a lane's words of the second and third row of the first
    // windows lie, of the first two columns, and how it takes its channels out of them.
    const uint32_t *from = warp_words(a.x);
    int word[2][2];
    uint32_t select[2][2];
    int p = m.first - 3,
        h = 2 * p - a.pad_h; // two steps earlier, for the windows above the first rows
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const int at = warp_phase(a.x) + m.channel +
                           ((m.image * a.image_h + h + 1 + r) * a.image_w + w0 + c) * inner;
            word[r][c] = at >> 1;
            select[r][c] = warp_selects(at & 1);
        }
    }
    auto load = [&](uint32_t(&raw)[IN], int r) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const uint32_t *words = from + (int)wd_opaque((uint32_t)word[r][c]);
#pragma unroll
            for (int i = c; i < IN; i += 2) {
                raw[i] = *words;
                words += inner;
            }
        }
    };
    // A row that may not be there, or have ends.
    auto load_any = [&](uint32_t(&raw)[IN], int r, int at) {
#pragma unroll
        for (int c = 0; c < IN; ++c) {
            const int words = (int)wd_opaque((uint32_t)word[r][c % 2]) + c / 2 * inner;
            const bool there = (uint32_t)at < (uint32_t)a.image_h && !(outside >> c & 1);
            raw[c] = m.halves(a, from + words, select[r][c % 2] == warp_selects(true), there, a.x);
        }
    };
    auto blank = [&](uint32_t(&v)[IN], int at) {
#pragma unroll
        for (int c = 0; c < IN; ++c) {
            if ((uint32_t)at >= (uint32_t)a.image_h || (outside >> c & 1)) v[c] = WARP_NANS;
        }
    };
    auto most_of = [&](const uint32_t(&v)[IN], int k) {
        return wd_packed_larger<T, false>(wd_packed_larger<T, false>(v[2 * k], v[2 * k + 1]),
                                          v[2 * k + 2]);
    };

    warp_shares<PAIRS> shares(a, m, p);
    warp_rows<PAIRS> rows(a, m, h);
    warp_given<T, PAIRS> given;
    uint32_t next[2][IN], top[IN], most_above[OVER], share_raw[OVER];
#pragma unroll
    for (int c = 0; c < IN; ++c) top[c] = next[0][c] = next[1][c] = 0;
#pragma unroll
    for (int k = 0; k < OVER; ++k) most_above[k] = share_raw[k] = 0;
#pragma unroll 1
    for (;; ++p) {
        uint32_t middle[IN], bottom[IN], give[OVER][9];
#pragma unroll
        for (int c = 0; c < IN; ++c) {
            middle[c] = warp_take(next[0][c], select[0][c % 2]);
            bottom[c] = warp_take(next[1][c], select[1][c % 2]);
        }
#pragma unroll
        for (int k = 0; k < OVER; ++k) give[k][0] = shares.take(share_raw, inner, k);
        if (sides || !whole.have(p)) {
            blank(middle, h + 1);
            blank(bottom, h + 2);
#pragma unroll
            for (int k = 0; k < OVER; ++k) {
                if ((uint32_t)p >= (uint32_t)a.windows_h || (outside >> k & 0x1000u))
                    give[k][0] = 0;
            }
        }
        from += row;
        shares.at += shares.row;
        if (fast.have(p + 1)) {
            load(next[0], 0);
            load(next[1], 1);
            shares.load(share_raw, inner, 0);
        } else if (p + 1 < m.last) {
            load_any(next[0], 0, h + 3);
            load_any(next[1], 1, h + 4);
            shares.load_any(share_raw, a, m, 0, p + 1);
        }
        if (p >= m.first - 1) {
#pragma unroll
            for (int k = 0; k < OVER; ++k) {
                const uint32_t most = wd_packed_larger<T, false>(
                    wd_packed_larger<T, false>(most_above[k], most_of(middle, k)),
                    most_of(bottom, k));
                uint32_t left = give[k][0];
#pragma unroll
                for (int i = 0; i < 9; ++i) {
                    const uint32_t v = i < 3   ? top[2 * k + i]
                                       : i < 6 ? middle[2 * k + i - 3]
                                               : bottom[2 * k + i - 6];
                    const uint32_t other = wd_packed_differ<T>(v, most);
                    give[k][i] = left & ~other;
                    left &= other;
                }
            }
            if (p >= m.first) {
                given.put(give, rows);
                rows.store(h >= 0, h + 1 < a.image_h);
            }
            given.keep(give);
        }
        if (p + 1 >= m.last) break;
#pragma unroll
        for (int k = 0; k < OVER; ++k) most_above[k] = most_of(bottom, k);
#pragma unroll
        for (int c = 0; c < IN; ++c) top[c] = bottom[c];
        rows.next();
        h += 2;
    }
}

} // namespace

#endif
