/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes of a definition over windows of an image: a window is an item that scans its elements,
 * or a reduction of them; and the gradient of a maximum goes through the images (N times C) so many
 * at a time that the places of their maxima fit the scratch. The geometry is the family's. Pure
 * functions of the shape, so that every device adds in the same order. */
#ifndef WD_OPS_WINDOWS_H
#define WD_OPS_WINDOWS_H

#include <stdbool.h>

#include "ops/definition.h"

/* One result a window, written in two ways. */
struct wd_window_pass {
    const struct wd_pass *scan;   /* a map over windows */
    const struct wd_pass *reduce; /* of the terms of each */
};

/* Scratch bytes of this many windows, of at most `terms` elements of the image each; and the pass. */
int64_t wd_window_scratch(const struct wd_window_pass *pass, enum wd_acc acc, int64_t windows,
                          int64_t terms);
cudnnStatus_t wd_emit_windows(struct wd_queue *queue, const struct wd_window_pass *pass,
                              enum wd_acc acc, const void *args, int64_t windows, int64_t terms,
                              void *scratch);

struct wd_window_batches {
    int64_t images;
    int64_t at_once; /* 0: nothing is remembered */
    int64_t windows; /* of an image */
    int64_t terms;   /* of a window */
};

/* Of gradients with `spatial` dimensions from the third on; nothing is remembered. */
struct wd_window_batches wd_window_batches(int spatial, const int64_t *dx, const int64_t *dy,
                                           int64_t terms);
/* Remembers the places of at most `places` windows at a time; of none where an image has more. */
void wd_window_remember(struct wd_window_batches *batches, int64_t places);

/* Scratch bytes of the batches: the places, an int64_t a window, then what `maxima` needs. */
int64_t wd_window_batches_scratch(const struct wd_window_batches *batches,
                                  const struct wd_window_pass *maxima, enum wd_acc acc);

/* Where the arguments of both passes say which batch it is. */
struct wd_window_args {
    const void *args;
    int64_t *first_window;  /* item 0 of `maxima` */
    int64_t *first_element; /* item 0 of `gradient` */
    int64_t **places;
};
/* By batch the maxima, where there is something to remember, and then the map `gradient` over the
 * elements of dx. */
cudnnStatus_t wd_emit_window_batches(struct wd_queue *queue,
                                     const struct wd_window_batches *batches,
                                     const struct wd_window_pass *maxima,
                                     const struct wd_pass *gradient, enum wd_acc acc,
                                     const struct wd_window_args *args, int64_t elements,
                                     void *scratch);

#endif
