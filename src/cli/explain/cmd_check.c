/* SPDX-License-Identifier: Apache-2.0 */
/* tenet check: tests the network with probe pods. */
#include "cli/command.h"
#include "cli/explain/check.h"
#include "sdn/network.h"

#include <stdio.h>

#define MAX_TARGETS 8

static const char help[] =
    "usage: tenet check [OPTIONS]\n"
    "\n"
    "Attaches probe pods of two projects of its own, on this node (in a lab: on every node), "
    "sends\n"
    "packets, and prints what came of it:\n"
    "\n"
    "  connectivity   pods of one project on every node reach each other (ICMP)\n"
    "  tcp            likewise by TCP, from each node to the next\n"
    "  isolation      pods of two projects: not under ovs-multitenant, else they do\n"
    "  host           pods reach their node, and the pod network's address of each other node\n"
    "  mtu            packets of the full MTU pass, unfragmented\n"
    "  nat            pods reach an address outside\n"
    "  dns            a name server answers pods\n"
    "\n"
    "The probes and their projects are removed at the end, also after Ctrl-C.\n";

struct request {
    uint32_t outside, dns[MAX_TARGETS];
    size_t n_dns;
};

struct plan {
    const struct check_set *set;
    struct check_probe *probes;
    size_t n, cap;
};

static volatile sig_atomic_t stop;

static void on_signal(int signo)
{
    stop = 1;
}

/* ---- what is tried ---- */

static struct check_probe *add(struct plan *p, const char *name, const struct check_pod *from,
                               const char *to)
{
    p->probes = grow(p->probes, &p->cap, p->n + 1, sizeof *p->probes);
    struct check_probe *x = &p->probes[p->n++];
    *x = (struct check_probe){.name = name, .pod = from};
    snprintf(x->from, sizeof x->from, "%s", from ? from->agent->name : "-");
    snprintf(x->to, sizeof x->to, "%s", to);
    return x;
}

static void skip(struct plan *p, const char *name, const char *why)
{
    struct check_probe *x = add(p, name, NULL, "-");
    snprintf(x->detail, sizeof x->detail, "%s", why);
}

/* The pod of that project on the 'i'-th node. */
static const struct check_pod *pod(const struct plan *p, size_t i, unsigned project)
{
    return &p->set->pods[i * CHECK_PROJECTS + project];
}

static void plan_pairs(struct plan *p, bool isolated)
{
    size_t nodes = p->set->n / CHECK_PROJECTS;
    for (size_t i = 0; i < nodes; i++) {
        for (size_t k = 0; k < nodes; k++) {
            if (i != k) {
                const struct check_pod *to = pod(p, k, 0);
                add(p, "connectivity", pod(p, i, 0), to->agent->name)->dst = to->ip;
            }
        }
    }
    if (nodes < 2) {
        skip(p, "connectivity", "there is one node only; see host for the others");
    }
    for (size_t i = 0; i < nodes && nodes > 1; i++) {
        const struct check_pod *to = pod(p, (i + 1) % nodes, 0);
        struct check_probe *x = add(p, "tcp", pod(p, i, 0), to->agent->name);
        x->kind = CHECK_TCP;
        x->dst = to->ip;
    }
    for (size_t i = 0; i < nodes; i++) {
        for (size_t k = 0; k < nodes; k++) {
            const struct check_pod *to = pod(p, k, 1);
            struct check_probe *x = add(p, "isolation", pod(p, i, 0), to->agent->name);
            x->dst = to->ip;
            x->forbidden = isolated;
        }
    }
}

/* The addresses of other nodes, as this node's agent knows them. */
static void plan_remotes(struct plan *p, const char *name, size_t i, bool whole)
{
    const struct check_pod *from = pod(p, i, 0);
    struct json *r;
    JSON_FOREACH (r, json_get(from->agent->state, "remotes")) {
        struct ip4_prefix subnet;
        const char *text = json_path_string(r, "subnet", NULL);
        const char *node = json_path_string(r, "name", NULL);
        if (text && prefix_parse(text, &subnet, NULL) == 0) {
            struct check_probe *x = add(p, name, from, node ? node : text);
            x->dst = subnet.addr + 1;
            x->size = whole ? from->mtu : 0;
        }
    }
}

static void plan_hosts(struct plan *p)
{
    size_t nodes = p->set->n / CHECK_PROJECTS;
    for (size_t i = 0; i < nodes; i++) {
        for (unsigned k = 0; k < CHECK_PROJECTS; k++) {
            add(p, "host", pod(p, i, k), pod(p, i, k)->agent->name)->dst = pod(p, i, k)->gateway;
        }
        plan_remotes(p, "host", i, false);
    }
    for (size_t i = 0; i < nodes; i++) {
        struct check_probe *x = add(p, "mtu", pod(p, i, 0), pod(p, i, 0)->agent->name);
        x->dst = pod(p, i, 0)->gateway;
        x->size = pod(p, i, 0)->mtu;
        plan_remotes(p, "mtu", i, true);
    }
}

static void plan_outside(struct plan *p, const struct request *q)
{
    size_t nodes = p->set->n / CHECK_PROJECTS;
    for (size_t i = 0; i < nodes && q->outside; i++) {
        add(p, "nat", pod(p, i, 0), IP4_TEXT(q->outside))->dst = q->outside;
    }
    if (!q->outside) {
        skip(p, "nat", "no address outside is known; give --outside");
    }
}

static void add_dns(struct plan *p, const struct check_pod *from, uint32_t server)
{
    struct check_probe *x = add(p, "dns", from, IP4_TEXT(server));
    x->kind = CHECK_DNS;
    x->dst = server;
}

/* The name servers given by --dns; else those of each pod's DNS settings. */
static void plan_dns(struct plan *p, const struct request *q)
{
    size_t nodes = p->set->n / CHECK_PROJECTS, before = p->n;
    for (size_t i = 0; i < nodes; i++) {
        for (size_t k = 0; k < q->n_dns; k++) {
            add_dns(p, pod(p, i, 0), q->dns[k]);
        }
        if (!q->n_dns && pod(p, i, 0)->dns) {
            add_dns(p, pod(p, i, 0), pod(p, i, 0)->dns);
        }
    }
    if (p->n == before) {
        skip(p, "dns", "pods are configured with no name server; give --dns");
    }
}

static bool is_isolated(const struct agents *a)
{
    const char *name = a->n ? json_path_string(a->items[0].state, "plugin", NULL) : NULL;
    enum sdn_plugin plugin = SDN_SUBNET;
    return name && sdn_plugin_parse(name, &plugin, NULL) == 0 && plugin == SDN_MULTITENANT;
}

/* ---- the whole ---- */

enum { OPT_OUTSIDE = OPT_FIRST_FREE, OPT_DNS };

static const struct command_option options[] = {
    {"outside", OPT_OUTSIDE, "ADDRESS",
     "address that pods must reach through NAT; default: the lab's, else none",
     .detail = "Without such an address the check nat is skipped."},
    {"dns", OPT_DNS, "ADDRESS", "a name server; default: the one that pods are configured with",
     .detail = "May be repeated."},
    {0},
};

static int parse_options(int argc, char **argv, struct agents *a, struct request *q)
{
    int c;
    optind = 0;
    while ((c = agents_getopt(a, &cmd_check, argc, argv)) != -1) {
        switch (c) {
        case OPT_OUTSIDE:
            if (ip4_parse(optarg, &q->outside) < 0) {
                return command_usage(&cmd_check, "--outside: \"%s\" is not an address", optarg);
            }
            break;
        case OPT_DNS:
            if (q->n_dns == MAX_TARGETS || ip4_parse(optarg, &q->dns[q->n_dns]) < 0) {
                return command_usage(&cmd_check, "--dns: \"%s\" is not an address, or too many",
                                     optarg);
            }
            q->n_dns++;
            break;
        default:
            return c == OPT_HELP ? 0 : 2;
        }
    }
    return command_expect_end(&cmd_check, argc, argv);
}

static void print_results(const struct plan *p, bool json)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (json) {
        CLEANUP(json_free) struct json *v = check_json(p->probes, p->n);
        json_write(v, 4, &out);
        strbuf_addc(&out, '\n');
    } else {
        check_render(p->probes, p->n, &out);
    }
    fputs(strbuf_cstr(&out), stdout);
}

static int run(int argc, char **argv)
{
    CLEANUP_AGENTS struct agents a = {0};
    struct request q = {0};
    struct err e = {0};
    int status = parse_options(argc, argv, &a, &q);
    if (status >= 0 || (status = agents_open(&a)) != 0) {
        return status;
    }
    const char *outside = json_path_string(a.lab_status, "outside", NULL);
    if (!q.outside && outside) {
        ip4_parse(outside, &q.outside);
    }
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    struct check_set set = {.agents = &a, .stop = &stop};
    struct plan plan = {.set = &set};
    int r = check_attach(&set, &e);
    if (r == 0) {
        plan_pairs(&plan, is_isolated(&a));
        plan_hosts(&plan);
        plan_outside(&plan, &q);
        plan_dns(&plan, &q);
        r = check_run(&set, plan.probes, plan.n, &e);
    }
    if (r == 0) {
        print_results(&plan, a.json);
        status = check_exit_status(plan.probes, plan.n);
    } else {
        (void) command_fail(&e, NULL);
        status = CANNOT_TELL;
    }
    if (check_detach(&set, &e) < 0) {
        (void) command_fail(&e, "removing the probes");
        status = CANNOT_TELL;
    }
    free(plan.probes);
    return status;
}

const struct command cmd_check = {
    .name = "check",
    .summary = "prove by probe pods that the network works",
    .help = help,
    .notes = "Exit status: 0 all is well, 1 something failed, 2 wrong usage, 3 it could not be "
             "checked.\n",
    .options = options,
    .shared = agents_options,
    .run = run,
};
