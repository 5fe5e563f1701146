/* SPDX-License-Identifier: Apache-2.0 */
/* The egress firewalls of all projects, made from their objects.
 *
 * A project has at most one EgressNetworkPolicy (network.openshift.io/v1), and a VNID of its own.
 * The rules apply to the VNID.  If a project has several, or shares its VNID with another project
 * while one of them has a policy, or a policy cannot be read, nothing leaves the cluster from that
 * VNID: the project's pods do not get more than any of the objects allows.  A policy in a project
 * with the VNID 0 is ignored: its VNID is that of the host and of all global projects. Both are
 * reported.  A project with a policy whose VNID is not known counts as one with SDN_VNID_NOBODY,
 * from which then nothing leaves.
 *
 * Names in rules have the addresses that egress_set_name has set; the caller resolves them. Pure:
 * results are handed out by callbacks from within egress_update. Not thread-safe. */
#pragma once

#include "sdn/firewall.h"
#include "sdn/network.h"
#include "wire/json.h"

struct egress;

struct egress_ops {
    /* The blocks for a VNID; none: all destinations are allowed.  Called when they change. */
    void (*set)(void *ctx, uint32_t vnid, const struct firewall_block *blocks, size_t n);
    /* A name that some rule has, or that no rule has any more.  Optional. */
    void (*name)(void *ctx, const char *name, bool wanted);
    /* A policy is not applied as it is written, for this reason; 'why' NULL: it is.  Called when
     * that changes.  Optional. */
    void (*judged)(void *ctx, const char *project, const char *policy, const char *reason,
                   const char *why);
};

struct egress *egress_new(const struct egress_ops *ops, void *ctx);
struct egress *egress_free(struct egress *e); /* Calls no callback. */

/* Sets the VNID of a project; NULL: it has none. */
void egress_set_project(struct egress *e, const char *project, const uint32_t *vnid);
/* Sets an EgressNetworkPolicy; 'obj' NULL: it is gone. */
void egress_set_policy(struct egress *e, const char *project, const char *policy,
                       const struct json *obj);
/* Sets the addresses of a name that is wanted. */
void egress_set_name(struct egress *e, const char *name, const uint32_t *ips, size_t n);
/* Hands out the firewalls that VNIDs have now, and takes none away: before pods move to other
 * VNIDs. */
void egress_prepare(struct egress *e);
/* Brings the results up to date with all changes.  A VNID that gets a firewall is handed out before
 * one that loses it. */
void egress_update(struct egress *e);

/* Hands out that no VNID has a firewall any more; for the time before
 * egress_free. */
void egress_withdraw(struct egress *e);

/* The rules that apply to a VNID; '*ret' is valid until the next change. */
size_t egress_rules(const struct egress *e, uint32_t vnid, const struct firewall_rule **ret);
/* Calls 'fn' for each policy of the projects with this VNID. */
void egress_each_policy(const struct egress *e, uint32_t vnid,
                        void (*fn)(void *ctx, const char *project, const char *policy), void *ctx);
/* Calls 'fn' for each policy with a rule for this name. */
void egress_each_user(const struct egress *e, const char *name,
                      void (*fn)(void *ctx, const char *project, const char *policy), void *ctx);

struct egress_counts {
    size_t policies, rules, names, unapplied;
};
void egress_count(const struct egress *e, struct egress_counts *ret);
