/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzzing of the backend API on a CPU handle, bounded and repeatable: sequences of random calls on
 * random descriptors, graphs that are almost right up to their execution, texts of plans with bytes
 * changed, and texts of every operation with odd numbers. Nothing may crash; every refusal must come
 * with a text. Prints what it reached and fails where it reached too little.
 *
 *     fuzz_backend_test [--seed N] [--count N] [--only N]     N-th sequence alone */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/backend.h"
#include "fuzz/backend_fuzz.h"

/* Sequences after which every operation has had its turn many times. */
enum { EVERY_OPERATION = 5000 };
enum { POOL = 40, BYTES_MAX = 1 << 16, COUNT_MAX = 4096, WORK_MAX = 1 << 20 };

uint64_t random_state;
cudnnHandle_t handle;
static cudnnBackendDescriptor_t pool[POOL];
static int pool_count;
static int failures;

struct fuzz_reached reached;

uint64_t random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int below(int limit)
{
    return (int)(random_bits() % (uint64_t)limit);
}

bool chance(int percent)
{
    return below(100) < percent;
}

static void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    failures += 1;
}

/* Counts an answer; a refusal must say why. */
cudnnStatus_t note(cudnnStatus_t status, const char *function)
{
    char text[WD_ERROR_TEXT_SIZE];
    reached.calls += 1;
    if (status == CUDNN_STATUS_SUCCESS) {
        reached.accepted += 1;
        return status;
    }
    reached.refused += 1;
    cudnnGetLastErrorString(text, sizeof text);
    if (!text[0]) complain("%s answered %d without a text\n", function, (int)status);
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_INTERNAL_ERROR) {
        complain("%s answered %s: %s\n", function, cudnnGetErrorString(status), text);
    }
    return status;
}

int64_t odd_number(void)
{
    static const int64_t numbers[] = {
        0,   1,   -1,  2,   3,    4,         5,         7,         8,         16,
        31,  32,  100, 101, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 40,
        601, 301, 20,  -2};
    if (chance(10)) return (int64_t)random_bits();
    return numbers[below((int)(sizeof numbers / sizeof numbers[0]))];
}

static cudnnBackendDescriptor_t any_descriptor(void)
{
    if (pool_count == 0 || chance(3)) return NULL;
    return pool[below(pool_count)];
}

void random_elements(int type, char *data)
{
    for (int i = 0; i < ELEMENTS; ++i) {
        int64_t wide = odd_number();
        double real = chance(20) ? (double)odd_number() * 1e300 : (double)below(16) / 4.0 - 1.0;
        float narrow = (float)real;
        int32_t word = (int32_t)wide;
        cudnnBackendDescriptor_t desc = any_descriptor();
        switch (type) {
        case CUDNN_TYPE_BACKEND_DESCRIPTOR: memcpy(data + 8 * i, &desc, 8); break;
        case CUDNN_TYPE_HANDLE:
            memcpy(data + 8 * i, chance(90) ? &handle : &(cudnnHandle_t){0}, 8);
            break;
        case CUDNN_TYPE_VOID_PTR: memcpy(data + 8 * i, &(void *){NULL}, 8); break;
        case CUDNN_TYPE_DOUBLE: memcpy(data + 8 * i, &real, 8); break;
        case CUDNN_TYPE_FLOAT: memcpy(data + 4 * i, &narrow, 4); break;
        case CUDNN_TYPE_FRACTION:
        case CUDNN_TYPE_INT64: memcpy(data + 8 * i, &wide, 8); break;
        case CUDNN_TYPE_BOOLEAN:
        case CUDNN_TYPE_CHAR: data[i] = (char)wide; break;
        default: memcpy(data + 4 * i, &word, 4);
        }
    }
}

int random_count(void)
{
    static const int counts[] = {1, 1, 1, 1, 2, 3, 4, 4, 8, 9, 0, -1};
    return chance(5) ? below(ELEMENTS / 2) : counts[below(12)];
}

/* ---- Execution ------------------------------------------------------------------------------- */

/* Runs a finalized plan if its tensors are small: with buffers of exactly their sizes, so that a
 * sanitizer sees every byte beyond. */
void execute(cudnnBackendDescriptor_t plan_desc)
{
    const struct wd_desc *desc = plan_desc;
    const struct wd_built_plan *plan = (const struct wd_built_plan *)desc->built;
    const struct wd_graph *graph = &plan->opgraph->graph;
    cudnnBackendDescriptor_t pack = NULL;
    int64_t uids[64];
    void *data[64];
    int64_t largest = 1, second = 1;
    void *workspace = NULL;
    int count = 0;
    reached.plans += 1;
    if (graph->tensor_count > 60 || plan->plan->workspace > 4 * BYTES_MAX) goto too_large;
    for (int t = 0; t < graph->tensor_count; ++t) {
        int64_t elements = wd_tensor_count(&graph->tensors[t]);
        if (wd_tensor_extent(&graph->tensors[t]) > BYTES_MAX || elements > COUNT_MAX)
            goto too_large;
        if (elements > largest) {
            second = largest;
            largest = elements;
        } else if (elements > second) {
            second = elements;
        }
    }
    if (largest * second > WORK_MAX) goto too_large;
    for (int t = 0; t < graph->tensor_count; ++t) {
        const struct wd_tensor *tensor = &graph->tensors[t];
        int64_t bytes = wd_tensor_extent(tensor);
        if (tensor->flags & WD_VIRTUAL) continue;
        uids[count] = tensor->uid;
        data[count] = bytes ? calloc(1, (size_t)bytes) : NULL;
        if (bytes && data[count]) memset(data[count], below(256), (size_t)bytes);
        count += 1;
    }
    if (plan->plan->workspace) workspace = aligned_alloc(256, (size_t)plan->plan->workspace);
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack)) abort();
    if (chance(5) && count > 1) uids[0] = uids[1];
    if (count > 0) {
        int given = chance(5) ? count - 1 : count;
        note(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                      given, uids),
             "set");
        note(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                      CUDNN_TYPE_VOID_PTR, given, data),
             "set");
    }
    if (workspace && !chance(5)) {
        note(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                                      1, &workspace),
             "set");
    }
    if (!note(cudnnBackendFinalize(pack), "finalize") &&
        !note(cudnnBackendExecute(handle, plan_desc, pack), "execute")) {
        reached.executed += 1;
    } else {
        reached.executions_refused += 1;
    }
    cudnnBackendDestroyDescriptor(pack);
    for (int i = 0; i < count; ++i) free(data[i]);
    free(workspace);
    return;
too_large:
    reached.too_large += 1;
}

/* ---- Random calls ---------------------------------------------------------------------------- */

cudnnBackendDescriptor_t create(int type)
{
    cudnnBackendDescriptor_t desc = NULL;
    if (note(cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)type, &desc), "create")) {
        return NULL;
    }
    if (pool_count == POOL) {
        int out = below(POOL);
        note(cudnnBackendDestroyDescriptor(pool[out]), "destroy");
        pool[out] = pool[--pool_count];
    }
    pool[pool_count++] = desc;
    return desc;
}

static void empty_pool(void)
{
    while (pool_count) {
        int out = below(pool_count);
        note(cudnnBackendDestroyDescriptor(pool[out]), "destroy");
        pool[out] = pool[--pool_count];
    }
}

/* An attribute that mostly fits the descriptor, a type that mostly fits the attribute. */
static int pick(const struct wd_desc *desc, int *type)
{
    int count = 0;
    const struct wd_attribute *row = NULL;
    if (desc && chance(95)) {
        const struct wd_attribute *rows = wd_desc_attributes(desc->type, &count);
        if (count) row = &rows[below(count)];
    }
    *type = below(33) - 1;
    if (!row) return below(3000);
    if (chance(95)) {
        do *type = below(31);
        while (!(row->types >> *type & 1u));
    }
    return row->attribute;
}

static void random_call(void)
{
    _Alignas(16) char data[ELEMENT_BYTES];
    cudnnBackendDescriptor_t desc = any_descriptor();
    int type;
    int attribute = pick(desc, &type);
    int64_t count = random_count();
    int64_t answered;
    switch (below(10)) {
    case 0:
    case 1: create(below(46) - 1); break;
    case 2:
    case 3:
    case 4:
    case 5:
        random_elements(type, data);
        if (chance(1)) count = INT64_MAX;
        note(cudnnBackendSetAttribute(desc, (cudnnBackendAttributeName_t)attribute,
                                      (cudnnBackendAttributeType_t)type, count,
                                      chance(97) ? data : NULL),
             "set");
        break;
    case 6:
    case 7:
        random_elements(type, data);
        note(cudnnBackendGetAttribute(desc, (cudnnBackendAttributeName_t)attribute,
                                      (cudnnBackendAttributeType_t)type, count,
                                      chance(90) ? &answered : NULL, chance(90) ? data : NULL),
             "get");
        break;
    case 8:
        if (!note(cudnnBackendFinalize(desc), "finalize")) reached.finalized += 1;
        if (desc && ((struct wd_desc *)desc)->finalized &&
            ((struct wd_desc *)desc)->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
            execute(desc);
        }
        break;
    default:
        note(cudnnBackendExecute(chance(90) ? handle : NULL, desc, any_descriptor()), "execute");
        note(cudnnBackendPopulateCudaGraph(handle, desc, any_descriptor(), NULL), "populate");
        note(cudnnBackendUpdateCudaGraph(handle, desc, any_descriptor(), NULL), "update");
    }
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static int64_t mutate(char *text, int64_t length, int64_t room)
{
    static const char *const words[] = {"-1", "9223372036854775807", "{", "]", "\"inf\"", "1e999",
                                        "0",  "99999999999",         ",", "4", "\"",      "-"};
    for (int changes = below(4); changes >= 0; --changes) {
        int64_t at = (int64_t)(random_bits() % (uint64_t)length);
        const char *word = words[below(12)];
        int64_t more = (int64_t)strlen(word);
        switch (below(4)) {
        case 0: text[at] = (char)random_bits(); break;
        case 1: length = at + 1; break;
        case 2: /* a number becomes another */
            while (at < length && (text[at] < '0' || text[at] > '9')) at += 1;
            if (at < length) text[at] = (char)('0' + below(10));
            break;
        default:
            if (length + more > room) break;
            memmove(text + at + more, text + at, (size_t)(length - at));
            memcpy(text + at, word, (size_t)more);
            length += more;
        }
    }
    return length;
}

static void texts(cudnnBackendDescriptor_t plan)
{
    char original[16384];
    char text[16384 + 256];
    int64_t length = 0;
    if (note(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                      CUDNN_TYPE_CHAR, sizeof original, &length, original),
             "get")) {
        complain("a plan without a text\n");
        return;
    }
    for (int i = 0; i < 8; ++i) {
        cudnnBackendDescriptor_t again = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        int64_t mutated = length;
        memcpy(text, original, (size_t)length);
        if (i > 0) mutated = mutate(text, length, sizeof text);
        note(cudnnBackendSetAttribute(again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                      CUDNN_TYPE_CHAR, mutated, text),
             "set");
        reached.texts += 1;
        if (note(cudnnBackendFinalize(again), "finalize")) {
            if (i == 0) complain("a plan's own text is refused: %s\n", wd_last_error());
            continue;
        }
        reached.texts_restored += 1;
        execute(again);
    }
}

/* Counts the normalizations of a graph that was executed. */
static void count_norms(cudnnBackendDescriptor_t plan)
{
    const struct wd_built_plan *built =
        (const struct wd_built_plan *)((const struct wd_desc *)plan)->built;
    const struct wd_graph *graph = &built->opgraph->graph;
    for (int n = 0; n < graph->node_count; ++n) {
        enum wd_op op = graph->nodes[n].op;
        reached.norms_forward += op == WD_OP_NORM_INFERENCE || op == WD_OP_NORM_TRAINING;
        reached.norms_backward += op == WD_OP_NORM_BACKWARD;
    }
}

static void sequence(uint64_t seed)
{
    cudnnBackendDescriptor_t plan;
    random_state = seed;
    mutation = below(4) == 0 ? 0 : below(4);
    if (chance(50)) {
        long before = reached.executed;
        plan = almost_a_plan();
        if (plan) execute(plan);
        if (reached.executed > before) count_norms(plan);
        if (plan && chance(10)) texts(plan);
    }
    if (chance(40)) text_of_an_operation();
    for (int calls = below(24); calls > 0; --calls) random_call();
    empty_pool();
}

int main(int argc, char **argv)
{
    uint64_t seed = 20240917;
    long count = 20000;
    long only = -1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed")) seed = strtoull(argv[i + 1], NULL, 0);
        if (!strcmp(argv[i], "--count")) count = strtol(argv[i + 1], NULL, 0);
        if (!strcmp(argv[i], "--only")) only = strtol(argv[i + 1], NULL, 0);
    }
    setenv("WARPDNN_DEVICE", "cpu", 1);
    if (cudnnCreate(&handle)) {
        printf("no handle: %s\n0 passed, 1 failed\n", wd_last_error());
        return 1;
    }
    for (long i = 0; i < count; ++i) {
        int before = failures;
        if (only >= 0 && i != only) continue;
        sequence(seed + (uint64_t)i * 0x100000001b3u);
        if (failures != before) {
            printf("  rerun: %s --seed %" PRIu64 " --only %ld\n", argv[0], seed, i);
        }
    }
    cudnnDestroy(handle);
    printf("seed %" PRIu64 ": %ld sequences, %ld calls, %ld accepted, %ld refused, %ld finalized\n",
           seed, count, reached.calls, reached.accepted, reached.refused, reached.finalized);
    printf("%ld plans, %ld executed, %ld executions refused, %ld too large to execute; %ld texts, "
           "%ld restored\n",
           reached.plans, reached.executed, reached.executions_refused, reached.too_large,
           reached.texts, reached.texts_restored);
    printf("%ld normalizations forward and %ld backward executed in graphs\n",
           reached.norms_forward, reached.norms_backward);
    report_operations();
    if (only < 0 && (reached.executed < count / 20 || reached.texts_restored < count / 100 ||
                     reached.norms_forward < count / 200 || reached.norms_backward < count / 200 ||
                     reached.refused < count)) {
        complain("too little was reached\n");
    }
    if (only < 0 && count >= EVERY_OPERATION && operation_not_reached()) {
        complain("no plan was made from a text of %s\n", operation_not_reached());
    }
    printf("%ld passed, %d failed\n", failures ? count - failures : count, failures);
    return failures ? 1 : 0;
}
