/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of pods: what an update may change, after ValidatePodUpdate of Kubernetes, and the rules
 * of a status between one write and the next. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/kind_pod.h"
#include "api/kinds/pod_priv.h"
#include "api/schema.h"
#include "api/typed.h"
#include "base/mem.h"

#define CHANGEABLE                                                                            \
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," \
    "`spec.tolerations` (only additions to existing tolerations),"                            \
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

/* ---- equality ---- */

static const struct api_schema *spec_schema(void)
{
    return api_schema_field(api_kind_pod.schema, "spec")->schema;
}

/* The spec as this server would have stored it. */
static struct json *defaulted(const struct json *spec, bool is_pod)
{
    struct json *copy = spec ? json_clone(spec) : json_object();
    api_typed_normalize(spec_schema(), copy);
    api_schema_default(spec_schema(), copy);
    pod_default_spec(copy, is_pod);
    return copy;
}

bool pod_spec_is_same(const struct json *spec, const struct json *old)
{
    if (json_equal(spec, old)) {
        return true;
    }
    CLEANUP(json_free) struct json *before = defaulted(old, true);
    return api_typed_same(spec_schema(), spec, before, NULL);
}

bool pod_template_is_same(const struct json *template, const struct json *old)
{
    CLEANUP(json_free) struct json *before = defaulted(json_get(old, "spec"), false);
    const struct api_schema *meta = &api_schema_object_meta;
    return api_typed_same(spec_schema(), json_get(template, "spec"), before, NULL) &&
           api_typed_same(meta, json_get(template, "metadata"), json_get(old, "metadata"), NULL);
}

/* ---- fields that may change ---- */

/* Replaces 'key' of 'obj' by its value in 'old'. */
static void put_back(struct json *obj, const struct json *old, const char *key)
{
    const struct json *v = json_get(old, key);
    if (v) {
        json_set(obj, key, json_clone(v));
    } else {
        json_remove(obj, key);
    }
}

/* -EPERM: containers were added or removed, so that they cannot be compared. */
static int check_containers(struct api_causes *c, const struct json *spec, const struct json *old)
{
    for (size_t i = 0; i <= POD_INIT_CONTAINERS; i++) {
        if (json_count(json_get(spec, pod_lists[i])) != json_count(json_get(old, pod_lists[i]))) {
            api_forbidden(c, API_FIELD("spec.%s", pod_lists[i]),
                          "pod updates may not add or remove containers");
            return -EPERM;
        }
    }
    return 0;
}

static void check_deadline(struct api_causes *c, const struct json *spec, const struct json *old)
{
    static const char field[] = "spec.activeDeadlineSeconds";
    const struct json *is = json_get(spec, "activeDeadlineSeconds");
    const struct json *was = json_get(old, "activeDeadlineSeconds");
    CLEANUP(json_free) struct json *nothing = json_null();
    if (was && !is) {
        api_invalid(c, field, nothing, "must not update from a positive integer to nil value");
    } else if (was && json_get_int_or(is, 0) > json_get_int_or(was, 0)) {
        api_invalid(c, field, is, "must be less than or equal to previous value");
    }
}

/* A toleration without the seconds, which may change. */
static char *toleration_key(const struct json *t)
{
    return xasprintf("%s\n%s\n%s\n%s", json_get_text(t, "key"), json_get_text(t, "operator"),
                     json_get_text(t, "value"), json_get_text(t, "effect"));
}

static void check_tolerations(struct api_causes *c, const struct json *spec, const struct json *old)
{
    const struct json *t;
    struct smap has;
    bool kept = true;
    smap_init(&has, NULL);
    JSON_FOREACH (t, json_get(spec, "tolerations")) {
        CLEANUP_FREE char *key = toleration_key(t);
        smap_set(&has, key, &has);
    }
    JSON_FOREACH (t, json_get(old, "tolerations")) {
        CLEANUP_FREE char *key = toleration_key(t);
        kept = kept && smap_get(&has, key);
    }
    smap_done(&has);
    if (!kept) {
        api_forbidden(c, "spec.tolerations",
                      "existing toleration can not be modified except its tolerationSeconds");
    }
}

static void check_gates(struct api_causes *c, const struct json *spec, const struct json *old)
{
    const struct json *gates = json_get(spec, "schedulingGates"), *gate;
    struct smap had;
    smap_init(&had, NULL);
    JSON_FOREACH (gate, json_get(old, "schedulingGates")) {
        smap_set(&had, json_get_text(gate, "name"), &had);
    }
    for (size_t i = 0; i < json_count(gates); i++) {
        const char *name = json_get_text(json_at(gates, i), "name");
        if (!smap_get(&had, name)) {
            api_forbidden(c, API_FIELD("spec.schedulingGates[%zu].name", i),
                          "only deletion is allowed, but found new scheduling gate '%s'", name);
        }
    }
    smap_done(&had);
}

/* ---- a pod that waits for its gates ---- */

static void check_selector_narrowed(struct api_causes *c, const struct json *is,
                                    const struct json *was)
{
    for (size_t i = 0; json_is(was, JSON_OBJECT) && i < json_count(was); i++) {
        const struct json *v = json_get(is, json_key_at(was, i));
        if (!v || !json_equal(v, json_at(was, i))) {
            api_invalid(c, "spec.nodeSelector", is,
                        "only additions to spec.nodeSelector are allowed (no mutations or "
                        "deletions)");
            return;
        }
    }
}

/* Whether 'is' begins with the elements of 'was'. */
static bool begins_with(const struct json *is, const struct json *was)
{
    for (size_t i = 0; i < json_count(was); i++) {
        if (!json_at(is, i) || !json_equal(json_at(is, i), json_at(was, i))) {
            return false;
        }
    }
    return true;
}

static bool term_only_narrowed(const struct json *is, const struct json *was)
{
    static const char *const keys[] = {"matchExpressions", "matchFields"};
    size_t before = 0, now = 0;
    bool narrowed = true;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        before += json_count(json_get(was, keys[i]));
        now += json_count(json_get(is, keys[i]));
        narrowed &= begins_with(json_get(is, keys[i]), json_get(was, keys[i]));
    }
    return narrowed && (before || !now); /* A term without requirements selects no node. */
}

static void check_affinity_narrowed(struct api_causes *c, const struct json *is,
                                    const struct json *was)
{
    static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";
    static const char field[] =
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms";
    const struct json *before = json_path(was, required, "nodeSelectorTerms", NULL);
    const struct json *now = json_path(is, required, "nodeSelectorTerms", NULL);
    if (json_count(before) && json_count(before) != json_count(now)) {
        api_invalid(c, field, now,
                    "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
        return;
    }
    for (size_t i = 0; i < json_count(before); i++) {
        if (!term_only_narrowed(json_at(now, i), json_at(before, i))) {
            api_invalid(c, API_FIELD("%s[%zu]", field, i), json_at(now, i),
                        "only additions are allowed (no mutations or deletions)");
        }
    }
}

/* Checks what a gated pod may change, and puts it back in 'spec'. */
static void check_gated(struct api_causes *c, struct json *spec, const struct json *old)
{
    const struct json *before = json_path(old, "affinity", "nodeAffinity", NULL);
    struct json *affinity = json_get(spec, "affinity");
    check_selector_narrowed(c, json_get(spec, "nodeSelector"), json_get(old, "nodeSelector"));
    check_affinity_narrowed(c, json_get(affinity, "nodeAffinity"), before);
    put_back(spec, old, "nodeSelector");
    if (affinity || before) {
        put_back(json_ensure_object(spec, "affinity"), json_get(old, "affinity"), "nodeAffinity");
    }
}

/* ---- the update ---- */

/* Puts the fields of 'spec' back that may change, or whose changes were checked. */
static void put_back_changeable(struct json *spec, const struct json *old)
{
    static const char *const keys[] = {"activeDeadlineSeconds", "schedulingGates", "tolerations"};
    static const char grace[] = "terminationGracePeriodSeconds";
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        put_back(spec, old, keys[i]);
    }
    for (size_t i = 0; i <= POD_INIT_CONTAINERS; i++) {
        struct json *list = json_get(spec, pod_lists[i]);
        for (size_t k = 0; k < json_count(list); k++) {
            put_back(json_at(list, k), json_at(json_get(old, pod_lists[i]), k), "image");
        }
    }
    if (json_get_int_or(json_get(old, grace), 0) < 0 &&
        json_get_int_or(json_get(spec, grace), 0) == 1) {
        put_back(spec, old, grace);
    }
}

void pod_check_update(struct api_causes *c, const struct json *obj, const struct json *old)
{
    const struct json *spec = json_get(obj, "spec");
    CLEANUP(json_free) struct json *before = defaulted(json_get(old, "spec"), true);
    CLEANUP(json_free) struct json *now = json_clone(spec);
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    if (check_containers(c, spec, before) < 0) {
        return;
    }
    check_deadline(c, spec, before);
    check_tolerations(c, spec, before);
    check_gates(c, spec, before);
    put_back_changeable(now, before);
    if (json_count(json_get(before, "schedulingGates"))) {
        check_gated(c, now, before);
    }
    if (!api_typed_same(spec_schema(), now, before, &path)) {
        api_forbidden(c, "spec",
                      "pod updates may not change fields other than " CHANGEABLE
                      "\nspec.%.200s was changed",
                      strbuf_cstr(&path));
    }
}

void pod_check_ephemeral_update(struct api_causes *c, const struct json *obj,
                                const struct json *old)
{
    static const char field[] = "spec.ephemeralContainers";
    const struct json *mirrored =
        json_path(old, "metadata", "annotations", "kubernetes.io/config.mirror", NULL);
    const struct json *list = json_path(obj, "spec", "ephemeralContainers", NULL), *ct;
    const struct json *name;
    const struct api_schema *schema =
        api_schema_items(api_schema_field(spec_schema(), "ephemeralContainers")->schema);
    if (mirrored) {
        api_forbidden(c, field, "static pods do not support ephemeral containers");
    }
    JSON_FOREACH (ct, json_path(old, "spec", "ephemeralContainers", NULL)) {
        name = json_get(ct, "name");
        const struct json *now = pod_find_named(list, name);
        if (!now) {
            api_forbidden(c, field, "existing ephemeral containers \"%s\" may not be removed\n",
                          json_get_string(name));
        } else if (!api_typed_same(schema, now, ct, NULL)) {
            api_forbidden(c, field, "existing ephemeral containers \"%s\" may not be changed\n",
                          json_get_string(name));
        }
    }
}

/* ---- the status ---- */

/* Containers that have ended for good do not start again. */
static void check_states(struct api_causes *c, const char *list, const struct json *obj,
                         const struct json *old, const char *policy)
{
    const struct json *before = json_path(old, "status", list, NULL);
    const struct json *now = json_path(obj, "status", list, NULL);
    const struct json *containers = json_path(old, "spec", "initContainers", NULL);
    for (size_t i = 0; i < json_count(before) && !streq(policy, "Always"); i++) {
        const struct json *was = json_at(before, i), *name = json_get(was, "name");
        const struct json *ended = json_path(was, "state", "terminated", NULL);
        const struct json *is = ended ? pod_find_named(now, name) : NULL;
        bool again =
            json_get_int_or(json_get(ended, "exitCode"), 0) != 0 && streq(policy, "OnFailure");
        bool sidecar =
            streq(list, "initContainerStatuses") &&
            streq(json_get_text(pod_find_named(containers, name), "restartPolicy"), "Always");
        if (is && !again && !sidecar && !json_path(is, "state", "terminated", NULL)) {
            api_forbidden(c, API_FIELD("status.%s[%zu].state", list, i),
                          "may not be transitioned to non-terminated state");
        }
    }
}

/* At most one address of each family. */
static void check_families(struct api_causes *c, const char *field, const struct json *list)
{
    size_t n[2] = {0, 0};
    const struct json *item;
    JSON_FOREACH (item, list) {
        n[strchr(json_get_text(item, "ip"), ':') != NULL]++;
    }
    if (n[0] > 1 || n[1] > 1) {
        api_invalid(c, field, list, "may specify no more than one IP for each IP family");
    }
}

static void check_addresses(struct api_causes *c, const struct json *status)
{
    const struct json *ip = json_get(status, "podIP"), *hosts = json_get(status, "hostIPs");
    const struct json *first = json_get(json_at(json_get(status, "podIPs"), 0), "ip");
    const struct json *host = json_get(json_at(hosts, 0), "ip");
    if (json_string_size(ip) && first && !json_equal(first, ip)) {
        api_invalid(c, "status.podIPs[0].ip", first, "must be the same as status.podIP");
    }
    if (host && !streq(json_get_string(host), json_get_text(status, "hostIP"))) {
        api_invalid(c, "status.hostIPs[0].ip", host, "must be equal to `hostIP`");
    }
    check_families(c, "status.podIPs", json_get(status, "podIPs"));
    check_families(c, "status.hostIPs", hosts);
}

static void check_conditions(struct api_causes *c, const struct json *list)
{
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *type = json_get(json_at(list, i), "type");
        const char *wrong = api_check_qualified_name(json_get_text(json_at(list, i), "type"));
        if (wrong) {
            api_invalid(c, API_FIELD("status.conditions[%zu].type", i), type, "%s", wrong);
        }
    }
}

static void check_claim_statuses(struct api_causes *c, const struct json *obj)
{
    const struct json *list = json_path(obj, "status", "resourceClaimStatuses", NULL);
    const struct json *claims = json_path(obj, "spec", "resourceClaims", NULL);
    for (size_t i = 0; i < json_count(list) && c->n < API_MAX_CAUSES; i++) {
        const struct json *name = json_get(json_at(list, i), "name");
        if (!pod_find_named(claims, name)) {
            api_invalid(c, API_FIELD("status.resourceClaimStatuses[%zu].name", i), name,
                        "must match the name of an entry in `spec.resourceClaims`");
        }
    }
}

void pod_check_status_update(struct api_causes *c, const struct json *obj, const struct json *old)
{
    const struct json *status = json_get(obj, "status");
    const struct json *was = json_path(old, "status", "qosClass", NULL);
    const char *policy = json_get_text(json_get(old, "spec"), "restartPolicy");
    check_conditions(c, json_get(status, "conditions"));
    if (was) {
        api_field_immutable(c, "status.qosClass", json_get(status, "qosClass"), was);
    }
    check_states(c, "containerStatuses", obj, old, policy);
    check_states(c, "initContainerStatuses", obj, old, policy);
    check_states(c, "ephemeralContainerStatuses", obj, old, "Never");
    check_addresses(c, status);
    check_claim_statuses(c, obj);
}
