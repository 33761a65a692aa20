/* SPDX-License-Identifier: Apache-2.0
 *
 * A program as a user writes it, built against an installed WarpDNN: it creates a handle and checks
 * that the library which answers lies under the prefix given as the argument. */
#define _GNU_SOURCE
#include <cudnn.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char prefix[PATH_MAX], file[PATH_MAX];
    void *self = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
    Dl_info where;
    cudnnHandle_t handle;
    cudnnStatus_t status;

    if (argc != 2 || !realpath(argv[1], prefix)) return 2;
    if (!self || !dladdr(dlsym(self, "cudnnCreate"), &where) || !realpath(where.dli_fname, file))
        return 2;
    if (strncmp(file, prefix, strlen(prefix)) != 0) {
        fprintf(stderr, "the library loaded is %s, not one under %s\n", file, prefix);
        return 1;
    }
    status = cudnnCreate(&handle);
    if (status != CUDNN_STATUS_SUCCESS) {
        fprintf(stderr, "cudnnCreate: %s\n", cudnnGetErrorString(status));
        return 1;
    }
    cudnnDestroy(handle);
    printf("consumer: cuDNN %zu from %s\n", cudnnGetVersion(), file);
    return 0;
}
