/* SPDX-License-Identifier: Apache-2.0 */
/* What a request asks for: its attributes, the form of its answer, its body. */
#include "api/proto.h"
#include "apiserver/access/audit.h"
#include "apiserver/server.h"
#include "wire/yaml.h"

#include <strings.h>

const char *const verb_names[VERB_MAX] = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "other",
};

struct request *request_free(struct request *q)
{
    flow_release(q);
    cache_kind_unref(q->ck);
    free(q->head);
    free(q->namespace);
    free(q->name);
    free(q->manager);
    audit_event_free(q->audit);
    user_unref(q->user);
    user_unref(q->impersonator);
    attributes_done(&q->attributes);
    free(q);
    return NULL;
}

/* ---- path ---- */

/* Takes the next segment off '*p' ("/a/b"); owned, NULL at the end. */
static char *segment(const char **p)
{
    if (**p != '/' || !(*p)[1]) {
        return NULL;
    }
    size_t n = strcspn(*p + 1, "/");
    char *s = xstrndup(*p + 1, n);
    *p += 1 + n;
    return s;
}

/* "/api/VERSION" and "/apis/GROUP/VERSION": both owned, NULL when the path ends before. */
static void parse_group(const char **p, char **ret_group, char **ret_version)
{
    CLEANUP_FREE char *root = segment(p);
    if (root && streq(root, "api")) {
        *ret_group = xstrdup("");
    } else if (root && streq(root, "apis")) {
        *ret_group = segment(p);
    }
    *ret_version = *ret_group ? segment(p) : NULL;
}

static int parse_path(struct request *q, struct err *e)
{
    const struct api_registry *known = &q->server->cache.registry;
    const char *p = http_path(q->x);
    CLEANUP_FREE char *group = NULL, *version = NULL, *plural = NULL, *sub = NULL;
    parse_group(&p, &group, &version);
    plural = version ? segment(&p) : NULL;
    if (plural && streq(plural, "namespaces")) {
        /* "namespaces/NS" and its subresources are the object, "namespaces/NS/PODS" is what is in it. */
        const char *ahead = p;
        CLEANUP_FREE char *ns = segment(&ahead), *next = segment(&ahead);
        const struct api_kind *k = api_registry_find(known, group, version, "namespaces");
        if (next && !(k && api_kind_subresource(k, next))) {
            free(plural);
            plural = TAKE(next);
            q->namespace = TAKE(ns);
            p = ahead;
        }
    }
    const struct api_kind *k = plural ? api_registry_find(known, group, version, plural) : NULL;
    if (!k || (q->namespace && !k->namespaced)) {
        return err_set(e, -ENOENT, "the server could not find the requested resource");
    }
    q->ck = cache_kind_ref(cache_find(&q->server->cache, k));
    q->kind = k;
    q->head = k != q->ck->kind ? object_head(k) : NULL;
    q->name = segment(&p);
    sub = q->name ? segment(&p) : NULL;
    if (sub) {
        const struct api_subresource *s = api_kind_subresource(k, sub);
        if (!s || (*p == '/' && p[1])) {
            return err_set(e, -ENOENT, "the server could not find the requested resource");
        }
        q->subresource = s->name;
    }
    if (q->name && k->namespaced && !q->namespace) {
        return err_set(e, -ENOENT, "the server could not find the requested resource");
    }
    return 0;
}

bool request_flag(const struct request *q, const char *name)
{
    const char *s = http_query(q->x, name);
    return s && !streq(s, "false") && !streq(s, "0") && !streq(s, "False");
}

/* Of a subresource: what it lists. */
static int parse_part_verb(struct request *q, const char *m)
{
    static const struct {
        const char *method;
        enum verb verb;
    } verbs[] = {
        {"GET", VERB_GET}, {"POST", VERB_CREATE}, {"PUT", VERB_UPDATE}, {"PATCH", VERB_PATCH}};
    const struct api_subresource *s = api_kind_subresource(q->kind, q->subresource);
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        for (size_t v = 0; streq(m, verbs[i].method) && s->verbs[v]; v++) {
            if (streq(s->verbs[v], verb_names[verbs[i].verb])) {
                q->verb = verbs[i].verb;
                return 0;
            }
        }
    }
    return -EOPNOTSUPP;
}

static int parse_verb(struct request *q)
{
    const char *m = http_method(q->x);
    bool item = q->name != NULL;
    if (*q->subresource) {
        return parse_part_verb(q, m);
    }
    if (q->kind->create_only && !streq(m, "POST")) {
        return -EOPNOTSUPP;
    }
    if (streq(m, "GET")) {
        q->verb = request_flag(q, "watch") ? VERB_WATCH : item ? VERB_GET : VERB_LIST;
        return 0;
    }
    if (streq(m, "POST")) {
        q->verb = VERB_CREATE;
        return !item && (!q->kind->namespaced || q->namespace) ? 0 : -EOPNOTSUPP;
    }
    if (streq(m, "PUT")) {
        q->verb = VERB_UPDATE;
        return item ? 0 : -EOPNOTSUPP;
    }
    if (streq(m, "PATCH")) {
        q->verb = VERB_PATCH;
        return item ? 0 : -EOPNOTSUPP;
    }
    if (streq(m, "DELETE")) {
        q->verb = item ? VERB_DELETE : VERB_DELETE_COLLECTION;
        if (!item && q->kind->namespaced && !q->namespace) {
            return -EOPNOTSUPP;
        }
        /* As in Kubernetes: a slip must not take every project along. */
        return item || !api_kind_is_namespace(q->kind) ? 0 : -EOPNOTSUPP;
    }
    return -EOPNOTSUPP;
}

int request_parse(struct request *q, struct err *e)
{
    int r = parse_path(q, e);
    if (r < 0) {
        return r;
    }
    if (parse_verb(q) < 0) {
        return err_set(e, -EOPNOTSUPP,
                       "the server does not allow this method on the requested resource");
    }
    return 0;
}

/* ---- Accept ---- */

static bool param(const char *s, size_t n, const char *want)
{
    return n == strlen(want) && !strncasecmp(s, want, n);
}

/* One media range of an Accept header. */
static bool parse_range(const char *s, size_t n, struct accept *ret)
{
    struct accept a = {0};
    bool meta_group = false, usable = true, first = true;
    while (n) {
        size_t part = 0;
        while (part < n && s[part] != ';') {
            part++;
        }
        const char *p = s;
        size_t len = part;
        while (len && (*p == ' ' || *p == '\t')) {
            p++;
            len--;
        }
        while (len && (p[len - 1] == ' ' || p[len - 1] == '\t')) {
            len--;
        }
        if (first) {
            a.yaml = param(p, len, "application/yaml");
            usable = a.yaml || param(p, len, "application/json") || param(p, len, "*/*") ||
                     param(p, len, "application/*");
            first = false;
        } else if (param(p, len, "as=Table")) {
            a.form = FORM_TABLE;
        } else if (param(p, len, "as=PartialObjectMetadata") ||
                   param(p, len, "as=PartialObjectMetadataList")) {
            a.form = FORM_PARTIAL;
        } else if (len > 3 && !strncasecmp(p, "as=", 3)) {
            usable = false;
        } else if (param(p, len, "g=meta.k8s.io")) {
            meta_group = true;
        } else if (param(p, len, "v=v1beta1")) {
            a.v1beta1 = true;
        } else if (param(p, len, "q=0")) {
            usable = false;
        }
        s += part;
        n -= part;
        if (n) {
            s++;
            n--;
        }
    }
    if (!usable || (a.form != FORM_OBJECT && (!meta_group || a.yaml))) {
        return false;
    }
    *ret = a;
    return true;
}

int request_accept(struct request *q)
{
    const char *s = http_header(q->x, "accept");
    bool found = !s || !*s;
    while (s && *s && !found) {
        size_t n = strcspn(s, ",");
        found = parse_range(s, n, &q->accept);
        s += n + (s[n] == ',');
    }
    const char *agent = http_header(q->x, "user-agent"), *pretty = http_query(q->x, "pretty");
    /* A person reads what these ask for. */
    q->accept.pretty =
        pretty ? request_flag(q, "pretty")
               : agent && (str_has_prefix(agent, "curl/") || str_has_prefix(agent, "Wget/") ||
                           str_has_prefix(agent, "Mozilla/"));
    const char *include = http_query(q->x, "includeObject");
    q->accept.include = include && streq(include, "Object") ? API_INCLUDE_OBJECT
                        : include && streq(include, "None") ? API_INCLUDE_NONE
                                                            : API_INCLUDE_METADATA;
    return found ? 0 : -EINVAL;
}

/* ---- body ---- */

char *request_content_type(const struct request *q)
{
    const char *s = http_header(q->x, "content-type");
    if (!s || !*s) {
        return xstrdup("application/json");
    }
    s += strspn(s, " \t");
    char *type = xstrndup(s, strcspn(s, "; \t"));
    for (char *p = type; *p; p++) {
        *p = (char) (*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    }
    return type;
}

int request_body(struct request *q, struct json **ret, struct err *e)
{
    size_t size;
    const char *body = http_body(q->x, &size);
    CLEANUP_FREE char *type = request_content_type(q);
    if (streq(type, "application/yaml") || streq(type, "application/x-yaml") ||
        streq(type, APPLY_TYPE)) {
        return yaml_parse(body, size, ret, e);
    }
    if (streq(type, "application/vnd.kubernetes.protobuf")) {
        return api_proto_decode(body, size, ret, e);
    }
    if (!streq(type, "application/json") && !str_has_suffix(type, "+json")) {
        return err_set(e, -EPROTONOSUPPORT,
                       "the body of the request was in an unknown format - accepted media types "
                       "include: application/json, application/yaml");
    }
    return json_parse(body, size, ret, e);
}
