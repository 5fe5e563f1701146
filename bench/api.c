/* SPDX-License-Identifier: Apache-2.0 */
/* The API server as its clients see it: start, memory, writes, reads, lists, and the time until one
 * change has reached many watchers.  Starts a 'tenet master' on SQLite. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "measure.h"
#include "net/http/http.h"
#include "peer.h"
#include "store/store.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char help[] =
    "usage: api [--tenet PROGRAM] [--dir DIR] [--nodes N] [--pods N] [--watchers N] [--creates N]\n"
    "\n"
    "Starts 'tenet master' (default: of this build) on SQLite in DIR (default /tmp) and measures:\n"
    "start to /readyz and idle memory; durable creates of 2 KB pods (--creates, default 20000) "
    "with\n"
    "256 outstanding; gets; lists of 10,000 pods; the time from a change's request to its event "
    "at\n"
    "each of --watchers (default 1000); then memory, gets, a node's pods and a restart with "
    "--nodes\n"
    "(default 1000) and --pods (default 110000).\n"
    "Peer: etcd, one member on the same disk, puts of the same size with as many outstanding; the\n"
    "ratio is our creates through the API to etcd's puts alone, greater is better.\n";

#define CLIENTS 16 /* Of 16 calls at once each. */
#define OUTSTANDING 256
#define LIST_SIZE 10000
#define POD_BYTES 2000 /* As a client gets it. */
#define ACCEPT "application/json"
#define BIG_BODY ((size_t) 1 << 30)

struct bench {
    struct loop *loop;
    struct http_client *clients[CLIENTS];
    char *tenet, *dir, *url;
    int port;
    pid_t master;
    size_t filler; /* Bytes that make a pod as large as it is to be. */
};

static const char *made_dir; /* Removed at the end, whatever it is. */

static void remove_dir(void)
{
    if (made_dir) {
        peer_remove_tree(made_dir);
    }
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* ---- the master ---- */

static double resident_mb(pid_t pid)
{
    CLEANUP_FREE char *path = xasprintf("/proc/%d/statm", (int) pid);
    FILE *f = fopen(path, "re");
    unsigned long size = 0, resident = 0;
    if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2) {
        fail(path, "cannot be read");
    }
    fclose(f);
    return (double) resident * (double) sysconf(_SC_PAGESIZE) / 1e6;
}

/* The most that was ever resident. */
static double peak_mb(pid_t pid)
{
    CLEANUP_FREE char *path = xasprintf("/proc/%d/status", (int) pid);
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t kb = 0;
    while (f && !kb && fgets(line, sizeof line, f)) {
        char *digits = line + strcspn(line, "0123456789");
        digits[strspn(digits, "0123456789")] = '\0';
        if (str_has_prefix(line, "VmHWM:")) {
            (void) str_to_u64(digits, UINT64_MAX, &kb);
        }
    }
    if (!kb) {
        fail(path, "cannot be read");
    }
    fclose(f);
    return (double) kb * 1024 / 1e6;
}

struct reply {
    bool done;
    int status;
    char *body; /* Owned. */
    size_t size;
};

static void replied(void *ctx, const struct http_result *r)
{
    struct reply *reply = ctx;
    reply->status = r->status;
    reply->size = r->size;
    reply->body = r->error ? NULL : xmemdup(r->body, r->size + 1);
    reply->done = true;
}

/* One request; the body's memory is the caller's. */
static struct reply ask(struct bench *b, const char *method, const char *path, const char *body)
{
    struct reply r = {0};
    http_call(b->clients[0], method, path, ACCEPT,
              streq(method, "PATCH") ? "application/merge-patch+json" : ACCEPT, body,
              body ? strlen(body) : 0, replied, &r);
    loop_run_until(b->loop, &r.done, 0);
    return r;
}

static void must(struct bench *b, const char *method, const char *path, const char *body)
{
    struct reply r = ask(b, method, path, body);
    if (r.status / 100 != 2 && r.status != 409) {
        fail(path, r.body ? r.body : "no answer");
    }
    free(r.body);
}

/* Starts it and waits for /readyz; milliseconds. */
static double master_start(struct bench *b)
{
    CLEANUP_FREE char *path = xasprintf("%s/registry.db", b->dir);
    CLEANUP_FREE char *address = xasprintf("127.0.0.1:%d", b->port);
    uint64_t began = time_mono_ns();
    b->master = fork();
    if (b->master == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execl(b->tenet, "tenet", "master", "--storage-path", path, "--bind-address", address,
              "--cluster-network", "10.0.0.0/8:9", NULL);
        _exit(127);
    }
    for (;;) {
        struct reply r = ask(b, "GET", "/readyz", NULL);
        free(r.body);
        if (r.status == 200) {
            return (double) (time_mono_ns() - began) / 1e6;
        }
        if (waitpid(b->master, NULL, WNOHANG) != 0) {
            fail(b->tenet, "the master ended");
        }
        usleep(500);
    }
}

static void master_stop(struct bench *b)
{
    kill(b->master, SIGTERM);
    waitpid(b->master, NULL, 0);
}

/* ---- many requests ---- */

struct storm {
    struct bench *bench;
    const char *name;
    /* The i-th request; all owned by the caller, 'body' NULL: a GET. */
    void (*make)(struct bench *b, size_t i, char **ret_path, char **ret_body);
    size_t total, begun, finished, first;
    uint64_t *took_ns;
    bool done;
};
struct slot {
    struct storm *storm;
    struct http_client *client;
    uint64_t began_ns;
};

static void storm_next(struct slot *s);

static void storm_replied(void *ctx, const struct http_result *r)
{
    struct slot *s = ctx;
    struct storm *st = s->storm;
    if (r->error || r->status / 100 != 2) {
        fail(st->name, r->error ? r->error_text : r->body);
    }
    st->took_ns[st->finished++] = time_mono_ns() - s->began_ns;
    if (st->finished == st->total) {
        st->done = true;
    } else if (st->begun < st->total) {
        storm_next(s);
    }
}

static void storm_next(struct slot *s)
{
    struct storm *st = s->storm;
    CLEANUP_FREE char *path = NULL, *body = NULL;
    st->make(st->bench, st->first + st->begun++, &path, &body);
    s->began_ns = time_mono_ns();
    http_call(s->client, body ? "POST" : "GET", path, ACCEPT, ACCEPT, body, body ? strlen(body) : 0,
              storm_replied, s);
}

/* Requests a second. */
static double storm(struct bench *b, const char *name,
                    void (*make)(struct bench *b, size_t i, char **ret_path, char **ret_body),
                    size_t first, size_t total, size_t outstanding)
{
    struct storm st = {.bench = b, .name = name, .make = make, .first = first, .total = total};
    struct slot slots[OUTSTANDING];
    st.took_ns = xcalloc(total, sizeof *st.took_ns);
    uint64_t began = time_mono_ns();
    for (size_t i = 0; i < MIN(outstanding, total); i++) {
        slots[i] = (struct slot){.storm = &st, .client = b->clients[i % CLIENTS]};
        storm_next(&slots[i]);
    }
    loop_run_until(b->loop, &st.done, 0);
    double rate = (double) total * 1e9 / (double) (time_mono_ns() - began);
    double p50 = measure_quantile_ns(st.took_ns, total, 0.5);
    printf("  %-34s %8.0f/s   p50 %8.3f ms   p99 %8.3f ms\n", name, rate, p50,
           measure_quantile_ns(st.took_ns, total, 0.99));
    CLEANUP_FREE char *median = xasprintf("%s, p50", name);
    measure_result(name, rate, "/s", NULL, 0);
    measure_result(median, p50, "ms", NULL, 0);
    free(st.took_ns);
    return rate;
}

/* ---- objects ---- */

/* Pods of LIST_SIZE a namespace, spread over the nodes. */
static void make_pod(struct bench *b, size_t i, char **ret_path, char **ret_body)
{
    *ret_path = xasprintf("/api/v1/namespaces/bench-%zu/pods", i / LIST_SIZE);
    *ret_body = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"frontend-%06zu\","
        "\"labels\":{\"app\":\"frontend\",\"tier\":\"t%zu\"},\"annotations\":{\"filler\":\"%0*d\"}}"
        ","
        "\"spec\":{\"nodeName\":\"node-%04zu\",\"containers\":[{\"name\":\"web\",\"image\":"
        "\"registry.example.com/shop/frontend:1.2\",\"ports\":[{\"containerPort\":8080}]}]}}",
        i, i % 10, (int) b->filler, 0, i % 1000);
}

static void get_pod(struct bench *b, size_t i, char **ret_path, char **ret_body)
{
    size_t n = i * 7919 % LIST_SIZE;
    *ret_path = xasprintf("/api/v1/namespaces/bench-0/pods/frontend-%06zu", n);
}

static void make_node(struct bench *b, size_t i, char **ret_path, char **ret_body)
{
    *ret_path = xstrdup("/api/v1/nodes");
    *ret_body = xasprintf("{\"metadata\":{\"name\":\"node-%04zu\"},\"status\":{\"addresses\":[{"
                          "\"type\":\"InternalIP\",\"address\":\"192.168.%zu.%zu\"}]}}",
                          i, i / 250, i % 250 + 1);
}

static void list_node(struct bench *b, size_t i, char **ret_path, char **ret_body)
{
    *ret_path = xasprintf("/api/v1/pods?fieldSelector=spec.nodeName%%3Dnode-%04zu", i % 1000);
}

static void list_namespace(struct bench *b, size_t i, char **ret_path, char **ret_body)
{
    *ret_path = xstrdup("/api/v1/namespaces/bench-0/pods");
}

static void make_namespace(struct bench *b, size_t i)
{
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"bench-%zu\"}}", i);
    must(b, "POST", "/api/v1/namespaces", body);
}

/* How much makes a pod POD_BYTES large. */
static void find_filler(struct bench *b)
{
    CLEANUP_FREE char *path = NULL, *body = NULL;
    make_namespace(b, 0);
    b->filler = 1;
    make_pod(b, 999999, &path, &body);
    struct reply r = ask(b, "POST", "/api/v1/namespaces/bench-0/pods?dryRun=All", body);
    if (r.status != 201) {
        fail("a pod", r.body ? r.body : "no answer");
    }
    b->filler = r.size < POD_BYTES ? POD_BYTES - r.size : 1;
    free(r.body);
}

/* ---- watchers ---- */

#define CHANGES 100
#define WATCHES_ASKED 64 /* At once: one client that asks for more waits, and then is refused. */

struct fan {
    uint64_t sent_ns[CHANGES], *took_ns;
    size_t n_took, n_watchers, n_asked, n_opened;
    bool opened, all;
    struct bench *bench;
    const char *path;
    struct follower *followers;
};
struct follower {
    struct fan *fan;
    struct http_client *client;
    struct http_call *call;
    struct json_scan scan;
    size_t seen;
};

static void follow_next(struct fan *fan);

static void followed(void *ctx)
{
    struct fan *fan = ((struct follower *) ctx)->fan;
    fan->opened = ++fan->n_opened == fan->n_watchers;
    follow_next(fan);
}

static void follower_data(void *ctx, const char *p, size_t size)
{
    struct follower *f = ctx;
    struct fan *fan = f->fan;
    size_t n;
    while (size && (n = json_scan_feed(&f->scan, p, size))) {
        if (f->seen < CHANGES) {
            fan->took_ns[fan->n_took++] = time_mono_ns() - fan->sent_ns[f->seen];
        }
        f->seen++;
        p += n;
        size -= n;
        /* Between two values there is a line end. */
        while (size && *p == '\n') {
            p++;
            size--;
        }
    }
    fan->all = fan->n_took == fan->n_watchers * CHANGES;
}

static void follower_ended(void *ctx, const struct http_result *r)
{
    CLEANUP_FREE char *why = xasprintf("status %d %s", r->status, r->error_text);
    fail("a watch ended", why);
}

static void follow_next(struct fan *fan)
{
    static const struct http_stream_ops ops = {followed, follower_data, follower_ended};
    if (fan->n_asked < fan->n_watchers) {
        struct follower *f = &fan->followers[fan->n_asked];
        f->fan = fan;
        f->call = http_stream(fan->bench->clients[fan->n_asked++ % CLIENTS], fan->path, ACCEPT, 0,
                              &ops, f);
    }
}

static void fan_out(struct bench *b, size_t n_watchers)
{
    struct fan fan = {.n_watchers = n_watchers, .bench = b};
    struct follower *all = xcalloc(n_watchers, sizeof *all);
    fan.took_ns = xcalloc(n_watchers * CHANGES, sizeof *fan.took_ns);
    must(b, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"watched\"}}");
    must(b, "POST", "/api/v1/namespaces/watched/pods",
         "{\"metadata\":{\"name\":\"one\"},\"spec\":{\"schedulerName\":\"none\",\"containers\":[{"
         "\"name\":\"c\",\"image\":\"i\"}]}}"); /* A scheduler would write its status. */
    struct reply r = ask(b, "GET", "/api/v1/namespaces/watched/pods?limit=1", NULL);
    CLEANUP(json_free) struct json *list = NULL;
    json_parse(r.body, r.size, &list, NULL);
    CLEANUP_FREE char *path =
        xasprintf("/api/v1/namespaces/watched/pods?watch=1&resourceVersion=%s",
                  json_path_string(list, "metadata", "resourceVersion", NULL));
    free(r.body);
    double before = resident_mb(b->master);
    fan.path = path;
    fan.followers = all;
    for (size_t i = 0; i < WATCHES_ASKED; i++) {
        follow_next(&fan);
    }
    loop_run_until(b->loop, &fan.opened, 0);
    double with = resident_mb(b->master);
    for (size_t i = 0; i < CHANGES; i++) {
        CLEANUP_FREE char *patch =
            xasprintf("{\"metadata\":{\"annotations\":{\"change\":\"%zu\"}}}", i);
        bool never = false;
        fan.sent_ns[i] = time_mono_ns();
        must(b, "PATCH", "/api/v1/namespaces/watched/pods/one", patch);
        loop_run_until(b->loop, &never, 50); /* As changes come, not a flood of them. */
    }
    loop_run_until(b->loop, &fan.all, 0);
    double p50 = measure_quantile_ns(fan.took_ns, fan.n_took, 0.5);
    double p99 = measure_quantile_ns(fan.took_ns, fan.n_took, 0.99);
    printf(
        "  a change at %4zu watchers            p50 %8.3f ms   p99 %8.3f ms   %.1f kB a watcher\n",
        n_watchers, p50, p99, (with - before) * 1e3 / (double) n_watchers);
    measure_result("change at all watchers, p50", p50, "ms", NULL, 0);
    measure_result("change at all watchers, p99", p99, "ms", NULL, 0);
    for (size_t i = 0; i < n_watchers; i++) {
        http_call_cancel(all[i].call);
    }
    free(fan.took_ns);
    free(all);
}

/* ---- the peer ---- */

struct puts {
    struct store *store;
    struct blob *value;
    size_t total, begun, finished;
    bool ready, done;
};

static void put_next(struct puts *p);

static void put_done(void *ctx, int error, uint64_t revision)
{
    struct puts *p = ctx;
    if (error < 0) {
        fail("etcd", strerror(-error));
    }
    if (++p->finished == p->total) {
        p->done = true;
    } else if (p->begun < p->total) {
        put_next(p);
    }
}

static void put_next(struct puts *p)
{
    char key[64];
    snprintf(key, sizeof key, "/registry/pods/bench/frontend-%06zu", p->begun++);
    store_put(p->store, key, p->value, STORE_ABSENT, put_done, p);
}

static void put_ready(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    ((struct puts *) ctx)->ready = true;
}

static void put_event(void *ctx, const struct store_event *ev)
{
}

static void put_lost(void *ctx, const char *reason)
{
    fail("etcd", reason);
}

static void compare_etcd(struct bench *b, size_t total, double ours)
{
    static const struct store_watcher watcher = {put_ready, NULL, put_event, put_lost};
    int port = peer_free_port();
    pid_t pid = peer_etcd_start(b->dir, port);
    if (!pid) {
        printf("  etcd is not installed: no peer\n");
        return;
    }
    CLEANUP_FREE char *endpoint = xasprintf("http://127.0.0.1:%d", port);
    CLEANUP_FREE char *bytes = xasprintf("%0*d", POD_BYTES, 0);
    struct puts p = {.total = total, .value = blob_new(bytes, POD_BYTES)};
    struct store_config cfg = {.backend = "etcd", .endpoints = endpoint};
    struct err e = {0};
    if (store_open(b->loop, &cfg, &p.store, &e) < 0) {
        fail("etcd", e.text);
    }
    store_start(p.store, &watcher, &p);
    loop_run_until(b->loop, &p.ready, 0);
    uint64_t began = time_mono_ns();
    for (size_t i = 0; i < MIN(total, OUTSTANDING); i++) {
        put_next(&p);
    }
    loop_run_until(b->loop, &p.done, 0);
    double rate = (double) total * 1e9 / (double) (time_mono_ns() - began);
    printf("  %-34s %8.0f/s   ratio ours/etcd's %.1f\n", "etcd alone: puts of that size", rate,
           ours / rate);
    measure_result("creates beside the store's puts", ours, "/s", "etcd", rate);
    store_close(p.store);
    blob_unref(p.value);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- */

struct sizes {
    uint64_t nodes, pods, watchers, creates;
};

static void measure(struct bench *b, const struct sizes *n)
{
    double ready = master_start(b);
    double idle_mb = resident_mb(b->master);
    printf("  start to /readyz %.1f ms, idle %.1f MB\n", ready, idle_mb);
    measure_result("start to /readyz", ready, "ms", NULL, 0);
    measure_result("idle memory", idle_mb, "MB", NULL, 0);
    find_filler(b);
    for (size_t i = 1; i <= MAX(n->pods, n->creates) / LIST_SIZE; i++) {
        make_namespace(b, i);
    }
    double rate =
        storm(b, "creates of 2 KB pods, 256 at once", make_pod, 0, n->creates, OUTSTANDING);
    compare_etcd(b, n->creates, rate);
    storm(b, "gets, 64 at once", get_pod, 0, 50000, 64);
    storm(b, "gets, one at a time", get_pod, 0, 5000, 1);
    storm(b, "lists of 10,000 pods", list_namespace, 0, 20, 1);
    fan_out(b, n->watchers);
    storm(b, "creates of nodes", make_node, 0, n->nodes, 16);
    if (n->pods > n->creates) {
        storm(b, "creates up to all pods", make_pod, n->creates, n->pods - n->creates, OUTSTANDING);
    }
    double full_mb = resident_mb(b->master);
    printf("  %llu nodes and %llu pods: %.0f MB\n", (unsigned long long) n->nodes,
           (unsigned long long) MAX(n->pods, n->creates), full_mb);
    measure_result("memory with all pods", full_mb, "MB", NULL, 0);
    storm(b, "gets with all pods, one at a time", get_pod, 0, 5000, 1);
    storm(b, "pods of one node", list_node, 0, 1000, 1);
    printf("  and after these %.0f MB\n", resident_mb(b->master));
    master_stop(b);
    ready = master_start(b);
    double again_mb = resident_mb(b->master), most_mb = peak_mb(b->master);
    printf("  restart with all that: /readyz after %.0f ms, %.0f MB, at its peak %.0f MB\n", ready,
           again_mb, most_mb);
    measure_result("restart with all pods, to /readyz", ready, "ms", NULL, 0);
    measure_result("memory after the restart", again_mb, "MB", NULL, 0);
    measure_result("peak of the restart", most_mb, "MB", NULL, 0);
    master_stop(b);
}

static void raise_files(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* The 'tenet' that was built beside this program; owned. */
static char *own_tenet(const char *self)
{
    const char *slash = strrchr(self, '/');
    return xasprintf("%.*s/../src/cli/tenet", slash ? (int) (slash - self) : 1, slash ? self : ".");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"tenet", required_argument, NULL, 't'},    {"dir", required_argument, NULL, 'd'},
        {"nodes", required_argument, NULL, 'n'},    {"pods", required_argument, NULL, 'p'},
        {"watchers", required_argument, NULL, 'w'}, {"creates", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    struct sizes n = {.nodes = 1000, .pods = 110000, .watchers = 1000, .creates = 20000};
    CLEANUP_FREE char *tenet = own_tenet(argv[0]);
    const char *base = "/tmp", *program = tenet;
    bool bad = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 't':
            program = optarg;
            break;
        case 'd':
            base = optarg;
            break;
        case 'n':
            bad |= str_to_u64(optarg, 1000, &n.nodes) < 0;
            break;
        case 'p':
            bad |= str_to_u64(optarg, 990000, &n.pods) < 0;
            break;
        case 'w':
            bad |= str_to_u64(optarg, 10000, &n.watchers) < 0;
            break;
        case 'c':
            bad |= str_to_u64(optarg, 990000, &n.creates) < 0;
            break;
        default:
            fputs(help, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (bad || n.creates < LIST_SIZE || n.nodes < 1 || n.watchers < 1) {
        fprintf(stderr, "--nodes is 1 to 1000, --watchers 1 to 10000, --creates from %d\n",
                LIST_SIZE);
        return 2;
    }
    raise_files();
    struct bench b = {.loop = loop_new(), .port = peer_free_port()};
    b.tenet = xstrdup(program);
    b.dir = xasprintf("%s/tenet-bench-api-XXXXXX", base);
    b.url = xasprintf("http://127.0.0.1:%d", b.port);
    if (!mkdtemp(b.dir)) {
        fail(b.dir, strerror(errno));
    }
    made_dir = b.dir;
    atexit(remove_dir);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct http_client_config cfg = {
            .url = b.url, .user_agent = "bench", .max_body = BIG_BODY, .response_ms = 600000};
        struct err e = {0};
        if (http_client_new(b.loop, &cfg, &b.clients[i], &e) < 0) {
            fail(b.url, e.text);
        }
    }
    printf("api: tenet master on SQLite, synced\n");
    measure(&b, &n);
    for (size_t i = 0; i < CLIENTS; i++) {
        http_client_free(b.clients[i]);
    }
    loop_free(b.loop);
    free(b.tenet);
    free(b.url);
    return 0;
}
