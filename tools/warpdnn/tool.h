/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of warpdnn. Each is given its own arguments (argv[0] is its name) and answers the
 * exit status. */
#ifndef WARPDNN_TOOL_TOOL_H
#define WARPDNN_TOOL_TOOL_H

/* What env, timeout, nice and their like answer: our own failure, a command that cannot be
 * executed, one that is not there. */
enum { EXIT_OURS = 125, EXIT_CANNOT_EXECUTE = 126, EXIT_NOT_FOUND = 127 };

int command_run(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_bench(int argc, char **argv);

#endif
