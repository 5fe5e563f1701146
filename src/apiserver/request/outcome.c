/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/request/outcome.h"

#include <stdio.h>

#define RETRY_S 1

const char *resource_text_(const struct api_kind *k, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", k->plural, *k->group ? "." : "", k->group);
    return buf;
}

void outcome_done(struct outcome *o)
{
    blob_unref(o->object);
    json_free(o->json);
    strbuf_done(&o->text);
    free(o->message);
    free(o->name);
    free(o->kind);
    free(o->group);
    free(o->uid);
    free(o->resume);
    api_causes_done(&o->causes);
    *o = (struct outcome){0};
}

static char *copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static void set_status(struct outcome *o, int code, const char *reason, const char *fmt, va_list ap)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_vaddf(&text, fmt, ap);
    o->type = OUTCOME_STATUS;
    o->code = code;
    o->reason = reason;
    o->message = strbuf_steal(&text);
}

void outcome_error(struct outcome *o, int code, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    set_status(o, code, reason, fmt, ap);
    va_end(ap);
    o->plain = true;
    o->retry_s = code == 429 || code == 503 ? RETRY_S : 0;
}

void outcome_status(struct outcome *o, int code, const char *reason, const char *name,
                    const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    set_status(o, code, reason, fmt, ap);
    va_end(ap);
    o->name = copy(name);
}

void outcome_add_cause(struct outcome *o, const char *reason, const char *field,
                       const char *message)
{
    struct api_causes *c = &o->causes;
    c->list = grow(c->list, &c->cap, c->n + 1, sizeof *c->list);
    c->list[c->n++] =
        (struct api_cause){.field = copy(field), .reason = reason, .message = xstrdup(message)};
}

void outcome_not_found(struct outcome *o, const struct api_kind *k, const char *name)
{
    outcome_status(o, 404, "NotFound", name, "%s \"%s\" not found", RESOURCE_TEXT(k), name);
}

void outcome_conflict(struct outcome *o, const struct api_kind *k, const char *name,
                      const char *why)
{
    outcome_status(o, 409, "Conflict", name, "Operation cannot be fulfilled on %s \"%s\": %s",
                   RESOURCE_TEXT(k), name, why);
}

static char *causes_text(const struct api_causes *causes)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, causes->n > 1 ? "[" : "");
    for (size_t i = 0; i < causes->n; i++) {
        strbuf_addf(&text, "%s%s: %s", i ? ", " : "", causes->list[i].field,
                    causes->list[i].message);
    }
    strbuf_adds(&text, causes->n > 1 ? "]" : "");
    return strbuf_steal(&text);
}

void outcome_take_causes(struct outcome *o, struct api_causes *causes)
{
    o->causes = *causes;
    *causes = (struct api_causes){0};
}

void outcome_invalid(struct outcome *o, const struct api_kind *k, const char *name,
                     struct api_causes *causes)
{
    CLEANUP_FREE char *text = causes_text(causes);
    outcome_status(o, 422, "Invalid", name, "%s%s%s \"%s\" is invalid: %s", k->kind,
                   *k->group ? "." : "", k->group, name ? name : "", text);
    o->kind = xstrdup(k->kind);
    outcome_take_causes(o, causes);
}

void outcome_invalid_field(struct outcome *o, const struct api_kind *k, const char *name,
                           const char *field, const char *message)
{
    struct outcome one = {0};
    outcome_add_cause(&one, "FieldValueInvalid", field, message);
    outcome_invalid(o, k, name, &one.causes);
}

void outcome_invalid_options(struct outcome *o, const char *kind, struct api_causes *causes)
{
    CLEANUP_FREE char *text = causes_text(causes);
    outcome_status(o, 422, "Invalid", NULL, "%s.meta.k8s.io \"\" is invalid: %s", kind, text);
    o->plain = true;
    outcome_take_causes(o, causes);
}

void outcome_deleted(struct outcome *o, const char *name, const char *uid)
{
    *o =
        (struct outcome){.type = OUTCOME_STATUS, .code = 200, .name = copy(name), .uid = copy(uid)};
}

void outcome_object(struct outcome *o, int code, struct blob *stored)
{
    *o = (struct outcome){.type = OUTCOME_OBJECT, .code = code, .object = stored};
}

void outcome_json(struct outcome *o, int code, const char *content_type, struct json *v)
{
    *o = (struct outcome){
        .type = OUTCOME_JSON, .code = code, .content_type = content_type, .json = v};
}

void outcome_text(struct outcome *o, int code, const char *content_type, struct strbuf *text)
{
    *o = (struct outcome){
        .type = OUTCOME_TEXT, .code = code, .content_type = content_type, .text = *text};
    *text = STRBUF_INIT;
}

void outcome_take_over(struct outcome *o)
{
    *o = (struct outcome){.type = OUTCOME_TAKEN_OVER};
}
