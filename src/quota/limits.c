/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/limits.h"

#include "api/quantity.h"
#include "api/requests.h"
#include "base/mem.h"
#include "quota/quota.h"

#include <stdlib.h>

#define ANNOTATION "kubernetes.io/limit-ranger"

static const char *const container_lists[] = {"initContainers", "containers"};

static const struct json *items_of(const struct json *range)
{
    return json_path(range, "spec", "limits", NULL);
}

static bool is_type(const struct json *item, const char *type)
{
    return streq(json_get_text(item, "type"), type);
}

static const char *text_of(const struct json *amount)
{
    const char *text =
        json_is(amount, JSON_NUMBER) ? json_number_text(amount) : json_get_string(amount);
    return text ? text : "0";
}

/* ---- defaults ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Sets the amounts of 'defaults' that the container lacks in its list 'which'.  Appends "cpu,
 * memory request for container NAME" to 'notes'. */
static bool fill_list(struct json *container, const char *which, const char *word, bool init,
                      const struct json *defaults, struct strbuf *notes)
{
    size_t n = 0, count = json_is(defaults, JSON_OBJECT) ? json_count(defaults) : 0;
    CLEANUP_FREE const char **set = xcalloc(count + 1, sizeof *set);
    for (size_t i = 0; i < count; i++) {
        const char *resource = json_key_at(defaults, i);
        if (!json_path(container, "resources", which, resource, NULL)) {
            struct json *r = json_ensure_object(container, "resources");
            json_set(json_ensure_object(r, which), resource, json_clone(json_at(defaults, i)));
            set[n++] = resource;
        }
    }
    qsort(set, n, sizeof *set, by_text);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(notes, "%s%s", i ? ", " : notes->size ? "; " : "", set[i]);
    }
    if (n) {
        strbuf_addf(notes, " %s for %scontainer %s", word, init ? "init " : "",
                    json_get_text(container, "name"));
    }
    return n > 0;
}

static bool fill_containers(struct json *list, bool init, const struct json *item,
                            struct strbuf *notes)
{
    bool changed = false;
    for (size_t i = 0; i < json_count(list); i++) {
        struct json *c = json_at(list, i);
        changed |=
            fill_list(c, "requests", "request", init, json_get(item, "defaultRequest"), notes);
        changed |= fill_list(c, "limits", "limit", init, json_get(item, "default"), notes);
    }
    return changed;
}

bool limits_fill_pod(const struct json *range, struct json *pod)
{
    CLEANUP_STRBUF struct strbuf notes = STRBUF_INIT;
    struct json *spec = json_get(pod, "spec");
    const struct json *item;
    bool changed = false;
    JSON_FOREACH (item, items_of(range)) {
        if (is_type(item, "Container")) {
            changed |= fill_containers(json_get(spec, "containers"), false, item, &notes);
            changed |= fill_containers(json_get(spec, "initContainers"), true, item, &notes);
        }
    }
    if (changed) {
        CLEANUP_FREE char *text = xasprintf("LimitRanger plugin set: %s", strbuf_cstr(&notes));
        struct json *meta = json_ensure_object(pod, "metadata");
        json_set_string(json_ensure_object(meta, "annotations"), ANNOTATION, text);
    }
    return changed;
}

/* ---- checks ---- */

/* The reasons why an object is refused, each once. */
struct reasons {
    struct json *list;
};

static void refuse(struct reasons *r, char *why)
{
    const struct json *had;
    JSON_FOREACH (had, r->list) {
        if (streq(json_get_string(had), why)) {
            free(why);
            return;
        }
    }
    json_append(r->list, json_string(why));
    free(why);
}

/* The amounts of one object: NULL is an amount that it does not state. */
struct stated {
    const char *type; /* "Container" */
    const char *resource;
    const char *bound; /* The text of the bound. */
    const char *request, *limit;
};

static void check_min(const struct stated *s, struct reasons *r)
{
    if (!s->request) {
        refuse(r, xasprintf("minimum %s usage per %s is %s.  No request is specified", s->resource,
                            s->type, s->bound));
    } else if (api_quantity_compare(s->request, s->bound) < 0) {
        refuse(r, xasprintf("minimum %s usage per %s is %s, but request is %s", s->resource,
                            s->type, s->bound, s->request));
    } else if (s->limit && api_quantity_compare(s->limit, s->bound) < 0) {
        refuse(r, xasprintf("minimum %s usage per %s is %s, but limit is %s", s->resource, s->type,
                            s->bound, s->limit));
    }
}

static void check_max(const struct stated *s, struct reasons *r)
{
    if (!s->limit) {
        refuse(r, xasprintf("maximum %s usage per %s is %s.  No limit is specified", s->resource,
                            s->type, s->bound));
    } else if (api_quantity_compare(s->limit, s->bound) > 0) {
        refuse(r, xasprintf("maximum %s usage per %s is %s, but limit is %s", s->resource, s->type,
                            s->bound, s->limit));
    } else if (s->request && api_quantity_compare(s->request, s->bound) > 0) {
        refuse(r, xasprintf("maximum %s usage per %s is %s, but request is %s", s->resource,
                            s->type, s->bound, s->request));
    }
}

/* The same for a claim, which has no limits. */
static void check_max_request(const struct stated *s, struct reasons *r)
{
    if (!s->request) {
        refuse(r, xasprintf("maximum %s usage per %s is %s.  No request is specified", s->resource,
                            s->type, s->bound));
    } else if (api_quantity_compare(s->request, s->bound) > 0) {
        refuse(r, xasprintf("maximum %s usage per %s is %s, but request is %s", s->resource,
                            s->type, s->bound, s->request));
    }
}

/* Thousandths of the amount. */
static double milli(const char *text)
{
    int64_t n = 0;
    (void) api_quantity_value(text, -3, &n, NULL);
    return (double) n;
}

static void check_ratio(const struct stated *s, struct reasons *r)
{
    double request = s->request ? milli(s->request) : 0, limit = s->limit ? milli(s->limit) : 0;
    if (request <= 0 || limit <= 0) {
        const char *lacking = request <= 0 ? "request" : "limit";
        refuse(r, xasprintf("%s max limit to request ratio per %s is %s, but no %s is specified or "
                            "%s is 0",
                            s->resource, s->type, s->bound, lacking, lacking));
    } else if (limit / request * 1000 > milli(s->bound)) {
        refuse(r, xasprintf("%s max limit to request ratio per %s is %s, but provided ratio is %f",
                            s->resource, s->type, s->bound, limit / request));
    }
}

typedef void check_fn(const struct stated *s, struct reasons *r);

/* Reads the amounts that an object states. */
typedef void state_fn(const struct json *obj, const char *resource, struct stated *s);

static void check_bounds(const struct json *item, const char *bounds, const struct json *obj,
                         state_fn *state, check_fn *check, struct reasons *r)
{
    const struct json *map = json_get(item, bounds);
    for (size_t i = 0; json_is(map, JSON_OBJECT) && i < json_count(map); i++) {
        struct stated s = {.type = json_get_text(item, "type"),
                           .resource = json_key_at(map, i),
                           .bound = text_of(json_at(map, i))};
        state(obj, s.resource, &s);
        check(&s, r);
    }
}

static const char *amount_in(const struct json *resources, const char *which, const char *resource)
{
    const struct json *v = json_path(resources, which, resource, NULL);
    return v ? text_of(v) : NULL;
}

static void state_container(const struct json *c, const char *resource, struct stated *s)
{
    const struct json *r = json_get(c, "resources");
    s->request = amount_in(r, "requests", resource);
    s->limit = amount_in(r, "limits", resource);
}

static void state_claim(const struct json *claim, const char *resource, struct stated *s)
{
    s->request = amount_in(json_path(claim, "spec", "resources", NULL), "requests", resource);
}

static void check_container(const struct json *item, const struct json *c, struct reasons *r)
{
    check_bounds(item, "min", c, state_container, check_min, r);
    check_bounds(item, "max", c, state_container, check_max, r);
    check_bounds(item, "maxLimitRequestRatio", c, state_container, check_ratio, r);
}

/* The sums of a pod, as one container that states them; owned. */
static struct json *sums_of(const struct json *pod)
{
    static const char *const lists[] = {"requests", "limits"};
    const struct json *spec = json_get(pod, "spec"), *c;
    struct json *out = json_object(), *r = json_set(out, "resources", json_object());
    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        for (size_t l = 0; l < ARRAY_SIZE(container_lists); l++) {
            JSON_FOREACH (c, json_get(spec, container_lists[l])) {
                const struct json *map = json_path(c, "resources", lists[k], NULL);
                for (size_t i = 0; json_is(map, JSON_OBJECT) && i < json_count(map); i++) {
                    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
                    const char *resource = json_key_at(map, i);
                    quota_write_amount(resource,
                                       api_pod_amount(spec, lists[k], resource, 0) -
                                           api_amount(json_get(spec, "overhead"), resource, 0),
                                       &text);
                    json_set_string(json_ensure_object(r, lists[k]), resource, strbuf_cstr(&text));
                }
            }
        }
    }
    return out;
}

static void check_pod(const struct json *item, const struct json *pod, struct reasons *r)
{
    const struct json *c;
    if (is_type(item, "Container")) {
        for (size_t l = ARRAY_SIZE(container_lists); l-- > 0;) {
            JSON_FOREACH (c, json_path(pod, "spec", container_lists[l], NULL)) {
                check_container(item, c, r);
            }
        }
    } else if (is_type(item, "Pod")) {
        CLEANUP(json_free) struct json *sums = sums_of(pod);
        check_container(item, sums, r);
    }
}

static void check_claim(const struct json *item, const struct json *claim, struct reasons *r)
{
    if (is_type(item, "PersistentVolumeClaim")) {
        check_bounds(item, "min", claim, state_claim, check_min, r);
        check_bounds(item, "max", claim, state_claim, check_max_request, r);
    }
}

char *limits_check(const struct json *range, const struct json *obj, bool is_claim)
{
    CLEANUP(json_free) struct json *list = json_array();
    struct reasons r = {list};
    const struct json *item;
    JSON_FOREACH (item, items_of(range)) {
        (is_claim ? check_claim : check_pod)(item, obj, &r);
    }
    size_t n = json_count(list);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&b, "%s%s", i ? ", " : "", json_get_string(json_at(list, i)));
    }
    return n == 0 ? NULL : n == 1 ? xstrdup(strbuf_cstr(&b)) : xasprintf("[%s]", strbuf_cstr(&b));
}
