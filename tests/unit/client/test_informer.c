/* SPDX-License-Identifier: Apache-2.0 */
/* Informers against a real API server: following, resuming, listing again, and never
 * believing that what cannot be seen is gone. */
#include "../apiserver/harness.h"
#include "client/client.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"

struct mirror {
    struct harness *h;
    struct api_client *client;
    struct informer *informer;
    struct strbuf log;   /* "+a ~a -a ! up down ": what was reported */
    const char *free_on; /* Frees the informer in the callback that logs this. */
};

static void note(struct mirror *m, const char *sign, const char *key)
{
    CLEANUP_FREE char *entry = xasprintf("%s%s ", sign, key);
    strbuf_adds(&m->log, entry);
    if (m->free_on && str_has_prefix(entry, m->free_on)) {
        m->informer = informer_free(m->informer);
        m->free_on = NULL;
    }
}

static void on_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    assert_non_null(obj);
    note(ctx, old ? "~" : "+", key);
}

static void on_deleted(void *ctx, const char *key, const struct json *obj)
{
    assert_non_null(obj);
    note(ctx, "-", key);
}

static void on_synced(void *ctx)
{
    note(ctx, "!", "");
}

static void on_connection(void *ctx, const char *reason)
{
    note(ctx, reason ? "down" : "up", "");
}

static const struct informer_ops ops = {
    .changed = on_changed, .deleted = on_deleted, .synced = on_synced, .connection = on_connection};

static void start(struct mirror *m, struct harness *h, const char *selector, const char *free_on)
{
    struct err e = {0};
    CLEANUP_FREE char *url = harness_url(h);
    *m = (struct mirror){.h = h, .log = STRBUF_INIT, .free_on = free_on};
    if (api_client_new(h->loop, url, "test", &m->client, &e) < 0) {
        fail_msg("%s", e.text);
    }
    m->informer = informer_new(m->client, h->loop, "network.openshift.io/v1", "netnamespaces",
                               selector, &ops, m);
}

static void stop(struct mirror *m)
{
    informer_free(m->informer);
    api_client_free(m->client);
    strbuf_done(&m->log);
}

/* Waits until the log is 'want', and empties it. */
static void expect(struct mirror *m, const char *want)
{
    bool never = false;
    for (int i = 0; i < 4000 && !streq(strbuf_cstr(&m->log), want); i++) {
        loop_run_until(m->h->loop, &never, 5);
    }
    assert_string_equal(strbuf_cstr(&m->log), want);
    strbuf_reset(&m->log);
}

static void set_id(struct harness *h, const char *name, int id)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", name);
    CLEANUP_FREE char *patch = xasprintf("{\"netid\":%d}", id);
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "PATCH", path, NULL, "application/merge-patch+json", patch);
    assert_int_equal(a.status, 200);
}

static void delete (struct harness *h, const char *name)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", name);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "DELETE", path, NULL, 200);
}

static int64_t id_of(const struct mirror *m, const char *key)
{
    return json_get_int_or(json_get(informer_get(m->informer, key), "netid"), -1);
}

static void an_informer_follows_the_registry(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct mirror m;
    free(make_net(h, "a", 11, NULL));
    start(&m, h, NULL, NULL);
    assert_false(informer_synced(m.informer));
    expect(&m, "+a ! ");
    assert_true(informer_synced(m.informer));
    free(make_net(h, "b", 12, NULL));
    expect(&m, "+b ");
    set_id(h, "a", 20);
    expect(&m, "~a ");
    assert_int_equal(id_of(&m, "a"), 20);
    assert_int_equal(informer_count(m.informer), 2);
    delete (h, "a");
    expect(&m, "-a ");
    assert_null(informer_get(m.informer, "a"));
    assert_int_equal(informer_count(m.informer), 1);
    stop(&m);
    harness_free(h);
}

static void an_empty_registry_is_synced_too(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct mirror m;
    start(&m, h, NULL, NULL);
    expect(&m, "! ");
    stop(&m);
    harness_free(h);
}

static void a_selector_narrows_it(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct mirror m;
    free(make_net(h, "a", 11, NULL));
    free(make_net(h, "b", 12, NULL));
    start(&m, h, "netid=12", NULL);
    expect(&m, "+b ! ");
    set_id(h, "a", 12);
    expect(&m, "+a ");
    set_id(h, "b", 13);
    expect(&m, "-b ");
    stop(&m);
    harness_free(h);
}

static void more_than_one_page_is_one_list(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct mirror m;
    for (int i = 0; i < 600; i++) {
        CLEANUP_FREE char *name = xasprintf("n%d", i);
        free(make_net(h, name, 20 + i, NULL));
    }
    start(&m, h, NULL, NULL);
    bool never = false;
    while (!informer_synced(m.informer)) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_int_equal(informer_count(m.informer), 600);
    assert_int_equal(id_of(&m, "n599"), 619);
    stop(&m);
    harness_free(h);
}

/* The server goes away and comes back: nothing is deleted meanwhile, and what happened
 * is caught up with. */
static void a_server_that_is_away_deletes_nothing(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct mirror m;
    free(make_net(h, "a", 11, NULL));
    start(&m, h, NULL, NULL);
    expect(&m, "+a ! ");
    harness_stop_listening(h);
    expect(&m, "down ");
    bool never = false;
    loop_run_until(h->loop, &never, 300);
    assert_string_equal(strbuf_cstr(&m.log), "");
    assert_int_equal(informer_count(m.informer), 1);
    assert_true(informer_synced(m.informer));
    harness_listen_again(h);
    free(make_net(h, "b", 12, NULL));
    expect(&m, "up +b ");
    set_id(h, "a", 13);
    expect(&m, "~a ");
    stop(&m);
    harness_free(h);
}

/* Too much has happened while it was away: it lists again and reports exactly the difference. */
static void a_forgotten_version_is_listed_again(void **state)
{
    struct apiserver_config cfg = {.event_window = 2};
    struct harness *h = harness_new(&cfg, NULL);
    struct mirror m;
    free(make_net(h, "a", 11, NULL));
    free(make_net(h, "b", 12, NULL));
    free(make_net(h, "c", 13, NULL));
    start(&m, h, NULL, NULL);
    expect(&m, "+c +b +a ! ");
    harness_stop_listening(h);
    expect(&m, "down ");
    uint16_t port = h->port;
    struct mirror second;
    /* Another listener changes things, unseen by the first client. */
    h->port = 0;
    harness_listen_again(h);
    CLEANUP_FREE char *url = harness_url(h);
    http_client_free(h->client);
    struct http_client_config client = {.url = url};
    assert_int_equal(http_client_new(h->loop, &client, &h->client, NULL), 0);
    delete (h, "a");
    for (int i = 0; i < 4; i++) {
        set_id(h, "b", 100 + i);
    }
    free(make_net(h, "d", 14, NULL));
    start(&second, h, NULL, NULL);
    expect(&second, "+d +c +b ! ");
    stop(&second);
    assert_string_equal(strbuf_cstr(&m.log), "");
    harness_stop_listening(h);
    h->port = port;
    harness_listen_again(h);
    expect(&m, "up +d ~b -a ");
    assert_int_equal(id_of(&m, "b"), 103);
    stop(&m);
    harness_free(h);
}

/* While it watches, the window passes it by: told so in the stream. */
static void an_error_in_the_watch_is_no_end(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct mirror m;
    start(&m, h, NULL, NULL);
    expect(&m, "! ");
    apiserver_shutdown(h->api); /* Its watch ends, and the server answers 503 from now on. */
    expect(&m, "down ");
    stop(&m);
    harness_free(h);
}

static void it_may_be_freed_in_each_callback(void **state)
{
    static const char *const where[] = {"+a", "!", "+b", "~b", "-b", "down", "up"};
    for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
        struct harness *h = harness_new(NULL, NULL);
        struct mirror m;
        free(make_net(h, "a", 11, NULL));
        start(&m, h, NULL, where[i]);
        bool never = false;
        for (int j = 0; j < 4000 && m.informer && !informer_synced(m.informer); j++) {
            loop_run_until(h->loop, &never, 5);
        }
        free(make_net(h, "b", 12, NULL));
        set_id(h, "b", 13);
        delete (h, "b");
        loop_run_until(h->loop, &never, 20);
        harness_stop_listening(h);
        loop_run_until(h->loop, &never, 100);
        harness_listen_again(h);
        for (int j = 0; j < 4000 && m.informer; j++) {
            loop_run_until(h->loop, &never, 5);
        }
        if (m.informer) {
            fail_msg("\"%s\" never came: %s", where[i], strbuf_cstr(&m.log));
        }
        stop(&m);
        harness_free(h);
    }
}

/* A server that lists nothing, and sends the events in pieces of so many bytes. */
struct scripted {
    struct loop *loop;
    const char *rest; /* Of what is to be sent. */
    size_t piece;
    struct http_exchange *stream;
    struct loop_timer *timer;
};

static void send_piece(void *ctx)
{
    struct scripted *s = ctx;
    size_t n = MIN(s->piece, strlen(s->rest));
    if (n && s->stream) {
        CLEANUP(blob_unref) struct blob *b = blob_new(s->rest, n);
        s->rest += n;
        http_stream_write(s->stream, b);
        loop_timer_arm(s->timer, 1); /* What is written in one round goes together. */
    }
}

static void stream_closed(void *ctx)
{
    struct scripted *s = ctx;
    s->stream = NULL;
}

static void answer_by_script(void *ctx, struct http_exchange *x)
{
    static const char list[] =
        "{\"kind\":\"NetNamespaceList\",\"apiVersion\":\"network.openshift.io/v1\","
        "\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";
    struct scripted *s = ctx;
    if (!http_query(x, "watch")) {
        http_respond(x, 200, "application/json", list, sizeof list - 1);
        return;
    }
    s->stream = x;
    http_stream_begin(x, 200, "application/json", stream_closed, s);
    send_piece(s);
}

#define EVENT(type, name, version)                                                 \
    "{\"type\":\"" type "\",\"object\":{\"kind\":\"NetNamespace\",\"apiVersion\":" \
    "\"network.openshift.io/v1\",\"metadata\":{\"name\":\"" name                   \
    "\",\"resourceVersion\":\"" version "\"},\"netname\":\"" name "\",\"netid\":" version "}}\n"

/* However the bytes come; and the end of what was never there is nothing. */
static void events_are_read_from_any_pieces(void **state)
{
    static const char events[] =
        EVENT("ADDED", "a", "2") EVENT("DELETED", "none", "3") "\n" EVENT("MODIFIED", "a", "4")
            EVENT("ADDED", "b", "5") EVENT("DELETED", "a", "6");
    static const size_t pieces[] = {1, 2, 100, sizeof events};
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        struct harness h = {.loop = loop_new()};
        struct scripted s = {.loop = h.loop, .rest = events, .piece = pieces[i]};
        struct err e = {0};
        struct http_server *server = http_server_new(h.loop, NULL, answer_by_script, &s);
        int fd;
        assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
        h.port = (uint16_t) sock_local_port(fd);
        assert_int_equal(http_server_add_listener(server, fd, &e), 0);
        s.timer = loop_timer_new(h.loop, send_piece, &s);
        struct mirror m;
        start(&m, &h, NULL, NULL);
        expect(&m, "! +a ~a +b -a ");
        stop(&m);
        loop_timer_free(s.timer);
        http_server_free(server);
        loop_free(h.loop);
    }
}

/* A server that lists nothing and says nothing in its watches, as kube-apiserver does for a kind
 * without events. */
struct silent {
    struct loop *loop;
    unsigned lists, watches, streams;
    bool refuses;  /* Watches get no answer. */
    char *version; /* The one that the latest watch named. */
};

static void silent_closed(void *ctx)
{
    ((struct silent *) ctx)->streams--;
}

static void answer_silently(void *ctx, struct http_exchange *x)
{
    static const char list[] = "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}";
    struct silent *s = ctx;
    if (!http_query(x, "watch")) {
        s->lists++;
        http_respond(x, 200, "application/json", list, sizeof list - 1);
    } else if (s->refuses) {
        http_respond(x, 503, NULL, "", 0);
    } else {
        s->watches++;
        s->streams++;
        free(s->version);
        s->version = xstrdup(http_query(x, "resourceVersion"));
        http_stream_begin(x, 200, "application/json", silent_closed, s);
    }
}

/* Its watch is replaced by another one from the same version, and nothing is reported; once that
 * one fails, the server is gone. */
static void a_quiet_watch_is_no_loss(void **state)
{
    struct harness h = {.loop = loop_new()};
    struct silent s = {.loop = h.loop};
    struct err e = {0};
    struct http_server *server = http_server_new(h.loop, NULL, answer_silently, &s);
    int fd;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    h.port = (uint16_t) sock_local_port(fd);
    assert_int_equal(http_server_add_listener(server, fd, &e), 0);
    struct mirror m;
    start(&m, &h, NULL, NULL);
    assert_int_equal(api_client_quiet_ms(m.client), 90000);
    api_client_set_quiet_ms(m.client, 20);
    expect(&m, "! ");
    bool never = false;
    for (int i = 0; i < 4000 && s.watches < 4; i++) {
        loop_run_until(h.loop, &never, 5);
    }
    assert_true(s.watches >= 4);
    assert_int_equal(s.lists, 1);
    assert_string_equal(s.version, "7");
    assert_true(s.streams <= 2); /* The previous ones were closed. */
    assert_string_equal(strbuf_cstr(&m.log), "");
    s.refuses = true;
    expect(&m, "down ");
    s.refuses = false;
    expect(&m, "up ");
    stop(&m);
    http_server_free(server);
    free(s.version);
    loop_free(h.loop);
}

static const char *uid_of(const struct json *obj)
{
    return json_get_string(json_path(obj, "metadata", "uid", NULL));
}

static void changed_with_metadata(void *ctx, const char *key, const struct json *old,
                                  const struct json *obj)
{
    assert_non_null(json_get(obj, "netid")); /* The new object is whole. */
    if (old) {
        assert_string_equal(uid_of(old), uid_of(obj));
        assert_null(json_get(old, "netid"));
    }
    note(ctx, old ? "~" : "+", key);
}

static void deleted_with_metadata(void *ctx, const char *key, const struct json *obj)
{
    assert_non_null(uid_of(obj));
    assert_null(json_get(obj, "netid"));
    note(ctx, "-", key);
}

static void a_copy_may_have_metadata_only(void **state)
{
    static const struct informer_ops metadata_ops = {
        .changed = changed_with_metadata, .deleted = deleted_with_metadata, .synced = on_synced};
    struct harness *h = harness_new(NULL, NULL);
    CLEANUP_FREE char *url = harness_url(h);
    struct mirror m = {.h = h, .log = STRBUF_INIT};
    struct err e = {0};
    free(make_net(h, "a", 11, NULL));
    assert_int_equal(api_client_new(h->loop, url, "test", &m.client, &e), 0);
    m.informer = informer_new(m.client, h->loop, "network.openshift.io/v1", "netnamespaces", NULL,
                              &metadata_ops, &m);
    informer_keep_metadata_only(m.informer);
    expect(&m, "+a ! ");
    set_id(h, "a", 20);
    expect(&m, "~a ");
    assert_non_null(uid_of(informer_get(m.informer, "a")));
    assert_int_equal(id_of(&m, "a"), -1);
    delete (h, "a");
    expect(&m, "-a ");
    stop(&m);
    harness_free(h);
}

static void managed_fields_are_not_kept(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct mirror m;
    free(make_net(h, "a", 11, NULL));
    start(&m, h, NULL, NULL);
    expect(&m, "+a ! ");
    assert_null(json_path(informer_get(m.informer, "a"), "metadata", "managedFields", NULL));
    assert_non_null(json_path(informer_get(m.informer, "a"), "metadata", "uid", NULL));
    stop(&m);
    harness_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_informer_follows_the_registry),
        cmocka_unit_test(an_empty_registry_is_synced_too),
        cmocka_unit_test(a_selector_narrows_it),
        cmocka_unit_test(more_than_one_page_is_one_list),
        cmocka_unit_test(a_server_that_is_away_deletes_nothing),
        cmocka_unit_test(a_forgotten_version_is_listed_again),
        cmocka_unit_test(an_error_in_the_watch_is_no_end),
        cmocka_unit_test(it_may_be_freed_in_each_callback),
        cmocka_unit_test(events_are_read_from_any_pieces),
        cmocka_unit_test(a_quiet_watch_is_no_loss),
        cmocka_unit_test(a_copy_may_have_metadata_only),
        cmocka_unit_test(managed_fields_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
