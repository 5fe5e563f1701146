/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails and comes back: what the API server says meanwhile, and to its watches.  The
 * store is the test's own backend, which the test drives by hand. */
#include "harness.h"

#include "net/loop/sock.h"
#include "store/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"
#define KEY "/registry/network.openshift.io/netnamespaces/"
#define NET_A "{\"metadata\":{\"name\":\"a\"},\"netname\":\"a\",\"netid\":11}"

/* Answers each write with 'answer'; 0: keeps it until the test finishes it.  Calls of store_sync
 * fail with 'sync_error'; 0: they stay in 'syncs' until the test finishes them. */
struct manual {
    struct store base;
    int answer, sync_error;
    struct list held, syncs;
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
    if (m->sync_error) {
        store_writes_fail(&m->syncs, m->sync_error);
    }
}

static void manual_write(struct store *s, struct store_write *w)
{
    struct manual *m = CONTAINER_OF(s, struct manual, base);
    list_push_back(&m->held, &w->node);
    loop_task_queue(&m->task);
}

static void manual_sync(struct store *s, struct store_write *w)
{
    struct manual *m = CONTAINER_OF(s, struct manual, base);
    list_push_back(&m->syncs, &w->node);
    loop_task_queue(&m->task);
}

static void manual_close(struct store *s)
{
    struct manual *m = CONTAINER_OF(s, struct manual, base);
    loop_task_cancel(&m->task);
    store_writes_fail(&m->held, -ECANCELED);
    store_writes_fail(&m->syncs, -ECANCELED);
}

static const struct store_ops manual_ops = {
    .start = manual_start, .write = manual_write, .close = manual_close};
/* A store to which other masters write. */
static const struct store_ops shared_ops = {
    .start = manual_start, .write = manual_write, .sync = manual_sync, .close = manual_close};

struct bench {
    struct harness h;
    struct manual *store;
};

static void ready(void *ctx)
{
    ((struct harness *) ctx)->ready = true;
}

static struct bench *bench_with(const struct store_ops *ops)
{
    struct bench *b = NEW(struct bench);
    struct harness *h = &b->h;
    struct apiserver_config cfg = {.ready = ready, .ctx = h};
    int fd;
    h->loop = loop_new();
    b->store = NEW(struct manual);
    store_init(&b->store->base, ops, h->loop);
    list_init(&b->store->held);
    list_init(&b->store->syncs);
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

static struct bench *bench_new(void)
{
    return bench_with(&manual_ops);
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
    /* Back with another state: the watch is told the difference; nobody can begin one
     * in the gap. */
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

/* etcd compacted its history while we were away: each object's last state is told, in
 * order, and what is gone. */
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

/* ---- objects that cannot be read ---- */

#define SUBNETS "/apis/network.openshift.io/v1/hostsubnets"
#define HS(name, subnet, extra)                                       \
    "{\"metadata\":{\"name\":\"" name "\"" extra "},\"host\":\"" name \
    "\",\"hostIP\":\"10.1.1.1\","                                     \
    "\"subnet\":\"" subnet "\"}"
#define KNOWN ",\"annotations\":{\"tenet.io/number-is-known\":\"true\"}"

/* 'items': keys and values, ending with NULL. */
static void snapshot_with(struct bench *b, const char *const *items, uint64_t revision)
{
    struct store_item list[8] = {0};
    size_t n = 0;
    for (; items[2 * n]; n++) {
        const char *value = items[2 * n + 1];
        list[n] = (struct store_item){items[2 * n], blob_new(value, strlen(value)), n + 1};
    }
    store_report_snapshot(&b->store->base, list, n, revision);
    for (size_t i = 0; i < n; i++) {
        blob_unref(list[i].value);
    }
}

static void expect_says(struct bench *b, const char *method, const char *path, const char *body,
                        int status, const char *text)
{
    bool patch = streq(method, "PATCH");
    CLEANUP_ANSWER
    struct answer a =
        ask_full(&b->h, method, path, NULL, patch ? "application/merge-patch+json" : NULL, body);
    if (a.status != status || !strstr(a.text, text)) {
        fail_msg("%s %s: \"%s\" does not say \"%s\"", method, path, a.text, text);
    }
}

static void unreadable_objects_are_not_taken_for_deleted(void **state)
{
    struct bench *b = bench_new();
    snapshot_with(b,
                  (const char *const[]){"/registry/network.openshift.io/hostsubnets/n1", "{junk",
                                        "/registry/network.openshift.io/hostsubnets/n2",
                                        HS("n2", "10.128.2.0/23", ""), KEY "a", NET_A, NULL},
                  5);
    static const char why[] = "an object that cannot be read: "
                              "/registry/network.openshift.io/hostsubnets/n1";
    expect_says(b, "GET", SUBNETS "/n1", NULL, 500, why);
    expect_says(b, "GET", SUBNETS, NULL, 500, why);
    expect_says(b, "GET", SUBNETS "?watch=1", NULL, 500, why);
    expect_says(b, "DELETE", SUBNETS "/n1", NULL, 500, why);
    expect_says(b, "DELETE", SUBNETS, NULL, 500, why);
    expect_says(b, "PUT", SUBNETS "/n1", HS("n1", "10.128.2.0/23", ""), 500, why);
    expect_says(b, "GET", SUBNETS "/n2", NULL, 200, "10.128.2.0/23");
    expect_says(b, "GET", NETS, NULL, 200, "\"netid\":11");
    expect_says(b, "GET", "/metrics", NULL, 200, "\napiserver_storage_unreadable_objects 1\n");
    expect_says(b, "GET", "/metrics", NULL, 200, "\napiserver_storage_available 1\n");
    b->store->answer = -ENOENT;
    expect_says(b, "GET", "/readyz", NULL, 503,
                "[-]integrity failed: an object cannot be read: "
                "/registry/network.openshift.io/hostsubnets/n1");
    /* Its subnet may be any. */
    static const char held[] = "no subnet is given out";
    b->store->answer = -EEXIST;
    expect_says(b, "POST", SUBNETS, HS("n3", "10.128.4.0/23", ""), 403, held);
    expect_says(b, "PUT", SUBNETS "/n2", HS("n2", "10.128.4.0/23", ""), 403, held);
    expect_says(b, "POST", SUBNETS, HS("n3", "10.128.4.0/23", KNOWN), 409, "already exists");
    b->store->answer = -ENOSPC;
    expect_says(b, "PATCH", SUBNETS "/n2", "{\"hostIP\":\"10.1.1.9\"}", 507, "full");
    /* VNIDs have nothing to do with it. */
    expect_says(b, "POST", NETS, "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\",\"netid\":12}",
                507, "full");
    bench_free(b);
}

static void event_that_cannot_be_read_deletes_nothing(void **state)
{
    struct bench *b = bench_new();
    snapshot(b, NET_A, 5);
    struct watcher *w = watcher_new(&b->h, NETS "?watch=1&resourceVersion=5", NULL);
    CLEANUP(blob_unref) struct blob *junk = blob_new("{\"metadata\":{\"name\":", 20);
    CLEANUP(blob_unref) struct blob *good = blob_new(NET_A, sizeof NET_A - 1);
    store_report_event(&b->store->base,
                       &(struct store_event){.key = KEY "a", .value = junk, .revision = 6});
    expect_says(b, "GET", NETS "/a", NULL, 500, "cannot be read");
    expect_says(b, "POST", NETS, "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\",\"netid\":12}",
                403, "no netid is given out");
    watcher_expect(w, 0);
    store_report_event(&b->store->base,
                       &(struct store_event){.key = KEY "a", .value = good, .revision = 7});
    watcher_expect(w, 1);
    CLEANUP_FREE char *told = watcher_summary(w);
    assert_string_equal(told, "MODIFIED a@7");
    expect_says(b, "GET", NETS "/a", NULL, 200, "\"netid\":11");
    watcher_free(w);
    bench_free(b);
}

static void no_number_is_given_out_after_a_repair(void **state)
{
    struct bench *b = bench_new();
    snapshot_with(
        b,
        (const char *const[]){
            KEY "a",
            "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"tenet.io/next-netid\":\"20\"}},"
            "\"netname\":\"a\",\"netid\":11}",
            STORE_HOLD_VNIDS, "{}", NULL},
        5);
    static const char held[] = "tenet store release netnamespaces";
    b->store->answer = -ENOSPC; /* What a write is answered with that comes through. */
    expect_says(b, "POST", NETS, "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\",\"netid\":12}",
                403, held);
    expect_says(b, "PATCH", NETS "/a", "{\"netid\":12}", 403, held);
    expect_says(
        b, "PATCH", NETS "/a",
        "{\"metadata\":{\"annotations\":{\"tenet.io/number-is-known\":\"false\"}},\"netid\":12}",
        403, held);
    /* Global, or of another label. */
    expect_says(b, "POST", NETS, "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\",\"netid\":0}",
                507, "full");
    expect_says(b, "PATCH", NETS "/a", "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}", 507, "full");
    expect_says(b, "POST", SUBNETS, HS("n3", "10.128.4.0/23", ""), 507, "full");
    /* A move that had begun comes to its end. */
    expect_says(b, "PATCH", NETS "/a", "{\"netid\":20}", 507, "full");
    /* Somebody released it. */
    store_report_event(&b->store->base,
                       &(struct store_event){.key = STORE_HOLD_VNIDS, .revision = 6});
    expect_says(b, "PATCH", NETS "/a", "{\"netid\":12}", 507, "full");
    bench_free(b);
}

/* ---- writes under a lease, deletions by selector ---- */

#define LEASE_KEY "/registry/coordination.k8s.io/leases/kube-system/test"
#define LEASE_OF(holder)                                               \
    "{\"metadata\":{\"name\":\"test\",\"namespace\":\"kube-system\"}," \
    "\"spec\":{\"holderIdentity\":\"" holder "\"}}"

static void ignore(void *ctx, const struct http_result *r)
{
}

static void begin_fenced(struct bench *b, const char *method, const char *path, const char *body)
{
    http_call(b->h.client, method, path, NULL, NULL, body, body ? strlen(body) : 0, ignore, NULL);
    bool never = false;
    while (list_is_empty(&b->store->held)) {
        loop_run_until(b->h.loop, &never, 5);
    }
}

static struct store_write *held_write(struct bench *b)
{
    assert_int_equal(list_size(&b->store->held), 1);
    return CONTAINER_OF(b->store->held.next, struct store_write, node);
}

/* The store, which alone knows what is true at that moment, is asked to check the lease
 * with the change. */
static void write_under_a_lease_is_guarded_by_it(void **state)
{
    static const struct {
        const char *method, *path, *body;
    } writes[] = {
        {"POST", NETS, "{\"metadata\":{\"name\":\"b\"},\"netname\":\"b\",\"netid\":12}"},
        {"PUT", NETS "/a", "{\"netname\":\"a\",\"netid\":12}"},
        {"DELETE", NETS "/a", NULL},
        {"DELETE", NETS, NULL},
    };
    struct bench *b = bench_new();
    snapshot_with(b, (const char *const[]){KEY "a", NET_A, LEASE_KEY, LEASE_OF("me"), NULL}, 5);
    for (size_t i = 0; i < ARRAY_SIZE(writes); i++) { /* Without the header: no guard. */
        begin_fenced(b, writes[i].method, writes[i].path, writes[i].body);
        assert_null(held_write(b)->guard);
        store_writes_fail(&b->store->held, -EIO);
    }
    http_client_add_header(b->h.client, "Tenet-Lease", "kube-system/test me");
    for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
        begin_fenced(b, writes[i].method, writes[i].path, writes[i].body);
        assert_string_equal(held_write(b)->guard, LEASE_KEY);
        assert_int_equal(held_write(b)->guard_at, 2);
        store_writes_fail(&b->store->held, -EIO);
    }
    /* The lease is renewed while a write is under way: it is sent again, under the renewed one. */
    begin_fenced(b, writes[0].method, writes[0].path, writes[0].body);
    CLEANUP(blob_unref) struct blob *mine = blob_new(LEASE_OF("me"), strlen(LEASE_OF("me")));
    CLEANUP(blob_unref) struct blob *theirs = blob_new(LEASE_OF("you"), strlen(LEASE_OF("you")));
    store_report_event(&b->store->base,
                       &(struct store_event){.key = LEASE_KEY, .value = mine, .revision = 6});
    store_writes_fail(&b->store->held, -EPERM);
    assert_int_equal(held_write(b)->guard_at, 6);
    /* Another master takes it: nothing is sent any more. */
    store_report_event(&b->store->base,
                       &(struct store_event){.key = LEASE_KEY, .value = theirs, .revision = 7});
    store_writes_fail(&b->store->held, -EPERM);
    assert_true(list_is_empty(&b->store->held));
    for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
        expect_says(b, writes[i].method, writes[i].path, writes[i].body, 409, "is not held by");
    }
    bench_free(b);
}

/* A lease that is lost while a write waits for another attempt guards that attempt, too. */
static void repeated_write_is_guarded_too(void **state)
{
    struct bench *b = bench_new();
    snapshot_with(b, (const char *const[]){KEY "a", NET_A, LEASE_KEY, LEASE_OF("me"), NULL}, 5);
    http_client_add_header(b->h.client, "Tenet-Lease", "kube-system/test me");
    begin_fenced(b, "PUT", NETS "/a", "{\"netname\":\"a\",\"netid\":12}");
    CLEANUP(blob_unref) struct blob *theirs = blob_new(LEASE_OF("you"), strlen(LEASE_OF("you")));
    store_report_event(&b->store->base,
                       &(struct store_event){.key = LEASE_KEY, .value = theirs, .revision = 7});
    store_writes_fail(&b->store->held, -ESTALE);
    /* It is at no revision that a key can have. */
    assert_string_equal(held_write(b)->guard, LEASE_KEY);
    assert_true(held_write(b)->guard_at == STORE_ANY);
    bench_free(b);
}

static void collection_spares_what_stopped_matching(void **state)
{
    static const char with[] =
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"t\":\"x\"}},\"netname\":\"a\",\"netid\":11}";
    struct bench *b = bench_new();
    snapshot(b, with, 5);
    begin_fenced(b, "DELETE", NETS "?labelSelector=t%3Dx", NULL);
    assert_null(held_write(b)->value);
    /* Another master changes it meanwhile. */
    CLEANUP(blob_unref) struct blob *without = blob_new(NET_A, sizeof NET_A - 1);
    store_report_event(&b->store->base,
                       &(struct store_event){.key = KEY "a", .value = without, .revision = 6});
    store_writes_fail(&b->store->held, -ESTALE);
    assert_true(list_is_empty(&b->store->held));
    expect_says(b, "GET", NETS "/a", NULL, 200, "\"netid\":11");
    /* What still matches is tried again. */
    CLEANUP(blob_unref) struct blob *again = blob_new(with, sizeof with - 1);
    store_report_event(&b->store->base,
                       &(struct store_event){.key = KEY "a", .value = again, .revision = 7});
    begin_fenced(b, "DELETE", NETS "?labelSelector=t%3Dx", NULL);
    store_report_event(&b->store->base,
                       &(struct store_event){.key = KEY "a", .value = again, .revision = 8});
    store_writes_fail(&b->store->held, -ESTALE);
    assert_int_equal(held_write(b)->expect, 8);
    bench_free(b);
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
    expect_health(b, "/metrics", 200, "\napiserver_storage_available 0\n");
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

/* Another master wins each time: an update that insists on nothing gives up at some
 * point, in order. */
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

/* ---- a store to which other masters write ---- */

/* An answer under way. */
struct reply {
    bool done;
    int status;
    char *body; /* Owned. */
};

static void replied(void *ctx, const struct http_result *r)
{
    *(struct reply *) ctx = (struct reply){true, r->status, xstrndup(r->body, r->size)};
}

static void reply_begin(struct bench *b, struct reply *reply, const char *method, const char *path)
{
    static const char body[] = "{\"netname\":\"a\",\"netid\":12}";
    bool put = streq(method, "PUT");
    http_call(b->h.client, method, path, NULL, NULL, put ? body : NULL, put ? sizeof body - 1 : 0,
              replied, reply);
}

static void reply_expect(struct bench *b, struct reply *reply, int status, const char *says)
{
    assert_int_equal(loop_run_until(b->h.loop, &reply->done, 20000), 0);
    if (reply->status != status || !strstr(reply->body, says)) {
        fail_msg("%d, not %d with \"%s\": %s", reply->status, status, says, reply->body);
    }
    free(reply->body);
    *reply = (struct reply){0};
}

/* Waits until the request waits for the store. */
static void expect_waiting(struct bench *b, const struct reply *reply, const char *path)
{
    bool never = false;
    while (list_is_empty(&b->store->syncs)) {
        if (reply->done) {
            fail_msg("%s did not wait for the store: %s", path, reply->body);
        }
        loop_run_until(b->h.loop, &never, 5);
    }
    assert_int_equal(list_size(&b->store->syncs), 1);
}

/* Another master may have written meanwhile: the request waits until the store has said how far it
 * is. */
static void a_request_for_the_newest_state_waits_for_the_store(void **state)
{
    static const struct {
        const char *method, *path;
        bool waits;
    } cases[] = {
        {"GET", NETS "/a", true},
        {"GET", NETS "/a?resourceVersion=", true},
        {"GET", NETS "/a?resourceVersion=0", false},
        {"GET", NETS "/a?resourceVersion=4", false},
        {"GET", NETS "/a?resourceVersion=5", false},
        {"GET", NETS, true},
        {"GET", NETS "?resourceVersion=0", false},
        {"GET", NETS "?resourceVersion=5", false},
        {"GET", NETS "?limit=1", true},
        {"GET", NETS "?watch=1&timeoutSeconds=1&resourceVersion=5", false},
    };
    struct bench *b = bench_with(&shared_ops);
    snapshot(b, NET_A, 5);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply reply = {0};
        reply_begin(b, &reply, cases[i].method, cases[i].path);
        if (cases[i].waits) {
            expect_waiting(b, &reply, cases[i].path);
            store_writes_fail(&b->store->syncs, 0);
        }
        reply_expect(b, &reply, 200, "");
        assert_true(list_is_empty(&b->store->syncs));
    }
    /* The answer has what the store reported before it answered. */
    struct reply later = {0};
    const char *const paths[] = {NETS "/a", NETS "/a?resourceVersion=7"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{\"metadata\":{\"name\":\"a\"},\"netname\":\"a\",\"netid\":%zu}", 70 + i);
        CLEANUP_FREE char *want = xasprintf("\"netid\":%zu", 70 + i);
        CLEANUP(blob_unref) struct blob *value = blob_new(text, strlen(text));
        struct store_event ev = {.key = KEY "a", .value = value, .revision = 6 + i};
        reply_begin(b, &later, "GET", paths[i]);
        expect_waiting(b, &later, paths[i]);
        store_report_event(&b->store->base, &ev);
        store_writes_fail(&b->store->syncs, 0);
        reply_expect(b, &later, 200, want);
    }
    /* A write waits twice: for the store's state, and for the write itself. */
    reply_begin(b, &later, "PUT", NETS "/a");
    expect_waiting(b, &later, "PUT");
    assert_true(list_is_empty(&b->store->held));
    store_writes_fail(&b->store->syncs, 0);
    b->store->answer = -ENOSPC;
    reply_expect(b, &later, 507, "InsufficientStorage");
    bench_free(b);
}

static void without_the_store_reads_have_a_warning_and_writes_are_refused(void **state)
{
    static const char warning[] = "\r\nWarning: 299 tenet \"the store is not available: this is "
                                  "the state of resourceVersion 5, "
                                  "there may be a newer one\"\r\n";
    static const struct {
        const char *request;
        bool read;
    } cases[] = {
        {"GET " NETS "/a", true},     {"GET " NETS, true},
        {"DELETE " NETS "/a", false}, {"GET " NETS "?watch=1&timeoutSeconds=1", true},
        {"DELETE " NETS, false},      {"POST " NETS, false},
    };
    struct bench *b = bench_with(&shared_ops);
    snapshot(b, NET_A, 5);
    b->store->sync_error = -EAGAIN;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf(
            "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n"
            "Content-Type: application/json\r\n\r\n%s",
            cases[i].request, cases[i].read ? 0 : sizeof "{}" - 1, cases[i].read ? "" : "{}");
        CLEANUP_FREE char *got = ask_raw(&b->h, text);
        if (!str_has_prefix(got, cases[i].read ? "HTTP/1.1 200 " : "HTTP/1.1 503 ") ||
            !strstr(got, cases[i].read ? warning : "ServiceUnavailable") ||
            !strstr(got, "Warning: ") != !cases[i].read) {
            fail_msg("%s: %s", cases[i].request, got);
        }
        assert_true(list_is_empty(&b->store->held));
    }
    bench_free(b);
}

/* The server stops while a request waits for the store: the request is refused, and nothing is
 * written. */
static void a_request_that_waits_for_the_store_is_refused_at_the_end(void **state)
{
    static const char *const methods[] = {"GET", "PUT"};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        struct bench *b = bench_with(&shared_ops);
        struct reply reply = {0};
        snapshot(b, NET_A, 5);
        reply_begin(b, &reply, methods[i], NETS "/a");
        expect_waiting(b, &reply, methods[i]);
        apiserver_shutdown(b->h.api);
        store_writes_fail(&b->store->syncs, 0);
        reply_expect(b, &reply, 503, "the server is shutting down");
        assert_true(list_is_empty(&b->store->held));
        bench_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_for_the_newest_state_waits_for_the_store),
        cmocka_unit_test(without_the_store_reads_have_a_warning_and_writes_are_refused),
        cmocka_unit_test(a_request_that_waits_for_the_store_is_refused_at_the_end),
        cmocka_unit_test(until_the_snapshot_is_there_nothing_is_served),
        cmocka_unit_test(a_lost_store_takes_no_writes_but_reads_go_on),
        cmocka_unit_test(what_changed_during_a_loss_is_told_once_and_in_order),
        cmocka_unit_test(errors_of_the_store_have_a_status_each),
        cmocka_unit_test(unreadable_objects_are_not_taken_for_deleted),
        cmocka_unit_test(event_that_cannot_be_read_deletes_nothing),
        cmocka_unit_test(no_number_is_given_out_after_a_repair),
        cmocka_unit_test(write_under_a_lease_is_guarded_by_it),
        cmocka_unit_test(repeated_write_is_guarded_too),
        cmocka_unit_test(collection_spares_what_stopped_matching),
        cmocka_unit_test(ready_is_what_a_write_says),
        cmocka_unit_test(health_request_that_waits_does_not_keep_the_server_from_stopping),
        cmocka_unit_test(endless_races_end_in_a_conflict),
        cmocka_unit_test(held_writes_are_dropped_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
