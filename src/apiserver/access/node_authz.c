/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of a node beyond its roles: access to its own Node, its pods and the objects that they
 * use, its lease, its CSINode, its certificate requests, and events.  Objects that all nodes read
 * alike (those of the network) are granted by RBAC's role system:sdn-reader. */
#include "apiserver/access/node_authz.h"

#include "api/obj.h"
#include "apiserver/access/node_storage.h"
#include "pod/reference.h"
#include "storage/fields.h"

#define LEASES "kube-node-lease"

/* Whether 'verb' is one of the words of 'list'. */
static bool is_one_of(const char *verb, const char *list)
{
    size_t n = strlen(verb);
    while (*list) {
        size_t word = strcspn(list, " ");
        if (word == n && strncmp(list, verb, n) == 0) {
            return true;
        }
        list += word + (list[word] == ' ');
    }
    return false;
}

/* Whether the pod is on the node. */
static bool is_on(const struct json *pod, const char *node)
{
    return streq_null(json_path_string(pod, "spec", "nodeName", NULL), node);
}

static bool names(const struct json *ref, const char *key, const char *name)
{
    return streq_null(json_path_string(ref, key, NULL), name);
}

/* Whether the pod mounts the claim 'name'. */
static bool pod_claims(const struct json *pod, const char *name)
{
    const struct json *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        CLEANUP_FREE char *claim = storage_pod_claim(pod, v);
        if (streq_null(claim, name)) {
            return true;
        }
    }
    return false;
}

static bool pod_runs_as(const struct json *pod, const char *account)
{
    const char *name = json_path_string(pod, "spec", "serviceAccountName", NULL);
    return streq(name && *name ? name : "default", account);
}

/* Whether a pod of 'a->namespace' on the node uses the object that 'a' names. */
static bool needed(struct security *s, const char *node, const struct attributes *a)
{
    const struct cache_kind *pods = cache_find(s->cache, api_kind_find("", "v1", "pods"));
    CLEANUP_FREE char *prefix = xasprintf("%s/", a->namespace);
    struct keyset_pos pos = keyset_seek(&pods->objects, prefix);
    int field = api_field_find(pods->kind, "spec.nodeName");
    const struct object *o;
    while ((o = keyset_next(&pods->objects, &pos)) && str_has_prefix(o->key, prefix)) {
        if (!streq(api_index_field(o->index, (size_t) field), node)) {
            continue;
        }
        CLEANUP(json_free) struct json *pod = object_parse(o);
        if (streq(a->resource, "serviceaccounts") ? pod_runs_as(pod, a->name)
            : streq(a->resource, "persistentvolumeclaims")
                ? pod_claims(pod, a->name)
                : pod_refers_to(json_get(pod, "spec"),
                                streq(a->resource, "secrets") ? POD_SECRET : POD_CONFIG_MAP,
                                a->name)) {
            return true;
        }
    }
    return false;
}

static bool own_pod(struct security *s, const char *node, const struct attributes *a)
{
    if (is_one_of(a->verb, "list watch")) {
        return streq(a->node, node);
    }
    if (streq(a->verb, "create") && !*a->subresource) {
        return true; /* Admission allows mirror pods only. */
    }
    CLEANUP(json_free)
    struct json *pod = *a->name ? security_object(s, "", "pods", a->namespace, a->name) : NULL;
    bool may = *a->subresource
                   ? streq(a->subresource, "status") && is_one_of(a->verb, "get update patch")
                   : is_one_of(a->verb, "get delete");
    return may && is_on(pod, node);
}

static bool own_node(const char *node, const struct attributes *a)
{
    if (streq(a->verb, "create")) { /* Admission checks the name. */
        return !*a->subresource;
    }
    return streq(a->name, node) && (!*a->subresource || streq(a->subresource, "status")) &&
           is_one_of(a->verb, "get list watch update patch");
}

static bool own_csr(struct security *s, const char *node, const struct attributes *a)
{
    CLEANUP_FREE char *user = xasprintf(NODE_PREFIX "%s", node);
    if (*a->subresource) {
        return false;
    }
    if (streq(a->verb, "create")) {
        return true;
    }
    CLEANUP(json_free)
    struct json *csr = *a->name ? security_object(s, a->group, a->resource, NULL, a->name) : NULL;
    return is_one_of(a->verb, "get list watch") &&
           streq_null(json_path_string(csr, "spec", "username", NULL), user);
}

/* Whether a pod on the node mounts the claim that the volume 'a->name' is bound to. */
static bool needs_volume(struct security *s, const char *node, const struct attributes *a)
{
    CLEANUP(json_free)
    struct json *volume = security_object(s, "", "persistentvolumes", NULL, a->name);
    const struct json *ref = json_path(volume, "spec", "claimRef", NULL);
    const char *ns = json_path_string(ref, "namespace", NULL);
    const char *name = json_path_string(ref, "name", NULL);
    struct attributes claim = *a;
    claim.resource = "persistentvolumeclaims";
    claim.namespace = (char *) ns;
    claim.name = (char *) name;
    return ns && name && needed(s, node, &claim);
}

/* Whether the claim is bound to a volume for which a kubelet reads the object that 'a' names. */
static bool claim_reads(struct security *s, const char *ns, const char *claim_name,
                        const struct attributes *a)
{
    CLEANUP(json_free)
    struct json *claim = security_object(s, "", "persistentvolumeclaims", ns, claim_name);
    const char *name = claim ? storage_claim_volume(claim) : "";
    CLEANUP(json_free)
    struct json *volume = *name ? security_object(s, "", "persistentvolumes", NULL, name) : NULL;
    return volume && storage_volume_refers_to(volume, claim, true) &&
           node_storage_volume_reads(volume, a->resource, a->namespace, a->name);
}

/* Whether a volume of the pod needs the Secret or the Endpoints that 'a' names. */
static bool pod_mounts_by(struct security *s, const struct json *pod, const struct attributes *a)
{
    const char *ns = obj_namespace(pod);
    const struct json *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        CLEANUP_FREE char *claim = storage_pod_claim(pod, v);
        if (claim && claim_reads(s, ns, claim, a)) {
            return true;
        }
        if (streq(a->resource, "endpoints") && streq(ns, a->namespace) &&
            names(json_get(v, "glusterfs"), "endpoints", a->name)) {
            return true;
        }
    }
    return false;
}

/* The same for all pods on the node: the object may be in another namespace than its pod. */
static bool needed_by_volume(struct security *s, const char *node, const struct attributes *a)
{
    const struct cache_kind *pods = cache_find(s->cache, api_kind_find("", "v1", "pods"));
    struct keyset_pos pos = keyset_seek(&pods->objects, "");
    int field = api_field_find(pods->kind, "spec.nodeName");
    const struct object *o;
    while ((o = keyset_next(&pods->objects, &pos))) {
        if (streq(api_index_field(o->index, (size_t) field), node)) {
            CLEANUP(json_free) struct json *pod = object_parse(o);
            if (pod_mounts_by(s, pod, a)) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the object of a partial kind that 'a' names concerns the node.  'absent' is the answer
 * when there is no such object. */
static bool sees(const struct security *s, const char *node, const struct attributes *a,
                 bool absent)
{
    const struct api_kind *k = api_kind_find(a->group, "v1", a->resource);
    CLEANUP(json_free)
    struct json *o = *a->name ? security_object(s, a->group, a->resource,
                                                *a->namespace ? a->namespace : NULL, a->name)
                              : NULL;
    return o ? node_storage_sees(node, k, o) : absent;
}

/* Claims and volumes: those that its pods mount, and the part of node_storage.h. */
static bool own_volume(struct security *s, const char *node, const struct attributes *a)
{
    bool claim = streq(a->resource, "persistentvolumeclaims");
    if (*a->subresource) {
        /* A kubelet that has grown a file system tells its size; admission checks what changes. */
        return claim && streq(a->subresource, "status") && is_one_of(a->verb, "get update patch") &&
               *a->name && needed(s, node, a);
    }
    if (is_one_of(a->verb, "list watch")) {
        return true; /* The list and the watch show the node its part only. */
    }
    if (streq(a->verb, "create")) {
        return !claim; /* Admission checks the volume. */
    }
    if (!*a->name) {
        return false;
    }
    if (streq(a->verb, "get")) {
        return sees(s, node, a, false) || (claim ? needed(s, node, a) : needs_volume(s, node, a));
    }
    if (streq(a->verb, "delete") && !claim) {
        CLEANUP(json_free) struct json *o = security_object(s, "", a->resource, NULL, a->name);
        return node_storage_may_delete(node, o);
    }
    return is_one_of(a->verb, "update patch") && sees(s, node, a, false);
}

static bool own_capacity(struct security *s, const char *node, const struct attributes *a)
{
    return is_one_of(a->verb, "list watch create") ||
           (is_one_of(a->verb, "get update patch delete") && *a->name &&
            sees(s, node, a, streq(a->verb, "get")));
}

/* Rights that a kubelet needs to mount volumes and to run pods by class. */
static bool may_use_storage(struct security *s, const char *node, const struct attributes *a)
{
    if (*a->subresource) {
        return false;
    }
    if (streq(a->group, "node.k8s.io")) {
        return streq(a->resource, "runtimeclasses") && is_one_of(a->verb, "get list watch");
    }
    if (streq(a->resource, "csidrivers") || streq(a->resource, "storageclasses")) {
        return is_one_of(a->verb, "get list watch");
    }
    if (streq(a->resource, "volumeattachments")) {
        /* A list shows the node its part only. */
        return is_one_of(a->verb, "list watch") ||
               (streq(a->verb, "get") && *a->name && sees(s, node, a, true));
    }
    if (streq(a->resource, "csistoragecapacities")) {
        return own_capacity(s, node, a);
    }
    /* Admission checks the name of a new CSINode. */
    return streq(a->resource, "csinodes") &&
           (streq(a->verb, "create") ||
            (streq(a->name, node) && is_one_of(a->verb, "get update patch delete")));
}

/* A kubelet's server asks about its own clients. */
static bool may_review(const struct attributes *a)
{
    bool token = streq(a->group, "authentication.k8s.io") && streq(a->resource, "tokenreviews");
    bool access = streq(a->group, "authorization.k8s.io") &&
                  (streq(a->resource, "subjectaccessreviews") ||
                   streq(a->resource, "localsubjectaccessreviews"));
    return (token || access) && !*a->subresource && streq(a->verb, "create");
}

/* A kubelet removes the devices that drivers published before its restart. */
static bool own_devices(const char *node, const struct attributes *a)
{
    return streq(a->resource, "resourceslices") && !*a->subresource && streq(a->node, node) &&
           is_one_of(a->verb, "list watch deletecollection");
}

bool node_allows(struct security *s, const char *node, const struct attributes *a)
{
    if (!a->is_resource || !s->cache->ready) {
        return false;
    }
    const char *r = a->resource;
    if (!*a->group && streq(r, "nodes")) {
        return own_node(node, a);
    }
    if (!*a->group && streq(r, "pods")) {
        return own_pod(s, node, a);
    }
    if (!*a->group && (streq(r, "secrets") || streq(r, "configmaps"))) {
        /* A list or watch needs a field selector of one name, which limits what it returns. */
        return !*a->subresource && is_one_of(a->verb, "get list watch") && *a->name &&
               (needed(s, node, a) ||
                (streq(r, "secrets") && streq(a->verb, "get") && needed_by_volume(s, node, a)));
    }
    if (!*a->group && streq(r, "endpoints")) {
        return !*a->subresource && streq(a->verb, "get") && *a->name &&
               needed_by_volume(s, node, a);
    }
    if (!*a->group && (streq(r, "persistentvolumeclaims") || streq(r, "persistentvolumes"))) {
        return own_volume(s, node, a);
    }
    if (streq(a->group, "storage.k8s.io") || streq(a->group, "node.k8s.io")) {
        return may_use_storage(s, node, a);
    }
    if (!*a->group && streq(r, "serviceaccounts")) {
        bool asks = streq(a->subresource, "token") ? streq(a->verb, "create")
                                                   : !*a->subresource && streq(a->verb, "get");
        return asks && *a->name && needed(s, node, a);
    }
    if (may_review(a)) {
        return true;
    }
    if (streq(a->group, "resource.k8s.io")) {
        return own_devices(node, a);
    }
    if (streq(r, "events") && (!*a->group || streq(a->group, "events.k8s.io"))) {
        return !*a->subresource && is_one_of(a->verb, "create update patch");
    }
    if (streq(a->group, "coordination.k8s.io") && streq(r, "leases")) {
        return streq(a->namespace, LEASES) && !*a->subresource &&
               (streq(a->verb, "create") ||
                (streq(a->name, node) && is_one_of(a->verb, "get update patch delete")));
    }
    if (streq(a->group, "certificates.k8s.io") && streq(r, "certificatesigningrequests")) {
        return own_csr(s, node, a);
    }
    return false;
}
