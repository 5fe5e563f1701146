/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/ipam.h"

#include "base/mem.h"

#define FIRST_POD 2u /* Offsets: 0 is the network, 1 the gateway, the last the broadcast address. */

struct ipam {
    struct ip4_prefix subnet;
    uint32_t end;  /* Offset after the last pod address. */
    uint32_t next; /* Offset where the search begins. */
    uint32_t used;
    uint64_t words[]; /* One bit per offset; bits outside the pods' range are never used. */
};

int ipam_new(struct ip4_prefix subnet, struct ipam **ret, struct err *e)
{
    if (subnet.len < 8 || subnet.len > 30) {
        return err_set(e, -EINVAL, "subnet %s: its length is not in 8-30", PREFIX_TEXT(subnet));
    }
    size_t words = (size_t) (prefix_size(subnet) + 63) / 64;
    struct ipam *m = xcalloc(1, sizeof *m + words * sizeof m->words[0]);
    m->subnet = subnet;
    m->end = (uint32_t) prefix_size(subnet) - 1;
    m->next = FIRST_POD;
    *ret = m;
    return 0;
}

struct ipam *ipam_free(struct ipam *m)
{
    free(m);
    return NULL;
}

struct ip4_prefix ipam_subnet(const struct ipam *m)
{
    return m->subnet;
}

uint32_t ipam_capacity(const struct ipam *m)
{
    return m->end - FIRST_POD;
}

uint32_t ipam_used(const struct ipam *m)
{
    return m->used;
}

static bool test(const struct ipam *m, uint32_t offset)
{
    return m->words[offset / 64] >> (offset % 64) & 1;
}

static void flip(struct ipam *m, uint32_t offset)
{
    m->words[offset / 64] ^= (uint64_t) 1 << (offset % 64);
}

static bool is_pod_address(const struct ipam *m, uint32_t ip)
{
    uint32_t offset = ip - m->subnet.addr;
    return prefix_contains(m->subnet, ip) && offset >= FIRST_POD && offset < m->end;
}

bool ipam_is_used(const struct ipam *m, uint32_t ip)
{
    return is_pod_address(m, ip) && test(m, ip - m->subnet.addr);
}

/* First free offset in [from, end); 'end' when there is none. */
static uint32_t find_free(const struct ipam *m, uint32_t from, uint32_t end)
{
    while (from < end) {
        uint64_t free_bits = ~m->words[from / 64] >> (from % 64);
        if (free_bits) {
            return MIN(from + (uint32_t) __builtin_ctzll(free_bits), end);
        }
        from = (from / 64 + 1) * 64;
    }
    return end;
}

int ipam_alloc(struct ipam *m, uint32_t *ret_ip, struct err *e)
{
    uint32_t offset = find_free(m, m->next, m->end);
    if (offset == m->end) {
        offset = find_free(m, FIRST_POD, m->next);
        if (offset == m->next) {
            return err_set(e, -ENOSPC, "no free address in %s: %u in use", PREFIX_TEXT(m->subnet),
                           m->used);
        }
    }
    flip(m, offset);
    m->used++;
    m->next = offset + 1 < m->end ? offset + 1 : FIRST_POD;
    *ret_ip = m->subnet.addr + offset;
    return 0;
}

int ipam_mark(struct ipam *m, uint32_t ip, struct err *e)
{
    if (!is_pod_address(m, ip)) {
        return err_set(e, -ERANGE, "%s is not a pod address of %s", IP4_TEXT(ip),
                       PREFIX_TEXT(m->subnet));
    }
    uint32_t offset = ip - m->subnet.addr;
    if (test(m, offset)) {
        return err_set(e, -EEXIST, "%s is in use", IP4_TEXT(ip));
    }
    flip(m, offset);
    m->used++;
    return 0;
}

int ipam_release(struct ipam *m, uint32_t ip)
{
    if (!ipam_is_used(m, ip)) {
        return -ENOENT;
    }
    flip(m, ip - m->subnet.addr);
    m->used--;
    return 0;
}
