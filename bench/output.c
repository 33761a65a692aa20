/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a run is written to. A file is written beside its name and takes it when it is whole, so
 * that a run that is killed, or a disk that is full, costs nobody an older run. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

static bool is_standard(const char *path)
{
    return path && !strcmp(path, "-");
}

static bool complain(const char *path, int error)
{
    fprintf(stderr, "cannot write %s: %s\n", path, strerror(error));
    return false;
}

FILE *output_text(void)
{
    const struct options *o = &bench_options;
    return is_standard(o->json) || is_standard(o->csv) || is_standard(o->html) ? stderr : stdout;
}

bool output_probe(const char *path)
{
    struct stat state;
    int file;
    if (!path || is_standard(path)) return true;
    if (stat(path, &state) == 0) {
        if (S_ISDIR(state.st_mode)) return complain(path, EISDIR);
        return access(path, W_OK) == 0 || complain(path, errno);
    }
    file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return complain(path, errno);
    close(file);
    unlink(path);
    return true;
}

/* Devices and pipes are written as they are. */
static bool is_plain(const char *path)
{
    struct stat state;
    return stat(path, &state) != 0 || S_ISREG(state.st_mode);
}

bool output_open(struct output *output, const char *path)
{
    int length = 0;
    output->part[0] = 0;
    output->file = stdout;
    if (!realpath(path, output->path)) snprintf(output->path, sizeof output->path, "%s", path);
    if (is_standard(path)) return true;
    if (is_plain(path)) {
        length = snprintf(output->part, sizeof output->part, "%s.%ld.part", output->path,
                          (long)getpid());
    }
    output->file = NULL;
    if (length > 0 && (size_t)length < sizeof output->part) output->file = fopen(output->part, "w");
    if (output->file) return true;
    output->part[0] = 0; /* the folder may be closed and the file open */
    output->file = fopen(path, "w");
    return output->file || complain(path, errno);
}

bool output_close(struct output *output)
{
    bool good = ferror(output->file) == 0;
    errno = 0;
    good &= output->file == stdout ? fflush(stdout) == 0 : fclose(output->file) == 0;
    if (good && output->part[0]) good = rename(output->part, output->path) == 0;
    if (good) return true;
    complain(output->path, errno ? errno : EIO);
    if (output->part[0]) unlink(output->part);
    return false;
}

bool output_finish(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    return complain("standard output", errno ? errno : EIO);
}
