/* SPDX-License-Identifier: Apache-2.0
 *
 * Folding the strides of a gradient of the data into channels: filter and dy are brought into the
 * folded problem by the transforms that cudnnGetFoldedConvBackwardDataDescriptors answers, done
 * here in plain loops; the folded gradient is computed with stride 1, brought back, and held against
 * the sum over all products. Also that the transforms give the tensors that it answers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/conv_case.h"

enum { RANK_MAX = 5 };

struct image {
    int rank;
    int dim[RANK_MAX];
    double *value;
};

static int64_t count_of(const struct image *image)
{
    int64_t n = 1;
    for (int d = 0; d < image->rank; ++d) n *= image->dim[d];
    return n;
}

/* Logical element `at`, 0 outside. */
static double element(const struct image *image, const int *at)
{
    int64_t index = 0;
    for (int d = 0; d < image->rank; ++d) {
        if (at[d] < 0 || at[d] >= image->dim[d]) return 0.0;
        index = index * image->dim[d] + at[d];
    }
    return image->value[index];
}

/* dims `dim` of the result; each of its elements is looked up where it came from. */
static struct image transformed(const struct image *from, cudnnTensorTransformDescriptor_t how,
                                const int *dim)
{
    struct image to = {.rank = from->rank};
    int before[RANK_MAX];
    int after[RANK_MAX];
    unsigned fold[RANK_MAX];
    cudnnTensorFormat_t format;
    cudnnFoldingDirection_t direction;
    int channels = 0;
    memcpy(to.dim, dim, sizeof *dim * (size_t)from->rank);
    to.value = conv_doubles(count_of(&to));
    if (cudnnGetTensorTransformDescriptor(how, (uint32_t)from->rank, &format, before, after, fold,
                                          &direction) != CUDNN_STATUS_SUCCESS) {
        case_fail("a transform is not answered");
        return to;
    }
    channels = direction == CUDNN_TRANSFORM_FOLD ? from->dim[1] + before[1] + after[1]
                                                 : to.dim[1] - before[1] - after[1];
    for (int64_t i = 0, n = count_of(&to); i < n; ++i) {
        int at[RANK_MAX] = {0};
        int source[RANK_MAX];
        int64_t rest = i;
        for (int d = to.rank - 1; d >= 0; --d) {
            at[d] = (int)(rest % to.dim[d]);
            rest /= to.dim[d];
        }
        memcpy(source, at, sizeof source);
        if (direction == CUDNN_TRANSFORM_FOLD) {
            int phase = at[1] / channels;
            source[1] = at[1] % channels;
            for (int d = to.rank - 1; d >= 2; --d) {
                int block = fold[d - 2] ? (int)fold[d - 2] : 1;
                source[d] = at[d] * block + phase % block;
                phase /= block;
            }
            for (int d = 0; d < to.rank; ++d) source[d] -= before[d];
            if (source[1] >= from->dim[1]) continue;
        } else {
            int phase = 0;
            for (int d = 0; d < to.rank; ++d) source[d] -= before[d];
            for (int d = 2; d < to.rank; ++d) {
                int block = fold[d - 2] ? (int)fold[d - 2] : 1;
                phase = phase * block + source[d] % block;
                source[d] /= block;
            }
            source[1] += phase * channels;
        }
        to.value[i] = element(from, source);
    }
    return to;
}

struct folded {
    struct conv_call *c;
    cudnnFilterDescriptor_t filter;
    cudnnTensorDescriptor_t dy, dx, dest;
    cudnnConvolutionDescriptor_t conv;
    cudnnTensorTransformDescriptor_t fold_w, pad_dy, fold_dx, unfold_dx;
    struct tensor *w_tensor, *dy_tensor, *dx_tensor;
};

static void create(struct folded *f)
{
    cudnnCreateFilterDescriptor(&f->filter);
    cudnnCreateTensorDescriptor(&f->dy);
    cudnnCreateTensorDescriptor(&f->dx);
    cudnnCreateTensorDescriptor(&f->dest);
    cudnnCreateConvolutionDescriptor(&f->conv);
    cudnnCreateTensorTransformDescriptor(&f->fold_w);
    cudnnCreateTensorTransformDescriptor(&f->pad_dy);
    cudnnCreateTensorTransformDescriptor(&f->fold_dx);
    cudnnCreateTensorTransformDescriptor(&f->unfold_dx);
}

static void destroy(struct folded *f)
{
    cudnnDestroyFilterDescriptor(f->filter);
    cudnnDestroyTensorDescriptor(f->dy);
    cudnnDestroyTensorDescriptor(f->dx);
    cudnnDestroyTensorDescriptor(f->dest);
    cudnnDestroyConvolutionDescriptor(f->conv);
    cudnnDestroyTensorTransformDescriptor(f->fold_w);
    cudnnDestroyTensorTransformDescriptor(f->pad_dy);
    cudnnDestroyTensorTransformDescriptor(f->fold_dx);
    cudnnDestroyTensorTransformDescriptor(f->unfold_dx);
}

static cudnnStatus_t run_folded(void *context)
{
    struct folded *f = context;
    double s[2];
    cudnnDataType_t dtype = f->c->x->dtype;
    return cudnnConvolutionBackwardData(harness_handle, conv_scalar(dtype, 1.0, s), f->filter,
                                        f->w_tensor->data, f->dy, f->dy_tensor->data, f->conv,
                                        CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0,
                                        conv_scalar(dtype, 0.0, s + 1), f->dx, f->dx_tensor->data);
}

/* A transform of `source` has the dims and strides of `wanted`. */
static void check_dest(struct folded *f, const char *what, cudnnTensorTransformDescriptor_t how,
                       cudnnTensorDescriptor_t source, cudnnTensorDescriptor_t wanted)
{
    int a[4][8] = {{0}};
    int rank[2];
    cudnnDataType_t type[2];
    size_t bytes = 0;
    if (cudnnInitTransformDest(how, source, f->dest, &bytes) != CUDNN_STATUS_SUCCESS) {
        case_fail("%s: the transform is refused", what);
        return;
    }
    cudnnGetTensorNdDescriptor(f->dest, 8, &type[0], &rank[0], a[0], a[1]);
    cudnnGetTensorNdDescriptor(wanted, 8, &type[1], &rank[1], a[2], a[3]);
    if (rank[0] != rank[1] || type[0] != type[1] || memcmp(a[0], a[2], sizeof a[0]) ||
        memcmp(a[1], a[3], sizeof a[1])) {
        case_fail("%s: the transform gives another tensor than the one answered", what);
    }
}

static struct image image_of(const struct tensor *tensor)
{
    struct image image = {.rank = tensor->rank, .value = tensor->value};
    memcpy(image.dim, tensor->dim, sizeof *image.dim * (size_t)tensor->rank);
    return image;
}

/* A tensor of the folded problem with the values that the transform brings there. */
static struct tensor *bring(const struct tensor *from, cudnnTensorTransformDescriptor_t how,
                            const int *dim, enum layout layout)
{
    struct tensor *to = tensor_input(from->dtype, from->rank, dim, layout, -1, 1);
    struct image source = image_of(from);
    struct image image = transformed(&source, how, dim);
    memcpy(to->value, image.value, sizeof *image.value * (size_t)to->count);
    tensor_write(to);
    free(image.value);
    return to;
}

static void judge(struct folded *f)
{
    struct conv_call *c = f->c;
    double *exact = conv_doubles(c->x->count);
    double *magnitude = conv_doubles(c->x->count);
    struct image folded = image_of(f->dx_tensor);
    struct image got = transformed(&folded, f->unfold_dx, c->x->dim);
    conv_add_products(c, exact, magnitude);
    memcpy(c->x->value, got.value, sizeof *got.value * (size_t)c->x->count);
    check_values("dx", c->x, exact, NULL, magnitude,
                 c->x->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    free(got.value);
    free(exact);
    free(magnitude);
}

static void fold_case(cudnnDataType_t dtype, int spatial, int turn)
{
    struct conv_call c = {.direction = CONV_DGRAD, .alpha = 1.0};
    struct conv_types types = {dtype, dtype, dtype};
    bool nhwc = turn % 2;
    enum layout plain = nhwc ? LAYOUT_NHWC : LAYOUT_NCHW;
    enum layout layout[3] = {plain, plain, plain};
    struct folded f = {.c = &c};
    cudnnTensorFormat_t format = turn % 3 ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    enum layout folded_layout = turn % 3 ? LAYOUT_NHWC : LAYOUT_NCHW;
    cudnnDataType_t type;
    cudnnTensorFormat_t filter_format;
    int rank;
    int w[8];
    int dy[8];
    int dx[8];
    int strides[8];
    if (!case_begin("fold type %d spatial %d turn %d", (int)dtype, spatial, turn)) return;
    c.g = conv_random_geometry(spatial);
    c.g.mode = CUDNN_CROSS_CORRELATION;
    c.g.channels /= c.g.groups;
    c.g.filters /= c.g.groups;
    c.g.groups = 1;
    for (int d = 0; d < spatial; ++d) c.g.dilation[d] = 1;
    conv_set_output(&c.g);
    conv_set_up(&c, &types, layout);
    c.x->output = false;
    create(&f);
    if (cudnnGetFoldedConvBackwardDataDescriptors(
            harness_handle, c.filter, c.y->desc, c.conv, c.x->desc, format, f.filter, f.dy, f.conv,
            f.dx, f.fold_w, f.pad_dy, f.fold_dx, f.unfold_dx) != CUDNN_STATUS_SUCCESS) {
        case_fail("folding is refused");
        goto done;
    }
    check_dest(&f, "dy", f.pad_dy, c.y->desc, f.dy);
    check_dest(&f, "dx", f.fold_dx, c.x->desc, f.dx);
    check_dest(&f, "dx back", f.unfold_dx, f.dx, c.x->desc);
    cudnnGetFilterNdDescriptor(f.filter, 8, &type, &filter_format, &rank, w);
    cudnnGetTensorNdDescriptor(f.dy, 8, &type, &rank, dy, strides);
    cudnnGetTensorNdDescriptor(f.dx, 8, &type, &rank, dx, strides);
    if (type != dtype || rank != spatial + 2 || filter_format != format) {
        case_fail("type %d, rank %d or format %d", (int)type, rank, (int)filter_format);
        goto done;
    }
    f.w_tensor = bring(c.w, f.fold_w, w, folded_layout);
    f.dy_tensor = bring(c.y, f.pad_dy, dy, folded_layout);
    f.dx_tensor = tensor_output(dtype, rank, dx, folded_layout);
    if (run_call(run_folded, &f)) judge(&f);
done:
    destroy(&f);
    conv_tear_down(&c);
}

int main(int argc, char **argv)
{
    enum { TURNS = 8 };
    harness_start(argc, argv);
    for (int turn = 0; turn < TURNS; ++turn) {
        for (int spatial = 1; spatial <= 3; ++spatial) {
            fold_case(CUDNN_DATA_FLOAT, spatial, turn);
            fold_case(CUDNN_DATA_DOUBLE, spatial, turn);
        }
    }
    return harness_finish();
}
