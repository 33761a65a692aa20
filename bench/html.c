/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as one page that needs nothing else: a roofline of all rows, and for each family its means and a
 * bar chart of time over floor. Plain SVG and no scripts; what a mark stands for shows when the pointer
 * rests on it. */
#include <math.h>
#include <string.h>

#include "host.h"
#include "output.h"
#include "result.h"

enum { WIDTH = 960, PLOT_HEIGHT = 420, LEFT = 64, BOTTOM = 44, TOP = 16, ROW_HEIGHT = 22 };
enum { LABEL = 400, BAR_LEFT = 410, BAR_WIDTH = 440, FAMILIES_MAX = 64, COLOURS = 8 };

static const char style[] =
    ":root{--ink:#1c1e21;--faint:#6b7280;--line:#d9dce1;--back:#fff;--ours:#0b6e99;--peer:#c9ced6;"
    "--bad:#b3261e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--faint:#9aa0a8;--line:#3a3d42;"
    "--back:#17181a;--ours:#4fb3dd;--peer:#5a5f66;--bad:#ff8a80}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);"
    "max-width:1000px;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}\n"
    "p,.faint{color:var(--faint)}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "\n"
    "td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid var(--line)}\n"
    "td:first-child,th:first-child{text-align:left}.bad{color:var(--bad)}\n"
    "svg{display:block;width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}\n"
    "svg .faint{fill:var(--faint)}svg .grid{stroke:var(--line)}svg .roof{stroke:var(--ink);"
    "stroke-width:2;fill:none}svg .ours{fill:var(--ours)}svg .peer{fill:var(--peer)}\n"
    "svg .theirs{fill:none;stroke:var(--faint)}svg .bad{fill:var(--bad)}\n"
    ".scroll{overflow-x:auto}\n";

static const char *const colours[COLOURS] = {"#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72",
                                             "#6940a5", "#b98a00", "#e03e3e", "#64727d"};

static void text(FILE *f, const char *s)
{
    for (; *s; ++s) {
        if (*s == '<') fputs("&lt;", f);
        else if (*s == '>') fputs("&gt;", f);
        else if (*s == '&') fputs("&amp;", f);
        else if (*s == '"') fputs("&quot;", f);
        else fputc(*s, f);
    }
}

/* ---- the roofline: bytes across, bytes a second upwards, both in decades ---- */

struct frame {
    double x_low, x_high, y_low, y_high; /* logarithms to base 10 */
};

static double across(const struct frame *frame, double bytes)
{
    double part = (log10(bytes) - frame->x_low) / (frame->x_high - frame->x_low);
    return LEFT + part * (WIDTH - LEFT - 16);
}

static double upwards(const struct frame *frame, double rate)
{
    double part = (log10(rate) - frame->y_low) / (frame->y_high - frame->y_low);
    return PLOT_HEIGHT - BOTTOM - part * (PLOT_HEIGHT - BOTTOM - TOP);
}

static bool has_rate(const struct result *r)
{
    return r->bytes > 0.0 && r->ours > 0.0;
}

static struct frame frame_of(void)
{
    struct frame frame = {99.0, -99.0, 99.0, -99.0};
    for (int i = 0; i < result_count(); ++i) {
        const struct result *r = result_at(i);
        double rates[] = {r->bytes / r->ours, r->peer > 0.0 ? r->bytes / r->peer : 0.0,
                          r->floor > 0.0 ? r->bytes / r->floor : 0.0};
        if (!has_rate(r)) continue;
        frame.x_low = fmin(frame.x_low, floor(log10(r->bytes)));
        frame.x_high = fmax(frame.x_high, ceil(log10(r->bytes) + 1e-9));
        for (int k = 0; k < 3; ++k) {
            if (rates[k] <= 0.0) continue;
            frame.y_low = fmin(frame.y_low, floor(log10(rates[k])));
            frame.y_high = fmax(frame.y_high, ceil(log10(rates[k]) + 1e-9));
        }
    }
    return frame;
}

static const char *unit(double decade, double *value)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    int index = (int)floor(decade / 3.0);
    if (index < 0) index = 0;
    if (index > 5) index = 5;
    *value = pow(10.0, decade - 3.0 * index);
    return units[index];
}

static void grid(FILE *f, const struct frame *frame)
{
    double value;
    const char *name;
    for (int d = (int)frame->x_low; d <= (int)frame->x_high; ++d) {
        double x = across(frame, pow(10.0, d));
        name = unit(d, &value);
        fprintf(f, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, TOP,
                PLOT_HEIGHT - BOTTOM);
        fprintf(f,
                "<text class=\"faint\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g %s</text>\n",
                x, PLOT_HEIGHT - BOTTOM + 18, value, name);
    }
    for (int d = (int)frame->y_low; d <= (int)frame->y_high; ++d) {
        double y = upwards(frame, pow(10.0, d));
        name = unit(d, &value);
        fprintf(f, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                WIDTH - 16, y, y);
        fprintf(f, "<text class=\"faint\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g %s/s</text>\n",
                LEFT - 6, y + 4.0, value, name);
    }
    fprintf(f,
            "<text class=\"faint\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">bytes that must move"
            "</text>\n",
            (WIDTH + LEFT) / 2, PLOT_HEIGHT - 8);
}

static void title(FILE *f, const struct result *r)
{
    fputs("<title>", f);
    text(f, r->family);
    fputc(' ', f);
    text(f, r->problem);
    fprintf(f, ": %.2f us", r->ours * 1e6);
    if (r->floor > 0.0) fprintf(f, ", floor %.2f us", r->floor * 1e6);
    if (r->peer > 0.0) fprintf(f, ", peer %.2f us", r->peer * 1e6);
    if (r->engine[0]) {
        fputs(", ", f);
        text(f, r->engine);
    }
    fputs("</title>", f);
}

static void roofline(FILE *f, const char *const *names, int families)
{
    struct frame frame = frame_of();
    if (frame.x_low > frame.x_high) return;
    fprintf(f,
            "<h2>Roofline</h2>\n<p>Each row by the bytes that must move and the rate at which they "
            "did. Filled: ours. Hollow: the peer. The line: the copy of this run.</p>\n"
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"roofline\">\n",
            WIDTH, PLOT_HEIGHT);
    grid(f, &frame);
    if (run_facts.copy > 0.0) {
        double y = upwards(&frame, run_facts.copy);
        fprintf(f, "<line class=\"roof\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                WIDTH - 16, y, y);
    }
    for (int i = 0; i < result_count(); ++i) {
        const struct result *r = result_at(i);
        int family = 0;
        if (!has_rate(r)) continue;
        while (family < families && strcmp(names[family], r->family) != 0) family += 1;
        if (r->peer > 0.0) {
            fprintf(f, "<circle class=\"theirs\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\">",
                    across(&frame, r->bytes), upwards(&frame, r->bytes / r->peer));
            title(f, r);
            fputs("</circle>\n", f);
        }
        fprintf(f, "<circle fill=\"%s\" fill-opacity=\".8\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\">",
                colours[family % COLOURS], across(&frame, r->bytes),
                upwards(&frame, r->bytes / r->ours));
        title(f, r);
        fputs("</circle>\n", f);
    }
    fputs("</svg>\n<p>", f);
    for (int i = 0; i < families; ++i) {
        fprintf(f, "<span style=\"color:%s\">&#9679;</span> ", colours[i % COLOURS]);
        text(f, names[i]);
        fputs("&emsp;", f);
    }
    fputs("</p>\n", f);
}

/* ---- a family ---- */

/* Up to 1 in equal steps, beyond it by logarithm: what is far off still has its place. */
static double bar_length(double over, double most)
{
    double whole = most > 1.0 ? 1.0 + log2(most) : 1.0;
    double length = over <= 1.0 ? over : 1.0 + log2(over);
    return fmin(length / whole, 1.0) * BAR_WIDTH;
}

static double over_of(const struct result *r, bool of_peer)
{
    double time = of_peer ? r->peer : r->ours;
    return time > 0.0 && r->floor > 0.0 ? time / r->floor : 0.0;
}

static void bars(FILE *f, const char *family)
{
    double most = 2.0;
    int rows = 0;
    int y = 24;
    char why[320];
    for (int i = 0; i < result_count(); ++i) {
        const struct result *r = result_at(i);
        if (strcmp(r->family, family) != 0) continue;
        rows += 1;
        most = fmax(most, fmax(over_of(r, false), over_of(r, true)));
    }
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"time over floor\">\n", WIDTH,
            rows * ROW_HEIGHT + 32);
    for (int power = 0; ldexp(1.0, power) <= most; power += most > 64.0 ? 2 : 1) {
        double x = BAR_LEFT + bar_length(ldexp(1.0, power), most);
        fprintf(f, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"18\" y2=\"%d\"/>", x, x,
                rows * ROW_HEIGHT + 24);
        fprintf(f, "<text class=\"faint\" x=\"%.1f\" y=\"12\" text-anchor=\"middle\">%gx</text>\n",
                x, ldexp(1.0, power));
    }
    for (int i = 0; i < result_count(); ++i) {
        const struct result *r = result_at(i);
        bool missed;
        if (strcmp(r->family, family) != 0) continue;
        missed = result_miss(r, why, sizeof why);
        fprintf(f, "<g><text x=\"%d\" y=\"%d\" text-anchor=\"end\"%s>", LABEL, y + 13,
                missed ? " class=\"bad\"" : "");
        text(f, r->problem);
        fputs("</text>", f);
        if (over_of(r, true) > 0.0) {
            fprintf(f, "<rect class=\"peer\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"7\"/>",
                    BAR_LEFT, y + 10, bar_length(over_of(r, true), most));
        }
        if (over_of(r, false) > 0.0) {
            fprintf(f, "<rect class=\"ours\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"8\"/>",
                    BAR_LEFT, y + 2, bar_length(over_of(r, false), most));
            fprintf(f, "<text x=\"%d\" y=\"%d\">%.2f</text>", BAR_LEFT + BAR_WIDTH + 12, y + 13,
                    over_of(r, false));
        } else {
            fprintf(f, "<text class=\"bad\" x=\"%d\" y=\"%d\">refused</text>",
                    BAR_LEFT + BAR_WIDTH + 12, y + 13);
        }
        if (r->verdict == WRONG) {
            fprintf(f, "<text class=\"bad\" x=\"%d\" y=\"%d\">WRONG</text>",
                    BAR_LEFT + BAR_WIDTH + 50, y + 13);
        }
        title(f, r);
        fputs("</g>\n", f);
        y += ROW_HEIGHT;
    }
    fputs("</svg>\n", f);
}

static void cell(FILE *f, const char *family, enum selection selection)
{
    struct mean m = result_mean(family, selection);
    if (m.rows) fprintf(f, "<td>%.2f</td><td>%.2f</td>", m.mean, m.worst);
    else fputs("<td>-</td><td>-</td>", f);
}

static void means(FILE *f, const char *const *names, int families)
{
    fputs("<h2>Families</h2>\n<div class=\"scroll\"><table><tr><th>family</th>"
          "<th colspan=\"2\">over floor, 64 MB and up: mean, worst</th>"
          "<th colspan=\"2\">over floor, all</th><th colspan=\"2\">of the peer, under 1 MB</th>"
          "<th colspan=\"2\">of the peer, all</th></tr>\n",
          f);
    for (int i = 0; i < families; ++i) {
        fputs("<tr><td>", f);
        text(f, names[i]);
        fputs("</td>", f);
        for (int s = LARGE_OVER_FLOOR; s <= ALL_RATIO; ++s) cell(f, names[i], (enum selection)s);
        fputs("</tr>\n", f);
    }
    fputs("</table></div>\n", f);
}

static void head(FILE *f)
{
    const struct run_facts *r = &run_facts;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n<title>WarpDNN bench</title>\n"
          "<style>\n",
          f);
    fputs(style, f);
    fputs("</style></head><body>\n<h1>WarpDNN bench</h1>\n<p>", f);
    text(f, r->device);
    fputs(" &middot; ours: ", f);
    text(f, r->ours);
    fputs(" &middot; peer: ", f);
    text(f, r->peer[0] ? r->peer : "none");
    if (r->copy > 0.0) fprintf(f, " &middot; copy %.2f TB/s", r->copy * 1e-12);
    fprintf(f, "<br><code>");
    text(f, r->command);
    fprintf(f, "</code> &middot; seed %llu%s</p>\n", (unsigned long long)r->seed,
            r->complete ? "" : "<br><span class=\"bad\">it ended early: rows are missing</span>");
}

bool html_write(const char *path)
{
    const char *names[FAMILIES_MAX];
    int families = result_families(names, FAMILIES_MAX);
    struct output output;
    FILE *f;
    if (!output_open(&output, path)) return false;
    f = output.file;
    head(f);
    means(f, names, families);
    roofline(f, names, families);
    host_html(f);
    for (int i = 0; i < families; ++i) {
        fputs("<h2>", f);
        text(f, names[i]);
        fputs("</h2>\n<p>Time over the floor. Dark: ours. Light: the peer. Red: a target is missed."
              "</p>\n<div class=\"scroll\">\n",
              f);
        bars(f, names[i]);
        fputs("</div>\n", f);
    }
    fputs("</body></html>\n", f);
    return output_close(&output);
}
