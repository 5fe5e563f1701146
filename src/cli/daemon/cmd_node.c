/* SPDX-License-Identifier: Apache-2.0 */
/* tenet node: the agent of a host that carries pods. */
#include "base/str.h"
#include "cli/command.h"
#include "cli/explain/node_flows.h"
#include "cli/explain/node_maps.h"
#include "node/agent/agent.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#define DEFAULT_CONFIG "/etc/tenet/node-config.yaml"
#define MAX_KEYS 32

enum { OPT_KEY = 256, OPT_CONFIG = 1, OPT_HELP, OPT_KUBECONFIG, OPT_MOUNTS };

static const char help[] =
    "usage: tenet node [--config node-config.yaml] [OPTIONS]\n"
    "       tenet node flows [OPTIONS]     the pipeline of a running node in words; --help\n"
    "       tenet node maps [OPTIONS]      the eBPF maps of a running node; --help\n"
    "\n"
    "Joins this host to the pod network: registers it, waits for its subnet, sets up br0, vxlan0,\n"
    "tun0, routes and NAT, and attaches pods for the container runtime (CNI). Runs until it is\n"
    "stopped; packets flow on without it. Needs root, a running Open vSwitch, and nft.\n"
    "\n"
    "  --config FILE               configuration (" DEFAULT_CONFIG " when it is there)\n"
    "  --make-mounts               make the mounts below runDir that outlive the agent, and exit:\n"
    "                              before an agent that has a mount namespace of its own\n"
    "\n"
    "Each option sets a key of the file and goes before it:\n"
    "  --node-name NAME            nodeName: name of the Node (the host's name)\n"
    "  --node-ip ADDRESS           nodeIP: end of the tunnels (address of the default route's "
    "link)\n"
    "  --master-kubeconfig FILE    masterKubeConfig: how to reach the master ($KUBECONFIG); also\n"
    "  --kubeconfig FILE           of any Kubernetes API server that has the network's kinds\n"
    "  --master-servers URLS       masterServers: more masters, for when that one does not answer\n"
    "  --bootstrap-kubeconfig FILE bootstrapKubeConfig: a token to get the node's certificate "
    "with\n"
    "  --plugin NAME               networkConfig.networkPluginName: refuse any other of the "
    "cluster\n"
    "  --mtu N                     networkConfig.mtu: of pods (the cluster's, 1450)\n"
    "  --run-dir DIR               runDir: of socket and lock (/run/tenet/node)\n"
    "  --cni-conf-dir DIR          cniConfDir: where the runtime looks (/etc/cni/net.d)\n"
    "  --cni-conf-name NAME        cniConfName: file written when ready "
    "(80-openshift-network.conf)\n"
    "  --cni-plugins LIST          cniPlugins: chained after ours: portmap, bandwidth (none)\n"
    "  --datapath KIND             networkConfig.datapath: ovs (default) or ebpf\n"
    "  --ebpf-without LIST         ebpf.without: of tcx, redirect_peer, scrub, ringbuf,\n"
    "                              encap:\n"
    "                              not to be used (nothing)\n"
    "  --ebpf-max-entries N        ebpf.maxEntries: of a map that the agent fills, if less than "
    "usual\n"
    "  --ovs-database PATH         ovs.database: ovsdb-server's socket (/run/openvswitch/db.sock)\n"
    "  --ovs-run-dir DIR           ovs.runDir: where BRIDGE.mgmt is (/run/openvswitch)\n"
    "  --ovs-bridge NAME           ovs.bridge: (br0)\n"
    "  --ovs-datapath-type TYPE    ovs.datapathType: system or netdev (system where the kernel has "
    "it)\n"
    "  --proxy-mode MODE           proxyArguments.proxy-mode: iptables or nftables (both translate "
    "by\n"
    "                              nftables), or userspace (iptables)\n"
    "  --metrics-bind-address A:P  metricsBindAddress: /metrics and /healthz there, too (only at\n"
    "                              agent.sock in runDir)\n"
    "  --dns-domain NAME           dnsDomain: of the cluster's names (cluster.local)\n"
    "  --dns-bind-address A[:P]    dnsBindAddress: where DNS is answered for pods, or none (the\n"
    "                              gateway of the node's subnet, port 53)\n"
    "  --dns-ip ADDRESS            dnsIP: what pods are told to ask (the gateway)\n"
    "  --dns-nameservers LIST      dnsNameservers: asked for other names, or none (those of)\n"
    "  --dns-resolv-conf FILE      dnsRecursiveResolvConf: (/etc/resolv.conf)\n"
    "  --dns-isolate-projects BOOL dnsIsolateProjects: under -multitenant a pod gets names of its "
    "own\n"
    "                              project and of global ones only (false)\n"
    "  --log-level SPEC            logLevel: error, warn, info or debug; \"info,pods=debug\"\n"
    "\n"
    "The file written last, in cniConfDir, is the sign that the node is ready. SIGTERM removes it "
    "and\n"
    "stops the agent; SIGHUP reads logLevel again. Exit status: 0 stopped, 1 it cannot go on (the "
    "last\n"
    "line says why), 2 wrong usage.\n";

struct run_options {
    const char *config; /* NULL: the default, when it is there. */
    bool mounts_only;
};

/* Sets what the command line says over 'c'; an exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct node_config *c, struct run_options *ret)
{
    enum { N_FIXED = 4 };
    struct option options[MAX_KEYS + N_FIXED + 1] = {
        {"config", required_argument, NULL, OPT_CONFIG},
        {"help", no_argument, NULL, OPT_HELP},
        {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
        {"make-mounts", no_argument, NULL, OPT_MOUNTS}};
    for (size_t i = 0; i < node_options.n; i++) {
        assert(i < MAX_KEYS);
        options[i + N_FIXED] =
            (struct option){node_options.rows[i].flag, required_argument, NULL, OPT_KEY + (int) i};
    }
    opterr = 0;
    optind = 0;
    int opt;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (opt == OPT_HELP) {
            fputs(help, stdout);
            return 0;
        }
        if (opt == OPT_CONFIG) {
            ret->config = optarg;
        } else if (opt == OPT_MOUNTS) {
            ret->mounts_only = true;
        } else if (opt == ':') {
            return command_usage(&cmd_node, "%s needs a value", argv[optind - 1]);
        } else if (opt == OPT_KUBECONFIG) {
            (void) options_set_path(&node_options, c, "masterKubeConfig", optarg, NULL);
        } else if (opt < OPT_KEY) {
            return command_usage(&cmd_node, "unknown option %s", argv[optind - 1]);
        } else {
            const char *flag = node_options.rows[opt - OPT_KEY].flag;
            struct err e = {0};
            if (options_set_flag(&node_options, c, flag, optarg, &e) < 0) {
                return command_usage(&cmd_node, "%s", e.text);
            }
        }
    }
    if (optind < argc) {
        return command_usage(&cmd_node, "unexpected argument \"%s\"", argv[optind]);
    }
    return -1;
}

static int run_agent(int argc, char **argv)
{
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    struct run_options o = {0};
    node_config_init(&c);
    /* Twice: first to know the file, then to go before it. */
    int status = parse_options(argc, argv, &c, &o);
    if (status >= 0) {
        return status;
    }
    const char *config = o.config;
    if (!config && access(DEFAULT_CONFIG, F_OK) == 0) {
        config = DEFAULT_CONFIG;
    }
    if (config && node_config_load(&c, config, &e) < 0) {
        return command_fail(&e, NULL);
    }
    parse_options(argc, argv, &c, &o);
    if (node_config_finish(&c, &e) < 0 || node_config_apply_log_level(&c, &e) < 0) {
        return command_fail(&e, config ? "%s" : NULL, config);
    }
    status = o.mounts_only ? agent_make_mounts(&c, &e) : agent_run(&c, config, &e);
    return status < 0 ? command_fail(&e, NULL) : status;
}

static int run(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    return streq(what, "flows")  ? node_flows_run(argc - 1, argv + 1)
           : streq(what, "maps") ? node_maps_run(argc - 1, argv + 1)
                                 : run_agent(argc, argv);
}

const struct command cmd_node = {
    .name = "node",
    .summary = "carry pods on this host: the agent of a node",
    .help = help,
    .run = run,
};
