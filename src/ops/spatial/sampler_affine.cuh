// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients where the grid is an affine map of the image, or nearly so, as a spatial
// transformer's is. A first kernel fits a map to the corners of every image's grid, and finds from some places how far
// others may be from where the map has them. Turned around, the map says which rows and columns of places look at a tile of the
// image, so that nothing is listed or sorted, and how far apart they are. A block brings its tile to shared memory; a warp
// takes 32 places of a row at a time, multiplies each with the four pixels of its cell, for the place's gradients, and
// adds it to the four elements there: their cells differ, but for neighbours' which are added up before, and other
// warps' rows are too far away to have elements in common. So all sums have one order. An image where a place is not where it
// may be is marked, for other kernels to take: tiles look at what they read, and shares at what may see nothing.
#ifndef WD_OPS_SPATIAL_SAMPLER_AFFINE_CUH
#define WD_OPS_SPATIAL_SAMPLER_AFFINE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/math.cuh"
#include "gpu/device/opaque.cuh"
#include "gpu/device/prefetch.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "gpu/device/whole.cuh"
#include "ops/spatial/sampler_map.cuh"
#include "ops/spatial/sampler_planes.cuh"

namespace {

// ---- A tile ----

struct affine_tile {
    static constexpr int U = AFFINE_CHANNELS; // at most, all of them in shared memory
    static constexpr int WIDTH = AFFINE_WIDTH, HEIGHT = AFFINE_HEIGHT, PITCH = AFFINE_PITCH,
                         ROWS = AFFINE_HEIGHT + 2, ROOM = PITCH * ROWS, PAD = 4,
                         WARPS = SPATIAL_THREADS / 32;
    // Threads of a row of the tile, four elements each, and rows of a turn.
    static constexpr int SIDE = PITCH / 4, TURN = SPATIAL_THREADS / SIDE;
    const sampler_vector_args &a;
    uint32_t n, in_batch;
    int top, left, right_end, bottom_end;
    const float *places; // of the image's grid
    const float *dy;     // likewise
    float *dgrid;
    float2 by; // what the gradients of the grid are times
    float *x;  // the tile and a frame around it, plane by plane, then sums of the same elements
    // Where places look that add to the tile, and that are the tile's own; the cell before the image is the first tile's.
    float2 near_from, near_to, own_from;
    int origin; // of x, in elements
    // Rows of places that may look at the tile, and of each `length` places, the first `start` and
    // `slope` times the row.
    int first_row, rows, length, apart;
    float start, slope, end_row;
    // From what a place looks at to rows and columns of the grid, and how far off it may be: as the map says.
    float px, py, p0, off_p, qx, qy, q0, off_q;
    uint32_t previous; // thread of the warp, its bit

    static __device__ __forceinline__ float2 bounds(float s, float t)
    {
        return make_float2(__uint_as_float(wd_opaque(__float_as_uint(s))),
                           __uint_as_float(wd_opaque(__float_as_uint(t))));
    }
    __device__ __forceinline__ affine_tile(const sampler_affine_args &args) : a(args.all)
    {
        const float before = -0.99999994f;
        uint32_t b = blockIdx.x;
        left = (int)take_rest(b, a.by_column) * WIDTH;
        top = (int)take_rest(b, a.by_row) * HEIGHT;
        right_end = min(left + WIDTH, a.width);
        bottom_end = min(top + HEIGHT, a.height);
        in_batch = b;
        n = a.first_image + b;
        places = wd_opaque_global(grid_of(a, n));
        dgrid =
            wd_opaque_global(static_cast<float *>(a.dgrid) + 2 * ((int64_t)n * a.rows * a.columns));
        by = make_float2(args.by_x, args.by_y);
        dy = wd_opaque_global(static_cast<const float *>(a.y.data) + n * a.y.image);
        // A copy whose sectors lie otherwise in shared memory than in the image asks for each half of them.
        const uint32_t first = (uint32_t)n * (uint32_t)a.x.image +
                               (uint32_t)(top - 1) * (uint32_t)a.x.row + (uint32_t)(left - PAD);
        const uint32_t begins = (uint32_t)(size_t)a.x.data + 4 * first;
        x = wd_opaque_shared(wd_dynamic_shared<float>() + begins % WD_LINE / 16 * 4);
        previous = wd_opaque((1u << threadIdx.x % 32) >> 1);
        near_from =
            bounds(left > 0 ? (float)(left - 1) : before, top > 0 ? (float)(top - 1) : before);
        own_from = bounds(left > 0 ? (float)left : before, top > 0 ? (float)top : before);
        near_to = bounds((float)right_end, (float)bottom_end);
        origin = (1 - top) * PITCH + PAD - left;
    }

    // Where the tile's places are.
    __device__ __forceinline__ void find_places(const sampler_map &m)
    {
        const float x1 = (float)(left - 1), x2 = (float)right_end;
        const float y1 = (float)(top - 1), y2 = (float)bottom_end;
        const float low = m.px * (m.px < 0 ? x2 : x1) + m.py * (m.py < 0 ? y2 : y1) + m.p0,
                    high = m.px * (m.px < 0 ? x1 : x2) + m.py * (m.py < 0 ? y1 : y2) + m.p0;
        first_row = max((int)floorf(low - m.off_p), 0);
        const int end = max(min((int)floorf(high + m.off_p), a.rows - 1) + 1, first_row);
        end_row = (float)end;
        rows = end - first_row;
        const float from_s = m.along ? x1 : y1, to_s = m.along ? x2 : y2;
        slope = m.slope;
        start = ((m.per_step > 0 ? from_s : to_s) - m.first) * m.per_step - m.margin;
        // Of a warp that goes on with the next row the places there are at least two further back.
        length = max((int)((to_s - from_s) * fabsf(m.per_step) + 2 * m.margin) + 1, 32 + 2);
        apart = m.apart;
        px = m.px;
        py = m.py;
        p0 = m.p0;
        off_p = m.off_p - AFFINE_LESS;
        qx = m.qx;
        qy = m.qy;
        q0 = m.q0;
        off_q = m.off_q - AFFINE_LESS;
    }

    // Lines of the grid and of dy at the tile's places are asked for, up to the second-level cache: of a row four threads a
    // channel, a line each, and four for the grid.
    __device__ __forceinline__ void ask_ahead() const
    {
        constexpr int LINES = 4, EACH = (U + 1) * LINES, PLACES = WD_LINE / 4;
        const int channel = (int)threadIdx.x % EACH / LINES, line = (int)threadIdx.x % LINES;
        const bool of_grid = channel == U;
        if (channel >= a.channels && !of_grid) return;
        const float *const from = of_grid ? places : dy + channel * a.y.channel;
        const int row = of_grid ? 2 * a.columns : a.y.row;
#pragma unroll 1
        for (int p = first_row + (int)threadIdx.x / EACH; p < first_row + rows;
             p += SPATIAL_THREADS / EACH) {
            const int first = (int)ceilf(start + slope * (float)p);
            const int q = max(first, 0) + line * (of_grid ? PLACES / 2 : PLACES);
            if (q < min(first + length, a.columns)) {
                wd_prefetch_line(from + (p * row + (of_grid ? 2 * q : q)));
            }
        }
    }
    // Sums lie in shared memory behind x: those of two channels side by side, then the third.
    __device__ __forceinline__ float2 *sums_of_two() const
    {
        return reinterpret_cast<float2 *>(x + U * ROOM);
    }
    __device__ __forceinline__ float *sums_of_third() const
    {
        return x + (U + 2) * ROOM;
    }
    // No sums yet. Where the image is brought in parts, also zeros for what is not.
    template <bool PLAIN> __device__ __forceinline__ void clear() const
    {
        constexpr int ALL = U * ROOM / 4;
        uint4 *const image = reinterpret_cast<uint4 *>(x) + threadIdx.x, *const sums = image + ALL;
        const uint4 zero = make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < ALL; i += SPATIAL_THREADS) {
            const bool is = i + SPATIAL_THREADS <= ALL || i + (int)threadIdx.x < ALL;
            if (is) sums[i] = zero;
            if (is && !PLAIN) image[i] = zero;
        }
        if constexpr (!PLAIN) __syncthreads();
    }
    // Four elements of all channels: zeros where there is no image.
    static __device__ __forceinline__ void bring_four(float *put, const float *from,
                                                      int64_t channel, bool is)
    {
#pragma unroll
        for (int u = 0; u < U; ++u, from += channel) {
            if (is) wd_copy_async<16, false>(put + u * ROOM, from);
            else *reinterpret_cast<uint4 *>(put + u * ROOM) = make_uint4(0, 0, 0, 0);
        }
    }
    // The tile of the image, on its way.
    template <bool PLAIN> __device__ __forceinline__ void bring() const
    {
        const int c = left - PAD + (int)threadIdx.x % SIDE * 4, i = (int)threadIdx.x / SIDE;
        const float *from = static_cast<const float *>(a.x.data) + n * a.x.image +
                            ((int64_t)(top - 1 + i) * a.x.row + c);
        float *put = x + (i * PITCH + c + PAD - left);
        if constexpr (PLAIN) {
            static_assert(ROWS > TURN && ROWS <= 2 * TURN, "two rows a thread");
            const bool across = (uint32_t)c < (uint32_t)a.width;
            const uint32_t row = (uint32_t)(top - 1 + i), height = (uint32_t)a.height;
            bring_four(put, from, a.x.channel, across & (row < height));
            if (i >= ROWS - TURN) return;
            bring_four(put + TURN * PITCH, from + TURN * (int64_t)a.x.row, a.x.channel,
                       across & (row + TURN < height));
            return;
        }
        if (c + 3 < 0 || c >= a.width) return;
#pragma unroll 1
        for (int r = i; r < ROWS; r += TURN, from += TURN * (int64_t)a.x.row, put += TURN * PITCH) {
            if ((uint32_t)(top - 1 + r) >= (uint32_t)a.height) continue;
            const float *one = from;
#pragma unroll 1
            for (int u = 0; u < a.channels; ++u, one += a.x.channel) {
#pragma unroll 1
                for (int e = 0; e < 4; ++e) {
                    if ((uint32_t)(c + e) >= (uint32_t)a.width) continue;
                    wd_copy_async<4, true>(put + u * ROOM + e, one + e);
                }
            }
        }
    }

    // What the grid says of a place, and dy there; far away where there is none.
    struct one_place {
        float2 g;
        float dy[U];
    };
    // 32 places that follow one another at a time: which one of which row is the thread's. Its column of the grid, and its
    // number.
    static constexpr int NO_COLUMN = -1;
    struct walk {
        float row;
        int along, before; // what is before the row
        int column, number;
    };
    __device__ __forceinline__ walk walk_from(int unit, float per_length) const
    {
        const int i = unit * 32 + (int)threadIdx.x % 32,
                  row = (int)(((float)i + 0.5f) * per_length), p = first_row + row;
        return {(float)p, i - row * length, p * a.columns, NO_COLUMN, 0};
    }
    // `some`: else there is none.
    template <bool PLAIN>
    __device__ __forceinline__ void read(one_place &k, walk &at, bool some) const
    {
        if (at.along >= length) {
            at.before += a.columns;
            at.row += 1;
        }
        at.along = (int)min((uint32_t)at.along,
                            (uint32_t)(at.along - length)); // less, unless it is negative
        const int q = wd_round_up(start + slope * at.row).number + at.along;
        const bool is = some & (at.row < end_row) & ((uint32_t)q < (uint32_t)a.columns);
        at.column = is ? q : NO_COLUMN;
        at.number = at.before + q;
        k.g.x = -1e5f;
        if (!is) return;
        if constexpr (PLAIN) {
            k.g = *reinterpret_cast<const float2 *>(places + 2 * (int64_t)at.number);
        } else {
            k.g = numbers_of(a, places, at.number);
        }
        const float *from = dy + at.number;
        if constexpr (!PLAIN) from = dy + ((int)at.row * a.y.row + q);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if constexpr (PLAIN) k.dy[u] = from[u * (int)a.y.channel];
            else if (u < a.channels) k.dy[u] = from[u * a.y.channel];
        }
    }
    // Whether a place is not where the map has it, if it is one.
    __device__ __forceinline__ void look(const walk &at, float2 s, int &off) const
    {
        const float by_p = px * s.x + (py * s.y + (p0 - at.row)),
                    by_q = qx * s.x + (qy * s.y + (q0 - (float)at.column));
        const bool near = (fabsf(by_p) <= off_p) & (fabsf(by_q) <= off_q);
        if (!near & (at.column != NO_COLUMN)) off = 1;
    }

    // What the gradients of a place add up of a channel, of the image around it and of dy there.
    static __device__ __forceinline__ void add_steps(const float *f, float g, float *steps)
    {
        const float f0 = f[0], f1 = f[1], f2 = f[PITCH], f3 = f[PITCH + 1];
        steps[0] += g * (f1 - f0);
        steps[1] += g * (f3 - f2);
        steps[2] += g * (f2 - f0);
        steps[3] += g * (f3 - f1);
    }
    // The gradients of a place whose cell is at `f`.
    template <bool PLAIN>
    __device__ __forceinline__ void put_own(const one_place &k, int number, const float *f,
                                            float down, float right) const
    {
        float steps[4] = {0, 0, 0, 0}; // first: what neighbours have in common leaves no error
#pragma unroll
        for (int u = 0; u < U; ++u) add_steps(f + u * ROOM, k.dy[u], steps);
        const float by_x = (1 - down) * steps[0] + down * steps[1];
        const float by_y = (1 - right) * steps[2] + right * steps[3];
        if constexpr (PLAIN) {
            reinterpret_cast<float2 *>(dgrid)[number] = make_float2(by_x * by.x, by_y * by.y);
        } else {
            put_slopes<float>(a, (int64_t)n * a.rows * a.columns + number, by_x, by_y);
        }
    }
    static __device__ __forceinline__ float next_has(float value)
    {
        return __shfl_down_sync(0xffffffffu, value, 1);
    }
    // A warp's places: the gradients of those whose cells are the tile's, and what they all add to the tile. Cells differ but for
    // those of neighbours, of which the first takes what the other has; elements differ of the same corner of cells.
    template <bool PLAIN>
    __device__ __forceinline__ void take(const one_place &k, float2 s, int number) const
    {
        const bool near =
            (s.x >= near_from.x) & (s.y >= near_from.y) & (s.x < near_to.x) & (s.y < near_to.y);
        if (!wd_any(near)) return;
        const wd_whole row = wd_round_down(s.y), column = wd_round_down(s.x);
        const float down = s.y - row.value, right = s.x - column.value;
        const int cell = near ? row.number * PITCH + column.number + origin : -1;
        const bool has = (__shfl_down_sync(0xffffffffu, cell, 1) == cell) & (previous != 1u << 30);
        const bool leads = near & !(wd_ballot(has) & previous);
        if (near & (s.x >= own_from.x) & (s.y >= own_from.y)) {
            put_own<PLAIN>(k, number, x + cell, down, right);
        }
        const float below = next_has(down), behind = next_has(right);
        float other[U];
#pragma unroll
        for (int u = 0; u < U; ++u) other[u] = next_has(k.dy[u]);
        const float weight[4] = {(1 - down) * (1 - right), (1 - down) * right, down * (1 - right),
                                 down * right};
        const float more[4] = {(1 - below) * (1 - behind), (1 - below) * behind,
                               below * (1 - behind), below * behind};
        // Of those that do not lead nobody asks for what this comes to.
        float2 sum = s;
        float third = row.value;
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            float2 *const two = sums_of_two() + (cell + t / 2 * PITCH + t % 2);
            float *const one = sums_of_third() + (cell + t / 2 * PITCH + t % 2);
            if (leads) sum = *two;
            if (leads) third = *one;
            sum.x += weight[t] * k.dy[0];
            sum.y += weight[t] * k.dy[1];
            third += weight[t] * k.dy[2];
            if (has) sum.x += more[t] * other[0];
            if (has) sum.y += more[t] * other[1];
            if (has) third += more[t] * other[2];
            if (leads) *two = sum;
            if (leads) *one = third;
            __syncwarp();
        }
    }
    // One place, and the next one is asked for.
    template <bool PLAIN>
    __device__ __forceinline__ void take_one(const one_place &k, one_place &next, walk &at,
                                             bool more, int &off) const
    {
        const float2 s = looked_at(a, k.g);
        const int number = at.number;
        look(at, s, off);
        at.along += 32;
        read<PLAIN>(next, at, more);
        take<PLAIN>(k, s, number);
    }
    // `units` of 32 places, the first of which is `k`. Whether one of them is not where the map has it.
    template <bool PLAIN>
    __device__ __forceinline__ void take_some(one_place k, walk at, int units, int &off) const
    {
        one_place next = k;
#pragma unroll 1
        for (; units > 0; --units) {
            take_one<PLAIN>(k, next, at, units > 1, off);
            k = next;
        }
    }

    template <bool PLAIN> __device__ __forceinline__ void put_elements() const
    {
        const int w = left + (int)threadIdx.x % SIDE * 4, first = (int)threadIdx.x / SIDE;
        const factors<float> f = {a.alpha32, a.beta32};
        if ((int)threadIdx.x % SIDE >= WIDTH / 4 || w >= a.width) return;
        float *to = static_cast<float *>(a.dx.data) + n * a.dx.image +
                    ((int64_t)(top + first) * a.dx.row + (int64_t)w * a.dx.column);
        const int64_t turn = wd_opaque(TURN * (int64_t)a.dx.row);
        int at = (first + 1) * PITCH + w + PAD - left;
#pragma unroll 1
        for (int r = first; r < bottom_end - top; r += TURN, at += TURN * PITCH, to += turn) {
            if constexpr (PLAIN) {
                const float4 *const two = reinterpret_cast<const float4 *>(sums_of_two() + at);
                const float4 left_two = two[0], right_two = two[1];
                float4 sums[U] = {{left_two.x, left_two.z, right_two.x, right_two.z},
                                  {left_two.y, left_two.w, right_two.y, right_two.w},
                                  *reinterpret_cast<const float4 *>(sums_of_third() + at)};
                float *plane = to;
#pragma unroll
                for (int u = 0; u < U; ++u, plane += a.dx.channel) {
                    *reinterpret_cast<float4 *>(plane) =
                        make_float4(f.alpha * sums[u].x, f.alpha * sums[u].y, f.alpha * sums[u].z,
                                    f.alpha * sums[u].w);
                }
            } else {
#pragma unroll 1
                for (int i = 0; i < 4 * a.channels; ++i) {
                    const int u = i / 4, e = i % 4;
                    float *const one = to + (u * a.dx.channel + (int64_t)e * a.dx.column);
                    const float sum =
                        u == 2 ? sums_of_third()[at + e] : x[U * ROOM + 2 * (at + e) + u];
                    if (w + e >= a.width) continue;
                    if (a.blends) put_value<float, true>(a, f, one, sum);
                    else put_value<float, false>(a, f, one, sum);
                }
            }
        }
    }
};

// The places of a tile, and its elements; whether one of the thread's is not where the map has it. A warp has some that
// follow one another: first all warps take the first half of theirs, then the second, so that what they add to at once is
// apart.
template <bool PLAIN> __device__ __forceinline__ int fill_tile(const affine_tile &t)
{
    int off = 0;
    const int warp = (int)threadIdx.x / 32;
    const int units = (t.rows * t.length + 31) / 32;
    // Of a half: then places of two halves with one between them that are in nearer rows are four columns apart.
    const int least = ((t.apart - 1) * t.length + 4 + 31) / 32;
    // Half of one more than is there is further from the next whole number than what is rounded.
    const float halves = ((float)units + 0.5f) * wd_about_reciprocal((float)(2 * least));
    const int warps = max((int)fminf(halves, (float)affine_tile::WARPS), 1);
    const float each = wd_about_reciprocal((float)warps),
                per_length = wd_about_reciprocal((float)t.length);
    int begin = warp >= warps ? units : (int)(((float)(units * warp) + 0.5f) * each);
    const int end = warp + 1 >= warps ? units : (int)(((float)(units * (warp + 1)) + 0.5f) * each);
    int middle = begin + (end - begin + 1) / 2;
#pragma unroll 1
    for (int part = 0; part < 2; ++part) {
        const int some = middle - begin;
        affine_tile::walk at = t.walk_from(begin, per_length);
        affine_tile::one_place first = {make_float2(0, 0), {0, 0, 0}};
        t.read<PLAIN>(first, at, some > 0);
        begin = middle;
        middle = end;
        // Always: but over a branch the compiler does not move what was just read behind the wait.
        if (units >= 0) wd_copies_wait_all();
        __syncthreads();
        t.take_some<PLAIN>(first, at, some, off);
    }
    __syncthreads();
    t.put_elements<PLAIN>();
    return off;
}

// A block a tile of AFFINE_WIDTH x AFFINE_HEIGHT elements, which by_column and by_row count. Plain: aligned pairs of grid and dgrid, three channels, whole runs of x
// and dx, and nothing is blended.
__device__ __forceinline__ void affine_tiles(const sampler_affine_args &args)
{
    affine_tile t(args);
    const sampler_vector_args &a = args.all;
    const uint32_t tiles = a.by_column.divisor * a.by_row.divisor;
    sampler_map *const map = static_cast<sampler_map *>(args.maps) + t.in_batch;
    wd_wait_for_previous();
    if (args.fills) {
        if (args.plain) {
            t.clear<true>();
            t.bring<true>();
        } else {
            t.clear<false>();
            t.bring<false>();
        }
    }
    // Only now, for it is waited for at once.
    const sampler_map m = read_map(map);
    const bool takes = args.fills && m.mapped && (args.checks || !m.marked);
    if (args.checks && (takes || !args.fills)) {
        const places_check check = {a, m, map, t.n};
        check.run(blockIdx.x - t.in_batch * tiles, tiles, !takes);
    }
    if (!takes) {
        wd_copies_wait_all();
        return;
    }
    t.find_places(m);
    t.ask_ahead();
    const int off = args.plain ? fill_tile<true>(t) : fill_tile<false>(t);
    if (args.checks && off) map->marked = 1;
}

} // namespace

#endif
