/* SPDX-License-Identifier: Apache-2.0
 *
 * What the thread sanitizer is told, where the kernels are compiled for it: which fibre runs, and what
 * orders one thread's accesses before another's. Barriers do, shuffles and the emulator's own
 * bookkeeping do not, so that what a kernel leaves unordered within a cluster is reported. One
 * cluster ends before the next begins: what they do to each other is not seen. Elsewhere all this is
 * nothing. */
#ifndef EMULATOR_RACES_H
#define EMULATOR_RACES_H

#ifdef EMULATOR_FINDS_RACES

enum { SWITCH_UNORDERED = 1 };

void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fibre);
void __tsan_switch_to_fiber(void *fibre, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);

static inline void *races_self(void)
{
    return __tsan_get_current_fiber();
}

static inline void *races_begin(void)
{
    return __tsan_create_fiber(0);
}

static inline void races_end(void *fibre)
{
    __tsan_destroy_fiber(fibre);
}

/* Orders nothing. */
static inline void races_switch(void *fibre)
{
    __tsan_switch_to_fiber(fibre, SWITCH_UNORDERED);
}

/* What this thread has done comes before what others do after they have seen the same place. */
static inline void races_show(void *place)
{
    __tsan_release(place);
}

static inline void races_see(void *place)
{
    __tsan_acquire(place);
}

#else

static inline void *races_self(void)
{
    return 0;
}

static inline void *races_begin(void)
{
    return 0;
}

static inline void races_end(void *fibre)
{
    (void)fibre;
}

static inline void races_switch(void *fibre)
{
    (void)fibre;
}

static inline void races_show(void *place)
{
    (void)place;
}

static inline void races_see(void *place)
{
    (void)place;
}

#endif

#endif
