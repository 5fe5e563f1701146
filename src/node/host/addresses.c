/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/addresses.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/path.h"
#include "node/host/host.h"
#include "sdn/host_ports.h"

#include <net/if.h>
#include <stdlib.h>

static bool is_engines(const char *link)
{
    static const char *const prefixes[] = {"tun0",  "lo",  "docker", "podman",
                                           "virbr", "cni", "lxc",    "lxdbr"};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (str_has_prefix(link, prefixes[i])) {
            return true;
        }
    }
    return false;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

int addresses_own(struct rtnl *r, const struct sdn_network *n, struct sdn_addresses *ret,
                  struct err *e)
{
    CLEANUP_FREE struct rtnl_addr *list = NULL;
    struct sdn_addresses found = {0};
    size_t count;
    int err = rtnl_addr_list(r, 0, &list, &count, e);
    if (err < 0) {
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t ip = list[i].addr.addr;
        char link[IF_NAMESIZE] = "";
        bool named = if_indextoname((unsigned) list[i].ifindex, link) != NULL;
        if (named && !is_engines(link) && ip != n->host_ip && sdn_may_be_host(n, ip)) {
            sdn_addresses_add(&found, ip);
        }
    }
    qsort(found.ip, found.n, sizeof found.ip[0], by_number);
    *ret = found;
    return 0;
}

/* ---- of other nodes ---- */

struct claim {
    uint32_t ip;
    size_t remote; /* Index of the remote; SIZE_MAX is this node. */
    bool is_main;
};

static int by_address(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->ip != y->ip) {
        return x->ip < y->ip ? -1 : 1;
    }
    if (x->is_main != y->is_main) {
        return x->is_main ? -1 : 1;
    }
    return (x->remote > y->remote) - (x->remote < y->remote);
}

static void add_all(struct claim *list, size_t *n, uint32_t main,
                    const struct sdn_addresses *others, size_t remote)
{
    list[(*n)++] = (struct claim){main, remote, true};
    for (size_t i = 0; i < others->n; i++) {
        list[(*n)++] = (struct claim){others->ip[i], remote, remote == SIZE_MAX};
    }
}

/* The addresses of remotes that no other node claims; owned. */
static struct claim *undisputed(const struct sdn_network *n, size_t *ret_n)
{
    size_t count = 0, used = 0;
    struct claim *list = xcalloc((n->n_remotes + 1) * (SDN_MAX_ADDRESSES + 1), sizeof *list);
    add_all(list, &count, n->host_ip, &n->addresses, SIZE_MAX);
    for (size_t i = 0; i < n->n_remotes; i++) {
        add_all(list, &count, n->remotes[i].host_ip, &n->remotes[i].addresses, i);
    }
    qsort(list, count, sizeof *list, by_address);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && list[end].ip == list[i].ip; end++) {
        }
        if (end == i + 1 && !list[i].is_main) {
            list[used++] = list[i];
        }
    }
    *ret_n = used;
    return list;
}

void addresses_believe(struct rtnl *r, struct sdn_network *n)
{
    size_t count;
    CLEANUP_FREE struct claim *list = undisputed(n, &count);
    for (size_t i = 0; i < n->n_remotes; i++) {
        n->remotes[i].addresses.n = 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct sdn_remote *remote = &n->remotes[list[i].remote];
        struct path way = {0};
        struct err e = {0};
        if (path_find(r, n->host_ip, &list[i].ip, 1, &way, &e) == 0 && way.ifindex &&
            (way.next == list[i].ip || way.next == remote->host_ip)) {
            sdn_addresses_add(&remote->addresses, list[i].ip);
        }
    }
}
