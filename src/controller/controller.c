/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

LOG_MODULE("controllers");

#define ACCOUNT_PREFIX "system:serviceaccount:kube-system:"

struct running;

struct watching {
    struct running *running;
    const struct controller_watch *row;
    struct informer_ops ops;
    struct informer *informer;
};

/* A row of the table, and the state of its controller while it runs. */
struct running {
    const struct controller_row *row;
    struct workqueue_stats stats; /* Totals of all its runs. */
    struct workqueue *queue;      /* NULL: the controller does not run. */
    struct api_client *account;   /* Acts as the controller's account; NULL: it has none. */
    void *state;
    struct watching *watching; /* One for each watch of the description. */
    bool synced;
};

struct controller_set {
    struct controller_env env;
    const void *config;
    struct running *running;
    size_t n;
};

/* ---- events ---- */

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    const struct watching *w = ctx;
    if (w->row->changed) {
        w->row->changed(w->running->state, key, old, obj);
    } else if (!w->row->deleted) {
        workqueue_add(w->running->queue, key);
    }
}

static void deleted(void *ctx, const char *key, const struct json *obj)
{
    const struct watching *w = ctx;
    if (w->row->deleted) {
        w->row->deleted(w->running->state, key, obj);
    } else if (!w->row->changed) {
        workqueue_add(w->running->queue, key);
    }
}

static void listing(void *ctx)
{
    const struct watching *w = ctx;
    if (w->row->listing) {
        w->row->listing(w->running->state);
    }
}

static void listed(void *ctx)
{
    const struct watching *w = ctx;
    if (w->row->listed) {
        w->row->listed(w->running->state);
    }
}

static void begin_if_synced(struct running *r)
{
    const struct controller *c = r->row->controller;
    for (size_t i = 0; i < c->n_watches; i++) {
        if (!informer_synced(r->watching[i].informer)) {
            return;
        }
    }
    if (r->synced) {
        return;
    }
    r->synced = true;
    if (c->synced) {
        c->synced(r->state);
    }
    if (!c->starts_queue) {
        workqueue_start(r->queue);
    }
}

static void synced(void *ctx)
{
    const struct watching *w = ctx;
    begin_if_synced(w->running);
}

/* ---- one controller ---- */

static void watch(const struct controller_set *s, struct running *r)
{
    const struct controller *c = r->row->controller;
    r->watching = xcalloc(c->n_watches + 1, sizeof *r->watching);
    for (size_t i = 0; i < c->n_watches; i++) {
        const struct controller_watch *row = &c->watches[i];
        struct watching *w = &r->watching[i];
        *w = (struct watching){.running = r,
                               .row = row,
                               .ops = {.changed = changed,
                                       .deleted = deleted,
                                       .listing = listing,
                                       .listed = listed,
                                       .synced = synced,
                                       .transient = row->transient,
                                       .metadata = row->metadata}};
        w->informer = informer_set_add(s->env.informers, row->api_version, row->plural, row->fields,
                                       &w->ops, w);
        if (row->informer) {
            memcpy((char *) r->state + row->informer - 1, &w->informer, sizeof w->informer);
        }
    }
}

static int start(struct controller_set *s, struct running *r, struct err *e)
{
    const struct controller *c = r->row->controller;
    struct controller_env env = s->env;
    struct api_client *account = NULL;
    if (c->account) {
        CLEANUP_FREE char *user = xasprintf(ACCOUNT_PREFIX "%s", c->account);
        env.client = account = api_client_as(s->env.client, user);
    }
    env.queue = workqueue_new(env.loop, env.client, c->parallel, c->reconcile, NULL);
    int res = c->start(&env, (const char *) s->config + r->row->config, &r->state, e);
    if (res < 0) {
        workqueue_free(env.queue);
        api_client_free(account);
        return res;
    }
    r->queue = env.queue;
    r->account = account;
    r->synced = false;
    workqueue_set_context(r->queue, r->state);
    workqueue_count_into(r->queue, &r->stats);
    watch(s, r);
    begin_if_synced(r); /* Needed here if there is nothing to watch. */
    log_debug("controller started", "name=%s", c->name);
    return 0;
}

static void stop(struct running *r)
{
    const struct controller *c = r->row->controller;
    if (!r->queue) {
        return;
    }
    r->queue = workqueue_free(r->queue);
    for (size_t i = 0; i < c->n_watches; i++) {
        informer_free(r->watching[i].informer);
    }
    free(TAKE(r->watching));
    c->stop(TAKE(r->state));
    r->account = api_client_free(r->account);
    log_debug("controller stopped", "name=%s", c->name);
}

/* ---- the set ---- */

struct controller_set *controller_set_new(const struct controller_env *env,
                                          const struct controller_row *rows, size_t n_rows,
                                          const void *config)
{
    struct controller_set *s = NEW(struct controller_set);
    s->env = *env;
    s->config = config;
    s->running = xcalloc(n_rows + 1, sizeof *s->running);
    s->n = n_rows;
    for (size_t i = 0; i < n_rows; i++) {
        s->running[i].row = &rows[i];
    }
    return s;
}

static void stop_from(struct controller_set *s, size_t first, unsigned has)
{
    for (size_t i = s->n; i-- > first;) {
        if (s->running[i].row->needs & ~has) {
            stop(&s->running[i]);
        }
    }
}

int controller_set_enable(struct controller_set *s, unsigned has, struct err *e)
{
    stop_from(s, 0, has);
    for (size_t i = 0; i < s->n; i++) {
        struct running *r = &s->running[i];
        if (r->queue || (r->row->needs & ~has)) {
            continue;
        }
        int res = start(s, r, e);
        if (res < 0) {
            stop_from(s, i, 0);
            return res;
        }
    }
    return 0;
}

bool controller_set_runs(const struct controller_set *s, const struct controller *c)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->running[i].row->controller == c) {
            return s->running[i].queue != NULL;
        }
    }
    return false;
}

struct controller_set *controller_set_free(struct controller_set *s)
{
    if (s) {
        for (size_t i = s->n; i-- > 0;) {
            stop(&s->running[i]);
        }
        free(s->running);
        free(s);
    }
    return NULL;
}

/* ---- metrics ---- */

static uint64_t runs_of(const struct running *r)
{
    return r->queue != NULL;
}

static uint64_t depth_of(const struct running *r)
{
    return r->queue ? workqueue_depth(r->queue) : 0;
}

static uint64_t adds_of(const struct running *r)
{
    return r->stats.adds;
}

static uint64_t retries_of(const struct running *r)
{
    return r->stats.retries;
}

static uint64_t errors_of(const struct running *r)
{
    return r->stats.errors;
}

static const struct prom_histogram *waited_of(const struct running *r)
{
    return &r->stats.waited;
}

static const struct prom_histogram *worked_of(const struct running *r)
{
    return &r->stats.worked;
}

/* One row a metric: either a value or a histogram of each controller. */
static const struct {
    const char *name, *type, *help;
    uint64_t (*value)(const struct running *r);
    const struct prom_histogram *(*histogram)(const struct running *r);
} metrics[] = {
    {"controller_running", "gauge", "1 while the controller runs in this process.", runs_of, NULL},
    {"workqueue_depth", "gauge", "Keys that wait to be reconciled.", depth_of, NULL},
    {"workqueue_adds_total", "counter", "Keys added to the queue.", adds_of, NULL},
    {"workqueue_retries_total", "counter", "Failed reconciliations, each of which is retried.",
     retries_of, NULL},
    {"workqueue_errors_total", "counter",
     "Failed reconciliations other than conflicts with another writer.", errors_of, NULL},
    {"workqueue_queue_duration_seconds", "histogram",
     "Seconds that a key waited before it was reconciled.", NULL, waited_of},
    {"workqueue_work_duration_seconds", "histogram",
     "Seconds that the reconciliation of a key took, requests included.", NULL, worked_of},
};

void controller_set_write_metrics(const struct controller_set *s, struct strbuf *out)
{
    for (size_t m = 0; m < ARRAY_SIZE(metrics); m++) {
        prom_head(out, metrics[m].name, metrics[m].type, metrics[m].help);
        for (size_t i = 0; i < s->n; i++) {
            const struct running *r = &s->running[i];
            CLEANUP_FREE char *label = xasprintf("name=\"%s\"", r->row->controller->name);
            if (metrics[m].histogram) {
                prom_histogram_write(metrics[m].histogram(r), metrics[m].name, label, out);
            } else {
                strbuf_addf(out, "%s{%s} %" PRIu64 "\n", metrics[m].name, label,
                            metrics[m].value(r));
            }
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct running *r = &s->running[i];
        if (r->queue && r->row->controller->write_metrics) {
            r->row->controller->write_metrics(r->state, out);
        }
    }
}
