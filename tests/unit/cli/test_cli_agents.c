/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that ask agents or work on labs. Labs and the answers of agents are tables here. */
#include "base/log.h"
#include "lab/lab.h"
#include "net/http/http.h"
#include "net/kernel/netns.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

/* ---- a lab that prints what it is told ---- */

struct lab {
    char *name;
};
static const char *plugin;    /* Path of the CNI plug-in; NULL: there is none. */
static const char *lab_json;  /* What the lab says of itself; ' stands for ". */
static const char *lab_fails; /* Each function fails with this text; NULL: none does. */

int lab_new(const char *name, lab_progress_fn *progress, void *ctx, struct lab **ret, struct err *e)
{
    if (strchr(name, '-')) {
        return err_set(e, -EINVAL, "\"%s\" is not a name", name);
    }
    *ret = NEW(struct lab);
    (*ret)->name = xstrdup(name);
    if (progress) {
        progress(ctx, "begun");
    }
    return 0;
}

struct lab *lab_free(struct lab *l)
{
    if (l) {
        free(l->name);
        free(l);
    }
    return NULL;
}

static int result(struct err *e)
{
    return lab_fails ? err_set(e, -EIO, "%s", lab_fails) : 0;
}

int lab_up(struct lab *l, const struct lab_options *o, struct err *e)
{
    printf("<up %s: %u nodes, %u masters, %s, %s, %s, %s, %s, /%u, mtu %u, port %u%s%s>\n", l->name,
           o->nodes, o->masters, o->plugin, o->store, o->datapath, o->datapath_type,
           o->cluster_network, o->host_subnet_length, o->mtu, o->vxlan_port, o->tls ? ", tls" : "",
           o->keep ? ", keep" : "");
    return result(e);
}

int lab_down(struct lab *l, bool *ret_found, struct err *e)
{
    *ret_found = streq(l->name, "lab");
    return result(e);
}

int lab_status(struct lab *l, struct json **ret, struct err *e)
{
    *ret = lab_fails ? NULL : json_of(lab_json);
    return result(e);
}

int lab_project_add(struct lab *l, const char *project, struct err *e)
{
    printf("<project + %s>\n", project);
    return result(e);
}

int lab_project_delete(struct lab *l, const char *project, struct err *e)
{
    printf("<project - %s>\n", project);
    return result(e);
}

int lab_master(struct lab *l, unsigned number, enum lab_action action, struct err *e)
{
    printf("<master %u: %d>\n", number, (int) action);
    return result(e);
}

int lab_ovs(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    printf("<ovs %s: %d>\n", node, (int) action);
    return result(e);
}

int lab_containerd(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    printf("<containerd %s: %d>\n", node, (int) action);
    return result(e);
}

int lab_kubelet(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    printf("<kubelet %s: %d>\n", node, (int) action);
    return result(e);
}

int lab_node_add(struct lab *l, const char *node, struct err *e)
{
    printf("<node + %s>\n", node);
    return result(e);
}

int lab_node_delete(struct lab *l, const char *node, struct err *e)
{
    printf("<node - %s>\n", node);
    return result(e);
}

int lab_node_action(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    printf("<node %s: %d>\n", node, (int) action);
    return result(e);
}

int lab_pod_add(struct lab *l, const char *project, const char *name, const char *node,
                const struct json *labels, const struct json *ports, bool links, struct json **ret,
                struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    json_write(labels, 0, &text);
    json_write(ports, 0, &text);
    printf("<pod + %s %s on %s %s%s>\n", project, name, node ? node : "any", strbuf_cstr(&text),
           links ? " links" : "");
    *ret = lab_fails ? NULL : json_of("{'podIP':'10.128.0.2','node':'n1','vnid':7,'netns':'ns'}");
    return result(e);
}

int lab_pod_ready(struct lab *l, const char *project, const char *name, bool ready, struct err *e)
{
    printf("<pod %s %s %s>\n", project, name, ready ? "ready" : "unready");
    return result(e);
}

int lab_pod_delete(struct lab *l, const char *project, const char *name, struct err *e)
{
    printf("<pod - %s %s>\n", project, name);
    return result(e);
}

int lab_pod_exec(struct lab *l, const char *project, const char *name, char *const argv[],
                 struct err *e)
{
    return err_set(e, -ENOENT, "in %s %s: %s %s", project, name, argv[0], argv[1]);
}

int lab_node_exec(struct lab *l, const char *node, char *const argv[], struct err *e)
{
    return err_set(e, -ENOENT, "on %s: %s", node, argv[0]);
}

int program_find(const char *name, char **ret, struct err *e)
{
    assert_string_equal(name, "tenet-cni");
    if (!plugin) {
        return err_set(e, -ENOENT, "there is no tenet-cni");
    }
    *ret = xstrdup(plugin);
    return 0;
}

static void labs_are_told_what_is_typed(void **state)
{
    static const struct typed_row rows[] = {
        {"lab up", 0,
         "begun\n<up lab: 3 nodes, 1 masters, redhat/openshift-ovs-multitenant, sqlite, ovs, "
         "netdev, 10.128.0.0/14, /9, mtu 1450, port 4789, tls>\n",
         ""},
        {"lab up --name x --nodes 0 --masters 2 --plugin ovs-subnet --store etcd --datapath "
         "ebpf,ovs --datapath-type system --cluster-network 10.0.0.0/8 --host-subnet-length 24 "
         "--mtu 1400 --vxlan-port 1 --tls --keep",
         0,
         "begun\n<up x: 0 nodes, 2 masters, redhat/openshift-ovs-subnet, etcd, ebpf,ovs, system, "
         "10.0.0.0/8, /24, mtu 1400, port 1, tls, keep>\n",
         ""},
        {"lab up --host-subnet-length 19", 2, "begun\n",
         "tenet lab: --host-subnet-length: 19 bits are more than the 18 of 10.128.0.0/14; see "
         "tenet lab --help\n"},
        {"lab up -o json --nodes 1", 0, "<up lab: 1 nodes...", "begun\n"},
        {"lab up --datapath x", 2, "",
         "tenet lab: --datapath: \"x\" is not ovs, ebpf, hostgw or..."},
        {"lab up --store x", 2, "", "tenet lab: --store: \"x\" is not sqlite or etcd; see..."},
        {"lab up --name a-b", 2, "",
         "tenet lab: --name: \"a-b\" is not a name; see tenet lab --help\n"},
        {"lab down", 0, "begun\nlab lab is removed\n", ""},
        {"lab down --name x", 0, "begun\nthere is no lab x\n", ""},
        {"lab status --name x", 0,
         "begun\nlab lab: P, cluster network C, store -\n"
         "it is not complete: its start has not ended, or was broken off\n"
         "export KUBECONFIG=/k\nmaster: S1, pid 4\nmaster: S2, pid 0\n\n"
         "NODE             HOST IP        SUBNET             READY   AGENT      OPEN VSWITCH  "
         "KUBELET    CONTAINERD\n"
         "n1               1.2.3.4        -                  yes     7          runs          "
         "none       none\n"
         "n2               -              10.128.0.0/23      no      stopped    stopped       "
         "none       none\n\n"
         "POD                              IP               NODE\n"
         "red/a                            10.128.0.2       n1\n",
         ""},
        {"lab status -o json", 0, "{\n    \"name\": \"lab\",...", "begun\n"},
        {"lab project add red", 0, "begun\n<project + red>\nproject red added\n", ""},
        {"lab project delete red", 0, "begun\n<project - red>\nproject red deleted\n", ""},
        {"lab pod add red/a", 0,
         "begun\n<pod + red a on any {}[] links>\npod red/a added: 10.128.0.2 on n1, VNID 7, "
         "namespace ns\n",
         NULL},
        {"lab pod add red/a --node n2 --label a=b --label c= --port w=80 --port u=53/UDP "
         "--no-service-links",
         0,
         "begun\n<pod + red a on n2 {\"a\":\"b\",\"c\":\"\"}[{\"name\":\"w\",\"containerPort\":80,"
         "\"protocol\":\"TCP\"},{\"name\":\"u\",\"containerPort\":53,\"protocol\":\"UDP\"}]>\n...",
         ""},
        {"lab pod add red/a -o json", 0,
         "<pod + red a on any {}[] links>\n{\n    \"podIP\": \"10.128.0.2\",...", "begun\n"},
        {"lab pod add red/a --label =b", 2, "", "tenet lab: --label: \"=b\" is not KEY=VALUE; ..."},
        {"lab pod add /a", 2, NULL,
         "tenet lab: \"/a\" is not PROJECT/NAME; see tenet lab --help\n"},
        {"lab pod add a/", 2, NULL,
         "tenet lab: \"a/\" is not PROJECT/NAME; see tenet lab --help\n"},
        {"lab pod add a/b/c", 2, NULL, "tenet lab: \"a/b/c\" is not PROJECT/NAME; see..."},
        {"lab pod delete red/a", 0, "begun\n<pod - red a>\npod red/a deleted\n", ""},
        {"lab pod ready red/a", 0, "begun\n<pod red a ready>\npod red/a is ready\n", ""},
        {"lab pod unready red/a", 0, "begun\n<pod red a unready>\npod red/a is not ready\n", ""},
        {"lab exec red/a -- ls -l", 1, "begun\n", "tenet: in red a: ls -l\n"},
        {"lab node exec n1 -- ls -l", 1, "begun\n", "tenet: on n1: ls\n"},
        {"lab node add n4", 0, "begun\n<node + n4>\nnode n4 added\n", ""},
        {"lab node delete n4", 0, "begun\n<node - n4>\nnode n4 deleted\n", ""},
        {"lab node start n4", 0, "begun\n<node n4: 0>\nthe agent of n4 is started\n", ""},
        {"lab node stop n4", 0, "begun\n<node n4: 1>\nthe agent of n4 is stopped\n", ""},
        {"lab node restart n4", 0, "begun\n<node n4: 2>\nthe agent of n4 is restarted\n", ""},
        {"lab node kill n4", 0, "begun\n<node n4: 3>\nthe agent of n4 is killed\n", ""},
        {"lab node frob n4", 2, "",
         "tenet lab: \"node\" is followed by one of: add, delete, start, stop, restart, kill, "
         "exec; see tenet lab --help\n"},
        {"lab ovs kill n4", 0, "begun\n<ovs n4: 3>\nOpen vSwitch of n4 is killed\n", ""},
        {"lab containerd kill n4", 0, "begun\n<containerd n4: 3>\ncontainerd of n4 is killed\n",
         ""},
        {"lab kubelet kill n4", 0, "begun\n<kubelet n4: 3>\nthe kubelet of n4 is killed\n", ""},
        {"lab master stop", 0, "begun\n<master 0: 1>\nthe master is stopped\n", ""},
        {"lab master start 9", 0, "begun\n<master 9: 0>\nmaster 9 is started\n", ""},
        {"lab master start 0", 2, "begun\n", "tenet lab: \"0\" is not the number of a master;..."},
        {"lab master start 10", 2, "begun\n",
         "tenet lab: \"10\" is not the number of a master;..."},
        {"lab --help", 0, NULL, ""},
        {"lab up --name", 2, "",
         "tenet lab: a value is missing after --name; see tenet lab --help\n"},
        {"lab pod add red/a -x", 2, "", "tenet lab: wrong option -x; see tenet lab --help\n"},
        {"lab up -o x", 2, "", "tenet lab: -o: \"x\" is not json; see tenet lab --help\n"},
    };
    lab_json = "{'name':'lab','plugin':'P','clusterNetwork':'C','complete':false,"
               "'kubeconfig':'/k','master':{'error':''},"
               "'masters':[{'server':'S1','pid':4},{'server':'S2'}],"
               "'nodes':[{'name':'n1','hostIP':'1.2.3.4','ready':true,'pid':7,'ovsRunning':true},"
               "{'name':'n2','subnet':'10.128.0.0/23'}],"
               "'pods':[{'project':'red','name':'a','podIP':'10.128.0.2','node':'n1'}]}";
    typed_check(NULL, rows, ARRAY_SIZE(rows));
    static const struct typed_row gone[] = {
        {"lab status", 0,
         "begun\nlab lab: -, cluster network -, store -\nexport KUBECONFIG=-\n"
         "master: no answer; subnets and pods are unknown\n\n"
         "NODE             HOST IP        SUBNET             READY   AGENT      OPEN VSWITCH  "
         "KUBELET    CONTAINERD\n",
         ""},
    };
    lab_json = "{'name':'lab','complete':true,'master':{'error':'no answer'}}";
    typed_check(NULL, gone, ARRAY_SIZE(gone));
    static const struct typed_row failing[] = {
        {"lab up", 1, NULL, "tenet: oh\n"},
        {"lab down", 1, "begun\n", "tenet: oh\n"},
        {"lab status", 1, "begun\n", "tenet: oh\n"},
        {"lab project add red", 1, "begun\n<project + red>\n", "tenet: oh\n"},
        {"lab pod add red/a", 1, "begun\n<pod + red a on any {}[] links>\n", "tenet: oh\n"},
        {"lab pod ready red/a", 1, "begun\n<pod red a ready>\n", "tenet: oh\n"},
        {"lab node stop n", 1, "begun\n<node n: 1>\n", "tenet: oh\n"},
        {"lab master stop", 1, "begun\n<master 0: 1>\n", "tenet: oh\n"},
        {"lab ovs stop n", 1, "begun\n<ovs n: 1>\n", "tenet: oh\n"},
    };
    lab_fails = "oh";
    typed_check(NULL, failing, ARRAY_SIZE(failing));
    lab_fails = NULL;
}

/* ---- agents ---- */

static char dir[] = "/tmp/tenet-agents-XXXXXX";

/* An agent of node "nodeN" at dir/nodeN.sock: answers to paths that begin with a text. */
struct agent {
    struct http_server *server;
    const char *const *answers; /* Path and JSON in turn. The stream of /v1/watch is of lines. */
    bool refuses;
    bool stays; /* The stream of /v1/watch does not end. */
};

static void on_closed(void *ctx)
{
}

static void serve_request(void *ctx, struct http_exchange *x)
{
    struct agent *a = ctx;
    CLEANUP_FREE char *asked = xasprintf("%s?%s", http_path(x), http_query_raw(x));
    for (const char *const *p = a->answers; *p; p += 2) {
        if (strncmp(asked, p[0], strlen(p[0])) != 0) {
            continue;
        }
        CLEANUP_FREE char *text = quoted(p[1]);
        if (streq(http_path(x), "/v1/watch")) {
            struct blob *b = blob_new(text, strlen(text));
            http_stream_begin(x, 200, "application/json", on_closed, NULL);
            http_stream_write(x, b);
            blob_unref(b);
            if (!a->stays) {
                http_stream_end(x);
            }
        } else {
            http_respond(x, 200, "application/json", text, strlen(text));
        }
        return;
    }
    static const char error[] = "{\"error\":\"not here\"}";
    http_respond(x, a->refuses ? 503 : 404, "application/json", error, sizeof error - 1);
}

static void agent_begin(struct agent *a, struct loop *l, const char *name,
                        const char *const *answers)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s.sock", dir, name);
    struct http_limits limits = {.max_head = 8192, .max_body = 1, .max_conns = 16};
    struct err e = {0};
    int fd;
    *a = (struct agent){.answers = answers};
    a->server = http_server_new(l, &limits, serve_request, a);
    if (sock_listen_unix(path, 0600, &fd, &e) < 0 || http_server_add_listener(a->server, fd, &e)) {
        fail_msg("%s", e.text);
    }
}

static int make_dir(void **state)
{
    log_set_levels("error", NULL);
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return dir_remove(dir, NULL);
}

#define STATE1                                                                               \
    "{'node':'node1','hostIP':'192.168.0.1','ready':true,'gateway':'10.128.0.1','mtu':1450," \
    "'plugin':'redhat/openshift-ovs-multitenant',"                                           \
    "'remotes':[{'name':'node2','hostIP':'192.168.0.2','subnet':'10.128.2.0/23'}],"          \
    "'pods':[{'namespace':'red','name':'a','ip':'10.128.0.2','vnid':10}]}"
#define STATE2                                                                               \
    "{'node':'node2','hostIP':'192.168.0.2','ready':true,'gateway':'10.128.2.1','mtu':1450," \
    "'remotes':[],'pods':[{'namespace':'blue','name':'b','ip':'10.128.2.2','vnid':11}]}"
#define FLOW(more)                                                                             \
    "{'time':'2026-01-01T00:00:00.000Z','node':'node1','entry':'pod','protocol':'tcp',"        \
    "'from':{'ip':'10.128.0.2','port':5,'namespace':'red','pod':'a'},'to':{'ip':'10.128.2.2'," \
    "'port':80},'sender':'red/a','bytes':60," more "}\n"

static const char *const answers1[] = {
    "/v1/state",
    STATE1,
    "/v1/trace?pod=red%2Fa&dst=10.128.2.2&proto=tcp&dport=80",
    "{'node':'node1','packet':'p','switch':{'steps':[],'action':'tunnel'},'model':{"
    "'action':'tunnel','vtep':'192.168.0.2','remoteNode':'node2','vnid':10},'agreed':true}",
    "/v1/trace?pod=red%2Fa&dst=10.128.0.3&proto=icmp&dport=0",
    "{'node':'node1','packet':'p','switch':{'steps':[],'action':'deliver'},"
    "'model':{'action':'deliver'},'agreed':true}",
    "/v1/trace?pod=red%2Fa&dst=192.168.0.2&proto=icmp&dport=0",
    "{'node':'node1','packet':'p','switch':{'steps':[],'action':'host'},"
    "'model':{'action':'host'},'agreed':true}",
    "/v1/trace?pod=red%2Fa&dst=172.30.0.9&proto=tcp&dport=80",
    "{'node':'node1','packet':'p','switch':{'steps':[],'action':'tunnel'},'model':{"
    "'action':'tunnel','vtep':'192.168.0.2','remoteNode':'node2','vnid':10},"
    "'service':{'name':'red/web','endpoint':'10.128.2.2','endpointPort':8080},'agreed':true}",
    "/v1/watch",
    FLOW("'verdict':'forwarded','action':'tunnel','remote':'192.168.0.2','vnid':10")
        FLOW("'verdict':'dropped','action':'drop','cause':'no-such-node','text':'nowhere'"),
    "/v1/flows",
    "{'node':'node1','flows':[{'table':70,'tableName':'local','priority':100,'packets':12,"
    "'match':'ip','object':'Pod red/a','meaning':'the pod'},{'table':70,'tableName':'local',"
    "'priority':0,'packets':0,'match':'','object':'','meaning':'nobody','cause':'no-such-pod'}]}",
    "/v1/maps?name=pods&after=k1",
    "{'node':'node1','map':{'name':'pods','entries':2,'max':9,'items':["
    "{'key':{'address':'b'},'value':{'vnid':8},'object':'Pod red/b'}]}}",
    "/v1/maps?name=pods",
    "{'node':'node1','map':{'name':'pods','entries':2,'max':9,'next':'k1','items':["
    "{'key':{'address':'a'},'value':{'vnid':7},'object':''}]}}",
    NULL};
static const char *const maps1[] = {
    "/v1/state", STATE1, "/v1/maps",
    "{'node':'node1','maps':[{'name':'pods','type':'hash','entries':3,'max':12}]}", NULL};
static const char *const answers2[] = {
    "/v1/state",
    STATE2,
    "/v1/"
    "trace?from=tunnel&src=10.128.0.2&vtep=192.168.0.1&vnid=10&dst=10.128.2.2&proto=tcp&dport=80",
    "{'node':'node2','packet':'p','switch':{'steps':[],'action':'drop','cause':'vnid-mismatch'},"
    "'model':{'action':'drop','cause':'vnid-mismatch'},'agreed':true}",
    "/v1/watch",
    "",
    NULL};

static char *with_dir(const char *text)
{
    struct strbuf b = STRBUF_INIT;
    for (const char *p = text; *p; p++) {
        if (*p == '@') {
            strbuf_adds(&b, dir);
        } else {
            strbuf_addc(&b, *p);
        }
    }
    strbuf_cstr(&b);
    return strbuf_steal(&b);
}

/* Rows in which @ stands for the folder of the agents' sockets. */
static void check_rows(struct harness *h, const struct typed_row *rows, size_t n)
{
    CLEANUP_FREE struct typed_row *real = xcalloc(n, sizeof *real);
    CLEANUP_FREE char **texts = xcalloc(2 * n, sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        real[i] = rows[i];
        real[i].line = texts[2 * i] = with_dir(rows[i].line);
        real[i].err = texts[2 * i + 1] = rows[i].err ? with_dir(rows[i].err) : NULL;
    }
    typed_check(h, real, n);
    for (size_t i = 0; i < 2 * n; i++) {
        free(texts[i]);
    }
}

static void traces_ask_the_agents_of_both_ends(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct agent one, two;
    agent_begin(&one, h->loop, "node1", answers1);
    agent_begin(&two, h->loop, "node2", answers2);
    free(make_namespace(h, "red"));
    CLEANUP_FREE char *nodes =
        with_dir("{'name':'lab','kubeconfig':'@/none','nodes':[{'name':'node1','agentSocket':"
                 "'@/node1.sock'},{'name':'node2','agentSocket':'@/node2.sock'}]}");
    lab_json = nodes;
    static const struct typed_row rows[] = {
        {"trace red/a blue/b tcp 80 --lab lab", 1,
         "red/a 10.128.0.2 on node1 -> blue/b 10.128.2.2 on node2, tcp port 80\n"
         "\n"
         "node1:\n"
         "  -> by the tunnel to node2 (192.168.0.2) with VNID 10\n"
         "\n"
         "node2:\n"
         "  -> dropped\n"
         "\n"
         "dropped on node2: vnid-mismatch: NetNamespace red has 10,"
         " NetNamespace blue has 11\n",
         ""},
        {"trace red/a 10.128.0.3 --lab lab", 0,
         "red/a 10.128.0.2 on node1 -> 10.128.0.3, icmp\n"
         "\n"
         "node1:\n"
         "  -> delivered to the pod\n"
         "\n"
         "allowed: delivered on node1\n",
         ""},
        {"trace red/a node2 --lab lab", 0,
         "red/a 10.128.0.2 on node1 -> node node2 192.168.0.2, icmp\n"
         "\n"
         "node1:\n"
         "  -> handed to the host; packets for other addresses leave through NAT\n"
         "\n"
         "allowed: handed to the host on node1\n",
         ""},
        {"trace red/a 10.128.2.2 tcp 80 --socket @/node1.sock", 3, "",
         "tenet: node node2: clusternetworks.network.openshift.io \"default\" not found\n"},
        {"trace red/none 10.128.2.2 tcp 80 --socket @/node1.sock", 3, "",
         "tenet: pod red/none is attached to no agent that can be asked here: pods "
         "\"none\" not found\n"},
        {"trace red 10.128.2.2 --lab lab", 3, "", "tenet: \"red\" is not PROJECT/POD\n"},
        {"trace red/a nowhere --lab lab", 3, "",
         "tenet: nowhere is no address,"
         " no PROJECT/POD and no node that is known: hostsubnets.network.openshift.io "
         "\"nowhere\" not found\n"},
        {"trace red/a 10.128.9.9 --lab lab", 3, "",
         "tenet: node node1: clusternetworks.network.openshift.io \"default\" not found\n"},
        {"trace red/a 10.128.0.3 -o json --lab lab", 0,
         "{\n"
         "    \"from\": {\n"
         "        \"text\": \"red/a 10.128.0.2 on node1\",\n"
         "        \"ip\": \"10.128.0.2\",\n"
         "        \"namespace\": \"red\",\n"
         "        \"vnid\": 10\n"
         "    },\n"
         "    \"to\": {\n"
         "        \"text\": \"10.128.0.3\",\n"
         "        \"ip\": \"10.128.0.3\"\n"
         "    },\n"
         "    \"protocol\": \"icmp\",\n"
         "    \"halves\": [\n"
         "        {\n"
         "            \"node\": \"node1\",\n"
         "            \"packet\": \"p\",\n"
         "            \"switch\": {\n"
         "                \"steps\": [],\n"
         "                \"action\": \"deliver\"\n"
         "            },\n"
         "            \"model\": {\n"
         "                \"action\": \"deliver\"\n"
         "            },\n"
         "            \"agreed\": true,\n"
         "            \"hostIP\": \"192.168.0.1\"\n"
         "        }\n"
         "    ],\n"
         "    \"verdict\": {\n"
         "        \"allowed\": true,\n"
         "        \"action\": \"deliver\",\n"
         "        \"node\": \"node1\",\n"
         "        \"agreed\": true\n"
         "    }\n"
         "}\n",
         ""},
    };
    check_rows(h, rows, ARRAY_SIZE(rows));
    /* With these objects the other end is judged from the registry. */
    put_in(h, "POST", "/apis/network.openshift.io/v1/clusternetworks",
           "{'metadata':{'name':'default'},'network':'10.128.0.0/14','hostsubnetlength':9,"
           "'serviceNetwork':'172.30.0.0/16','pluginName':'redhat/openshift-ovs-multitenant'}",
           201);
    put_in(h, "POST", "/apis/network.openshift.io/v1/hostsubnets",
           "{'metadata':{'name':'node1'},'host':'node1','hostIP':'192.168.0.1',"
           "'subnet':'10.128.0.0/23'}",
           201);
    put_in(h, "POST", "/apis/network.openshift.io/v1/hostsubnets",
           "{'metadata':{'name':'node2'},'host':'node2','hostIP':'192.168.0.2',"
           "'subnet':'10.128.2.0/23'}",
           201);
    free(make_net(h, "red", 10, "{}"));
    free(make_net(h, "blue", 11, "{}"));
    free(make_namespace(h, "blue"));
    put_in(h, "POST", "/api/v1/namespaces/blue/pods",
           "{'metadata':{'name':'b'},'spec':{'nodeName':'node2',"
           "'containers':[{'name':'c','image':'i'}]}}",
           201);
    put_in(h, "POST", "/api/v1/namespaces/blue/pods",
           "{'metadata':{'name':'new'},'spec':{'nodeName':'node2',"
           "'containers':[{'name':'c','image':'i'}]}}",
           201);
    put_in(h, "PUT", "/api/v1/namespaces/blue/pods/b/status",
           "{'metadata':{'name':'b'},'spec':{'nodeName':'node2','containers':[{'name':'c',"
           "'image':'i'}]},'status':{'podIP':'10.128.2.2','phase':'Running'}}",
           200);
    put_in(h, "POST", "/api/v1/namespaces/red/services",
           "{'metadata':{'name':'web'},'spec':{'clusterIP':'172.30.0.9','ports':[{'port':80}]}}",
           201);
    static const struct typed_row known[] = {
        {"trace red/a 10.128.2.2 tcp 80 --socket @/node1.sock", 1,
         "red/a 10.128.0.2 on node1 -> 10.128.2.2, tcp port 80\n"
         "\n"
         "node1:\n"
         "  -> by the tunnel to node2 (192.168.0.2) with VNID 10\n"
         "\n"
         "node2:\n"
         "  its switch was not asked (its agent cannot be asked from this host); "
         "computed from the registry\n"
         "  -> dropped\n"
         "\n"
         "dropped on node2: vnid-mismatch (the projects' VNIDs differ and neither is 0)\n",
         ""},
        {"trace red/a blue/b tcp 80 --socket @/node1.sock", 1,
         "red/a 10.128.0.2 on node1 -> blue/b 10.128.2.2 on node2, tcp port 80\n"
         "\n"
         "node1:\n"
         "  -> by the tunnel to node2 (192.168.0.2) with VNID 10\n"
         "\n"
         "node2:\n"
         "  its switch was not asked (its agent cannot be asked from this host); "
         "computed from the registry\n"
         "  -> dropped\n"
         "\n"
         "dropped on node2: vnid-mismatch (the projects' VNIDs differ and neither is "
         "0): NetNamespace red has 10, NetNamespace blue has 11\n",
         ""},
        {"trace red/a red/web tcp 80 --lab lab", 1,
         "red/a 10.128.0.2 on node1 -> service red/web 172.30.0.9, tcp port 80\n"
         "\n"
         "node1:\n"
         "  to service red/web port 0: endpoint 10.128.2.2:8080, one of 0\n"
         "  -> by the tunnel to node2 (192.168.0.2) with VNID 10\n"
         "\n"
         "node2:\n"
         "  -> dropped\n"
         "\n"
         "dropped on node2: vnid-mismatch\n",
         ""},
        {"trace red/a blue/new tcp 80 --lab lab", 3, "",
         "tenet: pod blue/new has no address yet\n"},
        {"trace blue/b 10.128.0.2 --socket @/node1.sock", 1,
         "blue/b 10.128.2.2 on node2 -> 10.128.0.2, icmp\n"
         "\n"
         "node2:\n"
         "  its switch was not asked (its agent cannot be asked from this host); "
         "computed from the registry\n"
         "  -> by the tunnel to node1 (192.168.0.1) with VNID 11\n"
         "\n"
         "node1:\n"
         "  its switch was not asked (not here); computed from the registry\n"
         "  -> dropped\n"
         "\n"
         "dropped on node1: no-such-pod (to an address of this node that no pod has)\n",
         ""},
    };
    check_rows(h, known, ARRAY_SIZE(known));
    http_server_free(one.server);
    http_server_free(two.server);
    harness_free(h);
}

static void flows_rules_and_maps_are_asked_of_agents(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    struct agent one, two, other;
    agent_begin(&one, h->loop, "node1", answers1);
    agent_begin(&two, h->loop, "node2", answers2);
    agent_begin(&other, h->loop, "other", maps1);
    other.refuses = true;
    free(make_namespace(h, "blue"));
    put_in(h, "POST", "/api/v1/namespaces/blue/pods",
           "{'metadata':{'name':'b'},'spec':{'containers':[{'name':'c','image':'i'}]}}", 201);
    put_in(h, "PUT", "/api/v1/namespaces/blue/pods/b/status",
           "{'metadata':{'name':'b'},'spec':{'containers':[{'name':'c','image':'i'}]},"
           "'status':{'podIP':'10.128.2.2'}}",
           200);
    CLEANUP_FREE char *nodes =
        with_dir("{'name':'lab','kubeconfig':'@/none','nodes':[{'name':'node1','agentSocket':"
                 "'@/node1.sock'},{'name':'node2','agentSocket':'@/node2.sock'}]}");
    lab_json = nodes;
    static const struct typed_row rows[] = {
        {"flows --socket @/node1.sock --for 5", 3,
         "TIME           NODE       FROM                       TO                       "
         "  PROTOCOL   VERDICT\n"
         "00:00:00.000   node1      red/a:5                    blue/b:80                "
         "  tcp        to node node2\n"
         "00:00:00.000   node1      red/a:5                    blue/b:80                "
         "  tcp        dropped: no-such-node\n",
         "tenet: node1: the agent stopped\n"},
        {"flows --socket @/node1.sock --for 5 --dropped", 3,
         "TIME           NODE       FROM                       TO                       "
         "  PROTOCOL   VERDICT\n"
         "00:00:00.000   node1      red/a:5                    blue/b:80                "
         "  tcp        dropped: no-such-node\n",
         "tenet: node1: the agent stopped\n"},
        {"flows --socket @/node1.sock --for 5 -n red -o json", 3,
         "{\"time\":\"2026-01-01T00:00:00.000Z\",\"node\":\"node1\",\"entry\":\"pod\","
         "\"protocol\":\"tcp\",\"from\":{\"ip\":\"10.128.0.2\",\"port\":5,"
         "\"namespace\":\"red\",\"pod\":\"a\"},\"to\":{\"ip\":\"10.128.2.2\","
         "\"port\":80,\"namespace\":\"blue\",\"pod\":\"b\"},\"sender\":\"red/a\","
         "\"bytes\":60,\"verdict\":\"forwarded\",\"action\":\"tunnel\","
         "\"remote\":\"192.168.0.2\",\"vnid\":10,\"remoteNode\":\"node2\"}\n"
         "{\"time\":\"2026-01-01T00:00:00.000Z\",\"node\":\"node1\",\"entry\":\"pod\","
         "\"protocol\":\"tcp\",\"from\":{\"ip\":\"10.128.0.2\",\"port\":5,"
         "\"namespace\":\"red\",\"pod\":\"a\"},\"to\":{\"ip\":\"10.128.2.2\","
         "\"port\":80,\"namespace\":\"blue\",\"pod\":\"b\"},\"sender\":\"red/a\","
         "\"bytes\":60,\"verdict\":\"dropped\",\"action\":\"drop\","
         "\"cause\":\"no-such-node\",\"text\":\"nowhere\"}\n",
         "tenet: node1: the agent stopped\n"},
        {"flows --socket @/node1.sock --for 5 -n green", 3,
         "TIME           NODE       FROM                       TO                       "
         "  PROTOCOL   VERDICT\n",
         "tenet: node1: the agent stopped\n"},
        {"flows --socket @/node1.sock --node node2", 3, "",
         "tenet: there is no agent of a node node2 to be asked here\n"},
        {"flows --lab lab --node node1", 3,
         "TIME           NODE       FROM                       TO                       "
         "  PROTOCOL   VERDICT\n"
         "00:00:00.000   node1      red/a:5                    blue/b:80                "
         "  tcp        to node node2\n"
         "00:00:00.000   node1      red/a:5                    blue/b:80                "
         "  tcp        dropped: no-such-node\n",
         "tenet: node1: the agent stopped\n"},
        {"flows --socket @/other.sock", 3,
         "TIME           NODE       FROM                       TO                       "
         "  PROTOCOL   VERDICT\n",
         "tenet: node1: not here\n"},
        {"flows --socket @/none.sock", 3, "",
         "tenet: @/none.sock: GET unix://@/none.sock/v1/state: connect to @/none.sock: "
         "No such file or directory\n"},
        {"node flows --socket @/node1.sock", 0,
         "node node1\n"
         "  TABLE      PRIORITY   PACKETS   MATCH          OBJECT      MEANING\n"
         "  70 local   100        12        ip             Pod red/a   the pod\n"
         "  70 local   0 drop     0         (everything)   -           nobody\n",
         ""},
        {"node flows --socket @/node1.sock --used", 0,
         "node node1\n"
         "  TABLE      PRIORITY   PACKETS   MATCH   OBJECT      MEANING\n"
         "  70 local   100        12        ip      Pod red/a   the pod\n",
         ""},
        {"node flows --socket @/node1.sock --drops", 0,
         "node node1\n"
         "  TABLE      PRIORITY   PACKETS   MATCH          OBJECT   MEANING\n"
         "  70 local   0 drop     0         (everything)   -        nobody\n",
         ""},
        {"node flows --socket @/node1.sock -o json --drops --used", 0,
         "[\n"
         "    {\n"
         "        \"node\": \"node1\",\n"
         "        \"flows\": []\n"
         "    }\n"
         "]\n",
         ""},
        {"node flows --lab lab", 3,
         "node node1\n"
         "  TABLE      PRIORITY   PACKETS   MATCH          OBJECT      MEANING\n"
         "  70 local   100        12        ip             Pod red/a   the pod\n"
         "  70 local   0 drop     0         (everything)   -           nobody\n",
         "tenet: node2: not here\n"},
        {"node flows --lab lab --node node3", 3, "",
         "tenet: there is no agent of a node node3 to be asked here\n"},
        {"node maps --socket @/other.sock", 0,
         "node node1\n"
         "MAP    TYPE   ENTRIES   OF    FULL\n"
         "pods   hash   3         12    25%\n",
         ""},
        {"node maps --socket @/node2.sock x", 3, "", "tenet: node2: not here\n"},
        {"node maps --socket @/node1.sock pods", 0,
         "node node1\n"
         "pods, 2 of 9\n"
         "KEY         VALUE    OBJECT\n"
         "address=a   vnid=7   -\n"
         "address=b   vnid=8   Pod red/b\n",
         ""},
        {"node maps --socket @/node1.sock pods -o json", 0,
         "[\n"
         "    {\n"
         "        \"node\": \"node1\",\n"
         "        \"map\": {\n"
         "            \"name\": \"pods\",\n"
         "            \"entries\": 2,\n"
         "            \"max\": 9,\n"
         "            \"items\": [\n"
         "                {\n"
         "                    \"key\": {\n"
         "                        \"address\": \"a\"\n"
         "                    },\n"
         "                    \"value\": {\n"
         "                        \"vnid\": 7\n"
         "                    },\n"
         "                    \"object\": \"\"\n"
         "                },\n"
         "                {\n"
         "                    \"key\": {\n"
         "                        \"address\": \"b\"\n"
         "                    },\n"
         "                    \"value\": {\n"
         "                        \"vnid\": 8\n"
         "                    },\n"
         "                    \"object\": \"Pod red/b\"\n"
         "                }\n"
         "            ]\n"
         "        }\n"
         "    }\n"
         "]\n",
         ""},
    };
    check_rows(h, rows, ARRAY_SIZE(rows));
    one.stays = true;
    static const struct typed_row in_time[] = {
        {"flows --socket @/node1.sock --for 1 --dropped -o json", 0, "{\"time\":...", ""},
    };
    check_rows(h, in_time, ARRAY_SIZE(in_time));
    http_server_free(one.server);
    http_server_free(two.server);
    http_server_free(other.server);
    harness_free(h);
}

/* A plug-in that gives each namespace a link "lo" with the address, or fails. */
static void write_plugin(const char *script)
{
    CLEANUP_FREE char *path = xasprintf("%s/tenet-cni", dir), *text = with_dir(script);
    struct err e = {0};
    if (file_write_atomic(path, text, strlen(text), 0700, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

/* Nothing of the probes is left: each pod was attached and detached, each project deleted. */
static void assert_all_is_removed(struct harness *h)
{
    CLEANUP_FREE char *path = xasprintf("%s/calls", dir);
    CLEANUP_STRBUF struct strbuf calls = STRBUF_INIT;
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/api/v1/namespaces", NULL, 200);
    const struct json *item;
    size_t projects = 0;
    JSON_FOREACH (item, json_get(a.body, "items")) {
        const char *name = json_path_string(item, "metadata", "name", NULL);
        if (str_has_prefix(name, "tenet-check-")) {
            projects++;
            assert_non_null(json_path(item, "metadata", "deletionTimestamp", NULL));
        }
    }
    assert_true(projects > 0 && projects % 2 == 0);
    assert_int_equal(system("! ls /run/netns 2>/dev/null | grep -q tenetcheck-"), 0);
    assert_int_equal(file_read(path, 1 << 20, &calls, NULL), 0);
    unsigned added = 0, deleted = 0;
    for (const char *p = strbuf_cstr(&calls); *p; p = strchr(p, '\n') + 1) {
        added += str_has_prefix(p, "ADD eth0 IgnoreUnknown=1;K8S_POD_NAMESPACE=tenet-check-");
        deleted += str_has_prefix(p, "DEL eth0 IgnoreUnknown=1;K8S_POD_NAMESPACE=tenet-check-");
        assert_true(strncmp(strchr(p, '\n') - 2, "{}", 2) == 0);
    }
    assert_int_equal(added, 4);
    assert_int_equal(deleted, 4);
}

static void probes_are_attached_tried_and_removed(void **state)
{
    NEEDS_ROOT();
    struct harness *h = harness_new(NULL, NULL);
    struct agent one, two;
    CLEANUP_FREE char *state1 = with_dir(
        "{'node':'node1','hostIP':'192.168.0.1','ready':true,'gateway':'10.128.0.1','mtu':1450,"
        "'cniConfig':'@/cni.conf','plugin':'redhat/openshift-ovs-multitenant','remotes':[]}");
    const char *good[] = {"/v1/state", state1, NULL};
    static const char *const not_ready[] = {
        "/v1/state", "{'node':'node2','ready':false,'reason':'no HostSubnet'}", NULL};
    agent_begin(&one, h->loop, "good", good);
    agent_begin(&two, h->loop, "bad", not_ready);
    CLEANUP_FREE char *path = xasprintf("%s/tenet-cni", dir);
    CLEANUP_FREE char *conf = xasprintf("%s/cni.conf", dir);
    static const struct typed_row refused[] = {
        {"check --socket @/bad.sock", 3, "",
         "tenet: node node2 cannot attach pods: no HostSubnet\n"},
        {"check --socket @/none.sock", 3, "",
         "tenet: node ? cannot attach pods: GET unix://@/none.sock/v1/state: connect to "
         "@/none.sock: No such file or directory\n"},
        {"check --socket @/good.sock", 3, "",
         "tenet: the CNI configuration of node node1: read @/cni.conf: No such file or "
         "directory\n"
         "tenet: removing the probes: the CNI configuration of node node1: read "
         "@/cni.conf: No such file or directory\n"},
    };
    check_rows(h, refused, ARRAY_SIZE(refused));
    assert_int_equal(file_write_atomic(conf, "{}", 2, 0600, NULL), 0);
    static const struct typed_row no_plugin[] = {
        {"check --socket @/good.sock --outside 192.0.2.1", 3, "",
         "tenet: there is no tenet-cni\n"
         "tenet: removing the probes: there is no tenet-cni\n"}};
    check_rows(h, no_plugin, ARRAY_SIZE(no_plugin));
    plugin = path;
    write_plugin("#!/bin/sh\necho '{\"code\":11,\"msg\":\"no\",\"details\":\"never\"}'\nexit 1\n");
    static const struct typed_row fails[] = {
        {"check --socket @/good.sock --dns 10.128.0.2", 3, "",
         "tenet: CNI ADD on node1: no: never\n"
         "tenet: removing the probes: CNI DEL on node1: no: never\n"}};
    check_rows(h, fails, ARRAY_SIZE(fails));
    write_plugin("#!/bin/sh\necho oops >&2; exit 7\n");
    static const struct typed_row odd[] = {
        {"check --socket @/good.sock --dns 10.128.0.3", 3, "",
         "tenet: CNI ADD on node1: exit status 7: oops\n\n"
         "tenet: removing the probes: CNI DEL on node1: exit status 7: oops\n\n"}};
    check_rows(h, odd, ARRAY_SIZE(odd));
    /* The pods have addresses, and no way to each other. */
    write_plugin("#!/bin/sh\nexec 9> @/lock\nflock 9\n" /* Calls may overlap. */
                 "echo \"$CNI_COMMAND $CNI_IFNAME $CNI_ARGS $(cat)\" >> @/calls\n"
                 "[ $CNI_COMMAND = DEL ] && exit 0\n"
                 "ip -n $(basename $CNI_NETNS) link set lo up\n"
                 "n=$(($(wc -l < @/calls) + 1))\n"
                 "ip -n $(basename $CNI_NETNS) addr add 10.128.0.$n/32 dev lo\n"
                 "ip -n $(basename $CNI_NETNS) addr add 10.128.0.1/32 dev lo\n"
                 "echo "
                 "'{\"ips\":[{\"address\":\"10.128.0.'$n'/"
                 "23\"}],\"dns\":{\"nameservers\":[\"10.128.0.1\"]}}'\n");
    static const struct typed_row runs[] = {
        {"check --socket @/good.sock --dns 192.0.2.7 --outside 192.0.2.8", 1,
         "CHECK          RESULT    FROM    TO          DETAIL\n"
         "connectivity   skipped   -       -           there is one node only; see host "
         "for the others\n"
         "isolation      ok        node1   node1       1 of 1 tried\n"
         "host           ok                            2 of 2 tried\n"
         "mtu            ok        node1   node1       1 of 1 tried\n"
         "nat            FAILED    node1   192.0.2.8   Network is unreachable\n...",
         ""}};
    check_rows(h, runs, ARRAY_SIZE(runs));
    static const struct typed_row json[] = {{"check --socket @/good.sock -o json", 1,
                                             "{\n    \"ok\": false,\n    \"probes\": [...", ""}};
    check_rows(h, json, ARRAY_SIZE(json));
    assert_all_is_removed(h);
    http_server_free(one.server);
    http_server_free(two.server);
    harness_free(h);
    plugin = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labs_are_told_what_is_typed),
        cmocka_unit_test(flows_rules_and_maps_are_asked_of_agents),
        cmocka_unit_test(probes_are_attached_tried_and_removed),
        cmocka_unit_test(traces_ask_the_agents_of_both_ends),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
