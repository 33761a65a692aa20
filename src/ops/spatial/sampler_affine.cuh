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
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "ops/spatial/sampler_back_tile.cuh"
#include "ops/spatial/sampler_planes.cuh"

namespace {

// ---- The map of an image's grid ----

// What a place looks at, as sight::coordinate has it, of what the grid says.
__device__ __forceinline__ float2 looked_at(const sampler_vector_args &a, float2 s)
{
    s.x = (s.x + 1) * a.scale_w32;
    s.y = (s.y + 1) * a.scale_h32;
    return s;
}
__device__ __forceinline__ float2 looked_at(const sampler_vector_args &a, const float *places,
                                            int number)
{
    const float *at = places + 2 * (int64_t)number;
    return looked_at(a,
                     a.pairs ? *reinterpret_cast<const float2 *>(at) : make_float2(at[0], at[1]));
}

__device__ __forceinline__ const float *grid_of(const sampler_vector_args &a, uint32_t n)
{
    return static_cast<const float *>(a.grid) + 2 * ((int64_t)n * a.rows * a.columns);
}

// From an image's coordinates to the grid's: that which is right at three corners. Numbers that are not
// finite come out where these lie on a line.
__device__ __forceinline__ void fit_map(const sampler_vector_args &a, const float *places,
                                        sampler_map &m)
{
    const float2 first = looked_at(a, places, 0), across = looked_at(a, places, a.columns - 1),
                 down = looked_at(a, places, (a.rows - 1) * a.columns);
    const float columns = (float)(a.columns - 1), rows = (float)(a.rows - 1);
    const float xq = (across.x - first.x) / columns, yq = (across.y - first.y) / columns;
    const float xp = (down.x - first.x) / rows, yp = (down.y - first.y) / rows;
    const float turned = 1 / (xq * yp - xp * yq);
    m.qx = yp * turned;
    m.qy = -xp * turned;
    m.px = -yq * turned;
    m.py = xq * turned;
    m.q0 = -(m.qx * first.x + m.qy * first.y);
    m.p0 = -(m.px * first.x + m.py * first.y);
}

// SPATIAL_PARTS blocks an image: its map, how far off places are, and the gradients of those that see
// nothing.
__device__ __forceinline__ void fit_maps(const sampler_affine_args &args)
{
    constexpr int EACH = 4, WARPS = SPATIAL_THREADS / 32;
    __shared__ int off_of[2][WARPS];
    const sampler_vector_args &a = args.all;
    const uint32_t in_batch = blockIdx.x / SPATIAL_PARTS, part = blockIdx.x % SPATIAL_PARTS;
    const int count = a.rows * a.columns;
    int off[2] = {0, 0};
    sampler_map m;
    spot at;
    wd_wait_for_previous();
    at.n = a.first_image + in_batch;
    const float *places = grid_of(a, at.n);
    fit_map(a, places, m);
#pragma unroll 1
    for (int i = (int)(part * SPATIAL_THREADS + threadIdx.x); i < count;
         i += EACH * SPATIAL_PARTS * SPATIAL_THREADS) {
        float2 s[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            s[e] = looked_at(a, places, min(i + e * SPATIAL_PARTS * SPATIAL_THREADS, count - 1));
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            uint32_t p = (uint32_t)min(i + e * SPATIAL_PARTS * SPATIAL_THREADS, count - 1);
            const bool again = (int)p != i + e * SPATIAL_PARTS * SPATIAL_THREADS;
            const uint32_t number = p, q = take_rest(p, a.by_line);
            const float by_q = m.qx * s[e].x + m.qy * s[e].y + (m.q0 - (float)q);
            const float by_p = m.px * s[e].x + m.py * s[e].y + (m.p0 - (float)p);
            off[0] = max(off[0], __float_as_int(fabsf(by_p))); // that of NaN is the largest
            off[1] = max(off[1], __float_as_int(fabsf(by_q)));
            if (again || (s[e].x > -1 && s[e].x < (float)a.width && s[e].y > -1 &&
                          s[e].y < (float)a.height)) {
                continue;
            }
            sight<float> k;
            at.p = (int)p;
            at.q = (int)q;
            k.template look<float>(a, (int64_t)at.n * count + number);
            put_lost<float>(a, at, k);
        }
    }
#pragma unroll
    for (int d = 0; d < 2; ++d) {
        off[d] = __reduce_max_sync(0xffffffffu, off[d]);
        if (threadIdx.x % 32 == 0) off_of[d][threadIdx.x / 32] = off[d];
    }
    __syncthreads();
    if (threadIdx.x >= 2) return;
    sampler_map *to = static_cast<sampler_map *>(args.maps) + in_batch;
    int most = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) most = max(most, off_of[threadIdx.x][w]);
    to->off[threadIdx.x][part] = most;
    if (part > 0 || threadIdx.x > 0) return;
    to->px = m.px;
    to->py = m.py;
    to->p0 = m.p0;
    to->qx = m.qx;
    to->qy = m.qy;
    to->q0 = m.q0;
}

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
    const sampler_vector_args &a;
    uint32_t n, in_batch;
    int top, left;
    sampler_map m;
    float reach_p, reach_q;  // of an element, in places
    int p0, q0, rows, units; // the places that may look at the tile, in 4 columns
    float *dy, *x;
    float2 *where;   // what places look at
    uint16_t *owned; // the places of cells of the tile, in no order: where in dy
    uint32_t *count; // of them

    __device__ __forceinline__ affine_tile(const sampler_vector_args &args) : a(args)
    {
        uint32_t b = blockIdx.x;
        left = (int)take_rest(b, a.by_column) * WIDTH;
        top = (int)take_rest(b, a.by_row) * HEIGHT;
        in_batch = b;
        n = a.first_image + b;
        dy = wd_dynamic_shared<float>();
        x = dy + U * ROOM;
        where = reinterpret_cast<float2 *>(x + U * X_ROOM);
        owned = reinterpret_cast<uint16_t *>(where + ROOM);
        count = reinterpret_cast<uint32_t *>(owned + ROOM);
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
        constexpr int SIDE = 16; // threads of a row
        const int c = column + (int)threadIdx.x % SIDE * 4;
        if ((int)threadIdx.x % SIDE >= wide || c + 3 < 0 || c >= width) return;
#pragma unroll 1
        for (int i = (int)threadIdx.x / SIDE; i < some; i += SPATIAL_THREADS / SIDE) {
            if ((uint32_t)(row + i) >= (uint32_t)height) continue;
            const float *from = plane + (int64_t)(row + i) * image.row + c;
            float *put = to + i * PITCH_OF + (c - column);
            if (runs) {
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    if (u >= a.channels) break;
                    wd_copy_async<16, false>(put + u * ROOM_OF, from);
                    from += image.channel;
                }
                continue;
            }
#pragma unroll 1
            for (int u = 0; u < a.channels; ++u) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    if ((uint32_t)(c + e) >= (uint32_t)width) continue;
                    wd_copy_async<4, true>(put + e, from + e);
                }
                from += image.channel;
                put += ROOM_OF;
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
    // What the grid says of two places of row r, a warp a row; so far away of those that are not there that
    // nothing is near them.
    struct pair {
        float2 g[2];
    };
    __device__ __forceinline__ pair read(int r) const
    {
        const float away = -1e5f;
        const int lane = (int)threadIdx.x % 32, p = p0 + r, q = q0 + 2 * lane;
        const float *const at = grid_of(a, n) + 2 * (p * a.columns + q);
        const bool in = r < rows && lane < 2 * units && (uint32_t)p < (uint32_t)a.rows;
        pair two;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            two.g[e] = make_float2(away, away);
            if (!in || (uint32_t)(q + e) >= (uint32_t)a.columns) continue;
            two.g[e] = a.pairs ? reinterpret_cast<const float2 *>(at)[e]
                               : make_float2(at[2 * e], at[2 * e + 1]);
        }
        return two;
    }
    // Where all places look, and which are the tile's own. `next` is the warp's first row; the one after is
    // asked for ahead.
    __device__ __forceinline__ void look(pair next) const
    {
        const uint32_t lane = threadIdx.x % 32, before = (1u << lane) - 1;
        const float2 across = own_part(a.width, left, WIDTH),
                     along = own_part(a.height, top, HEIGHT);
#pragma unroll 1
        for (int r = (int)threadIdx.x / 32; r < rows; r += WARPS) {
            const float2 s[2] = {looked_at(a, next.g[0]), looked_at(a, next.g[1])};
            uint32_t own[2], at = 0;
            bool is[2];
            next = read(r + WARPS);
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                is[e] = is_in(s[e].x, across) & is_in(s[e].y, along);
                own[e] = wd_ballot(is[e]);
            }
            if ((int)lane < 2 * units) {
                *reinterpret_cast<float4 *>(where + r * PITCH + 2 * lane) =
                    make_float4(s[0].x, s[0].y, s[1].x, s[1].y);
            }
            if (lane == 0) at = wd_add_alone(count, wd_bits(own[0]) + wd_bits(own[1]));
            at = __shfl_sync(0xffffffffu, at, 0) + wd_bits(own[0] & before) +
                 wd_bits(own[1] & before);
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (is[e]) owned[at++] = (uint16_t)(r * PITCH + 2 * (int)lane + e);
            }
        }
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
    __device__ __forceinline__ float sum_of(const element &e, int u) const
    {
        const float *from = dy + u * ROOM + e.from;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 3; ++i) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float2 d = *reinterpret_cast<const float2 *>(from + i * PITCH + 2 * j);
                sum += e.weight[4 * i + 2 * j] * d.x;
                sum += e.weight[4 * i + 2 * j + 1] * d.y;
            }
        }
        return sum;
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
    // An element, of all channels.
    __device__ __forceinline__ void put_element(int number, const element &e) const
    {
        const int w = column_of_element(), h = row_of_element(number);
        if (h >= a.height || w >= a.width) return;
        float *to = static_cast<float *>(a.dx.data) + n * a.dx.image + (int64_t)h * a.dx.row +
                    (int64_t)w * a.dx.column;
        const factors<float> f = {a.alpha32, a.beta32};
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u >= a.channels) break;
            float sum = sum_of(e, u);
            if (!(fabsf(sum) <= 3e38f)) sum = sum_again(e.from, w, h, u);
            if (a.blends) put_value<float, true>(a, f, to, sum);
            else put_value<float, false>(a, f, to, sum);
            to += a.dx.channel;
        }
    }

    // The gradients of place i of the tile's own, from its steps as in back_tile.
    __device__ __forceinline__ void put_own(uint32_t i) const
    {
        const int at = owned[i];
        const float2 s = where[at];
        const float row = floorf(s.y), column = floorf(s.x);
        const float down = s.y - row, right = s.x - column;
        const float *f = x + ((int)row - top + 1) * X_PITCH + (int)column - left + X_PAD;
        float steps[4] = {0, 0, 0, 0};
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u >= a.channels) break;
            const float g = dy[u * ROOM + at];
            const float f0 = f[0], f1 = f[1], f2 = f[X_PITCH], f3 = f[X_PITCH + 1];
            steps[0] += g * (f1 - f0);
            steps[1] += g * (f3 - f2);
            steps[2] += g * (f2 - f0);
            steps[3] += g * (f3 - f1);
            f += X_ROOM;
        }
        const int place = (p0 + at / PITCH) * a.columns + q0 + at % PITCH;
        put_slopes<float>(a, (int64_t)n * a.rows * a.columns + place,
                          (1 - down) * steps[0] + down * steps[1],
                          (1 - right) * steps[2] + right * steps[3]);
    }
};

// A block a tile of AFFINE_WIDTH x AFFINE_HEIGHT elements; by_column and by_row count them.
__device__ __forceinline__ void affine_tiles(const sampler_affine_args &args)
{
    affine_tile t(args.all);
    affine_tile::element e[affine_tile::ELEMENTS];
    wd_wait_for_previous();
    const bool few = t.find_map(static_cast<const sampler_map *>(args.maps));
    if (threadIdx.x == 0) {
        if (t.top == 0 && t.left == 0) {
            static_cast<sampler_map *>(args.maps)[t.in_batch].marked = few ? 0 : 1;
        }
        *t.count = 0;
    }
    if (!few) return;
    t.find_places();
    const affine_tile::pair first = t.read((int)threadIdx.x / 32);
    t.clear();
    __syncthreads();
    t.bring();
    t.look(first);
    __syncthreads();
    const uint32_t count = *t.count;
#pragma unroll
    for (int i = 0; i < affine_tile::ELEMENTS; ++i) t.weigh(i, e[i]);
    wd_copies_wait_all();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < affine_tile::ELEMENTS; ++i) t.put_element(i, e[i]);
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < count; i += SPATIAL_THREADS) t.put_own(i);
}

} // namespace

#endif
