// SPDX-License-Identifier: Apache-2.0
//
// Rows of two bytes an element off the boundaries that come by bulk copies. Rows that begin equally far behind a boundary are a class,
// of which a block has rows of one alone: so a thread's aligned units, and their columns, stay its own. A warp has a strip of a row, and what its
// copy brings besides: the unit before the row's first boundary, and that behind its last one, whose elements are singles of some lanes.
#ifndef WD_OPS_NORM_ROWS_ODD_STRIP_CUH
#define WD_OPS_NORM_ROWS_ODD_STRIP_CUH

#include "gpu/device/bulk.cuh"
#include "ops/norm/norm_rows_odd_seat.cuh"

namespace {

constexpr uint32_t STRIP_ENDS = 2; // units of a place beside the strip's

// Of a class, the rows r = first + k * classes.
struct odd_class {
    uint32_t first;
    uint32_t rows;
    int64_t far; // from one to the next, bytes
};

template <class T>
__device__ __forceinline__ odd_class odd_class_of(const norm_rows_args &a, uint32_t first)
{
    odd_class c;
    c.first = first;
    c.rows =
        ((uint32_t)a.rows - first + a.classes - 1) / a.classes; // rows are no fewer than classes
    c.far = (int64_t)a.classes * a.length * (int64_t)sizeof(T);
    return c;
}

// A warp's strip of the rows of a class, and its thread's part.
struct odd_strip {
    uint32_t first;  // column of the thread's first unit
    uint32_t units;  // whole ones of the warp
    uint32_t count;  // of these the thread's
    uint32_t before; // units that the warp's copy has before these
    uint32_t bytes;  // that are copied: one unit more behind them, where the row has singles there
    uint32_t single; // column of the thread's, or ODD_NONE
    uint32_t at;     // where it lies in the strip's place, elements; 0: there is none
    bool ends;       // the warp has an end of a row, and may have fewer units

    __device__ __forceinline__ bool has_single() const
    {
        return single != ODD_NONE;
    }
};

// By U units a thread, of rows like `row`, of which block `rank` of a cluster has a share. The warp that has the last whole unit has the
// singles behind it too; a row has one such unit at least.
template <class T, uint32_t U>
__device__ __forceinline__ odd_strip odd_strip_of(const norm_rows_args &a, uint32_t row,
                                                  uint32_t rank)
{
    constexpr uint32_t E = EACH<T>, STRIP = U * WARP;
    const uint32_t warp = threadIdx.x % a.lanes / WARP, lane = threadIdx.x % WARP;
    const uint32_t begins = (uint32_t)(reinterpret_cast<uintptr_t>(a.x) / sizeof(T));
    const uint32_t head = (E - (begins + row * a.length) % E) % E;
    const uint32_t whole = (a.length - head) / E;
    const uint32_t tail = a.length - head - whole * E;
    const uint32_t end = min(rank * a.share + a.share, whole);
    const uint32_t begin = min(rank * a.share + warp * STRIP, end);
    const bool has_first = rank == 0 && warp == 0;
    odd_strip s;
    s.units = min(STRIP, end - begin);
    s.first = head + (begin + lane) * E;
    s.count = lane < s.units ? (s.units - lane - 1) / WARP + 1 : 0;
    const bool has_last = s.units > 0 && begin + s.units == whole;
    s.before = has_first && head > 0 ? 1 : 0;
    s.bytes = (s.before + s.units + (has_last && tail > 0 ? 1 : 0)) * NORM_ROWS_UNIT;
    s.single = ODD_NONE;
    s.at = 0;
    if (has_first && lane < head) {
        s.single = lane;
        s.at = E - head + lane;
    } else if (has_last && lane - ODD_LANES < tail) {
        s.single = head + whole * E + lane - ODD_LANES;
        s.at = (1 + s.units) * E + lane - ODD_LANES;
    }
    s.ends = has_first || has_last || s.units < STRIP;
    return s;
}

// Where the warp's copy of a row begins.
template <class T>
__device__ __forceinline__ const char *odd_strip_from(const void *tensor, const norm_rows_args &a,
                                                      const odd_strip &s, uint32_t row)
{
    const int64_t column = (int64_t)row * a.length + s.first - threadIdx.x % WARP * EACH<T>;
    return static_cast<const char *>(tensor) + column * (int64_t)sizeof(T) -
           s.before * NORM_ROWS_UNIT;
}

// By one lane: a row's part to a place, whose first unit is for what is before the strip. Of no bytes the phase ends too.
__device__ __forceinline__ void odd_strip_ask(const odd_strip &s, uint4 *place, const char *from,
                                              uint64_t *landed)
{
    wd_counter_expect(landed, s.bytes);
    if (s.bytes > 0) wd_bulk_copy(place + 1 - s.before, from, s.bytes, landed);
}

} // namespace

#endif
