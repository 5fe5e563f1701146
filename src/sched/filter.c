/* SPDX-License-Identifier: Apache-2.0 */
#include "api/label_selector.h"
#include "api/node_match.h"
#include "sched/model_priv.h"

#define RECENT_MAX 64 /* Classes that keep verdicts. */
#define TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"

/* ---- what lasts: labels, taints, volumes ---- */

static bool uses(const struct sched *s, unsigned filter)
{
    return s->policy.filters & filter;
}

static bool label_filters_hold(const struct sched *s, const struct node *n)
{
    for (size_t i = 0; i < s->policy.n_label_filters; i++) {
        const struct sched_label_filter *f = &s->policy.label_filters[i];
        if ((json_get(n->labels, f->label) != NULL) != f->presence) {
            return false;
        }
    }
    return true;
}

static bool volumes_allow(const struct sched *s, const struct class *c, const struct node *n)
{
    const struct json *claim;
    JSON_FOREACH (claim, json_get(c->spec, "claims")) {
        const struct json *o =
            model_object(s, SCHED_CLAIM, c->subject->namespace, json_get_string(claim));
        const char *volume = json_get_text(json_get(o, "spec"), "volumeName");
        const struct json *required = json_path(model_object(s, SCHED_VOLUME, NULL, volume), "spec",
                                                "nodeAffinity", "required", NULL);
        if (required && !match_node_selector(required, n->labels, n->name)) {
            return false;
        }
    }
    return true;
}

static void judge_taints(const struct sched *s, const struct class *c, const struct node *n,
                         struct verdict *v)
{
    const struct json *tolerations = json_get(c->spec, "tolerations"), *t;
    size_t i = 0;
    v->taints = true;
    JSON_FOREACH (t, n->taints) {
        bool strict = match_has_effect(t, "NoExecute") ||
                      (match_has_effect(t, "NoSchedule") && uses(s, SCHED_FILTER_TAINTS));
        bool mild = match_has_effect(t, "PreferNoSchedule");
        if ((strict || mild) && !match_tolerates(tolerations, t)) {
            v->avoided += mild;
            if (strict && v->taints) {
                v->taints = false;
                v->taint = (uint8_t) MIN(i, (size_t) UINT8_MAX);
            }
        }
        i++;
    }
}

/* Whether the pod may go to a node that is marked as unschedulable. */
static bool goes_to_unschedulable(const struct class *c)
{
    CLEANUP(json_free) struct json *taint = json_object();
    json_set_string(taint, "key", TAINT_UNSCHEDULABLE);
    json_set_string(taint, "effect", "NoSchedule");
    return match_tolerates(json_get(c->spec, "tolerations"), taint);
}

static int32_t preference(const struct class *c, const struct node *n)
{
    const struct json *t;
    int64_t sum = 0;
    JSON_FOREACH (t, json_path(c->spec, "affinity", "nodeAffinity",
                               "preferredDuringSchedulingIgnoredDuringExecution", NULL)) {
        int64_t weight = json_get_int_or(json_get(t, "weight"), 0);
        if (weight > 0 && weight <= 100 &&
            match_node_term(json_get(t, "preference"), n->labels, n->name)) {
            sum += weight;
        }
    }
    return (int32_t) MIN(sum, INT32_MAX);
}

static int64_t image_bytes(const struct class *c, const struct node *n)
{
    int64_t sum = 0;
    const struct json *container;
    JSON_FOREACH (container, json_get(c->spec, "containers")) {
        const char *image = json_get_text(container, "image");
        const struct json *size = json_get(n->images, image);
        if (!size && !strchr(image, ':')) {
            CLEANUP_FREE char *latest = xasprintf("%s:latest", image);
            size = json_get(n->images, latest);
        }
        sum += MAX(MIN(json_get_int_or(size, 0), INT64_C(1) << 40), 0);
    }
    return sum;
}

static void judge(const struct sched *s, const struct class *c, const struct node *n,
                  struct verdict *v)
{
    const char *wanted = json_get_text(c->spec, "nodeName");
    *v = (struct verdict){.generation = n->generation};
    judge_taints(s, c, n, v);
    v->affinity =
        !uses(s, SCHED_FILTER_NODE_AFFINITY) || match_node_required(c->spec, n->labels, n->name);
    v->preferred = preference(c, n);
    v->images = image_bytes(c, n);
    v->reason = !n->runs                                        ? SCHED_NO_CONTAINERS
                : n->unschedulable && !goes_to_unschedulable(c) ? SCHED_UNSCHEDULABLE
                : *wanted && uses(s, SCHED_FILTER_NODE_NAME) && !streq(wanted, n->name)
                    ? SCHED_NODE_NAME
                : !v->taints                                               ? SCHED_TAINT
                : !v->affinity                                             ? SCHED_NODE_AFFINITY
                : !label_filters_hold(s, n)                                ? SCHED_LABEL_PRESENCE
                : uses(s, SCHED_FILTER_VOLUMES) && !volumes_allow(s, c, n) ? SCHED_VOLUME_AFFINITY
                                                                           : SCHED_FITS;
}

/* The class becomes the most recent one, which keeps it: it gets room for the verdicts. */
static void make_recent(struct sched *s, struct class *c)
{
    if (!c->verdicts) {
        class_ref(c);
        c->n_verdicts = s->cap_nodes;
        c->verdicts = xcalloc(c->n_verdicts + 1, sizeof *c->verdicts);
        s->n_recent++;
    } else if (c->objects != s->objects_generation || c->n_verdicts < s->n_nodes) {
        c->n_verdicts = s->cap_nodes;
        free(c->verdicts);
        c->verdicts = xcalloc(c->n_verdicts + 1, sizeof *c->verdicts);
    }
    c->objects = s->objects_generation;
    list_remove(&c->recent);
    list_push_front(&s->recent, &c->recent);
    while (s->n_recent > RECENT_MAX) {
        struct class *last = CONTAINER_OF(s->recent.prev, struct class, recent);
        list_remove(&last->recent);
        free(last->verdicts);
        last->verdicts = NULL;
        s->n_recent--;
        class_put(s, last);
    }
}

const struct verdict *class_verdict(struct sched *s, struct class *c, const struct node *n)
{
    struct verdict *v = &c->verdicts[n->index];
    if (v->generation != n->generation) {
        judge(s, c, n, v);
    }
    return v;
}

/* ---- what changes with each pod: ports and resources ---- */

static bool classes_conflict(const struct class *a, const struct class *b)
{
    for (size_t i = 0; i < a->n_ports; i++) {
        for (size_t k = 0; k < b->n_ports; k++) {
            if (api_host_ports_conflict(&a->ports[i], &b->ports[k])) {
                return true;
            }
        }
    }
    return false;
}

bool ports_conflict(const struct class *c, const struct node *n)
{
    const struct pod *p;
    if (!c->n_ports || !n->n_ports) {
        return false;
    }
    LIST_FOREACH (p, struct pod, on_node, &n->pods) {
        if (p->placed && p->class->n_ports && classes_conflict(c, p->class)) {
            return true;
        }
    }
    return false;
}

static bool nominees_conflict(const struct cycle *c, const struct node *n)
{
    struct smap_entry *e;
    if (!c->class->n_ports) {
        return false;
    }
    SMAP_FOREACH (e, &c->s->nominees) {
        const struct nominee *o = e->value;
        if (o->node == n && o->priority >= c->priority && !streq(e->key, c->key) &&
            classes_conflict(c->class, o->class)) {
            return true;
        }
    }
    return false;
}

/* What nominees that are no less important need of the slot. */
static int64_t kept(const struct cycle *c, const struct node *n, int slot)
{
    int64_t sum = 0;
    struct smap_entry *e;
    SMAP_FOREACH (e, &c->s->nominees) {
        const struct nominee *o = e->value;
        if (o->node != n || o->priority < c->priority || streq(e->key, c->key)) {
            continue;
        }
        for (size_t i = 0; i < o->class->n_requests; i++) {
            sum += o->class->requests[i].slot == slot
                       ? MIN(o->class->requests[i].amount, AMOUNT_MAX)
                       : 0;
        }
    }
    return sum;
}

static uint32_t lacking(const struct cycle *c, const struct node *n)
{
    uint32_t lacks = 0;
    const struct class *k = c->class;
    bool nominees = smap_size(&c->s->nominees);
    for (size_t i = 0; i < k->n_requests; i++) {
        int slot = k->requests[i].slot;
        if (slot < 0) {
            lacks |= UINT32_C(1) << SLOTS;
            continue;
        }
        int64_t left = n->offered[slot] - n->used[slot] - (nominees ? kept(c, n, slot) : 0);
        if (k->requests[i].amount > left) {
            lacks |= UINT32_C(1) << slot;
        }
    }
    return lacks;
}

/* ---- other pods: spreading and affinity ---- */

void spread_count(struct cycle *c, const struct spread *sp, bool hard, struct domain_counts *ret)
{
    struct sched *s = c->s;
    ret->n = sp->topo->n_values;
    ret->list = xcalloc(ret->n + 1, sizeof *ret->list);
    ret->domains = 0;
    ret->least = INT64_MAX;
    for (size_t i = 0; i < ret->n; i++) {
        ret->list[i] = -1;
    }
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct node *n = s->nodes[i];
        int32_t value = n && n->runs && i < sp->topo->cap ? sp->topo->of[i] : -1;
        if (value < 0) {
            continue;
        }
        const struct verdict *v = class_verdict(s, c->class, n);
        bool counts = !(sp->affinity_counts && !v->affinity) && !(sp->taints_count && !v->taints);
        /* A node counts only when it has the keys of all constraints of the sort. */
        for (size_t k = 0; c->class->own_spreads && counts && k < c->class->n_spreads; k++) {
            const struct spread *other = &c->class->spreads[k];
            counts = other->hard != hard || (i < other->topo->cap && other->topo->of[i] >= 0);
        }
        if (!counts) {
            continue;
        }
        if (ret->list[value] < 0) {
            ret->list[value] = 0;
            ret->domains++;
        }
        ret->list[value] += model_at32(sp->term->matched, sp->term->cap, (int32_t) i);
    }
    for (size_t i = 0; i < ret->n; i++) {
        if (ret->list[i] >= 0) {
            ret->least = MIN(ret->least, ret->list[i]);
        }
    }
    if (ret->domains < (size_t) MAX(sp->min_domains, 0)) {
        ret->least = 0;
    }
}

static enum sched_reason check_spread(const struct cycle *c, const struct node *n)
{
    const struct class *k = c->class;
    if (!k->n_hard || !uses(c->s, SCHED_FILTER_SPREAD)) {
        return SCHED_FITS;
    }
    for (size_t i = 0; i < k->n_spreads; i++) {
        const struct spread *sp = &k->spreads[i];
        const struct domain_counts *d = &c->spreads[i];
        int32_t value = n->index < sp->topo->cap ? sp->topo->of[n->index] : -1;
        if (!sp->hard) {
            continue;
        }
        if (value < 0) {
            return SCHED_SPREAD_LABEL;
        }
        int64_t there = (size_t) value < d->n && d->list[value] > 0 ? d->list[value] : 0;
        if (d->least != INT64_MAX && there + sp->self - d->least > sp->max_skew) {
            return SCHED_SPREAD;
        }
    }
    return SCHED_FITS;
}

static bool affinity_holds(const struct cycle *c, const struct node *n)
{
    const struct uses *all = &c->class->affinity;
    bool beside = true;
    int64_t any = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (term_place(all->list[i].term, n) < 0) {
            return false;
        }
        any += all->list[i].term->n_matched;
        beside = beside && term_matched(all->list[i].term, n) > 0;
    }
    /* The first pod of a group that asks for its own company may go anywhere. */
    return beside || (!any && term_matches(c->s, all->list[0].term, c->class->subject));
}

static enum sched_reason check_pods(const struct cycle *c, const struct node *n)
{
    const struct class *k = c->class;
    if (!uses(c->s, SCHED_FILTER_POD_AFFINITY)) {
        return SCHED_FITS;
    }
    if (k->affinity.n && !affinity_holds(c, n)) {
        return SCHED_POD_AFFINITY;
    }
    for (size_t i = 0; i < k->refuses.n; i++) {
        if (term_matched(k->refuses.list[i].term, n) > 0) {
            return SCHED_POD_ANTI_AFFINITY;
        }
    }
    for (size_t i = 0; i < k->subject->n; i++) {
        const struct term *t = k->subject->terms[i];
        if (t->n_refusing && model_at32(t->refusing, t->cap, term_place(t, n)) > 0) {
            return SCHED_EXISTING_ANTI_AFFINITY;
        }
    }
    return SCHED_FITS;
}

/* ---- service affinity of a policy ---- */

bool service_is_common(const struct sched *s, const struct subject *a, const struct subject *b)
{
    struct smap_entry *e;
    if (!streq(a->namespace, b->namespace)) {
        return false;
    }
    SMAP_FOREACH (e, &s->objects[SCHED_SERVICE]) {
        const struct json *selector = json_path(e->value, "spec", "selector", NULL);
        CLEANUP(json_free) struct json *by_labels = json_object();
        if (!json_count(selector) ||
            !streq(json_get_text(json_get(e->value, "metadata"), "namespace"), a->namespace)) {
            continue;
        }
        json_set(by_labels, "matchLabels", json_clone(selector));
        if (label_selector_matches(by_labels, a->labels) &&
            label_selector_matches(by_labels, b->labels)) {
            return true;
        }
    }
    return false;
}

/* The values that the labels of serviceAffinity have to have: those of the pod's nodeSelector, else
 * those of the node of another pod of its services. */
static struct json *service_labels(struct sched *s, const struct class *c)
{
    struct json *out = json_object();
    const struct subject *u;
    const struct node *beside = NULL;
    LIST_FOREACH (u, struct subject, link, &s->all_subjects) {
        if (!beside && !list_is_empty(&u->pods) && service_is_common(s, c->subject, u)) {
            beside = CONTAINER_OF(u->pods.next, struct pod, on_subject)->node;
        }
    }
    for (size_t i = 0; i < s->policy.n_service_affinity; i++) {
        const char *label = s->policy.service_affinity[i];
        const struct json *v = json_path(c->spec, "nodeSelector", label, NULL);
        v = v ? v : beside ? json_get(beside->labels, label) : NULL;
        if (v) {
            json_set(out, label, json_clone(v));
        }
    }
    return out;
}

static bool service_labels_hold(const struct cycle *c, const struct node *n)
{
    for (size_t i = 0; i < json_count(c->service_labels); i++) {
        const struct json *have = json_get(n->labels, json_key_at(c->service_labels, i));
        if (!have || !json_equal(have, json_at(c->service_labels, i))) {
            return false;
        }
    }
    return true;
}

/* ---- a decision ---- */

void cycle_recount(struct cycle *c)
{
    for (size_t i = 0; c->class->n_hard && i < c->class->n_spreads; i++) {
        free(c->spreads[i].list);
        c->spreads[i] = (struct domain_counts){0};
        if (c->class->spreads[i].hard) {
            spread_count(c, &c->class->spreads[i], true, &c->spreads[i]);
        }
    }
}

void cycle_begin(struct cycle *c, struct sched *s, const struct json *pod)
{
    model_order(s);
    *c = (struct cycle){.s = s,
                        .class = class_get(s, pod),
                        .key = sched_pod_key(pod),
                        .priority = sched_pod_priority(pod)};
    make_recent(s, c->class);
    if (uses(s, SCHED_FILTER_VOLUMES)) {
        volumes_begin(c);
    }
    if (c->class->too_many) {
        free(c->fault);
        c->fault = xasprintf("the pod has more than %d terms of affinity and spreading", TERMS_MAX);
    }
    if (s->policy.n_service_affinity) {
        c->service_labels = service_labels(s, c->class);
    }
    c->spreads = xcalloc(c->class->n_spreads + 1, sizeof *c->spreads);
    cycle_recount(c);
}

void cycle_end(struct cycle *c)
{
    for (size_t i = 0; i < c->class->n_spreads; i++) {
        free(c->spreads[i].list);
    }
    volumes_end(c);
    free(c->spreads);
    free(c->fault);
    free(c->key);
    json_free(c->service_labels);
    class_put(c->s, c->class);
}

enum sched_reason cycle_check(struct cycle *c, const struct node *n, uint32_t *ret_slots)
{
    const struct verdict *v = class_verdict(c->s, c->class, n);
    if (c->fault) {
        return SCHED_POD_FAULT;
    }
    if (v->reason != SCHED_FITS) {
        return v->reason;
    }
    if (c->service_labels && !service_labels_hold(c, n)) {
        return SCHED_SERVICE_AFFINITY;
    }
    if (uses(c->s, SCHED_FILTER_PORTS) &&
        (ports_conflict(c->class, n) || nominees_conflict(c, n))) {
        return SCHED_PORTS;
    }
    uint32_t lacks = uses(c->s, SCHED_FILTER_RESOURCES) ? lacking(c, n) : 0;
    if (lacks) {
        if (ret_slots) {
            *ret_slots = lacks;
        }
        return SCHED_RESOURCES;
    }
    enum sched_reason reason = uses(c->s, SCHED_FILTER_VOLUMES) ? volumes_check(c, n) : SCHED_FITS;
    if (reason != SCHED_FITS) {
        return reason;
    }
    reason = check_spread(c, n);
    return reason != SCHED_FITS ? reason : check_pods(c, n);
}
