// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima of 3x3 windows at a stride of 2 over planes, straight from memory: a lane has four
// columns and the two windows that begin or are centred there, and walks down the rows; what it needs of
// its neighbours' columns and windows comes from their lanes. Nothing but x, dy and dx passes through
// memory, and no element is computed twice but at the edges of strips.
//
// Rows are counted within the padded image: of a pair 2p, 2p + 1 the first is in the windows p - 1 and p,
// the second in the middle of window p.
#ifndef WD_OPS_POOLING_COLUMNS_CUH
#define WD_OPS_POOLING_COLUMNS_CUH

#include "ops/pooling/pooling_columns_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

constexpr int COLUMNS = 4;

// PAD: of columns, 0 or 1. RUNS: rows of x and dx lie so that four columns are loaded and stored at once.
template <class T, int MODE, int PAD, bool RUNS>
__device__ __forceinline__ void column_maxima(const pool_columns_args &a)
{
    using A = acc<T>;
    using place = window_place<MODE, A>;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const uint32_t row = wd_fastdiv_quotient(lane, a.by_lanes); // of lanes, in the warp
    uint32_t n = warp * a.rows_of_warp + row;
    const bool works = row < a.rows_of_warp && n < a.units;
    if (!works) n = a.units - 1;
    const int segment = (int)wd_take_rest(n, a.by_segments);
    const int first = a.pad_h / 2 + (int)wd_take_rest(n, a.by_strips) * a.strip;
    int group = (int)(lane - row * a.by_lanes.divisor);
    // a lane more on either side where a row has several segments
    const bool edge = a.by_segments.divisor > 1 && (group == 0 || group == 31);
    if (a.by_segments.divisor > 1) group += segment * 30 - 1;
    const int w = group * COLUMNS;
    const bool in_row = works && group >= 0 && w < a.image_w;
    const bool writes = in_row && !edge;
    const T *x = static_cast<const T *>(a.x) + (size_t)n * (uint32_t)(a.image_h * a.image_w) + w;
    const T *dy = static_cast<const T *>(a.dy) + (size_t)n * (uint32_t)(a.windows_h * a.windows_w) +
                  2 * group;
    const size_t dx = (size_t)n * (uint32_t)(a.image_h * a.image_w) + (uint32_t)w;

    wd_run<T, COLUMNS> next;
    bool next_in = false;
    auto fetch = [&](int h) {
        next_in = (uint32_t)h < (uint32_t)a.image_h;
        const T *from = x + h * a.image_w;
        if (RUNS) {
            if (next_in && in_row) next.load(from);
        } else {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
                if (next_in && in_row && w + i < a.image_w) next.put(i, from[i]);
            }
        }
    };
    T share_next[2];
    auto fetch_shares = [&](int p) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            wd_narrow(share_next[k], (A)0);
            if ((uint32_t)p < (uint32_t)a.windows_h && in_row && 2 * group + k < a.windows_w) {
                share_next[k] = dy[p * a.windows_w + k];
            }
        }
    };
    // Of the row at hand, as row R of the lane's two windows.
    auto read = [&](place(&of_row)[2], uint32_t r, int following, bool more) {
        A v[COLUMNS + 1]; // from the first column of the first window on
        bool in[COLUMNS + 1];
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            v[PAD + i] = wd_widen(next.get(i));
            in[PAD + i] = next_in && in_row && (RUNS || w + i < a.image_w);
        }
        if (PAD == 1) {
            v[0] = __shfl_sync(0xffffffffu, v[COLUMNS], (int)lane - 1);
            in[0] = next_in && in_row && group > 0;
        } else {
            v[COLUMNS] = __shfl_sync(0xffffffffu, v[0], (int)lane + 1);
            in[COLUMNS] = next_in && in_row && w + COLUMNS < a.image_w;
        }
        if (more) fetch(following);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            of_row[k].clear();
#pragma unroll
            for (int s = 0; s < 3; ++s) {
                if (MODE == POOL_MAX) {
                    // outside and NaN are no candidates
                    const A seen = in[2 * k + s] ? v[2 * k + s] : nothing<MODE, A>();
                    if (s == 0) {
                        of_row[k].value = seen;
                        of_row[k].code = r * 4;
                    } else {
                        const A most = larger(of_row[k].value, seen);
                        of_row[k].code = most == of_row[k].value ? of_row[k].code : r * 4 + s;
                        of_row[k].value = most;
                    }
                } else if (in[2 * k + s]) {
                    of_row[k].take(v[2 * k + s], r * 4 + s);
                }
            }
        }
    };
    auto join = [&](place &to, const place &other) {
        if (MODE == POOL_MAX) {
            const A most = larger(to.value, other.value);
            to.code = most == to.value ? to.code : other.code;
            to.value = most;
        } else if (other.code != POOL_NO_CODE) {
            to.take(other.value, other.code);
        }
    };
    // Of two windows: whom they give to, and what; with the neighbour's one that reaches in.
    struct given {
        uint32_t code[3];
        A share[3];
    };
    auto give = [&](A &sum, const given &from, int k, uint32_t at) {
        sum += from.code[k] == at ? from.share[k] : (A)0;
    };
    // columns of windows k that are column i of the lane: with padding the neighbour's is on the right
    auto collect = [&](A(&sum)[COLUMNS], const given &from, uint32_t r) {
        if (PAD == 1) {
            give(sum[0], from, 0, r * 4 + 1);
            give(sum[1], from, 0, r * 4 + 2);
            give(sum[1], from, 1, r * 4);
            give(sum[2], from, 1, r * 4 + 1);
            give(sum[3], from, 1, r * 4 + 2);
            give(sum[3], from, 2, r * 4);
        } else {
            give(sum[0], from, 2, r * 4 + 2);
            give(sum[0], from, 0, r * 4);
            give(sum[1], from, 0, r * 4 + 1);
            give(sum[2], from, 0, r * 4 + 2);
            give(sum[2], from, 1, r * 4);
            give(sum[3], from, 1, r * 4 + 1);
        }
    };
    auto put = [&](int h, const A(&sum)[COLUMNS]) {
        if (!writes || (uint32_t)h >= (uint32_t)a.image_h) return;
        const size_t to = dx + (uint32_t)(h * a.image_w);
        if (RUNS) {
            put_scaled<T, COLUMNS>(a, to, sum);
        } else {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
                if (w + i < a.image_w) put_scaled<T, 1>(a, to + i, sum + i);
            }
        }
    };

    place carried[2]; // the row that windows of two steps share
    given above;
    fetch(2 * (first - 1) - a.pad_h);
    fetch_shares(first - 1);
    for (int p = first - 1; p < first + a.strip; ++p) {
        const int h = 2 * p - a.pad_h;
        place now[2], of_row[2];
        given mine;
        if (p < first) {
            read(now, 0, h + 1, true);
        } else {
#pragma unroll
            for (int k = 0; k < 2; ++k) now[k] = carried[k];
        }
        read(of_row, 1, h + 2, true);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            join(now[k], of_row[k]);
            mine.share[k] = wd_widen(share_next[k]);
        }
        fetch_shares(p + 1);
        read(carried, 2, h + 3, true);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            join(now[k], carried[k]);
            mine.code[k] = now[k].code;
            if (MODE == POOL_MAX && now[k].value != now[k].value) mine.code[k] = POOL_NO_CODE;
            // the next step's first row
            if (carried[k].code != POOL_NO_CODE) carried[k].code -= 8;
        }
        if (PAD == 1) {
            mine.code[2] = __shfl_sync(0xffffffffu, mine.code[0], (int)lane + 1);
            mine.share[2] = __shfl_sync(0xffffffffu, mine.share[0], (int)lane + 1);
            if (w + COLUMNS >= a.image_w) mine.code[2] = POOL_NO_CODE;
        } else {
            mine.code[2] = __shfl_sync(0xffffffffu, mine.code[1], (int)lane - 1);
            mine.share[2] = __shfl_sync(0xffffffffu, mine.share[1], (int)lane - 1);
            if (group == 0) mine.code[2] = POOL_NO_CODE;
        }
        if (p >= first) {
            A sum[COLUMNS], lower[COLUMNS];
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) sum[i] = lower[i] = (A)0;
            collect(sum, above, 2);
            collect(sum, mine, 0);
            put(h, sum);
            collect(lower, mine, 1);
            put(h + 1, lower);
        }
        above = mine;
    }
}

} // namespace

#endif
