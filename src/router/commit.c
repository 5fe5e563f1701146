/* SPDX-License-Identifier: Apache-2.0 */
/* Differences between plans and HAProxy's state, as commands.  What is added comes first and what
 * is removed last, so that each request finds a backend with servers. */
#include "base/log.h"
#include "base/timeutil.h"
#include "net/loop/process.h"
#include "router/driver_priv.h"
#include "wire/haproxy.h"

#include <unistd.h>

LOG_MODULE("router");

#define DYING_MS 500 /* Between two attempts to delete servers that still have connections. */
#define PAYLOAD_MAX 100000

char *driver_path(const struct driver *d, const char *folder, const char *file)
{
    return xasprintf("%s/%s%s", d->cfg.options->dir, folder, file);
}

/* ---- answers ---- */

/* HAProxy's answer was not the expected one: its whole state is read again. */
static void refuse(struct driver *d, const char *what, const char *answer, size_t size)
{
    static struct log_limit limit;
    size_t n = size;
    while (n > 0 && (answer[n - 1] == '\n' || answer[n - 1] == ' ')) {
        n--;
    }
    d->state.refused_commands++;
    log_limited(&limit, LOG_WARN, "HAProxy refuses a command; its state is read again",
                "command=\"%s\" answer=\"%.*s\"", what, (int) MIN(n, 200), answer);
    d->resync = true;
    loop_timer_arm(d->retry, DYING_MS);
}

static bool has_text(const char *p, size_t size, const char *text)
{
    return memmem(p, size, text, strlen(text)) != NULL;
}

/* Commands about maps and servers answer nothing when they succeed. */
static void on_silent(void *ctx, const char *answer, size_t size)
{
    for (size_t i = 0; answer && i < size; i++) {
        if (answer[i] != '\n' && answer[i] != ' ') {
            refuse(ctx, "map or server", answer, size);
            return;
        }
    }
}

static void on_added(void *ctx, const char *answer, size_t size)
{
    if (answer && !has_text(answer, size, "registered")) {
        refuse(ctx, "add server", answer, size);
    }
}

static void on_certificate(void *ctx, const char *answer, size_t size)
{
    if (answer && !has_text(answer, size, "Success") && !has_text(answer, size, "ransaction") &&
        !has_text(answer, size, "New ") && !has_text(answer, size, "already exists") &&
        !has_text(answer, size, "deleted")) {
        refuse(ctx, "certificate", answer, size);
    }
}

static void send(struct driver *d, const char *payload, haproxy_conn_fn *fn, char *command)
{
    d->state.commands++;
    haproxy_conn_send(d->runtime, command, payload, fn, d);
    free(command);
}

/* ---- certificates ---- */

static void write_file(const char *path, const char *text)
{
    struct err e;
    if (file_write_unsynced(path, text, strlen(text), 0600, &e) < 0) {
        log_error("cannot write a certificate", "error=\"%s\"", e.text);
    }
}

static void load_cas(struct driver *d, const struct route_plan *p)
{
    if (!p->ca_file || smap_get(&d->have_cas, p->ca_file)) {
        return;
    }
    CLEANUP_FREE char *path = driver_path(d, "certs/", p->ca_file);
    write_file(path, p->ca);
    send(d, NULL, on_certificate, xasprintf("new ssl ca-file %s", path));
    send(d, p->ca, on_certificate, xasprintf("set ssl ca-file %s", path));
    send(d, NULL, on_certificate, xasprintf("commit ssl ca-file %s", path));
    smap_set(&d->have_cas, p->ca_file, d);
}

static void list_certificate(struct driver *d, const struct route_plan *p)
{
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
    route_plan_write_cert(d->cfg.options, p, &line);
    send(d, strbuf_cstr(&line), on_certificate,
         xasprintf("add ssl crt-list %s/certs.list", d->cfg.options->dir));
}

static void unlist_certificate(struct driver *d, const char *path)
{
    send(d, NULL, on_certificate,
         xasprintf("del ssl crt-list %s/certs.list %s", d->cfg.options->dir, path));
}

static void load_certificate(struct driver *d, const struct route_plan *p)
{
    CLEANUP_FREE char *path = driver_path(d, "certs/", p->cert_file);
    const char *host = smap_get(&d->have_certs, p->cert_file);
    CLEANUP_STRBUF struct strbuf old = STRBUF_INIT;
    bool same =
        host && file_read(path, PAYLOAD_MAX, &old, NULL) == 0 && streq(strbuf_cstr(&old), p->cert);
    if (!same) {
        write_file(path, p->cert);
        if (!host) {
            send(d, NULL, on_certificate, xasprintf("new ssl cert %s", path));
        }
        send(d, p->cert, on_certificate, xasprintf("set ssl cert %s", path));
        send(d, NULL, on_certificate, xasprintf("commit ssl cert %s", path));
    }
    if (old.data) {
        explicit_bzero(old.data, old.cap);
    }
    if (!host || !streq(host, p->cert_host)) {
        if (host) {
            unlist_certificate(d, path);
        }
        list_certificate(d, p);
        smap_set(&d->have_certs, p->cert_file, xstrdup(p->cert_host));
    }
}

static void load_certificates(struct driver *d)
{
    struct smap_entry *t;
    SMAP_FOREACH (t, &d->touched_certs) {
        const struct want *w = smap_get(&d->want_certs, t->key);
        if (w) {
            load_certificate(d, w->owner->plan);
        }
    }
}

static void remove_certificates(struct driver *d)
{
    struct smap_entry *t;
    SMAP_FOREACH (t, &d->touched_certs) {
        CLEANUP_FREE char *path = driver_path(d, "certs/", t->key);
        if (!smap_get(&d->want_certs, t->key) && smap_remove(&d->have_certs, t->key)) {
            unlist_certificate(d, path);
            send(d, NULL, on_certificate, xasprintf("del ssl cert %s", path));
            (void) unlink(path);
        }
    }
    smap_clear(&d->touched_certs);
}

/* ---- servers ---- */

/* Returns whether HAProxy did not have the server. */
static bool add_server(struct driver *d, struct slot *s, const struct route_plan_server *want)
{
    struct server *have = smap_get(&s->servers, want->name);
    bool is_new = !have;
    if (is_new) {
        have = NEW(struct server);
        smap_set(&s->servers, want->name, have);
        send(d, NULL, on_added,
             xasprintf("add server %s/%s %s weight %u", s->name, want->name, want->args,
                       want->weight));
        if (want->check) {
            send(d, NULL, on_silent, xasprintf("enable health %s/%s", s->name, want->name));
        }
        send(d, NULL, on_silent, xasprintf("enable server %s/%s", s->name, want->name));
    } else {
        if (have->weight != want->weight) {
            send(d, NULL, on_silent,
                 xasprintf("set server %s/%s weight %u", s->name, want->name, want->weight));
        }
        if (have->dying) {
            send(d, NULL, on_silent,
                 xasprintf("set server %s/%s state ready", s->name, want->name));
        }
    }
    have->weight = want->weight;
    have->dying = false;
    return is_new;
}

static void add_servers(struct driver *d, struct slot *s)
{
    if (s->owner && s->owner->plan) {
        const struct route_plan *p = s->owner->plan;
        load_cas(d, p);
        bool added = false;
        for (size_t i = 0; i < p->n_servers; i++) {
            added = add_server(d, s, &p->servers[i]) || added;
        }
        /* HAProxy 2.6 computes the cookies of added servers only when the key is set. */
        if (added && p->cookie) {
            send(d, NULL, on_silent,
                 xasprintf("set dynamic-cookie-key backend %s %s", s->name,
                           d->cfg.options->cookie_key));
        }
    }
}

static bool is_wanted(const struct slot *s, const char *name)
{
    const struct route_plan *p = s->owner ? s->owner->plan : NULL;
    for (size_t i = 0; p && i < p->n_servers; i++) {
        if (streq(p->servers[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* The server of one "del server". */
struct deletion {
    struct driver *d;
    char *slot, *server;
};

static void on_deleted(void *ctx, const char *answer, size_t size)
{
    struct deletion *x = ctx;
    struct slot *s = smap_get(&x->d->slots, x->slot);
    struct server *v = s ? smap_get(&s->servers, x->server) : NULL;
    if (v && v->dying && answer && has_text(answer, size, "deleted")) {
        smap_remove(&s->servers, x->server);
        driver_slot_settle(x->d, s);
    } else if (v && v->dying && !loop_timer_armed(x->d->dying)) {
        loop_timer_arm(x->d->dying, DYING_MS);
    }
    free(x->slot);
    free(x->server);
    free(x);
}

static void delete_server(struct driver *d, const struct slot *s, const char *name)
{
    struct deletion *x = NEW(struct deletion);
    CLEANUP_FREE char *command = xasprintf("del server %s/%s", s->name, name);
    *x = (struct deletion){d, xstrdup(s->name), xstrdup(name)};
    d->state.commands++;
    haproxy_conn_send(d->runtime, command, NULL, on_deleted, x);
}

static void remove_servers(struct driver *d, struct slot *s)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &s->servers) {
        struct server *v = e->value;
        if (!v->dying && !is_wanted(s, e->key)) {
            v->dying = true;
            send(d, NULL, on_silent, xasprintf("set server %s/%s state maint", s->name, e->key));
            delete_server(d, s, e->key);
        }
    }
    driver_slot_settle(d, s);
}

void driver_delete_dying(void *ctx)
{
    struct driver *d = ctx;
    struct smap_entry *e, *v;
    SMAP_FOREACH (e, &d->slots) {
        struct slot *s = e->value;
        SMAP_FOREACH (v, &s->servers) {
            if (d->ready && ((struct server *) v->value)->dying) {
                delete_server(d, s, v->key);
            }
        }
    }
}

/* ---- maps ---- */

static char *map_command(const struct driver *d, const char *verb, size_t map, const char *key,
                         const char *value)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_addf(&out, "%s map %s/%s ", verb, d->cfg.options->dir,
                route_plan_map_file((enum route_plan_map) map));
    (void) haproxy_add_word(&out, key);
    if (value) {
        strbuf_addc(&out, ' ');
        (void) haproxy_add_word(&out, value);
    }
    return strbuf_steal(&out);
}

/* 'last' first: entries about a backend must be there before the host that leads to it. */
static void set_entries(struct driver *d)
{
    for (size_t m = ROUTE_N_MAPS; m-- > 0;) {
        struct smap_entry *t;
        SMAP_FOREACH (t, &d->touched[m]) {
            const struct want *w = smap_get(&d->want[m], t->key);
            const char *have = smap_get(&d->have[m], t->key);
            if (w && (!have || !streq(have, w->value))) {
                send(d, NULL, on_silent, map_command(d, have ? "set" : "add", m, t->key, w->value));
                smap_set(&d->have[m], t->key, xstrdup(w->value));
            }
        }
    }
}

static void delete_entries(struct driver *d)
{
    for (size_t m = 0; m < ROUTE_N_MAPS; m++) {
        struct smap_entry *t;
        SMAP_FOREACH (t, &d->touched[m]) {
            if (!smap_get(&d->want[m], t->key) && smap_remove(&d->have[m], t->key)) {
                send(d, NULL, on_silent, map_command(d, "del", m, t->key, NULL));
            }
        }
        smap_clear(&d->touched[m]);
    }
}

/* ---- commit ---- */

struct batch {
    struct driver *d;
    uint64_t began_ns;
    bool all; /* No route waits for a reload. */
};

static void on_batch(void *ctx, const char *answer, size_t size)
{
    struct batch *b = ctx;
    if (answer) {
        prom_histogram_add(&b->d->state.change_time, time_mono_ns() - b->began_ns);
        b->d->state.settled = b->d->state.settled || b->all;
    }
    free(b);
}

void driver_commit(void *ctx)
{
    struct driver *d = ctx;
    struct slot *s;
    if (!d->ready || !d->begun || d->stopping) {
        return;
    }
    load_certificates(d);
    LIST_FOREACH (s, struct slot, touched, &d->touched_slots) {
        if (s->exists) {
            add_servers(d, s);
        }
    }
    set_entries(d);
    delete_entries(d);
    LIST_FOREACH (s, struct slot, touched, &d->touched_slots) {
        list_remove(&s->touched);
        if (s->exists) {
            remove_servers(d, s);
        }
    }
    remove_certificates(d);
    if (d->dirty_ns > 0) {
        struct batch *b = NEW(struct batch);
        *b = (struct batch){d, d->dirty_ns, list_is_empty(&d->waiting)};
        d->dirty_ns = 0;
        haproxy_conn_send(d->runtime, "show version", NULL, on_batch, b);
    }
    /* Backends that are free now may serve routes that wait. */
    if (!list_is_empty(&d->waiting)) {
        driver_serve_waiting(d);
    }
}
