/* SPDX-License-Identifier: Apache-2.0 */
#include "router/process.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK_MS 60000

/* The first line of HAProxy's messages that says what is wrong. */
static const char *first_alert(const struct strbuf *text)
{
    const char *p = strstr(strbuf_cstr(text), "[ALERT]");
    const char *after = p ? strstr(p, ") : ") : NULL; /* "[ALERT]    (PID) : TEXT" */
    return after ? after + strlen(") : ") : p ? p : strbuf_cstr(text);
}

int haproxy_check_config(const char *program, const char *file, struct err *e)
{
    const char *const argv[] = {program, "-c", "-f", file, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, errout = STRBUF_INIT;
    int status;
    s.argv = argv;
    int r = process_run(&s, CHECK_MS, &out, &errout, &status, e);
    if (r < 0 || status == 0) {
        return r;
    }
    const char *p = first_alert(&errout);
    return err_set(e, -EINVAL, "%s refuses %s: %.*s", program, file, (int) strcspn(p, "\n"), p);
}

int haproxy_start(const char *program, const char *dir, pid_t *ret, struct err *e)
{
    CLEANUP_FREE char *config = xasprintf("%s/haproxy.cfg", dir);
    CLEANUP_FREE char *pid = xasprintf("%s/haproxy.pid", dir);
    CLEANUP_FREE char *log = xasprintf("%s/haproxy.log", dir);
    const char *const argv[] = {program, "-W", "-p", pid, "-f", config, NULL};
    CLEANUP(fd_close)
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.stdout_fd = s.stderr_fd = fd;
    s.new_session = true;
    return process_start(&s, ret, e);
}

/* Whether the command line of 'pid' is that of the master or a worker with this file. */
static bool is_haproxy_of(uint64_t pid, const char *pid_file)
{
    CLEANUP_FREE char *path = xasprintf("/proc/%llu/cmdline", (unsigned long long) pid);
    CLEANUP_STRBUF struct strbuf words = STRBUF_INIT;
    if (file_read(path, 65536, &words, NULL) < 0) {
        return false;
    }
    size_t n = strlen(pid_file);
    for (size_t i = 0; i + n + 4 <= words.size; i++) {
        if (memcmp(words.data + i, "-p", 3) == 0 &&
            memcmp(words.data + i + 3, pid_file, n + 1) == 0) {
            return true;
        }
    }
    return false;
}

pid_t haproxy_master(const char *dir)
{
    CLEANUP_FREE char *path = xasprintf("%s/haproxy.pid", dir);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    uint64_t pid;
    if (file_read(path, 64, &text, NULL) < 0) {
        return 0;
    }
    char *nl = text.size ? strchr(text.data, '\n') : NULL;
    if (nl) {
        *nl = '\0';
    }
    if (str_to_u64(strbuf_cstr(&text), INT32_MAX, &pid) < 0 || pid < 2) {
        return 0;
    }
    return is_haproxy_of(pid, path) ? (pid_t) pid : 0;
}

int haproxy_reload(const char *dir, struct err *e)
{
    pid_t pid = haproxy_master(dir);
    if (pid == 0) {
        return err_set(e, -ESRCH, "HAProxy does not run");
    }
    return kill(pid, SIGUSR2) < 0 ? err_sys(e, -errno, "signal HAProxy") : 0;
}

size_t haproxy_signal(const char *dir, int sig)
{
    size_t n = 0;
    CLEANUP_FREE char *path = xasprintf("%s/haproxy.pid", dir);
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        uint64_t pid;
        if (str_to_u64(entry->d_name, INT32_MAX, &pid) == 0 && pid > 1 &&
            is_haproxy_of(pid, path)) {
            n += kill((pid_t) pid, sig) == 0;
        }
    }
    if (proc) {
        closedir(proc);
    }
    return n;
}
