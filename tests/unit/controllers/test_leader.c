/* SPDX-License-Identifier: Apache-2.0 */
/* Election against a real API server over the memory store, in one process. */
#include "controller/leader.h"

#include "apiserver/apiserver.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "net/loop/sock.h"
#include "store/backend.h"

#include "json_text.h"

#define WAIT_MS 60000
#define N 3
#define LEASE "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/test"

struct world;
struct candidate {
    struct world *w;
    struct leader *leader;
    unsigned elected, deposed;
    char fence[160], holder[160];
    bool resigned;
};
struct world {
    struct loop *loop;
    struct store *store;
    struct apiserver *apiserver;
    struct http_server *http;
    struct api_client *client;
    struct candidate c[N];
};

static void on_elected(void *ctx, const char *fence)
{
    struct candidate *c = ctx;
    c->elected++;
    snprintf(c->fence, sizeof c->fence, "%s", fence);
}
static void on_deposed(void *ctx)
{
    ((struct candidate *) ctx)->deposed++;
}
static void on_follows(void *ctx, const char *holder)
{
    struct candidate *c = ctx;
    snprintf(c->holder, sizeof c->holder, "%s", holder);
}
static void on_resigned(void *ctx)
{
    ((struct candidate *) ctx)->resigned = true;
}

static void wait_until(struct world *w, bool (*condition)(struct world *w))
{
    uint64_t end = time_mono_ms() + WAIT_MS;
    bool never = false;
    while (!condition(w)) {
        if (time_mono_ms() > end) {
            fail_msg("waited in vain");
        }
        loop_run_until(w->loop, &never, 10);
    }
}

static bool is_ready(struct world *w)
{
    return apiserver_ready(w->apiserver);
}

static int setup(void **state)
{
    struct world *w = NEW(struct world);
    struct err e = {0};
    int fd = -1;
    struct store_config sc = {.backend = "memory"};
    w->loop = loop_new();
    assert_int_equal(store_open(w->loop, &sc, &w->store, &e), 0);
    w->apiserver = apiserver_new(w->loop, w->store, NULL);
    w->http = http_server_new(w->loop, NULL, apiserver_handle, w->apiserver);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", sock_local_port(fd));
    assert_int_equal(http_server_add_listener(w->http, fd, &e), 0);
    assert_int_equal(api_client_new(w->loop, url, "test", &w->client, &e), 0);
    wait_until(w, is_ready);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < N; i++) {
        leader_free(w->c[i].leader);
    }
    api_client_free(w->client);
    apiserver_shutdown(w->apiserver);
    store_close(w->store);
    http_server_free(w->http);
    apiserver_free(w->apiserver);
    loop_free(w->loop);
    free(w);
    return 0;
}

static void begin(struct world *w, unsigned duration_s)
{
    for (int i = 0; i < N; i++) {
        struct leader_config cfg = {.ns = "kube-system",
                                    .name = "test",
                                    .who = "host",
                                    .duration_s = duration_s,
                                    .elected = on_elected,
                                    .deposed = on_deposed,
                                    .follows = on_follows,
                                    .ctx = &w->c[i]};
        w->c[i].w = w;
        w->c[i].leader = leader_new(w->loop, w->client, &cfg);
    }
}

static struct candidate *leading(struct world *w)
{
    struct candidate *found = NULL;
    for (int i = 0; i < N; i++) {
        if (w->c[i].leader && leader_is_leading(w->c[i].leader) && !w->c[i].resigned) {
            assert_null(found); /* Never two. */
            found = &w->c[i];
        }
    }
    return found;
}

static bool someone_leads(struct world *w)
{
    return leading(w) != NULL;
}

static bool others_follow(struct world *w)
{
    const struct candidate *c = leading(w);
    size_t n = 0;
    for (int i = 0; i < N && c; i++) {
        n += &w->c[i] != c && *w->c[i].holder && strstr(c->fence, w->c[i].holder);
    }
    return n == N - 1;
}

static struct json *lease_get(struct world *w)
{
    struct json *lease = NULL;
    assert_int_equal(api_request_sync(w->client, "GET", LEASE, NULL, NULL, NULL, &lease, NULL), 0);
    return lease;
}

static int64_t transitions(struct world *w)
{
    CLEANUP(json_free) struct json *lease = lease_get(w);
    return json_get_int_or(json_path(lease, "spec", "leaseTransitions", NULL), -1);
}

static void one_leads_and_the_others_follow(void **state)
{
    struct world *w = *state;
    begin(w, 3);
    wait_until(w, someone_leads);
    wait_until(w, others_follow);
    const struct candidate *first = leading(w);
    CLEANUP(json_free) struct json *lease = lease_get(w);
    const struct json *spec = json_get(lease, "spec");
    CLEANUP_FREE char *fence =
        xasprintf("kube-system/test %s", json_path_string(spec, "holderIdentity", NULL));
    assert_string_equal(first->fence, fence);
    assert_int_equal(json_get_int_or(json_get(spec, "leaseDurationSeconds"), 0), 3);
    assert_non_null(json_get(spec, "acquireTime"));
    /* It stays so, longer than the lease is without being renewed. */
    bool never = false;
    for (int i = 0; i < 40; i++) {
        loop_run_until(w->loop, &never, 100);
        assert_ptr_equal(leading(w), first);
    }
    assert_int_equal(transitions(w), 0);
    assert_int_equal(first->elected, 1);
    assert_int_equal(first->deposed, 0);
}

/* With ten minutes, nobody could wait for the lease to run out. */
static void who_resigns_hands_over_at_once(void **state)
{
    struct world *w = *state;
    begin(w, 600);
    for (int n = 0; n < N - 1; n++) {
        wait_until(w, someone_leads);
        struct candidate *c = leading(w);
        leader_resign(c->leader, on_resigned, c);
        assert_int_equal(loop_run_until(w->loop, &c->resigned, WAIT_MS), 0);
        c->leader = leader_free(c->leader);
        assert_int_equal(c->deposed, 0);
    }
    wait_until(w, someone_leads);
    assert_int_equal(transitions(w), N - 1);
}

static void a_lease_without_a_holder_is_taken_at_once(void **state)
{
    static const struct {
        const char *path, *text;
    } objects[] = {
        {"/api/v1/namespaces", "{'metadata':{'name':'kube-system'}}"},
        {"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
         "{'metadata':{'name':'test','namespace':'kube-system'},"
         "'spec':{'holderIdentity':'','leaseDurationSeconds':600}}"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        CLEANUP(json_free) struct json *o = from(objects[i].text);
        struct err e = {0};
        if (api_request_sync(w->client, "POST", objects[i].path, NULL, NULL, o, NULL, &e) < 0) {
            fail_msg("%s", e.text);
        }
    }
    begin(w, 600);
    wait_until(w, someone_leads);
    wait_until(w, others_follow);
}

static bool nobody_leads(struct world *w)
{
    return !leading(w);
}

static void who_loses_the_lease_stops_and_comes_back_as_another(void **state)
{
    struct world *w = *state;
    begin(w, 600);
    wait_until(w, others_follow);
    struct candidate *c = leading(w);
    CLEANUP_FREE char *before = xstrdup(c->fence);
    /* Somebody takes it, for one second. */
    CLEANUP(json_free) struct json *change = json_object();
    struct json *spec = json_ensure_object(change, "spec");
    json_set_string(spec, "holderIdentity", "intruder");
    json_set_int(spec, "leaseDurationSeconds", 1);
    assert_int_equal(api_request_sync(w->client, "PATCH", LEASE, NULL,
                                      "application/merge-patch+json", change, NULL, NULL),
                     0);
    wait_until(w, nobody_leads);
    assert_int_equal(c->deposed, 1);
    wait_until(w, someone_leads);
    assert_string_not_equal(leading(w)->fence, before);
    /* Somebody deletes it, and the namespace with it. */
    c = leading(w);
    unsigned deposed = c->deposed;
    assert_int_equal(api_request_sync(w->client, "DELETE", LEASE, NULL, NULL, NULL, NULL, NULL), 0);
    while (c->deposed == deposed) {
        bool never = false;
        loop_run_until(w->loop, &never, 10);
    }
    wait_until(w, someone_leads);
}

/* Nobody else can begin before the lease has run out, and by then it has stopped. */
static void who_cannot_renew_stops_in_time(void **state)
{
    struct world *w = *state;
    begin(w, 3);
    wait_until(w, others_follow);
    struct candidate *c = leading(w);
    apiserver_shutdown(w->apiserver); /* All requests are 503 from now on. */
    uint64_t start = time_mono_ms();
    wait_until(w, nobody_leads);
    assert_int_equal(c->deposed, 1);
    assert_true(time_mono_ms() - start < 3000);
}

/* ---- a store that answers late ---- */

#define LATE_MS 1500

static struct {
    const struct store_ops *ops;
    struct store_ops slow;
    struct loop_timer *timer;
    struct store_write *write; /* The one that waits. */
    uint64_t came_ms;          /* When it came. */
    bool passed;
} late;

static void late_pass(void *ctx)
{
    late.passed = true;
    late.ops->write(ctx, TAKE(late.write));
}

/* The first write is done late; the others are not done before the end. */
static void late_write(struct store *s, struct store_write *w)
{
    if (late.came_ms) {
        store_write_finish(w, -EAGAIN, 0);
        return;
    }
    late.write = w;
    late.came_ms = time_mono_ms();
    loop_timer_arm(late.timer, LATE_MS);
}

static bool late_is_passed(struct world *w)
{
    return late.passed;
}

/* A lease that is renewed late counts from the request: what others see of it may be as old. */
static void term_counts_from_the_request(void **state)
{
    struct world *w = *state;
    begin(w, 3);
    wait_until(w, others_follow);
    struct candidate *c = leading(w);
    late.ops = w->store->ops;
    late.slow = *late.ops;
    late.slow.write = late_write;
    late.came_ms = 0;
    late.passed = false;
    late.timer = loop_timer_new(w->loop, late_pass, w->store);
    w->store->ops = &late.slow;
    wait_until(w, late_is_passed);
    assert_int_equal(c->deposed, 0);
    wait_until(w, nobody_leads);
    /* Two thirds of the three seconds after the request; from the answer on it would be
     * 3,500 ms. */
    assert_in_range(time_mono_ms() - late.came_ms, LATE_MS, 3000);
    w->store->ops = late.ops;
    loop_timer_free(late.timer);
}

/* The header that controllers write under. */
static void writes_under_a_lease_need_its_holder(void **state)
{
    struct world *w = *state;
    begin(w, 3);
    wait_until(w, others_follow);
    struct api_client *fenced = NULL;
    assert_int_equal(api_client_new(w->loop, api_client_server(w->client), "fenced", &fenced, NULL),
                     0);
    http_client_add_header(api_client_http(fenced), "Tenet-Lease", leading(w)->fence);
    struct err e = {0};
    /* Also while the lease is being renewed. */
    for (int i = 0; i < 300; i++) {
        CLEANUP_FREE char *name = xasprintf("p%d", i);
        CLEANUP(json_free) struct json *o = obj_new("v1", "Namespace", NULL, name);
        if (api_request_sync(fenced, "POST", "/api/v1/namespaces", NULL, NULL, o, NULL, &e) < 0) {
            fail_msg("%s", e.text);
        }
    }
    struct candidate *c = leading(w);
    leader_resign(c->leader, on_resigned, c);
    assert_int_equal(loop_run_until(w->loop, &c->resigned, WAIT_MS), 0);
    CLEANUP(json_free) struct json *o = obj_new("v1", "Namespace", NULL, "late");
    assert_int_equal(
        api_request_sync(fenced, "POST", "/api/v1/namespaces", NULL, NULL, o, NULL, &e), -ESTALE);
    assert_non_null(strstr(e.text, "is not held by"));
    static const char *const paths[] = {"/api/v1/namespaces/p1", "/api/v1/namespaces/p2"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        assert_int_equal(api_request_sync(fenced, "DELETE", paths[i], NULL, NULL, NULL, NULL, &e),
                         -ESTALE);
        assert_int_equal(api_request_sync(w->client, "GET", paths[i], NULL, NULL, NULL, NULL, &e),
                         0);
    }
    api_client_free(fenced);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(one_leads_and_the_others_follow),
        T(who_resigns_hands_over_at_once),
        T(a_lease_without_a_holder_is_taken_at_once),
        T(who_loses_the_lease_stops_and_comes_back_as_another),
        T(who_cannot_renew_stops_in_time),
        T(term_counts_from_the_request),
        T(writes_under_a_lease_need_its_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
