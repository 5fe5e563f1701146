/* SPDX-License-Identifier: Apache-2.0 */
/* The subnet allocator: gives each node a part of the cluster network. Pure.
 *
 * The cluster network is an ordered list of ranges, each cut into slots of 2^host_bits
 * addresses.  The used parts are a set of marked prefixes of any size, anywhere.  A slot is free
 * when it overlaps no mark; that holds by construction also for subnets that were allocated when
 * the host subnet length was another, or from a range that has been removed since.
 *
 * Marks are counted.  Two HostSubnets made by hand may hold the same subnet, and the removal of
 * one must not free the other's.
 *
 * Order: ranges in the order given; within a range ascending, from a cursor that stands after
 * the slot allocated last, and around once (next fit). So a freed subnet of a range is handed
 * out again only when the cursor comes by, and nodes that still have flows for it have time to
 * drop them. The cursor is not stored: after a restart subnet_alloc_seek with the subnet of the
 * newest HostSubnet puts it back where it stood. Without that it stands at the start of each
 * range.
 *
 * Marks live in a binary trie over the address bits, 16 bytes a node, in which each node knows
 * how many slots below it are blocked: all operations walk one or two paths of at most 32 nodes,
 * whatever the number of subnets, and memory grows with the marks and not with the ranges.
 *
 * The caller owns the struct; not thread-safe. */
#pragma once

#include "base/ip.h"

struct subnet_range {
    struct ip4_prefix cidr;
    uint8_t host_bits; /* 2-30, at most 32 - cidr.len: a slot has 2^host_bits addresses. */
};

struct subnet_alloc;

/* Checks a list of ranges: at least one, canonical, host_bits in bounds, none overlapping another.
 * -EINVAL names the range ("10.128.0.0/14: host subnet length 20 is not in 2-18"). */
int subnet_ranges_check(const struct subnet_range *ranges, size_t n, struct err *e);

/* 'ranges' is copied, and checked as above. */
int subnet_alloc_new(const struct subnet_range *ranges, size_t n, struct subnet_alloc **ret,
                     struct err *e);
struct subnet_alloc *subnet_alloc_free(struct subnet_alloc *a);
DEFINE_CLEANUP(struct subnet_alloc *, subnet_alloc_free)

/* Marks the next free slot once and returns it. -ENOSPC: every slot of every range overlaps a
 * mark. */
int subnet_alloc_allocate(struct subnet_alloc *a, struct ip4_prefix *ret);
/* Marks 'p' once more, whatever its size and place; 'p' must be canonical. */
void subnet_alloc_mark(struct subnet_alloc *a, struct ip4_prefix p);
/* Takes one mark of exactly 'p' away.  -ENOENT: there is none. */
int subnet_alloc_release(struct subnet_alloc *a, struct ip4_prefix p);
/* The next allocation from the range that 'p' lies in starts after 'p'; no effect when outside. */
void subnet_alloc_seek(struct subnet_alloc *a, struct ip4_prefix p);

/* Marks of exactly 'p'. */
unsigned subnet_alloc_marks(const struct subnet_alloc *a, struct ip4_prefix p);
/* Whether any mark, of whatever size, overlaps 'p'. */
bool subnet_alloc_overlaps(const struct subnet_alloc *a, struct ip4_prefix p);
/* Whether 'p' lies within one of the ranges, whatever its size. */
bool subnet_alloc_in_range(const struct subnet_alloc *a, struct ip4_prefix p);
/* Slots of all ranges, and how many of them an allocation could still get. */
uint64_t subnet_alloc_slots(const struct subnet_alloc *a);
uint64_t subnet_alloc_free_slots(const struct subnet_alloc *a);
/* Heap bytes held, for metrics and tests. */
size_t subnet_alloc_memory(const struct subnet_alloc *a);
