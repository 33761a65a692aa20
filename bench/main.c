/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn_bench: see bench.h for its parts and README.md for what it measures. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "device.h"
#include "host.h"
#include "host_time.h"
#include "odd.h"
#include "output.h"
#include "result.h"
#include "run.h"
#include "sets.h"

char bench_row[224];
const char *bench_whose = "";

double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool bench_wanted(const char *text)
{
    return !bench_options.only || strstr(text, bench_options.only) != NULL;
}

void bench_check(cudnnStatus_t status, const char *what)
{
    char text[1024];
    if (status == CUDNN_STATUS_SUCCESS) return;
    ours.GetLastErrorString(text, sizeof text);
    fprintf(stderr, "\n%s: %s: %s\n", what, ours.GetErrorString(status), text);
    bench_give_up();
}

/* ---- the end before the end ---- */

static volatile sig_atomic_t stopped_by;

static void stop(int signal)
{
    stopped_by = signal;
}

/* The first signal lets the row under way be finished and what is there be written; a second one ends
 * the program at once. */
static void listen_to_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    struct sigaction before;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; ++i) {
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(signals[i], &action, NULL);
    }
}

bool bench_is_stopped(void)
{
    return stopped_by != 0;
}

static bool write_files(void)
{
    const struct options *o = &bench_options;
    bool good = true;
    if (o->json) good &= json_write(o->json);
    if (o->csv) good &= csv_write(o->csv);
    if (o->html) good &= html_write(o->html);
    return good;
}

_Noreturn void bench_give_up(void)
{
    run_facts.complete = false;
    if (result_count() > 0) {
        fprintf(stderr, "ended early; rows that were measured: %d\n", result_count());
        write_files();
    }
    exit(EXIT_CANNOT_RUN);
}

/* ---- the order of things ---- */

static bool wants_family(const struct family *family)
{
    const char *name = bench_options.family;
    if (bench_options.cpu && !name) return false;
    return !name || !strcmp(name, "all") || !strcmp(name, family->name);
}

static void list(void)
{
    for (int f = 0; f < family_count; ++f) {
        const struct problem_list listed = own_or_listed(families[f]);
        int shown = 0;
        if (!wants_family(families[f]) && bench_options.family) continue;
        for (int i = 0; i < listed.count; ++i) {
            struct problem problem = listed.problems[i];
            struct task task;
            if (!run_plan(families[f], &problem, &task) || !run_wanted(&task)) continue;
            printf("%s %s\n", families[f]->name, task.text);
            shown += 1;
        }
        fprintf(stderr, "%s: %d of %d problems\n", families[f]->name, shown, listed.count);
    }
}

/* Opens what is to be measured; the peer first, so that names it asks the loader for lead to itself. */
static bool open_libraries(char **argv)
{
    char path[PATH_MAX];
    bool peer_wanted = !bench_options.cpu && !bench_options.no_peer && !bench_options.host_calls;
    if (peer_wanted && library_find_peer(bench_options.peer, path)) {
        library_reexec(path, argv);
        if (!library_open(&peer, path, false)) return false;
    } else if (peer_wanted && bench_options.peer) {
        return false;
    } else if (peer_wanted) {
        fprintf(stderr, "NVIDIA's library was not found (PyTorch's package is not here): the rows "
                        "have no peer; --peer names one\n");
    }
    if (!library_find_ours(bench_options.ours, path) || !library_open(&ours, path, true)) {
        return false;
    }
    if (ours.open && peer.open && !strcmp(ours.folder, peer.folder)) {
        fprintf(stderr, "both libraries lie in %s\n", ours.folder);
        return false;
    }
    return library_verify_maps();
}

static void say_facts(int argc, char **argv)
{
    struct run_facts *f = &run_facts;
    size_t length = 0;
    snprintf(f->device, sizeof f->device, "%s", device.name);
    snprintf(f->ours, sizeof f->ours, "%s", ours.GetVersionString());
    if (run_handle(&peer)) {
        size_t version = peer.GetVersion();
        snprintf(f->peer, sizeof f->peer, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100,
                 version % 100);
    }
    f->copy = device.copy;
    f->driver_version = device.driver_version;
    f->capability = device.capability;
    f->seed = bench_options.seed;
    for (int i = 0; i < argc && length < sizeof f->command; ++i) {
        const char *word = i ? argv[i] : "warpdnn_bench";
        const char *quote = word[strcspn(word, " *?$&;|<>()\"\\")] ? "'" : "";
        length += (size_t)snprintf(f->command + length, sizeof f->command - length, "%s%s%s%s",
                                   i ? " " : "", quote, word, quote);
    }
    /* what is cut in the middle of a character is no text */
    for (char *c = f->command; *c; ++c) *c = (char)((unsigned char)*c < 0x80 ? *c : '?');
    fprintf(stderr, "%s; ours: %s, %s\n", f->device, f->ours, ours.path);
    if (f->peer[0]) fprintf(stderr, "peer: %s, %s\n", f->peer, peer.path);
    if (f->copy > 0.0) {
        fprintf(stderr, "copy: %.1f GB/s, read and written; L2 %.0f MiB; driver for CUDA %d.%d\n",
                f->copy * 1e-9, (double)device.l2 / 1048576.0, f->driver_version / 1000,
                f->driver_version / 10 % 100);
    }
    if (f->launch > 0.0) {
        fprintf(stderr, "the host's time for an empty kernel: %.2f us", f->launch * 1e6);
        if (f->meeting > 0.0) fprintf(stderr, "; of blocks that meet: %.2f us", f->meeting * 1e6);
        fputc('\n', stderr);
    }
    fprintf(stderr, "seed of random problems and values: %llu (--seed)\n",
            (unsigned long long)f->seed);
}

/* An output that cannot be written is better known before the measurements than after. */
static bool probe_files(void)
{
    const struct options *o = &bench_options;
    return output_probe(o->json) && output_probe(o->csv) && output_probe(o->html);
}

static void measure_families(void)
{
    bool any = false;
    for (int f = 0; f < family_count; ++f) any |= wants_family(families[f]);
    if (!any) return;
    table_header();
    for (int f = 0; f < family_count; ++f) {
        if (wants_family(families[f]) && !bench_is_stopped()) run_family(families[f]);
    }
    table_summary(!bench_options.host_calls);
}

/* Writes, compares, closes; the exit status. */
static int conclude(const struct old_run *old)
{
    enum against against = AGAINST_FINE;
    bool good = result_count() > 0;
    run_facts.complete = !bench_is_stopped();
    if (!good && run_facts.complete) fprintf(stderr, "no problem matches\n");
    good &= write_files();
    if (bench_options.against) against = against_compare(old, bench_options.noise);
    if (against == AGAINST_NOTHING) {
        fprintf(stderr, "no row of %s was measured: nothing is compared\n", bench_options.against);
    }
    good &= library_verify_maps();
    run_close();
    device_close();
    good &= output_finish();
    if (bench_is_stopped()) {
        fprintf(stderr, "ended by a signal; rows that were measured: %d\n", result_count());
        signal(stopped_by, SIG_DFL);
        raise(stopped_by);
    }
    if (!good || against == AGAINST_NOTHING) return EXIT_CANNOT_RUN;
    return against == AGAINST_SLOWER || result_any_bad() ? EXIT_BAD_ROWS : EXIT_FINE;
}

int main(int argc, char **argv)
{
    static struct old_run old;
    if (argc > 1 && !strcmp(argv[1], host_flag)) return host_child(argc, argv);
    options_read(argc, argv);
    own_read();
    if (bench_options.list) {
        list();
        return output_finish() ? EXIT_FINE : EXIT_CANNOT_RUN;
    }
    if (!probe_files()) return EXIT_CANNOT_RUN;
    if (bench_options.against && !json_read(bench_options.against, &old)) return EXIT_CANNOT_RUN;
    setenv("WARPDNN_DEVICE", bench_options.cpu ? "cpu" : "gpu", 1);
    if (bench_options.processor) setenv("OMP_WAIT_POLICY", "passive", 1);
    if (!open_libraries(argv)) return EXIT_CANNOT_RUN;
    if (bench_options.cpu) device_open_cpu();
    else if (!device_open_gpu(bench_options.device)) return EXIT_CANNOT_RUN;
    if (!odd_is_probe() && !bench_options.host_calls) device_measure_copy();
    if (!odd_is_probe() && device.gpu) {
        run_facts.launch = host_time_launch();
        run_facts.meeting = host_time_meeting();
    }
    if (!run_open()) return EXIT_CANNOT_RUN;
    say_facts(argc, argv);
    if (bench_options.against && !against_fits(&old)) return EXIT_CANNOT_RUN;
    listen_to_signals();
    if (!bench_options.no_host && (!bench_options.cpu || bench_options.family)) host_measure();
    measure_families();
    if (bench_options.cpu) sets_run();
    return conclude(&old);
}
