/* SPDX-License-Identifier: Apache-2.0 */
/* The server's parts: server.c has the threads of UDP and what is asked elsewhere,
 * server_tcp.c the connections. */
#pragma once

#include "base/list.h"
#include "base/str.h"
#include "dns/server.h"

#include <pthread.h>

#define DNS_TCP_MAX 256       /* Connections; then the one that is idle for longest is closed. */
#define DNS_TCP_CLIENT_MAX 16 /* Of one client. */
#define DNS_TCP_IDLE_MS 10000
#define DNS_TCP_QUERY_MAX 4096
#define DNS_TCP_WAITING_MAX 64 /* Questions of a connection that are asked elsewhere. */

struct dns_tcp_connection;

/* A question that is being asked elsewhere. */
struct dns_job {
    struct list node; /* In the queue, or in 'jobs' of the server. */
    struct dns_server *server;
    struct dns_key key;
    struct sockaddr_in from;
    struct in_addr to; /* Our address that it came to, where we listen at all. */
    int fd;
    struct dns_tcp_connection *connection; /* NULL: it came over UDP. */
    size_t size;
    uint8_t data[];
};

struct dns_worker {
    struct dns_server *server;
    pthread_t thread;
    bool started;
    int reader; /* Number of dns/table.h; negative: none. */
    int fd;
    struct dns_counters counters;
};

struct dns_server {
    struct loop *loop;
    struct dns_responder responder;
    struct dns_forwarder *forwarder;
    uint32_t address;
    uint16_t port;

    unsigned n_workers;
    struct dns_worker *workers;
    _Atomic bool stop;

    pthread_mutex_t lock; /* Of the queue, which comes from the threads. */
    struct list queue;
    size_t n_queue;
    struct loop_wakeup *wakeup;
    struct list jobs;             /* Asked for. */
    struct dns_counters counters; /* Of the loop's thread. */
    unsigned turn;
    uint8_t *out; /* DNS_MESSAGE_MAX bytes. */

    int tcp_fd;
    struct loop_fd *tcp_watch;
    struct list connections; /* The one that was used last at the end. */
    size_t n_connections;
};

/* Asks for job->key; at once answered when that is not possible.  Takes the job. */
void dns_server_ask(struct dns_server *s, struct dns_job *job);
/* The answer to what came over TCP. */
void dns_tcp_answer(struct dns_tcp_connection *c, const uint8_t *data, size_t size);
int dns_tcp_listen(struct dns_server *s, struct err *e);
void dns_tcp_close(struct dns_server *s);
