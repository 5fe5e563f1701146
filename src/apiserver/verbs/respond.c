/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: Status objects, and objects in the form that was asked for. */
#include "apiserver/access/filter.h"
#include "base/timeutil.h"
#include "wire/gzip.h"
#include "wire/yaml.h"

#include <inttypes.h>
#include <stdio.h>

const char *resource_text_(const struct api_kind *k, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", k->plural, *k->group ? "." : "", k->group);
    return buf;
}

/* 'body' is JSON, or NULL. */
static void finish(struct request *q, int code, const char *body, size_t size)
{
    static const char none[] = "";
    metrics_count(q->server->metrics, q->verb, q->kind ? q->kind->plural : none, code,
                  time_mono_ns() - q->start_ns);
    filter_done(q, code, body, size);
    request_free(q);
}

/* 'audited': the same as JSON, or NULL. */
static void send_text(struct request *q, int code, const char *content_type,
                      const struct strbuf *text, const struct strbuf *audited)
{
    struct http_exchange *x = q->x;
    flow_answer(q, text->size);
    finish(q, code, audited ? strbuf_cstr(audited) : NULL, audited ? audited->size : 0);
    http_respond(x, code, content_type, strbuf_cstr(text), text->size);
}

void respond_streamed(struct request *q)
{
    finish(q, 200, NULL, 0);
}

/* As kube-apiserver: only what is large, and only answers to reads.  What is very large goes as it is, as one
 * client's answer must not keep the others waiting. */
#define GZIP_MIN ((size_t) 128 << 10)
#define GZIP_MAX ((size_t) 4 << 20)

static bool wants_gzip(const struct request *q, size_t size)
{
    const char *accept = http_header(q->x, "accept-encoding");
    if (size < GZIP_MIN || size > GZIP_MAX || !accept || !streq(http_method(q->x), "GET")) {
        return false;
    }
    const char *at = strstr(accept, "gzip");
    /* "gzip;q=0": not that one. */
    return at && !str_has_prefix(at + 4, ";q=0") && !str_has_prefix(at + 4, "; q=0");
}

void respond_text(struct request *q, int code, const char *content_type, struct strbuf *text)
{
    static const char json[] = "application/json";
    CLEANUP_STRBUF struct strbuf compressed = STRBUF_INIT;
    content_type = content_type ? content_type : json;
    const struct strbuf *audited = streq(content_type, json) ? text : NULL;
    if (wants_gzip(q, text->size) && gzip_compress(text->data, text->size, &compressed) == 0) {
        http_set_header(q->x, "Content-Encoding", "gzip");
        http_set_header(q->x, "Vary", "Accept-Encoding");
        text = &compressed;
    }
    send_text(q, code, content_type, text, audited);
}

void respond_json(struct request *q, int code, const char *content_type, const struct json *v)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
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
    respond_text(q, code, content_type, &text);
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

struct json *status_object(const struct request *q, const struct status *s)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "Status");
    json_set_string(o, "apiVersion", "v1");
    json_set(o, "metadata", json_object());
    json_set_string(o, "status", s->code < 400 ? "Success" : "Failure");
    if (s->message) {
        json_set_string(o, "message", s->message);
    }
    if (s->reason) {
        json_set_string(o, "reason", s->reason);
    }
    const struct api_kind *k = q->kind;
    struct json *details = json_object();
    if (s->name) {
        json_set_string(details, "name", s->name);
    }
    if (k && !s->plain) {
        if (*k->group) {
            json_set_string(details, "group", k->group);
        }
        json_set_string(details, "kind", s->kind ? s->kind : k->plural);
    } else if (s->kind) {
        if (s->group && *s->group) {
            json_set_string(details, "group", s->group);
        }
        json_set_string(details, "kind", s->kind);
    }
    if (s->uid) {
        json_set_string(details, "uid", s->uid);
    }
    if (s->causes) {
        struct json *list = json_ensure_array(details, "causes");
        for (size_t i = 0; i < s->causes->n; i++) {
            struct json *cause = json_object();
            json_set_string(cause, "reason", s->causes->list[i].reason);
            json_set_string(cause, "message", s->causes->list[i].message);
            if (s->causes->list[i].field) {
                json_set_string(cause, "field", s->causes->list[i].field);
            }
            json_append(list, cause);
        }
    }
    if (s->retry_after) {
        json_set_int(details, "retryAfterSeconds", s->retry_after);
    }
    if (json_count(details)) {
        json_set(o, "details", details);
    } else {
        json_free(details);
    }
    json_set_int(o, "code", s->code);
    return o;
}

void respond_status(struct request *q, const struct status *s)
{
    CLEANUP(json_free) struct json *o = status_object(q, s);
    if (s->retry_after) {
        char text[16];
        snprintf(text, sizeof text, "%u", s->retry_after);
        http_set_header(q->x, "Retry-After", text);
    }
    respond_json(q, s->code, NULL, o);
}

void respond_error(struct request *q, int code, const char *reason, const char *fmt, ...)
{
    struct strbuf text = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    CLEANUP_FREE char *message = strbuf_steal(&text);
    respond_status(q, &(struct status){.code = code,
                                       .reason = reason,
                                       .message = message,
                                       .plain = true,
                                       .retry_after = code == 429 || code == 503 ? 1 : 0});
}

void respond_not_found(struct request *q, const char *name)
{
    CLEANUP_FREE char *message = xasprintf("%s \"%s\" not found", RESOURCE_TEXT(q->kind), name);
    respond_status(
        q, &(struct status){.code = 404, .reason = "NotFound", .message = message, .name = name});
}

void respond_conflict(struct request *q, const char *name, const char *why)
{
    CLEANUP_FREE char *message = xasprintf("Operation cannot be fulfilled on %s \"%s\": %s",
                                           RESOURCE_TEXT(q->kind), name, why);
    respond_status(
        q, &(struct status){.code = 409, .reason = "Conflict", .message = message, .name = name});
}

void respond_invalid(struct request *q, const char *name, const struct api_causes *causes)
{
    const struct api_kind *k = q->kind;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "%s%s%s \"%s\" is invalid: %s", k->kind, *k->group ? "." : "", k->group,
                name ? name : "", causes->n > 1 ? "[" : "");
    for (size_t i = 0; i < causes->n; i++) {
        strbuf_addf(&text, "%s%s: %s", i ? ", " : "", causes->list[i].field,
                    causes->list[i].message);
    }
    strbuf_adds(&text, causes->n > 1 ? "]" : "");
    respond_status(q, &(struct status){.code = 422,
                                       .reason = "Invalid",
                                       .message = text.data,
                                       .name = name,
                                       .kind = k->kind,
                                       .causes = causes});
}

void respond_deleted(struct request *q, const char *name, const char *uid)
{
    respond_status(q, &(struct status){.code = 200, .name = name, .uid = uid});
}

void respond_too_large(struct request *q, uint64_t revision)
{
    struct api_cause cause = {.reason = "ResourceVersionTooLarge",
                              .message = (char *) "Too large resource version"};
    struct api_causes causes = {.list = &cause, .n = 1};
    CLEANUP_FREE char *message =
        xasprintf("Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64, revision,
                  q->server->cache.revision);
    respond_status(q, &(struct status){.code = 504,
                                       .reason = "Timeout",
                                       .message = message,
                                       .plain = true,
                                       .causes = &causes,
                                       .retry_after = 1});
}

/* ---- objects ---- */

const char *form_content_type(const struct accept *a)
{
    return a->yaml ? "application/yaml" : "application/json";
}

/* 'text' is JSON of ours: as YAML or indented when that is wanted. */
static void respond_formatted(struct request *q, int code, const char *text, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    json_parse(text, size, &v, NULL);
    respond_json(q, code, NULL, v);
}

struct blob *request_text(const struct request *q, struct blob *text)
{
    if (q->kind->view) {
        return object_text_view(text, q->kind);
    }
    return q->head ? object_text_as(text, q->ck->head, q->head) : blob_ref(text);
}

void request_write_partial(const struct request *q, const struct blob *text, struct strbuf *out)
{
    /* The head ends with the brace that opens the metadata. */
    size_t start = strlen(q->head ? q->head : q->ck->head) - 1;
    struct json_scan scan = {0};
    size_t n = json_scan_feed(&scan, text->data + start, text->size - start);
    strbuf_addf(out,
                "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\","
                "\"metadata\":",
                q->accept.v1beta1 ? "v1beta1" : "v1");
    strbuf_add(out, text->data + start, n);
    strbuf_addc(out, '}');
}

void respond_object(struct request *q, int code, struct blob *stored)
{
    const struct accept *a = &q->accept;
    CLEANUP(blob_unref) struct blob *text = request_text(q, stored);
    if (streq(q->subresource, "scale")) {
        CLEANUP(json_free) struct json *obj = NULL;
        json_parse(text->data, text->size, &obj, NULL);
        CLEANUP(json_free) struct json *scale = scale_of(q->kind, obj);
        respond_json(q, code, NULL, scale);
        return;
    }
    if (a->form == FORM_OBJECT && !a->yaml && !a->pretty) {
        flow_answer(q, text->size);
        struct http_exchange *x = q->x;
        finish(q, code, text->data, text->size);
        http_respond_blob(x, code, "application/json", text);
        return;
    }
    if (a->form == FORM_OBJECT) {
        respond_formatted(q, code, text->data, text->size);
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
        respond_formatted(q, code, out.data, out.size);
    } else {
        respond_text(q, code, NULL, &out);
    }
}
