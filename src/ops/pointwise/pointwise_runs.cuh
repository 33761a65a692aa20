// SPDX-License-Identifier: Apache-2.0
//
// What the pointwise kernels share whose threads ask for several runs of 16 bytes, a block's width
// apart, so that a warp's loads and stores are whole lines. Arguments have `skip` and `count`: the
// walk's first element and its end, in elements behind a whole load.
#ifndef WD_OPS_POINTWISE_RUNS_CUH
#define WD_OPS_POINTWISE_RUNS_CUH

#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/pointwise/pointwise_device.cuh"

namespace {

template <class T> struct runs {
    static constexpr int V = 16 / (int)sizeof(T);
    typedef wd_run<T, V> run;

    // The first `count` runs, `width` elements apart. `whole`: all of the block's lie within the walk;
    // else those at its ends element by element.
    template <int U, class ARGS>
    static __device__ __forceinline__ void load(run *r, const ARGS &a, const void *from,
                                                uint32_t at, uint32_t width, bool whole,
                                                int count = U)
    {
        const T *data = static_cast<const T *>(from);
        if (whole) {
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (u < count) r[u].load(data + at + u * width);
            }
            return;
        }
#pragma unroll
        for (int u = 0; u < U; ++u, at += width) {
            if (u >= count) continue;
            if (U > 1 && at >= a.skip && at + V <= a.count) {
                r[u].load(data + at);
                continue;
            }
#pragma unroll
            for (int i = 0; i < V; ++i) {
                T element = T();
                if (at + i >= a.skip && at + i < a.count) element = data[at + i];
                r[u].put(i, element);
            }
        }
    }

    template <class A> static __device__ __forceinline__ void widen(A *to, const run &r)
    {
#pragma unroll
        for (int i = 0; i < V; ++i) to[i] = wd_widen(r.get(i));
    }

    template <class ARGS, class A>
    static __device__ __forceinline__ void store(const ARGS &a, void *to, uint32_t at, bool whole,
                                                 const A *value)
    {
        T *y = static_cast<T *>(to) + at;
        run r;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            T element;
            wd_narrow(element, value[i]);
            r.put(i, element);
        }
        if (whole) {
            if (a.streaming) r.store_streaming(y);
            else r.store(y);
            return;
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (at + i >= a.skip && at + i < a.count) y[i] = r.get(i);
        }
    }
};

} // namespace

#endif
