/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_config.h"

#include "api/kind.h"
#include "base/mem.h"
#include "net/loop/process.h"
#include "net/tls/pki.h"
#include "wire/yaml.h"

#define MAX_RESERVE_MB 65536
#define MAX_CONFIG (1u << 20) /* Bytes of a file. */
#define HOST_MAX 63
#define LEASE_TTL_MIN 3
#define LEASE_TTL_MAX 3600

const char *const master_config_options[] = {"cluster-network",
                                             "service-network",
                                             "service-node-port-range",
                                             "external-ip-network",
                                             "ingress-ip-network",
                                             "foreign-pod-network",
                                             "reserved-address",
                                             "master-node",
                                             "plugin",
                                             "vxlan-port",
                                             "mtu",
                                             "bind-address",
                                             "tls",
                                             "pki-dir",
                                             "tls-cert-file",
                                             "tls-key-file",
                                             "client-ca-file",
                                             "authorization-mode",
                                             "anonymous-auth",
                                             "service-account-signing-key-file",
                                             "audit-log-path",
                                             "audit-policy-file",
                                             "storage-backend",
                                             "storage-path",
                                             "storage-endpoints",
                                             "etcd-ca-file",
                                             "etcd-cert-file",
                                             "etcd-key-file",
                                             "controller-lease-ttl",
                                             "dns-bind-address",
                                             "dns-isolate-projects",
                                             "limit",
                                             "log-level",
                                             NULL};

static void strings_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++) {
        free(list[i]);
    }
    free(list);
}

void master_config_init(struct master_config *c)
{
    *c = (struct master_config){
        .bind_address = xstrdup("127.0.0.1:8443"),
        .storage_backend = xstrdup("sqlite"),
        .storage_path = xstrdup("/var/lib/tenet/registry.db"),
        .storage_reserve_mb = 64,
        .audit_max_mb = 100,
        .audit_max_files = 10,
        .lease_ttl_s = 15,
    };
    netconf_defaults(&c->network);
    service_config_init(&c->services);
    serving_limits_init(&c->limits);
}

void master_config_done(struct master_config *c)
{
    free(c->bind_address);
    free(c->storage_backend);
    free(c->storage_path);
    free(c->storage_endpoints);
    free(c->etcd_ca);
    free(c->etcd_cert);
    free(c->etcd_key);
    free(c->tls);
    free(c->pki_dir);
    free(c->signing_cert);
    free(c->signing_key);
    free(c->cert_file);
    free(c->key_file);
    free(c->client_ca);
    for (size_t i = 0; i < c->n_names; i++) {
        free(c->names[i]);
    }
    free(c->names);
    free(c->authorization_mode);
    free(c->sa_private_key);
    strings_free(c->sa_public_keys);
    strings_free(c->sa_managed_names);
    strings_free(c->master_nodes);
    free(c->audit_path);
    free(c->audit_policy);
    dns_config_done(&c->dns);
    free(c->log_level);
    *c = (struct master_config){0};
}

/* ---- values ---- */

static int check_host_bits(struct ip4_prefix cidr, int64_t bits, struct err *e)
{
    int max = MIN(30, 32 - cidr.len);
    if (bits < 2 || bits > max) {
        return err_set(e, -EINVAL,
                       "%lld is not in 2-%d, the bits that %s leaves for a node's subnet",
                       (long long) bits, max, PREFIX_TEXT(cidr));
    }
    return 0;
}

static int set_string(char **to, const char *s, struct err *e)
{
    if (!*s) {
        return err_set(e, -EINVAL, "must not be empty");
    }
    free(*to);
    *to = xstrdup(s);
    return 0;
}

static int split_address(const char *s, char host[HOST_MAX + 1], uint64_t *port)
{
    const char *colon = strrchr(s, ':');
    uint32_t addr = 0;
    if (!colon || colon - s > HOST_MAX || str_to_u64(colon + 1, UINT16_MAX, port) < 0) {
        return -EINVAL;
    }
    memcpy(host, s, (size_t) (colon - s));
    host[colon - s] = '\0';
    return streq(host, "localhost") ? 0 : ip4_parse(host, &addr);
}

static int set_bind_address(struct master_config *c, const char *s, struct err *e)
{
    char host[HOST_MAX + 1];
    uint64_t port = 0;
    if (split_address(s, host, &port) < 0) {
        return err_set(e, -EINVAL,
                       "\"%.80s\" is not an IPv4 address and port such as 127.0.0.1:8443", s);
    }
    return set_string(&c->bind_address, s, e);
}

static int set_backend(struct master_config *c, const char *s, struct err *e)
{
    if (!streq(s, "sqlite") && !streq(s, "etcd") && !streq(s, "memory")) {
        return err_set(e, -EINVAL, "\"%.40s\" is not one of sqlite, etcd, memory", s);
    }
    return set_string(&c->storage_backend, s, e);
}

static int set_tls(struct master_config *c, const char *s, struct err *e)
{
    if (!streq(s, "auto") && !streq(s, "off")) {
        return err_set(e, -EINVAL, "\"%.40s\" is not one of auto, off", s);
    }
    return set_string(&c->tls, s, e);
}

static int set_mode(struct master_config *c, const char *s, struct err *e)
{
    if (!streq(s, "RBAC") && !streq(s, "AlwaysAllow")) {
        return err_set(e, -EINVAL, "\"%.40s\" is not one of RBAC, AlwaysAllow", s);
    }
    return set_string(&c->authorization_mode, s, e);
}

static int set_anonymous(struct master_config *c, const char *s, struct err *e)
{
    if (!streq(s, "true") && !streq(s, "false")) {
        return err_set(e, -EINVAL, "must be true or false");
    }
    c->anonymous = streq(s, "true");
    c->anonymous_given = true;
    return 0;
}

/* Parses "m1,m2". */
static int set_master_nodes(struct master_config *c, const char *list, struct err *e)
{
    char **names = xcalloc(strlen(list) + 2, sizeof(*names));
    size_t n = 0;
    int r = 0;
    for (const char *p = list; r == 0 && *p;) {
        size_t size = strcspn(p, ",");
        names[n] = xstrndup(p, size);
        const char *why = api_check_dns_subdomain(names[n]);
        r = why ? err_set(e, -EINVAL, "\"%.80s\" cannot be the name of a node: %s", names[n], why)
                : 0;
        n++;
        p += size + (p[size] == ',');
    }
    if (r < 0) {
        strings_free(names);
        return r;
    }
    strings_free(c->master_nodes);
    c->master_nodes = names;
    return 0;
}

static int set_isolate(struct master_config *c, const char *s, struct err *e)
{
    if (!streq(s, "true") && !streq(s, "false")) {
        return err_set(e, -EINVAL, "must be true or false");
    }
    c->dns.isolate = streq(s, "true");
    return 0;
}

static int set_port(struct master_config *c, int64_t v, struct err *e)
{
    if (v < 1 || v > UINT16_MAX) {
        return err_set(e, -EINVAL, "%lld is not in 1-65535", (long long) v);
    }
    c->network.vxlan_port = (uint16_t) v;
    return 0;
}

static int set_mtu(struct master_config *c, int64_t v, struct err *e)
{
    if (v < NETCONF_MTU_MIN || v > NETCONF_MTU_MAX) {
        return err_set(e, -EINVAL, "%lld is not in %d-%d", (long long) v, NETCONF_MTU_MIN,
                       NETCONF_MTU_MAX);
    }
    c->network.mtu = (uint32_t) v;
    return 0;
}

static int set_lease_ttl(struct master_config *c, int64_t v, struct err *e)
{
    if (v < LEASE_TTL_MIN || v > LEASE_TTL_MAX) {
        return err_set(e, -EINVAL, "%lld is not in %d-%d", (long long) v, LEASE_TTL_MIN,
                       LEASE_TTL_MAX);
    }
    c->lease_ttl_s = (unsigned) v;
    return 0;
}

static int add_range(struct master_config *c, struct ip4_prefix cidr, int64_t bits, struct err *e)
{
    struct netconf *n = &c->network;
    if (n->n_ranges == ARRAY_SIZE(n->ranges)) {
        return err_set(e, -EINVAL, "more than %zu cluster networks", ARRAY_SIZE(n->ranges));
    }
    n->ranges[n->n_ranges++] = (struct subnet_range){cidr, (uint8_t) bits};
    return 0;
}

/* ---- the document ---- */

/* One document being read: the older pair of keys is put together at its end. */
struct reader {
    struct master_config *c;
    bool has_list, has_cidr, has_bits, has_backend, has_urls;
    struct ip4_prefix cidr;
    int64_t bits;
};

static int need_string(const struct json *v, const char **ret, struct err *e)
{
    if (!json_is(v, JSON_STRING)) {
        return err_set(e, -EINVAL, "must be a string");
    }
    return *ret = json_get_string(v), 0;
}

static int need_int(const struct json *v, int64_t *ret, struct err *e)
{
    return json_get_int(v, ret) < 0 ? err_set(e, -EINVAL, "must be a whole number") : 0;
}

static int read_range(struct reader *rd, size_t i, const struct json *v, struct err *e)
{
    struct ip4_prefix cidr = {0};
    const char *s = NULL;
    int64_t bits = 0;
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL,
                       "networkConfig.clusterNetworks[%zu]: must have cidr and hostSubnetLength",
                       i);
    }
    for (size_t k = 0; k < json_count(v); k++) {
        const char *key = json_key_at(v, k);
        if (!streq(key, "cidr") && !streq(key, "hostSubnetLength")) {
            return err_set(e, -EINVAL, "networkConfig.clusterNetworks[%zu].%.80s: unknown key", i,
                           key);
        }
    }
    int r = need_string(json_get(v, "cidr"), &s, e);
    if (r < 0 || (r = prefix_parse(s, &cidr, e)) < 0) {
        return err_prefix(e, "networkConfig.clusterNetworks[%zu].cidr", i), r;
    }
    r = need_int(json_get(v, "hostSubnetLength"), &bits, e);
    if (r < 0 || (r = check_host_bits(cidr, bits, e)) < 0) {
        return err_prefix(e, "networkConfig.clusterNetworks[%zu].hostSubnetLength", i), r;
    }
    r = add_range(rd->c, cidr, bits, e);
    return r < 0 ? (err_prefix(e, "networkConfig.clusterNetworks"), r) : 0;
}

static int read_ranges(struct reader *rd, const struct json *v, struct err *e)
{
    if (!json_is(v, JSON_ARRAY) || json_count(v) == 0) {
        return err_set(e, -EINVAL, "networkConfig.clusterNetworks: must be a list of networks");
    }
    rd->has_list = true;
    rd->c->network.n_ranges = 0;
    for (size_t i = 0; i < json_count(v); i++) {
        int r = read_range(rd, i, json_at(v, i), e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_cidr(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    rd->has_cidr = true;
    return r < 0 ? r : prefix_parse(s, &rd->cidr, e);
}

static int read_bits(struct reader *rd, const struct json *v, struct err *e)
{
    rd->has_bits = true;
    return need_int(v, &rd->bits, e);
}

static int read_service(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : prefix_parse(s, &rd->c->network.service, e);
}

static int read_external(struct reader *rd, const struct json *v, struct err *e)
{
    return service_config_read_external(&rd->c->services, v, e);
}

static int read_ingress(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : service_config_set_ingress(&rd->c->services, s, e);
}

/* Joins a list of strings with commas; owned, NULL: 'v' is no such list. */
static char *join(const struct json *v)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < json_count(v); i++) {
        const char *s = json_get_string(json_at(v, i));
        if (!s || !*s || strchr(s, ',')) {
            return NULL;
        }
        strbuf_addf(&b, "%s%s", i ? "," : "", s);
    }
    return !json_is(v, JSON_ARRAY) ? NULL : b.size ? strbuf_steal(&b) : xstrdup("");
}

static int read_address_list(const struct json *v, bool hosts, struct address_ranges *to,
                             struct err *e)
{
    CLEANUP_FREE char *text = join(v);
    return text ? address_ranges_parse(text, hosts, to, e)
                : err_set(e, -EINVAL, "must be a list of %s",
                          hosts ? "addresses and CIDRs" : "CIDRs");
}

static int read_foreign(struct reader *rd, const struct json *v, struct err *e)
{
    return read_address_list(v, false, &rd->c->network.foreign, e);
}

static int read_reserved(struct reader *rd, const struct json *v, struct err *e)
{
    return read_address_list(v, true, &rd->c->reserved, e);
}

static int read_master_nodes(struct reader *rd, const struct json *v, struct err *e)
{
    CLEANUP_FREE char *text = join(v);
    return text ? set_master_nodes(rd->c, text, e)
                : err_set(e, -EINVAL, "must be a list of names of nodes");
}

static int read_node_ports(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : service_config_set_ports(&rd->c->services, s, e);
}

static int read_master_ip(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : service_config_set_master_ip(&rd->c->services, s, e);
}

static int read_plugin(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : sdn_plugin_parse(s, &rd->c->network.plugin, e);
}

static int read_port(struct reader *rd, const struct json *v, struct err *e)
{
    int64_t i = 0;
    int r = need_int(v, &i, e);
    return r < 0 ? r : set_port(rd->c, i, e);
}

static int read_mtu(struct reader *rd, const struct json *v, struct err *e)
{
    int64_t i = 0;
    int r = need_int(v, &i, e);
    return r < 0 ? r : set_mtu(rd->c, i, e);
}

static int read_bind_address(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_bind_address(rd->c, s, e);
}

/* YAML 1.1 reads a bare "off" as false. */
static int read_tls(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    if (json_is(v, JSON_BOOL) && !json_get_bool(v, true)) {
        return set_tls(rd->c, "off", e);
    }
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_tls(rd->c, s, e);
}

static int read_pki_dir(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->pki_dir, s, e);
}

static int read_cert_file(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->cert_file, s, e);
}

static int read_key_file(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->key_file, s, e);
}

static int read_client_ca(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->client_ca, s, e);
}

static int read_names(struct reader *rd, const struct json *v, struct err *e)
{
    struct master_config *c = rd->c;
    if (!json_is(v, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "must be a list of names and addresses");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *s = json_get_string(json_at(v, i));
        if (!s || !pki_name_is_valid(s)) {
            return err_set(e, -EINVAL, "\"%.80s\" is neither a DNS name nor an IPv4 address",
                           s ? s : "");
        }
        c->names = xreallocarray(c->names, c->n_names + 1, sizeof(*c->names));
        c->names[c->n_names++] = xstrdup(s);
    }
    return 0;
}

static int read_mode(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_mode(rd->c, s, e);
}

static int read_anonymous(struct reader *rd, const struct json *v, struct err *e)
{
    return set_anonymous(
        rd->c, json_is(v, JSON_BOOL) ? json_get_bool(v, false) ? "true" : "false" : "", e);
}

static int read_sa_key(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->sa_private_key, s, e);
}

/* A list of strings that are not empty. */
static int read_strings(const struct json *v, char ***to, struct err *e)
{
    char **list = xcalloc(json_count(v) + 1, sizeof(*list));
    bool good = json_is(v, JSON_ARRAY);
    for (size_t i = 0; good && i < json_count(v); i++) {
        good = json_string_size(json_at(v, i)) > 0;
        list[i] = good ? xstrdup(json_get_string(json_at(v, i))) : NULL;
    }
    if (!good) {
        strings_free(list);
        return err_set(e, -EINVAL, "must be a list of strings");
    }
    strings_free(*to);
    *to = list;
    return 0;
}

/* OpenShift's names, with its meaning of 0 and -1: no limit. */
static int read_inflight(struct reader *rd, const struct json *v, struct err *e)
{
    int64_t i = 0;
    int r = need_int(v, &i, e);
    return r < 0 ? r
                 : serving_limits_set(&rd->c->limits, "maxRequestsInFlight", i ? i : 1000000, e);
}

static int read_request_timeout(struct reader *rd, const struct json *v, struct err *e)
{
    int64_t i = 0;
    int r = need_int(v, &i, e);
    return r < 0 ? r
                 : serving_limits_set(&rd->c->limits, "requestTimeoutSeconds", i == -1 ? 0 : i, e);
}

static int read_sa_public(struct reader *rd, const struct json *v, struct err *e)
{
    return read_strings(v, &rd->c->sa_public_keys, e);
}

static int read_sa_names(struct reader *rd, const struct json *v, struct err *e)
{
    char **list = NULL;
    int r = read_strings(v, &list, e);
    for (size_t i = 0; r == 0 && list[i]; i++) {
        if (api_check_dns_subdomain(list[i])) {
            r = err_set(e, -EINVAL, "\"%.80s\" cannot be the name of a service account", list[i]);
        }
    }
    if (r < 0) {
        strings_free(list);
        return r;
    }
    strings_free(rd->c->sa_managed_names);
    rd->c->sa_managed_names = list;
    return 0;
}

static int read_audit_path(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->audit_path, s, e);
}

static int read_audit_policy(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->audit_policy, s, e);
}

static int read_bounded(const struct json *v, int64_t max, int64_t *to, struct err *e)
{
    int64_t i = 0;
    int r = need_int(v, &i, e);
    if (r == 0 && (i < 1 || i > max)) {
        return err_set(e, -EINVAL, "%lld is not in 1-%lld", (long long) i, (long long) max);
    }
    return r < 0 ? r : (*to = i, 0);
}

static int read_audit_size(struct reader *rd, const struct json *v, struct err *e)
{
    return read_bounded(v, 1048576, &rd->c->audit_max_mb, e);
}

static int read_audit_files(struct reader *rd, const struct json *v, struct err *e)
{
    return read_bounded(v, 10000, &rd->c->audit_max_files, e);
}

static int read_backend(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    rd->has_backend = true;
    return r < 0 ? r : set_backend(rd->c, s, e);
}

static int read_path(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->storage_path, s, e);
}

static int read_reserve(struct reader *rd, const struct json *v, struct err *e)
{
    int64_t mb = 0;
    int r = need_int(v, &mb, e);
    if (r == 0 && (mb < 0 || mb > MAX_RESERVE_MB)) {
        r = err_set(e, -EINVAL, "%lld is not in 0-%d", (long long) mb, MAX_RESERVE_MB);
    }
    return r < 0 ? r : (rd->c->storage_reserve_mb = mb, 0);
}

static int read_endpoints(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->storage_endpoints, s, e);
}

/* A list in place of the text with commas. */
static int read_urls(struct reader *rd, const struct json *v, struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!json_is(v, JSON_ARRAY) || json_count(v) == 0) {
        return err_set(e, -EINVAL, "must be a list of URLs");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *s = json_get_string(json_at(v, i));
        if (!s || !*s || strchr(s, ',')) {
            return err_set(e, -EINVAL, "[%zu]: must be a URL such as https://10.0.0.1:2379", i);
        }
        strbuf_addf(&b, "%s%s", i ? "," : "", s);
    }
    rd->has_urls = true;
    return set_string(&rd->c->storage_endpoints, strbuf_cstr(&b), e);
}

static int read_etcd_ca(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->etcd_ca, s, e);
}

static int read_etcd_cert(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->etcd_cert, s, e);
}

static int read_etcd_key(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->etcd_key, s, e);
}

static int read_lease_ttl(struct reader *rd, const struct json *v, struct err *e)
{
    int64_t i = 0;
    int r = need_int(v, &i, e);
    return r < 0 ? r : set_lease_ttl(rd->c, i, e);
}

static int read_log_level(struct reader *rd, const struct json *v, struct err *e)
{
    const char *s = NULL;
    int r = need_string(v, &s, e);
    return r < 0 ? r : set_string(&rd->c->log_level, s, e);
}

static const struct {
    const char *section, *key;
    int (*read)(struct reader *rd, const struct json *v, struct err *e);
    bool names_itself; /* Its errors begin with the whole name of the key. */
} keys[] = {
    {"networkConfig", "clusterNetworks", read_ranges, true},
    {"networkConfig", "clusterNetworkCIDR", read_cidr},
    {"networkConfig", "hostSubnetLength", read_bits},
    {"networkConfig", "serviceNetworkCIDR", read_service},
    {"networkConfig", "externalIPNetworkCIDRs", read_external},
    {"networkConfig", "externalIPNetworkCIDR", read_external},
    {"networkConfig", "ingressIPNetworkCIDR", read_ingress},
    {"networkConfig", "foreignPodNetworkCIDRs", read_foreign},
    {"networkConfig", "reservedAddresses", read_reserved},
    {"networkConfig", "networkPluginName", read_plugin},
    {"networkConfig", "vxlanPort", read_port},
    {"networkConfig", "mtu", read_mtu},
    {"kubernetesMasterConfig", "servicesNodePortRange", read_node_ports},
    {"kubernetesMasterConfig", "servicesSubnet", read_service},
    {"kubernetesMasterConfig", "masterIP", read_master_ip},
    {"kubernetesMasterConfig", "masterNodes", read_master_nodes},
    {"servingInfo", "bindAddress", read_bind_address},
    {"servingInfo", "tls", read_tls},
    {"servingInfo", "pkiDir", read_pki_dir},
    {"servingInfo", "names", read_names},
    {"servingInfo", "certFile", read_cert_file},
    {"servingInfo", "keyFile", read_key_file},
    {"servingInfo", "clientCA", read_client_ca},
    {"servingInfo", "maxRequestsInFlight", read_inflight},
    {"servingInfo", "requestTimeoutSeconds", read_request_timeout},
    {"authorization", "mode", read_mode},
    {"authorization", "anonymous", read_anonymous},
    {"serviceAccountConfig", "privateKeyFile", read_sa_key},
    {"serviceAccountConfig", "publicKeyFiles", read_sa_public},
    {"serviceAccountConfig", "managedNames", read_sa_names},
    {"auditConfig", "auditFilePath", read_audit_path},
    {"auditConfig", "policyFile", read_audit_policy},
    {"auditConfig", "maximumFileSizeMegabytes", read_audit_size},
    {"auditConfig", "maximumRetainedFiles", read_audit_files},
    {"storage", "backend", read_backend},
    {"storage", "path", read_path},
    {"storage", "endpoints", read_endpoints},
    {"storage", "reserveMB", read_reserve},
    {"etcdClientInfo", "urls", read_urls},
    {"etcdClientInfo", "ca", read_etcd_ca},
    {"etcdClientInfo", "certFile", read_etcd_cert},
    {"etcdClientInfo", "keyFile", read_etcd_key},
};

static int read_key(struct reader *rd, const char *section, const char *key, const struct json *v,
                    struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!streq(keys[i].section, section) || !streq(keys[i].key, key)) {
            continue;
        }
        int r = json_is(v, JSON_NULL) ? 0 : keys[i].read(rd, v, e);
        if (r < 0 && !keys[i].names_itself) {
            err_prefix(e, "%s.%s", section, key);
        }
        return r;
    }
    return err_set(e, -EINVAL, "%s.%.80s: unknown key", section, key);
}

static int read_section(struct reader *rd, const char *section, const struct json *v, struct err *e)
{
    bool known = false;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        known |= streq(keys[i].section, section);
    }
    if (!known) {
        return err_set(e, -EINVAL, "%.80s: unknown key", section);
    }
    if (json_is(v, JSON_NULL)) {
        return 0;
    }
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "%s: must be a mapping of keys to values", section);
    }
    for (size_t i = 0; i < json_count(v); i++) {
        int r = read_key(rd, section, json_key_at(v, i), json_at(v, i), e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* The keys of the time before there were several cluster networks. */
static int join_pair(struct reader *rd, struct err *e)
{
    struct netconf *n = &rd->c->network;
    if (!rd->has_cidr && !rd->has_bits) {
        return 0;
    }
    if (rd->has_list) {
        return err_set(e, -EINVAL, "networkConfig.%s: cannot be given beside clusterNetworks",
                       rd->has_cidr ? "clusterNetworkCIDR" : "hostSubnetLength");
    }
    struct netconf dflt;
    netconf_defaults(&dflt);
    struct ip4_prefix cidr = rd->has_cidr ? rd->cidr : dflt.ranges[0].cidr;
    int64_t bits = rd->has_bits ? rd->bits : dflt.ranges[0].host_bits;
    int r = check_host_bits(cidr, bits, e);
    if (r < 0) {
        return err_prefix(e, "networkConfig.hostSubnetLength"), r;
    }
    n->n_ranges = 0;
    return add_range(rd->c, cidr, bits, e);
}

static int read_limits(struct reader *rd, const struct json *v, struct err *e)
{
    if (json_is(v, JSON_NULL)) {
        return 0;
    }
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "limits: must be a mapping of keys to values");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *key = json_key_at(v, i);
        int64_t value = 0;
        int r = need_int(json_at(v, i), &value, e);
        if (r < 0 || (r = serving_limits_set(&rd->c->limits, key, value, e)) < 0) {
            return err_prefix(e, "limits.%.80s", key), r;
        }
    }
    return 0;
}

static int read_type(const char *key, const struct json *v, const char *want, struct err *e)
{
    return streq_null(json_get_string(v), want)
               ? 0
               : err_set(e, -EINVAL, "%s: must be \"%s\"", key, want);
}

int master_config_read(struct master_config *c, const struct json *v, struct err *e)
{
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "must be a mapping of keys to values");
    }
    struct reader rd = {.c = c};
    for (size_t i = 0; i < json_count(v); i++) {
        const char *key = json_key_at(v, i);
        const struct json *member = json_at(v, i);
        int r;
        if (streq(key, "apiVersion")) {
            r = read_type(key, member, "v1", e);
        } else if (streq(key, "kind")) {
            r = read_type(key, member, "MasterConfig", e);
        } else if (streq(key, "logLevel")) {
            r = read_log_level(&rd, member, e);
            r = r < 0 ? (err_prefix(e, "logLevel"), r) : 0;
        } else if (streq(key, "dnsConfig")) {
            r = dns_config_read(&c->dns, member, e);
        } else if (streq(key, "limits")) {
            r = read_limits(&rd, member, e);
        } else if (streq(key, "controllerLeaseTTL")) {
            r = read_lease_ttl(&rd, member, e);
            r = r < 0 ? (err_prefix(e, "controllerLeaseTTL"), r) : 0;
        } else {
            r = read_section(&rd, key, member, e);
        }
        if (r < 0) {
            return r;
        }
    }
    if (rd.has_urls && !rd.has_backend) {
        (void) set_backend(c, "etcd", NULL);
    }
    return join_pair(&rd, e);
}

/* ---- options ---- */

/* "CIDR" or "CIDR:BITS" */
static int set_cluster_network(struct master_config *c, const char *value, unsigned *given,
                               struct err *e)
{
    struct netconf dflt;
    netconf_defaults(&dflt);
    const char *colon = strchr(value, ':');
    CLEANUP_FREE char *text = xstrndup(value, colon ? (size_t) (colon - value) : strlen(value));
    struct ip4_prefix cidr = {0};
    uint64_t bits = dflt.ranges[0].host_bits;
    int r = prefix_parse(text, &cidr, e);
    if (r < 0) {
        return r;
    }
    if (colon && str_to_u64(colon + 1, 32, &bits) < 0) {
        return err_set(e, -EINVAL, "\"%.80s\" is not CIDR:HOSTSUBNETLENGTH such as 10.128.0.0/14:9",
                       value);
    }
    r = check_host_bits(cidr, (int64_t) bits, e);
    if (r < 0) {
        return r;
    }
    if ((*given)++ == 0) {
        c->network.n_ranges = 0;
    }
    return add_range(c, cidr, (int64_t) bits, e);
}

static int set_option(struct master_config *c, const char *option, const char *value,
                      unsigned *given, struct err *e)
{
    if (streq(option, "cluster-network")) {
        return set_cluster_network(c, value, given, e);
    }
    if (streq(option, "service-network")) {
        return prefix_parse(value, &c->network.service, e);
    }
    if (streq(option, "service-node-port-range")) {
        return service_config_set_ports(&c->services, value, e);
    }
    if (streq(option, "external-ip-network")) {
        return service_config_set_external(&c->services, value, e);
    }
    if (streq(option, "ingress-ip-network")) {
        return service_config_set_ingress(&c->services, value, e);
    }
    if (streq(option, "foreign-pod-network")) {
        return address_ranges_parse(value, false, &c->network.foreign, e);
    }
    if (streq(option, "reserved-address")) {
        return address_ranges_parse(value, true, &c->reserved, e);
    }
    if (streq(option, "master-node")) {
        return set_master_nodes(c, value, e);
    }
    if (streq(option, "plugin")) {
        return sdn_plugin_parse(value, &c->network.plugin, e);
    }
    if (streq(option, "bind-address")) {
        return set_bind_address(c, value, e);
    }
    if (streq(option, "tls")) {
        return set_tls(c, value, e);
    }
    if (streq(option, "pki-dir")) {
        return set_string(&c->pki_dir, value, e);
    }
    if (streq(option, "tls-cert-file")) {
        return set_string(&c->cert_file, value, e);
    }
    if (streq(option, "tls-key-file")) {
        return set_string(&c->key_file, value, e);
    }
    if (streq(option, "client-ca-file")) {
        return set_string(&c->client_ca, value, e);
    }
    if (streq(option, "authorization-mode")) {
        return set_mode(c, value, e);
    }
    if (streq(option, "anonymous-auth")) {
        return set_anonymous(c, value, e);
    }
    if (streq(option, "service-account-signing-key-file")) {
        return set_string(&c->sa_private_key, value, e);
    }
    if (streq(option, "audit-log-path")) {
        return set_string(&c->audit_path, value, e);
    }
    if (streq(option, "audit-policy-file")) {
        return set_string(&c->audit_policy, value, e);
    }
    if (streq(option, "storage-backend")) {
        return set_backend(c, value, e);
    }
    if (streq(option, "storage-path")) {
        return set_string(&c->storage_path, value, e);
    }
    if (streq(option, "storage-endpoints")) {
        return set_string(&c->storage_endpoints, value, e);
    }
    if (streq(option, "limit")) {
        return serving_limits_parse(&c->limits, value, e);
    }
    if (streq(option, "etcd-ca-file")) {
        return set_string(&c->etcd_ca, value, e);
    }
    if (streq(option, "etcd-cert-file")) {
        return set_string(&c->etcd_cert, value, e);
    }
    if (streq(option, "etcd-key-file")) {
        return set_string(&c->etcd_key, value, e);
    }
    if (streq(option, "dns-bind-address")) {
        return set_string(&c->dns.bind_address, value, e);
    }
    if (streq(option, "dns-isolate-projects")) {
        return set_isolate(c, value, e);
    }
    if (streq(option, "log-level")) {
        return set_string(&c->log_level, value, e);
    }
    int64_t i = 0;
    if (str_to_i64(value, INT32_MIN, INT32_MAX, &i) < 0) {
        return err_set(e, -EINVAL, "\"%.40s\" is not a whole number", value);
    }
    return streq(option, "mtu")                    ? set_mtu(c, i, e)
           : streq(option, "controller-lease-ttl") ? set_lease_ttl(c, i, e)
                                                   : set_port(c, i, e);
}

int master_config_set(struct master_config *c, const char *option, const char *value,
                      unsigned *given, struct err *e)
{
    int r = set_option(c, option, value, given, e);
    return r < 0 ? (err_prefix(e, "--%s", option), r) : 0;
}

bool master_config_is_loopback(const struct master_config *c)
{
    char host[HOST_MAX + 1];
    uint64_t port = 0;
    uint32_t addr = 0;
    return split_address(c->bind_address, host, &port) == 0 &&
           (streq(host, "localhost") || (ip4_parse(host, &addr) == 0 && addr >> 24 == 127));
}

int master_config_load(const char *path, struct master_config *c, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_CONFIG);
    CLEANUP(json_free) struct json *v = NULL;
    int r = file_read(path, MAX_CONFIG, &text, e);
    if (r < 0) {
        return r;
    }
    r = yaml_parse(strbuf_cstr(&text), text.size, &v, e);
    if (r == 0) {
        r = master_config_read(c, v, e);
    }
    if (r < 0) {
        err_prefix(e, "%s", path);
    }
    return r;
}
