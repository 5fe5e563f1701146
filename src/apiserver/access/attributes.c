/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/attributes.h"

#include "api/legacy.h"
#include "base/mem.h"
#include "base/str.h"

static const char none[] = "";

/* The unread part of a path, and the buffer to which its segments are copied. */
struct reader {
    const char *at;
    char *to;
};

/* Copies 'n' bytes to the texts. */
static const char *keep(struct reader *r, const char *s, size_t n)
{
    char *text = r->to;
    memcpy(text, s, n);
    text[n] = '\0';
    r->to += n + 1;
    return text;
}

/* Takes the next segment off the path ("/a/b"); "" at the end. */
static const char *segment(struct reader *r)
{
    r->at += *r->at == '/';
    size_t n = strcspn(r->at, "/");
    const char *s = n ? keep(r, r->at, n) : none;
    r->at += n;
    return s;
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
    return none;
}

static const char *lower(struct reader *r, const char *s)
{
    char *text = r->to;
    keep(r, s, strlen(s));
    for (char *p = text; *p; p++) {
        *p = (char) (*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    }
    return text;
}

/* The value that a term "KEY=VALUE" or "KEY==VALUE" requires; "" when no term names the key. */
static const char *demanded(struct reader *r, const char *selector, const char *key)
{
    size_t k = strlen(key);
    while (selector && *selector) {
        size_t n = strcspn(selector, ",");
        if (str_has_prefix(selector, key) && selector[k] == '=') {
            size_t skip = k + 1 + (selector[k + 1] == '=');
            return keep(r, selector + skip, n - skip);
        }
        selector += n + (selector[n] == ',');
    }
    return none;
}

/* Parses "/api/V" and "/apis/G/V"; returns false when no resource follows. */
static bool parse_group(struct attributes *a, struct reader *r)
{
    const char *root = segment(r);
    if (streq(root, "apis")) {
        a->group = segment(r);
    } else if (!streq(root, "api") && !streq(root, "oapi")) {
        return false;
    }
    a->legacy = streq(root, "oapi");
    a->version = segment(r);
    return *r->at == '/' && r->at[1];
}

/* "namespaces/NS/RESOURCE"; "namespaces/NS" and its own subresources are about the
 * namespace itself. */
static void parse_namespace(struct attributes *a, struct reader *r)
{
    struct reader ahead = *r;
    a->namespace = segment(&ahead);
    const char *next = segment(&ahead);
    if (*next && !streq(next, "status") && !streq(next, "finalize")) {
        a->in_namespace = true;
        a->resource = next;
        *r = ahead;
    }
}

/* Gives a resource in its older form the group that it has now.  A resource of /oapi that no group
 * has keeps the core group, where it is refused or not found. */
static void find_group(struct attributes *a)
{
    const char *core = !*a->group && !a->legacy ? api_legacy_core_group(a->resource) : NULL;
    const char *own = a->legacy ? api_legacy_group(a->resource) : core;
    a->legacy |= core != NULL;
    a->group = own ? own : a->group;
}

/* A rollback is a resource of its own in the older form, and names the object in its body. */
static bool is_older_rollback(const struct attributes *a)
{
    return a->legacy && streq(a->resource, "deploymentconfigrollbacks");
}

static void parse_resource(struct attributes *a, struct reader *r)
{
    a->resource = segment(r);
    if (streq(a->resource, "namespaces") && *r->at == '/' && r->at[1]) {
        parse_namespace(a, r);
    }
    bool rollback = is_older_rollback(a);
    a->resource = rollback ? "deploymentconfigs" : a->resource;
    find_group(a);
    bool project = streq(a->resource, "projects") && streq(a->group, "project.openshift.io");
    bool itself = project || (streq(a->resource, "namespaces") && !a->in_namespace);
    a->name = segment(r);
    a->subresource = segment(r);
    if (rollback) {
        a->malformed = *a->name != '\0';
        a->name = none;
        a->subresource = "rollback";
    }
    if (streq(a->subresource, "proxy")) {
        a->rest = r->at; /* "/" alone, or "" */
        r->at += strlen(r->at);
    }
    a->malformed |= *r->at == '/' && r->at[1];
    if (itself && !a->in_namespace) {
        /* A namespace is within itself: a right granted in it covers the Namespace object, too. */
        a->namespace = a->name;
    }
}

/* The older form of a watch: ".../v1/watch/RESOURCE", and the same in a namespace. */
static bool skip_watch(const char *method, struct reader *r)
{
    static const char prefix[] = "/watch/";
    if (!streq(method, "GET") || !str_has_prefix(r->at, prefix) || !r->at[sizeof prefix - 1]) {
        return false;
    }
    r->at += sizeof prefix - 2;
    return true;
}

/* Whether the request begins a process in a pod, or a connection to it.  By WebSocket that is a
 * GET, which the right to read must not allow. */
static bool begins_process(const struct attributes *a)
{
    static const char *const parts[] = {"exec", "attach", "portforward"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (!*a->group && streq(a->resource, "pods") && streq(a->subresource, parts[i])) {
            return true;
        }
    }
    return false;
}

void attributes_parse(struct attributes *a, const char *method, const char *path, bool watch,
                      const char *field_selector)
{
    *a = (struct attributes){.path = path,
                             .group = none,
                             .version = none,
                             .resource = none,
                             .subresource = none,
                             .namespace = none,
                             .name = none,
                             .node = none,
                             .rest = none};
    /* Each text is a segment of one of these strings; its terminating NUL replaces a separator. */
    size_t size = strlen(path) + 1;
    size += MAX(strlen(method), field_selector ? strlen(field_selector) : 0) + 1;
    a->texts = xcalloc(size, 1);
    struct reader r = {.at = path, .to = a->texts};
    a->is_resource = parse_group(a, &r);
    if (!a->is_resource) {
        r.to = a->texts;
        a->group = a->version = none;
        a->verb = lower(&r, method);
        return;
    }
    watch |= skip_watch(method, &r);
    parse_resource(a, &r);
    a->malformed |= strstr(path, "//") != NULL;
    a->verb = method_verb(method);
    if (begins_process(a)) {
        a->verb = "create";
    } else if (streq(a->verb, "get") && watch && !streq(a->subresource, "proxy")) {
        a->verb = "watch";
    } else if (streq(a->verb, "get") && !*a->name) {
        a->verb = "list";
    } else if (streq(a->verb, "delete") && !*a->name) {
        a->verb = "deletecollection";
    }
    if (!*a->name && (streq(a->verb, "list") || streq(a->verb, "watch"))) {
        a->name = demanded(&r, field_selector, "metadata.name");
        a->name_is_demanded = *a->name != '\0';
    }
    if (!*a->name || a->name_is_demanded) {
        a->node = demanded(&r, field_selector, "spec.nodeName");
    }
}

void attributes_done(struct attributes *a)
{
    free(a->texts);
    *a = (struct attributes){0};
}

char *attributes_resource_text(const struct attributes *a)
{
    return xasprintf("%s%s%s", a->resource, *a->subresource ? "/" : "", a->subresource);
}
