/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: what is told, from which version on, in which form, and how they end. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NETS "/apis/network.openshift.io/v1/netnamespaces"
#define PODS "/api/v1/namespaces/default/pods"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

static int set_up(void **state)
{
    *state = harness_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

static struct json *event(const struct watcher *w, size_t i)
{
    return json_at(w->events, i);
}

static const char *type(const struct watcher *w, size_t i)
{
    return json_path_string(event(w, i), "type", NULL);
}

static void merge(struct harness *h, const char *path, const char *patch)
{
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "PATCH", path, NULL, "application/merge-patch+json", patch);
    if (a.status != 200) {
        fail_msg("PATCH %s: %s", path, a.text);
    }
}

static void delete (struct harness *h, const char *path)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "DELETE", path, NULL, 200);
}

static struct watcher *watch_from(struct harness *h, const char *path, const char *version,
                                  const char *rest)
{
    CLEANUP_FREE char *full =
        xasprintf("%s?watch=1&resourceVersion=%s%s", path, version, rest ? rest : "");
    return watcher_new(h, full, NULL);
}

static void changes_are_told_in_order_from_a_version(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    free(make_net(h, "b", 12, NULL));
    struct watcher *w = watch_from(h, NETS, version, NULL);
    watcher_expect(w, 1);
    merge(h, NETS "/a", "{\"netid\":20}");
    merge(h, NETS "/b", "{\"netid\":21}");
    delete (h, NETS "/a");
    free(make_net(h, "c", 13, NULL));
    watcher_expect(w, 5);
    static const char *const want[][2] = {
        {"ADDED", "b"}, {"MODIFIED", "a"}, {"MODIFIED", "b"}, {"DELETED", "a"}, {"ADDED", "c"}};
    uint64_t last;
    assert_int_equal(str_to_u64(version, UINT64_MAX, &last), 0);
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        const struct json *meta = json_path(event(w, i), "object", "metadata", NULL);
        uint64_t v;
        assert_string_equal(type(w, i), want[i][0]);
        assert_string_equal(json_path_string(meta, "name", NULL), want[i][1]);
        assert_int_equal(
            str_to_u64(json_path_string(meta, "resourceVersion", NULL), UINT64_MAX, &v), 0);
        assert_true(v > last);
        last = v;
    }
    /* The deleted object is what it was last, with the version of its deletion. */
    assert_int_equal(json_get_int_or(json_path(event(w, 3), "object", "netid", NULL), 0), 20);
    /* Who resumes at any event is told exactly the rest. */
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        const char *from =
            json_path_string(event(w, i), "object", "metadata", "resourceVersion", NULL);
        struct watcher *again = watch_from(h, NETS, from, NULL);
        watcher_expect(again, ARRAY_SIZE(want) - 1 - i);
        for (size_t j = 0; j < json_count(again->events); j++) {
            assert_true(json_equal(event(again, j), event(w, i + 1 + j)));
        }
        watcher_free(again);
    }
    watcher_free(w);
}

static void without_a_version_all_objects_come_first(void **state)
{
    struct harness *h = *state;
    free(make_net(h, "b", 12, NULL));
    free(make_net(h, "a", 11, NULL));
    struct watcher *w = watcher_new(h, NETS "?watch=true", NULL);
    struct watcher *zero = watcher_new(h, NETS "?watch=true&resourceVersion=0", NULL);
    watcher_expect(w, 2);
    watcher_expect(zero, 2);
    free(make_net(h, "c", 13, NULL));
    watcher_expect(w, 3);
    watcher_expect(zero, 3);
    CLEANUP_FREE char *s = watcher_summary(w);
    assert_non_null(strstr(s, "ADDED a@"));
    assert_true(strstr(s, "ADDED a@") < strstr(s, "ADDED b@"));
    assert_true(strstr(s, "ADDED b@") < strstr(s, "ADDED c@"));
    watcher_free(w);
    watcher_free(zero);
}

static void initial_events_end_with_a_bookmark(void **state)
{
    struct harness *h = *state;
    free(make_net(h, "a", 11, NULL));
    struct watcher *w = watcher_new(h,
                                    NETS "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                                         "resourceVersionMatch=NotOlderThan",
                                    NULL);
    watcher_expect(w, 2);
    assert_string_equal(type(w, 0), "ADDED");
    assert_string_equal(type(w, 1), "BOOKMARK");
    assert_string_equal(json_path_string(event(w, 1), "object", "metadata", "annotations",
                                         "k8s.io/initial-events-end", NULL),
                        "true");
    watcher_free(w);
    /* In a table the only row of the bookmark has it. */
    w = watcher_new(h,
                    NETS "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                         "resourceVersionMatch=NotOlderThan",
                    "application/json;as=Table;v=v1;g=meta.k8s.io");
    watcher_expect(w, 2);
    const struct json *row = json_at(json_path(event(w, 1), "object", "rows", NULL), 0);
    assert_string_equal(json_path_string(row, "object", "metadata", "annotations",
                                         "k8s.io/initial-events-end", NULL),
                        "true");
    watcher_free(w);
    w = watcher_new(h, NETS "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
                    NULL);
    free(make_net(h, "b", 12, NULL));
    watcher_expect(w, 1);
    CLEANUP_FREE char *s = watcher_summary(w);
    assert_memory_equal(s, "ADDED b@", 8);
    watcher_free(w);
}

static void a_version_that_has_left_the_window_is_gone(void **state)
{
    struct apiserver_config cfg = {.event_window = 4};
    struct harness *h = harness_new(&cfg, NULL);
    CLEANUP_FREE char *old = make_net(h, "a", 11, NULL);
    CLEANUP_FREE char *first = NULL;
    for (int i = 0; i < 5; i++) {
        CLEANUP_FREE char *patch = xasprintf("{\"netid\":%d}", 100 + i);
        merge(h, NETS "/a", patch);
        if (i == 0) {
            CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", NETS "/a", NULL, 200);
            first = xstrdup(at(&a, "metadata.resourceVersion"));
        }
    }
    struct watcher *w = watch_from(h, NETS, old, NULL);
    watcher_expect(w, 1);
    watcher_expect_end(w);
    assert_string_equal(type(w, 0), "ERROR");
    const struct json *status = json_get(event(w, 0), "object");
    assert_string_equal(json_path_string(status, "kind", NULL), "Status");
    assert_string_equal(json_path_string(status, "reason", NULL), "Expired");
    assert_int_equal(json_get_int_or(json_get(status, "code"), 0), 410);
    assert_non_null(strstr(json_path_string(status, "message", NULL), "too old resource version"));
    watcher_free(w);
    /* The four that are kept can be had. */
    w = watch_from(h, NETS, first, NULL);
    watcher_expect(w, 4);
    watcher_free(w);
    /* Another kind's window is its own. */
    w = watch_from(h, PODS, old, NULL);
    watcher_expect(w, 0);
    assert_false(w->ended);
    watcher_free(w);
    harness_free(h);
}

static void a_window_is_bounded_in_bytes_too(void **state)
{
    struct apiserver_config cfg = {.event_window_bytes = 64 << 10};
    struct harness *h = harness_new(&cfg, NULL);
    CLEANUP_FREE char *old = make_net(h, "a", 11, NULL);
    for (int i = 0; i < 12; i++) {
        CLEANUP_FREE char *patch = xasprintf(
            "{\"netid\":%d,\"metadata\":{\"annotations\":{\"fill\":\"%020000d\"}}}", 100 + i, 0);
        merge(h, NETS "/a", patch);
    }
    struct watcher *w = watch_from(h, NETS, old, NULL);
    watcher_expect_end(w);
    assert_string_equal(type(w, 0), "ERROR");
    watcher_free(w);
    harness_free(h);
}

static void selectors_turn_changes_into_coming_and_going(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *version = make_net(h, "x", 11, NULL);
    struct watcher *w = watch_from(h, NETS, version, "&labelSelector=t%3Dyes");
    free(make_net(h, "a", 12, "{\"t\":\"no\"}"));
    free(make_net(h, "b", 13, "{\"t\":\"yes\"}"));
    merge(h, NETS "/a", "{\"metadata\":{\"labels\":{\"t\":\"yes\"}}}");
    merge(h, NETS "/a", "{\"netid\":30}");
    merge(h, NETS "/b", "{\"metadata\":{\"labels\":{\"t\":\"no\"}},\"netid\":31}");
    merge(h, NETS "/b", "{\"netid\":32}");
    delete (h, NETS "/b");
    delete (h, NETS "/a");
    watcher_expect(w, 5);
    static const char *const want[][2] = {
        {"ADDED", "b"}, {"ADDED", "a"}, {"MODIFIED", "a"}, {"DELETED", "b"}, {"DELETED", "a"}};
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        assert_string_equal(type(w, i), want[i][0]);
        assert_string_equal(json_path_string(event(w, i), "object", "metadata", "name", NULL),
                            want[i][1]);
    }
    /* What is hidden is shown as it was when it was last seen, at the version of the change. */
    const struct json *hidden = json_get(event(w, 3), "object");
    assert_int_equal(json_get_int_or(json_get(hidden, "netid"), 0), 13);
    assert_string_equal(json_path_string(hidden, "metadata", "labels", "t", NULL), "yes");
    /* The same, told from the window. */
    struct watcher *again = watch_from(h, NETS, version, "&labelSelector=t%3Dyes");
    watcher_expect(again, 5);
    assert_true(json_equal(again->events, w->events));
    watcher_free(again);
    watcher_free(w);
}

#define CONTAINER "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"

static void bind_pod(struct harness *h, const char *path, const char *name, const char *node)
{
    CLEANUP_FREE char *part = xasprintf("%s/binding", path);
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"%s\"},\"target\":{\"kind\":"
                                        "\"Node\",\"name\":\"%s\"}}",
                                        name, node);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", part, body, 201);
}

static void a_node_watches_its_own_pods(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *version = make_namespace(h, "red");
    struct watcher *w = watch_from(h, "/api/v1/pods", version, "&fieldSelector=spec.nodeName%3Dn1");
    struct watcher *ns = watch_from(h, "/api/v1/namespaces/red/pods", version, NULL);
    CLEANUP_ANSWER struct answer a =
        ask_ok(h, "POST", PODS,
               "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n1\"," CONTAINER "}}", 201);
    CLEANUP_ANSWER struct answer b =
        ask_ok(h, "POST", PODS,
               "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"nodeName\":\"n2\"," CONTAINER "}}", 201);
    CLEANUP_ANSWER struct answer c =
        ask_ok(h, "POST", "/api/v1/namespaces/red/pods",
               "{\"metadata\":{\"name\":\"r\"},\"spec\":{" CONTAINER "}}", 201);
    bind_pod(h, "/api/v1/namespaces/red/pods/r", "r", "n1");
    watcher_expect(w, 2);
    watcher_expect(ns, 2);
    CLEANUP_FREE char *s = watcher_summary(w), *t = watcher_summary(ns);
    assert_memory_equal(s, "ADDED p@", 8);
    assert_non_null(strstr(s, ", ADDED r@"));
    assert_memory_equal(t, "ADDED r@", 8);
    assert_non_null(strstr(t, ", MODIFIED r@"));
    watcher_free(w);
    watcher_free(ns);
}

static void one_object_is_watched_by_its_path(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    struct watcher *w = watch_from(h, NETS "/b", version, NULL);
    free(make_net(h, "b", 12, NULL));
    merge(h, NETS "/a", "{\"netid\":20}");
    delete (h, NETS "/b");
    watcher_expect(w, 2);
    CLEANUP_FREE char *s = watcher_summary(w);
    assert_memory_equal(s, "ADDED b@", 8);
    assert_non_null(strstr(s, ", DELETED b@"));
    watcher_free(w);
}

static void tables_are_watched_as_tables(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    CLEANUP_FREE char *path = xasprintf(NETS "?watch=1&resourceVersion=%s", version);
    struct watcher *plain = watcher_new(h, path, NULL);
    struct watcher *table = watcher_new(h, path, TABLE);
    struct watcher *old = watcher_new(h, path, "application/json;as=Table;v=v1beta1;g=meta.k8s.io");
    struct watcher *partial =
        watcher_new(h, path, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    merge(h, NETS "/a", "{\"netid\":77}");
    watcher_expect(plain, 1);
    watcher_expect(table, 1);
    watcher_expect(old, 1);
    watcher_expect(partial, 1);
    const struct json *t = json_get(event(table, 0), "object");
    assert_string_equal(json_path_string(t, "kind", NULL), "Table");
    assert_string_equal(json_path_string(t, "apiVersion", NULL), "meta.k8s.io/v1");
    const struct json *row = json_at(json_get(t, "rows"), 0);
    assert_string_equal(json_get_string(json_at(json_get(row, "cells"), 0)), "a");
    assert_int_equal(json_get_int_or(json_at(json_get(row, "cells"), 1), 0), 77);
    assert_string_equal(json_path_string(row, "object", "kind", NULL), "PartialObjectMetadata");
    assert_string_equal(json_path_string(event(old, 0), "object", "apiVersion", NULL),
                        "meta.k8s.io/v1beta1");
    assert_string_equal(json_path_string(event(partial, 0), "object", "kind", NULL),
                        "PartialObjectMetadata");
    assert_null(json_path(event(partial, 0), "object", "netid", NULL));
    assert_string_equal(json_path_string(event(plain, 0), "object", "kind", NULL), "NetNamespace");
    watcher_free(plain);
    watcher_free(table);
    watcher_free(old);
    watcher_free(partial);
}

static void bookmarks_tell_how_far_a_quiet_watch_is(void **state)
{
    struct apiserver_config cfg = {.bookmark_ms = 300};
    struct harness *h = harness_new(&cfg, NULL);
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    struct watcher *w = watch_from(h, PODS, version, "&allowWatchBookmarks=true");
    struct watcher *without = watch_from(h, PODS, version, NULL);
    CLEANUP_FREE char *later = make_net(h, "b", 12, NULL);
    watcher_expect(w, 1);
    assert_string_equal(type(w, 0), "BOOKMARK");
    assert_string_equal(json_path_string(event(w, 0), "object", "kind", NULL), "Pod");
    assert_string_equal(
        json_path_string(event(w, 0), "object", "metadata", "resourceVersion", NULL), later);
    assert_int_equal(json_count(without->events), 0);
    watcher_free(w);
    watcher_free(without);
    harness_free(h);
}

static void a_watch_ends_in_order_when_its_time_is_up(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    struct watcher *w = watch_from(h, NETS, version, "&timeoutSeconds=1&allowWatchBookmarks=true");
    watcher_expect_end(w);
    assert_int_equal(w->status, 200);
    watcher_expect(w, 1);
    assert_string_equal(type(w, 0), "BOOKMARK");
    watcher_free(w);
}

static void all_watches_end_at_shutdown(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct watcher *w = watcher_new(h, NETS "?watch=1", NULL);
    struct watcher *v = watcher_new(h, PODS "?watch=1", NULL);
    apiserver_shutdown(h->api);
    watcher_expect_end(w);
    watcher_expect_end(v);
    assert_int_equal(w->status, 200);
    CLEANUP_ANSWER struct answer a = ask(h, "GET", NETS, NULL);
    assert_int_equal(a.status, 503);
    assert_string_equal(at(&a, "reason"), "ServiceUnavailable");
    CLEANUP_ANSWER struct answer r = ask(h, "GET", "/readyz", NULL);
    assert_int_equal(r.status, 503);
    CLEANUP_ANSWER struct answer l = ask(h, "GET", "/livez", NULL);
    assert_int_equal(l.status, 200);
    watcher_free(w);
    watcher_free(v);
    harness_free(h);
}

/* Much more than may be queued for one client comes to it whole, at its pace. */
static void a_large_beginning_does_not_cut_the_watch(void **state)
{
    struct harness *h = *state;
    size_t n = 60;
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"n%zu\"},\"netname\":\"n%"
                                            "zu\",\"netid\":11,\"fill\":\"%0200000d"
                                            "\"}",
                                            i, i, 0);
        CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", NETS, body, 201);
    }
    struct watcher *w = watcher_new(h, NETS "?watch=1", NULL);
    merge(h, NETS "/n0", "{\"netid\":12}");
    watcher_expect(w, n + 1);
    assert_string_equal(type(w, n), "MODIFIED");
    assert_false(w->ended);
    watcher_free(w);
}

/* A raw watch on a socket that nobody reads from. */
static int lazy_watch(struct harness *h, const char *path)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(h->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int small = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(connect(fd, (struct sockaddr *) &a, sizeof a), 0);
    CLEANUP_FREE char *head = xasprintf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    assert_int_equal(write(fd, head, strlen(head)), strlen(head));
    return fd;
}

/* Reads to the end of what is sent, in the loop's idle time, until 'needle' comes; owned. */
static char *read_until(struct harness *h, int fd, const char *needle)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    bool never = false;
    for (int i = 0; i < 20000; i++) {
        char buf[65536];
        ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n > 0) {
            strbuf_add(&text, buf, (size_t) n);
            if (strstr(text.data, needle)) {
                return strbuf_steal(&text);
            }
        } else if (n == 0) {
            break;
        } else {
            loop_run_until(h->loop, &never, 1);
        }
    }
    fail_msg("%s did not come in %zu bytes", needle, text.size);
    return NULL;
}

/* A client that does not read costs the window and a bounded queue, holds up nobody, and is
 * told when the window has passed it by. */
static void a_client_that_does_not_read_falls_behind_alone(void **state)
{
    struct apiserver_config cfg = {.event_window = 8};
    struct harness *h = harness_new(&cfg, NULL);
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    int fd = lazy_watch(h, NETS "?watch=1");
    struct watcher *w = watch_from(h, NETS, version, NULL);
    for (int i = 0; i < 60; i++) {
        CLEANUP_FREE char *patch = xasprintf(
            "{\"netid\":%d,\"metadata\":{\"annotations\":{\"fill\":\"%0200000d\"}}}", 100 + i, 0);
        merge(h, NETS "/a", patch);
    }
    watcher_expect(w, 60);
    free(read_until(h, fd, "too old resource version"));
    close(fd);
    watcher_free(w);
    harness_free(h);
}

/* One that reads late, but in time, misses nothing. */
static void a_client_that_reads_late_catches_up(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    int fd = lazy_watch(h, NETS "?watch=1");
    for (int i = 0; i < 60; i++) {
        CLEANUP_FREE char *patch = xasprintf(
            "{\"netid\":%d,\"metadata\":{\"annotations\":{\"fill\":\"%0200000d\"}}}", 100 + i, 0);
        merge(h, NETS "/a", patch);
    }
    delete (h, NETS "/a");
    free(read_until(h, fd, "\"DELETED\""));
    close(fd);
}

/* A bookmark says that all changes up to it were told: a client that resumes from there
 * never asks for them again. */
static void slow_watch_gets_no_bookmark_ahead_of_its_events(void **state)
{
    struct apiserver_config cfg = {.bookmark_ms = 100};
    struct harness *h = harness_new(&cfg, NULL);
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    CLEANUP_FREE char *path =
        xasprintf(NETS "?watch=1&allowWatchBookmarks=true&resourceVersion=%s", version);
    int fd = lazy_watch(h, path);
    for (int i = 0; i < 60; i++) {
        CLEANUP_FREE char *patch = xasprintf(
            "{\"netid\":%d,\"metadata\":{\"annotations\":{\"fill\":\"%0200000d\"}}}", 100 + i, 0);
        merge(h, NETS "/a", patch);
    }
    /* By then the slow one could have had one, too. */
    struct watcher *quick = watcher_new(h, PODS "?watch=1&allowWatchBookmarks=true", NULL);
    watcher_expect(quick, 1);
    assert_string_equal(type(quick, 0), "BOOKMARK");
    delete (h, NETS "/a");
    CLEANUP_FREE char *text = read_until(h, fd, "\"DELETED\"");
    uint64_t newest = 0;
    static const char field[] = "\"resourceVersion\":\"";
    for (const char *p = text; (p = strstr(p, field));) {
        p += sizeof field - 1;
        CLEANUP_FREE char *digits = xstrndup(p, strcspn(p, "\""));
        uint64_t n = 0;
        assert_int_equal(str_to_u64(digits, UINT64_MAX, &n), 0);
        assert_true(n >= newest);
        newest = n;
    }
    close(fd);
    watcher_free(quick);
    harness_free(h);
}

/* Every one of very many watchers gets every change, in order, from one encoding of it. */
static void a_thousand_watchers_see_the_same(void **state)
{
    struct harness *h = *state;
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    size_t n = MIN((size_t) 1000, (size_t) (files.rlim_max - 200) / 2);
    CLEANUP_FREE char *version = make_net(h, "a", 11, NULL);
    CLEANUP_FREE struct watcher **all = xcalloc(n, sizeof(struct watcher *));
    for (size_t i = 0; i < n; i++) {
        all[i] = watch_from(h, NETS, version, NULL);
    }
    for (int i = 0; i < 3; i++) {
        CLEANUP_FREE char *patch = xasprintf("{\"netid\":%d}", 100 + i);
        merge(h, NETS "/a", patch);
    }
    CLEANUP_FREE char *first = NULL;
    for (size_t i = 0; i < n; i++) {
        watcher_expect(all[i], 3);
        CLEANUP_FREE char *summary = watcher_summary(all[i]);
        first = first ? first : xstrdup(summary);
        assert_string_equal(summary, first);
        watcher_free(all[i]);
    }
}

/* The watchers of one node are told of its pods only, of those that come and go, too. */
static void a_pod_that_is_bound_appears_at_its_node(void **state)
{
    struct harness *h = *state;
    static const char pods[] = "/api/v1/namespaces/default/pods";
    struct watcher *a =
        watcher_new(h, "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Da", NULL);
    struct watcher *b =
        watcher_new(h, "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Db", NULL);
    struct watcher *none =
        watcher_new(h, "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3D", NULL);
    CLEANUP_ANSWER struct answer made =
        ask_ok(h, "POST", pods, "{\"metadata\":{\"name\":\"p\"},\"spec\":{" CONTAINER "}}", 201);
    bind_pod(h, "/api/v1/namespaces/default/pods/p", "p", "a");
    merge(h, "/api/v1/namespaces/default/pods/p", "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
    delete (h, "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0");
    watcher_expect(a, 3);
    watcher_expect(none, 2);
    watcher_expect(b, 0);
    assert_string_equal(type(a, 0), "ADDED");
    assert_string_equal(type(a, 1), "MODIFIED");
    assert_string_equal(type(a, 2), "DELETED");
    assert_string_equal(type(none, 0), "ADDED");
    assert_string_equal(type(none, 1), "DELETED");
    watcher_free(a);
    watcher_free(b);
    watcher_free(none);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(changes_are_told_in_order_from_a_version),
        T(without_a_version_all_objects_come_first),
        T(initial_events_end_with_a_bookmark),
        cmocka_unit_test(a_version_that_has_left_the_window_is_gone),
        cmocka_unit_test(a_window_is_bounded_in_bytes_too),
        T(selectors_turn_changes_into_coming_and_going),
        T(a_node_watches_its_own_pods),
        T(one_object_is_watched_by_its_path),
        T(tables_are_watched_as_tables),
        cmocka_unit_test(bookmarks_tell_how_far_a_quiet_watch_is),
        T(a_watch_ends_in_order_when_its_time_is_up),
        cmocka_unit_test(all_watches_end_at_shutdown),
        T(a_client_that_reads_late_catches_up),
        T(a_large_beginning_does_not_cut_the_watch),
        cmocka_unit_test(a_client_that_does_not_read_falls_behind_alone),
        cmocka_unit_test(slow_watch_gets_no_bookmark_ahead_of_its_events),
        T(a_thousand_watchers_see_the_same),
        T(a_pod_that_is_bound_appears_at_its_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
