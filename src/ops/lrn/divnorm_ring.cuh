// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization forward by warps that go down rows (divnorm_walk.cuh). What is read comes some rows before
// it is used, by asynchronous copies to rings of rows in shared memory: of x a lane sees there what its neighbours
// copied. Rows of a strip, a plane's or a part of them, are a warp's; a narrow plane's are some lanes'. Nothing waits
// for other warps.
#ifndef WD_OPS_LRN_DIVNORM_RING_CUH
#define WD_OPS_LRN_DIVNORM_RING_CUH

#include "gpu/device/async.cuh"
#include "ops/lrn/divnorm_walk.cuh"

namespace {

// Rings of rows: 2 * PHASES rows of x, PHASES of others. A row has a lane's run behind the other's, and a run beside
// each end of a strip, which stays full of what counts as nothing.
template <class T, int N, int COLS> struct rings : walk<T, N, COLS> {
    typedef walk<T, N, COLS> base;
    using base::a, base::row;
    static constexpr int HALO = base::HALO;
    static constexpr int EARLY = DIVNORM_RING_EARLY;        // rows that copies are early
    static constexpr int PITCH = DIVNORM_RING_LANES * COLS; // elements
    // rows of x of this group, and of those around it: before they are used and after
    T *now, *then;
    T *means;
    int stop;            // of rows that are copied
    int result, results; // the first row of results and how many, or 0

    __device__ __forceinline__ rings(const base &b) : base(b)
    {
    }
    __device__ __forceinline__ bool is_result(int h) const
    {
        return (uint32_t)(h - result) < (uint32_t)results;
    }

    // Row J of its group, or before or behind it.
    template <int J> __device__ __forceinline__ T *row_of() const
    {
        constexpr int SLOT = (J + 2 * PHASES) % (2 * PHASES);
        return (SLOT < PHASES ? now : then) + SLOT % PHASES * PITCH;
    }
    template <int J> __device__ __forceinline__ T *mean_of() const
    {
        return means + (J + PHASES) % PHASES * PITCH;
    }
    // What is copied as row J of its group.
    template <int J, bool MEANS> __device__ __forceinline__ void copy()
    {
        if ((uint32_t)row < (uint32_t)stop) {
            wd_copy_async<COLS *(int)sizeof(T), false>(row_of<J>(), this->input(0));
        }
        if (MEANS && is_result(row - HALO)) {
            wd_copy_async<COLS *(int)sizeof(T), false>(mean_of<J>(), this->input(a.own_means));
        }
        wd_copies_end();
        row += 1;
        this->x_at += a.in_row;
        this->to_at += a.to_row;
    }
    __device__ __forceinline__ void turn()
    {
        T *other = now;
        now = then;
        then = other;
    }

    // `at`: the lane's place in a row. The runs of strips' ends are made by the lanes beside them.
    __device__ __forceinline__ void begin_rings(int at, bool first, bool last)
    {
        T *all = wd_dynamic_shared<T>() + (int)(threadIdx.x / 32) * DIVNORM_RING_ROWS * PITCH +
                 at * COLS;
        now = all;
        then = all + PHASES * PITCH;
        means = then + PHASES * PITCH;
        typename base::run none;
#pragma unroll
        for (int v = 0; v < COLS; ++v) none.put(v, narrowed<T>(this->reference));
#pragma unroll 1
        for (int i = 0; i < 2 * PHASES; ++i) {
            none.store(all + i * PITCH);
            if (first) none.store(all + i * PITCH - COLS);
            if (last) none.store(all + i * PITCH + COLS);
        }
    }
    __device__ __forceinline__ void load_wide_row(const T *from, typename base::wide &r) const
    {
        r.own.load(from);
        r.left.load(from - HALO);
        r.right.load(from + COLS);
    }
};

template <class T, int N, int COLS, bool MEANS> struct ring_forward : rings<T, N, COLS> {
    typedef rings<T, N, COLS> base;
    using base::a, base::row;
    static constexpr int HALO = base::HALO, EARLY = base::EARLY;
    column_sums<N, COLS> sums, squares;

    __device__ __forceinline__ ring_forward(const base &b) : base(b)
    {
    }

    template <int J> __device__ __forceinline__ void step()
    {
        float s[COLS], q[COLS], m[COLS], power[COLS], inverse[COLS];
        const int h = row - EARLY - HALO;
        wd_copies_wait<EARLY - 1>();
        __syncwarp(); // and what the copies are to replace has been read
        if (this->is_row(row - EARLY)) {
            typename base::wide last;
            this->load_wide_row(this->template row_of<J>(), last);
            this->template row_sums<MEANS>(last, s, q);
        } else {
#pragma unroll
            for (int v = 0; v < COLS; ++v) s[v] = q[v] = 0;
        }
        this->template copy<J + EARLY, MEANS>();
        squares.template push<J>(q, q);
        if (MEANS) sums.template push<J>(s, s);
        if (!this->is_result(h)) return;
        typename base::run one;
        if (MEANS) one.load(this->template mean_of<J>());
#pragma unroll
        for (int v = 0; v < COLS; ++v) m[v] = MEANS ? wd_widen(one.get(v)) : 0;
        this->template strengths<MEANS>(h, m, s, q);
        powers_of<COLS>(a, q, power, inverse);
        one.load(this->template row_of<J - HALO>());
#pragma unroll
        for (int v = 0; v < COLS; ++v) power[v] *= wd_widen(one.get(v));
        this->put(this->to_at - a.to_row, power); // copies have gone on
    }

    __device__ __forceinline__ void go()
    {
        sums.clear();
        squares.clear();
        this->template copy<0, MEANS>();
        this->template copy<1, MEANS>();
        this->template copy<2, MEANS>();
#pragma unroll 1
        for (int i = 0; i < a.rows + 2 * HALO; i += PHASES) {
            step<0>();
            step<1>();
            step<2>();
            step<3>();
            this->turn();
        }
    }
};

template <class T, int N, int COLS>
__device__ __forceinline__ void div_ring_forward(const divnorm_walk_args &a)
{
    static_assert(DIVNORM_RING_EARLY == 3, "rows that are copied first");
    const int lane = (int)(threadIdx.x % 32), groups = (int)a.by_group.divisor;
    uint32_t strip = (uint32_t)lane;
    walk<T, N, COLS> w(a);
    wd_wait_for_previous();
    const int at = (int)wd_take_rest(strip, a.by_group); // in the strip
    const bool is_strip = strip < (uint32_t)a.strips;
    const int place = min(lane + 1 + 2 * (int)strip, DIVNORM_RING_LANES - 1);
    strip += (blockIdx.x * blockDim.x + threadIdx.x) / 32 * (uint32_t)a.strips;
    const bool is = is_strip && strip < a.items;
    if (!is) strip = 0;
    const int first = (int)wd_take_rest(strip, a.by_part) * (groups - 2 * a.margin) - a.margin;
    const int row = (int)wd_take_rest(strip, a.by_segment) * a.rows;
    const int column = is ? (first + at) * COLS : a.width + 2 * COLS;
    const int middle = min(max(first + groups / 2, 0) * COLS, a.width - 1);
    w.find(strip, row, column, middle, w.HALO, w.HALO + DIVNORM_RING_EARLY);
    rings<T, N, COLS> r(w);
    r.stop = w.has_own ? min(w.end + w.HALO, a.height) : 0;
    r.result = w.begin;
    r.results = w.has_own && at >= a.margin && at < groups - a.margin ? w.end - w.begin : 0;
    r.begin_rings(place, is_strip && at == 0, is_strip && at == groups - 1);
    if (a.means) ring_forward<T, N, COLS, true>(r).go();
    else ring_forward<T, N, COLS, false>(r).go();
}

} // namespace

#endif
