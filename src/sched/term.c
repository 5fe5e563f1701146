/* SPDX-License-Identifier: Apache-2.0 */
#include "api/label_selector.h"
#include "sched/model_priv.h"

/* ---- values of topology keys ---- */

struct topo *topo_get(struct sched *s, const char *key)
{
    struct topo *t;
    LIST_FOREACH (t, struct topo, link, &s->topos) {
        if (streq(t->key, key)) {
            t->refs++;
            return t;
        }
    }
    t = NEW(struct topo);
    t->key = xstrdup(key);
    t->refs = 1;
    smap_init(&t->values, NULL);
    list_push_back(&s->topos, &t->link);
    for (size_t i = 0; i < s->n_nodes; i++) {
        if (s->nodes[i]) {
            topo_set_node(t, s->nodes[i]);
        }
    }
    return t;
}

void topo_put(struct topo *t)
{
    if (t && --t->refs == 0) {
        list_remove(&t->link);
        smap_done(&t->values);
        free(t->key);
        free(t->of);
        free(t);
    }
}

void topo_set_node(struct topo *t, const struct node *n)
{
    const char *value = n->present ? json_get_string(json_get(n->labels, t->key)) : NULL;
    size_t before = t->cap;
    t->of = grow(t->of, &t->cap, n->index + 1, sizeof *t->of);
    for (size_t i = before; i < t->cap; i++) {
        t->of[i] = -1;
    }
    if (!value) {
        t->of[n->index] = -1;
        return;
    }
    size_t number = (size_t) (uintptr_t) smap_get(&t->values, value);
    if (!number) {
        number = ++t->n_values;
        smap_set(&t->values, value, (void *) (uintptr_t) number);
    }
    t->of[n->index] = (int32_t) number - 1;
}

/* ---- terms ---- */

static bool selects(const struct sched *s, const struct json *one, const struct subject *u)
{
    const struct json *spaces = json_get(one, "namespaceSelector"), *ns;
    const struct json *labels = json_get(one, "labelSelector");
    const char *owner = json_get_string(json_get(one, "owner"));
    bool in = false;
    JSON_FOREACH (ns, json_get(one, "namespaces")) {
        in = in || streq_null(json_get_string(ns), u->namespace);
    }
    if (!in && spaces) {
        const struct json *o = model_object(s, SCHED_NAMESPACE, NULL, u->namespace);
        in = label_selector_is_empty(spaces) ||
             (o && label_selector_matches(spaces, json_path(o, "metadata", "labels", NULL)));
    }
    if (owner) {
        return in && streq(owner, u->owner);
    }
    return in && labels && label_selector_matches(labels, u->labels);
}

bool term_matches(const struct sched *s, const struct term *t, const struct subject *u)
{
    const struct json *one;
    JSON_FOREACH (one, t->selectors) {
        if (!selects(s, one, u)) {
            return false;
        }
    }
    return json_count(t->selectors) > 0;
}

int32_t term_place(const struct term *t, const struct node *n)
{
    return !t->topo ? (int32_t) n->index : n->index < t->topo->cap ? t->topo->of[n->index] : -1;
}

int64_t term_matched(const struct term *t, const struct node *n)
{
    return model_at32(t->matched, t->cap, term_place(t, n));
}

/* The counters get room for the place. */
static void reserve(struct term *t, int32_t place)
{
    size_t before = t->cap, cap = before;
    if ((size_t) place < before) {
        return;
    }
    t->matched = grow(t->matched, &t->cap, (size_t) place + 1, sizeof *t->matched);
    cap = t->cap;
    t->refusing = xreallocarray(t->refusing, cap, sizeof *t->refusing);
    t->wishing = xreallocarray(t->wishing, cap, sizeof *t->wishing);
    memset(t->matched + before, 0, (cap - before) * sizeof *t->matched);
    memset(t->refusing + before, 0, (cap - before) * sizeof *t->refusing);
    memset(t->wishing + before, 0, (cap - before) * sizeof *t->wishing);
}

void term_add_matched(struct term *t, const struct node *n, int sign)
{
    int32_t place = term_place(t, n);
    if (place >= 0) {
        reserve(t, place);
        t->matched[place] += sign;
        t->n_matched += sign;
    }
}

void term_add_refusing(struct term *t, const struct node *n, int sign)
{
    int32_t place = term_place(t, n);
    if (place >= 0) {
        reserve(t, place);
        t->refusing[place] += sign;
        t->n_refusing += sign;
    }
}

void term_add_wishing(struct term *t, const struct node *n, int64_t weight)
{
    int32_t place = term_place(t, n);
    if (place >= 0) {
        reserve(t, place);
        t->wishing[place] += weight;
        t->n_wishing += weight > 0 ? 1 : -1;
    }
}

/* ---- keys ---- */

/* Applications have terms of their own, and match no other ones: without keys each new term would
 * be compared with all subjects, and each new subject with all terms. */

static uint32_t hash_of_label(const char *key, const char *value)
{
    return hash_string(key) * UINT32_C(31) + hash_string(value);
}

/* A key that every subject has which the term matches; false: there is none. */
static bool key_of_term(const struct json *selectors, uint32_t *ret)
{
    const struct json *one = json_at(selectors, 0);
    const char *owner = json_get_string(json_get(one, "owner"));
    const struct json *labels = json_path(one, "labelSelector", "matchLabels", NULL);
    if (owner) {
        *ret = hash_string(owner);
        return true;
    }
    if (!json_is(labels, JSON_OBJECT) || !json_count(labels)) {
        return false;
    }
    const char *value = json_get_string(json_at(labels, 0));
    *ret = hash_of_label(json_key_at(labels, 0), value ? value : "");
    return true;
}

static void add_key(struct sched *s, struct subject *u, uint32_t hash)
{
    struct subject_key *k = &u->keys[u->n_keys++];
    k->subject = u;
    hmap_insert(&s->subject_keys, &k->node, hash);
}

static void add_keys(struct sched *s, struct subject *u)
{
    size_t n = json_is(u->labels, JSON_OBJECT) ? json_count(u->labels) : 0;
    u->keys = xcalloc(n + 1, sizeof *u->keys);
    add_key(s, u, hash_string(u->owner));
    for (size_t i = 0; i < n; i++) {
        const char *value = json_get_string(json_at(u->labels, i));
        add_key(s, u, hash_of_label(json_key_at(u->labels, i), value ? value : ""));
    }
}

/* ---- terms of subjects ---- */

static bool subject_has_term(const struct subject *u, const struct term *t)
{
    for (size_t i = 0; i < u->n; i++) {
        if (u->terms[i] == t) {
            return true;
        }
    }
    return false;
}

static void subject_add_term(struct subject *u, struct term *t)
{
    u->terms = grow(u->terms, &u->cap, u->n + 1, sizeof(struct term *));
    u->terms[u->n++] = t;
}

static bool subject_remove_term(struct subject *u, const struct term *t)
{
    for (size_t i = 0; i < u->n; i++) {
        if (u->terms[i] == t) {
            u->terms[i] = u->terms[--u->n];
            return true;
        }
    }
    return false;
}

static void count_subject(struct term *t, const struct subject *u, int sign)
{
    struct pod *p;
    LIST_FOREACH (p, struct pod, on_subject, &u->pods) {
        if (p->placed && !(t->alive_only && p->ending)) {
            term_add_matched(t, p->node, sign);
        }
    }
}

/* Relates the two, of which one is new: a new subject has no pods to be counted. */
static void match(struct sched *s, struct term *t, struct subject *u)
{
    /* Two keys of a subject can have one hash. */
    if (!subject_has_term(u, t) && term_matches(s, t, u)) {
        subject_add_term(u, t);
        count_subject(t, u, 1);
    }
}

struct term *term_get(struct sched *s, struct json *selectors, const char *key, bool alive_only)
{
    CLEANUP_FREE char *list = json_to_text(selectors);
    CLEANUP_FREE char *text = xasprintf("%s\n%d\n%s", key ? key : "", alive_only, list);
    uint32_t hash = hash_string(text);
    struct term *t;
    HMAP_FOREACH_WITH_HASH (t, struct term, node, hash, &s->terms) {
        if (streq(t->text, text)) {
            json_free(selectors);
            t->refs++;
            return t;
        }
    }
    t = NEW(struct term);
    t->text = TAKE(text);
    t->selectors = selectors;
    t->alive_only = alive_only;
    t->topo = key ? topo_get(s, key) : NULL;
    t->refs = 1;
    const struct json *one;
    JSON_FOREACH (one, selectors) {
        t->by_namespace = t->by_namespace || json_count(json_get(one, "namespaceSelector"));
    }
    hmap_insert(&s->terms, &t->node, hash);
    list_push_back(&s->all_terms, &t->link);
    uint32_t key_hash;
    t->keyed = key_of_term(selectors, &key_hash);
    if (t->keyed) {
        struct subject_key *k;
        hmap_insert(&s->keyed, &t->by_key, key_hash);
        HMAP_FOREACH_WITH_HASH (k, struct subject_key, node, key_hash, &s->subject_keys) {
            match(s, t, k->subject);
        }
    } else {
        struct subject *u;
        list_push_back(&s->loose_terms, &t->loose);
        LIST_FOREACH (u, struct subject, link, &s->all_subjects) {
            match(s, t, u);
        }
    }
    return t;
}

void term_put(struct sched *s, struct term *t)
{
    if (!t || --t->refs) {
        return;
    }
    if (t->keyed) {
        struct subject_key *k;
        HMAP_FOREACH_WITH_HASH (k, struct subject_key, node, t->by_key.hash, &s->subject_keys) {
            (void) subject_remove_term(k->subject, t);
        }
        hmap_remove(&s->keyed, &t->by_key);
    } else {
        struct subject *u;
        LIST_FOREACH (u, struct subject, link, &s->all_subjects) {
            (void) subject_remove_term(u, t);
        }
        list_remove(&t->loose);
    }
    hmap_remove(&s->terms, &t->node);
    list_remove(&t->link);
    topo_put(t->topo);
    json_free(t->selectors);
    free(t->matched);
    free(t->refusing);
    free(t->wishing);
    free(t->text);
    free(t);
}

void terms_rematch(struct sched *s)
{
    struct term *t;
    struct subject *u;
    LIST_FOREACH (t, struct term, link, &s->all_terms) {
        if (!t->by_namespace) {
            continue;
        }
        LIST_FOREACH (u, struct subject, link, &s->all_subjects) {
            bool had = subject_remove_term(u, t), has = term_matches(s, t, u);
            if (has) {
                subject_add_term(u, t);
            }
            if (has != had) {
                count_subject(t, u, has ? 1 : -1);
            }
        }
    }
}

/* ---- subjects ---- */

static const char *owner_of(const struct json *pod)
{
    const struct json *ref;
    JSON_FOREACH (ref, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (json_get_bool(json_get(ref, "controller"), false)) {
            return json_get_text(ref, "uid");
        }
    }
    return "";
}

struct subject *subject_get(struct sched *s, const struct json *pod)
{
    const struct json *meta = json_get(pod, "metadata");
    const struct json *labels = json_get(meta, "labels");
    CLEANUP_FREE char *list = labels ? json_to_text(labels) : xstrdup("{}");
    CLEANUP_FREE char *text =
        xasprintf("%s\n%s\n%s", json_get_text(meta, "namespace"), owner_of(pod), list);
    uint32_t hash = hash_string(text);
    struct subject *u;
    HMAP_FOREACH_WITH_HASH (u, struct subject, node, hash, &s->subjects) {
        if (streq(u->text, text)) {
            u->refs++;
            return u;
        }
    }
    u = NEW(struct subject);
    u->text = TAKE(text);
    u->namespace = xstrdup(json_get_text(meta, "namespace"));
    u->owner = xstrdup(owner_of(pod));
    u->labels = labels ? json_clone(labels) : json_object();
    u->refs = 1;
    list_init(&u->pods);
    hmap_insert(&s->subjects, &u->node, hash);
    list_push_back(&s->all_subjects, &u->link);
    add_keys(s, u);
    struct term *t;
    for (size_t i = 0; i < u->n_keys; i++) {
        HMAP_FOREACH_WITH_HASH (t, struct term, by_key, u->keys[i].node.hash, &s->keyed) {
            match(s, t, u);
        }
    }
    LIST_FOREACH (t, struct term, loose, &s->loose_terms) {
        match(s, t, u);
    }
    return u;
}

void subject_put(struct sched *s, struct subject *u)
{
    if (u && --u->refs == 0) {
        for (size_t i = 0; i < u->n_keys; i++) {
            hmap_remove(&s->subject_keys, &u->keys[i].node);
        }
        free(u->keys);
        hmap_remove(&s->subjects, &u->node);
        list_remove(&u->link);
        json_free(u->labels);
        free(u->terms);
        free(u->namespace);
        free(u->owner);
        free(u->text);
        free(u);
    }
}
