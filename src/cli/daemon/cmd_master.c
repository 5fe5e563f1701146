/* SPDX-License-Identifier: Apache-2.0 */
/* tenet master: the registry and its controllers in one process.
 *
 * It sets up no network device: a host that is only a master has no part in the pod network. */
#include "base/log.h"
#include "base/mem.h"
#include "cli/command.h"
#include "master/master.h"

#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "usage: tenet master [--config FILE] [OPTIONS]\n"
    "\n"
    "Runs the master: the cluster's registry as a Kubernetes-style API, and the controllers that "
    "give\n"
    "each node a subnet and each project a virtual network. Touches no network device.\n"
    "\n"
    "  -c, --config FILE             master-config.yaml; see tenet-master-config(5)\n"
    "      --cluster-network CIDR:N  network of pods, with N bits of it for each node (may be "
    "repeated);\n"
    "                                default: 10.128.0.0/14:9\n"
    "      --service-network CIDR    network of services; default: 172.30.0.0/16\n"
    "      --service-node-port-range FIRST-LAST  ports of NodePort services; default:\n"
    "                                30000-32767\n"
    "      --external-ip-network CIDR,...  addresses that services may have as externalIPs, and\n"
    "                                with \"!\" before it those that they may not; default: none\n"
    "      --ingress-ip-network CIDR addresses of LoadBalancer services; \"\": none; default:\n"
    "                                172.29.0.0/16\n"
    "      --foreign-pod-network CIDR,...  addresses that other CNI plug-ins of the nodes give to\n"
    "                                pods; default: none\n"
    "      --reserved-address ADDRESS,...  addresses or CIDRs that no node has, as of routers;\n"
    "                                default: none\n"
    "      --master-node NAME,...    nodes that run on hosts of masters; default: the one of this\n"
    "                                host's name\n"
    "      --plugin NAME             redhat/openshift-ovs-subnet (default), -multitenant or\n"
    "                                -networkpolicy\n"
    "      --vxlan-port PORT         UDP port of the overlay; default: 4789\n"
    "      --mtu BYTES               of pods; default: 1450\n"
    "      --bind-address HOST:PORT  of the API; default: 127.0.0.1:8443; port 0: any\n"
    "      --tls MODE                auto: HTTPS with a CA of its own; off (default)\n"
    "      --pki-dir DIR             where that CA is; default: /var/lib/tenet/pki\n"
    "      --tls-cert-file FILE      HTTPS with this certificate, and\n"
    "      --tls-key-file FILE       this key\n"
    "      --client-ca-file FILE     clients show certificates of this CA\n"
    "      --authorization-mode MODE RBAC (default with HTTPS), or AlwaysAllow\n"
    "      --anonymous-auth BOOL     requests without a credential are taken; default with RBAC: "
    "true\n"
    "      --service-account-signing-key-file FILE\n"
    "                                key of service accounts' tokens; default: sa.key of "
    "--pki-dir\n"
    "      --audit-log-path FILE     writes an audit log, as\n"
    "      --audit-policy-file FILE  this policy says\n"
    "      --storage-backend NAME    sqlite (default), etcd, or memory, which forgets\n"
    "      --storage-path FILE       sqlite's; default: /var/lib/tenet/registry.db\n"
    "      --storage-endpoints URLS  etcd's: https://host:port[,...]\n"
    "      --etcd-ca-file FILE       CA of etcd's certificate, for https\n"
    "      --etcd-cert-file FILE     our certificate for etcd, and\n"
    "      --etcd-key-file FILE      its key\n"
    "      --controller-lease-ttl S  etcd: seconds after which another master's controllers take "
    "over\n"
    "                                from one that died; default: 15\n"
    "      --dns-bind-address A[:P]  where DNS is answered, or none; default: the address of the "
    "API,\n"
    "                                port 53\n"
    "      --dns-isolate-projects BOOL  under -multitenant it answers only names of global "
    "projects;\n"
    "                                default: false\n"
    "      --limit NAME=VALUE        a limit of what clients may use, as in the file's \"limits\" "
    "(may "
    "be\n"
    "                                repeated)\n"
    "      --log-level SPEC          level, and levels of modules: info,subnets=debug\n"
    "      --controllers-only        serve no API: run the network's controllers on another API "
    "server,\n"
    "      --kubeconfig FILE         that of this file; default: $KUBECONFIG, then "
    "~/.kube/config\n"
    "  -h, --help                    this text\n"
    "\n"
    "Options override the file. Listening sockets passed by socket activation are served too.\n";

/* ---- configuration ---- */

/* Values of options, applied after the file whatever their place on the line. */
struct option_value {
    const char *name, *value;
};

enum { OPT_HELP = 256, OPT_CONTROLLERS_ONLY, OPT_KUBECONFIG, OPT_CONFIG_FIRST };
#define MAX_VALUES 64

/* What the command line says beside the configuration. */
struct invocation {
    const char *config; /* The configuration file; NULL: none. */
    bool controllers_only;
    const char *kubeconfig; /* NULL: not given. */
};

/* -1: go on; else the exit status. */
static int parse_options(int argc, char **argv, struct master_config *c, struct invocation *ret)
{
    CLEANUP_FREE struct option *longs = xcalloc(master_options.n + 5, sizeof(*longs));
    size_t n_longs = 0;
    longs[n_longs++] = (struct option){"help", no_argument, NULL, OPT_HELP};
    longs[n_longs++] = (struct option){"config", required_argument, NULL, 'c'};
    longs[n_longs++] = (struct option){"controllers-only", no_argument, NULL, OPT_CONTROLLERS_ONLY};
    longs[n_longs++] = (struct option){"kubeconfig", required_argument, NULL, OPT_KUBECONFIG};
    for (size_t i = 0; i < master_options.n; i++) {
        if (master_options.rows[i].flag) {
            longs[n_longs++] = (struct option){master_options.rows[i].flag, required_argument, NULL,
                                               OPT_CONFIG_FIRST + (int) i};
        }
    }
    struct option_value values[MAX_VALUES];
    size_t n = 0;
    struct err e = {0};
    char bad[64];
    int opt;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":hc:", longs, NULL)) != -1) {
        if (opt == 'h' || opt == OPT_HELP) {
            fputs(help, stdout);
            return 0;
        } else if (opt == 'c') {
            ret->config = optarg;
        } else if (opt == OPT_CONTROLLERS_ONLY) {
            ret->controllers_only = true;
        } else if (opt == OPT_KUBECONFIG) {
            ret->kubeconfig = optarg;
        } else if (opt == ':' || opt == '?') {
            return command_usage(&cmd_master, "%s %s",
                                 opt == ':' ? "a value is missing after" : "wrong option",
                                 argv[optind - 1]);
        } else if (n == MAX_VALUES) {
            return command_usage(&cmd_master, "too many options");
        } else {
            values[n++] =
                (struct option_value){master_options.rows[opt - OPT_CONFIG_FIRST].flag, optarg};
        }
    }
    if (optind < argc) {
        return command_usage(&cmd_master, "unexpected argument \"%s\"", argv[optind]);
    }
    if (ret->kubeconfig && !ret->controllers_only) {
        return command_usage(&cmd_master,
                             "--kubeconfig goes with --controllers-only: else the master "
                             "serves the API itself");
    }
    if (ret->config && master_config_load(ret->config, c, &e) < 0) {
        return command_fail(&e, NULL);
    }
    for (size_t i = 0; i < n; i++) {
        if (options_set_flag(&master_options, c, values[i].name, values[i].value, &e) < 0) {
            return command_usage(&cmd_master, "%s", e.text);
        }
    }
    if (c->log_level && log_set_levels(c->log_level, bad) < 0) {
        (void) err_set(&e, -EINVAL, "logLevel: \"%s\" is not a level such as info", bad);
    } else if (master_config_check(c, &e) == 0) {
        return -1;
    }
    return ret->config ? command_fail(&e, "%s", ret->config) : command_fail(&e, NULL);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct invocation inv = {0};
    int status = parse_options(argc, argv, &c, &inv);
    if (status >= 0) {
        return status;
    }
    struct master_run run = {.config = &c,
                             .config_path = inv.config,
                             .parts = inv.controllers_only ? MASTER_CONTROLLERS : MASTER_WHOLE,
                             .kubeconfig = inv.kubeconfig,
                             .network_only = inv.controllers_only};
    struct err e = {0};
    return master_run(&run, &e) < 0 ? command_fail(&e, NULL) : 0;
}

const struct command cmd_master = {.name = "master",
                                   .summary = "run the master: registry and controllers",
                                   .help = help,
                                   .run = run};
