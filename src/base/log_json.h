/* SPDX-License-Identifier: Apache-2.0 */
/* A log line as a JSON object (docs/logs.md):
 *
 *     {"time":"2026-11-21T07:29:34.123Z","level":"info","priority":6,"module":"node",
 *      "message":"pod attached","fields":{"pod":"red/web","ip":"10.128.0.2","ms":"3"}}
 *
 * The fields are told apart by the format, not by the text that it makes: a value with blanks,
 * quotes or "key=" in it stays one value, so that a peer cannot forge a field.  Used by log.c only.
 * No state but a random separator, made once; any thread. */
#pragma once

#include "base/macro.h"

#include <stdarg.h>

#define LOG_JSON_SIZE 8192

struct log_json {
    const char *stamp; /* RFC 3339, UTC. */
    const char *level; /* "error", "warn", "info", "debug" */
    unsigned priority; /* The priority of syslog(3): 3, 4, 6, 7. */
    const char *module, *text;
    unsigned suppressed; /* Lines that the limit left out before this one; 0: none. */
};
/* Writes the line with its line end, always whole and valid: values that do not fit are cut.
 * Returns its size. 'fields' is a printf format of "key=%s key2=\"%s\"". */
size_t log_json_write(const struct log_json *l, char out[LOG_JSON_SIZE], const char *fields,
                      va_list ap);
