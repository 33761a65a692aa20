/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's side of a GPU: the driver's kernel module, and the device files with their
 * permissions. Opening one is tried in a child: a container may forbid what the file's mode allows.
 * */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "probe.h"

static const char area[] = "kernel";

/* Named here, for tests have others. */
#ifndef DOCTOR_DEVICE_FOLDER
#define DOCTOR_DEVICE_FOLDER "/dev"
#endif
#ifndef DOCTOR_MODULE_VERSION
#define DOCTOR_MODULE_VERSION "/proc/driver/nvidia/version"
#endif
static const char folder_name[] = DOCTOR_DEVICE_FOLDER;

/* The version after the words "Kernel Module", "" where the file does not say. */
static void module_version(char *version, size_t size)
{
    char line[512] = "";
    const char *at;
    FILE *file = fopen(DOCTOR_MODULE_VERSION, "re");
    version[0] = '\0';
    if (!file) return;
    if (fgets(line, sizeof line, file) && (at = strstr(line, "Kernel Module")) != NULL) {
        while (*at && !isdigit((unsigned char)*at)) at += 1;
        snprintf(version, size, "%.*s", (int)strcspn(at, " \n"), at);
    }
    fclose(file);
}

static int open_node(FILE *out, void *arg)
{
    int file = open((const char *)arg, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) probe_say(out, "error", "%s", strerror(errno));
    else close(file);
    return EXIT_SUCCESS;
}

/* True where it can be opened. */
static bool judge_node(struct doctor *doctor, const char *path)
{
    struct probe probe;
    struct finding *finding;
    struct stat state = {.st_mode = 0};
    char *error;
    bool opens;
    probe_call(&probe, open_node, (void *)path, doctor->seconds);
    error = probe_value(&probe, "error");
    opens = probe.end == PROBE_DONE && !*error;
    stat(path, &state);
    if (!opens) {
        char *ending = probe_ending(&probe);
        finding = report_add(&doctor->report, WRONG, area, "kernel.node",
                             "%s (mode %04o) cannot be opened: %s", path,
                             (unsigned)state.st_mode & 07777, *error ? error : ending);
        finding_advise(
            finding,
            strcmp(error, strerror(EACCES)) == 0
                ? "give the user access (group video or render, or mode 0666)"
                : "in a container, pass the device in (--gpus); else look at the kernel's log");
        finding_text(finding, "path", path);
        free(ending);
    }
    free(error);
    probe_free(&probe);
    return opens;
}

static bool is_node(const char *name)
{
    if (strcmp(name, "nvidiactl") == 0 || strcmp(name, "nvidia-uvm") == 0) return true;
    if (!text_starts(name, "nvidia") || !name[6]) return false;
    return strspn(name + 6, "0123456789") == strlen(name + 6);
}

static void judge_all(struct doctor *doctor, const char *version)
{
    DIR *folder = opendir(folder_name);
    const struct dirent *entry;
    struct text good = {0};
    int found = 0;
    bool has_uvm = false;
    struct finding *finding;
    while (folder && (entry = readdir(folder)) != NULL) {
        char *path;
        if (!is_node(entry->d_name)) continue;
        path = text_make("%s/%s", folder_name, entry->d_name);
        found += 1;
        has_uvm = has_uvm || strcmp(entry->d_name, "nvidia-uvm") == 0;
        if (judge_node(doctor, path)) text_add(&good, "%s%s", good.length ? ", " : "", path);
        free(path);
    }
    if (folder) closedir(folder);
    if (good.length) {
        report_add(&doctor->report, FINE, area, "kernel.nodes", "can be opened: %s",
                   text_of(&good));
    }
    if (found && !has_uvm) {
        finding = report_add(&doctor->report, WRONG, area, "kernel.uvm",
                             "%s/nvidia-uvm is missing: CUDA cannot start", folder_name);
        finding_advise(finding, "run nvidia-modprobe -u -c 0 as root");
    }
    if (!found && access(DOCTOR_DEVICE_FOLDER "/dxg", F_OK) == 0) {
        if (judge_node(doctor, DOCTOR_DEVICE_FOLDER "/dxg")) {
            report_add(&doctor->report, FINE, area, "kernel.nodes", "can be opened: %s/dxg",
                       folder_name);
        }
    } else if (!found && *version) {
        finding =
            report_add(&doctor->report, WRONG, area, "kernel.nodes",
                       "the kernel module is loaded, but %s has no device of it", folder_name);
        finding_advise(finding, "run nvidia-modprobe as root; in a container, pass the devices in");
    } else if (!found) {
        report_add(&doctor->report, NOTE, area, "kernel.nodes",
                   "%s has no NVIDIA device: this machine has no GPU, or its kernel module is not "
                   "loaded",
                   folder_name);
    }
    text_free(&good);
}

void doctor_nodes(struct doctor *doctor)
{
    char version[64];
    module_version(version, sizeof version);
    if (*version) {
        struct finding *finding = report_add(&doctor->report, FINE, area, "kernel.module",
                                             "NVIDIA's kernel module %s", version);
        finding_text(finding, "version", version);
    }
    judge_all(doctor, version);
}
