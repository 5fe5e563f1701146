/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "lab/lab_internal.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TOOL_TIMEOUT_MS 30000
#define TAIL_SIZE 320
#define LIBEXEC "/usr/libexec/tenet"

/* ---- pid files ---- */

pid_t daemon_pid(const struct daemon *d)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s.pid", d->dir, d->name);
    CLEANUP_FREE char *needle = xasprintf("%s/", d->dir);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    uint64_t pid;
    if (file_read(path, 32, &text, NULL) < 0 ||
        str_to_u64(strbuf_cstr(&text), INT32_MAX, &pid) < 0) {
        return 0;
    }
    return process_is((pid_t) pid, needle) ? (pid_t) pid : 0;
}

static int write_pid(const struct daemon *d, pid_t pid, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s.pid", d->dir, d->name);
    char text[16];
    snprintf(text, sizeof text, "%d", (int) pid);
    return file_write_atomic(path, text, strlen(text), 0644, e);
}

/* ---- logs ---- */

/* The last lines of its log, joined by " | "; owned. */
static char *log_tail(const struct daemon *d)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s.log", d->dir, d->name);
    char buf[TAIL_SIZE + 1] = "";
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = size <= 0 ? 0 : pread(fd, buf, TAIL_SIZE, MAX(size - TAIL_SIZE, 0));
    buf[MAX(n, 0)] = '\0';
    const char *start = buf, *eol = strchr(buf, '\n');
    if (size > TAIL_SIZE && eol && eol[1]) {
        start = eol + 1;
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (; *start; start++) {
        if (*start != '\n') {
            strbuf_addc(&out, *start);
        } else if (start[1]) {
            strbuf_adds(&out, " | ");
        }
    }
    return strbuf_steal(&out);
}

static int fail_with_log(const struct daemon *d, int code, struct err *e, const char *what)
{
    CLEANUP_FREE char *tail = log_tail(d);
    return *tail ? err_set(e, code, "%s %s; %s/%s.log ends: %s", d->title, what, d->dir, d->name,
                           tail)
                 : err_set(e, code, "%s %s; its log %s/%s.log is empty", d->title, what, d->dir,
                           d->name);
}

int daemon_ended(const struct daemon *d, struct err *e)
{
    return fail_with_log(d, -ESRCH, e, "ended");
}

/* ---- start, stop, wait ---- */

int daemon_start(const struct daemon *d, const struct process_spec *s, bool *ret_started,
                 struct err *e)
{
    *ret_started = false;
    if (daemon_pid(d)) {
        return 0;
    }
    CLEANUP_FREE char *log = xasprintf("%s/%s.log", d->dir, d->name);
    CLEANUP(fd_close) int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_sys(e, -errno, "open %s", log);
    }
    struct process_spec spec = *s;
    spec.stdout_fd = spec.stderr_fd = fd;
    spec.new_session = true;
    pid_t pid;
    int r = process_start(&spec, &pid, e);
    if (r < 0 || (r = write_pid(d, pid, e)) < 0) {
        return r;
    }
    *ret_started = true;
    return 0;
}

int daemon_stop(const struct daemon *d, bool hard, struct err *e)
{
    pid_t pid = daemon_pid(d);
    CLEANUP(fd_close) int pidfd = pid ? (int) syscall(SYS_pidfd_open, pid, 0) : -1;
    if (pidfd < 0 || daemon_pid(d) != pid) {
        return 0;
    }
    for (int i = hard; i < 2; i++) {
        if (syscall(SYS_pidfd_send_signal, pidfd, i ? SIGKILL : SIGTERM, NULL, 0) < 0 &&
            errno != ESRCH) {
            return err_sys(e, -errno, "stop %s", d->title);
        }
        struct pollfd p = {.fd = pidfd, .events = POLLIN};
        if (poll(&p, 1, STOP_TIMEOUT_MS) > 0) {
            return 0;
        }
    }
    return err_set(e, -ETIMEDOUT, "%s (pid %d) does not end", d->title, (int) pid);
}

struct waiting {
    const struct daemon *d;
    int (*cond)(void *ctx);
    void *ctx;
};

static int holds_or_dead(void *ctx)
{
    struct waiting *w = ctx;
    bool alive = daemon_pid(w->d) != 0;
    int r = w->cond(w->ctx);
    return r ? r : alive ? 0 : -ESRCH;
}

int daemon_wait(const struct daemon *d, const char *what, int (*cond)(void *ctx), void *ctx,
                struct err *e)
{
    struct waiting w = {.d = d, .cond = cond, .ctx = ctx};
    int r = lab_wait(holds_or_dead, &w, START_TIMEOUT_MS);
    if (r == -ESRCH) {
        return daemon_ended(d, e);
    }
    if (r < 0) {
        CLEANUP_FREE char *text = xasprintf("did not %s in %d s", what, START_TIMEOUT_MS / 1000);
        return fail_with_log(d, r, e, text);
    }
    return 0;
}

/* ---- tools and programs ---- */

int tool_run_spec(const struct process_spec *s, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf errout = STRBUF_INIT;
    int status = 0;
    int r = process_run(s, TOOL_TIMEOUT_MS, &out, &errout, &status, e);
    if (r == 0 && status != 0) {
        for (size_t i = 0; i < errout.size; i++) {
            errout.data[i] = errout.data[i] == '\n' ? ' ' : errout.data[i];
        }
        r = err_set(e, -EIO, "%s: exit status %d: %.300s", s->argv[0], status,
                    strbuf_cstr(&errout));
    }
    return r;
}

int tool_run(const char *const argv[], int netns_fd, struct err *e)
{
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.netns_fd = netns_fd;
    return tool_run_spec(&s, e);
}

int program_find(const char *name, char **ret, struct err *e)
{
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *dir = n > 0 ? dirname(self) : ".";
    /* Beside "tenet"; src/cli, src/cni and src/pause are neighbours in the build tree; bin and
     * libexec installed. */
    static const char *const places[] = {"", "../cni/", "../pause/", "../libexec/tenet/"};
    for (size_t i = 0; i <= ARRAY_SIZE(places); i++) {
        CLEANUP_FREE char *path = i < ARRAY_SIZE(places)
                                      ? xasprintf("%s/%s%s", dir, places[i], name)
                                      : xasprintf("%s/%s", LIBEXEC, name);
        CLEANUP_FREE char *real = realpath(path, NULL);
        if (real && access(real, X_OK) == 0) {
            *ret = TAKE(real);
            return 0;
        }
    }
    return err_set(e, -ENOENT, "%s is not installed: not beside this program (%s), not in %s", name,
                   dir, LIBEXEC);
}
