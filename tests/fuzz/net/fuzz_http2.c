/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 client's bytes after the preface, to a server whose answers the paths choose.  Nothing of the
 * connection may be left when it is closed. */
#include "base/log.h"
#include "base/mem.h"
#include "net/http/http.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_INPUT 30000
#define MAX_HELD 8

static struct loop *loop;
static struct http_server *server;
static struct sockaddr_un address;
static struct http_exchange *held[MAX_HELD], *streams[MAX_HELD];
static struct blob *text;

static void stream_closed(void *ctx)
{
    *(struct http_exchange **) ctx = NULL;
}

static struct http_exchange **free_slot(struct http_exchange **slots)
{
    for (size_t i = 0; i < MAX_HELD; i++) {
        if (!slots[i]) {
            return &slots[i];
        }
    }
    return NULL;
}

static void handle(void *ctx, struct http_exchange *x)
{
    size_t size;
    const char *body = http_body(x, &size), *path = http_path(x);
    struct http_exchange **slot = NULL;
    if (path[1] == 'h' && (slot = free_slot(held))) {
        *slot = x;
    } else if (path[1] == 's' && (slot = free_slot(streams))) {
        *slot = x;
        http_stream_begin(x, 200, "text/plain", stream_closed, slot);
        http_stream_write(x, text);
    } else if (path[1] == 'b') {
        http_respond_blob(x, 200, NULL, text);
    } else {
        const char *host = http_header(x, "host");
        http_set_header(x, "X-Host", host ? host : "");
        http_respond(x, size ? 200 : 204, "text/plain", body, size);
    }
}

static void set_up(void)
{
    struct err e = {0};
    log_set_levels("error", NULL);
    loop = loop_new();
    address.sun_family = AF_UNIX;
    /* Abstract: nothing to remove. */
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "tenet-fuzz-http2-%d", getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct http_limits limits = {.max_body = 5000, .max_conn_queue = 60000, .max_streams = 20};
    server = http_server_new(loop, &limits, handle, NULL);
    if (bind(fd, (struct sockaddr *) &address, sizeof address) < 0 || listen(fd, 8) < 0 ||
        http_server_add_listener(server, fd, &e) < 0) {
        abort();
    }
    char big[40000];
    memset(big, 'x', sizeof big);
    text = blob_new(big, sizeof big);
}

static bool turned;
static void turn_done(void *ctx)
{
    turned = true;
}

/* Each round polls once, without waiting. */
static void turn(int rounds)
{
    static struct loop_task task;
    loop_task_init(&task, loop, turn_done, NULL);
    while (rounds--) {
        turned = false;
        loop_task_queue(&task);
        loop_run_until(loop, &turned, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    if (!loop) {
        set_up();
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *) &address, sizeof address) < 0 ||
        send(fd, preface, sizeof preface - 1, 0) < 0) {
        abort();
    }
    turn(2);
    /* Everything at once, or, as the first byte says, in pieces. */
    size_t piece = size && data[0] ? (size_t) data[0] * 4 : MAX_INPUT;
    for (size_t at = size ? 1 : 0; at < MIN(size, (size_t) MAX_INPUT); at += piece) {
        char buf[8192];
        (void) send(fd, data + at, MIN(piece, size - at), MSG_NOSIGNAL | MSG_DONTWAIT);
        turn(1);
        (void) recv(fd, buf, sizeof buf, MSG_DONTWAIT);
        for (size_t i = 0; i < MAX_HELD; i++) {
            if (streams[i] && at % 3 == 0) {
                http_stream_write(streams[i], text);
            } else if (streams[i] && at % 3 == 1) {
                http_stream_end(TAKE(streams[i]));
            }
        }
    }
    turn(2);
    for (size_t i = 0; i < MAX_HELD / 2; i++) {
        if (held[i]) {
            http_respond_blob(TAKE(held[i]), 200, "text/plain", text);
        }
    }
    turn(1);
    close(fd);
    for (int i = 0; i < 100 && http_server_stats(server).conns; i++) {
        turn(1);
    }
    turn(1);
    for (size_t i = 0; i < MAX_HELD; i++) {
        if (held[i]) {
            http_respond_blob(TAKE(held[i]), 200, "text/plain", text);
        }
        if (streams[i]) {
            abort();
        }
    }
    struct http_stats stats = http_server_stats(server);
    if (stats.conns || stats.h2_conns || stats.streams || stats.body_bytes || text->refs != 1) {
        abort();
    }
    return 0;
}
