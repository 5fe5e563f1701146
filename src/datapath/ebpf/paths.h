/* SPDX-License-Identifier: Apache-2.0 */
/* The paths to other nodes, for programs that add and remove the outer header of tunnel packets
 * themselves.
 *
 * The agent asks for the kernel's route once for each node, and again when routes change. A path
 * is lent to the programs for some seconds: when the agent does not renew it, packets go by the
 * VXLAN device again, which looks up the route for each. The links to other nodes get
 * 'from_wire', beside other software's programs, as long as they lead to a node.
 *
 * Used on the loop's thread only. */
#pragma once

#include "datapath/ebpf/hook.h"
#include "net/kernel/path.h"
#include "net/loop/loop.h"
#include "sdn/network.h"

/* Seconds; longer than the agent's interval of renewal (PATHS_LEND_MS), even when it is busy. */
#define PATHS_LENT_S 15
#define PATHS_LEND_MS 5000

struct paths;
struct paths_config {
    struct loop *loop;
    const struct hooks *hooks; /* Lives as long. */
    /* Routes or links changed: the results of paths_find may be different now. */
    void (*changed)(void *ctx);
    void *ctx;
};
int paths_new(const struct paths_config *c, struct paths **ret, struct err *e);
/* The hooks stay, and pass all packets when the time is over. */
struct paths *paths_free(struct paths *p);
/* One for each remote of 'n', valid until the next call; paths that the programs cannot use are
 * all zero. NULL when 'p' is NULL. */
const struct path *paths_find(struct paths *p, const struct sdn_network *n);
/* Seconds until which the paths are lent, from now on; 0: not at all ('p' is NULL, or IPsec
 * policies exist). */
uint32_t paths_lend(const struct paths *p);
/* Attaches 'from_wire' to the links of the paths found last, and detaches it from other links. */
void paths_hook(struct paths *p, int from_wire);
/* The links of the paths found last, for 'from_wire'; at most 'max'. */
size_t paths_places(const struct paths *p, struct hook_place *ret, size_t max);
bool paths_has_link(const struct paths *p, const char *ifname);
