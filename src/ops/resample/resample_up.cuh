// SPDX-License-Identifier: Apache-2.0
//
// Enlarging images U times, and the gradients of that: bilinear with corners or middles aligned, edges
// repeated; nearest is with corners, what lies right and below being the pixel itself. What counts for
// what is known when this is compiled. A thread has U times K columns (planes), U columns of a run of
// channels, or, of gradients, SINGLE elements of U columns, at any alignment, and walks down the rows: each
// line of x is spread along the line once, each line of dy added up once.
#ifndef WD_OPS_RESAMPLE_UP_CUH
#define WD_OPS_RESAMPLE_UP_CUH

#include "ops/resample/resample_vector.cuh"
#include "ops/resample/resample_ring_args.h"

namespace {

// Between pixels p and p + 1 lie U samples j, of them the first one at output U * p + FIRST; sample j
// is (1 - right(j)) x[p] + right(j) x[p + 1].
template <int U, int WAY> struct up_way {
    static constexpr bool MIDDLES = WAY == RESAMPLE_UP_MIDDLES;
    static constexpr int FIRST = MIDDLES ? U / 2 : 0;
    static __device__ __forceinline__ constexpr float right(int j)
    {
        return MIDDLES ? ((float)j + 0.5f) / (float)U : (float)j / (float)U;
    }
    static __device__ __forceinline__ constexpr float left(int j)
    {
        return 1.0f - right(j);
    }
};

// alpha * sum: calls that blend do not come here.
template <class T, int N, class A>
__device__ __forceinline__ void put_up(const resample_up_args &a, T *to, const A *sum)
{
    const A alpha = sizeof(A) == 8 ? (A)a.wide_alpha : (A)a.alpha;
    wd_run<T, N> run;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        T narrow;
        wd_narrow(narrow, alpha * sum[i]);
        run.put(i, narrow);
    }
    if (a.streaming) run.store_streaming(to);
    else run.store(to);
}

// Where a thread is: columns column .. column + K - 1 of x, V channels, rows begin .. end-1 of it.
template <int V, int K> struct up_place {
    bool there;
    uint32_t channel;
    int column;
    int begin;
    int end;
    int depth;
    uint32_t outer;
    __device__ __forceinline__ up_place(const resample_up_args &a, int rows, bool volume)
    {
        const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
        there = item < a.count;
        uint32_t n = item;
        channel = wd_take_rest(n, a.by_run) * V;
        const uint32_t side = volume ? wd_take_rest(n, a.by_pair) : 0;
        column = (int)wd_take_rest(n, a.by_column) * K;
        // of an odd number of columns the last thread has one that another has, too
        if (K > 1) column = min(column, a.wide - K);
        begin = (int)wd_take_rest(n, a.by_band) * a.rows;
        end = min(begin + a.rows, rows);
        depth = volume ? (int)(wd_take_rest(n, a.by_depth) * a.by_pair.divisor + side) : 0;
        outer = n;
    }
};

// ---- Forward ----

// Of a line of x what a thread needs: its pixels, and one on either side.
template <class T, int V, int K> struct up_line {
    wd_run<T, K * V> own;
    wd_run<T, V> before;
    wd_run<T, V> behind;
};

// LAY: how the elements of a thread lie. Of volumes a thread has the U planes between two of x as well.
enum { UP_SIDE_BY_SIDE, UP_SINGLE, UP_VOLUME };

template <class T, int V, int K, int U, int WAY, int LAY = UP_SIDE_BY_SIDE>
__device__ __forceinline__ void resample_up(const resample_up_args &a)
{
    typedef up_way<U, WAY> way;
    typedef acc<T> A;
    constexpr bool VOLUME = LAY == UP_VOLUME;
    constexpr int PLANES = VOLUME ? 2 : 1, DEEP = VOLUME ? U : 1; /* of x and of y */
    constexpr int N = V > 1 ? V : U * K; /* elements of a store, and so many of them: */
    constexpr int ALL = U * K * V, STORES = ALL / N;
    wd_wait_for_previous();
    // between rows p and p + 1, p = begin - 1 .. or begin ..
    const up_place<V, K> at(a, a.high + (way::MIDDLES ? 1 : 0), VOLUME);
    if (!at.there) return;
    const bool near = !way::MIDDLES && a.near;
    const size_t plane = (size_t)(uint32_t)a.high * (uint32_t)a.wide * a.inner;
    const uint32_t pitch = (uint32_t)a.wide * a.inner;
    // between planes z and z + 1, of which there may be none
    const int z = at.depth - (VOLUME && way::MIDDLES ? 1 : 0);
    const size_t in_plane = (uint32_t)at.column * a.inner + at.channel;
    const T *x[PLANES];
#pragma unroll
    for (int d = 0; d < PLANES; ++d) {
        const uint32_t of = VOLUME ? (uint32_t)min(max(z + d, 0), a.deep - 1) : 0;
        x[d] = static_cast<const T *>(a.from) +
               ((size_t)at.outer * (VOLUME ? (uint32_t)a.deep : 1) + of) * plane + in_plane;
    }
    const uint32_t to_before = at.column > 0 ? a.inner : 0;
    const uint32_t to_behind = at.column + K < a.wide ? K * a.inner : (K - 1) * a.inner;
    auto load = [&](int row, up_line<T, V, K> *lines) {
        const uint32_t to_row = (uint32_t)min(max(row, 0), a.high - 1) * pitch;
#pragma unroll
        for (int d = 0; d < PLANES; ++d) {
            const T *p = x[d] + to_row;
            lines[d].own.load(p);
            if (way::MIDDLES) lines[d].before.load(p - to_before);
            lines[d].behind.load(p + to_behind);
        }
    };
    // the samples of a line, as they are stored
    auto spread_one = [&](const up_line<T, V, K> &line, A *sum) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            A pixel[K + 2];
            pixel[0] = way::MIDDLES ? wd_widen(line.before.get(v)) : (A)0;
            pixel[K + 1] = wd_widen(line.behind.get(v));
#pragma unroll
            for (int k = 0; k < K; ++k) pixel[1 + k] = wd_widen(line.own.get(k * V + v));
#pragma unroll
            for (int i = 0; i < U * K; ++i) {
                // output i lies between pixels p and p + 1
                const int p = (i + U - way::FIRST) / U - 1, j = (i + U - way::FIRST) % U;
                const A own = pixel[1 + p], right = near ? own : pixel[2 + p];
                A value = way::left(j) * own;
                if (way::right(j) != 0.0f) value += way::right(j) * right;
                sum[i * V + v] = value;
            }
        }
    };
    auto spread = [&](const up_line<T, V, K> *lines, A(*sum)[ALL]) {
        spread_one(lines[0], sum[0]);
        if constexpr (VOLUME) {
            A behind[ALL];
            spread_one(lines[1], behind);
#pragma unroll
            for (int e = 0; e < ALL; ++e) {
                const A one = sum[0][e], other = near ? one : behind[e];
#pragma unroll
                for (int j = 0; j < U; ++j) {
                    sum[j][e] = way::left(j) * one;
                    if (way::right(j) != 0.0f) sum[j][e] += way::right(j) * other;
                }
            }
        }
    };
    A above[DEEP][ALL], below[DEEP][ALL];
    up_line<T, V, K> line[PLANES];
    int p = at.begin - (way::MIDDLES ? 1 : 0);
    const size_t out_plane = plane * (U * U);
    const int out_z = VOLUME ? U * z + way::FIRST : 0;
    // of what lies before the first plane none is written
    T *y = static_cast<T *>(a.out) +
           ((intptr_t)(at.outer * (VOLUME ? (uint32_t)(U * a.deep) : 1u)) + out_z) *
               (intptr_t)out_plane +
           (size_t)(uint32_t)at.column * U * a.inner + at.channel;
    const uint32_t out_pitch = pitch * U;
    load(p, line);
    spread(line, above);
    load(p + 1, line);
#pragma unroll 1
    for (int i = at.begin; i < at.end; ++i, ++p) {
        spread(line, below);
        if (i + 1 < at.end) load(p + 2, line);
#pragma unroll
        for (int j = 0; j < U; ++j) {
            const int row = U * p + way::FIRST + j;
            if (way::MIDDLES && (uint32_t)row >= (uint32_t)(a.high * U)) continue;
#pragma unroll
            for (int d = 0; d < DEEP; ++d) {
                if (VOLUME && (uint32_t)(out_z + d) >= (uint32_t)(a.deep * U)) continue;
                A sum[ALL];
#pragma unroll
                for (int e = 0; e < ALL; ++e) {
                    const A one = above[d][e];
                    sum[e] = way::left(j) * one;
                    if (way::right(j) != 0.0f) sum[e] += way::right(j) * (near ? one : below[d][e]);
                }
                T *to = y + d * out_plane + (uint32_t)row * (size_t)out_pitch;
#pragma unroll
                for (int s = 0; s < STORES; ++s) put_up<T, N, A>(a, to + s * a.inner, sum + s * N);
            }
        }
#pragma unroll
        for (int d = 0; d < DEEP; ++d) {
#pragma unroll
            for (int e = 0; e < ALL; ++e) above[d][e] = below[d][e];
        }
    }
}

// ---- Backward ----

template <class T, int V, int K, int U, int WAY, int LAY = UP_SIDE_BY_SIDE>
__device__ __forceinline__ void resample_up_back(const resample_up_args &a)
{
    typedef up_way<U, WAY> way;
    constexpr bool SINGLE = LAY == UP_SINGLE, VOLUME = LAY == UP_VOLUME;
    // samples beside a thread's own that count for its pixels
    constexpr int BEFORE = U - 1 - (way::MIDDLES ? U / 2 - 1 : 0);
    constexpr int BEHIND = way::MIDDLES ? U / 2 : 0;
    constexpr int ALL = BEFORE + U * K + BEHIND;
    constexpr bool APART = V > 1 || SINGLE; // a thread's columns are not side by side in memory
    // lines of dy are asked for as many lines ahead as there are between two pixels, of planes, which have
    // little of each; or one, where that is not too much
    constexpr int SLOTS = !APART && !VOLUME ? U : 1;
    constexpr bool AHEAD = V == 1 || ALL <= 4;
    // Of a volume in 16 bits each plane's next line, once its samples are added up, while the other planes' are.
    constexpr bool ROUND = VOLUME && V > 1 && way::MIDDLES && sizeof(T) == 2;
    constexpr int ASIDE = BEHIND > 0 ? BEHIND : 1;
    // In the middles what an edge's samples hand beyond it, where the edge is again, is as much as those
    // mirrored at it would hand to the edge: of runs, and of planes of a volume, these are loaded there.
    constexpr bool MIRRORS = V > 1 && way::MIDDLES, MIRRORS_DEEP = VOLUME && way::MIDDLES;
    struct samples {
        wd_run<T, (APART ? V : U * K)> own[APART ? U * K : 1];
        wd_run<T, (APART ? V : BEFORE)> before[APART ? BEFORE : 1];
        wd_run<T, (APART ? V : ASIDE)> behind[APART ? ASIDE : 1];
    };
    wd_wait_for_previous();
    const up_place<V, K> at(a, a.high, VOLUME);
    if (!at.there) return;
    const bool near = !way::MIDDLES && a.near;
    const size_t plane = (size_t)(uint32_t)a.high * (uint32_t)a.wide * a.inner;
    const uint32_t pitch = (uint32_t)a.wide * a.inner;
    const uint32_t from_pitch = pitch * U;
    // planes of dy that count for this one of dx, from plane `first_z` on
    constexpr int PLANES = VOLUME ? BEFORE + U + BEHIND : 1;
    const int first_z = VOLUME ? U * at.depth - BEFORE : 0;
    const size_t dy_plane = plane * (U * U);
    const T *dy = static_cast<const T *>(a.from) +
                  ((intptr_t)(at.outer * (VOLUME ? (uint32_t)(U * a.deep) : 1u)) + first_z) *
                      (intptr_t)dy_plane +
                  (size_t)(uint32_t)at.column * U * a.inner + at.channel;
    float share[PLANES]; // 0: there is no such plane
    int plane_of[PLANES];
#pragma unroll
    for (int d = 0; d < PLANES; ++d) {
        share[d] = 1.0f;
        plane_of[d] = d;
        if constexpr (VOLUME) {
            // sample d - BEFORE lies between planes p and p + 1, as along a line
            const int out = d - BEFORE;
            const int p = (out + 2 * U - way::FIRST) / U - 2, j = (out + 2 * U - way::FIRST) % U;
            const bool there = (uint32_t)(first_z + d) < (uint32_t)(U * a.deep);
            float of = p == 0 ? way::left(j) : way::right(j);
            if constexpr (MIRRORS_DEEP) {
                share[d] = of;
                if (out < 0 && at.depth == 0) plane_of[d] = 2 * BEFORE - 1 - d;
                if (out >= U && at.depth == a.deep - 1) plane_of[d] = 2 * (BEFORE + U) - 1 - d;
                continue;
            }
            if (near) of = p == 0 ? 1.0f : 0.0f;
            // beyond the edges is the edge
            else if ((p == -1 && at.depth == 0) || (p == 0 && at.depth == a.deep - 1)) of = 1.0f;
            share[d] = there ? of : 0.0f;
        }
    }
    const bool first = at.column == 0, last = at.column + K == a.wide;
    const int rows = a.high * U;
    const int inner = (int)a.inner;
    auto load_one = [&](const T *p, samples &s) {
        if constexpr (APART) {
#pragma unroll
            for (int i = 0; i < U * K; ++i) s.own[i].load(p + i * a.inner);
#pragma unroll
            for (int i = 0; i < BEFORE; ++i) {
                if (MIRRORS) s.before[i].load(p + (first ? BEFORE - 1 - i : i - BEFORE) * inner);
                else if (!first) s.before[i].load(p - (BEFORE - i) * a.inner);
            }
#pragma unroll
            for (int i = 0; i < BEHIND; ++i) {
                if (MIRRORS) s.behind[i].load(p + (last ? U * K - 1 - i : U * K + i) * inner);
                else if (!last) s.behind[i].load(p + (U * K + i) * a.inner);
            }
        } else {
            s.own[0].load(p);
            if (!first) s.before[0].load(p - BEFORE);
            if (BEHIND > 0 && !last) s.behind[0].load(p + U * K);
        }
    };
    auto load = [&](int row, samples *s) {
        const T *p = dy + (uint32_t)row * (size_t)from_pitch;
#pragma unroll
        for (int d = 0; d < PLANES; ++d) {
            if (!VOLUME || share[d] != 0.0f) load_one(p + plane_of[d] * dy_plane, s[d]);
        }
    };
    auto gather_one = [&](const samples &s, float *sum) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            float pixel[K];
#pragma unroll
            for (int k = 0; k < K; ++k) pixel[k] = 0.0f;
#pragma unroll
            for (int i = 0; i < ALL; ++i) {
                // sample i - BEFORE lies between pixels p and p + 1
                const int out = i - BEFORE;
                const int p = (out + 2 * U - way::FIRST) / U - 2,
                          j = (out + 2 * U - way::FIRST) % U;
                const bool is_before = out < 0, is_behind = out >= U * K;
                float value;
                const int of_before = is_before ? i : 0, of_behind = is_behind ? out - U * K : 0;
                if constexpr (APART) {
                    if (is_before) value = wd_widen(s.before[of_before].get(v));
                    else if (is_behind) value = wd_widen(s.behind[of_behind].get(v));
                    else value = wd_widen(s.own[out >= 0 && out < U * K ? out : 0].get(v));
                } else {
                    if (is_before) value = wd_widen(s.before[0].get(of_before));
                    else if (is_behind) value = wd_widen(s.behind[0].get(of_behind));
                    else value = wd_widen(s.own[0].get(out >= 0 && out < U * K ? out : 0));
                }
                if (!MIRRORS && is_before && first) value = 0.0f;
                if (!MIRRORS && is_behind && last) value = 0.0f;
                // nearest: all of it is the left pixel's, whatever the other's would be
                const float right = near ? 0.0f : way::right(j) * value;
                const float left = near ? value : way::left(j) * value;
                if (p >= 0 && p < K) pixel[p] += left;
                if (p + 1 >= 0 && p + 1 < K && way::right(j) != 0.0f) pixel[p + 1] += right;
                // beyond the edges is the edge
                if (MIRRORS) continue;
                if (p == -1 && !is_before && first) pixel[0] += left;
                if (p == K - 1 && !is_behind && last && way::right(j) != 0.0f) {
                    pixel[K - 1] += right;
                }
            }
#pragma unroll
            for (int k = 0; k < K; ++k) sum[k * V + v] = pixel[k];
        }
    };
    // ROUND: then line `next` is asked for, where `more` is
    auto gather = [&](samples *s, float *sum, bool more, int next) {
        const T *after = dy + (uint32_t)next * (size_t)from_pitch;
        gather_one(s[0], sum);
        if (ROUND && more) load_one(after + plane_of[0] * dy_plane, s[0]);
        if constexpr (VOLUME) {
#pragma unroll
            for (int e = 0; e < K * V; ++e) sum[e] = share[0] != 0.0f ? share[0] * sum[e] : 0.0f;
#pragma unroll
            for (int d = 1; d < PLANES; ++d) {
                float other[K * V];
                if (share[d] == 0.0f) continue;
                gather_one(s[d], other);
                if (ROUND && more) load_one(after + plane_of[d] * dy_plane, s[d]);
#pragma unroll
                for (int e = 0; e < K * V; ++e) sum[e] += share[d] * other[e];
            }
        }
    };
    float lower[K * V], upper[K * V], made[K * V];
#pragma unroll
    for (int e = 0; e < K * V; ++e) upper[e] = 0.0f;
    T *dx = static_cast<T *>(a.out) +
            ((size_t)at.outer * (VOLUME ? (uint32_t)a.deep : 1u) + (uint32_t)at.depth) * plane +
            (uint32_t)at.column * a.inner + at.channel;
    samples s[SLOTS][PLANES];
    int p = at.begin - (near ? 0 : 1);
    int row = U * p + way::FIRST; /* the first sample between rows p and p + 1 */
    bool have = false;
    if constexpr (SLOTS > 1) {
#pragma unroll
        for (int j = 0; j < U; ++j) {
            if (row + j >= 0 && row + j < rows) load(row + j, s[j]);
        }
    }
    for (; p < at.end; ++p) {
#pragma unroll
        for (int e = 0; e < K * V; ++e) lower[e] = 0.0f;
#pragma unroll
        for (int j = 0; j < U; ++j, ++row) {
            constexpr int NEXT = SLOTS > 1 ? U : 1;
            const int slot = SLOTS > 1 ? j : 0;
            // of row `begin` - 1 nothing is wanted
            const bool wanted =
                (uint32_t)row < (uint32_t)rows && (p >= at.begin || way::right(j) != 0.0f);
            if (SLOTS == 1 && !wanted) continue;
            if (SLOTS == 1 && !have) load(row, s[0]);
            have = (AHEAD || ROUND) && row + NEXT < rows &&
                   (SLOTS > 1 ? p + 1 < at.end : !(p + 1 >= at.end && j + 1 == U));
            gather(s[slot], made, have, row + NEXT);
            if (!ROUND && have) load(row + NEXT, s[slot]);
            if (!wanted) continue;
            const float up = near || p + 1 >= a.high ? 1.0f : way::left(j);
            const float down = p < 0 ? 1.0f : way::right(j);
#pragma unroll
            for (int e = 0; e < K * V; ++e) upper[e] += up * made[e];
            if (way::right(j) != 0.0f && !near) {
#pragma unroll
                for (int e = 0; e < K * V; ++e) lower[e] += down * made[e];
            }
        }
        if (p >= at.begin) {
            constexpr int STORES = V > 1 ? K : 1, N = K * V / STORES;
#pragma unroll
            for (int k = 0; k < STORES; ++k) {
                put_up<T, N, float>(a, dx + (uint32_t)p * pitch + k * a.inner, upper + k * N);
            }
        }
#pragma unroll
        for (int e = 0; e < K * V; ++e) upper[e] = lower[e];
    }
}

} // namespace

#endif
