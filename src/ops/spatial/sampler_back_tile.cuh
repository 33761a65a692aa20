// SPDX-License-Identifier: Apache-2.0
//
// A tile of the image whose gradients a block collects: which places of the grid touch it, found by
// boxes and sorted by cell, then by place, in shared memory; and what elements and places take from
// each other there. sampler_back.cuh says how that is used.
#ifndef WD_OPS_SPATIAL_SAMPLER_BACK_TILE_CUH
#define WD_OPS_SPATIAL_SAMPLER_BACK_TILE_CUH

#include <type_traits>

#include "ops/spatial/sampler_cells.cuh"
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

// Place `number` of box `b`, if the grid has it.
__device__ __forceinline__ bool box_place(const sampler_vector_args &a, uint32_t b, uint32_t number,
                                          spot &at)
{
    box_corner(a, b, at);
    at.p += (int)(number >> a.box_column_log2 & ((1u << a.box_row_log2) - 1));
    at.q += (int)(number & ((1u << a.box_column_log2) - 1));
    return at.p < a.rows && at.q < a.columns;
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
    if (a.marks && b == 0 && threadIdx.x % 32 == 0) a.marks[box] = 0;
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

// A block's tile of the image, and its shared memory: see wd_back_bytes. LINE: its lanes_log2, if it is known; then
// channels are no runs.
template <class T, int LINE = 0> struct back_tile {
    typedef typename accumulator<T>::type A;
    typedef typename std::conditional<LINE == 0, T, A>::type S; // in shared memory
    static constexpr int P = pack_of<S>;
    const sampler_vector_args &a;
    uint32_t n; // the image
    uint32_t in_batch;
    int top, left;   // of the tile
    int across;      // cells of a row: one more than elements
    rectangle frame; // the tile and what is around it
    int cells;
    bool first; // that of the image
    uint4 *dy, *x;
    A *fraction, *slope; // of a place: down and right; and its steps
    uint32_t *place;
    uint32_t *begin, *filled; // of a cell: where its places begin, and how many are there
    uint16_t *cell;           // of a place
    uint16_t *near;           // boxes that come near
    uint32_t *shared;
    uint32_t candidates; // places to look at

    __device__ __forceinline__ back_tile(const sampler_vector_args &args, uint32_t *scratch,
                                         uint32_t block = blockIdx.x)
        : a(args), shared(scratch)
    {
        uint32_t b = block;
        const int room = a.room;
        left = (int)take_rest(b, a.by_column) << lanes_log2();
        top = (int)take_rest(b, a.by_row) * (SPATIAL_THREADS >> lanes_log2());
        first = top == 0 && left == 0;
        in_batch = b;
        n = a.first_image + b;
        across = (1 << lanes_log2()) + 1;
        cells = across * ((SPATIAL_THREADS >> lanes_log2()) + 1);
        frame = {top - 1, left - 1, (SPATIAL_THREADS >> lanes_log2()) + 2, across + 1};
        dy = wd_dynamic_shared<uint4>();
        x = dy + room;
        fraction = reinterpret_cast<A *>(x + frame.height * frame.width);
        slope = fraction + 2 * room;
        place = reinterpret_cast<uint32_t *>(slope + 4 * room);
        begin = place + room;
        filled = begin + cells + 1;
        cell = reinterpret_cast<uint16_t *>(filled + cells);
        near = cell + room;
    }

    __device__ __forceinline__ int lanes_log2() const
    {
        return LINE ? LINE : a.lanes_log2;
    }

    // The cell of the tile that a place looks into, or -1.
    __device__ __forceinline__ int cell_of(const sight<A> &k) const
    {
        const int r = k.row - top + 1, c = k.column - left + 1;
        const bool in = k.seen && (uint32_t)r <= (uint32_t)(SPATIAL_THREADS >> lanes_log2()) &&
                        (uint32_t)c < (uint32_t)across;
        return in ? r * across + c : -1;
    }

    // The boxes whose places may look into the tile, in order.
    __device__ __forceinline__ void find_boxes()
    {
        const uint32_t boxes = a.by_boxes.divisor;
        const uint32_t each = (boxes + SPATIAL_THREADS - 1) / SPATIAL_THREADS;
        const uint32_t from = threadIdx.x * each, to = min(from + each, boxes);
        const int bottom = top + (SPATIAL_THREADS >> lanes_log2()), right = left + across - 1;
        uint32_t hits = 0, total = boxes;
        uint32_t mask = 0;
        if (a.boxes) {
#pragma unroll 4
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

    // The place that candidate `number` is, if it is one.
    __device__ __forceinline__ bool candidate(uint32_t number, spot &at) const
    {
        const uint32_t box = number >> box_log2(a);
        if (number >= candidates) return false;
        at.n = n;
        return box_place(a, a.boxes ? near[box] : box, number, at);
    }

    // Keeps those of U candidates of each thread, from `next` on, that look into the tile.
    template <int U>
    __device__ __forceinline__ void keep(uint32_t next, uint32_t *cursor, bool lost)
    {
        sight<A> k[U];
        spot at[U];
        bool in[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            in[u] = candidate(next + u * SPATIAL_THREADS + threadIdx.x, at[u]);
            if (in[u]) k[u].template look<T>(a, n, at[u].p * a.columns + at[u].q);
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int own = in[u] ? cell_of(k[u]) : -1;
            if (own >= 0) {
                dy[atomicAdd(cursor, 1u)] = make_uint4(
                    (uint32_t)(at[u].p * a.columns + at[u].q), (uint32_t)own,
                    __float_as_uint((float)k[u].down), __float_as_uint((float)k[u].right));
                atomicAdd(filled + own, 1u);
            } else if (in[u] && lost && !k[u].seen) {
                put_lost<T>(a, at[u], k[u]);
            }
        }
    }

    // Places from candidate `next` on, as many as there is room for; `next` moves on. Returns their
    // number. `lost`: those that see nothing are seen to. U: candidates of a thread that are asked for together.
    template <int U = 4> __device__ __forceinline__ uint32_t collect(uint32_t &next, bool lost)
    {
        constexpr uint32_t STEP = SPATIAL_THREADS;
        uint32_t *cursor = shared + SPATIAL_THREADS / 32;
        uint32_t most = 0;
        __syncthreads();
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < cells; i += SPATIAL_THREADS) filled[i] = 0;
        if (threadIdx.x == 0) *cursor = 0;
        __syncthreads();
#pragma unroll 1
        while (next < candidates) {
            if (most + STEP > (uint32_t)a.room) {
                __syncthreads();
                most = *cursor;
                __syncthreads();
                if (most + STEP > (uint32_t)a.room) break;
            }
            if (most + U * STEP <= (uint32_t)a.room) {
                keep<U>(next, cursor, lost);
                next += U * STEP;
                most += U * STEP;
            } else {
                keep<1>(next, cursor, lost);
                next += STEP;
                most += STEP;
            }
        }
        __syncthreads();
        const uint32_t count = *cursor;
        sort(count);
        return count;
    }

    // Puts the places that were kept in the order of cells, then of places.
    __device__ __forceinline__ void sort(uint32_t count)
    {
        uint32_t *listed = reinterpret_cast<uint32_t *>(slope); // places by cell, in no order
        const int each = (cells + SPATIAL_THREADS - 1) / SPATIAL_THREADS;
        const int from = (int)threadIdx.x * each, to = min(from + each, cells);
        uint32_t total;
        const uint32_t own = places_of_cells(filled, from, to);
        const uint32_t at = sum_before(shared, own, total);
        begin_cells(begin, filled, from, to, at);
        if (threadIdx.x == 0) begin[cells] = total;
        __syncthreads();
        list_by_cell<SPATIAL_THREADS>(dy, count, begin, filled, listed);
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
            const uint4 one = dy[i];
            const uint32_t rank = rank_of(one, begin, listed);
            place[rank] = one.x;
            cell[rank] = (uint16_t)one.y;
            if constexpr (sizeof(A) == 4) {
                fraction[2 * rank] = __uint_as_float(one.z);
                fraction[2 * rank + 1] = __uint_as_float(one.w);
            } else {
                sight<A> k;
                k.template look<T>(a, (int64_t)n * a.rows * a.columns + one.x);
                fraction[2 * rank] = k.down;
                fraction[2 * rank + 1] = k.right;
            }
        }
        __syncthreads();
    }

    // Where in a plane of dy a place's gradient is.
    __device__ __forceinline__ int offset_of(uint32_t i) const
    {
        uint32_t p = place[i];
        const int q = (int)take_rest(p, a.by_line);
        return (int)p * a.y.row + q * a.y.column;
    }

    // Channel c of an image.
    __device__ __forceinline__ const T *channel_of(const sampler_image &image, int c) const
    {
        return static_cast<const T *>(image.data) + n * image.image + c * image.channel;
    }

    // A run of channels of the gradients of `count` places, and of the tile.
    __device__ __forceinline__ void stage(uint32_t count, int c) const
    {
        const T *from = channel_of(a.y, c);
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) {
            pack<S> one;
            load_pack<LINE == 0>(a.y, from + offset_of(i), true, a.channels - c, one);
            store_shared<S>(dy + i, one);
        }
        stager<T, 2, LINE == 0, S> image;
        image.find(a.x, a.height, a.width, frame);
        image.load(a.x, channel_of(a.x, c), a.channels - c);
        image.store(x);
    }

    // How much of place i goes to the element whose cells to the upper left and right end at `middle`
    // and later; r: whether the cell is below of the element's upper edge.
    __device__ __forceinline__ A share_of(uint32_t i, int r, uint32_t middle) const
    {
        const A down = fraction[2 * i], right = fraction[2 * i + 1];
        return (r ? 1 - down : down) * (i < middle ? right : 1 - right);
    }

    // The upper left one of the cells around the thread's element.
    __device__ __forceinline__ int own_cell() const
    {
        const int w = (int)threadIdx.x & ((1 << lanes_log2()) - 1);
        return ((int)threadIdx.x >> lanes_log2()) * across + w;
    }

    // Adds up what the thread's own element gets.
    __device__ __forceinline__ void collect_element(A *sums) const
    {
#pragma unroll 1
        for (int r = 0; r < 2; ++r) {
            const int c = own_cell() + r * across;
            const uint32_t middle = begin[c + 1], end = begin[c + 2];
#pragma unroll 1
            for (uint32_t i = begin[c]; i < end; ++i) add(sums, share_of(i, r, middle), i);
        }
    }
    __device__ __forceinline__ void add(A *sums, A share, uint32_t i) const
    {
        const pack<S> one = load_shared<S>(dy + i);
#pragma unroll
        for (int v = 0; v < P; ++v) sums[v] += share * wd_widen(one.get(v));
    }

    // Whether place i's cell is the tile's own: it is of one tile's only. `corner`: in the frame.
    __device__ __forceinline__ bool owns(uint32_t i, int &corner) const
    {
        const int r = cell[i] / across, c = cell[i] - r * across;
        corner = cell[i] + r;
        return (r > 0 || top == 0) && (c > 0 || left == 0);
    }

    // dy times the steps of the image within a cell: above and below, on the left and on the right.
    __device__ __forceinline__ void add_steps(uint32_t i, int corner, A *steps) const
    {
        const uint4 *from = x + corner;
        const pack<S> g = load_shared<S>(dy + i);
        const pack<S> x00 = load_shared<S>(from), x01 = load_shared<S>(from + 1),
                      x10 = load_shared<S>(from + across + 1),
                      x11 = load_shared<S>(from + across + 2);
#pragma unroll
        for (int v = 0; v < P; ++v) {
            const A f00 = wd_widen(x00.get(v)), f01 = wd_widen(x01.get(v)),
                    f10 = wd_widen(x10.get(v)), f11 = wd_widen(x11.get(v));
            const A share = wd_widen(g.get(v));
            steps[0] += share * (f01 - f00);
            steps[1] += share * (f11 - f10);
            steps[2] += share * (f10 - f00);
            steps[3] += share * (f11 - f01);
        }
    }

    __device__ __forceinline__ void put_steps(uint32_t i, const A *steps) const
    {
        const A down = fraction[2 * i], right = fraction[2 * i + 1];
        put_slopes<T>(a, (int64_t)n * a.rows * a.columns + place[i],
                      (1 - down) * steps[0] + down * steps[1],
                      (1 - right) * steps[2] + right * steps[3]);
    }

    // The thread's element of dx.
    __device__ __forceinline__ bool own_element(T *&to, int c) const
    {
        const int w = left + ((int)threadIdx.x & ((1 << lanes_log2()) - 1));
        const int h = top + ((int)threadIdx.x >> lanes_log2());
        to = static_cast<T *>(a.dx.data) + n * a.dx.image + (int64_t)h * a.dx.row +
             (int64_t)w * a.dx.column + c * a.dx.channel;
        return h < a.height && w < a.width;
    }
};

} // namespace

#endif
