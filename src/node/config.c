/* SPDX-License-Identifier: Apache-2.0 */
#include "node/config.h"

#include "api/kind.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/datapath.h"
#include "dns/resolv.h"
#include "dns/zone.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <net/if.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_FILE (1024 * 1024)
#define SOCKET_NAME "/agent.sock" /* The longest of those in it. */

static int set_string(char **slot, const char *value)
{
    free(*slot);
    *slot = xstrdup(value);
    return 0;
}

static int set_node_name(struct node_config *c, const char *v, struct err *e)
{
    const char *why = api_check_dns_subdomain(v);
    return why ? err_set(e, -EINVAL, "\"%s\": %s", v, why) : set_string(&c->node_name, v);
}

static int set_node_ip(struct node_config *c, const char *v, struct err *e)
{
    uint32_t ip;
    if (ip4_parse(v, &ip) < 0) {
        return err_set(e, -EINVAL, "\"%s\" is not an IPv4 address", v);
    }
    if (ip == 0 || ip >> 24 == 127 || ip >> 28 >= 14) {
        return err_set(e, -EINVAL, "%s cannot be the address of a host", v);
    }
    c->node_ip = ip;
    return 0;
}

static int set_kubeconfig(struct node_config *c, const char *v, struct err *e)
{
    return set_string(&c->kubeconfig, v);
}

static int set_bootstrap(struct node_config *c, const char *v, struct err *e)
{
    return set_string(&c->bootstrap_kubeconfig, v);
}

static int set_servers(struct node_config *c, const char *v, struct err *e)
{
    for (const char *p = v; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (!str_has_prefix(p, "https://") && !str_has_prefix(p, "http://")) {
            return err_set(e, -EINVAL,
                           "\"%s\" is not a list of URLs such as "
                           "https://10.0.0.1:8443,https://10.0.0.2:8443",
                           v);
        }
    }
    return set_string(&c->servers, v);
}

static int set_plugin(struct node_config *c, const char *v, struct err *e)
{
    enum sdn_plugin p;
    int r = sdn_plugin_parse(v, &p, e);
    return r < 0 ? r : set_string(&c->plugin_name, v);
}

static int set_mtu(struct node_config *c, const char *v, struct err *e)
{
    uint64_t mtu;
    if (str_to_u64(v, 65535, &mtu) < 0 || mtu < 576) {
        return err_set(e, -EINVAL, "%s is not in 576-65535", v);
    }
    c->mtu = (uint32_t) mtu;
    return 0;
}

static int check_absolute(const char *v, struct err *e)
{
    return *v == '/' ? 0 : err_set(e, -EINVAL, "\"%s\" is not an absolute path", v);
}

static int set_run_dir(struct node_config *c, const char *v, struct err *e)
{
    size_t max = sizeof(((struct sockaddr_un *) 0)->sun_path) - sizeof SOCKET_NAME;
    if (strlen(v) > max) {
        return err_set(e, -EINVAL, "\"%s\" is longer than %zu characters, too long for the socket",
                       v, max);
    }
    int r = check_absolute(v, e);
    return r < 0 ? r : set_string(&c->run_dir, v);
}

static int set_cni_conf_dir(struct node_config *c, const char *v, struct err *e)
{
    int r = check_absolute(v, e);
    return r < 0 ? r : set_string(&c->cni_conf_dir, v);
}

static int set_cni_conf_name(struct node_config *c, const char *v, struct err *e)
{
    if (strchr(v, '/') || !str_has_suffix(v, ".conf") || *v == '.') {
        return err_set(e, -EINVAL, "\"%s\" is not a file name that ends with .conf", v);
    }
    return set_string(&c->cni_conf_name, v);
}

/* "portmap,bandwidth", or "none". */
static int set_cni_plugins(struct node_config *c, const char *v, struct err *e)
{
    bool portmap = false, bandwidth = false;
    for (const char *p = v; !streq(v, "none"); p++) {
        size_t n = strcspn(p, ",");
        if (n == 7 && strncmp(p, "portmap", n) == 0) {
            portmap = true;
        } else if (n == 9 && strncmp(p, "bandwidth", n) == 0) {
            bandwidth = true;
        } else {
            return err_set(e, -EINVAL, "\"%.*s\" cannot be chained; portmap and bandwidth can",
                           (int) MIN(n, 100), p);
        }
        p += n;
        if (!*p) {
            break;
        }
    }
    c->chain_portmap = portmap;
    c->chain_bandwidth = bandwidth;
    return 0;
}

static int set_datapath(struct node_config *c, const char *v, struct err *e)
{
    if (!streq(v, "ovs") && !streq(v, "ebpf")) {
        return err_set(e, -EINVAL, "\"%s\" is not a datapath; there are: ovs, ebpf", v);
    }
    return set_string(&c->datapath, v);
}

static int set_ebpf_without(struct node_config *c, const char *v, struct err *e)
{
    int r = datapath_check_without(v, e);
    return r < 0 ? r : set_string(&c->ebpf_without, v);
}

static int set_ebpf_max_entries(struct node_config *c, const char *v, struct err *e)
{
    uint64_t n;
    if (str_to_u64(v, UINT32_MAX, &n) < 0 || n == 0) {
        return err_set(e, -EINVAL, "\"%s\" is not a number from 1 on", v);
    }
    c->ebpf_max_entries = (uint32_t) n;
    return 0;
}

static int set_ovs_database(struct node_config *c, const char *v, struct err *e)
{
    int r = check_absolute(v, e);
    return r < 0 ? r : set_string(&c->ovs_database, v);
}

static int set_ovs_run_dir(struct node_config *c, const char *v, struct err *e)
{
    int r = check_absolute(v, e);
    return r < 0 ? r : set_string(&c->ovs_run_dir, v);
}

static int set_ovs_bridge(struct node_config *c, const char *v, struct err *e)
{
    bool ok = strlen(v) < IF_NAMESIZE && !streq(v, ".") && !streq(v, "..");
    for (const char *p = v; *p; p++) {
        ok = ok && *p > ' ' && *p <= '~' && *p != '/' && *p != ':';
    }
    if (!ok) {
        return err_set(e, -EINVAL, "\"%s\" is not the name of an interface", v);
    }
    return set_string(&c->ovs_bridge, v);
}

static int set_ovs_datapath_type(struct node_config *c, const char *v, struct err *e)
{
    if (!streq(v, "system") && !streq(v, "netdev")) {
        return err_set(e, -EINVAL, "\"%s\" is neither system nor netdev", v);
    }
    return set_string(&c->ovs_datapath_type, v);
}

/* "iptables" is what OpenShift's configurations say. */
static int set_proxy_mode(struct node_config *c, const char *v, struct err *e)
{
    if (!streq(v, "iptables") && !streq(v, "nftables") && !streq(v, "userspace")) {
        return err_set(e, -EINVAL, "\"%s\" is not iptables, nftables or userspace", v);
    }
    c->proxy_userspace = streq(v, "userspace");
    return 0;
}

static int set_metrics_address(struct node_config *c, const char *v, struct err *e)
{
    const char *colon = strrchr(v, ':');
    CLEANUP_FREE char *host = colon ? xstrndup(v, (size_t) (colon - v)) : NULL;
    uint64_t port;
    uint32_t ip;
    if (!colon || str_to_u64(colon + 1, 65535, &port) < 0 || port == 0 ||
        (ip4_parse(host, &ip) < 0 && !streq(host, "localhost"))) {
        return err_set(e, -EINVAL, "\"%s\" is not ADDRESS:PORT", v);
    }
    return set_string(&c->metrics_address, v);
}

static int set_dns_domain(struct node_config *c, const char *v, struct err *e)
{
    const char *why = api_check_dns_subdomain(v);
    if (why || strlen(v) > DNS_DOMAIN_MAX) {
        return err_set(e, -EINVAL, "\"%s\": %s", v, why ? why : "is too long");
    }
    return set_string(&c->dns_domain, v);
}

static int set_dns_bind_address(struct node_config *c, const char *v, struct err *e)
{
    union dns_endpoint a;
    if (!streq(v, "none") && (dns_endpoint_parse(v, &a, NULL) < 0 || a.any.sa_family != AF_INET)) {
        return err_set(e, -EINVAL, "\"%s\" is neither ADDRESS[:PORT] nor none", v);
    }
    return set_string(&c->dns_bind_address, v);
}

static int set_dns_ip(struct node_config *c, const char *v, struct err *e)
{
    uint32_t ip;
    if (ip4_parse(v, &ip) < 0 || ip == 0) {
        return err_set(e, -EINVAL, "\"%s\" is not an IPv4 address", v);
    }
    c->dns_ip = ip;
    return 0;
}

static int set_dns_nameservers(struct node_config *c, const char *v, struct err *e)
{
    struct dns_servers s;
    int r = streq(v, "none") ? 0 : dns_servers_parse(v, &s, e);
    return r < 0 ? r : set_string(&c->dns_nameservers, v);
}

static int set_dns_resolv_conf(struct node_config *c, const char *v, struct err *e)
{
    return set_string(&c->dns_resolv_conf, v);
}

static int set_dns_isolate_projects(struct node_config *c, const char *v, struct err *e)
{
    if (!streq(v, "true") && !streq(v, "false")) {
        return err_set(e, -EINVAL, "\"%s\" is neither true nor false", v);
    }
    c->dns_isolate_projects = streq(v, "true");
    return 0;
}

static int set_log_level(struct node_config *c, const char *v, struct err *e)
{
    return set_string(&c->log_level, v);
}

struct key_def {
    bool is_path; /* Relative ones are taken from the file's folder. */
    int (*set)(struct node_config *c, const char *v, struct err *e);
};
static const struct key_def defs[] = {
    {false, set_node_name},
    {false, set_node_ip},
    {true, set_kubeconfig},
    {false, set_servers},
    {true, set_bootstrap},
    {false, set_plugin},
    {false, set_mtu},
    {true, set_run_dir},
    {true, set_cni_conf_dir},
    {false, set_cni_conf_name},
    {false, set_cni_plugins},
    {false, set_datapath},
    {false, set_ebpf_without},
    {false, set_ebpf_max_entries},
    {true, set_ovs_database},
    {true, set_ovs_run_dir},
    {false, set_ovs_bridge},
    {false, set_ovs_datapath_type},
    {false, set_proxy_mode},
    {false, set_metrics_address},
    {false, set_log_level},
    {false, set_dns_domain},
    {false, set_dns_bind_address},
    {false, set_dns_ip},
    {false, set_dns_nameservers},
    {true, set_dns_resolv_conf},
    {false, set_dns_isolate_projects},
};
const struct node_config_key node_config_keys[] = {
    {"nodeName", "node-name"},
    {"nodeIP", "node-ip"},
    {"masterKubeConfig", "master-kubeconfig"},
    {"masterServers", "master-servers"},
    {"bootstrapKubeConfig", "bootstrap-kubeconfig"},
    {"networkConfig.networkPluginName", "plugin"},
    {"networkConfig.mtu", "mtu"},
    {"runDir", "run-dir"},
    {"cniConfDir", "cni-conf-dir"},
    {"cniConfName", "cni-conf-name"},
    {"cniPlugins", "cni-plugins"},
    {"networkConfig.datapath", "datapath"},
    {"ebpf.without", "ebpf-without"},
    {"ebpf.maxEntries", "ebpf-max-entries"},
    {"ovs.database", "ovs-database"},
    {"ovs.runDir", "ovs-run-dir"},
    {"ovs.bridge", "ovs-bridge"},
    {"ovs.datapathType", "ovs-datapath-type"},
    {"proxyArguments.proxy-mode", "proxy-mode"},
    {"metricsBindAddress", "metrics-bind-address"},
    {"logLevel", "log-level"},
    {"dnsDomain", "dns-domain"},
    {"dnsBindAddress", "dns-bind-address"},
    {"dnsIP", "dns-ip"},
    {"dnsNameservers", "dns-nameservers"},
    {"dnsRecursiveResolvConf", "dns-resolv-conf"},
    {"dnsIsolateProjects", "dns-isolate-projects"},
    {NULL, NULL},
};
static_assert(ARRAY_SIZE(defs) + 1 == ARRAY_SIZE(node_config_keys), "one entry a key");

void node_config_init(struct node_config *c)
{
    *c = (struct node_config){0};
}

void node_config_done(struct node_config *c)
{
    free(c->node_name);
    free(c->kubeconfig);
    free(c->bootstrap_kubeconfig);
    free(c->servers);
    free(c->plugin_name);
    free(c->run_dir);
    free(c->cni_conf_dir);
    free(c->cni_conf_name);
    free(c->datapath);
    free(c->ebpf_without);
    free(c->ovs_database);
    free(c->ovs_run_dir);
    free(c->ovs_bridge);
    free(c->ovs_datapath_type);
    free(c->metrics_address);
    free(c->log_level);
    free(c->dns_domain);
    free(c->dns_bind_address);
    free(c->dns_nameservers);
    free(c->dns_resolv_conf);
    node_config_init(c);
}

static int set_by_index(struct node_config *c, size_t i, const char *value, struct err *e)
{
    struct err inner = {0};
    int r = *value ? defs[i].set(c, value, &inner) : err_set(&inner, -EINVAL, "is empty");
    return r < 0 ? err_set(e, r, "%s: %s", node_config_keys[i].key, inner.text) : 0;
}

int node_config_set(struct node_config *c, const char *key, const char *value, struct err *e)
{
    for (size_t i = 0; node_config_keys[i].key; i++) {
        if (streq(node_config_keys[i].key, key)) {
            return set_by_index(c, i, value, e);
        }
    }
    return err_set(e, -EINVAL, "%s: there is no such key", key);
}

/* Whether some key lies below 'path' ("networkConfig"). */
static bool is_section(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; node_config_keys[i].key; i++) {
        const char *key = node_config_keys[i].key;
        if (strncmp(key, path, n) == 0 && key[n] == '.') {
            return true;
        }
    }
    return false;
}

/* A list of texts with commas in between; NULL: it is none. */
static char *join_list(const struct json *v)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, v) {
        if (!json_is(item, JSON_STRING)) {
            return NULL;
        }
        strbuf_addf(&out, "%s%s", out.size ? "," : "", json_get_string(item));
    }
    return out.size ? strbuf_steal(&out) : xstrdup("none");
}

static int apply(struct node_config *c, const char *path, const struct json *v, const char *dir,
                 struct err *e)
{
    if (is_section(path)) {
        return json_is(v, JSON_NULL) || json_is(v, JSON_OBJECT)
                   ? 0
                   : err_set(e, -EINVAL, "%s: is not a mapping", path);
    }
    for (size_t i = 0; node_config_keys[i].key; i++) {
        if (!streq(node_config_keys[i].key, path)) {
            continue;
        }
        const char *s = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
        if (defs[i].set == set_dns_isolate_projects && json_is(v, JSON_BOOL)) {
            s = json_get_bool(v, false) ? "true" : "false";
        }
        CLEANUP_FREE char *joined = NULL;
        bool list = defs[i].set == set_cni_plugins || defs[i].set == set_dns_nameservers ||
                    defs[i].set == set_proxy_mode;
        if (defs[i].set == set_dns_nameservers && json_is(v, JSON_ARRAY) && !json_count(v)) {
            return 0; /* As if it were not there. */
        }
        if (list && json_is(v, JSON_ARRAY)) {
            s = joined = join_list(v);
        }
        if (!s) {
            return err_set(e, -EINVAL, "%s: is not a text", path);
        }
        if (defs[i].is_path && *s && *s != '/' && dir) {
            s = joined = xasprintf("%s/%s", dir, s);
        }
        return set_by_index(c, i, s, e);
    }
    return err_set(e, -EINVAL, "%s: there is no such key", path);
}

int node_config_parse(struct node_config *c, const char *text, size_t size, const char *dir,
                      struct err *e)
{
    CLEANUP(json_free) struct json *doc = NULL;
    int r = yaml_parse(text, size, &doc, e);
    if (r < 0) {
        return r;
    }
    if (!json_is(doc, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "is not a mapping of keys to values");
    }
    for (size_t i = 0; i < json_count(doc); i++) {
        const char *key = json_key_at(doc, i);
        const struct json *v = json_at(doc, i);
        if (streq(key, "kind") || streq(key, "apiVersion")) {
            const char *want = streq(key, "kind") ? "NodeConfig" : "v1";
            if (!streq_null(json_get_string(v), want)) {
                return err_set(e, -EINVAL, "%s: is not %s", key, want);
            }
            continue;
        }
        r = apply(c, key, v, dir, e);
        for (size_t k = 0; r == 0 && json_is(v, JSON_OBJECT) && k < json_count(v); k++) {
            CLEANUP_FREE char *path = xasprintf("%s.%s", key, json_key_at(v, k));
            r = apply(c, path, json_at(v, k), dir, e);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int node_config_load(struct node_config *c, const char *path, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int r = file_read(path, MAX_FILE, &text, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *real = realpath(path, NULL);
    char *slash = real ? strrchr(real, '/') : NULL;
    if (slash) {
        slash[slash == real] = '\0';
    }
    r = node_config_parse(c, strbuf_cstr(&text), text.size, real, e);
    return r < 0 ? err_prefix(e, "%s", path) : 0;
}

static void set_default(char **slot, const char *value)
{
    if (!*slot) {
        *slot = xstrdup(value);
    }
}

int node_config_apply_log_level(const struct node_config *c, struct err *e)
{
    char bad[64];
    if (c->log_level && log_set_levels(c->log_level, bad) < 0) {
        return err_set(e, -EINVAL,
                       "logLevel: \"%s\" is not error, warn, info, debug or MODULE=LEVEL", bad);
    }
    return 0;
}

int node_config_finish(struct node_config *c, struct err *e)
{
    if (!c->node_name) {
        char name[256] = "";
        gethostname(name, sizeof name - 1);
        for (char *p = name; *p; p++) {
            *p = *p >= 'A' && *p <= 'Z' ? (char) (*p + 'a' - 'A') : *p;
        }
        int r = node_config_set(c, "nodeName", name, e);
        if (r < 0) {
            return err_prefix(e, "the host's name cannot be the node's");
        }
    }
    if (c->bootstrap_kubeconfig && !c->kubeconfig) {
        return err_set(e, -EINVAL,
                       "bootstrapKubeConfig: needs masterKubeConfig, where the node's own "
                       "certificate is kept");
    }
    set_default(&c->run_dir, "/run/tenet/node");
    set_default(&c->cni_conf_dir, "/etc/cni/net.d");
    set_default(&c->cni_conf_name, "80-openshift-network.conf");
    set_default(&c->datapath, "ovs");
    set_default(&c->ovs_database, "/run/openvswitch/db.sock");
    set_default(&c->ovs_run_dir, "/run/openvswitch");
    set_default(&c->ovs_bridge, "br0");
    return 0;
}
