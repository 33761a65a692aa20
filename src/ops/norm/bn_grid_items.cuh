// SPDX-License-Identifier: Apache-2.0
//
// Which parameters the columns of bn_grid's threads belong to, and what sums of differences are around.
#ifndef WD_OPS_NORM_BN_GRID_ITEMS_CUH
#define WD_OPS_NORM_BN_GRID_ITEMS_CUH

#include "gpu/device/prefetch.cuh"
#include "ops/norm/bn_grid_device.cuh"
#include "ops/norm/norm_middle.cuh"

namespace {

// Items are the group's parameters. Sums and numbers of single columns lie in the order of slots, so
// that neighbouring threads have neighbouring ones; what belongs to several columns as parameters do.
__device__ __forceinline__ bool single_columns(const bn_grid_args &a)
{
    return a.span == 1 && a.copies == 1;
}

// The element of a row of all columns that lies in a column, where rows begin before the tensor does.
__device__ __forceinline__ uint32_t element_of_column(const bn_grid_args &a, uint32_t column,
                                                      uint32_t columns)
{
    return column < a.bn.lead ? column + columns - a.bn.lead : column - a.bn.lead;
}

template <class T>
__device__ __forceinline__ uint32_t item_of_column(const bn_grid_args &a, uint32_t run, int i)
{
    if (single_columns(a)) return i * a.runs + run;
    if (a.items == 1) return 0;
    const uint32_t column = element_of_column(a, run * UNIT<T> + i, a.runs * UNIT<T>);
    const uint32_t param = wd_fastdiv_quotient(column, a.by_span);
    return param - wd_fastdiv_quotient(param, a.by_items) * a.items;
}

// f(i, item) of a run's columns. CYCLIC: of which each is a parameter's, so that several copies of all take turns.
template <class T, bool CYCLIC, class F>
__device__ __forceinline__ void each_item(const bn_grid_args &a, uint32_t run, F f)
{
    if constexpr (CYCLIC) {
        const bool single = single_columns(a);
        const uint32_t step = single ? a.runs : 1, end = single ? UNIT<T> * a.runs : a.items;
        uint32_t item = run;
        if (!single) {
            item = element_of_column(a, run * UNIT<T>, a.runs * UNIT<T>);
            item -= wd_fastdiv_quotient(item, a.by_items) * a.items;
        }
#pragma unroll
        for (int i = 0; i < UNIT<T>; ++i) {
            f(i, item);
            item = item + step == end ? 0 : item + step;
        }
    } else {
#pragma unroll
        for (int i = 0; i < UNIT<T>; ++i) f(i, item_of_column<T>(a, run, i));
    }
}

// The parameter of the thread's column i; beyond the last one, where there is none.
template <class T>
__device__ __forceinline__ uint32_t param_of_column(const bn_grid_args &a, const spot &p,
                                                    uint32_t run, int i)
{
    const uint32_t first = p.range * a.items;
    if (!single_columns(a)) return first + item_of_column<T>(a, run, i);
    const uint32_t column = first + run * UNIT<T> + i;
    return column < a.bn.params ? element_of_column(a, column, a.bn.params) : column;
}

// Likewise f(i, parameter).
template <class T, bool CYCLIC, class F>
__device__ __forceinline__ void each_param(const bn_grid_args &a, const spot &p, F f)
{
    if (CYCLIC && !single_columns(a)) {
        each_item<T, true>(a, p.run, [&](int i, uint32_t item) { f(i, p.range * a.items + item); });
    } else {
#pragma unroll
        for (int i = 0; i < UNIT<T>; ++i) f(i, param_of_column<T>(a, p, p.run, i));
    }
}

template <class T>
__device__ __forceinline__ uint32_t param_of_item(const bn_grid_args &a, const spot &p,
                                                  uint32_t item)
{
    if (!single_columns(a)) return p.range * a.items + item;
    const uint32_t place = wd_fastdiv_quotient(item, a.by_runs);
    return param_of_column<T>(a, p, item - place * a.runs, place);
}

// Asks for where pivots are, before all else: nothing is added without.
__device__ __forceinline__ void ask_for_pivots(const bn_grid_args &a, const spot &p)
{
    if (!p.active || p.lane > 0 || (a.items == 1 && p.run > 0) || a.all_rows == 0) return;
#pragma unroll
    for (uint32_t k = 0; k < 3; ++k) {
        const uint32_t row = a.all_rows / 8 * (1 + 3 * k);
        wd_prefetch_line(static_cast<const uint4 *>(a.bn.x) + p.first + at_row(a, row));
    }
}

// An element near the others of item `item`: of three from all over the group the middle one, so that
// a single one that lies far out does no harm. All blocks have the same.
template <class T>
__device__ __forceinline__ acc<T> pivot_of(const bn_grid_args &a, const spot &p, uint32_t item)
{
    const T *x = static_cast<const T *>(a.bn.x);
    const uint32_t origin = p.range * a.stride + p.sample * a.sample;
    uint32_t column = item * a.span + a.bn.lead;
    if (single_columns(a)) {
        const uint32_t place = wd_fastdiv_quotient(item, a.by_runs);
        column = (item - place * a.runs) * UNIT<T> + place;
    }
    acc<T> some[3];
#pragma unroll
    for (uint32_t k = 0; k < 3; ++k) {
        const uint32_t row = a.all_rows / 8 * (1 + 3 * k);
        some[k] = wd_widen(x[(int64_t)(origin + at_row(a, row)) * UNIT<T> + column]);
    }
    return wd_middle_of(some[0], some[1], some[2]);
}

// Those of the thread's columns, which are single ones.
template <class T>
__device__ __forceinline__ void pivots_of_columns(const bn_grid_args &a, const spot &p,
                                                  acc<T> (&pivot)[UNIT<T>])
{
    unit<T> u[3];
#pragma unroll
    for (uint32_t k = 0; k < 3; ++k) {
        get<T, false>(a, u[k], a.bn.x, p.first + at_row(a, a.all_rows / 8 * (1 + 3 * k)));
    }
#pragma unroll
    for (int i = 0; i < UNIT<T>; ++i) {
        pivot[i] =
            wd_middle_of(wd_widen(u[0].get(i)), wd_widen(u[1].get(i)), wd_widen(u[2].get(i)));
    }
}

// Those of columns of which a parameter has several; `own` is that of item threadIdx.x. All threads come here
// together.
template <class T, bool CYCLIC>
__device__ __forceinline__ void pivots_of_items(const bn_grid_args &a, const spot &p, acc<T> own,
                                                acc<T> (&pivot)[UNIT<T>])
{
    // where blocks show each other sums, later
    acc<T> *of_item = reinterpret_cast<acc<T> *>(memory() + a.shown);
    if (threadIdx.x < a.items) of_item[threadIdx.x] = own;
    __syncthreads();
    each_item<T, CYCLIC>(a, p.run, [&](int i, uint32_t item) { pivot[i] = of_item[item]; });
}

} // namespace

#endif
