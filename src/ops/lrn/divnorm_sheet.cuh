// SPDX-License-Identifier: Apache-2.0
//
// The gradient of divisive normalization of planes that are made of whole runs, as divnorm_vector.cuh makes it, but a
// block has rows of one plane, over its whole width where that goes, and a thread the same columns from step to step: what that says of
// places is found once, not once a run. Behind each row of sums stands a quad of zeros, which is beside both its ends
// and the next one's; beyond the plane's rows there are rows of zeros among shares.
#ifndef WD_OPS_LRN_DIVNORM_SHEET_CUH
#define WD_OPS_LRN_DIVNORM_SHEET_CUH

#include "gpu/device/opaque.cuh"
#include "gpu/device/prefetch.cuh"
#include "ops/lrn/divnorm_tile.cuh"

namespace {

template <class T, int N, bool MEANS> struct sheet {
    typedef wd_run<T, QUAD> run;
    typedef wd_run<T, PAIR> pair_run;
    typedef pack<float, QUAD> quad;
    typedef pack<float, PAIR> pair;
    static constexpr int HALO = (N - 1) / 2; // odd windows
    static constexpr int DOWN = DIVNORM_DOWN, ROWS = DOWN + N - 1;
    const divnorm_sheet_args &a;
    int top, bottom;   // of the results
    int low, high;     // of sums and shares
    int left;          // column of what is stored first, of the plane or before it
    int place, column; // this thread's, in a stored row and in the plane
    int at_once;
    bool is_own; // its results are this block's
    float reference;
    const char *x_at; // of the plane's row 0, from this thread's column on
    char *to_at;
    const T *plane;
    float *sums; // of squares, then of x - reference: of products and of shares later

    __device__ __forceinline__ sheet(const divnorm_sheet_args &args) : a(args)
    {
        uint32_t s = blockIdx.x;
        left = ((int)wd_take_rest(s, a.by_part) * a.quads - a.lead) * QUAD;
        top = (int)wd_take_rest(s, a.by_segment) * a.rows;
        bottom = min(top + a.rows, a.height);
        low = max(top - HALO, 0);
        high = min(bottom + HALO, a.height);
        const int64_t channel = wd_take_rest(s, a.by_channel);
        plane = static_cast<const T *>(a.x) + s * a.in.image + channel * a.in.channel;
        to_at = reinterpret_cast<char *>(static_cast<T *>(a.out) + s * a.to.image +
                                         channel * a.to.channel);
        sums = wd_opaque_shared(wd_dynamic_shared<float>() + QUAD);
        reference = 0;
        if (MEANS) {
            // the mean in the middle, where it is a number
            reference =
                pixel(a.to_means, top + (bottom - top) / 2, min(left + a.pitch / 2, a.width - 1));
            if (!(reference - reference == 0)) reference = 0;
        }
    }
    __device__ __forceinline__ float pixel(int64_t bytes, int h, int w) const
    {
        const char *at = reinterpret_cast<const char *>(plane) + bytes + h * a.in_row;
        return wd_widen(reinterpret_cast<const T *>(at)[w]);
    }
    __device__ __forceinline__ float *means_of_sums() const
    {
        return sums + a.sums;
    }
    __device__ __forceinline__ float *shares() const
    {
        return sums + 2 * a.sums;
    }
    __device__ __forceinline__ float *products() const
    {
        return shares() + a.shares;
    }
    __device__ __forceinline__ float *direct() const
    {
        return products() + a.shares;
    }
    // What comes after the first sums is asked for while they are made.
    __device__ __forceinline__ void ask_ahead() const
    {
        const char *from = reinterpret_cast<const char *>(plane) + low * a.in_row + a.to_dy;
        const int count = (high - low) * a.width * (int)sizeof(T);
        for (int i = (int)threadIdx.x * WD_LINE; i < count; i += (int)blockDim.x * WD_LINE) {
            wd_prefetch_line(from + i);
            if (MEANS) wd_prefetch_line(from + (a.to_means - a.to_dy) + i);
        }
    }

    // What stands for pixels that the plane does not have. row: of this thread's first quad
    __device__ __forceinline__ void clear_margins(int row) const
    {
        for (int i = (int)threadIdx.x; i < 2 * a.sums_rows + 1; i += (int)blockDim.x) {
            wd_store_wide(sums - QUAD + i * a.pitch, 0.0f, 0.0f, 0.0f, 0.0f);
        }
        for (; row < 2 * HALO; row += at_once) {
            const int stored = row < HALO ? row : bottom - top + row, h = top - HALO + stored;
            float *at = shares() + stored * a.pitch + place;
            if ((uint32_t)h < (uint32_t)a.height) continue;
            wd_store_wide(at, 0.0f, 0.0f, 0.0f, 0.0f);
            if (MEANS) wd_store_wide(at + a.shares, 0.0f, 0.0f, 0.0f, 0.0f);
        }
    }

    // Sums of windows down the columns of x - reference and of its square.
    __device__ __forceinline__ void sum_columns(int pair_at, int first) const
    {
        // none of a column that is not the plane's
        const int height = (uint32_t)(left + pair_at) < (uint32_t)a.width ? a.height : 0;
        const int step = a.chunks_at_once * DOWN;
#pragma unroll 1
        for (int h = low + first * DOWN; h < high; h += step) {
            const char *row =
                reinterpret_cast<const char *>(plane + left + pair_at) + (h - HALO) * a.in_row;
            float *to = sums + (h - low) * a.pitch + pair_at;
            pair_run r[ROWS];
            float w[PAIR][ROWS], one[PAIR][DOWN];
            if (h >= HALO && h - HALO + ROWS <= height) {
#pragma unroll
                for (int j = 0; j < ROWS; ++j, row += a.in_row) {
                    r[j].load(reinterpret_cast<const T *>(row));
                }
            } else {
#pragma unroll
                for (int j = 0; j < ROWS; ++j, row += a.in_row) {
#pragma unroll
                    for (int v = 0; v < PAIR; ++v)
                        r[j].put(v, narrowed<T>(reference)); // which it is
                    if ((uint32_t)(h - HALO + j) < (uint32_t)height) {
                        r[j].load(reinterpret_cast<const T *>(row));
                    }
                }
            }
#pragma unroll
            for (int v = 0; v < PAIR; ++v) {
#pragma unroll
                for (int j = 0; j < ROWS; ++j) w[v][j] = wd_widen(r[j].get(v)) - reference;
                window_squares<DOWN, N>(w[v], one[v]);
            }
            keep(to, one);
            if constexpr (MEANS) {
#pragma unroll
                for (int v = 0; v < PAIR; ++v) window_sums<DOWN, N>(w[v], one[v]);
                keep(to + a.sums, one);
            }
        }
    }
    // There is room for all, wherever the tile ends.
    __device__ __forceinline__ void keep(float *to, const float (*one)[DOWN]) const
    {
#pragma unroll
        for (int j = 0; j < DOWN; ++j, to += a.pitch) wd_store_wide(to, one[0][j], one[1][j]);
    }

    // The sums along a row of four windows, of what is at `from` and beside it.
    __device__ __forceinline__ void sum_row(const float *from, float *out) const
    {
        float w[QUAD + 2 * HALO];
        const quad own = *reinterpret_cast<const quad *>(from);
        if constexpr (HALO == QUAD) {
            const quad left = *reinterpret_cast<const quad *>(from - QUAD);
            const quad right = *reinterpret_cast<const quad *>(from + QUAD);
#pragma unroll
            for (int v = 0; v < HALO; ++v) w[v] = left.v[v], w[HALO + QUAD + v] = right.v[v];
        } else {
            static_assert(HALO == PAIR, "windows of 5 and 9");
            const pair left = *reinterpret_cast<const pair *>(from - PAIR);
            const pair right = *reinterpret_cast<const pair *>(from + QUAD);
#pragma unroll
            for (int v = 0; v < HALO; ++v) w[v] = left.v[v], w[HALO + QUAD + v] = right.v[v];
        }
#pragma unroll
        for (int v = 0; v < QUAD; ++v) w[HALO + v] = own.v[v];
        window_sums<QUAD, N>(w, out);
    }

    // What a pixel's window has, term by term.
    __device__ __forceinline__ void add_terms(int h, float *s, float *q) const
    {
#pragma unroll 1
        for (int v = 0; v < QUAD; ++v) {
            const float mean = pixel(a.to_means, h, column + v);
            float sum = 0, square_sum = 0;
#pragma unroll 1
            for (int y = max(h - HALO, 0); y < min(h + HALO + 1, a.height); ++y) {
#pragma unroll 1
                for (int i = max(column + v - HALO, 0); i < min(column + v + HALO + 1, a.width);
                     ++i) {
                    const float d = pixel(0, y, i) - mean;
                    sum += d;
                    square_sum += d * d;
                }
            }
#pragma unroll
            for (int u = 0; u < QUAD; ++u) {
                if (u == v) s[u] = sum, q[u] = square_sum;
            }
        }
    }

    __device__ __forceinline__ void load(const char *at, run &x, run &dy, run &m) const
    {
        x.load(reinterpret_cast<const T *>(at));
        dy.load(reinterpret_cast<const T *>(at + a.to_dy));
        if (MEANS) m.load(reinterpret_cast<const T *>(at + a.to_means));
    }
    __device__ __forceinline__ void put(char *at, const float *value) const
    {
        run r;
#pragma unroll
        for (int v = 0; v < QUAD; ++v) r.put(v, narrowed<T>(a.single.alpha * value[v]));
        r.store(reinterpret_cast<T *>(at));
    }
    static __device__ __forceinline__ void store(float *to, const float *v)
    {
        wd_store_wide(to, v[0], v[1], v[2], v[3]);
    }

    // Each pixel's share, and what is its own alone. x, dy and m: of the first row.
    __device__ __forceinline__ void share(int first, run x, run dy, run m, float &largest_share,
                                          float &largest_mean) const
    {
        const float factor = a.single.factor;
        // what sums may be against those around a pixel's own mean, or the strength alone
        const float part = (a.dmeans ? 1.0f : factor) / DIVNORM_TRUST;
        const float slope = a.dmeans ? 1.0f : factor, more = a.dmeans ? 0.0f : a.single.k;
        const char *at = x_at + first * a.in_row;
        const float *from = sums + (first - low) * a.pitch + place;
        float *to = shares() + (first - top + HALO) * a.pitch + place;
        float *own_to = direct() + (first - top) * a.pitch + place;
        char *result = to_at + first * a.to_row + a.to_dmeans;
        float across[QUAD];
#pragma unroll
        for (int v = 0; v < QUAD; ++v) {
            across[v] = N;
            if (column == 0 && v < HALO) across[v] -= HALO - v;
            if (column + QUAD == a.width && v >= QUAD - HALO) across[v] -= v + 1 + HALO - QUAD;
        }
#pragma unroll 1
        for (int h = first; h < high; h += at_once) {
            float s[QUAD] = {}, q[QUAD], by[QUAD];
            float power[QUAD], inverse[QUAD], share[QUAD], own[QUAD];
            sum_row(from, q);
#pragma unroll
            for (int v = 0; v < QUAD; ++v) by[v] = MEANS ? wd_widen(m.get(v)) - reference : 0.0f;
            if (MEANS) {
                const float down = (float)(min(h + HALO + 1, a.height) - max(h - HALO, 0));
                bool fine = true;
                sum_row(from + a.sums, s);
#pragma unroll
                for (int v = 0; v < QUAD; ++v) {
                    const float all = q[v], around = s[v];
                    s[v] = around - across[v] * down * by[v];
                    q[v] = all - by[v] * (around + s[v]);
                    fine = fine & (part * all <= more + slope * q[v]);
                }
                if (__builtin_expect(!fine, 0)) add_terms(h, s, q);
            }
            powers<QUAD>(a, q, power, inverse);
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                const float value = wd_widen(x.get(v));
                own[v] = wd_widen(dy.get(v)) * power[v];
                share[v] = a.single.share * own[v] * value * inverse[v];
                s[v] = -share[v] * s[v];
                if (MEANS) {
                    largest_share = fmaxf(largest_share, fabsf(share[v]));
                    largest_mean = fmaxf(largest_mean, fabsf(by[v]));
                    by[v] = share[v] * by[v];
                }
            }
            const bool is_result = h >= top && h < bottom && is_own;
            at += a.in_step;
            if (h + at_once < high) load(at, x, dy, m);
            store(to, share);
            if (MEANS) store(to + a.shares, by);
            if (is_result) {
                store(own_to, own);
                if (MEANS && a.dmeans) put(result, s);
            }
            from += a.step;
            to += a.step;
            own_to += a.step;
            result += a.to_step;
        }
    }

    // Of what is not the plane's.
    __device__ __forceinline__ void share_none(int first) const
    {
        const float none[QUAD] = {};
#pragma unroll 1
        for (int h = first; h < high; h += at_once) {
            float *to = shares() + (h - top + HALO) * a.pitch + place;
            store(to, none);
            if (MEANS) store(to + a.shares, none);
        }
    }

    // The sums of windows down the columns of shares, or of products.
    __device__ __forceinline__ void sum_again(const float *from, float *to) const
    {
        float w[PAIR][ROWS], one[PAIR][DOWN];
#pragma unroll
        for (int j = 0; j < ROWS; ++j, from += a.pitch) {
            const pair r = *reinterpret_cast<const pair *>(from);
#pragma unroll
            for (int v = 0; v < PAIR; ++v) w[v][j] = r.v[v];
        }
#pragma unroll
        for (int v = 0; v < PAIR; ++v) window_sums<DOWN, N>(w[v], one[v]);
        keep(to, one);
    }
    __device__ __forceinline__ void sum_shares(int pair_at, int first) const
    {
        const int step = a.chunks_at_once * DOWN;
#pragma unroll 1
        for (int h = top + first * DOWN; h < bottom; h += step) {
            const int at = (h - top) * a.pitch + pair_at; // of the row HALO before
            sum_again(shares() + at, means_of_sums() + at);
            if (MEANS) sum_again(products() + at, sums + at);
        }
    }

    // What pixel h, w collects, term by term.
    __device__ __forceinline__ float collect_terms(int h, int w) const
    {
        const float value = pixel(0, h, w);
        float r = 0;
#pragma unroll 1
        for (int y = max(h - HALO, 0); y < min(h + HALO + 1, a.height); ++y) {
#pragma unroll 1
            for (int i = max(w - HALO, 0); i < min(w + HALO + 1, a.width); ++i) {
                const float mean = pixel(a.to_means, y, i);
                r += (value - mean) * shares()[(y - top + HALO) * a.pitch + i - left];
            }
        }
        return r;
    }
    // Whether what a pixel collects is more than what cancels, `by` from the reference.
    static __device__ __forceinline__ bool is_fine(float by, float own, float r, float most_share,
                                                   float largest_mean)
    {
        const bool is_far = fabsf(by) >= 1.25f * largest_mean;
        const bool is_more = (fabsf(by) + largest_mean) * most_share <= fabsf(own) + fabsf(r);
        return (is_far | is_more) & (r == r);
    }
    __device__ __forceinline__ void collect(int first, run x, float largest_share,
                                            float largest_mean) const
    {
        const char *at = x_at + first * a.in_row;
        const float *from = sums + (first - top) * a.pitch + place;
        const float *own_from = direct() + (first - top) * a.pitch + place;
        char *result = to_at + first * a.to_row;
        const float most_share = largest_share * (N * N) / (16 * DIVNORM_TRUST);
#pragma unroll 1
        for (int h = first; h < bottom; h += at_once) {
            const quad own = *reinterpret_cast<const quad *>(own_from);
            float s[QUAD], p[QUAD], by[QUAD], value[QUAD];
            bool fine = true;
            sum_row(from + a.sums, s);
            if (MEANS) sum_row(from, p);
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                by[v] = wd_widen(x.get(v)) - reference;
                s[v] = by[v] * s[v];
                if (MEANS) {
                    s[v] -= p[v];
                    fine = fine & is_fine(by[v], own.v[v], s[v], most_share, largest_mean);
                }
                value[v] = own.v[v] + s[v];
            }
            if (__builtin_expect(!fine, 0)) {
#pragma unroll 1
                for (int v = 0; v < QUAD; ++v) {
                    const float off = pick<QUAD>(by, v), direct = pick<QUAD>(own.v, v);
                    if (is_fine(off, direct, pick<QUAD>(s, v), most_share, largest_mean)) continue;
                    const float r = direct + collect_terms(h, column + v);
#pragma unroll
                    for (int u = 0; u < QUAD; ++u) value[u] = u == v ? r : value[u];
                }
            }
            at += a.in_step;
            if (h + at_once < bottom) x.load(reinterpret_cast<const T *>(at));
            put(result, value);
            from += a.step;
            own_from += a.step;
            result += a.to_step;
        }
    }

    __device__ __forceinline__ void go()
    {
        __shared__ uint4 bounds[DIVNORM_SHEET_THREADS / 32 / 2 + 1]; // two of a warp
        uint32_t row = threadIdx.x, chunk = threadIdx.x;
        const int pair_at = (int)wd_take_rest(chunk, a.by_pair) * PAIR;
        float largest_share = 0, largest_mean = 0;
        run x = {}, dy = {}, m = {};
        place = (int)wd_take_rest(row, a.by_quad) * QUAD;
        column = left + place;
        at_once = a.rows_at_once;
        x_at = reinterpret_cast<const char *>(plane + column);
        to_at += column * (int)sizeof(T);
        const int past = a.height + ROWS; // where a thread has nothing to do
        // threads are side by side as what they read is, that of the quad of zeros idle
        const int zeros = a.pitch - QUAD;
        const int first = row < (uint32_t)at_once && place < zeros ? (int)row : past;
        const int first_chunk =
            chunk < (uint32_t)a.chunks_at_once && pair_at < zeros ? (int)chunk : past;
        const bool is_plane = (uint32_t)column < (uint32_t)a.width;
        is_own = is_plane && (uint32_t)(place - a.lead * QUAD) < (uint32_t)(a.quads * QUAD);
        const int first_own = is_own ? top + first : past;
        if (a.asks) ask_ahead();
        clear_margins(first);
        sum_columns(pair_at, first_chunk);
        if (is_plane && low + first < high) load(x_at + (low + first) * a.in_row, x, dy, m);
        __syncthreads();
        if (is_plane) share(low + first, x, dy, m, largest_share, largest_mean);
        else share_none(low + first);
        if (MEANS) {
            // bits of numbers that are not negative are in their order
            const uint32_t s = __reduce_max_sync(0xffffffffu, __float_as_uint(largest_share));
            const uint32_t mean = __reduce_max_sync(0xffffffffu, __float_as_uint(largest_mean));
            uint32_t *own = reinterpret_cast<uint32_t *>(bounds) + threadIdx.x / 32 * 2;
            if (threadIdx.x % 32 == 0) own[0] = s, own[1] = mean;
        }
        __syncthreads();
        sum_shares(pair_at, first_chunk);
        if (first_own < bottom) {
            x.load(reinterpret_cast<const T *>(x_at + first_own * a.in_row));
        }
        __syncthreads();
        if (MEANS) {
#pragma unroll
            for (int i = 0; i < DIVNORM_SHEET_THREADS / 32 / 2 + 1; ++i) {
                const uint4 b = bounds[i];
                if (i * 64 < (int)blockDim.x) {
                    largest_share = fmaxf(largest_share, __uint_as_float(b.x));
                    largest_mean = fmaxf(largest_mean, __uint_as_float(b.y));
                }
                if (i * 64 + 32 < (int)blockDim.x) {
                    largest_share = fmaxf(largest_share, __uint_as_float(b.z));
                    largest_mean = fmaxf(largest_mean, __uint_as_float(b.w));
                }
            }
        }
        collect(first_own, x, largest_share, largest_mean);
    }
};

template <class T, int N>
__device__ __forceinline__ void div_sheet_backward(const divnorm_sheet_args &a)
{
    wd_wait_for_previous();
    if (a.means) sheet<T, N, true>(a).go();
    else sheet<T, N, false>(a).go();
}

} // namespace

#endif
