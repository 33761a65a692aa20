// SPDX-License-Identifier: Apache-2.0
//
// A tile of the image for the sampler's gradients by chunks (sampler_chunks.cuh), before its channels: which
// places look into it, found by boxes; which chunks of dy these are in, row by row of the grid from the first to the
// last such place; and for each element its places, by cell, then in the order of the grid. Elements are given to threads
// by how many places they have, so that those of a warp have about as many; which thread has an element changes nothing
// of its sums.
#ifndef WD_OPS_SPATIAL_SAMPLER_CHUNK_LISTS_CUH
#define WD_OPS_SPATIAL_SAMPLER_CHUNK_LISTS_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/extremes.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/warp.cuh"
#include "ops/spatial/sampler_back_planes.cuh"
#include "ops/spatial/sampler_chunk_numbers.cuh"

namespace {

template <class T> struct chunk_tile {
    static constexpr bool PLANES = sizeof(T) == 4;           // not cells
    static constexpr int PER = CHUNK_BYTES / (int)sizeof(T); // elements of a chunk
    static constexpr int UNITS = PER / 2;    // of 16 bytes, that a chunk's cells are
    static constexpr int K = PLANES ? 2 : 1; // chunks of a thread
    static constexpr int ROOM = PLANES ? CHUNK_ROOM32 : CHUNK_ROOM;
    static constexpr int ALL = PLANES ? CHUNK_ALL32 : CHUNK_ALL; // bytes of all stages
    // Rows of the grid lie in shared memory as in device memory but for so many chunks: where planes are multiples of 64
    // bytes, and there is room, none of dy that come together are cut. Of fp32, whose banks are eight chunks, one row's
    // are four further on than rows of the grid say.
    static constexpr uint32_t BANKED = PLANES ? 8 : 4, TURN = PLANES ? 4 : 0, TOGETHER = 4;
    static_assert(CHUNK_ELEMENTS <= 32 * 32, "a lane for each group of elements");
    // Where lists are: after the first stage, which is on its way before they are done.
    static constexpr int LISTS = PLANES ? (int)CHUNK_STAGE : (int)CHUNK_RING;
    static constexpr int COLUMN_BITS = 32 - CHUNK_ROW_BITS;
    const sampler_chunk_args &a;
    const sampler_vector_args &all;
    uint32_t n, in_batch;
    int top, left;
    int across, down; // elements of it, and with those right and below
    int seen_across, seen_down;
    int row_chunks, x_chunks; // of x: of a row, of all
    little_divisor by_seen;   // elements of a row, or two
    char *const shared;
    chunk_counts &counts;
    // Before the stages, where these will be. Of places the first ones of all cells, then the second ones and so on,
    // so that neighbours have all banks.
    float2 *looks;    // how far down and right it looks
    uint32_t *listed; // which it is, later where, and its colour
    uint32_t *filled; // how many it has
    int *low, *high;  // of a row of the grid: columns, the lower one negative
    uint16_t *order;  // elements by how many places they have
    uint32_t *tally;  // of each class and group of elements: how many there are
    uint32_t *near;   // of 32 places of a box: row, column of the first
    // To the end.
    int *start;     // of a row of the grid: its first column
    uint32_t *base; // and its first chunk

    __device__ __forceinline__ explicit chunk_tile(const sampler_chunk_args &args,
                                                   uint32_t block = blockIdx.x)
        : a(args), all(args.all), by_seen(1), shared(wd_opaque_shared(wd_dynamic_shared<char>())),
          counts(*reinterpret_cast<chunk_counts *>(shared + CHUNK_SHARED - CHUNK_COUNTS))
    {
        uint32_t b = block;
        left = (int)take_rest(b, a.by_across) * a.width;
        top = (int)take_rest(b, a.by_down) * a.height;
        in_batch = b;
        n = all.first_image + b;
        across = min(a.width, all.width - left);
        down = min(a.height, all.height - top);
        seen_across = min(a.width + 1, all.width - left);
        seen_down = min(a.height + 1, all.height - top);
        by_seen = little_divisor(seen_across << a.paired);
        row_chunks = (seen_across + PER - 1) / PER;
        x_chunks = row_chunks * seen_down;
        looks = reinterpret_cast<float2 *>(shared + LISTS);
        listed = reinterpret_cast<uint32_t *>(looks + CHUNK_CELLS * CHUNK_LISTED);
        filled = listed + CHUNK_CELLS * CHUNK_LISTED;
        low = reinterpret_cast<int *>(filled + CHUNK_CELLS);
        high = low + CHUNK_ROWS;
        near = reinterpret_cast<uint32_t *>(high + CHUNK_ROWS);
        order = reinterpret_cast<uint16_t *>(near + CHUNK_NEAR);
        tally = reinterpret_cast<uint32_t *>(order + CHUNK_ELEMENTS);
        start =
            reinterpret_cast<int *>(shared + CHUNK_SHARED - CHUNK_COUNTS - 8 * (CHUNK_ROWS + 1));
        base = reinterpret_cast<uint32_t *>(start + CHUNK_ROWS + 1);
    }
    static_assert((12 * CHUNK_LISTED + 4) * CHUNK_CELLS + 8 * CHUNK_ROWS + 4 * CHUNK_NEAR +
                          2 * CHUNK_ELEMENTS + 4 * 32 * CHUNK_CLASSES <=
                      (PLANES ? CHUNK_STAGES32 : CHUNK_STAGES) - LISTS,
                  "lists have room where stages and dx will be");

    // Of a chunk of dy: its row of the grid, from the first one on.
    __device__ __forceinline__ uint8_t *rows() const
    {
        return reinterpret_cast<uint8_t *>(shared + CHUNK_SHARED - CHUNK_COUNTS -
                                           8 * (CHUNK_ROWS + 1) - CHUNK_ROOM32);
    }
    static_assert(ROOM <= CHUNK_ROOM32 && CHUNK_ROWS <= UINT8_MAX, "rows have room");
    // What is known of places that are more than an element's slots: what it gets of one, its products, and where and
    // which corner, as two bits.
    __device__ __forceinline__ float *more_share() const
    {
        return reinterpret_cast<float *>(rows() - 10 * CHUNK_MORE);
    }
    __device__ __forceinline__ float *more_product() const
    {
        return more_share() + CHUNK_MORE;
    }
    __device__ __forceinline__ uint16_t *more_at() const
    {
        return reinterpret_cast<uint16_t *>(more_product() + CHUNK_MORE);
    }
    static_assert(ROOM * PER * (PLANES ? 4 : CHUNK_CELL) <= UINT16_MAX, "16 bits enough");

    __device__ __forceinline__ void clear()
    {
        for (int i = (int)threadIdx.x; i < CHUNK_CELLS; i += CHUNK_THREADS) filled[i] = 0;
        if (threadIdx.x < CHUNK_ROWS) low[threadIdx.x] = high[threadIdx.x] = INT32_MIN;
        if (threadIdx.x < 32 * CHUNK_CLASSES) tally[threadIdx.x] = 0;
        if (threadIdx.x == 0) {
            counts.near = counts.more = counts.chunks = counts.lost = 0;
            counts.first_row = INT32_MIN;
        }
        __syncthreads();
    }

    // Place i of a box.
    __device__ __forceinline__ int row_in_box(uint32_t i) const
    {
        return (int)(i >> all.box_column_log2);
    }
    __device__ __forceinline__ int column_in_box(uint32_t i) const
    {
        return (int)(i & ((1u << all.box_column_log2) - 1));
    }
    // The boxes whose places may look into the tile, in any order.
    __device__ __forceinline__ void find_boxes()
    {
        const uint32_t boxes = all.by_boxes.divisor;
        const int bottom = top + down, right = left + across;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < boxes; i += CHUNK_THREADS) {
            const uint4 box = __ldcg(static_cast<const uint4 *>(all.boxes) + in_batch * boxes + i);
            if ((int)box.y < top - 1 || -(int)box.x >= bottom || (int)box.w < left - 1 ||
                -(int)box.z >= right || (int)box.x == INT32_MIN) {
                continue;
            }
            spot corner;
            const uint32_t parts = 1u << (box_log2(all) - 5);
            const uint32_t at = atomicAdd(&counts.near, parts);
            box_corner(all, i, corner);
            wd_raise(&counts.first_row, -corner.p);
#pragma unroll 1
            for (uint32_t part = 0; part < parts && at + part < CHUNK_NEAR; ++part) {
                near[at + part] = (uint32_t)(corner.p + row_in_box(part * 32)) << 16 |
                                  (uint32_t)(corner.q + column_in_box(part * 32));
            }
        }
        __syncthreads();
    }

    // The places of these that do, a warp 32 of a box at a time.
    __device__ __forceinline__ void find_places()
    {
        // M are asked for before the first is looked at
        constexpr uint32_t M = 4, WARPS = CHUNK_THREADS / 32;
        const uint32_t units = min(counts.near, (uint32_t)CHUNK_NEAR);
        const int first_row = -counts.first_row;
        const uint32_t lane = threadIdx.x % 32;
        const int row = row_in_box(lane), column = column_in_box(lane);
        const T *const places = static_cast<const T *>(all.grid) +
                                2 * ((int64_t)n * (uint32_t)(all.rows * all.columns));
        // lanes that have the row's places before the thread's, and after it
        const uint32_t in_row = min(1u << all.box_column_log2, 32u), of_row = lane & (in_row - 1);
        const uint32_t before = ((1u << of_row) - 1) << (lane - of_row);
        const uint32_t after = ((2u << (in_row - 1 - of_row)) - 2) << lane;
        if (counts.near > CHUNK_NEAR) counts.lost = 1;
#pragma unroll 1
        for (uint32_t unit = threadIdx.x / 32; unit < units; unit += M * WARPS) {
            int p[M], q[M];
            wd_run<T, 2> said[M];
#pragma unroll
            for (uint32_t m = 0; m < M; ++m) {
                const uint32_t u = unit + m * WARPS;
                p[m] = all.rows;
                if (u >= units) continue;
                p[m] = (int)(near[u] >> 16) + row;
                q[m] = (int)(near[u] & 0xffff) + column;
                if (q[m] >= all.columns) p[m] = all.rows;
                if (p[m] < all.rows) read_place(places, p[m] * all.columns + q[m], said[m]);
            }
#pragma unroll
            for (uint32_t m = 0; m < M; ++m) {
                sight<float> k;
                int r, c;
                const uint32_t grid_row = (uint32_t)(p[m] - first_row);
                bool is = false;
                if (p[m] < all.rows) {
                    k.set(all, wd_widen(said[m].get(0)), wd_widen(said[m].get(1)));
                    is = k.seen && cell_of(k, r, c);
                }
                if (is) {
                    const uint32_t cell = (uint32_t)(r * (across + 1) + c);
                    const uint32_t to = atomicAdd(filled + cell, 1u);
                    is = to < CHUNK_LISTED && grid_row < CHUNK_ROWS;
                    if (is) {
                        listed[to * CHUNK_CELLS + cell] = grid_row << COLUMN_BITS | (uint32_t)q[m];
                        looks[to * CHUNK_CELLS + cell] = make_float2(k.down, k.right);
                    } else {
                        counts.lost = 1;
                    }
                }
                const uint32_t are = wd_ballot(is);
                if (is && !(are & before)) wd_raise(low + grid_row, -q[m]);
                if (is && !(are & after)) wd_raise(high + grid_row, q[m]);
            }
        }
        __syncthreads();
    }
    // What the grid says of a place.
    __device__ __forceinline__ void read_place(const T *places, int number,
                                               wd_run<T, 2> &said) const
    {
        const T *const at = reinterpret_cast<const T *>(
            reinterpret_cast<const char *>(places) + (uint64_t)(uint32_t)number * (2 * sizeof(T)));
        if (all.pairs) {
            said.load(at);
        } else {
            said.put(0, at[0]);
            said.put(1, at[1]);
        }
    }
    // The cell of the tile that a place looks into: those of its first elements' left and above are 0.
    __device__ __forceinline__ bool cell_of(const sight<float> &k, int &r, int &c) const
    {
        r = k.row - top + 1;
        c = k.column - left + 1;
        return (uint32_t)r <= (uint32_t)down && (uint32_t)c <= (uint32_t)across;
    }
    // Whether it is of no other tile.
    __device__ __forceinline__ bool owns(int r, int c) const
    {
        return (r > 0 || top == 0) && (c > 0 || left == 0);
    }

    // Which chunks each row of the grid has. Between rows lie as many that nobody brings as BANKED says, if there is
    // room.
    __device__ __forceinline__ void find_chunks()
    {
        constexpr int EACH = CHUNK_ROWS / 32;
        uint32_t own[EACH], sum, upto, before;
        int first[EACH];
        if (threadIdx.x >= 32) return;
        const uint32_t row_chunks_of_y = (uint32_t)all.y.row / PER,
                       turn = row_chunks_of_y % 4 + TURN;
        uint32_t lies = 0,
                 is = 0; // of the thread's first row that has any: where, in device memory
#pragma unroll
        for (int i = EACH - 1; i >= 0; --i) {
            const int row = EACH * (int)threadIdx.x + i;
            first[i] = 0;
            if (high[row] != INT32_MIN) {
                first[i] = -low[row] & ~(PER - 1);
                lies =
                    (uint32_t)(row - counts.first_row) * row_chunks_of_y + (uint32_t)first[i] / PER;
                is = 1;
            }
            start[row] = first[i];
        }
        lies = __shfl_sync(0xffffffffu, lies, (int)wd_lowest(wd_ballot(is) | 1u << 31));
        const int after = __shfl_down_sync(0xffffffffu, first[0], 1);
#pragma unroll 1
        for (uint32_t banked = BANKED;; banked /= 2) {
            sum = 0;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                const int last = high[EACH * (int)threadIdx.x + i];
                const int next = i + 1 < EACH ? first[(i + 1) % EACH] : after;
                own[i] = 0;
                if (last != INT32_MIN) {
                    own[i] = (uint32_t)(last - first[i]) / PER + 1;
                    own[i] += ((uint32_t)((next - first[i]) / PER) + turn - own[i]) & (banked - 1);
                }
                sum += own[i];
            }
            upto = sum;
#pragma unroll
            for (uint32_t step = 1; step < 32; step *= 2) {
                const uint32_t other = __shfl_up_sync(0xffffffffu, upto, step);
                if (threadIdx.x >= step) upto += other;
            }
            before =
                (uint32_t)x_chunks + ((lies - (uint32_t)x_chunks) & (min(banked, TOGETHER) - 1));
            const uint32_t all = __shfl_sync(0xffffffffu, upto, 31) + before;
            if (all > (uint32_t)ROOM && banked > 1) continue;
            if (threadIdx.x == 31) {
                counts.chunks = base[CHUNK_ROWS] = all;
                if (all > (uint32_t)ROOM) counts.lost = 1;
            }
            break;
        }
        upto += before - sum;
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            base[EACH * threadIdx.x + i] = upto;
            upto += own[i];
        }
    }
    // The row of the grid, from the first one on, that a chunk is of.
    __device__ __forceinline__ int row_of(uint32_t chunk) const
    {
        int row = 0;
#pragma unroll
        for (int step = CHUNK_ROWS / 2; step > 0; step /= 2) {
            if (base[row + step] <= chunk) row += step;
        }
        return row;
    }

    // The places of each cell in order, and where they are.
    __device__ __forceinline__ void sort_places()
    {
        const int cells = (across + 1) * (down + 1);
#pragma unroll 1
        for (int cell = (int)threadIdx.x; cell < cells; cell += CHUNK_THREADS) {
            const uint32_t count = filled[cell];
            const uint32_t end = (uint32_t)cell + count * CHUNK_CELLS;
#pragma unroll 1
            for (uint32_t i = (uint32_t)cell + CHUNK_CELLS; i < end; i += CHUNK_CELLS) {
                const uint32_t one = listed[i];
                const float2 look = looks[i];
                uint32_t j = i;
#pragma unroll 1
                for (; j >= CHUNK_CELLS && listed[j - CHUNK_CELLS] > one; j -= CHUNK_CELLS) {
                    listed[j] = listed[j - CHUNK_CELLS];
                    looks[j] = looks[j - CHUNK_CELLS];
                }
                listed[j] = one;
                looks[j] = look;
            }
#pragma unroll 1
            for (uint32_t i = (uint32_t)cell; i < end; i += CHUNK_CELLS) {
                const uint32_t row = listed[i] >> COLUMN_BITS,
                               column = listed[i] & ((1u << COLUMN_BITS) - 1);
                listed[i] = cell_at(base[row] * PER + column - (uint32_t)start[row]) << 2 |
                            colour_of(row, column);
            }
        }
    }

    // Places that are neighbours, in a row or next to each other in two, have different colours. What neighbouring
    // elements of three places and more see in a slot is of one colour, so that more of it is the same, and less meets in a
    // bank.
    static __device__ __forceinline__ uint32_t colour_of(uint32_t row, uint32_t column)
    {
        return (row + 2 * column) % CHUNK_COLOURS;
    }

    // The places of the cells around an element, in the order of cells: where in the lists those of each would begin if
    // these were all of that cell, and up to where they are.
    struct around {
        int row, column;
        uint32_t upto[4];
        int begin[4];
    };
    __device__ __forceinline__ around around_of(uint32_t element) const
    {
        around a;
        a.column = (int)by_seen.rest(element);
        a.row = (int)element;
        if (this->a.paired) {
            a.row *= 2;
            if (a.row + 1 < seen_down) {
                a.row += a.column & 1;
                a.column >>= 1;
            }
        }
        const int cell = a.row * (across + 1) + a.column, below = cell + across + 1;
        const bool right = a.column < across, lower = a.row < down;
        a.upto[0] = filled[cell];
        a.upto[1] = a.upto[0] + (right ? filled[cell + 1] : 0);
        a.upto[2] = a.upto[1] + (lower ? filled[below] : 0);
        a.upto[3] = a.upto[2] + (right && lower ? filled[below + 1] : 0);
        a.begin[0] = cell;
        a.begin[1] = cell + 1 - (int)a.upto[0] * CHUNK_CELLS;
        a.begin[2] = below - (int)a.upto[1] * CHUNK_CELLS;
        a.begin[3] = below + 1 - (int)a.upto[2] * CHUNK_CELLS;
        return a;
    }
    // Where place m of them is in the lists.
    __device__ __forceinline__ int at_of(const around &a, uint32_t m) const
    {
        const bool below = m >= a.upto[1];
        int at = m >= a.upto[0] ? a.begin[1] : a.begin[0];
        at = below ? a.begin[2] : at;
        at = m >= a.upto[2] ? a.begin[3] : at;
        return at + (int)m * CHUNK_CELLS;
    }
    // How much of it the element gets, and whether that is a lower or right one of its cell's
    // elements, as two bits.
    __device__ __forceinline__ uint32_t place_of(const around &a, uint32_t m, float &share,
                                                 uint32_t &corner) const
    {
        const bool below = m >= a.upto[1], behind = below ? m >= a.upto[2] : m >= a.upto[0];
        const int at = at_of(a, m);
        float lower = looks[at].x, right = looks[at].y;
        corner = 3;
        if (below) {
            lower = 1 - lower;
            corner &= 1;
        }
        if (behind) {
            right = 1 - right;
            corner &= 2;
        }
        share = all.alpha32 * (lower * right);
        return listed[at] / CHUNK_COLOURS;
    }

    // Elements that have most places first: the class of each of the thread's, and its rank among its group's.
    struct ranks {
        uint32_t classes[CHUNK_EACH], at[CHUNK_EACH];
    };
    // By what they take: none, two slots, all, more.
    static __device__ __forceinline__ uint32_t class_of(uint32_t places)
    {
        const uint32_t more = min(places - CHUNK_SLOTS, CHUNK_CLASSES - 3u) + 2;
        return places > CHUNK_SLOTS ? more : (places > 0) + (places > 2);
    }
    __device__ __forceinline__ void count_places(ranks &r)
    {
        const uint32_t lane = threadIdx.x % 32, elements = (uint32_t)(seen_across * seen_down);
#pragma unroll
        for (int e = 0; e < CHUNK_EACH; ++e) {
            const uint32_t own = threadIdx.x + e * CHUNK_THREADS;
            const uint32_t places = own < elements ? around_of(own).upto[3] : 0;
            if (places > CHUNK_PLACES) counts.lost = 1;
            r.classes[e] = class_of(places);
            const uint32_t peers = wd_peers(r.classes[e]);
            r.at[e] = wd_bits(peers & ((1u << lane) - 1));
            if (r.at[e] == 0) tally[32 * r.classes[e] + own / 32] = wd_bits(peers);
        }
    }
    // Within a class in the order of groups: neighbours stay neighbours.
    __device__ __forceinline__ void sort_elements(const ranks &r)
    {
        constexpr uint32_t BITS = 10, MASK = (1u << BITS) - 1;
        static_assert(CHUNK_CLASSES == 6 && CHUNK_ELEMENTS <= MASK, "two words of three numbers");
        const uint32_t lane = threadIdx.x % 32, elements = (uint32_t)(seen_across * seen_down);
        uint32_t own[2], upto[2], all[2];
#pragma unroll
        for (int w = 0; w < 2; ++w) {
            own[w] = 0;
#pragma unroll
            for (int i = 0; i < 3; ++i) own[w] |= tally[32 * (3 * w + i) + lane] << i * BITS;
            upto[w] = own[w];
#pragma unroll
            for (uint32_t step = 1; step < 32; step *= 2) {
                const uint32_t other = __shfl_up_sync(0xffffffffu, upto[w], step);
                if (lane >= step) upto[w] += other;
            }
            all[w] = __shfl_sync(0xffffffffu, upto[w], 31);
            upto[w] -= own[w];
        }
#pragma unroll
        for (int e = 0; e < CHUNK_EACH; ++e) {
            const uint32_t number = threadIdx.x + e * CHUNK_THREADS;
            const uint32_t less = __shfl_sync(0xffffffffu, upto[0], (int)(number / 32)),
                           most = __shfl_sync(0xffffffffu, upto[1], (int)(number / 32));
            uint32_t at = r.at[e], shift = r.classes[e];
            if (shift >= 3) shift -= 3;
            at += (r.classes[e] >= 3 ? most : less) >> shift * BITS & MASK;
#pragma unroll
            for (uint32_t i = 1; i < CHUNK_CLASSES; ++i) {
                if (r.classes[e] < i) at += all[i / 3] >> i % 3 * BITS & MASK;
            }
            order[at] = (uint16_t)(number < elements ? number : CHUNK_ELEMENTS);
        }
    }
    // Where an element or place is in its plane or buffer of cells, of which neighbouring threads spread into other
    // banks.
    static __device__ __forceinline__ uint32_t cell_at(uint32_t number)
    {
        if constexpr (PLANES) return 4 * number;
        const uint32_t unit = number >> 1;
        return (unit ^ (unit >> 3 & (UNITS - 1))) * 16 + (number & 1) * CHUNK_CELL;
    }
    // And the other way round.
    static __device__ __forceinline__ uint32_t number_at(uint32_t at)
    {
        if constexpr (PLANES) return at / 4;
        const uint32_t unit = at >> 4;
        return (unit ^ (unit >> 3 & (UNITS - 1))) << 1 | (at >> 3 & 1);
    }
};

} // namespace

#endif
