/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cni/reaper.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>

struct job {
    struct list node;
    struct podlink link; /* The link's descriptor and text are owned. */
    reaper_fn *fn;       /* NULL: it was called already. */
    void *ctx;
    int result;
    struct err error;
};

struct reaper {
    struct loop *loop;
    struct list jobs;
};

struct reaper *reaper_new(struct loop *l)
{
    struct reaper *r = NEW(struct reaper);
    r->loop = l;
    list_init(&r->jobs);
    return r;
}

struct reaper *reaper_free(struct reaper *r)
{
    if (r) {
        assert(list_is_empty(&r->jobs));
        free(r);
    }
    return NULL;
}

static void work(void *ctx)
{
    struct job *j = ctx;
    j->result = podlink_delete(&j->link, &j->error);
}

static void done(void *ctx)
{
    struct job *j = ctx;
    list_remove(&j->node);
    if (j->fn) {
        j->fn(j->ctx, j->result, j->error.text);
    }
    fd_close(j->link.netns_fd);
    free((char *) (uintptr_t) j->link.netns);
    free(j);
}

void reaper_delete(struct reaper *r, const struct podlink *l, reaper_fn *fn, void *ctx)
{
    struct job *j = NEW(struct job);
    j->fn = fn;
    j->ctx = ctx;
    j->link = *l;
    j->link.netns_fd = l->netns_fd < 0 ? -1 : fcntl(l->netns_fd, F_DUPFD_CLOEXEC, 0);
    j->link.netns = l->netns ? xstrdup(l->netns) : NULL;
    list_push_back(&r->jobs, &j->node);
    loop_work(r->loop, work, done, j);
}

void reaper_link_gone(struct reaper *r, const char *name)
{
    struct job *j;
    LIST_FOREACH (j, struct job, node, &r->jobs) {
        if (j->fn && streq(j->link.host_if, name)) {
            reaper_fn *fn = TAKE(j->fn);
            fn(j->ctx, 0, "");
            return;
        }
    }
}

size_t reaper_busy(const struct reaper *r)
{
    return list_size(&r->jobs);
}
