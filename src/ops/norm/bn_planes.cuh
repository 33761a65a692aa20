// SPDX-License-Identifier: Apache-2.0
//
// bn_vector by planes: a block sums the runs in which planes of one parameter lie (elements where tensors are
// misaligned each otherwise), a thread writes one run. Segments are interleaved, so that all blocks together sweep
// memory once; the walk that writes goes backwards, and finds what was read last in the cache.
#ifndef WD_OPS_NORM_BN_PLANES_CUH
#define WD_OPS_NORM_BN_PLANES_CUH

#include "ops/norm/bn_finish.cuh"

namespace {

// Where element `u` of parameter `c` lies.
__device__ __forceinline__ int64_t plane_element(const bn_vector_args &a, uint32_t c, uint32_t u)
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

constexpr uint32_t ALL_OWN = (1u << BN_RUN) - 1u;

// A run that a plane has a part of: runs begin a.lead elements before x does.
struct plane_run {
    int64_t at;   // its first element
    uint32_t own; // which of them are the plane's: a bit each
};

// Run `u` of parameter `c`, of those that its planes lie in. The first and the last of x, which may not be loaded at
// once, are the parameter's other elements (x_ends), and another run is in their place.
__device__ __forceinline__ plane_run run_of_plane(const bn_vector_args &a, uint32_t c, uint32_t u)
{
    const uint32_t outer = wd_fastdiv_quotient(u, a.by_plane);
    const uint32_t k = u - outer * a.by_plane.divisor;
    const int64_t begin = ((int64_t)outer * a.params + c) * a.inner + a.lead;
    const int64_t first = a.lead > 0, last = (a.total + a.lead) / BN_RUN - 1;
    const int64_t own = begin / BN_RUN + k;
    const int64_t left = (begin & (BN_RUN - 1)) + a.inner - (int64_t)k * BN_RUN;
    plane_run p;
    p.own = k == 0 ? ALL_OWN << (begin & (BN_RUN - 1)) & ALL_OWN : ALL_OWN;
    if (left < BN_RUN) p.own &= (1u << max((int)left, 0)) - 1u;
    if (own < first || own > last) p.own = 0;
    p.at = min(max(own, first), last) * BN_RUN - a.lead;
    return p;
}

// An element of the parameter's in its run `u`, or close to it.
__device__ __forceinline__ int64_t near_run(const bn_vector_args &a, uint32_t c, uint32_t u)
{
    const uint32_t outer = wd_fastdiv_quotient(u, a.by_plane);
    const int64_t k = u - outer * a.by_plane.divisor;
    return ((int64_t)outer * a.params + c) * a.inner + min(k * BN_RUN, a.inner - 1);
}

// The elements of parameter `c` that no run of run_of_plane() has: `f` of each, by the threads of one block.
template <class F>
__device__ __forceinline__ void x_ends(const bn_vector_args &a, uint32_t c, uint32_t segment, F f)
{
    const int64_t first = threadIdx.x;
    const int64_t last = (a.total + a.lead) / BN_RUN * BN_RUN - a.lead + threadIdx.x;
    if (segment > 0 || threadIdx.x >= BN_RUN) return;
    if (c == 0 && a.lead > 0 && first < BN_RUN - a.lead) f(first);
    if (c + 1 == a.params && last < a.total) f(last);
}

// Runs of a thread whose loads are under way at once, where it sums one tensor; half of it of two.
template <class T> constexpr int PLANE_BATCH = sizeof(T) == 2 ? 4 : 2;

template <class T> __device__ void stats_planes(const bn_vector_args &a)
{
    using A = acc<T>;
    const uint32_t c = blockIdx.x % a.params;
    const uint32_t segment = blockIdx.x / a.params;
    const uint32_t first = segment * blockDim.x + threadIdx.x;
    const uint32_t step = a.segments * blockDim.x;
    const T *x = static_cast<const T *>(a.x);
    __shared__ wd_part warp_part[BN_THREADS / 32];
    uint32_t count = 0;
    wd_shifted<A> mine;
    wd_wait_for_previous();
    const A origin = origin_of<T>(a, c);
    const auto add = [&](T one) { mine.add(wd_widen(one) - origin); };
    if (a.aligned) {
        constexpr int BATCH = PLANE_BATCH<T>;
        mine.begin(wd_widen(x[near_run(a, c, first < a.units ? first : 0)]) - origin);
        for (uint32_t u = first; u < a.units; u += BATCH * step) {
            run<T> r[BATCH];
            plane_run p[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                p[b] = run_of_plane(a, c, unit_of_batch(a, u, b, step));
                r[b].load(x + p[b].at);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (u + b * step >= a.units) break;
                if (p[b].own == ALL_OWN) {
                    count += BN_RUN;
#pragma unroll
                    for (int i = 0; i < BN_RUN; ++i) add(r[b].get(i));
                } else {
#pragma unroll
                    for (int i = 0; i < BN_RUN; ++i) {
                        if (p[b].own >> i & 1) add(r[b].get(i)), count += 1;
                    }
                }
            }
        }
        x_ends(a, c, segment, [&](int64_t at) { add(x[at]), count += 1; });
    } else {
        constexpr int BATCH = 4;
        mine.begin(first < a.units ? wd_widen(x[plane_element(a, c, first)]) - origin : (A)0);
        for (uint32_t u = first; u < a.units; u += BATCH * step) {
            T one[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                one[b] = x[plane_element(a, c, unit_of_batch(a, u, b, step))];
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                if (u + b * step >= a.units) break;
                add(one[b]), count += 1;
            }
        }
    }
    wd_part part = mine.part(count);
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
    const auto add_element = [&](int64_t at) {
        const uint32_t bits = a.reserve ? a.reserve[at / BN_RUN] >> (at % BN_RUN) : 1u;
        const A g = masked(wd_widen(dy[at]), bits, 0);
        sum += g;
        product += g * (wd_widen(x[at]) - mean);
    };
    if (a.aligned) {
        constexpr int BATCH = PLANE_BATCH<T> / 2;
        for (uint32_t u = first; u < a.units; u += BATCH * step) {
            run<T> rx[BATCH], rdy[BATCH];
            plane_run p[BATCH];
            uint32_t bits[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                p[b] = run_of_plane(a, c, unit_of_batch(a, u, b, step));
                rx[b].load(x + p[b].at);
                rdy[b].load(dy + p[b].at);
                bits[b] = bits_of_run(a, p[b].at);
            }
#pragma unroll
            for (int b = 0; b < BATCH; ++b) {
                A s = 0, q = 0;
                if (u + b * step >= a.units) break;
                const bool all = p[b].own == ALL_OWN;
#pragma unroll
                for (int i = 0; i < BN_RUN; ++i) {
                    // of another plane not even 0 times what is there
                    if (!all && !(p[b].own >> i & 1)) continue;
                    const A g = masked(wd_widen(rdy[b].get(i)), bits[b], i);
                    s += g;
                    q += g * (wd_widen(rx[b].get(i)) - mean);
                }
                sum += s;
                product += q;
            }
        }
        x_ends(a, c, segment, add_element);
    } else {
#pragma unroll 2
        for (uint32_t u = first; u < a.units; u += step) add_element(plane_element(a, c, u));
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

// COPYING: the last threads of a block have the next block's first runs too.
template <bool COPYING = false>
__device__ __forceinline__ plane_place plane_at(const bn_vector_args &a)
{
    plane_place p;
    const uint32_t threads = blockDim.x - (COPYING ? a.copying : 0);
    const uint32_t index = (gridDim.x - 1 - blockIdx.x) * threads + threadIdx.x;
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

// Whether all lanes of the warp have whole runs, neighbours, of a type whose runs are wider than a store.
template <class T> __device__ __forceinline__ bool in_pairs(const bn_vector_args &a, int64_t at)
{
    return sizeof(T) == 4 &&
           wd_ballot(a.aligned && at >= 0 && at + BN_RUN <= a.total) == 0xffffffffu;
}

template <class T>
__device__ __forceinline__ void normalize_run(const bn_vector_args &a, const plane_place &p,
                                              const run<T> &x, acc<T> *v)
{
    using A = acc<T>;
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
}

template <class T> __device__ void apply_planes(const bn_vector_args &a)
{
    const plane_place p = plane_at(a);
    run<T> x;
    acc<T> v[BN_RUN];
    wd_wait_for_previous();
    const bool paired = in_pairs<T>(a, p.at);
    if (p.at >= a.total) return;
    fetch(x, a.x, p.at, a.total, a.aligned);
    normalize_run<T>(a, p, x, v);
    finish_forward<T>(a, v, p.at, paired);
}

// With a reserve space whose bytes runs are off by a.lead elements: a byte is of the end of one run and the beginning of
// the next. It has a kernel of its own, since the plain one has eight blocks a processor for its fewer registers.
template <class T> __device__ void apply_planes_led(const bn_vector_args &a)
{
    using A = acc<T>;
    __shared__ uint8_t shown[BN_THREADS + 1];
    const plane_place p = plane_at<true>(a);
    const bool own = threadIdx.x < blockDim.x - a.copying;
    const bool paired = in_pairs<T>(a, own ? p.at : a.total);
    uint32_t bits = 0;
    wd_wait_for_previous();
    if (p.at < a.total) {
        run<T> x, z;
        A v[BN_RUN];
        fetch(x, a.x, p.at, a.total, a.aligned);
        if (a.z) fetch(z, a.z, p.at, a.total, a.aligned);
        normalize_run<T>(a, p, x, v);
        if (a.z) {
#pragma unroll
            for (int i = 0; i < BN_RUN; ++i) v[i] += wd_widen(z.get(i));
        }
        if (a.activates) bits = bits_there(a, activate<A>(a, v), p.at);
        if (own) blend_data<T, BN_RUN>(a, scalars_of<A>(a), v, p.at, paired);
    }
    if (!a.activates) return;
    shown[threadIdx.x] = (uint8_t)bits;
    __syncthreads();
    bits = (bits | (uint32_t)shown[threadIdx.x + 1] << BN_RUN) >> a.lead;
    const int64_t from = p.at + a.lead;
    if (own && from < a.total) a.reserve[from / BN_RUN] = (uint8_t)bits;
}

template <class T> __device__ void grad_planes(const bn_vector_args &a)
{
    using A = acc<T>;
    const plane_place p = plane_at(a);
    run<T> x;
    A g[BN_RUN], dx[BN_RUN];
    wd_wait_for_previous();
    const bool paired = in_pairs<T>(a, p.at);
    if (p.at >= a.total) return;
    // before the bits, which the compiler waits for
    const numbers_of<A> n = static_cast<const numbers_of<A> *>(a.numbers)[p.param];
    fetch(x, a.x, p.at, a.total, a.aligned);
    fetch_gradient<T>(a, g, p.at);
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
    finish_backward<T>(a, dx, g, p.at, paired);
}

} // namespace

#endif
