/* SPDX-License-Identifier: Apache-2.0 */
/* Services between the registry and a datapath of tables, and packets for an idle service. */
#include "../apiserver/harness.h"
#include "base/log.h"
#include "client/client.h"
#include "node/registry/services.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- a datapath ---- */

struct datapath {
    unsigned changed, removed; /* Services that are there, and that are gone. */
    unsigned settled, sent;
    uint32_t vnid; /* Of the service that changed last. */
    uint32_t sent_port;
    uint8_t sent_frame[64];
    size_t sent_size;
    const struct datapath_services *all;
};
static struct datapath dp;

void datapath_change_service(struct datapath *d, const struct sdn_service *old,
                             const struct sdn_project_service *now)
{
    if (now) {
        d->changed++;
        d->vnid = now->vnid;
    } else {
        assert_non_null(old);
        d->removed++;
    }
}

void datapath_settle_services(struct datapath *d, const struct datapath_services *all)
{
    d->settled++;
    d->all = all;
}

void datapath_release(struct datapath *d, uint32_t port, const uint8_t *frame, size_t size)
{
    d->sent++;
    d->sent_port = port;
    d->sent_size = size;
    assert_true(size <= sizeof d->sent_frame);
    memcpy(d->sent_frame, frame, size);
}

/* ---- around it ---- */

static struct harness *h;
static struct api_client *client;
static struct services_watch *watch;
static struct services *services;
static bool all_known;
static bool red_has_vnid;

static void on_synced(void *ctx)
{
    all_known = true;
}

static int vnids(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e)
{
    if (!red_has_vnid) {
        return err_set(e, -ENOENT, "none");
    }
    *ret = (struct sdn_vnids){.id = 10, .moving = true, .also = 12};
    return 0;
}

static const struct services_ops ops = {.synced = on_synced, .vnids = vnids};

static int set_up(void **state)
{
    struct err e = {0};
    log_set_levels("error", NULL);
    h = harness_new(NULL, NULL);
    free(make_namespace(h, "red"));
    CLEANUP_FREE char *url = harness_url(h);
    dp = (struct datapath){0};
    all_known = false;
    red_has_vnid = true;
    assert_int_equal(api_client_new(h->loop, url, "test", &client, &e), 0);
    watch = services_watch_new(h->loop, client);
    services = services_new(h->loop, watch, client, "node1", &ops, NULL);
    return 0;
}

static int tear_down(void **state)
{
    services_free(services);
    services_watch_free(watch);
    api_client_free(client);
    harness_free(h);
    return 0;
}

static void begin(enum sdn_plugin plugin)
{
    struct sdn_network n = {.plugin = plugin, .n_cluster = 1, .mtu = 1450, .vxlan_port = 4789};
    prefix_parse("10.128.0.0/14", &n.cluster[0], NULL);
    prefix_parse("10.128.0.0/23", &n.local, NULL);
    prefix_parse("172.30.0.0/16", &n.service, NULL);
    assert_int_equal(loop_run_until(h->loop, &all_known, 10000), 0);
    assert_true(services_synced(services));
    services_begin(services, &dp, &n);
}

static struct services_stats stats(void)
{
    struct services_stats s;
    services_get_stats(services, &s);
    return s;
}

/* Lets the loop run until 'cond', which changes with it. */
#define UNTIL(cond)                                         \
    do {                                                    \
        bool never_ = false;                                \
        for (unsigned i_ = 0; !(cond) && i_ < 2000; i_++) { \
            loop_run_until(h->loop, &never_, 5);            \
        }                                                   \
        assert_true(cond);                                  \
    } while (0)

#define SERVICE(idle)                                                                       \
    "{'metadata':{'name':'web','annotations':{" idle "}},'spec':{'clusterIP':'172.30.0.9'," \
    "'ports':[{'name':'http','port':80},{'name':'dns','port':53,'protocol':'UDP'}]}}"
#define IDLED "'idling.alpha.openshift.io/idled-at':'2026-01-01T00:00:00Z'"
#define SLICE(ip)                                                                              \
    "{'metadata':{'name':'web-1','labels':{'kubernetes.io/service-name':'web'}},"              \
    "'addressType':'IPv4','endpoints':[{'addresses':['" ip "'],'conditions':{'ready':true}}]," \
    "'ports':[{'name':'http','port':8080,'protocol':'TCP'},"                                   \
    "{'name':'dns','port':53,'protocol':'UDP'}]}"
#define SERVICES "/api/v1/namespaces/red/services"
#define SLICES "/apis/discovery.k8s.io/v1/namespaces/red/endpointslices"

/* The begin of a packet to the port of the service; its size. */
static size_t frame_to(uint8_t proto, uint16_t port, uint8_t mark, uint8_t out[64])
{
    static const uint8_t head[] = {2,    0, 0,   0,  0, 1, 2, 0, 0,  0, 0, 2, 8,  0, /* Ethernet */
                                   0x45, 0, 0,   40, 0, 0, 0, 0, 64, 0, 0, 0, 10, 128,
                                   0,    2, 172, 30, 0, 9};
    memset(out, 0, 64);
    memcpy(out, head, sizeof head);
    out[14 + 9] = proto;
    out[34 + 2] = (uint8_t) (port >> 8);
    out[34 + 3] = (uint8_t) port;
    out[34 + 4] = mark;
    return 54;
}

static void hold(uint32_t from, uint8_t proto, uint16_t port, uint8_t mark)
{
    uint8_t frame[64];
    size_t size = frame_to(proto, port, mark, frame);
    services_hold(services, from, frame, size);
}

static size_t events(void)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/api/v1/namespaces/red/events", NULL, 200);
    return json_count(json_get(a.body, "items"));
}

static void packets_wait_for_the_endpoints_of_an_idle_service(void **state)
{
    uint8_t frame[64];
    put_in(h, "POST", SERVICES, SERVICE(IDLED), 201);
    begin(SDN_MULTITENANT);
    UNTIL(stats().idle == 1);
    assert_true(stats().connected);
    assert_int_equal(stats().services, 1);
    hold(3, 6, 80, 1);
    hold(4, 6, 80, 2);
    hold(5, 17, 53, 3);
    assert_int_equal(stats().held, 3);
    assert_int_equal(dp.sent, 0);
    assert_int_equal(stats().pods_asked, 1); /* Once in two minutes. */
    UNTIL(events() == 1);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/api/v1/namespaces/red/events", NULL, 200);
    const struct json *event = json_at(json_get(a.body, "items"), 0);
    assert_string_equal(json_path_string(event, "reason", NULL), "NeedPods");
    assert_string_equal(json_path_string(event, "involvedObject", "name", NULL), "web");
    assert_string_equal(json_path_string(event, "message", NULL),
                        "The service-port red/web:http needs pods.");
    /* What is to none of its ports, or is no packet, does not wait. */
    hold(6, 6, 81, 9);
    assert_int_equal(dp.sent, 1);
    assert_int_equal(dp.sent_port, 6);
    size_t size = frame_to(6, 80, 1, frame);
    frame[12] = 0x86;
    services_hold(services, 7, frame, size);
    services_hold(services, 7, frame, 10);
    assert_int_equal(dp.sent, 1);
    assert_int_equal(stats().held, 3);
    /* They go on once there are endpoints. */
    put_in(h, "POST", SLICES, SLICE("10.128.0.5"), 201);
    UNTIL(dp.sent == 4);
    assert_int_equal(stats().sent, 3);
    assert_int_equal(stats().held, 0);
    assert_int_equal(stats().lost, 0);
    assert_int_equal(stats().idle, 0);
    assert_int_equal(dp.sent_port, 5);
    size = frame_to(17, 53, 3, frame);
    assert_int_equal(dp.sent_size, size);
    assert_memory_equal(dp.sent_frame, frame, size);
}

static void a_port_without_endpoints_goes_on_waiting(void **state)
{
    put_in(h, "POST", SERVICES, SERVICE(IDLED), 201);
    begin(SDN_MULTITENANT);
    UNTIL(stats().idle == 1);
    hold(3, 6, 80, 1);
    hold(5, 17, 53, 3);
    put_in(h, "POST", SLICES,
           "{'metadata':{'name':'web-1','labels':{'kubernetes.io/service-name':'web'}},"
           "'addressType':'IPv4','endpoints':[{'addresses':['10.128.0.5']}],"
           "'ports':[{'name':'http','port':8080,'protocol':'TCP'}]}",
           201);
    UNTIL(dp.sent == 1);
    assert_int_equal(dp.sent_port, 3);
    assert_int_equal(stats().held, 1);
    put_in(h, "PUT", SLICES "/web-1", SLICE("10.128.0.5"), 200);
    UNTIL(dp.sent == 2);
    assert_int_equal(dp.sent_port, 5);
    assert_int_equal(stats().held, 0);
}

static void the_oldest_packet_goes_when_too_many_wait(void **state)
{
    put_in(h, "POST", SERVICES, SERVICE(IDLED), 201);
    begin(SDN_MULTITENANT);
    UNTIL(stats().idle == 1);
    for (uint8_t i = 0; i < 20; i++) {
        hold(100u + i, 6, 80, i);
    }
    assert_int_equal(stats().held, 16);
    assert_int_equal(stats().lost, 4);
    put_in(h, "POST", SLICES, SLICE("10.128.0.5"), 201);
    UNTIL(dp.sent == 16);
    assert_int_equal(dp.sent_port, 119);
    assert_int_equal(stats().lost, 4);
}

static void a_service_that_goes_takes_its_packets_along(void **state)
{
    put_in(h, "POST", SERVICES, SERVICE(IDLED), 201);
    begin(SDN_MULTITENANT);
    UNTIL(stats().idle == 1);
    hold(3, 6, 80, 1);
    hold(3, 6, 80, 2);
    answer_done((struct answer[]){ask_ok(h, "DELETE", SERVICES "/web", NULL, 200)});
    UNTIL(stats().idle == 0);
    assert_int_equal(stats().lost, 2);
    assert_int_equal(stats().held, 0);
    assert_int_equal(stats().services, 0);
    assert_int_equal(dp.sent, 0);
}

static void a_connection_from_elsewhere_asks_for_pods_too(void **state)
{
    put_in(h, "POST", SERVICES, SERVICE(IDLED), 201);
    begin(SDN_MULTITENANT);
    UNTIL(stats().idle == 1);
    services_want_pods(services, "red", "none", 6, 80);
    services_want_pods(services, "red", "web", 17, 80);
    services_want_pods(services, "red", "web", 6, 53);
    assert_int_equal(stats().pods_asked, 0);
    services_want_pods(services, "red", "web", 17, 53);
    assert_int_equal(stats().pods_asked, 1);
    services_want_pods(services, "red", "web", 17, 53);
    assert_int_equal(stats().pods_asked, 1);
}

static void without_a_datapath_nothing_is_held_or_handed_out(void **state)
{
    put_in(h, "POST", SERVICES, SERVICE(IDLED), 201);
    assert_int_equal(loop_run_until(h->loop, &all_known, 10000), 0);
    UNTIL(stats().idle == 1);
    hold(3, 6, 80, 1);
    assert_int_equal(stats().held, 0);
    assert_int_equal(stats().pods_asked, 0);
    assert_int_equal(dp.sent + dp.changed + dp.removed + dp.settled, 0);
}

static void the_datapath_follows_the_services(void **state)
{
    put_in(h, "POST", SERVICES, SERVICE(""), 201);
    put_in(h, "POST", SLICES, SLICE("10.128.0.5"), 201);
    begin(SDN_MULTITENANT);
    assert_true(dp.changed > 0);
    assert_true(dp.settled > 0);
    assert_int_equal(dp.vnid, 10);
    assert_int_equal(stats().services, 1);
    UNTIL(stats().endpoints == 2);
    /* Another endpoint. */
    unsigned changed = dp.changed, settled = dp.settled;
    put_in(h, "PUT", SLICES "/web-1", SLICE("10.128.0.6"), 200);
    UNTIL(dp.settled > settled);
    assert_true(dp.changed > changed);
    /* The VNIDs of its project are others. */
    changed = dp.changed;
    settled = dp.settled;
    services_project_changed(services, "blue");
    assert_int_equal(dp.changed, changed);
    services_project_changed(services, "red");
    assert_int_equal(dp.changed, changed + 1);
    assert_int_equal(dp.settled, settled + 2);
    struct sdn_project_service *list = NULL;
    assert_int_equal(dp.all->list(dp.all->ctx, &list), 1);
    assert_string_equal(list[0].service->name, "web");
    assert_int_equal(list[0].vnid, 10);
    assert_true(list[0].has_also_vnid);
    assert_int_equal(list[0].also_vnid, 12);
    free(list);
    red_has_vnid = false;
    assert_int_equal(services_list(services, &list), 1);
    assert_int_equal(list[0].vnid, SDN_VNID_NOBODY);
    free(list);
    unsigned removed = dp.removed;
    answer_done((struct answer[]){ask_ok(h, "DELETE", SERVICES "/web", NULL, 200)});
    UNTIL(stats().services == 0);
    assert_true(dp.removed > removed);
}

static void a_plugin_without_vnids_is_told_none(void **state)
{
    put_in(h, "POST", SERVICES, SERVICE(""), 201);
    begin(SDN_SUBNET);
    UNTIL(stats().services == 1);
    assert_int_equal(dp.vnid, SDN_VNID_NOBODY);
    unsigned changed = dp.changed;
    services_project_changed(services, "red");
    assert_int_equal(dp.changed, changed);
}

static struct sdn_service *host_ports_at(uint32_t ip, uint16_t port)
{
    static const char *const none[] = {NULL};
    struct sdn_service *s = sdn_service_new("", IP4_TEXT(ip), none, 1);
    s->host_ports = true;
    s->cluster_ip = ip;
    s->ports[0].port = port;
    s->ports[0].protocol = SDN_TCP;
    return s;
}

/* Whether that was news to the datapath. */
static bool set_host_ports(uint32_t a, uint16_t a_port, uint32_t b, uint16_t b_port)
{
    struct sdn_service **list = xcalloc(2, sizeof(struct sdn_service *));
    size_t n = 0;
    if (a) {
        list[n++] = host_ports_at(a, a_port);
    }
    if (b) {
        list[n++] = host_ports_at(b, b_port);
    }
    unsigned settled = dp.settled;
    services_set_host_ports(services, list, n);
    return dp.settled > settled;
}

static void host_ports_of_nodes_are_services_to_pods(void **state)
{
    begin(SDN_MULTITENANT);
    struct sdn_project_service *list = NULL;
    assert_true(set_host_ports(1, 80, 2, 80));
    assert_int_equal(dp.changed, 2);
    assert_int_equal(dp.vnid, SDN_VNID_GLOBAL);
    assert_false(set_host_ports(1, 80, 2, 80));
    assert_int_equal(dp.changed, 2);
    assert_int_equal(stats().services, 0); /* They are none of the registry. */
    assert_int_equal(services_list(services, &list), 2);
    assert_int_equal(list[0].service->cluster_ip, 1);
    assert_int_equal(list[0].vnid, SDN_VNID_GLOBAL);
    assert_int_equal(list[1].service->cluster_ip, 2);
    free(list);
    assert_true(set_host_ports(1, 80, 2, 81));
    assert_int_equal(dp.changed, 3);
    assert_true(set_host_ports(0, 0, 2, 81));
    assert_int_equal(dp.removed, 1);
    assert_true(set_host_ports(1, 80, 2, 81));
    assert_int_equal(dp.changed, 4);
    assert_true(set_host_ports(1, 80, 0, 0));
    assert_int_equal(dp.removed, 2);
    assert_true(set_host_ports(0, 0, 0, 0));
    assert_int_equal(dp.removed, 3);
    assert_false(set_host_ports(0, 0, 0, 0));
    assert_int_equal(dp.changed, 4);
    assert_int_equal(services_list(services, &list), 0);
    free(list);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(packets_wait_for_the_endpoints_of_an_idle_service),
        T(a_port_without_endpoints_goes_on_waiting),
        T(the_oldest_packet_goes_when_too_many_wait),
        T(a_service_that_goes_takes_its_packets_along),
        T(a_connection_from_elsewhere_asks_for_pods_too),
        T(without_a_datapath_nothing_is_held_or_handed_out),
        T(the_datapath_follows_the_services),
        T(a_plugin_without_vnids_is_told_none),
        T(host_ports_of_nodes_are_services_to_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
