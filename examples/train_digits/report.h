/* SPDX-License-Identifier: Apache-2.0
 *
 * What train_digits shows a person: progress bars, a confusion matrix, misread images in the
 * terminal, and the loss curve with the confusion matrix as one SVG. */
#ifndef EXAMPLES_REPORT_H
#define EXAMPLES_REPORT_H

#include <stdio.h>
#include <unistd.h>

#include "dataset.h"

enum { EPOCHS_MAX = 200 };

struct history {
    int epochs;
    double loss[EPOCHS_MAX];
    double accuracy[EPOCHS_MAX];     /* on the training set, while training */
    int confusion[CLASSES][CLASSES]; /* [true][read] on the test set */
};

/* One line that grows; a new line when the epoch is complete. Quiet between where no one looks. */
static void progress(int epoch, int epochs, int step, int steps, double loss, double accuracy)
{
    enum { WIDTH = 30 };
    int filled = steps ? step * WIDTH / steps : WIDTH;
    if (step < steps && (!isatty(1) || step % 8)) return;
    printf("\repoch %3d/%d [", epoch, epochs);
    for (int i = 0; i < WIDTH; ++i) putchar(i < filled ? '#' : '.');
    printf("] loss %.4f, accuracy %5.2f%%", loss, 100.0 * accuracy);
    if (step == steps) putchar('\n');
    fflush(stdout);
}

static void print_confusion(const struct history *h, const char *const *names)
{
    printf("\n%14s", "read as:");
    for (int c = 0; c < CLASSES; ++c) printf(" %5.5s", names[c]);
    putchar('\n');
    for (int t = 0; t < CLASSES; ++t) {
        printf("%14s", names[t]);
        for (int r = 0; r < CLASSES; ++r) {
            if (h->confusion[t][r]) printf(" %5d", h->confusion[t][r]);
            else printf("     .");
        }
        putchar('\n');
    }
}

/* An image in characters of growing ink. */
static void draw(const float *pixels, int size)
{
    static const char ink[] = " .:-=+*#%@";
    float low = pixels[0];
    float high = pixels[0];
    for (int i = 0; i < size * size; ++i) {
        low = pixels[i] < low ? pixels[i] : low;
        high = pixels[i] > high ? pixels[i] : high;
    }
    for (int row = 0; row < size; ++row) {
        printf("    ");
        for (int column = 0; column < size; ++column) {
            float v = (pixels[row * size + column] - low) / (high > low ? high - low : 1.0f);
            char c = ink[(int)(v * 9.0f + 0.5f)];
            putchar(c);
            putchar(c);
        }
        putchar('\n');
    }
}

static void svg_curve(FILE *svg, const struct history *h)
{
    double top = 1e-9;
    for (int e = 0; e < h->epochs; ++e) top = h->loss[e] > top ? h->loss[e] : top;
    fprintf(svg, "<rect x='60' y='40' width='400' height='300' fill='none' stroke='#999'/>\n");
    fprintf(svg, "<text x='260' y='28' text-anchor='middle'>training loss</text>\n");
    fprintf(svg, "<text x='260' y='375' text-anchor='middle'>epoch (1 to %d)</text>\n", h->epochs);
    fprintf(svg, "<text x='54' y='46' text-anchor='end'>%.2f</text>\n", top);
    fprintf(svg, "<text x='54' y='344' text-anchor='end'>0</text>\n");
    fprintf(svg, "<polyline fill='none' stroke='#0a6' stroke-width='2' points='");
    for (int e = 0; e < h->epochs; ++e) {
        double x = 60.0 + 400.0 * (h->epochs > 1 ? (double)e / (h->epochs - 1) : 0.5);
        fprintf(svg, "%.1f,%.1f ", x, 340.0 - 300.0 * h->loss[e] / top);
    }
    fprintf(svg, "'/>\n");
}

static void svg_confusion(FILE *svg, const struct history *h, const char *const *names)
{
    enum { LEFT = 590, TOP = 60, CELL = 30 };
    fprintf(svg,
            "<text x='%d' y='28' text-anchor='middle'>test images: true (rows), read as "
            "(columns)</text>\n",
            LEFT + 5 * CELL);
    for (int t = 0; t < CLASSES; ++t) {
        int total = 1;
        fprintf(svg, "<text x='%d' y='%d' text-anchor='end'>%s</text>\n", LEFT - 6,
                TOP + t * CELL + 20, names[t]);
        fprintf(svg, "<text x='%d' y='%d' text-anchor='middle'>%.3s</text>\n", LEFT + t * CELL + 15,
                TOP - 8, names[t]);
        for (int r = 0; r < CLASSES; ++r) total += h->confusion[t][r];
        for (int r = 0; r < CLASSES; ++r) {
            int n = h->confusion[t][r];
            fprintf(svg,
                    "<rect x='%d' y='%d' width='%d' height='%d' stroke='#ccc' fill='%s' "
                    "fill-opacity='%.3f'/>\n",
                    LEFT + r * CELL, TOP + t * CELL, CELL, CELL, t == r ? "#0a6" : "#c33",
                    n ? 0.15 + 0.85 * n / total : 0.0);
            if (n) {
                fprintf(svg, "<text x='%d' y='%d' text-anchor='middle'>%d</text>\n",
                        LEFT + r * CELL + 15, TOP + t * CELL + 20, n);
            }
        }
    }
}

/* Returns whether the file was written whole. */
static int write_svg(const char *path, const struct history *h, const char *const *names)
{
    FILE *svg = fopen(path, "w");
    int failed;
    if (!svg) return 0;
    fprintf(svg, "<svg xmlns='http://www.w3.org/2000/svg' width='920' height='400' "
                 "font-family='sans-serif' font-size='12'>\n<rect width='920' height='400' "
                 "fill='white'/>\n");
    svg_curve(svg, h);
    svg_confusion(svg, h, names);
    fprintf(svg, "</svg>\n");
    failed = ferror(svg);
    return fclose(svg) == 0 && !failed;
}

#endif
