/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the outputs of ours with the peer's and with a computation in double precision. What an
 * element may be off is in check_kept.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "check_kept.h"
#include "device.h"
#include "values.h"

enum {
    POISON = 0xff,           /* NaN in every floating type */
    REFERENCE_MAX = 1 << 19, /* elements of a problem that is computed on the host */
    ARBITER_MAX = 1 << 27,   /* likewise, of an operand, where results differ */
};

void buffers_fill(const struct task *task, const struct buffers *buffers, unsigned which)
{
    for (int i = 0; i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        if (o->role == OUTPUT) device_set(buffers->at[i], POISON, o->bytes);
        else if (o->role != OPAQUE)
            values_fill(o, buffers->at[i], which * OPERANDS_MAX + (unsigned)i);
    }
}

/* Fresh inputs, and those that depend on others. */
static cudnnStatus_t make_inputs(const struct task *task, struct session *session,
                                 const struct buffers *buffers)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    buffers_fill(task, buffers, 0);
    device_sync();
    if (task->family->setup) status = task->family->setup(session, task, buffers->at);
    device_sync();
    return status;
}

static cudnnStatus_t run_once(const struct task *task, struct session *session,
                              const struct buffers *buffers, struct kept kept[OPERANDS_MAX])
{
    cudnnStatus_t status;
    bench_whose = session->library->label;
    status = task->family->run(session, task, buffers->at);
    device_sync();
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < task->count; ++i) {
        if (is_output(&task->operand[i]))
            kept_read(&task->operand[i], buffers->at[i], false, &kept[i]);
    }
    return status;
}

/* Compares elements; false with the worst in `why`. `whose` says what `right` is. */
static bool agree(const struct task *task, const struct operand *o, const double *mine,
                  const double *right, int64_t count, const char *whose, char *why, size_t size)
{
    const double rms = kept_rms(right, count);
    double worst = 1.0;
    int64_t worst_at = -1;
    int64_t bad = 0;
    for (int64_t i = 0; i < count; ++i) {
        double off = kept_off_by(task, o, mine[i], right[i], rms);
        if (off <= 1.0) continue;
        bad += 1;
        if (off > worst || worst_at < 0) {
            worst = off;
            worst_at = i;
        }
    }
    if (!bad) return true;
    snprintf(why, size, "%s: %lld of %lld differ from %s; worst at %lld: %.9g for %.9g", o->name,
             (long long)bad, (long long)count, whose, (long long)worst_at, mine[worst_at],
             right[worst_at]);
    return false;
}

/* Of all outputs, or of those alone that were read back in part. */
static bool compare_peer(const struct task *task, bool parts_only,
                         const struct kept mine[OPERANDS_MAX],
                         const struct kept theirs[OPERANDS_MAX], char *why, size_t size)
{
    bool right = true;
    for (int i = 0; right && i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        double *a;
        double *b;
        if (!is_output(o) || o->unchecked || o->own) continue;
        if (parts_only && mine[i].count == o->count) continue;
        if (!mine[i].data || !theirs[i].data) continue;
        a = kept_decode(o, &mine[i], false);
        b = kept_decode(o, &theirs[i], false);
        if (a && b) right = agree(task, o, a, b, mine[i].count, "the peer's", why, size);
        free(a);
        free(b);
    }
    return right;
}

static bool is_small(const struct task *task)
{
    for (int i = 0; i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        if (o->role != OPAQUE && (o->count > REFERENCE_MAX || o->bytes > WHOLE_MAX)) return false;
    }
    return true;
}

/* The inputs as they were before the call, logical, and room for the outputs. */
static void read_inputs(const struct task *task, const struct buffers *buffers,
                        double *values[OPERANDS_MAX])
{
    for (int i = 0; i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        struct kept kept = {NULL, 0};
        if (o->role == OPAQUE) continue;
        kept_read(o, buffers->at[i], true, &kept);
        values[i] = kept.data ? kept_decode(o, &kept, true) : NULL;
        free(kept.data);
    }
}

/* Whether what the libraries answer can be compared. */
static bool is_comparable(const struct task *task)
{
    for (int i = 0; i < task->count; ++i)
        if (task->operand[i].own) return false;
    return true;
}

static bool have_all(const struct task *task, double *const values[OPERANDS_MAX])
{
    for (int i = 0; i < task->count; ++i)
        if (task->operand[i].role != OPAQUE && !values[i]) return false;
    return true;
}

/* Ours and the peer's against the host's; *known says whether there is such a computation. */
static bool compare_reference(const struct task *task, double *const inputs[OPERANDS_MAX],
                              const struct kept kept[OPERANDS_MAX], const char *whose, bool *known,
                              char *why, size_t size)
{
    double *values[OPERANDS_MAX] = {NULL};
    bool right = true;
    *known = false;
    for (int i = 0; i < task->count; ++i) {
        size_t bytes = (size_t)task->operand[i].count * sizeof(double);
        if (!inputs[i]) continue;
        values[i] = malloc(bytes ? bytes : 1);
        if (values[i]) memcpy(values[i], inputs[i], bytes);
    }
    if (have_all(task, values) && task->family->reference(task, values)) *known = true;
    for (int i = 0; *known && right && i < task->count; ++i) {
        const struct operand *o = &task->operand[i];
        double *mine;
        if (!is_output(o) || o->unchecked || !kept[i].data || kept[i].count != o->count) continue;
        mine = kept_decode(o, &kept[i], true);
        if (mine) right = agree(task, o, mine, values[i], o->count, whose, why, size);
        free(mine);
    }
    for (int i = 0; i < task->count; ++i) free(values[i]);
    return right;
}

/* Where the libraries differ in a large problem: the outputs that were read back whole against a
 * computation in fp64 from the inputs of the library that made them. Backward those are of its own
 * making: an activation's input within the rounding of 0 lets a gradient pass in one library and not in
 * the other, and sums differ by whole elements though both are right. */
static bool compare_own(const struct task *task, struct session *session,
                        const struct buffers *buffers, const struct kept kept[OPERANDS_MAX],
                        bool *known, char *why, size_t size)
{
    double *inputs[OPERANDS_MAX] = {NULL};
    bool right = true;
    *known = false;
    for (int i = 0; i < task->count; ++i) {
        if (task->operand[i].count > ARBITER_MAX) return true;
    }
    if (make_inputs(task, session, buffers) == CUDNN_STATUS_SUCCESS) {
        read_inputs(task, buffers, inputs);
        right = compare_reference(task, inputs, kept, "a computation in fp64", known, why, size);
    }
    for (int i = 0; i < task->count; ++i) free(inputs[i]);
    return right;
}

static bool ask_judge(const struct task *task, double *inputs[OPERANDS_MAX],
                      const struct kept kept[OPERANDS_MAX], char *why, size_t size)
{
    bool right;
    for (int i = 0; i < task->count; ++i) {
        if (!is_output(&task->operand[i]) || !kept[i].data) continue;
        free(inputs[i]);
        inputs[i] = kept_decode(&task->operand[i], &kept[i], true);
    }
    right = !have_all(task, inputs) || task->family->judge(task, inputs, why, size);
    return right;
}

static void set_verdict(struct result *result, bool right, const char *why)
{
    if (result->verdict == WRONG) return;
    result->verdict = right ? RIGHT : WRONG;
    if (!right) snprintf(result->note, sizeof result->note, "%s", why);
}

/* Ours against the peer's; where they differ, fp64 decides if the family can say in time what is right:
 * of the planes in which they do, or of outputs that are read back whole. */
static void compare_large(const struct task *task, struct session *mine, struct session *theirs,
                          const struct buffers buffers[2], struct kept kept[2][OPERANDS_MAX],
                          struct result *result)
{
    char why[224] = "";
    char more[200] = "";
    bool known = false;
    int64_t bad[2];
    int64_t differing;
    bool right = compare_peer(task, false, kept[0], kept[1], why, sizeof why);
    if (!right && task->planes &&
        check_planes(task, &buffers[0], kept, bad, &differing, more, sizeof more)) {
        set_verdict(result, bad[0] == 0, more);
        if (bad[0] == 0) {
            snprintf(
                result->note, sizeof result->note,
                "right in fp64 where %lld elements differ from the peer's, which are off in %lld",
                (long long)differing, (long long)bad[1]);
        }
        return;
    }
    if (right || !task->family->arbiter ||
        !compare_peer(task, true, kept[0], kept[1], why, sizeof why)) {
        set_verdict(result, right, why);
        return;
    }
    right = compare_own(task, mine, &buffers[0], kept[0], &known, more, sizeof more);
    if (!known || !right) {
        set_verdict(result, false, known ? more : why);
        return;
    }
    set_verdict(result, true, "");
    right = compare_own(task, theirs, &buffers[1], kept[1], &known, more, sizeof more);
    if (known && !right) snprintf(result->note, sizeof result->note, "the peer's %s", more);
    else snprintf(result->note, sizeof result->note, "right in fp64; %s", why);
}

void check_problem(const struct task *task, struct session *mine, struct session *theirs,
                   const struct buffers buffers[2], struct result *result)
{
    struct kept kept[2][OPERANDS_MAX] = {{{NULL, 0}}};
    double *inputs[OPERANDS_MAX] = {NULL};
    bool small = is_small(task) && !bench_options.no_check;
    bool known = false;
    bool compared = theirs != NULL && !bench_options.no_check;
    char why[224] = "";
    result->ours_status = make_inputs(task, mine, &buffers[0]);
    if (result->ours_status == CUDNN_STATUS_SUCCESS) {
        if (small && (task->family->reference || task->family->judge)) {
            read_inputs(task, &buffers[0], inputs);
        }
        result->ours_status = run_once(task, mine, &buffers[0], kept[0]);
    }
    if (result->ours_status != CUDNN_STATUS_SUCCESS) {
        char text[200];
        mine->library->GetLastErrorString(text, sizeof text);
        snprintf(result->note, sizeof result->note, "ours: %s", text);
        result->verdict = REFUSED;
    }
    if (theirs) {
        result->peer_status = make_inputs(task, theirs, &buffers[1]);
        if (result->peer_status == CUDNN_STATUS_SUCCESS) {
            result->peer_status = run_once(task, theirs, &buffers[1], kept[1]);
        }
        if (result->peer_status != CUDNN_STATUS_SUCCESS) compared = false;
    }
    if (!is_comparable(task)) compared = false;
    if (result->verdict == REFUSED || bench_options.no_check) compared = small = false;
    if (small && task->family->reference) {
        bool right = compare_reference(task, inputs, kept[0], "a computation in fp64", &known, why,
                                       sizeof why);
        if (known) set_verdict(result, right, why);
        if (known && right && compared &&
            !compare_reference(task, inputs, kept[1], "a computation in fp64", &known, why,
                               sizeof why)) {
            snprintf(result->note, sizeof result->note, "the peer's %s", why);
        }
    }
    if (small && !known && task->family->judge && have_all(task, inputs)) {
        set_verdict(result, ask_judge(task, inputs, kept[0], why, sizeof why), why);
    }
    if (compared && !known) {
        compare_large(task, mine, theirs, buffers, kept, result);
    }
    for (int i = 0; i < OPERANDS_MAX; ++i) {
        free(kept[0][i].data);
        free(kept[1][i].data);
        free(inputs[i]);
    }
}
