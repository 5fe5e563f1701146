/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual_time.h"

#include "base/timeutil.h"

#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS INT64_C(1000000000)
#define SIGNAL_SET_SIZE 8 /* Bytes, of the kernel's sigset_t. */

static int64_t now_ns = 1767225600 * NS; /* 2026-01-01 */

int64_t virtual_now_ns(void)
{
    return now_ns;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    *ts = (struct timespec){.tv_sec = now_ns / NS, .tv_nsec = now_ns % NS};
    return 0;
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout_ms, const sigset_t *mask)
{
    long r =
        syscall(SYS_epoll_pwait, fd, events, n, timeout_ms < 0 ? -1 : 0, mask, SIGNAL_SET_SIZE);
    if (r == 0 && timeout_ms > 0) {
        now_ns += timeout_ms * NS_PER_MS;
    }
    return (int) r;
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
    return epoll_pwait(fd, events, n, timeout_ms, NULL);
}
