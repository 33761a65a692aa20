// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization in one kernel whose blocks are all there at once (bn_grid_args.h): a thread sums
// its units, those it keeps on their way into shared memory; blocks of a group exchange their sums and
// meet; then every thread writes what it kept, and reads the rest again, from the last round to the
// first, since the cache has what was read last. Sums are differences from a thread's first element in
// the accumulator's type, turned into differences from the parameter's first element in double, which
// are then added in an order that the cut fixes.
#ifndef WD_OPS_NORM_BN_GRID_CUH
#define WD_OPS_NORM_BN_GRID_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/grid.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/bn_device.cuh"
#include "ops/norm/bn_grid_args.h"

namespace {

template <class T> constexpr int UNIT = BN_GRID_UNIT / (int)sizeof(T);
template <class T> using unit = wd_run<T, UNIT<T>>;

struct spot {
    uint32_t group;
    uint32_t block; // of the group
    uint32_t run;   // of the group's row
    uint32_t lane;
    uint32_t rounds; // of this thread
    int64_t column;  // its first one, of the row
    int64_t first;   // element of round 0
    int64_t step;    // from round to round
    bool active;
};

template <class T> __device__ __forceinline__ spot spot_of(const bn_grid_args &a)
{
    spot p;
    p.group = blockIdx.x / a.blocks;
    p.block = blockIdx.x - p.group * a.blocks;
    p.lane = threadIdx.x / a.runs;
    p.run = threadIdx.x - p.lane * a.runs;
    p.column = ((int64_t)p.group * a.runs + p.run) * UNIT<T>;
    p.active = p.lane < a.lanes && p.column < a.pitch;
    const uint32_t row = p.block * a.lanes + p.lane, slices = a.blocks * a.lanes;
    p.first = (int64_t)row * a.pitch + p.column;
    p.step = (int64_t)slices * a.pitch;
    // all rounds but the last one are full
    p.rounds = !p.active ? 0 : a.rounds - ((a.rounds - 1) * (uint64_t)slices + row >= a.rows);
    return p;
}

__device__ __forceinline__ unsigned char *memory(void)
{
    WD_DYNAMIC_SHARED(unsigned char, bytes);
    return bytes;
}

__device__ __forceinline__ double2 *area_of(void)
{
    return reinterpret_cast<double2 *>(memory());
}

// Unit `array` of round `round` of this thread.
template <class T, int ARRAYS> __device__ __forceinline__ T *kept_at(uint32_t round, int array)
{
    return reinterpret_cast<T *>(memory() + BN_GRID_AREA +
                                 ((size_t)(round * ARRAYS + array) * blockDim.x + threadIdx.x) *
                                     BN_GRID_UNIT);
}

template <class T>
__device__ __forceinline__ void get(unit<T> &to, const void *from, int64_t at, bool aligned)
{
    const T *first = static_cast<const T *>(from) + at;
    if (aligned) {
        to.load(first);
        return;
    }
#pragma unroll
    for (int i = 0; i < UNIT<T>; ++i) to.put(i, first[i]);
}

// On its way to shared memory; there after wd_copies_wait_all.
template <class T>
__device__ __forceinline__ void keep(T *to, const void *from, int64_t at, bool aligned)
{
    if (aligned) {
        wd_copy_async<BN_GRID_UNIT, false>(to, static_cast<const T *>(from) + at);
    } else {
        unit<T> u;
        get<T>(u, from, at, false);
        u.store(to);
    }
}

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

// The sums of a column or parameter over all rows of the group: thread `item` of the first a.items
// has those of item `item`. Items are columns in the order of `slot`, or parameters.
template <class T>
__device__ __forceinline__ double2 exchange(const bn_grid_args &a, const spot &p,
                                            double (&first)[UNIT<T>], double (&second)[UNIT<T>])
{
    constexpr int V = UNIT<T>;
    double2 *area = area_of();
    const uint32_t columns = a.runs * V, lane = threadIdx.x % 32;
    uint32_t row = p.lane, rows = a.lanes;
    bool has = p.lane < a.lanes;
    if (a.half_warp < 32) {
        for (uint32_t m = a.half_warp; m < 32; m *= 2) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                first[i] += __shfl_xor_sync(0xffffffffu, first[i], m);
                second[i] += __shfl_xor_sync(0xffffffffu, second[i], m);
            }
        }
        row = threadIdx.x / 32, rows = blockDim.x / 32;
        has = lane < a.half_warp;
    }
    uint32_t shares = blockDim.x / columns, share = threadIdx.x / columns;
    uint32_t item = threadIdx.x - share * columns;
    double2 all = make_double2(0.0, 0.0);
    for (uint32_t done = 0; done < rows; done += a.together) {
        const uint32_t end = min(a.together, rows - done);
        if (done > 0) __syncthreads();
        if (has && row >= done && row < done + end) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                area[(row - done) * columns + i * a.runs + p.run] =
                    make_double2(first[i], second[i]);
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
    if (a.items < columns) {
        // several columns of a parameter
        if (share == 0) area[item] = all;
        __syncthreads();
        if (threadIdx.x < a.items) {
            all = make_double2(0.0, 0.0);
            for (uint32_t c = threadIdx.x; c < columns; c += a.items) {
                all = plus(all, area[c % V * a.runs + c / V]);
            }
        }
        __syncthreads();
    }
    if (a.blocks == 1) return all;
    double2 *sums = reinterpret_cast<double2 *>(a.sums) + (size_t)p.group * a.blocks * a.items;
    if (threadIdx.x < a.items) sums[p.block * a.items + threadIdx.x] = all;
    wd_meet(a.counters + p.group * WD_COUNTER_WORDS, a.blocks, p.block == 0);
    constexpr uint32_t BATCH = 4;
    shares = blockDim.x / a.items, share = threadIdx.x / a.items;
    item = threadIdx.x - share * a.items;
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

// The parameter of item `item` of the group.
template <class T>
__device__ __forceinline__ uint32_t param_of_item(const bn_grid_args &a, const spot &p,
                                                  uint32_t item)
{
    constexpr int V = UNIT<T>;
    if (a.items < a.runs * V) return item;
    return p.group * a.runs * V + item % a.runs * V + item / a.runs;
}

// Where the numbers of parameter `item` go, and those of a column come from: in items' order.
template <class T>
__device__ __forceinline__ uint32_t item_of_column(const bn_grid_args &a, uint32_t run, int i)
{
    if (a.items < a.runs * UNIT<T>) return (run * UNIT<T> + i) % a.items;
    return i * a.runs + run;
}

// Bits of UNIT elements to and from the byte of eight.
template <class T>
__device__ __forceinline__ void put_bits(uint8_t *reserve, uint32_t bits, int64_t at, bool there)
{
    constexpr int V = UNIT<T>;
    if constexpr (V < BN_RUN) {
        bits <<= at % BN_RUN;
#pragma unroll
        for (int m = 1; m < BN_RUN / V; m *= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, m);
    }
    if (there && at % BN_RUN == 0) reserve[at / BN_RUN] = (uint8_t)bits;
}

template <class T> __device__ __forceinline__ uint32_t bits_at(const bn_grid_args &a, int64_t at)
{
    return a.bn.reserve ? (uint32_t)a.bn.reserve[at / BN_RUN] >> at % BN_RUN : 0xffu;
}

template <class A> struct column_numbers {
    A mean, factor, base, slope;
};

template <class T> struct forward_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A mean[V], factor[V], base[V];

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const column_numbers<A> one = n[item_of_column<T>(a, p.run, i)];
            mean[i] = one.mean, factor[i] = one.factor, base[i] = one.base;
        }
    }

    // All threads of a warp come here together; those that are not `there` write nothing.
    __device__ __forceinline__ void write(const bn_grid_args &a, const unit<T> &x, const unit<T> &z,
                                          int64_t at, bool there) const
    {
        const scalars_of<A> s(a.bn);
        A v[V];
#pragma unroll
        for (int i = 0; i < V; ++i) v[i] = factor[i] * (wd_widen(x.get(i)) - mean[i]) + base[i];
        if (a.bn.z) {
#pragma unroll
            for (int i = 0; i < V; ++i) v[i] += wd_widen(z.get(i));
        }
        if (a.bn.activates) {
            uint32_t bits = 0;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const bool passes = v[i] > s.low && !(v[i] > s.high);
                bits |= (uint32_t)passes << i;
                const bool nan = v[i] != v[i];
                const A clipped = v[i] > s.low ? (v[i] > s.high ? s.high : v[i]) : s.low;
                v[i] = nan && a.bn.keeps_nan ? v[i] : clipped;
            }
            if (a.bn.reserve) put_bits<T>(a.bn.reserve, bits, at, there);
        }
        if (there) blend_data<T, V>(a.bn, s, v, at);
    }
};

template <class T> struct backward_writer {
    static constexpr int V = UNIT<T>;
    using A = acc<T>;
    A mean[V], factor[V], base[V], slope[V];

    __device__ __forceinline__ void begin(const bn_grid_args &a, const spot &p)
    {
        const column_numbers<A> *n = reinterpret_cast<const column_numbers<A> *>(memory());
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const column_numbers<A> one = n[item_of_column<T>(a, p.run, i)];
            mean[i] = one.mean, factor[i] = one.factor, base[i] = one.base, slope[i] = one.slope;
        }
    }

    __device__ __forceinline__ void write(const bn_grid_args &a, const unit<T> &x,
                                          const unit<T> &dy, uint32_t bits, int64_t at) const
    {
        A g[V], dx[V];
#pragma unroll
        for (int i = 0; i < V; ++i) {
            g[i] = masked(wd_widen(dy.get(i)), bits, i);
            dx[i] = factor[i] * g[i] + base[i] + slope[i] * (wd_widen(x.get(i)) - mean[i]);
        }
        finish_backward<T, V>(a.bn, dx, g, at);
    }
};

// What is behind the last whole row: less than a row, by the first threads of the group's last block,
// eight elements each. f(at, numbers of the first column).
template <class T, class F>
__device__ __forceinline__ void behind_rows(const bn_grid_args &a, const spot &p, F f)
{
    const int64_t begin = (int64_t)a.rows * a.pitch;
    const int64_t at = begin + (int64_t)threadIdx.x * BN_RUN;
    if (p.block == a.blocks - 1 && at < a.bn.total) f(at);
}

template <class T, int BATCH> __device__ void grid_forward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>;
    using A = acc<T>;
    const spot p = spot_of<T>(a);
    const T *x = static_cast<const T *>(a.bn.x);
    const uint32_t kept = min(a.kept, p.rounds);
    A pivot[V], sum[V], squares[V];
    uint32_t more = 0; // bits: columns with an element behind the last whole row
    double first[V], second[V];
    wd_wait_for_previous();
    {
        unit<T> begin = {}, origin = {};
        const auto add = [&](const unit<T> &u) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A d = wd_widen(u.get(i)) - pivot[i];
                sum[i] += d;
                squares[i] += d * d;
            }
        };
        for (uint32_t r = 0; r < kept; ++r) {
            keep(kept_at<T, 1>(r, 0), x, p.first + r * p.step, a.bn.aligned);
        }
        wd_copies_end();
        if (p.rounds > 0) get<T>(begin, x, p.first, a.bn.aligned);
        if (p.active) {
#pragma unroll
            for (int i = 0; i < V; ++i) origin.put(i, x[(p.column + i) % a.bn.params]);
        }
#pragma unroll
        for (int i = 0; i < V; ++i) pivot[i] = wd_widen(begin.get(i)), sum[i] = squares[i] = (A)0;
        uint32_t r = kept;
        for (; r + BATCH <= p.rounds; r += BATCH) {
            unit<T> u[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                get<T>(u[b], x, p.first + (r + b) * p.step, a.bn.aligned);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) add(u[b]);
        }
        for (; r < p.rounds; ++r) {
            unit<T> u;
            get<T>(u, x, p.first + r * p.step, a.bn.aligned);
            add(u);
        }
        wd_copies_wait_all();
        for (r = 0; r < kept; ++r) {
            unit<T> u;
            u.load(kept_at<T, 1>(r, 0));
            add(u);
        }
        const int64_t tail = (int64_t)a.rows * a.pitch + p.column;
        if (p.block == a.blocks - 1 && p.lane == 0 && tail < a.bn.total) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const A value = wd_widen(x[tail + i]);
                if (p.rounds == 0) pivot[i] = value;
                sum[i] += value - pivot[i];
                squares[i] += (value - pivot[i]) * (value - pivot[i]);
                more |= 1u << i;
            }
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const double count = p.rounds + (more >> i & 1);
            const double d = (double)pivot[i] - (double)wd_widen(origin.get(i));
            const double s = sum[i];
            first[i] = count > 0.0 ? s + count * d : 0.0;
            second[i] = count > 0.0 ? (double)squares[i] + d * (2.0 * s + count * d) : 0.0;
        }
    }
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    const double kept_share = 1.0 - a.bn.factor;
    A scale = 0, bias = 0, old_mean = 0, old_var = 0, origin = 0;
    if (mine) {
        scale = param<A>(a.bn.scale, c);
        bias = param<A>(a.bn.bias, c);
        origin = wd_widen(x[c]);
        old_mean = old_param<A>(a.bn.running_mean, c, kept_share);
        old_var = old_param<A>(a.bn.running_var, c, kept_share);
    }
    const double2 all = exchange<T>(a, p, first, second);
    if (mine) {
        const double terms = (double)a.bn.terms;
        const double rest = all.x / terms;
        const double left = all.y - all.x * rest;
        const double around = left > 0.0 || left != left ? left : 0.0;
        const double mean = (double)origin + rest;
        const double inv_std = 1.0 / sqrt(around / terms + a.bn.epsilon);
        column_numbers<A> n;
        n.mean = (A)mean;
        n.factor = scale * (A)inv_std;
        // what rounding cut off the mean
        n.base =
            bias - n.factor * (A)(sizeof(A) == 4 ? mean - n.mean : rest - (mean - (double)origin));
        n.slope = 0;
        reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
        if (p.block == 0) {
            const double unbiased = around / (terms > 1.0 ? terms - 1.0 : terms);
            set_param<A>(a.bn.mean, c, 0, mean, 1.0, 0.0);
            set_param<A>(a.bn.var, c, 0, inv_std, 1.0, 0.0);
            set_param<A>(a.bn.running_mean, c, old_mean, mean, a.bn.factor, kept_share);
            set_param<A>(a.bn.running_var, c, old_var, unbiased, a.bn.factor, kept_share);
        }
    }
    __syncthreads();
    forward_writer<T> w;
    if (p.active) w.begin(a, p);
    // rounds of all threads, for those of a warp go together
    for (uint32_t end = a.rounds; end > a.kept;) {
        unit<T> u[BATCH], z[BATCH];
        const uint32_t begin = end > a.kept + BATCH ? end - BATCH : a.kept;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            if (r < min(end, p.rounds)) get<T>(u[b], x, p.first + r * p.step, a.bn.aligned);
        }
        if (a.bn.z) {
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const uint32_t r = begin + b;
                if (r < min(end, p.rounds))
                    get<T>(z[b], a.bn.z, p.first + r * p.step, a.bn.aligned);
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            if (r < end) w.write(a, u[b], z[b], p.first + r * p.step, r < p.rounds);
        }
        end = begin;
    }
    const uint32_t most = min(a.kept, a.rounds);
    for (uint32_t begin = 0; begin < most; begin += BATCH) {
        unit<T> z[BATCH];
        if (a.bn.z) {
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const uint32_t r = begin + b;
                if (r < kept) get<T>(z[b], a.bn.z, p.first + r * p.step, a.bn.aligned);
            }
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint32_t r = begin + b;
            unit<T> u;
            if (r < kept) u.load(kept_at<T, 1>(r, 0));
            if (r < most) w.write(a, u, z[b], p.first + r * p.step, r < kept);
        }
    }
    behind_rows<T>(a, p, [&](int64_t at) {
        run<T> u;
        A v[BN_RUN];
        fetch(u, a.bn.x, at, a.bn.total, false);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            const uint32_t column = threadIdx.x * BN_RUN + i;
            const column_numbers<A> n = reinterpret_cast<const column_numbers<A> *>(
                memory())[item_of_column<T>(a, column / V, column % V)];
            v[i] = n.factor * (wd_widen(u.get(i)) - n.mean) + n.base;
        }
        finish_forward<T>(a.bn, v, at);
    });
}

template <class T, int BATCH> __device__ void grid_backward(const bn_grid_args &a)
{
    constexpr int V = UNIT<T>;
    using A = acc<T>;
    const spot p = spot_of<T>(a);
    const T *x = static_cast<const T *>(a.bn.x), *dy = static_cast<const T *>(a.bn.dy);
    const uint32_t kept = min(a.kept, p.rounds);
    double first[V], second[V];
    wd_wait_for_previous();
    {
        A mean[V], sum[V], product[V];
        const auto add = [&](const unit<T> &ux, const unit<T> &ug, uint32_t bits) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const A g = masked(wd_widen(ug.get(i)), bits, i);
                sum[i] += g;
                product[i] += g * (wd_widen(ux.get(i)) - mean[i]);
            }
        };
        for (uint32_t r = 0; r < kept; ++r) {
            keep(kept_at<T, 2>(r, 0), x, p.first + r * p.step, a.bn.aligned);
            keep(kept_at<T, 2>(r, 1), dy, p.first + r * p.step, a.bn.aligned);
        }
        wd_copies_end();
#pragma unroll
        for (int i = 0; i < V; ++i) {
            mean[i] =
                p.active ? param<A>(a.bn.mean, (uint32_t)((p.column + i) % a.bn.params)) : (A)0;
            sum[i] = product[i] = (A)0;
        }
        uint32_t r = kept;
        for (; r + BATCH <= p.rounds; r += BATCH) {
            unit<T> ux[BATCH], ug[BATCH];
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int64_t at = p.first + (r + b) * p.step;
                get<T>(ux[b], x, at, a.bn.aligned);
                get<T>(ug[b], dy, at, a.bn.aligned);
                bits[b] = bits_at<T>(a, at);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) add(ux[b], ug[b], bits[b]);
        }
        for (; r < p.rounds; ++r) {
            const int64_t at = p.first + r * p.step;
            unit<T> ux, ug;
            get<T>(ux, x, at, a.bn.aligned);
            get<T>(ug, dy, at, a.bn.aligned);
            add(ux, ug, bits_at<T>(a, at));
        }
        for (r = 0; r < kept; r += BATCH) {
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                bits[b] = bits_at<T>(a, p.first + min(r + b, kept - 1) * p.step);
            }
            if (r == 0) wd_copies_wait_all();
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (r + b >= kept) break;
                unit<T> ux, ug;
                ux.load(kept_at<T, 2>(r + b, 0));
                ug.load(kept_at<T, 2>(r + b, 1));
                add(ux, ug, bits[b]);
                if (a.bn.reserve) {
                    // the second time without the bits
#pragma unroll
                    for (int i = 0; i < V; ++i) {
                        T g;
                        wd_narrow(g, masked(wd_widen(ug.get(i)), bits[b], i)); // exact
                        ug.put(i, g);
                    }
                    ug.store(kept_at<T, 2>(r + b, 1));
                }
            }
        }
        const int64_t tail = (int64_t)a.rows * a.pitch + p.column;
        if (p.block == a.blocks - 1 && p.lane == 0 && tail < a.bn.total) {
            const uint32_t bits = bits_at<T>(a, tail);
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (tail + i >= a.bn.total) break;
                const A g = masked(wd_widen(dy[tail + i]), bits, i);
                sum[i] += g;
                product[i] += g * (wd_widen(x[tail + i]) - mean[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < V; ++i) first[i] = sum[i], second[i] = product[i];
    }
    const uint32_t c = param_of_item<T>(a, p, threadIdx.x);
    const bool mine = threadIdx.x < a.items && c < a.bn.params;
    A scale = 0, inv_std = 0, old_dscale = 0, old_dbias = 0;
    column_numbers<A> n = {};
    if (mine) {
        n.mean = param<A>(a.bn.mean, c);
        inv_std = param<A>(a.bn.var, c);
        scale = param<A>(a.bn.scale, c);
        old_dscale = old_param<A>(a.bn.dscale, c, a.bn.beta_param);
        old_dbias = old_param<A>(a.bn.dbias, c, a.bn.beta_param);
    }
    const double2 all = exchange<T>(a, p, first, second);
    if (mine) {
        const double terms = (double)a.bn.terms, scaled = (double)scale * inv_std;
        const double dscale = all.y * inv_std;
        n.factor = (A)scaled;
        n.base = (A)(-scaled * all.x / terms);
        n.slope = (A)(-scaled * dscale * inv_std / terms);
        reinterpret_cast<column_numbers<A> *>(memory())[threadIdx.x] = n;
        if (p.block == 0) {
            const double alpha = a.bn.alpha_param, beta = a.bn.beta_param;
            set_param<A>(a.bn.dscale, c, old_dscale, dscale, alpha, beta);
            set_param<A>(a.bn.dbias, c, old_dbias, all.x, alpha, beta);
        }
    }
    __syncthreads();
    backward_writer<T> w;
    if (!p.active) return;
    w.begin(a, p);
    for (uint32_t end = p.rounds; end > kept;) {
        unit<T> ux[BATCH], ug[BATCH];
        uint32_t bits[BATCH];
        const uint32_t begin = end > kept + BATCH ? end - BATCH : kept;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const int64_t at = p.first + min(begin + b, end - 1) * p.step;
            get<T>(ux[b], x, at, a.bn.aligned);
            get<T>(ug[b], dy, at, a.bn.aligned);
            bits[b] = bits_at<T>(a, at);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            if (begin + b < end) w.write(a, ux[b], ug[b], bits[b], p.first + (begin + b) * p.step);
        }
        end = begin;
    }
    for (uint32_t r = 0; r < kept; ++r) {
        unit<T> ux, ug;
        ux.load(kept_at<T, 2>(r, 0));
        ug.load(kept_at<T, 2>(r, 1));
        w.write(a, ux, ug, 0xffu, p.first + r * p.step);
    }
    behind_rows<T>(a, p, [&](int64_t at) {
        run<T> u;
        A g[BN_RUN], dx[BN_RUN];
        fetch(u, a.bn.x, at, a.bn.total, false);
        fetch_gradient<T>(a.bn, g, at);
#pragma unroll
        for (int i = 0; i < BN_RUN; ++i) {
            const uint32_t column = threadIdx.x * BN_RUN + i;
            const column_numbers<A> n = reinterpret_cast<const column_numbers<A> *>(
                memory())[item_of_column<T>(a, column / V, column % V)];
            dx[i] = n.factor * g[i] + n.base + n.slope * (wd_widen(u.get(i)) - n.mean);
        }
        finish_backward<T>(a.bn, dx, g, at);
    });
}

} // namespace

#endif
