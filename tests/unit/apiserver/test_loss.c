/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails and comes back: what the API server says meanwhile, and to its watches.  The store is
 * the test's own backend, which the test drives by hand. */
#include "harness.h"

#include "net/sock.h"
#include "store/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"
#define KEY "/registry/network.openshift.io/netnamespaces/"
#define NET_A "{\"metadata\":{\"name\":\"a\"},\"netname\":\"a\",\"netid\":11}"

/* Answers each write with 'answer'; 0: keeps it until the test finishes it. */
struct manual {
    struct store base;
    int answer;
    struct list held;
    struct loop_task task;
};

static void manual_start(struct store *s)
{
}

static void manual_run(void *ctx)
{
    struct manual *m = ctx;
    if (m->answer) {
        store_writes_fail(&m->held, m->answer);
    }
}

static void manual_write(struct store *s, struct store_write *w)
{
    struct manual *m = CONTAINER_OF(s, struct manual, base);
    list_push_back(&m->held, &w->node);
    loop_task_queue(&m->task);
}

static void manual_close(struct store *s)
{
    struct manual *m = CONTAINER_OF(s, struct manual, base);
    loop_task_cancel(&m->task);
    store_writes_fail(&m->held, -ECANCELED);
}

static const struct store_ops manual_ops = {
    .start = manual_start, .write = manual_write, .close = manual_close};

struct bench {
    struct harness h;
    struct manual *store;
};

static void ready(void *ctx)
{
    ((struct harness *) ctx)->ready = true;
}

static struct bench *bench_new(void)
{
    struct bench *b = NEW(struct bench);
    struct harness *h = &b->h;
    struct apiserver_config cfg = {.ready = ready, .ctx = h};
    int fd;
    h->loop = loop_new();
    b->store = NEW(struct manual);
    store_init(&b->store->base, &manual_ops, h->loop);
    list_init(&b->store->held);
    loop_task_init(&b->store->task, h->loop, manual_run, b->store);
    h->store = &b->store->base;
    h->api = apiserver_new(h->loop, h->store, &cfg);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    h->port = (uint16_t) sock_local_port(fd);
    h->http = http_server_new(h->loop, NULL, apiserver_handle, h->api);
    assert_int_equal(http_server_add_listener(h->http, fd, NULL), 0);
    CLEANUP_FREE char *url = harness_url(h);
    struct http_client_config client = {.url = url};
    assert_int_equal(http_client_new(h->loop, &client, &h->client, NULL), 0);
    return b;
}

static void bench_free(struct bench *b)
{
    struct harness *h = &b->h;
    http_client_free(h->client);
    apiserver_shutdown(h->api);
    store_close(h->store);
    http_server_free(h->http);
    apiserver_free(h->api);
    loop_free(h->loop);
    free(b);
}

static void snapshot(struct bench *b, const char *text, uint64_t revision)
{
    struct store_item item = {KEY "a", blob_new(text, strlen(text)), revision};
    store_report_snapshot(&b->store->base, &item, 1, revision);
    blob_unref(item.value);
}

static void until_the_snapshot_is_there_nothing_is_served(void **state)
{
    struct bench *b = bench_new();
    CLEANUP_ANSWER struct answer list = ask_ok(&b->h, "GET", NETS, NULL, 503);
    assert_string_equal(at(&list, "reason"), "ServiceUnavailable");
    CLEANUP_ANSWER struct answer not_ready = ask_ok(&b->h, "GET", "/readyz", NULL, 503);
    CLEANUP_ANSWER struct answer alive = ask_ok(&b->h, "GET", "/livez", NULL, 200);
    CLEANUP_ANSWER struct answer discovery = ask_ok(&b->h, "GET", "/api/v1", NULL, 200);
    assert_false(apiserver_ready(b->h.api));
    assert_false(b->h.ready);
    snapshot(b, NET_A, 5);
    assert_true(b->h.ready);
    assert_int_equal(apiserver_revision(b->h.api), 5);
    CLEANUP_ANSWER struct answer now = ask_ok(&b->h, "GET", NETS "/a", NULL, 200);
    assert_string_equal(at(&now, "metadata.resourceVersion"), "5");
    bench_free(b);
}

static void a_lost_store_takes_no_writes_but_reads_go_on(void **state)
{
    struct bench *b = bench_new();
    snapshot(b, NET_A, 5);
    struct watcher *w = watcher_new(&b->h, NETS "?watch=1&resourceVersion=5", NULL);
    store_report_lost(&b->store->base, "disk on fire");
    CLEANUP_ANSWER struct answer write = ask_ok(&b->h, "POST", NETS, NET_A, 503);
    assert_non_null(strstr(at(&write, "message"), "disk on fire"));
    assert_string_equal(at(&write, "details.retryAfterSeconds"), "1");
    CLEANUP_ANSWER struct answer gone = ask_ok(&b->h, "DELETE", NETS "/a", NULL, 503);
    CLEANUP_ANSWER struct answer read = ask_ok(&b->h, "GET", NETS "/a", NULL, 200);
    CLEANUP_ANSWER struct answer not_ready = ask_ok(&b->h, "GET", "/readyz", NULL, 503);
    watcher_expect(w, 0);
    assert_false(w->ended);
    /* Back with another state: the watch is told the difference; nobody can begin one in the gap. */
    snapshot(b, "{\"metadata\":{\"name\":\"a\"},\"netname\":\"a\",\"netid\":77}", 9);
    watcher_expect(w, 1);
    CLEANUP_FREE char *told = watcher_summary(w);
    assert_string_equal(told, "MODIFIED a@9");
    assert_false(w->ended);
    /* Back with an older state, as from a backup: clients have to list. */
    store_report_lost(&b->store->base, "restored");
    snapshot(b, "{\"metadata\":{\"name\":\"a\"},\"netname\":\"a\",\"netid\":66}", 7);
    watcher_expect_end(w);
    watcher_free(w);
    store_report_lost(&b->store->base, "again");
    snapshot(b, "{\"metadata\":{\"name\":\"a\"},\"netname\":\"a\",\"netid\":77}", 9);
    CLEANUP_ANSWER struct answer again = ask_ok(&b->h, "GET", NETS "/a", NULL, 200);
    assert_string_equal(at(&again, "netid"), "77");
    w = watcher_new(&b->h, NETS "?watch=1&resourceVersion=5", NULL);
    watcher_expect(w, 1);
    assert_string_equal(json_path_string(json_at(w->events, 0), "type", NULL), "ERROR");
    watcher_free(w);
    bench_free(b);
}

static void snapshot_of(struct bench *b, const char *const names[], const uint64_t revisions[],
                        size_t n, uint64_t revision)
{
    struct store_item items[8] = {0};
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *text =
            xasprintf("{\"metadata\":{\"name\":\"%s\"},\"netname\":\"%s\",\"netid\":%zu}", names[i],
                      names[i], 10 + i);
        items[i] = (struct store_item){xasprintf(KEY "%s", names[i]), blob_new(text, strlen(text)),
                                       revisions[i]};
    }
    store_report_snapshot(&b->store->base, items, n, revision);
    for (size_t i = 0; i < n; i++) {
        free((char *) items[i].key);
        blob_unref(items[i].value);
    }
}

/* etcd compacted its history while we were away: each object's last state is told, in order, and what is gone. */
static void what_changed_during_a_loss_is_told_once_and_in_order(void **state)
{
    struct bench *b = bench_new();
    snapshot_of(b, (const char *const[]){"a", "b", "c", "d"}, (const uint64_t[]){1, 2, 3, 4}, 4, 5);
    struct watcher *w = watcher_new(&b->h, NETS "?watch=1&resourceVersion=5", NULL);
    store_report_lost(&b->store->base, "etcd compacted its history");
    snapshot_of(b, (const char *const[]){"a", "b", "e", "f"}, (const uint64_t[]){9, 2, 8, 7}, 4,
                12);
    watcher_expect(w, 5);
    CLEANUP_FREE char *told = watcher_summary(w);
    assert_string_equal(told, "ADDED f@7, ADDED e@8, MODIFIED a@9, DELETED c@12, DELETED d@12");
    /* The same again: nothing. */
    store_report_lost(&b->store->base, "once more");
    snapshot_of(b, (const char *const[]){"a", "b", "e", "f"}, (const uint64_t[]){9, 2, 8, 7}, 4,
                12);
    assert_int_equal(apiserver_revision(b->h.api), 12);
    watcher_expect(w, 5);
    assert_false(w->ended);
    /* Another past: what a client has seen is not true any more. */
    store_report_lost(&b->store->base, "a backup was restored");
    snapshot_of(b, (const char *const[]){"a", "b"}, (const uint64_t[]){9, 11}, 2, 20);
    watcher_expect_end(w);
    watcher_free(w);
    bench_free(b);
}

static void errors_of_the_store_have_a_status_each(void **state)
{
    static const struct {
        int error, status;
        const char *reason;
    } cases[] = {
        {-EAGAIN, 503, "ServiceUnavailable"},  {-E2BIG, 413, "RequestEntityTooLarge"},
        {-EIO, 500, "InternalError"},          {-ENOSPC, 507, "InsufficientStorage"},
        {-EDQUOT, 507, "InsufficientStorage"},
    };
    struct bench *b = bench_new();
    snapshot(b, NET_A, 5);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        b->store->answer = cases[i].error;
        CLEANUP_ANSWER
        struct answer create = ask_ok(
            &b->h, "POST", NETS, "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\",\"netid\":12}",
            cases[i].status);
        assert_string_equal(at(&create, "reason"), cases[i].reason);
        CLEANUP_ANSWER struct answer put =
            ask_ok(&b->h, "PUT", NETS "/a", "{\"netname\":\"a\",\"netid\":12}", cases[i].status);
        CLEANUP_ANSWER struct answer del =
            ask_ok(&b->h, "DELETE", NETS "/a", NULL, cases[i].status);
        assert_string_equal(at(&del, "reason"), cases[i].reason);
    }
    bench_free(b);
}

static void ignore(void *ctx, const struct http_result *r)
{
}

static void expect_health(struct bench *b, const char *path, int status, const char *text)
{
    CLEANUP_ANSWER struct answer a = ask_ok(&b->h, "GET", path, NULL, status);
    if (!strstr(a.text, text)) {
        fail_msg("%s: \"%s\" does not say \"%s\"", path, a.text, text);
    }
}

/* A store that hangs has not failed; it is a write that finds out. */
static void ready_is_what_a_write_says(void **state)
{
    struct bench *b = bench_new();
    snapshot(b, NET_A, 5);
    b->store->answer = -ENOENT; /* What a write that changes nothing is answered with. */
    expect_health(b, "/readyz", 200, "ok");
    b->store->answer = -ENOSPC;
    bool never = false;
    loop_run_until(b->h.loop, &never, 1100); /* The good answer is too old now. */
    expect_health(b, "/readyz?verbose", 503, "[-]etcd failed: the store is full");
    b->store->answer = -EIO;
    expect_health(b, "/healthz", 503, "[-]etcd failed: the store takes no writes: Input/output");
    expect_health(b, "/readyz?exclude=etcd", 200, "ok");
    b->store->answer = 0;
    expect_health(b, "/readyz/etcd", 503, "the store has not answered a write for 1000 ms");
    expect_health(b, "/readyz", 503, "[-]etcd failed: the store has not answered a write");
    expect_health(b, "/livez", 200, "ok");
    assert_int_equal(list_size(&b->store->held), 1);
    /* It is answered at last. */
    store_writes_fail(&b->store->held, -ENOENT);
    expect_health(b, "/readyz", 200, "ok");
    store_report_lost(&b->store->base, "disk on fire");
    expect_health(b, "/readyz", 503, "[-]etcd failed: the store is not available: disk on fire");
    bench_free(b);
}

static void health_request_that_waits_does_not_keep_the_server_from_stopping(void **state)
{
    struct bench *b = bench_new();
    snapshot(b, NET_A, 5);
    http_call(b->h.client, "GET", "/readyz", NULL, NULL, NULL, 0, ignore, NULL);
    bool never = false;
    while (list_size(&b->store->held) < 1) {
        loop_run_until(b->h.loop, &never, 5);
    }
    bench_free(b);
}

/* Another master wins each time: an update that insists on nothing gives up at some point, in order. */
static void endless_races_end_in_a_conflict(void **state)
{
    struct bench *b = bench_new();
    snapshot(b, NET_A, 5);
    b->store->answer = -ESTALE;
    CLEANUP_ANSWER struct answer put =
        ask_ok(&b->h, "PUT", NETS "/a", "{\"netname\":\"a\",\"netid\":12}", 409);
    CLEANUP_ANSWER struct answer del = ask_ok(&b->h, "DELETE", NETS "/a", NULL, 409);
    assert_string_equal(at(&put, "reason"), "Conflict");
    assert_string_equal(at(&del, "reason"), "Conflict");
    bench_free(b);
}

/* Writes that never come to an end do not keep the server from stopping. */
static void held_writes_are_dropped_at_the_end(void **state)
{
    struct bench *b = bench_new();
    snapshot(b, NET_A, 5);
    b->store->answer = 0;
    static const char body[] = "{\"netname\":\"a\",\"netid\":12}";
    http_call(b->h.client, "PUT", NETS "/a", NULL, NULL, body, sizeof body - 1, ignore, NULL);
    http_call(b->h.client, "DELETE", NETS "/a", NULL, NULL, NULL, 0, ignore, NULL);
    http_call(b->h.client, "DELETE", NETS, NULL, NULL, NULL, 0, ignore, NULL);
    bool never = false;
    while (list_size(&b->store->held) < 3) {
        loop_run_until(b->h.loop, &never, 5);
    }
    bench_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(until_the_snapshot_is_there_nothing_is_served),
        cmocka_unit_test(a_lost_store_takes_no_writes_but_reads_go_on),
        cmocka_unit_test(what_changed_during_a_loss_is_told_once_and_in_order),
        cmocka_unit_test(errors_of_the_store_have_a_status_each),
        cmocka_unit_test(ready_is_what_a_write_says),
        cmocka_unit_test(health_request_that_waits_does_not_keep_the_server_from_stopping),
        cmocka_unit_test(endless_races_end_in_a_conflict),
        cmocka_unit_test(held_writes_are_dropped_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
