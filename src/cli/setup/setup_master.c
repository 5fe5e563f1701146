/* SPDX-License-Identifier: Apache-2.0 */
/* tenet setup master: this host becomes the master of a cluster. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/admin/join_command.h"
#include "cli/setup/setup.h"
#include "cli/setup/setup_api.h"
#include "cli/setup/setup_facts.h"
#include "cli/setup/setup_sample.h"
#include "master/master_config.h"
#include "master/master_pki.h"
#include "net/loop/process.h"
#include "net/tls/pki.h"
#include "sdn/network.h"
#include "wire/yaml.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#define UNIT "tenet-master.service"
#define API_PORT 8443
#define LINK_MTU 1500
#define ROLE "master"
#define READY_MS 60000

static const char help[] = "usage: tenet setup master [OPTIONS]\n"
                           "\n"
                           "Makes this host the master of a cluster: writes its configuration and "
                           "certificates, starts it,\n"
                           "and prints the line that joins a node.  Run it again to finish a setup "
                           "that was interrupted, or\n"
                           "to get that line again; a setup that is complete is not changed.\n";

enum {
    OPT_ADDRESS = SETUP_OPT_FREE,
    OPT_PORT,
    OPT_NAME,
    OPT_CLUSTER,
    OPT_SERVICE,
    OPT_PLUGIN,
    OPT_MTU,
    OPT_ETCD,
    OPT_DNS,
};

static const struct command_option options[] = {
    {"address", OPT_ADDRESS, "ADDRESS",
     "address of this host for nodes and users; default: that of the link with the default route"},
    {"port", OPT_PORT, "PORT", "TCP port of the API; default: 8443"},
    {"name", OPT_NAME, "NAME",
     "a further name or address of the master, for its certificate; kubeconfigs have the first; "
     "may "
     "be repeated"},
    {"cluster-network", OPT_CLUSTER, "CIDR:BITS",
     "network of pods, with the bits of a node's subnet; default: 10.128.0.0/14:9; may be "
     "repeated"},
    {"service-network", OPT_SERVICE, "CIDR", "network of services; default: 172.30.0.0/16"},
    {"plugin", OPT_PLUGIN, "NAME", "which pods reach each other; default: ovs-subnet",
     "ovs-subnet ovs-multitenant ovs-networkpolicy"},
    {"mtu", OPT_MTU, "BYTES",
     "MTU of pods; default: 50 less than the link's, and at most 1450, for other hosts may have "
     "1500"},
    {"etcd", OPT_ETCD, "URLS",
     "servers of etcd, with commas between, as the store; default: a database file (SQLite)",
     .detail = "Certificates for etcd are set by --set etcdClientInfo.ca=FILE and so on."},
    {"dns", OPT_DNS, "ADDRESS:PORT",
     "where names of the cluster are answered, or none; default: the address, port 53"},
    {0},
};

struct master_setup {
    struct setup s;
    const char *address, *port, *service, *plugin, *mtu, *etcd, *dns;
    struct json *names, *clusters;
    uint16_t port_number;
    /* What runs in the end: of the file that is there, or is made. */
    struct master_config config;
    char *config_path;
    enum setup_written written;
    struct setup_facts facts;
};

static void done(struct master_setup *m)
{
    setup_facts_done(&m->facts);
    master_config_done(&m->config);
    json_free(m->names);
    json_free(m->clusters);
    free(m->config_path);
    setup_done(&m->s);
}

/* ---- the command line ---- */

static int add_cluster(struct master_setup *m, const char *value)
{
    const char *colon = strrchr(value, ':');
    uint64_t bits;
    if (!colon || str_to_u64(colon + 1, 30, &bits) < 0) {
        return command_usage(&setup_master_command,
                             "--cluster-network %s is not CIDR:BITS such as 10.128.0.0/14:9",
                             value);
    }
    struct json *o = json_append(m->clusters, json_object());
    json_set(o, "cidr", json_string_n(value, (size_t) (colon - value)));
    json_set_int(o, "hostSubnetLength", (int64_t) bits);
    return -1;
}

/* -1 to go on, else the exit status. */
static int take_option(struct master_setup *m, int opt)
{
    uint64_t port;
    uint32_t address;
    switch (opt) {
    case OPT_ADDRESS:
        if (ip4_parse(optarg, &address) < 0) {
            return command_usage(&setup_master_command, "--address %s is not an IPv4 address",
                                 optarg);
        }
        m->address = optarg;
        return -1;
    case OPT_PORT:
        if (str_to_u64(optarg, UINT16_MAX, &port) < 0 || port == 0) {
            return command_usage(&setup_master_command, "--port %s is not in 1-65535", optarg);
        }
        m->port = optarg;
        m->port_number = (uint16_t) port;
        return -1;
    case OPT_NAME:
        json_append(m->names, json_string(optarg));
        return -1;
    case OPT_CLUSTER:
        return add_cluster(m, optarg);
    case OPT_SERVICE:
        m->service = optarg;
        return -1;
    case OPT_PLUGIN:
        m->plugin = optarg;
        return -1;
    case OPT_MTU:
        m->mtu = optarg;
        return -1;
    case OPT_ETCD:
        m->etcd = optarg;
        return -1;
    case OPT_DNS:
        m->dns = optarg;
        return -1;
    default:
        return setup_take_option(&m->s, opt) ? -1 : opt == OPT_HELP ? 0 : 2;
    }
}

static int parse(struct master_setup *m, int argc, char **argv)
{
    int opt, status = -1;
    optind = 0;
    while (status < 0 && (opt = command_getopt(&setup_master_command, argc, argv, NULL)) != -1) {
        status = take_option(m, opt);
    }
    return status >= 0 ? status : command_expect_end(&setup_master_command, argc, argv);
}

/* Whether an option of the configuration was given. */
static bool has_wishes(const struct master_setup *m)
{
    return m->address || m->port || m->service || m->plugin || m->mtu || m->etcd || m->dns ||
           json_count(m->names) || json_count(m->clusters) || m->s.n_sets;
}

/* ---- the configuration ---- */

static uint32_t link_mtu(const struct setup_facts *f, uint32_t address)
{
    for (size_t i = 0; i < f->n_nets; i++) {
        for (size_t k = 0; f->nets[i].addr == address && k < f->n_links; k++) {
            if (streq(f->links[k].name, f->nets[i].ifname)) {
                return f->links[k].mtu;
            }
        }
    }
    return LINK_MTU;
}

static int set_network(const struct master_setup *m, struct json *doc, uint32_t address,
                       struct err *e)
{
    struct json *n = json_ensure_object(doc, "networkConfig");
    uint32_t mtu = MIN(link_mtu(&m->facts, address), (uint32_t) LINK_MTU) - SDN_VXLAN_OVERHEAD;
    CLEANUP_FREE char *mtu_text = xasprintf("%u", mtu);
    struct {
        const char *path, *value;
    } rows[] = {
        {"networkConfig.serviceNetworkCIDR", m->service ? m->service : "172.30.0.0/16"},
        {"networkConfig.networkPluginName", m->plugin ? m->plugin : "redhat/openshift-ovs-subnet"},
        {"networkConfig.mtu", m->mtu ? m->mtu : mtu_text}};
    if (json_count(m->clusters)) {
        json_set(n, "clusterNetworks", json_clone(m->clusters));
    } else {
        struct json *o = json_append(json_ensure_array(n, "clusterNetworks"), json_object());
        json_set_string(o, "cidr", "10.128.0.0/14");
        json_set_int(o, "hostSubnetLength", 9);
    }
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++) {
        r = setup_config_set(doc, &master_options, rows[i].path, rows[i].value, e);
    }
    return r;
}

/* The document for this host and the options of the command line. */
static int make_document(const struct master_setup *m, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *doc = json_object();
    uint32_t address = m->facts.address;
    int r = 0;
    if (m->address && (r = ip4_parse(m->address, &address)) < 0) {
        return err_set(e, r, "--address %s is not an IPv4 address", m->address);
    }
    json_set_string(doc, "apiVersion", "v1");
    json_set_string(doc, "kind", "MasterConfig");
    if ((r = set_network(m, doc, address, e)) < 0) {
        return r;
    }
    struct json *serving = json_ensure_object(doc, "servingInfo");
    json_set(serving, "bindAddress",
             json_stringf("%s:%u", IP4_TEXT(address), m->port_number ? m->port_number : API_PORT));
    json_set_string(serving, "tls", "auto");
    json_set(serving, "pkiDir", json_stringf("%s/pki", m->s.state));
    if (json_count(m->names)) {
        json_set(serving, "names", json_clone(m->names));
    }
    if (m->etcd) {
        r = setup_config_set(doc, &master_options, "etcdClientInfo.urls", m->etcd, e);
    } else {
        struct json *storage = json_ensure_object(doc, "storage");
        json_set(storage, "path", json_stringf("%s/registry.db", m->s.state));
    }
    if (m->dns) {
        json_set_string(json_ensure_object(doc, "dnsConfig"), "bindAddress", m->dns);
    }
    if (r == 0) {
        r = setup_config_sets(&m->s, doc, &master_options, e);
    }
    if (r == 0) {
        *ret = TAKE(doc);
    }
    return r;
}

/* Whether the configuration is one with which nodes can join. */
static int check_config(const struct master_setup *m, struct err *e)
{
    int r = master_config_check(&m->config, MASTER_WHOLE, e);
    if (r < 0) {
        return r;
    }
    if (master_config_tls(&m->config) != MASTER_TLS_AUTO) {
        return err_set(e, -EINVAL,
                       "servingInfo.tls: must be auto for setup: without it nodes could not know "
                       "the master");
    }
    if (master_config_is_loopback(&m->config)) {
        return err_set(e, -EINVAL,
                       "servingInfo.bindAddress: %s cannot be reached by nodes: --address ADDRESS",
                       m->config.bind_address);
    }
    return 0;
}

/* Reads the file that is there, or, where setup may write it, the document that it would get:
 * '*ret_text' is then the text (owned). */
static int plan_config(struct master_setup *m, char **ret_text, struct err *e)
{
    CLEANUP(json_free) struct json *doc = NULL;
    struct strbuf text = STRBUF_INIT;
    enum setup_state state;
    int r = setup_files_look(m->s.files, m->config_path, setup_sample(m->config_path), &state, e);
    if (r < 0) {
        return r;
    }
    if (state == SETUP_FOREIGN && has_wishes(m)) {
        return err_set(e, -EEXIST,
                       "%s was edited: setup does not change it, and takes no options for it; edit "
                       "it, or move it away",
                       m->config_path);
    }
    if (state == SETUP_FOREIGN || (state == SETUP_OWN && !has_wishes(m))) {
        r = master_config_load(m->config_path, &m->config, e);
        return r < 0 ? r : check_config(m, e) < 0 ? err_prefix(e, "%s", m->config_path) : 0;
    }
    r = make_document(m, &doc, e);
    if (r < 0 || (r = master_config_read(&m->config, doc, NULL, e)) < 0 ||
        (r = check_config(m, e)) < 0) {
        return r;
    }
    setup_config_text(doc, "master", "tenet-master-config(5)", &text);
    *ret_text = strbuf_steal(&text);
    return 0;
}

/* ---- checks ---- */

static struct setup_wish wish_of(const struct master_setup *m)
{
    char host[OPTION_HOST_SIZE];
    uint64_t port = API_PORT;
    struct setup_wish w = {.roles = SETUP_MASTER,
                           .network = &m->config.network,
                           .etcd = streq(m->config.storage_backend, "etcd")};
    if (option_split_endpoint(m->config.bind_address, host, &port) == 0) {
        uint32_t address = 0;
        (void) ip4_parse(host, &address);
        w.address = address;
        w.api_port = (uint16_t) port;
    }
    w.dns = !m->config.dns.bind_address;
    return w;
}

/* ---- the steps ---- */

/* The first certificates, where the master is started by hand.  Its service makes them itself,
 * under the user that systemd gives it, as it makes all later ones. */
static int make_certificates(struct master_setup *m, uint16_t port, struct err *e)
{
    CLEANUP_FREE char *dir = xasprintf("%s/pki", m->s.state);
    const char *pki = m->config.pki_dir ? m->config.pki_dir : dir;
    CLEANUP_FREE char *admin = xasprintf("%s/admin.kubeconfig", pki);
    struct pki_ca *ca = NULL;
    if (setup_has_unit(&m->s, UNIT)) {
        return 0;
    }
    if (access(admin, F_OK) == 0) {
        setup_say("certificates are in %s", pki);
        return 0;
    }
    int r = setup_files_dir(m->s.files, ROLE, m->s.state, 0755, e);
    r = r < 0 ? r : master_pki_ensure(&m->config, pki, port, false, &ca, NULL, e);
    pki_ca_free(ca);
    if (r == 0) {
        setup_say("made the cluster's authority and certificates in %s", pki);
    }
    return r;
}

static void print_by_hand(const struct master_setup *m)
{
    printf("\nStart the master, for example:\n\n"
           "    tenet master --config %s\n\n"
           "then run \"tenet setup master%s%s\" again: it prints the line that joins a node.\n",
           m->config_path, *m->s.prefix ? " --prefix " : "", m->s.prefix);
}

static void print_hints(const struct master_setup *m, const struct setup_wish *w)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE char *api = xasprintf("%u/tcp", w->api_port);
    const char *const ports[] = {api, NULL};
    setup_firewall_text(&m->facts, ports, &text);
    printf("\nNodes and users need TCP port %u of this host. If a firewall is in the way:\n\n",
           w->api_port);
    for (const char *line = strbuf_cstr(&text); *line;) {
        size_t n = strcspn(line, "\n");
        printf("    %.*s\n", (int) n, line);
        line += n + (line[n] == '\n');
    }
}

static int print_join(const struct master_setup *m, const char *kubeconfig, struct err *e)
{
    CLEANUP_FREE char *line = NULL;
    char until[TIME_TEXT_SIZE];
    int64_t until_ms = 0;
    int r = setup_join_line(kubeconfig, "tenet setup master", &line, &until_ms, e);
    if (r < 0) {
        return r;
    }
    time_format_s(until_ms, until);
    printf("\nThe master is ready. To use it:\n\n"
           "    export KUBECONFIG=%s\n\n"
           "To join a node, run this on it (valid until %s, for one node):\n\n"
           "    %s\n\n"
           "For a further line: tenet token create --print-join-command --kubeconfig %s\n",
           kubeconfig, until, line, kubeconfig);
    explicit_bzero(line, strlen(line));
    return 0;
}

static int start(struct master_setup *m, const struct setup_wish *w, struct err *e)
{
    CLEANUP_FREE char *dir = xasprintf("%s/pki", m->s.state);
    CLEANUP_FREE char *kubeconfig =
        xasprintf("%s/admin.kubeconfig", m->config.pki_dir ? m->config.pki_dir : dir);
    bool unit = setup_has_unit(&m->s, UNIT);
    if (unit) {
        int r = setup_start_unit(UNIT, m->written == SETUP_CHANGED, e);
        if (r < 0) {
            return r;
        }
        setup_say(UNIT " is enabled and runs; certificates are beside %s", kubeconfig);
    }
    if (!setup_api_answers(kubeconfig, unit ? READY_MS : 0, e)) {
        if (unit) {
            return err_prefix(e, "the master does not answer"), -ETIMEDOUT;
        }
        print_by_hand(m);
        print_hints(m, w);
        return 0;
    }
    int r = print_join(m, kubeconfig, e);
    if (r == 0) {
        print_hints(m, w);
    }
    return r;
}

static int set_up(struct master_setup *m, struct err *e)
{
    CLEANUP_FREE char *text = NULL;
    struct setup_places p = {.state_dir = m->s.state, .cni_conf_dir = m->s.cni};
    setup_facts_read(&p, SETUP_MASTER, &m->facts);
    if (!m->facts.address && !m->address) {
        return err_set(e, -EADDRNOTAVAIL,
                       "no link of this host has a default route: --address ADDRESS, at which "
                       "nodes reach it");
    }
    int r = plan_config(m, &text, e);
    if (r < 0) {
        return r;
    }
    struct setup_wish w = wish_of(m);
    setup_facts_done(&m->facts);
    size_t failed = setup_run_checks(&m->s, &w, m->config.storage_endpoints, false, &m->facts);
    if (failed && !m->s.ignore_checks) {
        return err_set(e, -EPERM,
                       "%zu check%s failed, and nothing was changed; --ignore-checks goes on",
                       failed, failed == 1 ? "" : "s");
    }
    m->written = SETUP_KEPT;
    if (text) {
        r = setup_files_write(m->s.files, ROLE, m->config_path, text, 0644,
                              setup_sample(m->config_path), &m->written, e);
        if (r < 0) {
            return r;
        }
    }
    setup_say("%s %s",
              m->written == SETUP_MADE      ? "made"
              : m->written == SETUP_CHANGED ? "changed"
                                            : "the configuration is",
              m->config_path);
    r = make_certificates(m, w.api_port, e);
    return r < 0 ? r : start(m, &w, e);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(done))) struct master_setup m = {.names = json_array(),
                                                            .clusters = json_array()};
    struct err e = {0};
    master_config_init(&m.config);
    int status = parse(&m, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (geteuid() != 0 && !m.s.prefix) {
        return command_fail(NULL, "setup writes /etc/tenet: run it as root");
    }
    int r = setup_open(&m.s, true, &e);
    if (r == 0) {
        m.config_path = xasprintf("%s/master-config.yaml", m.s.etc);
        r = set_up(&m, &e);
    }
    return r < 0 ? command_fail(&e, NULL) : 0;
}

const struct command setup_master_command = {.name = "setup master",
                                             .summary = "makes this host the master of a cluster",
                                             .help = help,
                                             .options = options,
                                             .shared = setup_options,
                                             .run = run};
