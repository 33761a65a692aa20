/* SPDX-License-Identifier: Apache-2.0
 *
 * What the entry points share: the handle, the legacy descriptors, argument checks that name the
 * public function, and running a one-node graph. An entry point checks its arguments, says what is
 * meant as a wd_single and calls wd_run; it launches nothing itself.
 *
 * Legacy descriptors may change after any call, so entry points copy what they need out of them. */
#ifndef WD_API_API_H
#define WD_API_API_H

#include "base/log.h"
#include "base/queue.h"
#include "base/status.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "warpdnn.h"

enum { WD_HANDLE_MAGIC = 0x57444e4e, WD_NAME_SIZE = 256 };

struct cudnnContext {
    uint32_t magic;
    struct wd_queue *queue;
    char last_engine[WD_NAME_SIZE];
};
_Static_assert(sizeof((struct cudnnContext *)0)->last_engine == sizeof((struct wd_plan *)0)->name,
               "the last engine is copied from the name of its plan");

/* A refusal that names the public function it stands in. */
#define WD_ARG(condition, status, ...)                                                             \
    do {                                                                                           \
        if (!(condition)) return wd_fail_in(__func__, (status), __VA_ARGS__);                      \
    } while (0)
cudnnStatus_t wd_fail_in(const char *function, cudnnStatus_t status, const char *format, ...)
    WD_PRINTF(3, 4);
/* Puts the function's name before the text of a failure from below and tells the log; passes the
 * status through. Each failure takes one of the two ways, once. */
cudnnStatus_t wd_pass_in(const char *function, cudnnStatus_t status);

/* The same for what the graph of a single node failed with: the text gets the names of the arguments
 * that its slots were bound to. */
cudnnStatus_t wd_pass_single(const char *function, const struct wd_single *single,
                             cudnnStatus_t status);

/* Null, or not a handle: refused. Else messages of this call carry it from here on. */
#define WD_HANDLE(handle) WD_TRY(wd_check_handle(__func__, (handle)))
cudnnStatus_t wd_check_handle(const char *function, cudnnHandle_t handle);
/* The check alone, for a handle that is an attribute. */
cudnnStatus_t wd_handle_validate(const char *name, cudnnHandle_t handle);

/* Legacy descriptors. `type` tells them apart, so that a wrong or freed one is refused. */
enum wd_descriptor_type {
    WD_DESC_TENSOR = 0x77640001,
    WD_DESC_FILTER,
    WD_DESC_CONVOLUTION,
    WD_DESC_POOLING,
    WD_DESC_ACTIVATION,
    WD_DESC_DROPOUT,
    WD_DESC_REDUCE,
    WD_DESC_OP_TENSOR,
    WD_DESC_LRN,
    WD_DESC_TRANSFORM,
    WD_DESC_SPATIAL,
    WD_DESC_CTC,
    WD_DESC_RNN,
    WD_DESC_RNN_DATA,
    WD_DESC_ATTENTION,
    WD_DESC_SEQUENCE,
    WD_DESC_FUSED_CONST,
    WD_DESC_FUSED_VARIANT,
    WD_DESC_FUSED_PLAN,
    WD_DESC_ALGORITHM,
};

struct wd_descriptor {
    uint32_t type;
    uint32_t set; /* whether a Set function has filled it */
};

/* Allocates a zeroed descriptor of `bytes` that starts with struct wd_descriptor. */
#define WD_DESC_CREATE(type, argument)                                                             \
    wd_descriptor_create(__func__, #argument, (type), sizeof **(argument), (argument))
cudnnStatus_t wd_descriptor_create(const char *function, const char *argument,
                                   enum wd_descriptor_type type, size_t bytes, void *result);
/* A null descriptor is a success, as in the API. */
#define WD_DESC_DESTROY(type, argument)                                                            \
    wd_descriptor_destroy(__func__, #argument, (type), (argument))
cudnnStatus_t wd_descriptor_destroy(const char *function, const char *argument,
                                    enum wd_descriptor_type type, void *descriptor);
cudnnStatus_t wd_check_descriptor(const char *function, const char *argument,
                                  enum wd_descriptor_type type, const void *descriptor,
                                  int must_be_set);
/* Refuses a null descriptor or one of another type; WD_DESC_SET also one that was never set. */
#define WD_DESC(argument, type)                                                                    \
    WD_TRY(wd_check_descriptor(__func__, #argument, (type), (argument), 0))
#define WD_DESC_SET(argument, type)                                                                \
    WD_TRY(wd_check_descriptor(__func__, #argument, (type), (argument), 1))

struct cudnnTensorStruct {
    struct wd_descriptor head;
    int32_t declared_dtype;  /* as given: INT8x4 and the like included */
    int32_t declared_format; /* cudnnTensorFormat_t, -1 where strides were given */
    struct wd_tensor tensor;
};

struct cudnnFilterStruct {
    struct wd_descriptor head;
    int32_t declared_dtype;
    int32_t declared_format;
    struct wd_tensor tensor; /* dims K, C, [D,] R, S whatever the format */
};

struct cudnnActivationStruct {
    struct wd_descriptor head;
    int32_t mode; /* cudnnActivationMode_t */
    int32_t propagate_nan;
    double coef;
    double swish_beta;
};

struct cudnnDropoutStruct {
    struct wd_descriptor head;
    float dropout; /* probability that an element becomes 0 */
    void *states;  /* the caller's device memory, see base/philox.h; null: none */
    unsigned long long seed;
};

struct cudnnOpTensorStruct {
    struct wd_descriptor head;
    int32_t op; /* cudnnOpTensorOp_t */
    int32_t compute;
    int32_t propagate_nan;
};

/* A tensor descriptor with these properties, checked: overflow, type, vector rules. `format` -1
 * takes `strides`. Fills `tensor`; used by tensor and filter descriptors. The names are those of
 * the arguments, as wd_element_name takes them. */
cudnnStatus_t wd_tensor_fill(const char *function, struct wd_tensor *tensor, int format, int dtype,
                             int rank, const int *dims, const char *dim_names, const int *strides,
                             const char *stride_names);

/* What the caller calls element d of a list, into `text`: "n c h w" names one after the other, and
 * "dimA" an array, "dimA[1]". */
enum { WD_ELEMENT_NAME_SIZE = 48 };
const char *wd_element_name(const char *names, int d, char *text);

/* An elementwise output may stand in the memory of an input, element on element: where the pointers
 * are equal, types, dims and strides must be. */
struct wd_place_names {
    const char *output, *output_desc, *input, *input_desc;
};
#define WD_IN_PLACE(output, output_desc, input, input_desc)                                        \
    WD_TRY(wd_check_in_place(                                                                      \
        __func__, (output), (output_desc), (input), (input_desc),                                  \
        &(const struct wd_place_names){#output, #output_desc, #input, #input_desc}))
cudnnStatus_t wd_check_in_place(const char *function, const void *output,
                                const struct cudnnTensorStruct *output_desc, const void *input,
                                const struct cudnnTensorStruct *input_desc,
                                const struct wd_place_names *names);

/* Refuses descriptors of different types; the second also those of different dims. */
cudnnStatus_t wd_check_same_dtype(const char *function, const struct cudnnTensorStruct *tensor,
                                  const char *name, const struct cudnnTensorStruct *other,
                                  const char *other_name);
cudnnStatus_t wd_check_same_tensor(const char *function, const struct cudnnTensorStruct *tensor,
                                   const char *name, const struct cudnnTensorStruct *other,
                                   const char *other_name);

/* Memory of that many bytes whose contents are the library's own: reserves, states, indices. */
struct wd_tensor wd_opaque_bytes(int64_t bytes);

/* Binds a tensor descriptor and its pointer to a slot, both by the names of the arguments. */
#define WD_BIND(single, slot, descriptor, data)                                                    \
    wd_bind((single), (slot), &(descriptor)->tensor, #descriptor, (data), #data)
void wd_bind(struct wd_single *single, int slot, const struct wd_tensor *tensor,
             const char *tensor_name, const void *data, const char *data_name);

/* alpha or beta as the API passes it: float, or double where the data is fp64. */
static inline double wd_scalar(const void *value, int dtype)
{
    return dtype == CUDNN_DATA_DOUBLE ? *(const double *)value : (double)*(const float *)value;
}

/* The pointwise form of an activation descriptor: mode, clips and slopes, forward or backward. */
struct wd_pointwise_attr wd_activation_attr(const struct cudnnActivationStruct *activation,
                                            int backward);

/* Plans and runs a one-node graph on a handle. Where the function has a workspace argument give it
 * and its size, else null and WD_WORKSPACE_ARENA. */
cudnnStatus_t wd_run(const char *function, cudnnHandle_t handle, struct wd_single *single,
                     void *workspace, int64_t workspace_bytes);
/* A size_t as that size: its negative values mean something else. */
static inline int64_t wd_bytes_given(size_t bytes)
{
    return bytes > (size_t)INT64_MAX ? INT64_MAX : (int64_t)bytes;
}
/* The workspace that wd_run will need for it; the pointers are not looked at. */
cudnnStatus_t wd_run_workspace(const char *function, cudnnHandle_t handle, struct wd_single *single,
                               size_t *bytes);

#endif
