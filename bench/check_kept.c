/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs that were read back: see check_kept.h. */
#include "check_kept.h"

#include <math.h>
#include <stdlib.h>

#include "device.h"
#include "values.h"

enum {
    STRETCH = 1 << 18, /* bytes, else */
    STRETCHES = 24,
};

/* The stretches of a large tensor: its two ends, and others spread over it. */
static size_t stretch_at(size_t bytes, int i)
{
    size_t last = bytes - STRETCH;
    uint64_t seed = (uint64_t)i * 7919u;
    if (i == 0) return 0;
    if (i == STRETCHES - 1) return last / 8 * 8;
    return (size_t)(random_next(&seed) % last) / 8 * 8;
}

void kept_read(const struct operand *o, const void *at, bool whole, struct kept *kept)
{
    size_t size = type_bytes(o->type);
    if (whole || o->bytes <= WHOLE_MAX) {
        kept->data = malloc(o->bytes ? o->bytes : 1);
        kept->count = o->count;
        if (kept->data) device_download(kept->data, at, o->bytes);
        return;
    }
    kept->data = malloc((size_t)STRETCH * STRETCHES);
    kept->count = (int64_t)((size_t)STRETCH * STRETCHES / size);
    for (int i = 0; kept->data && i < STRETCHES; ++i) {
        device_download(kept->data + (size_t)i * STRETCH,
                        (const char *)at + stretch_at(o->bytes, i), STRETCH);
    }
}

int64_t kept_position(const struct operand *o, const struct kept *kept, int64_t i)
{
    const int64_t each = STRETCH / (int64_t)type_bytes(o->type);
    if (kept->count == o->count) return i;
    return (int64_t)(stretch_at(o->bytes, (int)(i / each)) / type_bytes(o->type)) + i % each;
}

double *kept_decode(const struct operand *o, const struct kept *kept, bool logical)
{
    double *values = malloc((size_t)(kept->count ? kept->count : 1) * sizeof *values);
    if (!values) return NULL;
    if (logical) values_decode_logical(o, kept->data, values);
    else values_decode(kept->data, o->type, kept->count, values);
    return values;
}

/* The tolerance of an element beside `right`, in a tensor of this root mean square. */
static double tolerance(const struct task *task, const struct operand *o, double right, double rms)
{
    double arithmetic = 64.0 * type_epsilon(task_compute(task)) * sqrt(fmax(task->terms, 1.0));
    double rounding = 4.0 * type_epsilon(o->type) * fabs(right);
    if (o->type == CUDNN_DATA_HALF) rounding += 0x1p-23;
    return task->slack * (rounding + arithmetic * (fabs(right) + rms));
}

double kept_rms(const double *values, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i) sum += isfinite(values[i]) ? values[i] * values[i] : 0.0;
    return sqrt(sum / (double)(count ? count : 1));
}

double kept_off_by(const struct task *task, const struct operand *o, double mine, double right,
                   double rms)
{
    double off = fabs(mine - right);
    if (mine == right) return 0.0;
    return isnan(off) ? INFINITY : off / fmax(tolerance(task, o, right, rms), 1e-300);
}
