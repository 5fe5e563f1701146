/* SPDX-License-Identifier: Apache-2.0 */
/* Opens an identity provider and asks it: "ask_identity FILE" reads {"provider": CONFIG} from the
 * JSON file, then lines of standard input, and prints a line of JSON with the outcome of each:
 *
 * {"user": NAME, "password": TEXT} asks for a password.
 * {"login": true} prints {"url": URL} for a browser, which comes back to a port of this program. */
#include "base/mem.h"
#include "identity/provider.h"
#include "net/http/http.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"

#include <stdio.h>

#define WAIT_MS 20
#define MAX_WAITS 1000

struct asked {
    bool done;
};

static void answered(void *ctx, enum identity_outcome outcome, struct identity *id,
                     const struct err *why)
{
    static const char *const words[] = {
        [IDENTITY_PROVED] = "proved", [IDENTITY_REFUSED] = "refused", [IDENTITY_FAILED] = "failed"};
    struct asked *a = ctx;
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "outcome", words[outcome]);
    if (outcome == IDENTITY_PROVED) {
        json_set_string(o, "user", id->user);
        json_set_string(o, "preferred", id->preferred);
        json_set_string(o, "name", id->name);
        json_set_string(o, "email", id->email);
    } else {
        json_set_string(o, "why", why->text);
    }
    CLEANUP_FREE char *text = json_to_text(o);
    puts(text);
    fflush(stdout);
    a->done = true;
}

/* The login of a browser: what the OAuth server keeps in a session. */
struct login {
    struct identity_provider *provider;
    struct identity_redirect redirect;
    struct asked *asked;
};

static void came_back(void *ctx, struct http_exchange *x)
{
    struct login *login = ctx;
    const char *state = http_query(x, "state");
    if (state && streq(state, login->redirect.state)) {
        login->provider->kind->callback(login->provider, &login->redirect, x, answered,
                                        login->asked);
    }
    http_respond(x, 200, "text/plain", "", 0);
}

static int run_login(struct loop *l, struct identity_provider *p, struct asked *a, struct err *e)
{
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
    CLEANUP(json_free) struct json *o = json_object();
    int fd, r = sock_listen_tcp("127.0.0.1:0", &fd, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *callback = xasprintf("http://127.0.0.1:%d/back", sock_local_port(fd));
    struct login login = {
        .provider = p,
        .redirect = {.callback = callback,
                     .state = "the-state-of-this-login",
                     .nonce = "the-nonce-of-this-login-is-long",
                     .verifier = "a-verifier-of-at-least-43-characters-as-rfc-7636"},
        .asked = a};
    struct http_server *s = http_server_new(l, NULL, came_back, &login);
    r = http_server_add_listener(s, fd, e);
    static const bool never;
    /* Until the provider's metadata is there, or cannot be read. */
    for (int i = 0; r == 0 && i < MAX_WAITS; i++) {
        r = p->kind->redirect(p, &login.redirect, &url, e);
        if (r != -EAGAIN || !strstr(e->text, "was not read yet")) {
            break;
        }
        r = 0;
        loop_run_until(l, &never, WAIT_MS);
    }
    if (r == 0) {
        json_set_string(o, "url", url.data);
        CLEANUP_FREE char *text = json_to_text(o);
        puts(text);
        fflush(stdout);
        r = loop_run_until(l, &a->done, 30000);
    }
    http_server_free(s);
    return r;
}

static int fail(const struct err *e)
{
    fprintf(stderr, "%s\n", e->text);
    return 1;
}

int main(int argc, char **argv)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *config = NULL;
    struct err e = {0};
    if (argc != 2 || file_read(argv[1], 1 << 20, &text, &e) < 0 ||
        json_parse(text.data, text.size, &config, &e) < 0) {
        return fail(&e);
    }
    const struct json *provider = json_get(config, "provider");
    const struct identity_kind *kind = identity_kind_find(json_get_text(provider, "kind"));
    if (!kind) {
        err_set(&e, -EINVAL, "unknown kind");
        return fail(&e);
    }
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct identity_provider *p = NULL;
    if (kind->check(provider, &e) < 0 || kind->open(l, provider, &p, &e) < 0) {
        return fail(&e);
    }
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        CLEANUP(json_free) struct json *q = NULL;
        struct asked a = {0};
        if (json_parse(line, strlen(line), &q, &e) < 0) {
            kind->close(p);
            return fail(&e);
        }
        if (json_get(q, "login")) {
            if (run_login(l, p, &a, &e) < 0) {
                kind->close(p);
                return fail(&e);
            }
            continue;
        }
        kind->password(p, json_get_text(q, "user"), json_get_text(q, "password"), answered, &a);
        if (a.done || loop_run_until(l, &a.done, 30000) < 0) {
            fprintf(stderr, "no answer, or one from within the call\n");
            abort();
        }
    }
    kind->close(p);
    return 0;
}
