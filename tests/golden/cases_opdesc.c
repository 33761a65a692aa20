/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: activation, op-tensor, reduce, LRN and dropout descriptors.
 */
#include "golden.h"

#include <math.h>

static void note_activation(cudnnActivationDescriptor_t a)
{
    cudnnActivationMode_t mode = (cudnnActivationMode_t)-7;
    cudnnNanPropagation_t nan = (cudnnNanPropagation_t)-7;
    double coef = -7, beta = -7;
    if (gd_status("get", lib.GetActivationDescriptor(a, &mode, &nan, &coef)) == 0) {
        gd_int("mode", mode);
        gd_int("nan", nan);
        gd_real("coef", coef, 0);
    }
    if (gd_status("get_beta", lib.GetActivationDescriptorSwishBeta(a, &beta)) == 0)
        gd_real("beta", beta, 0);
}

static void activation(void)
{
    static const double coefs[] = {0, 1, -1, 0.3, 6, 1e300, NAN, INFINITY};
    for (int mode = -1; mode <= 8; mode++) {
        for (int nan = -1; nan <= 2; nan++) {
            if (!gd_host_case("activationdesc/mode%d/nan%d", mode, nan)) continue;
            cudnnActivationDescriptor_t a = NULL;
            gd_setup("create", lib.CreateActivationDescriptor(&a));
            if (gd_status("set", lib.SetActivationDescriptor(a, (cudnnActivationMode_t)mode,
                                                             (cudnnNanPropagation_t)nan, 0.5)) == 0)
                note_activation(a);
            gd_status("destroy", lib.DestroyActivationDescriptor(a));
            gd_end();
        }
    }
    for (int i = 0; i < GD_COUNT(coefs); i++) {
        for (int mode = 0; mode < 7; mode++) {
            if (!gd_host_case("activationdesc/coef%g/mode%d", coefs[i], mode)) continue;
            cudnnActivationDescriptor_t a = NULL;
            gd_setup("create", lib.CreateActivationDescriptor(&a));
            gd_status("set", lib.SetActivationDescriptor(a, (cudnnActivationMode_t)mode,
                                                         CUDNN_PROPAGATE_NAN, coefs[i]));
            note_activation(a);
            gd_status("set_beta", lib.SetActivationDescriptorSwishBeta(a, coefs[i]));
            double beta = -7;
            gd_status("get_beta2", lib.GetActivationDescriptorSwishBeta(a, &beta));
            gd_real("beta2", beta, 0);
            lib.DestroyActivationDescriptor(a);
            gd_end();
        }
    }
    if (gd_host_case("activationdesc/fresh")) {
        cudnnActivationDescriptor_t a = NULL;
        double beta = -7;
        gd_setup("create", lib.CreateActivationDescriptor(&a));
        /* Its mode and coefficient are not initialised; only the beta of swish has a default. */
        gd_status("get_beta", lib.GetActivationDescriptorSwishBeta(a, &beta));
        gd_real("beta", beta, 0);
        lib.DestroyActivationDescriptor(a);
        gd_end();
    }
}

static void op_tensor(void)
{
    for (int op = -1; op <= 7; op++) {
        for (int type = -1; type <= 11; type++) {
            for (int nan = -1; nan <= 2; nan++) {
                if ((op < 0 || op > 5) + (type < 0 || type > 3) + (nan < 0 || nan > 1) > 1)
                    continue;
                if (op > 0 && op < 5 && type > 3) continue;
                if (!gd_host_case("opdesc/op%d/t%d/nan%d", op, type, nan)) continue;
                cudnnOpTensorDescriptor_t o = NULL;
                cudnnOpTensorOp_t got = (cudnnOpTensorOp_t)-7;
                cudnnDataType_t t = (cudnnDataType_t)-7;
                cudnnNanPropagation_t n = (cudnnNanPropagation_t)-7;
                gd_setup("create", lib.CreateOpTensorDescriptor(&o));
                if (gd_status("set", lib.SetOpTensorDescriptor(o, (cudnnOpTensorOp_t)op,
                                                               (cudnnDataType_t)type,
                                                               (cudnnNanPropagation_t)nan)) == 0) {
                    gd_status("get", lib.GetOpTensorDescriptor(o, &got, &t, &n));
                    gd_ints("is", 3, DIMS(got, t, n));
                }
                gd_status("destroy", lib.DestroyOpTensorDescriptor(o));
                gd_end();
            }
        }
    }
}

static void reduce_one(int op, int type, int nan, int indices, int width)
{
    if (!gd_host_case("reducedesc/op%d/t%d/nan%d/i%d/w%d", op, type, nan, indices, width)) return;
    cudnnReduceTensorDescriptor_t r = NULL;
    cudnnReduceTensorOp_t got = (cudnnReduceTensorOp_t)-7;
    cudnnDataType_t t = (cudnnDataType_t)-7;
    cudnnNanPropagation_t n = (cudnnNanPropagation_t)-7;
    cudnnReduceTensorIndices_t i = (cudnnReduceTensorIndices_t)-7;
    cudnnIndicesType_t w = (cudnnIndicesType_t)-7;
    gd_setup("create", lib.CreateReduceTensorDescriptor(&r));
    if (gd_status("set", lib.SetReduceTensorDescriptor(
                             r, (cudnnReduceTensorOp_t)op, (cudnnDataType_t)type,
                             (cudnnNanPropagation_t)nan, (cudnnReduceTensorIndices_t)indices,
                             (cudnnIndicesType_t)width)) == 0) {
        gd_status("get", lib.GetReduceTensorDescriptor(r, &got, &t, &n, &i, &w));
        gd_ints("is", 5, DIMS(got, t, n, i, w));
    }
    gd_status("destroy", lib.DestroyReduceTensorDescriptor(r));
    gd_end();
}

static void reduce(void)
{
    for (int op = -1; op <= 10; op++)
        for (int indices = 0; indices < 2; indices++) reduce_one(op, 0, 0, indices, 0);
    for (int type = -1; type <= 12; type++)
        if (type != 0) reduce_one(0, type, 0, 0, 0);
    for (int nan = -1; nan <= 2; nan++)
        if (nan != 0) reduce_one(3, 0, nan, 1, 0);
    for (int width = -1; width <= 4; width++)
        if (width != 0) reduce_one(2, 0, 0, 1, width);
    reduce_one(2, 0, 0, -1, 0);
    reduce_one(2, 0, 0, 2, 0);
}

static void lrn(void)
{
    static const struct {
        unsigned n;
        double alpha, beta, k;
    } rows[] = {{5, 1e-4, 0.75, 2}, {1, 1, 1, 1},    {16, 1, 1, 1},    {17, 1, 1, 1},
                {0, 1, 1, 1},       {4, 1, 0.01, 1}, {4, 1, 0.009, 1}, {4, 1, 1, 1e-5},
                {4, 1, 1, 0.9e-5},  {4, -1, 1, 1},   {4, 0, 1, 1},     {4, 1, -1, 1},
                {4, NAN, 1, 1},     {4, 1, NAN, 1},  {4, 1, 1, NAN},   {2, INFINITY, 1, 1}};
    for (int i = -1; i < GD_COUNT(rows); i++) {
        if (!gd_host_case("lrndesc/%d", i)) continue;
        cudnnLRNDescriptor_t l = NULL;
        unsigned n = 77;
        double v[3] = {-7, -7, -7};
        gd_setup("create", lib.CreateLRNDescriptor(&l));
        if (i >= 0)
            gd_status("set",
                      lib.SetLRNDescriptor(l, rows[i].n, rows[i].alpha, rows[i].beta, rows[i].k));
        gd_status("get", lib.GetLRNDescriptor(l, &n, v, v + 1, v + 2));
        gd_int("n", n);
        gd_real("alpha", v[0], 0);
        gd_real("beta", v[1], 0);
        gd_real("k", v[2], 0);
        gd_status("get_null", lib.GetLRNDescriptor(l, NULL, NULL, NULL, NULL));
        gd_status("destroy", lib.DestroyLRNDescriptor(l));
        gd_end();
    }
}

void cases_opdesc(void)
{
    activation();
    op_tensor();
    reduce();
    lrn();
    if (gd_host_case("dropoutdesc/create_destroy")) {
        cudnnDropoutDescriptor_t d = NULL;
        gd_status("create", lib.CreateDropoutDescriptor(&d));
        gd_int("made", d != NULL);
        gd_status("destroy", lib.DestroyDropoutDescriptor(d));
        gd_end();
    }
}
