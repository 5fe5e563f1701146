/* SPDX-License-Identifier: Apache-2.0 */
/* What every backend must do: one table of tests, run over each. */
#include "harness.h"

#include <string.h>

#include "leave_out.h"

static const char *backend;
static struct etcd etcd;

static int setup(void **state)
{
    struct harness *h = NEW(struct harness);
    harness_init(h, backend);
    if (streq(backend, "etcd")) {
        etcd_ctl(&etcd, "del --prefix /registry/");
        snprintf(h->endpoints, sizeof h->endpoints, "http://127.0.0.1:%d", etcd.client_port);
    }
    harness_open(h);
    *state = h;
    return 0;
}

static int teardown(void **state)
{
    harness_done(*state);
    free(*state);
    return 0;
}

static bool keeps(void)
{
    return !streq(backend, "memory");
}

static void reopen(struct harness *h)
{
    harness_close(h);
    harness_forget(h);
    harness_open(h);
}

static void create_is_refused_when_the_key_exists(void **state)
{
    struct harness *h = *state;
    uint64_t a = 0, b = 0;
    assert_int_equal(put(h, "/registry/pods/red/a", "1", STORE_ABSENT, &a), 0);
    assert_true(a > h->snapshot_revision);
    assert_int_equal(put(h, "/registry/pods/red/a", "2", STORE_ABSENT, NULL), -EEXIST);
    assert_int_equal(put(h, "/registry/pods/red/b", "1", STORE_ABSENT, &b), 0);
    assert_int_equal(b, a + 1);
    assert_int_equal(h->n_events, 2);
}

static void update_needs_the_mod_revision(void **state)
{
    struct harness *h = *state;
    uint64_t a = 0, b = 0, c = 0;
    assert_int_equal(put(h, "/registry/k", "1", 77, NULL), -ENOENT);
    assert_int_equal(put(h, "/registry/k", "1", STORE_ABSENT, &a), 0);
    assert_int_equal(put(h, "/registry/k", "2", a, &b), 0);
    assert_int_equal(put(h, "/registry/k", "3", a, NULL), -ESTALE);
    assert_int_equal(put(h, "/registry/k", "3", b + 1000, NULL), -ESTALE);
    assert_int_equal(put(h, "/registry/k", "3", b, &c), 0);
    assert_true(a < b && b < c);
    assert_int_equal(h->n_events, 3);
}

static void delete_needs_the_mod_revision(void **state)
{
    struct harness *h = *state;
    uint64_t a = 0, d = 0, again = 0;
    assert_int_equal(del(h, "/registry/k", 5, NULL), -ENOENT);
    assert_int_equal(put(h, "/registry/k", "1", STORE_ABSENT, &a), 0);
    assert_int_equal(del(h, "/registry/k", a + 7, NULL), -ESTALE);
    assert_int_equal(del(h, "/registry/k", STORE_ABSENT, NULL), -EEXIST);
    assert_int_equal(del(h, "/registry/k", a, &d), 0);
    assert_true(d > a);
    assert_int_equal(del(h, "/registry/k", d, NULL), -ENOENT);
    assert_int_equal(put(h, "/registry/k", "2", a, NULL), -ENOENT);
    assert_int_equal(put(h, "/registry/k", "2", STORE_ABSENT, &again), 0);
    assert_true(again > d);
}

static void any_takes_whatever_is_there(void **state)
{
    struct harness *h = *state;
    assert_int_equal(del(h, "/registry/k", STORE_ANY, NULL), -ENOENT);
    assert_int_equal(del(h, "/registry/k", STORE_ABSENT, NULL), -ENOENT);
    assert_int_equal(put(h, "/registry/k", "1", STORE_ANY, NULL), 0);
    assert_int_equal(put(h, "/registry/k", "2", STORE_ANY, NULL), 0);
    assert_int_equal(del(h, "/registry/k", STORE_ANY, NULL), 0);
    assert_int_equal(h->n_events, 3);
}

static void events_carry_value_previous_value_and_revision(void **state)
{
    struct harness *h = *state;
    uint64_t rev[4] = {0};
    assert_int_equal(put(h, "/registry/k", "one", STORE_ABSENT, &rev[0]), 0);
    assert_int_equal(put(h, "/registry/k", "two", STORE_ANY, &rev[1]), 0);
    assert_int_equal(del(h, "/registry/k", STORE_ANY, &rev[2]), 0);
    assert_int_equal(put(h, "/registry/k", "three", STORE_ABSENT, &rev[3]), 0);
    static const char *const expected[4][2] = {
        {"one", NULL}, {"two", "one"}, {NULL, "two"}, {"three", NULL}};
    assert_int_equal(h->n_events, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(h->events[i].key, "/registry/k");
        assert_true(streq_null(h->events[i].value, expected[i][0]));
        assert_true(streq_null(h->events[i].prev, expected[i][1]));
        assert_int_equal(h->events[i].revision, rev[i]);
    }
}

static void event_comes_before_the_result(void **state)
{
    struct harness *h = *state;
    enum { N = 100 };
    struct result r[N];
    for (int i = 0; i < N; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/k%d", i);
        begin_put(h, &r[i], key, "v", STORE_ABSENT);
    }
    wait_results(h, r, N);
    assert_int_equal(h->n_events, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(r[i].error, 0);
        bool found = false;
        for (int j = 0; j < N; j++) {
            if (h->events[j].revision == r[i].revision) {
                assert_true(h->events[j].order < r[i].order);
                found = true;
            }
        }
        assert_true(found);
    }
}

static void revisions_have_no_gap(void **state)
{
    struct harness *h = *state;
    enum { N = 50 };
    struct result r[N];
    for (int i = 0; i < N; i++) {
        begin_put(h, &r[i], "/registry/k", "v", STORE_ANY);
    }
    wait_results(h, r, N);
    for (size_t i = 1; i < N; i++) {
        assert_int_equal(h->events[i].revision, h->events[i - 1].revision + 1);
    }
}

static void of_many_writers_one_wins(void **state)
{
    struct harness *h = *state;
    enum { N = 64 };
    struct result r[N];
    uint64_t current = STORE_ABSENT;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < N; i++) {
            char value[16];
            snprintf(value, sizeof value, "%d.%d", round, i);
            if (round == 3) {
                begin_delete(h, &r[i], "/registry/k", current);
            } else {
                begin_put(h, &r[i], "/registry/k", value, current);
            }
        }
        wait_results(h, r, N);
        int won = -1;
        for (int i = 0; i < N; i++) {
            if (r[i].error == 0) {
                assert_int_equal(won, -1);
                won = i;
                continue;
            }
            assert_int_equal(r[i].error, current == STORE_ABSENT ? -EEXIST
                                         : round == 3            ? -ENOENT
                                                                 : -ESTALE);
        }
        assert_true(won >= 0);
        assert_int_equal(h->n_events, round + 1);
        current = round == 3 ? STORE_ABSENT : r[won].revision;
    }
}

/* What a leader writes under its lease is not done once the lease is another's. */
static void guarded_writes_need_their_guard(void **state)
{
    struct harness *h = *state;
    uint64_t lease = 0, renewed = 0, a = 0;
    assert_int_equal(put(h, "/registry/lease", "mine", STORE_ABSENT, &lease), 0);
    assert_int_equal(guarded(h, "/registry/a", "1", STORE_ABSENT, "/registry/lease", lease, &a), 0);
    assert_int_equal(put(h, "/registry/lease", "yours", lease, &renewed), 0);
    size_t events = h->n_events;
    /* Whatever the key's own condition. */
    static const uint64_t expect[] = {STORE_ABSENT, STORE_ANY, 12345};
    for (size_t i = 0; i < ARRAY_SIZE(expect); i++) {
        assert_int_equal(guarded(h, "/registry/a", "2", expect[i], "/registry/lease", lease, NULL),
                         -EPERM);
        assert_int_equal(guarded(h, "/registry/a", NULL, expect[i], "/registry/lease", lease, NULL),
                         -EPERM);
    }
    assert_int_equal(guarded(h, "/registry/a", "2", a, "/registry/lease", lease, NULL), -EPERM);
    assert_int_equal(guarded(h, "/registry/a", "2", a, "/registry/none", 7, NULL), -EPERM);
    assert_int_equal(h->n_events, events);
    /* With the guard as it is now, the condition decides. */
    assert_int_equal(guarded(h, "/registry/a", "2", STORE_ABSENT, "/registry/lease", renewed, NULL),
                     -EEXIST);
    assert_int_equal(guarded(h, "/registry/a", "2", a + 100, "/registry/lease", renewed, NULL),
                     -ESTALE);
    assert_int_equal(guarded(h, "/registry/b", "2", a, "/registry/lease", renewed, NULL), -ENOENT);
    assert_int_equal(guarded(h, "/registry/a", "2", a, "/registry/none", STORE_ABSENT, NULL), 0);
    assert_int_equal(guarded(h, "/registry/a", NULL, STORE_ANY, "/registry/lease", renewed, NULL),
                     0);
    assert_int_equal(h->n_events, events + 2);
}

#define CLAIMS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define IP(n) "/registry/claims/ip/" #n

static void claims_are_made_and_given_up_with_the_key(void **state)
{
    struct harness *h = *state;
    uint64_t a = 0, b = 0;
    assert_int_equal(
        claiming(h, "/registry/s/a", "1", STORE_ABSENT, CLAIMS(IP(1), IP(2), "-" IP(9)), &a), 0);
    assert_int_equal(h->n_events, 3);
    assert_string_equal(h->events[0].key, "/registry/s/a");
    assert_int_equal(h->events[0].revision, a);
    assert_string_equal(h->events[1].key, IP(1));
    assert_string_equal(h->events[1].value, "/registry/s/a");
    assert_string_equal(h->events[2].key, IP(2));
    assert_int_equal(claiming(h, "/registry/s/a", "2", a, CLAIMS("-" IP(1), IP(3)), &b), 0);
    assert_int_equal(h->n_events, 6);
    assert_string_equal(h->events[4].key, IP(1));
    assert_null(h->events[4].value);
    assert_string_equal(h->events[4].prev, "/registry/s/a");
    assert_string_equal(h->events[5].key, IP(3));
    assert_int_equal(claiming(h, "/registry/s/a", NULL, b, CLAIMS("-" IP(2), "-" IP(3)), NULL), 0);
    assert_int_equal(h->n_events, 9);
    if (keeps()) {
        reopen(h);
        assert_int_equal(h->n_items, 0);
    }
}

static void nothing_is_done_when_a_claim_is_held(void **state)
{
    struct harness *h = *state;
    uint64_t a = 0, b = 0;
    assert_int_equal(claiming(h, "/registry/s/a", "1", STORE_ABSENT, CLAIMS(IP(1)), &a), 0);
    assert_int_equal(put(h, "/registry/s/b", "1", STORE_ABSENT, &b), 0);
    size_t events = h->n_events;
    assert_int_equal(claiming(h, "/registry/s/c", "1", STORE_ABSENT, CLAIMS(IP(2), IP(1)), NULL),
                     -EADDRINUSE);
    assert_int_equal(claiming(h, "/registry/s/b", "2", b, CLAIMS(IP(1)), NULL), -EADDRINUSE);
    assert_int_equal(claiming(h, "/registry/s/b", NULL, b, CLAIMS(IP(1)), NULL), -EADDRINUSE);
    /* What is wrong with the key itself is told first. */
    assert_int_equal(claiming(h, "/registry/s/b", "2", STORE_ABSENT, CLAIMS(IP(1)), NULL), -EEXIST);
    assert_int_equal(claiming(h, "/registry/s/b", "2", b + 100, CLAIMS(IP(1)), NULL), -ESTALE);
    assert_int_equal(claiming(h, "/registry/s/x", NULL, STORE_ABSENT, CLAIMS(IP(5)), NULL),
                     -ENOENT);
    assert_int_equal(h->n_events, events);
    assert_int_equal(claiming(h, "/registry/s/b", "2", b, CLAIMS(IP(2)), NULL), 0);
    assert_int_equal(claiming(h, "/registry/s/b", "2", STORE_ANY, CLAIMS("x"), NULL), -EINVAL);
    assert_int_equal(claiming(h, "/registry/s/b", "2", STORE_ANY, CLAIMS("/registry/s/b"), NULL),
                     -EINVAL);
}

/* Writes 'key' and replaces the key 'other' at revision 'at' with the value "new". */
static int replacing(struct harness *h, const char *key, uint64_t expect, const char *other,
                     uint64_t at)
{
    CLEANUP(blob_unref) struct blob *value = blob_new("new", 3);
    const struct store_claim claim = {other, value, at};
    const struct store_terms terms = {.claims = &claim, .n_claims = 1};
    struct result r;
    begin_with_terms(h, &r, key, "new", expect, &terms);
    wait_results(h, &r, 1);
    return r.error;
}

static void two_keys_are_replaced_together_or_not_at_all(void **state)
{
    struct harness *h = *state;
    uint64_t a = 0, b = 0;
    assert_int_equal(put(h, "/registry/s/a", "1", STORE_ABSENT, &a), 0);
    assert_int_equal(put(h, "/registry/s/b", "1", STORE_ABSENT, &b), 0);
    size_t events = h->n_events;
    assert_int_equal(replacing(h, "/registry/s/a", a, "/registry/s/b", b + 100), -ESTALE);
    assert_int_equal(replacing(h, "/registry/s/a", a, "/registry/s/none", b), -ESTALE);
    assert_int_equal(replacing(h, "/registry/s/a", a, "/registry/s/b", STORE_ABSENT), -EADDRINUSE);
    assert_int_equal(replacing(h, "/registry/s/a", a + 100, "/registry/s/b", b), -ESTALE);
    assert_int_equal(replacing(h, "/registry/s/a", STORE_ABSENT, "/registry/s/b", b), -EEXIST);
    assert_int_equal(replacing(h, "/registry/s/none", a, "/registry/s/b", b), -ENOENT);
    assert_int_equal(h->n_events, events);
    assert_int_equal(replacing(h, "/registry/s/a", a, "/registry/s/b", b), 0);
    assert_int_equal(h->n_events, events + 2);
    assert_string_equal(h->events[events].key, "/registry/s/a");
    assert_string_equal(h->events[events + 1].key, "/registry/s/b");
    assert_string_equal(h->events[events + 1].value, "new");
    assert_string_equal(h->events[events + 1].prev, "1");
    /* Both have changed, so that neither former revision can be written again. */
    assert_int_equal(replacing(h, "/registry/s/a", a, "/registry/s/b", b), -ESTALE);
    assert_int_equal(put(h, "/registry/s/b", "2", b, NULL), -ESTALE);
    uint64_t now = h->events[events + 1].revision;
    assert_int_equal(del(h, "/registry/s/b", now, NULL), 0);
    assert_int_equal(
        replacing(h, "/registry/s/a", h->events[events].revision, "/registry/s/b", now), -ESTALE);
    if (keeps()) {
        reopen(h);
        assert_int_equal(h->n_items, 1);
    }
}

static void of_many_who_claim_one_gets_it(void **state)
{
    struct harness *h = *state;
    enum { N = 40 };
    struct result r[N];
    int won = 0;
    for (int i = 0; i < N; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/s/%d", i);
        begin_claiming(h, &r[i], key, "1", STORE_ABSENT, CLAIMS(IP(1)));
    }
    wait_results(h, r, N);
    for (int i = 0; i < N; i++) {
        assert_true(r[i].error == 0 || r[i].error == -EADDRINUSE);
        won += r[i].error == 0;
    }
    assert_int_equal(won, 1);
    assert_int_equal(h->n_events, 2);
}

/* The lease changes hands while writes under it are on their way: all before it are
 * done, none after. */
static void a_guard_cuts_between_writes(void **state)
{
    struct harness *h = *state;
    enum { N = 60 };
    struct result r[N], change;
    uint64_t lease = 0;
    assert_int_equal(put(h, "/registry/lease", "mine", STORE_ABSENT, &lease), 0);
    for (int i = 0; i < N; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/k%d", i);
        if (i == N / 2) {
            begin_put(h, &change, "/registry/lease", "yours", lease);
        }
        begin_guarded(h, &r[i], key, "v", STORE_ABSENT, "/registry/lease", lease);
    }
    wait_results(h, r, N);
    wait_results(h, &change, 1);
    assert_int_equal(change.error, 0);
    for (int i = 0; i < N; i++) {
        assert_true(r[i].error == 0 ? r[i].revision < change.revision : r[i].error == -EPERM);
    }
    for (size_t i = 0; i < h->n_events; i++) {
        assert_true(h->events[i].revision <= change.revision);
    }
}

static void sync_comes_after_what_others_were_told(void **state)
{
    struct harness *h = *state;
    assert_int_equal(store_is_shared(h->store), streq(backend, "etcd"));
    struct result r;
    begin_sync(h, &r);
    wait_results(h, &r, 1);
    assert_int_equal(r.error, 0);
    if (streq(backend, "etcd")) {
        for (int i = 0; i < 10; i++) {
            size_t n = h->n_events;
            etcd_ctl(&etcd, "put /registry/theirs x");
            begin_sync(h, &r);
            wait_results(h, &r, 1);
            assert_int_equal(r.error, 0);
            assert_int_equal(h->n_events, n + 1);
            etcd_ctl(&etcd, "put /not/the/registry x"); /* Also is a revision. */
            begin_sync(h, &r);
            wait_results(h, &r, 1);
            assert_int_equal(r.error, 0);
        }
    }
    begin_sync(h, &r);
    harness_close(h);
    assert_int_equal(r.calls, 1);
}

static void an_import_that_begins_or_was_broken_off_blocks_the_store(void **state)
{
    static const char lost[] = "an import into the registry is not finished";
    struct harness *h = *state;
    assert_int_equal(put(h, "/registry/a", "1", STORE_ANY, NULL), 0);
    size_t n = h->n_events;
    /* Another process begins one: nothing that comes after it is told, and nothing is written. */
    struct result begun;
    begin_put(h, &begun, STORE_IMPORT_KEY, "{}", STORE_ANY);
    wait_results(h, &begun, 1);
    assert_int_equal(h->n_lost, 1);
    assert_true(str_has_prefix(h->lost, lost));
    assert_int_equal(h->n_events, n + 1);
    assert_int_equal(put(h, "/registry/a", "2", STORE_ANY, NULL), -EAGAIN);
    assert_int_equal(h->n_events, n + 1);
    if (!keeps()) {
        return;
    }
    /* Opened again, it has no snapshot to give. */
    harness_close(h);
    harness_forget(h);
    h->n_lost = 0;
    harness_begin(h);
    harness_wait_lost(h, 1);
    assert_int_equal(h->n_snapshots, 0);
    assert_int_equal(put(h, "/registry/a", "2", STORE_ANY, NULL), -EAGAIN);
    /* The import itself goes on, and ends it. */
    harness_close(h);
    h->cfg.importing = true;
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "3", STORE_ANY, NULL), 0);
    assert_int_equal(put(h, STORE_IMPORT_KEY, "{}", STORE_ANY, NULL), 0);
    assert_int_equal(put(h, "/registry/a", "4", STORE_ANY, NULL), 0);
    assert_int_equal(del(h, STORE_IMPORT_KEY, STORE_ANY, NULL), 0);
    h->cfg.importing = false;
    reopen(h);
    assert_string_equal(harness_item(h, "/registry/a")->value, "4");
    assert_int_equal(put(h, "/registry/a", "5", STORE_ANY, NULL), 0);
}

static void writes_to_one_key_keep_their_order(void **state)
{
    struct harness *h = *state;
    enum { N = 40 };
    struct result r[N];
    for (int i = 0; i < N; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        if (i % 5 == 4) {
            begin_delete(h, &r[i], "/registry/k", STORE_ANY);
        } else {
            begin_put(h, &r[i], "/registry/k", value, i % 5 == 0 ? STORE_ABSENT : STORE_ANY);
        }
    }
    wait_results(h, r, N);
    assert_int_equal(h->n_events, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(r[i].error, 0);
        if (i) {
            assert_true(r[i].revision > r[i - 1].revision);
        }
    }
}

static void bad_keys_and_values_are_refused(void **state)
{
    struct harness *h = *state;
    assert_int_equal(put(h, "/other/k", "1", STORE_ANY, NULL), -EINVAL);
    assert_int_equal(put(h, "/registry/", "1", STORE_ANY, NULL), -EINVAL);
    assert_int_equal(put(h, "", "1", STORE_ANY, NULL), -EINVAL);
    size_t size = (size_t) 65 << 20;
    CLEANUP_FREE char *big = xcalloc(1, size);
    struct result r;
    begin_put_bytes(h, &r, "/registry/big", big, size, STORE_ANY);
    wait_results(h, &r, 1);
    assert_int_equal(r.error, -E2BIG);
    assert_int_equal(h->n_events, 0);
}

static void values_are_any_bytes(void **state)
{
    struct harness *h = *state;
    struct result r[3];
    size_t size = 1 << 20;
    CLEANUP_FREE char *big = xmalloc(size + 1);
    memset(big, 'x', size);
    big[size] = '\0';
    begin_put_bytes(h, &r[0], "/registry/empty", "", 0, STORE_ABSENT);
    begin_put_bytes(h, &r[1], "/registry/nul", "a\0b", 3, STORE_ABSENT);
    begin_put_bytes(h, &r[2], "/registry/big", big, size, STORE_ABSENT);
    wait_results(h, r, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r[i].error, 0);
    }
    if (keeps()) {
        reopen(h);
        assert_int_equal(h->n_items, 3);
        assert_string_equal(harness_item(h, "/registry/empty")->value, "");
        assert_string_equal(harness_item(h, "/registry/nul")->value, "a");
        assert_string_equal(harness_item(h, "/registry/big")->value, big);
    }
    assert_int_equal(del(h, "/registry/empty", STORE_ANY, NULL), 0);
    assert_non_null(h->events[h->n_events - 1].prev);
}

static void write_before_the_snapshot_is_refused(void **state)
{
    struct harness *h = *state;
    harness_close(h);
    struct err e = {0};
    assert_int_equal(store_open(h->loop, &h->cfg, &h->store, &e), 0);
    assert_int_equal(put(h, "/registry/k", "1", STORE_ANY, NULL), -EAGAIN);
}

static void snapshot_has_all_live_keys_in_order(void **state)
{
    struct harness *h = *state;
    if (!keeps()) {
        LEAVE_OUT("this store keeps nothing");
    }
    enum { N = 1500 };
    struct result *r = xcalloc(N, sizeof *r);
    for (int i = 0; i < N; i++) {
        char key[64], value[16];
        int n = (i * 7919) % N;
        snprintf(key, sizeof key, "/registry/pods/p%d/%d", n % 3, n);
        snprintf(value, sizeof value, "%d", n);
        begin_put(h, &r[i], key, value, STORE_ABSENT);
    }
    wait_results(h, r, N);
    free(r);
    uint64_t last = 0;
    assert_int_equal(del(h, "/registry/pods/p0/3", STORE_ANY, NULL), 0);
    assert_int_equal(put(h, "/registry/pods/p1/4", "new", STORE_ANY, &last), 0);
    reopen(h);
    assert_int_equal(h->n_items, N - 1); /* on_snapshot checked the order. */
    assert_null(harness_item(h, "/registry/pods/p0/3"));
    assert_string_equal(harness_item(h, "/registry/pods/p1/4")->value, "new");
    assert_int_equal(harness_item(h, "/registry/pods/p1/4")->revision, last);
    assert_string_equal(harness_item(h, "/registry/pods/p2/1499")->value, "1499");
    assert_int_equal(h->snapshot_revision, last);
    assert_int_equal(h->n_events, 0);
}

static void revisions_go_on_after_a_restart(void **state)
{
    struct harness *h = *state;
    if (!keeps()) {
        LEAVE_OUT("this store keeps nothing");
    }
    uint64_t d = 0, again = 0;
    assert_int_equal(put(h, "/registry/k", "1", STORE_ABSENT, NULL), 0);
    assert_int_equal(del(h, "/registry/k", STORE_ANY, &d), 0);
    reopen(h);
    assert_int_equal(h->n_items, 0);
    assert_int_equal(h->snapshot_revision, d);
    assert_int_equal(put(h, "/registry/k", "2", STORE_ABSENT, &again), 0);
    assert_true(again > d);
}

static void history_has_the_newest_changes(void **state)
{
    struct harness *h = *state;
    if (!keeps()) {
        LEAVE_OUT("this store keeps nothing");
    }
    uint64_t rev[4];
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, &rev[0]), 0);
    assert_int_equal(put(h, "/registry/a", "2", STORE_ANY, &rev[1]), 0);
    assert_int_equal(del(h, "/registry/a", STORE_ANY, &rev[2]), 0);
    assert_int_equal(put(h, "/registry/b", "3", STORE_ABSENT, &rev[3]), 0);
    reopen(h);
    assert_true(h->n_history >= 4);
    const struct seen_event *ev = &h->history[h->n_history - 4];
    static const char *const expected[4][3] = {
        {"/registry/a", "1", NULL},
        {"/registry/a", "2", "1"},
        {"/registry/a", NULL, "2"},
        {"/registry/b", "3", NULL},
    };
    for (int i = 0; i < 4; i++) {
        assert_string_equal(ev[i].key, expected[i][0]);
        assert_true(streq_null(ev[i].value, expected[i][1]));
        assert_true(streq_null(ev[i].prev, expected[i][2]));
        assert_int_equal(ev[i].revision, rev[i]);
    }
}

static void history_is_limited(void **state)
{
    struct harness *h = *state;
    if (!keeps()) {
        LEAVE_OUT("this store keeps nothing");
    }
    h->cfg.history = 10;
    reopen(h);
    for (int i = 0; i < 60; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/%d", i % 7);
        if (i % 7 == 3) {
            del(h, key, STORE_ANY, NULL);
        }
        assert_int_equal(put(h, key, "v", STORE_ANY, NULL), 0);
    }
    uint64_t last = h->events[h->n_events - 1].revision;
    /* In etcd, claims of compactions are among the changes. */
    size_t others = streq(backend, "etcd") ? 2 : 0;
    CLEANUP_FREE char *keys[10] = {0};
    for (size_t i = 0; i < 10; i++) {
        keys[i] = xstrdup(h->events[h->n_events - 10 + i].key);
    }
    reopen(h);
    assert_int_equal(h->n_items, 7);
    assert_in_range(h->n_history, 10 - others, 10);
    assert_int_equal(h->history[h->n_history - 1].revision, last);
    assert_in_range(h->history[0].revision, last - 9, last - 9 + others);
    for (size_t i = 0; i < h->n_history; i++) {
        assert_string_equal(h->history[i].key, keys[10 - h->n_history + i]);
    }
    for (size_t i = 0; i < 10; i++) {
        free(TAKE(keys[i]));
    }
    assert_int_equal(put(h, "/registry/3", "w", STORE_ANY, NULL), 0);
    assert_string_equal(h->events[0].prev, "v");
}

static void close_finishes_what_was_begun(void **state)
{
    struct harness *h = *state;
    enum { N = 200 };
    struct result r[N];
    for (int i = 0; i < N; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/%d", i);
        begin_put(h, &r[i], key, "v", STORE_ABSENT);
    }
    harness_close(h);
    bool sure = !streq(backend, "etcd");
    for (int i = 0; i < N; i++) {
        assert_int_equal(r[i].calls, 1);
        assert_true(r[i].error == 0 || (!sure && r[i].error == -EAGAIN));
    }
    if (keeps()) {
        harness_forget(h);
        harness_open(h);
        for (int i = 0; i < N; i++) {
            char key[64];
            snprintf(key, sizeof key, "/registry/%d", i);
            assert_true(r[i].error || harness_item(h, key));
        }
    }
}

/* Random writes, several at a time, against a map; what the watch and a restart show
 * must be the same. */
static void random_writes_match_a_model(void **state)
{
    struct harness *h = *state;
    enum { KEYS = 12, ROUNDS = 120, PARALLEL = 6 };
    struct {
        uint64_t revision;
        char value[32];
    } model[KEYS] = {0};
    unsigned seed = 20261121;
    for (int round = 0; round < ROUNDS; round++) {
        struct result r[PARALLEL];
        int key_of[PARALLEL], expected[PARALLEL];
        bool is_put[PARALLEL];
        char value[PARALLEL][32];
        for (int i = 0; i < PARALLEL; i++) {
            int k = key_of[i] = (i * 2 + (int) (rand_r(&seed) % 2)) % KEYS; /* Each key once. */
            uint64_t now = model[k].revision;
            unsigned kind = (unsigned) rand_r(&seed) % 4;
            uint64_t expect = kind == 0   ? STORE_ABSENT
                              : kind == 1 ? STORE_ANY
                              : kind == 2 ? now + 1
                              : now       ? now
                                          : 1;
            is_put[i] = rand_r(&seed) % 3 > 0;
            expected[i] = expect == STORE_ABSENT ? (now         ? -EEXIST
                                                    : is_put[i] ? 0
                                                                : -ENOENT)
                          : expect == STORE_ANY  ? (now || is_put[i] ? 0 : -ENOENT)
                          : !now                 ? -ENOENT
                          : now == expect        ? 0
                                                 : -ESTALE;
            char key[32];
            snprintf(key, sizeof key, "/registry/m/%d", k);
            snprintf(value[i], sizeof value[i], "%d.%d", round, i);
            if (is_put[i]) {
                begin_put(h, &r[i], key, value[i], expect);
            } else {
                begin_delete(h, &r[i], key, expect);
            }
        }
        wait_results(h, r, PARALLEL);
        for (int i = 0; i < PARALLEL; i++) {
            assert_int_equal(r[i].error, expected[i]);
            if (r[i].error == 0) {
                model[key_of[i]].revision = is_put[i] ? r[i].revision : 0;
                memcpy(model[key_of[i]].value, value[i], sizeof value[i]);
            }
        }
        if (keeps() && round % 40 == 39) {
            reopen(h);
            size_t live = 0;
            for (int k = 0; k < KEYS; k++) {
                char key[32];
                snprintf(key, sizeof key, "/registry/m/%d", k);
                const struct seen_item *item = harness_item(h, key);
                assert_int_equal(item != NULL, model[k].revision != 0);
                if (item) {
                    assert_string_equal(item->value, model[k].value);
                    assert_int_equal(item->revision, model[k].revision);
                    live++;
                }
            }
            assert_int_equal(h->n_items, live);
        }
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
    T(create_is_refused_when_the_key_exists),
    T(update_needs_the_mod_revision),
    T(delete_needs_the_mod_revision),
    T(any_takes_whatever_is_there),
    T(events_carry_value_previous_value_and_revision),
    T(event_comes_before_the_result),
    T(revisions_have_no_gap),
    T(of_many_writers_one_wins),
    T(guarded_writes_need_their_guard),
    T(a_guard_cuts_between_writes),
    T(claims_are_made_and_given_up_with_the_key),
    T(nothing_is_done_when_a_claim_is_held),
    T(two_keys_are_replaced_together_or_not_at_all),
    T(of_many_who_claim_one_gets_it),
    T(sync_comes_after_what_others_were_told),
    T(an_import_that_begins_or_was_broken_off_blocks_the_store),
    T(writes_to_one_key_keep_their_order),
    T(bad_keys_and_values_are_refused),
    T(values_are_any_bytes),
    T(write_before_the_snapshot_is_refused),
    T(snapshot_has_all_live_keys_in_order),
    T(revisions_go_on_after_a_restart),
    T(history_has_the_newest_changes),
    T(history_is_limited),
    T(close_finishes_what_was_begun),
    T(random_writes_match_a_model),
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

int main(void)
{
    int failed = 0;
    backend = "memory";
    failed += cmocka_run_group_tests_name("memory", tests, NULL, NULL);
    backend = "sqlite";
    failed += cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
    if (etcd_is_installed()) {
        backend = "etcd";
        failed += cmocka_run_group_tests_name("etcd", tests, start_etcd, stop_etcd);
    } else {
        print_message("etcd is not installed: not tested\n");
    }
    return failed ? 1 : 0;
}
