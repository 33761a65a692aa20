// SPDX-License-Identifier: Apache-2.0
//
// norm_kept by planes, backward: sums of channels, of which those of a share are made.
#ifndef WD_OPS_NORM_KEPT_PLANES_BACKWARD_CUH
#define WD_OPS_NORM_KEPT_PLANES_BACKWARD_CUH

#include "ops/norm/norm_kept_planes.cuh"

namespace {

// Sums of channels, by lanes side by side for each piece of one, which are `pieces` of as many lanes.
template <class T, bool EVEN, bool BESIDE>
__device__ __forceinline__ void sum_channels(const norm_kept_args &a, const plane_seat &s,
                                             int64_t panel, const plane_channels &channels,
                                             const T *x, const T *dy, norm_kept_sums *found)
{
    constexpr uint32_t AT_ONCE = EVEN ? RUN<T> : 1;
    const uint32_t lane = threadIdx.x % a.lanes;
    const int begin = plane_run_of<T, false>(s, 0).at; // of the block's elements in the panel
    const int first = max(begin, 0);
    const int end = min(begin + (int)(s.count * RUN<T>), (int)s.length);
    const uint32_t units = channels.count * a.pieces;
    for (uint32_t u = threadIdx.x / a.lanes; u - threadIdx.x % WARP / a.lanes < units;
         u += blockDim.x / a.lanes) {
        const uint32_t c = channels.first + u / a.pieces;
        float sum = 0.0f, product = 0.0f, inv_std = 0.0f;
        if (u < units) {
            const int64_t share =
                BESIDE ? panel * a.beside + wd_fastdiv_quotient(c, a.by_each) : panel;
            const uint32_t to = (uint32_t)(min((int)((c + 1) * a.plane), end) - begin);
            const uint32_t from = (uint32_t)(max((int)(c * a.plane), first) - begin);
            const float mean = a.given_mean[share];
            inv_std = a.given_inv_std[share];
            for (uint32_t at = from + (u % a.pieces * a.lanes + lane) * AT_ONCE; at < to;
                 at += a.pieces * a.lanes * AT_ONCE) {
                float vx[AT_ONCE], vdy[AT_ONCE];
                if constexpr (EVEN) {
                    run<T> rx, rdy;
                    rx.load(x + at);
                    rdy.load(dy + at);
                    widen(vx, rx);
                    widen(vdy, rdy);
                } else {
                    vx[0] = wd_widen(x[at]);
                    vdy[0] = wd_widen(dy[at]);
                }
#pragma unroll
                for (uint32_t i = 0; i < AT_ONCE; ++i) {
                    sum += vdy[i];
                    product = fmaf(vdy[i], vx[i] - mean, product);
                }
            }
        }
        for (uint32_t lanes = 1; lanes < a.lanes; lanes *= 2) {
            sum += __shfl_xor_sync(WHOLE_WARP, sum, (int)lanes);
            product += __shfl_xor_sync(WHOLE_WARP, product, (int)lanes);
        }
        if (lane == 0 && u < units) found[u] = {sum, product * inv_std};
    }
}

// Of a channel of the panel, which blocks of the cluster may have some of each.
template <class T>
__device__ __forceinline__ norm_kept_sums leave_sums(const norm_kept_args &a, const plane_seat &s,
                                                     int64_t share, uint32_t c, uint32_t channel,
                                                     const norm_kept_sums *found)
{
    norm_kept_sums all = found[0];
    for (uint32_t k = 1; k < a.pieces; ++k) {
        all.dy += found[k].dy;
        all.dy_xhat += found[k].dy_xhat;
    }
    if (a.sums) {
        const uint32_t slice = blockIdx.x % a.blocks - (c * a.plane + s.skip) / (a.part * RUN<T>);
        a.sums[(share / a.groups * a.slices + slice) * a.channels + channel] = all;
    }
    return all;
}

__device__ __forceinline__ line slope_of(const norm_kept_args &a, const pair &all, float mean,
                                         float inv_std, float scale)
{
    const float base = -inv_std * (float)(all.first * a.inverse);
    const float slope = -inv_std * inv_std * (float)(all.second * a.inverse);
    return {mean, inv_std * scale, base, slope};
}

// Lines of the shares of a block.
template <class T>
__device__ __forceinline__ void slopes_of_shares(const norm_kept_args &a, const plane_seat &s,
                                                 int64_t panel, const norm_kept_sums *found,
                                                 line *table)
{
    const uint32_t lane = threadIdx.x % a.lanes;
    for (uint32_t u = threadIdx.x / a.lanes; u - threadIdx.x % WARP / a.lanes < a.beside;
         u += blockDim.x / a.lanes) {
        const bool some = u < a.beside && u * a.each * a.plane < s.length;
        const int64_t share = panel * a.beside + u;
        const uint32_t first = (uint32_t)(share % a.groups) * a.each;
        pair all = {0.0, 0.0};
        for (uint32_t c = lane; some && c < a.each; c += a.lanes) {
            const uint32_t own = u * a.each + c;
            const norm_kept_sums one =
                leave_sums<T>(a, s, share, own, first + c, found + own * a.pieces);
            const float scale = param_at(a.scale, first + c);
            add(all, {scale * one.dy, scale * one.dy_xhat});
        }
        all = sum_of_lanes(all, a.lanes);
        for (uint32_t c = lane; some && c < a.each; c += a.lanes) {
            table[u * a.each + c] = slope_of(a, all, a.given_mean[share], a.given_inv_std[share],
                                             param_at(a.scale, first + c));
        }
    }
}

// As put_even; `all` is what all channels share.
template <class T>
__device__ __forceinline__ void put_even_backward(const norm_kept_args &a, const plane_seat &s,
                                                  int64_t panel, int64_t ahead, uint4 *kept,
                                                  const line &all, const line *table,
                                                  uint32_t first)
{
    const uint32_t apart = blockDim.x * RUN<T>;
    uint32_t at = (s.first + threadIdx.x) * RUN<T>;
    T *to = static_cast<T *>(a.y) + panel * a.length + at;
    const T *x = static_cast<const T *>(a.x) + panel * a.length + at + ahead;
    const T *dy = static_cast<const T *>(a.dy) + panel * a.length + at + ahead;
    uint4 *own = kept + threadIdx.x;
    for (uint32_t v = threadIdx.x; v < s.count; v += blockDim.x) {
        run<T> r;
        float d[RUN<T>], value[RUN<T>];
        r.load(reinterpret_cast<const T *>(own));
        widen(d, r);
        r.load(reinterpret_cast<const T *>(own + a.space));
        widen(value, r);
        const float factor = table[wd_fastdiv_quotient(at, a.by_plane) - first].factor;
#pragma unroll
        for (int i = 0; i < RUN<T>; ++i) {
            value[i] = fmaf(factor, value[i], fmaf(all.slope, d[i] - all.mean, all.base));
        }
        narrow(r, value);
        if (a.streaming) r.store_streaming(to);
        else r.store(to);
        if (ahead > 0) {
            wd_copy_async<16, false>(own, x);
            wd_copy_async<16, false>(own + a.space, dy);
        }
        own += blockDim.x, at += apart, to += apart, x += apart, dy += apart;
    }
}

template <class T, bool EVEN, bool BESIDE>
__device__ __forceinline__ void planes_backward(const norm_kept_args &a)
{
    __shared__ pair of_warp[WARPS];
    __shared__ pair of_block[2 * CLUSTER];
    __shared__ uint64_t here[2];
    uint4 *kept = wd_dynamic_shared<uint4>();
    uint4 *kept_dy = kept + a.space;
    line *table = reinterpret_cast<line *>(kept_dy + a.space);
    norm_kept_sums *found = reinterpret_cast<norm_kept_sums *>(table + a.lines);
    exchange e = exchange_of(a, of_block, here, 1);
    int64_t panel = blockIdx.x / a.blocks;
    plane_seat s = plane_seat_of<T>(a, panel);
    const T *x = static_cast<const T *>(a.x) + panel * a.length;
    const T *dy = static_cast<const T *>(a.dy) + panel * a.length;
    begin_exchange(a, e);
    wd_wait_for_previous();
    fetch_panel<T, EVEN>(a, s, x, kept);
    fetch_panel<T, EVEN>(a, s, dy, kept_dy);
    for (; panel < a.panels; panel += a.teams, e.turn += 1) {
        const plane_channels channels = plane_channels_of<T>(a, s);
        T *dx = static_cast<T *>(a.y) + panel * a.length;
        line all = {0.0f, 0.0f, 0.0f, 0.0f};
        const uint32_t first_channel = (uint32_t)(panel % a.groups) * a.each + channels.first;
        uint32_t scale_bits = 0; // of the thread's first channel, under way while elements are
        if (!BESIDE && threadIdx.x < channels.count) {
            scale_bits = param_bits(a.scale, first_channel + threadIdx.x);
        }
        wd_copies_wait_all();
        __syncthreads();
        sum_channels<T, EVEN, BESIDE>(a, s, panel, channels, reinterpret_cast<const T *>(kept),
                                      reinterpret_cast<const T *>(kept_dy), found);
        __syncthreads();
        if constexpr (BESIDE) {
            slopes_of_shares<T>(a, s, panel, found, table);
        } else {
            const uint32_t first = first_channel;
            const float mean = a.given_mean[panel], inv_std = a.given_inv_std[panel];
            pair mine = {0.0, 0.0};
            for (uint32_t c = threadIdx.x; c < channels.count; c += blockDim.x) {
                const norm_kept_sums one =
                    leave_sums<T>(a, s, panel, channels.first + c, first + c, found + c * a.pieces);
                if (c >= blockDim.x) scale_bits = param_bits(a.scale, first + c);
                const float scale = param_of(a.scale, scale_bits);
                add(mine, {scale * one.dy, scale * one.dy_xhat});
                table[c] = {0.0f, scale * inv_std, 0.0f, 0.0f};
            }
            all = slope_of(a, sum_of_panel(a, e, mine, of_warp), mean, inv_std, 0.0f);
        }
        plane_seat next = s;
        next.count = 0;
        x += (int64_t)a.teams * a.length;
        dy += (int64_t)a.teams * a.length;
        if (panel + a.teams < a.panels) next = plane_seat_of<T>(a, panel + a.teams);
        __syncthreads();
        if constexpr (EVEN) {
            put_even_backward<T>(a, s, panel, next.count > 0 ? (int64_t)a.teams * a.length : 0,
                                 kept, all, table, channels.first);
        } else {
            for (uint32_t v = threadIdx.x; v < max(s.count, next.count); v += blockDim.x) {
                if (v < s.count) {
                    const plane_run at = plane_run_of<T, EVEN>(s, v);
                    const T *own_x = reinterpret_cast<const T *>(kept + v);
                    T *own = reinterpret_cast<T *>(kept_dy + v);
                    run<T> r;
                    if (!EVEN && a.plane < RUN<T>) {
                        by_elements(a, at, table, channels.first, [&](int i, const line &l) {
                            const line &of = BESIDE ? l : all;
                            const float d = wd_widen(own_x[i]) - of.mean;
                            wd_narrow(own[i],
                                      fmaf(l.factor, wd_widen(own[i]), fmaf(of.slope, d, of.base)));
                        });
                        r.load(own);
                    } else {
                        float x[RUN<T>], value[RUN<T>];
                        r.load(own_x);
                        widen(x, r);
                        r.load(own);
                        widen(value, r);
                        by_lines<T, EVEN>(a, at, table, channels.first, [&](int i, const line &l) {
                            const line &of = BESIDE ? l : all;
                            value[i] =
                                fmaf(l.factor, value[i], fmaf(of.slope, x[i] - of.mean, of.base));
                        });
                        narrow(r, value);
                    }
                    put_planes(dx + at.at, r, a.runs && at.whole, at, kept_dy + v, a.streaming);
                }
                if (v < next.count) {
                    fetch_run<T, EVEN>(a, next, x, kept, v);
                    fetch_run<T, EVEN>(a, next, dy, kept_dy, v);
                }
            }
        }
        s = next;
    }
}

} // namespace

#endif
