/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the controllers, which are pure functions of the objects. */
#include "controller/obj.h"
#include "controller/recorder.h"
#include "controllers/lifecycle/event_age.h"
#include "controllers/lifecycle/namespaces.h"
#include "controllers/lifecycle/pod_deletion.h"
#include "controllers/network/subnet_plan.h"
#include "controllers/network/vnid_plan.h"

#include "api/condition.h"
#include "base/timeutil.h"

#include "json_text.h"

#define NODE(ip)                                                                      \
    "{'metadata':{'name':'n1','uid':'u1'},'status':{'addresses':[{'type':'Hostname'," \
    "'address':'n1'},{'type':'InternalIP','address':'" ip "'},{'type':'InternalIP',"  \
    "'address':'9.9.9.9'}]}}"
#define SUBNET(annotations, ip, subnet)                                                 \
    "{'metadata':{'name':'n1','uid':'h1','annotations':{" annotations "}},'host':'n1'," \
    "'hostIP':'" ip "','subnet':'" subnet "'}"
#define UID(uid) "'pod.network.openshift.io/node-uid':'" uid "'"
#define ASSIGN "'pod.network.openshift.io/assign-subnet':'true'"

static const char *owner_of_address;
static struct subnet_plan plan_of(const char *node, const char *hs)
{
    static struct json *n, *h;
    json_free(n);
    json_free(h);
    n = node ? from(node) : NULL;
    h = hs ? from(hs) : NULL;
    struct netconf c;
    netconf_defaults(&c);
    static struct subnet_plan p;
    const struct sdn_addresses none = {0};
    struct node_rules addresses;
    netconf_node_rules(&c, &addresses);
    addresses.masters = (struct address_ranges){.list = {{0xc000020a, 32}}, .n = 1};
    struct subnet_rules rules = {&c, &addresses, owner_of_address, &none};
    subnet_plan_done(&p);
    subnet_plan_make(&rules, n, h, &p);
    if (p.uid) {
        assert_string_equal(p.uid, "u1");
    }
    return p;
}

static void node_gets_a_host_subnet(void **state)
{
    struct subnet_plan p = plan_of(NODE("10.245.2.3"), NULL);
    assert_int_equal(p.step, SUBNET_CREATE);
    assert_string_equal(p.host_ip, "10.245.2.3");
    CLEANUP(json_free)
    struct json *o = subnet_plan_create("n1", &p, (struct ip4_prefix){0x0a800200, 23});
    assert_json(o, "{'apiVersion':'network.openshift.io/v1','kind':'HostSubnet','metadata':{'name':"
                   "'n1','annotations':{" UID("u1") "}},'host':'n1','hostIP':'10.245.2.3',"
                                                    "'subnet':'10.128.2.0/23'}");
    assert_int_equal(plan_of(NULL, NULL).step, SUBNET_NONE);
}

static void node_with_its_subnet_is_left_alone(void **state)
{
    const char *node = NODE("10.245.2.3");
    assert_int_equal(plan_of(node, SUBNET(UID("u1"), "10.245.2.3", "10.128.0.0/23")).step,
                     SUBNET_KEEP);
    /* Also with a subnet of another size, from before the host subnet length was changed. */
    assert_int_equal(plan_of(node, SUBNET(UID("u1"), "10.245.2.3", "10.131.255.240/28")).step,
                     SUBNET_KEEP);
}

static void changed_address_updates_only_the_address(void **state)
{
    const char *hs = SUBNET(UID("u1") ",'x':'y'", "10.245.2.9", "10.128.0.0/23");
    struct subnet_plan p = plan_of(NODE("10.245.2.3"), hs);
    assert_int_equal(p.step, SUBNET_UPDATE);
    CLEANUP(json_free) struct json *old = from(hs);
    CLEANUP(json_free) struct json *o = subnet_plan_update(old, &p);
    assert_json(o, SUBNET(UID("u1") ",'x':'y'", "10.245.2.3", "10.128.0.0/23"));
}

static struct json *update_of(const char *node, const char *hs,
                              const struct sdn_addresses *addresses)
{
    CLEANUP(json_free) struct json *n = from(node);
    CLEANUP(json_free) struct json *h = from(hs);
    CLEANUP(subnet_plan_done) struct subnet_plan p = {0};
    struct netconf c;
    struct node_rules node_rules;
    netconf_defaults(&c);
    netconf_node_rules(&c, &node_rules);
    struct subnet_rules rules = {&c, &node_rules, NULL, addresses};
    subnet_plan_make(&rules, n, h, &p);
    return p.step == SUBNET_UPDATE ? subnet_plan_update(h, &p) : NULL;
}

#define PORTS(text) "'tenet.io/host-ports':'" text "'"
#define WITH_PORTS(text)                                         \
    "{'metadata':{'name':'n1','uid':'u1','annotations':{" PORTS( \
        text) "}},'status':{'addresses':[{'type':'InternalIP','address':'10.245.2.3'}]}}"

static void host_ports_of_a_node_that_lead_to_its_subnet_are_published(void **state)
{
    const struct sdn_addresses none = {0};
    /* Of another node's subnet, the gateway's, of nobody's, twice, and what is no host port. */
    const char *node =
        WITH_PORTS("tcp:8080=10.128.0.5:80,tcp:8080=10.128.0.6:80,udp:53=10.128.2.5:53,"
                   "tcp:81=10.128.0.1:53,tcp:82=8.8.8.8:53,icmp:1=10.128.0.5:1,"
                   "udp:192.0.2.1:53=10.128.0.6:5353,tcp:0=10.128.0.5:80");
    const char *published = "tcp:8080=10.128.0.5:80,udp:192.0.2.1:53=10.128.0.6:5353";
    CLEANUP(json_free)
    struct json *o = update_of(node, SUBNET(UID("u1"), "10.245.2.3", "10.128.0.0/23"), &none);
    assert_non_null(o);
    assert_string_equal(obj_annotation(o, "tenet.io/host-ports"), published);
    /* Nothing to do, and then they are gone. */
    const char *hs =
        SUBNET(UID("u1") "," PORTS("tcp:8080=10.128.0.5:80,udp:192.0.2.1:53=10.128.0.6:5353"),
               "10.245.2.3", "10.128.0.0/23");
    assert_null(update_of(node, hs, &none));
    json_free(o);
    o = update_of(NODE("10.245.2.3"), hs, &none);
    assert_non_null(o);
    assert_null(obj_annotation(o, "tenet.io/host-ports"));
}

static void further_addresses_of_a_node_are_published(void **state)
{
    struct netconf c;
    struct node_rules rules;
    struct sdn_addresses a;
    netconf_defaults(&c);
    netconf_node_rules(&c, &rules);
    CLEANUP(json_free)
    struct json *node = from(
        "{'metadata':{'name':'n1','uid':'u1'},'status':{'addresses':["
        "{'type':'InternalIP','address':'10.245.2.3'},{'type':'ExternalIP','address':'9.9.9.9'},"
        "{'type':'InternalIP','address':'10.245.2.3'},{'type':'InternalIP','address':'192.0.2.7'},"
        "{'type':'InternalIP','address':'192.0.2.7'},{'type':'InternalIP','address':'10.128.0.9'},"
        "{'type':'InternalIP','address':'172.30.0.1'},{'type':'InternalIP','address':'127.0.0.1'},"
        "{'type':'InternalIP','address':'169.254.1.1'},{'type':'InternalIP','address':'224.0.0.1'},"
        "{'type':'InternalIP','address':'0.0.0.0'},{'type':'InternalIP','address':'::1'},"
        "{'type':'InternalIP','address':'198.51.100.1'}]}}");
    subnet_plan_addresses(&rules, node, &a);
    assert_int_equal(a.n, 2);
    const char *hs = SUBNET(UID("u1"), "10.245.2.3", "10.128.0.0/23");
    CLEANUP(json_free) struct json *o = update_of(NODE("10.245.2.3"), hs, &a);
    assert_non_null(o);
    assert_string_equal(obj_annotation(o, "tenet.io/node-addresses"), "192.0.2.7,198.51.100.1");
    a.n = 0;
    CLEANUP(json_free)
    struct json *without = update_of(
        NODE("10.245.2.3"),
        SUBNET(UID("u1") ",'tenet.io/node-addresses':'192.0.2.7'", "10.245.2.3", "10.128.0.0/23"),
        &a);
    assert_non_null(without);
    assert_null(obj_annotation(without, "tenet.io/node-addresses"));
}

static void unowned_subnet_of_a_node_is_stamped(void **state)
{
    struct subnet_plan p = plan_of(NODE("10.245.2.3"), SUBNET("", "10.245.2.3", "10.128.0.0/23"));
    assert_int_equal(p.step, SUBNET_UPDATE);
}

static void subnet_of_a_node_that_is_gone_or_was_replaced_is_deleted(void **state)
{
    const char *hs = SUBNET(UID("u0"), "10.245.2.3", "10.128.0.0/23");
    assert_int_equal(plan_of(NULL, hs).step, SUBNET_DELETE);
    struct subnet_plan p = plan_of(NODE("10.245.2.3"), hs);
    assert_int_equal(p.step, SUBNET_DELETE);
    assert_null(p.reason);
}

static void subnet_outside_of_the_cluster_network_is_replaced(void **state)
{
    const char *const bad[] = {SUBNET(UID("u1"), "10.245.2.3", "10.1.0.0/24"),
                               SUBNET(UID("u1"), "10.245.2.3", "10.0.0.0/8")};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct subnet_plan p = plan_of(NODE("10.245.2.3"), bad[i]);
        assert_int_equal(p.step, SUBNET_DELETE);
        assert_string_equal(p.reason, REASON_BAD_SUBNET);
    }
}

/* What it was may be in use: it must not be given to another node. */
static void subnet_that_cannot_be_read_is_not_replaced(void **state)
{
    const char *const bad[] = {SUBNET(UID("u1"), "10.245.2.3", "nonsense"),
                               SUBNET(UID("u1"), "10.245.2.3", "10.128.2.0/2\x7f"),
                               SUBNET(UID("u1"), "10.245.2.3", "")};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct subnet_plan p = plan_of(NODE("10.245.2.3"), bad[i]);
        assert_int_equal(p.step, SUBNET_REFUSE);
        assert_string_equal(p.reason, REASON_BAD_SUBNET);
        assert_non_null(strstr(p.message, "cannot be read"));
    }
}

static void ghosts_are_left_alone(void **state)
{
    assert_int_equal(plan_of(NULL, SUBNET("", "10.245.9.9", "10.128.4.0/23")).step, SUBNET_KEEP);
    assert_int_equal(plan_of(NULL, SUBNET("", "10.245.9.9", "192.168.0.0/24")).step, SUBNET_KEEP);
    assert_int_equal(plan_of(NULL, SUBNET(ASSIGN, "10.245.9.9", "10.128.4.0/23")).step,
                     SUBNET_KEEP);
}

static void ghost_that_asks_gets_a_subnet_and_keeps_the_rest(void **state)
{
    const char *hs =
        SUBNET(ASSIGN ",'pod.network.openshift.io/fixed-vnid-host':'0'", "10.245.9.9", "");
    assert_int_equal(plan_of(NULL, hs).step, SUBNET_ASSIGN);
    CLEANUP(json_free) struct json *old = from(hs);
    CLEANUP(json_free)
    struct json *o = subnet_plan_assign(old, (struct ip4_prefix){0x0a800400, 23});
    assert_json(
        o, SUBNET("'pod.network.openshift.io/fixed-vnid-host':'0'", "10.245.9.9", "10.128.4.0/23"));
}

static void unusable_addresses_are_refused_with_a_reason(void **state)
{
    const struct {
        const char *node, *word;
    } bad[] = {
        {"{'metadata':{'name':'n1','uid':'u1'}}", "no address of type InternalIP"},
        {NODE(""), "no address of type InternalIP"},
        {NODE("fd00::1"), "not an IPv4 address"},
        {NODE("127.0.0.1"), "InternalIP 127.0.0.1 is a loopback address"},
        {NODE("0.0.0.0"), "is not an address of a host"},
        {NODE("169.254.0.5"), "is a link-local address"},
        {NODE("224.0.0.5"), "is a multicast address"},
        {NODE("192.0.2.10"), "InternalIP 192.0.2.10 is an address of a master"},
        {NODE("10.129.0.1"), "cluster network"},
        {NODE("172.30.0.1"), "service network"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct subnet_plan p = plan_of(bad[i].node, NULL);
        assert_int_equal(p.step, SUBNET_REFUSE);
        assert_string_equal(p.reason, REASON_BAD_ADDRESS);
        assert_non_null(strstr(p.message, bad[i].word));
        /* What it has, it keeps. */
        p = plan_of(bad[i].node, SUBNET(UID("u1"), "10.245.2.3", "10.128.0.0/23"));
        assert_int_equal(p.step, SUBNET_REFUSE);
    }
}

static void an_address_that_another_host_subnet_has_is_refused(void **state)
{
    static const struct {
        const char *owner, *host_subnet;
        enum subnet_step step;
    } cases[] = {
        {NULL, NULL, SUBNET_CREATE},
        {"n1", NULL, SUBNET_CREATE},
        {"n2", NULL, SUBNET_REFUSE},
        {NULL, SUBNET(UID("u1"), "10.245.2.9", "10.128.0.0/23"), SUBNET_UPDATE},
        {"n2", SUBNET(UID("u1"), "10.245.2.9", "10.128.0.0/23"), SUBNET_REFUSE},
        /* Both have it from before: told by an event about the younger one. */
        {"n2", SUBNET(UID("u1"), "10.245.2.3", "10.128.0.0/23"), SUBNET_KEEP},
        {"n1", SUBNET(UID("u1"), "10.245.2.3", "10.128.0.0/23"), SUBNET_KEEP},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        owner_of_address = cases[i].owner;
        struct subnet_plan p = plan_of(NODE("10.245.2.3"), cases[i].host_subnet);
        assert_int_equal(p.step, cases[i].step);
        if (p.step == SUBNET_REFUSE) {
            assert_string_equal(p.reason, REASON_BAD_ADDRESS);
            assert_string_equal(p.message,
                                "the node's InternalIP 10.245.2.3 is the hostIP of HostSubnet n2");
        }
    }
    owner_of_address = NULL;
}

static void condition_is_written_only_when_it_says_something_new(void **state)
{
    CLEANUP(json_free) struct json *node = from(NODE("10.245.2.3"));
    assert_null(subnet_plan_condition(node, NULL, NULL, 0));
    CLEANUP(json_free)
    struct json *bad = subnet_plan_condition(node, REASON_NO_SUBNET, "why", 1000);
    assert_json(json_path(bad, "status", "conditions", NULL),
                "[{'type':'NetworkUnavailable','status':'True','reason':'NoSubnetAvailable','"
                "message':'why',"
                "'lastHeartbeatTime':'1970-01-01T00:00:01Z',"
                "'lastTransitionTime':'1970-01-01T00:00:01Z'}]");
    assert_null(subnet_plan_condition(bad, REASON_NO_SUBNET, "why", 2000));
    CLEANUP(json_free)
    struct json *other = subnet_plan_condition(bad, REASON_NO_SUBNET, "else", 3000);
    assert_json(json_at(json_path(other, "status", "conditions", NULL), 0),
                "{'type':'NetworkUnavailable','status':'True','reason':'NoSubnetAvailable','"
                "message':'else',"
                "'lastHeartbeatTime':'1970-01-01T00:00:03Z',"
                "'lastTransitionTime':'1970-01-01T00:00:01Z'}");
    CLEANUP(json_free) struct json *good = subnet_plan_condition(bad, NULL, NULL, 4000);
    const struct json *c = condition_find(good, "NetworkUnavailable");
    assert_string_equal(json_path_string(c, "status", NULL), "False");
    assert_string_equal(json_path_string(c, "reason", NULL), REASON_ASSIGNED);
    assert_string_equal(json_path_string(c, "lastTransitionTime", NULL), "1970-01-01T00:00:04Z");
    assert_null(subnet_plan_condition(good, NULL, NULL, 5000));

    /* What the node says of itself is not touched. */
    CLEANUP(json_free)
    struct json *own = from("{'status':{'conditions':[{'type':'NetworkUnavailable','status':'True',"
                            "'reason':'OpenvSwitchDown'}]}}");
    assert_null(subnet_plan_condition(own, NULL, NULL, 5000));
}

static void conflicts_name_the_younger_and_the_older(void **state)
{
    CLEANUP(json_free)
    struct json *list = from(
        "[{'metadata':{'name':'a','creationTimestamp':'2026-01-01T00:00:02Z'},'hostIP':'1.0.0.1',"
        "'subnet':'10.128.0.0/23'},"
        "{'metadata':{'name':'b','creationTimestamp':'2026-01-01T00:00:01Z'},'hostIP':'1.0.0.2',"
        "'subnet':'10.128.1.0/24'},"
        "{'metadata':{'name':'c','creationTimestamp':'2026-01-01T00:00:03Z'},'hostIP':'1.0.0.3',"
        "'subnet':'10.128.2.0/23'},"
        "{'metadata':{'name':'d','creationTimestamp':'2026-01-01T00:00:04Z'},'hostIP':'1.0.0.3',"
        "'subnet':'10.128.4.0/23'},"
        "{'metadata':{'name':'e','creationTimestamp':'2026-01-01T00:00:05Z'},'hostIP':'1.0.0.5',"
        "'subnet':'10.128.1.128/25'},"
        "{'metadata':{'name':'f'},'hostIP':'','subnet':''}]");
    const struct json *objects[6];
    for (size_t i = 0; i < 6; i++) {
        objects[i] = json_at(list, i);
    }
    CLEANUP_FREE struct subnet_conflict *got = NULL;
    assert_int_equal(subnet_conflicts(objects, 6, &got), 3);
    assert_ptr_equal(got[0].a, objects[1]);
    assert_ptr_equal(got[0].b, objects[0]);
    assert_ptr_equal(got[1].a, objects[0]);
    assert_ptr_equal(got[1].b, objects[4]);
    assert_string_equal(got[1].reason, "OverlappingSubnets");
    assert_ptr_equal(got[2].a, objects[2]);
    assert_ptr_equal(got[2].b, objects[3]);
    assert_string_equal(got[2].reason, "DuplicateHostIP");
    CLEANUP_FREE struct subnet_conflict *none = NULL;
    assert_int_equal(subnet_conflicts(objects, 0, &none), 0);
}

static void project_gets_a_net_namespace(void **state)
{
    CLEANUP(json_free) struct json *ns = from("{'metadata':{'name':'red'}}");
    CLEANUP(json_free) struct json *nn = vnid_plan_create("red", 10);
    assert_json(nn, "{'apiVersion':'network.openshift.io/v1','kind':'NetNamespace',"
                    "'metadata':{'name':'red'},'netname':'red','netid':10}");
    assert_int_equal(vnid_plan_make("red", NULL, NULL), VNID_NONE);
    assert_int_equal(vnid_plan_make("red", ns, NULL), VNID_CREATE);
    assert_int_equal(vnid_plan_make("red", ns, nn), VNID_KEEP);
    assert_int_equal(vnid_plan_make("red", NULL, nn), VNID_DELETE);
    assert_false(vnid_plan_is_global("red"));
}

static void default_is_global_and_stays_so(void **state)
{
    CLEANUP(json_free) struct json *ns = from("{'metadata':{'name':'default'}}");
    CLEANUP(json_free) struct json *zero = vnid_plan_create("default", 0);
    CLEANUP(json_free) struct json *other = vnid_plan_create("default", 12);
    assert_true(vnid_plan_is_global("default"));
    assert_int_equal(vnid_plan_make("default", ns, zero), VNID_KEEP);
    assert_int_equal(vnid_plan_make("default", ns, other), VNID_GLOBAL);
}

static void namespace_is_let_go_only_when_it_is_deleted(void **state)
{
    CLEANUP(json_free)
    struct json *ns =
        from("{'metadata':{'name':'red'},'spec':{'finalizers':['kubernetes','a/b']}}");
    assert_null(namespaces_finalized(ns));
    json_set_string(json_get(ns, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    CLEANUP(json_free) struct json *o = namespaces_finalized(ns);
    assert_json(json_path(o, "spec", "finalizers", NULL), "['a/b']");
    assert_null(namespaces_finalized(o));
    assert_null(namespaces_finalized(NULL));
    CLEANUP(json_free)
    struct json *project = from("{'metadata':{'name':'red','deletionTimestamp':'x'},"
                                "'spec':{'finalizers':['openshift.io/origin','kubernetes']}}");
    CLEANUP(json_free) struct json *free_ = namespaces_finalized(project);
    assert_json(json_path(free_, "spec", "finalizers", NULL), "[]");
    CLEANUP(json_free)
    struct json *alone = from("{'metadata':{'name':'red','deletionTimestamp':'x'},"
                              "'spec':{'finalizers':['openshift.io/origin']}}");
    CLEANUP(json_free) struct json *gone = namespaces_finalized(alone);
    assert_json(json_path(gone, "spec", "finalizers", NULL), "[]");
}

static void events_have_a_name_made_of_what_they_say(void **state)
{
    CLEANUP(json_free) struct json *node = from(NODE("10.245.2.3"));
    CLEANUP(json_free)
    struct json *a = recorder_make("v1", "Node", node, EVENT_WARNING, "Why", "because", "me", 0);
    CLEANUP(json_free)
    struct json *b = recorder_make("v1", "Node", node, EVENT_WARNING, "Why", "because", "me", 9000);
    CLEANUP(json_free)
    struct json *c = recorder_make("v1", "Node", node, EVENT_WARNING, "Why", "else", "me", 0);
    assert_string_equal(obj_name(a), obj_name(b));
    assert_string_not_equal(obj_name(a), obj_name(c));
    assert_string_equal(obj_namespace(a), "default");
    assert_true(str_has_prefix(obj_name(a), "n1."));
    assert_json(json_get(a, "involvedObject"),
                "{'apiVersion':'v1','kind':'Node','name':'n1','uid':'u1'}");
    assert_string_equal(json_path_string(a, "type", NULL), "Warning");
    assert_int_equal(json_get_int_or(json_get(a, "count"), 0), 1);
    CLEANUP(json_free)
    struct json *pod = from("{'metadata':{'name':'p','namespace':'red','uid':'u2'}}");
    CLEANUP(json_free)
    struct json *d = recorder_make("v1", "Pod", pod, EVENT_NORMAL, "Why", "because", "me", 0);
    assert_string_equal(obj_namespace(d), "red");
    assert_string_equal(json_path_string(d, "involvedObject", "namespace", NULL), "red");
}

static void one_object_fills_no_registry_with_events(void **state)
{
    struct recorder_limit l;
    recorder_limit_init(&l);
    unsigned sent = 0;
    for (unsigned i = 0; i < 1000; i++) {
        sent += recorder_limit_take(&l, "Pod/red/a", 5);
    }
    assert_int_equal(sent, RECORDER_BURST);
    assert_true(recorder_limit_take(&l, "Pod/red/b", 5));
    assert_false(recorder_limit_take(&l, "Pod/red/a", RECORDER_REFILL_MS));
    assert_true(recorder_limit_take(&l, "Pod/red/a", RECORDER_REFILL_MS + 5));
    assert_false(recorder_limit_take(&l, "Pod/red/a", RECORDER_REFILL_MS + 6));
    /* After a long silence all of the burst, and no more. */
    sent = 0;
    for (unsigned i = 0; i < 1000; i++) {
        sent += recorder_limit_take(&l, "Pod/red/a", 1000 * UINT64_C(300000));
    }
    assert_int_equal(sent, RECORDER_BURST);
    recorder_limit_done(&l);
}

static void a_pod_goes_some_seconds_after_its_time(void **state)
{
    int64_t t = 0;
    assert_int_equal(time_parse("2026-01-01T12:00:00Z", &t), 0);
    CLEANUP(json_free) struct json *lives = from("{'metadata':{}}");
    CLEANUP(json_free)
    struct json *ends = from("{'metadata':{'deletionTimestamp':'2026-01-01T12:00:00Z'}}");
    assert_true(pod_deletion_in_ms(lives, t) < 0);
    assert_int_equal(pod_deletion_in_ms(ends, t - 1000), 1000 + POD_DELETION_SLACK_MS);
    assert_int_equal(pod_deletion_in_ms(ends, t + POD_DELETION_SLACK_MS), 0);
    assert_int_equal(pod_deletion_in_ms(ends, t + 1000000), 0);
    CLEANUP(json_free) struct json *node = json_object();
    assert_true(pod_deletion_is_by_clock(NULL));
    assert_true(pod_deletion_is_by_clock(node));
    json_set_string(json_ensure_object(json_ensure_object(node, "status"), "nodeInfo"),
                    "containerRuntimeVersion", "containerd://1.6.20");
    assert_false(pod_deletion_is_by_clock(node));
}

static void events_are_over_after_an_hour(void **state)
{
    int64_t t = 0;
    assert_int_equal(time_parse("2026-01-01T12:00:00Z", &t), 0);
    CLEANUP(json_free)
    struct json *seen_late = from("{'metadata':{'creationTimestamp':'2026-01-01T00:00:00Z'},"
                                  "'firstTimestamp':'2026-01-01T00:00:00Z',"
                                  "'lastTimestamp':'2026-01-01T11:30:00Z'}");
    CLEANUP(json_free)
    struct json *made = from("{'metadata':{'creationTimestamp':'2026-01-01T10:00:00Z'}}");
    CLEANUP(json_free) struct json *unknown = from("{'metadata':{}}");
    assert_false(event_age_is_over(seen_late, t));
    assert_true(event_age_is_over(seen_late, t + 1800001));
    assert_true(event_age_is_over(made, t));
    assert_false(event_age_is_over(unknown, t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_gets_a_host_subnet),
        cmocka_unit_test(node_with_its_subnet_is_left_alone),
        cmocka_unit_test(changed_address_updates_only_the_address),
        cmocka_unit_test(host_ports_of_a_node_that_lead_to_its_subnet_are_published),
        cmocka_unit_test(further_addresses_of_a_node_are_published),
        cmocka_unit_test(unowned_subnet_of_a_node_is_stamped),
        cmocka_unit_test(subnet_of_a_node_that_is_gone_or_was_replaced_is_deleted),
        cmocka_unit_test(subnet_outside_of_the_cluster_network_is_replaced),
        cmocka_unit_test(subnet_that_cannot_be_read_is_not_replaced),
        cmocka_unit_test(ghosts_are_left_alone),
        cmocka_unit_test(ghost_that_asks_gets_a_subnet_and_keeps_the_rest),
        cmocka_unit_test(unusable_addresses_are_refused_with_a_reason),
        cmocka_unit_test(an_address_that_another_host_subnet_has_is_refused),
        cmocka_unit_test(condition_is_written_only_when_it_says_something_new),
        cmocka_unit_test(conflicts_name_the_younger_and_the_older),
        cmocka_unit_test(project_gets_a_net_namespace),
        cmocka_unit_test(default_is_global_and_stays_so),
        cmocka_unit_test(namespace_is_let_go_only_when_it_is_deleted),
        cmocka_unit_test(events_have_a_name_made_of_what_they_say),
        cmocka_unit_test(one_object_fills_no_registry_with_events),
        cmocka_unit_test(events_are_over_after_an_hour),
        cmocka_unit_test(a_pod_goes_some_seconds_after_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
