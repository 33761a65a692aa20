// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima of 3x3 windows at a stride of 2 over pixels, straight from memory: a thread has a
// run of channels and a few pairs of columns of dx, and walks down the rows. It finds the windows over its
// columns, those at the sides once more than their neighbour does, and collects from them in registers.
//
// Columns and rows are counted within the padded image: of a pair 2j, 2j + 1 the first is in the windows
// j - 1 (on the right) and j (on the left), the second in the middle of window j.
#ifndef WD_OPS_POOLING_WALK_MAX_CUH
#define WD_OPS_POOLING_WALK_MAX_CUH

#include "gpu/device/packed.cuh"
#include "gpu/device/prefetch.cuh"
#include "ops/pooling/pooling_walk_args.h"
#include "ops/pooling/pooling_window.cuh"

namespace {

// Rows of x that the L2 is asked for beyond the one that is loaded.
constexpr int MAXIMA_AHEAD = 2;

// Where maxima are: the row of a window times 4, and the column. None has all bits.
constexpr uint32_t NO_PLACE = 0xffffffffu;

template <class T>
__device__ __forceinline__ constexpr uint32_t place_code(uint32_t row, uint32_t column)
{
    return (row * 4 + column) * (sizeof(T) == 4 ? 1u : 0x10001u);
}

__device__ __forceinline__ uint32_t pick(uint32_t mask, uint32_t a, uint32_t b)
{
    return (a & mask) | (b & ~mask);
}

// The largest of a run so far, and where; elements come in row-major order.
template <class T, int V, int MODE> struct run_place {
    static constexpr int WORDS = wd_run<T, V>::WORDS;
    uint32_t value[WORDS];
    uint32_t code[WORDS];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            value[i] = sizeof(T) == 4 ? 0x7fc00000u : 0x7fff7fffu; // NaN
            code[i] = NO_PLACE;
        }
    }
    // POOL_MAX: what is outside of the image, and what is none, is a NaN.
    __device__ __forceinline__ void take(int i, uint32_t v, uint32_t at, bool in)
    {
        if (MODE == POOL_MAX) {
            const uint32_t most = wd_packed_larger<T, false>(value[i], v);
            code[i] = pick(wd_packed_differ<T>(most, value[i]), at, code[i]);
            value[i] = most;
        } else {
            const uint32_t number = ~wd_packed_differ<T>(value[i], value[i]);
            const uint32_t beats = number & ~wd_packed_within<T>(v, value[i]);
            const uint32_t none = wd_packed_same_code<float>(code[i], NO_PLACE);
            const uint32_t takes = in ? none | beats : 0u;
            code[i] = pick(takes, at, code[i]);
            value[i] = pick(takes, v, value[i]);
        }
    }
    __device__ __forceinline__ void finish()
    {
        if (MODE == POOL_MAX) {
#pragma unroll
            for (int i = 0; i < WORDS; ++i) code[i] |= wd_packed_differ<T>(value[i], value[i]);
        }
    }
};

// PAIRS of columns of dx of a thread.
template <class T, int MODE, int PAIRS>
__device__ __forceinline__ void walk_maxima(const pool_walk_args &a)
{
    constexpr int V = 16 / (int)sizeof(T);
    constexpr int WORDS = wd_run<T, V>::WORDS;
    constexpr int OVER = PAIRS + 1;   // windows
    constexpr int IN = 2 * PAIRS + 3; // columns of x
    constexpr int EACH = V / WORDS;
    using place = run_place<T, V, MODE>;
    const pool_walk_axis &high = a.axis[1], &wide = a.axis[2];
    uint32_t n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= a.items) return;
    const uint32_t run = wd_take_rest(n, a.by_inner) * V;
    const int j = wide.pad / 2 + (int)wd_take_rest(n, a.by_groups) * PAIRS;
    const int first = high.pad / 2 + (int)wd_take_rest(n, a.by_strips) * a.strip;
    const int last = min(first + a.strip, (high.pad + high.outs + 1) / 2);
    const int w0 = 2 * (j - 1) - wide.pad; // the first column that is read
    const T *x = static_cast<const T *>(a.from) + run;
    const T *dy = static_cast<const T *>(a.dy) + run;
    const uint32_t row_elements = (uint32_t)wide.outs * a.inner;

    const int ask_end = min(2 * last - high.pad + 1, high.outs);
    wd_run<T, V> next[IN];
    bool next_in = false;
    // Row h of x; rows and columns outside are NaN.
    auto fetch = [&](int h) {
        next_in = (uint32_t)h < (uint32_t)high.outs;
        const T *line = x + (size_t)((n * (uint32_t)high.outs + (uint32_t)h) * row_elements);
#pragma unroll
        for (int c = 0; c < IN; ++c) {
#pragma unroll
            for (int i = 0; i < WORDS; ++i) {
                next[c].word[i] = sizeof(T) == 4 ? 0x7fc00000u : 0x7fff7fffu;
            }
            if (next_in && (uint32_t)(w0 + c) < (uint32_t)wide.outs) {
                next[c].load(line + (w0 + c) * (int)a.inner);
            }
        }
        // its own two columns, some rows ahead
        const int ahead = h + MAXIMA_AHEAD;
        if ((uint32_t)ahead < (uint32_t)ask_end) {
            const uint32_t other = (n * (uint32_t)high.outs + (uint32_t)ahead) * row_elements;
            const T *own = x + (size_t)other + (w0 + 2) * (int)a.inner;
            if (w0 + 2 >= 0) wd_prefetch_line(own);
            if (w0 + 3 < wide.outs) wd_prefetch_line(own + a.inner);
        }
    };
    // Of row h, as row `r` of windows.
    auto read = [&](place(&of_row)[OVER], uint32_t r, int following, bool more) {
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            of_row[k].clear();
#pragma unroll
            for (int s = 0; s < 3; ++s) {
                const bool in = next_in && (uint32_t)(w0 + 2 * k + s) < (uint32_t)wide.outs;
#pragma unroll
                for (int i = 0; i < WORDS; ++i) {
                    of_row[k].take(i, next[2 * k + s].word[i], place_code<T>(r, (uint32_t)s), in);
                }
            }
        }
        if (more) fetch(following);
    };
    auto join = [&](place &to, const place &other) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            if (MODE == POOL_MAX) {
                const uint32_t most = wd_packed_larger<T, false>(to.value[i], other.value[i]);
                const uint32_t takes = wd_packed_differ<T>(most, to.value[i]);
                to.code[i] = pick(takes, other.code[i], to.code[i]);
                to.value[i] = most;
            } else {
                const uint32_t there = ~wd_packed_same_code<float>(other.code[i], NO_PLACE);
                const uint32_t none = wd_packed_same_code<float>(to.code[i], NO_PLACE);
                const uint32_t number = ~wd_packed_differ<T>(to.value[i], to.value[i]);
                const uint32_t beats = number & ~wd_packed_within<T>(other.value[i], to.value[i]);
                const uint32_t takes = there & (none | beats);
                to.code[i] = pick(takes, other.code[i], to.code[i]);
                to.value[i] = pick(takes, other.value[i], to.value[i]);
            }
        }
    };
    place carried[OVER];        // the row that the windows of two steps share
    uint32_t code[OVER][WORDS]; // of the windows above
    wd_run<T, V> above[OVER];
    wd_run<T, V> share[OVER];

    auto fetch_shares = [&](int p) {
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            const int q = j - 1 + k;
#pragma unroll
            for (int i = 0; i < WORDS; ++i) share[k].word[i] = 0;
            if ((uint32_t)p < (uint32_t)high.ins && (uint32_t)q < (uint32_t)wide.ins) {
                const uint32_t row = n * (uint32_t)high.ins + (uint32_t)p;
                const T *at = dy + ((size_t)row * (uint32_t)wide.ins + (uint32_t)q) * a.inner;
                share[k].load(at);
                if (k == PAIRS && p + 1 < high.ins)
                    wd_prefetch_line(at + (uint32_t)wide.ins * a.inner);
            }
        }
    };
    // What a window hands to a pixel if it is at code `at`.
    auto given = [&](int i, const uint32_t(&of)[WORDS], const wd_run<T, V> &dys, uint32_t at) {
        return dys.word[i] & wd_packed_same_code<T>(of[i], at);
    };
    // Words of dx; of 16 bits alpha is 1.
    auto put = [&](int h, int w, auto make) {
        if ((uint32_t)h >= (uint32_t)high.outs || (uint32_t)w >= (uint32_t)wide.outs) return;
        const size_t row = (size_t)(n * (uint32_t)high.outs + (uint32_t)h) * row_elements;
        T *to = static_cast<T *>(a.out) + row + (uint32_t)w * a.inner + run;
        wd_run<T, V> sum;
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            sum.word[i] = make(i);
            if (sizeof(T) == 4) {
                sum.word[i] = __float_as_uint(a.alpha * __uint_as_float(sum.word[i]));
            }
        }
        if (a.streaming) sum.store_streaming(to);
        else sum.store(to);
    };

    // Windows above the first rows, then step by step; a step has rows 2p, 2p + 1 and windows p.
    fetch(2 * (first - 1) - high.pad);
    for (int p = first - 1; p < last; ++p) {
        const int h = 2 * p - high.pad;
        place now[OVER];
        fetch_shares(p);
        if (p < first) read(now, 0, h + 1, true);
        else {
#pragma unroll
            for (int k = 0; k < OVER; ++k) now[k] = carried[k];
        }
        place of_row[OVER];
        read(of_row, 1, h + 2, true);
#pragma unroll
        for (int k = 0; k < OVER; ++k) join(now[k], of_row[k]);
        read(carried, 2, h + 3, p + 1 < last);
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            join(now[k], carried[k]);
            now[k].finish();
            // for the next step the first row
#pragma unroll
            for (int i = 0; i < WORDS; ++i) {
                const uint32_t bits = place_code<T>(2, 0);
                if (MODE == POOL_MAX) carried[k].code[i] ^= bits;
                else if (carried[k].code[i] != NO_PLACE) carried[k].code[i] ^= bits;
            }
        }
        if (p >= first) {
#pragma unroll
            for (int k = 0; k < PAIRS; ++k) {
                const int w = 2 * (j + k) - wide.pad;
                // four windows: put together in single precision
                put(h, w, [&](int i) {
                    const uint32_t of[4] = {
                        given(i, code[k], above[k], place_code<T>(2, 2)),
                        given(i, code[k + 1], above[k + 1], place_code<T>(2, 0)),
                        given(i, now[k].code, share[k], place_code<T>(0, 2)),
                        given(i, now[k + 1].code, share[k + 1], place_code<T>(0, 0))};
                    float sum[EACH];
#pragma unroll
                    for (int e = 0; e < EACH; ++e) {
                        sum[e] = wd_packed_get<T>(of[0], e) + wd_packed_get<T>(of[1], e) +
                                 wd_packed_get<T>(of[2], e) + wd_packed_get<T>(of[3], e);
                    }
                    if constexpr (EACH == 1) return __float_as_uint(sum[0]);
                    else return wd_packed_narrow<T>(sum[0], sum[1]);
                });
                // two, and one
                put(h, w + 1, [&](int i) {
                    return wd_packed_add<T>(
                        given(i, code[k + 1], above[k + 1], place_code<T>(2, 1)),
                        given(i, now[k + 1].code, share[k + 1], place_code<T>(0, 1)));
                });
                put(h + 1, w, [&](int i) {
                    return wd_packed_add<T>(
                        given(i, now[k].code, share[k], place_code<T>(1, 2)),
                        given(i, now[k + 1].code, share[k + 1], place_code<T>(1, 0)));
                });
                put(h + 1, w + 1, [&](int i) {
                    return given(i, now[k + 1].code, share[k + 1], place_code<T>(1, 1));
                });
            }
        }
#pragma unroll
        for (int k = 0; k < OVER; ++k) {
            above[k] = share[k];
#pragma unroll
            for (int i = 0; i < WORDS; ++i) code[k][i] = now[k].code[i];
        }
    }
}

} // namespace

#endif
