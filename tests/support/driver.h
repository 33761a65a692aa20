/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver API opened at run time, so that tests build without a toolkit: the one that the library uses. What is not there ends the
 * program as a failed test. */
#ifndef TESTS_SUPPORT_DRIVER_H
#define TESTS_SUPPORT_DRIVER_H

/* Once; the primary context of device 0 is current then. */
void driver_open(void);
/* A function by name, as the object pointer that every cast starts from. */
void *driver_symbol(const char *name);

#define DRIVER(type, name) (*(type *)&(void *){driver_symbol(name)})

#endif
