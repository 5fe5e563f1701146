/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/project_roles.h"

#include "base/mem.h"
#include "controller/obj.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define RBAC_VERSION RBAC_GROUP "/v1"

/* The bindings of each project. */
static const struct {
    const char *name, *role, *account;
} bindings[] = {
    {"system:deployers", "system:deployer", "deployer"},
};

/* Keys of the queue: "NAMESPACE/NAME" of a binding that must exist. */
struct project_roles {
    struct workqueue *queue;
    struct informer *namespaces, *bindings;
};

static size_t find(const char *name)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(bindings) && !streq(bindings[i].name, name)) {
        i++;
    }
    return i;
}

static struct json *make(const char *ns, size_t i)
{
    struct json *o = obj_new(RBAC_VERSION, "RoleBinding", ns, bindings[i].name);
    struct json *ref = json_ensure_object(o, "roleRef");
    json_set_string(ref, "apiGroup", RBAC_GROUP);
    json_set_string(ref, "kind", "ClusterRole");
    json_set_string(ref, "name", bindings[i].role);
    struct json *s = json_append(json_ensure_array(o, "subjects"), json_object());
    json_set_string(s, "kind", "ServiceAccount");
    json_set_string(s, "name", bindings[i].account);
    json_set_string(s, "namespace", ns);
    return o;
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    /* The namespace may be in deletion: then nothing remains to be done. */
    if (error < 0 && error != -EEXIST && error != -ENOENT && error != -EACCES) {
        work_retry(w, error, "write a role binding of a project", text);
    } else {
        work_done(w);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct project_roles *p = ctx;
    const char *name = strchr(key, '/');
    CLEANUP_FREE char *ns = xstrndup(key, strcspn(key, "/"));
    const struct json *namespace = informer_get(p->namespaces, ns);
    size_t i = name ? find(name + 1) : ARRAY_SIZE(bindings);
    if (!namespace || obj_is_terminating(namespace) || i == ARRAY_SIZE(bindings) ||
        informer_get(p->bindings, key)) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *o = make(ns, i);
    CLEANUP_FREE char *path = api_path(RBAC_VERSION, "rolebindings", ns, NULL, NULL);
    work_request(w, "POST", path, o, written);
}

static void namespace_changed(void *ctx, const char *key, const struct json *old,
                              const struct json *obj)
{
    struct project_roles *p = ctx;
    for (size_t i = 0; !old && i < ARRAY_SIZE(bindings); i++) {
        CLEANUP_FREE char *binding = xasprintf("%s/%s", key, bindings[i].name);
        workqueue_add(p->queue, binding);
    }
}

/* A binding that a user deletes is made again. */
static void binding_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct project_roles *p = ctx;
    workqueue_add(p->queue, key);
}

static void binding_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct project_roles *p = NEW(struct project_roles);
    p->queue = env->queue;
    *ret = p;
    return 0;
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "namespaces",
     .informer = CONTROLLER_INFORMER(struct project_roles, namespaces),
     .changed = namespace_changed,
     .metadata = true},
    {.api_version = RBAC_VERSION,
     .plural = "rolebindings",
     .informer = CONTROLLER_INFORMER(struct project_roles, bindings),
     .changed = binding_changed,
     .deleted = binding_deleted,
     .metadata = true},
};

const struct controller project_roles_controller = {
    .name = "project_roles",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .start = start,
    .reconcile = reconcile,
    .stop = free,
};
