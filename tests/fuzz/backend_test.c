/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzzing of the backend API on a CPU handle, bounded and repeatable: sequences of random calls on
 * random descriptors, graphs that are almost right up to their execution, and texts of plans with
 * bytes changed. Nothing may crash; every refusal must come with a text. Prints what it reached and
 * fails where it reached too little.
 *
 *     fuzz_backend_test [--seed N] [--count N] [--only N]     N-th sequence alone */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/backend.h"
#include "base/alloc.h"

enum { POOL = 40, BYTES_MAX = 1 << 16, COUNT_MAX = 4096, WORK_MAX = 1 << 20, ELEMENTS = 40 };

static uint64_t random_state;
static cudnnHandle_t handle;
static cudnnBackendDescriptor_t pool[POOL];
static int pool_count;
static int failures;

static struct {
    long calls, accepted, refused, finalized, plans, executed, executions_refused, too_large;
    long texts, texts_restored;
} reached;

static uint64_t random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int below(int limit)
{
    return (int)(random_bits() % (uint64_t)limit);
}

static bool chance(int percent)
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
static cudnnStatus_t note(cudnnStatus_t status, const char *function)
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

static int64_t odd_number(void)
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

static void random_elements(int type, char *data)
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

static int random_count(void)
{
    static const int counts[] = {1, 1, 1, 1, 2, 3, 4, 4, 8, 9, 0, -1};
    return chance(5) ? below(ELEMENTS / 2) : counts[below(12)];
}

/* ---- Execution ------------------------------------------------------------------------------- */

/* Runs a finalized plan if its tensors are small: with buffers of exactly their sizes, so that a
 * sanitizer sees every byte beyond. */
static void execute(cudnnBackendDescriptor_t plan_desc)
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

static cudnnBackendDescriptor_t create(int type)
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
    _Alignas(16) char data[ELEMENTS * 64];
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

/* ---- Graphs that are almost right ------------------------------------------------------------- */

static int mutation; /* percent of values that become odd */

static void set(cudnnBackendDescriptor_t desc, int attribute, int type, int64_t count,
                const void *values)
{
    _Alignas(16) char data[ELEMENTS * 64];
    if (chance(mutation)) {
        random_elements(type, data);
        values = data;
    }
    if (chance(mutation)) count = random_count();
    if (count > 8) count = 8;
    memcpy(data, values, 64);
    note(cudnnBackendSetAttribute(desc, (cudnnBackendAttributeName_t)attribute,
                                  (cudnnBackendAttributeType_t)type, count, data),
         "set");
}

static void set_word(cudnnBackendDescriptor_t desc, int attribute, int type, int value)
{
    int words[16] = {value};
    set(desc, attribute, type, 1, words);
}

static void set_ref(cudnnBackendDescriptor_t desc, int attribute, cudnnBackendDescriptor_t value)
{
    cudnnBackendDescriptor_t refs[8] = {value};
    set(desc, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, refs);
}

static cudnnBackendDescriptor_t finish(cudnnBackendDescriptor_t desc)
{
    if (!note(cudnnBackendFinalize(desc), "finalize")) reached.finalized += 1;
    return desc;
}

static int random_dtype(void)
{
    static const int types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_FLOAT,   CUDNN_DATA_HALF,
                                CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE,  CUDNN_DATA_INT8,
                                CUDNN_DATA_INT32,    CUDNN_DATA_BOOLEAN, CUDNN_DATA_FP8_E4M3,
                                CUDNN_DATA_INT4};
    return types[below(10)];
}

static cudnnBackendDescriptor_t tensor(int64_t uid, int dtype, int rank, const int64_t *dims,
                                       bool is_virtual)
{
    cudnnBackendDescriptor_t desc = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t strides[8] = {0}, own[8] = {0}, uids[8] = {uid}, alignment[8] = {16};
    bool yes[64] = {true};
    int64_t next = 1;
    bool nhwc = chance(30) && rank > 2;
    for (int i = 0; i < rank; ++i) own[i] = dims[i];
    if (nhwc) wd_strides_nhwc(own, rank, strides);
    for (int i = rank - 1; i >= 0 && !nhwc; --i) {
        strides[i] = next;
        next *= dims[i] + (chance(10) ? 1 : 0);
    }
    set_word(desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, dtype);
    set(desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, own);
    set(desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides);
    set(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, uids);
    set(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, alignment);
    if (is_virtual) set(desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, yes);
    if (chance(mutation)) set(desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, yes);
    return finish(desc);
}

static int random_mode(void)
{
    static const int first[] = {0, 100, 200, 300, 400, 501, 601};
    static const int length[] = {24, 8, 8, 6, 3, 1, 1};
    int run = below(7);
    return first[run] + below(length[run]);
}

static cudnnBackendDescriptor_t pointwise(const int64_t *dims, cudnnBackendDescriptor_t x,
                                          int64_t b, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t pw = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    int mode = random_mode();
    float alpha[16] = {1.5f};
    int64_t axis[8] = {below(4)};
    int64_t repeated[4];
    for (int d = 0; d < 4; ++d) repeated[d] = chance(30) ? 1 : dims[d];
    set_word(pw, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    set(pw, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, axis);
    finish(pw);
    set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pw);
    set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (mode >= 200 && mode < 300) {
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, tensor(b, 0, 4, dims, false));
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y);
    } else {
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                tensor(b, random_dtype(), 4, repeated, false));
        set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
        if (mode == CUDNN_POINTWISE_BINARY_SELECT) {
            set_ref(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
                    tensor(b + 1, CUDNN_DATA_BOOLEAN, 4, dims, false));
        }
    }
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, alpha);
    return finish(op);
}

static cudnnBackendDescriptor_t convolution(cudnnBackendDescriptor_t *y, int64_t *yd)
{
    static const int types[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    static const int base[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA};
    int way = below(3);
    cudnnBackendDescriptor_t conv = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(types[way]);
    int64_t pad[8] = {below(2), below(2)}, stride[8] = {1 + below(2), 1 + below(2)};
    int64_t dilation[8] = {1 + below(2), 1}, spatial[8] = {2};
    int groups = 1 + below(2);
    int64_t x[4] = {1 + below(2), (1 + below(2)) * groups, 3 + below(4), 3 + below(4)};
    int64_t w[4] = {groups * (1 + below(2)), x[1] / groups, 1 + below(3), 1 + below(3)};
    cudnnBackendDescriptor_t t[3];
    float scale[16] = {(float)below(3)};
    yd[0] = x[0];
    yd[1] = w[0];
    for (int d = 0; d < 2; ++d) {
        yd[2 + d] = (x[2 + d] + 2 * pad[d] - dilation[d] * (w[2 + d] - 1) - 1) / stride[d] + 1;
    }
    set_word(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    set_word(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, below(2));
    set(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, spatial);
    set(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    set(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    finish(conv);
    t[0] = tensor(1, 0, 4, x, false);
    t[1] = tensor(2, 0, 4, w, false);
    t[2] = tensor(3, 0, 4, yd, chance(50) && way == 0);
    set(op, base[way], CUDNN_TYPE_FLOAT, 1, scale);
    set_ref(op, base[way] + 2, conv);
    /* the attributes lie in the order w, x|dx, y|dy; for filters dw, x, dy */
    set_ref(op, base[way] + 3, t[1]);
    set_ref(op, base[way] + 4, t[0]);
    set_ref(op, base[way] + 5, t[2]);
    *y = t[2];
    return finish(op);
}

static cudnnBackendDescriptor_t matmul(cudnnBackendDescriptor_t *c, int64_t *cd)
{
    cudnnBackendDescriptor_t desc = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    int64_t a[4] = {1 + below(2), 1 + below(3), 1 + below(5), 1 + below(5)};
    int64_t b[4] = {chance(30) ? 1 : a[0], a[1], a[3], 1 + below(5)};
    cd[0] = a[0];
    cd[1] = a[1];
    cd[2] = a[2];
    cd[3] = b[3];
    set_word(desc, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    finish(desc);
    *c = tensor(3, 0, 4, cd, chance(50));
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, desc);
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(1, 0, 4, a, false));
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(2, 0, 4, b, false));
    set_ref(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c);
    return finish(op);
}

static cudnnBackendDescriptor_t reduction(const int64_t *dims, cudnnBackendDescriptor_t x)
{
    cudnnBackendDescriptor_t desc = create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnBackendDescriptor_t op = create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    int64_t small[4];
    for (int d = 0; d < 4; ++d) small[d] = chance(50) ? 1 : dims[d];
    set_word(desc, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, below(9));
    set_word(desc, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    finish(desc);
    set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, desc);
    set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_ref(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(30, 0, 4, small, false));
    return finish(op);
}

/* One to three operations, each on the last one's output. */
static cudnnBackendDescriptor_t almost_a_graph(void)
{
    cudnnBackendDescriptor_t graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnnBackendDescriptor_t ops[8] = {NULL};
    cudnnBackendDescriptor_t last;
    int64_t dims[8];
    int count = 0;
    int more = below(3);
    cudnnHandle_t handles[8] = {handle};
    switch (below(3)) {
    case 0: ops[count++] = convolution(&last, dims); break;
    case 1: ops[count++] = matmul(&last, dims); break;
    default:
        for (int d = 0; d < 4; ++d) dims[d] = chance(5) ? 0 : 1 + below(4);
        last = tensor(1, random_dtype(), 4, dims, false);
        more = 1 + below(2);
    }
    for (int i = 0; i < more; ++i) {
        if (chance(25)) {
            ops[count++] = reduction(dims, last);
            break;
        }
        cudnnBackendDescriptor_t y = tensor(10 + i, random_dtype(), 4, dims, i + 1 < more);
        ops[count++] = pointwise(dims, last, 20 + 2 * i, y);
        last = y;
    }
    if (count > 1 && chance(20)) {
        cudnnBackendDescriptor_t swap = ops[0];
        ops[0] = ops[1];
        ops[1] = swap;
    }
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, ops);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, handles);
    return finish(graph);
}

static cudnnBackendDescriptor_t almost_a_plan(void)
{
    cudnnBackendDescriptor_t graph = almost_a_graph();
    cudnnBackendDescriptor_t config = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendDescriptor_t plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (chance(50)) {
        cudnnBackendDescriptor_t heuristics = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        set_ref(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
        set_word(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, below(4));
        finish(heuristics);
        note(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL, &config),
             "get");
    } else {
        cudnnBackendDescriptor_t engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        int64_t index[8] = {chance(80) ? 0 : below(200)};
        set_ref(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
        set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, index);
        finish(engine);
        set_ref(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
        finish(config);
    }
    set_ref(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finish(plan);
    return ((struct wd_desc *)plan)->finalized ? plan : NULL;
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

static void sequence(uint64_t seed)
{
    cudnnBackendDescriptor_t plan;
    random_state = seed;
    mutation = below(4) == 0 ? 0 : below(4);
    if (chance(50)) {
        plan = almost_a_plan();
        if (plan) execute(plan);
        if (plan && chance(10)) texts(plan);
    }
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
    if (only < 0 && (reached.executed < count / 20 || reached.texts_restored < count / 100 ||
                     reached.refused < count)) {
        complain("too little was reached\n");
    }
    printf("%ld passed, %d failed\n", failures ? count - failures : count, failures);
    return failures ? 1 : 0;
}
