// SPDX-License-Identifier: Apache-2.0
//
// Chains of pointwise operations in one pass: an interpreter whose instructions are uniform over the
// grid and work on a run of elements, so that what choosing an instruction costs is shared by them.
//
// A run is CHUNKS chunks of CHUNK elements; the chunks of a warp lie side by side, so that every load
// and store of a chunk is of whole sectors. Chunks of inputs that lie as the walk does are copied to
// shared memory ahead, those of the next run while this one is computed: each thread copies, keeps
// and reads what is its own, so nobody waits at a barrier. Other inputs are read where an instruction
// wants them. Every element is read before it is written, by the thread that writes it.
#include "gpu/device/async.cuh"
#include "gpu/device/depend.cuh"
#include "gpu/device/shared.cuh"
#include "gpu/device/vector.cuh"
#include "ops/pointwise/pointwise_chain_args.h"
#include "ops/pointwise/pointwise_device.cuh"

namespace {

// A: what is computed in.
template <class A, int CHUNK, int CHUNKS> struct chain {
    static constexpr int RUN = CHUNK * CHUNKS;
    static constexpr int KEPT_WORDS = RUN * (int)sizeof(A) / 16;

    const pointwise_chain_args &a;
    uint4 *shared;
    uint32_t first; // element of the run that is computed
    int stage;
    A *result; // local memory, as operands are: they are filled by functions

    static __device__ __forceinline__ bool is_whole(const pointwise_chain_args &a, uint32_t at)
    {
        return at >= a.skip && at < a.count && a.count - at >= CHUNK;
    }

    // Where a chunk that is loaded ahead lies in shared memory.
    static __device__ __forceinline__ int place_of(const pointwise_chain_args &a, int at_stage,
                                                   int slot, int chunk)
    {
        return ((at_stage * a.loads + slot) * CHUNKS + chunk) * (int)blockDim.x + (int)threadIdx.x;
    }

    __device__ __forceinline__ uint4 *kept(int place, int word) const
    {
        return shared + a.kept_at + (place * KEPT_WORDS + word) * (int)blockDim.x +
               (int)threadIdx.x;
    }

    // ---- loads ahead ----

    template <class S, bool AGAIN>
    static __device__ __forceinline__ void copy(uint4 *to, const pointwise_operand &o, int64_t at)
    {
        wd_copy_async<CHUNK *(int)sizeof(S), AGAIN>(to, static_cast<const S *>(o.data) + at);
    }

    template <bool AGAIN>
    static __device__ __forceinline__ void copy_chunk(uint4 *to, const pointwise_operand &o,
                                                      int64_t at)
    {
        if (o.dtype == CUDNN_DATA_FLOAT) copy<float, AGAIN>(to, o, at);
        else if (o.dtype != CUDNN_DATA_DOUBLE) copy<half16, AGAIN>(to, o, at);
        else if constexpr (sizeof(A) == 8) copy<double, AGAIN>(to, o, at);
    }

    __device__ __forceinline__ void request(uint32_t begin, int at_stage) const
    {
#pragma unroll 1
        for (int slot = 0; slot < a.loads; ++slot) {
            const pointwise_operand &o = a.operand[a.load[slot]];
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) {
                const uint32_t at = begin + c * blockDim.x * CHUNK;
                if (!is_whole(a, at)) continue;
                if (o.way == POINTWISE_FLAT)
                    copy_chunk<false>(shared + place_of(a, at_stage, slot, c), o, at);
                else
                    copy_chunk<true>(shared + place_of(a, at_stage, slot, c), o,
                                     offset_of(a, o, at));
            }
        }
        wd_copies_end();
    }

    // ---- operands ----

    template <class S> static __device__ __forceinline__ void unpack_as(A *to, const uint4 *from)
    {
        wd_run<S, CHUNK> run;
        run.load(reinterpret_cast<const S *>(from));
#pragma unroll
        for (int i = 0; i < CHUNK; ++i) to[i] = wd_widen(run.get(i));
    }

    static __device__ __forceinline__ void unpack(A *to, const uint4 *from, int dtype)
    {
        if (dtype == CUDNN_DATA_FLOAT) unpack_as<float>(to, from);
        else if (dtype == CUDNN_DATA_HALF) unpack_as<half16>(to, from);
        else if (dtype == CUDNN_DATA_BFLOAT16) unpack_as<bfloat16>(to, from);
        else if constexpr (sizeof(A) == 8) unpack_as<double>(to, from);
    }

    static __device__ __forceinline__ A load_one(const pointwise_operand &o, int64_t at)
    {
        if (o.dtype == CUDNN_DATA_FLOAT) return static_cast<const float *>(o.data)[at];
        else if (o.dtype == CUDNN_DATA_HALF) {
            return wd_widen(static_cast<const half16 *>(o.data)[at]);
        } else if (o.dtype == CUDNN_DATA_BFLOAT16) {
            return wd_widen(static_cast<const bfloat16 *>(o.data)[at]);
        } else if constexpr (sizeof(A) == 8) {
            return static_cast<const double *>(o.data)[at];
        }
        return (A)0;
    }

    // What lies along the walk, at an end; or how it will, to the next row where one ends.
    static __device__ __forceinline__ void pick(A *to, const pointwise_chain_args &a,
                                                const pointwise_operand &o, uint32_t at)
    {
        const uint32_t begin = at < a.skip ? a.skip : at;
        const uint32_t row = a.dim[a.rank - 1].divisor;
        const bool flat = o.way == POINTWISE_FLAT;
        const int64_t stride = flat ? 1 : o.stride[a.rank - 1];
        uint32_t left = 0;
        int64_t offset = begin;
        if (!flat && begin < a.count) {
            const uint32_t index = begin - a.skip;
            left = row - (index - wd_fastdiv_quotient(index, a.dim[a.rank - 1]) * row);
            offset = offset_of(a, o, index);
        }
#pragma unroll 1
        for (int i = 0; i < CHUNK; ++i) {
            to[i] = (A)0;
            if (at + i < begin || at + i >= a.count) continue;
            to[i] = load_one(o, offset);
            offset += stride;
            if (--left == 0 && !flat && at + i + 1 < a.count) {
                offset = offset_of(a, o, at + i + 1 - a.skip);
                left = row;
            }
        }
    }

    // An input's elements of the run at `begin`, into local memory: called from several places.
    static __device__ __noinline__ void fetch_input(A *to, const pointwise_chain_args &a,
                                                    const uint4 *shared, int stage, uint32_t begin,
                                                    int input)
    {
        const pointwise_operand &o = a.operand[input];
        const int slot = a.slot[input];
#pragma unroll 1
        for (int c = 0; c < CHUNKS; ++c, to += CHUNK) {
            const uint32_t at = begin + c * blockDim.x * CHUNK;
            const bool is_all = is_whole(a, at);
            if (slot >= 0 && is_all) {
                unpack(to, shared + place_of(a, stage, slot, c), o.dtype);
            } else if (o.way == POINTWISE_VALUE || (o.way == POINTWISE_REPEAT && is_all)) {
                const A one =
                    o.way == POINTWISE_VALUE ? (A)o.value : load_one(o, offset_of(a, o, at));
#pragma unroll
                for (int i = 0; i < CHUNK; ++i) to[i] = one;
            } else {
                pick(to, a, o, at);
            }
        }
    }

    __device__ __forceinline__ void fetch(A *to, int source) const
    {
        if (source == CHAIN_RESULT) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) to[i] = result[i];
        } else if (source >= CHAIN_INPUT) {
            fetch_input(to, a, shared, stage, first, source - CHAIN_INPUT);
        } else {
#pragma unroll
            for (int w = 0; w < KEPT_WORDS; ++w) {
                wd_run<A, 16 / (int)sizeof(A)> run;
                run.load(reinterpret_cast<const A *>(kept(source - CHAIN_KEPT, w)));
#pragma unroll
                for (int i = 0; i < 16 / (int)sizeof(A); ++i) {
                    to[w * (16 / (int)sizeof(A)) + i] = run.get(i);
                }
            }
        }
    }

    // ---- results ----

    __device__ __forceinline__ void keep(int place) const
    {
#pragma unroll
        for (int w = 0; w < KEPT_WORDS; ++w) {
            wd_run<A, 16 / (int)sizeof(A)> run;
#pragma unroll
            for (int i = 0; i < 16 / (int)sizeof(A); ++i) {
                run.put(i, result[w * (16 / (int)sizeof(A)) + i]);
            }
            run.store(reinterpret_cast<A *>(kept(place, w)));
        }
    }

    // Rounds to a narrower type, double by way of what two roundings cannot spoil.
    template <class S> static __device__ __forceinline__ void narrow(S &to, A value)
    {
        if constexpr (sizeof(A) == 8 && sizeof(S) == 2) wd_narrow(to, wd_round_odd(value));
        else if constexpr (sizeof(S) == 8) wd_narrow(to, (double)value);
        else wd_narrow(to, (float)value);
    }

    template <class S> __device__ __forceinline__ void round_as()
    {
#pragma unroll
        for (int i = 0; i < RUN; ++i) {
            S element;
            narrow(element, result[i]);
            result[i] = wd_widen(element);
        }
    }

    __device__ __forceinline__ void round(int to)
    {
        if (to == CHAIN_TO_F16) round_as<half16>();
        else if (to == CHAIN_TO_BF16) round_as<bfloat16>();
        else if (to == CHAIN_TO_F32 && sizeof(A) == 8) round_as<float>();
        else if (to == CHAIN_TO_BOOL) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) result[i] = (A)(result[i] != (A)0);
        }
    }

    template <class S>
    static __device__ __forceinline__ void write_as(const pointwise_chain_args &a,
                                                    const pointwise_operand &o, uint32_t at,
                                                    const A *value)
    {
        S *data = static_cast<S *>(o.data);
        if ((o.way == POINTWISE_FLAT || o.way == POINTWISE_ALONG) && is_whole(a, at)) {
            S *to = data + (o.way == POINTWISE_FLAT ? (int64_t)at : offset_of(a, o, at));
            wd_run<S, CHUNK> run;
#pragma unroll
            for (int i = 0; i < CHUNK; ++i) {
                S element;
                narrow(element, value[i]);
                run.put(i, element);
            }
            if (a.streaming) run.store_streaming(to);
            else run.store(to);
            return;
        }
#pragma unroll 1
        for (int i = 0; i < CHUNK; ++i) {
            int64_t offset = (int64_t)at + i;
            if (at + i < a.skip || at + i >= a.count) continue;
            if (o.way != POINTWISE_FLAT) offset = offset_of(a, o, at + i - a.skip);
            narrow(data[offset], value[i]);
        }
    }

    static __device__ __noinline__ void write_chunk(const pointwise_chain_args &a,
                                                    const pointwise_operand &o, uint32_t at,
                                                    const A *value)
    {
        if (o.dtype == CUDNN_DATA_FLOAT) write_as<float>(a, o, at, value);
        else if (o.dtype == CUDNN_DATA_HALF) write_as<half16>(a, o, at, value);
        else if (o.dtype == CUDNN_DATA_BFLOAT16) write_as<bfloat16>(a, o, at, value);
        else if constexpr (sizeof(A) == 8) write_as<double>(a, o, at, value);
    }

    __device__ __forceinline__ void write(int output) const
    {
#pragma unroll 1
        for (int c = 0; c < CHUNKS; ++c) {
            write_chunk(a, a.operand[a.inputs + output], first + c * blockDim.x * CHUNK,
                        result + c * CHUNK);
        }
    }

    // ---- instructions ----

    static __device__ __forceinline__ A factor(const pointwise_instruction &in, int which)
    {
        if constexpr (sizeof(A) == 8) return in.factor.f64[which];
        else return in.factor.f32[which];
    }

    static __device__ __forceinline__ wd_pointwise_attr attr_of(const pointwise_instruction &in,
                                                                int mode)
    {
        wd_pointwise_attr attr = {};
        attr.mode = mode;
        attr.propagate_nan = in.propagate_nan;
        attr.lower_clip = factor(in, CHAIN_LOWER_CLIP);
        attr.upper_clip = factor(in, CHAIN_UPPER_CLIP);
        attr.lower_slope = factor(in, CHAIN_LOWER_SLOPE);
        attr.elu_alpha = factor(in, CHAIN_ELU_ALPHA);
        attr.softplus_beta = factor(in, CHAIN_SOFTPLUS_BETA);
        attr.swish_beta = factor(in, CHAIN_SWISH_BETA);
        return attr;
    }

    // x[i] = MODE(x[i], b[i], t[i]), the mode known to the compiler; in local memory, one by one.
    template <int MODE>
    static __device__ __forceinline__ void each(const pointwise_instruction &in, A *x, const A *b,
                                                bool has_t)
    {
        const wd_pointwise_attr attr = attr_of(in, MODE);
#pragma unroll 1
        for (int i = 0; i < RUN; ++i) x[i] = value_of(&attr, x[i], b[i], x[i], has_t);
    }

    static __device__ __noinline__ void apply_any(const pointwise_instruction &in, A *x, const A *b)
    {
        switch (in.op) {
// clang-format off
#define WD_UNARY(mode) case CHAIN_OP_##mode: each<mode>(in, x, x, false); break;
#define WD_BINARY(mode) case CHAIN_OP_##mode: each<mode>(in, x, b, false); break;
#define WD_BY_OUTPUT(mode) case CHAIN_BY_##mode: each<mode>(in, x, b, true); break;
#include "ops/pointwise/pointwise_modes.def"
        // clang-format on
        default: break;
        }
    }

    // The frequent operations whose code is short, and all others.
    __device__ __forceinline__ void apply(const pointwise_instruction &in, const A *b, const A *t)
    {
        switch (in.op) {
        case CHAIN_CLAMP: {
            const A low = factor(in, CHAIN_LOWER_CLIP);
            const A high = factor(in, CHAIN_UPPER_CLIP);
#pragma unroll
            for (int i = 0; i < RUN; ++i) {
                if constexpr (sizeof(A) == 8) result[i] = fmin(fmax(result[i], low), high);
                else result[i] = fminf(fmaxf(result[i], low), high);
            }
            break;
        }
        case CHAIN_SELECT:
#pragma unroll
            for (int i = 0; i < RUN; ++i) result[i] = t[i] != 0 ? result[i] : b[i];
            break;
        case CHAIN_OP_CUDNN_POINTWISE_ADD:
#pragma unroll
            for (int i = 0; i < RUN; ++i) result[i] += b[i];
            break;
        case CHAIN_OP_CUDNN_POINTWISE_MUL:
#pragma unroll
            for (int i = 0; i < RUN; ++i) result[i] *= b[i];
            break;
        default: apply_any(in, result, b); break;
        }
    }

    __device__ __forceinline__ void scale(A *x, A factor)
    {
#pragma unroll
        for (int i = 0; i < RUN; ++i) x[i] = factor * x[i];
    }

    // The result of the instruction before it may be an operand of the next: x comes last.
    __device__ __forceinline__ void execute(const pointwise_instruction &in)
    {
        A b[RUN], t[RUN];
        if (in.t != CHAIN_NOTHING) fetch(t, in.t);
        if (in.b != CHAIN_NOTHING) fetch(b, in.b);
        if (in.x != CHAIN_RESULT) fetch(result, in.x);
        if (in.scales) {
            scale(result, factor(in, CHAIN_ALPHA1));
            if (in.b != CHAIN_NOTHING) scale(b, factor(in, CHAIN_ALPHA2));
        }
        apply(in, b, t);
        if (in.round != CHAIN_AS_IS) round(in.round);
        if (in.keep) keep(in.keep - 1);
        if (in.write) write(in.write - 1);
    }

    // The runs of a block's threads, one and then those a grid further.
    __device__ __forceinline__ void go()
    {
        A own[RUN];
        const uint32_t step = gridDim.x * blockDim.x * RUN;
        uint32_t begin = blockIdx.x * blockDim.x * RUN + threadIdx.x * CHUNK;
        stage = 0;
        result = own;
        wd_wait_for_previous();
        request(begin, 0);
        for (; begin < a.count; begin += step) {
            if (begin + step < a.count) request(begin + step, stage ^ 1);
            else wd_copies_end();
            wd_copies_wait<1>();
            first = begin;
#pragma unroll 1
            for (int i = 0; i < a.length; ++i) execute(a.program[i]);
            stage ^= 1;
        }
        wd_copies_wait<0>();
    }
};

template <class A, int CHUNK, int CHUNKS>
__device__ __forceinline__ void pointwise_chain(const pointwise_chain_args &a)
{
    chain<A, CHUNK, CHUNKS> c = {a, wd_dynamic_shared<uint4>()};
    c.go();
}

} // namespace
