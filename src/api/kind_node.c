/* SPDX-License-Identifier: Apache-2.0 */
/* Node (core v1). */
#include "api/kind_util.h"
#include "api/kinds.h"

#define ROLE_PREFIX "node-role.kubernetes.io/"
#define ROLE_LABEL "kubernetes.io/role"

struct json *kind_node_cell_status(const struct json *obj, int64_t now_ms)
{
    const char *ready = "Unknown";
    const struct json *cond;
    JSON_FOREACH (cond, json_path(obj, "status", "conditions", NULL)) {
        if (streq_null(json_path_string(cond, "type", NULL), "Ready")) {
            ready =
                streq_null(json_path_string(cond, "status", NULL), "True") ? "Ready" : "NotReady";
        }
    }
    bool cordoned = json_get_bool(json_path(obj, "spec", "unschedulable", NULL), false);
    return json_stringf("%s%s", ready, cordoned ? ",SchedulingDisabled" : "");
}

struct json *kind_node_cell_roles(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *labels = json_path(obj, "metadata", "labels", NULL);
    for (size_t i = 0; json_is(labels, JSON_OBJECT) && i < json_count(labels); i++) {
        const char *key = json_key_at(labels, i), *role = NULL;
        if (str_has_prefix(key, ROLE_PREFIX)) {
            role = key + strlen(ROLE_PREFIX);
        } else if (streq(key, ROLE_LABEL)) {
            role = json_get_string(json_at(labels, i));
        }
        if (role && *role) {
            strbuf_addf(&b, "%s%s", b.size ? "," : "", role);
        }
    }
    return api_cell_text(strbuf_cstr(&b), "<none>");
}

static struct json *cell_address(const struct json *obj, const char *type)
{
    const struct json *a;
    JSON_FOREACH (a, json_path(obj, "status", "addresses", NULL)) {
        if (streq_null(json_path_string(a, "type", NULL), type)) {
            return api_cell_text(json_path_string(a, "address", NULL), "<none>");
        }
    }
    return json_string("<none>");
}

struct json *kind_node_cell_internal_ip(const struct json *obj, int64_t now_ms)
{
    return cell_address(obj, "InternalIP");
}

struct json *kind_node_cell_external_ip(const struct json *obj, int64_t now_ms)
{
    return cell_address(obj, "ExternalIP");
}

struct json *kind_node_cell_kernel(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "status", "nodeInfo", "kernelVersion", NULL),
                         "<unknown>");
}

struct json *kind_node_cell_runtime(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(
        json_path_string(obj, "status", "nodeInfo", "containerRuntimeVersion", NULL), "<unknown>");
}

static void validate_taints(const struct json *taints, struct api_causes *c)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
    if (!api_field_array(c, "spec.taints", taints)) {
        return;
    }
    for (size_t i = 0; i < json_count(taints); i++) {
        const struct json *t = json_at(taints, i);
        api_field_checked(c, API_FIELD("spec.taints[%zu].key", i), json_get(t, "key"), true,
                          api_check_qualified_name);
        api_field_checked(c, API_FIELD("spec.taints[%zu].value", i), json_get(t, "value"), false,
                          api_check_label_value);
        api_field_enum(c, API_FIELD("spec.taints[%zu].effect", i), json_get(t, "effect"), true,
                       effects);
    }
}

static void validate_status(const struct json *status, struct api_causes *c)
{
    if (!api_field_object(c, "status", status)) {
        return;
    }
    const struct json *list = json_get(status, "addresses");
    if (api_field_array(c, "status.addresses", list)) {
        static const char *const types[] = {"Hostname",    "InternalIP",  "ExternalIP",
                                            "InternalDNS", "ExternalDNS", NULL};
        for (size_t i = 0; i < json_count(list); i++) {
            const struct json *a = json_at(list, i);
            const char *field = API_FIELD("status.addresses[%zu].address", i);
            if (api_field_enum(c, API_FIELD("status.addresses[%zu].type", i), json_get(a, "type"),
                               true, types) &&
                str_has_suffix(json_path_string(a, "type", NULL), "IP")) {
                api_field_ip(c, field, json_get(a, "address"), true);
            } else {
                api_field_string(c, field, json_get(a, "address"), true);
            }
        }
    }
    list = json_get(status, "conditions");
    if (api_field_array(c, "status.conditions", list)) {
        static const char *const values[] = {"True", "False", "Unknown", NULL};
        for (size_t i = 0; i < json_count(list); i++) {
            const struct json *cond = json_at(list, i);
            api_field_string(c, API_FIELD("status.conditions[%zu].type", i), json_get(cond, "type"),
                             true);
            api_field_enum(c, API_FIELD("status.conditions[%zu].status", i),
                           json_get(cond, "status"), true, values);
        }
    }
}

void kind_node_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *old_spec = json_get(old, "spec");
    if (api_field_object(c, "spec", spec)) {
        api_field_bool(c, "spec.unschedulable", json_get(spec, "unschedulable"));
        api_field_string(c, "spec.providerID", json_get(spec, "providerID"), false);
        const struct json *cidr = json_get(spec, "podCIDR");
        api_field_cidr(c, "spec.podCIDR", cidr, false, NULL);
        if (json_get(old_spec, "podCIDR") && !json_equal(cidr, json_get(old_spec, "podCIDR"))) {
            api_forbidden(c, "spec.podCIDR",
                          "node updates may not change podCIDR except from \"\" to valid");
        }
        validate_taints(json_get(spec, "taints"), c);
    }
    validate_status(json_get(obj, "status"), c);
}

/* Where the node is reached: its name, unless something else was said (NODE-15). */
void kind_node_defaults(struct json *obj)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *spec = json_get(obj, "spec");
    /* A value of another type stays for validation to refuse. */
    if (name && (!spec || json_is(spec, JSON_NULL) || json_is(spec, JSON_OBJECT))) {
        api_default_string(json_ensure_object(obj, "spec"), "externalID", name);
    }
}
