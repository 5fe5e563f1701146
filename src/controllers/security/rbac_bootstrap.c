/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/rbac_bootstrap.h"

#include "base/log.h"
#include "base/mem.h"
#include "controller/obj.h"
#include "controllers/security/default_roles.h"
#include "controllers/security/default_sccs.h"

LOG_MODULE("bootstrap");

#define NAMESPACE_WAIT_MS 50
#define RBAC "/apis/rbac.authorization.k8s.io/v1/"

/* The kinds.  Keys of the queue are "KIND" (list it) and "KIND/NAME"
 * (create it, or bring it up to date). */
static const struct {
    const char *key, *path;
} kinds[] = {
    {"namespaces", "/api/v1/namespaces"},
    {"clusterroles", RBAC "clusterroles"},
    {"clusterrolebindings", RBAC "clusterrolebindings"},
    {"roles", RBAC "namespaces/kube-system/roles"},
    {"rolebindings", RBAC "namespaces/kube-system/rolebindings"},
    {"sharedroles", RBAC "namespaces/" SHARED_NAMESPACE "/roles"},
    {"sharedrolebindings", RBAC "namespaces/" SHARED_NAMESPACE "/rolebindings"},
    {"securitycontextconstraints", "/apis/security.openshift.io/v1/securitycontextconstraints"},
};
#define N_KINDS ARRAY_SIZE(kinds)

struct rbac_bootstrap {
    const struct rbac_bootstrap_config *cfg;
    struct workqueue *queue;
    struct json *want[N_KINDS];
    size_t pending, written;
};

static size_t kind_of(const char *key)
{
    size_t i = 0;
    while (strncmp(key, kinds[i].key, strlen(kinds[i].key)) != 0 ||
           (key[strlen(kinds[i].key)] && key[strlen(kinds[i].key)] != '/')) {
        i++;
    }
    return i;
}

static const struct json *find(const struct json *list, const char *name)
{
    const struct json *o;
    JSON_FOREACH (o, list) {
        if (streq(obj_name(o), name)) {
            return o;
        }
    }
    return NULL;
}

static void finish(struct rbac_bootstrap *b, struct work *w)
{
    work_done(w);
    if (--b->pending == 0) {
        log_info("roles are in place", "written=%zu", b->written);
        b->cfg->done(b->cfg->ctx);
    }
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct rbac_bootstrap *b = ctx;
    if (error == -ENOENT) {
        work_wait(w, NAMESPACE_WAIT_MS); /* Its namespace is written at the same time. */
        return;
    }
    if (error < 0 && error != -EEXIST) {
        work_retry(w, error, "write a default role, binding or constraint", text);
        return;
    }
    b->written++;
    finish(b, w);
}

static void got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct rbac_bootstrap *b = ctx;
    size_t k = kind_of(work_key(w));
    const struct json *want = find(b->want[k], work_key(w) + strlen(kinds[k].key) + 1);
    if (error == -ENOENT) {
        work_request(w, "POST", kinds[k].path, want, written);
        return;
    }
    if (error < 0) {
        work_retry(w, error, "read a default role, binding or constraint", text);
        return;
    }
    CLEANUP(json_free) struct json *o = default_reconciled(want, obj);
    if (!o) {
        finish(b, w);
        return;
    }
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    strbuf_addf(&path, "%s/", kinds[k].path);
    http_escape(obj_name(want), &path);
    work_request(w, "PUT", strbuf_cstr(&path), o, written);
}

static void listed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct rbac_bootstrap *b = ctx;
    size_t k = kind_of(work_key(w));
    const struct json *want;
    if (error < 0) {
        work_retry(w, error, "list default roles, bindings or constraints", text);
        return;
    }
    JSON_FOREACH (want, b->want[k]) {
        const struct json *have = find(json_get(obj, "items"), obj_name(want));
        if (have && default_keeps_withdrawn(have)) {
            log_warn("a default role keeps a rule that was withdrawn",
                     "role=%s annotation=%s=false", obj_name(have), ANNOTATION_AUTOUPDATE);
        }
        CLEANUP(json_free) struct json *o = have ? default_reconciled(want, have) : NULL;
        if (!have || o) {
            CLEANUP_FREE char *key = xasprintf("%s/%s", kinds[k].key, obj_name(want));
            b->pending++;
            workqueue_add(b->queue, key);
        }
    }
    finish(b, w);
}

static void step(void *ctx, struct work *w, const char *key)
{
    size_t k = kind_of(key);
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    strbuf_adds(&path, kinds[k].path);
    if (!key[strlen(kinds[k].key)]) {
        work_request(w, "GET", strbuf_cstr(&path), NULL, listed);
        return;
    }
    strbuf_addc(&path, '/');
    http_escape(key + strlen(kinds[k].key) + 1, &path);
    work_request(w, "GET", strbuf_cstr(&path), NULL, got);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    const struct rbac_bootstrap_config *cfg = config;
    struct json *want[N_KINDS] = {default_namespaces(),
                                  default_cluster_roles(),
                                  default_cluster_role_bindings(cfg->plugin),
                                  default_system_roles(),
                                  default_system_role_bindings(),
                                  default_shared_roles(),
                                  default_shared_role_bindings(),
                                  default_sccs()};
    struct rbac_bootstrap *b = NEW(struct rbac_bootstrap);
    b->cfg = cfg;
    b->queue = env->queue;
    b->pending = N_KINDS;
    for (size_t i = 0; i < N_KINDS; i++) {
        b->want[i] = want[i];
        workqueue_add(b->queue, kinds[i].key);
    }
    *ret = b;
    return 0;
}

static void stop(void *state)
{
    struct rbac_bootstrap *b = state;
    for (size_t i = 0; i < N_KINDS; i++) {
        json_free(b->want[i]);
    }
    free(b);
}

const struct controller rbac_bootstrap_controller = {
    .name = "rbac_bootstrap",
    .parallel = 16,
    .start = start,
    .reconcile = step,
    .stop = stop,
};
