/* SPDX-License-Identifier: Apache-2.0 */
/* tenet lab: a cluster of several nodes on this machine. */
#include "cli/command.h"

#include "base/ip.h"
#include "base/mem.h"
#include "datapath/datapath.h"
#include "lab/lab.h"
#include "sdn/network.h"

#include <getopt.h>
#include <stdio.h>

#define DEFAULT_NAME "lab"
#define MTU_MIN 576
#define MTU_MAX 65485 /* The largest packet that fits into 65535 bytes with VXLAN around it. */

static const char help[] =
    "tenet lab: a cluster of several nodes on this machine, each in a network namespace\n"
    "\n"
    "usage: tenet lab [--name LAB] COMMAND ...\n"
    "\n"
    "  up [--nodes N] [--plugin NAME] [--store sqlite|etcd] [--datapath LIST] [--no-containers]\n"
    "                            make the lab: master, nodes node1, node2, ..., an outside host\n"
    "  down                      remove all of it, whatever state it is in\n"
    "  status                    kubeconfig, nodes, agents, pods\n"
    "\n"
    "  project add|delete NAME\n"
    "  pod add PROJECT/NAME [--node NODE] [--label KEY=VALUE]... [--port NAME=NUMBER[/PROTO]]...\n"
    "      [--no-service-links]               attach a pod, as kubelet and a runtime do\n"
    "  pod delete PROJECT/NAME\n"
    "  pod ready|unready PROJECT/NAME         what its readiness probe says\n"
    "  exec PROJECT/NAME -- COMMAND ...       run COMMAND in the pod's network namespace\n"
    "\n"
    "  node add|delete NAME\n"
    "  node start|stop|restart|kill NAME      the node's agent; its packets go on without it\n"
    "  node exec NODE -- COMMAND ...          on a node, or on master, outside, wire\n"
    "  ovs start|stop|restart|kill NODE       the node's Open vSwitch\n"
    "  kubelet start|stop|restart|kill NODE   the node's kubelet; its containers go on\n"
    "  containerd start|stop|restart|kill NODE   its container runtime; containers go on, too\n"
    "  master start|stop|restart|kill [N]     all masters and etcd, or the Nth master\n";

/* Bits of 'given'. */
enum { GIVEN_OUTPUT, GIVEN_NODE, GIVEN_LABEL, GIVEN_PORT, GIVEN_NO_LINKS, GIVEN_UP };

enum { OPT_NAME = OPT_FIRST_FREE, OPT_NODE, OPT_LABEL, OPT_PORT, OPT_NO_LINKS, OPT_UP };

static const struct command_option options[] = {
    {"name", OPT_NAME, "LAB", "which lab; several live side by side; default: " DEFAULT_NAME},
    {"output", 'o', "json", "for up, status and pod add: data for programs", "json"},
    {.help = "options of pod add:"},
    {"node", OPT_NODE, "NODE", "the pod's node"},
    {"label", OPT_LABEL, "KEY=VALUE", "a label of the pod (may be repeated)"},
    {"port", OPT_PORT, "NAME=NUMBER[/PROTO]", "a named port of the pod (may be repeated)"},
    {"no-service-links", OPT_NO_LINKS, NULL, "no variables of services in the pod's environment"},
    {.help = "options of up:"},
    {"nodes", OPT_UP, "N", "0 to 200; default: 3"},
    {"masters", OPT_UP, "N", "1 to 9, several on etcd only; default: 1"},
    {"plugin", OPT_UP, "NAME",
     "redhat/openshift-ovs-multitenant (default), -ovs-subnet or -ovs-networkpolicy; or flannel, "
     "which needs --datapath hostgw",
     "redhat/openshift-ovs-subnet redhat/openshift-ovs-multitenant "
     "redhat/openshift-ovs-networkpolicy flannel"},
    {"store", OPT_UP, "NAME", "where the registry is kept: sqlite (default) or etcd",
     "sqlite etcd"},
    {"datapath", OPT_UP, "LIST",
     "ovs (default), ebpf, or both with a comma between: the nodes take them in turn; hostgw for "
     "the "
     "plug-in flannel",
     "ovs ebpf ovs,ebpf hostgw"},
    {"datapath-type", OPT_UP, "TYPE",
     "netdev: Open vSwitch's own, works on any kernel (default); system: the kernel's, needs its "
     "module openvswitch",
     "netdev system"},
    {"cluster-network", OPT_UP, "CIDR", "pods' addresses; default: 10.128.0.0/14"},
    {"host-subnet-length", OPT_UP, "BITS", "bits of each node's share; default: 9, a /23"},
    {"mtu", OPT_UP, "BYTES", "MTU of pods; default: 1450"},
    {"vxlan-port", OPT_UP, "PORT", "UDP port of the overlay; default: 4789"},
    {"no-containers", OPT_UP, NULL, "a lab of networks only: no kubelet and no containerd"},
    {"tls", OPT_UP, NULL,
     "HTTPS, and a certificate of its own for each node; always so with containers"},
    {"oauth", OPT_UP, NULL,
     "an OAuth server where each name logs in with any password, for tenet login; implies --tls"},
    {"keep", OPT_UP, NULL, "leaves everything as it is after a failure"},
    {.help = "other options:"},
    {0},
};

struct args {
    const char *lab, *node;
    struct json *labels, *ports; /* Labels and ports of the pod. */
    bool json;
    unsigned given; /* Bits 1 << GIVEN_...; all options of "up" share one bit. */
    const char *up_option;
    struct lab_options up;
    char **words; /* Arguments that are no options. */
    int n_words;
    char **argv; /* The arguments after "--"; NULL: there was none. */
};

static void print_progress(void *ctx, const char *line)
{
    FILE *f = ctx;
    fprintf(f, "%s\n", line);
    fflush(f);
}

/* ---- options ---- */

static int number_option(const char *option, const char *s, unsigned min, unsigned max,
                         unsigned *ret)
{
    uint64_t v;
    if (str_to_u64(s, max, &v) < 0 || v < min) {
        return command_usage(&cmd_lab, "--%s: \"%s\" is not a number from %u to %u", option, s, min,
                             max);
    }
    *ret = (unsigned) v;
    return 0;
}

static bool is_datapath_list(const char *s)
{
    for (;;) {
        size_t n = strcspn(s, ",");
        CLEANUP_FREE char *kind = xstrndup(s, n);
        if (datapath_check_kind(kind, NULL) < 0) {
            return false;
        }
        if (!s[n]) {
            return true;
        }
        s += n + 1;
    }
}

static int choice_option(const char *option, const char *s, const char *a, const char *b,
                         const char **ret)
{
    if (!streq(s, a) && !streq(s, b)) {
        return command_usage(&cmd_lab, "--%s: \"%s\" is not %s or %s", option, s, a, b);
    }
    *ret = s;
    return 0;
}

static int up_option(struct args *a, const char *option, const char *s)
{
    struct lab_options *u = &a->up;
    struct err e = {0};
    if (streq(option, "nodes")) {
        return number_option(option, s, 0, LAB_NODES_MAX, &u->nodes);
    }
    if (streq(option, "masters")) {
        return number_option(option, s, 1, LAB_MASTERS_MAX, &u->masters);
    }
    if (streq(option, "host-subnet-length")) {
        return number_option(option, s, 2, 30, &u->host_subnet_length);
    }
    if (streq(option, "mtu")) {
        return number_option(option, s, MTU_MIN, MTU_MAX, &u->mtu);
    }
    if (streq(option, "vxlan-port")) {
        return number_option(option, s, 1, UINT16_MAX, &u->vxlan_port);
    }
    if (streq(option, "store")) {
        return choice_option(option, s, "sqlite", "etcd", &u->store);
    }
    if (streq(option, "datapath")) {
        if (!is_datapath_list(s)) {
            return command_usage(
                &cmd_lab, "--datapath: \"%s\" is not ovs, ebpf, hostgw or a list of them", s);
        }
        u->datapath = s;
        return 0;
    }
    if (streq(option, "datapath-type")) {
        return choice_option(option, s, "netdev", "system", &u->datapath_type);
    }
    if (streq(option, "plugin")) {
        enum sdn_plugin p;
        if (sdn_plugin_parse(s, &p, &e) < 0) {
            return command_usage(&cmd_lab, "--plugin: %s", e.text);
        }
        u->plugin = sdn_plugin_name(p);
        return 0;
    }
    if (streq(option, "cluster-network")) {
        struct ip4_prefix p;
        if (prefix_parse(s, &p, &e) < 0) {
            return command_usage(&cmd_lab, "--cluster-network: %s", e.text);
        }
        u->cluster_network = s;
        return 0;
    }
    if (streq(option, "no-containers")) {
        u->containers = false;
        return 0;
    }
    *(streq(option, "tls") ? &u->tls : streq(option, "oauth") ? &u->oauth : &u->keep) = true;
    return 0;
}

/* Reads "KEY=VALUE" into the object 'map'; the API checks the rest. */
static int label_option(struct json *map, const char *s)
{
    const char *eq = strchr(s, '=');
    if (!eq || eq == s) {
        return command_usage(&cmd_lab, "--label: \"%s\" is not KEY=VALUE", s);
    }
    CLEANUP_FREE char *key = xstrndup(s, (size_t) (eq - s));
    json_set_string(map, key, eq + 1);
    return 0;
}

/* Reads "NAME=NUMBER[/PROTO]" into the list of a container's ports. */
static int port_option(struct json *list, const char *s)
{
    const char *eq = strchr(s, '='), *slash = strchr(s, '/');
    CLEANUP_FREE char *name = eq ? xstrndup(s, (size_t) (eq - s)) : NULL;
    CLEANUP_FREE char *number =
        eq && slash > eq ? xstrndup(eq + 1, (size_t) (slash - eq - 1)) : xstrdup(eq ? eq + 1 : "");
    uint64_t n;
    if (!name || str_to_u64(number, UINT16_MAX, &n) < 0) {
        return command_usage(&cmd_lab, "--port: \"%s\" is not NAME=NUMBER[/PROTO]", s);
    }
    struct json *port = json_append(list, json_object());
    json_set_string(port, "name", name);
    json_set_int(port, "containerPort", (int64_t) n);
    json_set_string(port, "protocol", slash ? slash + 1 : "TCP");
    return 0;
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(int argc, char **argv, struct args *a)
{
    int c, status = 0;
    const char *name = NULL;
    optind = 0;
    while (status == 0 && (c = command_getopt(&cmd_lab, argc, argv, &name)) != -1) {
        switch (c) {
        case OPT_NAME:
            a->lab = optarg;
            break;
        case 'o':
            if (!streq(optarg, "json")) {
                return command_usage(&cmd_lab, "-o: \"%s\" is not json", optarg);
            }
            a->json = true;
            a->given |= 1u << GIVEN_OUTPUT;
            break;
        case OPT_NODE:
            a->node = optarg;
            a->given |= 1u << GIVEN_NODE;
            break;
        case OPT_LABEL:
            a->given |= 1u << GIVEN_LABEL;
            status = label_option(a->labels, optarg);
            break;
        case OPT_PORT:
            a->given |= 1u << GIVEN_PORT;
            status = port_option(a->ports, optarg);
            break;
        case OPT_NO_LINKS:
            a->given |= 1u << GIVEN_NO_LINKS;
            break;
        case OPT_UP:
            a->up_option = name;
            a->given |= 1u << GIVEN_UP;
            status = up_option(a, name, optarg);
            break;
        default:
            return c == OPT_HELP ? 0 : 2;
        }
    }
    if (status != 0) {
        return status;
    }
    /* A node begins processes in containers for a master with a certificate only. */
    a->up.tls |= a->up.containers || a->up.oauth;
    a->words = argv + optind;
    a->n_words = argc - optind;
    return -1;
}

/* ---- output ---- */

static void print_json(const struct json *v)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    json_write(v, 4, &out);
    puts(strbuf_cstr(&out));
}

static const char *text_of(const struct json *v, const char *key)
{
    const char *s = json_path_string(v, key, NULL);
    return s && *s ? s : "-";
}

/* The process id of a daemon: -1: the lab has none of these. */
static const char *pid_text(int64_t pid, char out[24])
{
    snprintf(out, 24, "%lld", (long long) pid);
    return pid > 0 ? out : pid < 0 ? "none" : "stopped";
}

static void print_nodes(const struct json *nodes)
{
    struct json *n;
    printf("\n%-16s %-14s %-18s %-7s %-10s %-13s %-10s %s\n", "NODE", "HOST IP", "SUBNET", "READY",
           "AGENT", "OPEN VSWITCH", "KUBELET", "CONTAINERD");
    JSON_FOREACH (n, nodes) {
        char agent[24], kubelet[24], containerd[24];
        printf("%-16s %-14s %-18s %-7s %-10s %-13s %-10s %s\n", text_of(n, "name"),
               text_of(n, "hostIP"), text_of(n, "subnet"),
               json_get_bool(json_get(n, "ready"), false) ? "yes" : "no",
               pid_text(json_get_int_or(json_get(n, "pid"), 0), agent),
               json_get_bool(json_get(n, "ovsRunning"), false) ? "runs" : "stopped",
               pid_text(json_get_int_or(json_get(n, "kubeletPid"), -1), kubelet),
               pid_text(json_get_int_or(json_get(n, "containerdPid"), -1), containerd));
    }
}

static void print_pods(const struct json *pods)
{
    struct json *p;
    if (json_count(pods)) {
        printf("\n%-32s %-16s %s\n", "POD", "IP", "NODE");
    }
    JSON_FOREACH (p, pods) {
        CLEANUP_FREE char *ref = xasprintf("%s/%s", text_of(p, "project"), text_of(p, "name"));
        printf("%-32s %-16s %s\n", ref, text_of(p, "podIP"), text_of(p, "node"));
    }
}

static void print_status(const struct json *v)
{
    const struct json *master = json_get(v, "master");
    printf("lab %s: %s, cluster network %s, store %s\n", text_of(v, "name"), text_of(v, "plugin"),
           text_of(v, "clusterNetwork"), text_of(v, "store"));
    if (!json_get_bool(json_get(v, "complete"), false)) {
        printf("it is not complete: its start has not ended, or was broken off\n");
    }
    printf("export KUBECONFIG=%s\n", text_of(v, "kubeconfig"));
    const struct json *oauth = json_get(v, "oauth");
    if (json_count(oauth)) {
        printf("log in, with any password: tenet login %s --certificate-authority %s -u NAME\n",
               text_of(oauth, "server"), text_of(oauth, "certificateAuthority"));
    }
    const char *error = json_path_string(master, "error", NULL);
    if (!*error) {
        const struct json *m;
        JSON_FOREACH (m, json_get(v, "masters")) {
            printf("master: %s, pid %lld\n", text_of(m, "server"),
                   (long long) json_get_int_or(json_get(m, "pid"), 0));
        }
    } else {
        printf("master: %s; subnets and pods are unknown\n", error);
    }
    print_nodes(json_get(v, "nodes"));
    print_pods(json_get(v, "pods"));
}

/* ---- commands ---- */

static int done(int r, const struct err *e)
{
    return r < 0 ? command_fail(e, NULL) : 0;
}

/* Like the function above, and prints 'what' was done. */
static int done_saying(int r, const struct err *e, const char *what, const char *verb)
{
    if (r < 0) {
        return command_fail(e, NULL);
    }
    printf("%s %s\n", what, verb);
    return 0;
}

static int run_up(struct lab *l, struct args *a)
{
    struct err e = {0};
    CLEANUP(json_free) struct json *v = NULL;
    struct ip4_prefix p = {0};
    prefix_parse(a->up.cluster_network, &p, NULL);
    if (p.len + a->up.host_subnet_length > 32) {
        return command_usage(&cmd_lab, "--host-subnet-length: %u bits are more than the %d of %s",
                             a->up.host_subnet_length, 32 - p.len, a->up.cluster_network);
    }
    if (a->up.masters > 1 && !streq(a->up.store, "etcd")) {
        return command_usage(&cmd_lab, "--masters: several need --store etcd");
    }
    int r = lab_up(l, &a->up, &e);
    if (r == 0 && a->json && (r = lab_status(l, &v, &e)) == 0) {
        print_json(v);
    }
    return done(r, &e);
}

static int run_down(struct lab *l, struct args *a)
{
    struct err e = {0};
    bool found = false;
    int r = lab_down(l, &found, &e);
    if (r == 0) {
        printf(found ? "lab %s is removed\n" : "there is no lab %s\n",
               a->lab ? a->lab : DEFAULT_NAME);
    }
    return done(r, &e);
}

static int run_status(struct lab *l, struct args *a)
{
    struct err e = {0};
    CLEANUP(json_free) struct json *v = NULL;
    int r = lab_status(l, &v, &e);
    if (r == 0 && a->json) {
        print_json(v);
    } else if (r == 0) {
        print_status(v);
    }
    return done(r, &e);
}

static int run_project(struct lab *l, struct args *a)
{
    struct err e = {0};
    bool add = streq(a->words[1], "add");
    CLEANUP_FREE char *what = xasprintf("project %s", a->words[2]);
    int r = add ? lab_project_add(l, a->words[2], &e) : lab_project_delete(l, a->words[2], &e);
    return done_saying(r, &e, what, add ? "added" : "deleted");
}

/* Splits "PROJECT/NAME" in place; returns 0, or the exit status. */
static int split_ref(char *ref, char **ret_name)
{
    char *slash = strchr(ref, '/');
    if (!slash || slash == ref || !slash[1] || strchr(slash + 1, '/')) {
        return command_usage(&cmd_lab, "\"%s\" is not PROJECT/NAME", ref);
    }
    *slash = '\0';
    *ret_name = slash + 1;
    return 0;
}

static int run_pod(struct lab *l, struct args *a)
{
    struct err e = {0};
    CLEANUP(json_free) struct json *v = NULL;
    CLEANUP_FREE char *what = xasprintf("pod %s", a->words[2]);
    char *name, *project = a->words[2];
    int r = split_ref(project, &name);
    if (r) {
        return r;
    }
    if (streq(a->words[1], "delete")) {
        return done_saying(lab_pod_delete(l, project, name, &e), &e, what, "deleted");
    }
    bool ready = streq(a->words[1], "ready");
    if (ready || streq(a->words[1], "unready")) {
        return done_saying(lab_pod_ready(l, project, name, ready, &e), &e, what,
                           ready ? "is ready" : "is not ready");
    }
    bool links = !(a->given & 1u << GIVEN_NO_LINKS);
    if ((r = lab_pod_add(l, project, name, a->node, a->labels, a->ports, links, &v, &e)) < 0) {
        return done(r, &e);
    }
    if (a->json) {
        print_json(v);
    } else {
        printf("%s added: %s on %s, VNID %lld, namespace %s\n", what, text_of(v, "podIP"),
               text_of(v, "node"), (long long) json_get_int_or(json_get(v, "vnid"), 0),
               text_of(v, "netns"));
    }
    return 0;
}

static int run_exec(struct lab *l, struct args *a)
{
    struct err e = {0};
    char *name;
    int r = split_ref(a->words[1], &name);
    return r ? r : done(lab_pod_exec(l, a->words[1], name, a->argv, &e), &e);
}

static const char *const action_verbs[] = {"started", "stopped", "restarted", "killed"};

static enum lab_action action_of(const char *word)
{
    return streq(word, "start")  ? LAB_START
           : streq(word, "stop") ? LAB_STOP
           : streq(word, "kill") ? LAB_KILL
                                 : LAB_RESTART;
}

static int run_node(struct lab *l, struct args *a)
{
    struct err e = {0};
    const char *verb = a->words[1], *node = a->words[2];
    CLEANUP_FREE char *what = xasprintf("node %s", node);
    if (streq(verb, "add")) {
        return done_saying(lab_node_add(l, node, &e), &e, what, "added");
    }
    if (streq(verb, "delete")) {
        return done_saying(lab_node_delete(l, node, &e), &e, what, "deleted");
    }
    CLEANUP_FREE char *agent = xasprintf("the agent of %s is", node);
    return done_saying(lab_node_action(l, node, action_of(verb), &e), &e, agent,
                       action_verbs[action_of(verb)]);
}

static int run_node_exec(struct lab *l, struct args *a)
{
    struct err e = {0};
    return done(lab_node_exec(l, a->words[2], a->argv, &e), &e);
}

static int run_ovs(struct lab *l, struct args *a)
{
    struct err e = {0};
    enum lab_action action = action_of(a->words[1]);
    CLEANUP_FREE char *what = xasprintf("Open vSwitch of %s is", a->words[2]);
    return done_saying(lab_ovs(l, a->words[2], action, &e), &e, what, action_verbs[action]);
}

static int run_kubelet(struct lab *l, struct args *a)
{
    struct err e = {0};
    enum lab_action action = action_of(a->words[1]);
    CLEANUP_FREE char *what = xasprintf("the kubelet of %s is", a->words[2]);
    return done_saying(lab_kubelet(l, a->words[2], action, &e), &e, what, action_verbs[action]);
}

static int run_containerd(struct lab *l, struct args *a)
{
    struct err e = {0};
    enum lab_action action = action_of(a->words[1]);
    CLEANUP_FREE char *what = xasprintf("containerd of %s is", a->words[2]);
    return done_saying(lab_containerd(l, a->words[2], action, &e), &e, what, action_verbs[action]);
}

static int run_master(struct lab *l, struct args *a)
{
    struct err e = {0};
    enum lab_action action = action_of(a->words[1]);
    uint64_t number = 0;
    if (a->n_words > 2 && (str_to_u64(a->words[2], LAB_MASTERS_MAX, &number) < 0 || number == 0)) {
        return command_usage(&cmd_lab, "\"%s\" is not the number of a master", a->words[2]);
    }
    CLEANUP_FREE char *what =
        number ? xasprintf("master %u is", (unsigned) number) : xstrdup("the master is");
    return done_saying(lab_master(l, (unsigned) number, action, &e), &e, what,
                       action_verbs[action]);
}

static const struct verb {
    const char *words[2]; /* The second may be NULL. */
    /* The name of one more argument, in [] when it may be left out; NULL: none. */
    const char *operand;
    bool takes_command;
    /* Bits 1 << GIVEN_... of allowed options, beyond those that all verbs have. */
    unsigned options;
    int (*run)(struct lab *l, struct args *a);
} verbs[] = {
    {{"up"}, NULL, false, 1u << GIVEN_UP | 1u << GIVEN_OUTPUT, run_up},
    {{"down"}, NULL, false, 0, run_down},
    {{"status"}, NULL, false, 1u << GIVEN_OUTPUT, run_status},
    {{"project", "add"}, "NAME", false, 0, run_project},
    {{"project", "delete"}, "NAME", false, 0, run_project},
    {{"pod", "add"},
     "PROJECT/NAME",
     false,
     1u << GIVEN_NODE | 1u << GIVEN_OUTPUT | 1u << GIVEN_LABEL | 1u << GIVEN_PORT |
         1u << GIVEN_NO_LINKS,
     run_pod},
    {{"pod", "delete"}, "PROJECT/NAME", false, 0, run_pod},
    {{"pod", "ready"}, "PROJECT/NAME", false, 0, run_pod},
    {{"pod", "unready"}, "PROJECT/NAME", false, 0, run_pod},
    {{"exec"}, "PROJECT/NAME", true, 0, run_exec},
    {{"node", "add"}, "NAME", false, 0, run_node},
    {{"node", "delete"}, "NAME", false, 0, run_node},
    {{"node", "start"}, "NAME", false, 0, run_node},
    {{"node", "stop"}, "NAME", false, 0, run_node},
    {{"node", "restart"}, "NAME", false, 0, run_node},
    {{"node", "kill"}, "NAME", false, 0, run_node},
    {{"node", "exec"}, "NODE", true, 0, run_node_exec},
    {{"ovs", "start"}, "NODE", false, 0, run_ovs},
    {{"ovs", "stop"}, "NODE", false, 0, run_ovs},
    {{"ovs", "restart"}, "NODE", false, 0, run_ovs},
    {{"ovs", "kill"}, "NODE", false, 0, run_ovs},
    {{"kubelet", "start"}, "NODE", false, 0, run_kubelet},
    {{"kubelet", "stop"}, "NODE", false, 0, run_kubelet},
    {{"kubelet", "restart"}, "NODE", false, 0, run_kubelet},
    {{"kubelet", "kill"}, "NODE", false, 0, run_kubelet},
    {{"containerd", "start"}, "NODE", false, 0, run_containerd},
    {{"containerd", "stop"}, "NODE", false, 0, run_containerd},
    {{"containerd", "restart"}, "NODE", false, 0, run_containerd},
    {{"containerd", "kill"}, "NODE", false, 0, run_containerd},
    {{"master", "start"}, "[N]", false, 0, run_master},
    {{"master", "stop"}, "[N]", false, 0, run_master},
    {{"master", "restart"}, "[N]", false, 0, run_master},
    {{"master", "kill"}, "[N]", false, 0, run_master},
};

/* Finds the verb of the arguments; NULL after a message, with the exit status. */
static const struct verb *find_verb(const struct args *a, int *ret_status)
{
    CLEANUP_STRBUF struct strbuf seconds = STRBUF_INIT;
    if (a->n_words == 0) {
        *ret_status = command_usage(&cmd_lab, "say what to do: up, down, status, project, pod, "
                                              "exec, node, ovs, kubelet, containerd or "
                                              "master");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        const struct verb *v = &verbs[i];
        if (!streq(v->words[0], a->words[0])) {
            continue;
        }
        if (!v->words[1] || (a->n_words > 1 && streq(v->words[1], a->words[1]))) {
            return v;
        }
        strbuf_addf(&seconds, "%s%s", seconds.size ? ", " : "", v->words[1]);
    }
    *ret_status = seconds.size
                      ? command_usage(&cmd_lab, "\"%s\" is followed by one of: %s", a->words[0],
                                      strbuf_cstr(&seconds))
                      : command_usage(&cmd_lab, "\"%s\" is none of its commands", a->words[0]);
    return NULL;
}

static int check_verb(const struct verb *v, const struct args *a)
{
    int want = (v->words[1] ? 2 : 1) + (v->operand ? 1 : 0);
    int least = want - (v->operand && *v->operand == '[');
    const char *first = v->words[0], *second = v->words[1] ? v->words[1] : "";
    const char *gap = *second ? " " : "";
    unsigned wrong = a->given & ~v->options;
    if (a->n_words < least) {
        return command_usage(&cmd_lab, "%s%s%s needs a %s", first, gap, second, v->operand);
    }
    if (a->n_words > want) {
        return command_usage(&cmd_lab, "\"%s\" is too much after %s%s%s%s", a->words[want], first,
                             gap, second,
                             v->takes_command ? "; put \"--\" before the command to run" : "");
    }
    if (v->takes_command && (!a->argv || !a->argv[0])) {
        return command_usage(&cmd_lab, "%s%s%s %s needs \"--\" and the command to run", first, gap,
                             second, v->operand);
    }
    if (!v->takes_command && a->argv) {
        return command_usage(&cmd_lab, "%s%s%s takes no \"--\"", first, gap, second);
    }
    if (wrong) {
        const char *name = wrong & 1u << GIVEN_UP      ? a->up_option
                           : wrong & 1u << GIVEN_NODE  ? "node"
                           : wrong & 1u << GIVEN_LABEL ? "label"
                           : wrong & 1u << GIVEN_PORT  ? "port"
                                                       : "o";
        return command_usage(&cmd_lab, "%s%s is no option of %s%s%s", name[1] ? "--" : "-", name,
                             first, gap, second);
    }
    if (v->operand && streq(v->operand, "PROJECT/NAME") && !strchr(a->words[want - 1], '/')) {
        return command_usage(&cmd_lab, "\"%s\" is not PROJECT/NAME", a->words[want - 1]);
    }
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP(json_free) struct json *labels = json_object();
    CLEANUP(json_free) struct json *ports = json_array();
    struct args a = {.up = LAB_OPTIONS_INIT, .labels = labels, .ports = ports};
    CLEANUP(lab_free) struct lab *l = NULL;
    struct err e = {0};
    int status = 0;
    a.argv = command_take_rest(&argc, argv);
    if ((status = parse_options(argc, argv, &a)) >= 0) {
        return status;
    }
    const struct verb *v = find_verb(&a, &status);
    if (!v || (status = check_verb(v, &a)) != 0) {
        return status;
    }
    FILE *progress = a.json ? stderr : stdout;
    if (lab_new(a.lab ? a.lab : DEFAULT_NAME, print_progress, progress, &l, &e) < 0) {
        return command_usage(&cmd_lab, "--name: %s", e.text);
    }
    return v->run(l, &a);
}

const struct command cmd_lab = {
    .name = "lab",
    .summary = "a cluster of several nodes on this machine, to try things in",
    .help = help,
    .notes = "A lab is below /run/tenet/lab/LAB, its namespaces are tenet-LAB-*; nothing is "
             "changed in the\n"
             "machine's own namespace. Outside the cluster answers 198.51.100.10.\n",
    .options = options,
    .complete = "up down status project pod exec node ovs master",
    .run = run,
};
