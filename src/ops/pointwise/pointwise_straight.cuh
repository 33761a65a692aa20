// SPDX-License-Identifier: Apache-2.0
//
// Straight chains of pointwise operations: each takes the result of the one before and at most one
// operand besides. A thread has U runs of 16 bytes of every tensor, a block's width apart, so that a
// warp's loads and stores are whole lines, and asks for all of them before it computes; results stay
// in registers. The frequent chains have kernels of their own, whose operations the compiler knows;
// for others an operation is chosen once for all of a thread's elements.
#include "gpu/device/depend.cuh"
#include "gpu/device/vector.cuh"
#include "ops/pointwise/pointwise_device.cuh"
#include "ops/pointwise/pointwise_straight_args.h"

namespace {

enum { STRAIGHT_ANY = -1, STRAIGHT_END = -2 }; // in place of an operation: not known, none

// The mode of an operation, for value_of.
__device__ constexpr int straight_mode(int op)
{
    switch (op) {
        // clang-format off
#define WD_UNARY(mode) case CHAIN_OP_##mode: return mode;
#define WD_BINARY(mode) case CHAIN_OP_##mode: return mode;
#define WD_BY_OUTPUT(mode) case CHAIN_BY_##mode: return mode;
#include "ops/pointwise/pointwise_modes.def"
    // clang-format on
    default: return CUDNN_POINTWISE_IDENTITY;
    }
}

__device__ constexpr bool straight_reads_output(int op)
{
    switch (op) {
        // clang-format off
#define WD_BY_OUTPUT(mode) case CHAIN_BY_##mode:
#include "ops/pointwise/pointwise_modes.def"
        return true;
    // clang-format on
    default: return false;
    }
}

// v[i] = OP(v[i], b[i])
template <int OP, int RUN>
__device__ __forceinline__ void straight_apply(const straight_step &s, float *v, const float *b)
{
    if constexpr (OP == CHAIN_CLAMP) {
        const float low = s.factor[CHAIN_LOWER_CLIP], high = s.factor[CHAIN_UPPER_CLIP];
#pragma unroll
        for (int i = 0; i < RUN; ++i) v[i] = fminf(fmaxf(v[i], low), high);
    } else {
        wd_pointwise_attr attr = {};
        attr.mode = straight_mode(OP);
        attr.propagate_nan = s.propagate_nan;
        attr.lower_clip = s.factor[CHAIN_LOWER_CLIP];
        attr.upper_clip = s.factor[CHAIN_UPPER_CLIP];
        attr.lower_slope = s.factor[CHAIN_LOWER_SLOPE];
        attr.elu_alpha = s.factor[CHAIN_ELU_ALPHA];
        attr.softplus_beta = s.factor[CHAIN_SOFTPLUS_BETA];
        attr.swish_beta = s.factor[CHAIN_SWISH_BETA];
#pragma unroll
        for (int i = 0; i < RUN; ++i) {
            v[i] = value_of(&attr, v[i], b[i], v[i], straight_reads_output(OP));
        }
    }
}

template <int RUN>
__device__ __forceinline__ void straight_choose(const straight_step &s, float *v, const float *b)
{
    switch (s.op) {
    case CHAIN_CLAMP:
        straight_apply<CHAIN_CLAMP, RUN>(s, v, b);
        break;
        // clang-format off
#define WD_UNARY(mode) case CHAIN_OP_##mode: straight_apply<CHAIN_OP_##mode, RUN>(s, v, b); break;
#define WD_BINARY(mode) case CHAIN_OP_##mode: straight_apply<CHAIN_OP_##mode, RUN>(s, v, b); break;
#define WD_BY_OUTPUT(mode) case CHAIN_BY_##mode: straight_apply<CHAIN_BY_##mode, RUN>(s, v, b); break;
#include "ops/pointwise/pointwise_modes.def"
    // clang-format on
    default: break;
    }
}

// An element that its tensor would hold.
template <int RUN> __device__ __forceinline__ void straight_round(int to, float *v)
{
    if (to == CHAIN_TO_F16) {
#pragma unroll
        for (int i = 0; i < RUN; ++i) v[i] = __half2float(__float2half_rn(v[i]));
    } else if (to == CHAIN_TO_BF16) {
#pragma unroll
        for (int i = 0; i < RUN; ++i) v[i] = __bfloat162float(__float2bfloat16_rn(v[i]));
    } else if (to == CHAIN_TO_BOOL) {
#pragma unroll
        for (int i = 0; i < RUN; ++i) v[i] = (float)(v[i] != 0.0f);
    }
}

// Runs of a thread, of one tensor.
template <class T, int U> struct straight_runs {
    static constexpr int V = 16 / (int)sizeof(T);
    wd_run<T, V> of[U];

    // As the index counts; those of the tensor's ends element by element.
    __device__ __forceinline__ void load(const pointwise_straight_args &a, const void *from,
                                         uint32_t first, bool whole)
    {
        const T *data = static_cast<const T *>(from);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const uint32_t at = first + u * blockDim.x * V;
            if (whole) {
                of[u].load(data + at);
                continue;
            }
#pragma unroll
            for (int i = 0; i < V; ++i) {
                T element = T();
                if (at + i >= a.skip && at + i < a.count) element = data[at + i];
                of[u].put(i, element);
            }
        }
    }

    // What repeats: at place `column` of a row of the operand's, or the elements of row `row` and of
    // the next one, where `left` says that the run reaches it.
    __device__ __forceinline__ void load_again(const pointwise_straight_args &a,
                                               const straight_operand &o, const uint32_t *row,
                                               const uint32_t *column)
    {
        const T *data = static_cast<const T *>(o.data);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (a.repeat == STRAIGHT_ROWS) {
                const uint32_t again = row[u] + 1 == a.period.divisor ? 0 : row[u] + 1;
                of[u].put(0, data[(int64_t)row[u] * o.stride]);
                of[u].put(1, data[(int64_t)again * o.stride]);
            } else if (a.row.divisor % V == 0 && column[u] % V == 0 &&
                       reinterpret_cast<uintptr_t>(data) % 16 == 0) {
                of[u].load(data + column[u]);
            } else {
                uint32_t at = column[u];
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    of[u].put(i, data[at]);
                    if (++at == a.row.divisor) at = 0;
                }
            }
        }
    }

    __device__ __forceinline__ void widen(float *to) const
    {
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int i = 0; i < V; ++i) to[u * V + i] = wd_widen(of[u].get(i));
        }
    }

    // `left`: elements of each run that lie in the first of two rows.
    __device__ __forceinline__ void widen_rows(float *to, const uint32_t *left) const
    {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const float one = wd_widen(of[u].get(0)), next = wd_widen(of[u].get(1));
#pragma unroll
            for (int i = 0; i < V; ++i) to[u * V + i] = (uint32_t)i < left[u] ? one : next;
        }
    }

    __device__ __forceinline__ void store(const pointwise_straight_args &a, const float *v,
                                          uint32_t first, bool whole) const
    {
        T *to = static_cast<T *>(a.y);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const uint32_t at = first + u * blockDim.x * V;
            wd_run<T, V> run;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                T element;
                wd_narrow(element, v[u * V + i]);
                run.put(i, element);
                if (!whole && at + i >= a.skip && at + i < a.count) to[at + i] = element;
            }
            if (whole && a.streaming) run.store_streaming(to + at);
            else if (whole) run.store(to + at);
        }
    }
};

template <class T, int U, int N> struct straight {
    static constexpr int V = 16 / (int)sizeof(T);
    static constexpr int RUN = U * V;

    const pointwise_straight_args &a;
    float v[RUN];
    straight_runs<T, U> operand[N];
    uint32_t left[U];

    __device__ __forceinline__ void widen(float *to, int which) const
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (N > 1 && k != which) continue;
            const straight_operand &o = a.operand[k];
            if (!o.data) {
#pragma unroll
                for (int i = 0; i < RUN; ++i) to[i] = o.value;
            } else if (o.repeats && a.repeat == STRAIGHT_ROWS) {
                operand[k].widen_rows(to, left);
            } else {
                operand[k].widen(to);
            }
        }
    }

    // OP: STRAIGHT_ANY where only the arguments say. AT: the operand, where it is known.
    template <int OP, int AT> __device__ __forceinline__ void step(const straight_step &s)
    {
        float b[RUN];
        if (OP == STRAIGHT_ANY) {
            if (s.operand) widen(b, s.operand - 1);
        } else if (AT >= 0) {
            widen(b, AT);
        }
        if (s.scales) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) {
                v[i] *= s.factor[CHAIN_ALPHA1];
                if (AT >= 0) b[i] *= s.factor[CHAIN_ALPHA2];
            }
        }
        if (OP == STRAIGHT_ANY && s.swapped) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) {
                const float first = b[i];
                b[i] = v[i];
                v[i] = first;
            }
        }
        if constexpr (OP == STRAIGHT_ANY) straight_choose<RUN>(s, v, b);
        else straight_apply<OP, RUN>(s, v, b);
        if (s.round != CHAIN_AS_IS) straight_round<RUN>(s.round, v);
    }
};

// How many of a chain's operations before number `at` have an operand.
__device__ constexpr bool straight_is_binary(int op)
{
    switch (op) {
        // clang-format off
#define WD_BINARY(mode) case CHAIN_OP_##mode:
#define WD_BY_OUTPUT(mode) case CHAIN_BY_##mode:
#include "ops/pointwise/pointwise_modes.def"
        return true;
    // clang-format on
    default: return false;
    }
}

template <class T, int U, int N, int OP1 = STRAIGHT_ANY, int OP2 = STRAIGHT_END,
          int OP3 = STRAIGHT_END>
__device__ __forceinline__ void pointwise_straight(const pointwise_straight_args &a)
{
    constexpr uint32_t V = 16 / sizeof(T);
    const uint32_t begin = blockIdx.x * blockDim.x * V * U;
    const uint32_t first = begin + threadIdx.x * V;
    const bool whole = begin >= a.skip && begin + blockDim.x * V * U <= a.count;
    straight_runs<T, U> x;
    straight<T, U, N> chain = {a};
    wd_wait_for_previous();
    x.load(a, a.x, first, whole);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const straight_operand &o = a.operand[k];
        if (o.data && !o.repeats) chain.operand[k].load(a, o.data, first, whole);
    }
    if (a.repeat != STRAIGHT_NONE) {
        uint32_t row[U], column[U];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            // what lies before the first element or behind the last is of no account
            const uint32_t at = first + u * blockDim.x * V;
            const uint32_t index = at < a.skip ? 0 : at >= a.count ? 0 : at - a.skip;
            const uint32_t early = at < a.skip ? a.skip - at : 0;
            row[u] = wd_fastdiv_quotient(index, a.row);
            column[u] = index - row[u] * a.row.divisor;
            chain.left[u] = a.row.divisor - column[u] + early;
            if (a.repeat == STRAIGHT_ROWS) {
                row[u] -= wd_fastdiv_quotient(row[u], a.period) * a.period.divisor;
            } else if (early > 0) {
                column[u] = a.row.divisor - 1 - (early - 1) % a.row.divisor;
            }
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const straight_operand &o = a.operand[k];
            if (o.data && o.repeats) chain.operand[k].load_again(a, o, row, column);
        }
    }
    x.widen(chain.v);
    if constexpr (OP1 == STRAIGHT_ANY) {
#pragma unroll 1
        for (int i = 0; i < a.length; ++i) chain.template step<STRAIGHT_ANY, 0>(a.step[i]);
    } else {
        constexpr int B1 = straight_is_binary(OP1), B2 = B1 + straight_is_binary(OP2);
        chain.template step<OP1, straight_is_binary(OP1) ? 0 : -1>(a.step[0]);
        if constexpr (OP2 != STRAIGHT_END) {
            chain.template step<OP2, straight_is_binary(OP2) ? B1 : -1>(a.step[1]);
        }
        if constexpr (OP3 != STRAIGHT_END) {
            chain.template step<OP3, straight_is_binary(OP3) ? B2 : -1>(a.step[2]);
        }
    }
    x.store(a, chain.v, first, whole);
}

} // namespace
