/* SPDX-License-Identifier: Apache-2.0 */
/* Logging: one line per event, to standard error.
 *
 *     2026-11-21T07:29:34.123Z INFO node: pod attached pod=red/web ip=10.128.0.2 ms=3
 *
 * Each file that logs says LOG_MODULE("name") once.  A line is a fixed text, then key=value fields.
 * Levels are per module and can be changed while running: "info", or "info,ovsdb=debug".
 * Control characters in values are escaped, so that a peer cannot forge a line.  Where a peer can
 * trigger a line, use log_limited: at most 'burst' lines, then one a second, and the next
 * written line has the number of suppressed ones.  A line can be a JSON object instead
 * (log_set_format).  Thread-safe. */
#pragma once

#include "base/macro.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVEL_MAX };

struct log_module {
    const char *name;
    int level; /* Most detailed level shown; -1 until first use. */
    struct log_module *next;
};

#define LOG_MODULE(n) static struct log_module log_module_this = {.name = (n), .level = -1}

struct log_limit {
    unsigned burst; /* Lines allowed at once; 0 means 5. */
    unsigned tokens;
    unsigned suppressed;
    bool started;
    uint64_t last_ms;
};

/* 'text' is the event, 'fields' a printf format of "key=%s key2=%d" (or ""). */
#define log_error(text, ...) log_write(&log_module_this, LOG_ERROR, NULL, text, "" __VA_ARGS__)
#define log_warn(text, ...) log_write(&log_module_this, LOG_WARN, NULL, text, "" __VA_ARGS__)
#define log_info(text, ...) log_write(&log_module_this, LOG_INFO, NULL, text, "" __VA_ARGS__)
#define log_debug(text, ...)                                                    \
    do {                                                                        \
        if (log_enabled(&log_module_this, LOG_DEBUG)) {                         \
            log_write(&log_module_this, LOG_DEBUG, NULL, text, "" __VA_ARGS__); \
        }                                                                       \
    } while (0)
#define log_limited(limit, level, text, ...) \
    log_write(&log_module_this, level, limit, text, "" __VA_ARGS__)

bool log_enabled(struct log_module *m, enum log_level level);
void log_write(struct log_module *m, enum log_level level, struct log_limit *limit,
               const char *text, const char *fields, ...) PRINTF_LIKE(5, 6);

/* Sets levels from "LEVEL[,MODULE=LEVEL]...", LEVEL being error, warn, info or debug.
 * -EINVAL with the offending word in '*bad' (NULL is fine) and nothing changed.
 * Default: TENET_LOG, else info. */
int log_set_levels(const char *spec, char bad[64]);
/* How lines are written: "text", or "json" (log_json.h).  -EINVAL: another word; nothing changed.
 * Default: TENET_LOG_FORMAT, else text. */
int log_set_format(const char *name);
bool log_is_json(void);
/* Sends lines to 'fd' instead of standard error (not owned). */
void log_set_fd(int fd);
