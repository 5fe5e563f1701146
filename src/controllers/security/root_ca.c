/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/root_ca.h"

#include "base/mem.h"
#include "controller/obj.h"
#include "controllers/security/default_roles.h"

#define ROOT "kube-root-ca.crt"
#define SYSTEM_NAMESPACE "kube-system"
#define DESCRIPTION                                                                           \
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal " \
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is " \
    "guaranteed across distributions of Kubernetes clusters."

/* Keys of the queue: NAMESPACE/NAME of the ConfigMaps. */
struct root_ca {
    struct root_ca_config cfg;
    struct workqueue *queue;
    struct informer *namespaces, *roots, *clients;
};

/* What a ConfigMap has; 'ca' NULL: it is not written. */
struct content {
    const char *key, *ca, *description;
    bool alone; /* Other keys are removed. */
};

static struct content content_of(const struct root_ca *c, const char *name)
{
    return streq(name, ROOT)
               ? (struct content){"ca.crt", c->cfg.ca, DESCRIPTION, .alone = true}
               : (struct content){"client-ca-file", c->cfg.client_ca, NULL, .alone = false};
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    /* The namespace may be in deletion: then nothing remains to be done. */
    if (error < 0 && error != -EEXIST && error != -ENOENT && error != -EACCES) {
        work_retry(w, error, "write the ConfigMap of an authority", text);
    } else {
        work_done(w);
    }
}

static size_t size_without_end(const char *pem)
{
    size_t n = strlen(pem);
    while (n && strchr(" \r\n", pem[n - 1])) {
        n--;
    }
    return n;
}

/* The kube-controller-manager may write the same certificate with another end of line; then both
 * leave it as it is. */
static bool is_current(const struct json *map, const struct content *c)
{
    const struct json *data = json_get(map, "data");
    const char *has = json_path_string(data, c->key, NULL);
    size_t n = size_without_end(c->ca);
    return has && (!c->alone || json_count(data) == 1) && size_without_end(has) == n &&
           !strncmp(has, c->ca, n);
}

static struct json *desired(const struct json *old, const struct content *c, const char *ns,
                            const char *name)
{
    struct json *o = old ? json_clone(old) : obj_new("v1", "ConfigMap", ns, name);
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "kind", "ConfigMap");
    if (c->description) {
        json_set_string(json_ensure_object(json_get(o, "metadata"), "annotations"),
                        "kubernetes.io/description", c->description);
    }
    if (c->alone) {
        json_set(o, "data", json_object());
    }
    json_set_string(json_ensure_object(o, "data"), c->key, c->ca);
    return o;
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct root_ca *c = ctx;
    const char *name = strchr(key, '/') + 1;
    CLEANUP_FREE char *ns = xstrndup(key, (size_t) (name - key - 1));
    const struct content content = content_of(c, name);
    const struct json *namespace = informer_get(c->namespaces, ns);
    const struct json *old = informer_get(streq(name, ROOT) ? c->roots : c->clients, key);
    if (!content.ca || !namespace || obj_is_terminating(namespace) ||
        (old && is_current(old, &content))) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *o = desired(old, &content, ns, name);
    CLEANUP_FREE char *path = api_path("v1", "configmaps", ns, old ? name : NULL, NULL);
    work_request(w, old ? "PUT" : "POST", path, o, written);
}

static void namespace_changed(void *ctx, const char *key, const struct json *old,
                              const struct json *obj)
{
    struct root_ca *c = ctx;
    CLEANUP_FREE char *root = xasprintf("%s/" ROOT, key);
    workqueue_add(c->queue, root);
    if (streq(key, SYSTEM_NAMESPACE)) {
        workqueue_add(c->queue, SYSTEM_NAMESPACE "/" AUTHENTICATION_CONFIG);
    }
}

static void root_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct root_ca *c = ctx;
    workqueue_add(c->queue, key);
}

static void root_deleted(void *ctx, const char *key, const struct json *obj)
{
    root_changed(ctx, key, NULL, obj);
}

/* The name may be used in any namespace; it means something in one. */
static void clients_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    if (streq(obj_namespace(obj), SYSTEM_NAMESPACE)) {
        root_changed(ctx, key, old, obj);
    }
}

static void clients_deleted(void *ctx, const char *key, const struct json *obj)
{
    clients_changed(ctx, key, NULL, obj);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct root_ca *c = NEW(struct root_ca);
    c->cfg = *(const struct root_ca_config *) config;
    c->queue = env->queue;
    *ret = c;
    return 0;
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "configmaps",
     .fields = "metadata.name=" ROOT,
     .informer = CONTROLLER_INFORMER(struct root_ca, roots),
     .changed = root_changed,
     .deleted = root_deleted},
    {.api_version = "v1",
     .plural = "configmaps",
     .fields = "metadata.name=" AUTHENTICATION_CONFIG,
     .informer = CONTROLLER_INFORMER(struct root_ca, clients),
     .changed = clients_changed,
     .deleted = clients_deleted},
    {.api_version = "v1",
     .plural = "namespaces",
     .informer = CONTROLLER_INFORMER(struct root_ca, namespaces),
     .changed = namespace_changed},
};

const struct controller root_ca_controller = {
    .name = "root_ca",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .start = start,
    .reconcile = reconcile,
    .stop = free,
};
