/* SPDX-License-Identifier: Apache-2.0 */
#include "node/reaper.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "node/podlink.h"

#include <stdio.h>

struct job {
    struct list node;
    char host_if[IF_NAMESIZE];
    reaper_fn *fn; /* NULL: was called. */
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
    j->result = podlink_delete(j->host_if, &j->error);
}

static void done(void *ctx)
{
    struct job *j = ctx;
    list_remove(&j->node);
    if (j->fn) {
        j->fn(j->ctx, j->result, j->error.text);
    }
    free(j);
}

void reaper_delete(struct reaper *r, const char *host_if, reaper_fn *fn, void *ctx)
{
    struct job *j = NEW(struct job);
    j->fn = fn;
    j->ctx = ctx;
    snprintf(j->host_if, sizeof j->host_if, "%s", host_if);
    list_push_back(&r->jobs, &j->node);
    loop_work(r->loop, work, done, j);
}

void reaper_link_gone(struct reaper *r, const char *name)
{
    struct job *j;
    LIST_FOREACH (j, struct job, node, &r->jobs) {
        if (j->fn && streq(j->host_if, name)) {
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
