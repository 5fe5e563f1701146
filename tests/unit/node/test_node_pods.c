/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of CNI requests, over a switch and links that are made of tables: every step
 * can be made to fail or to wait. */
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/kernel/rtnl.h"
#include "node/cni/pod_link.h"
#include "node/cni/pods.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a switch ---- */

struct call {
    struct loop_task task;
    datapath_port_fn *port; /* May be NULL. */
    datapath_done_fn *done;
    void *ctx;
    int error;
};

struct datapath {
    struct loop *loop;
    struct dp_pod *pods[64];
    size_t n;
    int attach_error, detach_error, store_error;
    bool has_ends; /* Of ports, for pods' links. */
    unsigned attaches, detaches, vnid_changes;
};

static struct datapath sw;

struct dp_pod *dp_pod_clone(const struct dp_pod *p)
{
    struct dp_pod *c = xmemdup(p, sizeof *p);
    c->container_id = xstrdup(p->container_id);
    c->ifname = xstrdup(p->ifname);
    c->pod_namespace = xstrdup(p->pod_namespace);
    c->pod_name = xstrdup(p->pod_name);
    c->netns = xstrdup(p->netns);
    c->host_ports = p->host_ports ? xstrdup(p->host_ports) : NULL;
    c->bandwidth = p->bandwidth ? xstrdup(p->bandwidth) : NULL;
    return c;
}

struct dp_pod *dp_pod_free(struct dp_pod *p)
{
    if (p) {
        free(p->container_id);
        free(p->ifname);
        free(p->pod_namespace);
        free(p->pod_name);
        free(p->netns);
        free(p->host_ports);
        free(p->bandwidth);
        free(p);
    }
    return NULL;
}

static void call_done(void *ctx)
{
    struct call *c = ctx;
    if (c->port && c->error == 0) {
        c->port(c->ctx, "tp3", sw.pods[sw.n - 1]->host_if);
    }
    c->done(c->ctx, c->error, c->error ? "the switch says no" : "");
    free(c);
}

static void answer_later(int error, datapath_port_fn *port, datapath_done_fn *done, void *ctx)
{
    struct call *c = NEW(struct call);
    c->port = port;
    c->done = done;
    c->ctx = ctx;
    c->error = error;
    loop_task_init(&c->task, sw.loop, call_done, c);
    loop_task_queue(&c->task);
}

int datapath_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    return 0;
}

int datapath_end(struct datapath *dp, const char *port, const char *host_if)
{
    return port && port[0] && streq(host_if, "tp3x") ? 0 : -1;
}

int datapath_links(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int k = rtnl_open(&r, e);
    return k < 0 ? k : rtnl_link_list(r, ret, ret_n, e);
}

void datapath_link_gone(struct datapath *dp, const char *name)
{
}

int datapath_check_wire(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    return 0;
}

void datapath_attach(struct datapath *dp, const struct dp_pod *p, datapath_port_fn *port,
                     datapath_done_fn *done, void *ctx)
{
    dp->attaches++;
    if (dp->attach_error == 0) {
        assert_null(datapath_find(dp, p->container_id, p->ifname));
        struct dp_pod *c = dp_pod_clone(p);
        c->ready = true;
        if (dp->has_ends && !p->pair) {
            snprintf(c->host_if, sizeof c->host_if, "tp3x");
        }
        dp->pods[dp->n++] = c;
    }
    answer_later(dp->attach_error, port, done, ctx);
}

void datapath_detach(struct datapath *dp, const char *id, const char *ifname,
                     datapath_done_fn *done, void *ctx)
{
    dp->detaches++;
    for (size_t i = 0; dp->detach_error == 0 && i < dp->n; i++) {
        if (streq(dp->pods[i]->container_id, id) && streq(dp->pods[i]->ifname, ifname)) {
            dp_pod_free(dp->pods[i]);
            dp->pods[i] = dp->pods[--dp->n];
            break;
        }
    }
    answer_later(dp->detach_error, NULL, done, ctx);
}

const struct dp_pod *const *datapath_pods(struct datapath *dp, size_t *ret_n)
{
    *ret_n = dp->n;
    return (const struct dp_pod *const *) dp->pods;
}

const struct dp_pod *datapath_find(struct datapath *dp, const char *id, const char *ifname)
{
    for (size_t i = 0; i < dp->n; i++) {
        if (streq(dp->pods[i]->container_id, id) && streq(dp->pods[i]->ifname, ifname)) {
            return dp->pods[i];
        }
    }
    return NULL;
}

void datapath_set_runtime(struct datapath *dp, const char *id, const char *ifname,
                          const char *host_ports, const char *bandwidth, datapath_done_fn *done,
                          void *ctx)
{
    struct dp_pod *p = (struct dp_pod *) (uintptr_t) datapath_find(dp, id, ifname);
    p->host_ports = host_ports ? xstrdup(host_ports) : NULL;
    p->bandwidth = bandwidth ? xstrdup(bandwidth) : NULL;
    answer_later(dp->store_error, NULL, done, ctx);
}

void datapath_set_vnids(struct datapath *dp, const char *project, const struct sdn_vnids *v)
{
    dp->vnid_changes++;
    for (size_t i = 0; i < dp->n; i++) {
        if (streq(dp->pods[i]->pod_namespace, project)) {
            dp->pods[i]->vnid = v->id;
            dp->pods[i]->has_also_vnid = v->moving;
            dp->pods[i]->also_vnid = v->also;
        }
    }
}

void datapath_get_status(struct datapath *dp, struct datapath_status *ret)
{
    *ret = (struct datapath_status){.connected = true, .pods = dp->n, .in_userspace = true};
}

/* ---- links (worker threads call these) ---- */

static _Atomic bool hold_delete; /* The kernel takes its time. */
static _Atomic int links, create_error, configure_error, delete_error, check_error, creations,
    abandoned, limit_error, limits;

void pod_link_name(const char *id, const char *ifname, unsigned attempt, char ret[IF_NAMESIZE])
{
    snprintf(ret, IF_NAMESIZE, "v%.10s%u", id, attempt);
}

struct mac pod_link_host_mac(uint32_t pod_ip)
{
    return mac_from_ip4(pod_ip + 1);
}

static int result(_Atomic int *error, struct err *e)
{
    return *error ? err_set(e, *error, "the kernel says no") : 0;
}

static _Atomic unsigned create_errors; /* So many, then none; 0: always. */
static _Atomic int stray;              /* What there is of them. */
static _Atomic unsigned strays_looked_for;

int pod_link_create(const struct pod_link *p, struct err *e)
{
    creations++;
    int r = result(&create_error, e);
    links += r != -EEXIST && r != -EBUSY && r != -EADDRINUSE;
    if (create_error && create_errors && --create_errors == 0) {
        create_error = 0;
    }
    return r < 0 ? r : result(&configure_error, e);
}

int pod_link_limit(const struct pod_link *p, struct err *e)
{
    int r = result(&limit_error, e);
    limits += r == 0;
    return r;
}

int pod_link_unlimit(const struct pod_link *p, struct err *e)
{
    limits = 0;
    return 0;
}

int pod_link_check(const struct pod_link *p, struct err *e)
{
    return result(&check_error, e);
}

int pod_link_delete_stray(const struct pod_link *p, struct err *e)
{
    assert_non_null(p->known);
    strays_looked_for++;
    int found = stray;
    if (found) {
        stray = 0;
        create_error = 0;
    }
    return found;
}

int pod_link_delete(const struct pod_link *p, struct err *e)
{
    while (hold_delete) {
        sched_yield();
    }
    int r = result(&delete_error, e);
    links -= r == 0;
    return r;
}

int pod_link_delete_abandoned(const char *host_if, struct err *e)
{
    abandoned++;
    return 0;
}

/* ---- around it ---- */

static struct loop *loop;
static struct pods *pods;
static struct sdn_vnids project_vnids;
static bool project_known;
static const char *why_not_ready;

static int vnids(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e)
{
    if (!project_known) {
        return err_set(e, -ENOENT, "project %s has no NetNamespace", project);
    }
    *ret = project_vnids;
    return 0;
}

static const char *not_ready(void *ctx)
{
    return why_not_ready;
}

static int known(void *ctx, const char *project, const char *pod, struct err *e)
{
    return 0;
}

static int pods_heard; /* By the listener: attached and not yet detached. */

static void pod_comes(void *ctx, const struct dp_pod *pod)
{
    *(int *) ctx += 1;
}

static void pod_goes(void *ctx, const struct dp_pod *pod)
{
    *(int *) ctx -= 1;
}

/* What the pod's object says. */
static int wants_error;
static const char *wants_ports;
static struct cni_bandwidth wants_bandwidth;

static void look_up(void *ctx, const char *project, const char *pod, pods_wants_fn *fn,
                    void *fn_ctx)
{
    CLEANUP(cni_runtime_done) struct cni_runtime r = {.bandwidth = wants_bandwidth};
    if (wants_ports) {
        assert_int_equal(cni_host_ports_parse(wants_ports, &r), 0);
    }
    fn(fn_ctx, wants_error, wants_error ? "spec: is odd" : "", &r);
}

static int rules_error;
static char rules[512]; /* Host ports that the host has. */

static const char *not_to_be_had; /* Of the host ports that are reserved. */
static int reserved;              /* Requests that have not settled. */

static int reserve(void *ctx, const struct cni_runtime *r, struct err *e)
{
    if (not_to_be_had) {
        return err_set(e, -EADDRINUSE, "%s", not_to_be_had);
    }
    reserved++;
    return 0;
}

static void settled(void *ctx, const struct cni_runtime *r)
{
    assert_true(r->n_ports > 0);
    reserved--;
}

static void host_ports(void *ctx, bool adding, datapath_done_fn *fn, void *fn_ctx)
{
    rules[0] = '\0';
    for (size_t i = 0; i < sw.n; i++) {
        if (sw.pods[i]->host_ports) {
            size_t used = strlen(rules);
            snprintf(rules + used, sizeof rules - used, "%s=%s ", sw.pods[i]->container_id,
                     sw.pods[i]->host_ports);
        }
    }
    answer_later(rules_error, NULL, fn, fn_ctx);
}

static char last_trouble[256]; /* "PROJECT/POD REASON" */

static void trouble(void *ctx, const char *project, const char *pod, const char *reason,
                    const char *text)
{
    snprintf(last_trouble, sizeof last_trouble, "%s/%s %s", project, pod, reason);
}

static const struct pods_ops ops = {.vnids = vnids,
                                    .known = known,
                                    .look_up = look_up,
                                    .reserve = reserve,
                                    .settled = settled,
                                    .host_ports = host_ports,
                                    .not_ready = not_ready,
                                    .trouble = trouble};

static struct sdn_network net;

static void start(void)
{
    struct pods_config c = {.loop = loop, .datapath = &sw, .vnid_wait_ms = 100};
    struct err e = {0};
    static const struct pod_listener listener = {.attaching = pod_comes, .detached = pod_goes};
    pods = pods_new(&c, &ops, NULL);
    pods_listen(pods, &listener, &pods_heard);
    pods_listen(pods, &listener, &pods_heard);
    assert_int_equal(pods_start(pods, &net, &e), 0);
}

static int setup(void **state)
{
    (void) state;
    log_set_levels("error", NULL);
    loop = loop_new();
    sw = (struct datapath){.loop = loop};
    create_errors = 0;
    links = create_error = configure_error = delete_error = check_error = creations = abandoned = 0;
    limit_error = limits = wants_error = rules_error = 0;
    wants_ports = NULL;
    wants_bandwidth = (struct cni_bandwidth){0};
    rules[0] = '\0';
    project_vnids = (struct sdn_vnids){.id = 42};
    project_known = true;
    why_not_ready = NULL;
    pods_heard = 0;
    net = (struct sdn_network){.plugin = SDN_MULTITENANT, .n_cluster = 1, .mtu = 1450};
    prefix_parse("10.128.0.0/14", &net.cluster[0], NULL);
    prefix_parse("10.128.0.0/29", &net.local, NULL);
    start();
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    pods_free(pods);
    for (size_t i = 0; i < sw.n; i++) {
        dp_pod_free(sw.pods[i]);
    }
    loop_free(loop);
    return 0;
}

struct answer {
    bool done;
    int status;
    struct json *body;
    char text[2048];
};

static void on_answer(void *ctx, const char *text, size_t size)
{
    struct answer *a = ctx;
    assert_false(a->done);
    a->done = true;
    a->status = text[0] - '0';
    assert_int_equal(text[size - 1], '\n');
    if (size > 3) {
        assert_int_equal(json_parse(text + 2, size - 2, &a->body, NULL), 0);
    }
    snprintf(a->text, sizeof a->text, "%.*s", (int) size, text);
}

/* A request for the pod 'name' of a project, in a namespace. */
static void ask_for(enum cni_command command, const char *id, const char *project, const char *name,
                    const char *netns, struct answer *a)
{
    struct cni_request r = {.command = command,
                            .container_id = xstrdup(id),
                            .ifname = xstrdup("eth0"),
                            .netns = xasprintf("/run/netns/%s", netns),
                            .pod_namespace = xstrdup(project),
                            .pod_name = xstrdup(name),
                            .config = {.version = CNI_1_0_0}};
    *a = (struct answer){0};
    pods_request(pods, &r, open("/dev/null", O_RDONLY | O_CLOEXEC), on_answer, a);
    assert_false(a->done);
}

static void ask(enum cni_command command, const char *id, struct answer *a)
{
    ask_for(command, id, "red", id, id, a);
}

/* GC of a runtime that knows no attachment. */
static void ask_gc(struct answer *a)
{
    struct cni_request r = {.command = CNI_GC,
                            .container_id = xstrdup(""),
                            .ifname = xstrdup(""),
                            .config = {.version = CNI_1_1_0, .valid = json_array()}};
    *a = (struct answer){0};
    pods_request(pods, &r, -1, on_answer, a);
}

static int finish(struct answer *a)
{
    assert_int_equal(loop_run_until(loop, &a->done, 10000), 0);
    json_free(TAKE(a->body));
    return a->status;
}

static int perform(enum cni_command command, const char *id, struct answer *a)
{
    ask(command, id, a);
    return finish(a);
}

static int code_of(const struct answer *a)
{
    const char *p = strstr(a->text, "\"code\":");
    return p ? atoi(p + 7) : 0;
}

/* Nothing is held: all five addresses can be given out. */
static void assert_nothing_leaked(void)
{
    struct answer a;
    assert_int_equal(links, (int) sw.n);
    assert_int_equal(pods_busy(pods), 0);
    size_t before = sw.n;
    for (size_t i = before; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "leak%zu", i);
        assert_int_equal(perform(CNI_ADD, id, &a), 0);
    }
    assert_int_equal(perform(CNI_ADD, "toomany", &a), 1);
    assert_int_equal(code_of(&a), CNI_NO_ADDRESS);
    assert_non_null(strstr(a.text, "no free address in 10.128.0.0/29: 5 in use"));
    assert_non_null(strstr(last_trouble, " NoFreeAddress"));
    for (size_t i = before; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "leak%zu", i);
        assert_int_equal(perform(CNI_DEL, id, &a), 0);
    }
    assert_int_equal(sw.n, before);
    assert_int_equal(links, (int) sw.n);
}

/* ---- tests ---- */

static void add_and_del_leave_nothing(void **state)
{
    (void) state;
    struct answer a;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_non_null(strstr(a.text, "\"address\":\"10.128.0.2/29\""));
    assert_int_equal(sw.n, 1);
    assert_int_equal(sw.pods[0]->vnid, 42);
    assert_int_equal(sw.pods[0]->ip, 0x0a800002);
    struct mac mac = mac_from_ip4(0x0a800002);
    assert_memory_equal(&sw.pods[0]->mac, &mac, sizeof mac);
    assert_int_equal(links, 1);
    assert_int_equal(pods_heard, 1);
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    assert_string_equal(a.text, "0 \n");
    assert_int_equal(pods_heard, 0);
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    assert_nothing_leaked();
}

static void many_at_once_get_different_addresses(void **state)
{
    (void) state;
    struct answer a[5];
    for (size_t i = 0; i < 5; i++) {
        char id[2] = {(char) ('a' + i), 0};
        ask(CNI_ADD, id, &a[i]);
    }
    uint32_t seen = 0;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(finish(&a[i]), 0);
    }
    for (size_t i = 0; i < sw.n; i++) {
        seen |= 1u << (sw.pods[i]->ip & 7);
    }
    assert_int_equal(seen, 0x7c);
}

static void a_repeated_add_gives_the_same_while_it_is_intact(void **state)
{
    (void) state;
    struct answer a, b;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_int_equal(perform(CNI_ADD, "a", &b), 0);
    assert_string_equal(a.text, b.text);
    assert_int_equal(sw.attaches, 1);
    check_error = -ENOENT; /* The pod's side is gone: made anew. */
    assert_int_equal(perform(CNI_ADD, "a", &b), 0);
    assert_string_not_equal(a.text, b.text);
    assert_int_equal(sw.attaches, 2);
    assert_int_equal(sw.n, 1);
    check_error = 0;
    assert_nothing_leaked();
}

/* The first answer must not stand for another pod, which would keep the rights of the
 * first one's project. */
static void an_add_for_another_pod_attaches_anew(void **state)
{
    (void) state;
    static const struct {
        const char *project, *name, *netns;
    } cases[] = {
        {"blue", "a", "a"},
        {"red", "b", "a"},
        {"red", "a", "b"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct answer a;
        unsigned attaches = sw.attaches;
        assert_int_equal(perform(CNI_ADD, "a", &a), 0);
        assert_int_equal(sw.attaches, attaches + 1);
        project_vnids.id = 43;
        ask_for(CNI_ADD, "a", cases[i].project, cases[i].name, cases[i].netns, &a);
        assert_int_equal(finish(&a), 0);
        assert_int_equal(sw.attaches, attaches + 2);
        assert_int_equal(sw.n, 1);
        assert_string_equal(sw.pods[0]->pod_namespace, cases[i].project);
        assert_string_equal(sw.pods[0]->pod_name, cases[i].name);
        assert_int_equal(sw.pods[0]->vnid, 43);
        project_vnids.id = 42;
        assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    }
    assert_nothing_leaked();
}

static void gc_leaves_a_pod_that_is_being_attached(void **state)
{
    (void) state;
    struct answer add, gc;
    assert_int_equal(perform(CNI_ADD, "stale", &gc), 0);
    ask(CNI_ADD, "a", &add);
    ask_gc(&gc); /* Begins when the ADD has begun, and that still waits for its link. */
    assert_int_equal(finish(&gc), 0);
    assert_int_equal(finish(&add), 0);
    assert_int_equal(sw.n, 1);
    assert_string_equal(sw.pods[0]->container_id, "a");
    ask_gc(&gc); /* Once attached it is as any other. */
    assert_int_equal(finish(&gc), 0);
    assert_int_equal(sw.n, 0);
    assert_nothing_leaked();
}

static void requests_of_one_container_wait_for_each_other(void **state)
{
    (void) state;
    struct answer add, again, del, last;
    ask(CNI_ADD, "a", &add);
    ask(CNI_ADD, "a", &again);
    ask(CNI_DEL, "a", &del);
    ask(CNI_ADD, "a", &last);
    assert_int_equal(finish(&last), 0);
    assert_true(add.done && again.done && del.done);
    assert_string_equal(add.text, again.text);
    assert_int_equal(finish(&add) | finish(&again) | finish(&del), 0);
    assert_int_equal(sw.n, 1);
    assert_nothing_leaked();
}

static void every_failure_of_add_is_taken_back(void **state)
{
    (void) state;
    struct answer a;
    struct {
        _Atomic int *link;
        int *in_switch;
        int error;
    } failures[] = {
        {&create_error, NULL, -EPERM},     {&create_error, NULL, -EEXIST},
        {&create_error, NULL, -EBUSY},     {&create_error, NULL, -EADDRINUSE},
        {&configure_error, NULL, -EINVAL}, {NULL, &sw.attach_error, -EIO},
    };
    for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
        if (failures[i].link) {
            *failures[i].link = failures[i].error;
        } else {
            *failures[i].in_switch = failures[i].error;
        }
        assert_int_equal(perform(CNI_ADD, "a", &a), 1);
        assert_int_equal(code_of(&a), CNI_ATTACH_FAILED);
        assert_non_null(strstr(a.text, "says no"));
        assert_string_equal(last_trouble, "red/a AttachFailed");
        last_trouble[0] = '\0';
        create_error = configure_error = sw.attach_error = 0;
        assert_int_equal(sw.n, 0);
        assert_nothing_leaked();
    }
}

static void a_taken_name_is_not_used(void **state)
{
    (void) state;
    struct answer a;
    create_error = -EEXIST;
    assert_int_equal(perform(CNI_ADD, "a", &a), 1);
    assert_true(creations > 1);
}

static void an_add_whose_port_has_a_link_already_goes_on_with_another_port(void **state)
{
    (void) state;
    struct answer a;
    create_error = -EADDRINUSE;
    create_errors = 1;
    last_trouble[0] = '\0';
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_int_equal(creations, 2);
    assert_int_equal(links, 1);
    assert_int_equal(sw.n, 1);
    assert_string_equal(last_trouble, "");
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    assert_nothing_leaked();
}

static void del_answers_when_the_link_is_gone_not_when_the_kernel_is_done(void **state)
{
    (void) state;
    struct answer a;
    char name[16];
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    snprintf(name, sizeof name, "%s", sw.pods[0]->host_if);
    hold_delete = true;
    ask(CNI_DEL, "a", &a);
    bool never = false;
    assert_int_equal(loop_run_until(loop, &never, 30), -ETIMEDOUT);
    assert_false(a.done);
    assert_int_equal(sw.n, 0);
    pods_link_gone(pods, "another");
    assert_false(a.done);
    pods_link_gone(pods, name);
    assert_int_equal(finish(&a), 0);
    assert_int_equal(pods_busy(pods), 1);
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    hold_delete = false;
    while (pods_busy(pods) > 0) {
        loop_run_until(loop, &never, 1);
    }
    assert_nothing_leaked();
}

static void an_address_is_held_until_its_flows_are_gone(void **state)
{
    (void) state;
    struct answer a;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    sw.detach_error = -EIO;
    assert_int_equal(perform(CNI_DEL, "a", &a), 1);
    assert_int_equal(code_of(&a), CNI_DETACH_FAILED);
    for (int i = 0; i < 4; i++) {
        char id[2] = {(char) ('b' + i), 0};
        assert_int_equal(perform(CNI_ADD, id, &a), 0);
        assert_null(strstr(a.text, "10.128.0.2/29"));
    }
    assert_int_equal(perform(CNI_ADD, "z", &a), 1);
    assert_int_equal(code_of(&a), CNI_NO_ADDRESS);
    sw.detach_error = 0;
    links++; /* The failed DEL removed it, and so does this one. */
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    assert_int_equal(perform(CNI_ADD, "z", &a), 0);
    assert_non_null(strstr(a.text, "10.128.0.2/29"));
}

static void without_the_switch_everything_is_to_be_tried_again(void **state)
{
    (void) state;
    struct answer a;
    why_not_ready = "Open vSwitch is gone";
    for (enum cni_command c = CNI_ADD; c <= CNI_CHECK; c++) {
        assert_int_equal(perform(c, "a", &a), 1);
        assert_int_equal(code_of(&a), CNI_TRY_AGAIN);
        assert_non_null(strstr(a.text, "Open vSwitch is gone"));
    }
    assert_int_equal(creations, 0);
    why_not_ready = NULL;
    assert_nothing_leaked();
}

static void add_waits_for_the_vnid_of_a_new_project(void **state)
{
    (void) state;
    struct answer a;
    project_known = false;
    assert_int_equal(perform(CNI_ADD, "a", &a), 1);
    assert_int_equal(code_of(&a), CNI_NO_VNID);
    assert_non_null(strstr(a.text, "red"));
    assert_non_null(strstr(last_trouble, " NoVNID"));

    ask(CNI_ADD, "b", &a);
    bool never = false;
    assert_int_equal(loop_run_until(loop, &never, 20), -ETIMEDOUT);
    assert_false(a.done);
    project_known = true;
    pods_project_changed(pods, "blue");
    assert_false(a.done);
    pods_project_changed(pods, "red");
    assert_int_equal(finish(&a), 0);
    assert_nothing_leaked();
}

static void on_answer_wake(void *ctx, const char *text, size_t size)
{
    on_answer(ctx, text, size);
    pods_wake(pods, "red");
}

/* News of its project come in the moment in which a request is given up. */
static void a_request_that_has_ended_does_not_begin_again(void **state)
{
    (void) state;
    struct cni_request r = {.command = CNI_ADD,
                            .container_id = xstrdup("a"),
                            .ifname = xstrdup("eth0"),
                            .netns = xstrdup("/run/netns/a"),
                            .pod_namespace = xstrdup("red"),
                            .pod_name = xstrdup("a"),
                            .config = {.version = CNI_1_0_0}};
    struct answer a = {0};
    project_known = false;
    pods_request(pods, &r, open("/dev/null", O_RDONLY | O_CLOEXEC), on_answer_wake, &a);
    assert_int_equal(finish(&a), 1);
    assert_int_equal(code_of(&a), CNI_NO_VNID);
    project_known = true;
    bool never = false;
    loop_run_until(loop, &never, 20);
    assert_int_equal(sw.attaches, 0);
    assert_nothing_leaked();
}

static void under_ovs_subnet_projects_need_no_vnid(void **state)
{
    (void) state;
    struct answer a;
    net.plugin = SDN_SUBNET;
    pods_set_network(pods, &net);
    project_known = false;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_int_equal(sw.pods[0]->vnid, 0);
}

static void a_changed_vnid_reaches_the_pods_once(void **state)
{
    (void) state;
    struct answer a;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    pods_project_changed(pods, "red");
    assert_int_equal(sw.vnid_changes, 0);
    project_vnids.id = 43;
    pods_project_changed(pods, "red");
    pods_all_projects_changed(pods);
    assert_int_equal(sw.vnid_changes, 1);
    assert_int_equal(sw.pods[0]->vnid, 43);
}

static void a_moving_project_has_two_vnids_until_it_arrived(void **state)
{
    (void) state;
    struct answer a;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    project_vnids = (struct sdn_vnids){.id = 42, .moving = true, .also = 50};
    pods_project_changed(pods, "red");
    pods_project_changed(pods, "red");
    assert_int_equal(sw.vnid_changes, 1);
    assert_int_equal(sw.pods[0]->vnid, 42);
    assert_true(sw.pods[0]->has_also_vnid);
    assert_int_equal(sw.pods[0]->also_vnid, 50);
    /* One that comes in the middle is like the others. */
    assert_int_equal(perform(CNI_ADD, "b", &a), 0);
    assert_true(sw.pods[1]->has_also_vnid);
    assert_int_equal(sw.pods[1]->also_vnid, 50);
    project_vnids = (struct sdn_vnids){.id = 50};
    pods_project_changed(pods, "red");
    assert_int_equal(sw.vnid_changes, 2);
    assert_false(sw.pods[0]->has_also_vnid || sw.pods[1]->has_also_vnid);
}

static void pods_of_unknown_projects_are_global_under_no_plugin_with_vnids(void **state)
{
    (void) state;
    struct answer a;
    net.plugin = SDN_SUBNET;
    pods_set_network(pods, &net);
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    project_known = false;
    assert_string_equal(pods_unknown_project(pods), "red");
    net.plugin = SDN_MULTITENANT;
    pods_set_network(pods, &net);
    pods_all_projects_changed(pods);
    assert_int_equal(sw.pods[0]->vnid, SDN_VNID_GLOBAL);
    pods_isolate_unknown(pods);
    assert_int_equal(sw.pods[0]->vnid, SDN_VNID_NOBODY);
    assert_null(pods_unknown_project(pods));
    /* As soon as the project has a VNID, the pod has it. */
    project_known = true;
    pods_project_changed(pods, "red");
    assert_int_equal(sw.pods[0]->vnid, 42);
    /* A VNID that was known once is better than none. */
    project_known = false;
    pods_isolate_unknown(pods);
    assert_int_equal(sw.pods[0]->vnid, 42);
}

/* Administrators find a pod's fate by its name. */
static void what_happens_to_pods_is_logged_with_their_names(void **state)
{
    (void) state;
    struct answer a;
    char text[4096] = "";
    FILE *log = tmpfile();
    assert_non_null(log);
    int err = dup(STDERR_FILENO);
    dup2(fileno(log), STDERR_FILENO);
    log_set_levels("info", NULL);
    perform(CNI_ADD, "a", &a);
    perform(CNI_DEL, "a", &a);
    why_not_ready = "there is no switch";
    ask_for(CNI_ADD, "b", "blue", "b", "b", &a);
    finish(&a);
    fflush(NULL);
    log_set_levels("error", NULL);
    dup2(err, STDERR_FILENO);
    close(err);
    rewind(log);
    assert_true(fread(text, 1, sizeof text - 1, log) > 0);
    fclose(log);
    assert_non_null(strstr(text, "pod attached pod=red/a ip=10.128.0.2 "));
    assert_non_null(strstr(text, "pod detached pod=red/a ip=10.128.0.2 "));
    assert_non_null(strstr(text, "request failed command=ADD pod=blue/b "));
}

static void check_looks_at_port_result_and_link(void **state)
{
    (void) state;
    struct answer a;
    assert_int_equal(perform(CNI_CHECK, "a", &a), 1);
    assert_int_equal(code_of(&a), CNI_CHECK_FAILED);
    assert_non_null(strstr(a.text, "not attached"));
    ask(CNI_ADD, "a", &a);
    assert_int_equal(loop_run_until(loop, &a.done, 10000), 0);
    CLEANUP(json_free) struct json *prev = TAKE(a.body);
    struct cni_request r = {.command = CNI_CHECK,
                            .container_id = xstrdup("a"),
                            .ifname = xstrdup("eth0"),
                            .netns = xstrdup("/run/netns/a"),
                            .config = {.version = CNI_1_0_0, .prev_result = json_clone(prev)}};
    struct cni_request again = r, third = r;
    again.container_id = xstrdup("a");
    third.container_id = xstrdup("a");
    again.ifname = xstrdup("eth0");
    third.ifname = xstrdup("eth0");
    again.netns = xstrdup("/run/netns/a");
    third.netns = xstrdup("/run/netns/other");
    again.config.prev_result = json_clone(prev);
    third.config.prev_result = json_clone(prev);
    a = (struct answer){0};
    pods_request(pods, &r, open("/dev/null", O_RDONLY | O_CLOEXEC), on_answer, &a);
    assert_int_equal(finish(&a), 0);
    check_error = -ENOENT;
    a = (struct answer){0};
    pods_request(pods, &again, open("/dev/null", O_RDONLY | O_CLOEXEC), on_answer, &a);
    assert_int_equal(finish(&a), 1);
    assert_int_equal(code_of(&a), CNI_CHECK_FAILED);
    a = (struct answer){0};
    pods_request(pods, &third, open("/dev/null", O_RDONLY | O_CLOEXEC), on_answer, &a);
    assert_int_equal(finish(&a), 1);
    assert_non_null(strstr(a.text, "prevResult.interfaces"));
    check_error = 0;
    struct cni_request without = {
        .command = CNI_CHECK,
        .container_id = xstrdup("a"),
        .ifname = xstrdup("eth0"),
        .netns = xstrdup("/run/netns/a"),
        .config = {.version = CNI_1_0_0, .prev_result = json_clone(prev)}};
    a = (struct answer){0};
    pods_request(pods, &without, -1, on_answer, &a);
    assert_int_equal(finish(&a), 1);
    assert_int_equal(code_of(&a), CNI_INVALID_ENVIRONMENT);
    assert_non_null(strstr(a.text, "CNI_NETNS: /run/netns/a was not handed over"));
}

static void the_hosts_own_namespace_is_refused(void **state)
{
    (void) state;
    struct cni_request r = {.command = CNI_ADD,
                            .container_id = xstrdup("a"),
                            .ifname = xstrdup("eth0"),
                            .netns = xstrdup("/proc/self/ns/net"),
                            .pod_namespace = xstrdup("red"),
                            .pod_name = xstrdup("a")};
    struct answer a = {0};
    pods_request(pods, &r, open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), on_answer, &a);
    assert_int_equal(finish(&a), 1);
    assert_int_equal(code_of(&a), CNI_INVALID_ENVIRONMENT);
    assert_int_equal(creations, 0);
}

static void put_pod(const char *id, const char *address, const char *host_if)
{
    struct dp_pod p = {.container_id = (char *) (uintptr_t) id,
                       .ifname = (char[]){"eth0"},
                       .pod_namespace = (char[]){"red"},
                       .pod_name = (char *) (uintptr_t) id,
                       .netns = (char[]){"/n"},
                       .vnid = 42,
                       .ready = true};
    snprintf(p.host_if, sizeof p.host_if, "%s", host_if);
    assert_int_equal(ip4_parse(address, &p.ip), 0);
    sw.pods[sw.n++] = dp_pod_clone(&p);
}

static void pods_that_are_there_are_taken_over_and_stale_ones_detached(void **state)
{
    (void) state;
    struct answer a;
    pods_free(pods);
    put_pod("alive", "10.128.0.2", "lo"); /* A link that surely is there. */
    put_pod("rebooted", "10.128.0.3", "nosuchlink");
    put_pod("moved", "10.200.0.2", "lo");
    start();
    assert_int_equal(pods_busy(pods), 2);
    links = 2;
    bool never = false;
    while (pods_busy(pods) > 0) {
        loop_run_until(loop, &never, 1);
    }
    assert_int_equal(sw.n, 1);
    assert_string_equal(sw.pods[0]->container_id, "alive");
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_null(strstr(a.text, "10.128.0.2/29"));
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    links = 1;
    assert_nothing_leaked();
}

static void two_pods_with_one_address_are_told(void **state)
{
    (void) state;
    pods_free(pods);
    put_pod("first", "10.128.0.2", "lo");
    put_pod("second", "10.128.0.2", "lo");
    last_trouble[0] = '\0';
    start();
    assert_string_equal(last_trouble, "red/second AddressClash");
    assert_int_equal(sw.n, 2); /* Which one is right is not ours to say. */
}

static void ports_and_limits_of_the_object_come_and_go_with_the_pod(void **state)
{
    (void) state;
    struct answer a;
    wants_ports = "tcp:8080:80,udp:10.0.0.1:53:5353";
    wants_bandwidth.to_pod = 8000000;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_string_equal(rules, "a=tcp:8080:80,udp:10.0.0.1:53:5353 ");
    assert_string_equal(sw.pods[0]->bandwidth, "to=8000000/0,from=0/0");
    assert_int_equal(limits, 1);
    assert_int_equal(perform(CNI_ADD, "a", &a), 0); /* It is there. */
    assert_int_equal(sw.attaches, 1);
    /* Another pod that wants one of them is told whose it is, and nothing of it stays. */
    assert_int_equal(perform(CNI_ADD, "b", &a), 1);
    assert_int_equal(code_of(&a), CNI_PORT_TAKEN);
    assert_non_null(strstr(a.text, "8080/tcp is that of pod red/a"));
    assert_string_equal(last_trouble, "red/b HostPortTaken");
    assert_int_equal(sw.n, 1);
    wants_ports = NULL;
    wants_bandwidth = (struct cni_bandwidth){0};
    assert_int_equal(perform(CNI_ADD, "b", &a), 0);
    assert_int_equal(perform(CNI_DEL, "b", &a), 0);
    assert_int_equal(limits, 1);
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    assert_string_equal(rules, "");
    assert_int_equal(limits, 0);
    assert_nothing_leaked();
}

static void add_fails_whole_when_ports_or_limits_cannot_be(void **state)
{
    (void) state;
    struct answer a;
    struct {
        int *plain;
        _Atomic int *link;
        int error;
        enum cni_code code;
    } failures[] = {
        {&wants_error, NULL, -EINVAL, CNI_INVALID_POD},
        {&sw.store_error, NULL, -EIO, CNI_ATTACH_FAILED},
        {NULL, &limit_error, -EPERM, CNI_ATTACH_FAILED},
        {&rules_error, NULL, -EIO, CNI_ATTACH_FAILED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
        wants_ports = "tcp:80:80";
        wants_bandwidth.from_pod = 1000;
        if (failures[i].link) {
            *failures[i].link = failures[i].error;
        } else {
            *failures[i].plain = failures[i].error;
        }
        assert_int_equal(perform(CNI_ADD, "a", &a), 1);
        assert_int_equal(code_of(&a), failures[i].code);
        wants_error = sw.store_error = limit_error = rules_error = 0;
        assert_string_equal(rules, "");
        wants_ports = NULL;
        wants_bandwidth.from_pod = 0;
        assert_nothing_leaked();
    }
}

static void what_the_runtime_says_comes_before_the_object(void **state)
{
    (void) state;
    struct answer a = {0};
    wants_ports = "tcp:1:1";
    wants_bandwidth.to_pod = 5000;
    struct cni_request r = {.command = CNI_ADD,
                            .container_id = xstrdup("a"),
                            .ifname = xstrdup("eth0"),
                            .netns = xstrdup("/run/netns/a"),
                            .pod_namespace = xstrdup("red"),
                            .pod_name = xstrdup("a"),
                            .config = {.version = CNI_1_0_0, .chained_bandwidth = true}};
    r.config.runtime.has_ports = true;
    assert_int_equal(cni_host_ports_parse("tcp:2:2", &r.config.runtime), 0);
    pods_request(pods, &r, open("/dev/null", O_RDONLY | O_CLOEXEC), on_answer, &a);
    assert_int_equal(finish(&a), 0);
    assert_string_equal(rules, "a=tcp:2:2 ");
    assert_string_equal(sw.pods[0]->bandwidth, "elsewhere");
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
}

static void a_pod_whose_limits_are_found_late_is_attached_again_with_a_pair_of_links(void **state)
{
    (void) state;
    struct answer a;
    sw.has_ends = true;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_string_equal(sw.pods[0]->host_if, "tp3x");
    assert_int_equal(sw.attaches, 1);
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    wants_bandwidth.to_pod = 8000000;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_int_equal(sw.n, 1);
    assert_string_not_equal(sw.pods[0]->host_if, "tp3x");
    assert_int_equal(sw.attaches, 3);
    assert_int_equal(limits, 1);
    assert_int_equal(links, 1);
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    wants_bandwidth = (struct cni_bandwidth){0};
    assert_nothing_leaked();
}

static void an_interface_in_the_way_is_looked_at_once(void **state)
{
    (void) state;
    struct answer a;
    strays_looked_for = 0;
    create_error = -EBUSY;
    stray = 1; /* With it goes what was in the way. */
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_int_equal(strays_looked_for, 1);
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    create_error = -EBUSY;
    assert_int_equal(perform(CNI_ADD, "a", &a), 1);
    assert_int_equal(code_of(&a), CNI_ATTACH_FAILED);
    assert_int_equal(strays_looked_for, 2);
    create_error = 0;
    assert_nothing_leaked();
}

static void host_ports_that_the_host_has_are_refused(void **state)
{
    (void) state;
    struct answer a;
    wants_ports = "tcp:53:1";
    not_to_be_had = "53/tcp is the host's";
    assert_int_equal(perform(CNI_ADD, "a", &a), 1);
    assert_int_equal(code_of(&a), CNI_PORT_TAKEN);
    assert_non_null(strstr(a.text, "53/tcp is the host's"));
    assert_string_equal(last_trouble, "red/a HostPortTaken");
    assert_int_equal(sw.n, 0);
    not_to_be_had = NULL;
    assert_int_equal(perform(CNI_ADD, "a", &a), 0);
    assert_int_equal(reserved, 0);
    assert_int_equal(perform(CNI_DEL, "a", &a), 0);
    /* What fails later gives them back. */
    rules_error = -EIO;
    assert_int_equal(perform(CNI_ADD, "a", &a), 1);
    rules_error = 0;
    assert_int_equal(reserved, 0);
    wants_ports = NULL;
    assert_nothing_leaked();
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(add_and_del_leave_nothing),
        T(many_at_once_get_different_addresses),
        T(a_repeated_add_gives_the_same_while_it_is_intact),
        T(an_add_for_another_pod_attaches_anew),
        T(gc_leaves_a_pod_that_is_being_attached),
        T(requests_of_one_container_wait_for_each_other),
        T(every_failure_of_add_is_taken_back),
        T(a_taken_name_is_not_used),
        T(an_add_whose_port_has_a_link_already_goes_on_with_another_port),
        T(del_answers_when_the_link_is_gone_not_when_the_kernel_is_done),
        T(an_address_is_held_until_its_flows_are_gone),
        T(without_the_switch_everything_is_to_be_tried_again),
        T(add_waits_for_the_vnid_of_a_new_project),
        T(a_request_that_has_ended_does_not_begin_again),
        T(under_ovs_subnet_projects_need_no_vnid),
        T(a_changed_vnid_reaches_the_pods_once),
        T(a_moving_project_has_two_vnids_until_it_arrived),
        T(pods_of_unknown_projects_are_global_under_no_plugin_with_vnids),
        T(check_looks_at_port_result_and_link),
        T(the_hosts_own_namespace_is_refused),
        T(pods_that_are_there_are_taken_over_and_stale_ones_detached),
        T(ports_and_limits_of_the_object_come_and_go_with_the_pod),
        T(add_fails_whole_when_ports_or_limits_cannot_be),
        T(what_the_runtime_says_comes_before_the_object),
        T(a_pod_whose_limits_are_found_late_is_attached_again_with_a_pair_of_links),
        T(an_interface_in_the_way_is_looked_at_once),
        T(host_ports_that_the_host_has_are_refused),
        T(two_pods_with_one_address_are_told),
        T(what_happens_to_pods_is_logged_with_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
