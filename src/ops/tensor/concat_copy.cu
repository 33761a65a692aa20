// SPDX-License-Identifier: Apache-2.0
//
// Concatenation in one launch: bytes of all inputs to their places in y. Long chunks are read and
// written in 16 bytes between boundaries, whatever they begin at: what a unit of y needs lies in two
// units of x, and is shifted together. Rows of few bytes side by side are put together in shared memory.
#include "gpu/device/async.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/tensor/concat_copy_args.h"

namespace {

using unit = wd_run<unsigned char, CONCAT_BYTES>;

// Bytes of x from its start on that are not beyond its end, the rest zeros.
__device__ __forceinline__ void load_within(const concat_input &in, unit &to, int64_t at)
{
    if (at >= 0 && at + CONCAT_BYTES <= in.extent) {
        to.load(in.x + at);
        return;
    }
#pragma unroll
    for (int w = 0; w < unit::WORDS; ++w) to.word[w] = 0;
        // the last byte first, each before the one behind it
#pragma unroll 1
    for (int b = CONCAT_BYTES - 1; b >= 0; --b) {
        const int64_t k = at + b;
#pragma unroll
        for (int w = unit::WORDS - 1; w > 0; --w) {
            to.word[w] = to.word[w] << 8 | to.word[w - 1] >> 24;
        }
        to.word[0] <<= 8;
        if (k >= 0 && k < in.extent) to.word[0] |= in.x[k];
    }
}

// Where row `row` begins, in bytes from x and from y.
__device__ __forceinline__ void find_row(const concat_input &in, uint32_t row, int64_t &x,
                                         int64_t &y)
{
    x = y = 0;
    for (int d = in.rank - 1; d >= 0; --d) {
        const uint32_t next = wd_fastdiv_quotient(row, in.dim[d]);
        const uint32_t at = row - next * in.dim[d].divisor;
        x += at * in.x_stride[d];
        y += at * in.y_stride[d];
        row = next;
    }
}

// Bytes low .. high-1 of a unit, by pieces that divide both.
template <class P>
__device__ __forceinline__ void put_pieces(const unit &from, unsigned char *to, int low, int high)
{
    constexpr int BYTES = (int)sizeof(P);
#pragma unroll
    for (int j = 0; j < CONCAT_BYTES; j += BYTES) {
        if (j < low || j >= high) continue;
        *reinterpret_cast<P *>(to + j) = (P)(from.word[j / 4] >> (8 * (j & 3)));
    }
}

__device__ __forceinline__ void put_unit(const concat_copy_args &a, const concat_input &in,
                                         const unit &from, unsigned char *to, int low, int high)
{
    if (low <= 0 && high >= CONCAT_BYTES) {
        if (a.streaming) from.store_streaming(to);
        else from.store(to);
    } else if (in.piece >= 4) {
        put_pieces<uint32_t>(from, to, low, high);
    } else if (in.piece == 2) {
        put_pieces<uint16_t>(from, to, low, high);
    } else {
        put_pieces<uint8_t>(from, to, low, high);
    }
}

// The bytes from `shift` on of two units that follow one another.
__device__ __forceinline__ void shift_together(unit &first, const unit &second, uint32_t shift)
{
    uint32_t w[8], t[6], u[5];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = first.word[i], w[i + 4] = second.word[i];
#pragma unroll
    for (int i = 0; i < 6; ++i) t[i] = shift & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) u[i] = shift & 4 ? t[i + 1] : t[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        first.word[i] = (uint32_t)(((uint64_t)u[i + 1] << 32 | u[i]) >> (8 * (shift & 3)));
    }
}

// ALIKE: rows begin as far behind boundaries in x as in y.
template <int UNITS, bool ALIKE>
__device__ __forceinline__ void copy_long(const concat_copy_args &a, const concat_input &in,
                                          uint32_t start)
{
    const uint32_t x_phase = (uint32_t)(reinterpret_cast<uintptr_t>(in.x) % CONCAT_BYTES);
    const uint32_t y_phase = (uint32_t)(reinterpret_cast<uintptr_t>(in.y) % CONCAT_BYTES);
    unit first[UNITS], second[UNITS];
    int64_t to[UNITS]; // of the unit, in bytes from y
    uint32_t shift[UNITS];
    int low[UNITS], high[UNITS]; // those of its bytes that are the row's
#pragma unroll
    for (int i = 0; i < UNITS; ++i) {
        const uint32_t u = start + i * blockDim.x;
        const uint32_t row = wd_fastdiv_quotient(u, in.row);
        const uint32_t k = u - row * in.row.divisor;
        int64_t x, y, end;
        low[i] = high[i] = 0;
        if (u >= in.units) continue;
        find_row(in, row, x, y);
        end = y + in.chunk;
        to[i] = y - (int64_t)((y + y_phase) % CONCAT_BYTES) + (int64_t)k * CONCAT_BYTES;
        low[i] = to[i] < y ? (int)(y - to[i]) : 0;
        high[i] = end - to[i] < CONCAT_BYTES ? (int)(end - to[i]) : CONCAT_BYTES;
        if (high[i] <= 0) continue; // a row that begins at a boundary has a unit less
        // the tensor's bytes from the boundary at or before; it may be before x
        x += to[i] - y;
        if (ALIKE) {
            load_within(in, first[i], x);
            continue;
        }
        shift[i] = (uint32_t)((x + x_phase + CONCAT_BYTES) % CONCAT_BYTES);
        load_within(in, first[i], x - shift[i]);
        if (shift[i] > 0) load_within(in, second[i], x - shift[i] + CONCAT_BYTES);
    }
#pragma unroll
    for (int i = 0; i < UNITS; ++i) {
        if (high[i] <= 0) continue;
        if (!ALIKE && shift[i] > 0) shift_together(first[i], second[i], shift[i]);
        put_unit(a, in, first[i], in.y + to[i], low[i], high[i]);
    }
}

template <class P>
__device__ __forceinline__ void copy_short(const concat_input &in, uint32_t start)
{
    constexpr int UNITS = CONCAT_SHORT;
    P piece[UNITS];
    int64_t to[UNITS];
#pragma unroll
    for (int i = 0; i < UNITS; ++i) {
        const uint32_t u = start + i * blockDim.x;
        const uint32_t row = wd_fastdiv_quotient(u, in.row);
        const int64_t k = (int64_t)(u - row * in.row.divisor) * (int)sizeof(P);
        int64_t x;
        if (u >= in.units) continue;
        find_row(in, row, x, to[i]);
        to[i] += k;
        piece[i] = *reinterpret_cast<const P *>(in.x + x + k);
    }
#pragma unroll
    for (int i = 0; i < UNITS; ++i) {
        if (start + i * blockDim.x < in.units) *reinterpret_cast<P *>(in.y + to[i]) = piece[i];
    }
}

__device__ __forceinline__ const concat_input &own_input(const concat_copy_args &a)
{
    int which = 0;
    wd_wait_for_previous();
    while (which + 1 < a.inputs && a.input[which + 1].first_block <= blockIdx.x) ++which;
    return a.input[which];
}

__device__ __forceinline__ void concat_copy(const concat_copy_args &a)
{
    const concat_input &in = own_input(a);
    const uint32_t units = in.is_long ? CONCAT_LONG : CONCAT_SHORT;
    const uint32_t start = (blockIdx.x - in.first_block) * blockDim.x * units + threadIdx.x;
    if (in.is_long) copy_long<CONCAT_LONG, false>(a, in, start);
    else if (in.piece == 16) copy_short<uint4>(in, start);
    else if (in.piece == 8) copy_short<uint2>(in, start);
    else if (in.piece == 4) copy_short<uint32_t>(in, start);
    else if (in.piece == 2) copy_short<uint16_t>(in, start);
    else copy_short<uint8_t>(in, start);
}

__device__ __forceinline__ void concat_alike(const concat_copy_args &a)
{
    const concat_input &in = own_input(a);
    copy_long<CONCAT_ALIKE, true>(
        a, in, (blockIdx.x - in.first_block) * blockDim.x * CONCAT_ALIKE + threadIdx.x);
}

// ---- Mixed rows ----

// Bytes of x from `at` on, those that there are, asynchronously where all are.
__device__ __forceinline__ void fetch(const mix_input &in, unsigned char *to, int64_t at)
{
    if (at >= 0 && at + CONCAT_BYTES <= in.extent) {
        wd_copy_async<CONCAT_BYTES, false>(to, in.x + at);
        return;
    }
#pragma unroll 1
    for (int b = 0; b < CONCAT_BYTES; ++b) {
        if (at + b >= 0 && at + b < in.extent) to[b] = in.x[at + b];
    }
}

// E is an element, W a word of y: one of 4 bytes, or an element where that is more.
template <class E, class W> __device__ __forceinline__ void concat_mix(const concat_mix_args &a)
{
    WD_DYNAMIC_SHARED(unsigned char, shared);
    constexpr int N = (int)(sizeof(W) / sizeof(E)), BITS = 8 * (int)sizeof(E);
    const int64_t first = (int64_t)blockIdx.x * a.tile_rows;
    const int64_t rows = min((int64_t)a.tile_rows, a.rows - first);
    const int elements = (int)rows * (int)a.columns;
    E *y = reinterpret_cast<E *>(a.y) + first * a.columns;
    // where a column's element of the first row is, and above that the bytes from row to row
    uint32_t *table = reinterpret_cast<uint32_t *>(shared);
    wd_wait_for_previous();
    for (int i = 0; i < a.inputs; ++i) {
        const mix_input &in = a.input[i];
        const int64_t start = first * in.chunk - in.shift;
        const uint32_t bytes = in.shift + (uint32_t)rows * in.chunk;
        for (uint32_t u = threadIdx.x * CONCAT_BYTES; u < bytes; u += blockDim.x * CONCAT_BYTES) {
            fetch(in, shared + in.place + u, start + u);
        }
        for (uint32_t c = threadIdx.x; c < in.chunk / sizeof(E); c += blockDim.x) {
            table[in.column + c] = in.chunk << 16 | (in.place + in.shift + c * (uint32_t)sizeof(E));
        }
    }
    wd_copies_wait_all();
    __syncthreads();
    const auto element = [&](uint32_t row, uint32_t column) {
        const uint32_t entry = table[column];
        return *reinterpret_cast<const E *>(shared + (entry & 0xffffu) + row * (entry >> 16));
    };
    int k = (int)threadIdx.x * N - a.shift;
    for (E *at = y + k; k < elements; k += (int)blockDim.x * N, at += (int)blockDim.x * N) {
        if (k >= 0 && k + N <= elements) {
            uint32_t row = wd_fastdiv_quotient((uint32_t)k, a.by_columns);
            uint32_t column = (uint32_t)k - row * a.columns;
            W word = element(row, column);
            W *to = reinterpret_cast<W *>(at);
#pragma unroll
            for (int j = 1; j < N; ++j) {
                if (++column == a.columns) column = 0, row += 1;
                word |= (W)element(row, column) << (j * BITS % (8 * (int)sizeof(W)));
            }
            *to = word;
            continue;
        }
#pragma unroll 1
        for (int e = max(k, 0); e < min(k + N, elements); ++e) {
            const uint32_t row = wd_fastdiv_quotient((uint32_t)e, a.by_columns);
            y[e] = element(row, (uint32_t)e - row * a.columns);
        }
    }
}

} // namespace

#define WD_KERNELS_ROWS "ops/tensor/concat_copy_kernels.def"
#include "ops/kernels_device.inc"
