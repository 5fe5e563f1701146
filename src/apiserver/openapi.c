/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI documents, as small as clients can do with: kubectl reads from version 3 that the server checks
 * fields itself (the fieldValidation parameter), and needs a version 2 document to be there.  The schemas
 * name the kinds and leave their fields open, as the server keeps fields it does not know. */
#include "apiserver/server.h"

/* "api/v1", "apis/GROUP/VERSION": what a kind's document is called.  Owned. */
static char *document_key(const struct api_kind *k)
{
    return *k->group ? xasprintf("apis/%s/%s", k->group, k->version)
                     : xasprintf("api/%s", k->version);
}

static struct json *kind_id(const struct api_kind *k)
{
    struct json *o = json_object();
    json_set_string(o, "group", k->group);
    json_set_string(o, "version", k->version);
    json_set_string(o, "kind", k->kind);
    return o;
}

static struct json *parameter(const char *name, const char *in, const char *type)
{
    struct json *p = json_object();
    json_set_string(p, "name", name);
    json_set_string(p, "in", in);
    if (streq(in, "path")) {
        json_set_bool(p, "required", true);
    }
    json_set(p, "schema", object_of("type", json_string(type)));
    return p;
}

static struct json *operation(const struct api_kind *k, const char *action, bool writes)
{
    struct json *o = json_object();
    json_set(o, "responses", object_of("200", object_of("description", json_string("OK"))));
    json_set_string(o, "x-kubernetes-action", action);
    json_set(o, "x-kubernetes-group-version-kind", kind_id(k));
    if (writes) {
        struct json *list = json_ensure_array(o, "parameters");
        json_append(list, parameter("dryRun", "query", "string"));
        json_append(list, parameter("fieldManager", "query", "string"));
        json_append(list, parameter("fieldValidation", "query", "string"));
    }
    return o;
}

static void add_paths(struct json *paths, const struct api_kind *k)
{
    CLEANUP_FREE char *base = document_key(k);
    CLEANUP_FREE char *all =
        xasprintf("/%s%s/%s", base, k->namespaced ? "/namespaces/{namespace}" : "", k->plural);
    CLEANUP_FREE char *one = xasprintf("%s/{name}", all);
    struct json *list = json_ensure_object(paths, all);
    json_set(list, "post", operation(k, "post", true));
    if (k->namespaced) {
        json_append(json_ensure_array(list, "parameters"),
                    parameter("namespace", "path", "string"));
    }
    if (k->create_only) {
        return;
    }
    json_set(list, "get", operation(k, "list", false));
    struct json *item = json_ensure_object(paths, one);
    json_set(item, "get", operation(k, "get", false));
    json_set(item, "put", operation(k, "put", true));
    json_set(item, "patch", operation(k, "patch", true));
    json_set(item, "delete", operation(k, "delete", false));
    struct json *params = json_ensure_array(item, "parameters");
    json_append(params, parameter("name", "path", "string"));
    if (k->namespaced) {
        json_append(params, parameter("namespace", "path", "string"));
    }
}

static void add_schema(struct json *schemas, const struct api_kind *k)
{
    static const char *const names[] = {"apiVersion", "kind"};
    struct json *s = json_object(), *props = json_object();
    json_set_string(s, "type", "object");
    json_set_string(s, "description", k->description);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        json_set(props, names[i], object_of("type", json_string("string")));
    }
    json_set(props, "metadata", object_of("type", json_string("object")));
    json_set(s, "properties", props);
    json_set_bool(s, "x-kubernetes-preserve-unknown-fields", true);
    json_set(s, "x-kubernetes-group-version-kind", list_of(kind_id(k)));
    CLEANUP_STRBUF struct strbuf name = STRBUF_INIT;
    strbuf_addf(&name, "%s%s%s.%s", k->group, *k->group ? "." : "", k->version, k->kind);
    json_set(schemas, name.data, s);
}

/* The document called 'key'; NULL: there is none. */
static struct json *document(const char *key)
{
    CLEANUP(json_free) struct json *doc = json_object();
    json_set_string(doc, "openapi", "3.0.0");
    struct json *info = json_ensure_object(doc, "info");
    json_set_string(info, "title", "Tenet");
    json_set_string(info, "version", TENET_VERSION);
    struct json *paths = json_ensure_object(doc, "paths");
    struct json *schemas = json_ensure_object(json_ensure_object(doc, "components"), "schemas");
    for (size_t i = 0; api_kinds[i]; i++) {
        CLEANUP_FREE char *own = document_key(api_kinds[i]);
        if (streq(own, key)) {
            add_paths(paths, api_kinds[i]);
            add_schema(schemas, api_kinds[i]);
        }
    }
    return json_count(paths) ? TAKE(doc) : NULL;
}

static struct json *index_object(void)
{
    struct json *o = json_object(), *paths = json_ensure_object(o, "paths");
    for (size_t i = 0; api_kinds[i]; i++) {
        CLEANUP_FREE char *key = document_key(api_kinds[i]);
        /* The address changes with our version, so that clients may cache what is behind it. */
        json_set(paths, key,
                 object_of("serverRelativeURL",
                           json_stringf("/openapi/v3/%s?hash=%s", key, TENET_VERSION)));
    }
    return o;
}

/* Version 2: nothing but a title, in JSON, or in protobuf (message Document of gnostic's openapi/v2:
 * swagger = 1, info = 2 {title = 1, version = 2}, paths = 8), which is what kubectl asks for. */
static void respond_v2(struct request *q)
{
    const char *accept = http_header(q->x, "accept");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (accept && strstr(accept, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")) {
        static const char title[] = "Tenet";
        size_t version = strlen(TENET_VERSION), info = 2 + sizeof title - 1 + 2 + version;
        strbuf_addf(&out, "\x0a%c2.0\x12%c\x0a%c%s\x12%c%s\x42", 3, (char) info,
                    (char) (sizeof title - 1), title, (char) version, TENET_VERSION);
        strbuf_addc(&out, '\0');
        /* Asked for with "@", which is no media type, so answered with a dot. */
        respond_text(q, 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", &out);
        return;
    }
    strbuf_adds(&out,
                "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Tenet\",\"version\":\"" TENET_VERSION
                "\"},\"paths\":{},\"definitions\":{}}\n");
    respond_text(q, 200, "application/json", &out);
}

void handle_openapi(struct request *q, const char *path)
{
    static const char v3[] = "/openapi/v3";
    if (streq(path, "/openapi/v2")) {
        respond_v2(q);
        return;
    }
    CLEANUP(json_free) struct json *v = NULL;
    if (streq(path, v3)) {
        v = index_object();
    } else if (str_has_prefix(path, "/openapi/v3/")) {
        v = document(path + sizeof v3);
    }
    if (v) {
        respond_json(q, 200, "application/json", v);
    } else {
        respond_error(q, 404, "NotFound", "the server could not find the requested resource");
    }
}
