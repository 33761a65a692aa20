// SPDX-License-Identifier: Apache-2.0
//
// Straight chains of pointwise operations: each takes the result of the one before and at most one
// operand besides. A thread asks for all of its runs of every tensor before it computes; results stay
// in registers. The frequent chains have code of their own, whose operations the compiler knows and
// which computes all runs at once; for others an operation is chosen once a run.
#include "ops/pointwise/pointwise_runs.cuh"
#include "ops/pointwise/pointwise_straight_args.h"

namespace {

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

// What repeats, of the run at `row` and `column`: its elements of the operand's row, or the elements of
// the row and of the next one, where `left` says that the run reaches it.
template <class T>
__device__ __forceinline__ void straight_load_again(typename runs<T>::run &run,
                                                    const pointwise_straight_args &a,
                                                    const straight_operand &o, uint32_t row,
                                                    uint32_t column)
{
    constexpr int V = runs<T>::V;
    const T *data = static_cast<const T *>(o.data);
    if (a.repeat == STRAIGHT_ROWS) {
        const uint32_t again = row + 1 == a.period.divisor ? 0 : row + 1;
        run.put(0, data[(int64_t)row * o.stride]);
        run.put(1, data[(int64_t)again * o.stride]);
    } else if (a.row.divisor % V == 0 && column % V == 0 &&
               reinterpret_cast<uintptr_t>(data) % 16 == 0) {
        run.load(data + column);
    } else {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            run.put(i, data[column]);
            if (++column == a.row.divisor) column = 0;
        }
    }
}

// An operand's elements of G runs. `left`: how many of a run lie in the first of two rows.
template <class T, int G>
__device__ __forceinline__ void straight_widen(float *to, const typename runs<T>::run *run,
                                               const pointwise_straight_args &a,
                                               const straight_operand &o, const uint32_t *left)
{
    constexpr int V = runs<T>::V;
    if (!o.data) {
#pragma unroll
        for (int i = 0; i < G * V; ++i) to[i] = o.value;
    } else if (o.repeats && a.repeat == STRAIGHT_ROWS) {
#pragma unroll
        for (int g = 0; g < G; ++g) {
            const float one = wd_widen(run[g].get(0)), next = wd_widen(run[g].get(1));
#pragma unroll
            for (int i = 0; i < V; ++i) to[g * V + i] = (uint32_t)i < left[g] ? one : next;
        }
    } else {
#pragma unroll
        for (int g = 0; g < G; ++g) runs<T>::widen(to + g * V, run[g]);
    }
}

// Whether an operation has an operand besides.
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

template <int V, bool BINARY>
__device__ __forceinline__ void straight_scale(const straight_step &s, float *v, float *b)
{
    if (!s.scales) return;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        v[i] *= s.factor[CHAIN_ALPHA1];
        if (BINARY) b[i] *= s.factor[CHAIN_ALPHA2];
    }
}

// An operation that the compiler knows; what it makes is of the tensors' type T or left as it is.
template <class T, int V, int OP>
__device__ __forceinline__ void straight_known(const straight_step &s, float *v, float *b)
{
    straight_scale<V, straight_is_binary(OP)>(s, v, b);
    straight_apply<OP, V>(s, v, b);
    if constexpr (sizeof(T) < 4) {
        if (s.round == CHAIN_AS_IS) return;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            T element;
            wd_narrow(element, v[i]);
            v[i] = wd_widen(element);
        }
    }
}

// Chains of one operand at most: any operations.
struct straight_any {
    static constexpr int OPERANDS = 1;
    template <class T, int V>
    static __device__ __forceinline__ void apply(const pointwise_straight_args &a, float *v,
                                                 float (*b)[V])
    {
#pragma unroll 1
        for (int n = 0; n < a.length; ++n) {
            const straight_step &s = a.step[n];
            float second[V];
#pragma unroll
            for (int i = 0; i < V; ++i) second[i] = b[0][i];
            straight_scale<V, true>(s, v, second);
            if (s.swapped) {
#pragma unroll
                for (int i = 0; i < V; ++i) {
                    const float first = second[i];
                    second[i] = v[i];
                    v[i] = first;
                }
            }
            straight_choose<V>(s, v, second);
            if (s.round != CHAIN_AS_IS) straight_round<V>(s.round, v);
        }
    }
};

#define STRAIGHT_STEP(n, op, k) straight_known<T, V, op>(a.step[n], v, b[k])

// The frequent ones of one operand.
struct straight_one {
    static constexpr int OPERANDS = 1;
    template <class T, int V>
    static __device__ __forceinline__ void apply(const pointwise_straight_args &a, float *v,
                                                 float (*b)[V])
    {
        if (a.kind == STRAIGHT_SWISH_MUL) STRAIGHT_STEP(0, CHAIN_OP_CUDNN_POINTWISE_SWISH_FWD, 0);
        if (a.kind == STRAIGHT_GELU_MUL) STRAIGHT_STEP(0, CHAIN_OP_CUDNN_POINTWISE_GELU_FWD, 0);
        if (a.kind <= STRAIGHT_MUL) {
            STRAIGHT_STEP(a.length - 1, CHAIN_OP_CUDNN_POINTWISE_MUL, 0);
            return;
        }
        STRAIGHT_STEP(0, CHAIN_OP_CUDNN_POINTWISE_ADD, 0);
        switch (a.kind) {
        case STRAIGHT_ADD_CLAMP: STRAIGHT_STEP(1, CHAIN_CLAMP, 0); break;
        case STRAIGHT_ADD_GELU: STRAIGHT_STEP(1, CHAIN_OP_CUDNN_POINTWISE_GELU_FWD, 0); break;
        case STRAIGHT_ADD_TANH:
            STRAIGHT_STEP(1, CHAIN_OP_CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, 0);
            break;
        case STRAIGHT_ADD_SWISH: STRAIGHT_STEP(1, CHAIN_OP_CUDNN_POINTWISE_SWISH_FWD, 0); break;
        default: break;
        }
    }
};

// Those of two.
struct straight_two {
    static constexpr int OPERANDS = 2;
    template <class T, int V>
    static __device__ __forceinline__ void apply(const pointwise_straight_args &a, float *v,
                                                 float (*b)[V])
    {
        if (a.kind == STRAIGHT_ADD_ADD_CLAMP) STRAIGHT_STEP(0, CHAIN_OP_CUDNN_POINTWISE_ADD, 0);
        else STRAIGHT_STEP(0, CHAIN_OP_CUDNN_POINTWISE_MUL, 0);
        STRAIGHT_STEP(1, CHAIN_OP_CUDNN_POINTWISE_ADD, 1);
        if (a.kind != STRAIGHT_MUL_ADD) STRAIGHT_STEP(2, CHAIN_CLAMP, 0);
    }
};

// U runs a thread and all at once, or, where they are computed ONE_BY_ONE, at most U.
template <class T, int U, class CHAIN, bool ONE_BY_ONE = false>
__device__ __forceinline__ void pointwise_straight(const pointwise_straight_args &a)
{
    typedef runs<T> of;
    constexpr int V = of::V, N = CHAIN::OPERANDS, G = ONE_BY_ONE ? 1 : U;
    const int count = ONE_BY_ONE ? a.runs : U;
    const uint32_t width = blockDim.x * V, begin = blockIdx.x * width * count;
    const bool whole = begin >= a.skip && begin + width * count <= a.count;
    typename of::run x[U], operand[N][U];
    uint32_t left[U] = {};
    uint32_t first = begin + threadIdx.x * V;
    wd_wait_for_previous();
    of::template load<U>(x, a, a.x, first, width, whole, count);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const straight_operand &o = a.operand[k];
        if (o.data && !o.repeats) {
            of::template load<U>(operand[k], a, o.data, first, width, whole, count);
        }
    }
    if (a.repeat != STRAIGHT_NONE) {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            // what lies before the first element or behind the last is of no account
            const uint32_t at = first + u * width;
            const uint32_t index = at < a.skip ? 0 : at >= a.count ? 0 : at - a.skip;
            const uint32_t early = at < a.skip ? a.skip - at : 0;
            uint32_t row = wd_fastdiv_quotient(index, a.row);
            uint32_t column = index - row * a.row.divisor;
            if (u >= count) continue;
            left[u] = a.row.divisor - column + early;
            if (a.repeat == STRAIGHT_ROWS) {
                row -= wd_fastdiv_quotient(row, a.period) * a.period.divisor;
            } else if (early > 0) {
                column = a.row.divisor - 1 - (early - 1) % a.row.divisor;
            }
#pragma unroll
            for (int k = 0; k < N; ++k) {
                const straight_operand &o = a.operand[k];
                if (o.data && o.repeats) straight_load_again<T>(operand[k][u], a, o, row, column);
            }
        }
    }
#pragma unroll 1
    for (int n = 0; n < (ONE_BY_ONE ? count : 1); ++n) {
        float v[G * V], b[N][G * V];
#pragma unroll
        for (int g = 0; g < G; ++g) of::widen(v + g * V, x[g]);
#pragma unroll
        for (int k = 0; k < N; ++k) {
            straight_widen<T, G>(b[k], operand[k], a, a.operand[k], left);
        }
        CHAIN::template apply<T, G * V>(a, v, b);
#pragma unroll
        for (int g = 0; g < G; ++g, first += width) of::store(a, a.y, first, whole, v + g * V);
#pragma unroll
        for (int u = 0; u + G < U; ++u) {
            x[u] = x[u + G];
            left[u] = left[u + G];
#pragma unroll
            for (int k = 0; k < N; ++k) operand[k][u] = operand[k][u + G];
        }
    }
}

} // namespace
