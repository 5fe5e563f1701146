/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of browsers, and the cluster's keys that seal them.
 *
 * All masters share the keys by a Secret, so that a login may begin at one and end at another.
 * Each week the key that seals is replaced, and the former one still opens. */
#include "apiserver/oauth/oauth_priv.h"

#include "base/base64.h"
#include "base/log.h"
#include "base/random.h"
#include "base/timeutil.h"

LOG_MODULE("oauth");

#define KEY_SECRET "kube-system/oauth-session-keys"
#define KEY_NAMESPACE "kube-system"
#define KEY_NAME "oauth-session-keys"
#define KEY_MADE "oauth.tenet.io/key-made"
#define KEY_AGE_MS (INT64_C(7) * 24 * 3600 * 1000)

/* ---- keys ---- */

static bool add_key(struct seal_ring *r, const struct json *secret, const char *name)
{
    const char *text = json_path_string(secret, "data", name, NULL);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!text || base64_decode(text, strlen(text), &b) < 0 || b.size != SEAL_KEY_SIZE) {
        return false;
    }
    seal_ring_add(r, (const uint8_t *) b.data);
    explicit_bzero(b.data, b.size);
    return true;
}

static void key_stored(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    struct oauth_server *s = ctx;
    s->making_key = false;
    /* Another master may have made it first. */
    if (error < 0 && error != -EEXIST && error != -ESTALE) {
        log_limited(&limit, LOG_ERROR, "the key of sessions was not stored", "error=\"%s\"",
                    strerror(-error));
    }
}

/* Stores a new key, before which the present one ('old', NULL: none) becomes the previous. */
static void make_key(struct oauth_server *s, const struct json *old, const struct object *base)
{
    struct cache_kind *ck = objects_kind(s, "", "secrets");
    CLEANUP(json_free) struct json *obj = old ? json_clone(old) : objects_new(ck, KEY_NAME);
    uint8_t key[SEAL_KEY_SIZE];
    char now[TIME_TEXT_SIZE];
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const char *current = json_path_string(old, "data", "current", NULL);
    CLEANUP_FREE char *previous = current ? xstrdup(current) : NULL;
    random_bytes(key, sizeof key);
    base64_encode(key, sizeof key, &text);
    time_format_s(time_wall_ms(), now);
    struct json *meta = json_ensure_object(obj, "metadata");
    json_set_string(meta, "namespace", KEY_NAMESPACE);
    json_set_string(json_ensure_object(meta, "annotations"), KEY_MADE, now);
    json_set_string(obj, "type", "Opaque");
    struct json *data = json_ensure_object(obj, "data");
    json_set_string(data, "current", text.data);
    json_set_string(data, "previous", previous);
    s->making_key = true;
    objects_put(s, ck, KEY_SECRET, obj, base, &(struct store_terms){0}, key_stored, s);
    explicit_bzero(key, sizeof key);
    explicit_bzero(text.data, text.size);
}

static bool is_old(const struct json *secret)
{
    const char *made = json_path_string(secret, "metadata", "annotations", KEY_MADE, NULL);
    int64_t at;
    return made && time_parse(made, &at) == 0 && time_wall_ms() - at > KEY_AGE_MS;
}

bool session_keys(struct oauth_server *s)
{
    struct object *base;
    if (!s->ring_is_ours) {
        return true;
    }
    CLEANUP(json_free) struct json *secret = objects_find(s, "", "secrets", KEY_SECRET, &base);
    seal_ring_done(&s->ring);
    bool has = add_key(&s->ring, secret, "current");
    (void) add_key(&s->ring, secret, "previous");
    if (!s->making_key && !s->a->lost && (!has || is_old(secret))) {
        make_key(s, secret, base);
    }
    return has;
}

/* ---- sessions ---- */

bool session_read(struct oauth_request *f)
{
    struct oauth_server *s = f->s;
    const char *cookies = http_header(f->x, "cookie");
    CLEANUP_FREE char *sealed = oauth_cookie_find(cookies, s->session_name);
    CLEANUP_FREE char *csrf = oauth_cookie_find(cookies, "csrf");
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    __attribute__((cleanup(oauth_session_donep))) struct oauth_session found = {0};
    if (!sealed || !session_keys(s) || seal_open(&s->ring, s->session_name, sealed, &text) < 0 ||
        oauth_session_read(text.data, time_wall_ms() / 1000, &found) < 0 ||
        !oauth_secret_equal(found.csrf, csrf)) {
        return false;
    }
    /* A user who was deleted meanwhile, or made anew, has no session. */
    CLEANUP(json_free) struct json *user = objects_find(s, USER_GROUP, "users", found.user, NULL);
    if (!user || !streq_null(json_path_string(user, "metadata", "uid", NULL), found.uid) ||
        json_path(user, "metadata", "deletionTimestamp", NULL)) {
        return false;
    }
    f->user = TAKE(found.user);
    f->uid = TAKE(found.uid);
    return true;
}

void session_begin(struct oauth_request *f)
{
    struct oauth_server *s = f->s;
    web_csrf(f);
    struct oauth_session made = {f->user, f->uid, f->csrf,
                                 time_wall_ms() / 1000 + (int64_t) s->session_s};
    CLEANUP_FREE char *text = oauth_session_write(&made);
    CLEANUP_STRBUF struct strbuf sealed = STRBUF_INIT;
    if (session_keys(s) && seal_text(&s->ring, s->session_name, text, &sealed) == 0) {
        web_set_cookie(f, s->session_name, sealed.data, "/", -1);
    }
    explicit_bzero(text, strlen(text));
}

void session_end(struct oauth_request *f)
{
    web_set_cookie(f, f->s->session_name, "", "/", 0);
}
