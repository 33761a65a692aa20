/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the rows of a run, and works out means, worsts, and who misses a target. */
#include "result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct run_facts run_facts;
static struct result *results;
static int count;
static int room;

/* The targets of rows, but for that of time over floor, which a row carries itself; and of means. */
static const double large_mean = 1.2;  /* of time over floor, LARGE_MB and more */
static const double small_mean = 0.8;  /* of the peer's time, under SMALL_MB */
static const double small_most = 1.05; /* of the peer's time, under SMALL_MB */
static const double always_most =
    1.03; /* of the peer's time, any size: 0.97 of its speed or better */
static const double host_most = 1e-6;  /* seconds a piece of work, above the driver's launch */
static const double plan_most = 20e-6; /* ... and a node, to plan its graph again */

void result_add(const struct result *result)
{
    if (count == room) {
        struct result *more = realloc(results, (size_t)(2 * room + 64) * sizeof *more);
        if (!more) exit(EXIT_CANNOT_RUN);
        results = more;
        room = 2 * room + 64;
    }
    results[count++] = *result;
}

int result_count(void)
{
    return count;
}

const struct result *result_at(int i)
{
    return &results[i];
}

double result_over_floor(const struct result *r)
{
    return r->ours > 0.0 && r->floor > 0.0 ? r->ours / r->floor : 0.0;
}

double result_ratio(const struct result *r)
{
    return r->ours > 0.0 && r->peer > 0.0 ? r->ours / r->peer : 0.0;
}

double result_host_most(const struct result *r)
{
    double launch = r->launch > 0.0 ? r->launch : run_facts.launch;
    return launch > 0.0 ? r->pieces * (launch + host_most) : 0.0;
}

static bool is_large(const struct result *r)
{
    return r->bytes >= LARGE_MB * 1e6;
}

static bool is_small(const struct result *r)
{
    return r->bytes < SMALL_MB * 1e6;
}

static double selected(const struct result *r, enum selection selection)
{
    switch (selection) {
    case LARGE_OVER_FLOOR: return is_large(r) ? result_over_floor(r) : 0.0;
    case ALL_OVER_FLOOR: return result_over_floor(r);
    case SMALL_RATIO: return is_small(r) ? result_ratio(r) : 0.0;
    default: return result_ratio(r);
    }
}

struct mean result_mean(const char *family, enum selection selection)
{
    struct mean mean = {0.0, 0.0, 0};
    for (int i = 0; i < count; ++i) {
        double x;
        if (family && strcmp(results[i].family, family) != 0) continue;
        x = selected(&results[i], selection);
        if (x <= 0.0) continue;
        mean.mean += log(x);
        mean.worst = fmax(mean.worst, x);
        mean.rows += 1;
    }
    if (mean.rows) mean.mean = exp(mean.mean / mean.rows);
    return mean;
}

int result_families(const char **names, int most)
{
    int found = 0;
    for (int i = 0; i < count; ++i) {
        bool known = false;
        for (int j = 0; j < found; ++j) known |= !strcmp(names[j], results[i].family);
        if (!known && found < most) names[found++] = results[i].family;
    }
    return found;
}

bool result_miss(const struct result *r, char *why, size_t size)
{
    double over = result_over_floor(r);
    double ratio = result_ratio(r);
    *why = 0;
    if (r->verdict == WRONG) {
        snprintf(why, size, "WRONG: %s", r->note);
    } else if (r->verdict == REFUSED) {
        snprintf(why, size, "refused: %s", r->note);
    } else if (run_facts.copy > 0.0 && is_large(r) && over > r->limit) {
        snprintf(why, size, "%.2f times the floor, target %.1f", over, r->limit);
    } else if (is_small(r) && ratio > small_most) {
        snprintf(why, size, "%.2f of the peer's time, target %.2f", ratio, small_most);
    } else if (ratio > always_most) {
        snprintf(why, size, "%.2f of the peer's time, target %.2f", ratio, always_most);
    } else if (run_facts.copy > 0.0 && r->ours > 0.0 && !r->captured) {
        snprintf(why, size, "cannot be captured");
    } else if (r->pieces > 0 && r->host > result_host_most(r)) {
        snprintf(why, size, "%.2f us on the host for %d launches, target %.2f", r->host * 1e6,
                 r->pieces, result_host_most(r) * 1e6);
    } else if (r->plan > r->nodes * plan_most) {
        snprintf(why, size, "%.1f us to plan %d nodes again, target %.0f", r->plan * 1e6, r->nodes,
                 r->nodes * plan_most * 1e6);
    }
    return *why != 0;
}

bool result_mean_miss(const char *family, char *why, size_t size)
{
    struct mean large = result_mean(family, LARGE_OVER_FLOOR);
    struct mean little = result_mean(family, SMALL_RATIO);
    *why = 0;
    if (run_facts.copy <= 0.0) return false;
    if (large.rows && large.mean > large_mean) {
        snprintf(why, size, "large rows take %.2f times the floor in the mean, target %.1f",
                 large.mean, large_mean);
    } else if (little.rows && little.mean > small_mean) {
        snprintf(why, size, "small rows take %.2f of the peer's time in the mean, target %.1f",
                 little.mean, small_mean);
    }
    return *why != 0;
}

bool result_any_bad(void)
{
    for (int i = 0; i < count; ++i)
        if (results[i].verdict == WRONG) return true;
    return false;
}
