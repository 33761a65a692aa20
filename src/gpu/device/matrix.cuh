// SPDX-License-Identifier: Apache-2.0
//
// Products of small matrices of fp16 or bf16 by a warp, summed in fp32: D = A B + D, where A has 16 rows and 16
// columns, B 16 rows and 8 columns. Of lane 4 g + t:
//     A   word 0: row g, columns 2 t and 2 t + 1;  1: row g + 8;  2: columns 8 further on;  3: both
//     B   word 0: column g, rows 2 t and 2 t + 1;  1: rows 8 further on
//     D   0, 1: row g, columns 2 t and 2 t + 1;  2, 3: row g + 8
// Products are exact. How a sum of 16 is rounded the device decides, the same way every time; 0 times what
// is not finite is NaN.
#ifndef WD_GPU_DEVICE_MATRIX_CUH
#define WD_GPU_DEVICE_MATRIX_CUH

#include "gpu/device/vector.cuh"

static __device__ __forceinline__ void wd_multiply(float (&d)[4], const uint32_t (&a)[4],
                                                   const uint32_t (&b)[2], half16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void wd_multiply(float (&d)[4], const uint32_t (&a)[4],
                                                   const uint32_t (&b)[2], bfloat16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// N blocks (1, 2 or 4) of 8 rows of 8 numbers of two bytes, from shared memory: `row` is, of lane 8 i + r, where row r
// of block i lies, aligned to 16 bytes. Lane 4 g + t gets of each block row g, columns 2 t and 2 t + 1, or,
// TURNED, of column g rows 2 t and 2 t + 1. Rows meet in no bank where they lie 16 bytes apart by an odd number.
template <int N, bool TURNED>
static __device__ __forceinline__ void wd_load_blocks(uint32_t (&word)[N], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    static_assert(N == 1 || N == 2 || N == 4, "what the instruction loads");
    if constexpr (N == 4 && TURNED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(at)
                     : "memory");
    } else if constexpr (N == 4) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(at)
                     : "memory");
    } else if constexpr (N == 2 && TURNED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                     : "=r"(word[0]), "=r"(word[1])
                     : "r"(at)
                     : "memory");
    } else if constexpr (N == 2) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(word[0]), "=r"(word[1])
                     : "r"(at)
                     : "memory");
    } else if constexpr (TURNED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                     : "=r"(word[0])
                     : "r"(at)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                     : "=r"(word[0])
                     : "r"(at)
                     : "memory");
    }
}

#endif
