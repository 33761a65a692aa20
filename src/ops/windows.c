/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes over windows, see windows.h. */
#include "ops/windows.h"

#include "base/status.h"

enum {
    /* From this size on a window is a reduction, unless there are enough windows for all threads of
     * a device: then each is scanned by one. */
    LONG_WINDOW = 64,
    MANY_WINDOWS = 1 << 16,
};

static bool is_long(int64_t windows, int64_t terms)
{
    return terms >= LONG_WINDOW && windows <= MANY_WINDOWS;
}

int64_t wd_window_scratch(const struct wd_window_pass *pass, enum wd_acc acc, int64_t windows,
                          int64_t terms)
{
    return is_long(windows, terms) ? wd_pass_scratch(pass->reduce, acc, windows, terms) : 0;
}

static cudnnStatus_t emit(struct wd_queue *queue, const struct wd_window_pass *pass, bool reduces,
                          enum wd_acc acc, const void *args, int64_t windows, int64_t terms,
                          void *scratch)
{
    if (!reduces) return wd_emit_map(queue, pass->scan, acc, args, windows);
    return wd_emit_reduce(queue, pass->reduce, acc, args, windows, terms, scratch);
}

cudnnStatus_t wd_emit_windows(struct wd_queue *queue, const struct wd_window_pass *pass,
                              enum wd_acc acc, const void *args, int64_t windows, int64_t terms,
                              void *scratch)
{
    return emit(queue, pass, is_long(windows, terms), acc, args, windows, terms, scratch);
}

struct wd_window_batches wd_window_batches(int spatial, const int64_t *dx, const int64_t *dy,
                                           int64_t terms)
{
    struct wd_window_batches batches = {.images = dx[0] * dx[1], .windows = 1, .terms = terms};
    for (int s = 0; s < spatial; ++s) batches.windows *= dy[2 + s];
    return batches;
}

void wd_window_remember(struct wd_window_batches *batches, int64_t places)
{
    if (batches->windows == 0) return;
    batches->at_once = places / batches->windows;
    if (batches->at_once > batches->images) batches->at_once = batches->images;
}

static int64_t places_bytes(const struct wd_window_batches *batches)
{
    return (batches->at_once * batches->windows * (int64_t)sizeof(int64_t) + 255) / 256 * 256;
}

/* Few windows, whose maxima are reductions, are one batch. */
static bool is_one(const struct wd_window_batches *batches)
{
    return batches->at_once == batches->images;
}

int64_t wd_window_batches_scratch(const struct wd_window_batches *batches,
                                  const struct wd_window_pass *maxima, enum wd_acc acc)
{
    int64_t windows = batches->images * batches->windows;
    return places_bytes(batches) +
           (is_one(batches) ? wd_window_scratch(maxima, acc, windows, batches->terms) : 0);
}

cudnnStatus_t wd_emit_window_batches(struct wd_queue *queue,
                                     const struct wd_window_batches *batches,
                                     const struct wd_window_pass *maxima,
                                     const struct wd_pass *gradient, enum wd_acc acc,
                                     const struct wd_window_args *args, int64_t elements,
                                     void *scratch)
{
    int64_t windows = batches->images * batches->windows;
    int64_t in_image = batches->images > 0 ? elements / batches->images : 0;
    bool reduces = is_one(batches) && is_long(windows, batches->terms);
    if (batches->at_once == 0) return wd_emit_map(queue, gradient, acc, args->args, elements);
    *args->places = scratch;
    for (int64_t image = 0; image < batches->images; image += batches->at_once) {
        int64_t left = batches->images - image;
        int64_t now = left < batches->at_once ? left : batches->at_once;
        *args->first_window = image * batches->windows;
        *args->first_element = image * in_image;
        WD_TRY(emit(queue, maxima, reduces, acc, args->args, now * batches->windows, batches->terms,
                    (char *)scratch + places_bytes(batches)));
        WD_TRY(wd_emit_map(queue, gradient, acc, args->args, now * in_image));
    }
    return CUDNN_STATUS_SUCCESS;
}
