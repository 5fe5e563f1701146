/* SPDX-License-Identifier: Apache-2.0 */
#include "client/objects.h"

#include "api/kinds/netnamespace.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdn/host_ports.h"

#define FIXED_VNID_ANNOTATION "pod.network.openshift.io/fixed-vnid-host"

/* Reads a prefix at 'field' of 'obj'; -ENOENT: absent or empty. */
static int get_prefix(const struct json *obj, const char *field, struct ip4_prefix *ret,
                      struct err *e)
{
    const struct json *v = json_get(obj, field);
    if (!v || json_is(v, JSON_NULL) || (json_is(v, JSON_STRING) && json_string_size(v) == 0)) {
        return err_set(e, -ENOENT, "%s: is missing", field);
    }
    if (!json_is(v, JSON_STRING)) {
        return err_set(e, -EINVAL, "%s: is not a string", field);
    }
    return prefix_parse(json_get_string(v), ret, e) < 0 ? err_prefix(e, "%s", field) : 0;
}

/* Reads a number at 'field' in min..max; 'dflt' when it is absent. */
static int get_number(const struct json *obj, const char *field, int64_t min, int64_t max,
                      int64_t dflt, int64_t *ret, struct err *e)
{
    const struct json *v = json_get(obj, field);
    if (!v || json_is(v, JSON_NULL)) {
        *ret = dflt;
        return 0;
    }
    int64_t i;
    if (json_get_int(v, &i) < 0 || i < min || i > max) {
        return err_set(e, -EINVAL, "%s: is not a number in %lld-%lld", field, (long long) min,
                       (long long) max);
    }
    *ret = i;
    return 0;
}

static int parse_ranges(const struct json *obj, struct sdn_network *n, struct err *e)
{
    const struct json *list = json_get(obj, "clusterNetworks");
    if (!json_is(list, JSON_ARRAY) || json_count(list) == 0) {
        n->n_cluster = 1;
        /* The field from before there were several networks. */
        return get_prefix(obj, "network", &n->cluster[0], e);
    }
    if (json_count(list) > SDN_MAX_CLUSTER_NETWORKS) {
        return err_set(e, -EINVAL, "clusterNetworks: %zu are more than %d", json_count(list),
                       SDN_MAX_CLUSTER_NETWORKS);
    }
    for (size_t i = 0; i < json_count(list); i++) {
        int r = get_prefix(json_at(list, i), "CIDR", &n->cluster[i], e);
        if (r < 0) {
            return err_prefix(e, "clusterNetworks[%zu]", i);
        }
        for (size_t k = 0; k < i; k++) {
            if (prefix_overlaps(n->cluster[k], n->cluster[i])) {
                return err_set(e, -EINVAL, "clusterNetworks[%zu].CIDR: %s overlaps with %s", i,
                               PREFIX_TEXT(n->cluster[i]), PREFIX_TEXT(n->cluster[k]));
            }
        }
    }
    n->n_cluster = json_count(list);
    return 0;
}

int objects_parse_cluster_network(const struct json *obj, struct sdn_network *ret, struct err *e)
{
    struct sdn_network n = *ret;
    int64_t mtu = 0, port = 0;
    const char *plugin = json_path_string(obj, "pluginName", NULL);
    if (!plugin || !*plugin) {
        return err_set(e, -EINVAL, "pluginName: is missing");
    }
    if (sdn_plugin_parse(plugin, &n.plugin, e) < 0) {
        return err_prefix(e, "pluginName");
    }
    int r = parse_ranges(obj, &n, e);
    if (r < 0) {
        return r;
    }
    r = get_prefix(obj, "serviceNetwork", &n.service, e);
    if (r == -ENOENT) {
        err_clear(e);
        n.service = (struct ip4_prefix){0};
    } else if (r < 0) {
        return r;
    }
    for (size_t i = 0; n.service.len && i < n.n_cluster; i++) {
        if (prefix_overlaps(n.service, n.cluster[i])) {
            return err_set(e, -EINVAL, "serviceNetwork: %s overlaps with the cluster network %s",
                           PREFIX_TEXT(n.service), PREFIX_TEXT(n.cluster[i]));
        }
    }
    r = get_number(obj, "vxlanPort", 1, 65535, SDN_VXLAN_PORT, &port, e);
    if (r == 0) {
        r = get_number(obj, "mtu", 576, 65536, OBJECTS_DEFAULT_MTU, &mtu, e);
    }
    if (r < 0) {
        return r;
    }
    n.vxlan_port = (uint16_t) port;
    n.mtu = (uint32_t) MIN(mtu, 65535); /* Limited to the maximum of a Linux link. */
    *ret = n;
    return 0;
}

int objects_parse_host_subnet(const struct json *obj, struct sdn_remote *ret, struct err *e)
{
    struct sdn_remote h = {0};
    const char *ip = json_path_string(obj, "hostIP", NULL);
    if (!ip || !*ip) {
        return err_set(e, -EINVAL, "hostIP: is missing");
    }
    if (ip4_parse(ip, &h.host_ip) < 0 || h.host_ip == 0) {
        return err_set(e, -EINVAL, "hostIP: \"%s\" is not the address of a host", ip);
    }
    int r = get_prefix(obj, "subnet", &h.subnet, e);
    if (r == -ENOENT) {
        err_clear(e);
    } else if (r < 0) {
        return r;
    } else if (h.subnet.len > 30 || h.subnet.len < 8) {
        return err_set(e, -EINVAL, "subnet: the length of %s is not in 8-30",
                       PREFIX_TEXT(h.subnet));
    }
    /* A bad annotation does not exclude the node: then the sender's VNID is
     * used, as without the annotation. */
    const char *fixed =
        json_path_string(obj, "metadata", "annotations", FIXED_VNID_ANNOTATION, NULL);
    uint64_t vnid;
    if (fixed && str_to_u64(fixed, SDN_VNID_MAX, &vnid) == 0) {
        h.has_fixed_vnid = true;
        h.fixed_vnid = (uint32_t) vnid;
    }
    const char *uid = json_path_string(obj, "metadata", "uid", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const char *identity = uid && *uid ? uid : name ? name : "";
    h.id = hash_bytes(identity, strlen(identity));
    *ret = h;
    return 0;
}

int objects_check_remote(const struct sdn_network *n, const struct sdn_remote *r, struct err *e)
{
    if (r->host_ip == n->host_ip) {
        return err_set(e, -EINVAL, "hostIP: %s is the address of this node", IP4_TEXT(r->host_ip));
    }
    if (r->subnet.len == 0) {
        return 0;
    }
    if (prefix_overlaps(r->subnet, n->local)) {
        return err_set(e, -EINVAL, "subnet: %s overlaps with this node's, %s",
                       PREFIX_TEXT(r->subnet), PREFIX_TEXT(n->local));
    }
    for (size_t i = 0; i < n->n_cluster; i++) {
        if (r->subnet.len >= n->cluster[i].len && prefix_contains(n->cluster[i], r->subnet.addr)) {
            return 0;
        }
    }
    return err_set(e, -EINVAL, "subnet: %s is not in a cluster network", PREFIX_TEXT(r->subnet));
}

int objects_parse_net_namespace(const struct json *obj, struct sdn_vnids *ret, struct err *e)
{
    static const char *const others[] = {NET_NEXT_ID, NET_PREVIOUS_ID};
    const struct json *v = json_get(obj, "netid");
    int64_t i;
    if (!v) { /* 0 means global, which must not result from an omission. */
        return err_set(e, -EINVAL, "netid: is missing");
    }
    if (json_get_int(v, &i) < 0 || i < 0 || i > SDN_VNID_MAX) {
        return err_set(e, -EINVAL, "netid: is not a number in 0-%u", SDN_VNID_MAX);
    }
    struct sdn_vnids ids = {.id = (uint32_t) i};
    for (size_t k = 0; k < ARRAY_SIZE(others); k++) {
        const char *text = json_path_string(obj, "metadata", "annotations", others[k], NULL);
        /* A malformed value grants no access. */
        ids.moving = ids.moving || (text && net_id_parse(text, &ids.also) == 0);
    }
    *ret = ids;
    return 0;
}

struct candidate {
    const char *name;
    struct sdn_remote remote;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->remote.subnet.addr != y->remote.subnet.addr) {
        return x->remote.subnet.addr < y->remote.subnet.addr ? -1 : 1;
    }
    if (x->remote.subnet.len != y->remote.subnet.len) {
        return x->remote.subnet.len < y->remote.subnet.len ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

size_t objects_build_remotes(const struct sdn_network *n, const char *own,
                             const struct objects_host_subnet *items, size_t count,
                             void (*skipped)(void *ctx, const char *name, const char *why),
                             void *ctx, struct sdn_remote **ret)
{
    CLEANUP_FREE struct candidate *all = xcalloc(count ? count : 1, sizeof *all);
    size_t n_all = 0, n_ret = 0;
    for (size_t i = 0; i < count; i++) {
        struct err e = {0};
        struct candidate *c = &all[n_all];
        if (streq(items[i].name, own)) {
            continue;
        }
        if (objects_parse_host_subnet(items[i].obj, &c->remote, &e) < 0 ||
            objects_check_remote(n, &c->remote, &e) < 0) {
            skipped(ctx, items[i].name, e.text);
            continue;
        }
        sdn_addresses_parse(
            json_path_string(items[i].obj, "metadata", "annotations", SDN_NODE_ADDRESSES, NULL), n,
            &c->remote.addresses);
        c->name = items[i].name;
        n_all++;
    }
    qsort(all, n_all, sizeof *all, compare_candidates);
    struct sdn_remote *remotes = xcalloc(n_all ? n_all : 1, sizeof *remotes);
    const struct candidate *last = NULL; /* The last one with a subnet. */
    for (size_t i = 0; i < n_all; i++) {
        struct ip4_prefix p = all[i].remote.subnet;
        if (p.len && last && prefix_overlaps(last->remote.subnet, p)) {
            struct err e = {0};
            err_set(&e, -EINVAL, "subnet: %s overlaps with %s of %s", PREFIX_TEXT(p),
                    PREFIX_TEXT(last->remote.subnet), last->name);
            skipped(ctx, all[i].name, e.text);
            continue;
        }
        last = p.len ? &all[i] : last;
        remotes[n_ret++] = all[i].remote;
    }
    *ret = remotes;
    return n_ret;
}

/* ---- pods ---- */

#define BANDWIDTH "kubernetes.io/%s-bandwidth"

/* Parses a resource.Quantity of Kubernetes; -EINVAL: it is not one. */
static int parse_quantity(const char *text, double *ret)
{
    static const struct {
        const char *suffix;
        double factor;
    } suffixes[] = {
        {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},
        {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
        {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
        {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60},
    };
    const char *p = text + (*text == '+');
    double value = 0, unit = 1;
    bool point = false, digits = false;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        digits = true;
        value = value * 10 + (*p - '0');
        unit = point ? unit * 10 : unit;
    }
    if (!digits) {
        return -EINVAL;
    }
    value /= unit;
    if (*p == 'e' || (*p == 'E' && p[1])) {
        uint64_t exponent;
        bool negative = p[1] == '-';
        p += 1 + (p[1] == '-' || p[1] == '+');
        if (str_to_u64(p, 40, &exponent) == 0) {
            for (; exponent > 0; exponent--) {
                value = negative ? value / 10 : value * 10;
            }
            *ret = value;
            return 0;
        }
        return -EINVAL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        if (streq(p, suffixes[i].suffix)) {
            *ret = value * suffixes[i].factor;
            return 0;
        }
    }
    return -EINVAL;
}

static int parse_limit(const struct json *obj, const char *direction, struct cni_runtime *r,
                       uint64_t *ret, struct err *e)
{
    CLEANUP_FREE char *key = xasprintf(BANDWIDTH, direction);
    const struct json *v = json_path(obj, "metadata", "annotations", key, NULL);
    const char *text = json_get_string(v);
    double rate;
    if (!v) {
        return 0;
    }
    if (!text || parse_quantity(text, &rate) < 0) {
        return err_set(e, -EINVAL, "metadata.annotations[%s]: \"%.80s\" is not a quantity, like 8M",
                       key, text ? text : "");
    }
    if (rate < (double) CNI_MIN_RATE || rate > (double) CNI_MAX_RATE) {
        return err_set(e, -EINVAL,
                       "metadata.annotations[%s]: \"%.80s\" is not in 1k-1P (bits per second)", key,
                       text);
    }
    r->has_bandwidth = true;
    *ret = (uint64_t) rate;
    return 0;
}

static int parse_container_port(const struct json *port, struct cni_runtime *r, struct err *e)
{
    int64_t host, own;
    const struct json *v = json_get(port, "hostPort");
    if (!v || json_is(v, JSON_NULL)) {
        return 0;
    }
    if (json_get_int(v, &host) < 0 || host < 0 || host > 65535) {
        return err_set(e, -EINVAL, "hostPort: is not a number in 1-65535");
    }
    if (host == 0) {
        return 0; /* 0: no host port. */
    }
    if (json_get_int(json_get(port, "containerPort"), &own) < 0 || own < 1 || own > 65535) {
        return err_set(e, -EINVAL, "containerPort: is not a number in 1-65535");
    }
    const char *protocol = json_path_string(port, "protocol", NULL);
    const char *ip = json_path_string(port, "hostIP", NULL);
    struct cni_host_port p = {.protocol = cni_protocol_parse(protocol ? protocol : "TCP"),
                              .host_port = (uint16_t) host,
                              .port = (uint16_t) own};
    if (!p.protocol) {
        return err_set(e, -EINVAL, "protocol: \"%.40s\" is not TCP, UDP or SCTP", protocol);
    }
    if (ip && *ip && !streq(ip, "::") && ip4_parse(ip, &p.host_ip) < 0) {
        return err_set(e, -EINVAL, "hostIP: \"%.60s\" is not an IPv4 address", ip);
    }
    r->has_ports = true;
    return cni_runtime_add_port(r, &p, e);
}

int objects_parse_pod_runtime(const struct json *obj, struct cni_runtime *ret, struct err *e)
{
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
    const struct json *containers = json_path(obj, "spec", "containers", NULL);
    int k = parse_limit(obj, "ingress", &r, &r.bandwidth.to_pod, e);
    k = k < 0 ? k : parse_limit(obj, "egress", &r, &r.bandwidth.from_pod, e);
    for (size_t i = 0; k == 0 && i < json_count(containers); i++) {
        const struct json *ports = json_get(json_at(containers, i), "ports");
        for (size_t n = 0; k == 0 && n < json_count(ports); n++) {
            k = parse_container_port(json_at(ports, n), &r, e);
            k = k < 0 ? err_prefix(e, "spec.containers[%zu].ports[%zu]", i, n) : 0;
        }
    }
    if (k == 0) {
        *ret = r;
        r = (struct cni_runtime){0};
    }
    return k;
}
