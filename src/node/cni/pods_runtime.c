/* SPDX-License-Identifier: Apache-2.0 */
/* Host ports and limits of pods, as CNI's requests carry them out.
 *
 * The runtime passes them, or else the pod's object has them; where a later plug-in in the chain
 * implements one of them, tenet does not.  They are applied when the pod is attached, before ADD
 * answers, and stored with its port. */
#include "node/cni/pods_priv.h"

#include "base/mem.h"

static void found(void *ctx, int error, const char *text, struct cni_runtime *wants)
{
    struct op *op = ctx;
    struct cni_runtime *r = &op->runtime;
    const struct cni_config *c = &op->req.config;
    if (error == -EINVAL) {
        op_fail(op, CNI_INVALID_POD, "the pod wants what cannot be", "Pod %s/%s: %s",
                op->req.pod_namespace, op->req.pod_name, text);
        op->asked = false; /* In case the attachment is tried again for another reason. */
    } else if (error == 0) {
        if (!r->has_ports && !c->chained_portmap) {
            r->ports = TAKE(wants->ports);
            r->n_ports = wants->n_ports;
        }
        if (!r->has_bandwidth && !c->chained_bandwidth) {
            r->bandwidth = wants->bandwidth;
        }
    }
    op_part_ended(op);
}

static bool is_limited(const struct cni_runtime *r)
{
    CLEANUP_FREE char *bandwidth = cni_bandwidth_text(&r->bandwidth);
    return bandwidth;
}

bool runtime_wants_pair(const struct op *op)
{
    return op->req.config.chained_bandwidth || is_limited(&op->req.config.runtime);
}

void runtime_find(struct op *op)
{
    struct cni_runtime *r = &op->runtime;
    const struct cni_config *c = &op->req.config;
    if (op->asked) {
        return;
    }
    op->asked = true;
    cni_runtime_done(r);
    *r = op->req.config.runtime;
    if (c->chained_bandwidth) {
        r->bandwidth = (struct cni_bandwidth){.elsewhere = true};
    }
    r->ports = r->n_ports ? xmemdup(r->ports, r->n_ports * sizeof *r->ports) : NULL;
    if ((!r->has_ports && !c->chained_portmap) || (!r->has_bandwidth && !c->chained_bandwidth)) {
        op->parts++;
        op->pods->ops->look_up(op->pods->ctx, op->req.pod_namespace, op->req.pod_name, found, op);
    }
}

bool runtime_is_same(const struct cni_runtime *r, const struct dp_pod *pod)
{
    CLEANUP_FREE char *ports = cni_host_ports_text(r);
    CLEANUP_FREE char *bandwidth = cni_bandwidth_text(&r->bandwidth);
    return (!r->has_ports || streq_null(ports, pod->host_ports)) &&
           (!r->has_bandwidth || streq_null(bandwidth, pod->bandwidth));
}

/* Reserves the pod's host ports; if one is taken, the request fails and names its user. */
static bool check_port(struct op *op, const struct cni_host_port *p)
{
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(op->pods->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        CLEANUP(cni_runtime_done) struct cni_runtime other = {0};
        if (!pods[i]->host_ports || cni_host_ports_parse(pods[i]->host_ports, &other) < 0) {
            continue;
        }
        for (size_t k = 0; k < other.n_ports; k++) {
            if (cni_host_port_overlaps(p, &other.ports[k])) {
                op_fail(op, CNI_PORT_TAKEN, "a host port is taken", "%u/%s is that of pod %s/%s",
                        p->host_port, cni_protocol_name(p->protocol), pods[i]->pod_namespace,
                        pods[i]->pod_name);
                return false;
            }
        }
    }
    return true;
}

static void reserve_ports(struct op *op)
{
    const struct pods *p = op->pods;
    const struct cni_runtime *r = &op->runtime;
    struct err e = {0};
    for (size_t i = 0; i < r->n_ports && check_port(op, &r->ports[i]); i++) {
    }
    if (op->failed || !r->n_ports) {
        return;
    }
    op->reserved = p->ops->reserve(p->ctx, r, &e) == 0;
    if (!op->reserved) {
        op_fail(op, CNI_PORT_TAKEN, "a host port is taken", "%s", e.text);
    }
}

void runtime_settle(struct op *op)
{
    if (op->reserved) {
        op->reserved = false;
        op->pods->ops->settled(op->pods->ctx, &op->runtime);
    }
}

static void stored(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    if (error < 0 && !op_fail_not_ready(op)) {
        op_fail(op, CNI_ATTACH_FAILED, "cannot store the pod's host ports and limits", "%s", text);
    }
    op_part_ended(op);
}

static void limited(struct op *op)
{
    if (op->work_result < 0) {
        op_fail(op, CNI_ATTACH_FAILED, "cannot limit the pod's bandwidth", "%s",
                op->work_error.text);
    }
    op_part_ended(op);
}

static void opened(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    if (error < 0) {
        op_fail(op, CNI_ATTACH_FAILED, "cannot open the pod's host ports", "%s", text);
    }
    op_part_ended(op);
}

bool runtime_needs_pair(struct op *op)
{
    bool on_end = datapath_end(op->pods->datapath, op->pod->port, op->pod->host_if) >= 0;
    op->pair = op->pair || (on_end && is_limited(&op->runtime));
    return on_end && op->pair;
}

void runtime_apply(struct op *op, op_step *then)
{
    const struct pods *p = op->pods;
    const struct cni_runtime *r = &op->runtime;
    CLEANUP_FREE char *ports = cni_host_ports_text(r);
    CLEANUP_FREE char *bandwidth = cni_bandwidth_text(&r->bandwidth);
    if (!ports && !bandwidth) {
        then(op);
        return;
    }
    op->joined = then;
    op->parts = 1;
    reserve_ports(op);
    if (!op->failed) {
        op->pod->host_ports = TAKE(ports);
        op->pod->bandwidth = TAKE(bandwidth);
        op_fill_link(op);
        op->parts++;
        datapath_set_runtime(p->datapath, op->req.container_id, op->req.ifname, op->pod->host_ports,
                             op->pod->bandwidth, stored, op);
        if (op->pod->bandwidth) {
            op->parts++;
            op_work(op, pod_link_limit, limited);
        }
        if (op->pod->host_ports) {
            op->parts++;
            p->ops->host_ports(p->ctx, true, opened, op);
        }
    }
    op_part_ended(op);
}

static void unlimited(struct op *op)
{
    if (op->work_result < 0) {
        op_fail(op, CNI_DETACH_FAILED, "cannot take the limits off the pod's port", "%s",
                op->work_error.text);
        op_part_ended(op);
        return;
    }
    op->unlimited(op);
}

void runtime_unlimit(struct op *op, op_step *then)
{
    if (!op->pod->bandwidth) {
        then(op);
        return;
    }
    op->unlimited = then;
    op_work(op, pod_link_unlimit, unlimited);
}

static void closed(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    if (error < 0) {
        op_fail(op, CNI_DETACH_FAILED, "cannot take the pod's host ports away", "%s", text);
    }
    op_part_ended(op);
}

void runtime_end(struct op *op, op_step *then)
{
    if (op->in_switch || !op->pod->host_ports) {
        then(op);
        return;
    }
    op->joined = then;
    op->parts = 1;
    op->pods->ops->host_ports(op->pods->ctx, false, closed, op);
}
