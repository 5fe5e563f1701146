/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>

int command_fail(const struct err *e, const char *fmt, ...)
{
    fflush(stdout);
    fputs("tenet: ", stderr);
    if (fmt) {
        va_list ap;
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
    }
    if (e) {
        fprintf(stderr, "%s%s", fmt ? ": " : "", e->text);
    }
    fputc('\n', stderr);
    return 1;
}

int command_usage(const struct command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(stdout);
    fprintf(stderr, "tenet %s: ", c->name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; see tenet %s --help\n", c->name);
    va_end(ap);
    return 2;
}
