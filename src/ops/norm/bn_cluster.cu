// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization in one kernel and one reading, where the elements of a group of parameters fit
// the shared memory of a cluster of blocks (bn_cluster_args.h): they are summed as they come in, the
// squares around the mean are summed from shared memory, and written from there. Sums are added in
// an order that the cut fixes.
#include "gpu/device/cluster.cuh"
#include "gpu/device/shared.cuh"
#include "ops/norm/bn_cluster_walk.cuh"

namespace {

__device__ __forceinline__ unsigned char *memory(void)
{
    WD_DYNAMIC_SHARED(unsigned char, bytes);
    return bytes;
}

// What is behind a block's elements: sums of the block (two rounds, since others of the cluster read
// them), what follows from them for every column, and sums of warps.
struct workplace {
    double *own;
    float4 *numbers;
    float *of_warp;
};

struct place {
    int64_t base;    // of the group, in its first row
    uint32_t column; // the thread's first parameter
    uint32_t first;  // unit of the group
    uint32_t units;  // of the block
    uint32_t owned;  // the parameter that this thread works out
    bool active;     // there are units for this thread
    bool owns;       // there is such a parameter
    bool writes;     // and it is this block that writes it
};

template <class T, int L, int ARRAYS>
__device__ __forceinline__ workplace workplace_of(const bn_cluster_args &a)
{
    workplace w;
    w.own = reinterpret_cast<double *>(memory() +
                                       (size_t)ARRAYS * a.share * L * sizeof(T) / 16 * 16 + 16);
    w.numbers = reinterpret_cast<float4 *>(w.own + 4 * a.columns);
    w.of_warp = reinterpret_cast<float *>(w.numbers + a.columns);
    return w;
}

template <int L, bool COLUMNS> __device__ __forceinline__ place place_of(const bn_cluster_args &a)
{
    place p;
    const uint32_t group = blockIdx.x / a.cluster, rank = blockIdx.x - group * a.cluster;
    const uint32_t first = group * a.columns; // parameter
    p.base = COLUMNS ? first : (int64_t)group * a.by_row.divisor * L;
    p.column = COLUMNS ? first + threadIdx.x % a.by_row.divisor * L : group;
    p.active = p.column < a.bn.params;
    p.first = min(rank * a.share, a.units);
    p.units = p.active ? min(a.share, a.units - p.first) : 0;
    p.owned = first + threadIdx.x;
    p.owns = threadIdx.x < a.columns && p.owned < a.bn.params;
    p.writes = p.owns && rank == 0;
    return p;
}

template <int L>
__device__ __forceinline__ int64_t unit_at(const bn_cluster_args &a, const place &p, uint32_t u)
{
    const uint32_t unit = p.first + u;
    const uint32_t row = wd_fastdiv_quotient(unit, a.by_row);
    return p.base + row * a.pitch + (int64_t)(unit - row * a.by_row.divisor) * L;
}

// The thread's unit that is `b` turns behind `u`; beyond the end `u` again, so that no check parts the
// loads. Not the block's last one: of a group that the columns end in that may lie behind x.
__device__ __forceinline__ uint32_t unit_of(const place &p, uint32_t u, int b)
{
    const uint32_t own = u + b * blockDim.x;
    return own < p.units ? own : u;
}

template <class T, int L>
__device__ __forceinline__ void load(wd_run<T, L> &r, const void *from, int64_t at, bool aligned)
{
    const T *first = static_cast<const T *>(from) + at;
    if (aligned) {
        r.load(first);
        return;
    }
#pragma unroll
    for (int i = 0; i < L; ++i) r.put(i, first[i]);
}

// Sums of N numbers of every column over the cluster; the thread that owns a column gets its own.
template <int N, int P>
__device__ __forceinline__ void group_sums(const bn_cluster_args &a, const workplace &w,
                                           bool columns, int round, const float *mine, double *sum)
{
    const uint32_t lane = threadIdx.x % 32, runs = columns ? a.by_row.divisor : 1;
    const uint32_t all = N * a.columns;
    double *own = w.own + round * 2 * a.columns;
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int i = 0; i < P; ++i) {
            float v = mine[n * P + i];
            for (uint32_t lanes = 16; lanes >= runs; lanes /= 2) {
                v += __shfl_xor_sync(0xffffffffu, v, lanes);
            }
            if (lane < runs) {
                w.of_warp[threadIdx.x / 32 * all + n * a.columns + lane * P + i] = v;
            }
        }
    }
    __syncthreads();
    for (uint32_t c = threadIdx.x; c < all; c += blockDim.x) {
        double s = 0.0;
        for (uint32_t k = 0; k < blockDim.x / 32; ++k) s += w.of_warp[k * all + c];
        own[c] = s;
    }
    wd_cluster_arrive();
    wd_cluster_wait();
#pragma unroll
    for (int n = 0; n < N; ++n) {
        sum[n] = 0.0;
        if (threadIdx.x >= a.columns) continue;
        for (uint32_t rank = 0; rank < a.cluster; ++rank) {
            sum[n] += wd_of_cluster(own + n * a.columns + threadIdx.x, rank);
        }
    }
}

template <class T, int L, bool COLUMNS>
__device__ __forceinline__ void forward(const bn_cluster_args &a)
{
    constexpr int P = COLUMNS ? L : 1;
    constexpr int BATCH = L * sizeof(T) >= 32 ? 2 : L > 1 ? 4 : 8;
    const place p = place_of<L, COLUMNS>(a);
    const workplace w = workplace_of<T, L, 1>(a);
    const double terms = (double)a.bn.terms;
    const T *x = static_cast<const T *>(a.bn.x);
    T *held = reinterpret_cast<T *>(memory());
    float part[2 * P], pivot[P], own_pivot = 0.0f, scale = 0.0f, bias = 0.0f;
    float old_mean = 0.0f, old_var = 0.0f;
    double sum[2];
#pragma unroll
    for (int i = 0; i < 2 * P; ++i) part[i] = 0.0f;
    wd_wait_for_previous();
    if (p.owns) {
        own_pivot = wd_widen(x[COLUMNS ? p.owned : p.base]);
        scale = param(a.bn.scale, p.owned);
        bias = param(a.bn.bias, p.owned);
        old_mean = old_param(a.bn.running_mean, p.owned, 1.0 - a.bn.factor);
        old_var = old_param(a.bn.running_var, p.owned, 1.0 - a.bn.factor);
    }
    if (p.active) {
#pragma unroll
        for (int i = 0; i < P; ++i) pivot[i] = wd_widen(x[(COLUMNS ? p.column : p.base) + i]);
    }
    for (uint32_t u = threadIdx.x; u < p.units; u += BATCH * blockDim.x) {
        wd_run<T, L> r[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            load(r[b], x, unit_at<L>(a, p, unit_of(p, u, b)), a.bn.aligned);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            if (u + b * blockDim.x >= p.units) break;
            r[b].store(held + (u + b * blockDim.x) * L);
#pragma unroll
            for (int i = 0; i < L; ++i) part[i % P] += wd_widen(r[b].get(i)) - pivot[i % P];
        }
    }
    group_sums<1, P>(a, w, COLUMNS, 0, part, sum);
    if (threadIdx.x < a.columns) w.numbers[threadIdx.x].x = (float)(own_pivot + sum[0] / terms);
    __syncthreads();
    float mean[P];
#pragma unroll
    for (int i = 0; i < P; ++i) {
        mean[i] = w.numbers[COLUMNS ? threadIdx.x % a.by_row.divisor * L + i : 0].x;
        part[i] = part[P + i] = 0.0f;
    }
    for (uint32_t u = threadIdx.x; u < p.units; u += blockDim.x) {
        wd_run<T, L> r;
        r.load(held + u * L);
#pragma unroll
        for (int i = 0; i < L; ++i) {
            const float d = wd_widen(r.get(i)) - mean[i % P];
            part[i % P] += d;
            part[P + i % P] += d * d;
        }
    }
    group_sums<2, P>(a, w, COLUMNS, 1, part, sum);
    wd_cluster_arrive(); // all have read what others have
    if (threadIdx.x < a.columns) {
        const float rounded = w.numbers[threadIdx.x].x;
        const double rest = sum[0] / terms;
        double squares = sum[1] - sum[0] * rest;
        if (squares < 0.0) squares = 0.0;
        const double inv_std = 1.0 / sqrt(squares / terms + a.bn.epsilon);
        const float factor = scale * (float)inv_std;
        w.numbers[threadIdx.x] = make_float4(rounded, factor, bias - factor * (float)rest, 0.0f);
        if (p.writes) {
            const double unbiased = squares / (terms > 1.0 ? terms - 1.0 : terms);
            const double exact = rounded + rest;
            const double factor_new = a.bn.factor, factor_old = 1.0 - factor_new;
            set_param(a.bn.mean, p.owned, 0.0f, exact, 1.0, 0.0);
            set_param(a.bn.var, p.owned, 0.0f, inv_std, 1.0, 0.0);
            set_param(a.bn.running_mean, p.owned, old_mean, exact, factor_new, factor_old);
            set_param(a.bn.running_var, p.owned, old_var, unbiased, factor_new, factor_old);
        }
    }
    __syncthreads();
    float4 n[P];
#pragma unroll
    for (int i = 0; i < P; ++i) {
        n[i] = w.numbers[COLUMNS ? threadIdx.x % a.by_row.divisor * L + i : 0];
    }
    for (uint32_t u = threadIdx.x; u < p.units; u += blockDim.x) {
        wd_run<T, L> r;
        float v[L];
        r.load(held + u * L);
#pragma unroll
        for (int i = 0; i < L; ++i) {
            v[i] = n[i % P].y * (wd_widen(r.get(i)) - n[i % P].x) + n[i % P].z;
        }
        finish_forward<T, L>(a.bn, v, unit_at<L>(a, p, u));
    }
    wd_cluster_wait();
}

template <class T, int L, bool COLUMNS>
__device__ __forceinline__ void backward(const bn_cluster_args &a)
{
    constexpr int P = COLUMNS ? L : 1;
    constexpr int BATCH = L * sizeof(T) >= 16 ? 2 : 4;
    const place p = place_of<L, COLUMNS>(a);
    const workplace w = workplace_of<T, L, 2>(a);
    const double terms = (double)a.bn.terms;
    T *held = reinterpret_cast<T *>(memory()), *held_g = held + a.share * L;
    float part[2 * P], mean[P], own_mean = 0.0f, scale = 0.0f, inv_std = 0.0f;
    float old_dscale = 0.0f, old_dbias = 0.0f;
    double sum[2];
#pragma unroll
    for (int i = 0; i < P; ++i) part[i] = part[P + i] = mean[i] = 0.0f;
    wd_wait_for_previous();
    if (p.owns) {
        own_mean = param(a.bn.mean, p.owned);
        scale = param(a.bn.scale, p.owned);
        inv_std = param(a.bn.var, p.owned);
        old_dscale = old_param(a.bn.dscale, p.owned, a.bn.beta_param);
        old_dbias = old_param(a.bn.dbias, p.owned, a.bn.beta_param);
    }
    if (p.active) {
#pragma unroll
        for (int i = 0; i < P; ++i) mean[i] = param(a.bn.mean, p.column + i);
    }
    for (uint32_t u = threadIdx.x; u < p.units; u += BATCH * blockDim.x) {
        wd_run<T, L> rx[BATCH], rdy[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const int64_t at = unit_at<L>(a, p, unit_of(p, u, b));
            load(rx[b], a.bn.x, at, a.bn.aligned);
            load(rdy[b], a.bn.dy, at, a.bn.aligned);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            if (u + b * blockDim.x >= p.units) break;
            const uint32_t to = (u + b * blockDim.x) * L;
#pragma unroll
            for (int i = 0; i < L; ++i) {
                const float g = wd_widen(rdy[b].get(i));
                part[i % P] += g;
                part[P + i % P] += g * (wd_widen(rx[b].get(i)) - mean[i % P]);
            }
            rx[b].store(held + to);
            rdy[b].store(held_g + to);
        }
    }
    group_sums<2, P>(a, w, COLUMNS, 0, part, sum);
    wd_cluster_arrive();
    if (threadIdx.x < a.columns) {
        const double scaled = (double)scale * inv_std;
        const double dscale = sum[1] * inv_std;
        w.numbers[threadIdx.x] =
            make_float4(own_mean, (float)scaled, (float)(-scaled * sum[0] / terms),
                        (float)(-scaled * dscale * inv_std / terms));
        if (p.writes) {
            const double alpha = a.bn.alpha_param, beta = a.bn.beta_param;
            set_param(a.bn.dscale, p.owned, old_dscale, dscale, alpha, beta);
            set_param(a.bn.dbias, p.owned, old_dbias, sum[0], alpha, beta);
        }
    }
    __syncthreads();
    float4 n[P];
#pragma unroll
    for (int i = 0; i < P; ++i) {
        n[i] = w.numbers[COLUMNS ? threadIdx.x % a.by_row.divisor * L + i : 0];
    }
    for (uint32_t u = threadIdx.x; u < p.units; u += blockDim.x) {
        wd_run<T, L> rx, rg;
        float g[L], dx[L];
        rx.load(held + u * L);
        rg.load(held_g + u * L);
#pragma unroll
        for (int i = 0; i < L; ++i) {
            const float4 m = n[i % P];
            g[i] = wd_widen(rg.get(i));
            dx[i] = m.y * g[i] + m.z + m.w * (wd_widen(rx.get(i)) - m.x);
        }
        finish_backward<T, L>(a.bn, dx, g, unit_at<L>(a, p, u));
    }
    wd_cluster_wait();
}

} // namespace

// left alone the compiler spills where it thinks that more blocks fit
#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/norm/bn_cluster_kernels.def"
#include "ops/kernels_device.inc"
