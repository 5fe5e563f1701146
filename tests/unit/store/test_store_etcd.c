/* SPDX-License-Identifier: Apache-2.0 */
/* What only the etcd store must do: outlive etcd, the network and compaction, and share
 * with others. */
#include "harness.h"
#include "proxy.h"

#include "net/loop/sock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct etcd etcd;

struct fixture {
    struct harness h;
    struct proxy *proxy, *second;
};

static int start_etcd(void **state)
{
    etcd_start(&etcd);
    return 0;
}

static int stop_etcd(void **state)
{
    etcd_stop(&etcd);
    return 0;
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    harness_init(&f->h, "etcd");
    etcd_ctl(&etcd, "del --prefix /registry/");
    f->proxy = proxy_new(f->h.loop, etcd.client_port);
    f->second = proxy_new(f->h.loop, etcd.client_port);
    snprintf(f->h.endpoints, sizeof f->h.endpoints, "http://127.0.0.1:%d", proxy_port(f->proxy));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    harness_close(&f->h);
    proxy_free(f->proxy);
    proxy_free(f->second);
    harness_done(&f->h);
    free(f);
    return 0;
}

static void death_of_etcd_is_reported_and_survived(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    uint64_t a = 0, b = 0;
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, &a), 0);
    etcd_kill(&etcd);
    harness_wait_lost(h, 1);
    assert_true(h->lost[0] != '\0');
    assert_int_equal(put(h, "/registry/a", "2", STORE_ANY, NULL), -EAGAIN);
    etcd_restart(&etcd);
    harness_wait_snapshots(h, 2);
    assert_int_equal(h->n_lost, 1);
    assert_int_equal(h->n_items, 1);
    assert_int_equal(harness_item(h, "/registry/a")->revision, a);
    assert_int_equal(put(h, "/registry/a", "3", a, &b), 0);
    assert_true(b > a);
}

static void short_break_is_not_noticed(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, NULL), 0);
    for (int round = 0; round < 5; round++) {
        proxy_cut(f->proxy, true);
        struct result r;
        begin_put(h, &r, "/registry/mine", "held back", STORE_ANY);
        etcd_ctl(&etcd, "put /registry/theirs during");
        proxy_cut(f->proxy, false);
        wait_results(h, &r, 1);
        /* It may have been sent into the broken connection. */
        assert_true(r.error == 0 || r.error == -EAGAIN);
        harness_wait_events(h, h->n_events + (r.error ? 1 : 0));
        assert_int_equal(put(h, "/registry/after", "1", STORE_ANY, NULL), 0);
    }
    unsigned theirs = 0;
    for (size_t i = 0; i < h->n_events; i++) {
        theirs += streq(h->events[i].key, "/registry/theirs");
        assert_true(i == 0 || h->events[i].revision == h->events[i - 1].revision + 1);
    }
    assert_int_equal(theirs, 5);
    assert_int_equal(h->n_lost, 0);
    assert_int_equal(h->n_snapshots, 1);
}

static void unsent_writes_wait_for_the_connection(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, NULL), 0);
    proxy_cut(f->proxy, true);
    unsigned before = proxy_accepted(f->proxy);
    while (proxy_accepted(f->proxy) < before + 2) { /* It has noticed. */
        bool never = false;
        loop_run_until(h->loop, &never, 10);
    }
    struct result r[20];
    for (int i = 0; i < 20; i++) {
        begin_put(h, &r[i], i % 2 ? "/registry/b" : "/registry/c", "v", STORE_ANY);
    }
    proxy_cut(f->proxy, false);
    wait_results(h, r, 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(r[i].error, 0);
        assert_true(i < 2 || r[i].revision > r[i - 2].revision);
    }
    assert_int_equal(h->n_snapshots, 1);
}

static void unknown_outcome_is_eagain(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, NULL), 0);
    proxy_mute(f->proxy, true);
    struct result r[3];
    begin_put(h, &r[0], "/registry/b", "done", STORE_ABSENT);
    begin_put(h, &r[1], "/registry/b", "after it", STORE_ANY);
    begin_delete(h, &r[2], "/registry/a", STORE_ANY);
    etcd_ctl(&etcd, "get /registry/b"); /* Gives them time to pass the proxy. */
    bool never = false;
    loop_run_until(h->loop, &never, 200);
    proxy_mute(f->proxy, false);
    proxy_cut(f->proxy, false);
    wait_results(h, r, 3);
    assert_int_equal(r[0].error, -EAGAIN);
    assert_int_equal(r[1].error, 0); /* Was not sent before. */
    assert_int_equal(r[2].error, -EAGAIN);
    harness_wait_events(h, 4);
    assert_int_equal(h->n_events, 4);
    assert_string_equal(h->events[3].value, "after it");
    assert_string_equal(h->events[3].prev, "done");
    assert_int_equal(h->n_snapshots, 1);
}

static void silence_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    snprintf(h->endpoints, sizeof h->endpoints, "http://127.0.0.1:%d,http://127.0.0.1:%d",
             proxy_port(f->proxy), proxy_port(f->second));
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, NULL), 0);
    proxy_stall(f->proxy, true);
    etcd_ctl(&etcd, "put /registry/a 2");
    harness_wait_events(h, 2);
    assert_int_equal(proxy_accepted(f->second), 1);
    assert_int_equal(h->n_lost, 0);
    assert_int_equal(h->n_snapshots, 1);
}

struct past {
    unsigned snapshots, lost, resumed;
    size_t items;
    uint64_t revision;
    char reason[256];
};

static void past_snapshot(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    struct past *p = ctx;
    p->snapshots++;
    p->items = n;
    p->revision = revision;
}

static void past_event(void *ctx, const struct store_event *ev)
{
    ((struct past *) ctx)->revision = ev->revision;
}

static void past_lost(void *ctx, const char *reason)
{
    struct past *p = ctx;
    p->lost++;
    snprintf(p->reason, sizeof p->reason, "%s", reason);
}

static void past_resumed(void *ctx)
{
    ((struct past *) ctx)->resumed++;
}

static void past_put(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

/* Its data were lost, or a backup was put in their place: watching from where we were
 * would show nothing for ever. */
static void etcd_that_went_back_is_read_anew(void **state)
{
    static const struct store_watcher watcher = {
        .snapshot = past_snapshot, .event = past_event, .lost = past_lost, .resumed = past_resumed};
    struct fixture *f = *state;
    struct past p = {0};
    struct store *s = NULL;
    bool never = false;
    snprintf(f->h.endpoints, sizeof f->h.endpoints, "http://127.0.0.1:%d", etcd.client_port);
    assert_int_equal(store_open(f->h.loop, &f->h.cfg, &s, NULL), 0);
    store_start(s, &watcher, &p);
    while (!p.snapshots) {
        loop_run_until(f->h.loop, &never, 10);
    }
    for (int i = 0; i < 5; i++) {
        bool done = false;
        CLEANUP(blob_unref) struct blob *value = blob_new("v", 1);
        store_put(s, "/registry/a", value, STORE_ANY, past_put, &done);
        assert_int_equal(loop_run_until(f->h.loop, &done, WAIT_MS), 0);
    }
    uint64_t before = p.revision;
    CLEANUP_FREE char *data = xasprintf("%s/data", etcd.dir);
    etcd_kill(&etcd);
    remove_tree(data);
    etcd_restart(&etcd);
    for (int i = 0; i < WAIT_MS / 10 && p.snapshots < 2; i++) {
        loop_run_until(f->h.loop, &never, 10);
    }
    assert_int_equal(p.snapshots, 2);
    assert_int_equal(p.items, 0);
    assert_true(p.revision < before);
    assert_non_null(strstr(p.reason, "etcd went back to an older revision"));
    assert_int_equal(p.resumed, 0);
    s = store_close(s);
}

static void next_endpoint_takes_over(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    snprintf(h->endpoints, sizeof h->endpoints,
             "http://127.0.0.1:1,http://127.0.0.1:%d,http://localhost:%d/", proxy_port(f->proxy),
             proxy_port(f->second));
    harness_open(h);
    uint64_t a = 0;
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, &a), 0);
    assert_int_equal(proxy_accepted(f->second), 0);
    proxy_cut(f->proxy, true);
    etcd_ctl(&etcd, "put /registry/b 1");
    harness_wait_events(h, 2);
    assert_int_equal(proxy_accepted(f->second), 1);
    assert_int_equal(put(h, "/registry/a", "2", a, NULL), 0);
    assert_int_equal(h->n_lost, 0);
}

static void other_cluster_is_refused(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    struct etcd other;
    etcd_start(&other);
    snprintf(h->endpoints, sizeof h->endpoints, "http://127.0.0.1:%d,http://127.0.0.1:%d",
             proxy_port(f->proxy), other.client_port);
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, NULL), 0);
    proxy_cut(f->proxy, true);
    harness_wait_lost(h, 1);
    assert_int_equal(h->n_snapshots, 1);
    proxy_cut(f->proxy, false);
    harness_wait_snapshots(h, 2);
    assert_int_equal(h->n_items, 1);
    etcd_stop(&other);
}

static void compaction_past_us_needs_a_snapshot(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    uint64_t a = 0;
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, &a), 0);
    proxy_cut(f->proxy, true);
    for (int i = 0; i < 5; i++) {
        etcd_ctl(&etcd, "put /registry/a again");
    }
    char compact[64];
    snprintf(compact, sizeof compact, "compact %llu", (unsigned long long) a + 4);
    etcd_ctl(&etcd, compact);
    proxy_cut(f->proxy, false);
    harness_wait_snapshots(h, 2);
    assert_int_equal(h->n_lost, 1);
    assert_non_null(strstr(h->lost, "compacted"));
    assert_int_equal(harness_item(h, "/registry/a")->revision, a + 5);
    assert_int_equal(put(h, "/registry/a", "2", a + 5, NULL), 0);

    /* And what is compacted is no history. */
    harness_close(h);
    harness_forget(h);
    harness_open(h);
    assert_int_equal(h->n_history, 2);
    assert_int_equal(h->history[0].revision, a + 5);
    assert_string_equal(h->history[0].prev, "again");
}

static void old_history_is_compacted(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    h->cfg.history = 20;
    harness_open(h);
    uint64_t first = 0, last = 0;
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, &first), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(put(h, "/registry/a", "2", STORE_ANY, &last), 0);
    }
    char get[64];
    for (int i = 0; i < 100 && etcd_ctl_status(&etcd, "get /registry/none") != 0; i++) {
    }
    snprintf(get, sizeof get, "get /registry/a --rev=%llu", (unsigned long long) first + 30);
    assert_int_not_equal(etcd_ctl_status(&etcd, get), 0);
    snprintf(get, sizeof get, "get /registry/a --rev=%llu", (unsigned long long) last - 20);
    assert_int_equal(etcd_ctl_status(&etcd, get), 0);
    assert_int_equal(h->n_lost, 0);
}

/* So often that etcd has granted a lease before the last one: nothing waits for it. */
static void put_under_a_lease(struct harness *h, const char *key, unsigned ttl_s)
{
    struct result r;
    for (int i = 0; i < 50; i++) {
        begin_put_for(h, &r, key, "1", ttl_s);
        wait_results(h, &r, 1);
        assert_int_equal(r.error, 0);
    }
}

static bool something_was_deleted(struct harness *h)
{
    return h->n_events && !h->events[h->n_events - 1].value;
}

static void keys_that_need_not_stay_go_with_a_lease(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    assert_int_equal(put(h, "/registry/stays", "1", STORE_ABSENT, NULL), 0);
    put_under_a_lease(h, "/registry/goes", 1);
    harness_wait(h, something_was_deleted);
    assert_string_equal(h->events[h->n_events - 1].key, "/registry/goes");
    harness_forget(h);
    put_under_a_lease(h, "/registry/goes", 1);
    harness_wait(h, something_was_deleted);
    assert_int_equal(put(h, "/registry/stays", "2", STORE_ANY, NULL), 0);
}

static void a_lease_that_was_taken_away_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    put_under_a_lease(h, "/registry/goes", 600);
    CLEANUP_FREE char *revoke =
        xasprintf("c='etcdctl --endpoints=http://127.0.0.1:%d'; "
                  "$c lease list | tail -n +2 | xargs -r -n1 $c lease revoke >/dev/null",
                  etcd.client_port);
    assert_int_equal(system(revoke), 0);
    harness_wait(h, something_was_deleted);
    put_under_a_lease(h, "/registry/goes", 600);
    harness_forget(h);
    assert_int_equal(system(revoke), 0);
    harness_wait(h, something_was_deleted);
    assert_int_equal(h->n_lost, 0);
}

/* ---- sharing ---- */

static void two_masters_see_the_same(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h, other;
    harness_open(h);
    struct loop *loop = h->loop;
    harness_init(&other, "etcd");
    loop_free(other.loop);
    other.loop = loop;
    snprintf(other.endpoints, sizeof other.endpoints, "http://127.0.0.1:%d", etcd.client_port);
    harness_open(&other);
    enum { ROUNDS = 30, N = 4 };
    uint64_t current = STORE_ABSENT;
    for (int round = 0; round < ROUNDS; round++) {
        struct result r[2][N];
        for (int i = 0; i < N; i++) {
            begin_put(h, &r[0][i], "/registry/lock", "one", current);
            begin_put(&other, &r[1][i], "/registry/lock", "two", current);
        }
        wait_results(h, r[0], N);
        wait_results(&other, r[1], N);
        unsigned won = 0;
        for (int i = 0; i < 2 * N; i++) {
            struct result *one = &r[i / N][i % N];
            if (one->error == 0) {
                won++;
                current = one->revision;
            } else {
                assert_int_equal(one->error, round ? -ESTALE : -EEXIST);
            }
        }
        assert_int_equal(won, 1);
        /* Who lost has seen by whom. */
        assert_int_equal(h->events[h->n_events - 1].revision, current);
        assert_int_equal(other.events[other.n_events - 1].revision, current);
    }
    assert_int_equal(h->n_events, ROUNDS);
    assert_int_equal(other.n_events, ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(h->events[i].revision, other.events[i].revision);
        assert_string_equal(h->events[i].value, other.events[i].value);
    }
    other.loop = loop_new(); /* Its own again, for harness_done. */
    harness_close(&other);
    harness_done(&other);
}

static void several_changes_in_one_revision_all_come(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    for (int i = 0; i < 5; i++) {
        char key[32];
        snprintf(key, sizeof key, "/registry/many/%d", i);
        assert_int_equal(put(h, key, key, STORE_ABSENT, NULL), 0);
    }
    etcd_ctl(&etcd, "put /elsewhere/x y");
    etcd_ctl(&etcd, "del --prefix /registry/many/");
    harness_wait_events(h, 10);
    for (int i = 5; i < 10; i++) {
        assert_null(h->events[i].value);
        assert_non_null(h->events[i].prev);
        assert_int_equal(h->events[i].revision, h->events[4].revision + 2);
    }
    assert_int_equal(put(h, "/registry/after", "1", STORE_ABSENT, NULL), 0);
    assert_int_equal(h->n_events, 11);
}

/* ---- sizes ---- */

static void fill_big(struct harness *h, int n, size_t size)
{
    char *value = xmalloc(size);
    memset(value, 'b', size);
    struct result *r = xcalloc((size_t) n, sizeof *r);
    for (int i = 0; i < n; i++) {
        char key[32];
        snprintf(key, sizeof key, "/registry/big/%03d", i);
        begin_put_bytes(h, &r[i], key, value, size, STORE_ANY);
    }
    wait_results(h, r, (size_t) n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(r[i].error, 0);
    }
    free(r);
    free(value);
}

static void pages_shrink_when_values_are_big(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    fill_big(h, 40, 1 << 20);
    harness_close(h);
    harness_forget(h);
    h->cfg.history = 1;
    harness_open(h);
    assert_int_equal(h->n_items, 40);
    assert_int_equal(strlen(h->items[39].value), 1 << 20);
    etcd_ctl(&etcd, "del --prefix /registry/big/");
    harness_wait_events(h, 40);
}

static void too_large_is_said_so(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    struct result r;
    size_t size = 4 << 20;
    char *value = xcalloc(1, size);
    begin_put_bytes(h, &r, "/registry/a", value, size, STORE_ANY);
    wait_results(h, &r, 1);
    assert_int_equal(r.error, -E2BIG);
    begin_put_bytes(h, &r, "/registry/a", value, 1600 << 10, STORE_ANY);
    wait_results(h, &r, 1);
    assert_int_equal(r.error, -E2BIG);
    free(value);
    assert_int_equal(put(h, "/registry/a", "small", STORE_ABSENT, NULL), 0);
}

/* The connection breaks at many places of a revision that comes in several fragments. */
static void break_inside_a_revision_neither_loses_nor_repeats(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    harness_open(h);
    enum { N = 12 };
    size_t size = 400 << 10;
    for (int round = 0; round < 8; round++) {
        fill_big(h, N, size);
        harness_forget(h);
        unsigned before = proxy_accepted(f->proxy);
        proxy_cut_after(f->proxy, (size_t) (round + 1) * size * 4 / 3 + 1000);
        etcd_ctl(&etcd, "del --prefix /registry/big/");
        harness_wait_events(h, N);
        assert_int_equal(put(h, "/registry/end", "1", STORE_ANY, NULL), 0);
        assert_int_equal(h->n_events, N + 1);
        for (int i = 0; i < N; i++) {
            char key[32];
            snprintf(key, sizeof key, "/registry/big/%03d", i);
            assert_string_equal(h->events[i].key, key);
        }
        assert_int_equal(proxy_accepted(f->proxy), before + 1);
    }
    assert_int_equal(h->n_snapshots, 1);
}

/* ---- what is not etcd ---- */

static void not_etcd(struct harness *h, const char *answer)
{
    int fd = -1;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        fcntl(fd, F_SETFL, 0);
        for (int c; (c = accept(fd, NULL, NULL)) >= 0; close(c)) {
            char buf[4096];
            if (send(c, answer, strlen(answer), MSG_NOSIGNAL) < 0 || recv(c, buf, 4096, 0) < 0) {
                continue;
            }
        }
        _exit(0);
    }
    struct err e = {0};
    static const struct store_watcher watcher = {.snapshot = NULL};
    struct store_watcher w = watcher;
    w.lost = harness_lost;
    snprintf(h->endpoints, sizeof h->endpoints, "http://127.0.0.1:%d", sock_local_port(fd));
    fd_close(fd);
    assert_int_equal(store_open(h->loop, &h->cfg, &h->store, &e), 0);
    store_start(h->store, &w, h);
    harness_wait_lost(h, 1);
    assert_true(h->lost[0] != '\0');
    harness_close(h);
    kill_child(pid);
}

static void other_servers_are_no_etcd(void **state)
{
    struct fixture *f = *state;
    not_etcd(&f->h, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
}

static void bad_endpoints_are_refused(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"", -EINVAL},
        {"127.0.0.1:2379", -EINVAL},
        {"http://127.0.0.1", -EINVAL},
        {"http://127.0.0.1:0", -EINVAL},
        {"http://127.0.0.1:70000", -EINVAL},
        {"http://etcd.invalid:2379", -EHOSTUNREACH},
        {"https://127.0.0.1:2379,http://127.0.0.1:2380", -EINVAL},
        {"http://127.0.0.1:2379,", -EINVAL},
        {"http://127.0.0.1:2379, http://127.0.0.1:2380", -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        struct store *s = NULL;
        h->cfg.endpoints = cases[i].text;
        assert_int_equal(store_open(h->loop, &h->cfg, &s, &e), cases[i].code);
        assert_null(s);
        assert_true(e.text[0] != '\0');
    }
    h->cfg.backend = "mongodb";
    assert_int_equal(store_open(h->loop, &h->cfg, &h->store, NULL), -EINVAL);
}

/* The changes of others fill the window of the watch's stream, so that the answer to the read comes
 * before the last. */
static void a_sync_waits_until_the_watch_has_caught_up(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    enum { N = 42, SIZE = 120000 };
    CLEANUP_FREE char *value = xcalloc(1, SIZE + 1);
    memset(value, 'x', SIZE);
    CLEANUP_FREE char *command = xasprintf("put /registry/theirs %s", value);
    harness_open(h);
    for (int i = 0; i < N; i++) {
        etcd_ctl(&etcd, command);
    }
    struct result r;
    begin_sync(h, &r);
    wait_results(h, &r, 1);
    assert_int_equal(r.error, 0);
    assert_int_equal(h->n_events, N);
}

static void certificates_of_etcd_are_read_from_their_files(void **state)
{
    struct fixture *f = *state;
    struct harness *h = &f->h;
    CLEANUP_FREE char *absent = xasprintf("%s/absent.pem", h->dir);
    CLEANUP_FREE char *text = xasprintf("%s/text.pem", h->dir);
    CLEANUP(fd_close) int fd = open(text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "text", 4), 4);
    const struct {
        const char *endpoints, *ca, *cert, *key;
        int error;
        const char *says;
    } cases[] = {
        {"https://127.0.0.1:2379", NULL, NULL, NULL, 0, ""}, /* The system's authorities count. */
        {"https://127.0.0.1:2379", absent, NULL, NULL, -ENOENT, absent},
        {"https://127.0.0.1:2379", NULL, absent, NULL, -ENOENT, absent},
        {"https://127.0.0.1:2379", NULL, NULL, absent, -ENOENT, absent},
        {"https://127.0.0.1:2379", text, NULL, NULL, -EINVAL, "etcd: "},
        {"http://127.0.0.1:2379", text, NULL, NULL, -EINVAL, "but the endpoints are http"},
        {"http://127.0.0.1:2379", NULL, text, NULL, -EINVAL, "but the endpoints are http"},
        {"http://127.0.0.1:2379", NULL, NULL, text, -EINVAL, "but the endpoints are http"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        struct store *s = NULL;
        h->cfg.endpoints = cases[i].endpoints;
        h->cfg.ca_file = cases[i].ca;
        h->cfg.cert_file = cases[i].cert;
        h->cfg.key_file = cases[i].key;
        int r = store_open(h->loop, &h->cfg, &s, &e);
        if (r != cases[i].error || !strstr(e.text, cases[i].says)) {
            fail_msg("case %zu: %d: %s", i, r, e.text);
        }
        store_close(s);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(bad_endpoints_are_refused),
        T(a_sync_waits_until_the_watch_has_caught_up),
        T(certificates_of_etcd_are_read_from_their_files),
        T(death_of_etcd_is_reported_and_survived),
        T(short_break_is_not_noticed),
        T(unsent_writes_wait_for_the_connection),
        T(unknown_outcome_is_eagain),
        T(silence_is_noticed),
        T(etcd_that_went_back_is_read_anew),
        T(next_endpoint_takes_over),
        T(other_cluster_is_refused),
        T(compaction_past_us_needs_a_snapshot),
        T(old_history_is_compacted),
        T(keys_that_need_not_stay_go_with_a_lease),
        T(a_lease_that_was_taken_away_is_replaced),
        T(two_masters_see_the_same),
        T(several_changes_in_one_revision_all_come),
        T(pages_shrink_when_values_are_big),
        T(too_large_is_said_so),
        T(break_inside_a_revision_neither_loses_nor_repeats),
        T(other_servers_are_no_etcd),
    };
    if (!etcd_is_installed()) {
        print_message("etcd is not installed: not tested\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, start_etcd, stop_etcd);
}
