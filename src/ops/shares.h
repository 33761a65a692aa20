/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares that clusters hold: large stretches of a tensor (a channel, a row) of which something is added up and then made of
 * each element, one share after another, each from its one reading to its one writing. Sizes that host and kernels
 * (shares_device.cuh) have in common, and how shares are cut over blocks. A unit is sixteen bytes.
 *
 * A cluster has a share, or a block by itself, which then is one: each block has `part` units of it, a thread every so many of these as
 * the block has threads, four at a time (a quad). A processor has one block, or two of half the threads and half the room, so that one adds up while the
 * other moves data. The first quads stay in registers, those up to `quads` in shared memory; what else there is (of
 * norms also a last quad that not all threads have) is read again. Of two tensors the second stays for the first
 * `second_quads`. Clusters walk from share to share: as a quad is written, that of the next share is asked for in its place.
 *
 * Teams take the place of clusters that do not hold the first tensor, where that pays: blocks of a kernel that are there at once
 * (gpu/device/grid.cuh) and tell each other sums through memory, four to half of the chip. */
#ifndef WD_OPS_SHARES_H
#define WD_OPS_SHARES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WD_SHARE_UNIT = 16,     /* bytes */
    WD_SHARE_THREADS = 512, /* of a processor */
    WD_SHARE_BLOCKS = 16,   /* of a cluster, at most */
    WD_SHARE_QUAD = 4,      /* units */
    WD_SHARE_HELD = 2,      /* quads of the first tensor in registers */
    WD_SHARE_FIXED = 2048,  /* bytes of shared memory beside units, at most */
};

struct wd_device;

struct wd_share_cut {
    int64_t shares;  /* given, as are ... */
    int64_t units;   /* of a share, ... */
    int64_t least;   /* bytes of a share that other ways are as fast with, ... */
    bool two;        /* tensors that are read, ... */
    bool halves;     /* two blocks a processor: then all quads have to stay; ... */
    bool may_halve;  /* of one tensor it may be, where that pays; ... */
    bool may_meet;   /* ... and blocks of one a processor may be teams, not clusters */
    bool meets;      /* they are */
    int64_t cluster; /* blocks that have a share */
    int64_t part;    /* units of a block */
    int64_t quads;
    int64_t second_quads; /* at most `quads` */
    int64_t shared;       /* bytes */
    int64_t clusters;     /* of a launch */
};

/* What kernels are told of a cut. */
struct wd_share_args {
    uint32_t shares;
    uint32_t cluster;
    uint32_t units; /* of a share, of less than 2^31 in all */
    uint32_t part;
    uint32_t quads;
    uint32_t second_quads;
};

/* Blocks of a cluster at most, 1 where there are none: 16 where the device takes them, and one of the parts of the chip surely has
 * as many processors. */
int64_t wd_share_most_blocks(const struct wd_device *device);

/* False where shares are too small, too large or too few for the device, which has no clusters perhaps. A pure function. */
bool wd_share_cut(struct wd_share_cut *c, const struct wd_device *device);

/* Of a cut that was made. */
struct wd_share_args wd_share_args_of(const struct wd_share_cut *c);

#endif
