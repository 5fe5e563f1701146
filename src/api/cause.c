/* SPDX-License-Identifier: Apache-2.0 */
/* Causes: the errors of an object, in the format of Kubernetes' field errors. */
#include "api/kind.h"

#include "base/mem.h"

#include <stdio.h>

#define VALUE_TEXT_MAX 256 /* Bytes of a refused value that are repeated to the client. */

void api_causes_done(struct api_causes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->list[i].field);
        free(c->list[i].message);
    }
    free(c->list);
    *c = (struct api_causes){0};
}

static void add(struct api_causes *c, const char *field, const char *reason, char *message)
{
    if (c->n >= API_MAX_CAUSES) {
        free(message);
        return;
    }
    c->list = grow(c->list, &c->cap, c->n + 1, sizeof *c->list);
    c->list[c->n++] =
        (struct api_cause){.field = xstrdup(field), .reason = reason, .message = message};
}

/* "PREFIX[ VALUE][: text]" */
static char *message(const char *prefix, const struct json *value, const char *fmt, va_list ap)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, prefix);
    if (value) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        json_write(value, 0, &text);
        size_t size = text.size;
        if (size > VALUE_TEXT_MAX) {
            /* Does not cut within a UTF-8 sequence. */
            for (size = VALUE_TEXT_MAX; (text.data[size] & 0xc0) == 0x80; size--) {
            }
        }
        strbuf_addf(&b, ": %.*s%s", (int) size, text.data, size < text.size ? "..." : "");
    }
    if (fmt && *fmt) {
        strbuf_adds(&b, ": ");
        strbuf_vaddf(&b, fmt, ap);
    }
    return strbuf_steal(&b);
}

void api_invalid(struct api_causes *c, const char *field, const struct json *value, const char *fmt,
                 ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, field, "FieldValueInvalid", message("Invalid value", value, fmt, ap));
    va_end(ap);
}

void api_type_invalid(struct api_causes *c, const char *field, const struct json *value,
                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, field, "FieldValueTypeInvalid", message("Invalid value", value, fmt, ap));
    va_end(ap);
}

void api_required(struct api_causes *c, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, field, "FieldValueRequired", message("Required value", NULL, fmt, ap));
    va_end(ap);
}

void api_forbidden(struct api_causes *c, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, field, "FieldValueForbidden", message("Forbidden", NULL, fmt, ap));
    va_end(ap);
}

void api_duplicate(struct api_causes *c, const char *field, const struct json *value)
{
    CLEANUP_FREE char *text = json_to_text(value);
    add(c, field, "FieldValueDuplicate", xasprintf("Duplicate value: %.256s", text));
}

void api_not_found(struct api_causes *c, const char *field, const struct json *value,
                   const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, field, "FieldValueNotFound", message("Not found", value, fmt, ap));
    va_end(ap);
}

void api_unsupported(struct api_causes *c, const char *field, const struct json *value,
                     const char *const *values)
{
    CLEANUP_FREE char *text = value ? json_to_text(value) : xstrdup("\"\"");
    struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "Unsupported value: %.256s: supported values: ", text);
    for (size_t i = 0; values[i]; i++) {
        strbuf_addf(&b, "%s\"%s\"", i ? ", " : "", values[i]);
    }
    add(c, field, "FieldValueNotSupported", strbuf_steal(&b));
}

void api_too_long(struct api_causes *c, const char *field, size_t max)
{
    add(c, field, "FieldValueTooLong", xasprintf("Too long: may not be more than %zu bytes", max));
}

void api_too_many(struct api_causes *c, const char *field, size_t n, size_t max)
{
    add(c, field, "FieldValueTooMany",
        xasprintf("Too many: %zu: must have at most %zu items", n, max));
}

void api_conflicting(struct api_causes *c, const char *field, const char *manager)
{
    add(c, field, "FieldManagerConflict", xasprintf("conflict with %s", manager));
}

const char *api_field_(char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, size, fmt, ap);
    va_end(ap);
    return buf;
}
