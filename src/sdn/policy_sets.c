/* SPDX-License-Identifier: Apache-2.0 */
/* Sets, classes, and the addresses in them.
 *
 * The sets of a pod are found by its properties: the scopes that include the pod's namespace,
 * and in each the sets whose first required label the pod has. So an address is compared with
 * few sets, however many exist. */
#include "sdn/policy_internal.h"

#include "base/mem.h"

/* ---- namespaces and scopes ---- */

static uint32_t pointer_hash(const void *p)
{
    return hash32(&p, sizeof p);
}

/* Hash key of a set in its scope: the first label that it requires. */
static uint32_t anchor_hash(const struct label *l)
{
    return pointer_hash(l);
}

static bool scope_takes(const struct policy *p, const struct policy_who *w, const struct ns *ns)
{
    if (w->nodes || !ns->name) {
        return w->nodes && !ns->name;
    }
    if (w->ns) {
        return streq(w->ns, ns->name);
    }
    return selector_matches(&w->namespaces, ns->labels ? ns->labels : p->no_labels);
}

static void ns_add_scope(struct ns *ns, struct scope *s)
{
    ns->scopes = grow(ns->scopes, &ns->scopes_cap, ns->n_scopes + 1, sizeof(struct scope *));
    ns->scopes[ns->n_scopes++] = s;
}

static bool ns_has_scope(const struct ns *ns, const struct scope *s)
{
    for (size_t i = 0; i < ns->n_scopes; i++) {
        if (ns->scopes[i] == s) {
            return true;
        }
    }
    return false;
}

void ns_rescope(struct policy *p, struct ns *ns)
{
    struct scope *s;
    ns->n_scopes = 0;
    HMAP_FOREACH (s, struct scope, node, &p->scopes) {
        if (scope_takes(p, s->who, ns)) {
            ns_add_scope(ns, s);
        }
    }
    struct pod *pod;
    LIST_FOREACH (pod, struct pod, in_ns, &ns->pods) {
        pod_touch(p, pod);
    }
}

struct ns *ns_find(const struct policy *p, const char *name)
{
    struct ns *ns;
    HMAP_FOREACH_WITH_HASH (ns, struct ns, node, hash_string(name), &p->namespaces) {
        if (streq(ns->name, name)) {
            return ns;
        }
    }
    return NULL;
}

struct ns *ns_get(struct policy *p, const char *name)
{
    struct ns *ns = ns_find(p, name);
    if (!ns) {
        ns = NEW(struct ns);
        ns->name = xstrdup(name);
        list_init(&ns->pods);
        list_init(&ns->policies);
        hmap_insert(&p->namespaces, &ns->node, hash_string(name));
        ns_rescope(p, ns);
    }
    return ns;
}

void ns_release(struct policy *p, struct ns *ns)
{
    if (!ns->name || ns->labels || !list_is_empty(&ns->pods) || !list_is_empty(&ns->policies)) {
        return;
    }
    hmap_remove(&p->namespaces, &ns->node);
    free(ns->scopes);
    free(ns->name);
    free(ns);
}

/* Calls 'fn' for each namespace of the scope. */
static void each_ns(struct policy *p, const struct scope *s,
                    void (*fn)(struct policy *p, struct ns *ns, void *ctx), void *ctx)
{
    struct ns *ns;
    if (s->who->nodes) {
        fn(p, &p->nodes, ctx);
    } else if (s->who->ns) {
        ns = ns_find(p, s->who->ns);
        if (ns) {
            fn(p, ns, ctx);
        }
    } else {
        HMAP_FOREACH (ns, struct ns, node, &p->namespaces) {
            if (ns_has_scope(ns, s)) {
                fn(p, ns, ctx);
            }
        }
    }
}

static struct scope *scope_get(struct policy *p, struct policy_who *who)
{
    uint32_t hash = hash_string(who->scope_text);
    struct scope *s;
    HMAP_FOREACH_WITH_HASH (s, struct scope, node, hash, &p->scopes) {
        if (streq(s->who->scope_text, who->scope_text)) {
            return s;
        }
    }
    s = NEW(struct scope);
    s->who = who;
    who->refs++;
    hmap_init(&s->sets);
    hmap_insert(&p->scopes, &s->node, hash);
    struct ns *ns;
    HMAP_FOREACH (ns, struct ns, node, &p->namespaces) {
        if (scope_takes(p, who, ns)) {
            ns_add_scope(ns, s);
        }
    }
    if (who->nodes) {
        ns_add_scope(&p->nodes, s);
    }
    return s;
}

static void forget_scope(struct policy *p, struct ns *ns, void *ctx)
{
    for (size_t i = 0; i < ns->n_scopes; i++) {
        if (ns->scopes[i] == ctx) {
            ns->scopes[i] = ns->scopes[--ns->n_scopes];
            return;
        }
    }
}

static void scope_unref(struct policy *p, struct scope *s)
{
    if (--s->n_sets == 0) {
        each_ns(p, s, forget_scope, s);
        hmap_remove(&p->scopes, &s->node);
        hmap_done(&s->sets);
        policy_who_unref(&p->pool, s->who);
        free(s);
    }
}

bool who_matches(const struct policy_who *w, const struct policy *p, const struct pod *pod)
{
    return scope_takes(p, w, pod->ns) && selector_matches(&w->pods, pod->labels);
}

/* ---- sets ---- */

static bool is_subject(unsigned space)
{
    return space % 2 == ROLE_SUBJECT;
}

static void touch_members(struct policy *p, struct ns *ns, void *ctx)
{
    const struct set *s = ctx;
    struct pod *pod;
    LIST_FOREACH (pod, struct pod, in_ns, &ns->pods) {
        if (!pod->endpoints || !selector_matches(&s->who->pods, pod->labels)) {
            continue;
        }
        for (struct endpoint *ep = pod->endpoints; ep; ep = ep->next) {
            if (ep->local || !is_subject(s->space)) {
                endpoint_touch(p, ep);
            }
        }
    }
}

/* Marks the present and future members of the set for an update. */
static void set_touch_members(struct policy *p, struct set *s)
{
    each_ns(p, s->scope, touch_members, s);
}

void set_touch_classes(struct policy *p, struct set *s)
{
    for (size_t i = 0; i < s->n_classes; i++) {
        if (list_is_empty(&s->classes[i]->dirty)) {
            list_push_back(&p->dirty_classes, &s->classes[i]->dirty);
        }
    }
}

static struct set *set_new(struct policy *p, unsigned space, struct policy_who *who, uint64_t hash)
{
    struct set *s = NEW(struct set);
    s->space = (uint8_t) space;
    s->who = who;
    who->refs++;
    s->hash = hash;
    s->scope = scope_get(p, who);
    s->scope->n_sets++;
    list_init(&s->garbage);
    list_push_back(&p->garbage, &s->garbage); /* Until a rule uses it. */
    hmap_insert(&p->sets, &s->node, (uint32_t) hash);
    return s;
}

struct set *set_get(struct policy *p, unsigned space, struct policy_who *who)
{
    uint64_t hash = hash_bytes(who->scope_text, strlen(who->scope_text)) * 0x9e3779b97f4a7c15u +
                    hash_bytes(who->pods_text, strlen(who->pods_text)) * 31 + space;
    struct set *s;
    HMAP_FOREACH_WITH_HASH (s, struct set, node, (uint32_t) hash, &p->sets) {
        if (!s->base && s->space == space && streq(s->who->scope_text, who->scope_text) &&
            streq(s->who->pods_text, who->pods_text)) {
            return s;
        }
    }
    s = set_new(p, space, who, hash);
    hmap_insert(&s->scope->sets, &s->in_scope,
                anchor_hash(who->pods.n_pairs ? who->pods.pairs[0] : NULL));
    s->listed = true;
    set_touch_members(p, s);
    return s;
}

static bool same_name(const struct policy_port_name *a, const struct policy_port_name *b)
{
    return a->proto == b->proto && streq(a->name, b->name);
}

static struct by_name *find_name(const struct set *s, const struct policy_port_name *name)
{
    for (size_t i = 0; i < s->n_names; i++) {
        if (same_name(&s->names[i]->name, name)) {
            return s->names[i];
        }
    }
    return NULL;
}

static struct by_name *get_name(struct set *s, const struct policy_port_name *name)
{
    struct by_name *n = find_name(s, name);
    if (!n) {
        n = NEW(struct by_name);
        n->name = *name;
        s->names = grow(s->names, &s->names_cap, s->n_names + 1, sizeof(struct by_name *));
        s->names[s->n_names++] = n;
    }
    return n;
}

struct set *set_by_name(struct policy *p, struct set *base, const struct policy_port_name *name,
                        uint8_t proto, uint16_t number)
{
    struct by_name *n = get_name(base, name);
    for (size_t i = 0; i < n->n_sets; i++) {
        if (n->sets[i]->proto == proto && n->sets[i]->number == number) {
            return n->sets[i];
        }
    }
    uint64_t hash = base->hash * 0x9e3779b97f4a7c15u + hash_bytes(name->name, strlen(name->name)) +
                    ((uint64_t) name->proto << 40 | (uint64_t) proto << 32 | number);
    struct set *s = set_new(p, base->space, base->who, hash);
    s->base = base;
    s->name = *name;
    s->proto = proto;
    s->number = number;
    n->sets = grow(n->sets, &n->sets_cap, n->n_sets + 1, sizeof(struct set *));
    n->sets[n->n_sets++] = s;
    return s;
}

static bool is_used(const struct set *s)
{
    if (s->n_uses) {
        return true;
    }
    for (size_t i = 0; i < s->n_names; i++) {
        if (s->names[i]->n_templates || s->names[i]->n_sets) {
            return true;
        }
    }
    return false;
}

static void set_check(struct policy *p, struct set *s)
{
    bool listed = !list_is_empty(&s->garbage);
    if (is_used(s) && listed) {
        list_remove(&s->garbage);
    } else if (!is_used(s) && !listed) {
        list_push_back(&p->garbage, &s->garbage);
    }
}

void set_use(struct policy *p, struct set *s, struct rule *rule, struct object *o, uint8_t clause)
{
    s->uses = grow(s->uses, &s->uses_cap, s->n_uses + 1, sizeof *s->uses);
    s->uses[s->n_uses++] = (struct use){rule, o, clause};
    set_touch_classes(p, s);
    set_check(p, s);
}

void set_unuse(struct policy *p, struct set *s, const struct rule *rule, const struct object *o,
               uint8_t clause)
{
    for (size_t i = 0; i < s->n_uses; i++) {
        struct use *u = &s->uses[i];
        if (u->rule == rule && u->object == o && u->clause == clause) {
            *u = s->uses[--s->n_uses];
            break;
        }
    }
    set_touch_classes(p, s);
    set_check(p, s);
}

void set_add_template(struct policy *p, struct set *s, struct template *t)
{
    struct by_name *n = get_name(s, &t->name);
    n->templates =
        grow(n->templates, &n->templates_cap, n->n_templates + 1, sizeof(struct template *));
    n->templates[n->n_templates++] = t;
    set_check(p, s);
    /* The numbers that the name has for the members decide about the rules. */
    set_touch_members(p, s);
}

void set_remove_template(struct policy *p, struct set *s, struct template *t)
{
    struct by_name *n = find_name(s, &t->name);
    for (size_t i = 0; i < n->n_templates; i++) {
        if (n->templates[i] == t) {
            n->templates[i] = n->templates[--n->n_templates];
            break;
        }
    }
    set_check(p, s);
}

static void by_name_free(struct by_name *n)
{
    free(n->templates);
    free(n->sets);
    free(n);
}

static void leave_base(struct policy *p, struct set *s)
{
    struct by_name *n = find_name(s->base, &s->name);
    for (size_t i = 0; i < n->n_sets; i++) {
        if (n->sets[i] == s) {
            n->sets[i] = n->sets[--n->n_sets];
            break;
        }
    }
    set_check(p, s->base);
}

static void set_free(struct policy *p, struct set *s)
{
    assert(s->n_classes == 0 && s->n_uses == 0);
    if (s->base) {
        leave_base(p, s);
    }
    list_remove(&s->garbage);
    hmap_remove(&p->sets, &s->node);
    scope_unref(p, s->scope);
    policy_who_unref(&p->pool, s->who);
    for (size_t i = 0; i < s->n_names; i++) {
        by_name_free(s->names[i]);
    }
    free(s->names);
    free(s->uses);
    free(s->classes);
    free(s);
}

static void collect_once(struct policy *p)
{
    struct list doomed = LIST_INIT(&doomed), *link;
    while ((link = list_pop_front(&p->garbage))) {
        struct set *s = CONTAINER_OF(link, struct set, garbage);
        list_push_back(&doomed, link);
        if (s->listed) {
            hmap_remove(&s->scope->sets, &s->in_scope);
            s->listed = false;
        }
        if (s->n_classes) {
            set_touch_members(p, s);
        }
    }
    endpoints_update(p);
    while ((link = list_pop_front(&doomed))) {
        set_free(p, CONTAINER_OF(link, struct set, garbage));
    }
}

void sets_collect(struct policy *p)
{
    while (!list_is_empty(&p->garbage)) {
        collect_once(p);
    }
}

/* ---- classes ---- */

uint64_t class_cookie(const struct class *c)
{
    return pipeline_cookie(PIPELINE_POLICY_CLASS, (uint64_t) c->space << 32 | c->id);
}

static uint32_t id_hash(unsigned space, uint32_t id)
{
    return id * 0x9e3779b1u + space;
}

static bool id_is_taken(const struct policy *p, unsigned space, uint32_t id)
{
    const struct class *c;
    HMAP_FOREACH_WITH_HASH (c, struct class, by_id, id_hash(space, id), &p->class_ids) {
        if (c->id == id && c->space == space) {
            return true;
        }
    }
    return false;
}

static int compare_sets(const void *a, const void *b)
{
    const struct set *x = *(struct set *const *) a, *y = *(struct set *const *) b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x < y ? -1 : x > y;
}

/* The class of the sets in 'list' (which is sorted here); the caller owns a reference. NULL: no
 * sets. */
static struct class *class_get(struct policy *p, unsigned space, struct set **list, size_t n)
{
    if (n == 0) {
        return NULL;
    }
    qsort(list, n, sizeof(struct set *), compare_sets);
    uint64_t hash = space;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ list[i]->hash) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    struct class *c;
    HMAP_FOREACH_WITH_HASH (c, struct class, node, (uint32_t) hash, &p->classes) {
        if (c->space == space && c->n == n &&
            memcmp(c->sets, list, n * sizeof(struct set *)) == 0) {
            c->refs++;
            return c;
        }
    }
    c = xcalloc(1, sizeof *c + n * sizeof(struct set *));
    c->hash = hash;
    c->space = (uint8_t) space;
    list_init(&c->pairs);
    c->refs = 1;
    c->n = (uint32_t) n;
    memcpy(c->sets, list, n * sizeof(struct set *));
    c->id = (uint32_t) (hash >> 32);
    while (c->id == 0 || id_is_taken(p, space, c->id)) {
        c->id++;
    }
    hmap_insert(&p->classes, &c->node, (uint32_t) hash);
    hmap_insert(&p->class_ids, &c->by_id, id_hash(space, c->id));
    list_init(&c->dirty);
    list_push_back(&p->dirty_classes, &c->dirty);
    for (size_t i = 0; i < n; i++) {
        struct set *s = list[i];
        s->classes = grow(s->classes, &s->classes_cap, s->n_classes + 1, sizeof(struct class *));
        s->classes[s->n_classes++] = c;
    }
    return c;
}

static void class_unref(struct policy *p, struct class *c)
{
    if (!c || --c->refs) {
        return;
    }
    for (size_t i = 0; i < c->n; i++) {
        struct set *s = c->sets[i];
        for (size_t k = 0; k < s->n_classes; k++) {
            if (s->classes[k] == c) {
                s->classes[k] = s->classes[--s->n_classes];
                break;
            }
        }
        p->meanings_changed |= s->base && s->n_classes == 0;
    }
    hmap_remove(&p->classes, &c->node);
    hmap_remove(&p->class_ids, &c->by_id);
    list_remove(&c->dirty);
    table_forget_class(p, c);
    emit_nothing(p, class_cookie(c));
    free(c);
}

/* ---- addresses ---- */

void ip_touch(struct policy *p, uint32_t ip)
{
    p->dirty_ips = grow(p->dirty_ips, &p->dirty_ips_cap, p->n_dirty_ips + 1, sizeof ip);
    p->dirty_ips[p->n_dirty_ips++] = ip;
}

void endpoint_touch(struct policy *p, struct endpoint *ep)
{
    if (list_is_empty(&ep->dirty)) {
        list_push_back(&p->dirty_endpoints, &ep->dirty);
    }
}

void pod_touch(struct policy *p, struct pod *pod)
{
    for (struct endpoint *ep = pod->endpoints; ep; ep = ep->next) {
        endpoint_touch(p, ep);
    }
}

static void found(struct policy *p, struct set *s)
{
    unsigned space = s->space;
    p->found[space] =
        grow(p->found[space], &p->found_cap[space], p->n_found[space] + 1, sizeof(struct set *));
    p->found[space][p->n_found[space]++] = s;
}

static void look_in_scope(struct policy *p, const struct scope *scope, const struct label *anchor,
                          const struct endpoint *ep)
{
    struct set *s;
    HMAP_FOREACH_WITH_HASH (s, struct set, in_scope, anchor_hash(anchor), &scope->sets) {
        const struct selector *pods = &s->who->pods;
        bool here = (pods->n_pairs ? pods->pairs[0] : NULL) == anchor;
        if (here && (ep->local || !is_subject(s->space)) &&
            selector_matches(pods, ep->pod->labels)) {
            found(p, s);
        }
    }
}

/* Updates the sets by named ports that depend on membership in 's'. */
static void look_at_names(struct policy *p, struct set *s, const struct pod *pod)
{
    for (size_t i = 0; pod->ports && i < s->n_names; i++) {
        struct by_name *n = s->names[i];
        for (size_t k = 0; k < pod->ports->n; k++) {
            const struct named_port *port = &pod->ports->list[k];
            if (!streq(port->name, n->name.name) ||
                (n->name.proto && n->name.proto != port->proto)) {
                continue;
            }
            for (size_t t = 0; t < n->n_templates; t++) {
                template_expand(p, n->templates[t], port->proto, port->number);
            }
            if (n->n_templates) {
                found(p, set_by_name(p, s, &n->name, port->proto, port->number));
            }
            break; /* The first port with the name counts. */
        }
    }
}

static void endpoint_update(struct policy *p, struct endpoint *ep)
{
    const struct pod *pod = ep->pod;
    for (unsigned i = 0; i < N_SPACES; i++) {
        p->n_found[i] = 0;
    }
    for (size_t i = 0; i < pod->ns->n_scopes; i++) {
        const struct scope *scope = pod->ns->scopes[i];
        look_in_scope(p, scope, NULL, ep);
        for (size_t k = 0; k < pod->labels->n; k++) {
            look_in_scope(p, scope, pod->labels->list[k], ep);
        }
    }
    bool changed = false;
    for (unsigned space = 0; space < N_SPACES; space++) {
        for (size_t i = 0, n = p->n_found[space]; i < n; i++) {
            look_at_names(p, p->found[space][i], pod);
        }
        struct class *old = ep->classes[space];
        ep->classes[space] = class_get(p, space, p->found[space], p->n_found[space]);
        changed |= ep->classes[space] != old;
        class_unref(p, old);
    }
    if (changed) {
        ip_touch(p, ep->ip);
    }
}

void endpoints_update(struct policy *p)
{
    struct list *link;
    while ((link = list_pop_front(&p->dirty_endpoints))) {
        endpoint_update(p, CONTAINER_OF(link, struct endpoint, dirty));
    }
}

void endpoint_free(struct policy *p, struct endpoint *ep)
{
    struct endpoint **at = &ep->pod->endpoints;
    while (*at != ep) {
        at = &(*at)->next;
    }
    *at = ep->next;
    hmap_remove(&p->endpoints, &ep->node);
    list_remove(&ep->dirty);
    for (unsigned i = 0; i < N_SPACES; i++) {
        class_unref(p, ep->classes[i]);
    }
    ip_touch(p, ep->ip);
    free(ep);
}
