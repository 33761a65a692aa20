// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/matrix.cuh: sums of 16 products in fp64, rounded once. All lanes of a warp take part.
#ifndef EMULATOR_MATRIX_CUH
#define EMULATOR_MATRIX_CUH

#include "gpu/device/vector.cuh"

template <class T> static inline double emulator_half_of(uint32_t word, int which)
{
    const uint16_t bits = (uint16_t)(word >> (16 * which));
    T value;
    memcpy(&value, &bits, 2);
    return (double)wd_widen(value);
}

template <class T>
static inline void wd_multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], T)
{
    const uint32_t lane = emulator_lane(), g = lane / 4, t = lane % 4;
    double sum[4] = {d[0], d[1], d[2], d[3]};
    for (uint32_t k = 0; k < 4; ++k) {
        uint32_t row[4], column[2][2];
        for (int i = 0; i < 4; ++i) row[i] = emulator_shuffle(a[i], 4 * g + k);
        for (uint32_t j = 0; j < 2; ++j) {
            for (int i = 0; i < 2; ++i) column[j][i] = emulator_shuffle(b[i], 4 * (2 * t + j) + k);
        }
        for (int i = 0; i < 4; ++i) { // of D
            for (int half = 0; half < 4; ++half) {
                const uint32_t x = row[i / 2 + half / 2 * 2], y = column[i % 2][half / 2];
                sum[i] += emulator_half_of<T>(x, half % 2) * emulator_half_of<T>(y, half % 2);
            }
        }
    }
    for (int i = 0; i < 4; ++i) d[i] = (float)sum[i];
}

template <int N, bool TURNED>
static inline void wd_load_blocks(uint32_t (&word)[N], const void *row)
{
    const uint32_t lane = emulator_lane(), g = lane / 4, t = lane % 4;
    const uintptr_t at = (uintptr_t)row;
    static_assert(N == 1 || N == 2 || N == 4, "what the instruction loads");
    for (uint32_t i = 0; i < N; ++i) {
        uint16_t two[2];
        for (uint32_t j = 0; j < 2; ++j) {
            const uintptr_t from = emulator_shuffle(at, 8 * i + (TURNED ? 2 * t + j : g));
            if (from % 16 != 0) __builtin_trap(); // a device faults too
            two[j] = reinterpret_cast<const uint16_t *>(from)[TURNED ? g : 2 * t + j];
        }
        memcpy(&word[i], two, 4);
    }
    __syncwarp(); // nobody writes before all have read
}

#endif
