// SPDX-License-Identifier: Apache-2.0
//
// bn_vector by planes: a block sums runs of one parameter (elements where planes are no whole runs, or
// not aligned), a thread writes one run. Segments are interleaved, so that all blocks together sweep
// memory once; the walk that writes goes backwards, and finds what was read last in the cache.
#ifndef WD_OPS_NORM_BN_PLANES_CUH
#define WD_OPS_NORM_BN_PLANES_CUH

#include "ops/norm/bn_finish.cuh"

namespace {

// Where unit `u` of parameter `c` lies: a run of it, or one element.
__device__ __forceinline__ int64_t plane_unit(const bn_vector_args &a, uint32_t c, uint32_t u)
{
    const uint32_t outer = wd_fastdiv_quotient(u, a.by_plane);
    const uint32_t inner = u - outer * a.by_plane.divisor;
    return ((int64_t)outer * a.params + c) * a.by_plane.divisor + inner;
}

// Unit `b` of a batch that begins with `u`: beyond the end the first, so that no check parts the loads.
__device__ __forceinline__ uint32_t unit_of_batch(const bn_vector_args &a, uint32_t u, int b,
                                                  uint32_t step)
{
    return u + b * step < a.units ? u + b * step : u;
}

template <class T> __device__ void stats_planes(const bn_vector_args &a)
{
    using A = acc<T>;
    const uint32_t c = blockIdx.x % a.params;
    const uint32_t segment = blockIdx.x / a.params;
    const uint32_t first = segment * blockDim.x + threadIdx.x;
    const uint32_t step = a.segments * blockDim.x;
    const T *x = static_cast<const T *>(a.x);
    const bool by_runs = a.whole_runs && a.aligned;
    __shared__ wd_part warp_part[BN_THREADS / 32];
    uint32_t units = 0;
    shifted<A> mine;
    wd_wait_for_previous();
    const A origin = origin_of<T>(a, c);
    mine.begin(first < a.units
                   ? wd_widen(x[plane_unit(a, c, first) * (by_runs ? BN_RUN : 1)]) - origin
                   : (A)0);
    if (by_runs) {
        constexpr int BATCH = sizeof(T) == 8 ? 2 : 4;
        for (uint32_t u = first; u < a.units; u += BATCH * step) {
            run<T> r[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                r[b].load(x + plane_unit(a, c, unit_of_batch(a, u, b, step)) * BN_RUN);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (u + b * step >= a.units) break;
                units += 1;
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) mine.add(wd_widen(r[b].get(i)) - origin);
            }
        }
    } else {
        constexpr int BATCH = 8;
        for (uint32_t u = first; u < a.units; u += BATCH * step) {
            T one[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                one[b] = x[plane_unit(a, c, unit_of_batch(a, u, b, step))];
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (u + b * step >= a.units) break;
                units += 1;
                mine.add(wd_widen(one[b]) - origin);
            }
        }
    }
    wd_part part = mine.part(units * (by_runs ? BN_RUN : 1));
    join_warp<A>(part);
    if (threadIdx.x % 32 == 0) warp_part[threadIdx.x / 32] = part;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint32_t w = 1; w < blockDim.x / 32; ++w) join<A>(part, warp_part[w]);
        a.partial[(int64_t)segment * a.params + c] = {part.count, part.mean, part.squares};
    }
}

template <class T> __device__ void sums_planes(const bn_vector_args &a)
{
    using A = acc<T>;
    const uint32_t c = blockIdx.x % a.params;
    const uint32_t segment = blockIdx.x / a.params;
    const uint32_t first = segment * blockDim.x + threadIdx.x;
    const uint32_t step = a.segments * blockDim.x;
    const T *x = static_cast<const T *>(a.x);
    const T *dy = static_cast<const T *>(a.dy);
    __shared__ double warp_sum[2][BN_THREADS / 32];
    A sum = 0, product = 0;
    wd_wait_for_previous();
    const A mean =
        a.mean.data ? param<A>(a.mean, c) : static_cast<const numbers_of<A> *>(a.numbers)[c].mean;
    if (a.whole_runs && a.aligned) {
        constexpr int BATCH = 2;
        for (uint32_t u = first; u < a.units; u += BATCH * step) {
            run<T> rx[BATCH], rdy[BATCH];
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int64_t at = plane_unit(a, c, unit_of_batch(a, u, b, step));
                bits[b] = a.reserve ? a.reserve[at] : 0xffu;
                rx[b].load(x + at * BN_RUN);
                rdy[b].load(dy + at * BN_RUN);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                A s = 0, p = 0;
                if (u + b * step >= a.units) break;
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) {
                    const A g = masked(wd_widen(rdy[b].get(i)), bits[b], i);
                    s += g;
                    p += g * (wd_widen(rx[b].get(i)) - mean);
                }
                sum += s;
                product += p;
            }
        }
    } else {
        constexpr int BATCH = 4;
        for (uint32_t u = first; u < a.units; u += BATCH * step) {
            T one[BATCH], one_dy[BATCH];
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                const int64_t at = plane_unit(a, c, unit_of_batch(a, u, b, step));
                bits[b] = a.reserve ? a.reserve[at / 8] >> (at % 8) : 1u;
                one[b] = x[at], one_dy[b] = dy[at];
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (u + b * step >= a.units) break;
                const A g = masked(wd_widen(one_dy[b]), bits[b], 0);
                sum += g;
                product += g * (wd_widen(one[b]) - mean);
            }
        }
    }
    const double warp_first = wd_sum_of_warp(sum), warp_second = wd_sum_of_warp(product);
    if (threadIdx.x % 32 == 0) {
        warp_sum[0][threadIdx.x / 32] = warp_first;
        warp_sum[1][threadIdx.x / 32] = warp_second;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        bn_partial all = {0.0, 0.0, 0.0};
        for (uint32_t w = 0; w < blockDim.x / 32; ++w) {
            all.first += warp_sum[0][w];
            all.second += warp_sum[1][w];
        }
        a.partial[(int64_t)segment * a.params + c] = all;
    }
}

// A thread's run of x, which may begin before x does and end behind it.
struct plane_place {
    int64_t at;
    uint32_t param;
    uint32_t next; // the parameter of what is beyond ...
    int own;       // ... as many elements
};

__device__ __forceinline__ plane_place plane_at(const bn_vector_args &a)
{
    plane_place p;
    const uint32_t index = (gridDim.x - 1 - blockIdx.x) * blockDim.x + threadIdx.x;
    p.at = (int64_t)index * BN_RUN - a.lead;
    p.own = BN_RUN;
    // a plane is at least a run long: a run lies in one or two of them
    const uint32_t at = p.at < 0 ? 0 : (uint32_t)p.at;
    const uint32_t plane = wd_fastdiv_quotient(a.whole_runs ? index : at, a.by_plane);
    p.param = plane - wd_fastdiv_quotient(plane, a.by_params) * a.params;
    p.next = p.param + 1 == a.params ? 0 : p.param + 1;
    if (!a.whole_runs && p.at < a.total) {
        p.own = (int)min((int64_t)(plane + 1) * a.by_plane.divisor - p.at, (int64_t)BN_RUN);
    }
    return p;
}

template <class T> __device__ void apply_planes(const bn_vector_args &a)
{
    using A = acc<T>;
    const plane_place p = plane_at(a);
    run<T> x;
    A v[BN_RUN];
    wd_wait_for_previous();
    if (p.at >= a.total) return;
    fetch(x, a.x, p.at, a.total, a.aligned);
    const numbers_of<A> n = forward_numbers<A>(a, p.param);
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        v[i] = n.factor * (wd_widen(x.get(i)) - n.mean) + n.base;
    }
    if (p.own < BN_RUN) {
        const numbers_of<A> next = forward_numbers<A>(a, p.next);
#pragma unroll
        for (int i = 1; i < BN_RUN; ++i) {
            if (i >= p.own) v[i] = next.factor * (wd_widen(x.get(i)) - next.mean) + next.base;
        }
    }
    finish_forward<T>(a, v, p.at);
}

template <class T> __device__ void grad_planes(const bn_vector_args &a)
{
    using A = acc<T>;
    const plane_place p = plane_at(a);
    run<T> x;
    A g[BN_RUN], dx[BN_RUN];
    wd_wait_for_previous();
    if (p.at >= a.total) return;
    fetch(x, a.x, p.at, a.total, a.aligned);
    fetch_gradient<T>(a, g, p.at);
    const numbers_of<A> n = static_cast<const numbers_of<A> *>(a.numbers)[p.param];
#pragma unroll
    for (int i = 0; i < BN_RUN; ++i) {
        dx[i] = n.factor * g[i] + n.base + n.slope * (wd_widen(x.get(i)) - n.mean);
    }
    if (p.own < BN_RUN) {
        const numbers_of<A> m = static_cast<const numbers_of<A> *>(a.numbers)[p.next];
#pragma unroll
        for (int i = 1; i < BN_RUN; ++i) {
            if (i >= p.own) {
                dx[i] = m.factor * g[i] + m.base + m.slope * (wd_widen(x.get(i)) - m.mean);
            }
        }
    }
    finish_backward<T>(a, dx, g, p.at);
}

} // namespace

#endif
