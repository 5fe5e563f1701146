/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of compute resources: names, amounts, requests within limits, and claims of devices. */
#include "api/kind_util.h"
#include "api/kinds/pod_priv.h"
#include "api/quantity.h"
#include "base/mem.h"

#define HUGE_PREFIX "hugepages-"
#define REQUESTS_PREFIX "requests."

/* ---- names ---- */

/* Without a domain, or of Kubernetes' own. */
static bool is_native(const char *name)
{
    return !strchr(name, '/') || strstr(name, "kubernetes.io/");
}

static bool is_huge(const char *name)
{
    return str_has_prefix(name, HUGE_PREFIX);
}

/* A resource of which more than there is cannot be promised: huge pages, and those of a domain. */
static bool is_overcommit_allowed(const char *name)
{
    return is_native(name) && !is_huge(name);
}

static bool is_extended(const char *name)
{
    CLEANUP_FREE char *of_quota = xasprintf(REQUESTS_PREFIX "%s", name);
    return !is_native(name) && !str_has_prefix(name, REQUESTS_PREFIX) &&
           !api_check_qualified_name(of_quota);
}

static bool is_of_container(const char *name)
{
    return streq(name, "cpu") || streq(name, "memory") || streq(name, "ephemeral-storage") ||
           is_huge(name);
}

static bool is_standard(const char *name)
{
    static const char *const others[] = {"requests.cpu",
                                         "requests.memory",
                                         "requests.ephemeral-storage",
                                         "limits.cpu",
                                         "limits.memory",
                                         "limits.ephemeral-storage",
                                         "pods",
                                         "resourcequotas",
                                         "services",
                                         "replicationcontrollers",
                                         "secrets",
                                         "configmaps",
                                         "persistentvolumeclaims",
                                         "storage",
                                         "requests.storage",
                                         "services.nodeports",
                                         "services.loadbalancers"};
    bool found = is_of_container(name) || str_has_prefix(name, REQUESTS_PREFIX HUGE_PREFIX);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        found |= streq(name, others[i]);
    }
    return found;
}

static void check_name(const struct pod_rules *r, const char *field, const char *name)
{
    CLEANUP(json_free) struct json *v = json_string(name);
    const char *wrong = api_check_qualified_name(name);
    if (wrong) {
        api_invalid(r->c, field, v, "%s", wrong);
    } else if (!strchr(name, '/') && !is_standard(name)) {
        api_invalid(r->c, field, v, "must be a standard resource type or fully qualified");
    }
    if (!strchr(name, '/')) {
        if (!is_of_container(name)) {
            api_invalid(r->c, field, v, "must be a standard resource for containers");
        }
    } else if (!is_native(name) && !is_extended(name)) {
        api_invalid(r->c, field, v, "doesn't follow extended resource name standard");
    }
}

/* ---- amounts ---- */

static const char *amount(const struct json *v)
{
    const char *s = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
    return s ? s : "0";
}

/* Pages are counted: 'name' is "hugepages-SIZE". */
static bool is_divisible(const char *name, const char *s)
{
    int64_t page, n;
    return api_quantity_value(name + strlen(HUGE_PREFIX), 0, &page, NULL) == 0 &&
           api_quantity_value(s, 0, &n, NULL) == 0 && page > 0 && n >= 0 && n % page == 0;
}

static void check_amount(const struct pod_rules *r, const char *field, const char *name,
                         const struct json *v)
{
    if (api_quantity_compare(amount(v), "0") < 0) {
        api_invalid(r->c, field, v, "must be greater than or equal to 0");
    }
    if (is_extended(name) && !api_quantity_is_whole(amount(v))) {
        api_invalid(r->c, field, v, "must be an integer");
    }
    if (is_huge(name) && !is_divisible(name, amount(v))) {
        api_invalid(r->c, field, v, "%s is not positive integer multiple of %s", amount(v), name);
    }
}

static void check_map(const struct pod_rules *r, const char *field, const struct json *map,
                      bool *ret_huge, bool *ret_usual)
{
    for (size_t i = 0; i < json_count(map); i++) {
        const char *name = json_key_at(map, i), *at = API_FIELD("%s[%.128s]", field, name);
        check_name(r, at, name);
        check_amount(r, at, name, json_at(map, i));
        *ret_huge |= is_huge(name);
        *ret_usual |= streq(name, "cpu") || streq(name, "memory");
    }
}

static void check_within(const struct pod_rules *r, const char *field, const struct json *requests,
                         const struct json *limits)
{
    for (size_t i = 0; i < json_count(requests); i++) {
        const char *name = json_key_at(requests, i);
        const struct json *request = json_at(requests, i), *limit = json_get(limits, name);
        int more = limit ? api_quantity_compare(amount(request), amount(limit)) : 0;
        if (!limit && !is_overcommit_allowed(name)) {
            api_required(r->c, API_FIELD("%s.limits", field),
                         "Limit must be set for non overcommitable resources");
        } else if (more && !is_overcommit_allowed(name)) {
            api_invalid(r->c, API_FIELD("%s.requests", field), request,
                        "must be equal to %s limit of %s", name, amount(limit));
        } else if (more > 0) {
            api_invalid(r->c, API_FIELD("%s.requests", field), request,
                        "must be less than or equal to %s limit of %s", name, amount(limit));
        }
    }
}

/* ---- claims ---- */

static void check_claim_name(const struct pod_rules *r, const char *field, const struct json *name)
{
    CLEANUP_STRBUF struct strbuf names = STRBUF_INIT;
    const struct json *claim;
    if (smap_get(r->claims, json_get_string(name)) || r->c->n == API_MAX_CAUSES) {
        return;
    }
    JSON_FOREACH (claim, json_get(r->spec, "resourceClaims")) {
        strbuf_addf(&names, "%s%.63s", names.size ? ", " : ": ", json_get_text(claim, "name"));
    }
    api_not_found(r->c, field, name, "must be one of the names in pod.spec.resourceClaims%s",
                  names.size ? strbuf_cstr(&names) : " which is empty");
}

void pod_check_claims(const struct pod_rules *r, const char *field)
{
    static const char *const refs[] = {"resourceClaimName", "resourceClaimTemplateName"};
    const struct json *claims = json_get(r->spec, "resourceClaims");
    for (size_t i = 0; i < json_count(claims); i++) {
        const struct json *claim = json_at(claims, i), *name = json_get(claim, "name");
        const char *at = API_FIELD("%s[%zu]", field, i);
        size_t n = 0;
        if (json_string_size(name) == 0) {
            api_required(r->c, API_FIELD("%s.name", at), "");
        }
        for (size_t k = 0; k < ARRAY_SIZE(refs); k++) {
            n += json_get(claim, refs[k]) != NULL;
        }
        if (n > 1) {
            api_invalid(r->c, at, claim,
                        "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                        "specified");
        } else if (n == 0) {
            api_invalid(r->c, at, claim,
                        "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
        }
    }
}

void pod_check_resources(const struct pod_rules *r, const char *field, const struct json *resources)
{
    const struct json *limits = json_get(resources, "limits");
    const struct json *requests = json_get(resources, "requests");
    const struct json *claims = json_get(resources, "claims");
    bool huge = false, usual = false;
    check_map(r, API_FIELD("%s.limits", field), limits, &huge, &usual);
    check_map(r, API_FIELD("%s.requests", field), requests, &huge, &usual);
    check_within(r, field, requests, limits);
    if (huge && !usual) {
        api_forbidden(r->c, field, "HugePages require cpu or memory");
    }
    for (size_t i = 0; i < json_count(claims); i++) {
        const char *at = API_FIELD("%s.claims[%zu]", field, i);
        const struct json *name = json_get(json_at(claims, i), "name");
        if (json_string_size(name) == 0) {
            api_required(r->c, at, "");
        } else {
            check_claim_name(r, at, name);
        }
    }
}

/* Resources of the pod as a whole: less than one of its containers has is too little. */
void pod_check_whole(const struct pod_rules *r, const char *field)
{
    static const char *const known[] = {"cpu", HUGE_PREFIX, "memory", NULL};
    static const char *const lists[] = {"limits", "requests"};
    const struct json *whole = json_get(r->spec, "resources"), *limits = json_get(whole, "limits");
    const struct json *containers = json_get(r->spec, "containers");
    if (json_get(whole, "claims")) {
        api_forbidden(r->c, API_FIELD("%s.claims", field),
                      "claims cannot be set for Resources at pod-level");
    }
    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        const struct json *list = json_get(whole, lists[k]);
        for (size_t i = 0; i < json_count(list); i++) {
            const char *name = json_key_at(list, i);
            const char *at = API_FIELD("%s.%s[%.128s]", field, lists[k], name);
            CLEANUP(json_free) struct json *shown = json_string(name);
            if (!streq(name, "cpu") && !streq(name, "memory") && !is_huge(name)) {
                api_unsupported(r->c, at, shown, known);
            }
            check_amount(r, at, name, json_at(list, i));
        }
    }
    check_within(r, field, json_get(whole, "requests"), limits);
    for (size_t i = 0; i < json_count(containers); i++) {
        const struct json *own = json_path(json_at(containers, i), "resources", "limits", NULL);
        for (size_t k = 0; k < json_count(own); k++) {
            const struct json *most = json_get(limits, json_key_at(own, k)), *v = json_at(own, k);
            if (most && api_quantity_compare(amount(v), amount(most)) > 0) {
                api_invalid(
                    r->c,
                    API_FIELD("%s.containers[%zu][%.128s].limits", field, i, json_key_at(own, k)),
                    v, "must be less than or equal to pod limits of %s", amount(most));
            }
        }
    }
}

void pod_check_overhead(const struct pod_rules *r, const char *field)
{
    bool huge = false, usual = false;
    check_map(r, API_FIELD("%s.limits", field), json_get(r->spec, "overhead"), &huge, &usual);
    if (huge && !usual) {
        api_forbidden(r->c, field, "HugePages require cpu or memory");
    }
}
