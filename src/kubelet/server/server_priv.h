/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the kubelet's server: what its parts share.
 *
 *     server.c     listeners, routes, answers      access.c     who may
 *     streams.c    exec, attach, portForward       logs.c       containerLogs, the folder of logs
 *     log_files.c  the files of one log         run.c        run
 *     stats.c      what is used
 *
 * Loop's thread only. */
#pragma once

#include "base/list.h"
#include "kubelet/server/access.h"
#include "kubelet/server/server.h"

#define KUBELET_MAX_STREAMS 500

struct kubelet_server {
    struct loop *loop;
    const struct kubelet_server_ops *ops;
    void *ctx;
    struct runtime *runtime;
    struct access *access;
    struct tls_context *tls;
    char *cert, *key, *client_ca, *log_dir;
    struct http_server *https, *healthz; /* healthz NULL: no such listener. */
    int port;
    struct list requests; /* Whose right is being checked. */
    struct list streams;  /* Of streams.c. */
    struct list runs;     /* Of run.c. */
    struct list logs;     /* Of logs.c. */
    size_t n_streams;
    int inotify; /* -1: logs that are followed are looked at by a timer alone. */
    struct loop_fd *inotify_watch;
};

/* The path of a request about a container: "/exec/NS/POD[/UID]/CONTAINER". */
struct kubelet_target {
    char *namespace, *pod, *uid, *container; /* uid, container NULL: not given. */
};
void kubelet_target_done(struct kubelet_target *t);

void kubelet_respond(struct http_exchange *x, int status, const char *text);
/* Begin what the path names, for a client that may; the exchange is answered now or later. */
void kubelet_exec(struct kubelet_server *s, struct http_exchange *x,
                  const struct kubelet_target *t);
void kubelet_attach(struct kubelet_server *s, struct http_exchange *x,
                    const struct kubelet_target *t);
/* Runs the command of the query's "cmd" to its end, and answers with its output. */
void kubelet_run_command(struct kubelet_server *s, struct http_exchange *x,
                         const struct kubelet_target *t);
void kubelet_port_forward(struct kubelet_server *s, struct http_exchange *x,
                          const struct kubelet_target *t);
void kubelet_container_logs(struct kubelet_server *s, struct http_exchange *x,
                            const struct kubelet_target *t);
/* 'path' is behind "/logs/". */
void kubelet_node_logs(struct kubelet_server *s, struct http_exchange *x, const char *path);
void kubelet_streams_end(struct kubelet_server *s);
void kubelet_runs_end(struct kubelet_server *s);
/* Finds the running container; false: the request was answered. */
bool kubelet_find_running(struct kubelet_server *s, struct http_exchange *x,
                          const struct kubelet_target *t, struct kubelet_container *ret);
int kubelet_logs_begin(struct kubelet_server *s, struct err *e);
void kubelet_logs_end(struct kubelet_server *s);
