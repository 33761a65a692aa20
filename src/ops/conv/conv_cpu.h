/* SPDX-License-Identifier: Apache-2.0
 *
 * What the convolution engines of the CPU module share: a convolution brought to three spatial
 * dimensions, and the movement of its images into and out of matrices. The three directions use the
 * same names: x is the image or its gradient, w the filter, y the output image. */
#ifndef WD_OPS_CONV_CPU_H
#define WD_OPS_CONV_CPU_H

#include "cpu/module/blas.h"
#include "ops/engine.h"

enum { WD_CONV_SPATIAL = 3 };

/* A tensor [N or K, C, 3 spatial]; strides in elements of one lane. */
struct wd_conv_image {
    void *data;
    int64_t outer;
    int64_t channel; /* stride of one vector of channels */
    int64_t space[WD_CONV_SPATIAL];
    int64_t extent[WD_CONV_SPATIAL];
    int64_t elements; /* from the first to the last one, gaps counted */
    int32_t dtype;
    int32_t lanes;
};

struct wd_conv_cpu {
    struct wd_conv_image x;
    struct wd_conv_image w;
    struct wd_conv_image y;
    struct wd_conv_image z; /* fused: residual */
    struct wd_conv_image b; /* fused: bias */
    int64_t batch;
    int64_t groups;
    int64_t c; /* channels of one group */
    int64_t k; /* filters of one group */
    int64_t pad[WD_CONV_SPATIAL];
    int64_t stride[WD_CONV_SPATIAL];
    int64_t dilation[WD_CONV_SPATIAL];
    double alpha;
    double beta;
    struct wd_pointwise_attr activation;
    bool flip; /* CUDNN_CONVOLUTION: taps are counted from the far end */
    bool fused;
    bool has_z;
    bool wide;  /* sums are of doubles */
    bool wraps; /* sums of bytes go out as int32, with whole scalars: modulo 2^32 */
};

/* What every convolution engine of the module asks for. */
bool wd_conv_cpu_match(const struct wd_problem *problem, struct wd_reason *reason);
/* The convolution of a problem that matched, without pointers and scalars; then with them. */
void wd_conv_cpu_of(const struct wd_problem *problem, struct wd_conv_cpu *conv);
void wd_conv_cpu_bind(const struct wd_call *call, struct wd_conv_cpu *conv);

static inline int64_t wd_conv_points(const int64_t *extent)
{
    return extent[0] * extent[1] * extent[2];
}

static inline int64_t wd_conv_channel(const struct wd_conv_image *image, int64_t c)
{
    return c / image->lanes * image->channel + c % image->lanes;
}

/* Whether the points of an image (dims of extent 1 left aside) follow each other at one stride;
 * `whole` is set where those of all images together do. */
bool wd_conv_flat(const struct wd_conv_image *image, int64_t batch, int64_t *pixel, bool *whole);

/* Whether the filter is 1x1 and looks at each pixel once, so that an image is its own column matrix. */
bool wd_conv_is_pointwise(const struct wd_conv_cpu *conv);
/* Whether the filter, of sums of this type, is a matrix of k rows whose columns are those of a column
 * matrix, in the order that `pixels` says. */
bool wd_conv_filter_lies(const struct wd_conv_cpu *conv, int dtype, bool pixels);
/* Where the pixels of all images of x and of y lie at one stride (x_stride, y_stride), makes one image
 * of them all. */
void wd_conv_fold(struct wd_conv_cpu *conv, int64_t x_stride, int64_t y_stride);

/* One dimension of a correlation: point i of a domain of `points` reads the source at
 * i * step + offset + tap * offset_step, for each of `taps`, which are the filter's taps
 * tap_first + tap * tap_step; its result goes to i * to_step + to_first. Fprop has one such axis a
 * dimension; dgrad one for each remainder of the pixel by the stride, for these see different taps. */
struct wd_conv_axis {
    int64_t points;
    int64_t step;
    int64_t taps;
    int64_t offset;
    int64_t offset_step;
    int64_t tap_first;
    int64_t tap_step;
    int64_t to_step;
    int64_t to_first;
};
struct wd_conv_axis wd_conv_axis_forward(const struct wd_conv_cpu *conv, int d);
struct wd_conv_axis wd_conv_axis_backward(const struct wd_conv_cpu *conv, int d, int64_t phase);

/* A rectangle of columns: points [first, last) of the domain, of images [image, image_end); the
 * first and last are 0 and the domain's end where there are several images. */
struct wd_conv_panel {
    int64_t image;
    int64_t image_end;
    int64_t first;
    int64_t last;
};
static inline int64_t wd_conv_columns(const struct wd_conv_panel *panel)
{
    return (panel->image_end - panel->image) * (panel->last - panel->first);
}

/* The columns of a panel as BLAS reads them: of an image, from a channel on, `stride` apart; or of a
 * buffer of `rows` rows that gather has filled or scatter will empty. `size` of an element in bytes. */
struct wd_matrix wd_conv_image_matrix(const struct wd_conv_image *image, int64_t size,
                                      int64_t stride, const struct wd_conv_panel *panel,
                                      int64_t channel);
static inline struct wd_matrix wd_conv_buffer_matrix(const void *buffer, bool pixels, int64_t rows,
                                                     int64_t columns)
{
    return (struct wd_matrix){buffer, pixels ? 1 : columns, pixels ? rows : 1};
}

/* The matrix of what each column sees: rows [row, row_end) of (channel, tap), or where `pixels` of
 * (tap, channel) with the columns outermost, each row or column contiguous. WD_CONV_SLACK elements
 * behind it are overwritten too. */
enum { WD_CONV_SLACK = 32 };
struct wd_conv_gather {
    const struct wd_conv_image *from;
    int64_t channel; /* the group's first */
    int64_t channels;
    struct wd_conv_axis axis[WD_CONV_SPATIAL];
    struct wd_conv_panel panel;
    bool pixels;
};
void wd_conv_gather_f32(const struct wd_conv_gather *gather, int64_t row, int64_t row_end,
                        void *to);
void wd_conv_gather_f64(const struct wd_conv_gather *gather, int64_t row, int64_t row_end,
                        void *to);

/* Puts a matrix of sums [rows][columns], or [columns][rows] where `pixels`, into an image: alpha sum
 * + beta old, or activation(alpha sum + beta z + b). The sums are used up. */
struct wd_conv_scatter {
    const struct wd_conv_cpu *conv;
    const struct wd_conv_image *to;
    int64_t channel; /* of the first row */
    int64_t rows;
    struct wd_conv_axis axis[WD_CONV_SPATIAL];
    struct wd_conv_panel panel;
    bool pixels;
    bool fill; /* zeros into the pixels that no point of the domain goes to: see wd_conv_fills */
};
/* Whether zeros can be written along with a scatter: where it is of the only phase that has taps, each
 * point also owns the pixels up to the next point's, and the last one those up to the end. */
static inline bool wd_conv_fills(const struct wd_conv_image *to)
{
    return to->lanes == 1 && (to->channel == 1 || to->space[WD_CONV_SPATIAL - 1] == 1);
}
void wd_conv_scatter_f32(const struct wd_conv_scatter *scatter, void *sums);
void wd_conv_scatter_f64(const struct wd_conv_scatter *scatter, void *sums);

#endif
