/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the master: one row each. */
#include "master/master_config.h"

#include "api/kind.h"
#include "api/kinds/route_fields.h"
#include "apiserver/apiserver.h"
#include "apiserver/request/cors.h"
#include "base/mem.h"
#include "master/openshift_keys.h"
#include "net/tls/pki.h"
#include "oauth/redirect.h"
#include "route/host.h"
#include "wire/yaml.h"

#include <ctype.h>

#define DAY_S 86400
#define LIMIT_UNLIMITED "1000000"

/* ---- cluster networks ---- */

int master_config_check_host_bits(struct ip4_prefix cidr, int64_t bits, struct err *e)
{
    int max = MIN(30, 32 - cidr.len);
    if (bits < 2 || bits > max) {
        return err_set(e, -EINVAL,
                       "%lld is not in 2-%d, the bits that %s leaves for a node's subnet",
                       (long long) bits, max, PREFIX_TEXT(cidr));
    }
    return 0;
}

int master_config_add_network(struct master_config *c, struct ip4_prefix cidr, int64_t bits,
                              struct err *e)
{
    struct netconf *n = &c->network;
    if (n->n_ranges == ARRAY_SIZE(n->ranges)) {
        return err_set(e, -EINVAL, "more than %zu cluster networks", ARRAY_SIZE(n->ranges));
    }
    n->ranges[n->n_ranges++] = (struct subnet_range){cidr, (uint8_t) bits};
    return 0;
}

/* "CIDR" or "CIDR:BITS"; the first flag replaces the networks of the file. */
static int set_network(void *config, const char *value, struct err *e)
{
    struct master_config *c = config;
    const char *colon = strchr(value, ':');
    CLEANUP_FREE char *text = xstrndup(value, colon ? (size_t) (colon - value) : strlen(value));
    struct ip4_prefix cidr = {0};
    struct netconf dflt;
    netconf_defaults(&dflt);
    uint64_t bits = dflt.ranges[0].host_bits;
    int r = prefix_parse(text, &cidr, e);
    if (r < 0) {
        return r;
    }
    if (colon && str_to_u64(colon + 1, 32, &bits) < 0) {
        return err_set(e, -EINVAL, "\"%.80s\" is not CIDR:HOSTSUBNETLENGTH such as 10.128.0.0/14:9",
                       value);
    }
    r = master_config_check_host_bits(cidr, (int64_t) bits, e);
    if (r < 0) {
        return r;
    }
    if (c->n_network_flags++ == 0) {
        c->network.n_ranges = 0;
    }
    return master_config_add_network(c, cidr, (int64_t) bits, e);
}

/* One item of clusterNetworks; '*ret_key' is the key that an error is about, NULL: the item itself.
 */
static int read_network(struct master_config *c, const struct json *v, const char **ret_key,
                        struct err *e)
{
    struct ip4_prefix cidr = {0};
    const char *s = json_get_string(json_get(v, "cidr"));
    int64_t bits = 0;
    *ret_key = "cidr";
    int r = s ? prefix_parse(s, &cidr, e) : err_set(e, -EINVAL, "must be a string");
    if (r < 0) {
        return r;
    }
    *ret_key = "hostSubnetLength";
    r = json_get_int(json_get(v, "hostSubnetLength"), &bits) < 0
            ? err_set(e, -EINVAL, "must be a whole number")
            : master_config_check_host_bits(cidr, bits, e);
    if (r < 0) {
        return r;
    }
    *ret_key = NULL;
    return master_config_add_network(c, cidr, bits, e);
}

static int check_network_keys(size_t i, const struct json *v, struct err *e)
{
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "[%zu]: must have cidr and hostSubnetLength", i);
    }
    for (size_t k = 0; k < json_count(v); k++) {
        const char *key = json_key_at(v, k);
        if (!streq(key, "cidr") && !streq(key, "hostSubnetLength")) {
            return err_set(e, -EINVAL, "[%zu].%.80s: unknown key", i, key);
        }
    }
    return 0;
}

static int read_networks(void *config, const struct json *v, struct err *e)
{
    struct master_config *c = config;
    if (!json_is(v, JSON_ARRAY) || json_count(v) == 0) {
        return err_set(e, -EINVAL, "must be a list of networks");
    }
    c->network.n_ranges = 0;
    for (size_t i = 0; i < json_count(v); i++) {
        const char *key = NULL;
        int r = check_network_keys(i, json_at(v, i), e);
        if (r < 0) {
            return r;
        }
        r = read_network(c, json_at(v, i), &key, e);
        if (r < 0) {
            return key ? err_prefix(e, "[%zu].%s", i, key), r : r;
        }
    }
    return 0;
}

/* ---- OAuth ---- */

static int check_public_url(const char *value, struct err *e)
{
    const char *wrong = oauth_config_check_url(value);
    return wrong ? err_set(e, -EINVAL, "\"%.80s\" %s", value, wrong) : 0;
}

static int check_asset_url(const char *value, struct err *e)
{
    struct oauth_uri u = {0};
    int r = oauth_uri_parse(value, &u, e);
    if (r < 0) {
        return err_prefix(e, "\"%.80s\"", value), r;
    }
    oauth_uri_done(&u);
    return 0;
}

static int check_cookie_name(const char *value, struct err *e)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return strspn(value, letters) == strlen(value) && !streq(value, "csrf")
               ? 0
               : err_set(e, -EINVAL, "\"%.80s\" is no name of a cookie that is free here", value);
}

static int read_providers(void *config, const struct json *v, struct err *e)
{
    struct master_config *c = config;
    struct json *providers;
    int r = oauth_config_read_providers(v, &providers, e);
    if (r == 0) {
        json_free(c->oauth.providers);
        c->oauth.providers = providers;
    }
    return r;
}

/* The same, of a text in JSON or YAML. */
static int set_providers(void *config, const char *value, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    int r = yaml_parse(value, strlen(value), &v, e);
    return r < 0 ? r : read_providers(config, v, e);
}

/* ---- admission plug-ins ---- */

static int read_plugins(void *config, const struct json *v, struct err *e)
{
    return admission_config_read(&((struct master_config *) config)->admission, v, e);
}

/* The same, of a text in JSON or YAML. */
static int set_plugins(void *config, const char *value, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    int r = yaml_parse(value, strlen(value), &v, e);
    return r < 0 ? r : read_plugins(config, v, e);
}

static int set_plugin_order(void *config, const char *list, struct err *e)
{
    return admission_config_set_order(&((struct master_config *) config)->admission, list, e);
}

/* ---- certificates by name ---- */

/* A DNS name, or "*." and one. */
static const char *check_sni_name(const char *name)
{
    return api_check_dns_subdomain(str_has_prefix(name, "*.") ? name + 2 : name);
}

/* Whether the name stands before the item 'k' of the names of certificate 'at'. */
static bool is_named_before(const struct json *list, size_t at, size_t k, const char *name)
{
    const struct json *item;
    for (size_t i = 0; i <= at; i++) {
        JSON_FOREACH (item, json_get(json_at(list, i), "names")) {
            if ((i < at || item_i < k) && streq_null(json_get_string(item), name)) {
                return true;
            }
        }
    }
    return false;
}

static int check_named_cert(const struct json *list, size_t at, struct err *e)
{
    static const char *const files[] = {"certFile", "keyFile"};
    const struct json *v = json_at(list, at), *names = json_get(v, "names"), *item;
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "[%zu]: must have names, certFile and keyFile", at);
    }
    for (size_t k = 0; k < json_count(v); k++) {
        const char *key = json_key_at(v, k);
        if (!streq(key, "names") && !streq(key, files[0]) && !streq(key, files[1])) {
            return err_set(e, -EINVAL, "[%zu].%.80s: unknown key", at, key);
        }
    }
    for (size_t k = 0; k < ARRAY_SIZE(files); k++) {
        if (!*json_get_text(v, files[k])) {
            return err_set(e, -EINVAL, "[%zu].%s: must be given", at, files[k]);
        }
    }
    if (names && !json_is(names, JSON_NULL) && !json_is(names, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "[%zu].names: must be a list of DNS names", at);
    }
    JSON_FOREACH (item, names) {
        const char *name = json_get_string(item), *why = name ? check_sni_name(name) : "no text";
        if (why) {
            return err_set(e, -EINVAL, "[%zu].names[%zu]: \"%.80s\" is no DNS name: %s", at, item_i,
                           name ? name : "", why);
        }
        if (is_named_before(list, at, item_i, name)) {
            return err_set(e, -EINVAL, "[%zu].names[%zu]: \"%.80s\" is there twice", at, item_i,
                           name);
        }
    }
    return 0;
}

static int read_named_certs(void *config, const struct json *v, struct err *e)
{
    struct master_config *c = config;
    if (!json_is(v, JSON_ARRAY) && !json_is(v, JSON_NULL)) {
        return err_set(e, -EINVAL, "must be a list of certificates");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        int r = check_named_cert(v, i, e);
        if (r < 0) {
            return r;
        }
    }
    json_free(c->named_certs);
    c->named_certs = json_clone(v);
    return 0;
}

/* Takes relative names of files from the folder 'dir'. */
static void resolve_named_certs(struct json *list, const char *dir)
{
    static const char *const keys[] = {"certFile", "keyFile"};
    for (size_t i = 0; i < json_count(list); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
            const char *file = json_get_text(json_at(list, i), keys[k]);
            if (*file && *file != '/') {
                json_set(json_at(list, i), keys[k], json_stringf("%s/%s", dir, file));
            }
        }
    }
}

/* The same, of a text in JSON or YAML. */
static int set_named_certs(void *config, const char *value, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    int r = yaml_parse(value, strlen(value), &v, e);
    return r < 0 ? r : read_named_certs(config, v, e);
}

/* ---- other values that need functions ---- */

static int set_external(void *config, const char *list, struct err *e)
{
    return service_config_set_external(&((struct master_config *) config)->services, list, e);
}

static int set_ingress(void *config, const char *cidr, struct err *e)
{
    return service_config_set_ingress(&((struct master_config *) config)->services, cidr, e);
}

static int set_foreign(void *config, const char *list, struct err *e)
{
    return address_ranges_parse(list, false, &((struct master_config *) config)->network.foreign,
                                e);
}

static int set_reserved(void *config, const char *list, struct err *e)
{
    return address_ranges_parse(list, true, &((struct master_config *) config)->reserved, e);
}

static int set_plugin(void *config, const char *name, struct err *e)
{
    return sdn_plugin_parse(name, &((struct master_config *) config)->network.plugin, e);
}

static int set_node_ports(void *config, const char *range, struct err *e)
{
    return service_config_set_ports(&((struct master_config *) config)->services, range, e);
}

static int set_master_ip(void *config, const char *ip, struct err *e)
{
    return service_config_set_master_ip(&((struct master_config *) config)->services, ip, e);
}

static int check_node_name(const char *name, struct err *e)
{
    const char *why = api_check_dns_subdomain(name);
    return why ? err_set(e, -EINVAL, "\"%.80s\" cannot be the name of a node: %s", name, why) : 0;
}

static int check_namespace_name(const char *name, struct err *e)
{
    const char *why = api_check_dns_label(name);
    return why ? err_set(e, -EINVAL, "\"%.80s\" cannot be the name of a namespace: %s", name, why)
               : 0;
}

static int check_class_name(const char *name, struct err *e)
{
    const char *why = api_check_dns_subdomain(name);
    return why ? err_set(e, -EINVAL, "\"%.80s\" cannot be the name of a RuntimeClass: %s", name,
                         why)
               : 0;
}

static int check_subdomain(const char *name, struct err *e)
{
    const char *why = route_check_subdomain(name);
    return why ? err_set(e, -EINVAL, "\"%.80s\" cannot be the domain of routes' hosts: %s", name,
                         why)
               : 0;
}

static int set_node_selector(void *config, const char *text, struct err *e)
{
    struct master_config *c = config;
    int r = admission_check_node_selector(text, e);
    if (r == 0) {
        free(c->node_selector);
        c->node_selector = *text ? xstrdup(text) : NULL;
    }
    return r;
}

static int set_project_message(void *config, const char *text, struct err *e)
{
    struct master_config *c = config;
    for (const char *p = text; *p; p++) {
        if (iscntrl((unsigned char) *p)) {
            return err_set(e, -EINVAL, "the text has a control character");
        }
    }
    free(c->project_message);
    c->project_message = *text ? xstrdup(text) : NULL;
    return 0;
}

static int set_project_template(void *config, const char *text, struct err *e)
{
    struct master_config *c = config;
    const char *slash = strchr(text, '/');
    CLEANUP_FREE char *ns = xstrndup(text, slash ? (size_t) (slash - text) : 0);
    if (*text &&
        (!slash || api_check_dns_label(ns) != NULL || api_check_dns_subdomain(slash + 1) != NULL)) {
        return err_set(e, -EINVAL, "\"%.80s\" is not NAMESPACE/NAME of a Template", text);
    }
    free(c->project_template);
    c->project_template = *text ? xstrdup(text) : NULL;
    return 0;
}

static int set_uid_range(void *config, const char *text, struct err *e)
{
    return scc_blocks_parse_uids(text, &((struct master_config *) config)->blocks, e);
}

static int set_level_range(void *config, const char *text, struct err *e)
{
    return scc_blocks_parse_levels(text, &((struct master_config *) config)->blocks, e);
}

static int check_account_name(const char *name, struct err *e)
{
    return api_check_dns_subdomain(name)
               ? err_set(e, -EINVAL, "\"%.80s\" cannot be the name of a service account", name)
               : 0;
}

static int check_host_name(const char *name, struct err *e)
{
    return pki_name_is_valid(name)
               ? 0
               : err_set(e, -EINVAL, "\"%.80s\" is neither a DNS name nor an IPv4 address", name);
}

static int check_admission_plugin(const char *name, struct err *e)
{
    const char *const names[] = {name, NULL};
    return admission_check_disabled(names, e) < 0 ? -EINVAL : 0;
}

static int check_status_address(const char *s, struct err *e)
{
    char host[OPTION_HOST_SIZE];
    uint64_t port;
    return streq(s, "none") || option_split_endpoint(s, host, &port) == 0
               ? 0
               : err_set(e, -EINVAL, "\"%.80s\" is neither ADDRESS:PORT nor none", s);
}

static int set_anonymous(void *config, const char *s, struct err *e)
{
    struct master_config *c = config;
    if (!streq(s, "true") && !streq(s, "false")) {
        return err_set(e, -EINVAL, "\"%.40s\" is neither true nor false", s);
    }
    c->anonymous = streq(s, "true");
    c->anonymous_given = true;
    return 0;
}

static int set_bind_network(void *config, const char *s, struct err *e)
{
    return streq(s, "tcp4") ? 0 : err_set(e, -EINVAL, "must be tcp4");
}

/* Sets OpenShift's name of a limit, in which 0 and -1 mean no limit. */
static int set_inflight(void *config, const char *s, struct err *e)
{
    return option_set(options_find(&master_options, "limits.maxRequestsInFlight"), config,
                      streq(s, "0") ? LIMIT_UNLIMITED : s, e);
}

static int set_request_timeout(void *config, const char *s, struct err *e)
{
    return option_set(options_find(&master_options, "limits.requestTimeoutSeconds"), config,
                      streq(s, "-1") ? "0" : s, e);
}

/* "NAME=VALUE" */
static int set_limit(void *config, const char *text, struct err *e)
{
    const char *equals = strchr(text, '=');
    int64_t value = 0;
    if (!equals || str_to_i64(equals + 1, INT64_MIN, INT64_MAX, &value) < 0) {
        return err_set(e, -EINVAL, "\"%.80s\" is not NAME=NUMBER such as maxConnections=1000",
                       text);
    }
    CLEANUP_FREE char *name = xstrndup(text, (size_t) (equals - text));
    CLEANUP_FREE char *path = xasprintf("limits.%s", name);
    const struct option_row *row = options_find(&master_options, path);
    int r = row ? option_set(row, config, equals + 1, e) : err_set(e, -EINVAL, "unknown key");
    return r < 0 ? (err_prefix(e, "%.80s", name), r) : 0;
}

/* ---- flags of "openshift start" ---- */

/* The host of "https://HOST:PORT/", "HOST:PORT" or "HOST" (owned); '*ret_rest' is what follows. */
static char *host_of(const char *url, const char **ret_rest)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    size_t n = strcspn(host, ":/");
    *ret_rest = host + n;
    return xstrndup(host, n);
}

/* Adds the host to servingInfo.names. */
static int add_name(void *config, const char *url, struct err *e)
{
    struct master_config *c = config;
    const char *rest;
    CLEANUP_FREE char *host = host_of(url, &rest);
    int r = check_host_name(host, e);
    size_t n = 0;
    if (r < 0) {
        return r;
    }
    while (c->names && c->names[n]) {
        n++;
    }
    c->names = xreallocarray(c->names, n + 2, sizeof(*c->names));
    c->names[n] = TAKE(host);
    c->names[n + 1] = NULL;
    return 0;
}

static int set_listen(void *config, const char *url, struct err *e)
{
    const char *rest;
    bool tls = strncmp(url, "https://", 8) == 0;
    CLEANUP_FREE char *host = host_of(url, &rest);
    if (!tls && strncmp(url, "http://", 7) != 0) {
        return err_set(e, -EINVAL, "\"%.80s\" is not a URL such as https://0.0.0.0:8443", url);
    }
    size_t n = *rest == ':' ? strcspn(rest, "/") : 0;
    CLEANUP_FREE char *address = xasprintf("%s%.*s%s", host, (int) n, rest, n ? "" : ":8443");
    int r = options_set_path(&master_options, config, "servingInfo.bindAddress", address, e);
    /* With a certificate in the file the mode follows from it. */
    struct master_config *c = config;
    return r < 0 || (tls && (c->cert_file || c->tls))
               ? r
               : options_set_path(&master_options, config, "servingInfo.tls", tls ? "auto" : "off",
                                  e);
}

static int set_etcd(void *config, const char *urls, struct err *e)
{
    int r = options_set_path(&master_options, config, "storage.endpoints", urls, e);
    return r < 0 ? r : options_set_path(&master_options, config, "storage.backend", "etcd", e);
}

static int set_etcd_dir(void *config, const char *dir, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/registry.db", dir);
    return options_set_path(&master_options, config, "storage.path", path, e);
}

static int set_dns(void *config, const char *url, struct err *e)
{
    const char *scheme = strstr(url, "://");
    return options_set_path(&master_options, config, "dnsConfig.bindAddress",
                            scheme ? scheme + 3 : url, e);
}

static int set_service_network(void *config, const char *cidr, struct err *e)
{
    return options_set_path(&master_options, config, "networkConfig.serviceNetworkCIDR", cidr, e);
}

/* A flag whose key has no effect: the warning is that of the key. */
static int note_idle(struct master_config *c, const char *key)
{
    struct option_place at = options_place(&master_options, key);
    option_findings_add(&c->findings, false, key, at.idle->why);
    return 0;
}

static int set_images(void *config, const char *format, struct err *e)
{
    return note_idle(config, "imageConfig");
}

/* ---- rows ---- */

#define MEMBER(name) OPTION_MEMBER(struct master_config, name)
#define BOTH .daemons = MASTER_API | MASTER_CONTROLLERS
#define API .daemons = MASTER_API
#define STORAGE .daemons = MASTER_API | MASTER_STORE
#define LIMIT(name, id, least, most, value)                               \
    .path = "limits." name, .type = OPTION_NUMBER, .daemons = MASTER_API, \
    MEMBER(limits.values[id]), .min = least, .max = most, .dflt = value

static const struct option_row rows[] = {
    /* The section networkConfig. */
    {.path = "networkConfig.clusterNetworks",
     .flag = "cluster-network",
     .arg = "CIDR:BITS",
     BOTH,
     .set = set_network,
     .read = read_networks,
     .dflt = "10.128.0.0/14:9",
     .yaml = "\n  - cidr: 10.128.0.0/14\n    hostSubnetLength: 9",
     .help = "networks of pods, with the bits of an address that a node's subnet has",
     .detail = "The file has a list of up to 16 networks, each with `cidr` and `hostSubnetLength` "
               "(2 to 30). With "
               "9 bits each node gets a /23 with 510 addresses, and the default network has room "
               "for 512 nodes. "
               "Networks are used in order: the next one when the one before is full. The flag may "
               "be repeated; "
               "the networks of the file are ignored then."},
    {.path = "networkConfig.clusterNetworkCIDR",
     .type = OPTION_CIDR,
     BOTH,
     MEMBER(older.cidr),
     .help = "the only network of pods, in the older form of clusterNetworks"},
    {.path = "networkConfig.hostSubnetLength",
     .type = OPTION_NUMBER,
     BOTH,
     MEMBER(older.bits),
     .min = INT64_MIN,
     .max = INT64_MAX,
     .help = "the bits of clusterNetworkCIDR that a node's subnet has"},
    {.path = "networkConfig.serviceNetworkCIDR",
     .flag = "service-network",
     .arg = "CIDR",
     .type = OPTION_CIDR,
     BOTH,
     MEMBER(network.service),
     .dflt = "172.30.0.0/16",
     .help = "network of services",
     .detail = "It cannot be changed after the first start."},
    {.path = "networkConfig.externalIPNetworkCIDRs",
     .flag = "external-ip-network",
     .arg = "CIDR,...",
     .type = OPTION_LIST,
     .items = "CIDRs",
     BOTH,
     .set = set_external,
     .dflt = "",
     .help = "networks that externalIPs of services may be in",
     .detail = "A network after `!` is excluded. No address is allowed by default."},
    {.path = "networkConfig.externalIPNetworkCIDR",
     .type = OPTION_LIST,
     .items = "CIDRs",
     BOTH,
     .set = set_external,
     .help = "the same as networkConfig.externalIPNetworkCIDRs"},
    {.path = "networkConfig.ingressIPNetworkCIDR",
     .flag = "ingress-ip-network",
     .arg = "CIDR",
     BOTH,
     .set = set_ingress,
     .unset = "172.29.0.0/16, or none when another network overlaps it",
     .example = "172.29.0.0/16",
     .help = "network of the addresses of LoadBalancer services",
     .detail = "With `0.0.0.0/32` or an empty text these services get no address."},
    {.path = "networkConfig.foreignPodNetworkCIDRs",
     .flag = "foreign-pod-network",
     .arg = "CIDR,...",
     .type = OPTION_LIST,
     .items = "CIDRs",
     BOTH,
     .set = set_foreign,
     .dflt = "",
     .help = "networks from which other CNI plug-ins of the nodes give addresses to pods",
     .detail = "They must not overlap the cluster's networks. A pod's address, as its node reports "
               "it, counts only "
               "within the node's own subnet or within these networks."},
    {.path = "networkConfig.reservedAddresses",
     .flag = "reserved-address",
     .arg = "ADDRESS,...",
     .type = OPTION_LIST,
     .items = "addresses and CIDRs",
     BOTH,
     .set = set_reserved,
     .dflt = "",
     .help = "addresses and networks that no node can report as its own",
     .detail = "These are the addresses of routers, load balancers and name servers."},
    {.path = "networkConfig.networkPluginName",
     .flag = "plugin",
     .arg = "NAME",
     .choices = "redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant "
                "redhat/openshift-ovs-networkpolicy flannel",
     BOTH,
     .set = set_plugin,
     .dflt = "redhat/openshift-ovs-subnet",
     .help = "which pods reach each other",
     .detail = "`redhat/openshift-ovs-subnet`: all pods reach each other. "
               "`redhat/openshift-ovs-multitenant`: pods "
               "reach those of their own project and of the project default. "
               "`redhat/openshift-ovs-networkpolicy`: "
               "pods reach each other as NetworkPolicy objects say. The prefix redhat/openshift- "
               "may be left out. `flannel`: all pods reach each other, by routes of the hosts."},
    {.path = "networkConfig.vxlanPort",
     .flag = "vxlan-port",
     .arg = "PORT",
     .type = OPTION_NUMBER,
     BOTH,
     MEMBER(network.vxlan_port),
     .min = 1,
     .max = UINT16_MAX,
     .dflt = "4789",
     .help = "UDP port of the overlay"},
    {.path = "networkConfig.mtu",
     .flag = "mtu",
     .arg = "BYTES",
     .type = OPTION_NUMBER,
     BOTH,
     MEMBER(network.mtu),
     .min = NETCONF_MTU_MIN,
     .max = NETCONF_MTU_MAX,
     .dflt = "1450",
     .help = "MTU of pods",
     .detail = "It must be at least 50 less than the MTU of the network between the nodes."},
    {.path = "kubernetesMasterConfig.servicesNodePortRange",
     .flag = "service-node-port-range",
     .arg = "FIRST-LAST",
     BOTH,
     .set = set_node_ports,
     .dflt = "30000-32767",
     .help = "ports of NodePort services",
     .detail = "An empty text means the default."},
    {.path = "kubernetesMasterConfig.servicesSubnet",
     .type = OPTION_CIDR,
     BOTH,
     MEMBER(network.service),
     .help = "the same as networkConfig.serviceNetworkCIDR"},
    {.path = "kubernetesMasterConfig.masterIP",
     BOTH,
     .set = set_master_ip,
     .unset = "the address of servingInfo.bindAddress",
     .example = "192.0.2.1",
     .help = "address at which nodes and pods reach this master",
     .detail = "It is an endpoint of the service `kubernetes`."},
    {.path = "kubernetesMasterConfig.schedulerConfigFile",
     .flag = "scheduler-config",
     .arg = "FILE",
     .type = OPTION_FILE,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(scheduler_policy),
     .unset = "the defaults of Kubernetes",
     .example = "/etc/tenet/scheduler.json",
     .help = "policy of the scheduler: a JSON file of kind Policy",
     .detail = "Its predicates and priorities replace the defaults, as in OpenShift 3."},
    {.path = "kubernetesMasterConfig.runScheduler",
     .flag = "scheduler",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     .daemons = MASTER_CONTROLLERS,
     MEMBER(scheduler),
     .dflt = "true",
     .help = "whether the controllers give nodes to pods",
     .detail = "With `false` another scheduler has to, such as kube-scheduler."},
    {.path = "kubernetesMasterConfig.runWorkloads",
     .flag = "workloads",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     .daemons = MASTER_CONTROLLERS,
     MEMBER(workloads),
     .dflt = "true",
     .help = "whether the controllers keep the pods of Deployments, Jobs and their like",
     .detail = "With `false` another program has to, such as kube-controller-manager. Two of them "
               "at once make too many pods. The same holds for volumes of claims."},
    {.path = "kubernetesMasterConfig.deployerImage",
     .flag = "deployer-image",
     .arg = "IMAGE",
     .type = OPTION_TEXT,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(deployer_image),
     .dflt = "localhost/tenet-deployer:" TENET_VERSION,
     .help = "image of the pods that do rollouts of DeploymentConfigs",
     .detail =
         "Its program is `tenet-deployer`, which is static. Nodes have to have the image, or be "
         "able to pull it; a release has an archive of it, which `ctr images import` loads."},
    {.path = "kubernetesMasterConfig.deployInProcess",
     .flag = "deploy-in-process",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     .daemons = MASTER_CONTROLLERS,
     MEMBER(deploy_in_process),
     .dflt = "false",
     .help = "whether the controllers do rollouts of DeploymentConfigs themselves",
     .detail = "Then no deployer pod is made, except for strategies with a container of the user "
               "(`customParams`). For small clusters, and for nodes without containers."},
    {.path = "kubernetesMasterConfig.localStorageClass",
     .flag = "local-storage-class",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     .daemons = MASTER_CONTROLLERS,
     MEMBER(local_class),
     .dflt = "false",
     .help = "whether the controllers make the storage class `local` as the default class",
     .detail = "Its volumes are directories of the nodes' disks. Claims without a class get them, "
               "and their pods stay on the node that has the volume."},
    {.path = "kubernetesMasterConfig.volumeSnapshots",
     .flag = "volume-snapshots",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     .daemons = MASTER_CONTROLLERS,
     MEMBER(snapshot_kinds),
     .dflt = "false",
     .help = "whether the controllers make the CustomResourceDefinitions of volume snapshots",
     .detail = "They are those of `snapshot.storage.k8s.io/v1`. The snapshots themselves are taken "
               "by the parts of a CSI driver."},
    {.path = "kubernetesMasterConfig.nodeMonitorGraceSeconds",
     .flag = "node-monitor-grace",
     .arg = "SECONDS",
     .type = OPTION_NUMBER,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(node_grace_s),
     .min = 1,
     .max = DAY_S,
     .dflt = "40",
     .help = "a node whose kubelet was silent for longer is unknown",
     .detail =
         "A kubelet renews its lease every 10 s. Pods leave an unknown node after the time that "
         "they tolerate, 300 s by default."},
    {.path = "kubernetesMasterConfig.terminatedPodThreshold",
     .flag = "terminated-pod-gc-threshold",
     .arg = "N",
     .type = OPTION_NUMBER,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(ended_pods),
     .min = 0,
     .max = 1000000,
     .dflt = "12500",
     .help = "pods that have ended and are kept; the oldest beyond are deleted",
     .detail = "With 0 all are kept."},
    {.path = "kubernetesMasterConfig.masterNodes",
     .flag = "master-node",
     .arg = "NAME,...",
     .type = OPTION_TEXTS,
     .items = "names of nodes",
     BOTH,
     MEMBER(master_nodes),
     .check = check_node_name,
     .unset = "the node with this host's name",
     .example = "master1.example.com",
     .help = "nodes that run on hosts of masters",
     .detail = "Only these can report the address of a master as their own."},

    /* The section servingInfo. */
    {.path = "servingInfo.bindAddress",
     .flag = "bind-address",
     .arg = "HOST:PORT",
     .type = OPTION_ENDPOINT,
     API,
     MEMBER(bind_address),
     .dflt = "127.0.0.1:8443",
     .help = "IPv4 address and port of the API; port 0: any free port",
     .detail = "Nodes must be able to connect to it. Set `tls: auto` before it is more than a "
               "loopback address: "
               "without HTTPS, every client that reaches the API controls the cluster."},
    {.path = "servingInfo.bindNetwork",
     API,
     .set = set_bind_network,
     .unset = "tcp4",
     .example = "tcp4",
     .help = "tcp4, the only one: addresses are IPv4"},
    {.path = "servingInfo.tls",
     .flag = "tls",
     .arg = "MODE",
     .type = OPTION_CHOICE,
     .choices = "auto off",
     API,
     MEMBER(tls),
     .unset = "off, or auto when pkiDir is given",
     .example = "auto",
     .help = "auto: HTTPS, with a certificate authority of the master's own; off: plain HTTP"},
    {.path = "servingInfo.pkiDir",
     .flag = "pki-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     API,
     MEMBER(pki_dir),
     .unset = "/var/lib/tenet/pki",
     .example = "/var/lib/tenet/pki",
     .help = "folder of the master's certificate authority; giving it means tls: auto",
     .detail =
         "The first start makes `ca.crt` and `ca.key`, `server.crt` and `server.key`, `sa.key` "
         "(the key of "
         "service accounts' tokens) and `admin.kubeconfig` (the user system:admin of the group "
         "system:masters, with a client certificate). What expires is renewed in time: at start, "
         "once a day "
         "and at SIGHUP. The authority (ten years) is never renewed."},
    {.path = "servingInfo.names",
     .type = OPTION_TEXTS,
     .items = "names and addresses",
     API,
     MEMBER(names),
     .check = check_host_name,
     .unset = "the address of bindAddress, or this host's first address if that is 0.0.0.0",
     .example = "api.example.com,192.0.2.1",
     .help = "further names and IPv4 addresses of the master, for its certificate",
     .detail = "The kubeconfigs connect to the first one."},
    {.path = "servingInfo.certFile",
     .flag = "tls-cert-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(cert_file),
     .unset = "none",
     .example = "/etc/tenet/server.crt",
     .help = "certificate of the API, for HTTPS",
     .detail = "PEM, with the certificates between it and its authority. Read again at SIGHUP."},
    {.path = "servingInfo.keyFile",
     .flag = "tls-key-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(key_file),
     .unset = "none",
     .example = "/etc/tenet/server.key",
     .help = "key of certFile",
     .detail = "PEM, without a password. Read again at SIGHUP."},
    {.path = "servingInfo.clientCA",
     .flag = "client-ca-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(client_ca),
     .unset = "none",
     .example = "/etc/tenet/client-ca.crt",
     .help = "authorities of clients' certificates, with certFile",
     .detail = "PEM. A client whose certificate is not valid is refused."},
    {.path = "servingInfo.namedCertificates",
     API,
     .set = set_named_certs,
     .read = read_named_certs,
     .resolve = resolve_named_certs,
     .unset = "none",
     .example = "[]",
     .yaml = " []",
     .help = "further certificates of the API, for clients that ask for one of their names (SNI)",
     .detail =
         "Each has `certFile`, `keyFile` and `names`, of which `*.example.com` stands for one "
         "label; without `names`, those of the certificate count. The files are read again "
         "at SIGHUP. Nothing else changes: the kubeconfigs connect to the first of "
         "servingInfo.names."},
    {.path = "servingInfo.minTLSVersion",
     .flag = "tls-min-version",
     .arg = "VERSION",
     .type = OPTION_CHOICE,
     .choices = "VersionTLS12 VersionTLS13",
     API,
     MEMBER(min_tls),
     .unset = "VersionTLS12",
     .example = "VersionTLS13",
     .help = "least version of TLS; versions before 1.2 are never served"},
    {.path = "servingInfo.cipherSuites",
     .flag = "tls-cipher-suites",
     .arg = "NAMES",
     .type = OPTION_TEXTS,
     .items = "names of cipher suites",
     API,
     MEMBER(ciphers),
     .check = tls_check_cipher,
     .unset = "all that can be named",
     .example = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_AES_256_GCM_SHA384",
     .help = "cipher suites of the API, by their names in IANA's registry",
     .detail = "Those of TLS 1.2 with ECDHE and AES-GCM or ChaCha20, and the three of TLS 1.3 that "
               "OpenSSL serves by default. A list without one of TLS 1.3 leaves that version all "
               "three; a list of those alone ends TLS 1.2."},
    {.path = "corsAllowedOrigins",
     .flag = "cors-allowed-origins",
     .arg = "ORIGINS",
     .type = OPTION_TEXTS,
     .items = "origins",
     API,
     MEMBER(cors_origins),
     .check = cors_check,
     .unset = "none",
     .example = "(?i)//127\\.0\\.0\\.1(:|\\z)",
     .help = "web sites whose pages may use the API by a browser (CORS)",
     .detail =
         "A host, with or without a port, is compared with the origin's. Anything else is a "
         "regular expression without commas, which matches anywhere in the origin: begin it "
         "with `//` and end it with `(:|\\z)`. The paths of the OAuth server are for no other "
         "site's pages."},
    {.path = "kubeletClientInfo.ca",
     .flag = "kubelet-certificate-authority",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(kubelet_ca),
     .unset = "servingInfo.clientCA",
     .example = "/etc/tenet/node-ca.crt",
     .help = "authorities of the certificates that nodes' servers present",
     .detail = "PEM. The certificate must be for the node's address, and its common name "
               "`system:node:NAME`. Read again at SIGHUP."},
    {.path = "kubeletClientInfo.certFile",
     .flag = "kubelet-client-certificate",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(kubelet_cert),
     .unset = "none",
     .example = "/etc/tenet/kubelet-client.crt",
     .help = "certificate of the API server as a client of nodes",
     .detail = "PEM. Logs, exec, attach and port-forward need it; with `tls: auto` it is made. "
               "Read again at SIGHUP."},
    {.path = "kubeletClientInfo.keyFile",
     .flag = "kubelet-client-key",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(kubelet_key),
     .unset = "none",
     .example = "/etc/tenet/kubelet-client.key",
     .help = "key of kubeletClientInfo.certFile",
     .detail = "PEM, without a password. Read again at SIGHUP."},
    {.path = "servingInfo.maxRequestsInFlight",
     .type = OPTION_NUMBER,
     API,
     .set = set_inflight,
     .help = "OpenShift's name of limits.maxRequestsInFlight; 0: no limit"},
    {.path = "servingInfo.requestTimeoutSeconds",
     .type = OPTION_NUMBER,
     API,
     .set = set_request_timeout,
     .help = "OpenShift's name of limits.requestTimeoutSeconds; -1: no limit"},
    {.path = "authorization.mode",
     .flag = "authorization-mode",
     .arg = "MODE",
     .type = OPTION_CHOICE,
     .choices = "RBAC AlwaysAllow",
     API,
     MEMBER(authorization_mode),
     .unset = "RBAC with HTTPS",
     .example = "RBAC",
     .help = "RBAC: roles and bindings say who may do what; AlwaysAllow: every known user may do "
             "everything",
     .detail = "This, authorization.anonymous, serviceAccountConfig and auditConfig need HTTPS. "
               "Without HTTPS "
               "every client of the master is trusted."},
    {.path = "authorization.anonymous",
     .flag = "anonymous-auth",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     API,
     .set = set_anonymous,
     .choices = "true false",
     .unset = "true with RBAC, false with AlwaysAllow",
     .example = "true",
     .help = "whether requests without a credential are accepted, as the user system:anonymous",
     .detail = "If not, they are answered with 401."},
    {.path = "projectConfig.defaultNodeSelector",
     .flag = "default-node-selector",
     .arg = "LABEL=VALUE,...",
     .daemons = MASTER_WHOLE,
     MEMBER(node_selector),
     .set = set_node_selector,
     .dflt = "",
     .example = "region=primary",
     .help = "nodes for the pods of projects that have no node selector of their own",
     .detail =
         "A project has its own by the annotation `openshift.io/node-selector` of its "
         "namespace; an empty one is none. With the API server apart the controllers need the "
         "same value: DaemonSets make pods on these nodes only."},
    {.path = "projectConfig.projectRequestMessage",
     API,
     MEMBER(project_message),
     .set = set_project_message,
     .dflt = "",
     .example = "To request a project, write to projects@example.com.",
     .help = "text for users who may not request a project",
     .detail = "Clients print it as it is. If it is empty, they print `You may not request a new "
               "project via this "
               "API.`."},
    {.path = "projectConfig.projectRequestTemplate",
     API,
     MEMBER(project_template),
     .set = set_project_template,
     .dflt = "",
     .example = "openshift/project-request",
     .help = "Template of requested projects, as NAMESPACE/NAME",
     .detail = "docs/projects.md says what it may contain. It is read at each request. Empty: the "
               "built-in one."},
    {.path = "projectConfig.securityAllocator.uidAllocatorRange",
     .flag = "uid-allocator-range",
     .arg = "FIRST-LAST/SIZE",
     API,
     .set = set_uid_range,
     .dflt = "1000000000-1999999999/10000",
     .example = "1000000000-1999999999/10000",
     .help = "user IDs of projects, and how many of them a project gets",
     .detail = "Each namespace gets the lowest free block when it is created; see docs/scc.md. "
               "Namespaces that exist keep theirs."},
    {.path = "projectConfig.securityAllocator.mcsAllocatorRange",
     .flag = "mcs-allocator-range",
     .arg = "SENSITIVITY:/COUNT[,CATEGORIES]",
     API,
     .set = set_level_range,
     .dflt = "s0:/2",
     .example = "s0:/2",
     .help = "SELinux levels of projects: how many of the categories a level has",
     .detail = "Without a number of CATEGORIES there are 1,024."},
    {.path = "projectConfig.securityAllocator.mcsLabelsPerProject",
     .flag = "mcs-labels-per-project",
     .arg = "N",
     .type = OPTION_NUMBER,
     API,
     MEMBER(blocks.per_project),
     .min = 1,
     .max = 1000,
     .dflt = "5",
     .example = "5",
     .help = "SELinux levels that are set aside for each project"},
    {.path = "routingConfig.subdomain",
     .flag = "routing-subdomain",
     .arg = "DOMAIN",
     API,
     MEMBER(routing_subdomain),
     .check = check_subdomain,
     .dflt = ROUTE_DEFAULT_SUBDOMAIN,
     .example = "apps.example.com",
     .help = "the domain of the host names that routes without one get",
     .detail = "The host is NAME-NAMESPACE.DOMAIN. Routes that exist keep theirs. See "
               "docs/routes.md."},
    {.path = "podSecurity.exemptUsernames",
     .type = OPTION_TEXTS,
     .items = "names of users",
     API,
     MEMBER(exempt_users),
     .unset = "none",
     .example = "system:serviceaccount:infra:agent",
     .help = "users whose pods are not judged by the Pod Security labels of namespaces",
     .detail = "The pods of a controller are made by the controller: exempting a user of "
               "Deployments exempts no pod. Security context constraints judge these pods all the "
               "same."},
    {.path = "podSecurity.exemptNamespaces",
     .type = OPTION_TEXTS,
     .items = "names of namespaces",
     API,
     MEMBER(exempt_namespaces),
     .check = check_namespace_name,
     .unset = "none",
     .example = "kube-system",
     .help = "namespaces whose pods are not judged by their Pod Security labels"},
    {.path = "podSecurity.exemptRuntimeClasses",
     .type = OPTION_TEXTS,
     .items = "names of RuntimeClasses",
     API,
     MEMBER(exempt_runtime_classes),
     .check = check_class_name,
     .unset = "none",
     .example = "sandboxed",
     .help = "RuntimeClasses whose pods are not judged by the Pod Security labels of namespaces"},
    {.path = "admissionConfig.pluginConfig",
     API,
     .set = set_plugins,
     .read = read_plugins,
     .resolve = admission_config_resolve,
     .idle_entry = admission_config_idle,
     .unset = "the default of each plug-in",
     .example = "{}",
     .yaml = " {}",
     .help = "admission plug-ins to turn on or off, and their settings",
     .detail =
         "A mapping of names to `configuration`, or to `location`, a file with the same. It is "
         "a document of the kind DefaultAdmissionConfig with `disable`, or of the plug-in's "
         "own kind; docs/admission.md has all plug-ins and keys."},
    {.path = "admissionConfig.pluginOrderOverride",
     .type = OPTION_TEXTS,
     .items = "names of admission plug-ins",
     API,
     .set = set_plugin_order,
     .unset = "the default order",
     .example = "NamespaceLifecycle",
     .help = "admission plug-ins in the order in which they run; others are off",
     .detail = "It is not to be set. Plug-ins that no configuration can turn off run all the same, "
               "before the listed ones."},
    {.path = "admissionConfig.nodeSelectorLabelBlacklist",
     .flag = "node-selector-label-blacklist",
     .arg = "LABEL,...",
     .type = OPTION_TEXTS,
     API,
     MEMBER(node_label_blacklist),
     .unset = "no constraints",
     .example = "kubernetes.io/hostname",
     .help = "labels that users may not name in the nodeSelector of pods",
     .detail = "With a label users may not set nodeName either. Users who may create "
               "`pods/binding` are exempt. It is PodNodeConstraints of OpenShift."},
    {.path = "admissionConfig.disabledPlugins",
     .flag = "disable-admission-plugins",
     .arg = "NAME,...",
     .type = OPTION_TEXTS,
     API,
     MEMBER(disabled_admission),
     .check = check_admission_plugin,
     .unset = "none",
     .example = "RestrictedNodePorts",
     .help = "admission plug-ins that do not run",
     .detail = "Plug-ins without which users or nodes could get the rights of others cannot be "
               "disabled. The log names all at start; docs/admission.md says what each does."},
    {.path = "serviceAccountConfig.privateKeyFile",
     .flag = "service-account-signing-key-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(sa_private_key),
     .unset = "sa.key of servingInfo.pkiDir",
     .example = "/var/lib/tenet/pki/sa.key",
     .help = "key that signs the tokens of service accounts",
     .detail = "PEM; P-256, or RSA of 2048 bits and more."},
    {.path = "serviceAccountConfig.publicKeyFiles",
     .type = OPTION_TEXTS,
     .files = true,
     API,
     MEMBER(sa_public_keys),
     .unset = "none",
     .example = "/etc/tenet/sa-old.pub",
     .help = "files with more keys by which tokens of service accounts may be signed"},
    {.path = "serviceAccountConfig.managedNames",
     .type = OPTION_TEXTS,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(sa_managed_names),
     .check = check_account_name,
     .unset = "default, builder, deployer",
     .example = "default,builder,deployer",
     .help = "service accounts that each namespace has"},
    {.path = "serviceAccountConfig.limitSecretReferences",
     .type = OPTION_BOOL,
     API,
     MEMBER(limit_secret_references),
     .dflt = "false",
     .help =
         "whether the pods of every service account may refer only to the Secrets that it lists",
     .detail = "Without it, this holds for accounts with the annotation "
               "`kubernetes.io/enforce-mountable-secrets`."},
    {.path = "oauthConfig.identityProviders",
     API,
     .set = set_providers,
     .read = read_providers,
     .resolve = oauth_config_resolve_files,
     .unset = "no OAuth server",
     .example = "[]",
     .yaml = " []",
     .help = "how people prove who they are; with one the OAuth server is on",
     .detail = "Each has `name`, `challenge`, `login`, `mappingMethod` and `provider` with its "
               "`kind`; docs/oauth.md describes the kinds. It needs HTTPS. Read again at SIGHUP, "
               "as are all keys of oauthConfig."},
    {.path = "oauthConfig.masterPublicURL",
     .type = OPTION_TEXT,
     API,
     MEMBER(oauth.public_url),
     .check = check_public_url,
     .unset = "https:// and the address of the API",
     .example = "https://master.example.com:8443",
     .help = "URL at which browsers and clients reach the master; the issuer of tokens"},
    {.path = "oauthConfig.assetPublicURL",
     .type = OPTION_TEXT,
     API,
     MEMBER(oauth.asset_url),
     .check = check_asset_url,
     .unset = "none",
     .example = "https://console.example.com/console/",
     .help = "URL of the web console, to which a logout may lead"},
    {.path = "oauthConfig.alwaysShowProviderSelection",
     .type = OPTION_BOOL,
     API,
     MEMBER(oauth.always_select),
     .dflt = "false",
     .help = "whether the page to choose a provider is shown when there is only one"},
    {.path = "oauthConfig.grantConfig.method",
     .type = OPTION_CHOICE,
     .choices = "auto prompt deny",
     API,
     MEMBER(oauth.grant),
     .dflt = "auto",
     .help = "what is done when a user has not allowed a client without grantMethod yet"},
    {.path = "oauthConfig.grantConfig.serviceAccountMethod",
     .type = OPTION_CHOICE,
     .choices = "prompt deny",
     API,
     MEMBER(oauth.sa_grant),
     .dflt = "prompt",
     .help = "the same for service accounts"},
    {.path = "oauthConfig.sessionConfig.sessionSecretsFile",
     .type = OPTION_FILE,
     API,
     MEMBER(oauth.session_secrets),
     .unset = "keys that all masters share by a Secret",
     .example = "/etc/tenet/session-secrets.yaml",
     .help = "file of kind SessionSecrets: the first secrets seal sessions, all open them"},
    {.path = "oauthConfig.sessionConfig.sessionMaxAgeSeconds",
     .type = OPTION_NUMBER,
     API,
     MEMBER(oauth.session_s),
     .min = 1,
     .max = 86400,
     .dflt = "300",
     .help = "seconds after which a login must have led to a token"},
    {.path = "oauthConfig.sessionConfig.sessionName",
     .type = OPTION_TEXT,
     API,
     MEMBER(oauth.session_name),
     .check = check_cookie_name,
     .dflt = "ssn",
     .help = "name of the cookie that has the session"},
    {.path = "oauthConfig.tokenConfig.authorizeTokenMaxAgeSeconds",
     .type = OPTION_NUMBER,
     API,
     MEMBER(oauth.code_s),
     .min = 1,
     .max = 3600,
     .dflt = "300",
     .help = "seconds within which a code must be exchanged"},
    {.path = "oauthConfig.tokenConfig.accessTokenMaxAgeSeconds",
     .type = OPTION_NUMBER,
     API,
     MEMBER(oauth.token_s),
     .min = 0,
     .max = INT32_MAX,
     .dflt = "86400",
     .help = "seconds after which tokens end, unless their client has a time of its own; 0: never"},
    {.path = "oauthConfig.tokenConfig.accessTokenInactivityTimeoutSeconds",
     .type = OPTION_NUMBER,
     API,
     MEMBER(oauth.inactivity_s),
     .min = 0,
     .max = INT32_MAX,
     .dflt = "0",
     .help = "seconds without use after which tokens end, 300 or more; 0: they do not"},
    {.path = "oauthConfig.templates.login",
     .type = OPTION_FILE,
     API,
     MEMBER(oauth.login_template),
     .unset = "the built-in page",
     .example = "/etc/tenet/login.html",
     .help = "template of the page with name and password",
     .detail = "Templates of OpenShift work as far as docs/oauth.md says."},
    {.path = "oauthConfig.templates.providerSelection",
     .type = OPTION_FILE,
     API,
     MEMBER(oauth.selection_template),
     .unset = "the built-in page",
     .example = "/etc/tenet/providers.html",
     .help = "template of the page to choose a provider"},
    {.path = "oauthConfig.templates.error",
     .type = OPTION_FILE,
     API,
     MEMBER(oauth.error_template),
     .unset = "the built-in page",
     .example = "/etc/tenet/error.html",
     .help = "template of the page that shows an error"},
    {.path = "auditConfig.enabled",
     .type = OPTION_BOOL,
     API,
     MEMBER(audit_enabled),
     .dflt = "true",
     .help = "whether auditFilePath and policyFile count"},
    {.path = "auditConfig.auditFilePath",
     .flag = "audit-log-path",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(audit_path),
     .unset = "no audit log",
     .example = "/var/log/tenet/audit.log",
     .help = "audit log"},
    {.path = "auditConfig.policyFile",
     .flag = "audit-policy-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     API,
     MEMBER(audit_policy),
     .unset = "the metadata of each request",
     .example = "/etc/tenet/audit-policy.yaml",
     .help = "policy of audit.k8s.io/v1: what the audit log has",
     .detail = "Read again at SIGHUP."},
    {.path = "auditConfig.maximumFileSizeMegabytes",
     .type = OPTION_NUMBER,
     API,
     MEMBER(audit_max_mb),
     .min = 1,
     .max = 1048576,
     .dflt = "100",
     .help = "size at which the audit log begins a new file"},
    {.path = "auditConfig.maximumRetainedFiles",
     .type = OPTION_NUMBER,
     API,
     MEMBER(audit_max_files),
     .min = 1,
     .max = 10000,
     .dflt = "10",
     .help = "how many older files of the audit log are kept"},

    /* The section storage, which keeps the registry. */
    {.path = "storage.backend",
     .flag = "storage-backend",
     .arg = "NAME",
     .type = OPTION_CHOICE,
     .choices = "sqlite etcd memory",
     STORAGE,
     MEMBER(storage_backend),
     .dflt = "sqlite",
     .help = "sqlite, etcd, or memory, which loses everything when the master stops"},
    {.path = "storage.path",
     .flag = "storage-path",
     .arg = "FILE",
     .type = OPTION_FILE,
     STORAGE,
     MEMBER(storage_path),
     .dflt = "/var/lib/tenet/registry.db",
     .help = "database file of sqlite"},
    {.path = "storage.reserveMB",
     .type = OPTION_NUMBER,
     API,
     MEMBER(storage_reserve_mb),
     .min = 0,
     .max = 65536,
     .dflt = "64",
     .help = "megabytes of the disk that are kept for deletions, and for writes that do not grow, "
             "when the "
             "disk of sqlite's file is full; 0: none"},
    {.path = "storage.encryptionConfig",
     .flag = "encryption-provider-config",
     .arg = "FILE",
     .type = OPTION_FILE,
     STORAGE,
     MEMBER(encryption_config),
     .help =
         "EncryptionConfiguration (apiserver.config.k8s.io/v1): which kinds are encrypted in the "
         "store, and with which keys"},
    {.path = "storage.endpoints",
     .flag = "storage-endpoints",
     .arg = "URL,...",
     .type = OPTION_TEXT,
     STORAGE,
     MEMBER(storage_endpoints),
     .unset = "none",
     .example = "http://127.0.0.1:2379",
     .help = "servers of etcd, with commas between: https://host:port or http://host:port"},
    {.path = "etcdClientInfo.urls",
     .type = OPTION_LIST,
     .items = "URLs",
     .not_empty = true,
     API,
     MEMBER(storage_endpoints),
     .unset = "none",
     .example = "https://etcd1:2379,https://etcd2:2379,https://etcd3:2379",
     .help = "servers of etcd as a list; makes etcd the backend"},
    {.path = "etcdClientInfo.ca",
     .flag = "etcd-ca-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     STORAGE,
     MEMBER(etcd_ca),
     .unset = "the system's authorities",
     .example = "/etc/tenet/etcd-ca.crt",
     .help = "authorities of etcd's certificates"},
    {.path = "etcdClientInfo.certFile",
     .flag = "etcd-cert-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     STORAGE,
     MEMBER(etcd_cert),
     .unset = "none",
     .example = "/etc/tenet/etcd-client.crt",
     .help = "the master's certificate for etcd"},
    {.path = "etcdClientInfo.keyFile",
     .flag = "etcd-key-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     STORAGE,
     MEMBER(etcd_key),
     .unset = "none",
     .example = "/etc/tenet/etcd-client.key",
     .help = "key of the master's certificate for etcd"},
    {.path = "controllerConfig.clusterSigningCertFile",
     .flag = "cluster-signing-cert-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(signing_cert),
     .unset = "with tls: auto the master's own authority, else none: no certificate is signed",
     .example = "/etc/tenet/pki/ca.crt",
     .help = "certificate of the authority that signs the certificates which nodes and users ask "
             "for"},
    {.path = "controllerConfig.clusterSigningKeyFile",
     .flag = "cluster-signing-key-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(signing_key),
     .unset = "none",
     .example = "/etc/tenet/pki/ca.key",
     .help = "key of that authority"},
    {.path = "controllerConfig.statusBindAddress",
     .flag = "status-bind-address",
     .arg = "ADDRESS:PORT",
     .type = OPTION_TEXT,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(status_address),
     .check = check_status_address,
     .dflt = "127.0.0.1:8444",
     .help = "where `tenet controllers` serves /healthz, /readyz and /metrics over plain HTTP, or "
             "none",
     .detail = "In `tenet master` and `tenet apiserver` they are served with the API."},
    {.path = "controllerLeaseTTL",
     .flag = "controller-lease-ttl",
     .arg = "SECONDS",
     .type = OPTION_NUMBER,
     .daemons = MASTER_CONTROLLERS,
     MEMBER(lease_ttl_s),
     .min = 3,
     .max = 3600,
     .dflt = "15",
     .help = "with etcd: seconds after which another master's controllers replace those of a "
             "master that "
             "died"},

    /* The section dnsConfig. */
    {.path = "dnsConfig.bindAddress",
     .flag = "dns-bind-address",
     .arg = "ADDRESS[:PORT]",
     .type = OPTION_TEXT,
     API,
     MEMBER(dns.bind_address),
     .unset = "the address of servingInfo.bindAddress, port 53",
     .example = "127.0.0.1:53",
     .help = "IPv4 address where DNS queries for the cluster's names are answered, over UDP and "
             "TCP, or none",
     .detail = "A port that is not free is reported and tried again. Nodes answer the queries of "
               "their pods "
               "themselves."},
    {.path = "dnsConfig.bindNetwork",
     API,
     .set = set_bind_network,
     .unset = "tcp4",
     .example = "tcp4",
     .help = "tcp4, the only one: addresses are IPv4"},
    {.path = "dnsConfig.allowRecursiveQueries",
     .type = OPTION_BOOL,
     API,
     MEMBER(dns.recursive),
     .dflt = "false",
     .help =
         "whether every client may ask for names outside the cluster; if not, only pods and this "
         "host"},
    {.path = "dnsConfig.isolateProjects",
     .flag = "dns-isolate-projects",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     API,
     MEMBER(dns.isolate),
     .dflt = "false",
     .help = "under redhat/openshift-ovs-multitenant: whether only names of global projects are "
             "answered",
     .detail = "No client of the master is known to be a pod of a project."},
    {.path = "dnsConfig.domain",
     .type = OPTION_TEXT,
     API,
     MEMBER(dns.domain),
     .unset = "cluster.local",
     .example = "cluster.local",
     .help = "domain of the cluster's names"},
    {.path = "dnsConfig.nameservers",
     .type = OPTION_LIST,
     .items = "addresses",
     API,
     MEMBER(dns.nameservers),
     .unset = "those of /etc/resolv.conf",
     .example = "192.0.2.53,192.0.2.54:5353",
     .help = "name servers for names outside the cluster: ADDRESS[:PORT]"},

    /* Flags of "openshift start master", for scripts that have them. */
    {.flag = "master",
     .arg = "URL",
     API,
     .set = add_name,
     .help = "OpenShift's flag: the host is added to servingInfo.names"},
    {.flag = "public-master",
     .arg = "URL",
     API,
     .set = add_name,
     .help = "OpenShift's flag: the host is added to servingInfo.names"},
    {.flag = "listen",
     .arg = "URL",
     API,
     .set = set_listen,
     .help = "OpenShift's flag: sets servingInfo.bindAddress, with https:// servingInfo.tls, too"},
    {.flag = "etcd",
     .arg = "URL,...",
     API,
     .set = set_etcd,
     .help = "OpenShift's flag: sets storage.endpoints and storage.backend"},
    {.flag = "etcd-dir",
     .arg = "DIR",
     API,
     .set = set_etcd_dir,
     .help = "OpenShift's flag: the folder of storage.path"},
    {.flag = "dns",
     .arg = "ADDRESS:PORT",
     API,
     .set = set_dns,
     .help = "OpenShift's flag: sets dnsConfig.bindAddress"},
    {.flag = "network-cidr",
     .arg = "CIDR",
     BOTH,
     .set = set_network,
     .help = "OpenShift's flag: the same as --cluster-network"},
    {.flag = "network-plugin",
     .arg = "NAME",
     BOTH,
     .set = set_plugin,
     .help = "OpenShift's flag: the same as --plugin"},
    {.flag = "portal-net",
     .arg = "CIDR",
     BOTH,
     .set = set_service_network,
     .help = "OpenShift's flag: the same as --service-network"},
    {.flag = "images",
     .arg = "FORMAT",
     API,
     .set = set_images,
     .help = "OpenShift's flag: read without effect, with a warning"},

    /* The limits of clients. */
    {.flag = "limit",
     .arg = "NAME=VALUE",
     API,
     .set = set_limit,
     .help = "sets limits.NAME (may be repeated)"},
    {LIMIT("maxConnections", LIMIT_CONNS, 1, 1000000, "20000"),
     .help = "open connections; when there are more, idle ones are closed first"},
    {LIMIT("maxConnectionsPerClient", LIMIT_CONNS_CLIENT, 1, 1000000, "10000"),
     .help = "open connections from one address"},
    {LIMIT("maxStreamsPerConnection", LIMIT_STREAMS, 1, 10000, "250"),
     .help = "concurrent requests on an HTTP/2 connection"},
    {LIMIT("maxHeaderBytes", LIMIT_HEADER_BYTES, 4096, 1 << 20, "32768"),
     .help = "size of a request's header; more is answered with 431"},
    {LIMIT("maxURIBytes", LIMIT_URI_BYTES, 1024, 1 << 20, "16384"),
     .help = "size of a request's URI; more is answered with 414"},
    {LIMIT("maxBodyBytes", LIMIT_BODY_BYTES, 1024, 64 << 20, "3145728"),
     .help = "size of a request's body; more is answered with 413"},
    {LIMIT("headerTimeoutSeconds", LIMIT_HEADER_S, 1, DAY_S, "15"),
     .help = "time to receive a request's header, or for a TLS handshake; then 408"},
    {LIMIT("bodyTimeoutSeconds", LIMIT_BODY_S, 1, DAY_S, "30"),
     .help = "time to receive a request's body; then 408"},
    {LIMIT("idleTimeoutSeconds", LIMIT_IDLE_S, 1, DAY_S, "90"),
     .help = "how long a connection may be idle between requests"},
    {LIMIT("writeTimeoutSeconds", LIMIT_WRITE_S, 1, DAY_S, "30"),
     .help = "time for a client to receive the next 16 KiB of a response"},
    {LIMIT("maxRequestsInFlight", LIMIT_INFLIGHT, 1, 1000000, "400"),
     .help = "concurrent requests, divided between the priority levels; more wait in the queue of "
             "their "
             "level",
     .detail = "Administrators and health checks do not wait."},
    {LIMIT("maxRequestsQueued", LIMIT_QUEUED, 1, 1000000, "1024"),
     .help = "requests that wait in the queue of each priority level; more are answered with 429"},
    {LIMIT("queueTimeoutSeconds", LIMIT_QUEUE_S, 1, DAY_S, "15"),
     .help = "how long a request waits in a queue; then 429"},
    {LIMIT("maxWatches", LIMIT_WATCHES, 1, 1000000, "50000"),
     .help = "concurrent watches; more are answered with 429"},
    {LIMIT("requestTimeoutSeconds", LIMIT_WATCH_S, 0, DAY_S, "0"),
     .help = "length of a watch that names no time; 0: 30 to 60 minutes"},
    {LIMIT("shutdownDelaySeconds", LIMIT_SHUTDOWN_DELAY_S, 0, DAY_S, "0"),
     .help = "at SIGTERM, how long requests are served while /readyz already fails"},
    {LIMIT("shutdownTimeoutSeconds", LIMIT_SHUTDOWN_S, 1, DAY_S, "20"),
     .help = "at SIGTERM, time for requests that are under way"},

    {.path = "logFormat",
     .flag = "log-format",
     .arg = "FORMAT",
     .type = OPTION_CHOICE,
     .choices = "text json",
     BOTH,
     MEMBER(log_format),
     .unset = "$TENET_LOG_FORMAT, or text",
     .example = "json",
     .help = "text, or json: an object a line, whose members docs/logs.md lists",
     .detail = "Read again at SIGHUP."},
    {.path = "logLevel",
     .flag = "log-level",
     .arg = "SPEC",
     .type = OPTION_TEXT,
     BOTH,
     MEMBER(log_level),
     .unset = "$TENET_LOG, or info",
     .example = "info",
     .help = "error, warn, info or debug, and levels of modules after it: info,subnets=debug",
     .detail = "Read again at SIGHUP."},
};

const struct option_table master_options = {
    .kind = "MasterConfig",
    .rows = rows,
    .n = ARRAY_SIZE(rows),
    .alias = master_alias,
    .idle = master_idle,
    .findings = offsetof(struct master_config, findings),
};
