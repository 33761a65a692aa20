/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator: grids and indices, barriers, shuffles, clusters and late copies come out as on a
 * device, and what is wrong with a kernel shows: a missing barrier in one of two orders, shared
 * memory that nobody wrote, copies that nobody waited for, threads that wait for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emulator/emulator.h"

#if defined(EMULATOR_FINDS_RACES)
enum { FINDS_RACES = 1 };
#else
enum { FINDS_RACES = 0 };
#endif

enum { THREADS = 96, BLOCKS = 5, CLUSTER = 4 };

struct args {
    uint32_t *y;
};

static uint32_t thread(void)
{
    return emulator_now->thread_index.x;
}

static uint32_t block(void)
{
    return emulator_now->block_index.x;
}

static uint32_t *shared(void)
{
    return emulator_now->dynamic_shared;
}

static uint32_t *result_of(const void *args)
{
    return ((const struct args *)args)->y;
}

/* Runs a kernel of so many blocks of THREADS threads, each with a word a thread. */
static void run(emulator_kernel kernel, uint32_t blocks, uint32_t cluster, uint32_t *y)
{
    const struct args args = {y};
    const struct emulator_launch launch = {
        {blocks, 1, 1}, {THREADS, 1, 1}, cluster, THREADS * sizeof(uint32_t), 0};
    emulator_run("kernel", kernel, &args, &launch);
}

static void number_threads(const void *args)
{
    result_of(args)[block() * emulator_now->block_size.x + thread()] += 1;
}

static void test_every_thread_runs_once(void **state)
{
    uint32_t y[BLOCKS * THREADS] = {0};
    (void)state;
    run(number_threads, BLOCKS, 1, y);
    for (int i = 0; i < BLOCKS * THREADS; ++i) assert_int_equal(y[i], 1);
}

/* Each thread takes what its neighbour to the right has. */
static void turn(const void *args)
{
    shared()[thread()] = thread();
    emulator_barrier(0, 0);
    result_of(args)[thread()] = shared()[(thread() + 1) % THREADS];
}

static void turn_without_barrier(const void *args)
{
    shared()[thread()] = thread();
    result_of(args)[thread()] = shared()[(thread() + 1) % THREADS];
}

static void test_barrier(void **state)
{
    uint32_t y[2][THREADS];
    (void)state;
    for (int i = 0; i < 2; ++i) {
        run(turn, 1, 1, y[i]);
        for (uint32_t t = 0; t < THREADS; ++t) assert_int_equal(y[i][t], (t + 1) % THREADS);
    }
}

/* How a process ends that runs a kernel, as waitpid tells. */
static int end_of(emulator_kernel kernel)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        uint32_t y[THREADS];
        close(STDERR_FILENO);
        run(kernel, 1, 1, y);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* The thread sanitizer reports it; without one the two orders of threads disagree. */
static void test_missing_barrier(void **state)
{
    uint32_t y[2][THREADS];
    (void)state;
    if (FINDS_RACES) {
        assert_int_equal(end_of(turn), 0);
        assert_int_not_equal(end_of(turn_without_barrier), 0);
        return;
    }
    for (int i = 0; i < 2; ++i) run(turn_without_barrier, 1, 1, y[i]);
    assert_memory_not_equal(y[0], y[1], sizeof y[0]);
}

/* The upper two warps meet without the first; a thread that has ended is not waited for. */
static void meet_in_part(const void *args)
{
    if (thread() == 5) return;
    if (thread() >= 32) {
        shared()[thread()] = thread();
        emulator_barrier(1, 64);
        result_of(args)[thread()] = shared()[128 - 1 - thread()];
    }
    emulator_barrier(0, 0);
    if (thread() < 32) result_of(args)[thread()] = shared()[thread() + 32];
}

static void test_part_of_a_block(void **state)
{
    uint32_t y[THREADS] = {0};
    (void)state;
    run(meet_in_part, 1, 1, y);
    for (uint32_t t = 32; t < THREADS; ++t) assert_int_equal(y[t], 127 - t);
    for (uint32_t t = 0; t < 32; ++t) assert_int_equal(y[t], t == 5 ? 0 : t + 32);
}

/* Each warp by itself, by as many names as there are warps; the whole block's is one of them, where nobody else meets by it. */
static void meet_in_warps(const void *args)
{
    const uint32_t warp = thread() / 32;
    shared()[thread()] = thread();
    emulator_barrier(warp, 32);
    result_of(args)[thread()] = shared()[thread() ^ 31];
    emulator_barrier(3, THREADS); /* the first warp does not wait for those that have ended */
}

static void test_warps_meet(void **state)
{
    uint32_t y[THREADS] = {0};
    (void)state;
    run(meet_in_warps, 1, 1, y);
    for (uint32_t t = 0; t < THREADS; ++t) assert_int_equal(y[t], t ^ 31);
}

static void sum_warp(const void *args)
{
    uint32_t sum = thread();
    for (uint32_t lanes = 1; lanes < 32; lanes *= 2) {
        uint32_t other;
        emulator_warp_show(&sum, sizeof sum);
        emulator_warp_see(emulator_lane() ^ lanes, &other, sizeof other);
        sum += other;
    }
    result_of(args)[thread()] = sum;
}

static void test_shuffles(void **state)
{
    uint32_t y[THREADS];
    (void)state;
    run(sum_warp, 1, 1, y);
    for (uint32_t t = 0; t < THREADS; ++t) assert_int_equal(y[t], 31 * 16 + t / 32 * 32 * 32);
}

/* Each block takes a word from the next one of its cluster. */
static void look_around(const void *args)
{
    const uint32_t next = (block() + 1) % CLUSTER;
    shared()[thread()] = 1000 * block() + thread();
    emulator_cluster_arrive();
    emulator_cluster_wait();
    result_of(args)[block() * THREADS + thread()] =
        *(const uint32_t *)emulator_of_cluster(&shared()[thread()], next);
    emulator_cluster_arrive();
    emulator_cluster_wait();
}

static void test_clusters(void **state)
{
    uint32_t y[2 * CLUSTER * THREADS];
    (void)state;
    run(look_around, 2 * CLUSTER, CLUSTER, y);
    for (uint32_t b = 0; b < 2 * CLUSTER; ++b) {
        const uint32_t next = b / CLUSTER * CLUSTER + (b + 1) % CLUSTER;
        for (uint32_t t = 0; t < THREADS; ++t) {
            assert_int_equal(y[b * THREADS + t], 1000 * next + t);
        }
    }
}

static void meet(uint32_t *counter)
{
    uint32_t mine = block() == 0 ? ((uint32_t)1 << 31) - (BLOCKS - 1) : 1;
    emulator_await(counter, emulator_come(counter, mine));
}

/* All blocks of a grid write, meet, and read what the one behind them wrote; twice, with what the
 * first meeting left in the counter. */
static void meet_all(const void *args)
{
    uint32_t *y = result_of(args), *counter = y + 2 * BLOCKS;
    for (uint32_t k = 0; k < 2; ++k) {
        if (thread() == 0) {
            y[block()] = 10 * k + block();
            meet(counter);
            y[BLOCKS + block()] = y[(block() + 1) % BLOCKS];
            meet(counter);
        }
    }
}

static void test_meetings(void **state)
{
    uint32_t y[2 * BLOCKS + 1] = {0};
    const struct args args = {y};
    const struct emulator_launch launch = {{BLOCKS, 1, 1}, {THREADS, 1, 1}, 1, 0, 1};
    (void)state;
    for (int i = 0; i < 2; ++i) {
        emulator_run("kernel", meet_all, &args, &launch);
        for (uint32_t b = 0; b < BLOCKS; ++b) {
            assert_int_equal(y[BLOCKS + b], 10 + (b + 1) % BLOCKS);
        }
        assert_int_equal(y[2 * BLOCKS] << 1, 0);
    }
}

static void read_before_writing(const void *args)
{
    result_of(args)[thread()] = shared()[thread()];
}

static void test_shared_memory_is_noise(void **state)
{
    uint32_t y[THREADS];
    (void)state;
    run(read_before_writing, 1, 1, y);
    for (uint32_t t = 0; t < THREADS; ++t) assert_int_equal(y[t], 0xfbfbfbfbu);
}

static const uint32_t source[THREADS] = {[0] = 17, [THREADS - 1] = 18};

static void copy_late(const void *args)
{
    emulator_copy(&shared()[thread()], &source[thread()], sizeof source[0]);
    emulator_copies_end();
    result_of(args)[thread()] = shared()[thread()];
    emulator_copies_wait(1);
    result_of(args)[THREADS + thread()] = shared()[thread()];
    emulator_copies_wait(0);
    result_of(args)[2 * THREADS + thread()] = shared()[thread()];
}

static void test_copies_happen_when_waited_for(void **state)
{
    uint32_t y[3 * THREADS];
    (void)state;
    run(copy_late, 1, 1, y);
    assert_int_equal(y[0], 0xfbfbfbfbu);
    assert_int_equal(y[THREADS], 0xfbfbfbfbu);
    assert_int_equal(y[2 * THREADS], 17);
    assert_int_equal(y[3 * THREADS - 1], 18);
}

static void wait_for_ever(const void *args)
{
    (void)args;
    if (thread() == 0) emulator_barrier(1, 64);
}

static void test_threads_that_wait_for_ever(void **state)
{
    (void)state;
    assert_int_not_equal(end_of(wait_for_ever), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_thread_runs_once),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_missing_barrier),
        cmocka_unit_test(test_part_of_a_block),
        cmocka_unit_test(test_warps_meet),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_shared_memory_is_noise),
        cmocka_unit_test(test_copies_happen_when_waited_for),
        cmocka_unit_test(test_threads_that_wait_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
