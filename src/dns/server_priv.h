/* SPDX-License-Identifier: Apache-2.0 */
/* The server's parts: server.c has the UDP threads and forwarding, server_tcp.c the connections. */
#pragma once

#include "base/list.h"
#include "base/str.h"
#include "dns/server.h"

#include <pthread.h>

/* Maximum of connections; above it the one that is idle for longest is closed. */
#define DNS_TCP_MAX 256
#define DNS_TCP_CLIENT_MAX 16 /* Connections of one client. */
#define DNS_TCP_IDLE_MS 10000
#define DNS_TCP_QUERY_MAX 4096
#define DNS_TCP_WAITING_MAX 64 /* Forwarded questions of one connection. */

struct dns_tcp_connection;

/* A question that is being forwarded. */
struct dns_job {
    struct list node; /* In the queue, or in 'jobs' of the server. */
    struct dns_server *server;
    struct dns_key key;
    struct sockaddr_in from;
    struct in_addr to; /* Our address that it came to, when listening at all addresses. */
    int fd;
    struct dns_tcp_connection *connection; /* NULL: it came over UDP. */
    size_t size;
    uint8_t data[];
};

struct dns_worker {
    struct dns_server *server;
    pthread_t thread;
    bool started;
    int reader; /* Reader number of dns/table.h; negative: none. */
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

    pthread_mutex_t lock; /* Protects the queue, which threads fill. */
    struct list queue;
    size_t n_queue;
    struct loop_wakeup *wakeup;
    struct list jobs;             /* Asked for. */
    struct dns_counters counters; /* Counters of the loop's thread. */
    unsigned turn;
    uint8_t *out; /* DNS_MESSAGE_MAX bytes. */

    int tcp_fd;
    struct loop_fd *tcp_watch;
    struct list connections; /* In order of use, the most recent last. */
    size_t n_connections;
};

/* Forwards job->key; answers at once when that is not possible. Takes ownership of the job. */
void dns_server_ask(struct dns_server *s, struct dns_job *job);
/* Answers a query received over TCP. */
void dns_tcp_answer(struct dns_tcp_connection *c, const uint8_t *data, size_t size);
int dns_tcp_listen(struct dns_server *s, struct err *e);
void dns_tcp_close(struct dns_server *s);
