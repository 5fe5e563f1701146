/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent tells of its node over HTTP. The datapath, services and objects are tables. */
#include "../sdn/policy_anywhere.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/objects.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "node/host/nat.h"
#include "node/introspect/introspect.h"
#include "sdn/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define IP(a, b, c, d) ((uint32_t) (a) << 24 | (b) << 16 | (c) << 8 | (d))
#define GATEWAY IP(10, 128, 0, 1)
#define POD_A IP(10, 128, 0, 2) /* red/a, VNID 10 */
#define POD_B IP(10, 128, 0, 3) /* blue/b, VNID 11 */
#define FAR IP(10, 128, 2, 2)   /* On node2. */
#define NODE2 IP(192, 168, 0, 2)
#define NODE3 IP(192, 168, 0, 3) /* Its HostSubnet is not known by name. */
#define SERVICE IP(172, 30, 0, 9)
#define EXTERNAL IP(192, 0, 2, 9)
#define HOST_PORTS IP(192, 168, 0, 9)

/* ---- around it ---- */

static struct introspect_view view;
static struct sdn_network net;
static struct sdn_remote remotes[2];
static const struct dp_pod *pods_here[2];
static struct dp_pod pod_a, pod_b;
static struct datapath_status status;

struct datapath {
    int error;
    const struct dp_rule *rules;
    size_t n_rules;
    struct dp_trace trace;
    struct model_packet asked;
    char map_name[32], map_after[32];
    datapath_events_fn *watcher;
    void *watcher_ctx;
};
static struct datapath dp;

const struct dp_pod *const *datapath_pods(struct datapath *d, size_t *ret_n)
{
    *ret_n = ARRAY_SIZE(pods_here);
    return pods_here;
}

void datapath_get_status(struct datapath *d, struct datapath_status *ret)
{
    *ret = status;
}

void datapath_drops(struct datapath *d, datapath_drops_fn *done, void *ctx)
{
    uint64_t totals[MODEL_N_CAUSES];
    for (size_t i = 0; i < MODEL_N_CAUSES; i++) {
        totals[i] = 100 + i;
    }
    done(ctx, 0, totals);
}

void datapath_rules(struct datapath *d, const struct datapath_rules_ops *ops, void *ctx)
{
    for (size_t i = 0; i < d->n_rules && d->error == 0; i++) {
        ops->each(ctx, &d->rules[i], 7 + i, 700 + i);
    }
    ops->done(ctx, d->error, d->error ? "the switch is gone" : "");
}

void datapath_trace(struct datapath *d, const struct model_packet *p, datapath_trace_fn *done,
                    void *ctx)
{
    d->asked = *p;
    done(ctx, d->error, d->error ? "the switch is gone" : "", d->error ? NULL : &d->trace);
}

int datapath_watch(struct datapath *d, datapath_events_fn *fn, void *ctx, struct err *e)
{
    if (d->error) {
        return err_set(e, d->error, "this datapath cannot tell");
    }
    d->watcher = fn;
    d->watcher_ctx = ctx;
    return 0;
}

static const char *map_entries; /* JSON of the map that is asked for. */

static struct json *json_of(const char *text)
{
    CLEANUP_FREE char *s = xstrdup(text);
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(s, strlen(s), &v, &e) < 0) {
        fail_msg("%s: %s", e.text, text);
    }
    return v;
}

int datapath_maps(struct datapath *d, const char *name, const char *after, size_t limit,
                  struct json **ret, struct err *e)
{
    assert_int_equal(limit, 1000);
    if (d->error) {
        return err_set(e, d->error, "no such map");
    }
    snprintf(d->map_name, sizeof d->map_name, "%s", name ? name : "");
    snprintf(d->map_after, sizeof d->map_after, "%s", after ? after : "");
    *ret = json_of(map_entries);
    return 0;
}

/* Services: one with an address of its own and another outside, and the host ports of a node. */
static struct sdn_service_port service_port = {
    .name = "web", .port = 80, .node_port = 30080, .protocol = SDN_TCP};
static struct sdn_service_port host_port = {.port = 8080, .protocol = SDN_TCP};
static uint32_t external_ips[] = {EXTERNAL};
static struct sdn_service service = {.namespace = "red",
                                     .name = "web",
                                     .cluster_ip = SERVICE,
                                     .n_ports = 1,
                                     .ports = &service_port,
                                     .n_external_ips = 1,
                                     .external_ips = external_ips};
static struct sdn_service host_ports_service = {.namespace = "",
                                                .name = "192.168.0.9",
                                                .cluster_ip = HOST_PORTS,
                                                .host_ports = true,
                                                .n_ports = 1,
                                                .ports = &host_port};

size_t services_list(const struct services *s, struct sdn_project_service **ret)
{
    *ret = NULL;
    if (!s) {
        return 0;
    }
    struct sdn_project_service *list = xcalloc(2, sizeof *list);
    list[0] = (struct sdn_project_service){.service = &service, .vnid = 10};
    list[1] = (struct sdn_project_service){.service = &host_ports_service};
    *ret = list;
    return 2;
}

void services_get_stats(struct services *s, struct services_stats *ret)
{
    *ret = (struct services_stats){.connected = true,
                                   .services = 301,
                                   .endpoints = 302,
                                   .idle = 303,
                                   .held = 304,
                                   .sent = 305,
                                   .lost = 306,
                                   .pods_asked = 307};
}

void host_ports_get_stats(const struct host_ports *h, struct host_ports_stats *ret)
{
    *ret = (struct host_ports_stats){.ports = 311, .closed = 312, .unpublished = 313};
}

const struct pods_stats *pods_get_stats(const struct pods *p)
{
    static struct pods_stats s;
    for (size_t i = 0; i < PODS_COMMANDS; i++) {
        s.ok[i] = 320 + i;
        s.failed[i] = 330 + i;
        s.duration[i] = (struct prom_histogram){0};
        prom_histogram_add(&s.duration[i], 1000000);
    }
    return &s;
}

void resolver_write_metrics(struct resolver *r, struct strbuf *out)
{
    strbuf_adds(out, "resolver 341\n");
}

const struct host_proxy_stats *host_proxy_get_stats(struct host_proxy *p)
{
    static const struct userspace_stats userspace = {.connections = 351,
                                                     .sessions = 352,
                                                     .held = 353,
                                                     .accepted = 354,
                                                     .retried = 355,
                                                     .failed = 356,
                                                     .refused = 357};
    static struct host_proxy_stats s;
    s = (struct host_proxy_stats){.services = 361,
                                  .frontends = 362,
                                  .targets = 363,
                                  .waiting = 364,
                                  .conflicts = 365,
                                  .syncs = 366,
                                  .rewrites = 367,
                                  .checks = 368,
                                  .failures = 369,
                                  .restored = 370,
                                  .forgotten = 371,
                                  .generation = 372,
                                  .userspace = &userspace};
    prom_histogram_add(&s.duration, 1000000);
    return &s;
}

bool host_proxy_current(const struct host_proxy *p)
{
    return true;
}

const char *nat_drop_name(enum nat_drop d)
{
    static const char *const names[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6"};
    return names[d];
}

int nat_drops_update(struct nat_drops *d)
{
    for (size_t i = 0; i < NAT_N_DROPS; i++) {
        d->total[i] = 380 + i;
    }
    return 0;
}

/* The objects of an informer are pairs of a key and a text. */
struct informer {
    const char *const *objects;
};

void informer_each(const struct informer *i, void (*fn)(void *, const char *, const struct json *),
                   void *ctx)
{
    for (const char *const *p = i->objects; *p; p += 2) {
        CLEANUP(json_free) struct json *obj = json_of(p[1]);
        fn(ctx, p[0], obj);
    }
}

static struct informer subnets = {
    .objects =
        (const char *const[]){"node2",
                              "{'host':'node2','hostIP':'192.168.0.2','subnet':'10.128.2.0/23',"
                              "'metadata':{'name':'node2','uid':'u2'}}",
                              "bad", "{'host':'bad','hostIP':'x'}", NULL}};
static struct informer projects = {
    .objects = (const char *const[]){
        "red", "{'netname':'red','netid':10,'metadata':{'name':'red'}}", "rose",
        "{'netname':'rose','netid':10,'metadata':{'name':'rose'}}", NULL}};

static void look(void *ctx, struct introspect_view *ret)
{
    *ret = view;
}

/* ---- the server and its client ---- */

static char dir[] = "/tmp/tenet-introspect-XXXXXX";
static char socket_path[64];
static struct loop *loop;
static struct introspect *server;
static int metrics_port;

static struct ip4_prefix prefix(const char *s)
{
    struct ip4_prefix p;
    assert_int_equal(prefix_parse(s, &p, NULL), 0);
    return p;
}

static int free_port(void)
{
    int fd;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    int port = sock_local_port(fd);
    close(fd);
    return port;
}

static int set_up(void **state)
{
    log_set_levels("error", NULL);
    loop = loop_new();
    dp = (struct datapath){0};
    status = (struct datapath_status){0};
    remotes[1] = (struct sdn_remote){.host_ip = NODE3};
    net = (struct sdn_network){.plugin = SDN_MULTITENANT,
                               .n_cluster = 1,
                               .cluster = {prefix("10.128.0.0/14")},
                               .service = prefix("172.30.0.0/16"),
                               .local = prefix("10.128.0.0/23"),
                               .host_ip = IP(192, 168, 0, 1),
                               .vxlan_port = 4789,
                               .mtu = 1450,
                               .remotes = remotes,
                               .n_remotes = 2};
    pod_a = (struct dp_pod){.pod_namespace = (char *) "red",
                            .pod_name = (char *) "a",
                            .container_id = (char *) "c1",
                            .ifname = (char *) "eth0",
                            .host_if = "vetha",
                            .port = "tp1",
                            .ip = POD_A,
                            .mac = mac_from_ip4(POD_A),
                            .vnid = 10,
                            .ready = true,
                            .port_number = 3};
    pod_b = pod_a;
    pod_b.pod_namespace = (char *) "blue";
    pod_b.pod_name = (char *) "b";
    pod_b.ip = POD_B;
    pod_b.mac = mac_from_ip4(POD_B);
    pod_b.vnid = 11;
    pod_b.port_number = 4;
    pods_here[0] = &pod_b; /* Not in the order of their addresses. */
    pods_here[1] = &pod_a;
    view = (struct introspect_view){.node_name = "node1",
                                    .phase = "running",
                                    .cni_config = "/etc/cni/x.conf",
                                    .host_ip = IP(192, 168, 0, 1),
                                    .ready = true,
                                    .reason = "",
                                    .net = &net,
                                    .datapath = &dp,
                                    .subnets = &subnets,
                                    .projects = &projects,
                                    .services = (struct services *) &service};
    CLEANUP(json_free) struct json *node2 = json_of(subnets.objects[1]);
    assert_int_equal(objects_parse_host_subnet(node2, &remotes[0], NULL), 0);
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(dir));
    snprintf(socket_path, sizeof socket_path, "%s/agent.sock", dir);
    metrics_port = free_port();
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", metrics_port);
    struct introspect_config c = {
        .loop = loop, .socket_path = socket_path, .metrics_address = address, .view = look};
    struct err e = {0};
    if (introspect_new(&c, &server, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return 0;
}

static int tear_down(void **state)
{
    introspect_free(server);
    assert_int_equal(access(socket_path, F_OK), -1);
    loop_free(loop);
    return rmdir(dir);
}

struct reading {
    int fd;
    struct strbuf got;
    bool ended;
    const char *until; /* It ends when this was read; NULL: with the connection. */
};

static void on_readable(void *ctx, unsigned events)
{
    struct reading *r = ctx;
    char buf[8192];
    ssize_t n = recv(r->fd, buf, sizeof buf, MSG_DONTWAIT);
    if (n > 0) {
        strbuf_add(&r->got, buf, (size_t) n);
    }
    r->ended = n == 0 || (n < 0 && errno != EAGAIN) ||
               (r->until && strstr(strbuf_cstr(&r->got), r->until));
}

static void read_on(struct reading *r, const char *until)
{
    struct loop_fd *w = loop_fd_new(loop, r->fd, LOOP_READ, on_readable, r);
    r->until = until;
    r->ended = false;
    assert_int_equal(loop_run_until(loop, &r->ended, 10000), 0);
    loop_fd_free(w);
}

static void begin(struct reading *r, bool open, const char *method, const char *path)
{
    struct err e = {0};
    *r = (struct reading){.fd = -1, .got = STRBUF_INIT};
    assert_int_equal(open ? sock_connect_tcp("127.0.0.1", (uint16_t) metrics_port, &r->fd, &e)
                          : sock_connect_unix(socket_path, &r->fd, &e),
                     0);
    CLEANUP_FREE char *head =
        xasprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path);
    bool never = false;
    loop_run_until(loop, &never, 2);
    assert_int_equal(send(r->fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t) strlen(head));
}

static void end(struct reading *r)
{
    close(r->fd);
    strbuf_done(&r->got);
}

/* The status; the head and the body go to '*ret' (owned). */
static int ask_at(bool open, const char *method, const char *path, char **ret)
{
    struct reading r;
    begin(&r, open, method, path);
    read_on(&r, NULL);
    int code = atoi(strchr(strbuf_cstr(&r.got), ' ') + 1);
    *ret = xstrdup(strbuf_cstr(&r.got));
    end(&r);
    return code;
}

static char *body_of(const char *text)
{
    const char *p = strstr(text, "\r\n\r\n");
    assert_non_null(p);
    return xstrdup(p + 4);
}

/* The body, in which ' stands for ", must be 'want'. */
static void expect(const char *path, int code, const char *want)
{
    CLEANUP_FREE char *text = NULL;
    int got = ask_at(false, "GET", path, &text);
    CLEANUP_FREE char *body = body_of(text);
    for (char *p = body; *p; p++) {
        *p = *p == '"' ? '\'' : *p;
    }
    body[strcspn(body, "\n")] = '\0';
    if (got != code || !streq(body, want)) {
        fail_msg("%s: %d\n%s\nis not\n%s", path, got, body, want);
    }
}

/* The error of the answer; owned. */
static char *error_of(const char *path, int code)
{
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(ask_at(false, "GET", path, &text), code);
    CLEANUP_FREE char *body = body_of(text);
    CLEANUP(json_free) struct json *v = NULL;
    assert_int_equal(json_parse(body, strlen(body), &v, NULL), 0);
    char *error = xstrdup(json_path_string(v, "error", NULL));
    for (char *p = error; *p; p++) {
        *p = *p == '"' ? '\'' : *p;
    }
    return error;
}

/* ---- tests ---- */

static void the_state_names_networks_nodes_and_pods(void **state)
{
    expect("/v1/state", 200,
           "{'node':'node1','hostIP':'192.168.0.1','phase':'running','ready':true,'reason':'',"
           "'cniConfig':'/etc/cni/x.conf','masterConnected':true,'remotes':[{'name':'node2',"
           "'hostIP':'192.168.0.2','subnet':'10.128.2.0/23'},{'name':'unknown',"
           "'hostIP':'192.168.0.3','subnet':''}],'plugin':'redhat/openshift-ovs-multitenant',"
           "'clusterNetworks':['10.128.0.0/14'],'serviceNetwork':'172.30.0.0/16',"
           "'subnet':'10.128.0.0/23','gateway':'10.128.0.1','vxlanPort':4789,'mtu':1450,"
           "'pods':[{'namespace':'blue','name':'b','ip':'10.128.0.3','mac':'0a:58:0a:80:00:03',"
           "'vnid':11,'port':4,'switchPort':'tp1','hostInterface':'vetha','interface':'eth0',"
           "'container':'c1','ready':true},{'namespace':'red','name':'a','ip':'10.128.0.2',"
           "'mac':'0a:58:0a:80:00:02','vnid':10,'port':3,'switchPort':'tp1',"
           "'hostInterface':'vetha','interface':'eth0','container':'c1','ready':true}]}");
    net.service = (struct ip4_prefix){0};
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(ask_at(false, "GET", "/v1/state", &text), 200);
    assert_non_null(strstr(text, "\"serviceNetwork\":\"\","));
    view.ready = false;
    view.master_lost = true;
    view.net = NULL;
    view.datapath = NULL;
    view.reason = "there is no HostSubnet";
    view.phase = "waiting";
    expect("/v1/state", 200,
           "{'node':'node1','hostIP':'192.168.0.1','phase':'waiting','ready':false,"
           "'reason':'there is no HostSubnet','cniConfig':'/etc/cni/x.conf',"
           "'masterConnected':false,'remotes':[],'pods':[]}");
}

static void health_is_whether_pods_can_be_attached(void **state)
{
    expect("/healthz", 200, "ok");
    view.ready = false;
    view.reason = "there is no HostSubnet";
    expect("/healthz", 503, "there is no HostSubnet");
}

static void only_metrics_and_health_are_open_to_others(void **state)
{
    static const char *const closed[] = {"/v1/state", "/v1/flows", "/v1/trace", "/v1/watch",
                                         "/v1/maps",  "/",         "/x"};
    CLEANUP_FREE char *text = NULL;
    struct stat st;
    assert_int_equal(stat(socket_path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    for (size_t i = 0; i < ARRAY_SIZE(closed); i++) {
        CLEANUP_FREE char *answer = NULL;
        assert_int_equal(ask_at(true, "GET", closed[i], &answer), 404);
        assert_non_null(strstr(answer, "there is no such path"));
    }
    assert_int_equal(ask_at(true, "GET", "/healthz", &text), 200);
    free(TAKE(text));
    assert_int_equal(ask_at(true, "GET", "/metrics", &text), 200);
    free(TAKE(text));
    assert_int_equal(ask_at(false, "GET", "/metric", &text), 404);
    free(TAKE(text));
    assert_int_equal(ask_at(false, "POST", "/v1/state", &text), 405);
    assert_non_null(strstr(text, "GET, HEAD"));
    free(TAKE(text));
    assert_int_equal(ask_at(false, "HEAD", "/v1/state", &text), 200);
    free(TAKE(text));
    assert_int_equal(ask_at(false, "HEAD", "/v1/watch", &text), 200);
    assert_null(dp.watcher);
}

static void an_address_that_is_taken_is_told(void **state)
{
    char address[32], path[80];
    snprintf(address, sizeof address, "127.0.0.1:%d", metrics_port);
    snprintf(path, sizeof path, "%s/second.sock", dir);
    struct introspect_config c = {
        .loop = loop, .socket_path = path, .metrics_address = address, .view = look};
    struct introspect *second = NULL;
    struct err e = {0};
    assert_int_equal(introspect_new(&c, &second, &e), -EADDRINUSE);
    assert_true(strncmp(e.text, "metricsBindAddress: ", 20) == 0);
    assert_null(second);
    assert_int_equal(access(path, F_OK), -1);
    c.metrics_address = NULL;
    c.socket_path = socket_path;
    assert_int_equal(introspect_new(&c, &second, &e), -EADDRINUSE);
    assert_int_equal(access(socket_path, F_OK), 0);
}

/* Each line of 'want' is one of the answer. */
static void expect_metrics(const char *const *want, size_t n, const char *const *absent)
{
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(ask_at(false, "GET", "/metrics", &text), 200);
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *line = xasprintf("\n%s\n", want[i]);
        for (char *p = line; *p; p++) {
            *p = *p == '\'' ? '"' : *p;
        }
        if (!strstr(text, line)) {
            fail_msg("%s is not in\n%s", want[i], text);
        }
    }
    for (; *absent; absent++) {
        assert_null(strstr(text, *absent));
    }
}

static void every_metric_is_its_own_number(void **state)
{
    static const char *const all[] = {
        "tenet_node_info{node='node1',version='" TENET_VERSION
        "',plugin='redhat/openshift-ovs-multitenant'} 1",
        "tenet_node_ready 1",
        "tenet_node_drops_total{cause='vlan-tagged'} 101",
        "tenet_node_drops_total{cause='service-idle'} 123",
        "tenet_node_host_drops_total{cause='d0'} 380",
        "tenet_node_host_drops_total{cause='d6'} 386",
        "tenet_node_switch_in_place 1",
        "tenet_node_flows 401",
        "tenet_node_pods 402",
        "tenet_node_refused_total{what='pods'} 403",
        "tenet_node_refused_total{what='nodes'} 404",
        "tenet_node_refused_total{what='services'} 405",
        "tenet_node_refused_total{what='policy'} 406",
        "tenet_node_remote_nodes 407",
        "tenet_node_openflow_connections_total 408",
        "tenet_node_ovsdb_transactions_total 409",
        "tenet_node_bundles_total 410",
        "tenet_node_bundles_refused_total 411",
        "tenet_node_flow_mods_total 412",
        "tenet_node_icmp_refusals_total{result='sent'} 413",
        "tenet_node_icmp_refusals_total{result='limited'} 414",
        "tenet_node_switch_losses_total 415",
        "tenet_node_switch_refusals_total 419",
        "tenet_node_host_losses_total 416",
        "tenet_node_master_connected 1",
        "tenet_node_master_losses_total 417",
        "tenet_node_host_subnets_skipped 418",
        "tenet_node_services_connected 1",
        "tenet_node_services 301",
        "tenet_node_service_endpoints 302",
        "tenet_node_services_idle 303",
        "tenet_node_service_packets_held 304",
        "tenet_node_service_packets_sent_total 305",
        "tenet_node_service_packets_lost_total 306",
        "tenet_node_services_pods_asked_total 307",
        "tenet_node_services_udp_ended_total 308",
        "tenet_node_host_ports 311",
        "tenet_node_host_ports_closed 312",
        "tenet_node_host_ports_unpublished 313",
        "tenet_node_cni_requests_total{command='ADD',result='ok'} 320",
        "tenet_node_cni_requests_total{command='ADD',result='failed'} 330",
        "tenet_node_cni_requests_total{command='STATUS',result='ok'} 324",
        "tenet_node_cni_duration_seconds_count{command='ADD'} 1",
        "tenet_node_cni_duration_seconds_count{command='STATUS'} 1",
        "resolver 341",
        "tenet_proxy_current 1",
        "tenet_proxy_services 361",
        "tenet_proxy_frontends 362",
        "tenet_proxy_endpoints 363",
        "tenet_proxy_conflicts 365",
        "tenet_proxy_waiting 364",
        "tenet_proxy_programmed_generation 372",
        "tenet_proxy_syncs_total 366",
        "tenet_proxy_rewrites_total 367",
        "tenet_proxy_checks_total 368",
        "tenet_proxy_restored_total 370",
        "tenet_proxy_failures_total 369",
        "tenet_proxy_udp_forgotten_total 371",
        "tenet_proxy_sync_duration_seconds_count{mode='userspace'} 1",
        "tenet_proxy_connections 351",
        "tenet_proxy_held 353",
        "tenet_proxy_sessions 352",
        "tenet_proxy_accepted_total{result='accepted'} 354",
        "tenet_proxy_accepted_total{result='failed'} 356",
        "tenet_proxy_accepted_total{result='refused'} 357",
        "tenet_proxy_retries_total 355",
        "# TYPE process_cpu_seconds_total counter",
        "# HELP tenet_node_drops_total Packets that the datapath dropped, by cause.",
        "# TYPE tenet_node_drops_total counter",
        "# TYPE tenet_node_host_drops_total counter",
        "# TYPE tenet_node_refused_total counter",
        "# TYPE tenet_node_icmp_refusals_total counter",
        "# TYPE tenet_node_cni_requests_total counter",
        "# TYPE tenet_node_cni_duration_seconds histogram",
        "# TYPE tenet_proxy_accepted_total counter",
        "# TYPE tenet_proxy_sync_duration_seconds histogram",
    };
    static const char *const none[] = {NULL};
    status = (struct datapath_status){.in_place = true,
                                      .rules = 401,
                                      .pods = 402,
                                      .pods_refused = 403,
                                      .nodes_refused = 404,
                                      .services_refused = 405,
                                      .policy_refused = 406,
                                      .remotes = 407,
                                      .sessions = 408,
                                      .transactions = 409,
                                      .batches = 410,
                                      .batches_refused = 411,
                                      .rule_changes = 412,
                                      .refusals_sent = 413,
                                      .refusals_suppressed = 414,
                                      .connections_ended = 308};
    view.switch_losses = 415;
    view.switch_refusals = 419;
    view.host_losses = 416;
    view.master_losses = 417;
    view.skipped = 418;
    view.host_ports = (struct host_ports *) &service;
    view.pods = (struct pods *) &service;
    view.host_proxy = (struct host_proxy *) &service;
    expect_metrics(all, ARRAY_SIZE(all), none);
}

static void metrics_before_the_start_have_what_there_is(void **state)
{
    static const char *const all[] = {
        "tenet_node_ready 0",
        "tenet_node_switch_in_place 0",
        "tenet_node_flows 0",
        "tenet_node_drops_total{cause='vlan-tagged'} 0",
        "tenet_node_master_connected 0",
        "tenet_node_info{node='node1',version='" TENET_VERSION "',plugin=''} 1",
    };
    static const char *const absent[] = {"tenet_node_services", "tenet_node_host_ports",
                                         "tenet_node_cni_", "tenet_proxy_", NULL};
    view = (struct introspect_view){
        .node_name = "node1", .master_lost = true, .reason = "", .phase = "waiting"};
    expect_metrics(all, ARRAY_SIZE(all), absent);
}

static const struct dp_rule rules[] = {
    {.place = "local", .match = "ip", .actions = "output:3", .meaning = "the pod"},
    {.place = "base",
     .match = "",
     .actions = "drop",
     .meaning = "nothing",
     .cause = MODEL_VLAN_TAGGED},
    {.place = "map", .match = "x", .actions = "", .meaning = "an entry", .is_service = true},
};

static void rules_are_listed_with_their_objects(void **state)
{
    struct dp_rule list[8];
    CLEANUP(json_free) struct json *details = json_of("{'table':70,'priority':100}");
    memcpy(list, rules, sizeof rules);
    list[0].details = details; /* Those of a datapath come before what all rules have. */
    list[0].origin = pipeline_pod_cookie(POD_A);
    list[1].origin = PIPELINE_BASE_COOKIE;
    list[2].origin = pipeline_vnid_cookie(10);
    list[3] = list[0];
    list[3].origin = pipeline_remote_cookie(&remotes[0]);
    list[4] = list[0];
    list[4].origin = pipeline_pod_cookie(99) | PIPELINE_DROPS;
    list[5] = list[0];
    list[5].details = NULL;
    list[5].object = "service red/web"; /* The datapath's own words. */
    dp.rules = list;
    dp.n_rules = 6;
    expect("/v1/flows", 200,
           "{'node':'node1','flows':[{'table':70,'priority':100,"
           "'tableName':'local','match':'ip','actions':'output:3','object':'Pod red/a',"
           "'meaning':'the pod','packets':7,'bytes':700},{"
           "'tableName':'base','match':'','actions':'drop',"
           "'object':'','meaning':'nothing','cause':'vlan-tagged','packets':8,'bytes':701},"
           "{'tableName':'map','match':'x','actions':'','object':'NetNamespace red, rose',"
           "'meaning':'an entry','packets':9,'bytes':702},{'table':70,'priority':100,"
           "'tableName':'local','match':'ip','actions':'output:3',"
           "'object':'HostSubnet node2','meaning':'the pod','packets':10,'bytes':703},"
           "{'table':70,'priority':100,'tableName':'local',"
           "'match':'ip','actions':'output:3','object':'unknown','meaning':'the pod',"
           "'packets':11,'bytes':704},{'tableName':'local','match':'ip','actions':'output:3',"
           "'object':'service red/web','meaning':'the pod','packets':12,'bytes':705}]}");
    dp.error = -ENOTCONN;
    expect("/v1/flows", 503, "{'error':'the switch is gone'}");
    view.datapath = NULL;
    view.reason = "there is no HostSubnet";
    expect("/v1/flows", 503, "{'error':'there is no HostSubnet'}");
    expect("/v1/watch", 503, "{'error':'there is no HostSubnet'}");
    expect("/v1/maps", 503, "{'error':'there is no HostSubnet'}");
    expect("/v1/trace", 503, "{'error':'there is no HostSubnet'}");
}

static void maps_are_listed_and_their_entries_named(void **state)
{
    map_entries = "[{'name':'pods','entries':2}]";
    expect("/v1/maps", 200, "{'node':'node1','maps':[{'name':'pods','entries':2}]}");
    assert_string_equal(dp.map_name, "");
    map_entries = "{'name':'pods','items':["
                  "{'key':{'address':'10.128.0.2'},'value':{'backend':'10.128.0.3:80'}},"
                  "{'key':{'from':'10.128.0.2','to':'172.30.0.9:80'},'value':{}},"
                  "{'key':{'prefix':'10.128.2.0/23'},'value':{'vtep':'192.168.0.2'}},"
                  "{'key':{'prefix':'10.128.2.0'},'value':{}},"
                  "{'key':{'service':'192.0.2.9'},'value':{'client':'10.128.0.2'}},"
                  "{'key':{'service':'192.168.0.9:8080'},'value':{'goesToBackend':'10.128.0.3:1'}},"
                  "{'key':{'address':'1.2.3.4'},'value':{'comesFromService':'172.30.0.9'}},"
                  "{'key':{'address':'10.128.0.2'},'value':{'address':'10.128.0.2'}},"
                  "{'key':{'address':'192.168.0.3'}}]}";
    expect("/v1/maps?name=pods&after=k", 200,
           "{'node':'node1','map':{'name':'pods','items':["
           "{'key':{'address':'10.128.0.2'},'value':{'backend':'10.128.0.3:80'},"
           "'object':'Pod red/a, Pod blue/b'},"
           "{'key':{'from':'10.128.0.2','to':'172.30.0.9:80'},'value':{},"
           "'object':'Service red/web, Pod red/a'},"
           "{'key':{'prefix':'10.128.2.0/23'},'value':{'vtep':'192.168.0.2'},"
           "'object':'HostSubnet node2'},"
           "{'key':{'prefix':'10.128.2.0'},'value':{},'object':''},"
           "{'key':{'service':'192.0.2.9'},'value':{'client':'10.128.0.2'},"
           "'object':'Service red/web, Pod red/a'},"
           "{'key':{'service':'192.168.0.9:8080'},'value':{'goesToBackend':'10.128.0.3:1'},"
           "'object':'host ports at 192.168.0.9, Pod blue/b'},"
           "{'key':{'address':'1.2.3.4'},'value':{'comesFromService':'172.30.0.9'},"
           "'object':'Service red/web'},"
           "{'key':{'address':'10.128.0.2'},'value':{'address':'10.128.0.2'},"
           "'object':'Pod red/a'},"
           "{'key':{'address':'192.168.0.3'},'object':'unknown'}]}}");
    assert_string_equal(dp.map_name, "pods");
    assert_string_equal(dp.map_after, "k");
    static const struct {
        int error, code;
    } errors[] = {{-ENOENT, 404}, {-EINVAL, 400}, {-EOPNOTSUPP, 501}, {-EIO, 503}};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        dp.error = errors[i].error;
        expect("/v1/maps?name=x", errors[i].code, "{'error':'no such map'}");
    }
}

static void questions_are_read_or_refused(void **state)
{
    static const struct {
        const char *query;
        int code;
        const char *text;
    } bad[] = {
        {"", 400, "src: '' is not an IPv4 address"},
        {"src=10.128.0.1&dst=10.128.0.2", 400,
         "from: is neither host nor tunnel, and there is no pod"},
        {"src=10.128.0.1&dst=10.128.0.2&from=pod", 400,
         "from: is neither host nor tunnel, and there is no pod"},
        {"src=x&from=host&dst=10.128.0.2", 400, "src: 'x' is not an IPv4 address"},
        {"pod=red/c&dst=10.128.0.2", 404, "pod red/c is not attached on node node1"},
        {"pod=red/a", 400, "dst: '' is not an IPv4 address"},
        {"pod=red/a&dst=10.128.0.2.1", 400, "dst: '10.128.0.2.1' is not an IPv4 address"},
        {"pod=red/a&dst=10.128.0.2&proto=x", 400, "proto: 'x' is not icmp, tcp, udp or sctp"},
        {"pod=red/a&dst=10.128.0.2&sport=65536", 400, "sport: '65536' is not a number up to 65535"},
        {"pod=red/a&dst=10.128.0.2&dport=65536", 400, "dport: '65536' is not a number up to 65535"},
        {"pod=red/a&dst=10.128.0.2&dport=x", 400, "dport: 'x' is not a number up to 65535"},
        {"from=tunnel&src=10.128.2.2&dst=10.128.0.2", 400, "vtep: '' is not an IPv4 address"},
        {"from=tunnel&src=10.128.2.2&vtep=192.168.0.2&vnid=16777216&dst=10.128.0.2", 400,
         "vnid: '16777216' is not a number up to 16777215"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_FREE char *path = xasprintf("/v1/trace?%s", bad[i].query);
        CLEANUP_FREE char *body = error_of(path, bad[i].code);
        assert_string_equal(body, bad[i].text);
    }
    pod_a.port_number = 0;
    expect("/v1/trace?pod=red/a&dst=10.128.0.2", 404,
           "{'error':'pod red/a is not attached on node node1'}");
    view.net = NULL;
    view.reason = "there is no HostSubnet";
    expect("/v1/trace?pod=blue/b&dst=10.128.0.2", 503, "{'error':'there is no HostSubnet'}");
}

/* The answer behind the packet's text must be 'want'. */
static void expect_trace(const char *query, const char *want)
{
    CLEANUP_FREE char *path = xasprintf("/v1/trace?%s", query), *text = NULL;
    assert_int_equal(ask_at(false, "GET", path, &text), 200);
    for (char *p = text; *p; p++) {
        *p = *p == '"' ? '\'' : *p;
    }
    char *got = strstr(text, "'switch':");
    assert_non_null(got);
    got[strcspn(got, "\n")] = '\0';
    assert_string_equal(got, want);
}

static void a_trace_says_what_switch_and_model_do(void **state)
{
    dp.trace = (struct dp_trace){.action = MODEL_DROP, .cause = MODEL_VNID_MISMATCH};
    expect_trace("pod=red/a&dst=10.128.0.3&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'drop','cause':'vnid-mismatch'},"
                 "'model':{'action':'drop','cause':'vnid-mismatch',"
                 "'text':'the projects' VNIDs differ and neither is 0','refused':false},"
                 "'agreed':true}");
    assert_int_equal(dp.asked.entry, MODEL_FROM_PORT);
    assert_int_equal(dp.asked.port, 3);
    assert_int_equal(dp.asked.ip.src, POD_A);
    assert_int_equal(dp.asked.ip.dst, POD_B);
    assert_int_equal(dp.asked.ip.dst_port, 80);
    assert_int_equal(dp.asked.ip.src_port, 32768);
    expect_trace("pod=red/a&dst=10.128.2.2&proto=udp&dport=53&sport=7",
                 "'switch':{'steps':[],'action':'drop','cause':'vnid-mismatch'},"
                 "'model':{'action':'tunnel','vtep':'192.168.0.2','remoteNode':'node2',"
                 "'vnid':10},'agreed':false}");
    assert_int_equal(dp.asked.ip.src_port, 7);
    pod_b.has_also_vnid = true;
    pod_b.also_vnid = 10;
    dp.trace = (struct dp_trace){.action = MODEL_DELIVER, .remark = "as told"};
    expect_trace("pod=red/a&dst=10.128.0.3",
                 "'switch':{'steps':[],'action':'deliver','remark':'as told'},"
                 "'model':{'action':'deliver'},'agreed':true}");
    expect_trace("from=tunnel&src=10.128.2.2&vtep=192.168.0.2&vnid=10&dst=10.128.0.2",
                 "'switch':{'steps':[],'action':'deliver','remark':'as told'},"
                 "'model':{'action':'deliver'},'agreed':true}");
    assert_int_equal(dp.asked.entry, MODEL_FROM_TUNNEL);
    assert_int_equal(dp.asked.outer_src, NODE2);
    assert_int_equal(dp.asked.tunnel_id, 10);
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(
        ask_at(false, "GET", "/v1/trace?from=host&src=10.128.0.1&dst=10.128.0.2", &text), 200);
    assert_non_null(strstr(text, "{\"node\":\"node1\",\"packet\":\"in_port=2,"));
    assert_int_equal(dp.asked.entry, MODEL_FROM_HOST);
    dp.error = -ENOTCONN;
    expect_trace("from=host&src=10.128.0.1&dst=10.128.0.2",
                 "'switch':{'error':'the switch is gone'},'model':{'action':'deliver'},"
                 "'agreed':false}");
}

static void a_trace_to_a_service_goes_on_to_the_endpoint_that_the_switch_chose(void **state)
{
    struct sdn_endpoint endpoint = {.ip = FAR, .flags = SDN_ENDPOINT_READY | SDN_ENDPOINT_SERVING};
    struct sdn_backend backend = {.endpoint = &endpoint, .port = 8080};
    struct dp_rule step = {
        .place = "services", .is_service = true, .match = "m", .actions = "a", .meaning = "w"};
    dp.trace = (struct dp_trace){.action = MODEL_DROP, .cause = MODEL_SERVICE_NO_ENDPOINTS};
    expect_trace("pod=red/a&dst=172.30.0.9&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'drop','cause':'service-without-endpoints'},"
                 "'model':{'action':'drop','cause':'service-without-endpoints',"
                 "'text':'to a service that has no endpoints','refused':false},"
                 "'service':{'name':'red/web','port':80,'endpoints':0},'agreed':true}");
    /* A pod hears of it when the switch can say so. */
    status.refuses = true;
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(
        ask_at(false, "GET", "/v1/trace?pod=red/a&dst=172.30.0.9&proto=tcp&dport=80", &text), 200);
    assert_non_null(strstr(text, "\"refused\":true"));
    status.refuses = false;
    service_port.backends = &backend;
    service_port.n_backends = 1;
    dp.trace = (struct dp_trace){.action = MODEL_TUNNEL,
                                 .translated = true,
                                 .endpoint_ip = FAR,
                                 .endpoint_port = 8080,
                                 .steps = &step,
                                 .n = 1};
    expect_trace("pod=red/a&dst=172.30.0.9&proto=tcp&dport=80",
                 "'switch':{'steps':[{'tableName':'services','match':'m','actions':'a',"
                 "'object':'Service red/web','meaning':'w'}],'action':'tunnel'},"
                 "'model':{'action':'tunnel','vtep':'192.168.0.2','remoteNode':'node2',"
                 "'vnid':10},'service':{'name':'red/web','port':80,'endpoints':1,"
                 "'endpoint':'10.128.2.2','endpointPort':8080},'agreed':true}");
    /* An endpoint that the service does not have. */
    dp.trace.endpoint_port = 8081;
    expect_trace("pod=red/a&dst=172.30.0.9&proto=tcp&dport=80",
                 "'switch':{'steps':[{'tableName':'services','match':'m','actions':'a',"
                 "'object':'Service red/web','meaning':'w'}],'action':'tunnel'},"
                 "'model':{'action':'translate'},"
                 "'service':{'name':'red/web','port':80,'endpoints':1},'agreed':false}");
    service_port.backends = NULL;
    service_port.n_backends = 0;
}

/* ---- policies ---- */

static void drop_flows(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    of_flow_list_done(flows);
}

static void set_pod(struct policy *p, const struct dp_pod *pod)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata':{'labels':{}},'status':{'podIP':'%s'}}", IP4_TEXT(pod->ip));
    CLEANUP(json_free) struct json *obj = json_of(text);
    CLEANUP(json_free) struct json *ns = json_of("{'metadata':{'labels':{}}}");
    policy_set_namespace(p, pod->pod_namespace, ns);
    policy_set_pod(p, pod->pod_namespace, pod->pod_name, obj);
    policy_attach(p, pod->ip, pod->pod_namespace, pod->pod_name);
}

static void set_policy(struct policy *p, const char *ns, const char *name, const char *spec)
{
    CLEANUP_FREE char *text = xasprintf("{'spec':%s}", spec);
    CLEANUP(json_free) struct json *obj = json_of(text);
    assert_int_equal(policy_set_object(p, POLICY_NETWORK, ns, name, obj, NULL), 0);
}

/* Pods of red hear TCP port 80 alone, and pods of blue say nothing to port 7. */
static struct policy *policies_begin(void)
{
    static const struct policy_flow_ops ops = {.set_group = drop_flows};
    struct policy *p = policy_new_anywhere(net.local, &ops, NULL);
    net.plugin = SDN_NETWORKPOLICY;
    set_pod(p, &pod_a);
    set_pod(p, &pod_b);
    set_policy(p, "red", "web",
               "{'podSelector':{},'policyTypes':['Ingress'],"
               "'ingress':[{'ports':[{'port':80,'protocol':'TCP'}]}]}");
    set_policy(p, "blue", "quiet",
               "{'podSelector':{},'policyTypes':['Egress'],"
               "'egress':[{'ports':[{'port':80,'endPort':100,'protocol':'TCP'}]}]}");
    policy_compile(p);
    view.policy = p;
    view.policies_settled = true;
    return p;
}

static void a_trace_names_the_policies_that_decide(void **state)
{
    struct policy *p = policies_begin();
    struct dp_rule steps[] = {{.place = "t", .match = "", .actions = "", .meaning = "first"},
                              {.place = "t", .match = "", .actions = "", .meaning = "last"}};
    dp.trace = (struct dp_trace){.action = MODEL_DELIVER};
    expect_trace("pod=blue/b&dst=10.128.0.2&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'deliver'},'model':{'action':'deliver'},"
                 "'policies':[{'direction':'egress','allowed':true,"
                 "'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy blue/quiet, egress rule 1'},{'direction':'ingress',"
                 "'allowed':true,'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy red/web, ingress rule 1'}],'agreed':true}");
    dp.trace = (struct dp_trace){
        .action = MODEL_DROP, .cause = MODEL_INGRESS_DENIED, .steps = steps, .n = 2};
    expect_trace("pod=blue/b&dst=10.128.0.2&proto=tcp&dport=81",
                 "'switch':{'steps':[{'tableName':'t','match':'','actions':'',"
                 "'object':'unknown','meaning':'first'},{'tableName':'t','match':'',"
                 "'actions':'','object':'pods selected by NetworkPolicy red/web',"
                 "'meaning':'last'}],'action':'drop','cause':'ingress-denied'},"
                 "'model':{'action':'deliver'},'policies':[{'direction':'egress','allowed':true,"
                 "'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy blue/quiet, egress rule 1'},{'direction':'ingress',"
                 "'allowed':false,'meaning':'isolated: what no rule allows is denied',"
                 "'agreed':true,'object':'pods selected by NetworkPolicy red/web'}],"
                 "'agreed':true}");
    dp.trace.cause = MODEL_EGRESS_DENIED;
    expect_trace("pod=blue/b&dst=10.128.0.2&proto=tcp&dport=7",
                 "'switch':{'steps':[{'tableName':'t','match':'','actions':'',"
                 "'object':'unknown','meaning':'first'},{'tableName':'t','match':'',"
                 "'actions':'','object':'pods selected by NetworkPolicy blue/quiet',"
                 "'meaning':'last'}],'action':'drop','cause':'egress-denied'},"
                 "'model':{'action':'deliver'},'policies':[{'direction':'egress',"
                 "'allowed':false,'meaning':'isolated: what no rule allows is denied',"
                 "'agreed':true,'object':'pods selected by NetworkPolicy blue/quiet'}],"
                 "'agreed':true}");
    /* The datapath lets pass what is denied. */
    dp.trace = (struct dp_trace){.action = MODEL_DELIVER};
    expect_trace("pod=blue/b&dst=10.128.0.2&proto=tcp&dport=81",
                 "'switch':{'steps':[],'action':'deliver'},'model':{'action':'deliver'},"
                 "'policies':[{'direction':'egress','allowed':true,"
                 "'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy blue/quiet, egress rule 1'},{'direction':'ingress',"
                 "'allowed':false,'meaning':'isolated: what no rule allows is denied',"
                 "'agreed':false,'object':'pods selected by NetworkPolicy red/web'}],"
                 "'agreed':false}");
    view.policies_settled = false;
    expect_trace("pod=blue/b&dst=10.128.0.2&proto=tcp&dport=81",
                 "'switch':{'steps':[],'action':'deliver'},'model':{'action':'deliver'},"
                 "'policies':[{'direction':'egress','allowed':true,"
                 "'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy blue/quiet, egress rule 1'},{'direction':'ingress',"
                 "'allowed':false,'meaning':'isolated: what no rule allows is denied',"
                 "'agreed':false,'object':'pods selected by NetworkPolicy red/web'}],"
                 "'policiesChange':true,'agreed':true}");
    /* The node's own packets pass; packets that go elsewhere are judged as sent. */
    expect_trace("from=host&src=10.128.0.1&dst=10.128.0.2&proto=tcp&dport=81",
                 "'switch':{'steps':[],'action':'deliver'},'model':{'action':'deliver'},"
                 "'policies':[],'agreed':true}");
    expect_trace("from=host&src=192.168.0.1&dst=10.128.0.2&proto=tcp&dport=81",
                 "'switch':{'steps':[],'action':'deliver'},'model':{'action':'deliver'},"
                 "'policies':[],'agreed':true}");
    dp.trace = (struct dp_trace){.action = MODEL_TUNNEL};
    expect_trace("pod=blue/b&dst=10.128.2.2&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'tunnel'},'model':{'action':'tunnel',"
                 "'vtep':'192.168.0.2','remoteNode':'node2','vnid':11},"
                 "'policies':[{'direction':'egress','allowed':true,"
                 "'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy blue/quiet, egress rule 1'}],'agreed':true}");
    dp.trace = (struct dp_trace){.action = MODEL_HOST};
    expect_trace("pod=blue/b&dst=192.0.2.1&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'host'},'model':{'action':'host'},"
                 "'policies':[{'direction':'egress','allowed':true,"
                 "'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy blue/quiet, egress rule 1'}],'agreed':true}");
    dp.trace = (struct dp_trace){.action = MODEL_DROP, .cause = MODEL_NO_SUCH_POD};
    expect_trace("pod=blue/b&dst=10.128.0.9&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'drop','cause':'no-such-pod'},"
                 "'model':{'action':'drop','cause':'no-such-pod',"
                 "'text':'to an address of this node that no pod has','refused':false},"
                 "'policies':[{'direction':'egress','allowed':true,"
                 "'meaning':'a rule of a policy decides','agreed':true,"
                 "'object':'NetworkPolicy blue/quiet, egress rule 1'}],'agreed':true}");
    dp.trace.cause = MODEL_SPOOFED_SOURCE;
    expect_trace("pod=blue/b&dst=10.128.0.9&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'drop','cause':'spoofed-source'},"
                 "'model':{'action':'drop','cause':'no-such-pod',"
                 "'text':'to an address of this node that no pod has','refused':false},"
                 "'policies':[],'agreed':false}");
    /* The proxy of the host takes it, whatever policies say. */
    dp.trace = (struct dp_trace){.action = MODEL_HOST};
    net.service_by_host = true;
    expect_trace("pod=blue/b&dst=172.30.0.9&proto=tcp&dport=80",
                 "'switch':{'steps':[],'action':'host'},'model':{'action':'drop',"
                 "'cause':'service-without-endpoints',"
                 "'text':'to a service that has no endpoints','refused':false},"
                 "'service':{'name':'red/web','port':80,'endpoints':0},'policies':[],"
                 "'agreed':false}");
    policy_free(p);
}

/* ---- watching ---- */

static void watch_lines(const struct dp_event *events, size_t n, uint64_t lost,
                        const char *const *want)
{
    struct reading r;
    begin(&r, false, "GET", "/v1/watch");
    read_on(&r, "\r\n\r\n");
    assert_non_null(dp.watcher);
    dp.watcher(dp.watcher_ctx, events, n, lost);
    read_on(&r, "}\n\r\n");
    char *p = strstr(r.got.data, "\r\n{");
    assert_non_null(p);
    p += 2;
    for (char *q = p; *q; q++) {
        *q = *q == '"' ? '\'' : *q;
    }
    for (size_t i = 0; i < n + (lost > 0); i++) {
        char *line = strsep(&p, "\n");
        char *rest = strstr(line, "Z','node':'node1',");
        assert_non_null(rest);
        assert_string_equal(rest + strlen("Z','node':'node1',"), want[i]);
    }
    end(&r);
    bool never = false;
    for (unsigned i = 0; dp.watcher && i < 1000; i++) {
        loop_run_until(loop, &never, 2);
    }
    assert_null(dp.watcher); /* Nobody watches any more. */
}

#define FROM_A .entry = MODEL_FROM_PORT, .port = 3, .src = POD_A
#define TCP(s, d) \
    .eth_type = MODEL_ETH_IP4, .proto = SDN_TCP, .src_port = (s), .dst_port = (d), .size = 60
#define DROPPED(c) .action = MODEL_DROP, .cause = (c)

static void flows_are_watched(void **state)
{
    static const struct dp_event events[] = {
        {FROM_A, .dst = FAR, TCP(1000, 80), .action = MODEL_TUNNEL, .remote = NODE2, .vnid = 10},
        {.entry = MODEL_FROM_TUNNEL,
         .outer_src = NODE2,
         .src = FAR,
         .dst = POD_A,
         TCP(1, 2),
         .action = MODEL_DELIVER,
         .vnid = 10},
        {.entry = MODEL_FROM_HOST,
         .src = GATEWAY,
         .dst = POD_B,
         .eth_type = MODEL_ETH_IP4,
         .proto = 1,
         .size = 98,
         .action = MODEL_DELIVER},
        {FROM_A, .dst = POD_B, TCP(5, 8080), .asked = SERVICE, .asked_port = 80,
         .action = MODEL_DELIVER},
        {FROM_A, .dst = POD_B, TCP(5, 8080), .asked = HOST_PORTS, .asked_port = 8080,
         .action = MODEL_DELIVER},
        {FROM_A, .dst = POD_B, TCP(5, 8080), .asked = NODE2, .asked_port = 30080,
         .action = MODEL_DELIVER},
        {FROM_A, .dst = POD_B, TCP(5, 80), DROPPED(MODEL_VNID_MISMATCH)},
        {.entry = MODEL_FROM_TUNNEL,
         .outer_src = NODE2,
         .vnid = 12,
         .src = FAR,
         .dst = POD_B,
         TCP(5, 80),
         DROPPED(MODEL_VNID_MISMATCH)},
        {FROM_A, .dst = SERVICE, TCP(5, 80), DROPPED(MODEL_SERVICE_NO_ENDPOINTS)},
        {FROM_A, .dst = EXTERNAL, TCP(5, 80), DROPPED(MODEL_SERVICE_FOREIGN)},
        {FROM_A, .dst = HOST_PORTS, TCP(5, 8080), DROPPED(MODEL_SERVICE_INVALID)},
        {FROM_A, .dst = SERVICE, TCP(5, 81), DROPPED(MODEL_SERVICE_IDLE)},
        {FROM_A, .dst = 0, .eth_type = 0x86dd, .size = 60, DROPPED(MODEL_NOT_IP)},
        {FROM_A, .dst = 0, .eth_type = MODEL_ETH_ARP, .size = 42, DROPPED(MODEL_ARP_OFF_NETWORK)},
        {FROM_A, .dst = 0, .eth_type = 0x88cc, .size = 42, DROPPED(MODEL_MULTICAST)},
        {FROM_A, .dst = POD_A, TCP(5, 80), DROPPED(MODEL_OWN_ADDRESS)},
        {FROM_A, .dst = IP(10, 128, 0, 9), TCP(5, 80), DROPPED(MODEL_NO_SUCH_POD)},
        {.entry = MODEL_FROM_TUNNEL,
         .outer_src = NODE3,
         .vnid = 12,
         .src = FAR,
         .dst = POD_B,
         TCP(5, 80),
         DROPPED(MODEL_UNKNOWN_VTEP)},
        {.entry = MODEL_FROM_PORT,
         .port = 9,
         .src = FAR,
         .dst = POD_B,
         TCP(5, 80),
         DROPPED(MODEL_UNKNOWN_PORT)},
        {FROM_A, .dst = POD_B, TCP(5, 80), DROPPED(MODEL_INGRESS_DENIED)},
    };
    static const char *const want[] = {
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':1000,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.2.2','port':80},"
        "'sender':'red/a','bytes':60,'verdict':'forwarded','action':'tunnel',"
        "'remote':'192.168.0.2','vnid':10}",
        "'entry':'tunnel','protocol':'tcp','from':{'ip':'10.128.2.2','port':1},"
        "'to':{'ip':'10.128.0.2','port':2,'namespace':'red','pod':'a'},"
        "'vtep':'192.168.0.2','bytes':60,'verdict':'forwarded','action':'deliver',"
        "'vnid':10}",
        "'entry':'host','protocol':'icmp','from':{'ip':'10.128.0.1'},"
        "'to':{'ip':'10.128.0.3','namespace':'blue','pod':'b'},'bytes':98,"
        "'verdict':'forwarded','action':'deliver'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.0.3','port':8080,"
        "'namespace':'blue','pod':'b'},'service':{'ip':'172.30.0.9','port':80,"
        "'namespace':'red','name':'web'},'sender':'red/a','bytes':60,"
        "'verdict':'forwarded','action':'deliver'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.0.3','port':8080,"
        "'namespace':'blue','pod':'b'},'service':{'ip':'192.168.0.9','port':8080},"
        "'sender':'red/a','bytes':60,'verdict':'forwarded','action':'deliver'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.0.3','port':8080,"
        "'namespace':'blue','pod':'b'},'service':{'ip':'192.168.0.2','port':30080,"
        "'namespace':'red','name':'web'},'sender':'red/a','bytes':60,"
        "'verdict':'forwarded','action':'deliver'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.0.3','port':80,"
        "'namespace':'blue','pod':'b'},'sender':'red/a','bytes':60,'verdict':'dropped',"
        "'action':'drop','cause':'vnid-mismatch',"
        "'text':'the projects' VNIDs differ and neither is 0',"
        "'object':'NetNamespace red has 10, NetNamespace blue has 11'}",
        "'entry':'tunnel','protocol':'tcp','from':{'ip':'10.128.2.2','port':5},"
        "'to':{'ip':'10.128.0.3','port':80,'namespace':'blue','pod':'b'},"
        "'vtep':'192.168.0.2','bytes':60,'verdict':'dropped','action':'drop','vnid':12,"
        "'cause':'vnid-mismatch','text':'the projects' VNIDs differ and neither is 0',"
        "'object':'the sender's VNID is 12, NetNamespace blue has 11'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'172.30.0.9','port':80},"
        "'sender':'red/a','bytes':60,'verdict':'dropped','action':'drop',"
        "'cause':'service-without-endpoints',"
        "'text':'to a service that has no endpoints','object':'Service red/web'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'192.0.2.9','port':80},"
        "'sender':'red/a','bytes':60,'verdict':'dropped','action':'drop',"
        "'cause':'service-of-other-project',"
        "'text':'to a service of a project that the sender's may not reach',"
        "'object':'Service red/web'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'192.168.0.9','port':8080},"
        "'sender':'red/a','bytes':60,'verdict':'dropped','action':'drop',"
        "'cause':'service-invalid','text':'to a service,"
        " and no packet of a connection','object':'host ports at 192.168.0.9'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'172.30.0.9','port':81},"
        "'sender':'red/a','bytes':60,'verdict':'dropped','action':'drop',"
        "'cause':'service-idle','text':'to an idle service: the packet waits for pods,"
        " which are asked for','object':''}",
        "'entry':'pod','protocol':'ipv6','etherType':'0x86dd',"
        "'from':{'ip':'10.128.0.2','namespace':'red','pod':'a'},'to':{'ip':''},"
        "'sender':'red/a','bytes':60,'verdict':'dropped','action':'drop',"
        "'cause':'not-ip','text':'neither IPv4 nor ARP, or with a header that is none',"
        "'object':'Pod red/a'}",
        "'entry':'pod','protocol':'arp','etherType':'0x0806','from':{'ip':'10.128.0.2',"
        "'namespace':'red','pod':'a'},'to':{'ip':''},'sender':'red/a','bytes':42,"
        "'verdict':'dropped','action':'drop','cause':'arp-off-network',"
        "'text':'a question for an address outside the cluster networks',"
        "'object':'Pod red/a'}",
        "'entry':'pod','protocol':'other','etherType':'0x88cc',"
        "'from':{'ip':'10.128.0.2','namespace':'red','pod':'a'},'to':{'ip':''},"
        "'sender':'red/a','bytes':42,'verdict':'dropped','action':'drop',"
        "'cause':'multicast','text':'to a multicast group or to everybody',"
        "'object':'Pod red/a'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.0.2','port':80,"
        "'namespace':'red','pod':'a'},'sender':'red/a','bytes':60,'verdict':'dropped',"
        "'action':'drop','cause':'own-address','text':'a pod's packet to itself',"
        "'object':'Pod red/a'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.0.9','port':80},"
        "'sender':'red/a','bytes':60,'verdict':'dropped','action':'drop',"
        "'cause':'no-such-pod','text':'to an address of this node that no pod has',"
        "'object':''}",
        "'entry':'tunnel','protocol':'tcp','from':{'ip':'10.128.2.2','port':5},"
        "'to':{'ip':'10.128.0.3','port':80,'namespace':'blue','pod':'b'},"
        "'vtep':'192.168.0.3','bytes':60,'verdict':'dropped','action':'drop','vnid':12,"
        "'cause':'unknown-vtep','text':'by the tunnel from a host that is no node',"
        "'object':'by the tunnel from 192.168.0.3'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.2.2','port':5},"
        "'to':{'ip':'10.128.0.3','port':80,'namespace':'blue','pod':'b'},'bytes':60,"
        "'verdict':'dropped','action':'drop','cause':'unknown-port',"
        "'text':'from a port that is no pod's','object':''}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.2','port':5,"
        "'namespace':'red','pod':'a'},'to':{'ip':'10.128.0.3','port':80,"
        "'namespace':'blue','pod':'b'},'sender':'red/a','bytes':60,'verdict':'dropped',"
        "'action':'drop','cause':'ingress-denied',"
        "'text':'denied by the policies of the receiver','object':''}",
        "'lost':5}"};
    watch_lines(events, ARRAY_SIZE(events), 5, want);
    dp.error = -EOPNOTSUPP;
    expect("/v1/watch", 501, "{'error':'this datapath cannot tell'}");
    dp.error = -EIO;
    expect("/v1/watch", 503, "{'error':'this datapath cannot tell'}");
}

static void drops_by_policy_name_it(void **state)
{
    static const struct dp_event events[] = {
        {.entry = MODEL_FROM_PORT,
         .port = 4,
         .src = POD_B,
         .dst = POD_A,
         TCP(5, 81),
         DROPPED(MODEL_INGRESS_DENIED)},
        {.entry = MODEL_FROM_PORT,
         .port = 4,
         .src = POD_B,
         .dst = POD_A,
         TCP(5, 7),
         DROPPED(MODEL_EGRESS_DENIED)},
        {.entry = MODEL_FROM_PORT,
         .port = 4,
         .src = POD_B,
         .dst = POD_A,
         TCP(5, 80),
         DROPPED(MODEL_INGRESS_DENIED)},
    };
    static const char *const want[] = {
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.3','port':5,"
        "'namespace':'blue','pod':'b'},'to':{'ip':'10.128.0.2','port':81,"
        "'namespace':'red','pod':'a'},'sender':'blue/b','bytes':60,'verdict':'dropped',"
        "'action':'drop','cause':'ingress-denied',"
        "'text':'denied by the policies of the receiver',"
        "'object':'pods selected by NetworkPolicy red/web'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.3','port':5,"
        "'namespace':'blue','pod':'b'},'to':{'ip':'10.128.0.2','port':7,"
        "'namespace':'red','pod':'a'},'sender':'blue/b','bytes':60,'verdict':'dropped',"
        "'action':'drop','cause':'egress-denied',"
        "'text':'denied by the policies of the sender',"
        "'object':'pods selected by NetworkPolicy blue/quiet'}",
        "'entry':'pod','protocol':'tcp','from':{'ip':'10.128.0.3','port':5,"
        "'namespace':'blue','pod':'b'},'to':{'ip':'10.128.0.2','port':80,"
        "'namespace':'red','pod':'a'},'sender':'blue/b','bytes':60,'verdict':'dropped',"
        "'action':'drop','cause':'ingress-denied',"
        "'text':'denied by the policies of the receiver',"
        "'object':'pods selected by NetworkPolicy red/web'}"};
    struct policy *p = policies_begin();
    watch_lines(events, ARRAY_SIZE(events), 0, want);
    policy_free(p);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_state_names_networks_nodes_and_pods),
        T(health_is_whether_pods_can_be_attached),
        T(only_metrics_and_health_are_open_to_others),
        T(an_address_that_is_taken_is_told),
        T(every_metric_is_its_own_number),
        T(metrics_before_the_start_have_what_there_is),
        T(rules_are_listed_with_their_objects),
        T(maps_are_listed_and_their_entries_named),
        T(questions_are_read_or_refused),
        T(a_trace_says_what_switch_and_model_do),
        T(a_trace_to_a_service_goes_on_to_the_endpoint_that_the_switch_chose),
        T(a_trace_names_the_policies_that_decide),
        T(flows_are_watched),
        T(drops_by_policy_name_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
