/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rules of network policy that decide about a packet, and compares them with the
 * datapath's verdict. */
#include "base/log.h"
#include "node/introspect/introspect_priv.h"

LOG_MODULE("introspect");

/* The directions in which the datapath asked the policies on its way to a verdict. */
struct asked {
    bool at[2], allowed[2]; /* Indexed by direction. */
};

/* Causes of drops after the sender's policies, and before the receiver's. */
static bool is_between(enum model_cause c)
{
    return c == MODEL_NO_SUCH_NODE || c == MODEL_NO_SUCH_POD || c == MODEL_OWN_ADDRESS;
}

static struct asked asked_by(const struct sdn_network *n, const struct explain_question *q,
                             const struct dp_trace *t, bool to_service)
{
    uint32_t dst = t->translated ? t->endpoint_ip : q->dst;
    bool own_host =
        q->entry == MODEL_FROM_HOST && (q->src == sdn_gateway(n) || q->src == n->host_ip);
    bool to_itself = t->translated && dst == q->src;
    /* The host's proxy takes the packet, whatever policies say. */
    bool by_host = to_service && !t->translated;
    struct asked a = {
        .allowed = {t->cause != MODEL_EGRESS_DENIED, t->cause != MODEL_INGRESS_DENIED}};
    a.at[POLICY_INGRESS] =
        (t->cause == MODEL_INGRESS_DENIED || t->action == MODEL_DELIVER) && !own_host && !to_itself;
    a.at[POLICY_EGRESS] = q->entry == MODEL_FROM_PORT && !to_itself && !by_host &&
                          (t->action == MODEL_TUNNEL || t->action == MODEL_HOST ||
                           t->action == MODEL_DELIVER || t->cause == MODEL_EGRESS_DENIED ||
                           t->cause == MODEL_INGRESS_DENIED || is_between(t->cause));
    return a;
}

static void set_object(struct json *o, const struct policy *p, const struct policy_decision *x)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (policy_describe_decision(p, x, &text)) {
        json_set_string(o, "object", strbuf_cstr(&text));
    }
}

static const char *const names[] = {[POLICY_EGRESS] = "egress", [POLICY_INGRESS] = "ingress"};

static struct json *decision_json(const struct policy *p, enum policy_direction d,
                                  const struct policy_decision *x, bool agreed)
{
    struct json *o = json_object();
    json_set_string(o, "direction", names[d]);
    json_set_bool(o, "allowed", x->allowed);
    json_set_string(o, "meaning", explain_decision(x, d));
    json_set_bool(o, "agreed", agreed);
    set_object(o, p, x);
    return o;
}

bool introspect_policies(const struct introspect_view *v, const struct explain_question *q,
                         const struct dp_trace *t, struct json *answer)
{
    if (!v->policy || v->net->plugin != SDN_NETWORKPOLICY) {
        return true;
    }
    struct asked a = asked_by(v->net, q, t, json_get(answer, "service"));
    uint32_t dst = t->translated ? t->endpoint_ip : q->dst;
    uint16_t port = t->translated ? t->endpoint_port : q->dst_port;
    struct json *list = json_ensure_array(answer, "policies");
    bool agreed = true;
    for (enum policy_direction d = POLICY_EGRESS; d <= POLICY_INGRESS; d++) {
        struct policy_decision x = policy_decide(v->policy, d, q->src, dst, q->proto,
                                                 explain_has_ports(q->proto) ? port : 0);
        bool same = x.allowed == a.allowed[d];
        if (!a.at[d]) {
            continue;
        }
        json_append(list, decision_json(v->policy, d, &x, same));
        if (!x.allowed && same) { /* The last step is the drop. */
            struct json *steps = json_path(answer, "switch", "steps", NULL);
            set_object(json_at(steps, json_count(steps) - 1), v->policy, &x);
        }
        if (!same && v->policies_settled) {
            log_error("the datapath does not do what the policies say",
                      "direction=%s src=%s dst=%s protocol=%s port=%u policies=%s", names[d],
                      IP4_TEXT(q->src), IP4_TEXT(dst), explain_proto_name(q->proto), port,
                      x.allowed ? "allow" : "deny");
        }
        agreed = agreed && same;
    }
    /* A change under way reaches the datapath a moment later. */
    if (!agreed && !v->policies_settled) {
        json_set_bool(answer, "policiesChange", true);
        return true;
    }
    return agreed;
}

void introspect_policy_of_drop(const struct policy *p, const struct dp_event *e, struct strbuf *out)
{
    enum policy_direction d = e->cause == MODEL_EGRESS_DENIED ? POLICY_EGRESS : POLICY_INGRESS;
    struct policy_decision x = policy_decide(p, d, e->src, e->dst, e->proto, e->dst_port);
    if (x.allowed) { /* The policies as of now. */
        policy_describe(p, x.selected, out);
    } else {
        policy_describe_decision(p, &x, out);
    }
}
