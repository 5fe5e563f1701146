/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/session.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/random.h"

#include <openssl/crypto.h>

static void erase(char **s)
{
    if (*s) {
        explicit_bzero(*s, strlen(*s));
        free(TAKE(*s));
    }
}

/* The text at 'key' of 'o', owned; NULL: there is none. */
static char *text_of(const struct json *o, const char *key)
{
    const char *s = json_get_string(json_get(o, key));
    return s ? xstrdup(s) : NULL;
}

static char *write_object(struct json *o)
{
    char *text = json_to_text(o);
    json_free(o);
    return text;
}

/* Parses a cookie's text of the type 'type'.  NULL with '*ret_code': it is another, or has ended. */
static struct json *read_object(const char *text, const char *type, int64_t now_s, int *ret_code)
{
    CLEANUP(json_free) struct json *o = NULL;
    int64_t end;
    *ret_code = -EINVAL;
    if (json_parse(text, strlen(text), &o, NULL) < 0 || !streq(json_get_text(o, "type"), type) ||
        json_get_int(json_get(o, "end"), &end) < 0) {
        return NULL;
    }
    *ret_code = end <= now_s ? -ESTALE : 0;
    return end <= now_s ? NULL : TAKE(o);
}

/* ---- sessions ---- */

void oauth_session_done(struct oauth_session *s)
{
    free(TAKE(s->user));
    free(TAKE(s->uid));
    erase(&s->csrf);
}

char *oauth_session_write(const struct oauth_session *s)
{
    struct json *o = json_object();
    json_set_string(o, "type", "session");
    json_set_string(o, "user", s->user);
    json_set_string(o, "uid", s->uid);
    json_set_string(o, "csrf", s->csrf);
    json_set_int(o, "end", s->end_s);
    return write_object(o);
}

int oauth_session_read(const char *text, int64_t now_s, struct oauth_session *ret)
{
    int r;
    CLEANUP(json_free) struct json *o = read_object(text, "session", now_s, &r);
    __attribute__((cleanup(oauth_session_donep))) struct oauth_session s = {
        .user = text_of(o, "user"), .uid = text_of(o, "uid"), .csrf = text_of(o, "csrf")};
    if (r < 0) {
        return r;
    }
    if (!s.user || !s.uid || !s.csrf || !*s.user || !*s.uid || !oauth_csrf_has_form(s.csrf)) {
        return -EINVAL;
    }
    s.end_s = json_get_int_or(json_get(o, "end"), 0);
    *ret = s;
    s = (struct oauth_session){0};
    return 0;
}

/* ---- errands ---- */

void oauth_errand_done(struct oauth_errand *s)
{
    free(TAKE(s->provider));
    erase(&s->state);
    erase(&s->nonce);
    erase(&s->verifier);
    free(TAKE(s->then));
}

char *oauth_errand_write(const struct oauth_errand *s)
{
    struct json *o = json_object();
    json_set_string(o, "type", "errand");
    json_set_string(o, "provider", s->provider);
    json_set_string(o, "state", s->state);
    json_set_string(o, "nonce", s->nonce);
    json_set_string(o, "verifier", s->verifier);
    json_set_string(o, "then", s->then);
    json_set_int(o, "end", s->end_s);
    return write_object(o);
}

int oauth_errand_read(const char *text, int64_t now_s, struct oauth_errand *ret)
{
    int r;
    CLEANUP(json_free) struct json *o = read_object(text, "errand", now_s, &r);
    __attribute__((cleanup(oauth_errand_donep))) struct oauth_errand s = {
        .provider = text_of(o, "provider"),
        .state = text_of(o, "state"),
        .nonce = text_of(o, "nonce"),
        .verifier = text_of(o, "verifier"),
        .then = text_of(o, "then")};
    if (r < 0) {
        return r;
    }
    if (!s.provider || !s.state || !s.nonce || !s.verifier || !s.then || !*s.state) {
        return -EINVAL;
    }
    s.end_s = json_get_int_or(json_get(o, "end"), 0);
    *ret = s;
    s = (struct oauth_errand){0};
    return 0;
}

/* ---- cookies and secrets ---- */

char *oauth_cookie_find(const char *header, const char *name)
{
    CLEANUP_FREE char *found = NULL;
    size_t n = strlen(name);
    for (const char *p = header ? header : ""; *p;) {
        p += strspn(p, "; \t");
        size_t size = strcspn(p, ";");
        if (size > n && strncmp(p, name, n) == 0 && p[n] == '=') {
            CLEANUP_FREE char *value = xstrndup(p + n + 1, size - n - 1);
            if (found && !streq(found, value)) {
                return NULL;
            }
            free(found);
            found = TAKE(value);
        }
        p += size;
    }
    return TAKE(found);
}

bool oauth_csrf_has_form(const char *s)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return strlen(s) == OAUTH_CSRF_SIZE && strspn(s, letters) == OAUTH_CSRF_SIZE;
}

void oauth_csrf_make(char ret[OAUTH_CSRF_SIZE + 1])
{
    uint8_t random[32];
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    random_bytes(random, sizeof random);
    base64url_encode(random, sizeof random, &b);
    memcpy(ret, b.data, OAUTH_CSRF_SIZE + 1);
    explicit_bzero(random, sizeof random);
}

bool oauth_secret_equal(const char *a, const char *b)
{
    return a && b && strlen(a) == strlen(b) && CRYPTO_memcmp(a, b, strlen(a)) == 0;
}
