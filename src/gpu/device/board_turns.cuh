// SPDX-License-Identifier: Apache-2.0
//
// The board (gpu/device/board.cuh) of kernels that show pairs in turns: words are two sets, which turns have one after the
// other, since whoever shows the next turn's has seen all of this one's. The bit of a word that says whether it is that of the
// set's turn is 1, then 0, and so on.
#ifndef WD_GPU_DEVICE_BOARD_TURNS_CUH
#define WD_GPU_DEVICE_BOARD_TURNS_CUH

#include "gpu/device/board.cuh"

// Little is kept from turn to turn: registers are few.
struct wd_board_turns {
    uint32_t asked; // the head's first word
    uint32_t turn;
};

static __device__ __forceinline__ uint32_t wd_board_bit(uint32_t turn)
{
    return ~turn >> 1 & 1;
}

// Before a turn's sums, which hide what the first one waits for; what it gives is then for wd_board_clear_in_turn().
static __device__ __forceinline__ uint4 wd_board_ask_in_turn(const uint32_t *head,
                                                             wd_board_turns &b)
{
    if (b.turn > 0) return make_uint4(b.asked, 0, 0, 0);
    const uint4 asked = wd_board_ask(head);
    b.asked = asked.x;
    return asked;
}

// The turn's set, of `words`, when the head has been asked.
static __device__ __forceinline__ uint64_t *wd_board_set(uint32_t *head, const wd_board_turns &b,
                                                         uint32_t words)
{
    return wd_board_of(head, make_uint4(b.asked, 0, 0, 0)).bank + b.turn % 2 * words;
}

// By all threads of all blocks, best after a turn's words are shown: what there is to clear is of the first turn, and in the other bank.
static __device__ __forceinline__ void wd_board_clear_in_turn(uint32_t *head, uint4 asked)
{
    wd_board_clear(wd_board_of(head, asked));
}

#endif
