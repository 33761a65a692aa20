/* SPDX-License-Identifier: Apache-2.0
 *
 * What each usual place holds as libcudnn.so.9, in the loader's order: LD_PRELOAD, LD_LIBRARY_PATH,
 * the loader's cache, the default folders; then folders where CUDA is often installed. And which
 * one a program gets that just asks for the name: the loader itself is asked, in a child. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "elf_file.h"
#include "ldcache.h"
#include "probe.h"

static const char area[] = "libcudnn";
static const char name[] = "libcudnn.so.9";

enum { TOLD_MAX = 12 };

static const char *const default_folders[] = {
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
};
static const char *const other_folders[] = {
    "/usr/local/cuda/lib64",
    "/usr/local/lib",
    "/opt/conda/lib",
};

/* ---- One file ---- */

static int ask_version(FILE *out, void *arg)
{
    void *library = dlopen((const char *)arg, RTLD_LAZY | RTLD_LOCAL);
    void *symbol;
    size_t (*version)(void);
    if (!library) {
        probe_say(out, "error", "%s", dlerror());
        return EXIT_FAILURE;
    }
    symbol = dlsym(library, "cudnnGetVersion");
    memcpy(&version, &symbol, sizeof version);
    if (!symbol) {
        probe_say(out, "error", "it has no cudnnGetVersion");
        return EXIT_FAILURE;
    }
    probe_say(out, "version", "%zu", version());
    return EXIT_SUCCESS;
}

/* A file that was told already, by where it lies on the disk, and the version that it answered. */
struct told_file {
    dev_t device;
    ino_t inode;
    int version;
};

static const struct told_file *told_before(const struct doctor *doctor, const struct stat *state)
{
    for (int i = 0; i < doctor->told_count; ++i) {
        const struct told_file *file = &doctor->told[i];
        if (file->device == state->st_dev && file->inode == state->st_ino) return file;
    }
    return NULL;
}

static void remember(struct doctor *doctor, const struct stat *state, int version)
{
    doctor->told = (struct told_file *)tool_resize(doctor->told, (size_t)(doctor->told_count + 1) *
                                                                     sizeof *doctor->told);
    doctor->told[doctor->told_count++] = (struct told_file){state->st_dev, state->st_ino, version};
}

static void add_facts(struct finding *finding, const char *where, const char *path, int version,
                      bool ours)
{
    finding_text(finding, "where", where);
    finding_text(finding, "path", path);
    finding_number(finding, "version", version);
    finding_flag(finding, "warpdnn", ours);
}

/* As 9.19.0. */
static char *version_text(int version)
{
    return text_make("%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static int judge_file(struct doctor *doctor, const char *in, const char *id, const char *where,
                      const char *path, const struct elf_facts *facts)
{
    struct probe probe;
    struct finding *finding;
    char *error, *text;
    int version;
    probe_call(&probe, ask_version, (void *)path, doctor->seconds);
    version = (int)probe_number(&probe, "version", 0);
    error = probe_value(&probe, "error");
    text = version_text(version);
    if (version) {
        finding = report_add(&doctor->report, FINE, in, id, "%s: %s, %s %s", where, path,
                             facts->warpdnn ? "WarpDNN, as cuDNN" : "cuDNN", text);
    } else {
        char *ending = probe_ending(&probe);
        finding =
            report_add(&doctor->report, WARNING, in, id, "%s: %s does not tell its version: %s",
                       where, path, *error ? error : ending);
        finding_advise(finding, "a program that gets this file fails the same way");
        free(ending);
    }
    add_facts(finding, where, path, version, facts->warpdnn);
    free(error);
    free(text);
    probe_free(&probe);
    return version;
}

int places_add_file(struct doctor *doctor, const char *in, const char *id, const char *where,
                    const char *path)
{
    struct elf_facts facts;
    struct stat state;
    const struct told_file *before;
    struct finding *finding;
    int version = 0;
    if (!elf_read(path, &facts) || !facts.cudnn) {
        finding = report_add(&doctor->report, WARNING, in, id, "%s: %s is no cuDNN library: %s",
                             where, path, facts.loadable ? "it has no cudnnGetVersion" : facts.why);
        add_facts(finding, where, path, 0, false);
        return 0;
    }
    if (stat(path, &state) != 0) return 0;
    before = told_before(doctor, &state);
    if (before) {
        char *text = version_text(before->version);
        finding = report_add(&doctor->report, FINE, in, id, "%s: %s, the same file (%s)", where,
                             path, before->version ? text : "version not known");
        add_facts(finding, where, path, before->version, facts.warpdnn);
        free(text);
        return before->version;
    }
    version = judge_file(doctor, in, id, where, path, &facts);
    remember(doctor, &state, version);
    return version;
}

/* ---- The places ---- */

struct search {
    struct doctor *doctor;
    const char *where;
    int found;
};

static void add_found(struct search *search, const char *path)
{
    if (search->found++ < TOLD_MAX) {
        places_add_file(search->doctor, area, "libcudnn.file", search->where, path);
    }
}

static void found_in_cache(void *user, const char *path)
{
    add_found((struct search *)user, path);
}

/* 0, or why the folder cannot be searched. */
static int look_in(struct search *search, const char *folder)
{
    char *path = text_make("%s/%s", folder, name);
    int error = access(path, F_OK) == 0 ? 0 : errno;
    if (error == 0) add_found(search, path);
    free(path);
    return error == ENOENT || error == ENOTDIR ? 0 : error;
}

static void look_in_preload(struct doctor *doctor)
{
    const char *rest = getenv("LD_PRELOAD");
    struct search search = {doctor, "LD_PRELOAD", 0};
    while (rest && *rest) {
        size_t length = strcspn(rest, ": ");
        char *path = text_make("%.*s", (int)length, rest);
        if (text_starts(text_base(path), "libcudnn") && strchr(path, '/')) add_found(&search, path);
        free(path);
        rest += length + (rest[length] != '\0');
    }
}

static void look_in_library_path(struct doctor *doctor)
{
    const char *rest = getenv("LD_LIBRARY_PATH");
    struct search search = {doctor, "LD_LIBRARY_PATH", 0};
    struct finding *finding;
    char *first = NULL;
    int closed = 0, why = 0;
    while (rest && *rest) {
        size_t length = strcspn(rest, ":;");
        char *folder = length ? text_make("%.*s", (int)length, rest) : text_copy(".");
        int error = look_in(&search, folder);
        if (error && closed++ == 0) {
            first = folder;
            why = error;
        } else {
            free(folder);
        }
        rest += length + (rest[length] != '\0');
    }
    if (search.found > TOLD_MAX) {
        report_add(&doctor->report, NOTE, area, "libcudnn.more",
                   "LD_LIBRARY_PATH: %d more folders hold a %s", search.found - TOLD_MAX, name);
    }
    if (closed) {
        finding = report_add(&doctor->report, NOTE, area, "libcudnn.closed",
                             "LD_LIBRARY_PATH: %d folders cannot be searched, the first is %s (%s)",
                             closed, first, strerror(why));
        finding_number(finding, "folders", closed);
    }
    free(first);
}

static void look_in_folders(struct doctor *doctor, const char *where, const char *const *folders,
                            size_t count)
{
    struct search search = {doctor, where, 0};
    for (size_t i = 0; i < count; ++i) look_in(&search, folders[i]);
}

/* ---- What a plain program gets ---- */

static int ask_loader(FILE *out, void *arg)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    struct link_map *map = NULL;
    char real[PATH_MAX];
    (void)arg;
    if (!library) probe_say(out, "error", "%s", dlerror());
    else if (dlinfo(library, RTLD_DI_LINKMAP, (void *)&map) == 0 && map) {
        probe_say(out, "path", "%s", realpath(map->l_name, real) ? real : map->l_name);
    }
    return EXIT_SUCCESS;
}

static void judge_plain(struct doctor *doctor)
{
    struct probe probe;
    struct elf_facts facts;
    struct finding *finding;
    char *path, *error;
    bool ours;
    probe_call(&probe, ask_loader, NULL, doctor->seconds);
    path = probe_value(&probe, "path");
    error = probe_value(&probe, "error");
    ours = *path && elf_read(path, &facts) && facts.warpdnn;
    if (ours) {
        bool this_one = doctor->place.library && strcmp(path, doctor->place.library) == 0;
        finding = report_add(&doctor->report, this_one ? FINE : WARNING, area, "libcudnn.plain",
                             "a program that asks for %s gets %s: %s", name, path,
                             this_one ? "this WarpDNN" : "another WarpDNN than this command's");
    } else if (*path) {
        finding = report_add(&doctor->report, NOTE, area, "libcudnn.plain",
                             "a program that asks for %s gets %s: not WarpDNN", name, path);
        finding_advise(finding, "start it by `warpdnn run`");
    } else {
        char *ending = probe_ending(&probe);
        finding =
            report_add(&doctor->report, NOTE, area, "libcudnn.plain",
                       "a program that asks for %s gets none: %s", name, *error ? error : ending);
        finding_advise(finding, "start it by `warpdnn run`");
        free(ending);
    }
    finding_text(finding, "path", path);
    finding_flag(finding, "warpdnn", ours);
    free(path);
    free(error);
    probe_free(&probe);
}

void doctor_places(struct doctor *doctor)
{
    struct search cache = {doctor, "the loader's cache", 0};
    const char *conda = getenv("CONDA_PREFIX");
    look_in_preload(doctor);
    look_in_library_path(doctor);
    if (!ldcache_each("/etc/ld.so.cache", name, found_in_cache, &cache)) {
        report_add(&doctor->report, NOTE, area, "libcudnn.cache",
                   "the loader's cache (/etc/ld.so.cache) is missing or of an unknown form");
    }
    look_in_folders(doctor, "a default folder", default_folders,
                    sizeof default_folders / sizeof default_folders[0]);
    if (conda && *conda) {
        struct search search = {doctor, "the conda environment", 0};
        char *folder = text_make("%s/lib", conda);
        look_in(&search, folder);
        free(folder);
    }
    look_in_folders(doctor, "off the loader's path", other_folders,
                    sizeof other_folders / sizeof other_folders[0]);
    judge_plain(doctor);
}
