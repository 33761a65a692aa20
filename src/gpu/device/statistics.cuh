// SPDX-License-Identifier: Apache-2.0
//
// Mean and squared deviations of parts of a sample, and how parts make a whole: each thread sums
// differences from the first element it sees, in single precision but for doubles, and what it found is joined in
// double (Chan, Golub and LeVeque 1983). A first element that lies far out makes its own part's
// deviations large by itself, so that no digits are lost that the result would have.
#ifndef WD_GPU_DEVICE_STATISTICS_CUH
#define WD_GPU_DEVICE_STATISTICS_CUH

#include <stdint.h>

struct wd_part {
    double count;
    double mean;
    double squares; // of the differences from the mean
};

// What one thread sees of one sample: begun with an element of it.
template <class A> struct wd_shifted {
    A pivot;
    A sum;
    A squares;

    __device__ __forceinline__ void begin(A x)
    {
        pivot = x, sum = squares = (A)0;
    }

    __device__ __forceinline__ void add(A x)
    {
        const A d = x - pivot;
        sum += d;
        squares += d * d;
    }

    // Of `count` elements.
    __device__ __forceinline__ wd_part part(uint32_t count) const
    {
        wd_part p = {(double)count, 0.0, 0.0};
        if (count > 0) {
            const A rest = sum / (A)count;
            p.mean = (double)pivot + rest;
            p.squares = (double)squares - (double)sum * rest;
            if (p.squares < 0.0) p.squares = 0.0;
        }
        return p;
    }
};

static __device__ __forceinline__ void wd_join_parts(wd_part &into, const wd_part &from)
{
    const double count = into.count + from.count;
    if (from.count == 0.0) return;
    if (into.count == 0.0) {
        into = from;
        return;
    }
    const double d = from.mean - into.mean;
    // single precision will do for a share, and is no function call
    const double share = (float)from.count / (float)count;
    into.mean += d * share;
    into.squares += from.squares + d * d * into.count * share;
    into.count = count;
}

static __device__ __forceinline__ double wd_shuffle_down(double v, int lanes)
{
    return __shfl_down_sync(0xffffffffu, v, lanes);
}

// Over the lanes of a warp, in lane order; the result is the first lane's.
static __device__ __forceinline__ void wd_join_parts_of_warp(wd_part &part)
{
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        wd_part other = {wd_shuffle_down(part.count, lanes), wd_shuffle_down(part.mean, lanes),
                         wd_shuffle_down(part.squares, lanes)};
        wd_join_parts(part, other);
    }
}

static __device__ __forceinline__ double wd_sum_of_warp(double v)
{
    for (int lanes = 1; lanes < 32; lanes *= 2) v += wd_shuffle_down(v, lanes);
    return v;
}

#endif
