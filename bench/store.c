/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's writes: the embedded SQLite store beside etcd, by the same interface in one run.
 * */
#include "store/store.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "measure.h"
#include "peer.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char help[] = "usage: store [--dir DIR] [--puts N] [--size BYTES]\n"
                           "\n"
                           "Conditional writes of objects (--size, default 1000 bytes) to 10,000 "
                           "keys, synced to the disk of DIR\n"
                           "(default /tmp), with 1, 64 and 512 outstanding (as from so many API "
                           "clients): writes a second, and the\n"
                           "median and 99th percentile of one write.  --puts of each (default "
                           "20000; a tenth with 1 outstanding).\n"
                           "Peer: etcd, one member on the same disk, through our client; ratio "
                           "ours/etcd's, greater is better.\n";

#define KEYS 10000
#define MAX_OPEN 512

struct run {
    struct loop *loop;
    struct store *store;
    struct blob *value;
    uint64_t revision[KEYS];
    struct slot {
        struct run *r;
        unsigned key, next;
        uint64_t began_ns;
    } slots[MAX_OPEN];
    unsigned n_open;
    size_t begun, finished, total;
    uint64_t *took_ns;
    bool ready, done;
};

static void put_next(struct slot *s);

static void put_done(void *ctx, int error, uint64_t revision)
{
    struct slot *s = ctx;
    struct run *r = s->r;
    if (error < 0) {
        fprintf(stderr, "write failed: %s\n", strerror(-error));
        exit(1);
    }
    r->revision[s->key] = revision;
    r->took_ns[r->finished++] = time_mono_ns() - s->began_ns;
    if (r->finished == r->total) {
        r->done = true;
    } else if (r->begun < r->total) {
        put_next(s);
    }
}

static void put_next(struct slot *s)
{
    struct run *r = s->r;
    /* Each slot has keys of its own, so that every condition holds. */
    unsigned index = (unsigned) (s - r->slots);
    s->key = index + r->n_open * (s->next++ % (KEYS / r->n_open));
    r->begun++;
    char key[64];
    snprintf(key, sizeof key, "/registry/pods/project-%02u/frontend-%05u", s->key % 100, s->key);
    s->began_ns = time_mono_ns();
    store_put(r->store, key, r->value, r->revision[s->key], put_done, s);
}

static void on_snapshot(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    ((struct run *) ctx)->ready = true;
}

static void on_event(void *ctx, const struct store_event *ev)
{
}

static void on_lost(void *ctx, const char *reason)
{
    fprintf(stderr, "store lost: %s\n", reason);
    exit(1);
}

/* Writes a second. */
struct figures {
    double rate, p50_ms;
};

static struct figures measure(struct run *r, const char *name, unsigned n_open, size_t total)
{
    r->n_open = n_open;
    r->begun = r->finished = 0;
    r->total = total;
    r->took_ns = xcalloc(total, sizeof *r->took_ns);
    r->done = false;
    uint64_t began = time_mono_ns();
    for (unsigned i = 0; i < n_open; i++) {
        r->slots[i] = (struct slot){.r = r};
        put_next(&r->slots[i]);
    }
    loop_run_until(r->loop, &r->done, 0);
    double seconds = (double) (time_mono_ns() - began) / 1e9;
    struct figures f = {(double) total / seconds, measure_quantile_ns(r->took_ns, total, 0.5)};
    printf("  %-7s %4u outstanding %9.0f writes/s   p50 %7.3f ms   p99 %7.3f ms\n", name, n_open,
           f.rate, f.p50_ms, measure_quantile_ns(r->took_ns, total, 0.99));
    free(r->took_ns);
    return f;
}

static void run_open(struct run *r, const struct store_config *cfg, size_t size)
{
    static const struct store_watcher watcher = {on_snapshot, NULL, on_event, on_lost};
    struct err e = {0};
    *r = (struct run){.loop = loop_new()};
    CLEANUP_FREE char *bytes = xmalloc(size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char) (' ' + i * 7 % 90);
    }
    r->value = blob_new(bytes, size);
    if (store_open(r->loop, cfg, &r->store, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    store_start(r->store, &watcher, r);
    if (loop_run_until(r->loop, &r->ready, 20000) < 0) {
        fprintf(stderr, "the store does not get ready\n");
        exit(1);
    }
}

static void run_close(struct run *r)
{
    store_close(r->store);
    blob_unref(r->value);
    loop_free(r->loop);
}

static const unsigned outstanding[] = {1, 64, 512};

static void measure_all(const struct store_config *cfg, size_t puts, size_t size,
                        struct figures *ret)
{
    static struct run r;
    run_open(&r, cfg, size);
    for (size_t i = 0; i < ARRAY_SIZE(outstanding); i++) {
        ret[i] = measure(&r, cfg->backend, outstanding[i], outstanding[i] == 1 ? puts / 10 : puts);
    }
    run_close(&r);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"dir", required_argument, NULL, 'd'},
                                            {"puts", required_argument, NULL, 'n'},
                                            {"size", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *base = "/tmp";
    uint64_t puts = 20000, size = 1000;
    bool bad = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'd':
            base = optarg;
            break;
        case 'n':
            bad |= str_to_u64(optarg, 100000000, &puts) < 0;
            break;
        case 's':
            bad |= str_to_u64(optarg, 1000000, &size) < 0;
            break;
        default:
            fputs(help, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (bad || puts < 10000 || size < 1) {
        fprintf(stderr, "--puts is a number from 10000, --size one from 1 to 1000000\n");
        return 2;
    }
    CLEANUP_FREE char *dir = xasprintf("%s/tenet-bench-store-XXXXXX", base);
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    struct figures ours[ARRAY_SIZE(outstanding)], theirs[ARRAY_SIZE(outstanding)];
    CLEANUP_FREE char *path = xasprintf("%s/registry.db", dir);
    printf("store: %llu-byte values, synced\n", (unsigned long long) size);
    measure_all(&(struct store_config){.backend = "sqlite", .path = path}, puts, size, ours);
    int port = peer_free_port();
    pid_t pid = peer_etcd_start(dir, port);
    if (pid) {
        CLEANUP_FREE char *endpoint = xasprintf("http://127.0.0.1:%d", port);
        measure_all(&(struct store_config){.backend = "etcd", .endpoints = endpoint}, puts, size,
                    theirs);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        for (size_t i = 0; i < ARRAY_SIZE(outstanding); i++) {
            printf("  ratio   %4u outstanding %9.1f\n", outstanding[i],
                   ours[i].rate / theirs[i].rate);
            CLEANUP_FREE char *rate = xasprintf("writes, %u outstanding", outstanding[i]);
            CLEANUP_FREE char *p50 = xasprintf("p50, %u outstanding", outstanding[i]);
            measure_result(rate, ours[i].rate, "/s", "etcd", theirs[i].rate);
            measure_result(p50, ours[i].p50_ms, "ms", "etcd", theirs[i].p50_ms);
        }
    } else {
        printf("  etcd is not installed: no peer\n");
    }
    peer_remove_tree(dir);
    return 0;
}
