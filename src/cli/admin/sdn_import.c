/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/sdn_import.h"

#include "base/ip.h"
#include "base/map.h"
#include "base/mem.h"
#include "sdn/network.h"

#include <stdio.h>

#define API_VERSION "network.openshift.io/v1"
#define NODE_UID "pod.network.openshift.io/node-uid"
#define CHANGE "pod.network.openshift.io/multitenant.change-network"

/* ---- objects ---- */

void sdn_objects_init(struct sdn_objects *o)
{
    *o = (struct sdn_objects){.subnets = json_array(),
                              .nets = json_array(),
                              .projects = json_array(),
                              .policies = json_array(),
                              .pods = json_array()};
}

void sdn_objects_done(struct sdn_objects *o)
{
    json_free(o->network);
    json_free(o->subnets);
    json_free(o->nets);
    json_free(o->projects);
    json_free(o->policies);
    json_free(o->pods);
    *o = (struct sdn_objects){0};
}

static const char *name_of(const struct json *o)
{
    const char *name = json_path_string(o, "metadata", "name", NULL);
    return name ? name : "";
}

bool sdn_objects_add(struct sdn_objects *o, struct json *object)
{
    const char *version = json_path_string(object, "apiVersion", NULL);
    const char *kind = json_path_string(object, "kind", NULL);
    static const char *const versions[] = {"v1", API_VERSION, "project.openshift.io/v1"};
    const struct {
        const char *kind;
        struct json *list;
    } lists[] = {{"HostSubnet", o->subnets},
                 {"NetNamespace", o->nets},
                 {"Project", o->projects},
                 {"Namespace", o->projects},
                 {"EgressNetworkPolicy", o->policies}};
    bool known = false;
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        known = known || streq_null(version, versions[i]);
    }
    if (!known || !kind) {
        return false;
    }
    if (streq(kind, "ClusterNetwork") && streq(name_of(object), "default")) {
        json_free(o->network);
        o->network = object;
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (streq(kind, lists[i].kind)) {
            json_append(lists[i].list, object);
            return true;
        }
    }
    return false;
}

/* ---- the plan ---- */

struct making {
    const struct sdn_objects *from, *to;
    struct sdn_plan *plan;
    struct smap existing_projects, imported_projects; /* Borrowed objects by name. */
};

static void problem(struct making *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void problem(struct making *m, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    strbuf_addf(&m->plan->problems, "%s\n", text);
    m->plan->n_problems++;
}

static const struct json *find(const struct json *list, const char *name)
{
    const struct json *o;
    JSON_FOREACH (o, list) {
        if (streq(name_of(o), name)) {
            return o;
        }
    }
    return NULL;
}

/* The same object in Tenet's group, without fields that belong to the other cluster. */
static struct json *clean(const struct json *o, const char *api_version, const char *kind)
{
    struct json *c = json_clone(o), *had = json_take(c, "metadata");
    struct json *meta = json_ensure_object(c, "metadata");
    static const char *const kept[] = {"name", "namespace", "labels", "annotations"};
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        if (json_get(had, kept[i])) {
            json_set(meta, kept[i], json_clone(json_get(had, kept[i])));
        }
    }
    struct json *annotations = json_get(meta, "annotations");
    if (annotations) {
        json_remove(annotations, NODE_UID);
        json_remove(annotations, CHANGE);
    }
    json_remove(c, "status");
    json_set_string(c, "apiVersion", api_version);
    json_set_string(c, "kind", kind);
    json_free(had);
    return c;
}

static const char *text_of(const struct json *o, const char *key)
{
    const char *s = json_path_string(o, key, NULL);
    return s ? s : "";
}

/* ---- ClusterNetwork ---- */

static bool has_range(const struct json *network, const char *cidr, int64_t length)
{
    const struct json *r;
    JSON_FOREACH (r, json_get(network, "clusterNetworks")) {
        if (streq(text_of(r, "CIDR"), cidr) &&
            json_get_int_or(json_get(r, "hostSubnetLength"), -1) == length) {
            return true;
        }
    }
    return !json_count(json_get(network, "clusterNetworks")) &&
           streq(text_of(network, "network"), cidr) &&
           json_get_int_or(json_get(network, "hostsubnetlength"), -1) == length;
}

static void need_range(struct making *m, const char *cidr, int64_t length)
{
    if (!has_range(m->to->network, cidr, length)) {
        problem(m,
                "ClusterNetwork: this cluster lacks %s with hostSubnetLength %lld; set "
                "networkConfig.clusterNetworks in master-config.yaml and start the master again",
                cidr, (long long) length);
    }
}

/* The master writes the ClusterNetwork from its configuration, so the import compares it only. */
static void plan_network(struct making *m)
{
    const struct json *a = m->from->network, *b = m->to->network, *r;
    if (!a || !b) {
        problem(m, "ClusterNetwork default: %s has none", a ? "this cluster" : "the import");
        return;
    }
    JSON_FOREACH (r, json_get(a, "clusterNetworks")) {
        need_range(m, text_of(r, "CIDR"), json_get_int_or(json_get(r, "hostSubnetLength"), -1));
    }
    if (!json_count(json_get(a, "clusterNetworks"))) {
        need_range(m, text_of(a, "network"), json_get_int_or(json_get(a, "hostsubnetlength"), -1));
    }
    static const struct {
        const char *field, *key;
    } same[] = {{"serviceNetwork", "networkConfig.serviceNetworkCIDR"},
                {"pluginName", "networkConfig.networkPluginName"}};
    for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
        const char *x = text_of(a, same[i].field), *y = text_of(b, same[i].field);
        if (!streq(x, y)) {
            problem(m, "ClusterNetwork: %s is \"%s\" in the import and \"%s\" here; %s sets it",
                    same[i].field, x, y, same[i].key);
        }
    }
    int64_t port = json_get_int_or(json_get(a, "vxlanPort"), SDN_VXLAN_PORT);
    if (port != json_get_int_or(json_get(b, "vxlanPort"), SDN_VXLAN_PORT)) {
        problem(m, "ClusterNetwork: vxlanPort is %lld in the import, another one here",
                (long long) port);
    }
}

/* ---- HostSubnets ---- */

struct subnet {
    const struct json *object;
    struct ip4_prefix range;
    bool has_range;
    uint32_t host_ip;
    bool is_new;
};

static bool read_subnet(struct making *m, const struct json *o, struct subnet *ret)
{
    const char *range = text_of(o, "subnet");
    *ret = (struct subnet){.object = o, .has_range = *range};
    if (*range && prefix_parse(range, &ret->range, NULL) < 0) {
        problem(m, "HostSubnet %s: subnet \"%s\" is no network", name_of(o), range);
        return false;
    }
    if (ip4_parse(text_of(o, "hostIP"), &ret->host_ip) < 0) {
        problem(m, "HostSubnet %s: hostIP \"%s\" is no address", name_of(o), text_of(o, "hostIP"));
        return false;
    }
    return true;
}

static bool is_in_network(const struct json *network, struct ip4_prefix p)
{
    const struct json *r;
    struct ip4_prefix range;
    bool inside = prefix_parse(text_of(network, "network"), &range, NULL) == 0 &&
                  p.len >= range.len && prefix_contains(range, p.addr);
    JSON_FOREACH (r, json_get(network, "clusterNetworks")) {
        inside = inside || (prefix_parse(text_of(r, "CIDR"), &range, NULL) == 0 &&
                            p.len >= range.len && prefix_contains(range, p.addr));
    }
    return inside;
}

static void compare_subnets(struct making *m, const struct subnet *a, const struct subnet *b)
{
    if (a->has_range && b->has_range && prefix_overlaps(a->range, b->range)) {
        CLEANUP_FREE char *other = xstrdup(PREFIX_TEXT(b->range));
        problem(m, "HostSubnet %s: %s overlaps with %s of HostSubnet %s", name_of(a->object),
                PREFIX_TEXT(a->range), other, name_of(b->object));
    }
    if (a->host_ip == b->host_ip) {
        problem(m, "HostSubnet %s: hostIP %s is also that of HostSubnet %s", name_of(a->object),
                IP4_TEXT(a->host_ip), name_of(b->object));
    }
}

static void plan_subnets(struct making *m)
{
    size_t n = 0, max = json_count(m->from->subnets) + json_count(m->to->subnets);
    CLEANUP_FREE struct subnet *all = xcalloc(max + 1, sizeof *all);
    const struct json *o;
    JSON_FOREACH (o, m->to->subnets) {
        n += read_subnet(m, o, &all[n]);
    }
    JSON_FOREACH (o, m->from->subnets) {
        const struct json *here = find(m->to->subnets, name_of(o));
        if (here && streq(text_of(here, "subnet"), text_of(o, "subnet")) &&
            streq(text_of(here, "hostIP"), text_of(o, "hostIP"))) {
            m->plan->unchanged++;
            continue;
        }
        if (here) {
            problem(m, "HostSubnet %s: exists here with %s at %s, and has %s at %s in the import",
                    name_of(o), text_of(here, "subnet"), text_of(here, "hostIP"),
                    text_of(o, "subnet"), text_of(o, "hostIP"));
            continue;
        }
        if (!read_subnet(m, o, &all[n])) {
            continue;
        }
        if (all[n].has_range && !is_in_network(m->to->network, all[n].range)) {
            problem(m, "HostSubnet %s: %s is in no cluster network of this cluster", name_of(o),
                    text_of(o, "subnet"));
        }
        all[n++].is_new = true;
        json_append(m->plan->subnets, clean(o, API_VERSION, "HostSubnet"));
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i && all[i].is_new; j++) {
            compare_subnets(m, &all[i], &all[j]);
        }
    }
}

/* ---- projects and NetNamespaces ---- */

static bool has_pods(const struct making *m, const char *project)
{
    const struct json *o;
    JSON_FOREACH (o, m->to->pods) {
        if (streq_null(json_path_string(o, "metadata", "namespace", NULL), project) &&
            !json_get_bool(json_path(o, "spec", "hostNetwork", NULL), false)) {
            return true;
        }
    }
    return false;
}

static void plan_projects(struct making *m)
{
    struct json *o;
    JSON_FOREACH (o, m->to->projects) {
        smap_set(&m->existing_projects, name_of(o), o);
    }
    JSON_FOREACH (o, m->from->projects) {
        smap_set(&m->imported_projects, name_of(o), o);
        if (smap_get(&m->existing_projects, name_of(o))) {
            m->plan->unchanged++;
            continue;
        }
        struct json *ns = clean(o, "v1", "Namespace");
        json_remove(ns, "spec");
        json_append(m->plan->projects, ns);
    }
}

static int64_t netid(const struct json *o)
{
    return json_get_int_or(json_get(o, "netid"), -1);
}

static bool is_used(const struct json *list, int64_t id)
{
    const struct json *o;
    JSON_FOREACH (o, list) {
        if (netid(o) == id) {
            return true;
        }
    }
    return false;
}

/* A project that only this cluster has, with a VNID of the import, gets another one while it has no
 * pods. */
static void move_away(struct making *m, const struct json *here, int64_t *next)
{
    if (has_pods(m, name_of(here))) {
        problem(m,
                "NetNamespace %s: VNID %lld is that of another project in the import, and the "
                "project has pods here",
                name_of(here), (long long) netid(here));
        return;
    }
    while (is_used(m->from->nets, *next) || is_used(m->to->nets, *next)) {
        (*next)++;
    }
    struct json *moved = clean(here, API_VERSION, "NetNamespace");
    json_set_int(moved, "netid", *next);
    json_append(m->plan->nets, moved);
    strbuf_addf(&m->plan->remarks, "NetNamespace %s: moves from VNID %lld to %lld\n", name_of(here),
                (long long) netid(here), (long long) (*next)++);
}

static void plan_net(struct making *m, const struct json *o)
{
    const char *name = name_of(o);
    const struct json *here = find(m->to->nets, name);
    if (netid(o) < 0 || netid(o) > SDN_VNID_MAX ||
        (netid(o) != SDN_VNID_GLOBAL && netid(o) < SDN_VNID_MIN)) {
        problem(m, "NetNamespace %s: netid %lld is neither 0 nor in %u-%u", name,
                (long long) netid(o), SDN_VNID_MIN, SDN_VNID_MAX);
    } else if (streq(name, "default") && netid(o) != SDN_VNID_GLOBAL) {
        problem(m, "NetNamespace default: netid %lld, but the project default is global",
                (long long) netid(o));
    } else if (!smap_get(&m->existing_projects, name) && !smap_get(&m->imported_projects, name)) {
        problem(m, "NetNamespace %s: the import has no such project, and neither has this cluster",
                name);
    } else if (here && netid(here) == netid(o)) {
        m->plan->unchanged++;
    } else if (here && has_pods(m, name)) {
        problem(m, "NetNamespace %s: VNID %lld here, %lld in the import, and the project has pods",
                name, (long long) netid(here), (long long) netid(o));
    } else {
        json_append(m->plan->nets, clean(o, API_VERSION, "NetNamespace"));
    }
    if (json_path_string(o, "metadata", "annotations", CHANGE, NULL)) {
        strbuf_addf(&m->plan->remarks, "NetNamespace %s: its request \"%s\" is left out\n", name,
                    json_path_string(o, "metadata", "annotations", CHANGE, NULL));
    }
}

static void plan_nets(struct making *m)
{
    enum sdn_plugin plugin = SDN_SUBNET;
    const struct json *o;
    int64_t next = SDN_VNID_MIN;
    if (sdn_plugin_parse(text_of(m->from->network, "pluginName"), &plugin, NULL) < 0 ||
        !sdn_plugin_has_vnids(plugin)) {
        if (json_count(m->from->nets)) {
            strbuf_adds(&m->plan->remarks,
                        "NetNamespaces are left out: the plug-in has no VNIDs\n");
        }
        return;
    }
    JSON_FOREACH (o, m->from->nets) {
        plan_net(m, o);
    }
    JSON_FOREACH (o, m->from->projects) {
        if (!find(m->from->nets, name_of(o))) {
            problem(m, "project %s: the import has no NetNamespace of it, and so not its VNID",
                    name_of(o));
        }
    }
    JSON_FOREACH (o, m->to->nets) {
        if (netid(o) >= SDN_VNID_MIN && !find(m->from->nets, name_of(o)) &&
            is_used(m->from->nets, netid(o))) {
            move_away(m, o, &next);
        }
    }
}

static void plan_policies(struct making *m, bool has_policies)
{
    const struct json *o;
    size_t n = json_count(m->from->policies);
    if (n && !has_policies) {
        strbuf_addf(
            &m->plan->remarks,
            "EgressNetworkPolicies are left out (%zu): this cluster does not know them, and "
            "their projects reach every address outside\n",
            n);
        return;
    }
    JSON_FOREACH (o, m->from->policies) {
        const char *project = json_path_string(o, "metadata", "namespace", NULL);
        const struct json *here;
        bool there = false;
        JSON_FOREACH (here, m->to->policies) {
            there = there || (streq(name_of(here), name_of(o)) &&
                              streq_null(json_path_string(here, "metadata", "namespace", NULL),
                                         project ? project : ""));
        }
        if (there) {
            m->plan->unchanged++;
        } else if (!project || (!smap_get(&m->existing_projects, project) &&
                                !smap_get(&m->imported_projects, project))) {
            problem(m, "EgressNetworkPolicy %s: its project \"%s\" is unknown", name_of(o),
                    project ? project : "");
        } else {
            json_append(m->plan->policies, clean(o, API_VERSION, "EgressNetworkPolicy"));
        }
    }
}

/* An object that occurs twice would make the result depend on the order. */
static void check_twice(struct making *m, const char *kind, const struct json *list)
{
    struct smap seen;
    const struct json *o;
    smap_init(&seen, NULL);
    JSON_FOREACH (o, list) {
        const char *ns = json_path_string(o, "metadata", "namespace", NULL);
        CLEANUP_FREE char *key = xasprintf("%s/%s", ns ? ns : "", name_of(o));
        if (!*name_of(o)) {
            problem(m, "%s: an object has no metadata.name", kind);
        } else if (smap_get(&seen, key)) {
            problem(m, "%s %s: is there twice", kind, name_of(o));
        }
        smap_set(&seen, key, (void *) o);
    }
    smap_done(&seen);
}

void sdn_plan_make(const struct sdn_objects *from, const struct sdn_objects *to, bool has_policies,
                   struct sdn_plan *ret)
{
    *ret = (struct sdn_plan){.projects = json_array(),
                             .subnets = json_array(),
                             .policies = json_array(),
                             .nets = json_array(),
                             .problems = STRBUF_INIT,
                             .remarks = STRBUF_INIT};
    struct making m = {.from = from, .to = to, .plan = ret};
    smap_init(&m.existing_projects, NULL);
    smap_init(&m.imported_projects, NULL);
    check_twice(&m, "HostSubnet", from->subnets);
    check_twice(&m, "NetNamespace", from->nets);
    check_twice(&m, "project", from->projects);
    check_twice(&m, "EgressNetworkPolicy", from->policies);
    plan_network(&m);
    plan_projects(&m);
    plan_subnets(&m);
    plan_nets(&m);
    plan_policies(&m, has_policies);
    smap_done(&m.existing_projects);
    smap_done(&m.imported_projects);
}

void sdn_plan_done(struct sdn_plan *p)
{
    json_free(p->projects);
    json_free(p->subnets);
    json_free(p->policies);
    json_free(p->nets);
    strbuf_done(&p->problems);
    strbuf_done(&p->remarks);
    *p = (struct sdn_plan){0};
}
