// SPDX-License-Identifier: Apache-2.0
//
// Sums over windows of neighbours in registers, each added up anew, in pieces of 1, 2, 4, 8 ... elements
// that neighbours share: a NaN or an infinity ends where its window ends.
#ifndef WD_OPS_LRN_WINDOW_SUMS_CUH
#define WD_OPS_LRN_WINDOW_SUMS_CUH

namespace {

// Sums of n neighbours: out[i] of in[i] .. in[i + n - 1]. N: n, or 0; MOST: the largest that n may be.
template <int COUNT, int N, int MOST, class A>
__device__ __forceinline__ void window_sums(A *in, int n, A *out)
{
    constexpr int TOTAL = COUNT + MOST - 1;
    A sum[TOTAL];
#pragma unroll
    for (int i = 0; i < TOTAL; ++i) sum[i] = 0;
#pragma unroll
    for (int by = 1; by <= MOST; by *= 2) {
        // in[i] is the sum of `by` elements now, sum[i] that of as many as the lower bits of n say
        if ((N ? N : n) & by) {
#pragma unroll
            for (int i = 0; i < TOTAL; ++i) {
                if (i + by <= TOTAL) sum[i] = in[i] + (i + by < TOTAL ? sum[i + by] : (A)0);
            }
        }
        if (2 * by > (N ? N : n)) break;
#pragma unroll
        for (int i = 0; i + by < TOTAL; ++i) in[i] += in[i + by];
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) out[i] = sum[i];
}

} // namespace

#endif
