/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up kinds that are compiled in. */
#include "api/kind.h"

#include "api/kinds.h"
#include "api/registry.h"
#include "base/mem.h"

bool api_kind_is_namespace(const struct api_kind *k)
{
    return k == &api_kind_namespace || k == &api_kind_project;
}

static const struct api_registry compiled_in = {
    .list = (const struct api_kind **) api_kinds,
    .n = API_N_KINDS,
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
