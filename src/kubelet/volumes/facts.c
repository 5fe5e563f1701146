/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/facts.h"

#include "base/backoff.h"
#include "base/mem.h"
#include "kubelet/csi/parts.h"

#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 10000

struct facts {
    struct loop *loop;
    struct api_client *client;
    char *ns, *node_name;
    struct json *source;
    bool in_pv;
    need_fn *need;
    struct need next;
    struct json *objects;
    bool complete;
    char *failure;
    struct api_call *call;
    struct loop_timer *timer;
    struct backoff backoff;
    loop_fn *changed;
    void *ctx;
};

/* ---- needs: pure ---- */

static bool need_object(const struct json *facts, const char *key, const char *api_version,
                        const char *plural, const char *ns, const char *name, struct need *ret)
{
    if (json_get(facts, key)) {
        return false;
    }
    *ret = (struct need){.key = key, .path = api_path(api_version, plural, ns, name, NULL)};
    return true;
}

bool glusterfs_need(const struct facts_of *of, const struct json *facts, struct need *ret)
{
    const char *ns = of->in_pv ? json_get_text(of->source, "endpointsNamespace") : "";
    return need_object(facts, "endpoints", "v1", "endpoints", *ns ? ns : of->ns,
                       json_get_text(of->source, "endpoints"), ret);
}

/* A secret that the source names by 'member'; one of a pod's volume is in the pod's namespace. */
static bool need_secret(const struct facts_of *of, const struct json *facts, const char *member,
                        const char *key, struct need *ret)
{
    const struct json *ref = json_get(of->source, member);
    const char *name = json_get_text(ref, "name");
    const char *ns = of->in_pv ? json_get_text(ref, "namespace") : "";
    return *name && need_object(facts, key, "v1", "secrets", *ns ? ns : of->ns, name, ret);
}

bool secret_need(const struct facts_of *of, const struct json *facts, struct need *ret)
{
    return need_secret(of, facts, "secretRef", "secret", ret);
}

bool csi_need(const struct facts_of *of, const struct json *facts, struct need *ret)
{
    const char *driver = json_get_text(of->source, "driver");
    if (need_object(facts, "driver", "storage.k8s.io/v1", "csidrivers", NULL, driver, ret)) {
        ret->optional = true;
        return true;
    }
    bool attach = json_get_bool(json_path(facts, "driver", "spec", "attachRequired", NULL), true);
    if (of->in_pv && attach) {
        CLEANUP_FREE char *name =
            csi_attachment_name(json_get_text(of->source, "volumeHandle"), driver, of->node_name);
        if (need_object(facts, "attachment", "storage.k8s.io/v1", "volumeattachments", NULL, name,
                        ret)) {
            ret->is_attachment = true;
            return true;
        }
    }
    return need_secret(of, facts, "nodeStageSecretRef", "stageSecret", ret) ||
           need_secret(of, facts, "nodePublishSecretRef", "publishSecret", ret);
}

/* ---- requests ---- */

static void set_failure(struct facts *f, const char *text)
{
    bool news = !streq_null(f->failure, text);
    char *failure = text ? xstrdup(text) : NULL;
    free(f->failure);
    f->failure = failure;
    uint64_t now = loop_now_ms(f->loop);
    loop_timer_arm(f->timer, backoff_fail(&f->backoff, now, hash_string(f->node_name)));
    if (news) {
        f->changed(f->ctx);
    }
}

static void request(void *ctx);

/* Why the VolumeAttachment cannot be used yet (owned); NULL: it can. */
static char *fault_of_attachment(const struct json *obj)
{
    const struct json *status = json_get(obj, "status");
    const char *error = json_path_string(status, "attachError", "message", NULL);
    if (json_get_bool(json_get(status, "attached"), false)) {
        return NULL;
    }
    return error && *error ? xasprintf("attaching the volume failed: %s", error)
                           : xstrdup("the volume is not attached to the node yet");
}

static void answered(void *ctx, int error, const char *text, struct json *obj)
{
    struct facts *f = ctx;
    f->call = NULL;
    if (error < 0 && !(error == -ENOENT && f->next.optional)) {
        CLEANUP_FREE char *failure = error == -ENOENT && f->next.is_attachment
                                         ? xstrdup("the volume is not attached to the node yet")
                                         : xstrdup(text);
        set_failure(f, failure);
        return;
    }
    CLEANUP_FREE char *fault = f->next.is_attachment ? fault_of_attachment(obj) : NULL;
    if (fault) {
        set_failure(f, fault);
        return;
    }
    json_set(f->objects, f->next.key, error < 0 ? json_null() : json_clone(obj));
    request(f);
}

/* Asks for what is needed next. */
static void request(void *ctx)
{
    struct facts *f = ctx;
    struct facts_of of = {
        .ns = f->ns, .node_name = f->node_name, .source = f->source, .in_pv = f->in_pv};
    free(f->next.path);
    f->next = (struct need){0};
    if (f->need(&of, f->objects, &f->next)) {
        f->call = api_request(f->client, "GET", f->next.path, NULL, NULL, answered, f);
        return;
    }
    f->complete = true;
    free(f->failure);
    f->failure = NULL;
    f->changed(f->ctx);
}

void facts_refresh(struct facts *f)
{
    if (f->complete) {
        f->complete = false;
        json_free(f->objects);
        f->objects = json_object();
        loop_timer_arm(f->timer, 0);
    }
}

struct facts *facts_new(struct loop *l, struct api_client *c, const struct facts_of *of,
                        need_fn *need, loop_fn *changed, void *ctx)
{
    struct facts *f = NEW(struct facts);
    *f = (struct facts){.loop = l,
                        .client = c,
                        .ns = xstrdup(of->ns),
                        .node_name = xstrdup(of->node_name),
                        .source = json_clone(of->source),
                        .in_pv = of->in_pv,
                        .need = need,
                        .objects = json_object(),
                        .backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS),
                        .changed = changed,
                        .ctx = ctx};
    f->timer = loop_timer_new(l, request, f);
    loop_timer_arm(f->timer, 0);
    return f;
}

struct facts *facts_free(struct facts *f)
{
    if (f) {
        if (f->call) {
            api_call_cancel(f->call);
        }
        loop_timer_free(f->timer);
        json_free(f->source);
        json_free(f->objects);
        free(f->next.path);
        free(f->ns);
        free(f->node_name);
        free(f->failure);
        free(f);
    }
    return NULL;
}

const struct json *facts_get(const struct facts *f)
{
    return f->complete ? f->objects : NULL;
}

const char *facts_failure(const struct facts *f)
{
    return f->failure;
}
