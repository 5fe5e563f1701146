/* SPDX-License-Identifier: Apache-2.0 */
/* The egress firewalls of projects on this node: EgressNetworkPolicies and names become what the
 * datapath enforces (sdn/egress.h).  A policy that is not applied as it is written, and a name that
 * cannot be looked up, are reported in the log and by an Event about the policy. */
#pragma once

#include "node/agent/agent_priv.h"

/* Begins to follow the objects; false: the first list is not complete yet. */
bool agent_egress_is_ready(struct agent *a, enum sdn_plugin plugin);
/* The firewalls are in the datapath from now on, before pods and network are. */
void agent_begin_egress(struct agent *a);
/* Sets the VNID of a project, NULL: it has none; before its pods get it. */
void agent_set_egress_project(struct agent *a, const char *project, const struct sdn_vnids *v);
struct egress *agent_egress_rules(struct agent *a); /* For introspection; NULL: none yet. */
/* Whether the egress firewall of a project allows an address outside. */
bool agent_may_leave(void *ctx, const char *project, uint32_t ip);
void agent_close_egress(struct agent *a); /* The datapath keeps the firewalls that it has. */
