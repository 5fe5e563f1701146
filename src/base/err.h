/* SPDX-License-Identifier: Apache-2.0 */
/* Errors with context.
 *
 * A function returns 0 or a negative errno.  One that parses, validates or does I/O also takes a
 * 'struct err *e' as its last argument and describes the failure there. The caller owns the
 * struct: no heap, nothing to release. 'e' may always be NULL, then only the code is returned.
 *
 *     int r = config_load(path, &cfg, e);
 *     if (r < 0) {
 *         return err_prefix(e, "load %s", path);
 *     }
 *
 * Texts are lower case, without a full stop, name the thing and the reason, and go from the outer
 * to the inner: "load node.yaml: networkConfig.mtu: 70000 is not in 576-65536".  Library code never
 * logs what it returns; only the top does. */
#pragma once

#include "base/macro.h"

#include <errno.h>
#include <stdarg.h>

struct err {
    int code;       /* 0, or the negative errno returned with it. */
    char text[508]; /* Description of the failure; truncated when longer. */
};

/* Sets '*e' and returns 'code' (which must be negative). */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Like err_set, and appends ": " and the text of errno 'code'. */
int err_sys(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Puts "context: " before the text in '*e'; returns e->code (or -EINVAL when e is NULL). */
int err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
void err_clear(struct err *e);
