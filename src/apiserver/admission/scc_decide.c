/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/scc_decide.h"

#include "api/kinds/pod_restrictions.h"
#include "apiserver/access/authz.h"

#include <stdlib.h>

#define MAX_TEXT ((size_t) 16 << 10) /* Reasons of a refusal; more of them are not told. */

struct scc_set {
    const struct cache_kind *kind; /* NULL: the kind is not served. */
    struct scc **list;             /* In the order in which they are tried. */
    size_t n;
    bool stale; /* The objects have changed since the list was made. */
    struct cache_subscriber subscriber;
};

/* ---- the set ---- */

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    struct scc_set *set = ctx;
    set->stale = set->stale || ck == set->kind;
}

static void on_loaded(void *ctx)
{
    ((struct scc_set *) ctx)->stale = true;
}

struct scc_set *scc_set_new(struct cache *c)
{
    struct scc_set *set = NEW(struct scc_set);
    set->kind = cache_find(c, api_kind_find(SCC_GROUP, "v1", SCC_PLURAL));
    set->stale = true;
    set->subscriber = (struct cache_subscriber){
        .rank = CACHE_RANK_ADMISSION, .ctx = set, .changed = on_changed, .loaded = on_loaded};
    cache_subscribe(c, &set->subscriber);
    return set;
}

static void forget(struct scc_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        scc_free(set->list[i]);
    }
    free(TAKE(set->list));
    set->n = 0;
}

struct scc_set *scc_set_free(struct scc_set *set)
{
    if (set) {
        cache_unsubscribe(&set->subscriber);
        forget(set);
        free(set);
    }
    return NULL;
}

static int by_order(const void *a, const void *b)
{
    return scc_compare(*(struct scc *const *) a, *(struct scc *const *) b);
}

static void refresh(struct scc_set *set)
{
    const struct object *o;
    size_t cap = 0;
    if (!set->stale || !set->kind) {
        return;
    }
    forget(set);
    struct keyset_pos pos = keyset_seek(&set->kind->objects, "");
    while ((o = keyset_next(&set->kind->objects, &pos))) {
        CLEANUP(json_free) struct json *obj = object_parse(o);
        set->list = grow(set->list, &cap, set->n + 1, sizeof(*set->list));
        set->list[set->n++] = scc_new(obj);
    }
    if (set->n) {
        qsort(set->list, set->n, sizeof(*set->list), by_order);
    }
    set->stale = false;
}

size_t scc_set_count(struct scc_set *set)
{
    refresh(set);
    return set->n;
}

/* ---- subjects ---- */

struct user_info *scc_account(const char *ns, const char *name)
{
    struct user_info *u = user_service_account(ns, name && *name ? name : "default", NULL);
    user_add_group(u, GROUP_AUTHENTICATED);
    return u;
}

static bool may_use(const struct scc_question *q, const struct scc *s, const struct user_info *u)
{
    return u && (scc_names_subject(s, u->name, u->groups, u->n_groups) ||
                 authz_may(q->security, u, "use", SCC_GROUP, SCC_PLURAL, q->ns, scc_name(s)));
}

/* ---- reasons ---- */

static void add_text(struct scc_answer *a, const char *text)
{
    if (a->text.size < MAX_TEXT) {
        strbuf_addf(&a->text, "%s%s", a->text.size ? ", " : "", text);
    }
}

/* Adds a reason of the constraints to the list of refusals, which ends with their entry or with
 * that of the constraints before. */
static void list_reason(struct scc_answer *a, const struct scc *s, const char *reason)
{
    struct json *last = json_at(a->refusals, json_count(a->refusals) - 1);
    if (!a->refusals) {
        return;
    }
    if (!last || !streq(json_get_text(last, "name"), scc_name(s))) {
        last = json_append(a->refusals, json_object());
        json_set_string(last, "name", scc_name(s));
    }
    json_append(json_ensure_array(last, "reasons"), json_string(reason));
}

static bool has_cause(const struct api_causes *c, const struct api_cause *cause)
{
    bool found = false;
    for (size_t i = 0; i < c->n && !found; i++) {
        found = streq(c->list[i].field, cause->field) && streq(c->list[i].message, cause->message);
    }
    return found;
}

/* Moves the causes of one of the constraints to the answer, each once. */
static void add_causes(struct scc_answer *a, const struct scc *s, struct api_causes *causes)
{
    for (size_t i = 0; i < causes->n; i++) {
        struct api_cause *cause = &causes->list[i];
        CLEANUP_FREE char *reason = xasprintf("%s: %s", cause->field, cause->message);
        CLEANUP_FREE char *text = xasprintf("provider %s: %s", scc_name(s), reason);
        add_text(a, text);
        list_reason(a, s, reason);
        if (a->causes.n < API_MAX_CAUSES && !has_cause(&a->causes, cause)) {
            a->causes.list =
                grow(a->causes.list, &a->causes.cap, a->causes.n + 1, sizeof(*a->causes.list));
            a->causes.list[a->causes.n++] =
                (struct api_cause){TAKE(cause->field), cause->reason, TAKE(cause->message)};
        }
    }
}

static void add_forbidden(struct scc_answer *a, const struct scc *s, const char *why)
{
    CLEANUP_FREE char *text = xasprintf("provider \"%s\": Forbidden: %s", scc_name(s), why);
    add_text(a, text);
    list_reason(a, s, why);
}

/* ---- one after another ---- */

/* The parts of the pod that are judged, in a copy. */
static struct json *copy_of(const struct json *pod)
{
    const struct json *annotations = json_path(pod, "metadata", "annotations", NULL);
    struct json *o = json_object();
    json_set(o, "spec", json_clone(json_get(pod, "spec")));
    if (annotations) {
        json_set(json_ensure_object(o, "metadata"), "annotations", json_clone(annotations));
    }
    return o;
}

/* Whether the constraints, with the values of the project, fit the pod. */
static bool fits(const struct scc_question *q, const struct scc *s, const struct json *annotations,
                 struct scc_answer *a)
{
    CLEANUP(scc_provider_done) struct scc_provider p = {0};
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct err e = {0};
    if (scc_provider_init(&p, s, q->ns, annotations, &e) < 0) {
        add_text(a, e.text);
        list_reason(a, s, e.text);
        return false;
    }
    CLEANUP(json_free) struct json *pod = copy_of(q->pod);
    const struct json *rights = scc_object(s);
    if (q->mode == SCC_FILLS_EPHEMERAL) {
        (void) scc_fill(&p, pod, SCC_EPHEMERAL_CONTAINERS);
    }
    /* Settings are filled in first, so that a refusal does not name one that is only unset. */
    bool changed = scc_fill(&p, pod, SCC_WHOLE_POD);
    scc_check(&p, pod, q->path, &causes);
    if (!json_get_bool(json_get(rights, "allowPrivilegedContainer"), false)) {
        pod_restrictions_check(pod, q->path,
                               json_get_bool(json_get(rights, "allowHostNetwork"), false), &causes);
    }
    if (causes.n) {
        add_causes(a, s, &causes);
        return false;
    }
    if (changed && streq_null(json_path_string(q->pod, "spec", "os", "name", NULL), "windows")) {
        add_forbidden(a, s, "it would give a Windows pod settings of Linux");
        return false;
    }
    if (changed && q->mode != SCC_FILLS) {
        add_forbidden(a, s, "it would change the pod, which an update may not");
        return false;
    }
    a->spec = json_take(pod, "spec");
    return true;
}

static void try(const struct scc_question *q, const struct scc *s, const struct json *annotations,
                struct scc_answer *a)
{
    bool by_user = may_use(q, s, q->user);
    if (!by_user && !may_use(q, s, q->account)) {
        add_forbidden(a, s, "not usable by user or serviceaccount");
    } else if (fits(q, s, annotations, a)) {
        a->by = s;
        a->by_account = !by_user;
    }
}

static const struct scc *find(const struct scc_set *set, const char *name)
{
    for (size_t i = 0; name && i < set->n; i++) {
        if (streq(scc_name(set->list[i]), name)) {
            return set->list[i];
        }
    }
    return NULL;
}

void scc_ask(const struct scc_question *q, struct scc_answer *ret)
{
    const struct json *annotations = json_path(q->project, "metadata", "annotations", NULL);
    ret->refusals = q->lists ? json_array() : NULL;
    refresh(q->set);
    const struct scc *first = find(q->set, q->only ? q->only : q->first);
    if (first) {
        try(q, first, annotations, ret);
    } else if (q->only) {
        add_text(ret, "the constraints that the annotation " SCC_REQUIRED_ANNOTATION
                      " names do not exist");
    } else if (!q->set->n) {
        add_text(ret, "no SecurityContextConstraints found in cluster");
    }
    for (size_t i = 0; i < q->set->n && !q->only && !ret->by; i++) {
        if (q->set->list[i] != first) {
            try(q, q->set->list[i], annotations, ret);
        }
    }
}

void scc_answer_done(struct scc_answer *a)
{
    json_free(a->spec);
    json_free(a->refusals);
    strbuf_done(&a->text);
    api_causes_done(&a->causes);
    *a = (struct scc_answer) SCC_ANSWER_INIT;
}
