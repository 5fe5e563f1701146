/* SPDX-License-Identifier: Apache-2.0 */
/* Many nodes register at once: how long until each has its subnet.
 *
 * API server, controllers and a durable store are in one process, as in the master, over loopback.
 * The peer is the same API server without controllers, which stores as many Nodes and HostSubnets.
 *
 *     bench_register [NODES]          default: 2000 */
#include "measure.h"

#include "apiserver/apiserver.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/client.h"
#include "controller/obj.h"
#include "controllers/controllers.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"

#include <stdio.h>
#include <stdlib.h>

#define NET "/apis/network.openshift.io/v1/"
#define WAIT_MS 120000
#define N_CLIENTS 25 /* Of 16 connections each. */

struct world {
    struct loop *loop;
    struct store *store;
    struct apiserver *apiserver;
    struct http_server *http;
    struct api_client *client;
    struct api_client *nodes[N_CLIENTS]; /* Nodes have connections of their own. */
    struct controllers *controllers;
    struct informer *subnets;
    struct loop_timer *look;
    bool ready, started, done;
    size_t want, sent, created, failed;
};

static void fail(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_register: %s: %s\n", what, e ? e->text : "failed");
    exit(1);
}

static void on_ready(void *ctx)
{
    ((struct world *) ctx)->ready = true;
}
static void on_started(void *ctx)
{
    ((struct world *) ctx)->started = true;
}
static void on_failed(void *ctx, const struct err *e)
{
    fail("controllers", e);
}

static void world_open(struct world *w, const char *dir, const char *name)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s.db", dir, name);
    struct store_config sc = {.backend = "sqlite", .path = path};
    struct apiserver_config ac = {
        .ready = on_ready, .ctx = w, .max_inflight = 100000, .max_queued = 100000};
    struct err e = {0};
    int fd = -1;
    *w = (struct world){.loop = loop_new()};
    if (store_open(w->loop, &sc, &w->store, &e) < 0) {
        fail("store", &e);
    }
    w->apiserver = apiserver_new(w->loop, w->store, &ac);
    w->http = http_server_new(w->loop, NULL, apiserver_handle, w->apiserver);
    if (sock_listen_tcp("127.0.0.1:0", &fd, &e) < 0) {
        fail("listen", &e);
    }
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", sock_local_port(fd));
    if (http_server_add_listener(w->http, fd, &e) < 0 ||
        api_client_new(w->loop, url, "bench", &w->client, &e) < 0 ||
        loop_run_until(w->loop, &w->ready, WAIT_MS) < 0) {
        fail("serve", &e);
    }
    for (size_t i = 0; i < N_CLIENTS; i++) {
        if (api_client_new(w->loop, url, "bench", &w->nodes[i], &e) < 0) {
            fail("client", &e);
        }
    }
}

static void world_close(struct world *w)
{
    loop_timer_free(w->look);
    informer_free(w->subnets);
    controllers_free(w->controllers);
    api_client_free(w->client);
    for (size_t i = 0; i < N_CLIENTS; i++) {
        api_client_free(w->nodes[i]);
    }
    apiserver_shutdown(w->apiserver);
    store_close(w->store);
    http_server_free(w->http);
    apiserver_free(w->apiserver);
    loop_free(w->loop);
}

static void created(void *ctx, int error, const char *text, struct json *obj)
{
    struct world *w = ctx;
    w->failed += error < 0;
    w->created++;
    w->done = !w->subnets && w->created == w->want;
}

static void create(struct world *w, const char *path, struct json *o)
{
    api_request(w->nodes[w->sent++ % N_CLIENTS], "POST", path, NULL, o, created, w);
    json_free(o);
}

static struct json *node_new(size_t i)
{
    CLEANUP_FREE char *name = xasprintf("node%zu", i);
    struct json *o = obj_new("v1", "Node", NULL, name);
    struct json *a = json_object();
    json_set_string(a, "type", "InternalIP");
    json_set_string(a, "address", IP4_TEXT(0xc0a80001u + (uint32_t) i));
    json_append(json_ensure_array(json_ensure_object(o, "status"), "addresses"), a);
    return o;
}

static struct json *subnet_new(size_t i)
{
    CLEANUP_FREE char *name = xasprintf("node%zu", i);
    struct json *o = obj_new(NETWORK_API_VERSION, "HostSubnet", NULL, name);
    struct ip4_prefix p = {0x0a800000u + ((uint32_t) i << 9), 23};
    json_set_string(o, "host", name);
    json_set_string(o, "hostIP", IP4_TEXT(0xc0a80001u + (uint32_t) i));
    json_set_string(o, "subnet", PREFIX_TEXT(p));
    return o;
}

/* Seconds until all are stored. */
static double run_peer(const char *dir, size_t n)
{
    struct world w;
    world_open(&w, dir, "peer");
    w.want = 2 * n;
    uint64_t start = time_mono_ns();
    for (size_t i = 0; i < n; i++) {
        create(&w, "/api/v1/nodes", node_new(i));
        create(&w, NET "hostsubnets", subnet_new(i));
    }
    if (loop_run_until(w.loop, &w.done, WAIT_MS) < 0 || w.failed) {
        fail("peer", NULL);
    }
    double s = (double) (time_mono_ns() - start) / 1e9;
    world_close(&w);
    return s;
}

static void subnet_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct world *w = ctx;
    w->done = w->subnets && informer_count(w->subnets) == w->want;
}
static void subnet_deleted(void *ctx, const char *key, const struct json *obj)
{
    fail("a HostSubnet was deleted", NULL);
}
static void subnets_synced(void *ctx)
{
}

static void check_one(void *ctx, const char *key, const struct json *obj)
{
    bool *taken = ctx;
    struct ip4_prefix p;
    if (hostsubnet_prefix(obj, &p) < 0 || p.len != 23 || taken[p.addr >> 9 & 0x7fff]) {
        fail("two nodes have one subnet", NULL);
    }
    taken[p.addr >> 9 & 0x7fff] = true;
}

/* Seconds until each node has a subnet of its own. */
static double run_masters(const char *dir, size_t n)
{
    static const struct informer_ops ops = {
        .changed = subnet_changed, .deleted = subnet_deleted, .synced = subnets_synced};
    static bool taken[0x8000];
    struct world w;
    struct controllers_config cc = {.started = on_started, .failed = on_failed, .ctx = &w};
    world_open(&w, dir, "master");
    netconf_defaults(&cc.network);
    cc.network.ranges[0].cidr = (struct ip4_prefix){0x0a800000u, 9};
    w.controllers = controllers_new(w.loop, w.client, &cc);
    w.want = n;
    if (loop_run_until(w.loop, &w.started, WAIT_MS) < 0) {
        fail("start", NULL);
    }
    w.subnets = informer_new(w.client, w.loop, NETWORK_API_VERSION, "hostsubnets", NULL, &ops, &w);
    uint64_t start = time_mono_ns();
    for (size_t i = 0; i < n; i++) {
        create(&w, "/api/v1/nodes", node_new(i));
    }
    if (loop_run_until(w.loop, &w.done, WAIT_MS) < 0 || w.failed) {
        fail("allocation", NULL);
    }
    double s = (double) (time_mono_ns() - start) / 1e9;
    informer_each(w.subnets, check_one, taken);
    world_close(&w);
    return s;
}

int main(int argc, char **argv)
{
    uint64_t n = 2000;
    char dir[] = "/tmp/tenet-register-XXXXXX";
    if (argc > 2 || (argc == 2 && (str_to_u64(argv[1], 16384, &n) < 0 || !n)) || !mkdtemp(dir)) {
        fputs("usage: bench_register [NODES]   (1 to 16384)\n", stderr);
        return 2;
    }
    char bad[64];
    (void) log_set_levels("warn", bad);
    double peer = run_peer(dir, n), masters = run_masters(dir, n);
    dir_remove(dir, NULL);
    printf("%llu nodes at once, each has a subnet of its own after %.2f s\n",
           (unsigned long long) n, masters);
    printf("the same number of objects stored without controllers: %.2f s, ratio %.2f\n", peer,
           masters / peer);
    measure_result("subnets of all nodes", masters, "s", "without controllers", peer);
    return 0;
}
