/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the data sets of the examples: the digits beside the examples, and Fashion-MNIST from the
 * distribution's package. Images are floats, scaled to mean 0 and deviation 1 over the training set. */
#ifndef EXAMPLES_DATASET_H
#define EXAMPLES_DATASET_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

struct dataset {
    int size; /* images are size x size */
    int count;
    float *pixels; /* count images, row by row */
    unsigned char *label;
};

static struct dataset dataset_new(int size, int count)
{
    struct dataset d = {size, count, NULL, NULL};
    d.pixels = malloc(sizeof *d.pixels * (size_t)count * (size_t)(size * size));
    d.label = malloc((size_t)count);
    if (!d.pixels || !d.label) {
        fprintf(stderr, "no memory for %d images\n", count);
        exit(1);
    }
    return d;
}

static void dataset_free(struct dataset *d)
{
    free(d->pixels);
    free(d->label);
}

/* Output of `gzip -dc PATH`, or null where there is no such file. */
static FILE *open_gzip(const char *path)
{
    char command[1200];
    FILE *probe = fopen(path, "rb");
    if (!probe) return NULL;
    fclose(probe);
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    return popen(command, "r");
}

/* Every fifth line is held out for the test. */
static int load_digits(const char *path, struct dataset *train, struct dataset *test)
{
    enum { LINES = 1797, SIZE = 8, PIXELS = SIZE * SIZE };
    FILE *file = open_gzip(path);
    int line = 0;
    if (!file) {
        fprintf(stderr,
                "%s is missing: run the example from the repository, or give --digits PATH\n",
                path);
        return 0;
    }
    *train = dataset_new(SIZE, LINES - LINES / 5);
    *test = dataset_new(SIZE, LINES / 5);
    train->count = test->count = 0;
    for (; line < LINES; ++line) {
        struct dataset *d = line % 5 == 4 ? test : train;
        float *pixel = d->pixels + (size_t)d->count * PIXELS;
        int label;
        int fields = 0;
        for (int i = 0; i < PIXELS; ++i) fields += fscanf(file, "%f,", &pixel[i]);
        fields += fscanf(file, "%d", &label);
        if (fields != PIXELS + 1 || label < 0 || label >= CLASSES) break;
        d->label[d->count++] = (unsigned char)label;
    }
    pclose(file);
    if (line < LINES) {
        fprintf(stderr, "%s: line %d is not 64 pixels and a digit\n", path, line + 1);
        dataset_free(train);
        dataset_free(test);
    }
    return line == LINES;
}

/* One pair of IDX files: images (a header of 16 bytes) and labels (of 8). */
static int load_idx(const char *folder, const char *part, int count, struct dataset *d)
{
    enum { SIZE = 28, PIXELS = SIZE * SIZE };
    char path[1100];
    unsigned char bytes[PIXELS];
    FILE *file;
    int complete = 1;
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte.gz", folder, part);
    file = open_gzip(path);
    if (!file) {
        fprintf(stderr,
                "%s is missing. Fashion-MNIST comes with the package dataset-fashion-mnist:\n"
                "    apt-get install dataset-fashion-mnist\n",
                path);
        return 0;
    }
    *d = dataset_new(SIZE, count);
    complete &= fread(bytes, 1, 16, file) == 16;
    for (int i = 0; i < count && complete; ++i) {
        complete &= fread(bytes, 1, PIXELS, file) == PIXELS;
        for (int k = 0; k < PIXELS; ++k) d->pixels[(size_t)i * PIXELS + (size_t)k] = bytes[k];
    }
    pclose(file);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    file = open_gzip(path);
    complete &= file && fread(bytes, 1, 8, file) == 8 &&
                fread(d->label, 1, (size_t)count, file) == (size_t)count;
    if (file) pclose(file);
    if (!complete) {
        fprintf(stderr, "%s: cut short\n", path);
        dataset_free(d);
    }
    return complete;
}

static int load_fashion(struct dataset *train, struct dataset *test)
{
    static const char folder[] = "/usr/share/datasets/fashion-mnist";
    if (!load_idx(folder, "train", 60000, train)) return 0;
    if (load_idx(folder, "t10k", 10000, test)) return 1;
    dataset_free(train);
    return 0;
}

/* Scales both sets by the training set's mean and deviation. */
static void normalize(struct dataset *train, struct dataset *test)
{
    struct dataset *sets[2] = {train, test};
    double sum = 0.0;
    double squares = 0.0;
    size_t n = (size_t)train->count * (size_t)(train->size * train->size);
    float mean;
    float scale;
    for (size_t i = 0; i < n; ++i) {
        sum += train->pixels[i];
        squares += (double)train->pixels[i] * train->pixels[i];
    }
    mean = (float)(sum / (double)n);
    scale = (float)(1.0 / sqrt(squares / (double)n - (double)mean * mean));
    for (int s = 0; s < 2; ++s) {
        size_t count = (size_t)sets[s]->count * (size_t)(train->size * train->size);
        for (size_t i = 0; i < count; ++i) {
            sets[s]->pixels[i] = (sets[s]->pixels[i] - mean) * scale;
        }
    }
}

#endif
