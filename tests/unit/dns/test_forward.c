/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "answers.h"
#include "base/log.h"
#include "dns/forward.h"
#include "net/loop/process.h"
#include "upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 20000

struct bench {
    struct loop *loop;
    struct dns_cache *cache;
    struct dns_forwarder *forwarder;
    struct upstream a, b;
};

/* What was told of one question. */
struct told {
    bool done;
    unsigned calls;
    char *text; /* NULL: no answer. */
};

static void on_told(void *ctx, const struct dns_cached *answer)
{
    struct told *t = ctx;
    t->calls++;
    t->done = true;
    if (answer) {
        free(t->text);
        t->text =
            message_text((const uint8_t *) answer->message->data, answer->message->size, true);
    }
}

static void setup(struct bench *b)
{
    *b = (struct bench){.loop = loop_new(), .cache = dns_cache_new(1 << 20)};
    upstream_start(&b->a, b->loop);
    upstream_start(&b->b, b->loop);
}

/* The forwarder asks these, in this order. */
static void use(struct bench *b, size_t n, const uint16_t *ports)
{
    struct dns_servers s = {.n = n};
    for (size_t i = 0; i < n; i++) {
        s.at[i] = loopback_endpoint(ports[i]);
    }
    dns_forwarder_free(b->forwarder);
    b->forwarder = dns_forwarder_new(b->loop, b->cache, &s, NULL);
}
#define USE(b, ...)                                       \
    do {                                                  \
        const uint16_t ports_[] = {__VA_ARGS__};          \
        use(b, sizeof ports_ / sizeof ports_[0], ports_); \
    } while (0)

static void teardown(struct bench *b)
{
    dns_forwarder_free(b->forwarder);
    upstream_stop(&b->a);
    upstream_stop(&b->b);
    dns_cache_free(b->cache);
    loop_free(b->loop);
}

static struct dns_key key(const char *name)
{
    struct dns_key k = {.type = DNS_A};
    assert_int_equal(dns_name_parse(name, &k.name), 0);
    return k;
}

static int ask_for(struct bench *b, const char *name, uint32_t client, struct told *t)
{
    struct dns_key k = key(name);
    return dns_forwarder_ask(b->forwarder, &k, client, on_told, t);
}

/* Asks and waits; what was told, "none" if nothing.  Owned. */
static char *answer_to(struct bench *b, const char *name)
{
    struct told t = {0};
    assert_int_equal(ask_for(b, name, 1, &t), 0);
    assert_int_equal(t.calls, 0); /* Not from within. */
    assert_int_equal(loop_run_until(b->loop, &t.done, PATIENCE_MS), 0);
    assert_int_equal(t.calls, 1);
    return t.text ? t.text : xstrdup("none");
}
#define EXPECT(b, name, want)                        \
    do {                                             \
        CLEANUP_FREE char *got = answer_to(b, name); \
        assert_string_equal(got, want);              \
    } while (0)
#define IS(name) "NOERROR | " name ". A 192.0.2.1"

static void an_answer_is_told_and_kept(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, b.a.port);
    EXPECT(&b, "ok-a.test", IS("ok-a.test"));
    struct dns_key k = key("ok-a.test");
    struct dns_cached c;
    assert_true(dns_cache_get(b.cache, &k, loop_now_ms(b.loop), false, &c));
    blob_unref(c.message);
    EXPECT(&b, "nx-a.test", "NXDOMAIN");
    const struct dns_forwarder_counters *n = dns_forwarder_counters(b.forwarder);
    assert_int_equal(n->asked, 2);
    assert_int_equal(n->answered, 2);
    assert_int_equal(n->failed + n->wrong + n->tcp + n->timeouts + n->stale + n->refused, 0);
    teardown(&b);
}

static void who_asks_the_same_waits_with_the_others(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, b.a.port);
    struct told t[3] = {0}, gone = {0};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ask_for(&b, "ok-a.test", (uint32_t) i, &t[i]), 0);
    }
    assert_int_equal(ask_for(&b, "ok-a.test", 1, &gone), 0);
    dns_forwarder_forget(b.forwarder, &gone);
    assert_int_equal(loop_run_until(b.loop, &t[2].done, PATIENCE_MS), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(t[i].calls, 1);
        assert_string_equal(t[i].text, IS("ok-a.test"));
        free(t[i].text);
    }
    assert_int_equal(gone.calls, 0);
    assert_int_equal(b.a.n_udp, 1);
    teardown(&b);
}

/* Whatever else comes is no answer, and after some of it the question goes over TCP. */
static void only_the_answer_to_the_question_is_one(void **state)
{
    static const char *const names[] = {"number-a.test", "other-a.test", "query-a.test"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct bench b;
        setup(&b);
        USE(&b, b.a.port);
        CLEANUP_FREE char *want = xasprintf("NOERROR | %s. A 192.0.2.1", names[i]);
        EXPECT(&b, names[i], want);
        const struct dns_forwarder_counters *n = dns_forwarder_counters(b.forwarder);
        assert_int_equal(n->wrong, 4);
        assert_int_equal(n->tcp, 1);
        assert_int_equal(b.a.n_udp, 1);
        assert_int_equal(b.a.n_tcp, 1);
        teardown(&b);
    }
}

static void a_cut_answer_is_asked_for_over_tcp(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, b.a.port);
    EXPECT(&b, "short-a.test", IS("short-a.test"));
    assert_int_equal(dns_forwarder_counters(b.forwarder)->tcp, 1);
    assert_int_equal(dns_forwarder_counters(b.forwarder)->wrong, 0);
    EXPECT(&b, "close-a.test", "none");
    teardown(&b);
}

static void servers_are_asked_in_turn(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, closed_port(), b.a.port, b.b.port);
    EXPECT(&b, "ok-a.test", IS("ok-a.test"));
    assert_int_equal(b.a.n_udp, 1);
    assert_int_equal(b.b.n_udp, 0);
    /* Who refuses, refuses once; the others are asked, at most four times in all. */
    EXPECT(&b, "refused-a.test", "none");
    assert_int_equal(dns_forwarder_counters(b.forwarder)->asked, 2 + 4);
    assert_int_equal(dns_forwarder_counters(b.forwarder)->failed, 1);
    assert_true(b.b.n_udp >= 1);
    teardown(&b);
}

static void an_old_server_is_asked_without_edns(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, b.a.port);
    EXPECT(&b, "old-a.test", IS("old-a.test"));
    assert_int_equal(b.a.n_udp, 2);
    teardown(&b);
}

static void a_server_that_fails_often_is_asked_last(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, closed_port(), b.a.port);
    size_t up;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dns_forwarder_servers(b.forwarder, &up), 2);
        assert_int_equal(up, 2);
        CLEANUP_FREE char *name = xasprintf("ok-%d.test", i);
        CLEANUP_FREE char *got = answer_to(&b, name);
        assert_non_null(strstr(got, "192.0.2.1"));
    }
    assert_int_equal(dns_forwarder_counters(b.forwarder)->asked, 6);
    dns_forwarder_servers(b.forwarder, &up);
    assert_int_equal(up, 1);
    EXPECT(&b, "ok-3.test", IS("ok-3.test"));
    assert_int_equal(dns_forwarder_counters(b.forwarder)->asked, 7);
    teardown(&b);
}

static void what_was_known_is_told_when_nobody_answers(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, b.a.port);
    EXPECT(&b, "ok-a.test", IS("ok-a.test"));
    USE(&b, closed_port());
    const struct dns_forwarder_counters *n = dns_forwarder_counters(b.forwarder);
    EXPECT(&b, "ok-b.test", "none");
    assert_int_equal(n->asked, 3); /* Then it is down, and there is no other. */
    EXPECT(&b, "ok-a.test", IS("ok-a.test"));
    assert_int_equal(n->asked, 4);
    assert_int_equal(n->stale, 1);
    assert_int_equal(n->failed, 1);
    teardown(&b);
}

static void a_silent_server_is_given_up(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, b.a.port, b.b.port);
    uint64_t begin = loop_now_ms(b.loop);
    EXPECT(&b, "silent-a.test", "none");
    const struct dns_forwarder_counters *n = dns_forwarder_counters(b.forwarder);
    assert_int_equal(n->timeouts, 4);
    assert_int_equal(b.a.n_udp, 2);
    assert_int_equal(b.b.n_udp, 2);
    assert_true(loop_now_ms(b.loop) - begin >= 4400);
    teardown(&b);
}

/* Not 1024 names at once, 256 of a client, 4096 in all. */
static void what_waits_has_limits(void **state)
{
    struct bench b;
    struct told t = {0};
    setup(&b);
    USE(&b, b.a.port);
    for (unsigned i = 0; i < 1024; i++) {
        CLEANUP_FREE char *name = xasprintf("silent-%u.test", i);
        assert_int_equal(ask_for(&b, name, i / 256, &t), 0);
        if (i == 255) {
            assert_int_equal(ask_for(&b, "silent-1.test", 0, &t), -EBUSY);
        }
    }
    assert_int_equal(ask_for(&b, "silent-x.test", 100, &t), -EBUSY);
    for (unsigned i = 1024; i < 4096; i++) {
        CLEANUP_FREE char *name = xasprintf("silent-%u.test", i % 1024);
        assert_int_equal(ask_for(&b, name, i / 256, &t), 0);
    }
    assert_int_equal(ask_for(&b, "silent-1.test", 100, &t), -EBUSY);
    assert_int_equal(dns_forwarder_counters(b.forwarder)->refused, 3);
    assert_int_equal(t.calls, 0);
    b.forwarder = dns_forwarder_free(b.forwarder);
    assert_int_equal(t.calls, 4096);
    assert_null(t.text);
    teardown(&b);
}

/* Whose waiting ended may ask again. */
static void a_client_that_was_told_has_room_again(void **state)
{
    struct bench b;
    setup(&b);
    USE(&b, b.a.port);
    for (int round = 0; round < 2; round++) {
        struct told t = {0}, last = {0};
        for (unsigned i = 0; i < 255; i++) {
            assert_int_equal(ask_for(&b, "ok-a.test", 7, &t), 0);
        }
        assert_int_equal(ask_for(&b, "ok-a.test", 7, &last), 0);
        assert_int_equal(loop_run_until(b.loop, &last.done, PATIENCE_MS), 0);
        free(t.text);
        free(last.text);
    }
    teardown(&b);
}

static void it_never_asks_itself(void **state)
{
    struct bench b;
    struct told t = {0};
    size_t up;
    setup(&b);
    USE(&b, b.a.port, b.b.port);
    struct dns_servers own = {.n = 1, .at = {loopback_endpoint(b.a.port)}};
    dns_forwarder_set_own(b.forwarder, &own);
    assert_int_equal(dns_forwarder_servers(b.forwarder, &up), 1);
    EXPECT(&b, "ok-a.test", IS("ok-a.test"));
    assert_int_equal(b.a.n_udp, 0);
    own.at[own.n++] = loopback_endpoint(b.b.port);
    dns_forwarder_set_own(b.forwarder, &own);
    assert_int_equal(ask_for(&b, "ok-b.test", 1, &t), -EHOSTUNREACH);
    assert_int_equal(b.a.n_udp, 0);
    teardown(&b);
}

static void write_file(const char *path, const char *text)
{
    CLEANUP_FREE char *new = xasprintf("%s.new", path);
    FILE *f = fopen(new, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(rename(new, path), 0);
}

static void wait_for_servers(struct bench *b, size_t n)
{
    size_t up;
    bool never = false;
    for (int i = 0; i < 400 && dns_forwarder_servers(b->forwarder, &up) != n; i++) {
        loop_run_until(b->loop, &never, 50);
    }
    assert_int_equal(dns_forwarder_servers(b->forwarder, &up), n);
}

static size_t lines_with(FILE *f, const char *word)
{
    char line[512];
    size_t n = 0;
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        n += strstr(line, word) != NULL;
    }
    return n;
}

static void resolv_conf_is_not_read_again_when_it_stays(void **state)
{
    struct bench b;
    size_t up;
    bool never = false;
    char path[] = "/tmp/tenet-dns-XXXXXX";
    close(mkstemp(path));
    FILE *log = tmpfile();
    assert_non_null(log);
    setup(&b);
    b.forwarder = dns_forwarder_new(b.loop, b.cache, NULL, path);
    log_set_fd(fileno(log));
    uint64_t begin = loop_now_ms(b.loop);
    while (loop_now_ms(b.loop) < begin + 1100) { /* It looks once a second. */
        assert_int_equal(dns_forwarder_servers(b.forwarder, &up), 0);
        loop_run_until(b.loop, &never, 50);
    }
    dns_forwarder_servers(b.forwarder, &up);
    log_set_fd(STDERR_FILENO);
    assert_int_equal(lines_with(log, "name servers read"), 1);
    fclose(log);
    unlink(path);
    teardown(&b);
}

static void resolv_conf_is_read_again_when_it_changes(void **state)
{
    struct bench b;
    size_t up;
    char dir[] = "/tmp/tenet-dns-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/resolv.conf", dir);
    setup(&b);
    write_file(path, "nameserver 192.0.2.1\n");
    b.forwarder = dns_forwarder_new(b.loop, b.cache, NULL, path);
    assert_int_equal(dns_forwarder_servers(b.forwarder, &up), 1);
    write_file(path, "nameserver 192.0.2.1\nnameserver 192.0.2.2\n");
    wait_for_servers(&b, 2);
    struct dns_servers own = {.n = 1};
    assert_int_equal(dns_endpoint_parse("192.0.2.1", &own.at[0], NULL), 0);
    dns_forwarder_set_own(b.forwarder, &own); /* The file names it. */
    assert_int_equal(dns_forwarder_servers(b.forwarder, &up), 1);
    unlink(path);
    wait_for_servers(&b, 0);
    struct told t = {0};
    assert_int_equal(ask_for(&b, "ok-a.test", 1, &t), -EHOSTUNREACH);
    rmdir(dir);
    teardown(&b);
}

static void name_servers_are_read_from_a_file_only(void **state)
{
    (void) state;
    char dir[] = "/tmp/tenet-unit-resolv-XXXXXX";
    struct dns_servers s;
    struct err e = {0};
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *fifo = xasprintf("%s/resolv.conf", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    alarm(10); /* Ends the test when it waits for the pipe's writer. */
    assert_int_equal(dns_servers_load(fifo, &s, &e), -EINVAL);
    alarm(0);
    assert_non_null(strstr(e.text, "is not a regular file"));
    assert_int_equal(dir_remove(dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_told_and_kept),
        cmocka_unit_test(who_asks_the_same_waits_with_the_others),
        cmocka_unit_test(only_the_answer_to_the_question_is_one),
        cmocka_unit_test(a_cut_answer_is_asked_for_over_tcp),
        cmocka_unit_test(servers_are_asked_in_turn),
        cmocka_unit_test(an_old_server_is_asked_without_edns),
        cmocka_unit_test(a_server_that_fails_often_is_asked_last),
        cmocka_unit_test(what_was_known_is_told_when_nobody_answers),
        cmocka_unit_test(a_silent_server_is_given_up),
        cmocka_unit_test(what_waits_has_limits),
        cmocka_unit_test(a_client_that_was_told_has_room_again),
        cmocka_unit_test(it_never_asks_itself),
        cmocka_unit_test(resolv_conf_is_not_read_again_when_it_stays),
        cmocka_unit_test(resolv_conf_is_read_again_when_it_changes),
        cmocka_unit_test(name_servers_are_read_from_a_file_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
