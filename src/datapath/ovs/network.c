/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/ovs.h"

#include "base/log.h"
#include "base/mem.h"

LOG_MODULE("ovs");

static bool addresses_equal(const struct sdn_addresses *a, const struct sdn_addresses *b)
{
    return a->n == b->n && memcmp(a->ip, b->ip, a->n * sizeof a->ip[0]) == 0;
}

static bool remote_equal(const struct sdn_remote *a, const struct sdn_remote *b)
{
    return a->id == b->id && a->host_ip == b->host_ip && prefix_equal(a->subnet, b->subnet) &&
           a->has_fixed_vnid == b->has_fixed_vnid &&
           (!a->has_fixed_vnid || a->fixed_vnid == b->fixed_vnid) &&
           addresses_equal(&a->addresses, &b->addresses);
}

/* Compares all members except the remotes. */
static bool head_equal(const struct sdn_network *a, const struct sdn_network *b)
{
    if (a->plugin != b->plugin || a->n_cluster != b->n_cluster || a->host_ip != b->host_ip ||
        a->vxlan_port != b->vxlan_port || a->mtu != b->mtu ||
        a->service_by_host != b->service_by_host || a->block_metadata != b->block_metadata ||
        !prefix_equal(a->service, b->service) || !prefix_equal(a->local, b->local) ||
        !addresses_equal(&a->addresses, &b->addresses)) {
        return false;
    }
    for (size_t i = 0; i < a->n_cluster; i++) {
        if (!prefix_equal(a->cluster[i], b->cluster[i])) {
            return false;
        }
    }
    return true;
}

/* Sorts by cookie; remotes that share one (ids that clash in 48 bits) share a group, in a fixed
 * order. */
static int remote_compare(const void *pa, const void *pb)
{
    const struct sdn_remote *a = pa, *b = pb;
    uint64_t ca = pipeline_remote_cookie(a), cb = pipeline_remote_cookie(b);
    if (ca != cb) {
        return ca < cb ? -1 : 1;
    }
    return a->host_ip < b->host_ip ? -1 : a->host_ip > b->host_ip;
}

static size_t run_length(const struct sdn_network *n, size_t from)
{
    size_t i = from + 1;
    uint64_t cookie = pipeline_remote_cookie(&n->remotes[from]);
    while (i < n->n_remotes && pipeline_remote_cookie(&n->remotes[i]) == cookie) {
        i++;
    }
    return i - from;
}

static bool run_equal(const struct sdn_remote *a, size_t na, const struct sdn_remote *b, size_t nb)
{
    if (na != nb) {
        return false;
    }
    for (size_t i = 0; i < na; i++) {
        if (!remote_equal(&a[i], &b[i])) {
            return false;
        }
    }
    return true;
}

static void set_generation(struct ovs_dp *o, uint64_t generation)
{
    o->net_generation = MAX(o->net_generation, generation);
}

static void set_remotes(struct ovs_dp *o, const struct sdn_remote *r, size_t n)
{
    struct of_flow_list flows = {0};
    for (size_t i = 0; i < n; i++) {
        pipeline_remote(&o->net, &r[i], &flows);
    }
    set_generation(o, flow_table_set_group(&o->flows, pipeline_remote_cookie(r), &flows));
}

/* Walks the old and the new remotes, both sorted, and touches the groups that differ. */
static void update_remotes(struct ovs_dp *o, const struct sdn_network *old, bool all)
{
    const struct sdn_network *new = &o->net;
    size_t i = 0, j = 0;
    while (i < old->n_remotes || j < new->n_remotes) {
        const struct sdn_remote *a = i < old->n_remotes ? &old->remotes[i] : NULL;
        const struct sdn_remote *b = j < new->n_remotes ? &new->remotes[j] : NULL;
        uint64_t ca = a ? pipeline_remote_cookie(a) : UINT64_MAX;
        uint64_t cb = b ? pipeline_remote_cookie(b) : UINT64_MAX;
        size_t na = ca <= cb ? run_length(old, i) : 0;
        size_t nb = cb <= ca ? run_length(new, j) : 0;
        if (!nb) {
            set_generation(o, flow_table_remove_group(&o->flows, ca));
        } else if (all || !run_equal(a, na, b, nb)) {
            set_remotes(o, b, nb);
        }
        i += na;
        j += nb;
    }
}

static void set_base(struct ovs_dp *o)
{
    struct of_flow_list flows = {0};
    pipeline_base(&o->net, &flows);
    set_generation(o, flow_table_set_group(&o->flows, PIPELINE_BASE_COOKIE, &flows));
}

void network_set_meter(struct ovs_dp *o, uint32_t meter)
{
    if (o->refusal_meter != meter) {
        o->refusal_meter = o->net.refusal_meter = meter;
        set_base(o);
    }
}

void network_set(struct ovs_dp *o, const struct sdn_network *n)
{
    struct sdn_network old = o->net;
    bool head_changed = !o->have_network || !head_equal(&old, n);
    o->net = *n;
    o->net.refusal_meter = o->refusal_meter;
    o->net.remotes = n->n_remotes ? xmemdup(n->remotes, n->n_remotes * sizeof *n->remotes) : NULL;
    if (n->n_remotes) {
        qsort(o->net.remotes, n->n_remotes, sizeof *n->remotes, remote_compare);
    }
    o->have_network = true;
    if (head_changed || o->given_up) {
        setup_restart(o);
    }
    if (head_changed) {
        set_base(o);
        compile_network(o);
    }
    update_remotes(o, &old, head_changed);
    if (head_changed) {
        set_generation(o, pods_reflow(o));
    }
    free(old.remotes);
    log_debug("network set", "remotes=%zu changed=%s flows=%zu", o->net.n_remotes,
              head_changed ? "all" : "remotes", o->flows.n_wanted);
}

void network_done(struct ovs_dp *o)
{
    free(o->net.remotes);
}
