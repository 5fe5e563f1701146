/* SPDX-License-Identifier: Apache-2.0 */
/* Pod (core v1): which rules a write has to keep.  The rules are in pod_*.c, its cells in pod_cells.c. */
#include "api/kinds/kind_pod.h"
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/pod_priv.h"
#include "api/schema.h"

#define DEFAULT_GRACE_S 30

void kind_pod_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *status = json_get(obj, "status");
    pod_default_spec(spec, true);
    if (json_is(status, JSON_OBJECT)) {
        api_default_string(status, "qosClass", pod_qos_class(spec));
    }
}

void kind_pod_prepare(struct json *obj, const struct json *old)
{
    (void) api_default_object(obj, "spec");
    if (!old) {
        json_set_string(json_set(obj, "status", json_object()), "phase", "Pending");
    }
}

/* The first of podIPs is podIP: a client that writes one of them means both. */
static void complete_addresses(struct json *status)
{
    const struct json *ip = json_get(status, "podIP");
    const struct json *list = json_get(status, "podIPs"), *first = json_get(json_at(list, 0), "ip");
    if (json_string_size(ip) && json_count(list) == 0) {
        struct json *copy = json_clone(ip);
        json_set(status, "podIPs", json_array());
        json_set(json_append(json_get(status, "podIPs"), json_object()), "ip", copy);
    } else if (json_string_size(ip) == 0 && json_string_size(first)) {
        json_set(status, "podIP", json_clone(first));
    }
}

/* A status by a client that does not know the class keeps it. */
static void merge_status(struct json *out, const struct json *obj)
{
    const struct json *v = json_get(obj, "status"),
                      *class = json_path(out, "status", "qosClass", NULL);
    CLEANUP(json_free) struct json *kept = class ? json_clone(class) : NULL;
    struct json *status = json_set(out, "status", v ? json_clone(v) : json_object());
    if (json_is(status, JSON_OBJECT)) {
        complete_addresses(status);
        api_default_string(status, "qosClass", json_get_string(kept));
    }
}

/* New ephemeral containers get their defaults. */
static void merge_ephemeral(struct json *out, const struct json *obj)
{
    const struct json *list = json_path(obj, "spec", "ephemeralContainers", NULL);
    struct json *spec = json_ensure_object(out, "spec");
    json_remove(spec, "ephemeralContainers");
    if (list && !json_is(list, JSON_NULL)) {
        json_set(spec, "ephemeralContainers", json_clone(list));
    }
    api_schema_default(api_kind_pod.schema, out);
    pod_default_spec(spec, true);
}

void kind_pod_merge_part(const char *subresource, struct json *out, const struct json *obj)
{
    if (streq(subresource, "status")) {
        merge_status(out, obj);
    } else if (streq(subresource, "ephemeralcontainers")) {
        merge_ephemeral(out, obj);
    }
}

/* A kubelet stops containers on its node; a pod without a node needs no time. */
int64_t kind_pod_grace_s(const struct json *obj, const int64_t *asked)
{
    const char *node = json_path_string(obj, "spec", "nodeName", NULL);
    const char *phase = json_path_string(obj, "status", "phase", NULL);
    if (!node || !*node || streq_null(phase, "Succeeded") || streq_null(phase, "Failed")) {
        return 0;
    }
    int64_t n = asked
                    ? *asked
                    : json_get_int_or(json_path(obj, "spec", "terminationGracePeriodSeconds", NULL),
                                      DEFAULT_GRACE_S);
    return n < 0 ? 1 : n;
}

static void validate_new(const struct json *obj, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    pod_validate_object(c, obj, true);
    if (json_count(json_get(spec, "ephemeralContainers"))) {
        api_forbidden(c, "spec.ephemeralContainers", "cannot be set on create");
    }
    if (json_string_size(json_get(spec, "nodeName")) &&
        json_count(json_get(spec, "schedulingGates"))) {
        api_forbidden(c, "spec.nodeName",
                      "cannot be set until all schedulingGates have been cleared");
    }
}

/* What stays the same, the spec or the annotations, is not judged again: it may be older than a
 * rule. */
void kind_pod_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    if (!old) {
        validate_new(obj, c);
        return;
    }
    const struct json *now = json_path(obj, "metadata", "annotations", NULL);
    const struct json *before = json_path(old, "metadata", "annotations", NULL);
    pod_check_annotation_update(c, now, before);
    if (!pod_spec_is_same(json_get(obj, "spec"), json_get(old, "spec"))) {
        pod_validate_object(c, obj, false);
        pod_check_update(c, obj, old);
    } else if (now && !(before && json_equal(now, before))) {
        pod_validate_annotations(c, obj);
    }
}

void kind_pod_validate_part(const char *subresource, const struct json *obj, const struct json *old,
                            struct api_causes *c)
{
    if (streq(subresource, "status")) {
        pod_check_status_update(c, obj, old);
    } else if (streq(subresource, "ephemeralcontainers")) {
        pod_validate_object(c, obj, false);
        pod_check_ephemeral_update(c, obj, old);
    }
}

/* ---- Binding ---- */

void kind_binding_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const kinds[] = {"Node", "<empty>", NULL};
    const struct json *target = json_get(obj, "target"), *kind = json_get(target, "kind");
    const struct json *name = json_get(target, "name");
    const char *wrong =
        json_string_size(name) ? api_check_dns_subdomain(json_get_string(name)) : NULL;
    if (json_string_size(kind) && !streq(json_get_string(kind), "Node")) {
        api_unsupported(c, "target.kind", kind, kinds);
    }
    if (json_string_size(name) == 0) {
        api_required(c, "target.name", "");
    } else if (wrong) {
        api_invalid(c, "target.name", name, "%s", wrong);
    }
}
