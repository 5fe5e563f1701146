/* SPDX-License-Identifier: Apache-2.0 */
/* Running other programs: the lab's daemons and nft.  Never through a shell. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

struct process_spec {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH. */
    const char *const *env;  /* "K=V", NULL-terminated, added to the environment; NULL: none. */
    int netns_fd;            /* -1: stay. */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: /dev/null for stdin, inherited for the others. */
    const char *stdin_text;             /* process_run only: fed to standard input. */
    const int *pass_fds; /* Become descriptors 3, 4, ... with LISTEN_FDS and LISTEN_PID set. */
    size_t n_pass_fds;
    bool new_session; /* setsid, so that it outlives the terminal. */
};
/* Starts it; the error says when the program does not exist. */
#define PROCESS_SPEC_INIT \
    ((struct process_spec){.netns_fd = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1})
int process_start(const struct process_spec *s, pid_t *ret_pid, struct err *e);
/* Runs it to its end within 'timeout_ms' (then it is killed, -ETIMEDOUT; 0: no limit),
 * collecting up to 1 MiB each of standard output and error when the buffers are not NULL.
 * Returns 0 for every exit status, which is stored in '*ret_status' (128 + signal when killed). */
int process_run(const struct process_spec *s, uint64_t timeout_ms, struct strbuf *out,
                struct strbuf *errout, int *ret_status, struct err *e);
/* Owned path of the program 'name' in PATH; NULL: it is not installed. */
char *tool_path(const char *name);
bool tool_exists(const char *name);
/* Whether 'pid' runs and its command line holds 'needle' (guards against pid reuse). */
bool process_is(pid_t pid, const char *needle);

/* /proc/sys values: path with slashes, below /proc/sys, in the thread's network namespace. */
int sysctl_set(const char *path, const char *value, struct err *e);
/* Stops the host from sending on the link by itself, as IPv6 would. */
int sysctl_silence(const char *ifname, struct err *e);
/* Writes 'data' to 'path' through a temporary file and rename. */
int file_write_atomic(const char *path, const void *data, size_t size, unsigned mode,
                      struct err *e);
/* The same without waiting for the disk: for files that must be complete on the running machine,
 * but are not needed after a power failure. */
int file_write_unsynced(const char *path, const void *data, size_t size, unsigned mode,
                        struct err *e);
/* Opens a file to read it, without waiting: '*ret_fd' gets the descriptor (the caller's).
 * -EINVAL: it is neither a regular file nor a character device. A pipe would block the caller
 * until a writer appears. */
int file_open(const char *path, int *ret_fd, struct err *e);
/* Reads at most 'max' bytes of a file opened like file_open; -EFBIG when there are more. */
int file_read(const char *path, size_t max, struct strbuf *out, struct err *e);
/* mkdir -p. */
int dir_make(const char *path, unsigned mode, struct err *e);
/* rm -r, not following links; 0 when absent. */
int dir_remove(const char *path, struct err *e);
