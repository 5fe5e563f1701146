/* SPDX-License-Identifier: Apache-2.0 */
#include "api/obj.h"

#include "base/timeutil.h"

static const char *metadata_string(const struct json *o, const char *key)
{
    return json_get_text(json_get(o, "metadata"), key);
}

const char *obj_name(const struct json *o)
{
    return metadata_string(o, "name");
}

const char *obj_namespace(const struct json *o)
{
    return metadata_string(o, "namespace");
}

const char *obj_uid(const struct json *o)
{
    return metadata_string(o, "uid");
}

bool obj_is_terminating(const struct json *o)
{
    return json_path_string(o, "metadata", "deletionTimestamp", NULL) != NULL;
}

int64_t obj_generation(const struct json *o)
{
    return json_get_int_or(json_path(o, "metadata", "generation", NULL), 0);
}

int64_t obj_created_ms(const struct json *o)
{
    int64_t ms;
    return time_parse(metadata_string(o, "creationTimestamp"), &ms) == 0 ? ms : 0;
}

const char *obj_annotation(const struct json *o, const char *key)
{
    return json_path_string(o, "metadata", "annotations", key, NULL);
}

const char *obj_label(const struct json *o, const char *key)
{
    return json_path_string(o, "metadata", "labels", key, NULL);
}

void obj_set_annotation(struct json *o, const char *key, const char *value)
{
    struct json *m = json_ensure_object(o, "metadata");
    json_set_string(json_ensure_object(m, "annotations"), key, value);
}

void obj_remove_annotation(struct json *o, const char *key)
{
    struct json *annotations = json_path(o, "metadata", "annotations", NULL);
    if (annotations) {
        json_remove(annotations, key);
    }
}

bool obj_has_finalizer(const struct json *o, const char *name)
{
    const struct json *f;
    JSON_FOREACH (f, json_path(o, "metadata", "finalizers", NULL)) {
        if (streq_null(json_get_string(f), name)) {
            return true;
        }
    }
    return false;
}

const struct json *obj_controller(const struct json *o)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(o, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(ref, "controller"), false)) {
            return ref;
        }
    }
    return NULL;
}

bool obj_ref_is(const struct json *ref, const char *group, const char *kind)
{
    const char *version = json_get_text(ref, "apiVersion");
    size_t size = strlen(group);
    return streq(json_get_text(ref, "kind"), kind) &&
           (*group ? strncmp(version, group, size) == 0 && version[size] == '/'
                   : !strchr(version, '/'));
}

struct json *obj_new(const char *api_version, const char *kind, const char *ns, const char *name)
{
    struct json *o = json_object();
    json_set_string(o, "apiVersion", api_version);
    json_set_string(o, "kind", kind);
    struct json *m = json_ensure_object(o, "metadata");
    json_set_string(m, "name", name);
    if (ns) {
        json_set_string(m, "namespace", ns);
    }
    return o;
}
