/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes of the board (gpu/device/board.cuh), shared by host and device. */
#ifndef WD_BASE_BOARD_H
#define WD_BASE_BOARD_H

enum {
    WD_BOARD_HEAD = 8,         /* words of four bytes: a sector */
    WD_BOARD_WORDS = 42 << 10, /* of eight bytes, of each of two banks */
    WD_BOARD_BYTES = 4 * WD_BOARD_HEAD + 2 * 8 * WD_BOARD_WORDS,
};

#endif
