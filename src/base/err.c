/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e) {
        e->code = code;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
    }
    return code;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
    if (e) {
        e->code = code;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
        size_t n = strlen(e->text);
        snprintf(e->text + n, sizeof e->text - n, ": %s", strerror(-code));
    }
    return code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e) {
        return -EINVAL;
    }
    char inner[sizeof e->text];
    memcpy(inner, e->text, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    size_t n = strlen(e->text);
    snprintf(e->text + n, sizeof e->text - n, ": %s", inner);
    return e->code;
}

void err_clear(struct err *e)
{
    if (e) {
        e->code = 0;
        e->text[0] = '\0';
    }
}
