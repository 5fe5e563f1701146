/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/token.h"

#include "base/backoff.h"
#include "base/mem.h"

#define DAY_S 86400
#define JITTER_MS 10000
#define LEAST_MS 1000

struct token {
    struct loop *loop;
    struct api_client *client;
    char *path;
    struct json *body;
    int64_t seconds;
    char *text, *failure;
    struct api_call *call;
    struct loop_timer *timer;
    struct backoff backoff;
    uint32_t seed; /* Spreads the renewals of many pods. */
    loop_fn *changed;
    void *ctx;
};

uint64_t token_renewal_ms(int64_t seconds, uint32_t random)
{
    uint64_t life = (uint64_t) MAX(seconds, 1) * 1000;
    uint64_t due = MIN(life * 4 / 5, (uint64_t) DAY_S * 1000), early = random % JITTER_MS;
    return due > early + LEAST_MS ? due - early : LEAST_MS;
}

static void replace(char **text, const char *by)
{
    free(*text);
    *text = by ? xstrdup(by) : NULL;
}

static void answered(void *ctx, int error, const char *text, struct json *obj)
{
    struct token *t = ctx;
    const char *token = json_path_string(obj, "status", "token", NULL);
    uint64_t now = loop_now_ms(t->loop), delay;
    t->call = NULL;
    t->seed = t->seed * 1664525 + 1013904223;
    if (error == 0 && token && *token) {
        int64_t life =
            json_get_int_or(json_path(obj, "spec", "expirationSeconds", NULL), t->seconds);
        replace(&t->text, token);
        replace(&t->failure, NULL);
        backoff_reset(&t->backoff);
        delay = token_renewal_ms(life, t->seed >> 8);
    } else {
        CLEANUP_FREE char *failure =
            xasprintf("failed to fetch token: %s", text ? text : "the answer has no token");
        replace(&t->failure, failure);
        delay = backoff_fail(&t->backoff, now, t->seed);
    }
    loop_timer_arm(t->timer, delay);
    t->changed(t->ctx);
}

static void request(void *ctx)
{
    struct token *t = ctx;
    t->call = api_request(t->client, "POST", t->path, NULL, t->body, answered, t);
}

struct token *token_new(struct loop *l, struct api_client *c, const struct json *pod,
                        const struct pod_token_source *source, loop_fn *changed, void *ctx)
{
    const struct json *meta = json_get(pod, "metadata");
    const char *account = json_get_text(json_get(pod, "spec"), "serviceAccountName");
    const char *uid = json_get_text(meta, "uid");
    struct token *t = NEW(struct token);
    *t = (struct token){.loop = l,
                        .client = c,
                        .seconds = source->seconds,
                        .backoff = BACKOFF_INIT(1000, 60000),
                        .seed = hash_string(uid),
                        .changed = changed,
                        .ctx = ctx};
    t->path = api_path("v1", "serviceaccounts", json_get_text(meta, "namespace"),
                       *account ? account : "default", "token");
    t->body = json_object();
    json_set_string(t->body, "apiVersion", "authentication.k8s.io/v1");
    json_set_string(t->body, "kind", "TokenRequest");
    struct json *spec = json_ensure_object(t->body, "spec");
    struct json *ref = json_ensure_object(spec, "boundObjectRef");
    struct json *audiences = json_ensure_array(spec, "audiences");
    json_set_int(spec, "expirationSeconds", source->seconds);
    if (*source->audience) {
        json_append(audiences, json_string(source->audience));
    }
    json_set_string(ref, "apiVersion", "v1");
    json_set_string(ref, "kind", "Pod");
    json_set_string(ref, "name", json_get_text(meta, "name"));
    json_set_string(ref, "uid", uid);
    t->timer = loop_timer_new(l, request, t);
    loop_timer_arm(t->timer, 0);
    return t;
}

struct token *token_free(struct token *t)
{
    if (t) {
        if (t->call) {
            api_call_cancel(t->call);
        }
        loop_timer_free(t->timer);
        json_free(t->body);
        free(t->path);
        free(t->text);
        free(t->failure);
        free(t);
    }
    return NULL;
}

const char *token_text(const struct token *t)
{
    return t->text;
}

const char *token_failure(const struct token *t)
{
    return t->failure;
}
