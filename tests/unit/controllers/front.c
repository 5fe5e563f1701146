/* SPDX-License-Identifier: Apache-2.0 */
#include "front.h"

#include "client/kubeconfig.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define MAX_RULES 32

/* What happens to the next requests of one method and path. */
struct rule {
    const char *method, *path;
    int code;       /* 0: the request is held. */
    char *body;     /* Owned. */
    unsigned times; /* 0: the rule is used up. */
};

struct front {
    struct harness *h;
    struct http_server *http;
    uint16_t port;
    struct rule rules[MAX_RULES];
    size_t n_rules;
    struct strbuf asked; /* "METHOD PATH\n" of each request. */
    struct http_exchange *held;
};

static struct rule *rule_for(struct front *f, struct http_exchange *x)
{
    for (size_t i = 0; i < f->n_rules; i++) {
        struct rule *r = &f->rules[i];
        if (r->times && streq(r->method, http_method(x)) && streq(r->path, http_path(x))) {
            r->times--;
            return r;
        }
    }
    return NULL;
}

static void handle(void *ctx, struct http_exchange *x)
{
    struct front *f = ctx;
    strbuf_addf(&f->asked, "%s %s\n", http_method(x), http_path(x));
    const struct rule *r = rule_for(f, x);
    if (!r) {
        apiserver_handle(f->h->api, x);
    } else if (r->code) {
        http_respond(x, r->code, "application/json", r->body, strlen(r->body));
    } else {
        assert_null(f->held);
        f->held = x;
    }
}

struct front *front_new(struct harness *h)
{
    struct front *f = NEW(struct front);
    f->asked = (struct strbuf) STRBUF_INIT;
    int fd = -1;
    f->h = h;
    f->http = http_server_new(h->loop, NULL, handle, f);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    f->port = (uint16_t) sock_local_port(fd);
    assert_int_equal(http_server_add_listener(f->http, fd, NULL), 0);
    return f;
}

void front_cut(struct front *f)
{
    CLEANUP_FREE char *address = xasprintf("127.0.0.1:%u", f->port);
    int fd = -1;
    http_server_free(f->http);
    f->http = http_server_new(f->h->loop, NULL, handle, f);
    assert_int_equal(sock_listen_tcp(address, &fd, NULL), 0);
    assert_int_equal(http_server_add_listener(f->http, fd, NULL), 0);
}

static void set_flag(void *ctx)
{
    *(bool *) ctx = true;
}

void front_free(struct front *f)
{
    bool done = false;
    front_release(f);
    http_server_shutdown(f->http, WAIT_MS, set_flag, &done);
    assert_int_equal(loop_run_until(f->h->loop, &done, WAIT_MS), 0);
    http_server_free(f->http);
    for (size_t i = 0; i < f->n_rules; i++) {
        free(f->rules[i].body);
    }
    strbuf_done(&f->asked);
    free(f);
}

struct api_client *front_client(struct front *f)
{
    struct api_client *c;
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%u", f->port);
    struct kubeconfig config = {.server = url,
                                .token = f->h->keys ? (char[]){HARNESS_TOKEN} : NULL};
    assert_int_equal(api_client_with(f->h->loop, &config, "test", &c, NULL), 0);
    return c;
}

static void rule_add(struct front *f, struct rule r)
{
    assert_true(f->n_rules < MAX_RULES);
    f->rules[f->n_rules++] = r;
}

void front_answer(struct front *f, const char *method, const char *path, int code,
                  const char *reason, unsigned times)
{
    char *body = xasprintf("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"%s\","
                           "\"reason\":\"%s\",\"message\":\"by the test\",\"code\":%d}",
                           code < 300 ? "Success" : "Failure", reason, code);
    rule_add(f, (struct rule){method, path, code, body, times});
}

void front_say(struct front *f, const char *method, const char *path, const char *body)
{
    rule_add(f, (struct rule){method, path, 200, quoted(body), 1});
}

void front_forget(struct front *f, const char *path)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_rules; i++) {
        if (streq(f->rules[i].path, path)) {
            free(f->rules[i].body);
        } else {
            f->rules[n++] = f->rules[i];
        }
    }
    f->n_rules = n;
}

void front_hold(struct front *f, const char *method, const char *path)
{
    rule_add(f, (struct rule){.method = method, .path = path, .times = 1});
}

void front_wait_held(struct front *f)
{
    bool never = false;
    for (int i = 0; i < WAIT_MS / 5 && !f->held; i++) {
        loop_run_until(f->h->loop, &never, 5);
    }
    assert_non_null(f->held);
}

void front_release(struct front *f)
{
    struct http_exchange *x = TAKE(f->held);
    if (x) {
        apiserver_handle(f->h->api, x);
    }
}

unsigned front_asked(const struct front *f, const char *method, const char *path)
{
    bool prefix = str_has_suffix(path, "*");
    CLEANUP_FREE char *want =
        xasprintf("\n%s %.*s%s", method, (int) (strlen(path) - prefix), path, prefix ? "" : "\n");
    CLEANUP_FREE char *all = xasprintf("\n%s", strbuf_cstr(&f->asked));
    unsigned n = 0;
    for (const char *p = all; (p = strstr(p, want)); p++) {
        n++;
    }
    return n;
}

void front_expect(struct front *f, const char *method, const char *path, unsigned n)
{
    bool never = false;
    for (int i = 0; i < WAIT_MS / 5 && front_asked(f, method, path) < n; i++) {
        loop_run_until(f->h->loop, &never, 5);
    }
    if (front_asked(f, method, path) != n) {
        fail_msg("%s %s: %u requests, not %u, in:\n%s", method, path, front_asked(f, method, path),
                 n, strbuf_cstr(&f->asked));
    }
}
