/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuota and LimitRange (core v1), ClusterResourceQuota (quota.openshift.io/v1): the rules
 * beyond their descriptions, in the words of kube-apiserver and OpenShift. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/template.h"
#include "api/label_selector.h"
#include "api/quantity.h"
#include "base/mem.h"

/* ---- cells ---- */

/* "pods: 1/4, secrets: 2/9" of the resources that are limits, or of the others. */
static struct json *usage(const struct json *obj, bool limits)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *hard = json_path(obj, "status", "hard", NULL);
    for (size_t i = 0; json_is(hard, JSON_OBJECT) && i < json_count(hard); i++) {
        const char *name = json_key_at(hard, i), *most = json_get_string(json_at(hard, i));
        const char *used = json_path_string(obj, "status", "used", name, NULL);
        if (str_has_prefix(name, "limits.") == limits) {
            strbuf_addf(&b, "%s%s: %s/%s", b.size ? ", " : "", name, used ? used : "0",
                        most ? most : "?");
        }
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_resource_quota_cell_request(const struct json *obj, int64_t now_ms)
{
    return usage(obj, false);
}

struct json *kind_resource_quota_cell_limit(const struct json *obj, int64_t now_ms)
{
    return usage(obj, true);
}

/* ---- names of resources ---- */

#define MAX_RESOURCES 64 /* The same bound is in src/quota. */
#define CLASS_INFIX ".storageclass.storage.k8s.io/"

static bool is_among(const char *const *list, const char *s)
{
    while (*list && !streq(*list, s)) {
        list++;
    }
    return *list != NULL;
}

/* The compute resources of pods. */
static bool is_compute(const char *name)
{
    static const char *const names[] = {
        "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory", NULL};
    return is_among(names, name);
}

/* Resources that are counted in whole numbers. */
static bool is_count(const char *name)
{
    static const char *const names[] = {"pods",
                                        "services",
                                        "replicationcontrollers",
                                        "resourcequotas",
                                        "secrets",
                                        "configmaps",
                                        "persistentvolumeclaims",
                                        "services.nodeports",
                                        "services.loadbalancers",
                                        NULL};
    return is_among(names, name) || str_has_prefix(name, "count/") ||
           str_has_suffix(name, CLASS_INFIX "persistentvolumeclaims");
}

/* The names without a domain. */
static bool is_standard(const char *name)
{
    static const char *const names[] = {"ephemeral-storage", "requests.ephemeral-storage",
                                        "limits.ephemeral-storage", "requests.storage", NULL};
    return is_compute(name) || is_count(name) || is_among(names, name) ||
           str_has_prefix(name, "hugepages-") || str_has_prefix(name, "requests.hugepages-");
}

static const char *amount_text(const struct json *v)
{
    const char *s = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
    return s ? s : "0";
}

static void check_resource(struct api_causes *c, const char *field, const char *name,
                           const struct json *amount)
{
    CLEANUP(json_free) struct json *v = json_string(name);
    const char *wrong = api_check_qualified_name(name);
    if (wrong) {
        api_invalid(c, field, v, "%s", wrong);
    } else if (!strchr(name, '/') && !is_standard(name)) {
        api_invalid(c, field, v, "must be a standard resource for quota");
    }
    if (api_quantity_compare(amount_text(amount), "0") < 0) {
        api_invalid(c, field, amount, "must be greater than or equal to 0");
    } else if (is_count(name) && !api_quantity_is_whole(amount_text(amount))) {
        api_invalid(c, field, amount, "must be an integer");
    }
}

/* ---- scopes ---- */

/* Whether the scope restricts what the resource counts; scopes select pods only. */
static bool scope_fits(const char *scope, const char *resource)
{
    return streq(resource, "pods") || (!streq(scope, "BestEffort") && is_compute(resource));
}

static void check_scope(struct api_causes *c, const char *field, const char *scope,
                        const struct json *scopes, const struct json *hard)
{
    for (size_t i = 0; i < json_count(hard); i++) {
        const char *name = json_key_at(hard, i);
        if (is_standard(name) && !str_has_prefix(name, "count/") && !scope_fits(scope, name)) {
            api_invalid(c, field, scopes, "unsupported scope applied to resource");
        }
    }
}

static bool has_scope(const struct json *scopes, const char *member, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, scopes) {
        if (streq_null(json_get_string(member ? json_get(item, member) : item), name)) {
            return true;
        }
    }
    return false;
}

/* 'member': the name of the scope in an element; NULL: the element is the name. */
static void check_conflicts(struct api_causes *c, const char *field, const struct json *scopes,
                            const char *member)
{
    static const char *const pairs[][2] = {{"BestEffort", "NotBestEffort"},
                                           {"Terminating", "NotTerminating"}};
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        if (has_scope(scopes, member, pairs[i][0]) && has_scope(scopes, member, pairs[i][1])) {
            api_invalid(c, field, scopes, "conflicting scopes");
        }
    }
}

static const char *const scope_names[] = {"BestEffort",
                                          "CrossNamespacePodAffinity",
                                          "NotBestEffort",
                                          "NotTerminating",
                                          "PriorityClass",
                                          "Terminating",
                                          NULL};

static void check_requirement(struct api_causes *c, const char *field, const struct json *r,
                              const struct json *hard)
{
    const char *scope = json_get_text(r, "scopeName"), *op = json_get_text(r, "operator");
    const struct json *values = json_get(r, "values");
    CLEANUP_FREE char *of_values = xasprintf("%s.values", field);
    bool listed = streq(op, "In") || streq(op, "NotIn");
    if (!is_among(scope_names, scope)) {
        api_invalid(c, API_FIELD("%s.scopeName", field), json_get(r, "scopeName"),
                    "unsupported scope");
        return;
    }
    check_scope(c, field, scope, r, hard);
    if (!streq(scope, "PriorityClass") && !streq(op, "Exists")) {
        api_invalid(c, API_FIELD("%s.operator", field), json_get(r, "operator"),
                    "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
                    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                    "ResourceQuotaScopeNotBestEffort or "
                    "ResourceQuotaScopeCrossNamespacePodAffinity");
    }
    if (listed && !json_count(values)) {
        api_required(c, of_values,
                     "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                     "selector");
    } else if (!listed && json_count(values)) {
        api_invalid(c, of_values, values,
                    "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope "
                    "selector");
    }
}

/* ---- rules ---- */

static void check_quota_spec(struct api_causes *c, const char *field, const struct json *spec)
{
    const struct json *hard = json_get(spec, "hard"), *scopes = json_get(spec, "scopes");
    const struct json *list = json_path(spec, "scopeSelector", "matchExpressions", NULL);
    if (json_count(hard) > MAX_RESOURCES) {
        api_too_many(c, API_FIELD("%s.hard", field), json_count(hard), MAX_RESOURCES);
    }
    for (size_t i = 0; i < json_count(hard); i++) {
        const char *name = json_key_at(hard, i);
        check_resource(c, API_FIELD("%s.hard[%s]", field, name), name, json_at(hard, i));
    }
    for (size_t i = 0; i < json_count(scopes); i++) {
        check_scope(c, API_FIELD("%s.scopes", field), json_get_string(json_at(scopes, i)), scopes,
                    hard);
    }
    check_conflicts(c, API_FIELD("%s.scopes", field), scopes, NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        check_requirement(c, API_FIELD("%s.scopeSelector.matchExpressions[%zu]", field, i),
                          json_at(list, i), hard);
    }
    check_conflicts(c, API_FIELD("%s.scopeSelector.matchExpressions", field), list, "scopeName");
}

void kind_resource_quota_prepare(struct json *obj, const struct json *old)
{
    (void) template_prepare(obj, old);
}

void kind_resource_quota_validate(const struct json *obj, const struct json *old,
                                  struct api_causes *c)
{
    static const char *const fixed[] = {"scopes", "scopeSelector"};
    const struct json *spec = json_get(obj, "spec");
    check_quota_spec(c, "spec", spec);
    for (size_t i = 0; i < ARRAY_SIZE(fixed) && old; i++) {
        api_field_immutable(c, API_FIELD("spec.%s", fixed[i]), json_get(spec, fixed[i]),
                            json_path(old, "spec", fixed[i], NULL));
    }
}

/* ---- LimitRange ---- */

/* Sets the amounts of 'from' that 'to' lacks. */
static void default_amounts(struct json *item, const char *to, const char *from)
{
    const struct json *map = json_get(item, from);
    for (size_t i = 0; json_is(map, JSON_OBJECT) && i < json_count(map); i++) {
        struct json *into = api_default_object(item, to);
        const char *name = json_key_at(map, i);
        if (json_is(into, JSON_OBJECT) && !json_get(into, name)) {
            json_set(into, name, json_clone(json_at(map, i)));
        }
    }
}

/* Completes the limits of containers as Kubernetes does: "default" is "max" unless it is given, and
 * "defaultRequest" is "default", or else "min". */
void kind_limit_range_defaults(struct json *obj)
{
    struct json *list = json_get(json_get(obj, "spec"), "limits");
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_count(list); i++) {
        struct json *item = json_at(list, i);
        if (streq_null(json_get_string(json_get(item, "type")), "Container")) {
            default_amounts(item, "default", "max");
            default_amounts(item, "defaultRequest", "default");
            default_amounts(item, "defaultRequest", "min");
        }
    }
}

/* An order that two amounts of a LimitRange must keep. */
struct limit_order {
    const char *less, *more; /* Members of the item. */
    const char *field;       /* The member that is reported, with its value or that of 'value'. */
    const char *value;
    const char *less_word, *more_word;
};

static const struct limit_order orders[] = {
    {"min", "max", "min", "min", "min", "max"},
    {"min", "defaultRequest", "defaultRequest", "defaultRequest", "min", "default request"},
    {"defaultRequest", "max", "defaultRequest", "defaultRequest", "default request", "max"},
    {"defaultRequest", "default", "defaultRequest", "defaultRequest", "default request",
     "default limit"},
    {"min", "default", "default", "min", "min", "default"},
    {"default", "max", "default", "max", "default", "max"},
};

static void check_orders(struct api_causes *c, const char *field, const struct json *item)
{
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        const struct limit_order *o = &orders[i];
        const struct json *map = json_get(item, o->less);
        for (size_t k = 0; k < json_count(map); k++) {
            const char *name = json_key_at(map, k);
            const struct json *less = json_at(map, k), *more = json_path(item, o->more, name, NULL);
            if (more && api_quantity_compare(amount_text(less), amount_text(more)) > 0) {
                api_invalid(c, API_FIELD("%s.%s[%s]", field, o->field, name),
                            json_path(item, o->value, name, NULL),
                            "%s value %s is greater than %s value %s", o->less_word,
                            amount_text(less), o->more_word, amount_text(more));
            }
        }
    }
}

static void check_ratios(struct api_causes *c, const char *field, const struct json *item)
{
    const struct json *map = json_get(item, "maxLimitRequestRatio");
    for (size_t i = 0; i < json_count(map); i++) {
        const char *name = json_key_at(map, i), *ratio = amount_text(json_at(map, i));
        const char *where = API_FIELD("%s.maxLimitRequestRatio[%s]", field, name);
        const struct json *min = json_path(item, "min", name, NULL);
        const struct json *max = json_path(item, "max", name, NULL);
        int64_t least = 0, most = 0, times = 0;
        (void) api_quantity_value(ratio, -3, &times, NULL);
        (void) api_quantity_value(amount_text(min), -3, &least, NULL);
        (void) api_quantity_value(amount_text(max), -3, &most, NULL);
        if (api_quantity_compare(ratio, "1") < 0) {
            api_invalid(c, where, json_at(map, i), "ratio %s is less than 1", ratio);
        } else if (min && max && least > 0 &&
                   (double) times / 1000 > (double) most / (double) least) {
            api_invalid(c, where, json_at(map, i), "ratio %s is greater than max/min = %f", ratio,
                        (double) most / (double) least);
        }
    }
}

static void check_limit_type(struct api_causes *c, const char *field, const struct json *item)
{
    static const char *const types[] = {"Container", "PersistentVolumeClaim", "Pod", NULL};
    static const char *const defaults[] = {"default", "defaultRequest"};
    const char *type = json_get_text(item, "type");
    if (!strchr(type, '/') && !is_among(types, type)) {
        api_invalid(c, API_FIELD("%s.type", field), json_get(item, "type"),
                    "must be a standard limit type or fully qualified");
    }
    for (size_t i = 0; i < ARRAY_SIZE(defaults) && streq(type, "Pod"); i++) {
        if (json_count(json_get(item, defaults[i]))) {
            api_forbidden(c, API_FIELD("%s.%s", field, defaults[i]),
                          "may not be specified when `type` is 'Pod'");
        }
    }
    if (streq(type, "PersistentVolumeClaim") && !json_path(item, "min", "storage", NULL) &&
        !json_path(item, "max", "storage", NULL)) {
        api_required(c, API_FIELD("%s.limits", field),
                     "either minimum or maximum storage value is required, but neither was "
                     "provided");
    }
}

static void check_limit_names(struct api_causes *c, const char *field, const struct json *item)
{
    static const char *const maps[] = {"max", "min", "default", "defaultRequest",
                                       "maxLimitRequestRatio"};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        const struct json *map = json_get(item, maps[i]);
        for (size_t k = 0; k < json_count(map); k++) {
            const char *name = json_key_at(map, k), *wrong = api_check_qualified_name(name);
            const char *where = API_FIELD("%s.%s[%s]", field, maps[i], name);
            CLEANUP(json_free) struct json *v = json_string(name);
            if (wrong) {
                api_invalid(c, where, v, "%s", wrong);
            } else if (api_quantity_compare(amount_text(json_at(map, k)), "0") < 0) {
                api_invalid(c, where, json_at(map, k), "must be greater than or equal to 0");
            }
        }
    }
}

void kind_limit_range_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *list = json_path(obj, "spec", "limits", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *item = json_at(list, i), *type = json_get(item, "type");
        const char *field = API_FIELD("spec.limits[%zu]", i);
        check_limit_type(c, field, item);
        check_limit_names(c, field, item);
        check_orders(c, field, item);
        check_ratios(c, field, item);
        for (size_t k = 0; k < i; k++) {
            if (json_equal(json_get(json_at(list, k), "type"), type)) {
                api_duplicate(c, API_FIELD("spec.limits[%zu].type", i), type);
                break;
            }
        }
    }
}

/* ---- ClusterResourceQuota ---- */

static bool has_labels(const struct json *selector)
{
    return !label_selector_is_empty(json_get(selector, "labels"));
}

struct json *kind_cluster_resource_quota_cell_labels(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *selector = json_path(obj, "spec", "selector", NULL);
    if (has_labels(selector)) {
        label_selector_write(json_get(selector, "labels"), &b);
    }
    return api_cell_text(strbuf_cstr(&b), "<none>");
}

struct json *kind_cluster_resource_quota_cell_annotations(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *map = json_path(obj, "spec", "selector", "annotations", NULL);
    for (size_t i = 0; i < json_count(map); i++) {
        const char *value = json_get_string(json_at(map, i));
        strbuf_addf(&b, "%s%s=%s", i ? "," : "", json_key_at(map, i), value ? value : "");
    }
    return api_cell_text(strbuf_cstr(&b), "<none>");
}

void kind_cluster_resource_quota_prepare(struct json *obj, const struct json *old)
{
    if (!old) {
        json_remove(obj, "status");
    }
}

void kind_cluster_resource_quota_validate(const struct json *obj, const struct json *old,
                                          struct api_causes *c)
{
    static const char why[] = "must restrict the selected projects";
    const struct json *selector = json_path(obj, "spec", "selector", NULL);
    const struct json *labels = json_get(selector, "labels");
    const struct json *annotations = json_get(selector, "annotations");
    if (!has_labels(selector) && !json_count(annotations)) {
        api_required(c, "spec.selector", why);
    }
    if (json_is(labels, JSON_OBJECT)) {
        label_selector_check(c, "spec.selector.labels", labels);
        if (!has_labels(selector)) {
            api_invalid(c, "spec.selector.labels", labels, why);
        }
    }
    if (json_is(annotations, JSON_OBJECT)) {
        api_validate_annotations(c, "spec.selector.annotations", annotations);
    }
    check_quota_spec(c, "spec.quota", json_path(obj, "spec", "quota", NULL));
}
