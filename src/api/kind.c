/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kinds that are compiled in. */
#include "api/kind.h"

#include "api/kind_util.h"
#include "api/registry.h"
#include "base/mem.h"

const struct api_kind *const api_kinds[] = {
    &api_kind_config_map,
    &api_kind_endpoints,
    &api_kind_event,
    &api_kind_namespace,
    &api_kind_node,
    &api_kind_pod,
    &api_kind_secret,
    &api_kind_service,
    &api_kind_service_account,
    &api_kind_cluster_network,
    &api_kind_host_subnet,
    &api_kind_net_namespace,
    &api_kind_lease,
    &api_kind_endpoint_slice,
    &api_kind_event_v1,
    &api_kind_project,
    &api_kind_crd,
    &api_kind_network_policy,
    &api_kind_admin_network_policy,
    &api_kind_baseline_admin_network_policy,
    &api_kind_role,
    &api_kind_cluster_role,
    &api_kind_role_binding,
    &api_kind_cluster_role_binding,
    &api_kind_certificate_signing_request,
    &api_kind_token_review,
    &api_kind_self_subject_review,
    &api_kind_subject_access_review,
    &api_kind_local_subject_access_review,
    &api_kind_self_subject_access_review,
    &api_kind_self_subject_rules_review,
    NULL,
};

bool api_kind_is_namespace(const struct api_kind *k)
{
    return k == &api_kind_namespace || k == &api_kind_project;
}

static const struct api_registry compiled_in = {
    .list = (const struct api_kind **) api_kinds,
    .n = ARRAY_SIZE(api_kinds) - 1,
};

static const struct api_subresource *builtin_at(const struct api_kind *k, size_t i)
{
    static const char *const update[] = {"update", NULL};
    static const char *const change[] = {"get", "patch", "update", NULL};
    static const struct api_subresource finalize = {.name = "finalize", .verbs = update};
    static const struct api_subresource status = {.name = "status", .verbs = change};
    static const struct api_subresource scale = {.name = "scale",
                                                 .verbs = change,
                                                 .group = API_SCALE_GROUP,
                                                 .version = API_SCALE_VERSION,
                                                 .kind = "Scale"};
    if (streq(k->plural, "namespaces") && !*k->group && i-- == 0) {
        return &finalize;
    }
    if (k->status_subresource && i-- == 0) {
        return &status;
    }
    return k->scale && i == 0 ? &scale : NULL;
}

const struct api_subresource *api_kind_subresource_at(const struct api_kind *k, size_t i)
{
    size_t own = 0;
    while (k->subresources && k->subresources[own].name) {
        if (own == i) {
            return &k->subresources[i];
        }
        own++;
    }
    return builtin_at(k, i - own);
}

const struct api_subresource *api_kind_subresource(const struct api_kind *k, const char *name)
{
    const struct api_subresource *s;
    for (size_t i = 0; (s = api_kind_subresource_at(k, i)); i++) {
        if (streq(s->name, name)) {
            return s;
        }
    }
    return NULL;
}

const struct api_kind *api_kind_find(const char *group, const char *version, const char *plural)
{
    return api_registry_find(&compiled_in, group, version, plural);
}

const struct api_kind *api_kind_by_name(const char *api_version, const char *kind)
{
    return api_registry_by_name(&compiled_in, api_version, kind);
}

const struct api_kind *api_kind_by_alias(const char *alias)
{
    return api_registry_by_alias(&compiled_in, alias);
}

char *api_kind_api_version(const struct api_kind *k)
{
    return *k->group ? xasprintf("%s/%s", k->group, k->version) : xstrdup(k->version);
}

char *api_kind_list_kind(const struct api_kind *k)
{
    return k->list_kind ? xstrdup(k->list_kind) : xasprintf("%sList", k->kind);
}
