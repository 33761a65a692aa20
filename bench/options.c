/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problem.h"

enum { WHOLE_MOST = 10000, RANDOM = 20, RANDOM_UNSAID = -1 };

static const char usage[] =
    "warpdnn_bench [options]            on the GPU, beside NVIDIA's library\n"
    "warpdnn_bench --cpu [options]      on the CPU, our library alone\n"
    "\n"
    "What runs\n"
    "  --family NAME     this family alone (on the CPU: all, or one of them)\n"
    "  --only TEXT       rows whose family and problem contain the text\n"
    "  --problems FILE   the family's problems are those of the file, lines as in the lists; none "
    "are\n"
    "                    random unless --random says so\n"
    "  --random N        random problems a family (20), from\n"
    "  --seed S          this seed (printed; else a fixed one)\n"
    "  --limit MB        problems scaled down until their tensors fit (none; on the CPU 64)\n"
    "  --list            print the problems and run nothing\n"
    "The libraries\n"
    "  --ours PATH       WarpDNN's libcudnn.so.9 (the one beside this program)\n"
    "  --peer PATH       NVIDIA's libcudnn.so.9 (the one in PyTorch's package)\n"
    "  --no-peer         our library alone\n"
    "  --device N        the GPU (0)\n"
    "How\n"
    "  --seconds S       time spent on a row (0.15; sets of the CPU 0.3)\n"
    "  --no-check        do not compare outputs\n"
    "  --no-host         do not measure what the libraries cost on the host\n"
    "  --host-calls      nothing but the host's time of our calls: no peer, no check, no GPU time\n"
    "Output\n"
    "  --json FILE       the whole run; - is standard output\n"
    "  --csv FILE        its rows\n"
    "  --html FILE       a page with a roofline and a bar chart a family\n"
    "  --against FILE    compare with a run saved by --json; status 1 where a row got slower by "
    "more\n"
    "  --noise P         than P percent (3)\n"
    "Sets of the CPU (with --cpu; without any of them and without --family, all three)\n"
    "  --conv            convolutions, in percent of the sgemm rate at 2048^3\n"
    "  --matmul          products of matrices, the same\n"
    "  --memory          memory-bound calls, in percent of a plain vector copy of their size\n"
    "  --nhwc            channels side by side instead of pixels\n"
    "  --batch N         images of a convolution (8)\n"
    "  --processor-time  time of the processors spread over the threads (WARPDNN_THREADS) instead\n"
    "                    of the clock's, for a machine that does other work; blind to threads "
    "that\n"
    "                    wait\n"
    "\n"
    "Status: 0; 1 where an answer is wrong or a row got slower; 2 where nothing can be measured, "
    "compared\n"
    "or written. ^C ends after the row under way and keeps what was measured.\n";

struct options bench_options = {
    .noise = 3.0, .batch = 8, .random = RANDOM_UNSAID, .seed = 20250729, .limit = 0.0};

static const char *argument(int argc, char **argv, int *i)
{
    if (*i + 1 < argc) return argv[++*i];
    fprintf(stderr, "%s wants a value\n", argv[*i]);
    exit(EXIT_CANNOT_RUN);
}

static uint64_t seed(int argc, char **argv, int *i)
{
    const char *text = argument(argc, argv, i);
    char *end;
    unsigned long long value;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && errno == 0) return value;
    fprintf(stderr, "--seed wants a whole number below 2^64, not '%s'\n", text);
    exit(EXIT_CANNOT_RUN);
}

static double number(int argc, char **argv, int *i, double least)
{
    const char *name = argv[*i];
    const char *text = argument(argc, argv, i);
    char *end;
    double value = strtod(text, &end);
    if (*text && !*end && value >= least) return value;
    fprintf(stderr, "%s wants a number of at least %g, not '%s'\n", name, least, text);
    exit(EXIT_CANNOT_RUN);
}

/* Options that are said or not. */
static const struct {
    const char *name;
    size_t offset;
} flags[] = {
    {"--cpu", offsetof(struct options, cpu)},
    {"--conv", offsetof(struct options, conv)},
    {"--matmul", offsetof(struct options, matmul)},
    {"--memory", offsetof(struct options, memory)},
    {"--nhwc", offsetof(struct options, nhwc)},
    {"--processor-time", offsetof(struct options, processor)},
    {"--list", offsetof(struct options, list)},
    {"--no-peer", offsetof(struct options, no_peer)},
    {"--no-host", offsetof(struct options, no_host)},
    {"--no-check", offsetof(struct options, no_check)},
    {"--host-calls", offsetof(struct options, host_calls)},
};

/* Options with a text. */
static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    {"--family", offsetof(struct options, family)},     {"--only", offsetof(struct options, only)},
    {"--problems", offsetof(struct options, problems)}, {"--ours", offsetof(struct options, ours)},
    {"--peer", offsetof(struct options, peer)},         {"--json", offsetof(struct options, json)},
    {"--csv", offsetof(struct options, csv)},           {"--html", offsetof(struct options, html)},
    {"--against", offsetof(struct options, against)},
};

static int whole(int argc, char **argv, int *i, double least)
{
    const char *name = argv[*i];
    double value = number(argc, argv, i, least);
    if (value <= WHOLE_MOST && value == (double)(int)value) return (int)value;
    fprintf(stderr, "%s wants a whole number of at most %d, not '%s'\n", name, WHOLE_MOST,
            argv[*i]);
    exit(EXIT_CANNOT_RUN);
}

/* Options with a number. */
static const struct {
    const char *name;
    enum { REAL, WHOLE } kind;
    size_t offset;
    double least;
} numbers[] = {
    {"--seconds", REAL, offsetof(struct options, seconds), 0.0},
    {"--limit", REAL, offsetof(struct options, limit), 0.001},
    {"--noise", REAL, offsetof(struct options, noise), 0.0},
    {"--random", WHOLE, offsetof(struct options, random), 0.0},
    {"--batch", WHOLE, offsetof(struct options, batch), 1.0},
    {"--device", WHOLE, offsetof(struct options, device), 0.0},
};

static bool read_one(int argc, char **argv, int *i)
{
    char *at = (char *)&bench_options;
    for (size_t f = 0; f < sizeof flags / sizeof flags[0]; ++f) {
        if (strcmp(argv[*i], flags[f].name) != 0) continue;
        *(bool *)(void *)(at + flags[f].offset) = true;
        return true;
    }
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; ++t) {
        if (strcmp(argv[*i], texts[t].name) != 0) continue;
        *(const char **)(void *)(at + texts[t].offset) = argument(argc, argv, i);
        return true;
    }
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; ++n) {
        void *to = at + numbers[n].offset;
        if (strcmp(argv[*i], numbers[n].name) != 0) continue;
        if (numbers[n].kind == REAL) *(double *)to = number(argc, argv, i, numbers[n].least);
        else *(int *)to = whole(argc, argv, i, numbers[n].least);
        return true;
    }
    if (strcmp(argv[*i], "--seed") != 0) return false;
    bench_options.seed = seed(argc, argv, i);
    return true;
}

static int is_dash(const char *path)
{
    return path && !strcmp(path, "-");
}

static int is_same(const char *path, const char *other)
{
    return path && other && !is_dash(path) && !strcmp(path, other);
}

static void check_family(const char *name)
{
    if (!name || !strcmp(name, "all")) return;
    for (int i = 0; i < family_count; ++i)
        if (!strcmp(families[i]->name, name)) return;
    fprintf(stderr, "--family %s: there is no such family; there are all", name);
    for (int i = 0; i < family_count; ++i) fprintf(stderr, ", %s", families[i]->name);
    fputc('\n', stderr);
    exit(EXIT_CANNOT_RUN);
}

void options_read(int argc, char **argv)
{
    struct options *o = &bench_options;
    for (int i = 1; i < argc; ++i) {
        if (read_one(argc, argv, &i)) continue;
        if (!strcmp(argv[i], "--help")) {
            fputs(usage, stdout);
            exit(EXIT_FINE);
        }
        fprintf(stderr, "unknown option %s\n\n%s", argv[i], usage);
        exit(EXIT_CANNOT_RUN);
    }
    check_family(o->family);
    if (o->problems && (!o->family || !strcmp(o->family, "all"))) {
        fprintf(stderr, "--problems wants the --family that its calls are of\n");
        exit(EXIT_CANNOT_RUN);
    }
    if (o->random == RANDOM_UNSAID) o->random = o->problems ? 0 : RANDOM;
    if (!o->cpu && (o->conv || o->matmul || o->memory || o->nhwc || o->processor)) {
        fprintf(stderr, "--conv, --matmul, --memory, --nhwc, --processor-time go with --cpu\n");
        exit(EXIT_CANNOT_RUN);
    }
    if (o->cpu && (o->peer || o->device)) {
        fprintf(stderr, "--peer and --device go without --cpu\n");
        exit(EXIT_CANNOT_RUN);
    }
    if (o->host_calls && (o->cpu || o->peer || o->against)) {
        fprintf(stderr, "--host-calls goes without --cpu, --peer and --against\n");
        exit(EXIT_CANNOT_RUN);
    }
    if (o->peer && o->no_peer) {
        fprintf(stderr, "--peer and --no-peer go without each other\n");
        exit(EXIT_CANNOT_RUN);
    }
    if (is_same(o->json, o->csv) || is_same(o->json, o->html) || is_same(o->csv, o->html)) {
        fprintf(stderr, "--json, --csv and --html go to different files\n");
        exit(EXIT_CANNOT_RUN);
    }
    if (is_dash(o->json) + is_dash(o->csv) + is_dash(o->html) > 1) {
        fprintf(stderr, "only one of --json, --csv and --html can go to standard output\n");
        exit(EXIT_CANNOT_RUN);
    }
    if (o->cpu && !o->family && !o->conv && !o->matmul && !o->memory) {
        o->conv = o->matmul = o->memory = true;
    }
    if (o->cpu && o->limit <= 0.0) o->limit = 64.0;
}
