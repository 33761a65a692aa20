/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the harness: elements, the list of the case's tensors, and capture on a GPU. */
#ifndef TESTS_SUPPORT_HARNESS_INTERNAL_H
#define TESTS_SUPPORT_HARNESS_INTERNAL_H

#include "support/harness.h"

void tensors_upload(void);              /* initial contents and red zones to the device */
bool tensors_download(const char *way); /* results, after the red zones were checked */
bool tensors_compare(const char *way);  /* results again, bitwise as the downloaded ones */
bool tensors_untouched(void);           /* every byte as uploaded */
void tensors_free(void);

/* harness_element.c: conversions of the harness's own */
int element_bytes(cudnnDataType_t dtype);
bool element_is_integer(cudnnDataType_t dtype);
/* Elements one behind the other, or at byte offsets. */
void elements_load(cudnnDataType_t dtype, const unsigned char *from, const int64_t *places,
                   int64_t count, double *value);
void elements_store(cudnnDataType_t dtype, unsigned char *to, const int64_t *places, int64_t count,
                    const double *value);

void case_count(void); /* case_end, but the tensors stay */

/* harness_list.c: which cases run, by a list, and what each launched */
bool list_start(const char *path_of_program); /* whether there is a list */
bool list_wants(char *case_name);
void list_case_begins(void);
void list_case_ends(const char *case_name);
int list_finish(void); /* how many of the list there were not */

void capture_start(void); /* a stream of our own on the handle */
void capture_finish(void);
bool capture_and_replay(cudnnStatus_t (*call)(void *context), void *context);

#endif
