/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases: versions, properties, names of statuses, callbacks; nothing needs a device.
 */
#define _GNU_SOURCE
#include "golden.h"

#include <string.h>

static const int statuses[] = {
    0,    1,    1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 2000, 2001, 2002,
    2003, 2004, 2005, 2006, 2007, 2008, 2009, 2010, 2011, 2012, 2013, 3000, 3001, 3002, 3003,
    3004, 3005, 3006, 3007, 3008, 3009, 3010, 3011, 3012, 3013, 3014, 3015, 4000, 4001, 4002,
    4003, 4004, 4005, 4006, 4007, 5000, 5001, 5002, 5003, 5004, 5005, 6000, 9999, -1};

static void callback(cudnnSeverity_t severity, void *data, const cudnnDebug_t *debug,
                     const char *text)
{
    (void)severity, (void)data, (void)debug, (void)text;
}

static void error_strings(void)
{
    for (int i = 0; i < GD_COUNT(statuses); i++) {
        if (gd_host_case("library/error_string/%d", statuses[i])) {
            gd_text("text", lib.GetErrorString((cudnnStatus_t)statuses[i]));
            gd_end();
        }
    }
}

static void last_error(void)
{
    if (gd_host_case("library/last_error/after_failure")) {
        char text[256] = "";
        gd_status("set", lib.SetTensor4dDescriptor(NULL, 0, 0, 1, 1, 1, 1));
        lib.GetLastErrorString(text, sizeof text);
        gd_int("empty", text[0] == 0);
        text[0] = 0;
        lib.GetLastErrorString(text, sizeof text);
        gd_int("empty_again", text[0] == 0);
        gd_end();
    }
    for (int size = 0; size < 4; size++) {
        if (gd_host_case("library/last_error/size%d", size)) {
            char text[8] = "#######";
            gd_status("set", lib.SetTensor4dDescriptor(NULL, 0, 0, 1, 1, 1, 1));
            lib.GetLastErrorString(text, (size_t)size);
            gd_int("length", (long long)strnlen(text, sizeof text));
            gd_int("beyond", text[size + 1] == '#');
            gd_end();
        }
    }
    if (gd_host_case("library/last_error/null")) {
        lib.GetLastErrorString(NULL, 0);
        gd_int("alive", 1);
        gd_end();
    }
}

static void callbacks(void)
{
    for (unsigned mask = 0; mask < 20; mask++) {
        if (gd_host_case("library/callback/mask%u", mask)) {
            unsigned got = 77;
            int here = 0;
            void *data = NULL;
            cudnnCallback_t f = NULL;
            gd_status("set", lib.SetCallback(mask, &here, callback));
            gd_status("get", lib.GetCallback(&got, &data, &f));
            gd_int("mask", got);
            gd_int("data", data == &here);
            gd_int("function", f == callback);
            gd_status("unset", lib.SetCallback(0, NULL, NULL));
            gd_end();
        }
    }
    if (gd_host_case("library/callback/get_null")) {
        gd_status("get", lib.GetCallback(NULL, NULL, NULL));
        gd_end();
    }
}

void cases_library(void)
{
    if (gd_host_case("library/version")) {
        gd_int("version", (long long)lib.GetVersion());
        gd_note("max_device", (long long)lib.GetMaxDeviceVersion());
        gd_end();
    }
    if (gd_host_case("library/version_checks")) {
        gd_status("graph", lib.GraphVersionCheck());
        gd_status("ops", lib.OpsVersionCheck());
        gd_status("cnn", lib.CnnVersionCheck());
        gd_end();
    }
    for (int p = -1; p < 5; p++) {
        if (gd_host_case("library/property/%d", p)) {
            int v = -77;
            gd_status("get", lib.GetProperty((libraryPropertyType)p, &v));
            gd_int("value", v);
            gd_end();
        }
    }
    if (gd_host_case("library/property/null")) {
        gd_status("get", lib.GetProperty(MAJOR_VERSION, NULL));
        gd_end();
    }
    error_strings();
    last_error();
    callbacks();
}
