/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/server/access.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "kubelet/server/server.h"

#include <strings.h>

#define ALLOWED_MS 300000
#define REFUSED_MS 30000
#define TOKEN_MS 120000
#define MAX_KEPT 1000

/* An answer of the API server. */
struct answer {
    uint64_t until_ms;
    bool allowed;
    struct json *user; /* Of a token: the user's "username", "groups", ...; NULL. */
};

struct access {
    struct loop *loop;
    struct api_client *api;
    char *node, *master;
    bool always_allow;
    struct smap tokens, reviews; /* To struct answer. */
    struct list checks;
};

struct access_check {
    struct access *access;
    struct list node;
    char *verb, *part, *token;
    char *other;       /* The right that is enough as well; NULL: there is none. */
    bool second;       /* 'part' was refused, 'other' is asked for. */
    struct json *user; /* {"user", "groups", "uid", "extra"} of a SubjectAccessReview's spec. */
    bool is_cert;
    char *key; /* Of the review. */
    struct api_call *call;
    struct loop_task task;
    int error;
    char *text;
    access_done_fn *done;
    void *ctx;
};

static void answer_free(void *p)
{
    struct answer *a = p;
    json_free(a->user);
    free(a);
}

struct access *access_new(struct loop *l, struct api_client *api, const char *node,
                          const char *master, bool always_allow)
{
    struct access *a = NEW(struct access);
    a->loop = l;
    a->api = api;
    a->node = xstrdup(node);
    a->master = xstrdup(master ? master : KUBELET_MASTER_USER);
    a->always_allow = always_allow;
    smap_init(&a->tokens, answer_free);
    smap_init(&a->reviews, answer_free);
    list_init(&a->checks);
    return a;
}

static void check_free(struct access_check *c)
{
    if (c->call) {
        api_call_cancel(c->call);
    }
    list_remove(&c->node);
    loop_task_cancel(&c->task);
    json_free(c->user);
    free(c->verb);
    free(c->part);
    free(c->other);
    free(c->token);
    free(c->key);
    free(c->text);
    free(c);
}

void access_cancel(struct access_check *c)
{
    check_free(c);
}

struct access *access_free(struct access *a)
{
    if (a) {
        while (!list_is_empty(&a->checks)) {
            check_free(CONTAINER_OF(a->checks.next, struct access_check, node));
        }
        smap_done(&a->tokens);
        smap_done(&a->reviews);
        free(a->node);
        free(a->master);
        free(a);
    }
    return NULL;
}

/* ---- kept answers ---- */

static const struct answer *find_kept(struct access *a, struct smap *m, const char *key)
{
    const struct answer *found = smap_get(m, key);
    return found && found->until_ms > loop_now_ms(a->loop) ? found : NULL;
}

static void keep(struct access *a, struct smap *m, const char *key, bool allowed, uint64_t ms,
                 struct json *user)
{
    struct answer *n = NEW(struct answer);
    *n = (struct answer){.until_ms = loop_now_ms(a->loop) + ms, .allowed = allowed, .user = user};
    if (smap_size(m) >= MAX_KEPT) {
        smap_clear(m);
    }
    smap_set(m, key, n);
}

/* ---- the result ---- */

static void finish(struct access_check *c, int error, const char *text)
{
    c->error = error;
    free(c->text);
    c->text = xstrdup(text);
    loop_task_queue(&c->task);
}

static void tell(void *ctx)
{
    struct access_check *c = ctx;
    access_done_fn *done = c->done;
    void *done_ctx = c->ctx;
    int error = c->error;
    CLEANUP_FREE char *text = TAKE(c->text);
    check_free(c);
    done(done_ctx, error, text);
}

static void refuse(struct access_check *c)
{
    const char *name = json_get_text(c->user, "user");
    CLEANUP_FREE char *text =
        c->part ? xasprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource=%s)", name,
                            c->verb, c->part)
                : xasprintf("Forbidden (user=%s): only the API server begins processes in "
                            "containers",
                            name);
    finish(c, -EACCES, text);
}

/* ---- may the user? ---- */

static void authorize(struct access_check *c);

/* The right is not there; another one may be. */
static void review_refused(struct access_check *c)
{
    if (c->other && !c->second) {
        c->second = true;
        authorize(c);
    } else {
        refuse(c);
    }
}

static void reviewed(void *ctx, int error, const char *text, struct json *obj)
{
    struct access_check *c = ctx;
    c->call = NULL;
    if (error < 0) {
        CLEANUP_FREE char *why = xasprintf("the API server cannot be asked: %s", text);
        finish(c, -EAGAIN, why);
        return;
    }
    bool allowed = json_get_bool(json_path(obj, "status", "allowed", NULL), false);
    keep(c->access, &c->access->reviews, c->key, allowed, allowed ? ALLOWED_MS : REFUSED_MS, NULL);
    if (allowed) {
        finish(c, 0, "");
    } else {
        review_refused(c);
    }
}

static bool is_master(const struct access_check *c)
{
    const struct json *group;
    bool member = false;
    JSON_FOREACH (group, json_get(c->user, "groups")) {
        member |= streq_null(json_get_string(group), KUBELET_MASTER_GROUP);
    }
    return c->is_cert && member && streq(json_get_text(c->user, "user"), c->access->master);
}

/* The user is known. */
static void authorize(struct access_check *c)
{
    struct access *a = c->access;
    if (!c->part) {
        if (is_master(c)) {
            finish(c, 0, "");
        } else {
            refuse(c);
        }
        return;
    }
    if (a->always_allow) {
        finish(c, 0, "");
        return;
    }
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "apiVersion", "authorization.k8s.io/v1");
    json_set_string(o, "kind", "SubjectAccessReview");
    struct json *spec = json_set(o, "spec", json_clone(c->user));
    struct json *r = json_ensure_object(spec, "resourceAttributes");
    json_set_string(r, "version", "v1");
    json_set_string(r, "resource", "nodes");
    json_set_string(r, "subresource", c->second ? c->other : c->part);
    json_set_string(r, "name", a->node);
    json_set_string(r, "verb", c->verb);
    free(c->key);
    c->key = json_to_text(spec);
    const struct answer *kept = find_kept(a, &a->reviews, c->key);
    if (kept && kept->allowed) {
        finish(c, 0, "");
    } else if (kept) {
        review_refused(c);
    } else {
        c->call = api_request(a->api, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                              NULL, o, reviewed, c);
    }
}

/* ---- who is it? ---- */

/* The user of a TokenReview's status in the form of a SubjectAccessReview. */
static struct json *user_of(const struct json *status)
{
    static const char *const keys[] = {"groups", "uid", "extra"};
    const struct json *u = json_get(status, "user");
    struct json *o = json_object();
    json_set_string(o, "user", json_get_text(u, "username"));
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const struct json *v = json_get(u, keys[i]);
        if (v) {
            json_set(o, keys[i], json_clone(v));
        }
    }
    return o;
}

static void token_reviewed(void *ctx, int error, const char *text, struct json *obj)
{
    struct access_check *c = ctx;
    struct access *a = c->access;
    const struct json *status = json_get(obj, "status");
    c->call = NULL;
    if (error < 0) {
        CLEANUP_FREE char *why = xasprintf("the API server cannot be asked: %s", text);
        finish(c, -EAGAIN, why);
    } else if (!json_get_bool(json_get(status, "authenticated"), false)) {
        finish(c, -EPERM, "Unauthorized");
    } else {
        c->user = user_of(status);
        keep(a, &a->tokens, c->token, true, TOKEN_MS, json_clone(c->user));
        authorize(c);
    }
}

static void review_token(struct access_check *c)
{
    struct access *a = c->access;
    const struct answer *kept = find_kept(a, &a->tokens, c->token);
    if (kept) {
        c->user = json_clone(kept->user);
        authorize(c);
        return;
    }
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "apiVersion", "authentication.k8s.io/v1");
    json_set_string(o, "kind", "TokenReview");
    json_set_string(json_ensure_object(o, "spec"), "token", c->token);
    c->call = api_request(a->api, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", NULL, o,
                          token_reviewed, c);
}

static struct json *user_of_cert(const struct tls_identity *id)
{
    struct json *o = json_object(), *groups = json_ensure_array(o, "groups");
    json_set_string(o, "user", id->cn);
    for (size_t i = 0; i < id->n_o; i++) {
        json_append(groups, json_string(id->o[i]));
    }
    json_append(groups, json_string("system:authenticated"));
    return o;
}

struct access_check *access_begin(struct access *a, const struct http_exchange *x, const char *verb,
                                  const char *part, const char *other, access_done_fn *done,
                                  void *ctx)
{
    static const char scheme[] = "Bearer ";
    struct access_check *c = NEW(struct access_check);
    const struct tls_identity *id = http_peer_cert(x);
    const char *header = http_header(x, "authorization");
    c->access = a;
    c->verb = xstrdup(verb);
    c->part = part ? xstrdup(part) : NULL;
    c->other = other ? xstrdup(other) : NULL;
    c->done = done;
    c->ctx = ctx;
    loop_task_init(&c->task, a->loop, tell, c);
    list_push_back(&a->checks, &c->node);
    if (id && *id->cn) {
        c->is_cert = true;
        c->user = user_of_cert(id);
        authorize(c);
    } else if (!id && header && strncasecmp(header, scheme, sizeof scheme - 1) == 0 &&
               header[sizeof scheme - 1]) {
        c->token = xstrdup(header + sizeof scheme - 1);
        review_token(c);
    } else {
        finish(c, -EPERM, "Unauthorized");
    }
    return c;
}
