/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of what a scheduler goes by: node selectors, affinity, tolerations, spreading, gates. */
#include "api/kind_util.h"
#include "api/kinds/pod_priv.h"
#include "api/label_selector.h"
#include "base/mem.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static void check_label_name(struct api_causes *c, const char *field, const struct json *name)
{
    CLEANUP(json_free) struct json *empty = json_string("");
    const struct json *v = name ? name : empty;
    const char *wrong = api_check_qualified_name(json_get_string(v));
    if (wrong) {
        api_invalid(c, field, v, "%s", wrong);
    }
}

/* ---- nodes ---- */

static const struct {
    const char *name;
    size_t least, most; /* Numbers of values. */
    bool forbidden;     /* The cause of a wrong number is Forbidden. */
    const char *text;
} operators[] = {
    {"In", 1, SIZE_MAX, false, "must be specified when `operator` is 'In' or 'NotIn'"},
    {"NotIn", 1, SIZE_MAX, false, "must be specified when `operator` is 'In' or 'NotIn'"},
    {"Exists", 0, 0, true, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
    {"DoesNotExist", 0, 0, true,
     "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"},
    {"Gt", 1, 1, false, "must be specified single value when `operator` is 'Lt' or 'Gt'"},
    {"Lt", 1, 1, false, "must be specified single value when `operator` is 'Lt' or 'Gt'"},
};

static void check_expression(struct api_causes *c, const char *field, const struct json *v,
                             bool demanded)
{
    const struct json *values = json_get(v, "values");
    const char *name = json_get_text(v, "operator"), *at = API_FIELD("%s.values", field);
    size_t n = json_count(values), i = 0;
    while (i < ARRAY_SIZE(operators) && !streq(operators[i].name, name)) {
        i++;
    }
    if (i == ARRAY_SIZE(operators)) {
        api_invalid(c, API_FIELD("%s.operator", field), json_get(v, "operator"),
                    "not a valid selector operator");
    } else if (n < operators[i].least || n > operators[i].most) {
        (operators[i].forbidden ? api_forbidden : api_required)(c, at, "%s", operators[i].text);
    }
    check_label_name(c, API_FIELD("%s.key", field), json_get(v, "key"));
    for (size_t k = 0; demanded && k < n; k++) {
        const char *wrong = api_check_label_value(json_get_string(json_at(values, k)));
        if (wrong) {
            api_invalid(c, API_FIELD("%s[%zu]", at, k), json_at(values, k), "%s", wrong);
        }
    }
}

static void check_field(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *values = json_get(v, "values");
    const char *operator= json_get_text(v, "operator"), *at = API_FIELD("%s.values", field);
    if (!streq(operator, "In") && !streq(operator, "NotIn")) {
        api_invalid(c, API_FIELD("%s.operator", field), json_get(v, "operator"),
                    "not a valid selector operator");
    } else if (json_count(values) != 1) {
        api_required(c, at,
                     "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                     "selector");
    }
    if (!streq(json_get_text(v, "key"), "metadata.name")) {
        api_invalid(c, API_FIELD("%s.key", field), json_get(v, "key"),
                    "not a valid field selector key");
        return;
    }
    for (size_t i = 0; i < json_count(values); i++) {
        const char *wrong = api_check_dns_subdomain(json_get_string(json_at(values, i)));
        if (wrong) {
            api_invalid(c, API_FIELD("%s[%zu]", at, i), json_at(values, i), "%s", wrong);
        }
    }
}

static void check_node_term(struct api_causes *c, const char *field, const struct json *term,
                            bool demanded)
{
    const struct json *expressions = json_get(term, "matchExpressions");
    const struct json *fields = json_get(term, "matchFields");
    for (size_t i = 0; i < json_count(expressions); i++) {
        check_expression(c, API_FIELD("%s.matchExpressions[%zu]", field, i),
                         json_at(expressions, i), demanded);
    }
    for (size_t i = 0; i < json_count(fields); i++) {
        check_field(c, API_FIELD("%s.matchFields[%zu]", field, i), json_at(fields, i));
    }
}

static void check_weight(struct api_causes *c, const char *field, const struct json *wish)
{
    const struct json *weight = json_get(wish, "weight");
    int64_t n = json_get_int_or(weight, 0);
    if (n < 1 || n > 100) {
        api_invalid(c, API_FIELD("%s.weight", field), weight, "must be in the range 1-100");
    }
}

static void check_node_affinity(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *demand = json_get(v, REQUIRED), *wishes = json_get(v, PREFERRED);
    const struct json *terms = json_get(demand, "nodeSelectorTerms");
    const char *at = API_FIELD("%s." REQUIRED ".nodeSelectorTerms", field);
    if (demand && json_count(terms) == 0) {
        api_required(c, at, "must have at least one node selector term");
    }
    for (size_t i = 0; i < json_count(terms); i++) {
        check_node_term(c, API_FIELD("%s[%zu]", at, i), json_at(terms, i), true);
    }
    for (size_t i = 0; i < json_count(wishes); i++) {
        const char *wish = API_FIELD("%s." PREFERRED "[%zu]", field, i);
        check_weight(c, wish, json_at(wishes, i));
        check_node_term(c, API_FIELD("%s.preference", wish),
                        json_get(json_at(wishes, i), "preference"), false);
    }
}

/* ---- pods ---- */

static bool has_text(const struct json *list, const struct json *text)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (json_equal(item, text)) {
            return true;
        }
    }
    return false;
}

static bool selects_by(const struct json *selector, const struct json *key)
{
    const struct json *e;
    if (json_get(json_get(selector, "matchLabels"), json_get_string(key))) {
        return true;
    }
    JSON_FOREACH (e, json_get(selector, "matchExpressions")) {
        if (streq(json_get_text(e, "key"), json_get_string(key))) {
            return true;
        }
    }
    return false;
}

/* Keys of labels whose values are the pod's own, beside the selector. */
static void check_label_keys(struct api_causes *c, const char *field, const struct json *keys,
                             const struct json *selector, bool unselected)
{
    if (json_count(keys) && !selector) {
        api_forbidden(c, field, "must not be specified when labelSelector is not set");
    }
    for (size_t i = 0; i < json_count(keys) && c->n < API_MAX_CAUSES; i++) {
        const struct json *key = json_at(keys, i);
        check_label_name(c, API_FIELD("%s[%zu]", field, i), key);
        if (unselected && selects_by(selector, key)) {
            api_invalid(c, API_FIELD("%s[%zu]", field, i), key,
                        "exists in both matchLabelKeys and labelSelector");
        }
    }
}

static void check_pod_term(struct api_causes *c, const char *field, const struct json *term)
{
    const struct json *selector = json_get(term, "labelSelector"), *ns;
    const struct json *match = json_get(term, "matchLabelKeys");
    const struct json *mismatch = json_get(term, "mismatchLabelKeys");
    const struct json *key = json_get(term, "topologyKey");
    label_selector_check(c, API_FIELD("%s.labelSelector", field), selector);
    label_selector_check(c, API_FIELD("%s.namespaceSelector", field),
                         json_get(term, "namespaceSelector"));
    JSON_FOREACH (ns, json_get(term, "namespaces")) {
        const char *wrong = api_check_dns_label(json_get_string(ns));
        if (wrong) {
            api_invalid(c, API_FIELD("%s.namespace", field), ns, "%s", wrong);
        }
    }
    check_label_keys(c, API_FIELD("%s.matchLabelKeys", field), match, selector, false);
    check_label_keys(c, API_FIELD("%s.mismatchLabelKeys", field), mismatch, selector, false);
    for (size_t i = 0; i < json_count(match) && c->n < API_MAX_CAUSES; i++) {
        if (has_text(mismatch, json_at(match, i))) {
            api_invalid(c, API_FIELD("%s.matchLabelKeys[%zu]", field, i), json_at(match, i),
                        "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
    if (json_string_size(key) == 0) {
        api_required(c, API_FIELD("%s.topologyKey", field), "can not be empty");
    }
    check_label_name(c, API_FIELD("%s.topologyKey", field), key);
}

static void check_pod_affinity(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *demands = json_get(v, REQUIRED), *wishes = json_get(v, PREFERRED);
    for (size_t i = 0; i < json_count(demands); i++) {
        check_pod_term(c, API_FIELD("%s." REQUIRED "[%zu]", field, i), json_at(demands, i));
    }
    for (size_t i = 0; i < json_count(wishes); i++) {
        const char *at = API_FIELD("%s." PREFERRED "[%zu]", field, i);
        check_weight(c, at, json_at(wishes, i));
        check_pod_term(c, API_FIELD("%s.podAffinityTerm", at),
                       json_get(json_at(wishes, i), "podAffinityTerm"));
    }
}

/* ---- tolerations ---- */

static void check_toleration(struct api_causes *c, const char *field, const struct json *t)
{
    static const char *const known[] = {"Equal", "Exists", NULL};
    const char *at = API_FIELD("%s.operator", field), *effect = json_get_text(t, "effect");
    const char *operator= json_get_text(t, "operator");
    const struct json *value = json_get(t, "value"), *given = json_get(t, "operator");
    CLEANUP(json_free) struct json *empty = json_string("");
    bool exists = streq(operator, "Exists");
    if (json_string_size(json_get(t, "key")) == 0 && !exists) {
        api_invalid(c, at, given ? given : empty,
                    "operator must be Exists when `key` is empty, which means \"match all values "
                    "and all keys\"");
    }
    if (json_get(t, "tolerationSeconds") && !streq(effect, "NoExecute")) {
        api_invalid(c, API_FIELD("%s.effect", field),
                    json_get(t, "effect") ? json_get(t, "effect") : empty,
                    "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    const char *wrong =
        json_string_size(value) ? api_check_label_value(json_get_string(value)) : NULL;
    if (exists && json_string_size(value)) {
        api_invalid(c, at, value, "value must be empty when `operator` is 'Exists'");
    } else if (!exists && *operator&& !streq(operator, "Equal")) {
        api_unsupported(c, at, given, known);
    } else if (!exists && wrong) {
        api_invalid(c, at, value, "%s", wrong);
    }
}

void pod_check_tolerations(struct api_causes *c, const char *field, const struct json *list)
{
    for (size_t i = 0; i < json_count(list); i++) {
        check_toleration(c, API_FIELD("%s[%zu]", field, i), json_at(list, i));
    }
}

/* ---- spreading and gates ---- */

static void check_positive(struct api_causes *c, const char *field, const struct json *v)
{
    if (json_get_int_or(v, 1) <= 0) {
        api_invalid(c, field, v, "must be greater than zero");
    }
}

static void check_constraint(struct api_causes *c, const char *field, const struct json *v)
{
    const struct json *selector = json_get(v, "labelSelector");
    const struct json *domains = json_get(v, "minDomains");
    const char *action = json_get_text(v, "whenUnsatisfiable");
    check_positive(c, API_FIELD("%s.maxSkew", field), json_get(v, "maxSkew"));
    if (json_string_size(json_get(v, "topologyKey")) == 0) {
        api_required(c, API_FIELD("%s.topologyKey", field), "can not be empty");
    }
    check_positive(c, API_FIELD("%s.minDomains", field), domains);
    if (domains && !streq(action, "DoNotSchedule")) {
        api_invalid(c, API_FIELD("%s.minDomains", field), domains,
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %s", action);
    }
    check_label_keys(c, API_FIELD("%s.matchLabelKeys", field), json_get(v, "matchLabelKeys"),
                     selector, true);
    label_selector_check(c, API_FIELD("%s.labelSelector", field), selector);
}

static void check_spreading(struct api_causes *c, const char *field, const struct json *list)
{
    struct smap seen;
    smap_init(&seen, NULL);
    /* The first of two equal elements is refused, as in Kubernetes. */
    for (size_t i = json_count(list); i-- > 0;) {
        const struct json *v = json_at(list, i);
        const char *at = API_FIELD("%s[%zu]", field, i);
        CLEANUP(json_free)
        struct json *key = json_stringf("{%s, %s}", json_get_text(v, "topologyKey"),
                                        json_get_text(v, "whenUnsatisfiable"));
        check_constraint(c, at, v);
        if (smap_get(&seen, json_get_string(key))) {
            api_duplicate(c, API_FIELD("%s.{topologyKey, whenUnsatisfiable}", at), key);
        }
        smap_set(&seen, json_get_string(key), &seen);
    }
    smap_done(&seen);
}

static void check_gates(struct api_causes *c, const char *field, const struct json *list)
{
    struct smap seen;
    smap_init(&seen, NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *name = json_get(json_at(list, i), "name");
        const char *at = API_FIELD("%s[%zu]", field, i);
        check_label_name(c, at, name);
        if (smap_get(&seen, json_get_text(json_at(list, i), "name"))) {
            api_duplicate(c, at, name);
        }
        smap_set(&seen, json_get_text(json_at(list, i), "name"), &seen);
    }
    smap_done(&seen);
}

void pod_check_scheduling(const struct pod_rules *r, const char *field)
{
    const struct json *affinity = json_get(r->spec, "affinity");
    const struct json *gates = json_get(r->spec, "schedulingGates");
    api_validate_labels(r->c, API_FIELD("%s.nodeSelector", field),
                        json_get(r->spec, "nodeSelector"));
    check_node_affinity(r->c, API_FIELD("%s.affinity.nodeAffinity", field),
                        json_get(affinity, "nodeAffinity"));
    check_pod_affinity(r->c, API_FIELD("%s.affinity.podAffinity", field),
                       json_get(affinity, "podAffinity"));
    check_pod_affinity(r->c, API_FIELD("%s.affinity.podAntiAffinity", field),
                       json_get(affinity, "podAntiAffinity"));
    pod_check_tolerations(r->c, API_FIELD("%s.tolerations", field),
                          json_get(r->spec, "tolerations"));
    check_spreading(r->c, API_FIELD("%s.topologySpreadConstraints", field),
                    json_get(r->spec, "topologySpreadConstraints"));
    check_gates(r->c, API_FIELD("%s.schedulingGates", field), gates);
}
