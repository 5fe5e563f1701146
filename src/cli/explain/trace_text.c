/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/trace.h"
#include "cli/kubectl/print.h"

#include <inttypes.h>
#include <stdio.h>

/* The objects behind a cause that has no single object. */
static char *objects_behind(const struct json *trace, const char *cause)
{
    const struct json *from = json_get(trace, "from"), *to = json_get(trace, "to");
    int64_t a = json_get_int_or(json_get(from, "vnid"), -1);
    int64_t b = json_get_int_or(json_get(to, "vnid"), -1);
    return streq(cause, "vnid-mismatch") && a >= 0 && b >= 0
               ? xasprintf("NetNamespace %s has %" PRId64 ", NetNamespace %s has %" PRId64,
                           json_get_text(from, "namespace"), a, json_get_text(to, "namespace"), b)
               : NULL;
}

/* The deciding verdict: the switch's if it was asked, else the model's. */
static const struct json *judge_of(const struct json *half)
{
    const struct json *sw = json_get(half, "switch");
    return json_get(sw, "action") ? sw : json_get(half, "model");
}

static const struct json *last_step(const struct json *half)
{
    const struct json *steps = json_path(half, "switch", "steps", NULL);
    return json_count(steps) ? json_at(steps, json_count(steps) - 1) : NULL;
}

void trace_conclude(struct json *trace)
{
    const struct json *halves = json_get(trace, "halves");
    struct json *v = json_ensure_object(trace, "verdict"), *half;
    bool agreed = true;
    const char *unsure = NULL;
    JSON_FOREACH (half, halves) {
        if (json_path(half, "switch", "action", NULL)) {
            agreed = agreed && json_get_bool(json_get(half, "agreed"), false);
        } else {
            unsure = json_get_text(half, "node");
        }
    }
    half = json_at(halves, json_count(halves) - 1);
    const struct json *judge = judge_of(half), *step = last_step(half);
    /* A packet that the switch drops on the first node goes no further, whatever the model
     * computes. */
    struct json *first = json_at(halves, 0);
    if (json_count(halves) > 1 && streq(json_get_text(judge_of(first), "action"), "drop")) {
        half = first;
        judge = judge_of(first);
        step = last_step(first);
    }
    bool dropped = streq(json_get_text(judge, "action"), "drop");
    json_set_bool(v, "allowed", !dropped);
    json_set_string(v, "action", json_get_text(judge, "action"));
    json_set_string(v, "node", json_get_text(half, "node"));
    json_set_bool(v, "agreed", agreed);
    if (dropped) {
        json_set_string(v, "cause", json_get_text(judge, "cause"));
        const char *text = json_get_text(step ? step : judge, step ? "meaning" : "text");
        json_set_string(v, "text", text);
        CLEANUP_FREE char *objects = objects_behind(trace, json_get_text(judge, "cause"));
        const char *own = json_get_text(step, "object");
        json_set_string(v, "object", objects ? objects : own);
    }
    if (step) {
        json_set(v, "rule", json_clone(step));
    }
    if (unsure) {
        json_set_string(v, "computed", unsure);
    }
}

int trace_exit_status(const struct json *trace)
{
    const struct json *v = json_get(trace, "verdict");
    if (!json_get_bool(json_get(v, "agreed"), false)) {
        return 3;
    }
    return json_get_bool(json_get(v, "allowed"), false) ? 0 : 1;
}

static char *table_text(const struct json *rule)
{
    const struct json *number = json_get(rule, "table");
    return number ? xasprintf("%" PRId64 " %s", json_get_int_or(number, 0),
                              json_get_text(rule, "tableName"))
                  : xstrdup(json_get_text(rule, "tableName"));
}

static void render_steps(const struct json *steps, struct strbuf *out)
{
    enum { COLUMNS = 5 };
    size_t n = json_count(steps);
    CLEANUP_FREE const char **cells = xcalloc((n + 1) * COLUMNS, sizeof *cells);
    CLEANUP_FREE char **owned = xcalloc(2 * n + 1, sizeof *owned);
    static const char *const head[] = {"TABLE", "PRIORITY", "MATCH", "OBJECT", "MEANING"};
    memcpy(cells, head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        const struct json *s = json_at(steps, i);
        const char **row = cells + (i + 1) * COLUMNS;
        /* A map has no number, and its entries no priority. */
        bool numbered = json_get(s, "table");
        row[0] = owned[2 * i] = table_text(s);
        row[1] = owned[2 * i + 1] =
            numbered ? xasprintf("%" PRId64, json_get_int_or(json_get(s, "priority"), 0))
                     : xstrdup("-");
        row[2] = *json_get_text(s, "match") ? json_get_text(s, "match") : "(everything)";
        row[3] = *json_get_text(s, "object") ? json_get_text(s, "object") : "-";
        row[4] = json_get_text(s, "meaning");
    }
    print_columns(cells, COLUMNS, n + 1, "  ", out);
    for (size_t i = 0; i < 2 * n; i++) {
        free(owned[i]);
    }
}

/* Whether the datapath's verdict differs from the model's. */
static bool render_policies(const struct json *half, struct strbuf *out)
{
    bool agreed = true;
    struct json *x;
    JSON_FOREACH (x, json_get(half, "policies")) {
        const char *object = json_get_text(x, "object"), *meaning = json_get_text(x, "meaning");
        bool same = json_get_bool(json_get(x, "agreed"), false);
        strbuf_addf(out, "  %s policies %s it: ", json_get_text(x, "direction"),
                    json_get_bool(json_get(x, "allowed"), false) ? "allow" : "deny");
        strbuf_addf(out, *object ? "%s (%s)" : "%s%s", object, meaning);
        strbuf_adds(out, same ? "\n"
                         : json_get_bool(json_get(half, "policiesChange"), false)
                             ? ", as of a change that is not in place yet\n"
                             : ", THE DATAPATH DOES NOT\n");
        agreed = agreed && same;
    }
    return !agreed;
}

static void render_egress_firewall(const struct json *f, struct strbuf *out)
{
    int64_t rule = json_get_int_or(json_get(f, "rule"), -1);
    if (!f) {
        return;
    }
    strbuf_addf(out, "  the egress firewall %ss it: %s",
                json_get_bool(json_get(f, "allowed"), false) ? "allow" : "denie",
                json_get_text(f, "object"));
    if (rule < 0) {
        strbuf_adds(out, " (no rule has the destination)\n");
    } else {
        strbuf_addf(out, " (spec.egress[%" PRId64 "])\n", rule);
    }
}

static void render_half(const struct json *half, struct strbuf *out)
{
    const struct json *sw = json_get(half, "switch"), *model = json_get(half, "model");
    const char *node = json_get_text(half, "node"), *error = json_get_text(sw, "error");
    strbuf_addf(out, "\n%s:\n", node);
    if (*error) {
        strbuf_addf(out, "  its switch was not asked (%s); computed from the registry\n", error);
    }
    if (json_count(json_get(sw, "steps"))) {
        render_steps(json_get(sw, "steps"), out);
    }
    render_egress_firewall(json_get(half, "egressFirewall"), out);
    bool doubted = render_policies(half, out);
    const char *action = json_get_text(judge_of(half), "action");
    const struct json *service = json_get(half, "service");
    if (service) {
        const char *name = json_get_text(service, "name");
        /* Host ports have no project. */
        strbuf_addf(out, "  to %s%s port %" PRId64, strchr(name, '/') ? "service " : "", name,
                    json_get_int_or(json_get(service, "port"), 0));
        if (json_get(service, "endpoint")) {
            strbuf_addf(out, ": endpoint %s:%" PRId64 ", one of %" PRId64,
                        json_get_text(service, "endpoint"),
                        json_get_int_or(json_get(service, "endpointPort"), 0),
                        json_get_int_or(json_get(service, "endpoints"), 0));
        }
        strbuf_addc(out, '\n');
    }
    if (streq(action, "tunnel")) {
        strbuf_addf(out, "  -> by the tunnel to %s (%s) with VNID %" PRId64 "\n",
                    json_get_text(model, "remoteNode"), json_get_text(model, "vtep"),
                    json_get_int_or(json_get(model, "vnid"), 0));
    } else if (streq(action, "deliver")) {
        strbuf_adds(out, "  -> delivered to the pod\n");
    } else if (streq(action, "host")) {
        strbuf_adds(out,
                    "  -> handed to the host; packets for other addresses leave through NAT\n");
    } else if (streq(action, "drop")) {
        strbuf_addf(
            out, "  -> dropped%s\n",
            json_get_bool(json_get(model, "refused"), false) ? "; the pod gets an ICMP error" : "");
    }
    if (*json_get_text(sw, "remark")) {
        strbuf_addf(out, "  the switch remarks: %s\n", json_get_text(sw, "remark"));
    }
    if (*action && json_get(sw, "action") && !doubted &&
        !json_get_bool(json_get(half, "agreed"), false)) {
        strbuf_addf(out, "  THE MODEL DISAGREES: it says %s%s%s\n", json_get_text(model, "action"),
                    *json_get_text(model, "cause") ? ", " : "", json_get_text(model, "cause"));
    }
}

void trace_render(const struct json *trace, struct strbuf *out)
{
    const struct json *v = json_get(trace, "verdict"), *rule = json_get(v, "rule");
    int64_t port = json_get_int_or(json_get(trace, "port"), 0);
    struct json *half;
    strbuf_addf(out, "%s -> %s, %s", json_get_text(json_get(trace, "from"), "text"),
                json_get_text(json_get(trace, "to"), "text"), json_get_text(trace, "protocol"));
    strbuf_addf(out, port ? " port %" PRId64 "\n" : "\n", port);
    JSON_FOREACH (half, json_get(trace, "halves")) {
        render_half(half, out);
    }
    strbuf_addc(out, '\n');
    if (json_get_bool(json_get(v, "allowed"), false)) {
        strbuf_addf(out, "allowed: %s %s\n",
                    streq(json_get_text(v, "action"), "host") ? "handed to the host on"
                                                              : "delivered on",
                    json_get_text(v, "node"));
    } else {
        const char *cause = json_get_text(v, "cause");
        strbuf_addf(out, "dropped on %s: %s", json_get_text(v, "node"),
                    *cause ? cause : "not by a rule with a cause");
        strbuf_addf(out, *json_get_text(v, "text") ? " (%s)" : "%s", json_get_text(v, "text"));
        if (rule && !json_get(rule, "table")) {
            strbuf_addf(out, ", by the program %s", json_get_text(rule, "tableName"));
        } else if (rule) {
            strbuf_addf(
                out, ", by table %" PRId64 " %s, priority %" PRId64 ", cookie %s",
                json_get_int_or(json_get(rule, "table"), 0), json_get_text(rule, "tableName"),
                json_get_int_or(json_get(rule, "priority"), 0), json_get_text(rule, "cookie"));
        }
        strbuf_addf(out, *json_get_text(v, "object") ? ": %s" : "%s", json_get_text(v, "object"));
        strbuf_addc(out, '\n');
    }
    if (!json_get_bool(json_get(v, "agreed"), false)) {
        strbuf_adds(out, "switch and model disagree: the node does not do what it should\n");
    }
}
