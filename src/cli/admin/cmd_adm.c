/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm: what administrators of a cluster do; a group of commands for each matter. */
#include "base/str.h"
#include "cli/admin/adm.h"

#include <stdio.h>

static const struct command *const groups[] = {&adm_pod_network};

static const char help[] = "usage: tenet adm GROUP COMMAND [OPTIONS]\n"
                           "\n"
                           "Administration of a cluster.\n"
                           "\n"
                           "  pod-network   networks of projects: join, isolate, make global\n"
                           "\n"
                           "  tenet adm GROUP --help   all about a group\n";

static int run(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help, stdout);
        return 2;
    }
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        if (streq(argv[1], groups[i]->name + strlen("adm "))) {
            return groups[i]->run(argc - 1, argv + 1);
        }
    }
    if (streq(argv[1], "-h") || streq(argv[1], "--help")) {
        fputs(help, stdout);
        return 0;
    }
    return command_usage(&cmd_adm, "unknown group \"%s\"", argv[1]);
}

const struct command cmd_adm = {
    .name = "adm", .summary = "administration: networks of projects", .help = help, .run = run};
