// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients of grids of few places, in one launch and with little to wait for: the grid, then
// dy. A block has a tile of the image and some channels, and looks at all places. Those that touch the tile
// are listed by cell, in shared memory: each is hung before what was there. Lists are then put into the
// order of places, so that sums have one order, and every element walks through those of its four cells.
// The gradients of the grid are other blocks' work, a place a thread.
#ifndef WD_OPS_SPATIAL_SAMPLER_LITTLE_CUH
#define WD_OPS_SPATIAL_SAMPLER_LITTLE_CUH

#include "gpu/device/exchange.cuh"
#include "ops/spatial/sampler_regions.cuh"

namespace {

constexpr uint32_t LIST_END = UINT32_MAX;

// A list whose links are the first words of `node`, sorted by number: merged in runs of 1, 2, 4 and so
// on. Returns its first.
__device__ __forceinline__ uint32_t sorted_list(uint4 *node, uint32_t head)
{
#pragma unroll 1
    for (uint32_t length = 1;; length *= 2) {
        uint32_t p = head, tail = LIST_END, merges = 0;
        head = LIST_END;
#pragma unroll 1
        while (p != LIST_END) {
            uint32_t q = p, of_p = 0, of_q = length;
            merges += 1;
#pragma unroll 1
            while (of_p < length && q != LIST_END) {
                q = node[q].x;
                of_p += 1;
            }
#pragma unroll 1
            while (of_p > 0 || (of_q > 0 && q != LIST_END)) {
                const bool takes_p = of_p > 0 && (of_q == 0 || q == LIST_END || p < q);
                const uint32_t next = takes_p ? p : q;
                const uint32_t behind = node[next].x;
                if (takes_p) {
                    p = behind;
                    of_p -= 1;
                } else {
                    q = behind;
                    of_q -= 1;
                }
                if (tail == LIST_END) head = next;
                else node[tail].x = next;
                tail = next;
            }
            p = q;
        }
        node[tail].x = LIST_END;
        if (merges <= 1) return head;
    }
}

// A block's tile of the image, 1 << lanes_log2 columns and 1 << across_log2 rows, and its shared memory:
// nodes, shares, then cells.
template <class T> struct little_tile {
    typedef typename accumulator<T>::type A;
    const sampler_vector_args &a;
    uint32_t n;
    int top, left, first, last; // elements and channels
    int across, cells;          // of a row; of all
    uint4 *node;   // of a place: the next of its cell, how far down and right, whether it is listed
    float4 *share; // dy of a place
    uint32_t *begin; // of a cell: its first place; behind all: whether there is any

    __device__ __forceinline__ little_tile(const sampler_vector_args &args, uint32_t b) : a(args)
    {
        first = (int)take_rest(b, a.by_chunk) * a.chunk;
        last = min(first + a.chunk, a.channels);
        left = (int)take_rest(b, a.by_column) << a.lanes_log2;
        top = (int)take_rest(b, a.by_row) << a.across_log2;
        n = a.first_image + b;
        across = (1 << a.lanes_log2) + 1;
        cells = across * ((1 << a.across_log2) + 1);
        node = wd_dynamic_shared<uint4>();
        share = reinterpret_cast<float4 *>(node + a.by_position.divisor);
        begin = reinterpret_cast<uint32_t *>(share + a.by_position.divisor);
    }

    // The tile's cell that a place looks into, or -1.
    __device__ __forceinline__ int cell_of(const sight<A> &k) const
    {
        const int r = k.row - top + 1, c = k.column - left + 1;
        const bool in =
            k.seen && (uint32_t)r <= 1u << a.across_log2 && (uint32_t)c <= 1u << a.lanes_log2;
        return in ? r * across + c : -1;
    }

    // Channel `first` of a place's dy.
    __device__ __forceinline__ const T *dy_of(uint32_t place) const
    {
        const int q = (int)take_rest(place, a.by_line);
        return static_cast<const T *>(a.y.data) + n * a.y.image + (int64_t)place * a.y.row +
               (int64_t)q * a.y.column + first * a.y.channel;
    }

    // Lists the places that touch the tile, each thread some at once.
    __device__ __forceinline__ void list() const
    {
        constexpr uint32_t U = 4;
        const uint32_t places = a.by_position.divisor;
#pragma unroll 1
        for (uint32_t base = threadIdx.x; base < places; base += U * blockDim.x) {
            sight<A> k[U];
            A dy[U][4];
            int cell[U];
#pragma unroll
            for (uint32_t u = 0; u < U; ++u) {
                const uint32_t i = base + u * blockDim.x;
                k[u].seen = false;
                if (i < places) k[u].template look<T>(a, (int64_t)n * places + i);
            }
#pragma unroll
            for (uint32_t u = 0; u < U; ++u) {
                cell[u] = k[u].seen ? cell_of(k[u]) : -1;
                const T *from = dy_of(base + u * blockDim.x);
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    dy[u][c] = element_if<T>(cell[u] >= 0 && first + c < last, from);
                    from += a.y.channel;
                }
            }
#pragma unroll
            for (uint32_t u = 0; u < U; ++u) {
                const uint32_t i = base + u * blockDim.x;
                if (cell[u] < 0) {
                    if (i < places) node[i].w = 0;
                    continue;
                }
                wd_exchange(begin + cells, 0u);
                node[i] = make_uint4(wd_exchange(begin + cell[u], i), __float_as_uint(k[u].down),
                                     __float_as_uint(k[u].right), 1);
                share[i] = make_float4(dy[u][0], dy[u][1], dy[u][2], dy[u][3]);
            }
        }
    }

    // The next channels of the places that are listed.
    __device__ __forceinline__ void list_again() const
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < a.by_position.divisor; i += blockDim.x) {
            A dy[4];
            const bool listed = node[i].w;
            const T *from = dy_of(i);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                dy[c] = element_if<T>(listed && first + c < last, from);
                from += a.y.channel;
            }
            share[i] = make_float4(dy[0], dy[1], dy[2], dy[3]);
        }
    }

    __device__ __forceinline__ void sort() const
    {
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < cells; i += (int)blockDim.x) {
            const uint32_t one = begin[i];
            const uint32_t two = one == LIST_END ? LIST_END : node[one].x;
            if (two == LIST_END) continue;
            if (node[two].x != LIST_END) {
                begin[i] = sorted_list(node, one);
            } else if (two < one) {
                begin[i] = two;
                node[two].x = one;
                node[one].x = LIST_END;
            }
        }
    }

    // The thread's element, if there is one, in channel `first`.
    __device__ __forceinline__ T *own_element() const
    {
        const int c = (int)threadIdx.x & ((1 << a.lanes_log2) - 1);
        const int r = (int)threadIdx.x >> a.lanes_log2;
        const int h = top + r, w = left + c;
        if (r >= 1 << a.across_log2 || h >= a.height || w >= a.width) return NULL;
        return static_cast<T *>(a.dx.data) + n * a.dx.image + (int64_t)h * a.dx.row +
               (int64_t)w * a.dx.column + first * a.dx.channel;
    }

    // All channels of an element that no place looks at.
    __device__ __forceinline__ void put_nothing() const
    {
        const A nothing[1] = {0};
        T *to = own_element();
        if (!to) return;
#pragma unroll 2
        for (int c = first; c < last; ++c) {
            put<T, 1>(a, to, nothing);
            to += a.dx.channel;
        }
    }

    __device__ __forceinline__ void put_element() const
    {
        const int c = (int)threadIdx.x & ((1 << a.lanes_log2) - 1);
        const int r = (int)threadIdx.x >> a.lanes_log2;
        A sums[4] = {0, 0, 0, 0};
        T *to = own_element();
        if (!to) return;
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            uint32_t i = begin[(r + t / 2) * across + c + t % 2];
#pragma unroll 1
            while (i != LIST_END) {
                const uint4 one = node[i];
                const float4 dy = share[i];
                const A down = __uint_as_float(one.y), right = __uint_as_float(one.z);
                const A weight = (t / 2 ? 1 - down : down) * (t % 2 ? 1 - right : right);
                sums[0] += weight * dy.x;
                sums[1] += weight * dy.y;
                sums[2] += weight * dy.z;
                sums[3] += weight * dy.w;
                i = one.x;
            }
        }
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            if (first + v < last) put<T, 1>(a, to, sums + v);
            to += a.dx.channel;
        }
    }
};

// Here by_position counts the places of an image, `count` those of a launch; the first `room` blocks of
// it have places, which take longest, the others tiles.
template <class T> __device__ __forceinline__ void back_little(const sampler_vector_args &a)
{
    if (blockIdx.x < (uint32_t)a.room) {
        uint32_t number = (blockIdx.x * blockDim.x + threadIdx.x) >> a.sharing_log2;
        sight<typename accumulator<T>::type> k;
        spot at;
        const bool in = number < a.count;
        uint32_t place = take_rest(number, a.by_position);
        at.q = (int)take_rest(place, a.by_line);
        at.p = (int)place;
        at.n = a.first_image + number;
        wd_wait_for_previous();
        if (in) k.template look<T>(a, at.number(a));
        put_shared_place<T, 2>(a, at, k, in, true);
        return;
    }
    little_tile<T> tile(a, blockIdx.x - (uint32_t)a.room);
#pragma unroll 1
    for (int i = (int)threadIdx.x; i <= tile.cells; i += (int)blockDim.x) tile.begin[i] = LIST_END;
    __syncthreads();
    wd_wait_for_previous();
    tile.list();
    __syncthreads();
    if (tile.begin[tile.cells] == LIST_END) return tile.put_nothing();
    tile.sort();
    __syncthreads();
    tile.put_element();
#pragma unroll 1
    for (tile.first += 4; tile.first < tile.last; tile.first += 4) {
        __syncthreads();
        tile.list_again();
        __syncthreads();
        tile.put_element();
    }
}

} // namespace

#endif
