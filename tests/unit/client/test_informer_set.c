/* SPDX-License-Identifier: Apache-2.0 */
/* Informers of a set against a real API server: however many listeners, there is one list and one
 * watch. */
#include "client/informer_set.h"

#include "../apiserver/harness.h"
#include "client/services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"

static struct harness *h;
static struct api_client *client;
static struct informer_set *set;

/* One listener; its log is "+a ~a -a [ ] ! down up ". */
struct ear {
    struct informer *informer;
    struct strbuf log;
    const char *on;     /* At this entry of the log ... */
    struct ear *frees;  /* ... this one is freed, */
    struct ear *begins; /* or this one is added. */
    bool whole;         /* The last object had more than metadata. */
};

#define EAR                \
    {                      \
        .log = STRBUF_INIT \
    }

static void add(struct ear *e, const struct informer_ops *ops)
{
    e->informer = informer_set_add(set, "network.openshift.io/v1", "netnamespaces", NULL, ops, e);
}

static const struct informer_ops copy_ops;

static void note(struct ear *e, const char *sign, const char *key)
{
    CLEANUP_FREE char *entry = xasprintf("%s%s ", sign, key);
    strbuf_adds(&e->log, entry);
    if (e->on && streq(e->on, entry)) {
        e->on = NULL;
        if (e->frees) {
            e->frees->informer = informer_free(e->frees->informer);
        }
        if (e->begins) {
            add(e->begins, &copy_ops);
        }
    }
}

static void on_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    ((struct ear *) ctx)->whole = json_get(obj, "netid") != NULL;
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

static void on_listing(void *ctx)
{
    note(ctx, "[", "");
}

static void on_listed(void *ctx)
{
    note(ctx, "]", "");
}

static void on_connection(void *ctx, const char *reason)
{
    note(ctx, reason ? "down" : "up", "");
}

static const struct informer_ops copy_ops = {
    .changed = on_changed, .deleted = on_deleted, .synced = on_synced, .connection = on_connection};
static const struct informer_ops flow_ops = {.changed = on_changed,
                                             .deleted = on_deleted,
                                             .synced = on_synced,
                                             .listing = on_listing,
                                             .listed = on_listed,
                                             .transient = true};
static const struct informer_ops metadata_ops = {
    .changed = on_changed, .synced = on_synced, .transient = true, .metadata = true};

static int set_up(void **state)
{
    struct apiserver_config cfg = {.event_window = 2};
    struct err e = {0};
    h = harness_new(&cfg, NULL);
    CLEANUP_FREE char *url = harness_url(h);
    if (api_client_new(h->loop, url, "test", &client, &e) < 0) {
        fail_msg("%s", e.text);
    }
    set = informer_set_new(h->loop, client);
    return 0;
}

static int tear_down(void **state)
{
    if (informer_set_count(set)) { /* The test has failed. */
        return -1;
    }
    set = informer_set_free(set);
    api_client_free(client);
    harness_free(h);
    return 0;
}

static void done(struct ear *e)
{
    e->informer = informer_free(e->informer);
    strbuf_done(&e->log);
}

/* Waits until the log is 'want', and empties it. */
static void expect(struct ear *e, const char *want)
{
    bool never = false;
    for (int i = 0; i < 4000 && !streq(strbuf_cstr(&e->log), want); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_string_equal(strbuf_cstr(&e->log), want);
    strbuf_reset(&e->log);
}

static void set_id(const char *name, int id)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", name);
    CLEANUP_FREE char *patch = xasprintf("{\"netid\":%d}", id);
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "PATCH", path, NULL, "application/merge-patch+json", patch);
    assert_int_equal(a.status, 200);
}

static void delete_net(const char *name)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", name);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "DELETE", path, NULL, 200);
}

/* The server's count of something about netnamespaces. */
static int count(const char *metric)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/metrics", NULL, 200);
    const char *p = strstr(a.text, metric);
    return p ? (int) strtol(p + strlen(metric), NULL, 10) : 0;
}

static int lists(void)
{
    return count("apiserver_request_total{verb=\"list\",resource=\"netnamespaces\",code=\"200\"}");
}

static void two_listeners_share_one_list_and_one_watch(void **state)
{
    struct ear a = EAR, b = EAR, c = EAR;
    free(make_net(h, "a", 11, NULL));
    add(&a, &copy_ops);
    add(&b, &copy_ops);
    add(&c, &flow_ops);
    expect(&a, "+a ! ");
    expect(&b, "+a ! ");
    expect(&c, "[ +a ] ! ");
    assert_int_equal(informer_set_count(set), 1);
    assert_int_equal(lists(), 1);
    free(make_net(h, "b", 12, NULL));
    set_id("a", 20);
    delete_net("b");
    expect(&a, "+b ~a -b ");
    expect(&b, "+b ~a -b ");
    expect(&c, "+b +a -b ");
    assert_ptr_equal(informer_get(a.informer, "a"), informer_get(b.informer, "a"));
    done(&a);
    done(&b);
    done(&c);
    assert_int_equal(informer_set_count(set), 0);
}

static void another_selector_is_another_list(void **state)
{
    struct ear a = EAR, b = EAR;
    free(make_net(h, "a", 11, NULL));
    free(make_net(h, "b", 12, NULL));
    add(&a, &copy_ops);
    b.informer = informer_set_add(set, "network.openshift.io/v1", "netnamespaces", "netid=12",
                                  &copy_ops, &b);
    expect(&a, "+b +a ! ");
    expect(&b, "+b ! ");
    assert_int_equal(informer_set_count(set), 2);
    done(&a);
    done(&b);
}

static void a_late_listener_gets_the_present_objects_as_new(void **state)
{
    struct ear a = EAR, b = EAR, c = EAR;
    free(make_net(h, "a", 11, NULL));
    add(&a, &copy_ops);
    expect(&a, "+a ! ");
    set_id("a", 12);
    expect(&a, "~a ");
    add(&b, &copy_ops);
    add(&c, &flow_ops);
    assert_false(informer_synced(b.informer));
    expect(&b, "+a ! ");
    expect(&c, "[ +a ] ! ");
    assert_true(informer_synced(b.informer));
    set_id("a", 13);
    expect(&b, "~a ");
    expect(&c, "+a ");
    expect(&a, "~a ");
    assert_int_equal(lists(), 1);
    done(&a);
    done(&b);
    done(&c);
}

/* Without a copy the objects have to be listed again; the other listener sees a second list. */
static void a_late_listener_without_a_copy_lists_anew(void **state)
{
    struct ear a = EAR, b = EAR, c = EAR;
    free(make_net(h, "a", 11, NULL));
    add(&a, &flow_ops);
    expect(&a, "[ +a ] ! ");
    add(&b, &flow_ops);
    expect(&b, "[ +a ] ! ");
    expect(&a, "[ +a ] ");
    assert_null(informer_get(a.informer, "a"));
    add(&c, &copy_ops);
    expect(&c, "+a ! ");
    expect(&a, "[ +a ] ");
    assert_non_null(informer_get(c.informer, "a"));
    assert_int_equal(lists(), 3);
    /* The copy goes with the listener that needs it. */
    done(&c);
    bool never = false;
    for (int i = 0; i < 4000 && informer_count(a.informer); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_int_equal(informer_count(a.informer), 0);
    strbuf_reset(&b.log);
    set_id("a", 12);
    expect(&a, "+a ");
    expect(&b, "+a ");
    done(&a);
    done(&b);
}

static void a_listener_may_be_freed_by_another(void **state)
{
    static const char *const where[] = {"+a ", "! ", "+b ", "~b ", "-b "};
    for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
        for (int self = 0; self < 2; self++) {
            struct ear a = EAR, b = EAR, c = EAR;
            free(make_net(h, "a", 11, NULL));
            a.on = where[i];
            a.frees = self ? &a : &b;
            add(&a, &copy_ops);
            add(&b, &copy_ops);
            add(&c, &copy_ops);
            expect(&c, "+a ! ");
            free(make_net(h, "b", 12, NULL));
            set_id("b", 13);
            delete_net("b");
            expect(&c, "+b ~b -b ");
            assert_null(self ? a.informer : b.informer);
            if (!self) {
                assert_null(strstr(strbuf_cstr(&b.log), where[i]));
            }
            delete_net("a");
            expect(&c, "-a ");
            done(&a);
            done(&b);
            done(&c);
        }
    }
}

static void the_last_listener_may_be_freed_in_a_callback(void **state)
{
    struct ear a = EAR, b = EAR;
    a.on = "+a ";
    a.frees = &a;
    free(make_net(h, "a", 11, NULL));
    add(&a, &copy_ops);
    expect(&a, "+a ");
    assert_int_equal(informer_set_count(set), 0);
    add(&b, &copy_ops);
    expect(&b, "+a ! ");
    done(&a);
    done(&b);
}

static void a_listener_may_be_added_in_a_callback(void **state)
{
    static const char *const where[] = {"+a ", "! ", "~a "};
    for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
        struct ear b = EAR, a = EAR;
        a.on = where[i];
        a.begins = &b;
        free(make_net(h, "a", 11, NULL));
        add(&a, &copy_ops);
        expect(&a, "+a ! ");
        set_id("a", 12);
        expect(&a, "~a ");
        expect(&b, i < 2 ? "+a ! ~a " : "+a ! ");
        delete_net("a");
        expect(&b, "-a ");
        done(&a);
        done(&b);
    }
}

/* The server has forgotten the version: one list serves all, as each of them needs it. */
static void a_list_anew_reports_differences_and_all(void **state)
{
    struct ear a = EAR, b = EAR;
    free(make_net(h, "a", 11, NULL));
    free(make_net(h, "b", 12, NULL));
    add(&a, &copy_ops);
    add(&b, &flow_ops);
    expect(&a, "+b +a ! ");
    expect(&b, "[ +b +a ] ! ");
    harness_stop_listening(h);
    expect(&a, "down ");
    uint16_t port = h->port;
    h->port = 0; /* Changes come through another port, unseen by the listeners. */
    harness_listen_again(h);
    CLEANUP_FREE char *url = harness_url(h);
    http_client_free(h->client);
    struct http_client_config cfg = {.url = url};
    assert_int_equal(http_client_new(h->loop, &cfg, &h->client, NULL), 0);
    delete_net("a");
    for (int i = 0; i < 4; i++) {
        set_id("b", 100 + i);
    }
    free(make_net(h, "c", 14, NULL));
    assert_string_equal(strbuf_cstr(&a.log), "");
    struct ear late = EAR;
    add(&late, &copy_ops); /* Learns that the server is away, and has the copy. */
    expect(&late, "down +b +a ! ");
    harness_stop_listening(h);
    h->port = port;
    harness_listen_again(h);
    expect(&a, "up +c ~b -a ");
    expect(&late, "up +c ~b -a ");
    expect(&b, "[ +c +b ] ");
    done(&a);
    done(&b);
    done(&late);
}

static void listeners_to_metadata_share_whole_objects(void **state)
{
    struct ear a = EAR, b = EAR, c = EAR;
    free(make_net(h, "a", 11, NULL));
    add(&a, &metadata_ops);
    expect(&a, "+a ! ");
    assert_false(a.whole);
    add(&b, &copy_ops); /* Needs more: there is one list for both. */
    expect(&b, "+a ! ");
    assert_true(b.whole);
    expect(&a, "+a ");
    assert_int_equal(informer_set_count(set), 1);
    assert_int_equal(lists(), 2);
    add(&c, &metadata_ops);
    expect(&c, "+a ! ");
    assert_int_equal(lists(), 2);
    done(&a);
    done(&b);
    done(&c);
}

static void listeners_after_an_expiry_list_anew(void **state)
{
    struct ear a = EAR, b = EAR, c = EAR;
    free(make_net(h, "a", 11, NULL));
    add(&a, &copy_ops);
    expect(&a, "+a ! ");
    informer_set_expire(set);
    add(&b, &copy_ops);
    add(&c, &copy_ops);
    expect(&b, "+a ! ");
    expect(&c, "+a ! ");
    assert_int_equal(lists(), 2);
    assert_string_equal(strbuf_cstr(&a.log), ""); /* There was no difference. */
    done(&a);
    done(&b);
    done(&c);
}

static void services_share_the_lists_of_a_set(void **state)
{
    struct ear a = EAR;
    struct services_watch *w = services_watch_new_in(h->loop, set);
    put_in(h, "POST", "/api/v1/namespaces/default/services",
           "{'metadata': {'name': 'web'}, 'spec': {'ports': [{'port': 80}]}}", 201);
    bool never = false;
    for (int i = 0; i < 4000 && !services_watch_get(w, "default", "web"); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    a.informer = informer_set_add(set, "v1", "services", NULL, &copy_ops, &a);
    expect(&a, "+default/web ! ");
    assert_non_null(services_watch_get(w, "default", "web"));
    assert_int_equal(informer_set_count(set), 2); /* Services and EndpointSlices. */
    done(&a);
    services_watch_free(w);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(two_listeners_share_one_list_and_one_watch),
        T(another_selector_is_another_list),
        T(a_late_listener_gets_the_present_objects_as_new),
        T(a_late_listener_without_a_copy_lists_anew),
        T(a_listener_may_be_freed_by_another),
        T(the_last_listener_may_be_freed_in_a_callback),
        T(a_listener_may_be_added_in_a_callback),
        T(a_list_anew_reports_differences_and_all),
        T(listeners_to_metadata_share_whole_objects),
        T(listeners_after_an_expiry_list_anew),
        T(services_share_the_lists_of_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
