/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop/process.h"

#include "base/mem.h"
#include "base/timeutil.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXEC_MS 200 /* Longest that an exec takes. */
#define COLLECT_MAX ((size_t) 1 << 20)
#define PASS_FD_FIRST 3
#define PASS_FD_MAX 16

/* ---- starting ---- */

/* The environment of a child: ours, with the variables of 's' replacing those of the same name. */
struct child_env {
    const char **vars;
    size_t n, cap;
    char listen_fds[32];
    char listen_pid[32]; /* "LISTEN_PID=", to be completed by the child. */
};

static bool same_variable(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && strncmp(a, b, n) == 0;
}

static void env_set(struct child_env *ce, const char *var)
{
    for (size_t i = 0; i < ce->n; i++) {
        if (same_variable(ce->vars[i], var)) {
            ce->vars[i] = var;
            return;
        }
    }
    ce->vars = grow(ce->vars, &ce->cap, ce->n + 2, sizeof *ce->vars);
    ce->vars[ce->n++] = var;
    ce->vars[ce->n] = NULL;
}

static void env_build(struct child_env *ce, const struct process_spec *s)
{
    *ce = (struct child_env){0};
    ce->vars = grow(NULL, &ce->cap, 1, sizeof *ce->vars);
    ce->vars[0] = NULL;
    for (char **v = environ; v && *v; v++) {
        ce->vars = grow(ce->vars, &ce->cap, ce->n + 2, sizeof *ce->vars);
        ce->vars[ce->n++] = *v;
        ce->vars[ce->n] = NULL;
    }
    for (const char *const *v = s->env; v && *v; v++) {
        env_set(ce, *v);
    }
    if (s->n_pass_fds) {
        snprintf(ce->listen_fds, sizeof ce->listen_fds, "LISTEN_FDS=%zu", s->n_pass_fds);
        snprintf(ce->listen_pid, sizeof ce->listen_pid, "LISTEN_PID=");
        env_set(ce, ce->listen_fds);
        env_set(ce, ce->listen_pid);
    }
}

/* The report of a child that could not start to its parent. */
struct child_failure {
    enum { FAIL_NETNS, FAIL_FDS, FAIL_EXEC } stage;
    int error;
};

static void child_fail(int report_fd, int stage)
{
    struct child_failure f = {.stage = stage, .error = -errno};
    ssize_t n = write(report_fd, &f, sizeof f);
    (void) n; /* Without it the parent only sees that the child ended. */
    _exit(127);
}

/* Appends the decimal 'pid' to 's'; snprintf is not safe between fork and exec. */
static void append_pid(char *s, pid_t pid)
{
    char digits[16];
    size_t n = 0;
    do {
        digits[n++] = (char) ('0' + pid % 10);
        pid /= 10;
    } while (pid);
    s += strlen(s);
    while (n) {
        *s++ = digits[--n];
    }
    *s = '\0';
}

/* Runs in the child of a process that may have threads: async-signal-safe calls only. */
static void child_exec(const struct process_spec *s, struct child_env *ce, int report_fd)
{
    /* The parent's signal handlers must not run here; ignored signals stay ignored, except
     * SIGPIPE. */
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction sa;
        if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL &&
            (sa.sa_handler != SIG_IGN || sig == SIGPIPE)) {
            sa = (struct sigaction){.sa_handler = SIG_DFL};
            sigaction(sig, &sa, NULL);
        }
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (s->new_session) {
        setsid();
    }
    if (s->netns_fd >= 0 && setns(s->netns_fd, CLONE_NEWNET) < 0) {
        child_fail(report_fd, FAIL_NETNS);
    }

    /* Moves the descriptors out of the way of the target numbers, then to their places. */
    int std[3] = {s->stdin_fd, s->stdout_fd, s->stderr_fd}, pass[PASS_FD_MAX];
    int above = PASS_FD_FIRST + (int) s->n_pass_fds;
    if ((report_fd = fcntl(report_fd, F_DUPFD_CLOEXEC, above)) < 0) {
        _exit(127);
    }
    if (std[0] < 0) {
        std[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    for (int i = 0; i < 3; i++) {
        if (std[i] >= 0 && (std[i] = fcntl(std[i], F_DUPFD_CLOEXEC, above)) < 0) {
            child_fail(report_fd, FAIL_FDS);
        }
    }
    for (size_t i = 0; i < s->n_pass_fds; i++) {
        if ((pass[i] = fcntl(s->pass_fds[i], F_DUPFD_CLOEXEC, above)) < 0) {
            child_fail(report_fd, FAIL_FDS);
        }
    }
    for (int i = 0; i < 3; i++) {
        if (std[i] >= 0 && dup2(std[i], i) < 0) {
            child_fail(report_fd, FAIL_FDS);
        }
    }
    for (size_t i = 0; i < s->n_pass_fds; i++) {
        if (dup2(pass[i], PASS_FD_FIRST + (int) i) < 0) {
            child_fail(report_fd, FAIL_FDS);
        }
    }
    /* No other descriptor of the caller, or of its parents, is inherited by a long-running
     * program. */
    close_range((unsigned) above, ~0u, CLOSE_RANGE_CLOEXEC);
    if (s->n_pass_fds) {
        append_pid(ce->listen_pid, getpid());
    }
    execvpe(s->argv[0], (char *const *) s->argv, (char *const *) ce->vars);
    child_fail(report_fd, FAIL_EXEC);
}

/* Reads from 'report_fd' whether the child 'pid' reached exec. */
static int start_result(const struct process_spec *s, pid_t pid, int report_fd, struct err *e)
{
    struct child_failure f;
    ssize_t n;
    do {
        n = read(report_fd, &f, sizeof f);
    } while (n < 0 && errno == EINTR);
    if (n == 0) {
        return 0;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    if (n != (ssize_t) sizeof f) {
        return err_set(e, -EIO, "start %s: the child ended before it ran", s->argv[0]);
    }
    switch (f.stage) {
    case FAIL_NETNS:
        return err_sys(e, f.error, "start %s: enter the network namespace", s->argv[0]);
    case FAIL_FDS:
        return err_sys(e, f.error, "start %s: pass descriptors", s->argv[0]);
    default:
        return f.error == -ENOENT ? err_set(e, f.error, "start %s: no such program", s->argv[0])
                                  : err_sys(e, f.error, "start %s", s->argv[0]);
    }
}

int process_start(const struct process_spec *s, pid_t *ret_pid, struct err *e)
{
    if (s->n_pass_fds > PASS_FD_MAX) {
        return err_set(e, -E2BIG, "start %s: more than %d descriptors to pass", s->argv[0],
                       PASS_FD_MAX);
    }
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0) {
        return err_sys(e, -errno, "start %s: pipe", s->argv[0]);
    }
    CLEANUP(fd_close) int report_rd = report[0];
    struct child_env ce;
    env_build(&ce, s);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        child_exec(s, &ce, report[1]);
    }
    int r = pid < 0 ? -errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(ce.vars);
    fd_close(report[1]);
    if (r < 0) {
        return err_sys(e, r, "start %s: fork", s->argv[0]);
    }
    if ((r = start_result(s, pid, report_rd, e)) < 0) {
        return r;
    }
    *ret_pid = pid;
    return 0;
}

/* ---- running to the end ---- */

/* Reads the available bytes into 'b', dropping those over the limit. Returns false at the end. */
static bool collect(int fd, struct strbuf *b)
{
    char buf[16384];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        if (b->size < COLLECT_MAX) {
            strbuf_add(b, buf, MIN((size_t) n, COLLECT_MAX - b->size));
        }
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static int text_fd(const char *text, int *ret_fd)
{
    CLEANUP(fd_close) int fd = memfd_create("tenet-stdin", MFD_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    for (size_t done = 0, size = strlen(text); done < size;) {
        ssize_t n = write(fd, text + done, size - done);
        if (n < 0) {
            return -errno;
        }
        done += (size_t) n;
    }
    if (lseek(fd, 0, SEEK_SET) < 0) {
        return -errno;
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

/* Waits for the end of 'pidfd', emptying the pipes meanwhile (fd -1: none). Later output of a
 * grandchild that still has the pipes is not waited for. */
static int wait_end(int pidfd, int fds[2], struct strbuf *bufs[2], uint64_t timeout_ms)
{
    uint64_t end = timeout_ms ? time_mono_ms() + timeout_ms : UINT64_MAX;
    for (;;) {
        uint64_t now = time_mono_ms();
        int wait = !timeout_ms ? -1 : end > now ? (int) MIN(end - now, (uint64_t) INT32_MAX) : 0;
        struct pollfd p[3] = {{.fd = pidfd, .events = POLLIN},
                              {.fd = fds[0], .events = POLLIN},
                              {.fd = fds[1], .events = POLLIN}};
        int n = poll(p, 3, wait);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i] >= 0 && n > 0 && (p[i + 1].revents || p[0].revents) &&
                !collect(fds[i], bufs[i])) {
                fds[i] = -1;
            }
        }
        if (n > 0 && p[0].revents) {
            return 0;
        }
        if (n == 0 && time_mono_ms() >= end) {
            return -ETIMEDOUT;
        }
    }
}

int process_run(const struct process_spec *s, uint64_t timeout_ms, struct strbuf *out,
                struct strbuf *errout, int *ret_status, struct err *e)
{
    struct process_spec spec = *s;
    struct strbuf *bufs[2] = {out, errout};
    CLEANUP(fd_close) int in_fd = -1;
    CLEANUP(fd_close) int out_rd = -1;
    CLEANUP(fd_close) int err_rd = -1;
    CLEANUP(fd_close) int out_wr = -1;
    CLEANUP(fd_close) int err_wr = -1;
    int *rd[2] = {&out_rd, &err_rd}, *wr[2] = {&out_wr, &err_wr};
    if (s->stdin_text) {
        int r = text_fd(s->stdin_text, &in_fd);
        if (r < 0) {
            return err_sys(e, r, "run %s: standard input", s->argv[0]);
        }
        spec.stdin_fd = in_fd;
    }
    for (int i = 0; i < 2; i++) {
        int p[2];
        if (!bufs[i]) {
            continue;
        }
        if (pipe2(p, O_CLOEXEC) < 0) {
            return err_sys(e, -errno, "run %s: pipe", s->argv[0]);
        }
        *rd[i] = p[0];
        *wr[i] = p[1];
        fcntl(p[0], F_SETFL, O_NONBLOCK);
        *(i ? &spec.stderr_fd : &spec.stdout_fd) = p[1];
    }
    pid_t pid;
    int r = process_start(&spec, &pid, e);
    if (r < 0) {
        return r;
    }
    out_wr = fd_close(out_wr);
    err_wr = fd_close(err_wr);
    CLEANUP(fd_close) int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
    int fds[2] = {out_rd, err_rd};
    r = pidfd < 0 ? -errno : wait_end(pidfd, fds, bufs, timeout_ms);
    if (r < 0) {
        kill(pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (r == -ETIMEDOUT) {
        return err_set(e, r, "run %s: not done after %llu ms", s->argv[0],
                       (unsigned long long) timeout_ms);
    }
    if (r < 0) {
        return err_sys(e, r, "run %s", s->argv[0]);
    }
    *ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}

/* Whether the process has ended, maybe without having been reaped. */
static bool has_ended(pid_t pid)
{
    char path[64];
    CLEANUP_STRBUF struct strbuf stat = STRBUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    if (file_read(path, COLLECT_MAX, &stat, NULL) < 0) {
        return true;
    }
    const char *state = strrchr(strbuf_cstr(&stat), ')');
    return !state || !state[1] || state[2] == 'Z' || state[2] == 'X';
}

char *tool_path(const char *name)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t n = strcspn(path, ":");
        CLEANUP_FREE char *file = xasprintf("%.*s/%s", (int) n, path, name);
        if (access(file, X_OK) == 0) {
            return TAKE(file);
        }
        path += n + (path[n] == ':');
    }
    return NULL;
}

bool tool_exists(const char *name)
{
    CLEANUP_FREE char *path = tool_path(name);
    return path != NULL;
}

bool process_is(pid_t pid, const char *needle)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    char path[64];
    CLEANUP_STRBUF struct strbuf cmd = STRBUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int) pid);
    /* It is empty for a moment while the process executes another program. */
    for (unsigned i = 0; i < EXEC_MS && cmd.size == 0; i++) {
        if (file_read(path, COLLECT_MAX, &cmd, NULL) < 0 || (cmd.size == 0 && has_ended(pid))) {
            return false;
        }
        if (cmd.size == 0) {
            nanosleep(&pause, NULL);
        }
    }
    if (cmd.size == 0) {
        return false;
    }
    for (size_t i = 0; i < cmd.size; i++) {
        if (cmd.data[i] == '\0') {
            cmd.data[i] = ' ';
        }
    }
    return strstr(cmd.data, needle) != NULL;
}

/* ---- files ---- */

static int write_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *) data + done, size - done);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        done += n > 0 ? (size_t) n : 0;
    }
    return 0;
}

int sysctl_set(const char *path, const char *value, struct err *e)
{
    CLEANUP_FREE char *file = xasprintf("/proc/sys/%s", path);
    CLEANUP(fd_close) int fd = open(file, O_WRONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : write_all(fd, value, strlen(value));
    return r < 0 ? err_sys(e, r, "set sysctl %s to %s", path, value) : 0;
}

int sysctl_silence(const char *ifname, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("net/ipv6/conf/%s/disable_ipv6", ifname);
    int r = sysctl_set(path, "1", e);
    return r == -ENOENT ? 0 : r; /* A kernel without this setting. */
}

static int replace_file(const char *path, const void *data, size_t size, unsigned mode, bool sync,
                        struct err *e)
{
    CLEANUP_FREE char *tmp = xasprintf("%s.XXXXXX", path);
    CLEANUP(fd_close) int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "write %s", path);
    }
    int r = write_all(fd, data, size);
    if (r == 0 && (fchmod(fd, mode) < 0 || (sync && fsync(fd) < 0) || rename(tmp, path) < 0)) {
        r = -errno;
    }
    if (r < 0) {
        unlink(tmp);
        return err_sys(e, r, "write %s", path);
    }
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t size, unsigned mode, struct err *e)
{
    return replace_file(path, data, size, mode, true, e);
}

int file_write_unsynced(const char *path, const void *data, size_t size, unsigned mode,
                        struct err *e)
{
    return replace_file(path, data, size, mode, false, e);
}

int file_open(const char *path, int *ret_fd, struct err *e)
{
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return err_sys(e, -errno, "read %s", path);
    }
    if (S_ISDIR(st.st_mode)) {
        return err_sys(e, -EISDIR, "read %s", path);
    }
    if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
        return err_set(e, -EINVAL, "read %s: is not a regular file", path);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

int file_read(const char *path, size_t max, struct strbuf *out, struct err *e)
{
    CLEANUP(fd_close) int fd = -1;
    int r = file_open(path, &fd, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    char buf[16384];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_sys(e, -errno, "read %s", path);
        }
        if ((size_t) n > max - b.size) {
            return err_set(e, -EFBIG, "read %s: larger than %zu bytes", path, max);
        }
        strbuf_add(&b, buf, (size_t) n);
    }
    r = strbuf_add(out, strbuf_cstr(&b), b.size);
    return r < 0 ? err_sys(e, r, "read %s", path) : 0;
}

int dir_make(const char *path, unsigned mode, struct err *e)
{
    CLEANUP_FREE char *p = xstrdup(path);
    for (char *slash = p;;) {
        slash = *slash ? strchr(slash + 1, '/') : NULL;
        if (slash) {
            *slash = '\0';
        }
        if (mkdir(p, mode) < 0) {
            struct stat st;
            int r = -errno;
            if (r != -EEXIST) {
                return err_sys(e, r, "make the directory %s", p);
            }
            if (stat(p, &st) < 0 || !S_ISDIR(st.st_mode)) {
                return err_sys(e, -ENOTDIR, "make the directory %s", p);
            }
        }
        if (!slash) {
            return 0;
        }
        *slash = '/';
    }
}

/* Removes the entries of the directory 'fd' (taken over); 'path' is for the error. */
static int remove_entries(int fd, const char *path, struct err *e)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        int r = err_sys(e, -errno, "remove %s", path);
        fd_close(fd);
        return r;
    }
    int r = 0;
    struct dirent *ent;
    while (r == 0 && (ent = readdir(d))) {
        if (streq(ent->d_name, ".") || streq(ent->d_name, "..")) {
            continue;
        }
        if (unlinkat(dirfd(d), ent->d_name, 0) == 0 || errno == ENOENT) {
            continue;
        }
        CLEANUP_FREE char *sub = xasprintf("%s/%s", path, ent->d_name);
        r = -errno;
        int sub_fd = r == -EISDIR ? openat(dirfd(d), ent->d_name,
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                  : -1;
        if (sub_fd < 0) {
            r = err_sys(e, r == -EISDIR ? -errno : r, "remove %s", sub);
        } else if ((r = remove_entries(sub_fd, sub, e)) == 0 &&
                   unlinkat(dirfd(d), ent->d_name, AT_REMOVEDIR) < 0) {
            r = err_sys(e, -errno, "remove %s", sub);
        }
    }
    closedir(d);
    return r;
}

int dir_remove(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? 0 : err_sys(e, -errno, "remove %s", path);
    }
    int r = remove_entries(fd, path, e);
    if (r == 0 && rmdir(path) < 0 && errno != ENOENT) {
        r = err_sys(e, -errno, "remove %s", path);
    }
    return r;
}
