/* SPDX-License-Identifier: Apache-2.0
 *
 * See pointwise_chain_gpu.h. No state. */
#include "ops/pointwise/pointwise_chain_gpu.h"

#include <string.h>

#include "base/sizes.h"
#include "ops/pointwise/pointwise_walk.h"

enum {
    THREADS = 128,
    THREADS_FEW = 64, /* where there are not enough runs to go round */
    WORD = 16,        /* bytes: what a thread copies at once */
    STAGES = 2,       /* runs of a thread in shared memory, where it has more than one */
    CHUNKS_MOST = 2,
    RUN_BYTES_MOST = 64, /* of a run as it is computed */
    REGISTERS = 65536,   /* of a multiprocessor */
    BLOCKS_A_PROCESSOR_MOST = 16,
    RUNS_A_THREAD = 8, /* from here on, threads take runs until there are none */
    OPERANDS = CHAIN_INPUTS + CHAIN_OUTPUTS,
};

bool wd_chain_gpu_match(const struct wd_problem *problem, struct pointwise_program *program,
                        struct wd_reason *reason)
{
    int64_t shared;
    if (!wd_pointwise_program_make(problem, program, reason)) return false;
    shared = (int64_t)THREADS *
             (program->inputs * STAGES * CHUNKS_MOST * WORD + program->kept * RUN_BYTES_MOST);
    WD_NEED(shared <= problem->device->shared_per_block, reason, NOT_SUPPORTED_GRAPH_PATTERN,
            "%d inputs and %d results that wait take more shared memory than there is",
            program->inputs, program->kept);
    return true;
}

/* What every launch of a call has in common. */
struct launching {
    struct wd_queue *queue;
    const struct pointwise_program *program;
    struct wd_chain_kernel kernel;
    struct pointwise_chain_args args;
};

/* Blocks that a multiprocessor holds at once. */
static int64_t resident(const struct launching *l, int64_t threads, int64_t shared)
{
    int64_t by_registers = REGISTERS / (l->kernel.row->registers * threads);
    int64_t by_shared = l->queue->device->shared_per_processor / (shared + 1024);
    return wd_clamp(wd_least(by_registers, by_shared), 1, BLOCKS_A_PROCESSOR_MOST);
}

static cudnnStatus_t launch(void *context, const struct wd_joined *walk,
                            const struct pointwise_operand *operands)
{
    struct launching *l = context;
    struct pointwise_chain_args *args = &l->args;
    const struct pointwise_program *program = l->program;
    const int64_t run = (int64_t)l->kernel.chunk * l->kernel.chunks;
    const int64_t processors = l->queue->device->multiprocessors;
    const int64_t kept_words = run * (program->acc == WD_ACC_F64 ? 8 : 4) / WORD * program->kept;
    int count = program->inputs + program->outputs;
    int64_t threads = THREADS;
    int64_t stages = 1;
    int64_t blocks;
    int64_t shared;
    int64_t most;
    memcpy(args->operand, operands, sizeof operands[0] * (size_t)count);
    if (l->kernel.straight.rows) {
        struct pointwise_straight_args straight;
        uint32_t skip = wd_pointwise_follow(walk, args->operand, count, program->inputs,
                                            l->kernel.straight.chunk);
        if (wd_straight_make(&straight, program, walk, args->operand)) {
            return wd_straight_emit(l->queue, &l->kernel.straight, &straight,
                                    (uint32_t)walk->count + skip, skip, args->streaming);
        }
        memcpy(args->operand, operands, sizeof operands[0] * (size_t)count);
    }
    args->skip = wd_pointwise_follow(walk, args->operand, count, program->inputs, l->kernel.chunk);
    args->count = (uint32_t)walk->count + args->skip;
    args->rank = walk->rank;
    for (int d = 0; d < walk->rank; ++d) args->dim[d] = wd_fastdiv_of((uint32_t)walk->dim[d]);
    args->loads = 0;
    for (int i = 0; i < program->inputs; ++i) {
        int way = args->operand[i].way;
        bool ahead = way == POINTWISE_FLAT || way == POINTWISE_ALONG;
        args->slot[i] = (int8_t)(ahead ? args->loads : -1);
        if (ahead) args->load[args->loads++] = (uint8_t)i;
    }
    if (args->count < threads * run * processors) threads = THREADS_FEW;
    blocks = wd_ceil_div(args->count, threads * run);
    shared = threads * WORD * (STAGES * args->loads * l->kernel.chunks + kept_words);
    most = processors * resident(l, threads, shared);
    if (blocks > most * RUNS_A_THREAD) {
        blocks = most;
        stages = STAGES;
    }
    args->kept_at = (int32_t)(threads * stages * args->loads * l->kernel.chunks);
    shared = threads * WORD * (stages * args->loads * l->kernel.chunks + kept_words);
    return wd_emit_kernel(l->queue, l->kernel.row, blocks, (uint32_t)threads, (uint32_t)shared,
                          args);
}

cudnnStatus_t wd_chain_gpu_emit(const struct wd_call *call, struct wd_queue *queue,
                                struct pointwise_program *program, struct wd_chain_kernel kernel)
{
    const struct wd_tensor *tensors = call->problem.graph->tensors;
    struct launching l = {.queue = queue, .program = program, .kernel = kernel};
    struct pointwise_operand operands[OPERANDS];
    struct wd_view view[OPERANDS];
    const struct wd_view *views[OPERANDS];
    struct wd_joined walk;
    int count = program->inputs + program->outputs;
    for (int s = 0; s < count; ++s) {
        int32_t tensor =
            s < program->inputs ? program->input[s] : program->output[s - program->inputs];
        view[s] = wd_call_tensor_view(call, tensor);
        views[s] = &view[s];
        operands[s] = (struct pointwise_operand){
            .data = view[s].data, .value = view[s].value, .dtype = view[s].dtype};
        if (s >= program->inputs && wd_tensor_extent(&tensors[tensor]) > queue->device->l2_bytes) {
            l.args.streaming = 1;
        }
    }
    if (wd_view_count(&view[program->inputs]) == 0) return CUDNN_STATUS_SUCCESS;
    wd_join(&walk, views, count, program->inputs);
    wd_pointwise_program_factors(call, program);
    memcpy(l.args.program, program->instruction,
           sizeof program->instruction[0] * (size_t)program->length);
    l.args.length = program->length;
    l.args.inputs = program->inputs;
    return wd_pointwise_split(&walk, operands, count, launch, &l);
}
