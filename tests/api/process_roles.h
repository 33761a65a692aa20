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
 *   reopen       opens and closes a second library, the copy at TEST_COPY
 *   plan_first   plans for a CPU that another process described, before it makes a handle
 *   no_last_resort  under WARPDNN_LAST_RESORT=0 no definition runs, however it is asked for */
#ifndef TESTS_API_PROCESS_ROLES_H
#define TESTS_API_PROCESS_ROLES_H

/* The descriptor through which a role tells what went wrong. */
enum { PROCESS_TELL = 3 };

/* Returns the exit status of the process: 0 where all was well. */
int process_role(const char *name);

/* Roles of process_plans.c. */
int process_plan_first(void);
int process_no_last_resort(void);

#define DUE(condition)                                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            char said_[512] = "";                                                                  \
            cudnnGetLastErrorString(said_, sizeof said_);                                          \
            dprintf(PROCESS_TELL, "line %d: %s does not hold; last error: %s\n", __LINE__,         \
                    #condition, said_);                                                            \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#endif
