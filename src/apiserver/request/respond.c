/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that sends responses: turns an outcome into the form that the client accepts. */
#include "apiserver/request/respond.h"

#include "api/proto.h"
#include "apiserver/request/effect.h"
#include "apiserver/request/encode.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/metrics.h"
#include "apiserver/request/scale.h"
#include "base/timeutil.h"
#include "wire/gzip.h"
#include "wire/yaml.h"

#include <inttypes.h>
#include <stdio.h>

/* 'body' is JSON, or NULL. */
static void finish(struct request *q, int code, const char *body, size_t size)
{
    static const char none[] = "";
    metrics_count(q->server->metrics, q->verb, q->kind ? q->kind->plural : none, code,
                  time_mono_ns() - q->start_ns);
    filter_done(q, code, body, size);
    request_free(q);
}

void respond_headers(struct http_exchange *x, const char *audit_id, bool cacheable)
{
    http_set_header(x, "Audit-Id", audit_id);
    if (!cacheable) {
        /* Objects and secrets are not for the caches of proxies. */
        http_set_header(x, "Cache-Control", "no-cache, private");
    }
}

#define WARNINGS_MAX ((size_t) 4096) /* Bytes of the texts of all warnings. */
#define WARNINGS_MANY ((size_t) 64)  /* Warnings; clients such as ours read 100 headers. */
#define WARNING_CUT ((size_t) 256)   /* Bytes of each, once they are cut. */

/* RFC 7234, section 5.5: the text is a quoted string. */
static void set_warning(struct request *q, const char *agent, const char *text, size_t size)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "299 %s \"", agent);
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char) text[i] < 0x20 || (unsigned char) text[i] >= 0x7f) {
            strbuf_addc(&b, '?');
            continue;
        }
        if (text[i] == '"' || text[i] == '\\') {
            strbuf_addc(&b, '\\');
        }
        strbuf_addc(&b, text[i]);
    }
    strbuf_addc(&b, '"');
    http_set_header(q->x, "Warning", b.data);
}

static void set_warnings(struct request *q)
{
    size_t n = json_count(q->warnings), all = 0, set = 0;
    for (size_t i = 0; i < n; i++) {
        all += strlen(json_key_at(q->warnings, i));
    }
    for (size_t i = 0; i < n && i < WARNINGS_MANY && set < WARNINGS_MAX; i++) {
        const char *text = json_key_at(q->warnings, i);
        size_t full = strlen(text), size = all > WARNINGS_MAX ? MIN(full, WARNING_CUT) : full;
        set_warning(q, json_get_string(json_at(q->warnings, i)), text, size);
        set += size;
    }
}

static void set_headers(struct request *q)
{
    respond_headers(q->x, q->audit_id, q->cacheable);
    set_warnings(q);
}

/* 'audited': the same content as JSON, or NULL. */
static void send_text(struct request *q, int code, const char *content_type,
                      const struct strbuf *text, const struct strbuf *audited)
{
    struct http_exchange *x = q->x;
    set_headers(q);
    flow_answer(q, text->size);
    finish(q, code, audited ? strbuf_cstr(audited) : NULL, audited ? audited->size : 0);
    http_respond(x, code, content_type, strbuf_cstr(text), text->size);
}

void respond_stream(struct request *q, int status, const char *type, loop_fn *closed, void *ctx)
{
    set_headers(q);
    q->streamed = status;
    http_stream_begin(q->x, status, type, closed, ctx);
}

void respond_bodyless(struct request *q, int status, const char *type)
{
    const struct strbuf none = STRBUF_INIT;
    send_text(q, status, type, &none, NULL);
}

void respond_streamed(struct request *q)
{
    finish(q, q->streamed ? q->streamed : 200, NULL, 0);
}

/* Only large responses to reads are compressed, as by kube-apiserver.  Very large ones are sent
 * uncompressed, because compressing one client's response must not delay the others. */
#define GZIP_MIN ((size_t) 128 << 10)
#define GZIP_MAX ((size_t) 4 << 20)

static bool wants_gzip(const struct request *q, size_t size)
{
    const char *accept = http_header(q->x, "accept-encoding");
    if (size < GZIP_MIN || size > GZIP_MAX || !accept || !streq(http_method(q->x), "GET")) {
        return false;
    }
    const char *at = strstr(accept, "gzip");
    /* "gzip;q=0" means that the client refuses gzip. */
    return at && !str_has_prefix(at + 4, ";q=0") && !str_has_prefix(at + 4, "; q=0");
}

/* Compresses 'text' into 'room' if that is worth it; the bytes to be sent. */
static struct strbuf *compress(struct request *q, struct strbuf *text, struct strbuf *room)
{
    if (!wants_gzip(q, text->size) || gzip_compress(text->data, text->size, room) < 0) {
        return text;
    }
    http_set_header(q->x, "Content-Encoding", "gzip");
    http_set_header(q->x, "Vary", "Accept-Encoding");
    return room;
}

static void answer_text(struct request *q, int code, const char *content_type, struct strbuf *text)
{
    static const char json[] = "application/json";
    CLEANUP_STRBUF struct strbuf compressed = STRBUF_INIT;
    content_type = content_type ? content_type : json;
    const struct strbuf *audited = streq(content_type, json) ? text : NULL;
    send_text(q, code, content_type, compress(q, text, &compressed), audited);
}

/* Sends 'text', which is protobuf; 'v' is the same as JSON, or NULL. */
static void answer_proto(struct request *q, int code, struct strbuf *text, const struct json *v)
{
    CLEANUP_STRBUF struct strbuf audited = STRBUF_INIT, compressed = STRBUF_INIT;
    if (q->audit && v) {
        json_write(v, 0, &audited);
    }
    text = compress(q, text, &compressed);
    send_text(q, code, API_PROTO_TYPE, text, v ? &audited : NULL);
}

static void answer_json(struct request *q, int code, const char *content_type, const struct json *v)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (q->accept.protobuf && !content_type && api_proto_put_object(v, &text) == 0) {
        answer_proto(q, code, &text, v);
        return;
    }
    if (q->accept.yaml && !content_type) {
        CLEANUP_STRBUF struct strbuf audited = STRBUF_INIT;
        yaml_write(v, &text);
        if (q->audit) {
            json_write(v, 0, &audited);
        }
        send_text(q, code, "application/yaml", &text, &audited);
        return;
    }
    json_write(v, q->accept.pretty ? 2 : 0, &text);
    strbuf_addc(&text, '\n');
    answer_text(q, code, content_type, &text);
}

struct json *object_of(const char *key, struct json *v)
{
    struct json *o = json_object();
    json_set(o, key, v);
    return o;
}

struct json *list_of(struct json *v)
{
    struct json *list = json_array();
    json_append(list, v);
    return list;
}

/* ---- Status ---- */

/* Adds details that name the object of the request, or the one that the outcome names. */
static void add_target(const struct request *q, const struct outcome *o, struct json *details)
{
    const struct api_kind *k = o->plain ? NULL : q->kind;
    const char *group = k ? k->group : o->group;
    if (o->name) {
        json_set_string(details, "name", o->name);
    }
    if (group && *group && (k || o->kind)) {
        json_set_string(details, "group", group);
    }
    if (k || o->kind) {
        json_set_string(details, "kind", o->kind ? o->kind : k->plural);
    }
    if (o->uid) {
        json_set_string(details, "uid", o->uid);
    }
}

static void add_causes(const struct api_causes *causes, struct json *details)
{
    for (size_t i = 0; i < causes->n; i++) {
        struct json *cause = json_append(json_ensure_array(details, "causes"), json_object());
        json_set_string(cause, "reason", causes->list[i].reason);
        json_set_string(cause, "message", causes->list[i].message);
        if (causes->list[i].field) {
            json_set_string(cause, "field", causes->list[i].field);
        }
    }
}

struct json *status_object(const struct request *q, const struct outcome *o)
{
    struct json *s = json_object(), *meta = json_object();
    json_set_string(s, "kind", "Status");
    json_set_string(s, "apiVersion", "v1");
    json_set(s, "metadata", meta);
    if (o->resume) {
        json_set_string(meta, "continue", o->resume);
    }
    json_set_string(s, "status", o->code < 400 ? "Success" : "Failure");
    if (o->message) {
        json_set_string(s, "message", o->message);
    }
    if (o->reason) {
        json_set_string(s, "reason", o->reason);
    }
    struct json *details = json_object();
    add_target(q, o, details);
    add_causes(&o->causes, details);
    if (o->retry_s) {
        json_set_int(details, "retryAfterSeconds", o->retry_s);
    }
    /* Always there: clients of Kubernetes read its members without asking. */
    json_set(s, "details", details);
    /* Kubernetes writes the code of an error, and of a creation that answers with a Status. */
    if (o->code != 200) {
        json_set_int(s, "code", o->code);
    }
    return s;
}

static void answer_status(struct request *q, const struct outcome *o)
{
    CLEANUP(json_free) struct json *v = status_object(q, o);
    if (o->retry_s) {
        char text[16];
        snprintf(text, sizeof text, "%u", o->retry_s);
        http_set_header(q->x, "Retry-After", text);
    }
    if (o->code == 403) {
        /* The text contains names that the client chose; Kubernetes sets the header, too. */
        http_set_header(q->x, "X-Content-Type-Options", "nosniff");
    }
    answer_json(q, o->code, NULL, v);
}

void request_warn(struct request *q, const char *agent, const char *text)
{
    q->warnings = q->warnings ? q->warnings : json_object();
    if (!json_get(q->warnings, text)) {
        json_set_string(q->warnings, text, agent);
    }
}

/* ---- objects ---- */

/* 'text' is JSON made by this server; converts it to protobuf or YAML, or indents it, if the client
 * requested that. */
static void answer_formatted(struct request *q, int code, const char *text, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    json_parse(text, size, &v, NULL);
    answer_json(q, code, NULL, v);
}

struct blob *request_text(const struct request *q, struct blob *text)
{
    if (q->kind->view) {
        CLEANUP_FREE char *version = request_api_version(q);
        return object_text_view(text, q->kind, version);
    }
    return q->head ? object_text_as(text, q->ck->head, q->head) : blob_ref(text);
}

/* Position of the brace that opens the metadata, with which the head ends. */
static size_t metadata_at(const struct request *q)
{
    return strlen(q->head ? q->head : q->ck->head) - 1;
}

void request_write_item(const struct request *q, const struct blob *text, struct strbuf *out)
{
    size_t skip = q->kind->custom ? 0 : metadata_at(q) - (sizeof "\"metadata\":" - 1);
    if (skip) {
        strbuf_addc(out, '{');
    }
    strbuf_add(out, text->data + skip, text->size - skip);
}

void request_write_partial(const struct request *q, const struct blob *text, struct strbuf *out)
{
    size_t start = metadata_at(q);
    struct json_scan scan = {0};
    size_t n = json_scan_feed(&scan, text->data + start, text->size - start);
    strbuf_addf(out,
                "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\","
                "\"metadata\":",
                q->accept.v1beta1 ? "v1beta1" : "v1");
    strbuf_add(out, text->data + start, n);
    strbuf_addc(out, '}');
}

/* Sends one stored object of the request's kind, in the form and version that the client
 * requested. */
static void answer_object(struct request *q, int code, struct blob *stored)
{
    const struct accept *a = &q->accept;
    CLEANUP(blob_unref) struct blob *text = request_text(q, stored);
    if (streq(q->subresource, "scale")) {
        CLEANUP(json_free) struct json *obj = NULL;
        json_parse(text->data, text->size, &obj, NULL);
        CLEANUP(json_free) struct json *scale = scale_of(q->kind, obj);
        answer_json(q, code, NULL, scale);
        return;
    }
    if (a->protobuf) {
        CLEANUP_STRBUF struct strbuf message = STRBUF_INIT, out = STRBUF_INIT;
        CLEANUP(json_free) struct json *obj = NULL;
        encode_message(q, text, &message);
        encode_envelope(q, &message, &out);
        if (q->audit) {
            json_parse(text->data, text->size, &obj, NULL);
        }
        answer_proto(q, code, &out, obj);
        return;
    }
    if (a->form == FORM_OBJECT && !a->yaml && !a->pretty) {
        flow_answer(q, text->size);
        set_headers(q);
        struct http_exchange *x = q->x;
        finish(q, code, text->data, text->size);
        http_respond_blob(x, code, "application/json", text);
        return;
    }
    if (a->form == FORM_OBJECT) {
        answer_formatted(q, code, text->data, text->size);
        return;
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (a->form == FORM_PARTIAL) {
        request_write_partial(q, text, &out);
    } else {
        CLEANUP(json_free) struct json *obj = NULL;
        const char *version = a->v1beta1 ? "v1beta1" : "v1";
        json_parse(text->data, text->size, &obj, NULL);
        const char *rv = json_path_string(obj, "metadata", "resourceVersion", NULL);
        strbuf_addf(&out,
                    "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{"
                    "\"resourceVersion\":\"%s\"},\"columnDefinitions\":",
                    version, rv ? rv : "");
        api_table_columns(q->kind, &out);
        strbuf_adds(&out, ",\"rows\":[");
        api_table_row(q->kind, obj, text->data, text->size, a->include, time_wall_ms(), &out);
        strbuf_adds(&out, "]}");
    }
    if (a->pretty) {
        answer_formatted(q, code, out.data, out.size);
    } else {
        answer_text(q, code, NULL, &out);
    }
}

/* ---- outcomes ---- */

void request_answer(struct request *q, struct outcome *o)
{
    switch (o->type) {
    case OUTCOME_TAKEN_OVER:
        break;
    case OUTCOME_STATUS:
        answer_status(q, o);
        break;
    case OUTCOME_OBJECT:
        effect_warn(q);
        answer_object(q, o->code, o->object);
        break;
    case OUTCOME_JSON:
        answer_json(q, o->code, o->content_type, o->json);
        break;
    case OUTCOME_TEXT:
        if (!o->content_type && q->accept.protobuf) {
            answer_formatted(q, o->code, o->text.data, o->text.size);
        } else {
            answer_text(q, o->code, o->content_type, &o->text);
        }
        break;
    case OUTCOME_NONE:
        outcome_error(o, 500, "InternalError",
                      "Internal error occurred: the request has no outcome");
        answer_status(q, o);
    }
}

void respond_error(struct request *q, int code, const char *reason, const char *text)
{
    CLEANUP(outcome_done) struct outcome o = {0};
    outcome_error(&o, code, reason, "%s", text);
    request_answer(q, &o);
}
