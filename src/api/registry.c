/* SPDX-License-Identifier: Apache-2.0 */
#include "api/registry.h"

#include "base/mem.h"

#include <strings.h>

void api_registry_init(struct api_registry *r, const char *without)
{
    *r = (struct api_registry){0};
    for (size_t i = 0; api_kinds[i]; i++) {
        if (!without || !streq(api_kinds[i]->group, without)) {
            api_registry_add(r, api_kinds[i]);
        }
    }
}

void api_registry_done(struct api_registry *r)
{
    free(r->list);
    *r = (struct api_registry){0};
}

static bool same_resource(const struct api_kind *a, const struct api_kind *b)
{
    return streq(a->group, b->group) && streq(a->plural, b->plural);
}

void api_registry_add(struct api_registry *r, const struct api_kind *k)
{
    size_t at = r->n;
    while (at > 0 && !same_resource(r->list[at - 1], k)) {
        at--;
    }
    at = at ? at : r->n;
    r->list = grow(r->list, &r->cap, r->n + 1, sizeof(*r->list));
    memmove(r->list + at + 1, r->list + at, (r->n - at) * sizeof(*r->list));
    r->list[at] = k;
    r->n++;
    r->generation++;
}

void api_registry_remove(struct api_registry *r, const struct api_kind *k)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->list[i] == k) {
            r->n--;
            r->generation++;
            memmove(r->list + i, r->list + i + 1, (r->n - i) * sizeof(*r->list));
            return;
        }
    }
}

const struct api_kind *api_registry_find(const struct api_registry *r, const char *group,
                                         const char *version, const char *plural)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct api_kind *k = r->list[i];
        if (streq(k->plural, plural) && streq(k->group, group) && streq(k->version, version)) {
            return k;
        }
    }
    return NULL;
}

/* "v1" or "group/v1" */
static bool has_api_version(const struct api_kind *k, const char *s)
{
    const char *slash = strrchr(s, '/');
    size_t n = slash ? (size_t) (slash - s) : 0;
    return streq(k->version, slash ? slash + 1 : s) && strlen(k->group) == n &&
           memcmp(k->group, s, n) == 0;
}

const struct api_kind *api_registry_by_name(const struct api_registry *r, const char *api_version,
                                            const char *kind)
{
    /* When two resources have the kind, the stored one is returned. */
    const struct api_kind *asked = NULL;
    for (size_t i = 0; i < r->n; i++) {
        if (streq(r->list[i]->kind, kind) && has_api_version(r->list[i], api_version)) {
            if (!r->list[i]->create_only) {
                return r->list[i];
            }
            asked = asked ? asked : r->list[i];
        }
    }
    return asked;
}

static bool names(const struct api_kind *k, const char *s)
{
    if (!strcasecmp(s, k->plural) || !strcasecmp(s, k->singular) ||
        (!k->create_only && !strcasecmp(s, k->kind))) {
        return true;
    }
    for (size_t i = 0; k->short_names && k->short_names[i]; i++) {
        if (!strcasecmp(s, k->short_names[i])) {
            return true;
        }
    }
    return false;
}

const struct api_kind *api_registry_by_alias(const struct api_registry *r, const char *alias)
{
    const char *dot = strchr(alias, '.');
    CLEANUP_FREE char *resource = dot ? xstrndup(alias, (size_t) (dot - alias)) : xstrdup(alias);
    for (size_t i = 0; i < r->n; i++) {
        const struct api_kind *k = r->list[i];
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
