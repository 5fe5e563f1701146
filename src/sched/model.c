/* SPDX-License-Identifier: Apache-2.0 */
#include "api/condition.h"
#include "api/node_match.h"
#include "api/quantity.h"
#include "sched/model_priv.h"

#define ZONE "topology.kubernetes.io/zone"
#define OLD_ZONE "failure-domain.beta.kubernetes.io/zone"
#define TAINT_NOT_READY "node.kubernetes.io/not-ready"
#define TAINT_NO_NETWORK "node.kubernetes.io/network-unavailable"

/* ---- the whole ---- */

static void free_object(void *v)
{
    json_free(v);
}

struct sched *sched_new(uint64_t seed)
{
    static const char *const slots[] = {[SLOT_CPU] = "cpu",
                                        [SLOT_MEMORY] = "memory",
                                        [SLOT_STORAGE] = "ephemeral-storage",
                                        [SLOT_PODS] = "pods"};
    struct sched *s = NEW(struct sched);
    sched_policy_default(&s->policy);
    s->random = seed;
    hmap_init(&s->nodes_by_name);
    hmap_init(&s->pods);
    hmap_init(&s->terms);
    hmap_init(&s->subjects);
    hmap_init(&s->keyed);
    hmap_init(&s->subject_keys);
    list_init(&s->loose_terms);
    hmap_init(&s->classes);
    list_init(&s->all_terms);
    list_init(&s->all_subjects);
    list_init(&s->topos);
    list_init(&s->recent);
    for (size_t i = 0; i < SCHED_KINDS; i++) {
        smap_init(&s->objects[i], free_object);
    }
    smap_init(&s->nominees, NULL);
    for (; s->n_slots < ARRAY_SIZE(slots); s->n_slots++) {
        s->slots[s->n_slots] = xstrdup(slots[s->n_slots]);
    }
    return s;
}

static void pod_free(struct sched *s, struct pod *p)
{
    model_unplace(s, p);
    hmap_remove(&s->pods, &p->by_key);
    list_remove(&p->on_node);
    list_remove(&p->on_subject);
    class_put(s, p->class);
    free(p->key);
    free(p->started);
    free(p);
}

static void node_free(struct sched *s, struct node *n)
{
    hmap_remove(&s->nodes_by_name, &n->by_name);
    s->nodes[n->index] = NULL;
    s->order_stale = true;
    json_free(n->labels);
    json_free(n->taints);
    json_free(n->images);
    free(n->name);
    free(n);
}

static void nominee_free(struct sched *s, struct nominee *o)
{
    class_put(s, o->class);
    free(o);
}

struct sched *sched_free(struct sched *s)
{
    if (!s) {
        return NULL;
    }
    struct pod *p;
    struct node *n;
    struct smap_entry *e;
    SMAP_FOREACH (e, &s->nominees) {
        nominee_free(s, e->value);
    }
    smap_done(&s->nominees);
    HMAP_FOREACH (p, struct pod, by_key, &s->pods) {
        pod_free(s, p);
    }
    /* Only the verdicts' classes are left, each with one reference. */
    HMAP_FOREACH (n, struct node, by_name, &s->nodes_by_name) {
        node_free(s, n);
    }
    while (!list_is_empty(&s->recent)) {
        class_put(s, CONTAINER_OF(s->recent.next, struct class, recent));
    }
    for (size_t i = 0; i < SCHED_KINDS; i++) {
        smap_done(&s->objects[i]);
    }
    for (size_t i = 0; i < s->n_slots; i++) {
        free(s->slots[i]);
    }
    hmap_done(&s->nodes_by_name);
    hmap_done(&s->pods);
    hmap_done(&s->terms);
    hmap_done(&s->subjects);
    hmap_done(&s->keyed);
    hmap_done(&s->subject_keys);
    hmap_done(&s->classes);
    sched_policy_done(&s->policy);
    free(s->nodes);
    free(s->order);
    free(s);
    return NULL;
}

static void forget_verdicts(struct sched *s)
{
    s->objects_generation++;
}

void sched_set_policy(struct sched *s, const struct sched_policy *p)
{
    struct sched_policy copy;
    sched_policy_copy(p, &copy);
    sched_policy_done(&s->policy);
    s->policy = copy;
    forget_verdicts(s);
}

int64_t model_at32(const int32_t *list, size_t cap, int32_t i)
{
    return i >= 0 && (size_t) i < cap ? list[i] : 0;
}

/* ---- pods on nodes ---- */

void model_count(struct node *n, const struct class *c, int sign)
{
    for (size_t i = 0; i < c->n_requests; i++) {
        if (c->requests[i].slot >= 0) {
            n->used[c->requests[i].slot] += sign * MIN(c->requests[i].amount, AMOUNT_MAX);
        }
    }
    n->score_cpu += sign * MIN(c->score_cpu, AMOUNT_MAX);
    n->score_memory += sign * MIN(c->score_memory, AMOUNT_MAX);
    n->n_ports += (size_t) sign * c->n_ports;
}

static void count_terms(const struct pod *p, int sign)
{
    const struct class *c = p->class;
    for (size_t i = 0; i < c->subject->n; i++) {
        struct term *t = c->subject->terms[i];
        if (!(t->alive_only && p->ending)) {
            term_add_matched(t, p->node, sign);
        }
    }
    for (size_t i = 0; i < c->refuses.n; i++) {
        term_add_refusing(c->refuses.list[i].term, p->node, sign);
    }
    for (size_t i = 0; i < c->wishes.n; i++) {
        term_add_wishing(c->wishes.list[i].term, p->node, sign * c->wishes.list[i].weight);
    }
    for (size_t i = 0; i < c->draws.n; i++) {
        term_add_wishing(c->draws.list[i].term, p->node, sign * c->draws.list[i].weight);
    }
}

void model_place(struct sched *s, struct pod *p)
{
    if (!p->placed) {
        p->placed = true;
        model_count(p->node, p->class, 1);
        count_terms(p, 1);
    }
}

void model_unplace(struct sched *s, struct pod *p)
{
    if (p->placed) {
        p->placed = false;
        model_count(p->node, p->class, -1);
        count_terms(p, -1);
    }
}

/* ---- nodes ---- */

struct node *model_node(const struct sched *s, const char *name)
{
    struct node *n;
    HMAP_FOREACH_WITH_HASH (n, struct node, by_name, hash_string(name), &s->nodes_by_name) {
        if (streq(n->name, name)) {
            return n;
        }
    }
    return NULL;
}

static struct node *node_get(struct sched *s, const char *name)
{
    struct node *n = model_node(s, name);
    if (n) {
        return n;
    }
    n = NEW(struct node);
    n->name = xstrdup(name);
    n->generation = ++s->node_generation;
    list_init(&n->pods);
    while (n->index < s->n_nodes && s->nodes[n->index]) {
        n->index++;
    }
    s->nodes = grow(s->nodes, &s->cap_nodes, n->index + 1, sizeof(struct node *));
    s->nodes[n->index] = n;
    s->n_nodes = MAX(s->n_nodes, n->index + 1);
    hmap_insert(&s->nodes_by_name, &n->by_name, hash_string(name));
    struct topo *t;
    LIST_FOREACH (t, struct topo, link, &s->topos) {
        topo_set_node(t, n);
    }
    return n;
}

static void node_put(struct sched *s, struct node *n)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &s->nominees) {
        if (((struct nominee *) e->value)->node == n) {
            return;
        }
    }
    if (!n->present && list_is_empty(&n->pods)) {
        node_free(s, n);
    }
}

static int64_t offered(const struct json *node, const char *resource)
{
    const struct json *v = json_path(node, "status", "allocatable", resource, NULL);
    const char *text = json_get_string(v) ? json_get_string(v) : json_number_text(v);
    int64_t n;
    return text && api_quantity_value(text, streq(resource, "cpu") ? -3 : 0, &n, NULL) == 0 &&
                   n >= 0
               ? MIN(n, AMOUNT_MAX)
               : 0;
}

bool sched_node_runs_pods(const struct json *node)
{
    const char *runtime =
        json_path_string(node, "status", "nodeInfo", "containerRuntimeVersion", NULL);
    return runtime && *runtime && offered(node, "cpu") > 0 && offered(node, "memory") > 0 &&
           offered(node, "pods") > 0;
}

size_t sched_node_count(const struct sched *s)
{
    return s->n_running;
}

/* A slot for each resource that the node offers; a node that offers more than there are slots has
 * no further ones. */
static void find_slots(struct sched *s, const struct json *node)
{
    const struct json *list = json_path(node, "status", "allocatable", NULL);
    size_t before = s->n_slots;
    for (size_t i = 0; i < match_members(list) && s->n_slots < SLOTS; i++) {
        const char *name = json_key_at(list, i);
        size_t k = 0;
        while (k < s->n_slots && !streq(s->slots[k], name)) {
            k++;
        }
        if (k == s->n_slots) {
            s->slots[s->n_slots++] = xstrdup(name);
        }
    }
    if (s->n_slots == before) {
        return;
    }
    struct class *c;
    struct pod *p;
    HMAP_FOREACH (p, struct pod, by_key, &s->pods) {
        model_unplace(s, p);
    }
    HMAP_FOREACH (c, struct class, node, &s->classes) {
        class_find_slots(s, c);
    }
    HMAP_FOREACH (p, struct pod, by_key, &s->pods) {
        model_place(s, p);
    }
}

static bool has_taint(const struct json *taints, const char *key)
{
    const struct json *t;
    JSON_FOREACH (t, taints) {
        if (streq(json_get_text(t, "key"), key)) {
            return true;
        }
    }
    return false;
}

static void add_taint(struct json *taints, const char *key)
{
    if (!has_taint(taints, key)) {
        struct json *t = json_append(taints, json_object());
        json_set_string(t, "key", key);
        json_set_string(t, "effect", "NoSchedule");
    }
}

/* The node's taints, and those that its conditions mean before the life-cycle controller has set
 * them. */
static struct json *taints_of(const struct json *node)
{
    const struct json *own = json_path(node, "spec", "taints", NULL);
    struct json *taints = json_is(own, JSON_ARRAY) ? json_clone(own) : json_array();
    if (!condition_is_true(node, "Ready") && !has_taint(taints, "node.kubernetes.io/unreachable")) {
        add_taint(taints, TAINT_NOT_READY);
    }
    if (condition_is_true(node, "NetworkUnavailable")) {
        add_taint(taints, TAINT_NO_NETWORK);
    }
    return taints;
}

static struct json *images_of(const struct json *node)
{
    struct json *out = json_object();
    const struct json *image, *name;
    JSON_FOREACH (image, json_path(node, "status", "images", NULL)) {
        JSON_FOREACH (name, json_get(image, "names")) {
            const char *text = json_get_string(name);
            if (text) {
                json_set_int(out, text, json_get_int_or(json_get(image, "sizeBytes"), 0));
            }
        }
    }
    return out;
}

/* Replaces '*have' by 'v' if they differ. */
static bool replace(struct json **have, struct json *v)
{
    if (*have && json_equal(*have, v)) {
        json_free(v);
        return false;
    }
    json_free(*have);
    *have = v;
    return true;
}

static void set_running(struct sched *s, struct node *n, bool present, bool runs)
{
    if (n->present != present || n->runs != runs) {
        s->n_running += (size_t) runs;
        s->n_running -= (size_t) n->runs;
        n->present = present;
        n->runs = runs;
        s->order_stale = true;
    }
}

/* Sets the labels, which decide at which values of topology keys the node's pods count. */
static bool set_labels(struct sched *s, struct node *n, struct json *labels, bool present,
                       bool runs)
{
    struct pod *p;
    struct topo *t;
    if (n->labels && json_equal(n->labels, labels) && n->present == present) {
        set_running(s, n, present, runs);
        json_free(labels);
        return false;
    }
    LIST_FOREACH (p, struct pod, on_node, &n->pods) {
        model_unplace(s, p);
    }
    json_free(n->labels);
    n->labels = labels;
    set_running(s, n, present, runs);
    LIST_FOREACH (t, struct topo, link, &s->topos) {
        topo_set_node(t, n);
    }
    LIST_FOREACH (p, struct pod, on_node, &n->pods) {
        model_place(s, p);
    }
    s->order_stale = true;
    return true;
}

bool sched_set_node(struct sched *s, const struct json *node)
{
    struct node *n = node_get(s, json_get_text(json_get(node, "metadata"), "name"));
    const struct json *labels = json_path(node, "metadata", "labels", NULL);
    bool runs = sched_node_runs_pods(node), ran = n->runs;
    bool off = json_get_bool(json_path(node, "spec", "unschedulable", NULL), false);
    bool changed = set_labels(s, n, labels ? json_clone(labels) : json_object(), true, runs);
    find_slots(s, node);
    changed = replace(&n->taints, taints_of(node)) || changed;
    changed = replace(&n->images, images_of(node)) || changed;
    changed = changed || off != n->unschedulable || runs != ran;
    n->unschedulable = off;
    if (changed) {
        n->generation = ++s->node_generation;
    }
    for (size_t i = 0; i < s->n_slots; i++) {
        int64_t amount = offered(node, s->slots[i]);
        changed = changed || amount != n->offered[i];
        n->offered[i] = amount;
    }
    return changed;
}

void sched_remove_node(struct sched *s, const char *name)
{
    struct node *n = model_node(s, name);
    if (n) {
        (void) set_labels(s, n, json_object(), false, false);
        n->generation = ++s->node_generation;
        node_put(s, n);
    }
}

/* ---- pods ---- */

struct pod *model_pod(const struct sched *s, const char *key)
{
    struct pod *p;
    HMAP_FOREACH_WITH_HASH (p, struct pod, by_key, hash_string(key), &s->pods) {
        if (streq(p->key, key)) {
            return p;
        }
    }
    return NULL;
}

void sched_remove_pod(struct sched *s, const char *key)
{
    struct pod *p = model_pod(s, key);
    if (p) {
        struct node *n = p->node;
        pod_free(s, p);
        node_put(s, n);
    }
}

void sched_set_pod(struct sched *s, const struct json *pod, const char *node)
{
    const struct json *meta = json_get(pod, "metadata");
    CLEANUP_FREE char *key = sched_pod_key(pod);
    const char *phase = json_get_text(json_get(pod, "status"), "phase");
    const char *started = json_get_text(json_get(pod, "status"), "startTime");
    if (streq(phase, "Succeeded") || streq(phase, "Failed")) {
        sched_remove_pod(s, key);
        return;
    }
    struct class *c = class_get(s, pod);
    struct pod *p = model_pod(s, key);
    bool ending = json_get(meta, "deletionTimestamp");
    int32_t priority = sched_pod_priority(pod);
    if (p && p->class == c && streq(p->node->name, node) && p->ending == ending &&
        p->priority == priority && streq(p->started, started)) {
        class_put(s, c);
        return;
    }
    sched_remove_pod(s, key);
    p = NEW(struct pod);
    p->key = TAKE(key);
    p->started = xstrdup(started);
    p->class = c;
    p->node = node_get(s, node);
    p->priority = priority;
    p->ending = ending;
    hmap_insert(&s->pods, &p->by_key, hash_string(p->key));
    list_push_back(&p->node->pods, &p->on_node);
    list_push_back(&c->subject->pods, &p->on_subject);
    model_place(s, p);
}

void sched_nominate(struct sched *s, const struct json *pod, const char *node)
{
    CLEANUP_FREE char *key = sched_pod_key(pod);
    struct nominee *o = smap_take(&s->nominees, key);
    struct node *before = o ? o->node : NULL;
    if (o) {
        nominee_free(s, o);
    }
    if (node) {
        o = NEW(struct nominee);
        o->class = class_get(s, pod);
        o->node = node_get(s, node);
        o->priority = sched_pod_priority(pod);
        smap_set(&s->nominees, key, o);
    }
    if (before) {
        node_put(s, before);
    }
}

/* ---- other objects ---- */

static char *object_key(enum sched_kind kind, const char *ns, const char *name)
{
    bool in_namespace = kind == SCHED_SERVICE || kind == SCHED_CLAIM || kind == SCHED_BUDGET ||
                        kind == SCHED_CAPACITY;
    return in_namespace ? xasprintf("%s/%s", ns, name) : xstrdup(name);
}

const struct json *model_object(const struct sched *s, enum sched_kind kind, const char *ns,
                                const char *name)
{
    CLEANUP_FREE char *key = object_key(kind, ns, name);
    return smap_get(&s->objects[kind], key);
}

static void object_changed(struct sched *s, enum sched_kind kind)
{
    if (kind == SCHED_NAMESPACE) {
        terms_rematch(s);
    } else if (kind == SCHED_VOLUME || kind == SCHED_CLAIM) {
        forget_verdicts(s);
    }
}

void sched_set(struct sched *s, enum sched_kind kind, const struct json *obj)
{
    const struct json *meta = json_get(obj, "metadata");
    CLEANUP_FREE char *key =
        object_key(kind, json_get_text(meta, "namespace"), json_get_text(meta, "name"));
    smap_set(&s->objects[kind], key, json_clone(obj));
    object_changed(s, kind);
}

void sched_remove(struct sched *s, enum sched_kind kind, const char *key)
{
    if (smap_remove(&s->objects[kind], key)) {
        object_changed(s, kind);
    }
}

/* ---- the order of nodes ---- */

struct zoned {
    const char *zone;
    size_t turn; /* How many nodes of the zone come before. */
    struct node *node;
};

static int by_zone(const void *a, const void *b)
{
    const struct zoned *x = a, *y = b;
    int d = strcmp(x->zone, y->zone);
    return d ? d : (x->node->index > y->node->index) - (x->node->index < y->node->index);
}

static int by_turn(const void *a, const void *b)
{
    const struct zoned *x = a, *y = b;
    int d = (x->turn > y->turn) - (x->turn < y->turn);
    return d ? d : strcmp(x->zone, y->zone);
}

static const char *zone_of(const struct node *n)
{
    const char *zone = json_get_string(json_get(n->labels, ZONE));
    return zone ? zone : json_get_text(n->labels, OLD_ZONE);
}

void model_order(struct sched *s)
{
    if (!s->order_stale) {
        return;
    }
    CLEANUP_FREE struct zoned *list = xcalloc(s->n_nodes + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < s->n_nodes; i++) {
        if (s->nodes[i] && s->nodes[i]->present) {
            list[n++] = (struct zoned){zone_of(s->nodes[i]), 0, s->nodes[i]};
        }
    }
    qsort(list, n, sizeof *list, by_zone);
    for (size_t i = 1; i < n; i++) {
        list[i].turn = streq(list[i].zone, list[i - 1].zone) ? list[i - 1].turn + 1 : 0;
    }
    qsort(list, n, sizeof *list, by_turn);
    s->order = grow(s->order, &s->cap_order, n + 1, sizeof(struct node *));
    for (size_t i = 0; i < n; i++) {
        s->order[i] = list[i].node;
    }
    s->n_order = n;
    s->next = n ? s->next % n : 0;
    s->order_stale = false;
}
