/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop/watchdog.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/notify.h"

#include <stdlib.h>
#include <unistd.h>

#define US_PER_MS 1000
#define PERIOD_MAX_US (UINT64_C(24) * 3600 * 1000 * US_PER_MS)

struct watchdog {
    struct loop_timer *timer;
    uint64_t period_ms;
};

static void report(void *ctx)
{
    struct watchdog *w = ctx;
    notify_manager("WATCHDOG=1");
    loop_timer_arm(w->timer, w->period_ms);
}

struct watchdog *watchdog_new(struct loop *l)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t us = 0, for_pid = 0;
    if (!usec || str_to_u64(usec, PERIOD_MAX_US, &us) < 0 || us < 2 * US_PER_MS) {
        return NULL;
    }
    if (pid && (str_to_u64(pid, INT32_MAX, &for_pid) < 0 || (pid_t) for_pid != getpid())) {
        return NULL;
    }
    struct watchdog *w = NEW(struct watchdog);
    w->period_ms = us / US_PER_MS / 2;
    w->timer = loop_timer_new(l, report, w);
    report(w);
    return w;
}

struct watchdog *watchdog_free(struct watchdog *w)
{
    if (w) {
        loop_timer_free(w->timer);
        free(w);
    }
    return NULL;
}
