// SPDX-License-Identifier: Apache-2.0
//
// What follows from the sums of segments for every parameter: statistics of threads and segments are
// joined in double in an order that the cut fixes (Chan, Golub and LeVeque 1983). fp64 is summed as
// differences from the parameter's first element, so that a common offset costs no digits there.
#ifndef WD_OPS_NORM_BN_FINISH_CUH
#define WD_OPS_NORM_BN_FINISH_CUH

#include "gpu/device/statistics.cuh"
#include "ops/norm/bn_device.cuh"

namespace {

template <class A> __device__ __forceinline__ void join(wd_part &into, const wd_part &from)
{
    if constexpr (sizeof(A) == 4) {
        wd_join_parts(into, from);
    } else {
        const double count = into.count + from.count;
        if (from.count == 0.0) return;
        const double d = from.mean - into.mean, share = from.count / count;
        into.squares = into.count == 0.0 ? from.squares
                                         : into.squares + from.squares + d * d * into.count * share;
        into.mean = into.count == 0.0 ? from.mean : into.mean + d * share;
        into.count = count;
    }
}

template <class A> __device__ __forceinline__ void join_warp(wd_part &part)
{
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const wd_part other = {wd_shuffle_down(part.count, lanes),
                               wd_shuffle_down(part.mean, lanes),
                               wd_shuffle_down(part.squares, lanes)};
        join<A>(part, other);
    }
}

// From where fp64 elements of parameter c are counted.
template <class T> __device__ __forceinline__ acc<T> origin_of(const bn_vector_args &a, uint32_t c)
{
    if constexpr (sizeof(T) < 8) return (acc<T>)0;
    else return static_cast<const T *>(a.x)[(int64_t)c * a.inner];
}

__device__ __forceinline__ wd_part part_at(const bn_vector_args &a, uint32_t c, uint32_t i)
{
    const uint32_t inner = a.by_inner.divisor;
    const uint32_t row = wd_fastdiv_quotient(i, a.by_copies);
    const uint32_t copy = i - row * a.by_copies.divisor; // of the parameter in a row of partials
    const int64_t at =
        row * a.width + (int64_t)(copy / inner * a.params + c) * inner + copy % inner;
    const bn_partial p = a.partial[at];
    return {p.count, p.first, p.second};
}

// Joins the partial results of the block's parameters, neighbours in neighbouring threads, by
// a.finish_lanes threads each. The first of them have the results.
template <class A, bool STATISTICS>
__device__ __forceinline__ wd_part join_partials(const bn_vector_args &a, uint32_t c, uint32_t lane)
{
    __shared__ wd_part part[BN_THREADS];
    constexpr uint32_t BATCH = 4;
    const uint32_t items = a.segments * a.by_copies.divisor;
    wd_part all = {0.0, 0.0, 0.0};
    if (c < a.params) {
        for (uint32_t i = lane; i < items; i += BATCH * a.finish_lanes) {
            wd_part some[BATCH];
#pragma unroll
            for (uint32_t b = 0; b < BATCH; ++b) {
                some[b] = part_at(a, c, min(i + b * a.finish_lanes, items - 1));
            }
#pragma unroll
            for (uint32_t b = 0; b < BATCH; ++b) {
                if (i + b * a.finish_lanes >= items) break;
                if (STATISTICS) join<A>(all, some[b]);
                else all.mean += some[b].mean, all.squares += some[b].squares;
            }
        }
    }
    part[threadIdx.x] = all;
    for (uint32_t lanes = a.finish_lanes / 2; lanes > 0; lanes /= 2) {
        const uint32_t threads = lanes * (BN_THREADS / a.finish_lanes);
        __syncthreads();
        if (threadIdx.x >= threads) continue;
        const wd_part other = part[threadIdx.x + threads];
        if (STATISTICS) join<A>(all, other);
        else all.mean += other.mean, all.squares += other.squares;
        part[threadIdx.x] = all;
    }
    return all;
}

template <class A>
__device__ __forceinline__ void keep_numbers(const bn_vector_args &a, uint32_t c,
                                             const numbers_of<A> &n)
{
    static_cast<numbers_of<A> *>(a.numbers)[c] = n;
}

template <class T> __device__ void stats_finish(const bn_vector_args &a)
{
    using A = acc<T>;
    const uint32_t params = BN_THREADS / a.finish_lanes, lane = threadIdx.x / params;
    const uint32_t c = blockIdx.x * params + threadIdx.x % params;
    const double share = a.factor, kept = 1.0 - a.factor;
    const bool mine = lane == 0 && c < a.params;
    A scale = 0, bias = 0, origin = 0, old_mean = 0, old_var = 0;
    wd_wait_for_previous();
    if (mine) {
        if (a.scale.data) scale = param<A>(a.scale, c);
        if (a.bias.data) bias = param<A>(a.bias, c);
        origin = origin_of<T>(a, c);
        old_mean = old_param<A>(a.running_mean, c, kept);
        old_var = old_param<A>(a.running_var, c, kept);
    }
    const wd_part all = join_partials<A, true>(a, c, lane);
    if (!mine) return;
    const double inv_std = 1.0 / sqrt(all.squares / all.count + a.epsilon);
    const double unbiased = all.squares / (all.count > 1.0 ? all.count - 1.0 : all.count);
    const double mean = (double)origin + all.mean;
    numbers_of<A> n = {};
    n.mean = (A)mean;
    n.rest = sizeof(A) == 4 ? (A)(mean - n.mean) : (A)(all.mean - (mean - (double)origin));
    n.inv_std = (A)inv_std;
    n.factor = scale * n.inv_std;
    n.base = bias - n.factor * n.rest;
    keep_numbers(a, c, n);
    set_param<A>(a.mean, c, 0, mean, 1.0, 0.0);
    set_param<A>(a.var, c, 0, inv_std, 1.0, 0.0);
    set_param<A>(a.running_mean, c, old_mean, mean, share, kept);
    set_param<A>(a.running_var, c, old_var, unbiased, share, kept);
}

template <class T> __device__ void sums_finish(const bn_vector_args &a)
{
    using A = acc<T>;
    const uint32_t params = BN_THREADS / a.finish_lanes, lane = threadIdx.x / params;
    const uint32_t c = blockIdx.x * params + threadIdx.x % params;
    const bool mine = lane == 0 && c < a.params;
    A scale = 0, old_dscale = 0, old_dbias = 0;
    numbers_of<A> n = {};
    wd_wait_for_previous();
    if (mine) {
        scale = param<A>(a.scale, c);
        old_dscale = old_param<A>(a.dscale, c, a.beta_param);
        old_dbias = old_param<A>(a.dbias, c, a.beta_param);
        if (a.mean.data) n.mean = param<A>(a.mean, c), n.inv_std = param<A>(a.var, c);
        else n = static_cast<const numbers_of<A> *>(a.numbers)[c];
    }
    const wd_part all = join_partials<A, false>(a, c, lane);
    if (!mine) return;
    const double scaled = (double)scale * n.inv_std;
    const double dscale = (all.squares - n.rest * all.mean) * n.inv_std; // sum of dy * xhat
    n.factor = (A)scaled;
    n.slope = (A)(-scaled * dscale * n.inv_std / (double)a.terms);
    n.base = (A)(-scaled * all.mean / (double)a.terms) - n.slope * n.rest;
    keep_numbers(a, c, n);
    set_param<A>(a.dscale, c, old_dscale, dscale, a.alpha_param, a.beta_param);
    set_param<A>(a.dbias, c, old_dbias, all.mean, a.alpha_param, a.beta_param);
}

} // namespace

#endif
