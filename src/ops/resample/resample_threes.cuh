// SPDX-License-Identifier: Apache-2.0
//
// Maxima of planes by windows of three rows and columns, by two, and their gradients, where there are half
// as many windows as columns: a thread has a few windows side by side, whose pixels are whole runs but for
// one column, and walks down the rows. Padding is no candidate.
#ifndef WD_OPS_RESAMPLE_THREES_CUH
#define WD_OPS_RESAMPLE_THREES_CUH

#include "ops/resample/resample_places.cuh"

namespace {

// Where a thread is: windows column .. of rows begin .. end-1 of windows, or what is between them.
struct threes_place {
    bool there;
    int column;
    int begin;
    int end;
    uint32_t plane;
    __device__ __forceinline__ threes_place(const resample_threes_args &a, int windows, int rows)
    {
        const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
        there = item < a.p.count;
        uint32_t n = item;
        column = (int)wd_take_rest(n, a.p.by_column) * windows;
        begin = (int)wd_take_rest(n, a.p.by_row) * a.rows;
        end = min(begin + a.rows, rows);
        plane = n;
    }
};

// V windows' pixels of a line, of which there may be none: then, and beside the image, less than any.
template <class T, int V> struct threes_line {
    wd_run<T, 2 * V> own;
    T side; /* the column before or behind them */

    __device__ __forceinline__ void load(const T *line, bool there, int beside, bool has_side)
    {
        wd_narrow(side, __uint_as_float(0xff800000u));
#pragma unroll
        for (int i = 0; i < 2 * V; ++i) own.put(i, side);
        if (!there) return;
        own.load(line);
        if (has_side) side = line[beside];
    }

    // The largest of each window's three, and its column.
    __device__ __forceinline__ void look(bool before, float *most, int *at) const
    {
        float pixel[2 * V + 1];
#pragma unroll
        for (int i = 0; i <= 2 * V; ++i) {
            const float shifted = wd_widen(i > 0 ? own.get(i > 0 ? i - 1 : 0) : side);
            const float straight = wd_widen(i < 2 * V ? own.get(i < 2 * V ? i : 0) : side);
            pixel[i] = before ? shifted : straight;
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
            most[j] = pixel[2 * j];
            at[j] = 0;
#pragma unroll
            for (int c = 1; c < 3; ++c) {
                const float v = pixel[2 * j + c];
                at[j] = v > most[j] ? c : at[j];
                most[j] = wd_largest(most[j], v);
            }
        }
    }
};

template <class T> __device__ __forceinline__ void resample_threes(const resample_threes_args &a)
{
    constexpr int V = RESAMPLE_THREES;
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    const threes_place t(a, V, h.windows);
    if (!t.there) return;
    const bool before = w.pad != 0; // the column beside a thread's is the one before them
    const int beside = before ? -1 : 2 * V;
    const bool has_side = before ? t.column > 0 : 2 * (t.column + V) < w.image;
    const T *plane =
        static_cast<const T *>(a.p.from) + (size_t)t.plane * (uint32_t)h.image * (uint32_t)w.image;
    const int low = 2 * t.begin - h.pad;
    auto load = [&](int line, threes_line<T, V> &to) {
        const bool there = (uint32_t)line < (uint32_t)h.image;
        to.load(plane + (size_t)(uint32_t)line * (uint32_t)w.image + (uint32_t)(2 * t.column),
                there, beside, has_side);
    };
    float top[V]; // of the line that a row of windows shares with the one before
    int top_at[V];
    threes_line<T, V> line[2];
    load(low, line[0]);
    line[0].look(before, top, top_at);
    load(low + 1, line[0]);
    load(low + 2, line[1]);
    size_t out = ((size_t)t.plane * (uint32_t)h.windows + (uint32_t)t.begin) * (uint32_t)w.windows +
                 (uint32_t)t.column;
#pragma unroll 1
    for (int row = t.begin; row < t.end; ++row, out += (uint32_t)w.windows) {
        float best[V], most[2][V];
        int place[V], at[2][V];
#pragma unroll
        for (int r = 0; r < 2; ++r) line[r].look(before, most[r], at[r]);
        if (row + 1 < t.end) {
#pragma unroll
            for (int r = 0; r < 2; ++r) load(2 * row - h.pad + 3 + r, line[r]);
        }
        bool again = false; // without a number above minus infinity, or with NaN
#pragma unroll
        for (int j = 0; j < V; ++j) {
            best[j] = top[j];
            place[j] = top[j] > __uint_as_float(0xff800000u) ? top_at[j] : -1;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                place[j] = most[r][j] > best[j] ? 3 * (r + 1) + at[r][j] : place[j];
                best[j] = wd_largest(best[j], most[r][j]);
            }
            again = again || place[j] < 0 || best[j] != best[j];
            top[j] = most[1][j];
            top_at[j] = at[1][j];
        }
        if (again) {
#pragma unroll 1
            for (int j = 0; j < V; ++j) {
                const int corner[3] = {0, 2 * row - h.pad, 2 * (t.column + j) - w.pad};
                exact_place<T>(a.p, plane, out + j, corner);
            }
            continue;
        }
        if (a.p.plain) {
            wd_run<T, V> run;
#pragma unroll
            for (int j = 0; j < V; ++j) {
                T narrow;
                wd_narrow(narrow, best[j]);
                run.put(j, narrow);
            }
            put_plain<T, V>(a.p, out, run);
        } else {
            wd_put_run<T, V>(a.p, out, best);
        }
        store_places<V>(a.p.places, a.p.place_size, out, place);
    }
}

// A thread has 16 bytes of each row of dx; line by line of windows, it adds to the three rows that one may
// hand something to, the first two of which are then done with.
template <class T>
__device__ __forceinline__ void resample_threes_back(const resample_threes_args &a)
{
    constexpr int C = 16 / (int)sizeof(T), V = C / 2, ALL = 2 * (V + 1) + 1;
    constexpr int AHEAD = sizeof(T) == 4 ? 3 : 2; /* lines */
    const resample_places_axis &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    const threes_place t(a, V, (h.image + h.pad + 1) / 2);
    if (!t.there) return;
    // the window beside a thread's is the one behind them; or the one before them
    const bool behind = w.pad != 0;
    const int beside = behind ? V : -1;
    const bool has_side = behind ? t.column + V < w.windows : t.column > 0;
    const size_t plane = (size_t)t.plane * (uint32_t)h.image * (uint32_t)w.image;
    const size_t windows =
        (size_t)t.plane * (uint32_t)h.windows * (uint32_t)w.windows + (uint32_t)t.column;
    struct shares {
        wd_run<T, V> own;
        T side;
        place_bytes<V> place;
        place_bytes<1> side_place;
    };
    auto load = [&](int line, shares &to) {
        wd_narrow(to.side, 0.0f);
        to.place.clear();
        to.side_place.clear();
#pragma unroll
        for (int j = 0; j < V; ++j) to.own.put(j, to.side);
        if ((uint32_t)line >= (uint32_t)h.windows) return;
        const size_t at = windows + (size_t)(uint32_t)line * (uint32_t)w.windows;
        to.own.load(static_cast<const T *>(a.p.from) + at);
        to.place.load(a.p.places, a.p.place_size, at);
        if (!has_side) return;
        to.side = static_cast<const T *>(a.p.from)[at + beside];
        to.side_place.load(a.p.places, a.p.place_size, at + beside);
    };
    float open[3][ALL];
    auto add = [&](const shares &s) {
    // earlier windows first; window j of them all begins at place 2 j of a row
#pragma unroll
        for (int j = 0; j <= V; ++j) {
            const float later = wd_widen(j < V ? s.own.get(j < V ? j : 0) : s.side);
            const float earlier = wd_widen(j > 0 ? s.own.get(j > 0 ? j - 1 : 0) : s.side);
            const int later_place = j < V ? s.place.get(j < V ? j : 0) : s.side_place.get(0);
            const int earlier_place = j > 0 ? s.place.get(j > 0 ? j - 1 : 0) : s.side_place.get(0);
            const float share = behind ? later : earlier;
            const int place = behind ? later_place : earlier_place;
#pragma unroll
            for (int k = 0; k < 3; ++k) {
#pragma unroll
                for (int c = 0; c < 3; ++c) {
                    if (place == 3 * k + c) open[k][2 * j + c] += share;
                }
            }
        }
    };
    auto turn = [&] {
#pragma unroll
        for (int i = 0; i < ALL; ++i) {
            open[0][i] = open[2][i];
            open[1][i] = open[2][i] = 0.0f;
        }
    };
    auto put = [&](int row, const float *sum) {
        if ((uint32_t)row >= (uint32_t)h.image) return;
        const size_t to =
            plane + (size_t)(uint32_t)row * (uint32_t)w.image + (uint32_t)(2 * t.column);
        float value[C];
#pragma unroll
        for (int i = 0; i < C; ++i) value[i] = behind ? sum[i + 1] : sum[i + 2];
        if (!a.p.plain) {
            wd_put_run<T, C>(a.p, to, value);
            return;
        }
        wd_run<T, C> run;
#pragma unroll
        for (int i = 0; i < C; ++i) {
            T narrow;
            wd_narrow(narrow, value[i]);
            run.put(i, narrow);
        }
        put_plain<T, C>(a.p, to, run);
    };
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int i = 0; i < ALL; ++i) open[k][i] = 0.0f;
    }
    // as many lines ahead
    shares s[AHEAD];
    load(t.begin - 1, s[0]);
    add(s[0]);
#pragma unroll
    for (int l = 0; l < AHEAD; ++l) load(t.begin + l, s[l]);
#pragma unroll 1
    for (int begin = t.begin; begin < t.end; begin += AHEAD) {
#pragma unroll
        for (int l = 0; l < AHEAD; ++l) {
            const int line = begin + l;
            if (line >= t.end) break;
            turn();
            add(s[l]);
            if (line + AHEAD < t.end) load(line + AHEAD, s[l]);
            put(2 * line - h.pad, open[0]);
            put(2 * line - h.pad + 1, open[1]);
        }
    }
}

} // namespace

#endif
