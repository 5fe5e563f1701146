/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/storage/snapshot_kinds.h"

#include "api/obj.h"
#include "base/mem.h"

#define CRD_API "apiextensions.k8s.io/v1"
#define GROUP "snapshot.storage.k8s.io"
#define APPROVED "api-approved.kubernetes.io"
#define APPROVAL "https://github.com/kubernetes-csi/external-snapshotter/pull/814"

/* A field by its path; "required" marks it in its parent. */
struct field {
    const char *path, *type;
    bool required;
};
struct column {
    const char *name, *type, *path;
};
struct kind {
    const char *kind, *plural, *singular, *shorts[3], *scope;
    bool status;
    struct field fields[24];
    struct column columns[12];
};

static const struct kind kinds[] = {
    {.kind = "VolumeSnapshotClass",
     .plural = "volumesnapshotclasses",
     .singular = "volumesnapshotclass",
     .shorts = {"vsclass", "vsclasses"},
     .scope = "Cluster",
     .fields = {{"driver", "string", true},
                {"deletionPolicy", "string", true},
                {"parameters", "map", false}},
     .columns = {{"Driver", "string", ".driver"},
                 {"DeletionPolicy", "string", ".deletionPolicy"},
                 {"Age", "date", ".metadata.creationTimestamp"}}},
    {.kind = "VolumeSnapshot",
     .plural = "volumesnapshots",
     .singular = "volumesnapshot",
     .shorts = {"vs"},
     .scope = "Namespaced",
     .status = true,
     .fields = {{"spec", "object", true},
                {"spec.source", "object", true},
                {"spec.source.persistentVolumeClaimName", "string", false},
                {"spec.source.volumeSnapshotContentName", "string", false},
                {"spec.volumeSnapshotClassName", "string", false},
                {"status.boundVolumeSnapshotContentName", "string", false},
                {"status.creationTime", "time", false},
                {"status.error.message", "string", false},
                {"status.error.time", "time", false},
                {"status.readyToUse", "boolean", false},
                {"status.restoreSize", "quantity", false},
                {"status.volumeGroupSnapshotName", "string", false}},
     .columns = {{"ReadyToUse", "boolean", ".status.readyToUse"},
                 {"SourcePVC", "string", ".spec.source.persistentVolumeClaimName"},
                 {"SourceSnapshotContent", "string", ".spec.source.volumeSnapshotContentName"},
                 {"RestoreSize", "string", ".status.restoreSize"},
                 {"SnapshotClass", "string", ".spec.volumeSnapshotClassName"},
                 {"SnapshotContent", "string", ".status.boundVolumeSnapshotContentName"},
                 {"CreationTime", "date", ".status.creationTime"},
                 {"Age", "date", ".metadata.creationTimestamp"}}},
    {.kind = "VolumeSnapshotContent",
     .plural = "volumesnapshotcontents",
     .singular = "volumesnapshotcontent",
     .shorts = {"vsc", "vscs"},
     .scope = "Cluster",
     .status = true,
     .fields = {{"spec", "object", true},
                {"spec.deletionPolicy", "string", true},
                {"spec.driver", "string", true},
                {"spec.source", "object", true},
                {"spec.source.snapshotHandle", "string", false},
                {"spec.source.volumeHandle", "string", false},
                {"spec.sourceVolumeMode", "string", false},
                {"spec.volumeSnapshotClassName", "string", false},
                {"spec.volumeSnapshotRef", "object", true},
                {"spec.volumeSnapshotRef.apiVersion", "string", false},
                {"spec.volumeSnapshotRef.fieldPath", "string", false},
                {"spec.volumeSnapshotRef.kind", "string", false},
                {"spec.volumeSnapshotRef.name", "string", false},
                {"spec.volumeSnapshotRef.namespace", "string", false},
                {"spec.volumeSnapshotRef.resourceVersion", "string", false},
                {"spec.volumeSnapshotRef.uid", "string", false},
                {"status.creationTime", "integer", false},
                {"status.error.message", "string", false},
                {"status.error.time", "time", false},
                {"status.readyToUse", "boolean", false},
                {"status.restoreSize", "integer", false},
                {"status.snapshotHandle", "string", false},
                {"status.volumeGroupSnapshotHandle", "string", false}},
     .columns = {{"ReadyToUse", "boolean", ".status.readyToUse"},
                 {"RestoreSize", "integer", ".status.restoreSize"},
                 {"DeletionPolicy", "string", ".spec.deletionPolicy"},
                 {"Driver", "string", ".spec.driver"},
                 {"VolumeSnapshotClass", "string", ".spec.volumeSnapshotClassName"},
                 {"VolumeSnapshot", "string", ".spec.volumeSnapshotRef.name"},
                 {"VolumeSnapshotNamespace", "string", ".spec.volumeSnapshotRef.namespace"},
                 {"Age", "date", ".metadata.creationTimestamp"}}},
};

/* ---- the definition of a kind ---- */

static void set_type(struct json *schema, const struct field *f)
{
    const char *name = strrchr(f->path, '.');
    name = name ? name + 1 : f->path;
    if (streq(f->type, "map")) {
        json_set_string(schema, "type", "object");
        json_set_string(json_ensure_object(schema, "additionalProperties"), "type", "string");
    } else if (streq(f->type, "time")) {
        json_set_string(schema, "type", "string");
        json_set_string(schema, "format", "date-time");
    } else if (streq(f->type, "quantity")) {
        struct json *any = json_ensure_array(schema, "anyOf");
        json_set_string(json_append(any, json_object()), "type", "integer");
        json_set_string(json_append(any, json_object()), "type", "string");
        json_set_bool(schema, "x-kubernetes-int-or-string", true);
    } else {
        json_set_string(schema, "type", f->type);
        if (streq(f->type, "integer")) {
            json_set_string(schema, "format", "int64");
        }
    }
    if (streq(name, "deletionPolicy")) {
        struct json *values = json_ensure_array(schema, "enum");
        json_append(values, json_string("Delete"));
        json_append(values, json_string("Retain"));
    }
}

/* Adds the field to the schema of the whole object. */
static void add_field(struct json *schema, const struct field *f)
{
    const char *at = f->path;
    for (;;) {
        size_t n = strcspn(at, ".");
        CLEANUP_FREE char *name = xstrndup(at, n);
        bool last = !at[n];
        struct json *properties = json_ensure_object(schema, "properties");
        json_set_string(schema, "type", "object");
        if (last && f->required) {
            json_append(json_ensure_array(schema, "required"), json_string(name));
        }
        schema = json_ensure_object(properties, name);
        if (last) {
            set_type(schema, f);
            return;
        }
        at += n + 1;
    }
}

static struct json *make_version(const struct kind *k)
{
    struct json *v = json_object();
    json_set_string(v, "name", "v1");
    json_set_bool(v, "served", true);
    json_set_bool(v, "storage", true);
    struct json *schema = json_ensure_object(json_ensure_object(v, "schema"), "openAPIV3Schema");
    static const struct field common[] = {
        {"apiVersion", "string", false}, {"kind", "string", false}, {"metadata", "object", false}};
    for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
        add_field(schema, &common[i]);
    }
    for (const struct field *f = k->fields; f->path; f++) {
        add_field(schema, f);
    }
    for (const struct column *c = k->columns; c->name; c++) {
        struct json *column =
            json_append(json_ensure_array(v, "additionalPrinterColumns"), json_object());
        json_set_string(column, "name", c->name);
        json_set_string(column, "type", c->type);
        json_set_string(column, "jsonPath", c->path);
    }
    if (k->status) {
        json_set(json_ensure_object(v, "subresources"), "status", json_object());
    }
    return v;
}

static struct json *make_definition(const struct kind *k)
{
    CLEANUP_FREE char *name = xasprintf("%s." GROUP, k->plural);
    struct json *o = obj_new(CRD_API, "CustomResourceDefinition", NULL, name);
    struct json *spec = json_ensure_object(o, "spec"), *names = json_ensure_object(spec, "names");
    obj_set_annotation(o, APPROVED, APPROVAL);
    json_set_string(spec, "group", GROUP);
    json_set_string(spec, "scope", k->scope);
    json_set_string(names, "kind", k->kind);
    json_set(names, "listKind", json_stringf("%sList", k->kind));
    json_set_string(names, "plural", k->plural);
    json_set_string(names, "singular", k->singular);
    for (size_t i = 0; k->shorts[i]; i++) {
        json_append(json_ensure_array(names, "shortNames"), json_string(k->shorts[i]));
    }
    json_append(json_ensure_array(spec, "versions"), make_version(k));
    return o;
}

/* ---- the controller ---- */

static void created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -EEXIST) {
        work_retry(w, error, "create a definition of volume snapshots", text);
    } else {
        work_done(w);
    }
}

static void create_definition(void *ctx, struct work *w, const char *key)
{
    CLEANUP_FREE char *path = api_path(CRD_API, "customresourcedefinitions", NULL, NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (streq(kinds[i].plural, key)) {
            CLEANUP(json_free) struct json *o = make_definition(&kinds[i]);
            work_request(w, "POST", path, o, created);
            return;
        }
    }
    work_done(w);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        workqueue_add(env->queue, kinds[i].plural);
    }
    *ret = NULL;
    return 0;
}

static void stop(void *state)
{
}

const struct controller snapshot_kinds_controller = {
    .name = "snapshot_kinds",
    .parallel = 1,
    .start = start,
    .reconcile = create_definition,
    .stop = stop,
};
