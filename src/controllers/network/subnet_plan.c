/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/subnet_plan.h"

#include "api/condition.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"

#include <stdio.h>

#define CONDITION "NetworkUnavailable"

static void explain(struct subnet_plan *p, const char *reason, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void explain(struct subnet_plan *p, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->message, sizeof(p->message), fmt, ap);
    va_end(ap);
    p->reason = reason;
}

/* Whether packets for the node can be sent to 'ip'; if not, says why. */
static bool address_usable(const struct subnet_rules *rules, const char *node, const char *ip,
                           struct subnet_plan *p)
{
    uint32_t addr = 0;
    struct err e = {0};
    if (!ip || !*ip) {
        explain(p, REASON_BAD_ADDRESS,
                "the node has no address of type InternalIP in status.addresses");
    } else if (ip4_parse(ip, &addr) < 0) {
        explain(p, REASON_BAD_ADDRESS, "the node's InternalIP %.64s is not an IPv4 address", ip);
    } else if (node_address_check(rules->addresses, node, addr, &e) < 0) {
        explain(p, REASON_BAD_ADDRESS, "the node's InternalIP %s", e.text);
    } else {
        return true;
    }
    return false;
}

/* Refuses an address that is the hostIP of another node's HostSubnet: the first node keeps it. */
static void refuse_address_of_another(const struct subnet_rules *rules, const struct json *node,
                                      struct subnet_plan *p)
{
    if (rules->owner && !streq(rules->owner, obj_name(node))) {
        explain(p, REASON_BAD_ADDRESS, "the node's InternalIP %s is the hostIP of HostSubnet %s",
                p->host_ip, rules->owner);
        p->step = SUBNET_REFUSE;
    }
}

static void plan_without_node(const struct json *hs, struct subnet_plan *p)
{
    const char *uid = obj_annotation(hs, ANNOTATION_NODE_UID);
    struct ip4_prefix subnet;
    if (uid && *uid) {
        p->step = SUBNET_DELETE;
    } else if (obj_annotation(hs, ANNOTATION_ASSIGN_SUBNET) &&
               hostsubnet_prefix(hs, &subnet) == -ENOENT) {
        p->step = SUBNET_ASSIGN;
    } else {
        p->step = SUBNET_KEEP;
    }
}

/* ---- annotations for other nodes ---- */

void subnet_plan_addresses(const struct node_rules *rules, const struct json *node,
                           struct sdn_addresses *ret)
{
    const char *first = node_internal_ip(node);
    const struct json *a;
    *ret = (struct sdn_addresses){0};
    JSON_FOREACH (a, json_path(node, "status", "addresses", NULL)) {
        const char *text = json_path_string(a, "address", NULL);
        uint32_t ip;
        if (streq_null(json_path_string(a, "type", NULL), "InternalIP") && text &&
            !streq_null(text, first) && ip4_parse(text, &ip) == 0 &&
            node_address_check(rules, obj_name(node), ip, NULL) == 0) {
            sdn_addresses_add(ret, ip);
        }
    }
}

static char *host_ports_of(const struct json *node, struct ip4_prefix subnet)
{
    CLEANUP_FREE struct sdn_host_port *list = NULL;
    size_t n = sdn_host_ports_parse(obj_annotation(node, SDN_HOST_PORTS), subnet, &list);
    return sdn_host_ports_text(list, n);
}

static void set_or_remove(struct json *o, const char *key, const char *value)
{
    if (value) {
        obj_set_annotation(o, key, value);
    } else {
        obj_remove_annotation(o, key);
    }
}

void subnet_plan_done(struct subnet_plan *p)
{
    free(p->addresses);
    free(p->host_ports);
    p->addresses = p->host_ports = NULL;
}

void subnet_plan_make(const struct subnet_rules *rules, const struct json *node,
                      const struct json *hostsubnet, struct subnet_plan *ret)
{
    *ret = (struct subnet_plan){.step = SUBNET_NONE};
    if (!node) {
        if (hostsubnet) {
            plan_without_node(hostsubnet, ret);
        }
        return;
    }
    ret->uid = obj_uid(node);
    ret->host_ip = node_internal_ip(node);
    const char *owner = hostsubnet ? obj_annotation(hostsubnet, ANNOTATION_NODE_UID) : NULL;
    if (owner && *owner && !streq(owner, ret->uid)) {
        ret->step = SUBNET_DELETE; /* It belongs to a deleted Node of this name. */
        return;
    }
    struct ip4_prefix subnet = {0};
    int r = hostsubnet ? hostsubnet_prefix(hostsubnet, &subnet) : 0;
    if (r < 0 && !obj_annotation(hostsubnet, ANNOTATION_ASSIGN_SUBNET)) {
        /* Pods of the node may have addresses of its previous subnet, which must
         * not be given to another node. */
        const char *text = json_path_string(hostsubnet, "subnet", NULL);
        explain(ret, REASON_BAD_SUBNET,
                "subnet \"%.64s\" cannot be read: correct the HostSubnet; until then no subnet "
                "is given out",
                text ? text : "");
        ret->step = SUBNET_REFUSE;
        return;
    }
    if (hostsubnet && (r < 0 || !netconf_has_prefix(rules->conf, subnet))) {
        const char *text = json_path_string(hostsubnet, "subnet", NULL);
        explain(ret, REASON_BAD_SUBNET,
                "subnet \"%.64s\" is not in the cluster network; it is replaced", text ? text : "");
        ret->step = SUBNET_DELETE;
        return;
    }
    if (!address_usable(rules, obj_name(node), ret->host_ip, ret)) {
        ret->step = SUBNET_REFUSE;
        return;
    }
    if (!hostsubnet) {
        ret->step = SUBNET_CREATE;
        refuse_address_of_another(rules, node, ret);
        return;
    }
    ret->addresses = sdn_addresses_text(rules->further);
    ret->host_ports = host_ports_of(node, subnet);
    bool same_ip = streq_null(json_path_string(hostsubnet, "hostIP", NULL), ret->host_ip);
    bool same = same_ip && streq_null(owner, ret->uid) &&
                streq_null(obj_annotation(hostsubnet, SDN_NODE_ADDRESSES), ret->addresses) &&
                streq_null(obj_annotation(hostsubnet, SDN_HOST_PORTS), ret->host_ports);
    ret->step = same ? SUBNET_KEEP : SUBNET_UPDATE;
    if (!same_ip) {
        refuse_address_of_another(rules, node, ret);
    }
}

struct json *subnet_plan_create(const char *name, const struct subnet_plan *plan,
                                struct ip4_prefix subnet)
{
    struct json *o = obj_new(NETWORK_API_VERSION, "HostSubnet", NULL, name);
    obj_set_annotation(o, ANNOTATION_NODE_UID, plan->uid);
    json_set_string(o, "host", name);
    json_set_string(o, "hostIP", plan->host_ip);
    json_set_string(o, "subnet", PREFIX_TEXT(subnet));
    return o;
}

struct json *subnet_plan_update(const struct json *hostsubnet, const struct subnet_plan *plan)
{
    struct json *o = json_clone(hostsubnet);
    obj_set_annotation(o, ANNOTATION_NODE_UID, plan->uid);
    json_set_string(o, "hostIP", plan->host_ip);
    set_or_remove(o, SDN_NODE_ADDRESSES, plan->addresses);
    set_or_remove(o, SDN_HOST_PORTS, plan->host_ports);
    return o;
}

struct json *subnet_plan_assign(const struct json *hostsubnet, struct ip4_prefix subnet)
{
    struct json *o = json_clone(hostsubnet);
    obj_remove_annotation(o, ANNOTATION_ASSIGN_SUBNET);
    json_set_string(o, "subnet", PREFIX_TEXT(subnet));
    return o;
}

/* Whether this controller or a cloud's route controller (which has no part in this network) set the
 * condition.  Other conditions are the node's own statements. */
static bool is_ours(const struct json *condition)
{
    static const char *const reasons[] = {REASON_NO_SUBNET, REASON_BAD_ADDRESS, REASON_BAD_SUBNET,
                                          REASON_REFUSED, "NoRouteCreated"};
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (streq_null(json_path_string(condition, "reason", NULL), reasons[i])) {
            return true;
        }
    }
    return false;
}

struct json *subnet_plan_condition(const struct json *node, const char *reason, const char *message,
                                   int64_t now_ms)
{
    const struct json *c = condition_find(node, CONDITION);
    bool bad = streq_null(json_path_string(c, "status", NULL), "True");
    if (reason ? bad && streq_null(json_path_string(c, "reason", NULL), reason) &&
                     streq_null(json_path_string(c, "message", NULL), message)
               : !bad || !is_ours(c)) {
        return NULL;
    }
    struct json *o = json_clone(node);
    struct json *set =
        condition_set(o, CONDITION, reason ? "True" : "False", reason ? reason : REASON_ASSIGNED,
                      reason ? message : "the node has its subnet", now_ms);
    if (set) {
        char now[TIME_TEXT_SIZE];
        time_format_s(now_ms, now);
        json_set_string(set, "lastHeartbeatTime", now);
    }
    return o;
}

/* ---- conflicts ---- */

struct claim {
    const struct json *o;
    const char *created; /* RFC 3339 in UTC, so that times sort as text. */
    struct ip4_prefix p; /* The subnet, or the address of the host. */
};

static int claim_by_prefix(const void *x, const void *y)
{
    const struct claim *a = x, *b = y;
    if (a->p.addr != b->p.addr) {
        return a->p.addr < b->p.addr ? -1 : 1;
    }
    if (a->p.len != b->p.len) {
        return a->p.len < b->p.len ? -1 : 1;
    }
    int r = strcmp(a->created, b->created);
    return r ? r : strcmp(obj_name(a->o), obj_name(b->o));
}

static bool claim_is_older(const struct claim *a, const struct claim *b)
{
    int r = strcmp(a->created, b->created);
    return r ? r < 0 : strcmp(obj_name(a->o), obj_name(b->o)) < 0;
}

/* Finds overlaps after sorting by address, then length: a prefix that overlaps an earlier one
 * begins before the end of it, so that it is enough to remember the claim with the highest end. */
static void find_conflicts(struct claim *claims, size_t n, const char *reason,
                           struct subnet_conflict **list, size_t *n_list, size_t *cap)
{
    if (n == 0) {
        return;
    }
    qsort(claims, n, sizeof(*claims), claim_by_prefix);
    const struct claim *outer = &claims[0];
    for (size_t i = 1; i < n; i++) {
        const struct claim *c = &claims[i];
        if (!prefix_overlaps(outer->p, c->p)) {
            outer = c;
            continue;
        }
        bool older = claim_is_older(outer, c);
        *list = grow(*list, cap, *n_list + 1, sizeof(**list));
        (*list)[(*n_list)++] =
            (struct subnet_conflict){older ? outer->o : c->o, older ? c->o : outer->o, reason};
    }
}

size_t subnet_conflicts(const struct json *const *objects, size_t n, struct subnet_conflict **ret)
{
    CLEANUP_FREE struct claim *claims = xcalloc(n + 1, sizeof(*claims));
    struct subnet_conflict *list = NULL;
    size_t n_list = 0, cap = 0, k = 0;
    for (size_t i = 0; i < n; i++) {
        const char *created = json_path_string(objects[i], "metadata", "creationTimestamp", NULL);
        claims[k] = (struct claim){.o = objects[i], .created = created ? created : ""};
        k += hostsubnet_prefix(objects[i], &claims[k].p) == 0;
    }
    find_conflicts(claims, k, "OverlappingSubnets", &list, &n_list, &cap);
    k = 0;
    for (size_t i = 0; i < n; i++) {
        const char *created = json_path_string(objects[i], "metadata", "creationTimestamp", NULL);
        const char *ip = json_path_string(objects[i], "hostIP", NULL);
        claims[k] = (struct claim){.o = objects[i], .created = created ? created : "", .p.len = 32};
        k += ip && ip4_parse(ip, &claims[k].p.addr) == 0;
    }
    find_conflicts(claims, k, "DuplicateHostIP", &list, &n_list, &cap);
    return *ret = list, n_list;
}
