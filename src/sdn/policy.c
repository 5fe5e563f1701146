/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in: policies, namespaces, pods, attachments; and their compilation. */
#include "sdn/policy_internal.h"

#include "base/mem.h"

#include <string.h>

/* ---- the whole ---- */

struct policy *policy_new(struct ip4_prefix local, const struct policy_ops *ops, void *ctx)
{
    struct policy *p = NEW(struct policy);
    p->local = local;
    p->ops = ops;
    p->ctx = ctx;
    label_pool_init(&p->pool);
    p->no_labels = labels_get(&p->pool, NULL);
    struct hmap *maps[] = {&p->named_ports, &p->namespaces, &p->pods,     &p->endpoints,
                           &p->objects,     &p->scopes,     &p->sets,     &p->classes,
                           &p->class_ids,   &p->rules,      &p->dims,     &p->dim_cookies,
                           &p->pairs,       &p->ports,      &p->port_ids, &p->blocks,
                           &p->block_ids,   &p->sites};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        hmap_init(maps[i]);
    }
    struct list *lists[] = {&p->nodes.pods,  &p->nodes.policies,  &p->admin,
                            &p->touched,     &p->dirty_endpoints, &p->dirty_classes,
                            &p->dirty_rules, &p->dirty_dims,      &p->garbage,
                            &p->locals,      &p->unused_ports,    &p->dirty_blocks};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        list_init(lists[i]);
    }
    p->everybody = policy_who_everybody();
    return p;
}

void policy_want_flows(struct policy *p, const struct policy_flow_ops *ops, void *ctx)
{
    p->flows = ops;
    p->flows_ctx = ctx;
}

static void object_free(struct policy *p, struct object *o);
static void pod_free(struct policy *p, struct pod *pod);

struct policy *policy_free(struct policy *p)
{
    if (!p) {
        return NULL;
    }
    struct object *o;
    HMAP_FOREACH (o, struct object, node, &p->objects) {
        object_free(p, o);
    }
    struct pod *pod;
    HMAP_FOREACH (pod, struct pod, node, &p->pods) {
        pod_report_nothing(p, pod);
        while (pod->endpoints) {
            endpoint_free(p, pod->endpoints);
        }
        pod_free(p, pod);
    }
    sites_free(p);
    policy_compile(p);
    struct ns *ns;
    HMAP_FOREACH (ns, struct ns, node, &p->namespaces) {
        ns->labels = labels_unref(&p->pool, ns->labels);
        ns_release(p, ns);
    }
    free(p->nodes.scopes);
    policy_who_unref(&p->pool, p->everybody);
    labels_unref(&p->pool, p->no_labels);
    label_pool_done(&p->pool);
    for (size_t i = 0; i < N_SPACES; i++) {
        free(p->found[i]);
    }
    free(p->dirty_ips);
    free(p->sorted_blocks[0]);
    free(p->sorted_blocks[1]);
    struct hmap *maps[] = {&p->named_ports, &p->namespaces, &p->pods,     &p->endpoints,
                           &p->objects,     &p->scopes,     &p->sets,     &p->classes,
                           &p->class_ids,   &p->rules,      &p->dims,     &p->dim_cookies,
                           &p->pairs,       &p->ports,      &p->port_ids, &p->blocks,
                           &p->block_ids,   &p->sites};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        assert(maps[i]->n == 0);
        hmap_done(maps[i]);
    }
    free(p);
    return NULL;
}

/* ---- named ports ---- */

static const char *protocol_of(const struct json *port)
{
    const char *s = json_path_string(port, "protocol", NULL);
    return s ? s : "TCP";
}

static void add_ports(const struct json *containers, bool sidecars, struct named_ports **ret,
                      size_t *cap)
{
    const struct json *ct, *port;
    JSON_FOREACH (ct, containers) {
        if (sidecars && !streq_null(json_path_string(ct, "restartPolicy", NULL), "Always")) {
            continue; /* The flow of the lower range ends before the others begin. */
        }
        JSON_FOREACH (port, json_get(ct, "ports")) {
            const char *name = json_path_string(port, "name", NULL), *proto = protocol_of(port);
            int64_t number = json_get_int_or(json_get(port, "containerPort"), 0);
            struct named_port x = {.proto = streq(proto, "UDP")    ? 17
                                            : streq(proto, "SCTP") ? 132
                                                                   : 6};
            if (!name || !*name || strlen(name) >= sizeof x.name || number < 1 ||
                number > UINT16_MAX) {
                continue;
            }
            x.number = (uint16_t) number;
            memcpy(x.name, name, strlen(name));
            uint32_t n = (*ret)->n;
            if (n == *cap) {
                *cap = *cap * 2 + 4;
                *ret = xreallocarray(*ret, 1, sizeof **ret + *cap * sizeof x);
            }
            (*ret)->list[(*ret)->n++] = x;
        }
    }
}

/* NULL: no port has a name. */
static struct named_ports *ports_get(struct policy *p, const struct json *pod)
{
    size_t cap = 0;
    struct named_ports *ports = NEW(struct named_ports);
    add_ports(json_path(pod, "spec", "containers", NULL), false, &ports, &cap);
    add_ports(json_path(pod, "spec", "initContainers", NULL), true, &ports, &cap);
    if (ports->n == 0) {
        free(ports);
        return NULL;
    }
    size_t size = ports->n * sizeof ports->list[0];
    uint32_t hash = hash32(ports->list, size);
    struct named_ports *same;
    HMAP_FOREACH_WITH_HASH (same, struct named_ports, node, hash, &p->named_ports) {
        if (same->n == ports->n && memcmp(same->list, ports->list, size) == 0) {
            same->refs++;
            free(ports);
            return same;
        }
    }
    ports->refs = 1;
    hmap_insert(&p->named_ports, &ports->node, hash);
    return ports;
}

static void ports_unref(struct policy *p, struct named_ports *ports)
{
    if (ports && --ports->refs == 0) {
        hmap_remove(&p->named_ports, &ports->node);
        free(ports);
    }
}

/* ---- policies that become or stop being in use ---- */

static void object_touch(struct policy *p, struct object *o)
{
    if (list_is_empty(&o->touch)) {
        list_push_back(&p->touched, &o->touch);
    }
}

static void pod_leave_objects(struct policy *p, struct pod *pod)
{
    for (size_t i = 0; i < pod->n_subject_of; i++) {
        pod->subject_of[i]->n_subjects--;
        object_touch(p, pod->subject_of[i]);
    }
    free(pod->subject_of);
    pod->subject_of = NULL;
    pod->n_subject_of = 0;
}

static void pod_join_object(struct policy *p, struct pod *pod, struct object *o)
{
    if (!who_matches(o->spec.subject, p, pod)) {
        return;
    }
    size_t n = pod->n_subject_of;
    if ((n & (n - 1)) == 0) { /* Room is a power of two. */
        pod->subject_of = xreallocarray(pod->subject_of, n ? 2 * n : 1, sizeof(struct object *));
    }
    pod->subject_of[pod->n_subject_of++] = o;
    o->n_subjects++;
    object_touch(p, o);
}

static bool is_subject(const struct pod *pod)
{
    return pod->n_local > 0 && pod->known;
}

/* Updates which policies select the pod, after a change of the pod or its namespace. */
static void pod_rejoin(struct policy *p, struct pod *pod)
{
    struct object *o;
    pod_leave_objects(p, pod);
    if (is_subject(pod)) {
        LIST_FOREACH (o, struct object, link, &pod->ns->policies) {
            pod_join_object(p, pod, o);
        }
        LIST_FOREACH (o, struct object, link, &p->admin) {
            pod_join_object(p, pod, o);
        }
    }
}

/* ---- policies ---- */

static uint32_t object_hash(enum policy_kind kind, const char *ns, const char *name)
{
    return (ns ? hash_string(ns) : 0) * 31 + hash_string(name) + (uint32_t) kind;
}

static struct object *object_find(const struct policy *p, enum policy_kind kind, const char *ns,
                                  const char *name)
{
    struct object *o;
    HMAP_FOREACH_WITH_HASH (o, struct object, node, object_hash(kind, ns, name), &p->objects) {
        if (o->spec.kind == kind && streq(o->name, name) &&
            streq_null(o->ns ? o->ns->name : NULL, ns)) {
            return o;
        }
    }
    return NULL;
}

static void count_admin(struct policy *p, const struct object *o, int sign)
{
    for (enum policy_direction d = POLICY_EGRESS; d <= POLICY_INGRESS; d++) {
        if (o->spec.kind == POLICY_ADMIN) {
            p->n_admin_rules[d] += (size_t) sign * (o->broken ? 1 : o->spec.n_rules[d]);
        }
    }
}

/* The object's pods forget it, and its rules are removed. */
static void object_withdraw(struct policy *p, struct object *o)
{
    struct pod *pod;
    if (o->active) {
        count_admin(p, o, -1);
        object_deactivate(p, o);
    }
    if (o->n_subjects) {
        LIST_FOREACH (pod, struct pod, local, &p->locals) {
            for (uint32_t i = 0; i < pod->n_subject_of; i++) {
                if (pod->subject_of[i] == o) {
                    memmove(&pod->subject_of[i], &pod->subject_of[i + 1],
                            (pod->n_subject_of - i - 1) * sizeof(struct object *));
                    pod->n_subject_of--;
                    break;
                }
            }
        }
        o->n_subjects = 0;
    }
    p->n_broken -= o->broken;
    policy_spec_done(&p->pool, &o->spec);
}

static void object_free(struct policy *p, struct object *o)
{
    struct ns *ns = o->ns;
    object_withdraw(p, o);
    hmap_remove(&p->objects, &o->node);
    list_remove(&o->link);
    list_remove(&o->touch);
    free(o);
    if (ns) {
        ns_release(p, ns);
    }
}

static struct object *object_new(struct policy *p, enum policy_kind kind, const char *ns,
                                 const char *name)
{
    size_t size = strlen(name) + 1;
    struct object *o = xcalloc(1, sizeof *o + size);
    memcpy(o->name, name, size);
    uint64_t key[3] = {kind, ns ? hash_bytes(ns, strlen(ns)) : 0, hash_bytes(name, strlen(name))};
    o->hash = hash_bytes(key, sizeof key);
    o->ns = ns ? ns_get(p, ns) : NULL;
    list_init(&o->touch);
    list_push_back(ns ? &o->ns->policies : &p->admin, &o->link);
    hmap_insert(&p->objects, &o->node, object_hash(kind, ns, name));
    return o;
}

int policy_set_object(struct policy *p, enum policy_kind kind, const char *ns, const char *name,
                      const struct json *obj, struct err *e)
{
    ns = kind == POLICY_NETWORK ? ns : NULL;
    struct object *o = object_find(p, kind, ns, name);
    if (o) {
        object_withdraw(p, o);
    } else {
        o = object_new(p, kind, ns, name);
    }
    int r = policy_spec_parse(&p->pool, kind, ns, obj, &o->spec, e);
    if (r == 0 && kind == POLICY_BASELINE && !streq(name, "default")) {
        r = err_set(e, -EINVAL, "metadata.name: is not \"default\"");
    }
    o->broken = r < 0;
    p->n_broken += o->broken;
    struct pod *pod;
    LIST_FOREACH (pod, struct pod, local, &p->locals) {
        if (is_subject(pod)) {
            pod_join_object(p, pod, o);
        }
    }
    object_touch(p, o);
    return r;
}

void policy_delete_object(struct policy *p, enum policy_kind kind, const char *ns, const char *name)
{
    struct object *o = object_find(p, kind, kind == POLICY_NETWORK ? ns : NULL, name);
    if (o) {
        object_free(p, o);
    }
}

/* ---- namespaces ---- */

static void ns_relabel(struct policy *p, struct ns *ns, struct labels *labels)
{
    struct labels *old = ns->labels;
    ns->labels = labels;
    if ((old ? old : p->no_labels) != (labels ? labels : p->no_labels)) {
        ns_rescope(p, ns);
        struct pod *pod;
        LIST_FOREACH (pod, struct pod, in_ns, &ns->pods) {
            if (is_subject(pod)) {
                pod_rejoin(p, pod);
            }
        }
    }
    labels_unref(&p->pool, old);
}

void policy_set_namespace(struct policy *p, const char *name, const struct json *obj)
{
    ns_relabel(p, ns_get(p, name),
               labels_get(&p->pool, json_path(obj, "metadata", "labels", NULL)));
}

void policy_delete_namespace(struct policy *p, const char *name)
{
    struct ns *ns = ns_find(p, name);
    if (ns) {
        ns_relabel(p, ns, NULL);
        ns_release(p, ns);
    }
}

/* ---- pods ---- */

static uint32_t pod_hash(const struct ns *ns, const char *name)
{
    return hash32(&ns, sizeof ns) * 31 + hash_string(name);
}

static struct pod *pod_find(const struct policy *p, const struct ns *ns, const char *name)
{
    struct pod *pod;
    HMAP_FOREACH_WITH_HASH (pod, struct pod, node, pod_hash(ns, name), &p->pods) {
        if (pod->ns == ns && streq(pod->name, name)) {
            return pod;
        }
    }
    return NULL;
}

static struct pod *pod_get(struct policy *p, struct ns *ns, const char *name)
{
    struct pod *pod = pod_find(p, ns, name);
    if (!pod) {
        size_t size = strlen(name) + 1;
        pod = xcalloc(1, sizeof *pod + size);
        memcpy(pod->name, name, size);
        pod->ns = ns;
        pod->labels = p->no_labels;
        pod->labels->refs++;
        hmap_insert(&p->pods, &pod->node, pod_hash(ns, name));
        list_push_back(&ns->pods, &pod->in_ns);
        list_init(&pod->local);
        list_init(&pod->at_site);
    }
    return pod;
}

static void pod_free(struct policy *p, struct pod *pod)
{
    struct ns *ns = pod->ns;
    pod_leave_objects(p, pod);
    hmap_remove(&p->pods, &pod->node);
    list_remove(&pod->in_ns);
    list_remove(&pod->local);
    labels_unref(&p->pool, pod->labels);
    ports_unref(p, pod->ports);
    free(pod);
    ns_release(p, ns);
}

static void pod_release(struct policy *p, struct pod *pod)
{
    if (!pod->present && !pod->endpoints) {
        pod_free(p, pod);
    }
}

static struct endpoint *endpoint_find(struct pod *pod, uint32_t ip, bool local)
{
    struct endpoint *ep = pod->endpoints;
    while (ep && (ep->ip != ip || ep->local != local)) {
        ep = ep->next;
    }
    return ep;
}

static void endpoint_add(struct policy *p, struct pod *pod, uint32_t ip, bool local)
{
    struct endpoint *ep = NEW(struct endpoint);
    ep->ip = ip;
    ep->local = local;
    ep->pod = pod;
    ep->next = pod->endpoints;
    pod->endpoints = ep;
    list_init(&ep->dirty);
    hmap_insert(&p->endpoints, &ep->node, ip);
    endpoint_touch(p, ep);
    ip_touch(p, ip);
}

void pod_set_addresses(struct policy *p, struct pod *pod, const uint32_t *list, size_t n)
{
    for (struct endpoint *ep = pod->endpoints, *next; ep; ep = next) {
        next = ep->next;
        bool stays = ep->local;
        for (size_t i = 0; !stays && i < n; i++) {
            stays = list[i] == ep->ip;
        }
        if (!stays) {
            endpoint_free(p, ep);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!endpoint_find(pod, list[i], false)) {
            endpoint_add(p, pod, list[i], false);
        }
    }
}

static void pod_update(struct policy *p, struct pod *pod, struct labels *labels,
                       struct named_ports *ports, bool terminating)
{
    bool was_known = pod->known;
    bool changed = labels != pod->labels || ports != pod->ports || !was_known;
    bool ranked = terminating != pod->terminating || !pod->present;
    labels_unref(&p->pool, pod->labels);
    ports_unref(p, pod->ports);
    pod->labels = labels;
    pod->ports = ports;
    pod->terminating = terminating;
    pod->known = true;
    if (!pod->present) {
        pod->present = true;
        pod->serial = ++p->serial;
    }
    if (changed && pod->n_local) {
        pod_rejoin(p, pod);
    }
    if (changed) {
        pod_touch(p, pod);
    }
    /* The owner of an address, and whether it is cut off, are in its flows, whatever its class
     * is. */
    for (struct endpoint *ep = pod->endpoints; ep && (ranked || !was_known); ep = ep->next) {
        ip_touch(p, ep->ip);
    }
}

void policy_set_pod(struct policy *p, const char *ns, const char *name, const struct json *obj)
{
    struct pod *pod = pod_get(p, ns_get(p, ns), name);
    pod_update(p, pod, labels_get(&p->pool, json_path(obj, "metadata", "labels", NULL)),
               ports_get(p, obj), json_path(obj, "metadata", "deletionTimestamp", NULL) != NULL);
    pod_report(p, pod, obj);
}

void policy_delete_pod(struct policy *p, const char *ns, const char *name)
{
    struct ns *x = ns_find(p, ns);
    struct pod *pod = x ? pod_find(p, x, name) : NULL;
    if (pod) {
        pod->present = false; /* An attached pod keeps its addresses until it is detached. */
        pod_report_nothing(p, pod);
        pod_release(p, pod);
    }
}

void policy_set_node(struct policy *p, const char *name, const struct json *obj)
{
    struct pod *node = pod_get(p, &p->nodes, name);
    pod_update(p, node, labels_get(&p->pool, json_path(obj, "metadata", "labels", NULL)), NULL,
               false);
    node_report(p, node, obj);
}

void policy_delete_node(struct policy *p, const char *name)
{
    struct pod *node = pod_find(p, &p->nodes, name);
    if (node) {
        node->present = false;
        pod_report_nothing(p, node);
        pod_release(p, node);
    }
}

/* ---- attachments ---- */

static struct endpoint *local_at(const struct policy *p, uint32_t ip)
{
    struct endpoint *ep;
    HMAP_FOREACH_WITH_HASH (ep, struct endpoint, node, ip, &p->endpoints) {
        if (ep->local) {
            return ep;
        }
    }
    return NULL;
}

void policy_detach(struct policy *p, uint32_t ip)
{
    struct endpoint *ep = local_at(p, ip);
    if (ep) {
        struct pod *pod = ep->pod;
        pod->n_local--;
        endpoint_free(p, ep);
        if (pod->n_local == 0) {
            pod_rejoin(p, pod);
            list_remove(&pod->local);
        }
        pod_release(p, pod);
    }
}

void policy_attach(struct policy *p, uint32_t ip, const char *ns, const char *name)
{
    const struct endpoint *there = local_at(p, ip);
    if (there && streq_null(there->pod->ns->name, ns) && streq(there->pod->name, name)) {
        return;
    }
    policy_detach(p, ip);
    struct pod *pod = pod_get(p, ns_get(p, ns), name);
    pod->n_local++;
    endpoint_add(p, pod, ip, true);
    if (pod->n_local == 1) {
        list_push_back(&p->locals, &pod->local);
        pod_rejoin(p, pod);
    }
}

int policy_knows_pod(const struct policy *p, const char *ns, const char *name, struct err *e)
{
    const struct ns *x = ns_find(p, ns);
    if (!x || !x->labels) {
        return err_set(e, -ENOENT, "Namespace %s: is not known to this node yet", ns);
    }
    const struct pod *pod = pod_find(p, x, name);
    if (!pod || !pod->present) {
        return err_set(e, -ENOENT, "Pod %s/%s: is not known to this node yet", ns, name);
    }
    return 0;
}

/* ---- compiling what changed ---- */

/* More administrator's rules than priorities: policies beyond the limit are handled as if they
 * could not be compiled. */
static void limit_admin(struct policy *p, struct object *o)
{
    for (enum policy_direction d = POLICY_EGRESS; d <= POLICY_INGRESS; d++) {
        if (o->spec.kind == POLICY_ADMIN && !o->broken &&
            p->n_admin_rules[d] + o->spec.n_rules[d] > POLICY_MAX_RULES) {
            o->broken = true;
            p->n_broken++;
        }
    }
}

static void apply_touched(struct policy *p)
{
    struct list *link;
    while ((link = list_pop_front(&p->touched))) {
        struct object *o = CONTAINER_OF(link, struct object, touch);
        if (o->n_subjects && !o->active) {
            limit_admin(p, o);
            count_admin(p, o, 1);
            object_activate(p, o);
        } else if (!o->n_subjects && o->active) {
            count_admin(p, o, -1);
            object_deactivate(p, o);
        }
    }
}

static int compare_ips(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return x < y ? -1 : x > y;
}

static void emit_ips(struct policy *p)
{
    for (size_t i = 0; i < p->n_dirty_ips; i++) {
        if (i == 0 || p->dirty_ips[i] != p->dirty_ips[i - 1]) {
            emit_ip(p, p->dirty_ips[i]);
        }
    }
}

static void emit_dims(struct policy *p)
{
    struct list *link;
    while ((link = list_pop_front(&p->dirty_dims))) {
        struct dim *d = CONTAINER_OF(link, struct dim, dirty);
        emit_dim(p, d);
        if (d->n_refs == 0) {
            hmap_remove(&p->dims, &d->node);
            hmap_remove(&p->dim_cookies, &d->by_cookie);
            free(d->refs);
            free(d);
        }
    }
}

static void emit_flows(struct policy *p)
{
    struct list *link;
    while ((link = list_pop_front(&p->dirty_rules))) {
        emit_rule(p, CONTAINER_OF(link, struct rule, dirty));
    }
    emit_dims(p);
    while ((link = list_pop_front(&p->dirty_classes))) {
        emit_class(p, CONTAINER_OF(link, struct class, dirty));
    }
    emit_ips(p);
}

void policy_compile(struct policy *p)
{
    apply_touched(p);
    do {
        endpoints_update(p);
        sets_collect(p);
        templates_collect(p);
    } while (!list_is_empty(&p->dirty_endpoints) || !list_is_empty(&p->garbage));
    for (enum policy_direction d = POLICY_EGRESS; d <= POLICY_INGRESS; d++) {
        if (p->admin_changed[d]) {
            admin_layout(p, d);
        }
    }
    if (p->n_dirty_ips) {
        qsort(p->dirty_ips, p->n_dirty_ips, sizeof *p->dirty_ips, compare_ips);
    }
    if (p->table) {
        table_emit(p);
    } else {
        emit_flows(p);
    }
    p->n_dirty_ips = 0;
    if (p->dirty_ips_cap > 1024) { /* Free the large buffer that only the initial list needs. */
        free(TAKE(p->dirty_ips));
        p->dirty_ips_cap = 0;
    }
}

void policy_get_stats(const struct policy *p, struct policy_stats *ret)
{
    *ret = (struct policy_stats){.objects = p->objects.n,
                                 .broken = p->n_broken,
                                 .pods = p->pods.n,
                                 .sets = p->sets.n,
                                 .classes = p->classes.n,
                                 .rules = p->rules.n};
    const struct object *o;
    HMAP_FOREACH (o, struct object, node, &p->objects) {
        ret->active += o->active;
    }
}
