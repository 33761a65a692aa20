// SPDX-License-Identifier: Apache-2.0
//
// Gradients of maxima of 3x3 windows at a stride of 2 over rows that flow through shared memory: a thread
// has a pair of columns of dx, finds the two windows over it, the left one once more than its neighbour
// does, and collects from them in registers. In 16 bits both windows are in a word.
//
// Columns and rows are counted within the padded image: of a pair 2j, 2j + 1 the first is in the windows
// j - 1 (on the right) and j (on the left), the second in the middle of window j.
#ifndef WD_OPS_POOLING_FLOW_MAX_CUH
#define WD_OPS_POOLING_FLOW_MAX_CUH

#include "ops/pooling/pooling_flow.cuh"

namespace {

// Where maxima are: the row of a window times 4, and the column. None has all bits.
constexpr uint32_t FLOW_NO_PLACE = 0xffffffffu;

// Places of both windows: of 16 bits in one word, else window `at`'s.
template <class T>
__device__ __forceinline__ constexpr uint32_t flow_code(uint32_t row, uint32_t left, uint32_t right,
                                                        int at)
{
    return sizeof(T) == 2 ? (row * 4 + left) | (row * 4 + right) << 16
                          : row * 4 + (at == 0 ? left : right);
}

__device__ __forceinline__ uint32_t flow_bits(float v)
{
    return __float_as_uint(v);
}
template <class T> __device__ __forceinline__ uint32_t flow_bits(T v)
{
    uint16_t bits;
    memcpy(&bits, &v, 2);
    return bits;
}

// The largest of both windows so far, and where; elements come in row-major order.
template <class T, int MODE> struct flow_places {
    static constexpr int WORDS = sizeof(T) == 2 ? 1 : 2;
    uint32_t value[WORDS];
    uint32_t code[WORDS];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            value[i] = sizeof(T) == 4 ? 0x7fc00000u : 0x7fff7fffu; // NaN
            code[i] = FLOW_NO_PLACE;
        }
    }
    // `in`: where there is an element; POOL_MAX: it is a NaN where there is none.
    __device__ __forceinline__ void take(int i, uint32_t v, uint32_t at, uint32_t in)
    {
        uint32_t takes;
        if (MODE == POOL_MAX) {
            const uint32_t most = wd_packed_larger<T, false>(value[i], v);
            takes = wd_packed_differ<T>(most, value[i]);
            value[i] = most;
        } else {
            const uint32_t number = ~wd_packed_differ<T>(value[i], value[i]);
            const uint32_t beats = number & ~wd_packed_within<T>(v, value[i]);
            const uint32_t none = wd_packed_differ<T>(code[i], code[i]); // all bits are a NaN
            takes = in & (none | beats);
            value[i] = (v & takes) | (value[i] & ~takes);
        }
        code[i] = (at & takes) | (code[i] & ~takes);
    }
    // The first element.
    __device__ __forceinline__ void start(int i, uint32_t v, uint32_t at, uint32_t in)
    {
        value[i] = v;
        code[i] = MODE == POOL_MAX ? at : at | ~in;
    }
    // Nothing, if not `there`.
    __device__ __forceinline__ void keep(bool there)
    {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            if (MODE == POOL_MAX)
                value[i] = there ? value[i] : sizeof(T) == 4 ? 0x7fc00000u : 0x7fff7fffu;
            else code[i] = there ? code[i] : FLOW_NO_PLACE;
        }
    }
    // What another row has, the row's number put to its codes, for codes count from its first row.
    __device__ __forceinline__ void join(const flow_places &other, uint32_t row)
    {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            const uint32_t there = ~wd_packed_differ<T>(other.code[i], other.code[i]);
            take(i, other.value[i], other.code[i] ^ flow_code<T>(row, 0, 0, i), there);
        }
    }
    __device__ __forceinline__ void finish()
    {
        if (MODE == POOL_MAX) {
#pragma unroll
            for (int i = 0; i < WORDS; ++i) code[i] |= wd_packed_differ<T>(value[i], value[i]);
        }
    }
};

// A unit is a pair of rows of x and the row of dy whose windows end with the first of them.
template <class T, int MODE> struct flow_maxima {
    static constexpr int MORE = 2;
    static constexpr int UNROLL = 1;
    using places = flow_places<T, MODE>;
    static constexpr int WORDS = places::WORDS;

    flow_columns<T, 5> columns;
    flow_columns<T, 2> windows;
    places now;
    uint32_t code[WORDS];                    // of the windows above
    uint32_t above[WORDS];                   // and their dy
    uint32_t to;                             // element of dx
    const unsigned char *line, *shares_line; // the next rows
    int row;                                 // of x: the tile's first
    int window;                              // of dy
    int h;                                   // of dx
    bool left_in, right_in;

    __device__ __forceinline__ void begin(const pool_flow_args &a, const flow_tile &t, uint32_t g,
                                          int q, int c)
    {
        columns.begin(a, a.from, a.x, t, g, q, c);
        windows.begin(a, a.shares, a.dy, t, g, q, c);
        row = 2 * t.unit + a.from.off[0];
        window = t.unit + a.shares.off[0];
        h = 2 * t.unit - (a.high.pad & 1);
        const int w = 2 * q - (a.wide.pad & 1);
        left_in = w >= 0;
        right_in = w + 1 < a.wide.image;
        // of what is outside none is written
        const uint32_t line_of = (t.outer + g) * (uint32_t)a.high.image + (uint32_t)h;
        to = (line_of * (uint32_t)a.wide.image + (uint32_t)w) * a.inner + (uint32_t)c;
        now.clear();
#pragma unroll
        for (int i = 0; i < WORDS; ++i) code[i] = FLOW_NO_PLACE, above[i] = 0;
    }
    __device__ __forceinline__ void step(const pool_flow_args &a, uint32_t slot)
    {
        line = columns.step(a, a.from, slot);
        shares_line = windows.step(a, a.shares, slot);
    }
    // Of the next row, which is row h_in, as the first row of windows.
    __device__ __forceinline__ void read(places &of_row, const pool_flow_args &a, int h_in)
    {
        const uint32_t step = a.inner * (uint32_t)sizeof(T);
        uint32_t v[5];
#pragma unroll
        for (int s = 0; s < 5; ++s) {
            v[s] = sizeof(T) == 4 ? 0x7fc00000u : 0x7fffu; // NaN
            if (columns.in[s]) v[s] = flow_bits(*reinterpret_cast<const T *>(line + s * step));
        }
        line += a.from.pitch;
#pragma unroll
        for (int s = 0; s < 3; ++s) {
#pragma unroll
            for (int i = 0; i < WORDS; ++i) {
                const bool half = sizeof(T) == 2;
                const uint32_t bits = half ? v[s] | v[s + 2] << 16 : v[s + 2 * i];
                const uint32_t in =
                    half ? (columns.in[s] ? 0xffffu : 0u) | (columns.in[s + 2] ? 0xffff0000u : 0u)
                         : (columns.in[s + 2 * i] ? 0xffffffffu : 0u);
                if (s == 0) of_row.start(i, bits, flow_code<T>(0, 0, 0, i), in);
                else of_row.take(i, bits, flow_code<T>(0, (uint32_t)s, (uint32_t)s, i), in);
            }
        }
        // of a row that there is not, whatever lies there
        of_row.keep((uint32_t)h_in < (uint32_t)a.from.rows);
    }
    // What windows hand to an element that is at these places of theirs. Of the left one nothing if it has
    // no such place: a column of 3 is none.
    __device__ __forceinline__ float given(const uint32_t (&of)[WORDS], const uint32_t (&dy)[WORDS],
                                           uint32_t r, uint32_t left, uint32_t right) const
    {
        if constexpr (sizeof(T) == 2) {
            const uint32_t gives =
                dy[0] & wd_packed_same_code<T>(of[0], flow_code<T>(r, left, right, 0));
            const float second = wd_packed_get<T>(gives, 1);
            return left < 3 ? wd_packed_get<T>(gives, 0) + second : second;
        } else {
            const float second =
                of[1] == flow_code<T>(r, left, right, 1) ? __uint_as_float(dy[1]) : 0.0f;
            const float first =
                of[0] == flow_code<T>(r, left, right, 0) ? __uint_as_float(dy[0]) : 0.0f;
            return left < 3 ? first + second : second;
        }
    }
    __device__ __forceinline__ void put(const pool_flow_args &a, float first, float second)
    {
        const bool there = (uint32_t)h < (uint32_t)a.high.image;
        flow_put<T>(a, to, first, there && left_in);
        flow_put<T>(a, to + a.inner, second, there && right_in);
        to += (uint32_t)a.wide.image * a.inner;
        h += 1;
    }
    __device__ __forceinline__ void unit(const pool_flow_args &a, int k, bool)
    {
        places first, second;
        uint32_t share[WORDS];
        read(first, a, row + 2 * k);
        read(second, a, row + 2 * k + 1);
        const bool there = (uint32_t)(window + k) < (uint32_t)a.shares.rows;
        const uint32_t step = a.inner * (uint32_t)sizeof(T);
        uint32_t v[2];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            v[s] = 0;
            if (windows.in[s])
                v[s] = flow_bits(*reinterpret_cast<const T *>(shares_line + s * step));
            v[s] = there ? v[s] : 0;
        }
        shares_line += a.shares.pitch;
        if constexpr (sizeof(T) == 2) share[0] = v[0] | v[1] << 16;
        else share[0] = v[0], share[WORDS - 1] = v[1];
        now.join(first, 2);
        now.finish();
        if (k >= MORE) {
            put(a, given(code, above, 2, 2, 0) + given(now.code, share, 0, 2, 0),
                given(code, above, 2, 3, 1) + given(now.code, share, 0, 3, 1));
            put(a, given(now.code, share, 1, 2, 0), given(now.code, share, 1, 3, 1));
        }
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            code[i] = now.code[i];
            above[i] = share[i];
        }
        now = first;
        now.join(second, 1);
    }
};

} // namespace

#endif
