/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn doctor: looks at everything that the library depends on and says what is wrong. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "tool.h"

enum { SECONDS = 30, SECONDS_MAX = 3600 };

static const char help[] =
    "warpdnn doctor [--json] [--brief] [--timeout SECONDS] [--kernel-log FILE]\n\n"
    "Looks at the library, drivers, devices, every libcudnn in the usual places, frameworks and "
    "the\n"
    "health of the GPUs. Each finding is ok, a note, a warning, or wrong, with what to do.\n\n"
    "  --json             for programs (docs/running.md)\n"
    "  --brief            only warnings and what is wrong\n"
    "  --timeout SECONDS  for each thing that is asked (30)\n"
    "  --kernel-log FILE  read Xid lines from FILE (as dmesg or journalctl -k print), not from the "
    "kernel\n\n"
    "The exit status is 0 where nothing is wrong (there may be warnings), 1 where something is, 2\n"
    "where the library cannot be used as things stand, 125 where the command was called wrongly "
    "or\n"
    "its report cannot be written.\n";

struct options {
    bool json, brief;
};

static int refuse(const char *what, const char *arg)
{
    fprintf(stderr, "warpdnn doctor: %s '%s'; `warpdnn doctor --help` says more\n", what, arg);
    return EXIT_OURS;
}

/* -1 to go on, else the exit status. */
static int read_arguments(struct doctor *doctor, struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(arg, "--json") == 0) options->json = true;
        else if (strcmp(arg, "--brief") == 0) options->brief = true;
        else if (strcmp(arg, "--timeout") == 0 && i + 1 < argc) {
            char *end;
            long seconds = strtol(argv[++i], &end, 10);
            if (*end || end == argv[i] || seconds < 1 || seconds > SECONDS_MAX) {
                return refuse("--timeout takes 1 to 3600 seconds, not", argv[i]);
            }
            doctor->seconds = (int)seconds;
        } else if (strcmp(arg, "--kernel-log") == 0 && i + 1 < argc) {
            doctor->kernel_log = argv[++i];
        } else if (strcmp(arg, "--timeout") == 0 || strcmp(arg, "--kernel-log") == 0) {
            return refuse("a value is missing after", arg);
        } else {
            return refuse("unknown argument", arg);
        }
    }
    return -1;
}

/* Where a standard stream is closed, the next pipe would take its number, and probes would lose it. */
static void open_standard_streams(void)
{
    int file;
    do file = open("/dev/null", O_RDWR);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0) close(file);
}

int command_doctor(int argc, char **argv)
{
    struct doctor doctor = {.seconds = SECONDS, .devices = -1};
    struct options options = {.json = false};
    int status = read_arguments(&doctor, &options, argc, argv);
    if (status >= 0) return status;
    open_standard_streams();
    doctor.driver = getenv("WARPDNN_CUDA_DRIVER");
    doctor.driver_named = doctor.driver && *doctor.driver;
    if (!doctor.driver_named) doctor.driver = "libcuda.so.1";
    place_find(&doctor.place);

    doctor_library(&doctor);
    doctor_environment(&doctor);
    doctor_driver(&doctor);
    doctor_nodes(&doctor);
    doctor_handle(&doctor);
    doctor_places(&doctor);
    doctor_python(&doctor);
    doctor_health(&doctor);
    doctor_kernel_log(&doctor);

    if (options.json) report_print_json(&doctor.report);
    else report_print_text(&doctor.report, options.brief);
    status = report_status(&doctor.report);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "warpdnn doctor: the report cannot be written: %s\n", strerror(errno));
        status = EXIT_OURS;
    }
    report_free(&doctor.report);
    place_free(&doctor.place);
    free(doctor.ptx_compiler);
    free(doctor.told);
    return status;
}
