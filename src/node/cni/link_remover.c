/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cni/link_remover.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>

struct job {
    struct list node;
    struct pod_link link; /* The link's descriptor and text are owned. */
    link_remover_fn *fn;  /* NULL: it was called already. */
    void *ctx;
    int result;
    struct err error;
};

struct link_remover {
    struct loop *loop;
    struct list jobs;
};

struct link_remover *link_remover_new(struct loop *l)
{
    struct link_remover *r = NEW(struct link_remover);
    r->loop = l;
    list_init(&r->jobs);
    return r;
}

struct link_remover *link_remover_free(struct link_remover *r)
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
    j->result = pod_link_delete(&j->link, &j->error);
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

void link_remover_delete(struct link_remover *r, const struct pod_link *l, link_remover_fn *fn,
                         void *ctx)
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

void link_remover_link_gone(struct link_remover *r, const char *name)
{
    struct job *j;
    LIST_FOREACH (j, struct job, node, &r->jobs) {
        if (j->fn && streq(j->link.host_if, name)) {
            link_remover_fn *fn = TAKE(j->fn);
            fn(j->ctx, 0, "");
            return;
        }
    }
}

size_t link_remover_busy(const struct link_remover *r)
{
    return list_size(&r->jobs);
}
