/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a run and what is made of them. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cudnn.h"

enum verdict {
    UNCHECKED,
    RIGHT,
    WRONG,
    REFUSED, /* by ours */
};

struct result {
    char family[24];
    char problem[160];
    char engine[96];
    double bytes;  /* that must move */
    double ours;   /* seconds; 0: it did not run */
    double floor;  /* seconds */
    double peer;   /* seconds; 0: it did not run */
    double host;   /* seconds of the host's time for a call of ours; 0: not measured */
    double launch; /* and, in turns with it, for launching an empty kernel; 0: not measured */
    int pieces;    /* kernels, fills and copies of a call of ours */
    double first;  /* seconds to plan its graph, by --host-calls: at first ... */
    double plan;   /* ... and again; 0: it has none */
    int nodes;     /* of that graph */
    double limit;  /* the most that time over floor may be, where the row is large */
    int runs;
    int sets;      /* of buffers */
    bool captured; /* ours: else timed as it was enqueued */
    bool peer_captured;
    cudnnStatus_t ours_status;
    cudnnStatus_t peer_status;
    bool peer_present;
    enum verdict verdict;
    char note[256]; /* why it is wrong, or what else to know */
};

/* Sizes and bounds of the targets. */
enum { LARGE_MB = 64, SMALL_MB = 1 };

void result_add(const struct result *result);
int result_count(void);
const struct result *result_at(int i);
double result_over_floor(const struct result *result); /* 0 where unknown */
double result_ratio(const struct result *result);      /* ours over peer; 0 where unknown */
double result_host_most(const struct result *result);  /* what the host may take; 0 where unknown */

/* Geometric mean and worst of some rows of a family. */
struct mean {
    double mean;
    double worst;
    int rows;
};
enum selection { LARGE_OVER_FLOOR, ALL_OVER_FLOOR, SMALL_RATIO, ALL_RATIO };
struct mean result_mean(const char *family, enum selection selection); /* null family: all */
/* The families that have rows, in order. */
int result_families(const char **names, int most);
/* Why a row misses a target; false where it misses none. */
bool result_miss(const struct result *result, char *why, size_t size);
/* Whether a mean of a family misses its target. */
bool result_mean_miss(const char *family, char *why, size_t size);
bool result_any_bad(void);

/* About the run. */
struct run_facts {
    char device[128];
    char ours[128];
    char peer[128];
    double copy;    /* bytes a second; 0 on the CPU */
    double launch;  /* seconds of the host for an empty kernel, 0 on the CPU */
    double meeting; /* likewise, of one whose blocks are all there at once; 0: unknown */
    int driver_version;
    int capability;
    uint64_t seed;
    char command[256];
    bool complete; /* false: it ended early, and rows are missing */
};
extern struct run_facts run_facts;

/* Each writes the whole run; false with a text where the file cannot be written. */
void table_header(void);
void table_row(const struct result *result);
void table_summary(bool means); /* those of families, if wanted, and what misses its target */
bool json_write(const char *path);
bool csv_write(const char *path);
bool html_write(const char *path);

/* A run that was saved. */
struct old_run {
    char device[128];
    char time[16]; /* "clock" or "processors" */
    struct result *rows;
    int count;
};
bool json_read(const char *path, struct old_run *run);
/* Whether it was on this device and took time in the same way; false with a text. */
bool against_fits(const struct old_run *run);
/* Whether a row is slower than it was there, beyond the noise. */
bool against_is_slower(const struct result *row);
/* Compares with it and says what got slower. */
enum against { AGAINST_FINE, AGAINST_SLOWER, AGAINST_NOTHING /* no row was in both */ };
enum against against_compare(const struct old_run *run, double noise);

#endif
