/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/claim.h"

#include "base/backoff.h"
#include "base/mem.h"

struct claim {
    struct loop *loop;
    struct api_client *client;
    char *ns, *name, *owner_uid;
    char *claim_uid;     /* As the claim was read last. */
    bool claim_is_block; /* The same. */
    struct json *volume; /* The spec; NULL: not bound. */
    char *failure;
    struct api_call *call;
    struct loop_timer *timer;
    struct backoff backoff;
    loop_fn *changed;
    void *ctx;
};

/* Notes a failure, to be tried again. */
static void fail(struct claim *c, const char *text)
{
    char *failure = xasprintf("error processing PVC %s/%s: %s", c->ns, c->name, text);
    bool news = !streq_null(c->failure, failure);
    free(c->failure);
    c->failure = failure;
    uint64_t now = loop_now_ms(c->loop);
    loop_timer_arm(c->timer, backoff_fail(&c->backoff, now, hash_string(c->name)));
    if (news) {
        c->changed(c->ctx);
    }
}

static bool is_block(const struct json *obj)
{
    return streq(json_get_text(json_get(obj, "spec"), "volumeMode"), "Block");
}

static void got_volume(void *ctx, int error, const char *text, struct json *obj)
{
    struct claim *c = ctx;
    const char *uid = json_path_string(obj, "spec", "claimRef", "uid", NULL);
    c->call = NULL;
    if (error < 0) {
        fail(c, text);
    } else if (!streq_null(uid, c->claim_uid)) {
        fail(c, "the volume that it names is bound to another claim");
    } else if (is_block(obj) != c->claim_is_block) {
        fail(c, "its volume has another volumeMode");
    } else {
        c->volume = json_clone(json_get(obj, "spec"));
        free(c->failure);
        c->failure = NULL;
        c->changed(c->ctx);
    }
}

/* Why the claim cannot be used; NULL: it can. */
static const char *fault_of(const struct claim *c, const struct json *obj)
{
    const struct json *owner;
    bool owned = !c->owner_uid;
    JSON_FOREACH (owner, json_path(obj, "metadata", "ownerReferences", NULL)) {
        owned |= json_get_bool(json_get(owner, "controller"), false) &&
                 streq(json_get_text(owner, "uid"), c->owner_uid ? c->owner_uid : "");
    }
    if (!owned) {
        return "it was not created for this pod, which does not own it";
    }
    if (!streq(json_get_text(json_get(obj, "status"), "phase"), "Bound") ||
        !*json_get_text(json_get(obj, "spec"), "volumeName")) {
        return "PVC is not bound";
    }
    return NULL;
}

static void got_claim(void *ctx, int error, const char *text, struct json *obj)
{
    struct claim *c = ctx;
    c->call = NULL;
    const char *fault = error < 0 ? text : fault_of(c, obj);
    if (fault) {
        fail(c, fault);
        return;
    }
    free(c->claim_uid);
    c->claim_uid = xstrdup(json_get_text(json_get(obj, "metadata"), "uid"));
    c->claim_is_block = is_block(obj);
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumes", NULL,
                                       json_get_text(json_get(obj, "spec"), "volumeName"), NULL);
    c->call = api_request(c->client, "GET", path, NULL, NULL, got_volume, c);
}

static void request(void *ctx)
{
    struct claim *c = ctx;
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumeclaims", c->ns, c->name, NULL);
    c->call = api_request(c->client, "GET", path, NULL, NULL, got_claim, c);
}

struct claim *claim_new(struct loop *l, struct api_client *client, const char *ns, const char *name,
                        const char *owner_uid, loop_fn *changed, void *ctx)
{
    struct claim *c = NEW(struct claim);
    *c = (struct claim){.loop = l,
                        .client = client,
                        .ns = xstrdup(ns),
                        .name = xstrdup(name),
                        .owner_uid = owner_uid ? xstrdup(owner_uid) : NULL,
                        .backoff = BACKOFF_INIT(1000, 10000),
                        .changed = changed,
                        .ctx = ctx};
    c->timer = loop_timer_new(l, request, c);
    loop_timer_arm(c->timer, 0);
    return c;
}

struct claim *claim_free(struct claim *c)
{
    if (c) {
        if (c->call) {
            api_call_cancel(c->call);
        }
        loop_timer_free(c->timer);
        json_free(c->volume);
        free(c->ns);
        free(c->name);
        free(c->owner_uid);
        free(c->claim_uid);
        free(c->failure);
        free(c);
    }
    return NULL;
}

const struct json *claim_volume(const struct claim *c)
{
    return c->volume;
}

const char *claim_failure(const struct claim *c)
{
    return c->failure;
}
