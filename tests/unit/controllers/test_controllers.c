/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers against a real API server over the memory store, in one process,
 * through loopback. */
#include "controllers/controllers.h"

#include "api/condition.h"
#include "apiserver/apiserver.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "net/loop/sock.h"

#include "json_text.h"

#include <limits.h>
#include <stdlib.h>

#define WAIT_MS 120000
#define NET "/apis/network.openshift.io/v1/"

struct cluster {
    struct loop *loop;
    struct store *store;
    struct apiserver *apiserver;
    struct http_server *http;
    struct api_client *client;
    struct controllers *controllers;
    struct netconf conf;
    bool started, failed;
    struct err error;
    unsigned status_writes_left; /* The server answers 503 to further PUTs of a status. */
    unsigned refused;            /* The number of these answers. */
};

static void handle(void *ctx, struct http_exchange *x)
{
    struct cluster *c = ctx;
    if (!streq(http_method(x), "PUT") || !str_has_suffix(http_path(x), "/status")) {
        apiserver_handle(c->apiserver, x);
    } else if (c->status_writes_left) {
        c->status_writes_left--;
        apiserver_handle(c->apiserver, x);
    } else {
        c->refused++;
        http_respond(x, 503, "text/plain", "no\n", 3);
    }
}

static void started(void *ctx)
{
    ((struct cluster *) ctx)->started = true;
}

static void failed(void *ctx, const struct err *e)
{
    struct cluster *c = ctx;
    c->error = *e;
    c->failed = true;
}

static void flag(void *ctx)
{
    *(bool *) ctx = true;
}

/* Runs the loop until 'condition' holds.  The condition may run the loop itself, so it is
 * looked at between the loop's runs. */
static void wait_until(struct cluster *c, bool (*condition)(struct cluster *c, void *arg),
                       void *arg)
{
    bool look = false;
    struct loop_timer *timer = loop_timer_new(c->loop, flag, &look);
    uint64_t end = time_mono_ms() + WAIT_MS;
    while (!condition(c, arg)) {
        if (time_mono_ms() > end) {
            fail_msg("waited in vain");
        }
        look = false;
        loop_timer_arm(timer, 10);
        assert_int_equal(loop_run_until(c->loop, &look, WAIT_MS), 0);
    }
    loop_timer_free(timer);
}

static bool is_started(struct cluster *c, void *arg)
{
    return c->started || c->failed;
}

static bool is_ready(struct cluster *c, void *arg)
{
    return apiserver_ready(c->apiserver);
}

static void controllers_up(struct cluster *c)
{
    struct controllers_config cfg = {.network = c->conf,
                                     .vnids = {.pause_ms = 100, .give_up_ms = 700},
                                     .started = started,
                                     .failed = failed,
                                     .ctx = c};
    c->started = c->failed = false;
    c->controllers = controllers_new(c->loop, c->client, &cfg);
    wait_until(c, is_started, NULL);
}

static void controllers_down(struct cluster *c)
{
    c->controllers = controllers_free(c->controllers);
}

static int setup(void **state)
{
    struct cluster *c = NEW(struct cluster);
    struct err e = {0};
    int fd = -1;
    c->status_writes_left = UINT_MAX;
    netconf_defaults(&c->conf);
    c->conf.plugin = SDN_MULTITENANT;
    c->loop = loop_new();
    struct store_config sc = {.backend = "memory"};
    assert_int_equal(store_open(c->loop, &sc, &c->store, &e), 0);
    c->apiserver = apiserver_new(c->loop, c->store, NULL);
    c->http = http_server_new(c->loop, NULL, handle, c);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", sock_local_port(fd));
    assert_int_equal(http_server_add_listener(c->http, fd, &e), 0);
    assert_int_equal(api_client_new(c->loop, url, "test", &c->client, &e), 0);
    wait_until(c, is_ready, NULL);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct cluster *c = *state;
    bool closed = false;
    controllers_down(c);
    api_client_free(c->client);
    apiserver_shutdown(c->apiserver);
    http_server_shutdown(c->http, 1000, flag, &closed);
    assert_int_equal(loop_run_until(c->loop, &closed, 10000), 0);
    store_close(c->store);
    http_server_free(c->http);
    apiserver_free(c->apiserver);
    loop_free(c->loop);
    free(c);
    return 0;
}

/* ---- requests ---- */

static struct json *call(struct cluster *c, const char *method, const char *path,
                         const struct json *body)
{
    struct json *answer = NULL;
    struct err e = {0};
    if (api_request_sync(c->client, method, path, NULL, NULL, body, &answer, &e) < 0) {
        fail_msg("%s %s: %s", method, path, e.text);
    }
    return answer;
}

static void post(struct cluster *c, const char *path, const char *text)
{
    CLEANUP(json_free) struct json *o = from(text);
    json_free(call(c, "POST", path, o));
}

static void delete (struct cluster *c, const char *path)
{
    json_free(call(c, "DELETE", path, NULL));
}

/* Owned, or NULL when there is no such object. */
static struct json *get(struct cluster *c, const char *path)
{
    struct json *answer = NULL;
    int r = api_request_sync(c->client, "GET", path, NULL, NULL, NULL, &answer, NULL);
    assert_true(r == 0 || r == -ENOENT);
    return answer;
}

static char *node_text(const char *name, uint32_t ip)
{
    return xasprintf("{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s'},'status':"
                     "{'addresses':[{'type':'InternalIP','address':'%s'}]}}",
                     name, IP4_TEXT(ip));
}

static void add_node(struct cluster *c, const char *name, uint32_t ip)
{
    CLEANUP_FREE char *text = node_text(name, ip);
    post(c, "/api/v1/nodes", text);
}

static bool has_path(struct cluster *c, void *path)
{
    CLEANUP(json_free) struct json *o = get(c, path);
    return o != NULL;
}

static bool lacks_path(struct cluster *c, void *path)
{
    return !has_path(c, path);
}

/* The string or number at a top-level field of an object. */
static char *field_of(struct cluster *c, const char *path, const char *field)
{
    CLEANUP(json_free) struct json *o = get(c, path);
    const struct json *v = json_get(o, field);
    return v ? json_is(v, JSON_STRING) ? xstrdup(json_get_string(v)) : json_to_text(v) : NULL;
}

struct want {
    const char *path, *field, *value;
};

static bool field_is(struct cluster *c, void *arg)
{
    const struct want *w = arg;
    CLEANUP_FREE char *v = field_of(c, w->path, w->field);
    return streq_null(v, w->value);
}

/* "NAME=SUBNET" (or netid) of all objects of a kind, sorted by the server, in one text. */
static char *registry(struct cluster *c, const char *path, const char *field, size_t *ret_n)
{
    CLEANUP(json_free) struct json *list = get(c, path);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const struct json *o;
    JSON_FOREACH (o, json_get(list, "items")) {
        CLEANUP_FREE char *v = json_to_text(json_get(o, field));
        strbuf_addf(&out, "%s=%s %s\n", obj_name(o), v, obj_uid(o));
    }
    if (ret_n) {
        *ret_n = json_count(json_get(list, "items"));
    }
    return strbuf_steal(&out);
}

static void assert_no_overlap(struct cluster *c)
{
    CLEANUP(json_free) struct json *list = get(c, NET "hostsubnets");
    const struct json *items = json_get(list, "items");
    for (size_t i = 0; i < json_count(items); i++) {
        struct ip4_prefix a, b;
        assert_int_equal(hostsubnet_prefix(json_at(items, i), &a), 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(hostsubnet_prefix(json_at(items, j), &b), 0);
            if (prefix_overlaps(a, b)) {
                fail_msg("%s and %s overlap", PREFIX_TEXT(a), PREFIX_TEXT(b));
            }
        }
    }
}

static bool count_is(struct cluster *c, void *arg)
{
    CLEANUP(json_free) struct json *list = get(c, NET "hostsubnets");
    return json_count(json_get(list, "items")) == *(size_t *) arg;
}

/* Nodes whose condition NetworkUnavailable is True for want of a subnet. */
static size_t waiting_nodes(struct cluster *c)
{
    CLEANUP(json_free) struct json *list = get(c, "/api/v1/nodes");
    const struct json *o;
    size_t n = 0;
    JSON_FOREACH (o, json_get(list, "items")) {
        const struct json *cond = condition_find(o, "NetworkUnavailable");
        bool bad = streq_null(json_path_string(cond, "status", NULL), "True");
        if (bad) {
            assert_string_equal(json_path_string(cond, "reason", NULL), "NoSubnetAvailable");
            assert_non_null(strstr(json_path_string(cond, "message", NULL), "512"));
            n++;
        }
    }
    return n;
}

static bool waiting_is(struct cluster *c, void *arg)
{
    return waiting_nodes(c) == *(size_t *) arg;
}

static size_t events_with_reason(struct cluster *c, const char *reason)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/events?fieldSelector=reason=%s", reason);
    CLEANUP(json_free) struct json *list = get(c, path);
    return json_count(json_get(list, "items"));
}

struct events_want {
    const char *reason;
    size_t n;
};

static bool events_are(struct cluster *c, void *arg)
{
    const struct events_want *w = arg;
    return events_with_reason(c, w->reason) == w->n;
}

/* ---- tests ---- */

static void cluster_begins_with_its_objects(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    assert_true(c->started);
    assert_true(has_path(c, (char *) "/api/v1/namespaces/default"));
    CLEANUP(json_free) struct json *net = get(c, NET "clusternetworks/default");
    assert_string_equal(json_path_string(net, "network", NULL), "10.128.0.0/14");
    assert_string_equal(json_path_string(net, "pluginName", NULL),
                        "redhat/openshift-ovs-multitenant");
    wait_until(c, field_is, &(struct want){NET "netnamespaces/default", "netid", "0"});
}

static void counted(void *ctx, int error, const char *text, struct json *obj)
{
    size_t *pending = ctx;
    assert_int_equal(error, 0);
    (*pending)--;
}

static bool none_pending(struct cluster *c, void *arg)
{
    return *(size_t *) arg == 0;
}

static void six_hundred_nodes_share_512_subnets(void **state)
{
    struct cluster *c = *state;
    size_t pending = 0, n = 0, want = 512, waiting = 88;
    controllers_up(c);
    for (unsigned i = 0; i < 600; i++) { /* All at once. */
        CLEANUP_FREE char *name = xasprintf("n%u", i);
        CLEANUP_FREE char *text = node_text(name, 0x0af50001 + i);
        CLEANUP(json_free) struct json *o = from(text);
        pending++;
        (void) api_request(c->client, "POST", "/api/v1/nodes", NULL, o, counted, &pending);
    }
    wait_until(c, none_pending, &pending);
    wait_until(c, count_is, &want);
    wait_until(c, waiting_is, &waiting);
    wait_until(c, events_are, &(struct events_want){"NoSubnetAvailable", 88});
    assert_no_overlap(c);

    /* Controllers that start again find all as it should be. */
    CLEANUP_FREE char *before = registry(c, NET "hostsubnets", "subnet", &n);
    assert_int_equal(n, 512);
    controllers_down(c);
    controllers_up(c);
    CLEANUP_FREE char *after = registry(c, NET "hostsubnets", "subnet", NULL);
    assert_string_equal(before, after);

    /* Thirty leave: thirty of those that wait move in. */
    unsigned left = 0;
    for (unsigned i = 0; i < 600 && left < 30; i++) {
        CLEANUP_FREE char *node = xasprintf("/api/v1/nodes/n%u", i);
        CLEANUP_FREE char *subnet = xasprintf(NET "hostsubnets/n%u", i);
        if (has_path(c, subnet)) {
            delete (c, node);
            left++;
        }
    }
    waiting = 58;
    wait_until(c, waiting_is, &waiting);
    wait_until(c, count_is, &want);
    assert_no_overlap(c);
    assert_int_equal(events_with_reason(c, "NoSubnetAvailable"), 88);

    /* Also when the free place is found by a start. */
    controllers_down(c);
    for (unsigned i = 599, k = 0; k < 10; i--) {
        CLEANUP_FREE char *node = xasprintf("/api/v1/nodes/n%u", i);
        CLEANUP_FREE char *subnet = xasprintf(NET "hostsubnets/n%u", i);
        if (has_path(c, subnet)) {
            delete (c, node);
            k++;
        }
    }
    controllers_up(c);
    waiting = 48;
    wait_until(c, waiting_is, &waiting);
    wait_until(c, count_is, &want);
    assert_no_overlap(c);
}

static void subnets_come_in_the_order_of_registration(void **state)
{
    struct cluster *c = *state;
    static const char *const want[] = {"10.128.0.0/23", "10.128.2.0/23", "10.128.4.0/23"};
    for (unsigned i = 0; i < 2; i++) { /* Before the controllers run: names decide. */
        CLEANUP_FREE char *name = xasprintf("n%u", i);
        add_node(c, name, 0x0af50001 + i);
    }
    controllers_up(c);
    wait_until(c, field_is, &(struct want){NET "hostsubnets/n1", "subnet", want[1]});
    add_node(c, "a", 0x0af50009);
    wait_until(c, field_is, &(struct want){NET "hostsubnets/a", "subnet", want[2]});
    wait_until(c, field_is, &(struct want){NET "hostsubnets/n0", "subnet", want[0]});
    /* A freed subnet is not given out again while others are left, also not after a restart. */
    delete (c, "/api/v1/nodes/n0");
    wait_until(c, lacks_path, (char *) NET "hostsubnets/n0");
    controllers_down(c);
    controllers_up(c);
    add_node(c, "b", 0x0af50010);
    wait_until(c, field_is, &(struct want){NET "hostsubnets/b", "subnet", "10.128.6.0/23"});
}

static void put_address(struct cluster *c, const char *path, const char *ip)
{
    for (;;) { /* The controllers write to the Node, too. */
        CLEANUP(json_free) struct json *o = get(c, path);
        struct json *a = json_at(json_path(o, "status", "addresses", NULL), 0);
        json_set_string(a, "address", ip);
        CLEANUP_FREE char *status = xasprintf("%s/status", path);
        int r = api_request_sync(c->client, "PUT", status, NULL, NULL, o, NULL, NULL);
        if (r == 0) {
            return;
        }
        assert_int_equal(r, -ESTALE);
    }
}

static void changed_address_reaches_the_host_subnet(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0af50001);
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    CLEANUP_FREE char *before = field_of(c, NET "hostsubnets/n1", "subnet");
    put_address(c, "/api/v1/nodes/n1", "10.245.9.9");
    wait_until(c, field_is, &(struct want){NET "hostsubnets/n1", "hostIP", "10.245.9.9"});
    CLEANUP_FREE char *after = field_of(c, NET "hostsubnets/n1", "subnet");
    assert_string_equal(before, after);
}

/* The addresses of a Node beside that of its tunnels. */
struct annotation_want {
    const char *path, *value;
};

/* The controller writes the addresses after it has made the HostSubnet. */
static bool has_addresses(struct cluster *c, void *arg)
{
    const struct annotation_want *w = arg;
    CLEANUP(json_free) struct json *hs = get(c, w->path);
    return streq_null(obj_annotation(hs, "tenet.io/node-addresses"), w->value);
}

static void a_further_address_is_of_the_node_that_had_it_first(void **state)
{
    struct cluster *c = *state;
    static const char two[] =
        "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s'},'status':{'addresses':[{'type':"
        "'InternalIP','address':'%s'},{'type':'InternalIP','address':'192.0.2.7'},{'type':"
        "'InternalIP','address':'%s'}]}}";
    controllers_up(c);
    static const char *const nodes[][3] = {{"n1", "10.245.0.1", "192.0.2.8"},
                                           {"n2", "10.245.0.2", "192.0.2.9"}};
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
        CLEANUP_FREE char *text = xasprintf(two, nodes[i][0], nodes[i][1], nodes[i][2]);
        CLEANUP_FREE char *path = xasprintf(NET "hostsubnets/%s", nodes[i][0]);
        post(c, "/api/v1/nodes", text);
        struct annotation_want want = {path, i == 0 ? "192.0.2.7,192.0.2.8" : "192.0.2.9"};
        wait_until(c, has_addresses, &want);
    }
}

static void answered(void *ctx, int error, const char *text, struct json *obj)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

static bool both_are_done(struct cluster *c, void *arg)
{
    const bool *done = arg;
    return done[0] && done[1];
}

struct condition_want {
    const char *path, *status, *reason;
};

static bool condition_is(struct cluster *c, void *arg)
{
    const struct condition_want *w = arg;
    CLEANUP(json_free) struct json *o = get(c, w->path);
    const struct json *cond = condition_find(o, "NetworkUnavailable");
    return streq_null(json_path_string(cond, "status", NULL), w->status) &&
           streq_null(json_path_string(cond, "reason", NULL), w->reason);
}

static void unusable_address_is_told_and_mended(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0a800005); /* In the cluster network. */
    wait_until(c, condition_is,
               &(struct condition_want){"/api/v1/nodes/n1", "True", "InvalidNodeAddress"});
    wait_until(c, events_are, &(struct events_want){"InvalidNodeAddress", 1});
    assert_false(has_path(c, (char *) NET "hostsubnets/n1"));
    put_address(c, "/api/v1/nodes/n1", "10.245.0.1");
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    assert_true(
        condition_is(c, &(struct condition_want){"/api/v1/nodes/n1", "False", "SubnetAssigned"}));
}

static bool has_refused(struct cluster *c, void *arg)
{
    return c->refused > 0;
}

/* A client that sees the HostSubnet does not see the condition any more. */
static void a_condition_ends_before_the_host_subnet_comes_also_when_that_fails_once(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0a800005); /* In the cluster network. */
    wait_until(c, condition_is,
               &(struct condition_want){"/api/v1/nodes/n1", "True", "InvalidNodeAddress"});
    wait_until(c, events_are, &(struct events_want){"InvalidNodeAddress", 1});
    c->status_writes_left = 1;
    put_address(c, "/api/v1/nodes/n1", "10.245.0.1");
    wait_until(c, has_refused, NULL);
    c->status_writes_left = UINT_MAX;
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    assert_true(
        condition_is(c, &(struct condition_want){"/api/v1/nodes/n1", "False", "SubnetAssigned"}));
}

static bool is_refused(struct cluster *c, const char *path)
{
    return condition_is(c, &(struct condition_want){path, "True", "InvalidNodeAddress"});
}

static bool one_is_refused(struct cluster *c, void *arg)
{
    return is_refused(c, "/api/v1/nodes/n1") || is_refused(c, "/api/v1/nodes/n2");
}

/* One of them, at once: which, is chance. */
static void of_two_nodes_with_one_address_one_gets_a_subnet(void **state)
{
    struct cluster *c = *state;
    bool done[2] = {false, false};
    controllers_up(c);
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FREE char *text = node_text(i ? "n2" : "n1", 0x0af50001);
        CLEANUP(json_free) struct json *o = from(text);
        api_request(c->client, "POST", "/api/v1/nodes", NULL, o, answered, &done[i]);
    }
    wait_until(c, both_are_done, done);
    wait_until(c, one_is_refused, NULL);
    bool first = is_refused(c, "/api/v1/nodes/n2");
    wait_until(c, has_path, (char *) (first ? NET "hostsubnets/n1" : NET "hostsubnets/n2"));
    const char *loser = first ? "/api/v1/nodes/n2" : "/api/v1/nodes/n1";
    const char *winner = first ? "/api/v1/nodes/n1" : "/api/v1/nodes/n2";
    char *none = (char *) (first ? NET "hostsubnets/n2" : NET "hostsubnets/n1");
    assert_true(is_refused(c, loser));
    assert_false(has_path(c, none));
    /* Also after the controllers begin anew. */
    controllers_down(c);
    controllers_up(c);
    add_node(c, "n3", 0x0af50003);
    wait_until(c, has_path, (char *) NET "hostsubnets/n3");
    assert_false(has_path(c, none));
    /* Nor does a node come to an address by changing its own. */
    put_address(c, "/api/v1/nodes/n3", "10.245.0.1");
    wait_until(c, condition_is,
               &(struct condition_want){"/api/v1/nodes/n3", "True", "InvalidNodeAddress"});
    CLEANUP_FREE char *ip = field_of(c, NET "hostsubnets/n3", "hostIP");
    assert_string_equal(ip, "10.245.0.3");
    /* What is given up is free. */
    put_address(c, "/api/v1/nodes/n3", "10.245.0.3");
    wait_until(c, condition_is,
               &(struct condition_want){"/api/v1/nodes/n3", "False", "SubnetAssigned"});
    delete (c, winner);
    wait_until(c, has_path, none);
}

#define PODS "/api/v1/namespaces/default/pods"

static void put_pod(struct cluster *c, const char *name, const char *node, const char *more,
                    const char *ip)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','labels':{'app':'web'}},'spec':{"
        "'nodeName':'%s','containers':[{'name':'c','image':'i'}]%s}}",
        name, node, more);
    CLEANUP_FREE char *path = xasprintf(PODS "/%s", name);
    CLEANUP_FREE char *status_path = xasprintf("%s/status", path);
    post(c, PODS, text);
    CLEANUP(json_free) struct json *o = get(c, path);
    struct json *status = json_ensure_object(o, "status");
    json_set_string(status, "podIP", ip);
    json_set(status, "conditions", from("[{'type':'Ready','status':'True'}]"));
    json_free(call(c, "PUT", status_path, o));
}

/* "10.128.0.5 10.128.0.6": ready ones of the Endpoints "web". */
static bool endpoints_are(struct cluster *c, void *want)
{
    CLEANUP(json_free) struct json *o = get(c, "/api/v1/namespaces/default/endpoints/web");
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *a;
    JSON_FOREACH (a, json_path(json_at(json_get(o, "subsets"), 0), "addresses", NULL)) {
        strbuf_addf(&b, "%s%s", b.size ? " " : "", json_path_string(a, "ip", NULL));
    }
    return o && streq(b.size ? strbuf_cstr(&b) : "", want);
}

static void endpoints_have_only_addresses_that_nodes_give_out(void **state)
{
    struct cluster *c = *state;
    c->conf.foreign = (struct address_ranges){.list = {{0x0a090000, 16}}, .n = 1};
    controllers_up(c);
    add_node(c, "n1", 0x0af50001);
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    add_node(c, "n2", 0x0af50002);
    wait_until(c, has_path, (char *) NET "hostsubnets/n2");
    post(c, "/api/v1/namespaces/default/services",
         "{'apiVersion':'v1','kind':'Service','metadata':{'name':'web'},'spec':{'clusterIP':'None',"
         "'selector':{'app':'web'},'ports':[{'port':80}]}}");
    put_pod(c, "good", "n1", "", "10.128.0.5");
    put_pod(c, "bad1", "n1", "", "10.128.2.5");
    put_pod(c, "bad2", "n1", "", "10.245.0.2");
    put_pod(c, "bad3", "n1", "", "203.0.113.1");
    put_pod(c, "bad4", "n1", ",'hostNetwork':true", "10.245.0.2");
    put_pod(c, "early", "n3", "", "10.128.4.5");
    put_pod(c, "host", "n2", ",'hostNetwork':true", "10.245.0.2");
    put_pod(c, "other", "n2", "", "10.9.0.5");
    wait_until(c, endpoints_are, (char *) "10.9.0.5 10.128.0.5 10.245.0.2");
    wait_until(c, events_are, &(struct events_want){"AddressIgnored", 4});
    /* The HostSubnet may come after the pod ... */
    add_node(c, "n3", 0x0af50003);
    wait_until(c, endpoints_are, (char *) "10.9.0.5 10.128.0.5 10.128.4.5 10.245.0.2");
    /* ... and goes with its node. */
    delete (c, "/api/v1/nodes/n1");
    wait_until(c, endpoints_are, (char *) "10.9.0.5 10.128.4.5 10.245.0.2");
    /* As it is for those who begin with all that. */
    controllers_down(c);
    put_pod(c, "bad5", "n3", "", "10.128.0.5");
    put_pod(c, "second", "n3", "", "10.128.4.6");
    controllers_up(c);
    wait_until(c, endpoints_are, (char *) "10.9.0.5 10.128.4.5 10.128.4.6 10.245.0.2");
    wait_until(c, events_are, &(struct events_want){"AddressIgnored", 5});
}

static void node_made_anew_gets_a_subnet_of_its_own(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0af50001);
    add_node(c, "n2", 0x0af50002);
    size_t two = 2;
    wait_until(c, count_is, &two);
    CLEANUP_FREE char *before = registry(c, NET "hostsubnets", "subnet", NULL);
    controllers_down(c);
    delete (c, "/api/v1/nodes/n1"); /* Nobody sees it go. */
    delete (c, "/api/v1/nodes/n2");
    add_node(c, "n1", 0x0af50001);
    CLEANUP(json_free) struct json *node = get(c, "/api/v1/nodes/n1");
    controllers_up(c);
    wait_until(c, lacks_path, (char *) NET "hostsubnets/n2");
    for (;;) {
        wait_until(c, has_path, (char *) NET "hostsubnets/n1");
        CLEANUP(json_free) struct json *hs = get(c, NET "hostsubnets/n1");
        const char *uid = obj_annotation(hs, ANNOTATION_NODE_UID);
        if (streq_null(uid, obj_uid(node))) {
            break;
        }
        bool never = false;
        (void) loop_run_until(c->loop, &never, 10);
    }
    CLEANUP_FREE char *after = registry(c, NET "hostsubnets", "subnet", NULL);
    assert_string_not_equal(before, after);
}

/* Deletes an object and waits until another one has its name. */
static void delete_and_wait_for_another(struct cluster *c, const char *path)
{
    CLEANUP(json_free) struct json *before = get(c, path);
    delete (c, path);
    for (bool anew = false; !anew;) {
        wait_until(c, has_path, (char *) path);
        CLEANUP(json_free) struct json *now = get(c, path);
        anew = now && !streq(obj_uid(now), obj_uid(before));
    }
}

static void host_subnet_deleted_by_hand_comes_back(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0af50001);
    add_node(c, "n2", 0x0af50002);
    size_t two = 2;
    wait_until(c, count_is, &two);
    CLEANUP_FREE char *before = field_of(c, NET "hostsubnets/n1", "subnet");
    delete_and_wait_for_another(c, NET "hostsubnets/n1");
    CLEANUP_FREE char *after = field_of(c, NET "hostsubnets/n1", "subnet");
    assert_string_equal(before, after);
    /* But not when it was the one too many. */
    CLEANUP_FREE char *text =
        xasprintf("{'apiVersion':'network.openshift.io/v1','kind':'HostSubnet','metadata':"
                  "{'name':'x'},'host':'x','hostIP':'10.245.7.7','subnet':'%s'}",
                  after);
    post(c, NET "hostsubnets", text);
    wait_until(c, events_are, &(struct events_want){"OverlappingSubnets", 1});
    delete_and_wait_for_another(c, NET "hostsubnets/n1");
    assert_no_overlap(c);
}

static void ghosts_are_respected_and_served(void **state)
{
    struct cluster *c = *state;
    post(c, NET "hostsubnets",
         "{'apiVersion':'network.openshift.io/v1','kind':'HostSubnet','metadata':{'name':'f5',"
         "'annotations':{'pod.network.openshift.io/fixed-vnid-host':'0'}},'host':'f5',"
         "'hostIP':'10.245.7.7','subnet':'10.128.0.0/24'}");
    post(c, NET "hostsubnets",
         "{'apiVersion':'network.openshift.io/v1','kind':'HostSubnet','metadata':{'name':'asks',"
         "'annotations':{'pod.network.openshift.io/fixed-vnid-host':'0',"
         "'pod.network.openshift.io/assign-subnet':'true'}},'host':'asks','hostIP':'10.245.7.8',"
         "'subnet':''}");
    controllers_up(c);
    wait_until(c, field_is, &(struct want){NET "hostsubnets/asks", "subnet", "10.128.2.0/23"});
    CLEANUP(json_free) struct json *asks = get(c, NET "hostsubnets/asks");
    assert_null(obj_annotation(asks, ANNOTATION_ASSIGN_SUBNET));
    assert_string_equal(obj_annotation(asks, ANNOTATION_FIXED_VNID), "0");
    add_node(c, "n1", 0x0af50001);
    wait_until(c, field_is, &(struct want){NET "hostsubnets/n1", "subnet", "10.128.4.0/23"});
    assert_true(has_path(c, (char *) NET "hostsubnets/f5"));
    assert_no_overlap(c);
}

static void raw_done(void *ctx, int error, uint64_t revision)
{
    assert_int_equal(error, 0);
    *(bool *) ctx = true;
}

/* Brings a value into the store past the API's checks, as a hand in etcd does, or damage. */
static void put_raw(struct cluster *c, const char *key, const char *text)
{
    bool done = false;
    CLEANUP(blob_unref) struct blob *value = blob_new(text, strlen(text));
    store_put(c->store, key, value, STORE_ANY, raw_done, &done);
    assert_int_equal(loop_run_until(c->loop, &done, WAIT_MS), 0);
}

static bool event_is_told(struct cluster *c, void *needle)
{
    CLEANUP(json_free)
    struct json *events = get(c, "/api/v1/events");
    CLEANUP_FREE char *text = json_to_text(events);
    return strstr(text, needle);
}

static void number_that_cannot_be_read_is_never_given_again(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0af50203);
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    post(c, "/api/v1/namespaces", "{'metadata':{'name':'p1'}}");
    wait_until(c, has_path, (char *) NET "netnamespaces/p1");
    put_raw(
        c, "/registry/network.openshift.io/hostsubnets/n1",
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"x\"},\"host\":\"n1\",\"hostIP\":\"10.245.2.3\","
        "\"subnet\":\"10.128.0.0/2?\"}");
    put_raw(c, "/registry/network.openshift.io/netnamespaces/p1",
            "{\"metadata\":{\"name\":\"p1\",\"uid\":\"y\"},\"netname\":\"p1\",\"netid\":\"x\"}");
    add_node(c, "n2", 0x0af50204);
    wait_until(c, event_is_told, (char *) "no subnet is given out: that of HostSubnet n1");
    post(c, "/api/v1/namespaces", "{'metadata':{'name':'p2'}}");
    wait_until(c, event_is_told, (char *) "no netid is given out");
    assert_true(lacks_path(c, (char *) NET "hostsubnets/n2"));
    assert_true(lacks_path(c, (char *) NET "netnamespaces/p2"));
    /* Also by the next master, which has seen no other value. */
    controllers_down(c);
    controllers_up(c);
    add_node(c, "n3", 0x0af50205);
    wait_until(c, event_is_told, (char *) "n3");
    assert_true(lacks_path(c, (char *) NET "hostsubnets/n3"));
    /* Somebody corrects them. */
    put_raw(
        c, "/registry/network.openshift.io/hostsubnets/n1",
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"x\"},\"host\":\"n1\",\"hostIP\":\"10.245.2.3\","
        "\"subnet\":\"10.128.0.0/23\"}");
    put_raw(c, "/registry/network.openshift.io/netnamespaces/p1",
            "{\"metadata\":{\"name\":\"p1\",\"uid\":\"y\"},\"netname\":\"p1\",\"netid\":7}");
    wait_until(c, has_path, (char *) NET "hostsubnets/n2");
    wait_until(c, has_path, (char *) NET "hostsubnets/n3");
    wait_until(c, has_path, (char *) NET "netnamespaces/p2");
    assert_no_overlap(c);
}

/* As long as its node is there, what it was is known: deleted by hand, it comes back as it was. */
static void unreadable_subnet_that_is_deleted_comes_back(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0af50203);
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    CLEANUP(json_free) struct json *hs = get(c, NET "hostsubnets/n1");
    assert_string_equal(json_path_string(hs, "subnet", NULL), "10.128.0.0/23");
    json_set_string(hs, "subnet", "10.128.0.0/2?");
    CLEANUP_FREE char *text = json_to_text(hs);
    put_raw(c, "/registry/network.openshift.io/hostsubnets/n1", text);
    add_node(c, "n2", 0x0af50204);
    wait_until(c, event_is_told, (char *) "no subnet is given out: that of HostSubnet n1");
    delete (c, NET "hostsubnets/n1");
    wait_until(c, has_path, (char *) NET "hostsubnets/n2");
    wait_until(c, field_is, &(struct want){NET "hostsubnets/n1", "subnet", "10.128.0.0/23"});
    assert_no_overlap(c);
}

static void overlap_made_by_hand_is_told_and_avoided(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    post(c, NET "hostsubnets",
         "{'apiVersion':'network.openshift.io/v1','kind':'HostSubnet','metadata':{'name':'x'},"
         "'host':'x','hostIP':'10.245.7.7','subnet':'10.128.0.0/22'}");
    post(c, NET "hostsubnets",
         "{'apiVersion':'network.openshift.io/v1','kind':'HostSubnet','metadata':{'name':'y'},"
         "'host':'y','hostIP':'10.245.7.8','subnet':'10.128.2.0/24'}");
    wait_until(c, events_are, &(struct events_want){"OverlappingSubnets", 1});
    add_node(c, "n1", 0x0af50001);
    wait_until(c, field_is, &(struct want){NET "hostsubnets/n1", "subnet", "10.128.4.0/23"});
    /* One goes, the other still holds its part. */
    delete (c, NET "hostsubnets/x");
    wait_until(c, lacks_path, (char *) NET "hostsubnets/x");
    controllers_down(c);
    c->conf.ranges[0].cidr.len = 21; /* 10.128.0.0/21: four subnets. */
    controllers_up(c);
    assert_true(c->started);
    add_node(c, "n2", 0x0af50002);
    add_node(c, "n3", 0x0af50003);
    add_node(c, "n4", 0x0af50004);
    size_t four = 4; /* y, n1, and two of the three new ones: y spoils one slot. */
    wait_until(c, count_is, &four);
    wait_until(c, events_are, &(struct events_want){"NoSubnetAvailable", 1});
    assert_no_overlap(c);
}

static void changed_host_subnet_length_never_overlaps(void **state)
{
    struct cluster *c = *state;
    c->conf.ranges[0].cidr.len = 20; /* 8 subnets of /23. */
    controllers_up(c);
    size_t n = 3;
    for (unsigned i = 0; i < 3; i++) {
        CLEANUP_FREE char *name = xasprintf("a%u", i);
        add_node(c, name, 0x0af50001 + i);
    }
    wait_until(c, count_is, &n);
    controllers_down(c);
    c->conf.ranges[0].host_bits = 8;
    c->conf.ranges[1] = (struct subnet_range){{0x0ac80000, 24}, 8};
    c->conf.n_ranges = 2;
    controllers_up(c);
    assert_true(c->started);
    for (unsigned i = 0; i < 12; i++) {
        CLEANUP_FREE char *name = xasprintf("b%u", i);
        add_node(c, name, 0x0af50101 + i);
    }
    n = 3 + 10 + 1; /* What three /23 leave of a /20, and one of the new range. */
    wait_until(c, count_is, &n);
    wait_until(c, events_are, &(struct events_want){"NoSubnetAvailable", 1});
    assert_no_overlap(c);
}

static void impossible_changes_are_refused(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    add_node(c, "n1", 0x0af50001);
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    CLEANUP_FREE char *before = field_of(c, NET "clusternetworks/default", "network");
    controllers_down(c);
    c->conf.ranges[0].cidr.addr = 0x0ac00000;
    controllers_up(c);
    assert_true(c->failed);
    assert_non_null(strstr(c->error.text, "hostsubnet n1 (10.128.0.0/23)"));
    controllers_down(c);
    netconf_defaults(&c->conf);
    c->conf.service.addr = 0xac1f0000;
    controllers_up(c);
    assert_true(c->failed);
    assert_non_null(strstr(c->error.text, "serviceNetworkCIDR"));
    CLEANUP_FREE char *after = field_of(c, NET "clusternetworks/default", "network");
    assert_string_equal(before, after);
}

static bool netids_are(struct cluster *c, void *arg)
{
    size_t n = 0;
    CLEANUP_FREE char *text = registry(c, NET "netnamespaces", "netid", &n);
    return n == *(size_t *) arg;
}

static void projects_get_unique_vnids(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    for (unsigned i = 0; i < 40; i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'p%u'}}", i);
        post(c, "/api/v1/namespaces", text);
    }
    size_t n = 41;
    wait_until(c, netids_are, &n);
    CLEANUP(json_free) struct json *list = get(c, NET "netnamespaces");
    const struct json *items = json_get(list, "items");
    for (size_t i = 0; i < json_count(items); i++) {
        uint32_t a = 0, b = 0;
        assert_int_equal(netnamespace_vnid(json_at(items, i), &a), 0);
        assert_int_equal(a == 0, streq(obj_name(json_at(items, i)), "default"));
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(netnamespace_vnid(json_at(items, j), &b), 0);
            assert_int_not_equal(a, b);
        }
    }
    CLEANUP_FREE char *before = registry(c, NET "netnamespaces", "netid", NULL);
    controllers_down(c);
    controllers_up(c);
    CLEANUP_FREE char *after = registry(c, NET "netnamespaces", "netid", NULL);
    assert_string_equal(before, after);
    delete (c, "/api/v1/namespaces/p7");
    wait_until(c, lacks_path, (char *) "/api/v1/namespaces/p7");
    wait_until(c, lacks_path, (char *) NET "netnamespaces/p7");
    post(c, "/api/v1/namespaces", "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'q'}}");
    wait_until(c, has_path, (char *) NET "netnamespaces/q");
    CLEANUP_FREE char *q = field_of(c, NET "netnamespaces/q", "netid");
    assert_string_equal(q, "50"); /* Not that of p7. */
}

static void vnid_survives_a_deletion_by_hand(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    post(c, "/api/v1/namespaces",
         "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'red'}}");
    wait_until(c, has_path, (char *) NET "netnamespaces/red");
    CLEANUP_FREE char *before = field_of(c, NET "netnamespaces/red", "netid");
    delete_and_wait_for_another(c, NET "netnamespaces/red");
    CLEANUP_FREE char *after = field_of(c, NET "netnamespaces/red", "netid");
    assert_string_equal(before, after);
}

static void edited_netids_are_seen(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    post(c, "/api/v1/namespaces",
         "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'red'}}");
    post(c, "/api/v1/namespaces",
         "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'blue'}}");
    size_t n = 3;
    wait_until(c, netids_are, &n);
    CLEANUP(json_free) struct json *red = get(c, NET "netnamespaces/red");
    CLEANUP(json_free) struct json *blue = get(c, NET "netnamespaces/blue");
    CLEANUP(json_free) struct json *dflt = get(c, NET "netnamespaces/default");
    json_set(blue, "netid", json_clone(json_get(red, "netid")));
    json_free(call(c, "PUT", NET "netnamespaces/blue", blue));
    wait_until(c, events_are, &(struct events_want){"DuplicateNetID", 1});
    json_set_int(dflt, "netid", 4711);
    json_free(call(c, "PUT", NET "netnamespaces/default", dflt));
    wait_until(c, field_is, &(struct want){NET "netnamespaces/default", "netid", "0"});
}

#define CHANGE "pod.network.openshift.io/multitenant.change-network"

static void ask_for(struct cluster *c, const char *project, const char *what)
{
    CLEANUP_FREE char *path = xasprintf(NET "netnamespaces/%s", project);
    CLEANUP_FREE char *text = xasprintf("{'metadata':{'annotations':{'" CHANGE "':'%s'}}}", what);
    CLEANUP(json_free) struct json *patch = from(text);
    struct err e = {0};
    if (api_request_sync(c->client, "PATCH", path, NULL, "application/merge-patch+json", patch,
                         NULL, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static bool is_answered(struct cluster *c, void *project)
{
    CLEANUP_FREE char *path = xasprintf(NET "netnamespaces/%s", (const char *) project);
    CLEANUP(json_free) struct json *o = get(c, path);
    return !obj_annotation(o, CHANGE) && !obj_annotation(o, "tenet.io/next-netid") &&
           !obj_annotation(o, "tenet.io/previous-netid");
}

static void move_project(struct cluster *c, const char *project, const char *what)
{
    ask_for(c, project, what);
    wait_until(c, is_answered, (char *) project);
}

static void assert_netid(struct cluster *c, const char *project, const char *netid)
{
    CLEANUP_FREE char *path = xasprintf(NET "netnamespaces/%s", project);
    CLEANUP_FREE char *got = field_of(c, path, "netid");
    assert_string_equal(got, netid);
}

static void make_projects(struct cluster *c, unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'p%u'}}", i);
        CLEANUP_FREE char *path = xasprintf(NET "netnamespaces/p%u", i);
        post(c, "/api/v1/namespaces", text);
        wait_until(c, has_path, path);
    }
}

/* The original's MasterVNIDMap: an id is given back by the last project that leaves it. */
static void joined_isolated_and_global_projects_keep_the_accounts(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    make_projects(c, 3);
    assert_netid(c, "p1", "10");
    move_project(c, "p2", "join:p1");
    move_project(c, "p3", "join:p2");
    assert_netid(c, "p2", "10");
    assert_netid(c, "p3", "10");
    move_project(c, "p1", "isolate");
    assert_netid(c, "p1", "13");
    move_project(c, "p2", "global");
    assert_netid(c, "p2", "0");
    move_project(c, "p3", "isolate"); /* The only one in its network: it stays. */
    assert_netid(c, "p3", "10");
    move_project(c, "p2", "isolate:");
    assert_netid(c, "p2", "14");
    /* Joining is no mistake that anybody needs to hear of. */
    assert_int_equal(events_with_reason(c, "DuplicateNetID"), 0);
    /* And the same with controllers that know no more than the objects. */
    controllers_down(c);
    controllers_up(c);
    move_project(c, "p2", "join:p3");
    move_project(c, "p3", "isolate");
    assert_netid(c, "p2", "10");
    CLEANUP_FREE char *p3 = field_of(c, NET "netnamespaces/p3", "netid");
    assert_true(atoi(p3) > 10);
    assert_int_equal(events_with_reason(c, "DuplicateNetID"), 0);
}

static void a_move_is_finished_by_the_next_master_from_any_step(void **state)
{
    struct cluster *c = *state;
    static const char *const stages[] = {
        "'" CHANGE "':'join:p1'",
        "'" CHANGE "':'join:p1','tenet.io/next-netid':'10'",
        "'" CHANGE "':'join:p1','tenet.io/previous-netid':'11'",
    };
    controllers_up(c);
    make_projects(c, 2);
    for (size_t i = 0; i < ARRAY_SIZE(stages); i++) {
        controllers_down(c);
        CLEANUP_FREE char *text =
            xasprintf("{'metadata':{'annotations':{%s}},'netid':%d}", stages[i], i == 2 ? 10 : 11);
        CLEANUP(json_free) struct json *patch = from(text);
        assert_int_equal(api_request_sync(c->client, "PATCH", NET "netnamespaces/p2", NULL,
                                          "application/merge-patch+json", patch, NULL, NULL),
                         0);
        controllers_up(c);
        wait_until(c, is_answered, (char *) "p2");
        assert_netid(c, "p2", "10");
        move_project(c, "p2", "isolate");
        CLEANUP(json_free) struct json *back = from("{'netid':11}");
        controllers_down(c);
        assert_int_equal(api_request_sync(c->client, "PATCH", NET "netnamespaces/p2", NULL,
                                          "application/merge-patch+json", back, NULL, NULL),
                         0);
        controllers_up(c);
    }
}

static void a_request_that_cannot_be_fulfilled_is_told_and_given_up(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    make_projects(c, 1);
    ask_for(c, "p1", "join:nobody");
    wait_until(c, events_are, &(struct events_want){"NetworkChangeRefused", 1});
    wait_until(c, is_answered, (char *) "p1");
    assert_netid(c, "p1", "10");
    CLEANUP(json_free) struct json *o = get(c, NET "netnamespaces/p1");
    assert_null(obj_annotation(o, "tenet.io/change-refused"));
}

static bool event_of_change(struct cluster *c, void *arg)
{
    return events_with_reason(c, "NetworkChangeRefused") > 0;
}

static void plugin_may_change_while_we_run(void **state)
{
    struct cluster *c = *state;
    c->conf.plugin = SDN_SUBNET;
    controllers_up(c);
    post(c, "/api/v1/namespaces",
         "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'red'}}");
    size_t n = 0;
    assert_true(netids_are(c, &n));
    CLEANUP(json_free)
    struct json *multitenant = from("{'pluginName':'redhat/openshift-ovs-multitenant'}");
    CLEANUP(json_free) struct json *subnet = from("{'pluginName':'redhat/openshift-ovs-subnet'}");
    assert_int_equal(api_request_sync(c->client, "PATCH", NET "clusternetworks/default", NULL,
                                      "application/merge-patch+json", multitenant, NULL, NULL),
                     0);
    n = 2;
    wait_until(c, netids_are, &n);
    assert_netid(c, "default", "0");
    assert_netid(c, "red", "10");
    assert_int_equal(api_request_sync(c->client, "PATCH", NET "clusternetworks/default", NULL,
                                      "application/merge-patch+json", subnet, NULL, NULL),
                     0);
    /* Ids stay as they are: the way back leads to the same. */
    post(c, "/api/v1/namespaces",
         "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'blue'}}");
    assert_int_equal(api_request_sync(c->client, "PATCH", NET "clusternetworks/default", NULL,
                                      "application/merge-patch+json", multitenant, NULL, NULL),
                     0);
    n = 3;
    wait_until(c, netids_are, &n);
    assert_netid(c, "red", "10");
    ask_for(c, "red", "join:nobody");
    wait_until(c, event_of_change, NULL);
}

static void deleted_project_is_emptied_first(void **state)
{
    struct cluster *c = *state;
    controllers_up(c);
    post(c, "/api/v1/namespaces",
         "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'red'}}");
    for (unsigned i = 0; i < 20; i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p%u','namespace':'red'},"
                      "'spec':{'containers':[{'name':'c','image':'i:1'}]}}",
                      i);
        post(c, "/api/v1/namespaces/red/pods", text);
    }
    delete (c, "/api/v1/namespaces/red");
    wait_until(c, lacks_path, (char *) "/api/v1/namespaces/red");
    wait_until(c, lacks_path, (char *) NET "netnamespaces/red");
    CLEANUP(json_free) struct json *pods = get(c, "/api/v1/pods");
    assert_int_equal(json_count(json_get(pods, "items")), 0);
}

static void default_namespace_may_not_be_deleted(void **state)
{
    struct cluster *c = *state;
    struct err e = {0};
    controllers_up(c);
    int r = api_request_sync(c->client, "DELETE", "/api/v1/namespaces/default", NULL, NULL, NULL,
                             NULL, &e);
    assert_int_equal(r, -EACCES);
    assert_non_null(strstr(e.text, "may not be deleted"));
    wait_until(c, field_is, &(struct want){NET "netnamespaces/default", "netid", "0"});
}

static void ovs_subnet_has_no_net_namespaces(void **state)
{
    struct cluster *c = *state;
    c->conf.plugin = SDN_SUBNET;
    controllers_up(c);
    add_node(c, "n1", 0x0af50001);
    wait_until(c, has_path, (char *) NET "hostsubnets/n1");
    size_t none = 0;
    assert_true(netids_are(c, &none));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(cluster_begins_with_its_objects),
        TEST(six_hundred_nodes_share_512_subnets),
        TEST(subnets_come_in_the_order_of_registration),
        TEST(changed_address_reaches_the_host_subnet),
        TEST(a_further_address_is_of_the_node_that_had_it_first),
        TEST(unusable_address_is_told_and_mended),
        TEST(a_condition_ends_before_the_host_subnet_comes_also_when_that_fails_once),
        TEST(of_two_nodes_with_one_address_one_gets_a_subnet),
        TEST(endpoints_have_only_addresses_that_nodes_give_out),
        TEST(node_made_anew_gets_a_subnet_of_its_own),
        TEST(host_subnet_deleted_by_hand_comes_back),
        TEST(ghosts_are_respected_and_served),
        TEST(number_that_cannot_be_read_is_never_given_again),
        TEST(unreadable_subnet_that_is_deleted_comes_back),
        TEST(overlap_made_by_hand_is_told_and_avoided),
        TEST(changed_host_subnet_length_never_overlaps),
        TEST(impossible_changes_are_refused),
        TEST(projects_get_unique_vnids),
        TEST(vnid_survives_a_deletion_by_hand),
        TEST(edited_netids_are_seen),
        TEST(joined_isolated_and_global_projects_keep_the_accounts),
        TEST(a_move_is_finished_by_the_next_master_from_any_step),
        TEST(a_request_that_cannot_be_fulfilled_is_told_and_given_up),
        TEST(plugin_may_change_while_we_run),
        TEST(deleted_project_is_emptied_first),
        TEST(default_namespace_may_not_be_deleted),
        TEST(ovs_subnet_has_no_net_namespaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
