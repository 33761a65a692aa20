// SPDX-License-Identifier: Apache-2.0
//
// Gradients of windows of 3x3 at a stride of 2 over pixels of 16 bits at any alignment, straight from memory: a lane
// has two channels of a few pairs of columns of dx, and walks down the rows. It loads the aligned word that its first
// channel is in; where that is the word's second half, the other channel is in the next lane's. What a warp makes of
// a row is one piece of memory, which goes through shared memory, for whole 16 bytes to be stored.
//
// Columns and rows are counted within the padded image: of a pair 2j, 2j + 1 the first is in the windows j - 1
// (on the right) and j (on the left), the second in the middle of window j.
#ifndef WD_OPS_POOLING_WARP_BLOCK_CUH
#define WD_OPS_POOLING_WARP_BLOCK_CUH

#include "gpu/device/opaque.cuh"
#include "gpu/device/packed.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "ops/pooling/pooling_warp_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

// Steps of a walk down the rows of windows.
struct warp_steps {
    int first;
    uint32_t count;

    __device__ __forceinline__ bool have(int p) const
    {
        return (uint32_t)(p - first) < count;
    }
};

// Rows of windows from `first` on, up to where the image has not all of a window's rows.
__device__ __forceinline__ warp_steps warp_steps_within(const pool_warp_args &a, int first)
{
    const int end = min(a.windows_h, (a.image_h - 1 + a.pad_h) / 2);
    return {first, (uint32_t)(end - first)};
}

// Where a lane is; of all of these, PAIRS are the pairs of columns of a unit.
template <int PAIRS> struct warp_place {
    uint32_t lane;
    int unit;
    int channel;
    bool has;    // the first of its channels,
    bool second; // and the other one
    int image;
    int group;
    int j;     // of the first pair of columns
    int first; // pairs of rows first .. last-1
    int last;
    bool begins; // the tensors: words there may be theirs by half
    bool finishes;

    __device__ __forceinline__ explicit warp_place(const pool_warp_args &a)
    {
        uint32_t n = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
        lane = threadIdx.x % 32;
        unit = (int)wd_fastdiv_quotient(lane, a.by_lanes);
        channel = 2 * ((int)lane - unit * (int)a.by_lanes.divisor);
        group = (int)wd_take_rest(n, a.by_sets) * a.each + unit;
        has = unit < a.each && group < a.groups;
        if (!has) group -= unit, unit = 0;
        second = has && channel + 1 < a.inner;
        image = (int)wd_take_rest(n, a.by_outer);
        const int strip = (int)n;
        j = a.pad_w / 2 + group * PAIRS;
        first = a.pad_h / 2 + strip * a.strip;
        last = min(first + a.strip, (a.pad_h + a.image_h + 1) / 2);
        begins = image == 0;
        finishes = image + 1 == (int)a.by_outer.divisor;
    }
    __device__ __forceinline__ bool is_there(const pool_warp_args &a) const
    {
        return first < (a.pad_h + a.image_h + 1) / 2;
    }
    // Of rows from .. to-1 of windows, those that whole words may be loaded of, for all that is read is there.
    __device__ __forceinline__ warp_steps whole_rows(int from, int to) const
    {
        from += begins ? 2 : 0;
        to -= finishes ? 2 : 0;
        to = min(to, last);
        return {from, (uint32_t)max(to - from, 0)};
    }
    // A word of a lane's, by its halves but for channels that there are not; `other` where it is not there.
    __device__ __forceinline__ uint32_t halves(const pool_warp_args &a, const uint32_t *words,
                                               bool shifted, bool there, const void *other) const
    {
        const uint16_t *half = reinterpret_cast<const uint16_t *>(words);
        const uint16_t *low = half + (shifted && channel == 0 ? 1 : 0);
        const uint16_t *high = half + (!shifted && channel + 1 == a.inner ? 0 : 1);
        if (!there) low = high = static_cast<const uint16_t *>(other);
        return (uint32_t)*low | (uint32_t)*high << 16;
    }
};

// The words that a tensor's element 0 is in, and whether it is the second half.
__device__ __forceinline__ int warp_phase(const void *tensor)
{
    return (int)((uintptr_t)tensor / 2 % 2);
}
__device__ __forceinline__ const uint32_t *warp_words(const void *tensor)
{
    return reinterpret_cast<const uint32_t *>(static_cast<const unsigned char *>(tensor) -
                                              2 * warp_phase(tensor));
}
// A lane's channels out of a word and the next lane's.
__device__ __forceinline__ uint32_t warp_selects(bool shifted)
{
    return shifted ? 0x5432 : 0x3210;
}
__device__ __forceinline__ uint32_t warp_take(uint32_t raw, uint32_t select)
{
    return wd_opaque(__byte_perm(raw, __shfl_down_sync(0xffffffffu, raw, 1), select));
}

// The windows over a unit's columns: of a row of dy at a time.
template <int PAIRS> struct warp_shares {
    static constexpr int OVER = PAIRS + 1; // windows
    const uint32_t *words;
    int at; // of the row at hand, at first `begin`
    int row;

    __device__ __forceinline__ warp_shares(const pool_warp_args &a, const warp_place<PAIRS> &m,
                                           int begin)
        : words(warp_words(a.dy)), row(a.windows_w * a.inner)
    {
        at = warp_phase(a.dy) + m.channel +
             ((m.image * a.windows_h + begin) * a.windows_w + m.j - 1) * a.inner;
    }
    __device__ __forceinline__ uint32_t take(const uint32_t (&raw)[OVER], int inner, int k) const
    {
        return warp_take(raw[k], warp_selects((at + k * inner) & 1));
    }
    // A row, so many `ahead`.
    __device__ __forceinline__ void load(uint32_t (&raw)[OVER], int inner, int ahead) const
    {
#pragma unroll
        for (int k = 0; k < OVER; ++k) raw[k] = words[(at + ahead * row + k * inner) >> 1];
    }
    // The same of row p, which may not be there, or have ends.
    __device__ __forceinline__ void load_any(uint32_t (&raw)[OVER], const pool_warp_args &a,
                                             const warp_place<PAIRS> &m, int ahead, int p) const
    {
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            const int of = at + ahead * row + k * a.inner;
            const bool there = (uint32_t)p < (uint32_t)a.windows_h &&
                               (uint32_t)(m.j - 1 + k) < (uint32_t)a.windows_w;
            raw[k] = m.halves(a, words + (of >> 1), of & 1, there, a.dy);
        }
    }
};

// Two rows of dx of a warp, at the boundaries of 16 bytes that they have in memory. They are 16 bytes or more.
template <int PAIRS> struct warp_rows {
    static constexpr int ROW = pool_warp_row(PAIRS);
    unsigned char *to; // the first row, a lane's 16 bytes
    unsigned char *rows;
    unsigned char *mine; // in shared memory, if rows were at such a boundary
    unsigned char *at[2];
    int row; // in bytes
    int length;
    int step; // from column to column
    bool has;
    bool second;

    __device__ __forceinline__ warp_rows(const pool_warp_args &a, const warp_place<PAIRS> &m, int h)
        : row(a.image_w * a.inner * 2), step(a.inner * 2), has(m.has), second(m.second)
    {
        const int own = 2 * (m.j - m.unit * PAIRS) - a.pad_w; // of the first unit
        const int begin = max(own, 0);
        const int end = min(own + a.each * 2 * PAIRS, a.image_w);
        length = (end - begin) * step;
        to = static_cast<unsigned char *>(a.out) +
             ((ptrdiff_t)((m.image * a.image_h + h) * a.image_w + begin) * step + 16 * m.lane);
        rows = wd_dynamic_shared<unsigned char>() + threadIdx.x / 32 * (2 * ROW) + POOL_WARP_MARGIN;
        mine = rows + (own - begin + m.unit * 2 * PAIRS) * step + 2 * m.channel;
    }
    __device__ __forceinline__ int phase(int r) const
    {
        return (int)((uint32_t)(uintptr_t)to + (uint32_t)(r * row)) & 15;
    }
    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int r = 0; r < 2; ++r) at[r] = mine + (phase(r) + r * ROW);
    }
    __device__ __forceinline__ void put(int r, int o, uint32_t value) const
    {
        unsigned char *half = at[r] + o * step;
        if (has) *reinterpret_cast<uint16_t *>(half) = (uint16_t)value;
        if (second) *reinterpret_cast<uint16_t *>(half + 2) = (uint16_t)(value >> 16);
    }
    // Both rows, of those that there are, go out.
    __device__ __forceinline__ void store(bool upper, bool lower) const
    {
        const int lane = (int)threadIdx.x % 32;
        __syncwarp();
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int before = phase(r);
#pragma unroll
            for (int run = 0; run < PAIRS * 256; run += 512) {
                const uint32_t of = (uint32_t)(16 * lane + run - before);
                if ((r ? lower : upper) && of <= (uint32_t)(length - 16)) {
                    *reinterpret_cast<uint4 *>(to + (r * row - before + run)) =
                        *reinterpret_cast<const uint4 *>(rows + 16 * lane + (r * ROW + run));
                }
            }
        }
        // what is before the first whole 16 bytes, and behind the last: half a warp a row
        const int r = lane / 16, n = lane % 16 * 2;
        const int before = phase(r), end = before + length;
        const bool head = n < 16;
        const int of = head ? n : (end & ~15) + n - 16;
        if ((r ? lower : upper) && of >= (head ? ((before + 15) & 15) + 1 : 0) && of < end) {
            *reinterpret_cast<uint16_t *>(to + (r * row - before + of - 16 * lane)) =
                *reinterpret_cast<const uint16_t *>(rows + r * ROW + of);
        }
        __syncwarp();
    }
    __device__ __forceinline__ void next()
    {
        to += 2 * row;
    }
};

// What windows hand to their elements, by their places: of the two rows of a step, and kept for the row after.
template <class T, int PAIRS> struct warp_given {
    uint32_t above[PAIRS][3];

    __device__ __forceinline__ warp_given()
    {
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) above[k][0] = above[k][1] = above[k][2] = 0;
    }
    __device__ __forceinline__ void put(const uint32_t (&give)[PAIRS + 1][9],
                                        warp_rows<PAIRS> &rows) const
    {
        rows.begin();
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            float sum[2]; // of four windows: put together in single precision
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                sum[e] = wd_packed_get<T>(above[k][0], e) + wd_packed_get<T>(above[k][1], e) +
                         wd_packed_get<T>(give[k][2], e) + wd_packed_get<T>(give[k + 1][0], e);
            }
            rows.put(0, 2 * k, wd_packed_narrow<T>(sum[0], sum[1]));
            rows.put(0, 2 * k + 1, wd_packed_add<T>(above[k][2], give[k + 1][1]));
            rows.put(1, 2 * k, wd_packed_add<T>(give[k][5], give[k + 1][3]));
            rows.put(1, 2 * k + 1, give[k + 1][4]);
        }
    }
    __device__ __forceinline__ void keep(const uint32_t (&give)[PAIRS + 1][9])
    {
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            above[k][0] = give[k][8];
            above[k][1] = give[k + 1][6];
            above[k][2] = give[k + 1][7];
        }
    }
};

} // namespace

#endif
