/* SPDX-License-Identifier: Apache-2.0 */
#include "unixctl.h"

#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#define REPLY_TIMEOUT_S 60

void unixctl_open(struct unixctl *c, const struct ovs *o)
{
    *c = (struct unixctl){.in = STRBUF_INIT};
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s/vswitchd.ctl", o->dir);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(c->fd >= 0, "%m");
    struct timeval tv = {.tv_sec = REPLY_TIMEOUT_S};
    CHECK(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) == 0, "%m");
    CHECK(connect(c->fd, (struct sockaddr *) &sa, sizeof sa) == 0, "%s: %m", sa.sun_path);
}

void unixctl_close(struct unixctl *c)
{
    c->fd = fd_close(c->fd);
    strbuf_done(&c->in);
}

void unixctl_send(struct unixctl *c, const char *method, const char *const *args)
{
    /* More, and both sides could wait with full sockets. */
    CHECK(c->sent - c->received < UNIXCTL_MAX_UNDER_WAY, "too many requests");
    CLEANUP(json_free) struct json *request = json_object();
    json_set_string(request, "method", method);
    struct json *params = json_ensure_array(request, "params");
    for (; *args; args++) {
        json_append(params, json_string(*args));
    }
    json_set_int(request, "id", c->sent++);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    json_write(request, 0, &out);
    for (size_t at = 0; at < out.size;) {
        ssize_t n = send(c->fd, out.data + at, out.size - at, MSG_NOSIGNAL);
        CHECK(n > 0, "%m");
        at += (size_t) n;
    }
}

static struct json *receive_object(struct unixctl *c)
{
    for (;;) {
        size_t at = c->used + c->scanned;
        size_t n = at < c->in.size ? json_scan_feed(&c->scan, c->in.data + at, c->in.size - at) : 0;
        if (n) {
            struct json *v = NULL;
            struct err e = {0};
            CHECK(json_parse(c->in.data + c->used, c->scanned + n, &v, &e) == 0, "%s", e.text);
            c->used += c->scanned + n;
            c->scanned = 0;
            c->scan = (struct json_scan){0};
            return v;
        }
        strbuf_consume(&c->in, c->used);
        c->used = 0;
        c->scanned = c->in.size;
        char *p = strbuf_reserve(&c->in, 64 << 10);
        ssize_t got = recv(c->fd, p, 64 << 10, 0);
        CHECK(got > 0, "the daemon does not answer: %s", got ? strerror(errno) : "closed");
        c->in.size += (size_t) got;
    }
}

int unixctl_receive(struct unixctl *c, struct strbuf *ret)
{
    CLEANUP(json_free) struct json *reply = receive_object(c);
    CHECK(json_get_int_or(json_get(reply, "id"), -1) == c->received, "reply out of order");
    c->received++;
    strbuf_reset(ret);
    const char *result = json_get_string(json_get(reply, "result"));
    const char *error = json_get_string(json_get(reply, "error"));
    CHECK(result || error, "a reply with neither result nor error");
    strbuf_adds(ret, result ? result : error);
    return result ? 0 : -EINVAL;
}
