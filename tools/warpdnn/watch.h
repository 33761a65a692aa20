/* SPDX-License-Identifier: Apache-2.0
 *
 * Who ran on which libcudnn: what `warpdnn run` sees of the processes it started, from outside
 * (/proc/PID/maps, now and then) and from inside (the checker's lines, as each process ends). */
#ifndef WARPDNN_TOOL_WATCH_H
#define WARPDNN_TOOL_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct watch;

/* `ours` is the real name of our library; `lines` the file that checkers write to. */
struct watch *watch_create(pid_t root, const char *ours, const char *lines);
void watch_destroy(struct watch *watch);

/* Looks at the root process and its living descendants. */
void watch_look(struct watch *watch);

/* After the end: reads the checkers' lines and says on stderr what was found; good news only where
 * `quiet` is false. True where WarpDNN, and no other library, did the work. */
bool watch_conclude(struct watch *watch, bool quiet);

#endif
