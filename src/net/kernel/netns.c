/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/netns.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREAD_NS "/proc/thread-self/ns/net"

static int check_name(const char *name, struct err *e)
{
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX || strchr(name, '/') || streq(name, ".") || streq(name, "..")) {
        return err_set(e, -EINVAL, "\"%s\" is not a name for a network namespace", name);
    }
    return 0;
}

/* Makes NETNS_DIR a shared mount, as iproute2 does, so that creation and removal of namespaces
 * here take effect in other mount namespaces, too. */
static int dir_prepare(struct err *e)
{
    int r = dir_make(NETNS_DIR, 0755, e);
    if (r < 0) {
        return r;
    }
    /* The lock keeps two programs from mounting it on itself twice; iproute2 takes the same. */
    CLEANUP(fd_close) int lock = open(NETNS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0 || flock(lock, LOCK_EX) < 0) {
        return err_sys(e, -errno, "lock %s", NETNS_DIR);
    }
    if (mount("", NETNS_DIR, "none", MS_SHARED | MS_REC, NULL) == 0) {
        return 0;
    }
    if (errno != EINVAL || mount(NETNS_DIR, NETNS_DIR, "none", MS_BIND | MS_REC, NULL) < 0 ||
        mount("", NETNS_DIR, "none", MS_SHARED | MS_REC, NULL) < 0) {
        return err_sys(e, -errno, "mount %s", NETNS_DIR);
    }
    return 0;
}

static int lo_up(struct err *e)
{
    CLEANUP(fd_close) int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &req) < 0) {
        return err_sys(e, -errno, "bring up lo");
    }
    return 0;
}

/* Creates a namespace on this thread and mounts it on 'path', which exists. */
static int create_at(const char *path, struct err *e)
{
    int back = open(THREAD_NS, O_RDONLY | O_CLOEXEC);
    if (back < 0) {
        return err_sys(e, -errno, "open %s", THREAD_NS);
    }
    if (unshare(CLONE_NEWNET) < 0) {
        int r = err_sys(e, -errno, "make a network namespace");
        fd_close(back);
        return r;
    }
    int r = lo_up(e);
    if (r == 0 && mount(THREAD_NS, path, "none", MS_BIND, NULL) < 0) {
        r = err_sys(e, -errno, "mount it on %s", path);
    }
    netns_leave(back);
    return r;
}

int netns_create(const char *name, struct err *e)
{
    int r = check_name(name, e);
    if (r < 0 || (r = dir_prepare(e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *path = xasprintf("%s/%s", NETNS_DIR, name);
    int fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0) {
        return errno == EEXIST ? err_set(e, -EEXIST, "network namespace %s exists already", name)
                               : err_sys(e, -errno, "create %s", path);
    }
    fd_close(fd);
    if ((r = create_at(path, e)) < 0) {
        unlink(path);
        err_prefix(e, "create network namespace %s", name);
    }
    return r;
}

int netns_delete(const char *name, struct err *e)
{
    int r = check_name(name, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *path = xasprintf("%s/%s", NETNS_DIR, name);
    return netns_release(path, e);
}

int netns_hold(const char *path, int *ret_fd, struct err *e)
{
    if (netns_open(path, ret_fd, NULL) == 0) {
        return 0;
    }
    CLEANUP(fd_close)
    int fd = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0444);
    if (fd < 0) {
        return err_sys(e, -errno, "create %s", path);
    }
    int r = create_at(path, e);
    if (r < 0) {
        unlink(path);
        return err_prefix(e, "create a network namespace");
    }
    return netns_open(path, ret_fd, e);
}

int netns_release(const char *path, struct err *e)
{
    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
    }
    if (errno != EINVAL && errno != ENOENT) { /* -EINVAL: not, or no longer, mounted. */
        return err_sys(e, -errno, "unmount %s", path);
    }
    return unlink(path) < 0 && errno != ENOENT ? err_sys(e, -errno, "remove %s", path) : 0;
}

int netns_open(const char *name_or_path, int *ret_fd, struct err *e)
{
    CLEANUP_FREE char *path = strchr(name_or_path, '/')
                                  ? xstrdup(name_or_path)
                                  : xasprintf("%s/%s", NETNS_DIR, name_or_path);
    /* O_NONBLOCK: the path may come from elsewhere and be a pipe. */
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "open network namespace %s", path);
    }
    if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
        return err_set(e, -EINVAL, "%s is not a network namespace", path);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

int netns_enter(int ns_fd, int *ret_back, struct err *e)
{
    return netns_enter_from(-1, ns_fd, ret_back, e);
}

int netns_enter_from(int home, int ns_fd, int *ret_back, struct err *e)
{
    CLEANUP(fd_close)
    int back = home < 0 ? open(THREAD_NS, O_RDONLY | O_CLOEXEC) : fcntl(home, F_DUPFD_CLOEXEC, 0);
    if (back < 0) {
        return err_sys(e, -errno, "open %s", THREAD_NS);
    }
    if (setns(ns_fd, CLONE_NEWNET) < 0) {
        return err_sys(e, -errno, "enter network namespace");
    }
    *ret_back = fd_take(&back);
    return 0;
}

void netns_leave(int back)
{
    if (setns(back, CLONE_NEWNET) < 0) {
        fprintf(stderr, "tenet: leave network namespace: %s\n", strerror(errno));
        abort();
    }
    fd_close(back);
}

/* ---- processes ---- */

static bool process_in(pid_t pid, dev_t dev, ino_t ino)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int) pid);
    return stat(path, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static void wait_gone(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR) {
    }
}

/* One pass over all processes; returns the number of killed ones. The next pass finds processes
 * forked meanwhile. */
static int kill_pass(dev_t dev, ino_t ino, struct err *e)
{
    DIR *proc = opendir("/proc");
    if (!proc) {
        return err_sys(e, -errno, "open /proc");
    }
    CLEANUP_FREE int *pidfds = NULL;
    size_t n = 0, cap = 0;
    struct dirent *ent;
    int r = 0;
    while (r == 0 && (ent = readdir(proc))) {
        uint64_t pid;
        if (str_to_u64(ent->d_name, INT32_MAX, &pid) < 0 || (pid_t) pid == getpid() ||
            !process_in((pid_t) pid, dev, ino)) {
            continue;
        }
        /* Checks the process again with the descriptor open: another process may have got the
         * number in between. */
        int pidfd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (pidfd < 0 || !process_in((pid_t) pid, dev, ino)) {
            fd_close(pidfd);
            continue;
        }
        if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH) {
            r = err_sys(e, -errno, "kill process %d", (int) pid);
        }
        pidfds = grow(pidfds, &cap, n + 1, sizeof *pidfds);
        pidfds[n++] = pidfd;
    }
    closedir(proc);
    for (size_t i = 0; i < n; i++) {
        if (r == 0) {
            wait_gone(pidfds[i]);
        }
        fd_close(pidfds[i]);
    }
    return r < 0 ? r : (int) n;
}

int netns_kill_processes(const char *name, struct err *e)
{
    CLEANUP(fd_close) int ns = -1;
    int r = netns_open(name, &ns, e);
    struct stat st;
    if (r < 0) {
        return r;
    }
    if (fstat(ns, &st) < 0) {
        return err_sys(e, -errno, "look at network namespace %s", name);
    }
    int total = 0;
    do {
        if ((r = kill_pass(st.st_dev, st.st_ino, e)) < 0) {
            return err_prefix(e, "kill the processes of network namespace %s", name);
        }
        total += r;
    } while (r > 0);
    return total;
}
