// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima from their places: a thread has a run of channels of a pixel and collects from
// the few windows over it. No atomics.
#include "ops/resample/resample_lines.cuh"
#include "ops/resample/resample_planes.cuh"
#include "ops/resample/resample_threes.cuh"

namespace {

// The places along an axis that are a pixel, or stand for it: of a window's, from .. to-1.
struct spot {
    int from;
    int to;
    int extent;
    __device__ __forceinline__ spot(const resample_max_args &a, int axis, int window, int k)
    {
        const resample_entry range = entry_of(a.axis[axis].ranges, (uint32_t)window);
        extent = range.count;
        from = max(k - range.first, 0);
        to = min(k - range.first + 1, extent);
        if (a.repeats && k == 0) from = 0;
        if (a.repeats && k == a.axis[axis].image - 1) to = extent;
    }
    __device__ __forceinline__ bool is_one() const
    {
        return to - from == 1;
    }
    // Whether it is hit by the place's last coordinate, which is taken off.
    __device__ __forceinline__ bool takes(int &place) const
    {
        const int outer = place / extent;
        const int at = place - outer * extent;
        place = outer;
        return at >= from && at < to;
    }
};

template <class T, int V>
__device__ __forceinline__ void resample_collect(const resample_max_args &a)
{
    typedef acc<T> A;
    wd_wait_for_previous();
    const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= a.count) return;
    uint32_t n = item;
    const uint32_t channel = wd_take_rest(n, a.by_run) * V;
    const int column = (int)wd_take_rest(n, a.by_column);
    const int row = (int)wd_take_rest(n, a.by_row);
    const int depth = (int)wd_take_rest(n, a.by_depth);
    const resample_entry across = entry_of(a.axis[2].over, (uint32_t)column);
    const resample_entry down = entry_of(a.axis[1].over, (uint32_t)row);
    const resample_entry deep = entry_of(a.axis[0].over, (uint32_t)depth);
    const T *dy = static_cast<const T *>(a.from);
    A sum[V];
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] = 0;
    for (int z = deep.first; z < deep.first + deep.count; ++z) {
        const spot of_depth(a, 0, z, depth);
        for (int r = down.first; r < down.first + down.count; ++r) {
            const spot of_row(a, 1, r, row);
            const size_t line =
                (((size_t)n * (uint32_t)a.axis[0].windows + z) * (uint32_t)a.axis[1].windows + r) *
                (uint32_t)a.axis[2].windows;
            const int before = (of_depth.from * of_row.extent + of_row.from);
#pragma unroll 1
            for (int c = across.first; c < across.first + across.count; ++c) {
                const spot of_column(a, 2, c, column);
                const size_t at = (line + c) * a.inner + channel;
                const bool one = of_depth.is_one() && of_row.is_one() && of_column.is_one();
                const int only = before * of_column.extent + of_column.from;
                int32_t place[V];
                wd_run<T, V> share;
                load_places<V>(a.places, a.place_size, at, place);
                share.load(dy + at);
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    bool mine = place[i] == only;
                    if (!one) {
                        int left = place[i];
                        mine = of_column.takes(left);
                        mine = of_row.takes(left) && mine;
                        mine = left >= of_depth.from && left < of_depth.to && mine;
                    }
                    sum[i] += mine ? wd_widen(share.get(i)) : (A)0;
                }
            }
        }
    }
    wd_put_run<T, V>(a, (size_t)item * V, sum);
}

} // namespace

#define WD_KERNELS_BOUNDS WD_KERNELS_BUDGET
#define WD_KERNELS_ROWS "ops/resample/resample_vector_back_kernels.def"
#include "ops/kernels_device.inc"
