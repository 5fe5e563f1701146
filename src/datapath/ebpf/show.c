/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/show.h"

#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/encode.h"
#include "sdn/explain.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#define KEY_MAX 64
#define VALUE_MAX 256

/* ---- fields ---- */

static void set_addr(struct json *o, const char *name, __be32 addr)
{
    json_set_string(o, name, IP4_TEXT(ntohl(addr)));
}

static void set_vnid(struct json *o, uint32_t vnid, bool also, uint32_t also_vnid)
{
    json_set_int(o, "vnid", vnid);
    if (also) {
        json_set_int(o, "alsoVNID", also_vnid);
    }
}

static void set_service(struct json *o, const struct ebpf_service_key *k)
{
    if (k->addr) {
        set_addr(o, "service", k->addr);
    } else {
        json_set_string(o, "service", "node");
    }
    json_set_int(o, "port", ntohs(k->port));
    json_set_string(o, "protocol", explain_proto_name(k->protocol));
}

static void set_backend(struct json *o, const char *name, const struct ebpf_backend *b)
{
    json_set(o, name, json_stringf("%s:%u", IP4_TEXT(ntohl(b->addr)), ntohs(b->port)));
}

/* ---- maps ---- */

static void show_pod(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_pod *p = value;
    struct mac mac;
    memcpy(mac.b, p->mac, sizeof mac.b);
    set_addr(k, "address", *(const __be32 *) key);
    json_set_int(v, "link", p->reach.ifindex);
    if (p->inlet != p->reach.ifindex) {
        json_set_int(v, "inlet", p->inlet);
    }
    json_set_string(v, "ethernet", MAC_TEXT(mac));
    set_vnid(v, p->reach.vnid, p->flags & EBPF_POD_ALSO_VNID, p->also_vnid);
    if (p->flags & EBPF_POD_QUEUED) {
        json_set_bool(v, "queued", true);
    }
}

static void show_pod_cache(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_pod *p = value;
    show_pod(&p->addr, value, k, v);
    json_set_int(k, "index", *(const __u32 *) key);
}

static void show_port(const void *key, const void *value, struct json *k, struct json *v)
{
    json_set_int(k, "link", *(const __u32 *) key);
    set_addr(v, "address", *(const __be32 *) value);
}

static void show_route(const void *key, const void *value, struct json *k, struct json *v)
{
    static const char *const kinds[] = {[EBPF_CLUSTER] = "cluster",
                                        [EBPF_SERVICE] = "service",
                                        [EBPF_LOCAL] = "local",
                                        [EBPF_GATEWAY] = "gateway",
                                        [EBPF_REMOTE] = "remote"};
    const struct ebpf_route_key *from = key;
    const struct ebpf_route *r = value;
    json_set(k, "prefix", json_stringf("%s/%u", IP4_TEXT(ntohl(from->addr)), from->len));
    json_set_string(v, "kind",
                    r->kind < ARRAY_SIZE(kinds) && kinds[r->kind] ? kinds[r->kind] : "unknown");
    if (r->kind == EBPF_REMOTE) {
        json_set_string(v, "vtep", IP4_TEXT(r->vtep));
    }
    if (r->ifindex) {
        json_set_int(v, "link", r->ifindex);
        set_addr(v, "nextHop", r->next);
        json_set_int(v, "mtu", r->mtu);
    }
    if (r->has_fixed) {
        json_set_int(v, "fixedVNID", r->fixed_vnid);
    }
}

static void show_vtep(const void *key, const void *value, struct json *k, struct json *v)
{
    json_set_string(k, "vtep", IP4_TEXT(*(const __u32 *) key));
    json_set_bool(v, "believed", *(const __u32 *) value);
}

static void show_service(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_service *s = value;
    set_service(k, key);
    json_set_int(v, "backends", s->count);
    set_vnid(v, s->vnid, s->flags & EBPF_SERVICE_ALSO_VNID, s->also_vnid);
    if (s->affinity_s) {
        json_set_int(v, "affinitySeconds", s->affinity_s);
    }
    if (s->flags & EBPF_SERVICE_IDLE) {
        json_set_bool(v, "idle", true);
    }
}

static void show_backend(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_backend_key *b = key;
    set_service(k, &b->service);
    json_set_int(k, "index", b->index);
    set_backend(v, "backend", value);
}

static void show_serving(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_serving_key *s = key;
    set_service(k, &s->service);
    set_backend(k, "backend", &s->backend);
    json_set_bool(v, "serving", *(const __u32 *) value);
}

static void set_chosen(struct json *o, const char *name, const struct ebpf_chosen *c)
{
    struct ebpf_backend b = {.addr = c->addr, .port = c->port};
    set_backend(o, name, &b);
}

static void show_connection(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_connection_key *c = key;
    const struct ebpf_chosen *chosen = value;
    json_set(k, "from", json_stringf("%s:%u", IP4_TEXT(ntohl(c->src)), ntohs(c->src_port)));
    json_set(k, "to", json_stringf("%s:%u", IP4_TEXT(ntohl(c->dst)), ntohs(c->dst_port)));
    json_set_string(k, "protocol", explain_proto_name(c->protocol));
    set_chosen(v, c->dir == EBPF_DIR_REPLY ? "comesFromService" : "goesToBackend", chosen);
    if (chosen->client_port) {
        json_set_int(v, c->dir == EBPF_DIR_REPLY ? "clientPort" : "clientPortThere",
                     ntohs(chosen->client_port));
    }
}

static void show_affinity(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_affinity_key *a = key;
    const struct ebpf_chosen *chosen = value;
    set_service(k, &a->service);
    set_addr(k, "client", a->client);
    set_chosen(v, "backend", chosen);
}

static void show_refusals(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_refusals *r = value;
    set_addr(k, "address", *(const __be32 *) key);
    json_set_int(v, "second", r->second);
    json_set_int(v, "refused", r->count);
}

static void show_settings(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_settings *s = value;
    struct mac mac;
    memcpy(mac.b, s->tun_mac, sizeof mac.b);
    json_set_int(k, "index", *(const __u32 *) key);
    json_set_int(v, "tun", s->tun_ifindex);
    json_set_int(v, "host", s->host_ifindex);
    json_set_int(v, "vxlan", s->vxlan_ifindex);
    json_set_int(v, "vxlanPort", ntohs(s->vxlan_port));
    set_addr(v, "gateway", s->gateway);
    set_addr(v, "hostIP", s->host);
    json_set(v, "subnet",
             json_stringf("%s/%d", IP4_TEXT(ntohl(s->local)), __builtin_popcount(s->mask)));
    json_set_string(v, "tunEthernet", MAC_TEXT(mac));
    json_set_bool(v, "carryVNIDs", s->carry_vnids);
    json_set_bool(v, "compareVNIDs", s->compare_vnids);
    json_set_bool(v, "services", s->has_services);
    json_set_bool(v, "servicesByHost", s->services_by_host);
    json_set_int(v, "directUntil", s->direct_until_s);
    json_set_bool(v, "watched", s->watch);
}

/* 'value' is one counter: the sum over all processors. */
static void show_drop(const void *key, const void *value, struct json *k, struct json *v)
{
    __u32 which = *(const __u32 *) key;
    enum model_cause cause = encode_cause(which);
    json_set_string(k, "cause",
                    which == EBPF_ERRORS_SENT      ? "icmp-error-sent"
                    : which == EBPF_ERRORS_LIMITED ? "icmp-error-limited"
                    : cause == MODEL_NOT_DROPPED   ? "none"
                                                   : model_cause_name(cause));
    json_set_int(v, "packets", *(const int64_t *) value);
}

/* ---- maps of policy ---- */

static void show_generation(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_generation *g = value;
    json_set_int(k, "index", *(const __u32 *) key);
    json_set_int(v, "current", (int64_t) g->current);
    json_set_bool(v, "closed", g->closed);
}

static void set_classes(struct json *o, const struct ebpf_classes *c)
{
    static const char *const names[] = {"egressSubject", "ingressSubject", "egressPeer",
                                        "ingressPeer"};
    const __u32 ids[] = {c->subject[EBPF_EGRESS], c->subject[EBPF_INGRESS], c->peer[EBPF_EGRESS],
                         c->peer[EBPF_INGRESS]};
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        if (ids[i]) {
            json_set_int(o, names[i], ids[i]);
        }
    }
    if (c->unknown) {
        json_set_bool(o, "unknown", true);
    }
}

static void show_classes(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_classes_row *r = value;
    set_addr(k, "address", *(const __be32 *) key);
    json_set_int(v, "since", (int64_t) r->since);
    set_classes(v, &r->now);
}

static const char *direction_name(__u32 dir)
{
    return dir == EBPF_EGRESS ? "egress" : dir == EBPF_INGRESS ? "ingress" : "unknown";
}

static void show_block(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_block_key *b = key;
    const struct ebpf_block_row *r = value;
    json_set_string(k, "direction", direction_name(b->dir));
    json_set(k, "prefix",
             json_stringf("%s/%u", IP4_TEXT(ntohl(b->addr)), b->len - EBPF_BLOCK_DIR_BITS));
    json_set_int(v, "since", (int64_t) r->since);
    json_set_int(v, "class", r->now);
}

static void show_pair(const void *key, const void *value, struct json *k, struct json *v)
{
    static const char *const kinds[] = {
        [EBPF_ANYBODY] = "anybody", [EBPF_POD] = "pod", [EBPF_BLOCK] = "block"};
    const struct ebpf_pair_key *p = key;
    const struct ebpf_pair_row *r = value;
    json_set_string(k, "direction", direction_name(p->dir));
    json_set_int(k, p->dir == EBPF_EGRESS ? "egressSubject" : "ingressSubject", p->subject);
    json_set_string(k, "kind", p->kind < ARRAY_SIZE(kinds) ? kinds[p->kind] : "unknown");
    if (p->peer) {
        json_set_int(k, "peer", p->peer);
    }
    json_set_int(v, "since", (int64_t) r->since);
    json_set_int(v, "ports", r->now.ports);
    if (r->now.flags & EBPF_PAIR_ISOLATED) {
        json_set_bool(v, "isolated", true);
    }
    if (r->now.flags & EBPF_PAIR_CUT_OFF) {
        json_set_bool(v, "cutOff", true);
    }
}

static void show_port_set(const void *key, const void *value, struct json *k, struct json *v)
{
    static const char *const actions[] = {
        [EBPF_ALLOW] = "allow", [EBPF_DENY] = "deny", [EBPF_PASS] = "pass"};
    const struct ebpf_port_key *p = key;
    const struct ebpf_port_verdict *r = value;
    json_set_int(k, "ports", p->ports);
    if (p->len > EBPF_PORT_ANY_BITS) {
        json_set_string(k, "protocol", explain_proto_name(p->protocol));
    }
    if (p->len > EBPF_PORT_PROTO_BITS) {
        json_set(k, "port", json_stringf("%u/%u", ntohs(p->port), p->len - EBPF_PORT_PROTO_BITS));
    }
    json_set_bool(v, "allowed", r->allowed);
    if (r->admin && r->admin_action < ARRAY_SIZE(actions)) {
        json_set_string(v, "admin", actions[r->admin_action]);
    }
    if (r->baseline && r->baseline_action < ARRAY_SIZE(actions)) {
        json_set_string(v, "baseline", actions[r->baseline_action]);
    }
}

static void show_tracked(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_tracked_key *c = key;
    const struct ebpf_tracked *t = value;
    size_t first = t->first & 1;
    json_set(k, "from",
             json_stringf("%s:%u", IP4_TEXT(ntohl(c->addr[first])), ntohs(c->port[first])));
    json_set(k, "to",
             json_stringf("%s:%u", IP4_TEXT(ntohl(c->addr[!first])), ntohs(c->port[!first])));
    json_set_string(k, "protocol", explain_proto_name(c->protocol));
    json_set_int(v, "generation", (int64_t) t->generation);
    json_set_bool(v, "answered", t->answered);
    if (t->denied) {
        json_set_bool(v, "denied", true);
    }
}

static void show_share(const void *key, const void *value, struct json *k, struct json *v)
{
    __u32 owner = *(const __u32 *) key;
    if (owner == EBPF_SHARES_MAX - 1) {
        json_set_string(k, "owner", "all");
    } else {
        json_set_int(k, "owner", owner);
    }
    json_set_int(v, "connections", *(const int64_t *) value);
}

static void show_clients(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_clients *c = value;
    int64_t asked = 0;
    for (size_t i = 0; i < sizeof c->asked; i++) {
        asked += c->asked[i];
    }
    json_set_int(k, "lowBits", (int64_t) * (const __u32 *) key * (int64_t) sizeof c->asked);
    json_set_int(v, "clients", asked);
}

static void show_fragment(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_fragment_key *f = key;
    const struct ebpf_fragment *first = value;
    set_addr(k, "from", f->src);
    set_addr(k, "to", f->dst);
    json_set_string(k, "protocol", explain_proto_name(f->protocol));
    json_set_int(k, "id", ntohs(f->id));
    json_set_int(v, "sourcePort", ntohs(first->src_port));
    json_set_int(v, "port", ntohs(first->dst_port));
    if (first->src) {
        set_addr(v, "leavesFrom", first->src);
    }
    if (first->dst) {
        set_addr(v, "leavesTo", first->dst);
    }
}

static void show_firewall(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_firewall *f = value;
    uint32_t vnid;
    memcpy(&vnid, key, sizeof vnid);
    json_set_int(k, "vnid", vnid);
    json_set_int(v, "list", f->list);
    if (f->closed) {
        json_set_bool(v, "closed", true);
    }
}

static void show_firewall_block(const void *key, const void *value, struct json *k, struct json *v)
{
    const struct ebpf_firewall_key *b = key;
    uint32_t action;
    memcpy(&action, value, sizeof action);
    struct ip4_prefix to = {ntohl(b->addr), (uint8_t) (b->len - EBPF_FIREWALL_LIST_BITS)};
    json_set_int(k, "list", b->list);
    json_set_string(k, "destination", PREFIX_TEXT(to));
    json_set_string(v, "action", action == EBPF_ALLOW ? "allow" : "deny");
}

static const struct shown {
    const char *name;
    void (*show)(const void *key, const void *value, struct json *k, struct json *v);
    size_t key_size, value_size;
} shown[] = {
    {EBPF_PODS, show_pod, sizeof(__be32), sizeof(struct ebpf_pod)},
    {EBPF_POD_CACHE, show_pod_cache, sizeof(__u32), sizeof(struct ebpf_pod)},
    {EBPF_PORTS, show_port, sizeof(__u32), sizeof(__be32)},
    {EBPF_ROUTES, show_route, sizeof(struct ebpf_route_key), sizeof(struct ebpf_route)},
    {EBPF_SUBNETS, show_route, sizeof(struct ebpf_route_key), sizeof(struct ebpf_route)},
    {EBPF_VTEPS, show_vtep, sizeof(__u32), sizeof(__u32)},
    {EBPF_SERVICES, show_service, sizeof(struct ebpf_service_key), sizeof(struct ebpf_service)},
    {EBPF_BACKENDS, show_backend, sizeof(struct ebpf_backend_key), sizeof(struct ebpf_backend)},
    {EBPF_SERVING, show_serving, sizeof(struct ebpf_serving_key), sizeof(__u32)},
    {EBPF_CONNECTIONS, show_connection, sizeof(struct ebpf_connection_key),
     sizeof(struct ebpf_chosen)},
    {EBPF_CLIENTS, show_clients, sizeof(__u32), sizeof(struct ebpf_clients)},
    {EBPF_AFFINITY, show_affinity, sizeof(struct ebpf_affinity_key), sizeof(struct ebpf_chosen)},
    {EBPF_REFUSALS, show_refusals, sizeof(__be32), sizeof(struct ebpf_refusals)},
    {EBPF_SETTINGS, show_settings, sizeof(__u32), sizeof(struct ebpf_settings)},
    {EBPF_DROPS, show_drop, sizeof(__u32), sizeof(uint64_t)},
    {EBPF_GENERATION, show_generation, sizeof(__u32), sizeof(struct ebpf_generation)},
    {EBPF_CLASSES, show_classes, sizeof(__be32), sizeof(struct ebpf_classes_row)},
    {EBPF_BLOCKS, show_block, sizeof(struct ebpf_block_key), sizeof(struct ebpf_block_row)},
    {EBPF_PAIRS, show_pair, sizeof(struct ebpf_pair_key), sizeof(struct ebpf_pair_row)},
    {EBPF_PORT_SETS, show_port_set, sizeof(struct ebpf_port_key), sizeof(struct ebpf_port_verdict)},
    {EBPF_TRACKED, show_tracked, sizeof(struct ebpf_tracked_key), sizeof(struct ebpf_tracked)},
    {EBPF_SHARES, show_share, sizeof(__u32), sizeof(__u64)},
    {EBPF_FRAGMENTS, show_fragment, sizeof(struct ebpf_fragment_key), sizeof(struct ebpf_fragment)},
    {EBPF_FIREWALLS, show_firewall, sizeof(__u32), sizeof(struct ebpf_firewall)},
    {EBPF_FIREWALL_BLOCKS, show_firewall_block, sizeof(struct ebpf_firewall_key), sizeof(__u32)},
};

/* ---- entries ---- */

static void hex_of(const void *bytes, size_t n, struct strbuf *out)
{
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%02x", ((const unsigned char *) bytes)[i]);
    }
}

static void set_hex(struct json *o, const void *bytes, size_t n)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    hex_of(bytes, n, &text);
    json_set_string(o, "bytes", strbuf_cstr(&text));
}

struct json *show_entry(const char *map, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct json *o = json_object();
    struct json *k = json_ensure_object(o, "key"), *v = json_ensure_object(o, "value");
    for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
        const struct shown *s = &shown[i];
        if (streq(s->name, map) && s->key_size == key_size && s->value_size == value_size) {
            s->show(key, value, k, v);
            return o;
        }
    }
    set_hex(k, key, key_size);
    set_hex(v, value, value_size);
    return o;
}

static int parse_key(const char *hex, size_t size, unsigned char *ret, struct err *e)
{
    static const char digits[] = "0123456789abcdef";
    if (strlen(hex) != 2 * size) {
        return err_set(e, -EINVAL, "after: \"%s\" is no key of the map", hex);
    }
    for (size_t i = 0; i < size; i++) {
        const char *high = strchr(digits, hex[2 * i]), *low = strchr(digits, hex[2 * i + 1]);
        if (!high || !low) {
            return err_set(e, -EINVAL, "after: \"%s\" is not hexadecimal", hex);
        }
        ret[i] = (unsigned char) ((high - digits) << 4 | (low - digits));
    }
    return 0;
}

static bool is_per_cpu(uint32_t type)
{
    return type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
           type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/* For a per-CPU counter, the sum. */
static int look_up(int fd, const struct bpf_map_info *info, const void *key, void *value)
{
    if (!is_per_cpu(info->type)) {
        return bpf_map_lookup_elem(fd, key, value);
    }
    int cpus = libbpf_num_possible_cpus();
    CLEANUP_FREE uint64_t *all = xcalloc((size_t) MAX(cpus, 1), sizeof *all);
    uint64_t sum = 0;
    int r = info->value_size == sizeof *all && cpus > 0 ? bpf_map_lookup_elem(fd, key, all) : -1;
    for (int i = 0; r == 0 && i < cpus; i++) {
        sum += all[i];
    }
    memcpy(value, &sum, sizeof sum);
    return r;
}

#define BATCH 4096

/* Reads thousands at a time: a million entries take less than a tenth of a second. */
static int64_t count_batches(int fd, const struct bpf_map_info *info)
{
    CLEANUP_FREE unsigned char *keys = xcalloc(BATCH, info->key_size);
    CLEANUP_FREE unsigned char *values = xcalloc(BATCH, info->value_size);
    uint32_t at = 0;
    int64_t n = 0;
    int r = 0;
    for (bool first = true; r == 0; first = false) {
        uint32_t got = BATCH;
        r = bpf_map_lookup_batch(fd, first ? NULL : &at, &at, keys, values, &got, NULL);
        n += r == 0 || r == -ENOENT ? got : 0;
    }
    return r == -ENOENT ? n : -1;
}

static int64_t count(int fd, const struct bpf_map_info *info)
{
    unsigned char key[KEY_MAX] = {0}, next[KEY_MAX] = {0};
    const void *at = NULL;
    if (info->type == BPF_MAP_TYPE_ARRAY || info->type == BPF_MAP_TYPE_PERCPU_ARRAY) {
        return info->max_entries;
    }
    int64_t n = info->type == BPF_MAP_TYPE_LPM_TRIE ? -1 : count_batches(fd, info);
    if (n >= 0) {
        return n;
    }
    /* A loop without a bound might never end on a map that changes meanwhile. */
    for (n = 0; n < info->max_entries && bpf_map_get_next_key(fd, at, next) == 0; n++) {
        memcpy(key, next, sizeof key);
        at = key;
    }
    return n;
}

/* An array element that was never written. */
static bool is_empty(const struct bpf_map_info *info, const unsigned char *value)
{
    static const unsigned char none[VALUE_MAX];
    return info->type == BPF_MAP_TYPE_ARRAY && memcmp(value, none, info->value_size) == 0;
}

/* One map of the programs. */
struct looked_at {
    const char *name;
    int fd;
    int64_t entries; /* -1: not counted yet. */
    struct bpf_map_info info;
};

static int look_at(const struct program *p, const struct table *const *known, const char *name,
                   struct looked_at *ret, struct err *e)
{
    struct looked_at m = {.name = name, .fd = program_map_fd(p, name), .entries = -1};
    uint32_t size = sizeof m.info;
    for (; *known && m.entries < 0; known++) {
        m.entries = (*known)->fd == m.fd ? (int64_t) (*known)->n : -1;
    }
    if (bpf_obj_get_info_by_fd(m.fd, &m.info, &size) < 0) {
        return err_sys(e, -errno, "look at the map %s", name);
    }
    if (m.info.key_size > KEY_MAX || m.info.value_size > VALUE_MAX) {
        return err_set(e, -E2BIG, "the entries of the map %s are too large", name);
    }
    *ret = m;
    return 0;
}

static struct json *describe(const struct looked_at *m)
{
    struct json *o = json_object();
    const char *type = libbpf_bpf_map_type_str((enum bpf_map_type) m->info.type);
    json_set_string(o, "name", m->name);
    json_set_string(o, "type", type ? type : "unknown");
    json_set_int(o, "entries", m->entries < 0 ? count(m->fd, &m->info) : m->entries);
    json_set_int(o, "max", m->info.max_entries);
    return o;
}

struct json *show_maps(const struct program *p, const struct table *const *known)
{
    struct json *list = json_array();
    const struct program_map *pm;
    for (size_t i = 0; (pm = program_map(i)); i++) {
        struct looked_at m;
        if (look_at(p, known, pm->name, &m, NULL) == 0) {
            json_append(list, describe(&m));
        }
    }
    return list;
}

static const char *full_name(const char *name)
{
    const struct program_map *pm;
    for (size_t i = 0; (pm = program_map(i)); i++) {
        if (streq(pm->name, name) || streq(pm->name + strlen("tenet_"), name)) {
            return pm->name;
        }
    }
    return NULL;
}

int show_map(const struct program *p, const struct table *const *known, const char *name,
             const char *after, size_t limit, struct json **ret, struct err *e)
{
    struct looked_at m;
    unsigned char key[KEY_MAX] = {0}, next[KEY_MAX], value[VALUE_MAX];
    CLEANUP_STRBUF struct strbuf last = STRBUF_INIT;
    const char *full = full_name(name);
    int r =
        full ? look_at(p, known, full, &m, e) : err_set(e, -ENOENT, "there is no map \"%s\"", name);
    r = r == 0 && after ? parse_key(after, m.info.key_size, key, e) : r;
    if (r < 0) {
        return r;
    }
    struct json *o = describe(&m), *items = json_ensure_array(o, "items");
    const void *at = after ? key : NULL;
    size_t n = 0;
    while (n < MIN(limit, SHOW_LIMIT) && bpf_map_get_next_key(m.fd, at, next) == 0) {
        memcpy(key, next, m.info.key_size);
        at = key;
        if (look_up(m.fd, &m.info, key, value) == 0 && /* Otherwise the entry was just removed. */
            !is_empty(&m.info, value)) {
            n++;
            json_append(items, show_entry(full, key, m.info.key_size, value, m.info.value_size));
        }
    }
    if (at && bpf_map_get_next_key(m.fd, key, next) == 0) {
        hex_of(key, m.info.key_size, &last);
        json_set_string(o, "next", strbuf_cstr(&last));
    }
    *ret = o;
    return 0;
}

static const struct bpf_map_info counter = {.type = BPF_MAP_TYPE_PERCPU_ARRAY,
                                            .value_size = sizeof(uint64_t)};

uint64_t show_counter(int fd, uint32_t which)
{
    uint64_t n = 0;
    return look_up(fd, &counter, &which, &n) < 0 ? 0 : n;
}

int show_drops(int fd, uint64_t ret[MODEL_N_CAUSES])
{
    uint64_t total[MODEL_N_CAUSES] = {0};
    for (uint32_t cause = 1; cause < EBPF_N_CAUSES; cause++) {
        uint64_t n = 0;
        if (look_up(fd, &counter, &cause, &n) < 0) {
            return -EIO;
        }
        total[encode_cause(cause)] += n;
    }
    memcpy(ret, total, sizeof total);
    return 0;
}
