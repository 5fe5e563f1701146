/* SPDX-License-Identifier: Apache-2.0 */
#include "router/driver_priv.h"

#include "base/log.h"
#include "base/timeutil.h"
#include "net/loop/process.h"
#include "router/process.h"

#include <signal.h>
#include <stdio.h>

LOG_MODULE("router");

#define STOP_STEP_MS 20
#define RELOAD_AGAIN_MIN_MS 100
#define RELOAD_AGAIN_MAX_MS 60000
#define START_AGAIN_MIN_MS 50
#define START_AGAIN_MAX_MS 10000

void want_free(void *w)
{
    free(((struct want *) w)->value);
    free(w);
}

static void slot_free(void *s)
{
    smap_done(&((struct slot *) s)->servers);
    free(s);
}

static void shape_free(void *s)
{
    route_plan_free(((struct shape *) s)->plan);
    free(s);
}

static void item_free(void *i)
{
    struct item *item = i;
    route_plan_free(item->plan);
    route_plan_free(item->pending);
    list_remove(&item->waiting);
    free(item->key);
    free(item);
}

void driver_touch(struct driver *d)
{
    if (d->dirty_ns == 0) {
        d->dirty_ns = time_mono_ns();
    }
    loop_task_queue(&d->commit);
}

void driver_touch_slot(struct driver *d, struct slot *s)
{
    list_remove(&s->touched);
    list_push_back(&d->touched_slots, &s->touched);
    driver_touch(d);
}

/* ---- backends ---- */

static struct shape *shape_of(struct driver *d, const char *id)
{
    struct shape *s = smap_get(&d->shapes, id);
    if (!s) {
        s = NEW(struct shape);
        list_init(&s->free);
        smap_set(&d->shapes, id, s);
    }
    return s;
}

struct shape *driver_shape(struct driver *d, const struct route_plan *p)
{
    struct shape *s = shape_of(d, p->shape_id);
    if (!s->plan) {
        s->plan = NEW(struct route_plan);
        s->plan->shape = xstrdup(p->shape);
        s->plan->common = p->common;
        memcpy(s->plan->shape_id, p->shape_id, sizeof p->shape_id);
    }
    return s;
}

struct slot *driver_slot(struct driver *d, const char *name, const char *shape_id)
{
    struct slot *s = smap_get(&d->slots, name);
    if (!s) {
        s = NEW(struct slot);
        (void) snprintf(s->name, sizeof s->name, "%s", name);
        (void) snprintf(s->shape_id, sizeof s->shape_id, "%s", shape_id);
        smap_init(&s->servers, free);
        list_init(&s->touched);
        list_init(&s->free);
        smap_set(&d->slots, name, s);
    }
    return s;
}

void driver_slot_settle(struct driver *d, struct slot *s)
{
    list_remove(&s->free);
    if (s->exists && !s->owner && smap_size(&s->servers) == 0) {
        list_push_back(&shape_of(d, s->shape_id)->free, &s->free);
    }
}

static void slot_release(struct driver *d, struct item *i)
{
    if (i->slot) {
        shape_of(d, i->slot->shape_id)->used--;
        i->slot->owner = NULL;
        driver_touch_slot(d, i->slot);
        i->slot = NULL;
    }
}

static void slot_take(struct driver *d, struct item *i, struct slot *s)
{
    list_remove(&s->free);
    s->owner = i;
    i->slot = s;
    shape_of(d, s->shape_id)->used++;
    driver_touch_slot(d, s);
}

/* The backend that HAProxy has for one of the plan's keys: that of an earlier run of the router. */
static struct slot *find_former(struct driver *d, const struct route_plan *p)
{
    for (size_t i = 0; i < p->n_entries; i++) {
        const struct route_plan_entry *e = &p->entries[i];
        const char *name = e->key && !e->value ? smap_get(&d->have[e->map], e->key) : NULL;
        struct slot *s = name ? smap_get(&d->slots, name) : NULL;
        if (s && s->exists && !s->owner && streq(s->shape_id, p->shape_id)) {
            return s;
        }
    }
    return NULL;
}

/* ---- plans ---- */

static void want_entries(struct driver *d, struct item *i, bool add)
{
    for (size_t n = 0; n < i->plan->n_entries; n++) {
        const struct route_plan_entry *e = &i->plan->entries[n];
        const char *key = e->key ? e->key : i->slot->name;
        const struct want *present = smap_get(&d->want[e->map], key);
        if (add) {
            struct want *w = NEW(struct want);
            w->owner = i;
            w->value = xstrdup(e->value ? e->value : i->slot->name);
            smap_set(&d->want[e->map], key, w);
        } else if (present && present->owner == i) {
            smap_remove(&d->want[e->map], key);
        }
        smap_set(&d->touched[e->map], key, NULL);
    }
}

static void want_cert(struct driver *d, struct item *i, bool add)
{
    const char *file = i->plan->cert_file;
    if (file) {
        if (add) {
            struct want *w = NEW(struct want);
            w->owner = i;
            smap_set(&d->want_certs, file, w);
        } else {
            smap_remove(&d->want_certs, file);
        }
        smap_set(&d->touched_certs, file, NULL);
    }
}

static void drop_plan(struct driver *d, struct item *i)
{
    if (i->plan) {
        want_entries(d, i, false);
        want_cert(d, i, false);
        i->plan = route_plan_free(i->plan);
    }
}

static void use_plan(struct driver *d, struct item *i, struct route_plan *p, struct slot *s)
{
    drop_plan(d, i);
    if (i->slot != s) {
        slot_release(d, i);
        slot_take(d, i, s);
    }
    i->plan = p;
    want_entries(d, i, true);
    want_cert(d, i, true);
    driver_touch_slot(d, s);
}

void driver_lose_slot(struct driver *d, struct item *i)
{
    want_entries(d, i, false);
    want_cert(d, i, false);
    slot_release(d, i);
    if (i->pending) {
        i->plan = route_plan_free(i->plan);
        return;
    }
    i->pending = TAKE(i->plan);
    list_push_back(&d->waiting, &i->waiting);
}

/* Serves the pending plan; false: there is no backend for it. */
static bool serve(struct driver *d, struct item *i)
{
    struct route_plan *p = i->pending;
    struct slot *s = NULL;
    if (p->passthrough && !d->passthrough) {
        return false;
    }
    if (i->slot && i->slot->exists && streq(i->slot->shape_id, p->shape_id)) {
        s = i->slot;
    } else if (d->ready) {
        s = find_former(d, p);
        struct list *first = s ? NULL : shape_of(d, p->shape_id)->free.next;
        if (first && first != &shape_of(d, p->shape_id)->free) {
            s = CONTAINER_OF(first, struct slot, free);
        }
    }
    if (!s) {
        return false;
    }
    i->pending = NULL;
    list_remove(&i->waiting);
    use_plan(d, i, p, s);
    return true;
}

void driver_serve_waiting(struct driver *d)
{
    struct item *i;
    LIST_FOREACH (i, struct item, waiting, &d->waiting) {
        (void) serve(d, i);
    }
    if (!list_is_empty(&d->waiting) && d->begun && d->ready) {
        driver_reload_soon(d);
    }
}

void driver_set(struct driver *d, const char *key, struct route_plan *p)
{
    struct item *i = smap_get(&d->items, key);
    if (!p) {
        if (i) {
            bool waited = i->pending != NULL;
            drop_plan(d, i);
            slot_release(d, i);
            smap_remove(&d->items, key);
            driver_touch(d);
            if (waited && d->begun && d->ready && !list_is_empty(&d->waiting)) {
                driver_reload_changed(d);
            }
        }
        return;
    }
    if (!i) {
        i = NEW(struct item);
        i->key = xstrdup(key);
        list_init(&i->waiting);
        smap_set(&d->items, key, i);
    }
    (void) driver_shape(d, p);
    bool waited = i->pending && streq(i->pending->shape_id, p->shape_id);
    route_plan_free(i->pending);
    i->pending = p;
    list_remove(&i->waiting);
    list_push_back(&d->waiting, &i->waiting);
    if (d->begun && !serve(d, i) && d->ready) {
        if (waited) {
            driver_reload_soon(d);
        } else {
            driver_reload_changed(d);
        }
    }
}

void driver_begin(struct driver *d)
{
    d->begun = true;
    driver_serve_waiting(d);
    driver_touch(d);
}

/* ---- the driver ---- */

int driver_new(const struct driver_config *cfg, struct driver **ret, struct err *e)
{
    CLEANUP_FREE char *certs = xasprintf("%s/certs", cfg->options->dir);
    int r = dir_make(certs, 0700, e);
    if (r < 0) {
        return r;
    }
    struct driver *d = NEW(struct driver);
    d->cfg = *cfg;
    smap_init(&d->items, item_free);
    smap_init(&d->slots, slot_free);
    smap_init(&d->shapes, shape_free);
    list_init(&d->waiting);
    list_init(&d->touched_slots);
    for (size_t m = 0; m < ROUTE_N_MAPS; m++) {
        smap_init(&d->want[m], want_free);
        smap_init(&d->have[m], free);
        smap_init(&d->touched[m], NULL);
    }
    smap_init(&d->want_certs, want_free);
    smap_init(&d->have_certs, free);
    smap_init(&d->touched_certs, NULL);
    smap_init(&d->have_cas, NULL);
    loop_task_init(&d->commit, cfg->loop, driver_commit, d);
    d->retry = loop_timer_new(cfg->loop, driver_retry, d);
    d->dying = loop_timer_new(cfg->loop, driver_delete_dying, d);
    d->reload_timer = loop_timer_new(cfg->loop, driver_reload_now, d);
    d->stop_timer = NULL;
    d->reload_again = BACKOFF_INIT(MAX(cfg->reload_ms, RELOAD_AGAIN_MIN_MS), RELOAD_AGAIN_MAX_MS);
    d->start_again = BACKOFF_INIT(START_AGAIN_MIN_MS, START_AGAIN_MAX_MS);
    (void) snprintf(d->state.why, sizeof d->state.why, "HAProxy was not started yet");
    *ret = d;
    driver_retry(d);
    return 0;
}

const struct driver_state *driver_state(const struct driver *d)
{
    struct driver_state *s = (struct driver_state *) &d->state;
    s->running = d->ready;
    s->synced = d->ready && d->begun && list_is_empty(&d->waiting) && d->dirty_ns == 0;
    s->routes = smap_size(&d->items);
    s->backends = smap_size(&d->slots);
    return s;
}

const char *driver_route_of(const struct driver *d, const char *backend)
{
    const struct slot *s = smap_get(&d->slots, backend);
    return s && s->owner ? s->owner->key : NULL;
}

void driver_show_stat(struct driver *d, driver_stat_fn *fn, void *ctx)
{
    if (d->runtime && d->ready) {
        haproxy_conn_send(d->runtime, "show stat", NULL, fn, ctx);
    } else {
        fn(ctx, NULL, 0);
    }
}

static void on_stop_step(void *ctx)
{
    struct driver *d = ctx;
    bool late = loop_now_ms(d->cfg.loop) >= d->stop_deadline_ms;
    if (haproxy_signal(d->cfg.options->dir, 0) > 0 && !late) {
        loop_timer_arm(d->stop_timer, STOP_STEP_MS);
        return;
    }
    if (late) {
        log_warn("HAProxy had connections when its time to stop was over; they are cut");
        (void) haproxy_signal(d->cfg.options->dir, SIGKILL);
    }
    d->stopped(d->stopped_ctx);
}

void driver_stop(struct driver *d, uint64_t timeout_ms, loop_fn *done, void *ctx)
{
    d->stopping = true;
    d->stopped = done;
    d->stopped_ctx = ctx;
    d->stop_deadline_ms = loop_now_ms(d->cfg.loop) + timeout_ms;
    (void) haproxy_signal(d->cfg.options->dir, SIGUSR1);
    d->stop_timer = loop_timer_new(d->cfg.loop, on_stop_step, d);
    loop_timer_arm(d->stop_timer, 0);
}

struct driver *driver_free(struct driver *d)
{
    if (!d) {
        return NULL;
    }
    loop_task_cancel(&d->commit);
    loop_timer_free(d->retry);
    loop_timer_free(d->dying);
    loop_timer_free(d->reload_timer);
    loop_timer_free(d->stop_timer);
    loop_child_free(d->child);
    haproxy_conn_free(d->runtime);
    haproxy_conn_free(d->probe);
    smap_done(&d->items);
    smap_done(&d->slots);
    smap_done(&d->shapes);
    for (size_t m = 0; m < ROUTE_N_MAPS; m++) {
        smap_done(&d->want[m]);
        smap_done(&d->have[m]);
        smap_done(&d->touched[m]);
    }
    smap_done(&d->want_certs);
    smap_done(&d->have_certs);
    smap_done(&d->touched_certs);
    smap_done(&d->have_cas);
    said_done(&d->reload_error);
    said_done(&d->start_error);
    free(d);
    return NULL;
}
