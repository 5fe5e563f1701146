/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/resource.h"

#include "base/mem.h"
#include "client/client.h"

void resources_done(struct resources *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->list[i].name);
    }
    free(r->list);
    *r = (struct resources){0};
}

void resources_add(struct resources *r, const struct api_kind *k, const char *name)
{
    r->list = grow(r->list, &r->cap, r->n + 1, sizeof(*r->list));
    r->list[r->n++] = (struct resource){k, name ? xstrdup(name) : NULL};
}

static int find_kind(const struct api_registry *known, const char *alias,
                     const struct api_kind **ret, struct err *e)
{
    const struct api_kind *k = api_registry_by_alias(known, alias);
    if (!k) {
        return err_set(e, -ENOENT, "the server doesn't have a resource type \"%.100s\"", alias);
    }
    return *ret = k, 0;
}

static bool in_category(const struct api_kind *k, const char *category)
{
    for (size_t i = 0; k->categories && k->categories[i]; i++) {
        if (streq(k->categories[i], category)) {
            return true;
        }
    }
    return false;
}

/* Chooses among the versions of one kind. */
static bool is_first(const struct api_registry *known, size_t i)
{
    const struct api_kind *k = known->list[i];
    return i == 0 || !streq(known->list[i - 1]->plural, k->plural) ||
           !streq(known->list[i - 1]->group, k->group);
}

/* "KIND/NAME" */
static int add_pair(const struct api_registry *known, struct resources *r, const char *arg,
                    struct err *e)
{
    const struct api_kind *k = NULL;
    const char *slash = strchr(arg, '/');
    if (!slash) {
        return err_set(e, -EINVAL,
                       "there is no need to specify a resource type as a separate argument when "
                       "passing arguments in resource/name form (e.g. 'tenet get resource/<name>' "
                       "instead of 'tenet get resource resource/<name>'");
    }
    if (slash == arg || !slash[1] || strchr(slash + 1, '/')) {
        return err_set(e, -EINVAL,
                       "arguments in resource/name form must have a single resource and name");
    }
    CLEANUP_FREE char *alias = xstrndup(arg, (size_t) (slash - arg));
    int err = find_kind(known, alias, &k, e);
    if (err == 0) {
        resources_add(r, k, slash + 1);
    }
    return err;
}

/* Adds each kind of a list of aliases with each of the names (or without a name). */
static int add_kind(const struct api_registry *known, struct resources *r, const char *alias, int n,
                    char *const *names, struct err *e)
{
    const struct api_kind *k = NULL;
    size_t before = r->n;
    for (size_t i = 0; n == 0 && i < known->n; i++) {
        if (in_category(known->list[i], alias) && is_first(known, i)) {
            /* Only the server knows all kinds of a category. */
            if (!known->list[i]->custom) {
                break;
            }
            resources_add(r, known->list[i], NULL);
            r->n_kinds++;
        }
    }
    if (r->n > before) {
        return 0;
    }
    int err = find_kind(known, alias, &k, e);
    if (err < 0) {
        return err;
    }
    r->n_kinds++;
    for (int i = 0; i < n; i++) {
        if (strchr(names[i], '/')) {
            return add_pair(known, r, "", e); /* The text for mixed forms. */
        }
        resources_add(r, k, names[i]);
    }
    if (n == 0) {
        resources_add(r, k, NULL);
    }
    return 0;
}

int resources_parse(const struct api_registry *known, int n, char *const *args,
                    struct resources *ret, struct err *e)
{
    CLEANUP_RESOURCES struct resources r = {0};
    int err = 0;
    if (n == 0) {
        return err_set(e, -EINVAL, "you must specify the type of resource");
    }
    if (strchr(args[0], '/')) {
        r.by_slash = true;
        for (int i = 0; i < n && err == 0; i++) {
            err = add_pair(known, &r, args[i], e);
        }
    } else {
        CLEANUP_FREE char *kinds = xstrdup(args[0]);
        for (char *alias = kinds, *end; alias && err == 0; alias = end) {
            end = strchr(alias, ',');
            if (end) {
                *end++ = '\0';
            }
            err = add_kind(known, &r, alias, n - 1, args + 1, e);
        }
    }
    if (err == 0) {
        *ret = r;
        r = (struct resources){0};
    }
    return err;
}

char *resource_label(const struct api_kind *k)
{
    return *k->group ? xasprintf("%s.%s", k->singular, k->group) : xstrdup(k->singular);
}

char *resource_path(const struct api_kind *k, const char *ns, const char *name)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    return api_path(version, k->plural, k->namespaced ? ns : NULL, name, NULL);
}

void resource_query(struct strbuf *path, const char *key, const char *value)
{
    if (value && *value) {
        strbuf_addf(path, "%c%s=", memchr(path->data, '?', path->size) ? '&' : '?', key);
        http_escape(value, path);
    }
}
