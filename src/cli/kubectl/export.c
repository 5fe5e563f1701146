/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/export.h"

#include "base/mem.h"

#include <errno.h>

static bool is(const struct json *o, const char *version, const char *kind)
{
    return streq(json_get_text(o, "apiVersion"), version) && streq(json_get_text(o, "kind"), kind);
}

static void strip_metadata(struct json *o)
{
    static const char *const keys[] = {"uid",
                                       "resourceVersion",
                                       "selfLink",
                                       "generation",
                                       "creationTimestamp",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "managedFields",
                                       "namespace"};
    struct json *meta = json_get(o, "metadata");
    if (!json_is(meta, JSON_OBJECT)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        json_remove(meta, keys[i]);
    }
    if (*json_get_text(meta, "generateName")) {
        json_remove(meta, "name");
    }
}

static void strip_service(struct json *o)
{
    struct json *spec = json_get(o, "spec"), *port;
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    if (!streq(json_get_text(spec, "clusterIP"), "None")) {
        json_remove(spec, "clusterIP");
        json_remove(spec, "clusterIPs");
    }
    JSON_FOREACH (port, json_get(spec, "ports")) {
        if (json_is(port, JSON_OBJECT)) {
            json_remove(port, "nodePort");
        }
    }
}

/* The lists name Secrets that the controllers made for this account. */
static void strip_account(struct json *o)
{
    static const char *const lists[] = {"secrets", "imagePullSecrets"};
    CLEANUP_FREE char *token =
        xasprintf("%s-token-", json_path_string(o, "metadata", "name", NULL));
    CLEANUP_FREE char *pull =
        xasprintf("%s-dockercfg-", json_path_string(o, "metadata", "name", NULL));
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        struct json *list = json_get(o, lists[i]);
        for (size_t k = json_count(list); k-- > 0;) {
            const char *name = json_get_text(json_at(list, k), "name");
            if (str_has_prefix(name, token) || str_has_prefix(name, pull)) {
                json_remove_at(list, k);
            }
        }
        if (list && !json_count(list)) {
            json_remove(o, lists[i]);
        }
    }
}

int export_strip(struct json *o)
{
    if (is(o, "v1", "Secret") &&
        streq(json_get_text(o, "type"), "kubernetes.io/service-account-token")) {
        return -EINVAL;
    }
    if (is(o, "v1", "Service")) {
        strip_service(o);
    } else if (is(o, "v1", "ServiceAccount")) {
        strip_account(o);
    } else if (is(o, "v1", "Pod") && json_is(json_get(o, "spec"), JSON_OBJECT)) {
        json_remove(json_get(o, "spec"), "nodeName");
    }
    strip_metadata(o);
    json_remove(o, "status");
    return 0;
}

struct json *export_template(const char *name, struct json *objects)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "Template");
    json_set_string(o, "apiVersion", "template.openshift.io/v1");
    json_set_string(json_ensure_object(o, "metadata"), "name", name);
    json_set(o, "objects", objects);
    return o;
}
