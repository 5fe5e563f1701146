/* SPDX-License-Identifier: Apache-2.0 */
/* The last message of a container: a file of the node, bound into the container. */
#include "base/log.h"
#include "base/mem.h"
#include "kubelet/pods/workers_priv.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("pods");

#define MESSAGE_MAX 4096
#define LOG_BYTES_MAX 2048
#define LOG_LINES_MAX 80

static char *path_of(const struct worker *w, const char *name, uint32_t restarts, struct arena *a)
{
    return arena_printf(a, "%s/pods/%s/containers/%s/%u", w->pods->root_dir, w->uid, name,
                        restarts);
}

char *message_make(const struct worker *w, const char *name, uint32_t restarts, struct arena *a)
{
    struct err e = {0};
    char *path = path_of(w, name, restarts, a);
    char *dir = arena_strndup(a, path, (size_t) (strrchr(path, '/') - path));
    CLEANUP(fd_close) int fd = -1;
    if (dir_make(dir, 0750, &e) == 0) {
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    }
    if (fd < 0 || fchmod(fd, 0666) < 0) {
        log_warn("a container has no file for its last message", "path=%s", path);
        return NULL;
    }
    return path;
}

/* The texts of the last lines of a log in CRI's format: TIME STREAM TAG TEXT. */
static char *last_lines(const char *text)
{
    const char *begin = text + strlen(text);
    unsigned lines = 0;
    while (begin > text) {
        const char *p = begin - 1;
        while (p > text && p[-1] != '\n') {
            p--;
        }
        begin = p;
        if (++lines == LOG_LINES_MAX) {
            break;
        }
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    while (*begin) {
        size_t n = strcspn(begin, "\n");
        const char *s = begin;
        for (int field = 0; field < 3; field++) {
            const char *blank = memchr(s, ' ', (size_t) (begin + n - s));
            s = blank ? blank + 1 : begin + n;
        }
        bool partial = s - begin >= 3 && s[-2] == 'P';
        strbuf_add(&out, s, (size_t) (begin + n - s));
        if (!partial) {
            strbuf_addc(&out, '\n');
        }
        begin += n + (begin[n] == '\n');
    }
    size_t skip = out.size > LOG_BYTES_MAX ? out.size - LOG_BYTES_MAX : 0;
    return xstrdup(strbuf_cstr(&out) + skip);
}

static char *log_tail(const char *path)
{
    char buf[4 * LOG_BYTES_MAX + 1];
    CLEANUP(fd_close) int fd = -1;
    if (file_open(path, &fd, NULL) < 0) {
        return NULL;
    }
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t) sizeof buf - 1 ? size - (off_t) sizeof buf + 1 : 0;
    ssize_t n = size > 0 ? pread(fd, buf, sizeof buf - 1, from) : 0;
    if (n <= 0) {
        return NULL;
    }
    buf[n] = '\0';
    const char *first = from ? strchr(buf, '\n') : buf;
    return first ? last_lines(from ? first + 1 : first) : NULL;
}

void message_read(const struct worker *w, struct observed_container *c)
{
    CLEANUP_ARENA struct arena a = {0};
    char buf[MESSAGE_MAX + 1];
    CLEANUP(fd_close) int fd = -1;
    ssize_t n = 0;
    if (file_open(path_of(w, c->name, c->restarts, &a), &fd, NULL) == 0) {
        n = read(fd, buf, MESSAGE_MAX);
    }
    char *text = n > 0 ? xstrndup(buf, (size_t) n) : NULL;
    if (!text && c->exit_code != 0 && streq(c->message_policy, "FallbackToLogsOnError") &&
        *c->log_path) {
        text = log_tail(c->log_path);
    }
    if (text && *text) {
        free(c->message);
        c->message = text;
    } else {
        free(text);
    }
}
