// SPDX-License-Identifier: Apache-2.0
//
// The gradient of divisive normalization by threads that go down rows (divnorm_walk.cuh): each makes the shares of
// its columns, sees those of its neighbours in shared memory, and adds them up as it does x. Rows of a strip, a
// plane's or a part of them, are a warp's; a narrow plane's are some lanes'. Nothing waits for other warps.
#ifndef WD_OPS_LRN_DIVNORM_WALK_BACK_CUH
#define WD_OPS_LRN_DIVNORM_WALK_BACK_CUH

#include "ops/lrn/divnorm_walk.cuh"

namespace {

// column_sums, but what windows have of groups before is in shared memory, in quads of the lane's own: so a processor
// has a block more.
template <int N, int W> struct shared_sums {
    static_assert(N == PHASES + 1 && W == DIVNORM_QUAD, "what windows have of one group before");
    typedef pack<float, W> quad;
    float *behind;
    float begun[W];

    __device__ __forceinline__ quad &row(int j) const
    {
        return *reinterpret_cast<quad *>(behind + j * 32 * W);
    }
    __device__ __forceinline__ void store(int j, const quad &q) const
    {
        wd_store_wide(behind + j * 32 * W, q.v[0], q.v[1], q.v[2], q.v[3]);
    }
    __device__ __forceinline__ void begin(float *at)
    {
        const quad none = {};
        behind = at;
#pragma unroll
        for (int j = 0; j < PHASES; ++j) store(j, none);
    }
    // Row J of its group; out may be in.
    template <int J> __device__ __forceinline__ void push(const float *in, float *out)
    {
        const quad before = row(J);
        quad one;
#pragma unroll
        for (int v = 0; v < W; ++v) {
            one.v[v] = in[v];
            begun[v] = J ? begun[v] + in[v] : in[v];
            out[v] = before.v[v] + begun[v];
        }
        store(J, one);
        if constexpr (J == PHASES - 1) {
#pragma unroll
            for (int j = PHASES - 2; j >= 0; --j) {
                const quad own = row(j);
#pragma unroll
                for (int v = 0; v < W; ++v) one.v[v] += own.v[v];
                store(j, one);
            }
        }
    }
};

template <class T, int N, bool MEANS, bool DMEANS> struct walk_backward : walk<T, N, DIVNORM_QUAD> {
    static constexpr int COLS = DIVNORM_QUAD;
    typedef walk<T, N, COLS> base;
    typedef pack<float, COLS> quad;
    using base::a;
    using base::begin, base::end, base::row;
    static constexpr int HALO = base::HALO;
    // Quads of a lane in shared memory: rings of rows. A share is there as long as a window has it, and a row
    // more: lanes are at most that apart.
    enum {
        SHARES = 0,
        SHARE_ROWS = N + 1,
        PRODUCTS = SHARE_ROWS,
        DIRECT = PRODUCTS + 2,
        DIRECT_ROWS = HALO + 1,
        QUADS = DIRECT + DIRECT_ROWS
    };
    // Floats of a warp's row of quads: there are quads of zeros between strips.
    static constexpr int PITCH = DIVNORM_RING_LANES * COLS;
    static_assert(QUADS == DIVNORM_WALK_QUADS(N), "as the host counts");

    column_sums<N, COLS> sums;
    shared_sums<N, COLS> squares, share_sums, product_sums;
    float *own;  // the lane's first quad
    bool stores; // results of this lane are its own, not another strip's
    int share_slot, direct_slot;
    float largest_share, largest_mean;
    typename base::wide last;
    typename base::run x, means, dy; // of shares
    typename base::run result_x;

    __device__ __forceinline__ walk_backward(const base &b) : base(b)
    {
    }
    // Rows that results need shares of.
    __device__ __forceinline__ bool is_share(int h) const
    {
        return this->is_row(h) && h >= begin - HALO && h < end + HALO && this->has_own;
    }
    __device__ __forceinline__ bool is_result(int h) const
    {
        return h >= begin && h < end && stores;
    }
    __device__ __forceinline__ void keep(int slot, const float *v) const
    {
        wd_store_wide(own + slot * PITCH, v[0], v[1], v[2], v[3]);
    }
    // A lane's row with what its neighbours have beside it.
    __device__ __forceinline__ void between(int slot, const float *middle, float *w) const
    {
        const float *at = own + slot * PITCH;
#pragma unroll
        for (int v = 0; v < HALO; v += 2) {
            const float2 before = *reinterpret_cast<const float2 *>(at - HALO + v);
            const float2 behind = *reinterpret_cast<const float2 *>(at + COLS + v);
            w[v] = before.x, w[v + 1] = before.y;
            w[HALO + COLS + v] = behind.x, w[HALO + COLS + v + 1] = behind.y;
        }
#pragma unroll
        for (int v = 0; v < COLS; ++v) w[HALO + v] = middle[v];
    }

    // Shares of row h, products with means, and what is the pixels' own.
    __device__ __forceinline__ void make(int h, float *s, float *q, float *share, float *product,
                                         float *direct)
    {
        float m[COLS], power[COLS], inverse[COLS];
#pragma unroll
        for (int v = 0; v < COLS; ++v) m[v] = MEANS ? wd_widen(means.get(v)) : 0;
        this->template strengths<MEANS, DMEANS>(h, m, s, q);
        powers_of<COLS>(a, q, power, inverse);
#pragma unroll
        for (int v = 0; v < COLS; ++v) {
            const float mean = m[v] - this->reference;
            direct[v] = wd_widen(dy.get(v)) * power[v];
            share[v] = a.single.share * direct[v] * wd_widen(x.get(v)) * inverse[v];
            if (MEANS) {
                product[v] = share[v] * mean;
                largest_share = fmaxf(largest_share, fabsf(share[v]));
                largest_mean = fmaxf(largest_mean, fabsf(mean));
            }
            if (DMEANS) s[v] = -share[v] * s[v];
        }
        if (DMEANS && is_result(h)) this->put(this->to_at + a.to_dmeans, s);
    }

    // The results of row h, from the sums of shares and of products.
    __device__ __forceinline__ void collect(int h, const float *s, const float *p)
    {
        const quad direct = *reinterpret_cast<const quad *>(own + (DIRECT + direct_slot) * PITCH);
        float value[COLS];
        uint32_t again = 0;
#pragma unroll
        for (int v = 0; v < COLS; ++v) {
            const float by = wd_widen(result_x.get(v)) - this->reference;
            float r = by * s[v];
            if (MEANS) {
                r -= p[v];
                const float most = (fabsf(by) + largest_mean) * largest_share * (N * N);
                const bool fine = fabsf(by) >= 1.25f * largest_mean ||
                                  most <= 16 * DIVNORM_TRUST * (fabsf(direct.v[v]) + fabsf(r));
                if (!(fine && r == r)) again |= 1u << v;
            }
            value[v] = direct.v[v] + r;
        }
        if (__builtin_expect(again != 0, 0)) {
            float x_of[COLS];
#pragma unroll
            for (int v = 0; v < COLS; ++v) x_of[v] = wd_widen(result_x.get(v));
#pragma unroll 1
            for (int v = 0; again >> v; ++v) {
                if (!(again >> v & 1)) continue;
                const float r =
                    pick<COLS>(direct.v, v) + terms(h, this->column + v, pick<COLS>(x_of, v));
#pragma unroll
                for (int u = 0; u < COLS; ++u) value[u] = u == v ? r : value[u];
            }
        }
        this->put(this->to_at, value);
    }
    // What a pixel collects, term by term, from the shares that are still there.
    __device__ __forceinline__ float terms(int h, int w, float value) const
    {
        float r = 0;
        int slot = share_slot + 2; // of row h - HALO; share_slot is that of row h + HALO
        if (slot >= SHARE_ROWS) slot -= SHARE_ROWS;
#pragma unroll 1
        for (int y = h - HALO; y <= h + HALO; ++y) {
#pragma unroll 1
            for (int i = w - HALO; i <= w + HALO; ++i) {
                if (!this->is_row(y) || !this->is_column(i)) continue;
                const float mean = this->pixel(a.own_means - a.own, y, i);
                r += (value - mean) * own[(SHARES + slot) * PITCH + i - this->column];
            }
            slot = slot + 1 == SHARE_ROWS ? 0 : slot + 1;
        }
        return r;
    }

    template <int J> __device__ __forceinline__ void step()
    {
        float s[COLS], q[COLS], w[COLS + 2 * HALO];
        float share[COLS], product[COLS], direct[COLS];
        const int h = row - HALO - 1;
        // of the second-level cache, whose latency the sums hide
        if (is_result(h - HALO)) result_x.load(this->input(a.result));
        this->template row_sums<MEANS || DMEANS>(last, s, q);
        squares.template push<J>(q, q);
        if (MEANS || DMEANS) sums.template push<J>(s, s);
        // of dy and the means, whose rows are HALO behind x's, none before the first
        if (row + AHEAD_ASKED >= HALO && row + AHEAD_ASKED < a.height && this->has_own) {
            wd_prefetch_line(this->input(AHEAD_ASKED * a.in_row));
            wd_prefetch_line(this->input(a.own_dy + AHEAD_ASKED * a.in_row));
            if (MEANS) wd_prefetch_line(this->input(a.own_means + AHEAD_ASKED * a.in_row));
        }
        if (is_share(h)) {
            make(h, s, q, share, product, direct);
        } else {
#pragma unroll
            for (int v = 0; v < COLS; ++v) share[v] = product[v] = direct[v] = 0;
        }
        this->load_wide(last);
        if (is_share(h + 1)) {
            x.load(this->input(a.own));
            dy.load(this->input(a.own_dy));
            if (MEANS) means.load(this->input(a.own_means));
        }
        keep(SHARES + share_slot, share);
        if (MEANS) keep(PRODUCTS + (J & 1), product);
        keep(DIRECT + direct_slot, direct);
        direct_slot = direct_slot + 1 == DIRECT_ROWS ? 0 : direct_slot + 1; // that of row h - HALO
        if (MEANS) {
            const float before = __shfl_up_sync(0xffffffffu, largest_share, 1);
            const float behind = __shfl_down_sync(0xffffffffu, largest_share, 1);
            const float mean_before = __shfl_up_sync(0xffffffffu, largest_mean, 1);
            const float mean_behind = __shfl_down_sync(0xffffffffu, largest_mean, 1);
            largest_share = fmaxf(largest_share, fmaxf(before, behind));
            largest_mean = fmaxf(largest_mean, fmaxf(mean_before, mean_behind));
        }
        __syncwarp();
        between(SHARES + share_slot, share, w);
        window_sums<COLS, N>(w, s);
        share_sums.template push<J>(s, s);
        if (MEANS) {
            between(PRODUCTS + (J & 1), product, w);
            window_sums<COLS, N>(w, q);
            product_sums.template push<J>(q, q);
        }
        if (is_result(h - HALO)) collect(h - HALO, s, q);
        share_slot = share_slot + 1 == SHARE_ROWS ? 0 : share_slot + 1;
        next();
    }
    __device__ __forceinline__ void next()
    {
        row += 1;
        this->x_at += a.in_row;
        this->to_at += a.to_row;
    }
    // A lane whose quad is the `place`th of its warp's rows.
    __device__ __forceinline__ void go(int place)
    {
        float *all = wd_dynamic_shared<float>() + (int)(threadIdx.x / 32) * DIVNORM_WALK_FLOATS(N);
        float *columns = all + QUADS * PITCH + (int)(threadIdx.x % 32) * COLS;
        const float none[COLS] = {};
        for (int i = (int)(threadIdx.x % 32); i < QUADS * DIVNORM_RING_LANES; i += 32) {
            own = all + i * COLS;
            keep(0, none);
        }
        __syncwarp();
        own = all + place * COLS;
        sums.clear();
        share_sums.begin(columns);
        product_sums.begin(columns + PHASES * 32 * COLS);
        squares.begin(columns + 2 * PHASES * 32 * COLS);
        this->empty(last);
        largest_share = largest_mean = 0;
        share_slot = direct_slot = 0;
        this->load_wide(last);
        next();
#pragma unroll 1
        for (int i = 0; i < a.lead + a.rows + 2 * HALO; i += PHASES) {
            step<0>();
            step<1>();
            step<2>();
            step<3>();
        }
    }
};

template <class T, int N>
__device__ __forceinline__ void div_walk_backward(const divnorm_walk_args &a)
{
    const int lane = (int)(threadIdx.x % 32), groups = (int)a.by_group.divisor;
    uint32_t strip = (uint32_t)lane;
    walk<T, N, DIVNORM_QUAD> w(a);
    wd_wait_for_previous();
    const int at = (int)wd_take_rest(strip, a.by_group); // in the strip
    const bool is_strip = strip < (uint32_t)a.strips;
    const int place = min(lane + 1 + (int)strip, DIVNORM_RING_LANES - 1);
    strip += (blockIdx.x * blockDim.x + threadIdx.x) / 32 * (uint32_t)a.strips;
    const bool is = is_strip && strip < a.items;
    if (!is) strip = 0;
    const int first = (int)wd_take_rest(strip, a.by_part) * (groups - 2 * a.margin) - a.margin;
    const int row = (int)wd_take_rest(strip, a.by_segment) * a.rows;
    const int column = is ? (first + at) * DIVNORM_QUAD : a.width + 2 * DIVNORM_QUAD;
    const int middle = min(max(first + groups / 2, 0) * DIVNORM_QUAD, a.width - 1);
    w.find(strip, row, column, middle, a.lead, 2 * w.HALO + 1);
    const bool stores = w.has_own && at >= a.margin && at < groups - a.margin;
    if (a.dmeans) {
        walk_backward<T, N, true, true> b(w);
        b.stores = stores;
        b.go(place);
    } else if (a.means) {
        walk_backward<T, N, true, false> b(w);
        b.stores = stores;
        b.go(place);
    } else {
        walk_backward<T, N, false, false> b(w);
        b.stores = stores;
        b.go(place);
    }
}

} // namespace

#endif
