/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/reserve.h"

#include "base/mem.h"
#include "datapath/ebpf/program.h"
#include "net/loop/process.h"

struct reserve {
    struct hooks hooks;
    char *dir;
    struct hook_place places[RESERVE_MAX];
    bool taken[RESERVE_MAX]; /* Written by the worker until it is done. */
    size_t n;
    loop_fn *done;
    void *ctx;
    bool over, abandoned, used;
};

static void destroy(struct reserve *r)
{
    for (size_t i = 0; i < r->n && !r->used; i++) {
        if (r->taken[i]) {
            hook_forget(&r->hooks, r->places[i].ifname);
        }
    }
    free(r->dir);
    free(r);
}

static void take(void *ctx)
{
    struct reserve *r = ctx;
    CLEANUP(fd_close) int idle = program_load_idle();
    for (size_t i = 0; idle >= 0 && i < r->n; i++) {
        r->taken[i] = hook_reserve(&r->hooks, &r->places[i], idle);
    }
}

static void over(void *ctx)
{
    struct reserve *r = ctx;
    r->over = true;
    if (r->abandoned) {
        destroy(r);
    } else {
        r->done(r->ctx);
    }
}

struct reserve *reserve_begin(struct loop *l, const struct hooks *h,
                              const struct hook_place *places, size_t n, loop_fn *done, void *ctx)
{
    struct reserve *r = NEW(struct reserve);
    r->dir = xstrdup(h->dir);
    r->hooks = (struct hooks){.tcx = h->tcx, .dir = r->dir};
    r->n = MIN(n, RESERVE_MAX);
    memcpy(r->places, places, r->n * sizeof *places);
    r->done = done;
    r->ctx = ctx;
    loop_work(l, take, over, r);
    return r;
}

bool reserve_is_over(const struct reserve *r)
{
    return r->over;
}

struct reserve *reserve_free(struct reserve *r, bool used)
{
    if (r) {
        r->used = used;
        r->abandoned = true;
        if (r->over) {
            destroy(r);
        }
    }
    return NULL;
}
