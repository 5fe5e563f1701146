/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the OAuth server: headers, cookies, pages; and where a form comes from. */
#include "apiserver/oauth/oauth_priv.h"

#include "apiserver/access/security.h"

#include <inttypes.h>

#define PAGE_BYTES_MAX ((size_t) 2 << 20)
#define CSRF_COOKIE "csrf"

void web_end(struct oauth_request *f)
{
    list_remove(&f->node);
    oauth_params_done(&f->params);
    audit_event_free(f->audit);
    attributes_done(&f->attributes);
    free(f->user);
    free(f->uid);
    free(f->username);
    if (f->password) {
        explicit_bzero(f->password, strlen(f->password));
        free(f->password);
    }
    if (f->attempt) {
        identity_attempt_cancel(f->attempt);
    }
    loop_timer_free(f->timer);
    identity_done(&f->id);
    oauth_client_done(&f->client);
    oauth_authorization_done(&f->auth);
    oauth_exchange_done(&f->exchange);
    explicit_bzero(f->token, sizeof f->token);
    free(f->scope);
    free(f->then);
    free(f->provider_name);
    free(f);
}

/* ---- headers and cookies ---- */

void web_headers(struct oauth_request *f, const char *origin)
{
    struct http_exchange *x = f->x;
    CLEANUP_FREE char *policy =
        xasprintf("default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
                  "form-action 'self'%s%s; frame-ancestors 'none'",
                  origin ? " " : "", origin ? origin : "");
    http_set_header(x, "Audit-Id", f->audit_id);
    http_set_header(x, "Cache-Control", "no-cache, no-store, max-age=0, must-revalidate");
    http_set_header(x, "Pragma", "no-cache");
    http_set_header(x, "Expires", "Fri, 01 Jan 1990 00:00:00 GMT");
    http_set_header(x, "Referrer-Policy", "strict-origin-when-cross-origin");
    http_set_header(x, "X-Frame-Options", "DENY");
    http_set_header(x, "X-Content-Type-Options", "nosniff");
    http_set_header(x, "X-DNS-Prefetch-Control", "off");
    http_set_header(x, "Content-Security-Policy", policy);
}

void web_set_cookie(struct oauth_request *f, const char *name, const char *value, const char *path,
                    int64_t max_age_s)
{
    CLEANUP_FREE char *age =
        max_age_s >= 0 ? xasprintf("; Max-Age=%" PRId64, max_age_s) : xstrdup("");
    CLEANUP_FREE char *text =
        xasprintf("%s=%s; Path=%s%s; HttpOnly; Secure; SameSite=Lax", name, value, path, age);
    http_set_header(f->x, "Set-Cookie", text);
}

void web_csrf(struct oauth_request *f)
{
    if (*f->csrf) {
        return;
    }
    CLEANUP_FREE char *has = oauth_cookie_find(http_header(f->x, "cookie"), CSRF_COOKIE);
    if (has && oauth_csrf_has_form(has)) {
        memcpy(f->csrf, has, sizeof f->csrf);
        return;
    }
    oauth_csrf_make(f->csrf);
    web_set_cookie(f, CSRF_COOKIE, f->csrf, "/", -1);
}

char *web_address(const struct oauth_request *f)
{
    const char *peer = http_peer(f->x), *colon = strrchr(peer, ':');
    return xstrndup(peer, colon ? (size_t) (colon - peer) : strlen(peer));
}

bool web_is_own_form(struct oauth_request *f)
{
    const char *origin = http_header(f->x, "origin"), *site = http_header(f->x, "sec-fetch-site");
    CLEANUP_FREE char *cookie = oauth_cookie_find(http_header(f->x, "cookie"), CSRF_COOKIE);
    const char *host = http_header(f->x, "host");
    CLEANUP_FREE char *own = xasprintf("https://%s", host ? host : "");
    if (origin && !streq(origin, f->s->issuer) && !streq(origin, own)) {
        return false;
    }
    if (site && !streq(site, "same-origin") && !streq(site, "none")) {
        return false;
    }
    return cookie && oauth_csrf_has_form(cookie) &&
           oauth_secret_equal(cookie, oauth_param(&f->params, "csrf"));
}

/* ---- answers ---- */

static void respond(struct oauth_request *f, int status, const char *type, const void *body,
                    size_t size)
{
    if (f->audit) {
        /* Neither the request's body nor the answer is logged: both have secrets. */
        audit_stage(f->audit, NULL, AUDIT_COMPLETE, status, NULL, 0);
    }
    http_respond(f->x, status, type, body, size);
    web_end(f);
}

void web_redirect(struct oauth_request *f, const char *url)
{
    web_headers(f, NULL);
    http_set_header(f->x, "Location", url);
    respond(f, 302, "text/plain; charset=utf-8", "", 0);
}

void web_text(struct oauth_request *f, int status, const char *text)
{
    web_headers(f, NULL);
    respond(f, status, "text/plain; charset=utf-8", text, strlen(text));
}

void web_json(struct oauth_request *f, int status, const struct strbuf *body)
{
    web_headers(f, NULL);
    respond(f, status, "application/json", strbuf_cstr(body), body->size);
}

void web_page(struct oauth_request *f, int status, enum page p, const struct json *data,
              const char *origin)
{
    struct strbuf b = STRBUF_INIT_MAX(PAGE_BYTES_MAX);
    template_write(f->s->pages[p], data, &b);
    web_headers(f, origin);
    respond(f, status, "text/html; charset=utf-8", strbuf_cstr(&b), b.size);
    if (b.data) {
        explicit_bzero(b.data, b.size); /* The page may show a token. */
    }
    strbuf_done(&b);
}

void web_error(struct oauth_request *f, int status, const char *code)
{
    CLEANUP(json_free) struct json *data = json_object();
    json_set_string(data, "ErrorCode", code);
    json_set_string(data, "Error", page_error_text(code));
    web_page(f, status, PAGE_ERROR, data, NULL);
}

struct json *web_fields(const char *const (*pairs)[3])
{
    struct json *data = json_object();
    struct json *names = json_ensure_object(data, "Names");
    struct json *values = json_ensure_object(data, "Values");
    for (; (*pairs)[0]; pairs++) {
        json_set_string(names, (*pairs)[0], (*pairs)[1]);
        json_set_string(values, (*pairs)[0], (*pairs)[2]);
    }
    return data;
}
