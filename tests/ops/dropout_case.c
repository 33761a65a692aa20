/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout calls, see dropout_case.h. One thread. */
#include "dropout_case.h"

#include <math.h>
#include <string.h>

/* Philox4x32-7 once more, from the paper: the test shares no header with the library. Number `index` of
 * 16 bits, or the one that is `more` bits below it. */
static uint32_t number_of(uint64_t seed, uint64_t call, uint64_t index, bool more)
{
    uint32_t c[4] = {(uint32_t)(index / 8), (uint32_t)(index / 8 >> 32) | (more ? 1u << 31 : 0),
                     (uint32_t)call, (uint32_t)(call >> 32)};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 7; ++round) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53u;
        uint64_t b = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ key[1], (uint32_t)a};
        memcpy(c, next, sizeof c);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return c[index % 8 / 2] >> (index % 2 * 16) & 0xffffu;
}

bool dropout_is_kept(uint64_t seed, uint64_t call, int64_t index, float probability)
{
    double chance = number_of(seed, call, (uint64_t)index, false) * 65536.0 +
                    number_of(seed, call, (uint64_t)index, true);
    double p = (double)probability;
    if (p >= 1.0 / 64 && p <= 63.0 / 64) p = floor(p * 32768.0 + 0.5) / 32768.0;
    return chance >= p * 4294967296.0;
}

cudnnStatus_t dropout_set(const struct dropout_call *c)
{
    return cudnnSetDropoutDescriptor(c->dropout, harness_handle, c->probability, c->states,
                                     c->state_bytes, c->seed);
}

cudnnStatus_t dropout_forward(const struct dropout_call *c)
{
    return cudnnDropoutForward(harness_handle, c->dropout, c->x->desc, c->x->whole->data,
                               c->y->desc, c->y->whole->data, c->reserve->data,
                               (size_t)c->reserve->bytes);
}

void dropout_begin(struct dropout_call *c)
{
    cudnnCreateDropoutDescriptor(&c->dropout);
    cudnnDropoutGetStatesSize(harness_handle, &c->state_bytes);
    warpdnnMalloc(harness_handle, c->state_bytes, &c->states);
}

void dropout_end(struct dropout_call *c)
{
    cudnnDestroyDropoutDescriptor(c->dropout);
    warpdnnFree(harness_handle, c->states);
    parts_free();
    case_end();
}

struct tensor *dropout_reserve(cudnnTensorDescriptor_t desc)
{
    size_t bytes = 0;
    if (cudnnDropoutGetReserveSpaceSize(desc, &bytes) != CUDNN_STATUS_SUCCESS) {
        case_fail("no reserve space size");
    }
    return tensor_bytes((int64_t)bytes);
}
