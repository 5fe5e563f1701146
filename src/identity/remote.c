/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/remote.h"

#include "base/ip.h"
#include "identity/peer_attempt.h"
#include "identity/secret.h"
#include "wire/location.h"

#include <sys/stat.h>

enum { CA, CERT, KEY, N_FILES };

/* The HTTP client for one address and one state of the files. */
struct client {
    unsigned refs;
    uint32_t ip;
    struct http_client *http;
};

struct remote {
    struct loop *loop;
    struct location at;
    char *host; /* For the header Host. */
    char *files[N_FILES];
    struct stat read[N_FILES];
    struct client *client; /* The last one; NULL: none yet. */
};

struct remote_call {
    struct remote *remote;
    struct loop_lookup *lookup;
    struct client *client;
    struct http_call *call;
    char *method, *path, *headers, *type, *body;
    struct err why;
    http_result_fn *fn;
    void *ctx;
};

static void client_unref(struct client *c)
{
    if (c && !--c->refs) {
        http_client_free(c->http);
        free(c);
    }
}

int remote_check_url(const char *url, bool https_only, struct err *e)
{
    static const struct location none = {.host = (char *) "", .path = (char *) "/"};
    struct location l = {0};
    const char *rest = strstr(url, "://");
    if (!rest || strchr(url, '#') || strchr(url, '[')) {
        return err_set(e, -EINVAL, "\"%.200s\" is no URL such as https://idp.example.com/path",
                       url);
    }
    int r = location_resolve(&none, url, &l, e);
    if (r == 0 && https_only && !l.https) {
        r = err_set(e, -EINVAL, "\"%.200s\" is not https", url);
    }
    location_done(&l);
    return r;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whether the files are as they were read; '*now' is how they are. */
static bool files_are_same(const struct remote *r, struct stat now[N_FILES])
{
    bool same = true;
    for (size_t i = 0; i < N_FILES; i++) {
        now[i] = (struct stat){0};
        if (r->files[i] && stat(r->files[i], &now[i]) < 0) {
            now[i] = (struct stat){0};
        }
        same &= same_file(&now[i], &r->read[i]);
    }
    return same;
}

/* Uses a client for the address; the caller's reference. */
static int client_get(struct remote *r, uint32_t ip, struct client **ret, struct err *e)
{
    struct stat now[N_FILES];
    bool same = files_are_same(r, now);
    if (r->client && same && r->client->ip == ip) {
        r->client->refs++;
        *ret = r->client;
        return 0;
    }
    char *pem[N_FILES] = {NULL};
    int result = 0;
    for (size_t i = 0; i < N_FILES && result == 0; i++) {
        result = config_file_text(r->files[i], &pem[i], e);
    }
    struct tls_client_config tls = {
        .ca = pem[CA], .cert = pem[CERT], .key = pem[KEY], .server_name = r->at.host};
    CLEANUP_FREE char *url =
        xasprintf("http%s://%s:%u", r->at.https ? "s" : "", IP4_TEXT(ip), r->at.port);
    struct http_client_config cfg = {.url = url,
                                     .host = r->host,
                                     .tls = &tls,
                                     .connect_ms = IDENTITY_DEADLINE_MS,
                                     .response_ms = IDENTITY_DEADLINE_MS,
                                     .max_body = REMOTE_MAX_ANSWER};
    struct http_client *http = NULL;
    result = result < 0 ? result : http_client_new(r->loop, &cfg, &http, e);
    for (size_t i = 0; i < N_FILES; i++) {
        secret_text_free(pem[i]);
    }
    if (result < 0) {
        return result;
    }
    client_unref(r->client);
    r->client = NEW(struct client);
    *r->client = (struct client){.refs = 2, .ip = ip, .http = http};
    memcpy(r->read, now, sizeof now);
    *ret = r->client;
    return 0;
}

int remote_new(struct loop *l, const struct remote_config *cfg, struct remote **ret, struct err *e)
{
    static const struct location none = {.host = (char *) "", .path = (char *) "/"};
    const char *const files[N_FILES] = {[CA] = cfg->ca, [CERT] = cfg->cert, [KEY] = cfg->key};
    int result = remote_check_url(cfg->url, cfg->https_only, e);
    if (result < 0) {
        return result;
    }
    struct remote *r = NEW(struct remote);
    r->loop = l;
    location_resolve(&none, cfg->url, &r->at, NULL);
    bool standard = r->at.port == (r->at.https ? 443 : 80);
    r->host = standard ? xstrdup(r->at.host) : xasprintf("%s:%u", r->at.host, r->at.port);
    for (size_t i = 0; i < N_FILES; i++) {
        r->files[i] = files[i] && *files[i] ? xstrdup(files[i]) : NULL;
    }
    /* Reads the files now, so that a wrong one is an error at start: the address is any. */
    struct client *c = NULL;
    result = client_get(r, 0, &c, e);
    client_unref(c);
    if (result < 0) {
        remote_free(r);
        return result;
    }
    *ret = r;
    return 0;
}

struct remote *remote_free(struct remote *r)
{
    if (r) {
        client_unref(r->client);
        location_done(&r->at);
        for (size_t i = 0; i < N_FILES; i++) {
            free(r->files[i]);
        }
        free(r->host);
        free(r);
    }
    return NULL;
}

/* ---- calls ---- */

static void call_free(struct remote_call *c)
{
    loop_lookup_cancel(c->lookup);
    if (c->call) {
        http_call_cancel(c->call);
    }
    client_unref(c->client);
    secret_text_free(c->headers);
    secret_text_free(c->body);
    secret_text_free(c->path);
    free(c->method);
    free(c->type);
    free(c);
}

static void answered(void *ctx, const struct http_result *result)
{
    struct remote_call *c = ctx;
    http_result_fn *fn = c->fn;
    void *fn_ctx = c->ctx;
    struct client *client =
        TAKE(c->client); /* It must outlive the callback, whose result it has. */
    c->call = NULL;
    call_free(c);
    fn(fn_ctx, result);
    client_unref(client);
}

static void fail(void *ctx)
{
    struct remote_call *c = ctx;
    struct err why = c->why;
    const struct http_result result = {
        .error = why.code, .error_text = why.text, .content_type = "", .location = "", .body = ""};
    answered(c, &result);
}

static void looked_up(void *ctx, uint32_t ip, const char *why)
{
    struct remote_call *c = ctx;
    c->lookup = NULL;
    if (why) {
        err_set(&c->why, -EHOSTUNREACH, "address of %s: %s", c->remote->at.host, why);
    } else if (client_get(c->remote, ip, &c->client, &c->why) == 0) {
        c->call = http_call_with(c->client->http, c->method, c->path, "application/json", c->type,
                                 c->headers, c->body, strlen(c->body), answered, c);
        return;
    }
    fail(c);
}

struct remote_call *remote_call(struct remote *r, const char *method, const char *query,
                                const char *headers, const char *content_type, const char *body,
                                http_result_fn *fn, void *ctx)
{
    struct remote_call *c = NEW(struct remote_call);
    c->remote = r;
    c->method = xstrdup(method);
    c->path = query ? xasprintf("%s%c%s", r->at.path, strchr(r->at.path, '?') ? '&' : '?', query)
                    : xstrdup(r->at.path);
    c->headers = xstrdup(headers ? headers : "");
    c->type = content_type ? xstrdup(content_type) : NULL;
    c->body = xstrdup(body ? body : "");
    c->fn = fn;
    c->ctx = ctx;
    c->lookup = loop_lookup_new(r->loop, r->at.host, looked_up, c);
    return c;
}

struct remote_call *remote_call_cancel(struct remote_call *c)
{
    if (c) {
        call_free(c);
    }
    return NULL;
}
