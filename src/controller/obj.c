/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/obj.h"

#include "sdn/network.h"

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

const char *obj_annotation(const struct json *o, const char *key)
{
    return json_path_string(o, "metadata", "annotations", key, NULL);
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

const char *node_internal_ip(const struct json *node)
{
    const struct json *a;
    JSON_FOREACH (a, json_path(node, "status", "addresses", NULL)) {
        const char *type = json_path_string(a, "type", NULL);
        if (type && streq(type, "InternalIP")) {
            return json_path_string(a, "address", NULL);
        }
    }
    return NULL;
}

int hostsubnet_prefix(const struct json *hs, struct ip4_prefix *ret)
{
    const struct json *v = json_get(hs, "subnet");
    const char *s = json_get_string(v);
    if (!v || (s && !*s)) {
        return -ENOENT;
    }
    return s ? prefix_parse(s, ret, NULL) : -EINVAL;
}

int netnamespace_vnid(const struct json *nn, uint32_t *ret)
{
    int64_t id = -1;
    if (json_get_int(json_get(nn, "netid"), &id) < 0 || id < 0 || id > SDN_VNID_MAX) {
        return -EINVAL;
    }
    return *ret = (uint32_t) id, 0;
}
