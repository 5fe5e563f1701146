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
    NULL,
};

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
