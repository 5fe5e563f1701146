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

static void validate_addresses(const struct json *list, struct api_causes *c)
{
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *address = json_get(json_at(list, i), "address");
        const char *wrong = str_has_suffix(json_path_string(json_at(list, i), "type", NULL), "IP")
                                ? api_check_ip(json_get_string(address))
                                : NULL;
        if (wrong) {
            api_invalid(c, API_FIELD("status.addresses[%zu].address", i), address, "%s", wrong);
        }
    }
}

void kind_node_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *before = json_path(old, "spec", "podCIDR", NULL);
    const struct json *cidr = json_path(obj, "spec", "podCIDR", NULL);
    if (before && !json_equal(cidr, before)) {
        api_forbidden(c, "spec.podCIDR",
                      "node updates may not change podCIDR except from \"\" to valid");
    }
    validate_addresses(json_path(obj, "status", "addresses", NULL), c);
}

/* The host name of the node: its name, unless given (NODE-15). */
void kind_node_defaults(struct json *obj)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *spec = json_get(obj, "spec");
    /* A value of another type is left to validation, which refuses it. */
    if (name && (!spec || json_is(spec, JSON_NULL) || json_is(spec, JSON_OBJECT))) {
        api_default_string(json_ensure_object(obj, "spec"), "externalID", name);
    }
}
