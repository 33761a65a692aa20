// SPDX-License-Identifier: Apache-2.0
//
// How the sums of threads become those of a block, and these the sums of the group's blocks: in double,
// in an order that the cut fixes. On the board a block's sums are in single precision, as those of its
// threads were.
#ifndef WD_OPS_NORM_BN_GRID_SUMS_CUH
#define WD_OPS_NORM_BN_GRID_SUMS_CUH

#include "gpu/device/board.cuh"
#include "ops/norm/bn_grid_items.cuh"

namespace {

__device__ __forceinline__ double2 plus(double2 a, double2 b)
{
    return make_double2(a.x + b.x, a.y + b.y);
}

// The sum of `mine` over the threads of equal `item`, of which there are `shares`: that of share 0.
__device__ __forceinline__ double2 tree(double2 mine, uint32_t item, uint32_t share, uint32_t items,
                                        uint32_t shares)
{
    double2 *area = area_of();
    uint32_t left = shares;
    if (share < shares) area[share * items + item] = mine;
    while (left > 1) {
        const uint32_t half = (left + 1) / 2;
        __syncthreads();
        if (share + half < left) {
            mine = plus(mine, area[(share + half) * items + item]);
            area[share * items + item] = mine;
        }
        left = half;
    }
    __syncthreads();
    return mine;
}

// The block's sum of one parameter's columns: thread 0 has it.
__device__ __forceinline__ double2 sum_of_block(double2 mine)
{
    double2 *area = area_of();
    const uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll
    for (uint32_t m = 16; m > 0; m /= 2) {
        mine.x += __shfl_xor_sync(0xffffffffu, mine.x, m);
        mine.y += __shfl_xor_sync(0xffffffffu, mine.y, m);
    }
    if (lane == 0) area[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = lane < warps ? area[lane] : make_double2(0.0, 0.0);
#pragma unroll
        for (uint32_t m = 8; m > 0; m /= 2) {
            mine.x += __shfl_xor_sync(0xffffffffu, mine.x, m);
            mine.y += __shfl_xor_sync(0xffffffffu, mine.y, m);
        }
    }
    __syncthreads();
    return mine;
}

// Lanes of a warp that have the same columns, from `m` on, join them, each half of what is left; two
// sums, those of a column, are joined by all and are the first one's. STEP counts the halvings.
template <int V, int STEP, class A>
__device__ __forceinline__ void join_lanes(uint32_t m, A (&value)[2 * V], uint32_t &first,
                                           uint32_t &count, bool &has)
{
    constexpr int LEFT = 2 * V >> STEP;
    const bool upper = threadIdx.x & m;
    if constexpr (LEFT > 2) {
        if (m >= 32) return;
#pragma unroll
        for (int j = 0; j < LEFT / 2; ++j) {
            const A given = upper ? value[j] : value[LEFT / 2 + j];
            const A own = upper ? value[LEFT / 2 + j] : value[j];
            value[j] = own + __shfl_xor_sync(0xffffffffu, given, m);
        }
        count /= 2;
        first += upper ? count : 0;
        join_lanes<V, STEP + 1, A>(2 * m, value, first, count, has);
    } else {
        for (; m < 32; m *= 2) {
            value[0] += __shfl_xor_sync(0xffffffffu, value[0], m);
            value[1] += __shfl_xor_sync(0xffffffffu, value[1], m);
            has = has && !(threadIdx.x & m);
        }
    }
}

// From the sums of columns, in the area, those of parameters that have several.
template <class T> __device__ __forceinline__ double2 sums_of_items(const bn_grid_args &a)
{
    const double2 *area = area_of();
    const uint32_t share = wd_fastdiv_quotient(threadIdx.x, a.by_items);
    const uint32_t item = threadIdx.x - share * a.items;
    double2 all = make_double2(0.0, 0.0);
    if (share < a.shares) {
        for (uint32_t q = share; q < a.span * a.copies; q += a.shares) {
            const uint32_t copy = wd_fastdiv_quotient(q, a.by_span);
            const uint32_t element = (copy * a.items + item) * a.span + q - copy * a.span;
            const uint32_t columns = a.runs * UNIT<T>;
            const uint32_t column =
                element + a.bn.lead - (element + a.bn.lead < columns ? 0 : columns);
            all = plus(all, area[column % UNIT<T> * a.runs + column / UNIT<T>]);
        }
    }
    __syncthreads();
    return tree(all, item, share, a.items, a.shares);
}

// The block's sums of a few items, of which a row has several columns each: of the thread's columns those of an item
// are joined first, so that all lanes have the same ones.
template <class T>
__device__ __forceinline__ double2 sums_of_few(const bn_grid_args &a, const spot &p,
                                               const acc<T> (&value)[2 * UNIT<T>])
{
    constexpr int V = UNIT<T>;
    using A = acc<T>;
    double2 *area = area_of();
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t item[V];
    each_item<T, true>(a, p.run, [&](int i, uint32_t one) { item[i] = one; });
#pragma unroll 1
    for (uint32_t k = 0; k < a.items; ++k) {
        A first = 0, second = 0;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (item[i] != k) continue;
            first += value[2 * i];
            second += value[2 * i + 1];
        }
        // half of the lanes go on with one of the two
        const bool upper = lane >= 16;
        const A given = upper ? first : second;
        A own = upper ? second : first;
        own += __shfl_xor_sync(0xffffffffu, given, 16);
#pragma unroll
        for (uint32_t m = 8; m > 0; m /= 2) own += __shfl_xor_sync(0xffffffffu, own, m);
        if (lane % 16 == 0) reinterpret_cast<double *>(area + warp * a.items + k)[lane / 16] = own;
    }
    __syncthreads();
    double2 all = make_double2(0.0, 0.0);
    if (threadIdx.x < a.items) {
#pragma unroll 4
        for (uint32_t w = 0; w < blockDim.x / 32; ++w)
            all = plus(all, area[w * a.items + threadIdx.x]);
    }
    __syncthreads();
    return all;
}

// A unit's sums where its columns, from `begins` on, are of two items or sets at most: two of the one that they begin in,
// and two of that whose columns `next` is the first of.
template <class A> struct alignas(4 * sizeof(A)) unit_pairs {
    A of[4] = {};
};

template <class T>
__device__ __forceinline__ unit_pairs<acc<T>> pairs_of_unit(uint32_t begins, uint32_t next,
                                                            const acc<T> (&value)[2 * UNIT<T>])
{
    using A = acc<T>;
    unit_pairs<A> own;
#pragma unroll
    for (int i = 0; i < UNIT<T>; ++i) {
        const bool second = begins + i >= next;
        own.of[0] += second ? (A)0 : value[2 * i];
        own.of[1] += second ? (A)0 : value[2 * i + 1];
        own.of[2] += second ? value[2 * i] : (A)0;
        own.of[3] += second ? value[2 * i + 1] : (A)0;
    }
    return own;
}

// The block's sums where items are planes side by side, no smaller than a unit: a unit is of one or two of them, of which
// a thread has the sums. An item is a warp's.
template <class T>
__device__ __forceinline__ double2 sums_of_planes(const bn_grid_args &a, const spot &p,
                                                  const acc<T> (&value)[2 * UNIT<T>])
{
    constexpr uint32_t V = UNIT<T>;
    using A = acc<T>;
    unit_pairs<A> *units = reinterpret_cast<unit_pairs<A> *>(memory());
    double2 *shown = reinterpret_cast<double2 *>(memory() + a.shown);
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t begins = p.run * V; // the unit's first column
    const uint32_t next = (wd_fastdiv_quotient(begins, a.by_span) + 1) * a.span; // of an item
    const unit_pairs<A> own = pairs_of_unit<T>(begins, next, value);
    if (p.lane < a.lanes) units[p.lane * a.runs + p.run] = own;
    __syncthreads();
#pragma unroll 1
    for (uint32_t item = threadIdx.x / 32; item < a.items; item += blockDim.x / 32) {
        const uint32_t first = item * a.span / V, end = (item * a.span + a.span - 1) / V + 1;
        double2 all = make_double2(0.0, 0.0);
#pragma unroll 1
        for (uint32_t run = first + lane; run < end; run += 32) {
            const int at = run * V < item * a.span ? 2 : 0;
#pragma unroll 4
            for (uint32_t row = 0; row < a.lanes; ++row) {
                const A *of = units[row * a.runs + run].of + at;
                all = plus(all, make_double2(of[0], of[1]));
            }
        }
#pragma unroll
        for (uint32_t m = 16; m > 0; m /= 2) {
            all.x += __shfl_xor_sync(0xffffffffu, all.x, m);
            all.y += __shfl_xor_sync(0xffffffffu, all.y, m);
        }
        if (lane == 0) shown[item] = all;
    }
    __syncthreads();
    return threadIdx.x < a.items ? shown[threadIdx.x] : make_double2(0.0, 0.0);
}

// The block's sums: thread `item` of the first a.items has those of its item. value: two a column.
// CYCLIC: columns as each_item() has them. PLANES: items may be as sums_of_planes() has them.
template <class T, bool CYCLIC, bool PLANES>
__device__ __forceinline__ double2 sums_of_block(const bn_grid_args &a, const spot &p,
                                                 acc<T> (&value)[2 * UNIT<T>])
{
    constexpr int V = UNIT<T>;
    double2 *area = area_of();
    if (a.items == 1) {
#pragma unroll
        for (int n = V / 2; n > 0; n /= 2) {
#pragma unroll
            for (int i = 0; i < n; ++i) {
                value[2 * i] += value[2 * (i + n)];
                value[2 * i + 1] += value[2 * (i + n) + 1];
            }
        }
        return sum_of_block(make_double2(value[0], value[1]));
    }
    if (CYCLIC && a.few) return sums_of_few<T>(a, p, value);
    if (PLANES && a.planes) return sums_of_planes<T>(a, p, value);
    const uint32_t columns = a.runs * V;
    uint32_t row = p.lane, rows = a.lanes;
    uint32_t first = 0, count = V; // columns that this thread goes on with
    bool has = p.lane < a.lanes && !p.copies;
    if (a.half_warp < 32) {
        join_lanes<V, 0, acc<T>>(a.half_warp, value, first, count, has);
        row = threadIdx.x / 32, rows = blockDim.x / 32;
    }
    const uint32_t shares = a.column_shares;
    const uint32_t share = wd_fastdiv_quotient(threadIdx.x, a.by_columns);
    const uint32_t item = threadIdx.x - share * columns;
    double2 all = make_double2(0.0, 0.0);
    for (uint32_t done = 0; done < rows; done += a.together) {
        const uint32_t end = min(a.together, rows - done);
        if (done > 0) __syncthreads();
        if (has && row >= done && row < done + end) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (i < count) {
                    area[(row - done) * columns + (first + i) * a.runs + p.run] =
                        make_double2(value[2 * i], value[2 * i + 1]);
                }
            }
        }
        __syncthreads();
        if (share < shares) {
            for (uint32_t r = share; r < end; r += shares)
                all = plus(all, area[r * columns + item]);
        }
    }
    __syncthreads();
    all = tree(all, item, share, columns, shares);
    if (single_columns(a)) return all;
    if (share == 0) area[item] = all;
    __syncthreads();
    return sums_of_items<T>(a);
}

// The sums of the group's blocks, by the board. In single precision: as much as those of a thread are.
template <bool SAMPLES>
__device__ __forceinline__ double2 sums_by_board(const bn_grid_args &a, const spot &p, double2 all,
                                                 uint4 asked)
{
    // as many as there are where groups are as wide as columns_of() has them; where code for sm_80 has units in
    // registers besides, that is more than there are registers for
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    constexpr int BATCH = 9;
#else
    constexpr int BATCH = BN_GRID_SEEN(SAMPLES);
#endif
    const uint32_t shares = a.readers, share = wd_fastdiv_quotient(threadIdx.x, a.by_items);
    const uint32_t item = threadIdx.x - share * a.items;
    const wd_board board = wd_board_of(a.board, asked);
    uint64_t *of_group = board.bank + p.group * a.blocks * a.items;
    if (threadIdx.x < a.items) {
        wd_board_show(of_group + p.block * a.items + threadIdx.x, (float)all.x, (float)all.y);
    }
    wd_board_clear(board);
    all = make_double2(0.0, 0.0);
    if (share < shares) {
#pragma unroll 1
        for (uint32_t b = share; b < a.blocks; b += BATCH * shares) {
            float2 some[BATCH];
            const uint32_t left = (a.blocks - b + shares - 1) / shares;
            wd_board_see(of_group + b * a.items + item, shares * a.items, left, some);
#pragma unroll
            for (int k = 0; k < BATCH; ++k) all = plus(all, make_double2(some[k].x, some[k].y));
        }
    }
    all = tree(all, item, share, a.items, min(shares, a.blocks));
    if (threadIdx.x == 0) wd_board_leave(a.board, asked, gridDim.x * a.items);
    return all;
}

// Likewise of the group's blocks. Those of a cluster leave by leave().
__device__ __forceinline__ double2 sums_of_group(const bn_grid_args &a, const spot &p, double2 all)
{
    const uint32_t shares = a.readers, share = wd_fastdiv_quotient(threadIdx.x, a.by_items);
    const uint32_t item = threadIdx.x - share * a.items;
    if (!a.counters) {
        double *shown = reinterpret_cast<double *>(memory() + a.shown);
        if (threadIdx.x < a.items) {
            reinterpret_cast<double2 *>(shown)[threadIdx.x] = all;
        }
        wd_cluster_arrive();
        wd_cluster_wait();
        all = make_double2(0.0, 0.0);
        if (share < shares) {
            for (uint32_t b = share; b < a.blocks; b += shares) {
                all.x += wd_of_cluster(shown + 2 * item, b);
                all.y += wd_of_cluster(shown + 2 * item + 1, b);
            }
        }
        wd_cluster_arrive();
        return tree(all, item, share, a.items, shares);
    }
    constexpr uint32_t BATCH = BN_GRID_FETCHED;
    double2 *sums = reinterpret_cast<double2 *>(a.sums) + (size_t)p.group * a.blocks * a.items;
    if (threadIdx.x < a.items) sums[p.block * a.items + threadIdx.x] = all;
    wd_meet(a.counters + p.group * WD_COUNTER_WORDS, a.blocks, p.block == 0);
    all = make_double2(0.0, 0.0);
    if (share < shares) {
        for (uint32_t b = share; b < a.blocks; b += BATCH * shares) {
            double2 some[BATCH];
#pragma unroll
            for (uint32_t k = 0; k < BATCH; ++k) {
                some[k] = __ldcg(sums + min(b + k * shares, a.blocks - 1) * a.items + item);
            }
#pragma unroll
            for (uint32_t k = 0; k < BATCH; ++k) {
                if (b + k * shares < a.blocks) all = plus(all, some[k]);
            }
        }
    }
    return tree(all, item, share, a.items, shares);
}

template <class T, bool LED, bool BOARD, bool CYCLIC, bool SAMPLES = false>
__device__ __forceinline__ double2 exchange(const bn_grid_args &a, const spot &p,
                                            acc<T> (&value)[2 * UNIT<T>])
{
    if constexpr (BOARD) {
        const uint4 asked = wd_board_ask(a.board);
        return sums_by_board<SAMPLES>(a, p, sums_of_block<T, CYCLIC, false>(a, p, value), asked);
    } else {
        constexpr bool PLANES = !LED && sizeof(T) < 8; // no small ones are off the boundaries
        const double2 all = sums_of_block<T, CYCLIC, PLANES>(a, p, value);
        return a.blocks == 1 ? all : sums_of_group(a, p, all);
    }
}

// Parameters that share statistics, of samples: all of a group's, which has single columns. What each thread of a
// parameter has is shown, and read by those of its neighbours; then all threads meet once more.
__device__ __forceinline__ void show_to_members(bool mine, double2 own)
{
    __syncthreads();
    if (mine) area_of()[threadIdx.x] = own;
    __syncthreads();
}

// The first column of the group in which that of the thread's parameter is.
template <class T>
__device__ __forceinline__ uint32_t first_column_of_members(const bn_grid_args &a)
{
    const uint32_t place = wd_fastdiv_quotient(threadIdx.x, a.by_runs);
    const uint32_t column = (threadIdx.x - place * a.runs) * UNIT<T> + place;
    return wd_fastdiv_quotient(column, a.by_members) * a.members;
}

template <class T>
__device__ __forceinline__ double2 member_at(const bn_grid_args &a, uint32_t column)
{
    return area_of()[item_of_column<T>(a, column / UNIT<T>, (int)(column % UNIT<T>))];
}

template <class T> __device__ __forceinline__ double2 first_member(const bn_grid_args &a)
{
    return member_at<T>(a, first_column_of_members<T>(a));
}

template <class T, class F> __device__ __forceinline__ void each_member(const bn_grid_args &a, F f)
{
    const uint32_t first = first_column_of_members<T>(a);
#pragma unroll 4
    for (uint32_t k = 0; k < a.members; ++k) f(member_at<T>(a, first + k));
}

// Where the statistics of a parameter are.
__device__ __forceinline__ uint32_t statistic_of(const bn_grid_args &a, const spot &p, uint32_t c)
{
    return wd_fastdiv_quotient(p.sample * a.bn.params + c, a.by_members);
}

// At the end: others of a cluster may still read what this block showed.
__device__ __forceinline__ void leave(const bn_grid_args &a)
{
    if (a.blocks > 1 && !a.counters) wd_cluster_wait();
}

// What is behind the last whole row, less than a row, an element a thread; where there is a reserve space, from where
// its byte begins, which may be in that row and the last one. f(at, numbers, whether it is behind), for all threads of
// a warp together; beyond the end there are no numbers.
template <class T, class F>
__device__ __forceinline__ void behind_rows(const bn_grid_args &a, const spot &p, F f)
{
    const int64_t begin = (int64_t)a.all_rows * a.pitch * UNIT<T>;
    const int64_t byte = (begin - a.bn.lead) / BN_RUN * BN_RUN + a.bn.lead;
    if (p.group > 0 || p.block + 1 < a.blocks) return;
    if ((a.bn.reserve ? byte : begin) >= a.bn.total) return;
    int64_t at = byte + threadIdx.x;
#pragma unroll 1
    for (; at - threadIdx.x % 32 < a.bn.total; at += blockDim.x) {
        const uint32_t column = (uint32_t)(at - begin) + (at < begin ? a.pitch * UNIT<T> : 0);
        column_numbers<acc<T>> n = {};
        if (at < a.bn.total && column < a.runs * UNIT<T>) {
            n = reinterpret_cast<const column_numbers<acc<T>> *>(
                memory())[item_of_column<T>(a, column / UNIT<T>, column % UNIT<T>)];
        }
        f(at, n, at >= begin && at < a.bn.total);
    }
}

// alpha * v + beta * old, to an element of y.
template <class T>
__device__ __forceinline__ void put_element(const bn_grid_args &a, acc<T> v, int64_t at)
{
    using A = acc<T>;
    const scalars_of<A> s(a.bn);
    T *y = static_cast<T *>(a.bn.y) + at;
    if (s.alpha != (A)1) v = s.alpha != (A)0 ? s.alpha * v : (A)0;
    if (s.beta != (A)0) v += s.beta * wd_widen(*y);
    wd_narrow(*y, v);
}

} // namespace

#endif
