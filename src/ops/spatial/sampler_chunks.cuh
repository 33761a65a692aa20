// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients of images whose rows are neighbours in memory, from one reading of x and dy, all of it by
// chunks of 16 bytes. A block has a tile of the image, and its lists (sampler_chunk_lists.cuh) for all channels. A
// thread brings a chunk or two of x or dy, by asynchronous copies that are stages ahead, and of two bytes spreads what
// came into cells of 8 bytes in shared memory, which are the channels of a stage of one element or place. Elements take
// what they get of their places from there, multiply themselves with them in the same breath, and leave their dx in
// shared memory, which threads write as chunks one stage later. So a stage has one barrier, device memory sees whole
// chunks alone, and which thread has an element is free. At the end the
// products with the four elements of a place's cell come together; their differences are the place's steps. Elements
// right and below of the tile only multiply.
// Where there is no room for a tile its image is marked, for back_planes to do again.
#ifndef WD_OPS_SPATIAL_SAMPLER_CHUNKS_CUH
#define WD_OPS_SPATIAL_SAMPLER_CHUNKS_CUH

#include "ops/spatial/sampler_chunk_cells.cuh"
#include "ops/spatial/sampler_chunk_steps.cuh"

namespace {

template <class T> struct chunk_stages {
    typedef chunk_tile<T> tile_of;
    typedef chunk_cell<T> cell_of;
    static constexpr int U = CHUNK_CHANNELS, PER = tile_of::PER, K = tile_of::K,
                         ROOM = tile_of::ROOM, E = CHUNK_EACH, SLOTS = CHUNK_SLOTS;
    static constexpr bool PLANES = tile_of::PLANES;
    static constexpr int OUT_PLANES = cell_of::OUT_PLANES;
    static constexpr uint32_t OUT_STEP = OUT_PLANES * (int)CHUNK_OUT_PLANE;
    const tile_of &tile;
    const sampler_chunk_args &a;
    const sampler_vector_args &all;
    char *const base, *const out; // the stages, and what is after them
    // How far apart planes of a stage lie, and stages; where zeros are; and stages on their way while one is worked on.
    const uint32_t plane;
    __device__ __forceinline__ uint32_t stage() const
    {
        return PLANES ? U * plane : (uint32_t)CHUNK_RING;
    }
    __device__ __forceinline__ uint32_t zero() const
    {
        return PLANES ? plane - CHUNK_BYTES : (uint32_t)CHUNK_RING;
    }
    __device__ __forceinline__ int ahead() const
    {
        return !PLANES || plane == CHUNK_PLANE3 ? 2 : 1;
    }
    // Chunks that the thread brings, from a channel to the next (0 of none), and that which it writes.
    const T *from[K];
    uint32_t step[K];
    T *to;
    // Its elements: where they and their dx are, and what is known of their places, which follow.
    // dx of fp32 lies there in its planes as x does in those of a stage.
    wd_located x_at[E], out_at[PLANES ? 1 : E];
    uint32_t about[E];
    wd_located at[E][SLOTS];
    float share[E][SLOTS], product[E][SLOTS];

    __device__ __forceinline__ chunk_stages(const tile_of &t)
        : tile(t), a(t.a), all(t.all), base(wd_dynamic_shared<char>()), out(base + tile_of::ALL),
          plane(!PLANES        ? ROOM * CHUNK_BYTES
                : has_three(t) ? of_warp(CHUNK_PLANE3)
                               : of_warp(CHUNK_PLANE))
    {
    }

    // Whether there are three stages: of few places, where little is done in one. Measured, from 256x256: 193 us for 216;
    // with a place an element, 56x56, 191 for 176.
    static __device__ __forceinline__ bool has_three(const tile_of &t)
    {
        return !t.a.paired && t.counts.chunks * CHUNK_BYTES < CHUNK_PLANE3;
    }
    // A number that all lanes have, as such.
    static __device__ __forceinline__ uint32_t of_warp(int number)
    {
        return (uint32_t)__reduce_max_sync(0xffffffffu, number);
    }

    // In one number: after which slot none of the warp's elements has a place (or how many places one has, if there are
    // more than slots), how many it has itself, which of `more` is its first, and which corner of its cell it is of each
    // place in a slot; of the thread's first element whether it writes a chunk.
    enum { MOST = 28, COUNT = 24, MORE = 13, MORE_BITS = 2047, WRITES = 1 << 12 };
    static_assert(CHUNK_PLACES < 16 && CHUNK_MORE <= MORE_BITS && 1 << 2 * SLOTS <= WRITES,
                  "bits enough");
    __device__ __forceinline__ bool most_above(int e, int m) const
    {
        return about[e] >= (uint32_t)(m + 1) << MOST;
    }
    __device__ __forceinline__ uint32_t count_of(int e) const
    {
        return about[e] >> COUNT & 15;
    }
    __device__ __forceinline__ uint32_t more_of(int e) const
    {
        return about[e] >> MORE & MORE_BITS;
    }

    __device__ __forceinline__ void find_chunks()
    {
        const planes<T> x(all.x, tile.n), y(all.y, tile.n), dx(all.dx, tile.n);
        const uint32_t chunks = tile.counts.chunks;
        const little_divisor by_row(tile.row_chunks);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const uint32_t chunk = threadIdx.x + k * CHUNK_THREADS;
            from[k] = nullptr;
            step[k] = 0;
            if (chunk >= chunks) continue;
            if (chunk < (uint32_t)tile.x_chunks) {
                uint32_t quotient = chunk;
                const int column = tile.left + (int)by_row.rest(quotient) * PER;
                const int row = (int)quotient;
                from[k] = x.data + ((uint32_t)((tile.top + row) * all.x.row) + (uint32_t)column);
                step[k] = x.channel;
            } else {
                const int row = tile.row_of(chunk);
                tile.rows()[chunk] = (uint8_t)row;
                const int column = tile.start[row] + (int)(chunk - tile.base[row]) * PER;
                const int p = row - tile.counts.first_row;
                if (chunk < tile.base[0] || column > tile.high[row]) continue; // nobody's
                from[k] = y.data + ((uint32_t)(p * all.y.row) + (uint32_t)column);
                step[k] = y.channel;
            }
        }
        // dx by the last threads, for the first ones may bring two chunks
        uint32_t mine = CHUNK_THREADS - 1 - threadIdx.x;
        const int column = (int)by_row.rest(mine) * PER, row = (int)mine;
        const bool writes = row < tile.down && column < tile.across;
        about[0] = writes ? (int)WRITES : 0;
        to = dx.data;
        if (writes) {
            to += (uint32_t)((tile.top + row) * all.dx.row) + (uint32_t)(tile.left + column);
        }
    }

    // Where the first stage has an element or place, or a zero.
    __device__ __forceinline__ wd_located cell(uint32_t at_first) const
    {
        return wd_locate(cells_of_stages() + at_first);
    }
    __device__ __forceinline__ char *cells_of_stages() const
    {
        return base + (PLANES ? 0 : CHUNK_ALL - 2 * CHUNK_SIDE);
    }

    // The thread's elements and their places.
    __device__ __forceinline__ void find_elements()
    {
#pragma unroll
        for (int e = 0; e < E; ++e) {
            const uint32_t rank =
                e % 2 ? CHUNK_THREADS * (e + 1) - 1 - threadIdx.x : CHUNK_THREADS * e + threadIdx.x;
            const uint32_t element = tile.order[rank];
            const bool is = element < CHUNK_ELEMENTS;
            const auto around = tile.around_of(is ? element : 0);
            const int row = around.row, column = around.column;
            uint32_t count = is ? around.upto[3] : 0;
            uint32_t corners = 0, first = 0, corner;
            // what is no element, or not the tile's, has room there that nobody asks for: all write zeros to it
            const uint32_t own =
                is ? (uint32_t)(row * tile.row_chunks * PER + column) : (uint32_t)CHUNK_OUT - 1;
            x_at[e] = cell(tile.cell_at(own));
            if constexpr (!PLANES) out_at[e] = wd_locate(out + cell_of::out_cell(own));
            uint32_t free;
            const uint32_t in_slots = slots_of(around, count, free);
#pragma unroll
            for (int m = 0; m < SLOTS; ++m) {
                uint32_t where = zero();
                share[e][m] = product[e][m] = 0;
                if (!(free >> (SLOTS - 1 - m) & 1)) {
                    where = tile.place_of(around, in_slots >> 4 * (SLOTS - 1 - m) & 15, share[e][m],
                                          corner);
                    corners |= corner << 2 * m;
                }
                at[e][m] = cell(where);
            }
            // With the last slot free a place is in each slot of its colour: after as many as there are no others but, of
            // three, in the fourth, which `collect` always takes.
            static_assert(SLOTS == CHUNK_COLOURS + 1 && SLOTS == 5, "counted by hand");
            uint32_t most = free & 1 ? SLOTS - wd_bits(free) : (uint32_t)SLOTS;
            if (count > SLOTS) {
                first = atomicAdd(&tile.counts.more, count - SLOTS);
                if (first + count - SLOTS > CHUNK_MORE) {
                    tile.counts.lost = 1;
                    count = SLOTS;
                    first = 0;
                }
#pragma unroll 1
                for (uint32_t m = SLOTS; m < count; ++m) {
                    const uint32_t i = first + m - SLOTS;
                    const uint32_t where = tile.place_of(around, m, tile.more_share()[i], corner);
                    tile.more_at()[i] = (uint16_t)(where | corner);
                    tile.more_product()[i] = 0;
                }
                most = count;
            }
            most = (uint32_t)__reduce_max_sync(0xffffffffu, (int)most);
            if (e == 0) corners |= about[0]; // it writes
            about[e] = wd_opaque(most << MOST | count << COUNT | first << MORE | corners);
            __syncwarp(); // one after the other, for registers are scarce
        }
    }

    // Which of an element's first places are in its slots, four bits each, the last slot's first, and which slots are
    // free, likewise: a place takes that of its colour, or else the last one that is free.
    __device__ __forceinline__ uint32_t slots_of(const typename tile_of::around &around,
                                                 uint32_t count, uint32_t &free) const
    {
        constexpr uint32_t FIRST = 1u << (SLOTS - 1), EVERY = 2 * FIRST - 1;
        uint32_t slots = 0, m = 0;
        if (count <= 2) { // these take the first slots, whichever they are
            free = EVERY - (count == 2 ? FIRST + FIRST / 2 : count * FIRST);
            return 1u << 4 * (SLOTS - 2);
        }
        free = EVERY;
#pragma unroll 1
        do {
            uint32_t bit = FIRST >> tile.listed[tile.at_of(around, m)] % CHUNK_COLOURS;
            if (!(free & bit)) bit = free & (0u - free);
            free -= bit;
            bit *= bit;
            slots += m * bit * bit; // the bit's number times four
            m += 1;
        } while (m < count && free > 0);
        return slots;
    }

    // The chunks of a stage, of which so many channels are left.
    __device__ __forceinline__ void ask(uint32_t slot, int left)
    {
        char *const into = base + slot;
        if (left >= U) {
#pragma unroll
            for (int k = 0; k < K; ++k) {
                if (step[k] == 0) continue;
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    wd_copy_async<CHUNK_BYTES, false>(chunk_in(into, k, u), from[k]);
                    from[k] += step[k];
                }
            }
        } else if (left > 0) {
            ask_some(into, left);
        }
        wd_copies_end();
    }
    __device__ __forceinline__ char *chunk_in(char *slot, int k, int u) const
    {
        return slot + u * plane + (threadIdx.x + k * CHUNK_THREADS) * CHUNK_BYTES;
    }
    // The last channels, and nothing of those that are not there.
    __device__ __forceinline__ void ask_some(char *into, int left)
    {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            if (step[k] == 0) continue;
#pragma unroll
            for (int u = 0; u < U; ++u) {
                char *const at = chunk_in(into, k, u);
                if (u < left) wd_copy_async<CHUNK_BYTES, false>(at, from[k]);
                else *reinterpret_cast<uint4 *>(at) = make_uint4(0, 0, 0, 0);
                from[k] += step[k];
            }
        }
    }

    // What came of the thread's chunk, four channels of two bytes, into cells, by halves of the chunk: registers are
    // scarce. Of eight lanes and the eight after these one has the other half, so that reads meet in no bank.
    __device__ __forceinline__ void spread(uint32_t slot, uint32_t cells) const
    {
        if (step[0] == 0) return;
        const uint32_t turn = threadIdx.x & 8;
        const char *const from_ring = chunk_in(base + slot, 0, 0) + turn;
        char *const to_cells = cells_of_stages() + cells;
        const uint32_t at = tile.cell_at(threadIdx.x * PER) ^ turn * 4;
#pragma unroll
        for (uint32_t half = 0; half < 2; ++half) {
            uint2 v[U];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                const char *const one = half == 0 ? from_ring : from_ring + 8 - 2 * turn;
                v[u] = *reinterpret_cast<const uint2 *>(one + u * plane);
            }
#pragma unroll
            for (uint32_t j = 0; j < 2; ++j) {
                *reinterpret_cast<uint4 *>(to_cells + (at ^ (2 * half + j) * 16)) =
                    cell_of::pair_of(j == 0 ? v[0].x : v[0].y, j == 0 ? v[1].x : v[1].y,
                                     j == 0 ? v[2].x : v[2].y, j == 0 ? v[3].x : v[3].y);
            }
        }
    }
    // The thread's chunk of dx of a stage, which has so many channels.
    __device__ __forceinline__ void put_out(uint32_t slot, int left)
    {
        if (!(about[0] & WRITES)) return;
        const uint32_t at = cell_of::out_cell((CHUNK_THREADS - 1 - threadIdx.x) * PER);
#pragma unroll
        for (int p = 0; p < OUT_PLANES; ++p) {
            const char *const plane = out + slot + p * CHUNK_OUT_PLANE;
            const uint4 v = *reinterpret_cast<const uint4 *>(plane + at);
            if constexpr (PLANES) {
                if (p < left) put_channel(v);
            } else {
                const uint4 w = *reinterpret_cast<const uint4 *>(plane + (at ^ 16));
#pragma unroll
                for (int u = 0; u < 2; ++u) {
                    const uint32_t pick = u == 0 ? 0x5410 : 0x7632;
                    if (2 * p + u >= left) break;
                    put_channel(make_uint4(__byte_perm(v.x, v.y, pick), __byte_perm(v.z, v.w, pick),
                                           __byte_perm(w.x, w.y, pick),
                                           __byte_perm(w.z, w.w, pick)));
                }
            }
        }
    }
    __device__ __forceinline__ void put_channel(const uint4 &v)
    {
        *reinterpret_cast<uint4 *>(wd_opaque_global(to)) = v;
        to += (uint32_t)all.dx.channel;
    }

    // Of a stage whose cells are so far after those of the first, and its dx.
    __device__ __forceinline__ void collect(uint32_t cells, uint32_t into)
    {
        uint32_t at_stage[U] = {cells}; // part of the instruction that reads
        if constexpr (PLANES) {
#pragma unroll
            for (int u = 0; u < U; ++u) at_stage[u] = of_warp((int)(cells + u * plane));
        }
#pragma unroll
        for (int e = 0; e < E; ++e) {
            float sums[U] = {}, x[U];
            if (most_above(e, 0)) {
                cell_of::read(x_at[e], at_stage, x);
#pragma unroll
                for (int m = 0; m < SLOTS; ++m) {
                    if (m >= 2 && m != 3 && !most_above(e, m)) break; // see find_elements
                    cell_of::take(at[e][m], at_stage, share[e][m], x, sums, product[e][m]);
                }
                if (most_above(e, SLOTS)) {
                    const uint32_t known = wd_opaque(about[e]); // few do: not kept in registers
                    int i = (int)(known >> MORE & MORE_BITS);
                    const int end = i + (int)(known >> COUNT & 15) - SLOTS;
#pragma unroll 1
                    for (; i < end; ++i) {
                        float *const kept = tile.more_product() + i;
                        float sum = *kept;
                        cell_of::take(wd_locate(cells_of_stages() + (tile.more_at()[i] & ~3)),
                                      at_stage, tile.more_share()[i], x, sums, sum);
                        *kept = sum;
                    }
                }
            }
            if constexpr (PLANES) cell_of::write(x_at[e], CHUNK_ALL32 + into, sums);
            else cell_of::write(out_at[e], into, sums);
        }
    }

    // Products to their places.
    __device__ __forceinline__ void show() const
    {
        float *const products = reinterpret_cast<float *>(base);
        const wd_located first = tile.counts.first_cell;
#pragma unroll
        for (int e = 0; e < E; ++e) {
#pragma unroll
            for (int m = 0; m < SLOTS; ++m) {
                const uint32_t where = wd_located_after(at[e][m], first);
                if (where == zero()) continue;
                products[4 * tile.number_at(where) + (about[e] >> 2 * m & 3)] = product[e][m];
            }
#pragma unroll 1
            for (uint32_t m = SLOTS; m < count_of(e); ++m) {
                const uint32_t i = more_of(e) + m - SLOTS, one = tile.more_at()[i];
                products[4 * tile.number_at(one & ~3u) + (one & 3)] = tile.more_product()[i];
            }
        }
    }
    __device__ __forceinline__ void put_places()
    {
        // else what is needed of it is kept from before the stages
        const tile_of same(a, wd_opaque(blockIdx.x));
        const chunk_steps<T> steps(same);
        typename chunk_steps<T>::asked places;
        steps.clear();
        steps.ask(steps.first + threadIdx.x, places);
        __syncthreads();
        show();
        __syncthreads();
        steps.put(places);
    }

    __device__ __forceinline__ void clear_zeros()
    {
        const uint32_t parts = PLANES ? (uint32_t)(ahead() + 1) * U : 2;
        if (threadIdx.x >= parts) return;
        const uint32_t part =
            PLANES ? threadIdx.x * plane : CHUNK_ALL - 2 * CHUNK_SIDE + threadIdx.x * CHUNK_SIDE;
        *reinterpret_cast<uint4 *>(base + part + zero()) = make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ void run()
    {
        int left = all.channels;
        uint32_t slot = 0, into = 0; // of the stage: from the first one's place
        uint32_t cells = 0;
        clear_zeros();
        if (threadIdx.x == 0) tile.counts.first_cell = wd_locate(cells_of_stages());
        uint32_t free =
            PLANES ? (uint32_t)ahead() * stage() : 0; // where the next stage goes that is asked for
        if (ahead() == 2) ask(stage(), left - U);
#pragma unroll 1
        for (;;) {
            if (ahead() == 2) wd_copies_wait<1>();
            else wd_copies_wait<0>();
            if constexpr (!PLANES) {
                spread(slot, cells);
                ask(slot, left - 2 * U);
            }
            __syncthreads();
            if constexpr (PLANES) ask(free, left - ahead() * U);
            if (left < all.channels) put_out(OUT_STEP - into, U);
            collect(PLANES ? slot : cells, into);
            if (left <= U) break;
            left -= U;
            if constexpr (PLANES) {
                free = slot;
                slot = slot == (uint32_t)ahead() * stage() ? 0 : slot + stage();
            } else {
                slot = stage() - slot;
            }
            into = OUT_STEP - into;
            cells = CHUNK_SIDE - cells;
        }
        wd_copies_wait_all();
        __syncthreads();
        // anew, for the loop's own are not kept for this
        const uint32_t last = ((uint32_t)all.channels - 1) / U;
        put_out(last % 2 * OUT_STEP, all.channels - (int)last * U);
        put_places();
    }
};

template <class T> __device__ __forceinline__ void back_chunks(const sampler_chunk_args &a)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    chunk_tile<T> tile(a);
    tile.clear();
    wd_wait_for_previous();
    tile.find_boxes();
    tile.find_places();
    typename chunk_tile<T>::ranks ranks;
    tile.find_chunks();
    tile.count_places(ranks);
    __syncthreads();
    chunk_stages<T> stages(tile);
    bool lost = tile.counts.lost;
    if (!lost) {
        stages.find_chunks();
        stages.ask(0, a.all.channels);
        tile.sort_places();
        tile.sort_elements(ranks);
        __syncthreads();
        stages.find_elements();
        __syncthreads();
        lost = tile.counts.lost;
    }
    if (lost) {
        wd_copies_wait_all();
        if (threadIdx.x == 0) a.all.marks[tile.in_batch] = 1;
        return;
    }
    stages.run();
#endif
}

} // namespace

#endif
