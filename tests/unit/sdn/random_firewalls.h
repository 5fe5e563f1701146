/* SPDX-License-Identifier: Apache-2.0 */
/* Random egress firewalls, for the model as rules and for the datapaths as blocks. */
#pragma once

#include "sdn/model.h"
#include "wire/openflow.h"

#define RANDOM_FIREWALLS 16

struct random_firewalls {
    struct model_firewall list[RANDOM_FIREWALLS];
    size_t n;
};

void random_firewalls_init(struct random_firewalls *f);
/* Adds the firewall of a VNID, whose rules have prefixes around some of these addresses. */
void random_firewalls_add(struct random_firewalls *f, uint32_t vnid, const uint32_t *around,
                          size_t n);
void random_firewalls_done(struct random_firewalls *f);
/* Calls 'set' for each firewall with its blocks. */
void random_firewalls_tell(const struct model_firewall *list, size_t n,
                           void (*set)(void *ctx, uint32_t vnid,
                                       const struct firewall_block *blocks, size_t n),
                           void *ctx);
/* Appends the flows of all. */
void random_firewalls_flows(const struct model_firewall *list, size_t n, struct of_flow_list *out);
