/* SPDX-License-Identifier: Apache-2.0
 *
 * What only the backend API can say of a convolution: padding that differs before and after, x, w
 * and y of three different types, groups from the channels alone; each direction on the best engine
 * and on the definition, against sums over all products written out here. And wrong graphs refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/backend_build.h"
#include "support/harness.h"

enum { FPROP, DGRAD, WGRAD };
static const char *const direction_name[] = {"fprop", "dgrad", "wgrad"};
enum { X_UID = 11, W_UID = 12, Y_UID = 13 };

struct problem {
    int direction;
    int spatial;
    int groups;
    int64_t before[3], after[3], stride[3], dilation[3];
    cudnnConvolutionMode_t mode;
    struct tensor *x, *w, *y;
    double alpha, beta;
    be_desc plan, pack;
};

static be_desc descriptor(const struct tensor *t, int64_t uid)
{
    be_desc desc = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dim[8];
    int64_t stride[8];
    for (int d = 0; d < t->rank; ++d) {
        dim[d] = t->dim[d];
        stride[d] = t->stride[d];
    }
    be_set_enum(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, (int)t->dtype);
    be_set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, dim);
    be_set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, stride);
    be_set_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    be_set_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 8);
    return be_final(desc);
}

static be_desc convolution(const struct problem *p, int compute)
{
    be_desc desc = be_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    be_set_enum(desc, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
    be_set_enum(desc, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, (int)p->mode);
    be_set_int(desc, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, p->spatial);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, p->spatial, p->before);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, p->spatial, p->after);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, p->spatial, p->stride);
    be_set(desc, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, p->spatial, p->dilation);
    return be_final(desc);
}

/* The operation, not finalized. */
static be_desc operation(const struct problem *p, int compute)
{
    static const cudnnBackendDescriptorType_t types[] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    static const cudnnBackendAttributeName_t names[][6] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    };
    const cudnnBackendAttributeName_t *name = names[p->direction];
    be_desc op = be_make(types[p->direction]);
    be_set_ref(op, name[0], convolution(p, compute));
    be_set_ref(op, name[1], descriptor(p->x, X_UID));
    be_set_ref(op, name[2], descriptor(p->w, W_UID));
    be_set_ref(op, name[3], descriptor(p->y, Y_UID));
    be_set(op, name[4], CUDNN_TYPE_DOUBLE, 1, &p->alpha);
    be_set(op, name[5], CUDNN_TYPE_DOUBLE, 1, &p->beta);
    return op;
}

static void point(const int *extent, int count, int64_t index, int *at)
{
    for (int d = count - 1; d >= 0; --d) {
        at[d] = (int)(index % extent[d]);
        index /= extent[d];
    }
}

static int64_t volume(const struct tensor *t)
{
    int64_t n = 1;
    for (int d = 2; d < t->rank; ++d) n *= t->dim[d];
    return n;
}

static void add_products(const struct problem *p, double *sum, double *magnitude)
{
    const struct tensor *x = p->x;
    const struct tensor *w = p->w;
    const struct tensor *y = p->y;
    int kg = w->dim[0] / p->groups;
    for (int64_t o = 0; o < volume(y); ++o) {
        for (int64_t t = 0; t < volume(w); ++t) {
            int out[3];
            int tap[3];
            int64_t pixel = 0;
            bool inside = true;
            point(y->dim + 2, p->spatial, o, out);
            point(w->dim + 2, p->spatial, t, tap);
            for (int d = 0; d < p->spatial; ++d) {
                int64_t reach = p->mode == CUDNN_CONVOLUTION ? w->dim[2 + d] - 1 - tap[d] : tap[d];
                int64_t at = out[d] * p->stride[d] - p->before[d] + reach * p->dilation[d];
                inside = inside && at >= 0 && at < x->dim[2 + d];
                pixel = pixel * x->dim[2 + d] + at;
            }
            if (!inside) continue;
            for (int n = 0; n < x->dim[0]; ++n)
                for (int k = 0; k < w->dim[0]; ++k)
                    for (int c = 0; c < w->dim[1]; ++c) {
                        int64_t channel = k / kg * w->dim[1] + c;
                        int64_t ix = (n * (int64_t)x->dim[1] + channel) * volume(x) + pixel;
                        int64_t iw = (k * (int64_t)w->dim[1] + c) * volume(w) + t;
                        int64_t iy = (n * (int64_t)y->dim[1] + k) * volume(y) + o;
                        int64_t to = p->direction == FPROP ? iy : p->direction == DGRAD ? ix : iw;
                        double product = (p->direction == DGRAD ? 1.0 : x->value[ix]) *
                                         (p->direction == WGRAD ? 1.0 : w->value[iw]) *
                                         (p->direction == FPROP ? 1.0 : y->value[iy]);
                        sum[to] += product;
                        magnitude[to] += fabs(product);
                    }
        }
    }
}

static struct tensor *random_tensor(cudnnDataType_t dtype, int rank, const int *dim, bool output)
{
    enum layout layout = (enum layout)random_of(0, 1, 2);
    return output ? tensor_inout(dtype, rank, dim, layout, -1.0, 1.0)
                  : tensor_input(dtype, rank, dim, layout, -1.0, 1.0);
}

static void random_problem(struct problem *p, const cudnnDataType_t *types)
{
    int x[8];
    int w[8];
    int y[8];
    p->groups = random_of(1, 1, 2, 4);
    p->mode = random_chance(0.3) ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    x[0] = y[0] = random_of(1, 2, 3);
    w[1] = random_of(1, 2, 3);
    x[1] = p->groups * w[1];
    w[0] = y[1] = p->groups * random_of(1, 2, 3);
    for (int d = 0; d < p->spatial; ++d) {
        int window;
        p->before[d] = random_of(0, 1, 2, 5);
        p->after[d] = random_of(0, 1, 3, 4);
        p->stride[d] = random_of(1, 1, 2, 3);
        p->dilation[d] = random_of(1, 1, 2);
        w[2 + d] = random_of(1, 2, 3);
        window = (w[2 + d] - 1) * (int)p->dilation[d] + 1;
        x[2 + d] = random_of(5, 6, 7);
        y[2 + d] = (x[2 + d] + (int)(p->before[d] + p->after[d]) - window) / (int)p->stride[d] + 1;
    }
    p->x = random_tensor(types[0], p->spatial + 2, x, p->direction == DGRAD);
    p->w = random_tensor(types[1], p->spatial + 2, w, p->direction == WGRAD);
    p->y = random_tensor(types[2], p->spatial + 2, y, p->direction == FPROP);
}

static cudnnStatus_t execute(void *context)
{
    struct problem *p = context;
    return cudnnBackendExecute(harness_handle, p->plan, p->pack);
}

/* Engine ids of the definitions, as in the documentation: CPU even, GPU odd. */
static int definition_of(int direction)
{
    return 112 + 2 * direction + (harness_on_gpu ? 1 : 0);
}

static void random_case(int direction, int spatial, bool best, int turn)
{
    static const cudnnDataType_t types[][3] = {
        {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
        {CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
        {CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
        {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF},
    };
    struct problem p = {.direction = direction, .spatial = spatial};
    const int64_t uids[3] = {X_UID, W_UID, Y_UID};
    struct tensor *out;
    struct tensor *workspace = NULL;
    double *exact;
    double *magnitude;
    be_desc op;
    int64_t bytes;
    if (!case_begin("backend %s spatial %d %s turn %d", direction_name[direction], spatial,
                    best ? "best" : "definition", turn)) {
        return;
    }
    random_problem(&p, types[turn]);
    p.alpha = turn == 0 ? 1.0 : random_of(1, 2, -3) * 0.5;
    p.beta = turn == 0 ? 0.0 : random_of(0, 1, -1) * 0.5;
    op = be_final(operation(&p, CUDNN_DATA_FLOAT));
    p.plan = be_plan(harness_handle, be_config(be_engine(be_graph(harness_handle, 1, &op),
                                                         best ? 0 : definition_of(direction))));
    bytes = be_workspace(p.plan);
    if (bytes > 0) workspace = tensor_bytes(bytes);
    p.pack = be_pack(3, uids, (void *const[]){p.x->data, p.w->data, p.y->data},
                     workspace ? workspace->data : NULL);
    out = direction == FPROP ? p.y : direction == DGRAD ? p.x : p.w;
    exact = calloc((size_t)out->count, sizeof *exact);
    magnitude = calloc((size_t)out->count, sizeof *magnitude);
    add_products(&p, exact, magnitude);
    for (int64_t i = 0; i < out->count; ++i) {
        double old = p.beta != 0.0 ? p.beta * out->value[i] : 0.0;
        exact[i] = p.alpha * exact[i] + old;
        magnitude[i] = fabs(p.alpha) * magnitude[i] + fabs(old);
    }
    if (run_call(execute, &p)) {
        check_values(direction_name[direction], out, exact, NULL, magnitude, CUDNN_DATA_FLOAT);
    }
    free(exact);
    free(magnitude);
    be_free_all();
    case_end();
}

/* A graph that is wrong is refused when it is finalized, or at the latest when a plan is asked for. */
static void refused_case(const char *what, int compute, int wrong_y, int64_t pad)
{
    static const int x[4] = {2, 3, 6, 6};
    static const int w[4] = {4, 3, 3, 3};
    int y[4] = {2, 4, 4, 4};
    struct problem p = {.direction = FPROP, .spatial = 2, .groups = 1, .alpha = 1.0};
    be_desc op;
    char text[512] = "";
    cudnnStatus_t status;
    if (!case_begin("backend refused: %s", what)) return;
    if (wrong_y >= 0) y[wrong_y] += 1;
    for (int d = 0; d < 2; ++d) {
        p.before[d] = pad;
        p.stride[d] = p.dilation[d] = 1;
    }
    p.mode = CUDNN_CROSS_CORRELATION;
    p.x = tensor_input(CUDNN_DATA_FLOAT, 4, x, LAYOUT_NCHW, -1.0, 1.0);
    p.w = tensor_input(CUDNN_DATA_FLOAT, 4, w, LAYOUT_NCHW, -1.0, 1.0);
    p.y = tensor_output(CUDNN_DATA_FLOAT, 4, y, LAYOUT_NCHW);
    op = operation(&p, compute);
    status = cudnnBackendFinalize(op);
    if (status == CUDNN_STATUS_SUCCESS) {
        be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
        be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &harness_handle);
        status = cudnnBackendFinalize(graph);
    }
    cudnnGetLastErrorString(text, sizeof text);
    if ((int)status / 1000 != CUDNN_STATUS_BAD_PARAM / 1000) {
        case_fail("answered %s: %s", cudnnGetErrorString(status), text);
    }
    if (!text[0]) case_fail("refused without a text");
    be_free_all();
    case_end();
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    for (int direction = FPROP; direction <= WGRAD; ++direction) {
        for (int spatial = 1; spatial <= 3; ++spatial) {
            for (int turn = 0; turn < 4; ++turn) {
                random_case(direction, spatial, true, turn);
                random_case(direction, spatial, false, turn);
            }
        }
    }
    refused_case("batch differs", CUDNN_DATA_FLOAT, 0, 0);
    refused_case("filters differ", CUDNN_DATA_FLOAT, 1, 0);
    refused_case("height is not the formula's", CUDNN_DATA_FLOAT, 2, 0);
    refused_case("width is not the formula's", CUDNN_DATA_FLOAT, 3, 0);
    refused_case("padding changes the output", CUDNN_DATA_FLOAT, -1, 1);
    return harness_finish();
}
