// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients where the grid is an affine map of the image, or nearly so, as a spatial
// transformer's is. A first kernel fits a map to the corners of every image's grid and measures how far any
// place is from where the map has it. Turned around, the map says for an element which few
// places can look at it: those less than the width of its two cells, and the measured distance, away. So
// nothing is listed or sorted: a block brings the part of dy that its tile of the image can be
// seen from to shared memory, with where these places look, and every element weighs the same square of
// places around its own; those that do not look at it weigh nothing. The places whose cells are the tile's
// find the image there too, so that their gradients come from the same reading of dy. An image whose grid
// is no such map is marked, for other kernels to take.
//
// A weight of nothing times what is not finite would be NaN: an element whose sum is not finite is done
// again, by what looks at it alone.
#ifndef WD_OPS_SPATIAL_SAMPLER_AFFINE_CUH
#define WD_OPS_SPATIAL_SAMPLER_AFFINE_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/opaque.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "ops/spatial/sampler_map.cuh"
#include "ops/spatial/sampler_planes.cuh"

namespace {

// Whether an image of a batch of `images` is marked: the block asks together.
__device__ __forceinline__ bool any_marked(const sampler_map *maps, uint32_t images)
{
    __shared__ uint32_t marked;
    if (threadIdx.x == 0) marked = 0;
    __syncthreads();
#pragma unroll 1
    for (uint32_t n = threadIdx.x; n < images; n += SPATIAL_THREADS) {
        if (__ldcg(&maps[n].marked)) atomicAdd(&marked, 1u);
    }
    __syncthreads();
    return marked != 0;
}

// ---- A tile ----

struct affine_tile {
    static constexpr int U = AFFINE_CHANNELS; // at most, all of them in shared memory

    static constexpr int WIDTH = AFFINE_WIDTH, HEIGHT = AFFINE_HEIGHT, PITCH = AFFINE_PITCH,
                         ROWS = AFFINE_ROWS, X_PITCH = AFFINE_X_PITCH, X_ROWS = AFFINE_HEIGHT + 2,
                         X_PAD = 4, WARPS = SPATIAL_THREADS / 32;
    static constexpr int ROOM = PITCH * ROWS, X_ROOM = X_PITCH * X_ROWS;
    static constexpr int ELEMENTS = WIDTH * HEIGHT / SPATIAL_THREADS;
    static constexpr int OWN_ROW = 64;
    const sampler_vector_args &a;
    uint32_t n, in_batch;
    int top, left;
    sampler_map m;
    float reach_p, reach_q;  // of an element, in places
    int p0, q0, rows, units; // the places that may look at the tile, in 4 columns
    const float *places;     // of the image's grid
    float *dy, *x;
    float2 *where; // what places look at
    // The places of cells of the tile that the warp found: their row times OWN_ROW, and column.
    uint16_t *owned;

    __device__ __forceinline__ affine_tile(const sampler_vector_args &args) : a(args)
    {
        uint32_t b = blockIdx.x;
        left = (int)take_rest(b, a.by_column) * WIDTH;
        top = (int)take_rest(b, a.by_row) * HEIGHT;
        in_batch = b;
        n = a.first_image + b;
        places = grid_of(a, n);
        dy = wd_opaque_shared(wd_dynamic_shared<float>());
        x = dy + U * ROOM;
        where = reinterpret_cast<float2 *>(x + U * X_ROOM);
        owned = reinterpret_cast<uint16_t *>(where + ROOM) + threadIdx.x / 32 * AFFINE_OWNED;
    }

    // The map; whether it leaves few enough places to an element and to a tile.
    __device__ __forceinline__ bool find_map(const sampler_map *maps)
    {
        const sampler_map *from = maps + in_batch;
        const int lane = (int)threadIdx.x % SPATIAL_PARTS;
        const int off_p = __reduce_max_sync(0xffffffffu, __ldcg(&from->off[0][lane]));
        const int off_q = __reduce_max_sync(0xffffffffu, __ldcg(&from->off[1][lane]));
        m.px = __ldcg(&from->px);
        m.py = __ldcg(&from->py);
        m.p0 = __ldcg(&from->p0);
        m.qx = __ldcg(&from->qx);
        m.qy = __ldcg(&from->qy);
        m.q0 = __ldcg(&from->q0);
        const float rounding = 1.0f / 64; // of AFFINE_SIDE, in fp32
        reach_p = fabsf(m.px) + fabsf(m.py) + __int_as_float(off_p) + rounding;
        reach_q = fabsf(m.qx) + fabsf(m.qy) + __int_as_float(off_q) + rounding;
        return reach_p < 1.5f && reach_q < 1.5f && span(m.px, m.py) + 4 <= ROWS &&
               span(m.qx, m.qy) + 8 <= PITCH;
    }
    static __device__ __forceinline__ float span(float by_x, float by_y)
    {
        return fabsf(by_x) * (WIDTH - 1) + fabsf(by_y) * (HEIGHT - 1);
    }
    // The square of three by three places around an element ends with these.
    __device__ __forceinline__ int last_row(float w, float h) const
    {
        return (int)floorf(m.px * w + m.py * h + m.p0 + reach_p);
    }
    __device__ __forceinline__ int last_column(float w, float h) const
    {
        return (int)floorf(m.qx * w + m.qy * h + m.q0 + reach_q);
    }
    // The part of the grid that has all elements' squares, which begin with even columns.
    __device__ __forceinline__ void find_places()
    {
        const float w = (float)left, right = (float)(left + WIDTH - 1);
        const float h = (float)top, bottom = (float)(top + HEIGHT - 1);
        p0 = last_row(m.px < 0 ? right : w, m.py < 0 ? bottom : h) - 2;
        q0 = (last_column(m.qx < 0 ? right : w, m.qy < 0 ? bottom : h) - 2) & ~3;
        rows = min(last_row(m.px < 0 ? w : right, m.py < 0 ? h : bottom) + 1 - p0, ROWS);
        units =
            min((last_column(m.qx < 0 ? w : right, m.qy < 0 ? h : bottom) + 5 - q0) / 4, PITCH / 4);
    }

    // Zeros where nothing will be copied to.
    __device__ __forceinline__ void clear() const
    {
        uint4 *const zero = reinterpret_cast<uint4 *>(dy);
        const bool inside = p0 >= 0 && p0 + rows <= a.rows && q0 >= 0 &&
                            q0 + 4 * units <= a.columns && top > 0 && left > 0 &&
                            top + HEIGHT < a.height && left + WIDTH + X_PAD <= a.width;
        if (inside) return;
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < U * (ROOM + X_ROOM) / 4; i += SPATIAL_THREADS) {
            zero[i] = make_uint4(0, 0, 0, 0);
        }
    }
    // Rows `row` .. of a plane and 4 * wide columns from `column` on, where they lie within it, of
    // all channels, rows PITCH_OF apart, planes ROOM_OF.
    template <int PITCH_OF, int ROOM_OF>
    __device__ __forceinline__ void copy(const sampler_image &image, const float *plane, int height,
                                         int width, int row, int some, int column, int wide,
                                         bool runs, float *to) const
    {
        constexpr int SIDE = 16, TURN = SPATIAL_THREADS / SIDE; // threads of a row, rows of a turn
        const int c = column + (int)threadIdx.x % SIDE * 4, first = (int)threadIdx.x / SIDE;
        if ((int)threadIdx.x % SIDE >= wide || c + 3 < 0 || c >= width) return;
        const float *from = plane + ((int64_t)(row + first) * image.row + c);
        float *put = to + (first * PITCH_OF + c - column);
#pragma unroll 1
        for (int i = first; i < some;
             i += TURN, from += TURN * (int64_t)image.row, put += TURN * PITCH_OF) {
            if ((uint32_t)(row + i) >= (uint32_t)height) continue;
            const float *one = from;
            if (runs) {
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    if (u >= a.channels) break;
                    wd_copy_async<16, false>(put + u * ROOM_OF, one);
                    one += image.channel;
                }
                continue;
            }
#pragma unroll 1
            for (int u = 0; u < a.channels; ++u) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    if ((uint32_t)(c + e) >= (uint32_t)width) continue;
                    wd_copy_async<4, true>(put + u * ROOM_OF + e, one + e);
                }
                one += image.channel;
            }
        }
    }
    // The tile's part of dy and of the image, on their way.
    __device__ __forceinline__ void bring() const
    {
        const float *from_y = static_cast<const float *>(a.y.data) + n * a.y.image;
        const float *from_x = static_cast<const float *>(a.x.data) + n * a.x.image;
        copy<PITCH, ROOM>(a.y, from_y, a.rows, a.columns, p0, rows, q0, units, a.y.runs, dy);
        copy<X_PITCH, X_ROOM>(a.x, from_x, a.height, a.width, top - 1, X_ROWS, left - X_PAD,
                              (X_PAD + WIDTH) / 4 + 1, a.x.runs, x);
    }

    // From where on, and up to where, coordinates have their cells among `some` from `from` on; the cell
    // before the image is the first tile's.
    static __device__ __forceinline__ float2 own_part(int extent, int from, int some)
    {
        return make_float2(from > 0 ? (float)from : -0.99999994f, (float)min(from + some, extent));
    }
    static __device__ __forceinline__ bool is_in(float s, const float2 &part)
    {
        return s >= part.x && s < part.y;
    }
    // Whether two places whose column is even may be read at once.
    __device__ __forceinline__ bool reads_twos() const
    {
        return a.columns % 2 == 0 && reinterpret_cast<uintptr_t>(a.grid) % 16 == 0;
    }
    // What the grid says of two places of a row, a warp a row; so far away of those that are not there that nothing is
    // near them.
    struct pair {
        float2 g[2];
    };
    // Rows of a warp: where it reads the next one, of which rows of the tile's places that is, whether a thread's columns are
    // there, and whether both are read at once.
    struct reader {
        const float *at;
        int row;
        bool in[2], twos;
    };
    __device__ __forceinline__ reader first_row() const
    {
        const int lane = (int)threadIdx.x % 32, q = q0 + 2 * lane;
        reader from;
        from.row = (int)threadIdx.x / 32;
        from.at = places + 2 * ((p0 + from.row) * a.columns + q);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            from.in[e] = lane < 2 * units && (uint32_t)(q + e) < (uint32_t)a.columns;
        }
        from.twos = reads_twos();
        return from;
    }
    __device__ __forceinline__ pair read(reader &from) const
    {
        const float away = -1e5f;
        const bool in = from.row < rows && (uint32_t)(p0 + from.row) < (uint32_t)a.rows;
        pair two = {{make_float2(away, away), make_float2(away, away)}};
        if (from.twos) {
            if (in && from.in[0]) {
                const float4 both = *reinterpret_cast<const float4 *>(from.at);
                two.g[0] = make_float2(both.x, both.y);
                two.g[1] = make_float2(both.z, both.w);
            }
        } else {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (in && from.in[e]) two.g[e] = make_float2(from.at[2 * e], from.at[2 * e + 1]);
            }
        }
        from.at += 2 * WARPS * (int64_t)a.columns;
        from.row += WARPS;
        return two;
    }
    // Where all places look, and which are the tile's own: returns how many the warp finds. `next` is the warp's first
    // row; the one after is asked for ahead.
    __device__ __forceinline__ uint32_t look(pair next, reader from) const
    {
        const uint32_t lane = threadIdx.x % 32, before = wd_opaque((1u << lane) - 1);
        const float2 across = own_part(a.width, left, WIDTH),
                     along = own_part(a.height, top, HEIGHT);
        const int first = (int)threadIdx.x / 32, place = 2 * (int)lane;
        float4 *at = wd_opaque_shared(reinterpret_cast<float4 *>(where + first * PITCH + place));
        uint16_t *to = wd_opaque_shared(owned);
        uint32_t number = (uint32_t)(first * OWN_ROW + place), found = 0;
        const bool keeps = place < 4 * units;
#pragma unroll 1
        for (int r = first; r < rows; r += WARPS) {
            const float2 s[2] = {looked_at(a, next.g[0]), looked_at(a, next.g[1])};
            uint32_t own[2];
            bool is[2];
            next = read(from);
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                is[e] = is_in(s[e].x, across) & is_in(s[e].y, along);
                own[e] = wd_ballot(is[e]);
            }
            if (keeps) *at = make_float4(s[0].x, s[0].y, s[1].x, s[1].y);
            const uint32_t i = found + wd_bits(own[0] & before) + wd_bits(own[1] & before);
            if (is[0]) to[i] = (uint16_t)number;
            if (is[1]) to[i + (is[0] ? 1 : 0)] = (uint16_t)(number + 1);
            found += wd_bits(own[0]) + wd_bits(own[1]);
            at += WARPS * PITCH / 2;
            number += WARPS * OWN_ROW;
        }
        return found;
    }

    __device__ __forceinline__ int column_of_element() const
    {
        return left + (int)threadIdx.x % WIDTH;
    }
    __device__ __forceinline__ int row_of_element(int number) const
    {
        return top + (int)threadIdx.x / WIDTH + number * (SPATIAL_THREADS / WIDTH);
    }
    // What the places of an element's square weigh: three rows, of each two pairs of columns.
    struct element {
        int from;
        float weight[12];
    };
    __device__ __forceinline__ void weigh(int number, element &e) const
    {
        const float w = (float)column_of_element(), h = (float)row_of_element(number);
        // What rounding may add to the tile's part is further off than `rounding` of find_map.
        const int r = min(max(last_row(w, h) - 2 - p0, 0), rows - 3);
        const int c = min(max(last_column(w, h) - 2 - q0, 0), 4 * units - 4) & ~1;
        e.from = r * PITCH + c;
#pragma unroll
        for (int i = 0; i < 3; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float4 s =
                    *reinterpret_cast<const float4 *>(where + e.from + i * PITCH + 2 * j);
                e.weight[4 * i + 2 * j] =
                    __saturatef(1 - fabsf(s.y - h)) * __saturatef(1 - fabsf(s.x - w));
                e.weight[4 * i + 2 * j + 1] =
                    __saturatef(1 - fabsf(s.w - h)) * __saturatef(1 - fabsf(s.z - w));
            }
        }
    }
    // Of C channels.
    template <int C>
    __device__ __forceinline__ void sums_of(const element &e, const float *from, float *sums) const
    {
#pragma unroll
        for (int u = 0; u < C; ++u) sums[u] = 0;
#pragma unroll
        for (int i = 0; i < 3; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
#pragma unroll
                for (int u = 0; u < C; ++u) {
                    const float2 d = *reinterpret_cast<const float2 *>(from + u * ROOM + e.from +
                                                                       i * PITCH + 2 * j);
                    sums[u] += e.weight[4 * i + 2 * j] * d.x;
                    sums[u] += e.weight[4 * i + 2 * j + 1] * d.y;
                }
            }
        }
    }
    // The same by those places alone that look at the element.
    __device__ __forceinline__ float sum_again(int from, int w, int h, int u) const
    {
        float sum = 0;
#pragma unroll 1
        for (int i = 0; i < 12; ++i) {
            const int at = from + i / 4 * PITCH + i % 4;
            const float2 s = where[at];
            const float right = s.x - floorf(s.x), down = s.y - floorf(s.y);
            const int c = w - (int)floorf(s.x), r = h - (int)floorf(s.y);
            if (((c | r) & ~1) != 0 || !is_in(s.x, own_part(a.width, 0, a.width)) ||
                !is_in(s.y, own_part(a.height, 0, a.height))) {
                continue;
            }
            sum += (r ? down : 1 - down) * (c ? right : 1 - right) * dy[u * ROOM + at];
        }
        return sum;
    }
    static __device__ __forceinline__ bool is_finite(float sum)
    {
        return fabsf(sum) <= 3e38f;
    }
    // An element, of all channels; PLAIN: these are U, and nothing is blended.
    template <bool PLAIN>
    __device__ __forceinline__ void put_element(int number, const element &e) const
    {
        const int w = column_of_element(), h = row_of_element(number);
        if (h >= a.height || w >= a.width) return;
        float *to = static_cast<float *>(a.dx.data) + n * a.dx.image +
                    ((int64_t)h * a.dx.row + (int64_t)w * a.dx.column);
        if constexpr (PLAIN) {
            float sums[U];
            sums_of<U>(e, dy, sums);
            if (!is_finite(fabsf(sums[0]) + fabsf(sums[1]) + fabsf(sums[2]))) {
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    if (!is_finite(sums[u])) sums[u] = sum_again(e.from, w, h, u);
                }
            }
#pragma unroll
            for (int u = 0; u < U; ++u) {
                *to = a.alpha32 * sums[u];
                to += a.dx.channel;
            }
            return;
        }
        const factors<float> f = {a.alpha32, a.beta32};
#pragma unroll 1
        for (int u = 0; u < a.channels; ++u) {
            float sum;
            sums_of<1>(e, dy + u * ROOM, &sum);
            if (!is_finite(sum)) sum = sum_again(e.from, w, h, u);
            if (a.blends) put_value<float, true>(a, f, to, sum);
            else put_value<float, false>(a, f, to, sum);
            to += a.dx.channel;
        }
    }

    // What the gradients of a place add up of a channel, of the image around it and of dy there.
    static __device__ __forceinline__ void add_steps(const float *f, float g, float *steps)
    {
        const float f0 = f[0], f1 = f[1], f2 = f[X_PITCH], f3 = f[X_PITCH + 1];
        steps[0] += g * (f1 - f0);
        steps[1] += g * (f3 - f2);
        steps[2] += g * (f2 - f0);
        steps[3] += g * (f3 - f1);
    }
    // The gradients of the warp's place i of the tile's own, from its steps as in back_tile. PLAIN: of U channels, and
    // nothing is blended.
    // `to`: those of the image.
    template <bool PLAIN> __device__ __forceinline__ void put_own(uint32_t i, float *to) const
    {
        const int number = owned[i], r = number / OWN_ROW, at = number - r * (OWN_ROW - PITCH);
        const float2 s = where[at];
        const float row = floorf(s.y), column = floorf(s.x);
        const float down = s.y - row, right = s.x - column;
        // in fp32 as well, of AFFINE_SIDE rows, and converted once
        const float corner = row * X_PITCH + (column + (float)((1 - top) * X_PITCH + X_PAD - left));
        const float *f = x + (int)corner;
        const int place = p0 * a.columns + q0 + r * (a.columns - OWN_ROW) + number;
        float steps[4] = {0, 0, 0, 0};
        if constexpr (PLAIN) {
#pragma unroll
            for (int u = 0; u < U; ++u) add_steps(f + u * X_ROOM, dy[u * ROOM + at], steps);
        } else {
#pragma unroll 1
            for (int u = 0; u < a.channels; ++u) {
                add_steps(f + u * X_ROOM, dy[u * ROOM + at], steps);
            }
        }
        const float by_x = (1 - down) * steps[0] + down * steps[1],
                    by_y = (1 - right) * steps[2] + right * steps[3];
        if constexpr (PLAIN) {
            to += 2 * place;
            const float alpha = (float)a.alpha_grid;
            to[0] = alpha * (by_x * (float)(a.width - 1) / 2);
            to[1] = alpha * (by_y * (float)(a.height - 1) / 2);
        } else {
            put_slopes<float>(a, (int64_t)n * a.rows * a.columns + place, by_x, by_y);
        }
    }
};

// A block a tile of AFFINE_WIDTH x AFFINE_HEIGHT elements; by_column and by_row count them.
__device__ __forceinline__ void affine_tiles(const sampler_affine_args &args)
{
    affine_tile t(args.all);
    affine_tile::element e[affine_tile::ELEMENTS];
    wd_wait_for_previous();
    const bool few = t.find_map(static_cast<const sampler_map *>(args.maps));
    if (threadIdx.x == 0 && t.top == 0 && t.left == 0) {
        static_cast<sampler_map *>(args.maps)[t.in_batch].marked = few ? 0 : 1;
    }
    if (!few) return;
    const sampler_vector_args &a = args.all;
    t.find_places();
    affine_tile::reader rows = t.first_row();
    const affine_tile::pair first = t.read(rows);
    t.clear();
    __syncthreads();
    t.bring();
    const uint32_t found = t.look(first, rows);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < affine_tile::ELEMENTS; ++i) t.weigh(i, e[i]);
    wd_copies_wait_all();
    __syncthreads();
    const uint32_t lane = threadIdx.x % 32;
    float *const to =
        wd_opaque_global(static_cast<float *>(a.dgrid) + 2 * (int64_t)t.n * a.rows * a.columns);
    if (a.channels == affine_tile::U && a.scales && !a.blends && a.scales_grid && !a.blends_grid) {
#pragma unroll
        for (int i = 0; i < affine_tile::ELEMENTS; ++i) t.put_element<true>(i, e[i]);
#pragma unroll 1
        for (uint32_t i = lane; i < found; i += 32) t.put_own<true>(i, to);
    } else {
#pragma unroll
        for (int i = 0; i < affine_tile::ELEMENTS; ++i) t.put_element<false>(i, e[i]);
#pragma unroll 1
        for (uint32_t i = lane; i < found; i += 32) t.put_own<false>(i, to);
    }
}

} // namespace

#endif
