/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/reference.h"

#include "base/macro.h"
#include "base/str.h"

const char *pod_object_plural(enum pod_object_kind kind)
{
    return kind == POD_SECRET ? "secrets" : "configmaps";
}

const char *pod_object_singular(enum pod_object_kind kind)
{
    return kind == POD_SECRET ? "secret" : "configmap";
}

struct visit {
    enum pod_object_kind kind;
    pod_reference_fn *fn;
    void *ctx;
};

static int visit(const struct visit *v, struct pod_reference r)
{
    return r.name && *r.name ? v->fn(v->ctx, &r) : 0;
}

static int visit_volume(const struct visit *v, const struct json *volume)
{
    /* Members of a volume that name a Secret: kind of volume, its member, and the name within. */
    static const char *const secrets[][3] = {
        {"secret", "secretName"},
        {"azureFile", "secretName"},
        {"cephfs", "secretRef", "name"},
        {"cinder", "secretRef", "name"},
        {"csi", "nodePublishSecretRef", "name"},
        {"flexVolume", "secretRef", "name"},
        {"iscsi", "secretRef", "name"},
        {"rbd", "secretRef", "name"},
        {"scaleIO", "secretRef", "name"},
        {"storageos", "secretRef", "name"},
    };
    static const char *const maps[][3] = {{"configMap", "name"}};
    bool secret = v->kind == POD_SECRET;
    const char *const(*rows)[3] = secret ? secrets : maps;
    size_t n = secret ? ARRAY_SIZE(secrets) : ARRAY_SIZE(maps);
    const struct json *source;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        r = visit(v, (struct pod_reference){.place = POD_REFERENCE_VOLUME,
                                            .name = json_path_string(volume, rows[i][0], rows[i][1],
                                                                     rows[i][2], NULL)});
    }
    JSON_FOREACH (source, json_path(volume, "projected", "sources", NULL)) {
        if (r == 0) {
            r = visit(v, (struct pod_reference){
                             .place = POD_REFERENCE_VOLUME,
                             .name = json_path_string(source, secret ? "secret" : "configMap",
                                                      "name", NULL)});
        }
    }
    return r;
}

static int visit_container(const struct visit *v, const struct json *container, const char *list)
{
    bool secret = v->kind == POD_SECRET;
    const char *name = json_path_string(container, "name", NULL);
    struct pod_reference ref = {.container = name ? name : "", .list = list};
    const struct json *env;
    int r = 0;
    ref.place = POD_REFERENCE_ENV;
    JSON_FOREACH (env, json_get(container, "env")) {
        const char *variable = json_path_string(env, "name", NULL);
        ref.variable = variable ? variable : "";
        ref.name = json_path_string(env, "valueFrom", secret ? "secretKeyRef" : "configMapKeyRef",
                                    "name", NULL);
        r = r == 0 ? visit(v, ref) : r;
    }
    ref.place = POD_REFERENCE_ENV_FROM;
    ref.variable = NULL;
    JSON_FOREACH (env, json_get(container, "envFrom")) {
        ref.name = json_path_string(env, secret ? "secretRef" : "configMapRef", "name", NULL);
        r = r == 0 ? visit(v, ref) : r;
    }
    return r;
}

int pod_reference_each(const struct json *spec, enum pod_object_kind kind, pod_reference_fn *fn,
                       void *ctx)
{
    static const char *const lists[][2] = {{"initContainers", "init container"},
                                           {"containers", "container"},
                                           {"ephemeralContainers", "ephemeral container"}};
    struct visit v = {.kind = kind, .fn = fn, .ctx = ctx};
    const struct json *item, *pull = json_get(spec, "imagePullSecrets");
    int r = 0;
    JSON_FOREACH (item, json_get(spec, "volumes")) {
        r = r == 0 ? visit_volume(&v, item) : r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (item, json_get(spec, lists[i][0])) {
            r = r == 0 ? visit_container(&v, item, lists[i][1]) : r;
        }
    }
    for (size_t i = 0; r == 0 && kind == POD_SECRET && i < json_count(pull); i++) {
        r = visit(&v,
                  (struct pod_reference){.place = POD_REFERENCE_PULL,
                                         .name = json_path_string(json_at(pull, i), "name", NULL),
                                         .index = i});
    }
    return r;
}

static int is_named(void *ctx, const struct pod_reference *r)
{
    const char *name = ctx;
    return !name || streq(r->name, name);
}

bool pod_refers_to(const struct json *spec, enum pod_object_kind kind, const char *name)
{
    return pod_reference_each(spec, kind, is_named, (void *) name) != 0;
}
