// SPDX-License-Identifier: Apache-2.0
//
// In place of gpu/device/post.cuh.
#ifndef EMULATOR_POST_CUH
#define EMULATOR_POST_CUH

#include <stdint.h>

static inline void wd_post(uint64_t *to, float value, uint32_t tag)
{
    emulator_post(to, __float_as_uint(value), tag);
}

template <int N>
static inline void wd_posts_await(const uint64_t *from, uint32_t tag, float (&to)[N])
{
    for (int i = 0; i < N; ++i) to[i] = __uint_as_float(emulator_post_await(from + i, tag));
}

// Nothing is there before it is waited for.
template <int N> static inline void wd_posts_ask(const uint64_t *, uint64_t (&word)[N])
{
    for (int i = 0; i < N; ++i) word[i] = 0;
}

template <int N>
static inline void wd_posts_take(const uint64_t *from, uint32_t tag, uint64_t (&)[N],
                                 float (&to)[N])
{
    wd_posts_await(from, tag, to);
}

#endif
