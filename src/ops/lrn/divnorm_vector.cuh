// SPDX-License-Identifier: Apache-2.0
//
// Divisive normalization of planes. A block has a tile of pixels in shared memory, with what the windows
// reach around it. Sums over windows go along rows first, then along columns; what a window holds is added
// up anew for each pixel, in pieces of 1, 2, 4, 8 ... elements that neighbours share, so that a NaN or an
// infinity ends where its window ends.
//
// A window's deviations from the mean m of its own pixel are put together from sums of x - r and of its
// square, r being one number for the tile. Where that cancels (the mean is far from r beside the
// deviations), or where the sums are not finite, they are added up term by term.
#ifndef WD_OPS_LRN_DIVNORM_VECTOR_CUH
#define WD_OPS_LRN_DIVNORM_VECTOR_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/item.cuh"
#include "gpu/device/roots.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/lrn/any_power.cuh"
#include "ops/lrn/divnorm_vector_args.h"
#include "ops/lrn/window_sums.cuh"

namespace {

enum { ACROSS = 4, DOWN = DIVNORM_DOWN }; // pixels of a thread, along a row and a column

// Called, for code that is shorter.
__device__ __noinline__ float any_power(float s, float exponent)
{
    return exp2f(exponent * log2f(s));
}

// s^-B, and 1 / s; s is positive, infinite or NaN.
template <class A> __device__ __forceinline__ A power(const divnorm_vector_args &a, A s, A &inverse)
{
    const A r = wd_inverse_root(s);
    inverse = r * r;
    if (a.power == DIVNORM_POWER_THREE_QUARTERS) return r * wd_root(r);
    if (a.power == DIVNORM_POWER_HALF) return r;
    if (a.power == DIVNORM_POWER_ONE) return inverse;
    return any_power(s, (A)a.exponent);
}

// A block's tile and how it lies in shared memory. Centres are the pixels whose windows are needed: forward
// those of the tile; backward also those whose windows reach into it.
template <class T, int N, bool BACKWARD> struct tile {
    typedef typename wd_accumulator<T>::type A;
    static constexpr int WINDOW = N ? N : DIVNORM_WINDOW_MAX;
    const divnorm_vector_args &a;
    int n;             // the window
    int64_t plane;     // its first element
    int top, left;     // of the centres
    int rows, columns; // of centres; columns are whole runs
    int lines, pitch;  // of x
    A reference;
    A *x, *sum, *square;   // sums of a row's windows
    A *share, *mean, *own; // backward: of a centre; own: dy s^-B of the tile's pixels
    A *shared;             // a few numbers

    __device__ __forceinline__ tile(const divnorm_vector_args &args, A *scratch)
        : a(args), n(N ? N : args.window), shared(scratch)
    {
        WD_DYNAMIC_SHARED(unsigned char, bytes);
        uint32_t b = blockIdx.x;
        const int more = BACKWARD ? n - 1 : 0, before = BACKWARD ? a.ahead : 0;
        left = (int)wd_take_rest(b, a.by_tile_w) * a.tile_w - before;
        top = (int)wd_take_rest(b, a.by_tile_h) * a.tile_h - before;
        plane = (int64_t)b * a.height * a.width;
        rows = a.tile_h + more;
        columns = a.tile_w + wd_divnorm_runs(more);
        lines = rows + n - 1;
        pitch = columns + wd_divnorm_runs(n - 1);
        x = reinterpret_cast<A *>(bytes);
        sum = x + lines * pitch;
        square = sum + wd_divnorm_lines(rows, n) * columns;
        share = square + wd_divnorm_lines(rows, n) * columns;
        mean = share + wd_divnorm_lines(a.tile_h, n) * columns;
        own = mean + wd_divnorm_lines(a.tile_h, n) * columns;
    }

    __device__ __forceinline__ bool has(int h, int w) const
    {
        return (uint32_t)h < (uint32_t)a.height && (uint32_t)w < (uint32_t)a.width;
    }

    __device__ __forceinline__ A at(const void *from, int h, int w) const
    {
        if (!from || !has(h, w)) return 0;
        return wd_widen(static_cast<const T *>(from)[plane + (int64_t)h * a.width + w]);
    }

    // The mean in the middle of the tile, where there is one and it is a number.
    __device__ __forceinline__ void find_reference()
    {
        const A r = at(a.means, min(max(top, 0) + a.tile_h / 2, a.height - 1),
                       min(max(left, 0) + a.tile_w / 2, a.width - 1));
        reference = r - r == 0 ? r : (A)0;
    }

    // x of all that windows reach, 0 outside of the plane.
    __device__ __forceinline__ void load()
    {
        constexpr int U = 4;
        const int count = lines * pitch;
        const int skip_rows = DIVNORM_THREADS / pitch, skip = DIVNORM_THREADS % pitch;
        int row = (int)threadIdx.x / pitch, column = (int)threadIdx.x % pitch;
        for (int i = (int)threadIdx.x; i < count; i += U * DIVNORM_THREADS) {
            A value[U];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                value[u] = at(a.x, top - a.back + row, left - a.back + column);
                row += skip_rows;
                column += skip;
                if (column >= pitch) column -= pitch, row += 1;
            }
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (i + u * DIVNORM_THREADS < count) x[i + u * DIVNORM_THREADS] = value[u];
            }
        }
    }

    // Elements of a row from a run on, as many as the windows of a run need.
    __device__ __forceinline__ void load_row(const A *from, A *w) const
    {
        constexpr int COUNT = ACROSS + WINDOW - 1;
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) {
            if (!N && i >= ACROSS + n - 1) {
#pragma unroll
                for (int j = i; j < COUNT && j < i + 4; ++j) w[j] = 0;
                continue;
            }
            A four[4];
            if constexpr (sizeof(A) == 4) {
                const float4 v = *reinterpret_cast<const float4 *>(from + i);
                four[0] = v.x, four[1] = v.y, four[2] = v.z, four[3] = v.w;
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) four[j] = from[i + j];
            }
#pragma unroll
            for (int j = 0; j < 4 && i + j < COUNT; ++j) w[i + j] = four[j];
        }
    }

    __device__ __forceinline__ void store_run(A *to, const A *v) const
    {
        if constexpr (sizeof(A) == 4) {
            *reinterpret_cast<float4 *>(to) = make_float4(v[0], v[1], v[2], v[3]);
        } else {
#pragma unroll
            for (int j = 0; j < ACROSS; ++j) to[j] = v[j];
        }
    }

    // Sums of x - r and of its square along rows. Outside of the plane both are 0.
    __device__ __forceinline__ void sum_rows()
    {
        constexpr int COUNT = ACROSS + WINDOW - 1;
        const int runs = columns / ACROSS;
        const bool shifts = reference != 0;
        for (int i = (int)threadIdx.x; i < lines * runs; i += DIVNORM_THREADS) {
            const int row = i / runs, run = i - row * runs;
            A w[COUNT], s[COUNT], out[ACROSS];
            load_row(x + row * pitch + run * ACROSS, w);
            if (shifts) {
                const bool in = (uint32_t)(top - a.back + row) < (uint32_t)a.height;
                const int first = left - a.back + run * ACROSS;
#pragma unroll
                for (int j = 0; j < COUNT; ++j) {
                    w[j] =
                        in && (uint32_t)(first + j) < (uint32_t)a.width ? w[j] - reference : (A)0;
                }
            }
#pragma unroll
            for (int j = 0; j < COUNT; ++j) s[j] = w[j] * w[j];
            window_sums<ACROSS, N, WINDOW>(s, n, out);
            store_run(square + row * columns + run * ACROSS, out);
            if (!a.means && !a.dmeans) continue;
            window_sums<ACROSS, N, WINDOW>(w, n, out);
            store_run(sum + row * columns + run * ACROSS, out);
        }
    }

    // Along a column, of the sums of rows.
    __device__ __forceinline__ void sum_column(const A *from, int step, A *out) const
    {
        constexpr int COUNT = DOWN + WINDOW - 1;
        A w[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) w[i] = N || i < DOWN + n - 1 ? from[i * step] : (A)0;
        window_sums<DOWN, N, WINDOW>(w, n, out);
    }

    // How many pixels of a window along a dimension are the plane's.
    __device__ __forceinline__ int inside(int at, int extent) const
    {
        return min(at + a.ahead + 1, extent) - max(at - a.back, 0);
    }

    // Deviations from m around a centre, and their squares, term by term.
    __device__ __forceinline__ void add_terms(int row, int column, A m, A &deviation,
                                              A &squares) const
    {
        deviation = squares = 0;
#pragma unroll 1
        for (int i = 0; i < n; ++i) {
#pragma unroll 1
            for (int j = 0; j < n; ++j) {
                if (!has(top - a.back + row + i, left - a.back + column + j)) continue;
                const A d = x[(row + i) * pitch + column + j] - m;
                deviation += d;
                squares += d * d;
            }
        }
    }

    // From sums s of x - r and q of its square over `count` pixels those of x - m; false where they
    // cancel.
    __device__ __forceinline__ bool shift(int count, A m, A &s, A &q) const
    {
        const A by = m - reference, all = q;
        q = q - by * (2 * s - (A)count * by);
        s = s - (A)count * by;
        const A least = a.dmeans ? q : (A)a.k + (A)a.factor * q;
        const A most = a.dmeans ? all : (A)a.factor * all;
        return most <= DIVNORM_TRUST * least;
    }

    __device__ __forceinline__ void put(void *out, int64_t i, A value) const
    {
        T *to = static_cast<T *>(out) + i;
        A r = a.scales ? (A)a.alpha * value : (A)0;
        if (a.blends) r += (A)a.beta * wd_widen(*to);
        wd_narrow(*to, r);
    }

    // What follows from a centre's sums: forward its result; backward its share, and the gradient of its
    // mean.
    __device__ __forceinline__ void finish(int row, int column, A m, A dy, A s, A q,
                                           A &largest_share, A &largest_mean) const
    {
        const int h = top + row, w = left + column;
        const int64_t here = plane + (int64_t)h * a.width + w;
        const A value = x[(row + a.back) * pitch + column + a.back];
        A inverse;
        const A to = power(a, (A)a.k + (A)a.factor * q, inverse);
        if (!BACKWARD) {
            put(a.out, here, value * to);
            return;
        }
        const int own_row = row - a.ahead, own_column = column - a.ahead;
        const A direct = dy * to;
        const A h_share = (A)a.share * direct * value * inverse;
        const A h_mean = m - reference;
        share[row * columns + column] = h_share;
        mean[row * columns + column] = h_mean;
        largest_share = fmax(largest_share, fabs(h_share));
        largest_mean = fmax(largest_mean, fabs(h_mean));
        if ((uint32_t)own_row >= (uint32_t)a.tile_h || (uint32_t)own_column >= (uint32_t)a.tile_w) {
            return;
        }
        own[own_row * a.tile_w + own_column] = direct;
        if (a.dmeans) put(a.dmeans, here, -h_share * s);
    }

    __device__ __forceinline__ void centres(A &largest_share, A &largest_mean) const
    {
        const int groups = (rows + DOWN - 1) / DOWN;
        for (int i = (int)threadIdx.x; i < groups * columns; i += DIVNORM_THREADS) {
            const int group = i / columns, column = i - group * columns;
            const int first = group * DOWN, w = left + column;
            const int across = inside(w, a.width);
            uint32_t again = 0; // bit d: pixel d's sums cancel
            A m[DOWN], dy[DOWN], s[DOWN], q[DOWN];
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                m[d] = dy[d] = s[d] = 0;
                if (a.means) m[d] = at(a.means, top + first + d, w);
                if (BACKWARD) dy[d] = at(a.dy, top + first + d, w);
            }
            sum_column(square + first * columns + column, columns, q);
            if (a.means || a.dmeans) sum_column(sum + first * columns + column, columns, s);
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                const int row = first + d, h = top + row;
                if (row >= rows) continue;
                if (!has(h, w)) {
                    if (BACKWARD) share[row * columns + column] = 0;
                    if (BACKWARD) mean[row * columns + column] = 0;
                } else if (a.means && !shift(across * inside(h, a.height), m[d], s[d], q[d])) {
                    again |= 1u << d;
                } else {
                    finish(row, column, m[d], dy[d], s[d], q[d], largest_share, largest_mean);
                }
            }
#pragma unroll 1
            for (int d = 0; again >> d; ++d) {
                const int row = first + d;
                A s_one, q_one;
                if (!(again >> d & 1)) continue;
                const A m_one = at(a.means, top + row, w);
                const A dy_one = BACKWARD ? at(a.dy, top + row, w) : (A)0;
                add_terms(row, column, m_one, s_one, q_one);
                finish(row, column, m_one, dy_one, s_one, q_one, largest_share, largest_mean);
            }
        }
    }

    // Sums of shares, and of shares times means, along rows.
    __device__ __forceinline__ void sum_share_rows()
    {
        constexpr int COUNT = ACROSS + WINDOW - 1;
        const int runs = a.tile_w / ACROSS;
        for (int i = (int)threadIdx.x; i < rows * runs; i += DIVNORM_THREADS) {
            const int row = i / runs, run = i - row * runs;
            const int from = row * columns + run * ACROSS, to = row * a.tile_w + run * ACROSS;
            A h[COUNT], m[COUNT], out[ACROSS];
            load_row(share + from, h);
            if (a.means) {
                load_row(mean + from, m);
#pragma unroll
                for (int j = 0; j < COUNT; ++j) m[j] *= h[j];
                window_sums<ACROSS, N, WINDOW>(m, n, out);
                store_run(square + to, out);
            }
            window_sums<ACROSS, N, WINDOW>(h, n, out);
            store_run(sum + to, out);
        }
    }

    // What a pixel collects, term by term.
    __device__ __forceinline__ A collect_terms(int row, int column, A value) const
    {
        A r = 0;
#pragma unroll 1
        for (int i = 0; i < n; ++i) {
#pragma unroll 1
            for (int j = 0; j < n; ++j) {
                const int h = top + row + i, w = left + column + j;
                if (!has(h, w)) continue;
                r += (value - at(a.means, h, w)) * share[(row + i) * columns + column + j];
            }
        }
        return r;
    }

    // Each pixel's gradient, from the sums of shares, and of shares times means.
    __device__ __forceinline__ void collect(A largest_share, A largest_mean) const
    {
        const int groups = a.tile_h / DOWN;
        const A terms = (A)(n * n);
        for (int i = (int)threadIdx.x; i < groups * a.tile_w; i += DIVNORM_THREADS) {
            const int group = i / a.tile_w, column = i - group * a.tile_w;
            const int first = group * DOWN, w = left + a.ahead + column;
            uint32_t again = 0;
            A s[DOWN], p[DOWN];
#pragma unroll
            for (int d = 0; d < DOWN; ++d) p[d] = 0;
            sum_column(sum + first * a.tile_w + column, a.tile_w, s);
            if (a.means) sum_column(square + first * a.tile_w + column, a.tile_w, p);
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                const int row = first + d, h = top + a.ahead + row;
                if (!has(h, w)) continue;
                const A by = x[(row + n - 1) * pitch + column + n - 1] - reference;
                const A direct = own[row * a.tile_w + column];
                const A r = by * s[d] - p[d];
                const A most = (fabs(by) + largest_mean) * largest_share * terms;
                const bool fine = fabs(by) >= (A)1.25 * largest_mean ||
                                  most <= 16 * DIVNORM_TRUST * (fabs(direct) + fabs(r));
                if (a.means && !(fine && r == r)) again |= 1u << d;
                else put(a.out, plane + (int64_t)h * a.width + w, direct + r);
            }
#pragma unroll 1
            for (int d = 0; again >> d; ++d) {
                const int row = first + d;
                if (!(again >> d & 1)) continue;
                const A value = x[(row + n - 1) * pitch + column + n - 1];
                const A r = collect_terms(row, column, value);
                put(a.out, plane + (int64_t)(top + a.ahead + row) * a.width + w,
                    own[row * a.tile_w + column] + r);
            }
        }
    }

    // The largest that a thread of the block has.
    __device__ __forceinline__ A largest(A own_largest, A *to)
    {
#pragma unroll
        for (int by = 16; by > 0; by /= 2) {
            own_largest = fmax(own_largest, __shfl_xor_sync(0xffffffffu, own_largest, by));
        }
        if (threadIdx.x % 32 == 0) to[threadIdx.x / 32] = own_largest;
        __syncthreads();
        A r = to[0];
#pragma unroll
        for (int i = 1; i < DIVNORM_THREADS / 32; ++i) r = fmax(r, to[i]);
        return r;
    }
};

template <class T, int N> __device__ __forceinline__ void div_forward(const divnorm_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    tile<T, N, false> t(a, nullptr);
    A share = 0, mean = 0;
    wd_wait_for_previous();
    t.find_reference();
    t.load();
    __syncthreads();
    t.sum_rows();
    __syncthreads();
    t.centres(share, mean);
}

template <class T, int N> __device__ __forceinline__ void div_backward(const divnorm_vector_args &a)
{
    typedef typename wd_accumulator<T>::type A;
    __shared__ A largest[2 * DIVNORM_THREADS / 32];
    tile<T, N, true> t(a, largest);
    A share = 0, mean = 0;
    wd_wait_for_previous();
    t.find_reference();
    t.load();
    __syncthreads();
    t.sum_rows();
    __syncthreads();
    t.centres(share, mean);
    share = t.largest(share, largest); // a barrier for all
    if (a.means) mean = t.largest(mean, largest + DIVNORM_THREADS / 32);
    t.sum_share_rows();
    __syncthreads();
    t.collect(share, mean);
}

} // namespace

#endif
