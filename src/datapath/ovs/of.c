/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/of.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/reconnect.h"
#include "datapath/ovs/conn.h"
#include "sdn/pipeline.h"

#include <inttypes.h>
#include <stdio.h>

LOG_MODULE("openflow");

#define MAX_IN (1u << 20) /* A message has 64 KiB at most. */
#define MAX_OUT (256u << 20)
#define AUDIT_MS 60000
/* A switch in user space forwards nothing while it lists its flows, so larger tables are audited
 * less often. */
#define AUDIT_FLOWS 10000
#define BUSY_MS 50
#define FEED_SIZE (256u << 10) /* Bytes of a bundle that are put into the buffer at once. */
#define REFUSED_MIN_MS 200
#define REFUSED_MAX_MS 10000

#define EXTRA_XID UINT32_MAX /* xid of requests whose answer is not awaited. */
#define MAX_QUERIES 16
#define QUERY_MS 5000
#define METER_MOD_FAILED 12 /* Error type (7.5.4.13) */

enum state { DOWN, GREETING, METERING, DUMPING, READY, IN_FLIGHT, COMMITTING, REFUSED };

/* A reader of counters; independent of everything else. */
struct query {
    struct list link;
    struct of *of;
    uint32_t xid;
    struct of_flow_list flows;
    struct of_counters *counters;
    size_t counters_cap;
    bool drops, sent;
    struct loop_timer *timer;
    int error;
    const char *text;
    of_query_fn *done;
    void *ctx;
};

struct of {
    struct loop *loop;
    struct conn *conn;
    struct flow_table *table;
    const struct of_ops *ops;
    void *ctx;
    enum state state;
    struct loop_timer *timer; /* READY: audit; REFUSED: next attempt. */
    uint64_t audit_ms;
    uint32_t next_xid, dump_xid, bundle;
    bool audit; /* The dump in progress is not the first of the connection. */
    struct backoff refusals;
    size_t refused_wanted; /* Number of flows wanted at the last refusal. */
    char trouble[256];
    struct of_stats stats;
    /* xid of the request to add the meter; the next xid changes it, the one after is a barrier. */
    uint32_t meter_xid;
    bool has_meter;
    struct list queries;

    /* The bundle in flight: opening it has first_xid; each change, closing, and commit or discard
     * have the xids after it. */
    struct flow_change *changes;
    size_t n_changes, n_put; /* n_put beyond n_changes: the bundle was closed as well. */
    uint32_t first_xid;
    bool failed;
    bool at_once; /* The commit was sent together with the bundle. */
    bool proven;  /* This switch accepted flows of pods before, so it will accept more of them. */
};

static const struct conn_ops conn_callbacks;
static void on_timer(void *ctx);

static void query_end(struct query *q, int error, const char *text)
{
    list_remove(&q->link);
    q->done(q->ctx, error, text, &q->flows, q->counters);
    of_flow_list_done(&q->flows);
    free(q->counters);
    loop_timer_free(q->timer);
    free(q);
}

struct of *of_new(struct loop *l, const char *path, struct flow_table *table,
                  const struct of_ops *ops, void *ctx)
{
    struct of *o = NEW(struct of);
    o->loop = l;
    o->table = table;
    o->ops = ops;
    o->ctx = ctx;
    o->next_xid = 1;
    o->audit_ms = AUDIT_MS;
    o->refusals = BACKOFF_INIT(REFUSED_MIN_MS, REFUSED_MAX_MS);
    list_init(&o->queries);
    o->timer = loop_timer_new(l, on_timer, o);
    o->conn = conn_new(l, path, MAX_IN, MAX_OUT, &conn_callbacks, o);
    conn_start(o->conn);
    return o;
}

struct of *of_free(struct of *o)
{
    if (o) {
        conn_free(o->conn);
        struct query *q;
        LIST_FOREACH (q, struct query, link, &o->queries) {
            query_end(q, -ECANCELED, "the agent is stopping");
        }
        loop_timer_free(o->timer);
        free(o->changes);
        free(o);
    }
    return NULL;
}

void of_kick(struct of *o)
{
    conn_kick(o->conn);
}

const char *of_trouble(const struct of *o)
{
    return o->trouble[0] ? o->trouble : NULL;
}

const struct of_stats *of_get_stats(const struct of *o)
{
    return &o->stats;
}

void of_set_audit_ms(struct of *o, uint64_t ms)
{
    o->audit_ms = ms;
    if (o->state != DOWN) {
        loop_timer_arm(o->timer, ms);
    }
}

/* ---- counters ---- */

static void on_query_timer(void *ctx)
{
    struct query *q = ctx;
    query_end(q, q->error ? q->error : -ETIMEDOUT,
              q->text ? q->text : "the switch does not report its flows");
}

static void query_fail(struct query *q, int error, const char *text)
{
    q->error = error;
    q->text = text;
    loop_timer_arm(q->timer, 0);
}

void of_query(struct of *o, bool drops, of_query_fn *done, void *ctx)
{
    struct query *q = NEW(struct query);
    q->of = o;
    q->drops = drops;
    q->done = done;
    q->ctx = ctx;
    q->timer = loop_timer_new(o->loop, on_query_timer, q);
    bool full = list_size(&o->queries) >= MAX_QUERIES;
    list_push_back(&o->queries, &q->link);
    if (o->state == DOWN || o->state == GREETING) {
        query_fail(q, -ENOTCONN, "no OpenFlow connection to ovs-vswitchd");
    } else if (full) {
        query_fail(q, -EBUSY, "too many ask for the flows at once");
    } else {
        q->xid = o->next_xid++;
        q->sent = true;
        uint64_t mask = drops ? PIPELINE_DROPS : 0;
        of_put_flow_dump_request_of(conn_out(o->conn), q->xid, mask, mask);
        loop_timer_arm(q->timer, QUERY_MS);
    }
}

static struct query *find_query(const struct of *o, uint32_t xid)
{
    struct query *q;
    LIST_FOREACH (q, struct query, link, &o->queries) {
        if (q->sent && q->xid == xid) {
            return q;
        }
    }
    return NULL;
}

static int on_query_reply(struct query *q, const struct of_msg *m, struct err *e)
{
    bool more = false;
    int r = of_flow_dump_parse(m, &q->flows, &q->counters, &q->counters_cap, &more, e);
    if (r == 0 && !more) {
        query_end(q, 0, "");
    }
    return r;
}

static bool is_open(const struct of *o)
{
    return o->state != DOWN && o->state != GREETING;
}

void of_packet_to(struct of *o, uint32_t port, const void *packet, size_t size)
{
    if (is_open(o)) {
        of_put_packet_in_table(conn_out(o->conn), EXTRA_XID, OF_PORT_CONTROLLER,
                               PIPELINE_TABLE_ANSWER, PIPELINE_REG_DST_PORT, port, packet, size);
    }
}

void of_packet_from(struct of *o, uint32_t port, const void *packet, size_t size)
{
    if (is_open(o)) {
        of_put_packet_in_table(conn_out(o->conn), EXTRA_XID, port, PIPELINE_TABLE_FIRST,
                               PIPELINE_REG_DST_PORT, 0, packet, size);
    }
}

void of_forget(struct of *o, const struct of_connection *c)
{
    if (is_open(o)) {
        of_put_ct_flush(conn_out(o->conn), EXTRA_XID, PIPELINE_SERVICE_ZONE, c);
    }
}

/* ---- dumps ---- */

static void dump(struct of *o, bool audit)
{
    o->state = DUMPING;
    o->audit = audit;
    o->dump_xid = o->next_xid++;
    o->stats.dumps++;
    flow_table_dump_begin(o->table);
    of_put_flow_dump_request(conn_out(o->conn), o->dump_xid);
}

static void on_timer(void *ctx)
{
    struct of *o = ctx;
    if (o->state == READY) {
        dump(o, true);
    } else if (o->state == REFUSED) {
        dump(o, false);
    } else {
        /* An audit waits for the bundle in flight. */
        loop_timer_arm(o->timer, BUSY_MS);
    }
}

static void ready(struct of *o)
{
    o->state = READY;
    if (!loop_timer_armed(o->timer)) {
        loop_timer_arm(o->timer, o->audit_ms * MAX(o->table->n_wanted / AUDIT_FLOWS, 1));
    }
    of_sync(o);
    o->ops->changed(o->ctx);
}

static int on_dump(struct of *o, const struct of_msg *m, struct err *e)
{
    if (o->state != DUMPING || m->xid != o->dump_xid) {
        return 0;
    }
    struct of_flow_list flows = {0};
    bool more = false;
    int r = of_flow_dump_parse(m, &flows, NULL, NULL, &more, e);
    if (r == 0) {
        for (size_t i = 0; i < flows.n; i++) {
            flow_table_dump_flow(o->table, flows.flows[i]);
        }
    }
    of_flow_list_done(&flows);
    if (r < 0 || more) {
        return r;
    }
    flow_table_dump_end(o->table);
    if (o->table->foreign && o->audit) {
        log_warn("somebody else changed flows, mending them", "flows=%zu", o->table->foreign);
    } else if (o->table->foreign) {
        log_info("flows found that are not ours, removing them", "flows=%zu", o->table->foreign);
    }
    ready(o);
    return 0;
}

/* ---- bundles ---- */

static uint32_t close_xid(const struct of *o)
{
    return o->first_xid + 1 + (uint32_t) o->n_changes;
}

/* The switch has all wanted flows. */
static void taken(struct of *o)
{
    backoff_reset(&o->refusals);
    o->trouble[0] = '\0';
}

static bool adds_pods_only(const struct of *o)
{
    for (size_t i = 0; i < o->n_changes; i++) {
        const struct of_flow *f = flow_table_flow(o->table, &o->changes[i]);
        uint64_t kind = pipeline_group(f->cookie) >> 48;
        if (o->changes[i].command != OF_FLOW_ADD ||
            (kind != PIPELINE_POD && kind != PIPELINE_VNID)) {
            return false;
        }
    }
    return true;
}

static void put_change(struct of *o, struct strbuf *out, size_t i)
{
    const struct flow_change *c = &o->changes[i];
    const struct of_flow *f = flow_table_flow(o->table, c);
    uint32_t xid = o->first_xid + 1 + (uint32_t) i;
    if (c->idle_s) {
        of_put_bundle_flow_retire(out, xid, o->bundle, c->idle_s, f);
    } else {
        of_put_bundle_flow_mod(out, xid, o->bundle, c->command, f);
    }
}

/* Continues to send the bundle, as far as the buffer may grow: a whole bundle can have tens of
 * megabytes. */
static void feed(struct of *o)
{
    struct strbuf *out = conn_out(o->conn);
    if (o->failed) {
        o->n_put = MAX(o->n_put, o->n_changes); /* The switch discards the bundle in any case. */
    }
    while (o->n_put < o->n_changes && out->size < FEED_SIZE) {
        put_change(o, out, o->n_put++);
    }
    if (o->n_put != o->n_changes) {
        return;
    }
    o->n_put++;
    of_put_bundle_control(out, close_xid(o), o->bundle, OF_BUNDLE_CLOSE);
    if (o->at_once) {
        of_put_bundle_control(out, close_xid(o) + 1, o->bundle, OF_BUNDLE_COMMIT);
    }
}

static void on_drained(void *ctx)
{
    struct of *o = ctx;
    if (o->state == IN_FLIGHT && o->n_put <= o->n_changes) {
        feed(o);
    }
}

/* Open vSwitch leaves out a change that it refuses, reports it, and would commit the rest.  So the
 * bundle is closed first, and committed only when the answer shows that the switch accepted all of
 * it.  While pods wait to be attached the commit is sent together with the bundle: their flows only
 * add to the table, and the switch accepted such flows before.  If it refuses one nonetheless, a
 * dump finds the accepted ones, as after every refusal. */
void of_sync(struct of *o)
{
    if (o->state == REFUSED && o->table->n_wanted < o->refused_wanted) {
        /* Fewer flows are wanted now, so a table that was full may have room. */
        o->refused_wanted = o->table->n_wanted;
        loop_timer_arm(o->timer, REFUSED_MIN_MS);
    }
    if (o->state != READY) {
        return;
    }
    size_t n = flow_table_build(o->table, &o->changes);
    if (!n) {
        taken(o); /* Also when the refused flow is not wanted any more. */
        return;
    }
    o->state = IN_FLIGHT;
    o->failed = false;
    o->n_changes = n;
    o->n_put = 0;
    o->bundle++;
    o->first_xid = o->next_xid;
    o->next_xid += (uint32_t) n + 3;
    o->at_once = o->proven && adds_pods_only(o);
    of_put_bundle_control(conn_out(o->conn), o->first_xid, o->bundle, OF_BUNDLE_OPEN);
    feed(o);
    o->stats.bundles++;
    o->stats.flow_mods += n;
}

static void bundle_end(struct of *o, bool committed)
{
    free(o->changes);
    o->changes = NULL;
    o->n_changes = 0;
    flow_table_built_done(o->table, committed);
}

static void on_refused(struct of *o)
{
    bundle_end(o, false);
    o->stats.refused_bundles++;
    o->state = REFUSED;
    o->refused_wanted = o->table->n_wanted;
    loop_timer_arm(o->timer, backoff_fail(&o->refusals, loop_now_ms(o->loop), o->next_xid));
    o->ops->changed(o->ctx);
}

static int on_bundle_reply(struct of *o, const struct of_msg *m, struct err *e)
{
    bool closed = o->state == IN_FLIGHT && m->xid == close_xid(o);
    if (!closed && (o->state != COMMITTING || m->xid != close_xid(o) + 1)) {
        return 0;
    }
    uint32_t bundle;
    uint16_t type;
    int r = of_bundle_control_parse(m, &bundle, &type, e);
    if (r < 0) {
        return r;
    }
    if (closed && o->at_once) {
        o->state = COMMITTING;
        return 0;
    }
    if (closed) {
        of_put_bundle_control(conn_out(o->conn), close_xid(o) + 1, o->bundle,
                              o->failed ? OF_BUNDLE_DISCARD : OF_BUNDLE_COMMIT);
        if (o->failed) {
            on_refused(o);
        } else {
            o->state = COMMITTING;
        }
        return 0;
    }
    if (o->failed) {
        o->proven = false;
        on_refused(o);
        return 0;
    }
    o->proven = o->proven || adds_pods_only(o);
    bundle_end(o, true);
    taken(o);
    ready(o);
    return 0;
}

/* The first error of a bundle names the flow that was refused. */
static void note_failure(struct of *o, const char *error, uint32_t at)
{
    if (o->failed) {
        return;
    }
    o->failed = true;
    char where[160] = "";
    if (at >= 1 && at <= o->n_changes) {
        const struct flow_change *c = &o->changes[at - 1];
        const struct of_flow *f = flow_table_flow(o->table, c);
        const char *table = pipeline_table_name(f->table);
        snprintf(where, sizeof where,
                 "flow %" PRIu32 " of %zu (%s table=%u%s%s priority=%u cookie=0x%" PRIx64 "): ", at,
                 o->n_changes, c->command == OF_FLOW_ADD ? "add" : "delete", f->table,
                 table ? "," : "", table ? table : "", f->priority, f->cookie);
    }
    snprintf(o->trouble, sizeof o->trouble, "the switch refused the flows: %s%s", where, error);
    log_error("bundle refused", "reason=\"%s%s\"", where, error);
}

static int on_error(struct of *o, const struct of_msg *m, struct err *e)
{
    struct of_error er;
    char text[96];
    int r = of_error_parse(m, &er, e);
    if (r < 0) {
        return r;
    }
    const char *error = of_error_text(&er, text);
    if (o->state == METERING && m->xid == o->meter_xid) {
        return 0; /* The meter exists already, or the next request fails as well. */
    }
    if (o->state == METERING && m->xid == o->meter_xid + 1) {
        o->has_meter = false;
        log_info("the switch has no meters: nothing is refused with ICMP errors", "reason=\"%s\"",
                 error);
        return 0;
    }
    if (m->xid == EXTRA_XID) {
        static struct log_limit limit;
        log_limited(&limit, LOG_WARN, "the switch refuses a packet, or to forget connections",
                    "reason=\"%s\"", error);
        return 0;
    }
    struct query *q = find_query(o, m->xid);
    if (q) {
        query_fail(q, -EIO, "the switch refuses to report its flows");
        return 0;
    }
    uint32_t at = m->xid - o->first_xid;
    if ((o->state == IN_FLIGHT || o->state == COMMITTING) && at <= o->n_changes + 2) {
        note_failure(o, error, at);
        if (at == 0 || at > o->n_changes) {
            on_refused(o);
        }
        return 0;
    }
    if (o->state == REFUSED) {
        return 0; /* An error about a later part of the refused bundle. */
    }
    return err_set(e, -EPROTO, "the switch reports an error: %s", error);
}

/* ---- connection ---- */

static void on_opened(void *ctx)
{
    struct of *o = ctx;
    o->state = GREETING;
    of_put_hello(conn_out(o->conn), o->next_xid++);
}

/* Without the meter the switch sends no packet-ins, so that no pod can keep the switch or the agent
 * busy. */
static void prepare(struct of *o)
{
    struct strbuf *out = conn_out(o->conn);
    o->state = METERING;
    o->has_meter = true;
    o->meter_xid = o->next_xid;
    o->next_xid += 3;
    of_put_set_config(out, o->next_xid++, PIPELINE_REFUSED_BYTES);
    of_put_meter_mod(out, o->meter_xid, false, OF_REFUSAL_METER, OF_REFUSALS_PER_S,
                     OF_REFUSALS_BURST);
    of_put_meter_mod(out, o->meter_xid + 1, true, OF_REFUSAL_METER, OF_REFUSALS_PER_S,
                     OF_REFUSALS_BURST);
    of_put_barrier_request(out, o->meter_xid + 2);
}

static void on_barrier(struct of *o, const struct of_msg *m)
{
    if (o->state == METERING && m->xid == o->meter_xid + 2) {
        o->ops->metered(o->ctx, o->has_meter);
        dump(o, false);
    }
}

static int on_packet_in(struct of *o, const struct of_msg *m, struct err *e)
{
    struct of_packet_in p;
    int r = of_packet_in_parse(m, &p, e);
    if (r == 0) {
        o->ops->packet_in(o->ctx, &p);
    }
    return r;
}

static void on_closed(void *ctx, const char *reason)
{
    struct of *o = ctx;
    struct query *q;
    LIST_FOREACH (q, struct query, link, &o->queries) {
        q->sent = false;
        query_fail(q, -ENOTCONN, "the OpenFlow connection to ovs-vswitchd broke");
    }
    o->state = DOWN;
    o->proven = false;
    o->trouble[0] = '\0';
    loop_timer_disarm(o->timer);
    free(o->changes);
    o->changes = NULL;
    o->n_changes = 0;
    flow_table_disconnect(o->table);
    o->ops->closed(o->ctx, reason);
}

static void on_probe(void *ctx)
{
    struct of *o = ctx;
    of_put_echo_request(conn_out(o->conn), o->next_xid++);
}

static int on_message(struct of *o, const struct of_msg *m, struct err *e)
{
    int r;
    switch ((enum of_type) m->type) {
    case OF_HELLO:
        r = of_hello_negotiate(m, e);
        if (r == 0 && o->state == GREETING) {
            o->stats.connections++;
            prepare(o);
        }
        return r;
    case OF_ECHO_REQUEST:
        of_put_echo_reply(conn_out(o->conn), m->xid, m->body, m->body_size);
        return 0;
    case OF_ERROR:
        return on_error(o, m, e);
    case OF_MULTIPART_REPLY: {
        struct query *q = find_query(o, m->xid);
        return q ? on_query_reply(q, m, e) : on_dump(o, m, e);
    }
    case OF_BARRIER_REPLY:
        on_barrier(o, m);
        return 0;
    case OF_PACKET_IN:
        return on_packet_in(o, m, e);
    case OF_BUNDLE_CONTROL:
        return on_bundle_reply(o, m, e);
    default:
        return 0; /* Replies to probes, and messages that the switch sends to every controller. */
    }
}

static int on_received(void *ctx, const char *data, size_t size, size_t *ret_used, struct err *e)
{
    struct of *o = ctx;
    size_t used = 0;
    while (used < size) {
        struct of_msg m;
        size_t n;
        int r = of_msg_parse(data + used, size - used, &m, &n, e);
        if (r == -EAGAIN) {
            break;
        }
        r = r < 0 ? r : on_message(o, &m, e);
        if (r < 0) {
            return r;
        }
        used += n;
    }
    *ret_used = used;
    return 0;
}

static const struct conn_ops conn_callbacks = {.opened = on_opened,
                                               .received = on_received,
                                               .closed = on_closed,
                                               .probe = on_probe,
                                               .drained = on_drained};
