/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of pods to services that are idle (EBPF_HELD): the programs hand them over, and take them back with a mark when
 * they may go on.
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
    int ring;                      /* EBPF_HELD; -1: there is none, and nothing comes. */
    const struct devices *devices; /* Borrowed. */
    held_fn *fn;
    void *ctx;
};
int held_new(const struct held_config *c, struct held **ret, struct err *e);
struct held *held_free(struct held *h);

/* The frame (copied) goes on with the next held_flush: when the services are in place of which it was said that they have
 * endpoints; or soon. */
void held_send(struct held *h, const uint8_t *frame, size_t size);
void held_flush(struct held *h);
