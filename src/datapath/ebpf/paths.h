/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to other nodes, for programs that put the outer header of tunnel packets on and off by themselves.
 *
 * The kernel's routing is asked once for each node, and again when it changed.  What it says is lent to the programs: they
 * use it for some seconds, so that when nobody looks after it any more, packets go by the VXLAN device again, which asks
 * for each.  The links to other nodes get 'from_wire', beside whatever others put there, as long as they lead to one.
 *
 * All of it is the loop's. */
#pragma once

#include "datapath/ebpf/hook.h"
#include "net/kernel/path.h"
#include "net/loop/loop.h"
#include "sdn/network.h"

/* Longer than the agent needs to lend again (PATHS_LEND_MS), busy or not. */
#define PATHS_LENT_S 15
#define PATHS_LEND_MS 5000

struct paths;
struct paths_config {
    struct loop *loop;
    const struct hooks *hooks;  /* Lives as long. */
    void (*changed)(void *ctx); /* Routes or links: paths_find says otherwise now, perhaps. */
    void *ctx;
};
int paths_new(const struct paths_config *c, struct paths **ret, struct err *e);
struct paths *paths_free(struct paths *p); /* Hooks stay, and do nothing when the time is over. */
/* One for each remote of 'n', valid until the next call; those that the programs cannot use are all zero.  'p' may be
 * NULL, then so is the answer. */
const struct path *paths_find(struct paths *p, const struct sdn_network *n);
/* Until when they are lent, from now on; 0: not at all ('p' is NULL, or IPsec has a say). */
uint32_t paths_lend(const struct paths *p);
/* Puts 'from_wire' on the links of the paths that were found last, and takes it off others that had it. */
void paths_hook(struct paths *p, int from_wire);
/* The links of the paths that were found last, for 'from_wire'; at most 'max'. */
size_t paths_places(const struct paths *p, struct hook_place *ret, size_t max);
bool paths_has_link(const struct paths *p, const char *ifname);
