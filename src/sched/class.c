/* SPDX-License-Identifier: Apache-2.0 */
#include "api/node_match.h"
#include "api/requests.h"
#include "sched/model_priv.h"
#include "storage/fields.h"

/* Requests that scores assume of containers that state none. */
#define ASSUMED_CPU INT64_C(100)
#define ASSUMED_MEMORY (INT64_C(200) * 1024 * 1024)
#define HOSTNAME "kubernetes.io/hostname"
#define ZONE "topology.kubernetes.io/zone"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

/* ---- requests ---- */

int64_t sched_pod_request(const struct json *pod, const char *resource)
{
    return api_pod_amount(json_get(pod, "spec"), "requests", resource, 0);
}

int32_t sched_pod_priority(const struct json *pod)
{
    int64_t n = json_get_int_or(json_path(pod, "spec", "priority", NULL), 0);
    return (int32_t) MAX(MIN(n, INT32_MAX), INT32_MIN);
}

char *sched_pod_key(const struct json *pod)
{
    const struct json *meta = json_get(pod, "metadata");
    return xasprintf("%s/%s", json_get_text(meta, "namespace"), json_get_text(meta, "name"));
}

static void add_request(struct class *c, const char *name)
{
    for (size_t i = 0; i < c->n_requests; i++) {
        if (streq(c->requests[i].name, name)) {
            return;
        }
    }
    int64_t n = streq(name, "pods") ? 1 : api_pod_amount(c->spec, "requests", name, 0);
    if (n > 0) {
        c->requests = xreallocarray(c->requests, c->n_requests + 1, sizeof *c->requests);
        c->requests[c->n_requests++] = (struct request){xstrdup(name), n, -1};
    }
}

static void add_names(struct class *c, const struct json *list)
{
    for (size_t i = 0; i < match_members(list); i++) {
        add_request(c, json_key_at(list, i));
    }
}

void class_find_slots(const struct sched *s, struct class *c)
{
    for (size_t i = 0; i < c->n_requests; i++) {
        c->requests[i].slot = -1;
        for (size_t k = 0; k < s->n_slots; k++) {
            if (streq(s->slots[k], c->requests[i].name)) {
                c->requests[i].slot = (int) k;
            }
        }
    }
}

static void make_requests(const struct sched *s, struct class *c)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const struct json *one;
    add_request(c, "pods");
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (one, json_get(c->spec, lists[i])) {
            add_names(c, json_path(one, "resources", "requests", NULL));
            add_names(c, json_path(one, "resources", "limits", NULL));
        }
    }
    add_names(c, json_get(c->spec, "overhead"));
    class_find_slots(s, c);
    c->score_cpu = api_pod_amount(c->spec, "requests", "cpu", ASSUMED_CPU);
    c->score_memory = api_pod_amount(c->spec, "requests", "memory", ASSUMED_MEMORY);
}

static void make_ports(struct class *c)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const struct json *one, *p;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (one, json_get(c->spec, lists[i])) {
            JSON_FOREACH (p, json_get(one, "ports")) {
                struct api_host_port port;
                if (api_host_port_read(p, &port)) {
                    c->ports = xreallocarray(c->ports, c->n_ports + 1, sizeof *c->ports);
                    c->ports[c->n_ports++] = port;
                }
            }
        }
    }
}

/* ---- terms ---- */

/* Adds to the selector that pods have (or, "NotIn", do not have) the pod's value of these keys. */
static void add_label_keys(const struct subject *u, struct json *one, const struct json *keys,
                           const char *operator)
{
    const struct json *key;
    struct json *selector = json_get(one, "labelSelector");
    JSON_FOREACH (key, keys) {
        const char *name = json_get_string(key);
        const char *value = name ? json_get_string(json_get(u->labels, name)) : NULL;
        if (!value || !selector) {
            continue;
        }
        struct json *e =
            json_append(json_ensure_array(selector, "matchExpressions"), json_object());
        json_set_string(e, "key", name);
        json_set_string(e, "operator", operator);
        json_append(json_ensure_array(e, "values"), json_string(value));
    }
}

static void copy_member(struct json *to, const struct json *from, const char *key)
{
    const struct json *v = json_get(from, key);
    if (v && !json_is(v, JSON_NULL)) {
        json_set(to, key, json_clone(v));
    }
}

/* The selector of a PodAffinityTerm, as struct term has them. */
static struct json *affinity_selector(const struct subject *u, const struct json *t)
{
    struct json *one = json_object();
    copy_member(one, t, "labelSelector");
    if (json_count(json_get(t, "namespaces"))) {
        copy_member(one, t, "namespaces");
    }
    copy_member(one, t, "namespaceSelector");
    if (!json_get(one, "namespaces") && !json_get(one, "namespaceSelector")) {
        json_append(json_ensure_array(one, "namespaces"), json_string(u->namespace));
    }
    add_label_keys(u, one, json_get(t, "matchLabelKeys"), "In");
    add_label_keys(u, one, json_get(t, "mismatchLabelKeys"), "NotIn");
    return one;
}

static void add_use(struct uses *list, struct term *t, int64_t weight)
{
    list->list = grow(list->list, &list->cap, list->n + 1, sizeof *list->list);
    list->list[list->n++] = (struct use){t, weight};
}

/* One term alone. */
static struct term *single(struct sched *s, const struct subject *u, const struct json *t)
{
    struct json *selectors = json_array();
    json_append(selectors, affinity_selector(u, t));
    return term_get(s, selectors, json_get_text(t, "topologyKey"), false);
}

static void make_affinity(struct sched *s, struct class *c)
{
    const struct json *affinity = json_get(c->spec, "affinity"), *t;
    const struct json *to = json_get(affinity, "podAffinity");
    const struct json *from = json_get(affinity, "podAntiAffinity");
    CLEANUP(json_free) struct json *all = json_array();
    JSON_FOREACH (t, json_get(to, REQUIRED)) {
        json_append(all, affinity_selector(c->subject, t));
    }
    JSON_FOREACH (t, json_get(to, REQUIRED)) {
        add_use(&c->affinity, term_get(s, json_clone(all), json_get_text(t, "topologyKey"), false),
                0);
        add_use(&c->draws, single(s, c->subject, t), 1);
    }
    JSON_FOREACH (t, json_get(from, REQUIRED)) {
        add_use(&c->refuses, single(s, c->subject, t), 0);
    }
    JSON_FOREACH (t, json_get(to, PREFERRED)) {
        add_use(&c->wishes, single(s, c->subject, json_get(t, "podAffinityTerm")),
                MAX(json_get_int_or(json_get(t, "weight"), 0), 1));
    }
    JSON_FOREACH (t, json_get(from, PREFERRED)) {
        add_use(&c->wishes, single(s, c->subject, json_get(t, "podAffinityTerm")),
                -MAX(json_get_int_or(json_get(t, "weight"), 0), 1));
    }
}

/* ---- spreading ---- */

static struct spread *add_spread(struct sched *s, struct class *c, struct json *one,
                                 const char *key, bool hard)
{
    struct json *selectors = json_array();
    json_set(one, "namespaces", json_array());
    json_append(json_get(one, "namespaces"), json_string(c->subject->namespace));
    json_append(selectors, one);
    c->spreads = xreallocarray(c->spreads, c->n_spreads + 1, sizeof *c->spreads);
    struct spread *sp = &c->spreads[c->n_spreads++];
    *sp = (struct spread){.topo = topo_get(s, key),
                          .term = term_get(s, selectors, NULL, true),
                          .max_skew = 1,
                          .hard = hard,
                          .affinity_counts = true};
    sp->self = term_matches(s, sp->term, c->subject);
    return sp;
}

static void make_spreads(struct sched *s, struct class *c)
{
    const struct json *t;
    JSON_FOREACH (t, json_get(c->spec, "topologySpreadConstraints")) {
        struct json *one = json_object();
        copy_member(one, t, "labelSelector");
        add_label_keys(c->subject, one, json_get(t, "matchLabelKeys"), "In");
        struct spread *sp =
            add_spread(s, c, one, json_get_text(t, "topologyKey"),
                       !streq(json_get_text(t, "whenUnsatisfiable"), "ScheduleAnyway"));
        sp->max_skew = MAX(json_get_int_or(json_get(t, "maxSkew"), 1), 1);
        sp->min_domains = json_get_int_or(json_get(t, "minDomains"), 0);
        sp->affinity_counts = !streq(json_get_text(t, "nodeAffinityPolicy"), "Ignore");
        sp->taints_count = streq(json_get_text(t, "nodeTaintsPolicy"), "Honor");
        c->n_hard += sp->hard;
        c->own_spreads = true;
    }
    /* Without constraints of its own a pod is spread among those of its owner. */
    if (!c->own_spreads && *c->subject->owner) {
        static const struct {
            const char *key;
            int64_t max_skew;
        } defaults[] = {{HOSTNAME, 3}, {ZONE, 5}};
        for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
            struct json *one = json_object();
            json_set_string(one, "owner", c->subject->owner);
            add_spread(s, c, one, defaults[i].key, false)->max_skew = defaults[i].max_skew;
        }
    }
}

static size_t count_terms(const struct json *spec)
{
    const struct json *affinity = json_get(spec, "affinity");
    const struct json *to = json_get(affinity, "podAffinity");
    const struct json *from = json_get(affinity, "podAntiAffinity");
    return json_count(json_get(to, REQUIRED)) + json_count(json_get(to, PREFERRED)) +
           json_count(json_get(from, REQUIRED)) + json_count(json_get(from, PREFERRED)) +
           json_count(json_get(spec, "topologySpreadConstraints"));
}

/* ---- what makes pods equal ---- */

static void take(struct json *to, const struct json *from, const char *key)
{
    const struct json *v = json_get(from, key);
    const char *text = json_get_string(v);
    if (text ? *text != 0 : json_count(v) > 0) {
        json_set(to, key, json_clone(v));
    }
}

static void take_containers(struct json *spec, const struct json *from, const char *key)
{
    const struct json *c, *p;
    JSON_FOREACH (c, json_get(from, key)) {
        struct json *o = json_append(json_ensure_array(spec, key), json_object());
        const struct json *r = json_get(c, "resources");
        if (json_count(json_get(r, "requests")) || json_count(json_get(r, "limits"))) {
            struct json *mine = json_ensure_object(o, "resources");
            take(mine, r, "requests");
            take(mine, r, "limits");
        }
        take(o, c, "image");
        take(o, c, "restartPolicy");
        JSON_FOREACH (p, json_get(c, "ports")) {
            if (json_get_int_or(json_get(p, "hostPort"), 0) > 0) {
                json_append(json_ensure_array(o, "ports"), json_clone(p));
            }
        }
    }
}

static struct json *essence(const struct json *pod)
{
    static const char *const members[] = {
        "nodeName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints",
        "overhead"};
    const struct json *from = json_get(pod, "spec"), *v;
    struct json *spec = json_object();
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        take(spec, from, members[i]);
    }
    take_containers(spec, from, "containers");
    take_containers(spec, from, "initContainers");
    JSON_FOREACH (v, json_get(from, "volumes")) {
        CLEANUP_FREE char *claim = storage_pod_claim(pod, v);
        if (claim) {
            json_append(json_ensure_array(spec, "claims"), json_string(claim));
        }
    }
    return spec;
}

struct class *class_ref(struct class *c)
{
    c->refs++;
    return c;
}

struct class *class_get(struct sched *s, const struct json *pod)
{
    CLEANUP(json_free) struct json *spec = essence(pod);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct subject *u = subject_get(s, pod);
    json_write(spec, 0, &text);
    strbuf_addf(&text, "\n%s", u->text);
    uint32_t hash = hash32(text.data, text.size);
    struct class *c;
    HMAP_FOREACH_WITH_HASH (c, struct class, node, hash, &s->classes) {
        if (streq(c->text, text.data)) {
            subject_put(s, u);
            return class_ref(c);
        }
    }
    c = NEW(struct class);
    c->text = strbuf_steal(&text);
    c->spec = TAKE(spec);
    c->subject = u;
    c->refs = 1;
    list_init(&c->recent);
    hmap_insert(&s->classes, &c->node, hash);
    make_requests(s, c);
    make_ports(c);
    c->too_many = count_terms(c->spec) > TERMS_MAX;
    if (!c->too_many) {
        make_affinity(s, c);
        make_spreads(s, c);
    }
    return c;
}

static void put_uses(struct sched *s, struct uses *list)
{
    for (size_t i = 0; i < list->n; i++) {
        term_put(s, list->list[i].term);
    }
    free(list->list);
}

void class_put(struct sched *s, struct class *c)
{
    if (!c || --c->refs) {
        return;
    }
    hmap_remove(&s->classes, &c->node);
    if (c->verdicts) {
        list_remove(&c->recent);
        s->n_recent--;
    }
    put_uses(s, &c->affinity);
    put_uses(s, &c->refuses);
    put_uses(s, &c->wishes);
    put_uses(s, &c->draws);
    for (size_t i = 0; i < c->n_spreads; i++) {
        term_put(s, c->spreads[i].term);
        topo_put(c->spreads[i].topo);
    }
    for (size_t i = 0; i < c->n_requests; i++) {
        free(c->requests[i].name);
    }
    subject_put(s, c->subject);
    free(c->spreads);
    free(c->requests);
    free(c->ports);
    free(c->verdicts);
    json_free(c->spec);
    free(c->text);
    free(c);
}
