/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/manifest.h"

#include "api/kind.h"
#include "api/schema.h"
#include "api/typed.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "base/xxh64.h"
#include "pod/pod.h"
#include "pod/reference.h"
#include "wire/yaml.h"

#include <stdio.h>

#define CAUSES_MAX 3
#define UID_SIZE 33

/* ---- what a static pod may not have ---- */

static int refuse(struct err *e, const char *what)
{
    return err_set(
        e, -EINVAL,
        "a static pod may not refer to %s: it runs without the API server, which has them", what);
}

static int check_volume(const struct json *v, struct err *e)
{
    const struct json *source;
    if (json_get(v, "persistentVolumeClaim") || json_get(v, "ephemeral")) {
        return refuse(e, "persistentVolumeClaims");
    }
    JSON_FOREACH (source, json_path(v, "projected", "sources", NULL)) {
        if (json_get(source, "serviceAccountToken")) {
            return refuse(e, "tokens of service accounts");
        }
        if (json_get(source, "clusterTrustBundle")) {
            return refuse(e, "clusterTrustBundles");
        }
    }
    /* Drivers and network storages name Secrets, each in its own member. */
    for (size_t i = 0; i < json_count(v); i++) {
        const struct json *s = json_at(v, i);
        if (json_get(s, "secretRef") || json_get(s, "nodePublishSecretRef") ||
            json_get(s, "secretName")) {
            return refuse(e, "secrets");
        }
    }
    return 0;
}

static int check_references(const struct json *spec, struct err *e)
{
    const struct json *v;
    if (*json_get_text(spec, "serviceAccountName") || *json_get_text(spec, "serviceAccount")) {
        return refuse(e, "service accounts");
    }
    if (pod_refers_to(spec, POD_SECRET, NULL)) {
        return refuse(e, "secrets");
    }
    if (pod_refers_to(spec, POD_CONFIG_MAP, NULL)) {
        return refuse(e, "configmaps");
    }
    if (json_count(json_get(spec, "resourceClaims"))) {
        return refuse(e, "resourceClaims");
    }
    JSON_FOREACH (v, json_get(spec, "volumes")) {
        int r = check_volume(v, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* ---- one pod ---- */

static void hash_content(const struct manifest_source *s, const struct json *doc,
                         char out[UID_SIZE])
{
    static const uint64_t seeds[] = {1, 2};
    CLEANUP_FREE char *text = json_to_text(doc);
    uint64_t h[ARRAY_SIZE(seeds)];
    for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
        h[i] = xxh64(s->node, strlen(s->node) + 1, seeds[i]);
        h[i] = xxh64(s->kind, strlen(s->kind) + 1, h[i]);
        h[i] = xxh64(s->path, strlen(s->path) + 1, h[i]);
        h[i] = xxh64(text, strlen(text), h[i]);
    }
    snprintf(out, UID_SIZE, "%016llx%016llx", (unsigned long long) h[0], (unsigned long long) h[1]);
}

/* Checks what the API server's decoder checks. */
static int check_shape(const struct api_kind *k, struct json *pod, struct err *e)
{
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    const struct api_schema *schema = api_kind_schema(k);
    const char *version = json_get_text(pod, "apiVersion"), *kind = json_get_text(pod, "kind");
    if (!streq(version, "v1") || !streq(kind, "Pod")) {
        return err_set(e, -EINVAL, "apiVersion \"%.40s\" and kind \"%.40s\" are not v1 and Pod",
                       version, kind);
    }
    api_schema_prune(schema, pod, &unknown);
    if (unknown.n) {
        return err_set(e, -EINVAL, "unknown field \"%.160s\"", unknown.list[0]);
    }
    return api_typed_check(schema, pod, e);
}

/* Sets the fields that make it a pod of this node and no other. */
static int identify(const struct manifest_source *s, struct json *pod, const char *uid,
                    struct err *e)
{
    static const char *const foreign[] = {
        "generateName",    "selfLink",          "resourceVersion",
        "generation",      "deletionTimestamp", "deletionGracePeriodSeconds",
        "ownerReferences", "finalizers",        "managedFields"};
    struct json *meta = json_ensure_object(pod, "metadata");
    struct json *spec = json_ensure_object(pod, "spec");
    char now[TIME_TEXT_SIZE];
    for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
        json_remove(meta, foreign[i]);
    }
    if (!*json_get_text(meta, "name")) {
        return err_set(e, -EINVAL, "metadata.name: Required value");
    }
    time_format_s(s->now_ms, now);
    json_set(meta, "name", json_stringf("%s-%s", json_get_text(meta, "name"), s->node));
    if (!*json_get_text(meta, "namespace")) {
        json_set_string(meta, "namespace", "default");
    }
    json_set_string(meta, "uid", uid);
    json_set_string(meta, "creationTimestamp", now);
    struct json *notes = json_ensure_object(meta, "annotations");
    json_remove(notes, POD_NOTE_MIRROR);
    json_set_string(notes, POD_NOTE_SOURCE, s->kind);
    json_set_string(notes, POD_NOTE_CONFIG_HASH, uid);
    json_set_string(notes, POD_NOTE_SEEN, now);
    json_set_string(spec, "nodeName", s->node);
    /* Taints of the node do not end it. */
    struct json *tolerations = json_ensure_array(spec, "tolerations");
    struct json *t = json_append(tolerations, json_object());
    json_set_string(t, "operator", "Exists");
    json_set_string(t, "effect", "NoExecute");
    return 0;
}

static int check_namespace(const struct json *pod, struct err *e)
{
    const char *ns = pod_namespace(pod), *why = api_check_dns_label(ns);
    return why ? err_set(e, -EINVAL, "metadata.namespace: \"%.63s\": %s", ns, why) : 0;
}

static int validate(const struct api_kind *k, const struct json *pod, struct err *e)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    api_validate_object(k, pod, NULL, &causes);
    for (size_t i = 0; i < causes.n && i < CAUSES_MAX; i++) {
        strbuf_addf(&text, "%s%s: %s", i ? "; " : "", causes.list[i].field, causes.list[i].message);
    }
    return causes.n ? err_set(e, -EINVAL, "%s", strbuf_cstr(&text)) : 0;
}

/* Makes 'pod' a static pod. */
static int complete(const struct manifest_source *s, struct json *pod, struct err *e)
{
    const struct api_kind *k = api_kind_find("", "v1", "pods");
    const struct api_schema *schema = api_kind_schema(k);
    char uid[UID_SIZE];
    if (!json_is(pod, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "it is no object");
    }
    hash_content(s, pod, uid);
    int r = check_shape(k, pod, e);
    r = r < 0 ? r : identify(s, pod, uid, e);
    if (r < 0) {
        return r;
    }
    k->prepare(pod, NULL);
    api_typed_normalize(schema, pod);
    api_schema_default(schema, pod);
    k->defaults(pod);
    api_typed_complete(schema, pod);
    r = check_namespace(pod, e);
    r = r < 0 ? r : check_references(json_get(pod, "spec"), e);
    return r < 0 ? r : validate(k, pod, e);
}

/* ---- a text ---- */

/* JSON is nearly YAML: some of its escapes are not. */
static int parse(const char *text, size_t size, struct json **ret, struct err *e)
{
    size_t blanks = 0;
    while (blanks < size && strchr(" \t\r\n", text[blanks]) && text[blanks]) {
        blanks++;
    }
    if (blanks == size) {
        return err_set(e, -EINVAL, "it is empty");
    }
    if (text[blanks] == '{' && json_parse(text, size, ret, NULL) == 0) {
        return 0;
    }
    return yaml_parse(text, size, ret, e);
}

static bool is_list(const struct json *doc)
{
    const char *kind = json_get_text(doc, "kind");
    return streq(kind, "List") || streq(kind, "PodList");
}

int manifest_read(const struct manifest_source *s, const char *text, size_t size, struct json **ret,
                  struct err *e)
{
    CLEANUP(json_free) struct json *doc = NULL, *pods = json_array();
    int r = parse(text, size, &doc, e);
    if (r < 0) {
        return r;
    }
    if (!is_list(doc)) {
        r = complete(s, doc, e);
        if (r < 0) {
            return r;
        }
        json_append(pods, TAKE(doc));
        *ret = TAKE(pods);
        return 0;
    }
    if (!s->list) {
        return err_set(e, -EINVAL, "a file has one Pod, not a list: give each pod a file");
    }
    if (!streq(json_get_text(doc, "apiVersion"), "v1") ||
        !json_is(json_get(doc, "items"), JSON_ARRAY)) {
        return err_set(e, -EINVAL, "the list is not of apiVersion v1 with items");
    }
    struct json *items = json_get(doc, "items");
    for (size_t i = 0; i < json_count(items); i++) {
        struct json *pod = json_clone(json_at(items, i));
        if (json_is(pod, JSON_OBJECT) && streq(json_get_text(doc, "kind"), "PodList")) {
            /* Its items need not repeat what they are. */
            json_set_string(pod, "apiVersion", "v1");
            json_set_string(pod, "kind", "Pod");
        }
        json_append(pods, pod);
        r = complete(s, pod, e);
        if (r < 0) {
            return err_prefix(e, "items[%zu]", i);
        }
    }
    *ret = TAKE(pods);
    return 0;
}

/* ---- mirrors ---- */

struct json *manifest_mirror(const struct json *pod, const char *node, const char *node_uid)
{
    struct json *mirror = json_object(), *meta;
    const struct json *of = json_get(pod, "metadata"), *labels = json_get(of, "labels");
    json_set_string(mirror, "apiVersion", "v1");
    json_set_string(mirror, "kind", "Pod");
    meta = json_ensure_object(mirror, "metadata");
    json_set_string(meta, "name", pod_name(pod));
    json_set_string(meta, "namespace", pod_namespace(pod));
    json_set(meta, "labels", labels ? json_clone(labels) : NULL);
    json_set(meta, "annotations", json_clone(json_get(of, "annotations")));
    json_set_string(json_get(meta, "annotations"), POD_NOTE_MIRROR, pod_uid(pod));
    struct json *owner = json_append(json_ensure_array(meta, "ownerReferences"), json_object());
    json_set_string(owner, "apiVersion", "v1");
    json_set_string(owner, "kind", "Node");
    json_set_string(owner, "name", node);
    json_set_string(owner, "uid", node_uid);
    json_set_bool(owner, "controller", true);
    json_set(mirror, "spec", json_clone(json_get(pod, "spec")));
    return mirror;
}

const char *manifest_mirror_of(const struct json *object)
{
    return json_path_string(object, "metadata", "annotations", POD_NOTE_MIRROR, NULL);
}
