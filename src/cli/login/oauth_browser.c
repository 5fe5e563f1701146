/* SPDX-License-Identifier: Apache-2.0 */
/* Login by the user's browser (RFC 8252): the browser comes back to a listener on 127.0.0.1, whose
 * request must have the state that this login has drawn. */
#include "cli/login/oauth_priv.h"

#include "base/mem.h"
#include "net/http/http.h"
#include "net/loop/sock.h"
#include "oauth/pkce.h"
#include "oauth/session.h"

#define PATIENCE_MS (5u * 60 * 1000)
#define LINGER_MS 2000

static const char page_head[] = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                                "<title>tenet login</title></head><body><p>";
static const char page_tail[] = "</p></body></html>\n";

struct listener {
    char state[OAUTH_VERIFIER_SIZE];
    char *code;
    bool finished, closed;
    int result;
    struct err *e;
};

static void respond(struct http_exchange *x, int status, const char *text)
{
    CLEANUP_FREE char *page = xasprintf("%s%s%s", page_head, text, page_tail);
    http_set_header(x, "Cache-Control", "no-store");
    http_set_header(x, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    http_set_header(x, "Referrer-Policy", "no-referrer");
    http_set_header(x, "X-Content-Type-Options", "nosniff");
    http_respond(x, status, "text/html; charset=utf-8", page, strlen(page));
}

/* A request without the state is of another program: the login goes on waiting. */
static void on_request(void *ctx, struct http_exchange *x)
{
    struct listener *l = ctx;
    const char *state = http_query(x, "state");
    if (l->finished || !streq(http_path(x), "/callback") || !streq(http_method(x), "GET")) {
        respond(x, 404, "There is nothing here.");
        return;
    }
    if (!oauth_secret_equal(state, l->state)) {
        respond(x, 400, "This answer is not to the login that is under way.");
        return;
    }
    CLEANUP_FREE char *target = xasprintf("/callback?%s", http_query_raw(x));
    l->result = oauth_parse_redirect(target, l->state, &l->code, l->e);
    l->finished = true;
    respond(x, l->result < 0 ? 403 : 200,
            l->result < 0 ? "The login was refused. The terminal has the reason."
                          : "The login is complete. You can close this page and return to the "
                            "terminal.");
}

static void on_closed(void *ctx)
{
    struct listener *l = ctx;
    l->closed = true;
}

/* Waits for the browser.  The server ends after its answer was sent. */
static int wait_for_browser(struct loop *loop, struct http_server *server, struct listener *l)
{
    int r = loop_run_until(loop, &l->finished, PATIENCE_MS);
    http_server_shutdown(server, LINGER_MS, on_closed, l);
    loop_run_until(loop, &l->closed, 2 * LINGER_MS);
    if (r == -ETIMEDOUT) {
        return err_set(l->e, r, "the browser did not come back within 5 minutes");
    }
    return r < 0 ? err_sys(l->e, r, "wait for the browser") : l->result;
}

int oauth_by_browser(struct oauth_login *l, const struct oauth_server *o, uint16_t port,
                     oauth_open_fn *open, char **ret_token, struct err *e)
{
    struct loop *loop = l->web->loop;
    struct listener listener = {.e = e};
    char verifier[OAUTH_VERIFIER_SIZE];
    CLEANUP_FREE char *address = xasprintf("127.0.0.1:%u", port);
    int fd = -1, r = sock_listen_tcp(address, &fd, e);
    if (r < 0) {
        return r;
    }
    oauth_random(verifier);
    oauth_random(listener.state);
    CLEANUP_FREE char *challenge = pkce_challenge(verifier);
    CLEANUP_FREE char *redirect = xasprintf("http://127.0.0.1:%d/callback", sock_local_port(fd));
    CLEANUP_FREE char *path =
        oauth_authorize_path(o, OAUTH_BROWSER_CLIENT, redirect, challenge, listener.state);
    CLEANUP_FREE char *origin = web_origin(&o->authorize);
    CLEANUP_FREE char *url = xasprintf("%s%s", origin, path);
    struct http_server *server = http_server_new(loop, NULL, on_request, &listener);
    r = http_server_add_listener(server, fd, e);
    if (r == 0) {
        open(l->ctx, url);
        r = wait_for_browser(loop, server, &listener);
    }
    http_server_free(server);
    if (r == 0) {
        r = oauth_exchange(l, o, OAUTH_BROWSER_CLIENT, redirect, verifier, listener.code, ret_token,
                           e);
    }
    free(listener.code);
    explicit_bzero(verifier, sizeof verifier);
    return r;
}
