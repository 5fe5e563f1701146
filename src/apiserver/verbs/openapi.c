/* SPDX-License-Identifier: Apache-2.0 */
/* /openapi/v2 and /openapi/v3: the documents of api/openapi/openapi.h, made on request.
 *
 * Only a hash of each document is kept.  It appears in the index of version 3 and as the ETag, so
 * that clients fetch a document again only when it has changed. */
#include "apiserver/verbs/openapi.h"

#include "api/openapi/openapi.h"
#include "apiserver/request/respond.h"

#include <inttypes.h>
#include <stdio.h>

#define V2 "/openapi/v2"
#define V3 "/openapi/v3"
/* Clients request the type with "@", which media types do not allow, so the response has a dot. */
#define V2_PROTO_ASKED "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define V2_PROTO "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

struct openapi {
    uint64_t generation; /* The generation of the registry to which the hashes belong. */
    struct smap hashes;  /* By the key of the document; that of version 2 has the key V2. */
};

struct openapi *openapi_new(void)
{
    struct openapi *o = NEW(struct openapi);
    smap_init(&o->hashes, free);
    return o;
}

struct openapi *openapi_free(struct openapi *o)
{
    if (o) {
        smap_done(&o->hashes);
        free(o);
    }
    return NULL;
}

/* Owned; NULL: there is no such document. */
static struct json *document(const struct api_registry *r, const char *key)
{
    return streq(key, V2) ? api_openapi_v2(r, TENET_VERSION)
                          : api_openapi_v3(r, key, TENET_VERSION);
}

/* The hash of the document 'key', which must exist; it belongs to the server. */
static const char *hash_of(struct request *q, const char *key)
{
    struct openapi *o = q->server->openapi;
    const struct api_registry *r = &q->server->cache.registry;
    if (o->generation != r->generation) {
        smap_clear(&o->hashes);
        o->generation = r->generation;
    }
    if (!smap_get(&o->hashes, key)) {
        CLEANUP(json_free) struct json *doc = document(r, key);
        CLEANUP_FREE char *text = json_to_text(doc);
        smap_set(&o->hashes, key, xasprintf("%016" PRIX64, hash_bytes(text, strlen(text))));
    }
    return smap_get(&o->hashes, key);
}

static struct json *index_object(struct request *q)
{
    const struct api_registry *r = &q->server->cache.registry;
    struct json *o = json_object(), *paths = json_ensure_object(o, "paths");
    for (size_t i = 0; i < r->n; i++) {
        CLEANUP_FREE char *key = api_openapi_key(r->list[i]);
        if (!json_get(paths, key)) {
            json_set(paths, key,
                     object_of("serverRelativeURL",
                               json_stringf(V3 "/%s?hash=%s", key, hash_of(q, key))));
        }
    }
    return o;
}

/* Sets the headers for caching by clients; returns whether the client has this document already. */
static bool is_known(struct request *q, const char *hash)
{
    const char *known = http_header(q->x, "if-none-match"), *wanted = http_query(q->x, "hash");
    char tag[24];
    snprintf(tag, sizeof tag, "\"%s\"", hash);
    http_set_header(q->x, "ETag", tag);
    http_set_header(q->x, "Vary", "Accept-Encoding, Accept");
    if (wanted && streq(wanted, hash)) {
        http_set_header(q->x, "Cache-Control", "public, immutable, max-age=31536000");
        q->cacheable = true;
    }
    return known && strstr(known, tag);
}

static void fill_document(struct request *q, const char *key, bool proto, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *doc = document(&q->server->cache.registry, key);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (proto) {
        api_openapi_v2_encode(doc, &out);
        outcome_text(outcome, 200, V2_PROTO, &out);
    } else {
        outcome_json(outcome, 200, "application/json", TAKE(doc));
    }
}

void handle_openapi(struct request *q, const char *path, struct outcome *outcome)
{
    const struct api_registry *r = &q->server->cache.registry;
    const char *accept = http_header(q->x, "accept"), *key = NULL;
    bool proto = streq(path, V2) && accept && strstr(accept, V2_PROTO_ASKED);
    for (size_t i = 0; i < r->n && !key && str_has_prefix(path, V3 "/"); i++) {
        CLEANUP_FREE char *own = api_openapi_key(r->list[i]);
        key = streq(own, path + sizeof V3) ? path + sizeof V3 : NULL;
    }
    if (streq(path, V2)) {
        key = V2;
    }
    if (accept && *accept && !proto && !strstr(accept, "json") && !strstr(accept, "*/*") &&
        !strstr(accept, "application/*")) {
        outcome_error(outcome, 406, "NotAcceptable",
                      "only the following media types are accepted: application/json");
    } else if (streq(path, V3)) {
        outcome_json(outcome, 200, "application/json", index_object(q));
    } else if (!key) {
        outcome_error(outcome, 404, "NotFound", "the server could not find the requested resource");
    } else if (is_known(q, hash_of(q, key))) {
        CLEANUP_STRBUF struct strbuf none = STRBUF_INIT;
        outcome_text(outcome, 304, NULL, &none);
    } else {
        fill_document(q, key, proto, outcome);
    }
}
