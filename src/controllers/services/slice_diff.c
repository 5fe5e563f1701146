/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest change from the existing slices to the desired ones. */
#include "base/map.h"
#include "base/mem.h"
#include "controller/obj.h"
#include "controllers/services/endpoint_plan.h"

/* A slice that exists or will be made. */
struct slice {
    struct json *object; /* A changed copy; NULL: the slice is unchanged. */
    const struct json *had;
    const struct json *type, *ports; /* The desired type and ports. */
    struct json *endpoints;          /* The desired endpoints. */
    bool changed, matched;
};

struct diff {
    struct slice *list;
    size_t n, cap;
    const struct json *template;
};

static const char *identity(const struct json *ep)
{
    const char *uid = json_path_string(ep, "targetRef", "uid", NULL);
    const char *address = json_get_string(json_at(json_get(ep, "addresses"), 0));
    return uid && *uid ? uid : address ? address : "";
}

static bool has_type(const struct slice *s, const struct json *group)
{
    const char *type = json_get_string(s->type);
    return type && streq_null(json_path_string(group, "addressType", NULL), type);
}

static bool belongs(const struct slice *s, const struct json *group)
{
    const struct json *ports = json_get(group, "ports");
    return has_type(s, group) && json_count(s->ports) == json_count(ports) &&
           (!json_count(ports) || json_equal(s->ports, ports));
}

/* Keeps endpoints of the group in the slices that have them; 'left' gets
 * the endpoints that no slice has. */
static void keep_what_is_there(struct diff *d, const struct json *group, struct smap *left)
{
    struct json *ep;
    JSON_FOREACH (ep, json_get(group, "endpoints")) {
        smap_set(left, identity(ep), ep);
    }
    for (size_t i = 0; i < d->n; i++) {
        struct slice *s = &d->list[i];
        if (s->matched || !belongs(s, group)) {
            continue;
        }
        s->matched = true;
        JSON_FOREACH (ep, json_get(s->had, "endpoints")) {
            struct json *want = smap_take(left, identity(ep));
            s->changed |= !want || !json_equal(ep, want);
            if (want) {
                json_append(s->endpoints, json_clone(want));
            }
        }
    }
}

/* Gives an empty slice the group's ports, rather than replacing it. */
static struct slice *reuse_slice(struct diff *d, const struct json *group)
{
    for (size_t i = 0; i < d->n; i++) {
        struct slice *s = &d->list[i];
        if (!s->matched && has_type(s, group) && !json_count(json_get(s->had, "endpoints"))) {
            s->matched = s->changed = true;
            s->ports = json_get(group, "ports");
            return s;
        }
    }
    return NULL;
}

static struct slice *add_slice(struct diff *d, const struct json *group)
{
    struct slice *empty = reuse_slice(d, group);
    if (empty) {
        return empty;
    }
    d->list = grow(d->list, &d->cap, d->n + 1, sizeof *d->list);
    struct slice *s = &d->list[d->n++];
    *s = (struct slice){.object = json_clone(d->template),
                        .type = json_get(group, "addressType"),
                        .ports = json_get(group, "ports"),
                        .endpoints = json_array(),
                        .changed = true,
                        .matched = true};
    json_set(s->object, "addressType", json_clone(json_get(group, "addressType")));
    json_set(s->object, "ports", json_clone(json_get(group, "ports")));
    return s;
}

/* The slice for the next new endpoint of the group: one that is written
 * anyway, or the fullest one with room. */
static struct slice *place(struct diff *d, const struct json *group)
{
    struct slice *best = NULL;
    for (size_t i = 0; i < d->n; i++) {
        struct slice *s = &d->list[i];
        size_t n = json_count(s->endpoints);
        if (!s->matched || !belongs(s, group) || n >= SLICE_MAX) {
            continue;
        }
        if (!best || (s->changed && !best->changed) ||
            (s->changed == best->changed && n > json_count(best->endpoints))) {
            best = s;
        }
    }
    return best ? best : add_slice(d, group);
}

/* Whether labels or owners differ from the desired ones. */
static bool differs_in_metadata(const struct json *slice, const struct json *template)
{
    static const char *const members[] = {"labels", "ownerReferences"};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        const struct json *a = json_path(slice, "metadata", members[i], NULL);
        if (!a || !json_equal(a, json_path(template, "metadata", members[i], NULL))) {
            return true;
        }
    }
    return false;
}

static void add_step(struct json *steps, const char *verb, struct json *object)
{
    struct json *step = json_append(steps, json_object());
    json_set_string(step, "verb", verb);
    json_set(step, "object", object);
}

static struct json *updated(const struct slice *s, const struct json *template)
{
    struct json *o = json_clone(s->had), *meta = json_ensure_object(o, "metadata");
    const char *time = obj_annotation(template, TRIGGER_TIME_ANNOTATION);
    json_set(meta, "labels", json_clone(json_path(template, "metadata", "labels", NULL)));
    json_set(meta, "ownerReferences",
             json_clone(json_path(template, "metadata", "ownerReferences", NULL)));
    if (time) {
        obj_set_annotation(o, TRIGGER_TIME_ANNOTATION, time);
    }
    json_set(o, "endpoints", json_clone(s->endpoints));
    json_set(o, "ports", s->ports ? json_clone(s->ports) : json_array());
    return o;
}

/* The steps in order: additions come before removals, so that no endpoint is missing in between. */
static struct json *steps_of(struct diff *d)
{
    struct json *steps = json_array(), *gone = json_array();
    for (size_t i = 0; i < d->n; i++) {
        struct slice *s = &d->list[i];
        if (s->object) {
            struct json *o = TAKE(s->object);
            json_set(o, "endpoints", TAKE(s->endpoints));
            add_step(steps, "POST", o);
        } else if (!s->matched || (s->changed && !json_count(s->endpoints))) {
            add_step(gone, "DELETE", json_clone(s->had));
        }
    }
    for (size_t i = 0; i < d->n; i++) {
        struct slice *s = &d->list[i];
        bool stays = s->had && s->matched && !(s->changed && !json_count(s->endpoints));
        if (stays && (s->changed || differs_in_metadata(s->had, d->template))) {
            add_step(steps, "PUT", updated(s, d->template));
        }
    }
    while (json_count(gone)) {
        json_append(steps, json_take_at(gone, 0));
    }
    json_free(gone);
    return steps;
}

/* A service without endpoints has one empty slice. */
static struct json *steps_to_none(const struct json *const *have, size_t n,
                                  const struct json *template)
{
    struct json *steps = json_array();
    if (!n) {
        struct json *o = json_clone(template);
        json_set_string(o, "addressType", "IPv4");
        json_set(o, "endpoints", json_array());
        json_set(o, "ports", json_array());
        add_step(steps, "POST", o);
    }
    for (size_t i = 0; i < n; i++) {
        if (i) {
            add_step(steps, "DELETE", json_clone(have[i]));
        } else if (json_count(json_get(have[0], "endpoints")) ||
                   differs_in_metadata(have[0], template)) {
            struct slice s = {
                .had = have[0], .ports = json_get(have[0], "ports"), .endpoints = json_array()};
            add_step(steps, "PUT", updated(&s, template));
            json_free(s.endpoints);
        }
    }
    return steps;
}

struct json *slices_diff(const struct json *groups, const struct json *const *have, size_t n,
                         const struct json *template)
{
    if (!json_count(groups)) {
        return steps_to_none(have, n, template);
    }
    struct diff d = {.template = template};
    for (size_t i = 0; i < n; i++) {
        d.list = grow(d.list, &d.cap, d.n + 1, sizeof *d.list);
        d.list[d.n++] = (struct slice){.had = have[i],
                                       .type = json_get(have[i], "addressType"),
                                       .ports = json_get(have[i], "ports"),
                                       .endpoints = json_array()};
    }
    const struct json *group;
    JSON_FOREACH (group, groups) {
        struct smap left;
        struct smap_entry *se;
        smap_init(&left, NULL);
        keep_what_is_there(&d, group, &left);
        SMAP_FOREACH (se, &left) {
            struct slice *s = place(&d, group);
            s->changed = true;
            json_append(s->endpoints, json_clone(se->value));
        }
        smap_done(&left);
    }
    struct json *steps = steps_of(&d);
    for (size_t i = 0; i < d.n; i++) {
        json_free(d.list[i].object);
        json_free(d.list[i].endpoints);
    }
    free(d.list);
    return steps;
}
