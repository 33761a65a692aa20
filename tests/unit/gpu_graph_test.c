/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph queue and the patch queue on the fake driver: what they write replays, what does not
 * match is refused and left alone, what fails halfway is taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "gpu/gpu.h"
#include "support/gpu_kernels.h"

enum { COUNT = 300, ARRAYS = 4 };

static const cudnnStatus_t OK = CUDNN_STATUS_SUCCESS;

static struct wd_queue *stream_queue;
static float *x[ARRAYS], *y[ARRAYS];
static CUgraph graph;

static int start(void **state)
{
    float values[COUNT];
    (void)state;
    fake->fakecuda_reset();
    gpu_kernels_reset();
    if (wd_gpu_queue_create(&stream_queue) != OK) return -1;
    for (int k = 0; k < ARRAYS; ++k) {
        for (int i = 0; i < COUNT; ++i) values[i] = (float)(i + 1000 * k);
        if (wd_gpu_malloc(stream_queue, sizeof values, (void **)&x[k]) != OK) return -1;
        if (wd_gpu_malloc(stream_queue, sizeof values, (void **)&y[k]) != OK) return -1;
        if (wd_gpu_copy(stream_queue, x[k], values, sizeof values) != OK) return -1;
    }
    return fake->cuGraphCreate(&graph, 0) == CUDA_SUCCESS ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    fake->cuGraphDestroy(graph);
    for (int k = 0; k < ARRAYS; ++k) {
        wd_gpu_free(stream_queue, x[k]);
        wd_gpu_free(stream_queue, y[k]);
    }
    wd_gpu_queue_destroy(stream_queue);
    if (fake->fakecuda_report() != 0) return -1;
    return wd_alloc_bytes() == 0 && wd_gpu_scratch_bytes() == 0 ? 0 : -1;
}

/* An execution with one node of each kind: y[k] = 2 x[k] + 3, its second half then copied over its
 * first, its last quarter filled with zero. Steps can be left out or be of another kind. */
struct steps {
    struct wd_kernel *kernel;
    uint32_t cluster;
    bool copy, fill, scratch, extra, meets;
};

static const struct steps all_steps = {&line_kernel, 0, true, true, false, false, false};

static cudnnStatus_t emit_steps(struct wd_queue *queue, int k, const struct steps *steps)
{
    struct line_args args = {y[k], x[k], 2, 3};
    struct line_size size = {COUNT};
    struct wd_launch launch = line_launch(steps->kernel, &args, &size);
    launch.grid[0] = 4;
    launch.cluster = steps->cluster;
    launch.meets = steps->meets;
    WD_TRY(queue->ops->kernel(queue, &launch));
    args.y = NULL; /* what was emitted is a copy */
    if (steps->scratch) {
        void *scratch = NULL;
        WD_TRY(queue->ops->scratch(queue, COUNT * sizeof(float), &scratch));
        through_scratch_at = scratch;
        WD_TRY(queue->ops->copy(queue, scratch, y[k], COUNT * sizeof(float)));
    }
    if (steps->copy) WD_TRY(queue->ops->copy(queue, y[k], y[k] + 150, 150 * sizeof(float)));
    if (steps->fill) WD_TRY(queue->ops->fill(queue, y[k] + 225, 0, 75 * sizeof(float)));
    if (steps->extra) WD_TRY(queue->ops->fill(queue, y[k], 0, 4));
    return OK;
}

static cudnnStatus_t execute(struct wd_queue *queue, int k, const struct steps *steps)
{
    cudnnStatus_t status;
    WD_TRY(queue->ops->begin(queue));
    status = emit_steps(queue, k, steps);
    queue->ops->end(queue);
    return status;
}

static cudnnStatus_t populate(int k, const struct steps *steps)
{
    struct wd_gpu_graph_queue queue;
    WD_TRY(wd_gpu_graph_queue_init(&queue, stream_queue, graph));
    return wd_gpu_graph_queue_fini(&queue, execute(&queue.base, k, steps));
}

static cudnnStatus_t patch(int k, const struct steps *steps)
{
    struct wd_gpu_graph_queue queue;
    WD_TRY(wd_gpu_patch_queue_init(&queue, stream_queue, graph));
    return wd_gpu_graph_queue_fini(&queue, execute(&queue.base, k, steps));
}

static size_t node_count(void)
{
    size_t count = 0;
    assert_int_equal(fake->cuGraphGetNodes(graph, NULL, &count), CUDA_SUCCESS);
    return count;
}

/* Replays the graph and sees that it computes y[k], and no other. */
static void check_replay(int k)
{
    CUgraphExec exec = NULL;
    CUcontext context;
    for (int j = 0; j < ARRAYS; ++j) memset(y[j], 0xff, COUNT * sizeof *y[j]);
    assert_int_equal(fake->cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    fake->cuDevicePrimaryCtxRetain(&context, 0);
    fake->cuCtxSetCurrent(context);
    assert_int_equal(fake->cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
    fake->cuCtxSetCurrent(NULL);
    fake->cuDevicePrimaryCtxRelease(0);
    fake->cuGraphExecDestroy(exec);
    for (int i = 0; i < COUNT; ++i) {
        int from = i < 150 ? i + 150 : i;
        float expected = i >= 225 ? 0 : 2.0f * (float)(from + 1000 * k) + 3.0f;
        assert_true(y[k][i] == expected);
    }
    for (int j = 0; j < ARRAYS; ++j) assert_true(j == k || y[j][0] != y[j][0]);
}

static void test_populate_and_patch(void **state)
{
    struct steps none = {&line_kernel, 0, false, false, false, false, false};
    (void)state;
    assert_int_equal(populate(0, &all_steps), OK);
    assert_int_equal(node_count(), 3);
    check_replay(0);
    for (int k = 1; k < ARRAYS; ++k) {
        assert_int_equal(patch(k, &all_steps), OK);
        assert_int_equal(node_count(), 3);
        check_replay(k);
    }
    assert_int_equal(fake->fakecuda_stack_depth(), 0);
    assert_int_equal(patch(0, &none), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    check_replay(3);
}

static void test_scratch(void **state)
{
    struct steps steps = all_steps;
    CUgraphExec exec = NULL;
    void *at;
    (void)state;
    steps.scratch = true;
    assert_int_equal(populate(0, &steps), OK);
    at = through_scratch_at;
    assert_int_equal(wd_gpu_scratch_bytes(), 1 << 20);
    assert_int_equal(fake->cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(patch(1, &steps), OK);
    assert_ptr_not_equal(through_scratch_at, at); /* the instance may be at work in the other */
    fake->cuGraphExecDestroy(exec);
    check_replay(1);
    /* the graph's, as long as the graph lives: no stream gets it */
    assert_int_equal(run_through_scratch(stream_queue, y[2], x[2], COUNT), OK);
    assert_int_equal(wd_gpu_scratch_bytes(), 3 << 20);
}

/* Every way in which a graph can fail to be the plan's: refused, and left as it was. */
static void test_mismatch(void **state)
{
    static const struct {
        struct steps steps;
        const char *text;
    } cases[] = {
        {{&other_kernel, 0, true, true, false, false, false},
         "another function than kernel test_other"},
        {{&line_kernel, 2, true, true, false, false, false}, "clusters"},
        {{&line_kernel, 0, false, true, false, false, false}, "the plan has a fill"},
        {{&line_kernel, 0, true, false, false, false, false}, "the graph has 3 nodes, the plan 2"},
        {{&line_kernel, 0, true, true, true, false, false}, "the plan has a copy there"},
        {{&line_kernel, 0, true, true, false, true, false}, "goes on with a fill"},
    };
    (void)state;
    assert_int_equal(populate(0, &all_steps), OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        assert_int_equal(patch(1, &cases[i].steps), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
        if (!strstr(wd_last_error(), cases[i].text)) fail_msg("%s", wd_last_error());
        check_replay(0);
    }
    assert_int_equal(patch(1, &all_steps), OK);
    check_replay(1);
}

static void test_clusters(void **state)
{
    struct steps steps = all_steps;
    (void)state;
    steps.cluster = 2;
    assert_int_equal(populate(0, &steps), OK);
    check_replay(0);
    assert_int_equal(patch(1, &steps), OK);
    check_replay(1);
    assert_int_equal(patch(2, &all_steps), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    check_replay(1);
}

static void test_meetings(void **state)
{
    struct steps steps = all_steps;
    (void)state;
    steps.meets = true;
    assert_int_equal(populate(0, &steps), OK);
    check_replay(0);
    assert_int_equal(patch(1, &steps), OK);
    check_replay(1);
    assert_int_equal(patch(2, &all_steps), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    check_replay(1);
}

/* Graphs that no plan was written as: two roots, a branch, nothing at all. */
static void test_not_a_chain(void **state)
{
    CUDA_MEMSET_NODE_PARAMS fill = {(CUdeviceptr)(uintptr_t)y[0], 0, 0, 1, 4, 1};
    CUgraphNode root, node;
    (void)state;
    assert_int_equal(patch(0, &all_steps), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    assert_non_null(strstr(wd_last_error(), "the graph has 0 nodes"));
    assert_int_equal(fake->cuGraphAddMemsetNode(&root, graph, NULL, 0, &fill, NULL), 0);
    assert_int_equal(fake->cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL), 0);
    assert_int_equal(patch(0, &all_steps), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    assert_non_null(strstr(wd_last_error(), "2 roots"));
    fake->cuGraphDestroyNode(node);
    assert_int_equal(fake->cuGraphAddMemsetNode(&node, graph, &root, 1, &fill, NULL), 0);
    assert_int_equal(fake->cuGraphAddMemsetNode(&node, graph, &root, 1, &fill, NULL), 0);
    assert_int_equal(patch(0, &all_steps), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
    assert_non_null(strstr(wd_last_error(), "2 nodes follow node 0"));
    assert_int_equal(wd_gpu_graph_queue_init(&(struct wd_gpu_graph_queue){0}, stream_queue, NULL),
                     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

/* An execution whose engine gives up: the graph loses what was added, or keeps what it was. */
static void test_execution_failed(void **state)
{
    struct wd_gpu_graph_queue queue;
    (void)state;
    assert_int_equal(wd_gpu_graph_queue_init(&queue, stream_queue, graph), OK);
    assert_int_equal(execute(&queue.base, 0, &all_steps), OK);
    assert_int_equal(node_count(), 3);
    assert_int_equal(wd_gpu_graph_queue_fini(&queue, CUDNN_STATUS_NOT_SUPPORTED),
                     CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(node_count(), 0);
    assert_int_equal(populate(0, &all_steps), OK);
    assert_int_equal(wd_gpu_patch_queue_init(&queue, stream_queue, graph), OK);
    assert_int_equal(execute(&queue.base, 1, &all_steps), OK);
    assert_int_equal(wd_gpu_graph_queue_fini(&queue, CUDNN_STATUS_NOT_SUPPORTED),
                     CUDNN_STATUS_NOT_SUPPORTED);
    check_replay(0);
}

/* A long chain, past every growth of the list. */
static void test_long_chain(void **state)
{
    struct wd_gpu_graph_queue queue;
    (void)state;
    for (int round = 0; round < 2; ++round) {
        struct wd_queue *base = &queue.base;
        assert_int_equal(round == 0 ? wd_gpu_graph_queue_init(&queue, stream_queue, graph)
                                    : wd_gpu_patch_queue_init(&queue, stream_queue, graph),
                         OK);
        assert_int_equal(base->ops->begin(base), OK);
        for (int i = 0; i < 100; ++i) {
            assert_int_equal(base->ops->fill(base, (char *)y[round] + i, i, 1), OK);
        }
        base->ops->end(base);
        assert_int_equal(queue.base.emitted, 100);
        assert_int_equal(wd_gpu_graph_queue_fini(&queue, OK), OK);
    }
    assert_int_equal(node_count(), 100);
}

/* Each driver call in turn fails while a graph is written or patched. */
static void each_call_fails(cudnnStatus_t (*write)(int k, const struct steps *steps), int k)
{
    struct steps steps = all_steps;
    uint64_t n;
    steps.cluster = 2;
    for (n = 1;; ++n) {
        cudnnStatus_t status;
        const char *failed;
        fake->fakecuda_fail_at(n, CUDA_ERROR_UNKNOWN);
        status = write(k, &steps);
        failed = fake->fakecuda_failed();
        if (!failed) {
            assert_int_equal(status, OK);
            break;
        }
        if (status == OK) {
            /* what the work does not depend on; begin again from where this started */
            assert_true(!strcmp(failed, "cuCtxPopCurrent") ||
                        !strcmp(failed, "cuThreadExchangeStreamCaptureMode"));
            if (write == populate) {
                fake->cuGraphDestroy(graph);
                assert_int_equal(fake->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
            } else {
                assert_int_equal(patch(0, &steps), OK);
            }
            continue;
        }
        assert_int_equal(status, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
        if (strstr(wd_last_error(), failed) != wd_last_error()) {
            fail_msg("%s failed, but: %s", failed, wd_last_error());
        }
        fake->fakecuda_fail_at(0, 0);
        if (write == populate) assert_int_equal(node_count(), 0);
        else check_replay(0);
    }
    assert_true(n > 6);
    fake->fakecuda_fail_at(0, 0);
    check_replay(k);
}

static void test_faults(void **state)
{
    (void)state;
    each_call_fails(populate, 0);
    each_call_fails(patch, 1);
}

/* Each allocation in turn fails, too. */
static void test_allocations(void **state)
{
    struct steps steps = all_steps;
    (void)state;
    steps.scratch = true;
    for (int round = 0; round < 2; ++round) {
        uint64_t n = 0;
        cudnnStatus_t status;
        do {
            wd_alloc_fail_at(++n);
            status = round == 0 ? populate(0, &steps) : patch(1, &steps);
            wd_alloc_fail_at(0);
            if (status == OK) break;
            assert_int_equal(status, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
            assert_non_null(strstr(wd_last_error(), "host memory"));
            if (round == 0) assert_int_equal(node_count(), 0);
            else check_replay(0);
        } while (n < 100);
        assert_int_equal(status, OK);
        assert_true(n > 1);
        check_replay(round);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_populate_and_patch, start, finish),
        cmocka_unit_test_setup_teardown(test_scratch, start, finish),
        cmocka_unit_test_setup_teardown(test_mismatch, start, finish),
        cmocka_unit_test_setup_teardown(test_clusters, start, finish),
        cmocka_unit_test_setup_teardown(test_meetings, start, finish),
        cmocka_unit_test_setup_teardown(test_not_a_chain, start, finish),
        cmocka_unit_test_setup_teardown(test_execution_failed, start, finish),
        cmocka_unit_test_setup_teardown(test_long_chain, start, finish),
        cmocka_unit_test_setup_teardown(test_faults, start, finish),
        cmocka_unit_test_setup_teardown(test_allocations, start, finish),
    };
    fake_open();
    fake->cuInit(0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
