/* SPDX-License-Identifier: Apache-2.0 */
/* Node (core v1). */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/quantity.h"
#include "base/map.h"
#include "base/mem.h"

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

/* Two equal addresses are refused in updates only, as in Kubernetes. */
static void validate_addresses(const struct json *list, bool update, struct api_causes *c)
{
    struct smap seen;
    smap_init(&seen, NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *entry = json_at(list, i), *address = json_get(entry, "address");
        const char *type = json_get_text(entry, "type");
        const char *wrong =
            str_has_suffix(type, "IP") ? api_check_ip(json_get_string(address)) : NULL;
        CLEANUP_FREE char *key = xasprintf("%s %s", type, json_get_text(entry, "address"));
        if (wrong) {
            api_invalid(c, API_FIELD("status.addresses[%zu].address", i), address, "%s", wrong);
        }
        if (update && smap_get(&seen, key)) {
            api_duplicate(c, API_FIELD("status.addresses[%zu]", i), entry);
        }
        smap_set(&seen, key, &seen);
    }
    smap_done(&seen);
}

static void validate_taints(const struct json *list, struct api_causes *c)
{
    struct smap seen;
    smap_init(&seen, NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *taint = json_at(list, i);
        CLEANUP_FREE char *key =
            xasprintf("%s %s", json_get_text(taint, "effect"), json_get_text(taint, "key"));
        if (smap_get(&seen, key)) {
            api_duplicate(c, API_FIELD("spec.taints[%zu]", i), taint);
        }
        smap_set(&seen, key, &seen);
    }
    smap_done(&seen);
}

static void validate_amounts(const struct json *status, const char *key, struct api_causes *c)
{
    const struct json *list = json_get(status, key);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *v = json_at(list, i);
        const char *s = json_get_string(v);
        if (s && api_quantity_compare(s, "0") < 0) {
            api_invalid(c, API_FIELD("status.%s.%.128s", key, json_key_at(list, i)), v,
                        "must be greater than or equal to 0");
        }
    }
}

static void validate_ranges(const struct json *list, struct api_causes *c)
{
    size_t n[2] = {0, 0};
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *v = json_at(list, i);
        const char *s = json_get_string(v), *wrong = api_check_cidr(s);
        if (wrong) {
            api_invalid(c, API_FIELD("spec.podCIDRs[%zu]", i), v, "%s", wrong);
        }
        n[strchr(s, ':') != NULL]++;
    }
    if (n[0] > 1 || n[1] > 1) {
        api_invalid(c, "spec.podCIDRs", list,
                    "may specify no more than one CIDR for each IP family");
    }
}

/* Fields that are set once, and then stay. */
static void validate_kept(const struct json *spec, const struct json *old, struct api_causes *c)
{
    static const struct {
        const char *key, *text;
    } kept[] = {
        {"podCIDR", "node updates may not change podCIDR except from \"\" to valid"},
        {"podCIDRs", "node updates may not change podCIDR except from \"\" to valid"},
        {"providerID", "node updates may not change providerID except from \"\" to valid"},
        {"externalID", "may not be updated"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        const struct json *was = json_get(old, kept[i].key), *is = json_get(spec, kept[i].key);
        if ((json_string_size(was) || json_count(was)) && !(is && json_equal(is, was))) {
            api_forbidden(c, API_FIELD("spec.%s", kept[i].key), "%s", kept[i].text);
        }
    }
}

void kind_node_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *status = json_get(obj, "status");
    validate_taints(json_get(spec, "taints"), c);
    validate_ranges(json_get(spec, "podCIDRs"), c);
    validate_addresses(json_get(status, "addresses"), old != NULL, c);
    validate_amounts(status, "capacity", c);
    validate_amounts(status, "allocatable", c);
    if (old) {
        validate_kept(spec, json_get(old, "spec"), c);
    }
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
