/* SPDX-License-Identifier: Apache-2.0
 *
 * The arenas of all contexts, in one list under one lock; driver calls are made outside it.
 *
 * An arena of a graph is freed by nobody but the graph: a user object of the driver's carries it,
 * and its destructor, which may run on any thread and may not call CUDA, only pushes the arena on a
 * stack. Whoever takes the lock next moves it from there back among the free ones: the work of the
 * graph is over by then, so that any stream may have it.
 *
 * Streams come and go unseen, so a context keeps at most IDLE_BYTES_MAX in free arenas; those that
 * rested longest are given up for a new one. Freeing waits for the device, which makes that safe. */
#include "gpu/arena.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/board.h"
#include "gpu/context.h"

enum {
    ALIGNMENT = 256,
    SMALLEST = 1 << 20,
    IDLE_BYTES_MAX = 256 << 20, /* a context */
};

enum arena_state {
    FREE,  /* the next execution with its key may have it */
    BUSY,  /* an execution holds it */
    CLEAN, /* nothing under way uses it: any key of its context may have it */
};

struct wd_arena {
    struct wd_arena *next;     /* in the list of all */
    struct wd_arena *held;     /* in the list of an execution */
    struct wd_arena *released; /* on the stack of those that graphs let go */
    struct wd_arena_key key;
    enum arena_state state;
    bool owned;   /* by a graph */
    bool counted; /* the counters behind the data have been zeroed */
    char *data;
    size_t bytes;
    size_t used; /* by the execution that holds it */
    uint64_t last_use;
};

struct context_use {
    struct context_use *next;
    uint64_t context;
    int queues;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the next three */
static struct wd_arena *arenas;
static struct context_use *contexts;
static uint64_t uses;

/* Atomic: a stack without a lock, bytes of all arenas, ids given out. */
static struct wd_arena *released;
static uint64_t alive;
static uint64_t captures;

uint64_t wd_gpu_scratch_bytes(void)
{
    return __atomic_load_n(&alive, __ATOMIC_RELAXED);
}

uint64_t wd_arena_capture_id(void)
{
    /* the driver counts captures from below */
    return ((uint64_t)1 << 63) | __atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED);
}

/* The destructor of a graph's user object. */
static void release_from_graph(void *data)
{
    struct wd_arena *arena = data;
    struct wd_arena *top = __atomic_load_n(&released, __ATOMIC_RELAXED);
    do {
        arena->released = top;
    } while (!__atomic_compare_exchange_n(&released, &top, arena, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

/* Under the lock. */
static void reclaim_released(void)
{
    struct wd_arena *arena = __atomic_exchange_n(&released, NULL, __ATOMIC_ACQUIRE);
    for (; arena; arena = arena->released) {
        arena->owned = false;
        /* an execution that failed may hold the arena still; it goes free when given back */
        if (arena->state == FREE) arena->state = CLEAN;
    }
}

static bool same_key(const struct wd_arena_key *a, const struct wd_arena_key *b)
{
    return a->context == b->context && a->stream == b->stream && a->capture == b->capture;
}

/* Under the lock: a free arena that fits, or null. A graph's own comes first, then one that nothing
 * uses; an arena that is to be a graph's is never one that a stream's work may still be in. */
static struct wd_arena *find_free(const struct wd_arena_key *key, size_t bytes)
{
    struct wd_arena *clean = NULL;
    for (struct wd_arena *arena = arenas; arena; arena = arena->next) {
        if (arena->bytes < bytes) continue;
        if (arena->state == FREE && same_key(&arena->key, key)) return arena;
        if (arena->state == CLEAN && arena->key.context == key->context && !clean) clean = arena;
    }
    return clean;
}

/* An arena's size for a request. */
static size_t size_for(size_t bytes)
{
    size_t size = SMALLEST;
    while (size < bytes) size *= 2;
    return size;
}

/* Under the lock: unlinks the longest unused arenas, as many as must go before the context may have
 * `bytes` more. Answers them as a list. */
static struct wd_arena *drop_oldest(uint64_t context, size_t bytes)
{
    struct wd_arena *dropped = NULL;
    for (;;) {
        struct wd_arena **oldest = NULL;
        struct wd_arena *arena;
        size_t idle = bytes;
        for (struct wd_arena **link = &arenas; *link; link = &(*link)->next) {
            arena = *link;
            if (arena->key.context != context || arena->owned || arena->state == BUSY) continue;
            idle += arena->bytes;
            if (!oldest || arena->last_use < (*oldest)->last_use) oldest = link;
        }
        if (!oldest || idle <= IDLE_BYTES_MAX) return dropped;
        arena = *oldest;
        *oldest = arena->next;
        arena->next = dropped;
        dropped = arena;
    }
}

/* Ends an arena that is in no list. Whatever the driver answers, the memory is no longer ours. */
static void destroy(struct wd_arena *arena, bool usable)
{
    const char *ignored;
    if (usable) wd_relaxed_free(arena->data, &ignored);
    __atomic_fetch_sub(&alive, arena->bytes, __ATOMIC_RELAXED);
    wd_free(arena);
}

static cudnnStatus_t create(const struct wd_arena_key *key, size_t bytes, struct wd_arena **out)
{
    struct wd_arena *arena = wd_alloc(sizeof *arena);
    const char *function = NULL;
    void *data = NULL;
    CUresult result;
    size_t size = size_for(bytes);
    WD_REQUIRE(arena, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no %zu bytes of host memory for a scratch arena", sizeof *arena);
    result = wd_relaxed_alloc(size + WD_COUNTERS_BYTES + WD_BOARD_BYTES, &data, &function);
    if (result != CUDA_SUCCESS) {
        wd_free(arena);
        return wd_driver_fail(result, function, "allocating %zu bytes of scratch", size);
    }
    arena->key = *key;
    arena->state = BUSY;
    arena->data = data;
    arena->bytes = size;
    __atomic_fetch_add(&alive, size, __ATOMIC_RELAXED);
    *out = arena;
    return CUDNN_STATUS_SUCCESS;
}

/* A graph that keeps the arena keeps it until the last of its instances is gone. */
static cudnnStatus_t give_to_graph(struct wd_arena *arena, CUgraph owner)
{
    CUuserObject object = NULL;
    CUresult result;
    WD_CU_TRY(cuUserObjectCreate,
              (&object, arena, release_from_graph, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
              "giving %zu bytes of scratch to a graph", arena->bytes);
    pthread_mutex_lock(&lock);
    arena->owned = true;
    pthread_mutex_unlock(&lock);
    result = wd_cu.cuGraphRetainUserObject(owner, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (result == CUDA_SUCCESS) return CUDNN_STATUS_SUCCESS;
    wd_cu.cuUserObjectRelease(object, 1); /* runs the destructor */
    return wd_driver_fail(result, "cuGraphRetainUserObject",
                          "giving %zu bytes of scratch to a graph", arena->bytes);
}

static cudnnStatus_t acquire(const struct wd_arena_key *key, CUgraph owner, size_t bytes,
                             struct wd_arena **out)
{
    struct wd_arena *dropped = NULL;
    struct wd_arena *arena;
    bool owned = false;
    pthread_mutex_lock(&lock);
    reclaim_released();
    arena = find_free(key, bytes);
    if (arena) {
        owned = arena->owned;
        arena->state = BUSY;
        arena->key = *key;
        arena->last_use = ++uses;
    } else {
        dropped = drop_oldest(key->context, size_for(bytes));
    }
    pthread_mutex_unlock(&lock);
    while (dropped) {
        struct wd_arena *next = dropped->next;
        destroy(dropped, true);
        dropped = next;
    }
    if (!arena) {
        WD_TRY(create(key, bytes, &arena));
        pthread_mutex_lock(&lock);
        arena->last_use = ++uses; /* NOLINT: create succeeded, so there is one */
        arena->next = arenas;
        arenas = arena;
        pthread_mutex_unlock(&lock);
    }
    *out = arena;
    if (owner && !owned) {
        cudnnStatus_t status = give_to_graph(arena, owner);
        if (status != CUDNN_STATUS_SUCCESS) wd_arena_give(out);
        return status;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_arena_take(struct wd_arena **held, const struct wd_arena_key *key, CUgraph owner,
                            size_t bytes, void **data)
{
    size_t wanted = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct wd_arena *arena = *held;
    size_t total = 0;
    for (struct wd_arena *a = *held; a; a = a->held) total += a->used;
    WD_REQUIRE(bytes <= WD_ARENA_BYTES_MAX && total + wanted <= WD_ARENA_BYTES_MAX,
               CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
               "%zu bytes of scratch after %zu: an execution without a workspace has at most %d",
               bytes, total, (int)WD_ARENA_BYTES_MAX);
    if (!arena || arena->bytes - arena->used < wanted) {
        WD_TRY(acquire(key, owner, wanted, &arena));
        arena->held = *held;
        *held = arena;
    }
    *data = arena->data + arena->used;
    arena->used += wanted;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_arena_counters(struct wd_arena **held, const struct wd_arena_key *key,
                                CUgraph owner, void **data)
{
    struct wd_arena *arena = *held;
    const char *function = NULL;
    CUresult result;
    if (!arena) {
        WD_TRY(acquire(key, owner, 0, &arena));
        arena->held = *held;
        *held = arena;
    }
    *data = arena->data + arena->bytes;
    if (arena->counted) return CUDNN_STATUS_SUCCESS;
    result = wd_relaxed_zero(*data, WD_COUNTERS_BYTES + WD_BOARD_BYTES, &function);
    if (result != CUDA_SUCCESS) {
        return wd_driver_fail(result, function, "zeroing the %d bytes of counters of an arena",
                              (int)(WD_COUNTERS_BYTES + WD_BOARD_BYTES));
    }
    arena->counted = true;
    return CUDNN_STATUS_SUCCESS;
}

void wd_arena_give(struct wd_arena **held)
{
    struct wd_arena *arena = *held;
    pthread_mutex_lock(&lock);
    while (arena) {
        struct wd_arena *next = arena->held;
        arena->held = NULL;
        arena->used = 0;
        /* the work of a capture's arena is the graph's: once that has let go, there is none */
        arena->state = arena->key.capture != 0 && !arena->owned ? CLEAN : FREE;
        arena = next;
    }
    *held = NULL;
    pthread_mutex_unlock(&lock);
}

cudnnStatus_t wd_arena_open_context(uint64_t context)
{
    struct context_use *use;
    pthread_mutex_lock(&lock);
    for (use = contexts; use && use->context != context; use = use->next) continue;
    if (!use) {
        use = wd_alloc(sizeof *use);
        if (use) {
            use->context = context;
            use->next = contexts;
            contexts = use;
        }
    }
    if (use) use->queues += 1;
    pthread_mutex_unlock(&lock);
    WD_REQUIRE(use, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
               "no %zu bytes of host memory to count the handles of a context", sizeof *use);
    return CUDNN_STATUS_SUCCESS;
}

/* Under the lock: takes one queue off the context's count; true for the last. */
static bool close_use(uint64_t context)
{
    struct context_use **link = &contexts;
    struct context_use *use;
    while (*link && (*link)->context != context) link = &(*link)->next;
    use = *link;
    if (!use || --use->queues > 0) return false;
    *link = use->next;
    wd_free(use);
    return true;
}

void wd_arena_close_context(uint64_t context, bool usable)
{
    struct wd_arena *ours = NULL;
    struct wd_arena **link = &arenas;
    pthread_mutex_lock(&lock);
    reclaim_released();
    if (close_use(context)) {
        while (*link) {
            struct wd_arena *arena = *link;
            if (arena->key.context == context && !arena->owned) {
                *link = arena->next;
                arena->next = ours;
                ours = arena;
            } else {
                link = &arena->next;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    while (ours) {
        struct wd_arena *arena = ours;
        ours = arena->next;
        destroy(arena, usable);
    }
}
