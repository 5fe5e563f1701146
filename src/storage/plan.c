/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/plan_priv.h"

#include "base/mem.h"

#include <stdio.h>

void storage_plan_done(struct storage_plan *p)
{
    json_free(p->body);
    free(p->message);
    *p = (struct storage_plan){0};
}

void plan_write(struct storage_plan *p, enum storage_act act, struct json *body)
{
    p->act = act;
    p->body = body;
}

void plan_say(struct storage_plan *p, bool warning, const char *reason, const char *format, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, format);
    strbuf_vaddf(&b, format, ap);
    va_end(ap);
    p->warning = warning;
    p->reason = reason;
    p->message = strbuf_steal(&b);
}

struct json *plan_copy(const struct json *o, const char *kind)
{
    struct json *copy = json_clone(o);
    json_set_string(copy, "apiVersion", "v1");
    json_set_string(copy, "kind", kind);
    return copy;
}

struct json *plan_without_finalizer(const struct json *o, const char *kind, const char *name)
{
    struct json *copy = plan_copy(o, kind), *list = json_path(copy, "metadata", "finalizers", NULL);
    for (size_t i = json_count(list); i-- > 0;) {
        if (streq_null(json_get_string(json_at(list, i)), name)) {
            json_remove_at(list, i);
        }
    }
    return copy;
}
