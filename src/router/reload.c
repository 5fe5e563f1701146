/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file, and the starts and reloads of HAProxy. */
#include "base/log.h"
#include "base/timeutil.h"
#include "base/xxh64.h"
#include "net/loop/process.h"
#include "router/driver_priv.h"
#include "router/process.h"

#include <stdio.h>
#include <unistd.h>

LOG_MODULE("router");

#define RETRY_MS 50
#define SWITCH_MS 60000
#define STARTED_MS 10000 /* HAProxy that ran for so long had no trouble at its start. */
#define SPARE_MIN 16u
#define SPARE_PART 4u /* One free backend for each four in use. */

/* ---- the configuration ---- */

static uint64_t head_hash(const struct driver *d)
{
    CLEANUP_STRBUF struct strbuf head = STRBUF_INIT;
    route_plan_write_head(d->cfg.options, "", &head);
    return xxh64(strbuf_cstr(&head), head.size, 0);
}

/* "tenet-router HASH GENERATION:..." */
bool driver_is_current(const struct driver *d, const char *description)
{
    char want[48];
    (void) snprintf(want, sizeof want, "tenet-router %016llx ", (unsigned long long) head_hash(d));
    return str_has_prefix(description, want);
}

static bool needs_passthrough(const struct driver *d)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &d->items) {
        const struct item *i = e->value;
        if ((i->plan && i->plan->passthrough) || (i->pending && i->pending->passthrough)) {
            return true;
        }
    }
    return false;
}

static void new_slot_name(struct driver *d, const char *shape_id, char out[SLOT_NAME_SIZE])
{
    (void) snprintf(out, SLOT_NAME_SIZE, "be_%s_%llu", shape_id,
                    (unsigned long long) d->next_slot++);
}

static size_t free_backends_needed(const struct driver *d, const struct shape *shape)
{
    struct item *i;
    size_t n = 0;
    LIST_FOREACH (i, struct item, waiting, &d->waiting) {
        n += streq(i->pending->shape_id, shape->plan->shape_id);
    }
    return shape->plan->common ? n + MAX(SPARE_MIN, (shape->used + n) / SPARE_PART) : n;
}

/* Backends that exist stay, with their servers: a route may take a free one during the reload.
 * Then come free ones of the shapes that are common or waited for. */
static void write_backends(struct driver *d, struct strbuf *out)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &d->slots) {
        const struct slot *s = e->value;
        const struct shape *shape = smap_get(&d->shapes, s->shape_id);
        if (s->owner && s->owner->plan) {
            route_plan_write_backend(s->name, s->owner->plan, s->owner->plan, out);
        } else if (s->exists && shape && shape->plan && shape->plan->common) {
            route_plan_write_backend(s->name, shape->plan, NULL, out);
        }
    }
    SMAP_FOREACH (e, &d->shapes) {
        const struct shape *shape = e->value;
        size_t have = list_size(&shape->free);
        size_t n = shape->plan ? free_backends_needed(d, shape) : 0;
        for (; n > have; n--) {
            char name[SLOT_NAME_SIZE];
            new_slot_name(d, e->key, name);
            route_plan_write_backend(name, shape->plan, NULL, out);
        }
    }
}

static int write_maps(struct driver *d, struct err *e)
{
    for (size_t m = 0; m < ROUTE_N_MAPS; m++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct smap_entry *x;
        SMAP_FOREACH (x, &d->want[m]) {
            strbuf_addf(&out, "%s %s\n", x->key, ((struct want *) x->value)->value);
        }
        CLEANUP_FREE char *path = driver_path(d, "", route_plan_map_file((enum route_plan_map) m));
        int r = file_write_unsynced(path, strbuf_cstr(&out), out.size, 0600, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int write_plan_files(struct driver *d, const struct route_plan *p, struct err *e)
{
    int r = 0;
    if (p->cert_file) {
        CLEANUP_FREE char *path = driver_path(d, "certs/", p->cert_file);
        r = file_write_unsynced(path, p->cert, strlen(p->cert), 0600, e);
    }
    if (r == 0 && p->ca_file) {
        CLEANUP_FREE char *path = driver_path(d, "certs/", p->ca_file);
        r = file_write_unsynced(path, p->ca, strlen(p->ca), 0600, e);
    }
    return r;
}

static int write_certs(struct driver *d, struct err *e)
{
    CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
    struct smap_entry *x;
    int r = 0;
    SMAP_FOREACH (x, &d->items) {
        const struct item *i = x->value;
        if (r == 0 && i->plan) {
            r = write_plan_files(d, i->plan, e);
            if (i->plan->cert_file) {
                route_plan_write_cert(d->cfg.options, i->plan, &list);
            }
        }
    }
    CLEANUP_FREE char *path = driver_path(d, "", "certs.list");
    return r < 0 ? r : file_write_unsynced(path, strbuf_cstr(&list), list.size, 0600, e);
}

static void make_common_shapes(struct driver *d)
{
    struct route_plan *p;
    for (size_t i = 0; (p = route_plan_common(d->cfg.options, i)); i++) {
        (void) driver_shape(d, p);
        route_plan_free(p);
    }
}

static int write_config(struct driver *d, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    char description[64];
    d->cfg.options->passthrough = d->cfg.options->passthrough || needs_passthrough(d);
    make_common_shapes(d);
    d->generation = (uint64_t) time_wall_ms();
    d->former_slot = d->next_slot;
    (void) snprintf(description, sizeof description, "tenet-router %016llx %llu",
                    (unsigned long long) head_hash(d), (unsigned long long) d->generation);
    route_plan_write_head(d->cfg.options, description, &out);
    write_backends(d, &out);
    int r = write_maps(d, e);
    if (r == 0) {
        r = write_certs(d, e);
    }
    CLEANUP_FREE char *path = driver_path(d, "", "haproxy.cfg.new");
    return r < 0 ? r : file_write_unsynced(path, strbuf_cstr(&out), out.size, 0600, e);
}

/* ---- processes ---- */

static void start_failed(struct driver *d, const char *why)
{
    uint64_t now = loop_now_ms(d->cfg.loop);
    (void) backoff_fail(&d->start_again, now, (uint32_t) now);
    if (said_is_news(&d->start_error, why)) {
        log_error("HAProxy does not run; it is started again", "error=\"%s\"", why);
    }
}

static void on_child(void *ctx, int status)
{
    struct driver *d = ctx;
    char why[48];
    d->child = loop_child_free(d->child);
    if (!d->stopping) {
        backoff_lasted(&d->start_again, loop_now_ms(d->cfg.loop) - d->started_ms, STARTED_MS);
        (void) snprintf(why, sizeof why, "it ended with status %d", status);
        start_failed(d, why);
        loop_timer_arm(d->retry, RETRY_MS);
    }
}

static int start(struct driver *d, struct err *e)
{
    pid_t pid;
    int r = haproxy_start(d->cfg.haproxy, d->cfg.options->dir, &pid, e);
    if (r == 0) {
        d->state.starts++;
        d->started_ms = loop_now_ms(d->cfg.loop);
        loop_child_free(d->child);
        d->child = loop_child_new(d->cfg.loop, pid, on_child, d);
        log_info("HAProxy started", "pid=%d", (int) pid);
    }
    return r;
}

static void on_work(void *ctx)
{
    struct driver *d = ctx;
    struct err e = {0};
    CLEANUP_FREE char *path = driver_path(d, "", "haproxy.cfg.new");
    d->check_result = haproxy_check_config(d->cfg.haproxy, path, &e);
    (void) snprintf(d->check_text, sizeof d->check_text, "%.*s", (int) sizeof d->check_text - 1,
                    e.text);
}

static void on_checked(void *ctx)
{
    struct driver *d = ctx;
    struct err e = {0};
    CLEANUP_FREE char *from = driver_path(d, "", "haproxy.cfg.new");
    CLEANUP_FREE char *to = driver_path(d, "", "haproxy.cfg");
    int r = d->check_result;
    if (r < 0) {
        d->next_slot = d->former_slot; /* The same configuration has the same error. */
        driver_reload_done(d, false, d->check_text);
        return;
    }
    if (rename(from, to) < 0) {
        driver_reload_done(d, false, "cannot replace haproxy.cfg");
        return;
    }
    d->step = RELOAD_SWITCH;
    r = haproxy_reload(d->cfg.options->dir, &e);
    if (r == -ESRCH) {
        r = start(d, &e);
    }
    if (r < 0) {
        driver_reload_done(d, false, e.text);
        return;
    }
    loop_timer_arm(d->retry, 1);
}

void driver_reload_now(void *ctx)
{
    struct driver *d = ctx;
    struct err e;
    if (d->step != RELOAD_NONE || d->stopping) {
        return;
    }
    d->step = RELOAD_CHECK;
    d->reload_started_ms = loop_now_ms(d->cfg.loop);
    if (write_config(d, &e) < 0) {
        driver_reload_done(d, false, e.text);
        return;
    }
    loop_work(d->cfg.loop, on_work, on_checked, d);
}

void driver_reload_soon(struct driver *d)
{
    if (d->step != RELOAD_NONE || loop_timer_armed(d->reload_timer) || d->stopping) {
        return;
    }
    uint64_t now = loop_now_ms(d->cfg.loop);
    uint64_t due = d->reloaded_ms ? d->reloaded_ms + d->cfg.reload_ms : now;
    due = MAX(due, d->reload_again.due_ms);
    loop_timer_arm(d->reload_timer, due > now ? due - now : 1);
}

void driver_reload_changed(struct driver *d)
{
    if (d->reload_again.failures > 0) {
        backoff_reset(&d->reload_again);
        loop_timer_disarm(d->reload_timer);
    }
    driver_reload_soon(d);
}

void driver_reload_done(struct driver *d, bool ok, const char *why)
{
    uint64_t now = loop_now_ms(d->cfg.loop);
    d->step = RELOAD_NONE;
    d->reloaded_ms = now;
    if (ok) {
        d->state.reloads++;
        backoff_reset(&d->reload_again);
        (void) said_is_news(&d->reload_error, NULL);
        prom_histogram_add(&d->state.reload_time,
                           (now - d->reload_started_ms) * (uint64_t) NS_PER_MS);
        log_info("HAProxy has the new configuration", "ms=%llu",
                 (unsigned long long) (now - d->reload_started_ms));
        d->loaded = d->generation;
        d->passthrough = d->cfg.options->passthrough;
        d->resync = true;
        return;
    }
    d->state.failed_reloads++;
    d->state.settled = d->state.settled || d->begun;
    (void) snprintf(d->state.why, sizeof d->state.why, "%.250s", why);
    (void) backoff_fail(&d->reload_again, now, (uint32_t) d->generation);
    if (said_is_news(&d->reload_error, why)) {
        log_error("the configuration was not loaded; HAProxy goes on with the former one",
                  "error=\"%s\"", why);
    }
    driver_reload_soon(d);
}

static bool has_config(const struct driver *d)
{
    CLEANUP_FREE char *path = driver_path(d, "", "haproxy.cfg");
    return access(path, F_OK) == 0;
}

/* Connects, starts HAProxy when there is none, and looks for the worker of a reload. */
void driver_retry(void *ctx)
{
    struct driver *d = ctx;
    if (d->stopping) {
        return;
    }
    if (d->resync) {
        driver_disconnect(d);
        d->resync = false;
    }
    if (d->step == RELOAD_SWITCH) {
        driver_look_for_new(d);
        if (loop_now_ms(d->cfg.loop) > d->reload_started_ms + SWITCH_MS) {
            driver_reload_done(d, false, "HAProxy did not start a new worker in time");
        }
        loop_timer_arm(d->retry, RETRY_MS);
        if (d->runtime) {
            return;
        }
    } else {
        d->probe = haproxy_conn_free(d->probe);
    }
    driver_connect(d);
    if (!d->runtime && d->step != RELOAD_CHECK && !d->child &&
        haproxy_master(d->cfg.options->dir) == 0) {
        struct err e;
        bool may_start = d->begun || d->cfg.bind_at_once;
        if (may_start && !has_config(d)) {
            driver_reload_soon(d);
        } else if (may_start && backoff_is_due(&d->start_again, loop_now_ms(d->cfg.loop)) &&
                   start(d, &e) < 0) {
            start_failed(d, e.text);
        }
    }
    if (!d->runtime) {
        loop_timer_arm(d->retry, RETRY_MS);
    }
}
