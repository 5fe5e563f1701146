/* SPDX-License-Identifier: Apache-2.0 */
/* The double of logind as a program: "begin" and "cancel" on standard input announce a shutdown and
 * that it was cancelled; it prints "held" and "free" when the lock changes hands, and ends with its
 * input. */
#include "fake_logind.h"

#include "base/str.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_MS 10
#define MAX_US 60000000

int main(void)
{
    struct fake_logind *g = fake_logind_new(MAX_US);
    bool held = false;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (;;) {
        char line[32];
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&in, 1, LOOK_MS) > 0) {
            ssize_t n = read(STDIN_FILENO, line, sizeof line - 1);
            if (n <= 0) {
                break;
            }
            line[n] = '\0';
            fake_logind_announce(g, str_has_prefix(line, "begin"));
        }
        fake_logind_process(g);
        if (fake_logind_is_held(g) != held) {
            held = !held;
            puts(held ? "held" : "free");
        }
    }
    fake_logind_free(g);
    return 0;
}
