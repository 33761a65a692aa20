/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn_bench: see bench.h for what it measures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char usage[] =
    "warpdnn_bench --cpu [options]\n"
    "\n"
    "  --cpu             on the CPU: convolutions and products of matrices in percent of the\n"
    "                    sgemm rate at 2048^3, memory-bound calls in percent of a plain vector\n"
    "                    copy of their size; WARPDNN_THREADS threads\n"
    "  --conv            convolutions only (these three may be combined)\n"
    "  --matmul          products of matrices only\n"
    "  --memory          memory-bound calls only\n"
    "  --nhwc            channels side by side instead of pixels\n"
    "  --batch N         images of a convolution (8)\n"
    "  --seconds S       time spent on a row, at least (0.3)\n"
    "  --only TEXT       rows whose set, call and problem contain the text\n"
    "  --json            JSON on standard output\n"
    "  --processor-time  time of the processors spread over the threads instead of the clock's,\n"
    "                    for a machine that does other work; blind to threads that wait\n"
    "\n"
    "Each row is the shortest of its runs, each reference the best of its measurements: what else\n"
    "runs on the machine only ever adds. Figures of a loaded machine say little all the same.\n";

cudnnHandle_t bench_handle;
struct options bench_options = {.batch = 8, .seconds = 0.3};

void bench_check(cudnnStatus_t status, const char *what)
{
    char text[1024];
    if (status == CUDNN_STATUS_SUCCESS) return;
    cudnnGetLastErrorString(text, sizeof text);
    fprintf(stderr, "\n%s: %s: %s\n", what, cudnnGetErrorString(status), text);
    exit(1);
}

float *bench_floats(int64_t count)
{
    static uint64_t state = 1;
    size_t bytes = (size_t)count * sizeof(float);
    float *host = malloc(bytes);
    void *data;
    if (!host) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    for (int64_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        host[i] = (float)(state >> 40) * 0x1p-24F - 0.5F;
    }
    bench_check(warpdnnMalloc(bench_handle, bytes, &data), "memory");
    bench_check(warpdnnMemcpy(bench_handle, data, host, bytes), "copy");
    free(host);
    return data;
}

bool bench_wanted(const char *set, const char *name, const char *problem)
{
    char text[160];
    if (!bench_options.only) return true;
    snprintf(text, sizeof text, "%s %s %s", set, name, problem);
    return strstr(text, bench_options.only) != NULL;
}

static const char *argument(int argc, char **argv, int *i)
{
    if (*i + 1 < argc) return argv[++*i];
    fprintf(stderr, "%s wants a value\n", argv[*i]);
    exit(2);
}

int main(int argc, char **argv)
{
    bool cpu = false;
    bool conv = false;
    bool matmul = false;
    bool memory = false;
    warpdnnDevice_t device;
    for (int i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--cpu")) {
            cpu = true;
        } else if (!strcmp(argv[i], "--conv")) {
            conv = true;
        } else if (!strcmp(argv[i], "--matmul")) {
            matmul = true;
        } else if (!strcmp(argv[i], "--memory")) {
            memory = true;
        } else if (!strcmp(argv[i], "--nhwc")) {
            bench_options.nhwc = true;
        } else if (!strcmp(argv[i], "--json")) {
            bench_options.json = true;
        } else if (!strcmp(argv[i], "--processor-time")) {
            bench_options.processor = true;
        } else if (!strcmp(argv[i], "--only")) {
            bench_options.only = argument(argc, argv, &i);
        } else if (!strcmp(argv[i], "--batch")) {
            bench_options.batch = atoi(argument(argc, argv, &i));
        } else if (!strcmp(argv[i], "--seconds")) {
            bench_options.seconds = strtod(argument(argc, argv, &i), NULL);
        } else {
            fputs(usage, stderr);
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (!cpu || bench_options.batch < 1) {
        fputs(usage, stderr);
        return 2;
    }
    setenv("WARPDNN_DEVICE", "cpu", 1);
    if (bench_options.processor) setenv("OMP_WAIT_POLICY", "passive", 1);
    bench_check(cudnnCreate(&bench_handle), "cudnnCreate");
    bench_check(warpdnnGetDevice(bench_handle, &device, NULL), "device");
    if (device != WARPDNN_DEVICE_CPU) return 1;
    if (!conv && !matmul && !memory) conv = matmul = memory = true;
    if (conv) bench_convolutions();
    if (matmul) bench_matmul();
    if (memory) bench_memory();
    report_print();
    return cudnnDestroy(bench_handle) != CUDNN_STATUS_SUCCESS;
}
