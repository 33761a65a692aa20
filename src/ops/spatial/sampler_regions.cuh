// SPDX-License-Identifier: Apache-2.0
//
// The sampler's gradients of few channels, and where places crowd or are few: a warp has a region of the image, whose
// sums are in shared memory and no other's (of crowds some warps have it, with sums each, which are added up behind a
// barrier). It goes through the boxes of the grid that come near, in order, lists the places whose cells touch its
// region, and adds 32 of them at a time to the sums: first what goes to the upper left elements of all cells, then the
// upper right ones and so on; of those that look into the same cell the first takes what the others have. So every sum
// has one order, without sorting or atomics. The gradients of the grid have no such trouble: a kernel before has a place
// a thread, or some, and finds on the way how far each box reaches.
#ifndef WD_OPS_SPATIAL_SAMPLER_REGIONS_CUH
#define WD_OPS_SPATIAL_SAMPLER_REGIONS_CUH

#include "ops/spatial/sampler_affine.cuh"

namespace {

// ---- The gradients of the grid ----

struct sampler_step { // from a thread's channel to its next
    int64_t x, y;
};

// U channels of a place, of which there are `left`: dy times the steps of the image within its cell, as in back_tile.
template <class T, int U, class A>
__device__ __forceinline__ void add_some_steps(const sampler_step &step, const int *from,
                                               const bool *in, const T *x, const T *dy, int left,
                                               A *steps)
{
    A pixel[U][4], share[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const bool there = U == 1 || u < left;
        share[u] = element_if<T>(there, dy + u * step.y);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            pixel[u][i] = element_if<T>(there && in[i], x + u * step.x + from[i]);
        }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const A g = share[u], *f = pixel[u];
        steps[0] += g * (f[1] - f[0]);
        steps[1] += g * (f[3] - f[2]);
        steps[2] += g * (f[2] - f[0]);
        steps[3] += g * (f[3] - f[1]);
    }
}

// What every 1 << log2 channels of a place from `own` on say of its coordinates, U at a time.
template <class T, int U, class A>
__device__ __forceinline__ void slopes_of(const sampler_vector_args &a, const spot &at,
                                          const sight<A> &k, int own, int log2, A &across, A &along)
{
    const sampler_step step = {a.x.channel << log2, a.y.channel << log2};
    const T *x = static_cast<const T *>(a.x.data) + at.n * a.x.image + own * a.x.channel;
    const T *dy = element_of<T>(a.y, at) + own * a.y.channel;
    A steps[4] = {0, 0, 0, 0};
    int from[4], left = (a.channels - own + (1 << log2) - 1) >> log2;
    bool in[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        in[i] = k.has(a, i / 2, i % 2);
        from[i] = in[i] ? (k.row + i / 2) * a.x.row + (k.column + i % 2) * a.x.column : 0;
    }
#pragma unroll 1
    for (; left > 0; left -= U) {
        add_some_steps<T, U>(step, from, in, x, dy, left, steps);
        x += U * step.x;
        dy += U * step.y;
    }
    across = (1 - k.down) * steps[0] + k.down * steps[1];
    along = (1 - k.right) * steps[2] + k.right * steps[3];
}

// The gradients of a place that sees something, by one thread.
template <class T, int U, class A>
__device__ __forceinline__ void put_place(const sampler_vector_args &a, const spot &at,
                                          const sight<A> &k)
{
    A across, along;
    slopes_of<T, U>(a, at, k, 0, 0, across, along);
    put_slopes<T>(a, at.number(a), across, along);
}

// By 1 << sharing_log2 neighbouring threads, each of which has some channels. All of a warp come here together; `in`: this
// thread has a place, as have those which it shares it with. `lost`: also where nothing is seen.
template <class T, int U, class A>
__device__ __forceinline__ void put_shared_place(const sampler_vector_args &a, const spot &at,
                                                 const sight<A> &k, bool in, bool lost)
{
    const int own = (int)threadIdx.x & ((1 << a.sharing_log2) - 1);
    A across = 0, along = 0;
    if (in && k.seen) slopes_of<T, U>(a, at, k, own, a.sharing_log2, across, along);
#pragma unroll 1
    for (int other = 1; other < 1 << a.sharing_log2; other *= 2) {
        across += __shfl_xor_sync(0xffffffffu, across, other);
        along += __shfl_xor_sync(0xffffffffu, along, other);
    }
    if (!in || own) return;
    if (k.seen) put_slopes<T>(a, at.number(a), across, along);
    else if (lost) put_lost<T>(a, at, k);
}

// Place i of a box whose first place is `corner`; whether it is one.
__device__ __forceinline__ bool place_of(const sampler_vector_args &a, const spot &corner, int i,
                                         spot &at)
{
    at.n = corner.n;
    at.p = corner.p + (i >> a.box_column_log2);
    at.q = corner.q + (i & ((1 << a.box_column_log2) - 1));
    return at.p < a.rows && at.q < a.columns;
}

__device__ __forceinline__ uint4 reach_words(const reach &r)
{
    return make_uint4((uint32_t)r.four[0], (uint32_t)r.four[1], (uint32_t)r.four[2],
                      (uint32_t)r.four[3]);
}

// 1 << sharing_log2 warps a box, of whose places each has some; `count` boxes in a launch. Where there are maps, only
// images that are marked, and not places that see nothing if a launch before saw to them: what is blended is so once.
template <class T> __device__ __forceinline__ void region_boxes(const sampler_affine_args &args)
{
    const sampler_vector_args &a = args.all;
    const sampler_map *maps = static_cast<const sampler_map *>(args.maps);
    const int lane = (int)threadIdx.x % 32;
    wd_wait_for_previous();
    if (maps && !any_marked(maps, args.images)) return;
#pragma unroll 1
    for (uint32_t warp = (blockIdx.x * SPATIAL_THREADS + threadIdx.x) / 32;
         warp >> a.sharing_log2 < a.count; warp += gridDim.x * (SPATIAL_THREADS / 32)) {
        const uint32_t number = warp >> a.sharing_log2;
        const int first = (int)(warp & ((1u << a.sharing_log2) - 1)) << 5;
        uint32_t box = number;
        spot corner, at;
        reach own;
        const uint32_t b = take_rest(box, a.by_boxes);
        if (maps && !__ldcg(&maps[box].marked)) continue;
        corner.n = a.first_image + box;
        box_corner(a, b, corner);
#pragma unroll 1
        for (int i = 0; i < 1 << box_log2(a); i += 32) {
            sight<typename accumulator<T>::type> k;
            const int place = i + ((first + lane) >> a.sharing_log2);
            const bool in = place < 1 << box_log2(a) && place_of(a, corner, place, at);
            if (in) k.template look<T>(a, at.number(a));
            if (in) own.add(k);
            put_shared_place<T, 3>(a, at, k, in, !maps || !args.checks);
        }
        if (first) continue; // the first warp finds how far all places reach
#pragma unroll 1
        for (int i = lane; a.sharing_log2 && i < 1 << box_log2(a); i += 32) {
            sight<typename accumulator<T>::type> k;
            if (!place_of(a, corner, i, at)) continue;
            k.template look<T>(a, at.number(a));
            own.add(k);
        }
        own.of_warp();
        if (lane == 0) static_cast<uint4 *>(a.boxes)[number] = reach_words(own);
    }
}

// ---- The gradients of the image ----

// The same in another order: first every other place, as on a chessboard. What a warp has at once then
// seldom shares a cell.
__device__ __forceinline__ bool spread_place_of(const sampler_vector_args &a, const spot &corner,
                                                int i, spot &at)
{
    const int half_log2 = a.box_column_log2 - 1, half = box_log2(a) - 1;
    if (half_log2 < 0) return place_of(a, corner, i, at);
    const int in_half = i & ((1 << half) - 1), row = in_half >> half_log2;
    at.n = corner.n;
    at.p = corner.p + row;
    at.q = corner.q + 2 * (in_half & ((1 << half_log2) - 1)) + ((row + (i >> half)) & 1);
    return at.p < a.rows && at.q < a.columns;
}

constexpr uint32_t NOT_NEAR = UINT32_MAX;

// A warp's region, 1 << lanes_log2 columns and 1 << across_log2 rows of some channels.
template <class T> struct region {
    typedef typename accumulator<T>::type A;
    const sampler_vector_args &a;
    uint32_t n;
    int top, left, first; // elements, and a channel
    const T *places;      // of the image
    uint4 *
        list; // places: where in dy, cell, how far down and right; those behind SPATIAL_LISTED wait
    A *sums;  // element by element, its channels side by side
    uint32_t filled; // of the list

    __device__ __forceinline__ explicit region(const sampler_vector_args &args) : a(args), filled(0)
    {
    }
    __device__ __forceinline__ int area() const
    {
        return 1 << (a.lanes_log2 + a.across_log2);
    }
    // Numbers between elements: odd, so that neighbours are in different banks.
    __device__ __forceinline__ int pitch() const
    {
        return a.chunk | 1;
    }
    // There is a frame around the region, so that the four elements of a cell need no question.
    __device__ __forceinline__ int width() const
    {
        return (1 << a.lanes_log2) + 2;
    }
    __device__ __forceinline__ int room() const // whole runs of 16 bytes
    {
        return (width() * ((1 << a.across_log2) + 2) * pitch() + 3) & ~3;
    }

    __device__ __forceinline__ int channels() const
    {
        return min(a.chunk, a.channels - first);
    }

    // Whether the places of a box may look into the region.
    __device__ __forceinline__ bool is_near(const uint4 &box) const
    {
        return (int)box.x > -(top + (1 << a.across_log2)) && (int)box.y >= top - 1 &&
               (int)box.z > -(left + (1 << a.lanes_log2)) && (int)box.w >= left - 1;
    }

    // A place of the image as the list has it; its cell is NOT_NEAR where it does not look into the
    // region.
    __device__ __forceinline__ uint4 look(const spot &at) const
    {
        static_assert(sizeof(A) == 4, "what the list holds");
        const T *from = places + 2 * (int64_t)(at.p * a.columns + at.q);
        sight<A> k;
        wd_run<T, 2> both;
        if (a.pairs) {
            both.load(from);
        } else {
            both.put(0, from[0]);
            both.put(1, from[1]);
        }
        const bool across =
            sight<A>::coordinate(wd_widen(both.get(0)), a.scale_w32, a.width, k.column, k.right);
        const bool along =
            sight<A>::coordinate(wd_widen(both.get(1)), a.scale_h32, a.height, k.row, k.down);
        const int r = k.row - top + 1, c = k.column - left + 1;
        const bool hit = across && along && (uint32_t)r <= 1u << a.across_log2 &&
                         (uint32_t)c <= 1u << a.lanes_log2;
        return make_uint4((uint32_t)(at.p * a.y.row + at.q * a.y.column),
                          hit ? (uint32_t)(r * width() + c) : NOT_NEAR, __float_as_uint(k.down),
                          __float_as_uint(k.right));
    }

    // Lists those of the warp's places that look into the region, and adds them where they are 32.
    __device__ __forceinline__ void keep(const uint4 &one)
    {
        const bool hit = one.y != NOT_NEAR;
        const uint32_t mask = wd_ballot(hit), lane = threadIdx.x % 32;
        if (hit) list[filled + wd_bits(mask & ((1u << lane) - 1))] = one;
        filled += wd_bits(mask);
        __syncwarp();
        if (filled < SPATIAL_LISTED) return;
        add(SPATIAL_LISTED);
        filled -= SPATIAL_LISTED;
        if (lane < filled) list[lane] = list[SPATIAL_LISTED + lane];
        __syncwarp();
    }

    // The places of a box, 64 at a time.
    __device__ __forceinline__ void keep_box(uint32_t box)
    {
        spot corner;
        corner.n = 0;
        box_corner(a, box, corner);
#pragma unroll 1
        for (int i = (int)threadIdx.x % 32; i < 1 << box_log2(a); i += 64) {
            uint4 seen[2];
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                spot at;
                seen[b] = make_uint4(0, NOT_NEAR, 0, 0);
                if (i + 32 * b < 1 << box_log2(a) && spread_place_of(a, corner, i + 32 * b, at)) {
                    seen[b] = look(at);
                }
            }
#pragma unroll 1
            for (int b = 0; b < 2; ++b) { // once in the code
                keep(seen[0]);
                seen[0] = seen[1];
            }
        }
    }

    static constexpr int U = SAMPLER_REGION_TURN; // channels at once

    // The next channels of a place, if it is one, of `left_over`.
    __device__ __forceinline__ void read(bool in, const T *dy, int left_over, A *share) const
    {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            share[u] = element_if<T>(in && u < left_over, dy + u * a.y.channel);
        }
    }

    // U channels of the threads' places. The first of those that look into a cell (`leads`) takes what
    // the others have, in order, `turns` of them at most; `others` has their bits. Then cells differ.
    __device__ __forceinline__ void add_some(const A *share, A *to, bool leads, A down, A right,
                                             uint32_t others, int turns, int left_over) const
    {
        A sum[4][U], old[U];
        const A weight[4] = {(1 - down) * (1 - right), (1 - down) * right, down * (1 - right),
                             down * right};
#pragma unroll
        for (int t = 0; t < 4; ++t) {
#pragma unroll
            for (int u = 0; u < U; ++u) sum[t][u] = weight[t] * share[u];
        }
#pragma unroll 1
        for (int turn = 0; turn < turns; ++turn) {
            const int from = others ? (int)wd_lowest(others) : 0;
            const A d = __shfl_sync(0xffffffffu, down, from);
            const A r = __shfl_sync(0xffffffffu, right, from);
            const A w[4] = {(1 - d) * (1 - r), (1 - d) * r, d * (1 - r), d * r};
#pragma unroll
            for (int u = 0; u < U; ++u) {
                const A more = __shfl_sync(0xffffffffu, share[u], from);
#pragma unroll
                for (int t = 0; t < 4; ++t) {
                    if (others) sum[t][u] += w[t] * more;
                }
            }
            others &= others - 1;
        }
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            A *const element = to + (t % 2 + t / 2 * width()) * pitch();
            if (leads) {
#pragma unroll
                for (int u = 0; u < U; ++u) old[u] = u < left_over ? element[u] : (A)0;
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    if (u < left_over) element[u] = old[u] + sum[t][u];
                }
            }
            __syncwarp();
        }
    }

    // Adds the first `count` places of the list to the sums.
    __device__ __forceinline__ void add(uint32_t count)
    {
        const uint32_t lane = threadIdx.x % 32;
        const bool in = lane < count;
        const uint4 one = in ? list[lane] : make_uint4(0, NOT_NEAR, 0, 0);
        const uint32_t peers = wd_peers(one.y);
        const bool leads = in && wd_lowest(peers) == lane;
        const uint32_t others = leads ? peers & (peers - 1) : 0;
        const int turns = __reduce_max_sync(0xffffffffu, (int)wd_bits(others));
        const A down = __uint_as_float(one.z), right = __uint_as_float(one.w);
        const T *dy =
            static_cast<const T *>(a.y.data) + n * a.y.image + first * a.y.channel + (int32_t)one.x;
        A *to = sums + (in ? (int)one.y * pitch() : 0);
        A share[U], next[U];
        read(in, dy, channels(), next);
#pragma unroll 1
        for (int left_over = channels(); left_over > 0; left_over -= U) {
#pragma unroll
            for (int u = 0; u < U; ++u) share[u] = next[u];
            dy += U * a.y.channel;
            read(in, dy, left_over - U, next); // while these are added
            add_some(share, to, leads, down, right, others, turns, left_over);
            to += U;
        }
    }

    // What all warps of the region have of a sum of the first one's.
    __device__ __forceinline__ A with_others(const A *from) const
    {
        A sum = *from;
#pragma unroll 1
        for (int other = 1; other < 1 << a.warps_log2; ++other) sum += from[other * room()];
        return sum;
    }

    // Of 1 << warps_log2 warps, whose sums follow one another, `part` is this one; `base` are the first one's sums.
    template <bool OLD> __device__ __forceinline__ void put_sums(int part, const A *base) const
    {
        const factors<A> f = {(A)a.alpha, (A)a.beta};
#pragma unroll 1
        for (int i = 32 * part + (int)threadIdx.x % 32; i < area(); i += 32 << a.warps_log2) {
            const int h = top + (i >> a.lanes_log2), w = left + (i & ((1 << a.lanes_log2) - 1));
            const A *from = base + ((h - top + 1) * width() + w - left + 1) * pitch();
            if (h >= a.height || w >= a.width) continue;
            T *to = static_cast<T *>(a.dx.data) + n * a.dx.image + (int64_t)h * a.dx.row +
                    (int64_t)w * a.dx.column + first * a.dx.channel;
#pragma unroll 4
            for (int c = 0; c < channels(); ++c) {
                A sum = from[c];
                if (a.warps_log2) sum = with_others(from + c);
                put_value<T, OLD>(a, f, to, sum);
                to += a.dx.channel;
            }
        }
    }
};

// Here lanes_log2 and across_log2 are those of a region, by_column and by_row count regions of an
// image, by_position its blocks. Where many places look at few elements several warps have a region, each some of the
// boxes, and sums of its own, which are added up at the end, in order. Where there are maps, only images that are
// marked; then a block may take others besides its own, and a region has one warp.
template <class T>
__device__ __forceinline__ void back_regions_of(const sampler_affine_args &args, uint32_t block)
{
    const sampler_vector_args &a = args.all;
    typedef typename accumulator<T>::type A;
    constexpr uint32_t WARPS = SPATIAL_THREADS / 32;
    const uint32_t boxes = a.by_boxes.divisor, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t part = warp & ((1u << a.warps_log2) - 1);
    uint4 *const shared = wd_dynamic_shared<uint4>();
    region<T> own(a);
    uint32_t number =
        ((take_rest(block, a.by_position) * WARPS) >> a.warps_log2) + (warp >> a.warps_log2);
    own.n = a.first_image + block;
    own.places = static_cast<const T *>(a.grid) + 2 * ((int64_t)own.n * a.rows * a.columns);
    own.list = shared + warp * (2 * SPATIAL_LISTED);
    own.sums = reinterpret_cast<A *>(shared + WARPS * 2 * SPATIAL_LISTED) + warp * own.room();
    own.left = (int)take_rest(number, a.by_column) << a.lanes_log2;
    own.top = (int)take_rest(number, a.by_row) << a.across_log2;
    own.first = (int)number * a.chunk;
    const uint32_t given = block * boxes; // of this image
    const bool idle = own.first >= a.channels;
    if (idle && !a.warps_log2) return;
    if (args.maps && !__ldcg(&static_cast<const sampler_map *>(args.maps)[block].marked)) return;
#pragma unroll 1
    for (int i = (int)lane; i < own.room() / 4; i += 32) {
        reinterpret_cast<float4 *>(own.sums)[i] = make_float4(0, 0, 0, 0);
    }
    __syncwarp();
    wd_wait_for_previous();
    constexpr uint32_t LOOKS = 4; // boxes of a thread at once
#pragma unroll 1
    for (uint32_t base = part; base < boxes && !idle; base += LOOKS * 32 << a.warps_log2) {
        uint32_t near = 0;
#pragma unroll
        for (uint32_t i = 0; i < LOOKS; ++i) {
            const uint32_t box = base + ((i * 32 + lane) << a.warps_log2);
            if (box < boxes &&
                own.is_near(__ldcg(static_cast<const uint4 *>(a.boxes) + (given + box)))) {
                near |= 1u << i;
            }
        }
#pragma unroll 1
        for (uint32_t i = 0; i < LOOKS; ++i) {
            uint32_t mask = wd_ballot(near >> i & 1);
            while (mask) {
                own.keep_box(base + ((i * 32 + wd_lowest(mask)) << a.warps_log2));
                mask &= mask - 1;
            }
        }
    }
    own.add(own.filled);
    if (a.warps_log2) __syncthreads();
    if (idle) return;
    const A *const base = own.sums - part * own.room();
    if (a.blends) own.template put_sums<true>((int)part, base);
    else own.template put_sums<false>((int)part, base);
}

template <class T> __device__ __forceinline__ void back_regions(const sampler_affine_args &args)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 // a loop would not fit into registers
    back_regions_of<T>(args, blockIdx.x);
#else
    if (args.maps) {
        wd_wait_for_previous();
        if (!any_marked(static_cast<const sampler_map *>(args.maps), args.images)) return;
    }
#pragma unroll 1
    for (uint32_t block = blockIdx.x; block < args.blocks; block += gridDim.x) {
        back_regions_of<T>(args, block);
        __syncwarp();
    }
#endif
}

} // namespace

#endif
