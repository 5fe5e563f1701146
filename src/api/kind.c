/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kinds, and finding one. */
#include "api/kind.h"

#include "api/kind_util.h"
#include "base/mem.h"

#include <strings.h>

const struct api_kind *const api_kinds[] = {
    &api_kind_event,
    &api_kind_namespace,
    &api_kind_node,
    &api_kind_pod,
    &api_kind_cluster_network,
    &api_kind_host_subnet,
    &api_kind_net_namespace,
    &api_kind_network_policy,
    &api_kind_admin_network_policy,
    &api_kind_baseline_admin_network_policy,
    &api_kind_secret,
    &api_kind_service_account,
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

static const struct api_subresource *builtin_at(const struct api_kind *k, size_t i)
{
    static const char *const update[] = {"update", NULL};
    static const char *const change[] = {"get", "patch", "update", NULL};
    static const struct api_subresource finalize = {.name = "finalize", .verbs = update};
    static const struct api_subresource status = {.name = "status", .verbs = change};
    if (streq(k->plural, "namespaces") && !*k->group && i-- == 0) {
        return &finalize;
    }
    return k->status_subresource && i == 0 ? &status : NULL;
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
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        if (streq(k->group, group) && streq(k->version, version) && streq(k->plural, plural)) {
            return k;
        }
    }
    return NULL;
}

const struct api_kind *api_kind_by_name(const char *api_version, const char *kind)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        CLEANUP_FREE char *own = api_kind_api_version(api_kinds[i]);
        if (streq(own, api_version) && streq(api_kinds[i]->kind, kind)) {
            return api_kinds[i];
        }
    }
    return NULL;
}

static bool names(const struct api_kind *k, const char *s)
{
    if (!strcasecmp(s, k->plural) || !strcasecmp(s, k->singular) || !strcasecmp(s, k->kind)) {
        return true;
    }
    for (size_t i = 0; k->short_names && k->short_names[i]; i++) {
        if (!strcasecmp(s, k->short_names[i])) {
            return true;
        }
    }
    return false;
}

const struct api_kind *api_kind_by_alias(const char *alias)
{
    const char *dot = strchr(alias, '.');
    CLEANUP_FREE char *resource = dot ? xstrndup(alias, (size_t) (dot - alias)) : xstrdup(alias);
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        if (!names(k, resource)) {
            continue;
        }
        if (!dot || !strcasecmp(dot + 1, k->group)) {
            return k;
        }
        /* "plural.version.group", and "plural.version" of the core group. */
        size_t n = strlen(k->version);
        if (!strncasecmp(dot + 1, k->version, n) &&
            (*k->group ? dot[1 + n] == '.' && !strcasecmp(dot + 2 + n, k->group)
                       : dot[1 + n] == '\0')) {
            return k;
        }
    }
    return NULL;
}

char *api_kind_api_version(const struct api_kind *k)
{
    return *k->group ? xasprintf("%s/%s", k->group, k->version) : xstrdup(k->version);
}
