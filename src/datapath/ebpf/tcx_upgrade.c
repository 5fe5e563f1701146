/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/tcx_upgrade.h"

#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <unistd.h>

LOG_MODULE("ebpf");

struct tcx_upgrade {
    struct tcx_upgrade_config c;
    struct hooks hooks; /* Copies of those in 'c', which the worker may outlive. */
    char *dir;
    int prog_fd;
    struct loop_timer *quiet;
    bool working, abandoned;
    /* Used by the worker while it runs. */
    struct hook_place place;
    int result;
    struct err error;
};

static void destroy(struct tcx_upgrade *x)
{
    close(x->prog_fd);
    free(x->dir);
    free(x);
}

static void attach(void *ctx)
{
    struct tcx_upgrade *x = ctx;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    err_clear(&x->error);
    x->result = rtnl_open(&r, &x->error);
    if (x->result == 0) {
        x->result = hook_attach(&x->hooks, r, HOOK_TCX, x->place.ifname, x->place.ifindex,
                                x->prog_fd, &x->error);
    }
}

static void work_on(void *ctx);

static void attached(void *ctx)
{
    struct tcx_upgrade *x = ctx;
    static struct log_limit limit;
    x->working = false;
    if (x->abandoned) {
        destroy(x);
        return;
    }
    if (!if_nametoindex(x->place.ifname)) {
        hook_forget(&x->hooks, x->place.ifname); /* The removal may have been reported before. */
    } else if (x->result < 0) {
        log_limited(&limit, LOG_WARN, "a pod's link keeps its slower hook", "link=%s error=\"%s\"",
                    x->place.ifname, x->error.text);
    }
    if (!loop_timer_armed(x->quiet)) {
        work_on(x);
    }
}

static void work_on(void *ctx)
{
    struct tcx_upgrade *x = ctx;
    if (!x->working && x->c.next(x->c.ctx, &x->place)) {
        x->working = true;
        loop_work(x->c.loop, attach, attached, x);
    }
}

struct tcx_upgrade *tcx_upgrade_new(const struct tcx_upgrade_config *c, int prog_fd)
{
    struct tcx_upgrade *x = NEW(struct tcx_upgrade);
    x->c = *c;
    x->dir = xstrdup(c->hooks->dir);
    x->hooks = (struct hooks){.tcx = c->hooks->tcx, .dir = x->dir};
    x->prog_fd = fcntl(prog_fd, F_DUPFD_CLOEXEC, 0);
    x->quiet = loop_timer_new(c->loop, work_on, x);
    return x;
}

void tcx_upgrade_defer(struct tcx_upgrade *x)
{
    if (x) {
        loop_timer_arm(x->quiet, TCX_UPGRADE_QUIET_MS);
    }
}

struct tcx_upgrade *tcx_upgrade_free(struct tcx_upgrade *x)
{
    if (x) {
        loop_timer_free(x->quiet);
        x->abandoned = true;
        if (!x->working) {
            destroy(x);
        }
    }
    return NULL;
}
