/* SPDX-License-Identifier: Apache-2.0 */
/* tenet-deployer: the command "tenet deployer" as a program that needs no other file, for the image
 * of deployer pods. */
#include "base/str.h"
#include "cli/command.h"

#include <signal.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc == 2 && streq(argv[1], "--version")) {
        puts("tenet-deployer " TENET_VERSION);
        return 0;
    }
    /* A write to a closed connection must fail with EPIPE, and not end the process by a signal. */
    signal(SIGPIPE, SIG_IGN);
    int status = cmd_deployer.run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("tenet-deployer: standard output: write failed\n", stderr);
        return status ? status : 1;
    }
    return status;
}
