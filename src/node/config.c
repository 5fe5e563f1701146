/* SPDX-License-Identifier: Apache-2.0 */
#include "node/config.h"

#include "api/kind.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/datapath.h"
#include "datapath/ebpf/settings.h"
#include "datapath/hostgw/settings.h"
#include "datapath/ovs/settings.h"
#include "dns/resolv.h"
#include "dns/zone.h"
#include "net/loop/config_file.h"
#include "node/openshift_keys.h"
#include "wire/yaml.h"

#include <stdio.h>
#include <sys/un.h>

#define SOCKET_NAME "/agent.sock" /* The longest name of a socket in runDir. */

/* ---- values that need code ---- */

static int check_node_name(const char *v, struct err *e)
{
    const char *why = api_check_dns_subdomain(v);
    return why ? err_set(e, -EINVAL, "\"%s\": %s", v, why) : 0;
}

static int set_node_ip(void *config, const char *v, struct err *e)
{
    uint32_t ip;
    if (ip4_parse(v, &ip) < 0) {
        return err_set(e, -EINVAL, "\"%s\" is not an IPv4 address", v);
    }
    if (ip == 0 || ip >> 24 == 127 || ip >> 28 >= 14) {
        return err_set(e, -EINVAL, "%s cannot be the address of a host", v);
    }
    ((struct node_config *) config)->node_ip = ip;
    return 0;
}

static int check_server(const char *v, struct err *e)
{
    return str_has_prefix(v, "https://") || str_has_prefix(v, "http://")
               ? 0
               : err_set(e, -EINVAL, "\"%s\" is not a URL such as https://10.0.0.1:8443", v);
}

static int check_plugin(const char *v, struct err *e)
{
    enum sdn_plugin p;
    return sdn_plugin_parse(v, &p, e);
}

static int check_absolute(const char *v, struct err *e)
{
    return *v == '/' ? 0 : err_set(e, -EINVAL, "\"%s\" is not an absolute path", v);
}

static int check_run_dir(const char *v, struct err *e)
{
    size_t max = sizeof(((struct sockaddr_un *) 0)->sun_path) - sizeof SOCKET_NAME;
    if (strlen(v) > max) {
        return err_set(e, -EINVAL, "\"%s\" is longer than %zu characters, too long for the socket",
                       v, max);
    }
    return check_absolute(v, e);
}

static int check_cni_conf_name(const char *v, struct err *e)
{
    if (strchr(v, '/') || !str_has_suffix(v, ".conf") || *v == '.') {
        return err_set(e, -EINVAL, "\"%s\" is not a file name that ends with .conf", v);
    }
    return 0;
}

/* "portmap,bandwidth", or "none". */
static int set_cni_plugins(void *config, const char *v, struct err *e)
{
    struct node_config *c = config;
    bool portmap = false, bandwidth = false;
    for (const char *p = v; *v && !streq(v, "none"); p++) {
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

/* OpenShift's configurations say "iptables". */
static int set_proxy_mode(void *config, const char *v, struct err *e)
{
    if (!streq(v, "iptables") && !streq(v, "nftables") && !streq(v, "userspace")) {
        return err_set(e, -EINVAL, "\"%s\" is not one of iptables, nftables, userspace", v);
    }
    ((struct node_config *) config)->proxy_userspace = streq(v, "userspace");
    return 0;
}

static int check_dns_domain(const char *v, struct err *e)
{
    const char *why = api_check_dns_subdomain(v);
    if (why || strlen(v) > DNS_DOMAIN_MAX) {
        return err_set(e, -EINVAL, "\"%s\": %s", v, why ? why : "is too long");
    }
    return 0;
}

static int check_dns_bind_address(const char *v, struct err *e)
{
    union dns_endpoint a;
    if (!streq(v, "none") && (dns_endpoint_parse(v, &a, NULL) < 0 || a.any.sa_family != AF_INET)) {
        return err_set(e, -EINVAL, "\"%s\" is neither ADDRESS[:PORT] nor none", v);
    }
    return 0;
}

static int set_dns_ip(void *config, const char *v, struct err *e)
{
    uint32_t ip;
    if (ip4_parse(v, &ip) < 0) {
        return err_set(e, -EINVAL, "\"%s\" is not an IPv4 address", v);
    }
    ((struct node_config *) config)->dns_ip = ip;
    return 0;
}

/* An empty list counts as not given. */
static int set_dns_nameservers(void *config, const char *v, struct err *e)
{
    struct node_config *c = config;
    struct dns_servers s;
    int r = !*v || streq(v, "none") ? 0 : dns_servers_parse(v, &s, e);
    if (r == 0) {
        free(c->dns_nameservers);
        c->dns_nameservers = *v ? xstrdup(v) : NULL;
    }
    return r;
}

/* Stores the text: only the datapaths interpret and check their settings, whose keys and defaults
 * are in their settings.h. */
static int set_datapath_setting(void *config, const char *key, const char *value, struct err *e)
{
    struct node_config *c = config;
    int r = datapath_check_setting(key, value, e);
    if (r == 0) {
        smap_set(&c->datapath_settings, key, xstrdup(value));
    }
    return r;
}

/* ---- rows ---- */

#define MEMBER(name) OPTION_MEMBER(struct node_config, name)

static const struct option_row rows[] = {
    {.path = "nodeName",
     .flag = "node-name",
     .arg = "NAME",
     .type = OPTION_TEXT,
     MEMBER(node_name),
     .check = check_node_name,
     .unset = "the host's name",
     .example = "node1",
     .help = "name of this host's Node"},
    {.path = "nodeIP",
     .flag = "node-ip",
     .arg = "ADDRESS",
     .set = set_node_ip,
     .unset = "the address of the link that has the default route",
     .example = "192.0.2.11",
     .help = "address of this host that other nodes send to: the end of the tunnels"},
    {.path = "masterKubeConfig",
     .flag = "master-kubeconfig",
     .arg = "FILE",
     .type = OPTION_FILE,
     MEMBER(kubeconfig),
     .unset = "$KUBECONFIG, then ~/.kube/config",
     .example = "/etc/tenet/node.kubeconfig",
     .shown = true,
     .help =
         "kubeconfig of the master, or of any Kubernetes API server that has the network's kinds"},
    {.path = "masterServers",
     .flag = "master-servers",
     .arg = "URL,...",
     .type = OPTION_LIST,
     .items = "URLs",
     MEMBER(servers),
     .check = check_server,
     .unset = "none",
     .example = "https://192.0.2.2:8443,https://192.0.2.3:8443",
     .help = "more masters of the cluster",
     .detail = "When the master in use does not answer, or says that it is not available, the "
               "agent goes to the "
               "next."},
    {.path = "bootstrapKubeConfig",
     .flag = "bootstrap-kubeconfig",
     .arg = "FILE",
     .type = OPTION_FILE,
     MEMBER(bootstrap_kubeconfig),
     .unset = "none; the administrator then maintains masterKubeConfig",
     .example = "/etc/tenet/bootstrap.kubeconfig",
     .help = "kubeconfig with a bootstrap token, by which the node gets its own certificate",
     .detail =
         "The agent keeps the certificate (user system:node:NAME of the group system:nodes) in "
         "`masterKubeConfig`, which must be given, and renews it before it expires. See `tenet "
         "token`."},
    {.path = "networkConfig.networkPluginName",
     .flag = "plugin",
     .arg = "NAME",
     .type = OPTION_TEXT,
     .choices = "redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant "
                "redhat/openshift-ovs-networkpolicy",
     MEMBER(plugin_name),
     .check = check_plugin,
     .unset = "what the master says",
     .example = "redhat/openshift-ovs-subnet",
     .help = "plug-in that the cluster must have; another one is an error"},
    {.path = "networkConfig.mtu",
     .flag = "mtu",
     .arg = "BYTES",
     .type = OPTION_NUMBER,
     MEMBER(mtu),
     .min = 576,
     .max = UINT16_MAX,
     .unset = "what the master says",
     .example = "1450",
     .help = "MTU of pods"},
    {.path = "networkConfig.blockMetadata",
     .flag = "block-metadata",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     MEMBER(block_metadata),
     .dflt = "false",
     .help = "whether pods do not reach the address at which clouds tell a host about itself, its "
             "credentials included: 169.254.169.254",
     .detail = "DNS at that address stays reachable. Pods with hostNetwork reach it as any process "
               "of the host."},
    {.path = "networkConfig.datapath",
     .flag = "datapath",
     .arg = "KIND",
     .type = OPTION_CHOICE,
     .choices = "ovs ebpf hostgw",
     MEMBER(datapath),
     .check = datapath_check_kind,
     .dflt = "ovs",
     .help =
         "ovs: Open vSwitch; ebpf: programs in the kernel; hostgw: routes of the hosts, for the "
         "plug-in flannel",
     .detail = "The ovs keys have no effect with ebpf."},
    {.path = "runDir",
     .flag = "run-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     MEMBER(run_dir),
     .check = check_run_dir,
     .dflt = "/run/tenet/node",
     .help = "folder of the agent's socket and lock"},
    {.path = "cniConfDir",
     .flag = "cni-conf-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     MEMBER(cni_conf_dir),
     .check = check_absolute,
     .dflt = "/etc/cni/net.d",
     .help = "folder in which the container runtime looks for the CNI configuration",
     .detail = "The agent writes the file when the node is ready."},
    {.path = "cniConfName",
     .flag = "cni-conf-name",
     .arg = "NAME",
     .type = OPTION_TEXT,
     MEMBER(cni_conf_name),
     .check = check_cni_conf_name,
     .dflt = "80-openshift-network.conf",
     .help = "name of the CNI configuration's file"},
    {.path = "cniPlugins",
     .flag = "cni-plugins",
     .arg = "LIST",
     .type = OPTION_LIST,
     .items = "plug-ins",
     .choices = "portmap bandwidth portmap,bandwidth none",
     .set = set_cni_plugins,
     .unset = "none; the agent opens host ports and limits bandwidth itself",
     .example = "portmap,bandwidth",
     .help = "plug-ins chained after tenet-cni: portmap, bandwidth",
     .detail = "They do their part instead of the agent, and must be in the runtime's plug-in "
               "folder. The file is "
               "then called `cniConfName` followed by list (80-openshift-network.conflist)."},
    {.path = EBPF_WITHOUT,
     .flag = "ebpf-without",
     .arg = "LIST",
     .type = OPTION_LIST,
     .set_path = set_datapath_setting,
     .choices = "tcx redirect_peer scrub ringbuf encap",
     .unset = "none",
     .example = "tcx",
     .help =
         "features of the kernel that the datapath ebpf does not use: tcx, redirect_peer, scrub, "
         "ringbuf, encap",
     .detail = "Without `tcx` it uses the older hooks of clsact; without `redirect_peer`, packets "
               "pass the host's "
               "side of a pod's link; without `scrub`, programs do what newer kernels do when a "
               "packet is "
               "handed to a pod; without `ringbuf`, `tenet flows` shows nothing; without `encap`, "
               "packets "
               "between nodes pass the VXLAN device and the host's stack, with its firewall."},
    {.path = EBPF_MAX_ENTRIES,
     .flag = "ebpf-max-entries",
     .arg = "N",
     .type = OPTION_NUMBER,
     .set_path = set_datapath_setting,
     .min = 1,
     .max = UINT32_MAX,
     .unset = "tens of thousands in each map",
     .example = "1000",
     .help = "limit of the entries of each eBPF map that the agent fills, to test what happens "
             "when a map "
             "is full"},
    {.path = HOSTGW_SUBNET_FILE,
     .flag = "hostgw-subnet-file",
     .arg = "FILE",
     .type = OPTION_FILE,
     .set_path = set_datapath_setting,
     .dflt = HOSTGW_SUBNET_FILE_DEFAULT,
     .help = "flannel's file with this node's subnet, which the datapath hostgw writes"},
    {.path = OVS_DATABASE,
     .flag = "ovs-database",
     .arg = "PATH",
     .type = OPTION_FILE,
     .set_path = set_datapath_setting,
     .dflt = OVS_DATABASE_DEFAULT,
     .help = "socket of ovsdb-server"},
    {.path = OVS_RUN_DIR,
     .flag = "ovs-run-dir",
     .arg = "DIR",
     .type = OPTION_FILE,
     .set_path = set_datapath_setting,
     .dflt = OVS_RUN_DIR_DEFAULT,
     .help = "folder of the bridge's management socket"},
    {.path = OVS_BRIDGE,
     .flag = "ovs-bridge",
     .arg = "NAME",
     .type = OPTION_TEXT,
     .set_path = set_datapath_setting,
     .dflt = OVS_BRIDGE_DEFAULT,
     .help = "name of the bridge"},
    {.path = OVS_DATAPATH_TYPE,
     .flag = "ovs-datapath-type",
     .arg = "TYPE",
     .type = OPTION_CHOICE,
     .choices = "system netdev",
     .set_path = set_datapath_setting,
     .unset = "system where the kernel has Open vSwitch's module, else netdev",
     .example = "system",
     .help = "system: the kernel's datapath; netdev: that of userspace"},
    {.path = "proxyArguments.proxy-mode",
     .flag = "proxy-mode",
     .arg = "MODE",
     .type = OPTION_LIST,
     .choices = "iptables nftables userspace",
     .set = set_proxy_mode,
     .unset = "iptables",
     .example = "iptables",
     .help =
         "how services are served to the host and to clients from outside: iptables, nftables or "
         "userspace",
     .detail =
         "`iptables` (what OpenShift's configurations say) and `nftables` are the same here: "
         "nftables "
         "translates connections, in the table ip tenet-services. With `userspace` the agent "
         "accepts "
         "connections and tries the endpoints in turn until one answers; connections of pods to "
         "services "
         "go through it as well, and endpoints see the node as the client. For this reason it is "
         "refused with redhat/openshift-ovs-networkpolicy."},
    {.path = "metricsBindAddress",
     .flag = "metrics-bind-address",
     .arg = "ADDRESS:PORT",
     .type = OPTION_ENDPOINT,
     MEMBER(metrics_address),
     .min = 1,
     .unset = "none; both are always at agent.sock in runDir",
     .example = "127.0.0.1:9101",
     .help = "where /metrics and /healthz are served to every client that can connect"},
    /* Flags of "openshift start node", for scripts that have them. */
    {.flag = "hostname",
     .arg = "NAME",
     .type = OPTION_TEXT,
     MEMBER(node_name),
     .check = check_node_name,
     .help = "OpenShift's flag: the same as --node-name"},
    {.flag = "network-plugin",
     .arg = "NAME",
     .type = OPTION_TEXT,
     MEMBER(plugin_name),
     .check = check_plugin,
     .help = "OpenShift's flag: the same as --plugin"},
    {.path = "logFormat",
     .flag = "log-format",
     .arg = "FORMAT",
     .type = OPTION_CHOICE,
     .choices = "text json",
     MEMBER(log_format),
     .unset = "$TENET_LOG_FORMAT, or text",
     .example = "json",
     .help = "text, or json: an object a line, whose members docs/logs.md lists",
     .detail = "Read again at SIGHUP."},
    {.path = "logLevel",
     .flag = "log-level",
     .arg = "SPEC",
     .type = OPTION_TEXT,
     MEMBER(log_level),
     .unset = "$TENET_LOG, or info",
     .example = "info",
     .help = "error, warn, info or debug, and levels of modules after it: info,pods=debug",
     .detail = "Read again at SIGHUP."},
    {.path = "dnsDomain",
     .flag = "dns-domain",
     .arg = "NAME",
     .type = OPTION_TEXT,
     MEMBER(dns_domain),
     .check = check_dns_domain,
     .unset = "cluster.local",
     .example = "cluster.local",
     .help = "domain of the cluster's names"},
    {.path = "dnsBindAddress",
     .flag = "dns-bind-address",
     .arg = "ADDRESS[:PORT]",
     .type = OPTION_TEXT,
     MEMBER(dns_bind_address),
     .check = check_dns_bind_address,
     .unset = "the gateway of the node's subnet, port 53",
     .example = "10.128.0.1:53",
     .help = "where DNS queries of pods are answered, or none"},
    {.path = "dnsIP",
     .flag = "dns-ip",
     .arg = "ADDRESS",
     .set = set_dns_ip,
     .unset = "the gateway of the node's subnet",
     .example = "10.128.0.1",
     .help = "name server that pods are configured with"},
    {.path = "dnsNameservers",
     .flag = "dns-nameservers",
     .arg = "LIST",
     .type = OPTION_LIST,
     .items = "addresses",
     MEMBER(dns_nameservers),
     .set = set_dns_nameservers,
     .unset = "the servers in dnsRecursiveResolvConf",
     .example = "192.0.2.53",
     .help = "name servers for names outside the cluster: ADDRESS[:PORT], or none"},
    {.path = "dnsRecursiveResolvConf",
     .flag = "dns-resolv-conf",
     .arg = "FILE",
     .type = OPTION_FILE,
     MEMBER(dns_resolv_conf),
     .unset = "/etc/resolv.conf",
     .example = "/etc/resolv.conf",
     .help = "file with the name servers for names outside the cluster",
     .detail = "Read again when it changes."},
    {.path = "dnsIsolateProjects",
     .flag = "dns-isolate-projects",
     .arg = "BOOL",
     .type = OPTION_BOOL,
     .choices = "true false",
     MEMBER(dns_isolate_projects),
     .dflt = "false",
     .help = "under redhat/openshift-ovs-multitenant: whether a pod gets only names of its own "
             "project and "
             "of projects that its project reaches",
     .detail = "Other names of services, endpoints and pods do not exist for the pod. Clients that "
               "are not pods of "
               "this node, the host included, get names of global projects only. Other plug-ins "
               "ignore it."},
};

const struct option_table node_options = {
    .kind = "NodeConfig",
    .rows = rows,
    .n = ARRAY_SIZE(rows),
    .any_scalar = true,
    .alias = node_alias,
    .idle = node_idle,
    .findings = offsetof(struct node_config, findings),
};

void node_config_init(struct node_config *c)
{
    *c = (struct node_config){0};
    smap_init(&c->datapath_settings, free);
    options_init(&node_options, c);
}

void node_config_done(struct node_config *c)
{
    smap_done(&c->datapath_settings);
    options_done(&node_options, c);
    *c = (struct node_config){0};
}

int node_config_parse(struct node_config *c, const char *text, size_t size, const char *dir,
                      struct err *e)
{
    CLEANUP(json_free) struct json *doc = NULL;
    int r = yaml_parse(text, size, &doc, e);
    return r < 0 ? r : options_read(&node_options, c, doc, dir, e);
}

static int read_document(void *config, const struct json *doc, const char *dir, struct err *e)
{
    return options_read(&node_options, config, doc, dir, e);
}

int node_config_load(struct node_config *c, const char *path, struct err *e)
{
    return config_file_load(path, read_document, c, e);
}

int node_config_finish(struct node_config *c, struct err *e)
{
    if (!c->node_name) {
        char name[CONFIG_HOST_NAME_SIZE];
        config_file_host_name(name);
        int r = options_set_path(&node_options, c, "nodeName", name, e);
        if (r < 0) {
            return err_prefix(e, "the host's name cannot be the node's");
        }
    }
    if (c->bootstrap_kubeconfig && !c->kubeconfig) {
        return err_set(e, -EINVAL,
                       "bootstrapKubeConfig: needs masterKubeConfig, where the node's own "
                       "certificate is kept");
    }
    return 0;
}
