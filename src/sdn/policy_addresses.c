/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which of the addresses that pods and nodes report count. */
#include "sdn/policy_internal.h"

#include "base/mem.h"

/* ---- the subnets of nodes ---- */

static struct site *site_find(const struct policy *p, const char *node)
{
    struct site *s;
    HMAP_FOREACH_WITH_HASH (s, struct site, node, hash_string(node), &p->sites) {
        if (streq(s->name, node)) {
            return s;
        }
    }
    return NULL;
}

/* The caller owns the returned reference. */
static struct site *site_get(struct policy *p, const char *node)
{
    struct site *s = site_find(p, node);
    if (!s) {
        size_t size = strlen(node) + 1;
        s = xcalloc(1, sizeof *s + size);
        memcpy(s->name, node, size);
        list_init(&s->pods);
        hmap_insert(&p->sites, &s->node, hash_string(node));
    }
    s->refs++;
    return s;
}

static void site_unref(struct policy *p, struct site *s)
{
    if (s && --s->refs == 0) {
        hmap_remove(&p->sites, &s->node);
        free(s);
    }
}

/* ---- reports ---- */

static int check(const struct policy *p, const struct pod *pod, uint32_t ip, struct err *e)
{
    return pod->ns == &p->nodes
               ? node_address_check(&p->addresses, pod->name, ip, e)
               : pod_address_check(&pod->site->place, &p->addresses.foreign, ip, e);
}

/* Sets the pod's (or node's) addresses to the reported ones that count. */
static void settle(struct policy *p, struct pod *pod)
{
    uint32_t good[POLICY_MAX_REPORTED];
    size_t n = 0;
    for (size_t i = 0; i < pod->n_reported; i++) {
        struct err e = {0};
        uint32_t ip = pod->reported[i];
        if (pod->site && prefix_contains(p->local, ip)) {
            continue; /* For the local subnet only attached pods count. */
        }
        if (check(p, pod, ip, &e) == 0) {
            good[n++] = ip;
        } else if (p->ops->ignored && (!pod->site || pod->site->known)) {
            p->ops->ignored(p->ctx, pod->ns->name, pod->name, e.text);
        }
    }
    pod_set_addresses(p, pod, good, n);
}

static void add(struct pod *pod, const struct json *v)
{
    uint32_t ip;
    const char *s = json_get_string(v);
    if (!s || ip4_parse(s, &ip) < 0 || ip == 0 || pod->n_reported == POLICY_MAX_REPORTED) {
        return;
    }
    for (size_t i = 0; i < pod->n_reported; i++) {
        if (pod->reported[i] == ip) {
            return;
        }
    }
    pod->reported = xreallocarray(pod->reported, pod->n_reported + 1u, sizeof ip);
    pod->reported[pod->n_reported++] = ip;
}

static void forget(struct policy *p, struct pod *pod)
{
    free(TAKE(pod->reported));
    pod->n_reported = 0;
    list_remove(&pod->at_site);
    site_unref(p, TAKE(pod->site));
}

void pod_report(struct policy *p, struct pod *pod, const struct json *obj)
{
    const char *node = json_path_string(obj, "spec", "nodeName", NULL);
    const char *phase = json_path_string(obj, "status", "phase", NULL);
    bool ended = streq_null(phase, "Succeeded") || streq_null(phase, "Failed");
    bool host = json_get_bool(json_path(obj, "spec", "hostNetwork", NULL), false);
    const struct json *item;
    struct site *site = site_get(p, node ? node : "");
    forget(p, pod);
    pod->site = site;
    list_push_back(&site->pods, &pod->at_site);
    if (!ended && !host) {
        add(pod, json_path(obj, "status", "podIP", NULL));
        JSON_FOREACH (item, json_path(obj, "status", "podIPs", NULL)) {
            add(pod, json_get(item, "ip"));
        }
    }
    settle(p, pod);
}

void node_report(struct policy *p, struct pod *node, const struct json *obj)
{
    const struct json *item;
    forget(p, node);
    JSON_FOREACH (item, json_path(obj, "status", "addresses", NULL)) {
        const char *type = json_path_string(item, "type", NULL);
        if (streq_null(type, "InternalIP") || streq_null(type, "ExternalIP")) {
            add(node, json_get(item, "address"));
        }
    }
    settle(p, node);
}

void pod_report_nothing(struct policy *p, struct pod *pod)
{
    forget(p, pod);
    pod_set_addresses(p, pod, NULL, 0);
}

/* ---- subnets and networks ---- */

static void settle_site(struct policy *p, struct site *s)
{
    struct pod *pod;
    LIST_FOREACH (pod, struct pod, at_site, &s->pods) {
        settle(p, pod);
    }
}

void policy_set_host_subnet(struct policy *p, const char *node, const struct json *obj)
{
    struct site *s = site_get(p, node);
    struct pod_site now;
    pod_site_read(NULL, obj, &now);
    bool same = s->known && s->place.has_subnet == now.has_subnet &&
                prefix_equal(s->place.subnet, now.subnet);
    s->place = now;
    if (s->known) {
        s->refs--; /* The first call's reference stays. */
    }
    s->known = true;
    if (!same) {
        settle_site(p, s);
    }
}

void policy_delete_host_subnet(struct policy *p, const char *node)
{
    struct site *s = site_find(p, node);
    if (s && s->known) {
        s->known = false;
        s->place = (struct pod_site){0};
        settle_site(p, s);
        site_unref(p, s);
    }
}

void policy_set_rules_of_addresses(struct policy *p, const struct node_rules *rules)
{
    struct pod *pod;
    p->addresses = *rules;
    HMAP_FOREACH (pod, struct pod, node, &p->pods) {
        settle(p, pod);
    }
}

void sites_free(struct policy *p)
{
    struct site *s;
    HMAP_FOREACH (s, struct site, node, &p->sites) {
        hmap_remove(&p->sites, &s->node);
        free(s);
    }
}
