/* SPDX-License-Identifier: Apache-2.0 */
/* tenet setup node: this host becomes a node of a cluster. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/setup/setup.h"
#include "cli/setup/setup_api.h"
#include "cli/setup/setup_facts.h"
#include "cli/setup/setup_sample.h"
#include "client/join.h"
#include "client/kubeconfig.h"
#include "client/objects.h"
#include "kubelet/config.h"
#include "lab/lab.h"
#include "net/loop/config_file.h"
#include "net/loop/process.h"
#include "net/tls/pki_csr.h"
#include "node/config.h"
#include "node/registry/identity.h"
#include "wire/yaml.h"

#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define UNIT "tenet-node.service"
#define KUBELET_UNIT "tenet-kubelet.service"
#define ROLE "node"
#define API_PORT 8443
#define MAX_JOIN 4096
#define CONNECT_MS 10000
#define JOIN_MS 60000
#define READY_MS 60000
#define POLL_MS 200
#define TOOL_MS 10000

static const char help[] = "usage: tenet setup node --join TOKEN HOST[:PORT] [OPTIONS]\n"
                           "       tenet setup node [OPTIONS]\n"
                           "\n"
                           "Makes this host a node of the cluster whose master is HOST; \"tenet "
                           "setup master\" and \"tenet\n"
                           "token create --print-join-command\" print the line.  Run it again, "
                           "without --join, to finish a\n"
                           "setup that was interrupted; a setup that is complete is not changed.\n"
                           "\n"
                           "The token has a hash of the cluster's authority: a host that only "
                           "pretends to be the master is\n"
                           "refused before the token is sent.\n";

enum { OPT_JOIN = SETUP_OPT_FREE, OPT_ADDRESS, OPT_NAME, OPT_DATAPATH, OPT_KUBELET };

static const struct command_option options[] = {
    {"join", OPT_JOIN, "TOKEN",
     "the join token; \"-\" reads it from standard input, \"@FILE\" from a file",
     .detail = "On the command line other users of this host can see it for a moment, until the "
               "program overwrites it."},
    {"address", OPT_ADDRESS, "ADDRESS",
     "address of this host for other nodes; default: that of the link with the default route"},
    {"node-name", OPT_NAME, "NAME", "name of the Node; default: the host's name"},
    {"datapath", OPT_DATAPATH, "ovs|ebpf",
     "how packets are forwarded; default: ovs where Open vSwitch is installed, else ebpf",
     "ovs ebpf"},
    {"kubelet", OPT_KUBELET, "yes|no",
     "whether tenet-kubelet runs pods as containers; default: yes where containerd or CRI-O runs",
     "yes no"},
    {0},
};

struct node_setup {
    struct setup s;
    struct join join;
    bool has_join;
    char *master; /* "HOST:PORT"; NULL: not given. */
    const char *address, *name, *datapath, *kubelet;
    struct node_config config; /* Of the file that is there, or is made. */
    struct setup_facts facts;
    struct sdn_network network; /* Of the cluster; all zero while it is not known. */
    char *config_path, *kubeconfig, *bootstrap, *key;
    enum setup_written written;
};

static void done(struct node_setup *n)
{
    join_done(&n->join);
    setup_facts_done(&n->facts);
    node_config_done(&n->config);
    free(n->master);
    free(n->config_path);
    free(n->kubeconfig);
    free(n->bootstrap);
    free(n->key);
    setup_done(&n->s);
}

/* ---- the command line ---- */

static void wipe(struct strbuf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->size);
    }
    strbuf_done(b);
}

/* Reads all of standard input. */
static int read_stdin(struct strbuf *out, struct err *e)
{
    char buf[MAX_JOIN];
    size_t n = fread(buf, 1, sizeof buf, stdin);
    bool bad = ferror(stdin) || n == sizeof buf;
    strbuf_add(out, buf, n);
    explicit_bzero(buf, sizeof buf);
    return bad ? err_set(e, -EINVAL, "standard input: is not a join token") : 0;
}

/* Takes the token from where the value of --join says, and overwrites it in the command line. */
static int read_join(struct node_setup *n, char *value, struct err *e)
{
    __attribute__((cleanup(wipe))) struct strbuf text = STRBUF_INIT;
    int r = 0;
    if (streq(value, "-")) {
        r = read_stdin(&text, e);
    } else if (*value == '@') {
        r = file_read(value + 1, MAX_JOIN, &text, e);
    } else {
        strbuf_adds(&text, value);
        memset(value, 'x', strlen(value));
    }
    n->has_join = true;
    return r < 0 ? r : join_read(strbuf_cstr(&text), &n->join, e);
}

/* -1 to go on, else the exit status. */
static int take_option(struct node_setup *n, int opt)
{
    struct err e = {0};
    switch (opt) {
    case OPT_JOIN:
        return read_join(n, optarg, &e) < 0 ? command_fail(&e, NULL) : -1;
    case OPT_ADDRESS:
        n->address = optarg;
        return -1;
    case OPT_NAME:
        n->name = optarg;
        return -1;
    case OPT_DATAPATH:
        n->datapath = optarg;
        return -1;
    case OPT_KUBELET:
        if (!streq(optarg, "yes") && !streq(optarg, "no")) {
            return command_usage(&setup_node_command, "--kubelet must be yes or no, not \"%s\"",
                                 optarg);
        }
        n->kubelet = optarg;
        return -1;
    default:
        return setup_take_option(&n->s, opt) ? -1 : opt == OPT_HELP ? 0 : 2;
    }
}

/* Takes "HOST" or "HOST:PORT". */
static int take_master(struct node_setup *n, const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t port = API_PORT;
    if (colon && (str_to_u64(colon + 1, UINT16_MAX, &port) < 0 || !port)) {
        return command_usage(&setup_node_command, "%s is not HOST[:PORT] of a master", text);
    }
    int size = colon ? (int) (colon - text) : (int) strlen(text);
    if (!size || strpbrk(text, "/@ ")) {
        return command_usage(&setup_node_command, "%s is not HOST[:PORT] of a master", text);
    }
    n->master = xasprintf("%.*s:%u", size, text, (unsigned) port);
    return -1;
}

static int parse(struct node_setup *n, int argc, char **argv)
{
    int opt, status = -1;
    optind = 0;
    while (status < 0 && (opt = command_getopt(&setup_node_command, argc, argv, NULL)) != -1) {
        status = take_option(n, opt);
    }
    if (status < 0 && optind < argc) {
        status = take_master(n, argv[optind++]);
    }
    if (status < 0 && n->has_join != (n->master != NULL)) {
        status =
            command_usage(&setup_node_command, n->has_join ? "--join needs the HOST of the master"
                                                           : "a HOST needs --join TOKEN");
    }
    return status >= 0 ? status : command_expect_end(&setup_node_command, argc, argv);
}

static bool has_wishes(const struct node_setup *n)
{
    return n->address || n->name || n->datapath || n->s.n_sets;
}

/* ---- the configuration ---- */

static int make_document(const struct node_setup *n, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *doc = json_object();
    bool ovs = n->facts.tools[SETUP_VSWITCHD];
    json_set_string(doc, "apiVersion", "v1");
    json_set_string(doc, "kind", "NodeConfig");
    json_set_string(doc, "nodeName", n->name ? n->name : n->facts.host_name);
    json_set_string(doc, "nodeIP", n->address ? n->address : IP4_TEXT(n->facts.address));
    json_set_string(doc, "masterKubeConfig", n->kubeconfig);
    json_set_string(doc, "bootstrapKubeConfig", n->bootstrap);
    json_set_string(json_ensure_object(doc, "networkConfig"), "datapath",
                    n->datapath ? n->datapath
                    : ovs       ? "ovs"
                                : "ebpf");
    if (*n->s.prefix) {
        json_set(doc, "runDir", json_stringf("%s/node", n->s.run));
        json_set_string(doc, "cniConfDir", n->s.cni);
    }
    int r = setup_config_sets(&n->s, doc, &node_options, e);
    if (r == 0) {
        *ret = TAKE(doc);
    }
    return r;
}

/* As plan_config of the master. */
static int plan_config(struct node_setup *n, char **ret_text, struct err *e)
{
    CLEANUP(json_free) struct json *doc = NULL;
    struct strbuf text = STRBUF_INIT;
    enum setup_state state;
    int r = setup_files_look(n->s.files, n->config_path, setup_sample(n->config_path), &state, e);
    if (r < 0) {
        return r;
    }
    if (state == SETUP_FOREIGN && has_wishes(n)) {
        return err_set(e, -EEXIST,
                       "%s was edited: setup does not change it, and takes no options for it; edit "
                       "it, or move it away",
                       n->config_path);
    }
    if (state == SETUP_FOREIGN || (state == SETUP_OWN && !has_wishes(n))) {
        r = node_config_load(&n->config, n->config_path, e);
    } else if ((r = make_document(n, &doc, e)) == 0) {
        setup_config_text(doc, "node", "tenet-node-config(5)", &text);
        r = node_config_parse(&n->config, strbuf_cstr(&text), text.size, n->s.etc, e);
    }
    if (r == 0 && !n->config.kubeconfig) {
        r = err_set(e, -EINVAL, "%s: masterKubeConfig: is missing", n->config_path);
    }
    if (r == 0 && text.size) {
        *ret_text = strbuf_steal(&text);
    }
    strbuf_done(&text);
    return r < 0 ? r : node_config_finish(&n->config, e);
}

/* ---- joining ---- */

/* Whether the kubeconfig has a certificate that is valid now.  '*ret_pin' gets the pin of its
 * authority, or "". */
static bool has_certificate(const char *path, char ret_pin[PKI_PIN_SIZE])
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int64_t from, until, now = time_wall_ms();
    *ret_pin = '\0';
    if (kubeconfig_load(path, &k, NULL) < 0 || !k.cert ||
        pki_cert_times(k.cert, &from, &until, NULL) < 0) {
        return false;
    }
    if (k.ca) {
        (void) pki_cert_pin(k.ca, ret_pin, NULL);
    }
    return now >= from && now < until;
}

/* Asks for the node's certificate with the token. */
static int get_certificate(struct node_setup *n, struct err *e)
{
    CLEANUP_FREE char *ca = NULL;
    CLEANUP_FREE char *url = xasprintf("https://%s", n->master);
    const char *colon = strrchr(n->master, ':');
    CLEANUP_FREE char *host = xstrndup(n->master, (size_t) (colon - n->master));
    CLEANUP(loop_free) struct loop *loop = loop_new();
    uint64_t port = API_PORT;
    (void) str_to_u64(colon + 1, UINT16_MAX, &port);
    int r = join_find_authority(host, (uint16_t) port, n->join.pin, CONNECT_MS, &ca, e);
    if (r < 0) {
        return err_prefix(e, "the master %s", n->master), r;
    }
    struct kubeconfig k = {.server = url, .ca = ca, .token = n->join.token};
    r = setup_files_note(n->s.files, ROLE, n->bootstrap, e);
    r = r < 0 ? r : setup_files_note(n->s.files, ROLE, n->key, e);
    r = r < 0 ? r : setup_files_note(n->s.files, ROLE, n->config.kubeconfig, e);
    r = r < 0 ? r : kubeconfig_write(n->bootstrap, "bootstrap", &k, e);
    if (r < 0) {
        return r;
    }
    struct identity_config own = {.loop = loop,
                                  .node_name = n->config.node_name,
                                  .kubeconfig = n->config.kubeconfig,
                                  .bootstrap = n->bootstrap,
                                  .key_file = n->key,
                                  .give_up_ms = JOIN_MS};
    r = identity_ensure(&own, e);
    /* The token has served, or is refused: it does not stay on this host's disk. */
    int dropped = setup_files_drop(n->s.files, n->bootstrap, r < 0 ? NULL : e);
    if (r == -EPERM) {
        err_set(e, r,
                "the join token is not valid (any more): \"tenet token create "
                "--print-join-command\" on the master prints another line");
    }
    return r < 0 ? err_prefix(e, "join %s as the node %s", n->master, n->config.node_name)
                 : dropped;
}

/* Removes what a setup that was killed after it got the certificate has left. */
static int drop_join_files(struct node_setup *n, struct err *e)
{
    int r = setup_files_drop(n->s.files, n->bootstrap, e);
    return r < 0 ? r : setup_files_drop(n->s.files, n->key, e);
}

static int join_cluster(struct node_setup *n, struct err *e)
{
    char pin[PKI_PIN_SIZE];
    bool member = has_certificate(n->config.kubeconfig, pin);
    if (member && n->has_join && *pin && !streq(pin, n->join.pin)) {
        return err_set(e, -EEXIST,
                       "this host is a node of another cluster (%s): \"tenet setup remove node\" "
                       "first",
                       n->config.kubeconfig);
    }
    if (member) {
        setup_say("the node's certificate is in %s", n->config.kubeconfig);
        return drop_join_files(n, e);
    }
    if (!n->has_join) {
        return err_set(e, -ENOENT,
                       "this host is not a node yet: --join TOKEN HOST, as \"tenet setup master\" "
                       "prints it on the master");
    }
    int r = get_certificate(n, e);
    if (r == 0) {
        setup_say("joined %s as the node %s; its certificate is in %s", n->master,
                  n->config.node_name, n->config.kubeconfig);
        r = drop_join_files(n, e);
    }
    return r;
}

/* Whether the master knows this host by the name, and what network the cluster has. */
static int ask_master(struct node_setup *n, struct err *e)
{
    CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, n->config.node_name, NULL);
    CLEANUP(json_free) struct json *node = NULL;
    CLEANUP(json_free) struct json *network = NULL;
    int r = setup_api_get(n->config.kubeconfig, path, &node, e);
    if (r == -EACCES) {
        return err_set(e, r,
                       "%s is of another node than %s: \"tenet setup remove node\" first, or set "
                       "nodeName",
                       n->config.kubeconfig, n->config.node_name);
    }
    if (r < 0 && r != -ENOENT) {
        return err_prefix(e, "ask the master"), r;
    }
    r = setup_api_get(n->config.kubeconfig, "/apis/" OBJECTS_NETWORK_API "/clusternetworks/default",
                      &network, e);
    r = r < 0 ? r : objects_parse_cluster_network(network, &n->network, e);
    return r < 0 ? err_prefix(e, "the cluster's network") : 0;
}

/* ---- checks ---- */

static void network_of(const struct node_setup *n, struct netconf *ret)
{
    netconf_defaults(ret);
    if (!n->network.n_cluster) {
        return;
    }
    ret->n_ranges = 0;
    for (size_t i = 0; i < n->network.n_cluster; i++) {
        ret->ranges[ret->n_ranges++].cidr = n->network.cluster[i];
    }
    ret->service = n->network.service;
    ret->vxlan_port = n->network.vxlan_port;
    ret->mtu = n->config.mtu ? n->config.mtu : n->network.mtu;
}

/* 'network': the cluster's network is known by now. */
static int check(struct node_setup *n, bool network, struct err *e)
{
    struct netconf net;
    network_of(n, &net);
    struct setup_wish w = {.roles = SETUP_NODE,
                           .address = n->config.node_ip,
                           .network = &net,
                           .part = network ? SETUP_NETWORK_ONLY : SETUP_HOST_ONLY,
                           .ebpf = streq(n->config.datapath, "ebpf"),
                           .kubelet = n->kubelet ? streq(n->kubelet, "yes") : *n->facts.runtime};
    setup_facts_done(&n->facts);
    size_t failed = setup_run_checks(&n->s, &w, NULL, false, &n->facts);
    return failed && !n->s.ignore_checks
               ? err_set(e, -EPERM, "%zu check%s failed; --ignore-checks goes on", failed,
                         failed == 1 ? "" : "s")
               : 0;
}

/* ---- tenet-cni where runtimes look ---- */

static int link_cni(struct node_setup *n, struct err *e)
{
    static const char *const folders[] = {"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"};
    CLEANUP_FREE char *plugin = NULL;
    int r = program_find("tenet-cni", &plugin, e);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(folders); i++) {
        CLEANUP_FREE char *dir = xasprintf("%s%s", n->s.prefix, folders[i]);
        CLEANUP_FREE char *path = xasprintf("%s/tenet-cni", dir);
        CLEANUP_FREE char *real = realpath(path, NULL);
        enum setup_written written;
        if (real && streq(real, plugin)) {
            continue;
        }
        if (i == 0) {
            r = setup_files_dir(n->s.files, ROLE, dir, 0755, e);
        } else if (access(dir, F_OK) < 0) {
            continue;
        }
        if (r == 0) {
            r = setup_files_link(n->s.files, ROLE, path, plugin, &written, e);
        }
        if (r == 0 && written == SETUP_MADE) {
            setup_say("made %s", path);
        }
    }
    return r;
}

/* ---- services ---- */

static bool is_ready(const struct node_setup *n)
{
    CLEANUP_FREE char *conf = xasprintf("%s/%s", n->config.cni_conf_dir, n->config.cni_conf_name);
    CLEANUP_FREE char *list = xasprintf("%slist", conf);
    return access(conf, F_OK) == 0 || access(list, F_OK) == 0;
}

/* The reason that the Node has for not being ready. */
static void not_ready(const struct node_setup *n, struct err *e)
{
    CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, n->config.node_name, NULL);
    CLEANUP(json_free) struct json *node = NULL;
    const struct json *item;
    if (setup_api_get(n->config.kubeconfig, path, &node, e) < 0) {
        return;
    }
    err_set(e, -ETIMEDOUT, "its Node has no reason yet (journalctl -u " UNIT ")");
    JSON_FOREACH (item, json_path(node, "status", "conditions", NULL)) {
        bool network = streq(json_get_text(item, "type"), "NetworkUnavailable");
        bool bad = streq(json_get_text(item, "status"), network ? "True" : "False");
        if (bad && (network || streq(json_get_text(item, "type"), "Ready"))) {
            err_set(e, -ETIMEDOUT, "%s: %.300s", json_get_text(item, "reason"),
                    json_get_text(item, "message"));
        }
    }
}

static int wait_ready(const struct node_setup *n, struct err *e)
{
    uint64_t until = time_mono_ms() + READY_MS;
    while (!is_ready(n)) {
        if (time_mono_ms() >= until) {
            not_ready(n, e);
            return err_prefix(e, "the node is not ready after %d s", READY_MS / 1000), -ETIMEDOUT;
        }
        poll(NULL, 0, POLL_MS);
    }
    return 0;
}

/* ---- the kubelet ---- */

/* The gateway of the node's subnet, where the agent answers DNS.  -ENOENT: there is none yet. */
static int gateway_of(const struct node_setup *n, uint32_t *ret, struct err *e)
{
    CLEANUP_FREE char *path =
        api_path(OBJECTS_NETWORK_API, "hostsubnets", NULL, n->config.node_name, NULL);
    CLEANUP(json_free) struct json *subnet = NULL;
    struct sdn_remote own = {0};
    int r = setup_api_get(n->config.kubeconfig, path, &subnet, e);
    r = r < 0 ? r : objects_parse_host_subnet(subnet, &own, e);
    if (r == 0 && !own.subnet.len) {
        r = err_set(e, -ENOENT, "the node has no subnet yet");
    }
    if (r == 0) {
        *ret = own.subnet.addr + 1;
    }
    return r;
}

/* "systemd" or "cgroupfs": the runtime's, which the kubelet must have, too. */
static const char *cgroup_driver(const char *runtime)
{
    static const char *const argv[] = {"containerd", "config", "dump", NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf errors = STRBUF_INIT;
    int status = -1;
    if (strstr(runtime, "crio")) {
        return "systemd"; /* Its default. */
    }
    spec.argv = argv;
    bool read = process_run(&spec, TOOL_MS, &out, &errors, &status, NULL) == 0 && status == 0;
    return read && strstr(strbuf_cstr(&out), "SystemdCgroup = true") ? "systemd" : "cgroupfs";
}

static int write_kubelet(struct node_setup *n, uint32_t gateway, const char *path,
                         enum setup_written *ret, struct err *e)
{
    CLEANUP(json_free) struct json *doc = json_object();
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    json_set_string(doc, "apiVersion", "v1");
    json_set_string(doc, "kind", "KubeletConfiguration");
    json_set_string(doc, "nodeName", n->config.node_name);
    json_set_string(doc, "nodeIP", IP4_TEXT(n->config.node_ip));
    json_set_string(doc, "masterKubeConfig", n->config.kubeconfig);
    json_set(doc, "containerRuntimeEndpoint", json_stringf("unix://%s", n->facts.runtime));
    json_set_string(doc, "cgroupDriver", cgroup_driver(n->facts.runtime));
    json_append(json_ensure_array(doc, "clusterDNS"), json_string(IP4_TEXT(gateway)));
    setup_config_text(doc, "node", "tenet-kubelet-config(5)", &text);
    return setup_files_write(n->s.files, ROLE, path, strbuf_cstr(&text), 0644, setup_sample(path),
                             ret, e);
}

static int set_up_kubelet(struct node_setup *n, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/kubelet-config.yaml", n->s.etc);
    enum setup_written written;
    uint32_t gateway = 0;
    if (n->kubelet ? streq(n->kubelet, "no") : !*n->facts.runtime) {
        return 0;
    }
    int r = gateway_of(n, &gateway, e);
    r = r < 0 ? r : write_kubelet(n, gateway, path, &written, e);
    if (r < 0) {
        return err_prefix(e, "the kubelet"), r;
    }
    setup_say("%s %s",
              written == SETUP_MADE      ? "made"
              : written == SETUP_CHANGED ? "changed"
                                         : "the kubelet's configuration is",
              path);
    if (!setup_has_unit(&n->s, KUBELET_UNIT)) {
        printf("\nStart the kubelet, for example:\n\n    tenet kubelet --config %s\n", path);
        return 0;
    }
    r = setup_start_unit(KUBELET_UNIT, written == SETUP_CHANGED, e);
    if (r == 0) {
        setup_say(KUBELET_UNIT " is enabled and runs");
    }
    return r;
}

static void print_hints(const struct node_setup *n)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE char *vxlan = xasprintf("%u/udp", n->network.vxlan_port);
    const char *const ports[] = {vxlan, "10250/tcp", NULL};
    setup_firewall_text(&n->facts, ports, &text);
    printf(
        "\nOther nodes need UDP port %u of this host, masters TCP port 10250 (logs and exec), and\n"
        "clients of NodePort services TCP and UDP 30000-32767. If a firewall is in the way:\n\n",
        n->network.vxlan_port);
    for (const char *line = strbuf_cstr(&text); *line;) {
        size_t size = strcspn(line, "\n");
        printf("    %.*s\n", (int) size, line);
        line += size + (line[size] == '\n');
    }
}

static int start(struct node_setup *n, struct err *e)
{
    if (!setup_has_unit(&n->s, UNIT)) {
        if (is_ready(n)) {
            setup_say("the node is ready");
            int r = set_up_kubelet(n, e);
            print_hints(n);
            return r;
        }
        printf("\nStart the node's agent, for example:\n\n    tenet node --config %s\n\n"
               "then run \"tenet setup node%s%s\" again for the kubelet.\n",
               n->config_path, *n->s.prefix ? " --prefix " : "", n->s.prefix);
        print_hints(n);
        return 0;
    }
    int r = setup_start_unit(UNIT, n->written == SETUP_CHANGED, e);
    if (r < 0) {
        return r;
    }
    setup_say(UNIT " is enabled and runs");
    if ((r = wait_ready(n, e)) < 0) {
        return r;
    }
    setup_say("the node is ready: pods can be attached");
    r = set_up_kubelet(n, e);
    print_hints(n);
    return r;
}

static int set_up(struct node_setup *n, struct err *e)
{
    CLEANUP_FREE char *text = NULL;
    struct setup_places p = {.state_dir = n->s.state, .cni_conf_dir = n->s.cni};
    setup_facts_read(&p, SETUP_NODE, &n->facts);
    if (!n->facts.address && !n->address) {
        return err_set(e, -EADDRNOTAVAIL,
                       "no link of this host has a default route: --address ADDRESS, at which "
                       "other nodes reach it");
    }
    int r = plan_config(n, &text, e);
    if (r < 0 || (r = check(n, false, e)) < 0 || (r = join_cluster(n, e)) < 0 ||
        (r = ask_master(n, e)) < 0 || (r = check(n, true, e)) < 0) {
        return r;
    }
    n->written = SETUP_KEPT;
    if (text) {
        r = setup_files_write(n->s.files, ROLE, n->config_path, text, 0644,
                              setup_sample(n->config_path), &n->written, e);
    }
    if (r < 0) {
        return r;
    }
    setup_say("%s %s",
              n->written == SETUP_MADE      ? "made"
              : n->written == SETUP_CHANGED ? "changed"
                                            : "the configuration is",
              n->config_path);
    r = link_cni(n, e);
    r = r < 0 ? r : setup_files_dir(n->s.files, ROLE, n->config.cni_conf_dir, 0755, e);
    return r < 0 ? r : start(n, e);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(done))) struct node_setup n = {0};
    struct err e = {0};
    node_config_init(&n.config);
    int status = parse(&n, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (geteuid() != 0 && !n.s.prefix) {
        return command_fail(NULL, "setup writes /etc/tenet: run it as root");
    }
    int r = setup_open(&n.s, true, &e);
    if (r == 0) {
        n.config_path = xasprintf("%s/node-config.yaml", n.s.etc);
        n.kubeconfig = xasprintf("%s/node.kubeconfig", n.s.etc);
        n.bootstrap = xasprintf("%s/bootstrap.kubeconfig", n.s.etc);
        n.key = xasprintf("%s/node.key.new", n.s.etc);
        r = set_up(&n, &e);
    }
    return r < 0 ? command_fail(&e, NULL) : 0;
}

const struct command setup_node_command = {.name = "setup node",
                                           .summary = "makes this host a node of a cluster",
                                           .help = help,
                                           .options = options,
                                           .shared = setup_options,
                                           .run = run};
