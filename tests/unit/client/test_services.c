/* SPDX-License-Identifier: Apache-2.0 */
/* Services joined with their slices, as a real API server tells of them. */
#include "../apiserver/harness.h"
#include "client/services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define SERVICES "/api/v1/namespaces/default/services"
#define SLICES "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"

struct listener {
    struct strbuf
        log; /* "+web(2) ~web(1) -web ; ! ": backends of the first port, settled, synced. */
};

struct fixture {
    struct harness *h;
    struct api_client *client;
    struct services_watch *watch;
    struct listener a, b;
};

static void on_changed(void *ctx, const struct sdn_service *old, const struct sdn_service *s)
{
    struct listener *l = ctx;
    if (s) {
        strbuf_addf(&l->log, "%s%s(%u) ", old ? "~" : "+", s->name,
                    s->n_ports ? s->ports[0].n_backends : s->n_addresses);
    } else {
        strbuf_addf(&l->log, "-%s ", old->name);
    }
}

static void on_synced(void *ctx)
{
    struct listener *l = ctx;
    strbuf_adds(&l->log, "! ");
}

static const struct services_listener ops = {.changed = on_changed, .synced = on_synced};

static void put_service(struct harness *h, const char *name, const char *spec)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'apiVersion':'v1','kind':'Service','metadata':{'name':'%s'},'spec':{%s}}", name, spec);
    CLEANUP_FREE char *body = quoted(text);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", SERVICES, body, 201);
}

/* 'method' PUT: it is there. */
static void put_slice(struct harness *h, const char *method, const char *name, const char *service,
                      const char *endpoints)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'apiVersion':'discovery.k8s.io/v1','kind':'EndpointSlice','metadata':{'name':'%s',"
        "'labels':{'kubernetes.io/service-name':'%s'}},'addressType':'IPv4',"
        "'ports':[{'name':'http','port':8080,'protocol':'TCP'}],'endpoints':[%s]}",
        name, service, endpoints);
    CLEANUP_FREE char *body = quoted(text);
    CLEANUP_FREE char *path = xasprintf(SLICES "/%s", name);
    bool put = streq(method, "PUT");
    CLEANUP_ANSWER struct answer a = ask_ok(h, method, put ? path : SLICES, body, put ? 200 : 201);
}

static void delete_at(struct harness *h, const char *path)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "DELETE", path, NULL, 200);
}

#define WEB "'clusterIP':'172.30.0.10','ports':[{'name':'http','port':80}]"
#define ONE "{'addresses':['10.128.0.5']}"
#define TWO ONE ",{'addresses':['10.128.0.6']}"

/* Waits until the log is 'want', and empties it. */
static void expect(struct fixture *f, struct listener *l, const char *want)
{
    bool never = false;
    for (int i = 0; i < 4000 && !streq(strbuf_cstr(&l->log), want); i++) {
        loop_run_until(f->h->loop, &never, 5);
    }
    assert_string_equal(strbuf_cstr(&l->log), want);
    strbuf_reset(&l->log);
}

static void begin(struct fixture *f)
{
    struct err e = {0};
    CLEANUP_FREE char *url = harness_url(f->h);
    if (api_client_new(f->h->loop, url, "test", &f->client, &e) < 0) {
        fail_msg("%s", e.text);
    }
    f->watch = services_watch_new(f->h->loop, f->client);
    services_watch_add(f->watch, &ops, &f->a);
}

static struct fixture make_fixture(void)
{
    return (struct fixture){
        .h = harness_new(NULL, NULL), .a = {.log = STRBUF_INIT}, .b = {.log = STRBUF_INIT}};
}

static void done(struct fixture *f)
{
    services_watch_free(f->watch);
    api_client_free(f->client);
    harness_free(f->h);
    strbuf_done(&f->a.log);
    strbuf_done(&f->b.log);
}

static void what_is_there_is_told_joined(void **state)
{
    struct fixture f = make_fixture();
    put_slice(f.h, "POST", "web-1", "web", ONE);
    put_slice(f.h, "POST", "web-2", "web",
              "{'addresses':['10.128.0.6']},{'addresses':['10.128.0.5']}");
    put_slice(f.h, "POST", "other-1", "other", ONE);
    put_service(f.h, "web", WEB);
    begin(&f);
    assert_false(services_watch_synced(f.watch));
    bool never = false;
    while (!services_watch_synced(f.watch) || !services_watch_count(f.watch)) {
        loop_run_until(f.h->loop, &never, 5);
    }
    const struct sdn_service *s = services_watch_get(f.watch, "default", "web");
    assert_non_null(s);
    assert_int_equal(s->cluster_ip, 0xac1e000a);
    assert_int_equal(s->n_slices, 2);
    assert_int_equal(s->ports[0].n_backends, 2); /* An address of both slices is one. */
    assert_int_equal(s->ports[0].backends[0].port, 8080);
    assert_null(services_watch_get(f.watch, "default", "other"));
    assert_true(services_watch_connected(f.watch));
    assert_true(str_has_suffix(strbuf_cstr(&f.a.log), "! "));
    done(&f);
}

static void changes_of_either_kind_are_told_once(void **state)
{
    struct fixture f = make_fixture();
    begin(&f);
    expect(&f, &f.a, "! ");
    put_service(f.h, "web", WEB);
    expect(&f, &f.a, "+web(0) ");
    put_slice(f.h, "POST", "web-1", "web", TWO);
    expect(&f, &f.a, "~web(2) ");
    put_slice(f.h, "PUT", "web-1", "web", ONE);
    expect(&f, &f.a, "~web(1) ");
    put_slice(f.h, "PUT", "web-1", "other",
              ONE); /* It goes over to a service that is not there yet. */
    expect(&f, &f.a, "~web(0) ");
    put_service(f.h, "other", "'clusterIP':'172.30.0.11','ports':[{'name':'http','port':80}]");
    expect(&f, &f.a, "+other(1) ");
    delete_at(f.h, SERVICES "/web");
    expect(&f, &f.a, "-web ");
    delete_at(f.h, SLICES "/web-1");
    expect(&f, &f.a, "~other(0) ");
    done(&f);
}

static void what_changes_nothing_that_is_served_is_not_told(void **state)
{
    struct fixture f = make_fixture();
    put_service(f.h, "web", WEB);
    begin(&f);
    expect(&f, &f.a, "+web(0) ! ");
    CLEANUP_ANSWER struct answer a =
        ask_full(f.h, "PATCH", SERVICES "/web", NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
    assert_int_equal(a.status, 200);
    put_slice(f.h, "POST", "none-1", "none", ONE);
    put_slice(f.h, "POST", "web-1", "web", ONE);
    expect(&f, &f.a, "~web(1) ");
    done(&f);
}

static void a_listener_that_comes_later_hears_of_everything(void **state)
{
    struct fixture f = make_fixture();
    put_slice(f.h, "POST", "web-1", "web", ONE);
    put_service(f.h, "web", WEB);
    begin(&f);
    bool never = false;
    while (!services_watch_count(f.watch)) {
        loop_run_until(f.h->loop, &never, 5);
    }
    services_watch_add(f.watch, &ops, &f.b);
    expect(&f, &f.b, "+web(1) ! ");
    services_watch_remove(f.watch, &f.a);
    strbuf_reset(&f.a.log);
    delete_at(f.h, SERVICES "/web");
    expect(&f, &f.b, "-web ");
    assert_string_equal(strbuf_cstr(&f.a.log), "");
    done(&f);
}

static void what_is_known_outlives_the_server(void **state)
{
    struct fixture f = make_fixture();
    put_slice(f.h, "POST", "web-1", "web", ONE);
    put_service(f.h, "web", WEB);
    begin(&f);
    bool never = false;
    while (!services_watch_synced(f.watch) || !services_watch_count(f.watch)) {
        loop_run_until(f.h->loop, &never, 5);
    }
    strbuf_reset(&f.a.log);
    harness_stop_listening(f.h);
    while (services_watch_connected(f.watch)) {
        loop_run_until(f.h->loop, &never, 5);
    }
    const struct sdn_service *s = services_watch_get(f.watch, "default", "web");
    assert_non_null(s);
    assert_int_equal(s->ports[0].n_backends, 1);
    assert_string_equal(strbuf_cstr(&f.a.log), "");
    harness_listen_again(f.h);
    delete_at(f.h, SERVICES "/web");
    expect(&f, &f.a, "-web ");
    while (
        !services_watch_connected(f.watch)) { /* The watch of slices may be back a little later. */
        loop_run_until(f.h->loop, &never, 5);
    }
    done(&f);
}

static void listen_at(struct harness *h, uint16_t port)
{
    h->port = port;
    harness_listen_again(h);
    CLEANUP_FREE char *url = harness_url(h);
    http_client_free(h->client);
    struct http_client_config client = {.url = url};
    assert_int_equal(http_client_new(h->loop, &client, &h->client, NULL), 0);
}

/* Too much has happened to go on where it was: of the new lists exactly what is
 * different is told. */
static void after_a_gap_only_differences_are_told(void **state)
{
    struct apiserver_config cfg = {.event_window = 2};
    struct fixture f = make_fixture();
    harness_free(f.h);
    f.h = harness_new(&cfg, NULL);
    put_slice(f.h, "POST", "same-1", "same", TWO);
    put_slice(f.h, "POST", "less-1", "less", ONE);
    put_slice(f.h, "POST", "lone-1", "lone", ONE);
    put_service(f.h, "same", "'clusterIP':'172.30.0.10','ports':[{'name':'http','port':80}]");
    put_service(f.h, "less", "'clusterIP':'172.30.0.11','ports':[{'name':'http','port':80}]");
    put_service(f.h, "gone", "'clusterIP':'172.30.0.12','ports':[{'name':'http','port':80}]");
    begin(&f);
    bool never = false;
    while (!services_watch_synced(f.watch) || services_watch_count(f.watch) < 3) {
        loop_run_until(f.h->loop, &never, 5);
    }
    uint16_t port = f.h->port;
    harness_stop_listening(f.h);
    while (services_watch_connected(f.watch)) {
        loop_run_until(f.h->loop, &never, 5);
    }
    strbuf_reset(&f.a.log);
    listen_at(f.h, 0); /* Others change things, unseen by the watch. */
    delete_at(f.h, SERVICES "/gone");
    delete_at(f.h, SLICES "/less-1");
    delete_at(f.h, SLICES "/lone-1");
    for (unsigned i = 20; i < 24; i++) { /* So much that both watches have to begin anew. */
        CLEANUP_FREE char *name = xasprintf("new%u", i);
        CLEANUP_FREE char *spec = xasprintf("'clusterIP':'172.30.0.%u','ports':[{'port':80}]", i);
        put_service(f.h, name, spec);
        put_slice(f.h, "POST", name, name, ONE);
    }
    harness_stop_listening(f.h);
    listen_at(f.h, port);
    while (services_watch_get(f.watch, "default", "gone") ||
           services_watch_get(f.watch, "default", "less")->n_slices > 0 ||
           services_watch_count(f.watch) < 6) {
        loop_run_until(f.h->loop, &never, 5);
    }
    assert_non_null(strstr(strbuf_cstr(&f.a.log), "-gone "));
    assert_non_null(strstr(strbuf_cstr(&f.a.log), "~less(0) "));
    assert_null(strstr(strbuf_cstr(&f.a.log), "same"));
    put_service(f.h, "lone", "'clusterIP':'172.30.0.13','ports':[{'name':'http','port':80}]");
    while (!services_watch_get(f.watch, "default", "lone")) {
        loop_run_until(f.h->loop, &never, 5);
    }
    assert_int_equal(services_watch_get(f.watch, "default", "lone")->n_slices, 0);
    done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_told_joined),
        cmocka_unit_test(changes_of_either_kind_are_told_once),
        cmocka_unit_test(what_changes_nothing_that_is_served_is_not_told),
        cmocka_unit_test(a_listener_that_comes_later_hears_of_everything),
        cmocka_unit_test(what_is_known_outlives_the_server),
        cmocka_unit_test(after_a_gap_only_differences_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
