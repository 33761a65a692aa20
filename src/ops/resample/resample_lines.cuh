// SPDX-License-Identifier: Apache-2.0
//
// Maxima with their places, and their gradients, of windows of whole pixels, from staged lines: planes,
// channels and pointers of any alignment. Memory is read by 16 bytes; a thread has a few elements of a
// line, a walk's width apart, and walks down the rows.
#ifndef WD_OPS_RESAMPLE_LINES_CUH
#define WD_OPS_RESAMPLE_LINES_CUH

#include "gpu/device/async.cuh"
#include "gpu/device/shared.cuh"
#include "ops/resample/resample_places.cuh"

namespace {

// Bytes low .. high-1 of lines that lie `line` apart, the first one of which begins at `first`: each
// from the 16-byte boundary before its byte `low`, a pitch apart.
struct line_stage {
    const unsigned char *tensor;
    size_t bytes;
    size_t first;
    size_t line;
    int64_t low; /* may lie before the line, whose bytes are 0 .. line-1 */
    int64_t high;
};

__device__ __forceinline__ void stage_padded(const line_stage &s, unsigned char *to, uint32_t pitch,
                                             const wd_fastdiv &by_chunks, uint32_t lines)
{
    const uintptr_t begin = (uintptr_t)s.tensor, end = begin + s.bytes;
    for (uint32_t item = threadIdx.x; item < lines * by_chunks.divisor; item += blockDim.x) {
        uint32_t l = item;
        const uint32_t chunk = wd_take_rest(l, by_chunks);
        const uintptr_t line = begin + s.first + (size_t)l * s.line;
        const uintptr_t slot = (line + (uintptr_t)s.low) / 16 * 16;
        const uintptr_t source = slot + 16 * (uintptr_t)chunk;
        const uintptr_t from = s.low < 0 ? line : line + (uintptr_t)s.low;
        const uintptr_t till = line + (uintptr_t)min(s.high, (int64_t)s.line);
        if (source + 16 <= from || source >= till) continue;
        unsigned char *at = to + (size_t)l * pitch + 16 * chunk;
        if (source >= begin && source + 16 <= end) {
            wd_copy_async<16, false>(at, reinterpret_cast<const void *>(source));
        } else { // what lies around the tensor is not read
            for (uint32_t i = 0; i < 16; ++i) {
                if (source + i < from || source + i >= till) continue;
                at[i] = *reinterpret_cast<const unsigned char *>(source + i);
            }
        }
    }
}

// Where a block and a thread are.
struct line_walker {
    uint32_t thread;
    uint32_t unit; /* of the line, where the stretch begins, and its units */
    uint32_t units;
    int first_row; /* of the block */
    int last_row;
    int begin; /* of the walk */
    int end;
    int depth;
    uint32_t outer;
    __device__ __forceinline__ line_walker(const resample_lines_args &a, int out)
    {
        uint32_t n = blockIdx.x;
        unit = wd_take_rest(n, a.p.by_column) * a.segment;
        units = min(a.segment, a.units - unit);
        first_row = (int)(wd_take_rest(n, a.p.by_row) * a.walks * a.rows);
        depth = (int)wd_take_rest(n, a.p.by_depth);
        outer = n;
        const uint32_t walk = threadIdx.x / a.threads;
        thread = threadIdx.x - walk * a.threads;
        last_row = min(first_row + (int)(a.walks * a.rows), out) - 1;
        begin = min(first_row + (int)(walk * a.rows), out);
        end = min(begin + (int)a.rows, out);
    }
};

template <class T> __device__ __forceinline__ T lowest_of(void)
{
    T value;
    wd_narrow(value, (acc<T>)__uint_as_float(0xff800000u));
    return value;
}

template <class T> __device__ __forceinline__ void resample_lines(const resample_lines_args &a)
{
    typedef acc<T> A;
    constexpr int L = RESAMPLE_PLACES;
    const resample_places_axis &d = a.p.axis[0], &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    const line_walker at(a, h.windows);
    unsigned char *stage = wd_dynamic_shared<unsigned char>();
    const uint32_t step = a.p.inner * (uint32_t)sizeof(T);
    const int left = (int)wd_fastdiv_quotient(at.unit, a.by_inner);
    const int right = (int)wd_fastdiv_quotient(at.unit + at.units - 1, a.by_inner);
    const int c0 = left * w.stride - w.pad, c1 = right * w.stride - w.pad + w.window;
    const int line0 = max(at.first_row * h.stride - h.pad, 0);
    const int line1 = min(at.last_row * h.stride - h.pad + h.window, h.image);
    const uint32_t lines = (uint32_t)max(line1 - line0, 0);
    const int low_z = at.depth * d.stride - d.pad;
    const int z0 = max(-low_z, 0), z1 = min(d.window, d.image - low_z);
    line_stage s;
    s.tensor = static_cast<const unsigned char *>(a.p.from);
    s.bytes = (size_t)a.bytes;
    s.line = (size_t)w.image * step;
    s.low = (int64_t)c0 * step;
    s.high = (int64_t)c1 * step;
    const size_t plane = (size_t)h.image * s.line;
    const size_t image = (size_t)at.outer * (uint32_t)d.image * plane;
    for (int z = z0; z < z1; ++z) {
        s.first = image + (size_t)(low_z + z) * plane + (size_t)line0 * s.line;
        stage_padded(s, stage + (size_t)((uint32_t)(z - z0) * a.lines) * a.pitch, a.pitch,
                     a.by_chunks, lines);
    }
    uint32_t offset[L];
#pragma unroll
    for (int l = 0; l < L; ++l) {
        uint32_t column = at.unit + min(at.thread + l * a.threads, at.units - 1);
        const uint32_t channel = wd_take_rest(column, a.by_inner);
        offset[l] =
            (column - (uint32_t)left) * (uint32_t)w.stride * step + channel * (uint32_t)sizeof(T);
    }
    wd_copies_wait_all();
    __syncthreads();
    // the line that is `line` of depth z: where its column c0 is
    const uint32_t phase =
        (uint32_t)((uintptr_t)s.tensor + image + (size_t)line0 * s.line + (size_t)s.low);
    auto line_at = [&](int z, int line) {
        const uint32_t shift = (phase + (uint32_t)(low_z + z) * (uint32_t)plane +
                                (uint32_t)(line - line0) * (uint32_t)s.line) %
                               16;
        return stage + ((uint32_t)(z - z0) * a.lines + (uint32_t)(line - line0)) * a.pitch + shift;
    };
    // padding is lower than all others
    if (c0 < 0 || c1 > w.image) {
        const uint32_t before = (uint32_t)max(min(-c0, c1 - c0), 0) * a.p.inner;
        const uint32_t behind = (uint32_t)max(c1 - max(w.image, c0), 0) * a.p.inner;
        for (int z = z0; z < z1; ++z) {
            for (uint32_t line = threadIdx.x / 32; line < lines; line += blockDim.x / 32) {
                T *to = reinterpret_cast<T *>(line_at(z, line0 + (int)line));
                for (uint32_t i = threadIdx.x % 32; i < before; i += 32) to[i] = lowest_of<T>();
                to += (uint32_t)(c1 - c0) * a.p.inner - behind;
                for (uint32_t i = threadIdx.x % 32; i < behind; i += 32) to[i] = lowest_of<T>();
            }
        }
        __syncthreads();
    }
    const int wide = w.window;
    const size_t out_line = (size_t)(uint32_t)w.windows * a.p.inner;
    size_t out =
        (((size_t)at.outer * (uint32_t)d.windows + at.depth) * (uint32_t)h.windows + at.begin) *
            out_line +
        at.unit + at.thread;
    for (int row = at.begin; row < at.end; ++row, out += out_line) {
        const int low = row * h.stride - h.pad;
        const int r0 = max(-low, 0), r1 = min(h.window, h.image - low);
        A best[L];
        int place[L];
#pragma unroll
        for (int l = 0; l < L; ++l) {
            best[l] = (A)__uint_as_float(0xff800000u);
            place[l] = -1;
        }
        for (int z = z0; z < z1; ++z) {
            for (int r = r0; r < r1; ++r) {
                const unsigned char *line = line_at(z, low + r);
                const int first = (z * h.window + r) * wide;
#pragma unroll
                for (int l = 0; l < L; ++l) {
                    const unsigned char *from = line + offset[l];
#pragma unroll 1
                    for (int c = 0; c < wide; ++c) {
                        const A v =
                            wd_widen(*reinterpret_cast<const T *>(from + (uint32_t)c * step));
                        const bool wins = v > best[l];
                        best[l] = wd_largest(best[l], v);
                        place[l] = wins ? first + c : place[l];
                    }
                }
            }
        }
        uint32_t again = 0; // without a number above minus infinity, or with NaN: from memory
#pragma unroll
        for (int l = 0; l < L; ++l) {
            if (at.thread + l * a.threads >= at.units) continue;
            if (place[l] < 0 || best[l] != best[l]) {
                again |= 1u << l;
                continue;
            }
            wd_put_run<T, 1>(a.p, out + l * a.threads, &best[l]);
            store_places<1>(a.p.places, a.p.place_size, out + l * a.threads, &place[l]);
        }
#pragma unroll 1
        for (uint32_t l = 0; again != 0; ++l, again >>= 1) {
            if (!(again & 1)) continue;
            uint32_t column = at.unit + at.thread + l * a.threads;
            const uint32_t channel = wd_take_rest(column, a.by_inner);
            const int corner[3] = {low_z, low, (int)column * w.stride - w.pad};
            exact_place<T>(a.p, static_cast<const T *>(a.p.from) + image / sizeof(T) + channel,
                           out + l * a.threads, corner);
        }
    }
}

// The windows over element k of an axis: last, last - 1, ...
struct over_one {
    int last;
    int count;
    __device__ __forceinline__ over_one(const resample_places_axis &x, const wd_fastdiv &by_stride,
                                        int k)
    {
        const int before = k + x.pad - x.window;
        const int first =
            before < 0 ? 0 : (int)wd_fastdiv_quotient((uint32_t)before, by_stride) + 1;
        last = min((int)wd_fastdiv_quotient((uint32_t)(k + x.pad), by_stride), x.windows - 1);
        count = max(last - first + 1, 0);
    }
};

template <class T> __device__ __forceinline__ void resample_lines_back(const resample_lines_args &a)
{
    typedef acc<T> A;
    constexpr int L = RESAMPLE_PLACES;
    const resample_places_axis &d = a.p.axis[0], &h = a.p.axis[1], &w = a.p.axis[2];
    wd_wait_for_previous();
    const line_walker at(a, h.image);
    unsigned char *stage = wd_dynamic_shared<unsigned char>();
    unsigned char *place_stage = stage + a.places_at;
    const uint32_t size = (uint32_t)a.p.place_size;
    const int left = (int)wd_fastdiv_quotient(at.unit, a.by_inner);
    const int right = (int)wd_fastdiv_quotient(at.unit + at.units - 1, a.by_inner);
    const over_one of_left(w, a.by_stride[2], left), of_right(w, a.by_stride[2], right);
    const over_one top(h, a.by_stride[1], at.first_row), bottom(h, a.by_stride[1], at.last_row);
    const over_one deep(d, a.by_stride[0], at.depth);
    const int q0 = max(min(of_left.last - of_left.count + 1, w.windows - 1), 0);
    const int q1 = max(of_right.last + 1, q0);
    const int line0 = max(top.last - top.count + 1, 0);
    const uint32_t lines = (uint32_t)max(bottom.last + 1 - line0, 0);
    const int z0 = deep.last - deep.count + 1;
    const size_t line_units = (size_t)w.windows * a.p.inner;
    const size_t plane_units = (size_t)h.windows * line_units;
    const size_t image_units = (size_t)at.outer * (uint32_t)d.windows * plane_units;
    for (int part = 0; part < 2; ++part) {
        line_stage s;
        const size_t bytes = part ? size : (uint32_t)sizeof(T);
        s.tensor = static_cast<const unsigned char *>(part ? a.p.places : a.p.from);
        s.bytes = (size_t)(part ? a.place_bytes : a.bytes);
        s.line = line_units * bytes;
        s.low = (int64_t)q0 * a.p.inner * (int64_t)bytes;
        s.high = (int64_t)q1 * a.p.inner * (int64_t)bytes;
        for (int z = 0; z < deep.count; ++z) {
            const uint32_t pitch = part ? a.place_pitch : a.pitch;
            s.first =
                (image_units + (size_t)(z0 + z) * plane_units + (size_t)line0 * line_units) * bytes;
            stage_padded(s, (part ? place_stage : stage) + (size_t)((uint32_t)z * a.lines) * pitch,
                         pitch, part ? a.by_place_chunks : a.by_chunks, lines);
        }
    }
    // of each element the window that is last over its column, and its place there
    uint32_t offset[L];
    int spot[L];
    int count[L];
#pragma unroll
    for (int l = 0; l < L; ++l) {
        uint32_t column = at.unit + min(at.thread + l * a.threads, at.units - 1);
        const uint32_t channel = wd_take_rest(column, a.by_inner);
        const over_one over(w, a.by_stride[2], (int)column);
        count[l] = over.count;
        spot[l] = (int)column + w.pad - over.last * w.stride;
        offset[l] = (uint32_t)(over.last - q0) * a.p.inner + channel;
    }
    wd_copies_wait_all();
    __syncthreads();
    const uint32_t first_unit = (uint32_t)(image_units + (size_t)z0 * plane_units +
                                           (size_t)line0 * line_units + (size_t)q0 * a.p.inner);
    const uint32_t phase = (uint32_t)(uintptr_t)a.p.from + first_unit * (uint32_t)sizeof(T);
    const uint32_t place_phase = (uint32_t)(uintptr_t)a.p.places + first_unit * size;
    const size_t out_line = (size_t)(uint32_t)w.image * a.p.inner;
    size_t out =
        (((size_t)at.outer * (uint32_t)d.image + at.depth) * (uint32_t)h.image + at.begin) *
            out_line +
        at.unit + at.thread;
    for (int row = at.begin; row < at.end; ++row, out += out_line) {
        const over_one down(h, a.by_stride[1], row);
        A sum[L];
#pragma unroll
        for (int l = 0; l < L; ++l) sum[l] = 0;
        for (int z = 0; z < deep.count; ++z) {
            const int of_depth = (at.depth + d.pad - (z0 + z) * d.stride) * h.window;
            for (int p = down.last - down.count + 1; p <= down.last; ++p) {
                const uint32_t units = (uint32_t)z * (uint32_t)plane_units +
                                       (uint32_t)(p - line0) * (uint32_t)line_units;
                const uint32_t slot = (uint32_t)z * a.lines + (uint32_t)(p - line0);
                const unsigned char *share =
                    stage + slot * a.pitch + (phase + units * (uint32_t)sizeof(T)) % 16;
                const unsigned char *where =
                    place_stage + slot * a.place_pitch + (place_phase + units * size) % 16;
                const int before = (of_depth + row + h.pad - p * h.stride) * w.window;
#pragma unroll
                for (int l = 0; l < L; ++l) {
                    // earlier windows first
#pragma unroll 1
                    for (int c = count[l] - 1; c >= 0; --c) {
                        const uint32_t e = offset[l] - (uint32_t)c * a.p.inner;
                        const int found =
                            size == 1 ? (int)where[e]
                                      : *reinterpret_cast<const int32_t *>(where + e * size);
                        if (found == before + spot[l] + c * w.stride) {
                            sum[l] += wd_widen(
                                *reinterpret_cast<const T *>(share + e * (uint32_t)sizeof(T)));
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int l = 0; l < L; ++l) {
            if (at.thread + l * a.threads < at.units) {
                wd_put_run<T, 1>(a.p, out + l * a.threads, &sum[l]);
            }
        }
    }
}

} // namespace

#endif
