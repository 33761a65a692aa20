/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as JSON: facts, rows, means. Times are microseconds, as printed. json_read.c reads it again. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "host.h"
#include "output.h"
#include "result.h"

static void string(FILE *file, const char *key, const char *text)
{
    fprintf(file, "\"%s\": \"", key);
    for (; *text; ++text) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
        else if (c < 0x20) fprintf(file, "\\u%04x", c);
        else fputc(c, file);
    }
    fputc('"', file);
}

static void number(FILE *file, const char *key, double x, int digits)
{
    if (x > 0.0 && isfinite(x)) fprintf(file, ", \"%s\": %.*f", key, digits, x);
    else fprintf(file, ", \"%s\": null", key);
}

static const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"unchecked", "right", "wrong", "refused"};
    return names[verdict];
}

static void row(FILE *file, const struct result *r)
{
    char why[320];
    fputs("    {", file);
    string(file, "family", r->family);
    fputs(", ", file);
    string(file, "problem", r->problem);
    fputs(", ", file);
    string(file, "engine", r->engine);
    number(file, "bytes", r->bytes, 0);
    number(file, "ours_us", r->ours * 1e6, 4);
    number(file, "floor_us", r->floor * 1e6, 4);
    number(file, "over_floor", result_over_floor(r), 4);
    number(file, "peer_us", r->peer * 1e6, 4);
    number(file, "ratio", result_ratio(r), 4);
    number(file, "host_us", r->host * 1e6, 4);
    number(file, "launch_us", r->launch * 1e6, 4);
    fprintf(file, ", \"pieces\": %d", r->pieces);
    number(file, "plan_first_us", r->first * 1e6, 2);
    number(file, "plan_us", r->plan * 1e6, 2);
    fprintf(file, ", \"runs\": %d, \"sets\": %d, \"captured\": %s, ", r->runs, r->sets,
            r->captured ? "true" : "false");
    string(file, "status", ours.GetErrorString(r->ours_status));
    fputs(", ", file);
    string(file, "peer_status", r->peer_present ? ours.GetErrorString(r->peer_status) : "");
    fputs(", ", file);
    string(file, "verdict", verdict_name(r->verdict));
    fputs(", ", file);
    string(file, "note", r->note);
    fputs(", ", file);
    string(file, "miss", result_miss(r, why, sizeof why) ? why : "");
    fputc('}', file);
}

static void mean(FILE *file, const char *key, const char *family, enum selection selection)
{
    struct mean m = result_mean(family, selection);
    fprintf(file, ", \"%s\": {\"rows\": %d", key, m.rows);
    number(file, "mean", m.mean, 4);
    number(file, "worst", m.worst, 4);
    fputc('}', file);
}

static void families(FILE *file)
{
    const char *names[64];
    int count = result_families(names, 64);
    for (int i = 0; i < count; ++i) {
        fputs(i ? ",\n    {" : "\n    {", file);
        string(file, "family", names[i]);
        mean(file, "large_over_floor", names[i], LARGE_OVER_FLOOR);
        mean(file, "over_floor", names[i], ALL_OVER_FLOOR);
        mean(file, "small_ratio", names[i], SMALL_RATIO);
        mean(file, "ratio", names[i], ALL_RATIO);
        fputc('}', file);
    }
}

bool json_write(const char *path)
{
    const struct run_facts *f = &run_facts;
    struct output output;
    FILE *file;
    if (!output_open(&output, path)) return false;
    file = output.file;
    fputs("{\n  \"warpdnn_bench\": 2,\n  ", file);
    string(file, "ours", f->ours);
    fputs(",\n  ", file);
    string(file, "peer", f->peer);
    fputs(",\n  ", file);
    string(file, "device", f->device);
    fputs(",\n  ", file);
    string(file, "command", f->command);
    fputs(",\n  ", file);
    string(file, "time", bench_options.processor ? "processors" : "clock");
    fprintf(file, ",\n  \"seed\": %llu,\n  \"driver\": %d,\n  \"capability\": %d",
            (unsigned long long)f->seed, f->driver_version, f->capability);
    fprintf(file, ",\n  \"complete\": %s", f->complete ? "true" : "false");
    number(file, "copy_gbs", f->copy * 1e-9, 2);
    number(file, "launch_us", f->launch * 1e6, 4);
    number(file, "launch_meeting_us", f->meeting * 1e6, 4);
    fputs(",\n  \"host\": [", file);
    host_json(file);
    fputs("],\n  \"rows\": [\n", file);
    for (int i = 0; i < result_count(); ++i) {
        if (i) fputs(",\n", file);
        row(file, result_at(i));
    }
    fputs("\n  ],\n  \"families\": [", file);
    families(file);
    fputs("\n  ]\n}\n", file);
    return output_close(&output);
}
