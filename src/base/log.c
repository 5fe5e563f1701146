/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/log_json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_SIZE 2048
#define DEFAULT_BURST 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_module *modules;
static int log_fd = STDERR_FILENO;
static char *spec_now;      /* NULL: not set yet. */
static int format_now = -1; /* enum log_format; -1: not set yet. */

enum log_format { FORMAT_TEXT, FORMAT_JSON };

static const char *const level_names[LOG_LEVEL_MAX] = {"error", "warn", "info", "debug"};
static const unsigned level_priorities[LOG_LEVEL_MAX] = {3, 4, 6, 7}; /* Priorities of syslog(3). */
static const char *const level_tags[LOG_LEVEL_MAX] = {"ERROR", "WARN", "INFO", "DEBUG"};

static int level_from(const char *s, size_t n)
{
    for (int i = 0; i < LOG_LEVEL_MAX; i++) {
        if (strlen(level_names[i]) == n && strncmp(level_names[i], s, n) == 0) {
            return i;
        }
    }
    return -1;
}

/* Level of module 'name' (NULL: just check) under 'spec'; -1 and '*bad' when a word is wrong. */
static int spec_level(const char *spec, const char *name, char bad[64])
{
    int result = LOG_INFO;
    while (*spec) {
        size_t n = strcspn(spec, ",");
        const char *eq = memchr(spec, '=', n);
        int level = eq ? level_from(eq + 1, n - (size_t) (eq + 1 - spec)) : level_from(spec, n);
        if (level < 0) {
            if (bad) {
                snprintf(bad, 64, "%.*s", (int) MIN(n, 63), spec);
            }
            return -1;
        }
        if (!eq) {
            result = level;
        } else if (name && strlen(name) == (size_t) (eq - spec) &&
                   strncmp(name, spec, strlen(name)) == 0) {
            return level;
        }
        spec += n + (spec[n] == ',');
    }
    return result;
}

int log_set_levels(const char *spec, char bad[64])
{
    if (spec_level(spec, NULL, bad) < 0) {
        return -EINVAL;
    }
    pthread_mutex_lock(&lock);
    free(spec_now);
    spec_now = xstrdup(spec);
    for (struct log_module *m = modules; m; m = m->next) {
        m->level = spec_level(spec_now, m->name, NULL);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static int format_from(const char *name)
{
    return streq(name, "text") ? FORMAT_TEXT : streq(name, "json") ? FORMAT_JSON : -1;
}

int log_set_format(const char *name)
{
    int format = format_from(name);
    if (format < 0) {
        return -EINVAL;
    }
    __atomic_store_n(&format_now, format, __ATOMIC_RELAXED);
    return 0;
}

bool log_is_json(void)
{
    int format = __atomic_load_n(&format_now, __ATOMIC_RELAXED);
    if (format < 0) {
        const char *env = getenv("TENET_LOG_FORMAT");
        format = env && format_from(env) == FORMAT_JSON ? FORMAT_JSON : FORMAT_TEXT;
        __atomic_store_n(&format_now, format, __ATOMIC_RELAXED);
    }
    return format == FORMAT_JSON;
}

void log_set_fd(int fd)
{
    log_fd = fd;
}

static void module_register(struct log_module *m)
{
    pthread_mutex_lock(&lock);
    if (m->level < 0) {
        if (!spec_now) {
            const char *env = getenv("TENET_LOG");
            spec_now = xstrdup(env && spec_level(env, NULL, NULL) >= 0 ? env : "info");
        }
        m->level = spec_level(spec_now, m->name, NULL);
        m->next = modules;
        modules = m;
    }
    pthread_mutex_unlock(&lock);
}

bool log_enabled(struct log_module *m, enum log_level level)
{
    if (m->level < 0) {
        module_register(m);
    }
    return (int) level <= m->level;
}

/* Whether the line may be written; '*suppressed' is the number of suppressed lines before it. */
static bool limit_pass(struct log_limit *l, unsigned *suppressed)
{
    uint64_t now = time_mono_ms();
    unsigned burst = l->burst ? l->burst : DEFAULT_BURST;
    if (!l->started) {
        l->started = true;
        l->tokens = burst;
        l->last_ms = now;
    }
    uint64_t add = (now - l->last_ms) / 1000;
    if (add) {
        l->tokens = (unsigned) MIN((uint64_t) burst, l->tokens + add);
        l->last_ms += add * 1000;
    }
    if (!l->tokens) {
        l->suppressed++;
        return false;
    }
    l->tokens--;
    *suppressed = l->suppressed;
    l->suppressed = 0;
    return true;
}

/* Writes 'text' and the fields as one line of text; returns its size. */
static size_t text_line(const struct log_json *l, const char *tag, char line[LINE_MAX_SIZE],
                        const char *fields, va_list ap)
{
    char body[LINE_MAX_SIZE / 2];
    vsnprintf(body, sizeof body, fields, ap);
    int head = snprintf(line, LINE_MAX_SIZE, "%s %s %s: %s", l->stamp, tag, l->module, l->text);
    size_t n = MIN((size_t) head, (size_t) LINE_MAX_SIZE - 1);
    if (body[0] && n < LINE_MAX_SIZE - 1) {
        line[n++] = ' ';
    }
    for (const char *p = body; *p && n < LINE_MAX_SIZE - 48; p++) {
        unsigned char c = (unsigned char) *p;
        if (c < 0x20 || c == 0x7f) {
            n += (size_t) snprintf(line + n, 5, "\\x%02x", c);
        } else {
            line[n++] = *p;
        }
    }
    if (l->suppressed) {
        n += (size_t) snprintf(line + n, 40, " suppressed=%u", l->suppressed);
    }
    line[n++] = '\n';
    return n;
}

void log_write(struct log_module *m, enum log_level level, struct log_limit *limit,
               const char *text, const char *fields, ...)
{
    if (!log_enabled(m, level)) {
        return;
    }
    int saved = errno;
    unsigned suppressed = 0;
    if (limit) {
        pthread_mutex_lock(&lock);
        bool pass = limit_pass(limit, &suppressed);
        pthread_mutex_unlock(&lock);
        if (!pass) {
            errno = saved;
            return;
        }
    }
    char line[MAX(LINE_MAX_SIZE, LOG_JSON_SIZE)] UNINITIALIZED, stamp[TIME_TEXT_SIZE];
    struct log_json l = {.stamp = stamp,
                         .level = level_names[level],
                         .priority = level_priorities[level],
                         .module = m->name,
                         .text = text,
                         .suppressed = suppressed};
    va_list ap;
    time_format_ms(time_wall_ms(), stamp);
    va_start(ap, fields);
    size_t n = log_is_json() ? log_json_write(&l, line, fields, ap)
                             : text_line(&l, level_tags[level], line, fields, ap);
    va_end(ap);
    ssize_t w = write(log_fd, line, n);
    (void) w; /* There is no place to report that the log itself is broken. */
    errno = saved;
}
