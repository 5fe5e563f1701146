/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's state is read when a connection to a worker is made: after a start, after a reload, and
 * when the router was restarted or a command failed. */
#include "base/log.h"
#include "router/driver_priv.h"
#include "router/process.h"
#include "wire/haproxy.h"

#include <signal.h>
#include <stdio.h>

LOG_MODULE("router");

#define RETRY_MS 50
#define SILENT_MAX 2 /* Connections without an answer until HAProxy is killed. */
#define SLOT_PREFIX "be_"
#define DESCRIPTION "\ndescription: "

void driver_disconnect(struct driver *d)
{
    d->runtime = haproxy_conn_free(d->runtime);
    d->ready = false;
}

static void on_lost(void *ctx)
{
    struct driver *d = ctx;
    bool silent = haproxy_conn_is_silent(d->runtime);
    driver_disconnect(d);
    (void) snprintf(d->state.why, sizeof d->state.why, "HAProxy does not answer");
    if (silent && ++d->silent >= SILENT_MAX && !d->stopping) {
        log_error("HAProxy does not answer; it is killed and started again");
        (void) haproxy_signal(d->cfg.options->dir, SIGKILL);
        d->silent = 0;
    }
    loop_timer_arm(d->retry, RETRY_MS);
}

/* ---- answers ---- */

/* The description in "show info". */
static bool find_description(const char *p, size_t size, char *out, size_t max)
{
    const char *at = memmem(p, size, DESCRIPTION, strlen(DESCRIPTION));
    if (!at) {
        return false;
    }
    at += strlen(DESCRIPTION);
    size_t n = 0;
    while (at + n < p + size && at[n] != '\n' && n + 1 < max) {
        out[n] = at[n];
        n++;
    }
    out[n] = '\0';
    return true;
}

static void on_info(void *ctx, const char *p, size_t size)
{
    struct driver *d = ctx;
    if (p && !find_description(p, size, d->running, sizeof d->running)) {
        d->running[0] = '\0';
    }
}

/* "be_SHAPE_NUMBER" */
static bool parse_slot_name(const char *name, char shape_id[ROUTE_SHAPE_SIZE], uint64_t *ret)
{
    size_t n = ROUTE_SHAPE_SIZE - 1;
    if (!str_has_prefix(name, SLOT_PREFIX) || strlen(name) < strlen(SLOT_PREFIX) + n + 2) {
        return false;
    }
    memcpy(shape_id, name + strlen(SLOT_PREFIX), n);
    shape_id[n] = '\0';
    name += strlen(SLOT_PREFIX) + n;
    return *name == '_' && strspn(shape_id, "0123456789abcdef") == n &&
           str_to_u64(name + 1, UINT32_MAX, ret) == 0;
}

static void on_backends(void *ctx, const char *p, size_t size)
{
    struct driver *d = ctx;
    struct haproxy_word w;
    struct smap_entry *e;
    SMAP_FOREACH (e, &d->slots) {
        struct slot *s = e->value;
        s->exists = false;
        smap_clear(&s->servers);
        list_remove(&s->free);
    }
    for (const char *at = p, *end = p + size; p && haproxy_next_backend(&at, end, &w);) {
        CLEANUP_FREE char *name = haproxy_word_text(&w);
        char shape_id[ROUTE_SHAPE_SIZE];
        uint64_t number;
        if (parse_slot_name(name, shape_id, &number)) {
            driver_slot(d, name, shape_id)->exists = true;
            d->next_slot = MAX(d->next_slot, number + 1);
            d->former_slot = MAX(d->former_slot, number + 1);
        }
    }
}

static void on_servers(void *ctx, const char *p, size_t size)
{
    struct driver *d = ctx;
    struct haproxy_server v;
    for (const char *at = p, *end = p + size; p && haproxy_next_server(&at, end, &v);) {
        CLEANUP_FREE char *backend = haproxy_word_text(&v.backend);
        CLEANUP_FREE char *name = haproxy_word_text(&v.name);
        struct slot *s = smap_get(&d->slots, backend);
        if (s) {
            struct server *have = NEW(struct server);
            have->weight = v.weight;
            have->dying = v.maintenance;
            smap_set(&s->servers, name, have);
        }
    }
}

struct map_question {
    struct driver *d;
    size_t map;
};

static void on_map(void *ctx, const char *p, size_t size)
{
    struct map_question *q = ctx;
    struct haproxy_map_entry v;
    smap_clear(&q->d->have[q->map]);
    /* A map that the configuration does not use is answered by a sentence. */
    bool is_map = p && size > 2 && memcmp(p, "0x", 2) == 0;
    for (const char *at = p, *end = p + size; is_map && haproxy_next_map_entry(&at, end, &v);) {
        CLEANUP_FREE char *key = haproxy_word_text(&v.key);
        smap_set(&q->d->have[q->map], key, haproxy_word_text(&v.value));
    }
    free(q);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void on_certs(void *ctx, const char *p, size_t size)
{
    struct driver *d = ctx;
    smap_clear(&d->have_certs);
    for (const char *at = p, *end = p + size; p && at < end;) {
        struct haproxy_word file;
        const char *nl = memchr(at, '\n', (size_t) (end - at));
        const char *stop = nl ? nl : end;
        const char *blank = memrchr(at, ' ', (size_t) (stop - at));
        const char *line = at;
        if (haproxy_next_certificate(&at, end, &file) && file.p == line && blank) {
            CLEANUP_FREE char *path = haproxy_word_text(&file);
            smap_set(&d->have_certs, base_name(path),
                     xstrndup(blank + 1, (size_t) (stop - blank - 1)));
        }
    }
}

/* While a reload ends, connections may still reach the old worker. */
static bool is_old_worker(const struct driver *d)
{
    char want[32];
    (void) snprintf(want, sizeof want, " %llu", (unsigned long long) d->loaded);
    return d->loaded && !str_has_suffix(d->running, want);
}

static void finish(struct driver *d)
{
    struct smap_entry *e;
    struct slot *s;
    if (is_old_worker(d)) {
        d->resync = true;
        loop_timer_arm(d->retry, RETRY_MS);
        return;
    }
    for (size_t m = 0; m < ROUTE_N_MAPS; m++) {
        SMAP_FOREACH (e, &d->have[m]) {
            smap_set(&d->touched[m], e->key, NULL);
        }
        SMAP_FOREACH (e, &d->want[m]) {
            smap_set(&d->touched[m], e->key, NULL);
        }
    }
    SMAP_FOREACH (e, &d->have_certs) {
        smap_set(&d->touched_certs, e->key, NULL);
    }
    SMAP_FOREACH (e, &d->want_certs) {
        smap_set(&d->touched_certs, e->key, NULL);
    }
    SMAP_FOREACH (e, &d->slots) {
        s = e->value;
        if (!s->exists && !s->owner) {
            smap_remove(&d->slots, e->key);
            continue;
        }
        driver_slot_settle(d, s);
        driver_touch_slot(d, s);
    }
    d->ready = true;
    d->silent = 0;
    d->resync = false;
    d->state.why[0] = '\0';
    (void) said_is_news(&d->start_error, NULL);
    loop_timer_arm(d->dying, RETRY_MS); /* Servers that an earlier connection was deleting. */
    if (!driver_is_current(d, d->running) && d->begun) {
        driver_reload_soon(d);
    }
    SMAP_FOREACH (e, &d->items) {
        struct item *i = e->value;
        if (i->plan && !i->slot->exists) {
            log_warn("the backend of a route is not in HAProxy's configuration", "route=%s",
                     i->key);
            driver_lose_slot(d, i);
        }
    }
    driver_serve_waiting(d);
    driver_touch(d);
}

static void on_cas(void *ctx, const char *p, size_t size)
{
    struct driver *d = ctx;
    struct haproxy_word w;
    smap_clear(&d->have_cas);
    for (const char *at = p, *end = p + size; p && haproxy_next_backend(&at, end, &w);) {
        CLEANUP_FREE char *line = haproxy_word_text(&w);
        line[strcspn(line, " ")] = '\0';
        smap_set(&d->have_cas, base_name(line), d);
    }
    if (p) {
        finish(d);
    }
}

static void read_state(struct driver *d)
{
    CLEANUP_FREE char *list = xasprintf("show ssl crt-list -n %s/certs.list", d->cfg.options->dir);
    haproxy_conn_send(d->runtime, "show info", NULL, on_info, d);
    haproxy_conn_send(d->runtime, "show backend", NULL, on_backends, d);
    haproxy_conn_send(d->runtime, "show servers state", NULL, on_servers, d);
    for (size_t m = 0; m < ROUTE_N_MAPS; m++) {
        CLEANUP_FREE char *command = xasprintf("show map %s/%s", d->cfg.options->dir,
                                               route_plan_map_file((enum route_plan_map) m));
        struct map_question *q = NEW(struct map_question);
        *q = (struct map_question){d, m};
        haproxy_conn_send(d->runtime, command, NULL, on_map, q);
    }
    haproxy_conn_send(d->runtime, list, NULL, on_certs, d);
    haproxy_conn_send(d->runtime, "show ssl ca-file", NULL, on_cas, d);
}

static int open_runtime(struct driver *d, loop_fn *lost, struct haproxy_conn **ret)
{
    CLEANUP_FREE char *path = driver_path(d, "", "haproxy.sock");
    return haproxy_conn_open(d->cfg.loop, path, lost, d, ret, NULL);
}

void driver_connect(struct driver *d)
{
    if (!d->runtime && open_runtime(d, on_lost, &d->runtime) == 0) {
        read_state(d);
    }
}

/* ---- the next worker ---- */

static void on_probe_lost(void *ctx)
{
    struct driver *d = ctx;
    d->probe = haproxy_conn_free(d->probe);
}

static void on_probe_info(void *ctx, const char *p, size_t size)
{
    struct driver *d = ctx;
    char text[sizeof d->running];
    char want[32];
    (void) snprintf(want, sizeof want, " %llu", (unsigned long long) d->generation);
    if (p && find_description(p, size, text, sizeof text) && str_has_suffix(text, want)) {
        driver_reload_done(d, true, NULL);
    }
    /* The connection cannot be freed within its own call. */
    loop_timer_arm(d->retry, 1);
}

void driver_look_for_new(struct driver *d)
{
    d->probe = haproxy_conn_free(d->probe);
    if (open_runtime(d, on_probe_lost, &d->probe) == 0) {
        haproxy_conn_send(d->probe, "show info", NULL, on_probe_info, d);
    }
}
