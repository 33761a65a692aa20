/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn: the command beside the library. A table of subcommands; each is a file of its own. It
 * links no libcudnn, so that it works where the library does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "tool.h"

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"run", command_run, "run a program on WarpDNN, and say whether WarpDNN did the work"},
    {"doctor", command_doctor,
     "look at drivers, devices, libraries and frameworks: what is wrong?"},
    {"bench", command_bench, "measure the library (warpdnn_bench; `warpdnn bench --help`)"},
    {"version", command_version, "the version of this command"},
    {"help", command_help, "this text"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to)
{
    fputs("warpdnn COMMAND [ARGUMENTS]\n\n", to);
    for (int i = 0; i < COMMANDS; ++i)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].what);
    fputs("\n`warpdnn COMMAND --help` says more.\n", to);
}

static int command_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    print_help(stdout);
    return EXIT_SUCCESS;
}

static int command_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("WarpDNN " WD_VERSION);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_help(stderr);
        return EXIT_OURS;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    for (int i = 0; i < COMMANDS; ++i) {
        if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "warpdnn: there is no command '%s'; `warpdnn help` lists them\n", name);
    return EXIT_OURS;
}
