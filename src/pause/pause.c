/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a pod: it holds the pod's namespaces and does nothing until it is told to
 * end.  Where the containers of a pod share their process ids it is the init of all, and reaps. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("tenet-pause " TENET_VERSION);
        return 0;
    }
    sigset_t set;
    int signo;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (;;) {
        if (sigwait(&set, &signo) != 0) {
            continue;
        }
        if (signo != SIGCHLD) {
            return 0;
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}
