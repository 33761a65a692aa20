/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that tries a row in the peer: this program again, with the options of this run, that row
 * alone, and a mark in the environment. */
#include "odd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "device.h"

static const char mark[] = "WARPDNN_BENCH_ODD";

bool odd_is_probe(void)
{
    return getenv(mark) != NULL;
}

bool odd_peer_survives(const char *family, const char *text)
{
    const struct options *o = &bench_options;
    char random[24];
    char seed[24];
    char limit[32];
    char number[16];
    const char *argv[24] = {"warpdnn_bench", "--peer",    peer.path, "--ours",   ours.path,
                            "--family",      family,      "--only",  text,       "--random",
                            random,          "--seed",    seed,      "--device", number,
                            "--no-host",     "--no-check"};
    int status = -1;
    int count = 17;
    pid_t child;
    snprintf(random, sizeof random, "%d", o->random);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
    snprintf(number, sizeof number, "%d", device.ordinal);
    snprintf(limit, sizeof limit, "%.9g", o->limit);
    if (o->limit > 0.0) {
        argv[count++] = "--limit";
        argv[count++] = limit;
    }
    if (o->problems) {
        argv[count++] = "--problems";
        argv[count++] = o->problems;
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 1);
        dup2(nowhere, 2);
        setenv(mark, "1", 1);
        execv("/proc/self/exe", (char **)argv);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
