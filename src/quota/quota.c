/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/quota.h"

#include "api/label_selector.h"
#include "api/quantity.h"
#include "api/requests.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT_PREFIX "count/"
#define REQUESTS_PREFIX "requests."
#define LIMITS_PREFIX "limits."
#define HUGE_PREFIX "hugepages-"
#define CLASS_INFIX ".storageclass.storage.k8s.io/"
#define CLASS_ANNOTATION "volume.beta.kubernetes.io/storage-class"
#define CLAIMS "persistentvolumeclaims"
#define SCOPE_NAME "scopeName"
#define PRIORITY_SCOPE "PriorityClass"

/* ---- items ---- */

/* Resources with names of their own. */
static const struct {
    const char *name;
    enum quota_measure measure;
    const char *group, *plural, *of;
} names[] = {
    {"configmaps", QUOTA_COUNT, "", "configmaps", NULL},
    {"cpu", QUOTA_REQUESTS, "", "pods", "cpu"},
    {"ephemeral-storage", QUOTA_REQUESTS, "", "pods", "ephemeral-storage"},
    {"memory", QUOTA_REQUESTS, "", "pods", "memory"},
    {"openshift.io/imagestreams", QUOTA_COUNT, "image.openshift.io", "imagestreams", NULL},
    {CLAIMS, QUOTA_COUNT, "", CLAIMS, NULL},
    {"pods", QUOTA_RUNNING, "", "pods", NULL},
    {"replicationcontrollers", QUOTA_COUNT, "", "replicationcontrollers", NULL},
    {"requests.storage", QUOTA_STORAGE, "", CLAIMS, NULL},
    {"resourcequotas", QUOTA_COUNT, "", "resourcequotas", NULL},
    {"secrets", QUOTA_COUNT, "", "secrets", NULL},
    {"services", QUOTA_COUNT, "", "services", NULL},
    {"services.loadbalancers", QUOTA_LOAD_BALANCER, "", "services", NULL},
    {"services.nodeports", QUOTA_NODE_PORTS, "", "services", NULL},
};

static void set_item(struct quota_item *i, enum quota_measure measure, const char *group,
                     const char *plural, const char *of)
{
    i->measure = measure;
    i->group = xstrdup(group);
    i->plural = xstrdup(plural);
    i->of = of ? xstrdup(of) : NULL;
}

/* "count/PLURAL[.GROUP]" */
static void set_count(struct quota_item *i, const char *of)
{
    const char *dot = strchr(of, '.');
    i->measure = QUOTA_COUNT;
    i->group = xstrdup(dot ? dot + 1 : "");
    i->plural = dot ? xstrndup(of, (size_t) (dot - of)) : xstrdup(of);
}

/* "CLASS.storageclass.storage.k8s.io/..." */
static bool set_class(struct quota_item *i, const char *infix)
{
    const char *what = infix + strlen(CLASS_INFIX);
    bool count = streq(what, CLAIMS);
    if (!count && !streq(what, "requests.storage")) {
        return false;
    }
    CLEANUP_FREE char *class = xstrndup(i->name, (size_t) (infix - i->name));
    set_item(i, count ? QUOTA_CLASS_COUNT : QUOTA_CLASS_STORAGE, "", CLAIMS, class);
    return true;
}

static void set_meaning(struct quota_item *i)
{
    const char *name = i->name, *infix = strstr(name, CLASS_INFIX);
    for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
        if (streq(names[k].name, name)) {
            set_item(i, names[k].measure, names[k].group, names[k].plural, names[k].of);
            return;
        }
    }
    if (infix && set_class(i, infix)) {
        return;
    }
    if (str_has_prefix(name, COUNT_PREFIX)) {
        set_count(i, name + strlen(COUNT_PREFIX));
    } else if (str_has_prefix(name, HUGE_PREFIX)) {
        set_item(i, QUOTA_REQUESTS, "", "pods", name);
    } else if (str_has_prefix(name, REQUESTS_PREFIX)) {
        set_item(i, QUOTA_REQUESTS, "", "pods", name + strlen(REQUESTS_PREFIX));
    } else if (str_has_prefix(name, LIMITS_PREFIX)) {
        set_item(i, QUOTA_LIMITS, "", "pods", name + strlen(LIMITS_PREFIX));
    } else {
        set_item(i, QUOTA_NOTHING, "", "", NULL);
    }
}

static int exponent_of(const char *resource)
{
    return streq(resource, "cpu") ? -3 : 0;
}

static int by_name(const void *a, const void *b)
{
    const struct quota_item *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void read_item(struct quota_item *i, const char *name, const struct json *amount)
{
    const char *text =
        json_is(amount, JSON_NUMBER) ? json_number_text(amount) : json_get_string(amount);
    i->name = xstrdup(name);
    i->hard = xstrdup(text ? text : "0");
    set_meaning(i);
    /* A bound that cannot be read admits nothing. */
    if (api_quantity_value(i->hard, i->of ? exponent_of(i->of) : 0, &i->most, NULL) < 0) {
        i->most = 0;
    }
}

/* The scopes as requirements of a scopeSelector; owned. */
static struct json *read_scopes(const struct json *spec)
{
    struct json *list = json_array();
    const struct json *item;
    JSON_FOREACH (item, json_get(spec, "scopes")) {
        struct json *r = json_append(list, json_object());
        json_set_string(r, SCOPE_NAME, json_get_string(item));
        json_set_string(r, "operator", "Exists");
    }
    JSON_FOREACH (item, json_path(spec, "scopeSelector", "matchExpressions", NULL)) {
        json_append(list, json_clone(item));
    }
    return list;
}

struct quota_spec *quota_spec_new(const struct json *spec)
{
    struct quota_spec *s = NEW(struct quota_spec);
    const struct json *hard = json_get(spec, "hard");
    size_t n = json_is(hard, JSON_OBJECT) ? MIN(json_count(hard), (size_t) QUOTA_MAX_ITEMS) : 0;
    s->items = xcalloc(n + 1, sizeof *s->items);
    for (size_t i = 0; i < n; i++) {
        read_item(&s->items[s->n++], json_key_at(hard, i), json_at(hard, i));
    }
    qsort(s->items, s->n, sizeof *s->items, by_name);
    s->scopes = read_scopes(spec);
    return s;
}

struct quota_spec *quota_spec_free(struct quota_spec *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        free(s->items[i].name);
        free(s->items[i].group);
        free(s->items[i].plural);
        free(s->items[i].of);
        free(s->items[i].hard);
    }
    if (s) {
        free(s->items);
        json_free(s->scopes);
        free(s);
    }
    return NULL;
}

/* ---- scopes ---- */

static bool is_terminating(const struct json *pod)
{
    return json_get_int_or(json_path(pod, "spec", "activeDeadlineSeconds", NULL), -1) >= 0;
}

static bool asks_compute(const struct json *containers)
{
    static const char *const resources[] = {"cpu", "memory"}, *const lists[] = {"requests",
                                                                                "limits"};
    const struct json *c;
    bool asks = false;
    JSON_FOREACH (c, containers) {
        for (size_t i = 0; i < ARRAY_SIZE(resources) * ARRAY_SIZE(lists); i++) {
            asks |=
                api_amount(json_path(c, "resources", lists[i / 2], NULL), resources[i % 2], 0) > 0;
        }
    }
    return asks;
}

/* Whether the pod's QoS class is that: no container states an amount. */
static bool is_best_effort(const struct json *pod)
{
    return !asks_compute(json_path(pod, "spec", "containers", NULL)) &&
           !asks_compute(json_path(pod, "spec", "initContainers", NULL));
}

static bool term_leaves(const struct json *term)
{
    return json_count(json_get(term, "namespaces")) ||
           json_is(json_get(term, "namespaceSelector"), JSON_OBJECT);
}

static bool terms_leave(const struct json *affinity)
{
    const struct json *item;
    bool leaves = false;
    JSON_FOREACH (item, json_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution")) {
        leaves |= term_leaves(item);
    }
    JSON_FOREACH (item, json_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution")) {
        leaves |= term_leaves(json_get(item, "podAffinityTerm"));
    }
    return leaves;
}

/* Whether a rule of affinity looks at pods of other namespaces. */
static bool is_cross_namespace(const struct json *pod)
{
    const struct json *affinity = json_path(pod, "spec", "affinity", NULL);
    return terms_leave(json_get(affinity, "podAffinity")) ||
           terms_leave(json_get(affinity, "podAntiAffinity"));
}

static bool is_of_priority(const struct json *pod, const struct json *requirement)
{
    CLEANUP(json_free) struct json *selector = json_object();
    CLEANUP(json_free) struct json *labels = json_object();
    const char *class = json_path_string(pod, "spec", "priorityClassName", NULL);
    struct json *r = json_clone(requirement);
    json_set_string(r, "key", PRIORITY_SCOPE);
    json_remove(r, SCOPE_NAME);
    json_append(json_set(selector, "matchExpressions", json_array()), r);
    if (class && *class) {
        json_set_string(labels, PRIORITY_SCOPE, class);
    }
    return label_selector_matches(selector, labels);
}

static bool is_in_scope(const struct json *pod, const struct json *requirement)
{
    static const struct {
        const char *name;
        bool (*is_in)(const struct json *pod);
        bool want;
    } scopes[] = {
        {"Terminating", is_terminating, true},
        {"NotTerminating", is_terminating, false},
        {"BestEffort", is_best_effort, true},
        {"NotBestEffort", is_best_effort, false},
        {"CrossNamespacePodAffinity", is_cross_namespace, true},
    };
    const char *name = json_get_text(requirement, SCOPE_NAME);
    for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
        if (streq(scopes[i].name, name)) {
            return scopes[i].is_in(pod) == scopes[i].want;
        }
    }
    return streq(name, PRIORITY_SCOPE) && is_of_priority(pod, requirement);
}

static bool is_pod(const char *group, const char *plural)
{
    return *group == '\0' && streq(plural, "pods");
}

/* Whether the quota is about the object. Only pods are in scopes. */
static bool matches_scopes(const struct quota_spec *s, const char *group, const char *plural,
                           const struct json *obj)
{
    const struct json *r;
    bool matches = json_count(s->scopes) == 0 || is_pod(group, plural);
    JSON_FOREACH (r, s->scopes) {
        matches = matches && is_in_scope(obj, r);
    }
    return matches;
}

/* ---- charges ---- */

static bool has_ended(const struct json *pod)
{
    const char *phase = json_path_string(pod, "status", "phase", NULL);
    return streq_null(phase, "Succeeded") || streq_null(phase, "Failed");
}

static int64_t node_ports(const struct json *service)
{
    const struct json *spec = json_get(service, "spec"), *ports = json_get(spec, "ports"), *port;
    const char *type = json_get_text(spec, "type");
    int64_t n = (int64_t) json_count(ports);
    if (streq(type, "NodePort")) {
        return n;
    }
    if (!streq(type, "LoadBalancer")) {
        return 0;
    }
    if (json_get_bool(json_get(spec, "allocateLoadBalancerNodePorts"), true)) {
        return n;
    }
    n = 0;
    JSON_FOREACH (port, ports) {
        n += json_get_int_or(json_get(port, "nodePort"), 0) > 0;
    }
    return n;
}

static const char *class_of(const struct json *claim)
{
    const char *old = json_path_string(claim, "metadata", "annotations", CLASS_ANNOTATION, NULL);
    const char *name = json_path_string(claim, "spec", "storageClassName", NULL);
    return old ? old : name ? name : "";
}

static int64_t storage_of(const struct json *claim)
{
    return api_amount(json_path(claim, "spec", "resources", "requests", NULL), "storage", 0);
}

static int64_t amount(const struct quota_item *i, const struct json *obj)
{
    const struct json *spec = json_get(obj, "spec");
    switch (i->measure) {
    case QUOTA_COUNT:
        return 1;
    case QUOTA_RUNNING:
        return !has_ended(obj);
    case QUOTA_REQUESTS:
        return has_ended(obj) ? 0 : api_pod_amount(spec, "requests", i->of, 0);
    case QUOTA_LIMITS:
        return has_ended(obj) ? 0 : api_pod_amount(spec, "limits", i->of, 0);
    case QUOTA_NODE_PORTS:
        return node_ports(obj);
    case QUOTA_LOAD_BALANCER:
        return streq(json_get_text(spec, "type"), "LoadBalancer");
    case QUOTA_STORAGE:
        return storage_of(obj);
    case QUOTA_CLASS_COUNT:
        return streq(class_of(obj), i->of);
    case QUOTA_CLASS_STORAGE:
        return streq(class_of(obj), i->of) ? storage_of(obj) : 0;
    case QUOTA_NOTHING:
        break;
    }
    return 0;
}

static bool is_of(const struct quota_item *i, const char *group, const char *plural)
{
    return i->measure != QUOTA_NOTHING && streq(i->plural, plural) && streq(i->group, group);
}

bool quota_spec_concerns(const struct quota_spec *s, const char *group, const char *plural)
{
    for (size_t i = 0; i < s->n; i++) {
        if (is_of(&s->items[i], group, plural)) {
            return json_count(s->scopes) == 0 || is_pod(group, plural);
        }
    }
    return false;
}

bool quota_spec_reads(const struct quota_spec *s, const char *group, const char *plural)
{
    bool reads = json_count(s->scopes) > 0;
    for (size_t i = 0; i < s->n; i++) {
        reads |= is_of(&s->items[i], group, plural) && s->items[i].measure != QUOTA_COUNT;
    }
    return reads;
}

void quota_spec_charge(const struct quota_spec *s, const char *group, const char *plural,
                       bool exists, const struct json *obj, int64_t *ret)
{
    bool counts = exists && matches_scopes(s, group, plural, obj);
    for (size_t i = 0; i < s->n; i++) {
        ret[i] = counts && is_of(&s->items[i], group, plural) ? amount(&s->items[i], obj) : 0;
    }
}

/* ---- what must be stated ---- */

/* Whether the container states the amount that the item is about. */
static bool states(const struct json *container, const struct quota_item *i)
{
    const struct json *r = json_get(container, "resources");
    return json_path(r, i->measure == QUOTA_LIMITS ? "limits" : "requests", i->of, NULL) != NULL;
}

static bool is_obligatory(const struct quota_item *i)
{
    return (i->measure == QUOTA_REQUESTS || i->measure == QUOTA_LIMITS) &&
           (streq(i->of, "cpu") || streq(i->of, "memory"));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Appends the names of the containers that lack the item, in order. */
static void write_lacking(const struct json *pod, const struct quota_item *i, struct strbuf *out)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const char **lacking = NULL;
    const struct json *c;
    size_t n = 0, cap = 0;
    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        JSON_FOREACH (c, json_path(pod, "spec", lists[k], NULL)) {
            if (!states(c, i)) {
                lacking = grow(lacking, &cap, n + 1, sizeof *lacking);
                lacking[n++] = json_get_text(c, "name");
            }
        }
    }
    if (n) {
        qsort(lacking, n, sizeof *lacking, by_text);
        strbuf_addf(out, "%s%s for: ", out->size ? "; " : "", i->name);
    }
    for (size_t k = 0; k < n; k++) {
        strbuf_addf(out, "%s%s", k ? "," : "", lacking[k]);
    }
    free(lacking);
}

char *quota_spec_missing(const struct quota_spec *s, const struct json *pod)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!matches_scopes(s, "", "pods", pod)) {
        return NULL;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (is_obligatory(&s->items[i])) {
            write_lacking(pod, &s->items[i], &b);
        }
    }
    return b.size ? xasprintf("must specify %s", strbuf_cstr(&b)) : NULL;
}

/* ---- totals ---- */

bool quota_item_exceeds(const struct quota_item *i, quota_total used, int64_t add)
{
    return add > 0 && used + add > i->most;
}

/* A total as an amount: below 0 it is 0, and the largest number stands for more. */
static int64_t clamp(quota_total n)
{
    return n < 0 ? 0 : n > INT64_MAX ? INT64_MAX : (int64_t) n;
}

static bool is_in_bytes(const char *resource)
{
    return streq(resource, "memory") || streq(resource, "ephemeral-storage") ||
           streq(resource, "storage") || str_has_prefix(resource, HUGE_PREFIX);
}

/* Writes 'n' with the largest binary unit of which it is a multiple. */
static void write_binary(int64_t n, struct strbuf *out)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t unit = 0;
    for (; n && n % 1024 == 0 && unit + 1 < ARRAY_SIZE(units); unit++) {
        n /= 1024;
    }
    strbuf_addf(out, "%lld%s", (long long) n, units[unit]);
}

void quota_write_amount(const char *resource, quota_total n, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf decimal = STRBUF_INIT, binary = STRBUF_INIT;
    char text[32];
    int64_t amount = clamp(n);
    (void) snprintf(text, sizeof text, "%lld%s", (long long) amount,
                    streq(resource, "cpu") ? "m" : "");
    (void) api_quantity_format(text, true, &decimal, NULL);
    if (is_in_bytes(resource)) {
        write_binary(amount, &binary);
    }
    /* People state bytes in either form: the shorter one is the one that fits. */
    bool shorter = binary.size && binary.size <= decimal.size;
    strbuf_adds(out, strbuf_cstr(shorter ? &binary : &decimal));
}

void quota_item_write(const struct quota_item *i, quota_total n, struct strbuf *out)
{
    const char *resource = i->measure == QUOTA_STORAGE || i->measure == QUOTA_CLASS_STORAGE
                               ? "storage"
                           : i->of && i->measure != QUOTA_CLASS_COUNT ? i->of
                                                                      : "";
    quota_write_amount(resource, n, out);
}

/* Appends "NAME=AMOUNT,..." of the items that would be exceeded; 'totals' NULL: their bounds. */
static void write_exceeded(const struct quota_spec *s, const quota_total *used, const int64_t *add,
                           const quota_total *totals, struct strbuf *out)
{
    const char *comma = "";
    for (size_t i = 0; i < s->n; i++) {
        const struct quota_item *item = &s->items[i];
        if (!quota_item_exceeds(item, used[i], add[i])) {
            continue;
        }
        strbuf_addf(out, "%s%s=", comma, item->name);
        if (totals) {
            quota_item_write(item, totals[i], out);
        } else {
            strbuf_adds(out, item->hard);
        }
        comma = ",";
    }
}

bool quota_spec_refuses(const struct quota_spec *s, const char *name, const quota_total *used,
                        const int64_t *add, struct strbuf *out)
{
    quota_total asked[QUOTA_MAX_ITEMS];
    bool exceeds = false;
    for (size_t i = 0; i < s->n; i++) {
        exceeds |= quota_item_exceeds(&s->items[i], used[i], add[i]);
        asked[i] = add[i];
    }
    if (exceeds) {
        strbuf_addf(out, "exceeded quota: %s, requested: ", name);
        write_exceeded(s, used, add, asked, out);
        strbuf_adds(out, ", used: ");
        write_exceeded(s, used, add, used, out);
        strbuf_adds(out, ", limited: ");
        write_exceeded(s, used, add, NULL, out);
    }
    return exceeds;
}

struct json *quota_spec_status(const struct quota_spec *s, const quota_total *used)
{
    struct json *status = json_object();
    struct json *hard = json_set(status, "hard", json_object());
    struct json *now = json_set(status, "used", json_object());
    for (size_t i = 0; i < s->n; i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        json_set_string(hard, s->items[i].name, s->items[i].hard);
        if (s->items[i].measure != QUOTA_NOTHING) {
            quota_item_write(&s->items[i], used[i], &text);
            json_set_string(now, s->items[i].name, strbuf_cstr(&text));
        }
    }
    return status;
}

/* ---- changes of quotas ---- */

/* The spec and the uses of either kind. */
static const struct json *spec_of(const struct json *quota)
{
    const struct json *inner = json_path(quota, "spec", "quota", NULL);
    return inner ? inner : json_get(quota, "spec");
}

static const struct json *used_of(const struct json *quota)
{
    const struct json *total = json_path(quota, "status", "total", NULL);
    return json_get(total ? total : json_get(quota, "status"), "used");
}

static bool are_equal(const struct json *a, const struct json *b)
{
    return a && b ? json_equal(a, b) : !a && !b;
}

/* Whether an amount of 'more' is larger than that of the same name in 'less'. */
static bool is_larger(const struct json *more, const struct json *less)
{
    for (size_t i = 0; i < json_count(more); i++) {
        const char *a = json_get_string(json_at(more, i));
        const char *b = json_path_string(less, json_key_at(more, i), NULL);
        if (a && b && api_quantity_compare(a, b) > 0) {
            return true;
        }
    }
    return false;
}

bool quota_object_gives_room(const struct json *old, const struct json *now)
{
    static const char *const chosen[] = {"scopes", "scopeSelector", "selector"};
    if (!now) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(chosen); i++) {
        if (!are_equal(json_get(spec_of(old), chosen[i]), json_get(spec_of(now), chosen[i])) ||
            !are_equal(json_path(old, "spec", chosen[i], NULL),
                       json_path(now, "spec", chosen[i], NULL))) {
            return true;
        }
    }
    const struct json *was = json_get(spec_of(old), "hard"), *is = json_get(spec_of(now), "hard");
    for (size_t i = 0; i < json_count(was); i++) {
        if (!json_get(is, json_key_at(was, i))) {
            return true;
        }
    }
    return is_larger(is, was) || is_larger(used_of(old), used_of(now));
}
