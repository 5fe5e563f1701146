/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/timeutil.h"
#include "net/loop/sock.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *text_of(const struct blob *b)
{
    return b ? xstrndup(b->data, b->size) : NULL;
}

static void called_back(struct harness *h)
{
    assert_false(h->in_call);
    h->order++;
    if (h->wait_for && h->wait_for(h)) {
        h->wait_flag = true;
    }
}

static void events_clear(struct seen_event *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].key);
        free(v[i].value);
        free(v[i].prev);
    }
    free(v);
}

static void items_clear(struct harness *h)
{
    for (size_t i = 0; i < h->n_items; i++) {
        free(h->items[i].key);
        free(h->items[i].value);
    }
    free(h->items);
    h->items = NULL;
    h->n_items = 0;
}

static void on_snapshot(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    struct harness *h = ctx;
    items_clear(h);
    h->items = xcalloc(n, sizeof *h->items);
    h->n_items = n;
    for (size_t i = 0; i < n; i++) {
        h->items[i] =
            (struct seen_item){xstrdup(items[i].key), text_of(items[i].value), items[i].revision};
        assert_true(items[i].revision > 0 && items[i].revision <= revision);
        if (i) {
            assert_true(strcmp(items[i - 1].key, items[i].key) < 0);
        }
    }
    h->snapshot_revision = revision;
    h->n_snapshots++;
    called_back(h);
}

static void record(struct harness *h, struct seen_event **v, size_t *n, size_t *cap,
                   const struct store_event *ev)
{
    *v = grow(*v, cap, *n + 1, sizeof **v);
    (*v)[(*n)++] = (struct seen_event){.key = xstrdup(ev->key),
                                       .value = text_of(ev->value),
                                       .prev = text_of(ev->prev),
                                       .revision = ev->revision,
                                       .order = h->order + 1};
}

static void on_history(void *ctx, const struct store_event *ev)
{
    struct harness *h = ctx;
    assert_int_equal(h->n_snapshots, 0);
    record(h, &h->history, &h->n_history, &h->history_cap, ev);
    called_back(h);
}

static void on_event(void *ctx, const struct store_event *ev)
{
    struct harness *h = ctx;
    assert_true(h->n_snapshots > 0);
    assert_true(ev->revision > h->snapshot_revision);
    if (h->n_events) {
        assert_true(ev->revision >= h->events[h->n_events - 1].revision);
    }
    record(h, &h->events, &h->n_events, &h->events_cap, ev);
    called_back(h);
}

void harness_lost(void *ctx, const char *reason)
{
    struct harness *h = ctx;
    h->n_lost++;
    snprintf(h->lost, sizeof h->lost, "%s", reason);
    called_back(h);
}

void harness_init(struct harness *h, const char *backend)
{
    *h = (struct harness){.cfg.backend = backend};
    snprintf(h->dir, sizeof h->dir, "/tmp/tenet-store-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    snprintf(h->path, sizeof h->path, "%s/registry.db", h->dir);
    h->cfg.path = h->path;
    h->cfg.endpoints = h->endpoints;
    h->loop = loop_new();
}

void harness_forget(struct harness *h)
{
    events_clear(h->events, h->n_events);
    events_clear(h->history, h->n_history);
    h->events = h->history = NULL;
    h->n_events = h->events_cap = h->n_history = h->history_cap = 0;
}

void harness_done(struct harness *h)
{
    harness_close(h);
    harness_forget(h);
    items_clear(h);
    loop_free(h->loop);
    remove_tree(h->dir);
}

int harness_set_up_sqlite(void **state)
{
    struct harness *h = NEW(struct harness);
    harness_init(h, "sqlite");
    *state = h;
    return 0;
}

int harness_tear_down(void **state)
{
    harness_done(*state);
    free(*state);
    return 0;
}

void harness_begin(struct harness *h)
{
    static const struct store_watcher watcher = {on_snapshot, on_history, on_event, harness_lost};
    struct err e = {0};
    h->n_snapshots = 0;
    if (store_open(h->loop, &h->cfg, &h->store, &e) < 0) {
        fail_msg("%s", e.text);
    }
    h->in_call = true;
    store_start(h->store, &watcher, h);
    h->in_call = false;
}

void harness_open(struct harness *h)
{
    harness_begin(h);
    harness_wait_snapshots(h, 1);
}

void harness_close(struct harness *h)
{
    h->store = store_close(h->store);
}

void harness_wait(struct harness *h, bool (*fn)(struct harness *h))
{
    h->wait_for = fn;
    h->wait_flag = fn(h);
    int r = loop_run_until(h->loop, &h->wait_flag, WAIT_MS);
    h->wait_for = NULL;
    assert_int_equal(r, 0);
}

static bool enough_events(struct harness *h)
{
    return h->n_events >= h->wait_n;
}
void harness_wait_events(struct harness *h, size_t n)
{
    h->wait_n = n;
    harness_wait(h, enough_events);
}

static bool enough_snapshots(struct harness *h)
{
    return h->n_snapshots >= h->wait_n;
}
void harness_wait_snapshots(struct harness *h, unsigned n)
{
    h->wait_n = n;
    harness_wait(h, enough_snapshots);
}

static bool enough_lost(struct harness *h)
{
    return h->n_lost >= h->wait_n;
}
void harness_wait_lost(struct harness *h, unsigned n)
{
    h->wait_n = n;
    harness_wait(h, enough_lost);
}

const struct seen_item *harness_item(const struct harness *h, const char *key)
{
    for (size_t i = 0; i < h->n_items; i++) {
        if (streq(h->items[i].key, key)) {
            return &h->items[i];
        }
    }
    return NULL;
}

/* ---- writes ---- */

static void on_done(void *ctx, int error, uint64_t revision)
{
    struct result *r = ctx;
    r->calls++;
    r->error = error;
    r->revision = revision;
    r->order = r->h->order + 1;
    called_back(r->h);
}

void begin_put_blob(struct harness *h, struct result *r, const char *key, struct blob *b,
                    uint64_t expect)
{
    *r = (struct result){.h = h};
    h->in_call = true;
    store_put(h->store, key, b, expect, on_done, r);
    h->in_call = false;
}

void begin_put_bytes(struct harness *h, struct result *r, const char *key, const void *p,
                     size_t size, uint64_t expect)
{
    CLEANUP(blob_unref) struct blob *b = blob_new(p, size);
    begin_put_blob(h, r, key, b, expect);
}

void begin_put(struct harness *h, struct result *r, const char *key, const char *value,
               uint64_t expect)
{
    begin_put_bytes(h, r, key, value, strlen(value), expect);
}

void begin_delete(struct harness *h, struct result *r, const char *key, uint64_t expect)
{
    *r = (struct result){.h = h};
    h->in_call = true;
    store_delete(h->store, key, expect, on_done, r);
    h->in_call = false;
}

void begin_guarded(struct harness *h, struct result *r, const char *key, const char *value,
                   uint64_t expect, const char *guard, uint64_t at)
{
    *r = (struct result){.h = h};
    CLEANUP(blob_unref) struct blob *b = value ? blob_new(value, strlen(value)) : NULL;
    h->in_call = true;
    store_write(h->store, key, b, expect, &(struct store_terms){.guard = guard, .guard_at = at},
                on_done, r);
    h->in_call = false;
}

void begin_with_terms(struct harness *h, struct result *r, const char *key, const char *value,
                      uint64_t expect, const struct store_terms *terms)
{
    *r = (struct result){.h = h};
    CLEANUP(blob_unref) struct blob *b = blob_new(value, strlen(value));
    h->in_call = true;
    store_write(h->store, key, b, expect, terms, on_done, r);
    h->in_call = false;
}

void begin_claiming(struct harness *h, struct result *r, const char *key, const char *value,
                    uint64_t expect, const char *const *claims)
{
    struct store_claim list[STORE_MAX_CLAIMS + 1];
    struct store_terms terms = {.claims = list};
    *r = (struct result){.h = h};
    CLEANUP(blob_unref) struct blob *b = value ? blob_new(value, strlen(value)) : NULL;
    CLEANUP(blob_unref) struct blob *owner = blob_new(key, strlen(key));
    for (; claims[terms.n_claims]; terms.n_claims++) {
        const char *claim = claims[terms.n_claims];
        bool goes = claim[0] == '-';
        list[terms.n_claims] =
            (struct store_claim){claim + goes, goes ? NULL : owner, STORE_ABSENT};
    }
    h->in_call = true;
    store_write(h->store, key, b, expect, &terms, on_done, r);
    h->in_call = false;
}

void begin_put_for(struct harness *h, struct result *r, const char *key, const char *value,
                   unsigned ttl_s)
{
    *r = (struct result){.h = h};
    CLEANUP(blob_unref) struct blob *b = blob_new(value, strlen(value));
    h->in_call = true;
    store_write(h->store, key, b, STORE_ANY, &(struct store_terms){.ttl_s = ttl_s}, on_done, r);
    h->in_call = false;
}

void begin_sync(struct harness *h, struct result *r)
{
    *r = (struct result){.h = h};
    h->in_call = true;
    store_sync(h->store, on_done, r);
    h->in_call = false;
}

void begin_probe(struct harness *h, struct result *r)
{
    *r = (struct result){.h = h};
    h->in_call = true;
    store_probe(h->store, on_done, r);
    h->in_call = false;
}

static struct result *waited_results;
static bool all_called(struct harness *h)
{
    for (size_t i = 0; i < h->wait_n; i++) {
        if (!waited_results[i].calls) {
            return false;
        }
    }
    return true;
}

void wait_results(struct harness *h, struct result *r, size_t n)
{
    waited_results = r;
    h->wait_n = n;
    harness_wait(h, all_called);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(r[i].calls, 1);
    }
}

static int wait_result(struct harness *h, struct result *r, uint64_t *ret)
{
    wait_results(h, r, 1);
    if (ret && r->error == 0) {
        *ret = r->revision;
    }
    return r->error;
}

int put(struct harness *h, const char *key, const char *value, uint64_t expect, uint64_t *ret)
{
    struct result r;
    begin_put(h, &r, key, value, expect);
    return wait_result(h, &r, ret);
}

int put_ending(struct harness *h, const char *key, const char *value)
{
    struct result r = {.h = h};
    CLEANUP(blob_unref) struct blob *b = blob_new(value, strlen(value));
    store_write(h->store, key, b, STORE_ANY, &(struct store_terms){.ending = true}, on_done, &r);
    return wait_result(h, &r, NULL);
}

int del(struct harness *h, const char *key, uint64_t expect, uint64_t *ret)
{
    struct result r;
    begin_delete(h, &r, key, expect);
    return wait_result(h, &r, ret);
}

int guarded(struct harness *h, const char *key, const char *value, uint64_t expect,
            const char *guard, uint64_t at, uint64_t *ret)
{
    struct result r;
    begin_guarded(h, &r, key, value, expect, guard, at);
    return wait_result(h, &r, ret);
}

int claiming(struct harness *h, const char *key, const char *value, uint64_t expect,
             const char *const *claims, uint64_t *ret)
{
    struct result r;
    begin_claiming(h, &r, key, value, expect, claims);
    return wait_result(h, &r, ret);
}

/* ---- files ---- */

void remove_tree(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (streq(e->d_name, ".") || streq(e->d_name, "..")) {
            continue;
        }
        CLEANUP_FREE char *path = xasprintf("%s/%s", dir, e->d_name);
        if (unlink(path) < 0) {
            remove_tree(path);
        }
    }
    if (d) {
        closedir(d);
    }
    rmdir(dir);
}

/* ---- etcd ---- */

static int free_port(void)
{
    int fd = -1;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    int port = sock_local_port(fd);
    fd_close(fd);
    return port;
}

static pid_t spawn(char *const argv[])
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        setenv("ETCDCTL_API", "3", 1);
        execvp(argv[0], argv);
        _exit(127);
    }
    return pid;
}

static bool answers(int port)
{
    int fd = -1;
    if (sock_connect_tcp("127.0.0.1", (uint16_t) port, &fd, NULL) < 0) {
        return false;
    }
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    bool ok = poll(&p, 1, 1000) == 1 && sock_connect_result(fd) == 0;
    fd_close(fd);
    return ok;
}

/* False: it ended, as when another program was faster to take a port. */
static bool etcd_run(struct etcd *d)
{
    CLEANUP_FREE char *data = xasprintf("%s/data", d->dir);
    CLEANUP_FREE char *client = xasprintf("http://127.0.0.1:%d", d->client_port);
    CLEANUP_FREE char *peer = xasprintf("http://127.0.0.1:%d", d->peer_port);
    CLEANUP_FREE char *cluster = xasprintf("test=%s", peer);
    char *argv[] = {(char[]){"etcd"}, (char[]){"--name"}, (char[]){"test"}, (char[]){"--data-dir"},
                    data, (char[]){"--listen-client-urls"}, client,
                    (char[]){"--advertise-client-urls"}, client, (char[]){"--listen-peer-urls"},
                    peer, (char[]){"--initial-advertise-peer-urls"}, peer,
                    (char[]){"--initial-cluster"}, cluster,
                    /* Each test cluster is another one. */
                    (char[]){"--initial-cluster-token"}, d->dir, NULL};
    d->pid = spawn(argv);
    for (uint64_t end = time_mono_ms() + WAIT_MS; time_mono_ms() < end;) {
        if (answers(d->client_port)) {
            return true;
        }
        if (waitpid(d->pid, NULL, WNOHANG) == d->pid) {
            return false;
        }
        poll(NULL, 0, 20);
    }
    fail_msg("etcd does not come up");
    return false;
}

void etcd_start(struct etcd *d)
{
    *d = (struct etcd){0};
    for (int i = 0; i < 5; i++) {
        snprintf(d->dir, sizeof d->dir, "/tmp/tenet-etcd-XXXXXX");
        assert_non_null(mkdtemp(d->dir));
        d->client_port = free_port();
        d->peer_port = free_port();
        if (etcd_run(d)) {
            return;
        }
        remove_tree(d->dir);
    }
    fail_msg("etcd does not start");
}

void etcd_restart(struct etcd *d)
{
    assert_true(etcd_run(d));
}

void etcd_kill(struct etcd *d)
{
    if (d->pid) {
        kill_child(d->pid);
        d->pid = 0;
    }
}

void etcd_stop(struct etcd *d)
{
    etcd_kill(d);
    remove_tree(d->dir);
}

unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

int etcd_ctl_status(const struct etcd *d, const char *arguments)
{
    CLEANUP_FREE char *endpoint = xasprintf("--endpoints=http://127.0.0.1:%d", d->client_port);
    CLEANUP_FREE char *text = xstrdup(arguments);
    char *argv[32] = {(char[]){"etcdctl"}, endpoint};
    size_t n = 2;
    for (char *rest = text, *word; (word = strsep(&rest, " ")) && n < ARRAY_SIZE(argv) - 1;) {
        argv[n++] = word;
    }
    int status;
    pid_t pid = spawn(argv);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

void etcd_ctl(const struct etcd *d, const char *arguments)
{
    assert_int_equal(etcd_ctl_status(d, arguments), 0);
}

void kill_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

bool etcd_is_installed(void)
{
    int status = 0;
    char *etcd[] = {(char[]){"etcd"}, (char[]){"--version"}, NULL};
    char *etcdctl[] = {(char[]){"etcdctl"}, (char[]){"version"}, NULL};
    return waitpid(spawn(etcd), &status, 0) > 0 && status == 0 &&
           waitpid(spawn(etcdctl), &status, 0) > 0 && status == 0;
}
