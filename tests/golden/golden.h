/* SPDX-License-Identifier: Apache-2.0
 *
 * The golden recorder: what a list of cases asks of a libcudnn, and how the answers are kept.
 * A case is a stretch of code between gd_case() (or gd_host_case()) and gd_end(); it calls the
 * library through `lib` and notes statuses, sizes and values under short keys. The same code
 * records and compares, so a tolerance is never stored: it is computed again from the formula.
 * One thread; all state lives in the process of one worker.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the library under test (load.c) ---- */

struct gd_lib {
#define API(name) __typeof__(cudnn##name) *name;
#include "api.def"
#undef API
};
extern struct gd_lib lib;

enum gd_device { GD_NONE, GD_CPU, GD_GPU };

/* Puts the library's folder first on the loader path by running the program again, if needed. */
void gd_reexec(const char *path, char **argv);
/* Opens the library and checks that each pointer lies beside it; 0, or -1 with a text on stderr. */
int gd_load(const char *path);
/* Checks that every cuDNN library mapped by now lies in the folder of `path`; 0 or -1. */
int gd_check_maps(const char *path);

/* ---- memory of the device (memory.c) ---- */

enum { GD_GUARD = 256, GD_POISON = 0xA5 };

int gd_memory_init(enum gd_device device);
void gd_memory_fini(void);
const char *gd_device_name(void);
/* Room of the current case, aligned to 512 bytes; NULL when the arena is used up. */
void *gd_alloc(size_t bytes);
void gd_alloc_reset(void);
/* Room of exactly `bytes` between guards, which gd_end() checks; NULL for 0 bytes or no room. */
void *gd_workspace(size_t bytes);
/* Bytes of those guards that were written since; forgets the workspaces. */
size_t gd_workspace_stray(void);
void gd_upload(void *dst, const void *src, size_t bytes);
void gd_download(void *dst, const void *src, size_t bytes);
void gd_fill_bytes(void *dst, int byte, size_t bytes);
/* Waits for the device; 0, or the driver's error code. */
int gd_sync(void);

/* ---- element types (values.c) ---- */

size_t gd_elsize(cudnnDataType_t type);
const char *gd_type_name(cudnnDataType_t type);
double gd_get(cudnnDataType_t type, const void *p);
void gd_put(cudnnDataType_t type, void *p, double v);
/* The unit roundoff of a floating type; 0 for an integer type. */
double gd_roundoff(cudnnDataType_t type);
uint64_t gd_hash(const char *a, const char *b);
uint64_t gd_mix(uint64_t h, uint64_t index);

/* ---- tensors of a case (tensor.c) ---- */

enum gd_layout {
    GD_NCHW,
    GD_NHWC,
    GD_GAPS,   /* order NCHW, with gaps after rows, images and samples */
    GD_WIDE_W, /* order NCHW, innermost stride 2 */
    GD_CHWN,   /* the batch innermost */
    GD_VECT,   /* NCHW_VECT_C; type INT8x4, UINT8x4 or INT8x32 */
};
const char *gd_layout_name(enum gd_layout layout);

enum gd_fill {
    GD_UNIT,    /* multiples of 1/64 in [-1, 1], exact in every type; integers in [-8, 8] */
    GD_REAL,    /* [-4, 4], all bits of the type */
    GD_POS,     /* [0.25, 1.75] */
    GD_WIDE,    /* [-30, 30]; integers over the whole range of 8 bits */
    GD_SPECIAL, /* NaN, infinities, signed zeros, denormal and large numbers among GD_REAL */
    GD_SOMENAN, /* one NaN in eight among GD_REAL */
    GD_NAN,
    GD_TIES, /* -1, 0 and 1 */
    GD_BOOL, /* 0 and 1 */
    GD_ZERO,
    GD_ONE,
    GD_LARGE, /* multiples of 1/64 in [-1, 1] around 80 */
};

struct gd_tens {
    char name[16];
    cudnnDataType_t type;      /* of an element in memory */
    cudnnDataType_t desc_type; /* as the descriptor names it */
    enum gd_layout layout;
    int nd, dim[8];
    int stride[8];
    int vect; /* channels that lie together: 1, 4 or 32 */
    size_t count, span, bytes;
    unsigned char *host; /* guard, elements, guard */
    char *base;          /* the same on the device */
    void *p;             /* first element on the device */
    cudnnTensorDescriptor_t desc;
    cudnnFilterDescriptor_t filter;
};

/* A tensor with poisoned memory and a descriptor; the case owns it. */
struct gd_tens *gd_tens(const char *name, cudnnDataType_t type, enum gd_layout layout, int nd,
                        const int *dim);
/* The same without a tensor descriptor but with a filter descriptor. */
struct gd_tens *gd_filter(const char *name, cudnnDataType_t type, enum gd_layout layout, int nd,
                          const int *dim);
/* The same with explicit strides and no descriptor at all (backend operands). */
struct gd_tens *gd_tens_raw(const char *name, cudnnDataType_t type, int nd, const int *dim,
                            const int *stride);
void gd_fill(struct gd_tens *t, enum gd_fill kind);
/* Values from the hash of `as`, so that two tensors can hold the same numbers. */
void gd_fill_as(struct gd_tens *t, enum gd_fill kind, const char *as);
void gd_poison(struct gd_tens *t);
size_t gd_offset(const struct gd_tens *t, size_t logical);
void gd_fetch(struct gd_tens *t);
double gd_at(const struct gd_tens *t, size_t logical);
void gd_tens_reset(void);
/* A scaling factor of the type that calls on tensors of `type` expect; lives as long as the case. */
const void *gd_scalar(cudnnDataType_t type, double v);

/* ---- a case and its answers (record.c) ---- */

struct gd_tol {
    double abs, rel;
};
/* Two correct results of a sum of `n` terms whose magnitudes add up to about n * mean differ by
 * at most 2 * gamma_n * n * mean, gamma_n ~ n * u of the accumulator (each is within the naive
 * bound of the exact value), and by one rounding to the output type on either side. */
struct gd_tol gd_sum_tol(cudnnDataType_t out, cudnnDataType_t acc, double n, double mean);
/* An elementwise function: `ulps` units in the last place of the compute type on either side of
 * values up to `scale`, and the rounding to the output type. */
struct gd_tol gd_map_tol(cudnnDataType_t out, cudnnDataType_t acc, double ulps, double scale);
extern const struct gd_tol gd_exact;

bool gd_case(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool gd_host_case(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void gd_end(void);
const char *gd_case_name(void);
cudnnHandle_t gd_handle(void);

cudnnStatus_t gd_status(const char *key, cudnnStatus_t status);
/* Kept only when it is a failure: preparation that is expected to work. */
cudnnStatus_t gd_setup(const char *key, cudnnStatus_t status);
void gd_note(const char *key, long long v); /* for the reader; never compared */
void gd_int(const char *key, long long v);
void gd_ints(const char *key, int n, const int *v);
void gd_size(const char *key, size_t v); /* may differ between libraries, by rule */
void gd_real(const char *key, double v, double rel);
void gd_text(const char *key, const char *text);
/* Waits, fetches the tensor and notes its values; false when the device failed. */
bool gd_out(struct gd_tens *t, struct gd_tol tol);
/* True when `status` is a success and the device has finished without an error. */
bool gd_ran(const char *key, cudnnStatus_t status);

/* ---- run state, shared by main.c, record.c and compare.c ---- */

struct gd_slot {
    volatile long current; /* index of the case under way, or of the last one that ended */
    volatile long started; /* seconds */
    volatile int busy;
    char name[256];
    char device[96];
    size_t version;
};

struct gd_token {
    char key[32];
    char kind;
    char *text;
    struct gd_tol tol;
    double slack; /* of the sum of the values */
};

enum { GD_TOKENS = 96, GD_EXIT_AGAIN = 77, GD_EXIT_INIT = 78, GD_EXIT_WRONG = 79 };

struct gd_run {
    enum gd_device device;
    const char *only;
    bool list, compare;
    int worker, workers;
    long next;  /* index of the next case that the mode and the pattern admit */
    long first; /* skip what a former worker did */
    int fd;
    struct gd_slot *slot;
    char name[256];
    struct gd_token token[GD_TOKENS];
    int tokens;
    char refusal[256]; /* the text of the case's first plain NOT_SUPPORTED, when comparing */
    bool broken;       /* the device is beyond use: end this worker after the case */
    cudnnHandle_t handle;
};
extern struct gd_run gd_run;

void gd_walk(void);
bool gd_match(const char *pattern, const char *name);
void gd_answer(const char *line); /* writes one line of the worker */

/* ---- comparison (compare.c) ---- */

int gd_record_read(const char *path);
long gd_record_count(void);
void gd_record_mark(const char *name);
/* Compares the tokens of the case that ended with the recorded line and answers the verdict. */
void gd_judge(void);
int gd_report(char **lines, long n, const char *rerun, long failed);

/* ---- the case list, one function an area (cases_*.c) ---- */

#define AREA(f) void f(void);
#include "areas.def"
#undef AREA

#define GD_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define DIMS(...) ((const int[]){__VA_ARGS__})

#endif
