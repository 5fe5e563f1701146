/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of pods to services that are idle (EBPF_HELD): the programs hand them to the agent,
 * which sends them back with a mark when they may continue.
 *
 * On the loop's thread. */
#pragma once

#include "base/err.h"
#include "datapath/ebpf/bpf/maps.h"
#include "datapath/ebpf/devices.h"
#include "net/loop/loop.h"

/* 'port' is the ifindex of the pod's link. */
typedef void held_fn(void *ctx, uint32_t port, const uint8_t *frame, size_t size);

struct held;
struct held_config {
    struct loop *loop;
    int ring;                      /* EBPF_HELD; -1: there is no such map, and no packets arrive. */
    const struct devices *devices; /* Borrowed. */
    held_fn *fn;
    void *ctx;
};
int held_new(const struct held_config *c, struct held **ret, struct err *e);
struct held *held_free(struct held *h);

/* The frame (copied) is sent by the next held_flush: when the services have the announced
 * endpoints; or after a short time. */
void held_send(struct held *h, const uint8_t *frame, size_t size);
void held_flush(struct held *h);
