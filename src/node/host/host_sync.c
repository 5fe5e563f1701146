/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/host_sync.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/said.h"
#include "net/kernel/conntrack.h"
#include "node/host/host.h"
#include "node/host/monitor.h"
#include "node/host/nat.h"

LOG_MODULE("host");

#define LOOK_MS 30000 /* Interval of comparisons without a reported change. */
/* Delay after a failure, and the least interval between comparisons for reported changes. */
#define RETRY_MS 1000
#define SETTLE_MS 50 /* Delay after a reported change: changes of other programs come in groups. */

struct waiter {
    struct list node;
    host_sync_fn *fn;
    void *ctx;
    bool in_job; /* The running job includes the waiter's ports. */
};

struct host_sync {
    struct loop *loop;
    host_sync_fn *fn;
    void *ctx;
    struct sdn_network net;
    bool set;
    bool rules_only; /* True until host_sync_set. */
    struct nat_port *ports;
    size_t n_ports;
    bool node_ports;
    struct list waiters;
    struct loop_timer *timer;
    uint64_t last_ms;
    struct said failure; /* The failure that was logged. */
    bool was_whole;

    /* Used only by the worker thread while 'busy'. */
    bool busy, again;
    bool job_rules_only;
    struct sdn_network job_net;
    struct nat_port *job_ports;
    size_t n_job_ports;
    bool job_node_ports;
    struct nat_port *had_ports; /* The ports in the previous rules. */
    size_t n_had_ports;
    bool had;
    struct err forget_error; /* Reported, but no reason to remove the rules. */
    struct nat nat;
    int result;
    struct err error;
    unsigned host_changes;
    bool nat_changed;
};

static bool has_port(const struct nat_port *list, size_t n, const struct nat_port *p)
{
    for (size_t i = 0; i < n; i++) {
        if (sdn_host_port_compare(&list[i].is, &p->is) == 0 &&
            list[i].is.port.port == p->is.port.port &&
            list[i].not_at_loopback == p->not_at_loopback) {
            return true;
        }
    }
    return false;
}

/* Appends the UDP ports of 'a' that have no equal entry in 'b'. */
static size_t add_changed(const struct nat_port *a, size_t n_a, const struct nat_port *b,
                          size_t n_b, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n_a; i++) {
        if (a[i].is.port.protocol == CNI_UDP && !has_port(b, n_b, &a[i])) {
            out[n++] = a[i].is.port.host_port;
        }
    }
    return n;
}

struct port_list {
    uint16_t *ports;
    size_t n;
};

static bool is_to_port(void *ctx, const struct conntrack_flow *f)
{
    const struct port_list *l = ctx;
    for (size_t i = 0; i < l->n; i++) {
        if (l->ports[i] == f->to_port) {
            return true;
        }
    }
    return false;
}

/* Deletes connection tracking entries of changed ports.  The new rules are in force, so no new
 * entry is made by the old ones. */
static void forget_changed(struct host_sync *h)
{
    CLEANUP_FREE uint16_t *ports = xcalloc(h->n_job_ports + h->n_had_ports + 1, sizeof *ports);
    size_t n = add_changed(h->job_ports, h->n_job_ports, h->had_ports, h->n_had_ports, ports, 0);
    n = add_changed(h->had_ports, h->n_had_ports, h->job_ports, h->n_job_ports, ports, n);
    /* At the start the previous rules are not known; most likely they were the same. */
    err_clear(&h->forget_error);
    if (h->had && n) {
        conntrack_forget_udp(is_to_port, &(struct port_list){ports, n}, &h->forget_error);
    }
    free(h->had_ports);
    h->had_ports = TAKE(h->job_ports);
    h->n_had_ports = h->n_job_ports;
    h->n_job_ports = 0;
    h->had = true;
}

static void work(void *ctx)
{
    struct host_sync *h = ctx;
    CLEANUP_STRBUF struct strbuf rules = STRBUF_INIT;
    h->nat_changed = false;
    h->host_changes = 0;
    /* Rules first: no packet may be forwarded without them. */
    nat_write_rules(&h->job_net, h->job_ports, h->n_job_ports, &rules);
    h->result = nat_sync(&h->nat, rules.data, &h->nat_changed, &h->error);
    if (h->job_rules_only) {
        return;
    }
    if (h->result == 0) {
        h->result = host_apply(&h->job_net, &h->host_changes, &h->error);
    }
    if (h->result == 0 && (h->n_job_ports || h->job_node_ports)) {
        h->result = host_route_loopback(&h->job_net, &h->host_changes, &h->error);
    }
    if (h->result == 0) {
        forget_changed(h);
    }
}

static void look(void *ctx);

static void report(struct host_sync *h)
{
    if (h->forget_error.text[0]) {
        log_warn("host port: UDP may still reach the previous pod until the client is idle",
                 "error=\"%s\"", h->forget_error.text);
    }
    if (h->result < 0) {
        if (said_is_news(&h->failure, h->error.text)) {
            log_error("host is not as it should be", "error=\"%s\"", h->error.text);
        }
        return;
    }
    if (h->was_whole && (h->nat_changed || h->host_changes)) {
        log_warn("repaired what another program changed", "nftables=%s settings=%u",
                 h->nat_changed ? "yes" : "no", h->host_changes);
    } else if (h->failure.text) {
        log_info("host is as it should be", "");
    }
    said_done(&h->failure);
    h->was_whole = true;
}

/* Calls the waiters whose ports the job included. */
static void notify_waiters(struct host_sync *h, int result, const char *text)
{
    struct list notified;
    struct waiter *w;
    list_init(&notified);
    LIST_FOREACH (w, struct waiter, node, &h->waiters) {
        if (w->in_job) {
            list_remove(&w->node);
            list_push_back(&notified, &w->node);
        }
    }
    struct list *link;
    while ((link = list_pop_front(&notified))) {
        w = CONTAINER_OF(link, struct waiter, node);
        w->fn(w->ctx, result, text);
        free(w);
    }
}

static void done(void *ctx)
{
    struct host_sync *h = ctx;
    h->busy = false;
    h->last_ms = loop_now_ms(h->loop);
    if (h->job_rules_only) {
        if (h->again) {
            look(h);
        }
        return;
    }
    report(h);
    loop_timer_arm(h->timer, h->again ? 0 : h->result < 0 ? RETRY_MS : LOOK_MS);
    /* A callback may begin the next job, which overwrites these members. */
    int result = h->result;
    struct err error = h->error;
    const char *text = result < 0 ? error.text : "";
    notify_waiters(h, result, text);
    h->fn(h->ctx, result, text);
}

/* Only the rules of a routed network name the other nodes. */
static struct sdn_remote *clone_remotes(const struct sdn_network *n)
{
    return sdn_plugin_is_routed(n->plugin) && n->n_remotes
               ? xmemdup(n->remotes, n->n_remotes * sizeof *n->remotes)
               : NULL;
}

static void look(void *ctx)
{
    struct host_sync *h = ctx;
    h->again = h->busy;
    if (h->busy || !h->set) {
        return;
    }
    h->busy = true;
    h->job_rules_only = h->rules_only;
    free(h->job_net.remotes);
    h->job_net = h->net;
    h->job_net.remotes = clone_remotes(&h->net);
    free(h->job_ports);
    h->job_ports = h->n_ports ? xmemdup(h->ports, h->n_ports * sizeof *h->ports) : NULL;
    h->n_job_ports = h->n_ports;
    h->job_node_ports = h->node_ports;
    struct waiter *w;
    LIST_FOREACH (w, struct waiter, node, &h->waiters) {
        w->in_job = true;
    }
    loop_work(h->loop, work, done, h);
}

void host_sync_changed(struct host_sync *h, unsigned what)
{
    if (h->busy) {
        h->again = true; /* The change may be the agent's own; the next comparison is cheap. */
        return;
    }
    /* Limit the rate: another program may change nftables all the time. */
    uint64_t since = loop_now_ms(h->loop) - h->last_ms;
    bool often = what == MONITOR_NFT && since < RETRY_MS;
    loop_timer_arm(h->timer, often ? RETRY_MS - since : SETTLE_MS);
}

struct host_sync *host_sync_new(struct loop *l, host_sync_fn *fn, void *ctx)
{
    struct host_sync *h = NEW(struct host_sync);
    h->loop = l;
    h->fn = fn;
    h->ctx = ctx;
    list_init(&h->waiters);
    h->timer = loop_timer_new(l, look, h);
    return h;
}

struct host_sync *host_sync_free(struct host_sync *h)
{
    if (h) {
        assert(!h->busy && list_is_empty(&h->waiters));
        free(h->net.remotes);
        free(h->job_net.remotes);
        free(h->ports);
        free(h->job_ports);
        free(h->had_ports);
        loop_timer_free(h->timer);
        nat_done(&h->nat);
        said_done(&h->failure);
        free(h);
    }
    return NULL;
}

static void set(struct host_sync *h, const struct sdn_network *n, bool rules_only)
{
    struct sdn_remote *remotes = clone_remotes(n);
    free(h->net.remotes);
    h->net = *n;
    h->net.remotes = remotes;
    h->net.n_remotes = remotes ? n->n_remotes : 0;
    h->set = true;
    h->rules_only = rules_only;
    h->was_whole = false;
    look(h);
}

void host_sync_begin(struct host_sync *h, const struct sdn_network *n)
{
    set(h, n, true);
}

void host_sync_set(struct host_sync *h, const struct sdn_network *n)
{
    set(h, n, false);
}

void host_sync_set_ports(struct host_sync *h, struct nat_port *ports, size_t n_ports,
                         host_sync_fn *applied, void *ctx)
{
    free(h->ports);
    h->ports = ports;
    h->n_ports = n_ports;
    h->was_whole = false;
    if (applied) {
        struct waiter *w = NEW(struct waiter);
        w->fn = applied;
        w->ctx = ctx;
        list_push_back(&h->waiters, &w->node);
    }
    look(h);
}

void host_sync_set_node_ports(struct host_sync *h, bool some)
{
    if (h->node_ports != some) {
        h->node_ports = some;
        /* The settings that this changes are the agent's own change, not another program's. */
        h->was_whole = false;
        look(h);
    }
}

bool host_sync_busy(const struct host_sync *h)
{
    return h->busy;
}

int host_sync_check(const struct sdn_network *n, struct err *e)
{
    CLEANUP_STRBUF struct strbuf rules = STRBUF_INIT;
    nat_write_rules(n, NULL, 0, &rules);
    return nat_check(rules.data, e);
}
