/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/attributes.h"

#include "base/mem.h"
#include "base/str.h"

/* Takes the next segment off '*p' ("/a/b"); owned, "" at the end. */
static char *segment(const char **p)
{
    *p += **p == '/';
    size_t n = strcspn(*p, "/");
    char *s = xstrndup(*p, n);
    *p += n;
    return s;
}

static void replace(char **p, char *value)
{
    free(*p);
    *p = value;
}

static const char *method_verb(const char *method)
{
    static const struct {
        const char *method, *verb;
    } verbs[] = {{"GET", "get"},    {"HEAD", "get"},    {"POST", "create"},
                 {"PUT", "update"}, {"PATCH", "patch"}, {"DELETE", "delete"}};
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (streq(method, verbs[i].method)) {
            return verbs[i].verb;
        }
    }
    return "";
}

static char *lower(const char *s)
{
    char *t = xstrdup(s);
    for (char *p = t; *p; p++) {
        *p = (char) (*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    }
    return t;
}

/* The value that "KEY=VALUE" or "KEY==VALUE" among the terms demands; owned, "" when none. */
static char *selected(const char *selector, const char *key)
{
    size_t k = strlen(key);
    while (selector && *selector) {
        size_t n = strcspn(selector, ",");
        if (str_has_prefix(selector, key) && selector[k] == '=') {
            const char *value = selector + k + 1;
            size_t skip = *value == '=';
            return xstrndup(value + skip, n - k - 1 - skip);
        }
        selector += n + (selector[n] == ',');
    }
    return xstrdup("");
}

/* "/api/V" and "/apis/G/V" with something behind; false: no resource. */
static bool parse_group(struct attributes *a, const char **p)
{
    CLEANUP_FREE char *root = segment(p);
    if (streq(root, "apis")) {
        replace(&a->group, segment(p));
    } else if (!streq(root, "api")) {
        return false;
    }
    replace(&a->version, segment(p));
    return **p == '/' && (*p)[1];
}

static void parse_resource(struct attributes *a, const char *p)
{
    replace(&a->resource, segment(&p));
    if (streq(a->resource, "projects") && streq(a->group, "project.openshift.io")) {
        /* As a namespace, a project is in itself: who works in it may get it. */
        const char *ahead = p;
        replace(&a->namespace, segment(&ahead));
    }
    if (streq(a->resource, "namespaces") && *p == '/' && p[1]) {
        const char *ahead = p;
        CLEANUP_FREE char *ns = segment(&ahead);
        CLEANUP_FREE char *next = segment(&ahead);
        replace(&a->namespace, xstrdup(ns));
        if (*next && !streq(next, "status") && !streq(next, "finalize")) {
            replace(&a->resource, TAKE(next));
            p = ahead;
        }
    }
    replace(&a->name, segment(&p));
    replace(&a->subresource, segment(&p));
}

void attributes_parse(struct attributes *a, const char *method, const char *path, bool watch,
                      const char *field_selector)
{
    *a = (struct attributes){.path = xstrdup(path),
                             .group = xstrdup(""),
                             .version = xstrdup(""),
                             .resource = xstrdup(""),
                             .subresource = xstrdup(""),
                             .namespace = xstrdup(""),
                             .name = xstrdup(""),
                             .node = xstrdup("")};
    const char *p = path;
    a->is_resource = parse_group(a, &p);
    if (!a->is_resource) {
        a->verb = a->verb_text = lower(method);
        return;
    }
    parse_resource(a, p);
    a->verb = method_verb(method);
    if (streq(a->verb, "get") && watch) {
        a->verb = "watch";
    } else if (streq(a->verb, "get") && !*a->name) {
        a->verb = "list";
    } else if (streq(a->verb, "delete") && !*a->name) {
        a->verb = "deletecollection";
    }
    if (!*a->name && (streq(a->verb, "list") || streq(a->verb, "watch"))) {
        replace(&a->name, selected(field_selector, "metadata.name"));
        replace(&a->node, selected(field_selector, "spec.nodeName"));
    }
}

void attributes_done(struct attributes *a)
{
    free(a->path);
    free(a->group);
    free(a->version);
    free(a->resource);
    free(a->subresource);
    free(a->namespace);
    free(a->name);
    free(a->node);
    free(a->verb_text);
    *a = (struct attributes){0};
}

char *attributes_resource_text(const struct attributes *a)
{
    return xasprintf("%s%s%s", a->resource, *a->subresource ? "/" : "", a->subresource);
}
