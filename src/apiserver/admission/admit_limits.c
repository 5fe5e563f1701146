/* SPDX-License-Identifier: Apache-2.0 */
/* LimitRanger: pods and claims keep to the LimitRanges of their namespace, and containers that
 * state no amounts get the default ones, as in Kubernetes. */
#include "apiserver/admission/plugins.h"

#include "apiserver/request/respond.h"
#include "apiserver/request/server_priv.h"
#include "quota/limits.h"

static bool is_kind(const struct request *q, const char *plural)
{
    return streq(q->kind->plural, plural);
}

/* Whether the write is checked.  A pod's amounts change by "resize" only; a claim that is being
 * deleted may still lose its finalizers. */
static bool is_checked(const struct request *q, const struct json *obj, const struct json *old)
{
    if (is_kind(q, "pods")) {
        return !old || streq(q->subresource, "resize");
    }
    return is_kind(q, "persistentvolumeclaims") && !*q->subresource &&
           !(old && json_path(obj, "metadata", "deletionTimestamp", NULL));
}

/* A walk over the LimitRanges of the request's namespace. */
struct ranges {
    const struct cache_kind *ck;
    struct keyset_pos pos;
    char *first; /* The prefix of their keys; owned. */
};

static void ranges_begin(struct ranges *r, const struct request *q)
{
    r->ck = cache_find(&q->server->cache, api_kind_find("", "v1", "limitranges"));
    r->first = xasprintf("%s/", q->namespace);
    r->pos = keyset_seek(&r->ck->objects, r->first);
}

/* The tree is borrowed until the next call; NULL at the end. */
static const struct json *ranges_next(struct ranges *r, const struct request *q)
{
    struct object *o = keyset_next(&r->ck->objects, &r->pos);
    return o && str_has_prefix(o->key, r->first) ? parsed_get(&q->server->parsed, o) : NULL;
}

int limits_admit(struct request *q, struct json *obj, const struct json *old,
                 struct outcome *outcome)
{
    struct ranges r;
    const struct json *range;
    bool changed = false;
    if (!is_kind(q, "pods") || !is_checked(q, obj, old)) {
        return 0;
    }
    ranges_begin(&r, q);
    while ((range = ranges_next(&r, q))) {
        changed |= limits_fill_pod(range, obj);
    }
    free(r.first);
    if (changed) {
        /* The class follows from the amounts. */
        json_remove(json_get(obj, "status"), "qosClass");
        q->kind->defaults(obj);
    }
    return changed;
}

/* Types of other domains, and those of images, bound nothing. */
static void warn_of_types(struct request *q, const struct json *range)
{
    const struct json *list = json_path(range, "spec", "limits", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const char *type = json_get_text(json_at(list, i), "type");
        if (strchr(type, '/')) {
            CLEANUP_FREE char *text = xasprintf("spec.limits[%zu].type: %.80s: stored, not acted "
                                                "upon: Tenet has no objects of this type yet",
                                                i, type);
            request_warn(q, "-", text);
        }
    }
}

int limits_validate(struct request *q, const struct json *obj, const struct json *old,
                    struct outcome *outcome)
{
    struct ranges r;
    const struct json *range;
    int result = 0;
    if (is_kind(q, "limitranges")) {
        warn_of_types(q, obj);
        return 0;
    }
    if (!is_checked(q, obj, old)) {
        return 0;
    }
    ranges_begin(&r, q);
    while (result == 0 && (range = ranges_next(&r, q))) {
        CLEANUP_FREE char *why = limits_check(range, obj, !is_kind(q, "pods"));
        result = why ? admission_refuse(q, obj, why, outcome) : 0;
    }
    free(r.first);
    return result;
}
