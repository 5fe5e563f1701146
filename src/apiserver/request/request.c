/* SPDX-License-Identifier: Apache-2.0 */
/* The reading of a request: its resource, the form of its response, its body. */
#include "apiserver/request/request.h"

#include "api/legacy.h"
#include "api/proto.h"
#include "apiserver/access/audit.h"
#include "apiserver/access/oauth_token.h"
#include "apiserver/request/encode.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/respond.h"
#include "wire/yaml.h"

#include <stdlib.h>
#include <strings.h>

const char *const verb_names[VERB_MAX] = {
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "other",
};

struct request *request_free(struct request *q)
{
    flow_release(q);
    cache_kind_unref(q->ck);
    free(q->head);
    free(q->manager);
    json_free(q->warnings);
    audit_event_free(q->audit);
    user_unref(q->user);
    user_unref(q->impersonator);
    attributes_done(&q->attributes);
    free(q);
    return NULL;
}

bool request_flag(const struct request *q, const char *name)
{
    const char *s = http_query(q->x, name);
    return s && !streq(s, "false") && !streq(s, "0") && !streq(s, "False");
}

/* ---- the resource ---- */

/* Finds the verb by the name in the attributes; VERB_OTHER: the method has no verb. */
static enum verb verb_find(const char *name)
{
    enum verb v = VERB_GET;
    while (v < VERB_OTHER && !streq(name, verb_names[v])) {
        v++;
    }
    return v;
}

static bool is_verb_of_part(const struct api_subresource *part, const char *verb)
{
    size_t i = 0;
    while (part->verbs[i] && !streq(part->verbs[i], verb)) {
        i++;
    }
    return part->verbs[i] != NULL;
}

/* Whether the kind allows the verb on an object, or on the collection that the path names. */
static bool is_verb_of_kind(const struct request *q)
{
    const struct api_kind *k = q->kind;
    bool placed = !k->namespaced || q->namespace;
    if (k->read_only) {
        return q->verb == VERB_GET || q->verb == VERB_LIST ||
               (k->create_empty && q->verb == VERB_CREATE && !q->name && placed);
    }
    if (k->own) {
        return q->verb == VERB_GET || q->verb == VERB_LIST || q->verb == VERB_WATCH ||
               q->verb == VERB_DELETE;
    }
    if (k->composed && (q->verb == VERB_LIST || q->verb == VERB_WATCH || q->verb == VERB_PATCH ||
                        q->verb == VERB_DELETE_COLLECTION)) {
        return false;
    }
    switch (q->verb) {
    case VERB_CREATE:
        return !q->name && placed;
    case VERB_UPDATE:
    case VERB_PATCH:
        return q->name != NULL;
    case VERB_DELETE_COLLECTION:
        /* Projects cannot be deleted as a collection, as in Kubernetes, so that a
         * mistake cannot delete all of them. */
        return placed && !api_kind_is_namespace(k);
    case VERB_OTHER:
        return false;
    default:
        return true;
    }
}

static bool is_allowed(const struct request *q, const struct api_subresource *part)
{
    if (streq(http_method(q->x), "HEAD") && !(part && streq(part->name, "proxy"))) {
        return false;
    }
    return part ? is_verb_of_part(part, q->attributes.verb)
                : (!q->kind->create_only || q->verb == VERB_CREATE ||
                   (q->kind->probed && q->verb == VERB_LIST)) &&
                      is_verb_of_kind(q);
}

char *request_api_version(const struct request *q)
{
    return q->legacy ? xstrdup(API_LEGACY_VERSION) : api_kind_api_version(q->kind);
}

int request_resolve(struct request *q, struct err *e)
{
    const struct attributes *a = &q->attributes;
    const struct api_kind *k =
        a->is_resource && !a->malformed && (*a->group || !a->legacy)
            ? api_registry_find(&q->server->cache.registry, a->group, a->version, a->resource)
            : NULL;
    bool named = k && *a->name && !a->name_is_demanded;
    const struct api_subresource *part =
        k && *a->subresource ? api_kind_subresource(k, a->subresource) : NULL;
    if (!k || (a->in_namespace && !k->namespaced) || (*a->subresource && !part) ||
        (named && k->namespaced && !a->in_namespace)) {
        return err_set(e, -ENOENT, "the server could not find the requested resource");
    }
    q->ck = cache_kind_ref(cache_find(&q->server->cache, k));
    q->kind = k;
    q->legacy = a->legacy;
    CLEANUP_FREE char *version = request_api_version(q);
    q->head = k != q->ck->kind || q->legacy ? object_head_as(k, version) : NULL;
    q->namespace = a->in_namespace ? a->namespace : NULL;
    q->name = named ? a->name : NULL;
    q->subresource = part ? part->name : "";
    q->verb = verb_find(a->verb);
    if (!is_allowed(q, part) && k->instead) {
        return err_set(e, -EOPNOTSUPP,
                       "%s are made from other objects and cannot be written; write %s instead",
                       k->plural, k->instead);
    }
    if (!is_allowed(q, part)) {
        return err_set(e, -EOPNOTSUPP,
                       "the server does not allow this method on the requested resource");
    }
    return 0;
}

static const char *token_of(const struct request *q)
{
    const struct user_info *by = q->impersonator ? q->impersonator : q->user;
    return by ? by->credential : NULL;
}

bool request_has_token(const struct request *q, const char *name)
{
    return streq_null(token_of(q), name);
}

bool request_has_ended_token(const struct request *q, int64_t now_ms)
{
    const char *name = token_of(q);
    return name && oauth_token_has_ended(q->server->security, name, now_ms);
}

/* ---- Accept ---- */

static bool param(const char *s, size_t n, const char *want)
{
    return n == strlen(want) && !strncasecmp(s, want, n);
}

/* A media range of an Accept header. */
struct range {
    struct accept accept;
    double quality;
    unsigned wildcards; /* "*" in it: the fewer, the more it wants this type. */
    bool usable;        /* The server has the type. */
    bool meta_group, discovery_group;
    bool other_version; /* The form is asked for in a version other than v1 and v1beta1. */
    bool v2;
};

static void read_type(const char *s, size_t n, struct range *r)
{
    r->accept.yaml = param(s, n, "application/yaml");
    r->accept.protobuf = param(s, n, API_PROTO_TYPE);
    r->wildcards = param(s, n, "*/*") ? 2 : param(s, n, "application/*");
    r->usable =
        r->accept.yaml || r->accept.protobuf || r->wildcards || param(s, n, "application/json");
}

static void read_parameter(const char *s, size_t n, struct range *r)
{
    if (param(s, n, "as=Table")) {
        r->accept.form = FORM_TABLE;
    } else if (param(s, n, "as=PartialObjectMetadata") ||
               param(s, n, "as=PartialObjectMetadataList")) {
        r->accept.form = FORM_PARTIAL;
        r->accept.list = n == sizeof "as=PartialObjectMetadataList" - 1;
    } else if (param(s, n, "as=APIGroupDiscoveryList")) {
        r->accept.aggregated = true;
    } else if (n > 3 && !strncasecmp(s, "as=", 3)) {
        r->usable = false;
    } else if (param(s, n, "g=meta.k8s.io")) {
        r->meta_group = true;
    } else if (param(s, n, "g=apidiscovery.k8s.io")) {
        r->discovery_group = true;
    } else if (param(s, n, "v=v1beta1")) {
        r->accept.v1beta1 = true;
    } else if (n > 2 && !strncasecmp(s, "v=", 2) && !param(s, n, "v=v1")) {
        r->other_version = true;
        r->v2 = param(s, n, "v=v2");
    } else if (n > 2 && !strncasecmp(s, "q=", 2)) {
        CLEANUP_FREE char *text = xstrndup(s + 2, n - 2);
        r->quality = strtod(text, NULL);
    }
}

static void read_range(const char *s, size_t n, struct range *r)
{
    *r = (struct range){.quality = 1};
    for (bool first = true; n; first = false) {
        const char *end = memchr(s, ';', n), *p = s;
        size_t part = end ? (size_t) (end - s) : n, len = part;
        while (len && (*p == ' ' || *p == '\t')) {
            p++;
            len--;
        }
        while (len && (p[len - 1] == ' ' || p[len - 1] == '\t')) {
            len--;
        }
        (first ? read_type : read_parameter)(p, len, r);
        part += end != NULL;
        s += part;
        n -= part;
    }
}

/* Whether discovery at the path can be aggregated. */
static bool can_aggregate(const struct request *q)
{
    const char *path = http_path(q->x);
    return streq(path, "/api") || streq(path, "/api/") || streq(path, "/apis") ||
           streq(path, "/apis/");
}

static bool can_produce(const struct request *q, const struct range *r)
{
    const struct accept *a = &r->accept;
    bool form = a->aggregated
                    ? r->discovery_group && r->v2 && !a->yaml && can_aggregate(q)
                    : a->form == FORM_OBJECT || (r->meta_group && !r->other_version && !a->yaml);
    return r->usable && r->quality > 0 && form && (!a->protobuf || encode_can_proto(q, a->form));
}

/* The most wanted range that the server can produce. */
static bool negotiate(const struct request *q, const char *s, struct accept *ret)
{
    struct range best = {0};
    while (*s) {
        struct range r;
        size_t n = strcspn(s, ",");
        read_range(s, n, &r);
        s += n + (s[n] == ',');
        bool better =
            r.quality > best.quality || (r.quality == best.quality && r.wildcards < best.wildcards);
        if (can_produce(q, &r) && (!best.usable || better)) {
            best = r;
        }
    }
    *ret = best.accept;
    return best.usable;
}

int request_accept(struct request *q)
{
    const char *s = http_header(q->x, "accept");
    q->accept = (struct accept){0};
    bool found = !s || !*s || negotiate(q, s, &q->accept);
    const char *agent = http_header(q->x, "user-agent"), *pretty = http_query(q->x, "pretty");
    /* Responses to these clients are read by people, so they are indented. */
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

/* Fields that have no description are treated like unknown fields of JSON (verbs/fields.c). */
static int read_proto(struct request *q, const char *body, size_t size, struct json **ret,
                      struct err *e)
{
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    CLEANUP(json_free) struct json *obj = NULL;
    int r = q->legacy ? api_proto_decode_legacy(body, size, q->kind, &obj, &unknown, e)
                      : api_proto_decode(body, size, q->kind, &obj, &unknown, e);
    if (r < 0) {
        return r;
    }
    if (unknown.n && q->validation == FIELDS_STRICT) {
        return err_set(e, -EINVAL, "strict decoding error: unknown field \"%s\"", unknown.list[0]);
    }
    for (size_t i = 0; i < unknown.n && q->validation == FIELDS_WARN; i++) {
        CLEANUP_FREE char *text = xasprintf("unknown field \"%s\"", unknown.list[i]);
        request_warn(q, "-", text);
    }
    *ret = TAKE(obj);
    return 0;
}

/* Reads the body as the client wrote it. */
static int read_body(struct request *q, struct json **ret, struct err *e)
{
    size_t size;
    const char *body = http_body(q->x, &size);
    CLEANUP_FREE char *type = request_content_type(q);
    bool patches = q->verb == VERB_PATCH;
    if (streq(type, "application/yaml") || streq(type, "application/x-yaml") ||
        (patches && streq(type, APPLY_TYPE))) {
        return yaml_parse(body, size, ret, e);
    }
    if (streq(type, API_PROTO_TYPE)) {
        return read_proto(q, body, size, ret, e);
    }
    if (!streq(type, "application/json") && !(patches && str_has_suffix(type, "+json"))) {
        return err_set(e, -EPROTONOSUPPORT,
                       "the body of the request was in an unknown format - accepted media types "
                       "include: application/json, application/yaml%s",
                       q->kind && q->kind->protobuf ? ", " API_PROTO_TYPE : "");
    }
    return json_parse(body, size, ret, e);
}

int request_body(struct request *q, struct json **ret, struct err *e)
{
    int r = read_body(q, ret, e);
    const char *version = r == 0 ? json_get_string(json_get(*ret, "apiVersion")) : NULL;
    const char *kind = r == 0 ? json_get_string(json_get(*ret, "kind")) : NULL;
    bool other = kind && q->kind && streq(kind, "DeleteOptions");
    if (r == 0 && q->legacy && !other && streq_null(version, API_LEGACY_VERSION)) {
        /* From here on the object is one of its group. */
        CLEANUP_FREE char *own = api_kind_api_version(q->kind);
        json_set_string(*ret, "apiVersion", own);
    }
    return r;
}
