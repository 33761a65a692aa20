// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients, without atomics on them. A block has a tile of the image, and collects the
// places whose cells touch it: from all places of a small grid, of others from the boxes (squares of
// the grid, whose extent in the image a first kernel finds) that come near. The places are sorted by
// cell, then by place, in shared memory; so the sums have one order. Then, some channels at a time, the
// gradients of these places and the image's tile are brought there: every element collects from the four
// cells around it, every place whose cell belongs to the tile adds up its slopes. Where more places look
// into a tile than there is room for, they come in portions, first for the elements, then for slopes.
#ifndef WD_OPS_SPATIAL_SAMPLER_BACK_CUH
#define WD_OPS_SPATIAL_SAMPLER_BACK_CUH

#include "ops/spatial/sampler_tiles.cuh"

namespace {

template <class T, class A>
__device__ __forceinline__ void put_slopes(const sampler_vector_args &a, int64_t place, A by_x,
                                           A by_y)
{
    T *to = static_cast<T *>(a.dgrid) + 2 * place;
    const A old_x = a.blends_grid ? wd_widen(to[0]) : (A)0;
    const A old_y = a.blends_grid ? wd_widen(to[1]) : (A)0;
    wd_narrow(to[0], blended<A>(a.scales_grid, a.alpha_grid, by_x * (A)(a.width - 1) / 2,
                                a.blends_grid, a.beta_grid, old_x));
    wd_narrow(to[1], blended<A>(a.scales_grid, a.alpha_grid, by_y * (A)(a.height - 1) / 2,
                                a.blends_grid, a.beta_grid, old_y));
}

// What the gradients of a place are that sees nothing.
template <class T, class A>
__device__ __forceinline__ void put_lost(const sampler_vector_args &a, const spot &at,
                                         const sight<A> &k)
{
    put_slopes<T>(a, at.number(a), k.down * 0, k.right * 0);
}

// Places of a box, as a power of two.
__device__ __forceinline__ int box_log2(const sampler_vector_args &a)
{
    return a.box_row_log2 + a.box_column_log2;
}

// Box `b` of the grid: its first row and column.
__device__ __forceinline__ void box_corner(const sampler_vector_args &a, uint32_t b, spot &at)
{
    at.q = (int)take_rest(b, a.by_box) << a.box_column_log2;
    at.p = (int)b << a.box_row_log2;
}

// A warp a box: where in the image its places look, and the gradients of those that see nothing.
template <class T> __device__ __forceinline__ void sampler_boxes(const sampler_vector_args &a)
{
    uint32_t box = (blockIdx.x * SPATIAL_THREADS + threadIdx.x) / 32;
    const uint32_t number = box;
    spot corner, at;
    reach own;
    wd_wait_for_previous();
    if (box >= a.count) return;
    const uint32_t b = take_rest(box, a.by_boxes);
    at.n = a.first_image + box;
    box_corner(a, b, corner);
    for (int i = (int)threadIdx.x % 32; i < 1 << box_log2(a); i += 32) {
        sight<typename accumulator<T>::type> k;
        at.p = corner.p + (i >> a.box_column_log2);
        at.q = corner.q + (i & ((1 << a.box_column_log2) - 1));
        if (at.p >= a.rows || at.q >= a.columns) continue;
        k.template look<T>(a, at.number(a));
        own.add(k);
        if (!k.seen) put_lost<T>(a, at, k);
    }
    own.of_warp();
    if (threadIdx.x % 32 == 0) {
        static_cast<uint4 *>(a.boxes)[number] =
            make_uint4((uint32_t)own.four[0], (uint32_t)own.four[1], (uint32_t)own.four[2],
                       (uint32_t)own.four[3]);
    }
}

// The sum of what the threads before this one have; `total` of all.
__device__ __forceinline__ uint32_t sum_before(uint32_t *shared, uint32_t own, uint32_t &total)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t upto = own, before = 0;
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, upto, step);
        if (lane >= step) upto += other;
    }
    __syncthreads(); // what was there before has been read
    if (lane == 31) shared[warp] = upto;
    __syncthreads();
    total = 0;
#pragma unroll
    for (uint32_t w = 0; w < SPATIAL_THREADS / 32; ++w) {
        if (w < warp) before += shared[w];
        total += shared[w];
    }
    return before + upto - own;
}

// A block's tile of the image, and its shared memory: see wd_back_bytes.
template <class T, int S> struct back_tile {
    typedef typename accumulator<T>::type A;
    const sampler_vector_args &a;
    uint32_t n; // the image
    uint32_t in_batch;
    int top, left; // of the tile
    int across;    // cells of a row: one more than elements
    int cells;
    bool first; // that of the image
    uint4 *dy, *x;
    A *fraction, *slope; // of a place: down and right; what adds up by x and by y
    uint32_t *place;
    uint32_t *begin, *filled; // of a cell: where its places begin, and how many are there
    uint16_t *cell;           // of a place
    uint16_t *near;           // boxes that come near
    uint32_t *shared;
    uint32_t candidates; // places to look at

    __device__ __forceinline__ back_tile(const sampler_vector_args &args, uint32_t *scratch)
        : a(args), shared(scratch)
    {
        uint32_t b = blockIdx.x;
        const int room = a.room;
        left = (int)take_rest(b, a.by_column) << a.lanes_log2;
        top = (int)take_rest(b, a.by_row) * (SPATIAL_THREADS >> a.lanes_log2);
        first = top == 0 && left == 0;
        in_batch = b;
        n = a.first_image + b;
        across = (1 << a.lanes_log2) + 1;
        cells = across * ((SPATIAL_THREADS >> a.lanes_log2) + 1);
        dy = wd_dynamic_shared<uint4>();
        x = dy + S * room;
        fraction = reinterpret_cast<A *>(x + S * cells);
        slope = fraction + 2 * room;
        place = reinterpret_cast<uint32_t *>(slope + 2 * room);
        begin = place + room;
        filled = begin + cells + 1;
        cell = reinterpret_cast<uint16_t *>(filled + cells);
        near = cell + room;
    }

    // The cell of the tile that a place looks into, or -1.
    __device__ __forceinline__ int cell_of(const sight<A> &k) const
    {
        const int r = k.row - top + 1, c = k.column - left + 1;
        const bool in = k.seen && (uint32_t)r <= (uint32_t)(SPATIAL_THREADS >> a.lanes_log2) &&
                        (uint32_t)c < (uint32_t)across;
        return in ? r * across + c : -1;
    }

    // The boxes whose places may look into the tile, in order.
    __device__ __forceinline__ void find_boxes()
    {
        const uint32_t boxes = a.by_boxes.divisor;
        const uint32_t each = (boxes + SPATIAL_THREADS - 1) / SPATIAL_THREADS;
        const uint32_t from = threadIdx.x * each, to = min(from + each, boxes);
        const int bottom = top + (SPATIAL_THREADS >> a.lanes_log2), right = left + across - 1;
        uint32_t hits = 0, total = boxes;
        uint32_t mask = 0;
        if (a.boxes) {
#pragma unroll 2
            for (uint32_t i = from; i < to; ++i) {
                const uint4 box =
                    __ldcg(static_cast<const uint4 *>(a.boxes) + in_batch * boxes + i);
                const bool hit = (int)box.y >= top - 1 && -(int)box.x < bottom &&
                                 (int)box.w >= left - 1 && -(int)box.z < right &&
                                 (int)box.x != INT32_MIN;
                mask |= (uint32_t)hit << (i - from);
                hits += hit;
            }
            uint32_t at = sum_before(shared, hits, total);
#pragma unroll 1
            for (uint32_t i = from; i < to; ++i) {
                if (mask >> (i - from) & 1) near[at++] = (uint16_t)i;
            }
        }
        candidates = total << box_log2(a);
    }

    // Places from candidate `next` on, as many as there is room for; `next` moves on. Returns their
    // number. LOST: those that see nothing are seen to, by the image's first tile.
    __device__ __forceinline__ uint32_t collect(uint32_t &next, bool lost)
    {
        uint2 *found = reinterpret_cast<uint2 *>(dy); // places and cells, as they come
        uint32_t *cursor = shared + SPATIAL_THREADS / 32;
        uint32_t most = 0;
        __syncthreads();
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < cells; i += SPATIAL_THREADS) filled[i] = 0;
        if (threadIdx.x == 0) *cursor = 0;
        __syncthreads();
#pragma unroll 1
        while (next < candidates) {
            if (most + SPATIAL_THREADS > (uint32_t)a.room) {
                __syncthreads();
                most = *cursor;
                __syncthreads();
                if (most + SPATIAL_THREADS > (uint32_t)a.room) break;
            }
            const uint32_t candidate = next + threadIdx.x;
            const uint32_t number = candidate >> box_log2(a);
            spot at;
            next += SPATIAL_THREADS;
            most += SPATIAL_THREADS;
            if (candidate >= candidates) continue;
            box_corner(a, a.boxes ? near[number] : number, at);
            at.n = n;
            at.p += (int)(candidate >> a.box_column_log2 & ((1u << a.box_row_log2) - 1));
            at.q += (int)(candidate & ((1u << a.box_column_log2) - 1));
            if (at.p >= a.rows || at.q >= a.columns) continue;
            sight<A> k;
            k.template look<T>(a, at.number(a));
            const int own = cell_of(k);
            if (own >= 0) {
                found[atomicAdd(cursor, 1u)] =
                    make_uint2((uint32_t)(at.p * a.columns + at.q), (uint32_t)own);
                atomicAdd(filled + own, 1u);
            } else if (lost && !k.seen) {
                put_lost<T>(a, at, k);
            }
        }
        __syncthreads();
        const uint32_t count = *cursor;
        sort(found, count);
        return count;
    }

    __device__ __forceinline__ void sort(const uint2 *found, uint32_t count)
    {
        uint32_t *listed = reinterpret_cast<uint32_t *>(slope); // places by cell, in no order
        const int each = (cells + SPATIAL_THREADS - 1) / SPATIAL_THREADS;
        const int from = (int)threadIdx.x * each, to = min(from + each, cells);
        uint32_t own = 0, total;
#pragma unroll 1
        for (int i = from; i < to; ++i) own += filled[i];
        uint32_t at = sum_before(shared, own, total);
#pragma unroll 1
        for (int i = from; i < to; ++i) {
            begin[i] = at;
            at += filled[i];
            filled[i] = 0;
        }
        if (threadIdx.x == 0) begin[cells] = total;
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
            const uint2 one = found[i];
            listed[begin[one.y] + atomicAdd(filled + one.y, 1u)] = one.x;
        }
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
            const uint2 one = found[i];
            const uint32_t end = begin[one.y + 1];
            uint32_t rank = begin[one.y];
            sight<A> k;
#pragma unroll 1
            for (uint32_t j = begin[one.y]; j < end; ++j) rank += listed[j] < one.x;
            place[rank] = one.x;
            cell[rank] = (uint16_t)one.y;
            k.template look<T>(a, (int64_t)n * a.rows * a.columns + one.x);
            fraction[2 * rank] = k.down;
            fraction[2 * rank + 1] = k.right;
        }
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < 2 * count; i += SPATIAL_THREADS) slope[i] = 0;
    }

    // S runs of channels of the places' gradients, from channel c on.
    __device__ __forceinline__ void stage_places(uint32_t count, int c)
    {
        const int run = (int)threadIdx.x % S, own = c + run * pack_of<T>;
        const T *from = static_cast<const T *>(a.y.data) + n * a.y.image + own * a.y.channel;
#pragma unroll 1
        for (uint32_t i = threadIdx.x / S; i < count; i += SPATIAL_THREADS / S) {
            uint32_t p = place[i];
            pack<T> one;
            const int q = (int)take_rest(p, a.by_line);
            load_pack(a.y, from + (int64_t)p * a.y.row + (int64_t)q * a.y.column, own < a.channels,
                      a.channels - own, one);
            store_shared<T>(dy + run * a.room + i, one);
        }
    }

    // Adds up what the thread's own element gets.
    __device__ __forceinline__ void collect_element(A (*sums)[pack_of<T>])
    {
        const int w = (int)threadIdx.x & ((1 << a.lanes_log2) - 1);
        const int h = (int)threadIdx.x >> a.lanes_log2;
#pragma unroll 1
        for (int r = 0; r < 2; ++r) {
            const int c = (h + r) * across + w;
            const uint32_t middle = begin[c + 1], end = begin[c + 2];
#pragma unroll 1
            for (uint32_t i = begin[c]; i < end; ++i) {
                const A down = fraction[2 * i], right = fraction[2 * i + 1];
                const A share = (r ? 1 - down : down) * (i < middle ? right : 1 - right);
#pragma unroll
                for (int s = 0; s < S; ++s) {
                    const pack<T> one = load_shared<T>(dy + s * a.room + i);
#pragma unroll
                    for (int v = 0; v < pack_of<T>; ++v) {
                        sums[s][v] += share * wd_widen(one.get(v));
                    }
                }
            }
        }
    }

    // Whether place i's cell is the tile's own: it is of one tile's only.
    __device__ __forceinline__ bool owns(uint32_t i, int &r, int &c) const
    {
        r = cell[i] / across;
        c = cell[i] - r * across;
        return (r > 0 || top == 0) && (c > 0 || left == 0);
    }

    __device__ __forceinline__ void add_slopes(uint32_t count)
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
            int r, c;
            A by_x = 0, by_y = 0;
            if (!owns(i, r, c)) continue;
            const A down = fraction[2 * i], right = fraction[2 * i + 1];
            const A up = 1 - down, left_of = 1 - right;
            const int corner = (r - 1) * across + c - 1;
            pack<T> zero;
#pragma unroll
            for (int w = 0; w < pack<T>::WORDS; ++w) zero.word[w] = 0;
#pragma unroll
            for (int s = 0; s < S; ++s) {
                const uint4 *from = x + s * cells + corner;
                const pack<T> g = load_shared<T>(dy + s * a.room + i);
                const pack<T> x00 = r > 0 && c > 0 ? load_shared<T>(from) : zero;
                const pack<T> x01 = r > 0 ? load_shared<T>(from + 1) : zero;
                const pack<T> x10 = c > 0 ? load_shared<T>(from + across) : zero;
                const pack<T> x11 = load_shared<T>(from + across + 1);
#pragma unroll
                for (int v = 0; v < pack_of<T>; ++v) {
                    const A f00 = wd_widen(x00.get(v)), f01 = wd_widen(x01.get(v)),
                            f10 = wd_widen(x10.get(v)), f11 = wd_widen(x11.get(v));
                    const A share = wd_widen(g.get(v));
                    by_x += share * (up * (f01 - f00) + down * (f11 - f10));
                    by_y += share * (left_of * (f10 - f00) + right * (f11 - f01));
                }
            }
            slope[2 * i] += by_x;
            slope[2 * i + 1] += by_y;
        }
    }

    __device__ __forceinline__ void put_all_slopes(uint32_t count)
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
            int r, c;
            if (!owns(i, r, c)) continue;
            put_slopes<T>(a, (int64_t)n * a.rows * a.columns + place[i], slope[2 * i],
                          slope[2 * i + 1]);
        }
    }

    __device__ __forceinline__ void put_element(int c, const A (*sums)[pack_of<T>])
    {
        const int w = left + ((int)threadIdx.x & ((1 << a.lanes_log2) - 1));
        const int h = top + ((int)threadIdx.x >> a.lanes_log2);
        T *to = static_cast<T *>(a.dx.data) + n * a.dx.image + (int64_t)h * a.dx.row +
                (int64_t)w * a.dx.column + c * a.dx.channel;
        if (h >= a.height || w >= a.width) return;
#pragma unroll
        for (int s = 0; s < S; ++s) {
            const int own = s * pack_of<T>;
            if (c + own >= a.channels) break;
            put_pack<T>(a, a.dx, to + own * a.dx.channel, a.channels - c - own, sums[s]);
        }
    }
};

template <class T, int S> __device__ __forceinline__ void back_tiles(const sampler_vector_args &a)
{
    typedef typename accumulator<T>::type A;
    constexpr int STEP = S * pack_of<T>;
    __shared__ uint32_t scratch[SPATIAL_THREADS / 32 + 1];
    back_tile<T, S> tile(a, scratch);
    const rectangle r = {tile.top, tile.left, (SPATIAL_THREADS >> a.lanes_log2) + 1, tile.across};
    uint32_t next = 0;
    wd_wait_for_previous();
    tile.find_boxes();
    uint32_t count = tile.collect(next, tile.first && !a.boxes);
    const bool whole = next >= tile.candidates;
#pragma unroll 1
    for (int c = 0; c < a.channels; c += STEP) {
        A sums[S][pack_of<T>];
#pragma unroll
        for (int s = 0; s < S; ++s) {
#pragma unroll
            for (int v = 0; v < pack_of<T>; ++v) sums[s][v] = 0;
        }
        if (!whole && c > 0) {
            next = 0;
            count = tile.collect(next, false);
        }
#pragma unroll 1
        for (;;) {
            __syncthreads();
            tile.stage_places(count, c);
            if (whole) stage_image<T, S>(a, tile.n, c, r, tile.cells, tile.x);
            __syncthreads();
            tile.collect_element(sums);
            if (whole) tile.add_slopes(count);
            if (next >= tile.candidates) break;
            count = tile.collect(next, c == 0 && tile.first && !a.boxes);
        }
        tile.put_element(c, sums);
    }
    if (whole) {
        tile.put_all_slopes(count);
        return;
    }
#pragma unroll 1
    for (next = 0; next < tile.candidates;) {
        count = tile.collect(next, false);
#pragma unroll 1
        for (int c = 0; c < a.channels; c += STEP) {
            __syncthreads();
            tile.stage_places(count, c);
            stage_image<T, S>(a, tile.n, c, r, tile.cells, tile.x);
            __syncthreads();
            tile.add_slopes(count);
        }
        tile.put_all_slopes(count);
    }
}

} // namespace

#endif
