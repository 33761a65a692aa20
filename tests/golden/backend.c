/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements backend.h.
 */
#include "backend.h"

#include <stdio.h>

static be_desc made[256];
static int made_n;

be_desc be_make(cudnnBackendDescriptorType_t type)
{
    be_desc d = NULL;
    char key[32];
    snprintf(key, sizeof key, "make%d", (int)type);
    if (gd_setup(key, lib.BackendCreateDescriptor(type, &d)) == 0 && made_n < GD_COUNT(made))
        made[made_n++] = d;
    return d;
}

void be_reset(void)
{
    while (made_n) lib.BackendDestroyDescriptor(made[--made_n]);
}

cudnnStatus_t be_set(be_desc d, int attribute, int type, int64_t n, const void *values)
{
    char key[32];
    snprintf(key, sizeof key, "set%d", attribute);
    return gd_setup(key, lib.BackendSetAttribute(d, (cudnnBackendAttributeName_t)attribute,
                                                 (cudnnBackendAttributeType_t)type, n, values));
}

cudnnStatus_t be_set_desc(be_desc d, int attribute, be_desc value)
{
    return be_set(d, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

cudnnStatus_t be_set_int(be_desc d, int attribute, int type, int value)
{
    int64_t wide = value;
    int narrow = value;
    bool small = value == 0 || value == 1;
    if (type == CUDNN_TYPE_BOOLEAN && small)
        return be_set(d, attribute, type, 1, &(bool){value != 0});
    return be_set(d, attribute, type, 1,
                  type == CUDNN_TYPE_INT64 ? (void *)&wide : (void *)&narrow);
}

cudnnStatus_t be_set_f32(be_desc d, int attribute, float value)
{
    return be_set(d, attribute, CUDNN_TYPE_FLOAT, 1, &value);
}

cudnnStatus_t be_set_f64(be_desc d, int attribute, double value)
{
    return be_set(d, attribute, CUDNN_TYPE_DOUBLE, 1, &value);
}

cudnnStatus_t be_finalize(const char *key, be_desc d)
{
    return gd_setup(key, lib.BackendFinalize(d));
}

be_desc be_tensor(int64_t uid, int type, int n, const int *dim, const int *stride, bool is_virtual)
{
    be_desc d = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t dims[8], strides[8];
    for (int i = 0; i < n; i++) {
        dims[i] = dim[i];
        strides[i] = stride[i];
    }
    be_set_int(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    be_set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n, dims);
    be_set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n, strides);
    be_set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    be_set_int(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 16);
    if (is_virtual) be_set_int(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1);
    be_finalize("tensor", d);
    return d;
}

be_desc be_tensor_of(int64_t uid, const struct gd_tens *t)
{
    return be_tensor(uid, t->desc_type, t->nd, t->dim, t->stride, false);
}

be_desc be_by_value(int64_t uid, int type, int nd, int alignment)
{
    static const int64_t ones[] = {1, 1, 1, 1, 1};
    be_desc d = be_make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    be_set_int(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    be_set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, nd, ones);
    be_set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, nd, ones);
    be_set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    be_set_int(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
    be_set_int(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1);
    be_finalize("scalar", d);
    return d;
}

be_desc be_conv(int type, int mode, int n, const int *pre, const int *post, const int *stride,
                const int *dilation)
{
    be_desc d = be_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    int64_t p[4], q[4], s[4], l[4];
    for (int i = 0; i < n; i++) {
        p[i] = pre[i];
        q[i] = post[i];
        s[i] = stride[i];
        l[i] = dilation[i];
    }
    be_set_int(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    be_set_int(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, mode);
    be_set_int(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, n);
    be_set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, p);
    be_set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, q);
    be_set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, s);
    be_set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, l);
    be_finalize("conv", d);
    return d;
}

/* The configs of one heuristics mode; their number, 0 when there are none. */
static int configs(be_desc graph, cudnnBackendHeurMode_t mode, int max, be_desc *config,
                   cudnnStatus_t *status)
{
    be_desc heur = be_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t n = 0;
    be_set_desc(heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    be_set_int(heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    *status = lib.BackendFinalize(heur);
    if (*status) return 0;
    for (int i = 0; i < max; i++) config[i] = be_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    *status = lib.BackendGetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, max, &n, config);
    return *status ? 0 : n < max ? (int)n : max;
}

static bool execute(be_desc plan, int operands, struct gd_tens *const *operand)
{
    int64_t workspace = 0, n = 0, uid[16];
    void *pointer[16];
    gd_setup("workspace", lib.BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                  CUDNN_TYPE_INT64, 1, &n, &workspace));
    gd_size("ws", (size_t)workspace);
    void *ws = gd_workspace((size_t)workspace);
    for (int i = 0; i < operands; i++) {
        uid[i] = i + 1;
        pointer[i] = operand[i]->p;
    }
    be_desc pack = be_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    be_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, operands, uid);
    be_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, operands, pointer);
    be_set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &ws);
    be_finalize("pack", pack);
    return gd_ran("exec", lib.BackendExecute(gd_handle(), plan, pack));
}

bool be_run(int ops, const be_desc *op, int operands, struct gd_tens *const *operand)
{
    cudnnHandle_t handle = gd_handle();
    be_desc graph = be_make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, ops, op);
    be_set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (gd_status("graph", lib.BackendFinalize(graph))) return false;
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnStatus_t heur = CUDNN_STATUS_SUCCESS, built = CUDNN_STATUS_NOT_SUPPORTED;
    for (int m = 0; m < 2; m++) {
        be_desc config[6];
        int n = configs(graph, modes[m], GD_COUNT(config), config, &heur);
        gd_note(m ? "fallback" : "a", n);
        for (int i = 0; i < n; i++) {
            be_desc plan = be_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
            be_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
            be_set_desc(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config[i]);
            built = lib.BackendFinalize(plan);
            if (built) continue;
            gd_note("took", m * 100 + i);
            gd_status("plan", built);
            return execute(plan, operands, operand);
        }
    }
    gd_status("heur", heur);
    gd_status("plan", built);
    return false;
}
