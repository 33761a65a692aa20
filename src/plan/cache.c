/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan cache: an open hash table of counted plans under one lock, bounded; where a slot's
 * neighbourhood is full, the plan used longest ago there goes. The lock is held for a hash lookup
 * and a compare only; plans are made outside it (two threads may make the same one: the first to
 * come back stays). */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "plan/plan.h"

enum { SLOTS = 4096, NEIGHBOURS = 16, KEY_LOCAL = 8192 };

struct slot {
    struct wd_plan *plan;
    uint64_t used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[SLOTS];
static uint64_t now;
static uint64_t hits;
static uint64_t misses;

/* Device and graph as one key: every fact of the device, since engines may look at any and a plan
 * can be asked for by a device that is only described. Returns its length, also where it did not fit. */
static size_t write_key(const struct wd_device *device, const struct wd_graph *graph,
                        unsigned char *key, size_t size)
{
    int64_t head[] = {(int64_t)device->kind,    device->ordinal,
                      device->capability,       device->multiprocessors,
                      device->shared_per_block, device->shared_per_processor,
                      device->l2_bytes,         device->memory_bytes,
                      device->cooperative,      device->grids_meet};
    if (size < sizeof head) return sizeof head + wd_graph_key(graph, NULL, 0);
    memcpy(key, head, sizeof head);
    return sizeof head + wd_graph_key(graph, key + sizeof head, size - sizeof head);
}

/* Called under the lock. A plan goes into the first slot without one, and slots lose theirs to another plan or
 * all at once: behind one without a plan there is nothing to find. */
static struct slot *find(uint64_t hash, const void *key, size_t bytes)
{
    for (int i = 0; i < NEIGHBOURS; ++i) {
        struct slot *slot = &slots[(hash + (uint64_t)i) % SLOTS];
        if (!slot->plan) return NULL;
        if (slot->plan->hash == hash && slot->plan->key_bytes == bytes &&
            !memcmp(slot->plan->key, key, bytes)) {
            return slot;
        }
    }
    return NULL;
}

/* Called under the lock. */
static struct slot *victim(uint64_t hash)
{
    struct slot *oldest = &slots[hash % SLOTS];
    for (int i = 0; i < NEIGHBOURS; ++i) {
        struct slot *slot = &slots[(hash + (uint64_t)i) % SLOTS];
        if (!slot->plan) return slot;
        if (slot->used < oldest->used) oldest = slot;
    }
    return oldest;
}

static const struct wd_plan *lookup(uint64_t hash, const void *key, size_t bytes)
{
    struct slot *slot;
    const struct wd_plan *plan = NULL;
    pthread_mutex_lock(&lock);
    slot = find(hash, key, bytes);
    if (slot) {
        slot->used = ++now;
        hits += 1;
        atomic_fetch_add(&slot->plan->references, 1);
        plan = slot->plan;
    } else {
        misses += 1;
    }
    pthread_mutex_unlock(&lock);
    return plan;
}

/* Puts a plan in, with a reference of the cache's own. Returns the plan to use: this one, or the
 * one that another thread put in meanwhile. */
static const struct wd_plan *insert(struct wd_plan *plan)
{
    struct wd_plan *evicted = NULL;
    const struct wd_plan *use = plan;
    struct slot *slot;
    pthread_mutex_lock(&lock);
    slot = find(plan->hash, plan->key, plan->key_bytes);
    if (slot) {
        evicted = plan;
        atomic_fetch_add(&slot->plan->references, 1);
        use = slot->plan;
    } else {
        slot = victim(plan->hash);
        evicted = slot->plan;
        slot->plan = plan;
        atomic_fetch_add(&plan->references, 1);
    }
    slot->used = ++now;
    pthread_mutex_unlock(&lock);
    wd_plan_release(evicted);
    return use;
}

cudnnStatus_t wd_plan_get(const struct wd_device *device, const struct wd_graph *graph,
                          const struct wd_plan **result)
{
    _Alignas(8) unsigned char local[KEY_LOCAL];
    unsigned char *key = local;
    size_t bytes = write_key(device, graph, key, sizeof local);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const struct wd_plan *found;
    struct wd_plan *plan = NULL;
    uint64_t hash;
    wd_engines_prepare(device->kind);
    if (bytes > sizeof local) {
        key = wd_alloc(bytes);
        if (!key) goto no_memory;
        write_key(device, graph, key, bytes);
    }
    hash = wd_hash(key, bytes);
    found = lookup(hash, key, bytes);
    if (!found) {
        status = wd_plan_create(device, graph, &plan);
        if (status != CUDNN_STATUS_SUCCESS) goto done;
        plan->key = wd_alloc(bytes);
        if (!plan->key) goto no_memory;
        memcpy(plan->key, key, bytes);
        plan->key_bytes = bytes;
        plan->hash = hash;
        found = insert(plan);
    }
    *result = found;
    goto done;
no_memory:
    wd_plan_destroy(plan);
    status = wd_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                     "no host memory for a plan key of %zu bytes", bytes);
done:
    if (key != local) wd_free(key);
    return status;
}

const struct wd_plan *wd_plan_retain(const struct wd_plan *plan)
{
    atomic_fetch_add(&((struct wd_plan *)(uintptr_t)plan)->references, 1);
    return plan;
}

void wd_plan_release(const struct wd_plan *plan)
{
    struct wd_plan *own = (struct wd_plan *)(uintptr_t)plan;
    if (own && atomic_fetch_sub(&own->references, 1) == 1) wd_plan_destroy(own);
}

void wd_plan_cache_clear(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS; ++i) {
        wd_plan_release(slots[i].plan);
        slots[i].plan = NULL;
    }
    pthread_mutex_unlock(&lock);
}

struct wd_plan_statistics wd_plan_statistics(void)
{
    struct wd_plan_statistics statistics;
    pthread_mutex_lock(&lock);
    statistics = (struct wd_plan_statistics){hits, misses, wd_plans_alive(), 0};
    pthread_mutex_unlock(&lock);
    statistics.executions = wd_plan_executions();
    return statistics;
}
