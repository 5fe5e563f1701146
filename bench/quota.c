/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: what a quota adds to the creation of a pod, and how long pods are counted after a start.
 *
 * An API server in this process, with a store in memory, gets pods over HTTP from a client in the
 * same loop: in turn in a namespace without quota and in one with a quota of pods, processors and
 * memory.  Then the store gets many pods in namespaces with such quotas, and the server's counters
 * are made anew as after a start: the quotas are found at once, and each is counted when it is
 * first needed.
 *
 *     bench_quota [CREATIONS] [PODS] [NAMESPACES]          default: 6000, 110000 and 1000 */
#include "measure.h"

#include "apiserver/admission/quota_priv.h"
#include "apiserver/request/server_priv.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/http/http.h"
#include "net/loop/sock.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS 120000
#define BLOCK 50 /* Creations in one namespace before those in the other. */

#define POD(head, name)                                                                        \
    "{" head "\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"containers\":[{\"name\":\"c\"," \
    "\"image\":\"registry.example.com/team/web:1\",\"ports\":[{\"containerPort\":8080}],"      \
    "\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"},\"limits\":{\"cpu\":"  \
    "\"200m\",\"memory\":\"128Mi\"}},\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]" \
    "}],\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}"
#define HARD                                                                                   \
    "\"spec\":{\"hard\":{\"pods\":\"1000000\",\"requests.cpu\":\"1000000\",\"limits.memory\":" \
    "\"1000Ti\"}}}"

struct world {
    struct loop *loop;
    struct store *store;
    struct apiserver *api;
    struct http_server *http;
    struct http_client *client;
    size_t sent, stored;
    bool ready, done;
};

static void fail(const char *why)
{
    fprintf(stderr, "bench_quota: %s\n", why);
    exit(1);
}

static void await(struct world *w, bool *what)
{
    if (loop_run_until(w->loop, what, WAIT_MS) < 0) {
        fail("waited in vain");
    }
}

static void on_ready(void *ctx)
{
    ((struct world *) ctx)->ready = true;
}

static void on_stored(void *ctx, int error, uint64_t revision)
{
    struct world *w = ctx;
    if (error < 0) {
        fail(strerror(-error));
    }
    w->done = ++w->stored == w->sent;
}

/* Stores an object; 'text' is taken over. */
static void put(struct world *w, const char *key, char *text)
{
    CLEANUP(blob_unref) struct blob *value = blob_new(text, strlen(text));
    CLEANUP_FREE char *path = xasprintf("/registry/%s", key);
    w->sent++;
    w->done = false;
    store_put(w->store, path, value, STORE_ABSENT, on_stored, w);
    free(text);
}

static void put_namespace(struct world *w, const char *name, bool quota)
{
    CLEANUP_FREE char *key = xasprintf("namespaces/%s", name);
    CLEANUP_FREE char *of_quota = xasprintf("resourcequotas/%s/q", name);
    put(w, key,
        xasprintf("{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"}}",
                  name));
    if (quota) {
        put(w, of_quota,
            xasprintf("{\"kind\":\"ResourceQuota\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                      "\"q\",\"namespace\":\"%s\",\"uid\":\"u-%s\"}," HARD,
                      name, name));
    }
}

static void world_open(struct world *w)
{
    static const struct store_config memory = {.backend = "memory"};
    struct err e = {0};
    int fd;
    *w = (struct world){.loop = loop_new()};
    if (store_open(w->loop, &memory, &w->store, &e) < 0 ||
        sock_listen_tcp("127.0.0.1:0", &fd, &e) < 0) {
        fail(e.text);
    }
    w->api =
        apiserver_new(w->loop, w->store, &(struct apiserver_config){.ready = on_ready, .ctx = w});
    await(w, &w->ready);
    w->http = http_server_new(w->loop, NULL, apiserver_handle, w->api);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", sock_local_port(fd));
    struct http_client_config cfg = {.url = url};
    if (http_server_add_listener(w->http, fd, &e) < 0 ||
        http_client_new(w->loop, &cfg, &w->client, &e) < 0) {
        fail(e.text);
    }
}

static void set_flag(void *ctx)
{
    *(bool *) ctx = true;
}

static void world_close(struct world *w)
{
    bool done = false;
    http_client_free(w->client);
    apiserver_shutdown(w->api);
    http_server_shutdown(w->http, WAIT_MS, set_flag, &done);
    await(w, &done);
    store_close(w->store);
    http_server_free(w->http);
    apiserver_free(w->api);
    loop_free(w->loop);
}

/* ---- creations ---- */

static void on_answer(void *ctx, const struct http_result *r)
{
    if (r->error < 0 || r->status != 201) {
        fail(r->error < 0 ? r->error_text : r->body);
    }
    *(bool *) ctx = true;
}

/* Creates a pod; returns its time in nanoseconds. */
static uint64_t create(struct world *w, const char *ns, size_t i)
{
    bool done = false;
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s/pods", ns);
    CLEANUP_FREE char *body = xasprintf(POD("", "p%zu"), i);
    uint64_t start = time_mono_ns();
    http_call(w->client, "POST", path, NULL, "application/json", body, strlen(body), on_answer,
              &done);
    await(w, &done);
    return time_mono_ns() - start;
}

static void measure_creations(struct world *w, size_t n)
{
    static const char *const spaces[] = {"plain", "bounded"};
    uint64_t *ns[ARRAY_SIZE(spaces)];
    double p50[ARRAY_SIZE(spaces)];
    put_namespace(w, spaces[0], false);
    put_namespace(w, spaces[1], true);
    await(w, &w->done);
    n -= n % BLOCK;
    for (size_t s = 0; s < ARRAY_SIZE(spaces); s++) {
        ns[s] = xcalloc(n, sizeof **ns);
    }
    for (size_t i = 0; i < n; i += BLOCK) {
        for (size_t s = 0; s < ARRAY_SIZE(spaces); s++) {
            for (size_t k = 0; k < BLOCK; k++) {
                ns[s][i + k] = create(w, spaces[s], i + k);
            }
        }
    }
    for (size_t s = 0; s < ARRAY_SIZE(spaces); s++) {
        p50[s] = measure_quantile_ns(ns[s], n, 0.5) * 1e3;
        free(ns[s]);
    }
    printf("%zu pods: p50 %.1f us without a quota, %.1f us with one\n", n, p50[0], p50[1]);
    measure_result("creation of a pod with a quota, p50", p50[1], "us", "without a quota", p50[0]);
}

/* ---- a start ---- */

static void put_pods(struct world *w, size_t pods, size_t namespaces)
{
    for (size_t i = 0; i < namespaces; i++) {
        CLEANUP_FREE char *name = xasprintf("n%zu", i);
        put_namespace(w, name, true);
    }
    for (size_t i = 0; i < pods; i++) {
        CLEANUP_FREE char *key = xasprintf("pods/n%zu/p%zu", i % namespaces, i);
        put(w, key, xasprintf(POD("\"kind\":\"Pod\",\"apiVersion\":\"v1\",", "p%zu"), i));
    }
    await(w, &w->done);
}

static void measure_start(struct world *w, size_t pods, size_t namespaces)
{
    struct quotas *s = w->api->quotas;
    struct smap_entry *e;
    double sum = 0;
    size_t n = 0;
    put_pods(w, pods, namespaces);
    CLEANUP_FREE double *each = xcalloc(smap_size(&s->own), sizeof *each);
    uint64_t start = time_mono_ns();
    quotas_load(s);
    double load = measure_ms_since(start);
    SMAP_FOREACH (e, &s->own) {
        start = time_mono_ns();
        quota_count(s, e->value);
        each[n] = measure_ms_since(start);
        sum += each[n++];
    }
    double p50 = measure_quantile(each, n, 0.5);
    printf("%zu pods in %zu namespaces: quotas found in %.1f ms; one counted in %.2f ms, all in "
           "%.0f ms\n",
           pods, namespaces, load, p50, sum);
    measure_result("start: the quotas are found", load, "ms", NULL, 0);
    measure_result("start: a namespace is counted, p50", p50, "ms", NULL, 0);
    measure_result("start: all are counted", sum, "ms", NULL, 0);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? measure_number(argv[1], BLOCK, 1000000) : 6000;
    size_t pods = argc > 2 ? measure_number(argv[2], 1, 10000000) : 110000;
    size_t namespaces = argc > 3 ? measure_number(argv[3], 1, 100000) : 1000;
    char bad[64];
    struct world w;
    (void) log_set_levels("warn", bad);
    world_open(&w);
    measure_creations(&w, n);
    measure_start(&w, pods, namespaces);
    world_close(&w);
    return 0;
}
