/* SPDX-License-Identifier: Apache-2.0 */
/* The API server alone, for tests with real clients: over a memory store, or over
 * SQLite to test restarts.
 *
 *     apitest_server [--without GROUP] [DATABASE]
 *
 * It prints its port, and serves until its standard input ends.  The kinds of GROUP are
 * not compiled in then: it is what another API server is for them, to which they come
 * as CustomResourceDefinitions.
 *
 * There are no controllers: the namespace "default" is made here, and a namespace that
 * is being deleted is finalized as soon as it is empty, so that a client that waits for
 * the deletion sees it happen. */
#include "apiserver/apiserver.h"
#include "client/client.h"
#include "net/loop/sock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct program {
    struct loop *loop;
    struct api_client *client;
    struct informer *namespaces;
};

static void ignore(void *ctx, int error, const char *text, struct json *obj)
{
}

static void finalize(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct program *p = ctx;
    if (json_path(obj, "metadata", "deletionTimestamp", NULL)) {
        CLEANUP(json_free) struct json *o = json_clone(obj);
        json_remove(json_get(o, "spec"), "finalizers");
        CLEANUP_FREE char *path = api_path("v1", "namespaces", NULL, key, "finalize");
        api_request(p->client, "PUT", path, NULL, o, ignore, NULL);
    }
}

static void ready(void *ctx)
{
    struct program *p = ctx;
    static const struct informer_ops ops = {.changed = finalize};
    static const char *const names[] = {"default", "kube-system"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP(json_free) struct json *o = json_object();
        json_set_string(json_ensure_object(o, "metadata"), "name", names[i]);
        api_request(p->client, "POST", "/api/v1/namespaces", NULL, o, ignore, NULL);
    }
    p->namespaces = informer_new(p->client, p->loop, "v1", "namespaces", NULL, &ops, p);
}

static void on_input(void *ctx, unsigned events)
{
    char c;
    if (read(STDIN_FILENO, &c, 1) <= 0) {
        loop_stop(ctx);
    }
}

static void stop(void *ctx)
{
    loop_stop(ctx);
}

int main(int argc, char **argv)
{
    struct program p = {.loop = loop_new()};
    const char *without = NULL;
    if (argc > 2 && streq(argv[1], "--without")) {
        without = argv[2];
        argc -= 2;
        argv += 2;
    }
    struct store_config store_cfg = {.backend = argc > 1 ? "sqlite" : "memory",
                                     .path = argc > 1 ? argv[1] : NULL};
    struct apiserver_config cfg = {.without_group = without, .ready = ready, .ctx = &p};
    struct store *store;
    struct err e = {0};
    int fd;
    if (store_open(p.loop, &store_cfg, &store, &e) < 0 ||
        sock_listen_tcp("127.0.0.1:0", &fd, &e) < 0) {
        fprintf(stderr, "apitest_server: %s\n", e.text);
        return 1;
    }
    int port = sock_local_port(fd);
    struct apiserver *api = apiserver_new(p.loop, store, &cfg);
    struct http_server *http = http_server_new(p.loop, NULL, apiserver_handle, api);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", port);
    if (http_server_add_listener(http, fd, &e) < 0 ||
        api_client_new(p.loop, url, "apitest_server", &p.client, &e) < 0) {
        fprintf(stderr, "apitest_server: %s\n", e.text);
        return 1;
    }
    printf("%d\n", port);
    fflush(stdout);
    struct loop_fd *input = loop_fd_new(p.loop, STDIN_FILENO, LOOP_READ, on_input, p.loop);
    loop_run(p.loop);
    loop_fd_free(input);
    informer_free(p.namespaces);
    api_client_free(p.client);
    apiserver_shutdown(api);
    http_server_shutdown(http, 2000, stop, p.loop);
    loop_run(p.loop);
    store_close(store);
    http_server_free(http);
    apiserver_free(api);
    loop_free(p.loop);
    return 0;
}
