/* SPDX-License-Identifier: Apache-2.0 */
#include "pod_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

const struct api_kind *rig_kind(const char *plural)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        if (streq(api_kinds[i]->plural, plural)) {
            return api_kinds[i];
        }
    }
    fail_msg("no kind %s", plural);
    return NULL;
}

struct json *rig_parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    CLEANUP_FREE char *s = xstrdup(text);
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p == '@' && p[1] != 'b' ? '\'' : *p;
    }
    if (json_parse(s, strlen(s), &v, &e) < 0) {
        fail_msg("%s: %s", s, e.text);
    }
    return v;
}

void rig_complete(const struct api_kind *k, struct json *obj, const struct json *old)
{
    k->prepare(obj, old);
    api_typed_normalize(k->schema, obj);
    api_schema_default(k->schema, obj);
    k->defaults(obj);
    api_typed_complete(k->schema, obj);
}

struct json *rig_stored(const char *plural, const char *text, const char *patch)
{
    struct json *obj = rig_parse(text);
    CLEANUP(json_free) struct json *p = patch ? rig_parse(patch) : NULL;
    if (p) {
        api_patch_merge(&obj, p);
    }
    rig_complete(rig_kind(plural), obj, NULL);
    return obj;
}

static const struct api_cause *find(const struct api_causes *c, const char *field)
{
    for (size_t i = 0; i < c->n; i++) {
        if (streq(c->list[i].field, field)) {
            return &c->list[i];
        }
    }
    return NULL;
}

void rig_expect(const struct api_causes *c, const char *what, const char *field, const char *says)
{
    if (!field) {
        if (c->n) {
            fail_msg("%s: %s: %s", what, c->list[0].field, c->list[0].message);
        }
        return;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (streq(c->list[i].field, field) && streq(c->list[i].message, says)) {
            return;
        }
    }
    const struct api_cause *cause = find(c, field);
    cause = !cause && c->n ? &c->list[0] : cause;
    fail_msg("%s: want %s: %s, got %s: %s", what, field, says, cause ? cause->field : "none",
             cause ? cause->message : "");
}
