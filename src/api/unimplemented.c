/* SPDX-License-Identifier: Apache-2.0
 *
 * What is exported and not built yet: every row of unimplemented.def becomes a function that looks
 * at no argument, answers NOT_SUPPORTED and says so in the last-error text; but there is nothing to be destroyed where NULL is
 * given. Any thread. */
#include "base/status.h"
#include "cudnn.h"

static cudnnStatus_t refuse(const char *name)
{
    return wd_fail_public(name, CUDNN_STATUS_NOT_SUPPORTED, "not implemented yet");
}

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC visibility push(default)
#endif

/* These four are exported, but no header declares them. */
cudnnStatus_t CUDNNWINAPI cudnnGetBackdoor(void);
cudnnStatus_t CUDNNWINAPI cudnnSetBackdoor(void);
cudnnStatus_t CUDNNWINAPI cudnnSetBackdoorEx(void);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNDropoutLocationsInternal(void);

#define WD_UNIMPLEMENTED(name, parameters)                                                         \
    cudnnStatus_t CUDNNWINAPI name parameters                                                      \
    {                                                                                              \
        return refuse(#name);                                                                      \
    }
#define WD_UNIMPLEMENTED_DESTROY(name, type)                                                       \
    cudnnStatus_t CUDNNWINAPI name(type descriptor)                                                \
    {                                                                                              \
        return descriptor ? refuse(#name) : CUDNN_STATUS_SUCCESS;                                  \
    }
#include "api/unimplemented.def"
#undef WD_UNIMPLEMENTED
#undef WD_UNIMPLEMENTED_DESTROY

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC visibility pop
#endif
