/* SPDX-License-Identifier: Apache-2.0
 *
 * A small program as a user would write it: makes a handle, sets a tensor to a value, looks at it,
 * and prints the version of the library that it ran on. Tests run it on several libraries, so it
 * uses four functions and host memory (run it with WARPDNN_DEVICE=cpu). */
#include <stdio.h>
#include <stdlib.h>

#include "cudnn.h"

int main(void)
{
    float y[4] = {0};
    const float value = 2.5f;
    cudnnHandle_t handle = NULL;
    cudnnTensorDescriptor_t tensor = NULL;
    if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS ||
        cudnnCreateTensorDescriptor(&tensor) != CUDNN_STATUS_SUCCESS ||
        cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2) !=
            CUDNN_STATUS_SUCCESS ||
        cudnnSetTensor(handle, tensor, y, &value) != CUDNN_STATUS_SUCCESS) {
        fputs("cuDNN refuses\n", stderr);
        return EXIT_FAILURE;
    }
    printf("version %zu, y[3] %g\n", cudnnGetVersion(), (double)y[3]);
    cudnnDestroyTensorDescriptor(tensor);
    cudnnDestroy(handle);
    return EXIT_SUCCESS;
}
