/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/keeper.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
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
    keeper_fn *fn;
    void *ctx;
    bool in_job; /* The running job includes the waiter's ports. */
};

struct keeper {
    struct loop *loop;
    keeper_fn *fn;
    void *ctx;
    struct sdn_network net;
    bool set;
    bool rules_only; /* True until keeper_set. */
    struct nat_port *ports;
    size_t n_ports;
    bool node_ports;
    struct list waiters;
    struct loop_timer *timer;
    uint64_t last_ms;
    char *failure; /* The failure as it was logged; NULL: there is none. */
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
static void forget_changed(struct keeper *k)
{
    CLEANUP_FREE uint16_t *ports = xcalloc(k->n_job_ports + k->n_had_ports + 1, sizeof *ports);
    size_t n = add_changed(k->job_ports, k->n_job_ports, k->had_ports, k->n_had_ports, ports, 0);
    n = add_changed(k->had_ports, k->n_had_ports, k->job_ports, k->n_job_ports, ports, n);
    /* At the start the previous rules are not known; most likely they were the same. */
    err_clear(&k->forget_error);
    if (k->had && n) {
        conntrack_forget_udp(is_to_port, &(struct port_list){ports, n}, &k->forget_error);
    }
    free(k->had_ports);
    k->had_ports = TAKE(k->job_ports);
    k->n_had_ports = k->n_job_ports;
    k->n_job_ports = 0;
    k->had = true;
}

static void work(void *ctx)
{
    struct keeper *k = ctx;
    CLEANUP_STRBUF struct strbuf rules = STRBUF_INIT;
    k->nat_changed = false;
    k->host_changes = 0;
    /* Rules first: no packet may be forwarded without them. */
    nat_write_rules(&k->job_net, k->job_ports, k->n_job_ports, &rules);
    k->result = nat_sync(&k->nat, rules.data, &k->nat_changed, &k->error);
    if (k->job_rules_only) {
        return;
    }
    if (k->result == 0) {
        k->result = host_apply(&k->job_net, &k->host_changes, &k->error);
    }
    if (k->result == 0 && (k->n_job_ports || k->job_node_ports)) {
        k->result = host_route_loopback(&k->host_changes, &k->error);
    }
    if (k->result == 0) {
        forget_changed(k);
    }
}

static void look(void *ctx);

static void report(struct keeper *k)
{
    if (k->forget_error.text[0]) {
        log_warn("host port: UDP may still reach the previous pod until the client is idle",
                 "error=\"%s\"", k->forget_error.text);
    }
    if (k->result < 0) {
        if (!streq_null(k->failure, k->error.text)) {
            log_error("host is not as it should be", "error=\"%s\"", k->error.text);
            free(k->failure);
            k->failure = xstrdup(k->error.text);
        }
        return;
    }
    if (k->was_whole && (k->nat_changed || k->host_changes)) {
        log_warn("repaired what another program changed", "nftables=%s settings=%u",
                 k->nat_changed ? "yes" : "no", k->host_changes);
    } else if (k->failure) {
        log_info("host is as it should be", "");
    }
    free(TAKE(k->failure));
    k->was_whole = true;
}

/* Calls the waiters whose ports the job included. */
static void notify_waiters(struct keeper *k, int result, const char *text)
{
    struct list notified;
    struct waiter *w;
    list_init(&notified);
    LIST_FOREACH (w, struct waiter, node, &k->waiters) {
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
    struct keeper *k = ctx;
    k->busy = false;
    k->last_ms = loop_now_ms(k->loop);
    if (k->job_rules_only) {
        if (k->again) {
            look(k);
        }
        return;
    }
    report(k);
    loop_timer_arm(k->timer, k->again ? 0 : k->result < 0 ? RETRY_MS : LOOK_MS);
    /* A callback may begin the next job, which overwrites these members. */
    int result = k->result;
    struct err error = k->error;
    const char *text = result < 0 ? error.text : "";
    notify_waiters(k, result, text);
    k->fn(k->ctx, result, text);
}

static void look(void *ctx)
{
    struct keeper *k = ctx;
    k->again = k->busy;
    if (k->busy || !k->set) {
        return;
    }
    k->busy = true;
    k->job_rules_only = k->rules_only;
    k->job_net = k->net;
    free(k->job_ports);
    k->job_ports = k->n_ports ? xmemdup(k->ports, k->n_ports * sizeof *k->ports) : NULL;
    k->n_job_ports = k->n_ports;
    k->job_node_ports = k->node_ports;
    struct waiter *w;
    LIST_FOREACH (w, struct waiter, node, &k->waiters) {
        w->in_job = true;
    }
    loop_work(k->loop, work, done, k);
}

void keeper_changed(struct keeper *k, unsigned what)
{
    if (k->busy) {
        k->again = true; /* The change may be the agent's own; the next comparison is cheap. */
        return;
    }
    /* Limit the rate: another program may change nftables all the time. */
    uint64_t since = loop_now_ms(k->loop) - k->last_ms;
    bool often = what == MONITOR_NFT && since < RETRY_MS;
    loop_timer_arm(k->timer, often ? RETRY_MS - since : SETTLE_MS);
}

struct keeper *keeper_new(struct loop *l, keeper_fn *fn, void *ctx)
{
    struct keeper *k = NEW(struct keeper);
    k->loop = l;
    k->fn = fn;
    k->ctx = ctx;
    list_init(&k->waiters);
    k->timer = loop_timer_new(l, look, k);
    return k;
}

struct keeper *keeper_free(struct keeper *k)
{
    if (k) {
        assert(!k->busy && list_is_empty(&k->waiters));
        free(k->ports);
        free(k->job_ports);
        free(k->had_ports);
        loop_timer_free(k->timer);
        nat_done(&k->nat);
        free(k->failure);
        free(k);
    }
    return NULL;
}

static void set(struct keeper *k, const struct sdn_network *n, bool rules_only)
{
    k->net = *n;
    k->net.remotes = NULL;
    k->net.n_remotes = 0;
    k->set = true;
    k->rules_only = rules_only;
    k->was_whole = false;
    look(k);
}

void keeper_begin(struct keeper *k, const struct sdn_network *n)
{
    set(k, n, true);
}

void keeper_set(struct keeper *k, const struct sdn_network *n)
{
    set(k, n, false);
}

void keeper_set_ports(struct keeper *k, struct nat_port *ports, size_t n_ports, keeper_fn *applied,
                      void *ctx)
{
    free(k->ports);
    k->ports = ports;
    k->n_ports = n_ports;
    k->was_whole = false;
    if (applied) {
        struct waiter *w = NEW(struct waiter);
        w->fn = applied;
        w->ctx = ctx;
        list_push_back(&k->waiters, &w->node);
    }
    look(k);
}

void keeper_set_node_ports(struct keeper *k, bool some)
{
    if (k->node_ports != some) {
        k->node_ports = some;
        /* The settings that this changes are the agent's own change, not another program's. */
        k->was_whole = false;
        look(k);
    }
}

bool keeper_busy(const struct keeper *k)
{
    return k->busy;
}

int keeper_check(const struct sdn_network *n, struct err *e)
{
    CLEANUP_STRBUF struct strbuf rules = STRBUF_INIT;
    nat_write_rules(n, NULL, 0, &rules);
    return nat_check(rules.data, e);
}
