/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process of process_test.c does with the library, by name:
 *
 *   compute      a whole visit; TEST_ENGINE=def or =module says whose engine has to run
 *   refused      cudnnCreate answers NOT_INITIALIZED, with a text that holds TEST_TEXT
 *   fork_first   forks before the library was used     fork_later   and after it has computed
 *   exit_busy    exits while other threads compute     main_leaves  the main thread ends first
 *   exit_order   computes in exit handlers and in a destructor
 *   leave_all    exits with a handle and a descriptor alive
 *   reopen       opens and closes a second library, the copy at TEST_COPY */
#ifndef TESTS_API_PROCESS_ROLES_H
#define TESTS_API_PROCESS_ROLES_H

/* The descriptor through which a role tells what went wrong. */
enum { PROCESS_TELL = 3 };

/* Returns the exit status of the process: 0 where all was well. */
int process_role(const char *name);

#endif
