/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a run as CSV: times in microseconds, empty where there are none. */
#include "output.h"
#include "result.h"

static void text(FILE *file, const char *s)
{
    fputc('"', file);
    for (; *s; ++s) {
        if (*s == '"') fputc('"', file);
        fputc(*s == '\n' ? ' ' : *s, file);
    }
    fputs("\",", file);
}

static void number(FILE *file, double x, int digits)
{
    if (x > 0.0) fprintf(file, "%.*f", digits, x);
    fputc(',', file);
}

bool csv_write(const char *path)
{
    struct output output;
    FILE *file;
    if (!output_open(&output, path)) return false;
    file = output.file;
    fputs("family,problem,engine,bytes,ours_us,floor_us,over_floor,peer_us,ratio,host_us,pieces,"
          "runs,sets,note\n",
          file);
    for (int i = 0; i < result_count(); ++i) {
        const struct result *r = result_at(i);
        text(file, r->family);
        text(file, r->problem);
        text(file, r->engine);
        number(file, r->bytes, 0);
        number(file, r->ours * 1e6, 4);
        number(file, r->floor * 1e6, 4);
        number(file, result_over_floor(r), 4);
        number(file, r->peer * 1e6, 4);
        number(file, result_ratio(r), 4);
        number(file, r->host * 1e6, 4);
        fprintf(file, "%d,%d,%d,", r->pieces, r->runs, r->sets);
        fprintf(file, "%s\n", r->verdict == WRONG ? "WRONG" : r->note[0] ? "see the JSON" : "");
    }
    return output_close(&output);
}
