/* SPDX-License-Identifier: Apache-2.0 */
/* ICMP errors for packets of pods whose destination cannot exist, independent of the cluster's
 * pods. Pure.
 *
 * The switch drops such a packet and hands its first bytes to the agent, limited by a meter.
 * This module decides whether its sender gets an error, how often, and which: ICMP destination
 * unreachable (RFC 792) by the rules of RFC 1122 3.2.2 and RFC 1812 4.3.2. Causes that depend on
 * other pods are never answered: an address without a pod and a denied one look the same. */
#pragma once

#include "sdn/model.h"

#define REFUSALS_PER_S 10 /* Errors per second for one pod, after a burst of as many. */
#define REFUSAL_SIZE_MAX 128

/* Zeroed: no error was sent yet. */
struct refusal_bucket {
    uint64_t since_ms; /* The bucket fills from this time on; it is full after a second. */
};
/* Whether one more may be sent now; if so, counts it. */
bool refusal_allowed(struct refusal_bucket *b, uint64_t now_ms);

/* Code of "destination unreachable" for packets of this cause; -1: no error is sent. */
int refusal_code(enum model_cause cause);

struct refusal_sender {
    uint32_t ip;
    struct mac mac;
    uint32_t gateway; /* Gateway of its node, the source of the error. */
};
/* Makes the error frame about 'frame' (of which 'size' bytes are known) of the pod 's' in 'out';
 * returns its size, or 0 when it must not be answered: not the pod's own, no IPv4, cut short, an
 * ICMP error itself, a later fragment, or a source or destination that is not a single host. */
size_t refusal_make(const struct refusal_sender *s, int code, const uint8_t *frame, size_t size,
                    uint8_t out[REFUSAL_SIZE_MAX]);
