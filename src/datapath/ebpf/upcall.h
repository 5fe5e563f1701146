/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of pods to idle services: receives them from the programs (EBPF_UPCALLS), and hands those
 * that may continue back to the programs (EBPF_REINJECT_MARK). In between the agent keeps them
 * (node/registry/services.h).
 *
 * On the loop's thread. */
#pragma once

#include "base/err.h"
#include "datapath/ebpf/bpf/maps.h"
#include "datapath/ebpf/devices.h"
#include "net/loop/loop.h"

/* Called for each packet that arrives; 'port' is the ifindex of the pod's link. */
typedef void upcall_fn(void *ctx, uint32_t port, const uint8_t *frame, size_t size);

struct upcalls;
struct upcall_config {
    struct loop *loop;
    int ring; /* EBPF_UPCALLS; -1: there is no such map, and no packets arrive. */
    const struct devices *devices; /* Borrowed. */
    upcall_fn *fn;
    void *ctx;
};
int upcall_new(const struct upcall_config *c, struct upcalls **ret, struct err *e);
struct upcalls *upcall_free(struct upcalls *u);

/* Takes a frame (copied) that may continue. It is sent by the next upcall_flush, which the owner
 * calls when the maps have the new endpoints; or, when no change of services follows, after a
 * second. */
void upcall_reinject(struct upcalls *u, const uint8_t *frame, size_t size);
void upcall_flush(struct upcalls *u);
