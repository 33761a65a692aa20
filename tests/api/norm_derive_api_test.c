/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization: what cudnnDeriveBNTensorDescriptor derives and refuses, and how large the
 * reserve space of each activation is. */
#include "api/norm_world.h"

static const int shape[4] = {2, 3, 4, 5};

static void check_sizes(const char *name, int act, cudnnDataType_t type, size_t want)
{
    size_t got = 12345;
    cudnnActivationDescriptor_t a;
    cudnnTensorDescriptor_t x;
    if (!case_begin("reserve/%s", name)) return;
    x = norm_tensor(CUDNN_TENSOR_NCHW, type, 4, shape);
    cudnnCreateActivationDescriptor(&a);
    cudnnSetActivationDescriptor(a, (cudnnActivationMode_t)act, CUDNN_PROPAGATE_NAN, 1.0);
    if (cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
            harness_handle, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_OPS_BN_ACTIVATION, a, x,
            &got) != CUDNN_STATUS_SUCCESS ||
        got != want) {
        case_fail("the reserve space of %s has %zu bytes, not %zu", name, got, want);
    }
    cudnnDestroyActivationDescriptor(a);
    cudnnDestroyTensorDescriptor(x);
    case_end();
}

/* Dims, type and packed strides for each mode. */
static void derived(void)
{
    static const struct {
        int type, derived_type;
    } types[] = {{CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
                 {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE},
                 {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
                 {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT}};
    static const int dims[6] = {2, 3, 4, 5, 6, 7};
    for (int t = 0; t < 4; ++t) {
        for (int rank = 3; rank <= 6; ++rank) {
            for (int mode = 0; mode < 3; ++mode) {
                cudnnTensorDescriptor_t x;
                cudnnTensorDescriptor_t d;
                cudnnDataType_t type;
                int dim[8];
                int stride[8];
                int got_rank;
                int next = 1;
                if (!case_begin("derive/type%d/rank%d/mode%d", types[t].type, rank, mode)) continue;
                x = norm_tensor(t % 2 ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                (cudnnDataType_t)types[t].type, rank, dims);
                cudnnCreateTensorDescriptor(&d);
                if (cudnnDeriveBNTensorDescriptor(d, x, (cudnnBatchNormMode_t)mode) !=
                    CUDNN_STATUS_SUCCESS) {
                    case_fail("refused");
                }
                cudnnGetTensorNdDescriptor(d, 8, &type, &got_rank, dim, stride);
                if ((int)type != types[t].derived_type || got_rank != rank) {
                    case_fail("type %d, rank %d", (int)type, got_rank);
                }
                for (int i = rank - 1; i >= 0; --i) {
                    int want = i == 1 || (mode == 0 && i > 1) ? dims[i] : 1;
                    if (dim[i] != want || stride[i] != next) {
                        case_fail("dim[%d]=%d stride %d, not %d and %d", i, dim[i], stride[i], want,
                                  next);
                    }
                    next *= want;
                }
                cudnnDestroyTensorDescriptor(d);
                cudnnDestroyTensorDescriptor(x);
                case_end();
            }
        }
    }
}

static void derive_rows(void)
{
    cudnnTensorDescriptor_t x = norm_tensor(CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, shape);
    cudnnTensorDescriptor_t d;
    cudnnTensorDescriptor_t unset;
    cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
    cudnnCreateTensorDescriptor(&d);
    cudnnCreateTensorDescriptor(&unset);
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnDeriveBNTensorDescriptor, derivedBnDesc,
            cudnnDeriveBNTensorDescriptor(NULL, x, mode));
    REFUSED(BAD_PARAM_NULL_POINTER, cudnnDeriveBNTensorDescriptor, xDesc,
            cudnnDeriveBNTensorDescriptor(d, NULL, mode));
    REFUSED(BAD_PARAM, cudnnDeriveBNTensorDescriptor, xDesc,
            cudnnDeriveBNTensorDescriptor(d, unset, mode));
    REFUSED(BAD_PARAM, cudnnDeriveBNTensorDescriptor, mode,
            cudnnDeriveBNTensorDescriptor(d, x, (cudnnBatchNormMode_t)-1));
    REFUSED(BAD_PARAM, cudnnDeriveBNTensorDescriptor, mode,
            cudnnDeriveBNTensorDescriptor(d, x, (cudnnBatchNormMode_t)3));
    cudnnDestroyTensorDescriptor(d);
    cudnnDestroyTensorDescriptor(unset);
    cudnnDestroyTensorDescriptor(x);
}

int main(int argc, char **argv)
{
    harness_start(argc, argv);
    derive_rows();
    derived();
    check_sizes("relu", CUDNN_ACTIVATION_RELU, CUDNN_DATA_HALF, 15);
    check_sizes("clipped", CUDNN_ACTIVATION_CLIPPED_RELU, CUDNN_DATA_FLOAT, 15);
    check_sizes("identity", CUDNN_ACTIVATION_IDENTITY, CUDNN_DATA_FLOAT, 0);
    check_sizes("tanh", CUDNN_ACTIVATION_TANH, CUDNN_DATA_HALF, 480);
    check_sizes("swish_f64", CUDNN_ACTIVATION_SWISH, CUDNN_DATA_DOUBLE, 960);
    refusal_report();
    return harness_finish();
}
