/* SPDX-License-Identifier: Apache-2.0
 *
 * warpdnn bench: becomes warpdnn_bench, which lies in the build tree or in PREFIX/libexec/warpdnn.
 * */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "place.h"
#include "tool.h"

int command_bench(int argc, char **argv)
{
    struct place place;
    int error;
    (void)argc;
    place_find(&place);
    if (!place.bench) {
        fputs("warpdnn bench: warpdnn_bench is neither in ../" WARPDNN_FROM_BIN_LIBEXEC
              " nor in ../bench, seen from this program; was it built and installed "
              "(-DWARPDNN_BUILD_BENCH=ON)?\n",
              stderr);
        place_free(&place);
        return EXIT_OURS;
    }
    argv[0] = place.bench;
    execv(place.bench, argv);
    error = errno;
    fprintf(stderr, "warpdnn bench: %s: %s\n", place.bench, strerror(error));
    place_free(&place);
    return EXIT_CANNOT_EXECUTE;
}
