/* SPDX-License-Identifier: Apache-2.0
 *
 * What the values of a descriptor must be before it is finalized, beyond type and count; named by
 * descriptors.def. Pure functions. */
#include <stdlib.h>

#include "base/alloc.h"
#include "graph/from_descriptors.h"
#include "graph/pointwise_modes.h"

enum { LOCAL_PLACES = 64 };

cudnnStatus_t wd_tensor_check(const struct wd_tensor *tensor)
{
    int64_t units = 1;
    int64_t count = 1;
    int bits = wd_dtype_bits(tensor->dtype);
    WD_REQUIRE(tensor->rank >= 1 && tensor->rank <= WD_MAX_RANK, CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_DIMENSIONS has %d elements, not 1..%d",
               (long long)tensor->uid, tensor->rank, WD_MAX_RANK);
    WD_REQUIRE(bits > 0, CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_DATA_TYPE=%d is no data type",
               (long long)tensor->uid, tensor->dtype);
    WD_REQUIRE(tensor->vect_count >= 1 && tensor->vect_count <= 32, CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_VECTOR_COUNT=%d is not in 1..32",
               (long long)tensor->uid, tensor->vect_count);
    WD_REQUIRE(tensor->vect_count == 1 ||
                   (tensor->vect_dim >= 0 && tensor->vect_dim < tensor->rank),
               CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION=%d is not in 0..%d",
               (long long)tensor->uid, tensor->vect_dim, tensor->rank - 1);
    for (int d = 0; d < tensor->rank; ++d) {
        int64_t dim = tensor->dim[d];
        int64_t reach;
        WD_REQUIRE(dim >= 0, CUDNN_STATUS_BAD_PARAM,
                   "tensor uid %lld: CUDNN_ATTR_TENSOR_DIMENSIONS[%d]=%lld is negative",
                   (long long)tensor->uid, d, (long long)dim);
        WD_REQUIRE(tensor->stride[d] >= 0, CUDNN_STATUS_BAD_PARAM,
                   "tensor uid %lld: CUDNN_ATTR_TENSOR_STRIDES[%d]=%lld is negative",
                   (long long)tensor->uid, d, (long long)tensor->stride[d]);
        WD_REQUIRE(!__builtin_mul_overflow(count, dim > 1 ? dim : 1, &count) &&
                       count <= INT64_MAX / 128,
                   CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                   "tensor uid %lld: CUDNN_ATTR_TENSOR_DIMENSIONS up to [%d]=%lld make more "
                   "elements than an address can count",
                   (long long)tensor->uid, d, (long long)dim);
        WD_REQUIRE(!__builtin_mul_overflow(dim > 0 ? dim - 1 : 0, tensor->stride[d], &reach) &&
                       !__builtin_add_overflow(units, reach, &units) &&
                       units <= INT64_MAX / (128 * 32),
                   CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                   "tensor uid %lld: CUDNN_ATTR_TENSOR_STRIDES up to [%d]=%lld reach further than "
                   "an address",
                   (long long)tensor->uid, d, (long long)tensor->stride[d]);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_tensor_from(const struct wd_desc *desc, struct wd_tensor *tensor)
{
    const struct wd_value *dims = wd_desc_value(desc, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const struct wd_value *strides = wd_desc_value(desc, CUDNN_ATTR_TENSOR_STRIDES);
    int64_t lanes = wd_desc_int(desc, CUDNN_ATTR_TENSOR_VECTOR_COUNT);
    int64_t vect_dim = wd_desc_int(desc, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION);
    int64_t dtype = wd_desc_int(desc, CUDNN_ATTR_TENSOR_DATA_TYPE);
    *tensor = (struct wd_tensor){
        .uid = wd_desc_int(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID),
        .dtype = wd_dtype_lane((int)dtype),
        .rank = (int32_t)dims->count,
        .vect_count = 1,
        .reordering = (int32_t)wd_desc_int(desc, CUDNN_ATTR_TENSOR_REORDERING_MODE),
        .alignment = wd_desc_int(desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
    };
    WD_REQUIRE(lanes >= 1 && lanes <= 32, CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_VECTOR_COUNT=%lld is not in 1..32",
               (long long)tensor->uid, (long long)lanes);
    if (lanes > 1) {
        WD_REQUIRE(vect_dim >= 0 && vect_dim < dims->count, CUDNN_STATUS_BAD_PARAM,
                   "tensor uid %lld: CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION=%lld is not in 0..%lld",
                   (long long)tensor->uid, (long long)vect_dim, (long long)dims->count - 1);
        tensor->vect_count = (int32_t)lanes;
        tensor->vect_dim = (int32_t)vect_dim;
    }
    if (wd_desc_int(desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) tensor->flags |= WD_VIRTUAL;
    if (wd_desc_int(desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE)) tensor->flags |= WD_BY_VALUE;
    for (int64_t d = 0; d < dims->count; ++d) {
        tensor->dim[d] = dims->cells[d].i;
        tensor->stride[d] = d < strides->count ? strides->cells[d].i : 0;
    }
    /* the backend counts vectors along the vectorized dimension, a tensor counts their lanes */
    WD_REQUIRE(lanes == 1 ||
                   !__builtin_mul_overflow(tensor->dim[vect_dim], lanes, &tensor->dim[vect_dim]),
               CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_DIMENSIONS[%lld] times "
               "CUDNN_ATTR_TENSOR_VECTOR_COUNT=%lld are more elements than an address can count",
               (long long)tensor->uid, (long long)vect_dim, (long long)lanes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_tensor(struct wd_desc *desc)
{
    struct wd_tensor tensor;
    int64_t dims = wd_desc_value(desc, CUDNN_ATTR_TENSOR_DIMENSIONS)->count;
    int64_t strides = wd_desc_value(desc, CUDNN_ATTR_TENSOR_STRIDES)->count;
    WD_TRY(wd_tensor_from(desc, &tensor));
    WD_REQUIRE(wd_dtype_lanes((int)wd_desc_int(desc, CUDNN_ATTR_TENSOR_DATA_TYPE)) == 1,
               CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_DATA_TYPE=%lld is a vectorised type; take INT8 "
               "or UINT8 with a CUDNN_ATTR_TENSOR_VECTOR_COUNT",
               (long long)tensor.uid, (long long)wd_desc_int(desc, CUDNN_ATTR_TENSOR_DATA_TYPE));
    WD_REQUIRE(tensor.dtype != CUDNN_DATA_FAST_FLOAT_FOR_FP8, CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_DATA_TYPE is FAST_FLOAT_FOR_FP8, a type of "
               "computing, not of data",
               (long long)tensor.uid);
    WD_REQUIRE(dims == strides, CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_DIMENSIONS has %lld elements, "
               "CUDNN_ATTR_TENSOR_STRIDES %lld",
               (long long)tensor.uid, (long long)dims, (long long)strides);
    WD_REQUIRE(tensor.alignment > 0, CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT=%lld is not positive",
               (long long)tensor.uid, (long long)tensor.alignment);
    WD_REQUIRE((tensor.flags & (WD_VIRTUAL | WD_BY_VALUE)) != (WD_VIRTUAL | WD_BY_VALUE),
               CUDNN_STATUS_BAD_PARAM,
               "tensor uid %lld: CUDNN_ATTR_TENSOR_IS_VIRTUAL and CUDNN_ATTR_TENSOR_IS_BY_VALUE "
               "are both true",
               (long long)tensor.uid);
    WD_TRY(wd_tensor_check(&tensor));
    WD_REQUIRE(
        !(tensor.flags & WD_BY_VALUE) || wd_tensor_count(&tensor) == 1, CUDNN_STATUS_BAD_PARAM,
        "tensor uid %lld: CUDNN_ATTR_TENSOR_IS_BY_VALUE is true, but it has %lld elements, not 1",
        (long long)tensor.uid, (long long)wd_tensor_count(&tensor));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_pointwise(struct wd_desc *desc)
{
    int mode = (int)wd_desc_int(desc, CUDNN_ATTR_POINTWISE_MODE);
    WD_REQUIRE(wd_pointwise_operands(mode) > 0, CUDNN_STATUS_BAD_PARAM,
               "pointwise: CUDNN_ATTR_POINTWISE_MODE=%d is no cudnnPointwiseMode_t", mode);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_convolution(struct wd_desc *desc)
{
    static const struct {
        int attribute;
        int64_t least;
    } lists[] = {
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, 1},
    };
    int64_t spatial = wd_desc_int(desc, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    WD_REQUIRE(spatial >= 1 && spatial <= WD_MAX_SPATIAL, CUDNN_STATUS_BAD_PARAM,
               "convolution: CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS=%lld is not in 1..%d",
               (long long)spatial, WD_MAX_SPATIAL);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; ++l) {
        const struct wd_value *list = wd_desc_value(desc, lists[l].attribute);
        const char *name = wd_attribute(lists[l].attribute)->name;
        if (list->count == 0 && lists[l].least == 0) continue; /* zeros, see below */
        WD_REQUIRE(
            list->count == spatial, CUDNN_STATUS_BAD_PARAM,
            "convolution: %s has %lld elements, but CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS=%lld", name,
            (long long)list->count, (long long)spatial);
        for (int64_t i = 0; i < list->count; ++i) {
            int64_t value = list->cells[i].i;
            WD_REQUIRE(value >= lists[l].least && value <= INT32_MAX, CUDNN_STATUS_BAD_PARAM,
                       "convolution: %s[%lld]=%lld is not in %lld..%d", name, (long long)i,
                       (long long)value, (long long)lists[l].least, INT32_MAX);
        }
    }
    /* paddings that were not set are zero; said last, for a refusal must change nothing */
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; ++l) {
        const union wd_cell zeros[WD_MAX_SPATIAL] = {{0}};
        if (lists[l].least > 0 || wd_desc_has(desc, lists[l].attribute)) continue;
        WD_TRY(wd_desc_put(desc, lists[l].attribute, CUDNN_TYPE_INT64, spatial, zeros));
    }
    return CUDNN_STATUS_SUCCESS;
}

static int compare_places(const void *a, const void *b)
{
    const struct wd_place *left = a;
    const struct wd_place *right = b;
    if (left->uid != right->uid) return left->uid < right->uid ? -1 : 1;
    return left->at < right->at ? -1 : left->at > right->at;
}

const struct wd_place *wd_place_twin(struct wd_place *list, int64_t count)
{
    if (count > 1) qsort(list, (size_t)count, sizeof *list, compare_places);
    for (int64_t i = 1; i < count; ++i) {
        if (list[i].uid == list[i - 1].uid) return &list[i - 1];
    }
    return NULL;
}

cudnnStatus_t wd_check_variant_pack(struct wd_desc *desc)
{
    const struct wd_value *uids = wd_desc_value(desc, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const struct wd_value *data = wd_desc_value(desc, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    struct wd_place local[LOCAL_PLACES];
    struct wd_place *places = local;
    const struct wd_place *twin;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    WD_REQUIRE(uids->count == data->count, CUDNN_STATUS_BAD_PARAM,
               "variant pack: CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS has %lld elements, "
               "CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS %lld",
               (long long)uids->count, (long long)data->count);
    if (uids->count > LOCAL_PLACES) {
        places = wd_alloc(sizeof *places * (size_t)uids->count);
        WD_REQUIRE(places != NULL, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                   "no host memory to check a variant pack of %lld unique ids",
                   (long long)uids->count);
    }
    for (int64_t i = 0; i < uids->count; ++i) {
        places[i] = (struct wd_place){uids->cells[i].i, i};
    }
    twin = wd_place_twin(places, uids->count);
    if (twin) {
        status =
            wd_fail(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
                    "variant pack: unique id %lld of CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS stands at "
                    "%lld and at %lld",
                    (long long)twin[0].uid, (long long)twin[0].at, (long long)twin[1].at);
    }
    if (places != local) wd_free(places);
    return status;
}

cudnnStatus_t wd_check_resample(struct wd_desc *desc)
{
    static const struct {
        int attribute;
        int64_t least;
    } lists[] = {
        {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, 1},
        {CUDNN_ATTR_RESAMPLE_STRIDES, 1},
        {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, 0},
        {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, 0},
    };
    int64_t spatial = wd_desc_int(desc, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS);
    bool told = wd_desc_has(desc, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS);
    WD_REQUIRE(spatial >= 0 && spatial <= WD_MAX_SPATIAL, CUDNN_STATUS_NOT_SUPPORTED,
               "resample: CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS=%lld is not in 0..%d",
               (long long)spatial, WD_MAX_SPATIAL);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; ++l) {
        const struct wd_value *list = wd_desc_value(desc, lists[l].attribute);
        const char *name = wd_attribute(lists[l].attribute)->name;
        if (list->count == 0) continue; /* windows and strides of 1, no padding */
        for (int64_t i = 0; i < list->count; ++i) {
            int64_t above = list->cells[2 * i].i;
            int64_t below = list->cells[2 * i + 1].i;
            WD_REQUIRE(below > 0, CUDNN_STATUS_BAD_PARAM,
                       "resample: %s[%lld]=%lld/%lld: the denominator is not positive", name,
                       (long long)i, (long long)above, (long long)below);
            WD_REQUIRE(above >= lists[l].least, CUDNN_STATUS_BAD_PARAM,
                       "resample: %s[%lld]=%lld/%lld is %s", name, (long long)i, (long long)above,
                       (long long)below, lists[l].least ? "not positive" : "negative");
        }
        /* the first list says how many there are where the caller does not */
        if (!told) spatial = list->count;
        told = true;
        WD_REQUIRE(list->count == spatial, CUDNN_STATUS_NOT_SUPPORTED,
                   "resample: %s has %lld elements, not one for each of %lld spatial dimensions",
                   name, (long long)list->count, (long long)spatial);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t wd_check_rng(struct wd_desc *desc)
{
    double probability = wd_desc_real(desc, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
    double deviation = wd_desc_real(desc, CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION);
    double low = wd_desc_real(desc, CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM);
    double high = wd_desc_real(desc, CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM);
    WD_REQUIRE(probability >= 0.0 && probability <= 1.0, CUDNN_STATUS_BAD_PARAM,
               "rng: CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY=%g is not in 0..1", probability);
    WD_REQUIRE(deviation >= 0.0, CUDNN_STATUS_BAD_PARAM,
               "rng: CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION=%g is negative", deviation);
    WD_REQUIRE(low <= high, CUDNN_STATUS_BAD_PARAM,
               "rng: CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM=%g is above "
               "CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM=%g",
               low, high);
    return CUDNN_STATUS_SUCCESS;
}
