/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/web.h"

#include "base/mem.h"
#include "net/http/http.h"
#include "wire/http1.h"

#include <strings.h>

#define USER_AGENT "tenet/" TENET_VERSION

void web_answer_done(struct web_answer *a)
{
    free(a->location);
    free(a->authenticate);
    free(a->link);
    free(a->warning);
    free(a->content_type);
    free(a->body);
    *a = (struct web_answer){0};
}

struct asking {
    struct http_client *client;
    bool done;
    int error;
    struct web_answer answer;
    struct strbuf body;
    struct err *e;
};

/* All values of a header, with a line end between; owned; NULL: there is none. */
static char *values(const struct http1_head *head, const char *wanted)
{
    const char *name, *value;
    struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; http1_header_at(head, i, &name, &value); i++) {
        if (strcasecmp(name, wanted) == 0) {
            strbuf_addf(&b, "%s%s", b.size ? "\n" : "", value);
        }
    }
    return b.size ? strbuf_steal(&b) : NULL;
}

static void on_head(void *ctx, const struct http1_head *head)
{
    struct asking *a = ctx;
    if (a->answer.status) {
        return;
    }
    a->answer.status = head->status;
    a->answer.location = values(head, "Location");
    a->answer.authenticate = values(head, "WWW-Authenticate");
    a->answer.link = values(head, "Link");
    a->answer.warning = values(head, "Warning");
    a->answer.content_type = values(head, "Content-Type");
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct asking *a = ctx;
    strbuf_add(&a->body, p, size);
}

static void on_ended(void *ctx, const struct http_result *r)
{
    struct asking *a = ctx;
    a->done = true;
    a->error = r->error < 0 ? err_set(a->e, r->error, "%s", r->error_text) : 0;
}

int web_ask(const struct web *w, const char *method, const struct location *at, const char *headers,
            const char *body, struct web_answer *ret, struct err *e)
{
    static const struct http_stream_ops ops = {.head = on_head, .data = on_data, .ended = on_ended};
    CLEANUP_FREE char *origin = web_origin(at);
    struct tls_client_config tls = w->tls;
    struct http_client_config cfg = {.url = origin, .tls = &tls, .user_agent = USER_AGENT};
    struct asking a = {.body = STRBUF_INIT_MAX(WEB_MAX_BODY), .e = e};
    int r = http_client_new(w->loop, &cfg, &a.client, e);
    if (r < 0) {
        return r;
    }
    http_forward(a.client, method, at->path, headers ? headers : "", body ? body : "",
                 body ? strlen(body) : 0, &ops, &a);
    r = loop_run_until(w->loop, &a.done, WEB_TIMEOUT_MS);
    if (r < 0) {
        err_sys(e, r, "%s", origin);
    } else if ((r = a.error) == 0 && a.body.failed) {
        r = err_set(e, -EMSGSIZE, "%s: the answer has more than %u bytes", origin, WEB_MAX_BODY);
    }
    http_client_free(a.client);
    a.answer.size = a.body.size;
    a.answer.body = strbuf_steal(&a.body);
    if (r < 0) {
        web_answer_done(&a.answer);
        return r;
    }
    *ret = a.answer;
    return 0;
}

/* ---- addresses ---- */

int web_parse(const char *text, struct location *ret, struct err *e)
{
    static const struct location none = {.https = true, .host = (char *) "", .path = (char *) "/"};
    struct location l;
    if (!strstr(text, "://")) {
        return err_set(e, -EINVAL, "\"%.200s\" is no address of HTTP", text);
    }
    int r = location_resolve(&none, text, &l, e);
    if (r == 0) {
        *ret = l;
    }
    return r;
}

bool web_same_origin(const struct location *a, const struct location *b)
{
    return a->https == b->https && a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

char *web_origin(const struct location *l)
{
    const char *scheme = l->https ? "https" : "http";
    return l->port == (l->https ? 443 : 80) ? xasprintf("%s://%s", scheme, l->host)
                                            : xasprintf("%s://%s:%u", scheme, l->host, l->port);
}

bool web_is_loopback(const struct location *l)
{
    return str_has_prefix(l->host, "127.") || streq(l->host, "[::1]") ||
           strcasecmp(l->host, "localhost") == 0;
}
