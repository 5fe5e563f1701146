/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kinds that are compiled in. */
#include "api/kind.h"

#include "api/kind_util.h"
#include "api/registry.h"
#include "base/mem.h"

const struct api_kind *const api_kinds[] = {
    &api_kind_config_map, &api_kind_event,           &api_kind_namespace,   &api_kind_node,
    &api_kind_pod,        &api_kind_cluster_network, &api_kind_host_subnet, &api_kind_net_namespace,
    &api_kind_lease,      &api_kind_event_v1,        &api_kind_crd,         NULL,
};

static const struct api_registry compiled_in = {
    .list = (const struct api_kind **) api_kinds,
    .n = ARRAY_SIZE(api_kinds) - 1,
};

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
